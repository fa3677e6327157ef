"""Handlers of numpy's least squares: pseudo-inverses, linear systems that are not square, polynomials.

Derivatives are those at constant rank: singular values that numpy cuts off stay cut off. At a matrix without full rank
that is the derivative of what numpy computes, not of the exact pseudo-inverse, which is discontinuous there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import Error
from ...ir.ops import arrays, matrices
from ...ir.ops.arrays import shape_of
from ..kinds import plain, real_part
from ..numbers import lift
from .functions import implements, item_of, rank, whole

_EPS = float(np.finfo(np.float64).eps)


def _cut(a: Any, share: Any) -> Any:
    """The fraction of the largest singular value below which others count as zero."""
    if share is None:
        return max(shape_of(a)[-2:]) * _EPS
    return real_part(plain(share))


@implements("linalg.pinv")
def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    a = plain(a)
    if rank(a) < 2:
        raise np.linalg.LinAlgError(f"{rank(a)}-dimensional array given. Array must be at least two-dimensional")
    if rcond is not None and rtol is not np._NoValue:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        rcond = 1e-15 if rtol is np._NoValue else rtol
    if hermitian:
        a = lift(matrices.symmetric, (a,))
    if not all(shape_of(a)):
        return np.transpose(a, (*range(rank(a) - 2), rank(a) - 1, rank(a) - 2))
    return lift(matrices.pseudo_inverse, (a, _cut(a, rcond)))


@implements("linalg.lstsq")
def _lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    a, b = plain(a), plain(b)
    if rank(a) != 2 or rank(b) not in (1, 2):
        raise np.linalg.LinAlgError("np.linalg.lstsq: a should be a matrix, and b a vector or a matrix")
    (m, n), columns = shape_of(a), b if rank(b) == 2 else np.reshape(b, (-1, 1))
    if shape_of(columns)[0] != m:
        raise np.linalg.LinAlgError("Incompatible dimensions")
    cut = _EPS if isinstance(rcond, int | float) and not 0 <= rcond < 1 else _cut(a, None if rcond == "warn" else rcond)
    s = lift(matrices.singular_values, (a,)) if m and n else np.zeros(0)
    if m and n:
        x = lift(arrays.matmul, (lift(matrices.pseudo_inverse, (a, cut)), columns))
        found: Any = np.sum(real_part(s) > cut * real_part(item_of(s, 0)))
    else:
        x, found = np.zeros((n, shape_of(columns)[1])), 0
    known = isinstance(found, int | np.integer)
    residuals: Any = np.zeros(0)
    if m > n and (not known or found == n):  # compiled, where shapes are known, whatever the rank is
        apart = columns - lift(arrays.matmul, (a, x))
        residuals = np.sum(apart * apart, 0)
    return x if rank(b) == 2 else np.reshape(x, (n,)), residuals, int(found) if known else found, s


@implements("polyfit")
def _polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    x, y = plain(x), plain(y)
    order = whole("np.polyfit", "deg", deg) + 1
    if order < 1:
        raise ValueError("expected deg >= 0")
    if rank(x) != 1 or not shape_of(x)[0]:
        raise TypeError("np.polyfit: x should be a vector that is not empty")
    if rank(y) not in (1, 2) or shape_of(y)[0] != shape_of(x)[0]:
        raise TypeError("np.polyfit: y should be as long as x, with one or two axes")
    count = shape_of(x)[0]
    left = np.vander(x, order)
    if w is not None:
        w = plain(w)
        if rank(w) != 1 or shape_of(w) != shape_of(x):
            raise TypeError("np.polyfit: w should be a vector as long as x")
        column = np.expand_dims(w, 1)
        left, y = left * column, y * (w if rank(y) == 1 else column)
    rcond = count * _EPS if rcond is None else rcond
    scale = np.sqrt(np.sum(left * left, axis=0))
    left = left / scale
    c, residuals, found, s = _lstsq(left, y, rcond)
    c = c / (scale if rank(y) == 1 else np.expand_dims(scale, 1))
    if full:
        return c, residuals, found, s, rcond
    if not cov:
        return c
    base = lift(matrices.inverse, (lift(arrays.matmul, (np.transpose(left), left)),)) / np.outer(scale, scale)
    if isinstance(cov, str) and cov == "unscaled":
        factor: Any = 1.0
    else:
        if count <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        if not shape_of(residuals)[0]:
            raise Error("np.polyfit: the fit does not have full rank, so it has no covariance; give a smaller deg")
        factor = residuals / (count - order)
    return c, base * factor if rank(y) == 1 else np.expand_dims(base, 2) * factor


@implements("polyval")
def _polyval(p: Any, x: Any) -> Any:
    y: Any = 0.0 if len(plain(p)) else np.zeros(shape_of(plain(x)))
    for coefficient in plain(p):
        y = coefficient + y * plain(x)
    return y
