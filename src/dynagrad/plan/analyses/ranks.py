"""The columns of facts that may order a domain: arcs of a graph without cycles rank its places topologically.

The ranks themselves come from the facts of a run (`charts/binding/summary.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...rules.normal import NormalRule, Rules
from ...rules.syntax import Item, Variable
from ...rules.types import Domains


def rank_sources(rules: Rules, domains: Domains) -> dict[int, list[tuple[str, int, int]]]:
    """By domain, the fact columns that may order its members: in (predicate, i, j), column i comes first.

    These are the pairs of columns through which recursive rules pass from an argument of an antecedent to the head's.
    """
    where = {key: n for n, component in enumerate(rules.components) for key in component}

    def recursive(rule: NormalRule) -> list[Item]:
        return [a.item for a in rule.antecedents if where.get(a.item.key, -1) == where[rule.head.key]]

    found: dict[int, dict[tuple[str, int, int], None]] = {}
    for rule in sorted(rules.rules, key=lambda rule: not recursive(rule)):
        heads = {t.name: i for i, t in enumerate(rule.head.arguments) if isinstance(t, Variable)}
        inside = recursive(rule)
        inner = {t.name for item in inside for t in item.arguments if isinstance(t, Variable)}
        for key, (i, a), (j, b) in _columns(rules, rule):
            if inside:
                passes = a in inner and b in heads and not (a in heads and b in inner)  # and not both ways
            else:  # positions of lattices: facts that non-recursive rules turn into items of a recursive component
                passes = i < j and a in heads and b in heads and heads[a] < heads[b]
            if passes and domains.of[key, i] == domains.of[key, j]:
                found.setdefault(domains.of[key, i], {})[key, i, j] = None
    return {number: list(sources) for number, sources in found.items()}


def _columns(rules: Rules, rule: NormalRule) -> Iterator[tuple[str, tuple[int, str], tuple[int, str]]]:
    """The pairs of different variables among the arguments of each input of a rule: the input, and both by position."""
    for item in (antecedent.item for antecedent in rule.antecedents):
        if not rules.predicates[item.key].defined and not rules.predicates[item.key].external:
            names = [(i, t.name) for i, t in enumerate(item.arguments) if isinstance(t, Variable)]
            yield from ((item.key, x, y) for x in names for y in names if x[1] != y[1])
