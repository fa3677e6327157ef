"""Handlers of numpy's reductions and cumulative sums, and of their versions that ignore NaN.

Order statistics are in `quantiles.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.ops import arrays, reductions
from ...ir.ops import scalars as ops
from ...ir.ops.arrays import shape_of
from ..kinds import plain, real_part
from ..numbers import lift
from .arranging import concatenate, diagonal
from .functions import Handler, axes_of, axis_of, elements, implements, rank
from .shapes import ravel, reshape, transpose

# -- reductions --------------------------------------------------------------------------------------------------------


@implements("sum")
def sum_over(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = plain(a)
    return lift(reductions.total(axes_of(axis, rank(a)), bool(keepdims)), (a,))


@implements("prod")
def _prod(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = plain(a)
    return lift(reductions.product(axes_of(axis, rank(a)), bool(keepdims)), (a,))


@implements("max", "amax")
def _max(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = plain(a)
    return lift(reductions.extreme(True, axes_of(axis, rank(a)), bool(keepdims)), (a,))


@implements("min", "amin")
def _min(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = plain(a)
    return lift(reductions.extreme(False, axes_of(axis, rank(a)), bool(keepdims)), (a,))


@implements("ptp")
def _ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return _max(a, axis, keepdims=keepdims) - _min(a, axis, keepdims=keepdims)


@implements("mean")
def _mean(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = plain(a)
    shape = shape_of(a)
    axes = axes_of(axis, len(shape))
    total = lift(reductions.total(axes, bool(keepdims)), (a,))
    return lift(ops.divide, (total, float(elements(shape, axes))))


@implements("average")
def _average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Any:
    if weights is None:
        return _mean(a, axis, keepdims=keepdims)
    a, weights = plain(a), plain(weights)
    if shape_of(weights) != shape_of(a):
        weights = _weights_along(axis, shape_of(a), weights)
    both = lift(ops.multiply, (a, weights))
    whole = lift(arrays.broadcast_to(shape_of(both)), (weights,))
    return sum_over(both, axis, keepdims=keepdims) / sum_over(whole, axis, keepdims=keepdims)


def _weights_along(axis: Any, shape: tuple[int, ...], weights: Any) -> Any:
    """Weights along some axes, in the order in which these are named, reshaped to broadcast with the array."""
    if axis is None:
        raise TypeError("np.average: weights of another shape than the array need an axis")
    axes = axes_of(axis, len(shape))
    if shape_of(weights) != tuple(shape[i] for i in axes):
        raise ValueError("np.average: the weights should have the shape of the array along the axes")
    inside = transpose(weights, [int(i) for i in np.argsort(axes)])
    return reshape(inside, tuple(n if i in axes else 1 for i, n in enumerate(shape)))


@implements("var")
def _var(a: Any, axis: Any = None, *, ddof: float = 0, correction: float | None = None, keepdims: bool = False) -> Any:
    a = plain(a)
    count = elements(shape_of(a), axes_of(axis, rank(a))) - (ddof if correction is None else correction)
    deviations = lift(ops.subtract, (a, _mean(a, axis, keepdims=True)))
    squares = lift(ops.multiply, (deviations, deviations))
    return lift(ops.divide, (sum_over(squares, axis, keepdims=keepdims), float(max(count, 0))))


@implements("std")
def _std(a: Any, axis: Any = None, *, ddof: float = 0, correction: float | None = None, keepdims: bool = False) -> Any:
    a = plain(a)
    found = _var(a, axis, ddof=ddof, correction=correction, keepdims=keepdims)
    if elements(shape_of(a), axes_of(axis, rank(a))) == 1:
        return found  # constantly 0, so its root has derivative 0 and no kink
    return lift(ops.sqrt, (found,))


@implements("cumsum")
def _cumsum(a: Any, axis: Any = None) -> Any:
    a = ravel(a) if axis is None else plain(a)
    return lift(reductions.cumsum(axis_of(axis or 0, rank(a))), (a,))


@implements("cumprod")
def _cumprod(a: Any, axis: Any = None) -> Any:
    a = ravel(a) if axis is None else plain(a)
    return lift(reductions.cumprod(axis_of(axis or 0, rank(a))), (a,))


def _cumulative(name: str, function: Handler, neutral: float) -> None:
    @implements(name)
    def handler(x: Any, *, axis: int | None = None, include_initial: bool = False) -> Any:
        x = plain(x)
        if axis is None and rank(x) != 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        along = axis_of(0 if axis is None else axis, rank(x))
        found = function(x, along)
        if not include_initial:
            return found
        shape = shape_of(x)
        return concatenate([np.full((*shape[:along], 1, *shape[along + 1 :]), neutral), found], along)


_cumulative("cumulative_sum", _cumsum, 0.0)
_cumulative("cumulative_prod", _cumprod, 1.0)


@implements("trace")
def _trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return sum_over(diagonal(a, offset, axis1, axis2), -1)


@implements("linalg.trace")
def _linalg_trace(x: Any, *, offset: int = 0) -> Any:
    return _trace(x, offset, -2, -1)


# -- ignoring NaN ------------------------------------------------------------------------------------------------------


def _without(name: str, function: Any, neutral: float) -> None:
    @implements(name)
    def handler(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        a = plain(a)
        return function(np.where(np.isnan(real_part(a)), neutral, a), axis, keepdims=keepdims)


_without("nansum", np.sum, 0.0)
_without("nanprod", np.prod, 1.0)


def _running(name: str, function: Any, neutral: float) -> None:
    @implements(name)
    def handler(a: Any, axis: Any = None) -> Any:
        a = plain(a)
        return function(np.where(np.isnan(real_part(a)), neutral, a), axis)


_running("nancumsum", np.cumsum, 0.0)
_running("nancumprod", np.cumprod, 1.0)


def _chosen(name: str, function: Any, neutral: float) -> None:
    @implements(name)
    def handler(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        a = plain(a)
        lost = np.isnan(real_part(a))
        found = function(np.where(lost, neutral, a), axis, keepdims=keepdims)
        return np.where(np.all(lost, axis, keepdims=keepdims), math.nan, found)


_chosen("nanmax", np.max, -math.inf)
_chosen("nanmin", np.min, math.inf)


def _there(a: Any, axis: Any, keepdims: bool) -> tuple[Any, Any]:
    """Where elements are not NaN, and how many along axes."""
    there = ~np.isnan(real_part(a))
    return there, np.sum(there, axis, keepdims=keepdims)


def _share(total: Any, count: Any) -> Any:
    """A sum divided by a count; NaN where the count is 0."""
    return np.where(count > 0, total / np.where(count > 0, count, 1), math.nan)


@implements("nanmean")
def _nanmean(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = plain(a)
    there, count = _there(a, axis, keepdims)
    return _share(np.sum(np.where(there, a, 0.0), axis, keepdims=keepdims), count)


@implements("nanvar")
def _nanvar(
    a: Any, axis: Any = None, *, ddof: float = 0, correction: float | None = None, keepdims: bool = False
) -> Any:
    a = plain(a)
    there, count = _there(a, axis, keepdims)
    deviations = np.where(there, a - _nanmean(a, axis, keepdims=True), 0.0)
    total = np.sum(deviations * deviations, axis, keepdims=keepdims)
    return _share(total, count - (ddof if correction is None else correction))


@implements("nanstd")
def _nanstd(
    a: Any, axis: Any = None, *, ddof: float = 0, correction: float | None = None, keepdims: bool = False
) -> Any:
    a = plain(a)
    found = _nanvar(a, axis, ddof=ddof, correction=correction, keepdims=keepdims)
    alone = elements(shape_of(a), axes_of(axis, rank(a))) == 1
    return found if alone else lift(ops.sqrt, (found,))  # as in `np.std`
