"""numpy's functions while a function is specialised.

Where everything is known numpy computes. Elsewhere the same handlers make nodes that differentiate numpy's functions
for numbers (`functions/numpy_functions.py`); here is what those leave to numpy because it carries no derivative.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import Error
from ...graph import Node, integers
from ...graph import arrays as whole_arrays
from ...graph import operations as ops
from ...graph.operation import Operation, apply
from ...graph.types import KINDS as _KIND
from ...graph.types import Type
from .. import special
from ..numpy_functions import FUNCTIONS, TAKES
from ..numpy_protocol import COMPOSED, UFUNCS, check_options, name_of, of_scipy, unknown
from .arrays import add_each, content_of, converted, holds_node, shaped
from .operators import arithmetic
from .specialise import KINDS, Specialiser
from .values import Array, Items, as_type, known, node_of, type_of, unwrapped, wrapped

_VIEWS = frozenset(
    {np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.reshape, np.ravel, np.broadcast_to}
    | {np.diagonal, np.atleast_1d, np.atleast_2d, np.flip, np.rot90, np.fliplr, np.flipud}
)


def numpy_call(s: Specialiser, function: Any, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
    """A function of numpy. Raises Error for those that have no handler, where something is not known yet."""
    if function in _CHANGE:
        raise Error(f"{name_of(function)} changes an array in place; write x[index] = value, or use np.where")
    if "out" in named and named["out"] is not None:
        raise Error("out= cannot be compiled; assign the result")
    named = {k: v for k, v in named.items() if k != "out"}
    if function in _SAME and arguments and isinstance(arguments[0], Array) and not named:
        return arguments[0]
    arguments = [_spelled(s, a) for a in arguments]
    given = [unwrapped(a) for a in arguments]
    options = {key: unwrapped(_spelled(s, value)) for key, value in named.items()}
    with np.errstate(all="ignore"):
        result = _computed(function, given, options)
    if function in _VIEWS and isinstance(arguments[0], Array):
        rest = given[1:]

        def look(content: Any) -> Any:
            return _computed(function, [content, *rest], options)

        return Array(None, arguments[0].owner, arguments[0], look)
    return wrapped(result)


_CHANGE = frozenset({np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis})
_SAME = frozenset({np.asarray, np.asanyarray, np.ascontiguousarray})


def _spelled(s: Specialiser, x: Any) -> Any:
    """What is gone over as a tuple."""
    if isinstance(x, Items) and not (x.kind == "range" and known(x)):
        from .walks import items

        return items(s, x)
    return x


_inside = threading.local()


def _computed(function: Any, given: list[Any], options: dict[str, Any]) -> Any:
    """By numpy, if all is known, or in the graph."""
    if not holds_node(given) and not holds_node(options):
        return function(*given, **options)
    before = getattr(_inside, "is_so", False)
    _inside.is_so = True
    try:
        return _in_graph(function, given, options)
    finally:
        _inside.is_so = before


_ordinary = Node.__array_function__, Node.__array_ufunc__


def _array_function(self: Node, function: Any, types: Any, given: Any, options: Any) -> Any:
    """What handlers get when they call numpy's functions on nodes themselves."""
    if getattr(_inside, "is_so", False):
        return _in_graph(function, list(given), dict(options))
    return _ordinary[0](self, function, types, given, options)


def _array_ufunc(self: Node, function: Any, method: str, *given: Any, **options: Any) -> Any:
    if getattr(_inside, "is_so", False) and method == "__call__":
        return _in_graph(function, list(given), options)
    return _ordinary[1](self, function, method, *given, **options)


setattr(Node, "__array_function__", _array_function)  # noqa: B010
setattr(Node, "__array_ufunc__", _array_ufunc)  # noqa: B010


def _in_graph(function: Any, given: list[Any], options: dict[str, Any]) -> Any:
    found = _of_reals(function, given, options)
    kind = _exact_kind(function, given, options)
    return found if kind is None else of_kind(found, kind)


_MOVES = frozenset(
    {np.reshape, np.transpose, np.ravel, np.concatenate, np.stack, np.hstack, np.vstack, np.dstack, np.column_stack}
    | {np.flip, np.flipud, np.fliplr, np.rot90, np.roll, np.tile, np.repeat, np.sort, np.broadcast_to, np.tril, np.triu}
    | {np.moveaxis, np.squeeze, np.expand_dims, np.swapaxes, np.split, np.array_split, np.diag, np.diagonal, np.pad}
    | {np.atleast_1d, np.atleast_2d, np.atleast_3d, np.max, np.min, np.amax, np.amin}
)
_COUNTS = frozenset({np.sum, np.prod, np.cumsum, np.cumprod, np.trace})
_PRODUCTS = frozenset({np.matmul, np.dot, np.inner, np.outer, np.vdot, np.tensordot, np.kron})
_ON_WHOLE: frozenset[Any] = frozenset(
    {np.absolute, np.sign, np.square, np.negative, np.power, np.fmax, np.fmin, np.clip, np.ptp, np.diff, np.cross}
)


_SUBTRACTS: frozenset[Any] = frozenset({np.diff, np.ptp, np.cross, np.negative})


def _exact_kind(function: Any, given: list[Any], options: dict[str, Any]) -> str | None:
    """Whether this is of whole numbers or truth values where its arguments are; the operations themselves are of reals,
    in which whole numbers below 2**53 are exact."""
    if function not in _MOVES | _COUNTS | _PRODUCTS | _ON_WHOLE or "dtype" in options:
        return None
    looked = (
        given[:1]
        if function in _MOVES | _COUNTS
        else given[:2]
        if function in _PRODUCTS
        else [*given, *options.values()]
    )
    kinds = {t.kind for x in looked for t in _types(x)}
    if not kinds or "real" in kinds:
        return None
    if "integer" in kinds or function in _COUNTS:
        return "integer"
    if function in _SUBTRACTS:
        raise Error(f"{name_of(function)} is not of truth values; np.logical_xor is")
    return None if function in _ON_WHOLE else "boolean"


def _types(x: Any) -> Iterator[Type]:
    t = type_of(x)
    if t is not None:
        yield t
    elif isinstance(x, tuple | list):
        for part in x:
            yield from _types(part)


def of_kind(x: Any, kind: str) -> Any:
    if isinstance(x, tuple | list):
        return type(x)(of_kind(part, kind) for part in x)
    if not isinstance(x, Node) or x.type.kind == kind:
        return x
    if kind == "boolean":
        return x != (0 if x.type.kind == "integer" else 0.0)
    return converted(x, np.int64)


def _of_reals(function: Any, given: list[Any], options: dict[str, Any]) -> Any:
    own = _HERE.get(function)
    if own is not None:
        return own(*given, **options)
    if isinstance(function, np.ufunc):
        return _ufunc(function, given, options)
    handler = FUNCTIONS.get(function)
    if handler is not None:
        takes = TAKES[function]
        check_options(name_of(function), {k: v for k, v in options.items() if k not in takes})
        options = {k: v for k, v in options.items() if k in takes and v is not np._NoValue}
        if function not in _OF_MANY:
            given = [content_of(x) if isinstance(x, list) and holds_node(x) else x for x in given]
        return handler(*given, **options)
    raise unknown(name_of(function))


_OF_MANY = frozenset(
    {np.stack, np.concatenate, np.vstack, np.hstack, np.dstack, np.column_stack, np.select, np.einsum}
    | {np.linalg.multi_dot}
)

_OPERATORS: dict[Any, Callable[[Any, Any], Any]] = {
    np.add: lambda a, b: arithmetic("add", a, b),
    np.subtract: lambda a, b: arithmetic("subtract", a, b),
    np.multiply: lambda a, b: arithmetic("multiply", a, b),
    np.floor_divide: lambda a, b: arithmetic("floor_divide", a, b),
    np.less: lambda a, b: a < b,
    np.less_equal: lambda a, b: a <= b,
    np.greater: lambda a, b: a > b,
    np.greater_equal: lambda a, b: a >= b,
    np.equal: lambda a, b: a == b,
    np.not_equal: lambda a, b: a != b,
    np.remainder: lambda a, b: arithmetic("modulo", a, b),
}
_LOOKS: dict[Any, Callable[..., Any]] = {
    np.isnan: lambda x: x != x,
    np.isinf: lambda x: apply(ops.absolute, x) == np.inf,
    np.isfinite: lambda x: apply(ops.absolute, x) < np.inf,
    np.signbit: lambda x: apply(ops.copysign, 1.0, x) < 0.0,
    np.heaviside: lambda x, h: ops.where(x == 0.0, h, ops.where(x > 0.0, 1.0, 0.0)),
    np.logical_xor: lambda a, b: (a | b) & ~(a & b),
}
_WHOLE: dict[Any, Operation] = {np.maximum: integers.maximum, np.minimum: integers.minimum}


def _ufunc(function: Any, given: list[Any], options: dict[str, Any]) -> Any:
    check_options(f"np.{function.__name__}", options)
    nodes = [node_of(content_of(x)) for x in given]
    if function in _OPERATORS:
        return _OPERATORS[function](*nodes)
    if function in _WHOLE and all(n.type.kind == "integer" for n in nodes):
        return _WHOLE[function](*nodes)
    if function in _LOOKS:
        return _LOOKS[function](*nodes)
    if function in (np.logical_and, np.logical_or, np.logical_not, np.bitwise_and, np.bitwise_or, np.invert):
        nodes = [n if n.type.kind == "boolean" else n != 0 for n in nodes]
        operation = {"a": ops.logical_and, "o": ops.logical_or, "n": ops.logical_not, "i": ops.logical_not}[
            function.__name__.removeprefix("logical_").removeprefix("bitwise_")[0]
        ]
        return operation(*nodes)
    found = UFUNCS.get(function)
    if found is not None:
        return found(*nodes)
    handler = COMPOSED.get(function) or of_scipy(function)
    if handler is None:
        raise unknown(f"np.{function.__name__}")
    return handler(*nodes)


def _where(condition: Any, *choices: Any) -> Any:
    if len(choices) != 2:
        raise Error("np.where with one argument gives an array whose shape is not known; use it with three")
    test = node_of(content_of(condition))
    test = test if test.type.kind == "boolean" else test != 0
    a, b = (node_of(content_of(x)) for x in choices)
    if {a.type.kind, b.type.kind} == {"integer", "boolean"}:
        a, b = of_kind(a, "integer"), of_kind(b, "integer")
    if a.type.kind == b.type.kind and a.type.kind in ("integer", "boolean"):
        return (integers.where if a.type.kind == "integer" else integers.choose)(test, a, b)
    return ops.where(test, a, b)


def _select(conditions: Any, choices: Any, default: Any = 0.0) -> Any:
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        default = _where(condition, choice, default)
    return default


def _nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    most = np.finfo(np.float64).max
    found = _where(x != x, nan, x)
    found = _where(x == np.inf, most if posinf is None else posinf, found)
    return _where(x == -np.inf, -most if neginf is None else neginf, found)


def _take(x: Any, places: Any, axis: Any = None) -> Any:
    node = node_of(content_of(x))
    if axis is None:
        node, axis = FUNCTIONS[np.ravel](node), 0
    index = content_of(places)
    return node[(*(slice(None),) * (axis % node.ndim), index)]


def _array(x: Any, dtype: Any = None, **options: Any) -> Any:
    found = node_of(content_of(x))
    if dtype is not None:
        return converted(found, dtype)
    return found


def _like(value: Any) -> Callable[..., Any]:
    def made(x: Any, dtype: Any = None, **options: Any) -> Any:
        t = type_of(content_of(x))
        assert t is not None
        kind = dtype or {"real": float, "integer": np.int64, "boolean": bool}[t.kind]
        return np.full(t.shape, value, kind) if t.shape else kind(value)

    return made


def _full(shape: Any, value: Any, dtype: Any = None) -> Any:
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    if holds_node(sizes):
        raise Error(_SHAPES)
    if not holds_node(value):
        return np.full(tuple(map(int, sizes)), value)
    node = node_of(value)
    return whole_arrays.broadcast_to(tuple(map(int, sizes)))(node)


def _full_like(x: Any, value: Any, dtype: Any = None, **options: Any) -> Any:
    t = type_of(content_of(x))
    assert t is not None
    return _full(t.shape, converted(value, dtype or {"real": float, "integer": np.int64, "boolean": bool}[t.kind]))


_SHAPES = (
    "the shape of an array must be known when the function is compiled, and this one depends on a number that is known "
    "only as it runs"
)


def _no_shape(*_: Any, **__: Any) -> Any:
    raise Error(_SHAPES)


def _reduced_truth(every: bool) -> Callable[..., Any]:
    def made(x: Any, axis: Any = None, **options: Any) -> Any:
        node = node_of(content_of(x))
        test = node if node.type.kind == "boolean" else node != 0
        counted = as_type(test, shaped(_KIND["real"], test.type))
        if not counted.shape:
            return test
        return FUNCTIONS[np.min if every else np.max](counted, axis, **options) > 0.5

    return made


def _winner(largest: bool) -> Callable[..., Any]:
    def made(x: Any, axis: Any = None) -> Any:
        node = node_of(content_of(x))
        node = as_type(node, shaped(_KIND["real"], node.type))
        if axis is None:
            node, axis = FUNCTIONS[np.ravel](node), 0
        axis = axis % node.ndim
        won = whole_arrays.winners(largest, (axis,))(node)
        number = np.arange(node.shape[axis], dtype=float).reshape(-1, *(1,) * (node.ndim - axis - 1))
        return integers.to_integer(FUNCTIONS[np.sum](ops.where(won, number, 0.0), axis))

    return made


def _round(x: Any, decimals: int = 0, **options: Any) -> Any:
    scale = 10.0**decimals
    return ops.rint(x * scale) / scale if decimals else ops.rint(x)


def _argsort(x: Any, axis: Any = -1, **options: Any) -> Any:
    node = node_of(content_of(x))
    return whole_arrays.argsort(axis % node.ndim)(node)


def _linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True) -> Any:
    steps = np.linspace(0.0, 1.0, num, endpoint=endpoint)
    return start + steps * (node_of(stop) - start)


_HERE: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.select: _select,
    np.nan_to_num: _nan_to_num,
    np.take: _take,
    np.array: _array,
    np.asarray: _array,
    np.asanyarray: _array,
    np.float64: lambda x: node_of(x) * 1.0,
    np.zeros_like: _like(0),
    np.ones_like: _like(1),
    np.empty_like: _like(0),
    np.full: _full,
    np.full_like: _full_like,
    np.zeros: _no_shape,
    np.ones: _no_shape,
    np.empty: _no_shape,
    np.eye: _no_shape,
    np.identity: _no_shape,
    np.arange: _no_shape,
    np.linspace: _linspace,
    np.shape: lambda x: getattr(content_of(x), "shape", ()),
    np.ndim: lambda x: len(getattr(content_of(x), "shape", ())),
    np.size: lambda x: node_of(content_of(x)).size,
    np.all: _reduced_truth(True),
    np.any: _reduced_truth(False),
    np.argmax: _winner(True),
    np.argmin: _winner(False),
    np.argsort: _argsort,
    np.round: _round,
    np.around: _round,
}


def _of_numpy(s: Specialiser, function: Any) -> Callable[..., Any] | None:
    """The handler of a function of numpy."""
    if isinstance(function, Operation):
        return lambda s, given, named: wrapped(apply(function, *map(unwrapped, given)))
    module = getattr(function, "__module__", None) or ""
    owner = getattr(function, "__self__", None)
    if module.startswith("numpy.random") or type(owner).__module__.startswith("numpy.random"):
        raise s.error("random numbers in a compiled function would be the same in every call; make them an argument")
    if module == special.__name__:
        return lambda s, given, named: _of_special(function, given, named)
    if isinstance(function, np.ufunc) or (
        module.split(".")[0] == "numpy" and isinstance(function, types.FunctionType | types.BuiltinFunctionType | type)
    ):
        return lambda s, given, named: numpy_call(s, function, given, named)
    if type(function).__name__ == "_ArrayFunctionDispatcher":
        return lambda s, given, named: numpy_call(s, function, given, named)
    if isinstance(owner, np.ufunc):
        return lambda s, given, named: _method_of_ufunc(s, owner, function, given, named)
    return None


def _of_special(function: Any, given: list[Any], named: dict[str, Any]) -> Any:
    """A function of `dg.special`: made of operations, which nodes know."""
    before = getattr(_inside, "is_so", False)
    _inside.is_so = True
    try:
        return wrapped(function(*map(unwrapped, given), **{k: unwrapped(v) for k, v in named.items()}))
    finally:
        _inside.is_so = before


def _method_of_ufunc(s: Specialiser, ufunc: Any, method: Any, given: list[Any], named: dict[str, Any]) -> Any:
    """`np.add.reduce` and its kin."""
    from ..numpy_protocol import ACCUMULATIONS, REDUCTIONS

    if method.__name__ == "at":
        if ufunc not in (np.add, np.subtract) or len(given) != 3:
            raise Error(f"np.{ufunc.__name__}.at cannot be compiled; np.add.at can")
        add_each(s, given[0], given[1], given[2], ufunc is np.subtract)
        return None
    if not holds_node([unwrapped(x) for x in given]):
        return wrapped(method(*map(unwrapped, given), **named))
    table = {"reduce": REDUCTIONS, "accumulate": ACCUMULATIONS}.get(method.__name__, {})
    if ufunc not in table:
        raise Error(f"np.{ufunc.__name__}.{method.__name__} cannot be compiled")
    return numpy_call(s, table[ufunc], given, {"axis": 0} | named)


KINDS.append(_of_numpy)
