"""The op graph: operations and let-series, the form that rules and functions share.

`types.py` and `operation.py` say what an operation is, `ops/` has the tables of them, `node.py` is the graph and
`control.py` its branches, loops and calls; `trace.py` and `tracing.py` make graphs of Python functions, `interpret.py`
computes them, `show.py` and `draw.py` make text and pictures. What rewrites or differentiates graphs is in `passes/`
and `autodiff/`. Nothing here knows of rules, programs or how C++ is compiled.
"""

from .interpret import evaluate
from .node import Node, constant, order, variable
from .operation import Operation, apply
from .ops.scalars import (
    TABLE,
    absolute,
    add,
    cos,
    declare,
    divide,
    equal,
    exp,
    expm1,
    greater,
    greater_equal,
    less,
    less_equal,
    log,
    log1p,
    log_add,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    power,
    sigmoid,
    sign,
    sin,
    sqrt,
    subtract,
    tanh,
    where,
)
from .trace import trace
from .types import Type, boolean, real

__all__ = [
    "TABLE",
    "Node",
    "Operation",
    "Type",
    "absolute",
    "add",
    "apply",
    "boolean",
    "constant",
    "cos",
    "declare",
    "divide",
    "equal",
    "evaluate",
    "exp",
    "expm1",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log_add",
    "logical_and",
    "logical_not",
    "logical_or",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "not_equal",
    "order",
    "power",
    "real",
    "sigmoid",
    "sign",
    "sin",
    "sqrt",
    "subtract",
    "tanh",
    "trace",
    "variable",
    "where",
]
