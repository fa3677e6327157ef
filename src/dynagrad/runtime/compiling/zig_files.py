"""What zig keeps from one call to the next, such as its stubs of libc: one sealed file, unpacked for each call.

Zig does not look at whether what it kept is whole, and what it kept goes into libraries. Other compilers keep nothing.
"""

from __future__ import annotations

import contextlib
import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

from ..disk import sealed
from . import toolchain
from .fingerprint import FORMAT, combined


def archive_of(home: Path, tool: toolchain.Compiler, options: Sequence[str]) -> Path | None:
    """Where in a cache folder zig's files for a target are; None for other compilers."""
    target = options[options.index("-target") + 1] if "-target" in options else ""
    return home / f"{combined(FORMAT, tool.identity, target)}.zig" if tool.zig else None


def unpack(archive: Path, folder: Path) -> bool:
    """Puts the files of an archive into a folder; false where there is none that is whole."""
    data = sealed.load(archive)
    if data is None:
        return False
    with tarfile.open(fileobj=io.BytesIO(data)) as files:  # ours, whole, and of folders and files alone
        files.extractall(folder, [m for m in files.getmembers() if m.isdir() or m.isreg()])
    return True


def pack(archive: Path, folder: Path) -> None:
    """Keeps the files of a folder. Where that cannot be, nothing is kept: they can be made again."""
    data = io.BytesIO()
    with contextlib.suppress(OSError):
        with tarfile.open(fileobj=data, mode="w") as files:
            files.add(folder, "")
        sealed.save(archive, data.getvalue())
