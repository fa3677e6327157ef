"""Where arrays are kept: room in the frame of a function, given out and taken back as the code is written.

All shapes are known, so every array of a function has its place in one frame, and arrays that do not live at the same
time share it. A `Memory` is what one or several arrays of the graph are kept in, one after the other: what is written
over an array that nobody looks at any more takes its memory over. No text of C++ is written here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...graph.types import Type

_LINE = 64  # bytes: arrays begin at multiples, and threads do not share what is between
BYTES = {"real": 8, "integer": 8, "boolean": 1}


def bytes_of(type: Type) -> int:
    return type.size * BYTES[type.kind]


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
    loose: bool = False  # whether only the running code knows which of several places it is


class Arena:
    """The frame of a function."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int]] = []  # in order
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
        start = 0
        at = len(self.taken)
        for k, (begin, end) in enumerate(self.taken):
            if begin - start >= size:
                at = k
                break
            start = end
        place = (start, start + size)
        self.taken.insert(at, place)
        self.most = max(self.most, place[1])
        return place

    def take_apart(self, size: int) -> tuple[int, int]:
        """A place that nothing has been in so far."""
        place = (self.most, self.most + -(-size // _LINE) * _LINE)
        self.taken.append(place)
        self.most = place[1]
        return place

    def give(self, place: tuple[int, int]) -> None:
        self.taken.remove(place)
