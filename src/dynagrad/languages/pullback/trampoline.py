"""Recursion that does not use Python's stack. A recursive function is written as a generator that yields its calls.

It knows nothing of terms.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

Result = TypeVar("Result")
Call = Generator[Any, Any, Result]


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
