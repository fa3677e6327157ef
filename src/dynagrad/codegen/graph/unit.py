"""A translation unit: what the functions of one source share: names, constants, headers, operations left to Python.

Blocks ask for these as they are written (`blocks.py`), and `emit.py` writes them at the end. The writers of steps that
are not loop nests are a table that `emit.py` passes in, since they import blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...ir.control import GraphFunction
from ...ir.node import Node
from ...ir.operation import Operation
from ...ir.types import Type
from .memory import LocalVariable
from .nests.outlines import Outlines


@dataclass(frozen=True)
class Hosted:
    """An operation that native code leaves to Python, with the types of its arguments and its result."""

    operation: Operation
    arguments: tuple[Type, ...]
    result: Type


class TranslationUnit:
    """The functions of a source so far; `steps` has the writers of steps by lowering (`passes/classify.py`)."""

    def __init__(self, steps: Mapping[str, Callable[[Any, Node], None]]) -> None:
        self.steps = steps
        self.constants: dict[Node, LocalVariable] = {}
        self.passes_constants = False  # whether large constants are passed in by address, and not part of the text
        self.arrays: dict[Node, int] = {}  # the constants that are passed in, by position
        self.functions: dict[GraphFunction, str] = {}
        self.waiting: list[GraphFunction] = []
        self.hosted: list[Hosted] = []
        self.threads = False  # whether loops over large arrays may run in parallel
        self.uses: set[str] = set()  # headers that only some graphs need, since they are slow to compile
        self.outlines = Outlines()

    def constant(self, node: Node) -> LocalVariable:
        """The array of a constant."""
        found = self.constants.get(node)
        if found is None:
            found = self.constants[node] = LocalVariable(f"constant{len(self.constants)}")
        return found

    def function(self, function: GraphFunction) -> str:
        """The name of a function, which is written later."""
        found = self.functions.get(function)
        if found is None:
            found = self.functions[function] = f"function{len(self.functions)}"
            self.waiting.append(function)
        return found

    def host(self, node: Node) -> int:
        """The number of an operation that is left to Python."""
        self.hosted.append(Hosted(node.operation, tuple(a.type for a in node.arguments), node.type))
        return len(self.hosted) - 1
