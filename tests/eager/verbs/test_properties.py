"""Properties of derivatives that hold for all programs: random straight-line code and random control flow.

Both modes agree with each other and with differences in 50 digits, and a gradient costs at most a constant times its
function (the cheap gradient principle). Costs are counted in operations: each leaves a cell on the tape around it.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynagrad as dg
from dynagrad.ir.ops.scalars import TABLE

mp = mpmath.mp.clone()
mp.dps = 50

MEANING: dict[str, Callable[..., Any]] = {  # smooth, and of values between 0.2 and 1 a value near these
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "negative": lambda a: -a,
    "power": lambda a, b: a**b,
    "exp": mp.exp,
    "expm1": mp.expm1,
    "log": mp.log,
    "log1p": mp.log1p,
    "sqrt": mp.sqrt,
    "sin": mp.sin,
    "cos": mp.cos,
    "tanh": mp.tanh,
    "sigmoid": lambda a: 1 / (1 + mp.exp(-a)),
    "log_add": lambda a, b: mp.log(mp.exp(a) + mp.exp(b)),
}
NAMES = sorted(MEANING)
assert set(NAMES) <= set(TABLE)

Step = tuple[int, int, int]  # an operation, and which of the last values it is applied to
STEPS = st.lists(st.tuples(st.integers(0, len(NAMES) - 1), st.integers(0, 3), st.integers(0, 3)), max_size=12)
POINT = st.tuples(*[st.integers(-40, 40).map(lambda n: n / 16.0)] * 2)


def tame(apply: Callable[..., Any], x: Any) -> Any:
    """Between 0.2 and 1, where all operations are smooth."""
    return apply("add", apply("multiply", apply("sin", x), 0.4), 0.6)


def straight(apply: Callable[..., Any], steps: list[Step], x: Any, y: Any) -> Any:
    values = [x, y]
    for name, i, j in steps:
        chosen = [values[-1 - (k % len(values))] for k in (i, j)]
        taken = chosen[: len(TABLE[NAMES[name]].arguments)]
        values.append(apply(NAMES[name], *(tame(apply, v) for v in taken)))
    total = values[-1]
    for v in values[-4:-1]:
        total = apply("add", total, v)
    return total


def branching(apply: Callable[..., Any], steps: list[Step], x: Any, y: Any) -> Any:
    """The same with choices and loops that depend on values."""
    for turn, (name, i, j) in enumerate(steps):
        if x > y + 0.0123:
            x = straight(apply, [(name, i, j)], x, y)
        elif y > 0.4567:
            x, y = apply("multiply", y, 0.7), straight(apply, [(name, j, i)], y, x)
        else:
            y = apply("add", y, 0.3)
        count = 0
        while x * x + y * y > 1.2345 and count < turn:
            x, y, count = apply("multiply", x, 0.8), apply("multiply", y, 0.9), count + 1
    return apply("add", x, apply("multiply", y, y))


def with_ours(name: str, *arguments: Any) -> Any:
    return TABLE[name](*arguments)


def with_digits(name: str, *arguments: Any) -> Any:
    return MEANING[name](*map(mp.mpf, arguments))


def differences(f: Callable[..., Any], point: tuple[float, float]) -> list[float]:
    h, (x, y) = mp.mpf(10) ** -18, map(mp.mpf, point)
    return [float((f(x + h, y) - f(x - h, y)) / (2 * h)), float((f(x, y + h) - f(x, y - h)) / (2 * h))]


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, point=POINT, program=st.sampled_from([straight, branching]))
def test_reverse_equals_forward_equals_differences(program: Any, steps: list[Step], point: tuple[float, float]) -> None:
    def f(x: Any, y: Any) -> Any:
        return program(with_ours, steps, x, y)

    wanted = differences(lambda x, y: program(with_digits, steps, x, y), point)
    value, reverse = dg.value_and_grad(f, (0, 1))(*point)
    forward = [dg.jvp(f, point, direction) for direction in ((1.0, 0.0), (0.0, 1.0))]
    assert list(reverse) == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    assert [d for _, d in forward] == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    assert value == forward[0][0] == f(*point)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS, point=POINT, program=st.sampled_from([straight, branching]))
def test_second_derivatives_agree_in_every_mix_of_modes(program: Any, steps: list[Step], point: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        return program(with_ours, steps[:8], x, y)

    def by(verb: Any, g: Any, place: int) -> Any:
        if verb is dg.grad:
            return dg.grad(g, place)
        return lambda x, y: dg.derivative(lambda z: g(z, y) if place == 0 else g(x, z))((x, y)[place])

    for first, second in itertools.product((0, 1), repeat=2):
        wanted = by(dg.derivative, by(dg.derivative, f, first), second)(*point)
        for inner, outer in itertools.product((dg.grad, dg.derivative), repeat=2):
            found = by(outer, by(inner, f, first), second)(*point)
            assert found == pytest.approx(wanted, rel=1e-8, abs=1e-8)
            assert by(outer, by(inner, f, second), first)(*point) == pytest.approx(wanted, rel=1e-8, abs=1e-8)


@settings(max_examples=30, deadline=None)
@given(steps=STEPS, point=POINT, weights=POINT)
def test_the_transpose_of_the_derivative_is_the_pullback(steps: list[Step], point: Any, weights: Any) -> None:
    def f(p: Any) -> Any:
        return straight(with_ours, steps, *p), branching(with_ours, steps, *p)

    _, along = dg.jvp(f, (point,), (weights,))
    _, pullback = dg.vjp(f, point)
    (back,) = pullback((0.3, -1.7))
    left = 0.3 * along[0] - 1.7 * along[1]
    assert left == pytest.approx(back[0] * weights[0] + back[1] * weights[1], rel=1e-8, abs=1e-8)


def operations(f: Callable[[Any], Any], point: Any) -> int:
    """How many operations there are in a function, counted by the pass around it."""
    seen: list[Any] = []
    dg.vjp(lambda x: (seen.append(x[0]), f(x))[1], point)
    return len(seen[0].tape.entries)


@pytest.mark.parametrize("program", [straight, branching])
def test_a_gradient_costs_a_constant_times_its_function(program: Any) -> None:
    choose = random.Random(0)
    for length, count in ((3, 4), (10, 4), (40, 4), (160, 1)):
        for _ in range(count):
            steps = [(choose.randrange(len(NAMES)), choose.randrange(4), choose.randrange(4)) for _ in range(length)]

            def f(p: Any, steps: list[Step] = steps) -> Any:
                return program(with_ours, steps, *p)

            once = operations(f, (0.7, 0.4))
            assert operations(dg.grad(f), (0.7, 0.4)) <= 3 * once + 20
            assert operations(lambda p: dg.jvp(f, (p,), ((1.0, 2.0),)), (0.7, 0.4)) <= 3 * once + 20
            assert operations(lambda p: dg.hvp(f, (p,), ((1.0, 2.0),)), (0.7, 0.4)) <= 9 * once + 40
