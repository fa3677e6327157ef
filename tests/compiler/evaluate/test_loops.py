"""Loops while a function is specialised: what they run over, what they change, and when they are unrolled.

Costs ten seconds.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import agrees, agrees_with_gradient, through_graph
from dynagrad.compiler.specialised import graph_of
from dynagrad.ir.control import REPEAT, WHILE
from dynagrad.ir.node import order
from dynagrad.ir.types import real


def operations(f: Any, *arguments: Any) -> list[Any]:
    return [node.operation for node in order(graph_of(f, *arguments).outputs)]


def times(n: int) -> Any:
    def f(x: Any) -> Any:
        for i in range(n):
            x = np.sin(x) * i
        return x

    return f


def test_short_loops_are_unrolled_and_long_ones_are_loops_of_the_graph() -> None:
    assert REPEAT not in operations(times(5), real)
    assert operations(times(1000), real).count(REPEAT) == 1
    agrees_with_gradient(times(5), 0.5)
    agrees_with_gradient(times(40), 0.5)


def test_loops_in_loops_share_what_may_be_unrolled() -> None:
    def f(x: Any) -> Any:
        for _ in range(10):
            for _ in range(10):
                for _ in range(10):
                    x = np.sin(x)
        return x

    assert len(operations(f, real)) < 100
    agrees_with_gradient(f, 0.5)


def test_a_loop_without_break_is_counted_and_one_with_break_is_not() -> None:
    def f(x: Any) -> Any:
        for i in range(100):
            x = x + i
            if x > 50:
                break
        return x

    assert WHILE in operations(f, real) and REPEAT not in operations(f, real)
    agrees_with_gradient(f, 0.5)


def test_a_while_that_starts_from_what_is_known() -> None:
    def f(x: Any) -> Any:
        change, y, n = 1.0, 1.0, 0
        while change > 1e-10 and n < 100:
            new = 0.5 * (y + x / y)
            change, y, n = abs(new - y), new, n + 1
        return y

    assert WHILE in operations(f, real)
    agrees_with_gradient(f, 2.0)


def test_a_while_that_is_known_is_unrolled() -> None:
    def f(x: Any) -> Any:
        n = 10
        while n > 1:
            n, x = n // 2, x * n
        return x

    assert WHILE not in operations(f, real)
    agrees(f, 2.0)


def test_over_arrays_enumerate_zip_and_reversed() -> None:
    def f(a: Any) -> Any:
        s = 0.0
        for i, (u, v) in enumerate(zip(a, a[::-1], strict=True), 1):
            s = s + i * u * v
        for w in reversed(a):
            s = s * 0.9 + w
        for row in np.outer(a, a):
            s = s + row @ a
        return s

    agrees_with_gradient(f, np.linspace(0.1, 1, 5))
    agrees_with_gradient(f, np.linspace(0.1, 1, 20))


def test_over_ranges_whose_ends_are_known_only_as_it_runs() -> None:
    def f(a: Any) -> Any:
        n, s = int(a[-1] * 30), 0.0
        for i in range(2, n, 3):
            if s > 40:
                break
            s += i * a[i % 5]
        for i in range(n, 0, -2):
            s = s + i
        return s

    agrees(f, np.linspace(0.1, 1, 5))
    agrees(f, np.linspace(0.1, 0.03, 5))


@pytest.mark.parametrize("step", [3.0, 1.0, -2.0, 7.0])
def test_over_ranges_whose_step_is_known_only_as_it_runs(step: float) -> None:
    def f(x: Any, step: Any) -> Any:
        n, s = int(step), 0.0
        for i in range(0, 20, n):
            s += i * x
        for i in range(11, -5, n):
            s = s * 0.9 + i
        return s + len(range(20, 1, n)) * x

    agrees_with_gradient(f, 1.3, step)


def test_over_numbers_without_an_end() -> None:
    def f(x: Any) -> Any:
        t = 0.0
        for i in itertools.count(1):
            t += x * i
            if t > 30.0:
                break
        for i in itertools.count(5, step=-2):
            if i < -3:
                break
        return t * i + sum(k * v for k, v in zip(itertools.count(), (x, t), strict=False))

    agrees_with_gradient(f, 1.3)


def test_over_structures_of_any_kind() -> None:
    def f(x: Any) -> Any:
        d = {"a": x, "b": (x, 1.0)}
        total: Any = 0
        for key, value in d.items():
            total += value if key == "a" else value[0]
        for g in (np.sin, np.cos, lambda y: y * x):
            total = g(total)
        for key in d:
            total = total + len(key)
        return total

    agrees_with_gradient(f, 0.5)


def test_lists_that_grow_are_unrolled() -> None:
    def f(x: Any) -> Any:
        xs = []
        for i in range(30):
            xs.append(x * i)
        return sum(xs) + len(xs)

    agrees_with_gradient(f, 0.5)


@pytest.mark.parametrize("n", [3, 20])
def test_what_is_changed_in_place_is_part_of_the_state(n: int) -> None:
    def f(a: Any) -> Any:
        m, total = np.zeros((n, 2)), [0.0, 1.0]
        for i in range(n):
            if a[i] > 0.3:
                m[i] = a[i] * i
            else:
                m[i, 0] -= a[i]
            total[0] += m[i, 0] * total[1]
        return (m**2).sum() + total[0]

    agrees_with_gradient(f, np.linspace(0.06, 1, n))


def test_structures_as_state() -> None:
    def f(x: Any) -> Any:
        state = (x, (1.0, {"v": 0.0}))
        for i in range(20):
            a, (b, d) = state
            state = (a * 0.9, (b + a, {"v": d["v"] + i}))
        return state[0] + state[1][0] * state[1][1]["v"]

    agrees_with_gradient(f, 1.3)


def test_functions_as_state() -> None:
    def f(x: Any) -> Any:
        g = lambda y: y  # noqa: E731
        for i in range(20):
            g = (lambda k: lambda y: y * k)(x + i)
        return g(2.0)

    agrees_with_gradient(f, 0.7)


def test_truth_values_as_state() -> None:
    def f(x: Any) -> Any:
        seen = False
        for _ in range(20):
            x = x + 0.5
            if x > 1 and not seen:
                seen = True
                x = x * 2
        return x if seen else 0.0

    agrees_with_gradient(f, 0.3)
    agrees_with_gradient(f, -30.0)


def test_sorting() -> None:
    def f(a: Any) -> Any:
        a = a.copy()
        for i in range(len(a)):
            for j in range(len(a) - 1 - i):
                if a[j] > a[j + 1]:
                    a[j], a[j + 1] = a[j + 1], a[j]
        return a

    agrees(f, np.array([3.0, 1.0, 2.0]))
    agrees(f, np.array([3.0, 1.0, 2.0, 5.0, 4.0] * 5))


def test_elimination() -> None:
    def f(matrix: Any) -> Any:
        a, n, determinant = matrix.copy(), len(matrix), 1.0
        for k in range(n):
            determinant = determinant * a[k, k]
            for i in range(k + 1, n):
                factor = a[i, k] / a[k, k]
                for j in range(k + 1, n):
                    a[i, j] -= factor * a[k, j]
        return determinant

    rng = np.random.default_rng(0)
    agrees_with_gradient(f, np.eye(4) + 0.1 * rng.normal(size=(4, 4)))
    agrees_with_gradient(lambda a: f(a), np.eye(18) + 0.01 * rng.normal(size=(18, 18)))


def test_a_condition_may_change_things_and_the_last_one_does_so_too() -> None:
    def f(x: Any) -> Any:
        seen = [x]
        count = 0

        def next_is_small() -> Any:
            nonlocal count
            seen[0] = seen[0] * 2.0
            count = count + 1
            return seen[0] < 10.0

        while next_is_small():
            seen[0] = seen[0] + x
        return seen[0] * count

    agrees_with_gradient(f, 1.3)
    agrees_with_gradient(f, 20.0)


def test_a_list_that_grows_while_a_loop_goes_over_it() -> None:
    def grown(x: Any) -> Any:
        xs = [x, x * 2.0]
        for y in xs:
            if len(xs) < 5:
                xs.append(y + 1.0)
        return sum(xs)

    def numbered(x: Any) -> Any:
        xs, total = [x], 0.0
        for i, y in enumerate(xs):
            total = total + i * y
            if len(xs) < 4:
                xs.append(y * 2.0)
        return total

    def replaced(x: Any) -> Any:
        xs, total = [x, x, x], 0.0
        for i, y in enumerate(xs):
            total = total + y
            if i < 2:
                xs[i + 1] = y * 3.0
        return total

    def long(x: Any) -> Any:
        xs, total = [x] * 100, 0.0
        for i, y in enumerate(xs):
            total = total + y
            xs[99 - i] = y * 1.1
        return total

    for f in (grown, numbered, replaced, long):
        agrees_with_gradient(f, 1.5)


def _permanent(a: Any) -> Any:
    if a.shape[0] == 1:
        return a[0]
    total = 0.0
    for j in range(a.shape[0]):
        total = total + _permanent(np.concatenate([a[:j], a[j + 1 :]])) * 1.0
    return total


def _stacked(x: Any, n: int) -> Any:
    return x if n == 0 else _stacked(x + 1.0, n - 1)


def test_a_limit_on_calls_is_named_and_can_be_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "more than 120 times .* limit on calls inside each other; the environment variable DYNAGRAD_NESTED raises it"
    assert through_graph(_stacked, 1.0, 119) == 120.0
    with pytest.raises(dg.LiftError, match=said):
        through_graph(_stacked, 1.0, 120)
    monkeypatch.setenv("DYNAGRAD_NESTED", "1000")
    assert through_graph(_stacked, 1.0, 999) == 1000.0
    monkeypatch.setenv("DYNAGRAD_NESTED", "10")
    with pytest.raises(dg.LiftError, match="more than 10 times"):
        through_graph(_stacked, 1.0, 10)
    monkeypatch.setenv("DYNAGRAD_NESTED", "1001")
    with pytest.raises(dg.LiftError, match="DYNAGRAD_NESTED must be a whole number of calls, from 1 to 1000"):
        through_graph(_stacked, 1.0, 1)


def test_a_limit_on_unrolling_is_named_and_can_be_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    said = (
        "could be compiled only by unrolling it, to at least 5,040 copies of a round with the loops around it, and the "
        "limit on unrolling is 4,096 copies; the environment variable DYNAGRAD_UNROLLED raises it. It cannot stay a "
        "loop since the bounds of a slice decide a shape"
    )
    with pytest.raises(dg.LiftError) as caught:
        through_graph(_permanent, np.ones(7))
    assert said in str(caught.value)
    monkeypatch.setenv("DYNAGRAD_UNROLLED", "100")
    with pytest.raises(dg.LiftError, match=r"at least 120 copies .* is 100 copies"):
        through_graph(_permanent, np.ones(5))
    monkeypatch.setenv("DYNAGRAD_UNROLLED", "120")
    assert through_graph(_permanent, np.ones(5)) == 120.0
    for wrong in ("", "many", "0", "1" * 50):
        monkeypatch.setenv("DYNAGRAD_UNROLLED", wrong)
        if wrong:
            with pytest.raises(dg.LiftError, match="DYNAGRAD_UNROLLED must be a whole number"):
                through_graph(_permanent, np.ones(5))
        else:
            assert through_graph(_permanent, np.ones(5)) == 120.0
