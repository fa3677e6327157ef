"""Collapses loops: two become one where every array that the nest reads or writes is contiguous along both.

No text is written here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ....passes.index_forms import Form
from .model import LoopNest, forms, rewritten


def collapsed(nest: LoopNest, same_use: Callable[[int], bool]) -> LoopNest:
    """A nest with as few loops as its offsets allow. `same_use` says of a loop, by number, that each reduction treats
    it and the next one alike."""
    merged = [
        number + 1 < len(nest.loops) and same_use(number) and _contiguous(nest, number)
        for number in range(len(nest.loops))
    ]
    if not any(merged):
        return nest
    loops: list[tuple[str, int]] = []
    level_of, dropped, length = [0], set(), 1  # new levels by old ones
    for (counter, n), into_next in zip(nest.loops, merged, strict=True):
        length *= n
        level_of.append(len(loops) + 1)
        if into_next:
            dropped.add(counter)
        else:
            loops.append((counter, length))
            length = 1

    def without(form: Form) -> Form:  # what is left counts all rounds of both loops
        return Form(tuple((w, t) for w, t in form.terms if w not in dropped), form.offset)

    def moved(statement: Any) -> Any:
        there = rewritten(statement, without)
        return replace(there, level=level_of[there.level]) if hasattr(there, "level") else there

    work = [0] * (len(loops) + 1)
    for old, amount in enumerate(nest.work):
        work[level_of[old]] += amount
    return replace(
        nest,
        loops=tuple(loops),
        before=tuple(moved(s) for s in sorted(nest.before, key=lambda s: s.level)),
        stores=tuple(map(moved, nest.stores)),
        after=tuple(map(moved, nest.after)),
        work=tuple(work),
    )


def _contiguous(nest: LoopNest, number: int) -> bool:
    """Whether a round of this loop moves all offsets as far as all rounds of the next one together."""
    (counter, _), (inner, length) = nest.loops[number : number + 2]
    return all(f.times(counter) == f.times(inner) * length for f in forms(nest))
