"""The limits of a run: on pops, time, items and memory, as users give them and as native code takes them; statistics.

Errors for runs that ended at a limit are in `ends.py`.
"""

from __future__ import annotations

import numbers
import time
from dataclasses import dataclass, field

import numpy as np

from ..errors import Error, QueryError, shown
from ..runtime.engine import Settings
from ..runtime.library import Stop
from .machine import memory

MAX_ITEMS = 200_000_000
"""The default limit on the items of a chart."""

PAUSE = 100_000_000
"""Nanoseconds between two updates of the progress bar."""


@dataclass(frozen=True)
class Limits:
    """When a run stops before its end. `until` is an item: the run stops when the value of that item is final."""

    max_pops: int | None = None
    tolerance: float | None = None
    timeout: float | None = None
    until: str | None = None
    max_items: int | None = None
    max_bytes: int | None = None
    share: int = field(default=1, compare=False)  # the number of concurrent runs, which share the memory

    def __post_init__(self) -> None:
        for name in ("max_pops", "tolerance", "timeout", "max_items", "max_bytes"):
            if isinstance(value := getattr(self, name), np.number):
                object.__setattr__(self, name, value.item())

    def check(self) -> None:
        for name in ("max_pops", "timeout", "max_items", "max_bytes", "tolerance"):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real) or not float(value) >= 0:
                raise Error(f"{name} must be a number from 0, not {shown(value)}")
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
        settings = Settings(-1, -1, -1, -1, -1, -1, -1, 1e-12, 0, 1)
        if self.max_pops is not None:
            settings.max_pops = _whole(pops + self.max_pops)
        if self.timeout is not None:
            settings.timeout_ns = _whole(nanoseconds + self.timeout * 1e9)
        if self.tolerance is not None:
            settings.tolerance, settings.refine = self.tolerance, 0
        settings.max_items = MAX_ITEMS if self.max_items is None else _whole(self.max_items)
        settings.max_bytes = self.room
        return settings


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
