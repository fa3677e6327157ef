"""The derivations of a forest from the best on in a semiring that a user made, whose arithmetic is Python.

The algorithms are those of `runtime/include/dynagrad/forest/best.hpp` and of
`runtime/include/dynagrad/forest/kbest.hpp`, which say more of them: label correcting for the best derivation of each
item, and Huang and Chiang (2005), algorithm 3, for those after it. Built-in semirings are ranked by native code
(`k_best.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...errors import NotConverged
from ...runtime.library import Stop
from ..derivation import Derivation, make_derivation
from ..native import unbounded
from ..packed import Packed
from ..time_limit import look


@dataclass
class _Found:
    """A derivation of a node: an instance, and which derivation of each antecedent is meant."""

    weight: Any
    size: int
    instance: int
    which: tuple[int, ...]
    last: int = 0


class UserRanking(Iterator[Derivation]):
    """All derivations of the root, the best first."""

    def __init__(self, forest: Packed, clock: Callable[[], Stop | None]) -> None:
        """`clock` gives what stops the search for the next one."""
        algebra = forest.meaning.algebra
        assert algebra.times is not None and algebra.less is not None
        self._forest, self._times, self._less = forest, algebra.times, algebra.less
        self._below: dict[int, list[int]] = {}
        self._clock = clock
        self._rank = forest.meaning.rank().tolist()
        self._given = 0
        self._begin()

    def _begin(self) -> None:
        self._best: dict[int, _Found] = {}
        self._settled = False  # whether these are the best
        self._found: dict[int, list[_Found]] = {}
        self._candidates: dict[int, list[_Found]] = {}
        self._next: dict[int, int] = {}  # of a node, the antecedent that its last derivation waits for; -1: no more

    def _antecedents(self, instance: int) -> list[int]:
        if instance not in self._below:
            self._below[instance] = self._forest.antecedents(instance)
        return self._below[instance]

    def _rate(self, instance: int, which: tuple[int, ...]) -> _Found | None:
        weight, size = self._forest.own_weight(instance), int(self._forest.arrays.rule[instance] >= 0)
        for u, n in zip(self._antecedents(instance), which, strict=True):
            if u < 0:
                continue
            below = self._found[u][n] if n < len(self._found.get(u, ())) else self._best.get(u)
            if below is None:
                return None
            weight, size = self._times(weight, below.weight), size + below.size
        return _Found(weight, size, instance, which)

    def _order(self, a: _Found, b: _Found) -> int:
        """-1 where a comes first."""
        if bool(self._less(b.weight, a.weight)):
            return -1
        if bool(self._less(a.weight, b.weight)):
            return 1
        x, y = self._place(a), self._place(b)
        return -1 if x < y else int(x > y)

    def _place(self, f: _Found) -> tuple[Any, ...]:
        number = int(self._forest.arrays.rule[f.instance])
        order = (0, -1 - number) if number < 0 else (1, number)
        ranks = [self._rank[u if u >= 0 else ~u] for u in self._antecedents(f.instance)]
        return (f.size, order, ranks, f.which)

    def _instances(self, node: int) -> range:
        a = self._forest.arrays
        return range(int(a.begin[node]), int(a.end[node]))

    def _settle(self) -> None:
        """Finds the best derivation of every node."""
        stop = self._clock()
        nodes, begin, _, _ = self._forest.walk().order(stop)
        for c in range(len(begin) - 1):
            members = nodes[int(begin[c]) : int(begin[c + 1])].tolist()
            for round_ in range(len(members) + 3):
                look(stop)
                if not any([self._improve(v) for v in members]):
                    break
                if round_ > len(members) + 1:
                    raise unbounded(self._forest.text(members[0]))

    def _improve(self, node: int) -> bool:
        changed = False
        for instance in self._instances(node):
            found = self._rate(instance, (0,) * len(self._antecedents(instance)))
            known = self._best.get(node)
            if found is not None and (known is None or self._order(found, known) < 0):
                self._best[node] = found
                changed = True
        return changed

    def _ranked(self, node: int) -> list[_Found]:
        if node not in self._found:
            rated = [self._rate(i, (0,) * len(self._antecedents(i))) for i in self._instances(node)]
            self._candidates[node] = [r for r in rated if r is not None]
            self._found[node] = []
        return self._found[node]

    def _need(self, root: int, n: int) -> bool:
        """Whether a node has derivation n; finds those before it."""
        stack: list[tuple[int, int]] = [(root, n)]
        following, stop = self._next, self._clock()
        while stack:
            look(stop)
            node, wanted = stack[-1]
            found = self._ranked(node)
            if len(found) > wanted or following.get(node) == -1:
                stack.pop()
                continue
            waits = False
            if found:
                d = found[-1]
                below = self._antecedents(d.instance)
                for i in range(max(d.last, following.get(node, 0)), len(below)):
                    u = below[i]
                    if u >= 0:
                        nth = d.which[i] + 1
                        if len(self._ranked(u)) <= nth and following.get(u) != -1:
                            following[node] = i
                            stack.append((u, nth))
                            waits = True
                            break
                        if len(self._found[u]) > nth:
                            which = (*d.which[:i], nth, *d.which[i + 1 :])
                            made = self._rate(d.instance, which)
                            assert made is not None
                            made.last = i
                            self._candidates[node].append(made)
                    following[node] = i + 1
            if waits:
                continue
            candidates = self._candidates[node]
            if not candidates:
                following[node] = -1
                continue
            top = min(candidates, key=functools.cmp_to_key(self._order))
            candidates.remove(top)
            found.append(top)
            following[node] = 0
        return len(self._found[root]) > n

    def __next__(self) -> Derivation:
        try:
            found = self._following()
        except NotConverged:  # between two steps
            raise
        except BaseException:
            self._begin()
            raise
        if found is None:
            raise StopIteration
        return found

    def _following(self) -> Derivation | None:
        if not self._settled:
            self._settle()
            self._settled = True
        if not self._need(0, self._given):
            return None
        top = self._found[0][self._given]
        instances: list[int] = []
        stack = [(0, top)]
        while stack:
            _, f = stack.pop()
            instances.append(f.instance)
            pairs = zip(self._antecedents(f.instance), f.which, strict=True)
            below = [(u, self._ranked(u)[n] if n < len(self._ranked(u)) else self._best[u]) for u, n in pairs if u >= 0]
            stack.extend(reversed(below))
        self._given += 1
        return make_derivation(self._forest, instances, top.weight)
