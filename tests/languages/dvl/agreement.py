"""Runs random programs of DVL against the oracle for as long as it is told to: after large changes, by hand.

    PYTHONPATH=src:tests python -m languages.dvl.agreement SECONDS [FIRST] [EVERY]

Every EVERY-th of them (10, unless said) is compiled, too. Differences are printed with the program, and what is not
compiled is counted by its message.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import Any

import dynagrad as dg
from languages.dvl.oracle import Unclear, meaning
from languages.dvl.random_programs import DEFINITIONS, expression
from languages.dvl.running import compiled, values

LONGEST = 3000
TOGETHER = 25
WAYS = {"run": values, "compiled": compiled}


def drawn(seed: int) -> tuple[str, Any] | None:
    """A program and its value, or None where it is no test."""
    text = expression(seed)
    if len(text) > LONGEST:
        return None
    try:
        return text, meaning(DEFINITIONS + text)[-1]
    except (Unclear, RecursionError, ZeroDivisionError):
        return None


def near(found: Any, expected: Any, within: float = 1e-8) -> bool:
    """Whether a value is the expected one, numbers but for rounding."""
    if isinstance(expected, tuple):
        return isinstance(found, tuple) and len(found) == len(expected) and all(map(near, found, expected))
    if isinstance(expected, float):
        return isinstance(found, float) and abs(found - expected) <= within * max(1.0, abs(expected))
    return bool(found == expected)


def differences(seconds: float, first: int, every: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    end, seed = time.monotonic() + seconds, first
    waiting: list[tuple[int, str, Any]] = []
    while time.monotonic() < end:
        seed += 1
        case = drawn(seed)
        if case is None:
            counts["no test"] += 1
            continue
        judged("run", [(seed, *case)], counts)
        if seed % every == 0:
            waiting.append((seed, *case))
        if len(waiting) == TOGETHER:
            judged("compiled", waiting, counts)
            waiting = []
    return counts


def judged(name: str, cases: list[tuple[int, str, Any]], counts: Counter[str]) -> None:
    """Computes some programs as one, and where that is an error, each by itself."""
    found: Any
    try:
        found = WAYS[name](DEFINITIONS + "\n".join(text for _, text, _ in cases))
    except dg.LiftError as problem:
        found = problem
    except Exception as problem:  # whatever it is, it is no value
        found = problem
    if isinstance(found, Exception) and len(cases) > 1:
        for case in cases:
            judged(name, [case], counts)
        return
    counts[name] += len(cases)
    for (seed, text, expected), value in zip(cases, found if isinstance(found, list) else [found], strict=True):
        if isinstance(value, dg.LiftError):
            counts[f"not compiled: {value.message}"] += 1
        elif not near(value, expected):
            counts["different"] += 1
            print(f"{seed}, {name}: {value!r}, not {expected!r}\n{text}", flush=True)


if __name__ == "__main__":
    sys.setrecursionlimit(20_000)
    arguments = [float(sys.argv[1]), *map(int, sys.argv[2:])]
    for what, count in differences(*(arguments + [0, 10][len(arguments) - 1 :])).most_common():  # type: ignore[arg-type]
        print(count, what)
