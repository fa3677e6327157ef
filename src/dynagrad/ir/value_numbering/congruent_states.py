"""Congruent loop states: finds states that are equal in every round, by partition refinement.

States with the same initial value are assumed equal, and groups are split until each round maps equal states to equal
ones: the greatest congruence (Alpern, Wegman and Zadeck 1988, "Detecting equality of variables in programs"). Nested
derivatives make such states: the second derivative by x carries the derivative by x twice. Nothing is replaced here:
`ir/builders.py` does that.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..node import Node, substitute


def congruent(states: Sequence[Node], after: Sequence[Node], start: Sequence[Node], keep: int = 0) -> dict[int, int]:
    """For each state that equals an earlier one, that one, both by position. The first `keep` states are not replaced.

    >>> from dynagrad.ir.node import fresh
    >>> from dynagrad.ir.types import real
    >>> x, a, b, c = (fresh(real) for _ in range(4))
    >>> congruent([a, b, c], [a * 2.0 + b, b * 2.0 + a, c * 2.0 + b], [x, x, x])
    {1: 0, 2: 0}
    >>> congruent([a, b, c], [a * 2.0 + b, b * 2.0 + a, c * 3.0 + b], [x, x, x])
    {1: 0}
    """
    groups: dict[object, list[int]] = {}
    for i, (state, begin) in enumerate(zip(states, start, strict=True)):
        groups.setdefault((id(begin), state.type), []).append(i)
    while True:
        same = {i: group[0] for group in groups.values() for i in group[1:]}
        if not same:
            return {}
        places = sorted({*same, *same.values()})
        found = substitute([after[i] for i in places], {states[i]: states[j] for i, j in same.items()})
        outcome = {i: id(node) for i, node in zip(places, found, strict=True)}
        split: dict[object, list[int]] = {}
        for key, group in groups.items():
            for i in group:
                split.setdefault((key, outcome.get(i)), []).append(i)
        if len(split) == len(groups):
            return {i: j for i, j in sorted(same.items()) if i >= keep}
        groups = split
