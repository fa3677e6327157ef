"""Broadcasting of derivatives: a tangent grows to the shape of the result, an adjoint shrinks to the argument's."""

from __future__ import annotations

from typing import Any

from ..graph.arrays import broadcast_to, sum_to


def broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    """
    >>> broadcast(2.0, (2,))
    array([2., 2.])
    """
    return broadcast_to(tuple(shape))(x)


def unbroadcast(x: Any, shape: tuple[int, ...]) -> Any:
    """
    >>> import numpy as np
    >>> unbroadcast(np.ones((3, 2)), (2,)), unbroadcast(np.ones(3), ())
    (array([3., 3.]), 3.0)
    """
    return sum_to(tuple(shape))(x)
