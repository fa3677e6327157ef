"""How much the C++ compiler is to optimise at most, which users say in DYNAGRAD_OPTIMISE.

What a level means to the compiler is for `runtime/compiling/toolchain.py`.
"""

from __future__ import annotations

import os

from ..errors import Error


def at_most(level: int) -> int:
    """A level of optimisation, 0 to 3, or the lower one that DYNAGRAD_OPTIMISE names, read as something is compiled.

    >>> at_most(0)
    0
    """
    wished = os.environ.get("DYNAGRAD_OPTIMISE", "").strip()
    if wished not in ("", "0", "1", "2", "3"):
        raise Error(f"the environment variable DYNAGRAD_OPTIMISE must be 0, 1, 2 or 3, not {wished[:20]!r}")
    return min(level, int(wished or 3))
