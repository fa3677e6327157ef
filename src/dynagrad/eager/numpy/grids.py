"""Handlers of numpy's functions that make ranges, grids and tables of powers; their ends may carry derivatives.

Handlers that arrange what is there, such as that of `tile`, are in `arranging.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir import Node
from ...ir.ops import scalars as ops
from ...ir.ops.arrays import shape_of
from ..kinds import plain, real_part
from ..numbers import lift
from .functions import implements, rank, whole


def _count(name: str, num: Any) -> int:
    count = whole(name, "num", num)
    if count < 0:
        raise ValueError(f"{name}: num={count} is negative")
    return count


def _spaced(start: Any, stop: Any, count: int, endpoint: bool) -> tuple[Any, Any]:
    """Evenly spaced numbers along a new first axis, and their spacing."""
    start, stop = lift(ops.multiply, (start, 1.0)), lift(ops.multiply, (stop, 1.0))
    gap = lift(ops.subtract, (stop, start))
    places = np.arange(float(count)).reshape((-1,) + (1,) * rank(gap))
    parts = count - 1 if endpoint else count
    step = lift(ops.divide, (gap, float(parts))) if parts > 0 else lift(ops.multiply, (gap, np.nan))
    found = lift(ops.add, (lift(ops.multiply, (step if parts > 0 else gap, places)), start))
    if endpoint and count > 1:
        found = lift(ops.where, (places == count - 1, stop, found))
    return found, step


def _first_to(found: Any, axis: Any) -> Any:
    return np.moveaxis(found, 0, axis) if axis else found


@implements("linspace")
def _linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False, *, axis: int = 0
) -> Any:
    found, step = _spaced(plain(start), plain(stop), _count("np.linspace", num), endpoint)
    found = _first_to(found, axis)
    return (found, step) if retstep else found


@implements("logspace")
def _logspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, base: Any = 10.0, *, axis: int = 0) -> Any:
    start, stop, base = plain(start), plain(stop), plain(base)
    count = _count("np.logspace", num)
    if rank(base):
        most = max(map(rank, (start, stop, base)))
        start, stop, base = (np.reshape(x, (1,) * (most - rank(x)) + shape_of(x)) for x in (start, stop, base))
        base = np.expand_dims(base, axis)
    return lift(ops.power, (base, _first_to(_spaced(start, stop, count, endpoint)[0], axis)))


@implements("geomspace")
def _geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, *, axis: int = 0) -> Any:
    count = _count("np.geomspace", num)
    start, stop = lift(ops.multiply, (start, 1.0)), lift(ops.multiply, (stop, 1.0))
    if any(not isinstance(x, Node) and np.any(real_part(x) == 0.0) for x in (start, stop)):
        raise ValueError("Geometric sequence cannot include zero")
    sign = np.sign(real_part(start))
    first, last = (lift(ops.log10, (lift(ops.multiply, (x, sign)),)) for x in (start, stop))
    found = lift(ops.multiply, (sign, lift(ops.power, (10.0, _spaced(first, last, count, endpoint)[0]))))
    places = np.arange(float(count)).reshape((-1,) + (1,) * (rank(found) - 1))
    found = lift(ops.where, (places == 0.0, start, found)) if count else found
    if endpoint and count > 1:
        found = lift(ops.where, (places == count - 1, stop, found))
    return _first_to(found, axis)


@implements("meshgrid")
def _meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise ValueError("np.meshgrid: indexing is 'xy' or 'ij'")
    n = len(xi)
    order = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    axes = list(map(plain, xi)) if copy else list(xi)  # of which the results are views
    found = [np.reshape(x, [-1 if k == i else 1 for k in range(n)]) for i, x in zip(order, axes, strict=True)]
    return tuple(found) if sparse else np.broadcast_arrays(*found)


@implements("vander")
def _vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    x = plain(x)
    if rank(x) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = shape_of(x)[0] if N is None else whole("np.vander", "N", N)
    if count < 0:
        raise ValueError(f"np.vander: N={count} is negative")
    if not count:
        return np.zeros((shape_of(x)[0], 0))
    columns: list[Any] = [np.ones(shape_of(x)), *([x] if count > 1 else [])]
    while len(columns) < count:
        columns.append(lift(ops.multiply, (columns[-1], x)))
    return np.stack(columns if increasing else columns[::-1], axis=1)
