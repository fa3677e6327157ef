"""A cache of examples whose facts stay loaded from batch to batch, within a limit on memory.

A program that is run on the same examples again and again, each time with other values of the facts that they share,
encodes and loads the facts of each once. Examples are known by the objects that they are: those may not change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from .groups import Group, LoadedExample, groups, joined

MOST_BYTES = 1 << 28
"""About how many bytes of facts are kept."""
EXAMPLE_BYTES, ROW_BYTES = 8192, 64
"""About what an example takes, and what each of its facts adds."""
MOST_GROUPED = 4
"""How many times the number of examples may be in the groups that are kept: data may come in ever new orders."""
MOST_MADE = 32
"""How many times the number of examples may be in the lists that something is kept of."""

T = TypeVar("T")
Name = tuple[Any, ...]
"""Objects that tell an example from others, by what they are and not by what is in them."""
Key = tuple[Hashable, ...]


class ExampleCache:
    """The loaded facts of examples. The first ones stay; once the room is taken, others come and go."""

    def __init__(self, room: int = MOST_BYTES) -> None:
        self._room = room
        # with the name: while it is held, no other object has its id
        self._held: dict[Key, tuple[Name, LoadedExample]] = {}
        self._groups: dict[tuple[Key, ...], list[Group]] = {}
        self._wholes: dict[tuple[Key, ...], Group | None] = {}
        self._made_of = 0
        self._made: dict[tuple[int, Hashable], tuple[Sequence[Any], Any]] = {}
        self._grouped = 0

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: Key) -> LoadedExample | None:
        """What is kept of an example."""
        found = self._held.get(key)
        return None if found is None else found[1]

    def put(self, key: Key, name: Name, example: LoadedExample) -> None:
        """Keeps an example in place of what was kept of it, if there is room."""
        size = EXAMPLE_BYTES + ROW_BYTES * example.run.rows
        if key in self._held:
            self._room += EXAMPLE_BYTES + ROW_BYTES * self._held.pop(key)[1].run.rows
            self._forget_groups()
        if size <= self._room:
            self._room -= size
            self._held[key] = name, example

    def groups(self, keys: tuple[Key, ...]) -> list[Group] | None:
        """Examples of which all are kept, in groups as they were put together before."""
        return self._groups.get(keys)

    def put_groups(self, keys: tuple[Key, ...], made: list[Group]) -> None:
        """Keeps groups, if all of their examples are kept."""
        if not all(key in self._held for key in keys):
            return
        self._grouped = self._grouped + len(keys) if self._groups else len(keys)
        if self._grouped > MOST_GROUPED * len(self._held):
            self._forget_groups()
            self._grouped = len(keys)
        self._groups[keys] = made

    def _forget_groups(self) -> None:
        self._groups.clear()
        self._wholes.clear()

    def whole(self, keys: tuple[Key, ...], size: int) -> Group | None:
        """Examples as one group, if those of each stretch of so many are kept as one, and all go together."""
        found = self._wholes.get(keys, ())
        if found == ():
            parts = [self._groups.get(keys[begin : begin + size], []) for begin in range(0, len(keys), size)]
            if not all(parts):
                return None  # not yet
            one = len(set(keys)) == len(keys) and all(len(part) == 1 for part in parts)
            found = self._wholes[keys] = joined([part[0] for part in parts]) if one else None
        return found or None

    def made(self, of: Sequence[Any], what: Hashable, make: Callable[[], T]) -> T:
        """What is made of a list of examples, once for as long as it is this very list, which may not change."""
        found = self._made.get((id(of), what))
        if found is None or found[0] is not of:
            self._made_of += len(of)
            if self._made_of > MOST_MADE * (1 + len(self._held)):
                self._made.clear()
                self._made_of = len(of)
            found = self._made[id(of), what] = of, make()
        made: T = found[1]
        return made

    def put_apart(self, keys: tuple[Key, ...]) -> None:
        """These examples are to be no longer one group."""
        self._wholes[keys] = None


def keys_of(names: Sequence[Name], how: Hashable) -> tuple[Key, ...]:
    """What examples are kept by."""
    return tuple((how, *map(id, name)) for name in names)


class CachedBatch:
    """The cached examples of one batch, each handed out once: two runs cannot share a world.

    `how` is what else tells runs apart, by what it is equal to.
    """

    def __init__(
        self, cache: ExampleCache, names: Sequence[Name], how: Hashable = None, of: Sequence[Any] | None = None
    ) -> None:
        """Where names are those of a list, `of`, their keys are made once while it is the same."""
        self._cache, self._names = cache, names
        self._keys = keys_of(names, how) if of is None else cache.made(of, how, lambda: keys_of(names, how))
        self._taken: set[Key] = set()
        self._mine: set[int] = set()

    def take(self, n: int) -> LoadedExample | None:
        """What is kept of an example, unless a run of this batch has it."""
        key = self._keys[n]
        if key in self._taken:
            return None
        self._taken.add(key)
        self._mine.add(n)
        return self._cache.get(key)

    def put(self, n: int, example: LoadedExample) -> None:
        """Keeps an example."""
        if n in self._mine:
            self._cache.put(self._keys[n], self._names[n], example)

    def take_groups(self, begin: int, end: int) -> list[Group] | None:
        """Examples in groups that are kept, unless a run of this batch has one of them."""
        keys = self._keys[begin:end]
        found = self._cache.groups(keys)
        if found is None or not self._taken.isdisjoint(keys):
            return None
        self._taken.update(keys)
        return found

    def whole(self, size: int) -> Group | None:
        """All examples as one group of stretches of so many, if they are kept, unless this batch runs one of them."""
        return None if self._taken else self._cache.whole(self._keys, size)

    def put_apart(self) -> None:
        """All examples are to be no longer one group."""
        self._cache.put_apart(self._keys)

    def grouped(self, begin: int, end: int, examples: Sequence[LoadedExample | None]) -> list[Group]:
        """Examples in groups, which are kept if these examples are."""
        made = groups(examples)
        keys = self._keys[begin:end]
        if all(e is not None and self._cache.get(k) is e for k, e in zip(keys, examples, strict=True)):
            self._cache.put_groups(keys, made)
        return made
