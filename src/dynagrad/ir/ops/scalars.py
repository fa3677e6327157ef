"""Elementwise operations on reals, each declared with its value, C++ text and tangent.

To add one, declare it here; nothing else changes. A tangent rule gets the tangent `d` of one argument, the result `y`
and all arguments, is linear in `d`, and calls operations only. There is one rule for each argument; None says that the
result is piecewise constant in it. Conventions at kinks and edges: `minimum` and `maximum` of equal arguments follow
the first; the derivative of `absolute` at 0 is 0; that of `power(x, 0)` in x is 0, and in the exponent at x = 0. Step
functions (`floor`, `sign`, ...) have derivative zero everywhere; `copysign` has that of `absolute` where its first
argument is 0, and `modulo` at a jump that of the piece that begins there. `fmaximum` and `fminimum` follow the argument
that is not NaN.

It is long as a table is: one operation after the other.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import Error
from ..operation import CALL, PLAIN, Adjoint, LinearMap, Operation, Series, Trait
from ..types import Type, boolean, real
from . import ieee, series
from .spelling import FunctionCall, Infix, Prefix, Spelling

TABLE: dict[str, Operation] = {}  # by name


def declare(operation: Operation) -> Operation:
    """Enters an operation into the table."""
    if operation.name in TABLE:
        raise Error(f"an operation named {operation.name} is declared already")
    TABLE[operation.name] = operation
    return operation


def _real(
    name: str,
    value: Callable[..., float],
    cxx: Spelling,
    *tangent: LinearMap | None,
    array: Callable[..., Any],
    adjoint: Adjoint | None = None,
    series: Series | None = None,
    needs: tuple[tuple[int, ...], ...] | None = None,
    traits: Trait = PLAIN,
    cost: int = CALL,
    in_loops: str = "",
    cxx_at: tuple[tuple[float, Spelling], ...] = (),
) -> Operation:
    """An operation on reals, with as many arguments as there are tangent rules."""
    return declare(
        Operation(
            name,
            (real,) * len(tangent),
            real,
            value,
            tangent,
            cxx,
            adjoint,
            array,
            series,
            needs,
            traits=traits,
            cost=cost,
            in_loops=in_loops,
            cxx_at=cxx_at,
        )
    )


def _truth(
    name: str,
    arguments: tuple[Type, ...],
    value: Callable[..., bool],
    cxx: Spelling,
    array: Callable[..., Any],
    traits: Trait = PLAIN,
) -> Operation:
    """An operation whose result is a truth value, and so piecewise constant."""
    steps = (None,) * len(arguments)
    return declare(Operation(name, arguments, boolean, value, steps, cxx, array=array, traits=traits, cost=1))


# -- arithmetic ------------------------------------------------------------------------------------------------------

add: Operation = _real(
    "add",
    operator.add,
    Infix("+"),
    lambda d, y, a, b: d,
    lambda d, y, a, b: d,
    array=np.add,
    series=series.add,
    needs=((), ()),
    traits=Trait.COMMUTES | Trait.SAFE,
    cost=1,
)
subtract: Operation = _real(
    "subtract",
    operator.sub,
    Infix("-"),
    lambda d, y, a, b: d,
    lambda d, y, a, b: negative(d),
    array=np.subtract,
    series=series.subtract,
    needs=((), ()),
    traits=Trait.SAFE,
    cost=1,
)
multiply: Operation = _real(
    "multiply",
    operator.mul,
    Infix("*"),
    lambda d, y, a, b: multiply(d, b),
    lambda d, y, a, b: multiply(d, a),
    array=np.multiply,
    series=series.multiply,
    needs=((1,), (0,)),
    traits=Trait.COMMUTES | Trait.SAFE,
    cost=1,
)


def _is_one(a: Any) -> bool:
    """Whether a dividend is the constant one: then the derivative of the reciprocal needs no division."""
    number = a if type(a) is float else getattr(a, "attribute", None) if hasattr(type(a), "is_constant") else None
    return type(number) is float and number == 1.0


divide: Operation = _real(
    "divide",
    ieee.divide,
    Infix("/"),
    lambda d, y, a, b: divide(d, b),
    lambda d, y, a, b: negative(multiply(multiply(d, y) if _is_one(a) else divide(d, b), y)),
    array=np.divide,
    series=series.divide,
    needs=((1,), (1, -1)),
    traits=Trait.EXPENSIVE | Trait.DIVIDES,
    cost=5,
)
negative: Operation = _real(
    "negative",
    operator.neg,
    Prefix("-"),
    lambda d, y, x: negative(d),
    array=np.negative,
    series=series.linear(operator.neg),
    needs=((),),
    traits=Trait.SAFE,
    cost=1,
)


def _power_base(d: Any, y: Any, a: Any, b: Any) -> Any:
    if type(b) is float and b != 0.0:  # as below, without a choice
        return multiply(d, multiply(b, power(a, b - 1.0)))
    slope = multiply(b, (power_log(0) if _varies(b) else power)(a, subtract(b, 1.0)))
    # Only at 0**0 is the slope a convention. Elsewhere it is zero at b = 0 by itself, and its derivatives are not.
    return multiply(d, where(equal(b, 0.0), where(equal(a, 0.0), 0.0, slope), slope))


def _power_exponent(d: Any, y: Any, a: Any, b: Any) -> Any:
    if not _varies(a):
        return multiply(d, where(equal(a, 0.0), 0.0, multiply(y, log(a))))
    # At a = 0 and b <= 0 a convention: 0 to any power is constant in the exponent.
    convention = logical_and(equal(a, 0.0), less_equal(b, 0.0))
    return multiply(d, where(convention, 0.0, power_log(1)(a, b)))


def _varies(x: Any) -> bool:
    """Whether a rule may be differentiated by an argument: not by plain numbers and constants of a graph."""
    return hasattr(type(x), "__apply_operation__") and not getattr(x, "is_constant", False)


power: Operation = _real(
    "power",
    ieee.power,
    FunctionCall("pow"),
    _power_base,
    _power_exponent,
    array=np.power,
    series=lambda n, y, a, b: series.power(n, y, a, b, log),
    traits=Trait.EXPENSIVE | Trait.DIVIDES,
    in_loops="vector::pow",
    cxx_at=((2.0, "{0} * {0}"), (3.0, "{0} * {0} * {0}"), (1.0, "{0}"), (-1.0, "1.0 / {0}"), (0.0, "1.0")),
)


@functools.cache
def power_log(k: int) -> Operation:
    """a**c log(a)**k, the k-th derivative of a power in the exponent, with its limits for a falling to 0.

    `power` has conventions at 0**0; its derivatives elsewhere need these limits.

    >>> power_log(1)(0.0, 2.0), power_log(1)(0.0, 0.0)
    (0.0, -inf)
    """

    def value(a: float, c: float) -> float:
        if k == 0:
            return ieee.power(a, c)
        return 0.0 if a == 0.0 and c > 0.0 else ieee.power(a, c) * ieee.log(a) ** k

    def on_arrays(a: Any, c: Any) -> Any:
        if k == 0:
            return np.power(a, c)
        with np.errstate(all="ignore"):
            return np.where(np.equal(a, 0.0) & np.greater(c, 0.0), 0.0, np.power(a, c) * np.log(a) ** k)

    def tangent_of_base(d: Any, y: Any, a: Any, c: Any) -> Any:
        less = subtract(c, 1.0)
        slope = multiply(c, power_log(k)(a, less))
        if k:
            slope = add(slope, multiply(float(k), power_log(k - 1)(a, less)))
        else:
            slope = where(logical_and(equal(a, 0.0), equal(c, 0.0)), 0.0, slope)
        return multiply(d, slope)

    def tangent_of_exponent(d: Any, y: Any, a: Any, c: Any) -> Any:
        return multiply(d, power_log(k + 1)(a, c))

    logs = " * log({0})" * k
    limit = f"{{0}} == 0.0 && {{1}} > 0.0 ? 0.0 : pow({{0}}, {{1}}){logs}"
    text: Spelling = limit if k else FunctionCall("pow")
    rules = (tangent_of_base, tangent_of_exponent)
    made = Operation(
        f"power_log{k}", (real, real), real, value, rules, text, array=on_arrays, series=_power_log_series(k)
    )
    LOGS[made] = k
    return made


LOGS: dict[Operation, int] = {}
"""The k of each `power_log(k)` that was made."""


def _power_log_series(k: int) -> Any:
    def rule(n: int, y: Any, a: list[Any], c: list[Any]) -> list[Any] | None:
        powers = series.power(n, power(a[0], c[0]), a, c, log)
        if powers is None or k == 0 or series.some_zero(a[0]):
            return powers if k == 0 else None
        logs = series.logarithm(n, log(a[0]), a)
        for _ in range(k):
            powers = series.multiply(n, powers[0] * logs[0], powers, logs)
        return [y, *powers[1:]]

    return rule


# -- elementary functions --------------------------------------------------------------------------------------------

exp: Operation = _real(
    "exp",
    ieee.exp,
    FunctionCall("exp"),
    lambda d, y, x: multiply(d, y),
    array=np.exp,
    series=series.exponential,
    needs=((-1,),),
    traits=Trait.SAFE | Trait.EXPENSIVE,
    in_loops="vector::exp",
)
expm1: Operation = _real(
    "expm1",
    ieee.expm1,
    FunctionCall("expm1"),
    lambda d, y, x: multiply(d, exp(x)),
    array=np.expm1,
    needs=((0,),),
    traits=Trait.SAFE | Trait.EXPENSIVE,
    in_loops="vector::expm1",
)
log: Operation = _real(
    "log",
    ieee.log,
    FunctionCall("log"),
    lambda d, y, x: divide(d, x),
    array=np.log,
    series=series.logarithm,
    needs=((0,),),
    traits=Trait.EXPENSIVE,
    in_loops="vector::log",
)
log1p: Operation = _real(
    "log1p",
    ieee.log1p,
    FunctionCall("log1p"),
    lambda d, y, x: divide(d, add(1.0, x)),
    array=np.log1p,
    series=lambda n, y, x: series.logarithm(n, y, x, add(1.0, x[0])),
    needs=((0,),),
    traits=Trait.EXPENSIVE,
    in_loops="vector::log1p",
)
sqrt: Operation = _real(
    "sqrt",
    ieee.sqrt,
    FunctionCall("sqrt"),
    lambda d, y, x: divide(multiply(0.5, d), y),
    array=np.sqrt,
    series=series.square_root,
    needs=((-1,),),
    traits=Trait.EXPENSIVE | Trait.DIVIDES,
    cost=5,
)
rsqrt: Operation = _real(
    "rsqrt",
    lambda x: ieee.divide(1.0, ieee.sqrt(x)),
    "1.0 / sqrt({0})",
    lambda d, y, x: multiply(multiply(multiply(-0.5, d), y), square(y)),
    array=lambda x: np.divide(1.0, np.sqrt(x)),
    needs=((-1,),),
    traits=Trait.EXPENSIVE | Trait.DIVIDES,
    cost=10,
)
"""1 / sqrt(x). Its derivative, -y**3 / 2, has far fewer operations than that of a division by a root."""
sin: Operation = _real(
    "sin",
    ieee.sin,
    FunctionCall("sin"),
    lambda d, y, x: multiply(d, cos(x)),
    array=np.sin,
    series=lambda n, y, x: series.sine_and_cosine(n, y, cos(x[0]), x)[0],
    needs=((0,),),
    traits=Trait.SAFE | Trait.EXPENSIVE,
    in_loops="vector::sin",
)
cos: Operation = _real(
    "cos",
    ieee.cos,
    FunctionCall("cos"),
    lambda d, y, x: negative(multiply(d, sin(x))),
    array=np.cos,
    series=lambda n, y, x: series.sine_and_cosine(n, sin(x[0]), y, x)[1],
    needs=((0,),),
    traits=Trait.SAFE | Trait.EXPENSIVE,
    in_loops="vector::cos",
)
tanh: Operation = _real(
    "tanh",
    math.tanh,
    FunctionCall("tanh"),
    lambda d, y, x: multiply(d, multiply(subtract(1.0, y), add(1.0, y))),
    array=np.tanh,
    series=lambda n, y, x: series.tanh(n, y, x, sigmoid),
    needs=((-1,),),
    traits=Trait.SAFE | Trait.EXPENSIVE,
    in_loops="vector::tanh",
)
sigmoid: Operation = _real(
    "sigmoid",
    ieee.sigmoid,
    "({0} >= 0.0 ? 1.0 : exp({0})) / (1.0 + exp(-fabs({0})))",
    lambda d, y, x: multiply(d, multiply(y, subtract(1.0, y))),
    array=ieee.sigmoid_array,
    series=lambda n, y, x: series.sigmoid(n, y, sigmoid(negative(x[0])), x),
    needs=((-1,),),
    traits=Trait.SAFE | Trait.EXPENSIVE | Trait.DIVIDES,
    in_loops="vector::sigmoid",
)


def _share(a: Any, b: Any) -> Any:
    """exp(a) / (exp(a) + exp(b)); one half for two that are inf, and nothing of nothing, for two that are -inf."""
    if any(type(x) is float and math.isfinite(x) for x in (a, b)):
        return sigmoid(subtract(a, b))
    both_infinite = logical_and(equal(a, b), equal(absolute(a), math.inf))
    return sigmoid(where(both_infinite, where(less(a, 0.0), -math.inf, 0.0), subtract(a, b)))


log_add: Operation = _real(
    "log_add",
    ieee.log_add,
    f"{{0}} == {{1}} ? {{0}} + {ieee.LOG2!r} : fmax({{0}}, {{1}}) + log1p(exp(-fabs({{0}} - {{1}})))",
    lambda d, y, a, b: multiply(d, _share(a, b)),
    lambda d, y, a, b: multiply(d, _share(b, a)),
    array=np.logaddexp,
    traits=Trait.SAFE | Trait.EXPENSIVE,
)

tan: Operation = _real(
    "tan",
    ieee.tan,
    FunctionCall("tan"),
    lambda d, y, x: multiply(d, add(1.0, multiply(y, y))),
    array=np.tan,
    series=series.tangent,
    traits=Trait.EXPENSIVE,
)
arcsin: Operation = _real(
    "arcsin",
    ieee.arcsin,
    FunctionCall("asin"),
    lambda d, y, x: divide(d, _leg(x)),
    array=np.arcsin,
    traits=Trait.EXPENSIVE,
)
arccos: Operation = _real(
    "arccos",
    ieee.arccos,
    FunctionCall("acos"),
    lambda d, y, x: negative(divide(d, _leg(x))),
    array=np.arccos,
    traits=Trait.EXPENSIVE,
)
arctan: Operation = _real(
    "arctan",
    math.atan,
    FunctionCall("atan"),
    lambda d, y, x: divide(d, add(1.0, multiply(x, x))),
    array=np.arctan,
    traits=Trait.SAFE | Trait.EXPENSIVE,
)
arctan2: Operation = _real(
    "arctan2",
    math.atan2,
    FunctionCall("atan2"),
    lambda d, y, a, b: divide(multiply(d, divide(b, hypot(a, b))), hypot(a, b)),
    lambda d, y, a, b: negative(divide(multiply(d, divide(a, hypot(a, b))), hypot(a, b))),
    array=np.arctan2,
    traits=Trait.EXPENSIVE,
)
hypot: Operation = _real(
    "hypot",
    math.hypot,
    FunctionCall("hypot"),
    lambda d, y, a, b: multiply(d, divide(a, y)),
    lambda d, y, a, b: multiply(d, divide(b, y)),
    array=np.hypot,
    traits=Trait.EXPENSIVE,
)
sinh: Operation = _real(
    "sinh",
    ieee.sinh,
    FunctionCall("sinh"),
    lambda d, y, x: multiply(d, cosh(x)),
    array=np.sinh,
    series=lambda n, y, x: series.sine_and_cosine(n, y, cosh(x[0]), x, 1)[0],
    traits=Trait.SAFE | Trait.EXPENSIVE,
)
cosh: Operation = _real(
    "cosh",
    ieee.cosh,
    FunctionCall("cosh"),
    lambda d, y, x: multiply(d, sinh(x)),
    array=np.cosh,
    series=lambda n, y, x: series.sine_and_cosine(n, sinh(x[0]), y, x, 1)[1],
    traits=Trait.SAFE | Trait.EXPENSIVE,
)
arcsinh: Operation = _real(
    "arcsinh",
    math.asinh,
    FunctionCall("asinh"),
    lambda d, y, x: divide(d, hypot(1.0, x)),
    array=np.arcsinh,
    traits=Trait.SAFE | Trait.EXPENSIVE,
)
arccosh: Operation = _real(
    "arccosh",
    ieee.arccosh,
    FunctionCall("acosh"),
    lambda d, y, x: divide(d, multiply(sqrt(subtract(x, 1.0)), sqrt(add(x, 1.0)))),
    array=np.arccosh,
    traits=Trait.EXPENSIVE,
)
arctanh: Operation = _real(
    "arctanh",
    ieee.arctanh,
    FunctionCall("atanh"),
    lambda d, y, x: divide(d, multiply(subtract(1.0, x), add(1.0, x))),
    array=np.arctanh,
    traits=Trait.EXPENSIVE,
)
square: Operation = _real(
    "square",
    lambda x: x * x,
    "{0} * {0}",
    lambda d, y, x: multiply(d, multiply(2.0, x)),
    array=np.square,
    series=lambda n, y, x: series.multiply(n, y, x, x),
    needs=((0,),),
    traits=Trait.SAFE,
    cost=1,
)
reciprocal: Operation = _real(
    "reciprocal",
    lambda x: ieee.divide(1.0, x),
    "1.0 / {0}",
    lambda d, y, x: negative(multiply(d, multiply(y, y))),
    array=np.reciprocal,
    series=lambda n, y, x: series.divide(n, y, [1.0], x),
    needs=((-1,),),
    traits=Trait.EXPENSIVE | Trait.DIVIDES,
    cost=5,
)
cbrt: Operation = _real(
    "cbrt",
    math.cbrt,
    FunctionCall("cbrt"),
    lambda d, y, x: divide(d, multiply(3.0, multiply(y, y))),
    array=np.cbrt,
    traits=Trait.EXPENSIVE,
)
exp2: Operation = _real(
    "exp2",
    ieee.exp2,
    FunctionCall("exp2"),
    lambda d, y, x: multiply(d, multiply(ieee.LOG2, y)),
    array=np.exp2,
    series=lambda n, y, x: series.exponential(n, y, [ieee.LOG2 * c for c in x]),
    traits=Trait.SAFE | Trait.EXPENSIVE,
)
log2: Operation = _real(
    "log2",
    ieee.log2,
    FunctionCall("log2"),
    lambda d, y, x: divide(d, multiply(ieee.LOG2, x)),
    array=np.log2,
    traits=Trait.EXPENSIVE,
)
log10: Operation = _real(
    "log10",
    ieee.log10,
    FunctionCall("log10"),
    lambda d, y, x: divide(d, multiply(ieee.LOG10, x)),
    array=np.log10,
    traits=Trait.EXPENSIVE,
)


def _leg(x: Any) -> Any:
    """sqrt(1 - x**2), the reciprocal of the derivative of arcsin."""
    return sqrt(multiply(subtract(1.0, x), add(1.0, x)))


# -- selection and rounding ------------------------------------------------------------------------------------------

absolute: Operation = _real(
    "absolute",
    abs,
    FunctionCall("fabs"),
    lambda d, y, x: multiply(d, sign(x)),
    array=np.absolute,
    needs=((0,),),
    traits=Trait.SAFE,
    cost=1,
)
sign: Operation = _real("sign", ieee.sign, "{0} > 0.0 ? 1.0 : {0} < 0.0 ? -1.0 : {0} + 0.0", None, array=np.sign)


def _selecting(name: str, value: Any, array: Any, cxx: str, first: Callable[[Any, Any], Any], **more: Any) -> Operation:
    """One of two numbers: the first where `first` says so, in C++ `cxx`. The tangent is that of the one selected."""
    return _real(
        name,
        value,
        f"{cxx} ? {{0}} : {{1}}",
        lambda d, y, a, b: where(first(a, b), d, 0.0),
        lambda d, y, a, b: where(first(a, b), 0.0, d),
        array=array,
        series=series.choosing(first, lambda c, a, b: where(c, a, b)),
        traits=Trait.SAFE,
        **more,
    )


minimum: Operation = _selecting(
    "minimum",
    ieee.minimum,
    np.minimum,
    "{0} <= {1} || {0} != {0}",
    lambda a, b: less_equal(a, b),
    needs=((0, 1), (0, 1)),
    cost=1,
)
maximum: Operation = _selecting(
    "maximum",
    ieee.maximum,
    np.maximum,
    "{0} >= {1} || {0} != {0}",
    lambda a, b: greater_equal(a, b),
    needs=((0, 1), (0, 1)),
    cost=1,
)
fminimum: Operation = _selecting(
    "fminimum",
    ieee.fminimum,
    np.fmin,
    "{0} <= {1} || {1} != {1}",
    lambda a, b: logical_or(less_equal(a, b), not_equal(b, b)),
)
fmaximum: Operation = _selecting(
    "fmaximum",
    ieee.fmaximum,
    np.fmax,
    "{0} >= {1} || {1} != {1}",
    lambda a, b: logical_or(greater_equal(a, b), not_equal(b, b)),
)
copysign: Operation = _real(
    "copysign",
    math.copysign,
    FunctionCall("copysign"),
    lambda d, y, a, b: multiply(d, multiply(sign(a), copysign(1.0, b))),
    None,
    array=np.copysign,
)
floor: Operation = _real("floor", ieee.floor, FunctionCall("floor"), None, array=np.floor)
ceil: Operation = _real("ceil", ieee.ceil, FunctionCall("ceil"), None, array=np.ceil)
trunc: Operation = _real("trunc", ieee.trunc, FunctionCall("trunc"), None, array=np.trunc)
rint: Operation = _real("rint", ieee.rint, FunctionCall("rint"), None, array=np.rint)
modulo: Operation = _real(
    "modulo",
    ieee.modulo,
    "fmod({0}, {1}) == 0.0 ? copysign(0.0, {1}) : "
    "(fmod({0}, {1}) < 0.0) != ({1} < 0.0) ? fmod({0}, {1}) + {1} : fmod({0}, {1})",
    lambda d, y, a, b: d,
    lambda d, y, a, b: negative(multiply(d, rint(divide(subtract(a, y), b)))),
    array=np.remainder,
    traits=Trait.EXPENSIVE,
)
fmod: Operation = _real(
    "fmod",
    ieee.fmod,
    FunctionCall("fmod"),
    lambda d, y, a, b: d,
    lambda d, y, a, b: negative(multiply(d, rint(divide(subtract(a, y), b)))),
    array=np.fmod,
)
where: Operation = declare(
    Operation(
        "where",
        (boolean, real, real),
        real,
        lambda condition, a, b: a if condition else b,
        (None, lambda d, y, c, a, b: where(c, d, 0.0), lambda d, y, c, a, b: where(c, 0.0, d)),
        "{0} ? {1} : {2}",
        array=np.where,
        series=lambda n, y, c, a, b: series.where(n, y, c, a, b, where),
        needs=((), (0,), (0,)),
        traits=Trait.SAFE,
        cost=1,
    )
)

# -- truth values ----------------------------------------------------------------------------------------------------

less: Operation = _truth("less", (real, real), operator.lt, Infix("<"), array=np.less)
less_equal: Operation = _truth("less_equal", (real, real), operator.le, Infix("<="), array=np.less_equal)
greater: Operation = _truth("greater", (real, real), operator.gt, Infix(">"), array=np.greater)
greater_equal: Operation = _truth("greater_equal", (real, real), operator.ge, Infix(">="), array=np.greater_equal)
equal: Operation = _truth("equal", (real, real), operator.eq, Infix("=="), array=np.equal, traits=Trait.COMMUTES)
not_equal: Operation = _truth(
    "not_equal", (real, real), operator.ne, Infix("!="), array=np.not_equal, traits=Trait.COMMUTES
)
logical_and: Operation = _truth(
    "logical_and", (boolean, boolean), lambda a, b: a and b, Infix("&&"), array=np.logical_and, traits=Trait.COMMUTES
)
logical_or: Operation = _truth(
    "logical_or", (boolean, boolean), lambda a, b: a or b, Infix("||"), array=np.logical_or, traits=Trait.COMMUTES
)
logical_not: Operation = _truth("logical_not", (boolean,), operator.not_, Prefix("!"), array=np.logical_not)
