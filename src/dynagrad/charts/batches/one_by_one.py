"""Examples of a batch that run one by one: each is a chart, with its value, gradient and derivations.

So run those that native code does not run together (`parts.py`), and all where charts or derivations are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from ...errors import Said, collected, refused, warn
from ...facts.table import Table
from ...forests.derivation import Derivation
from ...forests.sums.draws import Samples
from ...runtime.library import Stop
from ..binding.binding import Binding
from ..binding.example_cache import CachedBatch
from ..binding.loading import LoadedRun
from ..chart import Chart, bring_up, make_chart, run_of
from ..derivations import Wanted
from ..derivatives import queries
from ..finality import early
from ..limits import Limits
from ..lookup import unknown_in, value_of
from .objective import MOST_WAITING, BatchObjective, Sums
from .result import Array
from .threads import in_order


@dataclass(frozen=True, eq=False)
class Work:
    """What is asked of the examples of a batch, and what is noted of them on the way."""

    binding: Binding
    chart_of: Callable[[Mapping[str, Any], Limits], Chart]
    examples: Sequence[Mapping[str, Any]]
    query: str | None
    goal: BatchObjective | None
    sums: Sums | None
    own_keys: Sequence[str]
    """Predicates of a gradient whose facts examples bring: facts of some may be bound, too."""
    limits: Limits
    wanted: Wanted | None
    cache: CachedBatch | None
    stop: Stop = field(default_factory=Stop)
    derived: dict[int, tuple[list[Derivation], Samples | None]] = field(default_factory=dict)
    """The derivations of the query, by example."""
    said: dict[int, Said] = field(default_factory=dict)
    """Warnings by example: a thread has no caller's line to issue them at."""

    unknown: dict[int, str] = field(default_factory=dict)
    """What is to be said of a symbol of the query that no fact of an example has: by example."""

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
        bring_up(chart, self.limits, stop=stop)
        value = chart if query is None else value_of(run.context, run.ready(), query, quiet=True)
        if query is not None and (said := unknown_in(run.context, run.ready(), query)):
            self.unknown[n] = said
        if query is not None and (partial := early(run, run.ready(), query)) is not None:
            warn(partial)
        within = stop if self.limits.timeout is None else stop.until(began + self.limits.timeout)
        if self.wanted is not None:
            self.derived[n] = self.wanted.of(run, query, within)
        if self.goal is None or self.sums is None:
            return value
        ran, keys = queries.FinishedRun(run, within), tuple(dict.fromkeys((*self.sums.keys, *self.own_keys)))
        rows = dict(zip(keys, queries.row_gradient(ran, query, keys, self.goal.cotangent(n, value)), strict=True))
        shared = [rows[relation.key][: relation.count] for relation in self.sums.relations]
        return value, shared, queries.own_tables(ran, self.own_keys, [rows[key] for key in self.own_keys])

    def add_result(self, n: int, result: Any) -> tuple[Any, list[Table] | None]:
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


Results = tuple[list[Any] | Array, list[list[Table] | None]]
"""By example its value, chart or error, or an array of values alone; and the tables by its own facts."""


def one_by_one(work: Work, threads: int) -> Results:
    """Each example in Python."""
    results: list[Any] = []
    parts: list[list[Table] | None] = []
    ahead = MOST_WAITING if work.sums is None else work.sums.ahead
    found = in_order(len(work.examples), work.chart, work.finish, threads=threads, ahead=ahead, stop=work.stop.set)
    with closing(found):
        for n, result in enumerate(found):
            value, tables = work.add_result(n, result)
            results.append(value)
            parts.append(tables)
    return results, parts
