"""Tuples as terms, as patterns and as coefficients: pairs that are nested to the right."""

from __future__ import annotations

from collections.abc import Sequence

from ..terms import ZERO, Coefficients, Pair, Pattern, Term, Var, Zero


def nested(parts: Sequence[Term]) -> Term:
    """The parts as a tuple; one as it is."""
    if not parts:
        return ZERO
    *before, made = parts
    for part in reversed(before):
        made = Pair(part, made)
    return made


def unnested(whole: Term, count: int) -> list[Term]:
    """The parts of a tuple."""
    found: list[Term] = []
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
    *before, made = names
    tree: Pattern = made
    for name in reversed(before):
        tree = (name, tree)
    return tree


def matched(pattern: Pattern) -> Term:
    """The term that a pattern matches."""
    done: list[Term] = []
    todo: list[Pattern | None] = [pattern]
    while todo:
        part = todo.pop()
        if part is None:
            second, first = done.pop(), done.pop()
            done.append(Pair(first, second))
        elif isinstance(part, str):
            done.append(Var(part))
        else:
            todo += (None, part[1], part[0])
    return done[0]


def tuple_of(parts: list[float]) -> Coefficients:
    """Coefficients nested to the right."""
    *before, made = parts
    tree: Coefficients = made
    for part in reversed(before):
        tree = (part, tree)
    return tree
