"""The cache of compiled programs on disk, content-addressed: by the fingerprint of all that a library depends on.

An entry is three files in the cache folder (`disk/folder.py`): the library, its source for people to read, and a seal,
written last, with the library's hash. An entry without a valid seal does not count, so neither a killed compiler nor a
damaged disk can make one; nor can other users (`disk/sealed.py`). Objects that libraries are linked with are entries,
too, and precompiled headers. What flags mean is for `toolchain.py`, what is called for `compilation.py`.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ...errors import CompileError, counted
from ...forks import cached
from ..disk import sealed
from ..disk.file_lock import file_lock
from ..disk.folder import Temporary, scratch, temporary_folder, trusted_folder
from ..disk.records import SUFFIXES
from . import compilation, toolchain, zig_calls
from .ahead import Ahead
from .child import CancelScope
from .fingerprint import Headers, fingerprint, name_of_calls
from .objects import Object
from .zig_files import archive_of, keep, unpack


def build(
    source: str,
    *,
    optimise: int = 3,
    flags: Sequence[str] = (),
    long: bool = False,
    objects: Sequence[Object] = (),
    prelude: str = "",
    tool: toolchain.Compiler | None = None,
    ahead: Ahead | None = None,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """The path of the library that `source` compiles to, from the cache if it is there.

    `optimise` is the compiler's level, 0 to 3, and `flags` are more flags for it. A `long` source has flags that save
    the compiler's time. `objects` are shared with other libraries and linked with it, if this compiler can do so;
    otherwise the library has its own copy. `prelude` is a header of the runtime, of which the source may include parts,
    with no macro before them. `tool` is a compiler other than the current one, and one that runs `ahead` of its source
    (see `start_ahead`) is used where it fits. `progress` is called with a line of text before a compiler starts.

    >>> library = build('extern "C" int one() { return 1; }')
    >>> library.with_suffix(".cpp").read_text()
    'extern "C" int one() { return 1; }'
    """
    tool = tool or toolchain.compiler()
    flags = toolchain.spelled(tool, flags)
    headers = Headers.now()
    parts = _parts(tool, objects, flags, headers, prelude)
    more = toolchain.of_long(tool) if long else ()
    options = _options(tool, optimise, (*flags, *more), linked=bool(parts))
    job = _Build(source, tool, options, headers, toolchain.SUFFIX, parts, prelude, ahead)
    home, reason = trusted_folder()
    for place in (home, Temporary.path):
        found = None if place is None else entry(place, job.name)
        if found is not None:
            return found
    try:
        if home is not None:
            return _compile(home, job, progress)
    except OSError as error:
        reason = str(error)
    try:
        return _compile(temporary_folder(reason), job, progress)
    except OSError as error:
        raise CompileError(
            f"there is no place for a compiled program: in the cache folder, {reason}; in a temporary one, {error}\n"
            "  make room, or set DYNAGRAD_CACHE to a folder of yours that can be written"
        ) from None


def start_ahead(ahead: Ahead, prelude: str, optimise: int, tool: toolchain.Compiler | None = None) -> None:
    """Starts the compiler for a library with objects, before its source is written.

    `build` uses it for the same level and prelude, and no further flags. None starts before a first build has made the
    precompiled header and learned what zig calls.
    """
    with contextlib.suppress(OSError, CompileError):  # which the build says
        tool = tool or toolchain.compiler()
        home, headers = trusted_folder()[0], Headers.now()
        options = _options(tool, optimise, (), linked=True)
        if home is None or not toolchain.linker(tool, options):
            return
        header = _header(_Build("", tool, options, headers, toolchain.SUFFIX, prelude=prelude))
        calls = zig_calls.load(_calls(home, tool, toolchain.unlinked(options)))
        found = None if header is None else _usable(home / (header.name + _HEADER))
        if calls is not None and found is not None:
            compilation.start_ahead(ahead, home, calls, found)


def _options(tool: toolchain.Compiler, optimise: int, more: Sequence[str], *, linked: bool) -> tuple[str, ...]:
    return (*toolchain.flags(tool, optimise), *more, *([_LINKED] if linked else []))


@dataclass(frozen=True)
class _Build:
    """What an entry is compiled from: the source of a library with its objects, or of an object."""

    source: str
    tool: toolchain.Compiler
    options: tuple[str, ...]
    headers: Headers
    suffix: str
    parts: tuple[_Build, ...] = ()
    prelude: str = ""  # a header that is precompiled for it
    ahead: Ahead | None = None  # a compiler that may run already

    @cached
    def name(self) -> str:
        parts = (text for part in self.parts for text in (part.source, *part.options))
        sources = [self.source, *parts]
        return fingerprint(sources, self.tool, self.options, self.headers)


_LINKED = "-DDYNAGRAD_LINKED"


def _parts(
    tool: toolchain.Compiler, objects: Sequence[Object], flags: Sequence[str], headers: Headers, prelude: str
) -> tuple[_Build, ...]:
    """The objects that a library is linked with; none where the compiler cannot link them.

    They have levels of optimisation of their own, but the library's macros, and its prelude.
    """
    if not toolchain.links(tool):
        return ()
    defined = [f for f in flags if f.startswith(("-D", "-fsanitize"))]
    parts = []
    for each in objects:
        options = toolchain.of_object((*toolchain.flags(tool, each.optimise), _LINKED, *defined))
        parts.append(_Build(each.source, tool, options, headers, ".o", prelude="" if each.bare else prelude))
    return tuple(parts)


_HEADER = ".pch"


def _header(job: _Build) -> _Build | None:
    """The precompiled header that a source is compiled with; None where there is none.

    It depends on the options, except those for code generation and linking, and on the place and times of all headers.
    What has one is compiled with it from the first time on: it is made in less time than several sources take to read
    it.
    """
    if not job.prelude or not toolchain.links(job.tool):
        return None
    options = (*toolchain.of_header(job.options), f"-DDYNAGRAD_PLACE={job.headers.place(job.tool)}")
    return _Build(job.prelude, job.tool, options, job.headers, _HEADER)


def _call_for(home: Path, made: Path, job: _Build) -> None:
    """Calls the compiler for a job, with its header, whose seal is checked meanwhile: that is megabytes."""
    header, objects = _header(job), _paths(home, job.parts)
    if header is None:
        _call(home, made, job, job.source, job.options, objects)
        return
    found = home / (header.name + _HEADER)
    if not found.exists():
        found = _object(home, header)
    sound = False

    def check() -> None:
        nonlocal sound
        sound = entry(home, header.name, _HEADER) is not None

    refused = _call(home, made, job, job.source, job.options, objects, _usable(found), check)
    if sound and not refused:
        return
    # It was damaged, or other headers, of the system, have changed since: it is made again, and so is the library.
    if refused:
        (home / f"{header.name}.seal").unlink(missing_ok=True)
    again = made.parent / "again" / made.name
    if _call(home, again, job, job.source, job.options, objects, _usable(_object(home, header))):
        with scratch(home) as place:
            _enter(home, _without_header(place, header))
    os.replace(again, made)


def _without_header(place: Path, header: _Build) -> Path:
    """An empty file in the place of a header that the compiler cannot make or read, so that it is not tried again."""
    made = place / (header.name + _HEADER)
    made.write_bytes(b"")
    made.with_suffix(".cpp").write_text(header.source)
    return made


def _usable(header: Path) -> Path | None:
    """A header; None for the empty file of one that the compiler cannot make."""
    return header if header.stat().st_size else None


def entry(home: Path, name: str, suffix: str = toolchain.SUFFIX) -> Path | None:
    """The library, or the object, of that name, if its seal is valid."""
    library = home / (name + suffix)
    given = sealed.read(home / f"{name}.seal")
    if given is None:
        return None
    data = sealed.read(library)
    return library if data is not None and given == sealed.seal(library.name, data) else None


_LOCKS = {toolchain.SUFFIX: "", ".o": "object-", _HEADER: "header-"}


def _compile(home: Path, job: _Build, progress: Callable[[str], None] | None) -> Path:
    """Makes the entry, unless another thread or process did so while this one waited."""
    sealed.make(home)
    # Names with the same prefix share a lock, so that there are few. Libraries wait for objects, and these for headers.
    with file_lock(home / "locks" / f"{_LOCKS[job.suffix]}{job.name[:2]}"):
        found = entry(home, job.name, job.suffix)
        if found is not None:
            return found
        if progress is not None:
            progress(f"compiling {counted(job.source.count(chr(10)) + 1, 'line')} of C++")
        # In the same folder, so that the moves in it are renames, which are atomic.
        with scratch(home) as place:
            try:
                return _compile_in(home, place, job)
            except CompileError:
                if place.exists():
                    raise
                raise FileNotFoundError(errno.ENOENT, "it was deleted meanwhile", str(home)) from None


def _compile_in(home: Path, place: Path, job: _Build) -> Path:
    """Makes the entry in a folder of its own, and moves it to its place."""
    made = place / (job.name + job.suffix)
    if job.suffix == _HEADER:
        if not compilation.precompile(job.source, made, tool=job.tool, options=job.options, zig_cache=place / "zig"):
            made = _without_header(place, job)
        else:
            made.with_suffix(".cpp").write_text(job.source)
    elif all(entry(home, part.name, part.suffix) for part in job.parts):
        _call_for(home, made, job)
    else:  # all in parallel, and linked at the end
        own, empty = place / "own" / made.with_suffix(".o").name, place / "empty" / f"empty{job.suffix}"
        if job.ahead is not None:
            job.ahead.stop()  # there are enough at work
        alone = replace(job, options=toolchain.unlinked(job.options), parts=(), ahead=None)
        # The first object, which takes longest, and headers before all others.
        headers = {header.name: header for each in (alone, *job.parts) if (header := _header(each)) is not None}
        first = [part for part in job.parts if not part.prelude]
        shared = [*first[:1], *headers.values(), *first[1:], *(part for part in job.parts if part.prelude)]
        work: list[Callable[[], object]] = [partial(_object, home, each) for each in shared]
        work.append(partial(_call_for, home, own, alone))
        if archive_of(home, job.tool, job.options) is not None:  # zig makes what it links with
            work.append(partial(_call, home, empty, job, "", job.options))
        _at_once(work)
        _call(home, made, job, "", job.options, [own, *_paths(home, job.parts)])
        os.replace(own.with_suffix(".cpp"), made.with_suffix(".cpp"))
    return _enter(home, made)


def _enter(home: Path, made: Path) -> Path:
    """Seals what was made, and moves it to its place, with its source."""
    text, seal = made.with_suffix(".cpp"), made.with_suffix(".seal")
    seal.write_bytes(sealed.seal(made.name, made.read_bytes()))
    for file in (text, made, seal):
        os.chmod(file, 0o700 if file == made else 0o600)
        os.replace(file, home / file.name)
    return home / made.name


def _at_once(work: Sequence[Callable[[], object]]) -> None:
    """Does all of it, as much at once as there are processors; nothing goes on after an error, or Ctrl-C.

    Each piece may be done twice. Where no thread can be started, as when Python ends, they follow each other.
    """
    scope = CancelScope()
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1, initializer=scope.join) as pool:
        try:
            try:
                done = [pool.submit(each) for each in work]
            except RuntimeError:
                pool.shutdown(cancel_futures=True)
                done = []
            for one in done:
                one.result()
        except BaseException:
            scope.cancel()
            pool.shutdown(cancel_futures=True)
            raise
    if not done:
        for each in work:
            each()


def _paths(home: Path, parts: Sequence[_Build]) -> list[Path]:
    return [home / (part.name + part.suffix) for part in parts]


def _calls(home: Path, tool: toolchain.Compiler, options: Sequence[str]) -> Path:
    """The path of the calls that zig makes for some options."""
    return home / f"{name_of_calls(tool, options)}.calls"


def _call(
    home: Path,
    output: Path,
    job: _Build,
    source: str,
    options: Sequence[str],
    objects: Sequence[Path] = (),
    precompiled: Path | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> bool:
    """Calls the compiler for a source of a job; returns whether it refused the precompiled header.

    What is learned of zig is kept. `meanwhile` is called as it runs.
    """
    output.parent.mkdir(exist_ok=True)
    zig = output.parent / "zig"
    object_ = "-c" in options
    linker = () if object_ else toolchain.linker(job.tool, options)
    place = _calls(home, job.tool, options if object_ else toolchain.unlinked(options))
    calls = zig_calls.load(place) if job.tool.zig and source and (object_ or linker) else None
    if source and linker and calls is None:  # zig says what it calls for an object
        own = output.with_name("own.o")
        refused = _call(home, own, job, source, toolchain.unlinked(options), (), precompiled, meanwhile)
        _call(home, output, job, "", options, [*objects, own])
        os.replace(own.with_suffix(".cpp"), output.with_suffix(".cpp"))
        return refused
    archive = None if object_ else archive_of(home, job.tool, options)
    unpacked = frozenset[str]()

    def prepare() -> None:
        nonlocal unpacked
        _sweep(home)
        if archive is not None:
            unpacked = unpack(archive, zig)
        if meanwhile is not None:
            meanwhile()

    given = compilation.inputs(source, output, objects, precompiled)
    if calls is not None or (linker and not source):
        if compilation.compile_by_calls(given, calls, linker, ahead=job.ahead, meanwhile=prepare):
            return False
    else:
        prepare()
    kept = home / "failed" / f"{job.name}.cpp"
    made = compilation.compile_by_compiler(given, job.tool, options, zig_cache=zig, keep=kept)
    if made.calls is not None:
        zig_calls.save(place, made.calls)
    if archive is not None:
        keep(archive, zig, unpacked)
    return made.refused


def _object(home: Path, job: _Build) -> Path:
    """The object, compiled if it is not there."""
    return entry(home, job.name, job.suffix) or _compile(home, job, None)


@functools.cache  # once a process: it looks at the whole folder
def _sweep(home: Path) -> None:
    """Removes temporary files of killed processes that are older than a day; and what is older than 90 days of records,
    as there may be a plan for each set of facts, and of sources that did not compile."""
    now = time.time()
    for pattern, days in (("tmp-*", 1), ("failed/*", 90), *((f"*{suffix}", 90) for suffix in SUFFIXES)):
        for left in home.glob(pattern):
            with contextlib.suppress(OSError):
                if left.stat().st_mtime < now - days * 86400:
                    left.unlink() if left.is_file() else shutil.rmtree(left, ignore_errors=True)
