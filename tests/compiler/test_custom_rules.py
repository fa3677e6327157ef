"""`dg.custom_rule` in compiled functions: the rule decides, in both modes. Costs a few seconds."""

from __future__ import annotations

import itertools
import math
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import agrees, through_graph

MODES = (dg.derivative, dg.grad)


def product(x: Any, y: Any) -> Any:
    return x * math.sin(y)


def forward(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    return dx * np.sin(y) + x * np.cos(y) * dy


def backward(primals: Any, value: Any, c: Any) -> Any:
    x, y = primals
    return c * value / x, c * x * np.cos(y)


RULES: dict[str, dict[str, Any]] = {
    "jvp": {"jvp": forward},
    "vjp": {"vjp": backward},
    "both": {"jvp": forward, "vjp": backward},
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_every_mix_of_modes(rule: str, depth: int) -> None:
    ruled = dg.custom_rule(product, **RULES[rule])
    for modes in itertools.product(MODES, repeat=depth):
        f: Any = lambda x: ruled(x * x, x)  # noqa: E731
        g: Any = lambda x: (x * x) * np.sin(x)  # noqa: E731
        for mode in modes:
            f, g = mode(f), mode(g)
        assert through_graph(f, 0.7) == pytest.approx(g(0.7), rel=1e-12)
        agrees(f, 0.7)


@pytest.mark.parametrize("rule", RULES)
def test_before_and_after_compiling(rule: str) -> None:
    ruled = dg.custom_rule(product, **RULES[rule])
    wanted = (math.sin(0.3), 2.0 * math.cos(0.3))
    assert dg.compile(ruled)(2.0, 0.3) == product(2.0, 0.3)
    assert dg.grad(dg.compile(ruled), (0, 1))(2.0, 0.3) == pytest.approx(wanted)
    assert dg.compile(dg.grad(ruled, (0, 1)))(2.0, 0.3) == pytest.approx(wanted)
    assert dg.derivative(dg.compile(lambda y: ruled(2.0, y)), 3)(0.3) == pytest.approx(-2.0 * math.cos(0.3))


def test_the_rule_counts_and_not_the_function() -> None:
    clipped = dg.custom_rule(lambda x: x * 1.0, vjp=lambda primals, y, c: min(c, 1.0))
    agrees(dg.grad(lambda x: 10.0 * clipped(x)), 3.0)
    assert through_graph(dg.grad(lambda x: 10.0 * clipped(x)), 3.0) == 1.0
    thrice = dg.custom_rule(lambda x: x * x, jvp=lambda primals, tangents: 3.0 * tangents[0])
    for depth in (1, 2):
        for modes in itertools.product(MODES, repeat=depth):
            f: Any = thrice
            for mode in modes:
                f = mode(f)
            assert through_graph(f, 5.0) == (3.0 if depth == 1 else 0.0)


def test_rules_that_are_made_inside() -> None:
    def f(x: Any, k: Any) -> Any:
        @dg.custom_rule(vjp=lambda primals, y, c: k * c * y)
        def steep(z: Any) -> Any:
            return z + 1.0

        square = dg.custom_rule(lambda a: a * a, jvp=lambda xs, us: 7.0 * xs[0] * us[0])
        return steep(x) * square(x)

    agrees(f, 0.7, 5.0)
    agrees(dg.grad(f), 0.7, 5.0)
    agrees(dg.derivative(dg.grad(lambda x: f(x, 5.0))), 0.7)


def test_a_rule_may_close_over_what_is_differentiated() -> None:
    """The rule has k in it, so its derivative by k is that of the rule; the function has no k."""

    def f(x: Any, k: Any) -> Any:
        return dg.custom_rule(lambda z: z * z, jvp=lambda xs, us: k * xs[0] * us[0])(x)

    agrees(dg.derivative(lambda k: dg.derivative(lambda x: f(x, k))(2.0)), 3.0)
    assert through_graph(dg.grad(lambda k: dg.derivative(lambda x: f(x, k))(2.0)), 3.0) == 2.0
    assert through_graph(dg.grad(f, (0, 1)), 2.0, 3.0) == (6.0, 0.0)  # the value has no k in it
    assert dg.grad(dg.compile(f), (0, 1))(2.0, 3.0) == (6.0, 0.0)
    agrees(lambda x, k: dg.jvp(f, (x, k), (1.0, 1.0)), 2.0, 3.0)


def test_arrays_and_arguments_that_are_no_reals() -> None:
    @dg.custom_rule(
        jvp=lambda primals, tangents: (
            primals[1] * primals[0] ** (primals[1] - 1.0) * tangents[0] * np.exp(primals[2])
            + primals[0] ** float(primals[1]) * np.exp(primals[2]) * tangents[2]
        )
    )
    def powers(x: Any, n: int, y: Any, *, name: str = "") -> Any:
        assert n == 3 and name == "a"
        return np.power(x, n) * np.exp(y)

    x = np.array([1.0, 2.0, 3.0])
    agrees(lambda x: powers(x, 3, 0.5, name="a"), x)
    agrees(dg.grad(lambda x, y: np.sum(powers(x, 3, y, name="a")), (0, 1)), x, 0.3)
    agrees(dg.jacfwd(lambda x, y: powers(x, 3, y, name="a"), (0, 1)), x, 0.3)
    agrees(dg.hessian(lambda x: np.sum(powers(x, 3, 0.3, name="a"))), x)


def test_none_stands_for_a_cotangent_of_zero() -> None:
    first = dg.custom_rule(lambda x, y: x * y, vjp=lambda primals, value, c: [c * primals[1], None])
    agrees(dg.grad(lambda x, y: first(x, y), (0, 1)), 2.0, 3.0)
    agrees(lambda x, y: dg.jvp(lambda x, y: first(x, y), (x, y), (1.0, 1.0))[1], 2.0, 3.0)


def test_inside_of_loops_and_branches() -> None:
    ruled = dg.custom_rule(product, vjp=backward)

    def f(x: Any) -> Any:
        @dg.custom_rule(jvp=lambda primals, tangents: 3.0 * tangents[0] * np.cos(primals[0]))
        def strange(z: Any) -> Any:
            return z * 2.0

        total = x
        for i in range(30):
            total = total + strange(x * i) if x > i * 0.1 else total + ruled(x, total)
        return total

    agrees(f, 1.3)
    for depth in (1, 2):
        for modes in itertools.product(MODES, repeat=depth):
            g: Any = f
            for mode in modes:
                g = mode(g)
            agrees(g, 1.3)


def test_a_rule_with_loops_in_it() -> None:
    """The derivative of the 20th power, added up in a loop."""

    def rule(primals: Any, y: Any, c: Any) -> Any:
        total = 0.0
        for _ in range(20):
            total = total + y / primals[0]
        return (c * total,)

    power = dg.custom_rule(lambda x: x**20, vjp=rule)
    for depth in (1, 2, 3):
        for modes in itertools.product(MODES, repeat=depth):
            f: Any = power
            for mode in modes:
                f = mode(f)
            assert through_graph(f, 1.1) == pytest.approx(math.perm(20, depth) * 1.1 ** (20 - depth), rel=1e-12)


def test_where_nothing_is_differentiated_a_function_may_close_over_numbers() -> None:
    def f(p: Any, x: Any) -> Any:
        return dg.custom_rule(lambda y: p * y, jvp=lambda xs, us: p * us[0])(x)

    agrees(f, 2.0, 3.0)
    agrees(dg.grad(f, 1), 2.0, 3.0)
    agrees(dg.derivative(lambda x: f(2.0, x)), 3.0)
    compiled = dg.compile(f)
    assert dg.grad(compiled, 1)(2.0, 3.0) == 2.0
    assert dg.jvp(lambda x: compiled(2.0, x), (3.0,), (1.0,)) == (6.0, 2.0)
    for number in (0, (0, 1)):
        with pytest.raises(dg.Error, match="closes over a number"):
            dg.grad(compiled, number)(2.0, 3.0)
        with pytest.raises(dg.Error, match="closes over a number"):
            dg.grad(f, number)(2.0, 3.0)


# -- functions that are any code ---------------------------------------------------------------------------------------


def gamma(x: Any) -> Any:
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf


def _slope(primals: Any, y: Any, c: Any) -> Any:
    return c * y * 0.5 * primals[0]


def test_a_builtin_function_that_is_not_known() -> None:
    erf = dg.custom_rule(math.erf, jvp=lambda xs, us: us[0] * 2.0 / np.sqrt(np.pi) * np.exp(-(xs[0] ** 2)))
    for depth in (0, 1, 2, 3):
        for modes in itertools.product(MODES, repeat=depth):
            f: Any = lambda x: erf(x) * x  # noqa: E731
            for mode in modes:
                f = mode(f)
            agrees(f, 0.3)
    assert dg.compile(dg.grad(erf))(0.3) == pytest.approx(2.0 / math.sqrt(math.pi) * math.exp(-0.09))


def test_code_that_cannot_be_compiled_in_loops_and_branches() -> None:
    ruled = dg.custom_rule(gamma, vjp=_slope)

    def f(x: Any) -> Any:
        s = x
        for i in range(40):
            s = s + ruled(x + i * 0.01) * s
            if s > 100.0:
                s = ruled(s / 50.0)
        return s

    agrees(f, 0.7)
    agrees(dg.grad(f), 0.7)
    assert dg.compile(dg.grad(f))(0.7) == pytest.approx(dg.grad(f)(0.7), rel=1e-10)


def test_arrays_and_other_arguments_of_any_code() -> None:
    @dg.custom_rule(jvp=lambda xs, us: np.cos(xs[1] * xs[0]) * xs[0] * us[1])
    def waves(k: Any, x: Any, scale: Any = "one") -> Any:
        with nullcontext():  # which is not compiled
            assert type(k) is int and type(x) is np.ndarray and scale == "one"
            x *= k  # which is its own
            return np.sin(x)

    def f(x: Any) -> Any:
        total = 0.0
        for k in range(1, 30):
            total = total + waves(k, x).sum() / k + waves(2, x, scale="one")[0]
        return total

    x = np.linspace(0.1, 0.5, 3)
    agrees(f, x)
    agrees(dg.grad(f), x)
    agrees(dg.hessian(f), x)
    np.testing.assert_allclose(dg.grad(dg.compile(f))(x), dg.grad(f)(x), rtol=1e-11)


def test_a_rule_that_calls_its_function() -> None:
    """d/dx of sin(x + n pi / 2) is that function of n + 1."""

    def wave(n: int, x: Any) -> Any:
        with nullcontext():  # which is not compiled
            return np.sin(x + n * np.pi / 2.0)

    ruled = dg.custom_rule(wave, jvp=lambda xs, us: us[1] * ruled(xs[0] + 1, xs[1]))
    x = np.linspace(0.1, 0.5, 3)
    agrees(lambda x: ruled(2, x), x)
    agrees(dg.hessian(lambda x: ruled(2, x).sum()), x)


def test_what_any_code_returns_is_looked_at_as_it_runs() -> None:
    def many(x: Any) -> Any:
        with nullcontext():  # which is not compiled
            return np.ones(3)

    wrong = dg.custom_rule(many, vjp=lambda xs, y, c: c)
    for compute in (lambda x: through_graph(wrong, x), dg.compile(wrong)):
        with pytest.raises(dg.Error, match=r"many should return a real in this .* an array of shape \(3,\)"):
            compute(1.0)
    with pytest.raises(dg.LiftError, match=r"many cannot be compiled: `with` .* give jvp= too"):
        through_graph(wrong, np.ones(3))

    def fails(x: Any) -> Any:
        with nullcontext():  # which is not compiled
            return 1.0 / 0.0

    with pytest.raises(ZeroDivisionError):
        dg.compile(dg.custom_rule(fails, vjp=lambda xs, y, c: c))(1.0)


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def two(x: Any, y: Any) -> Any:
    return x * y


@pytest.mark.parametrize(
    "rule, of, message",
    [
        ({"vjp": lambda p, y, c: c}, two, "should return a tuple with 2 cotangents, .* and returned 1"),
        ({"vjp": lambda p, y, c: (np.ones(2), c)}, two, "the vjp of two should return a real for argument 1"),
        ({"vjp": lambda p, y, c: ("a", c)}, two, "should return a real for argument 1, and returned 'a'"),
        ({"jvp": lambda p, t: np.ones(3)}, two, "the jvp of two should return a real for the result"),
    ],
)
def test_what_a_rule_returns_must_fit(rule: dict[str, Any], of: Any, message: str) -> None:
    wrong = dg.custom_rule(of, **rule)

    def f(x: Any) -> Any:
        return wrong(x, x)

    assert through_graph(f, 2.0) == 4.0  # the rule is looked at where a derivative passes through
    for derivative in (lambda: through_graph(dg.grad(f), 2.0), lambda: dg.derivative(dg.compile(f))(2.0)):
        with pytest.raises(dg.LiftError, match=message) as caught:
            derivative()
        assert "return wrong(x, x)" in str(caught.value)


@pytest.mark.parametrize(
    "f, message",
    [
        (lambda x: dg.custom_rule(math.sin)(x), "give jvp="),
        (lambda x: dg.custom_rule(math.sin, jvp=3.0)(x), "the jvp must be a function"),
        (lambda x: dg.custom_rule(sum, jvp=lambda p, t: 0.0)([x, x]), "argument 1 is a list of 2"),
        (lambda x: dg.custom_rule(lambda y: (y, y), jvp=lambda p, t: t[0])(x), "one real or one array"),
        (
            dg.grad(lambda x: dg.custom_rule(lambda y: x * y, jvp=lambda p, t: t[0])(x)),
            "closes over a number that is differentiated",
        ),
    ],
)
def test_what_is_wrong_is_shown(f: Any, message: str) -> None:
    with pytest.raises(dg.LiftError, match=message) as caught:
        through_graph(f, 1.0)
    assert "dg.custom_rule" in str(caught.value)
