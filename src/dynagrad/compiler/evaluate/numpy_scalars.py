"""Which single numbers of a graph are scalars of numpy: elements of arrays, and what was computed of them.

The graph has one kind of single number. The difference matters for sums of truth values, which are truth values in
numpy and whole numbers in Python. So the graph is searched backward for an array. The state of a loop that is being
made, and what a function of numpy makes of a Python float, count as Python's.

What follows for an operator is in `operators.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...ir import Node, control


def is_numpy_scalar(x: Any) -> bool:
    """Whether a value is an array or was computed of one, so that numpy has it as a scalar of its own."""
    if not isinstance(x, Node):
        return isinstance(x, np.generic | np.ndarray)
    stack, seen, bindings = [x], {x}, dict[Node, list[Node]]()
    while stack:
        node = stack.pop()
        if node.shape:
            return True
        if node.operation is control.PART:
            before = _sources(node.arguments[0], node.attribute, bindings)
        else:
            before = node.arguments
        for one in (*before, *bindings.get(node, ())):
            if one not in seen:
                seen.add(one)
                stack.append(one)
    return False


def _sources(node: Node, index: int, bindings: dict[Node, list[Node]]) -> Iterable[Node]:
    """The nodes that one result of a branch, a loop or a call depends on; `bindings` gets what its inputs stand for."""
    what = node.attribute
    if isinstance(what, control.Loop):
        given = node.arguments[1:] if node.operation is control.REPEAT else node.arguments
        states = what.body.inputs[len(what.body.inputs) - len(given) :]
        _bind(bindings, states, given)
        for state, after in zip(states, what.body.outputs, strict=False):
            bindings[state].append(after)
        return (given[index], what.body.outputs[index])
    if isinstance(what, control.Branches):
        for graph in (what.then, what.otherwise):
            _bind(bindings, graph.inputs, node.arguments[1:])
        return (what.then.outputs[index], what.otherwise.outputs[index])
    if isinstance(what, control.Called) and what.function.graph is not None:
        _bind(bindings, what.function.graph.inputs, node.arguments)
        return (what.function.graph.outputs[index],)
    return ()


def _bind(bindings: dict[Node, list[Node]], inputs: Iterable[Node], args: Iterable[Node]) -> None:
    for variable, one in zip(inputs, args, strict=True):
        bindings.setdefault(variable, []).append(one)
