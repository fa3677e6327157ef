"""Atomic writes of the files that a command makes: a file is complete, or as it was before.

Links, modes and pipes are kept as a shell would. Models, logs and checkpoints, which nobody pipes, are replaced by
`training/storage/whole.py`, which also waits until the name is on the disk.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from ..errors import Error, cut


def write_file(path: Path, text: str) -> None:
    """Writes a temporary file and renames it when it is complete, so that a failure leaves the old file as it was.

    A link stays a link, and the file keeps its mode. A special file, such as a pipe, is written to directly.
    """
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            path.write_text(text, "utf-8")
        else:
            _replace(path.resolve(), text.encode())
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links; a zero in the name
        said = error.strerror if isinstance(error, OSError) else None
        raise Error(f"{cut(str(path))!r} cannot be written: {said or error}") from None


def _replace(path: Path, data: bytes) -> None:
    beside = path.with_name(f".dynagrad-{secrets.token_hex(8)}")
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    if mode is not None:
        os.close(os.open(path, os.O_WRONLY))  # raises where the old file may not be written
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        if mode is not None:
            beside.chmod(mode)
        beside.replace(path)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()
