"""Masks of the active elements of adjoints on a tape: all but structural zeros, which must stay zero.

`np.where(x > 0, np.log(x), 0)` must have derivative zero where log is not selected, and so must `np.log(x)[1]` for the
other elements, even where the derivative of log is infinite, although zero times infinity is NaN. So the sweep keeps,
for each cell that is reached through selections only, a mask of the selected elements; the others propagate nothing,
whatever the partial derivatives. An adjoint that is zero by value is different: times infinity it is NaN, and the verb
reports that the chain rule has no answer.

Elementwise selections and operations that pick or move elements propagate masks; an operation that mixes all elements,
such as a matrix product, makes all of them active. (In graphs the adjoint itself tells; see
`autodiff/structural_zeros.py`.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..ir.operation import apply
from ..ir.ops import scalars as ops
from ..ir.ops.arrays import sum_to
from .kinds import real_part, shape_of
from .splitting import Part
from .tape import CHOOSING, Recorded, Scalars, ShapeOnly, leaves_out, moves, no_derivative

Whole = Callable[[Any, Any], Iterable[tuple[int, Any]]]
MaskedIncrements = Iterable[
    tuple[int, Any, Any]
]  # number of a cell, its increment, uses of each element (None: all are used)


class Masks:
    """The masks of cells during one sweep; a cell without a mask is active as a whole."""

    __slots__ = ("active", "of", "own")

    def __init__(self) -> None:
        self.of: dict[int, Any] = {}  # how often each element was used so far
        self.own: set[int] = set()  # cells whose counts are an array of their own, updated in place
        self.active: set[int] = set()  # cells that are reached without a selection: all elements are active

    def mark(self, number: int, used: Any) -> None:
        """Records an increment of a cell, with uses of its elements; None for all."""
        if used is None:
            self.active.add(number)
        elif number not in self.active:
            self.of[number] = self.of[number] + used if number in self.of else used

    def pull(self, number: int, entry: Any, delta: Any, whole: Whole) -> Iterable[tuple[int, Any]]:
        """The increments of an entry, masked; `whole` computes them without masks."""
        mask = self.of.pop(number, None)
        if mask is not None:
            if number in self.active:
                mask = None
            elif not np.shape(mask):
                if not mask:
                    return ()
                mask = None  # a single number
            elif np.all(mask):
                mask = None
        if mask is None:
            if type(entry) is tuple:
                self.active.update(entry[::2])
                return whole(entry, delta)
            if type(entry) is Recorded and leaves_out(entry.operation) and entry.operation.accumulate is not None:
                return self._picked(entry, delta, whole)
        living = []
        for parent, increment, used in self._increments(entry, delta, None if mask is None else mask > 0, whole):
            self.mark(parent, used)
            living.append((parent, increment))
        return living

    def _picked(self, entry: Recorded, delta: Any, whole: Whole) -> Iterable[tuple[int, Any]]:
        """The same for operations that read few of many elements, in time that does not grow with those left out."""
        (number,) = entry.numbers
        if not shape_of(entry.arguments[0]):  # a single number, indexed as an array of no dimension
            self.mark(number, None)
        elif number not in self.active:
            if number not in self.own:
                self.of[number] = np.zeros(shape_of(entry.arguments[0])) + self.of.get(number, 0.0)
                self.own.add(number)
            assert entry.operation.accumulate is not None
            entry.operation.accumulate(self.of[number], 1.0)
        return whole(entry, delta)

    def _increments(self, entry: Any, delta: Any, mask: Any, whole: Whole) -> MaskedIncrements:
        if type(entry) is Part:
            return self._of_part(entry, delta, mask, whole)
        if type(entry) is Recorded:
            operation = entry.operation
            if operation.partial is not None and mask is not None:
                return [(parent, part, None) for parent, part in entry.partial(mask, delta)]
            if operation.elementwise and (mask is not None or operation in CHOOSING):
                return self._chosen(entry, delta, mask)
            if moves(operation) and (mask is not None or leaves_out(operation)):
                return self._moved(entry, delta, mask, whole)
        if mask is not None and type(entry) in (tuple, Scalars):  # of cells of the same shape
            used = mask.astype(np.float64)
            return [(parent, apply(ops.where, mask, part, 0.0), used) for parent, part in whole(entry, delta)]
        return [(parent, part, None) for parent, part in whole(entry, delta)]

    def _of_part(self, entry: Part, delta: Any, mask: Any, whole: Whole) -> MaskedIncrements:
        """For a part of a split cell: all parts have one mask, since selections depend on values only."""
        kept: list[tuple[int, Any]] = []

        def pull(d: Any) -> Iterable[tuple[int, Any]]:
            found = list(self._increments(entry.pull, d, mask, whole))
            kept.extend((cell, used) for parent, _, used in found for cell in entry.known[parent] if cell is not None)
            return [(parent, increment) for parent, increment, _ in found]

        increments = list(entry.increments(delta, pull))
        uses: dict[int, Any] = {}
        for cell, used in kept:
            uses[cell] = None if used is None or (cell in uses and uses[cell] is None) else used
        return [(cell, increment, uses[cell]) for cell, increment in increments]

    def _moved(self, entry: Recorded, delta: Any, mask: Any, whole: Whole) -> MaskedIncrements:
        """For an operation that moves elements: its adjoint moves the mask as it moves the increments."""
        y, adjoint = entry.result, entry.operation.adjoint
        assert adjoint is not None
        arguments = [x if type(x) is ShapeOnly else real_part(x) for x in entry.arguments]
        used = _ones(shape_of(y)) if mask is None else mask.astype(np.float64)
        uses = adjoint(used, y if type(y) is ShapeOnly else real_part(y), *arguments)
        if len(entry.places) == 1:
            return [(parent, part, uses[entry.places[0]]) for parent, part in whole(entry, delta)]
        parts = adjoint(delta, y, *entry.arguments)
        return [(number, parts[i], uses[i]) for number, i in zip(entry.numbers, entry.places, strict=True)]

    def _chosen(self, entry: Recorded, delta: Any, mask: Any) -> MaskedIncrements:
        operation, y, arguments = entry.operation, entry.result, entry.arguments
        rules = operation.tangent
        if rules is None:
            raise no_derivative(operation, entry.places[0])
        found = []
        for number, i in zip(entry.numbers, entry.places, strict=True):
            rule = rules[i]
            if rule is None:
                continue
            chosen = mask
            if operation in CHOOSING:
                plain = [x if type(x) is ShapeOnly else real_part(x) for x in arguments]
                result = y if type(y) is ShapeOnly else real_part(y)
                own = np.not_equal(rule(_ones(shape_of(y)), result, *plain), 0)
                chosen = own if mask is None else own & mask
            part = apply(ops.where, chosen, rule(delta, y, *arguments), 0.0)
            shape = shape_of(arguments[i])
            used = np.broadcast_to(chosen, shape_of(y)).astype(np.float64)
            if shape_of(part) != shape:
                part = sum_to(shape)(part)
                used = sum_to(shape)(used)
            found.append((number, part, used))
        return found


def _ones(shape: tuple[int, ...]) -> Any:
    return np.ones(shape) if shape else 1.0
