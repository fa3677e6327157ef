"""Splits the outermost loop of a nest with much work into chunks for several threads (`graphs/parallel.hpp`).

The chunks depend on the loop's length and work alone, so results are the same for any number of threads. Each chunk
reduces into partial results of its own, which are combined in order afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ....ir.types import Type
from ....runtime.shared import SHARED
from .model import Accumulator, Chunks, LoopNest, Total

_MOST_PARTS: int = SHARED.constant("kMostParts")

PART = 1 << 21
"""The least work of a chunk, in thirds of an addition or so: some 30 us."""
_EACH = 8  # the work of an element besides its operations


def in_chunks(nest: LoopNest, scratch: Callable[[Type, int], str]) -> LoopNest:
    """The nest with chunks, where they pay; `scratch` gives memory for copies of an array."""
    if not nest.loops:
        return nest
    done, rounds = 0, 1
    for level, work in enumerate(nest.work):
        rounds *= nest.loops[level - 1][1] if level else 1
        done += work * rounds
    length = nest.loops[0][1]
    grain = -(-PART * length // (done + _EACH * rounds))
    if length < 2 * grain:
        return nest
    parts = parts_of(length, grain)
    if any(_size(t) * parts * 4 > rounds for t in nest.totals):
        return nest
    partials = tuple(f"{t.name}_to" if isinstance(t, Accumulator) else scratch(t.type, parts) for t in nest.totals)
    return replace(nest, chunks=Chunks(grain, 8 if len(nest.loops) == 1 else 1, partials))


def _size(total: Total) -> int:
    return 1 if isinstance(total, Accumulator) else total.type.size


def parts_of(n: int, grain: int) -> int:
    """The number of chunks, as `parts_of` in parallel.hpp."""
    parts = n // max(grain, 1)
    if parts < 8:
        return 1 if parts < 2 else 2 if parts < 4 else 4
    return min(parts, _MOST_PARTS)
