"""Handlers of numpy's functions that take a function, call it on parts of an array, and join the results.

Compiled functions have theirs in `compiler/library/callables.py`. `np.vectorize` makes arrays of objects without
dispatch; a replacement is in `eager/names/numpy_names.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import counted
from ...ir.ops import arrays
from ...ir.ops.arrays import shape_of
from ..kinds import plain, real_part
from ..numbers import lift
from .functions import axes_of, implements, item_of, rank


@implements("apply_along_axis")
def _apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    a = plain(arr)
    (along,) = axes_of(axis, rank(a))
    last = np.moveaxis(a, along, -1)
    rest = shape_of(last)[:-1]
    if 0 in rest:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    rows = [plain(func1d(item_of(last, at) if at else last, *args, **kwargs)) for at in np.ndindex(*rest)]
    found = np.reshape(np.stack(rows), rest + shape_of(rows[0]))
    inside = rank(rows[0])
    order = [*range(along), *range(len(rest), len(rest) + inside), *range(along, len(rest))]
    return np.transpose(found, order) if len(order) > 1 else found if order else item_of(found, ())


@implements("apply_over_axes")
def _apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    found = plain(a)
    n = rank(found)
    for axis in axes_of(axes, n):
        part = plain(func(found, axis))
        found = part if rank(part) == n else np.expand_dims(part, axis)
        if rank(found) != n:
            raise ValueError("function is not returning an array of the correct shape")
    return found


@implements("piecewise")
def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    x = plain(x)
    shape = shape_of(x)
    masks = masks_of(condlist, shape, len(funclist))
    flat, found = np.reshape(x, (-1,)), np.zeros(shape).reshape(-1)
    for mask, f in zip(masks, funclist, strict=True):
        chosen = np.ravel(mask)
        if callable(f):
            if not chosen.any():
                continue
            part = plain(f(item_of(flat, chosen), *args, **kw))
            if rank(part):
                part = lift(arrays.place((chosen,), shape_of(flat)), (part,))
        else:
            part = plain(f)
        found = np.where(chosen, part, found)
    return np.reshape(found, shape)


def masks_of(condlist: Any, shape: tuple[int, ...], functions: int) -> list[Any]:
    """A mask of that shape for each function; where the last has none, its mask is the complement of all others."""
    conditions = real_part(condlist)
    single = np.ndim(conditions) == 0 or (shape and np.ndim(real_part(conditions[0])) == 0)
    masks = [np.broadcast_to(np.asarray(real_part(m), bool), shape) for m in ([conditions] if single else conditions)]
    if functions == len(masks) + 1:
        masks.append(~np.any(masks, axis=0))
    if functions != len(masks):
        raise ValueError(
            f"with {counted(len(masks), 'condition')} there are {len(masks)} or "
            f"{counted(len(masks) + 1, 'function')}, and not {functions}"
        )
    return masks
