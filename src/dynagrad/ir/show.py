"""Graphs as text: a let-series (A-normal form), one value a line.

    (x : real, n : integer)
    t1 : boolean = x > 0.0
    t2 : real = if t1:
        t3 : real = exp(x)
        give t3
    else:
        give x
    t4 : real = repeat n times (i1; s1 = t2):
        t5 : real = s1 * x
        next t5
    -> t4

A subgraph is indented and uses the names around it, as the body of a loop in Python does; the first line of a loop has
the initial values of its states. Functions that are called come first. `series_of` gives the lines as data, which
`draw.py` makes pictures of, and `levels` the depth of each value. Nothing here changes a graph.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import counted
from .code import code_of, family_of, pattern_at
from .control import CALL, COND, EMPTY, PART, REPEAT, WHILE, Branches, Called, Graph, GraphFunction, Loop, part_types
from .node import Node, order
from .operation import Operation
from .ops import integers
from .ops import scalars as ops
from .ops.places import HOLE, NEW, Slice
from .types import Type

SHORT = 6
"""The most elements of a constant array that is written out."""
COLUMN = 56
"""The rightmost column at which notes are aligned."""


# -- lines as data -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Value:
    """The name and the type of a value."""

    name: str
    type: str

    def __str__(self) -> str:
        return f"{self.name} : {self.type}"


@dataclass(frozen=True)
class Line:
    """A binding of a let-series: its results, the text of its right side, and the names it uses, in its blocks too."""

    results: tuple[Value, ...]
    text: str
    uses: tuple[str, ...]
    blocks: tuple[LetSeries, ...] = ()
    adjoint_of: tuple[str, ...] = ()  # the values whose adjoints its results are
    note: str = ""


@dataclass(frozen=True)
class LetSeries:
    """A let-series: inputs, the initial values of those that are states, the lines, and the results.

    `last` is the keyword before the results, which are in `ends`: `->`, `give`, `next`, ...
    """

    title: str
    inputs: tuple[Value, ...]
    starts: tuple[str, ...]
    lines: tuple[Line, ...]
    last: str
    ends: tuple[str, ...]


def show(
    graph: Graph,
    names: Mapping[Node, str] | None = None,
    adjoints: Mapping[Node, Node | None] | None = None,
    sources: Mapping[Node, str] | None = None,
    limit: int | None = None,
) -> str:
    """The text of a graph.

    `names` has the names of some values; others are called t1, t2 and so on. `adjoints` maps values to their adjoints:
    that of `x` is called `x_bar`, and adjoints come after all values, in reverse order. `sources` says where in the
    user's text values come from. With a `limit`, no more lines than that.

    >>> from dynagrad.ir import exp, variable
    >>> from dynagrad.autodiff.derive import generate_adjoints
    >>> x, y = variable("x"), variable("y")
    >>> t = exp(x * y)
    >>> found = generate_adjoints([t], [1.0], [x, y, t])
    >>> print(show(Graph((x, y), (found[x], found[y])), adjoints=found, sources={t: "model.py:3"}))
    (x : real, y : real)
    t1 : real = x * y
    t2 : real = exp(t1)        # model.py:3
    t2_bar : real = 1.0        # adjoint of t2
    t3 : real = 1.0 * t2
    x_bar : real = t3 * y      # adjoint of x
    y_bar : real = t3 * x      # adjoint of y
    -> x_bar, y_bar
    """
    lines = list(written(series_of(graph, names, adjoints, sources)))
    if limit is not None and len(lines) > limit:
        lines = [*lines[:limit], f"... and {counted(len(lines) - limit, 'more line')}"]
    return "\n".join(lines)


def series_of(
    graph: Graph,
    names: Mapping[Node, str] | None = None,
    adjoints: Mapping[Node, Node | None] | None = None,
    sources: Mapping[Node, str] | None = None,
) -> list[LetSeries]:
    """The functions that a graph calls, and last the graph itself, as data."""
    writer = _Writer(names or {}, sources or {})
    main = writer.main(graph, adjoints or {})
    return [*writer.bodies, main]


def levels(outputs: Sequence[Node]) -> list[list[Node]]:
    """The values by level: the inputs at level 0, every other value one above the highest of its arguments.

    Constants have no level.

    >>> from dynagrad.ir import variable
    >>> x, y = variable("x"), variable("y")
    >>> levels([x * y + x * 2.0])
    [[x, y], [x * y, x * 2.0], [(x * y) + (x * 2.0)]]
    """
    level: dict[Node, int] = {}
    found: list[list[Node]] = []
    for node in order(outputs):
        if not node.is_constant:
            level[node] = 1 + max((level[a] for a in node.arguments if a in level), default=-1)
            found.extend([] for _ in range(level[node] + 1 - len(found)))
            found[level[node]].append(node)
    return found


# -- lines as text -----------------------------------------------------------------------------------------------------


def written(blocks: Sequence[LetSeries]) -> Iterator[str]:
    """The lines of the text."""
    for block in blocks[:-1]:
        yield f"{block.title}({', '.join(map(str, block.inputs))}):"
        yield from _body(block, "    ")
        yield ""
    yield f"({', '.join(map(str, blocks[-1].inputs))})"
    yield from _body(blocks[-1], "")


def _body(block: LetSeries, indent: str) -> Iterator[str]:
    rows = [(f"{indent}{_left_side(line)}{line.text}{':' if line.blocks else ''}", _note(line)) for line in block.lines]
    column = min(COLUMN, max((len(row) for row, note in rows if note), default=0))
    for (row, note), line in zip(rows, block.lines, strict=True):
        yield f"{row:<{column}}    # {note}" if note else row
        for index, inner in enumerate(line.blocks):
            if index and inner.title == "else":
                yield f"{indent}else:"
            yield from _body(inner, f"{indent}    ")
    yield f"{indent}{block.last} {', '.join(block.ends)}".rstrip()


def _left_side(line: Line) -> str:
    return f"{', '.join(map(str, line.results))} = " if line.results else ""


def _note(line: Line) -> str:
    of = f"adjoint of {', '.join(line.adjoint_of)}" if line.adjoint_of else ""
    return "; ".join(part for part in (of, line.note) if part)


# -- operations as text ------------------------------------------------------------------------------------------------

_WORDS: dict[Operation, str] = {
    ops.add: "{0} + {1}",
    ops.subtract: "{0} - {1}",
    ops.multiply: "{0} * {1}",
    ops.divide: "{0} / {1}",
    ops.negative: "-{0}",
    ops.power: "{0} ** {1}",
    ops.absolute: "abs({0})",
    ops.less: "{0} < {1}",
    ops.less_equal: "{0} <= {1}",
    ops.greater: "{0} > {1}",
    ops.greater_equal: "{0} >= {1}",
    ops.equal: "{0} == {1}",
    ops.not_equal: "{0} != {1}",
    ops.logical_and: "{0} and {1}",
    ops.logical_or: "{0} or {1}",
    ops.logical_not: "not {0}",
    ops.modulo: "{0} % {1}",
    integers.add: "{0} + {1}",
    integers.subtract: "{0} - {1}",
    integers.multiply: "{0} * {1}",
    integers.negative: "-{0}",
    integers.floor_divide: "{0} // {1}",
    integers.remainder: "{0} % {1}",
    integers.minimum: "minimum({0}, {1})",
    integers.maximum: "maximum({0}, {1})",
    integers.absolute: "abs({0})",
    integers.bitwise_and: "{0} & {1}",
    integers.bitwise_or: "{0} | {1}",
    integers.bitwise_xor: "{0} ^ {1}",
    integers.invert: "~{0}",
    integers.left_shift: "{0} << {1}",
    integers.right_shift: "{0} >> {1}",
    integers.less: "{0} < {1}",
    integers.less_equal: "{0} <= {1}",
    integers.greater: "{0} > {1}",
    integers.greater_equal: "{0} >= {1}",
    integers.equal: "{0} == {1}",
    integers.not_equal: "{0} != {1}",
    integers.where: "where({0}, {1}, {2})",
    integers.choose: "where({0}, {1}, {2})",
    integers.to_real: "real({0})",
    integers.to_integer: "integer({0})",
    integers.count_true: "integer({0})",
    integers.truth_to_real: "real({0})",
    EMPTY: "empty stack",
}


def operation_text(node: Node, arguments: Sequence[str]) -> str:
    """An operation as text, from the texts of its arguments.

    >>> from dynagrad.ir.node import fresh
    >>> from dynagrad.ir.types import arrays, real
    >>> x = fresh(arrays(real, (4, 5)))
    >>> operation_text(x[1:, 2], ["x"])
    'x[1:, 2]'
    """
    operation = node.operation
    words = _WORDS.get(operation)
    if words is not None:
        return words.format(*arguments)
    code = code_of(node)
    if not code:
        return f"{operation.name}({', '.join(arguments)})"
    if code[0] in ("item", "getitem"):
        found = pattern_at(operation, node.arguments[0].type.shape) if code[0] == "getitem" else None
        holes = arguments[1:] if found is None else [_short(np.asarray(h).tolist()) for h in found[1]]
        return f"{arguments[0]}{_index(code[1], node.arguments[0].type.shape, holes)}"
    if code[0] in ("add_at", "set_at"):
        return f"{code[0]}({arguments[0]}, {_index(code[1], node.type.shape, arguments[2:])}, {arguments[1]})"
    if code[0] == "place":
        return f"place({arguments[0]}, {_index(code[1], node.type.shape, ())})"
    if code[0] == "matmul":
        return f"{arguments[0]} @ {arguments[1]}"
    family = family_of(operation)
    if family is None or family.shown is None:
        return f"{operation.name}({', '.join([*arguments, *(_short(p) for p in code[1:])])})"
    shown = [_parameter(name, value) for name, value in zip(family.shown, code[1:], strict=False)]
    name = code[0] if operation.elementwise else operation.name
    return f"{name}({', '.join([*arguments, *filter(None, shown)])})"


def _parameter(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"{name}=True" if value else ""
    if isinstance(value, tuple) and len(value) == 1:
        value = value[0]
    return f"{name}={_short(value)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _index(pattern: Sequence[Any], shape: Sequence[int], holes: Iterable[str]) -> str:
    left, lengths, parts = iter(holes), iter(shape), list[str]()
    for entry in pattern:
        if entry == NEW:
            parts.append("None")
            continue
        length = next(lengths, 0)
        if entry == HOLE:
            parts.append(next(left, "?"))
        elif isinstance(entry, Slice):
            parts.append(_slice(entry, length))
        else:
            parts.append(str(entry))
    return f"[{', '.join(parts)}]"


def _slice(entry: Slice, length: int) -> str:
    first, past = (0, length) if entry.step > 0 else (length - 1, -1)
    start = "" if entry.start == first else str(entry.start)
    stop = "" if entry.stop == past else str(entry.stop)
    return f"{start}:{stop}" if entry.step == 1 else f"{start}:{stop}:{entry.step}"


def constant_text(node: Node) -> str:
    """A constant as text: its value, or only its type where it is a large array."""
    value = node.attribute
    if not isinstance(value, np.ndarray):
        return repr(value)
    return repr(value.tolist()) if value.size <= SHORT else f"constant {node.type}"


# -- from graphs to lines ----------------------------------------------------------------------------------------------

Scope = dict[Node, str]
Inside = tuple[str, tuple["LetSeries", ...]]  # the right side of a node, and its subgraphs


class _Writer:
    """Makes lines of a graph and its subgraphs. Within a graph, and within a function, names are unique."""

    def __init__(self, names: Mapping[Node, str], sources: Mapping[Node, str]) -> None:
        self.names, self.sources = dict(names), sources
        self.in_use: set[str] = set()
        self.reserved = set(names.values())  # not used for values without a name
        self.numbers: dict[str, Iterator[int]] = {}
        self.functions: dict[GraphFunction, str] = {}
        self.bodies: list[LetSeries] = []
        self.adjoint_of: dict[Node, str] = {}
        self.used: dict[Node, dict[int, Node]] = {}  # for nodes of control flow, the results that are used

    # -- names

    def name(self, node: Node, letter: str) -> str:
        wanted = self.names.get(node)
        if wanted is None and node.is_variable and not node.attribute.startswith("%"):
            wanted = node.attribute
        return self.free(wanted) if wanted else self.numbered(letter)

    def free(self, wanted: str) -> str:
        """The name, with a number after it where it is in use."""
        found = wanted
        for number in itertools.count(2):
            if found not in self.in_use:
                break
            found = f"{wanted}_{number}"
        self.in_use.add(found)
        return found

    def numbered(self, letter: str) -> str:
        found = ""
        while not found or found in self.in_use or found in self.reserved:
            found = f"{letter}{next(self.numbers.setdefault(letter, itertools.count(1)))}"
        self.in_use.add(found)
        return found

    # -- graphs

    def main(self, graph: Graph, adjoints: Mapping[Node, Node | None]) -> LetSeries:
        scope: Scope = {}
        needed = order(graph.outputs)
        known = set(needed)
        self.note_parts(needed)
        inputs = list(dict.fromkeys([*graph.inputs, *(n for n in needed if n.is_variable)]))
        for node in inputs:
            scope[node] = self.name(node, "x")
        pairs = {v: a for v, a in adjoints.items() if a is not None and (a in known or a.is_constant)}
        lines = list(self.lines(order([v for v in pairs if v in known]), scope))
        lines += self.backward(needed, pairs, scope)
        lines += self.lines(needed, scope)
        values = tuple(Value(scope[n], str(n.type)) for n in inputs)
        return LetSeries("", values, ("",) * len(values), tuple(lines), "->", self.at_all(graph.outputs, scope))

    def backward(self, needed: Sequence[Node], pairs: Mapping[Node, Node], scope: Scope) -> Iterator[Line]:
        """The lines of the adjoints, named after their values, in reverse order of these; inputs come last."""
        inside = [n for n in needed if not n.is_variable]
        place = {node: i for i, node in enumerate([*reversed([n for n in scope if n.is_variable]), *inside])}
        values = sorted((v for v in pairs if v in scope), key=lambda v: place.get(v, -1), reverse=True)
        bars = {value: self.free(f"{scope[value]}_bar") for value in values}
        for value in values:
            adjoint = pairs[value]
            if adjoint not in scope and not adjoint.is_constant and adjoint not in self.adjoint_of:
                self.adjoint_of[adjoint] = scope[value]
                self.names[adjoint] = bars[value]
                self.in_use.discard(bars[value])  # reserved for it
        for value in values:
            adjoint = pairs[value]
            yield from self.lines(order([adjoint]), scope)
            text = self.at(adjoint, scope)
            if text != bars[value]:  # it is also the adjoint of another value, whose name it has
                uses = () if adjoint.is_constant else (text,)
                yield Line((Value(bars[value], str(adjoint.type)),), text, uses, (), (scope[value],))

    def block(self, title: str, graph: Graph, scope: Scope, last: str) -> LetSeries:
        """A subgraph, whose inputs have their names in `scope`."""
        series = order(graph.outputs)
        self.note_parts(series)
        lines = tuple(self.lines(series, scope))
        return LetSeries(title, (), (), lines, last, self.at_all(graph.outputs, scope))

    def note_parts(self, series: Iterable[Node]) -> None:
        for node in series:
            if node.operation is PART:
                self.used.setdefault(node.arguments[0], {})[node.attribute] = node

    def at(self, node: Node, scope: Scope) -> str:
        if node not in scope:
            if node.is_constant:
                return constant_text(node)
            scope[node] = self.name(node, "x")
        return scope[node]

    def at_all(self, nodes: Iterable[Node], scope: Scope) -> tuple[str, ...]:
        return tuple(self.at(node, scope) for node in nodes)

    def lines(self, series: Iterable[Node], scope: Scope) -> Iterator[Line]:
        done: set[Node] = set()
        for node in series:
            several = node.type.kind == "values"
            if several and any(p in scope for p in self.used.get(node, {}).values()):
                continue
            if node in scope or node in done or node.is_constant or node.is_variable or node.operation is PART:
                continue
            done.add(node)
            yield self.line(node, scope)

    def line(self, node: Node, scope: Scope) -> Line:
        texts = self.at_all(node.arguments, scope)
        uses = tuple(dict.fromkeys(g for a, g in zip(node.arguments, texts, strict=True) if not a.is_constant))
        if node.type.kind == "values":
            found = [self.used.get(node, {}).get(i) for i in range(len(part_types(node)))]
            types: Sequence[Type] = part_types(node)
        else:
            found, types = [node], [node.type]
        results = []
        for result, type in zip(found, types, strict=True):
            if result is not None:
                scope[result] = self.name(result, "t")
            results.append(Value("_" if result is None else scope[result], str(type)))
        inside = _FLOW.get(node.operation)
        text, blocks = (operation_text(node, texts), ()) if inside is None else inside(self, node, texts, scope)
        nodes = [n for n in (node, *found) if n is not None]
        of = tuple(dict.fromkeys(self.adjoint_of[n] for n in nodes if n in self.adjoint_of))
        note = next((self.sources[n] for n in nodes if n in self.sources), "")
        return Line(tuple(results), text, uses, blocks, of, note)

    # -- control flow: the text, and the blocks

    def cond(self, node: Node, arguments: Sequence[str], scope: Scope) -> Inside:
        branches: Branches = node.attribute
        blocks = [
            self.block(title, graph, dict(zip(graph.inputs, arguments[1:], strict=True)), "give")
            for title, graph in (("then", branches.then), ("else", branches.otherwise))
        ]
        return f"if {arguments[0]}", tuple(blocks)

    def loop(self, node: Node, arguments: Sequence[str], scope: Scope) -> Inside:
        loop: Loop = node.attribute
        shift = 1 if node.operation is REPEAT else 0
        own = loop.body.inputs[: shift + loop.states]
        names = [self.name(v, "i" if i < shift else "s") for i, v in enumerate(own)]
        starts = arguments[shift : shift + loop.states]
        inside = [*names, *arguments[shift + loop.states :]]
        blocks: tuple[LetSeries, ...] = ()
        text = f"repeat {arguments[0]} times ({names[0]}; " if shift else "while ("
        if loop.condition is not None:
            known = dict(zip(loop.condition.inputs, inside, strict=True))
            blocks = (self.block("while", loop.condition, known, "stop unless"),)
        body = self.block("body", loop.body, dict(zip(loop.body.inputs, inside, strict=True)), "next")
        values = tuple(Value(name, str(v.type)) for name, v in zip(names, own, strict=True))
        body = replace(body, inputs=values, starts=("",) * shift + tuple(starts))
        begin = ", ".join(f"{s} = {g}" for s, g in zip(names[shift:], starts, strict=True))
        return f"{text}{begin})", (*blocks, body)

    def call(self, node: Node, arguments: Sequence[str], scope: Scope) -> Inside:
        called: Called = node.attribute
        made = called.function
        if made not in self.functions:
            name = self.functions[made] = self.free(made.name.replace(" ", "_"))
            self.reserved.add(name)
            if made.graph is not None:
                around = self.in_use, self.numbers
                self.in_use, self.numbers = set(self.functions.values()), {}  # it sees its arguments alone
                inner = {v: self.name(v, "x") for v in made.graph.inputs}
                inputs = tuple(Value(inner[v], str(v.type)) for v in made.graph.inputs)
                body = self.block(name, made.graph, inner, "->")
                self.bodies.append(replace(body, inputs=inputs, starts=("",) * len(inputs)))
                self.in_use, self.numbers = around
        return f"{self.functions[made]}({', '.join(arguments)})", ()


_FLOW: dict[Operation, Callable[[_Writer, Node, Sequence[str], Scope], Inside]] = {
    COND: _Writer.cond,
    REPEAT: _Writer.loop,
    WHILE: _Writer.loop,
    CALL: _Writer.call,
}
