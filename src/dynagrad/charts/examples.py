"""The examples of a batch: each is a run on the bound facts, with its value, gradient and derivations.

Where values are asked for, or gradients by bound facts, native code runs a part of the examples in one call, and adds
up their gradients. Those that are not plain (an error, a warning, an item without a log) are run one by one, and so are
all examples where charts or derivations are asked for. `batch.py` has the threads; here is what an example is, and how
the results become a `Batch`. Parts are fixed by the number of examples, so the result is the same for any number of
threads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..arguments import whole_number
from ..codegen.rules.compiled import Settings, Stop, WeightTable
from ..errors import Error, QueryError, Said, collected, refused, shown
from ..facts.table import Table
from ..forests.derivation import Derivation
from ..forests.sums.draws import Samples
from ..rules.checks.report import nearest
from ..runtime.engine import Ending
from . import lookup
from .batch import (
    MOST_WAITING,
    Array,
    Batch,
    BatchObjective,
    Sums,
    batch_of,
    in_order,
    make_batchgradient,
    warn_once,
    with_derivations,
)
from .binding.binding import Binding
from .binding.example_cache import CachedBatch
from .binding.groups import GradientRows, Group, LoadedExample, groups
from .binding.loading import LoadedRun, jet_words
from .chart import Chart, make_chart, run_of
from .derivations import Wanted
from .derivatives import queries
from .limits import Limits

PARTS, MOST_IN_PART = 16, 32
"""Into how many parts a batch is divided, unless they have more examples than this."""


def run_examples(
    binding: Binding,
    chart_of: Callable[[Mapping[str, Any], Limits], Chart],
    examples: Iterable[Mapping[str, Any]],
    query: str | None,
    gradient: str | Sequence[str] | None,
    objective: str,
    cotangents: Any,
    threads: int | None,
    limits: Limits,
    wanted: Wanted | None,
    cache: CachedBatch | None,
) -> Batch:
    """Runs each example: `Bound.run_batch` says what the arguments are; `chart_of` makes a chart that has not run.

    Examples in the `cache` stay loaded from one batch to the next.
    """
    limits.check()
    if isinstance(examples, str | Mapping) or not _iterable(examples):
        raise Error(f"examples must be a list of facts, a dict for each example, not {shown(examples)}")
    if threads is not None:
        threads = whole_number("threads", threads)
    examples = list(examples)
    count, scale_ = len(examples), binding.context.scale
    threads = max(1, min(threads or os.cpu_count() or 1, count))
    free = limits == Limits()
    limits = replace(limits, share=threads)
    sums = goal = None
    keys: list[str] = []
    own_keys: list[str] = []  # those whose facts each example brings
    if gradient is not None:
        goal = BatchObjective.read(scale_, query, objective, cotangents, count)
        keys = _keys_of(binding, gradient, examples)
        own_keys = [key for key in keys if key not in binding.given]
        sums = Sums(scale_, [binding.given[key] for key in keys if key not in own_keys])
        binding.keep_tapes()
    elif cotangents is not None or not isinstance(objective, str) or objective != "sum":
        raise Error('objective and cotangents are about a gradient; ask for one with gradient=["rewrite/3"]')
    work = _Work(binding, chart_of, examples, query, goal, sums, own_keys, limits, wanted, cache)
    doubles = scale_.shape == "float" and scale_.width == 1
    if free and doubles and query is not None and wanted is None and not own_keys and not binding.context.externals:
        results, parts = _in_parts(work, threads)
    else:
        results, parts = _one_by_one(work, threads)
    warn_once(work.said)
    listed = [None if isinstance(r, Exception) else work.derived.get(n) for n, r in enumerate(results)]
    best = () if wanted is None or wanted.best is None else tuple(None if d is None else d[0] for d in listed)
    drawn = () if wanted is None or wanted.sample is None else tuple(None if d is None else d[1] for d in listed)
    if sums is None:
        return with_derivations(batch_of(results, scale_, query), best, drawn)
    own: dict[str, Any] = {key: [None if p is None else p[n] for p in parts] for n, key in enumerate(own_keys)}
    found_by = {**sums.tables(), **own}
    batch = batch_of(results, scale_, query, make_batchgradient({key: found_by[key] for key in keys}))
    return with_derivations(batch, best, drawn)


@dataclass(frozen=True, eq=False)
class _Work:
    """What is asked of the examples of a batch, and what is noted of them on the way."""

    binding: Binding
    chart_of: Callable[[Mapping[str, Any], Limits], Chart]
    examples: Sequence[Mapping[str, Any]]
    query: str | None
    goal: BatchObjective | None
    sums: Sums | None
    own_keys: Sequence[str]
    limits: Limits
    wanted: Wanted | None
    cache: CachedBatch | None
    stop: Stop = field(default_factory=Stop)
    derived: dict[int, tuple[list[Derivation], Samples | None]] = field(default_factory=dict)
    """The derivations of the query, by example."""
    said: dict[int, Said] = field(default_factory=dict)
    """Warnings by example: a thread has no caller's line to issue them at."""

    def chart(self, n: int) -> Chart:
        """The chart of an example, whose first run is prepared."""
        chart = self.chart_of(self.examples[n], self.limits)
        run_of(chart).set_up()
        return chart

    def over(self, loaded: LoadedRun) -> Chart:
        """A chart over facts that were loaded before."""
        chart = make_chart(self.binding, loaded.run, self.limits, False)
        run_of(chart).loaded = loaded
        run_of(chart).set_up()
        return chart

    def finish(self, n: int, chart: Chart) -> Any:
        """The value of an example; where a gradient is asked for, with its rows by bound facts and tables by others."""
        with collected() as self.said[n]:
            return self._result_of(n, chart)

    def _result_of(self, n: int, chart: Chart) -> Any:
        run, query, stop = run_of(chart), self.query, self.stop
        began = time.monotonic() - run.spent
        run.bring_up(self.limits, chart, stop=stop)
        value = chart if query is None else chart[query]
        within = stop if self.limits.timeout is None else stop.until(began + self.limits.timeout)
        if self.wanted is not None:
            self.derived[n] = self.wanted.of(run, query, within)
        if self.goal is None or self.sums is None:
            return value
        ran, bound = queries.FinishedRun(run, within), len(self.sums.keys)
        rows = queries.row_gradient(ran, query, (*self.sums.keys, *self.own_keys), self.goal.cotangent(n, value))
        return value, rows[:bound], queries.own_tables(ran, self.own_keys, rows[bound:])

    def taken(self, n: int, result: Any) -> tuple[Any, list[Table] | None]:
        """The value of an example, or its error, and the tables by its own facts; its rows are added to the sums."""
        warning = None if isinstance(result, Exception) else refused(self.said.get(n, []))
        if warning is not None:
            del self.said[n]
            result = warning
        if self.sums is None or isinstance(result, Exception):
            return result, None
        value, rows, tables = result
        error = self.sums.add(rows)
        return (value, tables) if error is None else (error, None)


_Results = tuple[list[Any], list[list[Table] | None]]
"""By example its value, chart or error; and the tables by its own facts."""


def _one_by_one(work: _Work, threads: int) -> _Results:
    """Each example in Python."""
    results: list[Any] = []
    parts: list[list[Table] | None] = []
    ahead = MOST_WAITING if work.sums is None else work.sums.ahead
    found = in_order(len(work.examples), work.chart, work.finish, threads=threads, ahead=ahead, stop=work.stop.set)
    with closing(found):
        for n, result in enumerate(found):
            value, tables = work.taken(n, result)
            results.append(value)
            parts.append(tables)
    return results, parts


# -- parts of a batch --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Part:
    """Some examples: those that native code may run, in groups, and by number the charts of others, or their errors."""

    begin: int
    groups: Sequence[tuple[Group, Mapping[int, WeightTable]]]
    """Each with the numbers of the facts that all share, by table."""
    apart: dict[int, Chart | Exception]


@dataclass(frozen=True, eq=False)
class _PartResult:
    """What became of a part: values, totals of gradients, and by number the results of examples that were run apart."""

    values: Array
    totals: Array | None
    """All rows, one predicate after another."""
    apart: dict[int, Any]


def _in_parts(work: _Work, threads: int) -> _Results:
    """Most examples in native code."""
    count = len(work.examples)
    size = max(1, min(MOST_IN_PART, -(-count // PARTS)))
    begins = range(0, count, size)
    rows = None if work.sums is None or work.goal is None else _gradient_rows(work.binding, work.sums, work.goal)
    settings = work.limits.settings(0, 0)
    results: list[Any] = []
    ahead = MOST_WAITING if work.sums is None else work.sums.ahead
    found = in_order(
        len(begins),
        lambda p: _prepared(work, begins[p], min(begins[p] + size, count)),
        lambda p, part: _finished(work, part, min(begins[p] + size, count), rows, settings),
        threads=threads,
        ahead=max(2, ahead // size),
        stop=work.stop.set,
    )
    with closing(found):
        for begin, part in zip(begins, found, strict=True):
            if isinstance(part, Exception):
                raise part
            if part.totals is not None and work.sums is not None and rows is not None:
                given = zip(rows.split(part.totals), work.sums.relations, strict=True)
                work.sums.add([numbers[: relation.count] for numbers, relation in given])
            values: list[Any] = part.values.tolist()
            for n, result in part.apart.items():
                values[n - begin] = work.taken(n, result)[0]
            results += values
    return results, []


def _gradient_rows(binding: Binding, sums: Sums, goal: BatchObjective) -> GradientRows:
    relations = [binding.relations[key] for key in sums.keys]
    words = tuple(jet_words(binding.context.scale, r, 0) for r in relations)
    return GradientRows(sums.keys, tuple(r.count for r in relations), words, goal.log)


def _prepared(work: _Work, begin: int, end: int) -> _Part:
    """The facts of some examples, loaded, as far as they were not kept."""
    binding, cache = work.binding, work.cache
    before = None if cache is None else cache.take_groups(begin, end)
    ready = [(g, binding.shared_weights(g.examples[0].run, False)) for g in before or ()]
    known = [(g, weights) for g, weights in ready if weights is not None]
    if before is not None and len(known) == len(before):
        return _Part(begin, known, {})
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
                    cache.put(n, example)
        examples.append(example)
    made = groups(examples) if cache is None else cache.grouped(begin, end, examples)
    shared = [binding.shared_weights(group.examples[0].run, False) for group in made]
    for group in (g for g, weights in zip(made, shared, strict=True) if weights is None):
        apart.update((begin + n, work.over(e.run)) for n, e in zip(group.places.tolist(), group.examples, strict=True))
    there = [(g, weights) for g, weights in zip(made, shared, strict=True) if weights is not None]
    return _Part(begin, there, apart)


def _loaded(work: _Work, chart: Chart) -> LoadedExample | None:
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
    loaded = run.leaves()
    return None if loaded is None else LoadedExample(loaded, table.number, tuple(codes))


def _finished(work: _Work, part: _Part, end: int, rows: GradientRows | None, settings: Settings) -> _PartResult:
    """Runs a part: what native code can, and then the others."""
    context = work.binding.context
    assert work.query is not None
    values = np.full(end - part.begin, np.nan)
    totals = np.zeros(0 if rows is None else rows.total)
    left: dict[int, LoadedRun] = {}
    some = False
    for group, shared in part.groups:
        places = group.places
        weights = None if work.goal is None else work.goal.cotangents
        cotangents = np.ones(len(places)) if weights is None else weights[part.begin + places]
        ending, words = group.run(shared, settings, work.stop, rows, cotangents, totals)
        values[places] = words[:, 0].view(np.float64)
        some = some or bool((ending == Ending.PLAIN).any())
        if ending.any():
            values[places[ending == Ending.UNDERIVED]] = lookup.zero_of(context, _key(group))
            for n in np.flatnonzero(ending == Ending.APART).tolist():
                left[part.begin + int(places[n])] = group.examples[n].run
    apart: dict[int, Any] = {}
    for n in sorted({**part.apart, **left}):
        try:
            chart = part.apart[n] if n in part.apart else work.over(left[n])
            apart[n] = chart if isinstance(chart, Exception) else work.finish(n, chart)
        except Exception as error:  # of a function that the program calls, too
            apart[n] = error
    return _PartResult(values, totals if some and rows is not None else None, apart)


def _key(group: Group) -> str:
    """The predicate of the item that a group is asked for."""
    tables = group.examples[0].run.compiled.plan.tables
    return next(key for key, table in tables.items() if table.number == group.examples[0].goal)


# -- what is asked for -------------------------------------------------------------------------------------------------


def _keys_of(binding: Binding, keys: str | Sequence[str], examples: Sequence[Any]) -> list[str]:
    """The predicates that a gradient is asked for: their facts are bound, or examples bring them."""
    given, known = binding.given, tuple(binding.context.rules.predicates)
    brought = {key for example in examples if isinstance(example, Mapping) for key in example}
    found: dict[str, None] = {}
    for key in keys if _iterable(keys) and not isinstance(keys, str) else [keys]:
        if not isinstance(key, str) or key not in known:
            near = nearest(key, known) if isinstance(key, str) else ""
            raise QueryError(f"gradient: the program has no predicate {shown(key)}.{near}")
        if key not in given and key not in brought and examples:
            raise QueryError(
                f"gradient: {key} has no facts, neither bound nor in an example; bind has: {', '.join(given) or 'none'}"
            )
        found[key] = None
    return list(found)


def _iterable(given: Any) -> bool:
    return hasattr(given, "__iter__") and getattr(given, "shape", None) != ()
