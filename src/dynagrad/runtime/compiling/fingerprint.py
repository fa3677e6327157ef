"""The fingerprint of a compiled program: a hash of all that its library depends on.

That is the source, the compiler and its options, this machine's processor and the runtime headers.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import functools
import hashlib
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

from . import toolchain

FORMAT = "3"
"""The version of files in the cache: older ones are not found."""


def fingerprint(source: str, tool: toolchain.Compiler, options: Sequence[str]) -> str:
    """The name of the library that `source` compiles to."""
    return combined(FORMAT, tool.identity, repr(options), _processor(), _headers(), source)


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


def place_of_headers() -> str:
    """A hash of the place of the runtime headers and of their times, on which precompiled headers depend."""
    return combined(str(toolchain.INCLUDE), repr(_stats()))


def _headers() -> str:
    """A hash of the runtime headers."""
    return _read_headers(_stats())


def _stats() -> tuple[tuple[str, int, int], ...]:
    """The headers, with their times and sizes."""
    stats = []
    for home, _, names in os.walk(toolchain.INCLUDE / "dynagrad"):
        for name in names:
            path = os.path.join(home, name)
            stat = os.stat(path)
            stats.append((path, stat.st_mtime_ns, stat.st_size))
    return tuple(sorted(stats))


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
    """The identity of this machine's processor: libraries are compiled for it (-march=native)."""
    machine = f"{sys.platform} {platform.machine()} "
    if sys.platform == "darwin":
        with contextlib.suppress(OSError, AttributeError):
            library, size = (ctypes.CDLL(ctypes.util.find_library("c")), ctypes.c_size_t(256))
            text = ctypes.create_string_buffer(256)
            library.sysctlbyname(b"machdep.cpu.brand_string", text, ctypes.byref(size), None, 0)
            return machine + text.value.decode(errors="replace")
    try:
        # The first processor, up to the first empty line; the rest may be long, and slow to read. Lines that change
        # with time (its frequency) are left out.
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
