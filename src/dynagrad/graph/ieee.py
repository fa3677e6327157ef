"""Elementary functions on floats that never raise: what IEEE 754 and C say happens, where Python's math would raise."""

from __future__ import annotations

import math

LOG2 = 0.6931471805599453  # the double nearest to log(2)


def divide(a: float, b: float) -> float:
    """
    >>> divide(1.0, -0.0), divide(0.0, 0.0)
    (-inf, nan)
    """
    if b == 0.0:
        return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def power(a: float, b: float) -> float:
    """C's pow, with a square computed as a product.

    >>> power(0.0, -1.0), power(-8.0, 1 / 3), power(-1e200, 3.0)
    (inf, nan, -inf)
    """
    if b == 2.0:
        return a * a
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0.0 and _is_odd(b) else math.inf
    except ValueError:
        if a != 0.0:
            return math.nan
        return math.copysign(math.inf, a) if _is_odd(b) else math.inf


def _is_odd(b: float) -> bool:
    return abs(math.fmod(b, 2.0)) == 1.0


def exp(x: float) -> float:
    """
    >>> exp(1000.0)
    inf
    """
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def expm1(x: float) -> float:
    try:
        return math.expm1(x)
    except OverflowError:
        return math.inf


def log(x: float) -> float:
    """
    >>> log(0.0), log(-1.0)
    (-inf, nan)
    """
    if x > 0.0:
        return math.log(x)
    return -math.inf if x == 0.0 else math.nan


def log1p(x: float) -> float:
    if x > -1.0:
        return math.log1p(x)
    return -math.inf if x == -1.0 else math.nan


def sqrt(x: float) -> float:
    return math.sqrt(x) if x >= 0.0 else math.nan


def sin(x: float) -> float:
    return math.sin(x) if math.isfinite(x) else math.nan


def cos(x: float) -> float:
    return math.cos(x) if math.isfinite(x) else math.nan


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)), to full precision on both sides.

    >>> sigmoid(0.0), sigmoid(-1000.0)
    (0.5, 0.0)
    """
    return (1.0 if x >= 0.0 else exp(x)) / (1.0 + exp(-abs(x)))


def minimum(a: float, b: float) -> float:
    """The smaller; the first of two equals; NaN if either is NaN."""
    return a if a <= b or a != a else b


def maximum(a: float, b: float) -> float:
    """The larger; the first of two equals; NaN if either is NaN."""
    return a if a >= b or a != a else b


def sign(x: float) -> float:
    return 1.0 if x > 0.0 else -1.0 if x < 0.0 else x


def log_add(a: float, b: float) -> float:
    """log(exp(a) + exp(b)), without overflow.

    >>> log_add(-math.inf, -math.inf), log_add(1000.0, -1000.0)
    (-inf, 1000.0)
    """
    if a == b:  # infinities too, whose difference would be NaN
        return a + LOG2
    return maximum(a, b) + log1p(exp(-abs(a - b)))
