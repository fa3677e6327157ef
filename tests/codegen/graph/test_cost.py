"""Code generation takes linear time in the size of a graph.

Long straight-line code is split into functions for the compiler, which changes no value. Costs two seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dynagrad.autodiff.derive import generate_adjoints
from dynagrad.codegen.graph import emit, load
from dynagrad.codegen.graph.native import Native
from dynagrad.ir.builders import cond, repeat
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import Node, fresh
from dynagrad.ir.ops.places import at_set
from dynagrad.ir.ops.reductions import total
from dynagrad.ir.ops.scalars import sin, where
from dynagrad.ir.types import arrays, real
from dynagrad.passes.schedule import STRETCH

N = 5


def numbers(x: Node, n: int) -> Node:
    """The least cost of a way through a table, the table a list of lists."""
    row: list[Any] = [x[k % N] * k for k in range(8)]
    for i in range(n // 2):
        new = [row[0] + x[i % N]]
        for j in range(1, 8):
            least = where(row[j] < new[-1], row[j], new[-1])
            new.append(least + (x[i % N] - x[j % N]) * (x[i % N] - x[j % N]) * i)
        row = new
    return row[-1]


def choices(x: Node, n: int) -> Node:
    y: Any = x[0]
    for k in range(n):
        [y] = cond(y > x[k % N], lambda y=y, k=k: [sin(y) * k], lambda y=y, k=k: [y + x[k % N]])
    return y


def loops(x: Node, n: int) -> Node:
    y: Any = x[0]
    for k in range(n):
        [y] = repeat(N, lambda i, y, k=k: [sin(y) * x[i] + float(k)], [y])
    return y


def written(x: Node, n: int) -> Node:
    y = x
    for k in range(n):
        y = at_set(y, k % N, sin(y[(k + 1) % N]) * k)
    return total((0,))(y)


def vectors(x: Node, n: int) -> Node:
    y = x
    for k in range(n):
        y = sin(y * x + float(k)) + total((0,))(y)
    return total((0,))(y)


@pytest.mark.parametrize("function", [numbers, choices, loops, written, vectors])
def test_the_text_of_a_gradient_is_made_in_linear_time(function: Callable[[Node, int], Node]) -> None:
    seconds(function, 10)  # what is computed once
    for _ in range(3):  # a machine may have other work
        small, large = seconds(function, 20), seconds(function, 120)
        if large < 10 * small:
            return
    raise AssertionError(f"{large:.2f} s for six times what takes {small:.2f} s")


def gradient(function: Callable[[Node, int], Node], x: Node, n: int) -> Graph:
    y = function(x, n)
    slope = generate_adjoints([y], [1.0], [x])[x]
    assert isinstance(slope, Node)
    return Graph((x,), (y, slope))


def seconds(function: Callable[[Node, int], Node], n: int) -> float:
    x = fresh(arrays(real, (N,)))
    begin = time.process_time()
    assert Native(gradient(function, x, n), "f").source
    return time.process_time() - begin


def test_long_straight_code_is_cut_and_is_a_long_source() -> None:
    x = fresh(arrays(real, (N,)))
    graph = gradient(numbers, x, 100)
    native = load(graph, optimise=1)
    assert native.text.long
    pieces = native.text.source.split("kNever")
    assert len(pieces) > 2
    assert max(piece.count("\n") for piece in pieces) < 2 * STRETCH
    given = np.linspace(-1.0, 1.0, N)
    for found, wanted in zip(native(given), interpret(graph, [given]), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_short_code_is_not() -> None:
    assert not emit(gradient(numbers, fresh(arrays(real, (N,))), 20)).long
    x = fresh(arrays(real, (N,)))
    assert "kNever" not in Native(Graph((x,), (numbers(x, 10),)), "f").source
