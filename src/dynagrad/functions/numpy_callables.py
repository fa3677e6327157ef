"""What numpy's functions that take a function do with numbers: they call it on parts of an array, and join results.

Handlers as in `numpy_functions.py`; what a compiled function makes of them is in `lifting/parts.py`. `vectorize` is
here as a class of our own, since numpy's makes arrays of objects before anybody is asked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ..graph import arrays
from ..graph.arrays import shape_of
from .applying import lift
from .numbers import plain, real_part
from .numpy_functions import axes_of, implements, item_of, rank


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
    """A mask of that shape for each function; without one for the last, it is for what no other is for."""
    given = real_part(condlist)
    single = np.ndim(given) == 0 or (shape and np.ndim(real_part(given[0])) == 0)
    masks = [np.broadcast_to(np.asarray(real_part(m), bool), shape) for m in ([given] if single else given)]
    if functions == len(masks) + 1:
        masks.append(~np.any(masks, axis=0))
    if functions != len(masks):
        raise ValueError(
            f"with {len(masks)} condition(s), either {len(masks)} or {len(masks) + 1} functions are expected"
        )
    return masks


class vectorize:  # as in numpy
    """`numpy.vectorize` that lets derivatives through: a function of single numbers, called on each element.

    With `signature`, such as "(n),(n)->()", the function takes the last axes at once. What it returns is stacked, so
    `otypes` and `cache` change nothing where numbers carry derivatives.

    >>> import dynagrad as dg
    >>> square = vectorize(lambda x: x * x if x > 0 else 0.0)
    >>> dg.grad(lambda x: np.sum(square(x)))(np.array([3.0, -1.0]))
    array([6., 0.])
    """

    def __init__(
        self,
        pyfunc: Callable[..., Any],
        otypes: Any = None,
        doc: str | None = None,
        excluded: Collection[Any] | None = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        self.pyfunc, self.otypes, self.signature = pyfunc, otypes, signature
        self.excluded = set(excluded or ())
        self.__doc__ = pyfunc.__doc__ if doc is None else doc
        self._plain = np.vectorize(pyfunc, otypes, doc, excluded, cache, signature)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        names = [*range(len(args)), *kwargs]
        values = [*args, *kwargs.values()]
        places = [k for k, name in enumerate(names) if name not in self.excluded]
        if not places:
            return self.pyfunc(*args, **kwargs)
        inside = self._inside(len(places))
        xs = [plain(values[k]) for k in places]
        loops = [shape_of(x)[: rank(x) - n] for x, n in zip(xs, inside, strict=True)]
        common = np.broadcast_shapes(*loops)
        xs = [np.broadcast_to(x, common + shape_of(x)[len(loop) :]) for x, loop in zip(xs, loops, strict=True)]
        if 0 in common:
            return self._plain(*map(real_part, args), **{k: real_part(v) for k, v in kwargs.items()})
        found = []
        for at in itertools.product(*map(range, common)):
            for k, x in zip(places, xs, strict=True):
                values[k] = item_of(x, at) if at else x
            found.append(self.pyfunc(*values[: len(args)], **dict(zip(kwargs, values[len(args) :], strict=True))))
        if isinstance(found[0], tuple):
            return tuple(_joined([row[k] for row in found], common) for k in range(len(found[0])))
        return _joined(found, common)

    def _inside(self, count: int) -> list[int]:
        """How many axes of each argument the function takes at once."""
        if self.signature is None:
            return [0] * count
        given = self.signature.replace(" ", "").split("->")[0]
        axes = [len([name for name in part.split(",") if name]) for part in given.strip("()").split("),(")]
        if len(axes) != count:
            raise TypeError(f"wrong number of positional arguments: expected {len(axes)}, got {count}")
        return axes


def _joined(parts: list[Any], shape: tuple[int, ...]) -> Any:
    parts = [plain(part) for part in parts]
    return np.reshape(np.stack(parts), shape + shape_of(parts[0])) if shape else parts[0]
