"""Derivatives whose number the run decides: bundles whose tags are made, and told apart, as the graph runs.

A number on the heap is a real or a bundle, whose primal and tangent are numbers with smaller tags (Radul 2011). An
operation on numbers is a function of the graph that calls itself for what they hold, made once for each operation from
its declaration. This is for recursions in which derivatives nest; elsewhere tags are known, and vanish.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ....errors import Error
from ....forks import renewed
from ....ir import Node
from ....ir.builders import call, cond, define
from ....ir.control import GraphFunction
from ....ir.node import as_node, constant, whole
from ....ir.operation import Operation, apply
from ....ir.ops import cells, integers
from ....ir.ops import scalars as ops
from ....ir.types import boolean, heap, integer, real
from ..values import ON_HEAP, Kinds, Union, rebuilt
from .unions import keys

_ROOTS = frozenset([cells.REAL, cells.BUNDLE])
NUMBER = Kinds(
    _ROOTS, {(cells.BUNDLE, 0): frozenset([cells.TAG]), (cells.BUNDLE, 1): _ROOTS, (cells.BUNDLE, 2): _ROOTS}
)
"""What a number may be."""
_bundle = cells.record(cells.BUNDLE, 3)


def is_number(x: Any) -> bool:
    """Whether a value is a number on the heap."""
    return isinstance(x, Union) and bool(x.kinds.roots) and x.kinds.roots <= _ROOTS


def number(cell: Node) -> Union:
    """A cell as a number."""
    return Union(cell, NUMBER)


def is_tag(x: Any) -> bool:
    """Whether a value is a tag that the graph makes."""
    return isinstance(x, Union) and x.kinds.roots == _TAGS


_TAGS = frozenset([cells.TAG])


def _cell(x: Any) -> Node:
    """A number as a cell; truth values stay."""
    if isinstance(x, Union):
        if not is_number(x):
            raise Error("this operation is on reals, and was given a value whose kind is decided as the function runs")
        return x.cell
    node = as_node(x)
    assert node is not None
    if node.type is boolean:
        return node
    found: Node = cells.real_cell(node)
    return found


def _is_real(cell: Node) -> Node:
    found: Node = integers.equal(cells.key_of(cell), cells.REAL)
    return found


def _tag(cell: Node) -> Node:
    found: Node = cells.tag_of(cells.part(0)(cell))
    return found


def _along(cell: Node, tag: Node) -> Node:
    """Whether the outermost tag of a number is this one."""
    found: Node = ops.logical_and(ops.logical_not(_is_real(cell)), integers.equal(_tag(cell), tag))
    return found


def apply_operation(operation: Operation, arguments: Sequence[Any]) -> Any:
    """An operation on numbers of which some are on the heap."""
    if any(hasattr(type(x), "__apply_operation__") and not isinstance(x, Node | Union) for x in arguments):
        return NotImplemented  # another kind of numbers, which knows how it comes to the heap
    if operation in ops.LOGS:  # a family without end, as each has the next one in its derivative
        y = apply(ops.power, *arguments)
        for _ in range(ops.LOGS[operation]):
            y = apply(ops.multiply, y, apply(ops.log, arguments[0]))
        return y
    (found,) = call(_function(operation), *map(_cell, arguments))
    return found if operation.result is boolean else number(found)


def _function(operation: Operation) -> GraphFunction:
    """The function of an operation on numbers."""
    with _lock:
        if operation not in _functions:
            types = [boolean if t is boolean else heap for t in operation.arguments]
            result = boolean if operation.result is boolean else heap
            made = _functions[operation] = GraphFunction(f"{operation.name} of numbers", types, (result,))
            _waiting.append((operation, made))
            if len(_waiting) == 1:  # bodies are defined one after the other, since they need each other's functions
                try:
                    while _waiting:
                        define(_waiting[0][1], lambda *given: [_body(_waiting[0][0], given)])
                        _waiting.pop(0)
                finally:
                    for without_body, _ in _waiting:
                        del _functions[without_body]
                    _waiting.clear()
        return _functions[operation]


_lock = renewed(threading.RLock())
_functions: dict[Operation, GraphFunction] = {}
_waiting: list[tuple[Operation, GraphFunction]] = []


def _body(operation: Operation, given: Sequence[Node]) -> Node:
    xs = [x for x in given if x.type is heap]
    reals = functools.reduce(ops.logical_and, map(_is_real, xs))

    def of_reals() -> list[Node]:
        y = operation(*(cells.real_of(x) if x.type is heap else x for x in given))
        return [y if operation.result is boolean else cells.real_cell(y)]

    def of_bundles() -> list[Node]:
        none = lambda: [_LEAST]  # noqa: E731
        tag = functools.reduce(integers.maximum, (cond(_is_real(x), none, lambda x=x: [_tag(x)])[0] for x in xs))
        own = [_along(x, tag) for x in xs]
        primals: list[Any] = [
            number(cond(_along(x, tag), lambda x=x: [cells.part(1)(x)], lambda x=x: [x])[0]) if x.type is heap else x
            for x in given
        ]
        y = apply(operation, *primals)
        if operation.steps:
            return [y if operation.result is boolean else y.cell]
        total: Any = None
        for x, rule in zip(given, operation.tangent or (), strict=True):
            if rule is None or x.type is not heap:
                continue
            by_tangent = lambda x=x, rule=rule: [_cell(rule(number(cells.part(2)(x)), y, *primals))]  # noqa: E731
            part = number(cond(_along(x, tag), by_tangent, lambda: [cells.real_cell(constant(0.0))])[0])
            total = part if total is None else apply(ops.add, total, part)
        own_tag = functools.reduce(
            lambda found, of: cond(of[0], lambda: [cells.part(0)(of[1])], lambda: [found])[0],
            zip(own[1:], xs[1:], strict=True),
            cells.part(0)(xs[0]),
        )
        return [_bundle(own_tag, y.cell, total.cell)]

    return cond(reals, of_reals, of_bundles)[0]


# -- derivatives -------------------------------------------------------------------------------------------------------


def fresh_tag() -> Union:
    """A tag that is another one each time that the graph comes here."""
    return Union(cells.fresh_tag(), Kinds(_TAGS, {}))


def known_tag(serial: int) -> Union:
    """A tag that was made before the graph runs, so it is less than those that the graph makes."""
    return Union(cells.tag_cell(whole(serial - KNOWN)), Kinds(_TAGS, {}))


KNOWN = 2**60
"""What is taken from the serial number of a tag that was made before the graph runs."""
_LEAST = -(2**62)


def serial_of(tag: Union) -> Node:
    """The serial number of a tag, which is larger for those made later."""
    found: Node = cells.tag_of(tag.cell)
    return found


def step(tag: Union) -> Union:
    """The number with the primal 0 and the tangent 1."""
    return number(_bundle(tag.cell, _cell(0.0), _cell(1.0)))


def bundled(x: Any) -> tuple[Union, Union]:
    """A fresh tag, and a number with the tangent 1 along it."""
    tag = fresh_tag()
    found: Union = apply_operation(ops.add, (x, step(tag)))
    return tag, found


def tangent(tag: Union, x: Any) -> Any:
    """The tangent of a number along a tag."""
    if not isinstance(x, Union):
        return 0.0
    return number(call(_tangent(), serial_of(tag), x.cell)[0])


def primal(tag: Union, x: Any) -> Any:
    """A number without a tag."""
    if not isinstance(x, Union):
        return x
    return number(call(_primal(), serial_of(tag), x.cell)[0])


def swapped(a: Union, b: Union, x: Any) -> Any:
    """A number with two tags in each other's place."""
    if not isinstance(x, Union):
        return x
    return number(call(_swapped(), a.cell, b.cell, x.cell)[0])


def without_tags(x: Any) -> Any:
    """A structure of tuples whose numbers are reals, where no derivative around has made a tag, nor the program."""
    if keys().own_tags:
        return x
    if is_number(x):
        return cells.real_of(x.cell) if cells.BUNDLE not in x.kinds.roots else call(_real_part(), x.cell)[0]
    return rebuilt(x, [without_tags(part) for part in x]) if isinstance(x, tuple) else x


def _part_along(name: str, index: int, without: Callable[[Node], Node]) -> GraphFunction:
    """A part of a number along a tag, which may be beneath larger ones; `without` is that of a number without it."""
    made = GraphFunction(name, (integer, heap), (heap,))

    def beneath(tag: Node, x: Node) -> list[Node]:
        inner = [call(made, tag, cells.part(i)(x))[0] for i in (1, 2)]
        return [_bundle(cells.part(0)(x), *inner)]

    def body(tag: Node, x: Node) -> list[Node]:
        return cond(
            _is_real(x),
            lambda: [without(x)],
            lambda: cond(
                integers.equal(_tag(x), tag),
                lambda: [cells.part(index)(x)],
                lambda: cond(integers.less(_tag(x), tag), lambda: [without(x)], lambda: beneath(tag, x)),
            ),
        )

    define(made, body)
    return made


@functools.cache
def _tangent() -> GraphFunction:
    return _part_along("tangent", 2, lambda x: cells.real_cell(constant(0.0)))


@functools.cache
def _primal() -> GraphFunction:
    return _part_along("primal", 1, lambda x: x)


@functools.cache
def _swapped() -> GraphFunction:
    """A number with two tags in each other's place: of p + a d + b q + a b e it is p + b d + a q + a b e."""
    made = GraphFunction("swapped", (heap, heap, heap), (heap,))

    def body(a: Node, b: Node, x: Node) -> list[Node]:
        first, second = Union(a, Kinds(_TAGS, {})), Union(b, Kinds(_TAGS, {}))

        def renamed(old: Union, new: Union, y: Union) -> Union:
            found: Union = primal(old, y) + step(new) * tangent(old, y)
            return found

        def both() -> list[Node]:
            rest, along = primal(first, number(x)), tangent(first, number(x))
            y = renamed(second, first, rest) + step(second) * renamed(second, first, along)
            return [y.cell]

        def with_a() -> list[Node]:
            return cond(_has(second, x), both, lambda: [renamed(first, second, number(x)).cell])

        def without_a() -> list[Node]:
            return cond(_has(second, x), lambda: [renamed(second, first, number(x)).cell], lambda: [x])

        return cond(_is_real(x), lambda: [x], lambda: cond(_has(first, x), with_a, without_a))

    define(made, body)
    return made


def _has(tag: Union, x: Node) -> Node:
    """Whether a number has a tag."""
    return call(_occurs(), serial_of(tag), x)[0]


@functools.cache
def _occurs() -> GraphFunction:
    made = GraphFunction("has_tag", (integer, heap), (boolean,))

    def beneath(tag: Node, x: Node) -> list[Node]:
        in_primal = call(made, tag, cells.part(1)(x))[0]
        return cond(in_primal, lambda: [True], lambda: call(made, tag, cells.part(2)(x)))

    def body(tag: Node, x: Node) -> list[Node]:
        return cond(
            _is_real(x),
            lambda: [False],
            lambda: cond(
                integers.equal(_tag(x), tag),
                lambda: [True],
                lambda: cond(integers.less(_tag(x), tag), lambda: [False], lambda: beneath(tag, x)),
            ),
        )

    define(made, body)
    return made


def real_part(x: Union) -> Node:
    """The real of a number, without any tag."""
    return call(_real_part(), x.cell)[0]


def settled(change: Any, x: Union, tolerance: float) -> Node:
    """Whether each part of a change is small beside that part of a number, or beside 1."""
    return call(_settled(), _cell(change), _cell(x), constant(tolerance))[0]


@functools.cache
def _settled() -> GraphFunction:
    made = GraphFunction("settled", (heap, heap, real), (boolean,))

    def of_parts(d: Node, x: Node, tolerance: Node) -> list[Node]:
        of_primal = call(made, cells.part(1)(d), call(_primal(), _tag(d), x)[0], tolerance)[0]
        tangents = lambda: call(made, cells.part(2)(d), call(_tangent(), _tag(d), x)[0], tolerance)  # noqa: E731
        return cond(of_primal, tangents, lambda: [False])

    def of_real(d: Node, x: Node, tolerance: Node) -> list[Node]:
        bound = tolerance * ops.maximum(1.0, ops.absolute(call(_real_part(), x)[0]))
        return [ops.less_equal(ops.absolute(cells.real_of(d)), bound)]

    define(made, lambda d, x, t: cond(_is_real(d), lambda: of_real(d, x, t), lambda: of_parts(d, x, t)))
    return made


@functools.cache
def _real_part() -> GraphFunction:
    made = GraphFunction("real_part", (heap,), (real,))
    define(made, lambda x: cond(_is_real(x), lambda: [cells.real_of(x)], lambda: call(made, cells.part(1)(x))))
    return made


ON_HEAP["operation"] = apply_operation
