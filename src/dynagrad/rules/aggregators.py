"""The table of aggregators (`+=`, `max=`, ...): their arithmetic and their algebraic properties, one row each.

It is for programs without a semiring. In a semiring every aggregator but `|=` is its plus, and the table of
`semirings.py` says how copies of a fact join. How an aggregator is written stands in `grammar.lark`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class HeadKind(Enum):
    """How contributions make the value of a head, which decides how it is differentiated."""

    SUM = "sum"
    SOFTMAX = "softmax"
    """The log of a sum of exponentials, in which each contribution has a share."""
    PRODUCT = "product"
    SELECT = "select"
    """One of the contributions."""
    STEP = "step"
    """True or false: constant, but for steps."""
    SHIFT = "shift"
    """Of copies of a fact: the product in a semiring whose numbers are logs, which adds them."""


@dataclass(frozen=True)
class Aggregator:
    """One aggregator. Its C++ expressions are over `a`, the value so far, and `b`, the contribution."""

    kind: HeadKind
    zero: float
    """The value of an item without contributions, one that was not derived."""
    plus: str
    """The C++ expression that aggregates two contributions."""
    jets: str
    """The same over numbers with derivatives."""
    sign: int = 0
    """1 where the larger contribution wins, -1 where the smaller one does."""
    truth: bool = False
    """Whether values are 0 and 1, whatever the contributions."""
    monotone: bool = False
    """Whether contributions move a value in one direction only, so that right sides in a cycle must be monotone."""
    best_first: bool = False
    """Whether updates in such a cycle may be propagated one by one, because none is ever revoked."""
    distributes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The operators that distribute over it, with the operands in which they do."""


AGGREGATORS: dict[str, Aggregator] = {
    "+=": Aggregator(
        HeadKind.SUM, 0.0, "a + b", "semiring::plus(a, b)", distributes={"*": (0, 1), "/": (0,), "neg": (0,)}
    ),
    "log+=": Aggregator(
        HeadKind.SOFTMAX,
        -math.inf,
        "semiring::log_plus(a, b)",
        "semiring::log_plus(a, b)",
        distributes={"+": (0, 1), "-": (0,)},
    ),
    "*=": Aggregator(HeadKind.PRODUCT, 1.0, "a * b", "semiring::times(a, b)"),
    "max=": Aggregator(
        HeadKind.SELECT,
        -math.inf,
        "(b > a || isnan(b) ? b : a)",
        "(semiring::primal(b) > semiring::primal(a) || isnan(semiring::primal(b)) ? b : a)",
        sign=1,
        monotone=True,
        best_first=True,
        distributes={"+": (0, 1), "-": (0,)},
    ),
    "min=": Aggregator(
        HeadKind.SELECT,
        math.inf,
        "(b < a || isnan(b) ? b : a)",
        "(semiring::primal(b) < semiring::primal(a) || isnan(semiring::primal(b)) ? b : a)",
        sign=-1,
        monotone=True,
        best_first=True,
        distributes={"+": (0, 1), "-": (0,)},
    ),
    "|=": Aggregator(
        HeadKind.STEP,
        0.0,
        "(double)(a != 0 || b != 0)",
        "semiring::constant(semiring::primal(a) != 0 || semiring::primal(b) != 0)",
        truth=True,
        monotone=True,
        best_first=True,
        distributes={"*": (0, 1)},
    ),
    "&=": Aggregator(
        HeadKind.STEP,
        1.0,
        "(double)(a != 0 && b != 0)",
        "semiring::constant(semiring::primal(a) != 0 && semiring::primal(b) != 0)",
        truth=True,
        monotone=True,
    ),
    "=": Aggregator(HeadKind.SELECT, 0.0, "b", "b"),
}
