"""`dg.fixed_point` in compiled functions, against eager ones and closed forms. Costs a few seconds."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import agrees, same, through_graph
from dynagrad.compiler import inspect as seeing
from dynagrad.ir.control import CALL
from dynagrad.ir.node import order

MODES: dict[str, Any] = {"forward": dg.derivative, "reverse": dg.grad}


def mixes(most: int) -> list[tuple[str, ...]]:
    return [modes for depth in range(most + 1) for modes in itertools.product(MODES, repeat=depth)]


def nested(f: Any, modes: tuple[str, ...]) -> Any:
    for mode in reversed(modes):
        f = MODES[mode](f)
    return f


def babylonian(a: Any) -> Any:
    return dg.fixed_point(lambda x: 0.5 * (x + a / x), 1.0)


def kepler(eccentricity: Any) -> Any:
    """The eccentric anomaly for the mean anomaly 1."""
    return dg.fixed_point(lambda e: 1.0 + eccentricity * np.sin(e), 1.0)


@functools.cache
def anomaly(eccentricity: float, n: int) -> float:
    def solution(e: Any) -> Any:
        return mpmath.findroot(lambda x: x - 1 - e * mpmath.sin(x), 1.5)

    with mpmath.workdps(40):
        return float(mpmath.diff(solution, eccentricity, n))


@pytest.mark.parametrize("modes", mixes(3), ids=" over ".join)
def test_derivatives_in_any_mix_of_modes(modes: tuple[str, ...]) -> None:
    n = len(modes)
    root = through_graph(nested(babylonian, modes), 2.0)
    assert root == pytest.approx(math.prod(0.5 - i for i in range(n)) * 2.0 ** (0.5 - n), rel=1e-10)
    assert through_graph(nested(kepler, modes), 0.4) == pytest.approx(anomaly(0.4, n), rel=1e-9)


@pytest.mark.parametrize("modes", [("forward", "reverse"), ("reverse", "reverse")], ids=" over ".join)
def test_before_and_after_compiling(modes: tuple[str, ...]) -> None:
    outer, inner = (MODES[mode] for mode in modes)
    second = -0.25 * 2.0**-1.5
    assert dg.compile(outer(inner(babylonian)))(2.0) == pytest.approx(second)
    assert outer(dg.compile(inner(babylonian)))(2.0) == pytest.approx(second)
    assert outer(inner(dg.compile(babylonian)))(2.0) == pytest.approx(second)


def test_a_series_through_a_compiled_one() -> None:
    assert dg.derivative(dg.compile(kepler), 3)(0.4) == pytest.approx(anomaly(0.4, 3), rel=1e-8)


def test_an_implicit_function_of_vectors() -> None:
    """x = A x + b in a loss: value, gradients and second derivatives, against those of the solved equation."""
    rng = np.random.default_rng(0)
    a, b, c = rng.uniform(-0.2, 0.2, (4, 4)), rng.standard_normal(4), rng.standard_normal(4)

    def loss(a: Any, b: Any) -> Any:
        return np.sum(c * dg.fixed_point(lambda x: a @ x + b, np.zeros(4)) ** 2)

    def closed(a: Any, b: Any) -> Any:
        return np.sum(c * np.linalg.solve(np.eye(4) - a, b) ** 2)

    def everything(loss: Any) -> Any:
        return lambda a, b: (
            loss(a, b),
            dg.grad(loss, (0, 1))(a, b),
            dg.jvp(loss, (a, b), (a, b))[1],
            dg.hessian(loss, 1)(a, b),
            dg.jvp(dg.grad(loss, (0, 1)), (a, b), (b * a, a @ b))[1],
        )

    wanted = everything(closed)(a, b)
    found = through_graph(everything(loss), a, b)
    for one, other in zip(_leaves(found), _leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
    compiled = dg.grad(dg.compile(loss), (0, 1))(a, b)
    for one, other in zip(compiled, wanted[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8)


def _leaves(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in _leaves(part)] if isinstance(x, tuple) else [x]


@pytest.mark.parametrize("modes", mixes(2), ids=" over ".join)
def test_a_derivative_inside_of_the_step(modes: tuple[str, ...]) -> None:
    def root(c: Any) -> Any:
        def g(x: Any) -> Any:
            return x * x * x - c

        return dg.fixed_point(lambda x: x - g(x) / dg.derivative(g)(x), 1.5)

    agrees(nested(root, modes), 2.0)


def test_a_fixed_point_inside_of_a_fixed_point() -> None:
    def outer(p: Any) -> Any:
        return dg.fixed_point(lambda x: 0.5 * dg.fixed_point(lambda y: 0.5 * y + 0.5 * x * p, 0.0) + p, 0.0)

    for modes in mixes(2):
        agrees(nested(outer, modes), 0.7)


def test_inside_of_loops_and_branches() -> None:
    def f(c: Any) -> Any:
        total = 0.0
        for i in range(20):
            total = total + dg.fixed_point(lambda x: 0.5 * (x + (c + i) / x), 1.0)  # noqa: B023
            if total > 10.0:
                total = total - dg.fixed_point(lambda x: np.cos(x * c), 1.0)
        return total

    for modes in mixes(2):
        agrees(nested(f, modes), 0.7)


def test_a_loop_inside_of_the_step() -> None:
    def f(p: Any) -> Any:
        def step(x: Any) -> Any:
            for _ in range(20):
                x = 0.9 * x + 0.05 * np.cos(p * x)
            return x

        return dg.fixed_point(step, 0.0)

    for modes in mixes(2):
        agrees(nested(f, modes), 0.7)


def test_a_step_that_calls_itself() -> None:
    def f(p: Any) -> Any:
        def power(x: Any, n: Any) -> Any:
            return 1.0 if n <= 0.0 else x * power(x, n - 1.0)

        return dg.fixed_point(lambda x: 0.1 * power(x, p * 3.0) + p, 0.5)

    for modes in mixes(1):
        agrees(nested(f, modes), 0.7)


@pytest.mark.parametrize("modes", mixes(2)[3:], ids=" over ".join)
def test_what_one_derivative_does_not_see_another_does(modes: tuple[str, ...]) -> None:
    """x = p x + w at w = 0: x is 0 however p changes, but its derivative by w is 1 / (1 - p)."""
    outer, inner = (MODES[mode] for mode in modes)

    def x(p: Any, w: Any) -> Any:
        return dg.fixed_point(lambda x: p * x + w, 0.0)

    assert through_graph(outer(lambda p: inner(lambda w: x(p, w))(0.0)), 0.5) == pytest.approx(4.0)


def test_the_start_has_derivative_zero() -> None:
    for mode in MODES.values():
        assert through_graph(mode(lambda x0: dg.fixed_point(lambda x: np.cos(x), x0)), 1.0) == 0.0
        assert through_graph(mode(lambda x0: dg.fixed_point(lambda x: 0.5 * x + x0, x0)), 1.0) == pytest.approx(2.0)


@dataclass
class Pair:
    x: float
    rest: dict[str, Any]


def test_structures() -> None:
    def f(p: Any) -> Any:
        start = Pair(0.0, {"y": [np.zeros(2), 0.0], "n": 3, "name": "a"})

        def step(s: Any) -> Any:
            y = s.rest["y"]
            return Pair(0.5 * y[1] + p, {"y": [0.5 * y[0] + s.x, 0.5 * s.x], "n": 3, "name": "b"})

        return dg.fixed_point(step, start)

    agrees(f, 3.0)
    agrees(dg.grad(lambda p: f(p).x * f(p).rest["y"][0].sum()), 3.0)


@pytest.mark.parametrize("modes", mixes(2), ids=" over ".join)
def test_one_real_in_an_array(modes: tuple[str, ...]) -> None:
    def f(p: Any) -> Any:
        start = (np.zeros((1, 1)), np.zeros(0))
        return dg.fixed_point(lambda s: (0.5 * np.cos(p * s[0]), s[1] * p), start)[0][0, 0]

    agrees(nested(f, modes), 0.7)


def test_no_reals_at_all() -> None:
    agrees(lambda x: (dg.fixed_point(lambda s: s, ()), dg.fixed_point(lambda s: s * x, np.zeros(0)), x), 1.0)


def test_the_step_may_change_what_it_is_given() -> None:
    def f(p: Any) -> Any:
        def step(x: Any) -> Any:
            x[0] = p * x[1]
            x[1] = 0.5 * x[0] + p
            return x

        return dg.fixed_point(step, np.ones(2))

    agrees(f, 0.3)
    slope = through_graph(dg.grad(lambda p: f(p)[1]), 0.3)
    assert slope == pytest.approx(1.0 / (1.0 - 0.15) ** 2)  # x1 = p x1 / 2 + p


def test_an_array_that_changes_between_two_fixed_points() -> None:
    """The step is the same both times, and what it holds is not."""

    def f(p: Any) -> Any:
        a = np.ones(2)

        def solved() -> Any:
            return dg.fixed_point(lambda x: 0.5 * x + a[0] * p, 0.0)

        first = solved()
        a[0] = 3.0
        return first, solved()

    agrees(f, 0.7)


def test_options() -> None:
    agrees(lambda x: dg.fixed_point(lambda y: np.cos(y), x, 1e-3), 1.0)
    agrees(lambda x: dg.fixed_point(lambda y: np.cos(y), x0=x, tolerance=1e-2, max_steps=50), 1.0)
    agrees(lambda x, tolerance: dg.fixed_point(lambda y: np.cos(y), x, tolerance), 1.0, 1e-2)


def test_large_vectors_do_without_the_matrix() -> None:
    n = 1500
    p = np.linspace(0.1, 0.9, n)

    def loss(p: Any) -> Any:
        x = dg.fixed_point(lambda x: np.cos(p * x) * 0.5, np.zeros(n))
        return np.sum(x * x)

    agrees(dg.grad(loss), p)
    agrees(lambda p: dg.jvp(dg.grad(loss), (p,), (p,))[1], p)


def test_equal_fixed_points_are_computed_once() -> None:
    graph = seeing.graph(lambda a: dg.vjp(babylonian, a)[1](babylonian(a))[0], 2.0).graph
    calls = [n for n in order(graph.outputs) if n.operation is CALL]
    assert sorted(n.attribute.function.name for n in calls) == ["fixed point", "inverse"]


@pytest.mark.parametrize(
    "f, error, message",
    [
        (lambda x: dg.fixed_point(lambda y: y + x, 0.0, max_steps=50), dg.NotConverged, "reached in 50 steps"),
        (lambda x: dg.fixed_point(lambda y: y * y * 1e9, 2.0 * x), dg.Error, "reached an infinity"),
        (lambda x: dg.fixed_point(lambda y: y * math.nan, x), dg.Error, "step 1 reached NaN"),
        (dg.grad(lambda x: dg.fixed_point(lambda y: y + x - 1.0, 2.0)), dg.NotDifferentiable, "singular"),
    ],
)
def test_what_goes_wrong_as_it_runs(f: Any, error: type[Exception], message: str) -> None:
    for run in (f, lambda x: through_graph(f, x), dg.compile(f)):
        with pytest.raises(error, match=message):
            run(1.0)


@pytest.mark.parametrize(
    "f, message",
    [
        (lambda x: dg.fixed_point(lambda y: (y, y), x), "f should return a real, .* and it returned a tuple of 2"),
        (lambda x: dg.fixed_point(lambda y: np.ones(2) * y, x), "should be a real, .* and is an array"),
        (lambda x: dg.fixed_point(lambda y: y, 2), "write 2.0"),
        (lambda x: dg.fixed_point(lambda y: y, (x, math.sin)), "x0 has a function in it"),
        (lambda x: dg.fixed_point(3.0, x), "f must be a function"),
        (lambda x: dg.fixed_point(lambda y: y, x, max_steps=0), "max_steps must be a whole number, at least 1"),
        (lambda x: dg.fixed_point(lambda y: y, x, -1.0), "the tolerance is a real from 0"),
        (lambda x: dg.fixed_point(lambda y: y, x, steps=3), "takes f, x0, tolerance and max_steps"),
    ],
)
def test_what_is_wrong_is_shown(f: Any, message: str) -> None:
    with pytest.raises(dg.LiftError, match=message) as caught:
        through_graph(f, 1.0)
    assert "dg.fixed_point" in str(caught.value)


def test_the_value_is_the_same_with_derivatives() -> None:
    value, slope = dg.compile(dg.value_and_grad(kepler))(0.4)
    assert value == dg.compile(kepler)(0.4)
    assert same(slope, dg.grad(kepler)(0.4))


def test_a_rule_of_a_program_solves_natively() -> None:
    program = dg.Program(":- function root/1. total += root(w(X)) * v(X).", functions={"root": dg.compile(babylonian)})
    chart = program.run({"w/1": [("p", 4.0), ("q", 9.0)], "v/1": [("p", 1.0), ("q", 2.0)]})
    assert chart["total"] == pytest.approx(8.0)
    assert chart.gradient("total")["w/1"].values == pytest.approx([0.25, 1.0 / 3.0])
    with pytest.raises(dg.Error, match="the function root failed for total: fixed_point: step 2 reached an infinity"):
        program.run({"w/1": [("p", -1.0)], "v/1": [("p", 1.0)]})
