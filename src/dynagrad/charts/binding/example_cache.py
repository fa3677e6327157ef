"""A cache of examples whose facts stay loaded from batch to batch, within a limit on memory.

A program that is run on the same examples again and again, each time with other values of the facts that they share,
encodes and loads the facts of each once. An example is identified by its objects, not by their content, so they must
not change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ...forks import cached
from .groups import Group, LoadedExample, groups, joined
from .linear_examples import LinearExamples, joined_linear, linear_examples

MOST_BYTES = 1 << 28
"""About how many bytes are kept: of facts, and of functions of examples with their plans."""
EXAMPLE_BYTES, ROW_BYTES = 8192, 64
"""About what an example takes, and what each of its facts adds."""
MOST_GROUPED = 4
"""Kept groups hold at most this many times the number of kept examples: data may come in ever new orders."""
BRIEF = 1e-3
"""Seconds of native work in a batch up to which to start threads takes longer than they save."""
MOST_MADE = 32
"""Results are kept of lists that together hold at most this many times the number of kept examples."""

T = TypeVar("T")
Name = tuple[Any, ...]
"""The objects that identify an example: by identity, not by equality."""
Key = tuple[int, ...]
"""The key of an example in the cache: the kind of run, and the ids of its name."""


class BatchKeys(tuple[Key, ...]):
    """The keys of the examples of a batch, whose hash is computed once: they are looked up in each pass."""

    @cached
    def _hash(self) -> int:
        return super().__hash__()

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, eq=False)
class Arranged:
    """A stretch of consecutive examples of a batch: those that native code runs, and those that need not be run."""

    groups: Sequence[Group]
    linear: LinearExamples

    def __bool__(self) -> bool:
        return bool(self.groups) or len(self.linear.places) > 0


def arranged(examples: Sequence[LoadedExample | None]) -> Arranged:
    """Examples sorted into those to run, in groups of one class, and counted ones; without those that are None."""
    counted = {n: e.counts for n, e in enumerate(examples) if e is not None and e.counts is not None}
    run = [None if n in counted else e for n, e in enumerate(examples)]
    return Arranged(groups(run), linear_examples(list(counted), list(counted.values())))


def _as_one(parts: Sequence[Arranged], size: int) -> Arranged | None:
    """Stretches of `size` examples as one; None where one has several groups, or groups do not go together."""
    if any(len(part.groups) > 1 for part in parts):
        return None
    begins = [size * n for n in range(len(parts))]
    run = [(begin, part.groups[0]) for begin, part in zip(begins, parts, strict=True) if part.groups]
    group = joined(run) if run else None
    if run and group is None:
        return None
    linear = joined_linear([(begin, part.linear) for begin, part in zip(begins, parts, strict=True)])
    return Arranged([] if group is None else [group], linear)


class ExampleCache:
    """The loaded facts of examples. The first ones stay; once the room is taken, others come and go."""

    def __init__(self, room: int = MOST_BYTES) -> None:
        self._room = room
        # with the name: while it is held, no other object has its id
        self._held: dict[Key, tuple[Name, LoadedExample]] = {}
        self._groups: dict[tuple[Key, ...], Arranged] = {}
        self._wholes: dict[tuple[Key, ...], Arranged | None] = {}
        self._kinds: dict[Hashable, int] = {}
        self._made_of = 0
        self._made: dict[tuple[int, Hashable], tuple[Sequence[Any], Any]] = {}
        self._grouped = 0
        self._seconds: dict[Hashable, tuple[int, float]] = {}
        self._functions: dict[tuple[int, ...], tuple[Name, Any]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def keys_of(self, names: Sequence[Name], how: Hashable) -> BatchKeys:
        """The keys of examples that are run in this way."""
        kind = self._kinds.setdefault(how, len(self._kinds))
        return BatchKeys((kind, *map(id, name)) for name in names)

    def get(self, key: Key) -> LoadedExample | None:
        """The loaded facts of an example, if they are kept."""
        found = self._held.get(key)
        return None if found is None else found[1]

    def put(self, key: Key, name: Name, example: LoadedExample) -> None:
        """Keeps the loaded facts of an example, in place of earlier ones, if there is room."""
        size = EXAMPLE_BYTES + ROW_BYTES * example.run.rows
        if key in self._held:
            self._room += EXAMPLE_BYTES + ROW_BYTES * self._held.pop(key)[1].run.rows
            self._forget_groups()
        if size <= self._room:
            self._room -= size
            self._held[key] = name, example

    def memoised(self, name: Name, what: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """The result of `make` for an example; it is kept if there is room for so many bytes."""
        key = self._kinds.setdefault(what, len(self._kinds)), *map(id, name)
        found = self._functions.get(key)
        if found is not None:
            kept: T = found[1]
            return kept
        made = make()
        taken = size(made)
        if taken <= self._room:
            self._room -= taken
            self._functions[key] = name, made
        return made

    def groups(self, keys: tuple[Key, ...]) -> Arranged | None:
        """The groups of these examples, if they were put together before and are kept."""
        return self._groups.get(keys)

    def put_groups(self, keys: tuple[Key, ...], made: Arranged) -> None:
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

    def whole(self, keys: tuple[Key, ...], size: int) -> Arranged | None:
        """All examples in at most one group, if the groups of each stretch of `size` are kept, and go together.

        Native code sums that group in parts of `size`, too, so that sums are the same to the bit. Therefore stretches
        of which some examples are run, and some are not, do not go together.
        """
        found = self._wholes.get(keys, ())
        if found == ():
            parts = [self._groups.get(keys[begin : begin + size]) for begin in range(0, len(keys), size)]
            there = [part for part in parts if part]
            if len(there) < len(parts):
                return None  # not yet
            one = len(set(keys)) == len(keys) and not any(part.groups and len(part.linear.places) for part in there)
            found = self._wholes[keys] = _as_one(there, size) if one else None
        return found or None

    def note_seconds(self, how: Hashable, count: int, seconds: float) -> None:
        """Notes how long native code worked at so many examples that are run in this way; infinity for those that it
        does not run."""
        before, spent = self._seconds.get(how, (0, 0.0))
        # What threads do not see of each other makes no difference.
        self._seconds[how] = before + count, spent + seconds

    def mean_seconds(self, how: Hashable) -> float:
        """The mean of these seconds for an example; infinite before the first."""
        count, seconds = self._seconds.get(how, (0, 0.0))
        return seconds / count if count else float("inf")

    def made(self, of: Sequence[Any], what: Hashable, make: Callable[[], T]) -> T:
        """The result of `make` for a list of examples, kept as long as it is this very list, which must not change."""
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
        """From now on these examples are not one group."""
        self._wholes[keys] = None


class CachedBatch:
    """The cached examples of one batch, each handed out once: two runs cannot share a world.

    `how` is the kind of run, a part of the key of each example; it is compared by equality.
    """

    def __init__(
        self,
        cache: ExampleCache,
        names: Sequence[Name],
        how: Hashable = None,
        of: Sequence[Any] | None = None,
        linear: bool = False,
    ) -> None:
        """If the names are those of the elements of a list `of`, their keys are kept as long as it is this very list.

        With `linear`, examples whose goal has one derivation are counted, and need not be run (`linear_examples.py`).
        """
        self.linear = linear
        self._how = how = how, linear
        self._cache, self._names = cache, names
        self._keys: BatchKeys = (
            cache.keys_of(names, how) if of is None else cache.made(of, how, lambda: cache.keys_of(names, how))
        )
        self._taken: set[Key] = set()
        self._mine: set[int] = set()

    def take(self, n: int) -> LoadedExample | None:
        """The loaded facts of an example, if they are kept, and no other run of this batch has them."""
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

    def take_groups(self, begin: int, end: int) -> Arranged | None:
        """The kept groups of some examples, unless a run of this batch has one of these."""
        keys = self._keys[begin:end]
        found = self._cache.groups(keys)
        if found is None or not self._taken.isdisjoint(keys):
            return None
        self._taken.update(keys)
        return found

    def whole(self, size: int) -> Arranged | None:
        """All examples in one group, as `ExampleCache.whole` says, unless a run of this batch has one of them."""
        return None if self._taken else self._cache.whole(self._keys, size)

    def note_seconds(self, count: int, seconds: float) -> None:
        """Notes how long so many of the examples took, as `ExampleCache.note_seconds` says."""
        self._cache.note_seconds(self._how, count, seconds)

    def brief(self) -> bool:
        """Whether the batch is worth no threads, by what was noted of others that were run in this way."""
        return len(self._names) * self._cache.mean_seconds(self._how) < BRIEF

    def put_apart(self) -> None:
        """From now on the examples of the batch are not one group."""
        self._cache.put_apart(self._keys)

    def grouped(self, begin: int, end: int, examples: Sequence[LoadedExample | None]) -> Arranged:
        """The groups of some examples; they are kept, if the examples are."""
        made = arranged(examples)
        keys = self._keys[begin:end]
        if all(e is not None and self._cache.get(k) is e for k, e in zip(keys, examples, strict=True)):
            self._cache.put_groups(keys, made)
        return made
