"""Stable arguments: those that every recursive rule of a stage passes on unchanged and does not use otherwise.

In `path(I,K) += path(I,J) * edge(J,K)` the argument I is stable (Aho and Ullman 1979, "Universality of data retrieval
languages"). The ground program is a disjoint union of isomorphic parts, one for each of its values. So one part is
explored and grounded, and all are solved as one system with many right sides
(`runtime/include/dynagrad/solving/columns.hpp`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...rules.normal import NormalRule
from ...rules.syntax import Item, Negation, Variable
from ..joins import term_variables
from ..model import TableKind, TableLayout


def stable_arguments(
    rules: Sequence[NormalRule], keys: Sequence[str], tables: Mapping[str, TableLayout]
) -> Mapping[str, int]:
    """The stable argument of each predicate of a stage, the first if there are several; empty where there is none."""
    recursive = [(r, [a.item for a in r.antecedents if a.item.key in keys]) for r in rules]
    if any(tables[k].kind is not TableKind.DENSE or tables[k].aggregator == "|=" for k in keys):
        return {}
    if any(len(inside) > 1 for _, inside in recursive):
        return {}
    edges = [(r, inside[0]) for r, inside in recursive if inside]
    for first in range(tables[keys[0]].arity):
        found = _passed_on({keys[0]: first}, edges)
        if found is None or len(found) != len(keys):
            continue
        places = {(tables[k].domains[i], tables[k].extents[i]) for k, i in found.items()}
        if len(places) == 1:
            return found
    return {}


def _passed_on(start: Mapping[str, int], edges: Sequence[tuple[NormalRule, Item]]) -> dict[str, int] | None:
    """The arguments to which rules pass a variable from `start`, by predicate; None where they do not agree."""
    found = dict(start)
    grew = True
    while grew:
        grew = False
        for rule, antecedent in edges:
            for here, there in ((rule.head, antecedent), (antecedent, rule.head)):
                if here.key not in found:
                    continue
                place = _same_variable(rule, here, found[here.key], there)
                if place is None or found.get(there.key, place) != place:
                    return None
                grew = grew or there.key not in found
                found[there.key] = place
    return found


def _same_variable(rule: NormalRule, here: Item, place: int, there: Item) -> int | None:
    """The argument of `there` that is the variable at `place` of `here`; None if the rule uses it elsewhere, too."""
    name = here.arguments[place]
    places = [i for i, term in enumerate(there.arguments) if term == name]
    if not isinstance(name, Variable) or len(places) != 1:
        return None
    rest = [t for i, t in enumerate(here.arguments) if i != place]
    rest += [t for i, t in enumerate(there.arguments) if i != places[0]]
    rest += [t for a in rule.antecedents if a.item is not here and a.item is not there for t in a.item.arguments]
    for condition in rule.conditions:
        rest += condition.item.arguments if isinstance(condition, Negation) else (condition.left, condition.right)
    return None if any(name.name in term_variables(t) for t in rest) else places[0]
