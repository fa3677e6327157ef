"""Python's garbage collector, off while many values are made that all stay: each search would look at all of them.

It is off where the input bounds what is made: a tape, a term, a graph. Counts of references free values as ever.
"""

from __future__ import annotations

import gc
import os
import threading

from .forks import renewed

_MANY = 50_000
"""From how many new values on they are declared old, so that no search looks at all of them at once, which Ctrl-C would
wait for."""

_switch = renewed(threading.RLock())
_inside: list[int] = []  # the threads
_was_on = False


class collecting_later:
    """A context without searches for garbage.

    Python has one collector for all threads: the first that comes here switches it off, and the last that leaves
    switches it on again.

    >>> import gc
    >>> with collecting_later():
    ...     gc.isenabled()
    False
    """

    # no generator: gradients of small functions come here each time

    def __enter__(self) -> None:
        global _was_on
        came = False
        try:
            with _switch:
                if not _inside:
                    _was_on = gc.isenabled()
                _inside.append(threading.get_ident())
                came = True
                gc.disable()
        except BaseException:  # Ctrl-C: nobody will leave
            if came:
                self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        with _switch:
            _inside.remove(threading.get_ident())
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
