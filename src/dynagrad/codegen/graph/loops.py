"""Loop nests over arrays: fused loops over one domain that compute several values, element by element.

`Nest.value` writes the code of an element of a node at an index, and of all that it depends on, each in the outermost
loop it is invariant in (loop-invariant code motion). Views become index arithmetic. The innermost loop can be
vectorised: it carries nothing but reductions whose terms may be added in any order. Axes along which all arrays are
contiguous are collapsed into one.

A loop with much work is split into chunks for several threads (`dynagrad/graphs/parallel.hpp`). The chunks depend on
its length and work alone, so results are the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...ir.code import code_of
from ...ir.names import source_name
from ...ir.node import Node
from ...ir.types import Shape
from ...passes.loops.index_forms import ZERO, Form, Index, flat, name, number, strides
from ...passes.roles import Fold, Piece, role
from ...passes.views import at_pattern, broadcast, through
from ..cxx import literal
from .body import Body

NEUTRAL = {
    "plus": {"real": "0.0", "integer": "0", "boolean": "0"},
    "times": {"real": "1.0", "integer": "1", "boolean": "1"},
    "larger": {"real": "(-HUGE_VAL)", "integer": "INT64_MIN"},
    "smaller": {"real": "HUGE_VAL", "integer": "INT64_MAX"},
}

RANKS = {"larger": "rank<true>", "smaller": "rank<false>"}
"""Maps reals to integers in the same order, with NaN at the winning end: their maximum is vectorised by compilers."""

PART = 1 << 21
"""The least work of a chunk, in thirds of an addition or so: some 30 us."""
_EACH = 8  # the work of an element besides its operations
_DEAR = 16  # the most work of an operation, that of a vectorised exponential


class EnclosingBlock(Protocol):
    """What a nest asks of the enclosing block: names, pointers, checked indices."""

    code: Body
    sums: set[Node]

    def begin(self) -> None: ...
    def comes_from(self, lines: set[int]) -> None: ...
    def local_pointer(self, pointer: str) -> str: ...
    def number(self, node: Node) -> str: ...
    def pointer(self, node: Node) -> str | None: ...
    def index(self, hole: Node, length: int) -> Form: ...
    def check_all(self, hole: Node, length: int) -> bool: ...
    def scratch(self, node: Node, copies: int) -> str: ...


class Nest:
    """A loop nest that is being written; `merge` says for each axis whether it is collapsed into the next one."""

    def __init__(self, around: EnclosingBlock, domain: Shape, own: set[Node], merge: tuple[bool, ...] = ()) -> None:
        self.around, self.domain, self.own = around, domain, own
        self.code = around.code
        self.counters = [self.code.name("i") if n > 1 else "" for n in domain]
        self.index: Index = tuple(name(c) if c else ZERO for c in self.counters)
        self.lengths = {c: n for c, n in zip(self.counters, domain, strict=True) if c}
        self.loops: list[tuple[str, int, list[int]]] = []  # counter, length and axes of each loop
        self.dropped: set[str] = set()
        self.depth: dict[str, int] = {}
        group: list[int] = []
        for axis, counter in enumerate(self.counters):
            if not counter:
                continue
            group.append(axis)
            if merge and merge[axis]:
                self.dropped.add(counter)
                continue
            length = 1
            for a in group:
                length *= domain[a]
                self.depth[self.counters[a]] = len(self.loops) + 1
            self.loops.append((counter, length, group))
            group = []
        self.before: list[list[str]] = [[] for _ in range(len(self.loops) + 1)]
        self.stores: list[str] = []
        self.after: list[list[str]] = [[] for _ in range(len(self.loops) + 1)]
        self.known: dict[tuple[object, ...], str] = {}
        self.forms: list[Form] = []
        self.independent = True
        self.work = [0] * (len(self.loops) + 1)  # the work of one round of each loop, without its inner loops
        self.totals: list[_Total] = []  # reductions carried by the outermost loop
        self.cut = False
        self.lines: set[int] = set()  # of the user's functions, which its values come from

    # -- text --------------------------------------------------------------------------------------------------------

    def show(self, form: Form) -> str:
        """An offset as text, without collapsed counters."""
        self.forms.append(form)
        if not self.dropped:
            return str(form)
        return str(Form(tuple((w, t) for w, t in form.terms if w not in self.dropped), form.offset))

    def level(self, *texts: str | Form) -> int:
        """The depth of the outermost loop in which an expression of these names is computed."""
        found = 0
        for text in texts:
            names = [w for w, _ in text.terms] if isinstance(text, Form) else [text]
            for what in names:
                found = max(found, self.depth.get(what, 0))
        return found

    def local(self, cxx: str, text: str, level: int, prefix: str = "t", node: Node | None = None) -> str:
        """Declares a value in the loop of this depth, once for each text."""
        key = ("text", cxx, text)
        found = self.known.get(key)
        if found is None:
            found = self.code.name(prefix) if node is None else self.code.named(node, prefix)
            self.known[key] = found
            self.depth[found] = level
            self.before[level].append(f"const {cxx} {found} = {text};")
        return found

    # -- values ------------------------------------------------------------------------------------------------------

    def value(self, node: Node, index: Index) -> str:
        """The element of a node at an index: a name, or a literal; its code is written on first use."""
        if node.is_constant:
            if not node.shape:
                return literal(node.attribute)
            same = uniform(node)
            if same is not None:
                return same
        elif not node.shape and node not in self.own:
            return self.around.number(node)
        key = (node, index)
        found = self.known.get(key)
        if found is None:
            pointer = None if node in self.own else self.around.pointer(node)
            found = self.compute(node, index) if pointer is None else self.load(node, pointer, flat(index, node.shape))
            self.known[key] = found
        return found

    def load(self, node: Node, pointer: str, place: Form) -> str:
        """An element that is read from memory."""
        return self.local(node.type.cxx, f"{pointer}[{self.show(place)}]", self.level(place))

    def compute(self, node: Node, index: Index) -> str:
        """An element that is computed: of a view or an elementwise operation."""
        self.note(node)
        kind = role(node)
        if kind == "view":
            found = self.value(node.arguments[0], self.through(node, index))
            if node.type.kind == node.arguments[0].type.kind:
                return found
            return self.local(node.type.cxx, f"static_cast<{node.type.cxx}>({found})", self.level(found))
        code = code_of(node)
        if code and code[0] == "triangle":
            return self._triangle(node, index)
        if code and code[0] == "roll":
            return self._roll(node, index)
        assert kind == "each", f"{node.operation.name} is not computed element by element"
        given = [self.value(a, broadcast(index, a.shape)) for a in node.arguments]
        text = self.code.operation(node, given, bool(self.loops))
        if node in self.around.sums:
            text = f"plus({given[0]}, {given[1]})"
        made = self.local(node.type.cxx, text, self.level(*given), node=node)
        self.work[self.level(*given)] += min(node.operation.cost, _DEAR)
        if node.type.kind == "integer" and not self.loops:
            self.code.bounds.note(made, node, given)
        return made

    def note(self, node: Node) -> None:
        """Notes the line of the user's that a node comes from."""
        said = source_name(node.birth)
        if said is not None and said.line:
            self.lines.add(said.line)

    def through(self, node: Node, index: Index) -> Index:
        return through(node, index, self.ask, self.lengths, self.split)

    def ask(self, hole: Node, index: Index, length: int) -> Form:
        """A run-time index, checked to be in range, as a form that counts from 0."""
        if not hole.ndim:
            return self.around.index(hole, length)
        negative = self.around.check_all(hole, length)
        same = _uniform(hole)
        if same is not None:
            return number(int(same) % length)
        found = self.value(hole, index)
        if negative:
            found = self.local("int64_t", f"from_end({found}, {length})", self.level(found), "k")
        return name(found)

    def split(self, place: Form, shape: Shape) -> Index:
        """An offset delinearised at run time, by division."""
        out: list[Form] = []
        at, level = self.show(place), self.level(place)
        for n, step in zip(shape, strides(shape), strict=True):
            text = f"({at}) / {step} % {n}"
            out.append(name(self.local("int64_t", text, level, "k")) if n > 1 else ZERO)
        return tuple(out)

    def _triangle(self, node: Node, index: Index) -> str:
        _, lower, k = code_of(node)
        x = self.value(node.arguments[0], index)
        off = index[-1] - index[-2] - k
        text = f"{self.show(off)} {'<=' if lower else '>='} 0 ? {x} : {literal(0.0)}"
        self.forms.extend(index[-2:])  # so that these axes are not collapsed
        return self.local(node.type.cxx, text, max(self.level(x), self.level(off)))

    def _roll(self, node: Node, index: Index) -> str:
        _, shift, axis = code_of(node)
        n = node.shape[axis]
        form = index[axis]
        text = f"from_end({self.show(form - shift % n)}, {n})"
        turned = name(self.local("int64_t", text, self.level(form), "k"))
        return self.value(node.arguments[0], (*index[:axis], turned, *index[axis + 1 :]))

    # -- stores and reductions ---------------------------------------------------------------------------------------

    def store(self, pointer: str, place: Form, text: str, by: str = "") -> None:
        """Stores an element, after everything that the round reads."""
        at = f"{pointer}[{self.show(place)}]"
        self.stores.append(f"{at} = {by}({at}, {text});" if by else f"{at} = {text};")

    def fold(self, node: Node, fold: Fold, pointer: str | None) -> str:
        """A reduction over axes, into an array, or without a pointer into a variable, whose name it returns."""
        self.note(node)
        parts = [self.value(a, self._pick(axes)) for a, axes in zip(node.arguments, fold.reads, strict=True)]
        text = " * ".join(parts)
        kind, cxx = node.type.kind, node.type.cxx
        if node.arguments[0].type.kind != kind:
            text = f"static_cast<{cxx}>({text})"
        start = NEUTRAL[fold.by][kind]
        reduced = [fold.reduced[group[0]] for _, _, group in self.loops]
        to = flat(tuple(ZERO if a < 0 else self.index[a] for a in fold.kept), node.shape)
        inner = len(reduced)
        while inner and reduced[inner - 1]:
            inner -= 1
        outer = any(reduced[:inner])
        if pointer is not None and outer:
            self.before[0].append(f"fill<{cxx}>({pointer}, {node.type.size}, {start});")
            if reduced[0]:
                self.totals.append(_Total(node, cxx, pointer, self.before[0][-1], fold.by, array=True))
        if inner == len(reduced) and pointer is not None:
            self.store(pointer, to, text, fold.by if outer else "")
            return ""
        total = summed = self.code.named(node, "s")
        self.depth[total] = inner
        if kind == "real" and fold.by in RANKS:
            summed, cxx = self.code.name("r"), "int64_t"
            start, text = NEUTRAL[fold.by]["integer"], f"{RANKS[fold.by]}({text})"
            self.after[inner].append(f"const double {total} = of_rank({summed});")
        self.before[inner].append(f"{cxx} {summed} = {start};")
        if not inner:
            self.totals.append(_Total(node, cxx, summed, self.before[0][-1], fold.by))
        self.stores.append(f"{summed} = {fold.by}({summed}, {text});")
        if pointer is not None:
            at = f"{pointer}[{self.show(to)}]"
            self.after[inner].append(f"{at} = {fold.by}({at}, {total});" if outer else f"{at} = {total};")
        return total

    def _pick(self, axes: tuple[int, ...]) -> Index:
        return tuple(ZERO if a < 0 else self.index[a] for a in axes)

    def piece(self, piece: Piece, pointer: str, shape: Shape) -> None:
        """Stores a piece of an array, or adds it to what is there."""
        value = self.value(piece.value, broadcast(self.index, piece.value.shape))
        place = flat(at_pattern(piece.pattern, piece.holes, shape, self.index, self.ask), shape)
        self.independent = self.independent and not any(h.ndim for h in piece.holes)
        self.store(pointer, place, value, "plus" if piece.add else "")

    # -- the end -----------------------------------------------------------------------------------------------------

    def mergeable(self, same_use: Callable[[int], bool]) -> tuple[bool, ...]:
        """Which axes can be collapsed into the next one, by the indices written; `same_use`: both are used alike."""
        out = []
        for axis, counter in enumerate(self.counters):
            after = next((k for k in range(axis + 1, len(self.domain)) if self.counters[k]), None)
            if not counter or after is None or not same_use(axis):
                out.append(False)
                continue
            inner = self.counters[after]
            out.append(all(f.times(counter) == f.times(inner) * self.domain[after] for f in self.forms))
        return tuple(out)

    def _cut(self, threads: bool) -> _Cut | None:
        """How the outermost loop is split into chunks; None where it is not."""
        if not threads or not self.loops:
            return None
        done, rounds = 0, 1
        for depth, work in enumerate(self.work):
            rounds *= self.loops[depth - 1][1] if depth else 1
            done += work * rounds
        length = self.loops[0][1]
        grain = -(-PART * length // (done + _EACH * rounds))
        if length < 2 * grain:
            return None
        parts = _parts_of(length, grain)
        if any(t.size * parts * 4 > rounds for t in self.totals):
            return None
        self.cut = True
        for t in self.totals:
            self.before[0].remove(t.begin)
        partials = [self.around.scratch(t.node, parts) if t.array else f"{t.name}_to" for t in self.totals]
        return _Cut(length, grain, 8 if len(self.loops) == 1 else 1, list(zip(self.totals, partials, strict=True)))

    def write(self, threads: bool = False) -> None:
        """Writes the loops; with `threads`, in parallel chunks where there is much work."""
        code = self.code
        last = len(self.loops)
        before = code.work
        cut = self._cut(threads)
        for depth in range(last + 1):
            if depth:
                counter, length, _ = self.loops[depth - 1]
                first, end = ("begin", "end") if cut and depth == 1 else ("0", str(length))
                if depth == last and self.independent:
                    code.line("DYNAGRAD_INDEPENDENT")
                code.open(f"for (int64_t {counter} = {first}; {counter} < {end}; ++{counter})")
            for text in self.before[depth]:
                code.let(text)
            if cut and not depth:
                cut.open(code)
        for text in self.stores:
            code.line(text)
        for depth in range(last, -1, -1):
            if cut and not depth:
                cut.close(code)
            for text in self.after[depth]:
                code.line(text)
            if depth:
                code.close()
        if before is not None and code.work is not None:
            code.work = before + (code.work - before) * size(self.domain)


@dataclass(frozen=True)
class _Total:
    """A reduction carried by the outermost loop: into a variable, by its name, or into an array, by its pointer."""

    node: Node
    cxx: str
    name: str
    begin: str  # the statement that initialises it
    by: str  # the function that combines two values
    array: bool = False

    @property
    def size(self) -> int:
        return self.node.type.size if self.array else 1


@dataclass(frozen=True)
class _Cut:
    """A parallel loop. Each chunk reduces into partial results of its own, which are combined in order afterwards."""

    length: int
    grain: int
    unit: int
    totals: list[tuple[_Total, str]]  # and where their partial results are

    def open(self, code: Body) -> None:
        for t, place in self.totals:
            if not t.array:
                code.line(f"{t.cxx} {place}_of[kMostParts];")
                code.line(f"{t.cxx}* const {place} = {place}_of;")
        given = "[=](int64_t begin, int64_t end, [[maybe_unused]] int64_t part)"
        code.open(f"in_parallel({self.length}, {self.grain}, {given}")
        for t, place in self.totals:
            if t.array:
                code.line(f"{t.cxx}* const {t.name} = {place} + part * {t.size};")
            code.line(t.begin)

    def close(self, code: Body) -> None:
        for t, place in self.totals:
            if not t.array:
                code.line(f"{place}[part] = {t.name};")
        code.close(f"}}, {self.unit});")
        for t, place in self.totals:
            code.line(t.begin)
            with code.block(f"for (int64_t part = 0; part < parts_of({self.length}, {self.grain}); ++part)"):
                if t.array:
                    at, one = f"{t.name}[i]", f"{place}[part * {t.size} + i]"
                    code.line(f"for (int64_t i = 0; i < {t.size}; ++i) {at} = {t.by}({at}, {one});")
                else:
                    code.line(f"{t.name} = {t.by}({t.name}, {place}[part]);")


def _parts_of(n: int, grain: int) -> int:
    """The number of chunks, as `parts_of` in parallel.hpp."""
    parts = n // max(grain, 1)
    if parts < 8:
        return 1 if parts < 2 else 2 if parts < 4 else 4
    return min(parts, 32)


def uniform(node: Node) -> str | None:
    """The literal that all elements of a constant are equal to; None where they differ."""
    same = _uniform(node)
    return None if same is None else literal(same)


def _uniform(node: Node) -> float | int | bool | None:
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


def size(shape: Shape) -> int:
    """The number of elements of an array."""
    total = 1
    for n in shape:
        total *= n
    return total


def nest(
    around: EnclosingBlock,
    domain: Shape,
    own: set[Node],
    fill: Callable[[Nest], None],
    same_use: Callable[[int], bool],
    threads: bool = False,
) -> Nest:
    """Writes a nest over a domain, with the values that `fill` computes in it; twice, where axes can be collapsed."""
    around.begin()
    made = Nest(around, domain, own)
    fill(made)
    merge = made.mergeable(same_use)
    if any(merge):
        around.begin()
        made = Nest(around, domain, own, merge)
        fill(made)
    if made.loops:
        around.comes_from(made.lines)
    made.write(threads)
    return made


__all__ = ["EnclosingBlock", "Nest", "nest", "size", "uniform"]
