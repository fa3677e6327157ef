"""Calls of numpy's functions while a function is specialised: by numpy if all arguments are static, or in the graph.

In the graph, the handlers that eager differentiation has for numpy's functions (`eager/numpy/functions.py`) are run on
nodes; those without derivatives are in `nodes.py`. Here is the dispatch, `out=`, functions that write to an array or
return a view, and the conversion of results to their kind; no function of numpy by itself.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...eager.names import special
from ...eager.names.numpy_names import join_along
from ...eager.numpy import exponentials
from ...eager.numpy.functions import FUNCTIONS, METHODS, SUCCESSORS, bound, check_options, name_of, out_by_name
from ...eager.numpy.missing import unknown
from ...eager.numpy.protocol import BY_UFUNC, CHOOSING, with_axis
from ...errors import Error, counted
from ...ir import Node
from ...ir.node import numpy_by
from ...ir.operation import Operation, apply
from ...ir.ops.arrays import shape_of
from ..evaluate.arrays import as_array, at_index, cast_to, content_of, converted, holds_node, of_kind, set_index, store
from ..evaluate.iteration import items
from ..evaluate.masks import refuse_masked
from ..evaluate.specialiser import Specialiser
from ..evaluate.values import Array, Iteration, List, known, node_of, type_of, unwrapped, wrapped
from .known_arguments import check_known
from .nodes import ON_NODES, ufunc_of_nodes
from .result_kinds import EACH, kind_of_result
from .ufunc_at import at
from .views import VIEWS, einsum_view, meshgrid_views, view


def numpy_call(s: Specialiser, function: Any, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
    """A call of a function of numpy. Raises Error where an argument is dynamic and the function has no handler."""
    function = SUCCESSORS.get(function, function)
    if function in _WRITE and len(arguments) == 2 and not named:
        return _WRITE[function](s, *arguments)
    if function in _IN_PLACE:
        raise Error(f"{name_of(function)} changes an array in place; write x[index] = value, or use np.where")
    arguments, named = out_by_name(function, arguments, named)
    out = named.pop("out", None)
    if out is not None:
        return _into_out(s, out, numpy_call(s, function, arguments, named))
    if function in _CONVERSIONS and (itself := _itself(function, arguments, named)) is not None:
        return itself
    arguments = [_as_tuple(s, a) for a in arguments]
    given = [unwrapped(a) for a in arguments]
    options = {key: unwrapped(_as_tuple(s, value)) for key, value in named.items()}
    if holds_node(given) and "linalg" in (getattr(function, "__module__", None) or ""):
        s.may_raise(np.linalg.LinAlgError)
    with np.errstate(all="ignore"):
        result = _evaluate(function, given, options)
    first = arguments[0] if arguments else None
    if function is np.einsum and (seen := einsum_view(arguments, options, _evaluate)) is not None:
        return seen
    if function is np.meshgrid and options.get("copy", True) is False:
        return meshgrid_views(arguments, result, _evaluate, options)
    if isinstance(first, Array):
        if function in VIEWS and not isinstance(result, tuple | list):
            seen = view(function, first, given[1:], options, _evaluate)
            if seen is not None:
                return seen
        if function in _SPLITS:
            axis = _axis_of_pieces(function, given, options, len(shape_of(first.read())))
            return List(tuple(_pieces(s, first, axis, [shape_of(x)[axis] for x in result])))
    made = wrapped(result)
    if function in _ALWAYS_ARRAYS and not isinstance(made, Array) and type_of(made) is not None:
        return Array(node_of(made))
    if isinstance(made, Array):
        if function in (np.reshape, np.ravel, np.full) or (function is np.array and isinstance(first, List | tuple)):
            made.contiguous = True
        elif function in _LIKE and isinstance(given[0], Node):
            made.contiguous = False  # in the memory order of its argument, which is unknown
    return made


_ALWAYS_ARRAYS: frozenset[Any] = frozenset([np.array, np.asarray, np.asanyarray, np.copy, np.zeros, np.ones, np.full])
"""Functions that return an array even of a single number: one without axes."""


def _into_out(s: Specialiser, out: Any, result: Any) -> Any:
    """`out=`: writes the result into an array."""
    into = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    t = type_of(into)
    if not isinstance(into, Array) or t is None:
        raise Error("out= takes one array; or assign the result")
    store(s, into, cast_to(result, t))
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


def _outer(s: Specialiser, ufunc: Any, args: list[Any], named: dict[str, Any]) -> Any:
    a, b = args
    axes = len(shape_of(unwrapped(b)))
    first = at_index(s, a, (Ellipsis, *(None,) * axes)) if type_of(a) is not None else a
    return numpy_call(s, ufunc, [first, b], named)


def flat(x: Array) -> Any:
    """`x.flat`: all elements as a view that can always be written to."""
    return view(np.ravel, x, [], {}, _evaluate, always=True)


_LIKE = frozenset({np.zeros_like, np.ones_like, np.empty_like, np.full_like})
_SPLITS = frozenset({np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit})


def _axis_of_pieces(function: Any, args: list[Any], options: dict[str, Any], ndim: int) -> int:
    """The axis that a function splits an array along."""
    if function in (np.hsplit, np.vsplit, np.dsplit):
        return 2 if function is np.dsplit else int(function is np.hsplit and ndim > 1)
    axis: int = options.get("axis", args[2] if len(args) > 2 else 0)
    return axis % ndim


def _pieces(s: Specialiser, x: Array, axis: int, lengths: list[int]) -> Iterator[Any]:
    """The pieces that an array is split into, as views."""
    start = 0
    for length in lengths:
        yield at_index(s, x, (*(slice(None),) * axis, slice(start, start + length)))
        start += length


_IN_PLACE = frozenset({np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis})
_CONVERSIONS = frozenset({np.array, np.asarray, np.asanyarray, np.ascontiguousarray})


def _itself(function: Any, arguments: Sequence[Any], named: dict[str, Any]) -> Array | None:
    """The array that a conversion returns as it is, so that writing into it reaches the argument; None for a new one.

    Raises Error where none may be made by `copy=False`, and one is.
    """
    options = dict(zip(("a", "dtype", "order"), arguments, strict=False)) | named
    x = options.get("a", options.get("object"))
    copy = options.get("copy", True if function is np.array else None)
    t = type_of(x) if isinstance(x, Array) else None
    if t is not None and not holds_node(list(options.values())[1:]) and not copy:
        dtype, order = unwrapped(options.get("dtype")), options.get("order")
        fits = dtype is None or np.dtype(dtype) == _DTYPES[t.kind]
        if fits and order in (None, "K", "A") and options.get("ndmin", 0) <= t.ndim:
            if t.ndim or function is not np.ascontiguousarray:
                return x
    if copy is False:
        raise Error(f"{name_of(function)} with copy=False would have to make a copy here; leave out copy=False")
    return None


def _as_tuple(s: Specialiser, x: Any) -> Any:
    """An iteration as the tuple of its items; other values unchanged."""
    if isinstance(x, Iteration) and not (x.kind == "range" and known(x)):
        return items(s, x)
    return x


class _Nested(threading.local):
    depth = 0  # of handlers that call numpy's functions, inside each other


_nested = _Nested()


def _evaluate(function: Any, args: list[Any], options: dict[str, Any]) -> Any:
    """The result by numpy if all arguments are static, else in the graph."""
    if not holds_node(args) and not holds_node(options):
        return function(*args, **options)
    return _traced(lambda: _in_graph(function, args, options))


def _in_graph(function: Any, args: list[Any], options: dict[str, Any]) -> Any:
    """A function of numpy on nodes; the functions of numpy that its handler calls come back here."""
    refuse_masked((*args, *options.values()))
    if _nested.depth > _MOST_NESTED:
        raise Error(f"{name_of(function)} cannot be compiled with such arguments")
    _nested.depth += 1
    try:
        found = _of_reals(function, args, options)
        kind = kind_of_result(function, args, options)
    finally:
        _nested.depth -= 1
    if function in EACH and isinstance(found, tuple):  # several arrays, each with its own kind
        return tuple(_of_own_kind(function, part, x) for part, x in zip(found, args, strict=True))
    return found if kind is None else of_kind(found, kind)


def _of_own_kind(function: Any, part: Any, x: Any) -> Any:
    t = type_of(content_of(x))
    if not holds_node(x) and function is not np.meshgrid:
        return function(x)
    if t is None:
        return part
    return of_kind(part, t.kind) if isinstance(part, Node) else np.asarray(part).astype(_DTYPES[t.kind])


_DTYPES: dict[str, Any] = {"real": np.float64, "integer": np.int64, "boolean": np.bool_}
_MOST_NESTED = 100


def _of_reals(function: Any, args: list[Any], options: dict[str, Any]) -> Any:
    own = ON_NODES.get(function)
    if own is not None:
        arguments, options = bound(function, own, args, options)
        check_known(function, own, arguments, options)
        return own(*arguments, **options)
    if isinstance(function, np.ufunc):
        return ufunc_of_nodes(function, args, options)
    handler = FUNCTIONS.get(function)
    if handler is not None:
        if function in BY_UFUNC and not CHOOSING.isdisjoint(options):
            return METHODS["reduce"](BY_UFUNC[function], *args, **with_axis(args, options))
        arguments, options = bound(function, handler, args, options)
        args = list(arguments)
        check_known(function, handler, args, options)
        made = _arrays_of if function in _OF_SEQUENCES else _array_of
        if function is not np.block:  # whose lists are rows
            args = [made(x) for x in args]
            options = {name: made(x) for name, x in options.items()}
        return handler(*args, **options)
    raise unknown(name_of(function))


def _array_of(x: Any) -> Any:
    return content_of(x) if isinstance(x, list) and holds_node(x) else x


def _arrays_of(x: Any) -> Any:
    """A list of arrays, from one whose parts may be lists of numbers."""
    if not isinstance(x, list | tuple) or not holds_node(x):
        return x
    return [content_of(part) if holds_node(part) else part for part in x]


_OF_SEQUENCES = frozenset(
    {np.stack, np.concatenate, np.vstack, np.hstack, np.dstack, np.column_stack, np.select, np.choose, np.gradient}
    | {np.linalg.multi_dot}
)


def of_numpy(s: Specialiser, function: Any) -> Callable[..., Any] | None:
    """The finder for functions of numpy, of `dg.special`, and operations."""
    if isinstance(function, Operation):
        return lambda s, args, named: wrapped(apply(function, *map(unwrapped, args)))
    module = getattr(function, "__module__", None) or ""
    owner = getattr(function, "__self__", None)
    if module.startswith("numpy.random") or type(owner).__module__.startswith("numpy.random"):
        raise s.error(
            "random numbers cannot be drawn in a compiled function, which would use the same in each call; pass them in"
        )
    if module in (special.__name__, exponentials.__name__):
        return lambda s, args, named: _of_special(function, args, named)
    if isinstance(function, np.ufunc) or (
        module.split(".")[0] == "numpy" and isinstance(function, types.FunctionType | types.BuiltinFunctionType | type)
    ):
        return lambda s, args, named: numpy_call(s, function, args, named)
    if type(function).__name__ == "_ArrayFunctionDispatcher":
        return lambda s, args, named: numpy_call(s, function, args, named)
    if isinstance(owner, np.ufunc):
        return lambda s, args, named: _method_of_ufunc(s, owner, function, args, named)
    return None


def _of_special(function: Any, args: list[Any], named: dict[str, Any]) -> Any:
    """A function of `dg.special`, which is made of operations on nodes."""
    return wrapped(_traced(lambda: function(*map(unwrapped, args), **{k: unwrapped(v) for k, v in named.items()})))


def joined_along(original: Any, key: Any) -> Any:
    """`np.r_[key]`."""
    return _of_special(join_along, [original, key], {}) if holds_node(key) else wrapped(original[key])


def _method_of_ufunc(s: Specialiser, ufunc: Any, method: Any, args: list[Any], named: dict[str, Any]) -> Any:
    """Methods of ufuncs: `np.add.reduce`."""
    if method.__name__ == "at":
        if named:
            raise Error(f"np.{ufunc.__name__}.at takes no arguments by name, and {next(iter(named))} is given")
        return at(s, ufunc, args)
    if not holds_node([unwrapped(x) for x in (*args, *named.values())]):
        return wrapped(method(*map(unwrapped, args), **{k: unwrapped(v) for k, v in named.items()}))
    args, named = _by_name(method.__name__, args, named)
    if method.__name__ == "outer" and len(args) == 2:
        return _outer(s, ufunc, [as_array(s, x) for x in args], named)
    arrays_ = [content_of(unwrapped(_as_tuple(s, x))) for x in args]
    options = {name: unwrapped(value) for name, value in named.items()}
    check_options(f"np.{ufunc.__name__}.{method.__name__}", {k: v for k, v in options.items() if k in _REFUSED})
    if options.get("dtype") is not None:  # of reals, or it is refused above
        arrays_[0] = converted(arrays_[0], np.float64)
    options = {k: v for k, v in options.items() if k not in _REFUSED}
    return wrapped(_traced(lambda: METHODS[method.__name__](ufunc, *arrays_, **options)))


_REFUSED = frozenset({"dtype", "out"})
_PLACES = {
    "reduce": ("array", "axis", "dtype", "out", "keepdims", "initial", "where"),
    "accumulate": ("array", "axis", "dtype", "out"),
    "reduceat": ("array", "indices", "axis", "dtype", "out"),
}


def _by_name(method: str, args: list[Any], named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a method of a ufunc, of which the optional ones are given by name."""
    places = _PLACES.get(method, ())
    first = 2 if method == "reduceat" else 1
    given = dict(zip(places[first:], args[first:], strict=False)) if places else {}
    if twice := given.keys() & named.keys():
        raise TypeError(f"{method} is given {twice.pop()} twice")
    if places and len(args) > len(places):
        raise TypeError(f"{method} takes {counted(len(places), 'argument')}, and not {len(args)}")
    return (args[:first] if places else args), given | named


def _traced(compute: Callable[[], Any]) -> Any:
    """Runs a function during which numpy's functions on nodes go to the graph."""
    with numpy_by(_in_graph), np.errstate(all="ignore"):
        return compute()
