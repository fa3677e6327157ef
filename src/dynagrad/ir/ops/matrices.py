"""Linear algebra on matrices and stacks of matrices: solves, inverses, Cholesky, eigenvalues, QR, SVD, pseudo-inverses.

Derivatives follow Giles 2008, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation", sections 2 and 3. Rules call operations only. What numpy computes from one triangle of a matrix
(`cholesky`, `eigh`) is here a function of a symmetric matrix, and `symmetric` mirrors the triangle that counts, so
derivatives are those of numpy's functions: zero for the triangle that is not read. A decomposition with several results
is one operation for each result, whose rules call the others; the last decomposition is memoised, so that none is
computed twice.

Where a derivative does not exist the rule raises `NotDifferentiable`: vectors of equal eigenvalues or singular values,
a factorisation of a matrix without full rank. Determinants are in `determinants.py`.
"""

from __future__ import annotations

import functools
import importlib
import weakref
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ...errors import NotDifferentiable
from ..operation import Operation
from . import scalars as ops
from . import series as power_series
from .arrays import diagonal, insert_axes, linear, matmul, on_diagonal, several, shape_of, sum_to, swap, triangle
from .reductions import total


def _columns(x: Any, factors: Any) -> Any:
    """Each column times a number of its own."""
    return ops.multiply(x, insert_axes(factors, len(shape_of(factors)) - 1))


def _remembered(decompose: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Memoises the last result, where the argument is a read-only array that owns its memory."""
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


def _solution(a: Any, b: Any) -> Any:
    """The matrix x of a x = b for a matrix b, in stacks of any number of axes.

    numpy before 2 takes a b of one axis less than a for a stack of vectors, so it gets as many axes here.
    """
    return np.linalg.solve(a, b if b.ndim >= a.ndim else b.reshape((1,) * (a.ndim - b.ndim) + b.shape))


def _solve_left(delta: Any, y: Any, a: Any, b: Any) -> Any:
    return sum_to(shape_of(a))(ops.negative(matmul(solve(swap(a), delta), swap(y))))


solve: Operation = several(
    "solve",
    _solution,  # b is a matrix (of right-hand sides), never a vector
    (lambda d, y, a, b: ops.negative(solve(a, matmul(d, y))), lambda d, y, a, b: solve(a, d)),
    (_solve_left, lambda delta, y, a, b: sum_to(shape_of(b))(solve(swap(a), delta))),
    lambda n, y, a, b: power_series.solve(n, y, a, b, solve, matmul),
    code=("solve",),
)


def _triangular(transposed: bool) -> Callable[[Any, Any], Any]:
    """The value of `solve_lower`: by LAPACK where scipy is installed and the matrix is large enough."""

    def value(a: Any, b: Any) -> Any:
        if a.ndim == b.ndim == 2 and len(a) >= _LAPACK:
            dtrtrs = _lapack()
            if dtrtrs is not None:  # in column-major order it sees the upper triangle of the transpose
                x, status = dtrtrs(a.T, b, lower=0, trans=0 if transposed else 1)
                if status > 0:
                    raise np.linalg.LinAlgError("Singular matrix")
                return np.ascontiguousarray(x)
        lower = np.tril(a)
        return _solution(np.swapaxes(lower, -1, -2) if transposed else lower, b)

    return value


_LAPACK = 24  # rows


@functools.cache
def _lapack() -> Any:
    try:
        return importlib.import_module("scipy.linalg.lapack").dtrtrs
    except ImportError:
        return None


def _solved_with(transposed: bool) -> Operation:
    """`solve` with the lower triangle of a matrix, or with its transpose; elements above the diagonal are not read."""

    def times(x: Any, y: Any) -> Any:
        lower = triangle(True)(x)
        return matmul(swap(lower) if transposed else lower, y)

    def adjoint(delta: Any, y: Any, a: Any, b: Any) -> Any:
        back = of(not transposed)(a, delta)
        outer = matmul(y, swap(back)) if transposed else matmul(back, swap(y))
        return sum_to(shape_of(a))(ops.negative(triangle(True)(outer)))

    def of(which: bool) -> Operation:
        return solve_lower_transposed if which else solve_lower

    return several(
        "solve_lower_transposed" if transposed else "solve_lower",
        _triangular(transposed),
        (
            lambda d, y, a, b: ops.negative(of(transposed)(a, times(d, y))),
            lambda d, y, a, b: of(transposed)(a, d),
        ),
        (adjoint, lambda delta, y, a, b: sum_to(shape_of(b))(of(not transposed)(a, delta))),
        lambda n, y, a, b: power_series.solve(n, y, a, b, of(transposed), times),
        code=("solve_lower", transposed),
    )


solve_lower, solve_lower_transposed = _solved_with(False), _solved_with(True)


def _inverse(name: str, value: Callable[[Any], Any], strict: bool) -> Operation:
    return several(
        name,
        value,
        (lambda d, y, a: ops.negative(matmul(matmul(y, d), y)),),
        (lambda delta, y, a: ops.negative(matmul(matmul(swap(y), delta), swap(y))),),
        code=("inv", strict),
    )


def _inverse_or_none(a: Any) -> Any:
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError as error:
        raise NotDifferentiable(
            "the derivative of this factorisation or determinant does not exist at a singular matrix"
        ) from error


inverse: Operation = _inverse("inv", np.linalg.inv, False)
inverse_for_rule: Operation = _inverse("inv", _inverse_or_none, True)

# -- symmetric matrices ------------------------------------------------------------------------------------------------

symmetric: Operation = linear(
    "symmetric",
    lambda x: np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2),
    lambda d, s: ops.add(triangle(True)(d), triangle(True, -1)(swap(d))),
    code=("symmetric",),
)
"""The lower triangle of a matrix, mirrored."""


def _half(x: Any) -> Any:
    """The lower triangle with half the diagonal."""
    lower = triangle(True)(x)
    return ops.subtract(lower, ops.multiply(0.5, on_diagonal(0, shape_of(x))(diagonal()(x))))


lower_product: Operation = several(
    "lower_product",
    lambda a, x: np.tril(np.swapaxes(np.tril(a), -1, -2) @ x),
    (lambda d, y, a, x: lower_product(d, x), lambda d, y, a, x: lower_product(a, d)),
    (
        lambda delta, y, a, x: sum_to(shape_of(a))(triangle(True)(matmul(x, swap(triangle(True)(delta))))),
        lambda delta, y, a, x: sum_to(shape_of(x))(matmul(triangle(True)(a), triangle(True)(delta))),
    ),
    lambda n, y, a, x: power_series.multilinear(lambda p, q: lower_product(p, q))(n, y, a, x),
    code=("lower_product",),
)
"""The lower triangle of `a.T @ x` for a lower triangular `a`: a sixth of the products."""


def _cholesky_tangent(d: Any, y: Any, a: Any) -> Any:
    inner = solve_lower(y, swap(solve_lower(y, d)))
    return matmul(y, _half(inner))


def _cholesky_adjoint(delta: Any, y: Any, a: Any) -> Any:
    inner = _half(lower_product(y, delta))
    return solve_lower_transposed(y, swap(solve_lower_transposed(y, swap(inner))))


cholesky: Operation = several(
    "cholesky", np.linalg.cholesky, (_cholesky_tangent,), (_cholesky_adjoint,), code=("cholesky",)
)
"""The lower Cholesky factor of a symmetric matrix."""


def _reciprocal_gaps(what: str) -> Operation:
    """The matrix of 1 / (x_j - x_i), with 0 on the diagonal; `what` names the numbers in the error for equal ones."""

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

    return several("gaps", value, (tangent,), (adjoint,), code=("gaps", what))


_eigenvalue_gaps = _reciprocal_gaps("eigenvalues")


def _spectral(triangle: Literal["L", "U"]) -> tuple[Operation, Operation]:
    """The eigenvalues and eigenvectors that numpy computes from the lower or the upper triangle ("L", "U").

    Both are right for a symmetric matrix, but the vectors may differ in sign.
    """
    decompose = _remembered(lambda a: np.linalg.eigh(a, triangle))
    suffix = "" if triangle == "L" else "_upper"

    def values_tangent(d: Any, w: Any, a: Any) -> Any:
        v = vectors(a)
        return total((len(shape_of(v)) - 2,))(ops.multiply(v, matmul(d, v)))

    def values_adjoint(delta: Any, w: Any, a: Any) -> Any:
        v = vectors(a)
        return matmul(_columns(v, delta), swap(v))

    def vectors_tangent(d: Any, v: Any, a: Any) -> Any:
        inner = matmul(swap(v), matmul(d, v))
        return matmul(v, ops.multiply(_eigenvalue_gaps(values(a)), inner))

    def vectors_adjoint(delta: Any, v: Any, a: Any) -> Any:
        inner = ops.multiply(_eigenvalue_gaps(values(a)), matmul(swap(v), delta))
        return matmul(matmul(v, inner), swap(v))

    values = several(
        "eigvalsh" + suffix,
        lambda a: decompose(a)[0],
        (values_tangent,),
        (values_adjoint,),
        code=("eigvalsh", triangle),
    )
    vectors = several(
        "eigenvectors" + suffix,
        lambda a: decompose(a)[1],
        (vectors_tangent,),
        (vectors_adjoint,),
        code=("eigenvectors", triangle),
    )
    return values, vectors


eigenvalues, eigenvectors = _spectral("L")
"""The eigenvalues of a symmetric matrix, in ascending order, and the eigenvectors, as columns."""
eigenvalues_upper, eigenvectors_upper = _spectral("U")

# -- QR of matrices with no more columns than rows ---------------------------------------------------------------------

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


qr_orthogonal: Operation = several(
    "qr_q", lambda a: _qr(a)[0], (_qr_orthogonal_tangent,), (_qr_orthogonal_adjoint,), code=("qr_q",)
)
qr_upper: Operation = several("qr_r", lambda a: _qr(a)[1], (_qr_upper_tangent,), (_qr_upper_adjoint,), code=("qr_r",))

# -- singular values ---------------------------------------------------------------------------------------------------


def _decompose(a: Any) -> Any:
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return np.ascontiguousarray(u), s, np.ascontiguousarray(np.swapaxes(vt, -1, -2))


thin_svd: Callable[[Any], Any] = _remembered(_decompose)
"""The left singular vectors, the singular values, and the right singular vectors; vectors are columns."""

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
    code=("reciprocal",),
)


def _values_tangent(d: Any, s: Any, a: Any) -> Any:
    # A singular value has a kink at 0, as the absolute value of a real; by the same convention its derivative is 0.
    inner = ops.multiply(left_vectors(a), matmul(d, right_vectors(a)))
    return ops.multiply(ops.sign(s), total((len(shape_of(a)) - 2,))(inner))


singular_values: Operation = several(
    "svdvals",
    lambda a: thin_svd(a)[1],
    (_values_tangent,),
    (lambda delta, s, a: matmul(_columns(left_vectors(a), ops.multiply(ops.sign(s), delta)), swap(right_vectors(a))),),
    code=("svdvals",),
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
    """Each row times a number of its own."""
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
    lambda a: thin_svd(a)[0],
    (lambda d, u, a: _vectors_tangent(d, u, singular_values(a), right_vectors(a)),),
    (lambda delta, u, a: _vectors_adjoint(delta, u, singular_values(a), right_vectors(a)),),
    code=("svd_u",),
)
right_vectors: Operation = several(
    "svd_v",
    lambda a: thin_svd(a)[2],
    (lambda d, v, a: _vectors_tangent(swap(d), v, singular_values(a), left_vectors(a)),),
    (lambda delta, v, a: swap(_vectors_adjoint(delta, v, singular_values(a), left_vectors(a))),),
    code=("svd_v",),
)
"""The right singular vectors, as columns."""

# -- pseudo-inverses ---------------------------------------------------------------------------------------------------


_NEGLIGIBLE = 1e-6  # of the smallest singular value that stays: so much the derivatives at constant rank may be off


def _with_rank(y: Any, a: Any, cut: Any) -> Any:
    """The pseudo-inverse y of a, if it has derivatives at constant rank."""
    if not np.all(np.any(y, axis=(-2, -1))):
        raise NotDifferentiable(
            "the pseudo-inverse has no derivative at a matrix of zeros: those of matrices close to it are unbounded"
        )
    if np.max(cut) > 1e-12:
        s = np.linalg.svd(a, compute_uv=False)
        stays = s > np.asarray(cut)[..., None] * s[..., :1]
        least = np.min(np.where(stays, s, np.inf), -1, keepdims=True)
        if np.any(~stays & (s > _NEGLIGIBLE * least)):
            raise NotDifferentiable(
                "rcond= cuts off singular values that are not small beside those that stay, and vectors that stay turn "
                "towards those that go: the derivative of this is not there; use a smaller rcond=, or solve with a "
                "multiple of the identity added"
            )
    return y


_of_some_rank: Operation = several(
    "of_some_rank",
    _with_rank,  # checks the value, not its derivatives
    (lambda d, y, *_: d, None, None),
    (lambda delta, y, *_: delta, None, None),
    lambda n, y, a, *_: [y, *a[1:]],
    code=("of_some_rank",),
)


def _pinv_tangent(d: Any, y: Any, a: Any, cut: Any) -> Any:
    y = _of_some_rank(y, a, cut)
    across, t = swap(d), swap(y)
    inner = ops.negative(matmul(matmul(y, d), y))
    left = matmul(matmul(y, t), ops.subtract(across, matmul(matmul(across, a), y)))
    right = matmul(matmul(ops.subtract(across, matmul(y, matmul(a, across))), t), y)
    return ops.add(inner, ops.add(left, right))


def _pinv_adjoint(delta: Any, y: Any, a: Any, cut: Any) -> Any:
    y = _of_some_rank(y, a, cut)
    across, t = swap(delta), swap(y)
    inner = ops.negative(matmul(matmul(t, delta), t))
    left = matmul(matmul(ops.subtract(across, matmul(a, matmul(y, across))), y), t)
    right = matmul(matmul(t, y), ops.subtract(across, matmul(matmul(across, y), a)))
    return ops.add(inner, ops.add(left, right))


pseudo_inverse: Operation = several(
    "pinv",
    lambda a, cut: np.linalg.pinv(a, cut),
    (_pinv_tangent, None),
    (_pinv_adjoint, None),
    needs=((-1, 0, 1), ()),
    code=("pinv",),
)
"""The Moore-Penrose inverse; singular values below a fraction of the largest, the second argument, count as zero.

The derivatives are those at constant rank. (Golub and Pereyra 1973, "The differentiation of pseudo-inverses and
nonlinear least squares problems whose variables separate", 4.12.)
"""
