"""What numpy's functions that split, join, insert and choose do with numbers, beyond those of `numpy_functions.py`.

Handlers as there. No number is computed here: elements come where they came from.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import Error
from ..graph import arrays
from ..graph import operations as ops
from ..graph.arrays import shape_of
from .applying import lift
from .numbers import plain, real_part
from .numpy_functions import axes_of, implements, item_of, rank, whole

# -- axes --------------------------------------------------------------------------------------------------------------


@implements("atleast_3d")
def _atleast_3d(*arys: Any) -> Any:
    found = []
    for x in map(plain, arys):
        shape = shape_of(x)
        wider: dict[int, tuple[int, ...]] = {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}
        found.append(np.reshape(x, wider[len(shape)]) if len(shape) < 3 else x)
    return found[0] if len(found) == 1 else tuple(found)


@implements("rollaxis")
def _rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    n = rank(plain(a))
    (along,) = axes_of(axis, n)
    to = whole("np.rollaxis", "start", start)
    if not -n <= to <= n:
        raise np.exceptions.AxisError(to, n + 1, "start")
    to += n if to < 0 else 0
    order = [k for k in range(n) if k != along]
    order.insert(to - (along < to), along)
    return np.transpose(a, order)


# -- splitting and joining ---------------------------------------------------------------------------------------------


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
    """How deep lists are nested; all of them should be so equally."""
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
    places = np.arange(n)[obj] if isinstance(obj, slice) else _known("np.insert", "obj", obj)
    if places.dtype == np.bool_:
        places = np.flatnonzero(places)
    single = places.size == 1
    if single and not np.ndim(places):  # as numpy has it: one place may take several rows
        values = np.moveaxis(_at_least(values, len(shape)), 0, along)
    values = _at_least(values, len(shape))
    count = shape_of(values)[along] if single else places.size
    values = np.broadcast_to(values, (*shape[:along], count, *shape[along + 1 :]))
    # The old elements have their numbers; that of a new one is after them, and it comes to stand before its place.
    numbers = np.arange(n)
    if single:
        at = int(places.reshape(()))
        if not -n <= at <= n:
            raise IndexError(f"index {at} is out of bounds for axis {along} with size {n}")
        order = np.insert(numbers, at, n + np.arange(count))
    else:
        order = np.insert(numbers, places, n + np.arange(count))
    return np.take(np.concatenate([a, values], along), order, along)


def _at_least(x: Any, ndim: int) -> Any:
    return np.reshape(x, (1,) * (ndim - rank(x)) + shape_of(x)) if rank(x) < ndim else x


def _known(name: str, what: str, x: Any) -> Any:
    """Whole numbers, or truth values, that are known."""
    parts = x if isinstance(x, list | tuple) else [x]
    for part in parts:
        if not isinstance(part, list | tuple | np.ndarray):
            whole(name, what, part)
    found = np.asarray(x)
    return found if found.size else found.astype(np.intp)


# -- choosing ----------------------------------------------------------------------------------------------------------


@implements("partition")
def _partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect") -> Any:
    a = np.ravel(a) if axis is None else plain(a)
    (along,) = axes_of(-1 if axis is None else axis, rank(a))
    _known("np.partition", "kth", kth)
    value = real_part(a)
    if not isinstance(value, np.ndarray):  # of the graph, which sorts: that is a partition at any place
        return np.sort(a, along)
    # The order that np.partition left elements in, which np.argpartition need not have.
    parted = np.partition(value, kth, along)
    order = np.empty(value.shape, np.intp)
    from_ = np.argsort(value, along, kind="stable")
    np.put_along_axis(order, np.argsort(parted, along, kind="stable"), from_, along)
    return lift(arrays.take_along(along), (a, order))


@implements("choose")
def _choose(a: Any, choices: Any, mode: str = "raise") -> Any:
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
            raise TypeError("np.choose: what to choose is said by whole numbers")
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
    places = _known("np.bincount", "x", real_part(x))
    if weights is None:
        return np.bincount(places, minlength=minlength)
    weights = plain(weights)
    if rank(weights) != 1 or places.shape != shape_of(weights):
        raise ValueError("The weights and list don't have the same length.")
    count = max(np.bincount(places).size, minlength)
    return lift(arrays.place((places.astype(np.intp),), (count,)), (weights,))
