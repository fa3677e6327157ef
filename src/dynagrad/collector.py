"""Python's garbage collector, off while many values are made that all stay: each search would look at all of them.

It is off where the input bounds what is made: a tape, a term, a graph. Counts of references free values as ever.
"""

from __future__ import annotations

import gc
import os
import threading

_inside: dict[int, int] = {}  # the threads, by the contexts
_switched = False  # whether it was on, and is off because of us


class collecting_later:
    """A context without searches for garbage.

    Python has one collector for all threads: the first that comes here switches it off, and the last that leaves
    switches it on again.

    >>> import gc
    >>> with collecting_later():
    ...     gc.isenabled()
    False
    """

    # No generator, as gradients of small functions come here each time. No lock, as Ctrl-C may come between a lock and
    # what gives it back: threads take turns where functions are called, and each order of these calls is right.

    def __enter__(self) -> None:
        global _switched
        _inside[id(self)] = threading.get_ident()
        if gc.isenabled():
            _switched = True
            gc.disable()

    def __exit__(self, *_: object) -> None:
        if _inside.keys() == {id(self)}:
            _switch_on()  # before it has left, as Ctrl-C may come between
        if _inside.pop(id(self), None) is not None and not _inside:
            _switch_on()

    def __del__(self) -> None:
        self.__exit__()  # Ctrl-C may have come before its first line, or between those of `__enter__`


def _switch_on() -> None:
    global _switched
    if _switched:
        gc.enable()
        _switched = False


def _in_child() -> None:
    """After a fork only the thread that forked is there."""
    gone = [context for context, thread in _inside.items() if thread != threading.get_ident()]
    for context in gone:
        del _inside[context]
    if gone and not _inside:
        _switch_on()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
