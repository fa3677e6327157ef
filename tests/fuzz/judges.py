"""Fuzzes plans and code: random programs, a dozen in one class, have the items, the values and the gradients in the
engine that they have by the interpreter of nests, which runs the same plan. Classes are cut up as those of large
programs are, and a gradient is that of a library of its own over the chart of a run.

    PYTHONPATH=src:tests python -m fuzz.judges COUNT [FIRST]

An input costs a few seconds, nearly all of them compiling.
"""

from __future__ import annotations

import functools
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from unittest import mock

import dynagrad as dg
from charts.test_engine import derived, given_facts, visible
from dynagrad.charts.chart import run_of
from dynagrad.codegen.rules import context as class_context
from dynagrad.plan import size as class_size
from dynagrad.plan.interpreter import Interpreted
from dynagrad.rules.parse import parse
from fuzz.nests import checked, judged_by_oracle, kind_of, program_in, with_vectors
from interpreted import Undecided, differences, gradient_difference, items, run_plan
from random_programs import Draw, Program, combined

TOGETHER = 12
"""How many programs of a fuzzer's input are compiled together."""
GRADIENTS = 2
"""Of how many items of a program the gradients are compared."""
CUTS: Mapping[str, tuple[Any, str, int]] = {
    "tables in one group": (class_context, "GROUP", class_context.GROUP),
    "a group for each table": (class_context, "GROUP", 1),
    "rules that share functions": (class_size, "LARGE_PROGRAM", 1),
}
"""How the class of a program is cut up: of a module of the package a number that decides it."""


@functools.lru_cache(maxsize=4)
def programs_of(seed: int, count: int = TOGETHER) -> tuple[tuple[Program, ...], str | None, str]:
    """The programs of that number, on which oracle and interpreter agree; their semiring, and their agenda."""
    semiring, cyclic, agenda = kind_of(seed)
    draw, found = Draw(f"judges {seed}"), list[Program]()
    while len(found) < count:
        program = program_in(draw, semiring, cyclic)
        if judged_by_oracle(program, semiring, agenda)[0] == "right":
            found.append(program)
    if semiring == "expectation" and agenda == "auto" and all(":- external" not in p.source for p in found):
        found = [with_vectors(program) for program in found]  # of one length
    return tuple(found), semiring, agenda


def disagreements(programs: Sequence[Program], semiring: str | None, agenda: str, draw: Draw) -> list[str]:
    """Where engine and interpreter differ on programs that are compiled together."""
    together = combined(programs)
    program, facts = checked(together, semiring, agenda), given_facts(together.facts)
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
    plain = run.state.plan.semiring == "plain"  # in a cycle infinite values settle before their derivatives do
    rows = [(key, row) for key in keys for row, x in run.items[key].items() if not plain or math.isfinite(float(x))]
    for key, row in draw.several(rows, 1, GRADIENTS) if rows else ():
        try:
            if said := gradient_difference(run, chart, key, row):
                return said
        except Undecided:
            continue
    return None


def check(seed: int, count: int = TOGETHER, cut: str | None = None) -> str | None:
    """What is wrong with the programs of that number, or nothing."""
    draw = Draw(f"items {seed}")
    with mock.patch.object(*CUTS[cut or draw.one(list(CUTS))]):
        found = _disagreements(*programs_of(seed, count), draw)
    return "\n".join(found) or None


def _disagreements(programs: Sequence[Program], semiring: str | None, agenda: str, draw: Draw) -> list[str]:
    """The same, where what fails is asked again, program by program."""
    try:
        return disagreements(programs, semiring, agenda, draw)
    except (dg.Error, AssertionError):  # of which of them?
        found = []
        for program in programs:
            try:
                found += disagreements([program], semiring, agenda, draw)
            except (dg.Error, AssertionError) as error:
                found.append(f"{semiring}, {agenda}: {type(error).__name__}: {error} in {program}")
        return found


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
