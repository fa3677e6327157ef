"""Builds a loop nest from nodes of a graph: a loop for each axis of the domain.

`NestBuilder.value` adds what computes an element of a node at an index, and of all that it depends on, each in the
outermost loop it is invariant in (loop-invariant code motion). Views become index arithmetic. No text is written here.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ....ir.code import code_of
from ....ir.names import source_name
from ....ir.node import Node
from ....ir.types import Shape, Type
from ....passes.classify import Fold, Piece, lowering_of
from ....passes.index_forms import ZERO, Form, Index, flat, name, number, strides
from ....passes.views import at_pattern, broadcast, through
from ...cxx import literal
from ..body import Body
from ..memory import LocalVariable
from .model import (
    Accumulate,
    Accumulator,
    Addend,
    ArrayAccumulator,
    Before,
    Combine,
    Convert,
    Definition,
    Digit,
    Elementwise,
    Expression,
    FromEnd,
    Load,
    LoopNest,
    OfRank,
    Operand,
    Store,
    Triangle,
)

RANKED = ("larger", "smaller")
"""Reductions of reals by their ranks: integers in the same order, with NaN at the winning end, which compilers
vectorise."""
_DEAR = 16  # the most work of an operation, that of a vectorised exponential


class EnclosingBlock(Protocol):
    """What a nest asks of the enclosing block: names, pointers, checked indices."""

    sums: set[Node]

    def number(self, node: Node) -> str: ...
    def pointer(self, node: Node) -> LocalVariable | None: ...
    def index(self, hole: Node, length: int) -> Form: ...
    def check_all(self, hole: Node, length: int) -> bool: ...
    def scratch(self, type: Type, copies: int) -> LocalVariable: ...


class NestBuilder:
    """A nest that is being built. Names are fresh ones of `code`; `own` are the nodes that it computes.

    With `outlined`, what it reads and writes outside has names of its own, which `parameters` has by those outside.
    """

    def __init__(self, around: EnclosingBlock, code: Body, domain: Shape, own: set[Node], outlined: bool) -> None:
        self.around, self.code, self.own, self.outlined = around, code, own, outlined
        self.counters = [code.name("i") if n > 1 else "" for n in domain]
        self.index: Index = tuple(name(c) if c else ZERO for c in self.counters)
        self.axes = [axis for axis, c in enumerate(self.counters) if c]  # of each loop
        self.loops = [(self.counters[axis], domain[axis]) for axis in self.axes]
        self.lengths = dict(self.loops)
        self.levels = {c: n for n, (c, _) in enumerate(self.loops, 1)}  # of each name
        self.parameters: dict[str, tuple[str, str]] = {}  # name outside -> type and name inside
        self.before: list[Before] = []
        self.stores: list[Store | Accumulate] = []
        self.after: list[Definition | Store] = []
        self.known: dict[tuple[Node, Index], Operand] = {}
        self.named: dict[tuple[str, Expression], Operand] = {}
        self.independent = True
        self.work = [0] * (len(self.loops) + 1)
        self.lines: set[int] = set()

    def nest(self) -> LoopNest:
        """What has been built."""
        return LoopNest(
            tuple(self.loops),
            tuple(self.before),
            tuple(self.stores),
            tuple(self.after),
            self.independent,
            None,
            tuple(self.work),
            frozenset(self.lines) if self.loops else frozenset(),
        )

    def outside(self, what: str | LocalVariable, cxx: str = "auto") -> str:
        """The name in the nest of a value or a pointer outside."""
        text = str(what)
        if not self.outlined:
            return text
        return self.parameters.setdefault(text, (cxx, f"given{len(self.parameters)}"))[1]

    def pointer(self, node: Node) -> str | None:
        """The memory of an array outside; None where it has none."""
        found = self.around.pointer(node)
        return None if found is None else self.outside(found)

    def scratch(self, type: Type, copies: int) -> str:
        """Memory for copies of an array."""
        return self.outside(self.around.scratch(type, copies))

    # -- values ------------------------------------------------------------------------------------------------------

    def level(self, *of: Operand | Form) -> int:
        """The level at which a value made of these can be computed."""
        found = 0
        for x in of:
            for what in [w for w, _ in x.terms] if isinstance(x, Form) else [x]:
                found = max(found, self.levels.get(what, 0))
        return found

    def let(self, cxx: str, value: Expression, level: int, prefix: str = "t", node: Node | None = None) -> Operand:
        """Names a value at a level, once for each expression."""
        key = (cxx, value)
        found = self.named.get(key)
        if found is None:
            found = self.code.name(prefix) if node is None else self.code.named(node, prefix)
            self.named[key] = found
            self.levels[found] = level
            self.before.append(Definition(level, cxx, found, value))
        return found

    def value(self, node: Node, index: Index) -> Operand:
        """The element of a node at an index; what computes it is added on first use."""
        if node.is_constant:
            if not node.shape:
                return literal(node.attribute)
            same = uniform(node)
            if same is not None:
                return same
        elif not node.shape and node not in self.own:
            return self.outside(self.around.number(node), node.type.cxx)
        key = (node, index)
        found = self.known.get(key)
        if found is None:
            pointer = None if node in self.own else self.pointer(node)
            found = self.compute(node, index) if pointer is None else self._load(node, pointer, flat(index, node.shape))
            self.known[key] = found
        return found

    def _load(self, node: Node, pointer: str, place: Form) -> Operand:
        return self.let(node.type.cxx, Load(pointer, place), self.level(place))

    def compute(self, node: Node, index: Index) -> Operand:
        """An element that is computed: of a view or an elementwise operation."""
        self.note(node)
        lowering, code = lowering_of(node), code_of(node)
        if lowering == "view":
            found = self.value(node.arguments[0], through(node, index, self.ask, self.lengths, self._split))
            if node.type.kind == node.arguments[0].type.kind:
                return found
            return self.let(node.type.cxx, Convert(node.type.cxx, found), self.level(found))
        if code and code[0] == "triangle":
            return self._triangle(node, index)
        if code and code[0] == "roll":
            return self._roll(node, index)
        assert lowering == "each", f"{node.operation.name} is not computed element by element"
        given = tuple(self.value(a, broadcast(index, a.shape)) for a in node.arguments)
        level = self.level(*given)
        value: Expression = Elementwise(node.operation, given, bool(self.loops), _at(node))
        if node in self.around.sums:  # it accumulates
            value = Combine("plus", *given)
        made = self.let(node.type.cxx, value, level, node=node)
        self.work[level] += min(node.operation.cost, _DEAR)
        return made

    def note(self, node: Node) -> None:
        """Notes the line of the user's that a node comes from."""
        said = source_name(node.birth)
        if said is not None and said.line:
            self.lines.add(said.line)

    def ask(self, hole: Node, index: Index, length: int) -> Form:
        """A run-time index, checked to be in range, as a form that counts from 0."""
        if not hole.ndim:
            form = self.around.index(hole, length)
            return Form(tuple((self.outside(w, "int64_t"), times) for w, times in form.terms), form.offset)
        negative = self.around.check_all(hole, length)
        same = same_value(hole)
        if same is not None:
            return number(int(same) % length)
        found = self.value(hole, index)
        if negative:
            found = self.let("int64_t", FromEnd(name(found), length), self.level(found), "k")
        return name(found)

    def _split(self, place: Form, shape: Shape) -> Index:
        """An offset delinearised at run time, by division."""
        level = self.level(place)
        return tuple(
            name(self.let("int64_t", Digit(place, step, n), level, "k")) if n > 1 else ZERO
            for n, step in zip(shape, strides(shape), strict=True)
        )

    def _triangle(self, node: Node, index: Index) -> Operand:
        _, lower, k = code_of(node)
        x = self.value(node.arguments[0], index)
        offset = index[-1] - index[-2] - k
        value = Triangle(x, offset, bool(lower), (index[-2], index[-1]))
        return self.let(node.type.cxx, value, max(self.level(x), self.level(offset)))

    def _roll(self, node: Node, index: Index) -> Operand:
        _, shift, axis = code_of(node)
        n, form = node.shape[axis], index[axis]
        turned = self.let("int64_t", FromEnd(form - shift % n, n), self.level(form), "k")
        return self.value(node.arguments[0], (*index[:axis], name(turned), *index[axis + 1 :]))

    # -- stores and reductions ---------------------------------------------------------------------------------------

    def store(self, pointer: str, place: Form, value: Operand | Addend, by: str = "") -> None:
        """Stores an element, after everything that the round reads."""
        self.stores.append(Store(len(self.loops), pointer, place, value, by))

    def fold(self, node: Node, fold: Fold, pointer: str | None) -> Operand:
        """A reduction over axes, into an array, or without a pointer into a variable, whose name it returns."""
        self.note(node)
        kind, cxx = node.type.kind, node.type.cxx
        parts = tuple(self.value(a, self._pick(axes)) for a, axes in zip(node.arguments, fold.reads, strict=True))
        term = Addend(parts, "" if node.arguments[0].type.kind == kind else cxx)
        reduced = [fold.reduced[axis] for axis in self.axes]
        to = flat(self._pick(fold.kept), node.shape)
        inner = len(reduced)
        while inner and reduced[inner - 1]:
            inner -= 1
        outer = any(reduced[:inner])
        if pointer is not None and outer:
            self.before.append(ArrayAccumulator(pointer, node.type, fold.by, reduced[0]))
        if inner == len(reduced) and pointer is not None:
            self.store(pointer, to, term, fold.by if outer else "")
            return ""
        total = summed = self.code.named(node, "s")
        self.levels[total] = inner
        if kind == "real" and fold.by in RANKED:
            summed, cxx, kind = self.code.name("r"), "int64_t", "integer"
            term = Addend(term.factors, term.cxx, fold.by)
            self.after.append(Definition(inner, "double", total, OfRank(summed)))
        self.before.append(Accumulator(inner, cxx, summed, fold.by, kind))
        self.stores.append(Accumulate(summed, fold.by, term))
        if pointer is not None:
            self.after.append(Store(inner, pointer, to, total, fold.by if outer else ""))
        return total

    def _pick(self, axes: tuple[int, ...]) -> Index:
        return tuple(ZERO if a < 0 else self.index[a] for a in axes)

    def piece(self, piece: Piece, pointer: str, shape: Shape) -> None:
        """Stores a piece of an array, or adds it to what is there."""
        value = self.value(piece.value, broadcast(self.index, piece.value.shape))
        place = flat(at_pattern(piece.pattern, piece.holes, shape, self.index, self.ask), shape)
        self.independent = self.independent and not any(h.ndim for h in piece.holes)
        self.store(pointer, place, value, "plus" if piece.add else "")


def _at(node: Node) -> float | None:
    """What the last argument of a node is known to be, where the operation has a spelling for that."""
    if not node.arguments:
        return None
    last = node.arguments[-1]
    while lowering_of(last) == "view":
        last = last.arguments[0]
    if not last.is_constant:
        return None
    known = same_value(last) if last.shape else last.attribute
    return known if isinstance(known, float) and any(known == value for value, _ in node.operation.cxx_at) else None


def uniform(node: Node) -> str | None:
    """The literal that all elements of a constant are equal to; None where they differ."""
    same = same_value(node)
    return None if same is None else literal(same)


def same_value(node: Node) -> float | int | bool | None:
    """The number that all elements of a constant are equal to; None where they differ."""
    values = node.attribute
    if not isinstance(values, np.ndarray) or not values.size:
        return None
    first, last = values.flat[0], values.flat[-1]
    if first != last and (first == first or last == last):  # a quick answer for most
        return None
    same = values == first if first == first else values != values
    if not same.all() or (values.dtype.kind == "f" and first == 0 and (np.signbit(values) != np.signbit(first)).any()):
        return None
    found: float | int | bool = first.item()
    return found
