"""The kinds of numbers that carry derivatives: the table of their rules, and what is read off a number of any kind.

A number is what is in the table; a plain value is anything else. The classes are in `numbers.py`, `taylor.py` and
`mutation/arrays.py`, which enter themselves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from ..errors import Error, shown
from ..ir.operation import Operation, as_number
from .perturbations import place

fresh: Callable[[], int] = itertools.count(1).__next__
"""The next serial number, for tags and for cells, so that their ages compare. Thread-safe."""

LIFTS: dict[type, Callable[[Operation, int, list[Any]], Any]] = {}
"""For each kind of numbers, the rule that applies an operation whose youngest argument is of this kind; see
`numbers.lift`."""


_ndarray = np.ndarray


def tag_of(x: Any) -> int:
    """The outermost tag of a number, which is its youngest; 0 for a plain value."""
    return x.tag if type(x) in LIFTS else 0


def real_part(x: Any) -> Any:
    """The value of a number, without any derivatives."""
    while type(x) in LIFTS:
        x = x.primal
    return x


def shape_of(x: Any) -> tuple[int, ...]:
    """`np.shape` of what users pass, lists among it, for numbers with derivatives too; not for nodes.

    What operations take says its shape itself: that is for `ir/ops/arrays.py`.

    >>> shape_of(2.0), shape_of(np.ones((2, 3)))
    ((), (2, 3))
    """
    kind = type(x)
    while kind in LIFTS:
        x = x.primal
        kind = type(x)
    return x.shape if kind is _ndarray else () if kind is float else np.shape(x)


def zero_like(x: Any) -> Any:
    """Zeros in the shape of a number.

    >>> zero_like(3.0), zero_like(np.ones(2))
    (0.0, array([0., 0.]))
    """
    shape = shape_of(x)
    return np.zeros(shape) if shape else 0.0


_FLOAT = np.dtype(np.float64)


def plain(x: Any) -> Any:
    """An argument of an operation, normalised: a float, an array of floats, a number with derivatives or a truth value.

    Arrays are not copied here, but where an operation keeps them; see `copies.py`.
    """
    kind = type(x)
    if kind is float or (kind is np.ndarray and x.ndim and x.dtype is _FLOAT):
        return x
    if kind in LIFTS:
        return x.settled()
    if kind is int:
        return as_number(x)
    if isinstance(x, np.ndarray):
        return _plain_array(x)
    if kind is np.float64:
        return float(x)
    if isinstance(x, np.generic):
        if kind is np.bool_:
            return x.item()
        if isinstance(x, np.number) and not isinstance(x, np.complexfloating):
            return float(x)
    if isinstance(x, complex | np.complexfloating):
        raise is_complex(repr(x))
    if isinstance(x, list | tuple):
        rows = [plain(part) if isinstance(part, list | tuple) else part for part in x]
        if any(type(part) in LIFTS for part in rows):
            return np.stack(rows)
        try:
            return np.asarray(x, np.float64)
        except (TypeError, ValueError):
            if _has_complex(x):
                raise is_complex(shown(x)) from None
            raise Error(f"an array of reals is needed, and this is {shown(x)}") from None
    if isinstance(x, Real):  # fractions
        return as_number(x)
    return x


def _has_complex(x: Any) -> bool:
    try:
        return bool(np.asarray(x).dtype.kind == "c")
    except ValueError:  # its parts differ in shape
        return False


def _plain_array(x: Any) -> Any:
    if type(x) is not np.ndarray:
        if type(x) not in _SAME:
            raise Error(
                f"an array of class {type(x).__name__}, which computes by rules of its own, cannot be used together "
                "with derivatives; convert it with np.asarray(x), or with x.filled(0.0) if it is masked" + place()
            )
        x = np.asarray(x)
    if not x.ndim and x.dtype.kind in "biuf":
        return plain(x[()])
    if x.dtype == np.float64 or x.dtype == np.bool_:
        return x
    if x.dtype.kind in "iuf":
        return x.astype(np.float64)
    if x.dtype.kind == "c":
        raise is_complex(f"an array of {x.dtype}")
    if x.dtype.kind == "O":
        raise Error(
            f"an array of objects holds numbers with derivatives; stack them with np.stack or np.array first{place()}"
        )
    raise Error(f"an array of {x.dtype} has no numbers to compute with{place()}")


_SAME = frozenset([np.memmap])  # subclasses of arrays that compute as arrays do


def is_complex(what: str) -> Error:
    """The error for complex numbers."""
    return Error(f"derivatives are of reals, and {what[:60]} is complex; keep its two parts as reals{place()}")


def as_element(x: Any) -> Any:
    """A result of numpy, whose single numbers are marked as numpy scalars; see `Number.element`."""
    return x.as_element() if type(x) in LIFTS and not x.element and not shape_of(x) else x
