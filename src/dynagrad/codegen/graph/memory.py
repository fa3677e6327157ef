"""Memory planning: offsets of arrays in the frame of a function, allocated and freed by liveness as code is written.

All shapes are static, so every array of a function has an offset in one frame, and arrays that are not live at the same
time share memory. A `Memory` holds one or several arrays of the graph, one after the other: an update in place takes
over the memory of the array that it overwrites. No C++ is written here.

Offsets are given out step by step as blocks are written, and not by a pass before, because only a loop nest that is
built shows whether it needs memory of its own (partial results of chunks, a view that is not contiguous), and only a
body that is written, in which memory its results are. A pass before would have to build all of that, too.
"""

from __future__ import annotations

import bisect
import heapq
from dataclasses import dataclass, field

_LINE = 64  # bytes of a cache line: the alignment of arrays, so that threads share none


@dataclass(eq=False)
class Shared:
    """Offsets shared by several arrays that swap them at run time; they are freed when the last array is dead."""

    places: list[tuple[int, int]]
    count: int = 0  # the arrays that are live
    within: list[Shared] = field(default_factory=list)  # earlier ones that these arrays came from

    def leave(self) -> list[tuple[int, int]]:
        """Releases one array; the offsets that are free now."""
        self.count -= 1
        return [] if self.count else self.places + [p for other in self.within for p in other.leave()]


@dataclass(frozen=True, eq=False, slots=True)
class LocalVariable:
    """A variable of the generated code, or a literal: a number, a stack, or a pointer to an array.

    What is in the same variable is told by the object, and not by its name, which is only printed.

    >>> a = LocalVariable("a")
    >>> str(a), a == a, a == LocalVariable("a")
    ('a', True, False)
    """

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False)
class Memory:
    """The memory of an array: the pointer to it, whether it may be overwritten, and its offsets in the frame."""

    pointer: LocalVariable
    own: bool
    places: list[tuple[int, int]] = field(default_factory=list)  # begin and end offsets
    until: int = -1  # the last step that reads an array in it
    inside: LocalVariable | None = None  # the pointer to the memory that this is a contiguous part of
    shared: Shared | None = None
    loose: bool = False  # whether its offset is known only at run time


class Live:
    """The live memory of a block, ordered by the last step that reads it."""

    def __init__(self) -> None:
        self._inside: set[Memory] = set()
        self._ends: list[tuple[int, int, Memory]] = []  # a heap; entries that are out of date are put back
        self._number = 0

    def append(self, memory: Memory) -> None:
        """Adds memory; called again where its last step became an earlier one."""
        self._inside.add(memory)
        self._number += 1
        heapq.heappush(self._ends, (memory.until, self._number, memory))

    def ended(self, now: int) -> list[Memory]:
        """Removes and returns the memory that no step after this one reads."""
        found: list[Memory] = []
        while self._ends and self._ends[0][0] <= now:
            _, _, memory = heapq.heappop(self._ends)
            if memory not in self._inside:
                continue
            if memory.until > now:
                self.append(memory)
            else:
                self._inside.remove(memory)
                found.append(memory)
        return found


class Arena:
    """A first-fit allocator of offsets in the frame of a function."""

    def __init__(self) -> None:
        self.gaps: list[tuple[int, int]] = []  # the free list, by offset
        self.top = 0  # the end of the last allocation
        self.most = 0  # the size of the frame

    def take(self, size: int) -> tuple[int, int]:
        """Allocates in the first gap that is large enough, or at the end.

        >>> arena = Arena()
        >>> a, b = arena.take(100), arena.take(8)
        >>> arena.give(a)
        >>> a, b, arena.take(64), arena.most
        ((0, 128), (128, 192), (0, 64), 192)
        """
        size = max(-(-size // _LINE) * _LINE, _LINE)
        for k, (begin, end) in enumerate(self.gaps):
            if end - begin >= size:
                place = (begin, begin + size)
                self.gaps[k : k + 1] = [(place[1], end)] if place[1] < end else []
                return place
        place = (self.top, self.top + size)
        self.top = place[1]
        self.most = max(self.most, self.top)
        return place

    def take_fresh(self, size: int) -> tuple[int, int]:
        """Allocates an offset range that was never used before."""
        place = (self.most, self.most + -(-size // _LINE) * _LINE)
        if self.top < self.most:
            self.gaps.append((self.top, self.most))
        self.top = self.most = place[1]
        return place

    def give(self, place: tuple[int, int]) -> None:
        """Frees an offset range, and merges it with adjacent gaps.

        >>> arena = Arena()
        >>> a, b, c = arena.take(64), arena.take(64), arena.take(64)
        >>> arena.give(a)
        >>> arena.give(b)
        >>> arena.gaps
        [(0, 128)]
        >>> arena.give(c)
        >>> arena.gaps, arena.top
        ([], 0)
        """
        begin, end = place
        at = bisect.bisect(self.gaps, place)
        if at < len(self.gaps) and self.gaps[at][0] == end:
            end = self.gaps.pop(at)[1]
        if at and self.gaps[at - 1][1] == begin:
            at -= 1
            begin = self.gaps.pop(at)[0]
        if end == self.top:
            self.top = begin
        else:
            self.gaps.insert(at, (begin, end))


Value = LocalVariable | Memory
"""Where a value is: a number or stack in a variable; an array in memory."""


@dataclass(frozen=True)
class Track:
    """Where the rounds of a loop push or pop on a stack: at `start + step * counter + offset`."""

    start: LocalVariable
    step: int  # in words; negative where rounds pop
    counter: LocalVariable
    offset: int = 0
