"""The numbers of the semirings, and how contributions to an item make its value, by the aggregator of its table.

A value is a tuple of numbers: one, but in `expectation` p and the parts of r, and in a user's semiring its own. So all
semirings are handled alike.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...errors import Error
from ...rules.aggregators import AGGREGATORS, HeadKind
from ...rules.semirings import SEMIRINGS
from ..model import Plan, TableLayout
from ..traits import clause_defined, copy_kind, head_kind

Value = tuple[float, ...]
Number = float | tuple[float, ...]
"""A value outside of the interpreter: a number where it is one alone."""
Operation = Callable[[Value, Value], Value]


def log_add(a: float, b: float) -> float:
    """The log of the sum of two weights that are given by their logs."""
    high, low = (a, b) if a >= b else (b, a)
    if low == -math.inf or (high == math.inf and low == low):
        return high
    return high + math.log1p(math.exp(low - high))


def _one_by_one(function: Callable[[float, float], float]) -> Operation:
    return lambda a, b: tuple(function(x, y) for x, y in zip(a, b, strict=True))


def _dual(a: Value, b: Value) -> Value:
    """The product of pairs (p, r)."""
    return (a[0] * b[0], *(a[0] * y + b[0] * x for x, y in zip(a[1:], b[1:], strict=True)))


def _larger(a: float, b: float) -> float:
    return b if b > a or b != b else a


def _smaller(a: float, b: float) -> float:
    return b if b < a or b != b else a


add = _one_by_one(lambda a, b: a + b)
multiply = _one_by_one(lambda a, b: a * b)
_either = _one_by_one(lambda a, b: bool(a or b))
_both = _one_by_one(lambda a, b: bool(a and b))
_logs, _most, _least = map(_one_by_one, (log_add, _larger, _smaller))

_SEMIRINGS: Mapping[str, tuple[Operation, Operation]] = {
    "real": (add, multiply),
    "log": (_logs, add),
    "viterbi": (_most, add),
    "tropical": (_least, add),
    "boolean": (_either, _both),
    "count": (add, multiply),
    "expectation": (add, _dual),
}
"""Plus and times."""

_AGGREGATORS: Mapping[str, Operation] = {
    "+=": add,
    "log+=": _logs,
    "*=": multiply,
    "max=": _most,
    "min=": _least,
    "|=": _one_by_one(lambda a, b: float(a != 0 or b != 0)),
    "&=": _one_by_one(lambda a, b: float(a != 0 and b != 0)),
    "=": lambda a, b: b,
}


@dataclass(frozen=True)
class Arithmetics:
    """What a program computes with."""

    zero: Value
    one: Value
    times: Operation
    plus: Operation


def algebra(plan: Plan) -> Arithmetics:
    """The arithmetic of a plan's semiring. In `plain` each table has its own plus, see `plus_of`."""
    if plan.user is not None:
        user = plan.user
        return Arithmetics(
            user.zero,
            user.one,
            lambda a, b: tuple(map(float, user.at(user.times, a, b))),
            lambda a, b: tuple(map(float, user.at(user.plus, a, b))),
        )
    row = SEMIRINGS[plan.semiring]
    plus, times = _SEMIRINGS.get(plan.semiring, (add, multiply))
    if plan.semiring == "expectation":
        rest = (0.0,) * plan.vector
        return Arithmetics((0.0, *rest), (1.0, *rest), times, plus)
    return Arithmetics((row.zero,), (row.one,), times, plus)


def value_of(plan: Plan, number: Number | None) -> Value:
    """The value that a number of a fact or of the text is; None is the semiring's one."""
    one = algebra(plan).one
    if number is None:
        return (1.0,) if plan.rules.semiring is None and plan.user is None else one
    if isinstance(number, tuple):
        return number
    if plan.semiring == "boolean":
        return (bool(number),)
    if plan.semiring == "count":
        return (int(number),)
    if plan.semiring == "user":
        return (float(number),) * len(one)
    return (float(number), *one[1:])


def number_of(value: Value) -> Number:
    """A value as others see it: a number, or a tuple of several."""
    return value[0] if len(value) == 1 else value


def plus_of(plan: Plan, table: TableLayout) -> Operation:
    """How two contributions to an item of a table make one."""
    if clause_defined(plan, table):
        return lambda a, b: a
    return _AGGREGATORS[table.aggregator] if plan.semiring == "plain" else algebra(plan).plus


def joined(plan: Plan, table: TableLayout, copies: Sequence[Value]) -> Value:
    """The value of a fact that was given once or several times."""
    kind = copy_kind(plan, table)
    plus = plus_of(plan, table)
    if kind is HeadKind.SHIFT:
        plus = algebra(plan).times
    elif kind is not HeadKind.SUM and plan.rules.semiring is None and plan.user is None:
        plus = _AGGREGATORS[table.aggregator]
    return functools.reduce(plus, copies)


def contributed(plan: Plan, table: TableLayout, value: Value) -> Value:
    """What a contribution counts as: clauses state that an item is there, and truth values are 0 and 1."""
    if clause_defined(plan, table):
        return algebra(plan).one
    if plan.semiring == "plain" and AGGREGATORS[table.aggregator].truth:
        return (float(value[0] != 0),)
    return value


# -- order and size ----------------------------------------------------------------------------------------------------


def replaces(plan: Plan, table: TableLayout) -> bool:
    """Whether a new value takes the place of the old one, in items that read it, and is not added to it."""
    return plan.selective or (plan.semiring == "plain" and table.aggregator != "+=")


def improves(plan: Plan, table: TableLayout, now: Value, old: Value) -> bool:
    """Whether a contribution changes a value of which one is selected."""
    return head_kind(plan, table) is HeadKind.SELECT and plus_of(plan, table)(old, now) != old


def negligible(plan: Plan, update: Value, now: Value, tolerance: float) -> bool:
    """Whether an update is so small, beside a value, that it may rest."""
    if plan.user is not None:
        return same(now, algebra(plan).plus(now, update))
    if SEMIRINGS[plan.semiring].adds_logs:
        return update[0] == -math.inf or update[0] - now[0] <= math.log(tolerance)
    sizes = [abs(now[0]) + (abs(part) if n else 0.0) for n, part in enumerate(now)]
    return all(abs(part) < math.inf and abs(part) <= tolerance * size for part, size in zip(update, sizes, strict=True))


def size(plan: Plan, table: TableLayout, update: Value, now: Value) -> float:
    """The priority of an update by its size, or by the value that it makes: the largest first."""
    if plan.semiring == "plain":
        sign = AGGREGATORS[table.aggregator].sign
        return sign * now[0] if sign else abs(update[0])
    order = SEMIRINGS[plan.semiring].order
    if order == "value":
        return -now[0] if plan.semiring == "tropical" else now[0]
    if SEMIRINGS[plan.semiring].adds_logs:
        return update[0]
    return sum(map(abs, update)) if order == "size" else 0.0


def same(a: Value, b: Value) -> bool:
    """Whether an iteration that went from one value to the other has settled."""
    return all(math.isclose(x, y, rel_tol=1e-15) or (x != x and y != y) for x, y in zip(a, b, strict=True))


def check(key: str, value: Value) -> None:
    """Raises for a value that is no number."""
    if any(part != part for part in value):
        raise Error(f"an item of {key} has the value NaN")
