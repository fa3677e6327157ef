"""When a run stops, and what its end says: limits going in, a status coming out as an error or a warning.

What a chart does about an end, such as that it has to be run again, is `chart`'s business; what the end of a run that
was made again for its derivatives says is `gradient`'s.
"""

from __future__ import annotations

import numbers
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..codegen.rules.compiled import Settings, Stop
from ..codegen.rules.solving.convergence import QUIET
from ..errors import Error, NotConverged, ProgramError, QueryError, RoomError, ValueRangeError, cut, shown, warn
from ..ir import Node
from ..ir.interpret import evaluate
from ..semirings import Scale
from .binding.decoding import place_text, reported
from .binding.loading import Prepared
from .machine import memory

MAX_ITEMS = 200_000_000
"""The limit on the items of a chart where none is given."""

PAUSE = 100_000_000
"""Nanoseconds between two looks of the progress bar."""


@dataclass(frozen=True)
class Limits:
    """When a run stops before its end. `until` is an item: the run stops when it is final."""

    max_pops: int | None = None
    tolerance: float | None = None
    timeout: float | None = None
    until: str | None = None
    max_items: int | None = None
    max_bytes: int | None = None
    share: int = field(default=1, compare=False)  # of how many runs at once, which share what memory there is

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
                raise Error(f"{name} must be a number from 0, and {shown(value)} is not")
        if self.until is not None and not isinstance(self.until, str):
            raise QueryError(f'until is an item, written as in rules, such as "goal", and {shown(self.until)} is none')

    def stop(self, began: float | None = None) -> Stop | None:
        """What ends native code at the limit on time, from now or from when the call began; None without one."""
        if self.timeout is None:
            return None
        return Stop((time.monotonic() if began is None else began) + self.timeout)

    @property
    def room(self) -> int:
        """The bytes that a chart may take: half of what memory there is, if not given."""
        return memory() // 2 // self.share if self.max_bytes is None else _whole(self.max_bytes)

    def settings(self, pops: int, nanoseconds: int) -> Settings:
        """The limits as native code takes them; pops and time count from what was spent before."""
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
    memory of the chart itself without the facts that it shares, `seconds` the time in native code. `tape_bytes` is what
    the run keeps for its derivatives: none before the first gradient is asked for, then eight bytes a pop, and the old
    value and the update of each item that was popped again.

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


# -- the end of a run --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class End:
    """How a run of a chart ended: a name of `plan.compiled.STATUS`, and what is needed to say more."""

    status: str
    prepared: Prepared
    scale: Scale
    chart: Any  # what a NotConverged carries

    @property
    def report(self) -> Any:
        return self.prepared.chart.report


def _at_limit(end: End) -> NotConverged:
    report = end.report
    return NotConverged(
        f"the run stopped after {report.pops:,} pops at its limit on {end.status}: {report.items:,} items, "
        f"{report.bytes:,} bytes. Raise max_{end.status}, or stop earlier with max_pops, timeout or until; "
        "the chart so far is in this error's .chart",
        chart=end.chart,
    )


def _bad_value(end: End) -> ValueRangeError:
    item, scale = reported(end.prepared, end.report), end.scale
    if scale.shape == "count":
        return ValueRangeError(f"{item} is too large to be counted: at least 2**128 - 1 derivations")
    if scale.name == "plain":
        return ValueRangeError(
            f"{item} became NaN, or infinite though what it is made of is finite, and is the first item that did: by "
            "numbers that are too large, as exp(800), by the log of 0, by 1/0, 0/0, inf - inf, or a function outside "
            "its domain. A log of a sum of exps stays in range as `log+=`, or as lse(a, b); `if ... then ... else ...` "
            "can step around a point"
        )
    return ValueRangeError(
        f"{item} became NaN or left the range of the {scale.name} semiring, and is the first item that did. A "
        "sum around a cycle may grow without end; where the numbers are only very large or very small, use log"
    )


def _two_values(end: End) -> ValueRangeError:
    return ValueRangeError(
        f"{reported(end.prepared, end.report)} is given two different values by `=`; "
        "use +=, max= or min= where several contributions may meet"
    )


def _no_order(end: End) -> Error:
    """What a user's plus and less say of two values that met, and that it does not fit together."""
    user = end.prepared.compiled.plan.user
    assert user is not None and user.less is not None
    numbers = [float.fromhex(word) for word in end.prepared.chart.message().split()]
    a, b = numbers[: user.width], numbers[user.width :]

    def at(nodes: Sequence[Node], x: Sequence[float], y: Sequence[float]) -> tuple[Any, ...]:
        return evaluate(nodes, {f"{n}{i}": v for n, part in (("a", x), ("b", y)) for i, v in enumerate(part)})

    def text(value: Sequence[float]) -> str:
        return repr(value[0]) if user.scalar else repr(tuple(value))

    pairs = [(a, b)] if a == b else [(a, b), (b, a)]
    said = [f"less({text(x)}, {text(y)}) is {bool(at([user.less], x, y)[0])}" for x, y in pairs]
    if a != b:
        said.insert(0, f"plus({text(a)}, {text(b)}) is {text(at(user.plus, a, b))}")
    return Error(
        f"the semiring's plus and less do not agree, at {reported(end.prepared, end.report)}: {', '.join(said[:-1])}"
        f"{' and ' if said[:-1] else ''}{said[-1]}. plus(a, b) must be b where less(a, b), which says that b is the "
        "better one, and a where less(b, a); no value is better than itself. Mend less, or leave it out"
    )


def _integer_overflow(end: End) -> ValueRangeError:
    """Which of the two causes it was the table says, and the cell which rule: see `Scope` in `plan.statements`."""
    report, rules = end.report, end.prepared.compiled.plan.rules
    rule = next((r for r in rules.rules if r.number == report.error_cell), None)
    where = ""
    if rule is not None and report.error_table < -1:
        name = f"{cut(rules.source.filename)}, line" if rules.source.filename else "line"
        where = f", in the rule `{cut(rule.text)}` ({name} {rule.span.line})"
    if report.error_table == -3:
        return ValueRangeError(
            f"integer arithmetic in an argument divided by zero, with // or mod{where}; leave zero out with a "
            "condition, such as `for N != 0`"
        )
    return ValueRangeError(
        f"integer arithmetic in an argument left the range -2**31 .. 2**31-1{where}; bound the arguments with a "
        "condition, such as `for I < N`"
    )


def _host_error(end: End) -> ValueRangeError:
    return ValueRangeError("the native function behind an external predicate said that it failed")


def function_failed(prepared: Prepared, report: Any) -> Error:
    """The error for a function of values that failed inside a rule."""
    names, _, said = prepared.chart.message().partition(": ")
    which = f"one of the functions {names}" if "," in names else f"the function {names}"
    return Error(f"{which} failed for {cut(reported(prepared, report))}: {said or 'it did not come to its end'}")


def out_of_time(where: str) -> NotConverged:
    """The error of derivatives that took too long."""
    return NotConverged(f"the limit on time was met {where}; raise timeout. The chart is as it was")


def near_critical(item: str) -> str:
    """What is wrong where a derivative would have no digit: the value has half of them."""
    return (
        f"the derivative with respect to {item} has no correct digit: the weights around its cycle are so near to "
        "where its value becomes infinite, or ceases to exist, that the value itself has only half of the digits (see "
        "chart.error_bound). Make the weights around the cycle smaller"
    )


def _diverges(end: End) -> NotConverged:
    prepared, report = end.prepared, end.report
    items = cycle(prepared)
    around = " -> ".join([*items, items[0]]) if items else reported(prepared, report)
    if end.scale.shape == "count":
        why = "its derivations go around a cycle, so that there are infinitely many"
    elif report.radius > 0:
        why = f"what goes around a cycle does not shrink (the spectral radius is {report.radius:.12g})"
    else:
        selects = prepared.compiled.plan.selective or items
        why = (
            "values around a cycle get better each time around, without end"
            if selects
            else "iterating the cycle that it is part of does not come nearer to a value"
        )
    return NotConverged(
        f"{cut(reported(prepared, report))} has no finite value: {why} ({cut(around)}). The items, in this order, are "
        "in this error's .cycle, the spectral radius in .radius, and what was computed before in .chart",
        chart=end.chart,
        cycle=items,
        radius=report.radius or None,
    )


def _quiet(end: End) -> NotConverged:
    return NotConverged(
        f"the run stopped after {end.report.pops:,} pops, the last {QUIET:,} of which changed no digit of any item"
        f"{' of an output' if end.prepared.compiled.plan.rules.outputs else ''}: "
        "arguments may grow without end. Bound them with a condition, such as `for N < 1000`; the chart so far is in "
        "this error's .chart",
        chart=end.chart,
    )


def cycle(prepared: Prepared) -> tuple[str, ...]:
    """The items of the cycle that made a run end, each leading to the next."""
    keys = {t.number: (t.key, t.arity) for t in prepared.compiled.plan.tables.values()}
    found = []
    for number, cell in prepared.chart.cycle():
        key, arity = keys[number]
        found.append(place_text(prepared, key, prepared.chart.arguments(number, cell, arity)))
    return tuple(found[::-1])


def _cyclic(end: End) -> Error:
    prepared, report = end.prepared, end.report
    items = cycle(prepared)
    around = ", ".join(items) if items else reported(prepared, report)
    asked = prepared.compiled.plan.rules.solve
    if asked == "auto":
        why = "and a product (`*=`) of values that still change is not monotone, so it is not iterated"
    elif asked == "linear":
        why = "where rules multiply several of its items, or weights have signs and do not shrink what goes around"
    else:
        why = "where weights have signs"
    out = "" if asked == "auto" else f"; leave out `:- solve {asked}.`, and such cycles are iterated"
    return ProgramError(f"values go around a cycle of the facts, through {cut(around)}, {why}{out}")


def unsettled(item: str) -> str:
    """What is wrong where derivatives go around a cycle without end."""
    return (
        f"the derivative with respect to {item} does not settle: values around a cycle stand still, since a weight "
        "there is zero, and its derivatives grow without end, or shrink too slowly. Make the weights around the cycle "
        "smaller, or break it"
    )


_RAISED: dict[str, Callable[[End], BaseException]] = {
    "items": _at_limit,
    "bytes": _at_limit,
    "bad_value": _bad_value,
    "two_values": _two_values,
    "no_order": _no_order,
    "integer_overflow": _integer_overflow,
    "host_error": _host_error,
    "function_failed": lambda end: function_failed(end.prepared, end.report),
    "diverges": _diverges,
    "quiet": _quiet,
    "cyclic": _cyclic,
    "near_critical": lambda end: ValueRangeError(near_critical(reported(end.prepared, end.report))),
    "unsettled": lambda end: ValueRangeError(unsettled(reported(end.prepared, end.report))),
    "interrupted": lambda end: KeyboardInterrupt(),
    "no_memory": lambda end: RoomError(
        f"there is no memory left after {end.report.pops:,} pops; limit the run with max_items or max_bytes, or give "
        "it fewer facts or less to derive"
    ),
}
UNUSABLE = frozenset({"host_error", "interrupted", "no_memory"})
"""Ends after which a chart can neither be read nor go on."""


def check_end(end: End) -> None:
    """Raises or warns where the end of a run says so."""
    if end.status in _RAISED:
        raise _RAISED[end.status](end)
    if end.report.underflow:
        warn(
            f"{end.report.underflow:,} items underflowed to zero or lost digits in the real semiring; "
            "use semiring log, which never underflows"
        )
