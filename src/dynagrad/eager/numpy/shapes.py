"""Handlers of numpy's functions that change shapes and the order of axes, and of those that change nothing.

Elements keep their order along each axis, except with `order="F"`; functions that move them are in `arranging.py`.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ...errors import Error
from ...ir.ops import arrays
from ...ir.ops import scalars as ops
from ...ir.ops.arrays import shape_of
from ..kinds import plain
from ..numbers import Number, lift
from ..perturbations import place
from .functions import axes_of, axis_of, implements, of_dtype, rank, whole


@implements("reshape")
def reshape(a: Any, shape: Any = None, order: str = "C", *, newshape: Any = None) -> Any:
    a = plain(a)
    wanted = newshape if shape is None else shape
    wanted = tuple(map(operator.index, wanted)) if isinstance(wanted, tuple | list) else (operator.index(wanted),)
    if order == "F":
        return transpose(reshape(transpose(a), wanted[::-1]))
    if order not in ("C", "A", "K") or (order != "C" and rank(a) > 1):
        raise Error(
            f"np.reshape: order={order!r} depends on the memory layout of an array, which numbers with derivatives do "
            f"not have; use 'C' or 'F'{place()}"
        )
    if -1 in wanted:
        known = math.prod(n for n in wanted if n != -1)
        size = math.prod(shape_of(a))
        if wanted.count(-1) > 1 or not known or size % known:
            raise ValueError(f"cannot reshape array of size {size} into shape {wanted}")
        wanted = tuple(size // known if n == -1 else n for n in wanted)
    return a if wanted == shape_of(a) else lift(arrays.reshape(wanted), (a,))


@implements("ravel")
def ravel(a: Any, order: str = "C") -> Any:
    return reshape(a, -1, order)


@implements("transpose", "permute_dims")
def transpose(a: Any, axes: Any = None) -> Any:
    a = plain(a)
    n = rank(a)
    order = tuple(range(n))[::-1] if axes is None else axes_of(tuple(axes), n)
    if len(order) != n:
        raise ValueError("axes don't match array")
    return a if n < 2 and axes is None else lift(arrays.transpose(order), (a,))


@implements("swapaxes")
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(rank(a)))
    i, j = axis_of(axis1, len(order)), axis_of(axis2, len(order))
    order[i], order[j] = order[j], order[i]
    return transpose(a, order)


@implements("matrix_transpose", "linalg.matrix_transpose")
def _matrix_transpose(x: Any) -> Any:
    return swapaxes(x, -1, -2)


@implements("moveaxis")
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    n = rank(a)
    start, end = axes_of(source, n), axes_of(destination, n)
    order = [i for i in range(n) if i not in start]
    for at, axis in sorted(zip(end, start, strict=True)):
        order.insert(at, axis)
    return transpose(a, order)


@implements("expand_dims")
def _expand_dims(a: Any, axis: Any) -> Any:
    a = plain(a)
    new = axes_of(axis, rank(a) + (len(axis) if isinstance(axis, tuple | list) else 1))
    return arrays.insert_axes(a, *new) if new else a


@implements("squeeze")
def _squeeze(a: Any, axis: Any = None) -> Any:
    shape = shape_of(a)
    gone = tuple(i for i, n in enumerate(shape) if n == 1) if axis is None else axes_of(axis, len(shape))
    if any(shape[i] != 1 for i in gone):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return reshape(a, tuple(n for i, n in enumerate(shape) if i not in gone))


@implements("broadcast_to")
def broadcast_to(array: Any, shape: Any) -> Any:
    wanted = tuple(map(operator.index, shape)) if isinstance(shape, tuple | list) else (operator.index(shape),)
    return lift(arrays.broadcast_to(wanted), (array,))


@implements("broadcast_arrays")
def _broadcast_arrays(*args: Any) -> Any:
    args = tuple(map(plain, args))
    shape = np.broadcast_shapes(*map(shape_of, args))
    return tuple(broadcast_to(x, shape) for x in args)


@implements("atleast_1d")
def atleast_1d(*arys: Any) -> Any:
    found = tuple(plain(x) if rank(plain(x)) else reshape(x, (1,)) for x in arys)
    return found[0] if len(found) == 1 else found


@implements("ascontiguousarray")
def _ascontiguousarray(a: Any) -> Any:
    return atleast_1d(a)


@implements("atleast_2d")
def atleast_2d(*arys: Any) -> Any:
    found = tuple(plain(x) if rank(plain(x)) > 1 else reshape(x, (1, -1)) for x in arys)
    return found[0] if len(found) == 1 else found


@implements("real", "asarray", "asanyarray", "real_if_close")
def _copy(a: Any) -> Any:
    return a


@implements("imag")
def _imag(val: Any) -> Any:
    return np.zeros(shape_of(val)) if shape_of(val) else 0.0


@implements("angle")
def _angle(z: Any, deg: bool = False) -> Any:
    """0 or half a turn, by the sign bit, as in numpy."""
    x = plain(z)
    turned = lift(ops.copysign, (1.0, x)) < 0.0
    return lift(ops.where, (x == x, lift(ops.where, (turned, 180.0 if deg else math.pi, 0.0)), x))


@implements("astype")
def _astype(x: Any, dtype: Any, *, copy: bool = True) -> Any:
    return of_dtype("a number with derivatives", x, dtype)


@implements("full_like")
def _full_like(a: Any, fill_value: Any) -> Any:
    shape = shape_of(plain(a))
    return broadcast_to(fill_value, shape) if isinstance(fill_value, Number) else np.full(shape, float(fill_value))


@implements("atleast_3d")
def _atleast_3d(*arys: Any) -> Any:
    found = []
    for x in map(plain, arys):
        shape = shape_of(x)
        wider: dict[int, tuple[int, ...]] = {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}
        found.append(np.reshape(x, wider[len(shape)]) if len(shape) < 3 else x)
    return found[0] if len(found) == 1 else tuple(found)


@implements("rollaxis")
def _rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    n = rank(plain(a))
    (along,) = axes_of(axis, n)
    to = whole("np.rollaxis", "start", start)
    if not -n <= to <= n:
        raise np.exceptions.AxisError(to, n + 1, "start")
    to += n if to < 0 else 0
    order = [k for k in range(n) if k != along]
    order.insert(to - (along < to), along)
    return np.transpose(a, order)
