"""Compiled programs on disk: compiled once, found by the hash of everything that went into them.

An entry is three files in the cache folder: the library, its source beside it for people to read, and a seal, written
last, that holds the library's hash. What has no seal that fits is no entry, so that neither a killed compiler nor a
damaged disk can make one. The folder is `DYNAGRAD_CACHE`, or `dynagrad` in the user's cache folder; where it cannot be
written, a private temporary one takes its place. No knowledge of flags or compilers lives here.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import ctypes.util
import functools
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..errors import warn
from . import toolchain

if sys.platform != "win32":  # there, processes may compile the same program twice, and the last one wins
    import fcntl

_FORMAT = "1"  # a new number makes every older entry unknown


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
    name = _name(source, tool, options)
    home = folder()
    for place in (home, _Private.path):
        found = None if place is None else _entry(place, name)
        if found is not None:
            return found
    work = functools.partial(_compile, name=name, source=source, tool=tool, options=options, progress=progress)
    if home is None:
        return work(_private("there is no folder for it: HOME is not set"))
    try:
        return work(home)
    except OSError as error:
        return work(_private(str(error)))


def folder() -> Path | None:
    """The cache folder, made or not: `DYNAGRAD_CACHE`, or in the place for caches on this system; None if it has none.

    >>> import os
    >>> os.environ["DYNAGRAD_CACHE"] == str(folder()) if "DYNAGRAD_CACHE" in os.environ else True
    True
    """
    named = os.environ.get("DYNAGRAD_CACHE")
    if named:
        return Path(named).absolute()
    try:
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "dynagrad"
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "dynagrad" / "cache"
        base = os.environ.get("XDG_CACHE_HOME", "")
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "dynagrad"
    except RuntimeError:  # no home
        return None


# -- names -----------------------------------------------------------------------------------------------------------


def _name(source: str, tool: toolchain.Compiler, options: Sequence[str]) -> str:
    """The name of an entry: a hash of all that decides what the library will be."""
    digest = hashlib.sha256()
    for part in (_FORMAT, tool.identity, repr(options), _processor(), _headers(), source):
        data = part.encode("utf-8", "backslashreplace")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()[:40]


def _headers() -> str:
    """A hash of the runtime headers."""
    stats = []
    for home, _, names in os.walk(toolchain.INCLUDE / "dynagrad"):
        for name in names:
            path = os.path.join(home, name)
            stat = os.stat(path)
            stats.append((path, stat.st_mtime_ns, stat.st_size))
    stats.sort()
    return _read_headers(tuple(stats))


@functools.lru_cache(maxsize=4)
def _read_headers(stats: tuple[tuple[str, int, int], ...]) -> str:
    """The hash of these headers, read again only when a time or a size has changed."""
    digest = hashlib.sha256()
    for path, _, _ in stats:
        data = Path(path).read_bytes()
        digest.update(f"{os.path.relpath(path, toolchain.INCLUDE)}:{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


@functools.cache
def _processor() -> str:
    """What the compiler sees of this machine's processor, as libraries are compiled for that one alone."""
    machine = f"{sys.platform} {platform.machine()} "
    if sys.platform == "darwin":
        with contextlib.suppress(OSError, AttributeError):
            library, size = (ctypes.CDLL(ctypes.util.find_library("c")), ctypes.c_size_t(256))
            text = ctypes.create_string_buffer(256)
            library.sysctlbyname(b"machdep.cpu.brand_string", text, ctypes.byref(size), None, 0)
            return machine + text.value.decode(errors="replace")
    try:
        # The first processor stands for all, up to the first empty line; the rest may be long, and slow to read. Lines
        # that change from one moment to the next (its frequency) are left out.
        keep = (
            "vendor_id",
            "cpu family",
            "model",
            "stepping",
            "flags",
            "features",
            "cpu implementer",
            "cpu part",
            "isa",
        )
        lines = []
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.strip():
                    break
                if line.partition(":")[0].strip().lower() in keep:
                    lines.append(line.strip())
        return machine + "\n".join(lines)
    except OSError:
        return machine + os.environ.get("PROCESSOR_IDENTIFIER", "") + platform.processor()


# -- entries ---------------------------------------------------------------------------------------------------------


def _entry(home: Path, name: str) -> Path | None:
    """The library of that name if it is whole."""
    library = home / (name + toolchain.SUFFIX)
    try:
        if (home / f"{name}.seal").read_text() == _seal(library):
            return library
    except (OSError, UnicodeDecodeError):
        pass
    return None


def _seal(library: Path) -> str:
    """What the seal of this library says: its size and its hash."""
    data = library.read_bytes()
    return f"{len(data)} {hashlib.sha256(data).hexdigest()}\n"


def _compile(
    home: Path,
    *,
    name: str,
    source: str,
    tool: toolchain.Compiler,
    options: Sequence[str],
    progress: Callable[[str], None] | None,
) -> Path:
    """Make the entry, unless another thread or process did so while this one waited for its turn."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _turn(home, name):
        found = _entry(home, name)
        if found is not None:
            return found
        _sweep(home)
        if progress is not None:
            progress(f"compiling {source.count(chr(10)) + 1} lines of C++")
        # In the same folder, so that the moves below are renames, which cannot be seen half done.
        with tempfile.TemporaryDirectory(prefix="tmp-", dir=home, ignore_cleanup_errors=True) as scratch:
            made = Path(scratch) / (name + toolchain.SUFFIX)
            seal = made.with_suffix(".seal")
            toolchain.compile_source(
                source, made, tool=tool, options=options, zig_cache=home / "zig", keep=home / "failed" / f"{name}.cpp"
            )
            seal.write_text(_seal(made))
            for file in (made.with_suffix(".cpp"), made, seal):
                os.replace(file, home / file.name)
        return home / made.name


def _sweep(home: Path) -> None:
    """Remove what killed processes left behind a day ago or more."""
    old = time.time() - 86400
    for left in home.glob("tmp-*"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < old:
                shutil.rmtree(left, ignore_errors=True)


# -- turns -----------------------------------------------------------------------------------------------------------

_turns: dict[str, threading.Lock] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_turns.clear)  # their holders are not in the child


@contextlib.contextmanager
def _turn(home: Path, name: str) -> Iterator[None]:
    """Only one thread of one process at a time is in here, for names that begin alike in one folder.

    A lock between processes that the system drops with the process that held it, dead or alive. It belongs to the
    process as a whole, and closing the file anywhere in it drops it, so the threads of a process take turns first.
    """
    path = home / "locks" / name[:2]
    with _turns.setdefault(str(path), threading.Lock()):
        path.parent.mkdir(exist_ok=True)
        with open(path, "wb") as file:
            if sys.platform != "win32":
                with contextlib.suppress(OSError):  # a file system without locks is as bad
                    fcntl.lockf(file, fcntl.LOCK_EX)
            yield


# -- the private folder ----------------------------------------------------------------------------------------------


class _Private:
    """The temporary cache folder of this process, once it was needed."""

    path: Path | None = None
    lock = threading.Lock()


def _private(reason: str) -> Path:
    """The private folder, with a warning the first time; removed when the process ends."""
    with _Private.lock:
        if _Private.path is None:
            _Private.path = Path(tempfile.mkdtemp(prefix="dynagrad-"))
            atexit.register(_remove, _Private.path, os.getpid())
            warn(
                f"the cache of compiled programs cannot be written ({reason}); programs are compiled again in each "
                "process. Set DYNAGRAD_CACHE to a folder that can be written.",
                RuntimeWarning,
            )
        return _Private.path


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:  # not when a fork of it ends
        shutil.rmtree(path, ignore_errors=True)
