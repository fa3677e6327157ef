"""Operations on whole arrays: shapes, indexing, moving elements, products; and the constructors of such operations.

Reductions along axes are in `reductions.py`, and linear algebra in `matrices.py`.

Each is declared once, as the scalar operations are in `scalars.py`: a name, the value in numpy, the tangent, and the
adjoint, which must be given, since a linear map of arrays is not its own transpose. The parameters that numpy takes
(axes, shapes, an index) are fixed in the operation, so that its arguments are reals only; `functools.lru_cache` keeps
one operation for each choice. Rules call operations, so they work on whatever the operations work on. Parameters are
normalised: axes are tuples of non-negative numbers, shapes have no -1.

A value of no dimension is a float, also where it comes out of an array. `sort` is stable.

It is long as a table is: one operation after the other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from ..buffers import SMALLEST, empty
from ..operation import LinearMap, Operation, Series
from ..types import array
from . import scalars as ops
from . import series as power_series

Shape = tuple[int, ...]
Axes = tuple[int, ...]
Rules = tuple[Callable[..., Any] | None, ...]
Needs = tuple[tuple[int, ...] | None, ...]

_ndarray = np.ndarray
_FLOAT = np.dtype(np.float64)

remember = functools.lru_cache(maxsize=4096)
"""Memoises a constructor: one operation for each choice of parameters."""


def shape_of(x: Any) -> Shape:
    """The shape of what operations take: a real, an array, a node, or a number with derivatives, which says it itself.

    What users pass may be lists, too: that is for `eager/kinds.py`.

    >>> shape_of(2.0), shape_of(np.ones((2, 3)))
    ((), (2, 3))
    """
    return () if type(x) is float else getattr(x, "shape", ())


def single(x: Any) -> Any:
    """A value of no dimension as a float."""
    return x if isinstance(x, np.ndarray) and x.ndim else float(x)


def surely_finite(x: Any) -> bool:
    """A quick test that an array has no infinity and no NaN; it may say no where numbers are huge.

    >>> surely_finite(np.array([1.0, -2.0])), surely_finite(np.array([1.0, np.nan])), surely_finite(np.array([1e300]))
    (True, False, False)
    """
    if x.size < SMALLEST:
        return math.isfinite(np.vdot(x, x))  # the fastest way, and it never warns
    return bool(np.isfinite(x).all())


# -- constructors of operations ----------------------------------------------------------------------------------------


def linear(
    name: str,
    value: Callable[[Any], Any],
    transpose: Callable[[Any, Shape], Any],
    accumulate: Callable[[Any, Any], None] | None = None,
    code: Any = None,
) -> Operation:
    """A linear operation on one array; `transpose(delta, shape)` is its transpose, where the argument has that shape.

    >>> double = linear("double", lambda x: 2.0 * x, lambda delta, shape: double(delta))
    >>> double(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    made = Operation(
        name,
        (array,),
        array,
        value,
        (lambda d, y, x: made(d),),
        "",
        adjoint=lambda delta, y, x: (transpose(delta, shape_of(x)),),
        series=power_series.linear(lambda c: made(c)),
        needs=((),),
        accumulate=accumulate,
        code=code,
    )
    return made


def several(
    name: str,
    value: Callable[..., Any],
    tangent: Rules,
    adjoint: Rules,
    series: Series | None = None,
    needs: Needs | None = None,
    code: Any = None,
) -> Operation:
    """An operation on several arrays, with a tangent and an adjoint rule for each; None for a constant argument.

    Where two rules apply the operation itself, as those of a product do, `series` must be given: power series that
    follow the tangents would take exponential time.
    """
    return Operation(
        name,
        (array,) * len(tangent),
        array,
        value,
        tangent,
        "",
        adjoint=lambda delta, y, *xs: LazyIncrements(adjoint, (delta, y, *xs)),
        series=series,
        needs=needs,
        code=code,
    )


class LazyIncrements(Sequence[Any]):
    """The adjoints of several arguments, each computed on demand, since often only one is needed."""

    __slots__ = ("operands", "rules")

    def __init__(self, rules: Rules, operands: tuple[Any, ...]) -> None:
        self.rules, self.operands = rules, operands

    def __len__(self) -> int:
        return len(self.rules)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        rule = self.rules[index]
        return None if rule is None else rule(*self.operands)


# -- shapes ------------------------------------------------------------------------------------------------------------


@remember
def broadcast_to(shape: Shape) -> Operation:
    """Repetition along new axes and axes of length one. The result is a read-only view, or a new array of one float."""

    def value(x: Any) -> Any:
        if type(x) is not float:
            return np.broadcast_to(x, shape)
        full = empty(shape)
        full.fill(x)
        return full

    return linear("broadcast_to", value if shape else float, lambda d, s: sum_to(s)(d), code=("broadcast",))


@remember
def _repeated(shape: Shape, to: Shape) -> Axes:
    """The axes along which broadcasting from a shape to another repeats an array."""
    extra = len(to) - len(shape)
    return (*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1 and to[i + extra] != 1))


@remember
def sum_to(shape: Shape) -> Operation:
    """The sum over the axes along which an array of `shape` would be broadcast: the transpose of `broadcast_to`."""

    def value(x: Any) -> Any:
        had = np.shape(x) if type(x) is not _ndarray else x.shape
        if had == shape:
            return x
        if not shape:
            return float(np.add.reduce(x, axis=None))
        total = np.add.reduce(x, axis=_repeated(shape, had))
        return total if total.shape == shape else np.reshape(total, shape)

    return linear("sum_to", value, lambda d, s: broadcast_to(s)(d), code=("sum_to",))


@remember
def reshape(shape: Shape) -> Operation:
    """The same elements in another shape, in row-major order."""
    return linear(
        "reshape",
        lambda x: _only(x) if not shape else x.reshape(shape) if type(x) is _ndarray else np.reshape(x, shape),
        lambda d, s: reshape(s)(d),
        code=("reshape",),
    )


def _only(x: Any) -> float:
    return float(np.reshape(x, ()))


@remember
def transpose(axes: Axes) -> Operation:
    """Axis i of the result is axis `axes[i]` of the argument."""
    inverse = tuple(int(i) for i in np.argsort(axes))
    return linear(
        "transpose",
        lambda x: x.transpose(axes) if type(x) is _ndarray else np.transpose(x, axes),
        lambda d, s: transpose(inverse)(d),
        code=("transpose", axes),
    )


def swap(x: Any) -> Any:
    """A matrix, or each of a stack of them, transposed."""
    n = len(shape_of(x))
    return transpose((*range(n - 2), n - 1, n - 2))(x)


def insert_axes(x: Any, *axes: int) -> Any:
    """New axes of length one, at these positions of the result."""
    left = iter(shape_of(x))
    count = len(shape_of(x)) + len(axes)
    return reshape(tuple(1 if i in axes else next(left) for i in range(count)))(x)


# -- indexing ----------------------------------------------------------------------------------------------------------


def getitem(index: Any) -> Operation:
    """`x[index]`, for any constant index that numpy takes; elements that it selects twice count twice in derivatives.

    >>> getitem((..., [1, 1]))(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[2., 2.],
           [4., 4.]])
    """
    if type(index) is int:
        return _at(index)
    parts = index if type(index) is tuple else (index,)
    key: list[Any] = []
    for i in parts:
        if type(i) is slice:
            key.append((i.start, i.stop, i.step))
        elif type(i) is int or i is None or i is Ellipsis:
            key.append(i)
        else:  # arrays and lists are copied, since they may change later
            return _getitem(tuple(_copied_places(i) if isinstance(i, np.ndarray | list | tuple) else i for i in parts))
    try:
        return _simple(tuple(key))
    except TypeError:  # a bound of a slice is not hashable
        return _getitem(parts)


def _copied_places(places: Any) -> Any:
    """A copy of an array or list that is an index; an empty list has integers, as in numpy's indexing."""
    return np.array(places) if isinstance(places, np.ndarray) or np.size(places) else np.array(places, dtype=np.intp)


@remember
def _at(index: int) -> Operation:
    return _getitem((index,))


@remember
def _simple(key: tuple[Any, ...]) -> Operation:
    return _getitem(tuple(slice(*i) if type(i) is tuple else i for i in key))


def _getitem(index: tuple[Any, ...]) -> Operation:
    add_at = np.add.at if _several_times(index) else _add_at

    def accumulate(total: Any, delta: Any) -> None:
        add_at(total, index, delta)

    code = ("getitem", index)
    return linear("getitem", lambda x: _item(x, index), lambda d, s: place(index, s)(d), accumulate, code)


def _several_times(index: tuple[Any, ...]) -> bool:
    """Whether an index may select an element more than once."""
    return any(isinstance(i, np.ndarray | list) and np.asarray(i).dtype != bool for i in index)


def _add_at(total: Any, index: tuple[Any, ...], delta: Any) -> None:
    total[index] += delta


def _item(x: Any, index: tuple[Any, ...]) -> Any:
    found = (x if isinstance(x, np.ndarray) else np.asarray(x))[index]
    return found if isinstance(found, np.ndarray) and found.ndim else float(found)


def place(index: tuple[Any, ...], shape: Shape) -> Operation:
    """Zeros with an array added at an index: the transpose of `getitem`."""
    several_times = _several_times(index)

    def value(d: Any) -> Any:
        out = np.zeros(shape)
        if several_times:
            np.add.at(out, index, d)
        else:
            out[index] = d
        return out if shape else float(out)

    return linear("place", value, lambda delta, s: _getitem(index)(delta), code=("place", index, shape))


def cut(axis: int, start: int | None, end: int | None) -> Operation:
    """A slice of an axis."""
    return getitem((*(slice(None),) * axis, slice(start, end)))


def take_slice(x: Any, start: int, end: int) -> Any:
    """A slice of the last axis."""
    return getitem((..., slice(start, end)))(x)


@remember
def take_along(axis: int) -> Operation:
    """`np.take_along_axis(x, order, axis)`; the order is a constant."""

    def value(x: Any, order: Any) -> Any:
        return np.take_along_axis(x, _as_places(order), axis)

    return several(
        "take_along_axis",
        value,
        (lambda d, y, x, order: take_along(axis)(d, order), None),
        (lambda delta, y, x, order: put_along(axis, shape_of(x))(delta, order), None),
        needs=((1,), ()),
        code=("take_along", axis),
    )


@remember
def put_along(axis: int, shape: Shape) -> Operation:
    """Zeros with an array added at positions along an axis: the transpose of `take_along`."""

    def value(d: Any, order: Any) -> Any:
        out = np.zeros(shape)
        order = _as_places(order)
        grid = list(np.ogrid[tuple(slice(n) for n in order.shape)])
        grid[axis] = order
        np.add.at(out, tuple(grid), d)
        return out

    return several(
        "put_along_axis",
        value,
        (lambda d, y, x, order: put_along(axis, shape)(d, order), None),
        (lambda delta, y, x, order: take_along(axis)(delta, order), None),
        needs=((1,), ()),
        code=("put_along", axis, shape),
    )


def _as_places(order: Any) -> Any:
    return np.asarray(order).astype(np.intp, copy=False)


@remember
def argsort(axis: int) -> Operation:
    """The order that sorts an axis, stably: piecewise constant."""

    def value(x: Any) -> Any:
        return np.argsort(x, axis=axis, kind="stable")

    return Operation("argsort", (array,), array, value, (None,), "", code=("argsort", axis))


@remember
def sort(axis: int) -> Operation:
    """An axis sorted, stably; its derivative is the permutation."""
    order = argsort(axis)
    return several(
        "sort",
        lambda x: np.sort(x, axis=axis, kind="stable"),
        (lambda d, y, x: take_along(axis)(d, order(x)),),
        (lambda delta, y, x: put_along(axis, shape_of(x))(delta, order(x)),),
        code=("sort", axis),
    )


# -- moving elements ---------------------------------------------------------------------------------------------------


@remember
def roll(shift: int, axis: int) -> Operation:
    """Elements rotated along an axis."""
    return linear(
        "roll", lambda x: np.roll(x, shift, axis), lambda d, s: roll(-shift, axis)(d), code=("roll", shift, axis)
    )


@remember
def triangle(lower: bool, k: int = 0) -> Operation:
    """The lower or upper triangle of matrices, from the k-th diagonal on; zeros elsewhere."""
    cut_off = np.tril if lower else np.triu
    return linear(
        "tril" if lower else "triu",
        lambda x: cut_off(x, k),
        lambda d, s: triangle(lower, k)(d),
        code=("triangle", lower, k),
    )


@remember
def diagonal(offset: int = 0) -> Operation:
    """The diagonals of the matrices on the last two axes."""

    def value(x: Any) -> Any:
        return np.diagonal(x, offset, -2, -1)

    return linear("diagonal", value, lambda d, s: on_diagonal(offset, s)(d), code=("diagonal", offset))


@remember
def on_diagonal(offset: int, shape: Shape) -> Operation:
    """Matrices of zeros with these diagonals: the transpose of `diagonal`."""

    def value(d: Any) -> Any:
        out = np.zeros(shape)
        i = np.arange(np.shape(d)[-1])
        out[..., i + max(-offset, 0), i + max(offset, 0)] = d
        return out

    return linear("on_diagonal", value, lambda delta, s: diagonal(offset)(delta), code=("on_diagonal", offset, shape))


@remember
def concatenate(axis: int, count: int) -> Operation:
    """Arrays one after the other along an axis."""

    def stretch(i: int, xs: tuple[Any, ...]) -> tuple[Any, ...]:
        start = sum(shape_of(x)[axis] for x in xs[:i])
        return (*(slice(None),) * axis, slice(start, start + shape_of(xs[i])[axis]))

    def tangent(i: int) -> LinearMap:
        return lambda d, y, *xs: place(stretch(i, xs), shape_of(y))(d)

    def adjoint(i: int) -> LinearMap:
        return lambda delta, y, *xs: getitem(stretch(i, xs))(delta)

    return several(
        "concatenate",
        lambda *xs: np.concatenate(xs, axis),
        tuple(map(tangent, range(count))),
        tuple(map(adjoint, range(count))),
        needs=((),) * count,
        code=("concatenate", axis),
    )


def join_axis(axis: int, *xs: Any) -> Any:
    return concatenate(axis, len(xs))(*xs)


def join(*xs: Any) -> Any:
    """Arrays one after the other on the last axis; empty ones are left out."""
    some = [x for x in xs if shape_of(x)[-1]] or [xs[0]]
    return some[0] if len(some) == 1 else concatenate(len(shape_of(some[0])) - 1, len(some))(*some)


@remember
def stack(axis: int, count: int) -> Operation:
    """Arrays of one shape, or floats, side by side along a new axis."""

    def at(i: int) -> tuple[Any, ...]:
        return (*(slice(None),) * axis, i)

    def value(*xs: Any) -> Any:
        return np.stack(xs, axis) if isinstance(xs[0], np.ndarray) else np.array(xs)

    def tangent(i: int) -> LinearMap:
        return lambda d, y, *xs: place(at(i), shape_of(y))(d)

    def adjoint(i: int) -> LinearMap:
        index = at(i)
        return lambda delta, y, *xs: getitem(index)(delta)

    return several(
        "stack",
        value,
        tuple(map(tangent, range(count))),
        tuple(map(adjoint, range(count))),
        needs=((),) * count,
        code=("stack", axis),
    )


# -- products ----------------------------------------------------------------------------------------------------------


def _matmul_left(delta: Any, y: Any, a: Any, b: Any) -> Any:
    """The adjoint of the left factor."""
    if type(delta) is type(b) is _ndarray and delta.ndim == b.ndim == 2:  # the same as below, without dispatch
        return _matmul_value(delta, b.T)
    ranks = len(shape_of(a)), len(shape_of(b))
    if ranks == (2, 2):
        return matmul(delta, transpose((1, 0))(b))
    if ranks == (1, 1):
        return ops.multiply(delta, b)
    if ranks[1] == 1:
        return ops.multiply(insert_axes(delta, ranks[0] - 1), b)
    if ranks[0] == 1:
        return sum_to(shape_of(a))(matmul(b, delta) if ranks[1] == 2 else _column(b, delta))
    return sum_to(shape_of(a))(matmul(delta, swap(b)))


def _column(b: Any, delta: Any) -> Any:
    """A stack of matrices times a stack of vectors."""
    columns = matmul(b, insert_axes(delta, len(shape_of(delta))))
    return reshape(shape_of(columns)[:-1])(columns)


def _matmul_right(delta: Any, y: Any, a: Any, b: Any) -> Any:
    """The adjoint of the right factor."""
    if type(delta) is type(a) is _ndarray and delta.ndim == a.ndim == 2:
        return _matmul_value(a.T, delta)
    ranks = len(shape_of(a)), len(shape_of(b))
    if ranks == (2, 1):
        return matmul(delta, a)
    if ranks == (2, 2):
        return matmul(transpose((1, 0))(a), delta)
    if ranks == (1, 1):
        return ops.multiply(delta, a)
    if ranks[0] == 1:
        column = insert_axes(a, 1)
        return ops.multiply(column, insert_axes(delta, ranks[1] - 2))
    n = shape_of(a)[-1]
    if ranks[1] <= 2:  # one product for all rows of a stack
        rows = math.prod(shape_of(a)[:-1])
        flat = reshape((rows,) if ranks[1] == 1 else (rows, shape_of(b)[1]))(delta)
        return matmul(transpose((1, 0))(reshape((rows, n))(a)), flat)
    return sum_to(shape_of(b))(matmul(swap(a), delta))


def _matmul_value(a: Any, b: Any) -> Any:
    if type(a) is type(b) is _ndarray and a.ndim == b.ndim == 2 and a.dtype is b.dtype is _FLOAT:
        rows, columns = a.shape[0], b.shape[1]
        if rows * columns >= SMALLEST and a.shape[1] == b.shape[0]:
            return np.matmul(a, b, out=empty((rows, columns)))
    y = np.matmul(a, b)
    return y if isinstance(y, np.ndarray) else float(y)


matmul: Operation = several(
    "matmul",
    _matmul_value,
    (lambda d, y, a, b: matmul(d, b), lambda d, y, a, b: matmul(a, d)),
    (_matmul_left, _matmul_right),
    power_series.multilinear(lambda a, b: matmul(a, b)),
    needs=((1,), (0,)),
    code=("matmul",),
)


@remember
def einsum(inputs: tuple[str, ...], output: str) -> Operation:
    """Einstein summation: a letter for each axis of each argument, no letter twice in one argument, no ellipsis."""
    text = ",".join(inputs) + "->" + output

    def value(*xs: Any) -> Any:
        return single(np.einsum(text, *xs, optimize=len(xs) > 1))

    def tangent(i: int) -> LinearMap:
        return lambda d, y, *xs: made(*xs[:i], d, *xs[i + 1 :])

    def adjoint(i: int) -> LinearMap:
        others = inputs[:i] + inputs[i + 1 :]
        mine = "".join(letter for letter in inputs[i] if letter in output or any(letter in o for o in others))

        def rule(delta: Any, y: Any, *xs: Any) -> Any:
            part = einsum((output, *others), mine)(delta, *xs[:i], *xs[i + 1 :])  # constructed only when needed
            length = dict(zip(mine, shape_of(part), strict=True))
            shape = shape_of(xs[i])
            if tuple(length.values()) == shape:
                return part
            # An axis of length one was broadcast to the length of others; an axis of no other array was summed alone.
            found = tuple(length.get(letter, 1) for letter in inputs[i])
            narrow = tuple(1 if n == 1 else m for n, m in zip(shape, found, strict=True))
            return broadcast_to(shape)(sum_to(narrow)(reshape(found)(part)))

        return rule

    places = range(len(inputs))
    series = power_series.multilinear(lambda *xs: made(*xs))
    others = tuple(tuple(j for j in places if j != i) for i in places)
    rules = tuple(map(tangent, places)), tuple(map(adjoint, places))
    made = several("einsum", value, *rules, series, others, code=("einsum", inputs, output))
    return made
