"""Derivatives against differences in 50 digits: every operation and every function of numpy, in every mode.

A row of a table is a function and a point. The function runs on our numbers, and on arrays of 50 digits
(`fifty_digits.py`) through the same protocols; where ours is not numpy's, or a convention decides, the row has its
definition as well. First derivatives in both modes, second ones in all four mixes along two directions, and those of
second and third order by power series, agree with differences to a relative 1e-12. Tests check that the tables are
complete. Costs five seconds.
"""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.eager import special
from dynagrad.eager.numpy.functions import FUNCTIONS
from dynagrad.eager.numpy.protocol import COMPOSED, STEPS, UFUNCS
from dynagrad.ir.operation import Operation
from dynagrad.ir.ops import arrays, determinants, matrices, reductions, windows
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.types import real
from eager.names.test_special import MEANING, OF_ORDER, OF_TWO
from eager.numpy.test_numpy import CASES, IN_DIGITS
from fifty_digits import Differences, exact, mp, numbers, singular

chance = np.random.default_rng(5)
A, B, C = chance.normal(size=(3, 4)), chance.normal(size=(4, 3)), chance.normal(size=(3, 3))
T, U, CC = chance.normal(size=(2, 3, 4)), chance.normal(size=(2, 4, 2)), chance.normal(size=(2, 3, 3))
u, v, w = chance.normal(size=4), chance.normal(size=3), chance.normal(size=2)
SYMMETRIC = CC @ np.swapaxes(CC, -1, -2) + np.eye(3)
SINGULAR = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 7.0], [3.0, 6.0, -1.0]])  # of rank two
NEARLY = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]])  # but for rounding
FLAT = np.outer(v, v + 1.0)  # of rank one
PAIR, FOUR = (C[:2, 1:], np.ones((2, 2))), chance.normal(size=(4, 4))
ORDER = np.argsort(A, 1)
TWICE = np.array([[0, 2, 1, 1], [0, 2, 1, 0]])  # rows that are taken, one twice
ZEROS = [A * np.array(pattern) for pattern in ([1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0])]
FACTORS = [
    (A, B),
    (u, u + 1.0),
    (v, A),
    (A, u),
    (T, U),
    (T, B),
    (C, T),
    (T, u),
    (v, T),
    (T[:1], U),
    (T[:, None], np.stack([B, B + 1.0, B - 1.0])),
    (T[0, :, :0], B[:0]),
]


def scattered(x, order, axis):
    """Zeros of shape (3, 4) with the elements of x added along an axis."""
    rows = [[0 * x[0, 0] for _ in range(4)] for _ in range(3)]
    for (i, j), place in np.ndenumerate(order):
        i2, j2 = (place, j) if axis == 0 else (i, place)
        rows[i2][j2] = rows[i2][j2] + x[i, j]
    return np.stack([np.stack(row) for row in rows])


def inverted(x):
    return np.swapaxes(np.linalg.inv(x), -1, -2)


def mixed(*matrices):
    """The derivative of the cofactors of the last matrix of 3 by 3 along the others; cofactors are quadratic."""
    cofactor = lambda x: np.stack([np.stack([minor(x, i, j) for j in range(3)]) for i in range(3)])  # noqa: E731
    d, e = matrices[0], matrices[1]
    both = cofactor(d + e) - cofactor(d) - cofactor(e)
    found = both if len(matrices) == 2 else both + 0 * matrices[2]
    return np.moveaxis(found, (0, 1), (-2, -1))


def minor(x, i, j):
    """A cofactor of a matrix of 3 by 3."""
    (a, b), (c, d) = ([(i + k) % 3 for k in (1, 2)], [(j + k) % 3 for k in (1, 2)])
    return x[..., a, c] * x[..., b, d] - x[..., a, d] * x[..., b, c]


def whole(x):
    """The symmetric matrix with this upper triangle."""
    return matrices.symmetric(arrays.swap(x))


def reciprocal_gaps(x):
    """1 / (x_j - x_i) off the diagonal, 0 on it."""
    one = np.eye(x.shape[-1], dtype=int)
    return (1 - one) / (x[..., None, :] - x[..., :, None] + one)


TOLERANCE = 1e-12


def flat(result):
    """All numbers of a result in one row."""
    parts = result if isinstance(result, tuple | list) else [result]
    return np.concatenate([np.reshape(part, (-1,)) for part in parts])


def inner(xs, ys):
    return float(sum(np.sum(np.multiply(x, y)) for x, y in zip(xs, ys, strict=True)))


def near(what, found, expected, tolerance):
    """To the tolerance, relative to the largest of the numbers: one may be small by cancellation."""
    expected = np.asarray(expected).astype(float)
    scale = max(1.0, np.max(np.abs(expected), initial=0.0))
    found = np.asarray(found, dtype=float)
    assert found.shape == expected.shape, what
    assert np.isfinite(expected).all(), what
    worst = np.max(np.abs(found - expected), initial=0.0) / scale
    assert worst <= tolerance, f"{what}: off by {worst:.2g}; found {found}, expected {expected}"


def agree(f, meaning, points, order=3, tolerance=TOLERANCE):
    """All derivatives of a function at a point, along random directions, are those of differences."""
    # Fresh copies: points of one place must not be one object.
    points = tuple(np.array(x) if np.ndim(x) else float(x) for x in points)
    random = np.random.default_rng(11)
    u, v = (tuple(random.integers(-16, 17, np.shape(x)) / 8.0 for x in points) for _ in range(2))
    u, v = (tuple(d if np.ndim(d) else float(d) for d in ds) for ds in (u, v))
    g = lambda *xs: flat(f(*xs))  # noqa: E731
    seen = Differences(meaning, points, u, v)
    near("value", numbers(g(*points)), seen.value, tolerance)
    w = random.integers(-16, 17, seen.value.shape) / 8.0

    def forward(*xs):
        return dg.jvp(g, xs, u)[1]

    def backward(*xs):
        return dg.vjp(g, *xs)[1](w)

    first = seen.first()
    value, along = dg.jvp(g, points, u)
    near("value in a pass", value, seen.value, tolerance)
    near("forward", along, first, tolerance)
    near("backward", inner(backward(*points), u), first @ w, tolerance * 10)
    if order == 1:
        return
    mixed = seen.mixed()
    near("forward over forward", dg.jvp(forward, points, v)[1], mixed, tolerance * 10)
    weighed = mixed @ w
    near("forward over backward", inner(dg.jvp(backward, points, v)[1], u), weighed, tolerance * 10)
    near("backward over forward", inner(dg.vjp(forward, *points)[1](w), v), weighed, tolerance * 10)
    near("backward over backward", inner(dg.vjp(backward, *points)[1](u), v), weighed, tolerance * 10)
    if order == 2:
        return

    def path(t):
        return g(*(x + t * d for x, d in zip(points, u, strict=True)))

    near("series to order 2", dg.derivative(path, 2)(0.0), seen.second(), tolerance * 10)
    near("series to order 3", dg.derivative(path, 3)(0.0), seen.third(), tolerance * 100)


def names(row):
    return f"{row[0]}{[np.shape(x) for x in row[2:]]}"


NUMPY_2 = int(np.__version__.partition(".")[0]) >= 2
SPACES = ("linspace", "logspace")
"""Which numpy before 2 makes of its own numbers alone; `test_numpy.py` has them."""


@pytest.mark.parametrize("row", [row for row in IN_DIGITS if NUMPY_2 or row[0] not in SPACES], ids=names)
def test_functions_of_numpy(row):
    _, f, *points = row
    agree(f, f, points)


# -- operations --------------------------------------------------------------------------------------------------------

ANY, POSITIVE, SMALL = (-3.0, 3.0), (0.2, 4.0), (-0.8, 0.8)
DOMAINS = {  # of each argument of the operations that work on elements
    "absolute": (ANY,),
    "add": (ANY, ANY),
    "arccos": (SMALL,),
    "arccosh": ((1.3, 5.0),),
    "arcsin": (SMALL,),
    "arcsinh": (ANY,),
    "arctan": (ANY,),
    "arctan2": (ANY, ANY),
    "arctanh": (SMALL,),
    "cbrt": (ANY,),
    "ceil": (ANY,),
    "copysign": (ANY, ANY),
    "cos": (ANY,),
    "cosh": (ANY,),
    "divide": (ANY, POSITIVE),
    "exp": (ANY,),
    "exp2": (ANY,),
    "expm1": (ANY,),
    "floor": (ANY,),
    "fmaximum": (ANY, ANY),
    "fminimum": (ANY, ANY),
    "fmod": (ANY, POSITIVE),
    "hypot": (ANY, ANY),
    "log": (POSITIVE,),
    "log10": (POSITIVE,),
    "log1p": (SMALL,),
    "log2": (POSITIVE,),
    "log_add": (ANY, ANY),
    "maximum": (ANY, ANY),
    "minimum": (ANY, ANY),
    "modulo": (ANY, POSITIVE),
    "multiply": (ANY, ANY),
    "negative": (ANY,),
    "power": (POSITIVE, ANY),
    "reciprocal": (POSITIVE,),
    "rint": (ANY,),
    "sigmoid": (ANY,),
    "sign": (ANY,),
    "sin": (ANY,),
    "sinh": (ANY,),
    "sqrt": (POSITIVE,),
    "rsqrt": (POSITIVE,),
    "square": (ANY,),
    "subtract": (ANY, ANY),
    "tan": ((-1.2, 1.2),),
    "tanh": (ANY,),
    "trunc": (ANY,),
}
CONDITION = np.array([[True, False, True], [False, False, True]])


def meaning_of(name):
    """What an operation on elements is, of arrays of 50 digits."""
    others = {"sigmoid": lambda x: 1 / (1 + np.exp(-x)), "rsqrt": lambda x: 1 / np.sqrt(x)}
    ufunc = ops.TABLE[name].array
    return ufunc if isinstance(ufunc, np.ufunc) else others[name]


def elements(name, *shapes):
    random = np.random.default_rng([3, *name.encode()])
    return [random.uniform(*domain, shape) for domain, shape in zip(DOMAINS[name], shapes, strict=False)]


@pytest.mark.parametrize("name", DOMAINS)
def test_operations_on_elements(name):
    operation, meaning = ops.TABLE[name], meaning_of(name)
    agree(operation, meaning, elements(name, (2, 3), (3,)))
    if len(DOMAINS[name]) == 1:
        agree(operation, meaning, elements(name, ()))
        return
    for shapes in [((), ()), ((), (2,)), ((2, 1), ()), ((2, 1), (1, 3)), ((0, 3), (3,))]:
        agree(operation, meaning, elements(name, *shapes))
    x, y = elements(name, (2, 3), (3,))  # one of the two is a constant
    agree(lambda x: operation(x, y), lambda x: meaning(x, exact(y)), [x])
    agree(lambda y: operation(x, y), lambda y: meaning(exact(x), y), [y])


def test_choosing_by_a_condition():
    agree(lambda x, y: ops.where(CONDITION, x, y), lambda x, y: np.where(CONDITION, x, y), [A[:2, :3], v])
    agree(lambda x, y: ops.where(CONDITION[:, :1], x, y), lambda x, y: np.where(CONDITION[:, :1], x, y), [1.5, v])


def transposed_solve(a, b):
    return np.linalg.solve(np.swapaxes(np.tril(a), -1, -2), b)


def added_up(x):
    """What `overlaps` makes of two windows of three."""
    return np.stack([sum(x[:, i, j - i] for i in range(2) if 0 <= j - i < 3) for j in range(4)], -1)


def convolved(a, b, first, last):
    return np.stack([sum(a[i] * b[j - i] for i in range(len(a)) if 0 <= j - i < len(b)) for j in range(first, last)])


WHOLE = [
    # name, operation, what it means, point
    ("windows", windows.windows((1,), (3,)), lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, 1), A),
    ("overlaps", windows.overlaps((1,), (3,), (3, 4)), added_up, T[:, :, :3].reshape(3, 2, 3)),
    ("convolve", windows.convolve(True), lambda a, b: convolved(a, b, 0, 6), u, v),
    ("convolve", windows.convolve(False), lambda a, b: convolved(a, b, 2, 4), u, v),
    ("pseudo_inverse", lambda x: matrices.pseudo_inverse(x, 1e-15), lambda x: np.linalg.inv(x.T @ x) @ x.T, B),
    ("_of_some_rank", lambda x: 1.0 * matrices._of_some_rank(x, C, 1e-15), lambda x: 1 * x, C),
    ("broadcast_to", arrays.broadcast_to((2, 3, 4)), lambda x: np.broadcast_to(x, (2, 3, 4)), A),
    ("broadcast_to", arrays.broadcast_to((2, 3, 4)), lambda x: np.broadcast_to(x, (2, 3, 4)), v[:, None]),
    ("broadcast_to", arrays.broadcast_to((2, 2)), lambda x: np.broadcast_to(x, (2, 2)), 1.5),
    ("broadcast_to", arrays.broadcast_to((0, 3)), lambda x: np.broadcast_to(x, (0, 3)), v),
    ("sum_to", arrays.sum_to((1, 4)), lambda x: x.sum((0, 1))[None], T),
    ("sum_to", arrays.sum_to((3, 1)), lambda x: x.sum((0, 2))[:, None], T),
    ("sum_to", arrays.sum_to(()), np.sum, A),
    ("reshape", arrays.reshape((2, 6)), lambda x: np.reshape(x, (2, 6)), A),
    ("reshape", arrays.reshape(()), lambda x: x[0, 0], A[:1, :1]),
    ("transpose", arrays.transpose((2, 0, 1)), lambda x: np.transpose(x, (2, 0, 1)), T),
    ("total", reductions.total((0, 2)), lambda x: np.sum(x, (0, 2)), T),
    ("total", reductions.total((1,), True), lambda x: np.sum(x, 1, keepdims=True), T),
    ("total", reductions.total(()), lambda x: x, A),
    ("product", reductions.product((0, 2)), lambda x: np.prod(x, (0, 2)), T),
    ("product", reductions.product((0,), True), lambda x: np.prod(x, 0, keepdims=True), A),
    *((("product", reductions.product((1,)), lambda x: np.prod(x, 1), zeros)) for zeros in ZEROS),
    ("extreme", reductions.extreme(True, (0, 2)), lambda x: np.max(x, (0, 2)), T),
    ("extreme", reductions.extreme(False, (1,), True), lambda x: np.min(x, 1, keepdims=True), T),
    ("winners", lambda x: 1.0 * reductions.winners(True, (0,))(x), lambda x: 1 * (x == np.max(x, 0)) + 0 * x, A),
    ("cumsum", reductions.cumsum(1), lambda x: np.cumsum(x, 1), T),
    ("cumprod", reductions.cumprod(1), lambda x: np.cumprod(x, 1), T),
    *((("cumprod", reductions.cumprod(1), lambda x: np.cumprod(x, 1), zeros)) for zeros in ZEROS),
    ("cut", arrays.cut(1, 1, None), lambda x: x[:, 1:], T),
    ("getitem", arrays.getitem(1), lambda x: x[1], A),
    ("getitem", arrays.getitem((..., [1, 1, 0])), lambda x: x[..., [1, 1, 0]], T),
    ("getitem", arrays.getitem(A > 0.0), lambda x: x[A > 0.0], A),
    ("place", arrays.place(([0, 0, 2],), (3, 4)), lambda x: np.stack([x[0] + x[1], 0 * x[0], x[2]]), A),
    ("place", arrays.place((slice(1, 3),), (4, 4)), lambda x: np.concatenate([0 * x[:1], x[:2], 0 * x[:1]]), A[:2]),
    ("take_along", lambda x: arrays.take_along(1)(x, ORDER), lambda x: np.take_along_axis(x, ORDER, 1), A),
    ("take_along", lambda x: arrays.take_along(0)(x, TWICE), lambda x: np.take_along_axis(x, TWICE, 0), A),
    ("put_along", lambda x: arrays.put_along(1, (3, 4))(x, ORDER), lambda x: scattered(x, ORDER, 1), A),
    ("put_along", lambda x: arrays.put_along(0, (3, 4))(x, TWICE), lambda x: scattered(x, TWICE, 0), A[:2]),
    ("argsort", lambda x: 1.0 * arrays.argsort(1)(x), lambda x: np.argsort(x, 1) + 0 * x, A),
    ("sort", arrays.sort(0), lambda x: np.sort(x, 0), A),
    ("roll", arrays.roll(-5, 1), lambda x: np.roll(x, -5, 1), A),
    ("triangle", arrays.triangle(True, -1), lambda x: np.tril(x, -1), T),
    ("triangle", arrays.triangle(False, 1), lambda x: np.triu(x, 1), T),
    ("diagonal", arrays.diagonal(1), lambda x: np.diagonal(x, 1, -2, -1), T),
    ("diagonal", arrays.diagonal(9), lambda x: x[:, :0, 0], T),
    ("on_diagonal", arrays.on_diagonal(-1, (4, 3)), lambda x: np.diag(x, -1)[:, :3], v),
    ("concatenate", arrays.concatenate(1, 3), lambda *xs: np.concatenate(xs, 1), A, C, A[:, :0]),
    ("stack", arrays.stack(1, 2), lambda *xs: np.stack(xs, 1), A, A + 1.0),
    ("stack", arrays.stack(0, 2), lambda x, y: np.stack([x, y]), 1.5, 2.5),
    *(("matmul", arrays.matmul, np.matmul, *factors) for factors in FACTORS),
    ("einsum", arrays.einsum(("ij", "jk", "b"), "kb"), lambda *xs: np.einsum("ij,jk,b->kb", *xs), A, B, u),
    ("einsum", arrays.einsum(("ij", "ij"), "i"), lambda x, y: np.sum(x * y, 1), A, A[:1]),
    ("einsum", arrays.einsum(("ij", "jk"), "ik"), lambda x, y: np.sum(x, 1)[:, None] * y, A, v[None]),
    ("einsum", arrays.einsum(("ij",), "j"), lambda x: np.sum(x, 0), A),
    ("einsum", arrays.einsum(("ij",), ""), np.sum, A),
    ("einsum", arrays.einsum(("", "i", "i"), "i"), lambda s, x, y: s * x * y, 1.5, u, u + 1.0),
    ("einsum", arrays.einsum(("i", "j", "k"), ""), lambda *xs: xs[0].sum() * xs[1].sum() * xs[2].sum(), u, v, w),
    ("einsum", arrays.einsum(("ij", "jk"), "ik"), lambda x, y: np.matmul(x, y), A[:, :0], B[:0]),
    # linear algebra
    ("solve", matrices.solve, np.linalg.solve, CC, B[:3]),
    ("solve", matrices.solve, np.linalg.solve, C, np.stack([C, C + 1.0])),
    ("solve", matrices.solve, np.linalg.solve, CC[:1], np.stack([C, C + 1.0])),
    ("solve", matrices.solve, lambda a, b: np.linalg.inv(a) @ b, C, B[:3, :0]),
    ("solve_lower", matrices.solve_lower, lambda a, b: np.linalg.solve(np.tril(a), b), CC, B[:3]),
    ("solve_lower", matrices.solve_lower, lambda a, b: np.linalg.solve(np.tril(a), b), C, np.stack([C, C + 1.0])),
    ("lower_product", matrices.lower_product, lambda a, b: np.tril(np.swapaxes(np.tril(a), -1, -2) @ b), CC, C),
    ("solve_lower_transposed", matrices.solve_lower_transposed, transposed_solve, CC, B[:3]),
    ("inverse", matrices.inverse, np.linalg.inv, CC),
    ("inverse", matrices.inverse, np.linalg.inv, C[:1, :1]),
    ("inverse_for_rule", matrices.inverse_for_rule, np.linalg.inv, CC),
    ("determinant", determinants.determinant, np.linalg.det, CC),
    ("determinant", determinants.determinant, np.linalg.det, C[:1, :1]),
    ("mixed_cofactors", determinants.mixed_cofactors(1), mixed, CC[::-1], CC),
    ("mixed_cofactors", determinants.mixed_cofactors(1), mixed, C[::-1], SINGULAR),
    (
        "mixed_cofactors",
        determinants.mixed_cofactors(1),
        lambda d, x: d[::-1, ::-1] * [[1, -1], [-1, 1]] + 0 * x,
        *PAIR,
    ),
    ("mixed_cofactors", determinants.mixed_cofactors(2), mixed, C[::-1], C.T, SINGULAR),
    ("mixed_cofactors", determinants.mixed_cofactors(2), lambda d, e, x: 0 * d, *PAIR, PAIR[0]),
    ("_left_basis", lambda x: 1.0 * determinants._left_basis(x), lambda x: 0 * x + determinants._left_basis(CC), CC),
    ("_right_basis", lambda x: 1.0 * determinants._right_basis(x), lambda x: 0 * x + determinants._right_basis(CC), CC),
    (
        "_orientation",
        lambda x: 1.0 * determinants._orientation(x),
        lambda x: 0 * x[0, 0] + determinants._orientation(C),
        C,
    ),
    ("cofactors", determinants.cofactors, lambda x: np.linalg.det(x)[..., None, None] * inverted(x), CC),
    ("log_determinant", determinants.log_determinant, lambda x: np.log(abs(np.linalg.det(x))), CC),
    ("log_determinant", determinants.log_determinant, lambda x: np.log(abs(np.linalg.det(x))), C[[1, 0, 2]]),
    ("sign_of_determinant", determinants.sign_of_determinant, lambda x: np.sign(np.linalg.det(x)), CC),
    ("symmetric", matrices.symmetric, lambda x: np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2), CC),
    ("cholesky", lambda x: matrices.cholesky(matrices.symmetric(x)), np.linalg.cholesky, SYMMETRIC),
    ("cholesky", lambda x: matrices.cholesky(matrices.symmetric(x)), np.linalg.cholesky, SYMMETRIC[0, :1, :1]),
    ("eigenvalues", lambda x: matrices.eigenvalues(matrices.symmetric(x)), np.linalg.eigvalsh, CC),
    ("eigenvectors", lambda x: matrices.eigenvectors(matrices.symmetric(x)), lambda x: np.linalg.eigh(x)[1], CC),
    ("eigenvalues_upper", lambda x: matrices.eigenvalues_upper(whole(x)), lambda x: np.linalg.eigh(x, "U")[0], CC),
    ("eigenvectors_upper", lambda x: matrices.eigenvectors_upper(whole(x)), lambda x: np.linalg.eigh(x, "U")[1], CC),
    ("_eigenvalue_gaps", matrices._eigenvalue_gaps, lambda x: reciprocal_gaps(x), v),
    ("_squared_gaps", matrices._squared_gaps, lambda x: reciprocal_gaps(x), np.stack([v, v**2])),
    ("_reciprocal", matrices._reciprocal, lambda x: 1 / x, A),
    *(("qr_orthogonal", matrices.qr_orthogonal, lambda x: np.linalg.qr(x)[0], x) for x in (B, CC, B[:, :1])),
    *(("qr_upper", matrices.qr_upper, lambda x: np.linalg.qr(x)[1], x) for x in (B, CC, B[:, :1])),
    *(("singular_values", matrices.singular_values, lambda x: singular(x)[1], x) for x in (A, B, CC)),
    *(("left_vectors", matrices.left_vectors, lambda x: singular(x)[0], x) for x in (A, B, CC, A[:1], B[:, :1])),
    *(("right_vectors", matrices.right_vectors, lambda x: singular(x)[2], x) for x in (A, B, CC, A[:1], B[:, :1])),
]


@pytest.mark.parametrize("row", WHOLE, ids=lambda row: f"{row[0]}{[np.shape(x) for x in row[3:]]}")
def test_operations_on_whole_arrays(row):
    _, f, meaning, *points = row
    agree(f, meaning, points)


CHOSEN = ("winners", "argsort", "sign_of_determinant", "_left_basis", "_right_basis", "_orientation")
SMOOTH = [row for row in WHOLE if row[0] not in CHOSEN]


def numbers_at(row):
    return sum(np.size(x) for x in row[3:])


ONE_OF_EACH = {  # the one at the fewest numbers, since each is moved by itself
    row[0]: row for row in sorted(SMOOTH, key=numbers_at, reverse=True) if numbers_at(row) > 1
}


@pytest.mark.parametrize("row", ONE_OF_EACH.values(), ids=lambda row: row[0])
def test_users_can_check_them_too(row):
    _, f, _, *points = row
    weights = np.cos(np.arange(float(np.size(f(*points)))))
    order = 2 if numbers_at(row) <= 4 else 1  # the Hessian takes long
    dg.check_derivatives(lambda *xs: np.dot(flat(f(*xs)), weights), *points, order=order, tolerance=1e-5)


# -- edges -------------------------------------------------------------------------------------------------------------

NONE, ROW = np.zeros((0, 3)), np.zeros(0)
TIED = np.array([[1.0, 3.0, 3.0], [3.0, 0.0, 3.0]])
BOTH = np.array([-1.0, 0.0, 4.0])
FINITE = np.array([[0.5, -math.inf, 1.25], [0.5, 0.5, -2.0]])
FAR = np.array([-40.0, -3.0, 30.0])
TALL = A[:, None]
same = None  # what numpy's function means

EDGES = [
    # nothing at all
    ("sum", np.sum, same, NONE),
    ("sum", lambda x: np.sum(x, 0) * v, same, NONE),
    ("sum", lambda x: np.sum(x, axis=()), same, A),
    ("prod", lambda x: np.prod(x, 0) * v, same, NONE),
    ("prod", np.prod, same, ROW),
    ("cumsum", lambda x: np.cumsum(x, 0), same, NONE),
    ("cumprod", lambda x: np.cumprod(x, 0), same, NONE),
    ("cumprod", lambda x: np.cumprod(x, 1), same, A[:, :1]),
    ("sort", lambda x: np.sort(x, 0), same, NONE),
    ("max", lambda x: np.max(x, 1), same, NONE),
    ("mean", lambda x: np.mean(x, 1), same, NONE),
    ("diff", lambda x: np.diff(x, axis=1), same, A[:, :1]),
    ("concatenate", lambda x, y: np.concatenate([x, y, x]), same, NONE, C),
    ("stack", lambda x, y: np.stack([x, y]), same, NONE, NONE + 1.0),
    ("einsum", lambda x, y: np.einsum("ij,ik->jk", x, y), same, NONE, NONE + 1.0),
    ("matmul", np.matmul, same, NONE.T, NONE),
    ("tensordot", lambda x, y: np.tensordot(x, y, (0, 0)), same, NONE, NONE + 1.0),
    ("[]", lambda x: x[:0], same, A),
    ("[]", lambda x: x[[]], lambda x: x[:0], A),
    ("[]", lambda x: x[x > 100.0], same, A),
    ("take", lambda x: np.take(x, np.array([], int), 0), same, A),
    ("repeat", lambda x: np.repeat(x, 0, 1), same, A),
    ("diagonal", lambda x: np.diagonal(x, 7), same, A),
    ("trace", lambda x: np.trace(x, -7), same, A),
    ("split", lambda x: np.split(x, [2, 2], 1), same, A),
    ("broadcast_to", lambda x: np.broadcast_to(x, (0, 3)), same, v),
    ("logsumexp", lambda x: special.logsumexp(x, 1), lambda x: log_of_sum(x, 1), NONE),
    # one alone
    ("max", np.max, same, A[:1, :1]),
    ("ptp", np.ptp, lambda x: 0 * x, A[:1, :1]),
    ("ptp", np.ptp, same, 1.5),
    ("var", np.var, same, A[:1, :1]),
    ("sort", lambda x: np.sort(x, 1), same, A[:, :1]),
    ("cumsum", np.cumsum, same, 1.5),
    ("linalg.norm", np.linalg.norm, same, A[:1, :1]),
    ("linalg.eigh", lambda x: tuple(np.linalg.eigh(x)), same, C[:1, :1]),
    ("linalg.svd", lambda x: tuple(np.linalg.svd(x, full_matrices=False)), same, C[:1, :1]),
    ("linalg.svd", lambda x: tuple(np.linalg.svd(x, full_matrices=False)), same, A[:, :1]),
    ("linalg.svd", lambda x: tuple(np.linalg.svd(x, full_matrices=False)), same, A[:1]),
    ("linalg.qr", lambda x: tuple(np.linalg.qr(x)), same, A[:1]),
    ("linalg.slogdet", lambda x: np.linalg.slogdet(x)[1], same, C[:1, :1]),
    ("linalg.solve", np.linalg.solve, same, C[:1, :1], v[:1]),
    # axes, and keeping them
    ("sum", lambda x: np.sum(x, (-1, 0), keepdims=True) * x, same, T),
    ("prod", lambda x: np.prod(x, (-1, 0), keepdims=True) * x, same, T),
    ("max", lambda x: np.max(x, (-1, 0), keepdims=True) * x, same, T),
    ("min", lambda x: np.min(x, (2, 1)) * w, same, T),
    ("ptp", lambda x: np.ptp(x, 1, keepdims=True) * x, same, T),
    ("mean", lambda x: np.mean(x, (0, -2), keepdims=True) * x, same, T),
    ("var", lambda x: np.var(x, (0, -2), ddof=2, keepdims=True) * x, same, T),
    ("std", lambda x: np.std(x, (0, -2)), same, T),
    ("linalg.norm", lambda x: np.linalg.norm(x, axis=(0, 2), keepdims=True) * x, same, T),
    ("linalg.norm", lambda x: np.linalg.norm(x, "nuc", axis=(2, 0)), same, T),
    ("linalg.norm", lambda x: np.linalg.norm(x, -2, axis=(1, 2)), same, T),
    ("linalg.norm", lambda x: np.linalg.norm(x, -1, axis=(1, 2)), same, T),
    # broadcasting
    ("multiply", lambda x, y: x * y, same, TALL, w[:, None]),
    ("divide", lambda x, y: x / y, same, u, np.exp(v)[:, None, None]),
    ("power", lambda x, y: x**y, same, np.exp(u), v[:, None]),
    ("where", lambda x, y: np.where(A > 0.0, x, y), same, u, v[:, None]),
    ("where", lambda x, y: np.where(A > 0.0, x, y), same, 1.5, T),
    ("maximum", lambda x, y: np.maximum(x, y) * y, same, u, v[:, None]),
    ("logaddexp", np.logaddexp, same, u, v[:, None]),
    ("clip", lambda x, y, z: np.clip(x, y, z) * x, same, A, u - 0.5, v[:, None] + 0.5),
    ("linalg.solve", lambda a, b: np.linalg.solve(a, b), lambda a, b: np.linalg.inv(a) @ b, CC[:1], T),
    ("linalg.solve", lambda a, b: np.linalg.solve(a, b), same, CC, v),
    ("einsum", lambda x, y: np.einsum("...i,...i->...", x, y), same, TALL, u),
    ("einsum", lambda x, y: np.einsum("ij,ij->ij", x, y), lambda x, y: x * y, A, v[:, None]),
    ("einsum", lambda x, y: np.einsum("ij,kj->ik", x, y), lambda x, y: x.sum(1)[:, None] * y[:, 0], A, v[:, None]),
    ("cross", lambda x, y: np.cross(x, y), same, CC, v),
    ("kron", np.kron, same, A, v),
    ("kron", np.kron, same, T, C),
    ("outer", np.outer, same, A, C),
    # things twice
    ("[]", lambda x: x[[0, 0, 2, 0]] * A[[0, 1, 2, 0]], same, A),
    ("[]", lambda x: x[[[0, 1], [1, 0]], [2, 2]] ** 2, same, A),
    ("[]", lambda x: x[:, None, [1, 1], ..., None] ** 2, same, T),
    ("[]", lambda x: x[-1] * x[2] * x[..., 0], same, C),
    ("take", lambda x: np.take(x, [[-1, 3], [3, -1]], 1) ** 2, same, A),
    ("take_along_axis", lambda x: np.take_along_axis(x, TWICE, 0) ** 2, same, A),
    ("repeat", lambda x: np.repeat(x, [0, 2, 1, 3], 1) ** 2, same, A),
    ("tile", lambda x: np.tile(x, (2, 2)) ** 2, same, u),
    ("pad", lambda x: np.pad(x, (5, 6), mode="wrap") ** 2, same, v),
    ("pad", lambda x: np.pad(x, (3, 4), mode="symmetric") ** 2, same, v),
    ("pad", lambda x: np.pad(x, ((0, 2), (3, 0)), mode="edge") ** 2, same, A),
    ("einsum", lambda x: np.einsum("ij,jk,ki->", x, x, x), same, C),
    ("einsum", lambda x: np.einsum("ii,jj->", x, x), same, C),
    ("einsum", lambda x: np.einsum("iii->i", x) ** 2, same, np.stack([C, C + 1.0, C * 2.0])),
    ("matmul", lambda x: x @ x @ x, same, C),
    ("linalg.solve", lambda x: np.linalg.solve(x, x @ x), same, C),
    ("linalg.solve", lambda x: np.linalg.solve(x, x.T), same, C),
    ("concatenate", lambda x: np.concatenate([x * i for i in range(70)]) ** 2, same, v),
    ("stack", lambda x: np.stack([x, x]) * x, same, v),
    ("einsum", lambda x, y: np.einsum("ij,jk,kl,li->", x, y, x, y), same, A, B),
    ("einsum", lambda x, y: np.einsum("aab,b->a", x, y), same, CC[:, :2], v),
    ("roll", lambda x: np.roll(x, -3) * x, same, A),
    ("[]", lambda x: x[[0, 1], :, [1, 1]] ** 2, same, T),
    ("[]", lambda x: x[True] ** 2, same, A),
    # shapes that broadcast
    ("tril", lambda x: np.tril(x) ** 2, lambda x: np.tril(np.stack([x] * 3)) ** 2, v),
    ("triu", lambda x: np.triu(x, -1) ** 2, lambda x: np.triu(np.stack([x] * 4), -1) ** 2, u),
    (
        "take_along_axis",
        lambda x: np.take_along_axis(x, np.array([[3, 1, 1]]), 1) ** 2,
        lambda x: x[:, [3, 1, 1]] ** 2,
        A,
    ),
    ("take_along_axis", lambda x: np.take_along_axis(x[:1], ORDER, 1) ** 2, lambda x: x[0][ORDER] ** 2, A),
    ("roll", lambda x: np.roll(x, (1, 1)) * A, lambda x: np.roll(x, 2) * A, A),
    ("roll", lambda x: np.roll(x, (1, -3), (1, 1)) * A, lambda x: np.roll(x, -2, 1) * A, A),
    ("tile", lambda x: np.tile(x, np.array([2, 1])) ** 2, same, A),
    ("average", lambda x: np.average(x, (0, 1), T[..., 0]), lambda x: mean_of(x, T[..., :1], (0, 1)), T),
    (
        "average",
        lambda x: np.average(x, (2, 0), T[:, :2, 0].T),
        lambda x: mean_of(x, T[:, :2, 0][:, None], (0, 2)),
        T[:, :, 1:3],
    ),
    ("sum", lambda x: np.sum(x, 0, float) ** 2, lambda x: np.sum(x, 0) ** 2, A),
    ("einsum", lambda x: np.einsum(x, [0, 26]) ** 2, lambda x: x**2, A),
    ("einsum", lambda x: np.einsum(x, [26, 0, 25]) ** 2, lambda x: np.moveaxis(x, (1, 2, 0), (0, 1, 2)) ** 2, T),
    # zeros
    ("xlogy", special.xlogy, lambda x, y: x * np.log(y), np.array([0.0, -0.0, 1.5]), abs(v)),
    ("xlog1py", special.xlog1py, lambda x, y: x * np.log1p(y), np.array([0.0, -0.0, 1.5]), abs(v)),
    ("rel_entr", lambda x: special.rel_entr(0.0, x), lambda x: 0 * x, abs(v)),
    ("linalg.norm", lambda x: np.linalg.norm(x, 0.5), same, v),
    *((("prod", lambda x: np.prod(x, 1), same, x)) for x in ZEROS),
    *((("prod", np.prod, same, x)) for x in (np.array([0.0, 2.0, 3.0]), np.zeros(2), np.zeros(3), np.zeros(4))),
    *((("cumprod", lambda x: np.cumprod(x, 1), same, x)) for x in ZEROS),
    ("cumprod", np.cumprod, same, np.zeros(4)),
    ("square", np.square, same, 0.0),
    *((f"x ** {n}", lambda x, n=n: x**n, lambda x, n=n: power(x, n), x) for n in range(5) for x in (0.0, BOTH, -1.5)),
    ("power", lambda x: x ** np.array([0.0, 1.0, 2.0]), lambda x: np.stack([0 * x + 1, x, x * x]), 0.0),
    ("power", lambda x: x ** np.array([3.0, 1.0, -2.0]), lambda x: np.stack([x**3, x, x**-2]), -1.5),
    ("power", lambda x: 0.0**x, lambda x: 0 * x, 1.5),
    ("power", lambda x, y: x**y, same, 2.0, 0.0),
    ("multiply", lambda x: x * np.zeros(3), same, BOTH),
    ("arctan2", lambda x: np.arctan2(x, [1.0, 2.0, 0.5]), same, np.zeros(3)),
    ("arctan2", lambda x: np.arctan2([1.0, -2.0, 0.5], x), same, np.zeros(3)),
    ("hypot", lambda x: np.hypot(x, [1.0, -2.0, 0.5]), same, np.zeros(3)),
    ("sinc", np.sinc, same, np.array([0.0, 1e-9, 0.0159, -0.016, 1.0])),
    ("tanh", lambda x: np.tanh(x) + np.arctan(x) + np.arcsinh(x) + np.expm1(x) + np.log1p(x), same, 0.0),
    ("linalg.norm", lambda x: np.linalg.norm(x, 4), same, BOTH),
    ("linalg.norm", lambda x: np.linalg.norm(x, 1), lambda x: x[2] - x[0], BOTH),
    ("linalg.norm", np.linalg.norm, same, BOTH),
    ("linalg.matrix_power", lambda x: np.linalg.matrix_power(x, 3), same, np.zeros((2, 2))),
    ("linalg.matrix_power", lambda x: np.linalg.matrix_power(x, 0), lambda x: 0 * x + np.eye(3, dtype=int), C),
    ("linalg.matrix_power", lambda x: np.linalg.matrix_power(x, 1), same, C),
    # kinks: what the table in docs/functions/edges.md says
    ("absolute", np.abs, lambda x: x * np.array([-1, 0, 1]), BOTH),
    ("maximum", lambda x: np.maximum(x, 0.0), lambda x: x * np.array([0, 1, 1]), BOTH),
    ("maximum", lambda x: np.maximum(0.0, x), lambda x: x * np.array([0, 0, 1]), BOTH),
    ("maximum", np.maximum, lambda x, y: x * np.array([0, 1, 1]) + y * np.array([1, 0, 0]), BOTH, np.zeros(3)),
    ("minimum", np.minimum, lambda x, y: x * np.array([1, 1, 0]) + y * np.array([0, 0, 1]), BOTH, np.zeros(3)),
    ("fmax", np.fmax, lambda x, y: x * np.array([0, 1, 1]) + y * np.array([1, 0, 0]), BOTH, np.zeros(3)),
    ("fmin", np.fmin, lambda x, y: x * np.array([1, 1, 0]) + y * np.array([0, 0, 1]), BOTH, np.zeros(3)),
    ("clip", lambda x: np.clip(x, 0.0, 4.0), lambda x: x * np.array([0, 1, 1]), BOTH),
    ("max", lambda x: np.max(x, 1), lambda x: np.stack([x[0, 1], x[1, 0]]), TIED),
    ("max", np.max, lambda x: x[0, 1], TIED),
    ("min", lambda x: np.min(x, 0, keepdims=True), lambda x: np.stack([x[0, :1], x[1, 1:2], x[0, 2:]], 1), TIED),
    ("max", lambda x: np.max(x, (0, 1)) * x, lambda x: x[0, 1] * x, TIED),
    ("ptp", np.ptp, lambda x: x[0, 1] - x[1, 1], TIED),
    ("sort", lambda x: np.sort(x, 1), lambda x: np.stack([x[0], x[1][[1, 0, 2]]]), TIED),
    ("sort", lambda x: np.sort(x, None), lambda x: np.ravel(x)[[4, 0, 1, 2, 3, 5]], TIED),
    ("linalg.norm", lambda x: np.linalg.norm(x, math.inf), lambda x: -x[0], np.array([-3.0, 3.0])),
    ("fmod", lambda x: np.fmod(x, 2.0), lambda x: x + np.array([4, -2]), np.array([-5.0, 3.0])),
    ("remainder", lambda x: x % 2.0, lambda x: x - np.array([-6, 2, 4]), np.array([-5.0, 3.0, 4.0])),
    ("remainder", lambda x: x % -2.0, lambda x: x - 6, 5.0),
    ("remainder", lambda x, y: x % y, lambda x, y: x + 2 * y, -5.0, 3.0),
    ("copysign", np.copysign, lambda x, y: x * np.array([1, 0, 1]), BOTH, np.array([-1.0, 2.0, 3.0])),
    # a branch that is not taken, infinite or not a number
    ("where", lambda x: np.where(x > 0.0, np.log(x), 0.0), lambda x: chosen(np.log, x), BOTH),
    ("where", lambda x: np.where(x > 0.0, np.sqrt(x) * x, x), lambda x: chosen(lambda t: t**1.5, x, x), BOTH),
    ("where", lambda x: np.where(x > 0.0, 1.0 / x, 0.0) * x, lambda x: x * chosen(np.reciprocal, x), BOTH),
    ("where", lambda x: np.where(x[0] > 0.0, x / x[1], x), lambda x: x, BOTH),
    ("select", lambda x: np.select([x > 0.0], [np.log(x)], 0.0), lambda x: chosen(np.log, x), BOTH),
    # far out: the results are small, and still right to their last digits
    ("exp", lambda x: np.exp(-abs(x)) * np.exp(abs(FAR)), lambda x: np.exp(-abs(x)) * np.exp(exact(abs(FAR))), FAR),
    ("logaddexp", lambda x: np.logaddexp(0.0, x) * math.exp(40.0), lambda x: np.log1p(np.exp(x)) * mp.exp(40), -40.0),
    ("sigmoid", lambda x: special.expit(x) * math.exp(40.0), lambda x: mp.exp(40) / (1 + np.exp(-x)), -40.0),
    ("logaddexp", lambda x, y: np.logaddexp(x, y), lambda x, y: np.log(np.exp(x) + np.exp(y)), FAR, FAR),
    ("logaddexp", lambda x: np.logaddexp(x, -math.inf), lambda x: x, FAR),
    ("expm1", lambda x: (np.expm1(x) - x) * 1e6, same, 1e-3),
    # sums of exponentials
    *(
        ("logsumexp", lambda x, a=a: special.logsumexp(x, a), lambda x, a=a: log_of_sum(x, a), x)
        for a in (None, 1, (0, -1))
        for x in (T[0], TIED, TIED * 0.0, FINITE, T[0] * 300.0)
    ),
    ("logsumexp", lambda x: special.logsumexp(x, 0, keepdims=True) * x, lambda x: log_of_sum(x, 0)[None] * x, T),
    ("logsumexp", lambda x, b: special.logsumexp(x, 1, b), lambda x, b: np.log(np.sum(b * np.exp(x), 1)), A, abs(A)),
    *(
        ("softmax", lambda x, a=a: special.softmax(x, a), lambda x, a=a: shares(x, a), x)
        for a in (None, 1, (0, -1))
        for x in (T[0], TIED, TIED * 0.0, FINITE)
    ),
    *(
        ("log_softmax", lambda x, a=a: special.log_softmax(x, a), lambda x, a=a: np.log(shares(x, a)), x)
        for a in (None, 1, (0, -1))
        for x in (T[0], TIED, TIED * 0.0, T[0] * 300.0)
    ),
    # matrices
    ("linalg.det", lambda x: np.linalg.det(x), same, C[[1, 0, 2]]),
    *(("linalg.det", lambda x: np.linalg.det(x), same, x) for x in (np.eye(3), SINGULAR, FLAT, NEARLY, 0.0 * C)),
    ("linalg.det", lambda x: np.linalg.det(x), same, np.stack([SINGULAR, C, NEARLY])),
    ("linalg.det", lambda x: np.linalg.det(x), same, np.zeros((2, 1, 1))),
    ("linalg.det", lambda x: np.linalg.det(x @ x), lambda x: np.linalg.det(x) ** 2, FOUR),
    ("linalg.slogdet", lambda x: np.linalg.slogdet(x)[1], same, np.stack([C, C[[1, 0, 2]]])),
    ("linalg.slogdet", lambda x: np.linalg.slogdet(x).sign * x, same, C),
    ("linalg.inv", np.linalg.inv, same, np.eye(3)),
    ("linalg.cholesky", np.linalg.cholesky, same, np.eye(3)),
    ("linalg.cholesky", lambda x: np.linalg.cholesky(x + 100.0 * np.triu(np.ones((3, 3)), 1)), same, SYMMETRIC),
    ("linalg.eigh", lambda x: tuple(np.linalg.eigh(x)), same, CC),
    ("linalg.eigh", lambda x: tuple(np.linalg.eigh(x, "U")), same, CC),
    ("linalg.eigh", lambda x: tuple(np.linalg.eigh(x)), same, np.diag(v)),
    ("linalg.eigvalsh", lambda x: np.sum(np.linalg.eigvalsh(x) ** 3, -1), lambda x: cubes(x), CC),
    ("linalg.svd", lambda x: tuple(np.linalg.svd(x, full_matrices=False)), same, T),
    ("linalg.svd", lambda x: tuple(np.linalg.svd(x)), same, np.diag(v)),
    ("linalg.qr", lambda x: tuple(np.linalg.qr(x)), same, T),
    ("linalg.qr", lambda x: tuple(np.linalg.qr(x)), same, np.eye(3)),
    ("linalg.qr", lambda x: np.linalg.qr(x, "r"), same, T),
    ("linalg.multi_dot", lambda x, y, z: np.linalg.multi_dot([x, y, z]), lambda x, y, z: x @ y @ z, v, A, u),
    ("tensordot", lambda x, y: np.tensordot(x, y, 0), same, v, u),
    ("inner", np.inner, same, 1.5, A),
    ("dot", np.dot, same, A, 1.5),
    ("dot", np.dot, same, v, T[:, :, :2]),
    ("polyval", np.polyval, lambda p, x: 0 * x + p[0], v[:1], A),
]


def mean_of(x, weights, axes):
    return np.sum(x * exact(weights), axes) / np.sum(exact(weights))


def power(x, n):
    """x to the power of n, and 1 for n = 0."""
    found = 0 * x + 1
    for _ in range(n):
        found = found * x
    return found


def chosen(f, x, other=None):
    """f where BOTH is positive, something else or zero where not."""
    other = 0 * x if other is None else other
    return np.stack([f(t) if b > 0 else o for t, o, b in zip(x, other, BOTH, strict=True)])


def log_of_sum(x, axis):
    return np.log(np.sum(np.exp(x), axis))


def shares(x, axis):
    return np.exp(x) / np.sum(np.exp(x), axis, keepdims=True)


def cubes(x):
    """The sum of the cubes of eigenvalues is a trace."""
    whole = np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2)
    return np.trace(whole @ whole @ whole, axis1=-2, axis2=-1)


def is_taken(row):
    """Whether numpy takes it: before 2, it has no weights of several axes, nor one vector for a stack of matrices."""
    shapes = [np.shape(x) for x in row[3:]]
    return NUMPY_2 or (row[0], shapes) not in (
        ("average", [(2, 3, 4)]),
        ("average", [(2, 3, 2)]),
        ("linalg.solve", [(2, 3, 3), (3,)]),
    )


@pytest.mark.parametrize(
    "row", list(filter(is_taken, EDGES)), ids=lambda row: f"{row[0]}{[np.shape(x) for x in row[3:]]}"
)
def test_edges(row):
    _, f, meaning, *points = row
    with np.errstate(divide="ignore", invalid="ignore"):
        agree(f, meaning or f, points)


FIRST = [  # where there is a first derivative, but no second one, or not one that is given
    ("eigvalsh", lambda x: np.sum(np.linalg.eigvalsh(x) ** 2), lambda x: np.sum(x * x), np.eye(3)),
    ("svdvals", lambda x: np.sum(np.linalg.svd(x, compute_uv=False) ** 2), lambda x: np.sum(x * x), np.eye(3)),
]


@pytest.mark.parametrize("row", FIRST, ids=lambda row: row[0])
def test_edges_with_a_first_derivative_alone(row):
    _, f, meaning, *points = row
    agree(f, meaning, points, order=1)
    with pytest.raises(dg.NotDifferentiable):
        agree(f, meaning, points)


# -- special functions -------------------------------------------------------------------------------------------------


def each(function):
    """mpmath's function of one number, for arrays."""
    return lambda *xs: np.frompyfunc(function, len(xs), 1)(*(np.asarray(x) for x in xs))


def of_order(name, n):
    return (
        f"{name}({n})",
        lambda x: getattr(special, name)(n, x),
        lambda x: OF_ORDER[name][0](n, x),
        OF_ORDER[name][2],
    )


SPECIAL = [
    *((name, getattr(special, name), *row) for name, row in MEANING.items()),
    *((name, getattr(special, name), *row) for name, row in OF_TWO.items()),
    *(of_order(name, n) for name, (_, orders, _) in OF_ORDER.items() for n in orders),
]


@pytest.mark.parametrize("row", SPECIAL, ids=lambda row: row[0])
def test_special_functions(row):
    pytest.importorskip("scipy")
    _, f, meaning, *points = row
    if len(points) == 1:
        agree(f, each(meaning), [np.array(points[0][:4])], order=2, tolerance=1e-11)
    else:
        agree(f, each(meaning), [np.array(points[0][:2])[:, None], np.array(points[1][:3])], order=2, tolerance=1e-11)


# -- the tables are complete -------------------------------------------------------------------------------------------

MAKERS = {
    "linear",
    "_solved_with",
    "several",
    "_inverse",
    "_step",
    "_reciprocal_gaps",
    "_simple",
    "_at",
    "_getitem",
    "_reversed",
}


def operations_of(module):
    """The names in a module of operations, and of functions that make one."""
    return {
        name
        for name, x in vars(module).items()
        if isinstance(x, Operation)
        or (
            getattr(x, "__module__", "") == module.__name__
            and getattr(x, "__annotations__", {}).get("return") == "Operation"
        )
    }


def test_every_operation_has_a_row():
    with_derivative = {name for name, operation in ops.TABLE.items() if operation.result is real}
    assert with_derivative == set(DOMAINS) | {"where"}
    declared = set().union(*map(operations_of, (arrays, reductions, matrices, determinants, windows)))
    assert len(declared) > 50
    assert declared - MAKERS == {row[0] for row in WHOLE}


def test_every_function_has_a_row():
    listed = {operator.attrgetter(row[0])(np) for row in CASES if row[0] not in ("[]", "iter")}
    functions = set(FUNCTIONS) | set(COMPOSED) | (set(UFUNCS) - STEPS)
    same_as_others = {"asarray", "asanyarray", "ascontiguousarray", "row_stack", "trapz"}
    assert {f.__name__ for f in functions - listed} <= same_as_others
    assert set(special.__all__) <= {row[0].split("(")[0] for row in SPECIAL + EDGES}
