"""Handlers of numpy's functions on samples: convolutions, windows, interpolation, differences and integrals.

Which interval of an interpolation a point lies in is piecewise constant.

Sliding windows and convolutions are operations of `ir/ops/windows.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.ops import arrays, windows
from ...ir.ops import scalars as ops
from ...ir.ops.arrays import shape_of
from ...ir.ops.families import sinc
from ..kinds import plain, real_part
from ..numbers import lift
from .arranging import concatenate
from .functions import axes_of, axis_of, implements, item_of, rank, whole
from .reductions import sum_over
from .shapes import moveaxis, ravel

# -- convolutions ------------------------------------------------------------------------------------------------------

_MODES = ("full", "same", "valid")


def _rows(name: str, a: Any, v: Any, mode: Any) -> tuple[Any, Any]:
    """Two vectors that are not empty."""
    if mode not in _MODES:
        raise ValueError(f"{name}: the mode should be 'full', 'same' or 'valid', and is {mode!r:.40}")
    a, v = (x if rank(x) else np.reshape(x, (1,)) for x in (plain(a), plain(v)))
    if rank(a) != 1 or rank(v) != 1:
        raise ValueError(f"{name} takes vectors; for arrays of more axes see np.lib.stride_tricks.sliding_window_view")
    if not shape_of(a)[0] or not shape_of(v)[0]:
        raise ValueError(f"{name}: a vector is empty")
    return a, v


def _convolved(a: Any, v: Any, mode: str) -> Any:
    """The convolution with a vector that is not longer than the first."""
    n, m = shape_of(a)[0], shape_of(v)[0]
    found = lift(windows.convolve(mode != "valid"), (a, v))
    start = m - m // 2 - 1
    return item_of(found, slice(start, start + n)) if mode == "same" else found


@implements("convolve")
def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    a, v = _rows("np.convolve", a, v, mode)
    return _convolved(*((a, v) if shape_of(a)[0] >= shape_of(v)[0] else (v, a)), mode)


@implements("correlate")
def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    a, v = _rows("np.correlate", a, v, mode)
    if shape_of(a)[0] >= shape_of(v)[0]:
        return _convolved(a, np.flip(v), mode)
    return np.flip(_convolved(v, np.flip(a), mode))


@implements("lib.stride_tricks.sliding_window_view")
def _sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Any:
    x = plain(x)
    sizes = tuple(window_shape) if isinstance(window_shape, tuple | list) else (window_shape,)
    sizes = tuple(whole("np.lib.stride_tricks.sliding_window_view", "window_shape", n) for n in sizes)
    along = axes_of(None, rank(x)) if axis is None else tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    if len(along) != len(sizes):
        raise ValueError("np.lib.stride_tricks.sliding_window_view: give a size for each of the axes")
    along = tuple(axes_of(a, rank(x))[0] for a in along)
    if len(set(along)) < len(along):  # windows of windows
        for one, size in zip(along, sizes, strict=True):
            x = _sliding_window_view(x, size, one)
        return x
    if any(n < 0 for n in sizes) or any(shape_of(x)[a] < n for a, n in zip(along, sizes, strict=True)):
        raise ValueError("np.lib.stride_tricks.sliding_window_view: a window is larger than the array, or negative")
    return lift(windows.windows(along, sizes), (x,))


# -- interpolation -----------------------------------------------------------------------------------------------------


@implements("interp")
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    x, xp, fp = plain(x), plain(xp), plain(fp)
    if rank(xp) != 1 or shape_of(xp) != shape_of(fp) or not shape_of(xp)[0]:
        raise ValueError("np.interp: xp and fp should be vectors of the same length, and not empty")
    if period is not None:
        x, xp, fp, left, right = *_periodic(x, xp, fp, period), None, None
    n, shape = shape_of(xp)[0], shape_of(x)
    flat = np.reshape(x, (-1,))
    first, last = item_of(xp, 0), item_of(xp, n - 1)
    if n == 1:
        inside = np.broadcast_to(item_of(fp, 0), shape_of(flat))
        inside = lift(ops.where, (real_part(flat) == real_part(flat), inside, flat))
    else:
        with np.errstate(all="ignore"):  # as numpy, which does not warn here
            inside = _between(flat, xp, fp, n)
    below = item_of(fp, 0) if left is None else plain(left)
    above = item_of(fp, n - 1) if right is None else plain(right)
    found = np.where(real_part(flat) < real_part(first), below, inside)
    return np.reshape(np.where(real_part(flat) > real_part(last), above, found), shape)


def _between(x: Any, xp: Any, fp: Any, n: int) -> Any:
    """Linear interpolation between the two samples around each point."""
    before = np.searchsorted(real_part(xp), real_part(x), side="right") - 1
    anchor = np.maximum(before, 0)
    start = np.minimum(anchor, n - 2)

    def at(values: Any, places: Any) -> Any:
        return np.take_along_axis(values, places, 0)

    x0, x1, f0, f1 = at(xp, start), at(xp, start + 1), at(fp, start), at(fp, start + 1)
    run = x1 - x0
    distinct = real_part(run) != 0.0  # of samples at one place, the last counts, and at the end there is no line
    slope = np.where(distinct, (f1 - f0) / np.where(distinct, run, 1.0), 0.0)
    here, height = at(xp, anchor), at(fp, anchor)
    found = slope * (x - here) + height
    found = np.where(np.isnan(real_part(found)) & (real_part(x) == real_part(here)), height, found)
    lost = np.isnan(real_part(found))  # where an infinity is in between: from the other end, as in numpy
    found = np.where(lost, slope * (x - x1) + f1, found)
    lost = np.isnan(real_part(found)) & (real_part(f0) == real_part(f1)) & ~np.isnan(real_part(x))
    return np.where(lost, f0, found)


def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """The points and samples of a periodic function: samples sorted, with one more at each end."""
    period = abs(plain(period))
    known = isinstance(real_part(period), float)
    if known and real_part(period) == 0.0:
        raise ValueError("period must be a non-zero value")
    x, xp = x % period, xp % period
    order = np.argsort(real_part(xp))
    xp, fp = np.take_along_axis(xp, order, 0), np.take_along_axis(fp, order, 0)
    end = slice(-1, None)
    xp = np.concatenate([item_of(xp, end) - period, xp, item_of(xp, slice(1)) + period])
    return x, xp, np.concatenate([item_of(fp, end), fp, item_of(fp, slice(1))])


@implements("sinc")
def _sinc(x: Any) -> Any:
    return lift(sinc(), (x,))


# -- differences and integrals -----------------------------------------------------------------------------------------


@implements("diff")
def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    a = plain(a)
    axis = axis_of(axis, rank(a))
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    for _ in range(min(n, shape_of(a)[axis])):
        a = lift(ops.subtract, (lift(arrays.cut(axis, 1, None), (a,)), lift(arrays.cut(axis, 0, -1), (a,))))
    return a


@implements("ediff1d")
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    ends = ([] if x is None else [ravel(x)] for x in (to_begin, to_end))
    before, after = ends
    return concatenate([*before, diff(ravel(ary)), *after])


@implements("gradient")
def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    f = plain(f)
    axes = axes_of(axis, rank(f))
    if edge_order not in (1, 2):
        raise ValueError("np.gradient: edge_order should be 1 or 2")
    if len(varargs) not in (0, 1, len(axes)) or (len(varargs) == 1 < len(axes) and rank(plain(varargs[0]))):
        raise TypeError("np.gradient: give one spacing, or one spacing or vector of coordinates for each axis")
    spacings = [1.0] * len(axes) if not varargs else list(map(plain, varargs))
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    steps = [_step(h, shape_of(f)[a]) for h, a in zip(spacings, axes, strict=True)]
    if any(shape_of(f)[a] < edge_order + 1 for a in axes):
        raise ValueError("np.gradient: each axis should have at least edge_order + 1 elements")
    found = [_slopes(f, h, a, edge_order) for h, a in zip(steps, axes, strict=True)]
    return found[0] if len(axes) == 1 else _TOGETHER(found)


_TOGETHER: Any = type(np.gradient(np.eye(2)))  # a tuple since numpy 2


def _step(h: Any, n: int) -> Any:
    """The spacing, or a vector of the distances of neighbours where coordinates are given that are not equidistant."""
    if not rank(h):
        return h
    if rank(h) != 1 or shape_of(h)[0] != n:
        raise ValueError("np.gradient: the coordinates along an axis should be a vector, as long as the axis")
    distances = np.diff(h)
    if isinstance(distances, np.ndarray) and distances.size and (distances == distances[0]).all():
        return float(distances[0])
    return distances


def _slopes(f: Any, h: Any, axis: int, edge_order: int) -> Any:
    n = shape_of(f)[axis]

    def at(start: int | None, end: int | None) -> Any:
        return item_of(f, (*(slice(None),) * axis, slice(start, end)))

    def column(x: Any) -> Any:
        """A vector of distances, reshaped to lie along the axis."""
        return np.reshape(x, (-1,) + (1,) * (rank(f) - axis - 1))

    def mixed(start: int, *weights: Any) -> Any:
        """A weighted sum of shifted slices, the first from `start` on."""
        found = None
        for k, weight in enumerate(weights):
            part = weight * at(start + k, start + k + 1)
            found = part if found is None else found + part
        return found

    parts = []
    even = not rank(h)
    first, last = (h, h) if even else (item_of(h, 0), item_of(h, n - 2))
    if n > 2:
        if even:
            inside = (at(2, None) - at(None, -2)) / (2.0 * h)
        else:
            p, q = column(item_of(h, slice(None, -1))), column(item_of(h, slice(1, None)))
            inside = -q / (p * (p + q)) * at(None, -2) + (q - p) / (p * q) * at(1, -1) + p / (q * (p + q)) * at(2, None)
        parts.append(inside)
    if edge_order == 1:
        low, high = (at(1, 2) - at(0, 1)) / first, (at(n - 1, None) - at(n - 2, n - 1)) / last
    elif even:
        low = mixed(0, -1.5 / h, 2.0 / h, -0.5 / h)
        high = mixed(n - 3, 0.5 / h, -2.0 / h, 1.5 / h)
    else:
        p, q = first, item_of(h, 1)
        low = mixed(0, -(2.0 * p + q) / (p * (p + q)), (p + q) / (p * q), -p / (q * (p + q)))
        p, q = item_of(h, n - 3), last
        high = mixed(n - 3, q / (p * (p + q)), -(q + p) / (p * q), (2.0 * q + p) / (q * (p + q)))
    return np.concatenate([low, *parts, high], axis)


@implements("trapezoid", "trapz")
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = moveaxis(plain(y), axis, -1)
    width = dx if x is None else diff(x) if rank(plain(x)) == 1 else diff(moveaxis(x, axis, -1))
    return sum_over(width * (item_of(y, (..., slice(1, None))) + item_of(y, (..., slice(None, -1)))), -1) * 0.5
