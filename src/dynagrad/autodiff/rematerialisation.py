"""Rematerialisation and checkpointing: functions and loops that are recomputed in the backward pass.

A rematerialised function saves its arguments only: its adjoint runs the function again, saving residuals this time, and
then goes backward. A checkpointed loop is a tree of such functions, in which each runs `WAYS` pieces and saves a state
for each piece (multi-level checkpointing; Griewank 1992), down to a number of rounds whose residuals are few. The
derivatives of a rematerialised function are rematerialised, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import Error
from ..ir.builders import cond, define, repeat, while_
from ..ir.control import REPEAT, WHILE, CustomDerivatives, GraphFunction, Loop, part_types
from ..ir.node import Node, order, whole
from ..ir.ops import integers
from ..ir.types import DIFFERENTIABLE, integer
from .custom_rules import Several, apply, backward, filled, function

WAYS = 16  # pieces of a loop at each level; each saves a state
ROOM = 1 << 17  # about how many numbers the rounds of a leaf may save


def rematerialise(made: GraphFunction) -> None:
    """Makes a function one that is recomputed in the backward pass.

    >>> from dynagrad.autodiff.derive import generate_adjoints
    >>> from dynagrad.ir import real, variable
    >>> made = GraphFunction("power", [real], [real])
    >>> define(made, lambda x: repeat(5, lambda i, y: [y * x], [1.0]))
    >>> rematerialise(made)
    >>> x = variable("x")
    >>> generate_adjoints(apply(made, x), [1.0], [x])[x].arguments[0].attribute.function
    <function power rematerialised of the graph>
    """

    def adjoint(
        arguments: Sequence[Node], results: Sequence[Node], deltas: Several, wanted: Sequence[int]
    ) -> Sequence[Node | None]:
        smooth = [i for i, t in enumerate(made.arguments) if t.kind in DIFFERENTIABLE]
        places = [i for i, t in enumerate(made.results) if t.kind in DIFFERENTIABLE]
        types = [made.results[i] for i in places]
        back = made.derived.get("rematerialised")
        if back is None:
            name = f"{made.name} rematerialised"
            back = GraphFunction(name, (*made.arguments, *types), [made.arguments[i] for i in smooth])
            made.derived["rematerialised"] = back  # before its body, which may call it
            rematerialise(back)
            define(back, lambda *inputs: filled(_adjoints(made, inputs, smooth, places), back.results))
        found: Several = [None] * len(arguments)
        for i, d in zip(smooth, apply(back, *arguments, *filled([deltas[i] for i in places], types)), strict=True):
            found[i] = d
        return found

    made.rule = CustomDerivatives(None, adjoint, inherit=rematerialise)


def _adjoints(made: GraphFunction, inputs: Sequence[Node], smooth: Sequence[int], places: Sequence[int]) -> Several:
    """The adjoints of a function, from its arguments and the adjoints of its results."""
    if made.graph is None:
        raise Error(f"the function {made.name} is differentiated before it has a body")
    n = len(made.arguments)
    deltas: Several = [None] * len(made.results)
    for i, d in zip(places, inputs[n:], strict=True):
        deltas[i] = d
    found = backward(made.graph.inputs, made.graph.outputs, inputs[:n], deltas, smooth)
    return [found[i] for i in smooth]


# -- loops -------------------------------------------------------------------------------------------------------------


def checkpointed(node: Node) -> list[Node]:
    """The results of a loop, computed by an equal one that is checkpointed.

    >>> from dynagrad.ir import variable
    >>> from dynagrad.ir.interpret import run
    >>> from dynagrad.ir.control import Graph
    >>> x = variable("x")
    >>> [y] = repeat(5, lambda i, y: [y * x], [1.0])
    >>> run(Graph((x,), tuple(checkpointed(y.arguments[0]))), [2.0])
    (32.0,)
    """
    if node.operation is REPEAT:
        count, *rest = node.arguments
        return apply(_rounds(node, count), whole(0), count, *rest)
    if node.operation is WHILE:
        return apply(_counted_while(node), *node.arguments)[:-1]
    raise Error(f"only a loop can be checkpointed, and this is a {node.operation.name}")


def _rounds(node: Node, number: Node | None = None) -> GraphFunction:
    """The rematerialised function that runs rounds of a loop: of the first round, their count, the states, and the
    captured values. It calls itself for pieces, unless the rounds are few, or known to be by `number`.
    """
    loop: Loop = node.attribute
    counted = node.operation is REPEAT
    states = part_types(node)
    outside = [v.type for v in loop.body.inputs[loop.states + counted :]]
    most = _rounds_at_once(loop)

    def body(first: Node, count: Node, *rest: Node) -> list[Node]:
        start, captured = rest[: len(states)], rest[len(states) :]
        size = (count + (WAYS - 1)) // WAYS

        def one(i: Node, *state: Node) -> list[Node]:
            return list(loop.body(*([first + i] if counted else []), *state, *captured))

        def piece(i: Node, *state: Node) -> list[Node]:
            left = integers.minimum(size, count - i * size)
            return apply(made, first + i * size, left, *state, *captured)

        if number is not None and number.is_constant and number.attribute <= most:
            return repeat(number, one, start)
        return cond(
            count <= most,
            lambda: repeat(count, one, start),
            lambda: repeat((count + size - 1) // integers.maximum(size, whole(1)), piece, start),
        )

    made = GraphFunction("rounds", (integer, integer, *states, *outside), states)
    rematerialise(made)
    define(made, body)
    return made


def _rounds_at_once(loop: Loop) -> int:
    """How many rounds a leaf runs: as many as save about `ROOM` numbers."""
    weight = sum(n.type.size for n in order(loop.body.outputs) if n.arguments and n.type.kind != "values")
    return max(1, ROOM // max(1, weight))


def _counted_while(node: Node) -> GraphFunction:
    """The function of a `while` loop that also counts its rounds; its adjoint is that of a counted loop."""
    loop: Loop = node.attribute
    states = part_types(node)
    assert loop.condition is not None
    condition = loop.condition
    types = [v.type for v in loop.body.inputs]
    rounds = _rounds(node)

    def body(*inputs: Node) -> list[Node]:
        captured = inputs[len(states) :]
        return while_(
            lambda *s: condition(*s[:-1], *captured)[0],
            lambda *s: [*loop.body(*s[:-1], *captured), s[-1] + 1],
            [*inputs[: len(states)], whole(0)],
        )

    def adjoint(
        arguments: Sequence[Node], results: Sequence[Node], deltas: Several, wanted: Sequence[int]
    ) -> Sequence[Node | None]:
        assert rounds.rule is not None
        given = [whole(0), results[-1], *arguments]
        ends = list(results[:-1])
        found = rounds.rule.adjoint(given, ends, deltas[:-1], [i + 2 for i in wanted])
        return found[2:]

    return function("until", types, (*states, integer), body, CustomDerivatives(None, adjoint))
