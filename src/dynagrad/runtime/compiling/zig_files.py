"""zig's own cache, such as its stubs of libc, as one sealed archive that is unpacked for each call.

zig does not check whether its cached files are intact, and they become part of libraries. Other compilers have none,
and where libraries are linked without zig (`linking.py`), it makes none.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from ..disk import sealed
from ..disk.contents import combined
from . import toolchain
from .fingerprint import FORMAT


def archive_of(home: Path, tool: toolchain.Compiler, options: Sequence[str]) -> Path | None:
    """The path of the archive of zig's files for a target; None for other compilers, or where zig does not link."""
    if not tool.zig or toolchain.linker(tool, options):
        return None
    target = options[options.index("-target") + 1] if "-target" in options else ""
    return home / f"{combined(FORMAT, tool.identity, target)}.zig"


def unpack(archive: Path, folder: Path) -> frozenset[str]:
    """Unpacks an archive to a folder, and returns the names of its files; none where there is no valid archive."""
    data = sealed.load(archive)
    if data is None:
        return frozenset()
    head, _, content = data.partition(b"\n")
    at, made, found = 0, set[str](), list[str]()
    for name, size in json.loads(head):  # relative, and ours
        found.append(name)
        path = os.path.join(folder, name)
        if (parent := os.path.dirname(path)) not in made:
            os.makedirs(parent, exist_ok=True)
            made.add(parent)
        with open(path, "xb", buffering=0) as file:
            file.write(content[at : at + size])
        at += size
    return frozenset(found)


def keep(archive: Path, folder: Path, before: Collection[str] = ()) -> None:
    """Keeps in the archive what zig made in a folder, beside that which was unpacked there `before`.

    Where that is not possible, zig makes it again.
    """
    with contextlib.suppress(OSError):
        files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        if files.keys() <= set(before):
            return
        contents = {name: path.read_bytes() for name, path in sorted(files.items())}
        head = json.dumps([(name, len(content)) for name, content in contents.items()])
        sealed.save(archive, b"\n".join([head.encode(), b"".join(contents.values())]))
