"""The call of clang that zig's C++ front makes, so that later compiles make it themselves.

zig says what it calls. Before that it looks at this machine and hashes every header. What is learned from one call
holds for all with the same compiler, options and processor, and is kept sealed. Nothing depends on it: where such a
call fails, zig is called again. Linking is in `linking.py`.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..disk import sealed

ENVIRONMENT = {"ZIG_VERBOSE_CC": "1"}
"""What makes zig say what it calls."""

_HEADERS, _SOURCE = "@headers", "@source"
_DROPPED = ("-MF", "-o", "-include-pch")  # with the word after them


@dataclass(frozen=True)
class Calls:
    """The call for some options: words, with names for the files, which differ."""

    clang: tuple[str, ...]

    def compiles(self, headers: str, source: str, output: str, precompiled: str) -> list[str]:
        """The command that compiles a source to an object, maybe with a precompiled header."""
        first = ["-include-pch", precompiled] if precompiled else []
        names = {_HEADERS: headers, _SOURCE: source}
        return [*(names.get(word, word) for word in self.clang), *first, "-c", "-o", output]


def told(said: str) -> tuple[list[str], str]:
    """The lines of zig's output that say what it calls, and the rest of it.

    >>> told("/bin/zig clang a.cpp -c\\na.cpp:1:1: warning: hm\\n")
    (['/bin/zig clang a.cpp -c'], 'a.cpp:1:1: warning: hm\\n')
    """
    lines = said.splitlines(keepends=True)
    calls = [line for line in lines if line.split(" ", 2)[1:2] == ["clang"]]
    return [line.rstrip("\n") for line in calls], "".join(line for line in lines if line not in calls)


def learned(said: str, program: str, source: str, headers: str) -> Calls | None:
    """The call by which a program compiled a source; None where it is not zig, or said something else.

    zig separates words by spaces, whatever is in them; `headers` is the one of ours that has the name of a folder.
    """
    lines, _ = told(said)
    clang = next((words for line in lines if source in (words := line.split(" "))[2:]), None)
    if clang is None or headers not in clang or os.path.realpath(program) != clang[0]:
        return None
    names = {headers: _HEADERS, source: _SOURCE}
    kept: list[str] = []
    before = ""
    for word in clang:
        if before not in _DROPPED and word not in (*_DROPPED, "-MD", "-MV", "-c"):
            kept.append(names.get(word, word))
        before = word
    return Calls(tuple(kept))


def load(path: Path) -> Calls | None:
    """The calls that `save` kept; None where there are none."""
    data = sealed.load(path)
    if data is None:
        return None
    return Calls(tuple(json.loads(data)))


def save(path: Path, calls: Calls) -> None:
    """Keeps the calls; where that is not possible, they are learned again.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "x"
    >>> save(path, Calls(("zig", "clang")))
    >>> load(path)
    Calls(clang=('zig', 'clang'))
    """
    with suppress(OSError):
        sealed.save(path, json.dumps(calls.clang).encode())
