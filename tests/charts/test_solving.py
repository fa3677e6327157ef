"""Solving cyclic components: values, derivatives, equations without a solution, and runs that stop half-way.

The oracles are numpy's linear algebra, closed forms, and differences of the engine's own values. Each program is
compiled once and runs over many facts. Costs ten seconds.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

PATHS = "path(Y) += start(Y). path(Y) += path(X) * edge(X,Y). goal += path(X) * stop(X)."
PAIRS = "x(A) += p(A,B,C) * x(B) * x(C). x(A) += u(A,B) * x(B). x(A) += q(A). goal += x(A) * s(A)."
Facts = dict[str, Any]


@cache
def bound(source: str, semiring: str | None) -> dg.Bound:
    return dg.Program(source, semiring).bind({})


def graph(matrix: np.ndarray[Any, Any], start: Any, stop: Any) -> Facts:
    """Facts of a graph: the cells of the matrix that are not NaN are edges."""
    edges = [(i, j, matrix[i, j]) for i, j in np.argwhere(~np.isnan(matrix)).tolist()]
    return {"start/1": np.asarray(start), "edge/2": edges, "stop/1": np.asarray(stop)}


def random_graph(n: int, degree: float, radius: float, seed: int) -> np.ndarray[Any, Any]:
    """A strongly connected graph whose matrix has that spectral radius; NaN where there is no edge."""
    random = np.random.default_rng(seed)
    there = (random.random((n, n)) < degree / n) | np.roll(np.eye(n, dtype=bool), 1, axis=1)
    matrix = np.where(there, random.random((n, n)), 0.0)
    matrix *= radius / max(abs(np.linalg.eigvals(matrix)))
    return np.where(there, matrix, np.nan)


def differences(run: Any, facts: Facts, key: str, step: float = 1e-4) -> list[float]:
    """Central differences of a value by each fact of a predicate."""
    found = []
    for i, row in enumerate(facts[key]):
        near = [[*facts[key][:i], (*row[:-1], row[-1] + sign * step), *facts[key][i + 1 :]] for sign in (1, -1)]
        plus, minus = (run({**facts, key: rows}) for rows in near)
        found.append((plus - minus) / (2 * step))
    return found


# -- values and gradients ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("semiring", ["real", "log"])
@pytest.mark.parametrize(
    ("n", "degree", "radius"), [(1, 1, 0.5), (7, 7, 0.999), (40, 3, 0.9), (150, 1.5, 0.99), (90, 90, 0.9)]
)
def test_sums_over_paths_of_a_graph_are_those_of_its_resolvent(
    semiring: str, n: int, degree: float, radius: float
) -> None:
    matrix = random_graph(n, degree, radius, n)
    dense = np.nan_to_num(matrix)
    start, stop = np.linspace(0.5, 1, n), np.linspace(1, 2, n)
    path, back = np.linalg.solve(np.eye(n) - dense.T, start), np.linalg.solve(np.eye(n) - dense, stop)
    there = ~np.isnan(matrix)
    if semiring == "real":
        chart = bound(PATHS, "real").run(graph(matrix, start, stop))
        assert chart.table("path/1").values == pytest.approx(path, rel=1e-10)
        gradient = chart.gradient("goal")
        assert gradient["start/1"].values == pytest.approx(back, rel=1e-10)
        assert gradient["edge/2"].values == pytest.approx(np.outer(path, back)[there], rel=1e-10)
    else:
        chart = bound(PATHS, "log").run(graph(np.log(matrix), np.log(start), np.log(stop)))
        assert np.exp(chart.table("path/1").values) == pytest.approx(path, rel=1e-10)
        counts = dense * np.outer(path, back) / (start @ back)
        assert chart.gradient("goal")["edge/2"].values == pytest.approx(counts[there], rel=1e-10)
    assert chart.converged
    assert chart.error_bound < 1e-10


def test_each_item_is_popped_once() -> None:
    chart = bound(PATHS, "real").run(graph(random_graph(40, 3, 0.9, 1), np.ones(40), np.ones(40)))
    assert chart.stats.pops == 40


FACTS_OF_PAIRS: Facts = {
    "p/3": [(0, 0, 0, 0.125), (0, 1, 0, 0.125), (1, 0, 0, 0.5), (1, 0, 1, 0.0), (0, 1, 2, 0.1), (2, 2, 1, 0.2)],
    "u/2": [(0, 0, 0.5), (0, 1, 0.0), (2, 0, 0.25)],
    "q/1": [(0, 0.25), (2, 0.125)],
    "s/1": [(0, 1.0), (2, 0.5)],
}


def test_a_gradient_through_products_of_several_unknowns() -> None:
    def goal(facts: Facts) -> float:
        return float(bound(PAIRS, "real").run(facts)["goal"])

    gradient = bound(PAIRS, "real").run(FACTS_OF_PAIRS).gradient("goal")
    for key in FACTS_OF_PAIRS:
        assert gradient[key].values == pytest.approx(differences(goal, FACTS_OF_PAIRS, key), rel=1e-5), key


def test_an_item_in_a_cycle_leads_to_another_level_together_with_one_that_is_in_none() -> None:
    """The facts say that f comes after all others; in which order these are explored, the order of the facts says."""
    products = [("f", "a", "f", 0.1), ("e", "a", "z", 0.2), ("f", "e", "f", 0.3), ("f", "d", "b", 0.5)]
    single = [("b", "b", 0.5), ("f", "z", 0.25), ("e", "a", 0.25), ("e", "d", 0.25)]
    for order in itertools.permutations("zacdb"):
        facts = {"p/3": products, "u/2": single, "q/1": [(x, 0.25) for x in order]}
        chart = bound(PAIRS, "real").run({**facts, "s/1": [("f", 1.0)]})
        x = {name: chart[f"x({name})"] for name in "abdefz"}
        wanted = (0.1 * x["a"] + 0.3 * x["e"]) * x["f"] + 0.5 * x["d"] * x["b"] + 0.25 * x["z"]
        assert x["f"] == pytest.approx(wanted, rel=1e-13), order


def test_second_derivatives_go_through_weights_of_zero_into_a_cycle() -> None:
    """The goal reaches the cycle 1 <-> 2 by an edge of weight zero alone."""
    facts = {
        "start/1": [(0, 1.0)],
        "edge/2": [(0, 1, 0.5), (1, 2, 0.5), (2, 1, 0.8), (2, 0, 0.0), (0, 0, 0.25)],
        "stop/1": [(0, 1.0)],
    }
    function = bound(PATHS, "real").function("goal", inputs=["edge/2"], facts=facts)
    weights = np.array([row[-1] for row in facts["edge/2"]])
    direction = np.array([0.3, -0.2, 0.5, 1.0, 0.1])

    def gradient(step: float) -> Any:
        return function.value_and_grad(weights + step * direction)[1][0]

    found = function.hvp([weights], [direction])[0]
    assert found == pytest.approx((gradient(1e-5) - gradient(-1e-5)) / 2e-5, rel=1e-6)


def test_the_pairs_of_expectation_go_through_weights_of_zero_into_a_cycle() -> None:
    """x1 = 0.25 x1 + x0 is reached from the goal by a fact whose probability is zero."""
    facts = {
        "start/1": [(0, (1.0, 0.0))],
        "edge/2": [(0, 1, (1.0, 0.0)), (1, 1, (0.25, 0.0)), (1, 0, (0.0, 1.0))],
        "stop/1": [(0, (1.0, 0.0))],
    }
    gradient = bound(PATHS, "expectation").run(facts).gradient("goal")
    # goal = 1 / (1 - e10 e01 / (1 - e11)), over dual numbers, at e10 = 0 + 1 epsilon
    wanted = [(0.0, 4 / 3), (0.0, 16 / 9), (4 / 3, 32 / 9)]
    assert gradient["edge/2"].values == pytest.approx(np.array(wanted))


# -- what has no solution ----------------------------------------------------------------------------------------------


def test_a_divergence_names_its_cycle_and_the_radius() -> None:
    """Unknown 2 leads into the cycle more heavily than the cycle itself; 3 lies behind it, and has a zero way back."""
    facts = {
        "start/1": [(2, 1.0)],
        "edge/2": [(0, 1, 0.5), (1, 0, 4.5), (2, 0, 9.0), (1, 3, 1.0), (3, 2, 0.0)],
        "stop/1": [(0, 1.0)],
    }
    with pytest.raises(dg.NotConverged, match="has no finite value") as raised:
        bound(PATHS, "real").run(facts)
    assert raised.value.radius == pytest.approx(1.5)
    assert sorted(raised.value.cycle) == ["path(0)", "path(1)"]


# -- runs that stop, and go on -----------------------------------------------------------------------------------------


def test_a_chart_that_was_stopped_goes_on_to_the_same_values_also_from_a_pickle() -> None:
    n = 10_000  # about a tenth of a second
    random = np.random.default_rng(1)
    edges = np.stack([np.repeat(np.arange(n), 4), random.integers(0, n, 4 * n)], axis=1)
    facts = {"start/1": [(0, 1.0)], "edge/2": (edges, random.random(4 * n) * 0.4), "stop/1": [(1, 1.0)]}
    whole = bound(PATHS, "real").run(facts)
    stopped = None
    for timeout in (1e-3, 0.01, 0.02, 0.05, 0.1):  # one that loading the facts is within, and the run is not
        with contextlib.suppress(dg.NotConverged):
            stopped = bound(PATHS, "real").run(facts, timeout=timeout)
            break
    assert stopped is not None and stopped.status == "timeout"
    loaded = pickle.loads(pickle.dumps(stopped))
    assert (loaded.status, loaded.stats.pops) == ("timeout", stopped.stats.pops)
    for chart in (stopped, loaded, pickle.loads(pickle.dumps(whole))):
        chart.run(timeout=None)
        assert chart.status == "done"
        assert chart.stats.pops == whole.stats.pops
        assert np.array_equal(chart.table("path/1").values, whole.table("path/1").values)
    assert stopped.gradient("goal")["edge/2"].values == pytest.approx(whole.gradient("goal")["edge/2"].values, rel=0)


def test_numbers_of_a_long_derivation_against_the_order_of_the_facts() -> None:
    """In `log`: the best way to the last item is the longest, by e^10000 over the direct one."""
    n = 200
    back, forth = [(i, i - 1, -300.0) for i in range(n, 0, -1)], [(i, i + 1, 50.0) for i in range(n)]
    for rows in (back + forth, [(n - i, n - j, w) for i, j, w in back + forth]):
        last = rows[0][0]
        facts = {
            "start/1": [(i, -1000.0 * (i != n - last)) for i in range(n + 1)],
            "edge/2": rows,
            "stop/1": [(last, 0.0)],
        }
        assert bound(PATHS, "log").run(facts)["goal"] == pytest.approx(50.0 * n)


def test_many_long_derivations_that_outweigh_the_best_one_by_more_than_a_double_holds() -> None:
    """In `log`: a walk to and fro along 5,000 places, whose weight is e^1100 times that of the straight way."""
    n, w = 5000, 0.4
    ratio = np.zeros(n + 1)  # of each place's weight to that of the one before
    for k in range(n - 1, 0, -1):
        ratio[k] = w / (1 - w * ratio[k + 1])
    expected = -math.log(1 - w * ratio[1]) + np.log(ratio[1:n]).sum()
    edges = [(i, i + d, math.log(w)) for i in range(n) for d in (-1, 1) if 0 <= i + d < n]
    facts = {"start/1": [(0, 0.0)], "edge/2": edges, "stop/1": [(n - 1, 0.0)]}
    chart = bound(PATHS, "log").run(facts)
    assert chart["goal"] == pytest.approx(expected, rel=1e-13)
    assert chart.stats.pops == n
    visits = 1 / (1 - 2 * w * ratio[n // 2 + 1])  # far from both ends
    assert chart.gradient("goal").item(f"path({n // 2})") == pytest.approx(visits, rel=1e-9)


def test_a_cycle_that_nothing_enters_is_zero_whatever_its_weights_and_its_derivatives_are_said_to_have_no_end() -> None:
    facts = {"start/1": [(0, 0.0)], "edge/2": [(0, 1, 2.0), (1, 0, 3.0)], "stop/1": [(0, 1.0)]}
    chart = bound(PATHS, "real").run(facts)
    assert (chart["goal"], chart["path(1)"], chart.converged) == (0.0, 0.0, True)
    with pytest.raises(dg.ValueRangeError, match="does not settle"):
        chart.gradient("goal")
    gentle = bound(PATHS, "real").run({**facts, "edge/2": [(0, 1, 0.5), (1, 0, 1.0)]})
    assert gentle.gradient("goal")["start/1"].values.tolist() == [2.0]


@pytest.mark.parametrize(("excess", "converged"), [(0.0, False), (2.0**-40, True), (-(2.0**-40), None)])
def test_a_grammar_at_its_critical_point(excess: float, converged: bool | None) -> None:
    """x = (1/2 - excess) + x^2/2 for 20 unknowns: the least solution is 1 - sqrt(2 excess), and there is none below."""
    n = 20
    rules = [(a, (a + 1) % n, (a * 7 + 3) % n, 0.25) for a in range(n)] + [(a, a, (a * 3) % n, 0.25) for a in range(n)]
    facts = {"p/3": rules, "u/2": [(0, 0, 0.0)], "q/1": [(a, 0.5 - excess) for a in range(n)], "s/1": [(0, 1.0)]}
    if converged is None:
        with pytest.raises(dg.NotConverged) as raised:
            bound(PAIRS, "real").run(facts)
        assert raised.value.radius >= 1 - 1e-6
        return
    chart = bound(PAIRS, "real").run(facts)
    assert chart.converged is converged
    assert chart["goal"] == pytest.approx(1 - math.sqrt(2 * excess), abs=max(2 * chart.error_bound, 1e-9))
    assert chart.error_bound < 1e-6
    assert chart.stats.pops == n
