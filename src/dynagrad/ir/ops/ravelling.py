"""Ravelling: several values as one vector, and back, for algorithms that need all coordinates together.

The elements stand in the order of the values, each in row-major order. Both directions are made of operations, so they
work on arrays, on numbers with derivatives and on nodes, and can be differentiated. Structures are not taken apart
here, but in `eager/pytree.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .arrays import concatenate, getitem, reshape, shape_of


def size(x: Any) -> int:
    """The number of elements of a value."""
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
    """Values of these shapes from a vector: the inverse of `ravel`.

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
