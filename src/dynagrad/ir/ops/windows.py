"""Sliding windows along axes of arrays, and convolutions of vectors.

`windows` is a view that shows each element once in every window it is in; its transpose `overlaps` adds windows up.
`convolve` has its own rules, since its derivatives are convolutions again, and windows would take more memory.
Other operations that rearrange arrays are in `arrays.py`.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ..operation import Operation
from . import series as power_series
from .arrays import Axes, Shape, getitem, linear, remember, several

_BACKWARD = slice(None, None, -1)


@remember
def windows(axes: Axes, sizes: Shape) -> Operation:
    """All windows of these sizes along axes; the inside of a window is on new last axes.

    >>> windows((0,), (2,))(np.array([1.0, 2.0, 3.0]))
    array([[1., 2.],
           [2., 3.]])
    """
    return linear(
        "windows",
        lambda x: np.lib.stride_tricks.sliding_window_view(x, sizes, axes),
        lambda d, s: overlaps(axes, sizes, s)(d),
        code=("windows", axes),
    )


@remember
def overlaps(axes: Axes, sizes: Shape, shape: Shape) -> Operation:
    """Windows added up at their positions in an array of that shape: the transpose of `windows`.

    >>> overlaps((0,), (2,), (3,))(np.ones((2, 2)))
    array([1., 2., 1.])
    """
    counts = [n for n in shape]
    for axis, size in zip(axes, sizes, strict=True):
        counts[axis] -= size - 1

    def value(d: Any) -> Any:
        out = np.zeros(shape)
        by_places = math.prod(counts[axis] for axis in axes) < math.prod(sizes)
        stretch = sizes if by_places else [counts[axis] for axis in axes]
        steps = [counts[axis] for axis in axes] if by_places else sizes
        source = np.moveaxis(d, axes, range(-len(axes), 0)) if by_places else d
        # One addition a window where windows are fewer than the elements of one; else one addition an element.
        target = np.moveaxis(out, axes, range(-len(axes), 0)) if by_places else out
        for at in itertools.product(*map(range, steps)):
            index = [slice(None)] * len(shape)
            for k, (start, n) in enumerate(zip(at, stretch, strict=True)):
                index[k - len(axes) if by_places else axes[k]] = slice(start, start + n)
            target[tuple(index)] += source[(..., *at)]
        return out

    return linear(
        "overlaps", value, lambda delta, s: windows(axes, sizes)(delta), code=("overlaps", axes, sizes, shape)
    )


def _reversed(x: Any) -> Any:
    return getitem((_BACKWARD,))(x)


@remember
def convolve(full: bool) -> Operation:
    """The convolution of two vectors, in numpy's mode "full" or else "valid"; the second is not longer in "valid".

    >>> convolve(True)(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0]))
    array([1., 3., 5., 3.])
    >>> convolve(False)(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0]))
    array([3., 5.])
    """
    mode: Any = "full" if full else "valid"

    def left(delta: Any, y: Any, a: Any, v: Any) -> Any:
        return convolve(not full)(delta, _reversed(v))

    def right(delta: Any, y: Any, a: Any, v: Any) -> Any:
        if full:
            return convolve(False)(delta, _reversed(a))
        return _reversed(convolve(False)(a, _reversed(delta)))

    made = several(
        "convolve",
        lambda a, v: np.convolve(a, v, mode),
        (lambda d, y, a, v: made(d, v), lambda d, y, a, v: made(a, d)),
        (left, right),
        power_series.multilinear(lambda a, v: made(a, v)),
        needs=((1,), (0,)),
        code=("convolve", full),
    )
    return made
