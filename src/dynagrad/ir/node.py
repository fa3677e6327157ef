"""Nodes of the graph: hash-consed expressions, with Python's operators and numpy's ufuncs.

A node is an operation applied to nodes, or a variable, or a constant. Nodes are immutable and hash-consed (Ershov 1958;
value numbering by construction): structurally equal nodes are one object, in all threads, so identity is equality,
common subexpressions are computed once, and nodes are keys of dicts. `==` between nodes makes a node, as `<` does.
Nothing here rewrites or differentiates.

It is long because what a node is and how one is made cannot be apart: Python's operators, numpy's functions,
conversions and pickles are methods of the class, and all of them make nodes.
"""

from __future__ import annotations

import itertools
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..errors import Error
from ..forks import renewed
from .constants import once
from .names import carry, note_line
from .operation import Operation, apply, as_number, result_type
from .ops import integers
from .ops import scalars as ops
from .ops.arrays import matmul
from .ops.places import item
from .ops.spelling import Infix, Prefix
from .types import DTYPES, KINDS, Shape, Type, array, arrays, boolean, integer, real

VARIABLE = Operation("variable", (), real, float, (), "")
CONSTANT = Operation("constant", (), real, float, (), "")
_LEAVES = {"variable": VARIABLE, "constant": CONSTANT}

_table: WeakValueDictionary[tuple[Any, ...], Node] = WeakValueDictionary()
_lock = renewed(threading.RLock())  # re-entrant, for the garbage collector may run a finaliser that builds nodes

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

    __slots__ = ("__weakref__", "arguments", "attribute", "birth", "operation", "type")

    operation: Operation
    arguments: tuple[Node, ...]
    attribute: Any  # the name of a variable, the value of a constant, the subgraphs of control flow; or None
    type: Type
    birth: int  # a serial number: a node has a larger one than its arguments

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

    # -- shapes ------------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    @property
    def size(self) -> int:
        return self.type.size

    @property
    def dtype(self) -> Any:
        return np.dtype(DTYPES[self.type.kind])

    def __len__(self) -> int:
        if not self.type.shape:
            raise TypeError("a Node that is a single number has no length, and is not iterable")
        return self.type.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: object) -> Any:
        if not self.type.shape:
            raise TypeError("a Node that is a single number is not subscriptable")
        return item(self, index)

    def __matmul__(self, other: object) -> Any:
        return _product(self, other)

    def __rmatmul__(self, other: object) -> Any:
        return _product(other, self)

    @staticmethod
    def __apply_operation__(operation: Operation, arguments: tuple[Any, ...]) -> Any:
        lifted: list[Node] = []
        for index, argument in enumerate(arguments):
            node = as_node(argument)
            wanted = operation.arguments[min(index, len(operation.arguments) - 1)]
            if node is not None and node is not argument and wanted is integer:
                whole_number = _whole(argument)
                node = node if whole_number is None else whole_number
            if node is None:
                if hasattr(type(argument), "__apply_operation__"):
                    return NotImplemented
                raise Error(
                    f"{operation.name}: argument {index + 1} is {repr(argument)[:60]} of type "
                    f"{type(argument).__name__}; a traced function works on numbers and arrays"
                )
            kept = operation.keeps_kind and wanted is array and (lifted or [node])[0].type.kind != "real"
            lifted.append(node if kept else _convert(operation, index, node))
        return intern(operation, tuple(lifted))

    # -- Python's operators ------------------------------------------------------------------------------------------

    def __add__(self, other: object) -> Any:
        return _either(ops.add, integers.add, self, other)

    def __radd__(self, other: object) -> Any:
        return _either(ops.add, integers.add, other, self)

    def __sub__(self, other: object) -> Any:
        return _either(ops.subtract, integers.subtract, self, other)

    def __rsub__(self, other: object) -> Any:
        return _either(ops.subtract, integers.subtract, other, self)

    def __mul__(self, other: object) -> Any:
        return _either(ops.multiply, integers.multiply, self, other)

    def __rmul__(self, other: object) -> Any:
        return _either(ops.multiply, integers.multiply, other, self)

    def __truediv__(self, other: object) -> Any:
        return _binary(ops.divide, self, other)

    def __rtruediv__(self, other: object) -> Any:
        return _binary(ops.divide, other, self)

    def __pow__(self, other: object) -> Any:
        return _binary(ops.power, self, other)

    def __rpow__(self, other: object) -> Any:
        return _binary(ops.power, other, self)

    def __floordiv__(self, other: object) -> Any:
        return _either(_floor_divide, integers.floor_divide, self, other)

    def __rfloordiv__(self, other: object) -> Any:
        return _either(_floor_divide, integers.floor_divide, other, self)

    def __mod__(self, other: object) -> Any:
        return _either(ops.modulo, integers.remainder, self, other)

    def __rmod__(self, other: object) -> Any:
        return _either(ops.modulo, integers.remainder, other, self)

    def __neg__(self) -> Any:
        return apply(integers.negative if self.type.kind == "integer" else ops.negative, self)

    def __pos__(self) -> Node:
        return self

    def __abs__(self) -> Any:
        return apply(integers.absolute if self.type.kind == "integer" else ops.absolute, self)

    def __lt__(self, other: object) -> Any:
        return _either(ops.less, integers.less, self, other)

    def __le__(self, other: object) -> Any:
        return _either(ops.less_equal, integers.less_equal, self, other)

    def __gt__(self, other: object) -> Any:
        return _either(ops.greater, integers.greater, self, other)

    def __ge__(self, other: object) -> Any:
        return _either(ops.greater_equal, integers.greater_equal, self, other)

    def __eq__(self, other: object) -> Any:
        return _either(ops.equal, integers.equal, self, other)

    def __ne__(self, other: object) -> Any:
        return _either(ops.not_equal, integers.not_equal, self, other)

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

    # -- conversions, which need a value and raise -------------------------------------------------------------------

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
        if _numpys.computed is not None and method == "__call__":
            return _numpys.computed(ufunc, list(inputs), options)
        return _numpy(ufunc.__name__, method == "__call__" and not options, inputs)

    def __array_function__(self, function: Any, types: object, inputs: Any, options: Any) -> Any:
        if _numpys.computed is not None:
            return _numpys.computed(function, list(inputs), dict(options))
        return _numpy(function.__name__, not options, inputs)

    # -- printing and pickling ---------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return _text(self, 5)

    def __reduce__(self) -> Any:
        series = order((self,))
        place = {node: index for index, node in enumerate(series)}
        rows = [
            (node.operation.name, tuple(place[a] for a in node.arguments), node.attribute, node.type) for node in series
        ]
        return _rebuild, (rows,)


_set = object.__setattr__


_births = itertools.count(1)


def intern(
    operation: Operation, arguments: tuple[Node, ...] = (), attribute: Any = None, type: Type | None = None
) -> Node:
    """The node with this operation, these arguments and this attribute; `type` is inferred where it is None."""
    if type is None:
        type = result_type(operation, tuple(a.type for a in arguments)) if arguments else real
    key = (operation, tuple(map(id, arguments)), _distinct(operation, attribute), type)
    with _lock:
        node = _table.get(key)
        if node is None:
            node = object.__new__(Node)
            _set(node, "operation", operation)
            _set(node, "arguments", arguments)
            _set(node, "attribute", attribute)
            _set(node, "type", type)
            _set(node, "birth", next(_births))
            _table[key] = node
    note_line(node.birth)
    return node


def _distinct(operation: Operation, attribute: Any) -> Any:
    """The part of the hash-consing key for an attribute: of constants the bits, since 0.0 == -0.0 and True == 1.0."""
    if operation is not CONSTANT:
        return attribute
    if isinstance(attribute, np.ndarray):
        return (attribute.shape, attribute.dtype.str, attribute.tobytes())
    return attribute if isinstance(attribute, int) and not isinstance(attribute, bool) else struct.pack("<d", attribute)


def variable(name: str, type: Type = real) -> Node:
    """The variable of that name.

    >>> variable("x") is variable("x")
    True
    """
    return intern(VARIABLE, attribute=name, type=type)


_fresh_names = itertools.count()


def fresh(type: Type = real) -> Node:
    """A variable with a fresh name, such as a parameter of a subgraph."""
    return variable(f"%{next(_fresh_names)}", type)


def constant(value: Any) -> Node:
    """The constant with that value; `True` and `False` are truth values, arrays are copied, other numbers are reals.

    >>> constant(2), constant(True), constant(np.zeros(2)).type.name
    (2.0, True, 'real[2]')
    """
    if isinstance(value, np.ndarray) and value.ndim:
        return once(value, _constant_array)
    number = as_number(value)
    if number is None:
        raise Error(f"a constant should be a number, and is {repr(value)[:60]} of type {value.__class__.__name__}")
    return intern(CONSTANT, attribute=number, type=boolean if isinstance(number, bool) else real)


def _constant_array(value: Any) -> Node:
    kind = KINDS[{"b": "boolean", "i": "integer", "u": "integer"}.get(value.dtype.kind, "real")]
    kept = np.array(value, DTYPES[kind.kind])
    kept.setflags(write=False)
    return intern(CONSTANT, attribute=kept, type=arrays(kind, kept.shape))


def whole(value: int) -> Node:
    """The constant whole number.

    >>> whole(2).type.name
    'integer'
    """
    return intern(CONSTANT, attribute=int(value), type=integer)


def _whole(value: object) -> Node | None:
    """A whole number, or an array of these, as a constant; None for anything else."""
    if isinstance(value, np.ndarray) and value.ndim and value.dtype.kind in "iu":
        return constant(value)
    return whole(int(value)) if isinstance(value, int | np.integer) and not isinstance(value, bool) else None


def as_node(value: object) -> Node | None:
    """A node as it is, a plain number or an array as a constant, None for anything else."""
    if isinstance(value, Node):
        return value
    if isinstance(value, np.ndarray) and value.ndim:
        return constant(value) if value.dtype.kind in "biuf" else None
    number = as_number(value)
    return None if number is None else constant(number)


def order(roots: Iterable[Node], since: int = 0) -> tuple[Node, ...]:
    """Topological order: everything that the roots need, each node once and after its arguments.

    Arguments of nodes that are not younger than `since` are left out, since they are as old.

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
        if missing and node.birth > since:
            stack.extend(reversed(missing))
        else:
            done[node] = None
            stack.pop()
    return tuple(done)


def use_counts(outputs: Sequence[Node]) -> Counter[Node]:
    """How often each node is used, as an argument or as an output.

    >>> x = variable("x")
    >>> use_counts([x * x, x])[x]
    3
    """
    counts = Counter(argument for node in order(outputs) for argument in node.arguments)
    counts.update(outputs)
    return counts


def with_arguments(node: Node, arguments: Sequence[Node], attribute: Any = None) -> Node:
    """The node with other arguments, and with another attribute if one is given; it keeps its source name.

    >>> x, y = variable("x"), variable("y")
    >>> with_arguments(x * 2.0, [y, constant(2.0)])
    y * 2.0
    """
    attribute = node.attribute if attribute is None else attribute
    if attribute is node.attribute and all(a is b for a, b in zip(arguments, node.arguments, strict=True)):
        return node
    made = intern(node.operation, tuple(arguments), attribute, node.type)
    carry(node.birth, made.birth)
    return made


def substitute(outputs: Iterable[Node], by: Mapping[Node, Node], since: int = 0) -> tuple[Node, ...]:
    """The outputs with nodes replaced. Subgraphs are closed, so only the arguments of their nodes change.

    Nodes that are not younger than `since` are not visited; all replaced nodes must be younger.

    >>> x, y = variable("x"), variable("y")
    >>> substitute([x * x + y], {x: y + 1.0})
    (((y + 1.0) * (y + 1.0)) + y,)
    """
    outputs = tuple(outputs)
    new: dict[Node, Node] = dict(by)
    stack = [*reversed(outputs)]
    while stack:
        node = stack[-1]
        if node in new or node.birth <= since:
            new.setdefault(node, node)
            stack.pop()
            continue
        extends: Node | None = getattr(node.attribute, "extends", None)  # of control flow; see control.py
        missing = [a for a in (*node.arguments, *(() if extends is None else (extends,))) if a not in new]
        if missing:
            stack.extend(missing)
            continue
        arguments = [new[a] for a in node.arguments]
        attribute = None
        if extends is not None and any(a is not b for a, b in zip(arguments, node.arguments, strict=True)):
            attribute = _extending(node.attribute, new[extends])
        new[node] = with_arguments(node, arguments, attribute)
        stack.pop()
    return tuple(new[output] for output in outputs)


_extensions: WeakValueDictionary[tuple[int, ...], Any] = WeakValueDictionary()


def _extending(attribute: Any, node: Node) -> Any:
    """The attribute with another node to extend; interned, so that equal nodes stay one object."""
    if attribute.extends is node:
        return attribute
    # subgraphs live as long as the attribute, so their ids are not reused while it is in the table
    key = (*(id(getattr(attribute, f.name)) for f in fields(attribute) if f.name != "extends"), id(node))
    found = _extensions.get(key)
    if found is None:
        found = _extensions[key] = replace(attribute, extends=node)
    return found


def _convert(operation: Operation, index: int, node: Node) -> Node:
    """Implicit conversions, as in Python: truth values to numbers, integers to reals."""
    wanted = operation.arguments[min(index, len(operation.arguments) - 1)]
    kind = "real" if wanted is array else wanted.kind
    if node.type.kind == kind:
        return node
    if kind == "real" and node.type.kind == "boolean":
        if node.is_constant:
            return constant(1.0 * node.attribute)
        return intern(ops.where, (node, constant(1.0), constant(0.0)))
    if kind == "real" and node.type.kind == "integer":
        if node.is_constant:
            return constant(1.0 * node.attribute)
        return intern(integers.to_real, (node,))
    if kind == "integer" and node.type.kind == "boolean":
        return intern(integers.count_true, (node,))
    if kind == "integer":
        raise Error(f"{operation.name}: argument {index + 1} should be a whole number, and is {node!r}")
    raise Error(f"{operation.name}: argument {index + 1} should be a truth value such as x > 0, and is {node!r}")


def _binary(operation: Operation, left: object, right: object) -> Any:
    if as_node(left) is None or as_node(right) is None:
        return NotImplemented
    return apply(operation, left, right)


def _either(of_reals: Any, of_integers: Operation, left: object, right: object) -> Any:
    """Arithmetic of integers where both operands are integers, of reals otherwise."""
    if _is_integer(left) or _is_integer(right):
        a, b = (x if isinstance(x, Node) else _whole(x) for x in (left, right))
        if a is not None and b is not None and a.type.kind != "real" and b.type.kind != "real":
            return apply(of_integers, a, b)
    if as_node(left) is None or as_node(right) is None:
        return NotImplemented
    return of_reals(left, right)  # as they are, so that what is asked of a number is known at once


def _is_integer(x: object) -> bool:
    return isinstance(x, Node) and x.type.kind == "integer"


def _floor_divide(left: Any, right: Any) -> Any:
    """The quotient of reals, rounded down, as numpy has it: 1.0 // 0.1 is 9.0, though 1.0 / 0.1 rounds to 10.0."""
    quotient, rest = apply(ops.divide, left, right), apply(ops.fmod, left, right)
    truncated = apply(ops.rint, apply(ops.divide, apply(ops.subtract, left, rest), right))
    opposite = apply(ops.less, apply(ops.multiply, apply(ops.sign, rest), apply(ops.sign, right)), 0.0)
    down = apply(ops.subtract, truncated, apply(ops.where, opposite, 1.0, 0.0))
    by_zero = apply(ops.equal, right, 0.0)
    return apply(ops.where, by_zero, apply(ops.floor, quotient), apply(ops.copysign, down, quotient))


def _product(left: object, right: object) -> Any:
    return _binary(matmul, left, right)


# numpy's names where they differ
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


class _Numpys(threading.local):
    computed: Callable[[Any, list[Any], dict[str, Any]], Any] | None = None


_numpys = _Numpys()


@contextmanager
def numpy_by(computed: Callable[[Any, list[Any], dict[str, Any]], Any]) -> Iterator[None]:
    """A context in which this thread computes numpy's functions on nodes by another function, from the function of
    numpy, its arguments and its options. Outside of it they are single operations."""
    before = _numpys.computed
    _numpys.computed = computed
    try:
        yield
    finally:
        _numpys.computed = before


def _numpy(name: str, plain: bool, inputs: tuple[Any, ...]) -> Any:
    if not plain:
        raise Error(f"np.{name} in a traced function is called with values alone: no out=, where=, reduce and the like")
    if name == "square":
        return inputs[0] * inputs[0]
    if name == "matmul":
        return _product(*inputs)
    of_integers = integers.TABLE.get(f"integer_{name}")
    if of_integers is not None and any(isinstance(x, Node) and x.type.kind == "integer" for x in inputs):
        if all(_whole(x) is not None or (isinstance(x, Node) and x.type.kind != "real") for x in inputs):
            return apply(of_integers, *inputs)
    operation = _NUMPY.get(name)
    if operation is None:
        raise Error(f"np.{name} is no operation of a traced function; these are: {', '.join(sorted(_NUMPY))}")
    return apply(operation, *inputs)


def _text(node: Node, depth: int) -> str:
    """The node as an expression, abbreviated below `depth` levels."""
    if node.is_variable or node.is_constant:
        return str(node.attribute) if not isinstance(node.attribute, np.ndarray) else str(node.type)
    if depth == 0:
        return "..."
    operation = node.operation
    shown = []
    for argument in node.arguments:
        text = _text(argument, depth - 1)
        nested = _is_operator(operation) and _is_operator(argument.operation) and text != "..."
        shown.append(f"({text})" if nested else text)
    return operation.cxx.format(*shown) if _is_operator(operation) else f"{operation.name}({', '.join(shown)})"


def _is_operator(operation: Operation) -> bool:
    return isinstance(operation.cxx, Infix | Prefix)


def _rebuild(rows: list[tuple[str, tuple[int, ...], Any, Type]]) -> Node:
    nodes: list[Node] = []
    for name, places, attribute, type in rows:
        operation = _LEAVES.get(name) or ops.TABLE.get(name) or integers.TABLE.get(name)
        if operation is None:
            raise Error(f"a pickled graph uses the operation {name}, which is not declared here")
        nodes.append(intern(operation, tuple(nodes[i] for i in places), attribute, arrays(type, type.shape)))
    return nodes[-1]
