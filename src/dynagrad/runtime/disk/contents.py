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


def stats_in(*places: str) -> tuple[Stat, ...]:
    """What is known without reading them of files, and of those in folders and below, in their order, without what
    Python compiled."""
    found: list[Stat] = []
    for place in places:
        if os.path.isdir(place):
            _look_in(place, found)
        else:
            found.append(_stat(place, os.stat(place)))
    return tuple(sorted(found))


def _look_in(folder: str, found: list[Stat]) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir():
                found.append(_stat(entry.path, entry.stat()))
            elif entry.name != "__pycache__":
                _look_in(entry.path, found)


def _stat(path: str, stat: os.stat_result) -> Stat:
    return path, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino


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
