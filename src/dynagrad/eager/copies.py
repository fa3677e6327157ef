"""Which arrays may still be written to: those that a derivative will be computed from later are copied.

What a number holds is nobody else's: it was made by an operation, and closed to writing, or it is a copy from here.
Plain arrays are copied where an operation keeps them, so that whatever is written into them later, or into a view or a
base of theirs, does not change a derivative. Whether numpy lets them be written to says nothing: a view may be older.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..ir.buffers import SMALLEST, Lease, copy, is_copy

_FLOAT = np.dtype(np.float64)


def kept(x: Any) -> Any:
    """An argument that a derivative will be computed from later: arrays are copied, unless they are such copies."""
    if type(x) is float or not isinstance(x, np.ndarray):
        return x
    owner: Any = x.base
    if type(owner) is bytes:  # nobody can write to these
        return x
    if x.size < SMALLEST and x.dtype.kind in "fbiu":
        return np.ndarray(x.shape, x.dtype, x.tobytes())
    known = _OURS.get(id(x))
    if known is not None and known() is x:
        return x
    large = x.dtype is _FLOAT and x.flags.c_contiguous
    if large:
        of, earlier = _COPIES.get(id(x), (None, None))
        if of is not None and of() is x and is_copy(earlier, x):
            return earlier
    made = copy(x)
    made.flags.writeable = False
    key = id(made)
    _OURS[key] = weakref.ref(made, lambda _: _OURS.pop(key, None))
    if large:
        _remember(x, made)
    return made


def _remember(x: Any, made: Any) -> None:
    key = id(x)
    _COPIES[key] = weakref.ref(x, lambda _: _COPIES.pop(key, None)), made
    for oldest in list(_COPIES)[:-16]:
        _COPIES.pop(oldest, None)


_OURS: dict[int, weakref.ref[Any]] = {}
"""The copies of large arrays that were made here and are still in use, by id. Nobody else has seen them."""

_COPIES: dict[int, tuple[weakref.ref[Any], np.ndarray[Any, Any]]] = {}
"""The last copies of large arrays, such as the data of a loss function: one that did not change is not copied again."""


def owned(x: Any) -> Any:
    """A result that nobody else has: it is closed to writing, so that it need not be copied again."""
    if type(x) is np.ndarray and (x.base is None or isinstance(x.base, Lease)):
        x.setflags(write=False)
    return x
