"""Irreducible sets of given facts that suffice for an item, or for a value that is as good as a threshold.

They come from the forest of the item, with items under `SIDE` opened too: one set by deletion, starting from the facts
of one derivation; all of them by carrying sets of facts through the forest, smaller ones absorbing larger
(why-provenance: Buneman, Khanna and Tan 2001), which ends within a budget or falls back on deletion from derivation
after derivation. How much each instance adds to a value is told by `why.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import QueryError
from ..algebra import Kind
from ..native import Held, Walk
from ..packed import Packed
from ..ranking.k_best import Ranked

Fact = str


class _OverBudget(Exception):
    """The budget is spent."""


class FactSets:
    """Irreducible sets of given facts for the root of a forest whose items under `SIDE` are opened too."""

    def __init__(self, forest: Packed, budget: int, above: float | None) -> None:
        self.forest, self.budget, self.above = forest, budget, above
        a = forest.arrays
        owner = a.owner
        given = np.flatnonzero(a.rule < 0)
        rows = forest.meaning.given_row[-1 - a.rule[given]]
        self.fact_of: dict[int, int] = {}  # given number -> node, of what was given and is no axiom
        for instance, row in zip(given.tolist(), rows.tolist(), strict=True):
            if 0 <= row < 2**40:
                self.fact_of[-1 - int(a.rule[instance])] = int(owner[instance])
        self.rows_of: dict[int, list[int]] = {}
        for number, node in self.fact_of.items():
            self.rows_of.setdefault(node, []).append(number)
        self.open = replace(a, antecedent=np.where(a.antecedent < 0, ~a.antecedent, a.antecedent).astype(np.int32))
        self.rank = forest.meaning.rank()
        self.work = 0

    def find(self, most: int) -> tuple[list[list[Fact]], bool]:
        if self.above is not None:
            found = self._above(self.above)
            return [self._names(found)], False
        if most == 1:
            return [self._names(self._one())], False
        try:
            every = self._all()
        except _OverBudget:
            return self._some(most), False
        ordered = sorted((self._names(s) for s in every), key=lambda s: (len(s), s))
        return ordered[:most], len(ordered) <= most

    def _names(self, nodes: frozenset[int] | set[int]) -> list[Fact]:
        self.forest.learn(sorted(nodes))
        return [self.forest.full_text(n) for n in sorted(nodes, key=lambda n: int(self.rank[n]))]

    def _spend(self, steps: int) -> None:
        self.work += steps
        if self.work > self.budget:
            raise _OverBudget

    # one of them

    def _one(self) -> set[int]:
        """One irreducible set: the facts of the smallest derivation, without those that it can do without."""
        first = next(Ranked(self.forest, _Derivable(self).walk, lambda: None))
        return self._deleted(self._facts(first.instances), _Derivable(self))

    def _facts(self, instances: Sequence[int] | npt.NDArray[Any]) -> set[int]:
        numbers = [-1 - int(r) for r in self.forest.arrays.rule[np.asarray(instances, np.int64)].tolist() if r < 0]
        return {self.fact_of[n] for n in numbers if n in self.fact_of}

    def _deleted(self, facts: set[int], derivable: _Derivable) -> set[int]:
        """An irreducible part of a set of facts that suffices."""
        derivable.keep(facts)
        return self._reduced(facts, sorted(facts, reverse=True), derivable, derivable.holds)

    def _reduced(
        self, facts: set[int], order: Sequence[int], derivable: _Derivable, suffices: Callable[[], bool]
    ) -> set[int]:
        """What is left of facts when each is taken away, in order, that is not needed for what they suffice for."""
        kept, taken, look = set(facts), 0, 1
        suffices()
        needed = derivable.needed()
        for node in order:
            if node in needed:
                continue
            derivable.put(node, False)
            if not suffices():
                derivable.put(node, True)
                continue
            kept.discard(node)
            taken += 1
            if taken == look:  # the fewer are left, the more of them are needed
                needed, look = derivable.needed(), 2 * look
        return kept

    # all of them

    def _all(self) -> set[frozenset[int]]:
        """All irreducible sets. Raises _OverBudget where they take more than the budget."""
        nodes, begin, _, _ = _Derivable(self).walk.order()
        a = self.open
        found: dict[int, set[frozenset[int]]] = {}
        for c in range(len(begin) - 1):
            members = nodes[int(begin[c]) : int(begin[c + 1])].tolist()
            changed = True
            while changed:
                changed = False
                for v in members:
                    sets: set[frozenset[int]] = set()
                    for i in range(int(a.begin[v]), int(a.end[v])):
                        number = int(a.rule[i])
                        if number < 0:
                            fact = self.fact_of.get(-1 - number)
                            sets.add(frozenset() if fact is None else frozenset((fact,)))
                            continue
                        parts: set[frozenset[int]] = {frozenset()}
                        for u in a.antecedent[int(a.first[i]) : int(a.first[i + 1])].tolist():
                            parts = self._least(self._unions(parts, found.get(u, set())))
                        sets |= parts
                    sets = self._least(sets)
                    if sets != found.get(v):
                        found[v] = sets
                        changed = len(members) > 1 or v in self._below(v)
        return found[0]

    def _unions(self, some: set[frozenset[int]], others: set[frozenset[int]]) -> set[frozenset[int]]:
        self._spend(1)
        made = set()
        for p in some:
            for q in others:
                made.add(p | q)
                self._spend(1 + (len(p) + len(q)) // 16)
        return made

    def _least(self, sets: set[frozenset[int]]) -> set[frozenset[int]]:
        """The minimal sets: none of them contains another."""
        kept: set[frozenset[int]] = set()
        having: dict[int, list[frozenset[int]]] = {}  # those kept, each under one of its elements
        for _, group in itertools.groupby(sorted(sets, key=len), key=len):
            fresh = []
            for s in group:
                candidates = [k for x in s for k in having.get(x, ())]
                self._spend(1 + len(candidates) // 4)
                if frozenset() not in kept and not any(k <= s for k in candidates):
                    fresh.append(s)
            kept.update(fresh)
            for s in fresh:  # only now, for a set is no part of another one of its size
                if s:
                    having.setdefault(min(s, key=lambda x: (len(having.get(x, ())), x)), []).append(s)
        return kept

    def _below(self, v: int) -> set[int]:
        a = self.open
        return set(a.antecedent[int(a.first[int(a.begin[v])]) : int(a.first[int(a.end[v])])].tolist())

    def _some(self, most: int) -> list[list[Fact]]:
        """Irreducible sets of derivation after derivation, within the budget."""
        seen: set[frozenset[int]] = set()
        derivable = _Derivable(self)
        for looked, derivation in enumerate(Ranked(self.forest, _Derivable(self).walk, lambda: None)):
            seen.add(frozenset(self._deleted(self._facts(derivation.instances), derivable)))
            if len(seen) >= most or looked >= min(self.budget, 1000):
                break
        return sorted((self._names(s) for s in seen), key=lambda s: (len(s), s))

    # a value above a threshold

    def _above(self, threshold: float) -> set[int]:
        """An irreducible set of facts that derive the item with a value that is still as good as a threshold."""
        forest, algebra = self.forest, self.forest.meaning.algebra
        if algebra.kind not in (Kind.PRODUCTS, Kind.SUMS) or algebra.name == "expectation":
            raise QueryError(
                "above= asks for real, log, viterbi or tropical, with weights of at least 0; in "
                f"{algebra.name} a value has no such threshold"
            )
        summing = algebra.name in ("real", "log")
        source, a = forest.walk(sampling=summing), forest.arrays
        nothing = -np.inf if source.view.kind == Kind.SUMS else 0.0
        full = np.array(source.held.given)
        # of each instance a constant of its own, which is nothing where an item under SIDE is not derived
        own = np.where(a.rule >= 0, source.held.constant[np.maximum(a.rule, 0)], nothing)
        constants, given = own.copy(), full.copy()
        numbers = np.where(a.rule < 0, a.rule, np.arange(len(a.rule))).astype(np.int32)
        held = Held(a.begin, a.end, numbers, a.first, a.antecedent, constants, given)
        walk = Walk(int(source.view.kind), 0, held, forest.meaning.rank)
        wanted = float(algebra.numbers(np.array([threshold]))[0])
        derivable = _Derivable(self)

        def reaches() -> bool:
            if not derivable.holds():
                return False
            constants[:] = np.where(derivable.live(sides=True), own, nothing)
            given[:] = np.where(derivable.given > 0, full, nothing)
            return _total(walk, summing) >= wanted - 1e-12 * abs(wanted)

        if not reaches():
            raise QueryError(f"{forest.text(0)} is {forest.value(0)}, which does not reach {threshold}")
        order = sorted(self.rows_of, key=lambda n: float(full[self.rows_of[n]].sum()))
        return self._reduced(set(self.rows_of), order, derivable, reaches)


class _Derivable:
    """What is derived by the given facts that are kept, whatever their weights."""

    def __init__(self, sets: FactSets) -> None:
        forest, a = sets.forest, sets.open
        self.sets = sets
        self.given = np.ones(len(forest.meaning.given))
        constants = np.ones(1 + max([0, *forest.meaning.rules]))
        held = Held(a.begin, a.end, a.rule, a.first, a.antecedent, constants, self.given)
        self.walk = Walk(int(Kind.SIZES), 0, held, forest.meaning.rank)

    def keep(self, facts: set[int]) -> None:
        for node in self.sets.rows_of:
            self.put(node, node in facts)

    def put(self, fact: int, there: bool) -> None:
        self.given[self.sets.rows_of[fact]] = float(there)

    def holds(self) -> bool:
        """Whether the root is derived."""
        self.walk.best(anew=True)
        return self.walk.derivable() is not None

    def live(self, *, sides: bool = False) -> npt.NDArray[np.bool_]:
        """The instances all of whose antecedents are derived, after `holds`; or only those of them under `SIDE`."""
        a, derived = self.sets.open, self.walk.derived()
        dead = ~derived[a.antecedent] & (self.sets.forest.arrays.antecedent < 0 if sides else True)
        before = np.concatenate([[0], np.cumsum(dead)])
        found: npt.NDArray[np.bool_] = before[a.first[1:]] == before[a.first[:-1]]
        facts = np.flatnonzero(a.rule < 0)
        found[facts] = self.given[-1 - a.rule[facts]] > 0
        return found

    def needed(self) -> set[int]:
        """Nodes that every derivation of the root uses, as far as instances side by side show it, after `holds`."""
        a, live = self.sets.open, self.live()
        found = {0}
        stack = [0]
        while stack:
            v = stack.pop()
            shared: set[int] | None = None
            for i in range(int(a.begin[v]), int(a.end[v])):
                if live[i]:
                    below = set(a.antecedent[int(a.first[i]) : int(a.first[i + 1])].tolist())
                    shared = below if shared is None else shared & below
                    if not shared:
                        break
            fresh = (shared or set()) - found
            found |= fresh
            stack.extend(fresh)
        # a fact is needed where no rule and no axiom derives its item
        return {
            v
            for v in found
            if v in self.sets.rows_of and int(live[int(a.begin[v]) : int(a.end[v])].sum()) == len(self.sets.rows_of[v])
        }


def _total(walk: Walk, summing: bool) -> float:
    """The value of the root, as native code ranks it."""
    if not summing:
        walk.best(anew=True)
        best = walk.derivable()
        if best is None:
            return -math.inf if walk.view.kind == Kind.SUMS else 0.0
        m, e = best
        return m if walk.view.kind == Kind.SUMS else _number_of(m, e)
    if walk.sums(anew=True) is not None:
        raise QueryError("above= needs a forest without cycles where weights add up; ask in viterbi or tropical")
    m_all, e_all = walk.totals()
    if walk.view.kind == Kind.SUMS:
        return -math.inf if m_all[0] == 0 else math.log(m_all[0]) + int(e_all[0]) * math.log(2)
    return _number_of(m_all[0], int(e_all[0]))


def _number_of(m: float, e: int) -> float:
    return math.ldexp(m, e) if e < 1025 else math.inf
