"""Subsumed loops, which compute part of what another computes, are removed, and no others."""

from __future__ import annotations

from typing import Any

from dynagrad.ir.builders import repeat, while_
from dynagrad.ir.control import LOOPS, Graph, empty, pop, push
from dynagrad.ir.interpret import run
from dynagrad.ir.node import Node, fresh, order
from dynagrad.ir.types import integer, real
from dynagrad.ir.value_numbering.subsumed_loops import subsumed


def loops(graph: Graph) -> int:
    return sum(n.operation in LOOPS for n in order(graph.outputs))


def kept(inputs: list[Node], outputs: list[Any], *values: float) -> int:
    graph = Graph(tuple(inputs), tuple(outputs))
    small = subsumed(graph)
    assert run(small, values) == run(graph, values)
    return loops(small)


def test_a_loop_within_one_that_computes_more_is_dropped() -> None:
    x, a = fresh(real), fresh(real)
    [y] = while_(lambda y: y < 100.0, lambda y: [y * a + 1.0], [x])
    _, z, d = while_(lambda s, y, d: y < 100.0, lambda s, y, d: [s + y, 1.0 + a * y, d * a], [0.0, x, 1.0])
    assert kept([x, a], [y, z + d], 1.0, 3.0) == 1


def test_a_loop_that_saves_values_stands_for_one_that_does_not() -> None:
    x = fresh(real)
    u, v = repeat(5, lambda i, u, v: [v * 0.5, u + v], [x, x * 2.0])
    s, p, q = repeat(5, lambda i, s, p, q: [push(s, [p]), p + q, p * 0.5], [empty(), x * 2.0, x])
    _, (last,) = pop(s, [real])
    assert kept([x], [u, v, p, q, last], 1.5) == 1


def test_loops_that_differ_stay() -> None:
    x, n = fresh(real), fresh(integer)
    [a] = repeat(3, lambda i, y: [y * 2.0], [x])
    for b in (
        repeat(4, lambda i, y, z: [y * 2.0, z + y], [x, x]),  # more rounds
        repeat(3, lambda i, y, z: [y * 2.5, z + y], [x, x]),  # another step
        repeat(3, lambda i, y, z: [y * 2.0, z + y], [x + 1.0, x]),  # another beginning
    ):
        assert kept([x, n], [a, *b], 1.0, 3) == 2


def test_a_loop_that_needs_the_other_stays() -> None:
    x = fresh(real)
    [a] = repeat(3, lambda i, y: [y * 2.0], [x])
    b = repeat(3, lambda i, y, z: [y * 2.0, z + a], [x, x])
    assert kept([x], [a, *b], 1.0) == 2
