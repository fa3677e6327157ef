"""Child processes that end with this process, also when it is killed, and on Ctrl-C, those of other threads included.

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
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from ...forks import close_pipe, register_pipes

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
    """A program that does not start, or was stopped by another thread."""


class CancelScope:
    """Threads whose children are cancelled together: Ctrl-C comes to one thread alone."""

    def __init__(self) -> None:
        self._children: set[Child] = set()
        self._cancelled = False

    def join(self) -> None:
        """Makes the thread that calls it one of them."""
        _of_this_thread.scope = self

    def cancel(self) -> None:
        """Kills all children, also those that are yet to start."""
        self._cancelled = True
        for started in list(self._children):
            started.kill()

    def add(self, started: Child) -> None:
        """Has a child be cancelled with the others."""
        self._children.add(started)
        if self._cancelled:  # by now, or before: then `cancel` has not seen it
            started.kill()

    def done(self, finished: Child) -> None:
        """Lets go of a child. Raises NotStarted where all were cancelled."""
        self._children.discard(finished)
        if self._cancelled:
            raise NotStarted("it was stopped")


_of_this_thread = threading.local()


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

    `piped` is whether another command is to read what it writes, and `fed` whether it reads what `feed` gives it.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        place: Path,
        *,
        piped: bool,
        fed: bool = False,
    ) -> None:
        self._posix, self._owner = os.name == "posix", os.getpid()
        self._start = functools.partial(_started, stderr=subprocess.PIPE, env=environment)
        # In a process group of their own: a compiler is several processes, all of which must end.
        group = 0 if self._posix else None
        source, output = (subprocess.PIPE if wanted else subprocess.DEVNULL for wanted in (fed, piped))
        self._first = self._start(command, stdin=source, stdout=output, cwd=place, process_group=group)
        self._processes, self._finished = [self._first], False
        self._ended = ExitStack()
        self._ended.enter_context(self._first)
        self._scope: CancelScope | None = getattr(_of_this_thread, "scope", None)
        if self._scope is not None:
            self._scope.add(self)

    def feed(self, data: bytes) -> None:
        """Gives the command all that it reads. Where it does not read that, its status says why."""
        assert self._first.stdin is not None
        with suppress(BrokenPipeError), _without_signal():
            self._first.stdin.write(data)
            self._first.stdin.flush()
        _end(self._first)

    def finish(
        self, then: Sequence[str] | None, place: Path, meanwhile: Callable[[], object] | None = None
    ) -> tuple[int, str]:
        """Waits until it has run, and `then` in a folder of its own, as `run` does. From here on a shell watches."""
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
            _end_reading(self._first)  # so that the first one ends where the second one does not read on
        said = [process.communicate()[1] for process in self._processes]
        self._finished = True
        if self._scope is not None:
            self._scope.done(self)
        status = next((process.returncode for process in self._processes if process.returncode), 0)
        return status, b"".join(said).decode(errors="replace")

    def kill(self) -> None:
        """Kills it from another thread than that which waits for it."""
        if any(process.poll() is None for process in self._processes):
            self._kill()

    def _kill(self) -> None:
        if self._posix:
            with suppress(ProcessLookupError):  # all have just ended
                os.killpg(self._first.pid, signal.SIGKILL)
        for process in self._processes:
            process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if os.getpid() != self._owner:  # a fork of the process whose child it is
            return
        with self._ended:
            if self._finished:
                return
            self._kill()
            for process in self._processes:
                _end(process)
                _end_reading(process)
                process.wait()


def _started(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Starts a process. No fork of this process keeps a copy of its pipes: what it reads would have no end, and what
    nobody else reads would be written without end."""
    made: list[subprocess.Popen[bytes]] = []

    def start() -> list[int]:
        made.append(subprocess.Popen(command, **options))
        return [pipe.fileno() for pipe in (made[0].stdin, made[0].stdout) if pipe is not None]

    try:
        register_pipes(start)
    except OSError as error:
        raise NotStarted(*error.args) from error
    return made[0]


def _end_reading(process: subprocess.Popen[bytes]) -> None:
    """Ends what we could read of a process: it goes on without us, or ends as nobody reads it."""
    stream, process.stdout = process.stdout, None  # so that `communicate` does not read it
    if stream is not None:
        close_pipe(stream.fileno(), stream.close)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends what a process reads of us."""
    stream, process.stdin = process.stdin, None  # so that `communicate` does not ask it
    if stream is not None:
        with suppress(BrokenPipeError), _without_signal():
            close_pipe(stream.fileno(), stream.close)


@contextmanager
def _without_signal() -> Iterator[None]:
    """A context in which a pipe that nobody reads is an error, also where this process would end by the signal."""
    if not hasattr(signal, "sigtimedwait") or signal.getsignal(signal.SIGPIPE) != signal.SIG_DFL:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPIPE])
    try:
        yield
    finally:
        signal.sigtimedwait([signal.SIGPIPE], 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _watched(group: int) -> Iterator[None]:
    """A context in which another process waits for the end of this one, and then kills the child."""
    watcher = None
    if os.name == "posix":
        with suppress(OSError):
            watcher = _started(
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
            _end(watcher)
            watcher.wait()
