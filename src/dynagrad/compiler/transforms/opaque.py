"""Callbacks: opaque functions that Python computes inside compiled ones. Custom rules have their derivatives.

The graph has to know the type of the result. The caller says it, and each result is checked against it at run time.
The call itself is made by `codegen/graph/running.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...eager.pytree import is_real
from ...errors import Error
from ...ir import Node
from ...ir.node import intern
from ...ir.operation import Operation
from ...ir.ops.arrays import shape_of
from ...ir.types import Type, array
from ..evaluate.values import unwrapped
from .captured import Captures

Arguments = Callable[[Sequence[Any], Sequence[Any]], tuple[Any, ...]]
"""Puts together all arguments of a function, from the reals among them and the rest."""


def python_call(
    f: Callable[..., Any], name: str, reals: Sequence[Node], rest: Captures, assemble: Arguments, result: Type
) -> Node:
    """The node of a call in Python. `rest` has the other positional arguments, and a dict of the named ones.

    >>> from dynagrad.ir import real, variable
    >>> from dynagrad.ir.control import Graph
    >>> from dynagrad.ir.interpret import run
    >>> from dynagrad.compiler.evaluate.values import Dict
    >>> x = variable("x")
    >>> y = python_call(round, "round", [x], Captures(((None, 1), Dict({}))), lambda xs, rest: (xs[0], rest[1]), real)
    >>> run(Graph((x,), (y,)), [0.123])
    (0.1,)
    """
    count = len(reals)

    def value(*numbers: Any) -> Any:
        given = [x.copy() if isinstance(x, np.ndarray) else float(x) for x in numbers[:count]]
        others, named = (unwrapped(x) for x in rest.values(iter(numbers[count:])))
        y = f(*assemble(given, others), **named)
        if not is_real(y) or shape_of(y) != result.shape:
            wanted = f"an array of reals of shape {result.shape}" if result.shape else "a real"
            found = f"an array of shape {shape_of(y)}" if shape_of(y) else f"{repr(y)[:40]} of type {type(y).__name__}"
            raise Error(
                f"custom_rule: {name} should return {wanted} in this compiled function, and returned {found}; its "
                "result must have the shape of what its jvp returns, and without a jvp be a single real"
            )
        return np.array(y, float) if result.shape else float(y)

    operands = (*reals, *rest.numbers)
    operation = Operation(name, (array,) * len(operands), array, value, None, "")
    return intern(
        operation, operands, name, result
    )  # with an attribute, since the type of the result cannot be found by a trial call
