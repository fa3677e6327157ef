"""Loops over arrays as functions of their own: what a graph of thousands of loops is compiled as.

A compiler takes more than twice as long for a function of twice the length, and a round that is written out many times
(over the letters of a text) is much the same each time. So a loop nest is written with parameters in the place of what
it reads and writes; nests that differ in these alone are one function, which is compiled once. Short graphs stay in one
piece: there a call costs more than it saves.
"""

from __future__ import annotations

from ...ir.node import Node
from ...passes.loops.index_forms import Form
from ..cxx import Writer
from .body import Body
from .loops import Around

MANY = 128
"""Loops of a graph from which on they are functions."""


class Outline:
    """What a nest asks of the block that it stands in, as parameters of the function that it becomes."""

    def __init__(self, around: Around) -> None:
        self.around, self.sums = around, around.sums
        self.begin()

    def begin(self) -> None:
        """The nest is written anew: what a first try asked for is no parameter."""
        self.code = Body()
        self.parameters: dict[str, tuple[str, str]] = {}  # what the block calls it: the type and name of the parameter

    def parameter(self, text: str, cxx: str) -> str:
        return self.parameters.setdefault(text, (cxx, f"given{len(self.parameters)}"))[1]

    def given(self, pointer: str) -> str:
        return self.parameter(pointer, "auto")

    def number(self, node: Node) -> str:
        return self.parameter(self.around.number(node), node.type.cxx)

    def pointer(self, node: Node) -> str | None:
        found = self.around.pointer(node)
        return None if found is None else self.given(found)

    def index(self, hole: Node, length: int) -> Form:
        form = self.around.index(hole, length)
        return Form(tuple((self.parameter(what, "int64_t"), times) for what, times in form.terms), form.offset)

    def check_all(self, hole: Node, length: int) -> bool:
        return self.around.check_all(hole, length)

    def scratch(self, node: Node, copies: int) -> str:
        return self.given(self.around.scratch(node, copies))


class Outlines:
    """The functions of one source, by their texts."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, ...], str] = {}

    def name(self, made: Outline, results: dict[str, str]) -> str:
        """The function of a nest, whose `results` go to parameters: each number in it, and its type."""
        parameters = [f"{cxx} const {name}" for cxx, name in made.parameters.values()]
        for k, (text, cxx) in enumerate(results.items()):
            parameters.append(f"{cxx}& result{k}")
            made.code.line(f"result{k} = {text};")
        return self._names.setdefault((", ".join(parameters), *made.code.lines), f"loop{len(self._names)}")

    def definitions(self) -> list[str]:
        found = []
        for (parameters, *lines), name in self._names.items():
            out = Writer()
            out.open(f"__attribute__((noinline)) void {name}({parameters})")
            out.lines += lines
            out.close()
            found.append("\n".join(out.lines))
        return found
