"""zig's own cache, such as its stubs of libc, as one sealed archive that is unpacked for each call.

zig does not check whether its cached files are intact, and they become part of libraries. It makes more for the first
library than it reads for others. As making files may take longer than linking does, the archive keeps what is read.
Other compilers have none.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..disk import sealed
from . import toolchain
from .fingerprint import FORMAT, combined


@dataclass(frozen=True)
class Unpacked:
    """The files that an archive has, and whether it is known that they are needed."""

    names: frozenset[str]
    needed: bool


def archive_of(home: Path, tool: toolchain.Compiler, options: Sequence[str]) -> Path | None:
    """The path of the archive of zig's files for a target; None for other compilers."""
    target = options[options.index("-target") + 1] if "-target" in options else ""
    return home / f"{combined(FORMAT, tool.identity, target)}.zig" if tool.zig else None


def unpack(archive: Path, folder: Path) -> Unpacked | None:
    """Unpacks an archive to a folder; None where there is no valid one."""
    data = sealed.load(archive)
    if data is None:
        return None
    head, _, content = data.partition(b"\n")
    needed, sizes = json.loads(head)
    at, made = 0, set[str]()
    for name, size in sizes:  # relative, and ours
        path = os.path.join(folder, name)
        if (parent := os.path.dirname(path)) not in made:
            os.makedirs(parent, exist_ok=True)
            made.add(parent)
        with open(path, "xb", buffering=0) as file:
            file.write(content[at : at + size])
        if not needed:
            os.utime(path, ns=(0, time.time_ns()))
        at += size
    return Unpacked(frozenset(name for name, _ in sizes), needed)


def keep(archive: Path, folder: Path, before: Unpacked | None) -> None:
    """Keeps in the archive what zig made in a folder, and what it read of that which was unpacked there `before`.

    Where that is not possible, zig makes it again.
    """
    with contextlib.suppress(OSError):
        files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        if not files or (before is not None and before.needed and files.keys() <= before.names):
            return
        needed = before is not None
        if before is not None and not before.needed:
            read = {name for name in before.names & files.keys() if files[name].stat().st_atime_ns}
            if not read:  # disks may not say what is read
                return
            files = {name: path for name, path in files.items() if name in read or name not in before.names}
        contents = {name: path.read_bytes() for name, path in sorted(files.items())}
        head = json.dumps([needed, [(name, len(content)) for name, content in contents.items()]])
        sealed.save(archive, b"\n".join([head.encode(), b"".join(contents.values())]))
