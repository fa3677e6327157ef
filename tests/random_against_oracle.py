"""Runs random programs with facts against the oracle for as long as it is told to: after large changes, by hand.

    PYTHONPATH=src:tests python tests/random_against_oracle.py SECONDS [FIRST] [DRAWS]

Programs are drawn by `random_programs.py`, some thirty compiled together, in one semiring after the other and under
a random agenda; FIRST is the number of the first group, so that two processes can draw different ones. Each group runs
over DRAWS draws of its facts: other values, and rows left out. Differences are printed with the program. To run under
AddressSanitizer, name a compiler in DYNAGRAD_CXX that adds -fsanitize=address, and preload its library.
"""

from __future__ import annotations

import math
import random
import sys
import time
import warnings
from collections import Counter
from typing import Any

import dynagrad as dg
from charts.test_engine import close, compiled, derived, generated, given_facts, oracle_semiring, visible
from dynagrad.rules.parse import parse
from oracle import Conflict, Diverged, evaluate
from random_programs import Program, combined

SEMIRINGS = ("real", "log", "viterbi", "tropical", "boolean", "count", "expectation", None)
AGENDAS = ("auto", "auto", "auto", "priority", "fifo", "lifo")


def drawn(value: Any, semiring: str | None, draw: random.Random) -> Any:
    """Another number for a fact, no better around a cycle than the one it had."""
    zero = draw.random() < 0.05
    match semiring:
        case "real":
            return 0.0 if zero else value * draw.uniform(0.3, 1)
        case "log" | "viterbi":
            return -math.inf if zero else value - draw.uniform(0, 1)
        case "tropical":
            return value + draw.uniform(0, 1)
        case "expectation" if isinstance(value, tuple):
            return (value[0] * draw.uniform(0.5, 1), value[1])
    return value


def other_facts(program: Program, semiring: str | None, draw: random.Random) -> Program:
    facts = {}
    for key, rows in program.facts.items():
        arity = int(key.rsplit("/", 1)[1])
        kept = [row for row in rows if draw.random() < 0.97] or list(rows)
        facts[key] = [(*row[:arity], *(drawn(v, semiring, draw) for v in row[arity:])) for row in kept]
    return Program(program.source, facts, program.functions)


def wrong(chart: Any, program: Program, semiring: str | None, prefix: str) -> str:
    """Where a chart and the oracle disagree; nothing where they agree."""
    source = parse(program.source)
    values = evaluate(source, program.facts, semiring=oracle_semiring(semiring), functions=dict(program.functions))
    for key in visible(source):
        mine = {row: value for (k, row), value in values.items() if k == key}
        theirs = derived(chart, prefix + key)
        for row in {**mine, **theirs}:
            if row not in mine or row not in theirs or not close(theirs[row], mine[row]):
                return f"{key} {row}: {theirs.get(row)}, should be {mine.get(row)}"
    return ""


def main(seconds: float, number: int = 0, draws: int = 25) -> int:
    warnings.simplefilter("ignore")
    end, count = time.monotonic() + seconds, Counter[str]()
    while time.monotonic() < end:
        semiring, draw = SEMIRINGS[number % len(SEMIRINGS)], random.Random(number)
        programs = generated(semiring, semiring != "count", 32, number)  # a cycle has no count
        number += 1
        if not programs:
            continue
        together, agenda = combined(programs), draw.choice(AGENDAS)
        bound = compiled(together.source, semiring, agenda, together.functions).bind({})
        count["groups"] += 1
        count["programs"] += len(programs)
        for n in range(draws):
            made = [other_facts(p, semiring, draw) if n else p for p in programs]
            try:
                chart = bound.run(given_facts(combined(made).facts), timeout=60)
            except dg.Error as error:
                count[f"{type(error).__name__} in {semiring}"] += 1
                continue
            if not chart.converged:
                count["not in time"] += 1
                continue
            for place, program in enumerate(made):
                try:
                    said = wrong(chart, program, semiring, f"p{place}_")
                except (Diverged, Conflict, OverflowError):
                    count["not judged"] += 1
                    continue
                count["pairs"] += 1
                if said:
                    count["wrong"] += 1
                    print(f"{semiring}, {agenda}, group {number - 1}: {said}\n{program}", flush=True)
    print(dict(count))
    return min(1, count["wrong"])


if __name__ == "__main__":
    seconds, *rest = sys.argv[1:]
    sys.exit(main(float(seconds), *map(int, rest)))
