"""The reverse sweep: every cell once, no recursion, linear cost, memory freed, threads."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.eager.kinds import fresh
from dynagrad.eager.numbers import Tape
from dynagrad.eager.perturbations import inside, is_open
from dynagrad.eager.tape import Recorded
from dynagrad.ir.operation import Operation
from dynagrad.ir.ops import scalars as ops


def chain(length: int) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for _ in range(length):
            x = x * 0.999999
        return x

    return f


def test_a_chain_of_a_million_operations() -> None:
    wanted = 0.999999**1_000_000
    assert dg.grad(chain(1_000_000))(1.0) == pytest.approx(wanted, rel=1e-9)
    assert dg.derivative(chain(1_000_000))(1.0) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("verb", [dg.grad, dg.derivative, lambda f: dg.grad(dg.grad(f))])
def test_time_is_linear_in_the_operations(verb: Any) -> None:
    def seconds(length: int) -> float:
        begin = time.process_time()
        verb(lambda x: chain(length)(x) * x)(1.0)
        return time.process_time() - begin

    seconds(100)
    for _ in range(3):  # a machine may have other work
        few, many = seconds(3_000), seconds(30_000)
        if many < 30.0 * few:  # ten, and what a busy machine adds
            return
    raise AssertionError(f"{many:.2f} s for ten times what takes {few:.2f} s")


def test_a_shared_value_is_visited_once() -> None:
    def f(x: Any) -> Any:
        for _ in range(50):
            x = x + x
        return x

    before = fresh()
    assert dg.grad(f)(1.0) == 2.0**50
    assert dg.derivative(f)(1.0) == 2.0**50
    assert dg.grad(lambda x: f(x) * f(x))(1.0) == 2.0**101
    assert dg.derivative(dg.grad(lambda x: f(x) * f(x)))(1.0) == 2.0**101
    assert fresh() - before < 2_000


def test_sharing_beneath_younger_passes_is_not_lost_either() -> None:
    h = dg.derivative(lambda x: lambda g: lambda y: g(x * y))(1.0)

    def f(t: Any) -> Any:
        def doubled(y: Any) -> Any:
            y = y * t
            for _ in range(40):
                y = y + y
            return y

        return h(doubled)(t)

    before = fresh()
    assert dg.grad(f)(1.0) == 2.0 * 2.0**40
    assert dg.grad(dg.grad(f))(1.0) == 2.0 * 2.0**40
    assert fresh() - before < 5_000


def test_the_tape_is_empty_after_a_gradient() -> None:
    kept: list[Any] = []
    dg.grad(lambda x: (kept.append(x), x * x * x)[1])(2.0)
    assert not kept[0].tape.entries


def test_a_pullback_may_be_called_again() -> None:
    _, pullback = dg.vjp(lambda x, y: x * y * y, 2.0, 3.0)
    assert pullback(1.0) == (9.0, 12.0)
    assert pullback(10.0) == (90.0, 120.0)


def test_the_garbage_collector_is_back_after_a_pass_whatever_happens() -> None:
    assert gc.isenabled()
    dg.grad(lambda x: dg.grad(lambda y: x * y)(x) * x)(2.0)
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        dg.grad(lambda x: x / (1 // 0))(2.0)
    assert gc.isenabled()


def test_no_pass_is_open_after_an_error() -> None:
    tags: list[int] = []

    def f(x: Any) -> Any:
        tags.append(x.tag)
        assert is_open(x.tag)
        raise ValueError("no")

    for verb in (dg.grad, dg.derivative, lambda f: dg.derivative(f, 3)):
        with pytest.raises(ValueError, match="no"):
            verb(f)(2.0)
    assert len(tags) == 3 and not any(map(is_open, tags)) and not inside()


def test_operations_of_a_single_call_are_forgotten_with_it() -> None:
    """An index, a rule or a fixed point holds arrays; none of it stays behind."""
    rule = dg.custom_rule(lambda x: x * 1.0, jvp=lambda primals, tangents: tangents[0] * 1.0)
    places = np.array([0, 2])

    def f(x: Any) -> Any:
        y = dg.fixed_point(lambda s: 0.5 * np.tanh(s) + rule(x)[places], np.zeros(2))
        return np.sum(y * y)

    def alive() -> int:
        gc.collect()
        return sum(type(x) in (Tape, Recorded, Operation) for x in gc.get_objects())

    counts = []
    for _ in range(3):
        dg.grad(f)(np.ones(3))
        dg.hessian(f)(np.ones(3))
        counts.append(alive())
    assert counts[1] == counts[2]


# -- choices -----------------------------------------------------------------------------------------------------------

ZERO_ONE, SQUARE = np.array([0.0, 1.0]), np.array([[0.0, 1.0], [4.0, 0.0]])
CHOICES: dict[str, tuple[Any, Any]] = {
    "a slice": (lambda x: np.sum(np.where(x > 0, np.log(x)[:], 0)), ZERO_ONE),
    "a stack": (lambda x: np.sum(np.where([False, True], np.stack([np.log(x[0]), x[1]]), 0)), ZERO_ONE),
    "several of one": (lambda x: np.sum(np.where([[0, 1], [0, 0]], np.stack([np.log(x), np.log(x)]), 0)), ZERO_ONE),
    "the same twice": (
        lambda x: (lambda y: np.sum(np.where([[False, True]] * 2, np.stack([y, y]), 0)))(np.log(x)),
        ZERO_ONE,
    ),
    "an element": (lambda x: np.log(x)[1], ZERO_ONE),
    "elements one by one": (lambda x: (lambda y: y[1] + y[1] * y[-1])(np.log(x) * 2.0 + 1.0), ZERO_ONE),
    "some elements": (lambda x: np.sum(np.log(x)[x > 0]), ZERO_ONE),
    "places": (lambda x: np.sum(np.log(x)[np.array([1, 1])]), ZERO_ONE),
    "the largest": (lambda x: np.max(np.log(x)), ZERO_ONE),
    "the smallest": (lambda x: np.min(-np.log(x)), ZERO_ONE),
    "the larger": (lambda x: np.sum(np.fmax(np.sqrt(x), 0.5)), ZERO_ONE),
    "the smaller": (lambda x: np.sum(np.fmin(-np.sqrt(x), -0.5)), ZERO_ONE),
    "of the sorted": (lambda x: np.sort(np.sqrt(x))[1], ZERO_ONE),
    "a shape": (lambda x: np.sum(np.where(x > 0, np.log(x).reshape(2), 0)), ZERO_ONE),
    "a matrix turned": (lambda x: np.sum(np.where(x.T > 0, np.log(x).T, 0)), SQUARE),
    "above the diagonal": (lambda x: np.sum(np.triu(np.log(x))), np.array([[1.0, 4.0], [0.0, 2.0]])),
    "the diagonal": (lambda x: np.sum(np.diagonal(np.log(x))), SQUARE[::-1]),
    "along an axis": (lambda x: np.sum(np.take_along_axis(np.log(x), np.array([[1], [0]]), 1)), SQUARE),
    "rolled": (lambda x: np.roll(np.log(x), 1)[0], ZERO_ONE),
    "joined": (lambda x: np.concatenate([np.log(x), x])[1], ZERO_ONE),
    "repeated": (lambda x: np.sum(np.where([[False, True]] * 3, np.broadcast_to(np.log(x), (3, 2)), 0)), ZERO_ONE),
    "a row of sums": (lambda x: np.where(x[0, 0] > 0, np.sum(np.log(x), axis=1)[0], np.sum(x)), SQUARE),
    "of three": (lambda x: np.where([False, True], np.where([True, True], np.log(x), x), 0)[1], ZERO_ONE),
    "with a factor": (lambda x: np.sum(np.where(x > 0, np.log(x) * 3.0, x * 3.0)), ZERO_ONE),
}


@pytest.mark.parametrize("kind", CHOICES)
@pytest.mark.filterwarnings("ignore:divide by zero")  # numpy's, of values
def test_what_is_not_chosen_does_not_matter_in_either_mode(kind: str) -> None:
    f, point = CHOICES[kind]
    forward = dg.jacfwd(f)(point)
    assert np.isfinite(forward).all()
    np.testing.assert_allclose(dg.grad(f)(point), forward)
    np.testing.assert_allclose(dg.grad(lambda x: dg.derivative(lambda t: t * f(x))(1.0))(point), forward)
    early = dg.derivative(lambda t: lambda x: t * f(x))(1.0)  # made before the pass
    np.testing.assert_allclose(dg.grad(early)(point), forward)
    np.testing.assert_allclose(dg.grad(lambda x: dg.derivative(lambda t: t * t * f(x), 2)(1.0))(point), 2.0 * forward)


def test_a_value_that_is_chosen_from_and_used_as_a_whole_is_alive_as_a_whole() -> None:
    def f(x: Any) -> Any:
        y = np.sqrt(x)
        return np.sum(y * y) + y[1] + np.sum(np.where(x > 2.0, y, 0.0))

    with pytest.raises(dg.NotDifferentiable):
        dg.grad(f)(ZERO_ONE)
    assert dg.grad(f)(np.array([1.0, 4.0])).tolist() == [1.0, 1.5]

    def both(x: Any) -> Any:
        y = np.exp(x)
        return y, np.where([True, False], y, 0.0)

    _, back = dg.vjp(both, np.zeros(2))
    assert back((np.ones(2), np.ones(2)))[0].tolist() == [2.0, 1.0]
    assert back((np.zeros(2), np.ones(2)))[0].tolist() == [1.0, 0.0]


def test_elements_of_a_computed_array_take_time_in_proportion() -> None:
    n = 3_000
    x = np.linspace(0.0, 1.0, n)

    def f(x: Any) -> Any:
        y = np.sqrt(x)
        return sum(y[i] for i in range(1, n))

    found = dg.grad(f)(x)
    assert found[0] == 0.0 and found[1:] == pytest.approx(0.5 / np.sqrt(x[1:]))


# -- threads -----------------------------------------------------------------------------------------------------------


def test_threads_with_passes_of_their_own() -> None:
    both = threading.Barrier(4, timeout=10)

    def work(k: int) -> list[float]:
        def f(x: Any) -> Any:
            for _ in range(200):
                x = ops.sin(x) * (1.0 + k * 0.1)
            return x * dg.derivative(lambda y: x * y)(x)

        both.wait()
        return [dg.grad(f)(0.5 + k), dg.derivative(f)(0.5 + k), dg.grad(dg.grad(f))(0.5 + k)]

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(work, range(4)))
        both.reset()
    for k, found in enumerate(together):
        both = threading.Barrier(1)
        assert found == work(k)
        assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_workers_inside_a_function_compute_on_its_tape() -> None:
    def f(x: Any) -> Any:
        def part(k: int) -> Any:
            y = x * (k + 1.0)
            for _ in range(300):
                y = ops.sin(y) * 1.5
            return y

        with ThreadPoolExecutor(4) as pool:
            return sum(pool.map(part, range(8)), start=0.0)

    assert dg.grad(f)(0.3) == pytest.approx(dg.derivative(f)(0.3), rel=1e-9)
    assert dg.grad(dg.grad(f))(0.3) == pytest.approx(dg.derivative(dg.derivative(f))(0.3), rel=1e-9)


def test_workers_inside_a_function_open_passes_of_their_own() -> None:
    def f(g: Any, x: Any) -> Any:
        with ThreadPoolExecutor(4) as pool:
            return sum(pool.map(lambda k: dg.grad(lambda y: g(y * x * k))(1.0), [1.0, 2.0, 3.0]), start=0.0)

    by_function, by_number = dg.grad(f, (0, 1))(ops.sin, 0.7)
    cos, sin = lambda x: float(ops.cos(x)), lambda x: float(ops.sin(x))
    assert by_number == pytest.approx(sum(k * cos(0.7 * k) - 0.7 * k * k * sin(0.7 * k) for k in (1, 2, 3)))
    assert by_function(ops.exp) == pytest.approx(sum(0.7 * k * float(ops.exp(0.7 * k)) for k in (1, 2, 3)))


# -- arrays, element by element ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", ["nothing", "before", "after", "choice"])
def test_elements_of_an_array_share_one_adjoint(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop over n elements makes a few arrays of n numbers, and not n of them."""
    n = 2_000
    point = np.linspace(0.5, 1.5, n)

    def f(x: Any) -> Any:
        total = np.sum(x) if extra == "before" else 0.0
        for part in x:
            total = total + (np.where(part > 1.0, part, 0.0) if extra == "choice" else part) * part
        return total + (np.sum(x) if extra == "after" else 0.0)

    made = []
    zeros = np.zeros
    monkeypatch.setattr(np, "zeros", lambda *a, **o: made.append(a) or zeros(*a, **o))  # type: ignore[func-returns-value]
    found = dg.grad(f)(point)
    assert len(made) <= 2
    expected = 2.0 * point * (point > 1.0) if extra == "choice" else 2.0 * point + (extra != "nothing")
    np.testing.assert_allclose(found, expected)


def test_elements_rows_and_masks_of_an_array_add_up() -> None:
    x, places = np.arange(12.0).reshape(3, 4) - 5.5, np.array([0, 0, 2])

    def f(x: Any) -> Any:
        parts = [x[0, 1], x[..., 2], x[1:], x[places], x[x > 0.0], x[None, 1], x, x[2][3], x[0, 1]]
        return sum(np.sum(part * part) for part in parts)

    expected = np.zeros((3, 4))
    for index in ((0, 1), (..., 2), slice(1, None), x > 0.0, 1, ..., (2, 3), (0, 1)):
        expected[index] += 2.0 * x[index]
    np.add.at(expected, places, 2.0 * x[places])
    np.testing.assert_allclose(dg.grad(f)(x), expected)
    np.testing.assert_allclose(dg.jvp(dg.grad(f), (x,), (x,))[1], expected)
    np.testing.assert_allclose(dg.grad(lambda x: np.sum(dg.grad(f)(x) * x))(x), 2.0 * expected)
    _, pullback = dg.vjp(f, x)
    np.testing.assert_array_equal(pullback(1.0)[0], pullback(1.0)[0])


def test_an_adjoint_that_two_share_is_not_written_to() -> None:
    def f(x: Any) -> Any:
        y = x + 0.0  # passes its adjoint on as it is
        return np.sum(x * np.array([1.0, 2.0, 3.0])) + np.sum(y) + y[1] + x[1] + x[2]

    assert dg.grad(f)(np.ones(3)).tolist() == [2.0, 5.0, 5.0]
