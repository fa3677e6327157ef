"""Limits on the time of an answer: a deadline, at which native code stops and loops in Python raise.

Limits of runs are in `charts/limits.py`, and how native code is stopped in `runtime/library.py`.
"""

from __future__ import annotations

import time
from typing import Any

from ..arguments import real_number
from ..errors import NotConverged
from ..runtime.library import Stop


def stop_after(timeout: Any) -> Stop | None:
    """What stops an answer after so many seconds from now; None without a limit.

    >>> stop_after(None) is None, stop_after(0).nanoseconds
    (True, 0)
    """
    return None if timeout is None else Stop(time.monotonic() + real_number("timeout", timeout, 0))


def look(stop: Stop | None) -> None:
    """Raises NotConverged after the deadline."""
    if stop is not None and stop.nanoseconds == 0:
        raise late()


def late() -> NotConverged:
    """The error after the deadline."""
    return NotConverged("the limit on time was met while derivations were looked for; raise timeout")
