"""How contributions to an item are joined in arithmetic without a semiring, by aggregator: as C++, and backward.

Texts are over `a`, what is there, and `b`, what comes. What an item that is never derived has stands beside them. How
facts and constants join whose predicate no rule defines is said here too: there a recognised semiring may not change
what the program means.
"""

from __future__ import annotations

from collections.abc import Mapping

from .model import Join, Plan, Table

# How each aggregator of plain arithmetic joins two contributions, and its value for nothing.
COMBINE = {
    "+=": ("a + b", "0.0"),
    "log+=": ("semiring::log_plus(a, b)", "-HUGE_VAL"),
    "*=": ("a * b", "1.0"),
    "max=": ("(b > a || isnan(b) ? b : a)", "-HUGE_VAL"),
    "min=": ("(b < a || isnan(b) ? b : a)", "HUGE_VAL"),
    "|=": ("(double)(a != 0 || b != 0)", "0.0"),
    "&=": ("(double)(a != 0 && b != 0)", "1.0"),
    "=": ("b", "0.0"),
}
JET_COMBINE = {
    "+=": "semiring::plus(a, b)",
    "log+=": "semiring::log_plus(a, b)",
    "*=": "semiring::times(a, b)",
    "max=": "(semiring::primal(b) > semiring::primal(a) || isnan(semiring::primal(b)) ? b : a)",
    "min=": "(semiring::primal(b) < semiring::primal(a) || isnan(semiring::primal(b)) ? b : a)",
    "|=": "semiring::constant(semiring::primal(a) != 0 || semiring::primal(b) != 0)",
    "&=": "semiring::constant(semiring::primal(a) != 0 && semiring::primal(b) != 0)",
    "=": "b",
}

TRUTHS = ("|=", "&=")
"""Aggregators whose values are 0 and 1, whatever comes."""


def stated(plan: Plan, table: Table) -> bool:
    """Whether an item of the table is worth one, however often it is derived: by `head :- item.` in a semiring."""
    return plan.semiring != "plain" and table.aggregator == "|="


def states(plan: Plan, join: Join) -> bool:
    """Whether the head of a join is such an item, so that it has no part in the equations of a cycle."""
    return stated(plan, plan.tables[join.rule.head.key])


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

_SELECT = {aggregator: (JET_COMBINE[aggregator], "select") for aggregator in ("max=", "min=", "=")}
_SUM = ("semiring::plus(a, b)", "sum")
_SHIFT = ("semiring::times(a, b)", "shift")

# By the semiring that a program without one runs in: how copies of its facts join, and how that is gone back over. What
# is missing cannot be done there, so that such a program is not recognised. A `shift` is a sum of logs or of costs: the
# derivative of each copy is that of the whole.
COPIES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "real": {**_SELECT, "+=": _SUM},
    "tropical": {**_SELECT, "+=": _SHIFT},
    "viterbi": {**_SELECT, "+=": _SHIFT},
    "log": {"=": _SELECT["="], "+=": _SHIFT, "log+=": _SUM},
}


# -- infinite values ---------------------------------------------------------------------------------------------------
#
# In plain arithmetic facts may be infinite, and so may be what is made of them. An item that is infinite although all
# that it is made of is finite overflowed, or is the log of zero, and that is an error; but that of a maximum over
# nothing possible, whose value is what the aggregator has for nothing, is none. A contribution that is infinite since
# something was that it is made of *excuses* its head: it sets bit 1 of the item's flags. Within a stage, where values
# still change, that something has to be excused in turn; if it is not, bit 2 says that the infinity came from there.


def may_excuse(plan: Plan, table: Table) -> bool:
    """Whether items of a table can be infinite at all, so that they have such flags."""
    return plan.semiring == "plain" and table.kind in ("dense", "hashed") and table.aggregator not in TRUTHS


def not_nothing(table: Table, value: str) -> str:
    """That an infinite value is not what the aggregator has for nothing; empty where that is finite."""
    nothing = COMBINE[table.aggregator][1]
    return f"semiring::primal({value}) != {nothing}" if "HUGE_VAL" in nothing else ""
