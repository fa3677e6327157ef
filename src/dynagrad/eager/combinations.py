"""Linear combinations of functions, as `dg.add` and `dg.scale` make them of functions and Duals.

A combination is a graph of sums and multiples, and is flattened to functions with factors when it is called. So a loop
may add any number of functions without recursion and without copying, and a function that occurs several times is
called once. The caller adds and scales the results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.operation import apply
from ..ir.ops import scalars as ops
from .kinds import fresh, plain

Function = Callable[..., Any]


class Combination:
    """A function, the sum of two combinations, or a multiple of one."""

    __slots__ = ("factor", "function", "number", "parts")

    def __init__(self, function: Function | None, parts: tuple[Combination, ...] = (), factor: Any = 1.0) -> None:
        self.function, self.parts, self.factor = function, parts, factor
        self.number = fresh()  # larger than those of the parts: a topological order

    def plus(self, other: Combination) -> Combination:
        return Combination(None, (self, other))

    def times(self, c: Any) -> Combination:
        return Combination(None, (self,), c)

    def terms(self) -> list[tuple[Any, Function]]:
        """The functions with their factors, in the order of the sum; factors are accumulated as adjoints are.

        >>> f = Combination(abs)
        >>> f.plus(f).times(3.0).plus(f).terms()
        [(7.0, <built-in function abs>)]
        """
        found: dict[int, Combination] = {}
        stack = [self]
        while stack:
            at = stack.pop()
            if at.number not in found:
                found[at.number] = at
                stack += reversed(at.parts)
        factors: dict[int, Any] = {self.number: 1.0}
        for number in sorted(found, reverse=True):
            at, factor = found[number], factors[number]
            for part in at.parts:
                share = _product(at.factor, factor)
                factors[part.number] = apply(ops.add, factors[part.number], share) if part.number in factors else share
        return [(factors[number], at.function) for number, at in found.items() if at.function is not None]


def _product(a: Any, b: Any) -> Any:
    for one, other in ((a, b), (b, a)):
        if type(one) is float and one == 1.0:
            return other
    return apply(ops.multiply, plain(a), plain(b))
