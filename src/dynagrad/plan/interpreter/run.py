"""Runs a plan over facts, stage by stage, and has what came of it: values, which items are derived, and gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...errors import Error
from ..model import Plan
from ..traits import is_facts
from .chart import GroundChart, GroundItem
from .gradient import derivative
from .numbers import Number, Value, joined, number_of, value_of
from .order import ranks_of
from .stages import run_stage
from .state import Asserted, Externals, State
from .terms import Row
from .values import RightSides

Facts = Mapping[str, Sequence[tuple[Row, Number | None]]]
"""By predicate, rows of ground terms with values; None is the value one."""


@dataclass(frozen=True, eq=False)
class Interpreted:
    """A finished run."""

    state: State
    facts: Mapping[str, list[tuple[Row, Value]]]
    """By predicate: those of the text, then those from outside of it."""

    @property
    def items(self) -> Mapping[str, Mapping[Row, Number]]:
        """The items that were derived, with their values, by predicate."""
        chart, plan = self.state.chart, self.state.plan
        return {
            key: {row: number_of(value) for row, value in chart.values.get(key, {}).items()} for key in plan.stage_of
        }

    def gradient(self, key: str, row: Row = ()) -> Mapping[str, Sequence[Number]]:
        """The derivatives of an item's value by all facts, row by row as they were given; those of an item that is not
        derived are zero."""
        derivatives = derivative(self.state, self.facts, GroundItem(key, row))
        of_text = Counter(axiom.item.key for axiom in self.state.plan.rules.axioms)
        return {key: values[of_text[key] :] for key, values in derivatives.items()}


def interpret(plan: Plan, facts: Facts, externals: Externals | None = None) -> Interpreted:
    """Runs a plan. `externals` has functions of ground terms for the external predicates.

    >>> from dynagrad.plan.assume import assumed_plan
    >>> from dynagrad.rules import check, infer, parse
    >>> from dynagrad.rules.syntax import Symbol
    >>> rules = check(parse("path(V) min= path(U) + edge(U,V).  path(a) = 0."))
    >>> plan = assumed_plan(rules, infer(rules), ["atom"])
    >>> a, b, c = map(Symbol, "abc")
    >>> run = interpret(plan, {"edge/2": [((a, b), 2.0), ((b, c), 1.0), ((a, c), 9.0)]})
    >>> run.items["path/1"][c,]
    3.0
    >>> run.gradient("path/1", (c,))["edge/2"]
    [1.0, 1.0, 0.0]
    """
    _refuse(plan)
    rows_of = _rows_of(plan, facts)
    chart = GroundChart(plan)
    asserted: dict[str, list[Asserted]] = {}
    for key, rows in rows_of.items():
        table = plan.tables[key]
        if not is_facts(table):
            asserted[key] = [Asserted(GroundItem(key, row), n, value) for n, (row, value) in enumerate(rows)]
            continue
        copies: dict[Row, list[Value]] = {}
        for row, value in rows:
            copies.setdefault(row, []).append(value)
        for row, values in copies.items():
            chart.set(GroundItem(key, row), joined(plan, table, values))
    ranks = ranks_of(plan, {key: [row for row, _ in rows] for key, rows in rows_of.items()})
    state = State(plan, chart, RightSides(plan), ranks, asserted, externals or {})
    for stage in plan.stages:
        run_stage(state, stage)
    return Interpreted(state, rows_of)


def _rows_of(plan: Plan, facts: Facts) -> dict[str, list[tuple[Row, Value]]]:
    """The facts that the plan reads, by predicate: those of the text, then those from outside of it."""
    rows_of: dict[str, list[tuple[Row, Value]]] = {}
    for axiom in plan.rules.axioms:
        rows_of.setdefault(axiom.item.key, []).append((axiom.item.arguments, value_of(plan, axiom.value)))
    for key, rows in facts.items():
        if key not in plan.rules.predicates:
            raise Error(f"the program has no predicate {key}")
        rows_of.setdefault(key, []).extend((row, value_of(plan, value)) for row, value in rows)
    return {key: rows for key, rows in rows_of.items() if key in plan.tables}


def _refuse(plan: Plan) -> None:
    """Raises for what the interpreter does not run."""
    lacking = {
        "changes of facts": plan.changes is not None,
        "the collecting of derivations": plan.collects is not None,
        "runs that stop at an item": plan.until is not None,
        "pruning": bool(plan.rules.prunes),
        "beams": bool(plan.rules.beams),
    }
    for name, there in lacking.items():
        if there:
            raise Error(f"the interpreter of nests does not run {name}")
