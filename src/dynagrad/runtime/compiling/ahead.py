"""A compiler that starts before its source is there: it loads its precompiled header while the source is written.

Clang reads the first file that it is given before the header, so here that is one line, which includes a pipe. What the
calls of the compiler are, and where headers are kept, is not known here.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from ...forks import pipes
from .child import Child, NotStarted

SOURCE = "ahead.cpp"
"""The name of the file that a command has to compile."""


class Ahead:
    """A context in which a compiler may start early; it is killed in the end, if its source never came."""

    def __init__(self) -> None:
        self._child: Child | None = None
        self._options: tuple[str, ...] = ()
        self._command: list[str] = []
        self._header: Path | None = None
        self._source: bytes | None = None
        self._pipe = -1
        self._ended = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._ended:
            self._end_pipe()

    def begin(
        self,
        home: Path,
        options: tuple[str, ...],
        command: Callable[[Path], list[str]],
        environment: Mapping[str, str],
        header: Path,
        name: str,
    ) -> None:
        """Starts a compiler with these options in a folder made in `home`, where the precompiled header has a `name`.

        `command` is its call in a folder. Where it does not start, nothing is lost.
        """
        if self._child is not None or not os.path.exists("/dev/fd"):
            return
        with suppress(OSError, NotStarted):
            # removed after the compiler has ended
            scratch = self._ended.enter_context(
                tempfile.TemporaryDirectory(prefix="tmp-", dir=home, ignore_cleanup_errors=True)
            )
            place = Path(scratch)
            os.link(header, place / name)
            reading, self._pipe = os.pipe()
            pipes.add(self._pipe)
            try:
                (place / SOURCE).write_text(f'#include "/dev/fd/{reading}"\n')
                self._options, self._command, self._header = options, command(place), header
                child = Child(self._command, environment, place, piped=True, handles=[reading])
                self._child = self._ended.enter_context(child)
            finally:
                os.close(reading)

    def give(self, options: tuple[str, ...], source: bytes) -> None:
        """Gives the compiler its source, if it runs with these options."""
        if self._child is None or self._source is not None or options != self._options:
            return
        self._source = source
        with suppress(BrokenPipeError), open(self._pipe, "wb", closefd=False) as pipe:  # its status says more
            pipe.write(source)
        self._end_pipe()

    def finish(
        self,
        command: list[str],
        header: Path | None,
        source: bytes,
        then: Sequence[str],
        place: Path,
        meanwhile: Callable[[], object] | None,
    ) -> tuple[int, str] | None:
        """What `Child.finish` returns; None where no compiler runs by this command, with this header and source."""
        child = self._child
        if child is None or (command, header, source) != (self._command, self._header, self._source):
            return None
        self._child = None
        return child.finish(then, place, meanwhile)

    def _end_pipe(self) -> None:
        handle, self._pipe = self._pipe, -1
        if handle >= 0:
            pipes.discard(handle)
            os.close(handle)
