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
        self.code = Body()
        self.given: dict[str, str] = {}  # what the block calls it, and the parameter

    def parameter(self, text: str) -> str:
        return self.given.setdefault(text, f"given{len(self.given)}")

    def number(self, node: Node) -> str:
        return self.parameter(self.around.number(node))

    def pointer(self, node: Node) -> str | None:
        found = self.around.pointer(node)
        return None if found is None else self.parameter(found)

    def index(self, hole: Node, length: int) -> Form:
        form = self.around.index(hole, length)
        return Form(tuple((self.parameter(what), times) for what, times in form.terms), form.offset)

    def check_all(self, hole: Node, length: int) -> bool:
        return self.around.check_all(hole, length)

    def scratch(self, node: Node, copies: int) -> str:
        return self.parameter(self.around.scratch(node, copies))


class Outlines:
    """The functions of one source, by their texts."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, ...], str] = {}

    def name(self, made: Outline, results: dict[str, str]) -> str:
        """The function of a nest, whose `results` go to parameters: each text in it, and its parameter."""
        parameters = [f"auto const {name}" for name in made.given.values()]
        parameters += [f"auto& {name}" for name in results.values()]
        for text, name in results.items():
            made.code.line(f"{name} = {text};")
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
