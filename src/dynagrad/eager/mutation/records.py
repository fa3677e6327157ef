"""What was written into arrays, element by element, and the number that is made of it.

An array and its views share a `Storage`. As long as no number with derivatives was written, it holds numpy's own array.
After that it holds an array of records, one for each element: its value, and which element of which written number it
is. Views of numpy on the records are views of the array, so that indices of every kind, and writes that overlap, do
what they do in numpy. An element that was written over is not part of the number, so that its adjoint is exactly zero,
even where its slope is infinite.

The arrays that users see are in `arrays.py`; nothing here knows of them.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import Error
from ..numbers import Number, as_element, fresh, real_part, shape_of
from ..numpy.functions import FUNCTIONS, item_of
from ..perturbations import is_sealed, place

RECORD = np.dtype([("value", np.float64), ("number", np.int64)])
"""An element: its value, and the number of what was written there in `Storage`, or 0 for a plain one."""

_SPARE = 256  # elements that were written over, before `Storage` looks for what can be forgotten


class View:
    """How an array is a view of another one: what it is a view of, and the function of numpy that makes it of that.

    What a view is of the elements of its memory is found once for each state of these, from the view that it was made
    of, so that a long chain of views takes time in proportion.
    """

    __slots__ = ("earlier", "laid_out", "now", "step", "whole")

    def __init__(self, earlier: View | None, step: Callable[[Any], Any]) -> None:
        self.earlier, self.step = earlier, step
        self.whole: Any = None
        self.now: Any = None
        self.laid_out: Any = None

    def of(self, whole: Any) -> Any:
        """The view of the elements of a memory."""
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
        """The same of an array that nobody reads: as it lies in memory decides what is a view."""
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
    """What an array and its views have in common: the elements, and the numbers that were written into them.

    `content` is an array of floats, or of records, or one number that nothing was written into yet. Elements of written
    numbers are counted from 1, and the k-th number begins at `starts[k]`. `version` counts the writes, and `made` says
    when this memory was, among the numbers of `fresh`.
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
        """Before a write: raises Error where what writes is run again later (`eager/verbs/checkpoint.py`)."""
        if is_sealed(self.made):
            raise Error(
                "checkpoint: the step writes into an array from outside of it, and the reverse pass would write there "
                "again whenever it computes a step again; make the array part of the state, and return a changed copy "
                f"of it: a = a.copy(), a[i] = x, return a{place()}"
            )

    def keep_records(self) -> None:
        """From now on, elements may be those of written numbers."""
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
        """Makes a number one of the written ones; these are the numbers of its elements."""
        shape = shape_of(number)
        first, size = self.count, int(np.prod(shape, dtype=np.int64))
        self.written.append(number)
        self.starts.append(first)
        self.count += size
        return np.arange(first, first + size).reshape(shape)

    def forget(self) -> None:
        """Drops the numbers that were written over, when there are many. One of which an element is left stays whole;
        so the next look is when as much has been written again."""
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
    """The memory of an array that was made of elements of another one's."""
    if found.dtype is not RECORD and found.dtype != RECORD:
        return Storage(found)
    return Storage(
        found if found.dtype is RECORD else found.astype(RECORD), memory.written, memory.starts, memory.count
    )


def element_of(found: Any, memory: Storage) -> Any:
    """A single element, of floats or of records."""
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
    """The number whose elements are these records."""
    shape, numbers = mine.shape, mine["number"].ravel()
    at = numbers != 0
    if not at.any():
        return mine["value"].copy()
    starts = np.asarray(memory.starts, dtype=np.int64)
    which = np.where(at, np.searchsorted(starts, numbers, side="right") - 1, -1)
    runs = np.flatnonzero((np.diff(which) != 0) | ((np.diff(numbers) != 1) & at[1:])) + 1
    joined = _of_runs if len(runs) < _RUNS else _of_elements
    return FUNCTIONS[np.reshape](joined(mine["value"].ravel(), numbers, which, starts, runs, memory), shape)


_RUNS = 32  # pieces that an array is joined of; of more, element by element


def _of_runs(values: Any, numbers: Any, which: Any, starts: Any, runs: Any, memory: Storage) -> Any:
    """From pieces of written numbers, each as it was written, and plain ones between them."""
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
    """From all written numbers side by side, the single ones first, and of these, what is where."""
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
