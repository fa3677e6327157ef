"""Sends Ctrl-C to this process while a block runs, for tests of interruptible work."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ctrl_c(seconds: float, within: float | None = None) -> Iterator[None]:
    """Ctrl-C so many seconds after the block has begun, unless it ends before; the block has to end `within` so many
    seconds of that.

    It comes from the clock of the system, as a thread would have to wait for the interpreter. What other tests have
    left is collected first, and what stays is kept from the garbage collector: Python drops an exception that comes
    while that calls back, and answers no signal while it walks over millions of objects. It is kept from it for good,
    or the next such block would walk over all of them again.
    """
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    gc.collect()
    gc.freeze()
    callbacks, gc.callbacks[:] = gc.callbacks[:], []  # those of hypothesis, in which the exception would be lost
    due = time.monotonic() + seconds
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        late = time.monotonic() - due
        gc.callbacks[:] = callbacks
        signal.signal(signal.SIGALRM, before)
        assert within is None or late < within
