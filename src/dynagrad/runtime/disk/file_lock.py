"""A lock between processes, and between the threads of one: a file that the system unlocks when its holder ends.

What a lock protects is not known here.
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

if sys.platform != "win32":  # there, processes do not wait for each other, and the last one wins
    import fcntl

_of_threads: dict[str, threading.RLock] = {}


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Only one thread of one process at a time is in here, for one path.

    The system's lock goes with the process that held it, dead or alive. It belongs to the process as a whole, and
    closing the file anywhere in it drops it, so the threads of a process have a lock of their own before it. Raises
    OSError where the folder of the file cannot be written or trusted.
    """
    with _of_threads.setdefault(str(path), renewed(threading.RLock())):
        sealed.make(path.parent)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with open(handle, "wb") as file:
            if sys.platform != "win32":
                with contextlib.suppress(OSError):  # a file system without locks is as bad
                    fcntl.lockf(file, fcntl.LOCK_EX)
            yield
