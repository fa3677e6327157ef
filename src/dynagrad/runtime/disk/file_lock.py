"""A lock between processes and between threads: a locked file, which the system unlocks when its holder ends.

Locks that a fork may leave behind are for `forks.py`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from ...forks import renewed
from . import sealed

if sys.platform != "win32":  # on Windows processes do not wait for each other, and the last one wins
    import fcntl

_of_threads: dict[str, threading.RLock] = {}


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Mutual exclusion of threads and processes for a path.

    The system's lock belongs to a process as a whole, and is released when the file is closed anywhere in it, so the
    threads of a process have a lock of their own before it. Raises OSError where the folder of the file cannot be
    written or trusted.
    """
    with _of_threads.setdefault(str(path), renewed(threading.RLock())):
        sealed.make(path.parent)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with open(handle, "wb") as file:
            if sys.platform != "win32":
                with contextlib.suppress(OSError):  # a file system without locks: as on Windows
                    fcntl.lockf(file, fcntl.LOCK_EX)
            yield
