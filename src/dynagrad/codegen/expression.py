"""Graphs of scalars as C++ expressions, with common subexpressions in locals. They need `base/math.hpp` alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import Error
from ..ir import Node, order
from ..ir.ops.spelling import FunctionCall
from .cxx import literal

NESTING = 40  # levels of an expression, beyond which a local is made; compilers limit nested parentheses to hundreds


@dataclass(frozen=True, slots=True)
class _Text:
    text: str
    atomic: bool = True  # can stand anywhere without parentheses
    depth: int = 0


def cxx(outputs: Sequence[Node], names: Mapping[str, str], *, prefix: str = "t") -> tuple[list[str], list[str]]:
    """Statements that compute shared subexpressions, and an expression for each output.

    `names` has the C++ text of each variable, which is repeated wherever the variable is used: a name, perhaps with
    members and indices, so that it needs no parentheses. Locals are named `prefix` and a number, which is no name of a
    variable.

    >>> from dynagrad.ir import exp, variable
    >>> x, y = variable("x"), variable("y")
    >>> statements, results = cxx([exp(x + y) * exp(x + y), x - -1.5], {"x": "x", "y": "in[1]"})
    >>> statements
    ['const double t0 = exp(x + in[1]);']
    >>> results
    ['t0 * t0', 'x - (-1.5)']
    """
    series = order(outputs)
    uses = _uses(series, outputs)
    statements: list[str] = []
    written: dict[Node, _Text] = {}
    number = 0
    for node in series:
        if node.is_constant:
            text = _Text(literal(node.attribute))
        elif node.is_variable:
            text = _variable(node.attribute, names)
        else:
            text = _operation(node, [written[argument] for argument in node.arguments])
            if uses[node] > 1 or text.depth > NESTING:
                statements.append(f"const {node.type.cxx} {prefix}{number} = {text.text};")
                text = _Text(f"{prefix}{number}")
                number += 1
        written[node] = text
    return statements, [written[output].text for output in outputs]


def _uses(series: Sequence[Node], outputs: Sequence[Node]) -> dict[Node, int]:
    """How often the text of each node would occur."""
    uses = dict.fromkeys(series, 0)
    for node in series:
        if node.arguments:
            for argument, times in zip(node.arguments, node.operation.written, strict=True):
                uses[argument] += times
    for output in outputs:
        uses[output] += 1
    return uses


def _operation(node: Node, arguments: list[_Text]) -> _Text:
    call = isinstance(node.operation.cxx, FunctionCall)
    texts = [a.text if call or a.atomic else f"({a.text})" for a in arguments]
    return _Text(node.operation.cxx.format(*texts), call, 1 + max(a.depth for a in arguments))


def _variable(name: str, names: Mapping[str, str]) -> _Text:
    if name not in names:
        raise Error(
            f"the variable {name} has no name in C++; those that have one: {', '.join(sorted(names)) or 'none'}"
        )
    return _Text(names[name])
