"""Reverse mode for functions that return functions: the derivative of a returned function is a function.

The cotangent of a returned function is not known before the function is called. So each call of the derivative
evaluates the outer function again in a reverse pass of its own, calls the returned function there, and sweeps over
both. No two calls share a pass, so calls nested in any way cannot confuse perturbations. A call costs a constant factor
more than the evaluation and the call.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import Error
from ..closures import like
from ..kinds import shape_of
from ..mutation.arrays import MutableArray
from ..perturbations import place
from ..pytree import MOST, is_function, is_real, leaves, parts
from ..result_checks import unescaped

Function = Callable[..., Any]


def calls_differentiated(verb: str, of: Function, x: Any, derive: Callable[[Function], Any]) -> Callable[[Any], Any]:
    """A map for the functions in the value of `of` at x, in their order: each becomes its derivative by x, a function.

    A call of the derivative is `derive(g)`, where g maps x to the call, with the same arguments, of the function that
    `of(x)` returns. The derivative of a `Dual` by a single real is a Dual.
    """
    order = itertools.count()
    functional = is_real(x) and not shape_of(x)
    first, before = (of.of, of.steps) if isinstance(of, _Calls) else (of, ())

    def function(f: Any) -> Any:
        index = next(order)

        def part(*arguments: Any, **named: Any) -> Any:
            return derive(_Calls(verb, first, (*before, (index, snapshot((arguments, named))))))

        part.__name__ = f"{verb}_of_{getattr(f, '__name__', 'function')}"
        return like(f, part) if functional else part

    return function


class _Calls:
    """A function composed with calls of functions that it returned: which of them, and with which arguments."""

    __slots__ = ("of", "steps", "verb")

    def __init__(self, verb: str, of: Function, steps: tuple[tuple[int, Any], ...]) -> None:
        self.verb, self.of, self.steps = verb, of, steps

    def __call__(self, *xs: Any) -> Any:
        value = self.of(*xs)
        for index, given in self.steps:
            function = _function(self.verb, value, index)
            arguments, named = snapshot(given)  # whose containers it may change
            value = function(*arguments, **named)
        return value


def _function(verb: str, value: Any, index: int) -> Function:
    """A function of a value that was evaluated again, by position."""
    functions: list[Function] = [leaf for leaf in leaves(value) if is_function(leaf)]
    if index < len(functions):
        return functions[index]
    raise Error(
        f"{verb}: the function returned another structure when it was evaluated again, with fewer functions in it; "
        f"each call of a derivative that is a function evaluates it again, so it must not change{place()}"
    )


def calls_undifferentiated(verb: str, of: Callable[[], Any]) -> Callable[[Any], Any]:
    """A map for the functions in a value of a reverse pass: each becomes one without numbers of the pass.

    `of` evaluates the value on plain numbers; it is called once, when the first of the functions is.
    """
    order, known = itertools.count(), list[Any]()

    def function(f: Any) -> Any:
        index = next(order)

        def value(*arguments: Any, **named: Any) -> Any:
            if not known:
                known.append(of())
            return unescaped(verb, _function(verb, known[0], index)(*arguments, **named))

        value.__name__ = getattr(f, "__name__", "function")
        return like(f, value)

    return function


def snapshot(x: Any, _level: int = 0) -> Any:
    """A copy of a structure, with new containers and arrays, since the old ones may be written to."""
    if isinstance(x, np.ndarray | MutableArray):
        return x.copy()
    taken = parts(x)
    if taken is None:
        return x
    if _level > MOST:
        raise Error(f"a structure is nested more than {MOST} deep{place()}")
    return taken[1](x, [snapshot(part, _level + 1) for part in taken[0]])
