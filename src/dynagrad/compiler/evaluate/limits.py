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


def most_inlined() -> int:
    """How many calls may be inlined in one specialisation, all in all: `DYNAGRAD_INLINED`, read while functions are
    compiled, or 300000.

    >>> most_inlined() > 0
    True
    """
    return from_environment("DYNAGRAD_INLINED", 300_000, 1_000_000_000, "calls")


def most_parts() -> int:
    """How many parts a structure may have that becomes the state of a loop, or goes from a branch, a recursion or a
    derivative to what follows: parts that are shared count as often as they occur.

    >>> most_parts()
    1000000
    """
    return 1_000_000
