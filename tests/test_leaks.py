"""Repeated work takes no more memory than work done once (ten seconds, six compilations).

Allocations of native code are counted, and all are freed; where Python and numpy take part, the size of the process is
measured over rounds so large that a leak of one shows.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from allocations import Allocations, counted

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

ALLOWANCE = 24 << 20
"""Bytes by which a process may grow and shrink by itself."""

OPTIMISED = True  # what runs thousands of times


@pytest.fixture
def allocations(monkeypatch: pytest.MonkeyPatch) -> Iterator[Allocations]:
    with counted(monkeypatch) as made:
        yield made


def resident() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def edges(n: int, weight: float) -> list[tuple[int, int, float]]:
    return [(i, (i * 7 + k) % n, weight) for i in range(n) for k in range(1, 4)]


PATHS = """
    :- semiring real.
    reach(X) += start(X).
    reach(Y) += reach(X) * edge(X,Y).
    goal += reach(X) * final(X).
"""


def facts_of(n: int) -> dict[str, Any]:
    return {"edge/2": edges(n, 0.01), "start/1": [(0, 1.0)], "final/1": [(i, 1.0) for i in range(n)]}


def everything(program: dg.Program, n: int) -> dict[str, Any]:
    """A run with all that can be asked of it, and changes, after each of which it runs again."""
    found: dict[str, Any] = {}
    bound = program.bind(facts_of(n))
    chart = bound.run()
    found["forward"] = chart["goal"], len(chart.table("reach/1"))
    found["gradient"] = [row[-1] for row in chart.gradient("goal")["edge/2"]]
    found["jvp"] = chart.jvp({"start/1": [(0, 1.0)]})["goal"]
    found["outside"] = chart.outside("reach(1)")
    found["marginal"] = chart.marginal("reach(1)")
    chart.add("edge/2", [(1, 0, 0.02)])
    found["added"] = chart.run()["goal"]
    chart.set("start/1", [(0, 0.5)])
    found["set"] = chart.run()["goal"], chart.gradient("goal")["start/1"][0]
    chart.retract("edge/2", [(1, 0)])
    found["retracted"] = chart.run()["goal"]
    with pytest.raises(dg.NotConverged):
        bound.run(max_items=n // 2)
    batch = program.run_batch([facts_of(n), facts_of(n)], query="goal", threads=2)
    found["batch"] = list(batch.values)
    return found


def test_native_memory_of_programs_comes_back(allocations: Allocations) -> None:
    program = dg.Program(PATHS)
    first = everything(program, 40)
    gc.collect()
    before = allocations.live()
    for _ in range(5):
        assert everything(program, 40) == first
    gc.collect()
    assert allocations.live() == before > 0
    del program
    gc.collect()
    assert allocations.live() == 0


def slope(x: Any) -> Any:
    """A loop whose states are saved on the way."""
    y = x
    for _ in range(8):
        y = np.sin(y) * x
    return np.sum(y)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_process_stays_as_large_as_it_is() -> None:
    """Each kind of work some dozens of times, of which each takes half a megabyte, and the shorter kinds take two."""
    n = 20_000
    facts = {**facts_of(n), "edge/2": [(i, i + k, 0.3) for i in range(n) for k in (1, 2, 3)]}
    program = dg.Program(PATHS.replace("edge(X,Y).", "edge(X,Y) for X < Y."))
    bound = program.bind(facts)
    function = program.function("goal", inputs=["edge/2"], facts=facts)
    weights = np.array([row[-1] for row in facts["edge/2"]])
    compiled = dg.compile(dg.grad(slope))
    long = np.linspace(0.0, 1.0, 1 << 18)
    chart = bound.run()

    def change() -> None:
        chart.set("edge/2", [(0, 1, 0.02)])
        chart.run()

    kinds: dict[str, Callable[[], Any]] = {
        "forward": lambda: bound.run()["goal"],
        "gradient": lambda: chart.gradient("goal")["edge/2"],
        "change": change,
        "function": lambda: function.value_and_grad(weights),
        "compiled": lambda: compiled(long),
        "traced": lambda: dg.grad(slope)(long),
    }
    for name, work in kinds.items():
        for _ in range(3):
            work()
        before = resident()
        for _ in range(20 if name in ("compiled", "traced") else 50):
            work()
        grown = resident() - before
        assert grown < ALLOWANCE, f"{name}: {grown >> 20} MB more"
