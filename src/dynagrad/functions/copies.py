"""Which arrays may still be written to: those that a derivative will be computed from later are copied.

An array that an operation made is nobody else's. It is closed to writing, and need not be copied again. Arrays of users
are copied where an operation keeps them, so that whatever is written into them later, or into a view or a base of
theirs, does not change a derivative.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..graph.buffers import SMALLEST, Lease, copy, is_copy

_FLOAT = np.dtype(np.float64)


def kept(x: Any) -> Any:
    """An argument that a derivative will be computed from later: arrays that may be written to are copied."""
    if type(x) is float or not isinstance(x, np.ndarray) or _closed(x):
        return x
    large = x.size >= SMALLEST and x.dtype is _FLOAT and x.flags.c_contiguous
    if large:
        of, earlier = _COPIES.get(id(x), (None, None))
        if of is not None and of() is x and is_copy(earlier, x):
            return earlier
    made = copy(x)
    made.flags.writeable = False
    if large:
        key = id(x)
        _COPIES[key] = weakref.ref(x, lambda _: _COPIES.pop(key, None)), made
        for oldest in list(_COPIES)[:-16]:
            _COPIES.pop(oldest, None)
    return made


def _closed(x: np.ndarray[Any, Any]) -> bool:
    """Whether an array, and what it is a view of, is closed to writing."""
    at: Any = x
    while isinstance(at, np.ndarray):
        if at.flags.writeable:
            return False
        at = at.base
    return at is None or type(at) is Lease


_COPIES: dict[int, tuple[weakref.ref[Any], np.ndarray[Any, Any]]] = {}
"""The last copies of large arrays, such as the data of a loss function: one that did not change is not copied again."""


def owned(x: Any) -> Any:
    """A result that nobody else has: it is closed to writing, so that it need not be copied again."""
    if type(x) is np.ndarray and (x.base is None or isinstance(x.base, Lease)):
        x.setflags(write=False)
    return x
