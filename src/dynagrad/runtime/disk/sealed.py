"""Files that are intact and written by this user alone: checks of owners and modes, and seals.

A seal is a hash of a file's name and content, which detects damage. Other users are kept out by owners and modes:
whatever is loaded belongs to this user or to root, and nobody else may write to it. On systems without owners only
seals are checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
from pathlib import Path

if sys.platform != "win32":
    import grp
    import pwd

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_SIZE = 64  # of a hash in hexadecimal


def objection(folder: Path) -> str:
    """Why files in this folder cannot be trusted; empty if they can, or if there is no such folder yet.

    Nobody but this user and root may write to it or replace it: neither it nor a folder above it belongs to, or is
    writable by, another user, unless only owners can move files there (the sticky bit). The path must have no links, as
    from `os.path.realpath`.

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
            return f"{str(level)!r} is not a folder"
        if os.name != "posix":
            return ""
        if found.st_uid not in (0, os.geteuid()):
            return f"{str(level)!r} belongs to the user with the number {found.st_uid}, who may have written anything"
        if _open_to_others(found) and (level == folder or not found.st_mode & stat.S_ISVTX):
            return f"others may write to {str(level)!r}"
    return ""


def _open_to_others(found: os.stat_result) -> bool:
    """Whether other users may write; a group with this user as its only member is not one."""
    if found.st_mode & stat.S_IWGRP and not found.st_mode & stat.S_IWOTH:
        try:
            user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(found.st_gid)
        except (KeyError, OSError):
            return True
        return user.pw_gid != group.gr_gid or any(member != user.pw_name for member in group.gr_mem)
    return bool(found.st_mode & _OTHERS)


def make(folder: Path) -> None:
    """Makes the folder and those above it, for this user alone. Raises OSError where it cannot be trusted."""
    for level in reversed((folder, *folder.parents)):
        if not level.exists():
            level.mkdir(mode=0o700, exist_ok=True)
    reason = objection(folder)
    if reason:
        raise PermissionError(reason)


def read(path: Path) -> bytes | None:
    """The content of a file that no other user can have written; None where there is none."""
    try:
        # no links, and no waiting for the writer of a pipe
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
    """The data that `save` wrote to a file; None where it is missing, not ours, or damaged."""
    data = read(path)
    if data is None or data[:_SIZE] != seal(path.name, data[_SIZE:]):
        return None
    return data[_SIZE:]


def save(path: Path, data: bytes) -> None:
    """Writes a file with its seal, atomically, for this user alone. Raises OSError.

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
    """Writes a file without a seal, atomically, for this user alone; replaces a link. Raises OSError.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "x"
    >>> write(path, b"content")
    >>> read(path)
    b'content'
    """
    name = path.parent / f"tmp-{os.urandom(8).hex()}"
    try:  # from here on, as Ctrl-C may come at any time
        with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
