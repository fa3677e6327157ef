"""Fuzzes plans: random programs in all semirings and under all agendas, run by the interpreter of nests, have the items
and the values that the oracle has. Nothing is compiled.

    PYTHONPATH=src:tests python -m fuzz.nests COUNT [FIRST]
"""

from __future__ import annotations

import functools
import sys
import time
import warnings
from collections import Counter

import dynagrad as dg
from charts.test_engine import compiled, drawn, given_facts, visible
from dynagrad.rules.parse import parse
from interpreted import differences, items, run_plan
from language_cases import Case, oracle_semiring
from oracle import Conflict, Diverged, evaluate
from random_programs import CYCLIC_SEMIRINGS, SEMIRINGS, Draw, Program

KINDS: tuple[tuple[str | None, bool], ...] = (
    *((semiring, False) for semiring in SEMIRINGS),
    *((semiring, True) for semiring in CYCLIC_SEMIRINGS),
    (None, False),
)
"""A semiring, and whether there are cycles; None is plain arithmetic."""
AGENDAS = ("auto", "auto", "priority", "fifo", "lifo")


@functools.lru_cache(maxsize=4)
def program_of(seed: int) -> tuple[Program, str | None, str]:
    """The program of that number, its semiring, and its agenda."""
    semiring, cyclic = KINDS[seed % len(KINDS)]
    draw = Draw(f"nests {seed}")
    return drawn(draw, semiring, cyclic), semiring, draw.one(AGENDAS)


def wrong(program: Program | Case, semiring: str | None, agenda: str) -> str | None:
    """What the interpreter makes of a program that the oracle does not."""
    source = parse(program.source)
    values = evaluate(source, program.facts, semiring=oracle_semiring(semiring), functions=dict(program.functions))
    run = run_plan(compiled(program.source, semiring, agenda, program.functions), given_facts(program.facts))
    for key in visible(source):
        theirs = {row: value for (k, row), value in values.items() if k == key}
        if found := differences(items(run, key), theirs, 1e-9):
            return f"{key}: {found[0]}"
    return None


def check(seed: int) -> str | None:
    """What is wrong with the program of that number, or nothing."""
    program, semiring, agenda = program_of(seed)
    try:
        said = wrong(program, semiring, agenda)
    except (Conflict, Diverged, OverflowError):  # the oracle has no answer
        return None
    return said and f"{semiring}, {agenda}: {said} in {program}"


def main(count: int, first: int = 0) -> int:
    """Tries so many programs, and prints what is wrong."""
    warnings.simplefilter("ignore")
    began, found = time.monotonic(), Counter[str]()
    for seed in range(first, first + count):
        try:
            said = check(seed)
        except dg.Error as error:
            said = f"{type(error).__name__}: {error} in {program_of(seed)}"
        found["wrong" if said else "right"] += 1
        if said:
            print(f"{seed}: {said}", flush=True)
        if (seed + 1) % 1000 == 0:
            print(f"{seed + 1}: {dict(found)}, {time.monotonic() - began:.0f} s", flush=True)
    return min(1, found["wrong"])


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
