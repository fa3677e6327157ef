"""Custom derivatives: functions with a derivative rule of the user's, for opaque code and for better formulas.

A function with a rule becomes an operation. One rule is enough for both modes, since a derivative is a linear map: the
other mode is its transpose, which is computed as the pullback of the rule in its tangents (or its cotangent).

In compiled functions they are traced by `compiler/transforms/custom_rule.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...calls import strict_options
from ...errors import Error, counted, shown
from ...ir.operation import Operation, apply
from ...ir.ops.arrays import shape_of
from ...ir.types import array
from ..copies import kept
from ..kinds import plain, zero_like
from ..numbers import Number
from ..perturbations import located
from ..pytree import is_function, is_real, parts
from .gradients import vjp_unchecked

Function = Callable[..., Any]


@strict_options
def custom_rule(f: Function | None = None, *, jvp: Function | None = None, vjp: Function | None = None) -> Any:
    """A function of reals and arrays with a custom derivative. Also a decorator: `@custom_rule(vjp=...)`.

    `jvp(primals, tangents)` is the tangent of the result, linear in the tangents: a tuple with one for each argument,
    zeros where an argument has none. `vjp(primals, value, cotangent)` is a tuple with the cotangent of each argument
    (None for zero; that of a single argument need not be in a tuple). One of them is enough for both modes, if it
    computes with numpy and operators, so that it can be differentiated; with both, each is used for its mode.
    Derivatives of higher order are those of the rules.

    `f` itself is called with plain floats and arrays only, so it may be any code, of a library or compiled. Its result
    is one real or one array. Arguments that are not reals (integers, strings, None) are passed on unchanged, to the
    rules too, where their tangents are None; keyword arguments are constants that only `f` gets. What `f` closes over
    is constant: numbers that are differentiated must be arguments.

    Raises Error where a rule returns a value of the wrong shape, and names the right one.

    >>> import math
    >>> from dynagrad.eager.verbs.gradients import derivative, grad
    >>> sine = custom_rule(math.sin, jvp=lambda primals, tangents: np.cos(primals[0]) * tangents[0])
    >>> derivative(sine)(0.0), grad(sine)(0.0)
    (1.0, 1.0)
    """
    if f is None:
        return functools.partial(custom_rule, jvp=jvp, vjp=vjp)
    with located():
        rules = _checked(f, jvp, vjp)

    @functools.wraps(f)
    def with_rule(*arguments: Any, **named: Any) -> Any:
        with located():
            return rules(arguments, named)

    with_rule.__dynagrad__ = ("custom_rule", f, {"jvp": jvp, "vjp": vjp})  # type: ignore[attr-defined]  # functions take attributes
    return with_rule


def _checked(f: Function, jvp: Function | None, vjp: Function | None) -> _Rules:
    for what, value in (("function", f), ("jvp", jvp), ("vjp", vjp)):
        if value is not None and not callable(value):
            raise Error(f"custom_rule: the {what} should be a function, and is {shown(value)}")
    if jvp is None and vjp is None:
        raise Error("custom_rule: give jvp=, the forward rule, or vjp=, the backward rule; either is enough")
    return _Rules(f, jvp, vjp)


class _Rules:
    """A function with its rules; a call makes an operation on the arguments that are reals."""

    def __init__(self, f: Function, jvp: Function | None, vjp: Function | None) -> None:
        self.f, self.jvp, self.vjp = f, jvp, vjp
        self.name = getattr(f, "__name__", "function")

    def __call__(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        places = [i for i, x in enumerate(arguments) if self._real(i, x)]
        if not places:
            return self.f(*arguments, **named)

        def full(reals: Sequence[Any]) -> tuple[Any, ...]:
            """All arguments, with these in place of the reals."""
            found = list(arguments)
            for i, x in zip(places, reals, strict=True):
                found[i] = x
            return tuple(found)

        def value(*reals: Any) -> Any:
            y = self.f(*full([_copy(x) for x in reals]), **named)
            if isinstance(y, tuple | list):
                raise Error(f"custom_rule: {self.name} should return one real or one array, and returned {_shown(y)}")
            y = plain(y)
            if isinstance(y, Number):
                raise Error(
                    f"custom_rule: {self.name} closes over a number that is differentiated, and has no rule for it; "
                    "make it an argument"
                )
            if not is_real(y):
                raise Error(f"custom_rule: {self.name} should return one real or one array, and returned {_shown(y)}")
            return kept(y)  # a copy, since the function may keep it

        def tangent(k: int) -> Function:
            return lambda d, y, *reals: self._forward(k, d, y, full(reals), places)

        operation = Operation(
            self.name,
            (array,) * len(places),
            array,
            value,
            tuple(map(tangent, range(len(places)))),
            "",
            adjoint=lambda delta, y, *reals: self._backward(delta, y, full(reals), places),
        )
        return apply(operation, *(plain(arguments[i]) for i in places))

    def _real(self, place: int, x: Any) -> bool:
        if is_real(x):
            return True
        if is_function(x) or parts(x) is not None:
            raise Error(
                f"custom_rule: {self.name} takes reals and arrays, and its argument {place + 1} is {_shown(x)}; give "
                "its parts as arguments"
            )
        return False

    def _forward(self, k: int, d: Any, y: Any, primals: tuple[Any, ...], places: list[int]) -> Any:
        """The contribution of the k-th real to the tangent of the result."""
        if self.jvp is not None:
            tangents = [zero_like(x) if i in places else None for i, x in enumerate(primals)]
            tangents[places[k]] = d
            return self._fitting("jvp", self.jvp(primals, tuple(tangents)), y, "the result")
        vjp = self.vjp
        assert vjp is not None

        def backward(c: Any) -> Any:
            return self._cotangents(vjp(primals, y, c), primals, places)[k]

        return _transposed(backward, [zero_like(y)], d)[0]

    def _backward(self, delta: Any, y: Any, primals: tuple[Any, ...], places: list[int]) -> list[Any]:
        if self.vjp is not None:
            return self._cotangents(self.vjp(primals, y, delta), primals, places)
        jvp = self.jvp
        assert jvp is not None

        def forward(*tangents: Any) -> Any:
            full: list[Any] = [None] * len(primals)
            for i, d in zip(places, tangents, strict=True):
                full[i] = d
            return self._fitting("jvp", jvp(primals, tuple(full)), y, "the result")

        return list(_transposed(forward, [zero_like(primals[i]) for i in places], delta))

    def _cotangents(self, found: Any, primals: tuple[Any, ...], places: list[int]) -> list[Any]:
        if not isinstance(found, tuple | list):
            found = (found,)
        if len(found) != len(primals):
            raise Error(
                f"custom_rule: the vjp of {self.name} should return a tuple with "
                f"{counted(len(primals), 'cotangent')}, one for "
                f"each argument, and returned {len(found)}"
            )
        return [
            zero_like(primals[i])
            if found[i] is None
            else self._fitting("vjp", found[i], primals[i], f"argument {i + 1}")
            for i in places
        ]

    def _fitting(self, rule: str, found: Any, like: Any, what: str) -> Any:
        found = plain(found)
        if not is_real(found) or shape_of(found) != shape_of(like):
            wanted = f"an array of shape {shape_of(like)}" if shape_of(like) else "a real"
            raise Error(
                f"custom_rule: the {rule} of {self.name} should return {wanted} for {what}, and returned "
                f"{_shown(found)}"
            )
        return found


def _transposed(linear: Function, zeros: Sequence[Any], delta: Any) -> Sequence[Any]:
    """The transpose of a linear map, applied to a cotangent: its pullback, at any point."""
    return vjp_unchecked("custom_rule", linear, zeros, once=True)[1](delta)


def _copy(x: Any) -> Any:
    """A copy of an array, which a function may write to."""
    return x.copy() if isinstance(x, np.ndarray) else x


def _shown(x: Any) -> str:
    return f"an array of shape {shape_of(x)}" if shape_of(x) else f"{shown(x)} of type {type(x).__name__}"
