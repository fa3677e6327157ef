"""Compiled functions: what they and their gradients cost beside jax and beside C++ by hand, and how long they compile.

The programs are in `programs/`. All figures of a program come from one run, in which the contenders take turns; each
is the median of several measurements, and a measurement calls with several arguments one after the other. Compiling is
measured separately, in a process and a cache of its own. `python -m benchmarks.compiled lstm ode` measures these alone.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import dynagrad as dg

from .common import Row, Skip, medians, python, timed
from .functions import peer
from .programs import PROGRAMS
from .programs.check import in_jax, off
from .programs.native import Native
from .programs.program import Program

Call = Callable[[], object]
Function = Callable[..., Any]

TUNED = "jax.jit, tuned for the value"
ARGUMENTS = 5  # how many are called with in turn
SHORTEST = 5e-3  # seconds of a measurement


def warm_up(x: float) -> float:
    return 2.0 * x


def own(program: Program) -> tuple[Function, Function]:
    """The compiled function and the compiled gradient."""
    compile_: Any = getattr(dg, "compile", None)
    if compile_ is None:
        raise Skip("there is no dg.compile")
    return compile_(program.function), compile_(dg.grad(program.function, program.argnums))


def compile_seconds(name: str) -> Iterator[float]:
    """The seconds of the first calls of function and gradient, with only another function in the cache."""
    program = PROGRAMS[name]
    arguments = program.inputs(np.random.default_rng(0))
    compile_: Any = dg.compile
    compile_(warm_up)(1.5)
    for f in own(program):
        yield timed(lambda f=f: f(*arguments))


def compiling(program: Program) -> list[Row]:
    code = f"from benchmarks.compiled import compile_seconds\nprint(*compile_seconds({program.name!r}))"
    with tempfile.TemporaryDirectory() as cache:
        seconds = python(code, cache)
    return [
        Row(f"{program.what}: {part}, first call", found, "s", target=3.0)
        for part, found in zip(("function", "gradient"), seconds, strict=True)
    ]


def in_turn(calls: Sequence[Call]) -> Callable[[], float]:
    """The seconds of a call, from enough calls in a row to be timed."""

    def once() -> None:
        for call in calls:
            call()

    once()
    rounds = max(1, int(SHORTEST / timed(once)))

    def measure() -> float:
        start = time.perf_counter()
        for _ in range(rounds):
            for call in calls:
                call()
        return (time.perf_counter() - start) / (rounds * len(calls))

    return measure


def contenders(program: Program, pool: Sequence[tuple[Any, ...]]) -> dict[tuple[str, str], Callable[[], float]]:
    """A measurement for each peer, by its name and what it computes."""
    jax = peer("jax")
    found: dict[tuple[str, str], Callable[[], float]] = {}
    theirs = [[jax.numpy.asarray(a) for a in arguments] for arguments in pool]
    for part, f in zip(("function", "gradient"), in_jax(program), strict=True):
        found["jax.jit", part] = in_turn([lambda a=a, f=f: jax.block_until_ready(f(*a)) for a in theirs])
    if program.jax_tuned is not None:
        tuned = jax.jit(program.jax_tuned())
        found[TUNED, "function"] = in_turn([lambda a=a: jax.block_until_ready(tuned(*a)) for a in theirs])
    if program.native is not None:
        native = Native(program.native)
        flat = [Native.flat(arguments) for arguments in pool]
        found["C++ by hand", "function"] = in_turn([native.function(a) for a in flat])
        found["C++ by hand", "gradient"] = in_turn([native.gradient(a)[0] for a in flat])
    return found


def targets(program: Program) -> dict[tuple[str, str], float]:
    """Targets: the ratio of our time to that of a peer."""
    if program.native is None:
        return {("jax.jit", "function"): 1.0, ("jax.jit", "gradient"): 1.0}
    tuned = {} if program.jax_tuned is None else {(TUNED, "function"): 1.0}
    return {
        ("jax.jit", "function"): 0.8,
        **tuned,
        ("jax.jit", "gradient"): 0.5,
        ("C++ by hand", "function"): 1.2,
        ("C++ by hand", "gradient"): 2.0,
    }


def worst(program: Program, ours: tuple[Function, Function], arguments: tuple[Any, ...]) -> Row:
    """The largest relative difference of value and gradient from jax."""
    pairs = zip(ours, in_jax(program), strict=True)
    found = max(off(f(*arguments), g(*arguments)) for f, g in pairs)
    return Row(f"{program.what}: worst relative difference", found, "", target=1e-9, note="from jax")


def rows(program: Program) -> list[Row]:
    """All rows of a program. Where it does not compile, the rows of the peers, with the reason."""
    rng = np.random.default_rng(0)
    pool = [program.inputs(rng) for _ in range(ARGUMENTS)]
    works = contenders(program, pool)
    apart: list[Row] = []
    reason = ""
    try:
        ours = own(program)
        apart = [worst(program, ours, pool[0]), *compiling(program)]
        for part, f in zip(("function", "gradient"), ours, strict=True):
            works["own", part] = in_turn([partial(f, *arguments) for arguments in pool])
    except Exception as error:  # the other programs are to be measured all the same
        first, *_ = str(error).splitlines() or [""]
        reason = first if isinstance(error, Skip) else f"{type(error).__name__}: {first}"
        works = {key: work for key, work in works.items() if key[0] != "own"}
    times = dict(zip(works, medians(*works.values()), strict=True))
    function, gradient = times.get(("own", "function")), times.get(("own", "gradient"))
    own_times = {"function": function, "gradient": gradient}
    table = [
        Row(f"{program.what}: gradient", gradient, "s", "the function", function, program.limit, note=reason),
    ]
    for (who, part), target in targets(program).items():
        note = program.only_forward if (who, part) == ("jax.jit", "gradient") else ""
        table.append(Row(f"{program.what}: {part}", own_times[part], "s", who, times[who, part], target, note=note))
    return [*table, *apart]


def compiled(names: Sequence[str] = ()) -> list[Row]:
    """The rows of the named programs, or of all."""
    return [row for name in names or PROGRAMS for row in rows(PROGRAMS[name])]


if __name__ == "__main__":
    for row in compiled(sys.argv[1:]):
        ours = "" if row.own is None else f"{row.own:.3g}"
        theirs = "" if row.peers is None else f"{row.peer} {row.peers:.3g}"
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        print(f"{row.what:88} {ours:>9} {row.unit:1} {theirs:24} {ratio:>6} {row.target} {row.verdict} {row.note}")
