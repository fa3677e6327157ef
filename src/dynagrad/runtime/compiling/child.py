"""Child processes that end with this process, also when it is killed, and on Ctrl-C.

A process that is killed cannot end its children, so a second child, a shell, watches over the first: it starts in a
tenth of the time of another Python, which a program that is frozen by PyInstaller or has Python embedded may lack. What
the children do is not known here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_SHELL = "/bin/sh"
# Waits for the end of its input, which means that the parent has died, and then kills the other child's process group.
_WATCH = 'read -r nothing || kill -9 "-$1"'


def interpreter() -> str | None:
    """The running Python as a program that can be started; None where there is none.

    In a frozen program `sys.executable` is the program itself, in an embedding one that or nothing.

    >>> interpreter() == sys.executable
    True
    """
    name = os.path.basename(sys.executable or "").lower()
    if getattr(sys, "frozen", False) or not name.startswith(("python", "pypy")):
        return None
    return sys.executable


def run(command: Sequence[str], environment: Mapping[str, str], place: Path) -> tuple[int, str]:
    """Runs a command in a folder; returns its exit status and its stderr. Raises OSError where it does not start.

    An exception while waiting kills the child and its children first.
    """
    # In a process group of its own: a compiler is several processes, all of which must end.
    group = 0 if os.name == "posix" else None
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    process = subprocess.Popen(
        command, stdin=null, stdout=null, stderr=pipe, env=environment, cwd=place, process_group=group
    )
    with process, _watched(process.pid):
        try:
            _, said = process.communicate()
        except BaseException:
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
            raise
    return process.returncode, said.decode(errors="replace")


@contextmanager
def _watched(group: int) -> Iterator[None]:
    """A context in which another process waits for the end of this one, and then kills the child."""
    watcher = None
    if os.name == "posix":
        with suppress(OSError):
            watcher = subprocess.Popen(
                [_SHELL, "-c", _WATCH, _SHELL, str(group)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
    try:
        yield
    finally:
        if watcher is not None:
            watcher.kill()  # before its input ends
            watcher.communicate()
