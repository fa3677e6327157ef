"""Writes operations that are one call: of the runtime library where it has a function, otherwise of Python.

`RUNTIME` and `HEADERS` have the functions by family of `Operation.code`. Other operations call back into Python, which
computes them on the arrays in memory: slow, but right.

Which function computes a family is in `calls/`, and what it does in `runtime/include/dynagrad/graphs`.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import Error
from ...ir.code import code_of
from ...ir.node import Node
from .blocks import Block
from .calls import axes, failing, linear
from .calls.status import Status, Written

Call = Callable[..., Written]
"""(node, result, *arguments) -> what computes the result."""


def _cumsum(node: Node, out: str, x: str) -> str:
    parts = axes.split(node.shape, (code_of(node)[1],))
    assert parts is not None, "it is one axis"
    return f"cumsum({out}, {x}, {parts[0]}, {parts[1]}, {parts[2]});"


RUNTIME: dict[str, Call] = {"cumsum": _cumsum}
HEADERS = {
    **{header: linear.rule_in(header) for header in linear.RULES},
    "axes": axes.rule_of,
    "failure": failing.rule_of,
}
"""Rules by the header that has their functions, which is included where one of them is called."""


def write(block: Block, node: Node) -> None:
    """Writes the call that computes a node."""
    code = block.code
    if node.type.kind not in ("real", "integer", "boolean"):
        raise Error(f"native code cannot compute the operation {node.operation.name}: its result is a {node.type}")
    arguments = []
    for a in node.arguments:
        if a.shape:
            arguments.append(str(block.whole_pointer(a)))
            continue
        single = code.name("c")
        code.line(f"const {a.type.cxx} {single} = {block.assigned(a)};")
        arguments.append(f"&{single}")
    if node.shape:
        result = str(block.fresh(node).pointer)
    else:
        number = code.variable("c")
        code.line(f"{node.type.cxx} {number};")
        block.numbers[node] = number
        result = f"&{number}"
    tag = code_of(node)
    rule = RUNTIME.get(tag[0]) if tag else None
    text = None if rule is None else rule(node, result, *arguments)
    for header, rule_of in HEADERS.items():
        if text is None and (other := rule_of(node)) is not None:
            text = other(node, result, *arguments)
            if text is not None:
                block.program.uses.add(header)
    if text is None:
        at = block.program.host(node)
        given = ", ".join(arguments) or "nullptr"
        array = code.name("given")
        code.line(f"const void* const {array}[] = {{{given}}};")
        code.line(f"if (!host_operation(call, {at}, {array}, {result})) return call.host();")
        return
    if isinstance(text, Status):
        status = code.name("status")
        code.line(f"if (const int64_t {status} = {text.call}; {status} != kDone) return {status};")
    else:
        code.line(text)
