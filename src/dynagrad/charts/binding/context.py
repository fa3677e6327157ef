"""The program context: rules, domains, scale and options, as runs need them; and facts read and checked against it.

Facts are checked against the predicates here, and their values against the semiring. Forms of tables are for
`facts/readers.py`, the encoding of facts for `encoding.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...errors import Error, FactError, Place, RowPlaces, at, cut, raised, shown, warn
from ...facts.readers import read
from ...facts.relation import Relation, parse_key
from ...forks import cached
from ...plan.analyses.demand import Fixed, fixed_arguments, omitted
from ...plan.analyses.ranks import rank_sources
from ...plan.options import Options
from ...plan.order import largest_offset
from ...rules.normal import Rules
from ...rules.semirings import SEMIRINGS
from ...rules.suggestions import nearest, resembles
from ...rules.syntax import Compound, Negation, Symbol
from ...rules.types import Domains
from ...semirings import Scale
from .encoding import syntax_value


@dataclass(frozen=True)
class ProgramContext:
    """A checked program as its bindings need it: rules, domains, scale, options, functions of external predicates."""

    rules: Rules
    domains: Domains
    scale: Scale
    options: Options
    externals: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    entry: str = ""  # of these rules in the cache of rules; empty where they are not in it

    @cached
    def rank_sources(self) -> dict[int, list[tuple[str, int, int]]]:
        """By domain, the pairs of fact columns from which an order of its atoms may be found."""
        return rank_sources(self.rules, self.domains)

    @cached
    def symbols(self) -> frozenset[str]:
        """The symbols in the program's text."""
        terms: list[Any] = []
        for rule in self.rules.rules:
            items = [rule.head, *(a.item for a in rule.antecedents)]
            items += [c.item for c in rule.conditions if isinstance(c, Negation)]
            terms += [t for item in items for t in item.arguments]
            terms += [t for c in rule.conditions if not isinstance(c, Negation) for t in (c.left, c.right)]
        terms += [t for axiom in self.rules.axioms for t in axiom.item.arguments]
        found: set[str] = set()
        while terms:
            term = terms.pop()
            if isinstance(term, Compound):
                terms += term.arguments
            elif isinstance(term, Symbol):
                found.add(term.name)
        return frozenset(found)

    @cached
    def omitted(self) -> Mapping[str, str]:
        """The predicates that the outputs do not need, with the reason."""
        return omitted(self.rules)

    @cached
    def fixed(self) -> Fixed:
        """The arguments in which the outputs need one constant alone, see `plan/analyses/demand.py`."""
        return fixed_arguments(self.rules, [r for r in self.rules.rules if r.head.key not in self.omitted])

    @cached
    def most_gap(self) -> int:
        """Least differences between arguments of a run's facts are taken for this one where they are larger."""
        return max(4, 1 + largest_offset(self.rules))

    @cached
    def unjoined(self) -> tuple[str, ...]:
        """The predicates of which a fact may not have two rows, or none that differ: see `copies.py`."""
        predicates = self.rules.predicates.items()
        return tuple(k for k, p in predicates if p.unjoined or (p.aggregator == "=" and not p.defined))

    @cached
    def can_iterate(self) -> bool:
        """Whether a cycle that cannot be solved may be iterated: not where the program declares a solver, or has a
        recursive product."""
        if self.rules.solve in ("linear", "newton"):
            return False
        component = {key: c for c in self.rules.components for key in c}
        return not any(
            rule.aggregator == "*=" and any(a.item.key in component[rule.head.key] for a in rule.antecedents)
            for rule in self.rules.rules
        )


# -- facts -------------------------------------------------------------------------------------------------------------


def read_facts(
    context: ProgramContext, facts: Mapping[str, Any], probabilities: bool, *, bare: bool = False, strict: bool = False
) -> dict[str, Relation]:
    """Facts in any form as relations. Raises FactError for a predicate that takes none.

    A predicate that the program does not use is ignored with a warning, so that one set of tables serves several
    programs; with `strict` it is an error. Rows without values get the value one, except with `bare`.
    """
    known = context.rules.predicates
    relations: dict[str, Relation] = {}
    if not isinstance(facts, Mapping):
        raise FactError(f'{shown(facts)} is not a dict of facts; give predicates and rows: {{"rewrite/3": rows}}')
    try:
        items = list(facts.items())
    except Exception as error:  # a mapping of another library may raise anything
        raise FactError(f"the facts cannot be listed: {raised(error)}") from error
    for key, rows in items:
        if not isinstance(key, str):
            raise FactError(f"{shown(key)} names no predicate; write name/arity, such as 'rewrite/3'")
        if key not in known:
            if not strict:
                _check_misspelt_rule(context, key, {k for k, _ in items})
            unused(key, known, strict=strict)
            continue
        if known[key].external:
            raise FactError(f"`{key}` is external: a function computes its values, so facts cannot be given for it")
        shape, finite, _ = context.scale.value_form(probabilities)
        declared = known[key].types or ()
        floats = {i for i, union in enumerate(declared) if any(t.name == "float" for t in union)}
        relation = read(key, rows, value_shape=shape, finite=finite, float_columns=floats)
        if not bare and not probabilities and relation.values is None and _counts_from_nought(context):
            relation = replace(relation, values=np.ones(relation.count), value_shape=shape)
        if probabilities:
            relation = from_probabilities(context.scale, relation)
        relations[key] = relation
    return relations


def _check_misspelt_rule(context: ProgramContext, key: str, given: Collection[Any]) -> None:
    """Raises where a rule reads a predicate without facts whose name is like that of facts which no rule reads."""
    rules = context.rules
    asserted = {axiom.item.key for axiom in rules.axioms}
    lacking = {k: p for k, p in rules.predicates.items() if p.input and k not in given and k not in asserted}
    for other, predicate in lacking.items():
        if not predicate.defined and resembles(key, [other]) and predicate.span is not None:
            here = at(rules.source.text, predicate.span, rules.source.filename)
            raise FactError(
                f"No rule reads `{cut(key)}`, for which facts are given, and none are given for `{cut(other)}`, which "
                f"a rule reads. One of them is probably misspelt.{here}"
            )


def unused(key: str, known: Collection[str], *, strict: bool = False) -> None:
    """Warns of facts that the program does not use; raises where their key looks like a typo, or if `strict`."""
    parse_key(key)
    if strict or resembles(key, known):
        raise FactError(f"The program has no predicate `{cut(key)}`.{nearest(key, sorted(known))}")
    warn(f"The program does not use `{cut(key)}`, so the facts given for it are ignored.")


def _counts_from_nought(context: ProgramContext) -> bool:
    """Whether a program of plain arithmetic runs in a semiring whose one is not the number one."""
    return context.rules.semiring is None and context.scale.shape == "float" and context.scale.one != 1.0


def from_probabilities(scale: Scale, relation: Relation, places: Place | RowPlaces | None = None) -> Relation:
    """Facts with their values converted from probabilities to the semiring's scale.

    `places` say where the values come from, where that is not where the facts do.
    """
    try:
        scale.check_probabilities()
    except Error as error:
        raise FactError(f"{relation.key}, {error}") from None
    if wrong := scale.not_probable(relation.values):
        logs = wrong.number < 0 and SEMIRINGS[scale.name].logs
        hint = f'; the logs that `{scale.name}` has are given without values="probabilities"' if logs else ""
        raise (places or relation.places).error(f"{wrong}{hint}", wrong.place[0])
    return replace(relation, values=scale.from_probabilities(relation.values), value_shape=scale.shape)


def probabilities_flag(values: str | None, otherwise: bool) -> bool:
    """Whether numbers are given as probabilities; `otherwise` counts where `values` does not say."""
    if values is None:
        return otherwise
    if not isinstance(values, str) or values not in ("weights", "probabilities"):
        raise Error(f'values={shown(values)}: it is "weights", the semiring\'s own numbers, or "probabilities"')
    return values == "probabilities"


def axiom_relations(rules: Rules, scale: Scale) -> dict[str, Relation]:
    """The axioms of the program's text, as facts."""
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for axiom in rules.axioms:
        arguments = tuple(syntax_value(t) for t in axiom.item.arguments)
        value: Any = axiom.value
        if value is None:
            value = scale.one
        elif scale.shape == "boolean":
            value = bool(value)
        elif scale.shape == "expectation":
            value = (float(value), scale.zero[1])
        elif isinstance(scale.shape, tuple):
            value = (float(value),) * scale.width
        rows.setdefault(axiom.item.key, []).append((*arguments, value))
    return {k: read(k, r, value_shape=scale.shape, finite=scale.finite) for k, r in rows.items()}
