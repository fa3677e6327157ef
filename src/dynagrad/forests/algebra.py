"""The algebra of weights of derivations, by semiring: how they multiply, which are better, and what they sum up to.

A weight is a number as it is outside, in the semiring's own scale. Native code ranks by doubles: `number` says which.
Nothing here knows forests.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import Error, QueryError, ValueRangeError, cut
from ..runtime.shared import numbers

Doubles = npt.NDArray[np.float64]


Kind = numbers("WeightKind")
"""How native code puts weights together."""


@dataclass(frozen=True)
class Algebra:
    """The weights of derivations."""

    name: str
    one: Any
    times: Callable[[Any, Any], Any] | None
    """None: derivations have no weight."""
    kind: IntEnum | None
    """None: native code cannot rank them."""
    numbers: Callable[[npt.NDArray[Any]], Doubles]
    """What native code ranks by, larger first: of many weights."""
    sampled: IntEnum | None
    """How weights are put together in sums over derivations; None: there are none."""
    chances: Callable[[npt.NDArray[Any]], Doubles]
    """What derivations are drawn in proportion to: products, or sums of logs."""
    less: Callable[[Any, Any], Any] | None = None  # of a user's semiring
    plus: Callable[[Sequence[Any]], Any] | None = None
    """Of one weight or several, what the semiring adds them up to; None: that is not known."""
    adds: bool = False  # whether the plus of the semiring adds up derivations, so that chart values are sums of them

    def product(self, weights: Sequence[Any], of: str = "") -> Any:
        """The product of weights, from the left, for a derivation `of` an item. Raises where a sum overflows."""
        if self.times is None:
            raise Error(no_weight(self))
        product = functools.reduce(self.times, weights, self.one)
        if self.kind is Kind.SUMS and math.isinf(product) and not any(math.isinf(w) for w in weights):
            weights = [w for w in weights if w]
            raise ValueRangeError(
                f"a derivation{f' of {cut(of)}' if of else ''} has the weight {' + '.join(map(repr, weights[:4]))}"
                f"{' + ...' if weights[4:] else ''}, which is too large for a double; make the facts' smaller"
            )
        return product

    def constant(self, numbers: Sequence[float | int]) -> Any:
        """The product of constants of a rule, as they stand in the text."""
        if self.times is None:
            return None
        read: Callable[[float | int], Any] = _CONSTANT.get(self.name, _same)
        if isinstance(self.one, tuple) and self.name == "user":
            return self.product([(float(n),) * len(self.one) for n in numbers])
        return self.product([read(n) for n in numbers])


NO_WEIGHT = (
    "in plain arithmetic a derivation has no weight of its own, because rules do more than multiply; forest, why, "
    "why_not and check are there. Declare a semiring (real, log, viterbi, tropical, boolean, count or expectation)"
)


ORDERED = "real, log, viterbi, tropical, boolean, count, expectation, and semirings of your own that have less"
"""What has an order, for errors."""


LOST = (
    "a forest that was read again does not have the functions of your semiring, so its derivations have no weight; "
    "ask the chart that it came from"
)


def no_weight(algebra: Algebra) -> str:
    """Why derivations have no weight."""
    return LOST if algebra.name == "user" else NO_WEIGHT


def check_order(algebra: Algebra) -> None:
    """Raises where no derivation is better than another."""
    if algebra.times is None:
        raise QueryError(no_weight(algebra))
    if algebra.kind is None and algebra.less is None:
        raise QueryError(f"the semiring has no order, so no derivation is the best. {ORDERED} have one")


def check_sums(algebra: Algebra) -> None:
    """Raises where derivations cannot be drawn."""
    if algebra.sampled is None:
        if algebra.times is None:
            raise QueryError(no_weight(algebra))
        raise QueryError("draws need weights that add up, and a semiring of your own has none that are known")


def _same(x: Any) -> Any:
    return x


def _floats(values: npt.NDArray[Any]) -> Doubles:
    return np.ascontiguousarray(values, np.float64)


def _negated(values: npt.NDArray[Any]) -> Doubles:
    return -_floats(values)


def _logs(values: npt.NDArray[Any]) -> Doubles:
    """Logs of weights that are drawn by: one as low as a mask's is that of nothing beside others."""
    logs = _floats(values)
    if (logs >= FAR).any():
        raise ValueRangeError(
            f"a weight with the log {logs.max():g} is too large for sums over derivations, which take logs up to "
            f"{FAR:.2g}. Make the logs of the facts smaller"
        )
    return np.where(logs > -FAR, logs, -math.inf)


def _logs_of_costs(values: npt.NDArray[Any]) -> Doubles:
    return _logs(-_floats(values))


FAR = 2.0**58
"""Logs of this size have no digit after the point, nor before it where that counts."""


def _truth(values: npt.NDArray[Any]) -> Doubles:
    return np.array([1.0 if v else 0.0 for v in values.tolist()], np.float64)


def _first(values: npt.NDArray[Any]) -> Doubles:
    return np.ascontiguousarray(values.reshape(len(values), -1)[:, 0], np.float64)


def _pairs(a: Any, b: Any) -> Any:
    (p, r), (q, s) = a, b
    return (p * q, p * s + q * r)


def _add(a: float, b: float) -> float:
    return a + b


def _log_sum(weights: Sequence[float]) -> float:
    top = max(weights)
    return top + math.log(math.fsum(math.exp(w - top) for w in weights)) if math.isfinite(top) else top


def _sum_of_pairs(pairs: Sequence[Any]) -> Any:
    return (math.fsum(p for p, _ in pairs), math.fsum(r for _, r in pairs))


def _and(a: Any, b: Any) -> bool:
    return bool(a) and bool(b)


def _multiply(a: Any, b: Any) -> Any:
    return a * b


_CONSTANT: Mapping[str, Callable[[float | int], Any]] = {
    "expectation": lambda n: (float(n), 0.0),
    "boolean": bool,
    "real": float,
    "log": float,
    "viterbi": float,
    "tropical": float,
    "count": int,
}

ALGEBRAS: dict[str, Algebra] = {
    "real": Algebra("real", 1.0, _multiply, Kind.PRODUCTS, _floats, Kind.PRODUCTS, _floats, plus=math.fsum, adds=True),
    "log": Algebra("log", 0.0, _add, Kind.SUMS, _floats, Kind.SUMS, _logs, plus=_log_sum, adds=True),
    "viterbi": Algebra("viterbi", 0.0, _add, Kind.SUMS, _floats, Kind.SUMS, _logs, plus=max),
    "tropical": Algebra("tropical", 0.0, _add, Kind.SUMS, _negated, Kind.SUMS, _logs_of_costs, plus=min),
    "boolean": Algebra("boolean", True, _and, Kind.SIZES, _truth, Kind.SIZES, _truth, plus=any),
    "count": Algebra("count", 1, _multiply, Kind.SIZES, _truth, Kind.PRODUCTS, _floats, plus=sum, adds=True),
    "expectation": Algebra(
        "expectation", (1.0, 0.0), _pairs, Kind.PRODUCTS, _first, Kind.PRODUCTS, _first, plus=_sum_of_pairs, adds=True
    ),
    "plain": Algebra("plain", None, None, None, _floats, None, _floats),
}


AGGREGATED: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "+=": math.fsum,
    "log+=": _log_sum,
    "max=": max,
    "min=": min,
    "=": min,  # they are all the same
}
"""In plain arithmetic, what contributions make."""


def user_algebra(
    one: Any,
    times: Callable[[Any, Any], Any] | None,
    plus: Callable[[Any, Any], Any] | None,
    less: Callable[[Any, Any], Any] | None,
) -> Algebra:
    """That of a semiring that a user made."""

    def summed(weights: Sequence[Any]) -> Any:
        assert plus is not None
        return functools.reduce(plus, weights)

    return Algebra("user", one, times, None, _floats, None, _floats, less, None if plus is None else summed)


def refuse_signs(algebra: Algebra, numbers: Doubles, name: Callable[[int], str]) -> None:
    """Raises for a weight below zero, or NaN, where weights are multiplied; `name` says whose it is."""
    if algebra.kind is not Kind.PRODUCTS:
        return
    wrong = ~(numbers >= 0)
    if wrong.any():
        n = int(wrong.argmax())
        raise ValueRangeError(
            f"{cut(name(n))} has the weight {numbers[n]:g}, and derivations are ranked and drawn by weights of at least"
            " 0"
        )
