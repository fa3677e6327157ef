"""Operations on integers of 64 bits, for loop counters and indices. All are piecewise constant.

They are not those of reals, since division and remainder differ. Python's integers have no bound, so only native code
wraps around on overflow.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import Error
from ..operation import PLAIN, Operation, Trait
from ..types import Type, boolean, integer, real
from .spelling import FunctionCall, Infix, Prefix, Spelling

TABLE: dict[str, Operation] = {}  # by name; not in the table of reals, in which numpy's ufuncs are looked up


def declare(operation: Operation) -> Operation:
    """Enters an operation into the table."""
    if operation.name in TABLE:
        raise Error(f"an operation named {operation.name} is declared already")
    TABLE[operation.name] = operation
    return operation


def _of_integers(
    name: str, value: Callable[..., Any], cxx: Spelling, count: int, array: Callable[..., Any], traits: Trait = PLAIN
) -> Operation:
    steps = (None,) * count
    return declare(Operation(name, (integer,) * count, integer, value, steps, cxx, array=array, traits=traits, cost=1))


def _comparison(name: str, value: Callable[..., Any], cxx: Spelling, array: Callable[..., Any]) -> Operation:
    return declare(Operation(name, (integer, integer), boolean, value, (None, None), cxx, array=array, cost=1))


def _floor_divide(a: int, b: int) -> int:
    return 0 if b == 0 else a // b


def _power(a: int, n: int) -> int:
    """A power modulo 2**64, in two's complement; 0 for a negative exponent."""
    if n < 0:
        return 0
    found = pow(int(a), int(n), 2**64)
    return found - 2**64 if found >= 2**63 else found


def _power_fits(a: int, n: int) -> bool:
    return n >= 0 and (-1 <= a <= 1 or (n <= 63 and -(2**63) <= int(a) ** int(n) < 2**63))


def _remainder(a: int, b: int) -> int:
    return 0 if b == 0 else a % b


add: Operation = _of_integers("integer_add", operator.add, Infix("+"), 2, np.add, traits=Trait.COMMUTES)
subtract: Operation = _of_integers("integer_subtract", operator.sub, Infix("-"), 2, np.subtract)
multiply: Operation = _of_integers("integer_multiply", operator.mul, Infix("*"), 2, np.multiply, traits=Trait.COMMUTES)
negative: Operation = _of_integers("integer_negative", operator.neg, Prefix("-"), 1, np.negative)
floor_divide: Operation = _of_integers(
    "integer_floor_divide", _floor_divide, FunctionCall("floor_divide"), 2, np.floor_divide
)
remainder: Operation = _of_integers("integer_remainder", _remainder, FunctionCall("floor_remainder"), 2, np.remainder)
power: Operation = _of_integers(
    "integer_power", _power, FunctionCall("integer_power"), 2, np.vectorize(_power, otypes=[np.int64])
)
power_fits: Operation = declare(
    Operation(
        "integer_power_fits",
        (integer, integer),
        boolean,
        _power_fits,
        (None, None),
        FunctionCall("integer_power_fits"),
        array=np.vectorize(_power_fits, otypes=[np.bool_]),
        cost=1,
    )
)
"""Whether a power is an integer that fits in 64 bits."""
minimum: Operation = _of_integers("integer_minimum", min, "{0} < {1} ? {0} : {1}", 2, np.minimum)
maximum: Operation = _of_integers("integer_maximum", max, "{0} > {1} ? {0} : {1}", 2, np.maximum)
bitwise_and: Operation = _of_integers(
    "integer_bitwise_and", operator.and_, Infix("&"), 2, np.bitwise_and, traits=Trait.COMMUTES
)
bitwise_or: Operation = _of_integers(
    "integer_bitwise_or", operator.or_, Infix("|"), 2, np.bitwise_or, traits=Trait.COMMUTES
)
bitwise_xor: Operation = _of_integers(
    "integer_bitwise_xor", operator.xor, Infix("^"), 2, np.bitwise_xor, traits=Trait.COMMUTES
)
invert: Operation = _of_integers("integer_invert", operator.invert, "~{0}", 1, np.invert)
left_shift: Operation = _of_integers(  # by 64 bits or more, and by a negative number, as numpy has it
    "integer_left_shift",
    lambda a, b: int(np.left_shift(a, b)),
    "{1} < 0 || {1} > 63 ? 0 : (int64_t)((uint64_t){0} << {1})",
    2,
    np.left_shift,
)
right_shift: Operation = _of_integers(
    "integer_right_shift",
    lambda a, b: int(np.right_shift(a, b)),
    "{0} >> ({1} < 0 || {1} > 63 ? 63 : {1})",
    2,
    np.right_shift,
)
absolute: Operation = _of_integers("integer_absolute", abs, "{0} < 0 ? -{0} : {0}", 1, np.abs)

less: Operation = _comparison("integer_less", operator.lt, Infix("<"), np.less)
less_equal: Operation = _comparison("integer_less_equal", operator.le, Infix("<="), np.less_equal)
greater: Operation = _comparison("integer_greater", operator.gt, Infix(">"), np.greater)
greater_equal: Operation = _comparison("integer_greater_equal", operator.ge, Infix(">="), np.greater_equal)
equal: Operation = _comparison("integer_equal", operator.eq, Infix("=="), np.equal)
not_equal: Operation = _comparison("integer_not_equal", operator.ne, Infix("!="), np.not_equal)

where: Operation = declare(
    Operation(
        "integer_where",
        (boolean, integer, integer),
        integer,
        lambda condition, a, b: a if condition else b,
        (None, None, None),
        "{0} ? {1} : {2}",
        array=np.where,
        cost=1,
    )
)
choose: Operation = declare(
    Operation(
        "boolean_where",
        (boolean, boolean, boolean),
        boolean,
        lambda condition, a, b: a if condition else b,
        (None, None, None),
        "{0} ? {1} : {2}",
        array=np.where,
        cost=1,
    )
)


def _conversion(name: str, of: Type, to: Type, value: Callable[..., Any], cxx: Spelling, dtype: str) -> Operation:
    return declare(Operation(name, (of,), to, value, (None,), cxx, array=lambda x: np.asarray(x).astype(dtype), cost=1))


to_real: Operation = _conversion("to_real", integer, real, float, "(double){0}", "float64")
to_integer: Operation = _conversion("to_integer", real, integer, int, "(int64_t){0}", "int64")
"""Rounds towards zero, as int() does."""
count_true: Operation = _conversion("boolean_to_integer", boolean, integer, int, "(int64_t){0}", "int64")
truth_to_real: Operation = _conversion("boolean_to_real", boolean, real, float, "(double){0}", "float64")
