"""The table of handlers for numpy's functions on numbers with derivatives, and how handlers read their arguments.

A handler has the parameters of the numpy function of its name, gets numbers, arrays, floats or lists, and is made of
operations. The handlers are in the files beside this one, by kind. `protocol.py` calls them, and rejects options that a
handler does not take.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import Error
from ...ir.operation import apply
from ...ir.ops import arrays
from ...ir.ops.arrays import shape_of
from ..kinds import LIFTS, as_element, plain, real_part
from ..perturbations import place

Handler = Callable[..., Any]

FUNCTIONS: dict[Any, Handler] = {}
"""Handlers by numpy function."""
TAKES: dict[Any, frozenset[str]] = {}
"""The names of the parameters of each handler."""
POSITIONAL: dict[Any, int | None] = {}
"""The number of positional parameters of each handler; None for any number."""
METHODS: dict[str, Handler] = {}
"""`(ufunc, *arguments)` for each method of ufuncs, such as `reduce`."""
OF_SCIPY: dict[str, Handler] = {}
"""Handlers of ufuncs of scipy.special, by name."""
SUCCESSORS: dict[Any, Any] = {old: new for old, new in ((getattr(np, "fix", None), np.trunc),) if old is not None}
"""Functions that newer versions of numpy deprecate, and what does the same, which is called in their place."""


_PLACED, _REST = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL


def implements(*names: str) -> Callable[[Handler], Handler]:
    """Enters a handler for numpy's functions of these names, as far as this version of numpy has them."""

    def enter(handler: Handler) -> Handler:
        for name in names:
            try:
                function = operator.attrgetter(name)(np)
            except AttributeError:
                continue
            FUNCTIONS[function] = handler
            parameters = inspect.signature(handler).parameters
            kinds = [p.kind for p in parameters.values()]
            TAKES[function] = frozenset(parameters)
            POSITIONAL[function] = None if _REST in kinds else sum(kind is _PLACED for kind in kinds)
        return handler

    return enter


# -- options -----------------------------------------------------------------------------------------------------------

_LAYOUTS = (None, np._NoValue, "K", "A", "C", "F")  # of memory, which numbers have none of


def check_options(name: str, options: dict[str, Any]) -> None:
    """Raises Error for options that would change the result."""
    for option, value in options.items():
        if option == "out" and any(x is not None for x in (value if isinstance(value, tuple) else (value,))):
            raise Error(
                f"{name}: out= and in-place operators such as `a += x` would write a number with derivatives into an "
                "array; write `a = a + x`, or make the array with dynagrad.numpy"
            )
        harmless = value is None or value is np._NoValue or option in ("casting", "order", "subok", "out")
        harmless = harmless or (option == "where" and value is True)
        harmless = harmless and not (option == "order" and value not in _LAYOUTS)
        if not harmless and not (option == "dtype" and np.dtype(value) == np.float64):
            raise Error(
                f"{name} does not take {option}={value!r:.40} with numbers that carry derivatives; "
                + ("derivatives are of float64" if option == "dtype" else "choose with np.where, or leave it out")
            )


# -- arguments ---------------------------------------------------------------------------------------------------------


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes as non-negative numbers; None is all of them."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, tuple | list):
        return (axis_of(axis, ndim),)
    found = tuple(axis_of(a, ndim) for a in axis)
    if len(set(found)) < len(found):
        raise ValueError("an axis is named twice")
    return found


def axis_of(axis: Any, ndim: int) -> int:
    """An axis as a non-negative number."""
    i = operator.index(axis)
    if not -ndim <= i < ndim:
        raise np.exceptions.AxisError(i, ndim)
    return i % ndim


def whole(name: str, what: str, x: Any) -> int:
    """A count or a position as a Python integer, which must be known.

    >>> whole("np.linspace", "num", np.int64(3))
    3
    """
    if hasattr(type(x), "__apply_operation__"):
        known = "no number with derivatives" if type(x) in LIFTS else "known when the function is compiled"
        raise Error(f"{name}: {what} is a whole number, and should be {known}{place()}")
    return operator.index(x)


def is_known(x: Any) -> bool:
    """Whether a value is a plain number or array, and not a node of a graph."""
    return isinstance(x, float | int | np.ndarray | np.generic)


def rank(x: Any) -> int:
    """The number of axes."""
    return len(shape_of(x))


def elements(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """The number of elements along axes."""
    return math.prod(shape[i] for i in axes)


def of_dtype(what: str, x: Any, dtype: Any) -> Any:
    """A number converted to a dtype; integers and truth values have no derivatives, being piecewise constant."""
    wanted = np.dtype(dtype)
    if wanted == np.float64:
        return x
    if wanted.kind not in "biu":
        advice = "; leave the conversion out, or convert the result" if wanted.kind == "f" else ""
        raise Error(f"{what} is of float64, and cannot become {wanted}{advice}{place()}")
    return np.asarray(real_part(x)).astype(wanted)[()]


def item_of(x: Any, index: Any) -> Any:
    """`x[index]`."""
    if type(index) in LIFTS or (type(index) is tuple and any([type(i) in LIFTS for i in index])):
        raise Error(
            "an index is a whole number, and this one carries derivatives; use np.argmax and the like to make one"
        )
    take = arrays.getitem(index)
    return as_element(x.__apply_operation__(take, (x,)) if type(x) in LIFTS else apply(take, plain(x)))
