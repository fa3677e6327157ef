"""The memory that this process may use: that of the machine, within its control groups and its address space limit.

How much of it a chart may take is for `limits.py`.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import resource

_NO_LIMIT = 2**62


def memory() -> int:
    """The bytes that this process may use, as far as the system says.

    >>> memory() > 0
    True
    """
    return min(_installed(), _left())


@functools.cache
def _installed() -> int:
    """The memory of the machine, or of the control groups that this process is in: a container, or a batch job."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        whole = 16 << 30
    return min(whole, group_memory())


def group_memory(groups: Path = Path("/proc/self/cgroup"), top: Path = Path("/sys/fs/cgroup")) -> int:
    """The least memory limit of this process's control groups and their ancestors, version 1 or 2 (cgroups(7)).

    `groups` lists them, a line for each hierarchy, and they are mounted under `top`. In a container the folder of its
    own group may be mounted there, so that the named folder does not exist.
    """
    try:
        lines = groups.read_text(errors="surrogateescape").splitlines()
    except (OSError, ValueError):
        return _NO_LIMIT
    return min((limit for line in lines for limit in _limits(line, top)), default=_NO_LIMIT)


def _limits(line: str, top: Path) -> Iterator[int]:
    """The limits of the group in a line of `/proc/self/cgroup`, and of its ancestors."""
    number, _, rest = line.partition(":")
    controllers, _, name = rest.partition(":")
    if number == "0":  # version 2: one hierarchy, whose controllers are not named
        mount, file = top, "memory.max"
    elif "memory" in controllers.split(","):
        mount, file = top / "memory", "memory.limit_in_bytes"
    else:
        return
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]  # a group outside is `/..`
    for depth in range(len(parts) + 1):
        try:
            yield int(mount.joinpath(*parts[:depth], file).read_text())
        except (OSError, ValueError):  # not there, or "max"
            continue


def _left() -> int:
    """What the limit on this process's address space leaves."""
    if sys.platform == "win32":
        return _NO_LIMIT
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return _NO_LIMIT
    return max(most - _pages(0), 0)


def resident() -> int:
    """The bytes of memory that this process has now; 0 where the system does not say.

    >>> resident() >= 0
    True
    """
    return _pages(1)


def _pages(field: int) -> int:
    """The bytes in a field of `/proc/self/statm` (proc_pid_statm(5)): 0 the address space, 1 what is resident."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[field]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0
