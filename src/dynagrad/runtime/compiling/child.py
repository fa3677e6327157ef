"""Child processes that end with this process, also when it is killed, and on Ctrl-C.

A process that is killed cannot end its children, so a second child, a shell, watches over the first: it starts in a
tenth of the time of another Python, which a program that is frozen by PyInstaller or has Python embedded may lack. What
the children do is not known here.
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

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


class NotStarted(OSError):
    """A program that does not start."""


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    place: Path,
    *,
    then: Sequence[str] | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> tuple[int, str]:
    """Runs a command in a folder; returns its exit status and its stderr. Raises NotStarted.

    `then` is a command that reads what the first one writes, and starts at once: two programs start in the time of one.
    Its status counts where the first one's is 0. `meanwhile` is called while the first one runs, and is over before
    `then` starts. An exception, also while waiting, kills the children and theirs first.
    """
    # In a process group of their own: a compiler is several processes, all of which must end.
    posix, pipe, null = os.name == "posix", subprocess.PIPE, subprocess.DEVNULL
    start = functools.partial(_started, stderr=pipe, env=environment, cwd=place)
    first = start(command, stdin=null, stdout=null if then is None else pipe, process_group=0 if posix else None)
    processes = [first]
    with ExitStack() as ended:
        ended.enter_context(first)
        ended.enter_context(_watched(first.pid))
        try:
            if meanwhile is not None:
                meanwhile()
            if then is not None:
                assert first.stdout is not None
                group = first.pid if posix else None
                processes.append(start(then, stdin=first.stdout, stdout=null, process_group=group))
                ended.enter_context(processes[-1])
                first.stdout.close()  # so that the first one ends where the second one does not read on
            said = [process.communicate()[1] for process in processes]
        except BaseException:
            if posix:
                with suppress(ProcessLookupError):  # all have just ended
                    os.killpg(first.pid, signal.SIGKILL)
            for process in processes:
                process.kill()
                process.wait()
            raise
    status = next((process.returncode for process in processes if process.returncode), 0)
    return status, b"".join(said).decode(errors="replace")


def _started(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, **options)
    except OSError as error:
        raise NotStarted(*error.args) from error


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
