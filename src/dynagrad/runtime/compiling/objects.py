"""Objects that libraries are linked with: each is compiled once for its level (see `dynagrad/base/linked.hpp`).

Generators of code say which objects there are; `cache.py` compiles and keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Object:
    """The source of an object, and the compiler's level of optimisation for it.

    One that is `bare` defines macros before it includes anything: it has no use for the precompiled header that others
    are compiled with. The level of one that is `capped` is at most what DYNAGRAD_OPTIMISE says, as that of the library;
    others are the same whatever it says, so that all libraries share them.
    """

    source: str
    optimise: int = 3
    bare: bool = False
    capped: bool = False
