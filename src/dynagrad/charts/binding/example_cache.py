"""A cache of examples whose facts stay loaded from batch to batch, within a limit on memory.

A program that is run on the same examples again and again, each time with other values of the facts that they share,
encodes and loads the facts of each once. Examples are known by the objects that they are: those may not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .loading import LoadedRun

MOST_BYTES = 1 << 28
"""About how many bytes of facts are kept."""
EXAMPLE_BYTES, ROW_BYTES = 8192, 64
"""About what an example takes, and what each of its facts adds."""

Name = tuple[Any, ...]
"""Objects that tell an example from others, by what they are and not by what is in them."""


class ExampleCache:
    """The loaded facts of examples. The first ones stay; once the room is taken, others come and go."""

    def __init__(self, room: int = MOST_BYTES) -> None:
        self._room = room
        self._held: dict[tuple[int, ...], tuple[Name, LoadedRun]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def get(self, name: Name) -> LoadedRun | None:
        """What is kept of an example."""
        found = self._held.get(tuple(map(id, name)))
        return None if found is None else found[1]

    def put(self, name: Name, loaded: LoadedRun) -> None:
        """Keeps an example in place of what was kept of it, if there is room."""
        key = tuple(map(id, name))
        size = EXAMPLE_BYTES + ROW_BYTES * loaded.rows
        if key in self._held:
            self._room += EXAMPLE_BYTES + ROW_BYTES * self._held.pop(key)[1].rows
        if size <= self._room:
            self._room -= size
            self._held[key] = name, loaded  # the name too: while it is held, no other object has its id


class CachedBatch:
    """The cached examples of one batch, each handed out once: two runs cannot share a world."""

    def __init__(self, cache: ExampleCache, names: Sequence[Name]) -> None:
        self._cache, self._names = cache, names
        self._taken: set[tuple[int, ...]] = set()
        self._mine: set[int] = set()

    def take(self, n: int) -> LoadedRun | None:
        """What is kept of an example, unless a run of this batch has it."""
        key = tuple(map(id, self._names[n]))
        if key in self._taken:
            return None
        self._taken.add(key)
        self._mine.add(n)
        return self._cache.get(self._names[n])

    def put(self, n: int, loaded: LoadedRun | None) -> None:
        """Keeps what an example left, if it left anything."""
        if loaded is not None and n in self._mine:
            self._cache.put(self._names[n], loaded)
