"""The storage of mutable arrays: a record of what was written to each element, and the number gathered from it.

An array and its views share a `Storage`. Until a number with derivatives is written, it holds a plain numpy array, and
after that an array of records, one for each element: its value, and which element of which written number it is. numpy
views of the records are views of the array, so indices of every kind, and overlapping writes, behave as in numpy. An
element that was overwritten is no part of the gathered number, so its adjoint is exactly zero, even where a partial
derivative is infinite.

The arrays that users see are in `arrays.py`.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import Error
from ..kinds import as_element, fresh, real_part, shape_of
from ..numbers import Number
from ..numpy.functions import FUNCTIONS, item_of
from ..perturbations import is_sealed, place

RECORD = np.dtype([("value", np.float64), ("number", np.int64)])
"""An element: its value, and its serial number among the elements of written numbers (`Storage`), 0 if plain."""

_SPARE = 256  # overwritten elements from which on `Storage` looks for numbers to drop


class View:
    """How an array is a view of another: the view it was made from, and the numpy function that makes it.

    The view of a storage's content is computed once for each content, from that of the earlier view, so a chain of
    views takes linear time.
    """

    __slots__ = ("earlier", "laid_out", "now", "step", "whole")

    def __init__(self, earlier: View | None, step: Callable[[Any], Any]) -> None:
        self.earlier, self.step = earlier, step
        self.whole: Any = None
        self.now: Any = None
        self.laid_out: Any = None

    def of(self, whole: Any) -> Any:
        """The view of the content of a storage."""
        late, view = [], self
        while view.whole is not whole:
            late.append(view)
            if view.earlier is None:
                break
            view = view.earlier
        found = whole if late and late[-1].earlier is None else view.now
        for view in reversed(late):
            found = view.step(found)
            view.whole, view.now = whole, found
        return found

    def layout(self, shape: tuple[int, ...]) -> Any:
        """The view of an empty array of this shape: numpy decides by memory layout whether a reshape is a view."""
        late, view = [], self
        while view.laid_out is None:
            late.append(view)
            if view.earlier is None:
                break
            view = view.earlier
        found = np.empty(shape) if late and late[-1].earlier is None else view.laid_out
        for view in reversed(late):
            found = view.laid_out = view.step(found)
        return found


class Storage:
    """What an array and its views share: the elements, and the numbers that were written to them.

    `content` is an array of floats, an array of records, or one number that nothing was written to yet. Elements of
    written numbers are counted from 1, and those of the k-th number start at `starts[k]`. `version` counts writes, and
    `made` is the serial number of this storage (`numbers.fresh`).
    """

    __slots__ = ("__weakref__", "content", "count", "made", "next_forget", "starts", "version", "written")

    def __init__(self, content: Any, written: Sequence[Any] = (), starts: Sequence[int] = (), count: int = 1) -> None:
        self.content = content
        self.written, self.starts, self.count = list(written), list(starts), count
        self.version, self.next_forget, self.made = 0, 0, fresh()

    @property
    def is_number(self) -> bool:
        return isinstance(self.content, Number)

    @property
    def has_records(self) -> bool:
        return type(self.content) is np.ndarray and self.content.dtype is RECORD

    def check(self) -> None:
        """Before a write: raises Error inside of a step that will be recomputed (`eager/verbs/checkpoint.py`)."""
        if is_sealed(self.made):
            raise Error(
                "checkpoint: the step writes to an array from outside, and the reverse pass would do so again whenever "
                "it recomputes a step; make the array part of the state, and return a changed copy: a = a.copy(), "
                f"a[i] = x, return a{place()}"
            )

    def keep_records(self) -> None:
        """Converts the content to records, so that numbers can be written."""
        if self.has_records:
            return
        whole = self.content
        value = real_part(whole)
        records = np.zeros_like(value, dtype=RECORD)
        records["value"] = value
        self.content = records
        if isinstance(whole, Number):
            records["number"] = self.enter(whole)

    def enter(self, number: Any) -> Any:
        """Adds a written number; the serial numbers of its elements."""
        shape = shape_of(number)
        first, size = self.count, int(np.prod(shape, dtype=np.int64))
        self.written.append(number)
        self.starts.append(first)
        self.count += size
        return np.arange(first, first + size).reshape(shape)

    def forget(self) -> None:
        """Drops written numbers of which no element is left, when much was overwritten; amortised, since numbers with a
        single element left are kept."""
        if self.count < max(self.next_forget, 4 * self.content.size + _SPARE):
            return
        numbers = self.content["number"]
        at = numbers != 0
        which = np.searchsorted(self.starts, numbers[at], side="right") - 1
        offsets = numbers[at] - np.asarray(self.starts, dtype=np.int64)[which]
        kept, renamed = np.unique(which, return_inverse=True)
        before = self.written
        self.written, self.starts, self.count = [], [], 1
        for k in kept.tolist():
            self.enter(before[k])
        numbers[at] = np.asarray(self.starts, dtype=np.int64)[renamed] + offsets
        self.next_forget = 2 * self.count


def copied(found: Any, memory: Storage) -> Storage:
    """The storage of a new array made from elements of another."""
    if found.dtype is not RECORD and found.dtype != RECORD:
        return Storage(found)
    return Storage(
        found if found.dtype is RECORD else found.astype(RECORD), memory.written, memory.starts, memory.count
    )


def element_of(found: Any, memory: Storage) -> Any:
    """The value of a single element, a float or a record."""
    if not memory.has_records:
        return np.float64(found)
    number = int(found["number"])
    if not number:
        return np.float64(found["value"])
    k = bisect.bisect_right(memory.starts, number) - 1
    source = memory.written[k]
    shape = shape_of(source)
    if not shape:
        return as_element(source)
    return item_of(source, tuple(int(i) for i in np.unravel_index(number - memory.starts[k], shape)))


def gathered(mine: Any, memory: Storage) -> Any:
    """The number with derivatives whose elements are these records."""
    shape, numbers = mine.shape, mine["number"].ravel()
    at = numbers != 0
    if not at.any():
        return mine["value"].copy()
    starts = np.asarray(memory.starts, dtype=np.int64)
    which = np.where(at, np.searchsorted(starts, numbers, side="right") - 1, -1)
    runs = np.flatnonzero((np.diff(which) != 0) | ((np.diff(numbers) != 1) & at[1:])) + 1
    joined = _of_runs if len(runs) < _RUNS else _of_elements
    return FUNCTIONS[np.reshape](joined(mine["value"].ravel(), numbers, which, starts, runs, memory), shape)


_RUNS = 32  # the most runs of consecutive elements that are joined; more are gathered element by element


def _of_runs(values: Any, numbers: Any, which: Any, starts: Any, runs: Any, memory: Storage) -> Any:
    """Joins runs of consecutive elements: slices of written numbers, and plain elements between them."""
    parts = []
    for first, end in itertools.pairwise([0, *runs.tolist(), len(numbers)]):
        k = int(which[first])
        if k < 0:
            parts.append(values[first:end].copy())
            continue
        whole = FUNCTIONS[np.reshape](memory.written[k], (-1,))
        begin = int(numbers[first] - starts[k])
        all_of_it = end - first == shape_of(whole)[0]
        parts.append(whole if all_of_it else item_of(whole, slice(begin, begin + end - first)))
    return parts[0] if len(parts) == 1 else FUNCTIONS[np.concatenate](parts)


def _of_elements(values: Any, numbers: Any, which: Any, starts: Any, runs: Any, memory: Storage) -> Any:
    """Gathers single elements, by an index into all written numbers joined, scalars first."""
    at = which >= 0
    used = np.unique(which[at]).tolist()
    base = np.zeros(len(starts), dtype=np.int64)
    single = [k for k in used if not shape_of(memory.written[k])]
    parts, length = [], len(single)
    if single:
        base[single] = np.arange(length)
        parts.append(FUNCTIONS[np.stack]([memory.written[k] for k in single]))
    for k in used:
        source = memory.written[k]
        if shape_of(source):
            base[k] = length
            length += int(np.prod(shape_of(source), dtype=np.int64))
            parts.append(FUNCTIONS[np.ravel](source))
    places = np.empty(len(numbers), dtype=np.intp)
    places[at] = base[which[at]] + numbers[at] - starts[which[at]]
    if not at.all():
        parts.append(values[~at])
        places[~at] = length + np.arange(int((~at).sum()))
        length += len(parts[-1])
    whole = parts[0] if len(parts) == 1 else FUNCTIONS[np.concatenate](parts)
    return whole if length == len(places) and np.array_equal(places, np.arange(length)) else item_of(whole, places)
