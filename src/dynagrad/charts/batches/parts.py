"""Examples of a batch in parts: native code runs those of a part in one call, and adds up their gradients.

Those that are not plain (an error, a warning, an item without a log) are run one by one. Parts are fixed by the number
of examples, so the result is the same for any number of threads. Where the caller wants it, those whose goal has one
derivation are not run at all: their gradients, which are exact, are added after all parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import accumulate
from time import thread_time
from typing import Any

import numpy as np

from ...errors import Error
from ...runtime.engine import Ending, Settings, WeightTable
from .. import lookup
from ..binding.binding import Binding
from ..binding.example_cache import CachedBatch, arranged
from ..binding.groups import GradientRows, Group, LoadedExample, groups
from ..binding.linear_examples import LinearExamples, counts_of, joined_linear, may_be_linear
from ..binding.loading import LoadedRun, jet_words
from ..chart import Chart, run_of
from .objective import MOST_WAITING, BatchObjective, Sums
from .one_by_one import Results, Work
from .result import Array
from .threads import in_order

PARTS, MOST_IN_PART = 16, 32
"""A batch has this many parts, or more where parts would be larger than that."""


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of a batch: examples for native code, in groups; by number, others as charts, or as their errors."""

    begin: int
    groups: Sequence[tuple[Group, Mapping[int, WeightTable]]]
    """Each with the weights of the shared facts, by table."""
    linear: LinearExamples
    apart: dict[int, Chart | Exception]


@dataclass(frozen=True, eq=False)
class _PartResult:
    """What a part gave: values, sums of gradients, and by number the results of examples that ran one by one."""

    values: Array
    totals: Array | None
    """Over the concatenated rows of all predicates."""
    apart: dict[int, Any]
    linear: LinearExamples


def in_parts(work: Work, threads: int) -> Results:
    """Runs a batch: most examples in native code, the others one by one."""
    count = len(work.examples)
    size = _size(count)
    rows = None if work.sums is None or work.goal is None else _gradient_rows(work.binding, work.sums, work.goal)
    settings = work.limits.settings(0, 0)
    if threads == 1 and (found := _at_once(work, size, rows, settings)) is not None:
        _add(work, found.totals, rows)
        if len(found.linear.places) and rows is not None:
            _add(work, _linear_totals(work, found.linear, rows), rows)
        return found.values, []
    begins = range(0, count, size)
    results: list[Any] = []
    linear: list[tuple[int, LinearExamples]] = []
    ahead = MOST_WAITING if work.sums is None else work.sums.ahead
    finished = in_order(
        len(begins),
        lambda p: _prepared(work, begins[p], min(begins[p] + size, count), rows, settings),
        lambda p, part: _finished(work, part, min(begins[p] + size, count), rows, settings),
        threads=threads,
        ahead=max(2, ahead // size),
        stop=work.stop.set,
    )
    with closing(finished):
        for begin, part in zip(begins, finished, strict=True):
            if isinstance(part, Exception):
                raise part
            _add(work, part.totals, rows)
            values: list[Any] = part.values.tolist()
            for n, result in part.apart.items():
                values[n - begin] = work.add_result(n, result)[0]
            results += values
            if len(part.linear.places):
                linear.append((begin, part.linear))
    if linear and rows is not None:
        _add(work, _linear_totals(work, joined_linear(linear), rows), rows)
    return results, []


def rerun_parts(work: Work) -> tuple[Array, list[Array]] | None:
    """The values of all examples, and the sums of their gradients by the rows of each predicate: by one native call.

    They are the same, to the bit, as those of a batch. None where the examples were not loaded by an earlier batch, or
    where there is an error or a warning, which a batch reports.
    """
    count = len(work.examples)
    if work.sums is None or work.goal is None:
        return None
    rows = _gradient_rows(work.binding, work.sums, work.goal)
    found = _at_once(work, _size(count), rows, work.limits.settings(0, 0))
    if found is None:
        return None
    totals = np.zeros(rows.total) if found.totals is None else found.totals
    if len(found.linear.places):
        linear = _linear_totals(work, found.linear, rows)
        totals = linear.copy() if found.totals is None else totals + linear
    return (found.values, [part[:, 0] for part in rows.split(totals)]) if np.isfinite(totals).all() else None


def recounted(
    binding: Binding, keys: Sequence[str], cotangents: Array, cache: CachedBatch
) -> tuple[Array, list[Array]] | None:
    """The same for a batch in which every example was counted, so that none is run; None for any other."""
    count = len(cotangents)
    whole = cache.whole(_size(count))
    if whole is None or whole.groups or len(whole.linear.places) != count:
        return None
    ends = list(accumulate(binding.relations[key].count for key in keys))
    values, totals = np.empty(count), whole.linear.totals(cotangents, ends[-1] if ends else 0)
    values[whole.linear.places] = whole.linear.values(_logs(binding, keys))
    parts = [totals[begin:end].copy() for begin, end in zip([0, *ends], ends, strict=False)]
    return (values, parts) if np.isfinite(totals).all() else None


def _size(count: int) -> int:
    """The number of examples in a part of a batch of `count`."""
    return max(1, min(MOST_IN_PART, -(-count // PARTS)))


def _add(work: Work, totals: Array | None, rows: GradientRows | None) -> None:
    """Adds the totals of a part to those of the parts before it."""
    if totals is not None and work.sums is not None and rows is not None:
        given = zip(rows.split(totals), work.sums.relations, strict=True)
        work.sums.add([numbers[: relation.count] for numbers, relation in given])


def _at_once(work: Work, size: int, rows: GradientRows | None, settings: Settings) -> _PartResult | None:
    """All parts by one native call, where they were loaded by an earlier batch; None where they have to run in turn.

    Native code adds up each part on its own, too; so the sums are the same to the bit.
    """
    whole = None if work.cache is None else work.cache.whole(size)
    if whole is None or work.cache is None:
        return None
    found = _result(len(work.examples), rows, {}, whole.linear)
    some, left = False, list[int]()
    for group in whole.groups:
        shared = work.binding.shared_weights(group.examples[0].run, False)
        if shared is None:
            return None
        some, left = _run_group(work, group, shared, 0, rows, settings, size, found)
    if not left:
        _linear_values(work, found)
        return found if some and rows is not None else replace(found, totals=None)
    work.cache.put_apart()
    return None


def _result(count: int, rows: GradientRows | None, apart: dict[int, Any], linear: LinearExamples) -> _PartResult:
    """An empty result for `count` examples."""
    return _PartResult(np.full(count, np.nan), np.zeros(0 if rows is None else rows.total), apart, linear)


def _gradient_rows(binding: Binding, sums: Sums, goal: BatchObjective) -> GradientRows:
    relations = [binding.relations[key] for key in sums.keys]
    words = tuple(jet_words(binding.context.scale, r, 0) for r in relations)
    return GradientRows(sums.keys, tuple(r.count for r in relations), words, goal.log)


def _prepared(work: Work, begin: int, end: int, rows: GradientRows | None, settings: Settings) -> _Part:
    """A part: loads the facts of its examples, unless the cache has them."""
    binding, cache = work.binding, work.cache
    before = None if cache is None else cache.take_groups(begin, end)
    if before is not None:
        ready = [(g, binding.shared_weights(g.examples[0].run, False)) for g in before.groups]
        known = [(g, weights) for g, weights in ready if weights is not None]
        if len(known) == len(ready):
            return _Part(begin, known, before.linear, {})
    examples: list[LoadedExample | None] = []
    apart: dict[int, Chart | Exception] = {}
    for n in range(begin, end):
        example = None if cache is None or before is not None else cache.take(n)
        if example is None or binding.shared_weights(example.run, False) is None:
            example = None
            try:
                chart = work.chart(n)
                example = _loaded(work, chart)
            except Exception as error:
                apart[n] = error
            else:
                if example is None:
                    apart[n] = chart
                elif cache is not None:
                    example = _counted(work, example, rows, settings) if cache.linear else example
                    cache.put(n, example)
        examples.append(example)
    made = arranged(examples) if cache is None else cache.grouped(begin, end, examples)
    shared = [binding.shared_weights(group.examples[0].run, False) for group in made.groups]
    for group in (g for g, weights in zip(made.groups, shared, strict=True) if weights is None):
        apart.update((begin + n, work.over(e.run)) for n, e in zip(group.places.tolist(), group.examples, strict=True))
    there = [(g, weights) for g, weights in zip(made.groups, shared, strict=True) if weights is not None]
    return _Part(begin, there, made.linear, apart)


def _counted(work: Work, example: LoadedExample, rows: GradientRows | None, settings: Settings) -> LoadedExample:
    """An example with its counts, if its goal has only one derivation."""
    binding, run = work.binding, example.run
    weights = binding.shared_weights(run, False)
    if rows is None or weights is None or not may_be_linear(run, binding.relations):
        return example
    (group,), single = groups([example]), np.zeros(1, np.int64)
    group.run(weights, settings, work.stop, None, np.ones(1), np.zeros(0), 1, single)
    if not single[0]:
        return example
    return replace(example, counts=counts_of(example, group, weights, rows, binding.relations, settings, work.stop))


def _logs(binding: Binding, keys: Sequence[str]) -> Array:
    """The weights of the rows of some predicates, one predicate after another, in `log`."""
    relations = [binding.relations[key] for key in keys]
    parts = [np.zeros(r.count) if r.values is None else np.asarray(r.values, np.float64) for r in relations]
    return np.concatenate([np.zeros(0), *parts])


def _linear_values(work: Work, found: _PartResult) -> None:
    """Enters the values of examples that are not run."""
    if len(found.linear.places):
        assert work.sums is not None
        found.values[found.linear.places] = found.linear.values(_logs(work.binding, work.sums.keys))
        if work.cache is not None:
            work.cache.note_seconds(len(found.linear.places), 0.0)


def _linear_totals(work: Work, linear: LinearExamples, rows: GradientRows) -> Array:
    """The gradient by all rows of examples that are not run."""
    weights = None if work.goal is None else work.goal.cotangents
    return linear.totals(np.ones(len(work.examples)) if weights is None else weights, rows.total)


def _loaded(work: Work, chart: Chart) -> LoadedExample | None:
    """An example as native code takes it; None where its facts cannot stay loaded, or its item is not in its chart."""
    run, context = run_of(chart), work.binding.context
    prepared = run.require()
    if run.facts.binding is not work.binding or (work.goal is not None and not prepared.compiled.plan.adjoint):
        return None
    try:
        key, codes = lookup.place_of(context, prepared, work.query)
    except Error:  # told as the run ends
        return None
    table = prepared.compiled.plan.tables.get(key)
    if table is None or codes is None:
        return None
    loaded = run.kept_facts()
    return None if loaded is None else LoadedExample(loaded, table.number, tuple(codes))


def _finished(work: Work, part: _Part, end: int, rows: GradientRows | None, settings: Settings) -> _PartResult:
    """Runs a part: first the examples that native code can run, then the rest in Python."""
    count, apart = end - part.begin, dict[int, Any]()
    found = _result(count, rows, apart, part.linear)
    _linear_values(work, found)
    left: dict[int, LoadedRun] = {}
    some = False
    for group, shared in part.groups:
        plain, others = _run_group(work, group, shared, part.begin, rows, settings, count, found)
        some = some or plain
        left.update((part.begin + int(group.places[n]), group.examples[n].run) for n in others)
    if work.cache is not None and (part.apart or left):
        work.cache.note_seconds(1, math.inf)  # in Python, where threads are worth it
    for n in sorted({**part.apart, **left}):
        try:
            chart = part.apart[n] if n in part.apart else work.over(left[n])
            apart[n] = chart if isinstance(chart, Exception) else work.finish(n, chart)
        except Exception as error:  # of a function that the program calls, too
            apart[n] = error
    return found if some and rows is not None else replace(found, totals=None)


def _run_group(
    work: Work,
    group: Group,
    shared: Mapping[int, WeightTable],
    begin: int,
    rows: GradientRows | None,
    settings: Settings,
    size: int,
    found: _PartResult,
) -> tuple[bool, list[int]]:
    """Runs a group, whose places are counted from `begin`, in parts of `size`.

    Returns whether any example was plain, and which ones have to run one by one. Values and gradients go into `found`.
    """
    places = group.places
    weights = None if work.goal is None else work.goal.cotangents
    cotangents = np.ones(len(places)) if weights is None else weights[begin + places]
    assert found.totals is not None
    began = thread_time()
    ending, words = group.run(shared, settings, work.stop, rows, cotangents, found.totals, size)
    if work.cache is not None:
        work.cache.note_seconds(len(places), thread_time() - began)
    found.values[places] = words[:, 0].view(np.float64)
    if not ending.any():
        return True, []
    found.values[places[ending == Ending.UNDERIVED]] = lookup.zero_of(work.binding.context, _key(group))
    return bool((ending == Ending.PLAIN).any()), np.flatnonzero(ending == Ending.APART).tolist()


def _key(group: Group) -> str:
    """The predicate of the item that a group is asked for."""
    tables = group.examples[0].run.compiled.plan.tables
    return next(key for key, table in tables.items() if table.number == group.examples[0].goal)
