"""A pool of memory for large arrays, so that temporaries reuse what earlier ones left.

The operating system clears each page that it hands out, which takes longer than the arithmetic on it, and a derivative
makes and drops arrays of the same few sizes over and over. Memory returns to the pool when the last view of an array is
gone; `LARGEST` and `MOST` bound what the pool holds.

Here is memory of numpy's arrays alone; compiled code has its own (`graphs/call.hpp`).
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from ..forks import renewed

SMALLEST = 1 << 13  # elements; below, the allocator of C has memory at hand
LARGEST = 1 << 21  # elements; from here on, pages are large and few
MOST = 1 << 26  # bytes in the pool

_lock = renewed(threading.RLock())
_inside = False  # whether the thread that has the lock is changing the pool; reset by the next call of `empty`
_idle: dict[int, list[bytearray]] = {}  # by size in bytes, least recently used sizes first
_waiting = 0  # bytes in the pool
_FLOAT = np.dtype(np.float64)


class Lease(np.ndarray[Any, Any]):
    """The owner of an array's memory, which returns it to the pool when the array and all views of it are gone.

    It is a subclass of ndarray, since numpy collapses chains of bases only through plain arrays: views keep it as base.
    """

    def __del__(self) -> None:
        _release(self.base)  # type: ignore[arg-type]  # the memory that it was made from


def empty(shape: tuple[int, ...]) -> Any:
    """`np.empty` of floats, in memory from the pool where the array is large.

    >>> empty((2, 3)).shape, empty((200, 300)).shape
    ((2, 3), (200, 300))
    """
    global _waiting, _inside
    elements = math.prod(shape)
    if not SMALLEST <= elements <= LARGEST:
        return np.empty(shape)
    size, memory = elements * 8, None
    with _lock:
        _inside = True
        if size in _idle:
            found = _idle.pop(size)
            memory = found.pop()
            _waiting -= size
            if found:
                _idle[size] = found
        _inside = False
    return Lease(shape, _FLOAT, bytearray(size) if memory is None else memory).view(np.ndarray)


def copy(x: Any) -> Any:
    """A copy of an array; the copy of a large array of floats is in row-major order, in memory from the pool.

    >>> copy(np.ones(2))
    array([1., 1.])
    """
    if x.dtype != _FLOAT or not SMALLEST <= x.size <= LARGEST:
        return x.copy()
    made = empty(x.shape)
    np.copyto(made, x)
    return made


def is_copy(made: Any, x: Any) -> bool:
    """Whether an array from `copy` has the same bits as a row-major array has now. -0.0 is not 0.0."""
    if made.shape != x.shape:
        return False
    if isinstance(made.base, Lease):
        return bool(made.base.base == x)  # compares bytes, up to the first difference
    return bool((made.reshape(-1).view(np.uint64) == x.reshape(-1).view(np.uint64)).all())


def _release(memory: bytearray) -> None:
    global _waiting, _inside
    # The garbage collector may end a lease at any moment, in the middle of `empty` too: so this never waits for the
    # lock, and drops the memory if its own thread is changing the pool.
    if not _lock.acquire(blocking=False):
        return
    if _inside:
        return _lock.release()
    try:
        _inside = True
        size = len(memory)
        while _idle and _waiting + size > MOST:
            oldest = next(iter(_idle))
            _idle[oldest].pop()
            _waiting -= oldest
            if not _idle[oldest]:
                del _idle[oldest]
        _idle.setdefault(size, []).append(memory)
        _waiting += size
        _inside = False
    finally:
        _lock.release()
