"""Python's statements in compiled functions, against Python. Costs a few seconds."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import agrees, agrees_with_gradient, same, through_graph

POINTS = [0.3, 1.5, 2.7, 5.0, 12.0, -3.0]


@pytest.mark.parametrize("x", POINTS)
def test_choices_with_and_without_an_early_return(x: float) -> None:
    def f(x: Any) -> Any:
        if x > 4:
            return x * 2
        if x < 0:
            x = -x
            if x > 2:
                return x + 100
            y = x
        elif x < 1:
            y = 3.0 * x
        else:
            y = 1.0
        return x + y

    agrees_with_gradient(f, x)


@pytest.mark.parametrize("x", POINTS)
def test_for_with_break_and_continue(x: float) -> None:
    def f(x: Any) -> Any:
        for i in range(30):
            if i == 3:
                continue
            x += i * 0.5
            if x > 20:
                break
        return x + i

    agrees_with_gradient(f, x)


@pytest.mark.parametrize("x", POINTS)
def test_return_from_inside_of_loops(x: float) -> None:
    def f(x: Any) -> Any:
        for i in range(30):
            for j in range(30):
                if i * j > x * 20:
                    return x * i + j
        return -1.0

    agrees(f, x)


@pytest.mark.parametrize("x", POINTS)
def test_while_true_with_two_ways_out(x: float) -> None:
    def f(x: Any) -> Any:
        n = 0
        while True:
            x = abs(x) * 1.5
            n += 1
            if n > 30:
                return -1.0
            if x > 10:
                if n > 4:
                    return x
                break
        return x + n

    agrees(f, x)


@pytest.mark.parametrize("x", POINTS)
def test_while_true_that_only_a_return_leaves(x: float) -> None:
    def simple(x: Any) -> Any:
        while True:
            x = 1.5 * abs(x)
            if x > 10.0:
                return x

    def with_loops_inside(x: Any) -> Any:
        n = 0
        while 1:
            n += 1
            for i in range(20):
                if n * i > 30:
                    return x * n + i
                if i == 5:
                    continue
                x = x * 1.1
            if n > 100:
                return -x

    def in_a_branch(x: Any) -> Any:
        def inner(y: Any) -> Any:
            while True:
                y = y + 1.0
                if y > 5.25:
                    return y, x

        a, b = inner(x)
        if b > 2.0:
            while True:
                a *= 2
                if a > 40.0:
                    return a
                if a > 30.0:
                    return -a
        return a * b

    def known_number_of_rounds(x: Any) -> Any:
        n = 0
        while True:
            n, x = n + 1, x * 1.1
            if n == 5:
                return x

    for f in (simple, with_loops_inside, in_a_branch, known_number_of_rounds):
        agrees_with_gradient(f, x)


@pytest.mark.parametrize("x", POINTS)
def test_else_of_a_loop_with_break(x: float) -> None:
    def searching(x: Any) -> Any:
        for i in range(30):
            if abs(x) * i > 5.1:
                y = 2 * x
                break
            x = x * 1.01
        else:
            y = x + 100
        return x * y

    def nested(x: Any) -> Any:
        for _ in range(20):
            n = 0
            while n < 20:
                n += 1
                if n * x > 7.01:
                    break
                if n * x > 6.9:
                    return -x
            else:
                if x < 0:
                    return 3 * x
                x = x + 0.01
                continue
            x = x + n * 0.1
            if x > 8.0:
                break
        else:
            return x * 5
        return x

    for f in (searching, nested):
        agrees_with_gradient(f, x)


def test_else_of_a_loop_without_break() -> None:
    def f(x: Any) -> Any:
        while x < 10:
            x = x * 2
        else:
            x = x + 1
        for _ in range(20):
            x = x * 0.9
        else:
            x = x + 1
        return x

    agrees_with_gradient(f, 1.5)


def test_swapping_unpacking_stars_and_chains_of_assignments() -> None:
    def f(x: Any) -> Any:
        a, *b, c = x, x + 1, x + 2, x + 3
        (p, q), [r] = (a, c), b[:1]
        for _ in range(20):
            p, q = q * 0.9, p
        u = v = p * q
        w: float = u + v
        return w + r

    agrees_with_gradient(f, 1.5)


def test_assignment_expressions() -> None:
    def f(x: Any) -> Any:
        if (y := x * 2) > 5:
            return y
        return y + (z := x) + z

    agrees(f, 1.0)
    agrees(f, 5.0)


def test_assignment_expressions_in_conditions_of_loops_and_in_lambdas() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        while (y := x * x) < 50.0:
            x = x * 1.3
            if y > 20.0:
                continue
            total += y
        square = lambda v: (w := v + 1.0) * w  # noqa: E731
        return total + y + square(x) + [z := x, z * 2][1]

    for x in (1.03, 7.0, 20.0):
        agrees_with_gradient(f, x)


def test_conditions_of_all_kinds() -> None:
    def f(x: Any) -> Any:
        a = 0 < x < 50 or x == 100
        b = not (x > 3) and x != 2.0
        c = x if x else 7.0
        d = 1.0 if a and not b else 2.0
        return a, b, c, d, x in (2.0, 3.0), x is None, bool(x)

    for x in (*POINTS, 0.0, 100.0):
        agrees(f, x)


@pytest.mark.parametrize("n", [0.0, 1.0, 2.0, 3.0, 6.0])
def test_conditions_of_which_only_the_truth_counts_need_not_be_of_one_kind(n: float) -> None:
    def f(x: Any, n: Any) -> Any:
        t, n = 0.0, int(n)
        if x > 0 and n % 2:
            t += x
        if not (x > 0 and n % 3):
            t += 2 * x
        if x or n:
            t += x * x
        while n and x < 100:
            x = x * 1.5
            n -= 1
        t += 1.0 if n or (x > 3 and len([x, n])) else 2.0
        return t * x + len([y for y in (0, 1, 2) if len([x]) and y])

    for x in POINTS:
        agrees_with_gradient(f, x, n)


@pytest.mark.parametrize("x", [0.51, 2.2, 3.4, 7.2])
def test_settings_of_numerical_errors_mean_nothing(x: float) -> None:
    def f(x: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            y = np.log(x)
            if x > 3:
                return y * 2
        for i in range(20):
            with np.errstate(all="ignore"):
                if i > 4 * x:
                    break
                y += x
        return y

    agrees_with_gradient(f, x)


def test_settings_that_raise_are_refused() -> None:
    def f(x: Any) -> Any:
        with np.errstate(all="raise"):
            return np.log(x)

    with pytest.raises(dg.LiftError, match="errstate that raises"):
        through_graph(f, 1.0)


@pytest.mark.parametrize("x", [0.5, 20.0])
def test_a_variable_that_one_branch_leaves_without_a_value(x: float) -> None:
    def f(x: Any) -> Any:
        if x > 10:
            z = x * 2
        if x > 10:
            x = z
        return x

    agrees(f, x)


def test_whole_numbers_become_reals_where_a_branch_or_a_round_makes_them_so() -> None:
    def f(x: Any) -> Any:
        n = 0
        for i in range(20):
            n = n + 1 if x > i else n + 0.5
        m = 1
        while m < x:
            m *= 2
        return n, m

    agrees(f, 3.0)
    agrees(f, 100.0)


def test_whole_numbers_are_whole() -> None:
    def f(x: Any) -> Any:
        n, k = int(x * 10), 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            k += 1
        return k, k * x, -7 // 2, math.floor(x), round(x), divmod(x, 2.0)

    agrees(f, 0.7)
    agrees(f, 2.7)


def test_imports_and_asserts_and_docstrings() -> None:
    def f(x: Any, n: int = 3) -> Any:
        """Not an expression that counts."""
        import math as m
        from math import sqrt

        assert n == 3, f"{n} is not 3"
        pass
        return m.exp(x) + sqrt(x)

    agrees(f, 1.5)


def test_variables_that_functions_hold_on_to_are_those_of_the_moment() -> None:
    def f(x: Any) -> Any:
        a = 1.0

        def g(y: Any) -> Any:
            return y * a

        for _ in range(20):
            a = a + x
            x = g(x) * 0.1
        return g(x) + a

    agrees_with_gradient(f, 0.7)


def test_nonlocal_in_a_function_of_a_function() -> None:
    def twice_out(x: Any) -> Any:
        v = x

        def a() -> Any:
            def b() -> Any:
                nonlocal v
                v = v * x
                return v

            return b()

        return a() + v

    def once_out(x: Any) -> Any:
        v = x

        def a() -> Any:
            v = 1.0

            def b() -> Any:
                nonlocal v
                v = v * x
                return v

            return b() + v

        return a() + v

    assert dg.compile(twice_out)(3.0) == twice_out(3.0) == 18.0
    assert dg.compile(once_out)(3.0) == once_out(3.0) == 9.0


def test_a_comprehension_assigns_in_the_function_around_it() -> None:
    def last(x: Any) -> Any:
        a = [(i := v) * x for v in (1.0, 2.0)]
        return sum(a) * i

    def chained(x: Any) -> Any:
        t = x
        r = [t := t * v for v in (2.0, 3.0)]
        return sum(r) + t

    def condition(x: Any) -> Any:
        return sum(x * i for i in (1.0, 2.0) if (k := i) > 1.0) * k

    def looped(x: Any) -> Any:
        k = 0.0
        for j in range(3):
            s = [k := k + x * j for _ in range(2)]
        return k + s[0]

    for f, at_three, slope in ((last, 18.0, 6.0), (chained, 42.0, 14.0), (condition, 12.0, 4.0), (looped, 30.0, 10.0)):
        assert f(3.0) == dg.compile(f)(3.0) == at_three
        assert dg.compile(dg.grad(f))(3.0) == slope


def test_nonlocal() -> None:
    def f(x: Any) -> Any:
        count = 0.0

        def bump(y: Any) -> Any:
            nonlocal count
            count += y
            return count

        for i in range(20):
            bump(x * i)
        if x > 0:
            bump(1.0)
        return count

    agrees_with_gradient(f, 2.0)
    agrees_with_gradient(f, -2.0)


def test_arguments_of_all_kinds() -> None:
    def f(x: Any, y: float = 2.0, /, *rest: Any, k: float = 3.0, **others: Any) -> Any:
        def h(a: Any, b: Any = x, *c: Any, d: Any = 1.0, **e: Any) -> Any:
            return a + b * 2 + sum(c) * 3 + d * 5 + sum(e.values()) * 7

        more = h(1.0), h(1.0, 2.0, 3.0, 4.0, d=5.0, z=6.0), h(*(1.0, 2.0), **{"d": x})
        return more, y, rest, k, others

    agrees(f, 5.0)
    agrees(f, 5.0, 3.0, 4.0)
    assert through_graph(f, 5.0, 3.0, k=2.0, w=x_of()) == f(5.0, 3.0, k=2.0, w=x_of())


def x_of() -> float:
    return 1.25


def test_text_is_known_when_the_function_is_compiled() -> None:
    def f(x: Any, name: str) -> Any:
        return {f"{name}_{2:03d}": x, name.upper(): len(name)}

    agrees(f, 2.0, "ab")


def test_arrays_of_conditions_choose_elements() -> None:
    agrees(lambda a: np.where((a > 0) & ~(a > 0.5) | (a < -0.5), a, 0.0), np.linspace(-1, 1, 9))


def test_quotients_are_rounded_down_as_numpy_does() -> None:
    for x in (1.0, 0.9, -1.3, 0.0, -0.0, math.inf, math.nan, 6e300, 1e-300):
        for y in (0.1, 0.3, -0.1, 3.0, 1e-300, math.inf, -math.inf, 0.0):
            with np.errstate(all="ignore"):
                found, wanted = through_graph(lambda x, y: x // y, x, y), np.floor_divide(x, y)
            assert found == wanted or (found != found and wanted != wanted), (x, y)
            assert np.signbit(found) == np.signbit(wanted) or wanted != wanted, (x, y)
    agrees(lambda a: (a // 0.1, np.floor_divide(a, 0.3)), np.array([1.0, 0.3, 0.7, -0.9]))
    agrees(dg.grad(lambda x: x // 0.1 + x), 1.0)


def test_the_larger_of_numbers_is_that_of_python() -> None:
    agrees(
        lambda x: (max(1.0, math.nan * x), max(math.nan * x, 1.0), min(math.nan * x, 1.0), min(1.0, math.nan * x)), 2.0
    )
    for f in (
        lambda x: max(x, 1.0),
        lambda x: max(1.0, x),
        lambda x: min(2.0 * x, x + 1.0),
        lambda x: max(x, x * x, 1.0),
    ):
        agrees(dg.grad(f), 1.0)


def test_truth_values_count_as_whole_numbers() -> None:
    agrees(
        lambda x: [(x > 0) + 1, (x > 0) + (x > 1), True + (x > 0), (x > 0) // 1, (x > 0) ** 2, (x > 0) - (x > 1)], 1.3
    )
    agrees(
        lambda a: ((a > 0) + (a < 1), (a > 0) * (a < 1), 1 - (a > 0), np.sum(a > 0), np.max(a > 0)),
        np.linspace(-1, 1, 5),
    )
    agrees(lambda a: np.arange(10.0)[np.sum(a > 0)], np.linspace(-1, 1, 5))


WHOLE = {
    "moved": lambda a: (a.T, a.reshape(3, 2), np.concatenate([a, a]), np.flip(a), np.roll(a, 1), np.tile(a, 2)),
    "more": lambda a: (np.stack([a, a]), np.sort(a, axis=1), a.ravel(), np.split(a, 3, axis=1), np.diag(a[:2, :2])),
    "counted": lambda a: (np.sum(a), a.sum(axis=0), np.prod(a, axis=1), np.cumsum(a), np.max(a), a.min(axis=1)),
    "products": lambda a: (a @ a.T, np.dot(a, a.T), np.inner(a, a), np.outer(a[0], a[1]), np.vdot(a, a)),
    "chosen": lambda a: (np.where(a > 0, a, 0), np.full_like(a, 2.7), np.zeros_like(a), sum(a[0])),
    "mean": lambda a: (a.mean(), a / 2, a * 0.5, np.sqrt(a * a)),
    "signs": lambda a: (np.abs(a * 1), np.sign(a * 1), np.square(a * 1), np.clip(a * 1, -1, 3), np.diff(a * 1)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_arrays_of_whole_numbers_and_truth_values_stay_so(name: str) -> None:
    for a in (np.array([[3, -7, 2], [5, 4, -1]]), np.array([[True, False, True], [False, False, True]])):
        found, wanted = through_graph(WHOLE[name], a), WHOLE[name](a)
        assert same(found, wanted)
        kinds = [np.asarray(x).dtype.kind for x in found], [np.asarray(x).dtype.kind for x in wanted]
        assert kinds[0] == kinds[1]


# -- identity ----------------------------------------------------------------------------------------------------------

IDENTITIES: list[Callable[[float, float], Any]] = [
    lambda x, y: 1.0 if (x > 1) is True else 2.0,
    lambda x, y: 1.0 if (x > 1) is False else 2.0,
    lambda x, y: 1.0 if (x > 1) is not True else 2.0,
    lambda x, y: 1.0 if True is (x > 1) else 2.0,
    lambda x, y: (x > 1) is (y > 1),
    lambda x, y: (x > 1) is not (y > 1),
    lambda x, y: ((x > 1) is None, (x > 1) is not None, (x > 1) is x, x is x, x is None),
    lambda x, y: operator.is_not((x > 1), 1) and x is not (y > 1),
    lambda x, y: operator.is_(x > 1, True),
]


@pytest.mark.parametrize("f", IDENTITIES)
@pytest.mark.parametrize("point", [(0.5, 0.5), (0.5, 2.0), (2.0, 0.5), (2.0, 2.0)])
def test_truth_values_are_what_they_are(f: Callable[[float, float], Any], point: tuple[float, float]) -> None:
    agrees(f, *point)


@pytest.mark.parametrize("values", [(0.0, 5.0), (0.0, 1.0)])
def test_a_truth_value_that_a_loop_finds(values: tuple[float, ...]) -> None:
    def f(xs: tuple[float, ...], n: float) -> Any:
        found = False
        for v in xs:
            if v > 1:
                found = True
        return found is True, found is not False, (n < 0) is found

    agrees(f, values, 1.0)


def test_numbers_have_no_identity() -> None:
    with pytest.raises(dg.Error, match="compare them with =="):
        through_graph(lambda x, y: x is y, 1.0, 2.0)
