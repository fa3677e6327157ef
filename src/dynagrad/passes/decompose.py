"""Decomposition: replaces compound operations (`logsumexp`, `softmax`) by those that native code has loops for.

Derivatives have been taken before, with the tangent of the compound operation. No C++ is written here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..ir.code import code_of
from ..ir.control import Graph
from ..ir.node import Node, order, with_arguments
from ..ir.ops import arrays, reductions
from ..ir.ops import scalars as ops


def _shifted(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """The maximum over axes, and the array less that maximum: 0 at the maximum, even where it is infinite."""
    top = reductions.extreme(True, axes, True)(x)
    return top, ops.where(ops.equal(x, top), 0.0, ops.subtract(x, top))


def _logsumexp(node: Node, x: Node) -> Any:
    _, axes, _ = code_of(node)
    top, rest = _shifted(x, axes)
    found = ops.add(top, ops.log(reductions.total(axes, True)(ops.exp(rest))))
    return found if found.type is node.type else arrays.reshape(node.shape)(found)


def _softmax(node: Node, x: Node) -> Any:
    _, axes = code_of(node)
    weights = ops.exp(_shifted(x, axes)[1])
    return ops.divide(weights, reductions.total(axes, True)(weights))


def _shares(node: Node, x: Node) -> Any:
    _, axes = code_of(node)
    top, rest = _shifted(x, axes)
    weights = ops.where(ops.logical_and(ops.equal(x, top), ops.equal(x, -math.inf)), 0.0, ops.exp(rest))
    total = reductions.total(axes, True)(weights)
    return ops.divide(weights, ops.where(ops.equal(total, 0.0), 1.0, total))


def _log_softmax(node: Node, x: Node) -> Any:
    _, axes = code_of(node)
    rest = _shifted(x, axes)[1]
    return ops.subtract(rest, ops.log(reductions.total(axes, True)(ops.exp(rest))))


RULES: dict[str, Callable[..., Any]] = {
    "logsumexp": _logsumexp,
    "softmax": _softmax,
    "shares": _shares,
    "log_softmax": _log_softmax,
}
"""Rules by family of `Operation.code`; each takes the node and its new arguments."""


def _rule(node: Node) -> Callable[..., Any] | None:
    code = code_of(node)
    return RULES.get(code[0]) if code and node.arguments[0].type.kind == "real" else None


def decompose(graph: Graph) -> Graph:
    """The graph with the operations that have a rule replaced."""
    series = order(graph.outputs)
    if not any(_rule(node) for node in series):
        return graph
    new: dict[Node, Node] = {}
    for node in series:
        arguments = [new[a] for a in node.arguments]
        rule = _rule(node)
        new[node] = with_arguments(node, arguments) if rule is None else rule(node, *arguments)
    return Graph(graph.inputs, tuple(new[o] for o in graph.outputs))
