"""The agenda as a user sees it: orders, priorities, early stops, tolerance, pruning and beams. Costs a few seconds."""

# Every fresh program is compiled, so tests share programs where they can. That results do not depend on the order is
# tested on many more programs with the oracle and the examples.

from __future__ import annotations

import math
from functools import cache
from typing import Any

import networkx
import numpy as np
import pytest

import dynagrad as dg
from oracle import close

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

PATHS = "path(Y) += start(Y). path(Y) += path(X) * arc(X,Y)."


@cache
def program(source: str) -> Any:
    return dg.Program(source)


def run(source: str, facts: dict[str, Any], **limits: Any) -> Any:
    return program(source).run(facts, **limits)


def popped(chart: Any, key: str) -> dict[Any, float]:
    """The items of a predicate that were popped, with their values."""
    return {tuple(row)[:-1]: tuple(row)[-1] for row in chart.table(key)}


def waiting(chart: Any, key: str) -> dict[Any, float]:
    """The updates of a predicate that were not propagated."""
    pending = chart.pending
    return {tuple(row)[:-1]: tuple(row)[-1] for row in pending[key]} if key in pending else {}


# -- results do not depend on the order --------------------------------------------------------------------------------


class TestOrders:
    """A graph with cycles; the sum over all its paths solves a linear system."""

    ARCS = tuple((f"n{i}", f"n{j}", 0.9 / 4) for i in range(8) for j in ((i * 3 + 1) % 8, (i + 5) % 8, (i * i) % 8))

    @pytest.mark.parametrize("agenda", ["auto", "priority", "fifo", "lifo"])
    def test_sums_over_cycles(self, agenda: str) -> None:
        chart = run(f":- agenda {agenda}. {PATHS} goal += path(n3).", {"start/1": [("n0", 1.0)], "arc/2": self.ARCS})
        matrix = np.zeros((8, 8))
        for x, y, w in self.ARCS:
            matrix[int(x[1]), int(y[1])] += w
        total = np.linalg.solve(np.eye(8) - matrix.T, np.eye(8)[0])
        assert chart.converged and chart.status == "done"
        for i in range(8):
            assert close(chart[f"path(n{i})"], total[i]) or (total[i] == 0 and f"path(n{i})" not in chart)
        assert chart["goal"] == chart["path(n3)"]

    NEGATION = f""":- semiring boolean. :- agenda lifo.
    {PATHS}
    cut(X) += node(X) for not path(X).
    beyond(Y) += cut(X) * arc(X,Y).
    inner(X) += path(X) for not beyond(X).
    """

    @pytest.fixture(scope="class")
    def facts(self) -> dict[str, Any]:
        arcs = [("a", "b"), ("b", "c"), ("c", "a"), ("x", "y"), ("y", "x"), ("y", "c")]
        return {"start/1": [("a",)], "arc/2": arcs, "node/1": [(n,) for n in "abcxyz"]}

    def test_negation_waits_for_its_stratum(self, facts: dict[str, Any]) -> None:
        chart = run(self.NEGATION, facts)
        assert set(popped(chart, "path/1")) == {("a",), ("b",), ("c",)}
        assert set(popped(chart, "cut/1")) == {("x",), ("y",), ("z",)}
        assert set(popped(chart, "inner/1")) == {("a",), ("b",)}

    def test_a_stratum_is_not_begun_before_the_one_before_is_done(self, facts: dict[str, Any]) -> None:
        for pops in range(3):
            chart = run(self.NEGATION, facts, max_pops=pops)
            assert len(popped(chart, "path/1")) == pops
            assert popped(chart, "cut/1") == popped(chart, "inner/1") == {}


def test_updates_of_one_item_merge() -> None:
    """Ten ways into `m`: first in first out they arrive together, newest first one by one."""
    arcs = [("s", f"x{i}", 1.0) for i in range(10)] + [(f"x{i}", "m", 0.5) for i in range(10)] + [("m", "t", 2.0)]
    facts = {"start/1": [("s", 1.0)], "arc/2": arcs}
    first, newest = (run(f":- agenda {a}. {PATHS}", facts) for a in ("fifo", "lifo"))
    assert first["path(t)"] == newest["path(t)"] == 10.0
    assert first.stats.pops == 1 + 10 + 1 + 1
    assert newest.stats.pops == 1 + 10 * 3


def test_facts_are_not_pops() -> None:
    chart = run("goal += a(X) * b(X).", {"a/1": [("x", 2.0)], "b/1": [("x", 3.0)]})
    assert (chart["goal"], chart.stats.pops) == (6.0, 0)


# -- size and priority -------------------------------------------------------------------------------------------------


class TestPriority:
    def test_the_largest_change_first(self) -> None:
        source = ":- agenda priority. p(X) += s(X). q(X) += p(X) * t(X)."
        facts = {"s/1": [("small", -1.0), ("large", -5.0), ("middle", 3.0)], "t/1": [("small",)]}
        seen = [set(popped(run(source, facts, max_pops=n), "p/1")) for n in range(4)]
        assert seen == [set(), {("large",)}, {("large",), ("middle",)}, {("large",), ("middle",), ("small",)}]

    def test_the_largest_weight_first_in_log(self) -> None:
        source = ":- semiring log. :- agenda priority. p(X) += s(X). q(X) += p(X) * t(X)."
        facts = {"s/1": [("small", -900.0), ("large", 3.0), ("middle", -1.0)], "t/1": [("small", 0.0)]}
        seen = [list(popped(run(source, facts, max_pops=n), "p/1")) for n in (1, 2)]
        assert seen == [[("large",)], [("large",), ("middle",)]]

    def test_from_arguments(self) -> None:
        source = """
        constit(X,I,K) += rewrite(X,W) * word(W,I,K).
        constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
        goal += constit(a,0,N) * end(N).
        """
        facts = {
            "rewrite/2": [("a", "w", 0.5)],
            "rewrite/3": [("a", "a", "a", 0.25), ("b", "a", "b", 0.5), ("b", "a", "a", 1.0)],
            "word/3": [("w", i, i + 1) for i in range(7)],
            "end/1": [(7,)],
        }
        plain = run(source, facts)
        narrow = run(f":- priority constit(_X,I,K) = I - K. {source}", facts)
        assert close(narrow["goal"], plain["goal"])
        assert narrow.stats.pops == len(popped(narrow, "constit/3")) == plain.stats.pops

    def test_predicates_without_one_come_after(self) -> None:
        source = ":- priority p(I) = I. p(I) += s(I). q(I) += p(I). r(I) += q(I) * s(I). t += r(_)."
        facts = {"s/1": [(i, 1.0) for i in range(5)]}
        for pops in range(6):
            chart = run(source, facts, max_pops=pops)
            assert set(popped(chart, "p/1")) == {(i,) for i in range(5 - pops, 5)}
            assert popped(chart, "q/1") == {}
        assert run(source, facts)["t"] == 5.0

    def test_the_own_value_counts_with_its_update(self) -> None:
        # x: 0.9, then w: 0.45; then x has 0.9 and 0.045 more, which is before y with 0.9
        source = f":- priority path(X) = path(X). {PATHS}"
        arcs = [("x", "w", 0.5), ("w", "x", 0.1), ("w", "y", 2.0)]
        chart = run(source, {"start/1": [("x", 0.9)], "arc/2": arcs}, max_pops=3)
        assert popped(chart, "path/1") == {("x",): pytest.approx(0.945), ("w",): 0.45}
        assert waiting(chart, "path/1").keys() == {("y",), ("w",)}

    def test_a_bad_priority_costs_pops_and_nothing_else(self) -> None:
        arcs = [("a", "b", 1.0), ("b", "c", 1.0), ("a", "c", 5.0), ("c", "d", 1.0), ("d", "a", 0.0)]
        facts = {"start/1": [("a", 0.0)], "arc/2": arcs}
        worst = run(f":- semiring tropical. :- priority path(X) = path(X). {PATHS}", facts)
        assert popped(worst, "path/1") == {("a",): 0.0, ("b",): 1.0, ("c",): 2.0, ("d",): 3.0}


# -- A*: a heuristic that rules compute --------------------------------------------------------------------------------


class TestAStar:
    """A grid with costs of at least one; the rows and columns still to go are a lower bound, computed by rules."""

    SIZE = 24
    SOURCE = """
    :- semiring tropical.
    path(X,Y) += start(X,Y).
    path(X,Y) += path(U,V) * arc(U,V,X,Y).
    """
    HEURISTIC = """
    :- priority path(X,Y) = -path(X,Y) - h(X,Y).
    across(X) += target(X,_Y).
    across(X-1) += across(X) * 1 for X > 0.
    across(X+1) += across(X) * 1 for X < 23.
    down(Y) += target(_X,Y).
    down(Y-1) += down(Y) * 1 for Y > 0.
    down(Y+1) += down(Y) * 1 for Y < 23.
    h(X,Y) += across(X) * down(Y).
    """

    @pytest.fixture(scope="class")
    def facts(self) -> dict[str, Any]:
        random = np.random.default_rng(7)
        arcs = []
        for x in range(self.SIZE):
            for y in range(self.SIZE):
                for u, v in ((x + 1, y), (x, y + 1)):
                    if u < self.SIZE and v < self.SIZE:
                        cost = 1.0 + float(random.random() < 0.2) * 2.0
                        arcs += [(x, y, u, v, cost), (u, v, x, y, cost)]
        return {"arc/4": arcs, "start/2": [(12, 12)]}

    @pytest.fixture(scope="class")
    def exact(self, facts: dict[str, Any]) -> dict[Any, float]:
        graph = networkx.DiGraph()
        graph.add_weighted_edges_from(((x, y), (u, v), cost) for x, y, u, v, cost in facts["arc/4"])
        return dict(networkx.single_source_dijkstra_path_length(graph, (12, 12)))

    def test_dijkstra_stops_at_the_target(self, facts: dict[str, Any], exact: dict[Any, float]) -> None:
        chart = run(self.SOURCE, facts, until="path(18,14)")
        assert chart["path(18,14)"] == exact[18, 14]
        assert not chart.converged and chart.status == "until"
        places = popped(chart, "path/2")
        assert all(cost == exact[place] <= exact[18, 14] for place, cost in places.items())
        assert len(places) < self.SIZE**2
        assert chart.pending["path/2"]

    def test_a_star_is_exact_with_fewer_pops(self, facts: dict[str, Any], exact: dict[Any, float]) -> None:
        dijkstra = run(self.SOURCE, facts, until="path(18,14)")
        chart = run(self.SOURCE + self.HEURISTIC, {**facts, "target/2": [(18, 14)]}, until="path(18,14)")
        assert chart["path(18,14)"] == exact[18, 14]
        assert popped(chart, "h/2") == {(x, y): abs(x - 18) + abs(y - 14) for x in range(24) for y in range(24)}
        assert len(popped(chart, "path/2")) < 0.6 * len(popped(dijkstra, "path/2"))
        assert all(cost == exact[place] for place, cost in popped(chart, "path/2").items())

    def test_the_same_chart_runs_on_to_all_the_rest(self, facts: dict[str, Any], exact: dict[Any, float]) -> None:
        chart = run(self.SOURCE + self.HEURISTIC, {**facts, "target/2": [(18, 14)]})
        assert chart.converged
        assert popped(chart, "path/2") == exact


# -- stopping early ----------------------------------------------------------------------------------------------------


class TestMaxPops:
    """`a += a*a. a += r.`: the chart after each pop, as the derivation of the gradient has it."""

    SOURCE = "a += a * a. a += r."

    def test_the_chart_after_each_pop(self) -> None:
        r, value = 0.2, 0.0
        for pops in range(12):
            chart = run(self.SOURCE, {"r/0": [(r,)]}, max_pops=pops)
            assert chart["a"] == pytest.approx(value, rel=1e-14)
            assert (chart.status, chart.converged, chart.stats.pops) == ("max_pops", False, pops)
            following = r + value**2
            assert waiting(chart, "a/0")[()] == pytest.approx(following - value, rel=1e-9)
            value = following

    def test_before_the_first_pop_nothing_is_in_the_chart(self) -> None:
        chart = run(self.SOURCE, {"r/0": [(0.2,)]}, max_pops=0)
        assert (chart["a"], "a" in chart, waiting(chart, "a/0")) == (0.0, False, {(): 0.2})

    def test_it_creeps_up_to_a_double_root(self) -> None:
        previous = 0.0
        for pops in (1, 10, 100, 1000, 10_000):
            value = run(self.SOURCE, {"r/0": [(0.25,)]}, max_pops=pops)["a"]
            assert previous < value < 0.5
            assert 0.5 / (pops + 6) < 0.5 - value < 1.2 / (pops + 1)
            previous = value

    def test_under_the_tolerance_it_ends(self) -> None:
        chart = run(self.SOURCE, {"r/0": [(0.25,)]}, tolerance=1e-6)
        assert chart.status == "done" and not chart.converged
        assert chart.error_bound > 1e-4  # a step under the tolerance is not the last one
        assert 1e-4 < 0.5 - chart["a"] < 2e-3  # steps are the square of what is left to go
        assert 0 < waiting(chart, "a/0")[()] <= 1e-6
        finer = run(self.SOURCE, {"r/0": [(0.2,)]})
        assert finer.converged and close(finer["a"], (1 - math.sqrt(0.2)) / 2)

    def test_a_stopped_chart_runs_on(self) -> None:
        source, facts = self.SOURCE, {"r/0": [(0.2,)]}
        chart = run(source, facts, max_pops=2)
        chart.run(max_pops=3)
        assert chart.stats.pops == 5
        assert chart["a"] == run(source, facts, max_pops=5)["a"]
        chart.run(max_pops=None)
        assert chart.converged and close(chart["a"], run(source, facts)["a"])  # iterated, and solved

    @pytest.mark.parametrize("agenda", ["fifo", "priority"])
    def test_what_a_longer_run_adds_only_raises_the_goal(self, agenda: str) -> None:
        source = f":- agenda {agenda}. {PATHS} goal += path(n3)."
        facts = {"start/1": [("n0", 1.0)], "arc/2": TestOrders.ARCS}
        done = run(source, facts)
        bounds = [run(source, facts, max_pops=n)["goal"] for n in range(0, 60)]
        assert bounds[0] == 0.0 < bounds[-1] <= done["goal"] * (1 + 1e-12)
        assert bounds == sorted(bounds)
        assert done["goal"] - bounds[-1] < 0.5 * (done["goal"] - bounds[15])


class TestUntil:
    LEVELS = """
    constit(X,I,K) += rewrite(X,W) * word(W,I,K).
    constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
    """
    FACTS = {  # noqa: RUF012
        "rewrite/2": [("a", "w", 0.5)],
        "rewrite/3": [("a", "a", "a", 0.25)],
        "word/3": [("w", i, i + 1) for i in range(8)],
    }

    def test_it_stops_once_the_item_is_final(self) -> None:
        whole = run(self.LEVELS, self.FACTS)
        chart = run(self.LEVELS, self.FACTS, until="constit(a,0,3)")
        assert chart["constit(a,0,3)"] == whole["constit(a,0,3)"]
        assert chart.stats.pops < whole.stats.pops
        assert (chart.status, chart.converged, whole.converged) == ("until", False, True)

    @pytest.mark.parametrize("item", ["constit(a,3,0)", "constit(b,0,3)", "constit(a,0,80)"])
    def test_an_item_that_is_never_derived_stops_nothing(self, item: str) -> None:
        chart = run(self.LEVELS, self.FACTS, until=item)
        assert chart.converged and chart[item] == 0.0
        assert chart["constit(a,0,8)"] == run(self.LEVELS, self.FACTS)["constit(a,0,8)"]

    def test_an_item_of_the_last_stage(self) -> None:
        source = self.LEVELS + "goal += constit(a,0,3)."
        chart = run(source, self.FACTS, until="goal")
        assert chart["goal"] == run(self.LEVELS, self.FACTS)["constit(a,0,3)"]

    def test_where_no_order_makes_it_final_it_is_so_at_the_end(self) -> None:
        source = f":- agenda fifo. {PATHS} goal += path(n3)."
        facts = {"start/1": [("n0", 1.0)], "arc/2": TestOrders.ARCS}
        assert close(run(source, facts, until="goal")["goal"], run(source, facts)["goal"])

    def test_it_can_be_asked_for_another_item_later(self) -> None:
        chart = run(self.LEVELS, self.FACTS, until="constit(a,0,3)")
        chart.run(until=None)
        assert chart.converged
        assert chart["constit(a,0,8)"] == run(self.LEVELS, self.FACTS)["constit(a,0,8)"]


class TestNegativeCosts:
    """Best first is not final first here: what comes later may be better."""

    ARCS = (("a", "b", 2.0), ("a", "c", 5.0), ("c", "b", -4.0), ("b", "d", 1.0), ("d", "e", -3.0), ("e", "b", 3.5))
    EXACT = {("a",): 0.0, ("b",): 1.0, ("c",): 5.0, ("d",): 2.0, ("e",): -1.0}  # noqa: RUF012
    FACTS = {"start/1": [("a", 0.0)], "arc/2": ARCS}  # noqa: RUF012

    @pytest.mark.parametrize("agenda", ["auto", "lifo"])
    def test_all_costs_are_exact(self, agenda: str) -> None:
        chart = run(f":- semiring tropical. :- agenda {agenda}. {PATHS}", self.FACTS)
        assert chart.converged and popped(chart, "path/1") == self.EXACT

    @pytest.mark.parametrize("item", ["path(b)", "path(d)", "path(e)"])
    def test_a_stop_waits_until_no_better_one_can_come(self, item: str) -> None:
        chart = run(f":- semiring tropical. :- agenda auto. {PATHS}", self.FACTS, until=item)
        assert chart[item] == self.EXACT[item[5:-1],]

    def test_agrees_with_bellman_and_ford(self) -> None:
        random = np.random.default_rng(3)
        heights = random.normal(size=30)
        arcs = []
        for x in range(30):
            for y in random.choice(30, 4, replace=False):  # costs that no cycle makes negative
                arcs.append((x, int(y), float(random.exponential() + heights[y] - heights[x])))
        graph = networkx.DiGraph()
        graph.add_nodes_from(range(30))
        for x, y, cost in arcs:
            graph.add_edge(x, y, weight=cost)
        assert min(cost for *_, cost in arcs) < 0
        exact = networkx.single_source_bellman_ford_path_length(graph, 0)
        named = [(f"n{x}", f"n{y}", cost) for x, y, cost in arcs]
        chart = run(f":- semiring tropical. :- agenda auto. {PATHS}", {"start/1": [("n0", 0.0)], "arc/2": named})
        found = popped(chart, "path/1")
        assert found.keys() == {(f"n{x}",) for x in exact}
        assert all(close(found[f"n{x}",], cost) for x, cost in exact.items())


class TestEndlessRuns:
    SOURCE = "n(0) += one. n(I+1) += n(I) * one. total += n(_)."
    FACTS = {"one/0": [(1.0,)]}  # noqa: RUF012

    def test_max_pops(self) -> None:
        chart = run(self.SOURCE, self.FACTS, max_pops=1000)
        assert (len(popped(chart, "n/1")), chart.status) == (1000, "max_pops")
        assert waiting(chart, "n/1") == {(1000,): 1.0}

    def test_timeout(self) -> None:
        endless = program(self.SOURCE)
        endless.run(self.FACTS, max_pops=10)  # compiled now
        chart = endless.run(self.FACTS, timeout=0.02)
        assert (chart.status, chart.converged) == ("timeout", False)
        assert chart.stats.seconds < 1.0 and chart.stats.items > 100

    def test_a_limit_on_items_is_an_error_that_holds_the_chart(self) -> None:
        with pytest.raises(dg.NotConverged, match="items") as caught:
            run(self.SOURCE, self.FACTS, max_items=5000)
        assert caught.value.chart.stats.items >= 5000
        assert caught.value.chart["n(17)"] == 1.0
        assert not caught.value.chart.converged

    def test_a_limit_on_bytes_is_one_too(self) -> None:
        with pytest.raises(dg.NotConverged, match="bytes"):
            run(self.SOURCE, self.FACTS, max_bytes=1_000_000)

    @pytest.mark.parametrize(
        "limits", [{"max_pops": -1}, {"timeout": float("nan")}, {"tolerance": -1.0}, {"max_items": "x"}]
    )
    def test_limits_that_make_no_sense_are_errors(self, limits: dict[str, Any]) -> None:
        with pytest.raises(dg.Error, match=next(iter(limits))):
            run(self.SOURCE, self.FACTS, **limits)


# -- pruning and beams -------------------------------------------------------------------------------------------------


class TestPrune:
    def test_an_update_that_fails_stays_pending(self) -> None:
        source = f":- agenda fifo. :- prune path(X) < 1e-6. {PATHS}"
        arcs = [("a", "b", 0.5), ("b", "c", 1e-9), ("c", "d", 1e9), ("b", "e", 0.25)]
        chart = run(source, {"start/1": [("a", 1.0)], "arc/2": arcs})
        assert popped(chart, "path/1") == {("a",): 1.0, ("b",): 0.5, ("e",): 0.125}
        assert (chart["path(c)"], "path(c)" in chart, "path(d)" in chart) == (0.0, False, False)
        assert waiting(chart, "path/1") == {("c",): 0.5e-9}
        assert chart.converged

    def test_it_is_tested_on_chart_and_update_together(self) -> None:
        # m gets 6e-7 twice, the second time two arcs later: together they pass
        source = f":- agenda fifo. :- prune path(X) < 1e-6. {PATHS}"
        arcs = [("a", "m", 6e-7), ("a", "x", 1.0), ("x", "y", 1.0), ("y", "m", 6e-7), ("m", "t", 10.0)]
        chart = run(source, {"start/1": [("a", 1.0)], "arc/2": arcs})
        assert chart["path(m)"] == pytest.approx(1.2e-6) and chart["path(t)"] == pytest.approx(1.2e-5)
        assert chart.pending == {}

    def test_it_is_in_the_scale_of_the_semiring(self) -> None:
        source = f":- semiring tropical. :- prune path(X) > 5. {PATHS}"
        arcs = [("a", "b", 3.0), ("b", "c", 2.0), ("c", "d", 0.5), ("b", "e", 9.0), ("e", "f", 0.0)]
        chart = run(source, {"start/1": [("a", 0.0)], "arc/2": arcs})
        assert popped(chart, "path/1") == {("a",): 0.0, ("b",): 3.0, ("c",): 5.0}
        assert waiting(chart, "path/1") == {("d",): 5.5, ("e",): 12.0}

    def test_in_log_it_is_about_logs(self) -> None:
        source = f":- semiring log. :- prune path(X) < -10. {PATHS}"
        arcs = [("a", "b", -6.0), ("b", "c", -6.0), ("a", "c", -20.0)]
        chart = run(source, {"start/1": [("a", 0.0)], "arc/2": arcs})
        assert popped(chart, "path/1") == {("a",): 0.0, ("b",): -6.0}
        assert waiting(chart, "path/1")["c",] == pytest.approx(math.log(math.exp(-12) + math.exp(-20)))

    def test_plain_arithmetic_is_pruned_too(self) -> None:
        source = ":- prune p(X) < 0.2. p(X) max= s(X). p(Y) max= min(p(X), e(X,Y)). q(X) max= p(X) / 2."
        facts = {"s/1": [("a", 1.0)], "e/2": [("a", "b", 0.5), ("b", "c", 0.1), ("c", "d", 0.9), ("b", "a", 1.0)]}
        chart = run(source, facts)
        assert popped(chart, "p/1") == {("a",): 1.0, ("b",): 0.5}
        assert popped(chart, "q/1") == {("a",): 0.5, ("b",): 0.25}

    @pytest.mark.parametrize("value", ["q(X) * q(X)", "exp(q(X)) - exp(q(X)) + q(X) ^ 2"], ids=["real", "plain"])
    def test_items_that_nothing_recursive_makes_are_pruned_too(self, value: str) -> None:
        source = f":- prune p(X) < 1. p(X) += s(X). q(X) += p(X) * 2. r(X) += {value}."
        chart = run(source, {"s/1": [("a", 0.5), ("b", 2.0)]})
        assert popped(chart, "r/1") == {("b",): 16.0}
        assert waiting(chart, "p/1") == {("a",): 0.5}


class TestBeam:
    CKY = """
    constit(X,I,K) += rewrite(X,W) * word(W,I,K).
    constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
    goal += constit(s,0,N) * end(N).
    """

    @pytest.fixture(scope="class")
    def facts(self) -> dict[str, Any]:
        random = np.random.default_rng(5)
        symbols = ("s", "a", "b", "c")
        rules = [(x, y, z, -float(random.exponential(3.0))) for x in symbols for y in symbols for z in symbols]
        return {
            "rewrite/2": [(x, "w", -float(random.exponential())) for x in symbols],
            "rewrite/3": rules,
            "word/3": [("w", i, i + 1, 0.0) for i in range(6)],
            "end/1": [(6, 0.0)],
        }

    def test_one_item_a_group_the_best(self, facts: dict[str, Any]) -> None:
        chart = run(f":- semiring viterbi. :- beam constit(X,I,K) by (I,K) keep 1. {self.CKY}", facts)
        whole = run(f":- semiring viterbi. {self.CKY}", facts)
        kept = popped(chart, "constit/3")
        spans = [(i, k) for _, i, k in kept]
        assert sorted(spans) == [(i, k) for i in range(6) for k in range(i + 1, 7)]
        for i in range(6):  # of single words it is surely the best one, since all of them are there from the start
            best = max((value, x) for (x, a, k), value in popped(whole, "constit/3").items() if (a, k) == (i, i + 1))
            assert kept[best[1], i, i + 1] == best[0]
        assert all(value <= whole[f"constit({x},{i},{k})"] for (x, i, k), value in kept.items())
        held = waiting(chart, "constit/3")
        assert held and not set(held) & set(kept)
        assert chart.converged

    def test_a_wide_one_changes_nothing(self, facts: dict[str, Any]) -> None:
        chart = run(f":- semiring viterbi. :- beam constit(X,I,K) by (I,K) keep 4. {self.CKY}", facts)
        whole = run(f":- semiring viterbi. {self.CKY}", facts)
        assert popped(chart, "constit/3") == popped(whole, "constit/3")
        assert chart["goal"] == whole["goal"] and chart.pending == {}

    def test_an_item_that_is_in_gets_its_later_updates(self) -> None:
        source = (
            ":- agenda fifo. :- beam path(X,G) by (G) keep 2. path(Y,1) += start(Y). path(Y,G) += path(X,G) * arc(X,Y)."
        )
        chart = run(source, {"start/1": [("a", 1.0)], "arc/2": [("a", "b", 0.5), ("b", "a", 0.5), ("b", "c", 1.0)]})
        assert popped(chart, "path/2") == {("a", 1): pytest.approx(4 / 3), ("b", 1): pytest.approx(2 / 3)}
        assert waiting(chart, "path/2")["c", 1] == pytest.approx(2 / 3)

    def test_an_item_that_one_beam_holds_back_takes_no_place_in_another(self) -> None:
        source = """:- semiring viterbi.
        :- beam p(_X,G) by (G) keep 1.
        :- beam p(X,_G) by (X) keep 1.
        p(X,G) += s(X,G). best += p(_,_).
        again += best.
        """
        chart = run(source, {"s/2": [("a", 1, 3.0), ("a", 2, 2.5), ("b", 1, 2.0), ("b", 2, 1.0)]})
        assert popped(chart, "p/2") == {("a", 1): 3.0, ("b", 2): 1.0}
