"""Examples whose goal has one derivation: in `log` its value is linear in the weights of the facts that this uses.

Such examples are recognised by the structure of their charts, whatever the weights: each item has one instance. They
are run once, to count how often the derivation uses each fact. Counts are whole numbers, so that what is computed from
them is the same to the bit whenever and wherever an example was counted. Which examples are counted is decided in
`charts/batches/parts.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ...facts.relation import Relation
from ...forks import cached
from ...plan.traits import is_facts
from ...runtime.engine import Ending, Settings, WeightTable
from ...runtime.library import Stop
from .groups import Doubles, FactCounts, GradientRows, Group, Indices, LoadedExample
from .loading import LoadedRun

ROUNDING = 1e-9
"""How far a computed count may be from a whole number; where copies of a fact share a count, each is further away."""


@dataclass(frozen=True, eq=False)
class LinearExamples:
    """Examples that were counted: their places in a batch, and the counts of all, concatenated.

    Counts hold as long as the rows that a gradient is taken by have finite weights and no copies, and other shared
    facts keep their weights. The caller who asks for counts is responsible for both.
    """

    places: Indices
    example: Indices
    """The example of each count, as an index of `places`; it does not decrease."""
    rows: Indices
    counts: Doubles
    rest: Doubles
    """What the other facts of each example add to its value."""

    def values(self, logs: Doubles) -> Doubles:
        """The values of their goals; `logs` are the weights of all rows that a gradient is taken by."""
        found, (there, begins) = self.rest.copy(), self._begins
        if len(begins):
            found[there] += np.add.reduceat(self.counts * logs[self.rows], begins)
        return found

    def totals(self, cotangents: Doubles, rows: int) -> Doubles:
        """The gradient, by `rows` rows, of the sum of their goals, each times its cotangent."""
        weights = cotangents[self.places]
        if (weights == 1).all():
            return self._once[:rows] if len(self._once) >= rows else np.pad(self._once, (0, rows - len(self._once)))
        return _sums(self.rows, self.counts * weights[self.example], rows)

    @cached
    def _begins(self) -> tuple[Indices, Indices]:
        """The examples that have counts, and where those of each begin."""
        there, begins = np.unique(self.example, return_index=True)
        return there, begins

    @cached
    def _once(self) -> Doubles:
        """The sum of all counts, which is exact."""
        return _sums(self.rows, self.counts, 0)


def _sums(at: Indices, numbers: Doubles, size: int) -> Doubles:
    """The sums of the numbers with each index in `at`, added in order."""
    return np.asarray(np.bincount(at, numbers, size), np.float64)


def linear_examples(places: Sequence[int], counted: Sequence[FactCounts]) -> LinearExamples:
    """Examples at some places of a batch."""
    sizes = [len(c.rows) for c in counted]
    return LinearExamples(
        np.array(places, np.int64),
        np.repeat(np.arange(len(counted)), sizes),
        np.concatenate([np.zeros(0, np.int64), *(c.rows for c in counted)]),
        np.concatenate([np.zeros(0), *(c.counts for c in counted)]),
        np.array([c.rest for c in counted], np.float64),
    )


def joined_linear(parts: Sequence[tuple[int, LinearExamples]]) -> LinearExamples:
    """The examples of several parts of a batch, each with the number of its first one."""
    sizes = accumulate((len(part.places) for _, part in parts[:-1]), initial=0)
    return LinearExamples(
        np.concatenate([np.zeros(0, np.int64), *(part.places + begin for begin, part in parts)]),
        np.concatenate([np.zeros(0, np.int64), *(p.example + n for n, (_, p) in zip(sizes, parts, strict=False))]),
        *(
            np.concatenate([np.zeros(0, kind), *(getattr(part, name) for _, part in parts)])
            for name, kind in (("rows", np.int64), ("counts", np.float64), ("rest", np.float64))
        ),
    )


def may_be_linear(run: LoadedRun, shared: Mapping[str, Relation]) -> bool:
    """Whether a chart in which each item has one instance has one derivation of each, a product of facts alone."""
    plan = run.compiled.plan
    if plan.semiring != "log" or run.compiled.generated.weights or not plan.pops_once:
        return False
    given = {**shared, **run.relations}
    return all(is_facts(t) or key not in given or not given[key].count for key, t in plan.tables.items())


def counts_of(
    example: LoadedExample,
    group: Group,
    weights: Mapping[int, WeightTable],
    rows: GradientRows,
    relations: Mapping[str, Relation],
    settings: Settings,
    stop: Stop,
) -> FactCounts | None:
    """Counts the facts that the only derivation of an example uses; `group` has this example alone.

    None where its goal is not derived or its run does not end plainly, and where its value is not the sum of what was
    counted, as with copies of a fact, which are merged.
    """
    run, plan = example.run, example.run.compiled.plan
    others = {
        key: relation
        for key, relation in {**relations, **run.relations}.items()
        if key not in rows.keys and key in plan.tables and relation.values is not None and relation.count
    }
    values = {key: np.asarray(relation.values, np.float64) for key, relation in others.items()}
    every = GradientRows(
        (*rows.keys, *others),
        (*rows.counts, *(relation.count for relation in others.values())),
        (*rows.given, *(numbers.view(np.uint64) for numbers in values.values())),
        rows.of_log,
    )
    found = np.zeros(every.total)
    ending, words = group.run(weights, settings, stop, every, np.ones(1), found, 1)
    whole = np.rint(found)
    if ending[0] != Ending.PLAIN or not (np.abs(found - whole) <= ROUNDING).all():
        return None
    mine, rest = whole[: rows.total], whole[rows.total :]
    used = np.flatnonzero(mine)
    logs = np.concatenate([np.zeros(0), *values.values()])
    fixed = float(np.add.reduce(np.where(rest == 0, 0.0, logs) * rest))
    given = zip(rows.given, rows.counts, strict=True)
    learned = [np.zeros(n) if numbers is None else numbers.view(np.float64).reshape(-1) for numbers, n in given]
    value = fixed + float(np.concatenate([np.zeros(0), *learned])[used] @ mine[used])
    right = abs(value - float(words.view(np.float64)[0, 0])) <= ROUNDING * max(1.0, abs(value))
    return FactCounts(used, mine[used], fixed) if right else None
