"""Derivatives under hostile use: wrong input, interrupted runs, large blocks of memory, the end of the process.

Each test is a regression test. None compares derivatives with another source: see `test_gradient_replay.py` for that.
Costs three seconds.
"""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

SUM = "goal += a(X) * b(X). two(X) += a(X). z += goal. grid += m(I,J) * m(I,J)."
FACTS = {"a/1": [("x", 2.0), ("y", 3.0)], "b/1": [("x", 3.0), ("y", 1.0)], "m/2": np.arange(6.0).reshape(2, 3)}


@cache
def program(text: str, semiring: str | None = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dg.Program(text, semiring=semiring)


@cache
def chart() -> Any:
    return program(SUM).run(FACTS)


# -- what is asked for -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("item", [None, {}, [], 5, b"goal", "two(X)", "nope", {None: 1.0}, {"goal": 1.0, "nope": 1.0}])
def test_what_is_no_item_has_no_gradient(item: Any) -> None:
    with pytest.raises(dg.QueryError):
        chart().gradient(item)


@pytest.mark.parametrize("cotangent", ["x", "2", math.nan, math.inf, 1j, None, 10**400, np.ones(1), np.complex64(1)])
def test_a_cotangent_is_a_finite_number(cotangent: Any) -> None:
    with pytest.raises(dg.QueryError, match="cotangent"):
        chart().gradient({"goal": cotangent})


@pytest.mark.parametrize("two", [2, 2.0, np.float32(2), np.int64(2), np.array(2.0), np.array(2)])
def test_the_value_of_a_weighted_item_is_weighted(two: Any) -> None:
    gradient = chart().gradient({"goal": two})
    assert gradient.value == 18.0 and gradient["a/1"].values.tolist() == [6.0, 2.0]


def test_pairs_are_weighted_and_added_up() -> None:
    facts = {"a/1": [("x", (2.0, 1.0)), ("y", (1.0, 3.0))], "b/1": [("x", (3.0, 1.0)), ("y", (1.0, 0.0))]}
    run = program("goal += a(X) * b(X). z += a(X).", "expectation").run(facts)
    assert run.gradient({"goal": 1.0, "z": 1.0}).value == (10.0, 12.0)
    assert run.gradient({"goal": 2.0}).value == (14.0, 16.0)


@pytest.mark.parametrize("key", ["nope/1", "a", None, 5, [], {}])
def test_a_gradient_is_a_mapping(key: Any) -> None:
    gradient = chart().gradient("goal")
    assert key not in gradient and gradient.get(key, 7) == 7
    with pytest.raises(dg.QueryError):
        gradient[key]


def test_expected_counts_of_items_without_arguments() -> None:
    counts = chart().expected_counts()
    assert list(counts["goal/0"]) == [(1.0,)] and counts.item("goal") == 1.0
    assert counts.item("a(x)") == pytest.approx(counts["a/1"]["x"]) == pytest.approx(2 / 3)


# -- directions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        None,
        5.0,
        [math.nan, 1.0],
        [1.0, math.inf],
        [1.0],
        [1.0, 2.0, 3.0],
        [[1.0], [2.0]],
        [[1.0, 2.0]],
        ["1", "2"],
        [1j, 2.0],
        [10**400, 1],
        np.ma.masked_array([1.0, 2.0], [True, False]),
        [("q", 1.0)],
        [("x",)],
        [("x", 1.0), ("x", 2.0)],
        pytest.param(object(), id="object"),
    ],
    ids=repr,
)
def test_a_direction_has_one_finite_number_for_each_fact(rows: Any) -> None:
    with pytest.raises(dg.FactError):
        chart().jvp({"a/1": rows})


@pytest.mark.parametrize("direction", [None, [], 5, "a/1", {1: [1.0]}, {None: [1.0]}, {"nope/1": [1.0]}, {"z/0": 1.0}])
def test_a_direction_has_predicates_with_facts(direction: Any) -> None:
    with pytest.raises(dg.Error):
        chart().jvp(direction)


@pytest.mark.parametrize("semiring", ["tropical", "viterbi"])
def test_a_direction_is_finite_where_facts_need_not_be(semiring: str) -> None:
    run = program("goal += c(X).", semiring).run({"c/1": [("x", -1.0), ("y", -2.0)]})
    with pytest.raises(dg.FactError, match="infinite"):
        run.jvp({"c/1": [("y", math.inf if semiring == "tropical" else -math.inf)]})


def test_rows_are_not_taken_for_as_many_numbers() -> None:
    run = program("goal += c(X) * c(X).").run({"c/1": [(i, float(i)) for i in range(4)]})
    assert run.jvp({"c/1": [(0, 1.0), (1, 2.0)]})["goal"] == 4.0  # and not [0, 1, 1, 2]
    assert chart().jvp({"m/2": [(0, 0, 1.0), (1, 2, 1.0)]})["grid"] == 10.0
    assert chart().jvp({"m/2": np.ones((2, 3))})["grid"] == 30.0
    with pytest.raises(dg.FactError):
        chart().jvp({"m/2": np.ones((3, 2))})


def test_copies_of_a_fact_have_directions_of_their_own() -> None:
    run = program(":- input c/1 +=. goal += c(X) * c(X).").run({"c/1": [("x", 1.0), ("y", 2.0), ("x", 3.0)]})
    slope = run.gradient("goal")["c/1"]
    assert slope.values.tolist() == [8.0, 4.0, 8.0]
    assert run.jvp({"c/1": slope})["goal"] == 8 * 8 + 4 * 4 + 8 * 8


def test_an_infinite_tangent_is_named() -> None:
    run = program("q(X) += sqrt(p(X)).").run({"p/1": [("a", 4.0), ("b", 0.0)]})
    with pytest.raises(dg.ValueRangeError, match=r"q\(b\)"):
        run.jvp({"p/1": [1.0, 1.0]})


# -- what is not finite ------------------------------------------------------------------------------------------------


def test_a_fact_with_an_infinite_gradient_is_named_and_the_item_that_made_it_so() -> None:
    text = "dist(X,Y) += sqrt((x(X) - x(Y))^2) for X < Y. far += dist(X,Y) * pull(X,Y)."
    facts = {"x/1": [(1, 1.0), (2, 2.0), (3, 1.0)], "pull/2": [(1, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)]}
    run = program(text).run(facts)
    with pytest.raises(dg.ValueRangeError, match=r"respect to x\(1\) is NaN.*, and dist\(1,3\) is the first item"):
        run.gradient("far")
    assert run.gradient("dist(1,2)")["x/1"].values.tolist() == [-1.0, 1.0, 0.0]


def test_an_item_that_has_no_part_in_an_infinite_gradient_is_not_named() -> None:
    run = program("early(X) += sqrt(p(X)). late += c(X) * d(X) * p(X).").run(
        {"p/1": [("a b", 0.0)], "c/1": [("a b", 1e200)], "d/1": [("a b", 1e100)]}
    )
    with pytest.raises(dg.ValueRangeError, match=r"respect to p\('a b'\) is NaN or infinite; where"):
        run.gradient({"late": 1e10})
    assert run.gradient("late")["p/1"]["a b"] == 1e300


@pytest.mark.parametrize(("semiring", "agenda"), [("real", "auto"), ("log", "fifo")])
def test_the_first_item_going_backward_is_named(semiring: str, agenda: str) -> None:
    """Each step doubles the derivative, and 2^1024 is too much: in `log` that shows when it is read, or before."""
    steps = program(f":- agenda {agenda}. a(I+1) += a(I) * a(I) for I < 1100. a(0) += s.", semiring)
    run = steps.run({"s/0": [(1.0 if semiring == "real" else 0.0,)]})
    assert run.gradient("a(1023)")["s/0"][()] == 2.0**1023
    for goal, first in ((1024, 0), (1100, 76)):
        with pytest.raises(
            dg.ValueRangeError, match=rf"respect to a\({first}\) became NaN or infinite, and is the first"
        ):
            run.gradient(f"a({goal})")
    if semiring == "real":
        with pytest.raises(
            dg.ValueRangeError, match=r"derivative of a\(1024\) became NaN or infinite, and is the first"
        ):
            run.jvp({"s/0": [1.0]})


def test_tangents_in_log_are_right_or_an_error() -> None:
    """A weight and its tangents share an exponent. Where they are too far apart for that, the weight would be lost."""

    def squares(last: int) -> Any:
        steps = program(f"a(I+1) += a(I) * a(I) for I < {last}. a(0) += s.", "log")
        return steps.run({"s/0": [(0.0,)]}).jvp({"s/0": [1.0]})

    tangents = squares(550)
    assert [tangents[f"a({n})"] for n in range(551)] == [2.0**n for n in range(551)]
    with pytest.raises(dg.ValueRangeError, match=r"derivative of a\(\d+\) became NaN or infinite"):
        squares(1100)


def test_facts_of_a_run_axioms_and_facts_of_a_function_have_their_names() -> None:
    roots = program("goal += sqrt(p(X)) * w(X). p(c) = 1.")
    facts = {"p/1": [("a", 4.0), ("b", 0.0)]}
    named = r"respect to p\({}\) is NaN or infinite, and goal is the first"
    weights = {"w/1": [(x, 1.0) for x in "abcd"]}
    bound = roots.bind(facts)
    with pytest.raises(dg.ValueRangeError, match=named.format("b")):
        bound.run(weights).gradient("goal")
    chart = roots.bind({"p/1": [("a", 4.0)]}).run(weights)
    chart.add("p/1", [("d", 0.0)])
    with pytest.raises(dg.ValueRangeError, match=named.format("d")):
        chart.run().gradient("goal")
    f = roots.function("goal", ["p/1"], {**facts, **weights})
    with pytest.raises(dg.ValueRangeError, match=named.format("a")):
        f.value_and_grad([0.0, 1.0])
    batch = bound.run_batch([{"w/1": [("a", 1.0)]}, weights], query="goal", gradient=["p/1"])
    assert list(batch.errors) == [1] and "with respect to p(b) is NaN" in str(batch.errors[1])
    assert batch.gradient["p/1"].values.tolist() == [0.25, 0.0]


# -- functions and batches ---------------------------------------------------------------------------------------------


def test_arrays_that_are_none() -> None:
    f = program("goal += a(X) * a(X).").function("goal", inputs=["a/1"], facts={"a/1": [("x", 1.0), ("y", 2.0)]})
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    calls: Sequence[Callable[[], Any]] = (
        lambda: f(masked),
        lambda: f.gradient([[1.0, 2.0]], masked),
        lambda: f.jvp([[1.0, 2.0]], [[math.nan, 1.0]]),
        lambda: f.hvp([[1.0, 2.0]], [["1", "2"]]),
        lambda: f.derivative([[1.0, 2.0]], [[[1.0, 1.0]]] * 11),
    )
    for call in calls:
        with pytest.raises(dg.Error):
            call()


@pytest.mark.parametrize(
    "options",
    [
        {"cotangents": [10**400, 1]},
        {"cotangents": np.array([1j, 1j])},
        {"cotangents": ["1", "2"]},
        {"cotangents": [None, 1]},
        {"threads": "x"},
        {"examples": None},
        {"examples": 5},
        {"examples": {"w/1": []}},
    ],
    ids=repr,
)
def test_a_batch_says_what_it_cannot_take(options: dict[str, Any]) -> None:
    examples = [{"w/1": [("x", 1.0)]}, {"w/1": [("y", 2.0)]}]
    bound = program("goal += a(X) * w(X).").bind({"a/1": [("x", 1.0)]})
    with pytest.raises(dg.Error):
        bound.run_batch(**{"examples": examples, "query": "goal", "gradient": ["a/1"], **options})


# -- runs that are made again ------------------------------------------------------------------------------------------


def test_what_an_external_function_raises_when_the_run_is_made_again() -> None:
    calls = []

    def similar(x: str) -> float:
        calls.append(x)
        if len(calls) > 2:
            raise RuntimeError("no more")
        return 2.0

    run = dg.Program(":- external sim/1. goal += a(X) * sim(X).", functions={"sim/1": similar}).run(
        {"a/1": FACTS["a/1"]}
    )
    for derive in (lambda: run.gradient("goal"), lambda: run.jvp({"a/1": [1.0, 1.0]})):
        with pytest.raises(RuntimeError, match="no more"):
            derive()
    assert run["goal"] == 10.0


def test_limits_hold_for_the_run_with_a_tape() -> None:
    n = 50_000
    chain = program(f"path(0) += 1. path(I+1) += path(I) * w(I) for I < {n}. goal += path(I).")
    bound = chain.bind({"w/1": np.ones(n)})
    free = bound.run()
    tight = chain.bind({"w/1": np.ones(n)}).run(max_bytes=free.stats.bytes + 8 * n // 4)
    with pytest.raises(dg.NotConverged, match="max_bytes"):
        tight.gradient("goal")
    assert tight["goal"] == n + 1
    with pytest.raises(dg.NotConverged) as stopped:
        bound.run(max_items=1000)
    assert stopped.value.chart.gradient("path(10)").value == 1.0


def test_charts_of_one_program_in_several_threads() -> None:
    bound = program("path(V) += path(U) * edge(U,V). path(s) += 1.").bind(
        {"edge/2": [("s", "t", 0.5), ("t", "t", 0.5)]}
    )
    wanted = bound.run().gradient("path(t)")["edge/2"].values.tolist()
    found: list[Any] = []

    def work() -> None:
        for _ in range(20):
            run = bound.run()
            found.append(run.gradient("path(t)")["edge/2"].values.tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80 and all(f == wanted for f in found)


# -- memory ------------------------------------------------------------------------------------------------------------


def test_few_rows_of_a_large_relation() -> None:
    """Rows that fit a pattern are sorted in arrays of other sizes than all rows, and some of these are kept blocks."""
    n, random = 400_000, np.random.default_rng(0)
    x, y, z = random.integers(0, 1000, n), random.integers(0, 1000, n), random.integers(0, 3, n)
    rows = (np.stack([x, y, z], 1), np.ones(n))
    for text, there in (("goal += c(X) * f(_,X,1).", z == 1), ("goal += c(X) * f(_,X,X).", x < 0)):
        run = program(text).run({"c/1": np.ones(1000), "f/3": rows})
        wanted = there.sum() if there.any() else (y == z).sum()
        assert run["goal"] == wanted
        assert run.gradient("goal")["c/1"].values.sum() == wanted


def test_what_runs_at_the_end_of_the_process_may_look_at_results() -> None:
    text = """
import atexit
kept = []
atexit.register(lambda: print(kept[0].sum(), kept[1]["goal"]))
import numpy as np, dynagrad as dg
chart = dg.Program("goal += a(I).").run({"a/1": np.ones(1_000_000)})
kept += [chart.gradient("goal")["a/1"].values, chart]
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.split()) == (0, ["1000000.0", "1000000.0"]), done.stderr


# -- products ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "factors",
    [(2.0, 3.0, 4.0), (2.0, 0.0, 3.0), (0.0, 0.0, 3.0), (1e-200, 1e-200, 1e100), (1e308, 1e-308, 1e308, 1e-308)],
)
def test_the_other_factors_of_a_product(factors: tuple[float, ...]) -> None:
    found = program("goal *= a(X). once += goal.").run({"a/1": np.array(factors)}).gradient("goal")["a/1"].values
    for n, slope in enumerate(found.tolist()):
        rest = sorted(factors[:n] + factors[n + 1 :])
        zigzag = 1.0
        while rest:  # the largest and the smallest in turn, so that none of it overflows
            zigzag *= rest.pop(-1 if zigzag < 1 else 0)
        assert slope == pytest.approx(zigzag, rel=1e-12, abs=0)


@pytest.mark.parametrize("small", [0.0, 0.5])
def test_a_product_of_many_factors_that_is_zero(small: float) -> None:
    factors = np.full(300_000, 1.0 if small == 0 else small)
    factors[5] = small
    slopes = program("goal *= a(X). once += goal.").run({"a/1": factors}).gradient("goal")["a/1"].values
    assert slopes[5] == (1.0 if small == 0 else 0.0) and slopes[6] == 0.0
