"""Limits on unrolling and inlining, and the environment variables that set them. Nothing is specialised here."""

from __future__ import annotations

from ...arguments import from_environment


def most_copies() -> int:
    """How many copies of a round a loop that has to be unrolled may have, multiplied over the loops around it:
    `DYNAGRAD_UNROLLED`, read while functions are compiled, or 4096.

    >>> most_copies() > 0
    True
    """
    return from_environment("DYNAGRAD_UNROLLED", 4096, 10_000_000, "rounds")


def most_calls() -> int:
    """How many calls of one function may be inlined inside each other: `DYNAGRAD_NESTED`, read while functions are
    compiled, or 120.

    >>> most_calls() > 0
    True
    """
    return from_environment("DYNAGRAD_NESTED", 120, 1000, "calls")
