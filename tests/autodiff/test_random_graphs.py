"""Random graphs: their values, and their derivatives in forward mode, reverse mode and by differences.

A program is a list of instructions on some numbers and arrays. One interpreter runs it twice: on Python's and numpy's
values, and on nodes, which makes a graph.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from dynagrad.autodiff.derive import generate_adjoints, tangents
from dynagrad.ir.builders import call, cond, define, merge, repeat, while_
from dynagrad.ir.control import Graph, GraphFunction
from dynagrad.ir.interpret import run
from dynagrad.ir.node import constant, fresh, order, whole
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.ops.places import at_add, at_set
from dynagrad.ir.ops.reductions import total
from dynagrad.ir.types import arrays, integer, real
from dynagrad.passes.optimise import optimise

N = 3  # the length of arrays
MATRIX = np.array([[0.5, -0.3, 0.1], [0.2, 0.4, -0.6], [-0.1, 0.7, 0.3]])

# -- two machines ------------------------------------------------------------------------------------------------------


@dataclass
class Plain:
    """Python and numpy; what was decided is written down."""

    decided: list[bool] = field(default_factory=list)

    def cond(self, condition: Any, then: Any, otherwise: Any) -> Any:
        self.decided.append(bool(condition))
        return then() if condition else otherwise()

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        self.decided.extend(np.ravel(condition).tolist())
        return np.where(condition, a, b)

    def repeat(self, n: int, body: Any, init: Any) -> Any:
        for i in range(int(n)):
            init = body(i, *init)
        return init

    def while_(self, condition: Any, body: Any, init: Any) -> Any:
        while condition(*init):
            self.decided.append(True)
            init = body(*init)
        self.decided.append(False)
        return init

    def recursive(self, body: Any) -> Any:
        def again(n: Any, s: Any, v: Any) -> Any:
            return body(again, n, s, v)

        return again

    def both(self, a: Any, b: Any) -> Any:
        return a and b

    def sum(self, v: Any) -> Any:
        return np.sum(v)

    def at_set(self, v: Any, i: Any, s: Any) -> Any:
        v = v.copy()
        v[i] = s
        return v

    def at_add(self, v: Any, i: Any, s: Any) -> Any:
        v = v.copy()
        v[i] += s
        return v


class Nodes:
    """The graph."""

    cond = staticmethod(cond)
    where = staticmethod(ops.where)
    repeat = staticmethod(repeat)
    while_ = staticmethod(while_)
    at_set = staticmethod(at_set)
    at_add = staticmethod(at_add)

    def recursive(self, body: Any) -> Any:
        vector = arrays(real, (N,))
        made = GraphFunction("again", (integer, real, vector), (real, vector))
        define(made, lambda n, s, v: body(lambda *xs: call(made, *xs), n, s, v))
        return lambda *xs: call(made, *xs)

    def both(self, a: Any, b: Any) -> Any:
        return a & b

    def sum(self, v: Any) -> Any:
        return total((0,))(v)


# smooth, and not much larger than what they are given
PAIRS: dict[str, Any] = {
    "add": lambda m, a, b: a + b * 0.5,
    "subtract": lambda m, a, b: a - b,
    "multiply": lambda m, a, b: np.sin(a) * b,
    "divide": lambda m, a, b: a / (1.0 + b * b),
    "power": lambda m, a, b: (1.5 + np.sin(a)) ** np.cos(b),
    "tanh": lambda m, a, b: np.tanh(a - b),
    "exp": lambda m, a, b: np.exp(-a * a) * b,
    "sqrt": lambda m, a, b: np.sqrt(1.0 + a * a) - b,
    "negative": lambda m, a, b: -a,
    "where": lambda m, a, b: m.where(a > b, a * 0.5, np.sin(b)),
    "maximum": lambda m, a, b: m.where(a >= b, a, b),
}

# -- programs ----------------------------------------------------------------------------------------------------------

index = st.integers(0, 50)
pairs = st.sampled_from(sorted(PAIRS))


def instructions(depth: int) -> Any:
    straight = st.one_of(
        st.tuples(st.just("scalar"), pairs, index, index),
        st.tuples(st.just("vector"), pairs, index, index),
        st.tuples(st.just("mixed"), pairs, index, index),
        st.tuples(st.just("sum"), index, index),
        st.tuples(st.just("matrix"), index),
        st.tuples(st.just("item"), index, index),
        st.tuples(st.just("set"), index, index, index),
        st.tuples(st.just("add"), index, index, index),
    )
    if depth == 0:
        return straight
    block = st.lists(instructions(depth - 1), min_size=1, max_size=4)
    return st.one_of(
        straight,
        straight,
        st.tuples(st.just("cond"), index, index, block, block),
        st.tuples(st.just("repeat"), st.integers(0, 3), index, index, block),
        st.tuples(st.just("while"), st.integers(0, 3), index, index, block),
        st.tuples(st.just("recursion"), st.integers(0, 3), index, index, block),
    )


def programs(depth: int, most: int) -> Any:
    return st.lists(instructions(depth), min_size=1, max_size=most)


def execute(m: Any, block: Any, scalars: list[Any], vectors: list[Any], counter: Any = 0) -> tuple[Any, Any]:
    """The last number and the last array that a block makes; it sees what was there before."""
    scalars, vectors = list(scalars), list(vectors)

    def s(i: int) -> Any:
        return scalars[-1 - i % len(scalars)]

    def v(i: int) -> Any:
        return vectors[-1 - i % len(vectors)]

    for kind, *rest in block:
        if kind == "scalar":
            scalars.append(PAIRS[rest[0]](m, s(rest[1]), s(rest[2])))
        elif kind == "vector":
            vectors.append(PAIRS[rest[0]](m, v(rest[1]), v(rest[2])))
        elif kind == "mixed":
            vectors.append(PAIRS[rest[0]](m, v(rest[1]), s(rest[2])))
        elif kind == "sum":
            scalars.append(m.sum(v(rest[0]) * v(rest[1])) * 0.3)
        elif kind == "matrix":
            vectors.append(MATRIX @ v(rest[0]))
        elif kind == "item":
            scalars.append(v(rest[0])[(counter + rest[1] % N) % N])
        elif kind == "set":
            vectors.append(m.at_set(v(rest[0]), (counter + rest[1]) % N, s(rest[2])))
        elif kind == "add":
            vectors.append(m.at_add(v(rest[0]), (counter + rest[1]) % N, s(rest[2])))
        elif kind == "cond":
            i, j, then, otherwise = rest
            new = m.cond(
                s(i) > s(j) * 0.5,
                lambda then=then: execute(m, then, scalars, vectors, counter),
                lambda otherwise=otherwise: execute(m, otherwise, scalars, vectors, counter),
            )
            scalars.append(new[0])
            vectors.append(new[1])
        elif kind == "repeat":
            n, i, j, body = rest
            new = m.repeat(
                n + counter % 2,
                lambda k, a, b, body=body: execute(m, body, [*scalars, a], [*vectors, b], k),
                (s(i), v(j)),
            )
            scalars.append(new[0])
            vectors.append(new[1])
        elif kind == "while":
            n, i, j, body = rest
            new = m.while_(
                lambda k, a, b, n=n: m.both(k < n, a < 3.0),
                lambda k, a, b, body=body: (k + 1.0, *execute(m, body, [*scalars, a], [*vectors, b], counter)),
                (0.0, s(i), v(j)),
            )
            scalars.append(new[1])
            vectors.append(new[2])
        else:
            n, i, j, body = rest
            again = m.recursive(
                lambda again, k, a, b, body=body: m.cond(
                    k > 0,
                    lambda: again(k - 1, *execute(m, body, [a], [b], k)),
                    lambda: (a, b),
                )
            )
            new = again(whole(n) if isinstance(m, Nodes) else n, s(i), v(j))
            scalars.append(new[0])
            vectors.append(new[1])
    return scalars[-1], vectors[-1]


def output(m: Any, program: Any, x: Any, y: Any, v: Any) -> Any:
    a, b = execute(m, program, [x, y], [v])
    return a + m.sum(b * np.array([1.0, -0.7, 0.3]))


# -- what is to hold ---------------------------------------------------------------------------------------------------

numbers = st.floats(-1.5, 1.5).map(lambda v: round(v, 2) + 0.0037)
points = st.tuples(numbers, numbers, st.tuples(numbers, numbers, numbers))


def as_point(point: Any) -> list[Any]:
    return [point[0], point[1], np.array(point[2])]


def along(adjoints: Any, directions: Any) -> Any:
    """The sum of products of adjoints and directions."""
    products = [a * d for a, d in zip(adjoints, directions, strict=True) if a is not None]
    found: Any = constant(0.0)
    for p in products:
        found = found + (total((0,))(p) if p.ndim else p)
    return found


def plain(program: Any, point: Any) -> tuple[float, list[bool]]:
    machine = Plain()
    with np.errstate(all="ignore"):
        return float(output(machine, program, *point)), machine.decided


def derivatives(program: Any, optimised_between: bool = False) -> tuple[Graph, int]:
    """The value, the derivative along a direction by each mode, and the second ones by both of both."""
    inputs = [fresh(), fresh(), fresh(arrays(real, (N,)))]
    dots = [fresh(x.type) for x in inputs]
    seeds = dict(zip(inputs, dots, strict=True))
    y = output(Nodes(), program, *inputs)

    def between(node: Any) -> Any:
        if not optimised_between:
            return node
        return optimise(Graph((*inputs, *dots), (node,))).outputs[0]

    def forward(node: Any) -> Any:
        [found] = tangents([node], seeds)
        return constant(0.0) if found is None else found

    def backward(node: Any) -> Any:
        return along(generate_adjoints([node], [1.0], inputs).values(), dots)

    y = between(y)
    f, b = between(forward(y)), between(backward(y))
    outputs = merge([y, f, b, forward(f), forward(b), backward(f), backward(b)])
    return Graph((*inputs, *dots), outputs), len(order(outputs))


def check(program: Any, point: Any, direction: Any, optimised_between: bool = False) -> None:
    at, along_ = as_point(point), as_point(direction)
    value, decided = plain(program, at)
    if not (math.isfinite(value) and abs(value) < 1e6):
        reject()
    graph, _ = derivatives(program, optimised_between)
    found = run(graph, [*at, *along_])
    assert found[0] == pytest.approx(value, rel=1e-12, abs=1e-12)
    scale = 1.0 + max(map(abs, found))
    if scale >= 1e8:
        reject()
    assert found[2] == pytest.approx(found[1], rel=1e-9, abs=1e-11 * scale)
    for second in found[4:]:
        assert second == pytest.approx(found[3], rel=1e-8, abs=1e-10 * scale)
    np.testing.assert_allclose(run(optimise(graph), [*at, *along_]), found, rtol=1e-9, atol=1e-11 * scale)

    def moved(h: float) -> tuple[float, list[bool]]:
        return plain(program, [p + h * d for p, d in zip(at, along_, strict=True)])

    h = 1e-4
    (up, one), (down, other) = moved(h), moved(-h)
    if one == other == decided and scale < 1e3:  # nothing jumps between
        assert found[1] == pytest.approx((up - down) / (2 * h), rel=1e-4, abs=1e-5 * scale)
        assert found[3] == pytest.approx((up - 2 * value + down) / h**2, rel=1e-2, abs=1e-3 * scale)


RARELY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@settings(RARELY, max_examples=30)
@given(programs(0, 10), points, points)
def test_straight_lines(program, point, direction):
    check(program, point, direction)


@settings(RARELY, max_examples=14)
@given(programs(1, 4), points, points)
def test_control_flow(program, point, direction):
    check(program, point, direction)


@settings(RARELY, max_examples=8)
@given(programs(2, 3), points, points)
def test_nested_control_flow(program, point, direction):
    check(program, point, direction)


@settings(RARELY, max_examples=8)
@given(programs(1, 3), points, points)
def test_what_is_optimised_has_the_same_derivatives(program, point, direction):
    check(program, point, direction, optimised_between=True)


FOUND = {
    "a loop behind a branch, which is not to become a part of it": [
        ("cond", 0, 0, [("vector", "power", 0, 0)], [("set", 0, 0, 0)]),
        ("while", 0, 0, 0, [("sum", 0, 0)]),
        ("repeat", 0, 0, 14, [("vector", "power", 1, 0)]),
        ("sum", 0, 0),
    ],
    "two loops over a recursion": [("while", 1, 0, 0, [("recursion", 2, 0, 1, [("sum", 0, 0)])])] * 2,
    "two loops in a loop": [
        ("while", 2, 1, 0, [("item", 0, 0), ("add", 0, 0, 0), ("repeat", 1, 0, 1, [("scalar", "divide", 0, 0)])])
    ],
    "a recursion in a recursion": [
        ("recursion", 1, 1, 0, [("recursion", 1, 0, 0, [("mixed", "negative", 0, 1), ("add", 0, 0, 0)])])
    ],
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_wrong_once(name):
    point = (0.3037, -0.4963, (0.4937, -0.2963, 0.1037))
    check(FOUND[name], point, (0.5, -0.25, (1.0, 0.5, -0.75)))
