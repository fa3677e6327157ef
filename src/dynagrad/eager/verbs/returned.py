"""Functions that come back from what is differentiated backward: their derivatives are functions.

A sweep takes a number back, and what a function gives is not known before it is called. So each call of the derivative
evaluates what returned the function again, with numbers of a pass of its own, calls the function there, and goes back
over both. No two calls share a number, so calls inside calls, of this function and of others, in passes of any age,
cannot confuse their derivatives. A call costs a constant times the evaluation and the call; in a sweep, the way back
over the evaluation is part of each call anyway.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import Error
from ..closures import like, unescaped
from ..mutation.arrays import MutableArray
from ..numbers import shape_of
from ..perturbations import place
from ..pytree import MOST, is_function, is_real, leaves, parts

Function = Callable[..., Any]


def calls_differentiated(verb: str, of: Function, x: Any, derive: Callable[[Function], Any]) -> Callable[[Any], Any]:
    """What becomes of the functions in a value of `of` at x, one after another in their order: functions again.

    A call asks `derive` for the derivative of a function of x: of what `of` returns, called with the arguments. By a
    single real, a functional has a functional for its derivative.
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
    """A function, and calls of what it returned, and of what these returned: which of the functions, and with what."""

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
    """One of the functions of a value that was evaluated again."""
    functions: list[Function] = [leaf for leaf in leaves(value) if is_function(leaf)]
    if index < len(functions):
        return functions[index]
    raise Error(
        f"{verb}: the function returned another structure when it was evaluated again, with fewer functions in it; "
        f"each call of a derivative that is a function evaluates it again, so it must not change{place()}"
    )


def calls_undifferentiated(verb: str, of: Callable[[], Any]) -> Callable[[Any], Any]:
    """What becomes of the functions in a value that holds numbers of a pass: those of the value without such numbers.

    `of` evaluates that; it is asked once, when the first of the functions is called.
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
    """A structure as it is now, whoever writes to its containers and arrays later."""
    if isinstance(x, np.ndarray | MutableArray):
        return x.copy()
    taken = parts(x)
    if taken is None:
        return x
    if _level > MOST:
        raise Error(f"a structure is nested more than {MOST} deep{place()}")
    return taken[1](x, [snapshot(part, _level + 1) for part in taken[0]])
