"""Loops over large arrays in several threads: equal to the bit for any number of threads. Costs a few seconds."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.runtime import library
from dynagrad.runtime import threads as pool

OPTIMISED = True  # see conftest.py
MANY = 700_001  # cut, and not in parts of the same size
RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=MANY), RNG.normal(size=MANY)
COUNTS = (1, 2, 3, 7)
Function = Callable[..., Any]


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Sets how many threads all code that was loaded in the test uses."""
    loaded: list[library.Library] = []
    attach = pool.attach

    def noted(made: library.Library, count: int | None = None) -> None:
        loaded.append(made)
        attach(made, count)

    def use(count: int) -> None:
        assert loaded, "nothing is cut"
        for made in loaded:
            attach(made, count)

    monkeypatch.setattr(pool, "attach", noted)
    yield use
    for made in loaded:
        attach(made)


def bits(found: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in (found if isinstance(found, tuple) else (found,))]


def same_to_the_bit(use: Callable[[int], None], f: Function, *arguments: Any) -> Any:
    """What a function computes, with any number of threads."""
    first = f(*arguments)
    for count in COUNTS:
        use(count)
        for _ in range(3):
            assert bits(f(*arguments)) == bits(first), count
    return first


def weighted(x: Any, y: Any) -> Any:
    return np.sum(np.exp(x) * y)


def test_sums_and_their_gradients(threads: Callable[[int], None]) -> None:
    found = same_to_the_bit(threads, dg.compile(weighted), X, Y)
    assert found == pytest.approx(np.sum(np.exp(X) * Y), rel=1e-9)
    dx, dy = same_to_the_bit(threads, dg.compile(dg.grad(weighted, (0, 1))), X, Y)
    np.testing.assert_allclose(dx, np.exp(X) * Y, rtol=1e-12)
    np.testing.assert_allclose(dy, np.exp(X), rtol=1e-12)


def test_elements_extremes_and_several_results_of_one_loop(threads: Callable[[int], None]) -> None:
    def f(x: Any, y: Any) -> Any:
        z = np.tanh(x) * y + 0.5
        return z, np.max(z), np.sum(z), np.min(z * x)

    z = np.tanh(X) * Y + 0.5
    found = same_to_the_bit(threads, dg.compile(f), X, Y)
    for got, expected in zip(found, (z, z.max(), z.sum(), (z * X).min()), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9)
    bad = X.copy()
    bad[[5, MANY - 1]] = np.nan
    assert all(np.isnan(x).any() for x in same_to_the_bit(threads, dg.compile(f), bad, Y))


@pytest.mark.parametrize("shape", [(3, 250_000), (250_000, 3), (900, 900), (7, 100_001)])
def test_sums_along_axes(threads: Callable[[int], None], shape: tuple[int, int]) -> None:
    x = RNG.normal(size=shape)

    w, v = RNG.normal(size=shape[1]), RNG.normal(size=shape[0])
    z = np.exp(x) * w + v[:, None]

    def rows(x: Any, w: Any, v: Any) -> Any:
        z = np.exp(x) * w + v[:, None]
        return np.sum(z, axis=1), z - 1.0

    def columns(x: Any, w: Any, v: Any) -> Any:
        z = np.exp(x) * w + v[:, None]
        return np.sum(z, axis=0), np.max(z), np.sum(z)

    for f, expected in ((rows, (z.sum(axis=1), z - 1.0)), (columns, (z.sum(axis=0), z.max(), z.sum()))):
        compiled = dg.compile(f)
        if f is columns and shape[1] > 1000:  # too much to keep for each part
            compiled(x, w, v)
            found = compiled(x, w, v)
        else:
            found = same_to_the_bit(threads, compiled, x, w, v)
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-7)


def test_a_large_array_in_a_loop_is_changed_in_place(threads: Callable[[int], None]) -> None:
    def f(x: Any, y: Any, n: int) -> Any:
        for _ in range(n):
            x = np.sin(x) + y * x
        return x

    expected = X
    for _ in range(3):
        expected = np.sin(expected) + 0.5 * Y * expected
    np.testing.assert_allclose(same_to_the_bit(threads, dg.compile(f), X, 0.5 * Y, 3), expected, rtol=1e-9)


def test_small_loops_are_not_cut() -> None:
    assert "in_parallel" not in dg.cpp(weighted, X[:20_000], Y[:20_000])
    assert "parallel" not in dg.cpp(weighted, X[:20_000], Y[:20_000])
    assert "in_parallel" in dg.cpp(weighted, X, Y)


def test_many_threads_of_python_at_once(threads: Callable[[int], None]) -> None:
    f = dg.compile(dg.grad(weighted))
    expected = bits(f(X, Y))
    threads(3)
    wrong = []

    def work() -> None:
        wrong.extend(1 for _ in range(8) if bits(f(X, Y)) != expected)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_after_a_fork(threads: Callable[[int], None]) -> None:
    f = dg.compile(weighted)
    expected = f(X, Y)
    threads(3)
    assert f(X, Y) == expected
    child = os.fork()
    if child == 0:
        os._exit(0 if all(f(X, Y) == expected for _ in range(5)) else 1)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert status == 0
            return
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


def test_the_number_of_threads_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNAGRAD_THREADS", "1")
    assert dg.compile(weighted)(X, Y) == pytest.approx(np.sum(np.exp(X) * Y), rel=1e-9)
