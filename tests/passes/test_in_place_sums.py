"""Sums of arrays accumulated in place: a loop that adds to zeros starts from what its sum is added to.

Costs a few seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynagrad.codegen.graph import run
from dynagrad.ir.builders import repeat, while_
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import Node, fresh, order, whole
from dynagrad.ir.ops.arrays import broadcast_to
from dynagrad.ir.ops.places import at_add, at_set
from dynagrad.ir.ops.scalars import add
from dynagrad.ir.types import arrays, integer, real
from dynagrad.passes.in_place_sums import sum_in_place

N = 7
VALUES = [np.linspace(-1.0, 2.0, N), np.linspace(0.5, -3.0, N) ** 2]
x, y, n = fresh(arrays(real, (N,))), fresh(arrays(real, (N,))), fresh(integer)
zeros = broadcast_to((N,))(0.0)


def sums(graph: Graph) -> int:
    """How many sums of whole arrays there are, outside of loops."""
    return sum(node.operation is add and node.shape == (N,) for node in order(graph.outputs))


def made(*outputs: Any, compiled: bool = False) -> Graph:
    """The graph with its sums in place. Its values agree with those before, also where loops have no rounds."""
    before = Graph((x, y, n), tuple(outputs))
    after = sum_in_place(before)
    for rounds in (0, 1, 4):
        wanted = interpret(before, [*VALUES, rounds])
        for runs in (interpret, run) if compiled else (interpret,):
            found = runs(after, [*VALUES, rounds])
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14)
    return after


def scattered(i: Node, s: Node) -> list[Any]:
    return [at_add(s, i, y[i + 1])]


class TestLoopsThatBeginWithAnother:
    def test_numbers_added_at_places(self) -> None:
        assert sums(made(x + repeat(n, scattered, [zeros])[0])) == 0

    def test_on_either_side(self) -> None:
        assert sums(made(repeat(n, scattered, [zeros])[0] + x)) == 0

    def test_whole_arrays_added_and_taken_away(self) -> None:
        assert sums(made(x + repeat(n, lambda i, s: [s + y * 2.0 - x], [zeros])[0])) == 0

    def test_loops_in_loops(self) -> None:
        assert sums(made(x + repeat(n, lambda i, s: repeat(i, scattered, [s]), [zeros])[0], compiled=True)) == 0

    def test_a_loop_of_unknown_length(self) -> None:
        [_, s] = while_(lambda i, s: i < n, lambda i, s: [i + 1, *scattered(i, s)], [whole(0), zeros])
        assert sums(made(x + s)) == 0

    def test_what_is_used_elsewhere_is_not_changed(self) -> None:
        assert sums(made(x + repeat(n, scattered, [zeros])[0], x, compiled=True)) == 0

    def test_one_after_the_other(self) -> None:
        [first], [second] = repeat(n, scattered, [zeros]), repeat(n, lambda i, s: [s + y], [zeros])
        assert sums(made(x + first + second)) == 0

    def test_two_sums_of_one_loop(self) -> None:
        s, t = repeat(n, lambda i, s, t: [*scattered(i, s), t - y], [zeros, zeros])
        assert sums(made(x + s, y * x + t, compiled=True)) == 0

    def test_two_loops_that_would_wait_for_each_other(self) -> None:
        [s, t] = repeat(n, lambda i, s, t: [*scattered(i, s), t * 0.5 + y], [zeros, x])
        [u, v] = repeat(n, lambda i, u, v: [*scattered(i, u), v * 0.5 + y], [zeros, x])
        assert sums(made(t + u, v + s, compiled=True)) == 1


class TestLoopsThatDoNot:
    def test_a_sum_that_is_looked_at_afterwards(self) -> None:
        [s] = repeat(n, scattered, [zeros])
        assert sums(made(x + s, s)) == 1

    def test_a_sum_that_a_round_looks_at(self) -> None:
        assert sums(made(x + repeat(n, lambda i, s: [at_add(s, i, s[0] + 1.0)], [zeros])[0])) == 1

    def test_a_sum_that_another_state_looks_at(self) -> None:
        s, t = repeat(n, lambda i, s, t: [*scattered(i, s), t + s[i]], [zeros, 0.0])
        assert sums(made(x + s, t)) == 1

    def test_a_sum_that_the_condition_looks_at(self) -> None:
        [s] = while_(lambda s: s[0] < 2.0, lambda s: [at_add(s, 0, 0.75)], [zeros])
        assert sums(made(x + s)) == 1

    def test_what_is_more_than_a_sum(self) -> None:
        assert sums(made(x + repeat(n, lambda i, s: [s * 0.5 + y], [zeros])[0])) == 1
        assert sums(made(x + repeat(n, lambda i, s: [s + s + y], [zeros])[0])) == 1
        assert sums(made(x + repeat(n, lambda i, s: [at_set(s, i, y[i])], [zeros])[0])) == 1
        assert sums(made(x + repeat(n, lambda i, s: [y - s], [zeros])[0])) == 1

    def test_a_sum_that_does_not_begin_at_zeros(self) -> None:
        assert sums(made(x + repeat(n, scattered, [y])[0])) == 1

    def test_a_sum_with_something_that_the_loop_makes(self) -> None:
        s, t = repeat(n, lambda i, s, t: [*scattered(i, s), t * 0.5], [zeros, x])
        assert sums(made(s + t)) == 1
