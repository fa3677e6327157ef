"""Examples that native code runs in one call (`dynagrad/examples.hpp`): their loaded facts as arrays, and the call.

Which examples go together, and what becomes of those that are not plain, is decided in `charts/examples.py`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...codegen.rules.compiled import Settings, Stop, WeightTable
from ...facts.relation import Codes
from ...runtime.engine import Ending, Examples
from ...runtime.library import host
from .loading import LoadedRun, Words

Doubles = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LoadedExample:
    """An example whose facts are loaded, and the item that it is asked for: table, and codes of arguments."""

    run: LoadedRun
    goal: int
    codes: tuple[int, ...]

    def goes_with(self, other: LoadedExample) -> bool:
        """Whether native code can run both in one call: they are of one class."""
        mine, theirs = self.run, other.run
        same = mine.compiled is theirs.compiled and mine.world.base is theirs.world.base
        return same and mine.shared == theirs.shared and self.goal == other.goal


@dataclass(frozen=True)
class GradientRows:
    """The shared facts that a gradient is by: predicates, how many rows each has, and the words of their numbers."""

    keys: tuple[str, ...]
    counts: tuple[int, ...]
    given: tuple[Words | None, ...]
    of_log: bool
    """Whether it is the gradient of the goals' logs."""


@dataclass(frozen=True, eq=False)
class Group:
    """Examples of one class, as arrays of a row for each: their places among the others, and addresses."""

    places: Indices
    examples: tuple[LoadedExample, ...]
    world: Indices
    facts: Indices
    """By table; none yet where facts are shared."""
    weights: Indices
    codes: Codes

    def run(
        self,
        shared: Mapping[int, WeightTable],
        settings: Settings,
        stop: Stop,
        rows: GradientRows | None,
        cotangents: Doubles,
        totals: Sequence[Doubles],
    ) -> tuple[Indices, Words]:
        """Runs them: how each ended, and the words of its value; gradients are added to `totals`."""
        first = self.examples[0]
        engine, tables = first.run.compiled.engine, first.run.compiled.plan.tables
        facts, weights = self.facts.copy(), self.weights.copy()
        for number, table in shared.items():
            facts[:, number], weights[:, number] = table.facts.pointer, table.pointer
        count = len(self.examples)
        ending, words = np.full(count, Ending.APART, np.int64), np.zeros((count, 1), np.uint64)
        asked = Examples(
            count=count,
            tables=facts.shape[1],
            world=_address(self.world),
            facts=_address(facts),
            weights=_address(weights),
            constants=_address(first.run.constants),
            settings=ctypes.addressof(settings),
            goal=first.goal,
            width=self.codes.shape[1],
            arguments=_address(self.codes),
            ending=_address(ending),
            words=_address(words),
        )
        if rows is not None:
            assert engine.backward is not None
            there = [n for n, key in enumerate(rows.keys) if key in tables and rows.counts[n]]
            own = [np.empty(rows.counts[n]) for n in there]
            given = [rows.given[n] for n in there]
            numbers = np.array(
                [
                    [tables[rows.keys[n]].number for n in there],
                    [rows.counts[n] for n in there],
                    [0 if g is None else _address(g) for g in given],
                    [_address(a) for a in own],
                    [_address(totals[n]) for n in there],
                ],
                np.int64,
            ).reshape(5, len(there))
            asked.backward, asked.of_log, asked.keys = ctypes.addressof(engine.backward), rows.of_log, len(there)
            asked.table, asked.rows, asked.given, asked.own, asked.total = (_address(row) for row in numbers)
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
    address: int = array.__array_interface__["data"][0]
    return address
