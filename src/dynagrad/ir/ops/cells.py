"""Operations on cells: values of a heap, whose kind and size are known only as the graph runs.

A cell is a number, a truth value, a constant, or a record of cells, and has a key that says which. A number is a real,
or a bundle of a tag that was made as the graph ran, a primal and a tangent. Cells never change, and live until the call
of the graph is over. They are a vector space, so derivatives go through them in both modes: the tangent of a cell is a
cell of the same shape with tangents in the place of reals, the adjoint likewise, and `nothing` stands for zero, as a
whole and in any part. All operations but those that look at keys and truth values are linear, and their transposes are
in this file, too. What keys mean, those who make the cells know (`compiler/evaluate/heap/unions.py`).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...runtime.shared import SHARED
from ..node import Node, intern
from ..operation import Operation
from ..types import boolean, heap, integer, real

_KEYS = SHARED.numbers("CellKey")
REAL, TRUTH, TAG, BUNDLE, FIRST = (_KEYS[f"{name}_CELL"] for name in ("REAL", "TRUTH", "TAG", "BUNDLE", "FIRST"))
"""The keys of reals, truth values, tags and bundles, and the first of all others."""


@dataclass(frozen=True, slots=True)
class HeapCell:
    """A cell, as the interpreter has it: its key, and its number or its parts."""

    key: int
    content: Any = ()

    @staticmethod
    def __apply_operation__(operation: Operation, arguments: Sequence[Any]) -> Any:
        return operation.value(*arguments)


NOTHING = HeapCell(-1)


def _sum(a: HeapCell, b: HeapCell) -> HeapCell:
    if a.key < 0 or b.key < 0:
        return b if a.key < 0 else a
    if a.key == REAL:
        return HeapCell(REAL, a.content + b.content)
    return HeapCell(a.key, a.content if a.key in (TRUTH, TAG) else tuple(map(_sum, a.content, b.content)))


def _filled(x: HeapCell, d: HeapCell) -> HeapCell:
    if x.key == REAL:
        return HeapCell(REAL, 0.0 if d.key < 0 else d.content)
    if x.key in (TRUTH, TAG):
        return x
    return HeapCell(x.key, tuple(_filled(part, _part(d, i)) for i, part in enumerate(x.content)))


def _part(x: HeapCell, index: int) -> HeapCell:
    """A part of a cell; nothing of what has none."""
    part: HeapCell = x.content[index] if _has(x, index) else NOTHING
    return part


def _has(x: HeapCell, index: int) -> bool:
    return x.key not in (REAL, TRUTH, TAG) and index < len(x.content)


_EMPTY = Operation("nothing", (), heap, lambda: NOTHING, (), "Cell(nullptr)")


def nothing() -> Node:
    """Zero, of any shape."""
    return intern(_EMPTY, (), None, heap)


real_cell: Operation = Operation(
    "real_cell",
    (real,),
    heap,
    lambda x: HeapCell(REAL, x),
    (lambda d, y, x: real_cell(d),),
    "real_cell(call, {0})",
    adjoint=lambda d, y, x: (real_of(d),),
)
real_of: Operation = Operation(
    "real_of",
    (heap,),
    real,
    lambda x: x.content if x.key == REAL else 0.0,
    (lambda d, y, x: real_of(d),),
    "real_of({0})",
    adjoint=lambda d, y, x: (real_cell(d),),
)
truth_cell = Operation(
    "truth_cell", (boolean,), heap, lambda x: HeapCell(TRUTH, bool(x)), (None,), "truth_cell(call, {0})"
)
truth_of = Operation(
    "truth_of", (heap,), boolean, lambda x: x.key == TRUTH and bool(x.content), (None,), "truth_of({0})"
)
tag_of = Operation("tag_of", (heap,), integer, lambda x: x.content if x.key == TAG else 0, (None,), "tag_of({0})")
"""The serial number of a tag."""
key_of = Operation("key_of", (heap,), integer, lambda x: x.key, (None,), "key_of({0})")
cell_sum = Operation(
    "cell_sum",
    (heap, heap),
    heap,
    _sum,
    (lambda d, y, a, b: d, lambda d, y, a, b: d),
    "cell_sum(call, {0}, {1})",
    adjoint=lambda d, y, a, b: (d, d),
)
filled: Operation = Operation(
    "filled",
    (heap, heap),
    heap,
    _filled,
    (None, lambda d, y, x, t: filled(x, d)),
    "filled(call, {0}, {1})",
    adjoint=lambda d, y, x, t: (None, d),
)
"""A cell of the shape of the first with the reals of the second, which may have `nothing` in it."""
exported = Operation("exported", (heap,), integer, lambda x: x, (None,), "exported(call, {0})")
"""A copy of a cell that outlives the call, for `compiler/returned_cells.py`: its address."""


_tags = itertools.count(1)
FRESH_TAG = Operation("fresh_tag", (), heap, lambda: HeapCell(TAG, next(_tags)), (), "fresh_tag(call)")


def fresh_tag() -> Node:
    """A tag that no other computation of one has, each time that the node is computed."""
    return intern(FRESH_TAG, (), object(), heap)


tag_cell = Operation("tag_cell", (integer,), heap, lambda x: HeapCell(TAG, x), (None,), "tag_cell(call, {0})")
"""A tag with a serial number: fresh ones have numbers from 1, so one that is known before the run has a lower one."""


@functools.cache
def record(key: int, count: int) -> Operation:
    """A cell with a key and so many parts.

    >>> record(FIRST, 2).value(HeapCell(REAL, 1.0), NOTHING).key
    4
    """
    holes = "".join(f", {{{i}}}" for i in range(count))

    def tangent(index: int) -> Any:
        return lambda d, y, *parts: record(key, count)(*(d if i == index else nothing() for i in range(count)))

    made = Operation(
        f"record{key}_{count}",
        (heap,) * count,
        heap,
        lambda *parts: HeapCell(key, parts),
        tuple(map(tangent, range(count))),
        f"record<{key}, {count}>(call{holes})",
        adjoint=lambda d, y, *parts: tuple(part(i)(d) for i in range(count)),
    )
    _records.add(made)
    return made


_records: set[Operation] = set()
"""The operations that `record` has made."""


def constant_cell(key: int) -> Node:
    """A cell with a key, and nothing else."""
    return intern(record(key, 0), (), None, heap)


@functools.cache
def part(index: int) -> Operation:
    """A part of a record."""
    return Operation(
        f"part{index}",
        (heap,),
        heap,
        lambda x: _part(x, index),
        (lambda d, y, x: part(index)(d),),
        f"part_of<{index}>({{0}})",
        adjoint=lambda d, y, x: (placed(index)(x, d),),
    )


def part_of(cell: Node, index: int) -> Node:
    """A part of a cell: the argument itself, where the graph makes the record.

    >>> from dynagrad.ir.node import constant
    >>> real_part, rest = real_cell(constant(2.0)), nothing()
    >>> part_of(record(FIRST, 2)(real_part, rest), 0) is real_part
    True
    """
    if cell.operation in _records:
        return cell.arguments[index]
    found: Node = part(index)(cell)
    return found


@functools.cache
def placed(index: int) -> Operation:
    """A record of the shape of the first argument with the second as a part, and nothing in the others."""

    def value(x: HeapCell, d: HeapCell) -> HeapCell:
        if d.key < 0 or not _has(x, index):
            return NOTHING
        return HeapCell(x.key, tuple(d if i == index else NOTHING for i in range(len(x.content))))

    return Operation(
        f"placed{index}",
        (heap, heap),
        heap,
        value,
        (None, lambda d, y, x, part: placed(index)(x, d)),
        f"placed<{index}>(call, {{0}}, {{1}})",
        adjoint=lambda d, y, x, old: (None, part(index)(d)),
    )
