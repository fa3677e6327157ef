"""The reverse sweep over a tape: adjoints of cells, from the last to the first, by `autodiff/accumulation.py`.

A cell has a larger number than its parents, so descending numbers are a reverse topological order: each entry is
visited once, without recursion. `tape.py` says what entries mean.
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


class SparseAdjoint:
    """The adjoint of an array whose increments touch few elements each, such as those of `x[0] + x[1]`.

    The first increment is kept as it is; the second makes an array, and further ones are added to it in place, so that
    n increments do not take n arrays. Plain numbers only.
    """

    __slots__ = ("delta", "recorded", "total")

    def __init__(self, recorded: Recorded, delta: Any, total: Any = None) -> None:
        self.recorded, self.delta, self.total = recorded, delta, total

    def __dynagrad_plus__(self, other: Any) -> Any:
        if type(other) is SparseAdjoint:
            other.add_to(self.dense())
        elif type(other) is np.ndarray and other.dtype == np.float64:
            total = self.dense()
            np.add(total, other, out=total)
        else:
            return apply(ops.add, self.dense(), other)
        return self

    def plus_array(self, other: Any) -> Any:
        """The sum with an earlier adjoint, which may be shared and is not written to."""
        if type(other) is not np.ndarray or other.dtype != np.float64:
            return apply(ops.add, other, self.dense())
        total = other.copy()
        self.add_to(total)
        return SparseAdjoint(self.recorded, None, total)

    def add_to(self, total: Any) -> None:
        """Adds it to an array, in place."""
        if self.total is not None:
            np.add(total, self.total, out=total)
        else:
            assert self.recorded.operation.accumulate is not None
            self.recorded.operation.accumulate(total, self.delta)

    def dense(self) -> Any:
        """The adjoint as an array."""
        if self.total is None:
            total = np.zeros(self.recorded.arguments[0].shape)
            self.add_to(total)
            self.total = total
        return self.total


def complete(adjoint: Any) -> Any:
    """An adjoint as a number or an array."""
    return adjoint.dense() if type(adjoint) is SparseAdjoint else adjoint


def plus(a: Any, b: Any) -> Any:
    """The sum of two increments."""
    if type(a) is type(b) and type(a) in _PLAIN:
        return a + b if type(a) is float else apply(ops.add, a, b)
    if type(b) is SparseAdjoint and type(a) is not SparseAdjoint:
        return b.plus_array(a)
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
    """The adjoints of the cells in `keep`, from those of the cells in `seed`.

    Only entries with a number larger than `above` are visited; with `free` they are dropped on the way. `masks` has the
    active elements of the seed, if not all are.
    """
    entries = tape.entries
    order = [number for number in entries if number > above] if above else list(entries)
    order.sort()  # sorted already, unless several threads made cells
    take = entries.pop if free else entries.get

    def generate(number: int, delta: Any) -> Iterable[tuple[int, Any]]:
        entry = take(number, None)
        if type(entry) is tuple:  # inlined for floats
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
        elif type(entry) is Recorded and entry.operation.accumulate is None and type(delta) is not SparseAdjoint:
            return entry(delta)
        return _increments(entry, delta)

    if masks is None and tape.chooses:
        masks = Masks()
        masks.active.update(seed)
    if masks is not None:
        choices = masks

        def generate(number: int, delta: Any) -> Iterable[tuple[int, Any]]:
            return choices.pull(number, take(number, None), complete(delta), _increments)

    with np.errstate(all="ignore"):  # the verb reports NaN, and says more than a warning
        found = graph_sweep(order, seed, plus, generate, keep)
    for number, adjoint in found.items():
        if type(adjoint) is SparseAdjoint:
            found[number] = adjoint.dense()
    return found


def _increments(entry: Any, delta: Any) -> Iterable[tuple[int, Any]]:
    """The increments of an entry."""
    if type(delta) is SparseAdjoint:
        delta = delta.dense()
    if type(entry) is Recorded:
        if entry.operation.accumulate is not None and type(delta) in _PLAIN and type(entry.arguments[0]) is ShapeOnly:
            return ((entry.numbers[0], SparseAdjoint(entry, delta)),)
        return entry(delta)
    if type(entry) is tuple:
        return [(entry[i], times(delta, entry[i + 1])) for i in range(0, len(entry), 2)]
    if entry is None:
        return ()
    return [pair for pair in entry(delta) if pair[1] is not None]


_PLAIN = frozenset([float, np.ndarray])
