"""Bounds of whole numbers and of work, where a graph stands. One loop is compiled, and interrupted: a second."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dynagrad.codegen.graph import emit, load
from dynagrad.ir.builders import call, cond, function, repeat, while_
from dynagrad.ir.control import LOOPS, Graph
from dynagrad.ir.node import Node, fresh, order, whole
from dynagrad.ir.ops.arrays import matmul, transpose
from dynagrad.ir.ops.integers import floor_divide, minimum
from dynagrad.ir.ops.places import at_add
from dynagrad.ir.ops.reductions import total
from dynagrad.ir.ops.scalars import sin
from dynagrad.ir.types import arrays, integer, real
from dynagrad.passes.bounds import GraphBounds
from interrupts import ctrl_c

X, N = fresh(real), fresh(integer)
V, M = fresh(arrays(real, (6,))), fresh(arrays(real, (6, 6)))
INPUTS = (X, N, V, M)


def bounds(*outputs: Any) -> GraphBounds:
    return GraphBounds(Graph(INPUTS, tuple(outputs)))


def loop_of(graph: Graph) -> Node:
    [found] = [n for n in order(graph.outputs) if n.operation in LOOPS]
    return found


def doubled(rounds: Any) -> list[Node]:
    return repeat(rounds, lambda i, y: [y + y], [X])


class TestWholeNumbers:
    """`most_rounds` of an inner loop, whose length is a function of the counter of the outer one."""

    @pytest.mark.parametrize(
        ("length", "most"),
        [
            (lambda i: i, 9),
            (lambda i: i * 3 + 1, 28),
            (lambda i: whole(9) - i, 9),
            (lambda i: i - i, 0),
            (lambda i: i - 20, 0),
            (lambda i: floor_divide(i, 2), 4),
            (lambda i: floor_divide(i, 2) * 2 + i, 17),
            (lambda i: minimum(i, whole(50)), 9),
            (lambda i: i * i, None),
            (lambda i: i + N, None),
        ],
    )
    def test_the_most_rounds_of_a_loop(self, length: Callable[[Node], Node], most: int | None) -> None:
        outer = bounds(*repeat(10, lambda i, y: repeat(length(i), lambda j, z: [z + z], [y]), [X]))
        [inside] = outer.inside(loop_of(outer.graph))
        assert inside.most_rounds(loop_of(inside.graph)) == most

    def test_an_index_within_an_axis_needs_no_check(self) -> None:
        def body(i: Node, y: Node) -> list[Node]:
            return [y + V[i] + V[i + 1] + V[i - 1]]

        found = bounds(*repeat(6, body, [X]))
        loop = loop_of(found.graph)
        [inside] = found.inside(loop)
        counter = loop.attribute.body.inputs[0]
        assert inside.within(counter, 6) and inside.within(counter + 1, 7)
        assert not inside.within(counter + 1, 6) and not inside.within(counter - 1, 6)

    def test_a_graph_that_stands_in_two_places_has_bounds_in_each(self) -> None:
        short, long = (loop_of(Graph(INPUTS, tuple(doubled(n)))) for n in (3, 3000))
        body = short.attribute.body
        forms = [GraphBounds(Graph(INPUTS, (n,))).inside(n)[0] for n in (short, long)]
        assert forms[0].within(body.inputs[0], 3) and not forms[1].within(long.attribute.body.inputs[0], 3)

    def test_what_a_branch_captures_is_known_in_it(self) -> None:
        def body(i: Node, y: Node) -> list[Node]:
            return cond(y > 0.0, lambda: repeat(i + 1, lambda j, z: [z + z], [y]), lambda: [y])

        [inside] = (found := bounds(*repeat(10, body, [X]))).inside(loop_of(found.graph))
        then, _ = inside.inside(loop_of(inside.graph))
        assert then.most_rounds(loop_of(then.graph)) == 10

    def test_a_long_chain_is_no_trouble(self) -> None:
        i: Node = N
        for _ in range(20_000):
            i = i + 1
        assert not bounds(i).within(i, 10)


class TestWork:
    @pytest.mark.parametrize(
        ("outputs", "work"),
        [
            ([X + X, X * X], 2),
            ([sin(V)], 6),
            ([total((0, 1))(M)], 36),
            ([matmul(M, M)], 216),
            ([V[2]], 1),
            ([at_add(V, 2, X)], 1),
            ([at_add(V, N, X)], 1),
            (doubled(100), 100),
            (repeat(10, lambda i, y: repeat(i, lambda j, z: [z + z], [y]), [X]), 90),
            (cond(X > 0.0, lambda: doubled(5), lambda: doubled(50)), 51),
            (doubled(N), None),
            (while_(lambda y: y < 3.0, lambda y: [y + y], [X]), None),
            (call(function("f", (real,), (real,), lambda x: [x * x]), X), None),
        ],
    )
    def test_it_is_about_the_number_of_operations(self, outputs: list[Any], work: int | None) -> None:
        assert bounds(*outputs).most_work == work

    def test_a_loop_without_bounds_counts_for_one_round(self) -> None:
        found = bounds(*repeat(N, lambda i, m: [matmul(m, m)], [M]), sin(X))
        assert found.work == 217 and found.most_work is None

    def test_a_call_of_the_runtime_is_more_than_its_result(self) -> None:
        m = fresh(arrays(real, (500, 500)))
        found = GraphBounds(Graph((m,), (matmul(m, m),))).work
        assert found > 500**3


def rounds(count: int, n: int) -> Graph:
    """A loop of products of matrices."""
    m = fresh(arrays(real, (n, n)))
    return Graph((m,), tuple(repeat(count, lambda i, y: [matmul(transpose((1, 0))(y), y)], [m])))


def test_loops_that_may_be_long_ask_whether_to_stop() -> None:
    for outputs, asks in (
        (doubled(100), False),
        (doubled(1 << 21), True),
        (doubled(N), True),
        (repeat(200, lambda i, y: doubled(1000), [X]), False),
        (repeat(2000, lambda i, y: repeat(1000, lambda j, z: [z + z], [y]), [X]), True),
    ):
        assert ("call.stops" in emit(Graph(INPUTS, tuple(outputs))).source) is asks
    assert "call.stops" not in emit(rounds(100, 4)).source
    assert "call.stops" in emit(rounds(100, 300)).source


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such clock")
def test_a_loop_over_large_matrices_is_interrupted_within_a_second() -> None:
    native = load(rounds(1_000_000, 300), optimise=1)
    with pytest.raises(KeyboardInterrupt), ctrl_c(0.3, within=1.0):
        native(np.eye(300))
