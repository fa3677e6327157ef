"""Linear recurrences in loops, computed in two halves: the same values. Costs two seconds."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.autodiff.derive import generate_adjoints
from dynagrad.codegen.graph.native import Native
from dynagrad.ir.builders import call, cond, define, function, repeat, while_
from dynagrad.ir.control import LOOPS, REPEAT, Graph, GraphFunction
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import Node, constant, fresh, order, variable
from dynagrad.ir.ops import integers
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.types import arrays, integer, real
from dynagrad.passes.loops.recurrences import CHUNK, cut_recurrences
from dynagrad.passes.optimise import optimise

COUNTS = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK - 1, 2 * CHUNK, 3 * CHUNK, 3 * CHUNK + 5]


def is_cut(graph: Graph) -> bool:
    small = optimise(graph)
    return cut_recurrences(small) is not small


def run(graph: Graph, *arguments: Any) -> tuple[Any, ...]:
    return Native(graph, "f")(*arguments)


def same(graph: Graph, *arguments: Any) -> None:
    """Native code computes what is computed without it."""
    for ours, theirs in zip(run(graph, *arguments), interpret(graph, arguments), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-13)


def dear(i: Any) -> Any:
    """A coefficient that costs more than the chain."""
    return ops.sin(0.1 * i) * ops.exp(-0.01 * i)


class TestWhatIsCut:
    @pytest.mark.parametrize("count", COUNTS)
    def test_a_recurrence_with_a_number_added(self, count: int) -> None:
        n, x = fresh(integer), variable("x")
        [y] = repeat(n, lambda i, y: [dear(i) * y + ops.cos(1.0 * i)], [x])
        graph = Graph((n, x), (y,))
        assert is_cut(graph)
        same(graph, count, 0.7)
        expected = 0.7
        for i in range(count):
            expected = math.sin(0.1 * i) * math.exp(-0.01 * i) * expected + math.cos(i)
        assert run(graph, count, 0.7)[0] == pytest.approx(expected, rel=1e-11)

    @pytest.mark.parametrize("count", COUNTS)
    def test_two_numbers_and_sums_of_them(self, count: int) -> None:
        n, a, b = fresh(integer), variable("a"), variable("b")

        def step(i: Node, x: Node, y: Node, total: Node, rounds: Node) -> list[Node]:
            return [x - dear(i) * y, y / (2.0 + dear(i)), total + (dear(i) * x - y), 1.0 + rounds]

        graph = Graph((n, a, b), tuple(repeat(n, step, [a, b, 0.0, 2.0])))
        assert is_cut(graph)
        same(graph, count, 0.3, -1.2)
        assert run(graph, count, 0.3, -1.2)[3] == count + 2.0

    @pytest.mark.parametrize("count", COUNTS)
    def test_the_way_back_of_a_loop(self, count: int) -> None:
        """An equation of a pendulum, in both modes of the reverse mode."""
        n, x, v, k = fresh(integer), variable("x"), variable("v"), variable("k")

        def step(_: Node, x: Node, v: Node) -> list[Node]:
            middle = x + 0.005 * v
            force = -k * ops.sin(middle)
            return [middle + 0.005 * (v + 0.01 * force), v + 0.01 * force]

        [end, speed] = repeat(n, step, [x, v])
        adjoints = generate_adjoints([end * speed], [constant(1.0)], [x, v, k])
        found = tuple(a for a in (adjoints[w] for w in (x, v, k)) if a is not None)
        graph = Graph((n, x, v, k), found)
        assert is_cut(graph)
        same(graph, count, 0.5, 0.1, 2.0)
        second = generate_adjoints(found, [constant(1.0)] * 3, [x, v, k])
        same(Graph((n, x, v, k), tuple(a for a in second.values() if a is not None)), count, 0.5, 0.1, 2.0)

    def test_a_choice_that_does_not_depend_on_what_is_carried(self) -> None:
        n, x = fresh(integer), variable("x")

        def step(i: Node, y: Node) -> list[Node]:
            return [ops.where(dear(i) > 0.0, y * dear(i), 0.5 * y + ops.exp(-0.2 * i))]

        graph = Graph((n, x), tuple(repeat(n, step, [x])))
        assert is_cut(graph)
        same(graph, 100, 3.0)

    def test_an_infinite_value_that_is_not_chosen_stays_away(self) -> None:
        n, x = fresh(integer), variable("x")

        def step(i: Node, y: Node) -> list[Node]:
            return [ops.where(i > 3, y * (dear(i) / (1.0 * i)), y)]

        graph = Graph((n, x), tuple(repeat(n, step, [x])))
        assert is_cut(graph)
        assert math.isfinite(run(graph, 100, 3.0)[0])
        same(graph, 100, 3.0)

    def test_what_arrays_from_outside_hold(self) -> None:
        a, x = fresh(arrays(real, (200,))), variable("x")
        [y] = repeat(200, lambda i, y: [y * ops.tanh(a[i]) + ops.exp(a[199 - i])], [x])
        graph = Graph((a, x), (y,))
        assert is_cut(graph)
        same(graph, np.random.default_rng(0).normal(size=200), 1.5)

    @pytest.mark.parametrize("bad", [300, -301])
    def test_an_index_out_of_range_is_an_error_still(self, bad: int) -> None:
        a, n, x = fresh(arrays(real, (200,))), fresh(integer), variable("x")
        [y] = repeat(200, lambda i, y: [y * ops.tanh(a[i + n]) + ops.exp(a[i])], [x])
        graph = Graph((a, n, x), (y,))
        assert is_cut(graph)
        same(graph, np.ones(200), 0, 1.5)
        with pytest.raises(IndexError, match=f"index {bad} is out of range"):
            run(graph, np.ones(200), bad, 1.5)


class TestWhereTheyStand:
    def test_in_loops_and_branches(self) -> None:
        n, x = fresh(integer), variable("x")

        def inner(y: Node, times: Node) -> list[Node]:
            return repeat(times, lambda i, z: [dear(i + n) * z + ops.cos(0.3 * i) * y], [y])

        def round(x: Node) -> list[Node]:
            return cond(x > 10.0, lambda: inner(x, n), lambda: [inner(x, n * 2)[0] + 11.0])

        graph = Graph((n, x), tuple(while_(lambda x: x < 10.0, round, [x])))
        assert is_cut(graph)
        same(graph, 70, 0.1)

    def test_in_functions_that_call_themselves(self) -> None:
        made: Any = None

        def body(x: Node, n: Node) -> list[Node]:
            def more() -> list[Node]:
                [y] = call(made, x * 0.5, n - 1)
                return repeat(100, lambda i, z: [dear(i + n) * z + ops.cos(0.3 * i)], [y])

            return cond(n > 0, more, lambda: [x])

        made = GraphFunction("nested", (real, integer), (real,))
        define(made, body)
        x, n = variable("x"), fresh(integer)
        graph = Graph((x, n), tuple(call(made, x, n)))
        assert is_cut(graph)
        same(graph, 0.4, 3)

    def test_functions_without_loops_stay(self) -> None:
        made = function("double", (real,), (real,), lambda x: [x + x])
        x = variable("x")
        graph = optimise(Graph((x,), tuple(call(made, x))))
        assert cut_recurrences(graph) is graph

    def test_compiled_gradients(self) -> None:
        def end(a: float, x: float) -> float:
            for i in range(1000):
                x = x + 0.001 * np.sin(a * x) * np.cos(0.01 * i)
            return x

        expected = dg.grad(end, (0, 1))(1.3, 0.4)
        np.testing.assert_allclose(dg.compile(dg.grad(end, (0, 1)))(1.3, 0.4), expected, rtol=1e-12)
        twice = dg.grad(dg.grad(end))
        np.testing.assert_allclose(dg.compile(twice)(1.3, 0.4), twice(1.3, 0.4), rtol=1e-11)


def _cheap(i: Node, y: Node) -> list[Node]:
    return [y * (1.0 * i) + 1.0]


def _product(i: Node, y: Node) -> list[Node]:
    return [dear(i) * y * y]


def _chosen_by_it(i: Node, y: Node) -> list[Node]:
    return [ops.where(y > 0.0, dear(i) * y, ops.cos(1.0 * i) * y)]


def _divided_by_it(i: Node, y: Node) -> list[Node]:
    return [dear(i) / y]


class TestWhatIsNot:
    @pytest.mark.parametrize("step", [_cheap, _product, _chosen_by_it, _divided_by_it])
    def test_cheap_loops_and_those_that_are_not_linear(self, step: Any) -> None:
        n, x = fresh(integer), variable("x")
        graph = Graph((n, x), tuple(repeat(n, step, [x])))
        assert not is_cut(graph)
        same(graph, 50, 0.9)

    def test_loops_of_few_rounds(self) -> None:
        x = variable("x")
        assert not is_cut(Graph((x,), tuple(repeat(CHUNK, lambda i, y: [dear(i) * y + ops.cos(1.0 * i)], [x]))))

    def test_loops_that_carry_arrays(self) -> None:
        n, x = fresh(integer), fresh(arrays(real, (3,)))
        assert not is_cut(Graph((n, x), tuple(repeat(n, lambda i, y: [dear(i) * y + ops.cos(1.0 * i)], [x]))))

    def test_a_sum_that_another_value_looks_at_is_carried(self) -> None:
        n, x = fresh(integer), variable("x")

        def step(i: Node, y: Node, total: Node, before: Node) -> list[Node]:
            after = total + dear(i) * y
            return [dear(i) * y + ops.cos(1.0 * i) * after, after, total]

        graph = Graph((n, x), tuple(repeat(n, step, [x, 0.0, 0.0])))
        same(graph, 100, 0.9)


class Maker:
    """A loop made by chance, linear in what it carries."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def graph(self) -> tuple[Graph, int]:
        choice = self.random
        n, a, b = fresh(integer), variable("a"), variable("b")
        carried, sums = choice.randrange(1, 4), choice.randrange(3)

        def step(i: Node, *state: Node) -> list[Node]:
            free = [a, b, dear(i), ops.tanh(0.3 * i + a), ops.cos(b * i), ops.exp(-0.1 * i)]
            linear = list(state[:carried])
            for _ in range(choice.randrange(4, 16)):
                x, c = choice.choice(linear), choice.choice(free)
                made = [
                    lambda x=x: x + choice.choice(linear),
                    lambda x=x: 0.5 * x - choice.choice(linear),
                    lambda x=x, c=c: c * x * 0.7,
                    lambda x=x, c=c: x * c + c,
                    lambda x=x, c=c: x / (3.0 + c * c),
                    lambda x=x, c=c: ops.where(c > 0.2, x, choice.choice([linear[0], constant(0.0), c])),
                    lambda x=x: -x,
                ]
                linear.append(choice.choice(made)() * 0.9)
                free.append(choice.choice(free) * choice.choice(free))
            out = [choice.choice(linear[-5:]) for _ in range(carried)]
            return [*out, *(s + choice.choice([*linear, *free]) for s in state[carried:])]

        begin = [choice.choice([a, b, constant(1.0)]) for _ in range(carried + sums)]
        graph = Graph((n, a, b), tuple(repeat(n, step, begin)))
        return graph, choice.choice(COUNTS)


@pytest.mark.parametrize("seed", range(14))
def test_loops_made_by_chance(seed: int) -> None:
    graph, count = Maker(seed).graph()
    a, b = 0.3, -0.8
    for ours, theirs in zip(run(graph, count, a, b), interpret(graph, [count, a, b]), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-8, abs=1e-9)


def test_most_loops_made_by_chance_are_cut() -> None:
    assert sum(is_cut(Maker(seed).graph()[0]) for seed in range(14)) >= 5


def test_the_chain_has_a_loop_of_its_own() -> None:
    n, x = fresh(integer), variable("x")
    [y] = repeat(n, lambda i, y: [dear(i) * y + ops.cos(1.0 * i)], [x])
    cut = cut_recurrences(optimise(Graph((n, x), (y,))))
    chunks, _ = (node for node in order(cut.outputs) if node.operation is REPEAT)
    apart, along = (node.attribute.body for node in order(chunks.attribute.body.outputs) if node.operation in LOOPS)
    assert {node.operation for node in order(apart.outputs)} >= {ops.sin, ops.exp, ops.cos}
    assert [node.operation.name for node in order(along.outputs) if node.arguments] == [
        "item",
        "multiply",
        "item",
        "add",
    ]
    assert integers.floor_divide in {node.operation for node in order(cut.outputs)}
