"""Compiled libraries in this process: loaded, called without the interpreter lock, and interrupted by Ctrl-C.

Functions are called with the interpreter lock held, and release it themselves, through the `Host` that is an argument
(the C++ side is `dynagrad/base/host.hpp`). Every 50 ms they take it back to check for signals; if a handler raised, the
call raises. What the functions compute is not known here.
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
from .shared import SHARED

Host = SHARED.structure("Host")
"""Pointers to functions of the interpreter."""


def _pointer(name: str) -> int | None:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value


# Made once: the functions have the same addresses after a fork. Only the main thread runs signal handlers, so other
# threads need not take the lock back.
MAIN = Host(_pointer("PyEval_SaveThread"), _pointer("PyEval_RestoreThread"), _pointer("PyErr_CheckSignals"))
_OTHER = Host(MAIN.save, MAIN.restore, None)


def host() -> int:
    """The address of the `Host` for calls from this thread, to pass where a function takes a `const Host*`.

    >>> host() == host()
    True
    """
    return ctypes.addressof(MAIN if threading.current_thread() is threading.main_thread() else _OTHER)


class Stop:
    """A signal to native code to stop: a flag, which any thread may raise, and a deadline of `time.monotonic`.

    `address` is the argument for an `int32_t*` parameter, and `nanoseconds` the remaining time, -1 for no limit.

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
        """The same flag with another deadline."""
        other = Stop(deadline)
        other._flag, other.address = self._flag, self.address
        return other

    @property
    def nanoseconds(self) -> int:
        """The time until the deadline."""
        if self.deadline is None:
            return -1
        return int(min(max(self.deadline - time.monotonic(), 0.0) * 1e9, 2**62))

    @property
    def raised(self) -> bool:
        """Whether the flag is raised: by `set`, or by native code that was told to stop."""
        return self._flag.value != 0

    def set(self) -> None:
        """Raises the flag."""
        self._flag.value = 1

    def clear(self) -> None:
        """Lowers the flag, for another run."""
        self._flag.value = 0


class Library:
    """A loaded library and its functions. It stays loaded until the process ends, unless it is `lent`."""

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

    def shared(self, name: str) -> Callable[..., Any]:
        """The function of that name that `shared.h` declares."""
        signature = SHARED.signature(name)
        return self.function(name, signature.result, *signature.parameters)

    def text(self, name: str) -> str:
        """The exported array of characters of that name.

        >>> from dynagrad.runtime.compiling.cache import build
        >>> load(build('extern "C" __attribute__((visibility("default"))) const char said[] = "no";')).text("said")
        'no'
        """
        try:
            found = ctypes.c_char.in_dll(self._functions, name)
        except ValueError:
            raise CompileError(f"the compiled library {self.path} has no text {name!r}") from None
        return ctypes.string_at(ctypes.addressof(found)).decode()

    def __repr__(self) -> str:
        return f"Library({str(self.path)!r})"


_lent: weakref.WeakValueDictionary[Path, Library] = weakref.WeakValueDictionary()
_lending = renewed(threading.RLock())


def lent(path: Path) -> Library:
    """The library at `path`, closed when the last reference to it goes. Who keeps a function of it, or memory that it
    returned, has to keep the library too.

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
    """Closes a library, after freeing the memory that it keeps for later calls."""
    for name in ("dg_forget_workspaces", "dg_forget_blocks"):
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
