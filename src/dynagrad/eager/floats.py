"""Values and partial derivatives of operations on single floats, in one call: the fast path for scalar loops in Python.

The table is redundant: `operation.value` has the value, and tangents of 1 are the partial derivatives. But those rules
cost several times the operation itself, so the common operations have a function here as well; tests hold the two
equal. Nothing here knows tags or tapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..ir.operation import Operation
from ..ir.ops import ieee
from ..ir.ops import scalars as ops

Slopes = Callable[..., tuple[float, ...]]  # from the arguments to the result and its partial derivatives


def _divide(a: float, b: float) -> tuple[float, ...]:
    if b == 0.0:
        y, slope = ieee.divide(a, b), ieee.divide(1.0, b)
    else:
        y, slope = a / b, 1.0 / b
    return y, slope, -(slope * y)


def _power(a: float, b: float) -> tuple[float, ...]:
    y = ieee.power(a, b)
    by_base = 0.0 if a == b == 0.0 else b * ieee.power(a, b - 1.0)
    return y, by_base, 0.0 if a == 0.0 else y * ieee.log(a)


def _exp(x: float) -> tuple[float, ...]:
    try:
        y = math.exp(x)
    except OverflowError:
        y = math.inf
    return y, y


def _sin(x: float) -> tuple[float, ...]:
    try:
        return math.sin(x), math.cos(x)
    except ValueError:  # at an infinity
        return math.nan, math.nan


def _cos(x: float) -> tuple[float, ...]:
    y, slope = _sin(x)
    return slope, -y


def _sqrt(x: float) -> tuple[float, ...]:
    y = ieee.sqrt(x)
    return y, ieee.divide(0.5, y)


def _tanh(x: float) -> tuple[float, ...]:
    y = math.tanh(x)
    return y, (1.0 - y) * (1.0 + y)


def _sigmoid(x: float) -> tuple[float, ...]:
    y = ieee.sigmoid(x)
    return y, y * (1.0 - y)


SLOPES: dict[Operation, Slopes] = {
    ops.add: lambda a, b: (a + b, 1.0, 1.0),
    ops.subtract: lambda a, b: (a - b, 1.0, -1.0),
    ops.multiply: lambda a, b: (a * b, b, a),
    ops.divide: _divide,
    ops.power: _power,
    ops.negative: lambda x: (-x, -1.0),
    ops.absolute: lambda x: (abs(x), ieee.sign(x)),
    ops.square: lambda x: (x * x, 2.0 * x),
    ops.exp: _exp,
    ops.expm1: lambda x: (ieee.expm1(x), ieee.exp(x)),
    ops.log: lambda x: (ieee.log(x), ieee.divide(1.0, x)),
    ops.log1p: lambda x: (ieee.log1p(x), ieee.divide(1.0, 1.0 + x)),
    ops.sqrt: _sqrt,
    ops.sin: _sin,
    ops.cos: _cos,
    ops.tanh: _tanh,
    ops.sigmoid: _sigmoid,
}
