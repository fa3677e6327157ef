"""Compiled programs on disk: compiled once, found by the fingerprint of everything that went into them.

An entry is three files in the cache folder: the library, its source beside it for people to read, and a seal, written
last, that holds the library's hash. What has no seal that fits is no entry, so that neither a killed compiler nor a
damaged disk can make one; nor is what others may have written (`sealed`). Which folder it is says `cache_folder`. No
knowledge of flags lives here.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ..errors import CompileError
from . import sealed, toolchain
from .cache_folder import Temporary, temporary_folder, trusted_folder
from .file_lock import file_lock
from .fingerprint import fingerprint
from .zig_files import archive_of, pack, unpack


def build(
    source: str, *, optimise: int = 3, flags: Sequence[str] = (), progress: Callable[[str], None] | None = None
) -> Path:
    """The path of the library that `source` compiles to, from the cache if it is there.

    `optimise` is the compiler's level, 0 to 3, and `flags` are more flags for it. `progress` is called with a line of
    text before a compiler starts, and not at all if none does.

    >>> library = build('extern "C" int one() { return 1; }')
    >>> library.with_suffix(".cpp").read_text()
    'extern "C" int one() { return 1; }'
    """
    tool = toolchain.compiler()
    options = (*toolchain.flags(tool, optimise), *flags)
    name = fingerprint(source, tool, options)
    home, reason = trusted_folder()
    for place in (home, Temporary.path):
        found = None if place is None else entry(place, name)
        if found is not None:
            return found
    work = functools.partial(_compile, name=name, source=source, tool=tool, options=options, progress=progress)
    try:
        if home is not None:
            return work(home)
    except OSError as error:
        reason = str(error)
    try:
        return work(temporary_folder(reason))
    except OSError as error:
        raise CompileError(
            f"there is no place for a compiled program: in the cache folder, {reason}; in a temporary one, {error}\n"
            "  make room, or set DYNAGRAD_CACHE to a folder of yours that can be written"
        ) from None


def entry(home: Path, name: str) -> Path | None:
    """The library of that name if it is whole."""
    library = home / (name + toolchain.SUFFIX)
    given = sealed.read(home / f"{name}.seal")
    if given is None:
        return None
    data = sealed.read(library)
    return library if data is not None and given == sealed.seal(library.name, data) else None


def _compile(
    home: Path,
    *,
    name: str,
    source: str,
    tool: toolchain.Compiler,
    options: Sequence[str],
    progress: Callable[[str], None] | None,
) -> Path:
    """Make the entry, unless another thread or process did so while this one waited."""
    sealed.make(home)
    with file_lock(home / "locks" / name[:2]):  # names that begin alike share one, so that there are few
        found = entry(home, name)
        if found is not None:
            return found
        _sweep(home)
        if progress is not None:
            progress(f"compiling {source.count(chr(10)) + 1} lines of C++")
        # In the same folder, so that the moves below are renames, which cannot be seen half done.
        with tempfile.TemporaryDirectory(prefix="tmp-", dir=home, ignore_cleanup_errors=True) as scratch:
            made = Path(scratch) / (name + toolchain.SUFFIX)
            zig, archive = Path(scratch) / "zig", archive_of(home, tool, options)
            known = archive is None or unpack(archive, zig)
            keep = home / "failed" / f"{name}.cpp"
            toolchain.compile_source(source, made, tool=tool, options=options, zig_cache=zig, keep=keep)
            if archive is not None and not known and zig.is_dir():
                pack(archive, zig)
            text, seal = made.with_suffix(".cpp"), made.with_suffix(".seal")
            seal.write_bytes(sealed.seal(made.name, made.read_bytes()))
            for file in (text, made, seal):
                os.chmod(file, 0o700 if file == made else 0o600)
                os.replace(file, home / file.name)
        return home / made.name


def _sweep(home: Path) -> None:
    """Remove what killed processes left behind a day ago or more."""
    old = time.time() - 86400
    for left in home.glob("tmp-*"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < old:
                left.unlink() if left.is_file() else shutil.rmtree(left, ignore_errors=True)
