"""How copies of a fact join, and which infinite values are no error, in arithmetic without a semiring.

Facts and constants whose predicate no rule defines join by its own aggregator: there a recognised semiring may not
change what the program means.
"""

from __future__ import annotations

import math

from ...plan.model import Plan, TableLayout
from ...rules.aggregators import AGGREGATORS
from ..cxx import literal

_COPIES = {"sum": "semiring::plus(a, b)", "shift": "semiring::times(a, b)"}


def copies(kind: str, aggregator: str) -> str:
    """How copies of a fact join, by the kind of `copies` of a semiring."""
    return _COPIES.get(kind) or AGGREGATORS[aggregator].jets


# -- infinite values ---------------------------------------------------------------------------------------------------
#
# In plain arithmetic facts may be infinite, and so may be what is made of them. An item that is infinite although all
# that it is made of is finite overflowed, or is the log of zero, and that is an error; but that of a maximum over
# nothing possible, whose value is what the aggregator has for nothing, is none. A contribution that is infinite since
# something was that it is made of *excuses* its head: it sets bit 1 of the item's flags. Within a stage, where values
# still change, that something has to be excused in turn; if it is not, bit 2 says that the infinity came from there.


def may_excuse(plan: Plan, table: TableLayout) -> bool:
    """Whether items of a table can be infinite at all, so that they have such flags."""
    return plan.semiring == "plain" and table.kind in ("dense", "hashed") and not AGGREGATORS[table.aggregator].truth


def not_nothing(table: TableLayout, value: str) -> str:
    """That an infinite value is not what the aggregator has for nothing; empty where that is finite."""
    nothing = AGGREGATORS[table.aggregator].zero
    return f"semiring::primal({value}) != {literal(nothing)}" if math.isinf(nothing) else ""
