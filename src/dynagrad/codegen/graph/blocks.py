"""Writes the statements of one graph, step by step: numbers in local variables, arrays in planned memory.

A block is the body of a function, a loop or a branch. It takes the names or memory of its inputs, and returns those of
its outputs. Control flow is written by `control.py`.

It is long because the steps of a block share what is known of its values and its memory.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from ...errors import Error
from ...ir.code import code_of
from ...ir.control import PART, Graph
from ...ir.node import Node, use_counts
from ...ir.ops.places import NEW, Slice
from ...ir.ops.scalars import add
from ...ir.types import Shape, Type, arrays, bytes_of, heap
from ...passes.bounds import GraphBounds
from ...passes.classify import Piece, fold_of, holes_of, lowering_of, overwritten, update_of
from ...passes.index_forms import Form, flat, name, number, strides
from ...passes.schedule import ScheduledStep, schedule
from ...passes.views import is_view, through
from ..cxx import at_offset, literal
from .body import Body
from .memory import Arena, Live, LocalVariable, Memory, Track, Value
from .nests.build import NestBuilder, same_value, uniform
from .nests.chunks import in_chunks
from .nests.collapse import collapsed
from .nests.distribute import distributed
from .nests.outlines import outline_of
from .nests.write import NEUTRAL, write, write_part
from .unit import TranslationUnit


class Block:
    """The statements of a prepared graph (`passes/prepare.py`).

    `prefer` has the memory where arrays should be made; with `in_place`, that of inputs is better. `once` says that the
    block runs once a call.
    """

    def __init__(
        self,
        program: TranslationUnit,
        code: Body,
        arena: Arena,
        bounds: GraphBounds,
        inputs: Sequence[Value],
        prefer: Mapping[Node, LocalVariable] | None = None,
        in_range: Collection[tuple[Node, int]] = (),
        tracks: Mapping[Node, Track] | None = None,
        in_place: bool = False,
        once: bool = False,
    ) -> None:
        self.program, self.code, self.arena, self.bounds = program, code, arena, bounds
        graph = self.graph = bounds.graph
        self.plan = schedule(graph)
        self.end = len(self.plan.steps)
        self.now = -1
        self.node: Node  # what the step at hand is for
        self.numbers: dict[Node, LocalVariable] = {}  # of numbers and stacks
        self.memory: dict[Node, Memory] = {}
        self.within: dict[int, list[Node]] = {}  # the arrays in each memory
        self.live = Live()
        self.checked: dict[tuple[Node, int], Form] = {}
        self.in_range = in_range  # indices that are proved to be in range, without counting from the end
        self.tracks = dict(tracks or {})  # stacks whose offset is a function of the loop counter
        self.all_checked: dict[tuple[Node, int], bool] = {}
        self.parts: dict[Node, dict[int, Node]] = {}
        self.uses = use_counts(graph.outputs)
        for node in self.plan.series:
            if node.type is heap:
                program.uses.add("heap")
            if node.operation is PART:
                self.parts.setdefault(node.arguments[0], {})[node.attribute] = node
        self.sums = _sums(graph, self.uses)
        self.prefer = self._preferences(dict(prefer or {}))
        self.in_place, self.once = in_place, once
        self.given = {v.pointer for v in inputs if isinstance(v, Memory)}
        self.busy = set(self.given)
        self.used: set[LocalVariable] = set()  # preferred memory that arrays were made in
        for node, given in zip(graph.inputs, inputs, strict=True):
            if isinstance(given, Memory):
                self.bind(node, given)
            else:
                self.numbers[node] = given

    # -- names -------------------------------------------------------------------------------------------------------

    def variable(self, node: Node) -> LocalVariable:
        """The variable of a number or stack, or the literal of a constant."""
        return LocalVariable(literal(node.attribute)) if node.is_constant else self.numbers[node]

    def number(self, node: Node) -> str:
        """The name of a number or stack, or the literal of a constant."""
        return literal(node.attribute) if node.is_constant else self.numbers[node].name

    def assigned(self, node: Node) -> LocalVariable:
        """The variable of a number or stack, or the literal of a constant, as the right side of an assignment."""
        return LocalVariable(literal(node.attribute, operand=False)) if node.is_constant else self.numbers[node]

    def stack(self, node: Node) -> LocalVariable:
        """A stack that will be pushed on or popped: a copy of the variable if it has other uses."""
        found = self.numbers[node]
        if self.uses[node] <= 1:
            return found
        copy = self.code.variable("stack")
        self.code.line(f"Stack {copy} = {found}.again();")
        return copy

    def constant(self, node: Node) -> LocalVariable:
        """The array of a constant."""
        self.code.constants.add(node)
        return self.program.constant(node)

    def pointer(self, node: Node) -> LocalVariable | None:
        """Where an array is; None for one without memory, and for numbers."""
        if node.is_constant:
            return self.constant(node) if node.shape else None
        found = self.memory.get(node)
        return None if found is None else found.pointer

    def whole_pointer(self, node: Node) -> LocalVariable:
        found = self.pointer(node)
        assert found is not None, f"{node.operation.name} has no memory"
        return found

    def index(self, hole: Node, length: int) -> Form:
        """A number as an index that counts from 0; a check that fails where it is out of range is written first."""
        if hole.is_constant:
            value = hole.attribute
            if not -length <= value < length:
                raise Error(f"the index {value} is out of range for an axis of length {length}")
            return number(value % length)
        found = self.checked.get((hole, length))
        if found is None:
            if (hole, length) in self.in_range or self.bounds.within(hole, length):
                found = self.checked[hole, length] = name(self.number(hole))
        if found is None:
            text = self.number(hole)
            at = self.code.name("k")
            self.code.line(f"int64_t {at} = {text};")
            self.code.line(f"if (outside({at}, {length})) return call.index({text}, {length});")
            found = self.checked[hole, length] = name(at)
        return found

    def check_all(self, hole: Node, length: int) -> bool:
        """Writes the check for an array of indices; whether some may be negative."""
        if hole.is_constant:
            values = hole.attribute
            if values.size and not (-length <= values.min() and values.max() < length):
                raise Error(f"an index is out of range for an axis of length {length}")
            return bool(values.size and values.min() < 0)
        if (hole, length) not in self.all_checked:
            p = self.whole_pointer(hole)
            at = self.code.name("k")
            self.code.line(f"const int64_t {at} = first_outside({p}, {hole.type.size}, {length});")
            self.code.line(f"if ({at} >= 0) return call.index({p}[{at}], {length});")
            self.all_checked[hole, length] = True
        return True

    # -- memory ------------------------------------------------------------------------------------------------------

    def last(self, node: Node) -> int:
        return self.plan.last.get(node, self.now)

    def bind(self, node: Node, memory: Memory) -> None:
        """Records that an array is in this memory from now on."""
        self.memory[node] = memory
        memory.until = max(memory.until, self.last(node))
        self.within.setdefault(id(memory), []).append(node)
        self.live.append(memory)

    def room(self, type: Type, prefer: LocalVariable | None = None, node: Node | None = None) -> Memory:
        """Allocates memory for an array, and declares a pointer to it."""
        if prefer is not None and prefer not in self.busy:
            self.busy.add(prefer)
            self.used.add(prefer)
            return Memory(prefer, True, until=self.now)
        if not type.size:
            return Memory(LocalVariable(f"static_cast<{type.cxx}*>(nullptr)"), True, until=self.now)
        place = self.arena.take(bytes_of(type))
        pointer = self.code.variable("m", node)
        self.code.line(f"{type.cxx}* const {pointer} = reinterpret_cast<{type.cxx}*>({at_offset('frame', place[0])});")
        return Memory(pointer, True, [place], until=self.now)

    def scratch(self, type: Type, copies: int) -> LocalVariable:
        """Memory for some copies of an array, until the end of this step."""
        made = self.room(arrays(type.scalar, (copies * type.size,)))
        self.live.append(made)
        return made.pointer

    def fresh(self, node: Node) -> Memory:
        made = self.room(node.type, self.prefer.get(node), node)
        self.bind(node, made)
        return made

    def dying(self, node: Node) -> Memory | None:
        """The memory of an array whose last use is this step, so that it may be overwritten; None for others."""
        found = self.memory.get(node)
        if found is None or not found.own or found.until > self.now:
            return None
        inside = self.within[id(found)]
        inside[:] = [other for other in inside if other is node or self.plan.last.get(other, -1) >= self.now]
        return found if all(other is node for other in inside) else None

    def take_over(self, node: Node, memory: Memory) -> None:
        memory.until = -1
        self.bind(node, memory)

    def _free(self) -> None:
        for memory in self.live.ended(self.now):
            for place in memory.places:
                self.arena.give(place)
            memory.places = []
            if memory.shared is not None:
                for place in memory.shared.leave():
                    self.arena.give(place)
                memory.shared = None
            self.busy.discard(memory.pointer)

    def _preferences(self, prefer: dict[Node, LocalVariable]) -> dict[Node, LocalVariable]:
        """Where arrays should be computed: in the memory of the output that they become part of."""
        for node in reversed(self.plan.series):
            to = prefer.get(node)
            if to is None:
                continue
            base = overwritten(node)
            if base is not None:
                prefer.setdefault(base, to)
        return prefer

    # -- steps -------------------------------------------------------------------------------------------------------

    def run(self) -> list[Value]:
        """Writes all statements; the names or memory of the outputs."""
        for now, step in enumerate(self.plan.steps):
            self.now = now
            self.step(step)
            self._free()
            if now in self.plan.cuts:
                self.code.cut()
        self.now = self.end
        return [self.result(o) for o in self.graph.outputs]

    def close(self) -> None:
        """Frees the memory of the outputs."""
        self.now = self.end
        self._free()

    def result(self, node: Node) -> Value:
        if not node.shape:
            return self.assigned(node)
        if node.is_constant:
            return Memory(self.constant(node), False)
        return self.memory[node]

    def step(self, step: ScheduledStep) -> None:
        self.node = node = step.nodes[0]
        lowering = lowering_of(node)
        if lowering == "update":
            self._update(node)
        elif lowering in self.program.steps:
            self.program.steps[lowering](self, node)
        elif lowering == "view" and node.shape and node not in self.plan.copies and self._alias(node):
            pass
        else:
            self._loops(step)

    def _loops(self, step: ScheduledStep) -> None:
        fold = fold_of(step.nodes[0])
        domain = step.domain or (fold.domain if fold is not None else step.nodes[0].shape)
        for node in step.nodes:
            if node in self.plan.stored:
                self._make_room(node, step)
        if not size(domain):
            self._nothing(step)
            return
        folds = [f for f in map(fold_of, step.nodes) if f is not None]
        numbers: dict[Node, str] = {}

        def fill(nest: NestBuilder) -> None:
            for node in step.nodes:
                joined = fold_of(node)
                pointer = nest.pointer(node) if node.shape else None
                if joined is not None:
                    text = nest.fold(node, joined, pointer)
                    if pointer is None:
                        numbers[node] = text
                    continue
                text = nest.compute(node, nest.index)
                nest.known[node, nest.index] = text
                if pointer is not None:
                    nest.store(pointer, flat(nest.index, node.shape), text)
                elif not node.shape:
                    numbers[node] = text

        axes = [axis for axis, n in enumerate(domain) if n > 1]  # of each loop

        def same_use(loop: int) -> bool:
            return all(f.reduced[axes[loop]] == f.reduced[axes[loop + 1]] for f in folds)

        made = self._nest(domain, set(step.nodes), fill, same_use, numbers, self.program.threads)
        self.numbers.update((node, LocalVariable(text)) for node, text in made.items())

    def _nest(
        self,
        domain: Shape,
        own: set[Node],
        fill: Callable[[NestBuilder], None],
        same_use: Callable[[int], bool] = lambda _: True,
        numbers: Mapping[Node, str] | None = None,
        threads: bool = False,
    ) -> Mapping[Node, str]:
        """Writes a nest, outlined where the graph is long; the names in this block of the `numbers` it computes."""
        numbers = {} if numbers is None else numbers
        outlined = self.plan.long and size(domain) > 1
        builder = NestBuilder(self, Body() if outlined else self.code, domain, own, outlined)
        fill(builder)
        if not builder.lines:  # as where zeros are written, to which something is added next
            builder.note(self.node)
        nest = collapsed(builder.nest(), same_use)
        parts = distributed(nest, self.code.name) if self.once and not outlined else []
        if parts:
            for part in parts:
                write_part(self.code, part)
            return numbers
        if threads:
            nest = in_chunks(nest, builder.scratch)
            if nest.chunks is not None:
                self.program.uses.add("parallel")
        self.code.comes_from(nest.lines)
        if not outlined:
            write(self.code, nest)
            return numbers
        code = self.code
        results = {text: node for node, text in numbers.items()}
        here = {text: code.named(node, "s") for text, node in results.items()}
        for text, node in results.items():
            code.line(f"{node.type.cxx} {here[text]};")
        outline = outline_of(nest, builder.parameters, {text: node.type.cxx for text, node in results.items()})
        function = self.program.outlines.function(outline)
        code.line(f"{function}({', '.join([*builder.parameters, *here.values()])});")
        return {node: here[text] for node, text in numbers.items()}

    def _nothing(self, step: ScheduledStep) -> None:
        """The results of a loop with an empty domain: reductions give their neutral element."""
        for node in step.nodes:
            fold = fold_of(node)
            if fold is None:
                continue
            start = NEUTRAL[fold.by][node.type.kind]
            if node.shape:
                self.code.line(f"fill<{node.type.cxx}>({self.pointer(node)}, {node.type.size}, {start});")
            else:
                self.numbers[node] = LocalVariable(start)

    def _make_room(self, node: Node, step: ScheduledStep) -> None:
        """Memory for an array: in place of one that is last read by this step, element by element, or new."""
        if lowering_of(node) == "each" and (self.in_place or node not in self.prefer):
            for b, same in step.reads.items():
                memory = self.dying(b) if same and b.shape == node.shape and b.type is node.type else None
                if memory is not None and (node not in self.prefer or memory.pointer in self.given):
                    self.take_over(node, memory)
                    return
        self.fresh(node)

    def _alias(self, node: Node) -> bool:
        """Makes a view that is contiguous in another array a pointer into it; whether it is one."""
        place = self._place(node)
        if place is None:
            return False
        base, form = place
        pointer = self.whole_pointer(base)
        found = self.memory.get(base)
        part = self.code.variable("p")
        at = f"{pointer} + {form}" if form != number(0) else str(pointer)
        self.code.line(f"const {node.type.cxx}* const {part} = {at};")
        alias = Memory(part, False, until=self.now)
        if found is not None:
            alias.inside = found.inside or found.pointer
            alias.loose = found.loose
        self.bind(node, alias)
        if found is not None:  # the array lives as long as the view
            found.until = max(found.until, self.last(node))
            self.within[id(found)].append(node)
        return True

    def _place(self, node: Node) -> tuple[Node, Form] | None:
        """The array that a view is a contiguous part of, and its offset; None where it is not contiguous."""
        counters = [f"#{k}" for k in range(node.ndim)]
        lengths = dict(zip(counters, node.shape, strict=True))
        index = tuple(name(c) if n > 1 else number(0) for c, n in zip(counters, node.shape, strict=True))
        base, shape = node, node.shape
        failed = False

        def ask(hole: Node, _: object, length: int) -> Form:
            nonlocal failed
            if not hole.ndim:
                return self.index(hole, length)
            self.check_all(hole, length)
            same = same_value(hole)
            failed = failed or same is None
            return number(int(same or 0) % length)

        def split(place: Form, shape: object) -> tuple[Form, ...]:
            nonlocal failed
            failed = True
            return tuple(number(0) for _ in shape)  # type: ignore[attr-defined]  # it has it, as was asked before

        while (base.is_constant and uniform(base) is not None) or self.pointer(base) is None:
            if not is_view(base) or any(a.ndim for a in base.arguments[1:]) or not base.type.size:
                return None
            if code_of(base)[0] == "reshape" and base.arguments[0] in self.memory:
                place = flat(index, base.shape)
                base = base.arguments[0]
                return self._stretch(base, place, node.shape, counters)
            index = through(base, index, ask, lengths, split)
            if failed:
                return None
            base = base.arguments[0]
        return self._stretch(base, flat(index, base.shape), shape, counters)

    def _stretch(
        self, base: Node, place: Form, shape: tuple[int, ...], counters: Sequence[str]
    ) -> tuple[Node, Form] | None:
        for counter, n, step in zip(counters, shape, strides(shape), strict=True):
            if n > 1 and place.times(counter) != step:
                return None
        start = Form(tuple((w, t) for w, t in place.terms if w not in counters), place.offset)
        return base, start

    # -- updates ---------------------------------------------------------------------------------------------------

    def _update(self, node: Node) -> None:
        update = update_of(node)
        self.before_update(node)
        if update.base is not None:
            into_itself = any(piece.value is update.base for piece in update.pieces)  # as in a[::-1] = a
            memory = None if into_itself else self.dying(update.base)
            if memory is not None:
                self.take_over(node, memory)
            else:
                self.copy_elements(update.base, self.fresh(node).pointer)
        else:
            made = self.fresh(node)
            if update.zeros and node.type.size:
                zero = {"real": "0.0", "integer": "0", "boolean": "false"}[node.type.kind]
                self.code.line(f"fill<{node.type.cxx}>({made.pointer}, {node.type.size}, {zero});")
        pointer = self.whole_pointer(node)
        if code_of(node)[0] == "on_diagonal":
            return self._on_diagonal(node, pointer)
        for piece in update.pieces:
            domain = self._region(piece.pattern, piece.holes)
            if size(domain):
                self._nest(domain, set(), functools.partial(_write, piece, pointer, node.shape))
        return None

    def before_update(self, node: Node) -> None:
        """Writes the checks of an update's indices, before its loops."""
        for hole, length in holes_of(node):
            if hole.ndim:
                self.check_all(hole, length)
            else:
                self.index(hole, length)

    def _region(self, pattern: Sequence[object], holes: Sequence[Node]) -> tuple[int, ...]:
        arrays = [h for h in holes if h.ndim]
        given = iter(holes)
        out: list[int] = []
        advanced: list[int] = []
        for k, entry in enumerate(pattern):
            if isinstance(entry, Slice):
                out.append(entry.length)
            elif isinstance(entry, str) and entry == NEW:
                out.append(1)
            else:
                advanced.append(k)
                if isinstance(entry, str):
                    next(given)
        if arrays:
            together = advanced[-1] - advanced[0] + 1 == len(advanced)
            start = advanced[0] if together else 0
            out[start:start] = np.broadcast_shapes(*(h.shape for h in arrays))
        return tuple(out)

    def _on_diagonal(self, node: Node, pointer: LocalVariable) -> None:
        value = node.arguments[0]
        offset = code_of(node)[1]
        if not value.type.size:
            return

        def fill(n: NestBuilder) -> None:
            *rest, i = n.index
            place = flat((*rest, i + max(-offset, 0), i + max(offset, 0)), node.shape)
            n.store(n.outside(pointer), place, n.value(value, n.index))

        self._nest(value.shape, set(), fill)

    def copy_elements(self, node: Node, to: LocalVariable) -> None:
        """Copies an array, or computes its elements directly into `to`."""
        if not node.type.size:
            return
        same = node.is_constant and uniform(node) is not None
        pointer = None if same else self.pointer(node)
        if pointer is not None:
            self.copy(to, pointer, node.type)
            return

        def fill(n: NestBuilder) -> None:
            n.store(n.outside(to), flat(n.index, node.shape), n.value(node, n.index))

        self._nest(node.shape, set(), fill)

    def copy(self, to: LocalVariable, pointer: LocalVariable, type: Type) -> None:
        if to is not pointer and type.size:
            self.code.line(f"memcpy({to}, {pointer}, {bytes_of(type)});")

    def deliver(self, results: Sequence[tuple[Memory, LocalVariable, Type]]) -> None:
        """Copies arrays to their destinations, a parallel move: a destination may be the memory of another source."""
        pending = [(m, to, t) for m, to, t in results if m.pointer is not to and t.size]
        targets = {to for _, to, _ in pending}
        safe = []
        for memory, to, type in pending:
            pointer = memory.pointer
            if (memory.loose and len(results) > 1) or pointer in targets or memory.inside in targets:
                made = self.room(type)
                self.live.append(made)
                self.copy(made.pointer, pointer, type)
                pointer = made.pointer
            safe.append((pointer, to, type, memory.loose))
        for pointer, to, type, loose in safe:
            if loose and len(results) == 1:
                self.code.line(f"if ({pointer} != {to}) memcpy({to}, {pointer}, {bytes_of(type)});")
            else:
                self.copy(to, pointer, type)

    def inner(
        self,
        bounds: GraphBounds,
        inputs: Sequence[Value],
        prefer: Mapping[Node, LocalVariable] | None = None,
        in_range: Collection[tuple[Node, int]] = (),
        tracks: Mapping[Node, Track] | None = None,
        in_place: bool = False,
    ) -> Block:
        """The block of a subgraph."""
        return Block(self.program, self.code, self.arena, bounds, inputs, prefer, in_range, tracks, in_place)


def _write(piece: Piece, pointer: LocalVariable, shape: Shape, to: NestBuilder) -> None:
    to.piece(piece, to.outside(pointer), shape)


def _sums(graph: Graph, uses: Mapping[Node, int]) -> set[Node]:
    """Outputs that are accumulators of a loop: an input plus something, where both have no other use."""
    found = {o for o in graph.outputs if o.operation is add and not o.shape and uses[o] == 1}
    own = set(graph.inputs)
    return {o for o in found if any(a in own and uses[a] == 1 for a in o.arguments)}


def size(shape: Shape) -> int:
    """The number of elements of an array."""
    return math.prod(shape)
