"""Functions of numpy on nodes that have no derivative, so that eager differentiation leaves them to numpy.

Comparisons, bits and truth values; searching; conversions and shapes; selection among whole numbers and truth values as
well as reals; and functions whose result has a dynamic shape, which are refused. A handler may call other functions of
numpy on nodes, as users do. How calls get here is in `calls.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager.numpy.arranging import is_descending
from ...eager.numpy.functions import FUNCTIONS, axis_of, check_options
from ...eager.numpy.missing import unknown
from ...eager.numpy.protocol import COMPOSED, UFUNCS, of_scipy
from ...errors import Error
from ...ir.operation import apply
from ...ir.ops import arrays as whole_arrays
from ...ir.ops import integers, reductions
from ...ir.ops import scalars as ops
from ...ir.types import KINDS, Type
from ..evaluate.arrays import array_type, content_of, converted, holds_node, kind_of, of_kind
from ..evaluate.operators import arithmetic, bits, inverted
from ..evaluate.values import as_type, describe, node_of, type_of
from .result_kinds import on_integers

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
_COMPARISONS = frozenset({np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal})
_PREDICATES: dict[Any, Callable[..., Any]] = {
    np.isnan: lambda x: x != x,
    np.isinf: lambda x: apply(ops.absolute, x) == np.inf,
    np.isfinite: lambda x: apply(ops.absolute, x) < np.inf,
    np.signbit: lambda x: apply(ops.copysign, 1.0, x) < 0.0,
    np.heaviside: lambda x, h: ops.where(x == 0.0, h, ops.where(x > 0.0, 1.0, ops.where(x < 0.0, 0.0, x))),
    np.bitwise_and: lambda a, b: bits("and", a, b),
    np.bitwise_or: lambda a, b: bits("or", a, b),
    np.bitwise_xor: lambda a, b: bits("xor", a, b),
    np.left_shift: lambda a, b: bits("left_shift", a, b),
    np.right_shift: lambda a, b: bits("right_shift", a, b),
    np.invert: inverted,
}
_TRUTHS: dict[Any, Callable[..., Any]] = {
    np.logical_and: ops.logical_and,
    np.logical_or: ops.logical_or,
    np.logical_not: ops.logical_not,
    np.logical_xor: lambda a, b: bits("xor", a, b),
}


def ufunc_of_nodes(function: Any, args: list[Any], options: dict[str, Any]) -> Any:
    check_options(f"np.{function.__name__}", options)
    nodes = [node_of(content_of(x)) for x in args]
    if options.get("dtype") is not None:  # of reals, or it is refused above
        if function.nin == 0 or function in _PREDICATES or function in _TRUTHS or function in _COMPARISONS:
            raise Error(f"np.{function.__name__} has truth values, and does not take dtype={options['dtype']}")
        nodes = [as_type(n, array_type(KINDS["real"], n.type)) for n in nodes]
    if function in _OPERATORS:
        return _OPERATORS[function](*nodes)
    found = on_integers(function, nodes)
    if found is not None:
        return found
    if function in _PREDICATES:
        return _PREDICATES[function](*nodes)
    if function in _TRUTHS:
        return _TRUTHS[function](*(n if n.type.kind == "boolean" else n != 0 for n in nodes))
    found = UFUNCS.get(function)
    if found is not None:
        return found(*nodes)
    handler = COMPOSED.get(function) or of_scipy(function)
    if handler is None:
        raise unknown(f"np.{function.__name__}")
    return handler(*(as_type(n, array_type(KINDS["real"], n.type)) for n in nodes))


def _where(condition: Any, *choices: Any) -> Any:
    if len(choices) != 2:
        raise Error(
            "np.where with one argument has results of unknown shape, which cannot be compiled; use it with three"
        )
    test = node_of(content_of(condition))
    test = test if test.type.kind == "boolean" else test != 0
    a, b = (node_of(content_of(x)) for x in choices)
    if {a.type.kind, b.type.kind} == {"integer", "boolean"}:
        a, b = of_kind(a, "integer"), of_kind(b, "integer")
    if a.type.kind == b.type.kind and a.type.kind in ("integer", "boolean"):
        return (integers.where if a.type.kind == "integer" else integers.choose)(test, a, b)
    return ops.where(test, a, b)


def _select(conditions: Any, choices: Any, default: Any = 0) -> Any:
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        default = _where(condition, choice, default)
    return default


def _nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if not copy:
        raise Error("np.nan_to_num with copy=False cannot be compiled; assign the result")
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


def _array(x: Any, dtype: Any = None, *, ndmin: int = 0, copy: Any = True) -> Any:
    """A new array; where none is made, `calls.py` gives the array itself, or refuses `copy=False`."""
    found = node_of(content_of(x))
    if found.ndim < ndmin:
        found = FUNCTIONS[np.reshape](found, (1,) * (ndmin - found.ndim) + found.shape)
    return found if dtype is None else converted(found, dtype)


def _type_of_array(x: Any) -> Type:
    t = type_of(content_of(x))
    if t is None:
        raise Error(f"an array is expected here, and this is {describe(x)}")
    return t


def _like(value: Any) -> Callable[..., Any]:
    def made(x: Any, dtype: Any = None, *, shape: Any = None) -> Any:
        t = _type_of_array(x)
        kind = dtype or {"real": float, "integer": np.int64, "boolean": bool}[t.kind]
        kind_of(kind)
        wanted = t.shape if shape is None else _sizes(shape)
        return np.full(wanted, value, kind) if wanted else np.dtype(kind).type(value)

    return made


def _full(shape: Any, value: Any, dtype: Any = None) -> Any:
    sizes = _sizes(shape)
    if not holds_node(value):
        return np.full(sizes, value, dtype)
    node = node_of(value if dtype is None else converted(value, dtype))
    return of_kind(whole_arrays.broadcast_to(sizes)(node), node.type.kind)


def _sizes(shape: Any) -> tuple[int, ...]:
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    if holds_node(sizes):
        raise Error(_SHAPES)
    return tuple(map(int, sizes))


def _broadcast_arrays(*xs: Any) -> Any:
    nodes = [node_of(content_of(x)) for x in xs]
    shape = np.broadcast_shapes(*(n.shape for n in nodes))
    return tuple(_full(shape, n) for n in nodes)


def _full_like(x: Any, value: Any, dtype: Any = None, *, shape: Any = None) -> Any:
    t = _type_of_array(x)
    kind = dtype or {"real": float, "integer": np.int64, "boolean": bool}[t.kind]
    kind_of(kind)
    return _full(t.shape if shape is None else shape, converted(value, kind))


_SHAPES = (
    "the shape of an array must be known when the function is compiled, and this one depends on a number that is known "
    "only as it runs"
)


def _unknown_shape(*_: Any, **__: Any) -> Any:
    raise Error(_SHAPES)


def _unknown_length(*_: Any, **__: Any) -> Any:
    raise Error(
        "how many elements this finds is known only as the function runs, and shapes must be known when it is "
        "compiled; use np.where(mask, x, 0.0), or np.count_nonzero for their number"
    )


def _reduced_truth(every: bool) -> Callable[..., Any]:
    def made(x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        node = node_of(content_of(x))
        test = node if node.type.kind == "boolean" else node != 0
        counted = as_type(test, array_type(KINDS["real"], test.type))
        if not counted.shape:
            return test
        if 0 in counted.shape:  # empty: numpy computes the shape of the result
            return (np.all if every else np.any)(np.full(counted.shape, every), axis, keepdims=keepdims)
        return FUNCTIONS[np.min if every else np.max](counted, axis, keepdims=keepdims) > 0.5

    return made


def _arg_extreme(largest: bool) -> Callable[..., Any]:
    def made(x: Any, axis: Any = None) -> Any:
        node = node_of(content_of(x))
        node = as_type(node, array_type(KINDS["real"], node.type))
        if axis is None:
            node, axis = FUNCTIONS[np.ravel](node), 0
        axis = axis % node.ndim
        won = reductions.winners(largest, (axis,))(node)
        number = np.arange(node.shape[axis], dtype=float).reshape(-1, *(1,) * (node.ndim - axis - 1))
        return integers.to_integer(FUNCTIONS[np.sum](ops.where(won, number, 0.0), axis))

    return made


def _round(x: Any, decimals: int = 0) -> Any:
    scale = 10.0 ** abs(decimals)
    if decimals < 0:
        return ops.rint(x / scale) * scale
    return ops.rint(x * scale) / scale if decimals else ops.rint(x)


def _argsort(x: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None, descending: Any = None) -> Any:
    falls = is_descending(kind=kind, stable=stable, descending=descending)
    node = node_of(content_of(x))
    if axis is None:
        node, axis = FUNCTIONS[np.ravel](node), 0
    if falls:  # equal ones stay in their order, and NaN comes last; whole numbers fall as their complements rise
        node = -node if node.type.kind == "real" else inverted(node)
    return whole_arrays.argsort(axis_of(axis, node.ndim))(node)


def _sort(x: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None, descending: Any = None) -> Any:
    node = node_of(content_of(x))
    if axis is None:
        node, axis = FUNCTIONS[np.ravel](node), 0
    if not is_descending(kind=kind, stable=stable, descending=descending):
        return whole_arrays.sort(axis_of(axis, node.ndim))(node)
    return FUNCTIONS[np.take_along_axis](node, _argsort(node, axis, descending=True), axis)


def _isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    x, y = (node_of(content_of(part)) for part in (a, b))
    near = (abs(x - y) <= abs(y) * rtol + atol) & (abs(y) < np.inf) | (x == y)
    return near | ((x != x) & (y != y)) if equal_nan else near


def _allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    return np.all(_isclose(a, b, rtol, atol, equal_nan))


def _array_equal(a: Any, b: Any, equal_nan: bool = False) -> Any:
    x, y = (node_of(content_of(part)) for part in (a, b))
    if x.shape != y.shape:
        return False
    same = x == y
    return np.all(same | ((x != x) & (y != y)) if equal_nan else same)


def _count_nonzero(x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    node = node_of(content_of(x))
    return np.sum(node if node.type.kind == "boolean" else node != 0, axis, keepdims=keepdims)


def _isin(x: Any, among: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None) -> Any:
    if kind not in (None, "sort", "table"):  # ways to the same answer
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    node, others = node_of(content_of(x)), np.ravel(node_of(content_of(among)))
    found = np.any(np.expand_dims(node, -1) == others, axis=-1)
    return ~found if invert else found


def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Binary search, for all values at once, in as many steps as the length has binary digits. NaN sorts last."""
    given, x = node_of(content_of(a)), node_of(content_of(v))
    ordered = given if sorter is None else given[content_of(sorter)]
    n = ordered.shape[0]
    found: Any = node_of(np.zeros(x.shape, np.int64) if x.shape else 0)
    for step in (2**k for k in reversed(range(n.bit_length()))):
        place = found + step
        here = ordered[np.minimum(place, n) - 1]
        before = (here < x) | ((x != x) & (here == here)) if side == "left" else (here <= x) | (x != x)
        found = _where((place <= n) & before, place, found)
    return found


def _digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """By `searchsorted`; of descending bins on their reverse, as in numpy."""
    edges = node_of(content_of(bins))
    side = "left" if right else "right"
    n = edges.shape[0]
    if n < 2:
        return _searchsorted(edges, x, side)
    falling = edges[0] > edges[n - 1]
    return _where(falling, n - _searchsorted(np.flip(edges), x, side), _searchsorted(edges, x, side))


def _argpartition(x: Any, kth: Any, axis: Any = -1, kind: Any = "introselect") -> Any:
    """Sorted, which is a partition at every position."""
    np.argpartition(np.zeros(node_of(content_of(x)).shape, np.int8), kth, axis, kind)  # raises where numpy does
    return _argsort(x, axis)


ON_NODES: dict[Any, Callable[..., Any]] = {
    np.digitize: _digitize,
    np.argpartition: _argpartition,
    np.where: _where,
    np.select: _select,
    np.nan_to_num: _nan_to_num,
    np.take: _take,
    np.array: _array,
    np.asarray: _array,
    np.asanyarray: _array,
    np.ascontiguousarray: lambda x, dtype=None: np.atleast_1d(_array(x, dtype)),
    np.isclose: _isclose,
    np.allclose: _allclose,
    np.array_equal: _array_equal,
    np.count_nonzero: _count_nonzero,
    np.isin: _isin,
    np.searchsorted: _searchsorted,
    np.nonzero: _unknown_length,
    np.flatnonzero: _unknown_length,
    np.argwhere: _unknown_length,
    np.unique: _unknown_length,
    np.float64: lambda x=0.0: node_of(content_of(x)) * 1.0,
    np.int64: lambda x=0: converted(node_of(content_of(x)), np.int64),
    np.bool_: lambda x=False: converted(node_of(content_of(x)), np.bool_),
    np.zeros_like: _like(0),
    np.ones_like: _like(1),
    np.empty_like: _like(0),
    np.imag: lambda x: _like(0)(x),
    np.full: _full,
    np.broadcast_arrays: _broadcast_arrays,
    np.full_like: _full_like,
    np.zeros: _unknown_shape,
    np.ones: _unknown_shape,
    np.empty: _unknown_shape,
    np.eye: _unknown_shape,
    np.identity: _unknown_shape,
    np.arange: _unknown_shape,
    np.shape: lambda x: getattr(content_of(x), "shape", ()),
    np.isscalar: lambda x: not getattr(content_of(x), "shape", ()),
    np.ndim: lambda x: len(getattr(content_of(x), "shape", ())),
    np.size: lambda x: node_of(content_of(x)).size,
    np.all: _reduced_truth(True),
    np.any: _reduced_truth(False),
    np.argmax: _arg_extreme(True),
    np.argmin: _arg_extreme(False),
    np.argsort: _argsort,
    np.sort: _sort,
    np.round: _round,
    np.around: _round,
}
