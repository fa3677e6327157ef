"""Graphs are prepared for native code with all that they run, before any code is written. Costs seconds."""

from __future__ import annotations

import numpy as np
import pytest

from dynagrad.codegen.graph import emit, load
from dynagrad.errors import Error
from dynagrad.ir.builders import call, cond, function, repeat, while_
from dynagrad.ir.control import CALL, LOOPS, Graph, GraphFunction
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import Node, fresh, order
from dynagrad.ir.ops.arrays import broadcast_to
from dynagrad.ir.ops.places import at_add
from dynagrad.ir.ops.reductions import total
from dynagrad.ir.ops.scalars import add
from dynagrad.ir.types import arrays, real
from dynagrad.passes.prepare import prepare, prepare_function

N = 4
VECTOR = arrays(real, (N,))


def one_hot(x: Node, i: int) -> Node:
    """Zeros but for one element."""
    return at_add(broadcast_to((N,))(0.0), i, x[i])


def sparse(x: Node, i: int = 1) -> Node:
    """A sum that is accumulated in place once it is prepared."""
    return add(x, one_hot(x, i))


def sums(graph: Graph) -> int:
    """How many sums of whole arrays a graph and its subgraphs have."""
    found = 0
    for node in order(graph.outputs):
        found += node.operation is add and bool(node.shape)
        if node.operation in LOOPS:
            found += sum(map(sums, subgraphs(node)))
    return found


def subgraphs(node: Node) -> list[Graph]:
    what = node.attribute
    if node.operation is CALL:
        return [what.function.graph]
    return [g for g in (getattr(what, n, None) for n in ("body", "condition", "then", "otherwise")) if g is not None]


def nested(x: Node) -> list[Node]:
    """The same sum in a loop of each kind, in both branches, and in a function, one inside the other."""
    inner = function("inner", (VECTOR,), (VECTOR,), lambda x: [sparse(x)])

    def branches(x: Node) -> list[Node]:
        return cond(x[0] > 0.0, lambda: [sparse(x, 2)], lambda: call(inner, x))

    def rounds(x: Node) -> list[Node]:
        return while_(lambda x: total((0,))(x) < 100.0, lambda x: branches(sparse(x)), [x])

    return repeat(2, lambda i, x: rounds(sparse(x)), [sparse(x)])


def test_all_subgraphs_are_prepared() -> None:
    x = fresh(VECTOR)
    graph = Graph((x,), tuple(nested(x)))
    assert sums(graph) == 5 and sums(prepare(graph)) == 0
    given = np.linspace(0.5, 2.0, N)
    for found, wanted in zip(load(graph, optimise=1)(given), interpret(graph, [given]), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert sums(graph) == 5  # the graph and the function that it calls are as they were


def test_what_is_the_same_is_prepared_once() -> None:
    x = fresh(VECTOR)
    made = function("f", (VECTOR,), (VECTOR,), lambda x: [sparse(x)])
    [y] = call(made, x)
    [z] = call(made, y)
    first, second = [n for n in order(prepare(Graph((x,), (z,))).outputs) if n.operation is CALL]
    assert first.attribute.function is second.attribute.function is not made


def test_a_function_may_call_itself() -> None:
    made = GraphFunction("f", (VECTOR,), (VECTOR,))
    x = fresh(VECTOR)
    made.graph = Graph((x,), tuple(cond(x[0] > 100.0, lambda: [x], lambda: call(made, sparse(x, 0)))))
    prepared = prepare_function(made)
    assert prepared.graph is not None
    [branches] = [n for n in order(prepared.graph.outputs) if n.operation in LOOPS]
    [again] = [n for g in subgraphs(branches) for n in order(g.outputs) if n.operation is CALL]
    assert again.attribute.function is prepared
    [found] = load(Graph((y := fresh(VECTOR),), tuple(call(made, y))), optimise=1)(np.ones(N))
    assert found.tolist() == [128.0, 1.0, 1.0, 1.0]


def test_a_function_without_a_body_is_an_error() -> None:
    made = GraphFunction("f", (real,), (real,))
    with pytest.raises(Error, match="the function f has no body"):
        prepare_function(made)


def test_branches_write_over_an_array_that_nothing_else_reads() -> None:
    """Which array that is, is seen once sums in the branches are in place."""
    x = fresh(VECTOR)
    y = x * 2.0
    [z] = cond(x[0] > 0.0, lambda: [sparse(y)], lambda: [sparse(y, 2)])
    assert emit(Graph((x,), (z,))).source.count("memcpy") == 0
