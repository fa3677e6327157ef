"""Which passes of differentiation are open, so that a number that escaped from a closed one is noticed.

A pass is open while its verb runs; the tag of a function that a derivative returned is open during its calls. Numbers
of an open pass are somebody's business; those of a closed one are a mistake of whoever kept them.
"""

from __future__ import annotations

import gc
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
_taping = 0
_collected = False


class opened:
    """A context that keeps tags open; `tape` is that of the one tag, where a pass backward records."""

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
    """A context in which arrays that were made before may not be written to: what is computed in it is computed again.

    `now` is of the numbers that arrays are counted by (`numbers.fresh`).
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
    """Whether an array with this number is from outside of what is computed again."""
    return made < _sealed.get()


def is_open(tag: int) -> bool:
    return tag in _open


def inside() -> Sequence[Any]:
    """The passes that this thread is in, the innermost last: a tape where one backward records, a tag for others."""
    return _inside.get()


def any_younger(tag: int) -> bool:
    """Whether this thread is in a pass that began after that of this tag."""
    return any((one if isinstance(one, int) else one.tag) > tag for one in _inside.get())


def _users_frame() -> FrameType | None:
    """The innermost one that is not ours."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame = frame.f_back
    return frame


def place() -> str:
    """The line of the user's that is being run, as the end of a message."""
    frame = _users_frame()
    return "" if frame is None else f" ({frame.f_code.co_filename}, line {frame.f_lineno})"


def running() -> str:
    """The text of what the user's line is computing, such as `math.exp(x)`; empty where the source is not to be had."""
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
    """A context whose errors, where they are of derivatives, name the line of the user's; `opened` is one too."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: TracebackType | None) -> None:
        if error is not None:
            _locate(error, trace)


def _locate(error: object, trace: TracebackType | None) -> None:
    """Adds the line to the message of one of our errors, unless it has one: the innermost that is not ours."""
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


class taping:
    """A context that keeps Python's garbage collector from looking through a tape again and again while it grows."""

    def __enter__(self) -> None:
        global _taping, _collected
        with _lock:
            if not _taping:
                _collected = gc.isenabled()
                gc.disable()
            _taping += 1

    def __exit__(self, *_: object) -> None:
        global _taping
        with _lock:
            _taping -= 1
            if not _taping and _collected:
                gc.enable()
