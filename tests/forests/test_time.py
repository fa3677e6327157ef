"""Limits on the time of answers about derivations: they end, say so, and leave nothing behind.

Costs three seconds: two programs compile.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.forests.ranking import k_best
from interrupts import ctrl_c

LATE = "the limit on time was met while (derivations were (collected|looked for); raise timeout|code was compiled)"
STEPS = "at(J) += at(I) * step(I,J). at(0)."
NODES = 80


@cache
def lattice(semiring: str = "log", count: int = NODES) -> dg.Chart:
    """A step from each node to each later one: 2 ** (count - 1) derivations of the last."""
    weights = {(i, j): -0.5 - 0.01 * ((7 * i + 13 * j) % 31) for i in range(count) for j in range(i + 1, count + 1)}
    return dg.Program(STEPS, semiring).run({"step/2": weights})


@cache
def ring(count: int = 60) -> dg.Chart:
    """The same around a cycle, whose sums are solved in Python."""
    weights = {(i, (i + k) % count): -2.0 - 0.01 * k for i in range(count) for k in (1, 2, 3)}
    return dg.Program(STEPS, "viterbi").run({"step/2": weights})


def size(instance: Any) -> float:
    return float(instance.rule is not None)


QUESTIONS: dict[str, Callable[[dg.Chart, str, float | None], Any]] = {
    "forest": lambda chart, item, timeout: len(chart.forest(item, timeout=timeout).instances),
    "forest_size": lambda chart, item, timeout: chart.forest_size(item, timeout=timeout),
    "best": lambda chart, item, timeout: chart.best(item, timeout=timeout).weight,
    "kbest": lambda chart, item, timeout: [d.weight for d in chart.kbest(item, 20, timeout=timeout)],
    "sample": lambda chart, item, timeout: chart.sample(item, 3000, seed=1, timeout=timeout).log_probability.tolist(),
    "count": lambda chart, item, timeout: chart.count(item, timeout=timeout),
    "expected": lambda chart, item, timeout: chart.expected(item, size, timeout=timeout),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_of_a_chart_has_a_limit_on_time(name: str) -> None:
    chart, item = lattice(), f"at({NODES})"
    expected = QUESTIONS[name](chart, item, None)
    with pytest.raises(dg.NotConverged, match=LATE):
        QUESTIONS[name](chart, item, 0)
    assert QUESTIONS[name](chart, item, 60) == expected
    for wrong in (-1, "1", math.nan, True):
        with pytest.raises(dg.Error, match="timeout must be a number"):
            QUESTIONS[name](chart, item, wrong)  # type: ignore[arg-type]


FOREST: dict[str, Callable[[dg.Forest, float | None], Any]] = {
    "best": lambda forest, timeout: forest.best(timeout=timeout).tree(),
    "sample": lambda forest, timeout: list(forest.sample(20, seed=1, timeout=timeout)),
    "many": lambda forest, timeout: forest.sample(20_000, seed=1, timeout=timeout).log_probability.tolist(),
    "count": lambda forest, timeout: forest.count(timeout=timeout),
    "expected": lambda forest, timeout: forest.expected(size, timeout=timeout),
    "covariance": lambda forest, timeout: forest.covariance(size, timeout=timeout),
    "decode": lambda forest, timeout: forest.decode(timeout=timeout).tree(),
}


@pytest.mark.parametrize("chart_of", [lattice, ring])
@pytest.mark.parametrize("name", FOREST)
def test_an_answer_that_was_stopped_anywhere_leaves_nothing_behind(name: str, chart_of: Callable[[], dg.Chart]) -> None:
    chart = chart_of()
    item = f"at({NODES if chart_of is lattice else 7})"
    if name == "decode" and chart_of is ring:
        pytest.skip("each turn around a cycle gains")
    expected = FOREST[name](chart.forest(item), None)
    forest, limit, stops, found = chart.forest(item), 0.0, 0, None
    while found is None:
        try:
            found = FOREST[name](forest, limit)
        except dg.NotConverged as error:
            assert "raise timeout" in str(error)
            stops, limit = stops + 1, limit * 1.3 + 1e-4
    assert stops and found == expected


def test_the_limit_of_an_example_is_that_of_its_derivations_too() -> None:
    bound = dg.Program(STEPS, "log").bind({})
    small, large = {"step/2": [(0, 1, -0.5), (1, NODES, -0.5)]}, list(lattice().table("step/2"))
    batch = bound.run_batch([small], query=f"at({NODES})", best=1, sample=1)  # compiles
    examples = [small, {"step/2": large}, small]
    batch = bound.run_batch(examples, query=f"at({NODES})", best=2_000_000, sample=1, timeout=0.5)
    assert list(batch.errors) == [1] and "the limit on time was met" in str(batch.errors[1])
    assert [None if d is None else len(d) for d in batch.best] == [1, None, 1]


def test_k_best_go_on_where_they_were_stopped() -> None:
    item = f"at({NODES})"
    whole = [d.tree() for d in islice(lattice().forest(item).kbest(), 1500)]
    forest = lattice().forest(item)
    slow = forest.kbest(timeout=0)
    with pytest.raises(dg.NotConverged, match=LATE):
        next(slow)
    found, stops = [], 0
    iterator = forest.kbest(1500, timeout=3e-5)
    while len(found) < 1500:
        try:
            found.append(next(iterator).tree())
        except dg.NotConverged:
            stops += 1
            if stops % 50 == 0:
                iterator._timeout = (iterator._timeout or 0) * 2
    assert found == whole
    assert next(iterator, None) is None and not iterator.complete


def test_k_best_go_on_after_ctrl_c() -> None:
    item = f"at({NODES})"
    whole = [d.weight for d in islice(lattice().forest(item).kbest(), 20_000)]
    iterator = lattice().forest(item).kbest()
    found: list[float] = []
    stops = 0
    while len(found) < 20_000:
        try:
            with ctrl_c(0.05):
                while len(found) < 20_000:
                    found.append(next(iterator).weight)
                time.sleep(0.1)
        except KeyboardInterrupt:
            stops += 1
    assert found[-1] == whole[-1] and stops
    assert sorted(found, reverse=True) == found


def test_k_best_that_pass_many_by_look_at_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k_best, "MOST_LOOKED_AT", 10**9)  # which may be met before the time is over
    monkeypatch.setattr(k_best, "MOST_STEPS", 10**12)
    forest = dg.Program("a += b. b += a. a += c.", "viterbi").run({"c/0": [(-1.0,)]}).forest("a")
    for options in ({"simple": True}, {"distinct": "yield"}, {"distinct": lambda d: 0}):
        iterator = forest.kbest(timeout=0.1, **options)  # type: ignore[arg-type]
        began = time.monotonic()
        assert next(iterator).weight == -1.0
        for _ in range(2):
            with pytest.raises(dg.NotConverged, match=LATE):
                next(iterator)
        assert time.monotonic() - began < 2 and not iterator.complete


def test_simple_derivations_and_own_semirings_and_plain_arithmetic() -> None:
    with pytest.raises(dg.NotConverged, match=LATE):
        ring().count("at(7)", simple=True, timeout=0.05)
    reliable = dg.Semiring(0.0, 1.0, np.maximum, lambda a, b: a * b, less=lambda a, b: a < b)
    weights = {(i, j): 0.5 + 0.001 * ((7 * i + 13 * j) % 31) for i in range(40) for j in range(i + 1, 41)}
    chart = dg.Program(STEPS, reliable).run({"step/2": weights})
    with pytest.raises(dg.NotConverged, match=LATE):
        chart.best("at(40)", timeout=0.0)
    forest = chart.forest("at(40)")
    iterator = forest.kbest(40, timeout=0.002)
    found = []
    while len(found) < 40:
        try:
            found.append(next(iterator).weight)
        except dg.NotConverged:
            iterator._timeout = (iterator._timeout or 0) * 2
    assert found == [d.weight for d in forest.kbest(40)]
    plain = dg.Program("a(J) max= a(I) + step(I,J) * step(I,J). a(0) max= 0.").run({"step/2": weights})
    forest = plain.forest("a(40)")
    with pytest.raises(dg.NotConverged, match=LATE):
        forest.best(timeout=0)
    assert len(forest.best(timeout=60)) == 40
