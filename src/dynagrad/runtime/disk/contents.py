"""Hashes: of texts, and of the contents of files, which are kept in the cache folder while the files are the same.

Reading a hundred files takes longer than asking for their times. A file that was changed has another time of its last
change (`ctime`), which programs cannot set on the file systems of POSIX, so what is kept is found by these times. Where
they mean something else (Windows), or are so new that a further change may have the same, files are read.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import time
from collections.abc import Collection, Sequence

from .records import CONTENTS, recall, remember

NEW = 2_000_000_000
"""The age of a file, in nanoseconds, up to which a further change may have the same time."""

Stat = tuple[str, int, int, int, int, int]
"""Path, times of modification and of change, size, and number of a file, and that of its disk."""


def combined(*parts: str) -> str:
    """The hash of some texts, in their order.

    >>> combined("ab", "c") == combined("a", "bc")
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "backslashreplace")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()[:40]


def stats_in(folder: str, but: Collection[str] = ()) -> tuple[Stat, ...]:
    """What is known without reading them of the files in a folder and below, in order of their paths: without those in
    the folders `but`, and without what Python compiled."""
    found: list[Stat] = []
    _look_in(folder, but, found)
    return tuple(sorted(found))


def _look_in(folder: str, but: Collection[str], found: list[Stat]) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir():
                known = entry.stat()
                times = known.st_mtime_ns, known.st_ctime_ns
                found.append((entry.path, *times, known.st_size, known.st_ino, known.st_dev))
            elif entry.name != "__pycache__" and entry.path not in but:
                _look_in(entry.path, but, found)


def hash_of(stats: Sequence[Stat], folder: str) -> str:
    """The hash of files: of their paths below a folder, and of what they contain."""
    if os.name != "posix" or max((changed for _, _, changed, *_ in stats), default=0) > time.time_ns() - NEW:
        return _read(stats, folder)
    known = pickle.dumps((folder, *stats), protocol=4)  # a quarter of the time of `repr`
    name = f"{hashlib.sha256(known).hexdigest()[:40]}{CONTENTS}"
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
