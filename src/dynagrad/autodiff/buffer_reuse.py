"""Buffer reuse: applies derivative rules of elementwise operations to numpy arrays with few temporaries.

A rule such as d * ((1 - y) * (1 + y)) makes an array in each of its operations. Here it is traced once; liveness tells
where each value is read for the last time, and temporaries share as few buffers as there are live values. Arguments are
never written to, and the result is a new array. Operations and their order are those of the rule, so the result is the
same to the bit.

This holds for rules of the table whose operations are all ufuncs on reals, on arrays of one shape. A rule that
selects, or one applied to single reals or several shapes, runs as it is. No rule is stated here: they are in `ir/ops/`.
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
    """A rule whose values have slots: first d, the result and the arguments, then constants, then buffers."""

    looked_at: tuple[int, ...]  # the slots that are read of d, the result and the arguments
    constants: tuple[float, ...]
    spare: int  # the number of buffers
    steps: tuple[tuple[Callable[..., Any], tuple[int, ...], int], ...]  # a ufunc, the slots it reads, the one it writes


_ndarray = np.ndarray
_FLOAT = np.dtype(np.float64)


def follow(operation: Operation, index: int, d: Any, y: Any, arguments: Sequence[Any]) -> Any:
    """`operation.tangent[index](d, y, *arguments)`, with reused buffers where that is possible.

    >>> from dynagrad.ir.ops.scalars import tanh
    >>> y = np.array([0.0, 0.5])
    >>> follow(tanh, 0, np.array([1.0, 4.0]), y, [np.arctanh(y)])
    array([1., 3.])
    """
    if type(d) is _ndarray and TABLE.get(operation.name) is operation:
        found = plan(operation, index)
        if found is not None:
            operands, shape = [d, y, *arguments], d.shape
            for place in found.looked_at:
                x = operands[place]
                if type(x) is not _ndarray or x.shape != shape or x.dtype is not _FLOAT:
                    break
            else:
                return _compute(found, operands, shape)
    rule: LinearMap = operation.tangent[index]  # type: ignore[index,assignment]  # there is one
    return rule(d, y, *arguments)


def _compute(plan: Placement, operands: list[Any], shape: tuple[int, ...]) -> Any:
    values = [*operands, *plan.constants, *[None] * plan.spare]
    for ufunc, places, to in plan.steps:
        if values[to] is None:
            values[to] = empty(shape)
        ufunc(*[values[place] for place in places], out=values[to])
    return values[to]


@functools.cache
def plan(operation: Operation, index: int) -> Placement | None:
    """The allocation for the rule of an argument; None where the rule runs as it is."""
    rule = None if operation.tangent is None else operation.tangent[index]
    if rule is None:
        return None
    operands = [fresh(real) for _ in range(len(operation.arguments) + 2)]
    try:
        root = rule(*operands)
    except Error:  # it needs the value of an argument, which a trace has not
        return None
    return _allocated(operands, root) if isinstance(root, Node) else None


def _allocated(operands: list[Node], root: Node) -> Placement | None:
    """Register allocation for a straight-line graph: a buffer is free again after the last read of its value."""
    series = order([root])
    computed = [node for node in series if node.arguments]
    if len(computed) < 2 or not all(map(_on_reals, computed)):
        return None
    constants = [node for node in series if node.is_constant]
    places = {node: place for place, node in enumerate([*operands, *constants])}
    last = {argument: node for node in computed for argument in node.arguments}
    free: list[int] = []
    count, steps = len(places), []
    for node in computed:
        assert node.operation.array is not None  # checked by `_on_reals`
        read = tuple(places[argument] for argument in node.arguments)
        free += {places[a] for a in node.arguments if a.arguments and last[a] is node}
        if not free:
            free.append(count)
            count += 1
        places[node] = free.pop()
        steps.append((node.operation.array, read, places[node]))
    looked_at = tuple(place for place, node in enumerate(operands) if node in last)
    numbers = tuple(float(node.attribute) for node in constants)
    return Placement(looked_at, numbers, count - len(operands) - len(constants), tuple(steps))


def _on_reals(node: Node) -> bool:
    operation = node.operation
    some_array = not all(argument.is_constant for argument in node.arguments)
    return isinstance(operation.array, np.ufunc) and {*operation.arguments, operation.result} == {real} and some_array
