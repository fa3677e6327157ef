"""What numpy's functions do with numbers: the table of their handlers, and what all handlers read arguments with.

A handler takes the arguments of the numpy function of its name, of which some are numbers, others arrays, floats or
lists, and is made of operations. The handlers are in the files beside it, by kind: shapes, arranging, reductions,
linear algebra and so on; here is none. How numpy gets to them is in `protocol.py`, which also turns away options
that a handler does not take.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import Error
from ...ir.ops import arrays
from ...ir.ops.arrays import shape_of
from ..dispatch import lift
from ..numbers import Number, as_element, real_part
from ..perturbations import place

Handler = Callable[..., Any]

FUNCTIONS: dict[Any, Handler] = {}
"""The handler of a numpy function."""
TAKES: dict[Any, frozenset[str]] = {}
"""The names of the arguments of each handler."""
POSITIONAL: dict[Any, int | None] = {}
"""How many of its arguments it takes by their places; None for any number."""


_PLACED, _REST = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL


def implements(*names: str) -> Callable[[Handler], Handler]:
    """Enter a handler for numpy's functions of these names, as far as this numpy has them."""

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


# -- arguments ---------------------------------------------------------------------------------------------------------


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes as numbers from 0; None is all of them."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, tuple | list):
        return (axis_of(axis, ndim),)
    found = tuple(axis_of(a, ndim) for a in axis)
    if len(set(found)) < len(found):
        raise ValueError("an axis is named twice")
    return found


def axis_of(axis: Any, ndim: int) -> int:
    i = operator.index(axis)
    if not -ndim <= i < ndim:
        raise np.exceptions.AxisError(i, ndim)
    return i % ndim


def whole(name: str, what: str, x: Any) -> int:
    """An argument that says how many there are, or where, as a whole number that is known.

    >>> whole("np.linspace", "num", np.int64(3))
    3
    """
    if isinstance(x, Number) or hasattr(type(x), "__apply_operation__"):
        known = "no number with derivatives" if isinstance(x, Number) else "known when the function is compiled"
        raise Error(f"{name}: {what} is a whole number, and should be {known}{place()}")
    return operator.index(x)


def is_known(x: Any) -> bool:
    """Whether a number without derivatives is there already, and not only as a graph runs."""
    return isinstance(x, float | int | np.ndarray | np.generic)


def rank(x: Any) -> int:
    """The number of axes."""
    return len(shape_of(x))


def elements(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """How many elements there are along axes."""
    return math.prod(shape[i] for i in axes)


def of_dtype(what: str, x: Any, dtype: Any) -> Any:
    """A number as one of another kind: whole numbers and truth values are steps of it, and have no derivatives."""
    wanted = np.dtype(dtype)
    if wanted == np.float64:
        return x
    if wanted.kind not in "biu":
        advice = "; leave the conversion out, or convert the result" if wanted.kind == "f" else ""
        raise Error(f"{what} is of float64, and cannot become {wanted}{advice}{place()}")
    return np.asarray(real_part(x)).astype(wanted)[()]


def item_of(x: Any, index: Any) -> Any:
    """`x[index]`."""
    if isinstance(index, Number) or (type(index) is tuple and any(isinstance(i, Number) for i in index)):
        raise Error(
            "an index is a whole number, and this one carries derivatives; use np.argmax and the like to make one"
        )
    return as_element(lift(arrays.getitem(index), (x,)))
