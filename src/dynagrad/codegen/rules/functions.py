"""Right sides with control flow or arrays, as C++ functions that joins call.

A right side that calls a function with branches, loops, recursion or arrays becomes a graph with control flow, and so
do its adjoints and its components over jets. Such a graph becomes a function of its own in the source of a program,
over `dynagrad/running/functions.hpp`. Graphs of scalar operations alone are expressions in the rules
(`codegen/expression.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import Error
from ...ir import Node, order
from ...ir.control import Graph, GraphFunction, all_nodes
from ...ir.types import real
from ...passes.optimise import optimise
from ...plan.right_sides import as_real
from ...runtime.compiling.objects import Object
from ..cxx import paragraphs

if TYPE_CHECKING:
    from ..graph.emit import UnitWriter

T = TypeVar("T")

NAMESPACE = "rule_functions"
"""The alias, in the class of a program, of the namespace of its functions, whose name is a hash of its content."""

# The writer of whole graphs is imported when it is first needed: most programs have no such function.

INTEGERS = ("-fwrapv", "-fno-strict-aliasing")
"""The compiler flags of sources with functions: integers wrap around, and memory of reals may hold integers later."""

STEP = 9
"""How many operations of a function are as much to a compiler as one step of a join, the unit of `plan/size.py`."""


@dataclass(frozen=True)
class Code:
    """C++ of some graphs: statements to be written first, and an expression for each graph.

    Where there is a `call`, it is to be made before the expressions are used; it returns zero, unless it failed. `name`
    says in errors what failed.
    """

    statements: Sequence[str]
    results: Sequence[str]
    call: str = ""
    name: str = ""


def _place(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """A key in which nodes are replaced by their identities, because `==` on nodes builds a graph."""
    return tuple((Node, id(k)) if isinstance(k, Node) else k for k in key)


class Functions:
    """The functions of one source: collected while its rules are written, and written before them.

    The class of a source with functions has a member for what they share. As classes that work on the same charts need
    the same members, it also counts as having some where only the class that it is `like` calls any.
    """

    def __init__(self, like: Functions | None = None) -> None:
        self._objects: tuple[Object, ...] = () if like is None else like.objects()
        self._program: UnitWriter | None = None
        self._wrappers: list[str] = []
        self._once: dict[tuple[Any, ...], Any] = {}
        self._operations = 0

    def once(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """The result of `make`, memoised by key, so that equal requests share nodes, and so a function."""
        place = _place(key)
        if place not in self._once:
            self._once[place] = (key, make())
        found: T = self._once[place][1]
        return found

    def call(self, outputs: Sequence[Node], names: Mapping[str, str], prefix: str, name: str) -> Code:
        """A call of the function that computes these outputs; `names` has the C++ texts of its variables."""
        called, inputs = self.once(tuple(outputs), lambda: self._function(tuple(outputs), name))
        results = [f"{prefix}{i}" for i in range(len(outputs))]
        given = ", ".join(["functions", *(names[v.attribute] for v in inputs), *results])
        declared = "double " + ", ".join(f"{r} = 0" for r in results) + ";"
        return Code([declared], results, f"{NAMESPACE}::{called}({given})", name)

    def _function(self, outputs: tuple[Node, ...], name: str) -> tuple[str, list[Node]]:
        from ...passes.prepare import prepare_function  # for a quick start
        from ..graph.emit import OBJECTS, UnitWriter  # for a quick start

        if self._program is None:
            self._program, self._objects = UnitWriter(), OBJECTS
        inputs = sorted((n for n in order(outputs) if n.is_variable), key=lambda n: str(n.attribute))
        made = GraphFunction(name, [v.type for v in inputs], [real] * len(outputs))
        made.graph = optimise(Graph(tuple(inputs), tuple(map(as_real, outputs))))
        prepared = prepare_function(made)
        assert prepared.graph is not None
        self._operations += sum(bool(node.arguments) for node in all_nodes(prepared.graph))
        inner = self._program.function(prepared)
        self._program.definitions()  # raises here, where the rule is known, for what cannot be compiled
        if self._program.hosted:
            operation = self._program.hosted[0].operation.name
            raise Error(f"the function {name} uses {operation}, which is computed in Python; rules run without Python")
        called = f"call{len(self._wrappers)}"
        parameters = [f"double a{i}" for i in range(len(inputs))] + [f"double& b{i}" for i in range(len(outputs))]
        given = [f"a{i}" for i in range(len(inputs))] + [f"b{i}" for i in range(len(outputs))]
        self._wrappers += [
            f"int64_t {called}({', '.join(['Functions& functions', *parameters])}) {{",
            "  RuleCall call(functions);",
            f"  return {inner}({', '.join(['call', *given])});",
            "}",
        ]
        return called, inputs

    @property
    def size(self) -> int:
        """About how large the functions are, in the unit of `plan/size.py`."""
        return self._operations // STEP

    def includes(self) -> list[str]:
        """The headers that the functions need."""
        uses = sorted(self._program.uses) if self._program is not None else []
        return ["running/functions.hpp", *(f"graphs/{header}.hpp" for header in uses)] if self else []

    def objects(self) -> tuple[Object, ...]:
        """The objects that the functions are linked with."""
        return self._objects

    def write(self) -> tuple[list[str], list[str]]:
        """The lines of the functions, before the class, and of the alias of their namespace, in it."""
        if self._program is None:
            return [], []
        body = paragraphs([*self._program.definitions(), self._wrappers])
        content = "\n".join(body).encode()
        space = f"rules_{hashlib.sha256(content).hexdigest()[:16]}"
        defined = [
            f"#ifndef DYNAGRAD_{space}",
            f"#define DYNAGRAD_{space}",
            f"namespace dynagrad::graphs::{space} {{",
            "namespace {  // of this source alone",
            "using Call = RuleCall;",
            "",
            *body,
            "",
            f"}}}}  // namespace dynagrad::graphs::{space}",
            "#endif",
            "",
        ]
        return defined, [f"namespace {NAMESPACE} = ::dynagrad::graphs::{space};"]

    def __bool__(self) -> bool:
        return bool(self._objects)
