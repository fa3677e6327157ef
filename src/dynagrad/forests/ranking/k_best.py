"""The derivations of a forest from the best on: `best`, and `KBest`, which finds the next one when it is asked for.

Derivations of weight zero come last. Among them all weights are equal, so that they are ranked by size alone; since a
product of zero tells nothing of its factors, they are ranked in a forest of their own, which has each item up to three
times: for its derivations with a zero, without one, and for all.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from ...arguments import whole_number, yes_or_no
from ...calls import maker
from ...errors import Error, NotConverged, RoomError, counted, shown, warn
from ...runtime.library import Stop
from ..algebra import Kind, check_order
from ..derivation import Derivation, make_derivation
from ..native import Held, Walk, unbounded
from ..packed import Packed
from ..time_limit import look, stop_after
from .user import UserRanking
from .winner import winner

MOST_INSTANCES = 10_000_000
"""The most instances of one derivation that is written out: one that shares much can be larger than any memory."""

MOST_LOOKED_AT, MOST_STEPS = 100_000, 1_000_000
"""How many derivations, with how many steps together, `simple=True` and `distinct` look at for the next one, before
they give up: behind a cycle that costs nothing they get longer without end."""

Key = Callable[[Derivation], Hashable]

DISTINCT: dict[str, Key] = {
    "yield": lambda d: tuple(d.facts()),
    "tree": lambda d: tuple((len(s.antecedents), s.depth) for s in d.steps),
}
"""What `distinct` may name: the facts at the leaves, and the tree without its labels."""

Clock = Callable[[], Stop | None]
"""What stops the search for the derivation that is asked for now."""


def best(forest: Packed, stop: Stop | None = None) -> Derivation:
    """The best derivation of the root. Raises where there is none."""
    if forest.meaning.algebra.name == "plain":
        return winner(forest, stop)
    return next(ranking(forest, lambda: stop))


class KBest(Iterator[Derivation]):
    """The derivations of an item from the best on, found as they are asked for.

    `complete` says whether the last one was given. `next(k_best)` raises StopIteration after k of them, or the last.
    One that was interrupted, or that met its limit on time, goes on when it is asked again.
    """

    def __init__(
        self,
        forest: Packed,
        k: int | None,
        *,
        simple: bool = False,
        distinct: str | Key | None = None,
        timeout: float | None = None,
    ) -> None:
        k = None if k is None else whole_number("k", k, 1)
        if isinstance(distinct, str) and distinct not in DISTINCT:
            raise Error(f"distinct is 'yield', 'tree' or a function of a derivation, and {shown(distinct)} is none")
        if distinct is not None and not isinstance(distinct, str) and not callable(distinct):
            raise Error(f"distinct is 'yield', 'tree' or a function of a derivation, and {shown(distinct)} is none")
        self._k, self._given = k, 0
        self._item = forest.text(0)
        self.complete = False
        self._timeout, self._stop = timeout, stop_after(timeout)

        def clock() -> Stop | None:
            return self._stop

        found = ranking(forest, clock)
        if yes_or_no("simple", simple):
            found = _Filtered(found, partial(_is_simple, forest), "repeat an item on their own path", clock)
        if distinct is not None:
            found = _distinct(found, DISTINCT[distinct] if isinstance(distinct, str) else distinct, clock)
        self._found = found

    def __iter__(self) -> KBest:
        return self

    def __next__(self) -> Derivation:
        if self._given == self._k:
            raise StopIteration
        self._stop = stop_after(self._timeout)
        found = next(self._found, None)
        if found is None:
            if self._k is not None and not self.complete:
                warn(f"{self._item} has {counted(self._given, 'derivation')} in all; you asked for {self._k:,}")
            self.complete = True
            raise StopIteration
        self._given += 1
        return found

    def __repr__(self) -> str:
        return f"<KBest of {self._item}: {self._given:,} given{', which are all' if self.complete else ''}>"


make_kbest = maker(KBest, "the k best come from chart.kbest(item, k)")


def _is_simple(forest: Packed, derivation: Derivation) -> bool:
    """Whether no item is derived from itself. One that only has to be derived, under `SIDE`, is not derived there."""
    owners = forest.arrays.owner
    path: list[int] = []
    left: list[int] = []  # how many antecedents of each are still to come
    above: set[int] = set()
    for instance in derivation.instances:
        while left and not left[-1]:
            left.pop()
            above.remove(path.pop())
        node = int(owners[instance])
        if node in above:
            return False
        if left:
            left[-1] -= 1
        path.append(node)
        left.append(sum(n >= 0 for n in forest.antecedents(instance)))
        above.add(node)
    return True


# What follows are iterators and no generators: a generator that raised, because of a limit on time or of Ctrl-C, has
# ended, and these go on when they are asked again.


class _Filtered(Iterator[Derivation]):
    """The derivations that a function keeps."""

    def __init__(
        self, found: Iterator[Derivation], keeps: Callable[[Derivation], bool], what: str, clock: Clock
    ) -> None:
        self._found, self._keeps, self._what, self._clock = found, keeps, what, clock
        self._held: Derivation | None = None
        self._passed = self._steps = 0

    def __next__(self) -> Derivation:
        while True:
            look(self._clock())
            if self._held is None:
                self._held = next(self._found)
            derivation, kept = self._held, self._keeps(self._held)
            self._held = None
            if kept:
                self._passed = self._steps = 0
                return derivation
            self._passed += 1
            self._steps += len(derivation)
            if self._passed >= MOST_LOOKED_AT or self._steps >= MOST_STEPS:
                raise NotConverged(
                    f"{counted(self._passed, 'derivation')} were looked at in turn, and all {self._what}"
                )


def _distinct(found: Iterator[Derivation], key: Key, clock: Clock) -> Iterator[Derivation]:
    seen: set[Hashable] = set()

    def fresh(derivation: Derivation) -> bool:
        k = key(derivation)
        try:
            known = k in seen
        except TypeError:
            raise Error(f"a result of distinct must be hashable, and {shown(k)} is not") from None
        seen.add(k)
        return not known

    return _Filtered(found, fresh, "have the key of one before", clock)


# -- all of them, the best first ---------------------------------------------------------------------------------------


def ranking(forest: Packed, clock: Clock) -> Iterator[Derivation]:
    """All derivations of the root, the best first. Raises where they have no order."""
    algebra = forest.meaning.algebra
    check_order(algebra)
    if algebra.kind is None:
        return UserRanking(forest, clock)
    walk = forest.walk()
    return chain(Ranked(forest, walk, clock), _Zeros(forest, walk, clock))


class Ranked(Iterator[Derivation]):
    """The derivations that a walk ranks; `originals` has the instances of the forest that those of the walk are."""

    def __init__(self, forest: Packed, walk: Walk, clock: Clock, originals: Any = None) -> None:
        self._forest, self._walk, self._clock, self._originals = forest, walk, clock, originals
        self._given = 0

    def __next__(self) -> Derivation:
        forest, walk, originals, stop = self._forest, self._walk, self._originals, self._clock()
        worst = walk.best(stop)
        if worst is not None:
            raise unbounded(forest.text(worst if originals is None else 0))
        if not walk.need(self._given, stop):
            raise StopIteration
        found = walk.derivation(self._given, MOST_INSTANCES, stop)
        if found is None:
            raise RoomError(f"this derivation has more than {MOST_INSTANCES:,} instances")
        instances, m, e, _ = found
        if originals is not None:
            instances = originals[instances]
            weight = product_of(forest, instances)
        else:
            weight = weight_of(forest, instances, m, e)
        self._given += 1
        return make_derivation(forest, instances, weight)


def weight_of(forest: Packed, instances: Any, m: float, e: int) -> Any:
    """The weight of a derivation, from what native code made of it where that is all of it."""
    algebra = forest.meaning.algebra
    if algebra.name == "real":
        return math.ldexp(m, e) if -1100 < e < 1025 else 0.0 if e < 0 else math.inf
    if algebra.kind is Kind.SUMS and abs(m) < _LARGEST:  # which a sum that overflows has become
        return m if algebra.name != "tropical" else -m if m else 0.0
    return product_of(forest, instances)


_LARGEST = sys.float_info.max


def product_of(forest: Packed, instances: Any) -> Any:
    """The product of the weights of instances, in the semiring's scale."""
    algebra = forest.meaning.algebra
    if algebra.times is None:
        return None
    return algebra.product([forest.own_weight(int(i)) for i in instances], forest.text(0))


WITHOUT, WITH, ALL = range(3)


class _Zeros(Iterator[Derivation]):
    """The derivations of weight zero, by size."""

    def __init__(self, forest: Packed, walk: Walk, clock: Clock) -> None:
        self._forest, self._walk, self._clock = forest, walk, clock
        self._found: Iterator[Derivation] | None = None

    def __next__(self) -> Derivation:
        if self._found is None:
            self._found = _zeros(self._forest, self._walk, self._clock)
        return next(self._found)


def _zeros(forest: Packed, walk: Walk, clock: Clock) -> Iterator[Derivation]:
    """The derivations of weight zero, ranked by size in a forest of their own."""
    a, kind = forest.arrays, Kind(walk.view.kind)
    constant, given = walk.held.constant, walk.held.given
    nothing = -np.inf if kind is Kind.SUMS else 0.0
    own = np.where(a.rule < 0, np.append(given, 1.0)[-1 - np.minimum(a.rule, -1)], constant[np.maximum(a.rule, 0)])
    zero = own == nothing
    if not zero.any():
        return iter(())
    begin, end = np.zeros(3 * len(a.begin), np.uint32), np.zeros(3 * len(a.begin), np.uint32)
    rule: list[int] = []
    first: list[int] = []
    antecedent: list[int] = []
    originals: list[int] = []

    def add(instance: int, nodes: list[int]) -> None:
        rule.append(int(a.rule[instance]))
        first.append(len(antecedent))
        antecedent.extend(nodes)
        originals.append(instance)

    for v in np.flatnonzero(a.end > a.begin).tolist():
        look(clock())
        for kind_of in (WITHOUT, WITH, ALL):
            begin[3 * v + kind_of] = len(rule)
            for i in range(int(a.begin[v]), int(a.end[v])):
                below = forest.antecedents(i)
                every = [3 * u + ALL if u >= 0 else ~(3 * ~u + ALL) for u in below]
                if kind_of == ALL or (kind_of == WITH and zero[i]):
                    add(i, every)
                elif kind_of == WITHOUT and not zero[i]:
                    add(i, [u if u < 0 else u - ALL + WITHOUT for u in every])
                elif kind_of == WITH:
                    for place in (p for p, u in enumerate(below) if u >= 0):
                        left = [u if u < 0 else u - ALL + WITHOUT for u in every[:place]]
                        add(i, [*left, every[place] - ALL + WITH, *every[place + 1 :]])
            end[3 * v + kind_of] = len(rule)
    held = Held(
        begin,
        end,
        np.array(rule, np.int32),
        np.array([*first, len(antecedent)], np.uint32),
        np.array(antecedent, np.int32),
        np.ones_like(constant),
        np.ones_like(given),
    )
    originals_of = np.array(originals, np.int64)
    again = Walk(int(Kind.SIZES), WITH, held, lambda: np.repeat(forest.meaning.rank(), 3))
    return Ranked(forest, again, clock, originals_of)
