"""Compiled programs on disk: compiled once, found by the hash of everything that went into them.

An entry is three files in the cache folder: the library, its source beside it for people to read, and a seal, written
last, that holds the library's hash. What has no seal that fits is no entry, so that neither a killed compiler nor a
damaged disk can make one; nor is what others may have written (`sealed`). The folder is `DYNAGRAD_CACHE`, or `dynagrad`
in the user's cache folder, for this user alone; where it cannot be written or trusted, a private temporary one takes
its place. What else is kept there goes through `recall` and `remember`. No knowledge of flags lives here.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import ctypes.util
import functools
import hashlib
import io
import os
import platform
import shutil
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import CompileError, warn
from ..forks import renewed
from . import sealed, toolchain

if sys.platform != "win32":  # there, processes may compile the same program twice, and the last one wins
    import fcntl

_FORMAT = "2"  # a new number makes every older entry unknown


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
    home, reason = _home()
    for place in (home, _Private.path):
        found = None if place is None else _entry(place, name)
        if found is not None:
            return found
    work = functools.partial(_compile, name=name, source=source, tool=tool, options=options, progress=progress)
    try:
        if home is not None:
            return work(home)
    except OSError as error:
        reason = str(error)
    try:
        return work(_private(reason))
    except OSError as error:
        raise CompileError(
            f"there is no place for a compiled program: in the cache folder, {reason}; in a temporary one, {error}\n"
            "  make room, or set DYNAGRAD_CACHE to a folder of yours that can be written"
        ) from None


def recall(name: str) -> bytes | None:
    """What was kept under this name, if it is whole and ours."""
    home, _ = _home()
    return None if home is None else sealed.load(home / name)


def remember(name: str, data: bytes) -> None:
    """Keep something small under a name. Where that cannot be, nothing is kept, and nothing is said.

    >>> remember("example", b"something")
    >>> recall("example")
    b'something'
    """
    home, _ = _home()
    if home is not None:
        with contextlib.suppress(OSError):
            sealed.make(home)
            sealed.save(home / name, data)


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


def _home() -> tuple[Path | None, str]:
    """The cache folder if it may be used, and why not if it may not."""
    home = folder()
    if home is None:
        return None, "there is no folder for it: HOME is not set"
    home = Path(os.path.realpath(home))  # from here on, so that nobody turns a link elsewhere meanwhile
    reason = sealed.objection(home)
    return (None, reason) if reason else (home, "")


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
    """Make the entry, unless another thread or process did so while this one waited for its turn."""
    sealed.make(home)
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
            own = _Own(home, tool, options, Path(scratch) / "zig")
            own.unpack()
            keep = home / "failed" / f"{name}.cpp"
            toolchain.compile_source(source, made, tool=tool, options=options, zig_cache=own.folder, keep=keep)
            own.pack()
            text, seal = made.with_suffix(".cpp"), made.with_suffix(".seal")
            seal.write_bytes(sealed.seal(made.name, made.read_bytes()))
            for file in (text, made, seal):
                os.chmod(file, 0o700 if file == made else 0o600)
                os.replace(file, home / file.name)
        return home / made.name


class _Own:
    """What zig keeps from one call to the next, such as its stubs of libc: one sealed file, unpacked for each call.

    Zig does not look at whether what it kept is whole, and what it kept goes into libraries.
    """

    def __init__(self, home: Path, tool: toolchain.Compiler, options: Sequence[str], folder: Path) -> None:
        target = options[options.index("-target") + 1] if "-target" in options else ""
        digest = hashlib.sha256(f"{_FORMAT} {tool.identity} {target}".encode("utf-8", "backslashreplace"))
        self.path, self.folder, self.zig = home / f"{digest.hexdigest()[:40]}.zig", folder, tool.zig
        self.known = False

    def unpack(self) -> None:
        data = sealed.load(self.path) if self.zig else None
        if data is not None:
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:  # ours, whole, and of folders and files alone
                archive.extractall(self.folder, [m for m in archive.getmembers() if m.isdir() or m.isreg()])
            self.known = True

    def pack(self) -> None:
        if self.zig and not self.known and self.folder.is_dir():
            data = io.BytesIO()
            with tarfile.open(fileobj=data, mode="w") as archive:
                archive.add(self.folder, "")
            with contextlib.suppress(OSError):  # it can be made again
                sealed.save(self.path, data.getvalue())


def _sweep(home: Path) -> None:
    """Remove what killed processes left behind a day ago or more."""
    old = time.time() - 86400
    for left in home.glob("tmp-*"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < old:
                left.unlink() if left.is_file() else shutil.rmtree(left, ignore_errors=True)


# -- turns -----------------------------------------------------------------------------------------------------------

_turns: dict[str, Any] = {}  # locks


@contextlib.contextmanager
def _turn(home: Path, name: str) -> Iterator[None]:
    """Only one thread of one process at a time is in here, for names that begin alike in one folder.

    A lock between processes that the system drops with the process that held it, dead or alive. It belongs to the
    process as a whole, and closing the file anywhere in it drops it, so the threads of a process take turns first.
    """
    path = home / "locks" / name[:2]
    with _turns.setdefault(str(path), renewed(threading.RLock())):
        sealed.make(path.parent)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with open(handle, "wb") as file:
            if sys.platform != "win32":
                with contextlib.suppress(OSError):  # a file system without locks is as bad
                    fcntl.lockf(file, fcntl.LOCK_EX)
            yield


# -- the private folder ----------------------------------------------------------------------------------------------


class _Private:
    """The temporary cache folder of this process, once it was needed."""

    path: Path | None = None
    lock = renewed(threading.RLock())


def _private(reason: str) -> Path:
    """The private folder, with a warning the first time; removed when the process ends."""
    with _Private.lock:
        if _Private.path is None:
            _Private.path = Path(os.path.realpath(tempfile.mkdtemp(prefix="dynagrad-")))
            atexit.register(_remove, _Private.path, os.getpid())
            warn(
                f"the cache of compiled programs cannot be used ({reason}); programs are compiled again in each "
                "process. Set DYNAGRAD_CACHE to a folder of yours that can be written.",
                RuntimeWarning,
            )
        return _Private.path


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:  # not when a fork of it ends
        shutil.rmtree(path, ignore_errors=True)
