"""Loop distribution: a short nest as several, with calls of functions for whole arrays between them.

What a nest computes by long code (exponentials, sines, powers) is the same for each program, and compiled once, in
`graphs/vectors.hpp`: a loop that calls it is compiled in half the time, and as quick where it has few elements and runs
once a call. A scalar that one nest computes for another becomes a temporary array (scalar expansion). Both
transformations are in Kennedy and McKinley 1990. No text is written here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ....passes.index_forms import Form, flat, name
from ....runtime.shared import SHARED
from .model import (
    Accumulate,
    Addend,
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

SHORT = 64
"""The most elements of a nest that is distributed."""
VECTOR = SHARED.constant("kWidth")
"""The numbers of a vector."""
ROOM = 1 << 14
"""The most bytes of temporary arrays, which are on the stack."""

_SIN, _COS, _BOTH = "vector::sin", "vector::cos", "vector::sin_cos"


@dataclass(frozen=True)
class Room:
    """An array for one value of each round of a nest, made of whole vectors; `open`: it has more than the rounds fill,
    and begins as zeros."""

    cxx: str
    name: str
    length: int
    open: bool


@dataclass(frozen=True)
class ArrayCall:
    """A function of whole arrays; arguments are arrays or numbers."""

    function: str
    results: tuple[str, ...]
    arguments: tuple[str, ...]
    length: int


Part = Room | LoopNest | ArrayCall


def distributed(nest: LoopNest, fresh: Callable[[str], str]) -> list[Part]:
    """The parts of a nest, in order; none for a nest that stays as it is. `fresh` makes names."""
    inner = len(nest.loops)
    length = math.prod(n for _, n in nest.loops)
    if not inner or length > SHORT or not nest.independent:
        return []
    own = {s.name: s for s in nest.before if isinstance(s, Definition) and s.level == inner}
    calls = {s.name for s in own.values() if _function(s.value)}
    if not calls or any(isinstance(s, Definition) and 0 < s.level < inner and _function(s.value) for s in nest.before):
        return []
    found = _Distribution(nest, own, calls, length, fresh).parts()
    rooms = [part for part in found if isinstance(part, Room)]
    return found if sum(8 * room.length for room in rooms) <= ROOM else []


class _Distribution:
    """The stages of a nest: a value is of the stage at which all calls that it depends on have been done."""

    def __init__(
        self, nest: LoopNest, own: dict[str, Definition], calls: set[str], length: int, fresh: Callable[[str], str]
    ) -> None:
        self.nest, self.own, self.calls, self.length, self.fresh = nest, own, calls, length, fresh
        self.inner = len(nest.loops)
        self.padded = -(-length // VECTOR) * VECTOR
        self.place = flat(tuple(name(counter) for counter, _ in nest.loops), tuple(n for _, n in nest.loops))
        self.stage: dict[str, int] = {}  # of each value; of a call the one after its arguments'
        for value, definition in own.items():
            before = max((self.stage[o] for o in self.operands(definition)), default=0)
            self.stage[value] = before + (value in calls)
        self.last = max(self.stage.values())
        self.made: dict[str, int] = {}  # the stage in which a value is computed
        self.rooms: dict[str, Room] = {}  # of results of calls, and of values that are handed on
        ends: list[list[str]] = [[] for _ in range(self.last)]  # what a stage computes for others
        for call in own:
            if call in calls:
                ends[self.stage[call] - 1] += [o for o in self.operands(own[call]) if self.pointer(o) is None]
        ends.append([o for s in nest.stores for o in self.operands(s)])
        self.needed = [self.closure(values, stage) for stage, values in enumerate(ends)]

    def operands(self, x: Definition | Store | Accumulate) -> list[str]:
        """The values of the innermost loop that a statement is computed from."""
        return [o for o in _operands(x) if o in self.own]

    def room(self, value: str) -> str:
        """The array that a value is handed on in."""
        if value not in self.rooms:
            filled = value in self.calls or self.padded == self.length
            self.rooms[value] = Room(self.own[value].cxx, self.fresh("m"), self.padded, not filled)
        return self.rooms[value].name

    def pointer(self, value: str) -> str | None:
        """The array in memory that the elements of a value are those of, in their order; None where there is none."""
        read = self.own[value].value
        return read.pointer if isinstance(read, Load) and read.place == self.place else None

    def closure(self, values: Iterable[str], stage: int) -> set[str]:
        """What a stage computes or reads for some values. What is in memory is read again, not handed on."""
        ends, found = set(values) if stage < self.last else set[str](), set[str]()
        todo = list(values)
        while todo:
            value = todo.pop()
            if value in found:
                continue
            found.add(value)
            if value in self.calls:
                self.room(value)
                continue
            read = isinstance(self.own[value].value, Load)
            if value in ends or not read:
                self.made.setdefault(value, stage)
            if value in ends or (not read and self.made[value] < stage):
                self.room(value)
            if read or self.made[value] == stage:
                todo += self.operands(self.own[value])
        return found

    def parts(self) -> list[Part]:
        """All parts in order: the arrays, what is before all loops, and each stage with its calls."""
        result = self.only_result()
        found: list[Part] = []
        for stage in range(self.last):
            handed = [v for v in self.own if v in self.rooms and v not in self.calls and self.made[v] == stage]
            if handed:
                stores = tuple(Store(self.inner, self.room(v), self.place, v) for v in handed)
                found.append(self.loops(stage, stores))
            found += self.calls_after(stage, result)
        if result is None:
            found.append(replace(self.loops(self.last, self.nest.stores), after=self.nest.after))
        before = tuple(s for s in self.nest.before if not s.level)
        head = [replace(self.nest, loops=(), before=before, stores=(), after=(), work=())] if before else []
        return [*(room for v, room in self.rooms.items() if result is None or v != result.value), *head, *found]

    def only_result(self) -> Store | None:
        """The store of a call's result where that is all that the last stage does: the call can store it itself."""
        if len(self.nest.stores) != 1 or self.nest.after:
            return None
        (store,) = self.nest.stores
        if not isinstance(store, Store) or store.by or store.place != self.place:
            return None
        return store if store.value in self.calls else None

    def loops(self, stage: int, stores: tuple[Store | Accumulate, ...]) -> LoopNest:
        """The nest of a stage."""
        before: list[Before] = []
        for s in self.nest.before:
            if isinstance(s, Definition) and s.level == self.inner:
                if s.name in self.needed[stage]:
                    before.append(self.definition(s, stage))
            elif s.level and (isinstance(s, Definition) or stage == self.last):
                before.append(s)
        return replace(self.nest, before=tuple(before), stores=stores, after=())

    def definition(self, s: Definition, stage: int) -> Definition:
        """How a stage gets a value: as it is computed, or out of the array that it is handed on in."""
        handed = s.name in self.calls or (not isinstance(s.value, Load) and self.made[s.name] < stage)
        return replace(s, value=Load(self.room(s.name), self.place)) if handed else s

    def calls_after(self, stage: int, result: Store | None) -> list[ArrayCall]:
        """The calls after the loops of a stage; a sine and a cosine of the same angles are one."""
        found: dict[tuple[str, tuple[str, ...]], str] = {}
        for value in self.own:
            if value in self.calls and self.stage[value] == stage + 1:
                made = self.own[value].value
                assert isinstance(made, Elementwise)
                arguments = tuple(self.argument(a) for a in made.arguments)
                to = result.pointer if result is not None and result.value == value else self.room(value)
                found[_function(made), arguments] = to
        out: list[ArrayCall] = []
        rooms = {room.name for room in self.rooms.values()}
        for (function, arguments), to in found.items():
            # of what is behind the rounds, too, where there is memory for that
            length = self.padded if {to, *arguments} <= rooms else self.length
            both = (_SIN, arguments) in found and (_COS, arguments) in found
            if function == _SIN and both:
                out.append(ArrayCall(_BOTH, (to, found[_COS, arguments]), arguments, length))
            elif function != _COS or not both:
                out.append(ArrayCall(function, (to,), arguments, length))
        return out

    def argument(self, operand: Operand) -> str:
        """The array of an argument; a number, where all elements have the same."""
        if operand not in self.own:
            return operand
        return self.pointer(operand) or self.room(operand)


def _function(x: Expression) -> str:
    """The function for whole arrays that computes a value; empty where there is none."""
    if isinstance(x, Elementwise) and x.in_loop and x.at is None:
        return x.operation.in_loops
    return ""


def _operands(x: Definition | Store | Accumulate | Expression | Addend | Operand) -> Iterator[str]:
    """The names that a statement or an expression has; literals, too."""
    match x:
        case str():
            yield x
        case Definition():
            yield from _operands(x.value)
        case Store():
            yield from _in(x.place)
            yield from _operands(x.value)
        case Accumulate():
            yield from _operands(x.value)
        case Load():
            yield from _in(x.place)
        case Elementwise():
            yield from x.arguments
        case Combine():
            yield from (x.left, x.right)
        case Convert():
            yield x.value
        case FromEnd() | Digit():
            yield from _in(x.place)
        case Triangle():
            yield x.value
            yield from (name for form in (x.offset, *x.axes) for name in _in(form))
        case Addend():
            yield from x.factors
        case OfRank():
            yield x.rank


def _in(form: Form) -> Iterator[str]:
    return (what for what, _ in form.terms)
