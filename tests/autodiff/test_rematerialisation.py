"""Rematerialised loops in the backward pass: the same values and derivatives, with fewer residuals.

Costs a few seconds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dynagrad.autodiff import rematerialisation as module
from dynagrad.autodiff.custom_rules import apply
from dynagrad.autodiff.derive import generate_adjoints, tangents
from dynagrad.autodiff.rematerialisation import checkpointed, rematerialise
from dynagrad.codegen.graph.native import Native
from dynagrad.errors import Error
from dynagrad.ir import real, variable
from dynagrad.ir.builders import define, repeat, while_
from dynagrad.ir.control import Graph, GraphFunction
from dynagrad.ir.interpret import run
from dynagrad.ir.node import Node, fresh, order, whole
from dynagrad.ir.ops import integers
from dynagrad.ir.types import arrays, integer

x, n = variable("x"), variable("n", integer)


def counted() -> list[Node]:
    """A loop that looks at its counter, and of which one state is whole."""

    def body(i: Node, s: Node, k: Node) -> list[Node]:
        return [s + np.sin(s * x) * integers.to_real(i + k) * 0.01, k + 1]

    return repeat(n, body, [x, whole(3)])


def until() -> list[Node]:
    return while_(lambda s, k: k < n, lambda s, k: [s + np.sin(s * x) * 0.1, k + 1], [x * x, whole(0)])


LOOPS: dict[str, Callable[[], list[Node]]] = {"counted": counted, "until": until}
MODES: dict[str, Callable[[Node], Any]] = {
    "forward": lambda y: tangents([y], {x: 1.0})[0],
    "reverse": lambda y: generate_adjoints([y], [1.0], [x])[x],
}


def derivatives(y: Node) -> list[Node]:
    """Of first and second order, in all mixes of modes."""
    found = [y, *(m(y) for m in MODES.values())]
    return [*found, *(outer(inner(y)) for inner, outer in itertools.product(MODES.values(), repeat=2))]


@pytest.fixture(params=[1 << 17, 20])
def room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With so little room, few rounds are at the bottom, and there are several levels."""
    monkeypatch.setattr(module, "ROOM", request.param)
    monkeypatch.setattr(module, "WAYS", 16 if request.param > 20 else 3)


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize("rounds", [0, 1, 2, 7, 100])
@pytest.mark.parametrize("loop", LOOPS)
def test_the_same_derivatives_as_of_the_loop(loop: str, rounds: int) -> None:
    parts = LOOPS[loop]()
    plain = run(Graph((x, n), tuple(derivatives(parts[0]))), [0.7, rounds])
    spare = checkpointed(parts[0].arguments[0])
    graph = Graph((x, n), (*derivatives(spare[0]), spare[1]))
    expected = (*plain, run(Graph((x, n), (parts[1],)), [0.7, rounds])[0])
    assert run(graph, [0.7, rounds]) == pytest.approx(expected, rel=1e-11)
    if rounds == 100:
        assert Native(graph, "f")(0.7, rounds) == pytest.approx(expected, rel=1e-11)


def test_arrays_and_what_comes_from_outside() -> None:
    v, w = fresh(arrays(real, (3,))), fresh(arrays(real, (3,)))
    [s] = repeat(50, lambda i, s: [s * 0.9 + np.sin(s) * w], [v])
    [t] = checkpointed(s.arguments[0])
    at = np.linspace(0.1, 1.0, 3), np.linspace(-0.5, 0.5, 3)
    for one, other in zip(_gradients(t, v, w, at), _gradients(s, v, w, at), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def _gradients(y: Node, v: Node, w: Node, at: Any) -> tuple[Any, ...]:
    found = generate_adjoints([y * y], [v], [v, w])
    return run(Graph((v, w), (y, found[v], found[w])), at)  # type: ignore[arg-type]


def test_a_function_saves_its_arguments_alone() -> None:
    made = GraphFunction("power", [real], [real])
    define(made, lambda a: repeat(5, lambda i, s: [np.sin(s) * a], [a]))
    rematerialise(made)
    [y] = repeat(10, lambda i, s: apply(made, s), [x])
    found = generate_adjoints([y], [1.0], [x])[x]
    assert found is not None
    pushed = [o for node in order([found]) for o in _pushed(node)]
    assert [[a.type.name for a in push.arguments[1:]] for push in pushed] == [["real"]]


def _pushed(node: Node) -> list[Node]:
    body = getattr(node.attribute, "body", None)
    return [] if body is None else [m for m in order(body.outputs) if m.operation.name == "push"]


def test_so_does_the_function_that_computes_its_tangents() -> None:
    made = GraphFunction("power", [real], [real])
    define(made, lambda a: repeat(5, lambda i, s: [np.sin(s) * a], [a]))
    rematerialise(made)
    tangents(apply(made, x), {x: 1.0})
    assert made.derived["tangent"].rule is not None


def test_only_loops_are_checkpointed() -> None:
    with pytest.raises(Error, match="this is a multiply"):
        checkpointed(x * x)
