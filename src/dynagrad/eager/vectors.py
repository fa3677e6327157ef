"""Structures of reals as one vector, and back: for what needs all coordinates side by side.

The elements stand in the order of the leaves, each leaf in the order of C. Only operations are used, so derivatives go
through both ways.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.ops.arrays import concatenate, cut, reshape, shape_of


def size(x: Any) -> int:
    """How many reals a leaf has."""
    return math.prod(shape_of(x))


def join(reals: Sequence[Any]) -> Any:
    """All elements as one vector.

    >>> join([1.0, np.array([[2.0], [3.0]])])
    array([1., 2., 3.])
    """
    if not reals:
        return np.zeros(0)
    flat = [reshape((size(x),))(x) for x in reals]
    return flat[0] if len(flat) == 1 else concatenate(0, len(flat))(*flat)


def part(vector: Any, like: Sequence[Any]) -> list[Any]:
    """Reals with the shapes of others, out of a vector.

    >>> part(np.array([1.0, 2.0, 3.0]), [0.0, np.zeros(2)])
    [1.0, array([2., 3.])]
    """
    found, start = [], 0
    for x in like:
        end = start + size(x)
        found.append(reshape(shape_of(x))(cut(0, start, end)(vector)))
        start = end
    return found
