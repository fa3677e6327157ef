"""The version of a compiled function for given arguments, as `dg.graph` and `dg.cpp` show it.

Nothing is compiled here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..codegen.graph.native import Native
from ..ir.draw import Shown
from ..ir.node import Node, order
from .compiled import Compiled
from .evaluate.signatures import leaf_type
from .specialised import Specialised, key_of, specialised
from .transforms.primal_trace import watched


def shown(function: Callable[..., Any], arguments: Sequence[Any], named: dict[str, Any]) -> Shown:
    """The graph, with the adjoints beside their values."""
    made, adjoints = _made(function, arguments, named)
    present = set(order(made.graph.outputs))
    known = {value: adjoint for value, adjoint in adjoints.items() if value in present and adjoint in present}
    return Shown(made.graph, _names(function, made, arguments, named), known)


def source(function: Callable[..., Any], arguments: Sequence[Any], named: dict[str, Any]) -> str:
    """The C++."""
    made, _ = _made(function, arguments, named)
    return Native(made.graph, getattr(function, "__name__", "function"), made.names).source


def _made(
    function: Callable[..., Any], arguments: Sequence[Any], named: dict[str, Any]
) -> tuple[Specialised, Mapping[Node, Node]]:
    seen: dict[Node, Node] = {}
    before = watched.set(seen)
    try:
        return specialised(function.function if isinstance(function, Compiled) else function, arguments, named), seen
    finally:
        watched.reset(before)


def _names(function: Any, made: Specialised, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[Node, str]:
    """The names of the inputs of the graph: those of the parameters, if each is one number or array."""
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
    return bool(key_of((value,), {})[1])
