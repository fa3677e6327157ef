"""The fingerprint of a compiled program: a hash of all that its library depends on.

That is the source, the compiler and its options, this machine's processor and the runtime headers. Where libraries lie
under these hashes is for `cache.py`.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import functools
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ..disk.contents import Stat, combined, hash_of, stats_in
from . import toolchain

FORMAT = "5"
"""The version of files in the cache: older ones are not found."""


def fingerprint(sources: Sequence[str], tool: toolchain.Compiler, options: Sequence[str], headers: Headers) -> str:
    """The name of what the sources of a library and of its objects compile to, with the headers as they were."""
    return combined(FORMAT, tool.identity, repr(options), _machine(), _read_headers(headers.stats), *sources)


def name_of_calls(tool: toolchain.Compiler, options: Sequence[str]) -> str:
    """A hash of what the calls of a compiler depend on, beside the files that it is given."""
    return combined(FORMAT, tool.identity, repr(tool.command), repr(options), _machine())


@dataclass(frozen=True)
class Headers:
    """The runtime headers at some moment: their paths, times and sizes."""

    stats: tuple[Stat, ...]

    @classmethod
    def now(cls) -> Headers:
        """The headers as they are now."""
        return cls(stats_in(os.path.join(toolchain.INCLUDE, "dynagrad")))

    def place(self, tool: toolchain.Compiler) -> str:
        """A hash of their place and of their times, on which precompiled headers depend, and of those of the compiler,
        whose own headers came with it."""
        time = ""
        with contextlib.suppress(OSError):
            time = str(os.stat(tool.command[0]).st_mtime_ns)
        return combined(str(toolchain.INCLUDE), repr(self.stats), *tool.command, time)


@functools.lru_cache(maxsize=4)
def _read_headers(stats: tuple[Stat, ...]) -> str:
    """The hash of these headers, read again only when a time or a size has changed."""
    return hash_of(stats, str(toolchain.INCLUDE))


@functools.cache
def _machine() -> str:
    """The identity of this machine: libraries are compiled for its processor (-march=native), and linked
    with its C library.
    """
    machine = f"{sys.platform} {platform.machine()} "
    if sys.platform == "linux":
        with contextlib.suppress(OSError, ValueError):
            machine += f"{os.confstr('CS_GNU_LIBC_VERSION')} "
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
