"""Random graphs with loops, branches and writes to arrays: native code against the interpreter. Costs a few seconds."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from dynagrad.autodiff.derive import generate_adjoints
from dynagrad.codegen.graph import run
from dynagrad.ir.builders import cond, repeat, while_
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import Node, constant, fresh, whole
from dynagrad.ir.ops import arrays as on_arrays
from dynagrad.ir.ops import integers, reductions
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.ops.places import at_add, at_set
from dynagrad.ir.types import arrays, integer, real

N = 4
SHAPES = [(), (N,), (N, N), (3, N)]


class Maker:
    """A graph made by chance: pools of values by shape, from which the next ones are made."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.inputs = [fresh(arrays(real, s)) for s in SHAPES] + [fresh(integer)]

    def graph(self, size: int) -> Graph:
        pool = {shape: [node] for shape, node in zip(SHAPES, self.inputs, strict=False)}
        whole_numbers = [self.inputs[-1]]
        for _ in range(size):
            self.grow(pool, whole_numbers, 2)
        outputs = [self.random.choice(nodes[-4:]) for nodes in pool.values() for _ in range(2)]
        return Graph(tuple(self.inputs), tuple(outputs))

    def pick(self, pool: dict[Any, list[Node]], shape: Any) -> Node:
        return self.random.choice(pool[shape][-6:])

    def grow(self, pool: dict[Any, list[Node]], numbers: list[Node], depth: int) -> None:
        choice = self.random
        shape = choice.choice(SHAPES)
        x, y = self.pick(pool, shape), self.pick(pool, choice.choice([shape, (), shape[-1:]]))
        i = choice.choice(numbers) % N
        kind = choice.randrange(16 if depth else 12)
        made: Any
        if kind < 3:
            made = choice.choice([ops.add, ops.subtract, ops.multiply])(x, y)
        elif kind == 3:
            made = ops.tanh(x) + choice.choice([ops.sin, ops.sigmoid, ops.absolute])(y)
        elif kind == 4:
            made = ops.where(x > y, x * 0.5, y)
        elif kind == 5 and shape:
            made = (
                reductions.total((len(shape) - 1,))(x) * 0.25 if len(shape) == 1 else reductions.extreme(True, (0,))(x)
            )
        elif kind == 6 and shape:
            made = x[i % shape[0]] if len(shape) > 1 else x[i]
        elif kind == 7 and shape:
            value = self.pick(pool, shape[1:]) if choice.random() < 0.5 else x[(i + 1) % shape[0]]
            made = choice.choice([at_set, at_add])(x, i % shape[0], value)
        elif kind == 8 and shape:
            made = at_add(x, slice(1, shape[0]), choice.choice([x, self.pick(pool, shape)])[0 : shape[0] - 1])
        elif kind == 9 and len(shape) == 2:
            made = on_arrays.matmul(ops.tanh(x), ops.tanh(self.pick(pool, (N, N))))
        elif kind == 10 and shape:
            made = choice.choice([x[::-1], on_arrays.roll(1, 0)(x), reductions.cumsum(0)(ops.tanh(x)), x * x])
        elif kind == 11:
            turned = on_arrays.transpose((1, 0))(self.pick(pool, (N, N)))
            made = on_arrays.concatenate(0, 2)(turned[:1], self.pick(pool, (3, N))[1:])
            made = on_arrays.stack(0, 3)(made[0], made[1], self.pick(pool, (N,)))
        elif kind in (12, 13):
            made = self.loop(pool, numbers, depth - 1)
        elif kind == 14:
            made = self.branch(pool, numbers, depth - 1)
        else:
            made = x
        for node in made if isinstance(made, list) else [made]:
            pool[node.shape].append(ops.tanh(node) if choice.random() < 0.3 else node)

    def inner(self, pool: dict[Any, list[Node]], numbers: list[Node], given: list[Node], depth: int) -> dict[Any, Any]:
        mine = {shape: list(nodes) for shape, nodes in pool.items()}
        for node in given:
            mine[node.shape].append(node)
        for _ in range(self.random.randrange(1, 6)):
            self.grow(mine, numbers, depth)
        return mine

    def loop(self, pool: dict[Any, list[Node]], numbers: list[Node], depth: int) -> list[Node]:
        shapes = [self.random.choice(SHAPES) for _ in range(self.random.randrange(1, 4))]
        start = [self.pick(pool, s) for s in shapes]

        def body(i: Node, *states: Node) -> list[Node]:
            mine = self.inner(pool, [*numbers, i], list(states), depth)
            found = [self.pick(mine, s) for s in shapes]
            return [ops.tanh(f) if self.random.random() < 0.3 else f for f in found]

        if self.random.random() < 0.7:
            return repeat(self.random.choice([3, numbers[0] % 4]), body, start)
        states = while_(
            lambda k, *s: k < 3, lambda k, *s: [k + 1, *body(k, *s)], [whole(self.random.randrange(3)), *start]
        )
        return states[1:]

    def branch(self, pool: dict[Any, list[Node]], numbers: list[Node], depth: int) -> list[Node]:
        shapes = [self.random.choice(SHAPES) for _ in range(self.random.randrange(1, 3))]

        def side() -> list[Node]:
            mine = self.inner(pool, numbers, [], depth)
            return [self.pick(mine, s) for s in shapes]

        test = self.pick(pool, ()) > 0.0 if self.random.random() < 0.5 else integers.less(numbers[0], 2)
        return cond(test, side, side)


def check(graph: Graph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for number in (1, 3):
        values = [0.5, *(rng.normal(size=s) for s in SHAPES[1:]), number]
        copies = [np.copy(v) if np.ndim(v) else v for v in values]
        with np.errstate(all="ignore"):
            wanted = interpret(graph, values)
        for got, expected in zip(run(graph, copies, optimise=1), wanted, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11, equal_nan=True)
        for copy, value in zip(copies, values, strict=True):
            np.testing.assert_array_equal(copy, value)


@pytest.mark.parametrize("seed", [6, 7, 8])
def test_native_is_interpreted(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a gradient, which would keep values alive, memory is written to again; as users have it."""
    monkeypatch.setenv("DYNAGRAD_OPTIMISE", "3")
    check(Maker(seed).graph(25), seed)


@pytest.mark.parametrize(("seed", "size"), [*((seed, 25) for seed in range(6)), (6, 12), (7, 12), (40, 12)])
def test_native_is_interpreted_and_gradients_go_back_through_all_of_it(seed: int, size: int) -> None:
    graph = Maker(seed).graph(size)
    total: Any = constant(0.0)
    for output in graph.outputs:
        flat = ops.tanh(output)
        total = total + (reductions.total(tuple(range(output.ndim)))(flat) if output.shape else flat)
    wanted = [v for v in graph.inputs if v.type.kind == "real"]
    adjoints = generate_adjoints([total], [constant(1.0)], wanted)
    found = [adjoints[v] for v in wanted if adjoints[v] is not None]
    check(Graph(graph.inputs, (*graph.outputs, total, *found)), seed)
