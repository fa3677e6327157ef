"""Linear functionals on functions inside compiled functions: `dg.Dual`, their sums and multiples, and pairings.

They are the cotangents of functions. A functional is a host function of the kind "dual", and is called like others.
Those that exist outside of compiled code, and `dg.Dual` itself, are in `eager/closures.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager.closures import At, Dual, terms_of
from ...eager.numpy.functions import FUNCTIONS
from ...errors import Error
from ...ir import Node
from ...ir.node import constant
from ...ir.types import KINDS
from ..evaluate.joins import flatten
from ..evaluate.specialiser import Args, Named, Specialiser, calls
from ..evaluate.values import HostFunction, as_type, describe, function_like, is_dual, type_of
from .primal_trace import at_path, functions_in, leaves_like, reals


def pairing(s: Specialiser, c: Any, x: Any) -> Node:
    """The pairing <c, x> of a cotangent and a vector: of reals, arrays, structures; of functionals and functions."""
    form, total = reals(x), constant(0.0)
    for a, b in zip(leaves_like("vjp", "the cotangent", c, form), flatten(x, form), strict=True):
        product = a * b
        total = total + (FUNCTIONS[np.sum](product) if product.shape else product)
    for path in functions_in(x):
        dual = at_path(c, path)
        if not is_dual(dual):
            raise Error(
                f"vjp: the cotangent of a function must be a dg.Dual, not {describe(dual)}; dg.Dual(functional) makes "
                "one of a function that takes a function to a real"
            )
        total = total + _real(s.call(dual, [at_path(x, path)]))
    return total


def _real(y: Any) -> Node:
    t = type_of(y)
    if t is None or t.shape:
        raise Error(f"the functional of a Dual must return one real, and returned {describe(y)}")
    return as_type(y, KINDS["real"])


def dual(key: tuple[Any, ...], run: Callable[..., Any], captured: tuple[Any, ...]) -> HostFunction:
    """A functional; `run(specialiser, captured, function)` is its value at a function."""

    def called(s: Specialiser, captured: tuple[Any, ...], args: Args, named: Named) -> Any:
        (h,) = args
        if not function_like(h):
            raise Error(f"a Dual is applied to a function, not to {describe(h)}")
        return _real(run(s, captured, h))

    return HostFunction(("dual", "a dual", *key), called, captured)


@calls(Dual, knows=None)
def _of_function(s: Specialiser, args: Args, named: Named) -> Any:
    functional = args[0] if args else None
    if functional is None:
        return dual(("zero",), lambda s, captured, h: 0.0, ())
    if not function_like(functional):
        raise Error(f"dg.Dual takes a function from functions to reals, not {describe(functional)}")
    return dual(("made",), lambda s, captured, h: s.call(captured[0], [h]), (functional,))


@calls(Dual.at, knows=None)
def _at(s: Specialiser, args: Args, named: Named) -> Any:
    return _at_point(s, *args)


def _at_point(s: Specialiser, c: Any, arguments: Any, named: Any = None) -> HostFunction:
    names = tuple(named or ())

    def run(s: Specialiser, captured: tuple[Any, ...], h: Any) -> Any:
        c, arguments, *rest = captured
        return pairing(s, c, s.call(h, list(arguments), dict(zip(names, rest, strict=True))))

    return dual(("at", names), run, (c, tuple(arguments), *(named[name] for name in names)))


def of_dual(s: Specialiser, function: Any) -> Any:
    """The finder for Duals made outside of compiled code."""
    if isinstance(function, At):
        return lambda s, args, named: s.call(
            _at_point(s, function.c, function.arguments, function.named), list(args), named
        )
    if not isinstance(function, Dual):
        return None

    def handler(s: Specialiser, args: Args, named: Named) -> Any:
        total = constant(0.0)
        for factor, term in terms_of(function):
            total = total + factor * _real(s.call(term, list(args)))
        return total

    return handler


def plus(a: Any, b: Any) -> HostFunction:
    """The sum of two functionals."""
    for x in (a, b):
        if not is_dual(x):
            raise Error(f"a Dual can be added to Duals only, not to {describe(x)}")
    return dual(
        ("sum",), lambda s, captured, h: _real(s.call(captured[0], [h])) + _real(s.call(captured[1], [h])), (a, b)
    )


def times(c: Any, a: Any) -> HostFunction:
    """A functional times a real."""
    t = type_of(c)
    if t is None or t.shape:
        raise Error(f"a vector is scaled by a real, not by {describe(c)}")
    return dual(("multiple",), lambda s, captured, h: _real(captured[0]) * _real(s.call(captured[1], [h])), (c, a))
