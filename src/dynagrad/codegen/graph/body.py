"""The text of a function while it is written: fresh names, lengths of basic blocks, estimated work."""

from __future__ import annotations

from collections.abc import Collection

from ...ir.names import source_name
from ...ir.node import Node
from ...passes.loops.linear_forms import Bounds
from ..cxx import Writer

STRETCH = 800
"""The most lines of a basic block, since compilers take superlinear time in its length."""
STORE = 4  # how many lines a store counts for: alias analysis compares it with all others


class Body(Writer):
    """A writer for the body of a function, which keeps track of names, basic blocks and work."""

    def __init__(self) -> None:
        super().__init__(1)
        self.names: dict[str, int] = {}
        self.slots = 0  # the number of stacks of this function
        self.straight = 0  # the length of the current basic block
        self.bounds = Bounds()
        self.work: int | None = 0  # an estimate of the operations it runs; None where that is not known
        self.constants: set[Node] = set()  # the constant arrays that it uses
        self.divides = False  # whether it has divisions or roots

    def name(self, prefix: str) -> str:
        """A fresh name in this function."""
        self.names[prefix] = self.names.get(prefix, -1) + 1
        return f"{prefix}{self.names[prefix]}"

    def named(self, node: Node, prefix: str) -> str:
        """A fresh name for a node: after the user's name for it, where there is one."""
        said = source_name(node.birth)
        return self.name(prefix if said is None or not said.name else f"{said.name}_")

    def line(self, text: str = "") -> None:
        self._counted(STORE)
        super().line(text)

    def comes_from(self, lines: Collection[int], what: str = "") -> None:
        """A comment with lines of the user's functions. It counts for nothing, so code is the same without it."""
        if lines:
            *others, last = map(str, sorted(lines))
            listed = f"lines {', '.join(others)} and {last}" if others else f"line {last}"
            super().line(f"// {what}{listed}")

    def let(self, text: str) -> None:
        """A line that declares a value and stores nothing in memory."""
        self._counted(1)
        super().line(text)

    def open(self, text: str) -> None:
        super().open(text)
        self.straight = 0

    def close(self, text: str = "}") -> None:
        super().close(text)
        self.straight = 0

    def _counted(self, lines: int) -> None:
        self.straight += lines
        if self.work is not None:
            self.work += 1

    def cut(self) -> None:
        """Ends the current basic block if it is long, by a branch that is never taken."""
        if self.straight >= STRETCH:
            self.line("if (kNever) return kDone;")
            self.straight = 0
