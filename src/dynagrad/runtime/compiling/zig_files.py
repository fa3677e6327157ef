"""zig's own cache, such as its stubs of libc, as one sealed archive that is unpacked for each call.

zig does not check whether its cached files are intact, and they become part of libraries. It makes more for the first
library than the linker reads. As making files may take longer than linking does, the archive keeps what is read. Other
compilers have none.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ..disk import sealed
from . import toolchain
from .fingerprint import FORMAT, combined

_INDEX = "h/"  # where zig finds what it made


def archive_of(home: Path, tool: toolchain.Compiler, options: Sequence[str]) -> Path | None:
    """The path of the archive of zig's files for a target; None for other compilers."""
    target = options[options.index("-target") + 1] if "-target" in options else ""
    return home / f"{combined(FORMAT, tool.identity, target)}.zig" if tool.zig else None


def unpack(archive: Path, folder: Path, wanted: Mapping[str, str] | None = None) -> frozenset[str]:
    """Unpacks an archive to a folder, or just the files that are wanted, under other names; returns their names in it.

    There are none where there is no valid archive.
    """
    data = sealed.load(archive)
    if data is None:
        return frozenset()
    head, _, content = data.partition(b"\n")
    at, made, found = 0, set[str](), list[str]()
    for name, size in json.loads(head):  # relative, and ours
        if wanted is None or name in wanted:
            found.append(name)
            path = os.path.join(folder, name if wanted is None else wanted[name])
            if (parent := os.path.dirname(path)) not in made:
                os.makedirs(parent, exist_ok=True)
                made.add(parent)
            with open(path, "xb", buffering=0) as file:
                file.write(content[at : at + size])
        at += size
    return frozenset(found)


def keep(archive: Path, folder: Path, before: Collection[str] = (), read: Collection[str] = ()) -> None:
    """Keeps in the archive what zig made in a folder, beside that which was unpacked there `before`.

    Of what it made, files are kept that the linker `read`; all, where that is not known. Where keeping is not possible,
    zig makes them again.
    """
    with contextlib.suppress(OSError):
        files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        if read and all(name in files for name in read):
            files = {n: path for n, path in files.items() if n in read or n in before or n.startswith(_INDEX)}
        if files.keys() <= set(before):
            return
        contents = {name: path.read_bytes() for name, path in sorted(files.items())}
        head = json.dumps([(name, len(content)) for name, content in contents.items()])
        sealed.save(archive, b"\n".join([head.encode(), b"".join(contents.values())]))
