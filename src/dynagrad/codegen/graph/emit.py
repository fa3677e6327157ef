"""Emits the C++ source of a whole graph: constants, functions, and the entry point.

The entry point has the signature of `dynagrad/calls/body.hpp`: pointers to the inputs, which are read only, and to the
outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import Error
from ...ir.control import Graph, GraphFunction, all_nodes
from ...ir.names import source_name
from ...ir.node import Node, order
from ...ir.operation import Trait
from ...ir.types import Type
from ...passes.bounds import GraphBounds
from ...passes.classify import holes_of, lowering_of
from ...passes.prepare import prepare
from ...runtime.compiling.objects import Object
from ..cxx import INDENT, Writer, comment, literal, paragraphs
from . import control, runtime_calls
from .blocks import Block
from .body import Body
from .memory import Arena, LocalVariable, Memory, Value
from .unit import Hosted, TranslationUnit

FLAGS = ("-ffp-contract=fast", "-fwrapv", "-fno-strict-aliasing", "-Wno-pass-failed")
"""Compiler flags for graphs besides those of all code: results agree to rounding only, and memory that held reals may
hold integers next.
"""


NAME = "body"
PRELUDE = "dynagrad/graphs/prelude.hpp"
"""The header that every source includes first, precompiled."""

OBJECTS = (Object("#define DYNAGRAD_RUNTIME\n#include <dynagrad/graphs/runtime.hpp>\n", bare=True),)
"""The object that every source is linked with (see `dynagrad/base/linked.hpp`)."""

_HEAD = """#include <dynagrad/graphs/call.hpp>
#include <dynagrad/graphs/vectors.hpp>

using namespace dynagrad;
using namespace dynagrad::graphs;
"""


LONG = 4000
"""The number of operations from which on a graph, with all that it runs, is a long source for a compiler."""

SMALL = 64
"""Constants with more elements are passed in by address, so that the text does not depend on the data."""


@dataclass(frozen=True)
class Text:
    """The C++ of a graph, and what has to be passed to it."""

    source: str
    hosted: tuple[Hosted, ...]  # the operations left to Python, by number
    uses: frozenset[str] = frozenset()  # the headers it includes besides the common ones
    arrays: tuple[Node, ...] = ()  # constants that are passed in by address
    saves: bool = False  # whether residuals are pushed on stacks
    divides: bool = False  # whether it has divisions or roots
    long: bool = False  # whether it has many operations
    limited: bool = False  # whether the time that a call may take is passed in by address

    @property
    def flags(self) -> tuple[str, ...]:
        """The compiler flags for the source, besides those of all code.

        Vectorisation of straight-line code (SLP) pays where there are divisions or roots, since two in a vector cost as
        much as one. Otherwise it makes chains of dependent operations slower: integrating an equation, by a third.
        """
        return FLAGS if self.divides else (*FLAGS, "-fno-slp-vectorize")

    @property
    def addresses(self) -> int:
        """How many addresses are passed in: the callback for operations left to Python, the limit on time where there
        is one, and the arrays."""
        return 1 + self.limited + len(self.arrays) if self.hosted or self.arrays or self.limited else 0


def emit(graph: Graph, symbol: str = NAME, *, limited: bool = False) -> Text:
    """The C++ of a graph as a function called `symbol`; `limited` where calls are told how long they may take.

    >>> from dynagrad.ir import variable
    >>> x = variable("x")
    >>> "t0 = x0 * x0" in emit(Graph((x,), (x * x,))).source
    True
    """
    return UnitWriter(limited).emit(graph, symbol)


class UnitWriter(TranslationUnit):
    """Emits a source: its functions and constants, and its entry point."""

    def __init__(self, limited: bool = False) -> None:
        super().__init__({"control": control.write, "stack": control.stack, "whole": runtime_calls.write})
        self.declared: list[str] = []
        self.defined: list[list[str]] = []
        self.used: set[Node] = set()  # the constants that functions use
        self.saves = False
        self.limited = limited

    # -- text --------------------------------------------------------------------------------------------------------

    def emit(self, graph: Graph, symbol: str) -> Text:
        for node in (*graph.inputs, *graph.outputs):
            if node.type.kind not in ("real", "integer", "boolean"):
                raise Error(f"a compiled graph takes and returns numbers and arrays, and {node!r:.60} is a {node.type}")
        self.threads = self.passes_constants = True
        graph = prepare(graph)
        body = self._body(graph, symbol)
        inner = self.definitions()
        parts = ["".join(f"#include <dynagrad/graphs/{name}.hpp>\n" for name in sorted(self.uses)) + _HEAD]
        if inner:
            parts.append("\n".join(["namespace {", "", *paragraphs(inner), "", "}  // namespace", ""]))
        parts.append("\n".join([*body, ""]))
        operations = [node.operation for node in all_nodes(graph) if node.arguments]
        return Text(
            "\n".join(parts),
            tuple(self.hosted),
            frozenset(self.uses),
            tuple(self.arrays),
            self.saves,
            any(Trait.DIVIDES in operation.traits for operation in operations),
            len(operations) >= LONG,
            self.limited,
        )

    def definitions(self) -> list[list[str]]:
        """The lines of each constant and function that is used, directly or by other functions."""
        while self.waiting:
            self._function(self.waiting.pop())
        constants = [
            _constant(node, name)
            for node, name in self.constants.items()
            if node in self.used and not self._passed_in(node)
        ]
        declared = [[head] for head in self.declared]
        return [*constants, *self.outlines.definitions(), *declared, *self.defined]

    def _passed_in(self, node: Node) -> bool:
        return self.passes_constants and node.type.size > SMALL

    def _constant_pointers(self, code: Body) -> list[str]:
        """Declarations of pointers to the large constants of a function."""
        out = []
        for node in self.constants:
            if node not in code.constants or not self._passed_in(node):
                continue
            at = self.arrays.setdefault(node, 1 + self.limited + len(self.arrays))
            name, t = self.constants[node], node.type.cxx
            text = f"const {t}* const {name} = static_cast<const {t}*>(call.context->given[{at}]);"
            out.append(f"{text}  // {node.type.name}")
        return out

    def _body(self, graph: Graph, symbol: str) -> list[str]:
        code = Body()
        inputs: list[Value] = []
        for k, node in enumerate(graph.inputs):
            t = node.type.cxx
            if node.shape:
                said = source_name(node.birth)
                name = f"in{k}" if said is None or not said.name else code.named(node, "in")
                code.line(f"const {t}* const {name} = static_cast<const {t}*>(inputs[{k}]);")
                inputs.append(Memory(LocalVariable(name), False))
            else:
                number = code.variable("x", node)
                code.line(f"const {t} {number} = *static_cast<const {t}*>(inputs[{k}]);")
                inputs.append(number)
        results: list[LocalVariable] = []
        for k, node in enumerate(graph.outputs):
            t = node.type.cxx
            if node.shape:
                results.append(LocalVariable(f"out{k}"))
                code.line(f"{t}* const {results[k]} = static_cast<{t}*>(outputs[{k}]);")
            else:
                results.append(LocalVariable(f"*static_cast<{t}*>(outputs[{k}])"))
        arena = Arena()
        self._statements(code, arena, graph, inputs, results, once=True)
        plain = not arena.most and not self.limited and _is_plain(graph) and not self._constant_pointers(code)
        code.line("return kDone;" if plain else "return call.end();")
        parameters = ["const Context* context", "const void* const*", "void* const*"]
        if graph.inputs:
            parameters[1] += " inputs"
        if graph.outputs:
            parameters[2] += " outputs"
        head = f"DYNAGRAD_EXPORT int64_t {symbol}({', '.join(parameters)})"
        limit = ", *static_cast<const int64_t*>(context->given[1])" if self.limited else ""
        call = [] if plain else [f"Call call(context{limit});"]
        first = [*call, *self._constant_pointers(code), *_rooms(code, arena)]
        return _function_lines(head, first, code, [])

    def _statements(
        self,
        code: Body,
        arena: Arena,
        graph: Graph,
        inputs: list[Value],
        results: list[LocalVariable],
        once: bool = False,
    ) -> None:
        """The statements of a function, whose results go to these variables, or to where they point; `once` a call."""
        prefer: dict[Node, LocalVariable] = {}
        for node, result in zip(graph.outputs, results, strict=True):
            if node.shape:
                prefer.setdefault(node, result)
        block = Block(self, code, arena, GraphBounds(graph), inputs, prefer, once=once)
        arrays = []
        for k, (value, node) in enumerate(zip(block.run(), graph.outputs, strict=True)):
            if isinstance(value, Memory):
                arrays.append((value, results[k], node.type))
            else:
                code.line(f"{results[k]} = {value};")
                if block.plan.cut_after_result(k):
                    code.cut()
        block.deliver(arrays)
        self.used |= code.constants
        self.saves = self.saves or code.slots > 0

    def _function(self, function: GraphFunction) -> None:
        graph = function.graph
        assert graph is not None, "it has been prepared"
        code = Body()
        name = self.functions[function]
        parameters = ["Call& call"]
        inputs: list[Value] = []
        for type, node in zip(function.arguments, graph.inputs, strict=True):
            given = code.variable("in", node)
            parameters.append(f"const {type.cxx}* {given}" if type.shape else f"{_spelled(type)} {given}")
            inputs.append(Memory(given, False) if type.shape else given)
        results = [LocalVariable(f"out{k}") for k in range(len(graph.outputs))]
        for type, result in zip(function.results, results, strict=True):
            parameters.append(f"{type.cxx}* {result}" if type.shape else f"{_spelled(type)}& {result}")
        arena = Arena()
        self._statements(code, arena, graph, inputs, results)
        head = f"int64_t {name}({', '.join(parameters)})"
        self.declared.append(f"{head};  // {comment(function.name)}")
        first = [
            "if (!call.enter()) return call.recursion();",
            "if (call.stops()) return call.stopped();",
            *self._constant_pointers(code),
            *_rooms(code, arena),
        ]
        last = []
        if arena.most:
            last.append(f"call.unframe({arena.most});")
        if code.slots and not any(t.kind == "stack" for t in function.results):
            last.append(f"call.unslot({code.slots});")
        last += ["call.leave();", "return kDone;"]
        self.defined.append(_function_lines(head, first, code, last))


def _is_plain(graph: Graph) -> bool:
    """Whether a graph is nothing but elements of arrays and their sums: it has no use for a `Call`, but for memory."""
    return all(
        node.type.kind in ("real", "integer", "boolean")
        and lowering_of(node) in ("leaf", "each", "view", "fold")
        and not holes_of(node)
        for node in order(graph.outputs)
    )


def _spelled(type: Type) -> str:
    return "Stack" if type.kind == "stack" else type.cxx


def _function_lines(head: str, first: Sequence[str], code: Body, last: Sequence[str]) -> list[str]:
    """A function, with lines before and after its body."""
    out = Writer()
    out.open(head)
    for line in first:
        out.line(line)
    out.lines += code.lines
    for line in last:
        out.line(line)
    out.close()
    return out.lines


def _rooms(code: Body, arena: Arena) -> list[str]:
    """The lines that allocate a function's frame and stacks from the memory of the call."""
    out = []
    if arena.most:
        out.append(f"char* const frame = call.frame({arena.most});")
        out.append("if (frame == nullptr) return call.memory();")
    if code.slots:
        out.append(f"Slot* const slots = call.slots({code.slots});")
        out.append("if (slots == nullptr) return call.memory();")
    return out


def _constant(node: Node, name: LocalVariable) -> list[str]:
    values = np.ravel(node.attribute)
    if not values.size:
        return [f"constexpr {node.type.cxx} {name}[1] = {{}};"]
    rows = []
    for start in range(0, values.size, 12):
        rows.append(INDENT + ", ".join(literal(v, operand=False) for v in values[start : start + 12].tolist()) + ",")
    return [f"alignas(64) const {node.type.cxx} {name}[{values.size}] = {{", *rows, "};"]
