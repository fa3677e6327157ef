"""The reference interpreter: evaluates a graph, operation by operation.

On floats and numpy arrays this defines the meaning of a graph, and native code is tested against it. On arrays of
another library that follows the array API standard (torch, jax.numpy), operations are those of that library, and one
that it lacks is an error that names it. Numbers that carry derivatives work too, since operations are applied to them.

A stack is a linked list from its top; see `control.py`. Subgraphs run on an explicit stack of generators, so recursion
in the graph may be deep. They are put in order once, however often they run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import Error, counted
from . import control
from .control import Branches, Called, Graph, Loop
from .namespaces import namespace_of
from .node import CONSTANT, VARIABLE, Node, order
from .operation import Operation, as_number
from .ops.cells import NOTHING
from .types import Type, boolean

DEEP = 100_000
"""The deepest nesting of running subgraphs."""

Steps = Generator[tuple[Graph, Sequence[Any]], list[Any], list[Any]]
"""A coroutine that yields a subgraph to run with its arguments, and is sent the results."""


def evaluate(outputs: Sequence[Node], values: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of the outputs, from those of the variables by name.

    >>> from dynagrad.ir import variable
    >>> x = variable("x")
    >>> evaluate([x * x, x > 0], {"x": 3})
    (9.0, True)
    """
    known = {node: _value(node, values) for node in order(outputs) if node.is_variable}
    return tuple(_run(outputs, known, namespace_of(list(known.values()))))


def run(graph: Graph, arguments: Sequence[Any], namespace: Any = None) -> tuple[Any, ...]:
    """The outputs of a graph applied to numbers and arrays.

    >>> from dynagrad.ir import variable
    >>> from dynagrad.ir.builders import repeat
    >>> x = variable("x")
    >>> run(Graph((x,), tuple(repeat(3, lambda i, y: [y * x], [1.0]))), [2.0])
    (8.0,)
    """
    if len(arguments) != len(graph.inputs):
        raise Error(f"the graph has {counted(len(graph.inputs), 'input')}, and was given {len(arguments)}")
    chosen = namespace_of(arguments) if namespace is None else namespace
    fitting = [_fitting(a, v.type, v.attribute) for a, v in zip(arguments, graph.inputs, strict=True)]
    return tuple(_run(graph.outputs, dict(zip(graph.inputs, fitting, strict=True)), chosen))


def _fitting(value: Any, type: Type, name: str) -> Any:
    shape = tuple(getattr(value, "shape", ()))
    if shape != type.shape:
        raise Error(f"the input {name} is a {type}, and its value has the shape {shape}")
    return value


def _value(node: Node, values: Mapping[str, Any]) -> Any:
    name = node.attribute
    if name not in values:
        named = ", ".join(sorted(values)) or "none"
        raise Error(f"no value is given for the variable {name}; values are given for: {named}")
    value = values[name]
    if node.type.shape:
        return _fitting(value, node.type, name)
    number = as_number(value)
    if number is None or (node.type is boolean and not isinstance(number, bool)):
        raise Error(f"the variable {name} is a {node.type}, and its value {value!r} is not")
    if node.type.kind == "integer":
        return int(value)
    return number if node.type is boolean else float(number)


_Row = tuple[Node, tuple[Node, ...], Callable[..., Steps] | None, Callable[..., Any] | None]
"""A node, its arguments, and who computes it: a subgraph that runs inside, or another function, if any."""


def _rows(outputs: Sequence[Node]) -> list[_Row]:
    """What has to be computed for the outputs, in order."""
    return [(n, n.arguments, _INSIDE.get(n.operation), _FLOW.get(n.operation)) for n in order(outputs)]


def _run(outputs: Sequence[Node], known: dict[Node, Any], xp: Any) -> list[Any]:
    ordered: dict[Graph, list[_Row]] = {}
    open_ = [_steps(_rows(outputs), outputs, known, xp)]
    results: list[Any] | None = None
    while open_:
        try:
            graph, arguments = next(open_[-1]) if results is None else open_[-1].send(results)
        except StopIteration as done:
            results = done.value
            open_.pop()
            continue
        if len(open_) >= DEEP:
            raise Error(f"a recursion is more than {DEEP:,} deep; if it ends at all, write it as a loop")
        results = None
        rows = ordered.get(graph)
        if rows is None:
            rows = ordered[graph] = _rows(graph.outputs)
        open_.append(_steps(rows, graph.outputs, dict(zip(graph.inputs, arguments, strict=True)), xp))
    assert results is not None
    return results


def _steps(rows: list[_Row], outputs: Sequence[Node], known: dict[Node, Any], xp: Any) -> Steps:
    for node, needed, inside, flow in rows:
        if node in known:
            continue
        arguments = [known[argument] for argument in needed]
        if inside is not None:
            known[node] = yield from inside(node, arguments)
        else:
            known[node] = xp.apply(node, arguments) if flow is None else flow(node, arguments, xp)
    return [known[output] for output in outputs]


def _cond(node: Node, arguments: list[Any]) -> Steps:
    branches: Branches = node.attribute
    return (yield branches.then if arguments[0] else branches.otherwise, arguments[1:])


def _repeat(node: Node, arguments: list[Any]) -> Steps:
    loop: Loop = node.attribute
    states, outside = arguments[1 : 1 + loop.states], arguments[1 + loop.states :]
    for i in range(int(arguments[0])):
        states = yield loop.body, [i, *states, *outside]
    return states


def _while(node: Node, arguments: list[Any]) -> Steps:
    loop: Loop = node.attribute
    states, outside = arguments[: loop.states], arguments[loop.states :]
    assert loop.condition is not None
    while (yield loop.condition, [*states, *outside])[0]:
        states = yield loop.body, [*states, *outside]
    return states


def _call(node: Node, arguments: list[Any]) -> Steps:
    called: Called = node.attribute
    if called.function.graph is None:
        raise Error(f"the function {called.function.name} has no body")
    return (yield called.function.graph, arguments)


def _variable(node: Node, arguments: list[Any], xp: Any) -> Any:
    raise Error(f"the variable {node.attribute} is no input of the graph")


def _pop(node: Node, arguments: list[Any], xp: Any) -> list[Any]:
    if arguments[0] is None:
        return [None, *(xp.constant(_nothing(t)) for t in node.attribute)]
    rest, items = arguments[0]
    return [rest, *items]


def _nothing(type: Type) -> Any:
    """Zeros, as they come off an empty stack."""
    if type.kind == "heap":
        return NOTHING
    if type.shape:
        return np.zeros(type.shape, {"integer": np.int64, "boolean": np.bool_}.get(type.kind, np.float64))
    return {"integer": 0, "boolean": False}.get(type.kind, 0.0)


_INSIDE: dict[Operation, Callable[[Node, list[Any]], Steps]] = {
    control.COND: _cond,
    control.REPEAT: _repeat,
    control.WHILE: _while,
    control.CALL: _call,
}
_FLOW: dict[Operation, Callable[[Node, list[Any], Any], Any]] = {
    VARIABLE: _variable,
    CONSTANT: lambda node, arguments, xp: xp.constant(node.attribute),
    control.PART: lambda node, arguments, xp: arguments[0][node.attribute],
    control.EMPTY: lambda node, arguments, xp: None,
    control.PUSH: lambda node, arguments, xp: (arguments[0], tuple(arguments[1:])),
    control.POP: _pop,
}
