"""The table of aggregators: all that is known of each, in arithmetic without a semiring.

Its spelling stands in `grammar.lark`. Where a program runs in a semiring, plus takes the place of every aggregator but
`|=`, and the table of `semirings.py` says how copies of a fact join.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["sum", "softmax", "product", "select", "step"]
"""How a contribution enters the value of a head, which says how the value is differentiated."""


@dataclass(frozen=True)
class Aggregator:
    """One aggregator. Texts in C++ are over `a`, what is there, and `b`, what comes."""

    kind: Kind
    zero: float
    """The value of an item that was not derived: that of no contributions."""
    plus: str
    """How two contributions join, in C++."""
    jets: str
    """The same of numbers with derivatives."""
    sign: int = 0
    """1 where the larger contribution wins, -1 where the smaller one does."""
    truth: bool = False
    """Whether values are 0 and 1, whatever comes."""
    monotone: bool = False
    """Whether a value only ever moves one way, so that in a cycle a right side may not fall where an item rises."""
    best_first: bool = False
    """Whether, in such a cycle, updates may be propagated one by one, as none is ever taken back."""
    distributes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The operators that may be pulled out of it, and at which operands."""


AGGREGATORS: dict[str, Aggregator] = {
    "+=": Aggregator("sum", 0.0, "a + b", "semiring::plus(a, b)", distributes={"*": (0, 1), "/": (0,), "neg": (0,)}),
    "log+=": Aggregator(
        "softmax",
        -math.inf,
        "semiring::log_plus(a, b)",
        "semiring::log_plus(a, b)",
        distributes={"+": (0, 1), "-": (0,)},
    ),
    "*=": Aggregator("product", 1.0, "a * b", "semiring::times(a, b)"),
    "max=": Aggregator(
        "select",
        -math.inf,
        "(b > a || isnan(b) ? b : a)",
        "(semiring::primal(b) > semiring::primal(a) || isnan(semiring::primal(b)) ? b : a)",
        sign=1,
        monotone=True,
        best_first=True,
        distributes={"+": (0, 1), "-": (0,)},
    ),
    "min=": Aggregator(
        "select",
        math.inf,
        "(b < a || isnan(b) ? b : a)",
        "(semiring::primal(b) < semiring::primal(a) || isnan(semiring::primal(b)) ? b : a)",
        sign=-1,
        monotone=True,
        best_first=True,
        distributes={"+": (0, 1), "-": (0,)},
    ),
    "|=": Aggregator(
        "step",
        0.0,
        "(double)(a != 0 || b != 0)",
        "semiring::constant(semiring::primal(a) != 0 || semiring::primal(b) != 0)",
        truth=True,
        monotone=True,
        best_first=True,
        distributes={"*": (0, 1)},
    ),
    "&=": Aggregator(
        "step",
        1.0,
        "(double)(a != 0 && b != 0)",
        "semiring::constant(semiring::primal(a) != 0 && semiring::primal(b) != 0)",
        truth=True,
        monotone=True,
    ),
    "=": Aggregator("select", 0.0, "b", "b"),
}
