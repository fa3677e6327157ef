"""Taylor arithmetic: how operations act on truncated power series, given as lists of Taylor coefficients.

A list stands for c[0] + c[1] t + ... + c[n] t**n; higher powers of t are dropped, and coefficients missing at its end
are zero. A rule `rule(n, y, *lists)` gets the order n, the first coefficient y of the result, and the list of each
argument; it gives the list of the result, or None where following the tangent is better. A rule solves the differential
equation of its function, coefficient by coefficient (Griewank & Walther 2008, "Evaluating Derivatives", 2nd edition,
section 13.2), and costs O(n**2), less where lists are short. Coefficients are floats, arrays or numbers that carry
derivatives; rules compute with Python's operators, so floats stay fast. An operation names its rule where it is
declared; the numbers themselves are in `eager/taylor.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce
from itertools import zip_longest
from typing import Any

import numpy as np

from . import ieee

Coefficients = list[Any]

_SMALL_POWER = 64.0  # up to here a power with a whole exponent is a product, since the power itself may underflow


# -- building blocks ---------------------------------------------------------------------------------------------------


def product(a: Coefficients, b: Coefficients, k: int) -> Any:
    """The k-th coefficient of the product of two series.

    >>> product([1.0, 2.0], [10.0, 100.0], 1), product([1.0], [1.0], 5)
    (120.0, 0.0)
    """
    low, high = max(0, k - len(b) + 1), min(k + 1, len(a))
    if low >= high:
        return 0.0
    return reduce(operator.add, map(operator.mul, a[low:high], b[k - high + 1 : k - low + 1][::-1]))


def slope(x: Coefficients) -> Coefficients:
    """The derivative of a series.

    >>> slope([5.0, 2.0, 3.0])
    [2.0, 6.0]
    """
    return [k * x[k] for k in range(1, len(x))]


def at(x: Coefficients, k: int) -> Any:
    """The k-th coefficient, zero where it is missing."""
    return x[k] if k < len(x) else 0.0


def quotient(a: Any, b: Any) -> Any:
    """Division that follows IEEE 754, where that of Python's floats raises."""
    return ieee.divide(a, b) if type(a) is float and type(b) is float else a / b


def some_zero(x: Any) -> bool:
    """Whether some element is known to be zero; False for nodes."""
    truth = x == 0.0
    return isinstance(truth, bool | np.bool_ | np.ndarray) and bool(np.any(truth))


# -- rules -------------------------------------------------------------------------------------------------------------


def add(n: int, y: Any, a: Coefficients, b: Coefficients) -> Coefficients:
    both = min(len(a), len(b))
    return [y, *map(operator.add, a[1:both], b[1:both]), *a[both:], *b[both:]]


def subtract(n: int, y: Any, a: Coefficients, b: Coefficients) -> Coefficients:
    both = min(len(a), len(b))
    return [y, *map(operator.sub, a[1:both], b[1:both]), *a[both:], *(-c for c in b[both:])]


def linear(operation: Callable[[Any], Any]) -> Callable[..., Coefficients]:
    """The rule of a linear operation."""
    return lambda n, y, x: [y, *map(operation, x[1:])]


def multilinear(operation: Callable[..., Any]) -> Callable[..., Coefficients]:
    """The rule of a multilinear operation, such as a product of matrices.

    The cost is n to the power of the number of arguments that are series.

    >>> multilinear(lambda a, b: a * b)(2, 2.0, [1.0, 10.0], [2.0, 3.0])
    [2.0, 23.0, 30.0]
    """

    def rule(n: int, y: Any, *lists: Coefficients) -> Coefficients:
        highest = min(n, sum(len(x) - 1 for x in lists))
        return [y, *(reduce(operator.add, _terms(operation, k, (), lists)) for k in range(1, highest + 1))]

    return rule


def _terms(
    operation: Callable[..., Any], k: int, chosen: tuple[Any, ...], lists: tuple[Coefficients, ...]
) -> list[Any]:
    """The terms of a product's k-th coefficient, with the coefficients of the first factors chosen."""
    first, rest = lists[0], lists[1:]
    if not rest:
        return [operation(*chosen, first[k])] if k < len(first) else []
    return [
        term
        for i, c in enumerate(first[: k + 1])
        if k - i <= sum(len(x) - 1 for x in rest)
        for term in _terms(operation, k - i, (*chosen, c), rest)
    ]


def multiply(n: int, y: Any, a: Coefficients, b: Coefficients) -> Coefficients:
    return [y, *(product(a, b, k) for k in range(1, min(n, len(a) + len(b) - 2) + 1))]


def divide(n: int, y: Any, a: Coefficients, b: Coefficients) -> Coefficients:
    rest, divisor, c = b[1:], b[0], [y]
    for k in range(1, (n if rest else min(n, len(a) - 1)) + 1):
        c.append(quotient(at(a, k) - product(rest, c, k - 1), divisor))
    return c


def solve(
    n: int, y: Any, a: Coefficients, b: Coefficients, solver: Callable[..., Any], matmul: Callable[..., Any]
) -> Coefficients:
    """a y = b for matrices: for each coefficient a solve with a[0]."""
    rest, c = a[1:], [y]
    for k in range(1, (n if rest else min(n, len(b) - 1)) + 1):
        right = at(b, k)
        for j, matrix in enumerate(rest[:k]):
            right = right - matmul(matrix, c[k - 1 - j])
        c.append(solver(a[0], right))
    return c


def exponential(n: int, y: Any, x: Coefficients) -> Coefficients:
    """y' = x' y."""
    dx, c = slope(x), [y]
    for k in range(1, n + 1):
        c.append(product(dx, c, k - 1) / k)
    return c


def logarithm(n: int, y: Any, x: Coefficients, first: Any = None) -> Coefficients:
    """x y' = x'; `first` replaces x[0], as in log(1 + x)."""
    rest, at_zero = x[1:], x[0] if first is None else first
    c, dc = [y], list[Any]()
    for k in range(1, n + 1):
        dc.append(quotient(k * at(x, k) - product(rest, dc, k - 2), at_zero))
        c.append(dc[-1] / k)
    return c


def square_root(n: int, y: Any, x: Coefficients) -> Coefficients:
    """y y = x."""
    c, rest, twice = [y], list[Any](), 2.0 * y
    for k in range(1, n + 1):
        rest.append(quotient(at(x, k) - product(rest, rest, k - 2), twice))
        c.append(rest[-1])
    return c


def sine_and_cosine(
    n: int, sine: Any, cosine: Any, x: Coefficients, sign: int = -1
) -> tuple[Coefficients, Coefficients]:
    """s' = c x', c' = sign s x', where sign 1 makes them hyperbolic."""
    dx, s, c = slope(x), [sine], [cosine]
    for k in range(1, n + 1):
        up, down = product(dx, c, k - 1) / k, product(dx, s, k - 1) / (sign * k)
        s.append(up)
        c.append(down)
    return s, c


def tangent(n: int, y: Any, x: Coefficients) -> Coefficients:
    """y' = (1 + y**2) x'."""
    dx, c, slopes = slope(x), [y], [1.0 + y * y]
    for k in range(1, n + 1):
        c.append(product(dx, slopes, k - 1) / k)
        slopes.append(product(c, c, k))
    return c


def sigmoid(n: int, y: Any, rest: Any, x: Coefficients) -> Coefficients:
    """y' = y (1 - y) x'; `rest` is 1 - y[0], to full precision."""
    dx, c, others, slopes = slope(x), [y], [rest], [y * rest]
    for k in range(1, n + 1):
        c.append(product(dx, slopes, k - 1) / k)
        others.append(-c[k])
        slopes.append(product(c, others, k))
    return c


def tanh(n: int, y: Any, x: Coefficients, logistic: Callable[[Any], Any]) -> Coefficients:
    """tanh(x) = 2 sigmoid(2 x) - 1, whose derivative keeps full precision where tanh is close to 1."""
    twice = [2.0 * c for c in x]
    c = sigmoid(n, logistic(twice[0]), logistic(-twice[0]), twice)
    return [y, *(2.0 * part for part in c[1:])]


def power(n: int, y: Any, a: Coefficients, b: Coefficients, log: Callable[[Any], Any]) -> Coefficients | None:
    """a y' = b a' y for a constant exponent, exp(b log(a)) for one that varies.

    Neither works where the base or the power is zero. There a whole exponent is a product, a varying one has limits up
    to its own order (`_power_of_zero`), and all others follow the tangent.
    """
    r = b[0]
    if len(b) > 1:
        if some_zero(a[0]):
            return _power_of_zero(n, y, a, b, log)
        first = log(a[0])
        return exponential(n, y, multiply(n, r * first, b, logarithm(n, first, a) if len(a) > 1 else [first]))
    whole = type(r) is float and r >= 0.0 and r.is_integer()
    if whole and r <= _SMALL_POWER:
        return _whole_power(n, y, a, int(r))
    if some_zero(a[0]) or some_zero(y):
        return _whole_power(n, y, a, int(r)) if whole else None
    da, rest, c, dc = slope(a), a[1:], [y], list[Any]()
    for k in range(1, n + 1):
        dc.append(quotient(r * product(da, c, k - 1) - product(rest, dc, k - 2), a[0]))
        c.append(dc[-1] / k)
    return c


def _power_of_zero(n: int, y: Any, a: Coefficients, b: Coefficients, log: Callable[[Any], Any]) -> Coefficients | None:
    """A power where elements of the base are zero and the exponent varies; for plain numbers only.

    Near t = 0 the power (a[1] t + ...)**(r + ...) is a[1]**r t**r, followed by t**(r + 1) log(t), whose derivatives do
    not exist. By convention 0 to any power, 0**0 included, is constant in the exponent.
    """
    if any(type(c) not in (float, np.ndarray) for c in (*a, *b)):
        return None
    if len(a) == 1 and type(a[0]) is float:
        return [y]
    r = b[0]
    with np.errstate(all="ignore"):
        zero = np.equal(a[0], 0.0)
        safe = np.where(zero, 1.0, a[0])
        others = power(n, np.power(safe, r), [safe, *a[1:]], b, log)
        assert others is not None
        leading = np.where(np.equal(r, 0.0) | (len(a) == 1), 0.0, np.power(at(a, 1), r))
        found = [y]
        for k in range(1, n + 1):
            end = np.where(np.equal(r, 0.0) | (len(a) == 1) | np.greater(r, k), 0.0, math.nan)
            part = np.where(zero, np.where(np.equal(r, k), leading, end), others[k])
            found.append(part if part.ndim else float(part))
    return found


def _whole_power(n: int, y: Any, a: Coefficients, r: int) -> Coefficients:
    """A power with a whole exponent, by repeated squaring."""
    result: Coefficients | None = None
    square = a
    while r:
        if r & 1:
            result = square if result is None else multiply(n, result[0] * square[0], result, square)
        r >>= 1
        if r:
            square = multiply(n, square[0] * square[0], square, square)
    return [y] if result is None else [y, *result[1:]]


def choosing(better: Callable[[Any, Any], Any], choose: Callable[..., Any]) -> Callable[..., Coefficients]:
    """The rule of an operation that selects one of two arguments: the first where `better(a, b)` holds."""
    return lambda n, y, a, b: where(n, y, [better(a[0], b[0])], a, b, choose)


def where(
    n: int, y: Any, condition: Coefficients, a: Coefficients, b: Coefficients, choose: Callable[..., Any]
) -> Coefficients:
    truth = condition[0]
    if type(truth) is bool:
        return [y, *(a if truth else b)[1:]]
    return [y, *(choose(truth, p, q) for p, q in zip_longest(a[1:], b[1:], fillvalue=0.0))]
