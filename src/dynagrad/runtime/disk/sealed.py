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
import sys
import tempfile
from pathlib import Path

if sys.platform != "win32":
    import grp
    import pwd

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_SIZE = 64  # of a hash in hexadecimal


def objection(folder: Path) -> str:
    """Why files in this folder are not to be trusted; nothing where they are, or where there is no such folder yet.

    Nobody but this user and root may be able to write to it, or to put another in its place: neither it nor a folder
    above it belongs to somebody else or may be written to by others, unless files there are their owners' alone to move
    (the sticky bit). The path is one without links, as `os.path.realpath` gives it.

    >>> import tempfile
    >>> objection(Path(tempfile.mkdtemp()).resolve())
    ''
    """
    for level in (folder, *folder.parents):
        try:
            found = os.lstat(level)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            return str(error)
        if not stat.S_ISDIR(found.st_mode):
            return f"{str(level)!r} is no folder"
        if os.name != "posix":
            return ""
        if found.st_uid not in (0, os.geteuid()):
            return f"{str(level)!r} belongs to the user with the number {found.st_uid}, who may have written anything"
        if _open_to_others(found) and (level == folder or not found.st_mode & stat.S_ISVTX):
            return f"others may write to {str(level)!r}"
    return ""


def _open_to_others(found: os.stat_result) -> bool:
    """Whether other users may write; a group of which this user is the one member is no other."""
    if found.st_mode & stat.S_IWGRP and not found.st_mode & stat.S_IWOTH:
        try:
            user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(found.st_gid)
        except (KeyError, OSError):
            return True
        return user.pw_gid != group.gr_gid or any(member != user.pw_name for member in group.gr_mem)
    return bool(found.st_mode & _OTHERS)


def make(folder: Path) -> None:
    """Make the folder and those above it for us alone. Raises OSError where it cannot be trusted."""
    for level in reversed((folder, *folder.parents)):
        if not level.exists():
            level.mkdir(mode=0o700, exist_ok=True)
    reason = objection(folder)
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
    write(path, seal(path.name, data) + data)


def write(path: Path, data: bytes) -> None:
    """Write the file as it is, all of it or nothing, for us alone, in the place of a link too. Raises OSError.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "x"
    >>> write(path, b"content")
    >>> read(path)
    b'content'
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix="tmp-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
