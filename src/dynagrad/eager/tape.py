"""Entries of a tape: pullbacks from the adjoint of a cell to increments of the adjoints of its parents.

The entry of an operation on single numbers is a tuple of parents' numbers and partial derivatives. Others are a `Pull`:
a `Recorded` operation with its residuals, or a function. `record` makes entries, `sweep.py` goes through them. The tape
itself is in `numbers.py`. While one grows, `collector.py` keeps the garbage collector from it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..autodiff.buffer_reuse import follow
from ..errors import NotDifferentiable
from ..ir.buffers import SMALLEST
from ..ir.code import family_of
from ..ir.operation import Operation, apply
from ..ir.ops import scalars as ops
from ..ir.ops.arrays import sum_to
from .copies import kept, owned
from .floats import SLOPES
from .kinds import shape_of
from .perturbations import place

Pull = Callable[[Any], Iterable[tuple[int, Any]]]  # from a cell's adjoint to increments: (number of a cell, increment)

CHOOSING: frozenset[Operation] = frozenset({ops.where, ops.minimum, ops.maximum, ops.fminimum, ops.fmaximum})
"""Selections: operations whose result is one of their arguments, element by element; the others are not connected."""


def moves(operation: Operation) -> bool:
    """Whether each element of the result is an element of an argument, or a sum of some."""
    return _elements(operation) != "computed"


def leaves_out(operation: Operation) -> bool:
    """Whether an operation moves elements, and may leave some of them out."""
    return _elements(operation) == "picked"


def _elements(operation: Operation) -> str:
    family = family_of(operation)
    return "computed" if family is None else family.elements


_ndarray = np.ndarray


class ShapeOnly:
    """Stands in for an array whose shape is all that a derivative rule reads, so that the tape need not keep it."""

    __slots__ = ("shape",)

    def __init__(self, x: Any) -> None:
        self.shape = x.shape if type(x) is _ndarray else shape_of(x)


def times(delta: Any, slope: Any) -> Any:
    """The elementwise product of an adjoint and a partial derivative."""
    if type(slope) is float:
        if type(delta) is float:
            return delta * slope
        if slope == 1.0:
            return delta
    elif type(delta) is float:
        if delta == 1.0:
            return slope
    elif type(delta) is type(slope) is _ndarray and delta.size < SMALLEST:
        return delta * slope
    return apply(ops.multiply, delta, slope)


class Scalars:
    """A `Pull` of an elementwise operation, from numbers of parents and partial derivatives, in turn."""

    __slots__ = ("entry", "numbers")

    def __init__(self, entry: tuple[Any, ...]) -> None:
        self.entry, self.numbers = entry, entry[::2]

    def __call__(self, delta: Any) -> Iterable[tuple[int, Any]]:
        entry = self.entry
        return [(entry[i], times(delta, entry[i + 1])) for i in range(0, len(entry), 2)]

    def held(self) -> Sequence[Any]:
        """The residuals: partial derivatives."""
        return self.entry[1::2]


class Recorded:
    """A `Pull` of an operation, with its residuals: its result and arguments; those at `places` are cells."""

    __slots__ = ("arguments", "numbers", "operation", "places", "result")

    def __init__(
        self, operation: Operation, places: list[int], numbers: list[int], result: Any, arguments: list[Any]
    ) -> None:
        self.operation, self.places, self.numbers = operation, places, numbers
        self.result, self.arguments = result, arguments

    def __call__(self, delta: Any) -> Iterable[tuple[int, Any]]:
        operation, y, arguments = self.operation, self.result, self.arguments
        if operation.partial is not None:
            return self.partial(None, delta)
        if operation.adjoint is not None and not operation.elementwise:
            parts = operation.adjoint(delta, y, *arguments)
            if len(self.places) == 1:
                part = parts[self.places[0]]
                return () if part is None else ((self.numbers[0], part),)
            both = [(number, parts[i]) for number, i in zip(self.numbers, self.places, strict=True)]
            return [pair for pair in both if pair[1] is not None]
        found: list[tuple[int, Any]] = []
        rules = operation.tangent
        if rules is None:
            raise no_derivative(operation, self.places[0])
        for number, i in zip(self.numbers, self.places, strict=True):
            rule = rules[i if i < len(rules) else -1]
            if rule is None:
                continue
            if operation.elementwise:
                part, shape = follow(operation, i, delta, y, arguments), shape_of(arguments[i])
                if shape_of(part) != shape:
                    part = sum_to(shape)(part)
                found.append((number, part))
                continue
            part = rule(delta, y, *arguments)
            if part is not None:
                found.append((number, part))
        return found

    def partial(self, counts: Any, delta: Any) -> list[tuple[int, Any]]:
        """The increments where only some elements of the result are active."""
        assert self.operation.partial is not None
        parts = self.operation.partial(self.places, counts, delta, self.result, *self.arguments)
        return [pair for pair in zip(self.numbers, parts, strict=True) if pair[1] is not None]

    def held(self) -> Sequence[Any]:
        """The residuals: the result and the arguments."""
        return (self.result, *self.arguments)


def no_derivative(operation: Operation, index: int) -> NotDifferentiable:
    """The error for an operation without a derivative."""
    return NotDifferentiable(
        f"the operation {operation.name} has no derivative, and one is asked for through its argument {index + 1}; "
        f"give it one with dg.custom_rule, or leave it out of what is differentiated{place()}"
    )


# -- making entries ----------------------------------------------------------------------------------------------------


def record(
    operation: Operation, tape: Any, places: list[int], numbers: list[int], primals: list[Any], foreign: bool
) -> Any:
    """Applies an operation and records it. The arguments at `places` are cells of the tape; `primals` has all values.

    With `foreign`, other arguments are arrays, which a user may write to later, so they are copied.
    """
    if tape.paused and tape.is_paused(*numbers):
        return owned(apply(operation, *primals))
    if operation in SLOPES and all([type(x) is float for x in primals]):
        y, *partials = SLOPES[operation](*primals)
        if operation in CHOOSING:  # what was not selected is not connected: zero times infinity would be NaN
            chosen = [(n, partials[i]) for n, i in zip(numbers, places, strict=True) if partials[i] != 0.0]
            return tape.cell(y, _entry([n for n, _ in chosen], [p for _, p in chosen]))
        return tape.cell(y, _entry(numbers, [partials[i] for i in places]))
    y = owned(apply(operation, *primals))
    if operation.elementwise:
        free = FREE.get(operation)
        if free is not None and _same_shapes(y, primals, places):
            if foreign and operation is ops.multiply:
                primals = [x if i in places else kept(x) for i, x in enumerate(primals)]
            slopes = free(*primals)
            return tape.cell(y, _entry(numbers, [slopes[i] for i in places]))
        if type(y) is float:
            if operation.tangent is None:
                raise no_derivative(operation, places[0])
            rules = [operation.tangent[i] for i in places]
            found = [(n, rule(1.0, y, *primals)) for n, rule in zip(numbers, rules, strict=True) if rule is not None]
            if operation in CHOOSING:
                found = [(n, p) for n, p in found if not (type(p) is float and p == 0.0)]
            return tape.cell(y, _entry([n for n, _ in found], [p for _, p in found]))
    if not tape.chooses:
        if operation in CHOOSING if operation.elementwise else leaves_out(operation) and _computed(tape, numbers):
            tape.chooses = True
    wanted = _wanted(operation.needs, tuple(places))
    for i, x in enumerate(primals):
        if wanted is not None and i not in wanted:
            if type(x) is not float:
                primals[i] = ShapeOnly(x)
        elif foreign and i not in places:
            primals[i] = kept(x)
    result = y if wanted is None or -1 in wanted or type(y) is float else ShapeOnly(y)
    return tape.cell(y, Recorded(operation, places, numbers, result, primals))


def _computed(tape: Any, numbers: list[int]) -> bool:
    """Whether one of these cells is no input: elements of it that are left out may have infinite derivatives."""
    return any(tape.entries.get(number) is not None for number in numbers)


def _same_shapes(y: Any, primals: list[Any], places: list[int]) -> bool:
    """Whether the arguments at these places have the shape of the result."""
    shape = shape_of(y)
    return all([shape_of(primals[i]) == shape for i in places])


@functools.lru_cache(maxsize=4096)
def _wanted(needs: tuple[tuple[int, ...] | None, ...] | None, places: tuple[int, ...]) -> frozenset[int] | None:
    """The residuals of an operation: positions of arguments, -1 for the result, None for all.

    Memoised by these tuples and not by operation, since an operation may hold arrays alive.
    """
    some = [None if needs is None else needs[i] for i in places]
    return None if None in some else frozenset(i for few in some if few is not None for i in few)


FREE: dict[Operation, Callable[..., tuple[Any, ...]]] = {
    ops.add: lambda a, b: (1.0, 1.0),
    ops.subtract: lambda a, b: (1.0, -1.0),
    ops.multiply: lambda a, b: (b, a),
    ops.negative: lambda x: (-1.0,),
}
"""Elementwise partial derivatives that need no computation, whatever the numbers hold."""


def _entry(numbers: Sequence[int], partials: Sequence[Any]) -> Any:
    """The entry of an elementwise operation on cells of the result's shape, from partial derivatives."""
    if len(numbers) == 1:
        return numbers[0], partials[0]
    if len(numbers) == 2:
        return numbers[0], partials[0], numbers[1], partials[1]
    return Scalars(tuple(x for pair in zip(numbers, partials, strict=True) for x in pair))
