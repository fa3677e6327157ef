"""Fixed points: the solution of x = f(x), and its derivatives to any order in any mix of modes."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import mpmath
import numpy as np
import pytest

import dynagrad as dg
from dynagrad.ir.ops import scalars as ops

MODES = {"forward": dg.derivative, "reverse": dg.grad}


def mixes(depth):
    return [pytest.param(m, id=" over ".join(m)) for m in itertools.product(MODES, repeat=depth)]


def nested(f, modes):
    for mode in reversed(modes):
        f = MODES[mode](f)
    return f


def quadratic(r):
    """a = a*a + r, the smaller solution."""
    return dg.fixed_point(lambda a: a * a + r, 0.0)


def quadratic_derivative(r, n):
    """Of (1 - sqrt(1 - 4 r)) / 2."""
    with mpmath.workdps(50):
        return float(mpmath.diff(lambda r: (1 - mpmath.sqrt(1 - 4 * r)) / 2, r, n))


def cosine(p):
    return dg.fixed_point(lambda x: ops.cos(p * x), 1.0)


def cosine_derivative(p, n):
    with mpmath.workdps(50):
        return float(mpmath.diff(lambda p: mpmath.findroot(lambda x: x - mpmath.cos(p * x), 0.8), p, n))


def test_the_solution_is_that_of_the_equation():
    assert quadratic(0.1) == pytest.approx(quadratic_derivative(0.1, 0), abs=1e-12)
    x = cosine(1.0)
    assert x == pytest.approx(math.cos(x), abs=1e-12)


@pytest.mark.parametrize("f, exact, at", [(quadratic, quadratic_derivative, 0.1), (cosine, cosine_derivative, 0.7)])
@pytest.mark.parametrize("modes", mixes(1) + mixes(2) + mixes(3))
def test_derivatives_in_any_mix_of_modes(f, exact, at, modes):
    assert nested(f, modes)(at) == pytest.approx(exact(at, len(modes)), rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_series_of_any_order(n):
    assert dg.derivative(cosine, n)(0.7) == pytest.approx(cosine_derivative(0.7, n), rel=1e-7)


@pytest.mark.parametrize("mode", MODES)
def test_a_series_in_another_pass(mode):
    assert MODES[mode](dg.derivative(cosine, 2))(0.7) == pytest.approx(cosine_derivative(0.7, 3), rel=1e-8)
    assert dg.derivative(MODES[mode](cosine), 2)(0.7) == pytest.approx(cosine_derivative(0.7, 3), rel=1e-8)


@pytest.mark.parametrize("modes", mixes(2))
def test_a_tag_that_hides_behind_a_zero_is_corrected_for(modes):
    """x = p x + w at w = 0: x is 0 however p changes, but its derivative by w is 1 / (1 - p)."""

    def x(p, w):
        return dg.fixed_point(lambda x: p * x + w, 0.0)

    outer, inner = (MODES[m] for m in modes)
    assert outer(lambda p: inner(lambda w: x(p, w))(0.0))(0.5) == pytest.approx(4.0)


def test_the_value_is_the_same_with_derivatives():
    assert dg.value_and_grad(cosine)(0.7)[0] == cosine(0.7)
    assert dg.jvp(cosine, (0.7,), (1.0,))[0] == cosine(0.7)


def test_the_start_has_derivative_zero():
    for mode in MODES.values():
        assert mode(lambda x0: dg.fixed_point(lambda x: ops.cos(x), x0))(1.0) == 0.0


def test_newton_as_the_iteration():
    def root(c):
        def g(x):
            return x * x * x - c

        return dg.fixed_point(lambda x: x - g(x) / dg.derivative(g)(x), 1.5)

    assert root(2.0) == pytest.approx(2.0 ** (1 / 3))
    for modes in itertools.product(MODES, repeat=2):
        assert nested(root, modes)(2.0) == pytest.approx(-2 / 9 * 2.0 ** (-5 / 3))


def test_vectors():
    """x = A x + b: the solution and its gradients against those of the linear system."""
    rng = np.random.default_rng(0)
    a, b, c = rng.uniform(-0.2, 0.2, (4, 4)), rng.standard_normal(4), rng.standard_normal(4)

    def loss(a, b):
        x = dg.fixed_point(lambda x: np.matmul(a, x) + b, np.zeros(4))
        return np.sum(c * x * x)

    def closed(a, b):
        x = np.linalg.solve(np.eye(4) - a, b)
        return np.sum(c * x * x)

    for found, exact in zip(dg.grad(loss, (0, 1))(a, b), dg.grad(closed, (0, 1))(a, b), strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-9)
    found = dg.hessian(lambda b: loss(a, b))(b)
    np.testing.assert_allclose(found, dg.hessian(lambda b: closed(a, b))(b), rtol=1e-9)
    found = dg.jacrev(dg.grad(lambda a: loss(a, b)))(a)
    np.testing.assert_allclose(found, dg.jacfwd(dg.grad(lambda a: closed(a, b)))(a), rtol=1e-8, atol=1e-9)


def test_large_vectors_do_without_the_matrix():
    n = 1500
    p = np.linspace(0.1, 0.9, n)

    def loss(p):
        x = dg.fixed_point(lambda x: ops.cos(p * x) * 0.5, np.zeros(n))
        return np.sum(x * x)

    gradient = dg.grad(loss)(p)
    one = dg.grad(lambda q: dg.fixed_point(lambda x: ops.cos(q * x) * 0.5, 0.0) ** 2.0)
    np.testing.assert_allclose(gradient[[0, 700, 1499]], [one(p[i]) for i in (0, 700, 1499)], rtol=1e-9)
    along = dg.jvp(dg.grad(loss), (p,), (np.ones(n),))[1]
    np.testing.assert_allclose(along[[3, 1400]], [dg.derivative(one)(p[i]) for i in (3, 1400)], rtol=1e-9)


@dataclass
class Pair:
    x: float
    rest: dict


def test_structures():
    def solution(p):
        found = dg.fixed_point(
            lambda s: Pair(0.5 * s.rest["y"] + p, {"y": 0.5 * s.x, "name": "a"}), Pair(0.0, {"y": 0.0, "name": "a"})
        )
        return found.x  # x = x / 4 + p

    assert solution(3.0) == pytest.approx(4.0)
    assert dg.grad(solution)(3.0) == pytest.approx(4 / 3)
    assert dg.derivative(solution)(3.0) == pytest.approx(4 / 3)


def test_a_fixed_point_inside_a_fixed_point():
    def outer(p):
        return dg.fixed_point(lambda x: 0.5 * dg.fixed_point(lambda y: 0.5 * y + 0.5 * x, 0.0) + p, 0.0)

    assert outer(1.0) == pytest.approx(2.0)  # x = x / 2 + p
    assert dg.grad(outer)(1.0) == pytest.approx(2.0)
    assert dg.derivative(outer)(1.0) == pytest.approx(2.0)


def test_the_tape_does_not_grow_with_the_steps():
    lengths = []

    def entries(rate):
        def f(p):
            x = dg.fixed_point(lambda x: rate * x + p, 0.0)
            lengths.append(len(p.tape.entries))
            return x

        return f

    assert dg.grad(entries(0.1))(1.0) == pytest.approx(1 / 0.9)
    assert dg.grad(entries(0.99))(1.0) == pytest.approx(100.0)
    assert lengths[0] == lengths[1]


@pytest.mark.parametrize(
    "f, x0, error, message",
    [
        (lambda x: x + 1.0, 0.0, dg.NotConverged, "no fixed point was reached in 50 steps"),
        (lambda x: x * x * 1e9, 2.0, dg.Error, "infinity"),
        (lambda x: x * math.nan, 2.0, dg.Error, "NaN"),
        (lambda x: (x, x), 2.0, dg.Error, "the result of f"),
        (lambda x: (x, np.sum(x)), np.ones(3), dg.Error, "an array of reals is needed"),
        (lambda x: x, 2, dg.Error, "integer|reals"),
        (lambda x: x, (2.0, math.sin), dg.Error, "function"),
        (3.0, 2.0, dg.Error, "should be a function"),
    ],
)
def test_what_goes_wrong_says_so(f, x0, error, message):
    with pytest.raises(error, match=message):
        dg.fixed_point(f, x0, max_steps=50)


@pytest.mark.parametrize("mode", MODES)
def test_where_two_solutions_meet_there_is_no_derivative(mode):
    with pytest.raises(dg.NotDifferentiable, match="singular"):
        MODES[mode](lambda p: dg.fixed_point(lambda x: x + p, 1.0))(0.0)
