"""How contributions, and copies of facts, make the values of a plan's items.

Aggregators by themselves stand in the table of `rules/aggregators.py`.
"""

from __future__ import annotations

from ..rules.aggregators import AGGREGATORS
from ..rules.semirings import SEMIRINGS
from .model import Join, Plan, TableLayout


def clause_defined(plan: Plan, table: TableLayout) -> bool:
    """Whether clauses (`head :- item.`) define the table in a semiring: each of its items is worth one."""
    return plan.semiring != "plain" and table.aggregator == "|="


def head_clause_defined(plan: Plan, join: Join) -> bool:
    """Whether clauses define the head of a join, so that it has no part in the equations of a cycle."""
    return clause_defined(plan, plan.tables[join.rule.head.key])


def head_kind(plan: Plan, table: TableLayout) -> str:
    """sum, softmax, product, select or step: how contributions to an item of the table make its value."""
    if plan.semiring == "plain":
        return AGGREGATORS[table.aggregator].kind
    if clause_defined(plan, table):
        return "step"
    return "select" if plan.selective else "sum"


def copy_kind(plan: Plan, table: TableLayout) -> str:
    """sum, softmax, product, select, step or shift: how copies of a fact make the value of an item of the table."""
    if table.kind != "facts" or plan.rules.semiring is not None or plan.semiring == "plain":
        return head_kind(plan, table)
    return SEMIRINGS[plan.semiring].copies[table.aggregator]


def may_excuse(plan: Plan, table: TableLayout) -> bool:
    """Whether items of a table can be infinite though nothing overflowed, so that they need flags which say so."""
    return plan.semiring == "plain" and table.kind in ("dense", "hashed") and not AGGREGATORS[table.aggregator].truth


def keeps_rest(plan: Plan, table: TableLayout) -> bool:
    """Whether sums of logs in a table keep what rounding took from them, so that the shares of large logs are right.

    A round of a sweep sums anew.
    """
    return head_kind(plan, table) == "softmax" and plan.stage_of[table.key].strategy != "sweep"
