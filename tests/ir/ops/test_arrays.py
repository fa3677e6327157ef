"""Operations on whole arrays: tangents against central differences, adjoints as their transposes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dynagrad.errors import NotDifferentiable
from dynagrad.ir import Operation
from dynagrad.ir.ops import arrays, determinants, matrices, reductions, windows
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.types import array

chance = np.random.default_rng(5)
A, B, C = chance.normal(size=(3, 4)), chance.normal(size=(4, 3)), chance.normal(size=(3, 3))
T, U, CC = chance.normal(size=(2, 3, 4)), chance.normal(size=(2, 4, 2)), chance.normal(size=(2, 3, 3))
u, v = chance.normal(size=4), chance.normal(size=3)
SYMMETRIC = CC @ np.swapaxes(CC, -1, -2) + np.eye(3)
ORDER = np.argsort(A, 1)

CASES = [
    (arrays.broadcast_to((2, 3, 4)), A),
    (arrays.broadcast_to((2, 2)), 1.5),
    (arrays.sum_to((1, 4)), T),
    (arrays.sum_to(()), A),
    (arrays.reshape((4, 3)), A),
    (arrays.transpose((2, 0, 1)), T),
    (reductions.total((0, 2)), T),
    (reductions.total((0, 1), True), A),
    (reductions.product((0, 2)), T),
    (reductions.product((1,), True), A * np.array([0.0, 1.0, 0.0, 1.0])),
    (reductions.extreme(True, (0,)), A),
    (reductions.extreme(False, (0, 1), True), A),
    (reductions.cumsum(1), T),
    (reductions.cumprod(1), T),
    (reductions.cumprod(0), A * np.array([[1.0], [0.0], [1.0]])),
    (arrays.getitem((slice(None), [0, 0, 2])), A),
    (arrays.getitem(2), A),
    (arrays.place(([0, 0, 2],), (3, 4)), A),
    (arrays.cut(1, 1, None), T),
    (arrays.take_along(1), A, ORDER),
    (arrays.put_along(1, (3, 6)), A, ORDER),
    (arrays.sort(0), A),
    (arrays.roll(2, 1), A),
    (arrays.triangle(True, -1), CC),
    (arrays.triangle(False), A),
    (arrays.diagonal(1), T),
    (arrays.on_diagonal(-1, (2, 4, 3)), T[:, 0, :3]),
    (arrays.concatenate(1, 2), A, C),
    (arrays.stack(0, 3), u, u + 1, u * 2),
    (arrays.stack(0, 2), 1.5, 2.5),
    (arrays.matmul, A, B),
    (arrays.matmul, u, u + 1),
    (arrays.matmul, T, u),
    (arrays.matmul, v, T),
    (arrays.matmul, T[:1], U),
    (arrays.einsum(("ij", "jk", "b"), "kb"), A, B, u),
    (arrays.einsum(("ij", "ij"), "i"), A, A[:1]),
    (matrices.solve, CC, A),
    (matrices.solve_lower, CC, A),
    (matrices.lower_product, CC, C),
    (matrices.solve_lower_transposed, CC, A),
    (matrices.inverse, CC),
    (matrices.inverse_for_rule, C),
    (determinants.determinant, CC),
    (determinants.mixed_cofactors(1), CC, CC[::-1]),
    (determinants.mixed_cofactors(2), C, C.T, C[::-1]),
    (determinants.cofactors, CC),
    (determinants.log_determinant, CC),
    (matrices.symmetric, CC),
    (matrices.qr_orthogonal, B),
    (matrices.qr_upper, B),
    (matrices.singular_values, T),
    (matrices.left_vectors, T),
    (matrices.pseudo_inverse, T, 1e-15),
    (matrices.pseudo_inverse, B, 1e-15),
    (windows.windows((1,), (3,)), A),
    (windows.windows((0, 2), (2, 2)), T),
    (windows.overlaps((1,), (3,), (3, 4)), T[:, :, :3].reshape(3, 2, 3)),
    (windows.overlaps((0,), (3,), (4,)), C[:2]),
    (windows.convolve(True), u, v),
    (windows.convolve(False), u, v),
    (matrices.right_vectors, T),
]
OF_SYMMETRIC = [
    matrices.cholesky,
    matrices.eigenvalues,
    matrices.eigenvectors,
    matrices.eigenvalues_upper,
    matrices.eigenvectors_upper,
]  # after `symmetric` alone
STEPS = [
    reductions.winners(True, (0,)),
    arrays.argsort(0),
    determinants.sign_of_determinant,
    determinants._left_basis,
    determinants._right_basis,
    determinants._orientation,
]
HELPERS = {
    "linear",
    "several",
    "swap",
    "insert_axes",
    "join",
    "join_axis",
    "take_slice",
    "shape_of",
    "single",
    "spread",
    "spread_over",
    "surely_finite",
}


def names(case):
    return f"{case[0].name}{[np.shape(x) for x in case[1:]]}"


def test_every_operation_is_in_the_table():
    tested = {case[0].name for case in CASES} | {operation.name for operation in OF_SYMMETRIC + STEPS}
    modules = (arrays, reductions, matrices, determinants)
    declared = {x.name for module in modules for x in vars(module).values() if isinstance(x, Operation)}
    assert {name for name in declared if not name.startswith("gaps")} - {"reciprocal", "of_some_rank"} <= tested
    makers = {
        name
        for module in (arrays, reductions)
        for name, x in vars(module).items()
        if callable(x) and getattr(x, "__module__", "") == module.__name__ and not name.startswith("_")
    }
    made = {"total": "sum", "product": "prod", "extreme": "max", "triangle": "tril", "take_along": "take_along_axis"}
    made |= {"put_along": "put_along_axis", "cut": "getitem"}
    assert {made.get(name, name) for name in makers - HELPERS if name != "LazyIncrements"} <= tested


def dot(xs, ys):
    return sum(np.sum(x * y) for x, y in zip(xs, ys, strict=True))


@pytest.mark.parametrize("case", CASES, ids=names)
def test_tangents_are_slopes_and_adjoints_their_transposes(case):
    operation, *points = case
    rng = np.random.default_rng(2)
    y = operation(*points)
    assert type(y) is (np.ndarray if np.ndim(y) else float)
    delta = rng.normal(size=np.shape(y)) if np.ndim(y) else 1.5
    parts = operation.adjoint(delta, y, *points)
    assert len(parts) == len(operation.arguments) == len(points)
    for i, (x, rule) in enumerate(zip(points, operation.tangent, strict=True)):
        if rule is None:
            assert parts[i] is None
            continue
        d = rng.normal(size=np.shape(x)) if np.ndim(x) else 0.75
        pushed = rule(d, y, *points)
        assert np.shape(pushed) == np.shape(y) and np.shape(parts[i]) == np.shape(x)
        ends = [operation(*points[:i], x + s * d, *points[i + 1 :]) for s in (1e-6, -1e-6)]
        assert pushed == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-6)
        assert np.sum(pushed * delta) == pytest.approx(np.sum(parts[i] * d), rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("operation", OF_SYMMETRIC, ids=lambda operation: operation.name)
def test_functions_of_symmetric_matrices_along_symmetric_directions(operation):
    rng = np.random.default_rng(2)
    y = operation(SYMMETRIC)
    d, delta = rng.normal(size=SYMMETRIC.shape), rng.normal(size=y.shape)
    d = d + np.swapaxes(d, -1, -2)
    pushed = operation.tangent[0](d, y, SYMMETRIC)
    ends = [operation(SYMMETRIC + s * d) for s in (1e-6, -1e-6)]
    assert pushed == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-6)
    (pulled,) = operation.adjoint(delta, y, SYMMETRIC)
    assert np.sum(pushed * delta) == pytest.approx(np.sum(pulled * d), rel=1e-11)


@pytest.mark.parametrize("operation", STEPS, ids=lambda operation: operation.name)
def test_steps_have_no_tangent(operation):
    assert operation.steps
    assert operation(C) is not None


@pytest.mark.parametrize("case", [case for case in CASES if case[0].needs is not None], ids=names)
def test_rules_look_only_at_what_they_say_they_need(case):
    operation, *points = case
    y = operation(*points)
    delta = np.ones(np.shape(y)) if np.ndim(y) else 1.0

    class Outline:
        def __init__(self, x):
            self.shape = np.shape(x)

    for i, needs in enumerate(operation.needs):
        if operation.tangent[i] is None or needs is None:
            continue
        given = [x if j in needs else Outline(x) for j, x in enumerate(points)]
        got = operation.adjoint(delta, y if -1 in needs else Outline(y), *given)[i]
        np.testing.assert_array_equal(got, operation.adjoint(delta, y, *points)[i])


def test_rules_of_scalars_look_only_at_what_they_say_they_need():
    x, y = np.array([0.5, 2.0]), np.array([1.5, 0.25])
    for operation in ops.TABLE.values():
        points = [x, y][: len(operation.arguments)] if operation is not ops.where else [x > 1, x, y]
        for i, needs in enumerate(operation.needs or ()):
            if operation.tangent[i] is not None:
                result = operation(*points)
                given = [p if j in needs else None for j, p in enumerate(points)]
                got = operation.tangent[i](np.ones(2), result if -1 in needs else None, *given)
                np.testing.assert_array_equal(got, operation.tangent[i](np.ones(2), result, *points))


def test_increments_are_computed_when_they_are_looked_at():
    seen = []
    rules = tuple(lambda delta, y, *xs, i=i: seen.append(i) for i in range(3))
    operation = arrays.several("three", lambda *xs: xs[0], (None, None, None), rules)
    parts = operation.adjoint(1.0, 2.0, 3.0, 4.0, 5.0)
    assert (len(parts), seen) == (3, [])
    assert parts[1] is None
    assert seen == [1]


def test_one_operation_is_kept_for_each_choice_of_parameters():
    assert reductions.total((0,), True) is reductions.total((0,), True)
    assert arrays.getitem((slice(1, None), 0)) is arrays.getitem((slice(1, None), 0))
    assert arrays.getitem(True) is not arrays.getitem(1)
    assert arrays.getitem(True)(v).shape == (1, 3)
    assert arrays.sum_to((2,)).arguments == (array,)


def test_a_decomposition_is_computed_once_for_an_array_that_cannot_change(monkeypatch):
    calls = []

    def decompose(x):
        calls.append(x)
        return np.linalg.eigh(x)

    remembered = matrices._remembered(decompose)
    fixed, open_ = SYMMETRIC.copy(), SYMMETRIC.copy()
    fixed.flags.writeable = False
    assert remembered(fixed)[0] is remembered(fixed)[0]
    assert len(calls) == 1
    remembered(open_)
    open_ += 1.0
    assert remembered(open_)[0] == pytest.approx(np.linalg.eigh(open_)[0])
    assert len(calls) == 3


def test_where_no_derivative_exists_the_rule_says_so():
    one = np.eye(3)
    for operation, message in [
        (matrices.eigenvectors, "two eigenvalues are equal"),
        (matrices.left_vectors, "two singular values are equal"),
    ]:
        with pytest.raises(NotDifferentiable, match=message):
            operation.tangent[0](one, operation(one), one)
    with pytest.raises(NotDifferentiable, match="singular matrix"):
        matrices.qr_orthogonal.tangent[0](one, one, np.zeros((3, 3)))
    assert determinants.log_determinant(np.zeros((2, 2))) == -math.inf


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (2,), ()])
def test_what_came_out_of_a_reduction_is_repeated_along_its_axes(axes, keepdims):
    shape = (2, 3, 4)
    narrow = tuple(1 if i in axes else n for i, n in enumerate(shape))
    delta = np.random.default_rng(5).normal(size=narrow)
    given = delta if keepdims else delta.reshape([n for i, n in enumerate(shape) if i not in axes])
    for x in (given, np.asfortranarray(given), given[..., ::-1], np.array(given)[...]):
        expected = np.broadcast_to(x.reshape(narrow), shape)
        found = reductions.spread(x, axes, keepdims, shape)
        np.testing.assert_array_equal(found, expected)
        assert not found.flags.writeable or not np.shares_memory(found, x)
        slopes = np.random.default_rng(6).normal(size=shape)
        product = slopes * expected
        np.testing.assert_array_equal(reductions.spread_over(slopes, x, axes, keepdims), product)
        np.testing.assert_array_equal(slopes, product)  # written over
    with pytest.raises(ValueError):
        reductions.spread(np.ones(5), (0,), False, (2, 3, 4))


def test_spreading_what_is_no_array():
    assert reductions.spread(2.0, (0, 1), False, (2, 3)).tolist() == [[2.0] * 3] * 2
    assert reductions.spread(np.ones(0), (1,), False, (0, 3)).shape == (0, 3)
    assert reductions.spread(np.ones(2), (1,), False, (2, 0)).shape == (2, 0)
    slopes = np.array([1.0, 2.0])
    assert reductions.spread_over(slopes, 3.0, (0,), False).tolist() == [3.0, 6.0]
    assert reductions.spread_over(4.0, 3.0, (), False) == 12.0


@pytest.mark.parametrize("shape", [(), (4,), (1,), (1, 4), (3, 1), (3, 4), (1, 1), (2, 1, 4), (1, 3, 4), (1, 1, 1)])
def test_sums_to_a_shape_are_the_transpose_of_repeating_from_it(shape):
    x = np.random.default_rng(7).normal(size=(2, 3, 4))
    found = arrays.sum_to(shape)(x)
    assert np.shape(found) == shape
    one = np.random.default_rng(8).normal(size=shape)
    assert np.sum(found * one) == pytest.approx(np.sum(x * np.broadcast_to(one, x.shape)), rel=1e-12)


def test_what_is_surely_finite():
    for n in (1, 5, 100, 20_000):
        x = np.linspace(-1.0, 1.0, n)
        assert arrays.surely_finite(x)
        for bad in (math.inf, -math.inf, math.nan):
            for i in {0, n // 2, n - 1}:
                y = x.copy()
                y[i] = bad
                assert not arrays.surely_finite(y)
                assert not arrays.surely_finite(y[::-1])
    assert arrays.surely_finite(np.zeros(0))
