"""Files that only we wrote, whole: folders nobody else may write to, owners that are looked at, and seals.

A seal is a hash of a file's name and content. It finds damage; against people who write to the folder there is no hash,
and for them owners and modes are looked at: whatever is loaded belongs to this user or to root, and nobody else may
write to it. Where a system has no owners, only seals count. What the files are for is not known here.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_SIZE = 64  # of a hash in hexadecimal


def distrust(folder: Path) -> str:
    """Why files in this folder are not to be trusted; nothing where they are, or where there is no such folder yet.

    A folder of ours that others may write to is made private. What they may have left there is theirs, and not read.

    >>> import tempfile
    >>> distrust(Path(tempfile.mkdtemp()))
    ''
    """
    try:
        found = os.stat(folder)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        return str(error)
    if not stat.S_ISDIR(found.st_mode):
        return f"{str(folder)!r} is no folder"
    if os.name != "posix":
        return ""
    if found.st_uid not in (0, os.geteuid()):
        return (
            f"{str(folder)!r} belongs to the user with the number {found.st_uid}, who may have written anything there"
        )
    if found.st_mode & _OTHERS:
        try:
            os.chmod(folder, 0o700)
        except OSError as error:
            return f"others may write to {str(folder)!r}: {error}"
    return ""


def make(folder: Path) -> None:
    """Make the folder, for us alone. Raises OSError where it cannot be made, or is there and not to be trusted."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    reason = distrust(folder)
    if reason:
        raise PermissionError(reason)


def read(path: Path) -> bytes | None:
    """What is in a file that nobody else may have written; nothing where there is none."""
    try:
        # Not through a link, and not waiting for whoever may write to a pipe.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with open(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                return None
            if os.name == "posix" and (found.st_uid not in (0, os.geteuid()) or found.st_mode & _OTHERS):
                return None
            return file.read()
    except (OSError, ValueError):
        return None


def seal(name: str, data: bytes) -> bytes:
    """The seal of a file with this name and content."""
    digest = hashlib.sha256(b"%d:" % len(data))
    digest.update(data)
    digest.update(name.encode("utf-8", "surrogateescape"))
    return digest.hexdigest().encode()


def load(path: Path) -> bytes | None:
    """What `save` wrote to the file; nothing where it is not there, not ours, or not whole."""
    data = read(path)
    if data is None or data[:_SIZE] != seal(path.name, data[_SIZE:]):
        return None
    return data[_SIZE:]


def save(path: Path, data: bytes) -> None:
    """Write the file with its seal, all of it or nothing, for us alone. Raises OSError.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "x"
    >>> save(path, b"content")
    >>> load(path)
    b'content'
    >>> _ = path.write_bytes(path.read_bytes()[:-1] + b"T")
    >>> load(path) is None
    True
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix="tmp-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(seal(path.name, data) + data)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
