"""`dg.graph` and `dg.cpp`: the graph and the C++ of a compiled function, to look at."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..ir.node import Node, order

if TYPE_CHECKING:
    from ..ir.draw import Shown
    from .specialised import Specialised

# The compiler and the drawing are imported by the first call, as in `compiled.py`.


def graph(function: Callable[..., Any], *arguments: Any, **named: Any) -> Shown:
    """The graph that `dg.compile` makes of a function for arguments like these.

    It prints in let form, one line for each value, and draws itself in notebooks (`_repr_svg_()` is the SVG). In a
    gradient, the adjoint of a value `x` is called `x_bar` and is drawn beside it.

    Raises LiftError for what cannot be compiled.

    >>> import dynagrad as dg
    >>> def area(width, height):
    ...     return width * height
    >>> graph(area, 2.0, 3.0)
    (width : real, height : real)
    t1 : real = width * height
    -> t1
    """
    from ..ir.draw import Shown  # for a quick start

    made, adjoints = _made(function, arguments, named)
    present = set(order(made.graph.outputs))
    known = {value: adjoint for value, adjoint in adjoints.items() if value in present and adjoint in present}
    return Shown(made.graph, _names(function, made, arguments, named), known)


def cpp(function: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    """The C++ that `dg.compile` makes of a function for arguments like these.

    >>> def area(width, height):
    ...     return width * height
    >>> "width_0 * height_0" in cpp(area, 2.0, 3.0)
    True
    """
    from ..codegen.graph.native import Native  # for a quick start

    made, _ = _made(function, arguments, named)
    return Native(made.graph, getattr(function, "__name__", "function"), made.names).source


def _made(
    function: Callable[..., Any], arguments: Sequence[Any], named: dict[str, Any]
) -> tuple[Specialised, Mapping[Node, Node]]:
    from .specialised import specialised  # for a quick start
    from .transforms.primal_trace import watched  # for a quick start

    seen: dict[Node, Node] = {}
    before = watched.set(seen)
    try:
        return specialised(getattr(function, "function", function), arguments, named), seen
    finally:
        watched.reset(before)


def _names(function: Any, made: Specialised, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[Node, str]:
    """The names of the inputs of the graph: those of the parameters, if each is one number or array."""
    from .evaluate.signatures import leaf_type  # for a quick start

    try:
        bound = inspect.signature(function).bind(*arguments, **named).arguments
    except (TypeError, ValueError):
        return {}
    leaves = [name for name, value in bound.items() if leaf_type(value) is not None]
    numbers = [name for name, value in bound.items() if leaf_type(value) is not None or _structured(value)]
    if leaves != numbers or len(leaves) != len(made.graph.inputs):
        return {}
    return dict(zip(made.graph.inputs, leaves, strict=True))


def _structured(value: Any) -> bool:
    from .specialised import key_of  # for a quick start

    return bool(key_of((value,), {})[1])
