"""Locks that are free in a child process after a fork, whichever thread of the parent held them.

Only the thread that forks lives on in the child: what another one held nobody gives back there. Every lock of the
package is made by `renewed`. `kept` is here for the same reason: that of `functools` takes a lock in some Pythons.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar
from weakref import WeakSet

Lock = TypeVar("Lock")
Value = TypeVar("Value")

_locks: WeakSet[Any] = WeakSet()


def renewed(lock: Lock) -> Lock:
    """A lock of `threading`, which a child begins with as if nobody but the thread that forked ever had it.

    >>> import threading
    >>> lock = renewed(threading.RLock())
    >>> with lock:
    ...     pass
    """
    _locks.add(lock)
    return lock


@contextmanager
def held(lock: Any, timeout: float = -1) -> Iterator[bool]:
    """Whether a lock was got in so many seconds; if so, it is held meanwhile.

    >>> import threading
    >>> with held(threading.Lock(), 0.1) as got:
    ...     got
    True
    """
    got = lock.acquire(timeout=timeout)
    try:
        yield got
    finally:
        if got:
            lock.release()


class kept(Generic[Value]):
    """A property that is computed once, by `functools.cached_property` but for its lock, which a child might wait for.

    Two threads may compute it at once, and one result is kept.

    >>> class Circle:
    ...     @kept
    ...     def area(self):
    ...         print("computed")
    ...         return 3.0
    >>> circle = Circle()
    >>> circle.area + circle.area
    computed
    6.0
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Value:
        if instance is None:
            return self  # type: ignore[return-value]  # the property itself, for those who look at the class
        value: Value = instance.__dict__.setdefault(self.name, self.compute(instance))
        return value


def _renew() -> None:
    for lock in list(_locks):
        if lock.acquire(blocking=False):  # nobody had it, or the thread that forked, which goes on to give it back
            lock.release()
        else:
            lock._at_fork_reinit()  # what the standard library does with locks of its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
