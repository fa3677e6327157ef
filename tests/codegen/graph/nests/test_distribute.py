"""Short loops that are distributed, with functions of whole arrays between their parts: the same bits as one loop.

Costs nine compilations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.codegen.graph import load
from dynagrad.codegen.graph.nests import distribute
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import constant, fresh
from dynagrad.ir.ops import arrays as on_arrays
from dynagrad.ir.ops import integers, reductions
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.types import arrays, integer, real

INF, NAN = float("inf"), float("nan")
SPECIAL = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-310, 1e308, -2.5, 3.5, 1e22]
OF_ONE = [op for op in ops.TABLE.values() if op.in_loops and len(op.arguments) == 1]


def values(n: int, seed: int) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(seed)
    found = random.normal(size=n) * 10.0 ** random.integers(-3, 4, n)
    found[: len(SPECIAL)] = random.permutation(SPECIAL)[:n]
    return found


def of_length(n: int) -> Graph:
    """Functions of arrays and of elements, of each other, and in sums; read backwards, by number and as a matrix."""
    x, y, c = fresh(arrays(real, (n,))), fresh(arrays(real, (n,))), fresh(real)
    places = fresh(arrays(integer, (n,)))
    rows = on_arrays.broadcast_to((3, n))(x)
    outputs: list[Any] = [op(x) for op in OF_ONE]
    outputs += [ops.power(x, y), ops.power(x, c), ops.power(c, y), ops.power(x, constant(2.5))]
    outputs += [ops.exp(x * y) * ops.sin(x) + ops.cos(x), ops.tanh(ops.sin(y + c)) - ops.log(x), ops.exp(x)]
    outputs += [ops.sin(x * 2.0), ops.cos(x * 2.0), ops.cos(x * 3.0), reductions.total((0,), False)(ops.exp(y) * x)]
    outputs += [
        ops.exp(rows * y),
        reductions.total((1,), False)(ops.log1p(rows * rows)),
        reductions.total((0,), False)(ops.exp(rows)),
    ]
    outputs += [integers.to_real(places) * ops.exp(x)]
    return Graph((x, y, c, places), tuple(outputs))


def bits(found: Any) -> list[Any]:
    return [np.where(np.isnan(x), 0.0, x).view(np.int64).tolist() for x in map(np.atleast_1d, found)]


@pytest.mark.parametrize("n", [2, 8, 13, 21])
def test_the_same_bits_as_one_loop(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [values(n, 1), values(n, 2), 1.5, np.arange(n)]
    graph = of_length(n)
    found = load(graph)
    calls = found.text.source.count("vector::")
    assert "  vector::sin_cos(" in found.text.source
    got = found(*given)
    monkeypatch.setattr(distribute, "SHORT", 0)
    whole = load(of_length(n))
    assert "[i" in whole.text.source and "  vector::" not in whole.text.source and calls
    assert bits(got) == bits(whole(*given))
    with np.errstate(all="ignore"):
        for a, b in zip(got, interpret(graph, given), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-300, equal_nan=True)


def parts(function: Any, *arguments: Any) -> tuple[int, int]:
    """How many loops there are, and calls of functions of whole arrays."""
    lines = dg.cpp(function, *arguments).splitlines()
    return sum("for (" in line for line in lines), sum(line.startswith("  vector::") for line in lines)


def test_a_function_of_an_array_in_memory_has_no_loop() -> None:
    assert parts(np.exp, np.ones(5)) == (0, 1)
    assert parts(lambda x: np.exp(np.sin(x)), np.ones(5)) == (0, 2)
    assert parts(lambda x: np.exp(x) * np.sin(x), np.ones(5)) == (1, 2)
    assert parts(lambda x: np.exp(2.0 * x), np.ones(5)) == (1, 1)


def test_a_sine_and_a_cosine_of_the_same_angles_are_one_call() -> None:
    assert parts(lambda x: np.sin(x) * np.cos(x), np.ones(5)) == (1, 1)
    assert parts(lambda x: np.sin(x) * np.cos(2.0 * x), np.ones(5)) == (2, 2)


def test_what_is_long_or_runs_often_stays_one_loop() -> None:
    def often(x: Any, n: Any) -> Any:
        while n > 0.0:
            x, n = np.exp(-x), n - 1.0
        return x

    assert parts(lambda x: np.exp(2.0 * x), np.ones(distribute.SHORT)) == (1, 1)
    assert parts(lambda x: np.exp(2.0 * x), np.ones(distribute.SHORT + 1)) == (1, 0)
    assert parts(often, np.ones(5), 3.0)[1] == 0


def test_there_is_a_limit_on_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distribute, "ROOM", 64)
    assert parts(lambda x: np.exp(2.0 * x) + x, np.ones(5)) == (1, 0)


def test_an_array_that_is_overwritten() -> None:
    """What is read again after a call is what it was before."""

    def f(x: Any) -> Any:
        y = (x * 2.0).copy()
        y[1:] = np.exp(y[:-1]) + y[1:]
        z = np.exp(y) * y
        return z[::-1] * y

    x = np.linspace(-1.0, 1.0, 9)
    np.testing.assert_allclose(dg.compile(f)(x), f(x), rtol=1e-14)
    np.testing.assert_allclose(
        dg.compile(dg.grad(lambda x: np.sum(f(x))))(x), dg.grad(lambda x: np.sum(f(x)))(x), rtol=1e-13
    )
