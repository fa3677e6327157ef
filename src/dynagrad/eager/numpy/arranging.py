"""Handlers of numpy's functions that move, join, split, insert and select elements, and compute none."""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import Error
from ...ir.operation import Operation
from ...ir.ops import arrays
from ...ir.ops import scalars as ops
from ...ir.ops.arrays import shape_of
from ..kinds import plain, real_part
from ..numbers import lift
from .functions import axes_of, axis_of, implements, item_of, rank, whole
from .shapes import atleast_1d, atleast_2d, broadcast_to, moveaxis, ravel, reshape, swapaxes

# -- moving elements ---------------------------------------------------------------------------------------------------


@implements("flip")
def _flip(m: Any, axis: Any = None) -> Any:
    m = plain(m)
    axes = axes_of(axis, rank(m))
    return item_of(m, tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(rank(m))))


@implements("fliplr")
def _fliplr(m: Any) -> Any:
    return _flip(m, 1)


@implements("flipud")
def _flipud(m: Any) -> Any:
    return _flip(m, 0)


@implements("rot90")
def _rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    for _ in range(k % 4):
        m = _flip(swapaxes(m, *axes), axes[0])
    return m


@implements("roll")
def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    a = plain(a)
    if axis is None:
        return reshape(_roll(ravel(a), shift, 0), shape_of(a))
    for by, along in np.broadcast(shift, axis):  # an axis that is named twice is rolled twice
        a = lift(arrays.roll(operator.index(by), axis_of(along, rank(a))), (a,))
    return a


@implements("repeat")
def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    a = ravel(a) if axis is None else plain(a)
    along = axis_of(axis or 0, rank(a))
    return _take_at(a, np.repeat(np.arange(shape_of(a)[along]), repeats), along)


def _take_at(a: Any, index: Any, axis: int) -> Any:
    return item_of(a, (*(slice(None),) * axis, index))


@implements("tile")
def _tile(A: Any, reps: Any) -> Any:
    a = plain(A)
    times = tuple(map(operator.index, reps)) if np.ndim(reps) else (operator.index(reps),)
    times = (1,) * (rank(a) - len(times)) + times
    shape = (1,) * (len(times) - rank(a)) + shape_of(a)
    spread = reshape(a, tuple(n for m in shape for n in (1, m)))
    spread = broadcast_to(spread, tuple(n for pair in zip(times, shape, strict=True) for n in pair))
    return reshape(spread, tuple(k * m for k, m in zip(times, shape, strict=True)))


@implements("pad")
def _pad(array: Any, pad_width: Any, mode: Any = "constant", *, constant_values: Any = 0) -> Any:
    a = plain(array)
    widths = np.broadcast_to(np.asarray(pad_width), (rank(a), 2))
    if mode == "constant":
        edge = np.pad(np.zeros(shape_of(a)), widths, constant_values=constant_values)
        inside = tuple(slice(w, w + n) for (w, _), n in zip(widths.tolist(), shape_of(a), strict=True))
        return lift(ops.add, (lift(arrays.place(inside, edge.shape), (a,)), edge))
    if mode not in ("edge", "wrap", "reflect", "symmetric"):
        raise Error(f"np.pad: mode={mode!r} has no derivative here; use constant, edge, wrap, reflect or symmetric")
    for axis, width in enumerate(widths.tolist()):
        a = _take_at(a, np.pad(np.arange(shape_of(a)[axis]), width, mode=mode), axis)
    return a


@implements("take")
def _take(a: Any, indices: Any, axis: Any = None) -> Any:
    a = ravel(a) if axis is None else plain(a)
    return _take_at(a, np.asarray(real_part(indices), dtype=np.intp), axis_of(axis or 0, rank(a)))


@implements("compress")
def _compress(condition: Any, a: Any, axis: Any = None) -> Any:
    return _take(a, np.flatnonzero(real_part(condition)), axis)


@implements("extract")
def _extract(condition: Any, arr: Any) -> Any:
    return _compress(np.ravel(real_part(condition)), arr)


@implements("delete")
def _delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    a = ravel(arr) if axis is None else plain(arr)
    along = axis_of(axis or 0, rank(a))
    return _take_at(a, np.delete(np.arange(shape_of(a)[along]), obj), along)


@implements("take_along_axis")
def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    a = ravel(arr) if axis is None else plain(arr)
    places, along = plain(real_part(indices)), axis_of(0 if axis is None else axis, rank(a))
    if rank(a) != rank(places):
        raise ValueError("np.take_along_axis: the indices should have as many axes as the array")
    one = np.broadcast_shapes(*((*shape[:along], 1, *shape[along + 1 :]) for shape in map(shape_of, (a, places))))
    wide = [(*one[:along], shape_of(x)[along], *one[along + 1 :]) for x in (a, places)]
    a, places = (
        x if shape_of(x) == shape else broadcast_to(x, shape) for x, shape in zip((a, places), wide, strict=True)
    )
    return lift(arrays.take_along(along), (a, places))


def is_descending(**options: Any) -> bool:
    """Whether a sort with these options is from the largest down. Every sort here is stable, and NaN comes last, as in
    numpy; which options there are, and which go together, numpy says, as it is installed.

    >>> is_descending(kind="stable"), is_descending(order=None)
    (False, False)
    """
    given = {name: value for name, value in options.items() if value is not None}
    np.sort(_NOTHING, **given)  # raises where numpy does
    return bool(given.get("descending", False))


_NOTHING = np.zeros(0)


@implements("sort")
def _sort(a: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None, descending: Any = None) -> Any:
    falls = is_descending(kind=kind, stable=stable, descending=descending)
    a = ravel(a) if axis is None else plain(a)
    along = axis_of(0 if axis is None else axis, rank(a))
    if falls:
        return lift(arrays.take_along(along), (a, arrays.argsort(along)(-real_part(a))))
    return lift(arrays.sort(along), (a,))


@implements("diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return lift(arrays.diagonal(int(offset)), (moveaxis(plain(a), (axis1, axis2), (-2, -1)),))


@implements("linalg.diagonal")
def _linalg_diagonal(x: Any, *, offset: int = 0) -> Any:
    return diagonal(x, offset, -2, -1)


@implements("diag")
def _diag(v: Any, k: int = 0) -> Any:
    if rank(v) == 1:
        n = shape_of(v)[0] + abs(k)
        return lift(arrays.on_diagonal(int(k), (n, n)), (v,))
    if rank(v) != 2:
        raise ValueError("Input must be 1- or 2-d.")
    return diagonal(v, k)


@implements("diagflat")
def _diagflat(v: Any, k: int = 0) -> Any:
    return _diag(ravel(v), k)


@implements("tril")
def _tril(m: Any, k: int = 0) -> Any:
    return lift(arrays.triangle(True, int(k)), (_rows_of(m),))


@implements("triu")
def _triu(m: Any, k: int = 0) -> Any:
    return lift(arrays.triangle(False, int(k)), (_rows_of(m),))


def _rows_of(m: Any) -> Any:
    """A matrix as it is, or the matrix with a vector in every row."""
    shape = shape_of(plain(m))
    return broadcast_to(m, shape * 2) if len(shape) == 1 else m


# -- joining and splitting ---------------------------------------------------------------------------------------------

TOGETHER = 32  # more than twice as many arrays are joined in groups, so that the tangent of one fills its group only


def _joined(make: Callable[[int], Operation], join: Callable[[int], Operation], xs: list[Any]) -> Any:
    if len(xs) <= 2 * TOGETHER:
        return lift(make(len(xs)), xs)
    groups = [xs[i : i + TOGETHER] for i in range(0, len(xs), TOGETHER)]
    return _joined(join, join, [lift(make(len(group)), group) for group in groups])


@implements("concatenate", "concat")
def concatenate(arrays_: Any, axis: Any = 0) -> Any:
    xs = [ravel(x) if axis is None else plain(x) for x in arrays_]
    if not xs or not all(map(rank, xs)):
        raise ValueError("zero-dimensional arrays cannot be concatenated; use np.stack")
    along = axis_of(axis or 0, rank(xs[0]))
    _check_same([_without(shape_of(x), along) for x in xs], "np.concatenate")
    return _joined(lambda n: arrays.concatenate(along, n), lambda n: arrays.concatenate(along, n), xs)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (len(shape), *shape[:axis], *shape[axis + 1 :])


def _check_same(shapes: list[tuple[int, ...]], what: str) -> None:
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"{what}: all arrays must have the same shape, except along the joined axis")


@implements("stack")
def _stack(arrays_: Any, axis: int = 0) -> Any:
    xs = [_stack(x) if isinstance(x, list | tuple) else plain(x) for x in arrays_]
    if not xs:
        raise ValueError("need at least one array to stack")
    _check_same([shape_of(x) for x in xs], "np.stack")
    along = axis_of(axis, rank(xs[0]) + 1)
    return _joined(lambda n: arrays.stack(along, n), lambda n: arrays.concatenate(along, n), xs)


@implements("vstack", "row_stack")
def _vstack(tup: Any) -> Any:
    return concatenate([atleast_2d(x) for x in tup], 0)


@implements("hstack")
def _hstack(tup: Any) -> Any:
    xs = [atleast_1d(x) for x in tup]
    return concatenate(xs, 0 if rank(xs[0]) == 1 else 1)


@implements("column_stack")
def _column_stack(tup: Any) -> Any:
    return concatenate([plain(x) if rank(plain(x)) > 1 else reshape(x, (-1, 1)) for x in tup], 1)


@implements("dstack")
def _dstack(tup: Any) -> Any:
    flat = [atleast_2d(x) for x in tup]
    return concatenate([x if rank(x) > 2 else reshape(x, (*shape_of(x), 1)) for x in flat], 2)


@implements("append")
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    return concatenate([arr, values], axis)


@implements("array_split")
def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    a = plain(ary)
    along = axis_of(axis, rank(a))
    places = np.array_split(np.arange(shape_of(a)[along]), indices_or_sections)
    ends = np.cumsum([len(p) for p in places]).tolist()
    starts = [int(p[0]) if len(p) else end for p, end in zip(places, ends, strict=True)]
    return [lift(arrays.cut(along, s, s + len(p)), (a,)) for s, p in zip(starts, places, strict=True)]


@implements("split")
def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    length = shape_of(plain(ary))[axis_of(axis, rank(plain(ary)))]
    if np.ndim(indices_or_sections) == 0 and length % indices_or_sections:
        raise ValueError("array split does not result in an equal division; np.array_split makes unequal parts")
    return _array_split(ary, indices_or_sections, axis)


@implements("hsplit")
def _hsplit(ary: Any, indices_or_sections: Any) -> Any:
    if not rank(plain(ary)):
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return np.split(ary, indices_or_sections, axis=min(rank(plain(ary)), 2) - 1)


@implements("vsplit")
def _vsplit(ary: Any, indices_or_sections: Any) -> Any:
    if rank(plain(ary)) < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return np.split(ary, indices_or_sections, axis=0)


@implements("dsplit")
def _dsplit(ary: Any, indices_or_sections: Any) -> Any:
    if rank(plain(ary)) < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return np.split(ary, indices_or_sections, axis=2)


@implements("unstack")
def _unstack(x: Any, *, axis: int = 0) -> Any:
    x = np.moveaxis(plain(x), axis, 0)
    return tuple(item_of(x, k) for k in range(shape_of(x)[0]))


@implements("block")
def _block(arrays_: Any) -> Any:
    depth = _depth(arrays_)
    wide = max(depth, _widest(arrays_))
    return _blocked(arrays_, wide - depth, wide)


def _depth(x: Any) -> int:
    """The nesting depth of lists, which must be the same everywhere."""
    if isinstance(x, tuple):
        raise TypeError("np.block: blocks are in lists, not in tuples")
    if not isinstance(x, list):
        return 0
    depths = {_depth(part) for part in x}
    if len(depths) != 1:
        raise ValueError(
            "np.block: the lists are nested to different depths" if depths else "np.block: a list is empty"
        )
    return 1 + depths.pop()


def _widest(x: Any) -> int:
    return max(map(_widest, x)) if isinstance(x, list) else rank(plain(x))


def _blocked(x: Any, axis: int, wide: int) -> Any:
    if isinstance(x, list):
        return np.concatenate([_blocked(part, axis + 1, wide) for part in x], axis)
    x = plain(x)
    return np.reshape(x, (1,) * (wide - rank(x)) + shape_of(x))


@implements("insert")
def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    a = np.ravel(arr) if axis is None else plain(arr)
    values = plain(values)
    (along,) = axes_of(-1 if axis is None else axis, rank(a))
    shape = shape_of(a)
    n = shape[along]
    places = np.arange(n)[obj] if isinstance(obj, slice) else _known_integers("np.insert", "obj", obj)
    if places.dtype == np.bool_:
        if not _inserts_at_masks():
            raise Error(
                f"np.insert: numpy {np.__version__} takes a mask for the positions 0 and 1, and later releases for a "
                "mask: write np.insert(x, np.flatnonzero(mask), values)"
            )
        places = np.flatnonzero(places)
    single = places.size == 1
    if single and not np.ndim(places):  # as in numpy, several rows may be inserted at one position
        values = np.moveaxis(_at_least(values, len(shape)), 0, along)
    values = _at_least(values, len(shape))
    count = shape_of(values)[along] if single else places.size
    values = np.broadcast_to(values, (*shape[:along], count, *shape[along + 1 :]))
    # Old elements are numbered first, then new ones, each of which is inserted before its position.
    numbers = np.arange(n)
    if single:
        at = int(places.reshape(()))
        if not -n <= at <= n:
            raise IndexError(f"index {at} is out of bounds for axis {along} with size {n}")
        order = np.insert(numbers, at, n + np.arange(count))
    else:
        order = np.insert(numbers, places, n + np.arange(count))
    return np.take(np.concatenate([a, values], along), order, along)


@functools.cache
def _inserts_at_masks() -> bool:
    """Whether the installed numpy takes truth values for a mask."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return len(np.insert(np.zeros(2), np.array([False, True]), 1.0)) == 3


def _at_least(x: Any, ndim: int) -> Any:
    return np.reshape(x, (1,) * (ndim - rank(x)) + shape_of(x)) if rank(x) < ndim else x


def _known_integers(name: str, what: str, x: Any) -> Any:
    """Integers or truth values as an array; raises Error unless they are known."""
    parts = x if isinstance(x, list | tuple) else [x]
    for part in parts:
        if not isinstance(part, list | tuple | np.ndarray):
            whole(name, what, part)
    found = np.asarray(x)
    return found if found.size else found.astype(np.intp)


# -- selecting ---------------------------------------------------------------------------------------------------------


@implements("where")
def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    chosen = np.asarray(real_part(condition)) != 0
    if x is None and y is None:
        return np.nonzero(chosen)
    return lift(ops.where, (chosen if chosen.ndim else bool(chosen), x, y))


@implements("clip")
def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = a_min if min is None else min, a_max if max is None else max
    if low is not None:
        a = lift(ops.maximum, (a, low))
    return a if high is None else lift(ops.minimum, (a, high))


@implements("select")
def _select(condlist: Any, choicelist: Any, default: Any = 0.0) -> Any:
    for condition, choice in list(zip(condlist, choicelist, strict=True))[::-1]:
        default = _where(condition, choice, default)
    return default


@implements("nan_to_num")
def _nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    value = real_part(x)
    x = _where(np.isnan(value), nan, x)
    most = np.finfo(np.float64).max
    x = _where(np.isposinf(value), most if posinf is None else posinf, x)
    return _where(np.isneginf(value), -most if neginf is None else neginf, x)


@implements("partition")
def _partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect") -> Any:
    a = np.ravel(a) if axis is None else plain(a)
    (along,) = axes_of(-1 if axis is None else axis, rank(a))
    _known_integers("np.partition", "kth", kth)
    value = real_part(a)
    if not isinstance(value, np.ndarray):  # a node of a graph is sorted, which is a partition at every position
        return np.sort(a, along)
    # The permutation of np.partition, which np.argpartition need not have.
    parted = np.partition(value, kth, along)
    order = np.empty(value.shape, np.intp)
    from_ = np.argsort(value, along, kind="stable")
    np.put_along_axis(order, np.argsort(parted, along, kind="stable"), from_, along)
    return lift(arrays.take_along(along), (a, order))


@implements("choose")
def _choose(a: Any, choices: Any, *, mode: str = "raise") -> Any:
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError("np.choose: mode is 'raise', 'wrap' or 'clip'")
    rows = list(choices) if isinstance(choices, list | tuple) else None
    options = [plain(x) for x in rows or [item_of(choices, k) for k in range(shape_of(choices)[0])]]
    if not options:
        raise ValueError("np.choose: there is nothing to choose from")
    places = real_part(a)
    count = len(options)
    if isinstance(places, np.ndarray | int | np.integer | list | tuple):
        places = np.asarray(places)
        if places.dtype.kind not in "biu":
            raise TypeError("np.choose: the first argument should have whole numbers")
        if mode == "raise" and places.size and not (places.min() >= 0 and places.max() < count):
            raise ValueError("invalid entry in choice array")
    elif mode == "raise":
        raise Error("np.choose: give mode='wrap' or mode='clip' where the choice is known only as the function runs")
    places = places % count if mode == "wrap" else np.clip(places, 0, count - 1) if mode == "clip" else places
    found: Any = options[-1]
    for k in reversed(range(count - 1)):
        found = lift(ops.where, (places == k, options[k], found))
    return np.broadcast_to(found, np.broadcast_shapes(shape_of(places), *map(shape_of, options)))


@implements("bincount")
def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    places = _known_integers("np.bincount", "x", real_part(x))
    if weights is None:
        return np.bincount(places, minlength=minlength)
    weights = plain(weights)
    if rank(weights) != 1 or places.shape != shape_of(weights):
        raise ValueError("The weights and list don't have the same length.")
    count = max(np.bincount(places).size, minlength)
    return lift(arrays.place((places.astype(np.intp),), (count,)), (weights,))
