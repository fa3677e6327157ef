"""Gradients of a run: right sides, the meaning in each value type, inexact runs, changed facts, queries, and errors.

The worked examples of the derivation are in test_worked_examples.py. Broad comparisons are elsewhere too: with a replay
in 50 digits in test_gradient_replay.py, with other libraries in test_gradient_peers.py, of functions of arrays in
functions/test_function.py, of batches in batches/test_batch_gradient.py. Costs eight seconds.
"""

from __future__ import annotations

import math
import pickle
import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from charts.taped import untaped, with_tapes  # noqa: F401

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.ProgramWarning")

with warnings.catch_warnings():
    warnings.simplefilter("ignore", dg.ProgramWarning)  # that the sum may diverge
    SQUARE = dg.Program("a += a*a.  a += r.")
PATHS = """
stop(I)   += edgezero(I) * pathto(I).
pathto(J) += edge(I,J) * pathto(I).
pathto(J) += start(J).
goal      += stop(I).
"""
CKY = """
c(X,I,K) += r(X,W) * w(W,I,K).
c(X,I,K) += r(X,Y,Z) * c(Y,I,J) * c(Z,J,K).
goal     += c(s,0,N) * end(N).
"""
GRAMMAR = {
    "r/3": [("s", "np", "vp", 0.9), ("vp", "v", "np", 0.7), ("vp", "vp", "pp", 0.3), ("np", "np", "pp", 0.2)]
    + [("pp", "p", "np", 1.0), ("s", "s", "pp", 0.1)],
    "r/2": [("np", "i", 0.3), ("np", "girl", 0.2), ("np", "dots", 0.3), ("v", "saw", 1.0), ("p", "with", 1.0)],
}
SENTENCE = ["i", "saw", "girl", "with", "dots"]
WORDS = {"w/3": [(w, i, i + 1) for i, w in enumerate(SENTENCE)], "end/1": [(len(SENTENCE),)]}


def differences(program: dg.Program, facts: Mapping[str, Any], goal: str, key: str, **limits: Any) -> list[float]:
    """Central differences of the goal with respect to the values of a predicate's rows."""
    found = []
    for n in range(len(facts[key])):
        sides = []
        for step in (1e-6, -1e-6):
            rows = [tuple(row) for row in facts[key]]
            rows[n] = (*rows[n][:-1], rows[n][-1] + step)
            sides.append(program.run({**facts, key: rows}, **limits)[goal])
        found.append((sides[0] - sides[1]) / 2e-6)
    return found


def logs(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(*row[:-1], math.log(row[-1])) for row in rows]


# -- right sides -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agenda", ["auto", "fifo"])
def test_an_item_may_match_three_antecedents_of_a_rule(agenda: str) -> None:
    program = dg.Program(f":- agenda {agenda}.  c += a*a*a + 2.  a += x.  a += y.  a += 0.5*b.  b += x*a.")
    facts = {"x/0": [(0.3,)], "y/0": [(0.4,)]}
    chart = program.run(facts)
    for key in facts:
        assert chart.gradient("c")[key].values == pytest.approx(differences(program, facts, "c", key), rel=1e-6)


def test_a_neural_network_written_as_rules_trains() -> None:
    program = dg.Program("""
        :- output loss.
        hidden(N,J) += w1(J,I) * x(N,I).
        out(N)      += w2(J) * tanh(hidden(N,J) + bias(J)).
        loss        += (out(N) - y(N))^2.
    """)
    generator = np.random.default_rng(0)
    x = np.array([(a, b) for a in (0, 1) for b in (0, 1)], float)
    facts = {"x/2": x, "y/1": np.array([0.0, 1.0, 1.0, 0.0])}  # exclusive or
    weights = {"w1/2": generator.normal(size=(8, 2)), "bias/1": np.zeros(8), "w2/1": generator.normal(size=8)}
    bound = program.bind({**facts, **weights})
    losses = []
    for _ in range(400):
        gradient = bound.run().gradient("loss")
        losses.append(gradient.value)
        weights = {key: w - 0.05 * gradient[key].values for key, w in weights.items()}
        bound = bound.with_values(weights)
    assert losses[0] > 0.5 and losses[-1] < 0.01


def test_every_aggregator_of_plain_arithmetic_passes_adjoints_on() -> None:
    program = dg.Program("""
        p(X) *= a(X,Y) + 1.
        m(X) max= p(Y) * a(X,Y).
        n    min= m(X) + exp(a(X,X)).
        same = n * 2.
        goal += same * sqrt(1 + m(X)^2) + p(X)^2.
        flag |= if a(X,Y) > 0.2 then 1 else 0.
        goal += flag * 3.
    """)
    facts = {"a/2": [(0, 0, 0.5), (0, 1, -1.0), (1, 0, 0.3), (1, 1, 0.7)]}  # a factor of p(0) is zero
    gradient = program.run(facts).gradient("goal")
    assert gradient["a/2"].values == pytest.approx(differences(program, facts, "goal", "a/2"), rel=1e-6, abs=1e-8)


def test_the_derivative_of_a_product_is_the_product_of_the_others_also_where_factors_are_zero() -> None:
    program = dg.Program("p *= a(X).")
    for factors, expected in (([2.0, 0.0, 5.0], [0.0, 10.0, 0.0]), ([2.0, 0.0, 0.0], [0.0, 0.0, 0.0])):
        chart = program.run({"a/1": np.array(factors)})
        assert list(chart.gradient("p")["a/1"].values) == expected


def test_value_iteration_that_sweeps_is_differentiated_round_by_round() -> None:
    program = dg.Program("""
        v(S)   max= q(S,A).
        q(S,A) += 0.9 * move(S,A,T) * v(T).
        q(S,A) += reward(S,A).
    """)
    generator = np.random.default_rng(1)
    move = generator.uniform(size=(3, 2, 3))
    move /= move.sum(2, keepdims=True)
    reward = generator.uniform(size=(3, 2))
    chart = program.run({"move/3": move, "reward/2": reward}, tolerance=1e-13)
    gradient = chart.gradient("v(0)")["reward/2"].values
    best = [int(np.argmax([chart["q", s, a] for a in range(2)])) for s in range(3)]
    policy = np.array([move[s, best[s]] for s in range(3)])
    visits = np.linalg.solve(np.eye(3) - 0.9 * policy.T, [1.0, 0.0, 0.0])  # discounted visits from state 0
    expected = np.zeros((3, 2))
    expected[range(3), best] = visits
    assert gradient == pytest.approx(expected, abs=1e-9)


def test_a_branch_that_is_not_taken_adds_nothing_also_where_its_derivative_is_infinite() -> None:
    branches = ["sqrt(a(X))", "log(a(X))", "1 / a(X)", "a(X)^0.5 * log(a(X))"]
    rules = [f"goal{n} += if a(X) > 0 then {branch} else 0." for n, branch in enumerate(branches)]
    chart = dg.Program("\n".join(rules)).run({"a/1": np.array([0.0, 4.0])})
    tangents = chart.jvp({"a/1": np.ones(2)})
    for n in range(len(branches)):
        gradient = chart.gradient(f"goal{n}")["a/1"].values
        assert gradient[0] == 0.0 and gradient[1] != 0.0
        assert gradient.sum() == pytest.approx(tangents[f"goal{n}"], rel=1e-14)


def test_factors_of_a_product_may_be_out_of_the_range_of_their_product() -> None:
    chart = dg.Program("p *= a(X).").run({"a/1": np.array([1e-200, 1e-200, 1e300])})
    assert chart.gradient("p")["a/1"].values == pytest.approx([1e100, 1e100, 0.0])


def test_side_conditions_negation_and_externals_take_part_without_derivatives_of_their_own() -> None:
    program = dg.Program(
        "q(X) += p(X) * SIDE(mark(X)) for not bad(X).  goal += q(X) * dist(X).  :- external dist/1.",
        semiring="real",
        functions={"dist": lambda x: 2.0 + x},
    )
    facts = {"p/1": [(n, 1.0) for n in range(4)], "mark/1": [(1, 7.0), (2, 7.0), (3, 7.0)], "bad/1": [(3, 1.0)]}
    gradient = program.run(facts).gradient("goal")
    assert list(gradient["p/1"].values) == [0.0, 3.0, 4.0, 0.0]
    assert not gradient["mark/1"].values.any() and not gradient["bad/1"].values.any()


# -- value types -------------------------------------------------------------------------------------------------------


def trees(i: int = 0, k: int = len(SENTENCE), symbol: str = "s") -> list[tuple[float, dict[tuple[str, ...], int]]]:
    """All parses: the weight, and how often each rule is used."""
    found = []
    if k == i + 1:
        found += [(p, {(x, w): 1}) for x, w, p in GRAMMAR["r/2"] if (x, w) == (symbol, SENTENCE[i])]
    for x, y, z, p in GRAMMAR["r/3"]:
        if x != symbol:
            continue
        for j in range(i + 1, k):
            for left, uses_left in trees(i, j, y):
                for right, uses_right in trees(j, k, z):
                    uses = dict(uses_left)
                    for rule, n in uses_right.items():
                        uses[rule] = uses.get(rule, 0) + n
                    uses[x, y, z] = uses.get((x, y, z), 0) + 1
                    found.append((p * left * right, uses))
    return found


def expected_counts() -> dict[tuple[str, ...], float]:
    total = sum(p for p, _ in trees())
    counts: dict[tuple[str, ...], float] = {}
    for p, uses in trees():
        for rule, n in uses.items():
            counts[rule] = counts.get(rule, 0.0) + n * p / total
    return counts


def test_in_log_the_derivatives_of_the_goal_are_expected_counts() -> None:
    chart = dg.Program(CKY, "log").bind(GRAMMAR, values="probabilities").run(WORDS)
    gradient, counts = chart.gradient("goal"), expected_counts()
    for key in ("r/3", "r/2"):
        for *rule, value in gradient[key]:
            assert value == pytest.approx(counts.get(tuple(rule), 0.0), rel=1e-12)
    assert gradient["goal/0"][()] == 1.0
    assert gradient["w/3"].values == pytest.approx(np.ones(5), rel=1e-12)  # every word is read once


@pytest.mark.parametrize("semiring", ["real", "log"])
def test_expected_counts_are_the_same_in_real_and_in_log(semiring: str) -> None:
    chart = dg.Program(CKY, semiring).bind(GRAMMAR, values="probabilities").run(WORDS)
    counts, expected = chart.expected_counts(), expected_counts()
    for key in ("r/3", "r/2"):
        for *rule, value in counts[key]:
            assert value == pytest.approx(expected.get(tuple(rule), 0.0), rel=1e-12)
    assert counts["c/3"]["s", 0, 5] == pytest.approx(1.0, rel=1e-12)
    assert chart.marginal("c(vp,1,5)") == pytest.approx(counts["c/3"]["vp", 1, 5], rel=1e-12)
    assert chart.marginal("c(np,2,5)") == pytest.approx(
        sum(p for p, uses in trees() if ("np", "np", "pp") in uses) / sum(p for p, _ in trees()), rel=1e-12
    )
    assert chart.marginal("r(vp,v,np)") == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("semiring", ["viterbi", "tropical"])
def test_where_plus_selects_the_gradient_counts_the_winning_derivation(semiring: str) -> None:
    chart = dg.Program(CKY, semiring).bind(GRAMMAR, values="probabilities").run(WORDS)
    weight, uses = max(trees(), key=lambda tree: tree[0])
    gradient = chart.gradient("goal")
    sign = -1.0 if semiring == "tropical" else 1.0
    assert chart["goal"] == pytest.approx(sign * math.log(weight))
    for key in ("r/3", "r/2"):
        for *rule, value in gradient[key]:
            assert value == uses.get(tuple(rule), 0)
    assert chart.marginal("c(s,0,5)") == 1.0
    assert chart.expected_counts()["r/3"] == gradient["r/3"]


def test_of_several_winners_the_first_to_reach_the_value_is_followed() -> None:
    program = dg.Program("goal += p(X) * q(X).", "viterbi")
    chart = program.run({"p/1": [("b", 1.0), ("a", 1.0), ("a", 0.5)], "q/1": [("a", 2.0), ("b", 2.0)]})
    gradient = chart.gradient("goal")
    assert sorted(gradient["p/1"].values) == [0.0, 0.0, 1.0]
    assert gradient["p/1"].values @ [1.0, 0.0, 0.0] == gradient["q/1"]["b"]  # one derivation, not half of each
    plain = (
        dg.Program("goal max= p(X) * q(X).")
        .run({"p/1": np.array([1.0, 2.0]), "q/1": np.array([2.0, 1.0])})
        .gradient("goal")
    )
    one, other = [[2.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 2.0]]
    assert [list(plain["p/1"].values), list(plain["q/1"].values)] in (one, other)


def test_in_expectation_the_gradient_is_a_pair() -> None:
    program = dg.Program("goal += a(X) * b(X).", "expectation")
    facts = {"a/1": [("x", (2.0, 0.5)), ("y", (3.0, 0.1))], "b/1": [("x", (5.0, 0.2)), ("y", (7.0, 0.3))]}
    gradient = program.run(facts).gradient("goal")
    assert gradient["a/1"]["x"] == (5.0, 0.2) and gradient["b/1"]["y"] == (3.0, 0.1)
    assert gradient.value == (31.0, pytest.approx(0.5 * 5 + 2 * 0.2 + 0.1 * 7 + 3 * 0.3))


@pytest.mark.parametrize("semiring", ["boolean", "count"])
def test_values_that_do_not_change_by_degrees_have_no_gradient(semiring: str) -> None:
    chart = dg.Program("goal += a(X).", semiring).run({"a/1": [("x",)]})
    for ask in (chart.gradient, chart.marginal, chart.outside):
        with pytest.raises(dg.NotDifferentiable, match=f"{semiring} semiring has no gradient.*by degrees"):
            ask("goal")
    with pytest.raises(dg.NotDifferentiable, match="Use real or log"):
        chart.jvp({"a/1": [1.0]})


def test_a_semiring_of_ones_own_has_no_gradient() -> None:
    own = dg.Semiring(0.0, 1.0, lambda a, b: a + b, lambda a, b: a * b)
    chart = dg.Program("goal += a(X).", own).run({"a/1": [("x", 1.0)]})
    with pytest.raises(dg.NotDifferentiable, match="semiring of your own"):
        chart.gradient("goal")


def test_copies_of_a_fact_share_its_derivative() -> None:
    rows = [("x", 0.25), ("y", 1.0), ("x", 0.5)]
    real = dg.Program("goal += a(X) * 2.").run({"a/1": rows}).gradient("goal")
    assert list(real["a/1"].values) == [2.0, 2.0, 2.0]
    log = dg.Program("goal += a(X).", "log").run({"a/1": logs(rows)}).gradient("goal")
    assert log["a/1"].values == pytest.approx([0.25 / 1.75, 1 / 1.75, 0.5 / 1.75], rel=1e-14)
    best = dg.Program("goal += a(X).", "viterbi").run({"a/1": [("x", 1.0), ("x", 3.0), ("x", 3.0)]}).gradient("goal")
    assert list(best["a/1"].values) == [0.0, 1.0, 0.0]


def test_copies_of_a_fact_under_an_aggregator_share_as_it_makes_its_value() -> None:
    best = dg.Program("p(X) max= q(X).  goal += p(X)^2.")
    facts = {"p/1": [("k", 1.0), ("k", 3.0)], "q/1": [("x", 2.0)]}
    assert list(best.run(facts).gradient("goal")["p/1"].values) == [0.0, 6.0]
    chart = best.bind({"p/1": [("k", 1.0)]}).run({"p/1": [("k", 4.0)], "q/1": [("x", 2.0)]})
    assert list(chart.gradient("goal")["p/1"].values) == [0.0, 8.0]
    product = dg.Program("p(X) *= q(X).  goal += p(X) * 2.")
    facts = {"p/1": [("x", 5.0), ("x", 3.0)], "q/1": [("x", 2.0), ("x", 4.0)]}
    assert list(product.run(facts).gradient("goal")["p/1"].values) == [48.0, 80.0]  # q(x) is 2 * 4
    assert list(product.run(facts).gradient("goal")["q/1"].values) == [120.0, 60.0]
    axioms = dg.Program("p(k) = 2.  p(X) *= q(X).  goal += p(X).")
    assert axioms.run({"p/1": [("k", 3.0)], "q/1": [("k", 5.0)]}).gradient("goal")["p/1"]["k"] == 10.0


def test_in_log_weights_may_be_far_out_of_the_range_of_doubles() -> None:
    program = dg.Program("p(N+1) += p(N) * w(N).  p(0) = 0.  goal += p(N) * end(N).", "log")
    n = 400
    for size in (-800.0, 800.0):
        facts = {"w/1": [(i, size + math.sin(i)) for i in range(n)], "end/1": [(n, 0.0), (n // 2, size * n / 2)]}
        chart = program.run(facts)
        gradient = chart.gradient("goal")
        late = 1 / (1 + math.exp(sum(-math.sin(i) for i in range(n // 2, n))))
        assert gradient["end/1"].values == pytest.approx([late, 1 - late], rel=1e-9)
        assert gradient["w/1"].values == pytest.approx([1.0] * (n // 2) + [late] * (n // 2), rel=1e-9)
        assert chart.outside(f"p({n})") == pytest.approx(0.0, abs=1e-9)


# -- inexact runs, changed facts ---------------------------------------------------------------------------------------


def test_a_fact_of_weight_zero_has_its_true_gradient() -> None:
    gradient = (
        dg.Program("goal += a(X) * b(X).")
        .run({"a/1": np.array([0.0, 1.0]), "b/1": np.array([3.0, 0.0])})
        .gradient("goal")
    )
    assert list(gradient["a/1"].values) == [3.0, 0.0] and list(gradient["b/1"].values) == [0.0, 1.0]
    log = dg.Program("goal += a(X) * b(X).", "log")
    gradient = log.run({"a/1": np.array([-math.inf, 0.0]), "b/1": np.zeros(2)}).gradient("goal")
    assert list(gradient["a/1"].values) == [0.0, 1.0] and list(gradient["b/1"].values) == [0.0, 1.0]


@pytest.mark.usefixtures("untaped")
def test_what_pruning_and_beams_hold_back_has_no_part_in_the_gradient() -> None:
    text = "p(Y) += p(X) * e(X,Y).  p(X) += s(X).  goal += p(X) * f(X)."
    arcs = [("a", "b", 0.5), ("a", "c", 1e-9), ("c", "b", 5.0)]
    rows = {"e/2": arcs, "s/1": [("a", 1.0)], "f/1": [("b", 3.0), ("c", 2.0)]}
    free = dg.Program(text).run(rows).gradient("goal")
    held = dg.Program(text + " :- prune p(X) < 1e-6.").run(rows)
    assert "p/1" in held.pending and held["goal"] == 1.5
    assert free["e/2"]["c", "b"] > 0
    gradient = held.gradient("goal")
    assert list(gradient["e/2"].values) == [3.0, 0.0, 0.0] and list(gradient["f/1"].values) == [0.5, 0.0]
    assert held.jvp({"e/2": np.ones(3), "f/1": np.ones(2)})["goal"] == 3.5
    beam = dg.Program(text + " :- prune p(X) =< 0.5.").run(rows)
    assert not beam.gradient("goal")["e/2"].values.any()


@pytest.mark.usefixtures("untaped")
def test_a_chart_that_runs_on_has_the_gradient_of_what_ran() -> None:
    SQUARE.run({"r/0": [(0.2,)]}, max_pops=1).gradient("a")  # from now on runs keep a tape
    chart = SQUARE.run({"r/0": [(0.2,)]}, max_pops=1)
    assert chart.gradient("a")["r/0"][()] == 1.0
    chart.run(max_pops=1)
    assert chart.gradient("a")["r/0"][()] == pytest.approx(1.4)
    old = chart.gradient("a")
    chart.run(max_pops=2)
    assert chart.gradient("a")["r/0"][()] == pytest.approx(1.8614144)
    assert old["r/0"][()] == pytest.approx(1.4)
    with pytest.raises(dg.QueryError, match="the chart ran on"):
        old["a/0"]


@pytest.mark.usefixtures("untaped")
def test_asking_for_a_gradient_changes_nothing() -> None:
    facts = {"edge/2": [("a", "b", 0.5), ("b", "a", 0.25), ("b", "c", 0.5)], "edgezero/1": [("c", 1.0)]}
    chart = dg.Program(PATHS).run({**facts, "start/1": [("a", 1.0)]}, max_pops=3)
    before = {key: chart.table(key) for key in ("pathto/1", "stop/1", "goal/0")}, dict(chart.pending)
    first = chart.gradient("goal")
    again = chart.gradient("goal")
    assert first["edge/2"] == again["edge/2"] and first["pathto/1"] == again["pathto/1"]
    assert before == ({key: chart.table(key) for key in ("pathto/1", "stop/1", "goal/0")}, dict(chart.pending))
    whole = dg.Program(PATHS).run({**facts, "start/1": [("a", 1.0)]})
    assert chart.run(max_pops=None)["goal"] == pytest.approx(whole["goal"], rel=1e-11)
    assert chart.gradient("goal")["edge/2"].values == pytest.approx(whole.gradient("goal")["edge/2"].values, rel=1e-10)


@pytest.mark.usefixtures("untaped")
def test_stopped_at_an_item_the_gradient_is_that_of_its_value() -> None:
    arcs = [("a", "b", 1.0), ("a", "c", 4.0), ("b", "c", 2.0), ("c", "d", 1.0)]
    program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
    chart = program.run({"edge/2": arcs}, until="path(c)")
    assert chart.status == "until" and "path(d)" not in chart
    assert list(chart.gradient("path(c)")["edge/2"].values) == [1.0, 0.0, 1.0, 0.0]
    assert not chart.gradient("path(d)")["edge/2"].values.any()


@pytest.mark.parametrize(
    ("semiring", "taped", "gone"),  # the edge from b to a closes a cycle
    [("real", False, ("b", "a")), ("log", True, ("b", "c")), ("tropical", False, ("b", "c"))],
)
@pytest.mark.usefixtures("untaped")
def test_after_changes_the_gradient_is_that_of_a_fresh_run(semiring: str, taped: bool, gone: tuple[str, str]) -> None:
    program = dg.Program(PATHS, semiring)
    edges = [("a", "b", 0.5), ("b", "a", 0.25), ("b", "c", 0.5)]
    facts = {"edge/2": edges, "edgezero/1": [("c", 1.0), ("b", 0.5)], "start/1": [("a", 1.0)]}
    if semiring == "log":
        facts = {key: logs(rows) for key, rows in facts.items()}
    new, other = (-1.0, -0.5) if semiring == "log" else (0.3, 0.25)
    chart = program.run(facts)
    chart.gradient("goal")
    if taped:  # a run that keeps a tape from the start
        chart = program.run(facts)
        assert chart.stats.tape_bytes
    chart.add("edge/2", [("a", "c", new)])
    with pytest.raises(dg.QueryError, match=r"facts of this chart changed.*call chart.run"):
        chart.gradient("goal")
    chart.run()
    chart.retract("edge/2", [gone])
    chart.set("edgezero/1", [("b", other)])
    chart.run()
    changed = [row for row in facts["edge/2"] if row[:2] != gone] + [("a", "c", new)]
    fresh = program.run({**facts, "edge/2": changed, "edgezero/1": [facts["edgezero/1"][0], ("b", other)]})
    mine, theirs = chart.gradient("goal"), fresh.gradient("goal")
    for key in facts:
        assert [row[:-1] for row in mine[key]] == [row[:-1] for row in theirs[key]]
        assert mine[key].values == pytest.approx(theirs[key].values, rel=1e-12)


@pytest.mark.usefixtures("untaped")
def test_a_tape_keeps_the_order_of_pops_alone_where_each_item_is_popped_once() -> None:
    chart = dg.Program(CKY).run({**GRAMMAR, **WORDS})
    assert chart.stats.tape_bytes == 0  # no gradient was asked for
    chart.gradient("goal")
    assert chart.stats.tape_bytes <= 8 * chart.stats.pops + 64
    line = dg.Program(":- agenda fifo.  p(Y) += p(X) * e(X,Y).  p(X) += s(X).")
    once = line.run({"e/2": [(n, n + 1, 0.5) for n in range(100)], "s/1": [(0, 1.0)]})
    once.gradient("p(100)")
    assert once.stats.pops == 101 and once.stats.tape_bytes <= 8 * 101 + 64
    again = SQUARE.run({"r/0": [(0.2,)]}, max_pops=20)
    again.gradient("a")
    assert 8 * 20 + 16 * 19 <= again.stats.tape_bytes <= 8 * 20 + 16 * 19 + 64


# -- shapes, other questions -------------------------------------------------------------------------------------------


def test_tables_are_shaped_like_the_facts_that_came_in() -> None:
    program = dg.Program("goal += a(I,J) * b(J).  goal += c(X).")
    a, b = np.arange(6.0).reshape(2, 3), np.ones(3)
    gradient = program.bind({"a/2": a}).run({"b/1": b, "c/1": [("y", 1.0), ("x", 2.0)]}).gradient("goal")
    assert gradient["a/2"].values.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert gradient["b/1"].values.tolist() == [3, 5, 7]
    assert list(gradient["c/1"]) == [("y", 1.0), ("x", 1.0)]
    assert set(gradient) == {"goal/0", "a/2", "b/1", "c/1"} and len(gradient) == 4


def test_bound_facts_axioms_and_those_of_the_run_stand_in_one_table_without_the_axioms() -> None:
    program = dg.Program("goal += a(X) * b(X).  a(k) = 5.  a(x) = 1.")
    b = [("x", 10.0), ("y", 20.0), ("k", 1.0)]
    chart = program.bind({"a/1": [("x", 2.0)]}).run({"a/1": [("y", 3.0)], "b/1": b})
    assert chart["goal"] == 95.0
    gradient = chart.gradient("goal")
    assert list(gradient["a/1"]) == [("x", 10.0), ("y", 20.0)]
    assert gradient.item("a(k)") == 1.0


def test_a_predicate_of_axioms_alone_has_a_table_of_them() -> None:
    gradient = dg.Program("a(x) = 2.  goal += a(X) * 3.  goal += b.").run({"b/0": [(1.0,)]}).gradient("goal")
    assert list(gradient["a/1"]) == [("x", 3.0)] and gradient.item("a(x)") == 3.0


def test_expected_counts_of_an_item_are_those_of_its_table() -> None:
    counts = dg.Program("goal += p(X).  p(X) += a(X).").run({"a/1": [("y", 3.0), ("x", 1.0)]}).expected_counts()
    assert list(counts["p/1"]) == [("x", 0.25), ("y", 0.75)]
    assert counts.item("p(x)") == counts.item("a(x)") == 0.25


def test_several_items_with_cotangents_are_one_gradient() -> None:
    chart = dg.Program("u += 2*x.  v += x*y.").run({"x/0": [(3.0,)], "y/0": [(4.0,)]})
    gradient = chart.gradient({"u": 10.0, "v": -1.0})
    assert (gradient["x/0"][()], gradient["y/0"][()], gradient.value) == (16.0, -3.0, 48.0)


def test_the_gradient_of_a_fact_is_one_at_that_fact() -> None:
    chart = dg.Program("goal += a(X).").run({"a/1": [("x", 2.0), ("y", 3.0)]})
    assert list(chart.gradient("a(y)")["a/1"].values) == [0.0, 1.0]


def test_outside_values_times_inside_values_are_the_weight_of_what_goes_through() -> None:
    for semiring in ("real", "log"):
        chart = dg.Program(CKY, semiring).bind(GRAMMAR, values="probabilities").run(WORDS)
        for item in ("c(np,2,5)", "c(vp,1,3)", "r(vp,v,np)", "goal"):
            inside, outside, total = chart[item], chart.outside(item), chart["goal"]
            share = math.exp(inside + outside - total) if semiring == "log" else inside * outside / total
            assert share == pytest.approx(chart.marginal(item), rel=1e-12)
    assert chart.outside("c(pp,0,5)") == -math.inf


@pytest.mark.parametrize("semiring", ["real", "log"])
def test_entropy_is_that_of_the_distribution_of_derivations(semiring: str) -> None:
    half = 0.5 if semiring == "real" else math.log(0.5)
    program = dg.Program(CKY.replace("goal     +=", f"goal += {half} *"), semiring)
    chart = program.run({key: rows if semiring == "real" else logs(rows) for key, rows in GRAMMAR.items()} | WORDS)
    total = sum(p for p, _ in trees())
    expected = -sum(p / total * math.log(p / total) for p, _ in trees())
    assert chart.entropy() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("semiring", ["real", "log"])
def test_around_a_cycle_marginals_are_expected_visits_and_entropy_is_that_of_the_walks(semiring: str) -> None:
    """A walk that goes on with probability q, by one of two copies of an arc, and stops with probability 1 - q."""
    q = 0.6
    program = dg.Program("at += start.  at += at * on.  goal += at * stop.", semiring)
    facts = {"start/0": [(1.0,)], "on/0": [(q / 4,), (3 * q / 4,)], "stop/0": [(1 - q,)]}
    chart = program.run(facts if semiring == "real" else {key: logs(rows) for key, rows in facts.items()})
    assert chart.marginal("at") == pytest.approx(1 / (1 - q), rel=1e-9)
    assert chart.expected_counts()["on/0"].values == pytest.approx([q / 4 / (1 - q), 3 * q / 4 / (1 - q)], rel=1e-9)
    outside = chart.outside("at")
    assert (math.exp(outside) if semiring == "log" else outside) == pytest.approx(1.0, rel=1e-9)
    # the entropy is that of the walks, and of the copy that each arc takes: copies of a fact are leaves of their own
    walks = -(q * math.log(q) + (1 - q) * math.log(1 - q)) / (1 - q)
    copies = -(math.log(0.25) / 4 + 3 * math.log(0.75) / 4) * q / (1 - q)
    assert chart.entropy() == pytest.approx(walks + copies, rel=1e-6)


@pytest.mark.parametrize("semiring", ["real", "log"])
def test_the_entropy_of_an_item_of_clauses_is_that_of_derivations_of_equal_weight(semiring: str) -> None:
    """Its value is one, however many there are; where it is used, it is a leaf."""
    one = 1.0 if semiring == "real" else 0.0
    program = dg.Program("near(Y) :- arc(_,Y). goal += near(Y) * arc(_,Y). always.", semiring)
    chart = program.run({"arc/2": [("a", "c", one), ("b", "c", one), ("a", "b", one), ("a", "c", 7.0)]})
    assert chart.count("near(c)") == 2 and chart.entropy("near(c)") == pytest.approx(math.log(2), rel=1e-12)
    assert chart.sample("near(c)", 3).log_probability == pytest.approx(3 * [-math.log(2)])
    assert chart.entropy("near(b)") == chart.entropy("always") == 0
    weights = np.array([1.0, 1.0, 1.0, 7.0 if semiring == "real" else math.exp(7)])
    chances = weights / weights.sum()
    assert chart.entropy() == pytest.approx(-np.sum(chances * np.log(chances)), rel=1e-9)


def test_an_entropy_asks_nothing_of_facts_and_rules_that_its_derivations_do_not_have() -> None:
    """Functions have no weights to take a derivative by, and numbers below 0 no distribution, where they are."""
    text = """
    :- external far/1.
    goal += a(X) * SIDE(b(X)) for not other.
    other += b(X) * far(X) for X = nowhere.
    third += -1 * a(_). third += b(_).
    """
    facts = {"a/1": [("x", 0.5), ("y", 0.5)], "b/1": [("x", -1.0), ("y", 2.0)]}
    chart = dg.Program(text, "real", functions={"far/1": lambda _: 1.0}).run(facts)
    assert chart.entropy() == pytest.approx(math.log(2), rel=1e-12)
    with pytest.raises(dg.QueryError, match="of 'other' needs the weights of all its facts, and those of far/1"):
        chart.entropy("other")
    with pytest.raises(dg.QueryError, match="negative constant"):
        chart.entropy("third")


def test_tangents_are_those_of_all_items() -> None:
    chart = dg.Program(CKY, "log").bind(GRAMMAR, values="probabilities").run(WORDS)
    gradient = chart.gradient("goal")
    direction = {"r/3": np.linspace(-1, 1, 6), "r/2": {("np", "i"): 2.0}}
    tangents = chart.jvp(direction)
    expected = gradient["r/3"].values @ direction["r/3"] + 2.0 * gradient["r/2"]["np", "i"]
    assert tangents["goal"] == pytest.approx(expected, rel=1e-12)
    assert tangents["c", "s", 0, 5] == pytest.approx(expected, rel=1e-12)
    assert {row[:-1] for row in tangents.query("c(X,I,K)")} == {row[:-1] for row in chart.query("c(X,I,K)")}
    assert tangents["c(pp,0,5)"] == 0.0


@pytest.mark.usefixtures("untaped")
def test_the_cost_of_a_gradient_stays_in_proportion() -> None:
    """Time of the gradient over time of the value: at a size eight times as large not twice as much."""
    program = dg.Program("a(T+1,J) += a(T,I) * e(I,J) * step(T).  a(0,J) += s(J).  goal += a(N,J) * end(N,J).")
    e = np.full((30, 30), 1 / 30)
    ratios = []
    for length in (250, 2000):
        steps, ends = [(t,) for t in range(length)], [(length, j, 1.0) for j in range(30)]
        bound = program.bind({"step/1": steps, "e/2": e, "s/1": np.ones(30), "end/2": ends})
        bound.run().gradient("goal")
        forward, backward = [], []
        for _ in range(5):
            chart = bound.run()
            forward.append(chart.stats.seconds)
            begin = time.perf_counter()
            chart.gradient("goal")
            backward.append(time.perf_counter() - begin)
        ratios.append(min(backward) / min(forward))
    assert ratios[1] < 2 * ratios[0] + 1


def test_a_gradient_survives_pickling_of_its_chart() -> None:
    chart = SQUARE.run({"r/0": [(0.2,)]}, max_pops=3)
    assert pickle.loads(pickle.dumps(chart)).gradient("a")["r/0"][()] == chart.gradient("a")["r/0"][()]


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def test_an_item_that_was_never_derived_has_gradient_zero() -> None:
    chart = dg.Program(CKY).run({**GRAMMAR, **WORDS})
    gradient = chart.gradient("c(pp,0,5)")
    assert gradient.value == 0.0
    assert gradient["r/3"].values.shape == (6,) and not gradient["r/3"].values.any()
    assert len(gradient["c/3"]) == len(chart.table("c/3")) and not gradient["c/3"].values.any()
    assert not chart.gradient("c(nobody,7,9)")["w/3"].values.any()


def test_unknown_predicates_are_errors_with_the_nearest_name() -> None:
    chart = dg.Program(CKY).run({**GRAMMAR, **WORDS})
    with pytest.raises(dg.QueryError, match=r"no predicate `gaol/0`.*goal/0"):
        chart.gradient("gaol")
    with pytest.raises(dg.QueryError, match=r"no gradient for .*r/4.*r/3"):
        chart.gradient("goal")["r/4"]
    with pytest.raises(dg.QueryError, match="has variables"):
        chart.gradient("c(X,0,5)")
    with pytest.raises(dg.QueryError, match="no predicate"):
        chart.jvp({"q/1": [1.0]})
    with pytest.raises(dg.QueryError, match="no facts of goal/0"):
        chart.jvp({"goal/0": [1.0]})
    with pytest.raises(dg.FactError, match=r"the direction has r\(s,s,s\)"):
        chart.jvp({"r/3": [("s", "s", "s", 1.0)]})
    with pytest.raises(dg.QueryError, match="cotangent of 'goal' must be a finite number"):
        chart.gradient({"goal": math.nan})


def test_a_derivative_that_is_not_finite_is_reported_with_its_item() -> None:
    with pytest.raises(dg.ValueRangeError, match=r"gradient.*q\(a\).*first"):
        dg.Program("q(X) += p(X).  r(X) += sqrt(q(X)).  goal += r(X).").run({"p/1": [("a", 0.0)]}).gradient("goal")
    with pytest.raises(dg.ValueRangeError, match=r"gradient with respect to p\(a\) is"):
        dg.Program("goal += sqrt(p(X)).").run({"p/1": [("b", 1.0), ("a", 0.0)]}).gradient("goal")
    huge = dg.Program("p(N+1) += w(N) * p(N).  p(0) += s.")
    rows = {"w/1": [(n, 1e-30) for n in range(10)] + [(n, 1e30) for n in range(10, 20)], "s/0": [(1.0,)]}
    assert huge.run(rows).gradient("p(20)").item("p(10)") == pytest.approx(1e300)
    rows["w/1"] += [(20, 1e20)]
    with pytest.raises(dg.ValueRangeError, match=r"gradient with respect to p\(10\) became"):
        huge.run(rows).gradient("p(21)")
    with pytest.raises(dg.ValueRangeError, match=r"derivative of .* became NaN or infinite"):
        dg.Program("q(X) += sqrt(p(X)).").run({"p/1": [("a", 0.0)]}).jvp({"p/1": [1.0]})


def test_the_log_of_weight_zero_has_a_gradient_of_zero() -> None:
    """As that of an item that is not derived: a sum of nothing has no shares."""
    chart = dg.Program("goal += a(X).", "log").run({"a/1": [("x", -math.inf)]})
    assert chart["goal"] == -math.inf and "goal" in chart
    assert chart.gradient("goal").item("a(x)") == 0.0


@pytest.mark.parametrize("size", [0.0, 1e3, -1e6, 1e9, -1e20, 1e100])
def test_an_entropy_has_digits_or_is_an_error(size: float) -> None:
    chart = dg.Program("goal += a(_).", "log").run({"a/1": [("x", size), ("y", size)]})
    if abs(size) > 1e9:
        with pytest.raises(dg.ValueRangeError, match="no digits for the entropy" if abs(size) < 1e50 else "of goal"):
            chart.entropy()
    else:
        assert chart.entropy() == pytest.approx(math.log(2), abs=1e-6)
    masked = dg.Program("goal += a(_).", "log").run({"a/1": [("x", 0.5), ("y", 0.5), ("z", -1e20)]})
    assert masked.entropy() == pytest.approx(math.log(2), rel=1e-12)


def test_questions_about_derivations_need_weights() -> None:
    plain = dg.Program("goal += exp(a(X)).").run({"a/1": [("x", 1.0)]})
    for ask in (lambda: plain.marginal("a(x)"), plain.expected_counts, plain.entropy, lambda: plain.outside("a(x)")):
        with pytest.raises(dg.NotDifferentiable, match="this one is plain"):
            ask()
    real = dg.Program("goal += a(X).")
    with pytest.raises(dg.QueryError, match="row 1: the weight is negative"):
        real.run({"a/1": [("x", -1.0)]}).entropy()
    with pytest.raises(dg.QueryError, match="negative constant"):
        dg.Program("goal += 2*a(X).  goal += -1*a(X).").run({"a/1": [("x", 1.0)]}).entropy()
    with pytest.raises(dg.QueryError, match="was not derived"):
        real.run({"a/1": []}).entropy()
    assert real.run({"a/1": []}).marginal("a(x)") == 0.0
    with pytest.raises(dg.QueryError, match=r"has weight 0\.0"):
        real.run({"a/1": [("x", 0.0)]}).expected_counts()


@pytest.mark.parametrize(
    "empty", [{}, [], (), set(), np.zeros(0, [("a", "i8"), ("v", "f8")]), (np.zeros((0, 1), int), [])]
)
@pytest.mark.parametrize("name", ["real", "expectation"])
@pytest.mark.parametrize("facts", [2, 0])
def test_an_empty_table_is_the_zero_direction(empty, name, facts):
    one = 2.0 if name == "real" else (2.0, 1.0)
    rows = [("x", one), ("y", one)][:facts]
    chart = dg.Program("goal += a(X) * b(X).", name).run({"a/1": rows, "b/1": [("x", one)]})
    zero = 0.0 if name == "real" else (0.0, 0.0)
    assert chart.jvp({"a/1": empty})["goal"] == chart.jvp({})["goal"] == zero


def test_an_empty_array_is_no_direction_of_facts():
    chart = dg.Program("goal += a(X) * b(X).").run({"a/1": [("x", 2.0)], "b/1": [("x", 3.0)]})
    with pytest.raises(dg.FactError, match="has 0 numbers, and there is 1 fact"):
        chart.jvp({"a/1": np.zeros(0)})
