"""Calls of the runtime library that may fail: C++ expressions of a status."""

from __future__ import annotations


class Status(str):
    """A call that may fail: the function that makes it returns any status but `kDone` at once."""

    __slots__ = ()
