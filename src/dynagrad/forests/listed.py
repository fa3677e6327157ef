"""Sequences whose elements are made as they are looked at: items, instances, draws.

Nothing here knows forests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, overload

from ..arguments import whole_number
from ..errors import PlaceError

T = TypeVar("T")


class Listed(Sequence[T]):
    """A sequence of so many, each made as it is looked at."""

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        if isinstance(at, slice):
            first, last, step = (
                None if n is None else whole_number("an index", n) for n in (at.start, at.stop, at.step)
            )
            if step == 0:
                raise PlaceError("the step of a slice is not 0")
            return [self._make(n) for n in range(*slice(first, last, step).indices(self._count))]
        index = whole_number("an index", at)
        n = index + self._count if index < 0 else index
        if not 0 <= n < self._count:
            raise PlaceError(f"there are {self._count:,} of them, and none at {index}")
        return self._make(n)

    def __contains__(self, thing: object) -> bool:
        return any(type(thing) is type(x) and thing == x for x in self)

    def __repr__(self) -> str:
        shown = ", ".join(str(x) for x in self[:3])
        return f"[{shown}{', ...' if len(self) > 3 else ''}]"
