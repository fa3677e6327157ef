"""Sends Ctrl-C to this process while a block runs, for tests of interruptible work."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ctrl_c(seconds: float) -> Iterator[None]:
    """Ctrl-C so many seconds after the block has begun, unless it ends before.

    Python drops an exception that comes while the garbage collector calls back, as it may for long with what other
    tests have left; so that is collected first.
    """
    gc.collect()
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
