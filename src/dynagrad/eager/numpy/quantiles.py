"""Handlers of numpy's order statistics: quantiles and medians, with weights, and ignoring NaN.

The derivative of an order statistic is that of the elements it is computed from; at ties, of those that a stable sort
puts there.

Extrema, sums and means are in `reductions.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.ops import integers
from ...ir.ops.arrays import shape_of
from ..kinds import plain, real_part
from .functions import axes_of, elements, implements, is_known, item_of, rank

# -- positions ---------------------------------------------------------------------------------------------------------


def _places(x: Any) -> Any:
    """Reals that are whole as integers."""
    return np.asarray(x).astype(np.intp) if is_known(x) else integers.to_integer(x)


def _in_front(a: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """The array with the axes merged into one, which comes first; and these axes."""
    shape = shape_of(a)
    axes = axes_of(axis, len(shape))
    rest = tuple(k for k in range(len(shape)) if k not in axes)
    moved = np.transpose(a, axes + rest) if len(shape) > 1 else a
    return np.reshape(moved, (elements(shape, axes), *(shape[k] for k in rest))), axes


def _with_kept_axes(found: Any, axes: tuple[int, ...], skip: int, keepdims: bool) -> Any:
    return np.expand_dims(found, tuple(k + skip for k in sorted(axes))) if keepdims and axes else found


# -- order statistics --------------------------------------------------------------------------------------------------

Virtual = Callable[[Any, Any], Any]
"""The virtual index of a quantile (Hyndman and Fan 1996): from the number of elements and the share below, from 0."""


def _between(alpha: float, beta: float) -> Virtual:
    return lambda n, q: n * q + (q * (1.0 - alpha - beta) + alpha) - 1.0


def _lower_or_upper(place: Any, low: Callable[[Any, Any], Any]) -> Any:
    """The index below a virtual index where `low` holds, else the one above."""
    below = np.floor(place)
    return np.maximum(np.where(low(place - below, below), below, below + 1.0), 0.0)


CONTINUOUS: dict[str, Virtual] = {
    "linear": lambda n, q: (n - 1) * q,
    "interpolated_inverted_cdf": _between(0.0, 1.0),
    "hazen": _between(0.5, 0.5),
    "weibull": _between(0.0, 0.0),
    "median_unbiased": _between(1.0 / 3.0, 1.0 / 3.0),
    "normal_unbiased": _between(3.0 / 8.0, 3.0 / 8.0),
}
"""Methods that interpolate between two neighbours, and so have a derivative by the share."""
_LOWER = 1.0 if np.quantile(np.arange(4.0), 0.625, method="closest_observation") == 1.0 else 0.0
"""The remainder of the places that halves go down to: they end at even places, counted from 1, or in numpy 1 from 0."""
DISCRETE: dict[str, Virtual] = {
    "inverted_cdf": lambda n, q: _lower_or_upper(n * q - 1.0, lambda rest, below: rest == 0.0),
    "closest_observation": lambda n, q: _lower_or_upper(
        n * q - 1.5, lambda rest, below: (rest == 0.0) & (np.remainder(below, 2.0) == _LOWER)
    ),
    "lower": lambda n, q: np.floor((n - 1) * q),
    "higher": lambda n, q: np.ceil((n - 1) * q),
    "nearest": lambda n, q: np.rint((n - 1) * q),
}
"""Methods that select one element."""
HALFWAY: dict[str, tuple[Virtual, float, float]] = {
    "averaged_inverted_cdf": (lambda n, q: n * q - 1.0, 0.5, 1.0),
    "midpoint": (lambda n, q: (np.floor((n - 1) * q) + np.ceil((n - 1) * q)) * 0.5, 0.0, 0.5),
}
"""Methods that select an element or the mean of two: the weight at a whole virtual index, and at any other."""


def _neighbours(method: str, n: Any, q: Any) -> tuple[Any, Any, Any]:
    """The positions of two elements in order, and the interpolation weight between them."""
    if method in CONTINUOUS:
        virtual = CONTINUOUS[method](n, q)
    elif method in DISCRETE:
        virtual = DISCRETE[method](n, real_part(q))
    elif method in HALFWAY:
        virtual = HALFWAY[method][0](n, real_part(q))
    else:
        names = ", ".join(sorted((*CONTINUOUS, *DISCRETE, *HALFWAY)))
        raise ValueError(f"{method!r:.40} is no method of a quantile; the methods are {names}")
    value = real_part(virtual)
    last = np.maximum(n - 1, 0)
    below = np.minimum(np.maximum(np.floor(value), 0.0), last)
    above = np.where(value < 0.0, 0.0, np.minimum(below + 1.0, last))
    way: Any = virtual - np.floor(value)
    if method in HALFWAY:
        _, at_whole, elsewhere = HALFWAY[method]
        way = np.where(real_part(way) == 0.0, at_whole, elsewhere)
    return below, above, 0.0 if method in DISCRETE else way


def _mixed(a: Any, b: Any, way: Any) -> Any:
    """Linear interpolation from a to b, computed from the nearer end, as in numpy."""
    gap = b - a
    return np.where(real_part(way) >= 0.5, b - gap * (1.0 - way), a + gap * way)


def _quantiles(name: str, a: Any, q: Any, axis: Any, method: str, keepdims: bool, weights: Any, nan: bool) -> Any:
    a, q = plain(a), plain(q)
    front, axes = _in_front(a, axis)
    n, rest = shape_of(front)[0], shape_of(front)[1:]
    if is_known(real_part(q)) and not np.all((real_part(q) >= 0) & (real_part(q) <= 1)):
        raise ValueError(f"{name}: Quantiles must be in the range [0, 1]" + " or [0, 100]" * ("percentile" in name))
    q = q if is_known(real_part(q)) else _within(q)
    if not n:
        if not nan:
            raise IndexError(f"{name}: there is nothing along the axis, so no element to take")
        return _with_kept_axes(np.full(shape_of(q) + rest, np.nan), axes, rank(q), keepdims)
    if weights is not None:
        found = _weighted(name, a, front, real_part(q), axis, axes, method, real_part(weights), nan)
        return _with_kept_axes(found, axes, rank(q), keepdims)
    ordered = np.sort(front, axis=0)
    last = item_of(ordered, n - 1)
    shape = shape_of(q)
    if nan:
        count = np.sum(real_part(front) == real_part(front), axis=0)  # NaN is sorted to the end
        wide = np.reshape(q, shape + (1,) * len(rest))
        below, above, way = _neighbours(method, count, wide)
        full = shape + rest
        a_, b_ = (_elements_at(ordered, np.broadcast_to(p, full), rest) for p in (below, above))
        found = _mixed(a_, b_, np.broadcast_to(way, full))
    else:
        below, above, way = _neighbours(method, n, q)
        if is_known(below) and np.isnan(below).any():
            raise ValueError(f"{name}: a share is NaN")
        a_, b_ = (np.take(ordered, _places(p), axis=0) for p in (below, above))
        way = np.reshape(way, shape + (1,) * len(rest)) if shape_of(way) else way
        found = np.where(np.isnan(real_part(last)), math.nan, a_ if method in DISCRETE else _mixed(a_, b_, way))
        found = np.broadcast_to(found, shape + rest) if shape_of(found) != shape + rest else found
    return _with_kept_axes(found, axes, rank(q), keepdims)


def _within(q: Any) -> Any:
    """Shares that are known only as the function runs: one outside of [0, 1] is a position that is not there."""
    flat = np.reshape(q, (-1,))
    places = np.arange(shape_of(flat)[0])
    return np.reshape(np.take(flat, np.where((flat >= 0.0) & (flat <= 1.0), places, -1 - len(places))), shape_of(q))


def _elements_at(ordered: Any, places: Any, rest: tuple[int, ...]) -> Any:
    """Elements along the first axis, at positions that differ along the other axes."""
    shape = shape_of(places)
    flat = np.reshape(places, (-1, *rest))
    return np.reshape(np.take_along_axis(ordered, _places(flat), 0), shape)


def _weighted(
    name: str, a: Any, front: Any, q: Any, axis: Any, axes: tuple[int, ...], method: str, weights: Any, nan: bool
) -> Any:
    """The first element in order at which the cumulative weight reaches a share of the total."""
    if method != "inverted_cdf":
        raise ValueError(f"{name}: of the methods only 'inverted_cdf' takes weights, and not {method!r:.40}")
    shape, weights = shape_of(a), plain(weights)
    if shape_of(weights) != shape:
        if axis is None or shape_of(weights) != tuple(shape[k] for k in axes):
            raise ValueError(f"{name}: weights= should have the shape of the array, or of its axes")
        weights = np.transpose(weights, tuple(int(k) for k in np.argsort(axes)))
        weights = np.reshape(weights, tuple(m if k in axes else 1 for k, m in enumerate(shape)))
    weights = _in_front(np.broadcast_to(weights, shape), axes)[0]
    value = real_part(front)
    lost = np.isnan(value)
    order, rest = np.argsort(value, axis=0), shape_of(front)[1:]
    weights = np.take_along_axis(np.where(lost, 0.0, weights) if nan else weights, order, 0)
    total = np.cumsum(weights, 0)
    if is_known(total) and not np.all(np.isfinite(total[-1]) & (total[-1] > 0.0)):
        raise ValueError(f"{name}: weights are NaN, infinite, or all zero")
    below = total / item_of(total, slice(-1, None))
    below = np.where(below == 0.0, -1.0, below)  # elements of weight zero do not count
    wide = np.reshape(below, (shape_of(front)[0], *(1,) * rank(q), *rest))
    place = np.sum(wide < np.reshape(q, shape_of(q) + (1,) * len(rest)), axis=0)
    most = np.sum(~lost, axis=0) if nan else shape_of(front)[0]
    found = _elements_at(np.take_along_axis(front, order, 0), np.maximum(np.minimum(place, most - 1), 0), rest)
    return np.where(np.all(lost, axis=0) if nan else np.any(lost, axis=0), math.nan, found)


def _quantile(name: str) -> None:
    hundredths, without_nan = "percentile" in name, name.startswith("nan")

    @implements(name)
    def handler(
        a: Any,
        q: Any,
        axis: Any = None,
        *,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        weights: Any = None,
    ) -> Any:
        share = plain(q) / 100.0 if hundredths else q
        return _quantiles(f"np.{name}", a, share, axis, method, keepdims, weights, without_nan)


for _name in ("quantile", "percentile", "nanquantile", "nanpercentile"):
    _quantile(_name)


@implements("median")
def _median(a: Any, axis: Any = None, *, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    front, axes = _in_front(plain(a), axis)
    n = shape_of(front)[0]
    if not n:
        return _with_kept_axes(np.full(shape_of(front)[1:], math.nan), axes, 0, keepdims)
    ordered = np.sort(front, axis=0)
    found = item_of(ordered, n // 2)
    if n % 2 == 0:
        found = (item_of(ordered, n // 2 - 1) + found) * 0.5
    found = np.where(np.isnan(real_part(item_of(ordered, n - 1))), math.nan, found)
    return _with_kept_axes(found, axes, 0, keepdims)


@implements("nanmedian")
def _nanmedian(a: Any, axis: Any = None, *, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    front, axes = _in_front(plain(a), axis)
    n, rest = shape_of(front)[0], shape_of(front)[1:]
    if not n:
        return _with_kept_axes(np.full(rest, math.nan), axes, 0, keepdims)
    ordered = np.sort(front, axis=0)
    count = np.sum(real_part(front) == real_part(front), axis=0)
    low, high = (np.maximum(p, 0) for p in ((count - 1) // 2, np.minimum(count // 2, n - 1)))
    a_, b_ = _elements_at(ordered, low, rest), _elements_at(ordered, high, rest)
    found = np.where(low == high, a_, (a_ + b_) * 0.5)
    return _with_kept_axes(found, axes, 0, keepdims)
