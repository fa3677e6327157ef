"""Python's garbage collector, off while many values are made that all stay: each search would look at all of them.

It is off where the input bounds what is made: a tape, a term, a graph. Counts of references free values as ever.
"""

from __future__ import annotations

import gc
import os
import threading
from operator import methodcaller
from weakref import ref


class _Mark(ref):  # type: ignore[type-arg]  # contexts are further down
    """A weak reference to a context, which can switch the collector on."""

    __slots__ = ()
    enable = staticmethod(gc.enable)


_ENABLE = methodcaller("enable")


_inside: dict[ref[collecting_later], tuple[int, _Mark | None]] = {}
"""The contexts that were not left, each with its thread, and with a mark if it switched the collector off."""
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
    # what gives it back: threads take turns where functions are called, and each order of these calls is right. Ctrl-C
    # may also come before the first line of `__exit__`, which is not called again: the context is freed then, and what
    # its references call is no Python code, in which Python would drop another Ctrl-C.

    __slots__ = ("__weakref__",)

    def __enter__(self) -> None:
        global _switched
        on = gc.isenabled()
        _inside[ref(self, _inside.pop)] = threading.get_ident(), _Mark(self, _ENABLE) if on else None
        if on:
            _switched = True
            gc.disable()
        elif len(_inside) == 1:
            _switched = False

    def __exit__(self, *_: object) -> None:
        if len(_inside) == 1:
            _switch_on()  # before it has left, as Ctrl-C may come between
        del _inside[ref(self)]
        if _switched and not _inside:
            _switch_on()


def _switch_on() -> None:
    global _switched
    if _switched:
        gc.enable()
        _switched = False


def _in_child() -> None:
    """After a fork only the thread that forked is there."""
    gone = [context for context, (thread, _) in _inside.items() if thread != threading.get_ident()]
    for context in gone:
        del _inside[context]
    if gone and not _inside:
        _switch_on()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
