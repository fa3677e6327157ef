"""Taylor mode: truncated power series in one variable, for derivatives of high order.

A `Series` generalises `Bundle`: applying a function to x + t, with powers of t above the order dropped, gives its
Taylor coefficients, in time polynomial in the order, where nested tangents take 2**n (Griewank & Walther 2008, chapter
13).
`ir/ops/series.py` has the rules of operations on coefficients; an operation without one follows its tangent
(`_by_tangent`). Tags and nesting are as in `numbers.py`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ..errors import Error
from ..ir.operation import Operation, apply
from ..ir.ops import scalars as ops
from ..ir.ops.arrays import broadcast_to
from ..ir.ops.series import slope
from .copies import owned
from .kinds import LIFTS, fresh, shape_of, tag_of, zero_like
from .numbers import Bundle, Number, TapeCell, bundle
from .perturbations import opened
from .pytree import is_function, leaves, no_hidden_numbers, of_result, transform
from .result_checks import finite_choice
from .splitting import SPLITS, cell_at, cells_of, split
from .tangents import quiet, tangent_part


class Series(Number):
    """c[0] + c[1] * tag + ... + c[order] * tag**order, where tag**(order + 1) is zero.

    Coefficients missing at the end are zero; the others have one shape, and hold smaller tags only.
    """

    __slots__ = ("coefficients", "element", "order", "tag")

    def __init__(self, tag: int, order: int, coefficients: list[Any], element: bool = False) -> None:
        self.tag, self.order, self.coefficients, self.element = tag, order, coefficients, element

    def as_element(self, element: bool = True) -> Any:
        return Series(self.tag, self.order, self.coefficients, element)

    @property
    def primal(self) -> Any:
        return self.coefficients[0]

    def held(self) -> Sequence[Any]:
        return self.coefficients


def make(tag: int, order: int, coefficients: Sequence[Any]) -> Any:
    """The sum of coefficients times powers of the tag, youngest tag outermost; the first alone if there are no others.

    A coefficient that is zero by value is kept, since zero times an infinite partial derivative is NaN and not zero.

    >>> make(3, 2, [5.0])
    5.0
    """
    kept = list(coefficients[: order + 1])
    if len(kept) == 1:
        return kept[0]
    if all(tag_of(c) < tag for c in kept):
        return Series(tag, order, kept)
    variable, total = Series(tag, order, [0.0, 1.0]), kept[-1]
    for c in reversed(kept[:-1]):  # by Horner's rule: operations put younger tags outermost
        total = apply(ops.add, c, apply(ops.multiply, variable, total))
    return total


# -- operations --------------------------------------------------------------------------------------------------------


def _lift_series(operation: Operation, tag: int, arguments: list[Any]) -> Any:
    n = min(x.order for x in arguments if tag_of(x) == tag)
    lists = [x.coefficients[: n + 1] if tag_of(x) == tag else [x] for x in arguments]
    y = owned(apply(operation, *(c[0] for c in lists)))
    with quiet(y):
        found = None if operation.series is None else operation.series(n, y, *lists)
        if found is None:
            found = _by_tangent(operation, tag, n, y, lists)
    if operation.elementwise:
        shape = shape_of(y)
        if shape:
            found = [c if shape_of(c) == shape else broadcast_to(shape)(c) for c in found]
    return make(tag, n, found)


def _by_tangent(operation: Operation, tag: int, n: int, y: Any, lists: list[list[Any]]) -> list[Any]:
    """Solves the differential equation y' = rule(x', y, x): k y[k] is coefficient k - 1 of the right side.

    A rule that does not read y gives all coefficients at once. Otherwise the equation is solved coefficient by
    coefficient, with the coefficients of y known so far. Operations whose rules apply each other to the same arguments,
    such as those of one decomposition or Bessel functions of all orders, share known coefficients. But an operation
    whose rule applies itself to other arguments, more than once or reading y, should have a series rule: here it would
    take exponential time.
    """
    slopes = [slope(c) for c in lists]

    def right_side(k: int, result: Any) -> list[Any]:
        xs = [make(tag, k, c) for c in lists]
        total = None
        for i, d in enumerate(slopes):
            part = tangent_part(operation, i, make(tag, k, d), result, xs) if d else None
            if part is not None:
                total = part if total is None else apply(ops.add, total, part)
        return [] if total is None else coefficients(tag, total, k)

    with _solutions() as solutions:
        key = (operation, *(id(c[0]) for c in lists))
        solution = solutions.get(key)
        known = _known_already(solution, lists) or [y]
        if len(known) > n:
            return known[: n + 1]
        if solution is None or solution.at_once:
            try:
                known = [y, *(s / (k + 1) for k, s in enumerate(right_side(n - 1, Unknown(y))))]
            except _Needed:
                pass
            else:
                solutions[key] = Solution(lists, known, at_once=True)
                return known
        solutions[key] = Solution(lists, known, at_once=False)
        while len(known) <= n:
            found = right_side(len(known) - 1, make(tag, len(known) - 1, known))
            known.append(found[-1] / len(known) if found else 0.0)
        return known[: n + 1]


@dataclass(frozen=True, slots=True)
class Solution:
    """The known coefficients of a result: a list that may grow, unless all were found at once."""

    arguments: list[list[Any]]
    known: list[Any]
    at_once: bool


Solutions = dict[tuple[Any, ...], Solution]  # by operation and first coefficients, which stay alive with the lists
_current: ContextVar[Solutions | None] = ContextVar("solutions", default=None)


@contextmanager
def _solutions() -> Iterator[Solutions]:
    """The solutions found since the outermost equation was started."""
    found = _current.get()
    if found is not None:
        yield found
        return
    found = {}
    token = _current.set(found)
    try:
        yield found
    finally:
        _current.reset(token)


def _known_already(solution: Solution | None, lists: list[list[Any]]) -> list[Any]:
    """The known coefficients of the order up to which the arguments are the same objects."""
    if solution is None:
        return []
    common = min(_common(a, b) for a, b in zip(solution.arguments, lists, strict=True))
    return solution.known[:common]


def _common(a: list[Any], b: list[Any]) -> int:
    differ = (i for i, (p, q) in enumerate(zip(a, b, strict=False)) if p is not q)
    return next(differ, sys.maxsize if len(a) == len(b) else min(len(a), len(b)))


class _Needed(Exception):
    """A rule reads more of the result than its value."""


class Unknown(Number):
    """A result of which only the value is known: a rule may compare it and read its shape, but not compute with it."""

    __slots__ = ("primal",)

    tag = 1 << 62  # younger than all, so that every operation on it is dispatched to `_refuse`
    element = False

    def __init__(self, primal: Any) -> None:
        self.primal = primal


def _refuse(operation: Operation, tag: int, arguments: list[Any]) -> Any:
    raise _Needed


LIFTS[Series] = _lift_series
LIFTS[Unknown] = _refuse


# -- taking tags out ---------------------------------------------------------------------------------------------------


def _split_series(tag: int, x: Any) -> tuple[Any, Any]:
    if x.tag == tag:
        raise Error(
            "the tag of a series was taken for that of a tangent; this is a mistake in dynagrad, please report it"
        )
    pairs = [split(tag, c) for c in x.coefficients]
    return make(x.tag, x.order, [p for p, _ in pairs]), _series_of(x, [q for _, q in pairs])


def _series_of(x: Any, parts: list[Any]) -> Any:
    """A series with the tag and order of x and these coefficients, where None is zero; None if all of them are."""
    while parts and parts[-1] is None:
        parts.pop()
    return make(x.tag, x.order, [zero_like(x) if c is None else c for c in parts]) if parts else None


SPLITS[Series] = _split_series


def coefficients(tag: int, x: Any, n: int) -> list[Any]:
    """The n + 1 coefficients of a number along the tag of a series, which may be beneath younger tags.

    >>> coefficients(3, Series(3, 2, [5.0, 1.0]), 2), coefficients(3, 7.0, 2)
    ([5.0, 1.0, 0.0], [7.0, 0.0, 0.0])
    """
    found = _parts(tag, x, n)
    return [*found, *[zero_like(x)] * (n + 1 - len(found))]


def _parts(tag: int, x: Any, n: int) -> list[Any]:
    """The coefficients up to n, without zeros at the end."""
    if hasattr(type(x), "__dynagrad_halves__"):
        raise Error(
            "high orders and derivatives by functions cannot be mixed here; take dg.derivative of dg.derivative"
        )
    if tag_of(x) < tag:
        return [x]
    return _TAKEN[type(x)](tag, x, n)[: n + 1]


def _of_series(tag: int, x: Any, n: int) -> list[Any]:
    if x.tag == tag:
        return list(x.coefficients)
    inner = [_parts(tag, c, n) for c in x.coefficients]
    return [_or_zero(_series_of(x, [_at(c, k) for c in inner]), x) for k in range(max(map(len, inner)))]


def _at(parts: Sequence[Any], k: int) -> Any:
    return parts[k] if k < len(parts) else None


def _or_zero(part: Any, x: Any) -> Any:
    return zero_like(x) if part is None else part


def _of_bundle(tag: int, x: Any, n: int) -> list[Any]:
    first, second = _parts(tag, x.primal, n), _parts(tag, x.tangent, n)
    count = max(len(first), len(second))
    return [bundle(x.tag, _or_zero(_at(first, k), x), _at(second, k)) for k in range(count)]


def _of_cell(tag: int, x: Any, n: int) -> list[Any]:
    """As in `split`: the reverse pass gets a cell for each coefficient of this cell and of all its ancestors."""

    def power(k: int, y: Any) -> Any:
        return make(tag, n, [zero_like(y)] * k + [y])

    cells = cells_of(x.tape, tag, x.number, n, lambda y: _parts(tag, y, n), power)
    parts = coefficients(tag, x.primal, n)
    return [p if cell is None else cell_at(x.tape, cell, p) for cell, p in zip(cells, parts, strict=True)]


_TAKEN: dict[type, Callable[[int, Any, int], list[Any]]] = {
    Series: _of_series,
    Bundle: _of_bundle,
    TapeCell: _of_cell,
}

# -- the derivative ----------------------------------------------------------------------------------------------------


def derivative_n(f: Callable[[Any], Any], x: Any, n: int) -> Any:
    """The n-th derivative of a function of one real at x, for structures of results too (Griewank & Walther 2008,
    section 13.1); NotImplemented where results are functions, which have no coefficients.

    Raises NotDifferentiable where the chain rule has no answer.

    >>> derivative_n(lambda x: (x * x, [x / 3.0]), 2.0, 2)
    (2.0, [0.0])
    """

    # The step is a power of two, so scaling is exact, and close to n / e, so that a coefficient is about as large as
    # its derivative: n! and 1 / n! leave the range of floats at n = 171.
    exponent = round(math.log2(n / math.e))
    tag = fresh()
    with opened(tag):
        y = f(make(tag, n, [x, 2.0**exponent]))
        no_hidden_numbers("derivative", y)
    if any(is_function(leaf) for leaf in leaves(y)):
        return NotImplemented
    factor = _scaled_factorial(n, exponent)
    found = of_result(y, lambda r: apply(ops.multiply, factor, coefficients(tag, r, n)[n]))
    return finite_choice("derivative", found, transform(y, lambda r: coefficients(tag, r, n)[0]))


def _scaled_factorial(n: int, exponent: int) -> float:
    """n! / 2**(exponent * n), rounded once."""
    shift = exponent * n
    return math.factorial(n) / (1 << shift) if shift >= 0 else float(math.factorial(n) << -shift)
