"""How a stage runs by its strategy: once, from an agenda, or in rounds. Those that are solved are in `components.py`.

An agenda holds pending updates. A pop merges the update of an item into its value in the chart, and then drives each
rule by it: the antecedents before the driver have the new value of the popped item, those after it the old one, so that
each instance is counted once (semi-naive evaluation). Items that no rule reads wait nowhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ...errors import Error
from ...rules.syntax import Integer
from ...rules.syntax import Item as Pattern
from ..model import Join, Stage, Strategy, TableLayout
from ..right_sides import own_value, to_node
from ..traits import clause_defined, fires_once, selects, solves, sweeps
from .chart import GroundItem, ground
from .components import solve
from .instances import GroundRule
from .numbers import Value, add, check, improves, negligible, number_of, plus_of, replaces, same, size
from .order import Agenda, Priority, agenda, level
from .state import MOST_STEPS, Source, State, Total, head_of
from .terms import match_all

TOLERANCE = 1e-16
"""Updates that are smaller than this part of a value rest."""


def run_stage(state: State, stage: Stage) -> None:
    """Runs a stage: afterwards its items are in the chart."""
    if fires_once(stage):
        _once(state, stage)
    elif sweeps(stage):
        _sweep(state, stage)
    elif solves(stage):
        solve(state, stage)
    else:
        _propagate(state, stage)
    for key in stage.keys:
        for value in state.chart.values.get(key, {}).values():
            check(key, value)


def starts(state: State, stage: Stage) -> Iterator[Source]:
    """What a stage begins with: facts of its predicates, and rules that fire once, by the chart as it is."""
    return itertools.chain(state.axioms(stage.keys), *map(state.instances_of, stage.fires))


def _totals(state: State, stage: Stage) -> dict[GroundItem, Total]:
    """The sums of what a stage begins with, by item, in the order in which they arrive."""
    totals: dict[GroundItem, Total] = {}
    for source in starts(state, stage):
        state.record(source)
        totals[head_of(source)] = state.plus(totals.get(head_of(source)), source)
    return totals


def _once(state: State, stage: Stage) -> None:
    for item, total in _totals(state, stage).items():
        state.enter(item, total)


def _sweep(state: State, stage: Stage) -> None:
    """All rules in rounds over the chart of the last round, until nothing changes (naive evaluation)."""
    for _ in range(MOST_STEPS):
        settled = True
        for item, total in _totals(state, stage).items():
            old = state.chart.value(item)
            settled = settled and old is not None and same(old, total[0])
            if old != total[0]:  # else the source of an earlier round stays, which reached it first
                state.enter(item, total)
        if settled:
            return
    raise Error(f"the values of {', '.join(stage.keys)} do not settle")


# -- from an agenda ----------------------------------------------------------------------------------------------------


def _propagate(state: State, stage: Stage) -> None:
    plan, chart = state.plan, state.chart
    waiting: Agenda = agenda(stage)
    pending: dict[GroundItem, Value] = {}
    sinks: dict[GroundItem, Value] = {}

    def send(source: Source, x: Value) -> None:
        """Adds a contribution to what is pending for its head."""
        head = head_of(source)
        table = plan.tables[head.key]
        updates = sinks if table.sink else pending
        before = updates.get(head, chart.value(head))
        state.record(source)
        if before is None or improves(plan, table, x, before):
            state.best[head] = source
        elif selects(plan, table) or clause_defined(plan, table):
            return  # it is no better; what clauses derive is worth one, however often it is derived
        updates[head] = plus_of(plan, table)(updates[head], x) if head in updates else x
        if not table.sink:
            waiting.push(head, _priority(state, stage, table, head, updates[head]))

    for source in starts(state, stage):
        send(source, state.contribution(source))
    for _ in range(MOST_STEPS):
        item = waiting.pop()
        if item is None:
            break
        table = plan.tables[item.key]
        update, old = pending.pop(item), chart.value(item)
        now = update if old is None else plus_of(plan, table)(old, update)
        if old is not None and replaces(plan, table):
            if now == old:
                continue
            update = now
        elif old is not None and (now == old or negligible(plan, update, old, TOLERANCE)):
            pending[item] = update
            continue
        check(item.key, now)
        chart.set(item, now)
        for join in stage.drives:
            if join.driver is not None and join.rule.antecedents[join.driver].item.key == item.key:
                for instance in state.instances_of(join, item.row):
                    driven = _driven(state, join, instance, update, now, old)
                    if driven is not None:
                        send(instance, driven)
    else:
        raise Error(f"the items of {', '.join(stage.keys)} do not settle")
    for sink, value in sinks.items():
        chart.set(sink, value)


def _driven(
    state: State, join: Join, instance: GroundRule, update: Value, now: Value, old: Value | None
) -> Value | None:
    """What an instance that is driven by a popped item adds to its head; None where it adds nothing.

    In a semiring the driver's factor is the update. In plain arithmetic right sides are not linear, so that a sum gets
    the new contribution less the old one.
    """
    plan, driver, plain = state.plan, join.driver or 0, state.plan.semiring == "plain"
    popped = instance.antecedents[driver]
    again = [i for i in join.same if instance.antecedents[i] == popped]
    if old is None and any(i > driver for i in again):
        return None  # it has no old value, and is counted with another driver
    if old is not None and join.rule.antecedents[driver].side:
        return None  # it was there before
    values = state.values(instance)

    def with_driver(value: Value) -> list[Value | None]:
        chosen = [old if i in again and i > driver else x for i, x in enumerate(values)]
        chosen[driver] = value
        return [None if antecedent.side else x for antecedent, x in zip(join.rule.antecedents, chosen, strict=True)]

    x = state.contribution_by(instance, with_driver(now if plain else update))
    if plain and old is not None and plan.tables[instance.head.key].aggregator == "+=":
        before = state.contribution_by(instance, with_driver(old))
        return add(x, tuple(-part for part in before))
    return x


# -- priorities --------------------------------------------------------------------------------------------------------


def _priority(state: State, stage: Stage, table: TableLayout, item: GroundItem, update: Value) -> Priority:
    """Where an item with a pending update waits."""
    at = level(stage.forms, state.plan, state.ranks, item)
    if stage.strategy is not Strategy.HEAP or not stage.priority:
        return at, 0.0
    old = state.chart.value(item)
    now = update if old is None else plus_of(state.plan, table)(old, update)
    if stage.priority == "declared":
        return at, _declared(state, stage, item, now)
    return at, _not_nan(size(state.plan, table, update, now))


def _declared(state: State, stage: Stage, item: GroundItem, now: Value) -> float:
    """The priority that the program declares for an item, which may read its value and those of earlier stages."""
    declared = next((p for p in state.plan.rules.priorities if p.item.key == item.key), None)
    binding = None if declared is None else match_all(declared.item.arguments, item.row, {})
    if declared is None or binding is None:
        return float("-inf")
    inputs: dict[str, float] = {name: float(t.value) for name, t in binding.items() if isinstance(t, Integer)}

    def name(other: Pattern) -> str:
        current: Value | None = now
        if other != declared.item:
            if other.key in stage.keys or other.key not in state.plan.tables:
                raise own_value(state.plan.rules, other)
            at = ground(other, binding)
            current = None if at is None else state.chart.value(at)
        number = number_of(state.right_sides.algebra.zero if current is None else current)
        assert not isinstance(number, tuple)
        inputs[f"item{len(inputs)}"] = float(number)
        return f"item{len(inputs) - 1}"

    graph = to_node(declared.expression, state.plan.functions, name)
    return _not_nan(state.right_sides.number(graph, inputs)[0])


def _not_nan(priority: float) -> float:
    """A priority that is no number comes last."""
    return priority if priority == priority else float("-inf")
