"""Which arguments of numpy's functions must be static: those that decide shapes and algorithms.

Handlers in `eager/numpy/functions.py` and `eager/numpy/linalg.py` call numpy's functions on such arguments. With a
dynamic one they would be called again by numpy's protocol, without end.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ...eager.numpy.functions import name_of
from ...errors import Error
from ..evaluate.arrays import holds_node

_SHAPES = "axis axes axis1 axis2 axisa axisb axisc source destination start shape newshape reps repeats pad_width"
_PLACES = "n k N num offset shift obj indices_or_sections num_or_sections condition deg"
_WAYS = (
    "keepdims dtype order ord kind mode stable copy ddof correction side endpoint decimals UPLO upper full_matrices "
    "compute_uv equal_nan invert assume_unique rowvar bias method increasing density returned retstep indexing sparse "
    "newbyteorder hermitian optimize rcond ndmin minlength trim overwrite_input"
)
KNOWN = frozenset(f"{_SHAPES} {_PLACES} {_WAYS}".split())
"""The names of arguments that must be static."""
_MAY: dict[str, frozenset[str]] = {
    **dict.fromkeys(("linspace", "logspace", "geomspace"), frozenset({"start"})),
    **dict.fromkeys(("pinv", "polyfit"), frozenset({"rcond"})),
    "where": frozenset({"condition"}),
}
"""Functions in which one of these names means something else, and may be dynamic."""


def check_known(function: Any, handler: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> None:
    """Raises Error where an argument that must be static is dynamic."""
    names = _names(handler)
    may = _MAY.get(function.__name__, frozenset())
    for name, value in [*zip(names, args, strict=False), *options.items()]:
        if name in KNOWN and name not in may and holds_node(value):
            raise Error(
                f"{name_of(function)}: {name} must be known when the function is compiled, and here it depends on a "
                "number that is known only as it runs; pass a constant, a whole number that is an argument of the "
                "compiled function, or a number computed from shapes"
            )


@functools.cache
def _names(handler: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the positional parameters of a handler."""
    found = []
    for p in inspect.signature(handler).parameters.values():
        if p.kind is inspect.Parameter.VAR_POSITIONAL:
            break
        found.append(p.name)
    return tuple(found)
