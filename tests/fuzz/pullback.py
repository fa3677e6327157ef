"""Fuzzes pullback terms: random programs, every other one with derivatives along functions and duals.

A program is right where its reduction and its evaluation agree with what it means through `dg.vjp`, to 1e-12.
"""

from __future__ import annotations

from pullback_agreement import agree, drawn
from pullback_terms import HigherSource, Source


def check(number: int) -> str:
    """What is wrong with a program."""
    try:
        agree(drawn((Source, HigherSource)[number % 2], number // 2))
    except AssertionError as error:
        return str(error) or "it does not agree"
    return ""
