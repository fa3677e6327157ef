"""Outlining: loop nests of long graphs as functions, so that equal nests are compiled once.

Compilers take superlinear time in the length of a function, and an unrolled loop (over the letters of a text, say) has
nearly the same nests in every round. So the nests of a long graph are written with parameters for what they read and
write, and those that differ only in these become one function. In short graphs a call would cost more than it saves.
"""

from __future__ import annotations

from ...ir.node import Node
from ...passes.loops.index_forms import Form
from ..cxx import Writer
from .body import Body
from .loops import EnclosingBlock

MANY = 128
"""The number of loops from which on they are outlined."""


class Outline:
    """Stands in for the block around a nest: what the nest asks for becomes parameters of its function."""

    def __init__(self, around: EnclosingBlock) -> None:
        self.around, self.sums = around, around.sums
        self.begin()

    def begin(self) -> None:
        """Starts over: a nest may be written twice, and parameters of the first attempt are dropped."""
        self.code = Body()
        self.parameters: dict[str, tuple[str, str]] = {}  # type and name of a parameter, by the argument's text

    def comes_from(self, lines: set[int]) -> None:
        """Said beside the call, since loops of several lines may share a function."""
        self.around.comes_from(lines)

    def parameter(self, text: str, cxx: str) -> str:
        return self.parameters.setdefault(text, (cxx, f"given{len(self.parameters)}"))[1]

    def local_pointer(self, pointer: str) -> str:
        return self.parameter(pointer, "auto")

    def number(self, node: Node) -> str:
        return self.parameter(self.around.number(node), node.type.cxx)

    def pointer(self, node: Node) -> str | None:
        found = self.around.pointer(node)
        return None if found is None else self.local_pointer(found)

    def index(self, hole: Node, length: int) -> Form:
        form = self.around.index(hole, length)
        return Form(tuple((self.parameter(what, "int64_t"), times) for what, times in form.terms), form.offset)

    def check_all(self, hole: Node, length: int) -> bool:
        return self.around.check_all(hole, length)

    def scratch(self, node: Node, copies: int) -> str:
        return self.local_pointer(self.around.scratch(node, copies))


class Outlines:
    """The outlined functions of one source, by their texts."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, ...], str] = {}

    def name(self, made: Outline, results: dict[str, str]) -> str:
        """The name of a nest's function. `results` has the numbers it returns by reference, with their types."""
        parameters = [f"{cxx} const {name}" for cxx, name in made.parameters.values()]
        for k, (text, cxx) in enumerate(results.items()):
            parameters.append(f"{cxx}& result{k}")
            made.code.line(f"result{k} = {text};")
        return self._names.setdefault((", ".join(parameters), *made.code.lines), f"loop{len(self._names)}")

    def definitions(self) -> list[str]:
        """The C++ of all functions."""
        found = []
        for (parameters, *lines), name in self._names.items():
            out = Writer()
            out.open(f"__attribute__((noinline)) void {name}({parameters})")
            out.lines += lines
            out.close()
            found.append("\n".join(out.lines))
        return found
