"""Compiled libraries in this process: loaded, called, and stopped by Ctrl-C.

Functions are called with the interpreter lock held, because what they do first is to give it up, through the `Host`
that they get as an argument (the C++ side is `dynagrad/host.hpp`). Every 50 ms they take it back to look for signals,
and if a handler raised, the call raises. No knowledge of what the functions compute lives here.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import CompileError
from ..forks import renewed


class _Host(ctypes.Structure):
    """`dynagrad::Host`: pointers to functions of the interpreter."""

    _fields_ = (("save", ctypes.c_void_p), ("restore", ctypes.c_void_p), ("check", ctypes.c_void_p))


def _pointer(name: str) -> int | None:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value


# Filled once: the functions stay where they are, also after a fork. Only the main thread runs signal handlers, so the
# others are spared taking the lock back for nothing.
_MAIN = _Host(_pointer("PyEval_SaveThread"), _pointer("PyEval_RestoreThread"), _pointer("PyErr_CheckSignals"))
_OTHER = _Host(_MAIN.save, _MAIN.restore, None)


def host() -> int:
    """The address of the `Host` for calls from this thread, to pass where a function takes a `const Host*`.

    >>> host() == host()
    True
    """
    return ctypes.addressof(_MAIN if threading.current_thread() is threading.main_thread() else _OTHER)


class Stop:
    """When native code is to stop: a flag, raised from any thread, and a time of the clock `time.monotonic`.

    `address` is what an `int32_t*` parameter takes, and `nanoseconds` what is left, -1 for no limit.

    >>> stop = Stop()
    >>> stop.raised
    False
    >>> stop.set()
    >>> stop.raised
    True
    """

    __slots__ = ("_flag", "address", "deadline")

    def __init__(self, deadline: float | None = None) -> None:
        self._flag = ctypes.c_int32(0)
        self.address = ctypes.addressof(self._flag)
        self.deadline = deadline

    def until(self, deadline: float | None) -> Stop:
        """The same flag with a time of its own."""
        other = Stop(deadline)
        other._flag, other.address = self._flag, self.address
        return other

    @property
    def nanoseconds(self) -> int:
        """What is left until the time."""
        if self.deadline is None:
            return -1
        return int(min(max(self.deadline - time.monotonic(), 0.0) * 1e9, 2**62))

    @property
    def raised(self) -> bool:
        """Whether the flag is up: by `set`, or because native code itself was told to stop."""
        return self._flag.value != 0

    def set(self) -> None:
        """Raise the flag."""
        self._flag.value = 1

    def clear(self) -> None:
        """Lower the flag, for another run."""
        self._flag.value = 0


class Library:
    """A loaded library and its functions. It stays loaded as long as the process lives, or it is `lent`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._functions = ctypes.PyDLL(str(path))
        except OSError as error:
            raise CompileError(
                f"the compiled library {path} cannot be loaded: {error}\n"
                "  if its folder does not allow programs, set DYNAGRAD_CACHE to one that does"
            ) from None

    def function(self, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
        """The exported function of that name, with the ctypes of its result (None for void) and of its arguments.

        >>> from dynagrad.runtime.compiling.cache import build
        >>> text = 'extern "C" __attribute__((visibility("default"))) double twice(double x) { return 2 * x; }'
        >>> load(build(text)).function("twice", ctypes.c_double, ctypes.c_double)(21.0)
        42.0
        """
        try:
            found = self._functions[name]
        except AttributeError:
            raise CompileError(f"the compiled library {self.path} has no function {name!r}") from None
        found.restype, found.argtypes = result, arguments
        return found

    def __repr__(self) -> str:
        return f"Library({str(self.path)!r})"


_lent: weakref.WeakValueDictionary[Path, Library] = weakref.WeakValueDictionary()
_lending = renewed(threading.RLock())


def lent(path: Path) -> Library:
    """The library at `path`, which is closed when nobody refers to it any more. Who keeps a function of it, or what it
    gave, has to keep the library too.

    >>> from dynagrad.runtime.compiling.cache import build
    >>> library = lent(build("extern \\"C\\" void nothing() {}"))
    >>> library is lent(library.path)
    True
    """
    with _lending:
        found = _lent.get(path)
        if found is None:
            found = _lent[path] = Library(path)
            weakref.finalize(found, _close, found._functions).atexit = False
        return found


def _close(functions: ctypes.PyDLL) -> None:
    """Closes a library, which may stay because of others that opened it."""
    for name in ("dg_forget_workspaces", "dg_forget_blocks"):  # memory that is kept for later calls
        forget = getattr(functions, name, None)
        if forget is not None:
            forget()
    close = ctypes.CDLL(None).dlclose
    close.argtypes, close.restype = (ctypes.c_void_p,), ctypes.c_int
    close(functions._handle)


@functools.cache
def load(path: Path) -> Library:
    """The library at `path`, loaded once per process."""
    return Library(path)
