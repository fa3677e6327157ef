"""Dual numbers and tape cells: the order of tags, worked examples, and no perturbation confusion.

Nested derivatives, in every mix of modes, are compared with sympy's of the same program. Costs a few seconds.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import sympy as sp

import dynagrad as dg
from dynagrad.eager.kinds import fresh, real_part, tag_of
from dynagrad.eager.numbers import Bundle, Tape, TapeCell, bundle
from dynagrad.eager.splitting import split
from dynagrad.ir.ops import scalars as ops

sin, cos, exp = ops.sin, ops.cos, ops.exp
MODES = {"forward": dg.derivative, "reverse": dg.grad}


def close(value: float) -> Any:
    return pytest.approx(value, rel=1e-10, abs=1e-12)


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_tags_grow_and_are_never_used_again() -> None:
    tags = [fresh() for _ in range(100)]
    assert tags == sorted(set(tags))


def test_a_bundle_without_a_tangent_is_its_primal() -> None:
    assert bundle(fresh(), 2.0, None) == 2.0
    assert type(bundle(fresh(), 2.0, 0.0)) is Bundle  # a computed zero is a tangent


def test_what_a_number_holds_has_smaller_tags() -> None:
    old, young = fresh(), fresh()
    inner = bundle(young, 2.0, 3.0)
    both = bundle(old, inner, 5.0)  # the older tag is put inside
    assert tag_of(both) == young and tag_of(both.primal) == old
    assert split(old, both)[1] == 5.0 or real_part(split(old, both)[1]) == 5.0
    assert real_part(split(young, both)[1]) == 3.0


def test_a_tag_is_found_beneath_the_cells_of_a_younger_pass() -> None:
    tag = fresh()
    tape = Tape()
    x = tape.cell(Bundle(tag, 3.0, 1.0))
    y = sin(x * x) * 2.0
    rest, along = split(tag, y)
    assert type(rest) is TapeCell and type(rest.primal) is float
    assert rest.primal == close(2 * math.sin(9.0))
    assert real_part(along) == close(2 * math.cos(9.0) * 6.0)


def test_a_number_says_what_it_is() -> None:
    seen: list[str] = []
    dg.grad(lambda x: (seen.append(repr(x)), x * x)[1])(2.0)
    assert seen == ["<number with derivatives of 2.0>"]


def test_comparisons_look_at_values() -> None:
    def f(x: Any) -> Any:
        assert x > 1.0 and x >= 2 and not x < 2.0 and x == 2.0 and x != 3.0 and bool(x)
        return x if x < 5.0 else -x

    for mode in MODES.values():
        assert mode(f)(2.0) == 1.0


@pytest.mark.parametrize("mode", MODES)
def test_operators_of_python(mode: str) -> None:
    d = MODES[mode]
    cases: list[tuple[Callable[[Any], Any], float]] = [
        (lambda x: 3 + x, 1.0),
        (lambda x: 3 - x, -1.0),
        (lambda x: x - 3, 1.0),
        (lambda x: 3 * x, 3.0),
        (lambda x: 3 / x, -0.75),
        (lambda x: x / 4, 0.25),
        (lambda x: x**3, 12.0),
        (lambda x: 3**x, 9 * math.log(3)),
        (lambda x: x**x, 4 * (math.log(2) + 1)),
        (lambda x: -x, -1.0),
        (lambda x: +x, 1.0),
        (lambda x: abs(-x), 1.0),
        (lambda x: x + True, 1.0),
    ]
    for f, wanted in cases:
        assert d(f)(2.0) == close(wanted)


# -- the examples of 004 -----------------------------------------------------------------------------------------------


def test_derivative_forward_and_gradient_in_reverse() -> None:
    assert dg.derivative(lambda x: x * x * x)(2.0) == 12.0
    assert dg.gradient(lambda p: p[0] * p[0] * p[1])((3.0, 2.0)) == (12.0, 9.0)


def test_the_directional_derivative_by_a_derivative_along_one() -> None:
    def f(p: Any) -> Any:
        return sin(p[0]) * p[1]

    def along(f: Any, point: Any, direction: Any) -> Any:
        return dg.derivative(lambda e: f(dg.add(point, dg.scale(e, direction))))(0.0)

    wanted = math.cos(1.0) * 2.0 * 3.0 + math.sin(1.0) * 5.0
    assert along(f, (1.0, 2.0), (3.0, 5.0)) == close(wanted)
    assert dg.jvp(f, ((1.0, 2.0),), ((3.0, 5.0),))[1] == close(wanted)


@pytest.mark.parametrize("outer", MODES)
@pytest.mark.parametrize("inner", MODES)
def test_perturbations_are_not_confused(outer: str, inner: str) -> None:
    first, second = MODES[outer], MODES[inner]
    assert first(lambda x: x * second(lambda y: x + y)(1.0))(1.0) == 1.0
    assert first(lambda x: x * second(lambda y: x * y * y)(2.0))(3.0) == 24.0
    assert first(lambda x: second(lambda y: x)(1.0) + x)(1.0) == 1.0


@pytest.mark.parametrize("mode", MODES)
def test_a_function_whose_definition_takes_its_own_derivative(mode: str) -> None:
    d = MODES[mode]

    def f(x: Any) -> Any:  # 4^k x^2, with k the number of times that x is doubled until it is over 10
        return x * x if x > 10.0 else x * d(f)(2.0 * x)

    assert f(3.0) == 144.0
    assert d(f)(3.0) == 96.0
    assert d(d(f))(1.5) == 2 * 4.0**3


@pytest.mark.parametrize("first", MODES)
@pytest.mark.parametrize("second", MODES)
def test_hermite_polynomials_by_recursion_through_the_derivative(first: str, second: str) -> None:
    modes = [MODES[first], MODES[second]]

    def hermite(n: int) -> Callable[[Any], Any]:
        if n == 0:
            return lambda x: 1.0
        below = hermite(n - 1)
        return lambda x: 2.0 * x * below(x) - modes[n % 2](below)(x)

    x = sp.Symbol("x")
    for n in range(5):
        assert hermite(n)(0.7) == close(float(sp.hermite(n, x).subs(x, 0.7)))


@pytest.mark.parametrize("depth", [0, 1, 3, 5])
def test_a_depth_of_nesting_that_only_data_tell(depth: int) -> None:
    def nested(f: Any, modes: list[Any]) -> Any:
        for mode in modes:
            f = mode(f)
        return f

    choices = random.Random(depth).choices(list(MODES.values()), k=depth)
    assert nested(lambda x: exp(2.0 * x), choices)(0.3) == close(2.0**depth * math.exp(0.6))


def test_depth_that_depends_on_a_value_being_differentiated() -> None:
    def f(x: Any) -> Any:
        g, n = (lambda y: sin(x * y)), x
        while n > 0.0:
            g, n = dg.derivative(g), n - 1.0
        return g(1.0)

    x = sp.Symbol("x")
    wanted = sp.diff(x**3 * -sp.cos(x), x).subs(x, 2.5)
    assert dg.grad(f)(2.5) == close(float(wanted))
    assert dg.derivative(f)(2.5) == close(float(wanted))


# -- confusion, generated ----------------------------------------------------------------------------------------------


def symbolic(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def at(point: Any) -> Any:
        s = sp.Dummy()
        return sp.diff(f(s), s).subs(s, point)

    return at


def program(seed: int, modes: list[Callable[..., Any]], f: Any, g: Any, x: Any) -> Any:
    """Derivatives in derivatives, with everything outside used inside: a function of x, decided by the seed."""

    def level(depth: int, outside: list[Any]) -> Any:
        choose = random.Random(100 * seed + depth)
        a, b = choose.choice(outside), choose.choice(outside)
        u, v, shape = choose.uniform(0.5, 1.5), choose.uniform(0.2, 0.8), choose.randrange(5)
        if depth == len(modes):
            return f(a * u + v) * b + g(outside[-1] * outside[0] * v)

        def inner(y: Any) -> Any:
            rest = level(depth + 1, [*outside, y])
            return [a * y * rest, y * y * b + rest * f(y), f(a * y) + rest * y, rest * g(y * v), a + rest * y][shape]

        point = [a, a * b * v, u, f(a), b - a * v][choose.randrange(5)]
        return modes[depth](inner)(point) * choose.choice(outside)

    return level(0, [x])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_every_mix_of_modes_agrees_with_sympy(depth: int, seed: int) -> None:
    x = sp.Symbol("x")
    text = program(seed, [symbolic] * (depth - 1), sp.sin, sp.exp, x)
    wanted = float(sp.diff(text, x).subs(x, 0.6))
    for modes in itertools.product(MODES.values(), repeat=depth):
        found = modes[0](lambda y: program(seed, list(modes[1:]), sin, exp, y))(0.6)  # noqa: B023
        assert found == pytest.approx(wanted, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("modes", list(itertools.product(MODES, repeat=4)), ids="-".join)
def test_four_variables_each_used_at_every_depth(modes: tuple[str, ...]) -> None:
    d1, d2, d3, d4 = (MODES[m] for m in modes)
    found = d1(
        lambda a: (
            a
            * d2(lambda b: a * b * b * d3(lambda c: a * b * c * c * d4(lambda d: a * b * c * d * d)(2.0 * a))(b))(a * a)
        )
    )(1.1)
    a, b, c, d = sp.symbols("a b c d")
    inside = sp.diff(a * b * c * d**2, d).subs(d, 2 * a)
    inside = sp.diff(a * b * c**2 * inside, c).subs(c, b)
    inside = sp.diff(a * b**2 * inside, b).subs(b, a**2)
    assert found == close(float(sp.diff(a * inside, a).subs(a, 1.1)))
