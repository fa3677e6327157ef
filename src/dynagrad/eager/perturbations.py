"""Which differentiation passes are open, so that numbers that escaped from a closed one are detected.

A pass is open while its verb runs; the tag of a function that a derivative returned is open during calls of it. A
number of a closed pass in a result is an error of the user, who kept it. Here is also which line of the user's is
running, for messages of errors.

The numbers themselves are in `numbers.py`.
"""

from __future__ import annotations

import itertools
import linecache
import os
import sys
import threading
from collections.abc import Sequence
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any

import numpy as np

from ..errors import Error, NotConverged, NotDifferentiable
from ..forks import renewed

_NOT_THE_USERS = tuple(os.path.dirname(os.path.abspath(f)) + os.sep for f in (os.path.dirname(__file__), np.__file__))
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OURS = tuple(os.path.join(_PACKAGE, part) + os.sep for part in ("eager", "compiler", "ir", "autodiff", "passes"))
_lock = renewed(threading.RLock())
_open: dict[int, int] = {}
_inside: ContextVar[tuple[Any, ...]] = ContextVar("_inside", default=())


class opened:
    """A context in which tags are open; `tape` is that of the tag, where a reverse pass records."""

    __slots__ = ("before", "passes", "tags")

    def __init__(self, *tags: int, tape: Any = None) -> None:
        self.tags, self.passes = tags, tags if tape is None else (tape,)

    def __enter__(self) -> None:
        self.before = _inside.get()
        _inside.set((*self.before, *self.passes))
        with _lock:
            for tag in self.tags:
                _open[tag] = _open.get(tag, 0) + 1

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        _inside.set(self.before)
        with _lock:
            for tag in self.tags:
                _open[tag] -= 1
                if not _open[tag]:
                    del _open[tag]
        if error is not None:
            ours = error.__cause__ if isinstance(error, ValueError | TypeError) else None
            if type(ours) is Error:  # numpy says "setting an array element with a sequence" instead
                raise ours.with_traceback(trace) from None
            _locate(error, trace)


_sealed: ContextVar[int] = ContextVar("_sealed", default=0)


class sealed:
    """A context of a computation that will be run again, so that arrays older than `now` may not be written to in it.

    `now` is a serial number of `numbers.fresh`.
    """

    __slots__ = ("before", "now")

    def __init__(self, now: int) -> None:
        self.now = now

    def __enter__(self) -> None:
        self.before = _sealed.get()
        _sealed.set(self.now)

    def __exit__(self, *_: object) -> None:
        _sealed.set(self.before)


def is_sealed(made: int) -> bool:
    """Whether an array with this serial number is older than the computation that will be run again."""
    return made < _sealed.get()


def is_open(tag: int) -> bool:
    """Whether the pass of a tag is open, in any thread."""
    return tag in _open


def inside() -> Sequence[Any]:
    """The open passes of this thread, innermost last: the tape of a reverse pass, the tag of another."""
    return _inside.get()


def any_younger(tag: int) -> bool:
    """Whether this thread has an open pass that is younger than this tag."""
    return any((one if isinstance(one, int) else one.tag) > tag for one in _inside.get())


def _users_frame() -> FrameType | None:
    """The innermost frame that is neither of this package nor of numpy."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back
    return frame


def place() -> str:
    """The file and line of the user's code that is running, as the end of a message."""
    frame = _users_frame()
    return "" if frame is None else f" ({frame.f_code.co_filename}, line {frame.f_lineno})"


def running() -> str:
    """The text of the expression that the user's line is computing, such as `math.exp(x)`; empty without the source."""
    frame = _users_frame()
    if frame is None:
        return ""
    positions = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    first, last, start, end = positions
    if first is None or first != last:
        return ""
    line = linecache.getline(frame.f_code.co_filename, first, frame.f_globals)
    return line.encode()[start:end].decode(errors="replace")


class located:
    """A context in which errors about derivatives get the file and line of the user's code; `opened` is one too."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: TracebackType | None) -> None:
        if error is not None:
            _locate(error, trace)


def _locate(error: object, trace: TracebackType | None) -> None:
    """Adds the innermost line of the user's code to the message of an error of this package, unless it has one."""
    if type(error) not in _LOCATED or len(error.args) != 1 or ", line " in str(error):  # type: ignore[attr-defined]  # functions take attributes
        return
    raised, line = "", ""
    while trace is not None:
        raised = trace.tb_frame.f_code.co_filename
        if not raised.startswith(_NOT_THE_USERS):
            line = f" ({raised}, line {trace.tb_lineno})"
        trace = trace.tb_next
    if raised.startswith(_OURS):
        error.args = (f"{error}{line or place()}",)  # type: ignore[attr-defined]  # functions take attributes


_LOCATED = (Error, NotDifferentiable, NotConverged)
