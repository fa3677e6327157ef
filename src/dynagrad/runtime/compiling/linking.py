"""Linking by zig's linker, lld, against the C library that this process runs with.

zig's C++ front links against stubs of the C library that it makes first, which takes a new machine as long as compiling
a program. A library that is made for this process needs no others than those which the process has loaded. Where they
are not known (other systems than Linux, other libraries than glibc), zig links. No options of the compiler are known
here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

STDIN = "/dev/stdin"
"""An object that another program writes."""

_OPTIONS = ("-shared", "-s", "-znow", "-zdefs", "--gc-sections", "--eh-frame-hdr", "--build-id=none", "--as-needed")


def linker(front: Sequence[str]) -> tuple[str, ...]:
    """The command that links the objects which are named after it; none where zig has to. `front` starts zig's C++.

    >>> linker(["zig", "c++", "-fsanitize=undefined"])  # that may link with more
    ()
    """
    libraries = _loaded()
    if front[-1] != "c++" or not libraries:
        return ()
    return (*front[:-1], "ld.lld", *_OPTIONS, *libraries)


_NAMES = re.compile(r"/(?:lib(c|m|dl|pthread)|(ld)-linux[^/]*)\.so\.\d+$")


@functools.cache
def _loaded() -> tuple[str, ...]:
    """The paths of the parts of glibc in this process; () if a part that is needed is missing."""
    found: dict[str, str] = {}
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                path = line[line.find("/") :].rstrip("\n")
                part = _NAMES.search(path)
                if part is not None:
                    found[part[1] or part[2]] = path
    except OSError:
        pass
    return tuple(found.values()) if found.keys() >= {"c", "m", "ld"} else ()
