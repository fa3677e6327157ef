"""Programs as functions of arrays: values and derivatives to any order, against polynomials, torch and each other.

A compile costs more than everything else here, so there are few program texts: a polynomial whose derivatives are
known, sums around cycles as torch solves them, and the winners of the other value types.
"""

from __future__ import annotations

import math
import pickle
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.charts.program import binding_of

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

# -- a polynomial ------------------------------------------------------------------------------------------------------

POLYNOMIAL = """
:- input b/1.
goal += a(I) * b(X) * a(I) * w(I,X).
goal += c * c * c * b(X).
twin(X) += b(X) * a(0).
never(X) += a(X) * none(X).
b(z) = 2.
"""
W = {(0, "x"): 1.5, (1, "x"): -2.0, (1, "y"): 0.5, (2, "z"): 3.0, (2, "y"): 1.0}
FACTS = {"a/1": np.ones(3), "b/1": [("x", 1.0), ("y", 1.0), ("x", 1.0)], "c/0": [(1.0,)], "w/2": W, "none/1": []}
INPUTS = ["a/1", "b/1", "c/0"]
GOALS = ["goal", "twin(x)", "never(1)", "twin(z)"]
SIZES = (3, 3, 1)

Poly = dict[tuple[int, ...], float]  # by the exponents of a0 a1 a2, b0 b1 b2, c


def monomial(coefficient: float, *variables: int) -> Poly:
    return {tuple(variables.count(v) for v in range(7)): coefficient}


def plus(*terms: Poly) -> Poly:
    total: Poly = {}
    for term in terms:
        for powers, coefficient in term.items():
            total[powers] = total.get(powers, 0.0) + coefficient
    return total


def partial(p: Poly, v: int) -> Poly:
    lower = {tuple(n - (i == v) for i, n in enumerate(powers)): c * powers[v] for powers, c in p.items() if powers[v]}
    return plus(lower)


def directional(p: Poly, u: np.ndarray) -> Poly:
    return plus(*({k: float(u[v]) * c for k, c in partial(p, v).items()} for v in range(7)))


def at(p: Poly, x: np.ndarray) -> float:
    return sum(c * float(np.prod(x ** np.array(powers))) for powers, c in p.items())


ROWS = {"x": (3, 5), "y": (4,)}
POLYS = [
    plus(
        *(monomial(w, i, i, row) for (i, x), w in W.items() for row in ROWS.get(x, ())),
        monomial(2.0 * W[2, "z"], 2, 2),
        *(monomial(1.0, 6, 6, 6, row) for row in (3, 4, 5)),
        monomial(2.0, 6, 6, 6),
    ),
    plus(monomial(1.0, 0, 3), monomial(1.0, 0, 5)),
    {},
    monomial(2.0, 0),
]


@cache
def bound() -> dg.Bound:
    return dg.Program(POLYNOMIAL, "real").bind(FACTS)


@cache
def f() -> dg.Function:
    made = bound().function("goal", inputs=INPUTS)
    for k in range(4):  # the classes with a tape, so that runs without one need no others
        made.gradient(parts(np.ones(7)), [parts(np.ones(7))] * k)
    return made


@cache
def many() -> dg.Function:
    f()
    return bound().function(GOALS, inputs=INPUTS)


def parts(x: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.split(np.asarray(x, float), np.cumsum(SIZES)[:-1]))


def whole(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(a) for a in arrays])


def drawn(seed: int, count: int) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [generator.uniform(-2, 2, 7) for _ in range(count)]


def close(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_the_value_of_an_item_is_a_float_and_of_a_list_an_array() -> None:
    (x,) = drawn(0, 1)
    value = f()(*parts(x))
    assert type(value) is float
    close(value, at(POLYS[0], x))
    close(f().value(*parts(x)), value)
    values = many()(*parts(x))
    assert values.shape == (4,)
    close(values, [at(p, x) for p in POLYS])


def test_value_and_gradient() -> None:
    (x,) = drawn(1, 1)
    value, gradient = f().value_and_grad(*parts(x))
    close(value, at(POLYS[0], x))
    assert [g.shape for g in gradient] == [(3,), (3,), (1,)]
    close(whole(gradient), [at(partial(POLYS[0], v), x) for v in range(7)])


def test_the_gradient_is_that_of_the_chart() -> None:
    (x,) = drawn(2, 1)
    chart = bound().with_values(dict(zip(INPUTS, parts(x), strict=True))).run()
    gradient = chart.gradient("goal")
    _, found = f().value_and_grad(*parts(x))
    for key, ours in zip(INPUTS, found, strict=True):
        np.testing.assert_array_equal(ours, gradient[key].values)


@pytest.mark.parametrize("k", range(5))
def test_mixed_derivatives(k: int) -> None:
    x, *directions = drawn(10 + k, 1 + k)
    expected = list(POLYS)
    for u in directions:
        expected = [directional(p, u) for p in expected]
    close(f().derivative(parts(x), [parts(u) for u in directions]), at(expected[0], x))
    if k < 4:
        close(many().derivative(parts(x), [parts(u) for u in directions]), [at(p, x) for p in expected])
        found = whole(f().gradient(parts(x), [parts(u) for u in directions]))
        close(found, [at(partial(expected[0], v), x) for v in range(7)])


def test_products_with_the_hessian() -> None:
    x, u, cotangent = drawn(20, 3)
    close(whole(f().hvp(parts(x), parts(u))), [at(directional(partial(POLYS[0], v), u), x) for v in range(7)])
    c = cotangent[:4]
    found = whole(many().hvp(parts(x), parts(u), cotangent=c))
    close(found, [sum(c[n] * at(directional(partial(p, v), u), x) for n, p in enumerate(POLYS)) for v in range(7)])


def test_the_hessian_is_symmetric() -> None:
    (x,) = drawn(21, 1)
    hessian = np.array([whole(f().hvp(parts(x), parts(e))) for e in np.eye(7)])
    close(hessian, hessian.T)
    assert np.abs(hessian).max() > 1


def test_a_pullback_may_be_called_many_times() -> None:
    (x,) = drawn(22, 1)
    values, pullback = many().vjp(*parts(x))
    close(values, [at(p, x) for p in POLYS])
    rows = [whole(pullback(e)) for e in np.eye(4)]
    close(rows, [[at(partial(p, v), x) for v in range(7)] for p in POLYS])
    close(whole(pullback([1.0, 2.0, 3.0, 4.0])), np.array([1, 2, 3, 4]) @ rows)
    close(whole(pullback(np.zeros(4))), np.zeros(7))


def test_forward_and_backward_agree() -> None:
    x, u = drawn(23, 2)
    values, tangents = many().jvp(parts(x), parts(u))
    close(values, many()(*parts(x)))
    _, pullback = many().vjp(*parts(x))
    close(tangents, [whole(pullback(e)) @ u for e in np.eye(4)])
    value, tangent = f().jvp(parts(x), parts(u))
    assert (type(value), type(tangent)) == (float, float)
    close(tangent, tangents[0])


# -- derivatives of derivatives: each holds for any function, whatever it is itself a derivative of -------------------


def arguments(function: dg.Function, seed: int) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [np.array(generator.uniform(-2, 2, shape)) for shape in function.shapes]


def results(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def inner(a: Sequence[Any], b: Sequence[Any]) -> float:
    return float(sum(np.sum(np.multiply(x, y)) for x, y in zip(a, b, strict=True)))


DERIVED = {
    "tangent": lambda g: g.tangent(),
    "tangent of tangent": lambda g: g.tangent().tangent(),
    "adjoint": lambda g: g.adjoint(),
    "adjoint of adjoint": lambda g: g.adjoint().adjoint(),
    "adjoint of tangent": lambda g: g.tangent().adjoint(),
    "tangent of adjoint": lambda g: g.adjoint().tangent(),
    "tangent of adjoint of tangent": lambda g: g.tangent().adjoint().tangent(),
}


@pytest.mark.parametrize("of", [f, many], ids=["item", "items"])
@pytest.mark.parametrize("name", DERIVED)
def test_derivatives_of_derivatives(name: str, of: Any) -> None:
    """The derivative along a direction is what differences say, and the pullback is its transpose."""
    derived = DERIVED[name](of())
    x, u = arguments(derived, 1), arguments(derived, 2)
    value, tangent = derived.jvp(x, u)
    h = 1e-4
    ahead, behind = (derived(*(a + s * h * b for a, b in zip(x, u, strict=True))) for s in (1, -1))
    for n, slope in enumerate(results(tangent)):
        close(results(value)[n], results(derived(*x))[n])
        close((np.asarray(results(ahead)[n]) - results(behind)[n]) / (2 * h), slope, 1e-4)
    close(inner(results(tangent), results(derived.tangent()(*x, *u))), inner(results(tangent), results(tangent)))
    again, pullback = derived.vjp(*x)
    cotangent = arguments(derived.adjoint(), 3)[len(x) :]
    back = pullback(cotangent[0] if not isinstance(again, tuple) else tuple(cotangent))
    assert [np.shape(b) for b in back] == [a.shape for a in x]
    close(inner(results(again), results(value)), inner(results(value), results(value)))
    close(inner(back, u), inner(cotangent, results(tangent)))
    for ours, theirs in zip(back, derived.adjoint()(*x, *cotangent), strict=True):
        close(ours, theirs)


def test_tangents_nest_as_the_chain_rule_says() -> None:
    x, u, v, w = drawn(30, 4)
    found = f().tangent().tangent()(*parts(x), *parts(u), *parts(v), *parts(w))
    p = POLYS[0]
    close(found, at(directional(directional(p, u), v), x) + at(directional(p, w), x))


def test_the_adjoint_along_one_is_the_gradient() -> None:
    x = parts(drawn(31, 1)[0])
    close(whole(f().adjoint()(*x, 1.0)), whole(f().value_and_grad(*x)[1]))


def test_at_most_ten_directions() -> None:
    x = parts(np.ones(7))
    with pytest.raises(dg.Error, match="order 11"):
        f().derivative(x, [x] * 11)


# -- sums around cycles, in logs ---------------------------------------------------------------------------------------

EDGES = [("u", "v"), ("v", "w"), ("w", "u"), ("u", "w"), ("v", "v")]
PLACE = {"u": 0, "v": 1, "w": 2}


@cache
def around() -> dg.Function:
    program = dg.Program("to(J) += start(J). to(J) += to(I) * edge(I,J). goal += to(I) * end(I).", "log")
    facts = {"start/1": [("u", 0.0)], "edge/2": [(*e, 0.0) for e in EDGES], "end/1": [("w", 0.0), ("v", -math.inf)]}
    made = program.function("goal", ["edge/2", "end/1"], facts, tolerance=1e-15)
    for k in range(3):
        made.gradient(AROUND, [AROUND] * k)
    return made


AROUND = (np.array([-1.0, -1.5, -2.0, -1.2, -0.9]), np.array([-0.5, -0.7]))


def test_around_a_cycle_as_torch_has_it() -> None:
    """The log of the sum over all paths, from a linear system; derivatives of derivatives by torch's transforms."""
    torch = pytest.importorskip("torch")
    generator = np.random.default_rng(5)
    u, v = (tuple(generator.uniform(-1, 1, a.shape) for a in AROUND) for _ in range(2))
    at, along_1, along_2 = (tuple(map(torch.tensor, arrays)) for arrays in (AROUND, u, v))
    where = torch.zeros((len(EDGES), 3, 3), dtype=torch.float64)
    for n, (a, b) in enumerate(EDGES):
        where[n, PLACE[b], PLACE[a]] = 1.0

    def goal(edge: Any, end: Any) -> Any:
        matrix = torch.einsum("n,nij->ij", edge.exp(), where)
        to = torch.linalg.inv(torch.eye(3, dtype=torch.float64) - matrix)[:, 0]
        return (to[2] * end[0].exp() + to[1] * end[1].exp()).log()

    def along_u(*x: Any) -> Any:
        return torch.func.jvp(goal, x, along_1)[1]

    def along_both(*x: Any) -> Any:
        return torch.func.jvp(along_u, x, along_2)[1]

    for directions, theirs in (([], goal), ([u], along_u), ([u, v], along_both)):
        close(around().derivative(AROUND, directions), theirs(*at), 1e-8)
        gradient = torch.func.grad(theirs, (0, 1))(*at)
        for ours, expected in zip(around().gradient(AROUND, directions), gradient, strict=True):
            close(ours, expected, 1e-8)


def test_a_log_weight_of_minus_infinity_has_derivative_zero() -> None:
    edge, end = AROUND[0], np.array([-0.5, -math.inf])
    value, (_, gradient) = around().value_and_grad(edge, end)
    assert math.isfinite(value)
    close(gradient, [1.0, 0.0])
    assert around().jvp((edge, end), (0 * edge, [0.0, 1.0])) == (value, 0.0)


def test_a_goal_without_weight_has_derivative_zero_in_logs() -> None:
    nothing = (AROUND[0], np.full(2, -math.inf))
    assert around()(*nothing) == -math.inf
    value, gradient = around().value_and_grad(*nothing)
    assert value == -math.inf and all(not g.any() for g in gradient)
    assert around().jvp(nothing, AROUND) == (-math.inf, 0.0)


# -- the winner --------------------------------------------------------------------------------------------------------

WINNERS = {
    "viterbi": ("best(J) += start(J). best(J) += best(I) * edge(I,J). goal += best(n).", -1.0),
    "tropical": ("best(J) += start(J). best(J) += best(I) * edge(I,J). goal += best(n).", 1.0),
    None: ("best(J) min= start(J). best(J) min= best(I) + edge(I,J) * edge(I,J). goal min= best(n).", 1.0),
}


@pytest.mark.parametrize("semiring", WINNERS)
def test_along_the_winner(semiring: str | None) -> None:
    """The derivative of the tangent by the direction is the gradient, by the point the Hessian times the direction."""
    text, sign = WINNERS[semiring]
    facts = {"start/1": [("m", 0.0)], "edge/2": [("m", "k", 1.0), ("k", "n", 1.0), ("m", "n", 1.0), ("k", "m", 1.0)]}
    function = dg.Program(text, semiring).function("goal", inputs=["edge/2"], facts=facts)
    edge, u = sign * np.array([1.0, 2.0, 9.0, 1.0]), np.array([0.25, 0.5, 1.0, 2.0])
    slope, pullback = function.tangent().vjp(edge, u)
    curvature, gradient = pullback(1.0)
    squared = semiring is None
    expected = np.array([2.0, 4.0, 0.0, 0.0]) if squared else np.array([1.0, 1.0, 0.0, 0.0])
    close(gradient, expected)
    close(slope, expected @ u)
    close(curvature, [0.5, 1.0, 0.0, 0.0] if squared else np.zeros(4))
    value, tangent = function.jvp((edge,), (u,))
    close((value, tangent), (5.0 if squared else sign * 3.0, slope))


@pytest.mark.parametrize("semiring", ["boolean", "count"])
def test_not_in_every_semiring(semiring: str) -> None:
    with pytest.raises(dg.NotDifferentiable, match=semiring):
        dg.Program("goal += a(X).", semiring).function("goal", ["a/1"], {"a/1": [("x",)]})


# -- pairs -------------------------------------------------------------------------------------------------------------

PAIRS = """
to(J) += start(J).
to(J) += to(I) * edge(I,J).
goal  += to(I) * end(I) * end(I).
end(w) = 0.5.
"""


@cache
def paths(vector: int) -> tuple[dg.Bound, dg.Function, dg.Function]:
    """Sums over the paths through a cycle, as pairs: the bound facts, the goal, and several items."""
    generator = np.random.default_rng(vector)
    pair = lambda: (0.3, generator.normal() if vector == 1 else generator.normal(size=vector))  # noqa: E731
    facts = {"start/1": [("u", pair())], "edge/2": [(*e, pair()) for e in EDGES], "end/1": [("v", pair())]}
    bound = dg.Program(PAIRS, "expectation").bind(facts)
    limits = {"tolerance": 1e-16}
    one, some = (bound.function(g, ["edge/2", "end/1"], **limits) for g in ("goal", ["goal", "to(u)", "to(z)"]))
    for k in range(3):
        one.gradient(pairs(vector, 0), [pairs(vector, 0)] * k, cotangent=np.ones(1 + vector))
    return bound, one, some


def pairs(vector: int, seed: int) -> tuple[np.ndarray, ...]:
    generator = np.random.default_rng(seed)
    return tuple(generator.uniform(0.1, 0.3, (n, 1 + vector)) for n in (len(EDGES), 1))


@pytest.mark.parametrize("vector", [1, 3])
def test_in_expectation_the_last_axis_has_the_numbers_of_a_pair(vector: int) -> None:
    bound, one, some = paths(vector)
    x = pairs(vector, 1)
    chart = bound.with_values(dict(zip(one.inputs, x, strict=True))).run(tolerance=1e-16)
    assert one.shapes == ((5, 1 + vector), (1, 1 + vector))
    assert (one.result_shapes, some.result_shapes) == (((1 + vector,),), ((3, 1 + vector),))
    np.testing.assert_array_equal(one(*x), np.hstack(chart["goal"]))
    np.testing.assert_array_equal(some(*x), [np.hstack(chart["goal"]), np.hstack(chart["to(u)"]), np.zeros(1 + vector)])


@pytest.mark.parametrize("vector", [1, 3])
def test_the_gradient_of_a_pair_is_made_of_the_pairs_of_the_chart(vector: int) -> None:
    """With (g, h) the pair of the chart, p moves the goal by (g, h), and each number of r that number by g."""
    bound, one, _ = paths(vector)
    x = pairs(vector, 2)
    gradient = bound.with_values(dict(zip(one.inputs, x, strict=True))).run(tolerance=1e-16).gradient("goal")
    _, pullback = one.vjp(*x)
    rows = [pullback(e) for e in np.eye(1 + vector)]  # by number of the goal, by argument
    for n, key in enumerate(one.inputs):
        pair = gradient[key].values  # as many numbers for each fact as a value has
        for number in range(1 + vector):
            expected = np.zeros(pair.shape)
            expected[:, 0] = pair[:, number]
            if number:
                expected[:, number] = pair[:, 0]
            close(rows[number][n], expected)


@pytest.mark.parametrize("vector", [1, 3])
@pytest.mark.parametrize("name", ["tangent", "adjoint", "tangent of adjoint", "adjoint of tangent"])
def test_derivatives_of_derivatives_of_pairs(name: str, vector: int) -> None:
    """The derivative along a direction is what differences say, and the pullback is its transpose."""
    for function in paths(vector)[1:]:
        x = pairs(vector, 3)
        derived = DERIVED[name](function)
        x, u = [[*pairs(vector, s), *arguments(derived, s)[2:]] for s in (3, 4)]
        value, tangent = derived.jvp(x, u)
        h = 1e-5
        ahead, behind = (derived(*(a + s * h * b for a, b in zip(x, u, strict=True))) for s in (1, -1))
        for n, slope in enumerate(results(tangent)):
            close((np.asarray(results(ahead)[n]) - results(behind)[n]) / (2 * h), slope, 1e-6)
        again, pullback = derived.vjp(*x)
        close(whole(results(again)), whole(results(value)))
        cotangent = arguments(derived.adjoint(), 5)[len(x) :]
        back = pullback(cotangent[0] if not isinstance(again, tuple) else tuple(cotangent))
        assert [np.shape(b) for b in back] == [a.shape for a in x]
        close(inner(back, u), inner(cotangent, results(tangent)), 1e-9)


def test_hessians_of_pairs_are_symmetric() -> None:
    _, one, _ = paths(3)
    x, c = pairs(3, 6), np.array([0.5, -1.0, 2.0, 0.25])
    sizes = [a.size for a in x]
    basis = [tuple(p.reshape(a.shape) for p, a in zip(np.split(e, sizes[:1]), x, strict=True)) for e in np.eye(24)]
    hessian = np.array([whole(one.hvp(x, e, cotangent=c)) for e in basis])
    close(hessian, hessian.T)
    assert np.abs(hessian).max() > 0.1
    for ours, e in zip(hessian[:3], basis, strict=False):
        sides = [one.gradient([a + s * b for a, b in zip(x, e, strict=True)], cotangent=c) for s in (1e-5, -1e-5)]
        close(ours, (whole(sides[0]) - whole(sides[1])) / 2e-5, 1e-6)


def test_functions_of_pairs_in_the_verbs_of_functions() -> None:
    _, one, some = paths(1)
    x = pairs(1, 7)
    (edge, end), pullback = dg.vjp(lambda *x: some(*x)[0], *x)[1](np.array([0.0, 1.0])), one.vjp(*x)[1]
    for ours, theirs in zip((edge, end), pullback([0.0, 1.0]), strict=True):
        close(ours, theirs)
    mean = dg.grad(lambda e: (lambda y: y[1] / y[0])(one(e, x[1])))(x[0])  # an expectation is r over p
    h = 1e-6
    for place in ((0, 0), (2, 1)):
        step = np.zeros(x[0].shape)
        step[place] = h
        sides = [(lambda y: y[1] / y[0])(one(x[0] + s * step, x[1])) for s in (1, -1)]
        close(mean[place], (sides[0] - sides[1]) / (2 * h), 1e-6)


def test_pairs_that_do_not_fit() -> None:
    _, one, some = paths(1)
    x = pairs(1, 8)
    with pytest.raises(dg.Error, match=r"edge/2: an array of shape \(5, 2\)"):
        one(x[0][:, 0], x[1])
    with pytest.raises(dg.FactError, match="edge/2, row 3"):
        one(np.where(np.arange(5)[:, None] == 2, math.nan, x[0]), x[1])
    with pytest.raises(dg.Error, match="cotangent"):
        one.vjp(*x)[1](1.0)
    for function in (one, some):
        with pytest.raises(dg.Error, match="vjp"):
            function.value_and_grad(*x)
        with pytest.raises(dg.Error, match="cotangent="):
            function.hvp(x, x)


def test_pairs_of_dense_arrays_and_of_facts_without_numbers() -> None:
    program = dg.Program("goal += a(X) * b(X,Y) * c(Y).", "expectation")
    facts = {"a/1": [(0,), (1,)], "b/2": np.ones((2, 3, 2)), "c/1": np.ones((3, 2))}
    f = program.function("goal", ["a/1", "b/2"], facts)
    assert f.shapes == ((2, 2), (2, 3, 2))
    a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.arange(12.0).reshape(2, 3, 2)
    close(f(a, b), [a[:, 0] @ b.sum(1)[:, 0], a[:, 1] @ b.sum(1)[:, 0] + a[:, 0] @ (b.sum(1).sum(1))])
    gradient = f.vjp(a, b)[1]([1.0, 0.0])
    close(gradient[0], np.stack([b.sum(1)[:, 0], np.zeros(2)], 1))
    assert gradient[1].shape == b.shape


# -- arrays in and out -------------------------------------------------------------------------------------------------


def test_integers_and_lists_will_do() -> None:
    expected = f()(*parts(np.arange(7)))
    assert f()([0, 1, 2], np.array([3, 4, 5], np.int32), np.array([6], np.float32)) == expected


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        ((np.ones(3), np.ones(3)), dg.Error, "takes 3 arrays"),
        ((np.ones(3), np.ones(2), np.ones(1)), dg.Error, r"b/1: an array of shape \(3,\)"),
        ((np.ones(3), np.ones((3, 1)), np.ones(1)), dg.Error, r"shape \(3, 1\)"),
        ((np.ones(3), np.ones(3) * 1j, np.ones(1)), dg.Error, "b/1.*complex"),
        ((np.ones(3), ["p", "q", "r"], np.ones(1)), dg.Error, "b/1: an array of real numbers"),
        ((np.ones(3), [[1.0], [1.0, 2.0], 3.0], np.ones(1)), dg.Error, "b/1"),
        ((np.ones(3), [1.0, math.nan, 1.0], np.ones(1)), dg.FactError, "b/1, row 2"),
        ((np.ones(3), [1.0, 1.0, math.inf], np.ones(1)), dg.FactError, "b/1, row 3"),
    ],
)
def test_arrays_that_do_not_fit(arrays: Any, error: type[dg.Error], message: str) -> None:
    for call in (f(), f().value_and_grad, f().vjp, lambda *x: f().hvp(x, x), lambda *x: f().jvp(x, parts(np.ones(7)))):
        with pytest.raises(error, match=message):
            call(*arrays)


def test_tangents_and_cotangents_that_do_not_fit() -> None:
    x = parts(np.ones(7))
    with pytest.raises(dg.FactError, match="the tangent of b/1, row 1"):
        f().jvp(x, (x[0], [math.nan, 1.0, 1.0], x[2]))
    with pytest.raises(dg.Error, match="the tangent of a/1: an array of shape"):
        f().jvp(x, (np.ones(4), x[1], x[2]))
    with pytest.raises(dg.Error, match="direction 2 of c/0"):
        f().derivative(x, [x, (x[0], x[1], [1, 2])])
    _, pullback = many().vjp(*x)
    for cotangent in (1.0, np.ones(3), [1.0, 1.0, 1.0, math.inf], ["a"] * 4):
        with pytest.raises(dg.Error, match="cotangent"):
            pullback(cotangent)
    with pytest.raises(dg.Error, match="vjp"):
        many().value_and_grad(*x)
    with pytest.raises(dg.Error, match="cotangent="):
        many().hvp(x, x)


def test_arguments_stay_as_they_are_and_results_are_new() -> None:
    x = parts(drawn(40, 1)[0])
    before = [a.copy() for a in x]
    value, pullback = f().vjp(*x)
    first = pullback(1.0)
    expected = [g.copy() for g in first]
    for a, b in zip(x, before, strict=True):
        np.testing.assert_array_equal(a, b)
        a += 1.0  # what the pullback looks at is its own
    for g in first:
        g[:] = 7.0
    for ours, theirs in zip(pullback(1.0), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert f()(*before) == value


def test_goals_and_inputs_that_are_not_there() -> None:
    made = bound().function
    with pytest.raises(dg.QueryError, match="gaol"):
        made("gaol", INPUTS)
    with pytest.raises(dg.QueryError, match="variables"):
        made("twin(X)", INPUTS)
    with pytest.raises(dg.QueryError, match="not an item"):
        made(["goal", 7], INPUTS)  # type: ignore[list-item]
    for inputs, message in ((["twin/1"], "no facts"), (["a/1", "a/1"], "twice"), ([], "empty"), ("a/1", "list")):
        with pytest.raises(dg.Error, match=message):
            made("goal", inputs)
    with pytest.raises(dg.Error, match="max_pops"):
        made("goal", INPUTS, max_pops=-1)


# -- runs --------------------------------------------------------------------------------------------------------------


def test_limits_are_those_of_a_run() -> None:
    x = parts(drawn(50, 1)[0])
    stopped = bound().function("twin(x)", INPUTS, max_pops=0)
    chart = bound().with_values(dict(zip(INPUTS, x, strict=True))).run(max_pops=0)
    assert stopped(*x) == chart["twin(x)"]
    small = bound().function("goal", INPUTS, max_bytes=1)
    for call in (small, small.value_and_grad, lambda *x: small.hvp(x, x)):
        with pytest.raises(dg.NotConverged, match="max_bytes"):
            call(*x)


def test_values_that_leave_the_range_are_errors_of_the_run() -> None:
    huge = parts(np.full(7, 1e200))
    for call in (f(), f().value_and_grad, lambda *x: f().hvp(x, x)):
        with pytest.raises(dg.ValueRangeError, match="goal became NaN or left the range"):
            call(*huge)
    fine, steep = parts(np.full(7, 1.0)), parts(np.full(7, 1e308))
    with pytest.raises(dg.ValueRangeError, match="a derivative of"):
        f().jvp(fine, steep)


def test_several_threads_at_once() -> None:
    points = [parts(x) for x in drawn(60, 40)]
    alone = [whole(f().hvp(x, x)) for x in points]
    _, pullback = f().vjp(*points[0])
    weights = [float(n) for n in range(40)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda x: whole(f().hvp(x, x)), points))
        back = list(pool.map(lambda w: whole(pullback(w)), weights))
    np.testing.assert_array_equal(together, alone)
    for weight, gradient in zip(weights, back, strict=True):
        close(gradient, weight * whole(pullback(1.0)))


def test_functions_pickle() -> None:
    x = parts(drawn(61, 1)[0])
    for function in (f(), many().adjoint()):
        arrays = x if function is f() else (*x, np.ones(4))
        copied = pickle.loads(pickle.dumps(function))
        for ours, theirs in zip(results(copied(*arrays)), results(function(*arrays)), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_what_a_function_says_of_itself() -> None:
    assert (f().goal, f().inputs, f().shapes, f().result_shapes) == ("goal", tuple(INPUTS), ((3,), (3,), (1,)), ((),))
    assert (many().goal, many().adjoint().shapes[-1]) == (GOALS, (4,))
    assert repr(f()) == "<Function: goal by a/1 (3,), b/1 (3,), c/0 (1,)>"
    assert "derivative" in repr(f().tangent())


# -- in the verbs of functions -----------------------------------------------------------------------------------------


def squared() -> tuple[Any, Any]:
    """a = a*a + r.x by rules, whose solution is known in closed form."""
    program = dg.Program("a += a*a.  a += r(X) * x(X).")
    facts = {"r/1": np.array([0.1, 0.05]), "x/1": np.array([0.5, 1.0])}
    f = program.function("a", inputs=["r/1", "x/1"], facts=facts, tolerance=1e-15)
    return f, lambda r, x: (1 - np.sqrt(1 - 4 * np.sum(r * x))) / 2


@pytest.mark.filterwarnings("ignore::dynagrad.ProgramWarning")
def test_a_program_takes_part_in_all_verbs_of_functions() -> None:
    f, closed = squared()
    r, x = np.array([0.1, 0.05]), np.array([0.5, 1.0])

    def same(verb: Any, *arguments: Any) -> None:
        mine, theirs = verb(f)(*arguments), verb(closed)(*arguments)
        for a, b in zip(*(t if isinstance(t, tuple) else (t,) for t in (mine, theirs)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)

    same(lambda g: dg.grad(g, (0, 1)), r, x)
    same(lambda g: lambda r, x: dg.jvp(g, (r, x), (x, r)), r, x)
    same(lambda g: dg.hessian(lambda r: g(r, x)), r)
    same(lambda g: dg.jacrev(dg.grad(g, 1), 0), r, x)
    same(lambda g: lambda r, x: dg.hvp(g, (r, x), (x, r)), r, x)
    same(lambda g: dg.grad(lambda r: np.sum(np.sin(dg.grad(g, 1)(r, x)) * dg.grad(g, 0)(x, r))), r)
    same(lambda g: dg.derivative(lambda t: g(r * t, x), 3), 0.9)
    same(lambda g: dg.derivative(dg.grad(lambda t: dg.jvp(lambda s: g(r * s, x * t), (t,), (1.0,))[1])), 0.8)
    same(lambda g: dg.grad(lambda r: dg.fixed_point(lambda y: g(r * y, x) + 0.5, 1.0)), r)


@pytest.mark.filterwarnings("ignore::dynagrad.ProgramWarning")
def test_the_functional_of_a_program_that_is_an_input() -> None:
    f, closed = squared()
    r, x = np.array([0.1, 0.05]), np.array([0.5, 1.0])
    outer = lambda g: g(g(r, x) * r, x) * 2.0  # noqa: E731
    h = lambda r, x: np.sum(r * x * x)  # noqa: E731
    assert dg.grad(outer)(f)(h) == pytest.approx(dg.grad(outer)(closed)(h), rel=1e-6)


# -- shapes that differ from call to call ------------------------------------------------------------------------------

FORWARD = """
    alpha(T,S) += start(S) * emit(T,S) for T == 0.
    alpha(T+1,S) += alpha(T,R) * move(R,S) * emit(T+1,S).
    total += alpha(T,_) * end(T).
"""


@pytest.fixture(scope="module", params=["log", "plain", "expectation"])
def chain(request: pytest.FixtureRequest) -> dg.Bound:
    rng = np.random.default_rng(3)
    pair = [2] if request.param == "expectation" else []
    program = dg.Program(FORWARD, None if request.param == "plain" else request.param)
    # It starts in one state, and has more emissions however short it is: rules are joined in one order, by one class.
    return program.bind({"move/2": rng.random((3, 3, *pair)), "start/1": rng.random((1, *pair))})


def emissions(bound: dg.Bound, length: int) -> Any:
    pair = [2] if bound.program.semiring == "expectation" else []
    return np.random.default_rng(length).random((length, 3, *pair)) + 0.1


class TestOpenFunctions:
    """Inputs without bound facts are dense arrays of any shape, and a call may bring facts of its own."""

    def test_each_call_is_that_of_a_function_made_for_its_facts(self, chain: dg.Bound) -> None:
        f = chain.function("total", inputs=["emit/2"])
        for length in (3, 1, 5, 3, 2):
            x, ends = emissions(chain, length), {"end/1": [(length - 1,)]}
            fixed = chain.function("total", inputs=["emit/2"], facts={"emit/2": x, **ends})
            np.testing.assert_array_equal(f(x, facts=ends), fixed(x))
            np.testing.assert_array_equal(f.value(x, facts=ends), fixed.value(x))
            seed = np.ones(2) if x.ndim == 3 else 1.0
            np.testing.assert_array_equal(f.vjp(x, facts=ends)[1](seed)[0], fixed.vjp(x)[1](seed)[0])
            np.testing.assert_array_equal(f.jvp([x], [x], facts=ends)[1], fixed.jvp([x], [x])[1])
            np.testing.assert_array_equal(
                f.hvp([x], [x], cotangent=seed, facts=ends)[0], fixed.hvp([x], [x], cotangent=seed)[0]
            )
            np.testing.assert_array_equal(f.derivative([x], [[x]], facts=ends), fixed.derivative([x], [[x]]))
            np.testing.assert_array_equal(f.tangent()(x, x, facts=ends), fixed.tangent()(x, x))
            np.testing.assert_array_equal(f.adjoint()(x, seed, facts=ends)[0], fixed.adjoint()(x, seed)[0])

    def test_bound_inputs_beside_open_ones(self, chain: dg.Bound) -> None:
        f = chain.function("total", inputs=["move/2", "emit/2"])
        moves = binding_of(chain).given["move/2"].values.reshape(3, 3, *f.result_shapes[0])
        x, ends = emissions(chain, 4), {"end/1": [(3,)]}
        fixed = chain.function("total", inputs=["emit/2"], facts={"emit/2": x, **ends})
        np.testing.assert_array_equal(f(moves, x, facts=ends), fixed(x))
        with pytest.raises(dg.Error, match="move/2: an array of shape"):
            f(moves[:2], x, facts=ends)

    def test_all_verbs_go_through(self, chain: dg.Bound) -> None:
        f = chain.function("total", inputs=["emit/2"])
        x, ends = emissions(chain, 2), {"end/1": [(1,)]}
        if x.ndim == 3:
            return
        found = dg.grad(lambda x: 2.0 * f(x, facts=ends))(x)
        np.testing.assert_allclose(found, 2.0 * f.value_and_grad(x, facts=ends)[1][0], rtol=1e-14)

    def test_what_is_known_of_shapes(self, chain: dg.Bound) -> None:
        f = chain.function("total", inputs=["move/2", "emit/2"])
        pair = (2,) if chain.program.semiring == "expectation" else ()
        assert f.shapes == ((3, 3, *pair), (None, None, *pair)) and f.result_shapes == (pair,)
        assert f.inputs == ("move/2", "emit/2") and f.goal == "total"
        assert "emit/2 (any, any" in repr(f)

    def test_pickling_and_threads(self, chain: dg.Bound) -> None:
        f = pickle.loads(pickle.dumps(chain.function("total", inputs=["emit/2"])))
        calls = [(emissions(chain, n), {"end/1": [(n - 1,)]}) for n in (1, 2, 3, 4)] * 5
        alone = [f(x, facts=facts) for x, facts in calls]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(lambda call: f(call[0], facts=call[1]), calls))
        np.testing.assert_array_equal(alone, together)


def test_facts_of_calls_are_told_apart() -> None:
    f = dg.Program("goal += x(I) * pick(I) * by.").function("goal", inputs=["x/1"])
    x = [1.0, 10.0, 100.0]
    assert f(x, facts={"pick/1": [(0,)], "by/0": 1}) == 1.0
    assert f(x, facts={"pick/1": [(0, 2.0), (2, 1.0)], "by/0": 2.0}) == 204.0
    assert f(x, facts={"pick/1": np.array([0.0, 3.0, 0.0]), "by/0": 1.0}) == 30.0
    assert f(x, facts={"pick/1": [(0,), (2,)], "by/0": True}) == 101.0
    assert f(x[:1], facts={"pick/1": [(0,), (2,)], "by/0": 1.0}) == 1.0
    with pytest.raises(dg.Error, match=r"takes 1 array \(x/1\), but 0 were given"):
        f(facts={"pick/1": [(0,)], "by/0": 1.0})
    with pytest.raises(dg.FactError, match=r"No rule reads `pcik/1`.*none are given for `pick/1`"):
        f(x, facts={"pcik/1": [], "by/0": 1.0})
    with pytest.raises(dg.FactError, match="no predicate `pcik/1`"):
        f(x, facts={"pick/1": [], "pcik/1": [], "by/0": 1.0})


def test_facts_are_the_same_where_their_types_are() -> None:
    f = dg.Program("goal += x(I) * pick(I).  other += x(_) * name(1).").function("other", inputs=["x/1"])
    facts = {"pick/1": [(0,)]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that 1 and 1.0 are two arguments
        assert f([2.0], facts={**facts, "name/1": [(1,)]}) == 2.0
        assert f([2.0], facts={**facts, "name/1": [(1.0,)]}) == 0.0
        assert f([2.0], facts={**facts, "name/1": [("1",)]}) == 0.0


def test_open_functions_that_do_not_fit() -> None:
    program = dg.Program(":- external far/1. goal += x(I,J) * y(J) * far(J).", functions={"far/1": float})
    f = program.function("goal", inputs=["x/2", "y/1"])
    for call, message in (
        (lambda: f(np.zeros((2, 3))), "the function takes 2 arrays"),
        (lambda: f(np.zeros(3), np.zeros(3)), "x/2: an array with 2 axes is needed"),
        (lambda: f(np.zeros((2, 3)), 1.0), "y/1: an array with 1 axis is needed"),
        (lambda: f([[1.0], [1.0, 2.0]], [1.0]), "x/2: not an array of numbers"),
        (lambda: f(np.zeros((1, 1)), [1.0], facts={"y/1": []}), "y/1 is an argument of the function"),
        (lambda: f(np.zeros((1, 1)), [1.0], facts=3), "3 is not a dict of facts"),
        (lambda: f([["a"]], [1.0]), "x/2: an array of real numbers is needed"),
        (lambda: f([[np.nan]], [1.0]), "x/2, row 1, value: nan"),
        (lambda: f.vjp([[1.0]], [1.0])[1]([1.0, 2.0]), "the cotangent"),
        (lambda: program.function("goal", inputs=["z/1"]), "inputs: the program has no predicate 'z/1'"),
        (lambda: program.function("goal", inputs=["far/1"]), "far/1 is external"),
        (lambda: program.function("goal", ["x/2"], {"x/2": np.ones((1, 1))})([[1.0]], facts={}), "when it was made"),
    ):
        with pytest.raises(dg.Error, match=message):
            call()
    assert f([[2.0, 3.0]], [5.0, 7.0]) == 21.0


def test_few_shapes_are_kept_where_there_are_many_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynagrad.charts.functions.function.MOST_KEPT_ROWS", 20)
    f = dg.Program("goal += x(I) * w(I).").bind({"w/1": np.ones(10)}).function("goal", inputs=["x/1"])
    assert [f(np.ones(n)) for n in range(1, 9)] == list(range(1, 9))
    assert len(f._given._cores) == 4


def test_calls_with_shapes_in_turns_take_as_long_as_with_one(chain: dg.Bound) -> None:
    """What depends on the shapes is kept: to make it anew takes four times as long as such a call. How long it takes in
    milliseconds, which is a machine's business, is in `benchmarks`."""
    f = chain.function("total", inputs=["emit/2"])
    calls = [(emissions(chain, n), {"end/1": [(n - 1,)]}) for n in (3, 5, 4, 6)]

    def seconds(of: Sequence[tuple[Any, Any]]) -> float:
        start = time.process_time()
        for x, facts in of:
            f(x, facts=facts)
        return time.process_time() - start

    one, turns = zip(*((seconds(calls[-1:] * 40), seconds(calls * 10)) for _ in range(20)), strict=True)
    assert min(turns) < 2 * min(one)
