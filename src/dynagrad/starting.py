"""Ctrl-C while the command line starts or ends: the process leaves with its exit status, and no traceback.

Importing the package takes most of a start, so this is imported first, by `dynagrad/__init__.py`, and imports nothing
that takes time. In a process that is not the command line it does nothing. While a command works, Ctrl-C is Python's
own KeyboardInterrupt, which `cli/commands.py` answers.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys

INTERRUPTED = 130
"""The exit status of a command that Ctrl-C ended."""


def _leave(*_: object) -> None:
    """Ends the process at once: nothing is half done that would have to be undone."""
    try:
        os.write(2, b"interrupted\n")
    finally:  # standard error may be closed
        os._exit(INTERRUPTED)


def _ignore() -> None:
    """For the very end, where Python gives signals back to the system: a command that is over has its own status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def leave_on_interrupt() -> None:
    """Ctrl-C ends this process from now on, unless it means something else already, such as nothing."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        try:
            signal.signal(signal.SIGINT, _leave)
        except ValueError:  # in another thread than the main one
            return
        atexit.register(_ignore)


class interruptible:
    """A block in which Ctrl-C raises KeyboardInterrupt, if it would end the process outside of it."""

    def __enter__(self) -> None:
        self.leaves = signal.getsignal(signal.SIGINT) is _leave
        if self.leaves:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(self, *_: object) -> None:
        if self.leaves:
            signal.signal(signal.SIGINT, _leave)


def _is_command_line() -> bool:
    """Whether this process is `dynagrad`, or `python -m dynagrad.cli`, whose module is imported after the package."""
    given, whole = getattr(sys, "argv", []), sys.orig_argv
    if given[:1] == ["-m"]:
        return any(text in " ".join(whole[1:]) for text in ("-m dynagrad.cli", "-mdynagrad.cli"))
    return bool(given) and os.path.basename(given[0]).lower() in ("dynagrad", "dynagrad.exe", "dynagrad-script.py")


if _is_command_line():
    leave_on_interrupt()
