"""The body of a function of a graph: names that are free, how long its straight code is, how much work it does; and how
operations are spelled in it.
"""

from __future__ import annotations

from ...ir.names import source_name
from ...ir.node import Node
from ...passes.loops.linear_forms import Bounds
from ..cxx import Writer, literal

STRETCH = 800
"""Lines of straight code that compilers are given at once: they take far more than twice as long for twice as many."""
STORE = 4  # lines that one counts for which writes to memory: compilers compare it with all others


class Body(Writer):
    """The body of a function, and what is known of it as it is written."""

    def __init__(self) -> None:
        super().__init__(1)
        self.names: dict[str, int] = {}
        self.slots = 0  # stacks of this function
        self.straight = 0  # lines since the last loop or branch
        self.bounds = Bounds()
        self.work: int | None = 0  # about how many operations the lines are, None where that is not known
        self.constants: set[Node] = set()  # the arrays that it names
        self.divides = False  # whether there are divisions or roots in it

    def name(self, prefix: str) -> str:
        """A name that nothing else has in this function."""
        self.names[prefix] = self.names.get(prefix, -1) + 1
        return f"{prefix}{self.names[prefix]}"

    def named(self, node: Node, prefix: str) -> str:
        """A name for a node: what the user calls it, or else one with a prefix."""
        said = source_name(node.birth)
        return self.name(prefix if said is None else f"{said.name}_")

    def line(self, text: str = "") -> None:
        self._counted(STORE)
        super().line(text)

    def let(self, text: str) -> None:
        """A line that gives a name to a value, and writes to no memory."""
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
        """Ends the straight code so far, if it is long."""
        if self.straight >= STRETCH:
            self.line("if (kNever) return kDone;")
            self.straight = 0

    def operation(self, node: Node, arguments: list[str], in_loop: bool) -> str:
        """The text of an elementwise operation on names and literals."""
        self.divides = self.divides or node.operation.divides
        return _operation(node, arguments, in_loop)


def _operation(node: Node, arguments: list[str], in_loop: bool) -> str:
    operation = node.operation
    for value, text in operation.cxx_at:
        if arguments[-1] == literal(value):
            return text.format(*arguments)
    if in_loop and operation.in_loops:
        return f"{operation.in_loops}({', '.join(arguments)})"
    return operation.cxx.format(*arguments)
