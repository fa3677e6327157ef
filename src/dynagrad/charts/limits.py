"""The limits of a run: as users give them, by keyword; as one value; and as native code takes them. Its statistics.

Errors for runs that ended at a limit are in `ends.py`; limits on the time of an answer, in `forests/time_limit.py`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TypedDict

from ..arguments import real_number
from ..errors import QueryError, shown
from ..runtime.engine import Settings
from ..runtime.library import Stop
from .machine import memory

MAX_ITEMS = 200_000_000
"""The default limit on the items of a chart."""

PAUSE = 100_000_000
"""Nanoseconds between two updates of the progress bar."""


class LimitOptions(TypedDict, total=False):
    """The limits of a run, which calls take by keyword: when it ends early, and what it never exceeds.

    - `max_pops` (a number of pops): the run ends after so many; `chart.run()` continues it. Cycles are iterated.
    - `tolerance` (relative): a repeated update that is smaller is left pending. Cycles are iterated, and where none is
      given, as with `:- solve iterate`, until the estimate of what is still to come is below 1e-12.
    - `timeout` (seconds, for the whole call): the run ends then; `chart.run()` continues it. If it passes before the
      program is compiled or the facts are loaded, `NotConverged` is raised without a chart, and compiling goes on in
      the background for the next call.
    - `until` (an item, written as in rules): the run ends when the value of the item is final.
    - `max_items` (200 million unless given) and `max_bytes` (half of the memory that the process may use): a run that
      needs more raises `NotConverged`, whose `.chart` is the chart so far, or None where there was no room for one.

    Where a limit ends a run, `.converged` and `.status` of the chart say so, and `.pending` has the updates that were
    left. Without `max_pops` and `tolerance` cycles of sums are solved as equations. None says no more than a limit that
    is not given, but in `Chart.run`, where it takes away the one that there was.

    >>> import dynagrad as dg
    >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
    >>> limits: dg.LimitOptions = {"max_pops": 1, "timeout": 60.0}
    >>> chart = program.run({"edge/2": [("a", "b", 2.0)]}, **limits)
    >>> chart.converged, chart.status, list(chart.pending)
    (False, 'max_pops', ['path/1'])
    """

    max_pops: int | None
    tolerance: float | None
    timeout: float | None
    until: str | None
    max_items: int | None
    max_bytes: int | None


@dataclass(frozen=True)
class Limits:
    """The limits of a run as one value, `Limits(**options)`. Raises where one of the `LimitOptions` is none."""

    max_pops: int | None = None
    tolerance: float | None = None
    timeout: float | None = None
    until: str | None = None
    max_items: int | None = None
    max_bytes: int | None = None
    share: int = field(default=1, compare=False)  # the number of concurrent runs, which share the memory

    def __post_init__(self) -> None:
        for name in ("max_pops", "tolerance", "timeout", "max_items", "max_bytes"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, real_number(name, value, 0))
        if self.until is not None and not isinstance(self.until, str):
            raise QueryError(f'until must be an item, written as in rules, such as "goal", not {shown(self.until)}')

    def stop(self, began: float | None = None) -> Stop | None:
        """What stops native code at the limit on time, counted from now or from `began`; None without a limit."""
        if self.timeout is None:
            return None
        return Stop((time.monotonic() if began is None else began) + self.timeout)

    @property
    def room(self) -> int:
        """The bytes that a chart may take: by default half of the memory that the process may use."""
        return memory() // 2 // self.share if self.max_bytes is None else _whole(self.max_bytes)

    def settings(self, pops: int, nanoseconds: int) -> Settings:
        """The limits as native code takes them, after the pops and the time that were spent before."""
        settings = Settings()
        if self.max_pops is not None:
            settings.max_pops = _whole(pops + self.max_pops)
        if self.timeout is not None:
            settings.timeout_ns = _whole(nanoseconds + self.timeout * 1e9)
        if self.tolerance is not None:
            settings.tolerance, settings.refine = self.tolerance, 0
        settings.max_items = MAX_ITEMS if self.max_items is None else _whole(self.max_items)
        settings.max_bytes = self.room
        return settings


NO_LIMITS = Limits()


@dataclass(frozen=True)
class Statistics:
    """What a run did.

    `pops` are items taken off the agenda, `updates` contributions of rule instances, `items` derived items, `bytes` the
    memory of the chart itself without the facts that it shares, `seconds` the time in native code. `tape_bytes` is the
    size of the tape: zero before the first gradient is asked for, then eight bytes a pop, up to six more where items
    are popped in rows, and the old value and the update of each item that was popped again.

    >>> import dynagrad as dg
    >>> dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.").run({"edge/2": [("a", "b", 2.0)]}).stats.items
    2
    """

    pops: int
    updates: int
    items: int
    bytes: int
    seconds: float
    tape_bytes: int = 0


def _whole(number: float) -> int:
    """A limit as native code takes it."""
    return int(min(number, 2**62))
