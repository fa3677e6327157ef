"""Locks that are free in a child process after a fork, whichever thread of the parent held them.

Only the thread that forks lives on in the child: what another one held nobody gives back there.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet


class Lock:
    """A re-entrant lock.

    >>> lock = Lock()
    >>> with lock.held() as got:
    ...     got
    True
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    @contextmanager
    def held(self, timeout: float = -1) -> Iterator[bool]:
        """Whether it was got in so many seconds; if so, it is held meanwhile."""
        lock = self._lock  # the one to give back, also where a fork came in between
        got = lock.acquire(timeout=timeout)
        try:
            yield got
        finally:
            if got:
                lock.release()

    def _renew(self) -> None:
        self._lock = threading.RLock()


_locks: WeakSet[Lock] = WeakSet()


def _renew_all() -> None:
    for lock in list(_locks):
        lock._renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
