"""The text of a function while it is written: its lines, and fresh names for what is in it. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Collection

from ...ir.names import source_name
from ...ir.node import Node
from ..cxx import Writer
from .memory import LocalVariable


class Body(Writer):
    """A writer for the body of a function, which keeps track of names."""

    def __init__(self) -> None:
        super().__init__(1)
        self.names: dict[str, int] = {}
        self.slots = 0  # the number of stacks of this function
        self.constants: set[Node] = set()  # the constant arrays that it uses

    def name(self, prefix: str) -> str:
        """A fresh name in this function."""
        self.names[prefix] = self.names.get(prefix, -1) + 1
        return f"{prefix}{self.names[prefix]}"

    def variable(self, prefix: str, node: Node | None = None) -> LocalVariable:
        """A new variable, named after the user's name for a node, where there is one."""
        return LocalVariable(self.name(prefix) if node is None else self.named(node, prefix))

    def named(self, node: Node, prefix: str) -> str:
        """A fresh name for a node: after the user's name for it, where there is one."""
        said = source_name(node.birth)
        return self.name(prefix if said is None or not said.name else f"{said.name}_")

    def comes_from(self, lines: Collection[int], what: str = "") -> None:
        """A comment with lines of the user's functions."""
        if lines:
            *others, last = map(str, sorted(lines))
            listed = f"lines {', '.join(others)} and {last}" if others else f"line {last}"
            self.line(f"// {what}{listed}")

    def cut(self) -> None:
        """Ends a basic block, by a branch that is never taken."""
        self.line("if (kNever) return kDone;")
