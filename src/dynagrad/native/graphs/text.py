"""Lines of C++ as they are written: indented, with names that are free, and how numbers and operations are spelled."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager

from ...graph.node import Node

_INTEGER_MIN = -(2**63)
_ATOM = re.compile(r"[\w.]+")

IN_LINE: dict[str, str] = {}
"""Functions of the runtime that loops over arrays call instead of those of C, by the name of the operation."""


class Lines:
    """Lines of one function. Blocks nest; a part can be written aside and put in later."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[str, int] = {}
        self.slots = 0  # stacks of this function

    def name(self, prefix: str) -> str:
        """A name that nothing else has in this function."""
        self.names[prefix] = self.names.get(prefix, -1) + 1
        return f"{prefix}{self.names[prefix]}"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        self.line(f"{head} {{" if head else "{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line(tail)

    @contextmanager
    def aside(self) -> Iterator[list[str]]:
        """Lines written in here go to a list of their own."""
        kept, self.lines = self.lines, []
        written = self.lines
        yield written
        self.lines = kept


def literal(value: float | int | bool) -> str:
    """A number in C++; one with a sign in parentheses.

    >>> literal(2.0), literal(-1), literal(True), literal(float("-inf"))
    ('2.0', '(-1)', 'true', '(-HUGE_VAL)')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if value == _INTEGER_MIN:
            return "INT64_MIN"
        text = str(abs(value)) + ("LL" if abs(value) >= 2**31 else "")
        return text if value >= 0 else f"(-{text})"
    if math.isnan(value):
        return "double(NAN)"
    text = "HUGE_VAL" if math.isinf(value) else repr(abs(value))
    return text if math.copysign(1.0, value) > 0.0 else f"(-{text})"


def operation(node: Node, arguments: list[str], in_loop: bool) -> str:
    """The text of an elementwise operation on names and literals."""
    name = node.operation.name
    if name == "power":
        power = _POWERS.get(arguments[1])
        if power is not None:
            return power.format(arguments[0])
    if in_loop and name in IN_LINE:
        return f"{IN_LINE[name]}({', '.join(arguments)})"
    return node.operation.cxx.format(*arguments)


_POWERS = {"2.0": "{0} * {0}", "3.0": "{0} * {0} * {0}", "1.0": "{0}", "(-1.0)": "1.0 / {0}", "0.0": "1.0"}
