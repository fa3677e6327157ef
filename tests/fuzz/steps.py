"""Fuzzes the steps of pullback terms: one redex each, each ends where the next begins, type and meaning stay."""

from __future__ import annotations

import random

from languages.pullback.agreement import drawn
from languages.pullback.steps import apart_from_the_next, changed, without_its_redex
from languages.pullback.terms import HigherSource, Source


def check(number: int) -> str:
    """What is wrong with the steps of a program."""
    kind, seed = (Source, HigherSource)[number % 2], number // 2
    pick = random.Random(seed)
    small = kind(pick).program(pick.randrange(1, 5))
    found = apart_from_the_next(drawn(kind, seed)) or changed(small)
    return found or (without_its_redex(drawn(kind, seed)) if kind is Source else "")
