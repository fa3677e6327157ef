"""A compiler that starts before its source is there: it loads its precompiled header while the source is written.

Clang reads its main file before the precompiled header. So the main file is one line, which includes the standard
input, and the source comes there. What the calls of the compiler are, and where headers are kept, is not known here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ..disk.folder import scratch
from .child import Child

SOURCE = "ahead.cpp"
"""The name of the main file."""

_INPUT = "/dev/stdin"


@dataclass(frozen=True)
class _Started:
    """A compiler, its command, its folder, and the name of the precompiled header there."""

    child: Child
    command: list[str]
    place: Path
    header: str


class Ahead:
    """A context in which one compiler may start early; it is killed in the end, unless it was waited for."""

    def __init__(self) -> None:
        self._started: _Started | None = None
        self._ended = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(
        self,
        home: Path,
        command: Callable[[Path], list[str]],
        environment: Mapping[str, str],
        header: Path,
        name: str,
    ) -> None:
        """Starts a compiler in a folder that is made in `home`, where the precompiled header has a `name`.

        `command` is its call in a folder. Where it does not start, or the disk has no links, nothing is lost.
        """
        if self._started is not None or not os.path.lexists(_INPUT):  # it may lead nowhere for this process
            return
        with suppress(OSError), ExitStack() as ended:
            place = ended.enter_context(scratch(home))
            os.link(header, place / name)
            (place / SOURCE).write_text(f'#include "{_INPUT}"\n')
            words = command(place)
            child = ended.enter_context(Child(words, environment, place, fed=True, piped=True))
            self._started = _Started(child, words, place, name)
            self._ended = ended.pop_all()

    def finish(
        self,
        command: list[str],
        header: Path,
        source: bytes,
        then: Sequence[str],
        place: Path,
        meanwhile: Callable[[], object] | None,
    ) -> tuple[int, str] | None:
        """Compiles a source: the status and what was said, as of `child.run`; `then` runs in a `place` of its own.

        None where no compiler runs by this command with this header; one that runs by another is killed.
        """
        started = self._started
        if started is None:
            return None
        try:
            if command != started.command or not os.path.samefile(started.place / started.header, header):
                return None
            started.child.feed(source)
            return started.child.finish(then, place, meanwhile)
        finally:
            self.stop()

    def stop(self) -> None:
        """Kills the compiler, unless it was waited for."""
        self._started = None
        self._ended.close()
