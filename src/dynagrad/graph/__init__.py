"""Operations and let-series: the form that rules and functions share.

`types.py` and `operation.py` say what an operation is, `operations.py` is the table of them (computing with `ieee.py`),
`node.py` is the graph, `trace.py` makes one of a Python function, `derive.py` differentiates (`life.py` says how an
adjoint lives meanwhile), `simplify.py` and `evaluate.py` do what they say, `show.py` and `draw.py` make text and
pictures of graphs. Nothing here knows of rules, programs or how C++ is compiled.
"""

from . import flow  # noqa: F401  -- the rules of control flow, for `derive`
from .derive import generate_adjoints, sweep, tangents
from .evaluate import evaluate
from .node import Node, constant, order, variable
from .operation import Operation, apply
from .operations import (
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
from .simplify import simplify
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
    "generate_adjoints",
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
    "simplify",
    "sin",
    "sqrt",
    "subtract",
    "sweep",
    "tangents",
    "tanh",
    "trace",
    "variable",
    "where",
]
