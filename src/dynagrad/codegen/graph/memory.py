"""Where arrays are kept: room in the frame of a function, given out and taken back as the code is written.

All shapes are known, so every array of a function has its place in one frame, and arrays that do not live at the same
time share it. A `Memory` is what one or several arrays of the graph are kept in, one after the other: what is written
over an array that nobody looks at any more takes its memory over. No text of C++ is written here.
"""

from __future__ import annotations

import bisect
import heapq
from dataclasses import dataclass, field

from ...ir.types import Type

_LINE = 64  # bytes: arrays begin at multiples, and threads do not share what is between


@dataclass(eq=False)
class Shared:
    """Places that several arrays are in, and which in which only the running code knows; how many there still are."""

    places: list[tuple[int, int]]
    count: int = 0
    within: list[Shared] = field(default_factory=list)  # what these arrays were in before

    def leave(self) -> list[tuple[int, int]]:
        """One array less; the places that nobody is in any more."""
        self.count -= 1
        return [] if self.count else self.places + [p for other in self.within for p in other.leave()]


@dataclass(eq=False)
class Memory:
    """What an array is kept in: how C++ calls it, whether it may be written over, and its place in the frame."""

    text: str
    own: bool
    places: list[tuple[int, int]] = field(default_factory=list)  # beginnings and ends
    until: int = -1  # the last step that looks at an array in it
    inside: str = ""  # the memory that this is a stretch of
    shared: Shared | None = None
    type: Type | None = None  # of what it was made for
    declared: tuple[list[str], int] | None = None  # the lines of a block, and which of them declares it
    loose: bool = False  # whether only the running code knows which of several places it is


class Live:
    """The memory of a block that is in use, by the step that looks at it for the last time."""

    def __init__(self) -> None:
        self._inside: set[Memory] = set()
        self._ends: list[tuple[int, int, Memory]] = []  # a heap; what is later than it says is put back
        self._number = 0

    def append(self, memory: Memory) -> None:
        """Once more where its last step is an earlier one than was said before."""
        self._inside.add(memory)
        self._number += 1
        heapq.heappush(self._ends, (memory.until, self._number, memory))

    def ended(self, now: int) -> list[Memory]:
        """What no step after this one looks at; it is no longer in use."""
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
    """The frame of a function."""

    def __init__(self) -> None:
        self.gaps: list[tuple[int, int]] = []  # between what is taken, in order
        self.top = 0  # where the last of it ends
        self.most = 0

    def take(self, size: int) -> tuple[int, int]:
        """The first gap that is wide enough.

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

    def take_apart(self, size: int) -> tuple[int, int]:
        """A place that nothing has been in so far."""
        place = (self.most, self.most + -(-size // _LINE) * _LINE)
        if self.top < self.most:
            self.gaps.append((self.top, self.most))
        self.top = self.most = place[1]
        return place

    def give(self, place: tuple[int, int]) -> None:
        """Makes a place a gap, and one with those beside it.

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


Value = str | Memory
"""What a value is called: a number or stack by its name, an array by its memory."""


@dataclass(frozen=True)
class Track:
    """Where the rounds of a loop have their places on a stack: from a pointer on, or down from it."""

    start: str
    step: int
    counter: str = ""
    offset: int = 0

    def text(self, offset: int) -> str:
        sign = "-" if offset < 0 else "+"
        return f"{self.start} + ({self.step} * {self.counter} {sign} {abs(offset)})"
