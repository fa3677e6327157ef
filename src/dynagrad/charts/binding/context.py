"""What a program is to its runs: its rules, domains, scale and options; and facts as such a program takes them.

Given facts are checked against the predicates here, and their numbers against the semiring. What form a table has is
the business of `facts/readers.py`, what facts become inside of `binding`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...errors import Error, FactError, cut, raised, shown, warn
from ...facts.readers import read
from ...facts.relation import Relation, parse_key
from ...forks import kept
from ...plan.options import Options
from ...plan.order import rank_sources
from ...rules.checks.report import nearest, resembles
from ...rules.normal import Rules
from ...rules.types import Domains
from ...semirings import Scale
from .encoding import syntax_value


@dataclass(frozen=True)
class ProgramContext:
    """The parts of a program that its bindings need."""

    rules: Rules
    domains: Domains
    scale: Scale
    options: Options
    externals: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    @kept
    def rank_sources(self) -> dict[int, list[tuple[str, int, int]]]:
        """By domain, the columns of facts whose pairs could order its atoms."""
        return rank_sources(self.rules, self.domains)

    @kept
    def can_iterate(self) -> bool:
        """Whether a cycle that cannot be solved may be iterated: the program does not rule it out."""
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

    One that the program does not use is passed over with a warning, so that one table serves several programs, unless
    this is `strict`. Rows without values have the value one, unless they are wanted `bare`.
    """
    known = context.rules.predicates
    relations: dict[str, Relation] = {}
    if not isinstance(facts, Mapping):
        raise FactError(f'{shown(facts)} is no dict of facts; give one from predicates to rows: {{"rewrite/3": rows}}')
    try:
        items = list(facts.items())
    except Exception as error:  # of a mapping that somebody else made
        raise FactError(f"the facts cannot be listed: {raised(error)}") from error
    for key, rows in items:
        if not isinstance(key, str):
            raise FactError(f"{shown(key)} names no predicate; write name/arity, such as 'rewrite/3'")
        if key not in known:
            unused(key, known, strict=strict)
            continue
        if known[key].external:
            raise FactError(f"`{key}` is external: a function computes its values, so facts cannot be given for it")
        shape, finite, _ = context.scale.given(probabilities)
        declared = known[key].types or ()
        floats = {i for i, union in enumerate(declared) if any(t.name == "float" for t in union)}
        relation = read(key, rows, value_shape=shape, finite=finite, float_columns=floats)
        if not bare and not probabilities and relation.values is None and _counts_from_nought(context):
            relation = replace(relation, values=np.ones(relation.count), value_shape=shape)
        if probabilities:
            relation = from_probabilities(context.scale, relation)
        relations[key] = relation
    return relations


def unused(key: str, known: Collection[str], *, strict: bool = False) -> None:
    """Warns of facts that the program does not use. Raises where they are probably meant for a predicate that it has.

    Where this is `strict`, it raises in any case.
    """
    parse_key(key)
    if strict or resembles(key, known):
        raise FactError(f"The program has no predicate `{cut(key)}`.{nearest(key, sorted(known))}")
    warn(f"The program does not use `{cut(key)}`, so the facts given for it are passed over.")


def _counts_from_nought(context: ProgramContext) -> bool:
    """Whether the one of the semiring is not the number one, of a program that has no semiring but runs as one."""
    return context.rules.semiring is None and context.scale.shape == "float" and context.scale.one != 1.0


def from_probabilities(scale: Scale, relation: Relation) -> Relation:
    """Facts whose values are probabilities, in the semiring's own scale."""
    try:
        values = scale.from_probabilities(relation.values)
    except Error as error:
        raise FactError(f"{relation.key}, {error}") from None
    return replace(relation, values=values, value_shape=scale.shape)


def probabilities_flag(values: str) -> bool:
    """Whether numbers are given as probabilities."""
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
