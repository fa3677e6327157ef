"""Indexing in graphs: reads at an index (gather), and functional updates that add or write there (scatter).

An index is a pattern. Integers, slices and new axes stand in it as they are; a number or an array that is known only
when the graph runs leaves a hole, and is an argument of the operation. `item` reads; `at_add` gives the array with
something added at an index, once for each occurrence of an element; `at_set` gives the array with something written
there. No array is written to: code generation updates in place where the old array is dead. Negative indices count from
the end; an index out of range is an error at run time.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ...errors import Error, counted
from ..operation import Operation, apply
from ..types import Shape, array, integer
from .arrays import broadcast_to, sum_to
from .scalars import equal, where


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice in a pattern, with all three numbers known; it can be hashed, unlike Python's in some versions."""

    start: int
    stop: int
    step: int

    @property
    def length(self) -> int:
        return len(range(self.start, self.stop, self.step))

    def python(self) -> slice:
        return slice(self.start, None if self.stop < 0 else self.stop, self.step)


HOLE = "hole"
"""In a pattern: an index that is an argument."""
NEW = "new axis"
H = TypeVar("H")
Pattern = tuple[Any, ...]  # of whole numbers, Slice, NEW and HOLE; one for each axis of the array, and new ones


def entries(pattern: Pattern, holes: Iterable[H]) -> Iterator[tuple[Any, H | None]]:
    """Each entry of a pattern, with what fills it where it is a hole.

    >>> list(entries((Slice(0, 3, 1), HOLE, 2), ["i"]))
    [(Slice(start=0, stop=3, step=1), None), ('hole', 'i'), (2, None)]
    """
    filling = iter(holes)
    for entry in pattern:
        yield entry, next(filling) if entry == HOLE else None


def on_axes(pattern: Pattern, holes: Iterable[H]) -> Iterator[tuple[Any, H | None]]:
    """The same for the axes of the array that is indexed: without new axes."""
    return (found for found in entries(pattern, holes) if found[0] != NEW)


def index_of(pattern: Pattern, holes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The index for numpy, from a pattern and the values of its holes."""
    out: list[Any] = []
    for entry, hole in entries(pattern, holes):
        if hole is not None:
            out.append(int(hole) if np.ndim(hole) == 0 else np.asarray(hole).astype(np.int64))
        elif entry == NEW:
            out.append(None)
        else:
            out.append(entry.python() if isinstance(entry, Slice) else entry)
    return tuple(out)


def _single(x: Any) -> Any:
    return x if isinstance(x, np.ndarray) and x.ndim else np.asarray(x).item()


@functools.cache
def reading(pattern: Pattern, holes: int) -> Operation:
    """The operation `x, *indices -> x[index]`."""

    def value(x: Any, *places: Any) -> Any:
        return _single(np.asarray(x)[index_of(pattern, places)])

    steps = (None,) * holes
    return Operation(
        "item",
        (array, *(integer,) * holes),
        array,
        value,
        (lambda d, y, x, *places: reading(pattern, holes)(d, *places), *steps),
        "",
        adjoint=lambda delta, y, x, *places: (
            adding(pattern, holes)(broadcast_to(x.shape)(0.0), delta, *places),
            *steps,
        ),
        needs=(tuple(range(1, holes + 1)), *((),) * holes),
        code=("item", pattern),
        keeps_kind=True,
    )


@functools.cache
def adding(pattern: Pattern, holes: int) -> Operation:
    """The operation `x, z, *indices ->` x with z added at the index."""

    def value(x: Any, z: Any, *places: Any) -> Any:
        out = np.array(x, dtype=float)
        np.add.at(out, index_of(pattern, places), z)
        return out

    steps = (None,) * holes
    return Operation(
        "add_at",
        (array, array, *(integer,) * holes),
        array,
        value,
        (
            lambda d, y, x, z, *places: d,
            lambda d, y, x, z, *places: adding(pattern, holes)(broadcast_to(x.shape)(0.0), d, *places),
            *steps,
        ),
        "",
        adjoint=lambda delta, y, x, z, *places: (
            delta,
            sum_to(getattr(z, "shape", ()))(reading(pattern, holes)(delta, *places)),
            *steps,
        ),
        needs=((), tuple(range(2, holes + 2)), *((),) * holes),
        code=("add_at", pattern),
    )


@functools.cache
def setting(pattern: Pattern, holes: int) -> Operation:
    """The operation `x, z, *indices ->` x with z written at the index; where an element occurs twice, the last wins."""

    def value(x: Any, z: Any, *places: Any) -> Any:
        out = np.array(x)
        out[index_of(pattern, places)] = z
        return out

    steps = (None,) * holes
    return Operation(
        "set_at",
        (array, array, *(integer,) * holes),
        array,
        value,
        (
            lambda d, y, x, z, *places: setting(pattern, holes)(d, 0.0, *places),
            lambda d, y, x, z, *places: setting(pattern, holes)(broadcast_to(x.shape)(0.0), d, *places),
            *steps,
        ),
        "",
        adjoint=lambda delta, y, x, z, *places: (
            setting(pattern, holes)(delta, 0.0, *places),
            sum_to(getattr(z, "shape", ()))(_last(pattern, holes, delta, places)),
            *steps,
        ),
        needs=(tuple(range(2, holes + 2)), tuple(range(2, holes + 2)), *((),) * holes),
        code=("set_at", pattern),
        keeps_kind=True,
    )


def _last(pattern: Pattern, holes: int, delta: Any, places: tuple[Any, ...]) -> Any:
    """`delta` at an index, with zero where an element occurs again later, since that write was overwritten."""
    read = reading(pattern, holes)
    found = read(delta, *places)
    if all(_different(place) for place in places if getattr(place, "ndim", 0)):
        return found
    number = np.arange(1.0, found.size + 1.0).reshape(found.shape)
    there = read(setting(pattern, holes)(broadcast_to(delta.shape)(0.0), number, *places), *places)
    return where(equal(there, number), found, 0.0)


def _different(places: Any) -> bool:
    """Whether an array of indices is known and has no duplicates."""
    if _unknown(places):
        places = places.attribute if places.is_constant else None
    return places is not None and np.unique(places).size == np.size(places)


def _unknown(x: Any) -> bool:
    """Whether this is a node, whose value is not known."""
    return hasattr(type(x), "__apply_operation__")


# -- patterns of Python's indices --------------------------------------------------------------------------------------


def pattern_of(shape: Shape, index: Any) -> tuple[Pattern, tuple[Any, ...]]:
    """The pattern of an index into an array of that shape, and the values of its holes.

    >>> pattern_of((4, 5), (slice(1, 3), -1))
    ((Slice(start=1, stop=3, step=1), 4), ())
    """
    entries = list(index) if isinstance(index, tuple) else [index]
    used = sum(1 for e in entries if e is not None and e is not Ellipsis)
    if used > len(shape):
        raise Error(f"an array of shape {shape} has {counted(len(shape), 'axis', 'axes')}, and {used} were indexed")
    if not any(e is Ellipsis for e in entries):
        entries.append(Ellipsis)
    at = next(i for i, e in enumerate(entries) if e is Ellipsis)
    entries[at : at + 1] = [slice(None)] * (len(shape) - used)
    pattern: list[Any] = []
    holes: list[Any] = []
    axis = 0
    for entry in entries:
        if entry is None:
            pattern.append(NEW)
            continue
        if axis >= len(shape):
            axes = counted(len(shape), "axis", "axes")
            raise Error(f"an array of shape {shape} has {axes}: there are too many indices, or two `...`")
        length = shape[axis]
        if isinstance(entry, slice):
            parts = (entry.start, entry.stop, entry.step)
            if any(map(_unknown, parts)):
                raise Error(
                    "the bounds of a slice decide a shape, so they cannot be values that are known only when the "
                    "function runs; use an index in a loop, or a mask with np.where"
                )
            start, stop, step = entry.indices(length)
            pattern.append(Slice(start, stop, step))
        elif _unknown(entry):
            if entry.type.kind != "integer":
                raise Error(f"an index is a whole number, and {entry!r} is a {entry.type}; a mask goes with np.where")
            pattern.append(HOLE)
            holes.append(entry)
        elif isinstance(entry, np.ndarray | list) and np.ndim(entry):
            places = np.asarray(entry, np.intp if isinstance(entry, list) and not np.size(entry) else None)
            if places.dtype.kind == "b" and places.ndim == 1 and len(places) == length:
                places = np.flatnonzero(places)
            if places.dtype.kind not in "iu":
                raise Error(f"an index is a whole number, a slice or an array of whole numbers, and not {entry!r:.60}")
            if places.size and not (-length <= places.min() and places.max() < length):
                raise Error(f"an index is out of range for an axis of length {length}")
            pattern.append(HOLE)
            holes.append(places % length if length else places)
        elif isinstance(entry, int | np.integer) or (isinstance(entry, np.ndarray) and entry.dtype.kind in "iu"):
            place = int(entry)
            if not -length <= place < length:
                raise Error(f"the index {place} is out of range for an axis of length {length}")
            pattern.append(place % length)
        else:
            raise Error(f"an index is a whole number, a slice or an array of whole numbers, and not {entry!r:.60}")
        axis += 1
    return tuple(pattern), tuple(holes)


def _whole_array(pattern: Pattern, shape: Shape) -> bool:
    return len(pattern) == len(shape) and all(
        isinstance(e, Slice) and e == Slice(0, n, 1) for e, n in zip(pattern, shape, strict=True)
    )


def item(x: Any, index: Any) -> Any:
    """`x[index]` for a node.

    >>> from dynagrad.ir.node import fresh
    >>> from dynagrad.ir.types import arrays, integer, real
    >>> x, i = fresh(arrays(real, (4, 5))), fresh(integer)
    >>> item(x, i).shape, item(x, (slice(None, None, 2), i)).shape
    ((5,), (2,))
    """
    pattern, holes = pattern_of(x.shape, index)
    if _whole_array(pattern, x.shape):
        return x
    return apply(reading(pattern, len(holes)), x, *holes)


def at_add(x: Any, index: Any, z: Any) -> Any:
    """`x` with `z` added at the index."""
    pattern, holes = pattern_of(x.shape, index)
    return apply(adding(pattern, len(holes)), x, z, *holes)


def at_set(x: Any, index: Any, z: Any) -> Any:
    """`x` with `z` written at the index."""
    pattern, holes = pattern_of(x.shape, index)
    return apply(setting(pattern, len(holes)), x, z, *holes)
