"""The table of operations: each declared here once, with value, C++ text and tangent.

To add one, declare it here; nothing else needs to know. A tangent rule gets the tangent `d` of one argument, the
result `y` and all arguments, is linear in `d`, and calls operations only. One rule stands for each argument; None says
that the result is piecewise constant in it. Conventions at the edges: `minimum` and `maximum` of equals follow the
first argument; the derivative of `absolute` at 0 is 0; that of `power(x, 0)` in x is 0, and in the exponent at x = 0.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from ..errors import Error
from . import ieee
from .operation import Adjoint, LinearMap, Operation
from .types import Type, boolean, real

TABLE: dict[str, Operation] = {}  # by name


def declare(operation: Operation) -> Operation:
    """Enter an operation into the table."""
    if operation.name in TABLE:
        raise Error(f"an operation named {operation.name} is declared already")
    TABLE[operation.name] = operation
    return operation


def _real(
    name: str, value: Callable[..., float], cxx: str, *tangent: LinearMap | None, adjoint: Adjoint | None = None
) -> Operation:
    """An operation from reals to a real, with as many arguments as there are rules."""
    return declare(Operation(name, (real,) * len(tangent), real, value, tangent, cxx, adjoint))


def _truth(name: str, arguments: tuple[Type, ...], value: Callable[..., bool], cxx: str) -> Operation:
    """An operation with a truth value as its result: piecewise constant in everything."""
    return declare(Operation(name, arguments, boolean, value, (None,) * len(arguments), cxx))


# -- arithmetic ------------------------------------------------------------------------------------------------------

add: Operation = _real("add", operator.add, "{0} + {1}", lambda d, y, a, b: d, lambda d, y, a, b: d)
subtract: Operation = _real("subtract", operator.sub, "{0} - {1}", lambda d, y, a, b: d, lambda d, y, a, b: negative(d))
multiply: Operation = _real(
    "multiply", operator.mul, "{0} * {1}", lambda d, y, a, b: multiply(d, b), lambda d, y, a, b: multiply(d, a)
)
divide: Operation = _real(
    "divide",
    ieee.divide,
    "{0} / {1}",
    lambda d, y, a, b: divide(d, b),
    lambda d, y, a, b: negative(multiply(divide(d, b), y)),
)
negative: Operation = _real("negative", operator.neg, "-{0}", lambda d, y, x: negative(d))


def _power_base(d: Any, y: Any, a: Any, b: Any) -> Any:
    slope = multiply(b, power(a, subtract(b, 1.0)))
    return multiply(d, where(equal(b, 0.0), 0.0, slope))


def _power_exponent(d: Any, y: Any, a: Any, b: Any) -> Any:
    return multiply(d, where(equal(a, 0.0), 0.0, multiply(y, log(a))))


power: Operation = _real("power", ieee.power, "pow({0}, {1})", _power_base, _power_exponent)

# -- elementary functions --------------------------------------------------------------------------------------------

exp: Operation = _real("exp", ieee.exp, "exp({0})", lambda d, y, x: multiply(d, y))
expm1: Operation = _real("expm1", ieee.expm1, "expm1({0})", lambda d, y, x: multiply(d, exp(x)))
log: Operation = _real("log", ieee.log, "log({0})", lambda d, y, x: divide(d, x))
log1p: Operation = _real("log1p", ieee.log1p, "log1p({0})", lambda d, y, x: divide(d, add(1.0, x)))
sqrt: Operation = _real("sqrt", ieee.sqrt, "sqrt({0})", lambda d, y, x: divide(multiply(0.5, d), y))
sin: Operation = _real("sin", ieee.sin, "sin({0})", lambda d, y, x: multiply(d, cos(x)))
cos: Operation = _real("cos", ieee.cos, "cos({0})", lambda d, y, x: negative(multiply(d, sin(x))))
tanh: Operation = _real(
    "tanh", math.tanh, "tanh({0})", lambda d, y, x: multiply(d, multiply(subtract(1.0, y), add(1.0, y)))
)
sigmoid: Operation = _real(
    "sigmoid",
    ieee.sigmoid,
    "({0} >= 0.0 ? 1.0 : exp({0})) / (1.0 + exp(-fabs({0})))",
    lambda d, y, x: multiply(d, multiply(y, subtract(1.0, y))),
)


def _share(a: Any, b: Any) -> Any:
    """exp(a) / (exp(a) + exp(b)); one half for two equal infinities."""
    both_infinite = logical_and(equal(a, b), equal(absolute(a), math.inf))
    return sigmoid(where(both_infinite, 0.0, subtract(a, b)))


log_add: Operation = _real(
    "log_add",
    ieee.log_add,
    f"{{0}} == {{1}} ? {{0}} + {ieee.LOG2!r} : fmax({{0}}, {{1}}) + log1p(exp(-fabs({{0}} - {{1}})))",
    lambda d, y, a, b: multiply(d, _share(a, b)),
    lambda d, y, a, b: multiply(d, _share(b, a)),
)

# -- choosing --------------------------------------------------------------------------------------------------------

absolute: Operation = _real("absolute", abs, "fabs({0})", lambda d, y, x: multiply(d, sign(x)))
sign: Operation = _real("sign", ieee.sign, "{0} > 0.0 ? 1.0 : {0} < 0.0 ? -1.0 : {0}", None)
minimum: Operation = _real(
    "minimum",
    ieee.minimum,
    "{0} <= {1} || {0} != {0} ? {0} : {1}",
    lambda d, y, a, b: where(less_equal(a, b), d, 0.0),
    lambda d, y, a, b: where(less_equal(a, b), 0.0, d),
)
maximum: Operation = _real(
    "maximum",
    ieee.maximum,
    "{0} >= {1} || {0} != {0} ? {0} : {1}",
    lambda d, y, a, b: where(greater_equal(a, b), d, 0.0),
    lambda d, y, a, b: where(greater_equal(a, b), 0.0, d),
)
where: Operation = declare(
    Operation(
        "where",
        (boolean, real, real),
        real,
        lambda condition, a, b: a if condition else b,
        (None, lambda d, y, c, a, b: where(c, d, 0.0), lambda d, y, c, a, b: where(c, 0.0, d)),
        "{0} ? {1} : {2}",
    )
)

# -- truth values ----------------------------------------------------------------------------------------------------

less: Operation = _truth("less", (real, real), operator.lt, "{0} < {1}")
less_equal: Operation = _truth("less_equal", (real, real), operator.le, "{0} <= {1}")
greater: Operation = _truth("greater", (real, real), operator.gt, "{0} > {1}")
greater_equal: Operation = _truth("greater_equal", (real, real), operator.ge, "{0} >= {1}")
equal: Operation = _truth("equal", (real, real), operator.eq, "{0} == {1}")
not_equal: Operation = _truth("not_equal", (real, real), operator.ne, "{0} != {1}")
logical_and: Operation = _truth("logical_and", (boolean, boolean), lambda a, b: a and b, "{0} && {1}")
logical_or: Operation = _truth("logical_or", (boolean, boolean), lambda a, b: a or b, "{0} || {1}")
logical_not: Operation = _truth("logical_not", (boolean,), operator.not_, "!{0}")
