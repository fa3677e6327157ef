"""What graphs mean: each operation's value in turn, control flow as Python has it. The oracle for native code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynagrad.graph.control import CALL, COND, EMPTY, PART, POP, PUSH, REPEAT, WHILE, Graph
from dynagrad.graph.node import Node, order


def interpret(graph: Graph, arguments: Sequence[Any]) -> tuple[Any, ...]:
    known: dict[Node, Any] = dict(zip(graph.inputs, arguments, strict=True))
    for node in order(graph.outputs):
        if node in known:
            continue
        known[node] = node.attribute if node.is_constant else value(node, [known[a] for a in node.arguments])
    return tuple(known[o] for o in graph.outputs)


def value(node: Node, given: list[Any]) -> Any:
    operation, attribute = node.operation, node.attribute
    if operation is PART:
        return given[0][attribute]
    if operation is EMPTY:
        return ()
    if operation is PUSH:
        return (*given[0], tuple(given[1:]))
    if operation is POP:
        return (given[0][:-1], *given[0][-1])
    if operation is COND:
        return interpret(attribute.then if given[0] else attribute.otherwise, given[1:])
    if operation is CALL:
        return interpret(attribute.function.graph, given)
    if operation is REPEAT:
        states = tuple(given[1 : 1 + attribute.states])
        for i in range(given[0]):
            states = interpret(attribute.body, [i, *states, *given[1 + attribute.states :]])
        return states
    if operation is WHILE:
        states, outside = tuple(given[: attribute.states]), given[attribute.states :]
        while interpret(attribute.condition, [*states, *outside])[0]:
            states = interpret(attribute.body, [*states, *outside])
        return states
    with np.errstate(all="ignore"):
        if operation.array is not None and any(np.ndim(x) for x in given):
            return operation.array(*given)
        return operation.value(*given)
