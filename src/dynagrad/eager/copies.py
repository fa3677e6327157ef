"""Defensive copies: arrays that a derivative will read later are copied if a user could write to them.

The arrays inside a number are private: results of operations, made read-only, or copies from here. Plain arrays are
copied where an operation keeps them as residuals, so that later writes to them, to a view or to a base of theirs, do
not change a derivative. That an array is read-only is not enough, since an older view of it may be writable.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..ir.buffers import SMALLEST, Lease, copy, is_copy

_FLOAT = np.dtype(np.float64)


def kept(x: Any) -> Any:
    """A residual: an array is copied, unless it is such a copy or cannot be written to."""
    if type(x) is float or not isinstance(x, np.ndarray):
        return x
    owner: Any = x.base
    if type(owner) is bytes:  # immutable
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
"""The live copies of large arrays that were made here, by id; they are private."""

_COPIES: dict[int, tuple[weakref.ref[Any], np.ndarray[Any, Any]]] = {}
"""The most recent copies of large arrays, such as the data of a loss function, which are reused while unchanged."""


def owned(x: Any) -> Any:
    """A private result: it is made read-only, so that it need not be copied."""
    if type(x) is np.ndarray and (x.base is None or isinstance(x.base, Lease)):
        x.setflags(write=False)
    return x
