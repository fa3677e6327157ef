"""What rules write for calls of the runtime library: statements, or calls that may fail.

No operation is known here; the rules are in the other files of this folder.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Status:
    """A call that may fail, as C++: the function that makes it returns any status but `kDone` at once."""

    call: str


Written = str | Status
"""A statement of C++, or a call that may fail."""
