"""What the functions of one source share: their names, constants, headers, and what Python computes for them.

Blocks ask for all this as they are written (`blocks.py`); what becomes of it is written in the end (`emit.py`). How the
steps of a block that are more than a loop nest are written is a table that whoever makes a source hands over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...ir.control import GraphFunction
from ...ir.node import Node
from ...ir.operation import Operation
from ...ir.types import Type
from .outline import Outlines


@dataclass(frozen=True)
class Hosted:
    """An operation that Python computes, and the types of its arguments and its result."""

    operation: Operation
    arguments: tuple[Type, ...]
    result: Type


class TranslationUnit:
    """The functions of a source so far, and how each role of a step (`passes/roles.py`) is written, given its block."""

    def __init__(self, steps: Mapping[str, Callable[[Any, Node], None]]) -> None:
        self.steps = steps
        self.constants: dict[Node, str] = {}
        self.apart = False  # whether functions are given large constants, rather than written with them
        self.arrays: dict[Node, int] = {}  # the constants that they are given, and as which
        self.functions: dict[GraphFunction, str] = {}
        self.waiting: list[GraphFunction] = []
        self.hosted: list[Hosted] = []
        self.threads = False  # whether loops over large arrays may run in several
        self.uses: set[str] = set()  # headers for what only some graphs do, which takes long to compile
        self.outlines = Outlines()

    def constant(self, node: Node) -> str:
        """The name of the array of a constant."""
        found = self.constants.get(node)
        if found is None:
            found = self.constants[node] = f"constant{len(self.constants)}"
        return found

    def function(self, function: GraphFunction) -> str:
        """The name of a function, which is written later."""
        found = self.functions.get(function)
        if found is None:
            found = self.functions[function] = f"function{len(self.functions)}"
            self.waiting.append(function)
        return found

    def host(self, node: Node) -> int:
        self.hosted.append(Hosted(node.operation, tuple(a.type for a in node.arguments), node.type))
        return len(self.hosted) - 1
