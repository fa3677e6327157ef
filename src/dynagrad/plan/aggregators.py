"""What aggregators do to values: how a contribution, or a copy of a fact, enters the value of an item. Their C++ is in
`codegen/rules/combine.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from .model import Join, Plan, Stage, Table

# How a contribution enters the value of a head in plain arithmetic.
KINDS = {
    "+=": "sum",
    "log+=": "softmax",
    "*=": "product",
    "max=": "select",
    "min=": "select",
    "=": "select",
    "|=": "step",
    "&=": "step",
}

_SELECT = dict.fromkeys(("max=", "min=", "="), "select")

# By the semiring that a program without one runs in: how copies of its facts join. What is missing cannot be done
# there, so that such a program is not recognised. A `shift` is a sum of logs or of costs: the derivative of each copy
# is that of the whole.
COPIES: Mapping[str, Mapping[str, str]] = {
    "real": {**_SELECT, "+=": "sum"},
    "tropical": {**_SELECT, "+=": "shift"},
    "viterbi": {**_SELECT, "+=": "shift"},
    "log": {"=": "select", "+=": "shift", "log+=": "sum"},
}

TRUTHS = ("|=", "&=")
"""Aggregators whose values are 0 and 1, whatever comes."""


def stated(plan: Plan, table: Table) -> bool:
    """Whether an item of the table is worth one, however often it is derived: by `head :- item.` in a semiring."""
    return plan.semiring != "plain" and table.aggregator == "|="


def states(plan: Plan, join: Join) -> bool:
    """Whether the head of a join is such an item, so that it has no part in the equations of a cycle."""
    return stated(plan, plan.tables[join.rule.head.key])


def head_kind(plan: Plan, table: Table) -> str:
    """sum, softmax, product, select or step: how contributions to an item of the table make its value."""
    if plan.semiring == "plain":
        return KINDS[table.aggregator]
    if stated(plan, table):
        return "step"
    return "select" if plan.selective else "sum"


def copy_kind(plan: Plan, table: Table) -> str:
    """The same for the facts of a table that were given more than once, which may join by an aggregator of their own:
    sum, softmax, product, select, step or shift.
    """
    if table.kind != "facts" or plan.rules.semiring is not None or plan.semiring == "plain":
        return head_kind(plan, table)
    return COPIES[plan.semiring][table.aggregator]


def stage_of(plan: Plan, table: Table) -> Stage:
    return next(s for s in plan.stages if table.key in s.keys)
