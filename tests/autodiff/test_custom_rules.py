"""Functions of the graph with custom derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynagrad.autodiff.custom_rules import apply, backward, forward, function, instance
from dynagrad.autodiff.derive import generate_adjoints, tangents
from dynagrad.codegen.graph.native import Native
from dynagrad.ir import cos, real, sin, variable, where
from dynagrad.ir.builders import cond, define, repeat
from dynagrad.ir.control import CALL, CustomDerivatives, Graph, GraphFunction
from dynagrad.ir.interpret import run
from dynagrad.ir.node import Node, order
from dynagrad.ir.types import arrays, integer
from dynagrad.passes.optimise import optimise


def steep(name: str = "steep") -> GraphFunction:
    """The sine, with a derivative that is ten times as large."""
    return function(
        name,
        [real],
        [real],
        lambda x: [sin(x)],
        CustomDerivatives(
            lambda xs, ys, ds: [10.0 * cos(xs[0]) * ds[0]],
            lambda xs, ys, ds, wanted: [10.0 * cos(xs[0]) * ds[0]],
        ),
    )


def exponential() -> GraphFunction:
    """exp, by a rule that looks at the result."""
    return function(
        "exponential",
        [real, integer],
        [real],
        lambda x, n: [np.exp(x) * n],
        CustomDerivatives(lambda xs, ys, ds: [ys[0] * ds[0]], lambda xs, ys, ds, wanted: [ys[0] * ds[0], None]),
    )


x = variable("x")


def both(outputs: list[Node], at: float) -> tuple[Any, ...]:
    """What the interpreter and native code make of outputs; they agree."""
    graph = Graph((x,), tuple(outputs))
    found = run(graph, [at])
    np.testing.assert_allclose(Native(graph, "f")(at), found, rtol=1e-13)
    return found


def test_the_rule_is_used_and_not_the_body() -> None:
    [y] = apply(steep(), x)
    d = tangents([y], {x: 1.0})[0]
    back = generate_adjoints([y], [1.0], [x])[x]
    assert d is not None and back is not None
    slope = 10.0 * np.cos(0.3)
    assert both([y, d, back], 0.3) == pytest.approx((np.sin(0.3), slope, slope))


def test_derivatives_of_rules_follow_from_what_they_make() -> None:
    [y] = apply(exponential(), x * x, 3)
    third: list[Node] = [y]
    for step in (
        lambda n: tangents([n], {x: 1.0})[0],
        lambda n: generate_adjoints([n], [1.0], [x])[x],
        lambda n: tangents([n], {x: 1.0})[0],
    ):
        third.append(step(third[-1]))
    t = 0.4
    e = 3 * np.exp(t * t)
    assert both(third, t) == pytest.approx((e, 2 * t * e, (2 + 4 * t * t) * e, (12 * t + 8 * t**3) * e))


def test_inside_of_loops_and_branches() -> None:
    made = steep()
    [y] = repeat(3, lambda i, s: cond(s > 0.5, lambda: apply(made, s), lambda: [s * x]), [x])
    value, slope = 1.2, 1.0
    for _ in range(3):
        value, slope = (
            (np.sin(value), 10 * np.cos(value) * slope) if value > 0.5 else (value * 1.2, value + slope * 1.2)
        )
    d = tangents([y], {x: 1.0})[0]
    back = generate_adjoints([y], [1.0], [x])[x]
    assert d is not None and back is not None
    assert both([y, d, back], 1.2) == pytest.approx((value, slope, slope))


def test_two_calls_with_the_same_arguments_are_one_node() -> None:
    made = steep()
    assert apply(made, x)[0] is apply(made, x)[0]
    assert apply(made, x)[0] is not apply(steep(), x)[0]


def test_what_is_not_connected_is_not_asked_for() -> None:
    asked: list[Any] = []

    def adjoint(xs: Any, ys: Any, ds: Any, wanted: Any) -> Any:
        asked.append(list(wanted))
        return [ds[0], ds[0]]

    made = function(
        "sum", [real, real], [real], lambda a, b: [a + b], CustomDerivatives(lambda xs, ys, ds: [ds[0]], adjoint)
    )
    z = variable("z")
    [y] = apply(made, z, x)
    assert generate_adjoints([y], [1.0], [x])[x] is not None
    assert asked == [[1]]
    assert tangents([y], {x: 1.0}) == (None,)


def test_without_a_rule_for_tangents_they_follow_from_the_body() -> None:
    made = GraphFunction("cube", [real], [real])
    made.rule = CustomDerivatives(None, lambda xs, ys, ds, wanted: [7.0 * ds[0]])
    define(made, lambda x: [x * x * x])
    [y] = apply(made, x)
    d = tangents([y], {x: 1.0})[0]
    back = generate_adjoints([y], [1.0], [x])[x]
    assert d is not None and back is not None
    assert both([d, back], 2.0) == (12.0, 7.0)


def test_a_small_function_is_written_where_it_is_called() -> None:
    [y] = apply(steep(), x)
    small = optimise(Graph((x,), (y * 2.0,)))
    assert not any(n.operation is CALL for n in order(small.outputs))
    looping = function(
        "loop", [real], [real], lambda x: repeat(9, lambda i, s: [s * x], [x]), CustomDerivatives(None, lambda *_: [])
    )
    kept = optimise(Graph((x,), tuple(apply(looping, x))))
    assert any(n.operation is CALL for n in order(kept.outputs))


def test_derivatives_of_a_graph_for_other_arguments() -> None:
    a, b = variable("a"), variable("b")
    t = arrays(real, (2,))
    v = variable("v", t)
    [d] = forward([a, b], [a * b], [x, 2.0 * x], [None, x])
    assert d is not None and both([d], 3.0) == (9.0,)
    found = backward([a, b], [a * b, where(a > 0, b, 0.0)], [x, 2.0 * x], [x, None], [1])
    assert found[0] is None and both([found[1]], 3.0) == (9.0,)
    assert forward([v], [a], [v], [v]) == [None]


def test_two_instances_of_a_graph_have_stacks_of_their_own() -> None:
    """The adjoint of a loop saves on a stack; what is made of it twice must not share that."""
    a = variable("a")
    [y] = repeat(12, lambda i, s: [s * np.sin(s + a)], [a])
    back = generate_adjoints([y], [1.0], [a])[a]
    assert back is not None
    graph = Graph((a,), (back,))
    outputs = [instance(graph.outputs, {a: at})[0] for at in (x, x * 2.0, x * 3.0)]
    expected = [run(graph, [0.7 * k])[0] for k in (1, 2, 3)]
    assert both(outputs, 0.7) == pytest.approx(tuple(expected))
