"""Values of several kinds, on a heap: what they are made of, and how the alternatives are told apart as the graph runs.

Where a choice or a loop joins values that are not of one structure, and the front end allows it, the join is a `Union`:
a cell (`ir/ops/cells.py`), and what it may be. All that may be in it goes to the heap with it, closures too, which are
records of their code and of what they captured (defunctionalisation, Reynolds 1972). The alternatives are those that
the fixed-point iteration of a loop or recursion has found, so a use of the value is a choice between finitely many.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from ....autodiff.control_flow import NoBody
from ....errors import Error
from ....ir import Node
from ....ir.node import constant, whole
from ....ir.ops import cells, integers
from ....ir.ops import scalars as ops
from ...frontend.core import UNDEFINED
from ...frontend.source import mistake
from ..values import Closure, HostFunction, Kinds, Optional, Ref, Union, type_of


class NoUnion(Exception):
    """A value that cannot be an alternative of a union: an array, a mutable value, a whole number."""


@dataclass(frozen=True, eq=False, slots=True)
class Row:
    """What a key means: a constant, or records that `make` makes of their parts; `name` is that of a function, and
    `of` the class of a tuple."""

    value: Any
    count: int
    make: Callable[[list[Any]], Any] | None
    name: str = ""
    of: type | None = None


@dataclass
class Keys:
    """The meaning of keys in one specialisation."""

    rows: dict[int, Row] = field(default_factory=dict)
    """What each key means, but for those of numbers and truth values."""
    known: dict[Any, int] = field(default_factory=dict)
    tests: dict[Node, tuple[Node, frozenset[int]]] = field(default_factory=dict)
    """For conditions that ask of which kind a cell is: the cell, and the keys for which they hold."""
    implied: dict[tuple[Node, bool], tuple[tuple[Node, bool], ...]] = field(default_factory=dict)
    """For conditions that are choices, as `and` and `or` are: what holds where they do, and where they do not."""
    tags_wanted: int = 0
    """How often something was met that derivatives with tags of the graph can do, and those without cannot."""
    made_once: set[int] = field(default_factory=set)
    """The serial numbers of tags that a program makes itself, each of them once."""
    own_tags: bool = False
    """Whether numbers on the heap may have tags that a program made itself."""

    def constant(self, x: Any) -> int:
        try:
            return self._key((type(x), x), lambda: Row(x, 0, None, getattr(x, "name", "") if callable(x) else ""))
        except TypeError:  # it has no hash
            return self._key(("the same", id(x)), lambda: Row(x, 0, None))

    def record(self, structure: tuple[Any, ...], count: int, make: Callable[[list[Any]], Any]) -> int:
        name, of = "", None
        if structure[0] == "tuple":
            of = structure[1]
        elif structure[0] == "function":
            name = structure[1].name
        elif structure[0] == "made":
            name = str(structure[1][1])
        return self._key(structure, lambda: Row(None, count, make, name, of))

    def _key(self, of: Any, row: Callable[[], Row]) -> int:
        if of not in self.known:
            self.known[of] = cells.FIRST + len(self.known)
            self.rows[self.known[of]] = row()
        return self.known[of]


_keys: ContextVar[Keys | None] = ContextVar("keys", default=None)


def keys() -> Keys:
    """The keys of the specialisation that goes on."""
    found = _keys.get()
    assert found is not None, "unions are made while a function is specialised"
    return found


@contextmanager
def new_keys() -> Iterator[Keys]:
    """Keys of a new specialisation."""
    made = Keys()
    before = _keys.set(made)
    try:
        yield made
    finally:
        _keys.reset(before)


# -- to the heap, and back ---------------------------------------------------------------------------------------------

NO_KIND = Kinds(frozenset(), {})


def one_kind(key: int, parts: Sequence[Kinds] = ()) -> Kinds:
    """What a record may be whose parts may be these."""
    found: Mapping[tuple[int, int], frozenset[int]] = {(key, i): part.roots for i, part in enumerate(parts)}
    return functools.reduce(lambda a, b: a | Kinds(frozenset(), b.parts), parts, Kinds(frozenset([key]), found))


def is_constant(x: Any) -> bool:
    """Whether a value that is no structure, number or truth value may be a constant of the heap."""
    return type_of(x) is None and not isinstance(x, Ref | Optional | slice | Node)


def is_structure(x: Any) -> bool:
    return isinstance(x, tuple | Closure | HostFunction)


def boxed(x: Any, parts_of: Callable[[Any], tuple[tuple[Any, ...], list[Any], Any] | None]) -> Node:
    """A value as a cell; `parts_of` takes structures apart."""
    if x is UNDEFINED:
        return cells.nothing()
    if isinstance(x, Union):
        return x.cell
    node: Node
    if isinstance(x, Node):
        node = {"real": cells.real_cell, "boolean": cells.truth_cell}[x.type.kind](x)
        return node
    if isinstance(x, bool | float):
        node = (cells.truth_cell if isinstance(x, bool) else cells.real_cell)(constant(x))
        return node
    if hasattr(x, "heap_number"):  # a number of a front end
        node = x.heap_number.cell
        return node
    structure = parts_of(x) if is_structure(x) else None
    if structure is None:
        return cells.constant_cell(keys().constant(x))
    key, parts, make = structure
    number = keys().record(key, len(parts), make)
    if not parts:
        return cells.constant_cell(number)
    node = cells.record(number, len(parts))(*(boxed(part, parts_of) for part in parts))
    return node


def _value(cell: Node, kinds: Kinds) -> Any:
    """A cell as a value, which is no union where it can be only one thing."""
    if not kinds.roots:
        return UNDEFINED
    if len(kinds.roots) == 1:
        (key,) = kinds.roots
        if key < cells.FIRST or not keys().rows[key].count:
            return unboxed(cell, kinds, key)
    return Union(cell, kinds)


def unboxed(cell: Node, kinds: Kinds, key: int) -> Any:
    """A cell as a value, where it has this key."""
    if key == cells.REAL:
        return cell.arguments[0] if cell.operation is cells.real_cell else cells.real_of(cell)
    if key == cells.TRUTH:
        return cell.arguments[0] if cell.operation is cells.truth_cell else cells.truth_of(cell)
    if key == cells.TAG:
        return Union(cell, Kinds(frozenset([key]), kinds.parts))
    if key == cells.BUNDLE:  # a number is one whether it has tags or not
        return Union(cell, Kinds(kinds.roots & {key, cells.REAL}, kinds.parts))
    row = keys().rows[key]
    if row.make is None:
        return row.value
    return row.make([_value(cells.part_of(cell, i), _below(kinds, key, i)) for i in range(row.count)])


def _below(kinds: Kinds, key: int, index: int) -> Kinds:
    """What a part of a record may be, with what can be reached from there."""
    roots = kinds.parts.get((key, index), frozenset())
    todo, seen = list(roots), set(roots)
    parts: dict[tuple[int, int], frozenset[int]] = {}
    while todo:
        at = todo.pop()
        for i in range(keys().rows[at].count if at >= cells.FIRST else 3 * (at == cells.BUNDLE)):
            parts[at, i] = kinds.parts.get((at, i), frozenset())
            todo += parts[at, i] - seen
            seen |= parts[at, i]
    return Kinds(roots, parts)


def rows_of(kinds: Kinds) -> list[Row]:
    """What there may be anywhere in a union, besides numbers and truth values."""
    every = kinds.roots.union(*kinds.parts.values())
    return [keys().rows[key] for key in sorted(every) if key >= cells.FIRST]


def has_functions(kinds: Kinds) -> bool:
    """Whether there may be functions anywhere in a union."""
    return any(row.name for row in rows_of(kinds))


# -- telling alternatives apart ----------------------------------------------------------------------------------------


def is_one_of(x: Union, wanted: frozenset[int]) -> bool | Node:
    """Whether a union is of one of some kinds, known or as a condition."""
    wanted &= x.kinds.roots
    if not wanted or wanted == x.kinds.roots:
        return bool(wanted)
    few = wanted if 2 * len(wanted) <= len(x.kinds.roots) else x.kinds.roots - wanted
    found: Node | None = None
    for key in sorted(few):
        same = integers.equal(cells.key_of(x.cell), whole(key))
        found = same if found is None else ops.logical_or(found, same)
    assert found is not None
    if few is not wanted:
        found = ops.logical_not(found)
    keys().tests[found] = (x.cell, wanted)
    return found


def refined(x: Union, test: Node, holds: bool) -> Any:
    """A union where a condition holds, or does not, that may have asked for its kind."""
    roots, tests = x.kinds.roots, keys().tests
    todo, seen = [(test, holds)], set[tuple[Node, bool]]()
    while todo:
        test, holds = at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        todo += keys().implied.get((test, holds), ())
        if test not in tests and test.operation is ops.logical_not:
            todo.append((test.arguments[0], not holds))
        elif test.operation is (ops.logical_and if holds else ops.logical_or):
            todo += [(part, holds) for part in test.arguments]
        cell, wanted = tests.get(test, (None, frozenset()))
        if cell is x.cell:
            roots = (roots & wanted if holds else roots - wanted) or roots
    return x if roots == x.kinds.roots else _value(x.cell, Kinds(roots, x.kinds.parts))


def note_choice(found: Any, test: Node, sides: Sequence[Any]) -> None:
    """Notes what is known where a truth value holds that a choice gave, one side of which is known."""
    if not isinstance(found, Node) or found.type.kind != "boolean":
        return
    for i, (known, other) in enumerate((sides, sides[::-1])):
        if isinstance(known, bool) and isinstance(other, Node):  # the other side was taken, with the other value
            keys().implied[found, not known] = ((test, bool(i)), (other, not known))


def refined_parts(x: Any, test: Node, holds: bool) -> Any:
    """A structure of tuples whose unions are refined."""
    if isinstance(x, Union):
        return refined(x, test, holds)
    return tuple(refined_parts(part, test, holds) for part in x) if type(x) is tuple else x


def unions_in(x: Any) -> bool:
    """Whether there are unions in a structure of tuples."""
    return isinstance(x, Union) or (type(x) is tuple and any(map(unions_in, x)))


def opened(s: Any, x: Union, use: Callable[[Any], Any]) -> Any:
    """What `use` makes of a union: a choice between what it makes of each alternative. One of which it makes an error
    is an error of the run, unless it does of all."""
    problems: list[Error] = []
    wanted = keys().tags_wanted
    numbers = x.kinds.roots & {cells.REAL, cells.BUNDLE}
    order = sorted(x.kinds.roots - {cells.REAL} if cells.BUNDLE in numbers else x.kinds.roots)

    def alternative(key: int) -> Any:
        try:
            return use(unboxed(x.cell, x.kinds, key))
        except NoBody:
            raise
        except Error as problem:
            if len(order) == 1 or keys().tags_wanted > wanted:
                raise
            problems.append(problem)
            return s.apply("raise", mistake(problem) or problem)

    def choice(left: list[int]) -> Any:
        if len(left) == 1:
            return alternative(left[0])
        every = frozenset(left) | (numbers if cells.BUNDLE in left else frozenset())
        first = numbers if left[0] == cells.BUNDLE else frozenset(left[:1])
        test = is_one_of(Union(x.cell, Kinds(every, x.kinds.parts)), first)
        return s.cond(test, lambda: alternative(left[0]), lambda: choice(left[1:]))

    with s.uniting():
        found = choice(order)
    if len(problems) == len(order):
        raise problems[0]
    return found
