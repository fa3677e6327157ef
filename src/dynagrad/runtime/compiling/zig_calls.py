"""The programs that zig's C++ front calls, clang and the linker lld, so that later compiles call them themselves.

zig says what it calls. Before and between the calls it looks at this machine and hashes every header, which takes twice
as long as linking. What is learned from one call holds for all with the same compiler, options and processor, and is
kept sealed. Nothing depends on it: where such a call fails, zig is called again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..disk import sealed

ENVIRONMENT = {"ZIG_VERBOSE_CC": "1", "ZIG_VERBOSE_LINK": "1"}
"""What makes zig say what it calls."""

_HEADERS, _SOURCE, _OBJECTS, _OUTPUT = "@headers", "@source", "@objects", "@output"
_CACHE = "zig/"  # the folder of zig's cache, from that of the call
STDIN, STDOUT = "/dev/stdin", "-"
"""What the linker reads and the compiler writes an object as, where one hands it to the other."""
_DROPPED = ("-MF", "-o", "-include-pch")  # with the word after them


@dataclass(frozen=True)
class Calls:
    """The calls for some options: words, with names for the files, which differ."""

    clang: tuple[str, ...]
    lld: tuple[str, ...]  # none where nothing is linked

    @property
    def files(self) -> dict[str, str]:
        """What the linker reads of the files in zig's cache, and the names that it knows these by.

        >>> Calls((), ("zig", "ld.lld", "zig/o/3/libm.so.6")).files
        {'o/3/libm.so.6': 'zig-o-3-libm.so.6'}
        """
        return {word.removeprefix(_CACHE): _file(word) for word in self.lld if word.startswith(_CACHE)}

    def compiles(self, headers: str, source: str, output: str, precompiled: str) -> list[str]:
        """The command that compiles a source to an object, maybe with a precompiled header."""
        first = ["-include-pch", precompiled] if precompiled else []
        names = {_HEADERS: headers, _SOURCE: source}
        return [*(names.get(word, word) for word in self.clang), *first, "-c", "-o", output]

    def links(self, objects: Sequence[str], output: str) -> list[str]:
        """The command that links objects to a library.

        >>> Calls((), ("zig", "ld.lld", "-o", "@output", "@objects", "zig/libm.so.6")).links(["a.o", "b.o"], "c.so")
        ['zig', 'ld.lld', '-o', 'c.so', 'a.o', 'b.o', 'zig-libm.so.6']
        """
        at = self.lld.index(_OBJECTS)
        words = [*self.lld[:at], *objects, *self.lld[at + 1 :]]
        return [output if word == _OUTPUT else _file(word) for word in words]


def _file(word: str) -> str:
    """A word of the linker, where a file of zig's cache has a name without folders: these take time."""
    return word.replace("/", "-") if word.startswith(_CACHE) else word


def told(said: str) -> tuple[list[str], str]:
    """The lines of zig's output that say what it calls, and the rest of it.

    >>> told("/bin/zig clang a.cpp -c\\na.cpp:1:1: warning: hm\\nld.lld -o a.so\\n")
    (['/bin/zig clang a.cpp -c', 'ld.lld -o a.so'], 'a.cpp:1:1: warning: hm\\n')
    """
    lines = said.splitlines(keepends=True)
    calls = [line for line in lines if line.split(" ", 2)[:1] == ["ld.lld"] or line.split(" ", 2)[1:2] == ["clang"]]
    return [line.rstrip("\n") for line in calls], "".join(line for line in lines if line not in calls)


def learned(said: str, program: str, source: str, output: str, headers: str) -> Calls | None:
    """The calls by which a program compiled a source to an output; None where it is not zig, or said something else.

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
    lld = next((words for line in lines if output in (words := line.split(" ")) and words[0] == "ld.lld"), None)
    linking = [] if lld is None or "-shared" not in lld else _linking(lld, output)
    return Calls(tuple(kept), (clang[0], *linking) if linking else ())


def _linking(lld: Sequence[str], output: str) -> list[str]:
    """The words of a call of the linker, with one for all objects."""
    objects = [at for at, word in enumerate(lld) if word.endswith(".o")]
    if not objects or objects != list(range(objects[0], objects[-1] + 1)):
        return []
    words = [*lld[: objects[0]], _OBJECTS, *lld[objects[-1] + 1 :]]
    return [_OUTPUT if word == output else word for word in words]


def load(path: Path) -> Calls | None:
    """The calls that `save` kept; None where there are none."""
    data = sealed.load(path)
    if data is None:
        return None
    clang, lld = json.loads(data)
    return Calls(tuple(clang), tuple(lld))


def save(path: Path, calls: Calls) -> None:
    """Keeps the calls; where that is not possible, they are learned again.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "x"
    >>> save(path, Calls(("zig", "clang"), ()))
    >>> load(path)
    Calls(clang=('zig', 'clang'), lld=())
    """
    with suppress(OSError):
        sealed.save(path, json.dumps([calls.clang, calls.lld]).encode())
