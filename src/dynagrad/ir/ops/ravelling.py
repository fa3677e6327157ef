"""Several values as one vector, and back: for whatever needs all coordinates side by side.

The elements stand in the order of the values, each in the order of C. Only operations are used, so that arrays, numbers
with derivatives and nodes of a graph are ravelled alike, and derivatives go through both ways.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .arrays import concatenate, getitem, reshape, shape_of


def size(x: Any) -> int:
    """How many elements a value has."""
    return math.prod(shape_of(x))


def ravel(values: Sequence[Any]) -> Any:
    """All elements as one vector.

    >>> ravel([1.0, np.array([[2.0], [3.0]])])
    array([1., 2., 3.])
    """
    if not values:
        return np.zeros(0)
    flat = [reshape((size(x),))(x) for x in values]
    return flat[0] if len(flat) == 1 else concatenate(0, len(flat))(*flat)


def unravel(vector: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Values of these shapes, out of a vector.

    >>> unravel(np.array([1.0, 2.0, 3.0]), [(), (2,)])
    [1.0, array([2., 3.])]
    """
    found, start = [], 0
    for shape in shapes:
        end = start + math.prod(shape)
        if not shape:
            found.append(getitem(start)(vector))
        elif end - start == size(vector):
            found.append(reshape(shape)(vector))
        else:
            found.append(reshape(shape)(getitem(slice(start, end))(vector)))
        start = end
    return found
