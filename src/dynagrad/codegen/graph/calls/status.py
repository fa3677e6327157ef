"""What a call of the runtime may be: an expression whose value says whether to go on."""

from __future__ import annotations


class Status(str):
    """A call that may fail: of anything but `kDone` the function returns at once."""

    __slots__ = ()
