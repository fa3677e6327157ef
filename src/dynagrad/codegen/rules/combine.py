"""How contributions to an item are joined in arithmetic without a semiring, by aggregator: as C++, and backward.

Texts are over `a`, what is there, and `b`, what comes. What an item that is never derived has stands beside them. How
facts and constants join whose predicate no rule defines is said here too: there a recognised semiring may not change
what the program means.
"""

from __future__ import annotations

from ...plan.aggregators import TRUTHS
from ...plan.model import Plan, TableLayout

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

_COPIES = {"sum": "semiring::plus(a, b)", "shift": "semiring::times(a, b)"}


def copies(kind: str, aggregator: str) -> str:
    """How copies of a fact join, by the kind of `copies` of a semiring."""
    return _COPIES.get(kind) or JET_COMBINE[aggregator]


# -- infinite values ---------------------------------------------------------------------------------------------------
#
# In plain arithmetic facts may be infinite, and so may be what is made of them. An item that is infinite although all
# that it is made of is finite overflowed, or is the log of zero, and that is an error; but that of a maximum over
# nothing possible, whose value is what the aggregator has for nothing, is none. A contribution that is infinite since
# something was that it is made of *excuses* its head: it sets bit 1 of the item's flags. Within a stage, where values
# still change, that something has to be excused in turn; if it is not, bit 2 says that the infinity came from there.


def may_excuse(plan: Plan, table: TableLayout) -> bool:
    """Whether items of a table can be infinite at all, so that they have such flags."""
    return plan.semiring == "plain" and table.kind in ("dense", "hashed") and table.aggregator not in TRUTHS


def not_nothing(table: TableLayout, value: str) -> str:
    """That an infinite value is not what the aggregator has for nothing; empty where that is finite."""
    nothing = COMBINE[table.aggregator][1]
    return f"semiring::primal({value}) != {nothing}" if "HUGE_VAL" in nothing else ""
