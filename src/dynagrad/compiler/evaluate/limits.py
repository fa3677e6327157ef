"""Limits on unrolling and inlining, and the environment variables that set them. Nothing is specialised here."""

from __future__ import annotations

import os

from ...errors import Error


def most_copies() -> int:
    """How many copies of a round a loop that has to be unrolled may have, multiplied over the loops around it:
    `DYNAGRAD_UNROLLED`, read while functions are compiled, or 4096.

    >>> most_copies() > 0
    True
    """
    return _setting("DYNAGRAD_UNROLLED", "rounds", 4096, 10_000_000)


def most_calls() -> int:
    """How many calls of one function may be inlined inside each other: `DYNAGRAD_NESTED`, read while functions are
    compiled, or 120.

    >>> most_calls() > 0
    True
    """
    return _setting("DYNAGRAD_NESTED", "calls", 120, 1000)


def _setting(name: str, of: str, otherwise: int, most: int) -> int:
    given = os.environ.get(name, "").strip()
    if given and (not given.isascii() or not given.isdigit() or not 1 <= int(given[:12]) <= most):
        raise Error(f"{name} must be a whole number of {of}, from 1 to {most}, not {given!r}")
    return int(given) if given else otherwise
