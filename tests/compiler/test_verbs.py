"""Verbs in compiled functions, and calls there of functions that verbs returned."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import agrees, agrees_with_gradient, through_graph


def test_the_derivative_of_a_curried_function_may_be_applied_to_itself() -> None:
    def f(x: Any) -> Any:
        h = dg.derivative(lambda x: lambda g: lambda y: g(x + y))(x)
        return (
            h(h(np.exp))(1.0),
            h(np.exp)(1.0),
            dg.grad(h(np.exp))(1.0),
            dg.jvp(lambda y: h(h(np.exp))(y), (1.0,), (1.0,)),
        )

    found = through_graph(f, 3.0)
    assert found[0] == pytest.approx(math.exp(7))
    assert found[1] == pytest.approx(math.exp(4))
    assert found[2] == pytest.approx(math.exp(4))
    assert found[3][1] == pytest.approx(math.exp(7))


def test_perturbations_are_told_apart() -> None:
    def f(x: Any) -> Any:
        inner = dg.derivative(lambda x: x * dg.derivative(lambda y: x + y)(1.0))(x)
        return inner + dg.grad(lambda x: x * dg.grad(lambda y: x * y)(2.0))(x)

    agrees(f, 0.3)
    assert through_graph(f, 0.3) == pytest.approx(1.0 + 2 * 0.3)


def test_every_verb() -> None:
    def f(x: Any, y: Any) -> Any:
        value, back = dg.vjp(lambda a, b: (a * b, {"z": a + b}), x, y)
        return (
            value,
            back((1.0, {"z": x})),
            dg.jvp(lambda a: [a * a, a], (x,), (2.0,)),
            dg.value_and_grad(lambda a, b: (a * b, a), (0, 1), has_aux=True)(x, y),
            dg.gradient(lambda a, b: a * b**2, argnums=1)(x, y),
            dg.derivative(np.sin, 3)(x),
            dg.pullback(lambda a: a * a, lambda b: 10.0)(x),
            dg.add((x, [1.0]), (y, [x])),
            dg.scale(y, {"a": x}),
            dg.add(math.sin, lambda z: z * y)(x),
            dg.scale(x, lambda z: z)(y),
            dg.hvp(lambda a, b: a * a * b, (x, y), (1.0, 2.0)),
            dg.jacfwd(lambda a, b: {"z": a * b}, (0, 1))(x, y),
            dg.hessian(lambda a, b: a * a * b, (0, 1))(x, y),
            dg.grad(lambda p: p["u"] * p["v"][0])({"u": x, "v": (y, 3)}),
            dg.checkpoint(lambda s: s * x, 1.0, 5),
        )

    agrees(f, 0.3, 0.4)


@pytest.mark.parametrize("n", [3, 12])
def test_jacobians_of_arrays(n: int) -> None:
    def f(x: Any) -> Any:
        g = lambda x: (np.cumsum(np.sin(x)), x[0] * x)  # noqa: E731
        hessian = dg.hessian(lambda x: (x**3).sum() * x[0])(x)
        return dg.jacfwd(g)(x), dg.jacrev(g)(x), hessian, dg.hvp(lambda x: (x**3).sum(), (x,), (x,))

    agrees(f, np.linspace(0.1, 1, n))


def test_derivatives_of_loops_in_loops() -> None:
    def f(x: Any) -> Any:
        def solve(c: Any) -> Any:
            g = lambda y: y**3 - c  # noqa: E731
            y, change = 1.0, 1.0
            while abs(change) > 1e-12:
                change = g(y) / dg.derivative(g)(y)
                y = y - change
            return y

        w = 0.5
        for _ in range(30):
            w = w - 0.1 * dg.grad(lambda v: (solve(v) - x) ** 2)(w)
        return w

    agrees_with_gradient(f, 0.9)


def test_descent_of_an_array() -> None:
    def f(x: Any) -> Any:
        w = np.ones(3) * x
        for _ in range(30):
            w = w - 0.05 * dg.grad(lambda w: ((w - x) ** 2).sum() + w[0] * w[1] * w[2])(w)
        return (w * w).sum()

    agrees_with_gradient(f, 0.3)


@pytest.mark.parametrize(
    "verb",
    [dg.grad, dg.value_and_grad, dg.derivative, dg.jacfwd, dg.jacrev, dg.hessian, lambda f: dg.derivative(f, 3)],
)
def test_functions_that_verbs_made(verb: Any) -> None:
    def f(x: Any) -> Any:
        return np.sin(x) * x if x > 0 else x**3

    agrees(verb(f), 0.7)
    agrees(verb(f), -0.7)
    if verb is not dg.value_and_grad:
        agrees(dg.derivative(verb(f)), 0.7)


def test_functions_that_verbs_made_outside_are_used_inside() -> None:
    slope = dg.grad(lambda x, y: x * y**2, argnums=(0, 1))
    agrees(lambda x: slope(x, 2.0)[1] + slope(x, x)[0], 0.7)


def test_derivatives_with_respect_to_functions() -> None:
    def f(x: Any) -> Any:
        dual = dg.grad(lambda g: g(g(x)))(np.sin)
        by_both = dg.grad(lambda p: p["g"](p["w"]) * p["w"])({"g": np.exp, "w": x})
        value, back = dg.vjp(lambda g, y: (g(y), g(2.0) * y), np.cos, x)
        of_g, of_y = back((1.0, x))
        along = dg.jvp(lambda g, y: g(g(y)), (np.sin, x), (np.cos, 1.0))
        return (
            dual(np.cos),
            dual(lambda y: y * x),
            by_both["w"],
            by_both["g"](np.sin),
            value,
            of_g(np.exp),
            of_y,
            along,
            dg.add(dual, dual)(np.tanh),
            dg.scale(2.0, dual)(np.tanh),
        )

    agrees(f, 0.7)
    assert through_graph(lambda x: dg.grad(lambda h: h(h(2.0)))(np.sin)(np.cos) * x, 1.0) == pytest.approx(
        math.cos(math.sin(2.0)) * (1.0 + math.cos(2.0))
    )


def test_derivatives_of_derivatives_with_respect_to_functions() -> None:
    agrees_with_gradient(lambda x: dg.grad(lambda g: g(g(x)))(np.sin)(lambda y: np.cos(y * x)), 0.7)


def _halvings(y: float) -> Any:
    n = 0
    while y > 1.0:
        y = y / 2.0
        n += 1
    return y, n, {"more": n > 2, "n": [n], "text": "a"}


@dataclasses.dataclass
class Counted:
    value: float
    count: int


def test_whole_numbers_in_results_have_derivative_zero() -> None:
    found = through_graph(lambda x: dg.jvp(lambda y: (y * y, int(y)), (x,), (1.0,)), 2.7)
    assert found == ((pytest.approx(2.7**2), 2), (pytest.approx(5.4), 0.0))
    agrees(dg.derivative(lambda x: (x * x, 3, True, np.arange(2), x > np.ones(2))), 1.5)
    agrees(dg.derivative(lambda x: 3), 1.5)
    agrees(dg.grad(lambda x: 3), 1.5)
    agrees(dg.derivative(lambda x: Counted(x * x, 3)), 1.5)  # a field of a class is a constant
    for verb in (dg.derivative, dg.jacfwd, dg.jacrev, lambda f: dg.derivative(f, 2), dg.hessian):
        agrees(verb(_halvings), 9.0)
    agrees(dg.jacfwd(lambda x: (x * x, np.arange(3), {"n": 2})), np.array([1.0, 2.0]))
    agrees(dg.jacrev(lambda x: (x * x, np.arange(3), {"n": 2})), np.array([1.0, 2.0]))
