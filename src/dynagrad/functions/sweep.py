"""The reverse pass over a tape: `graph`'s sweep, whose order is that of the cells' numbers, backward.

A cell's number is larger than those of all cells that it was made of, so one look at each entry is enough, without
recursion and without searching. What an entry means is in `numbers.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from ..graph import operations as ops
from ..graph import sweep as graph_sweep
from ..graph.operation import apply
from .masks import Masks
from .numbers import Recorded, Tape, times


def plus(a: Any, b: Any) -> Any:
    """The sum of two increments."""
    if type(a) is float and type(b) is float:
        return a + b
    return a.plus(b) if hasattr(type(a), "plus") else apply(ops.add, a, b)


def sweep(
    tape: Tape, seed: dict[int, Any], keep: Collection[int], *, above: int = 0, free: bool = False
) -> dict[int, Any]:
    """The adjoints of the cells of `keep`, given those of some cells.

    Only entries with a number over `above` are looked at; with `free` they are dropped as the sweep passes.
    """
    entries = tape.entries
    order = [number for number in entries if number > above] if above else list(entries)
    order.sort()  # sorted already, unless threads made cells side by side
    take = entries.pop if free else entries.get

    masks = Masks()

    def generate(number: int, delta: Any) -> Iterable[tuple[int, Any]]:
        entry = take(number, None)
        if type(entry) is Recorded:
            return entry(delta)
        if type(entry) is tuple and type(delta) is float:  # of loops over floats, without another call
            if len(entry) == 2:
                a, p = entry
                if type(p) is float:
                    return ((a, delta * p),)
            else:
                a, p, b, q = entry
                if type(p) is type(q) is float:
                    return ((a, delta * p), (b, delta * q))
        return _spread(entry, delta)

    def chosen(number: int, delta: Any) -> Iterable[tuple[int, Any]]:
        return masks.pull(number, take(number, None), delta, _spread)

    with np.errstate(all="ignore"):  # what is not a number is found by the verb, which says more than a warning
        return graph_sweep(order, seed, plus, chosen if tape.chooses else generate, keep)


def _spread(entry: Any, delta: Any) -> Iterable[tuple[int, Any]]:
    """The increments of an entry."""
    if type(entry) is tuple:
        return [(entry[i], times(delta, entry[i + 1])) for i in range(0, len(entry), 2)]
    if entry is None:
        return ()
    if type(entry) is Recorded:
        return entry(delta)
    return [pair for pair in entry(delta) if pair[1] is not None]
