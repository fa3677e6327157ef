"""Power series in one variable, cut off at an order: `Bundle` carried on, for derivatives of high order.

A `Series` is what a function makes of x + t, where powers of t above the order are nothing; so its coefficients are
those of Taylor, in time polynomial in the order, where nested tangents take 2**n. How operations act on coefficients is
in `graph/series.py`; an operation without a rule there follows its tangent (`_by_tangent`). Tags, and numbers inside
numbers, are as in `numbers.py`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..errors import Error
from ..graph import operations as ops
from ..graph.arrays import broadcast_to
from ..graph.operation import Operation, apply
from ..graph.series import slope
from .applying import quiet, tangent_part
from .copies import owned
from .numbers import LIFTS, Bundle, Number, TapeCell, bundle, fresh, shape_of, tag_of, zero_like
from .passes import opened
from .splitting import SPLITS, cell_at, cells_of, split
from .structure import is_function, leaves, transform


class Series(Number):
    """c[0] + c[1] * tag + ... + c[order] * tag**order, where tag**(order + 1) is zero.

    Coefficients that are missing at the end are zero; those that are there have one shape. They hold smaller tags.
    """

    __slots__ = ("coefficients", "order", "tag")

    def __init__(self, tag: int, order: int, coefficients: list[Any]) -> None:
        self.tag, self.order, self.coefficients = tag, order, coefficients

    @property
    def primal(self) -> Any:
        return self.coefficients[0]

    def held(self) -> Sequence[Any]:
        return self.coefficients


def make(tag: int, order: int, coefficients: Sequence[Any]) -> Any:
    """The sum of coefficients times powers of the tag, sorted by tag; the first one alone where the others are zero.

    >>> make(3, 2, [5.0, 0.0])
    5.0
    """
    kept = list(coefficients[: order + 1])
    while len(kept) > 1 and type(kept[-1]) is float and kept[-1] == 0.0:
        kept.pop()
    if len(kept) == 1:
        return kept[0]
    if all(tag_of(c) < tag for c in kept):
        return Series(tag, order, kept)
    variable, total = Series(tag, order, [0.0, 1.0]), kept[-1]
    for c in reversed(kept[:-1]):  # numbers that hold younger tags put themselves outside
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
    """Solves y' = rule(x', y, x), where k y[k] is the coefficient k - 1 on the right.

    A rule that does not look at y gives all coefficients at once. For another one the equation is solved coefficient by
    coefficient, with what is known of y so far. Operations whose rules apply each other to the same arguments, such as
    those of one decomposition, find the coefficients that are known already. But an operation whose rule applies the
    operation itself to something else, more than once or looking at y, should have a rule for series: this one would
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
        known = _known_already(solutions.get(key), lists) or [y]
        if len(known) == 1:
            try:
                return [y, *(s / (k + 1) for k, s in enumerate(right_side(n - 1, Unknown(y))))]
            except _Needed:
                pass
        if len(known) <= n:
            solutions[key] = (lists, known)
        while len(known) <= n:
            found = right_side(len(known) - 1, make(tag, len(known) - 1, known))
            known.append(found[-1] / len(known) if found else 0.0)
        return known[: n + 1]


Solution = tuple[list[list[Any]], list[Any]]  # the lists of arguments, and what is known of the result
Solutions = dict[tuple[Any, ...], Solution]  # by operation and first coefficients, which stay alive with the lists
_current: ContextVar[Solutions | None] = ContextVar("solutions", default=None)


@contextmanager
def _solutions() -> Iterator[Solutions]:
    """What has been solved since the outermost equation was begun."""
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
    """The coefficients that follow from those in which the arguments are the same objects."""
    if solution is None:
        return []
    common = min(_common(a, b) for a, b in zip(solution[0], lists, strict=True))
    return solution[1][:common]


def _common(a: list[Any], b: list[Any]) -> int:
    differ = (i for i, (p, q) in enumerate(zip(a, b, strict=False)) if p is not q)
    return next(differ, sys.maxsize if len(a) == len(b) else min(len(a), len(b)))


class _Needed(Exception):
    """A rule computed with the result."""


class Unknown(Number):
    """A result of which only the value is known: rules may compare it and see its shape, but not compute with it."""

    __slots__ = ("primal",)

    tag = 1 << 62  # younger than all: whatever is computed with it comes to `_refuse`

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
            "the tag of a series was looked for as that of a tangent; this is a mistake in dynagrad, please report"
        )
    pairs = [split(tag, c) for c in x.coefficients]
    first = make(x.tag, x.order, [p for p, _ in pairs])
    if all(q is None for _, q in pairs):
        return first, None
    return first, make(x.tag, x.order, [zero_like(p) if q is None else q for p, q in pairs])


SPLITS[Series] = _split_series


def coefficients(tag: int, x: Any, n: int) -> list[Any]:
    """The n + 1 coefficients of a series with this tag; also where it is beneath younger tags.

    >>> coefficients(3, Series(3, 2, [5.0, 1.0]), 2), coefficients(3, 7.0, 2)
    ([5.0, 1.0, 0.0], [7.0, 0.0, 0.0])
    """
    found = _parts(tag, x, n)
    return [*found, *[zero_like(x)] * (n + 1 - len(found))]


def _parts(tag: int, x: Any, n: int) -> list[Any]:
    """The coefficients up to n, without zeros at the end."""
    if hasattr(type(x), "halves"):
        raise Error(
            "high orders and derivatives by functions cannot be mixed here; take dg.derivative of dg.derivative"
        )
    if tag_of(x) < tag:
        return [x]
    return _TAKEN[type(x)](tag, x, n)[: n + 1]


def _of_series(tag: int, x: Any, n: int) -> list[Any]:
    if x.tag == tag:
        return list(x.coefficients)
    inner = [coefficients(tag, c, n) for c in x.coefficients]
    return [make(x.tag, x.order, [c[k] for c in inner]) for k in range(n + 1)]


def _of_bundle(tag: int, x: Any, n: int) -> list[Any]:
    pairs = zip(coefficients(tag, x.primal, n), coefficients(tag, x.tangent, n), strict=True)
    return [bundle(x.tag, p, d) for p, d in pairs]


def _of_cell(tag: int, x: Any, n: int) -> list[Any]:
    """As `split` does it: that pass gets a cell for each coefficient, of this cell and of all its ancestors."""

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
    """The n-th derivative of a function of one real at x, through structures of results (Griewank & Walther 2008,
    section 13.1).

    Where there are functions among the results, derivatives of derivatives are taken instead. Raises NotDifferentiable
    where the chain rule has no answer.

    >>> derivative_n(lambda x: (x * x, [x / 3.0]), 2.0, 2)
    (2.0, [0.0])
    """
    from .closures import finite_choice
    from .verbs import derivative

    # The step is a power of two, so no digits are lost, and close to n / e, so that a coefficient is about as large as
    # its derivative: n! and 1 / n! leave the range of floats at n = 171.
    exponent = round(math.log2(n / math.e))
    tag = fresh()
    with opened(tag):
        y = f(make(tag, n, [x, 2.0**exponent]))
    if any(is_function(leaf) for leaf in leaves(y)):
        return derivative(derivative(f), n - 1)(x)
    factor = _scaled_factorial(n, exponent)
    found = transform(y, lambda r: apply(ops.multiply, factor, coefficients(tag, r, n)[n]))
    return finite_choice("derivative", found, transform(y, lambda r: coefficients(tag, r, n)[0]))


def _scaled_factorial(n: int, exponent: int) -> float:
    """n! / 2**(exponent * n), rounded once."""
    shift = exponent * n
    return math.factorial(n) / (1 << shift) if shift >= 0 else float(math.factorial(n) << -shift)
