"""`np.add.at` and other `ufunc.at` while a function is specialised: unbuffered updates at indices that may repeat.

Buffered ones, such as `x[index] += value`, are in `compiler/evaluate/arrays.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...eager.mutation.writing import rounds
from ...errors import Error
from ...ir.node import Node
from ..evaluate.arrays import FOREIGN, add_each, as_array, at_index, holds_node, index_of, set_index, store
from ..evaluate.specialiser import Specialiser
from ..evaluate.values import Array, type_of, unwrapped, wrapped

ROUNDS = 256  # how often an index may occur: each time is an operation of its own


def at(s: Specialiser, ufunc: Any, args: list[Any]) -> None:
    """`ufunc.at(x, index, value)`."""
    name = f"np.{ufunc.__name__}.at"
    if len(args) != ufunc.nin + 1:
        raise Error(f"{name} takes an array, indices, and {'a value' if ufunc.nin == 2 else 'no value'}")
    x, index, *value = args
    t = type_of(x)
    if t is not None and t.kind == "real" and ufunc in (np.add, np.subtract):
        return add_each(s, x, index, value[0], ufunc is np.subtract)
    if not isinstance(x, Array) or t is None:
        raise Error(f"this array cannot be changed: {FOREIGN}")
    place = index_of(index)
    if holds_node(place):
        if any(isinstance(part, Node) and part.shape for part in (place if isinstance(place, tuple) else (place,))):
            raise Error(
                f"{name} with indices that are known only as the function runs cannot be compiled; write a loop"
            )
        set_index(s, x, index, s.call(ufunc, [at_index(s, x, index), *value]))
        return None
    _in_rounds(s, ufunc, x, t.shape, place, value)
    return None


def _in_rounds(s: Specialiser, ufunc: Any, x: Array, shape: tuple[int, ...], place: Any, value: list[Any]) -> None:
    """Updates the first occurrence of each index, then the second ones, and so on."""
    value = [as_array(s, v) for v in value]
    numbers = np.asarray(np.arange(int(np.prod(shape, dtype=int))).reshape(shape)[place])
    flat = numbers.ravel()
    turns = rounds(flat)
    if len(turns) > ROUNDS:
        raise Error(
            f"np.{ufunc.__name__}.at cannot be compiled with an index that occurs over {ROUNDS} times; write a loop"
        )
    row = wrapped(unwrapped(s.call(np.ravel, [x])))  # a copy
    rest = [v if not _shape_of(v) else _row(s, v, numbers.shape) for v in value]
    for now in turns:
        parts = [v if not _shape_of(v) else at_index(s, v, now) for v in rest]
        set_index(s, row, flat[now], s.call(ufunc, [at_index(s, row, flat[now]), *parts]))
    store(s, x, unwrapped(s.call(np.reshape, [row, shape])))


def _shape_of(x: Any) -> tuple[int, ...]:
    t = type_of(x)
    return () if t is None else t.shape


def _row(s: Specialiser, x: Any, shape: tuple[int, ...]) -> Any:
    return s.call(np.ravel, [s.call(np.broadcast_to, [x, shape])])
