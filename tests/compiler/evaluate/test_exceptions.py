"""`assert` and `raise` in compiled functions are a RunError at run time; `try` is accepted around what cannot raise.

Costs some 20 small compiled programs, 15 s.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import through_graph


def _positive(x: Any) -> Any:
    assert x > 0, f'x is {x}, "bad" by 100%'
    return x * x


def _without_message(x: Any) -> Any:
    assert x > 0
    return x * x


def _raises(x: Any) -> Any:
    if x < 0:
        raise ValueError(f"negative: {x}")
    return np.sqrt(x) * x**1.5


def _checked(x: Any) -> None:
    assert x < 5.0, "too large"


def _unused(x: Any) -> Any:
    _checked(-4 * x)
    return x * x


def _in_while(x: Any) -> Any:
    i, y = 0, abs(x) + 1.0
    while y < 100.0:
        assert x > 0 or i < 3, f"round {i} of {y > 1.0}"
        y = y * 2.0
        i += 1
    return x * x


def _in_for(x: Any) -> Any:
    for v in x * np.ones(100):
        assert v > 0, "of the array"
    return x * x


def _in_unrolled(x: Any) -> Any:
    for i in range(3):
        assert x > -i, i
    return x * x


def _recursive(x: Any, n: Any = 0.0) -> Any:
    assert x > 0 or n < 3.0, "deep"
    return x * x if n > 4.0 else _recursive(x, n + 1.0)


def _before_a_loop(x: Any) -> Any:
    assert x > 0, "this would never end"
    y = x
    while y != 0.0:
        y = y - x
    return x * x + y


def _between_loops(x: Any) -> Any:
    y = 3.0
    while y != 0.0:
        y = y - 1.0
    assert x > 0, "in between"
    while y != 3.0 * x:
        y = y + x
    assert y > 0
    return x * x


def _in_a_loop_before_one(x: Any) -> Any:
    total = 0.0
    for i in range(100):
        assert x > 0 or i < 50, f"{i}"
        y = abs(x) if i < 50 else x
        while y > 0.5:
            y = y * 0.5
        total = total + y * 0.0
    return x * x + total


def _of_structures(x: Any) -> Any:
    pair = {"a": (x, x > 0), "b": [np.ones(3) * x, np.arange(3) > 1]}
    if not pair["a"][1]:
        raise KeyError
    return pair["b"][0].sum() / 3.0 * x


def _with_a_loop_after(x: Any) -> Any:
    if x < 0:
        raise RuntimeError("below")
    if x > 10:
        raise RuntimeError("above")
    y = 0.0
    for i in range(40):
        if i > 30:
            y = y + x / 9.0
    return y * x


CHECKED: dict[Callable[..., Any], str] = {
    _positive: r'AssertionError: x is -1\.25, "bad" by 100% \(test_exceptions.py, line \d+\)',
    _without_message: r"AssertionError: x > 0 does not hold \(test_exceptions.py, line \d+\)",
    _raises: r"ValueError: negative: -1\.25",
    _unused: "AssertionError: too large",
    _in_while: "AssertionError: round 3 of 1",
    _in_for: "AssertionError: of the array",
    _in_unrolled: r"AssertionError: 0",
    _recursive: "AssertionError: deep",
    _before_a_loop: "this would never end",
    _between_loops: "in between",
    _in_a_loop_before_one: "AssertionError: 50",
    _of_structures: "KeyError",
    _with_a_loop_after: "RuntimeError: below",
}
X, BAD = 1.5, -1.25


@pytest.mark.parametrize("f", CHECKED)
def test_what_does_not_hold_is_raised(f: Any) -> None:
    assert through_graph(f, X) == pytest.approx(X * X)
    compiled = dg.compile(f)
    assert compiled(X) == pytest.approx(X * X)
    for run in (lambda: through_graph(f, BAD), lambda: compiled(BAD)):
        with pytest.raises(dg.RunError, match=CHECKED[f]):
            run()
    assert compiled(X) == pytest.approx(X * X)


@pytest.mark.parametrize("f", CHECKED)
def test_in_derivatives_too(f: Any) -> None:
    value, slope = dg.value_and_grad(f), dg.grad(f)
    for g, wanted in ((slope, 2 * X), (dg.derivative(f), 2 * X), (dg.grad(slope), 2.0), (lambda x: value(x)[1], 2 * X)):
        assert through_graph(g, X) == pytest.approx(wanted)
        with pytest.raises(dg.RunError, match=CHECKED[f]):
            through_graph(g, BAD)


def test_in_native_derivatives() -> None:
    functions = tuple(CHECKED)
    slopes = dg.compile(lambda x, fs: [dg.grad(f)(x) for f in fs])(X, functions)
    assert slopes == pytest.approx([2 * X] * len(functions))
    slope = dg.compile(dg.grad(_unused))
    with pytest.raises(dg.RunError, match="too large"):
        slope(BAD)


def test_derivatives_of_a_compiled_function() -> None:
    f = dg.compile(_positive)
    assert dg.grad(f)(X) == pytest.approx(2 * X)
    for verb in (lambda: dg.grad(f)(BAD), lambda: dg.jvp(f, (BAD,), (1.0,)), lambda: dg.hessian(f)(BAD)):
        with pytest.raises(dg.RunError, match="AssertionError: x is -1"):
            verb()


def test_a_function_that_returns_no_number() -> None:
    for f in (lambda x: _checked(x), lambda x: (_checked(x), 3)[1], lambda x: [_checked(x)]):
        compiled = dg.compile(f)
        assert compiled(1.0) == f(1.0)
        with pytest.raises(dg.RunError, match="too large"):
            compiled(6.0)


def test_all_kinds_of_results() -> None:
    def f(x: Any, a: Any) -> Any:
        assert x > 0
        return x, -0.0 * x, x > 1, int(x), a, a > 0, np.argsort(a), "text", math.inf * x

    a = np.array([[1.5, -0.0, math.nan]])
    found, wanted = dg.compile(f)(X, a), f(X, a)
    for y, z in zip(found, wanted, strict=True):
        assert type(y) is type(z) and repr(y) == repr(z)  # signs of zeros are kept
    with pytest.raises(dg.RunError):
        dg.compile(f)(BAD, a)


def test_what_is_certain_is_an_error_as_it_is_compiled() -> None:
    def f(x: Any, n: int) -> Any:
        assert n < 3, f"n is {n}"
        return x

    assert through_graph(f, 1.0, 2) == 1.0
    with pytest.raises(dg.LiftError, match="the function raises AssertionError: n is 3"):
        through_graph(f, 1.0, 3)


def test_long_messages_and_strange_ones() -> None:
    def long(x: Any) -> Any:
        assert x > 0, "ä" * 1000 + "%s"
        return x

    def strange(x: Any) -> Any:
        assert x > 0, '"\\ ??/ %d %n {} \n\t\0 é*/ //'
        return x

    with pytest.raises(dg.RunError, match=r"AssertionError: ä{50,}[.][.][.]"):
        dg.compile(long)(-1.0)
    with pytest.raises(dg.RunError) as caught:
        dg.compile(strange)(-1.0)
    assert '"\\ ??/ %d %n {} \n\t' in str(caught.value)


def test_inside_of_a_fixed_point_it_is_refused() -> None:
    def f(x: Any) -> Any:
        def step(y: Any) -> Any:
            assert y < 10.0
            return 0.5 * y + x

        return dg.fixed_point(step, x)

    with pytest.raises(dg.LiftError, match="may raise an exception as it runs"):
        through_graph(f, 1.0)


# -- whole numbers of 64 bits ------------------------------------------------------------------------------------------


def test_numbers_that_64_bits_do_not_hold() -> None:
    conversions = (round, int, math.floor, math.ceil, math.trunc)
    good = [3.7, -3.2, 9.2e18, -9.2e18, 0.5, -0.5]
    f = dg.compile(lambda x, fs: [f(x) for f in fs])
    for x in good:
        assert f(x, conversions) == [g(x) for g in conversions]
    for g in conversions:
        for x in (1e19, -1e19, 2.0**63, math.nan, math.inf):
            with pytest.raises(dg.RunError, match=f"{g.__name__}.. of .*64 bits"):
                through_graph(g, x)
    with pytest.raises(dg.RunError, match=r"round.. of 1e\+19: a whole number of a compiled function has 64 bits"):
        f(1e19, conversions)


def test_powers_that_64_bits_do_not_hold() -> None:
    f = dg.compile(lambda x, y: int(x) ** int(y))
    good = [(2, 62), (-2, 63), (3, 39), (0, 0), (0, 100), (-1, 101), (1, 10**15), (7, 1), (-3, 5), (2**31, 2)]
    assert [f(float(a), float(n)) for a, n in good] == [a**n for a, n in good]
    assert [through_graph(lambda x, y: int(x) ** int(y), float(a), float(n)) for a, n in good] == [
        a**n for a, n in good
    ]
    for a, n in [(2, 63), (3, 40), (-2, 64), (2**32, 2), (10, 10**15), (-(2**31), 3)]:
        for run in (f, lambda x, y: through_graph(lambda x, y: int(x) ** int(y), x, y)):
            with pytest.raises(dg.RunError, match=rf"{a} \*\* {n}: a whole number of a compiled function has 64 bits"):
                run(float(a), float(n))
    for power in (lambda x: 2 ** int(x), lambda x: np.power(2, int(x)), lambda x: 2 ** (np.arange(3) * int(x))):
        assert np.array_equal(through_graph(power, 3.0), power(3.0)) and through_graph(power, 3.0) is not True
        with pytest.raises(dg.RunError, match="to a negative power is no whole number: convert it with float"):
            through_graph(power, -3.0)
    for power in (lambda x: 2 ** (x > 1.0), lambda x: (x > 1.0) ** 2, lambda x: True ** int(x)):
        assert type(through_graph(power, 3.0)) is int and through_graph(power, 3.0) == power(3.0)
    power = lambda x: np.power(3, np.arange(39, 42) * int(x))  # noqa: E731  -- not in the assertion: older pytest moves it
    assert through_graph(power, 1.0).tolist() == (3 ** np.arange(39, 42)).tolist()
    assert through_graph(dg.grad(lambda x: x * 2 ** int(x) + 2.0 ** int(x)), 3.5) == 8.0


# -- try ---------------------------------------------------------------------------------------------------------------


class Own(Exception):
    pass


def _known(x: Any) -> Any:
    try:
        y = {"a": x}["a"]
    except KeyError:
        y = open("no such file")  # noqa: SIM115
    else:
        y = y + 1.0
    finally:
        z = 2.0
    return y * z


def _of_types(x: Any) -> Any:
    try:
        return x * 2.0
    except (TypeError, AttributeError) as problem:
        raise Own("no") from problem


def _in_a_loop(x: Any) -> Any:
    total = 0.0
    for i in range(100):
        try:
            if i > 90:
                break
            total += x
        except Own:
            total = 0.0
    return total


def _nested(x: Any) -> Any:
    try:
        try:
            y = np.log(np.ones(2) * x).sum()
        except ImportError:
            y = 0.0
    except (Own, StopIteration):
        y = 1.0
    return y


def _only_finally(x: Any) -> Any:
    try:
        y = 1.0 / x
    finally:
        x = x + 1.0
    return y + x


@pytest.mark.parametrize("f", [_known, _of_types, _in_a_loop, _nested, _only_finally])
def test_try_around_what_cannot_raise(f: Any) -> None:
    assert through_graph(f, 1.5) == pytest.approx(f(1.5))


def _counted(x: Any) -> Any:
    return x if x < 2.0 else _counted(x * 0.5)


def _tries(x: Any, inside: Any, caught: Any) -> Any:
    try:
        return inside(x)
    except caught:
        return 0.0


@pytest.mark.parametrize(
    ("inside", "caught", "name"),
    [
        (lambda x: 1.0 / x, ZeroDivisionError, "ZeroDivisionError"),
        (lambda x: x % x, ArithmeticError, "ZeroDivisionError"),
        (lambda x: 1.0 / x, Exception, "ZeroDivisionError"),
        (lambda x: x**-2.5, (OverflowError, KeyError), "OverflowError"),
        (math.sqrt, ValueError, "ValueError"),
        (math.log, ValueError, "ValueError"),
        (math.gamma, Exception, "ValueError"),
        (int, OverflowError, "OverflowError"),
        (lambda x: np.ones(3)[int(x)], LookupError, "IndexError"),
        (lambda x: [1.0, x][int(x > 0)], IndexError, "IndexError"),
        (lambda x: np.linalg.inv(np.eye(2) * x).sum(), np.linalg.LinAlgError, "LinAlgError"),
        (_positive, AssertionError, "AssertionError"),
        (_raises, (KeyError, ValueError), "ValueError"),
        (_counted, RecursionError, "RecursionError"),
        (dg.grad(_positive), dg.NotDifferentiable, "NotDifferentiable"),
        (lambda x: dg.fixed_point(lambda y: 0.5 * y + x, x), dg.Error, "NotConverged"),
        (lambda x: (np.ones(3) * x)[np.ones(3) * x > 0].max(), ValueError, "ValueError"),
    ],
)
def test_try_around_what_may_raise(inside: Any, caught: Any, name: str) -> None:
    with pytest.raises(dg.LiftError, match=f"this may raise {name} as the function runs, and the `try` in line"):
        through_graph(_tries, 1.0, inside, caught)
    assert through_graph(_tries, 1.0, inside, Own) == pytest.approx(inside(1.0))


def test_what_a_try_may_not_have() -> None:
    def leaves(x: Any) -> Any:
        try:
            return x
        finally:
            return 2.0  # noqa: B012, SIM107

    def catches(x: Any) -> Any:
        try:
            return x
        except 3:  # type: ignore[misc]  # noqa: B030
            return x

    with pytest.raises(dg.LiftError, match="a return, break or continue in a `finally`"):
        through_graph(leaves, 1.0)
    with pytest.raises(dg.LiftError, match="`except` takes classes"):
        through_graph(catches, 1.0)
