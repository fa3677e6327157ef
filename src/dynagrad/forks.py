"""Fork safety: locks that are free in a child process after a fork, whichever thread of the parent held them, and pipes
whose end the parent alone makes.

Only the thread that forks exists in the child, so nobody there would release a lock of another thread. The locks of
the package are registered by `renewed`, but for the one below. `cached` is here because `functools.cached_property`
takes a lock in some Pythons. Locks between processes are in `runtime/disk/file_lock.py`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar
from weakref import ref

Lock = TypeVar("Lock")
Value = TypeVar("Value")

_locks: set[ref[Any]] = set()


def renewed(lock: Lock) -> Lock:
    """Registers a lock of `threading`: in a child it is free, unless the thread that forked holds it.

    >>> import threading
    >>> lock = renewed(threading.RLock())
    >>> with lock:
    ...     pass
    """
    # Not a WeakSet, which forgets in Python code: Python drops a KeyboardInterrupt that comes there.
    _locks.add(ref(lock, _locks.discard))
    return lock


@contextmanager
def held(lock: Any, timeout: float = -1) -> Iterator[bool]:
    """A context that holds a lock if it can be acquired within the timeout; its value says whether it was.

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


class cached(Generic[Value]):
    """A cached property without a lock, which a child process might wait for, unlike `functools.cached_property`.

    Two threads may compute it at once; one result is kept.

    >>> class Circle:
    ...     @cached
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
            return self  # type: ignore[return-value]  # accessed on the class
        value: Value = instance.__dict__.setdefault(self.name, self.compute(instance))
        return value


_pipes: dict[int, tuple[int, int]] = {}
"""Handles of pipes at whose other end somebody waits for theirs, with the disk and number of each pipe."""
_forking = threading.RLock()
"""Held by whoever forks, and while it is not known whether a handle is open: so a child knows, and can let go of it."""


def register_pipes(make: Callable[[], Sequence[int]]) -> None:
    """Makes handles of pipes at whose other end somebody waits for their end, so that children close their copies.

    >>> reading, writing = os.pipe()
    >>> register_pipes(lambda: [writing])
    >>> close_pipe(writing, lambda: os.close(writing))
    """
    with _forking:
        for handle in make():
            _pipes[handle] = _identity(handle)


def close_pipe(handle: int, close: Callable[[], object]) -> None:
    """Closes a handle of `register_pipes` by a function; no fork comes between."""
    with _forking:
        _pipes.pop(handle, None)
        close()


def _identity(handle: int) -> tuple[int, int]:
    found = os.fstat(handle)
    return found.st_dev, found.st_ino


def _renew() -> None:
    try:
        for handle, pipe in list(_pipes.items()):
            with suppress(OSError):
                if _identity(handle) == pipe:  # after Ctrl-C the number may be that of another file
                    _let_go(handle)
        _pipes.clear()
        for lock in [lock for known in list(_locks) if (lock := known()) is not None]:
            if lock.acquire(blocking=False):  # it was free, or held by the thread that forked, which will release it
                lock.release()
            else:
                lock._at_fork_reinit()  # as the standard library does with its own locks
    finally:
        _forking.release()  # acquired by the parent


def _let_go(handle: int) -> None:
    """Closes a handle, whose number is then that of nothing: what has the number may close it."""
    os.close(handle)  # first, as there may be no number left
    nothing = os.open(os.devnull, os.O_WRONLY)
    if nothing != handle:
        os.dup2(nothing, handle, inheritable=False)
        os.close(nothing)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_renew)
