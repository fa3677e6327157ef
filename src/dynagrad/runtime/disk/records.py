"""Small sealed records in the cache folder, by name: data that is quicker to read than to compute again.

Compiled programs are kept by `compiling/cache.py`.
"""

from __future__ import annotations

import contextlib

from . import sealed
from .folder import trusted_folder

CONTENTS, PLAN, RULES = SUFFIXES = (".contents", ".plan", ".rules")
"""How the names of records end, by what they hold."""


def recall(name: str) -> bytes | None:
    """The record of this name, if it is intact and ours."""
    home, _ = trusted_folder()
    return None if home is None else sealed.load(home / name)


def remember(name: str, data: bytes) -> None:
    """Writes a record, if that is possible.

    >>> remember("example", b"something")
    >>> recall("example")
    b'something'
    """
    home, _ = trusted_folder()
    if home is not None:
        with contextlib.suppress(OSError):
            sealed.make(home)
            sealed.save(home / name, data)
