"""numpy under derivatives: each function, in both modes, to second order.

`CASES` has them all, by numpy's names, and a test checks that it is complete. What can be computed in 50 digits is held
to those in `test_fifty_digits.py`, what cannot to central differences here. Then: values, shapes and kinds of results;
functions without derivatives; refusals and their messages. Costs a few seconds.
"""

from __future__ import annotations

import fractions
import itertools
import math
import operator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from mpmath import mp

import dynagrad as dg
import dynagrad.numpy as dnp
from dynagrad.eager.numbers import Number
from dynagrad.eager.numpy.functions import FUNCTIONS
from dynagrad.eager.numpy.protocol import COMPOSED, LOOKS, STEPS, UFUNCS
from dynagrad.errors import Error, NotDifferentiable
from eager.numpy.numpy_cases import BY_DIFFERENCES, MORE, NUMPY_2

chance = np.random.default_rng(7)
A, B, C = chance.normal(size=(3, 4)), chance.normal(size=(4, 3)), chance.normal(size=(3, 3))
T, U, CC = chance.normal(size=(2, 3, 4)), chance.normal(size=(2, 4, 2)), chance.normal(size=(2, 3, 3))
u, v, w = chance.normal(size=4), chance.normal(size=3), chance.normal(size=2)
S = C @ C.T + np.eye(3)
ZEROS = A * np.array([1.0, 0.0, 1.0, 0.0])  # more than one zero in a row
P = abs(A) + 0.5
linalg = np.linalg

CASES = [
    # reductions
    ("sum", np.sum, A),
    ("sum", lambda x: np.sum(x, 0), A),
    ("sum", lambda x: x.sum(axis=(0, -1), keepdims=True), T),
    ("sum", np.sum, 2.5),
    ("prod", np.prod, A),
    ("prod", lambda x: np.prod(x, axis=(0, 2)), T),
    ("prod", lambda x: x.prod(axis=1, keepdims=True), ZEROS),
    ("max", np.max, A),
    ("max", lambda x: x.max((0, 2)), T),
    ("amax", lambda x: np.amax(x, -1, keepdims=True), T),
    ("min", lambda x: x.min(1), T),
    ("amin", np.amin, A),
    ("ptp", lambda x: np.ptp(x, 0), A),
    ("mean", lambda x: np.mean(x, 1), A),
    ("average", lambda x: np.average(x, 0), A),
    ("average", lambda x, y: np.average(x, 1, weights=y), A, abs(u)),
    ("var", lambda x: x.var(0), A),
    ("var", lambda x: np.var(x, ddof=1), A),
    ("std", lambda x: x.std(axis=1, keepdims=True), A),
    ("cumsum", lambda x: np.cumsum(x, 1), T),
    ("cumsum", np.cumsum, A),
    ("cumprod", lambda x: np.cumprod(x, 1), T),
    ("cumprod", lambda x: np.cumprod(x, -1), ZEROS),
    ("cumprod", np.cumprod, A),
    ("diff", lambda x: np.diff(x, 2) ** 2, A),
    ("diff", lambda x: np.diff(x, axis=0) ** 2, A),
    # shapes
    ("reshape", lambda x: np.reshape(x, (2, -1)) ** 2, A),
    ("reshape", lambda x: x.reshape(4, 3, order="F") ** 2 * B, A),
    ("ravel", lambda x: np.ravel(x) ** 2, A),
    ("transpose", lambda x: x.transpose(2, 0, 1) ** 2, T),
    ("transpose", lambda x: x.T @ A, A),
    ("permute_dims", lambda x: np.permute_dims(x, (1, 0)) @ A, A),
    ("swapaxes", lambda x: x.swapaxes(0, 2) ** 2, T),
    ("matrix_transpose", lambda x: np.matrix_transpose(x) @ x, T),
    ("linalg.matrix_transpose", lambda x: np.linalg.matrix_transpose(x) @ x, T),
    ("moveaxis", lambda x: np.moveaxis(x, 0, -1) ** 2, T),
    ("moveaxis", lambda x: np.moveaxis(x, (0, 1), (1, 2)) ** 2, T),
    ("expand_dims", lambda x: np.expand_dims(x, (0, -1)) ** 2, A),
    ("squeeze", lambda x: np.squeeze(x[:, :1]) ** 2, A),
    ("broadcast_to", lambda x: np.broadcast_to(x, (2, 3, 4)) * T, A),
    ("broadcast_to", lambda x: np.broadcast_to(x, (2, 2)) * np.eye(2), 1.5),
    ("broadcast_arrays", lambda x, y: np.multiply(*np.broadcast_arrays(x, y)), T, u),
    ("atleast_1d", lambda x: np.atleast_1d(x) ** 2, 1.5),
    ("atleast_2d", lambda x, y: [z**2 for z in np.atleast_2d(x, y)], v, A),
    ("copy", lambda x: np.copy(x) ** 2, A),
    ("real", lambda x: np.real(x) ** 2, A),
    ("real_if_close", lambda x: np.real_if_close(x) ** 2, A),
    ("imag", lambda x: x + np.imag(x), A),
    ("angle", lambda x: x * np.angle(x), A),
    ("full_like", lambda x: np.full_like(x, np.sum(x)) * x, A),
    # moving elements
    ("flip", lambda x: np.flip(x, 0) * x, A),
    ("flip", lambda x: np.flip(x) * x, T),
    ("fliplr", lambda x: np.fliplr(x) * x, A),
    ("flipud", lambda x: np.flipud(x) * x, A),
    ("rot90", lambda x: np.rot90(x, 3) @ x, A),
    ("roll", lambda x: np.roll(x, (1, 2), (0, 1)) * x, A),
    ("roll", lambda x: np.roll(x, 2) * x, A),
    ("repeat", lambda x: np.repeat(x, [1, 0, 3], 0) ** 2, A),
    ("repeat", lambda x: np.repeat(x, 2) ** 2, A),
    ("tile", lambda x: np.tile(x, (2, 1, 3)) ** 2, A),
    ("tile", lambda x: np.tile(x, 2) ** 2, A),
    ("pad", lambda x: np.pad(x, ((1, 2), (0, 1)), constant_values=3.0) ** 2, A),
    ("pad", lambda x: np.pad(x, 2, mode="reflect") ** 2, A),
    ("pad", lambda x: np.pad(x, 1, mode="wrap") ** 2, A),
    ("take", lambda x: np.take(x, [3, 0, 3], 1) ** 2, A),
    ("take", lambda x: x.take([[3, 11], [3, 0]]) ** 2, A),
    ("compress", lambda x: np.compress([True, False, True], x, 0) ** 2, A),
    ("extract", lambda x: np.extract(A > 0, x) ** 2, A),
    ("delete", lambda x: np.delete(x, [1], 0) ** 2, A),
    ("take_along_axis", lambda x: np.take_along_axis(x, np.argsort(x, 0), 0) ** 2, A),
    ("take_along_axis", lambda x: np.take_along_axis(x, np.zeros((3, 2), int), 1) ** 2, A),
    ("sort", lambda x: np.sort(x, 1) ** 2 * T, T),
    ("sort", lambda x: np.sort(x, None) ** 2 * np.arange(12), A),
    ("diagonal", lambda x: np.diagonal(x, 1, 0, 2) ** 2, T),
    ("linalg.diagonal", lambda x: np.linalg.diagonal(x, offset=-1) ** 2, T),
    ("trace", lambda x: np.trace(x, 1, 0, 2) ** 2, T),
    ("linalg.trace", lambda x: np.linalg.trace(x) ** 2, T),
    ("diag", lambda x: np.diag(x, 1) ** 2, A),
    ("diag", lambda x: np.diag(x, -1) ** 2, v),
    ("diagflat", lambda x: np.diagflat(x) ** 2, C),
    ("tril", lambda x: np.tril(x, -1) ** 2, T),
    ("triu", lambda x: np.triu(x, 1) ** 2, A),
    # joining and splitting
    ("concatenate", lambda x, y: np.concatenate([x, y**2, x], 1), A, C),
    ("concatenate", lambda x, y: np.concatenate([x, y**2], axis=None), A, C),
    ("concat", lambda x, y: np.concat([x, np.ones((2, 4))]) * y, A, u),
    ("stack", lambda x, y: np.stack([x, y * y, np.ones(3)], 1), v, v),
    ("stack", lambda x: np.stack([x, x * x, 2.0]), 1.5),
    ("stack", lambda x: np.stack([x[i % 4] * i for i in range(90)]) ** 2, u),
    ("vstack", lambda x, y: np.vstack([x * x, y]), A, u),
    ("hstack", lambda x, y: np.hstack([x, y * x[0]]), v, v),
    ("hstack", lambda x, y: np.hstack([x, y * x[0, 0]]), A, C),
    ("column_stack", lambda x, y: np.column_stack([x, y * y]), C, v),
    ("dstack", lambda x, y: np.dstack([x, y * y]), A, A),
    ("append", lambda x, y: np.append(x, y**2, axis=0), A, A),
    ("split", lambda x: [i * part**2 for i, part in enumerate(np.split(x, 2, axis=1))], A),
    ("array_split", lambda x: [i * part**2 for i, part in enumerate(np.array_split(x, 3, 1))], A),
    # choosing
    ("where", lambda x, y: np.where(x > 0, x * y, y), A, u),
    ("clip", lambda x: np.clip(x, -0.5, 0.5) * x, A),
    ("clip", lambda x, y: np.clip(x, None, y) * x, A, u),
    ("select", lambda x: np.select([x > 1, x > 0], [x**2, x**3], 0.5), A),
    ("nan_to_num", lambda x: np.nan_to_num(x * np.where(A > 1, math.nan, A)), A),
    ("sinc", np.sinc, A),
    ("sinc", np.sinc, 0.0),
    # products
    ("linalg.matmul", lambda x, y: np.linalg.matmul(x, y), A, B),
    ("matmul", np.matmul, A, B),
    ("matmul", lambda x, y: x @ y, v, A),
    ("matmul", lambda x, y: x @ y, A, u),
    ("matmul", lambda x, y: x @ y, u, u + 1),
    ("matmul", lambda x, y: x @ y, T, U),
    ("matmul", lambda x, y: x @ y, T, B),
    ("matmul", lambda x, y: x @ y, C, T),
    ("matmul", lambda x, y: x @ y, T, u),
    ("matmul", lambda x, y: x @ y, v, T),
    ("matmul", lambda x, y: x @ y, T[:1], U),
    ("matmul", lambda x: A @ x @ A, B),
    ("dot", np.dot, A, B),
    ("dot", lambda x, y: x.dot(y), A, U),
    ("dot", np.dot, 1.5, A),
    ("vdot", np.vdot, A, A + 1),
    ("vecdot", lambda x, y: np.vecdot(x, y) ** 2, T, u),
    ("matvec", lambda x, y: np.matvec(x, y) ** 2, T, u),
    ("vecmat", lambda x, y: np.vecmat(x, y) ** 2, v, T),
    ("linalg.vecdot", lambda x, y: np.linalg.vecdot(x, y) ** 2, T, A),
    ("inner", np.inner, A, A + 1),
    ("outer", np.outer, A, v),
    ("linalg.outer", lambda x, y: np.linalg.outer(x, y), v, u),
    ("kron", np.kron, A, C),
    ("cross", np.cross, C, v),
    ("linalg.cross", lambda x, y: np.linalg.cross(x, y), C, C.T),
    ("tensordot", lambda x, y: np.tensordot(x, y, ([2, 1], [0, 1])), T, B),
    ("linalg.tensordot", lambda x, y: np.linalg.tensordot(x, y, axes=1), A, B),
    ("einsum", lambda x, y: np.einsum("ij,jk->ki", x, y), A, B),
    ("einsum", lambda x, y: np.einsum("ij,jk", x, y), A, B),
    ("einsum", lambda x: np.einsum("ii->i", x) ** 2, C),
    ("einsum", lambda x: np.einsum("bii", x) ** 2, CC),
    ("einsum", lambda x: np.einsum("ij->j", x) ** 2, A),
    ("einsum", lambda x, y: np.einsum("...ij,...jk->...ik", x, y), T[:1], U),
    ("einsum", lambda x, y: np.einsum("...j,j", x, y), T, u),
    ("einsum", lambda x, y, z: np.einsum("bij,jk,b->ik", x, y, z, optimize=True), T, B, w),
    ("einsum", lambda x, y: np.einsum("ij,ij", x, y), A, A[:1]),
    ("einsum", lambda x, y: np.einsum("i,j->", x, y), v, u),
    ("einsum", lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [0, 2]), A, B),
    ("einsum", lambda x, y: np.einsum("iij,j->", x, y), CC[:, :2], v),
    ("polyval", np.polyval, v, A),
    ("trapezoid", lambda y, x: np.trapezoid(y, x), A, u),
    ("trapezoid", lambda y: np.trapezoid(y, dx=0.5, axis=0), A),
    # linear algebra
    ("linalg.solve", linalg.solve, C, B[:3]),
    ("linalg.solve", linalg.solve, C, v),
    *([("linalg.solve", linalg.solve, CC, B[:3])] if NUMPY_2 else []),  # to numpy 1, rows of B are vectors
    ("linalg.inv", linalg.inv, CC),
    ("linalg.det", linalg.det, C),
    ("linalg.det", linalg.det, CC),
    ("linalg.slogdet", lambda x: linalg.slogdet(x)[1], C),
    ("linalg.slogdet", lambda x: linalg.slogdet(x).logabsdet * linalg.slogdet(x).sign, CC),
    ("linalg.cholesky", linalg.cholesky, S),
    ("linalg.cholesky", linalg.cholesky, np.stack([S, S + 1])),
    ("linalg.eigh", lambda x: linalg.eigh(x).eigenvalues, S),
    ("linalg.eigh", lambda x: abs(linalg.eigh(x)[1]), S),
    ("linalg.eigh", lambda x: [abs(part) for part in linalg.eigh(x, "U")], CC),
    ("linalg.eigvalsh", linalg.eigvalsh, CC),
    ("linalg.qr", lambda x: tuple(linalg.qr(x)), B),
    ("linalg.qr", lambda x: tuple(linalg.qr(x)), CC),
    ("linalg.qr", lambda x: tuple(linalg.qr(x)), A),
    ("linalg.qr", lambda x: linalg.qr(x, "r"), B),
    ("linalg.svd", lambda x: linalg.svd(x, compute_uv=False), A),
    ("linalg.svd", lambda x: [abs(part) for part in linalg.svd(x, full_matrices=False)], A),
    ("linalg.svd", lambda x: [abs(part) for part in linalg.svd(x, full_matrices=False)], B),
    ("linalg.svd", lambda x: [abs(part) for part in linalg.svd(x)], CC),
    ("linalg.svdvals", lambda x: np.linalg.svdvals(x), A),
    ("linalg.matrix_power", lambda x: linalg.matrix_power(x, 5), CC / 2),
    ("linalg.matrix_power", lambda x: linalg.matrix_power(x, -2), S),
    ("linalg.matrix_power", lambda x: linalg.matrix_power(x, 0) * x, C),
    ("linalg.multi_dot", lambda x, y: linalg.multi_dot([x, y, x]), A, B),
    ("linalg.norm", linalg.norm, A),
    ("linalg.norm", lambda x: linalg.norm(x, 2), A),
    ("linalg.norm", lambda x: linalg.norm(x, "nuc"), A),
    ("linalg.norm", lambda x: linalg.norm(x, 1, axis=0), A),
    ("linalg.norm", lambda x: linalg.norm(x, 3, axis=1, keepdims=True), A),
    ("linalg.norm", lambda x: linalg.norm(x, math.inf, axis=(0, 2), keepdims=True), T),
    ("linalg.norm", lambda x: linalg.norm(x, -math.inf), v),
    ("linalg.vector_norm", lambda x: np.linalg.vector_norm(x, ord=4), A),
    ("linalg.matrix_norm", lambda x: np.linalg.matrix_norm(x, keepdims=True), T),
    # ufuncs
    *(
        (name, getattr(np, name), x)
        for names, x in [
            ("negative positive absolute fabs exp exp2 expm1 sin cos arctan sinh cosh tanh arcsinh square cbrt", A),
            ("conjugate deg2rad radians rad2deg degrees", A),
            ("log log2 log10 log1p sqrt reciprocal", P),
            ("arcsin arccos arctanh tan", np.tanh(A)),
            ("arccosh", P + 1),
        ]
        for name in names.split()
    ),
    *(
        (name, getattr(np, name), x, y)
        for names, x, y in [
            ("add subtract multiply divide hypot arctan2 logaddexp logaddexp2 copysign", A, u),
            ("maximum minimum fmax fmin add multiply", T, A),
            ("maximum arctan2 multiply", v[:, None], u),
            ("power float_power", P, T),
            ("remainder fmod", T, P),
            ("multiply divide subtract power", P, 2.5),
            ("subtract divide hypot", 2.5, P),
        ]
        for name in names.split()
    ),
    ("ldexp", lambda x: np.ldexp(x, 3) ** 2, A),
    ("divmod", lambda x: np.divmod(x, 0.7)[1] * x, A),
    ("modf", lambda x: np.modf(x)[0] ** 2, A),
    ("modf of infinity", lambda x: np.modf(x)[0] + np.modf(np.where(x > 0, np.inf, x))[0], A),
    ("add", lambda x, y: np.add.outer(x, y) ** 2, v, u),
    ("add", lambda x: np.add.reduce(x) ** 2, A),
    ("add", lambda x: np.add.accumulate(x, axis=1) ** 2, A),
    ("multiply", lambda x: np.multiply.reduce(x, axis=None), A),
    ("multiply", lambda x: np.multiply.accumulate(x), A),
    ("maximum", lambda x: np.maximum.reduce(x, axis=1) ** 2, A),
    # indexing
    ("[]", lambda x: x[1] ** 2, A),
    ("[]", lambda x: x[-1, 2] ** 2, A),
    ("[]", lambda x: x[1:, [0, 0, 2]] ** 2, A),
    ("[]", lambda x: x[..., None, 1] ** 2, T),
    ("[]", lambda x: x[x > 0] ** 2, A),
    ("[]", lambda x: x[np.array([True, False, True]), 1] ** 2, A),
    ("[]", lambda x: x[[0, 1, 0], ..., [1, 1, 2]] ** 2, np.concatenate([T, T], 1)),
    ("[]", lambda x: x[np.ix_([0, 0], [1, 2])] ** 2, A),
    ("[]", lambda x: x[::-2, 3:0:-1] ** 2, A),
    ("iter", lambda x: [i * row**2 for i, row in enumerate(x)], A),
]


def exists(name):
    try:
        return name in ("[]", "iter") or operator.attrgetter(name)(np)
    except AttributeError:  # in another numpy
        return False


CASES = [case for case in CASES if exists(case[0])]
IN_DOUBLES = [case for case in CASES if case[0] == "angle"]  # a step, of which numpy has none of digits
IN_DOUBLES += [case for case in MORE if case[0] in BY_DIFFERENCES]
CASES += MORE
IN_DIGITS = [case for case in CASES if all(case is not other for other in IN_DOUBLES)]


def flat(result):
    """All numbers of a result in one row."""
    parts = result if isinstance(result, tuple | list) else [result]
    return np.concatenate([np.ravel(part) if np.ndim(part) else np.stack([part]) for part in parts])


def names(case):
    return f"{case[0]}{[np.shape(x) for x in case[2:]]}"


def dot(xs, ys):
    return sum(np.sum(x * y) for x, y in zip(xs, ys, strict=True))


@pytest.mark.parametrize("case", IN_DOUBLES, ids=names)
def test_derivatives_of_first_and_second_order_in_both_modes(case):
    _, f, *points = case
    # Fresh copies: points of one place must not be one object.
    points = [np.array(x) if np.ndim(x) else float(x) for x in points]
    rng = np.random.default_rng(1)
    directions = [rng.normal(size=np.shape(x)) if np.ndim(x) else float(rng.normal()) for x in points]
    weights = rng.normal(size=flat(f(*points)).shape)
    every = tuple(range(len(points)))

    def g(*xs):
        return np.sum(flat(f(*xs)) * weights)

    def forward(*xs):
        return dg.jvp(g, xs, tuple(directions))[1]

    def backward(*xs):
        return dot(dg.grad(g, every)(*xs), directions)

    def slope(h, step=1e-5):
        ends = [[x + s * step * d for x, d in zip(points, directions, strict=True)] for s in (1, -1, 0.5, -0.5)]
        a, b, c, d = (h(*end) for end in ends)
        return (8 * (c - d) - (a - b)) / (6 * step)

    first = slope(g)
    assert forward(*points) == pytest.approx(first, rel=1e-7, abs=1e-7)
    assert backward(*points) == pytest.approx(forward(*points), rel=1e-11, abs=1e-11)
    second = slope(backward)
    ways = [dg.jvp(h, tuple(points), tuple(directions))[1] for h in (forward, backward)]
    ways += [dot(dg.grad(h, every)(*points), directions) for h in (forward, backward)]
    assert ways == pytest.approx([second] * 4, rel=1e-6, abs=1e-6)
    assert ways == pytest.approx([ways[0]] * 4, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("case", CASES, ids=names)
def test_values_shapes_and_kinds_are_those_of_numpy(case):
    _, f, *points = case
    seen = []

    def traced(*xs):
        result = f(*xs)
        seen.extend(result if isinstance(result, tuple | list) else [result])
        return flat(result)[0]

    dg.grad(traced)(*points)
    expected = f(*points)
    expected = list(expected) if isinstance(expected, tuple | list) else [expected]
    for got, wanted in zip(seen, expected, strict=True):
        value = got
        while isinstance(value, Number):
            assert value.shape == np.shape(wanted)
            value = value.primal
        assert type(value) is (np.ndarray if np.ndim(wanted) else float)
        np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-13)


def test_every_function_with_a_handler_is_in_the_table():
    listed = {operator.attrgetter(name)(np) for name, *_ in CASES if name not in ("[]", "iter")}
    missing = {f.__name__ for f in (set(FUNCTIONS) | (set(UFUNCS) - STEPS) | set(COMPOSED)) - listed}
    assert missing <= {"asarray", "asanyarray", "ascontiguousarray", "row_stack", "trapz"}


# -- edges -------------------------------------------------------------------------------------------------------------


def test_at_ties_the_maximum_of_an_axis_follows_the_first():
    x = np.array([[1.0, 3.0, 3.0], [3.0, 0.0, 3.0]])
    assert dg.grad(np.max)(x).tolist() == [[0, 1, 0], [0, 0, 0]]
    assert dg.grad(lambda x: np.sum(np.max(x, 1)))(x).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert dg.grad(lambda x: np.sum(x.min(0)))(x * 0).tolist() == [[1, 1, 1], [0, 0, 0]]
    assert dg.jvp(np.max, (x,), (np.arange(6.0).reshape(2, 3),))[1] == 1.0
    assert dg.grad(lambda x: np.sort(x)[2])(np.array([2.0, 1.0, 2.0])).tolist() == [0, 0, 1]
    assert dg.grad(lambda x: np.sum(np.maximum(x, 3.0)))(x).tolist() == [[0, 1, 1], [1, 0, 1]]


def test_clip_counts_its_ends_as_inside():
    assert dg.grad(lambda x: np.sum(np.clip(x, 0.0, 1.0)))(np.array([-1.0, 0.0, 0.5, 1.0, 2.0])).tolist() == [
        0,
        1,
        1,
        1,
        0,
    ]


def test_elements_taken_twice_count_twice():
    assert dg.grad(lambda x: np.sum(x[[0, 0, 1]]))(np.ones(3)).tolist() == [2, 1, 0]
    assert dg.grad(lambda x: np.sum(np.take_along_axis(x, np.array([1, 1, 1]), 0)))(np.ones(3)).tolist() == [0, 3, 0]


def test_a_single_number_can_be_indexed_as_an_array_of_no_dimension():
    assert dg.grad(lambda x: x[()] * x[...] + np.sum(x[None]))(1.5) == 4.0
    for index in ((), ..., None):  # of a sum, where choices may be followed
        found = dg.grad(lambda x, index=index: np.sum(np.sum(x[[0, 1]])[index] ** 2))(np.array([1.0, 2.0, 5.0]))
        assert found.tolist() == [6.0, 6.0, 0.0]


def test_an_index_is_read_when_it_is_used():
    places = np.array([0, 1])

    def f(x):
        y = x[places]
        places[:] = 2
        return np.sum(y)

    assert dg.grad(f)(np.ones(3)).tolist() == [1, 1, 0]


def test_writing_into_data_after_its_use_changes_nothing():
    data = np.arange(1.0, 5.0)
    view = data[:]

    def f(x):
        y = np.sum(np.multiply(x, data)) + np.dot(data, x)
        view[:] = 100.0
        return y

    assert dg.grad(f)(np.ones(4)).tolist() == [2, 4, 6, 8]
    large = np.ones(10_000)  # copies of large arrays are remembered, but not when they changed
    for k in (1.0, 2.0, -0.0, 0.0):
        large[:] = k
        got = dg.grad(lambda x: np.sum(np.divide(1.0, np.copysign(1.0, large)) * x * large))(np.ones(10_000))
        assert got[0] == k


def test_an_array_that_is_closed_to_writing_may_be_written_to_all_the_same():
    def through_an_older_view(x):
        data = np.array([1.0, 2.0])
        view = data[:]
        data.setflags(write=False)
        y = x * data
        view[:] = 0.0
        return np.sum(y)

    def opened_again(x):
        data = np.array([1.0, 2.0])
        data.setflags(write=False)
        y = np.where([True, True], x, 0.0) ** data + np.dot(data, x)
        data.setflags(write=True)
        data[:] = 0.0
        return np.sum(y)

    for verb in (dg.grad, dg.jacfwd, dg.jacrev):
        assert verb(through_an_older_view)(np.ones(2)).tolist() == [1, 2]
        assert verb(opened_again)(np.ones(2)).tolist() == [3, 6]
    held = np.array([1.0, 2.0])
    rule = dg.custom_rule(lambda x: held, jvp=lambda p, t: 2.0 * t[0])  # gives out what it keeps

    def of_a_rule(x):
        y = rule(x) * x
        held[:] = 7.0
        return np.sum(y)

    assert dg.grad(of_a_rule)(np.ones(2)).tolist() == [3, 4] and held.tolist() == [7, 7]

    def kept(g, x):
        y = g(x) * x
        held[:] = 0.0
        return np.sum(y)

    held[:] = 1.0, 2.0
    assert dg.grad(kept, 1)(lambda x: held, np.ones(2)).tolist() == [1, 2]
    held[:] = 1.0, 2.0
    assert dg.grad(kept, (0, 1))(lambda x: held, np.ones(2))[1].tolist() == [1, 2]


def test_complex_numbers_are_refused():
    for f in (
        lambda x: np.sum(np.abs(x * np.array([1j]))),
        lambda x: np.sum(np.array([1j, 2.0]) * x),
        lambda x: np.abs(np.complex128(1j) * x[0]),
        lambda x: x[0] * 1j,
        lambda x: 1j - x,
        lambda x: np.dot(x, np.ones(2) * 1j),
    ):
        for verb in (dg.grad, dg.jacfwd):
            with pytest.raises(dg.Error, match=r"complex; keep its two parts as reals.*test_numpy\.py, line"):
                verb(f)(np.ones(2))


def test_fractions_are_constants():
    half = fractions.Fraction(1, 2)
    for verb in (dg.grad, dg.derivative):
        assert verb(lambda x: x * half + half * x - half / x + (x > half))(2.0) == 1.125


def test_subclasses_of_arrays_that_compute_differently_are_refused():
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    for f, x in (
        (np.sum, masked),
        (lambda x: np.sum(x * masked), np.ones(2)),
        (np.sum, matrix),
        (lambda x: np.sum(x @ matrix), np.eye(2)),
        (lambda x: np.sum(matrix * x), np.eye(2)),
        (lambda p: np.sum(p["w"]), {"w": masked}),
    ):
        with pytest.raises(dg.Error, match=r"class (MaskedArray|matrix).*np\.asarray.*line|plain array"):
            dg.grad(f)(x)


def test_the_gradient_of_a_singular_determinant_is_that_of_its_cofactors():
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    assert dg.grad(np.linalg.det)(singular) == pytest.approx(np.array([[4.0, -2.0], [-2.0, 1.0]]))
    assert dg.grad(np.linalg.det)(np.zeros((2, 2))).tolist() == [[0, 0], [0, 0]]
    assert dg.hessian(np.linalg.det)(np.zeros((2, 2))).tolist() == [[[[0, 0], [0, 1]], [[0, 0], [-1, 0]]]] + [
        [[[0, -1], [0, 0]], [[1, 0], [0, 0]]]
    ]
    with pytest.raises(NotDifferentiable, match="singular"):
        dg.grad(lambda x: np.linalg.slogdet(x)[1])(np.zeros((2, 2)))


def test_determinants_of_nearly_singular_matrices_have_their_digits_in_every_order():
    nearly = np.arange(1.0, 10.0).reshape(3, 3) / 10.0
    assert dg.hessian(np.linalg.det)(nearly)[0, 0, 1, 1] == pytest.approx(0.9, rel=1e-14)
    line = [dg.derivative(lambda t: np.linalg.det(nearly + t * np.eye(3)), n)(0.0) for n in (2, 3, 4, 30)]
    assert line == pytest.approx([2.0 * np.trace(nearly), 6.0, 0.0, 0.0], rel=1e-14)


def test_high_orders_of_determinants_cost_little_and_those_of_their_gradients_say_that_there_are_none():
    square, expected = np.random.default_rng(2).normal(size=(4, 4)), 0.0
    for columns in itertools.permutations(range(4)):  # exp(t x) in each place, so a product is exp(t times a sum)
        sign = (-1) ** sum(i > j for i, j in itertools.combinations(columns, 2))
        total = mp.fsum(square[range(4), columns])
        expected += sign * total**20 * mp.exp(0.5 * total)
    found = dg.derivative(lambda t: np.linalg.det(np.exp(t * square)), 20)(0.5)
    assert found == pytest.approx(float(expected), rel=1e-9)
    with pytest.raises(NotDifferentiable, match="order 9 of the gradient of a determinant"):
        dg.derivative(lambda t: dg.grad(np.linalg.det)(np.exp(t * square)), 9)(0.5)


def test_a_singular_value_of_zero_is_a_kink():
    for order in ("nuc", 2, -2):
        assert dg.grad(lambda x, order=order: np.linalg.norm(x, order))(np.zeros((2, 2))).tolist() == [[0, 0], [0, 0]]
        tangent = dg.jvp(lambda x, order=order: np.linalg.norm(x, order), (np.zeros((2, 2)),), (np.ones((2, 2)),))[1]
        assert tangent == 0.0


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e-310, 1.0])
@pytest.mark.parametrize("p", [None, 2, 3, 1.5])
def test_norms_have_their_slopes_where_squares_are_out_of_range(scale, p):
    def norm(x):
        return np.linalg.norm(x, p)

    x = np.array([1.0, -1.0]) * scale
    with np.errstate(over="ignore"):
        value = np.linalg.norm(x, p)
    q = p or 2
    expected = pytest.approx([2.0 ** (1 / q - 1), -(2.0 ** (1 / q - 1))], rel=1e-14)
    assert dg.value_and_grad(norm)(x) == (pytest.approx(value, rel=1e-14), expected)
    assert dg.jvp(norm, (x,), (np.array([1.0, 0.0]),))[1] == pytest.approx(2.0 ** (1 / q - 1), rel=1e-14)
    with np.errstate(over="ignore"):
        assert dg.value_and_grad(lambda x: np.linalg.norm(x[None], p, axis=1)[0])(x)[1] == expected
    if p in (None, 2):
        bend = dg.hessian(norm)(x) * scale
        assert bend == pytest.approx(np.full((2, 2), 0.5**1.5), rel=1e-12) or scale == 1e-310


def test_norms_of_nothing_and_of_zeros():
    assert dg.grad(np.linalg.norm)(np.zeros(0)).shape == (0,)
    for p in (None, 3):
        with pytest.raises(NotDifferentiable):
            dg.grad(lambda x, p=p: np.linalg.norm(x, p))(np.zeros(2))
    rows = np.array([[0.0, 0.0], [3.0, 4.0]])
    safe = dg.grad(lambda x: np.sum(np.where([False, True], np.linalg.norm(x, axis=1), 0.0)))
    assert safe(rows) == pytest.approx(np.array([[0.0, 0.0], [0.6, 0.8]]))


def test_eigh_of_the_upper_triangle_has_the_signs_of_numpy():
    for seed in range(20):
        x = np.random.default_rng(seed).normal(size=(4, 4))
        found = dg.jvp(lambda x: tuple(np.linalg.eigh(x, "U")), (x,), (x,))[0]
        for ours, theirs in zip(found, np.linalg.eigh(x, "U"), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_options_may_be_given_by_their_places():
    for f in (lambda x: np.sum(x, 0, float), lambda x: x.sum(0, float), lambda x: np.sum(x, 0, None, None, False)):
        assert dg.grad(lambda x, f=f: np.sum(f(x) * np.arange(4.0)))(A).tolist() == [[0, 1, 2, 3]] * 3
    assert dg.jvp(lambda x: np.var(x, 1, None, None, 1), (A,), (A,))[0] == pytest.approx(np.var(A, 1, ddof=1))
    assert dg.jvp(lambda x: x.var(1, None, None, 1), (A,), (A,))[0] == pytest.approx(np.var(A, 1, ddof=1))
    with pytest.raises(Error, match="float64"):
        dg.grad(lambda x: np.sum(x, None, np.float32))(A)
    with pytest.raises(Error, match="out="):
        dg.grad(lambda x: np.sum(np.cumsum(x, 0, None, np.zeros((3, 4)))))(A)


def test_the_order_of_memory_is_not_that_of_numbers():
    for f in (lambda x: np.reshape(x.T, -1, order="A"), lambda x: np.ravel(x.T, order="K"), lambda x: x.T.ravel("A")):
        with pytest.raises(Error, match=r"memory layout.*'C' or 'F' \(.*test_numpy"):
            dg.jvp(f, (A,), (A,))
    assert dg.grad(lambda x: np.sum(np.ravel(x, order="A")))(np.ones(2)).tolist() == [1, 1]


def test_sinc_in_high_orders():
    for x in (0.0, 1e-3, 0.01, 0.3, 1.0, -2.6, 40.0):
        for n in (1, 4, 9, 10, 21):
            t = mp.pi * mp.mpf(x)
            pieces = mp.linspace(0, 1, 3 + int(abs(x)))  # of less than a period
            exact = mp.quad(lambda s, t=t, n=n: s**n * mp.cos(t * s + n * mp.pi / 2), pieces) * mp.pi**n
            found = dg.derivative(np.sinc, n)(x) if n > 1 else dg.grad(np.sinc)(x)
            assert found == pytest.approx(float(exact), rel=1e-12, abs=1e-14 * math.pi**n / max(n, x)), (x, n)


def test_equal_eigenvalues_have_derivatives_and_their_vectors_have_none():
    assert dg.grad(lambda x: np.sum(np.linalg.eigh(x)[0]))(np.eye(3)).tolist() == np.eye(3).tolist()
    with pytest.raises(NotDifferentiable, match="two eigenvalues are equal"):
        dg.grad(lambda x: np.linalg.eigh(x)[1][0, 0])(np.eye(3))
    with pytest.raises(NotDifferentiable, match="two singular values are equal"):
        dg.grad(lambda x: np.linalg.svd(x)[0][0, 0])(np.eye(3))
    with pytest.raises(NotDifferentiable, match="singular value is zero"):
        dg.grad(lambda x: np.linalg.svd(x, full_matrices=False)[0][0, 0])(
            np.diag([2.0, 0.0])[:, :2].repeat(2, 0) * np.array([[1, 0], [0, 0], [0, 0], [0, 0]])
        )


def test_what_numpy_reads_of_a_symmetric_matrix_is_what_counts():
    lower = dg.grad(lambda x: np.sum(np.linalg.cholesky(x)))(S)
    assert np.triu(lower, 1).tolist() == np.zeros((3, 3)).tolist()
    upper = dg.grad(lambda x: np.sum(np.linalg.eigvalsh(x, "U") ** 2))(S)
    assert np.tril(upper, -1).tolist() == np.zeros((3, 3)).tolist()


def test_vectors_that_are_not_determined_have_no_derivative():
    with pytest.raises(NotDifferentiable, match="full_matrices=False"):
        dg.grad(lambda x: np.sum(np.linalg.svd(x)[0]))(A)
    with pytest.raises(NotDifferentiable, match="complete"):
        dg.grad(lambda x: np.sum(np.linalg.qr(x, "complete")[0]))(B)


def test_a_branch_of_where_that_is_not_taken_does_no_harm():
    x = np.array([-1.0, 0.0, 4.0])
    with np.errstate(all="ignore"):
        assert dg.grad(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)))(x).tolist() == [0, 0, 0.25]


# -- what only looks ---------------------------------------------------------------------------------------------------


def looked_at(f, x=A):
    """What a function sees of a number, in both modes and nested."""
    seen = []

    def traced(x):
        seen.append(f(x))
        return np.sum(x)

    dg.grad(lambda y: dg.jvp(traced, (y,), (np.ones_like(x),))[1])(x)
    dg.jvp(traced, (x,), (np.ones_like(x),))
    for found in seen[1:]:
        np.testing.assert_array_equal(found, seen[0])
    return seen[0]


@pytest.mark.parametrize(
    "f",
    [
        np.shape,
        np.ndim,
        np.size,
        np.argmax,
        lambda x: np.argsort(x, 0),
        np.isnan,
        np.isfinite,
        np.zeros_like,
        np.ones_like,
        np.sign,
        np.floor,
        np.rint,
        np.round,
        lambda x: np.floor_divide(x, 0.3),
        lambda x: np.any(x > 1),
        np.all,
        lambda x: np.allclose(x, x + 1e-12),
        lambda x: np.array_equal(x, x),
        lambda x: np.searchsorted(np.sort(u), x),
        np.iscomplexobj,
        np.count_nonzero,
        lambda x: np.where(x > 0),
        lambda x: x > 0,
        lambda x: x == x,
        lambda x: x // 0.5,
        lambda x: x.argmax(1),
        lambda x: (x.shape, x.ndim, x.size, x.T.shape, len(x)) == (x.shape, 2, 12, (4, 3), 3),
    ],
)
def test_functions_that_look_give_plain_results(f):
    got = looked_at(f)
    assert not isinstance(got, Number)
    np.testing.assert_array_equal(got, f(A))


def test_looking_is_without_derivative():
    assert dg.grad(lambda x: np.sum(x * np.sign(x)))(A).tolist() == np.sign(A).tolist()
    assert dg.grad(lambda x: x * np.floor(x))(2.5) == 2.0
    assert dg.grad(lambda x: x * math.floor(x) + round(x))(2.5) == 2.0
    assert np.result_type in LOOKS


def test_attributes_and_methods_are_those_of_arrays():
    def f(x):
        assert (x.shape, x.ndim, x.size, x.dtype, len(x)) == ((3, 4), 2, 12, np.dtype(float), 3)
        assert x.real is x and (x.copy() == x).all() and (x.astype(float) == x).all()
        assert f"{x.sum():.3f}" == f"{A.sum():.3f}"
        parts = [
            x.T.T,
            x.ravel().reshape(3, 4),
            x.flatten().reshape((3, 4)),
            x.transpose((1, 0)).transpose(),
            *[x.squeeze()],
        ]
        rows = list(x)
        assert len(rows) == 3 and A[0, 0] in x
        return sum(np.sum(part * A) for part in parts) + np.sum(np.stack(rows) * A)

    assert dg.grad(f)(A) == pytest.approx(6 * A)


def test_lists_and_tuples_beside_a_number_are_arrays():
    row, weights = np.array([0.5, 2.0]), [3.0, -1.0]
    for f in (
        lambda x: weights * x,
        lambda x: x * tuple(weights),
        lambda x: weights / x,
        lambda x: x ** [2, 3],
        lambda x: x + [x[1], 2.0 * x[0]],
        lambda x: np.where(x < [1.0, 1.0], x, 0.0),
        lambda x: np.maximum(x, [1.0, 1]),
        lambda x: x @ weights,
    ):
        np.testing.assert_array_equal(dg.jvp(f, (row,), (row,))[0], f(row))
        np.testing.assert_allclose(dg.jacfwd(f)(row), dg.jacrev(f)(row))
        dg.check_derivatives(f, row)
    assert dg.grad(lambda x: np.sum(weights * x))(3.0) == 2.0


@pytest.mark.parametrize("verb", [dg.grad, dg.jacfwd, lambda f: dg.hessian(f)])
def test_numpy_warns_of_values_and_never_of_derivatives(verb):
    x = np.array([0.0, 1.0, 4.0])

    def f(x):
        with np.errstate(all="ignore"):
            roots, logs, ratios = np.sqrt(x), np.log(x), 1.0 / x
        return np.sum(np.where(x > 0.0, roots + logs * ratios, 0.0))

    assert np.isfinite(verb(f)(x)).all()
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in log"):
        verb(lambda x: np.sum(np.where(x > 0.0, np.log(x), 0.0)))(x)


# -- what is refused ---------------------------------------------------------------------------------------------------


def refusal(f, x=A, kind=Error):
    with pytest.raises(kind) as caught:
        dg.grad(lambda x: np.sum(f(x)))(x)
    with pytest.raises(kind):
        dg.jvp(f, (x,), (np.ones_like(x) if np.ndim(x) else 1.0,))
    return str(caught.value)


def assign(x, index, value):
    x[index] = value


@pytest.mark.parametrize(
    ("f", "x", "says"),
    [
        (lambda x: np.array([x, x]), 1.5, "np.stack"),
        (lambda x: np.array([x[0], x[1]]), A, "np.stack"),
        (np.asarray, A, "plain array"),
        (lambda x: math.exp(x), 1.5, "np.exp"),
        (lambda x: float(x), 1.5, "np.exp"),
        (lambda x: int(x), 1.5, "np.floor"),
        (lambda x: complex(x), 1.5, "reals"),
        (lambda x: [1, 2][x], 1.5, "np.argmax"),
        (lambda x: A[x], 1.5, ""),
        (lambda x: x[x], A, "index"),
        (lambda x: assign(x, 0, 1.0), A, "np.where"),
        (lambda x: assign(np.zeros((3, 4)), slice(None), x), A, "dynagrad.numpy"),
        (lambda x: np.add(x, 1.0, out=np.zeros((3, 4))), A, "a = a + x"),
        (lambda x: operator.iadd(np.zeros((3, 4)), x), A, "a = a + x"),
        (lambda x: np.sum(x, out=np.zeros(())), A, "out="),
        (lambda x: np.mean(x, where=A > 0), A, "np.where"),
        (lambda x: np.average(x, returned=True)[0], A, "leave it out, and compute the sum of the weights"),
        (lambda x: np.diff(x, prepend=0.0), A, "join with np.concatenate before"),
        (lambda x: np.diff(x, append=0.0), A, "join with np.concatenate before"),
        *([(lambda x: np.nanstd(x, mean=2.0), A, r"np.mean((x - mean) ** 2)")] if NUMPY_2 else []),
        (lambda x: np.sum(x, dtype=np.float32), A, "float64"),
        (lambda x: np.add.at(np.zeros(4), [0, 1, 0], x[:3, 0]), A, "a + np.bincount(indices, weights=b"),
        (lambda x: np.maximum.at(np.zeros((3, 4)), 0, x[0]), A, "make the array with dynagrad.numpy"),
        (lambda x: np.add.reduce(x, dtype=np.float32), A, "float64"),
        (lambda x: np.maximum.accumulate(x, out=np.zeros((3, 4))), A, "out="),
        (lambda x: x.item(), 1.5, "x[()]"),
        (lambda x: x.tolist(), A, "list"),
        (lambda x: x.sort(), A, "np.sort(x)"),
        (lambda x: x.fill(1.0), A, "np.full_like"),
        (lambda x: x.astype(complex), A, "cannot become complex128"),
        (lambda x: x.astype(np.float32), A, "leave the conversion out"),
        (lambda x: assign(np.zeros((3, 4), dtype=int), slice(None), x), A, "dynagrad.numpy"),
        (lambda x: np.reshape(x, (4, 3), order="K"), A, "'C' or 'F'"),
        (lambda x: np.pad(x, 1, mode="mean"), A, "constant"),
    ],
)
def test_what_would_lose_derivatives_says_what_to_write(f, x, says):
    assert says in refusal(f, x)


def _in_a_thread(f):
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(f).result()


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (lambda x: dnp.poly1d([x, 1.0])(x), "write np.polyval(p, x) with"),
        (lambda x: np.polynomial.Polynomial([x, 1.0])(x), "write np.polyval(p[::-1], x) with"),
        (lambda x: sum(v for _, v in dnp.ndenumerate(dnp.array([x, x]))), "write `for i in np.ndindex(a.shape)`"),
        (lambda x: sum(v for v in dnp.nditer(dnp.array([x, x]))), "write `for i in np.ndindex(a.shape)`"),
        (lambda x: dnp.broadcast(dnp.array([x, x])).nd * x, "write np.broadcast_arrays"),
        (lambda x: dnp.matrix([[x, x]]).sum(), "write np.array"),
        (lambda x: np.ma.array([x, x]).sum(), "write np.where with a mask"),
        (lambda x: dnp.float64(x), "leave the conversion out"),
        (lambda x: np.double(x), "leave the conversion out"),
        (lambda x: dnp.float32(x), "leave the conversion out"),
        (lambda x: _in_a_thread(lambda: dnp.array([x, x])[0]), "no derivative is being taken in this thread"),
        (lambda x: _in_a_thread(lambda: assign(dnp.zeros(2), 0, x)), "no derivative is being taken in this thread"),
    ],
)
def test_what_makes_plain_arrays_though_it_is_of_dynagrad_numpy_says_so(f, says):
    text = refusal(f, 1.5)
    assert says in text and "make arrays of numbers with" not in text and "make it with" not in text


def test_writing_a_number_into_an_element_of_a_plain_array_says_what_to_write():
    with pytest.raises(dg.Error, match=r"make it with dynagrad\.numpy"):  # numpy's own error says nothing of this
        dg.grad(lambda x: assign(np.zeros(3), 0, x))(1.5)


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (lambda x: np.fft.fft(x), "np.fft.fft has no derivative"),
        (lambda x: np.fft.irfft(x), "keep two parts as reals"),
        (lambda x: np.linalg.eig(x[:, :3]), "np.linalg.eigh"),
        (lambda x: np.roots(x[0]), "complex"),
        (lambda x: np.emath.sqrt(x), "np.emath.sqrt has no derivative here: its results may be complex"),
        (lambda x: np.polymul(x[0], x[1]), "np.convolve(p, q)"),
        (lambda x: np.unique(x), "np.unique(plain, return_index=True)"),
        (lambda x: np.frexp(x), "np.log2"),
        (lambda x: np.fill_diagonal(x, 0.0), "np.where(np.eye(n, dtype=bool)"),
        (lambda x: np.resize(x, 3), "np.tile"),
    ],
)
def test_a_function_without_a_handler_is_named_and_others_suggested(f, says):
    assert says in refusal(f, kind=NotDifferentiable)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(x, axis=2),
        lambda x: np.sum(x, axis=(0, 0)),
        lambda x: np.reshape(x, (5, -1)),
        lambda x: x[7],
        lambda x: x @ x,
        lambda x: np.concatenate([x, x.T]),
        lambda x: np.stack([x, x.T]),
        lambda x: np.einsum("ij->ik", x),
        lambda x: np.einsum("ijk", x),
        lambda x: np.einsum("...i->i", x),
        lambda x: np.einsum(x, [0, 52]),
        lambda x: np.einsum(x, [0, -1]),
        lambda x: np.split(x, 2),
        lambda x: np.take_along_axis(x, np.array([0]), 1),
        lambda x: np.average(x, 0, np.ones(4)),
        lambda x: np.linalg.inv(x),
        lambda x: np.squeeze(x, 0),
        lambda x: np.linalg.inv(x[:, :3] * 0),
        lambda x: x + np.ones(5),
        lambda x: iter(x[0, 0]),
        lambda x: len(x[0, 0]),
    ],
)
def test_mistakes_are_errors_of_the_kind_that_numpy_raises(f):
    with pytest.raises(Exception) as expected:
        f(A)
    with pytest.raises(expected.type if expected.type is not TypeError else (TypeError, Error)):
        dg.grad(lambda x: np.sum(f(x)))(A)


# -- others ------------------------------------------------------------------------------------------------------------


def test_array_gradients_equal_those_of_torch():
    torch = pytest.importorskip("torch")
    x, y, s = (torch.tensor(z, dtype=torch.float64, requires_grad=True) for z in (A, B, S))
    pairs = [
        (lambda n, x, y, s: n.sum(n.tanh(x @ y) ** 2), (x, y)),
        (lambda n, x, y, s: n.einsum("ij,jk,ik->", x, y, s), (x, y)),
        (lambda n, x, y, s: n.sum(n.cumprod(x, 1)), (x,)),
        (lambda n, x, y, s: n.sum(n.linalg.solve(s, x) ** 2), (x,)),
        (lambda n, x, y, s: n.linalg.slogdet(x @ y)[1], (x, y)),
        (lambda n, x, y, s: n.sum(n.abs(n.linalg.svd(x, False)[0])), (x,)),
        (lambda n, x, y, s: n.sum(n.logaddexp(x, y.T)), (x, y)),
        (lambda n, x, y, s: n.sum(n.where(x > 0, x**3, n.sin(x))), (x,)),
        (lambda n, x, y, s: n.sum(n.linalg.inv(s) @ x), (x, s)),
    ]
    for f, wanted in pairs:
        expected = torch.autograd.grad(f(torch, x, y, s), wanted)
        places = tuple(i for i, z in enumerate((x, y, s)) if any(z is q for q in wanted))
        got = dg.grad(lambda *xs, f=f: f(np, *xs), places)(A, B, S)
        for g, e in zip(got, expected, strict=True):
            np.testing.assert_allclose(g, e.numpy(), rtol=1e-9, atol=1e-11)
    for f in (lambda n, s: n.sum(n.linalg.cholesky(s)), lambda n, s: n.sum(n.linalg.eigh(s)[0] ** 3)):
        (expected,) = torch.autograd.grad(f(torch, s), (s,))
        got = dg.grad(lambda x, f=f: f(np, x))(S)
        np.testing.assert_allclose(got + got.T, (expected + expected.T).numpy(), rtol=1e-9)  # of symmetric changes


def test_mixed_third_derivatives_agree_in_all_modes():
    def f(x):
        return np.sum(np.tanh(x @ B) ** 2) * np.linalg.det(x @ x.T) + np.prod(x[:, 0])

    d = np.ones_like(A)
    modes = {
        "forward": lambda f: lambda x: dg.jvp(f, (x,), (d,))[1],
        "reverse": lambda f: lambda x: np.sum(dg.grad(f)(x)),
    }
    results = [modes[a](modes[b](modes[c](f)))(A) for a, b, c in itertools.product(modes, repeat=3)]
    assert results == pytest.approx([results[0]] * 8, rel=1e-10)
