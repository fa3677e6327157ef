"""The functions of `dynagrad.math`: those of Python's `math`, on numbers with derivatives too.

On floats they are Python's own. On a number with derivatives Python's function computes the value, so that values and
errors are the same; the derivative is that of the function of numpy or of this package in the tables here. No
derivative is declared here. Compiled functions use these tables too (`compiler/library/math.py`).
"""

from __future__ import annotations

import functools
import math
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...errors import Error
from ..kinds import LIFTS, plain, real_part, shape_of
from ..perturbations import place
from . import special
from .numpy_names import ORIGINALS

MODULE = "dynagrad.math"

MATH: dict[Any, Any] = {
    math.sqrt: np.sqrt,
    math.exp: np.exp,
    math.expm1: np.expm1,
    math.log1p: np.log1p,
    math.log2: np.log2,
    math.log10: np.log10,
    math.sin: np.sin,
    math.cos: np.cos,
    math.tan: np.tan,
    math.asin: np.arcsin,
    math.acos: np.arccos,
    math.atan: np.arctan,
    math.atan2: np.arctan2,
    math.sinh: np.sinh,
    math.cosh: np.cosh,
    math.tanh: np.tanh,
    math.asinh: np.arcsinh,
    math.acosh: np.arccosh,
    math.atanh: np.arctanh,
    math.hypot: np.hypot,
    math.fabs: np.fabs,
    math.copysign: np.copysign,
    math.fmod: np.fmod,
    math.degrees: np.degrees,
    math.radians: np.radians,
    math.isnan: np.isnan,
    math.isinf: np.isinf,
    math.isfinite: np.isfinite,
    math.pow: np.power,
} | {getattr(math, name): getattr(np, name) for name in ("cbrt", "exp2") if hasattr(math, name)}
"""Functions of numpy that equal functions of `math` on reals."""

SPECIAL: dict[Any, Any] = {
    math.gamma: special.gamma,
    math.lgamma: special.gammaln,
    math.erf: special.erf,
    math.erfc: special.erfc,
}
"""Functions of `dg.special` that equal functions of `math`."""


def _hypot(*coordinates: Any) -> Any:
    found = abs(coordinates[0]) if coordinates else 0.0
    for x in coordinates[1:]:
        found = np.hypot(found, x)
    return found


def _fsum(seq: Iterable[Any]) -> Any:
    items = list(seq)
    total: Any = 0.0
    for x in items:
        total = total + x
    rest = math.fsum(map(real_part, items)) - real_part(total)  # corrects the value to the correctly rounded sum
    return total + rest if math.isfinite(rest) else total


def _prod(iterable: Iterable[Any], *, start: Any = 1) -> Any:
    for x in iterable:
        start = start * x
    return start


def _dist(p: Iterable[Any], q: Iterable[Any]) -> Any:
    return _hypot(*(a - b for a, b in zip(p, q, strict=True)))


def _frexp(x: Any) -> Any:
    exponent = math.frexp(real_part(x))[1]
    half = exponent // 2
    return x * 2.0**-half * 2.0 ** (half - exponent), exponent  # in two steps, since 2.0**1074 overflows


def _remainder(x: Any, y: Any) -> Any:
    a, b = real_part(x), real_part(y)
    if math.isnan(a) or math.isnan(b):
        return x + y
    times = 0.0 if math.isinf(b) else np.rint((a - math.remainder(a, b)) / b)
    return x - y * float(np.clip(times, -_LARGEST, _LARGEST)) if times else x


_LARGEST = sys.float_info.max


def _ldexp(x: Any, i: int) -> Any:
    for _ in range(3):  # as 2.0**1074 overflows
        part = max(-1022, min(i, 1023))
        x, i = x * 2.0**part, i - part
    return x


def _modf(x: Any) -> tuple[Any, float]:
    fraction, whole = math.modf(real_part(x))
    if math.isinf(whole):
        return fraction, whole
    return -(whole - x) if math.copysign(1.0, whole) < 0 else x - whole, whole  # zeros have the sign of x


def _nextafter(x: Any, y: Any, **steps: Any) -> Any:
    at = real_part(x)
    after = math.nextafter(at, real_part(y), **steps)
    return x + (after - at) if math.isfinite(after - at) else after  # x, but for some roundings


OWN: dict[Any, Callable[..., Any]] = {
    math.hypot: _hypot,
    math.fsum: _fsum,
    math.prod: _prod,
    math.dist: _dist,
    math.frexp: _frexp,
    math.remainder: _remainder,
    math.log: lambda x, *base: np.log(x) / np.log(base[0]) if base else np.log(x),
    math.modf: _modf,
    math.nextafter: _nextafter,
    math.ldexp: _ldexp,
} | {
    getattr(math, name): function
    for name, function in (
        ("fma", lambda x, y, z: x * y + z),
        ("sumprod", lambda p, q: _fsum([a * b for a, b in zip(p, q, strict=True)])),
    )
    if hasattr(math, name)
}
"""Functions that are composed of several operations."""

LOOKS = frozenset(
    getattr(math, name) for name in ("ceil", "floor", "trunc", "isclose", "isnan", "isinf", "isfinite", "ulp")
)
"""Functions whose results are truth values or piecewise constant."""


@functools.cache
def of_math(original: Any) -> Any:
    """The version in `dynagrad.math` of a name of `math`."""
    if not isinstance(original, types.BuiltinFunctionType):
        return original
    derived = OWN.get(original) or SPECIAL.get(original) or MATH.get(original)

    @functools.wraps(original)
    def ours(*arguments: Any, **options: Any) -> Any:
        given = [_listed(x) for x in arguments]
        if not any(map(_has_number, given)) and not any(type(x) in LIFTS for x in options.values()):
            return original(*given, **options)
        given = [_single(original, x) for x in given]
        if derived is None and original not in LOOKS:
            return original(*given, **options)  # a function of integers, which raises
        value = original(*map(_stripped, given), **{key: real_part(x) for key, x in options.items()})
        if derived is None or original in LOOKS:
            return value
        found = derived(*given, **options)
        if isinstance(found, tuple):
            return (_valued(found[0], value[0]), *found[1:])
        return _valued(found, value)

    ours.__module__ = MODULE
    ORIGINALS[ours] = original
    return ours


def _valued(x: Any, value: float) -> Any:
    """A result with the value of Python's own function, to the last digit, and no numpy scalar as little as that."""
    if type(x) not in LIFTS:
        return x
    rest = value - real_part(x)
    x = x + rest if rest and math.isfinite(rest) else x
    return x.as_element(False) if x.element else x


def _listed(x: Any) -> Any:
    """An iterable as a list, so that it can be iterated over twice."""
    return list(x) if isinstance(x, Iterable) and not hasattr(x, "shape") and not isinstance(x, str | bytes) else x


def _has_number(x: Any) -> bool:
    return type(x) in LIFTS or (type(x) is list and any(type(part) in LIFTS for part in x))


def _stripped(x: Any) -> Any:
    return [real_part(part) for part in x] if type(x) is list else real_part(x)


def _single(original: Any, x: Any) -> Any:
    """An argument that is a single number or an iterable of numbers; raises Error for other arrays."""
    if type(x) is list or type(x) not in LIFTS:
        return x
    x = plain(x)
    shape = shape_of(x)
    if not shape:
        return x
    if original in _OF_SEVERAL:
        return [x[i] for i in range(shape[0])]
    if math.prod(shape) == 1:
        return np.reshape(x, ())
    raise Error(
        f"math.{original.__name__} takes single numbers, and was given an array of shape {shape}; use numpy's "
        f"functions for arrays{place()}"
    )


_OF_SEVERAL = frozenset(getattr(math, name) for name in ("fsum", "prod", "dist", "sumprod") if hasattr(math, name))
