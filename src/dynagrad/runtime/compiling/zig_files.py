"""zig's own cache, such as its stubs of libc, as one sealed archive that is unpacked for each call.

zig does not check whether its cached files are intact, and they become part of libraries. Other compilers have none.
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
    """The path of the archive of zig's files for a target; None for other compilers."""
    target = options[options.index("-target") + 1] if "-target" in options else ""
    return home / f"{combined(FORMAT, tool.identity, target)}.zig" if tool.zig else None


def unpack(archive: Path, folder: Path) -> bool:
    """Unpacks an archive to a folder; false where there is no valid one."""
    data = sealed.load(archive)
    if data is None:
        return False
    with tarfile.open(fileobj=io.BytesIO(data)) as files:  # ours, whole, and of folders and files alone
        files.extractall(folder, [m for m in files.getmembers() if m.isdir() or m.isreg()])
    return True


def pack(archive: Path, folder: Path) -> None:
    """Packs the files of a folder, if that is possible: zig can make them again."""
    data = io.BytesIO()
    with contextlib.suppress(OSError):
        with tarfile.open(fileobj=data, mode="w") as files:
            files.add(folder, "")
        sealed.save(archive, data.getvalue())
