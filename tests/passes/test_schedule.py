"""Which arrays are kept and which overwritten: views of an array that a loop changes in place. Costs a few seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynagrad.codegen.graph import load
from dynagrad.ir.builders import cond, repeat
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import Node, fresh
from dynagrad.ir.ops.places import at_add
from dynagrad.ir.ops.reductions import total
from dynagrad.ir.types import arrays, integer, real

N = 7
WHOLE = 8 * N * N  # bytes


def test_views_that_a_loop_over_their_array_looks_at_are_copied() -> None:
    """A row lies in the array in one piece and could be looked at there, if the whole array were copied."""
    a, n = fresh(arrays(real, (N, N))), fresh(integer)

    def step(k: Node, a: Node, s: Node) -> list[Any]:
        row, column = a[k], a[:, k]
        [after] = repeat(n, lambda i, a: [at_add(a, (i, k), row[i] * a[i, i] + column[i])], [a])
        return [after, s + row[k] * total((0,))(row * column)]

    source = agree(Graph((a, n), tuple(repeat(N, step, [a, 0.0]))))
    assert source.count(f", {WHOLE})") == 1  # what comes in is not ours


def test_views_that_a_branch_looks_at_are_copied() -> None:
    a, n = fresh(arrays(real, (N, N))), fresh(integer)

    def step(k: Node, a: Node, s: Node) -> list[Any]:
        row = a[k]

        def changed() -> list[Any]:
            return repeat(n, lambda i, a: [at_add(a, (i, k), row[i] * a[i, i])], [a])

        return [*cond(a[k, 0] > 0.0, changed, lambda: [a]), s + total((0,))(row * row)]

    source = agree(Graph((a, n), tuple(repeat(N, step, [a, 0.0]))))
    assert source.count(f", {WHOLE})") == 1


def test_views_that_are_looked_at_after_the_loop() -> None:
    a, n = fresh(arrays(real, (N, N))), fresh(integer)

    def step(k: Node, a: Node, kept: Node) -> list[Any]:
        [after] = repeat(n, lambda i, a: [at_add(a, (k, i), a[i, k])], [a])
        return [after, a[k] * 0.5 + kept]

    agree(Graph((a, n), tuple(repeat(N, step, [a, a[0]]))))


@pytest.mark.parametrize("later", [True, False])
def test_views_of_an_array_that_is_looked_at_later_itself(later: bool) -> None:
    a, n = fresh(arrays(real, (N, N))), fresh(integer)

    def step(k: Node, a: Node, b: Node) -> list[Any]:
        row = a[k]
        [after] = repeat(n, lambda i, a: [at_add(a, (i, k), row[i] * a[i, i])], [a])
        return [after, a if later else b]

    agree(Graph((a, n), tuple(repeat(N, step, [a, a * 2.0]))))


def agree(graph: Graph) -> str:
    """Compares with what is interpreted; the C++."""
    native = load(graph)
    value = np.linspace(-1.0, 1.0, N * N).reshape(N, N)
    for rounds in (0, 3, N):
        for found, wanted in zip(native(value, rounds), interpret(graph, [value, rounds]), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-13)
    source: str = native.text.source
    return source
