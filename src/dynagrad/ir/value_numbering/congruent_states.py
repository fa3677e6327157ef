"""States of a loop that are equal in every round: one of them is enough.

States that begin as the same value are equal as long as each round makes the same of them, taking them for equal. So
it is with tangents: the second derivative by x carries the derivative by x twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..node import Node, substitute


def congruent(states: Sequence[Node], after: Sequence[Node], start: Sequence[Node], apart: int = 0) -> dict[int, int]:
    """For each state that equals an earlier one, which: by place. The first `apart` states are left alone.

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
            return {i: j for i, j in sorted(same.items()) if i >= apart}
        groups = split
