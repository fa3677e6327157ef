"""Arrays while a function is specialised: indexing, attributes, methods, and numpy's functions.

Where everything is known numpy computes. Elsewhere the same handlers make nodes that differentiate numpy's functions
for numbers (`functions/numpy_functions.py`); here is what those leave to numpy because it carries no derivative.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import Error
from ...graph import Node, integers, places
from ...graph import arrays as whole_arrays
from ...graph import operations as ops
from ...graph.node import constant
from ...graph.operation import Operation, apply
from ...graph.types import KINDS as _KIND
from ...graph.types import Type
from .. import special
from ..numpy_functions import FUNCTIONS, TAKES
from ..numpy_protocol import COMPOSED, UFUNCS, _check_options, _name, _special, _unknown
from .specialise import KINDS, Specialiser
from .values import (
    Array,
    Items,
    List,
    Made,
    as_type,
    describe,
    known,
    node_of,
    type_of,
    unwrapped,
    wrapped,
)

FOREIGN = "it belongs to whoever made the function; change a copy of it"


def holds_node(x: Any) -> bool:
    """Whether there is a node in something without identities."""
    if isinstance(x, Node):
        return True
    if isinstance(x, tuple | list):
        return any(map(holds_node, x))
    if isinstance(x, slice):
        return holds_node((x.start, x.stop, x.step))
    return isinstance(x, dict) and any(map(holds_node, x.values()))


# -- making ------------------------------------------------------------------------------------------------------------


def stacked(parts: Sequence[Any]) -> Any:
    """An array of numbers, or arrays of one shape, along a new first axis: what numpy holds or a node."""
    contents = [unwrapped(p) for p in parts]
    if not any(map(holds_node, contents)):
        return np.array(contents)
    nodes = [node_of(_content(c)) for c in contents]
    shapes = {n.shape for n in nodes}
    if len(shapes) > 1:
        raise Error(f"arrays of different shapes cannot stand in one array: {', '.join(map(str, sorted(shapes)))}")
    kinds = {n.type.kind for n in nodes}
    if "real" in kinds or len(kinds) > 1:
        return FUNCTIONS[np.stack](nodes)
    dtype = np.int64 if kinds == {"integer"} else np.bool_
    found: Any = constant(np.zeros((len(nodes), *shapes.pop()), dtype))
    for i, n in enumerate(nodes):
        found = places.at_set(found, i, n)
    return found


def _content(x: Any) -> Any:
    """A nested list as an array; anything else as it is."""
    return stacked(list(x)) if isinstance(x, list | tuple) else x


def as_array(s: Specialiser, x: Any) -> Array | Any:
    """Something as an array, as `np.asarray` has it."""
    if isinstance(x, Array):
        return x
    if isinstance(x, Items):
        from .containers import items

        x = items(s, x)
    return wrapped(_content(unwrapped(x)) if holds_node(unwrapped(x)) else np.asarray(unwrapped(x)))


def fitted(x: Any, t: Type) -> Any:
    """The content of an array as the new content of another one of a type."""
    content = unwrapped(x)
    given = type_of(content)
    if given is None:
        raise Error(f"{describe(x)} cannot become part of an array")
    if given.shape != t.shape:
        raise Error(f"an array of shape {t.shape} cannot become one of shape {given.shape} in place")
    if given.kind != t.kind and not (t.kind == "real" or (t.kind == "integer" and given.kind == "boolean")):
        raise Error(f"{describe(x)} cannot be written into an array of another kind of number; convert it first")
    if isinstance(content, Node):
        return as_type(content, t)
    return np.asarray(content, {"real": float, "integer": np.int64, "boolean": bool}[t.kind])


# -- indexing ----------------------------------------------------------------------------------------------------------


def _index(index: Any) -> Any:
    """An index as numpy and the graph take it."""
    found = unwrapped(index)
    parts = found if isinstance(found, tuple) else (found,)
    out = [np.asarray(_content(p)) if isinstance(p, list) and not holds_node(p) else _content_of(p) for p in parts]
    return tuple(out) if isinstance(found, tuple) else out[0]


def _content_of(p: Any) -> Any:
    return stacked(p) if isinstance(p, list) else p


def _basic(index: Any) -> bool:
    """Whether an index makes a view: whole numbers and slices alone."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        p is None
        or p is Ellipsis
        or isinstance(p, slice | int)
        or (isinstance(p, Node) and not p.shape and p.type.kind == "integer")
        for p in parts
    )


def _look(content: Any, index: Any) -> Any:
    """`content[index]`, of what numpy holds or a node."""
    if not isinstance(content, Node) and not holds_node(index):
        return content[index]
    index = _without_masks(index, np.shape(content) if not isinstance(content, Node) else content.shape)
    return node_of(content)[index]


def _without_masks(index: Any, shape: tuple[int, ...]) -> Any:
    """Masks that are known as whole numbers."""
    parts = list(index) if isinstance(index, tuple) else [index]
    out: list[Any] = []
    for p in parts:
        if isinstance(p, np.ndarray) and p.dtype == bool:
            out.extend(np.nonzero(p))
        elif isinstance(p, Node) and p.type.kind == "boolean":
            raise Error(
                "how many elements a mask chooses is known only as the function runs, and shapes must be known when it "
                "is compiled; use np.where(mask, x, 0.0), or np.sum with it"
            )
        else:
            out.append(p)
    return tuple(out) if isinstance(index, tuple) or len(out) > 1 else out[0]


def at_index(s: Specialiser, x: Any, index: Any) -> Any:
    """`x[index]` of an array."""
    place = _index(index)
    content = unwrapped(x)
    found = _look(content, place)
    shape = found.shape if isinstance(found, Node) else np.shape(found)
    if not shape or not isinstance(x, Array) or not _basic(place):
        return wrapped(found)
    return Array(None, x.owner, x, lambda c: _look(c, place), place)


def placed(content: Any, index: Any, value: Any) -> Any:
    """The content of an array with something else at an index."""
    if not holds_node((content, index, value)):
        new = np.array(content)
        new[index] = value
        return new
    node = node_of(content)
    t = node.type
    if isinstance(index, Node) and index.type.kind == "boolean":
        return _masked(node, index, value)
    given = type_of(value)
    if given is None:
        raise Error(f"{describe(value)} cannot be written into an array")
    if given.kind != t.kind and t.kind != "real":
        raise Error(f"{describe(value)} cannot be written into {describe(content)}; convert one of them")
    z = as_type(value, _shaped(t, given))
    return places.at_set(node, _without_masks(index, node.shape), z)


def _shaped(kind: Type, shape: Type) -> Type:
    from ...graph.types import arrays

    return arrays(kind, shape.shape)


def _masked(node: Node, mask: Node, value: Any) -> Any:
    if mask.shape != node.shape or np.shape(unwrapped(value)) not in ((), node.shape):
        raise Error("only one number, or an array as large, can be written where a mask says that is not known yet")
    return ops.where(mask, value, node)


def set_index(s: Specialiser, x: Any, index: Any, value: Any) -> None:
    """`x[index] = value` of an array."""
    from .operators import store

    if not isinstance(x, Array):
        raise Error(f"this array cannot be changed: {FOREIGN}")
    content = _content(unwrapped(value))
    store(s, x, placed(x.read(), _index(index), content))


def add_index(s: Specialiser, x: Any, index: Any, value: Any, negative: bool) -> None:
    """`x[index] += value` and `x[index] -= value` of an array."""
    from .operators import binary, store

    if not isinstance(x, Array):
        raise Error(f"this array cannot be changed: {FOREIGN}")
    place, content, z = _index(index), x.read(), _content(unwrapped(value))
    t = type_of(content)
    real = t is not None and t.kind == "real" and type_of(z) is not None
    if not (real and _basic(place) and holds_node((content, place, z))):
        old = at_index(s, x, index)
        set_index(s, x, index, binary(s, "subtract" if negative else "add", old, value))
        return
    given = type_of(z)
    assert given is not None and t is not None
    z = as_type(z, _shaped(t, given))
    store(s, x, places.at_add(node_of(content), place, -z if negative else z))


# -- attributes and methods --------------------------------------------------------------------------------------------

_METHODS: dict[str, Any] = {
    name: getattr(np, name)
    for name in [
        "sum",
        "prod",
        "max",
        "min",
        "mean",
        "var",
        "std",
        "ptp",
        "cumsum",
        "cumprod",
        "dot",
        "clip",
        "trace",
        "diagonal",
        "repeat",
        "take",
        "ravel",
        "squeeze",
        "swapaxes",
        "argmax",
        "argmin",
        "argsort",
        "any",
        "all",
        "round",
        "compress",
        "searchsorted",
    ]
} | {"flatten": np.ravel, "conj": np.conjugate, "conjugate": np.conjugate}
_VIEWS = frozenset(
    {np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze, np.reshape, np.ravel, np.broadcast_to}
    | {np.diagonal, np.atleast_1d, np.atleast_2d, np.flip, np.rot90, np.fliplr, np.flipud}
)


def array_attribute(s: Specialiser, x: Any, name: str) -> Any:
    """`x.name` of an array or a number of the graph."""
    t = type_of(x)
    assert t is not None
    simple: dict[str, Callable[[], Any]] = {
        "shape": lambda: t.shape,
        "ndim": lambda: t.ndim,
        "size": lambda: t.size,
        "dtype": lambda: np.dtype({"real": "float64", "integer": "int64", "boolean": "bool"}[t.kind]),
        "T": lambda: numpy_call(s, np.transpose, [x], {}),
        "mT": lambda: numpy_call(s, np.swapaxes, [x, -1, -2], {}),
        "real": lambda: x,
        "flat": lambda: numpy_call(s, np.ravel, [x], {}),
    }
    if name in simple:
        return simple[name]()
    own = _OWN.get(name)
    if own is None and name in _METHODS:
        function = _METHODS[name]
        if name == "flatten":
            own = _flatten
        else:
            return Made(
                ("method", name),
                lambda s, held, given, named: numpy_call(s, function, [held[0], *given], dict(named)),
                (x,),
            )
    if own is None:
        raise Error(f"{describe(x)} has no {name} in a compiled function")
    run = own
    return Made(("method", name), lambda s, held, given, named: run(s, held[0], *given, **named), (x,))


def _flatten(s: Specialiser, x: Any, order: str = "C") -> Any:
    return wrapped(unwrapped(numpy_call(s, np.ravel, [x], {"order": order})))


def _copy(s: Specialiser, x: Any, order: str = "C") -> Any:
    return wrapped(unwrapped(x))


def _reshape(s: Specialiser, x: Any, *shape: Any, order: str = "C") -> Any:
    return numpy_call(s, np.reshape, [x, shape[0] if len(shape) == 1 else shape], {"order": order})


def _transpose(s: Specialiser, x: Any, *axes: Any) -> Any:
    if not axes or axes == (None,):
        return numpy_call(s, np.transpose, [x], {})
    return numpy_call(s, np.transpose, [x, axes[0] if isinstance(axes[0], tuple | List) else axes], {})


def _astype(s: Specialiser, x: Any, dtype: Any, **options: Any) -> Any:
    content = unwrapped(x)
    kind = {"f": "real", "i": "integer", "u": "integer", "b": "boolean"}.get(np.dtype(dtype).kind)
    if kind is None:
        raise Error(f"an array cannot become one of {np.dtype(dtype)} in a compiled function")
    if not isinstance(content, Node):
        return wrapped(np.asarray(content).astype(dtype))
    if kind == content.type.kind:
        return wrapped(content)
    if kind == "real":
        return wrapped(as_type(content, _shaped(_KIND[kind], content.type)))
    if kind == "boolean":
        return wrapped(content != 0)
    return wrapped((integers.count_true if content.type.kind == "boolean" else integers.to_integer)(content))


def _fill(s: Specialiser, x: Any, value: Any) -> None:
    set_index(s, x, Ellipsis, value)


def _item(s: Specialiser, x: Any, *index: Any) -> Any:
    t = type_of(x)
    assert t is not None
    if index:
        return at_index(s, x, index[0] if len(index) == 1 and t.ndim == 1 else index)
    if t.size != 1:
        raise Error("item() is of an array of one number")
    return at_index(s, x, (0,) * t.ndim) if t.ndim else x


def _tolist(s: Specialiser, x: Any) -> Any:
    from .containers import items

    t = type_of(x)
    if t is None or not t.shape:
        return x
    return List(tuple(_tolist(s, part) for part in items(s, x)))


_OWN: dict[str, Callable[..., Any]] = {
    "copy": _copy,
    "reshape": _reshape,
    "transpose": _transpose,
    "astype": _astype,
    "fill": _fill,
    "item": _item,
    "tolist": _tolist,
}


# -- numpy's functions -------------------------------------------------------------------------------------------------


def numpy_call(s: Specialiser, function: Any, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
    """A function of numpy. Raises Error for those that have no handler, where something is not known yet."""
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


_SAME = frozenset({np.asarray, np.asanyarray, np.ascontiguousarray})


def _spelled(s: Specialiser, x: Any) -> Any:
    """What is gone over as a tuple."""
    if isinstance(x, Items) and not (x.kind == "range" and known(x)):
        from .containers import items

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


Node.__array_function__ = _array_function  # type: ignore[method-assign]
Node.__array_ufunc__ = _array_ufunc  # type: ignore[method-assign]


def _in_graph(function: Any, given: list[Any], options: dict[str, Any]) -> Any:
    own = _HERE.get(function)
    if own is not None:
        return own(*given, **options)
    if isinstance(function, np.ufunc):
        return _ufunc(function, given, options)
    handler = FUNCTIONS.get(function)
    if handler is not None:
        takes = TAKES[function]
        _check_options(_name(function), {k: v for k, v in options.items() if k not in takes})
        options = {k: v for k, v in options.items() if k in takes and v is not np._NoValue}
        if function not in _OF_MANY:
            given = [_content(x) if isinstance(x, list) and holds_node(x) else x for x in given]
        return handler(*given, **options)
    raise _unknown(_name(function))


_OF_MANY = frozenset(
    {np.stack, np.concatenate, np.vstack, np.hstack, np.dstack, np.column_stack, np.select, np.einsum}
    | {np.linalg.multi_dot}
)

_OPERATORS: dict[Any, Callable[[Any, Any], Any]] = {
    np.add: lambda a, b: a + b,
    np.subtract: lambda a, b: a - b,
    np.multiply: lambda a, b: a * b,
    np.floor_divide: lambda a, b: a // b,
    np.less: lambda a, b: a < b,
    np.less_equal: lambda a, b: a <= b,
    np.greater: lambda a, b: a > b,
    np.greater_equal: lambda a, b: a >= b,
    np.equal: lambda a, b: a == b,
    np.not_equal: lambda a, b: a != b,
    np.remainder: lambda a, b: a % b,
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
    _check_options(f"np.{function.__name__}", options)
    nodes = [node_of(_content(x)) for x in given]
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
    handler = COMPOSED.get(function) or _special(function)
    if handler is None:
        raise _unknown(f"np.{function.__name__}")
    return handler(*nodes)


def _where(condition: Any, *choices: Any) -> Any:
    if len(choices) != 2:
        raise Error("np.where with one argument gives an array whose shape is not known; use it with three")
    test = node_of(_content(condition))
    test = test if test.type.kind == "boolean" else test != 0
    a, b = (node_of(_content(x)) for x in choices)
    if a.type.kind == b.type.kind and a.type.kind in ("integer", "boolean"):
        return (integers.where if a.type.kind == "integer" else integers.choose)(test, a, b)
    return ops.where(test, a, b)


def _array(x: Any, dtype: Any = None, **options: Any) -> Any:
    found = node_of(_content(x))
    if dtype is not None:
        return unwrapped(_astype(None, wrapped(found), dtype))  # type: ignore[arg-type]
    return found


def _like(value: Any) -> Callable[..., Any]:
    def made(x: Any, dtype: Any = None, **options: Any) -> Any:
        t = type_of(_content(x))
        assert t is not None
        kind = dtype or {"real": float, "integer": np.int64, "boolean": bool}[t.kind]
        return np.full(t.shape, value, kind) if t.shape else kind(value)

    return made


def _full(shape: Any, value: Any, dtype: Any = None) -> Any:
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    if holds_node(sizes):
        raise Error(_SHAPES)
    node = node_of(value)
    return whole_arrays.broadcast_to(tuple(map(int, sizes)))(node)


_SHAPES = (
    "the shape of an array must be known when the function is compiled, and this one depends on a number that is known "
    "only as it runs"
)


def _no_shape(*_: Any, **__: Any) -> Any:
    raise Error(_SHAPES)


def _reduced_truth(every: bool) -> Callable[..., Any]:
    def made(x: Any, axis: Any = None, **options: Any) -> Any:
        node = node_of(_content(x))
        test = node if node.type.kind == "boolean" else node != 0
        counted = as_type(test, _shaped(_KIND["real"], test.type))
        if not counted.shape:
            return test
        return FUNCTIONS[np.min if every else np.max](counted, axis, **options) > 0.5

    return made


def _winner(largest: bool) -> Callable[..., Any]:
    def made(x: Any, axis: Any = None) -> Any:
        node = node_of(_content(x))
        node = as_type(node, _shaped(_KIND["real"], node.type))
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
    node = node_of(_content(x))
    return whole_arrays.argsort(axis % node.ndim)(node)


def _linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True) -> Any:
    steps = np.linspace(0.0, 1.0, num, endpoint=endpoint)
    return start + steps * (node_of(stop) - start)


_HERE: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.array: _array,
    np.asarray: _array,
    np.asanyarray: _array,
    np.float64: lambda x: node_of(x) * 1.0,
    np.zeros_like: _like(0),
    np.ones_like: _like(1),
    np.empty_like: _like(0),
    np.full: _full,
    np.full_like: lambda x, value, **_: _full(np.shape(x) if not isinstance(x, Node) else x.shape, value),
    np.zeros: _no_shape,
    np.ones: _no_shape,
    np.empty: _no_shape,
    np.eye: _no_shape,
    np.identity: _no_shape,
    np.arange: _no_shape,
    np.linspace: _linspace,
    np.shape: lambda x: getattr(_content(x), "shape", ()),
    np.ndim: lambda x: len(getattr(_content(x), "shape", ())),
    np.size: lambda x: node_of(_content(x)).size,
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

    if not holds_node([unwrapped(x) for x in given]):
        return wrapped(method(*map(unwrapped, given), **named))
    table = {"reduce": REDUCTIONS, "accumulate": ACCUMULATIONS}.get(method.__name__, {})
    if ufunc not in table:
        raise Error(f"np.{ufunc.__name__}.{method.__name__} cannot be compiled")
    return numpy_call(s, table[ufunc], given, {"axis": 0} | named)


KINDS.append(_of_numpy)
