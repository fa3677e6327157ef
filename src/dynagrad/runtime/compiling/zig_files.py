"""zig's own cache, such as its stubs of libc, as one sealed archive that is unpacked for each call.

zig does not check whether its cached files are intact, and they become part of libraries. Other compilers have none.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
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
    head, _, content = data.partition(b"\n")
    at, made = 0, set[str]()
    for name, size in json.loads(head):  # relative, and ours
        path = os.path.join(folder, name)
        if (parent := os.path.dirname(path)) not in made:
            os.makedirs(parent, exist_ok=True)
            made.add(parent)
        with open(path, "xb", buffering=0) as file:
            file.write(content[at : at + size])
        at += size
    return True


def pack(archive: Path, folder: Path) -> None:
    """Packs the files of a folder, if that is possible: zig can make them again."""
    with contextlib.suppress(OSError):
        files = [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in _files(folder)]
        head = json.dumps([(name, len(content)) for name, content in files]).encode()
        sealed.save(archive, b"\n".join([head, b"".join(content for _, content in files)]))


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path
