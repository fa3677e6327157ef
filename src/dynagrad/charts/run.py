"""The run behind a chart: started from facts, resumed within limits, brought up to date when facts change, repeated.

A run goes from facts to a fixed point in native code. When facts change it is updated incrementally (`changes.py`)
where that costs less than a fresh run; for derivatives it is repeated with a tape or over jets (`replay.py`). Nothing
here knows `chart.py`, what users see of it; a finished run is read by `lookup.py` and `derivatives/queries.py`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import Error, NotConverged, QueryError, RoomError, shown
from ..facts.relation import Relation
from ..plan.model import Derivatives
from ..plan.traits import resting
from ..rules.syntax import Item
from ..runtime.engine import STATUS
from ..runtime.library import Stop
from . import lookup
from .binding.binding import Purpose, SetupLimits
from .binding.context import ProgramContext
from .binding.database import Database
from .binding.decoding import popped
from .binding.loading import Directions, LoadedRun, Prepared
from .changes import MOST_ROWS, can_change, change
from .ends import STATUSES, End
from .externals import connect
from .limits import NO_LIMITS, PAUSE, Limits
from .progress import Progress
from .replay import Replay, Segment, differentiable

Codes = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Start:
    """How a run is started, or started once more: its limits, and the derivatives that its class computes."""

    limits: Limits
    began: float
    """When the call began, by `time.monotonic`: the limit on time counts from there."""
    progress: bool = False
    derivatives: Derivatives | None = None
    directions: Directions | None = None
    iterate: bool | None = None
    """Whether cycles are iterated, not solved; without, a limit on pops or a tolerance means that they are."""


class Run:
    """The run of one chart, resumed or restarted as its limits and facts change."""

    def __init__(self, facts: Database, limits: Limits, spent: float = 0.0) -> None:
        """`spent` are seconds that count towards the limit on the time of the first run."""
        self.spent = spent
        self.patient = False  # whether compiling is outside the limit on time
        self.facts = facts
        self.limits = limits
        self.prepared: Prepared | None = None
        self.loaded: LoadedRun | None = None  # its facts, kept from a run before
        self.stale = True
        self.status = "done"
        self.iterate = False  # cycles are iterated, not solved
        self.taped: Prepared | None = None  # the same run, repeated with a tape
        self._touched: dict[str, list[Relation]] = {}  # facts that changed since the last complete run
        self._complete = False
        self._raised: list[BaseException] = []  # by functions behind external predicates, in this run
        self._columns: dict[str, tuple[Codes, Words]] = {}  # items of predicates that were read, until it runs on
        self._history: list[Segment] = []

    @property
    def context(self) -> ProgramContext:
        return self.facts.context

    def bring_up(self, wanted: Limits, progress: bool = False, stop: Stop | None = None) -> End:
        """Brings the items up to date: by an incremental update, a fresh run, or on from where the last one stopped.

        How that ended, here and below, is for `check_end`, which warns and raises.
        """
        if not isinstance(progress, bool):
            raise Error(f"progress must be True or False, not {shown(progress)}")
        how, self.spent = Start(wanted, time.monotonic() - self.spent, progress), 0.0
        if (
            self.prepared is None
            or self.stale
            or self.prepared.chart.report.partial
            or wanted.until != self.limits.until
            or (self.prepared.chart.report.unfinished and wanted.tolerance != self.limits.tolerance)
        ):
            updated = self._update(wanted)
            if updated is not None:
                return updated
            self.start(how)
        self.limits = wanted
        try:
            return self.resume(how, stop)
        finally:
            self.patient = False

    def _update(self, limits: Limits) -> End | None:
        """Updates a complete chart incrementally; None where only a fresh run will do."""
        before = self.prepared
        free = replace(limits, tolerance=None) == NO_LIMITS
        if before is None or not self._complete or not self._touched or not free:
            return None
        if not can_change(self.context):
            return None
        if sum(r.count for rows in self._touched.values() for r in rows) > MOST_ROWS:
            return None
        self._complete = False
        self._columns.clear()
        self._raised.clear()
        settings = limits.settings(0, 0)
        iterate = limits.tolerance is not None
        try:
            after = change(self.facts, before, self._touched, settings, self._raised, iterate=iterate)
        except (NotConverged, RoomError):  # it takes more than a fresh run
            return None
        if after is None:
            return None
        self.prepared, self.stale, self.limits = after, False, limits
        self._history, self.taped = [Segment(None, settings.tolerance, bool(settings.refine))], None
        return self._ended(after.chart.report)

    def run_in_class(self, derivatives: Derivatives | None, directions: Directions) -> tuple[Start, End]:
        """Runs once, from the start, in a class with these derivatives.

        Where there are directions, the values in the native chart are jets, so `lookup` cannot read them.
        """
        how = Start(self.limits, time.monotonic(), False, derivatives, directions)
        self.start(how)
        return how, self.resume(how, None)

    def settled(self, how: Start) -> Prepared:
        """The chart of a run that was started so, and has ended, with all derivatives in it."""
        prepared, directions = self.ready(), how.directions or Directions()
        if directions.order and self.status != "done" and not prepared.chart.report.partial:
            # updates at rest are applied up to the stage that the run stopped in, which is known only now
            if resting(prepared.compiled.plan):
                plan = prepared.compiled.plan
                self.prepared = prepared = self.replay().rerun(
                    plan.adjoint, directions, stop=self.limits.stop(how.began)
                )
        return prepared

    def start(self, how: Start) -> float:
        """Sets up a run.

        Returns the seconds of compiling that the limit on time leaves out: none, unless the run is `patient`.
        """
        binding, limits, directions = self.facts.binding, how.limits, how.directions
        compiling = binding.compiling
        limited = limits.max_pops is not None or limits.tolerance is not None
        self.iterate = limited if how.iterate is None else how.iterate
        prepared = self._over_kept_facts(limits, directions) or binding.prepare(
            self.facts.run,
            Purpose(
                None if limits.until is None else self.item(limits.until).key,
                derivatives=binding.derivatives if directions is None else how.derivatives,
                iterate=self.iterate,
            ),
            SetupLimits(
                limits.room,
                None if limits.timeout is None or self.patient else how.began + limits.timeout,
                Progress.compiling if how.progress else None,
            ),
            overrides=self.facts.overrides,
            directions=directions,
        )
        connect(self.context, prepared, self._raised)
        self.prepared = prepared
        self.stale = False
        self._history = []
        return binding.compiling - compiling if self.patient else 0.0

    def _over_kept_facts(self, limits: Limits, directions: Directions | None) -> Prepared | None:
        """A chart over facts that were kept from an earlier run, if there are such."""
        if self.loaded is None or limits.until is not None or directions is not None or self.facts.overrides:
            return None
        return self.facts.binding.set_up_loaded(self.loaded, self.iterate, limits.room)

    def kept_facts(self) -> LoadedRun | None:
        """The loaded facts of this run, for a later one; None where they cannot be kept, or are kept already."""
        prepared = self.require()
        if self.loaded is not None and prepared.chart.world is self.loaded.world:
            return None
        return self.facts.binding.kept_facts(prepared, self.facts.run, self.iterate)

    def set_up(self, progress: bool = False) -> None:
        """Prepares the first run, up to its native part; `bring_up` is to follow. Its limit on time leaves out
        compiling."""
        self.patient = True
        began = time.monotonic() - self.spent
        began += self.start(Start(self.limits, began, progress))
        self.spent = max(time.monotonic() - began, 0.0)

    def resume(self, how: Start, stop: Stop | None) -> End:
        """Runs on, within the limits."""
        prepared, limits = self.prepared, how.limits
        assert prepared is not None
        report = prepared.chart.report
        settings = limits.settings(report.pops, report.nanoseconds)
        if limits.timeout is not None:  # reading facts and compiling count as well
            spent = int((time.monotonic() - how.began) * 1e9)
            settings.timeout_ns = max(settings.timeout_ns - spent, report.nanoseconds)
        if limits.until is not None and prepared.stops:
            item = self.item(limits.until)
            table = prepared.compiled.plan.tables[item.key]
            codes = lookup.codes_of(self.context, prepared, item.key, lookup.ground(item))
            if codes is not None:
                settings.until_table = table.number
                settings.until_cell = prepared.chart.locate(table.number, codes)
        self._columns.clear()
        self._raised.clear()
        self._complete = False
        self.taped = None
        try:
            if how.progress:
                settings.pause_ns = PAUSE
                with Progress() as bar:
                    while STATUS[prepared.chart.run(settings, stop).status] == "paused":
                        bar.show(report.pops, report.items, report.pending)
            else:
                prepared.chart.run(settings, stop)
        except BaseException:
            self.stale = True
            raise
        if STATUS[report.status] == "cyclic" and self.context.can_iterate:
            how = replace(how, iterate=True)
            return self.resume(replace(how, began=how.began + self.start(how)), stop)
        pops = None if report.status == 0 else report.pops
        self._history.append(Segment(pops, settings.tolerance, bool(settings.refine)))
        return self._ended(report)

    def _ended(self, report: Any) -> End:
        """Takes note of how a run ended. Raises what a function behind an external predicate raised."""
        self.status = STATUS[report.status]
        self._complete = self.status == "done" and not report.partial and not self._raised
        if self._complete:
            self._touched.clear()
        if self._raised or not STATUSES[self.status].usable:
            self.stale = True
        if self._raised:
            raise self._raised[0]
        return End(self.status, self.require(), self.context.scale)

    def require(self) -> Prepared:
        if self.prepared is None:
            raise QueryError("this chart has not been run; call chart.run() first")
        return self.prepared

    def ready(self) -> Prepared:
        prepared = self.require()
        if self.stale:
            raise QueryError("the facts of this chart changed, or its run was interrupted; call chart.run() first")
        return prepared

    def item(self, text: Any) -> Item:
        return lookup.read_item(self.context, self.prepared, text)

    def items(self, prepared: Prepared, key: str) -> tuple[Codes, Words]:
        if key not in self._columns:
            table = prepared.compiled.plan.tables[key]
            width = self.context.scale.width
            self._columns[key] = prepared.chart.items(table.number, table.arity, width)
        return self._columns[key]

    def tape(self, stop: Stop | None = None) -> Prepared:
        """This run with a tape for the backward pass: the chart's own, if it kept one, or a repetition."""
        prepared = self.ready()
        if prepared.compiled.plan.adjoint:
            return prepared
        if self.taped is None:
            self.taped = self.replay().rerun(True, stop=stop)
            self.facts.binding.keep_tapes()
        return self.taped

    def replay(self) -> Replay:
        """This run as a value that can be repeated. Raises where it cannot be differentiated."""
        prepared = self.ready()
        differentiable(self.context.scale)
        if prepared.chart.report.partial:
            raise QueryError(
                "the run was stopped in the middle of a step, so it has no gradient; stop it with max_pops instead"
            )
        until = None if self.limits.until is None else self.item(self.limits.until).key
        return Replay(
            self.facts,
            tuple(self._history),
            until,
            self.limits.room,
            0 if prepared.chart.report.status == 0 else prepared.chart.report.stage + 1,
            self.iterate,
        )

    def pops(self) -> list[tuple[str, tuple[Any, ...]]]:
        """The items that were popped, in order, as the tape has them."""
        return popped(self.tape())

    def change(self, facts: Database, relation: Relation) -> None:
        """Replaces the facts; `relation` has those that changed."""
        self.facts, self.stale = facts, True
        self._touched.setdefault(relation.key, []).append(replace(relation, values=None))
