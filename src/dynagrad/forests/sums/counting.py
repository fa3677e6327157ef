"""How many derivations an item has: all of them, or those that repeat no item on their own path."""

from __future__ import annotations

import math

from ...errors import NotConverged
from ...runtime.library import Stop
from ..native import Walk
from ..packed import Packed
from ..time_limit import look

MOST_SIMPLE = 1_000_000
"""How many steps the counting of simple derivations takes at most."""


def count(forest: Packed, stop: Stop | None = None) -> int | float:
    """How many derivations the root has: a whole number, or inf."""
    walk = forest.walk()
    found = walk.count(stop)
    return _count_exactly(forest, walk, stop) if found is None else found


def _count_exactly(forest: Packed, walk: Walk, stop: Stop | None) -> int:
    nodes, _, _, _ = walk.order(stop)  # no component is cyclic: native code said so
    known: dict[int, int] = {}
    a = forest.arrays
    for v in nodes.tolist():
        look(stop)
        known[v] = sum(
            math.prod(known[u] for u in forest.antecedents(i) if u >= 0) for i in range(int(a.begin[v]), int(a.end[v]))
        )
    return known[0]


def count_simple(forest: Packed, stop: Stop | None = None) -> int:
    """How many derivations repeat no item on their own path. Raises NotConverged where that takes too long."""
    a = forest.arrays
    steps = 0
    nodes, _, cyclic, component = forest.walk().order(stop)
    known: dict[int, int] = {}  # of items that reach no cycle
    around: set[int] = set()  # those that do
    for v in nodes.tolist():
        look(stop)
        below = [u for i in range(int(a.begin[v]), int(a.end[v])) for u in forest.antecedents(i) if u >= 0]
        if cyclic[component[v]] or any(u in around for u in below):
            around.add(v)

    def number(v: int, path: frozenset[int]) -> int:
        nonlocal steps
        look(stop)
        steps += 1
        if steps > MOST_SIMPLE:
            raise NotConverged(
                f"counting the derivations that repeat no item takes more than {MOST_SIMPLE:,} steps; count them all"
            )
        if v not in around and v in known:
            return known[v]
        within = path | {v}
        total = 0
        for i in range(int(a.begin[v]), int(a.end[v])):
            product = 1
            for u in forest.antecedents(i):
                if u >= 0:
                    product *= 0 if u in within else number(u, within)
                if not product:
                    break
            total += product
        if v not in around:
            known[v] = total
        return total

    for v in nodes.tolist():  # antecedents first, so that nothing nests deeply outside of cycles
        if v not in around:
            number(v, frozenset())
    try:
        return number(0, frozenset())
    except RecursionError:
        raise NotConverged("the derivations are too deep to count those that repeat no item; count them all") from None
