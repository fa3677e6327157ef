"""Warnings about facts: constants that no fact has, logs that look like probabilities, values that are ignored, and
sums that may diverge.

Each is a `ProgramWarning`, and is looked for once for a binding. Warnings about the text alone are in `rules/check.py`,
those about arguments of lookups in `unknown_arguments.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from ...errors import ProgramError
from ...errors import warn as issue
from ...facts.relation import AtomColumn, Column, IntColumn, Relation, atom_key
from ...plan.model import Plan
from ...plan.traits import searches
from ...rules import show
from ...rules.checks.suspicious_rules import diverging
from ...rules.semirings import SEMIRINGS
from ...rules.syntax import Equation, Float, Integer, Item, Symbol, Term
from .context import ProgramContext
from .encoding import syntax_value

_CONSTANTS = (Symbol, Integer, Float)
_MOST_NAMED = 4  # constants named in one warning; the rest are counted


def warn(context: ProgramContext, relations: Mapping[str, Relation], logs: Collection[str] = ()) -> None:
    """Issues the warnings about a program and its facts, axioms among them; those of `logs` are no probabilities."""
    unknown = {key: relation for key, relation in relations.items() if key not in logs}
    for text in (*_unmatched(context, relations), *_probabilities(context, unknown), *_stated(context, relations)):
        issue(text)


def warn_of_iteration(context: ProgramContext, plan: Plan) -> None:
    """Warns of sums that may diverge in cycles which a plan iterates, for want of an order or a solver."""
    iterated = {key for s in plan.stages if searches(s) for key in s.keys}
    for keys, text in diverging(context.rules) if iterated else ():
        if keys & iterated:
            issue(text)


# -- constants -------------------------------------------------------------------------------------------------------


def _unmatched(context: ProgramContext, relations: Mapping[str, Relation]) -> Iterator[str]:
    """Constants of antecedents that no fact and no rule brings into their domain."""
    found: dict[tuple[int, Term], Item] = {}
    made = _made(context)
    for item, number, constant in _asked(context):
        domain = context.domains.domains[number]
        if (number, constant) in found or (number, constant) in made or domain.arithmetic or domain.nested:
            continue
        columns = [relations[k].columns[i] for k, i in domain.positions if k in relations]
        filled = [column for column in columns if len(column)]
        if filled and not any(_holds(column, syntax_value(constant)) for column in filled):
            found[number, constant] = item
    if not found:
        return
    named = [f"`{show(constant)}` in `{show(item)}`" for (_, constant), item in list(found.items())[:_MOST_NAMED]]
    more = f", and {len(found) - len(named)} more" if len(found) > len(named) else ""
    word, them = ("constant", "it") if len(found) == 1 else ("constants", "them")
    source = context.rules.source
    message = (
        f"No fact has the {word} {', '.join(named)}{more}, so what asks for {them} gives nothing. A variable starts "
        "with a capital letter."
    )
    first = next(iter(found.values()))
    yield str(ProgramError(message, source.text, first.span, source.filename))


def _asked(context: ProgramContext) -> Iterator[tuple[Item, int, Term]]:
    """The constants of antecedents, each with its item and its domain."""
    for rule in context.rules.rules:
        for antecedent in rule.antecedents:
            item = antecedent.item
            if context.rules.predicates[item.key].external:
                continue
            for argument, term in enumerate(item.arguments):
                if isinstance(term, _CONSTANTS):
                    yield item, context.domains.of[item.key, argument], term


def _made(context: ProgramContext) -> set[tuple[int, Term]]:
    """The constants that rules bring into a domain: those of heads, and of equations."""
    made: set[tuple[int, Term]] = set()
    for rule in context.rules.rules:
        for argument, term in enumerate(rule.head.arguments):
            made.add((context.domains.of[rule.head.key, argument], term))
        for condition in rule.conditions:
            if isinstance(condition, Equation):
                variables = context.domains.variables[rule.number]
                for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
                    number = variables.get(getattr(one, "name", ""))
                    if number is not None:
                        made.add((number, other))
    return made


def _holds(column: Column, value: Any) -> bool:
    """Whether a column of facts has a value."""
    if isinstance(column, IntColumn):
        return type(value) is int and bool((column.numbers == value).any())
    atoms = column.atoms if isinstance(column, AtomColumn) else column.terms
    key = atom_key(value)
    return any(atom_key(atom) == key for atom in atoms if isinstance(atom, str | int | float))


# -- numbers ---------------------------------------------------------------------------------------------------------


def _probabilities(context: ProgramContext, relations: Mapping[str, Relation]) -> Iterator[str]:
    """Facts whose values all lie between 0 and 1, in a semiring of log weights."""
    if not SEMIRINGS[context.scale.name].logs:
        return
    for key, relation in relations.items():
        values = relation.values
        if values is None or values.dtype != np.float64 or values.ndim != 1 or len(values) < 2:
            continue
        if values.min() >= 0 and values.max() <= 1 and int(((values > 0) & (values < 1)).sum()) > 1:
            yield (
                f"The values of `{key}` all lie between 0 and 1, and in `{context.scale.name}` a value is the log of a "
                'weight. If they are probabilities, say so with values="probabilities".'
            )
            return


def _stated(context: ProgramContext, relations: Mapping[str, Relation]) -> Iterator[str]:
    """Facts with values, of a predicate that `:-` defines in a semiring, where each item is worth one."""
    if context.rules.semiring is None:
        return
    given = context.scale.one
    one = np.hstack([np.ravel(part) for part in (given if isinstance(given, tuple) else (given,))])
    for key, relation in relations.items():
        if context.rules.predicates[key].aggregator != "|=" or relation.values is None:
            continue
        if bool((relation.values != one).any()):
            yield (
                f"`{key}` is defined by `:-`, so each of its items is worth one, and the values of its facts are "
                "ignored. If they are meant to count, give the facts another name."
            )
