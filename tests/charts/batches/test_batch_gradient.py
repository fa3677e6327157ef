"""Gradients of batches: the sum over examples, for any number of threads, and examples that fail. Costs four s."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.charts.batches.threads import in_order
from dynagrad.charts.program import binding_of
from interrupts import ctrl_c

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

PATHS = "path(X,Y) += arc(X,Y). path(X,Z) += path(X,Y) * arc(Y,Z). goal += path(a,X) * end(X)."
ARCS = [("a", "b", 0.5), ("b", "c", 0.25), ("a", "c", 0.5), ("c", "d", 0.5)]
ENDS: list[dict[str, Any]] = [{"end/1": [(end, 2.0)]} for end in "bcd"]


@pytest.fixture(scope="module")
def bound() -> dg.Bound:
    return dg.Program(PATHS, "real").bind({"arc/2": ARCS})


def summed(bound: dg.Bound, examples: list[Any], key: str, weights: Any = None, log: bool = False) -> Any:
    """The sum of the gradients of `goal`, chart by chart; the bound rows come first in each."""
    total: Any = 0.0
    rows = len(binding_of(bound).given[key])
    for n, facts in enumerate(examples):
        chart = bound.run(facts)
        one = chart.gradient("goal")[key].values.reshape(-1)[:rows]
        total = total + one * (1.0 if weights is None else weights[n]) / (chart["goal"] if log else 1.0)
    return total


# -- what is computed ------------------------------------------------------------------------------------------------


def test_the_gradient_is_summed_over_the_examples(bound: dg.Bound) -> None:
    batch = bound.run_batch(ENDS, query="goal", gradient=["arc/2"])
    assert batch.values.tolist() == [1.0, 1.25, 0.625] and not batch.errors
    by_hand = [2 + 0.5 + 0.25, 1 + 0.5, 2 + 1, 2 * 0.625]
    table = batch.gradient["arc/2"]
    assert table.values == pytest.approx(by_hand, rel=1e-14)
    assert [row[:-1] for row in table] == [row[:-1] for row in ARCS]
    assert table["b", "c"] == 1.5


def test_it_is_the_sum_of_the_gradients_of_charts(bound: dg.Bound) -> None:
    batch = bound.run_batch(ENDS, query="goal", gradient="arc/2", threads=1)
    assert np.array_equal(batch.gradient["arc/2"].values, summed(bound, ENDS, "arc/2"))


def test_probabilities_are_converted_before_anything_is_differentiated() -> None:
    bound = dg.Program(PATHS, "log").bind({"arc/2": ARCS}, values="probabilities")
    examples = [{"end/1": [(end, 0.5)]} for end in "bcd"]
    batch = bound.run_batch(examples, query="goal", gradient="arc/2", values="probabilities", threads=1)
    charts = [bound.run(facts, values="probabilities") for facts in examples]
    assert np.array_equal(batch.values, [chart["goal"] for chart in charts])
    expected = sum(chart.gradient("goal")["arc/2"].values for chart in charts)
    assert np.array_equal(batch.gradient["arc/2"].values, expected)
    assert expected.sum() == pytest.approx(1 + (0.5 + 0.125 * 2) / 0.625 + (0.25 * 2 + 0.0625 * 3) / 0.3125, rel=1e-12)


def test_the_objective_may_be_the_sum_of_the_logs(bound: dg.Bound) -> None:
    batch = bound.run_batch(ENDS, query="goal", gradient=["arc/2"], objective="log")
    assert batch.values.tolist() == [1.0, 1.25, 0.625]
    assert batch.gradient["arc/2"].values == pytest.approx(summed(bound, ENDS, "arc/2", log=True), rel=1e-14)


@pytest.mark.parametrize("objective", ["sum", "log"])
def test_cotangents_weight_the_examples(bound: dg.Bound, objective: str) -> None:
    weights = [0.5, -2.0, 3.0]
    batch = bound.run_batch(ENDS, query="goal", gradient=["arc/2"], objective=objective, cotangents=weights)
    expected = summed(bound, ENDS, "arc/2", weights, log=objective == "log")
    assert batch.gradient["arc/2"].values == pytest.approx(expected, rel=1e-14)


def test_several_predicates_and_other_items() -> None:
    bound = dg.Program(PATHS, "real").bind({"arc/2": ARCS, "end/1": [("c", 2.0)]})
    batch = bound.run_batch([{}, {}], query="goal", gradient=["end/1", "arc/2", "end/1"])
    assert list(batch.gradient) == ["end/1", "arc/2"]
    assert batch.gradient["end/1"]["c"] == 2 * 0.625
    assert batch.gradient["arc/2"]["c", "d"] == 0.0
    other = bound.run_batch([{}], query="path(b,d)", gradient=["arc/2"])
    assert other.gradient["arc/2"]["c", "d"] == 0.25


@pytest.mark.parametrize("threads", [1, 3])
def test_facts_that_are_bound_and_brought_have_the_rows_of_both(bound: dg.Bound, threads: int) -> None:
    more: list[Any] = [
        {"arc/2": [("d", "e", 0.5), ("a", "b", 0.5)], "end/1": [("e",)]},
        ENDS[0],
        {"arc/2": 7},
        {"arc/2": [("b", "d", 0.25)], "end/1": [("d",)]},
        {"arc/2": [], "end/1": [("b",)]},
    ]
    fine, weights = [more[n] for n in (0, 1, 3, 4)], np.array([2.0, 0.5, 7.0, -1.0, 3.0])
    batch = bound.run_batch(more, query="goal", gradient=["arc/2"], cotangents=weights, threads=threads)
    assert list(batch.errors) == [2]
    table = batch.gradient["arc/2"]
    assert [row[:-1] for row in table] == [*(a[:-1] for a in ARCS), ("d", "e"), ("a", "b"), ("b", "d")]
    assert table.values[:4] == pytest.approx(summed(bound, fine, "arc/2", weights[[0, 1, 3, 4]]), rel=1e-14)
    own = [bound.run(more[n]).gradient("goal")["arc/2"].values[4:] * weights[n] for n in (0, 3)]
    assert table.values[4:] == pytest.approx(np.concatenate(own), rel=1e-14)
    values, offsets = batch.gradient.ragged("arc/2")
    assert values.tolist() == table.values[4:].tolist() and offsets.tolist() == [0, 2, 2, 2, 3, 3]


@pytest.mark.parametrize("semiring", ["real", "log", "tropical", "expectation"])
def test_the_rows_of_both_in_each_semiring_are_those_of_charts(semiring: str) -> None:
    """Dense where bound, with rows in examples; a predicate that is bound alone keeps its shape."""
    one = (0.5, 1.0) if semiring == "expectation" else 0.5
    dense = np.ones((2, 2, 2)) if semiring == "expectation" else np.ones((2, 2))
    bound = dg.Program("g += a(X,Y)*b(Y).", semiring).bind({"a/2": dense, "b/1": [(0, one), (1, one)]})
    examples: list[Any] = [{"a/2": [(2, 1, one)]}, {}, {"b/1": [(0, one)], "a/2": [(0, 0, one), (3, 0, one)]}]
    batch = bound.run_batch(examples, query="g", gradient=["b/1", "a/2"])
    charts = [bound.run(facts).gradient("g") for facts in examples]
    for key, count in (("b/1", 2), ("a/2", 4)):
        tables = [np.asarray(chart[key].values).reshape(len(chart[key]), -1) for chart in charts]
        expected = [sum(t[:count] for t in tables), *(t[count:] for t in tables)]
        got = np.asarray(batch.gradient[key].values)
        assert got.reshape(len(got), -1) == pytest.approx(np.concatenate(expected), rel=1e-14)
    assert bound.run_batch([{}], query="g", gradient=["a/2"]).gradient["a/2"].values.shape == dense.shape


def test_a_goal_that_was_not_derived_adds_nothing(bound: dg.Bound) -> None:
    batch = bound.run_batch([{"end/1": [("nowhere",)]}, {"end/1": []}], query="goal", gradient=["arc/2"])
    assert batch.values.tolist() == [0.0, 0.0] and not batch.errors
    assert batch.gradient["arc/2"].values.tolist() == [0.0] * 4
    assert bound.run_batch([], query="goal", gradient=["arc/2"]).gradient["arc/2"].values.tolist() == [0.0] * 4


def test_a_number_of_threads_is_at_least_one(bound: dg.Bound) -> None:
    with pytest.raises(dg.Error, match="threads must be a whole number, at least 1, not 0"):
        bound.run_batch([{}], query="goal", threads=0)


def test_the_same_for_any_number_of_threads(bound: dg.Bound) -> None:
    random = np.random.default_rng(3)
    examples: list[Any] = []
    for n in range(90):
        ends = [(str(e), float(w)) for e, w in zip(random.choice(list("abcdef"), 3), random.random(3), strict=True)]
        arcs = [("d", "e", random.random()), ("e", "a", 0.1)] if n % 3 == 0 else []
        examples.append({"end/1": ends, "arc/2": arcs} if arcs else {"end/1": ends})
    examples[17], examples[61] = {"end/1": 7}, {"end/1": []}
    weights = random.normal(size=90)
    found = []
    for threads in (1, 2, 4):  # of a binding that knows nothing yet, so that plans are made as it goes
        fresh = dg.Program(PATHS, "real").bind({"arc/2": ARCS})
        found.append(fresh.run_batch(examples, query="goal", gradient=["arc/2"], cotangents=weights, threads=threads))
    for batch in found:
        assert list(batch.errors) == [17]
        assert batch.values.tobytes() == found[0].values.tobytes()
        assert batch.gradient["arc/2"].values.tobytes() == found[0].gradient["arc/2"].values.tobytes()
    good = [n for n in range(90) if n != 17]
    expected = summed(bound, [examples[n] for n in good], "arc/2", weights[good])
    assert len(found[0].gradient["arc/2"]) == 4 + 2 * 30  # the rows that every third example brings
    assert found[0].gradient["arc/2"].values[:4] == pytest.approx(expected, rel=1e-12)


def test_examples_may_come_from_a_generator(bound: dg.Bound) -> None:
    def examples() -> Iterator[dict[str, Any]]:
        yield from ENDS

    batch = bound.run_batch(examples(), query="goal", gradient=["arc/2"], cotangents=(1, 2, 3))
    expected = summed(bound, ENDS, "arc/2", [1, 2, 3])
    assert batch.gradient["arc/2"].values == pytest.approx(expected, rel=1e-14)


def test_limits_hold_for_the_gradient_too(bound: dg.Bound) -> None:
    batch = bound.run_batch(ENDS, query="path(a,d)", gradient=["arc/2"], max_pops=0)
    assert batch.values.tolist() == [0.0] * 3 and batch.gradient["arc/2"].values.tolist() == [0.0] * 4


# -- semirings -------------------------------------------------------------------------------------------------------


def in_log() -> dg.Bound:
    return dg.Program(PATHS, "log").bind({"arc/2": ARCS}, values="probabilities")


def test_in_log_the_gradient_is_expected_counts(bound: dg.Bound) -> None:
    log = in_log()
    ends = [{"end/1": [(end, math.log(weight))]} for facts in ENDS for end, weight in facts["end/1"]]
    batch = log.run_batch(ends, query="goal", gradient=["arc/2"])
    assert batch.values == pytest.approx([math.log(x) for x in (1.0, 1.25, 0.625)], rel=1e-12)
    real = bound.run_batch(ENDS, query="goal", gradient=["arc/2"], objective="log").gradient["arc/2"].values
    assert batch.gradient["arc/2"].values == pytest.approx(real * [row[-1] for row in ARCS], rel=1e-12)
    nothing = log.run_batch([{"end/1": [("nowhere",)]}, {"end/1": [("c", -math.inf)]}], query="goal", gradient="arc/2")
    assert np.array_equal(nothing.values, [-math.inf, -math.inf]) and nothing.errors == {}
    assert nothing.gradient["arc/2"].values.tolist() == [0.0] * 4


@pytest.mark.parametrize("semiring", ["viterbi", "tropical"])
def test_in_viterbi_and_tropical_the_winners_are_counted(semiring: str) -> None:
    sign = -1 if semiring == "viterbi" else 1
    arcs = [("a", "b", sign * 1.0), ("b", "c", sign * 1.0), ("a", "c", sign * 5.0)]
    bound = dg.Program(PATHS, semiring).bind({"arc/2": arcs})
    batch = bound.run_batch([{"end/1": [(end,)]} for end in "bc"], query="goal", gradient=["arc/2"])
    assert batch.gradient["arc/2"].values.tolist() == [2.0, 1.0, 0.0]
    with pytest.raises(dg.Error, match=f"no meaning in the {semiring} semiring: its values are (logs|costs) already"):
        bound.run_batch(ENDS, query="goal", gradient=["arc/2"], objective="log")


def test_plain_programs_and_dense_tables() -> None:
    program = dg.Program("sum(I) += weight(I,J) * x(J).  loss += (sum(I) - y(I)) ^ 2.")
    weights = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    bound = program.bind({"weight/2": weights})
    random = np.random.default_rng(0)
    inputs, outputs = random.normal(size=(5, 3)), random.normal(size=(5, 2))
    examples = [{"x/1": x, "y/1": y} for x, y in zip(inputs, outputs, strict=True)]
    off = inputs @ weights.T - outputs
    losses = (off**2).sum(axis=1)
    batch = bound.run_batch(examples, query="loss", gradient=["weight/2"])
    assert batch.values == pytest.approx(losses, rel=1e-12)
    assert batch.gradient["weight/2"].values.shape == (2, 3)
    assert batch.gradient["weight/2"].values == pytest.approx(2 * off.T @ inputs, rel=1e-12)
    batch = bound.run_batch(examples, query="loss", gradient=["weight/2"], objective="log")
    assert batch.gradient["weight/2"].values == pytest.approx(2 * (off / losses[:, None]).T @ inputs, rel=1e-12)


def test_in_expectation_gradients_are_pairs() -> None:
    program = dg.Program("goal += a(X) * b(X).", "expectation")
    bound = program.bind({"a/1": [(1, (0.5, 1.0)), (2, (0.25, 0.0))]})
    examples: list[Any] = [{"b/1": [(1, (2.0, 3.0))]}, {"b/1": [(1, (1.0, 0.0)), (2, (4.0, 5.0))]}]
    batch = bound.run_batch(examples, query="goal", gradient=["a/1"])
    expected = sum(bound.run(facts).gradient("goal")["a/1"].values for facts in examples)
    assert batch.gradient["a/1"].values.tolist() == expected.tolist()
    with pytest.raises(dg.Error, match="pairs, which have no log"):
        bound.run_batch(examples, query="goal", gradient=["a/1"], objective="log")
    ones = program.bind({"a/1": [(1,), (2,)]})  # which has vectors of any length
    batch = ones.run_batch([*examples, {"b/1": [(1, (1.0, (2.0, 3.0)))]}], query="goal", gradient=["a/1"])
    assert list(batch.errors) == [2] and "vectors of this example have length 2" in str(batch.errors[2])
    assert batch.gradient["a/1"].values.shape == (2, 2)


# -- failures --------------------------------------------------------------------------------------------------------


def test_an_example_that_fails_adds_nothing(bound: dg.Bound) -> None:
    examples: list[Any] = [7, ENDS[0], {"nothing/1": []}, ENDS[1], {"end/1": [(1, 2, 3)]}, ENDS[2]]
    batch = bound.run_batch(examples, query="goal", gradient=["arc/2"], threads=2)
    assert np.array_equal(batch.values, [math.nan, 1.0, math.nan, 1.25, math.nan, 0.625], equal_nan=True)
    assert sorted(batch.errors) == [0, 2, 4]
    assert np.array_equal(batch.gradient["arc/2"].values, summed(bound, ENDS, "arc/2"))
    none = bound.run_batch([7, 7], query="goal", gradient=["arc/2"])
    assert len(none.errors) == 2 and none.gradient["arc/2"].values.tolist() == [0.0] * 4


def test_goals_without_a_log(bound: dg.Bound) -> None:
    examples = [{"end/1": [("c", -1.0)]}, ENDS[1], {"end/1": []}, {"end/1": [("b", 1e-320)]}]
    batch = bound.run_batch(examples, query="goal", gradient=["arc/2"], objective="log")
    assert sorted(batch.errors) == [0, 3] and np.isnan(batch.values).tolist() == [True, False, False, True]
    assert "'goal' is -0.625, and objective=\"log\" takes the log of a positive number" in str(batch.errors[0])
    assert batch.values[2] == 0.0  # which is impossible, and has a gradient of zeros
    assert isinstance(batch.errors[3], dg.ValueRangeError) and "use the log semiring" in str(batch.errors[3])
    assert batch.gradient["arc/2"].values == pytest.approx(summed(bound, [ENDS[1]], "arc/2", log=True), rel=1e-14)


@pytest.mark.parametrize(
    "goal", ["goal += start * end(X) * arc(s,X).", "goal += end(X) * arc(s,X). goal += 0 * other."]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_log_of_an_impossible_example_has_a_gradient_of_zeros(goal: str, threads: int) -> None:
    """Underived and derived with weight zero, in plain arithmetic, `real` and `log`, among possible ones."""
    arcs, ends = [("s", "a", 0.5), ("s", "b", 0.25), ("s", "c", 0.0)], [["b"], [], ["c"], ["a", "b"], ["d"]]
    others = {"start/0": [(1.0,)]} if "start" in goal else {"other/0": [(0.5,)]}
    examples: list[Any] = [{"end/1": [(x,) for x in end]} for end in ends]
    gradients = {}
    for semiring in (None, "real", "log"):
        values = {"values": "probabilities"} if semiring == "log" else {}
        some = dg.Program(goal, semiring).bind({"arc/2": arcs, **others}, **values)
        objective = "sum" if semiring == "log" else "log"
        batch = some.run_batch(
            examples, query="goal", gradient=["arc/2"], objective=objective, threads=threads, **values
        )
        assert not batch.errors
        worth = np.exp(batch.values) if semiring == "log" else batch.values
        assert worth == pytest.approx([0.25, 0.0, 0.0, 0.75, 0.0])
        by_log = batch.gradient["arc/2"].values
        gradients[semiring] = by_log if semiring == "log" else by_log * [0.5, 0.25, 0.0]
        assert by_log[2] == 0.0
    for found in gradients.values():
        assert found == pytest.approx([2 / 3, 1 + 1 / 3, 0.0])


def test_sums_that_are_too_large(bound: dg.Bound) -> None:
    huge = {"end/1": [("b", 1.5e308)]}
    with pytest.raises(dg.ValueRangeError, match=r"arc\(a,b\), summed over the examples, is infinite"):
        bound.run_batch([huge, huge], query="goal", gradient=["arc/2"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"query": None}, 'a gradient needs an item that it is of, such as query="goal"'),
        ({"gradient": ["arcs/2"]}, "no predicate 'arcs/2'. Did you mean `arc/2`?"),
        ({"gradient": [3]}, "no predicate 3"),
        ({"gradient": 3}, "no predicate 3"),
        ({"gradient": ["path/2"]}, "path/2 has no facts, neither bound nor in an example; bind has: arc/2"),
        ({"objective": "product"}, "objective='product': it is \"sum\""),
        ({"cotangents": [1.0, 2.0]}, r"3 numbers, one per example, but their shape is \(2,\)"),
        ({"cotangents": [1.0, math.nan, 2.0]}, "that of example 1 is nan"),
        ({"cotangents": ["a", "b", "c"]}, "cotangents must be numbers"),
        ({"cotangents": 3.0}, "their shape is"),
        ({"gradient": None, "objective": "log"}, "objective and cotangents are about a gradient"),
        ({"gradient": None, "cotangents": [1.0, 1.0, 1.0]}, "objective and cotangents are about a gradient"),
    ],
)
def test_options_that_do_not_fit(bound: dg.Bound, options: dict[str, Any], message: str) -> None:
    with pytest.raises(dg.Error, match=message):
        bound.run_batch(ENDS, **{"query": "goal", "gradient": ["arc/2"], **options})


@pytest.mark.parametrize("semiring", ["boolean", "count"])
def test_semirings_without_derivatives(semiring: str) -> None:
    bound = dg.Program("goal += a(_).", semiring).bind({"a/1": [("x",)]})
    with pytest.raises(dg.NotDifferentiable, match=f"in the {semiring} semiring has no gradient"):
        bound.run_batch([{}], query="goal", gradient=["a/1"])


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_stops_a_batch(threads: int) -> None:
    program = dg.Program("n(I+1) += n(I) * step. n(0) += start. goal += n(1). twice(I) += n(I) * n(I).", "real")
    bound = program.bind({"step/0": 1.0})
    bound.run_batch([{"start/0": 1.0}], query="goal", gradient="step/0", max_pops=5)  # compiles
    with pytest.raises(KeyboardInterrupt), ctrl_c(0.5, within=9.0):
        bound.run_batch([{"start/0": 1.0}] * 50, query="goal", gradient="step/0", threads=threads)


# -- the order of work -----------------------------------------------------------------------------------------------


def test_results_come_in_order_and_few_are_ahead() -> None:
    """One that takes long holds back those after it, but no more of them than are wanted."""
    slow, done, prepared = threading.Event(), [0], []

    def prepare(n: int) -> int:
        prepared.append(n)
        return n

    def finish(n: int, made: int) -> int:
        if n == 0:
            assert slow.wait(20)
        else:
            done[0] += 1
            if done[0] == 4:  # of five at most, the first one among them
                slow.set()
        return made * made

    found = list(in_order(40, prepare, finish, threads=3, ahead=5, stop=lambda: None))
    assert found == [n * n for n in range(40)] and prepared == list(range(40))


def test_whoever_stops_reading_stops_the_work() -> None:
    stopped: list[bool] = []
    found = in_order(1000, lambda n: n, lambda n, _: n, threads=2, ahead=5, stop=lambda: stopped.append(True))
    assert next(found) == 0
    found.close()
    assert stopped == [True]


# -- facts that each example brings ------------------------------------------------------------------------------------

CHAIN = """
    alpha(T,S) += start(S) * emit(T,S) for T == 0.
    alpha(T+1,S) += alpha(T,R) * move(R,S) * emit(T+1,S).
    total += alpha(T,_) * end(T).
"""


@pytest.fixture(scope="module", params=["log", "real", "expectation"])
def chain(request: pytest.FixtureRequest) -> tuple[dg.Bound, list[dict[str, Any]]]:
    rng = np.random.default_rng(7)

    def numbers(*shape: int) -> Any:
        return rng.random((*shape, *([2] if request.param == "expectation" else []))) + 0.1

    bound = dg.Program(CHAIN, request.param).bind({"move/2": numbers(3, 3), "start/1": numbers(3)})
    examples = [{"emit/2": numbers(length, 3), "end/1": [(length - 1,)]} for length in (2, 4, 1)]
    return bound, [examples[0], {"emit/2": 7}, examples[1], {"emit/2": [], "end/1": [(0,)]}, examples[2]]


def test_facts_that_examples_bring_have_a_table_each(chain: tuple[dg.Bound, list[dict[str, Any]]]) -> None:
    bound, examples = chain
    batch = bound.run_batch(examples, query="total", gradient=["emit/2", "move/2"], threads=2)
    assert list(batch.gradient) == ["emit/2", "move/2"] and sorted(batch.errors) == [1]
    tables = batch.gradient["emit/2"]
    assert len(tables) == 5 and tables[1] is None and len(tables[3]) == 0
    for facts, table in zip(examples, tables, strict=True):
        if table is None or not len(table):
            continue
        alone = bound.run(facts).gradient("total")["emit/2"]
        assert table == alone and table.values.shape == facts["emit/2"].shape
    fine = [facts for n, facts in enumerate(examples) if n not in (1, 3)]
    both = bound.run_batch(fine, query="total", gradient=["move/2"])
    assert np.array_equal(batch.gradient["move/2"].values, both.gradient["move/2"].values)


def test_ragged_has_the_same_numbers_in_one_array(chain: tuple[dg.Bound, list[dict[str, Any]]]) -> None:
    bound, examples = chain
    batch = bound.run_batch(examples, query="total", gradient=["emit/2"], cotangents=[1.0, 2.0, 3.0, 4.0, 5.0])
    values, offsets = batch.gradient.ragged("emit/2")
    assert offsets.tolist() == [0, 6, 6, 18, 18, 21] and len(values) == 21
    for n, table in enumerate(batch.gradient["emit/2"]):
        if table is not None and len(table):
            assert np.array_equal(values[offsets[n] : offsets[n + 1]].ravel(), table.values.ravel())


def test_numbers_do_not_depend_on_threads(chain: tuple[dg.Bound, list[dict[str, Any]]]) -> None:
    bound, examples = chain
    one, two = (
        bound.run_batch(examples, query="total", gradient="emit/2", threads=threads).gradient.ragged("emit/2")[0]
        for threads in (1, 3)
    )
    assert np.array_equal(one, two)


def test_rows_of_examples_keep_their_order_and_the_names_of_their_columns() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"who": ["b", "a"], "how much": [2.0, 3.0]})
    program = dg.Program("goal += a(X) * b(X).")
    examples = [{"a/1": frame, "b/1": [("a", 5.0)]}, {"a/1": [("a", 1.0)], "b/1": [("b", 1.0)]}]
    batch = program.run_batch(examples, query="goal", gradient=["a/1", "b/1"])
    assert batch.gradient["a/1"][0].to_pandas().to_dict("list") == {"who": ["b", "a"], "how much": [0.0, 5.0]}
    assert list(batch.gradient["a/1"][1]) == [("a", 0.0)] and list(batch.gradient["b/1"][0]) == [("a", 3.0)]


def test_what_has_no_ragged_gradient(bound: dg.Bound) -> None:
    batch = bound.run_batch(ENDS, query="goal", gradient=["arc/2", "end/1"])
    with pytest.raises(dg.QueryError, match="the facts of arc/2 are bound"):
        batch.gradient.ragged("arc/2")
    with pytest.raises(dg.QueryError, match=r"no gradient for 'edn/1'. Did you mean `end/1`\?"):
        batch.gradient.ragged("edn/1")
    assert batch.gradient.get("path/2") is None and len(batch.gradient) == 2
    assert bound.run_batch([], query="goal", gradient=["end/1"]).gradient.ragged("end/1")[1].tolist() == [0]
