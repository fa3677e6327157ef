"""How contributions, and copies of facts, enter the values of a plan's items.

What each aggregator is by itself says the table of `rules/aggregators.py`.
"""

from __future__ import annotations

from ..rules.aggregators import AGGREGATORS
from ..rules.semirings import SEMIRINGS
from .model import Join, Plan, Stage, TableLayout


def stated(plan: Plan, table: TableLayout) -> bool:
    """Whether an item of the table is worth one, however often it is derived: by `head :- item.` in a semiring."""
    return plan.semiring != "plain" and table.aggregator == "|="


def states(plan: Plan, join: Join) -> bool:
    """Whether the head of a join is such an item, so that it has no part in the equations of a cycle."""
    return stated(plan, plan.tables[join.rule.head.key])


def head_kind(plan: Plan, table: TableLayout) -> str:
    """sum, softmax, product, select or step: how contributions to an item of the table make its value."""
    if plan.semiring == "plain":
        return AGGREGATORS[table.aggregator].kind
    if stated(plan, table):
        return "step"
    return "select" if plan.selective else "sum"


def copy_kind(plan: Plan, table: TableLayout) -> str:
    """The same for the facts of a table that were given more than once, which may join by an aggregator of their own:
    sum, softmax, product, select, step or shift.
    """
    if table.kind != "facts" or plan.rules.semiring is not None or plan.semiring == "plain":
        return head_kind(plan, table)
    return SEMIRINGS[plan.semiring].copies[table.aggregator]


def stage_of(plan: Plan, table: TableLayout) -> Stage:
    return next(s for s in plan.stages if table.key in s.keys)
