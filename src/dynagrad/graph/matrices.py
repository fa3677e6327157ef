"""Operations of linear algebra, on matrices and on stacks of them: `shape[:-2]` counts matrices.

Rules call operations only, as everywhere. What numpy computes from one triangle of a matrix (`cholesky`, `eigh`) is
here a function of a symmetric matrix, and `symmetric` says which triangle counts, so derivatives are those of numpy's
functions: zero for the triangle that is not read. A decomposition with several results is an operation for each, whose
rules call the others; the last decomposition made is remembered, so that nothing is computed twice.

Where a derivative does not exist the rule raises `NotDifferentiable`: vectors of equal eigenvalues or singular values,
the log of the determinant of a singular matrix, a factorisation of a matrix without full rank. (Giles 2008, "Collected
matrix derivative results for forward and reverse mode algorithmic differentiation", sections 2 and 3.)
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import NotDifferentiable
from . import operations as ops
from . import series as power_series
from .arrays import (
    diagonal,
    insert_axes,
    linear,
    matmul,
    on_diagonal,
    several,
    shape_of,
    single,
    sum_to,
    swap,
    total,
    triangle,
)
from .operation import Operation
from .types import array


def _entries(x: Any) -> Any:
    """The sum of the entries of each matrix."""
    n = len(shape_of(x))
    return total((n - 2, n - 1))(x)


def _scaled(factor: Any, x: Any) -> Any:
    """Each matrix times its own number."""
    n = len(shape_of(factor))
    return ops.multiply(insert_axes(factor, n, n + 1) if n else factor, x)


def _columns(x: Any, factors: Any) -> Any:
    """Each column times its own number."""
    return ops.multiply(x, insert_axes(factors, len(shape_of(factors)) - 1))


def _remembered(decompose: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Keep the last result, if its argument is an array that nobody can have changed."""
    last: tuple[Any, Any] = (lambda: None, None)

    def call(x: Any) -> Any:
        nonlocal last
        of, result = last
        if of() is not x:
            result = decompose(x)
            if not x.flags.writeable and x.base is None:
                last = (weakref.ref(x), result)
        return result

    return call


# -- inverses ----------------------------------------------------------------------------------------------------------


def _solve_left(delta: Any, y: Any, a: Any, b: Any) -> Any:
    return sum_to(shape_of(a))(ops.negative(matmul(solve(swap(a), delta), swap(y))))


solve: Operation = several(
    "solve",
    np.linalg.solve,  # of two matrices: the columns of b one by one
    (lambda d, y, a, b: ops.negative(solve(a, matmul(d, y))), lambda d, y, a, b: solve(a, d)),
    (_solve_left, lambda delta, y, a, b: sum_to(shape_of(b))(solve(swap(a), delta))),
    lambda n, y, a, b: power_series.solve(n, y, a, b, solve, matmul),
)


def _inverse(name: str, value: Callable[[Any], Any]) -> Operation:
    return several(
        name,
        value,
        (lambda d, y, a: ops.negative(matmul(matmul(y, d), y)),),
        (lambda delta, y, a: ops.negative(matmul(matmul(swap(y), delta), swap(y))),),
    )


def _inverse_or_none(a: Any) -> Any:
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError as error:
        raise NotDifferentiable(
            "the derivative of this factorisation or determinant does not exist at a singular matrix"
        ) from error


inverse: Operation = _inverse("inv", np.linalg.inv)
inverse_for_rule: Operation = _inverse("inv", _inverse_or_none)

# -- determinants ------------------------------------------------------------------------------------------------------


def _determinant(value: Callable[[Any], Any]) -> Operation:
    return several(
        "det",
        value,
        (lambda d, y, a: _entries(ops.multiply(cofactors(a), d)),),
        (lambda delta, y, a: _scaled(delta, cofactors(a)),),
    )


def _nonzero(a: Any) -> Any:
    found = np.linalg.det(a)
    if not np.all(found):
        raise NotDifferentiable("second derivatives of the determinant of a singular matrix are not available")
    return single(found)


def _cofactors_value(a: Any) -> Any:
    u, s, vt = np.linalg.svd(a)
    n = s.shape[-1]
    others = np.prod(np.where(np.eye(n, dtype=bool), 1.0, s[..., None, :]), axis=-1)
    signs = np.linalg.det(u) * np.linalg.det(vt)
    return (u * (others * signs[..., None])[..., None, :]) @ vt


def _cofactors_change(d: Any, y: Any, a: Any) -> Any:
    along = _scaled(_entries(ops.multiply(y, d)), y)
    across = matmul(matmul(y, swap(d)), y)
    return _scaled(ops.divide(1.0, determinant_for_rule(a)), ops.subtract(along, across))


determinant: Operation = _determinant(lambda a: single(np.linalg.det(a)))
determinant_for_rule: Operation = _determinant(_nonzero)
cofactors: Operation = several("cofactors", _cofactors_value, (_cofactors_change,), (_cofactors_change,))
"""The derivative of the determinant, also of a singular matrix. Its own derivative is symmetric."""

log_determinant: Operation = several(
    "logabsdet",
    lambda a: single(np.linalg.slogdet(a)[1]),
    (lambda d, y, a: _entries(ops.multiply(swap(inverse_for_rule(a)), d)),),
    (lambda delta, y, a: _scaled(delta, swap(inverse_for_rule(a))),),
)
sign_of_determinant: Operation = Operation(
    "slogdet_sign", (array,), array, lambda a: single(np.linalg.slogdet(a)[0]), (None,), ""
)

# -- symmetric matrices ------------------------------------------------------------------------------------------------

symmetric: Operation = linear(
    "symmetric",
    lambda x: np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2),
    lambda d, s: ops.add(triangle(True)(d), triangle(True, -1)(swap(d))),
)
"""The symmetric matrix with this lower triangle."""


def _half(x: Any) -> Any:
    """The lower triangle with half the diagonal."""
    lower = triangle(True)(x)
    return ops.subtract(lower, ops.multiply(0.5, on_diagonal(0, shape_of(x))(diagonal()(x))))


def _cholesky_tangent(d: Any, y: Any, a: Any) -> Any:
    inner = solve(y, swap(solve(y, d)))
    return matmul(y, _half(inner))


def _cholesky_adjoint(delta: Any, y: Any, a: Any) -> Any:
    inner = _half(matmul(swap(y), delta))
    return solve(swap(y), swap(solve(swap(y), swap(inner))))


cholesky: Operation = several("cholesky", np.linalg.cholesky, (_cholesky_tangent,), (_cholesky_adjoint,))
"""The lower factor of a symmetric matrix."""

_eigh = _remembered(np.linalg.eigh)


def _reciprocal_gaps(what: str) -> Operation:
    """1 / (x_j - x_i) off the diagonal, and 0 on it."""

    def value(x: Any) -> Any:
        gaps = x[..., None, :] - x[..., :, None] + np.eye(x.shape[-1])
        if not np.all(gaps):
            raise NotDifferentiable(
                f"two {what} are equal, so vectors that belong to them have no derivative; "
                "use functions of the matrix that do not depend on the choice of vectors"
            )
        return 1.0 / gaps - np.eye(x.shape[-1])

    def slope(y: Any, x: Any) -> Any:
        return ops.negative(ops.multiply(y, y))

    def tangent(d: Any, y: Any, x: Any) -> Any:
        n = len(shape_of(x))
        return ops.multiply(slope(y, x), ops.subtract(insert_axes(d, n - 1), insert_axes(d, n)))

    def adjoint(delta: Any, y: Any, x: Any) -> Any:
        n, part = len(shape_of(x)), ops.multiply(slope(y, x), delta)
        return ops.subtract(total((n - 1,))(part), total((n,))(part))

    return several("gaps", value, (tangent,), (adjoint,))


_eigenvalue_gaps = _reciprocal_gaps("eigenvalues")


def _eigenvalues_tangent(d: Any, w: Any, a: Any) -> Any:
    v = eigenvectors(a)
    n = len(shape_of(v))
    return total((n - 2,))(ops.multiply(v, matmul(d, v)))


def _eigenvalues_adjoint(delta: Any, w: Any, a: Any) -> Any:
    v = eigenvectors(a)
    return matmul(_columns(v, delta), swap(v))


eigenvalues: Operation = several("eigvalsh", lambda a: _eigh(a)[0], (_eigenvalues_tangent,), (_eigenvalues_adjoint,))
"""The eigenvalues of a symmetric matrix, in ascending order."""


def _eigenvectors_tangent(d: Any, v: Any, a: Any) -> Any:
    inner = matmul(swap(v), matmul(d, v))
    return matmul(v, ops.multiply(_eigenvalue_gaps(eigenvalues(a)), inner))


def _eigenvectors_adjoint(delta: Any, v: Any, a: Any) -> Any:
    inner = ops.multiply(_eigenvalue_gaps(eigenvalues(a)), matmul(swap(v), delta))
    return matmul(matmul(v, inner), swap(v))


eigenvectors: Operation = several(
    "eigenvectors", lambda a: _eigh(a)[1], (_eigenvectors_tangent,), (_eigenvectors_adjoint,)
)
"""The eigenvectors of a symmetric matrix, as columns."""

# -- QR: of matrices that are not wider than high ----------------------------------------------------------------------

_qr = _remembered(np.linalg.qr)


def _antisymmetric(x: Any) -> Any:
    lower = triangle(True, -1)(x)
    return ops.subtract(lower, swap(lower))


def _qr_orthogonal_tangent(d: Any, q: Any, a: Any) -> Any:
    x = matmul(d, inverse_for_rule(qr_upper(a)))
    c = matmul(swap(q), x)
    return ops.add(ops.subtract(x, matmul(q, c)), matmul(q, _antisymmetric(c)))


def _qr_orthogonal_adjoint(delta: Any, q: Any, a: Any) -> Any:
    m = matmul(swap(q), delta)
    inner = triangle(True, -1)(ops.subtract(m, swap(m)))
    x = ops.add(ops.subtract(delta, matmul(q, m)), matmul(q, inner))
    return matmul(x, swap(inverse_for_rule(qr_upper(a))))


def _qr_upper_tangent(d: Any, r: Any, a: Any) -> Any:
    c = matmul(swap(qr_orthogonal(a)), matmul(d, inverse_for_rule(r)))
    return matmul(ops.subtract(c, _antisymmetric(c)), r)


def _qr_upper_adjoint(delta: Any, r: Any, a: Any) -> Any:
    m = matmul(delta, swap(r))
    inner = ops.subtract(m, triangle(True, -1)(ops.subtract(m, swap(m))))
    return matmul(matmul(qr_orthogonal(a), inner), swap(inverse_for_rule(r)))


qr_orthogonal: Operation = several("qr_q", lambda a: _qr(a)[0], (_qr_orthogonal_tangent,), (_qr_orthogonal_adjoint,))
qr_upper: Operation = several("qr_r", lambda a: _qr(a)[1], (_qr_upper_tangent,), (_qr_upper_adjoint,))

# -- singular values ---------------------------------------------------------------------------------------------------


def _decompose(a: Any) -> Any:
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return np.ascontiguousarray(u), s, np.ascontiguousarray(np.swapaxes(vt, -1, -2))


_svd = _remembered(_decompose)
_squared_gaps = _reciprocal_gaps("singular values")


def _inverse_singular(s: Any) -> Any:
    if not np.all(s):
        raise NotDifferentiable("a singular value is zero, so vectors that belong to it have no derivative")
    return 1.0 / s


_reciprocal: Operation = several(
    "reciprocal",
    _inverse_singular,
    (lambda d, y, x: ops.negative(ops.multiply(d, ops.multiply(y, y))),),
    (lambda delta, y, x: ops.negative(ops.multiply(delta, ops.multiply(y, y))),),
)

singular_values: Operation = several(
    "svdvals",
    lambda a: _svd(a)[1],
    (lambda d, s, a: total((len(shape_of(a)) - 2,))(ops.multiply(left_vectors(a), matmul(d, right_vectors(a)))),),
    (lambda delta, s, a: matmul(_columns(left_vectors(a), delta), swap(right_vectors(a))),),
)


def _vectors_tangent(d: Any, u: Any, s: Any, v: Any) -> Any:
    p = matmul(swap(u), matmul(d, v))
    both = ops.add(_columns(p, s), _rows(swap(p), s))
    inside = matmul(u, ops.multiply(_squared_gaps(ops.multiply(s, s)), both))
    if shape_of(u)[-2] == shape_of(u)[-1]:
        return inside
    outside = _columns(matmul(d, v), _reciprocal(s))
    return ops.add(inside, ops.subtract(outside, matmul(u, matmul(swap(u), outside))))


def _rows(x: Any, factors: Any) -> Any:
    """Each row times its own number."""
    return ops.multiply(x, insert_axes(factors, len(shape_of(factors))))


def _vectors_adjoint(delta: Any, u: Any, s: Any, v: Any) -> Any:
    g = ops.multiply(_squared_gaps(ops.multiply(s, s)), matmul(swap(u), delta))
    inside = matmul(matmul(u, _columns(ops.add(g, swap(g)), s)), swap(v))
    if shape_of(u)[-2] == shape_of(u)[-1]:
        return inside
    free = ops.subtract(delta, matmul(u, matmul(swap(u), delta)))
    return ops.add(inside, matmul(_columns(free, _reciprocal(s)), swap(v)))


left_vectors: Operation = several(
    "svd_u",
    lambda a: _svd(a)[0],
    (lambda d, u, a: _vectors_tangent(d, u, singular_values(a), right_vectors(a)),),
    (lambda delta, u, a: _vectors_adjoint(delta, u, singular_values(a), right_vectors(a)),),
)
right_vectors: Operation = several(
    "svd_v",
    lambda a: _svd(a)[2],
    (lambda d, v, a: _vectors_tangent(swap(d), v, singular_values(a), left_vectors(a)),),
    (lambda delta, v, a: swap(_vectors_adjoint(delta, v, singular_values(a), left_vectors(a))),),
)
"""The right singular vectors, as columns."""
