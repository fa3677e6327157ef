"""Warnings about facts: constants that no fact has, logs that look like probabilities, values that are ignored, and
sums that may diverge; and about lookups, with symbols that no fact and no item has.

Each is a `ProgramWarning`. What is suspicious in facts is looked for once for a binding. Warnings about the text alone
are in `rules/check.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from ...errors import ProgramError, cut
from ...errors import warn as issue
from ...facts.relation import AtomColumn, Column, IntColumn, Relation, atom_key
from ...facts.terms import Term as DataTerm
from ...facts.terms import symbol_text, term_text
from ...plan.model import Plan
from ...rules import show
from ...rules.checks.suspicious_rules import diverging
from ...rules.semirings import SEMIRINGS
from ...rules.syntax import Equation, Float, Integer, Item, Symbol, Term
from .context import ProgramContext
from .encoding import syntax_value
from .loading import Prepared

_CONSTANTS = (Symbol, Integer, Float)
_MOST_NAMED = 4  # constants named in one warning; the rest are counted


def warn(context: ProgramContext, relations: Mapping[str, Relation], logs: Collection[str] = ()) -> None:
    """Issues the warnings about a program and its facts, axioms among them; those of `logs` are no probabilities."""
    unknown = {key: relation for key, relation in relations.items() if key not in logs}
    for text in (*_unmatched(context, relations), *_probabilities(context, unknown), *_stated(context, relations)):
        issue(text)


def warn_of_iteration(context: ProgramContext, plan: Plan) -> None:
    """Warns of sums that may diverge in cycles which a plan iterates, for want of an order or a solver."""
    iterated = {key for s in plan.stages if s.strategy in ("heap", "queue", "stack") for key in s.keys}
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


# -- symbols of lookups ------------------------------------------------------------------------------------------------

MOST_COMPARED = 10_000
"""Among more symbols than this no similar one is looked for."""


def warn_of_unknown(context: ProgramContext, prepared: Prepared, key: str, values: Sequence[Any]) -> None:
    """Warns where a symbol of an item, or of a pattern, is none that this argument could have."""
    said = unknown_symbol(context, prepared, key, values)
    if said:
        issue(said[0].upper() + said[1:])


def unknown_symbol(context: ProgramContext, prepared: Prepared, key: str, values: Sequence[Any]) -> str:
    """What is to be said of such a symbol; None among the values stands for a variable."""
    for index, value in enumerate(values):
        if value is None:
            continue
        known = prepared.encoding.domains[context.domains.of[key, index]]
        if known.kind == "int":
            if isinstance(value, str) and known.high >= known.low:
                number = f"; write it without quotes: {value}" if value.lstrip("-").isdigit() else ""
                return _said(key, values, value, f"argument {index + 1} of `{cut(key)}` has integers{number}")
            continue
        atoms = prepared.terms.atoms if known.kind == "term" else known.atoms
        there = prepared.terms.number if known.kind == "term" else known.number
        if not atoms:
            continue
        for symbol in _symbols(value):
            if atom_key(symbol) in there or (isinstance(symbol, str) and symbol in context.symbols):
                continue
            if isinstance(symbol, str):
                return _said(key, values, symbol, _nearest(symbol, atoms))
            if not isinstance(symbol, str) and str(symbol) in there:
                return _said(key, values, symbol, f"the symbol '{symbol}' is there, in quotes")
    return ""


def _said(key: str, values: Sequence[Any], symbol: Any, hint: str) -> str:
    kind = "symbol" if isinstance(symbol, str) else "number"
    given = ["_" if v is None else term_text(v, 40) for v in values]
    item = f"{symbol_text(key.rpartition('/')[0])}({','.join(given)})"
    said = f"no fact and no item has the {kind} {term_text(symbol, 60)}, which {cut(item)} asks for"
    return f"{said}; {hint}" if hint else said


def _symbols(value: Any) -> Iterator[Any]:
    """The atoms of a term."""
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, DataTerm):
            stack.extend(part.arguments)
        elif isinstance(part, tuple):
            stack.extend(part)
        elif part != "nil":
            yield part


def _nearest(symbol: str, atoms: Sequence[Any]) -> str:
    if symbol.lstrip("-").isdigit() and int(symbol) in atoms:
        return f"the integer {symbol} is there, without quotes"
    if len(atoms) > MOST_COMPARED:
        return ""
    texts = [a for a in atoms if isinstance(a, str)]
    same = [a for a in texts if a.lower() == symbol.lower()]
    close = same or get_close_matches(symbol, texts, 1)
    return f"did you mean {term_text(close[0])}?" if close else ""
