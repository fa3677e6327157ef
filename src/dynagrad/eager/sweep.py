"""The reverse pass over a tape: the sweep of `autodiff/accumulation.py`, from the last cell to the first.

A cell's number is larger than those of all cells that it was made of, so one look at each entry is enough, without
recursion and without searching. What an entry means is in `tape.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from ..autodiff.accumulation import sweep as graph_sweep
from ..ir.operation import apply
from ..ir.ops import scalars as ops
from .masks import Masks
from .numbers import Tape
from .tape import Recorded, ShapeOnly, times


class Partial:
    """An adjoint of an array whose increments touch few of its elements each, such as those of `x[0] + x[1]`.

    The second increment makes an array, and all that follow are added to it in place, so that n of them do not take n
    arrays (002: the first increment initialises, and what is complete is finalised). Plain numbers only.
    """

    __slots__ = ("delta", "recorded", "total")

    def __init__(self, recorded: Recorded, delta: Any, total: Any = None) -> None:
        self.recorded, self.delta, self.total = recorded, delta, total

    def __dynagrad_plus__(self, other: Any) -> Any:
        if type(other) is Partial:
            other.add_to(self.whole())
        elif type(other) is np.ndarray and other.dtype == np.float64:
            total = self.whole()
            np.add(total, other, out=total)
        else:
            return apply(ops.add, self.whole(), other)
        return self

    def onto(self, other: Any) -> Any:
        """The sum with an adjoint that came first, and that somebody else may have."""
        if type(other) is not np.ndarray or other.dtype != np.float64:
            return apply(ops.add, other, self.whole())
        total = other.copy()
        self.add_to(total)
        return Partial(self.recorded, None, total)

    def add_to(self, total: Any) -> None:
        if self.total is not None:
            np.add(total, self.total, out=total)
        else:
            assert self.recorded.operation.accumulate is not None
            self.recorded.operation.accumulate(total, self.delta)

    def whole(self) -> Any:
        if self.total is None:
            total = np.zeros(self.recorded.arguments[0].shape)
            self.add_to(total)
            self.total = total
        return self.total


def whole(adjoint: Any) -> Any:
    """An adjoint that is complete."""
    return adjoint.whole() if type(adjoint) is Partial else adjoint


def plus(a: Any, b: Any) -> Any:
    """The sum of two increments."""
    if type(a) is type(b) and type(a) in _PLAIN:
        return a + b if type(a) is float else apply(ops.add, a, b)
    if type(b) is Partial and type(a) is not Partial:
        return b.onto(a)
    return a.__dynagrad_plus__(b) if hasattr(type(a), "__dynagrad_plus__") else apply(ops.add, a, b)


def sweep(
    tape: Tape,
    seed: dict[int, Any],
    keep: Collection[int],
    *,
    above: int = 0,
    free: bool = False,
    masks: Masks | None = None,
) -> dict[int, Any]:
    """The adjoints of the cells of `keep`, given those of some cells.

    Only entries with a number over `above` are looked at; with `free` they are dropped as the sweep passes. `masks`
    says which elements of the seed count, if not all.
    """
    entries = tape.entries
    order = [number for number in entries if number > above] if above else list(entries)
    order.sort()  # sorted already, unless threads made cells side by side
    take = entries.pop if free else entries.get

    def generate(number: int, delta: Any) -> Iterable[tuple[int, Any]]:
        entry = take(number, None)
        if type(entry) is tuple:  # without another call where there are floats, or nothing to do
            if type(delta) is float:
                if len(entry) == 2:
                    a, p = entry
                    if type(p) is float:
                        return ((a, delta * p),)
                else:
                    a, p, b, q = entry
                    if type(p) is type(q) is float:
                        return ((a, delta * p), (b, delta * q))
        elif entry is None:
            return ()
        elif type(entry) is Recorded and entry.operation.accumulate is None and type(delta) is not Partial:
            return entry(delta)
        return _spread(entry, delta)

    if masks is None and tape.chooses:
        masks = Masks()
        masks.alive.update(seed)
    if masks is not None:
        choices = masks

        def generate(number: int, delta: Any) -> Iterable[tuple[int, Any]]:
            return choices.pull(number, take(number, None), whole(delta), _spread)

    with np.errstate(all="ignore"):  # what is not a number is found by the verb, which says more than a warning
        found = graph_sweep(order, seed, plus, generate, keep)
    for number, adjoint in found.items():
        if type(adjoint) is Partial:
            found[number] = adjoint.whole()
    return found


def _spread(entry: Any, delta: Any) -> Iterable[tuple[int, Any]]:
    """The increments of an entry."""
    if type(delta) is Partial:
        delta = delta.whole()
    if type(entry) is Recorded:
        if entry.operation.accumulate is not None and type(delta) in _PLAIN and type(entry.arguments[0]) is ShapeOnly:
            return ((entry.numbers[0], Partial(entry, delta)),)
        return entry(delta)
    if type(entry) is tuple:
        return [(entry[i], times(delta, entry[i + 1])) for i in range(0, len(entry), 2)]
    if entry is None:
        return ()
    return [pair for pair in entry(delta) if pair[1] is not None]


_PLAIN = frozenset([float, np.ndarray])
