"""Numbers of 250 digits for the oracle of DVL, and polynomials of tags whose squares are zero."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import mpmath
from mpmath import mpf

DIGITS = 250
STEP = 30
LARGEST = 1e7
GAP = 1e-7


class Unclear(Exception):
    """The program is no test of rounding arithmetic."""


class Tag:
    """What `gensym` makes."""

    made = itertools.count()

    def __init__(self) -> None:
        self.number = next(Tag.made)


Terms = dict[frozenset[int], Any]


class Polynomial:
    """A number with variables whose squares are zero: a coefficient for each set of them."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms


def is_number(x: Any) -> bool:
    return isinstance(x, mpf | Polynomial)


def terms_of(x: Any) -> Terms:
    return x.terms if isinstance(x, Polynomial) else {frozenset(): x}


def number(terms: Terms) -> Any:
    """A number that is no larger than what rounding arithmetic can be held to."""
    for c in terms.values():
        if abs(c) > LARGEST:
            raise Unclear("a number is large")
    nothing: frozenset[int] = frozenset()
    return Polynomial(terms) if terms.keys() - {nothing} else terms.get(nothing, mpf(0))


def real_of(x: Any) -> Any:
    return terms_of(x).get(frozenset(), mpf(0))


def plus(a: Any, b: Any, sign: int = 1) -> Any:
    found = dict(terms_of(a))
    for tags, c in terms_of(b).items():
        found[tags] = found.get(tags, mpf(0)) + sign * c
    return number(found)


def times(a: Any, b: Any) -> Any:
    found: Terms = {}
    for tags, c in terms_of(a).items():
        for others, d in terms_of(b).items():
            if not tags & others:
                found[tags | others] = found.get(tags | others, mpf(0)) + c * d
    return number(found)


def of_series(f: Callable[[Any], Any], x: Any) -> Any:
    """f at a number: of a polynomial by its Taylor series, whose coefficients are differences, and which ends."""
    if isinstance(x, mpf):
        return number({frozenset(): mpf(f(x))})
    at = real_of(x)
    rest = plus(x, -at)
    total, power, order = of_series(f, at), rest, 1
    while isinstance(power, Polynomial) and any(power.terms.values()):
        c = mpmath.diff(f, at, order, h=mpf(10) ** -STEP) / mpmath.factorial(order)
        total = plus(total, times(c, power))
        power, order = times(power, rest), order + 1
    return total


def reciprocal(x: Any) -> Any:
    if abs(x) < GAP:
        raise Unclear("a division by nearly zero")
    return 1 / x


def over(a: Any, b: Any) -> Any:
    return times(a, of_series(reciprocal, b))


def guarded(f: Callable[[Any], Any], least: float, most: float = 1e9) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        if not least + GAP < real_of(x) < most - GAP:
            raise Unclear("an argument at the edge of what a function takes")
        return of_series(f, x)

    return run


def absolute(x: Any) -> Any:
    if abs(real_of(x)) < GAP:
        raise Unclear("abs at nearly zero")
    return times(mpf(mpmath.sign(real_of(x))), x)


def two_arctan(y: Any, x: Any) -> Any:
    """The angle of a point, which is that of its real part, and what is turned from there."""
    p, q = real_of(y), real_of(x)
    if q * q + p * p < GAP or (q < 0 and abs(p) < GAP):
        raise Unclear("atan at its cut")
    turned = over(plus(times(y, q), times(x, p), -1), plus(times(x, q), times(y, p)))
    return plus(mpmath.atan2(p, q), of_series(mpmath.atan, turned))


def power_of(a: Any, b: Any) -> Any:
    if isinstance(b, mpf) and b == int(b) and 0 <= b < 20:
        found: Any = mpf(1)
        for _ in range(int(b)):
            found = times(found, a)
        return found
    return of_series(mpmath.exp, times(b, guarded(mpmath.log, 0)(a)))
