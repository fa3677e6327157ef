"""The pool of buffers: memory is reused only once nobody can see it, and its size is bounded."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.ir import buffers
from dynagrad.ir.buffers import LARGEST, MOST, SMALLEST, copy, empty
from dynagrad.ir.operation import apply
from dynagrad.ir.ops import scalars as ops

SHAPE = (100, SMALLEST // 50)


def address(x: Any) -> int:
    found: int = x.ctypes.data
    return found


def test_memory_comes_back_when_the_last_view_is_gone() -> None:
    first = empty(SHAPE)
    where = address(first)
    view = first.T[3:][::2]
    del first
    second = empty(SHAPE)
    assert address(second) != where
    del view
    assert address(empty(SHAPE)) == where
    assert address(empty(SHAPE[::-1])) == where  # by size, whatever the shape


def test_arrays_are_as_others() -> None:
    x = empty(SHAPE)
    x[:] = 1.0
    assert x.shape == SHAPE and x.dtype == np.float64 and x.flags.c_contiguous and x.flags.writeable
    y = copy(np.asfortranarray(x))
    assert y.flags.c_contiguous and (x == y).all() and not np.shares_memory(x, y)
    assert type(x) is type(x.T) is type(np.asarray(x)) is type(x * 2.0) is np.ndarray
    assert empty((2, 3)).base is None  # small ones are left to numpy


@pytest.mark.parametrize("look", [lambda x: x[3:][::2], lambda x: x.reshape(-1)[1:], lambda x: x.T, memoryview])
def test_whatever_looks_at_an_array_keeps_its_memory(look: Any) -> None:
    first = empty(SHAPE)
    where = address(first)
    view = look(first)
    del first
    assert address(empty(SHAPE)) != where
    del view
    assert address(empty(SHAPE)) == where


def test_large_operations_of_mixed_arguments_are_those_of_numpy() -> None:
    x = np.linspace(-1.0, 1.0, SMALLEST).reshape(-1, 64)
    row, column = np.linspace(1.0, 2.0, 64), np.linspace(1.0, 2.0, len(x))[:, None]
    for other in (
        x + 1.0,
        row,
        column,
        2.0,
        x > 0.0,
        x.astype(np.float32),
        np.arange(64),
        row.astype(">f8"),
        x.T.copy().T,
    ):
        for f in (np.add, np.multiply, np.divide):
            with np.errstate(all="ignore"):
                operation = {np.add: ops.add, np.multiply: ops.multiply, np.divide: ops.divide}[f]
                for a, b in ((x, other), (other, x)):
                    found = apply(operation, a, b)
                    np.testing.assert_array_equal(found, f(a, b))
                    assert found.dtype == f(a, b).dtype


def test_large_arrays_and_many_do_not_wait() -> None:
    assert empty((LARGEST + 1,)).base is None
    held = [empty((LARGEST,)) for _ in range(MOST // (8 * LARGEST) + 3)]
    del held
    assert buffers._waiting <= MOST
    assert buffers._waiting == sum(n * len(some) for n, some in buffers._idle.items())


def test_threads_never_have_the_same_memory() -> None:
    wrong = []

    def work(mine: float) -> None:
        for _ in range(200):
            x, y = empty(SHAPE), empty(SHAPE)
            x.fill(mine)
            y.fill(-mine)
            if not ((x == mine).all() and (y == -mine).all()):
                wrong.append(mine)

    threads = [threading.Thread(target=work, args=(float(k + 1),)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_collection_in_the_middle_ends_leases_too() -> None:
    class Cycle:
        pass

    for _ in range(20):
        knot: Any = Cycle()
        knot.me, knot.array = knot, empty(SHAPE)
        del knot
    gc.collect()
    assert buffers._waiting <= MOST


@pytest.mark.parametrize("verb", ["grad", "vjp", "jvp"])
def test_results_and_data_of_different_calls_are_apart(verb: str) -> None:
    random = np.random.default_rng(0)
    w, x = random.normal(size=(200, 100)), random.normal(size=(150, 200))

    def f(w: Any) -> Any:
        y = np.tanh(x @ w) * 2.0 - 1.0
        return np.sum(y * y) + np.sum(w * w)

    def ask(w: Any) -> Any:
        if verb == "grad":
            return dg.grad(f)(w)
        return dg.vjp(f, w)[1](1.0)[0] if verb == "vjp" else dg.jvp(lambda w: w * w + w, (w,), (w,))[1]

    first = ask(w)
    kept = np.array(first)
    for k in range(3):
        other = ask(w + k)
        other[:] = np.nan  # the user may do what they like
        assert not np.shares_memory(first, other)
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(ask(w), kept)


def test_writing_into_large_data_after_its_use_changes_nothing() -> None:
    w, data = np.linspace(-1.0, 1.0, 20_000), np.linspace(0.0, 3.0, 20_000)
    untouched = data.copy()

    def f(w: Any) -> Any:
        y = np.sum(w * data) + np.sum(np.sin(w) * data)
        data.reshape(2, -1)[1] = np.nan
        return y

    np.testing.assert_allclose(dg.grad(f)(w), untouched * (1.0 + np.cos(w)))
    found = dg.grad(lambda w: np.sum(w * untouched))(w)
    untouched[5] = 7.0  # one element far from the others
    assert dg.grad(lambda w: np.sum(w * untouched))(w)[5] == 7.0 != found[5]
