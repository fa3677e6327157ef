"""Files and folders that are replaced as a whole: each is new, or as it was before, whatever happens in between.

Outputs of commands, models, logs and checkpoints are written so; what is in them is for those who write them. Files of
the cache carry seals, which `sealed.py` reads.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...errors import Error, shown_path


def replace_file(path: Path, data: bytes) -> None:
    """A file with new contents. Raises Error where it cannot be written; it is then as it was.

    A link stays a link, and a file keeps its mode; one that may not be written is not replaced. What is no file, such
    as a pipe, is written to directly.
    """
    before = ", and is as it was"
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            before = ""
            path.write_bytes(data)
        else:
            _replace(_followed(path), data)
    except (OSError, ValueError) as error:  # a zero in the name; a loop of links
        raise Error(f"{shown_path(path)} cannot be written{before}: {why(error)}") from None


def _followed(path: Path) -> Path:
    """The path with all links followed. Raises OSError for links in a circle, which newer Pythons leave as they are."""
    loop = OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    try:
        found = path.resolve()
    except RuntimeError:  # before Python 3.13
        raise loop from None
    if found.is_symlink():
        raise loop
    return found


def _replace(path: Path, data: bytes) -> None:
    beside = path.with_name(f".dynagrad-{secrets.token_hex(8)}")
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    if mode is not None:
        os.close(os.open(path, os.O_WRONLY))  # raises where the old file may not be written
    try:
        write(beside, data)
        if mode is not None:
            beside.chmod(mode)
        os.replace(beside, path)
        sync(path.parent)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


def replace_folder(folder: Path, files: Mapping[str, bytes], ours: Callable[[Path], str | None]) -> None:
    """A folder with these files, and no others. Raises Error where it cannot be written; it is then as it was.

    `ours` is asked of a folder that is there, and gives the reason why it may not be replaced, or None.
    """
    try:
        folder = _followed(folder)
        there = os.path.lexists(folder)
        if there and (reason := ours(folder)) is not None:
            raise Error(f"{shown_path(folder)} is not replaced: {reason}")
        beside = folder.with_name(f".dynagrad-{secrets.token_hex(8)}")
        try:
            beside.mkdir()
            for name, data in files.items():
                write(beside / name, data)
            sync(beside)
            _exchange(beside, folder) if there else os.rename(beside, folder)
            sync(folder.parent)
        finally:  # what was there before, or what could not be written
            shutil.rmtree(beside, ignore_errors=True)
    except (OSError, ValueError) as error:
        raise Error(f"{shown_path(folder)} cannot be written, and is as it was: {why(error)}") from None


def write(path: Path, data: bytes) -> None:
    """A new file, which is on the disk when this returns."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync(folder: Path) -> None:
    """The names in a folder, on the disk; where the system has no such thing, nothing."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):  # of a folder that cannot be listed, too
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def why(error: Exception) -> str:
    """What an error of the system says."""
    return str(error.strerror if isinstance(error, OSError) and error.strerror else error)


def _exchange(one: Path, two: Path) -> None:
    """Two folders under each other's names, at once where the system can."""
    names = (os.fsencode(one), os.fsencode(two))
    library: Any = ctypes.CDLL(None) if sys.platform != "win32" else None
    if hasattr(library, "renameat2"):  # Linux
        here = ctypes.c_int(-100)
        if library.renameat2(here, names[0], here, names[1], ctypes.c_uint(2)) == 0:
            return
    elif hasattr(library, "renamex_np") and library.renamex_np(*names, ctypes.c_uint(2)) == 0:
        return  # macOS
    before = two.with_name(f".dynagrad-{secrets.token_hex(8)}")
    os.rename(two, before)
    try:
        os.rename(one, two)
    except OSError:
        os.rename(before, two)
        raise
    os.rename(before, one)
