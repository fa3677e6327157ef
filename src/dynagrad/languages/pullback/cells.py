"""Values of the direct evaluator, and the tapes of its pullbacks. It knows nothing of terms.

Reals are numbers of any kind that operations take: floats, nodes of a graph, or cells of a pullback that is under way.
Pairs are Python's. A function or a dual takes an argument and a continuation. Cells of an outer pullback may be in
those of an inner one, so derivatives nest. Values may be deep, so nothing here recurses on them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...autodiff import sweep
from ...errors import Error, NotDifferentiable
from ...ir import add, multiply
from ...ir.operation import Operation
from .trees import counted, leaves

Continue = Callable[[Any], Any]
"""What takes a value, and returns the next step."""
Back = Callable[[Any], "Iterable[tuple[Traced, Any]]"]
"""The backward step of a cell: from its adjoint to increments of those of the cells that it was made of."""


class Nothing:
    """0 of any type."""

    def __repr__(self) -> str:
        return "0"


ZERO = Nothing()
_tags = itertools.count(1)


class Traced:
    """A tape cell: a real that depends on the point of a pullback, as the tape of that and its primal."""

    __slots__ = ("primal", "tape")

    def __init__(self, tape: CellTape, primal: Any) -> None:
        self.tape, self.primal = tape, primal

    @staticmethod
    def __apply_operation__(operation: Operation, arguments: tuple[Any, ...]) -> Any:
        tape = max((x.tape for x in arguments if type(x) is Traced), key=lambda tape: tape.tag)
        mine = [type(x) is Traced and x.tape is tape for x in arguments]
        primals = [x.primal if own else x for x, own in zip(arguments, mine, strict=True)]
        result = operation(*primals)
        cell = Traced(tape, result)
        rules, where = operation.tangent, tape.where
        if rules is None:
            raise NotDifferentiable(f"{operation.name} has no derivative{where()}")

        def back(delta: Any) -> Iterator[tuple[Traced, Any]]:
            for x, own, rule in zip(arguments, mine, rules, strict=True):
                if own and rule is not None:
                    part = rule(delta, result, *primals)
                    if unbounded(part):
                        why = f"{operation.name} has no derivative there: it would be {part}"
                        raise NotDifferentiable(why + where())
                    yield x, part

        tape.steps[cell] = back
        return cell


def unbounded(value: Any) -> bool:
    """Whether a float is infinite or not a number."""
    return type(value) is float and value - value != 0.0


class CellTape:
    """The tape of a pullback: the backward step of each cell, the first first. `where` says which term is evaluated."""

    __slots__ = ("steps", "tag", "where")

    def __init__(self) -> None:
        self.tag = next(_tags)
        self.where: Callable[[], str] = lambda: ""
        self.steps: dict[Traced, Back] = {}

    def adjoints(self, result: Any, point: Iterable[Traced]) -> dict[Traced, Any] | None:
        """The adjoints of the cells of the point that the result depends on; None where it is of no cell.

        The steps are gone then.
        """
        if type(result) is not Traced or result.tape is not self:
            return None
        start: dict[Traced, Back] = dict.fromkeys(point, lambda _: ())
        steps = start | self.steps
        self.steps = {}
        return sweep([*steps], {result: 1.0}, add, lambda cell, delta: steps[cell](delta), start)


class FunctionValue:
    """A function or a dual: it takes an argument and a continuation, and returns the next step."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[Any, Continue], Any]) -> None:
        self.call = call


class Coefficients(FunctionValue):
    """The dual of R^n that has these coefficients: a real, or pairs of them."""

    __slots__ = ("tree",)

    def __init__(self, tree: Any) -> None:
        self.tree = tree
        super().__init__(lambda u, k: lambda: k(dot(tree, u)))


def applied(function: Any, argument: Any, k: Continue) -> Any:
    """The next step towards handing the value of a function or a dual to a continuation."""
    if function is ZERO:
        return lambda: k(ZERO)
    return lambda: function.call(argument, k)


# -- trees of values ---------------------------------------------------------------------------------------------------


def mapped(of: Callable[..., Any], *trees: Any) -> Any:
    """Pairs of what a function gives of the leaves of pairs; 0 stands for pairs of 0.

    >>> mapped(lambda x, y: x + y, (1, (2, 3)), (10, (20, 30)))
    (11, (22, 33))
    """
    done: list[Any] = []
    todo: list[tuple[Any, ...] | None] = [trees]
    count = 0
    while todo:
        item = todo.pop()
        count = counted(count)
        if item is None:
            second, first = done.pop(), done.pop()
            done.append((first, second))
        elif any(isinstance(tree, tuple) for tree in item):
            if not all(tree is ZERO or isinstance(tree, tuple) for tree in item):
                raise Error("values of different types are added up or multiplied")
            todo += (None, *(tuple(tree if tree is ZERO else tree[i] for tree in item) for i in (1, 0)))
        else:
            done.append(of(*item))
    return done[0]


def dot(tree: Any, u: Any) -> Any:
    """The value of a dual of R^n at a tangent."""
    total: Any = ZERO
    for part in reversed(leaves(mapped(_product, tree, u))):
        total = plus(part, total)
    return total


def _product(a: Any, b: Any) -> Any:
    return ZERO if a is ZERO or b is ZERO else multiply(a, b)


def plus(a: Any, b: Any) -> Any:
    """The sum of two values."""
    if a is ZERO:
        return b
    if b is ZERO:
        return a
    return mapped(_sum, a, b) if isinstance(a, tuple) else _sum(a, b)


def _sum(a: Any, b: Any) -> Any:
    if a is ZERO:
        return b
    if b is ZERO:
        return a
    if isinstance(a, Coefficients) and isinstance(b, Coefficients):
        return Coefficients(plus(a.tree, b.tree))
    if isinstance(a, FunctionValue):
        return FunctionValue(
            lambda u, k: lambda: a.call(u, lambda x: lambda: b.call(u, lambda y: lambda: k(plus(x, y))))
        )
    return add(a, b)


def stripped(value: Any, tape: CellTape) -> Any:
    """A value without the cells of a tape."""

    def leaf(of: Any) -> Any:
        if type(of) is Traced:
            return of.primal if of.tape is tape else of
        if isinstance(of, Coefficients):
            return Coefficients(stripped(of.tree, tape))
        if isinstance(of, FunctionValue):
            return FunctionValue(lambda u, k: lambda: of.call(u, lambda x: lambda: k(stripped(x, tape))))
        return of

    return mapped(leaf, value)


def moved(at: Any, u: Any, e: Traced) -> Any:
    """`V + e u` in the functions and duals of V."""

    def leaf(v: Any, along: Any) -> Any:
        return plus(v, scaled(e, along)) if v is ZERO or isinstance(v, FunctionValue) else v

    return mapped(leaf, at, u)


def scaled(e: Any, u: Any) -> Any:
    """`e u`"""

    def leaf(of: Any) -> Any:
        if isinstance(of, FunctionValue):
            return FunctionValue(lambda a, k: lambda: of.call(a, lambda x: lambda: k(scaled(e, x))))
        return ZERO if of is ZERO else multiply(e, of)

    return mapped(leaf, u)
