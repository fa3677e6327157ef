"""Whether the derivations of an item are there, where a run ended early, and whether they add up to its value.

A forest is made of all rule instances whose items are in the chart. After a complete run these are the derivations of
the item. Where a run stopped, what some of the items had still to get is not in the value: so derivations are there for
items that are known to be final. Pruning and beams hold updates back: what they held back of an item that is in the
chart is told in a warning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import QueryError, warn
from ..plan.traits import is_derived, pops_final_items, searches, selects, solves, sweeps
from ..rules.semirings import SEMIRINGS
from .binding.decoding import place_text
from .binding.loading import Prepared
from .changes import translated
from .ends import STATUSES
from .lookup import place_of, words_at
from .run import Codes, Run, Words

_ADDITIVE = frozenset({"+=", "log+=", "*="})
"""The aggregators with which an item's value says that nothing is to come; a maximum may be reached by more."""


_POPPING = frozenset({"levels", "heap", "queue", "stack"})
"""The strategies whose runs have ended when no item waits."""

_SMALL = 1e-9
"""What part of a value an update is that is not told of."""


@dataclass(frozen=True)
class Query:
    """Whose derivations are wanted: an item, by its predicate and codes, and the items that it is derived from."""

    prepared: Prepared  # of the class that collects
    key: str
    codes: tuple[int, ...]
    nodes: Mapping[str, Codes]
    cyclic: Callable[[], bool]
    best: bool
    """Whether the best one is wanted, and no others."""

    @property
    def text(self) -> str:
        return place_text(self.prepared, self.key, self.codes)


def may_be_partial(run: Run) -> bool:
    """Whether the values of a run may leave something out, so that derivations are to be looked at."""
    rules = run.context.rules
    return run.status != "done" or bool(rules.prunes or rules.beams or run.ready().chart.report.unfinished)


def cut_short(run: Run) -> bool:
    """Whether a run ended within a stage whose popped items may have values to come of any size: one that iterates."""
    prepared = run.require()
    plan, report = prepared.compiled.plan, prepared.chart.report
    if run.status == "done" or report.stage >= len(plan.stages):
        return False
    stage = plan.stages[report.stage]
    if stage.final or not (searches(stage) or sweeps(stage)):
        return False
    best_first = not sweeps(stage) and all(selects(plan, plan.tables[key]) for key in stage.keys)
    return not (best_first and (run.status == "until" or not report.pending))


def adds_up(run: Run, asked: Query) -> bool:
    """Whether values of the chart are sums over the derivations in it, where its semiring adds them up.

    Raises QueryError where the run stopped before the item was known to be final. Warns where pruning or a beam held
    back a part of an item.
    """
    rules, report = run.context.rules, run.ready().chart.report
    if run.status != "done":
        if report.partial or not (_settled(run, asked) or _reached(run, asked)) or _waiting(run, asked) is not None:
            raise _stopped(run, asked)
        return False
    if report.unfinished and asked.cyclic():
        raise QueryError(
            f"{asked.text} has no derivations yet: the run ended while more than its tolerance was to come around a "
            "cycle (chart.converged is False), so their weights add up to more than the value; call "
            "chart.run(tolerance=None), which goes on"
        )
    if rules.prunes or rules.beams:
        held = _waiting(run, asked)
        if held is not None:
            warn(
                f"pruning or a beam held back a part of {held} after it became part of the chart: its value, and that "
                f"of {asked.text}, leave out derivations that are enumerated (see chart.pending)"
            )
            return False
    return True


def early(run: Run, prepared: Prepared, item: str, order: int = 0) -> str | None:
    """What is to be said of a value that comes without its chart, where the run stopped before the item was final.

    Values of the chart have the components of jets of this order.
    """
    if run.status == "done" or not STATUSES[run.status].resumes:
        return None
    key, codes = place_of(run.context, prepared, item)
    if run.status == "until" and place_of(run.context, prepared, run.limits.until) == (key, codes):
        return None
    plan, at = prepared.compiled.plan, prepared.chart.report.stage
    stage = plan.stage_of.get(key)
    if stage is None or stage.number < at:
        return None  # what only facts have, or what had ended
    if at == len(plan.stages) - 1 and pops_final_items(plan.stages[at]) and not _any_waits(run, prepared, order):
        return None
    return (
        f"the run stopped early, {stopped_at(run)}, and {item} is not known to be final: its value is what was found "
        "until then, and so are its derivatives"
    )


def _stopped(run: Run, asked: Query) -> QueryError:
    if not STATUSES[run.status].resumes:
        return QueryError(f"{asked.text} has no derivations: the run ended in an error, so its value is not final")
    return QueryError(
        f"{asked.text} is not known to be final: the run stopped early, {stopped_at(run)}, and derivations are those "
        "of the finished chart; call chart.run(), which continues it"
    )


def stopped_at(run: Run) -> str:
    """Where a run stopped."""
    return "at the item of until" if run.status == "until" else f"at its limit on {run.status}"


def _settled(run: Run, asked: Query) -> bool:
    """Whether all items are final: those of stages that ended, and those popped in an order in which each is final."""
    prepared = run.ready()
    plan, at = prepared.compiled.plan, prepared.chart.report.stage
    if at == len(plan.stages) - 1 and pops_final_items(plan.stages[at]) and not _any_waits(run, prepared):
        return True  # the limit was met when there was nothing left to do
    for key in asked.nodes:
        table = plan.tables[key]
        if not is_derived(table):
            continue
        stage = plan.stage_of[key]
        if stage.number > at or (
            stage.number == at and (not stage.final or solves(stage) or table.sink or plan.selective)
        ):
            return False
    return True


def _any_waits(run: Run, prepared: Prepared, order: int = 0) -> bool:
    width = run.context.scale.width << order
    tables = [t for t in prepared.compiled.plan.tables.values() if is_derived(t)]
    return any(len(prepared.chart.items(t.number, t.arity, width, pending=True)[0]) for t in tables)


def _reached(run: Run, asked: Query) -> bool:
    """Whether it is the item that the run was to stop at, which is final; of a maximum, with its best derivation."""
    if run.status != "until" or run.limits.until is None:
        return False
    key, codes = place_of(run.context, asked.prepared, run.limits.until)
    if codes is None or (key, tuple(codes)) != (asked.key, asked.codes):
        return False
    plan = run.ready().compiled.plan
    if plan.semiring == "plain":
        additive = all(
            plan.rules.predicates[key].aggregator in _ADDITIVE for key in asked.nodes if key in plan.stage_of
        )
    else:
        additive = not plan.selective
    return additive or (asked.best and plan.semiring != "boolean")


def _waiting(run: Run, asked: Query) -> str | None:
    """An item of the forest with an update that is not in its value, if there is one."""
    before = run.ready()
    width = run.context.scale.width
    for key, codes in asked.nodes.items():
        table = before.compiled.plan.tables.get(key)
        if table is None or not is_derived(table):
            continue
        updates, words = before.chart.items(table.number, table.arity, width, pending=True)
        if not len(updates):
            continue
        there = _among(codes, translated(before, asked.prepared, table.domains, updates))
        for place in np.flatnonzero(there).tolist():
            own = words_at(before, key, at := updates[place].tolist(), width)
            if own is None or _matters(run, before.compiled.plan.semiring, own, words[place]):
                return place_text(before, key, at)
    return None


def _matters(run: Run, semiring: str, own: Words, update: Words) -> bool:
    """Whether a value would be another one with an update."""
    row, scale = SEMIRINGS[semiring], run.context.scale
    if semiring == "user":
        return True
    value, more = (float(x[0]) if isinstance(x, tuple) else float(x) for x in map(scale.value, (own, update)))
    if row.adds_logs:
        return more > value + math.log(_SMALL)
    if row.selective:
        return more != value
    return abs(more) > _SMALL * abs(value)


def _among(codes: Codes, updates: Codes) -> npt.NDArray[np.bool_]:
    """Which of the updates are of one of these items."""
    both = np.concatenate([codes, updates])
    if not both.shape[1]:
        return np.full(len(updates), len(codes) > 0)
    _, numbers = np.unique(both, axis=0, return_inverse=True)
    numbers = numbers.reshape(-1)
    return np.asarray(np.isin(numbers[len(codes) :], numbers[: len(codes)]))
