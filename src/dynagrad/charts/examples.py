"""The examples of a batch: each is a run on the bound facts, with its value, gradient and derivations.

`batch.py` runs them on threads and adds up gradients; here is what an example is, and how the results become a `Batch`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from ..arguments import whole_number
from ..codegen.rules.compiled import Stop
from ..errors import Error, QueryError, Said, collected, refused, shown
from ..facts.table import Table
from ..forests.derivation import Derivation
from ..forests.sums.draws import Samples
from ..rules.checks.report import nearest
from .batch import (
    MOST_WAITING,
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
from .chart import Chart, make_chart, run_of
from .derivations import Wanted
from .derivatives import queries
from .limits import Limits


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
    limits = replace(limits, share=threads)
    stop = Stop()
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

    def prepare(n: int) -> Chart:
        loaded = None if cache is None else cache.take(n)
        if loaded is None:
            chart = chart_of(examples[n], limits)
        else:
            chart = make_chart(binding, loaded.run, limits, False)
            run_of(chart).loaded = loaded
        run_of(chart).set_up()
        if cache is not None and run_of(chart).facts.binding is binding:
            cache.put(n, run_of(chart).leaves())
        return chart

    derived: dict[int, tuple[list[Derivation], Samples | None]] = {}  # the derivations of the query, by example
    said: dict[int, Said] = {}  # warnings by example: a thread has no caller's line to issue them at

    def finish(n: int, chart: Chart) -> Any:
        with collected() as said[n]:
            return result_of(n, chart)

    def result_of(n: int, chart: Chart) -> Any:
        run = run_of(chart)
        began = time.monotonic() - run.spent
        run.bring_up(limits, chart, stop=stop)
        value = chart if query is None else chart[query]
        within = stop if limits.timeout is None else stop.until(began + limits.timeout)
        if wanted is not None:
            derived[n] = wanted.of(run, query, within)
        if goal is None or sums is None:
            return value
        ran, bound = queries.FinishedRun(run, within), len(sums.keys)
        rows = queries.row_gradient(ran, query, (*sums.keys, *own_keys), goal.cotangent(n, value))
        return value, rows[:bound], queries.own_tables(ran, own_keys, rows[bound:])

    results: list[Any] = []
    parts: list[list[Table] | None] = []
    ahead = MOST_WAITING if sums is None else sums.ahead
    with closing(in_order(count, prepare, finish, threads=threads, ahead=ahead, stop=stop.set)) as found:
        for n, result in enumerate(found):
            warning = None if isinstance(result, Exception) else refused(said.get(n, []))
            if warning is not None:
                del said[n]
                result = warning
            if sums is not None and not isinstance(result, Exception):
                value, rows, tables = result
                result = sums.add(rows) or value
                parts.append(None if isinstance(result, Exception) else tables)
            else:
                parts.append(None)
            results.append(result)
    warn_once(said)
    listed = [None if isinstance(r, Exception) else derived.get(n) for n, r in enumerate(results)]
    best = () if wanted is None or wanted.best is None else tuple(None if d is None else d[0] for d in listed)
    drawn = () if wanted is None or wanted.sample is None else tuple(None if d is None else d[1] for d in listed)
    if sums is None:
        return with_derivations(batch_of(results, scale_, query), best, drawn)
    own: dict[str, Any] = {key: [None if p is None else p[n] for p in parts] for n, key in enumerate(own_keys)}
    found_by = {**sums.tables(), **own}
    batch = batch_of(results, scale_, query, make_batchgradient({key: found_by[key] for key in keys}))
    return with_derivations(batch, best, drawn)


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
