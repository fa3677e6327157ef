"""Tangents of the results of operations, by their rules: what all kinds of forward mode share.

Nothing here knows kinds of numbers; the operations that the rules apply are dispatched by `ir/operation.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ..autodiff.buffer_reuse import follow
from ..ir.operation import Operation, apply
from ..ir.ops import scalars as ops
from ..ir.ops.arrays import broadcast_to
from .kinds import shape_of
from .tape import CHOOSING, no_derivative


def tangent_of(operation: Operation, mine: list[bool], arguments: list[Any], primals: list[Any], y: Any) -> Any:
    """The tangent of a result: the sum over the arguments that are `mine`, whose tangents are along one tag."""
    total: Any = None
    for index, own in enumerate(mine):
        if own:
            d = arguments[index].tangent
            part = tangent_part(operation, index, d, y, primals)
            if operation in CHOOSING and type(part) is float and part == 0.0:
                # not selected, so not connected; or selected, with a tangent of zero
                slope = part if d != 0.0 else tangent_part(operation, index, 1.0, y, primals)
                part = None if type(slope) is float and slope == 0.0 else part
            if part is not None:
                total = part if total is None else apply(ops.add, total, part)
    return total


def quiet(y: Any) -> AbstractContextManager[Any]:
    """A context without numpy's warnings for the derivatives of a result, since the verb reports infinities and NaN."""
    return _NOTHING if type(y) is float else np.errstate(all="ignore")


_NOTHING: AbstractContextManager[Any] = nullcontext()


def tangent_part(operation: Operation, index: int, d: Any, y: Any, primals: Sequence[Any]) -> Any:
    """The contribution of one argument's tangent to that of the result; None where it has none."""
    if operation.tangent is None:
        raise no_derivative(operation, index)
    rule = operation.tangent[index] if index < len(operation.tangent) else operation.tangent[-1]
    if rule is None:
        return None
    if not operation.elementwise:
        return rule(d, y, *primals)
    part, shape = follow(operation, index, d, y, primals), shape_of(y)
    if shape_of(part) != shape:
        part = broadcast_to(shape)(part)
    return part
