"""Rules of elementwise operations on whole arrays, with few arrays in between.

A rule such as d * ((1 - y) * (1 + y)) makes an array in each of its operations. Here it is followed once with nodes, so
that it is known which values are looked at for the last time where; then the arrays go through with as few places as
there are values at a time, and what is in between is written over. What is given is never written to, and the result is
an array that nobody else has. Operations and their order are those of the rule, so the result is the same to the bit.

That is for rules of the table whose operations are all ufuncs from reals to reals, on arrays of one shape. Where a
rule chooses, or numbers, single reals or several shapes come together, it is followed as it stands.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import Error
from ..ir.buffers import empty
from ..ir.node import Node, fresh, order
from ..ir.operation import LinearMap, Operation
from ..ir.ops.scalars import TABLE
from ..ir.types import real


class Placement(NamedTuple):
    """What to compute where: the places are those of what is given (d, the result, the arguments), then others."""

    looked_at: tuple[int, ...]  # places of what is given
    constants: tuple[float, ...]
    spare: int  # places for what is in between
    steps: tuple[tuple[Callable[..., Any], tuple[int, ...], int], ...]  # a ufunc, where from, where to


_ndarray = np.ndarray
_FLOAT = np.dtype(np.float64)


def follow(operation: Operation, index: int, d: Any, y: Any, arguments: Sequence[Any]) -> Any:
    """What the rule of an argument makes of `d`, as `operation.tangent[index](d, y, *arguments)`.

    >>> from dynagrad.ir.ops.scalars import tanh
    >>> y = np.array([0.0, 0.5])
    >>> follow(tanh, 0, np.array([1.0, 4.0]), y, [np.arctanh(y)])
    array([1., 3.])
    """
    if type(d) is _ndarray and TABLE.get(operation.name) is operation:
        found = plan(operation, index)
        if found is not None:
            given, shape = [d, y, *arguments], d.shape
            for place in found.looked_at:
                x = given[place]
                if type(x) is not _ndarray or x.shape != shape or x.dtype is not _FLOAT:
                    break
            else:
                return _compute(found, given, shape)
    rule: LinearMap = operation.tangent[index]  # type: ignore[index,assignment]  # there is one
    return rule(d, y, *arguments)


def _compute(plan: Placement, given: list[Any], shape: tuple[int, ...]) -> Any:
    values = [*given, *plan.constants, *[None] * plan.spare]
    for ufunc, places, to in plan.steps:
        if values[to] is None:
            values[to] = empty(shape)
        ufunc(*[values[place] for place in places], out=values[to])
    return values[to]


@functools.cache
def plan(operation: Operation, index: int) -> Placement | None:
    """How the rule of an argument is gone through, for operations of the table; None where it has no use for this."""
    rule = None if operation.tangent is None else operation.tangent[index]
    if rule is None:
        return None
    given = [fresh(real) for _ in range(len(operation.arguments) + 2)]
    try:
        root = rule(*given)
    except Error:  # it looks at more than operations can
        return None
    return _of_nodes(given, root) if isinstance(root, Node) else None


def _of_nodes(given: list[Node], root: Node) -> Placement | None:
    series = order([root])
    computed = [node for node in series if node.arguments]
    if len(computed) < 2 or not all(map(_on_reals, computed)):
        return None
    constants = [node for node in series if node.is_constant]
    places = {node: place for place, node in enumerate([*given, *constants])}
    last = {argument: node for node in computed for argument in node.arguments}
    free: list[int] = []
    count, steps = len(places), []
    for node in computed:
        assert node.operation.array is not None  # `_on_reals` has looked
        read = tuple(places[argument] for argument in node.arguments)
        free += {places[a] for a in node.arguments if a.arguments and last[a] is node}
        if not free:
            free.append(count)
            count += 1
        places[node] = free.pop()
        steps.append((node.operation.array, read, places[node]))
    looked_at = tuple(place for place, node in enumerate(given) if node in last)
    numbers = tuple(float(node.attribute) for node in constants)
    return Placement(looked_at, numbers, count - len(given) - len(constants), tuple(steps))


def _on_reals(node: Node) -> bool:
    operation = node.operation
    some_array = not all(argument.is_constant for argument in node.arguments)
    return isinstance(operation.array, np.ufunc) and {*operation.arguments, operation.result} == {real} and some_array
