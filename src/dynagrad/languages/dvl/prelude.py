"""The procedures that are written in DVL: those of every program, and those that the compiler calls.

Here they are only read and lowered: what they do is said in `prelude.dvl` and `vectors.dvl`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from .builtins import BUILTINS, SETTLED, WITHOUT_TAGS
from .lower import Definitions, Meaning, SymbolScope, sequence
from .reader import SourceText, read

PRELUDE = str(Path(__file__).with_name("prelude.dvl"))


@functools.cache
def prelude() -> tuple[SymbolScope, Definitions]:
    """What symbols mean before a program begins, and the procedures of `prelude.dvl`."""
    return _defined(PRELUDE)


@functools.cache
def on_unions() -> tuple[SymbolScope, Definitions]:
    """The same of `vectors.dvl`, which has vectors of which the run decides how long they are."""
    return _defined(str(Path(__file__).with_name("vectors.dvl")), {b.name: b for b in (SETTLED, WITHOUT_TAGS)})


def _defined(path: str, more: Mapping[str, Meaning] | None = None) -> tuple[SymbolScope, Definitions]:
    """What symbols mean, and the procedures that a file of the package defines."""
    body = read(SourceText(Path(path).read_text(encoding="utf-8"), path, library=True))
    _, scope, found = sequence(body, SymbolScope({**BUILTINS, **(more or {})}))
    return scope, found
