"""Custom rules: one rule serves both modes, and rules nest."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.ir.ops import scalars as ops

MODES = {"forward": dg.derivative, "reverse": dg.grad}


def opaque(x, y):
    """x sin(y), which numbers cannot go through."""
    assert type(x) is float and type(y) is float
    return x * math.sin(y)


def forward(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return dx * ops.sin(y) + x * ops.cos(y) * dy


def backward(primals, value, c):
    x, y = primals
    return c * ops.sin(y), c * x * ops.cos(y)


RULES = {"jvp": {"jvp": forward}, "vjp": {"vjp": backward}, "both": {"jvp": forward, "vjp": backward}}


@pytest.fixture(params=RULES)
def f(request):
    return dg.custom_rule(opaque, **RULES[request.param])


def test_the_value_is_that_of_the_function(f):
    assert f(2.0, 0.3) == opaque(2.0, 0.3)
    assert f.__name__ == "opaque"


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_every_mix_of_modes(f, depth):
    def plain(x):
        return (x * x) * ops.sin(x)

    def ruled(x):
        return f(x * x, x)

    for modes in itertools.product(MODES.values(), repeat=depth):
        a, b = ruled, plain
        for mode in modes:
            a, b = mode(a), mode(b)
        assert a(0.7) == pytest.approx(b(0.7), rel=1e-12)


def test_high_orders(f):
    assert dg.derivative(lambda x: f(2.0, x), 5)(0.7) == pytest.approx(2.0 * math.cos(0.7))


def test_one_argument_may_be_a_constant(f):
    assert dg.grad(f, (0, 1))(2.0, 0.3) == pytest.approx((math.sin(0.3), 2.0 * math.cos(0.3)))
    assert dg.grad(lambda y: f(2.0, y))(0.3) == pytest.approx(2.0 * math.cos(0.3))


def test_a_decorator():
    @dg.custom_rule(vjp=lambda primals, y, c: 3.0 * c)
    def thrice(x):
        return 3.0 * float(x)

    assert dg.grad(thrice)(1.0) == 3.0
    assert dg.derivative(thrice)(1.0) == 3.0
    assert dg.derivative(thrice, 2)(1.0) == 0.0


def test_arrays_and_arguments_that_are_no_reals():
    @dg.custom_rule(
        jvp=lambda primals, tangents: (
            primals[1] * primals[0] ** (primals[1] - 1.0) * tangents[0] * ops.exp(primals[2])
            + primals[0] ** float(primals[1]) * ops.exp(primals[2]) * tangents[2]
        )
    )
    def powers(x, n, y):
        assert type(n) is int
        return np.power(x, n) * math.exp(y)

    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(dg.grad(lambda x: np.sum(powers(x, 3, 0.0)))(x), 3 * x**2)
    dg.check_derivatives(lambda x, y: powers(x, 3, y), x, 0.3)


def test_a_wrong_rule_is_the_rule_that_counts():
    clipped = dg.custom_rule(lambda x: x, vjp=lambda primals, y, c: min(c, 1.0))
    assert dg.grad(lambda x: 10.0 * clipped(x))(3.0) == 1.0


def test_what_goes_wrong_says_so():
    with pytest.raises(dg.Error, match="give jvp="):
        dg.custom_rule(math.sin)
    with pytest.raises(dg.Error, match="should be a function"):
        dg.custom_rule(math.sin, jvp=3.0)
    with pytest.raises(dg.Error, match="tuple with 2 cotangents"):
        dg.grad(dg.custom_rule(opaque, vjp=lambda p, y, c: c))(1.0, 2.0)
    with pytest.raises(dg.Error, match="should return a real for argument 1"):
        dg.grad(dg.custom_rule(opaque, vjp=lambda p, y, c: (np.ones(2), c)))(1.0, 2.0)
    with pytest.raises(dg.Error, match="should return an array of shape"):
        dg.jvp(dg.custom_rule(np.sin, jvp=lambda p, t: 1.0), (np.ones(3),), (np.ones(3),))
    with pytest.raises(dg.Error, match="argument 1 is"):
        dg.grad(lambda x: dg.custom_rule(sum, jvp=lambda p, t: 0.0)([x, x]))(1.0)
    with pytest.raises(dg.Error, match="closes over a number"):
        dg.grad(lambda x: dg.custom_rule(lambda y: x * y, jvp=lambda p, t: t[0])(x))(1.0)
    with pytest.raises(dg.Error, match="one real or one array"):
        dg.grad(dg.custom_rule(lambda x: (x, x), jvp=lambda p, t: t[0]))(1.0)
