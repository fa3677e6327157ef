"""Cycles: what `converged` and `error_bound` promise, divergence, and runs that stop before convergence.

Costs five seconds, most of them for about twenty-five compiled programs. The oracles are closed forms, mpmath and the
algorithm of Bellman and Ford.
"""

from __future__ import annotations

import math
import pickle
import random
import time

import mpmath
import numpy as np
import pytest

import dynagrad as dg

pytestmark = pytest.mark.filterwarnings("ignore:.*may diverge:dynagrad.ProgramWarning")

LOOP = "x += 1. x += a*x."
WALKS = "p(X) += s(X). p(Y) += p(X)*e(X,Y)."
SQUARE_AND_LOOP = "x += a. x += 0.5*x*x. y += b. y += 0.5*y."
CKY = """
    c(X,I,K) += r(X,W)*word(W,I,K). c(X,I,K) += r(X,Y,Z)*c(Y,I,J)*c(Z,J,K). c(X,I,K) += u(X,Y)*c(Y,I,K).
"""


class TestSolved:
    @pytest.mark.parametrize("weight", [0.9999, 0.999999, 0.9999999, 1 - 2**-40])
    def test_a_loop_has_all_its_digits_and_so_has_its_gradient(self, weight: float) -> None:
        chart = dg.Program(LOOP).run({"a/0": weight})
        assert chart["x"] == pytest.approx(1 / (1 - weight), rel=1e-15)
        assert chart.gradient("x")["a/0"].values[0] == pytest.approx(1 / (1 - weight) ** 2, rel=1e-14)
        assert chart.converged and chart.error_bound == 0 and chart.stats.pops == 1

    @pytest.mark.parametrize("log", [-2.0, -0.05, -1e-6, -1e-10, -1e-13, -1e-300])
    def test_in_log_one_minus_a_weight_is_formed_from_its_log(self, log: float) -> None:
        chart = dg.Program("x += s. x += x*a.", "log").run({"a/0": log, "s/0": -3.0})
        with mpmath.workdps(40):
            rest = -mpmath.expm1(mpmath.mpf(log))
            assert chart["x"] == pytest.approx(float(-3 - mpmath.log(rest)), rel=2e-15)
            assert chart.gradient("x")["a/0"].values[0] == pytest.approx(float(mpmath.exp(log) / rest), rel=1e-14)

    @pytest.mark.parametrize("states", [100, 200, 400])
    def test_the_gamblers_ruin(self, states: int) -> None:
        steps = [(i, i + d, 0.5) for i in range(1, states) for d in (-1, 1) if 0 < i + d < states]
        program = dg.Program("w(I) += step(I,J)*w(J). w(I) += top(I).")
        chart = program.run({"step/2": steps, "top/1": [(states - 1, 0.5)]})
        values = [chart[f"w({i})"] for i in range(1, states)]
        assert values == pytest.approx([i / states for i in range(1, states)], rel=1e-12)
        assert chart.stats.pops == states - 1

    def test_a_square_near_where_it_has_no_solution_says_how_many_digits_are_right(self) -> None:
        program = dg.Program(SQUARE_AND_LOOP, "real").bind({"b/0": 0.0})
        chart = program.run({"a/0": 0.5})
        assert abs(chart["x"] - 1) < chart.error_bound < 1e-6
        assert not chart.converged and chart.status == "done"
        with pytest.raises(dg.ValueRangeError, match="no correct digit"):
            chart.gradient("x")
        with pytest.raises(dg.ValueRangeError, match="no correct digit"):
            chart.jvp({"a/0": [1.0]})
        near = program.run({"a/0": 0.5 - 1e-10})
        assert near["x"] == pytest.approx(1 - math.sqrt(2e-10), rel=1e-10) and near.converged
        with pytest.raises(dg.NotConverged):
            program.run({"a/0": 0.5 + 1e-10})

    def test_what_is_declared_rules(self) -> None:
        square = "x += 0.3. x += 0.5*x*x."
        assert dg.Program(f":- solve newton. {square}").run()["x"] == pytest.approx(1 - math.sqrt(0.4), rel=1e-14)
        with pytest.raises(dg.ProgramError, match="solve linear"):
            dg.Program(f":- solve linear. {square}").run()
        chart = dg.Program(f":- solve iterate. {square}").run()
        assert chart["x"] == pytest.approx(1 - math.sqrt(0.4), rel=1e-12) and chart.stats.pops > 10
        with pytest.raises(dg.ProgramError, match="no way to solve"):
            dg.Program(":- solve quickly. a += b.")

    def test_pickles_and_gradients_are_equal_to_the_bit(self) -> None:
        bound = dg.Program(WALKS, "real").bind({})
        weights = np.random.default_rng(0).random((9, 9)) / 10
        facts = {"e/2": weights, "s/1": np.ones(9)}
        chart = bound.run(facts)
        values = chart.table("p/1").values
        again = pickle.loads(pickle.dumps(chart))
        assert (again.table("p/1").values == values).all() and again.error_bound == chart.error_bound
        assert (chart.gradient("p(3)")["e/2"].values == again.gradient("p(3)")["e/2"].values).all()
        assert (bound.run(facts).table("p/1").values == values).all()  # this one keeps a tape

    def test_a_limit_of_memory_counts_what_a_solver_takes(self) -> None:
        bound = dg.Program(WALKS, "real").bind({})
        facts = {"e/2": np.random.default_rng(1).random((600, 600)) / 700, "s/1": np.ones(600)}
        whole = bound.run(facts)
        with pytest.raises(dg.NotConverged, match="limit on bytes"):
            bound.run(facts, max_bytes=whole.stats.bytes // 4)
        assert bound.run(facts, max_bytes=2 * whole.stats.bytes)["p(0)"] == whole["p(0)"]

    def test_changed_facts_give_what_a_fresh_run_gives(self) -> None:
        program = dg.Program(WALKS, "real")
        chart = program.run({"e/2": [("a", "b", 0.5), ("b", "a", 0.5)], "s/1": [("a", 1.0)]})
        chart.add("e/2", [("b", "b", 0.25)])
        chart.set("e/2", [("b", "a", 0.125)])
        chart.run()
        fresh = program.run({"e/2": [("a", "b", 0.5), ("b", "a", 0.125), ("b", "b", 0.25)], "s/1": [("a", 1.0)]})
        assert chart["p(a)"] == fresh["p(a)"] == pytest.approx(1 / (1 - 0.0625 / 0.75), rel=1e-15)

    def test_a_linear_component_keeps_the_digits_that_it_has(self) -> None:
        chart = dg.Program(WALKS, "real").run({"s/1": [("a", 1.0)], "e/2": [("a", "b", 1.0), ("b", "a", 1 - 2**-27)]})
        assert chart["p(a)"] == 2.0**27 and chart.converged and chart.error_bound < 1e-6
        assert chart.gradient("p(a)")["e/2"]["b", "a"] == pytest.approx(2.0**54, rel=1e-6)

    def test_a_run_that_cannot_be_solved_changes_no_other(self) -> None:
        bound = dg.Program(LOOP, "real").bind({})
        first = bound.run({"a/0": 0.9999})
        with pytest.raises(dg.NotConverged):
            bound.run({"a/0": -1.0})
        again = bound.run({"a/0": 0.9999})
        assert (again["x"], again.stats.pops) == (first["x"], 1)
        batch = bound.run_batch([{"a/0": a} for a in (0.9999, -0.5, 0.9999)], query="x")
        assert batch.values[0] == batch.values[2] == first["x"] and batch.values[1] == pytest.approx(2 / 3)

    def test_what_is_infinite_or_too_large_is_no_divergence(self) -> None:
        program = dg.Program("x += abs(s). x += a*x.")
        assert program.run({"s/0": math.inf, "a/0": 0.5})["x"] == math.inf
        with pytest.raises(dg.ValueRangeError):
            program.run({"s/0": 1e308, "a/0": 0.99})
        square = dg.Program("x += s. x += a*x. x += b*x*x.", "real")
        with pytest.raises(dg.ValueRangeError):
            square.run({"s/0": 1e301, "a/0": 0.5, "b/0": 0.0})

    def test_a_component_near_critical_takes_no_derivative_from_others(self) -> None:
        program = dg.Program(SQUARE_AND_LOOP, "real")
        chart = program.run({"a/0": 0.5, "b/0": 1.0})
        assert chart.gradient("y")["b/0"].values[0] == chart.jvp({"b/0": [1.0]})["y"] == 2.0
        with pytest.raises(dg.ValueRangeError, match="with respect to x has no correct digit"):
            chart.jvp({"a/0": [1.0]})


class TestOrder:
    def test_a_cyclic_unary_rule_costs_no_order(self) -> None:
        pairs = [(i, j) for i in range(12) for j in range(6)]
        binary = [(f"n{i}", f"n{(i * 7 + j) % 12}", f"n{(i * 3 + j * 5) % 12}", 0.02) for i, j in pairs]
        unary = [*((f"n{i}", f"n{i + 1}", 0.1) for i in range(11)), ("n11", "n5", 0.1)]
        words = {"word/3": [("w", i, i + 1) for i in range(12)], "r/2": [(f"n{i}", "w", 0.3) for i in range(12)]}
        program = dg.Program(CKY, "log")
        chart = program.run({**words, "r/3": binary, "u/2": unary}, values="probabilities")
        assert chart.stats.pops == chart.stats.items and chart.converged
        iterated = program.run({**words, "r/3": binary, "u/2": unary}, values="probabilities", tolerance=1e-14)
        assert chart["c(n0,0,12)"] == pytest.approx(iterated["c(n0,0,12)"], rel=1e-11)
        assert iterated.stats.pops > 2 * iterated.stats.items

    @pytest.mark.parametrize("n", [50, 200])
    def test_two_passes_over_derived_edges_pop_each_item_once(self, n: int) -> None:
        chart = dg.Program(
            """th(0) = 1. th(K+1) = beta(K,0)*2/alpha(K,N)*end(N) for K < 5. edge(K,I,I+1) = w(I)*th(K).
            alpha(K,0) += th(K). alpha(K,J) += alpha(K,I)*edge(K,I,J).
            beta(K,N) += th(K)*end(N). beta(K,I) += edge(K,I,J)*beta(K,J)."""
        ).run({"w/1": [(i, 0.99) for i in range(n)], "end/1": [(n, 1.0)]})
        assert chart.stats.pops == chart.stats.items
        assert chart["th(5)"] == 2.0  # alpha is beta

    def test_a_product_may_go_through_a_predicate_again_and_not_around_a_cycle(self) -> None:
        noisy = dg.Program("ok(X) *= 1 - leak(X). ok(X) *= 1 - (1 - ok(Y))*w(X,Y).")
        chart = noisy.run({"leak/1": [("a", 0.1), ("b", 0.2), ("c", 0.1)], "w/2": [("b", "a", 0.3), ("c", "b", 0.5)]})
        b = 0.8 * (1 - 0.1 * 0.3)
        assert chart["ok(c)"] == pytest.approx(0.9 * (1 - (1 - b) * 0.5), rel=1e-15)
        slope = chart.gradient("ok(c)")["leak/1"]["a"]
        assert slope == pytest.approx(-0.9 * 0.5 * 0.8 * 0.3, rel=1e-14)
        with pytest.raises(dg.ProgramError, match=r"cycle of the facts, through ok\("):
            noisy.run({"leak/1": [("a", 0.1), ("b", 0.2)], "w/2": [("b", "a", 0.3), ("a", "b", 0.5)]})
        with pytest.raises(dg.ProgramError, match="cannot be iterated"):
            noisy.run({"leak/1": [("a", 0.1)], "w/2": []}, max_pops=3)


class TestIterated:
    @pytest.mark.parametrize("weight", [0.5, 0.99, 0.9999])
    @pytest.mark.parametrize("semiring", ["real", "log", None])
    def test_the_run_goes_on_until_the_rest_is_under_the_tolerance(self, semiring: str | None, weight: float) -> None:
        log = semiring == "log"
        text = f":- solve iterate. x += {0 if log else 1}. x += a*x."
        chart = dg.Program(text, semiring).run({"a/0": math.log(weight) if log else weight})
        value = math.exp(chart["x"]) if log else chart["x"]
        assert abs(value * (1 - weight) - 1) < (1e-11 if log else 2e-12)
        rounding = 2e-15 / (1 - weight)  # a step that is lost in it is so many times as far from the end
        assert chart.converged and chart.error_bound <= 1e-12 + rounding

    def test_a_last_step_under_the_tolerance_is_not_all(self) -> None:
        program = dg.Program(LOOP)
        for weight in (0.5, 0.99, 0.9999):
            chart = program.run({"a/0": weight}, tolerance=1e-9)
            missing = abs(chart["x"] * (1 - weight) - 1)
            assert missing == pytest.approx(chart.error_bound, rel=0.2)
            assert chart.status == "done" and not chart.converged
        assert program.run({"a/0": 1e-6}, tolerance=1e-9).converged

    @pytest.mark.parametrize("agenda", ["auto", "fifo"])
    @pytest.mark.parametrize("semiring", ["real", "log"])
    def test_the_rest_of_each_item_counts_however_small_it_is(self, semiring: str, agenda: str) -> None:
        text = f":- agenda {agenda}. :- solve iterate. p(X) += s(X). p(Y) += p(X)*e(X,Y)."
        of = (lambda log: log) if semiring == "log" else math.exp
        facts = {"s/1": [("large", of(50.0)), ("small", of(-500.0))], "e/2": [("small", "small", of(math.log(0.9999)))]}
        chart = dg.Program(text, semiring).run(facts)
        found = chart["p(small)"] if semiring == "log" else math.log(chart["p(small)"])
        assert abs(found + 500 - math.log(1e4)) < 3e-12 and chart.converged

    def test_the_tolerance_is_relative_under_a_minimum_too(self) -> None:
        assert dg.Program("a min= 0.5*a. a min= q.").run({"q/0": 1e-11})["a"] == 0.0


class TestWithoutAnEnd:
    @pytest.mark.parametrize("weight", [1.0, 1.0000001, 2.0])
    def test_a_loop_that_does_not_shrink_what_enters_it(self, weight: float) -> None:
        program = dg.Program("x += s. x += a*x.", "real")
        with pytest.raises(dg.NotConverged, match="no finite value") as caught:
            program.run({"s/0": 1.0, "a/0": weight})
        assert caught.value.cycle == ("x",) and caught.value.radius == pytest.approx(weight, rel=1e-12)
        assert program.run({"s/0": 0.0, "a/0": weight})["x"] == 0.0  # nothing goes around it
        with pytest.raises(dg.ValueRangeError, match="does not settle"):
            program.run({"s/0": 0.0, "a/0": weight}).gradient("x")

    def test_a_sum_that_doubles_does_not_converge_at_a_loose_tolerance(self) -> None:
        assert not dg.Program("a += a. a += 1.", "real").run(tolerance=1e-6, max_pops=10**6).converged

    @pytest.mark.parametrize(
        "text",
        ["x += 1. x += a*x.", "x += 2*a*tanh(y). y += 0 - 2*a*tanh(x). y += 0.3.", ":- agenda fifo. x += 1. x += a*x."],
    )
    def test_iteration_that_comes_no_nearer(self, text: str) -> None:
        with pytest.raises(dg.NotConverged, match="does not converge"):
            dg.Program(text).run({"a/0": -1.0})

    @pytest.mark.parametrize("agenda", ["fifo", "lifo", "priority"])
    def test_cycles_of_gain_under_a_declared_agenda(self, agenda: str) -> None:
        program = dg.Program(f":- agenda {agenda}. d(X) += s(X). d(V) += d(U)*e(U,V).", "tropical")
        with pytest.raises(dg.NotConverged) as caught:
            program.run({"s/1": [("a", 0.0)], "e/2": [("a", "b", 1.0), ("b", "a", -2.0)]})
        assert set(caught.value.cycle) == {"d(a)", "d(b)"}

    def test_the_cycle_is_named(self) -> None:
        program = dg.Program(WALKS, "real")
        edges = [("a", "b", 0.5), ("b", "c", 2.0), ("c", "b", 0.75), ("c", "d", 1.0), ("d", "d", 0.5)]
        with pytest.raises(dg.NotConverged, match=r"p\(") as caught:
            program.run({"s/1": [("a", 1.0)], "e/2": edges})
        assert set(caught.value.cycle) == {"p(b)", "p(c)"}
        assert caught.value.radius == pytest.approx(math.sqrt(1.5), rel=1e-9)
        assert caught.value.chart["p(a)"] == 1.0

    def test_a_polynomial_without_a_finite_solution(self) -> None:
        with pytest.raises(dg.NotConverged) as caught:
            dg.Program("x += 1. x += x*x.", "real").run()
        assert caught.value.cycle == ("x",)

    def test_derivations_around_a_cycle_are_not_counted(self) -> None:
        program = dg.Program(WALKS, "count")
        with pytest.raises(dg.NotConverged, match="infinitely many") as caught:
            program.run({"s/1": [("a", 1)], "e/2": [("a", "b", 1), ("b", "a", 1)]})
        assert set(caught.value.cycle) == {"p(a)", "p(b)"}
        assert program.run({"s/1": [("a", 1)], "e/2": [("a", "b", 3), ("b", "a", 0)]})["p(b)"] == 3
        assert program.run({"s/1": [("c", 1)], "e/2": [("a", "b", 1), ("b", "a", 1)]})["p(c)"] == 1

    def test_a_batch_keeps_it_with_its_example(self) -> None:
        bound = dg.Program("x += s. x += a*x.", "real").bind({})
        batch = bound.run_batch([{"s/0": 1.0, "a/0": a} for a in (0.5, 1.5)], query="x")
        assert batch.values[0] == 2.0 and isinstance(batch.errors[1], dg.NotConverged)

    def test_cycles_of_gain_are_found_wherever_they_are_and_nowhere_else(self) -> None:
        bound = dg.Program("d(s) min= 0. d(V) min= d(U) + e(U,V).").bind({})
        found = 0
        for seed in range(120):
            draw = random.Random(seed)
            n = draw.randint(2, 8)
            ends = lambda n=n, draw=draw: (draw.randrange(n), draw.randrange(n))  # noqa: E731
            drawn = {
                ends(): draw.choice([draw.uniform(-1, 3), draw.randint(-2, 5)]) for _ in range(draw.randint(1, 16))
            }
            arcs = [(*pair, float(weight)) for pair, weight in drawn.items()]  # one of a kind: copies add up
            names = ["s", *(f"v{i}" for i in range(1, n))]
            least = [0.0, *[math.inf] * (n - 1)]
            for _ in range(n):
                for u, v, w in arcs:
                    least[v] = min(least[v], least[u] + w)
            gain = any(least[u] + w < least[v] - 1e-12 for u, v, w in arcs)
            try:
                chart = bound.run({"e/2": [(names[u], names[v], w) for u, v, w in arcs]})
            except dg.NotConverged as error:
                found += 1
                places = [names.index(item[2:-1]) for item in error.cycle]
                around = zip(places, [*places[1:], places[0]], strict=True)
                assert gain and sum(min(w for a, b, w in arcs if (a, b) == step) for step in around) < 0
                continue
            assert not gain
            there = {x: value for x, value in chart.table("d/1")}
            assert [there.pop(x, math.inf) for x in names] == pytest.approx(least, abs=1e-9) and not there
        assert found > 30

    @pytest.mark.parametrize("text", ["r(0) += 0.5. r(N+1) += 0.5*r(N).", "r(x) += 0.5. r(f(X)) += 0.25*r(X)."])
    def test_arguments_without_end_stop_where_no_digit_changes(self, text: str) -> None:
        with pytest.raises(dg.NotConverged, match="changed no digit") as caught:
            dg.Program(text, "real").run()
        assert caught.value.chart.stats.pops < 1_010_000

    @pytest.mark.parametrize(
        ("semiring", "half", "one", "sum"),
        [("real", 0.5, 1.0, 1.25), ("log", -math.log(2), 0.0, math.log(1.25)), ("tropical", 1.0, 0.0, 0.0)],
    )
    def test_only_items_that_were_asked_for_count(self, semiring: str, half: float, one: float, sum: float) -> None:
        """In `log` no value is too small to count, and yet the sum of all stands still."""
        rules = ":- output goal. r(0) += one. r(N+1) += r(N) * half. goal += one. goal += r(N) * taken(N)."
        facts = {"one/0": [(one,)], "half/0": [(half,)], "taken/1": [(n, one) for n in range(3, 200)]}
        with pytest.raises(dg.NotConverged, match="changed no digit") as caught:
            dg.Program(rules, semiring).run(facts)
        assert caught.value.chart["goal"] == pytest.approx(sum, rel=1e-14)
        assert caught.value.chart.stats.pops < 1_010_000


def test_a_short_iteration_is_not_judged_by_its_way_up() -> None:
    """Two rules into one item send twice what is popped, but only once around."""
    rules = ":- solve iterate. p(0) += n. p(1) += a * p(0). p(2) += p(1). p(2) += p(1). p(0) += b * p(2)."
    bound = dg.Program(rules, "real").bind({"n/0": [(1.0,)], "a/0": [(0.5,)]})
    for b in (0.5, 1e-3, 1e-5, 1e-6):
        chart = bound.run({"b/0": [(b,)]})
        assert chart.converged
        assert chart["p(0)"] == pytest.approx(1 / (1 - b), rel=1e-14)


def test_a_run_that_is_resumed_iterates_within_its_own_limits() -> None:
    """It was stopped before a cycle that cannot be solved; the limit on time of the run before is over by then."""
    rules = "p(J) += p(I) * step(I,J). x += p(400) * n. x += x * x * w."
    facts = {"p/1": [(0, 1.0)], "step/2": [(i, i + 1, 1.0) for i in range(400)], "n/0": 0.5, "w/0": -0.4}
    bound = dg.Program(":- input p/1. " + rules, "real").bind(facts)
    with pytest.raises(dg.NotConverged, match="limit on items"):
        bound.run(max_items=100)  # the class is there
    with pytest.raises(dg.NotConverged, match="limit on items") as stopped:
        bound.run(max_items=100, timeout=0.5)
    chart = stopped.value.chart
    time.sleep(0.6)
    chart.run(max_items=None, timeout=None)
    assert chart["x"] == pytest.approx((math.sqrt(1.8) - 1) / 0.8)


RING = "x(V) += s(V). x(V) += x(U)*e(U,V)."
DIVERGING: dict[str, tuple[str, str | None, float]] = {
    "real": (f":- solve iterate. {RING}", "real", 1.0),
    "log": (f":- solve iterate. {RING}", "log", 0.5),
    "arithmetic": (f":- solve iterate. {RING}", None, 1.0),
    "log+=": (":- solve iterate. x(V) log+= s(V). x(V) log+= x(U)+e(U,V).", None, 0.5),
    "last in, first out": (f":- solve iterate. :- agenda lifo. {RING}", "real", 1.0),
    "first in, first out": (f":- solve iterate. :- agenda fifo. {RING}", "real", 1.0),
}


@pytest.mark.filterwarnings("ignore:The sum of")
@pytest.mark.parametrize("kind", DIVERGING)
def test_a_sum_that_comes_no_nearer_names_the_items_of_its_cycle(kind: str) -> None:
    """Not those of a cycle beside it along which it shrinks; each is an antecedent of the next."""
    text, semiring, weight = DIVERGING[kind]
    small = -9.0 if "log" in (kind, semiring) or kind == "log+=" else 1e-4
    ring = [("a", "b"), ("b", "c"), ("c", "a")]
    edges = [(*edge, weight) for edge in ring] + [("b", "d", small), ("d", "b", small), ("c", "c", small)]
    with pytest.raises(dg.NotConverged, match=r"does not settle: iterating its cycle does not converge \(x\(") as error:
        dg.Program(text, semiring).run({"s/1": [("a", 1.0)], "e/2": edges})
    items = error.value.cycle
    assert sorted(items) == ["x(a)", "x(b)", "x(c)"] and len(str(error.value)) <= 600
    assert all((u[2], v[2]) in ring for u, v in zip(items, [*items[1:], items[0]], strict=True))


@pytest.mark.filterwarnings("ignore:The sum of")
@pytest.mark.parametrize("text", [f":- solve iterate. {RING}", f":- solve iterate. {RING} x(V) += 2*x(U)*e(U,V) - 1."])
def test_a_sum_that_overflows_names_the_items_of_its_cycle(text: str) -> None:
    edges = [("a", "b", 1.5), ("b", "a", 1.5), ("b", "c", 1e-4), ("c", "b", 1e-4)]
    with pytest.raises(dg.ValueRangeError, match=r"x\(a\) -> x\(b\) -> x\(a\)|x\(b\) -> x\(a\) -> x\(b\)") as error:
        dg.Program(text).run({"s/1": [("a", 1.0)], "e/2": edges})
    assert len(str(error.value)) <= 600
