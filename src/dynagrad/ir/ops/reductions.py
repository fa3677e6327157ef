"""Reductions and scans along axes: sums, products and extrema, cumulative sums and products.

They are constructed as in `arrays.py`. A result of no dimension is a float. At ties, the derivative of a maximum or
minimum follows the first of the equal elements. Products and cumulative products are differentiated without division,
so zeros among the factors do no harm.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..operation import Operation
from ..types import array
from . import scalars as ops
from .arrays import (
    Axes,
    Shape,
    broadcast_to,
    cut,
    getitem,
    join,
    join_axis,
    linear,
    remember,
    reshape,
    several,
    shape_of,
    single,
    take_slice,
    transpose,
)

_ndarray = np.ndarray

# -- reductions --------------------------------------------------------------------------------------------------------


def spread(delta: Any, axes: Axes, keepdims: bool, shape: Shape) -> Any:
    """The result of a reduction over `axes`, broadcast back along these.

    >>> spread(np.array([1.0, 2.0]), (1,), False, (2, 3))
    array([[1., 1., 1.],
           [2., 2., 2.]])
    """
    narrow = tuple([1 if i in axes else n for i, n in enumerate(shape)])
    if type(delta) is _ndarray and delta.flags.c_contiguous and 0 not in shape:
        # the same as np.broadcast_to, a read-only view too, in a fraction of the time
        steps = [0 if i in axes else step for i, step in enumerate(delta.reshape(narrow).strides)]
        found: Any = _ndarray(shape, delta.dtype, delta, 0, steps)
        found.flags.writeable = False
        return found
    if not keepdims and len(axes) < len(shape):
        delta = reshape(narrow)(delta)
    return broadcast_to(shape)(delta)


def spread_over(slopes: Any, delta: Any, axes: Axes, keepdims: bool) -> Any:
    """The result of a reduction, broadcast back along its axes, times slopes; an array of slopes is overwritten."""
    if type(slopes) is _ndarray and type(delta) is _ndarray:
        narrow = [1 if i in axes else n for i, n in enumerate(slopes.shape)]
        return np.multiply(slopes, delta.reshape(narrow), out=slopes)
    return ops.multiply(spread(delta, axes, keepdims, shape_of(slopes)), slopes)


@remember
def total(axes: Axes, keepdims: bool = False) -> Operation:
    """The sum over axes."""

    def value(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return single(x)
        reduce: Any = np.add.reduce  # numpy's types ask for a constant `keepdims`
        return single(reduce(x, axis=None if len(axes) == x.ndim else axes, keepdims=keepdims))

    return linear("sum", value, lambda d, s: spread(d, axes, keepdims, s), code=("sum", axes, keepdims))


@remember
def product(axes: Axes, keepdims: bool = False) -> Operation:
    """The product over axes. The partial derivative by a factor is the product of the others, zeros included."""

    def value(x: Any) -> Any:
        return single(np.prod(x, axis=axes, keepdims=keepdims))

    def others(x: Any) -> Any:
        shape = shape_of(x)
        rest = tuple(i for i in range(len(shape)) if i not in axes)
        order = rest + axes
        flat = reshape((*(shape[i] for i in rest), _size(shape, axes)))(transpose(order)(x))
        back = tuple(int(i) for i in np.argsort(order))
        return transpose(back)(reshape(tuple(shape[i] for i in order))(_products_of_others(flat)))

    return several(
        "prod",
        value,
        (lambda d, y, x: total(axes, keepdims)(ops.multiply(d, others(x))),),
        (lambda delta, y, x: ops.multiply(spread(delta, axes, keepdims, shape_of(x)), others(x)),),
        code=("prod", axes, keepdims),
    )


def _size(shape: Shape, axes: Axes) -> int:
    return math.prod(shape[i] for i in axes)


def _products_of_others(x: Any) -> Any:
    """For each element the product of the others on its last axis, without division, by a balanced tree."""
    *_, n = shape = shape_of(x)
    if n <= 1:
        return broadcast_to(shape)(1.0)
    half = n // 2
    a, b, left = (take_slice(x, start, end) for start, end in ((0, half), (half, 2 * half), (2 * half, n)))
    up = _products_of_others(join(ops.multiply(a, b), left))
    top, top_left = take_slice(up, 0, half), take_slice(up, half, half + n - 2 * half)
    return join(ops.multiply(top, b), ops.multiply(top, a), top_left)


@remember
def winners(largest: bool, axes: Axes) -> Operation:
    """Truth values: where the first maximum, or minimum, over axes stands. Piecewise constant."""

    def value(x: Any) -> Any:
        shape = np.shape(x)
        rest = tuple(i for i in range(len(shape)) if i not in axes)
        order = rest + axes
        flat = np.reshape(np.transpose(x, order), (*(shape[i] for i in rest), _size(shape, axes)))
        place = np.expand_dims((np.argmax if largest else np.argmin)(flat, axis=-1), -1)
        mask = np.arange(flat.shape[-1]) == place
        return np.transpose(mask.reshape([shape[i] for i in order]), np.argsort(order)) if shape else True

    return Operation("winners", (array,), array, value, (None,), "", code=("winners", largest, axes))


@remember
def extreme(largest: bool, axes: Axes, keepdims: bool = False) -> Operation:
    """The maximum or minimum over axes; the derivative is that of the first of equal elements."""
    reduce: Any = np.maximum.reduce if largest else np.minimum.reduce
    name = "max" if largest else "min"
    won = winners(largest, axes)
    return several(
        name,
        lambda x: single(reduce(x, axis=axes, keepdims=keepdims)),
        (lambda d, y, x: total(axes, keepdims)(ops.where(won(x), d, 0.0)),),
        (lambda delta, y, x: ops.where(won(x), spread(delta, axes, keepdims, shape_of(x)), 0.0),),
        code=(name, axes, keepdims),
    )


# -- cumulative sums and products --------------------------------------------------------------------------------------


def _reversed(axis: int) -> Operation:
    return getitem((*(slice(None),) * axis, slice(None, None, -1)))


@remember
def cumsum(axis: int) -> Operation:
    """Cumulative sums along an axis."""
    back = _reversed(axis)
    return linear(
        "cumsum", lambda x: np.cumsum(x, axis=axis), lambda d, s: back(cumsum(axis)(back(d))), code=("cumsum", axis)
    )


@remember
def cumprod(axis: int) -> Operation:
    """Cumulative products along an axis."""
    back = _reversed(axis)

    def before(y: Any) -> Any:
        """The product before each element."""
        return join_axis(axis, broadcast_to(_resized(shape_of(y), axis, 1))(1.0), cut(axis, 0, -1)(y))

    def tangent(d: Any, y: Any, x: Any) -> Any:
        return _recurrence(axis, x, ops.multiply(before(y), d))

    def adjoint(delta: Any, y: Any, x: Any) -> Any:
        after = join_axis(axis, cut(axis, 1, None)(x), broadcast_to(_resized(shape_of(x), axis, 1))(0.0))
        return ops.multiply(before(y), back(_recurrence(axis, back(after), back(delta))))

    return several("cumprod", lambda x: np.cumprod(x, axis=axis), (tangent,), (adjoint,), code=("cumprod", axis))


def _resized(shape: Shape, axis: int, n: int) -> Shape:
    return (*shape[:axis], n, *shape[axis + 1 :])


def _recurrence(axis: int, a: Any, b: Any) -> Any:
    """h[i] = a[i] h[i-1] + b[i] along an axis, by recursive doubling (a parallel prefix scan: Kogge and Stone 1973)."""
    n, reach = shape_of(a)[axis], 1
    while reach < n:
        head, tail, earlier = cut(axis, 0, reach), cut(axis, reach, None), cut(axis, 0, n - reach)
        b = join_axis(axis, head(b), ops.add(ops.multiply(tail(a), earlier(b)), tail(b)))
        a = join_axis(axis, head(a), ops.multiply(tail(a), earlier(a)))
        reach *= 2
    return b
