"""Interning of large constant arrays by identity, while arrays are known not to change.

Constants of the graph are hash-consed by their numbers, so a function that uses a data set many times would copy and
compare all of it each time. While nothing writes to arrays, the same object has the same numbers, and a lookup by
identity is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

LARGE = 1 << 10
"""The least number of elements for which an array is remembered."""
_MOST = 64  # arrays that are remembered, and so kept alive; the least recently used goes first
_seen: ContextVar[dict[int, tuple[Any, Any]] | None] = ContextVar("seen", default=None)


@contextmanager
def unchanging() -> Iterator[None]:
    """A context in which no array is written to.

    >>> from dynagrad.ir.node import constant
    >>> import numpy as np
    >>> big = np.zeros(10**6)
    >>> with unchanging():
    ...     constant(big) is constant(big)
    True
    """
    before = _seen.set({})
    try:
        yield
    finally:
        _seen.reset(before)


def once(array: Any, make: Callable[[Any], T]) -> T:
    """`make(array)`, computed once for each array; `make` must be the same pure function in every call."""
    seen = _seen.get() if array.size >= LARGE else None
    if seen is None:
        return make(array)
    found = seen.pop(id(array), None) or (array, make(array))
    seen[id(array)] = found  # now the most recently used
    if len(seen) > _MOST:
        del seen[next(iter(seen))]
    made: T = found[1]
    return made
