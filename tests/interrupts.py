"""Sends Ctrl-C to this process while a block runs, for tests of interruptible work."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ctrl_c(seconds: float) -> Iterator[None]:
    """Ctrl-C so many seconds after the block has begun, unless it ends before."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
