"""Threads for compiled code: their number, and one pool for all libraries of the process.

The pool is that of the first library that has one (`dynagrad/graphs/parallel.hpp`). `DYNAGRAD_THREADS` is the number of
threads that work on a large array, the caller included; by default the number of processors for this process, but at
most 8, since most loops over arrays are bound by memory.
"""

from __future__ import annotations

import os
import threading

from ..arguments import from_environment
from ..forks import renewed
from .library import Library
from .shared import SHARED

_MOST = SHARED.constant("kMostThreads")
_lock = renewed(threading.RLock())
_pool: tuple[Library, int] | None = None  # the library that has it, and the address of its `run_in_pool`


def threads() -> int:
    """The number of threads that work on a large array.

    >>> 1 <= threads() <= 64
    True
    """
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return from_environment("DYNAGRAD_THREADS", min(there, 8), _MOST)


def attach(library: Library, count: int | None = None) -> None:
    """Lets a library whose source includes parallel.hpp use `count` threads, by default as many as `threads` says.

    >>> from dynagrad.runtime.compiling import cache
    >>> from dynagrad.runtime import library
    >>> attach(library.load(cache.build("#include <dynagrad/graphs/parallel.hpp>")))
    """
    global _pool
    with _lock:
        if _pool is None:
            _pool = library, library.shared("dg_pool")()
            if hasattr(os, "register_at_fork"):
                forget = library.shared("dg_forget_pool")
                os.register_at_fork(after_in_child=forget)
        pool = _pool[1]
    library.shared("dg_parallel")(pool, count or threads())
