"""Copies of facts, and infinite values, in programs without a declared semiring.

Copies of a fact join by the aggregator of their predicate, also where a semiring was recognised, so that recognition
does not change the meaning of a program.
"""

from __future__ import annotations

import math

from ...plan.model import TableLayout
from ...rules.aggregators import AGGREGATORS, HeadKind
from ..cxx import literal

_COPIES = {HeadKind.SUM: "", HeadKind.SHIFT: "semiring::times(a, b)"}


def copies(kind: HeadKind, aggregator: str) -> str:
    """The C++ expression that joins two copies of a fact, by a kind of the semirings' `copies`; empty for its plus."""
    return _COPIES.get(kind, AGGREGATORS[aggregator].jets)


_NAMES = {
    "+=": "sum",
    "log+=": "log_sum",
    "*=": "product",
    "max=": "greatest",
    "min=": "least",
    "|=": "any",
    "&=": "all",
    "=": "last",
}
_OWN = {body: f"plus_{name}" for key, name in _NAMES.items() for body in (AGGREGATORS[key].plus, AGGREGATORS[key].jets)}


def own_plus_name(body: str) -> str:
    """The name of the function with one of the aggregators' expressions; empty for none."""
    return _OWN[body] if body else ""


# -- infinite values ---------------------------------------------------------------------------------------------------
#
# In plain arithmetic facts may be infinite, and so may be values computed from them. An item that is infinite though
# all its antecedents are finite overflowed, or is the log of zero: an error. An item whose value is the aggregator's
# zero, such as a maximum over nothing possible, is not, unless a contribution overflowed to it, which bit 4 of the
# item's flags says: one of finite antecedents, by a rule without a pole, or of one that is infinite and not excused. A
# contribution that is infinite because an antecedent is *excuses* its head: it sets bit 1. Within a stage, where values
# still change, that antecedent has to be excused in turn, or nothing without bit 4, so that two items of a cycle do not
# excuse each other; if it is not, bit 2 says that the infinity came from it. `may_excuse` of `plan/traits.py` says
# which tables have flags.


def compared_with_zero(table: TableLayout, value: str, operator: str) -> str:
    """The test that an infinite value is (`==`) or is not (`!=`) the aggregator's zero; empty where that is finite."""
    nothing = AGGREGATORS[table.aggregator].zero
    return f"semiring::primal({value}) {operator} {literal(nothing, operand=False)}" if math.isinf(nothing) else ""
