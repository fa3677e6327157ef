"""Hoisting of loop-invariant array reads: what is proved invariant; nothing else changes. Costs three seconds."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynagrad.autodiff.derive import generate_adjoints
from dynagrad.codegen import graph as native
from dynagrad.ir import sin
from dynagrad.ir.builders import cond, repeat, while_
from dynagrad.ir.control import COND, LOOPS, PUSH, REPEAT, WHILE, Graph, Loop, part, part_types
from dynagrad.ir.interpret import run
from dynagrad.ir.node import Node, constant, fresh, order, whole
from dynagrad.ir.ops.places import at_add, at_set
from dynagrad.ir.ops.reductions import total
from dynagrad.ir.types import arrays, integer, real
from dynagrad.passes.loops import invariant_reads
from dynagrad.passes.optimise import optimise

N = 6
A = arrays(real, (N, N))


@pytest.fixture
def always(monkeypatch):
    """Every read that can be hoisted is, also where that would not pay."""
    monkeypatch.setattr(invariant_reads, "WORTH", 0)


def subgraphs(node: Node) -> tuple[Graph, ...]:
    if node.operation is COND:
        return (node.attribute.then, node.attribute.otherwise)
    return (node.attribute.body,) if node.operation in LOOPS else ()


def nodes(graph: Graph, depth: int = 0) -> Iterator[tuple[Node, int]]:
    """All nodes of a graph and of those in it, and how many loops are around them."""
    for node in order(graph.outputs):
        yield node, depth
        for inner in subgraphs(node):
            yield from nodes(inner, depth + (node.operation is not COND))


def captured(graph: Graph) -> list[tuple[int, ...]]:
    """The shapes of the reals that come into loops from outside, without whole matrices."""
    found = []
    for node, _ in nodes(graph):
        if node.operation in (REPEAT, WHILE):
            loop: Loop = node.attribute
            outside = loop.body.inputs[loop.states + (node.operation is REPEAT) :]
            found += [v.shape for v in outside if v.type.kind == "real" and v.shape != (N, N)]
    return found


def rewritten(graph: Graph) -> Graph:
    """The graph with the invariant reads of its first loop hoisted."""
    outputs = []
    for o in graph.outputs:
        new = invariant_reads.hoist_reads(o.arguments[0])
        outputs.append(part(new, o.attribute))
    return Graph(graph.inputs, tuple(outputs))


def hoist_reads(function: Callable[[Node], Node]) -> list[tuple[int, ...]]:
    """The shapes of the hoisted reads that loops take as inputs; the outermost loop makes the result of the function.

    It is checked on the way that the value stays what it was.
    """
    x = fresh(A)
    graph = Graph((x,), (function(x),))
    assert captured(graph) == []
    new = rewritten(graph)
    value = np.random.default_rng(1).uniform(-1.0, 1.0, (N, N))
    np.testing.assert_array_equal(run(graph, [value])[0], run(new, [value])[0])
    return captured(new)


def nest(rounds: Any, write: Callable[..., Any], read: Callable[..., Any], inner: Callable[..., Any]) -> Any:
    """For each k a loop over i of `rounds(k)` rounds, in it one over j: what is read is added to what is written."""

    def function(a: Node) -> Node:
        def of_k(k: Node, a: Node) -> list[Node]:
            def of_i(i: Node, a: Node) -> list[Node]:
                def of_j(j: Node, a: Node) -> list[Node]:
                    return [at_add(a, write(k, i, j), sin(a[read(k, i, j)]))]

                return repeat(inner(k), of_j, [a])

            return repeat(rounds(k), of_i, [a])

        return repeat(N, of_k, [a])[0]

    return function


below = lambda k: whole(N - 1) - k  # noqa: E731  rows below row k
ROW, COLUMN, NUMBER = (N,), (N,), ()


class TestWhatIsProved:
    pytestmark = pytest.mark.usefixtures("always")

    def test_a_row_above_those_that_are_written(self):
        f = nest(below, lambda k, i, j: (k + 1 + i, j), lambda k, i, j: (k, j), lambda k: N)
        assert hoist_reads(f) == [ROW, ROW]  # into the loop over i, and the one over j in it

    def test_a_row_below_those_that_are_written(self):
        f = nest(lambda k: k, lambda k, i, j: (i, j), lambda k, i, j: (k, j), lambda k: N)
        assert hoist_reads(f) == [ROW, ROW]

    def test_a_column_beside_those_that_are_written(self):
        f = nest(below, lambda k, i, j: (i, k + 1 + j), lambda k, i, j: (i, k), below)
        assert hoist_reads(f)[0] == COLUMN

    def test_a_single_number(self):
        f = nest(below, lambda k, i, j: (k + 1 + i, j), lambda k, i, j: (k, k), lambda k: N)
        assert hoist_reads(f) == [NUMBER, NUMBER]

    def test_a_row_of_which_the_number_is_known(self):
        f = nest(lambda k: N - 1, lambda k, i, j: (i + 1, j), lambda k, i, j: (0, j), lambda k: N)
        assert ROW in hoist_reads(f)

    def test_rows_written_from_the_last_one_up(self):
        f = nest(below, lambda k, i, j: (whole(N - 1) - i, j), lambda k, i, j: (k, j), lambda k: N)
        assert hoist_reads(f) == [ROW, ROW]

    def test_a_piece_of_a_row(self):
        f = nest(below, lambda k, i, j: (k + 1 + i, slice(1, 4)), lambda k, i, j: (k, slice(0, 3)), lambda k: 2)
        assert hoist_reads(f) == [(3,), (3,)]

    def test_slices_beside_each_other(self):
        f = nest(lambda k: 2, lambda k, i, j: (k, slice(0, 3)), lambda k, i, j: (k, slice(3, 6)), lambda k: 2)
        assert (3,) in hoist_reads(f)

    def test_rows_from_the_end_that_do_not_meet(self):
        """Row k - 1 is the last one in the first round; the rows k to k + 4 stop before it."""
        f = nest(lambda k: 1, lambda k, i, j: (k + i, j), lambda k, i, j: (k - 1, j), lambda k: N)
        assert ROW in hoist_reads(f)

    def test_in_a_branch(self):
        def f(a):
            def of_k(k, a):
                def of_i(i, a):
                    there = (k + 1 + i, 0)
                    return cond(a[there] > 0.0, lambda: [at_add(a, there, sin(a[k, i]))], lambda: [a])

                return repeat(below(k), of_i, [a])

            return repeat(N, of_k, [a])[0]

        assert ROW in hoist_reads(f)

    def test_in_a_loop_of_unknown_length(self):
        def f(a):
            def of_k(k, a):
                def of_i(i, a):
                    return [i + 1, at_add(a, (k + 1 + i, 0), sin(a[k, i]))]

                return while_(lambda i, a: i < below(k), of_i, [whole(0), a])[1:]

            return repeat(N, of_k, [a])[0]

        assert ROW in hoist_reads(f)

    def test_below_a_loop_of_unknown_length(self):
        def f(a):
            def of_k(k, a):
                return [
                    k + 1,
                    *repeat(below(k), lambda i, a: [at_add(a, (k + 1 + i, 0), sin(a[k, i]))], [a]),
                ]

            return while_(lambda k, a: k < N, of_k, [whole(0), a])[1]

        assert ROW in hoist_reads(f)

    def test_what_is_set(self):
        def f(a):
            def of_k(k, a):
                return repeat(below(k), lambda i, a: [at_set(a, (k + 1 + i, i), sin(a[k, i]))], [a])

            return repeat(N, of_k, [a])[0]

        assert ROW in hoist_reads(f)

    def test_a_number_that_grows_beside_the_counter(self):
        def f(a):
            def of_i(i, at, a):
                return [at + 1, at_add(a, (at, i), sin(a[0, i]))]

            return repeat(N - 1, of_i, [whole(1), a])[1]

        assert ROW in hoist_reads(f)


class TestWhatIsNot:
    pytestmark = pytest.mark.usefixtures("always")

    def test_the_row_that_is_written(self):
        f = nest(below, lambda k, i, j: (k + i, j), lambda k, i, j: (k, j), lambda k: N)
        assert hoist_reads(f) == []

    def test_a_row_that_a_later_round_writes(self):
        f = nest(below, lambda k, i, j: (k + 1 + i, j), lambda k, i, j: (k + 1, j), lambda k: N)
        assert hoist_reads(f) == []

    def test_a_row_that_the_round_before_has_written(self):
        f = nest(below, lambda k, i, j: (k + 1 + i, j), lambda k, i, j: (k + i, j), lambda k: N)
        assert [s for s in hoist_reads(f) if s == ROW] == [ROW]  # of the innermost loop alone, which writes another

    def test_what_the_round_before_has_written_in_the_same_row(self):
        """In one and the same round, i + 1 is another place than i."""
        f = nest(lambda k: whole(N - 1), lambda k, i, j: (k, i), lambda k, i, j: (k, i + 1), lambda k: 1)
        assert ROW not in hoist_reads(f)

    def test_indices_that_are_only_known_inside(self):
        f = nest(below, lambda k, i, j: (i, j + 1), lambda k, i, j: (i, 0 * j), lambda k: N - 1)
        assert hoist_reads(f) == [ROW]  # into the loop over j, around which i is known

    def test_rows_from_the_end_that_meet(self):
        """Row k - 1 is the last one in the first round, and so is row k + 5."""
        f = nest(lambda k: whole(N) - k, lambda k, i, j: (k + i, j), lambda k, i, j: (k - 1, j), lambda k: N)
        assert hoist_reads(f) == []

    def test_a_row_that_is_out_of_range_where_the_loop_does_not_run(self):
        f = nest(lambda k: whole(3) - k, lambda k, i, j: (k + i, j), lambda k, i, j: (k + 3, j), lambda k: N)
        assert hoist_reads(f) == []

    def test_a_place_in_a_row_that_is_out_of_range_where_an_inner_loop_does_not_run(self):
        """What depends on no counter of the inner loop would be moved out of it."""
        f = nest(lambda k: whole(3) - k, lambda k, i, j: (1 + i, 0 * j), lambda k, i, j: (0, k * 2), lambda k: 2)
        assert hoist_reads(f) == []

    def test_a_row_of_which_the_number_comes_from_outside(self):
        def f(a):
            m = fresh(integer)
            return repeat(N - 1, lambda i, a: [at_add(a, (m + 1 + i, 0), sin(a[m, i]))], [a])[0]

        x = fresh(A)
        node = f(x).arguments[0]
        assert invariant_reads.hoist_reads(node) is node  # it may be out of range, and the loop without rounds

    def test_an_array_that_something_else_looks_at(self):
        def f(a):
            def of_k(k, a, s):
                return repeat(
                    below(k),
                    lambda i, a, s: [at_add(a, (k + 1 + i, 0), sin(a[k, i])), s + total((0, 1))(a)],
                    [a, s],
                )

            return repeat(N, of_k, [a, 0.0])[0]

        assert hoist_reads(f) == []

    def test_an_array_that_becomes_another(self):
        def f(a):
            def of_k(k, a):
                return repeat(below(k), lambda i, a: [at_add(a, (k + 1 + i, 0), sin(a[k, i])) * 0.5], [a])

            return repeat(N, of_k, [a])[0]

        assert hoist_reads(f) == []

    def test_two_arrays_that_change_places(self):
        def f(a):
            def of_k(k, a, b):
                return repeat(below(k), lambda i, a, b: [b, at_add(a, (k + 1 + i, 0), sin(a[k, i]))], [a, b])

            return repeat(N, of_k, [a, a * 2.0])[0]

        assert hoist_reads(f) == []

    def test_one_of_two_branches_makes_another(self):
        def f(a):
            def of_k(k, a):
                def of_i(i, a):
                    return cond(i > 1, lambda: [at_add(a, (k + 1 + i, 0), sin(a[k, i]))], lambda: [a * 0.5])

                return repeat(below(k), of_i, [a])

            return repeat(N, of_k, [a])[0]

        assert hoist_reads(f) == []


class TestWhatPays:
    def of_one_row(self, often, length):
        def f(a):
            return repeat(often, lambda i, a: repeat(length, lambda j, a: [at_add(a, (i + 1, j), a[0, j])], [a]), [a])[
                0
            ]

        x = fresh(arrays(real, (40, 40)))
        return invariant_reads.hoist_reads(f(x).arguments[0]).arguments[2:]

    def test_a_row_that_is_read_often(self):
        assert [row.shape for row in self.of_one_row(30, 40)] == [(40,)]

    def test_not_a_long_row_of_which_little_is_read(self):
        assert not self.of_one_row(30, 2)

    def test_not_what_is_read_once(self):
        assert not self.of_one_row(1, 40)


def determinant(a: Node) -> Node:
    n = a.shape[0]

    def column(k, a, det):
        def row(i, a):
            i = i + k + 1
            factor = a[i, k] / a[k, k]
            return repeat(n - 1 - k, lambda j, a: [at_add(a, (i, j + k + 1), -(factor * a[k, j + k + 1]))], [a])

        return [repeat(n - 1 - k, row, [a])[0], det * a[k, k]]

    return repeat(n, column, [a, 1.0])[1]


def gradient(x: Node, y: Node) -> Node:
    found = generate_adjoints([y], [constant(1.0)], [x])[x]
    return constant(np.zeros(x.shape)) if found is None else found


class TestBranchesOfALoop:
    """Without more, what a branch reads of an array would have the whole array saved in each round."""

    def saved(self, function):
        x, a = fresh(A), np.random.default_rng(2).uniform(-1.0, 1.0, (N, N))
        y = total((0, 1))(function(x) * constant(np.arange(1.0, N * N + 1.0).reshape(N, N)))
        value, slope = Graph((x,), (y,)), optimise(Graph((x,), (gradient(x, y),)))
        h = 1e-6
        moved = (h * np.eye(N * N)).reshape(N * N, N, N)
        differences = [(run(value, [a + e])[0] - run(value, [a - e])[0]) / (2 * h) for e in moved]
        np.testing.assert_allclose(run(slope, [a])[0].ravel(), differences, rtol=1e-6, atol=1e-6)
        pushed = [a for n, _ in nodes(slope) if n.operation is PUSH for a in n.arguments[1:] if a.type.kind == "real"]
        return sorted(a.shape for a in pushed)

    def test_numbers(self):
        def of_k(k, a):
            return cond(a[k, k] > 0.0, lambda: [at_add(a, (k, 0), a[k, 1] * a[k, 2])], lambda: [a])

        assert self.saved(lambda a: repeat(N, of_k, [a])[0]) == [(), (), ()]  # one tells which branch

    def test_a_row_of_a_loop_in_a_branch(self, monkeypatch):
        monkeypatch.setattr(invariant_reads, "WORTH", 0)

        def of_k(k, a):
            def of_i(i, a):
                return [at_add(a, (k + 1 + i, i), sin(a[k, i]))]

            return cond(a[k, k] > 0.0, lambda: repeat(below(k), of_i, [a]), lambda: [a])

        assert (N, N) not in self.saved(lambda a: repeat(N, of_k, [a])[0])

    def test_branches_in_branches(self):
        def of_k(k, a):
            def inner():
                return cond(a[0, k] > 0.1, lambda: [at_set(a, (k, 0), a[k, 1] * a[k, 2])], lambda: [a])

            return cond(a[k, k] > 0.0, inner, lambda: [at_add(a, (0, k), a[k, 1] * a[k, 1])])

        assert (N, N) not in self.saved(lambda a: repeat(N, of_k, [a])[0])

    def test_not_most_of_an_array(self):
        def of_k(k, a):
            return cond(a[k, k] > 0.0, lambda: [at_add(a, slice(0, 3), a[2:5] * a[1:4])], lambda: [a])

        assert (N, N) in self.saved(lambda a: repeat(N, of_k, [a])[0])

    def test_not_what_is_only_in_range_in_the_branch(self):
        def of_k(k, a):
            return cond(k < N - 1, lambda: [at_add(a, (k, 0), a[k + 1, 1] * a[k, 2])], lambda: [a])

        assert (N, N) in self.saved(lambda a: repeat(N, of_k, [a])[0])


class TestElimination:
    x = fresh(arrays(real, (24, 24)))

    @pytest.fixture(scope="class")
    def graph(self):
        return optimise(Graph((self.x,), (gradient(self.x, determinant(self.x)),)))

    def test_a_row_and_the_pivot_are_saved_once_for_each_column(self, graph):
        pushed = sorted((depth, a.shape) for n, depth in nodes(graph) if n.operation is PUSH for a in n.arguments[1:])
        assert pushed == [(1, ()), (1, ()), (1, (24,)), (2, ())]  # the pivot, the product so far, the row; the factor

    def test_the_adjoint_of_a_row_is_summed_in_a_row(self, graph):
        states = [
            [t.shape for t in part_types(n) if t.shape == (24,)]
            for n, depth in nodes(graph)
            if n.operation is REPEAT and depth
        ]
        assert sum(s == [(24,)] for s in states) == 2  # in the loops over rows and columns, backward

    @pytest.mark.parametrize("runs", [run, native.run])
    def test_the_gradient_is_that_of_a_determinant(self, graph, runs):
        rng = np.random.default_rng(3)
        value = np.eye(24) + rng.uniform(-0.5, 0.5, (24, 24)) / 24
        expected = np.linalg.det(value) * np.linalg.inv(value).T
        np.testing.assert_allclose(runs(graph, [value])[0], expected, rtol=1e-10, atol=1e-12)

    def test_the_value_beside_it_is_computed_by_the_same_loops(self):
        y = determinant(self.x)
        graph = optimise(Graph((self.x,), (y, gradient(self.x, y))))
        assert sum(n.operation is REPEAT for n in order(graph.outputs)) == 2


# -- random nests ------------------------------------------------------------------------------------------------------


SCHEMES = [
    # rounds of inner loops, what is read, and what is written, as an offset and multiples of the outermost counter and
    # of one within; the second column is for arrays of n rows
    lambda n: ((n - 1, -1), (0, 1, 0), (1, 1, 1)),  # rows below row k
    lambda n: ((0, 1), (0, 1, 0), (0, 0, 1)),  # rows above it
    lambda n: ((n - 1, -1), (n - 1, -1, 0), (n - 2, -1, -1)),  # the same from the last one up
    lambda n: ((n - 1, 0), (0, 0, 0), (1, 0, 1)),  # all but the first
    lambda n: ((n - 2, 0), (-1, 0, 0), (0, 0, 1)),  # all but the last two
    lambda n: ((n - 1, -1), (0, 1, 0), (0, 1, 1)),  # row k, too
    lambda n: ((n, -1), (-1, 1, 0), (0, 1, 1)),  # the one before it, which may be the last
]


class Nest:
    """Loops within each other that change an array at places: as Python with numpy, and as a graph.

    A form is an offset and a multiple of the counter of each loop. Indices are drawn from forms that are in range
    whenever they are used, most of them so that what is read is not written, or nearly so.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.n = self.random.randint(3, 5)
        self.often, self.read, self.written = self.random.choice(SCHEMES)(self.n)
        self.axis = self.random.randrange(2)
        self.wild = self.random.choice((0.0, 0.1, 0.5))
        rounds = (self.random.choice((self.n, self.n - 1)),)
        self.body = [("repeat", rounds, self.statements([(k,) for k in range(rounds[0])], 3))]

    def form(self, ranges: list[tuple[int, ...]], like: tuple[int, ...] | None) -> tuple[int, ...]:
        depth = len(ranges[0])
        if like is not None and depth > 1 and self.random.random() >= self.wild:
            inner = [0] * (depth - 1)
            inner[self.random.randrange(depth - 1)] = like[2]
            form = (*like[:2], *inner)
            if self.in_range(form, ranges):
                return form
        while True:
            form = (
                self.random.randint(-self.n, self.n),
                *(self.random.choice((0, 0, 1, 1, -1, 2)) for _ in range(depth)),
            )
            if self.in_range(form, ranges):
                if all(value(form, at) >= 0 for at in ranges) or self.random.random() < 0.1:
                    return form

    def in_range(self, form: tuple[int, ...], ranges: list[tuple[int, ...]]) -> bool:
        return all(-self.n <= value(form, at) < self.n for at in ranges)

    def place(self, ranges: list[tuple[int, ...]], like: tuple[int, ...]) -> Any:
        return tuple(self.form(ranges, like if axis == self.axis else None) for axis in range(2))

    def statements(self, ranges: list[tuple[int, ...]], depth: int) -> list[Any]:
        if not ranges:
            return []
        found: list[Any] = []
        for _ in range(self.random.randint(1, 2)):
            kinds = ["loop", "loop", "loop", "branch"] if depth == 3 else ["write", "write", "loop", "branch"]
            kind = self.random.choice(kinds if depth else ["write"])
            if kind == "write":
                how = self.random.choice(["add", "add", "set"])
                reads = (self.place(ranges, self.read) for _ in range(2))
                found.append((how, self.place(ranges, self.written), *reads))
            elif kind == "branch":
                test = self.random.choice([self.place(ranges, self.read), None])
                found.append(("branch", test, self.statements(ranges, depth - 1), self.statements(ranges, depth - 1)))
            else:
                how = self.random.choice(["repeat", "repeat", "while"])
                count = self.count(ranges)
                inner = [(*at, c) for at in ranges for c in range(max(value(count, at), 0))]
                found.append((how, count, self.statements(inner, depth - 1)))
        return found

    def count(self, ranges: list[tuple[int, ...]]) -> tuple[int, ...]:
        rest = [0] * (len(ranges[0]) - 1)
        if self.random.random() >= self.wild:
            return (*self.often, *rest)
        return (self.random.randint(-1, self.n), self.random.choice((0, 1, -1)), *rest)

    # -- with numpy, also with complex numbers

    def dense(self, a: Any) -> Any:
        a = a.copy()
        self.run(self.body, (), a)
        return np.sum(a * np.arange(1.0, a.size + 1.0).reshape(a.shape)) / a.size

    def run(self, body: list[Any], at: tuple[int, ...], a: Any) -> None:
        for kind, *rest in body:
            if kind in ("add", "set"):
                to, x, y = (tuple(value(f, at) for f in place) for place in rest)
                new = np.sin(a[x] * a[y] + 0.5)
                a[to] = new if kind == "set" else a[to] + new
            elif kind == "branch":
                test, then, otherwise = rest
                holds = at[-1] > 1 if test is None else a[tuple(value(f, at) for f in test)].real > 0.25
                self.run(then if holds else otherwise, at, a)
            else:
                for c in range(value(rest[0], at)):
                    self.run(rest[1], (*at, c), a)

    # -- as a graph

    def traced(self, a: Node) -> Node:
        a = self.trace(self.body, (), a)
        weights = constant(np.arange(1.0, a.size + 1.0).reshape(a.shape))
        return total((0, 1))(a * weights) / a.size

    def trace(self, body: list[Any], at: tuple[Node, ...], a: Node) -> Node:
        for kind, *rest in body:
            if kind in ("add", "set"):
                to, x, y = (tuple(number(f, at) for f in place) for place in rest)
                a = (at_set if kind == "set" else at_add)(a, to, sin(a[x] * a[y] + 0.5))
            elif kind == "branch":
                test, then, otherwise = rest
                holds = at[-1] > 1 if test is None else a[tuple(number(f, at) for f in test)] > 0.25
                [a] = cond(
                    holds,
                    lambda a=a, body=then: [self.trace(body, at, a)],
                    lambda a=a, body=otherwise: [self.trace(body, at, a)],
                )
            elif kind == "repeat":
                [a] = repeat(number(rest[0], at), lambda c, a, body=rest[1]: [self.trace(body, (*at, c), a)], [a])
            else:
                count = number(rest[0], at)
                _, a = while_(
                    lambda c, a, count=count: c < count,
                    lambda c, a, body=rest[1]: [c + 1, self.trace(body, (*at, c), a)],
                    [whole(0), a],
                )
        return a


def value(form: tuple[int, ...], at: tuple[int, ...]) -> int:
    return form[0] + sum(t * c for t, c in zip(form[1:], at, strict=True))


def number(form: tuple[int, ...], at: tuple[Node, ...]) -> Node:
    found = whole(form[0])
    for t, c in zip(form[1:], at, strict=True):
        if t:
            found = found + c * t
    return found


def slopes(function: Callable[[Any], Any], a: Any) -> Any:
    """The gradient by steps along the imaginary axis, which lose no digits."""
    out = np.zeros(a.shape)
    for place in itertools.product(*map(range, a.shape)):
        moved = a.astype(complex)
        moved[place] += 1e-100j
        out[place] = function(moved).imag / 1e-100
    return out


def sample(n: int, seed: int) -> Any:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (n, n))


@pytest.mark.usefixtures("always")
class TestRandomNests:
    @settings(max_examples=30, deadline=None, derandomize=True)
    @given(st.integers(0, 10**6))
    def test_values_stay_what_they_were(self, seed):
        nest = Nest(seed)
        x, a = fresh(arrays(real, (nest.n, nest.n))), sample(nest.n, seed)
        loops = [n for n in order([nest.traced(x)]) if n.operation in (REPEAT, WHILE)]
        assert run(Graph((x,), (nest.traced(x),)), [a])[0] == pytest.approx(nest.dense(a), rel=1e-12)
        for loop in loops:
            new = invariant_reads.hoist_reads(loop)
            outputs = [part(n, i) for n in (loop, new) for i in range(len(part_types(n)))]
            found = run(Graph((x,), tuple(outputs)), [a])
            for was, now in zip(found[: len(found) // 2], found[len(found) // 2 :], strict=True):
                np.testing.assert_array_equal(was, now)

    @settings(max_examples=15, deadline=None, derandomize=True)
    @given(st.integers(0, 10**6))
    def test_gradients_are_those_of_dense_arrays(self, seed):
        nest = Nest(seed)
        x, a = fresh(arrays(real, (nest.n, nest.n))), sample(nest.n, seed)
        graph = Graph((x,), (gradient(x, nest.traced(x)),))
        np.testing.assert_allclose(run(graph, [a])[0], slopes(nest.dense, a), rtol=1e-9, atol=1e-9)

    @settings(max_examples=3, deadline=None, derandomize=True)
    @given(st.integers(0, 10**6))
    def test_second_derivatives(self, seed):
        nest = Nest(seed)
        x, a, v = fresh(arrays(real, (nest.n, nest.n))), sample(nest.n, seed), sample(nest.n, seed + 1)
        along = total((0, 1))(gradient(x, nest.traced(x)) * constant(v))
        graph = optimise(Graph((x,), (gradient(x, along),)))
        h = 1e-5
        expected = (slopes(nest.dense, a + h * v) - slopes(nest.dense, a - h * v)) / (2 * h)
        np.testing.assert_allclose(run(graph, [a])[0], expected, rtol=1e-5, atol=1e-5)

    @settings(max_examples=4, deadline=None, derandomize=True)
    @given(st.integers(0, 10**6))
    def test_compiled(self, seed):
        nest = Nest(seed)
        x, a = fresh(arrays(real, (nest.n, nest.n))), sample(nest.n, seed)
        y = nest.traced(x)
        graph = optimise(Graph((x,), (y, gradient(x, y))))
        found, slope = native.run(graph, [a])
        assert found == pytest.approx(nest.dense(a), rel=1e-12)
        np.testing.assert_allclose(slope, slopes(nest.dense, a), rtol=1e-9, atol=1e-9)
