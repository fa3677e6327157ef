"""Elementary functions on floats with the results of IEEE 754 and C, where Python's `math` raises.

No operation is declared here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

LOG2 = 0.6931471805599453  # the double nearest to log(2)
LOG10 = 2.302585092994046  # and to log(10)


def divide(a: float, b: float) -> float:
    """The quotient; infinite or NaN for a division by zero.

    >>> divide(1.0, -0.0), divide(0.0, 0.0)
    (-inf, nan)
    """
    if b == 0.0:
        return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def power(a: float, b: float) -> float:
    """The `pow` of C, with a square computed as a product.

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
    """The exponential; infinite on overflow.

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
    """The natural logarithm; -inf at zero, NaN below.

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


def tan(x: float) -> float:
    return math.tan(x) if math.isfinite(x) else math.nan


def arcsin(x: float) -> float:
    return math.asin(x) if -1.0 <= x <= 1.0 else math.nan


def arccos(x: float) -> float:
    return math.acos(x) if -1.0 <= x <= 1.0 else math.nan


def sinh(x: float) -> float:
    try:
        return math.sinh(x)
    except OverflowError:
        return math.copysign(math.inf, x)


def cosh(x: float) -> float:
    try:
        return math.cosh(x)
    except OverflowError:
        return math.inf


def arccosh(x: float) -> float:
    return math.acosh(x) if x >= 1.0 else math.nan


def arctanh(x: float) -> float:
    """The inverse of tanh; infinite at -1 and 1, NaN beyond.

    >>> arctanh(-1.0), arctanh(2.0)
    (-inf, nan)
    """
    if -1.0 < x < 1.0:
        return math.atanh(x)
    return math.copysign(math.inf, x) if abs(x) == 1.0 else math.nan


def exp2(x: float) -> float:
    try:
        return math.exp2(x)
    except OverflowError:
        return math.inf


def log2(x: float) -> float:
    if x > 0.0:
        return math.log2(x)
    return -math.inf if x == 0.0 else math.nan


def log10(x: float) -> float:
    if x > 0.0:
        return math.log10(x)
    return -math.inf if x == 0.0 else math.nan


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)), to full precision on both sides.

    >>> sigmoid(0.0), sigmoid(-1000.0)
    (0.5, 0.0)
    """
    return (1.0 if x >= 0.0 else exp(x)) / (1.0 + exp(-abs(x)))


def sigmoid_array(x: Any) -> Any:
    """`sigmoid` on arrays."""
    small = np.abs(x)
    small = np.exp(np.negative(small, out=small), out=small)
    large = np.where(x >= 0.0, 1.0, small)
    small += 1.0
    large /= small
    return large


def minimum(a: float, b: float) -> float:
    """The smaller; the first of two equals; NaN if either is NaN."""
    return a if a <= b or a != a else b


def maximum(a: float, b: float) -> float:
    """The larger; the first of two equals; NaN if either is NaN."""
    return a if a >= b or a != a else b


def fminimum(a: float, b: float) -> float:
    """The smaller; the first of two equals; the other one where one is NaN."""
    return a if a <= b or b != b else b


def fmaximum(a: float, b: float) -> float:
    """The larger; the first of two equals; the other one where one is NaN."""
    return a if a >= b or b != b else b


def floor(x: float) -> float:
    """The greatest whole number not above x, with the sign of x.

    >>> floor(-0.5), floor(-0.0), floor(math.inf)
    (-1.0, -0.0, inf)
    """
    return math.copysign(float(math.floor(x)), x) if math.isfinite(x) else x


def ceil(x: float) -> float:
    return math.copysign(float(math.ceil(x)), x) if math.isfinite(x) else x


def trunc(x: float) -> float:
    return math.copysign(float(math.trunc(x)), x) if math.isfinite(x) else x


def rint(x: float) -> float:
    """The nearest whole number, the even one at a tie.

    >>> rint(2.5), rint(-0.2)
    (2.0, -0.0)
    """
    return math.copysign(float(round(x)), x) if math.isfinite(x) else x


def fmod(a: float, b: float) -> float:
    """The remainder with the sign of `a`, as C has it."""
    return math.fmod(a, b) if b != 0.0 and not math.isinf(a) else math.nan


def modulo(a: float, b: float) -> float:
    """The remainder with the sign of `b`, as Python has it.

    >>> modulo(-7.0, 3.0), modulo(7.0, -3.0), modulo(1.0, 0.0)
    (2.0, -2.0, nan)
    """
    rest = fmod(a, b)
    if rest == 0.0:
        return math.copysign(0.0, b)
    return rest + b if (rest < 0.0) != (b < 0.0) else rest


def sign(x: float) -> float:
    return 1.0 if x > 0.0 else -1.0 if x < 0.0 else x + 0.0  # 0.0 of -0.0


def log_add(a: float, b: float) -> float:
    """log(exp(a) + exp(b)), without overflow.

    >>> log_add(-math.inf, -math.inf), log_add(1000.0, -1000.0)
    (-inf, 1000.0)
    """
    if a == b:  # infinities too, whose difference would be NaN
        return a + LOG2
    return maximum(a, b) + log1p(exp(-abs(a - b)))
