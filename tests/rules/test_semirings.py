"""A built-in semiring is a C++ struct and a row of the table: one that is added here has its values, its agenda, and
derivatives in both modes.

Costs five seconds: a program is compiled for values, backward and forward.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.rules.semirings import COUNT, MARGINAL, SEMIRINGS, BuiltIn, declarable

MAX_TIMES = BuiltIn(
    "MaxTimes",
    "float",
    "finite",
    0.0,
    1.0,
    jets="MaxTimesJets<{order}>",
    order="value",
    selective=True,
    from_probabilities=lambda p: p,
    source=(
        "struct MaxTimes : Real {",
        "  static constexpr bool selective = true, flat = false;",
        "  static Value plus(Value a, Value b) { return b > a ? b : a; }",
        "  static bool better(Value a, Value b) { return a > b; }",
        "  static double size(Value, Value, Value now) { return now; }",
        "  static bool negligible(Value, Value, double) { return false; }",
        "};",
    ),
    jets_source=(
        "template <int K>",
        "struct MaxTimesJets : Jets<Real, K> {",
        "  using Value = typename Jets<Real, K>::Value;",
        "  static constexpr bool selective = true, flat = false;",
        "  static Value plus(const Value& a, const Value& b) { return better(b, a) ? b : a; }",
        "  static bool better(const Value& a, const Value& b) { return a.v[0] > b.v[0]; }",
        "  static double size(const Value&, const Value&, const Value& now) { return now.v[0]; }",
        "  static bool negligible(const Value&, const Value&, double) { return false; }",
        "};",
    ),
)
"""The best product of weights from 0 to 1, themselves rather than their logs."""

PATHS = """
    path(V) += start(V).
    path(V) += path(U) * edge(U, V).
    goal += path(V) * stop(V).
    """
EDGES = [("a", "b", 0.5), ("a", "c", 0.9), ("b", "d", 0.8), ("c", "d", 0.6), ("d", "b", 0.7), ("c", "b", 0.3)]
FACTS = {"start/1": [("a", 1.0)], "edge/2": EDGES, "stop/1": [("b", 0.9), ("d", 0.5)]}


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.Program]:
    monkeypatch.setitem(SEMIRINGS, "max_times", MAX_TIMES)
    yield dg.Program(PATHS, "max_times")


def best(edges: list[tuple[str, str, float]]) -> float:
    """The largest product over all ways without cycles, each tried."""
    weight = {(u, v): w for u, v, w in edges}
    stops = {"b": 0.9, "d": 0.5}
    found = 0.0
    for n in range(4):
        for between in itertools.permutations("bcd", n):
            way = ("a", *between)
            product = math.prod(weight.get(step, 0.0) for step in itertools.pairwise(way))
            found = max(found, product * stops.get(way[-1], 0.0))
    return found


def test_values(program: dg.Program) -> None:
    chart = program.run(FACTS)
    assert chart["goal"] == pytest.approx(best(EDGES), rel=1e-15)
    assert chart["path(d)"] == pytest.approx(0.9 * 0.6)
    assert "best value first" in program.explain(FACTS)


def test_derivatives_in_both_modes(program: dg.Program) -> None:
    chart = program.run(FACTS)
    gradient = chart.gradient("goal")["edge/2"]
    for k, (u, v, w) in enumerate(EDGES):
        moved = [(*e[:2], e[2] + 1e-7 * (i == k)) for i, e in enumerate(EDGES)]
        slope = (best(moved) - best(EDGES)) / 1e-7
        assert gradient[u, v] == pytest.approx(slope, abs=1e-6)
        tangent = chart.jvp({"edge/2": [(u, v, 1.0)]})["goal"] if w else 0.0
        assert tangent == pytest.approx(slope, abs=1e-6)


def test_a_query_that_it_has_no_sum_for_names_those_that_have(program: dg.Program) -> None:
    with pytest.raises(dg.NotDifferentiable, match="a program in real, log, viterbi, tropical; this one is max_times"):
        program.run(FACTS).marginal("path(d)", "goal")


def test_it_may_be_declared_and_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SEMIRINGS, "max_times", MAX_TIMES)
    assert dg.Program(":- semiring max_times.\n" + PATHS).run(FACTS)["goal"] == pytest.approx(best(EDGES))
    with pytest.raises(dg.ProgramError, match="max_times"):
        dg.Program(":- semiring max_time.\n" + PATHS)


@pytest.mark.parametrize("name", SEMIRINGS)
def test_rows_agree_with_themselves(name: str) -> None:
    row = SEMIRINGS[name]
    assert bool(row.jets) != bool(row.no_derivatives)
    assert (row.superior_sign is None) or row.selective
    assert (row.recognised is None) == (not row.copies)
    assert not row.times_adds or row.one == 0.0
    if row.from_probabilities is not None and row.shape == "float":
        none, one = row.from_probabilities(np.array([1e-300, 1.0]))
        assert one == row.one
        assert none == pytest.approx(row.zero) or abs(none) > 600
    if {MARGINAL, COUNT} & row.sums:
        assert {MARGINAL, COUNT} <= row.sums


def test_names() -> None:
    assert declarable() == ("real", "log", "viterbi", "tropical", "boolean", "count", "expectation")
