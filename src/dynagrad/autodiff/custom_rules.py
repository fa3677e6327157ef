"""Functions of the graph with custom derivatives, in place of those that follow from their bodies.

`CustomDerivatives` build nodes: the tangents of the results from those of the arguments, and the adjoints of the
arguments from those of the results. They may use the results, which are those of the call; since the call has the rule,
derivatives nest, and one rule is enough for all orders. Here is how rules are applied, not which there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.builders import Trace, as_values, define, merge
from ..ir.control import EMPTY, Called, CustomDerivatives, GraphFunction, empty, make_call, parts, zero
from ..ir.node import Node, fresh, order, substitute
from ..ir.types import DIFFERENTIABLE, Type
from .derive import generate_adjoints, tangents

Several = list[Any]


def function(
    name: str, arguments: Sequence[Type], results: Sequence[Type], body: Trace, rule: CustomDerivatives
) -> GraphFunction:
    """A function with custom derivatives.

    >>> from dynagrad.ir import real, variable
    >>> from dynagrad.autodiff.derive import tangents
    >>> rule = CustomDerivatives(lambda xs, ys, ds: [7.0 * ds[0]], lambda xs, ys, ds, wanted: [7.0 * ds[0]])
    >>> square = function("square", [real], [real], lambda x: [x * x], rule)
    >>> x = variable("x")
    >>> tangents(apply(square, x), {x: 1.0})
    (7.0 * 1.0,)
    """
    made = GraphFunction(name, arguments, results)
    made.rule = rule
    define(made, body)
    return made


def apply(made: GraphFunction, *arguments: Any) -> list[Node]:
    """The results of a call. Two calls with the same arguments are one node."""
    called: Called = made.derived.setdefault("called", Called(made))
    return parts(make_call(called, as_values(arguments, made.arguments, f"the function {made.name}")))


# -- derivatives of calls, for `control_flow.py` -----------------------------------------------------------------------


def has_tangent(node: Node) -> bool:
    """Whether a call has a custom rule for tangents."""
    rule: CustomDerivatives | None = node.attribute.function.rule
    return rule is not None and rule.tangent is not None


def tangent(node: Node, dots: Sequence[Any]) -> Several | None:
    """The tangents of the results of a call, by its rule, from those of the arguments."""
    made: GraphFunction = node.attribute.function
    assert made.rule is not None and made.rule.tangent is not None
    real_dots = [d if t.kind in DIFFERENTIABLE else None for d, t in zip(dots, made.arguments, strict=True)]
    found = list(made.rule.tangent(node.arguments, parts(node), real_dots))
    return found if any(f is not None for f in found) else None


def increments(node: Node, deltas: Several, wanted: Sequence[int]) -> list[tuple[int, Node]]:
    """The increments to the adjoints of the wanted arguments of a call, by its rule, where results have `deltas`."""
    made: GraphFunction = node.attribute.function
    assert made.rule is not None
    wanted = [i for i in wanted if made.arguments[i].kind in DIFFERENTIABLE]
    if not wanted:
        return []
    found = made.rule.adjoint(node.arguments, parts(node), deltas, wanted)
    return [(i, found[i]) for i in wanted if found[i] is not None]


# -- building blocks of rules ------------------------------------------------------------------------------------------


def instance(nodes: Sequence[Node], by: Mapping[Node, Node]) -> list[Node]:
    """A copy of nodes of a graph for use in another one, with stacks of its own."""
    stacks = {n: empty() for n in order(nodes) if n.operation is EMPTY}
    return list(substitute(nodes, {**stacks, **by}))


def forward(inputs: Sequence[Node], outputs: Sequence[Node], arguments: Sequence[Node], dots: Sequence[Any]) -> Several:
    """The tangents of the outputs of a graph at some arguments; None where an output has none."""
    by_input = {v: d for v, d in zip(inputs, dots, strict=True) if d is not None}
    seeds = {v: fresh(v.type) for v in by_input}
    found = tangents(outputs, seeds)
    return _placed(found, {**dict(zip(inputs, arguments, strict=True)), **{s: by_input[v] for v, s in seeds.items()}})


def backward(
    inputs: Sequence[Node],
    outputs: Sequence[Node],
    arguments: Sequence[Node],
    deltas: Sequence[Any],
    wanted: Sequence[int],
) -> Several:
    """The adjoints of the wanted inputs of a graph at some arguments, from those of its outputs; None for others."""
    active = [i for i, d in enumerate(deltas) if d is not None and outputs[i].type.kind in DIFFERENTIABLE]
    arriving = {i: fresh(outputs[i].type) for i in active}
    adjoints = generate_adjoints([outputs[i] for i in active], list(arriving.values()), [inputs[i] for i in wanted])
    by = dict(zip(inputs, arguments, strict=True)) | {v: deltas[i] for i, v in arriving.items()}
    found = iter(_placed([adjoints[inputs[i]] for i in wanted], by))
    out: Several = [None] * len(inputs)
    for i in wanted:
        out[i] = next(found)
    return out


def _placed(found: Sequence[Any], by: Mapping[Node, Any]) -> Several:
    """Derivatives of a graph, with its inputs replaced by arguments."""
    done = iter(instance(merge([f for f in found if f is not None]), by))
    return [None if f is None else next(done) for f in found]


def filled(found: Sequence[Any], types: Sequence[Type]) -> list[Node]:
    """Derivatives with zeros in the place of None."""
    return [zero(t) if f is None else f for f, t in zip(found, types, strict=True)]
