"""Outlining: loop nests of long graphs as functions, so that equal nests are compiled once.

Compilers take superlinear time in the length of a function, and an unrolled loop (over the letters of a text, say) has
nearly the same nests in every round. So the nests of a long graph are built with parameters for what they read and
write, and those that differ only in these are one function. In short graphs a call would cost more than it saves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...cxx import Writer
from ..body import Body
from .model import LoopNest
from .write import write


@dataclass(frozen=True)
class Outline:
    """A nest as the body of a function: its parameters and the numbers it returns by reference, as type and name."""

    nest: LoopNest
    parameters: tuple[tuple[str, str], ...]
    results: tuple[tuple[str, str], ...]


class Outlines:
    """The outlined functions of one source, by what they compute: equal nests are one function. Nothing is written
    before all are known."""

    def __init__(self) -> None:
        self._names: dict[Outline, str] = {}

    def function(self, outline: Outline) -> str:
        """The name of the function of a nest."""
        return self._names.setdefault(outline, f"loop{len(self._names)}")

    def definitions(self) -> list[list[str]]:
        """The lines of each function."""
        return [_definition(outline, name) for outline, name in self._names.items()]


def _definition(outline: Outline, name: str) -> list[str]:
    parameters = [f"{cxx} const {given}" for cxx, given in outline.parameters]
    parameters += [f"{cxx}& result{number}" for number, (cxx, _) in enumerate(outline.results)]
    body = Body()
    write(body, outline.nest)
    for number, (_, result) in enumerate(outline.results):
        body.line(f"result{number} = {result};")
    out = Writer()
    with out.block(f"__attribute__((noinline)) void {name}({', '.join(parameters)})"):
        out.lines += body.lines
    return out.lines


def outline_of(nest: LoopNest, parameters: Mapping[str, tuple[str, str]], results: Mapping[str, str]) -> Outline:
    """A nest as a function, from its parameters by argument, and the types of its results by name."""
    return Outline(nest, tuple(parameters.values()), tuple((cxx, name) for name, cxx in results.items()))
