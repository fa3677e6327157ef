"""Bounds-check elimination: checks of affine indices hoisted out of a loop (Gupta 1993).

An index that grows by a constant each round is in range in all rounds if it is in the first and the last one. Then the
loop needs no check, and the compiler can vectorise it. Only conditions are written here, no statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.control import Loop
from ...ir.node import Node, order
from ...ir.types import integer
from ...passes.bounds import GraphBounds
from ...passes.classify import holes_of
from ...passes.linear_forms import MOST_STEP, Form, name
from ...passes.loops.rounds import form_of
from ..cxx import literal
from .memory import Memory, Value

MOST_ROUNDS = 1 << 40  # so that its product with MOST_STEP does not overflow

Key = tuple[Node, int]


@dataclass(frozen=True)
class InRange:
    """Indices that are in range in all rounds if a condition, in C++, holds before the loop."""

    indices: frozenset[Key]
    condition: str


def hoisted(
    loop: Loop, captured: Sequence[Value], counter: str, length: str, most: int | None, inside: GraphBounds
) -> InRange:
    """The indices of a counted loop whose checks can be hoisted, and the condition; `most` is how often it runs."""
    first, *others = loop.body.inputs
    forms: dict[Node, Form | None] = {first: name(counter)}
    for node, value in zip(others[loop.states :], captured, strict=True):
        if not isinstance(value, Memory) and node.type is integer:
            forms[node] = name(str(value))
    found: set[Key] = set()
    of_length: dict[str, None] = {}
    tests: dict[str, None] = {}
    for node in order(loop.body.outputs):
        for hole, n in holes_of(node):
            if hole.shape or hole.is_constant or (hole, n) in found or inside.within(hole, n):
                continue
            form = form_of(hole, forms)
            if form is None or any(abs(t) > MOST_STEP for _, t in form.terms):
                continue
            found.add((hole, n))
            slope = form.times(counter)
            start = form - name(counter) * slope
            tests[f"uint64_t({start}) < {n}"] = None
            if slope:
                tests[f"uint64_t({start} + {literal(slope)} * ({length} - 1)) < {n}"] = None
                if most is None or most > MOST_ROUNDS:
                    of_length[f"{length} <= {MOST_ROUNDS}"] = None
    if not tests:
        return InRange(frozenset(found), "")
    return InRange(frozenset(found), " && ".join([f"{length} > 0", *of_length, *tests]))
