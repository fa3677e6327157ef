"""Determinants of matrices and stacks of matrices; their derivatives, which are cofactors; and derivatives of these.

The determinant is a polynomial, so it has derivatives of all orders at singular matrices too, and nothing here divides
by a number that may be zero there. The logarithm of its absolute value has none: `NotDifferentiable`. Solves and
factorisations for other purposes are in `matrices.py`.
"""

from __future__ import annotations

import functools
import itertools
import math
import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import NotDifferentiable
from ..operation import Operation
from ..types import array
from . import scalars as ops
from . import series as power_series
from .arrays import (
    diagonal,
    getitem,
    insert_axes,
    matmul,
    on_diagonal,
    remember,
    several,
    shape_of,
    single,
    swap,
    triangle,
)
from .matrices import inverse_for_rule, thin_svd
from .reductions import extreme, total


def _entries(x: Any) -> Any:
    """The sum of the entries of each matrix."""
    n = len(shape_of(x))
    return total((n - 2, n - 1))(x)


def _scaled(factor: Any, x: Any) -> Any:
    """Each matrix times a number of its own."""
    n = len(shape_of(factor))
    return ops.multiply(insert_axes(factor, n, n + 1) if n else factor, x)


def _products_without(s: Any, count: int) -> Any:
    """The products of all numbers but `count` of them, for each choice of these; 0 where one is chosen twice.

    >>> _products_without(np.array([2.0, 3.0, 5.0]), 2)
    array([[0., 5., 3.],
           [5., 0., 2.],
           [3., 2., 0.]])
    """
    n = s.shape[-1]
    between = np.zeros((*s.shape[:-1], n + 2, n + 2))  # the product of all numbers between two of them
    for i in range(n + 1):
        between[..., i, i + 1] = 1.0
        between[..., i, i + 2 :] = np.cumprod(s[..., i:], -1)
    chosen = [0, *np.sort(np.indices((n,) * count), axis=0) + 1, n + 1]
    found = between[..., chosen[0], chosen[1]]
    for a, b in itertools.pairwise(chosen[1:]):
        found = found * between[..., a, b]
    return found


def _factors(a: Any) -> tuple[Any, Any, Any]:
    """Rank-revealing factors x, d, y with a = x diag(d) y, by Gaussian elimination with complete pivoting.

    x and y are unit triangular up to the order of their rows or columns, and well conditioned; only d may be singular.
    (Demmel et al. 1999, "Computing the singular value decomposition with high relative accuracy".)
    """
    n, f = len(a), np.array(a)
    rows, columns = np.arange(n), np.arange(n)
    for k in range(n):
        i, j = divmod(int(np.argmax(np.abs(f[k:, k:]))), n - k)
        if i:
            f[[k, k + i]], rows[[k, k + i]] = f[[k + i, k]], rows[[k + i, k]]
        if j:
            f[:, [k, k + j]], columns[[k, k + j]] = f[:, [k + j, k]], columns[[k + j, k]]
        if f[k, k] == 0.0 or math.isnan(f[k, k]):
            break  # and so are all remaining elements
        f[k + 1 :, k] /= f[k, k]
        f[k + 1 :, k + 1 :] -= np.outer(f[k + 1 :, k], f[k, k + 1 :])
        f[k, k + 1 :] /= f[k, k]
    x, y = np.zeros((n, n)), np.zeros((n, n))
    x[rows], y[:, columns] = np.tril(f, -1) + np.eye(n), np.triu(f, 1) + np.eye(n)
    return x, np.diag(f).copy(), y


def _mixed_value(directions: Sequence[Any], a: Any) -> Any:
    """The mixed derivatives of the cofactors of each matrix, computed from its factors; see `mixed_cofactors`."""
    if a.ndim > 2:
        flat = [np.broadcast_to(x, a.shape).reshape(-1, *a.shape[-2:]) for x in (*directions, a)] if a.size else []
        found = [_mixed_value(xs[:-1], xs[-1]) for xs in zip(*flat, strict=True)]
        return np.stack(found).reshape(a.shape) if found else np.zeros(a.shape)
    n, count = len(a), len(directions)
    if count >= n:
        return np.zeros(a.shape)
    x, s, y = _factors(a)
    back, across = np.linalg.inv(x), np.linalg.inv(y)
    inside = [_products_without(s, count + 1), *(back @ d @ across for d in directions)]
    letters, total = string.ascii_letters[: count + 1], np.zeros(a.shape)
    for columns in itertools.permutations(
        range(count + 1)
    ):  # Leibniz formula: one entry of each matrix, in its own row
        inversions = sum(i > j for i, j in itertools.combinations(columns, 2))
        names = [letters, *(letters[i] + letters[j] for i, j in enumerate(columns) if i)]
        column = letters[columns[0]].replace("a", "")  # "" on the diagonal
        part = np.einsum(f"{','.join(names)}->a{column}", *inside, optimize=count > 1)
        part = part if column else np.diag(part)
        total = total - part if inversions % 2 else total + part
    return np.linalg.det(x) * np.linalg.det(y) * (back.T @ total @ across.T)


def _too_high(n: int) -> list[Any] | None:
    """The series rule of cofactors: None, which is to follow the tangents, up to an order; an error beyond it."""
    if n > _MOST:
        raise NotDifferentiable(
            f"derivatives of order {n} of the gradient of a determinant are not available; up to {_MOST} they are, "
            "and those of the determinant itself are of any order"
        )
    return None


@remember
def mixed_cofactors(count: int) -> Operation:
    """The matrix M(d_1, ..., d_count, a) with <M, d> the mixed derivative of det at a along d, d_1, ..., d_count.

    With a = x diag(s) y, where only s may be singular, M is made of products of all elements of s but count + 1. So
    nothing is divided by, and singular matrices need no special case. M is symmetric in all directions, so each tangent
    rule is its own adjoint.
    """

    def by_direction(i: int) -> Callable[..., Any]:
        return lambda d, y, *xs: mixed_cofactors(count)(*xs[:i], d, *xs[i + 1 :])

    rules = (*map(by_direction, range(count)), lambda d, y, *xs: mixed_cofactors(count + 1)(*xs[:-1], d, xs[-1]))

    def series(n: int, y: Any, *lists: list[Any]) -> list[Any] | None:
        if count >= shape_of(y)[-1]:
            return [y]
        return _too_high(n)

    code = ("mixed_cofactors", count)
    return several("mixed_cofactors", lambda *xs: _mixed_value(xs[:-1], xs[-1]), rules, rules, series, code=code)


def _cofactors_value(a: Any) -> Any:
    """The determinant times the transposed inverse; for ill-conditioned matrices from rank-revealing factors."""
    if a.ndim > 2:
        flat = a.reshape(-1, *a.shape[-2:]) if a.size else ()
        return np.stack([_cofactors_value(one) for one in flat]).reshape(a.shape) if len(flat) else np.zeros(a.shape)
    if len(a) > 1:
        try:
            inverted = np.linalg.inv(a)
        except np.linalg.LinAlgError:
            return _mixed_value((), a)
        det = float(np.linalg.det(a))
        if _TINY < abs(det) < math.inf and np.vdot(a, a) * np.vdot(inverted, inverted) < _REGULAR**2:
            return det * inverted.T
    return _mixed_value((), a)


_REGULAR = 1e8  # the largest condition number (in the Frobenius norm) for which the inverse is used
_TINY = 1e-290  # the least determinant for which it is used: below, digits may be lost to underflow

cofactors: Operation = several(
    "cofactors",
    _cofactors_value,
    (lambda d, y, a: mixed_cofactors(1)(d, a),),
    (lambda delta, y, a: mixed_cofactors(1)(delta, a),),
    lambda n, y, a: [y] if shape_of(y)[-1] == 0 else _too_high(n),
    code=("cofactors",),
)
"""The matrix of cofactors: the derivative of the determinant, at singular matrices too."""

_MOST = 5  # the cost of the Leibniz formula grows as the factorial of the order


def _step(name: str, value: Callable[[Any], Any]) -> Operation:
    """A function of a matrix that is treated as a constant by derivatives."""
    return Operation(name, (array,), array, value, (None,), "", code=(name,))


_left_basis = _step("left_basis", lambda a: np.swapaxes(thin_svd(a)[0], -1, -2))
_right_basis = _step("right_basis", lambda a: thin_svd(a)[2])
_orientation = _step("orientation", lambda a: single(np.linalg.det(thin_svd(a)[0]) * np.linalg.det(thin_svd(a)[2])))


def _even(a: list[Any]) -> tuple[list[Any], Any]:
    """Equilibration: rows, then columns, divided by powers of two, so that the largest element of each is near 1; and
    the sum of the exponents."""
    exponents, last = 0.0, len(shape_of(a[0])) - 1
    for axis in (last, last - 1):
        sizes = functools.reduce(ops.maximum, map(ops.absolute, a))
        largest = extreme(True, (axis,), True)(sizes)
        in_range = ops.where(ops.less(largest, math.inf), ops.where(ops.greater(largest, 0.0), largest, 1.0), 1.0)
        exponent = ops.floor(ops.log2(in_range))
        a = [ops.multiply(ops.exp2(ops.negative(exponent)), c) for c in a]
        exponents = ops.add(exponents, total((last - 1, last))(exponent))
    return a, exponents


def _determinant_series(n: int, y: Any, a: list[Any]) -> list[Any]:
    """Division-free, so accurate near singular matrices, and exactly zero beyond the degree of the polynomial.

    (Bird 2011, "A simple division-free algorithm for computing determinants".) It runs in a basis in which a[0] is
    diagonal and non-negative, so that products of its elements do not cancel. The change of basis mixes rows and
    columns, so they are equilibrated first.
    """
    size = shape_of(a[0])[-1]
    a, exponents = _even(a) if size else (a, 0.0)
    left, right = _left_basis(a[0]), _right_basis(a[0])
    matrix = [matmul(matmul(left, c), right) for c in a]
    later = np.triu(np.ones((size, size)), 1)

    def next_of(x: Any) -> Any:
        """Bird's mu: the strict upper triangle, and on the diagonal minus the sum of the later diagonal elements."""
        on = diagonal()(x)
        sums = total((len(shape_of(on)),))(ops.multiply(later, insert_axes(on, len(shape_of(on)) - 1)))
        return ops.subtract(triangle(False, 1)(x), on_diagonal(0, shape_of(x))(sums))

    found = matrix
    for _ in range(size - 1):
        factor = [next_of(c) for c in found]
        found = power_series.multilinear(lambda p, q: matmul(p, q))(n, matmul(factor[0], matrix[0]), factor, matrix)
    sign = ops.multiply((-1.0) ** (size - 1), _orientation(a[0]))
    half = ops.floor(ops.multiply(0.5, exponents))  # scaled in two steps, since one factor may be out of range
    first, second = ops.multiply(sign, ops.exp2(half)), ops.exp2(ops.subtract(exponents, half))
    corner = getitem((..., 0, 0))
    return [y, *(ops.multiply(second, ops.multiply(first, corner(c))) for c in found[1:])]


determinant: Operation = several(
    "det",
    lambda a: single(np.linalg.det(a)),
    (lambda d, y, a: _entries(ops.multiply(cofactors(a), d)),),
    (lambda delta, y, a: _scaled(delta, cofactors(a)),),
    _determinant_series,
    code=("det",),
)

log_determinant: Operation = several(
    "logabsdet",
    lambda a: single(np.linalg.slogdet(a)[1]),
    (lambda d, y, a: _entries(ops.multiply(swap(inverse_for_rule(a)), d)),),
    (lambda delta, y, a: _scaled(delta, swap(inverse_for_rule(a))),),
    code=("logabsdet",),
)
sign_of_determinant: Operation = Operation(
    "slogdet_sign", (array,), array, lambda a: single(np.linalg.slogdet(a)[0]), (None,), "", code=("slogdet_sign",)
)
