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
from ...graph.arrays import shape_of
from ...graph.operation import Operation, apply
from ...graph.types import KINDS, Type
from .. import exponentials, special
from ..drop_in import join_along
from ..numpy_functions import FUNCTIONS
from ..numpy_missing import unknown
from ..numpy_protocol import BY_UFUNC, CHOOSING, COMPOSED, UFUNCS, check_options, name_of, of_scipy, spelled
from ..numpy_ufuncs import METHODS
from .arrays import as_array, at_index, content_of, converted, fitted, holds_node, set_index, shaped
from .exact import EACH, kind_of_result, of_kind, of_whole
from .known_arguments import check_known
from .masked import none_inside
from .operators import arithmetic, bits, inverted, store
from .specialise import Specialiser
from .ufunc_at import at
from .values import Array, Items, List, as_type, describe, known, node_of, type_of, unwrapped, wrapped
from .views import VIEWS, einsum_view, meshgrid_views, view
from .walks import items


def numpy_call(s: Specialiser, function: Any, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
    """A function of numpy. Raises Error for those that have no handler, where something is not known yet."""
    if function in _WRITE and len(arguments) == 2 and not named:
        return _WRITE[function](s, *arguments)
    if function in _CHANGE:
        raise Error(f"{name_of(function)} changes an array in place; write x[index] = value, or use np.where")
    out = named.get("out")
    named = {k: v for k, v in named.items() if k != "out"}
    if out is not None:
        return _into(s, out, numpy_call(s, function, arguments, named))
    if function in _SAME and len(arguments) == 1 and isinstance(arguments[0], Array) and not named:
        return arguments[0]
    arguments = [_spelled(s, a) for a in arguments]
    given = [unwrapped(a) for a in arguments]
    options = {key: unwrapped(_spelled(s, value)) for key, value in named.items()}
    if holds_node(given) and "linalg" in (getattr(function, "__module__", None) or ""):
        s.may_raise(np.linalg.LinAlgError)
    with np.errstate(all="ignore"):
        result = _computed(function, given, options)
    first = arguments[0] if arguments else None
    if function is np.einsum and (seen := einsum_view(arguments, options, _computed)) is not None:
        return seen
    if function is np.meshgrid and options.get("copy", True) is False:
        return meshgrid_views(arguments, result, _computed, options)
    if isinstance(first, Array):
        if function in VIEWS and not isinstance(result, tuple | list):
            seen = view(function, first, given[1:], options, _computed)
            if seen is not None:
                return seen
        if function in _SPLITS:
            axis = _axis_of_pieces(function, given, options, len(shape_of(first.read())))
            return List(tuple(_pieces(s, first, axis, [shape_of(x)[axis] for x in result])))
    made = wrapped(result)
    if function in _MADE and not isinstance(made, Array) and type_of(made) is not None:
        return Array(node_of(made))
    if isinstance(made, Array):
        if function in (np.reshape, np.ravel, np.full) or (function is np.array and isinstance(first, List | tuple)):
            made.ordered = True
        elif function in _LIKE and isinstance(given[0], Node):
            made.ordered = False  # as what it is like, which may lie otherwise
    return made


_MADE: frozenset[Any] = frozenset([np.array, np.asarray, np.asanyarray, np.copy, np.zeros, np.ones, np.full])
"""Functions that make an array of a single number, too: one without axes."""


def _into(s: Specialiser, out: Any, result: Any) -> Any:
    """`out=`: the result, written into an array that is there already."""
    into = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    t = type_of(into)
    if not isinstance(into, Array) or t is None:
        raise Error("out= wants one array; assign the result")
    store(s, into, fitted(result, t))
    return into


def _fill_diagonal(s: Specialiser, x: Any, value: Any) -> None:
    t = type_of(x)
    if t is None or t.ndim != 2:
        raise Error("np.fill_diagonal of anything but a matrix cannot be compiled; write x[i, i] = value")
    places = np.arange(min(t.shape))
    set_index(s, x, (places, places), value)


_WRITE: dict[Any, Callable[..., None]] = {
    np.fill_diagonal: _fill_diagonal,
    np.copyto: lambda s, x, value: set_index(s, x, Ellipsis, value),
}


def _outer(s: Specialiser, ufunc: Any, given: list[Any], named: dict[str, Any]) -> Any:
    a, b = given
    axes = len(shape_of(unwrapped(b)))
    first = at_index(s, a, (Ellipsis, *(None,) * axes)) if type_of(a) is not None else a
    return numpy_call(s, ufunc, [first, b], named)


def flat(x: Array) -> Any:
    """All elements of an array, which are written through wherever they lie."""
    return view(np.ravel, x, [], {}, _computed, always=True)


_LIKE = frozenset({np.zeros_like, np.ones_like, np.empty_like, np.full_like})
_SPLITS = frozenset({np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit})


def _axis_of_pieces(function: Any, given: list[Any], options: dict[str, Any], ndim: int) -> int:
    """The axis that a function splits an array along."""
    if function in (np.hsplit, np.vsplit, np.dsplit):
        return 2 if function is np.dsplit else int(function is np.hsplit and ndim > 1)
    axis: int = options.get("axis", given[2] if len(given) > 2 else 0)
    return axis % ndim


def _pieces(s: Specialiser, x: Array, axis: int, lengths: list[int]) -> Iterator[Any]:
    """The pieces that an array is split into, which are views of it."""
    start = 0
    for length in lengths:
        yield at_index(s, x, (*(slice(None),) * axis, slice(start, start + length)))
        start += length


_CHANGE = frozenset({np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis})
_SAME = frozenset({np.asarray, np.asanyarray, np.ascontiguousarray})  # of arrays


def _spelled(s: Specialiser, x: Any) -> Any:
    """What is gone over as a tuple."""
    if isinstance(x, Items) and not (x.kind == "range" and known(x)):
        return items(s, x)
    return x


_inside = threading.local()


def _computed(function: Any, given: list[Any], options: dict[str, Any]) -> Any:
    """By numpy, if all is known, or in the graph."""
    if not holds_node(given) and not holds_node(options):
        return function(*given, **options)
    return _computed_by(lambda: _in_graph(function, given, options))


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

    none_inside((*given, *options.values()))
    depth: int = getattr(_inside, "depth", 0)
    if depth > _DEEPEST:
        raise Error(f"{name_of(function)} cannot be compiled with such arguments")
    _inside.depth = depth + 1
    try:
        found = _of_reals(function, given, options)
        kind = kind_of_result(function, given, options)
    finally:
        _inside.depth = depth
    if function in EACH and isinstance(found, tuple):  # several arrays, each of its own kind
        return tuple(_of_own_kind(function, part, x) for part, x in zip(found, given, strict=True))
    return found if kind is None else of_kind(found, kind)


def _of_own_kind(function: Any, part: Any, x: Any) -> Any:
    t = type_of(content_of(x))
    if not holds_node(x) and function is not np.meshgrid:
        return function(x)
    if t is None:
        return part
    return of_kind(part, t.kind) if isinstance(part, Node) else np.asarray(part).astype(_DTYPES[t.kind])


_DTYPES: dict[str, Any] = {"real": np.float64, "integer": np.int64, "boolean": np.bool_}
_DEEPEST = 100  # handlers that are made of numpy's functions again, inside of each other


def _of_reals(function: Any, given: list[Any], options: dict[str, Any]) -> Any:
    own = HERE.get(function)
    if own is not None:
        check_known(function, own, given, options)
        return own(*given, **options)
    if isinstance(function, np.ufunc):
        return _ufunc(function, given, options)
    handler = FUNCTIONS.get(function)
    if handler is not None:
        if function in BY_UFUNC and not CHOOSING.isdisjoint(options):
            return METHODS["reduce"](BY_UFUNC[function], *given, **({"axis": None} | options))
        arguments, options = spelled(function, given, options)
        given = list(arguments)
        check_known(function, handler, given, options)
        made = _arrays_of if function in _OF_MANY else _array_of
        if function is not np.block:  # whose lists are rows
            given = [made(x) for x in given]
            options = {name: made(x) for name, x in options.items()}
        return handler(*given, **options)
    raise unknown(name_of(function))


def _array_of(x: Any) -> Any:
    return content_of(x) if isinstance(x, list) and holds_node(x) else x


def _arrays_of(x: Any) -> Any:
    """A list of arrays, each of which may be a list of numbers."""
    if not isinstance(x, list | tuple) or not holds_node(x):
        return x
    return [content_of(part) if holds_node(part) else part for part in x]


_OF_MANY = frozenset(
    {np.stack, np.concatenate, np.vstack, np.hstack, np.dstack, np.column_stack, np.select, np.choose, np.gradient}
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


def _ufunc(function: Any, given: list[Any], options: dict[str, Any]) -> Any:
    check_options(f"np.{function.__name__}", options)
    nodes = [node_of(content_of(x)) for x in given]
    if function in _OPERATORS:
        return _OPERATORS[function](*nodes)
    found = of_whole(function, nodes)
    if found is not None:
        return found
    if function in _LOOKS:
        return _LOOKS[function](*nodes)
    if function in _TRUTHS:
        return _TRUTHS[function](*(n if n.type.kind == "boolean" else n != 0 for n in nodes))
    found = UFUNCS.get(function)
    if found is not None:
        return found(*nodes)
    handler = COMPOSED.get(function) or of_scipy(function)
    if handler is None:
        raise unknown(f"np.{function.__name__}")
    return handler(*(as_type(n, shaped(KINDS["real"], n.type)) for n in nodes))


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


def _select(conditions: Any, choices: Any, default: Any = 0) -> Any:
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        default = _where(condition, choice, default)
    return default


def _nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if not copy:
        raise Error("copy=False cannot be compiled; assign the result")
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


def _array(x: Any, dtype: Any = None, *, ndmin: int = 0, **options: Any) -> Any:
    found = node_of(content_of(x))
    if found.ndim < ndmin:
        found = FUNCTIONS[np.reshape](found, (1,) * (ndmin - found.ndim) + found.shape)
    return found if dtype is None else converted(found, dtype)


def _type_of_array(x: Any) -> Type:
    t = type_of(content_of(x))
    if t is None:
        raise Error(f"{describe(x)} is no array")
    return t


def _like(value: Any) -> Callable[..., Any]:
    def made(x: Any, dtype: Any = None, **options: Any) -> Any:
        t = _type_of_array(x)
        kind = dtype or {"real": float, "integer": np.int64, "boolean": bool}[t.kind]
        return np.full(t.shape, value, kind) if t.shape else kind(value)

    return made


def _full(shape: Any, value: Any, dtype: Any = None) -> Any:
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    if holds_node(sizes):
        raise Error(_SHAPES)
    if not holds_node(value):
        return np.full(tuple(map(int, sizes)), value)
    node = node_of(value if dtype is None else converted(value, dtype))
    return of_kind(whole_arrays.broadcast_to(tuple(map(int, sizes)))(node), node.type.kind)


def _broadcast_arrays(*xs: Any, **options: Any) -> Any:
    nodes = [node_of(content_of(x)) for x in xs]
    shape = np.broadcast_shapes(*(n.shape for n in nodes))
    return tuple(_full(shape, n) for n in nodes)


def _full_like(x: Any, value: Any, dtype: Any = None, **options: Any) -> Any:
    t = _type_of_array(x)
    return _full(t.shape, converted(value, dtype or {"real": float, "integer": np.int64, "boolean": bool}[t.kind]))


_SHAPES = (
    "the shape of an array must be known when the function is compiled, and this one depends on a number that is known "
    "only as it runs"
)


def _no_shape(*_: Any, **__: Any) -> Any:
    raise Error(_SHAPES)


def _uncounted(*_: Any, **__: Any) -> Any:
    raise Error(
        "how many places this finds is known only as the function runs, and shapes must be known when it is compiled; "
        "use np.where(mask, x, 0.0), or np.count_nonzero for their number"
    )


def _reduced_truth(every: bool) -> Callable[..., Any]:
    def made(x: Any, axis: Any = None, **options: Any) -> Any:
        node = node_of(content_of(x))
        test = node if node.type.kind == "boolean" else node != 0
        counted = as_type(test, shaped(KINDS["real"], test.type))
        if not counted.shape:
            return test
        if 0 in counted.shape:  # all of nothing, and any of nothing: numpy knows their shape
            return (np.all if every else np.any)(np.full(counted.shape, every), axis, **options)
        return FUNCTIONS[np.min if every else np.max](counted, axis, **options) > 0.5

    return made


def _winner(largest: bool) -> Callable[..., Any]:
    def made(x: Any, axis: Any = None) -> Any:
        node = node_of(content_of(x))
        node = as_type(node, shaped(KINDS["real"], node.type))
        if axis is None:
            node, axis = FUNCTIONS[np.ravel](node), 0
        axis = axis % node.ndim
        won = whole_arrays.winners(largest, (axis,))(node)
        number = np.arange(node.shape[axis], dtype=float).reshape(-1, *(1,) * (node.ndim - axis - 1))
        return integers.to_integer(FUNCTIONS[np.sum](ops.where(won, number, 0.0), axis))

    return made


def _round(x: Any, decimals: int = 0, **options: Any) -> Any:
    scale = 10.0 ** abs(decimals)
    if decimals < 0:
        return ops.rint(x / scale) * scale
    return ops.rint(x * scale) / scale if decimals else ops.rint(x)


def _argsort(x: Any, axis: Any = -1, **options: Any) -> Any:
    node = node_of(content_of(x))
    if axis is None:
        return _argsort(FUNCTIONS[np.ravel](node), 0)
    return whole_arrays.argsort(axis % node.ndim)(node)


def _isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    x, y = (node_of(content_of(part)) for part in (a, b))
    near = (abs(x - y) <= abs(y) * rtol + atol) & (abs(y) < np.inf) | (x == y)
    return near | ((x != x) & (y != y)) if equal_nan else near


def _array_equal(a: Any, b: Any, equal_nan: bool = False) -> Any:
    x, y = (node_of(content_of(part)) for part in (a, b))
    if x.shape != y.shape:
        return False
    same = x == y
    return np.all(same | ((x != x) & (y != y)) if equal_nan else same)


def _count_nonzero(x: Any, axis: Any = None, **options: Any) -> Any:
    node = node_of(content_of(x))
    return np.sum(node if node.type.kind == "boolean" else node != 0, axis, **options)


def _isin(x: Any, among: Any, assume_unique: bool = False, invert: bool = False, **options: Any) -> Any:
    check_options("np.isin", {k: v for k, v in options.items() if k != "kind"})
    node, others = node_of(content_of(x)), np.ravel(node_of(content_of(among)))
    found = np.any(np.expand_dims(node, -1) == others, axis=-1)
    return ~found if invert else found


def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """By halves: as many rounds as the length has binary digits, for all places at once. NaN stands last."""
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
    """Where bins descend the places are counted from their end, as numpy does it."""
    edges = node_of(content_of(bins))
    side = "left" if right else "right"
    n = edges.shape[0]
    if n < 2:
        return _searchsorted(edges, x, side)
    falling = edges[0] > edges[n - 1]
    return _where(falling, n - _searchsorted(np.flip(edges), x, side), _searchsorted(edges, x, side))


def _argpartition(x: Any, kth: Any, axis: Any = -1, **options: Any) -> Any:
    return _argsort(x, axis)


HERE: dict[Any, Callable[..., Any]] = {
    np.digitize: _digitize,
    np.argpartition: _argpartition,
    np.where: _where,
    np.select: _select,
    np.nan_to_num: _nan_to_num,
    np.take: _take,
    np.array: _array,
    np.asarray: _array,
    np.asanyarray: _array,
    np.ascontiguousarray: lambda x, dtype=None, **options: np.atleast_1d(_array(x, dtype)),
    np.isclose: _isclose,
    np.allclose: lambda *given, **options: np.all(_isclose(*given, **options)),
    np.array_equal: _array_equal,
    np.count_nonzero: _count_nonzero,
    np.isin: _isin,
    np.searchsorted: _searchsorted,
    np.nonzero: _uncounted,
    np.flatnonzero: _uncounted,
    np.argwhere: _uncounted,
    np.unique: _uncounted,
    np.fix: lambda x: np.trunc(x),
    np.float64: lambda x=0.0: node_of(content_of(x)) * 1.0,
    np.int64: lambda x=0: converted(node_of(content_of(x)), np.int64),
    np.bool_: lambda x=False: converted(node_of(content_of(x)), np.bool_),
    np.zeros_like: _like(0),
    np.ones_like: _like(1),
    np.empty_like: _like(0),
    np.imag: _like(0),
    np.full: _full,
    np.broadcast_arrays: _broadcast_arrays,
    np.full_like: _full_like,
    np.zeros: _no_shape,
    np.ones: _no_shape,
    np.empty: _no_shape,
    np.eye: _no_shape,
    np.identity: _no_shape,
    np.arange: _no_shape,
    np.shape: lambda x: getattr(content_of(x), "shape", ()),
    np.isscalar: lambda x: not getattr(content_of(x), "shape", ()),
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


def of_numpy(s: Specialiser, function: Any) -> Callable[..., Any] | None:
    """The handler of a function of numpy."""
    if isinstance(function, Operation):
        return lambda s, given, named: wrapped(apply(function, *map(unwrapped, given)))
    module = getattr(function, "__module__", None) or ""
    owner = getattr(function, "__self__", None)
    if module.startswith("numpy.random") or type(owner).__module__.startswith("numpy.random"):
        raise s.error("random numbers in a compiled function would be the same in every call; make them an argument")
    if module in (special.__name__, exponentials.__name__):
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
    return wrapped(
        _computed_by(lambda: function(*map(unwrapped, given), **{k: unwrapped(v) for k, v in named.items()}))
    )


def joined_along(original: Any, key: Any) -> Any:
    """`np.r_[key]`."""
    return _of_special(join_along, [original, key], {}) if holds_node(key) else wrapped(original[key])


def _method_of_ufunc(s: Specialiser, ufunc: Any, method: Any, given: list[Any], named: dict[str, Any]) -> Any:
    """`np.add.reduce` and its kin."""
    if method.__name__ == "at":
        return at(s, ufunc, given)
    if not holds_node([unwrapped(x) for x in (*given, *named.values())]):
        return wrapped(method(*map(unwrapped, given), **{k: unwrapped(v) for k, v in named.items()}))
    if method.__name__ == "outer" and len(given) == 2:
        return _outer(s, ufunc, [as_array(s, x) for x in given], named)
    arrays_ = [content_of(unwrapped(_spelled(s, x))) for x in given]
    options = {name: unwrapped(value) for name, value in named.items()}
    check_options(f"np.{ufunc.__name__}.{method.__name__}", {k: v for k, v in options.items() if k in _REFUSED})
    options = {k: v for k, v in options.items() if k not in _REFUSED}
    return wrapped(_computed_by(lambda: METHODS[method.__name__](ufunc, *arrays_, **options)))


_REFUSED = frozenset({"dtype", "out"})


def _computed_by(compute: Callable[[], Any]) -> Any:
    """What a function gives in which numpy's functions make nodes."""
    before = getattr(_inside, "is_so", False)
    _inside.is_so = True
    try:
        with np.errstate(all="ignore"):
            return compute()
    finally:
        _inside.is_so = before
