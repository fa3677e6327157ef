"""The hash of the contents of some files, kept in the cache folder for as long as the files are the same.

Reading a hundred files takes longer than asking for their times. A file that was changed has another time of its last
change (`ctime`), which no program can set, so what is kept is found by these times. Where they mean something else
(Windows), or are so new that a further change may have the same, files are read.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence

from .records import recall, remember

_NEW = 2_000_000_000  # nanoseconds

Stat = tuple[str, int, int, int, int]
"""Path, times of modification and of change, size, and number of a file."""


def files_in(folder: str) -> list[str]:
    """The paths of the files in a folder and in those below it, sorted, without what Python compiled."""
    found = []
    for home, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found += [os.path.join(home, name) for name in names]
    return sorted(found)


def stats_of(paths: Sequence[str]) -> tuple[Stat, ...]:
    """What is known of files without reading them."""
    found = []
    for path in paths:
        stat = os.stat(path)
        found.append((path, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino))
    return tuple(found)


def hash_of(stats: Sequence[Stat], folder: str) -> str:
    """The hash of files: of their paths below a folder, and of what they contain."""
    if os.name != "posix" or max((changed for _, _, changed, _, _ in stats), default=0) > time.time_ns() - _NEW:
        return _read(stats, folder)
    name = f"{hashlib.sha256(repr((folder, *stats)).encode()).hexdigest()[:40]}.contents"
    kept = recall(name)
    if kept is not None:
        return kept.decode()
    found = _read(stats, folder)
    remember(name, found.encode())
    return found


def _read(stats: Sequence[Stat], folder: str) -> str:
    digest = hashlib.sha256()
    for path, *_ in stats:
        with open(path, "rb", buffering=0) as file:
            data = file.read()
        digest.update(f"{path[len(folder) :]}:{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()
