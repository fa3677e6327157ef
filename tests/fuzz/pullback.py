"""Fuzzes pullback terms: random programs, with derivatives along functions and duals too, and terms of a stranger.

A program is right where its reduction and its evaluation agree with what it means through `dg.vjp`, to 1e-12, and a
stranger's where they agree with central differences in 50 digits, to 1e-9.
"""

from __future__ import annotations

from languages.pullback.agreement import agree, agree_with_stranger, drawn
from languages.pullback.terms import HigherSource, Source


def check(number: int) -> str:
    """What is wrong with a program."""
    try:
        if number % 3 == 2:
            agree_with_stranger(number // 3)
        else:
            agree(drawn((Source, HigherSource)[number % 3], number // 3))
    except AssertionError as error:
        return str(error) or "it does not agree"
    return ""
