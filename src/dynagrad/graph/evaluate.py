"""Computing a graph on plain numbers, operation by operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import Error
from .node import Node, order
from .operation import as_number
from .types import boolean


def evaluate(outputs: Sequence[Node], values: Mapping[str, float | bool]) -> tuple[float | bool, ...]:
    """The values of the outputs, given those of the variables by name.

    >>> from dynagrad.graph import variable
    >>> x = variable("x")
    >>> evaluate([x * x, x > 0], {"x": 3})
    (9.0, True)
    """
    known: dict[Node, float | bool] = {}
    for node in order(outputs):
        if node.is_constant:
            known[node] = node.attribute
        elif node.is_variable:
            known[node] = _value(node, values)
        else:
            known[node] = node.operation.value(*[known[argument] for argument in node.arguments])
    return tuple(known[output] for output in outputs)


def _value(node: Node, values: Mapping[str, float | bool]) -> float | bool:
    name = node.attribute
    if name not in values:
        given = ", ".join(sorted(values)) or "none"
        raise Error(f"no value is given for the variable {name}; values are given for: {given}")
    number = as_number(values[name])
    if number is None or (node.type is boolean and not isinstance(number, bool)):
        raise Error(f"the variable {name} is a {node.type}, and its value {values[name]!r} is not")
    return number if node.type is boolean else float(number)
