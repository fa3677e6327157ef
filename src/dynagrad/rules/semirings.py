"""The semirings of the language: one table, a row for each, which says all that Python has to know of it.

The arithmetic itself is C++ (`dynagrad/semirings.hpp`, whose head says what a struct has, and `jets.hpp` over numbers
with derivatives). Here stand its names, what a number is outside, in which order items are best popped, and what
derivatives there are. To add one, write its struct and its row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

OUTSIDE, MARGINAL, COUNT, ENTROPY = "an outside value", "a marginal", "an expected count", "an entropy"
"""Sums over derivations that a chart may be asked for."""

_SELECT = dict.fromkeys(("max=", "min=", "="), "select")
_MODEST = frozenset({MARGINAL, COUNT})


@dataclass(frozen=True)
class BuiltIn:
    """A semiring that a program may declare, or that it runs in without saying so."""

    cxx: str
    """Its C++ type; `{vector}` stands for the length of r in `expectation`."""
    shape: str
    """What a number is outside: float, count, boolean or expectation."""
    valid: str
    """Which numbers it holds, as `semirings.Scale` has it."""
    zero: Any
    one: Any
    words: int = 1
    """How many 8-byte words a number has."""
    jets: str = ""
    """The C++ type over numbers with derivatives along `{order}` directions; empty where there are no derivatives."""
    no_derivatives: str = ""
    """Why there are none."""
    source: tuple[str, ...] = ()
    """The C++ of its type, where the headers of the runtime do not have it."""
    jets_source: tuple[str, ...] = ()
    """The same of its type with derivatives."""
    weight: str = "double"
    """What a number is in a C++ header."""
    order: Literal["size", "value", "arrival"] = "size"
    """Which item is best popped first: that of the largest update, the best, or the first to arrive."""
    selective: bool = False
    """Whether plus picks one of its arguments."""
    written: str = ""
    """An aggregator that plus may be written as, beside `+=`."""
    numbers: str = "numbers"
    """What its numbers are, in messages: weights, logs, costs, pairs."""
    adds_logs: bool = False
    """Whether plus adds what its numbers are the logs of: a native number is a weight with an exponent of its own, of
    which several may be multiplied before it is brought into range, and a gradient one with respect to logs."""
    rows: bool = False
    """Whether a row of it can be joined with another as one operation on vectors (`rows.hpp`)."""
    equations: bool = False
    """Whether values in a cycle solve polynomial equations, as linear algebra and Newton's method do."""
    underflows: bool = False
    """Whether a number may become too small, and lose digits, without being zero."""
    times_adds: bool = False
    """Whether times is addition, so that the one is 0: of logs and of costs."""
    logs: bool = False
    """Whether a probability is given as its log."""
    superior_sign: float | None = None
    """With which sign a number that is not negative makes nothing better, where there is one."""
    from_probabilities: Callable[[Any], Any] | None = None
    """Numbers of it from probabilities."""
    recognised: tuple[str, str] | None = None
    """The aggregator and the operator of which a program without a semiring runs in this one."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """How copies of a fact join in such a program, by its aggregator. What is missing cannot be done, so that such a
    program is not recognised. A `shift` is a sum of logs or of costs: the derivative of each copy is that of all."""
    sums: frozenset[str] = frozenset()
    """The sums over derivations that it has."""
    declared: bool = True
    """Whether a program may name it."""
    in_plans: str = ""
    """What a plan says of it, where that is not its name."""

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
        copies={**_SELECT, "+=": "sum"},
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
        recognised=("log+=", "+"),
        copies={"=": "select", "+=": "shift", "log+=": "sum"},
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
        recognised=("max=", "+"),
        copies={**_SELECT, "+=": "shift"},
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
        recognised=("min=", "+"),
        copies={**_SELECT, "+=": "shift"},
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
        weight="bool",
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
        weight="unsigned __int128",
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
        weight="struct {{ double p; double r[{vector}]; }}",
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
"""By name. `plain` is that of programs whose predicates aggregate each in its own way, `user` one made in Python: what
depends on the one at hand is asked of it."""


def declarable() -> tuple[str, ...]:
    """The names that a program may declare."""
    return tuple(name for name, row in SEMIRINGS.items() if row.declared)


def means_plus(aggregator: str, semiring: str | None) -> bool:
    """Whether an aggregator is another way to write the plus of a semiring."""
    row = SEMIRINGS.get(semiring or "")
    return row is not None and aggregator == row.written
