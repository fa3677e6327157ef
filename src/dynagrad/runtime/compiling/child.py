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
from typing import Any, Self

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
    with Child(command, environment, place, piped=then is not None) as first:
        return first.finish(then, place, meanwhile)


class Child:
    """A command that runs in a folder; a context, which kills it in the end if it has not finished. Raises NotStarted.

    `piped` is whether another command is to read what it writes. It inherits the `handles`.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        place: Path,
        *,
        piped: bool,
        handles: Sequence[int] = (),
    ) -> None:
        # In a process group of their own: a compiler is several processes, all of which must end.
        self._posix = os.name == "posix"
        self._start = functools.partial(_started, stderr=subprocess.PIPE, env=environment)
        output, group = (subprocess.PIPE if piped else subprocess.DEVNULL), (0 if self._posix else None)
        self._first = self._start(
            command, stdin=subprocess.DEVNULL, stdout=output, cwd=place, process_group=group, pass_fds=handles
        )
        self._processes, self._finished = [self._first], False
        self._ended = ExitStack()
        self._ended.enter_context(self._first)

    def finish(
        self, then: Sequence[str] | None, place: Path, meanwhile: Callable[[], object] | None = None
    ) -> tuple[int, str]:
        """Waits until it has run, and `then` in a folder of its own; see `run`. From then on it ends with us."""
        self._ended.enter_context(_watched(self._first.pid))
        if meanwhile is not None:
            meanwhile()
        if then is not None:
            assert self._first.stdout is not None
            group = self._first.pid if self._posix else None
            second = self._start(
                then, stdin=self._first.stdout, stdout=subprocess.DEVNULL, cwd=place, process_group=group
            )
            self._processes.append(second)
            self._ended.enter_context(second)
            self._first.stdout.close()  # so that the first one ends where the second one does not read on
        said = [process.communicate()[1] for process in self._processes]
        self._finished = True
        status = next((process.returncode for process in self._processes if process.returncode), 0)
        return status, b"".join(said).decode(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._ended:
            if self._finished:
                return
            if self._posix:
                with suppress(ProcessLookupError):  # all have just ended
                    os.killpg(self._first.pid, signal.SIGKILL)
            for process in self._processes:
                process.kill()
                process.wait()


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
