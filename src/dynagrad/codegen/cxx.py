"""Lines of C++ as they are written: indented, with names that are free, and how numbers and operations are spelled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..ir.node import Node
from ..passes.loops.linear_forms import Bounds
from .literals import literal

IN_LINE = {name: f"vector::{name}" for name in ("exp", "expm1", "log", "log1p", "tanh", "sigmoid", "sin", "cos")}
IN_LINE["power"] = "vector::pow"
"""Functions of the runtime that loops over arrays call instead of those of C, by the name of the operation."""


STRETCH = 800
"""Lines of straight code that compilers are given at once: they take far more than twice as long for twice as many."""
STORE = 4  # lines that one counts for which writes to memory: compilers compare it with all others


class Lines:
    """Lines of one function. Blocks nest; a part can be written aside and put in later."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[str, int] = {}
        self.slots = 0  # stacks of this function
        self.straight = 0  # lines since the last loop or branch
        self.bounds = Bounds()
        self.work: int | None = 0  # about how many operations the lines are, None where that is not known

    def name(self, prefix: str) -> str:
        """A name that nothing else has in this function."""
        self.names[prefix] = self.names.get(prefix, -1) + 1
        return f"{prefix}{self.names[prefix]}"

    def line(self, text: str) -> None:
        if self.work is not None:
            self.work += 1
        if text.endswith(("{", "}")):
            self.straight = 0
        else:
            self.straight += 1 if text.startswith("const ") else STORE
        self.lines.append("    " * self.depth + text)

    def cut(self) -> None:
        """Ends the straight code so far, if it is long."""
        if self.straight >= STRETCH:
            self.line("if (kNever) return kDone;")
            self.straight = 0

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

__all__ = ["IN_LINE", "Lines", "literal", "operation"]
