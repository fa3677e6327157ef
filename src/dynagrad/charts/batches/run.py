"""`run_examples` runs a batch: checks what is asked for, chooses how its examples run, and puts the result together.

How examples run is in `one_by_one.py` and `parts.py`, their threads in `threads.py`; how the result looks is in
`result.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...arguments import whole_number
from ...errors import Error, QueryError, shown, warn
from ...rules.suggestions import nearest
from ..binding.binding import Binding
from ..binding.example_cache import CachedBatch
from ..chart import Chart
from ..derivations import Wanted
from ..limits import NO_LIMITS, Limits
from ..lookup import check_askable
from .objective import BatchObjective, Sums
from .one_by_one import Work, one_by_one
from .parts import in_parts, recounted, rerun_parts
from .result import Array, Batch, batch_of, gradient_of, warn_once, with_derivations


def run_examples(
    binding: Binding,
    chart_of: Callable[[Mapping[str, Any], Limits], Chart],
    examples: Iterable[Mapping[str, Any]],
    *,
    query: str | None = None,
    gradient: str | Sequence[str] | None = None,
    objective: str = "sum",
    cotangents: Any = None,
    threads: int | None = None,
    limits: Limits = NO_LIMITS,
    wanted: Wanted | None = None,
    cache: CachedBatch | None = None,
) -> Batch:
    """Runs each example: `Bound.run_batch` says what the arguments are; `chart_of` makes a chart that has not run.

    Examples in the `cache` stay loaded from one batch to the next.
    """
    if isinstance(examples, str | Mapping) or not _iterable(examples):
        raise Error(f"examples must be a list of facts, a dict for each example, not {shown(examples)}")
    if threads is not None:
        threads = whole_number("threads", threads, 1)
    examples = list(examples)
    count, scale = len(examples), binding.context.scale
    threads = 1 if cache is not None and cache.brief() else max(1, min(threads or os.cpu_count() or 1, count))
    free = limits == NO_LIMITS
    limits = replace(limits, share=threads)
    sums = goal = None
    keys: list[str] = []
    own_keys: list[str] = []  # those whose facts each example brings
    if gradient is not None:
        goal = BatchObjective.read(scale, query, objective, cotangents, count)
        brought = {key for example in examples if isinstance(example, Mapping) for key in example}
        keys = _keys_of(binding, gradient, brought if examples else None)
        if not keys:
            raise Error('gradient names predicates, such as ["rewrite/3"], and none is given; leave it out for values')
        own_keys = [key for key in keys if key in brought or key not in binding.given]
        given = binding.settled().given
        sums = Sums(scale, [given[key] for key in keys if key in given])
        binding.keep_tapes()
    elif cotangents is not None or not isinstance(objective, str) or objective != "sum":
        raise Error('objective and cotangents are about a gradient; ask for one with gradient=["rewrite/3"]')
    if query is not None:
        check_askable(binding.context, query)
    if limits.until is not None:
        check_askable(binding.context, limits.until)
    if wanted is not None:
        wanted.check(binding.context)
    work = Work(binding, chart_of, examples, query, goal, sums, own_keys, limits, wanted, cache)
    doubles = scale.shape == "float" and scale.width == 1
    if free and doubles and query is not None and wanted is None and not own_keys and not binding.context.externals:
        results, parts = in_parts(work, threads)
    else:
        results, parts = one_by_one(work, threads)
    warn_once(work.said)
    if work.unknown and len(work.unknown) == sum(not isinstance(r, Exception) for r in results):
        warn(f"example {min(work.unknown)} and all others: {work.unknown[min(work.unknown)]}")
    listed = [
        None if isinstance(r, Exception) else work.derived.get(n)
        for n, r in enumerate(results if wanted is not None else ())
    ]
    best = () if wanted is None or wanted.best is None else tuple(None if d is None else d[0] for d in listed)
    drawn = () if wanted is None or wanted.sample is None else tuple(None if d is None else d[1] for d in listed)
    if sums is None:
        return with_derivations(batch_of(results, scale, query), best, drawn)
    own: dict[str, Any] = {key: [None if p is None else p[n] for p in parts] for n, key in enumerate(own_keys)}
    batch = batch_of(results, scale, query, gradient_of(keys, sums.tables(), own, scale.one))
    return with_derivations(batch, best, drawn)


def rerun_examples(
    binding: Binding,
    examples: Sequence[Mapping[str, Any]],
    query: str,
    keys: Sequence[str],
    log: bool,
    cotangents: Array,
    cache: CachedBatch,
) -> tuple[Array, list[Array]] | None:
    """A batch that was run before, on one thread and without limits, with other values of the facts that all share.

    Its values, and the gradient by the facts of each predicate, as numbers and not as tables. None where it has to be
    run by `run_examples`, to which it leaves everything that is out of the ordinary.
    """
    counted = recounted(binding, keys, cotangents, cache) if cache.linear else None
    if counted is not None:
        return counted
    binding.keep_tapes()
    goal, sums = BatchObjective(query, log, cotangents), Sums(binding.context.scale, [binding.given[k] for k in keys])
    return rerun_parts(Work(binding, _no_chart, examples, query, goal, sums, (), Limits(share=1), None, cache))


def _no_chart(facts: Mapping[str, Any], limits: Limits) -> Chart:
    raise AssertionError("examples that are loaded need no chart")


def _keys_of(binding: Binding, keys: str | Sequence[str], brought: Collection[str] | None) -> list[str]:
    """The predicates that a gradient is asked for: their facts are bound, or examples bring them.

    Those that examples bring are None where there are no examples, which then could bring any.
    """
    given, known = binding.given, tuple(binding.context.rules.predicates)
    found: dict[str, None] = {}
    for key in keys if _iterable(keys) and not isinstance(keys, str) else [keys]:
        if not isinstance(key, str) or key not in known:
            near = nearest(key, known) if isinstance(key, str) else ""
            raise QueryError(f"gradient: the program has no predicate {shown(key)}.{near}")
        if key not in given and brought is not None and key not in brought:
            raise QueryError(
                f"gradient: {key} has no facts, neither bound nor in an example; bind has: {', '.join(given) or 'none'}"
            )
        found[key] = None
    return list(found)


def _iterable(given: Any) -> bool:
    return hasattr(given, "__iter__") and getattr(given, "shape", None) != ()
