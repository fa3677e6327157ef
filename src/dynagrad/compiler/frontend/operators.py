"""The table of Python's operators: for each the function of static values, the method, the sign; and which expressions
may be speculated. Operators of dynamic values are in `compiler/evaluate/operators.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .core import Apply, Constant, Expression, If, Let, Name, Primitive, Project, Tuple

PYTHON: dict[str, tuple[Callable[[Any, Any], Any], str, str]] = {
    "add": (operator.add, "__add__", "+"),
    "subtract": (operator.sub, "__sub__", "-"),
    "multiply": (operator.mul, "__mul__", "*"),
    "divide": (operator.truediv, "__truediv__", "/"),
    "floor_divide": (operator.floordiv, "__floordiv__", "//"),
    "modulo": (operator.mod, "__mod__", "%"),
    "power": (operator.pow, "__pow__", "**"),
    "matmul": (operator.matmul, "__matmul__", "@"),
    "and": (operator.and_, "__and__", "&"),
    "or": (operator.or_, "__or__", "|"),
    "xor": (operator.xor, "__xor__", "^"),
    "left_shift": (operator.lshift, "__lshift__", "<<"),
    "right_shift": (operator.rshift, "__rshift__", ">>"),
    "less": (operator.lt, "__lt__", "<"),
    "less_equal": (operator.le, "__le__", "<="),
    "greater": (operator.gt, "__gt__", ">"),
    "greater_equal": (operator.ge, "__ge__", ">="),
    "equal": (operator.eq, "__eq__", "=="),
    "not_equal": (operator.ne, "__ne__", "!="),
}
UNARY: dict[str, tuple[Callable[[Any], Any], str]] = {
    "negative": (operator.neg, "__neg__"),
    "positive": (operator.pos, "__pos__"),
    "invert": (operator.invert, "__invert__"),
}
_SPECULATABLE = frozenset({*PYTHON, *UNARY, "not", "truth", "is", "is_not"}) - {"matmul"}


def is_speculatable(e: Expression) -> bool:
    """Whether an expression is cheap arithmetic without effects, which may run where its branch is not taken."""
    while isinstance(e, Let):
        if not is_speculatable(e.value):
            return False
        e = e.body
    match e:
        case Name() | Constant() | Tuple() | Project():
            return True
        case If():
            return is_speculatable(e.then) and is_speculatable(e.otherwise)
        case Apply():
            f = e.function
            return isinstance(f, Constant) and isinstance(f.value, Primitive) and f.value.name in _SPECULATABLE
    return False
