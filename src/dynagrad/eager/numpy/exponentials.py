"""`logsumexp`, `softmax` and `log_softmax` of `dg.special`, each one operation with derivatives of every order.

They are defined at infinities: an infinite maximum has all the weight, and several equal ones share it. A sum of
nothing, where all are -inf, has no shares: the gradient of `logsumexp` is 0 there. So gradients of sums in the log
domain are never NaN.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.buffers import empty
from ...ir.operation import Operation
from ...ir.ops import arrays, reductions
from ...ir.ops import scalars as ops
from ...ir.ops.arrays import shape_of, surely_finite
from ..kinds import plain, real_part
from ..numbers import lift
from .functions import axes_of


def _shifted(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """The maximum over axes, and a new array of the elements less it: 0 at the maximum, even where it is infinite."""
    top, rest = np.maximum.reduce(x, axis=axes, keepdims=True), empty(np.shape(x))
    if surely_finite(top):
        return top, np.subtract(x, top, out=rest)
    with np.errstate(invalid="ignore"):
        np.subtract(x, top, out=rest)
    np.copyto(rest, 0.0, where=np.equal(x, top))
    return top, rest


def _weights(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """The maximum over axes, a new array of the exponentials of the elements less it, and the sum of these."""
    top, rest = _shifted(x, axes)
    weights = np.exp(rest, out=rest)
    return top, weights, np.add.reduce(weights, axis=axes, keepdims=True)


_NONE: tuple[Any, Any, Any] = (lambda: None, None, None)
_LAST: dict[Any, tuple[Any, Any, Any]] = {}
"""The exponentials and the sum of the last result, by axes, which its derivative reuses.

Kept only for read-only arrays, as numbers hold them, and no longer than these live.
"""


@arrays.remember
def _logsumexp(axes: tuple[int, ...], keepdims: bool) -> Operation:
    key = axes, keepdims

    def value(x: Any) -> Any:
        top, weights, total = _weights(x, axes)
        if type(x) is np.ndarray and not x.flags.writeable and surely_finite(top):
            _LAST[key] = weakref.ref(x, lambda _: _LAST.pop(key, None)), weights, total
        found = top + np.log(total)
        return arrays.single(found if keepdims else found.squeeze(axes))

    def shares(x: Any) -> Any:
        of, weights, total = _LAST.pop(key, _NONE)  # popped, so that the array may be overwritten
        return np.divide(weights, total, out=weights) if of() is x else _shares(axes)(x)

    def adjoint(delta: Any, y: Any, x: Any) -> Any:
        return reductions.spread_over(shares(x), delta, axes, keepdims)

    return arrays.several(
        "logsumexp",
        value,
        (lambda d, y, x: reductions.total(axes, keepdims)(ops.multiply(d, _shares(axes)(x))),),
        (adjoint,),
        code=("logsumexp", axes, keepdims),
    )


@arrays.remember
def _weighted(axes: tuple[int, ...], keepdims: bool) -> Operation:
    """`logsumexp` of a with weights, which need not be positive."""

    def value(a: Any, b: Any) -> Any:
        top, rest = _shifted(np.where(np.asarray(b) != 0.0, a, -math.inf), axes)
        with np.errstate(all="ignore"):
            found = top + np.log(
                np.sum(np.where(np.asarray(b) != 0.0, b * np.exp(rest), 0.0), axis=axes, keepdims=True)
            )
        return arrays.single(found if keepdims else np.squeeze(found, axes))

    def slope(y: Any, a: Any) -> Any:
        total = reductions.spread(y, axes, keepdims, shape_of(a))
        with np.errstate(all="ignore"):
            nothing = ops.logical_and(ops.equal(a, -math.inf), ops.equal(total, -math.inf))
            return ops.exp(ops.where(nothing, -math.inf, ops.subtract(a, total)))

    def part(y: Any, a: Any, b: Any) -> Any:
        share = slope(y, a)
        nothing = ops.logical_and(ops.equal(b, 0.0), ops.equal(share, math.inf))
        return ops.where(nothing, 0.0, ops.multiply(b, share))

    def sum_of(x: Any) -> Any:
        return reductions.total(axes, keepdims)(x)

    def spread(delta: Any, a: Any) -> Any:
        return reductions.spread(delta, axes, keepdims, shape_of(a))

    return arrays.several(
        "weighted_logsumexp",
        value,
        (
            lambda d, y, a, b: sum_of(ops.multiply(d, part(y, a, b))),
            lambda d, y, a, b: sum_of(ops.multiply(d, slope(y, a))),
        ),
        (
            lambda delta, y, a, b: ops.multiply(spread(delta, a), part(y, a, b)),
            lambda delta, y, a, b: ops.multiply(spread(delta, a), slope(y, a)),
        ),
    )


@arrays.remember
def _softmax(axes: tuple[int, ...]) -> Operation:
    def value(x: Any) -> Any:
        _, weights, total = _weights(x, axes)
        return arrays.single(np.divide(weights, total, out=weights))

    return _of_shares("softmax", axes, value)


@arrays.remember
def _shares(axes: tuple[int, ...]) -> Operation:
    """The derivative of `logsumexp`: softmax, and zeros where all elements are -inf."""

    def value(x: Any) -> Any:
        top, weights, total = _weights(x, axes)
        np.divide(weights, total, out=weights)
        if not surely_finite(top):
            weights *= top > -math.inf
        return arrays.single(weights)

    return _of_shares("shares", axes, value)


def _of_shares(name: str, axes: tuple[int, ...], value: Callable[[Any], Any]) -> Operation:

    def change(d: Any, y: Any, x: Any) -> Any:
        part = ops.multiply(y, d)
        whole = arrays.broadcast_to(shape_of(y))(reductions.total(axes, True)(part))
        return ops.subtract(part, ops.multiply(y, whole))

    return arrays.several(name, value, (change,), (change,), code=(name, axes))


@arrays.remember
def _log_softmax(axes: tuple[int, ...]) -> Operation:
    def value(x: Any) -> Any:
        rest = _shifted(x, axes)[1]
        return arrays.single(rest - np.log(np.sum(np.exp(rest), axis=axes, keepdims=True)))

    def whole(x: Any) -> Any:
        return arrays.broadcast_to(shape_of(x))(reductions.total(axes, True)(x))

    return arrays.several(
        "log_softmax",
        value,
        (lambda d, y, x: ops.subtract(d, whole(ops.multiply(_softmax(axes)(x), d))),),
        (lambda delta, y, x: ops.subtract(delta, ops.multiply(_softmax(axes)(x), whole(delta))),),
        code=("log_softmax", axes),
    )


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    """log(sum(b * exp(a))) over axes, without overflow; its gradient is the softmax.

    All -inf gives -inf, and a gradient of zeros: a sum of nothing has no shares. Weights may be zero or negative; the
    result for a negative sum is NaN. Shapes are those of `np.sum`. An axis out of range is an error.

    >>> logsumexp(np.array([1000.0, 1000.0]))
    1000.6931471805599
    """
    a = plain(a)
    if b is None:
        return lift(_logsumexp(axes_of(axis, len(shape_of(a))), bool(keepdims)), (a,))
    b = plain(b)
    if np.all(real_part(b) > 0.0):
        return logsumexp(lift(ops.add, (a, lift(ops.log, (b,)))), axis, None, keepdims)
    shape = np.broadcast_shapes(shape_of(a), shape_of(b))
    a, b = (x if shape_of(x) == shape else lift(arrays.broadcast_to(shape), (x,)) for x in (a, b))
    return lift(_weighted(axes_of(axis, len(shape)), bool(keepdims)), (a, b))


def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)) over axes. Infinite maxima share the weight equally, and so do elements that are all -inf.

    >>> softmax(np.array([0.0, -math.inf]))
    array([1., 0.])
    """
    x = plain(x)
    return lift(_softmax(axes_of(axis, len(shape_of(x)))), (x,))


def log_softmax(x: Any, axis: Any = None) -> Any:
    """log(softmax(x)) over axes, without underflow.

    >>> log_softmax(np.array([0.0, -2000.0]))
    array([    0., -2000.])
    """
    x = plain(x)
    return lift(_log_softmax(axes_of(axis, len(shape_of(x)))), (x,))
