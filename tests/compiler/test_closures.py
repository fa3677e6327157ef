"""Closures, higher-order functions and recursion in compiled functions."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import agrees, agrees_with_gradient, through_graph
from dynagrad.compiler.specialised import graph_of
from dynagrad.ir.control import CALL
from dynagrad.ir.node import order
from dynagrad.ir.types import real


def scaled(x: Any, *, by: float = 2.0) -> Any:
    return x * by


def doubled(f: Any) -> Any:
    @functools.wraps(f)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        return f(*arguments, **named) * 2

    return wrapper


@doubled
def decorated(x: Any) -> Any:
    return x + 1


class Layer:
    def __init__(self, w: Any) -> None:
        self.w = w

    def __call__(self, x: Any) -> Any:
        return np.tanh(self.w @ x)

    def twice(self, x: Any, k: float = 2.0) -> Any:
        return self(self(x)) * k


LAYER = Layer(np.array([[1.0, 2.0], [3.0, 4.0]]))


def test_functions_as_arguments_and_results() -> None:
    def f(x: Any) -> Any:
        g = lambda y: y  # noqa: E731
        for _ in range(3):
            g = (lambda h: lambda y: h(y) * x)(g)
        compose = lambda f, g: lambda z: f(g(z))  # noqa: E731
        return g(1.0) + compose(math.sin, np.cos)(x) + functools.reduce(operator.add, [x, x, 1.0])

    agrees_with_gradient(f, 2.0)


def test_church_numerals() -> None:
    def f(x: Any) -> Any:
        zero = lambda f: lambda y: y  # noqa: E731
        succ = lambda n: lambda f: lambda y: f(n(f)(y))  # noqa: E731
        three = succ(succ(succ(zero)))
        return three(lambda y: y * x)(1.0) + three(three)(lambda y: y + x)(0.0)

    agrees_with_gradient(f, 0.5)


def test_functions_from_outside() -> None:
    def f(x: Any) -> Any:
        y = LAYER(x) + LAYER.twice(x, k=3.0)
        return y.sum() + decorated(x[0]) + scaled(x[1], by=3.0) + functools.partial(scaled, by=5.0)(x[0])

    agrees_with_gradient(f, np.array([0.1, 0.2]))
    agrees_with_gradient(functools.partial(scaled, by=7.0), 2.0)
    agrees(LAYER.twice, np.array([0.1, 0.2]))
    agrees(LAYER, np.array([0.1, 0.2]))


def test_functions_as_arguments_are_known() -> None:
    def f(g: Any, x: Any) -> Any:
        return g(x) * x

    assert through_graph(f, math.sin, 0.5) == pytest.approx(f(math.sin, 0.5))
    assert through_graph(f, lambda y: y * y, 0.5) == 0.125


# -- recursion ---------------------------------------------------------------------------------------------------------


def factorial(n: Any) -> Any:
    return 1.0 if n < 0.5 else n * factorial(n - 1)


def fibonacci(n: Any) -> Any:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def ackermann(m: Any, n: Any) -> Any:
    if m < 0.5:
        return n + 1
    if n < 0.5:
        return ackermann(m - 1, 1.0)
    return ackermann(m - 1, ackermann(m, n - 1))


def even(n: Any) -> Any:
    return 1.0 if n < 0.5 else odd(n - 1)


def odd(n: Any) -> Any:
    return 0.0 if n < 0.5 else even(n - 1)


@pytest.mark.parametrize("f", [factorial, fibonacci, even], ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", [0.3, 3.7, 6.2])
def test_recursion_that_the_run_decides(f: Any, x: float) -> None:
    agrees_with_gradient(f, x)
    assert CALL in {node.operation for node in order(graph_of(f, real).outputs)}


def test_recursion_inside_its_own_arguments() -> None:
    agrees(ackermann, 1.0, 2.5)


def test_recursion_over_what_is_known_is_unfolded() -> None:
    def f(x: Any) -> Any:
        def tree(d: int) -> Any:
            return x if d == 0 else (tree(d - 1), tree(d - 1))

        def total(t: Any) -> Any:
            return sum(map(total, t)) if isinstance(t, tuple) else t

        return total(tree(4))

    assert CALL not in {node.operation for node in order(graph_of(f, real).outputs)}
    agrees_with_gradient(f, 2.0)


def test_recursion_of_functions_that_hold_numbers() -> None:
    def f(x: Any) -> Any:
        def power(y: Any, n: Any) -> Any:
            return x if n < 0.5 else y * power(y, n - 1)

        return power(x, 3.2) + dg.derivative(lambda z: power(z, x))(x)

    agrees_with_gradient(f, 2.3)


def test_recursion_of_functions_that_use_each_other() -> None:
    def f(x: Any) -> Any:
        def up(y: Any) -> Any:
            return y * x if y > 100 else down(y * 3)

        def down(y: Any) -> Any:
            return y + x if y > 90 else up(y - 1)

        return up(x)

    agrees_with_gradient(f, 2.3)


def test_recursion_through_an_argument() -> None:
    def f(x: Any) -> Any:
        fix = lambda f: (lambda g: g(g))(lambda g: f(lambda n: g(g)(n)))  # noqa: E731
        return fix(lambda self: lambda n: 1.0 if n < 1 else n * self(n - 1))(x)

    agrees_with_gradient(f, 3.5)


def test_recursion_inside_of_recursion() -> None:
    """Three functions each of which goes on in the others, before and after, with what is to be done at the ends."""

    def down(x: Any, end: Any) -> Any:
        return end(x) if x < 0.5 else down(x - 1.0, end) + up(x, end)

    def up(x: Any, end: Any) -> Any:
        return end(x) if x > 4.0 else up(x + 1.3, end) * 0.3 + side(x, end)

    def side(x: Any, end: Any) -> Any:
        return end(x) * 2.0 if x > 3.0 else side(x + 0.7, end) + down(x - 4.0, end)

    agrees_with_gradient(lambda x: down(x, lambda y: y * y), 2.2)
    agrees_with_gradient(lambda x: up(x, lambda y: y * y), 2.2)


def test_recursion_that_has_no_result_before_the_one_around_has() -> None:
    def outer(x: Any, depth: Any) -> Any:
        return 0.0 if depth > 3.0 else inner(x, lambda y: y + outer(y - 2.0, depth + 1.0))

    def inner(x: Any, after: Any) -> Any:
        return after(x) if x > 4.0 else inner(x + 1.5, after)

    agrees_with_gradient(lambda x: outer(x, 0.0), 0.3)


@pytest.mark.parametrize("least", [-1.0, 2.0, 9.0])
def test_lists_that_are_functions_and_filtered_as_the_run_decides(least: float) -> None:
    def numbers(n: int, x: Any) -> Any:
        return lambda pair, null: null() if n == 0 else pair(n * x, numbers(n - 1, x))

    def kept(p: Any, of: Any) -> Any:
        return lambda pair, null: of(
            lambda a, rest: pair(a, kept(p, rest)) if p(a) else kept(p, rest)(pair, null), null
        )

    def total(of: Any) -> Any:
        return of(lambda a, rest: a + total(rest), lambda: 0.0)

    agrees_with_gradient(lambda x: total(kept(lambda v: v > least, numbers(4, x))), 1.1)


def test_recursion_with_structures() -> None:
    def f(x: Any) -> Any:
        def euclid(pair: Any, steps: Any) -> Any:
            a, b = pair
            return {"gcd": a, "steps": steps} if b < 1e-9 else euclid((b, a % b), steps + 1)

        found = euclid((x, 1.5), 0)
        return found["gcd"], found["steps"]

    agrees(f, 12.0)


def test_functions_that_call_each_other_hold_what_each_of_them_needs() -> None:
    def f(x: Any) -> Any:
        def g(n: int, k: Any = x) -> Any:
            return k if n == 0 else h(n - 1) * k

        def h(n: int, k: Any = x * 3.0) -> Any:
            return k if n == 0 else g(n - 1) + k

        return g(4) + h(3)

    def only_one_holds(x: Any) -> Any:
        def g(n: int) -> Any:
            return x if n == 0 else h(n - 1) + x

        def h(n: int) -> Any:
            return 1.0 if n == 0 else g(n - 1) * 0.5

        return g(4) * h(3)

    def as_the_run_decides(x: Any) -> Any:
        def g(y: Any, k: Any = x) -> Any:
            return k if y > 10.0 else h(y * 1.5) + k

        def h(y: Any, k: Any = x * 3.0) -> Any:
            return k if y > 10.0 else g(y * 2.0) * 0.5

        return g(x) * h(x)

    for each in (f, only_one_holds, as_the_run_decides):
        agrees_with_gradient(each, 1.3)


def test_functions_made_in_a_comprehension_see_the_last_value_of_its_variables() -> None:
    def late(x: Any) -> Any:
        i = 7.0
        fs = [lambda: i * x for i in range(4)]  # noqa: B023
        return sum(f() for f in fs) + i

    def nested(x: Any) -> Any:
        fs = {(i, j): (lambda y: y * i + j * x) for i in range(3) for j in range(i + 1)}  # noqa: B023
        return sum(f(x) for f in fs.values())

    def early(x: Any) -> Any:
        fs = [lambda i=i: i * x for i in range(4)]
        return sum(f() for f in fs)

    def at_once(x: Any) -> Any:
        return sum([dg.derivative(lambda y: y**3 * i)(x) for i in range(4)]) + sum(  # noqa: B023
            f()
            for f in ((lambda: i * x) for i in range(4))  # noqa: B023
        )

    for each in (late, nested, early, at_once):
        agrees_with_gradient(each, 1.3)
