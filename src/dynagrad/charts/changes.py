"""Incremental maintenance of a finished chart whose facts change: delete and rederive (DRed).

Gupta, Mumick and Subrahmanian (1993), "Maintaining views incrementally". The items of the old chart are entered into a
new one, of a class that is compiled for changes; then come the steps that `codegen/rules/incremental/changing.py`
describes: the old versions of the changed facts are deleted, then the new ones are added. Where cycles are solved, the
items that either of them reach are marked, and recomputed as `changing/resolve.hpp` describes.
Programs with negation, pruning or declared priorities, and some in plain arithmetic, need a fresh run by the caller.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..facts.relation import Relation, matching, take
from ..plan.model import Plan
from ..plan.traits import is_derived, is_facts, resolvable
from ..rules.syntax import Negation
from ..runtime.engine import STATUS, Change, Settings
from .binding.binding import Purpose, SetupLimits
from .binding.context import ProgramContext
from .binding.database import Database
from .binding.decoding import decode
from .binding.encoding import Encoding, typed_part
from .binding.loading import Prepared, coded, intern, load
from .binding.summary import ordered
from .ends import STATUSES
from .externals import connect

RESOLVED = frozenset({"once", "levels", "solve"})
"""The strategies of stages that can be updated in a program that solves cycles."""

MOST_ROWS = 5_000
"""With more changed facts than this, a fresh run is as quick as an update."""


def can_change(context: ProgramContext) -> bool:
    """Whether charts of a program can be updated without a fresh run."""
    rules = context.rules
    if rules.prunes or rules.beams or rules.priorities or not rules.rules:
        return False
    if any(isinstance(c, Negation) for r in rules.rules for c in r.conditions):
        return False
    if any(p.aggregator == "=" for p in rules.predicates.values()):  # facts of one item must agree
        return False
    # the number of derivations of an item of a clause is not kept
    return context.scale.name == "plain" or not any(p.aggregator == "|=" for p in rules.predicates.values())


def _has_differences(context: ProgramContext) -> bool:
    """Whether the update of an item can be the difference of two values."""
    defined = [p for p in context.rules.predicates.values() if p.defined]
    return context.scale.name != "plain" or all(p.aggregator == "+=" for p in defined)


def change(
    database: Database,
    before: Prepared,
    changed: Mapping[str, Sequence[Relation]],
    settings: Settings,
    raised: list[BaseException],
    *,
    iterate: bool = False,
) -> Prepared | None:
    """The chart for the facts of `database`, made from the chart `before`; None where only a fresh run will do.

    `changed` has, by predicate, the facts that may have changed; with `iterate`, cycles are iterated and not solved.
    Raises `NotConverged` or `RoomError` where memory runs out; a fresh run may still succeed.
    """
    context, ran = database.context, before.compiled.plan
    if ran.iterates or not (_resolved(ran) if ran.solves else _has_differences(context)):
        return None
    touched = _rows_among(context, before.relations, changed)  # rows that are gone or have another value
    after = database.binding.prepare(
        database.run,
        Purpose(changing=True, iterate=iterate),
        SetupLimits(settings.max_bytes),
        overrides=database.overrides,
        like=before.encoding,
    )
    plan = after.compiled.plan
    if (
        not _compatible(before.encoding, after.encoding)
        or plan.iterates
        or not (plan.resolves or _has_differences(context))
    ):
        return None
    came = _rows_among(context, after.relations, changed)  # rows that are new or have another value
    connect(database.context, after, raised)
    tables = plan.tables
    for key, table in tables.items():
        old = before.compiled.plan.tables.get(key)
        if is_derived(table) and old is not None:
            codes, words = before.chart.items(old.number, old.arity, context.scale.width)
            bounds = before.chart.bounds(old.number, len(codes)) if ran.solves else None
            if not after.chart.restore(table.number, translated(before, after, table.domains, codes), words, bounds):
                return None
    chart = after.chart
    keys = [k for k in {**touched, **came} if k in tables]
    if plan.resolves:
        return after if _resolve(context, before, after, keys, touched, came, settings) else None
    gone, stay = {}, {}
    for key in keys:
        relation = before.relations.get(key)
        if relation is None:
            relation = take(after.relations[key], np.zeros(0, np.int64))
        mask = touched.get(key, np.zeros(relation.count, np.bool_))
        old_table, codes = load(context, after, relation)
        chart.swap(tables[key].number, old_table, settled=True)
        gone[key] = codes[mask]
        stay[key] = load(context, after, take(relation, np.flatnonzero(~mask)))[0]
    if any(len(c) for c in gone.values()):
        chart.change(Change.BEGIN)
        for key in keys:
            chart.change(Change.MARK, tables[key].number, gone[key])
        for key in keys:
            chart.swap(tables[key].number, stay[key], settled=True)
        chart.change(Change.DELETE)
        chart.change(Change.DERIVE)
        status = STATUS[chart.run(settings).status]
        if status != "done":
            return None if STATUSES[status].no_room else after  # a fresh run keeps no marks and no deleted items
    arrived = {}
    for key in keys:
        new_table, codes = load(context, after, after.relations[key])
        chart.swap(tables[key].number, new_table, settled=False)
        rows = codes[came.get(key, np.zeros(len(codes), np.bool_))]
        arrived[key] = (new_table, np.unique(rows, axis=0) if rows.shape[1] else rows[:1])
    width = context.scale.width
    for key, (new_table, rows) in arrived.items():
        number = tables[key].number
        words = np.zeros((len(rows), width), np.uint64)
        for n, row in enumerate(rows.tolist()):
            found = chart.fact(number, row, width)
            if found is not None:
                words[n] = found
        chart.change(Change.ADD, number, rows, words)
        del new_table
    if STATUSES[STATUS[chart.run(settings).status]].no_room:
        return None
    for key, (new_table, _) in arrived.items():
        chart.swap(tables[key].number, new_table, settled=True)
    return after


def _resolve(
    context: ProgramContext,
    before: Prepared,
    after: Prepared,
    keys: Sequence[str],
    touched: Mapping[str, npt.NDArray[np.bool_]],
    came: Mapping[str, npt.NDArray[np.bool_]],
    settings: Settings,
) -> bool:
    """Marks what changed facts reach, and recomputes it, see `changing/resolve.hpp`.

    False where that failed, and only a fresh run will do.
    """
    chart, tables = after.chart, after.compiled.plan.tables
    gone = {key: take(before.relations[key], np.flatnonzero(touched[key])) for key in keys if key in touched}
    for key, relation in gone.items():
        columns = after.encoding.codes(context.domains, relation)
        if not ordered(context, after.compiled.plan, key, columns, after.ranks):
            return False
    for key in keys:
        if key in came:
            arrived = take(after.relations[key], np.flatnonzero(came[key]))
            chart.change(Change.MARK, tables[key].number, coded(context, after, arrived))
    now = {}
    for key in _looked_up_beside(after.compiled.plan, gone, keys):  # the marks of old facts need old antecedents
        now[key] = chart.weights[tables[key].number]
        earlier = before.relations.get(key, take(after.relations[key], np.zeros(0, np.int64)))
        chart.swap(tables[key].number, load(context, after, earlier)[0], settled=True)
    for key, relation in gone.items():
        chart.change(Change.MARK, tables[key].number, coded(context, after, relation))
    for key, table in now.items():
        assert table is not None
        chart.swap(tables[key].number, table, settled=True)
    status = STATUS[chart.run(settings).status]
    return status == "done" or STATUSES[status].final


def _resolved(plan: Plan) -> bool:
    """Whether no stage of a plan iterates."""
    return all(map(resolvable, plan.stages))


def _looked_up_beside(plan: Plan, gone: Collection[str], changed: Collection[str]) -> set[str]:
    """The changed predicates of facts that some join, driven by a fact that is gone, looks up."""
    assert plan.changes is not None
    return {
        antecedent.item.key
        for join in plan.changes.facts
        for i, antecedent in enumerate(join.rule.antecedents)
        if join.driver is not None and i != join.driver and join.rule.antecedents[join.driver].item.key in gone
        if antecedent.item.key in changed and is_facts(plan.tables[antecedent.item.key])
    }


def _rows_among(
    context: ProgramContext, relations: Mapping[str, Relation], changed: Mapping[str, Sequence[Relation]]
) -> dict[str, npt.NDArray[np.bool_]]:
    """The rows of relations that are among the changed facts, as masks by predicate."""
    found: dict[str, npt.NDArray[np.bool_]] = {}
    for key, parts in changed.items():
        if key in relations and relations[key].count:
            typed = [typed_part(context.domains, relations, part) for part in parts]
            masks = [matching(relations[key], part, None)[0] for part in typed]
            found[key] = np.logical_or.reduce(masks)
    return found


def _compatible(before: Encoding, after: Encoding) -> bool:
    """Whether the items of an old chart can be entered into one with another encoding."""
    for a, b in zip(before.domains, after.domains, strict=True):
        if a.kind != b.kind:
            return False
        if a.kind == "atom" and b.atoms[: len(a.atoms)] != a.atoms:
            return False
        if a.kind == "int" and a.high >= a.low and (b.low > a.low or b.high < a.high):
            return False
    return True


def translated(
    before: Prepared, after: Prepared, domains: tuple[int, ...], codes: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Codes of the chart before as codes of the one after: terms are interned anew, other codes are the same."""
    out = codes.copy()
    for i, d in enumerate(domains):
        if before.encoding.domains[d].kind == "term":
            used, places = np.unique(codes[:, i], return_inverse=True)
            values = decode(before, d, used)
            out[:, i] = intern(after, values)[places.reshape(-1)] if len(used) else codes[:, i]
    return out
