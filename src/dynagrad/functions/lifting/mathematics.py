"""Functions of numbers while a function is specialised: Python's own, those of `math`, and operators as functions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import Error
from ...graph import Node, integers
from ...graph import operations as ops
from ...graph.types import KINDS as NUMBERS
from .arrays import holds_node
from .containers import attribute, getitem
from .numpy_calls import numpy_call
from .operators import PYTHON, binary, negated, truth, unary
from .regions import Given, Named
from .specialise import Specialiser, calls
from .values import Array, Instance, as_type, describe, known, node_of, type_of, unwrapped, wrapped
from .walks import items

# -- numbers -----------------------------------------------------------------------------------------------------------


def _scalar(x: Any, name: str) -> Node:
    """A single number that is not known."""
    content = unwrapped(x)
    t = type_of(content)
    if t is None or t.size != 1:
        raise Error(f"{name}() is of one number, and was given {describe(x)}")
    node = node_of(content)
    return node[(0,) * node.ndim] if node.ndim else node


@calls(float)
def _float(s: Specialiser, given: Given, named: Named) -> Any:
    if not given or known(given[0]):
        return float(*map(unwrapped, given))
    return as_type(_scalar(given[0], "float"), NUMBERS["real"])


@calls(int)
def _int(s: Specialiser, given: Given, named: Named) -> Any:
    if not given or known(given[0]):
        return int(*map(unwrapped, given))
    node = _scalar(given[0], "int")
    if node.type.kind == "integer":
        return node
    return (integers.count_true if node.type.kind == "boolean" else integers.to_integer)(node)


@calls(bool)
def _bool(s: Specialiser, given: Given, named: Named) -> Any:
    return truth(s, given[0]) if given else False


@calls(complex)
def _complex(s: Specialiser, given: Given, named: Named) -> Any:
    raise Error("complex numbers cannot be compiled; keep two parts of your own")


@calls(abs)
def _abs(s: Specialiser, given: Given, named: Named) -> Any:
    (x,) = given
    if isinstance(x, Instance):
        return s.call(attribute(s, x, "__abs__"), [])
    return wrapped(abs(unwrapped(x)))


@calls(round)
def _round(s: Specialiser, given: Given, named: Named) -> Any:
    x, *digits = given
    if known(x):
        return wrapped(round(unwrapped(x), *digits))
    if isinstance(x, Array) or (digits and digits[0] is not None):
        return numpy_call(s, np.round, given, dict(named))
    node = _scalar(x, "round")
    return node if node.type.kind == "integer" else integers.to_integer(ops.rint(node))


@calls(divmod)
def _divmod(s: Specialiser, given: Given, named: Named) -> Any:
    return binary(s, "floor_divide", *given), binary(s, "modulo", *given)


@calls(pow)
def _pow(s: Specialiser, given: Given, named: Named) -> Any:
    if len(given) == 3:
        return pow(*map(unwrapped, given))
    return binary(s, "power", *given)


def _extreme(largest: bool) -> Callable[..., Any]:
    def handler(s: Specialiser, given: Given, named: Named) -> Any:
        inside = items(s, given[0]) if len(given) == 1 else tuple(given)
        if not inside:
            if "default" in named:
                return named["default"]
            raise Error(f"{'max' if largest else 'min'}() of nothing")
        key = named.get("key")
        if all(map(known, inside)):
            keys = [unwrapped(x if key is None else s.call(key, [x])) for x in inside]
            if not any(map(holds_node, keys)):
                return inside[keys.index((max if largest else min)(keys))]
        if key is not None:
            raise Error("key= cannot be compiled where the keys are known only as the function runs")
        found = inside[0]
        for x in inside[1:]:
            found = _larger(s, found, x) if largest else _larger(s, found, x, integers.minimum, ops.less)
        return found

    return handler


def _larger(s: Specialiser, a: Any, b: Any, of_whole: Any = integers.maximum, further: Any = ops.greater) -> Any:
    """The second where it is larger than the first, as Python has it: this decides about NaN and about ties."""
    if known(a) and known(b):
        return (max if further is ops.greater else min)(unwrapped(a), unwrapped(b))
    x, y = _scalar(a, "max"), _scalar(b, "max")
    return of_whole(x, y) if x.type.kind == y.type.kind == "integer" else ops.where(further(y, x), y, x)


calls(max)(_extreme(True))
calls(min)(_extreme(False))


@calls(sum)
def _sum(s: Specialiser, given: Given, named: Named) -> Any:
    x, *start = given
    found = start[0] if start else named.get("start", 0)
    if isinstance(x, Array | np.ndarray):
        return binary(s, "add", found, numpy_call(s, np.sum, [x], {"axis": 0}))
    for item in items(s, x):
        found = (
            item if type(found) is int and found == 0 and type_of(item) is not None else binary(s, "add", found, item)
        )
    return found


@calls(math.prod)
def _prod(s: Specialiser, given: Given, named: Named) -> Any:
    found = named.get("start", 1)
    for item in items(s, given[0]):
        found = binary(s, "multiply", found, item)
    return found


@calls(math.fsum)
def _fsum(s: Specialiser, given: Given, named: Named) -> Any:
    inside = items(s, given[0])
    return math.fsum(map(unwrapped, inside)) if all(map(known, inside)) else _sum(s, [inside, 0.0], {})


# -- math --------------------------------------------------------------------------------------------------------------

MATH: dict[Any, Any] = {
    math.sqrt: np.sqrt,
    math.exp: np.exp,
    math.expm1: np.expm1,
    math.log1p: np.log1p,
    math.log2: np.log2,
    math.log10: np.log10,
    math.sin: np.sin,
    math.cos: np.cos,
    math.tan: np.tan,
    math.asin: np.arcsin,
    math.acos: np.arccos,
    math.atan: np.arctan,
    math.atan2: np.arctan2,
    math.sinh: np.sinh,
    math.cosh: np.cosh,
    math.tanh: np.tanh,
    math.asinh: np.arcsinh,
    math.acosh: np.arccosh,
    math.atanh: np.arctanh,
    math.hypot: np.hypot,
    math.fabs: np.fabs,
    math.copysign: np.copysign,
    math.fmod: np.fmod,
    math.degrees: np.degrees,
    math.radians: np.radians,
    math.isnan: np.isnan,
    math.isinf: np.isinf,
    math.isfinite: np.isfinite,
    math.pow: np.power,
} | {getattr(math, name): getattr(np, name) for name in ("cbrt", "exp2") if hasattr(math, name)}


def _of_math(function: Any, instead: Any) -> None:
    def handler(s: Specialiser, given: Given, named: Named) -> Any:
        if all(map(known, given)):
            return function(*map(unwrapped, given))
        return numpy_call(s, instead, [as_type(_scalar(x, function.__name__), NUMBERS["real"]) for x in given], {})

    calls(function)(handler)


for _function, _instead in MATH.items():
    _of_math(_function, _instead)


@calls(math.log)
def _log(s: Specialiser, given: Given, named: Named) -> Any:
    if all(map(known, given)):
        return math.log(*map(unwrapped, given))
    found = numpy_call(s, np.log, [_scalar(given[0], "log")], {})
    return found if len(given) == 1 else binary(s, "divide", found, _log(s, [given[1]], {}))


def _rounding(function: Any, operation: Any) -> None:
    def handler(s: Specialiser, given: Given, named: Named) -> Any:
        if known(given[0]):
            return function(unwrapped(given[0]))
        node = _scalar(given[0], function.__name__)
        return node if node.type.kind == "integer" else integers.to_integer(operation(node))

    calls(function)(handler)


_rounding(math.floor, ops.floor)
_rounding(math.ceil, ops.ceil)
_rounding(math.trunc, ops.trunc)


# -- operators as functions --------------------------------------------------------------------------------------------


def _as_operator(function: Any, name: str) -> None:
    calls(function)(lambda s, given, named: binary(s, name, *given))


for _name, (_operation, _, _) in PYTHON.items():
    _as_operator(_operation, _name)
calls(operator.neg)(lambda s, given, named: unary(s, "negative", *given))
calls(operator.not_)(lambda s, given, named: negated(truth(s, given[0])))
calls(operator.getitem)(lambda s, given, named: getitem(s, *given))
