"""The table of semirings (Goodman 1999, "Semiring parsing"): all that Python knows of each, one row each.

The arithmetic itself is C++ (`dynagrad/semirings.hpp`, whose head says what a struct has, and `jets.hpp` over numbers
with derivatives). A row has its names, the form of its numbers in Python, its algebraic properties, the best pop order,
and its derivatives. To add a semiring, write its struct and its row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from .aggregators import HeadKind

OUTSIDE, MARGINAL, COUNT, ENTROPY = "an outside value", "a marginal", "an expected count", "an entropy"
"""The sums over derivations that a chart can be asked for, as messages call them."""

_SELECT = dict.fromkeys(("max=", "min=", "="), HeadKind.SELECT)
_MODEST = frozenset({MARGINAL, COUNT})


@dataclass(frozen=True)
class BuiltIn:
    """A semiring that a program may declare, or one that it may run in without declaring it."""

    cxx: str
    """Its C++ type; `{vector}` stands for the length of r in `expectation`."""
    shape: str
    """The form of a number in Python: float, count, boolean or expectation."""
    valid: str
    """The numbers that are valid, as in `semirings.Scale`."""
    zero: Any
    one: Any
    words: int = 1
    """The number of 8-byte words in a number."""
    jets: str = ""
    """The C++ type over numbers with derivatives along `{order}` directions; empty where there are no derivatives."""
    no_derivatives: str = ""
    """Why there are none, for messages."""
    source: tuple[str, ...] = ()
    """The C++ source of its type, where the headers of the runtime do not have it."""
    jets_source: tuple[str, ...] = ()
    """The C++ source of its type with derivatives, likewise."""
    weight: str = "using weight = double;"
    """The definition of the type of a number in a C++ header for users."""
    order: Literal["size", "value", "arrival"] = "size"
    """The best pop order: by the size of the update, by the value, or by arrival."""
    selective: bool = False
    """Whether plus selects one of its arguments."""
    written: str = ""
    """An aggregator that means plus, beside `+=`."""
    numbers: str = "numbers"
    """What messages call its numbers: weights, logs, costs, pairs."""
    adds_logs: bool = False
    """Whether numbers are logs and plus adds their exponentials. A native number is then a weight with an exponent of
    its own, several of which may be multiplied before it is normalised; gradients are with respect to logs."""
    rows: bool = False
    """Whether two rows of numbers can be joined by one vector operation (`running/rows.hpp`)."""
    equations: bool = False
    """Whether values in a cycle solve polynomial equations, by linear algebra and Newton's method."""
    underflows: bool = False
    """Whether a number may underflow, or lose digits near zero."""
    times_adds: bool = False
    """Whether times is addition, of logs or of costs, so that the one is 0."""
    logs: bool = False
    """Whether the number for a probability is its log."""
    superior_sign: float | None = None
    """The sign of numbers by which times never improves a value (superiority, Knuth 1977); None where there is none."""
    from_probabilities: Callable[[Any], Any] | None = None
    """The conversion of probabilities to its numbers."""
    log_sign: float = 0.0
    """The sign of the log that this conversion takes; 0 where it takes none."""
    recognised: tuple[str, str] | None = None
    """The aggregator and the operator of programs of plain arithmetic that are run in this semiring."""
    copies: Mapping[str, HeadKind] = field(default_factory=dict)
    """How copies of a fact join in such programs, by aggregator; a program with any other aggregator is not recognised.
    A `shift` is a sum of logs or of costs: the derivative by each copy is that by the sum."""
    sums: frozenset[str] = frozenset()
    """The sums over derivations that it defines."""
    declared: bool = True
    """Whether a program may name it."""
    in_plans: str = ""
    """What `explain` calls it, where that is not its name."""

    @property
    def sums_up(self) -> bool:
        """Whether a sum over a cycle may grow without bound."""
        return self.declared and not self.selective


SEMIRINGS: dict[str, BuiltIn] = {
    "real": BuiltIn(
        "Real",
        "float",
        "finite",
        0.0,
        1.0,
        jets="Jets<Real, {order}>",
        from_probabilities=lambda p: p,
        recognised=("+=", "*"),
        copies={**_SELECT, "+=": HeadKind.SUM},
        sums=frozenset({OUTSIDE, ENTROPY}) | _MODEST,
        numbers="weights",
        rows=True,
        equations=True,
        underflows=True,
    ),
    "log": BuiltIn(
        "Log",
        "float",
        "no_nan_no_posinf",
        -math.inf,
        0.0,
        jets="LogJets<{order}>",
        times_adds=True,
        logs=True,
        from_probabilities=np.log,
        log_sign=1.0,
        recognised=("log+=", "+"),
        copies={"=": HeadKind.SELECT, "+=": HeadKind.SHIFT, "log+=": HeadKind.SUM},
        sums=frozenset({OUTSIDE, ENTROPY}) | _MODEST,
        numbers="logs",
        adds_logs=True,
        rows=True,
        equations=True,
    ),
    "viterbi": BuiltIn(
        "Viterbi",
        "float",
        "no_nan_no_posinf",
        -math.inf,
        0.0,
        jets="SelectJets<Viterbi, {order}>",
        order="value",
        selective=True,
        times_adds=True,
        logs=True,
        superior_sign=-1.0,
        from_probabilities=np.log,
        log_sign=1.0,
        recognised=("max=", "+"),
        copies={**_SELECT, "+=": HeadKind.SHIFT},
        sums=_MODEST,
        numbers="logs",
    ),
    "tropical": BuiltIn(
        "Tropical",
        "float",
        "no_nan_no_neginf",
        math.inf,
        0.0,
        jets="SelectJets<Tropical, {order}>",
        order="value",
        selective=True,
        times_adds=True,
        superior_sign=1.0,
        from_probabilities=lambda p: -np.log(p),
        log_sign=-1.0,
        recognised=("min=", "+"),
        copies={**_SELECT, "+=": HeadKind.SHIFT},
        sums=_MODEST,
        numbers="costs",
    ),
    "boolean": BuiltIn(
        "Boolean",
        "boolean",
        "finite",
        False,
        True,
        no_derivatives="an item of the boolean semiring is derived or not, which does not change by degrees",
        weight="using weight = bool;",
        order="arrival",
        selective=True,
        superior_sign=0.0,
        from_probabilities=lambda p: p > 0,
        written="|=",
    ),
    "count": BuiltIn(
        "Count",
        "count",
        "finite",
        0,
        1,
        words=2,
        no_derivatives="derivations of the count semiring are whole numbers, which do not change by degrees",
        weight="using weight = unsigned __int128;",
        order="arrival",
        equations=True,
    ),
    "expectation": BuiltIn(
        "Expectation<{vector}>",
        "expectation",
        "finite",
        (0.0, 0.0),
        (1.0, 0.0),
        words=2,
        jets="Jets<Expectation<{vector}>, {order}>",
        from_probabilities=lambda p: p,
        sums=frozenset({OUTSIDE}),
        numbers="pairs",
        equations=True,
        weight="struct weight {{ double p; double r[{vector}]; }};",
    ),
    "plain": BuiltIn(
        "Plain",
        "float",
        "no_nan",
        0.0,
        1.0,
        jets="PlainJets<{order}>",
        from_probabilities=lambda p: p,
        declared=False,
        in_plans="none: each predicate has the arithmetic of its own aggregator",
    ),
    "user": BuiltIn(
        "user",
        "float",
        "no_nan",
        0.0,
        1.0,
        no_derivatives="the derivatives of a semiring of your own are not known; a program without one, whose rules "
        "say the arithmetic, has them",
        order="arrival",
        declared=False,
        in_plans="defined in Python",
    ),
}
"""By name. `plain` is arithmetic in which each predicate has its own aggregator, `user` stands for semirings that are
defined in Python."""


def declarable() -> tuple[str, ...]:
    """The names that a program may declare."""
    return tuple(name for name, row in SEMIRINGS.items() if row.declared)


def means_plus(aggregator: str, semiring: str | None) -> bool:
    """Whether an aggregator is another spelling of a semiring's plus."""
    row = SEMIRINGS.get(semiring or "")
    return row is not None and aggregator == row.written
