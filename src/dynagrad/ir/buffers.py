"""Memory of large arrays, used again.

The system clears each page of memory that it hands out, which takes longer than the arithmetic on it, and a derivative
makes and drops arrays of the same few sizes over and over. So arrays from here take their memory from what earlier ones
left. It comes back when the last view of an array is gone, whoever had it; `LARGEST` and `MOST` bound what waits here.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np

from ..forks import renewed

SMALLEST = 1 << 13  # elements; below, the allocator of C has memory at hand
LARGEST = 1 << 21  # elements; from here on, pages are large and few
MOST = 1 << 26  # bytes that wait

_lock = renewed(threading.RLock())
_inside = False  # whether somebody who has the lock is changing what stands below; `empty` begins anew
_idle: dict[int, list[bytearray]] = {}  # by size in bytes, the one that was used last at the end
_waiting = 0  # bytes
_FLOAT = np.dtype(np.float64)


class Lease(np.ndarray[Any, Any]):
    """The owner of an array's memory, which it gives back when nobody has the array or a view of it any more.

    An array of a class of its own, for numpy makes such a one the base of what looks at it, and not what it looks at.
    """

    def __del__(self) -> None:
        _give_back(self.base)  # type: ignore[arg-type]  # what it was made of


def empty(shape: tuple[int, ...]) -> Any:
    """As `np.empty`, of floats.

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
    """A copy of an array; that of a large array of floats is in the order of C.

    >>> copy(np.ones(2))
    array([1., 1.])
    """
    if x.dtype != _FLOAT or not SMALLEST <= x.size <= LARGEST:
        return x.copy()
    made = empty(x.shape)
    np.copyto(made, x)
    return made


def is_copy(made: Any, x: Any) -> bool:
    """Whether an array from `copy` has the bits that another one, in the order of C, has now. -0.0 is not 0.0."""
    if made.shape != x.shape:
        return False
    if isinstance(made.base, Lease):
        return bool(made.base.base == x)  # bytes with bytes, the first difference is the end
    return bool((made.reshape(-1).view(np.uint64) == x.reshape(-1).view(np.uint64)).all())


def _give_back(memory: bytearray) -> None:
    global _waiting, _inside
    # Collecting garbage may end a lease at any moment, in the middle of `empty` too: nobody waits for the lock here,
    # and who has it himself takes nothing in.
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
