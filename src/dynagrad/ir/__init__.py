"""The intermediate representation: graphs of operations, which rules and compiled functions share.

- `types.py`: types of values; `buffers.py`: reused memory for large arrays;
- `operation.py`: what an operation is, and its application; `ops/`: the operations, a family a file;
- `node.py`: hash-consed nodes; `constants.py`: interning of large constants; `names.py`: source names of values;
- `control.py`: control flow: branches, loops, calls, stacks; `failures.py`: operations that raise;
- `code.py`: families of array operations, for passes and code generation;
- `value_numbering/`: finds values, loop states and whole loops that are equal;
- `builders.py`: builds control flow from Python functions; `trace.py`: traces Python functions of scalars;
- `interpret.py`: evaluates graphs, in the array libraries of `namespaces.py`;
- `show.py`, `draw.py`: graphs as text and as pictures.

Passes over graphs are in `passes/`, their derivatives in `autodiff/`. Nothing here knows rules, programs or C++
compilers.
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
