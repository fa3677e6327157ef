"""Examples that native code runs in one call (`outside/examples.hpp`): their loaded facts as arrays, and the call.

Which examples go together, and what becomes of those that are not plain, is decided in `charts/batches/parts.py`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ...facts.relation import Codes
from ...forks import cached
from ...plan.model import Plan
from ...runtime.engine import Ending, Examples, Settings, WeightTable
from ...runtime.library import Stop, host
from .loading import LoadedRun, Words

Doubles = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FactCounts:
    """How often the only derivation of an example uses each of the facts that a gradient is taken by."""

    rows: Indices
    """The facts that it uses, as indices into the concatenated rows of all predicates."""
    counts: Doubles
    """How often each is used, a whole number."""
    rest: float
    """What other facts add to the log of its weight."""


@dataclass(frozen=True)
class LoadedExample:
    """An example whose facts are loaded, and the item that it is asked for: table, and codes of arguments."""

    run: LoadedRun
    goal: int
    codes: tuple[int, ...]
    counts: FactCounts | None = None
    """The facts that its derivation uses, if it was found to have only one: then it need not be run."""

    def goes_with(self, other: LoadedExample) -> bool:
        """Whether native code can run both in one call: they are of one class."""
        mine, theirs = self.run, other.run
        of_one_class = (
            mine.compiled.generated is theirs.compiled.generated and mine.compiled.engine is theirs.compiled.engine
        )
        over_one_world = mine.world.base is theirs.world.base and mine.shared == theirs.shared
        return of_one_class and over_one_world and self.goal == other.goal


@dataclass(frozen=True, eq=False)
class GradientRows:
    """The shared facts that a gradient is taken by: predicates, counts of rows, and the words of their numbers."""

    keys: tuple[str, ...]
    counts: tuple[int, ...]
    given: tuple[Words | None, ...]
    of_log: bool
    """Whether it is the gradient of the goals' logs."""
    _columns: dict[int, Indices] = field(default_factory=dict)

    @cached
    def ends(self) -> list[int]:
        """Where the rows of each predicate end in the concatenated rows of all, over which derivatives are added up."""
        return list(accumulate(self.counts))

    @property
    def total(self) -> int:
        """The number of rows of all predicates."""
        return self.ends[-1] if self.ends else 0

    def split(self, numbers: Doubles) -> list[Doubles]:
        """Derivatives by all rows as an array for each predicate, with a row for each fact."""
        return [numbers[end - count : end, None] for count, end in zip(self.counts, self.ends, strict=True)]

    def columns(self, plan: Plan) -> Indices:
        """For each predicate in a plan: its table, count of rows, address of numbers, and offset among all rows."""
        found = self._columns.get(id(plan))
        if found is None:
            there = [
                (plan.tables[key].number, count, 0 if given is None else _address(given), end - count)
                for key, count, given, end in zip(self.keys, self.counts, self.given, self.ends, strict=True)
                if key in plan.tables and count
            ]
            found = np.array(there, np.int64).reshape(len(there), 4).T
            self._columns[id(plan)] = found
        return found


@dataclass(frozen=True, eq=False)
class Group:
    """Examples of one class, as arrays with a row for each: its place in the batch, and addresses of its facts."""

    places: Indices
    examples: tuple[LoadedExample, ...]
    world: Indices
    facts: Indices
    """By table; zero where facts are shared."""
    weights: Indices
    codes: Codes

    @cached
    def _same(self) -> dict[str, int]:
        """The part of the request that is the same in all runs."""
        first = self.examples[0]
        return {
            "count": len(self.examples),
            "tables": self.facts.shape[1],
            "world": _address(self.world),
            "constants": _address(first.run.constants),
            "goal": first.goal,
            "width": self.codes.shape[1],
            "arguments": _address(self.codes),
        }

    def run(
        self,
        shared: Mapping[int, WeightTable],
        settings: Settings,
        stop: Stop,
        rows: GradientRows | None,
        cotangents: Doubles,
        totals: Doubles,
        part: int,
        single: Indices | None = None,
    ) -> tuple[Indices, Words]:
        """Runs them: how each ended, and the words of its value; gradients are added to `totals`.

        So many at a time, `part`, are added up on their own. Where there are several such parts, and one of them is out
        of the ordinary, all end apart, and the totals mean nothing. `single` is set to one for each example whose items
        have one instance each.
        """
        compiled = self.examples[0].run.compiled
        engine = compiled.engine
        facts, weights = self.facts.copy(), self.weights.copy()
        for number, table in shared.items():
            facts[:, number], weights[:, number] = table.facts.pointer, table.pointer
        count = len(self.examples)
        ending, words = np.full(count, Ending.APART, np.int64), np.zeros((count, 1), np.uint64)
        asked = Examples(
            **self._same,
            facts=_address(facts),
            weights=_address(weights),
            settings=ctypes.addressof(settings),
            ending=_address(ending),
            words=_address(words),
            part=part,
            single=None if single is None else _address(single),
        )
        if rows is not None:
            assert engine.backward is not None
            by, own = rows.columns(compiled.plan), np.empty(rows.total)
            numbers = np.empty((5, by.shape[1]), np.int64)
            numbers[:3] = by[:3]
            numbers[3], numbers[4] = by[3] * own.itemsize + _address(own), by[3] * own.itemsize + _address(totals)
            asked.backward, asked.of_log, asked.keys = ctypes.addressof(engine.backward), rows.of_log, by.shape[1]
            first, width = _address(numbers), numbers.strides[0]
            asked.table, asked.rows, asked.given, asked.own, asked.total = range(first, first + 5 * width, width)
            asked.cotangent = _address(cotangents)
        if engine.examples(ctypes.addressof(asked), host(), stop.address) < 0:
            raise KeyboardInterrupt
        return ending, words


def groups(examples: Sequence[LoadedExample | None]) -> list[Group]:
    """Examples in groups of one class, in the order of the first of each; without those that are None."""
    found: list[list[int]] = []
    for n, example in enumerate(examples):
        if example is None:
            continue
        for places in found:
            other = examples[places[0]]
            if other is not None and example.goes_with(other):
                places.append(n)
                break
        else:
            found.append([n])
    return [_group(places, [e for e in (examples[n] for n in places) if e is not None]) for places in found]


def joined(parts: Sequence[tuple[int, Group]]) -> Group | None:
    """Several groups as one, each with the offset of its places; None where they do not go together."""
    first = parts[0][1].examples[0]
    if not all(part.examples[0].goes_with(first) for _, part in parts):
        return None
    held = [part for _, part in parts]
    return Group(
        np.concatenate([part.places + begin for begin, part in parts]),
        tuple(example for part in held for example in part.examples),
        *(np.concatenate([getattr(part, name) for part in held]) for name in ("world", "facts", "weights", "codes")),
    )


def _group(places: list[int], examples: list[LoadedExample]) -> Group:
    held = [e.run.weights for e in examples]
    return Group(
        np.array(places, np.int64),
        tuple(examples),
        np.array([e.run.world.pointer for e in examples], np.int64),
        np.array([[0 if w is None else w.facts.pointer for w in row] for row in held], np.int64),
        np.array([[0 if w is None else w.pointer for w in row] for row in held], np.int64),
        np.array([(*e.codes, 0) for e in examples], np.int32),
    )


def _address(array: npt.NDArray[np.generic]) -> int:
    if array.flags.writeable and array.size and array.flags.c_contiguous:
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))  # a fifth of the time of what follows
    address: int = array.__array_interface__["data"][0]
    return address
