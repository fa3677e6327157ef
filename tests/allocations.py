"""Counts the allocations of native code, and makes them fail at will.

Only libraries built and loaded inside `counted` have the counter of `base/memory.hpp`; those of other tests do not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dynagrad.runtime import library
from dynagrad.runtime.compiling import toolchain


class Allocations:
    """Those of all libraries that were loaded since."""

    def __init__(self) -> None:
        self.libraries: list[library.Library] = []

    def fail(self, number: int) -> int:
        """Lets the allocation with this number from now on find no memory, in each; 0 for none.

        The most that was left of the number before.
        """
        left = 0
        for count in self._all("dg_fail_allocation"):
            left = max(left, count.value)
            count.value = number
        return left

    def live(self) -> int:
        """How many there are that were not given back, without what waits for the next call."""
        for one in self.libraries:
            for name in ("dg_forget_blocks", "dg_forget_workspaces"):
                if hasattr(one._functions, name):
                    one.function(name, None)()
        return sum(count.value for count in self._all("dg_live_allocations"))

    def _all(self, name: str) -> Iterator[ctypes.c_int64]:
        for one in self.libraries:
            try:
                yield ctypes.c_int64.in_dll(one._functions, name)
            except ValueError:  # a library without code that allocates
                continue


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Allocations]:
    """Allocations of what is compiled meanwhile."""
    monkeypatch.setenv("DYNAGRAD_CXX", " ".join([*toolchain._ziglang().command, "-DDYNAGRAD_FAILURES"]))
    made = Allocations()
    init = library.Library.__init__
    monkeypatch.setattr(
        library.Library, "__init__", lambda self, path: (init(self, path), made.libraries.append(self))[0]
    )
    yield made
    made.fail(0)
