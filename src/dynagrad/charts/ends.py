"""Termination of runs: the status that native code returns, turned into errors and warnings.

`STATUSES` is one table of what they mean, for runs of charts, runs over jets, runs repeated with derivatives, backward
passes, and collections of derivations. Nothing is run or stopped here: limits are in `limits.py`, and native code sets
the status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from ..errors import Error, NotConverged, ProgramError, RoomError, ValueRangeError, counted, cut, warn
from ..plan.model import Stage
from ..plan.traits import QUIET, repeats, selects, sweeps
from ..rules.semirings import SEMIRINGS
from ..runtime.engine import Failure, out_of_memory
from ..runtime.shared import numbers
from ..semirings import Scale
from .binding.decoding import place_text, reported
from .binding.loading import Prepared

_NO_INTEGER = numbers("NoInteger")


class Phase(Enum):
    """What ended."""

    RUN = auto()  # a chart's own run
    JETS = auto()  # a run over jets
    REPEATED = auto()  # a run that was repeated for its derivatives
    BACKWARD = auto()  # a backward pass
    COLLECTING = auto()  # the collection of an item's derivations


@dataclass(frozen=True)
class Collected:
    """What was collected: the derivations of an item, by predicate and codes, and how many instances are the most."""

    key: str
    codes: Sequence[int]
    most: int


@dataclass(frozen=True)
class End:
    """How something ended: a name of `STATUS` in `runtime/engine.py`, and the native chart to say more about it."""

    status: str
    prepared: Prepared
    scale: Scale
    phase: Phase = Phase.RUN
    collected: Collected | None = None

    @property
    def report(self) -> Any:
        return self.prepared.chart.report


def _at_limit(end: End) -> NotConverged:
    report = end.report
    return NotConverged(
        f"the run stopped after {counted(report.pops, 'pop')} at its limit on {end.status}: "
        f"{counted(report.items, 'item')}, {counted(report.bytes, 'byte')}. "
        f"Raise max_{end.status}, or stop earlier with max_pops, timeout or until; "
        "the chart so far is in this error's .chart"
    )


def _jets_at_limit(end: End) -> NotConverged:
    return NotConverged(
        f"the run with its derivatives stopped at its limit on {end.status}; raise max_{end.status}, or stop earlier "
        "with max_pops, timeout or until"
    )


def _jets_diverge(end: End) -> NotConverged:
    return NotConverged(
        f"the derivatives of {reported(end.prepared, end.report)} do not converge, though its value does; stop "
        "earlier with max_pops, timeout or until"
    )


def _not_finite(end: End) -> ValueRangeError:
    return ValueRangeError(
        f"a derivative of {reported(end.prepared, end.report)} became NaN or infinite, and is the first that did"
    )


def _bad_value(end: End) -> ValueRangeError:
    item, scale = reported(end.prepared, end.report), end.scale
    if scale.shape == "count":
        return ValueRangeError(f"{item} is too large to be counted: at least 2**128 - 1 derivations")
    around = _around(cycle(end.prepared), " -> ", closed=True)
    if scale.name == "plain":
        grown = f"since values grow around a cycle ({around}), or " if around else ""
        return ValueRangeError(
            f"{item} became NaN, or infinite though its antecedents are finite, and is the first item that did: "
            f"{grown}by numbers that are too large, as exp(800), by the log of 0, by 1/0, 0/0, inf - inf, or a "
            "function outside its domain. A log of a sum of exps stays in range as `log+=`, or as lse(a, b); "
            "`if ... then ... else ...` can avoid a point"
        )
    smaller = _SMALLER[SEMIRINGS[scale.name].numbers]
    again = end.report.pops > end.report.items and _of_stage(end, repeats)
    return ValueRangeError(
        f"{item} became NaN or left the range of the {scale.name} semiring: it overflowed, and is the first item that "
        f"did{'. A sum around a cycle may grow without end' if again else ''}{around and ': '}{around}. {smaller}"
    )


_SMALLER = {
    **dict.fromkeys(("weights", "pairs"), "Where numbers are only very large or very small, use log"),
    "logs": "Logs, and their sums, are numbers of size up to 1.8e308: make those of the facts smaller",
    "costs": "Costs, and their sums, are numbers of size up to 1.8e308: make those of the facts smaller",
    "numbers": "Make the values of the facts smaller",
}
"""What to do about values that are too large, by what the table of semirings calls them."""


def _of_stage(end: End, trait: Callable[[Stage], bool]) -> bool:
    """Whether the stage of the item that a report names has a trait."""
    plan = end.prepared.compiled.plan
    key = next((t.key for t in plan.tables.values() if t.number == end.report.error_table), None)
    return key is not None and trait(plan.stage_of[key])


def _selects(end: End) -> bool:
    """Whether the item that a report names has the best of its contributions."""
    plan = end.prepared.compiled.plan
    table = next((t for t in plan.tables.values() if t.number == end.report.error_table), None)
    return table is not None and not sweeps(plan.stage_of[table.key]) and selects(plan, table)


def _two_values(end: End) -> ValueRangeError:
    return ValueRangeError(
        f"{reported(end.prepared, end.report)} is given two different values by `=`; "
        "use +=, max= or min= where several contributions may meet"
    )


def _no_order(end: End) -> Error:
    """The error for a user's semiring whose plus and less disagree about two values that met."""
    user = end.prepared.compiled.plan.user
    assert user is not None and user.less is not None
    a, b = end.prepared.chart.disagreeing(user.width)

    def text(value: Sequence[float]) -> str:
        return repr(value[0]) if user.scalar else repr(tuple(value))

    pairs = [(a, b)] if a == b else [(a, b), (b, a)]
    said = [f"less({text(x)}, {text(y)}) is {bool(user.at([user.less], x, y)[0])}" for x, y in pairs]
    if a != b:
        said.insert(0, f"plus({text(a)}, {text(b)}) is {text(user.at(user.plus, a, b))}")
    return Error(
        f"the semiring's plus and less do not agree, at {reported(end.prepared, end.report)}: {', '.join(said[:-1])}"
        f"{' and ' if said[:-1] else ''}{said[-1]}. plus(a, b) must be b where less(a, b), which says that b is the "
        "better one, and a where less(b, a); no value is better than itself. Mend less, or leave it out"
    )


def _integer_overflow(end: End) -> ValueRangeError:
    """The report's table says whether it is an overflow or a division by zero, its cell in which rule: see `RuleScope`
    in `codegen/rules/scope.py`."""
    report, rules = end.report, end.prepared.compiled.plan.rules
    rule = next((r for r in rules.rules if r.number == report.error_cell), None)
    where = ""
    if rule is not None and report.error_table < -1:
        name = f"{cut(rules.source.filename)}, line" if rules.source.filename else "line"
        where = f", in the rule `{cut(rule.text)}` ({name} {rule.span.line})"
    if report.error_table == -1 - _NO_INTEGER.BY_ZERO:
        return ValueRangeError(
            f"integer arithmetic in an argument divided by zero, with // or mod{where}; leave zero out with a "
            "condition, such as `for N != 0`"
        )
    return ValueRangeError(
        f"integer arithmetic in an argument left the range -2**31 .. 2**31-1{where}; bound the arguments with a "
        "condition, such as `for I < N`"
    )


def _too_many_instances(end: End) -> NotConverged:
    assert end.collected is not None
    return NotConverged(
        f"the forest of {cut(place_text(end.prepared, end.collected.key, end.collected.codes))} has more than "
        f"{counted(end.collected.most, 'instance')}, its limit; raise limit=, or ask for an item that fewer derive"
    )


def _host_error(end: End) -> ValueRangeError:
    return ValueRangeError("the native function behind an external predicate said that it failed")


def function_failed(prepared: Prepared, report: Any) -> Error:
    """The error for a function of values that failed inside a rule."""
    names, said = prepared.chart.failed_function()
    which = f"one of the functions {names}" if "," in names else f"the function {names}"
    return Error(f"{which} failed for {reported(prepared, report)}: {said or 'it did not return'}")


def out_of_time(where: str) -> NotConverged:
    """The error for derivatives that took too long."""
    return NotConverged(f"the limit on time was met {where}; raise timeout. The chart is unchanged")


def near_critical(item: str) -> str:
    """The message for a derivative without a correct digit, near a singular system."""
    return (
        f"the derivative with respect to {item} has no correct digit: the weights around its cycle are so close to "
        "those at which its value becomes infinite, or ceases to exist, that the value itself has only half of its "
        "digits (see chart.error_bound). Make the weights around the cycle smaller"
    )


def _diverges(end: End) -> NotConverged:
    prepared, report = end.prepared, end.report
    items = cycle(prepared)
    around = _around(items, " -> ", closed=True) or reported(prepared, report)
    what = "has no finite value"
    if end.scale.shape == "count":
        why = "its derivations go around a cycle, so that there are infinitely many"
    elif report.radius > 0:
        why = f"what goes around a cycle does not shrink (the spectral radius is {report.radius:.12g})"
    elif prepared.compiled.plan.selective or (items and _selects(end)):
        why = "values around a cycle improve each time around, without end"
    else:
        what, why = "does not settle", "iterating its cycle does not converge"
    parts = ["the items, in this order, in .cycle"] if items else []
    parts += ["the spectral radius in .radius"] if report.radius else []
    before = "what was computed before in .chart"
    has = ", ".join([*parts, f"and {before}"]) if parts else before
    return NotConverged(
        f"{cut(reported(prepared, report), 80)} {what}: {why} ({around}). This error has {has}",
        cycle=items,
        radius=report.radius or None,
    )


def _around(items: Sequence[str], between: str, *, closed: bool) -> str:
    """A cycle of items, for messages: all of them where they are few, and where it is `closed` the first again."""
    shown = [cut(item, 40) for item in items]
    if len(shown) > 5:
        shown = [*shown[:4], "...", shown[-1]]
    return between.join([*shown, *(shown[:1] if closed else [])])


def _quiet(end: End) -> NotConverged:
    return NotConverged(
        f"the run stopped after {counted(end.report.pops, 'pop')}, the last {QUIET:,} of which changed no digit of "
        "any item"
        f"{' of an output' if end.prepared.compiled.plan.rules.outputs else ''}: "
        "arguments may grow without end. Bound them with a condition, such as `for N < 1000`; the chart so far is in "
        "this error's .chart"
    )


def cycle(prepared: Prepared) -> tuple[str, ...]:
    """The items of the cycle that ended a run, each an antecedent of the next."""
    keys = {t.number: (t.key, t.arity) for t in prepared.compiled.plan.tables.values()}
    found = []
    for number, cell in prepared.chart.cycle():
        key, arity = keys[number]
        found.append(place_text(prepared, key, prepared.chart.arguments(number, cell, arity)))
    return tuple(found[::-1])


def _cyclic(end: End) -> Error:
    prepared, report = end.prepared, end.report
    items = cycle(prepared)
    around = _around(items, ", ", closed=False) or reported(prepared, report)
    asked = prepared.compiled.plan.rules.solve
    if asked == "auto":
        why = "and a product (`*=`) of values that still change is not monotone, so it is not iterated"
    elif asked == "linear":
        why = "where rules multiply several of its items, or weights have signs and do not shrink what goes around"
    else:
        why = "where weights have signs"
    out = "" if asked == "auto" else f"; leave out `:- solve {asked}.`, and such cycles are iterated"
    return ProgramError(f"values go around a cycle of the facts, through {around}, {why}{out}")


def unsettled(item: str) -> str:
    """The message for derivatives that do not converge around a cycle."""
    return (
        f"the derivative with respect to {item} does not settle: values around a cycle do not change, since a weight "
        "there is zero, but derivatives grow without end, or converge too slowly. Make the weights around the cycle "
        "smaller, or break it"
    )


_Error = Callable[[End], BaseException]


def _always(error: _Error) -> dict[Phase, _Error | None]:
    """The same error, whatever ended."""
    return {Phase.RUN: error, Phase.REPEATED: error, Phase.BACKWARD: error}


@dataclass(frozen=True)
class Outcome:
    """What a status means: the error that it is in each phase, if any, and whether the chart can be used on."""

    errors: Mapping[Phase, _Error | None] = field(default_factory=dict)
    usable: bool = True  # whether the chart can be read and resumed
    no_room: bool = False  # whether memory was wanting, by a limit or the machine's
    final: bool = False  # whether a fresh run would end in the same way
    resumes: bool = False  # whether it is the end of a run that can go on


STATUSES: Mapping[str, Outcome] = {
    "done": Outcome({Phase.REPEATED: None, Phase.BACKWARD: None}),
    "max_pops": Outcome({Phase.REPEATED: None}, resumes=True),
    "until": Outcome(resumes=True),
    "paused": Outcome(resumes=True),
    "timeout": Outcome(
        {
            Phase.REPEATED: lambda end: out_of_time("when the run was repeated for its derivatives"),
            Phase.BACKWARD: lambda end: out_of_time("in the backward pass"),
            Phase.COLLECTING: lambda end: NotConverged(
                "the limit on time was met while derivations were collected; raise timeout"
            ),
        },
        resumes=True,
    ),
    "items": Outcome(
        {Phase.RUN: _at_limit, Phase.JETS: _jets_at_limit, Phase.COLLECTING: _too_many_instances},
        no_room=True,
        resumes=True,
    ),
    "bytes": Outcome(
        {
            Phase.RUN: _at_limit,
            Phase.JETS: _jets_at_limit,
            Phase.REPEATED: lambda end: NotConverged(
                f"the run with its derivatives needs more than {counted(end.report.bytes, 'byte')}, the limit that "
                "the chart "
                "was run with; run it with a larger max_bytes, or stop it earlier with max_pops"
            ),
            Phase.BACKWARD: lambda end: out_of_memory(Failure.LIMITED),
            Phase.COLLECTING: lambda end: RoomError(
                "the forest takes more than the limit on bytes that the chart was run with; raise max_bytes"
            ),
        },
        no_room=True,
        resumes=True,
    ),
    "no_memory": Outcome(
        {
            Phase.RUN: lambda end: RoomError(
                f"there is no memory left after {counted(end.report.pops, 'pop')}; limit the run with max_items or "
                "max_bytes, or give it fewer facts or less to derive"
            ),
            Phase.REPEATED: lambda end: out_of_memory(Failure.EXHAUSTED),
            Phase.BACKWARD: lambda end: out_of_memory(Failure.EXHAUSTED),
        },
        usable=False,
        no_room=True,
    ),
    "interrupted": Outcome(_always(lambda end: KeyboardInterrupt()), usable=False, final=True),
    "host_error": Outcome(
        {
            Phase.RUN: _host_error,
            Phase.REPEATED: lambda end: Error(
                "a function behind an external predicate failed when the run was repeated for its derivatives"
            ),
        },
        usable=False,
        final=True,
    ),
    "function_failed": Outcome(_always(lambda end: function_failed(end.prepared, end.report))),
    "bad_value": Outcome({Phase.RUN: _bad_value, Phase.JETS: _not_finite}),
    "two_values": Outcome({Phase.RUN: _two_values}),
    "no_order": Outcome({Phase.RUN: _no_order}),
    "integer_overflow": Outcome({Phase.RUN: _integer_overflow}),
    "diverges": Outcome({Phase.RUN: _diverges, Phase.JETS: _jets_diverge}),
    "quiet": Outcome({Phase.RUN: _quiet, Phase.JETS: _jets_diverge}),
    "cyclic": Outcome({Phase.RUN: _cyclic}),
    "near_critical": Outcome(
        _always(lambda end: ValueRangeError(near_critical(reported(end.prepared, end.report)))),
    ),
    "unsettled": Outcome(_always(lambda end: ValueRangeError(unsettled(reported(end.prepared, end.report))))),
    "bad_adjoint": Outcome(
        {Phase.BACKWARD: lambda end: first_going_backward(end.prepared, reported(end.prepared, end.report))}
    ),
}
"""What each status of native code means to those who read the chart."""


def _error(end: End) -> _Error | None:
    errors = STATUSES[end.status].errors
    match end.phase:
        case Phase.RUN:
            return errors.get(Phase.RUN)
        case Phase.JETS:  # what is wrong with values was said before
            return errors.get(Phase.JETS, errors.get(Phase.RUN))
        case Phase.REPEATED:  # it should have ended as the first time
            return errors.get(Phase.REPEATED, _not_finite)
        case Phase.BACKWARD:
            return errors.get(Phase.BACKWARD, _unexpected)
        case Phase.COLLECTING:
            return errors.get(Phase.COLLECTING, errors.get(Phase.RUN))


def check_end(end: End, chart: Any = None) -> None:
    """Raises or warns for the end of what native code did; a NotConverged of a run carries the `chart`."""
    make = _error(end)
    if make is not None:
        error = make(end)
        if isinstance(error, NotConverged):
            error.chart = chart
        raise error
    if end.phase is Phase.RUN and end.report.underflow:
        warn(
            f"{counted(end.report.underflow, 'item')} underflowed to zero or lost digits in the real semiring; "
            "use semiring log, which never underflows"
        )


def _unexpected(end: End) -> Error:
    return Error(f"the backward pass ended with {end.status}")


def first_going_backward(prepared: Prepared, item: str) -> ValueRangeError:
    return ValueRangeError(
        f"the gradient with respect to {cut(item)} became NaN or infinite, and is the first that did, going backward"
        f"{use_log(prepared)}"
    )


def use_log(prepared: Prepared) -> str:
    name = prepared.compiled.plan.semiring
    return "; where numbers are only very large, use log" if name in ("real", "plain", "expectation") else ""
