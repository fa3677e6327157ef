"""`dg.graph` and `dg.cpp`: the graph and the C++ of a compiled function, to look at.

The compiler and the drawing, which `inspected.py` uses, are imported by the first call, as in `compiled.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..ir.draw import Shown


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
    from .inspected import shown  # for a quick start

    return shown(function, arguments, named)


def cpp(function: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    """The C++ that `dg.compile` makes of a function for arguments like these.

    >>> def area(width, height):
    ...     return width * height
    >>> "width_0 * height_0" in cpp(area, 2.0, 3.0)
    True
    """
    from .inspected import source  # for a quick start

    return source(function, arguments, named)
