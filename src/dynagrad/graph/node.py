"""Nodes: the values of a graph before they are known.

A node is an operation applied to nodes, or a variable, or a constant. Nodes are immutable and hash-consed: two that
say the same are the same object, in all threads, so identity is equality, common subexpressions are computed once, and
a node can be a key of a dict. `==` between nodes is an operation of the graph, as `<` is. Here are also Python's
operators and numpy's functions on nodes. Nothing here rewrites or differentiates.
"""

from __future__ import annotations

import os
import re
import struct
import threading
from collections.abc import Iterable
from typing import Any
from weakref import WeakValueDictionary

from ..errors import Error
from . import operations as ops
from .operation import Operation, apply, as_number
from .types import Type, boolean, real

VARIABLE = Operation("variable", (), real, float, (), "")
CONSTANT = Operation("constant", (), real, float, (), "")
_LEAVES = {"variable": VARIABLE, "constant": CONSTANT}

_table: WeakValueDictionary[tuple[Any, ...], Node] = WeakValueDictionary()
_lock = threading.RLock()  # re-entrant, because the garbage collector may run a finaliser that builds nodes


def _fresh_lock() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # a thread that held the lock does not live on in the child
    os.register_at_fork(after_in_child=_fresh_lock)

_BRANCHES = (
    "a traced function may not branch on a value (if, while, and, or, not, min, max, a < b < c): it runs once, for all "
    "values; use np.where(condition, a, b), np.minimum, np.maximum, and & | ~ between conditions"
)
_FLOATS = (
    "a value is not known while its function is traced, so it cannot become a {}; use numpy's functions instead of "
    "those of math: np.exp(x), not math.exp(x)"
)


class Node:
    """A value of the graph.

    >>> x = variable("x")
    >>> (x + 1.0) * x is (x + 1.0) * x
    True
    >>> x * x > 2
    (x * x) > 2.0
    """

    __slots__ = ("__weakref__", "arguments", "attribute", "operation", "type")

    operation: Operation
    arguments: tuple[Node, ...]
    attribute: Any  # the name of a variable, the number of a constant, None elsewhere
    type: Type

    def __init__(self) -> None:
        raise Error("nodes are made by variable(), constant() and by applying operations")

    def __setattr__(self, name: str, value: object) -> None:
        raise Error("nodes cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise Error("nodes cannot be changed")

    @property
    def is_variable(self) -> bool:
        return self.operation is VARIABLE

    @property
    def is_constant(self) -> bool:
        return self.operation is CONSTANT

    @staticmethod
    def __apply_operation__(operation: Operation, arguments: tuple[Any, ...]) -> Any:
        lifted = []
        for index, argument in enumerate(arguments):
            node = as_node(argument)
            if node is None:
                if hasattr(type(argument), "__apply_operation__"):
                    return NotImplemented
                raise Error(
                    f"{operation.name}: argument {index + 1} is {repr(argument)[:60]} of type "
                    f"{type(argument).__name__}; a traced function works on single numbers"
                )
            lifted.append(_convert(operation, index, node))
        return intern(operation, tuple(lifted))

    # -- Python's operators ------------------------------------------------------------------------------------------

    def __add__(self, other: object) -> Any:
        return _binary(ops.add, self, other)

    def __radd__(self, other: object) -> Any:
        return _binary(ops.add, other, self)

    def __sub__(self, other: object) -> Any:
        return _binary(ops.subtract, self, other)

    def __rsub__(self, other: object) -> Any:
        return _binary(ops.subtract, other, self)

    def __mul__(self, other: object) -> Any:
        return _binary(ops.multiply, self, other)

    def __rmul__(self, other: object) -> Any:
        return _binary(ops.multiply, other, self)

    def __truediv__(self, other: object) -> Any:
        return _binary(ops.divide, self, other)

    def __rtruediv__(self, other: object) -> Any:
        return _binary(ops.divide, other, self)

    def __pow__(self, other: object) -> Any:
        return _binary(ops.power, self, other)

    def __rpow__(self, other: object) -> Any:
        return _binary(ops.power, other, self)

    def __neg__(self) -> Any:
        return apply(ops.negative, self)

    def __pos__(self) -> Node:
        return self

    def __abs__(self) -> Any:
        return apply(ops.absolute, self)

    def __lt__(self, other: object) -> Any:
        return _binary(ops.less, self, other)

    def __le__(self, other: object) -> Any:
        return _binary(ops.less_equal, self, other)

    def __gt__(self, other: object) -> Any:
        return _binary(ops.greater, self, other)

    def __ge__(self, other: object) -> Any:
        return _binary(ops.greater_equal, self, other)

    def __eq__(self, other: object) -> Any:
        return _binary(ops.equal, self, other)

    def __ne__(self, other: object) -> Any:
        return _binary(ops.not_equal, self, other)

    __hash__ = object.__hash__  # by identity; no two living objects share it, so dicts never ask `==`

    def __and__(self, other: object) -> Any:
        return _binary(ops.logical_and, self, other)

    def __rand__(self, other: object) -> Any:
        return _binary(ops.logical_and, other, self)

    def __or__(self, other: object) -> Any:
        return _binary(ops.logical_or, self, other)

    def __ror__(self, other: object) -> Any:
        return _binary(ops.logical_or, other, self)

    def __invert__(self) -> Any:
        return apply(ops.logical_not, self)

    # -- what a value that is not known cannot do --------------------------------------------------------------------

    def __bool__(self) -> bool:
        raise Error(_BRANCHES)

    def __float__(self) -> float:
        raise Error(_FLOATS.format("float"))

    def __int__(self) -> int:
        raise Error(_FLOATS.format("whole number"))

    def __index__(self) -> int:
        raise Error(_FLOATS.format("whole number"))

    def __complex__(self) -> complex:
        raise Error(_FLOATS.format("complex number"))

    def __array__(self, *_: object, **__: object) -> Any:
        raise Error("a traced function works on single numbers: a value in it cannot become part of an array")

    # -- numpy -------------------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return _numpy(ufunc.__name__, method == "__call__" and not options, inputs)

    def __array_function__(self, function: Any, types: object, inputs: Any, options: Any) -> Any:
        return _numpy(function.__name__, not options, inputs)

    # -- printing and pickling ---------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return _text(self, 5)

    def __reduce__(self) -> Any:
        series = order((self,))
        place = {node: index for index, node in enumerate(series)}
        rows = [
            (node.operation.name, tuple(place[a] for a in node.arguments), node.attribute, node.type is boolean)
            for node in series
        ]
        return _rebuild, (rows,)


_set = object.__setattr__


def intern(operation: Operation, arguments: tuple[Node, ...] = (), attribute: Any = None, type: Type = real) -> Node:
    """The one node with this operation, these arguments and this attribute; `type` counts for leaves alone."""
    if arguments:
        type = operation.result
    # Constants are told apart by their bits: 0.0 == -0.0 and True == 1.0, but they are not the same constant.
    distinct = struct.pack("<d", attribute) if operation is CONSTANT else attribute
    key = (operation, tuple(map(id, arguments)), distinct, type.name)
    with _lock:
        node = _table.get(key)
        if node is None:
            node = object.__new__(Node)
            _set(node, "operation", operation)
            _set(node, "arguments", arguments)
            _set(node, "attribute", attribute)
            _set(node, "type", type)
            _table[key] = node
    return node


def variable(name: str, type: Type = real) -> Node:
    """The variable of that name.

    >>> variable("x") is variable("x")
    True
    """
    return intern(VARIABLE, attribute=name, type=type)


def constant(value: float | bool) -> Node:
    """The constant with that value; `True` and `False` are truth values, any other number is a real.

    >>> constant(2), constant(True)
    (2.0, True)
    """
    number = as_number(value)
    if number is None:
        raise Error(f"a constant is a number, and {repr(value)[:60]} of type {value.__class__.__name__} is none")
    return intern(CONSTANT, attribute=number, type=boolean if isinstance(number, bool) else real)


def as_node(value: object) -> Node | None:
    """A node as it is, a plain number as a constant, None for anything else."""
    if isinstance(value, Node):
        return value
    number = as_number(value)
    return None if number is None else constant(number)


def order(roots: Iterable[Node]) -> tuple[Node, ...]:
    """Everything that the roots need, each node once and after its arguments: the let-series of a graph.

    >>> x = variable("x")
    >>> order([(x + 1.0) * x])
    (x, 1.0, x + 1.0, (x + 1.0) * x)
    """
    done: dict[Node, None] = {}
    stack = list(roots)
    stack.reverse()
    while stack:
        node = stack[-1]
        missing = [argument for argument in node.arguments if argument not in done]
        if missing:
            stack.extend(reversed(missing))
        else:
            done[node] = None
            stack.pop()
    return tuple(done)


def _convert(operation: Operation, index: int, node: Node) -> Node:
    """A truth value where a real is wanted counts 1 or 0, as in Python; the other way round is an error."""
    wanted = operation.arguments[index]
    if node.type is wanted:
        return node
    if wanted is real and node.type is boolean:
        if node.is_constant:
            return constant(float(node.attribute))
        return intern(ops.where, (node, constant(1.0), constant(0.0)))
    raise Error(f"{operation.name}: argument {index + 1} should be a truth value such as x > 0, and is {node!r}")


def _binary(operation: Operation, left: object, right: object) -> Any:
    if as_node(left) is None or as_node(right) is None:
        return NotImplemented
    return apply(operation, left, right)


# numpy's names where they differ from ours
_NUMPY: dict[str, Operation] = {
    **ops.TABLE,
    "true_divide": ops.divide,
    "float_power": ops.power,
    "fabs": ops.absolute,
    "logaddexp": ops.log_add,
    "remainder": ops.modulo,
    "fmax": ops.fmaximum,
    "fmin": ops.fminimum,
    "bitwise_and": ops.logical_and,
    "bitwise_or": ops.logical_or,
    "invert": ops.logical_not,
}


def _numpy(name: str, plain: bool, inputs: tuple[Any, ...]) -> Any:
    if not plain:
        raise Error(f"np.{name} in a traced function is called with values alone: no out=, where=, reduce and the like")
    if name == "square":
        return inputs[0] * inputs[0]
    operation = _NUMPY.get(name)
    if operation is None:
        raise Error(f"np.{name} is no operation of a traced function; these are: {', '.join(sorted(_NUMPY))}")
    return apply(operation, *inputs)


_INFIX = re.compile(r"\{0\} \S+ \{1\}|[-!]\{0\}")


def _text(node: Node, depth: int) -> str:
    """The node as an expression, cut off below a few levels."""
    if node.is_variable or node.is_constant:
        return str(node.attribute)
    if depth == 0:
        return "..."
    infix = _INFIX.fullmatch(node.operation.cxx)
    shown = []
    for argument in node.arguments:
        text = _text(argument, depth - 1)
        shown.append(f"({text})" if infix and _INFIX.fullmatch(argument.operation.cxx) and text != "..." else text)
    return node.operation.cxx.format(*shown) if infix else f"{node.operation.name}({', '.join(shown)})"


def _rebuild(rows: list[tuple[str, tuple[int, ...], Any, bool]]) -> Node:
    nodes: list[Node] = []
    for name, places, attribute, truth in rows:
        operation = _LEAVES.get(name) or ops.TABLE.get(name)
        if operation is None:
            raise Error(f"a pickled graph uses the operation {name}, which is not declared here")
        nodes.append(intern(operation, tuple(nodes[i] for i in places), attribute, boolean if truth else real))
    return nodes[-1]
