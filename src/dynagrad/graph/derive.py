"""Derivatives: tangents forward, and adjoints by one sweep backward. The results of both are graphs again.

Three answers are kept apart. A value that does not depend on what was asked about, or only in steps, is not connected:
its derivative is None. A derivative that happens to vanish is a node like any other. An operation that has no
derivative raises `NotDifferentiable` where one would have to go through it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ..errors import Error, NotDifferentiable
from .node import Node, as_node, constant, order
from .operation import LinearMap, Operation
from .operations import add, where
from .types import real

_ZERO = constant(0.0)
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


# -- one operation -----------------------------------------------------------------------------------------------------


def tangent(operation: Operation, result: Any, arguments: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The tangent of the result, given those of the arguments; None stands for not connected on both sides.

    >>> from dynagrad.graph.operations import multiply
    >>> tangent(multiply, 6.0, (2.0, 3.0), (1.0, None))
    3.0
    """
    total = None
    for index, d in enumerate(tangents):
        rule = _rule(operation, index) if d is not None else None
        if rule is not None:
            part = rule(d, result, *arguments)
            total = part if total is None else add(total, part)
    return total


def increments(
    operation: Operation, result: Any, arguments: Sequence[Any], delta: Any, wanted: Iterable[int]
) -> list[tuple[int, Any]]:
    """What an operation whose complete adjoint is `delta` adds to the adjoints of its `wanted` arguments.

    >>> from dynagrad.graph.operations import multiply
    >>> increments(multiply, 6.0, (2.0, 3.0), 10.0, [0, 1])
    [(0, 30.0), (1, 20.0)]
    """
    if operation.adjoint is not None:
        parts = operation.adjoint(delta, result, *arguments)
        return [(index, parts[index]) for index in wanted if parts[index] is not None]
    rules = [(index, _rule(operation, index)) for index in wanted]
    return [(index, _inside(rule, delta, result, arguments)) for index, rule in rules if rule is not None]


def _inside(rule: LinearMap, delta: Any, result: Any, arguments: Sequence[Any]) -> Any:
    """A linear map of an adjoint; of one that is chosen or zero, the choice of what the map makes of it, or zero.

    So a branch that is not taken adds zero, also where a partial derivative there is infinite.
    """
    if isinstance(delta, Node):
        if delta.operation is where:
            condition, a, b = delta.arguments
            if b is _ZERO:
                return where(condition, _inside(rule, a, result, arguments), 0.0)
            if a is _ZERO:
                return where(condition, 0.0, _inside(rule, b, result, arguments))
        if delta.operation is add and any(_chosen(part) for part in delta.arguments):
            return add(*(_inside(rule, part, result, arguments) for part in delta.arguments))
    return rule(delta, result, *arguments)


def _chosen(node: Node) -> bool:
    if node.operation is add:
        return any(map(_chosen, node.arguments))
    return node.operation is where and any(argument is _ZERO for argument in node.arguments[1:])


def _rule(operation: Operation, index: int) -> LinearMap | None:
    if operation.tangent is None:
        raise NotDifferentiable(
            f"the operation {operation.name} has no derivative, and one is asked for through its argument {index + 1}; "
            "declare a tangent for it, or leave it out of what is differentiated"
        )
    return operation.tangent[index]


# -- graphs ------------------------------------------------------------------------------------------------------------


def tangents(outputs: Sequence[Node], seeds: Mapping[Node, Node | float | None]) -> tuple[Node | None, ...]:
    """The tangents of the outputs, given tangents of some nodes; None where an output is not connected to these.

    >>> from dynagrad.graph import variable
    >>> x, dx = variable("x"), variable("dx")
    >>> tangents([x * x, x > 0], {x: dx})
    ((dx * x) + (dx * x), None)
    """
    known: dict[Node, Any] = {}
    for node in order(outputs):
        d = _lift(seeds.get(node))
        arriving = tangent(node.operation, node, node.arguments, [known[argument] for argument in node.arguments])
        known[node] = arriving if d is None else d if arriving is None else add(arriving, d)
    return tuple(known[output] for output in outputs)


def sweep(
    order: Sequence[Key],
    seed: Mapping[Key, Value],
    add: Callable[[Value, Value], Value],
    generate: Callable[[Key, Value], Iterable[tuple[Key, Value]]],
    keep: Collection[Key],
) -> dict[Key, Value]:
    """Go backward over a let-series and return the adjoints of what is to be kept.

    The first increment of an adjoint initialises it, the others are added. It is final when the sweep reaches its
    value, because everything that uses a value stands after it: then `generate` says what it adds to the arguments,
    and it is dropped unless it is to be kept. What was never reached is not in the result.
    """
    adjoints = dict(seed)
    kept: dict[Key, Value] = {}
    for step in reversed(order):
        delta = adjoints.pop(step, None)
        if delta is None:
            continue
        if step in keep:
            kept[step] = delta
        for argument, increment in generate(step, delta):
            adjoints[argument] = add(adjoints[argument], increment) if argument in adjoints else increment
    return kept


def generate_adjoints(
    outputs: Sequence[Node], cotangents: Sequence[Node | float | None], wrt: Sequence[Node]
) -> dict[Node, Node | None]:
    """The adjoint of each node of `wrt`: what it adds to the sum of the outputs weighted with the cotangents.

    An adjoint is that of a change added to the node, so a node of `wrt` may lie on the way to another. A cotangent None
    leaves its output out; an adjoint None says that no output is connected to the node.

    >>> from dynagrad.graph import variable
    >>> x, y, z = map(variable, "xyz")
    >>> generate_adjoints([x * y], [1.0], [x, z])
    {x: 1.0 * y, z: None}
    """
    if len(outputs) != len(cotangents):
        raise Error(f"{len(outputs)} outputs need as many cotangents, and {len(cotangents)} were given")
    seed: dict[Node, Node] = {}
    for output, cotangent in zip(outputs, map(_lift, cotangents), strict=True):
        if cotangent is not None:
            seed[output] = add(seed[output], cotangent) if output in seed else cotangent
    series = order(outputs)
    keep = set(wrt)
    connected = _connected(series, keep)

    def generate(node: Node, delta: Node) -> Iterable[tuple[Node, Node]]:
        wanted = [index for index, argument in enumerate(node.arguments) if argument in connected]
        parts = increments(node.operation, node, node.arguments, delta, wanted)
        return [(node.arguments[index], part) for index, part in parts]

    adjoints = sweep(series, seed, add, generate, keep)
    return {node: adjoints.get(node) for node in wrt}


def _connected(series: Sequence[Node], roots: set[Node]) -> set[Node]:
    """The nodes that depend on the roots other than in steps."""
    connected: set[Node] = set()
    for node in series:
        rules = node.operation.tangent
        if node in roots or any(
            argument in connected and (rules is None or rules[index] is not None)
            for index, argument in enumerate(node.arguments)
        ):
            connected.add(node)
    return connected


def _lift(value: Node | float | None) -> Node | None:
    if value is None:
        return None
    node = as_node(value)
    if node is None or node.type is not real:
        raise Error(f"a tangent or an adjoint is a real, and {value!r} is none")
    return node
