"""Fuzzes plans and code: random programs, a dozen in one class, have the items, the values and the gradients in the
engine that they have by the interpreter of nests, which runs the same plan.

    PYTHONPATH=src:tests python -m fuzz.judges COUNT [FIRST]

An input costs a few seconds, nearly all of them compiling.
"""

from __future__ import annotations

import functools
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import dynagrad as dg
from charts.test_engine import compiled, derived, given_facts, visible
from dynagrad.charts.chart import run_of
from dynagrad.plan.interpreter import Interpreted
from dynagrad.rules.parse import parse
from fuzz.nests import AGENDAS, KINDS, judged_by_oracle, program_in
from interpreted import Undecided, differences, gradient_difference, items, run_plan
from random_programs import Draw, Program, combined

TOGETHER = 12
"""How many programs of a fuzzer's input are compiled together."""
GRADIENTS = 2
"""Of how many items of a program the gradients are compared."""


@functools.lru_cache(maxsize=4)
def programs_of(seed: int, count: int = TOGETHER) -> tuple[tuple[Program, ...], str | None, str]:
    """The programs of that number, on which oracle and interpreter agree; their semiring, and their agenda."""
    semiring, cyclic = KINDS[seed % len(KINDS)]
    draw, found = Draw(f"judges {seed}"), list[Program]()
    agenda = draw.one(AGENDAS)
    while len(found) < count:
        program = program_in(draw, semiring, cyclic)
        if judged_by_oracle(program, semiring, agenda)[0] == "right":
            found.append(program)
    return tuple(found), semiring, agenda


def disagreements(programs: Sequence[Program], semiring: str | None, agenda: str, draw: Draw) -> list[str]:
    """Where engine and interpreter differ on programs that are compiled together."""
    together = combined(programs)
    program, facts = compiled(together.source, semiring, agenda, together.functions), given_facts(together.facts)
    chart = program.run(facts)
    run = run_plan(program, facts, run_of(chart).ready().compiled.plan)
    found = []
    for place, each in enumerate(programs):
        if said := disagreement(run, chart, each, f"p{place}_", draw):
            found.append(f"{semiring}, {agenda}: {said} in {each}")
    return found


def disagreement(run: Interpreted, chart: Any, program: Program, prefix: str, draw: Draw) -> str | None:
    """Where engine and interpreter differ on one of the programs, whose names have a prefix."""
    keys = [prefix + key for key in visible(parse(program.source))]
    for key in keys:
        if wrong := differences(items(run, key), derived(chart, key), 1e-9):
            return f"{key}: {wrong[0]}"
    rows = [(key, row) for key in keys for row in run.items[key]]
    for key, row in draw.several(rows, 1, GRADIENTS) if rows else ():
        try:
            if said := gradient_difference(run, chart, key, row):
                return said
        except Undecided:
            continue
    return None


def check(seed: int, count: int = TOGETHER) -> str | None:
    """What is wrong with the programs of that number, or nothing."""
    programs, semiring, agenda = programs_of(seed, count)
    draw = Draw(f"items {seed}")
    try:
        found = disagreements(programs, semiring, agenda, draw)
    except (dg.Error, AssertionError):  # of which of them?
        found = []
        for program in programs:
            try:
                found += disagreements([program], semiring, agenda, draw)
            except (dg.Error, AssertionError) as error:
                found.append(f"{semiring}, {agenda}: {type(error).__name__}: {error} in {program}")
    return "\n".join(found) or None


def main(count: int, first: int = 0) -> int:
    """Tries so many inputs, and prints what is wrong."""
    warnings.simplefilter("ignore")
    began, verdicts = time.monotonic(), Counter[str]()
    for seed in range(first, first + count):
        said = check(seed)
        verdicts["wrong" if said else "right"] += 1
        if said:
            print(f"{seed}: {said}", flush=True)
        if (seed + 1) % 15 == 0:
            print(f"{seed + 1}: {dict(verdicts)}, {time.monotonic() - began:.0f} s", flush=True)
    return min(1, verdicts["wrong"])


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
