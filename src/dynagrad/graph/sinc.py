"""The function of signals sin(pi x) / (pi x), and its derivatives of every order: one operation for each.

The derivatives of S(t) = sin(t) / t follow from t S_n + n S_(n-1) = sin(t + n pi / 2). Upward that loses all digits
where n is larger than t, and downward where it is smaller; so it is used in both ways. Nothing else is here.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from . import operations as ops
from .operation import Operation
from .types import real


@functools.cache
def sinc(n: int = 0) -> Operation:
    """The n-th derivative of `np.sinc`, on each element.

    >>> sinc(0)(0.0), round(sinc(2)(0.0), 12) == round(-(math.pi**2) / 3, 12)
    (1.0, True)
    """

    def on_arrays(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.sinc(x) if n == 0 else math.pi**n * _derivative(n, math.pi * np.asarray(x, float))

    def tangent(d: Any, y: Any, x: Any) -> Any:
        return ops.multiply(d, sinc(n + 1)(x))

    return Operation(f"sinc{n or ''}", (real,), real, lambda x: float(on_arrays(x)), (tangent,), "", array=on_arrays)


def _derivative(n: int, t: Any) -> Any:
    """The n-th derivative of sin(t) / t."""
    found = np.empty(t.shape)
    near = abs(t) <= n
    found[near], found[~near] = _down(n, t[near]), _up(n, t[~near])
    return found


def _up(n: int, t: Any) -> Any:
    waves = _waves(t)
    found = waves[0] / t
    for k in range(1, n + 1):
        found = (waves[k % 4] - k * found) / t
    return found


def _down(n: int, t: Any) -> Any:
    waves = _waves(t)
    found = np.zeros(t.shape)  # far enough from n it does not matter where to begin
    for k in range(n + 40 + math.isqrt(81 * n), n, -1):
        found = (waves[k % 4] - t * found) / k
    return found


def _waves(t: Any) -> list[Any]:
    """sin(t + k pi / 2) for k from 0 to 3."""
    sine, cosine = np.sin(t), np.cos(t)
    return [sine, cosine, -sine, -cosine]
