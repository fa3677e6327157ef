"""The plan of a program with facts, without compiling it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

import dynagrad as dg
from dynagrad.charts.binding import binding
from dynagrad.charts.binding.context import read_facts
from dynagrad.charts.program import context_of
from dynagrad.plan.model import IndexPlan, Join, Plan, Scan, Stage

FIRST_RUN = binding.Purpose()


class _Planned(Exception):
    def __init__(self, plan: Plan) -> None:
        self.plan = plan


def planned(
    source: str,
    facts: Mapping[str, Any],
    *,
    purpose: binding.Purpose = FIRST_RUN,
    bound: tuple[str, ...] = (),
) -> Plan:
    """The plan for facts, of which those of the `bound` predicates are shared by runs, so that they are counted."""

    def stop(plan: Plan, *_: object) -> None:
        raise _Planned(plan)

    context = context_of(dg.Program(source))
    shared = read_facts(context, {k: v for k, v in facts.items() if k in bound}, False)
    own = read_facts(context, {k: v for k, v in facts.items() if k not in bound}, False)
    with patch.object(binding, "start_ahead"), patch.object(binding, "compile_plan", stop):
        try:
            binding.Binding(context, shared).prepare(own, purpose)
        except _Planned as found:
            return found.plan
    raise AssertionError("a plan was not asked for")


def stage_of(plan: Plan, key: str) -> Stage:
    """The stage in which a predicate's items are made."""
    return next(stage for stage in plan.stages if key in stage.keys)


def forms_of(plan: Plan, key: str) -> list[dict[int, int]]:
    """What a predicate's levels are made of: argument -> coefficient, the first difference deciding."""
    return [dict(form.coefficients[key]) for form in stage_of(plan, key).forms]


def joins_of(plan: Plan, number: int) -> dict[int | None, Join]:
    """The joins of a rule, by driver."""
    return {
        join.driver: join
        for stage in plan.stages
        for join in (*stage.fires, *stage.drives)
        if join.rule.number == number
    }


def scanned(join: Join) -> list[str]:
    """The predicates that a join scans, in order."""
    return [join.rule.antecedents[step.antecedent].item.key for step in join.steps if isinstance(step, Scan)]


def indexes_of(plan: Plan, key: str) -> list[IndexPlan]:
    """The indexes of a predicate."""
    return [index for index in plan.indexes if index.key == key]


def columns(index: IndexPlan) -> tuple[int, ...]:
    """The arguments that an index goes by, where its pattern is one variable an argument."""
    names = [getattr(term, "name", None) for term in index.pattern]
    return tuple(sorted(names.index(name) for name in index.by))
