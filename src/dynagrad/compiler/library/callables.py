"""Higher-order functions of numpy while a function is specialised: those that take a function or an iterable.

The function is specialised once, and a loop calls it for each part of an array. The eager counterparts are in
`eager/numpy/callables.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from ...errors import Error, counted
from ...ir import Node
from ...ir.ops import integers
from ..evaluate.arrays import as_array, at_index, set_index
from ..evaluate.exceptions import check
from ..evaluate.iteration import items
from ..evaluate.specialiser import Args, Named, Specialiser, calls
from ..evaluate.values import Closure, HostFunction, List, describe, function_like, node_of, type_of, unwrapped, wrapped
from ..frontend.core import Lambda
from ..frontend.statements import lower
from ..numpy.calls import numpy_call

_DTYPES: dict[str, Any] = {"real": np.float64, "integer": np.int64, "boolean": np.bool_}


def _fill(parts_at: Any, found: Any) -> Any:
    for i in range(len(found[0])):
        parts = parts_at(i)
        for k in range(len(found)):
            found[k][i] = parts[k]
    return found


_lowered: list[Lambda] = []


def _filled(s: Specialiser, count: int, parts_at: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, ...]:
    """The results of a function for 0, 1, ..., stacked; it returns a tuple of numbers or arrays."""
    with s.journal():  # once, for the types alone
        first = parts_at(0)
    kinds = [type_of(part) for part in first]
    if None in kinds:
        raise Error(f"the function should return numbers or arrays, and returned {describe(first[kinds.index(None)])}")
    found = tuple(wrapped(np.zeros((count, *t.shape), _DTYPES[t.kind])) for t in kinds if t is not None)
    if not _lowered:
        assert isinstance(_fill, FunctionType)
        _lowered.append(lower(_fill))
    made = HostFunction(("part", "parts of an array"), lambda s, captured, args, named: parts_at(args[0]))
    s.enter(Closure(_lowered[0]), [made, found], {})
    return found


def _shape(x: Any) -> tuple[int, ...]:
    t = type_of(x)
    return () if t is None else t.shape


def _axis(axis: Any, n: int) -> int:
    if not isinstance(axis, int) or not -n <= axis < n:
        raise Error(f"the axis must be a whole number from {-n} to {n - 1}, known when the function is compiled")
    return axis % n


# -- along and over axes -----------------------------------------------------------------------------------------------


@calls(np.apply_along_axis)
def _apply_along_axis(s: Specialiser, args: Args, named: Named) -> Any:
    names = dict(named)
    first = [names.pop(name) for name in ("func1d", "axis", "arr")[len(args) :]]
    f, axis, x, *rest = [*args, *first]
    a = as_array(s, x)
    shape = _shape(a)
    along = _axis(axis, len(shape))
    last = numpy_call(s, np.moveaxis, [a, along, -1], {})
    outer = _shape(last)[:-1]
    if 0 in outer:
        raise Error("Cannot apply_along_axis when any iteration dimensions are 0")
    rows = numpy_call(s, np.reshape, [last, (-1, shape[along])], {})
    (found,) = _filled(s, _shape(rows)[0], lambda i: (as_array(s, s.call(f, [at_index(s, rows, i), *rest], names)),))
    inside = _shape(found)[1:]
    found = numpy_call(s, np.reshape, [found, (*outer, *inside)], {})
    n = len(outer)
    order = (*range(along), *range(n, n + len(inside)), *range(along, n))
    return numpy_call(s, np.transpose, [found, order], {}) if len(order) > 1 else found


@calls(np.apply_over_axes)
def _apply_over_axes(s: Specialiser, args: Args, named: Named) -> Any:
    f, x, axes = [*args, *(named[name] for name in ("func", "a", "axes")[len(args) :])]
    found = as_array(s, x)
    n = len(_shape(found))
    for axis in axes.content if isinstance(axes, List) else axes if isinstance(axes, tuple) else (axes,):
        part = as_array(s, s.call(f, [found, _axis(axis, n)]))
        found = part if len(_shape(part)) == n else numpy_call(s, np.expand_dims, [part, _axis(axis, n)], {})
    return found


# -- arrays from functions and iterables -------------------------------------------------------------------------------


@calls(np.fromfunction, knows="dtype")
def _from_function(s: Specialiser, args: Args, named: Named) -> Any:
    names = dict(named)
    f, shape, *rest = [*args, *(names.pop(name) for name in ("function", "shape")[len(args) :])]
    dtype = rest[0] if rest else names.pop("dtype", float)
    names.pop("like", None)
    places = numpy_call(s, np.indices, [shape], {"dtype": dtype})
    return s.call(f, [at_index(s, places, i) for i in range(_shape(places)[0])], names)


@calls(np.fromiter, knows="count")
def _from_items(s: Specialiser, args: Args, named: Named) -> Any:
    names = dict(named)
    x, dtype, *rest = [*args, *(names.pop(name) for name in ("iter", "dtype")[len(args) :])]
    count = rest[0] if rest else names.get("count", -1)
    if not isinstance(count, int):
        raise Error("np.fromiter: count must be known when the function is compiled")
    found = items(s, x) if count < 0 else s.call(itertools.islice, [x, count])
    if len(found) < count:
        raise Error(f"np.fromiter: count={count} is more than {counted(len(found), 'item')}")
    return numpy_call(s, np.array, [List(found)], {"dtype": dtype})


@calls(np.delete, knows="axis")
def _delete(s: Specialiser, args: Args, named: Named) -> Any:
    """`np.delete`, also at a dynamic index: one element is dropped, so the length is static."""
    names = ("arr", "obj", "axis")
    options = dict(zip(names, args, strict=False)) | dict(named)
    place = unwrapped(options.get("obj"))
    t = type_of(place)
    if not isinstance(place, Node) or t is None or t.kind != "integer" or t.shape:
        return numpy_call(s, np.delete, args, dict(named))
    x, axis = as_array(s, options["arr"]), options.get("axis")
    if axis is None:
        x, axis = numpy_call(s, np.ravel, [x], {}), 0
    along = _axis(axis, len(_shape(x)))
    n = _shape(x)[along]
    s.may_raise(IndexError)
    check(
        s, (place >= -n) & (place < n), "np.delete: the index ", place,
        f" is out of bounds for axis {along} with size {n}",
    )  # fmt: skip
    if n < 2:  # there is one element, or the check fails
        return at_index(s, x, (*(slice(None),) * along, slice(0, 0)))
    first = integers.where(place < 0, place + n, place)
    every = np.arange(n - 1)
    left = wrapped(node_of(every) + s.call(np.where, [wrapped(node_of(every) >= first), 1, 0]).read())
    return numpy_call(s, np.take, [x, left, along], {})


# -- piecewise ---------------------------------------------------------------------------------------------------------


@calls(np.piecewise)
def _piecewise(s: Specialiser, args: Args, named: Named) -> Any:
    x, conditions, functions, *rest = args
    a = as_array(s, x)
    shape = _shape(a)
    masks = _masks(s, conditions, shape)
    functions = list(functions.content if isinstance(functions, List) else functions)
    if len(functions) == len(masks) + 1:
        masks.append(numpy_call(s, np.logical_not, [numpy_call(s, np.any, [List(tuple(masks))], {"axis": 0})], {}))
    if len(functions) != len(masks):
        raise Error(
            f"np.piecewise: for {counted(len(masks), 'condition')} there are as many functions, or one more, and "
            f"not {len(functions)}"
        )
    t = type_of(a)
    assert t is not None
    wide = shape or (1,)
    a = numpy_call(s, np.reshape, [a, wide], {})
    found = wrapped(np.zeros(wide, _DTYPES[t.kind]))
    for mask, f in zip(masks, functions, strict=True):
        place = numpy_call(s, np.reshape, [mask, wide], {})
        if not function_like(f) and not isinstance(f, np.ufunc) and type_of(f) is not None:
            set_index(s, found, place, f)
        else:
            set_index(s, found, place, s.call(f, [at_index(s, a, place), *rest], named))
    return found if shape else at_index(s, found, 0)


def _masks(s: Specialiser, x: Any, shape: tuple[int, ...]) -> list[Any]:
    parts: Sequence[Any]
    if isinstance(x, List | tuple):
        parts = x.content if isinstance(x, List) else x
        if parts and shape and not _shape(parts[0]) and not isinstance(parts[0], List):
            parts = [x]  # a list of truth values is one condition
    else:
        rows = _shape(x)
        parts = [at_index(s, x, i) for i in range(rows[0])] if len(rows) > max(len(shape), 1) else [x]
    found = []
    for part in parts:
        mask = numpy_call(s, np.broadcast_to, [as_array(s, part), shape], {}) if shape else part
        t = type_of(mask)
        if t is None or t.kind != "boolean":
            mask = numpy_call(s, np.not_equal, [mask, 0], {})
        found.append(mask)
    return found
