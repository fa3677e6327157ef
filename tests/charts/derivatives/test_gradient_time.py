"""Time limits of derivatives: `timeout`, and Ctrl-C, in every phase (3 s)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.charts.chart import run_of
from dynagrad.charts.derivatives import queries
from dynagrad.charts.limits import Limits
from dynagrad.runtime.library import Stop
from interrupts import ctrl_c

# One join of nine million instances, in its one stage: what is long is neither a pop nor a rule, but a loop.
JOIN = "goal += p(I) * p(J) for I != J."
ROWS = {"p/1": (np.arange(3_000).reshape(-1, 1), np.full(3_000, 0.5))}
# Many pops; items are final when they are popped, or are popped again; their indexes are rolled back; a solved cycle.
CHAIN = ":- semiring real. n(I+1) += n(I) * w(I). n(0) += 1. goal += n(I) * end(I)."
CLOSURE = ":- agenda fifo. p(I,K) min= p(I,J) + p(J,K). p(I,J) min= e(I,J). goal min= p(0,K) + last(K)."
CYCLE = ":- semiring real. r(J) += r(I) * e(I,J). r(0) += 1. goal += r(I) * last(I)."


def chain() -> dg.Chart:
    count = 300_000
    rows = (np.arange(count).reshape(-1, 1), np.ones(count))
    return dg.Program(CHAIN).run({"w/1": rows, "end/1": [(count, 1.0)]})


def edges(count: int, seed: int) -> list[tuple[int, int, float]]:
    draw = np.random.default_rng(seed)
    return [
        (i, j, float(w))
        for i in range(count)
        for j, w in zip(draw.integers(0, count, 6), draw.random(6) / 7, strict=True)
    ]


def closure() -> dg.Chart:
    return dg.Program(CLOSURE).run({"e/2": edges(150, 1), "last/1": [(k, 1.0) for k in range(150)]})


def cycle() -> dg.Chart:
    return dg.Program(CYCLE).run({"e/2": edges(400, 2), "last/1": [(399, 1.0)]})


QUESTIONS: dict[str, Callable[[dg.Chart, float | None], Any]] = {
    "gradient": lambda chart, timeout: chart.gradient("goal", timeout=timeout)["p/1"].values[3],
    "jvp": lambda chart, timeout: chart.jvp({"p/1": np.ones(3_000)}, timeout=timeout)["goal"],
    "outside": lambda chart, timeout: chart.outside("p(3)", timeout=timeout),
    "marginal": lambda chart, timeout: chart.marginal("p(3)", timeout=timeout),
    "expected counts": lambda chart, timeout: chart.expected_counts(timeout=timeout).item("p(3)"),
    "entropy": lambda chart, timeout: chart.entropy(timeout=timeout),
}


@pytest.fixture(scope="module")
def long() -> dg.Chart:
    """A chart of the long join, of which all questions were compiled."""
    program = dg.Program(JOIN, "real")
    small = program.run({"p/1": [(i, 0.5) for i in range(5)]})
    for name, ask in QUESTIONS.items():
        if name == "jvp":
            small.jvp({"p/1": np.ones(5)})
        else:
            ask(small, None)
    return program.run(ROWS)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_timeout_ends_each_question(long: dg.Chart, name: str) -> None:
    began = time.monotonic()
    with pytest.raises(
        dg.NotConverged,
        match=r"the limit on time was met (in the backward pass|when the run was repeated).*; raise timeout",
    ):
        QUESTIONS[name](long, 0.05)
    assert time.monotonic() - began < 0.6
    assert long["goal"] == pytest.approx(0.25 * 3_000 * 2_999)  # the chart is as it was


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C cannot be sent there")
@pytest.mark.parametrize("name", QUESTIONS)
def test_ctrl_c_ends_each_question(long: dg.Chart, name: str) -> None:
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), ctrl_c(0.05, within=1.0):
        while time.monotonic() - began < 20:
            QUESTIONS[name](long, None)
    assert long["goal"] == pytest.approx(0.25 * 3_000 * 2_999)


@pytest.mark.parametrize("chart_of", [chain, closure, cycle])
def test_a_pass_that_was_stopped_anywhere_leaves_nothing_behind(chart_of: Callable[[], dg.Chart]) -> None:
    chart = chart_of()
    chart.gradient("goal")
    again = chart_of()  # which kept its tape
    expected = {
        key: table.values.tolist() for key, table in again.gradient("goal").items() if key in run_of(chart).facts.run
    }
    stops, limit, found = 0, 0.0, None
    while found is None:
        try:
            found = again.gradient("goal", timeout=limit)
        except dg.NotConverged as error:
            assert "in the backward pass" in str(error) and error.chart is None
            stops, limit = stops + 1, limit * 1.2 + 5e-4
        else:
            assert {key: found[key].values.tolist() for key in expected} == expected
    assert stops
    assert run_of(again).facts is not None and list(again.query("goal")) == list(chart.query("goal"))


def test_a_question_that_is_still_to_be_compiled_goes_on_for_the_next_call() -> None:
    chart = dg.Program("sum += a(X) * b(X) * 3.5.", "real").run({"a/1": [(1, 2.0)], "b/1": [(1, 3.0)]})
    with pytest.raises(dg.NotConverged, match="while code was compiled"):
        chart.gradient("sum", timeout=0)
    assert chart["sum"] == 21.0
    assert chart.gradient("sum", timeout=60)["a/1"].values.tolist() == [10.5]


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_is_no_time_is_an_error(long: dg.Chart, name: str) -> None:
    with pytest.raises(dg.Error, match="timeout must be a number from 0"):
        QUESTIONS[name](long, -1)


def test_the_timeout_of_a_batch_is_that_of_its_gradients_too(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = dg.Program("goal += scale * p(I) * p(J) for I != J.", "real").bind({"scale/0": 1.0})
    small, large = {"p/1": [(1, 1.0), (2, 1.0)]}, ROWS
    bound.run_batch([small], query="goal", gradient=["scale/0"])  # compiles
    back, waits = queries.row_gradient, iter([0.0, 1.1, 0.0])

    def late(*arguments: Any) -> Any:
        time.sleep(next(waits))  # before the gradient of the second example, its time is over
        return back(*arguments)

    monkeypatch.setattr(queries, "row_gradient", late)
    batch = bound.run_batch([small, large, small], query="goal", gradient=["scale/0"], timeout=1.0, threads=1)
    assert list(batch.errors) == [1] and str(batch.errors[1]).startswith("example 1: the limit on time was met")
    assert batch.gradient["scale/0"].values == 4.0


def test_the_timeout_of_a_function_is_that_of_a_pass_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    f = dg.Program(JOIN, "real").function("goal", ["p/1"], timeout=60)
    value, back = f.vjp(np.ones(3))
    assert value == 6.0 and back(1.0)[0].tolist() == [4.0, 4.0, 4.0]
    monkeypatch.setattr(Limits, "stop", lambda limits: Stop(time.monotonic()))  # as if the 60 seconds were over
    with pytest.raises(dg.NotConverged, match="in the backward pass"):
        back(2.0)
    monkeypatch.undo()
    assert back(2.0)[0].tolist() == [8.0, 8.0, 8.0]
