"""Derivatives of functions that a differentiated function returns, inside compiled functions: they are functions too.

A call of such a derivative traces the differentiated function once more, calls what it returns, and differentiates
that. So no two calls share a variable (no perturbation confusion), and the graph has no closures.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ..evaluate.specialiser import Args, Named, Specialiser
from ..evaluate.values import HostFunction, is_dual
from .primal_trace import at_path

Differentiate = Callable[[Specialiser, HostFunction, Args, Named], Any]


def calls_differentiated(
    verb: str,
    options: tuple[Any, ...],
    returned: Any,
    path: tuple[int, ...],
    f: Any,
    args: Args,
    named: Named,
    differentiate: Differentiate,
) -> HostFunction:
    """The derivative of the function that f returned at a path of its result.

    It calls `differentiate` with a function that stands for f and calls the returned one, and with the arguments of f.
    Whatever else it depends on must be in `options`, which identify it. The derivative of a functional is a functional.
    """
    count, names = len(args), tuple(named)

    def run(s: Specialiser, captured: tuple[Any, ...], arguments: Args, by_name: Named) -> Any:
        f, *rest = captured
        now = [s.call(copy.deepcopy, [x]) for x in arguments]  # the caller may write to them later
        call = _call(f, path, now, {name: s.call(copy.deepcopy, [x]) for name, x in by_name.items()})
        return differentiate(s, call, rest[:count], dict(zip(names, rest[count:], strict=True)))

    kind = "dual" if is_dual(returned) else "later"
    return HostFunction(
        (kind, "the derivative of a function", verb, options, path, count, names), run, (f, *args, *named.values())
    )


def _call(f: Any, path: tuple[int, ...], arguments: Args, by_name: Named) -> HostFunction:
    """A function of the arguments of f that calls the function that f returns at a path."""
    names, count = tuple(by_name), len(arguments)

    def run(s: Specialiser, captured: tuple[Any, ...], xs: Args, others: Named) -> Any:
        f, *rest = captured
        arguments = [s.call(copy.deepcopy, [x]) for x in rest[:count]]
        returned = at_path(s.call(f, list(xs), others), path)
        return s.call(returned, arguments, dict(zip(names, rest[count:], strict=True)))

    return HostFunction(("result", "a result", path, count, names), run, (f, *arguments, *by_name.values()))
