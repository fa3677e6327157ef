"""A source compiled: by the compiler, or by the programs that zig would call, and what is said where that fails.

No shell is involved. Which compiler it is, and its flags, is for `toolchain.py`; `cache.py` keeps what was compiled.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import CompileError, counted
from ..disk import sealed
from . import child, linking, toolchain, zig_calls
from .ahead import SOURCE, Ahead
from .zig_calls import Calls

_PRELUDE = "prelude.pch"


@dataclass(frozen=True, slots=True)
class Compilation:
    """What was learned as a library or an object was made: what zig calls, if it was called, and whether the compiler
    refused the precompiled header, and did without."""

    calls: Calls | None = None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Inputs:
    """What is compiled to `output`, with names in its folder: compilers have special meanings for %, : and backslashes
    in paths. A source that is empty is none: objects are linked alone."""

    output: Path
    source: bytes
    text: Path
    parts: tuple[str, ...]
    include: str  # the option that names the folder of headers
    precompiled: Path | None

    @property
    def header(self) -> str:
        """The name of the precompiled header; empty where there is none."""
        return "" if self.precompiled is None else _PRELUDE

    @property
    def written(self) -> tuple[str, ...]:
        """The words that name what is written, and the objects that it is linked with."""
        return ("-o", self.output.name, *self.parts)


def inputs(source: str, output: Path, objects: Sequence[Path] = (), precompiled: Path | None = None) -> Inputs:
    """Writes a source beside what it is compiled to, with links to objects, and to its precompiled header."""
    scratch, text = output.parent, output.with_suffix(".cpp")
    encoded = source.encode("utf-8", "backslashreplace")
    text.write_bytes(encoded)
    parts = tuple(f"part{number}.o" for number in range(len(objects)))
    for file, name in zip(objects, parts, strict=True):
        _linked(file, scratch / name)
    if precompiled is not None:
        _linked(precompiled, scratch / _PRELUDE)
    return Inputs(output, encoded, text, parts, f"-I{_plain(scratch)}", precompiled)


def compile_by_calls(
    given: Inputs,
    calls: Calls | None,
    linker: Sequence[str],
    *,
    ahead: Ahead | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> bool:
    """Compiles a source by the `calls` of zig, and links by a command, without zig; whether that succeeded.

    Nothing is linked without a linker, and without calls nothing is compiled. The compiler may run already, `ahead` of
    its source. `meanwhile` is called while it runs.
    """
    scratch, then = given.output.parent, [*linker, *given.written]
    if calls is None:
        status, _ = _run(then, scratch, None, meanwhile=meanwhile)
    elif not linker:
        compiles = calls.compiles(given.include, given.text.name, given.output.name, given.header)
        status, _ = _run(compiles, scratch, None, meanwhile=meanwhile)
    else:
        then, done = [*then, linking.STDIN], None
        if ahead is not None and given.precompiled is not None:
            with contextlib.suppress(child.NotStarted):  # which is said below
                command = _command_of(calls)(scratch)
                done = ahead.finish(command, given.precompiled, given.source, then, scratch, meanwhile)
        if done is None:
            compiles = calls.compiles(given.include, given.text.name, "-", given.header)
            done = _run(compiles, scratch, None, then=then, meanwhile=meanwhile)
        status, _ = done
    return status == 0 and given.output.exists()


def compile_by_compiler(
    given: Inputs,
    tool: toolchain.Compiler,
    options: Sequence[str],
    *,
    zig_cache: Path | None = None,
    keep: Path | None = None,
) -> Compilation:
    """Compiles a source by a compiler, which links as well if the options do not say otherwise. Raises `CompileError`.

    What zig remembers from one call to the next (the stubs of libc, 2 MB) is in the folder `zig_cache`. A source that
    does not compile is copied to `keep`.
    """
    scratch = given.output.parent
    command = [*tool.command, *options, given.include]
    rest = [given.text.name, *given.parts, "-o", given.output.name]
    if not tool.zig and "-c" not in command:
        rest += toolchain.LIBRARIES.get(sys.platform, ())

    def learned(said: str) -> Calls | None:
        return zig_calls.learned(said, tool.command[0], given.text.name, given.include)

    if given.header:
        status, said = _run([*command, "-include-pch", given.header, *rest], scratch, zig_cache)
        if status == 0 and given.output.exists():
            return Compilation(learned(said))
        # a precompiled header that fails (other system headers?) is no error of the source
    status, said = _run([*command, *rest], scratch, zig_cache)
    if status != 0 or not given.output.exists():
        if _FULL.search(said):
            raise _full(scratch)
        raise CompileError(_message(status, zig_calls.told(said)[1], [*command, *rest], given.text, keep))
    return Compilation(learned(said), refused=bool(given.header))


def start_ahead(ahead: Ahead, home: Path, calls: Calls, precompiled: Path) -> None:
    """Starts the compiler for a library whose source is not there yet; `home` is where its temporary files are made."""
    ahead.start(home, _command_of(calls), _environment(None), precompiled, _PRELUDE)


def _command_of(calls: Calls) -> Callable[[Path], list[str]]:
    """A function from a folder to the command of a compiler that runs ahead there."""
    return lambda place: calls.compiles(f"-I{_plain(place)}", SOURCE, "-", _PRELUDE)


def _linked(file: Path, name: Path) -> None:
    """Gives a file another name; a copy, where the disk has no links."""
    try:
        os.link(file, name)
    except OSError:
        shutil.copyfile(file, name)


def precompile(header: str, output: Path, *, tool: toolchain.Compiler, options: Sequence[str], zig_cache: Path) -> bool:
    """Precompiles a header of the runtime, named as it is included, to `output`; whether the compiler can do so.

    The result depends on the place of the headers, and on their times. Raises OSError where the disk is full, and
    `CompileError` where the compiler was killed or could not start: that says nothing of the next time.
    """
    if os.name == "nt" or _ODD.search(str(toolchain.INCLUDE)):
        return False
    options = [*options, "-Xclang", "-fpch-instantiate-templates", f"-I{toolchain.INCLUDE}"]
    command = [*tool.command, *options, "-x", "c++-header", str(toolchain.INCLUDE / header), "-o", output.name]
    status, said = _run(command, output.parent, zig_cache)
    if status == 0 and output.exists():
        return True
    if status == 0 or _FULL.search(said):  # clang says nothing of it here
        raise _full(output.parent)
    if status < 0 or _SHORTAGE.search(said):
        lines = "".join(f"  {line[:300]}\n" for line in _useful(zig_calls.told(said)[1].splitlines()))
        raise CompileError(f"the C++ compiler {_ended(status)}\n{lines}  the command was {shlex.join(command)}")
    return False


def _run(
    command: Sequence[str],
    scratch: Path,
    zig_cache: Path | None,
    *,
    then: Sequence[str] | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> tuple[int, str]:
    """Runs a compiler with messages in English, and its temporary files in `scratch`; its exit status and output."""
    zig = os.path.relpath(zig_cache, scratch) if zig_cache is not None else None
    try:
        return child.run(command, _environment(zig), scratch, then=then, meanwhile=meanwhile)
    except child.NotStarted as error:
        raise CompileError(f"the C++ compiler does not start: {error}\n  {toolchain.WHERE}") from None


def _environment(zig: str | None) -> dict[str, str]:
    """The environment of compilers, with the folder where zig keeps what it makes."""
    ours = {"LC_ALL": "C", "TMPDIR": ".", "ZIG_LOCAL_CACHE_DIR": "zig-local", "ZIG_GLOBAL_CACHE_DIR": zig or "zig"}
    return {**os.environ, **ours, **zig_calls.ENVIRONMENT}


_FULL = re.compile("No space left|NoSpaceLeft|Disk quota exceeded|DiskQuota", re.IGNORECASE)
_SHORTAGE = re.compile(
    "spawn|SystemResources|out ?of ?memory|temporarily unavailable|Too many open files|FdQuota", re.I
)
_ODD = re.compile(r"[\\\r\n#$%]")


def _plain(scratch: Path) -> Path:
    """The folder of headers under a name that compilers accept: a link, if it has odd characters."""
    if os.name == "nt" or not _ODD.search(str(toolchain.INCLUDE)):
        return toolchain.INCLUDE
    link = scratch / "include"
    if not link.is_symlink():
        link.symlink_to(toolchain.INCLUDE.absolute())
    return Path(link.name)


def _full(scratch: Path) -> OSError:
    """The error of a full disk."""
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(scratch))


def _ended(status: int) -> str:
    return f"ended with status {status}" if status > 0 else f"was killed by signal {-status} (is the memory full?)"


def _message(status: int, said: str, command: Sequence[str], text: Path, keep: Path | None) -> str:
    """The message of a `CompileError`: the compiler's errors, the path of the source, the command."""
    kept = text
    if keep is not None:
        try:
            sealed.make(keep.parent)
            sealed.write(keep, text.read_bytes())
            kept = keep
        except OSError:  # a full disk: report the compiler's errors all the same
            pass
    how = _ended(status) if status else "wrote no library"
    lines = "\n".join(f"  {line[:300]}" for line in _useful(said.replace(text.name, kept.name).splitlines()))
    names = {text.name: str(kept)}
    call = shlex.join(names.get(word, word) for word in command)
    return f"the C++ compiler {how}\n{lines}\n  the source is {kept}\n  the command was {call}"


def _useful(lines: Sequence[str], most: int = 24) -> list[str]:
    """The lines of a compiler's output from the first error on.

    >>> _useful(["a.cpp:1:1: warning: hm", "a.cpp:2:1: error: no", "  x", "1 error generated."])
    ['a.cpp:2:1: error: no', '  x', '1 error generated.']
    """
    first = next((at for at, line in enumerate(lines) if "error:" in line or "undefined" in line), 0)
    rest = [line for line in lines[first:] if line.strip()]
    return rest if len(rest) <= most else [*rest[:most], f"... and {counted(len(rest) - most, 'line')} more"]
