"""Derivations that are deep, many, large or endless: they end, within memory, and Ctrl-C stops them.

Costs three seconds.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import islice
from typing import Any

import pytest

import dynagrad as dg
from interrupts import ctrl_c

CHAIN = "at(J) += at(I) * step(I,J). at(0)."


def test_a_derivation_of_twenty_thousand_steps() -> None:
    n = 20_000
    chart = dg.Program(CHAIN, "log").run({"step/2": [(i, i + 1, -0.5) for i in range(n)]})
    best = chart.best(f"at({n})")
    assert len(best) == n and best.weight == pytest.approx(-0.5 * n)
    assert chart.count(f"at({n})") == 1
    assert len(best.brackets()) > n and best.tree()[0] == f"at({n})"
    assert len(chart.sample(f"at({n})", 2)[1]) == n
    assert chart.expected(f"at({n})", lambda i: 1.0) == pytest.approx(2 * n + 1)
    with pytest.raises(dg.Error, match="pictures are drawn of at most"):
        best.svg()


def test_counts_beyond_any_float_and_derivations_larger_than_memory() -> None:
    program = dg.Program("p(J) += p(I) * p(I) * next(I,J). p(0) += a(_).", "boolean")
    chart = program.run({"next/2": [(i, i + 1) for i in range(40)], "a/1": [("x",), ("y",)]})
    assert chart.count("p(3)") == 2**8
    assert chart.count("p(20)") == 2 ** (2**20)
    with pytest.raises(dg.RoomError, match="more than 10,000,000 instances"):
        chart.best("p(40)")
    with pytest.raises(dg.RoomError, match="more than 10,000,000 instances"):
        chart.sample("p(40)")


def test_products_that_leave_the_range_of_floats_are_ranked_all_the_same() -> None:
    chart = dg.Program(CHAIN, "log").run({"step/2": [(i, i + 1, -800.0) for i in range(5)] + [(0, 5, -4001.0)]})
    assert [d.weight for d in chart.kbest("at(5)")] == [-4000.0, -4001.0]
    draws = chart.sample("at(5)", 2000, seed=1)
    assert Counter(len(d) for d in draws)[5] / 2000 == pytest.approx(1 / (1 + math.exp(-1)), abs=0.05)


def test_draws_do_not_depend_on_how_many_there_are_or_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    chart = dg.Program("goal += a(X) * b(X). b(X) += c(X,_).", "real").run(
        {
            "a/1": [(x, 1.0 + i) for i, x in enumerate("xyz")],
            "c/2": [(x, y, 0.5 * i + 0.25) for x in "xyz" for i, y in enumerate("pq")],
        }
    )
    many = chart.sample("goal", 21_000, seed=11)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    few = chart.sample("goal", 37, seed=11)
    assert list(many[:37]) == list(few)
    assert (chart.sample("goal", 21_000, seed=11).instances == many.instances).all()
    assert list(chart.sample("goal", 37, seed=12)) != list(few)
    assert len(chart.sample("goal", 0)) == 0
    for wrong in ({"n": -1}, {"n": 1.5}, {"n": 2, "seed": "x"}):
        with pytest.raises(dg.Error):
            chart.sample("goal", **wrong)  # type: ignore[arg-type]


def test_a_hundred_thousand_draws_through_a_cycle() -> None:
    """A geometric number of turns, by chi-square; in `viterbi` the sum around the cycle is solved here."""
    for semiring, half in (
        ("real", 0.5),
        ("log", math.log(0.5)),
        ("viterbi", math.log(0.5)),
        ("tropical", -math.log(0.5)),
    ):
        one = 1.0 if semiring == "real" else 0.0
        program = dg.Program("a += b * again. b += a. a += c.", semiring)
        chart = program.run({"again/0": [(half,)], "c/0": [(one,)]})
        draws = chart.sample("a", 100_000, seed=4)
        lengths = Counter((draws.begin[1:] - draws.begin[:-1]).tolist())
        cells = [(lengths.pop(1 + 2 * k, 0), 100_000 * 0.5 ** (k + 1)) for k in range(12)]
        assert sum((o - e) ** 2 / e for o, e in cells) < 45, (semiring, cells)  # 12 cells: beyond 1 in 100,000
        assert sum(lengths.values()) == pytest.approx(100_000 * 0.5**12, abs=40)
        assert chart.expected("a", lambda i: float(i.rule is not None)) == pytest.approx(3.0)
        assert chart.forest("a").covariance(lambda i: float(i.rule is not None)) == pytest.approx(8.0)
        turns = [len(d) for d in draws[:200]]
        assert draws.log_probability[:200].tolist() == pytest.approx([(n + 1) / 2 * math.log(0.5) for n in turns])


@pytest.mark.parametrize("count", [7, 60, 300])
def test_sums_around_a_cycle_may_lie_far_apart(count: int) -> None:
    """The sums of a ring fall by a hundred orders of magnitude, and its best derivations by far more."""
    steps = {(i, (i + k) % count): -2.0 - 0.01 * k for i in range(count) for k in (1, 2, 3)}
    sums = dg.Program(CHAIN, "log").run({"step/2": steps})
    chart = dg.Program(CHAIN, "viterbi").run({"step/2": steps})
    for at in (0, 1, count // 2, count - 1):
        draws = chart.sample(f"at({at})", 5, seed=at)
        totals = [d.weight - p for d, p in zip(draws, draws.log_probability.tolist(), strict=True)]
        assert totals == pytest.approx([sums[f"at({at})"]] * 5, rel=1e-10)


def test_sums_around_a_cycle_that_only_just_end() -> None:
    for again in (0.9999, 0.5):
        chart = dg.Program("a += b * again. b += a. a += c.", "viterbi").run(
            {"again/0": [(math.log(again),)], "c/0": [(0.0,)]}
        )
        draw = chart.sample("a")[0]
        assert draw.weight - draw.log_probability == pytest.approx(-math.log1p(-again), rel=1e-9)
    trees = dg.Program("t += t * t * more. t += stop.", "viterbi")  # which end with certainty where q is at least p
    for p, q, digits in ((0.5, 0.5, 1e-6), (0.4, 0.6, 1e-12), (0.25, 0.75, 1e-12)):
        draw = trees.run({"more/0": [(math.log(p),)], "stop/0": [(math.log(q),)]}).sample("t")[0]
        assert draw.weight - draw.log_probability == pytest.approx(0.0, abs=digits)
    with pytest.raises(dg.NotConverged, match="do not add up to a finite number"):
        trees.run({"more/0": [(math.log(0.51),)], "stop/0": [(math.log(0.51),)]}).sample("t")


def test_endless_cycles_cannot_be_drawn_from() -> None:
    chart = dg.Program("a += b. b += a. a += c.", "boolean").run({"c/0": [()]})
    with pytest.raises(dg.NotConverged, match="infinitely many derivations"):
        chart.sample("a")
    assert chart.count("a") == math.inf
    chart = dg.Program("a += b. b += a. a += c.", "viterbi").run({"c/0": [(0.0,)]})
    with pytest.raises(dg.NotConverged, match="do not add up to a finite number"):
        chart.sample("a")
    assert chart.best("a").weight == 0.0


def test_memory_is_in_proportion_to_what_was_asked_for() -> None:
    n = 60
    facts: dict[str, Any] = {"step/2": [(i, j, 0.5) for i in range(n) for j in range(i + 1, min(i + 6, n + 1))]}
    chart = dg.Program(CHAIN, "real").run(facts)
    forest = chart.forest(f"at({n})")
    iterator = forest.kbest()
    used = []
    for count in (10, 1000, 9000):
        for _ in islice(iterator, count):
            pass
        used.append(forest.packed.walk().bytes)
    assert used[1] - used[0] < 4_000_000 and used[2] - used[1] < 12 * (used[1] - used[0]) + 4_000_000


def test_ctrl_c_ends_a_search_within_a_second() -> None:
    n = 400
    facts: dict[str, Any] = {"step/2": [(i, j, -0.5) for i in range(n) for j in range(i + 1, n + 1)]}
    forest = dg.Program(CHAIN, "log").run(facts).forest(f"at({n})")
    with pytest.raises(KeyboardInterrupt), ctrl_c(0.5, within=1.0):
        for _ in forest.kbest(50_000_000):
            pass
    with pytest.raises(KeyboardInterrupt), ctrl_c(0.5, within=1.0):
        forest.sample(3_000_000)
    assert forest.best().weight == -0.5  # it can go on
