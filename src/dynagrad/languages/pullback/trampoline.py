"""Recursion that does not use Python's stack. A recursive function is written as a generator that yields its calls.

It knows nothing of terms.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ...forks import renewed

Result = TypeVar("Result")
Call = Generator[Any, Any, Result]


_switch = renewed(threading.RLock())
_inside: list[int] = []
_was_on = False
_MANY = 50_000


@contextmanager
def collecting_later() -> Iterator[None]:
    """No search for garbage meanwhile: of many small values that all stay, each search would look at all.

    A term of 10,000 bindings is parsed in two thirds of the time and reduced in a fifth. Python has one collector for
    all threads, so the first that comes here switches it off, and the last that leaves switches it on again. Many
    values are old then: no search looks at them at once, which would take long, and Ctrl-C would wait for it.
    """
    global _was_on
    thread = threading.get_ident()
    came = False
    try:
        with _switch:
            if not _inside:
                _was_on = gc.isenabled()
            _inside.append(thread)
            came = True
            gc.disable()
        yield
    finally:
        if came:
            with _switch:
                _inside.remove(thread)
                if not _inside and _was_on:
                    if gc.get_count()[0] > _MANY and not gc.get_freeze_count():
                        gc.freeze()
                        gc.unfreeze()  # to the oldest generation
                    gc.enable()


def _in_child() -> None:
    """After a fork only the thread that forked is there."""
    _inside[:] = [thread for thread in _inside if thread == threading.get_ident()]
    if not _inside and _was_on:
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def pause() -> Call[None]:
    """A function that does nothing: what calls it may be a generator without other calls, or shows its events."""
    yield from ()


def run(call: Call[Result]) -> Result:
    """What a function written in this way returns.

    >>> def count(n):
    ...     return 0 if n == 0 else 1 + (yield count(n - 1))
    >>> run(count(100_000))
    100000
    """
    stack: list[Call[Any]] = [call]
    value: Any = None
    while stack:
        try:
            inner = stack[-1].send(value)
        except StopIteration as end:
            stack.pop()
            value = end.value
        else:
            stack.append(inner)
            value = None
    result: Result = value
    return result


def watched(call: Call[Result], events: list[Any]) -> Generator[Any, None, Result]:
    """The same, as a generator of the events that the function leaves in a list meanwhile.

    What a call raises is raised where its caller yielded it.
    """
    stack: list[Call[Any]] = [call]
    value: Any = None
    problem: BaseException | None = None
    while stack:
        try:
            if problem is not None:
                raising, problem = problem, None
                inner = stack[-1].throw(raising)
            else:
                inner = stack[-1].send(value)
        except StopIteration as end:
            stack.pop()
            value = end.value
        except Exception as error:
            stack.pop()
            problem = error
        else:
            stack.append(inner)
            value = None
        if events:
            yield from events
            events.clear()
    if problem is not None:
        raise problem
    result: Result = value
    return result
