"""Dispatch of operations on the youngest tag of their arguments: lifting to dual numbers and tape cells.

`lift` applies an operation to the primals first, which may be numbers again, and then handles the derivative: for
bundles it computes the tangent of the result, on a tape it leaves an entry (`tape.py`); `taylor.py` adds its own kind.
Derivative rules apply operations, so all this nests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ..autodiff.buffer_reuse import follow
from ..ir.operation import Operation, apply
from ..ir.ops import scalars as ops
from ..ir.ops.arrays import broadcast_to
from .copies import kept, owned
from .floats import SLOPES
from .numbers import LIFTS, Bundle, Number, TapeCell, bundle, plain, real_part, shape_of
from .tape import CHOOSING, Recorded, Scalars, ShapeOnly, leaves_out, no_derivative


def lift(operation: Operation, arguments: Sequence[Any]) -> Any:
    """An operation applied to arguments of which some carry derivatives, by their youngest tag."""
    tape, foreign, places, numbers, primals = None, False, [], [], []
    for i, x in enumerate(arguments):  # the common case: cells of one tape, floats and arrays
        kind = type(x)
        if kind is TapeCell:
            if tape is None:
                tape = x.tape
            elif x.tape is not tape:
                break
            places.append(i)
            numbers.append(x.number)
            x = x.primal
        elif kind is _ndarray:
            if x.dtype is not _FLOAT or not x.ndim:
                break
            foreign = True
        elif kind is not float:
            break
        primals.append(x)
    else:
        if tape is not None and not operation.steps:
            return _record(operation, tape, places, numbers, primals, foreign)
    tag, youngest, given = 0, float, []
    for x in arguments:
        kind = type(x)
        if kind in LIFTS:
            at = x.tape.tag if kind is TapeCell else x.tag
            if at > tag:
                tag, youngest = at, kind
        elif kind is not float:
            x = plain(x)
        given.append(x)
    if not tag:
        return apply(operation, *given)
    if operation.steps:  # piecewise constant: no derivative
        return apply(operation, *map(real_part, given))
    return LIFTS[youngest](operation, tag, given)


Number.__apply_operation__ = staticmethod(lift)


def _lift_bundle(operation: Operation, tag: int, arguments: list[Any]) -> Any:
    mine = [type(x) is Bundle and x.tag == tag for x in arguments]
    primals = [x.primal if own else x for own, x in zip(mine, arguments, strict=True)]
    total: Any = None
    if operation in SLOPES and all(type(x) is float for x in primals):
        y, *slopes = SLOPES[operation](*primals)
        for own, x, slope in zip(mine, arguments, slopes, strict=True):
            if own and not (slope == 0.0 and operation in CHOOSING):  # what was not selected is not connected
                part = x.tangent * slope if type(x.tangent) is float else apply(ops.multiply, x.tangent, slope)
                total = part if total is None else total + part
        return bundle(tag, y, total)
    y = owned(apply(operation, *primals))
    with quiet(y):
        total = _tangent(operation, mine, arguments, primals, y)
    return bundle(tag, y, total)


def _tangent(operation: Operation, mine: list[bool], arguments: list[Any], primals: list[Any], y: Any) -> Any:
    """The tangent of a result, along the tag of some of the arguments."""
    total: Any = None
    for index, own in enumerate(mine):
        if own:
            d = arguments[index].tangent
            part = tangent_part(operation, index, d, y, primals)
            if operation in CHOOSING and type(part) is float and part == 0.0:
                # not selected, so not connected; or selected, with a tangent of zero
                slope = part if d != 0.0 else tangent_part(operation, index, 1.0, y, primals)
                part = None if type(slope) is float and slope == 0.0 else part
            if part is not None:
                total = part if total is None else apply(ops.add, total, part)
    return total


def quiet(y: Any) -> AbstractContextManager[Any]:
    """A context without numpy's warnings for the derivatives of a result, since the verb reports infinities and NaN."""
    return _NOTHING if type(y) is float else np.errstate(all="ignore")


_NOTHING: AbstractContextManager[Any] = nullcontext()


def tangent_part(operation: Operation, index: int, d: Any, y: Any, primals: Sequence[Any]) -> Any:
    """The contribution of one argument's tangent to that of the result; None where it has none."""
    if operation.tangent is None:
        raise no_derivative(operation, index)
    rule = operation.tangent[index] if index < len(operation.tangent) else operation.tangent[-1]
    if rule is None:
        return None
    if not operation.elementwise:
        return rule(d, y, *primals)
    part, shape = follow(operation, index, d, y, primals), shape_of(y)
    if shape_of(part) != shape:
        part = broadcast_to(shape)(part)
    return part


def _lift_cell(operation: Operation, tag: int, arguments: list[Any]) -> Any:
    mine = [i for i, x in enumerate(arguments) if type(x) is TapeCell and x.tape.tag == tag]
    tape, numbers = arguments[mine[0]].tape, [arguments[i].number for i in mine]
    primals = [x.primal if i in mine else x for i, x in enumerate(arguments)]
    foreign = any(type(x) is _ndarray for i, x in enumerate(arguments) if i not in mine)
    return _record(operation, tape, mine, numbers, primals, foreign)


def _record(
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


_ndarray = np.ndarray
_FLOAT = np.dtype(np.float64)


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


LIFTS[Bundle] = _lift_bundle
LIFTS[TapeCell] = _lift_cell
