"""Small sealed files in the cache folder, by name: what is quicker to read than to work out again.

What is in them is not known here, and nothing of it is run. Compiled programs are the business of `cache`.
"""

from __future__ import annotations

import contextlib

from . import sealed
from .folder import trusted_folder


def recall(name: str) -> bytes | None:
    """What was kept under this name, if it is whole and ours."""
    home, _ = trusted_folder()
    return None if home is None else sealed.load(home / name)


def remember(name: str, data: bytes) -> None:
    """Keep something small under a name. Where that cannot be, nothing is kept, and nothing is said.

    >>> remember("example", b"something")
    >>> recall("example")
    b'something'
    """
    home, _ = trusted_folder()
    if home is not None:
        with contextlib.suppress(OSError):
            sealed.make(home)
            sealed.save(home / name, data)
