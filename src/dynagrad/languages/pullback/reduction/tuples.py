"""Tuples as terms, as patterns and as coefficients: pairs that are nested to the right.

Trees of Python's own tuples, which values are made of, are in `trees.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..terms import ZERO, Coefficients, Pair, Pattern, PullbackTerm, Var, Zero
from ..trees import folded, nested_right


def nested(parts: Sequence[PullbackTerm]) -> PullbackTerm:
    """The parts as a tuple; one as it is."""
    return nested_right(parts, Pair) if parts else ZERO


def unnested(whole: PullbackTerm, count: int) -> list[PullbackTerm]:
    """The parts of a tuple."""
    found: list[PullbackTerm] = []
    while len(found) < count - 1:
        if isinstance(whole, Pair):
            found.append(whole.first)
            whole = whole.second
        else:
            assert isinstance(whole, Zero)
            found.append(ZERO)
    return [*found, whole] if count else []


def nested_pattern(names: Sequence[str]) -> Pattern:
    """The pattern that matches such a tuple."""
    parts: Sequence[Pattern] = names
    return nested_right(parts, lambda a, b: (a, b))


def matched(pattern: Pattern) -> PullbackTerm:
    """The term that a pattern matches."""
    return folded(pattern, Var, Pair)


def tuple_of(parts: list[float]) -> Coefficients:
    """Coefficients nested to the right."""
    tree: Sequence[Coefficients] = parts
    return nested_right(tree, lambda a, b: (a, b))
