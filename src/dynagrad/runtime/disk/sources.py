"""The hash of the package's sources, on which rules, plans and sources of classes that are kept on disk depend.

The rooms that do not count are listed, so that a new file counts unless somebody says otherwise.
"""

from __future__ import annotations

import functools
import os
import sys
import time

from .contents import NEW, combined, hash_of, stats_in

OTHERS = frozenset(
    {
        "charts",
        "cli",
        "codegen/graph",  # what has functions of graphs in it is not kept
        "compiler",
        "eager",
        "facts",
        "forests",
        "languages",
        "numpy",
        "runtime/include",  # whose hash is in the names of libraries
        "training",
    }
)
"""The rooms of the package that decide nothing of rules, plans and classes."""

_BEGAN = time.time_ns() - NEW


@functools.cache
def sources() -> str | None:
    """The hash; None where it may not be that of what this process has imported, so that nothing is to be kept.

    That is so where a file was changed since then, as by an upgrade, or where sources are not files.
    """
    package = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    try:
        stats = stats_in(package, but=frozenset(os.path.join(package, *room.split("/")) for room in OTHERS))
        if not any(path.endswith(".py") for path, *_ in stats) or max(max(s[1:3]) for s in stats) > _BEGAN:
            return None
        return combined(repr(sys.version_info[:2]), hash_of(stats, package))
    except OSError:
        return None
