"""Programs, bindings and batches: arguments, errors, and use from several threads. Costs half a minute."""

from __future__ import annotations

import copy
import ctypes
import itertools
import math
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.charts.chart import run_of
from dynagrad.charts.program import binding_of

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

PATHS = "path(X,Y) += arc(X,Y). path(X,Z) += path(X,Y) * arc(Y,Z). goal += path(a,X) * end(X)."
ARCS = [("a", "b", 0.5), ("b", "c", 0.25), ("a", "c", 0.5), ("c", "d", 0.5)]


@pytest.fixture(scope="module")
def program() -> dg.Program:
    return dg.Program(PATHS, "real")


@pytest.fixture(scope="module")
def bound(program: dg.Program) -> dg.Bound:
    return program.bind({"arc/2": ARCS})


def goal(bound: dg.Bound, end: str) -> Any:
    return bound.run({"end/1": [(end,)]})["goal"]


# -- programs --------------------------------------------------------------------------------------------------------


def test_a_program_tells_what_it_is(program: dg.Program) -> None:
    assert program.source == PATHS
    assert program.semiring == "real"
    assert set(program.inputs) == {"arc/2", "end/1"}
    assert set(program.predicates) == {"arc/2", "end/1", "path/2", "goal/0"}
    assert repr(program) == "<Program: 3 rules, 4 predicates, real>"


def test_a_program_may_come_from_a_file(tmp_path: Path, program: dg.Program) -> None:
    file = tmp_path / "paths.dyna"
    file.write_text(PATHS)
    assert dg.Program(file, "real").source == PATHS
    with pytest.raises(dg.Error, match="cannot be read"):
        dg.Program(tmp_path / "none.dyna")
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(dg.Error, match="UTF-8"):
        dg.Program(file)


@pytest.mark.parametrize("source", [None, b"a.", 3, ["a += b."]])
def test_other_things_are_no_programs(source: Any) -> None:
    with pytest.raises(dg.Error, match="a program must be a text or a Path"):
        dg.Program(source)


def test_the_semiring_asked_for_agrees_with_the_one_declared() -> None:
    assert dg.Program(":- semiring log. goal += a(X).", "log").semiring == "log"
    assert dg.Program(":- valtype(term, real). goal += a(X).", "real").semiring == "real"
    with pytest.raises(dg.ProgramError, match="declares the semiring `log`, but `real`"):
        dg.Program(":- semiring log. goal += a(X).", "real")
    with pytest.raises(dg.ProgramError, match="no semiring `logg`"):
        dg.Program("goal += a(X).", "logg")
    with pytest.raises(dg.Error, match=r"a name or a dg\.Semiring"):
        dg.Program("goal += a(X).", 3)  # type: ignore[arg-type]


# -- bindings --------------------------------------------------------------------------------------------------------


ASKED: dict[str, Callable[[dg.Bound, dict[str, Any]], Any]] = {
    "bind": lambda p, said: (repr(b := p.bind(SMALL, **said)), dict(b.run())),
    "run": lambda p, said: dict(p.run(SMALL, **said)),
    "run_batch": lambda p, said: p.run_batch([SMALL, SMALL], query="goal", threads=1, **said).values.tolist(),
    "function": lambda p, said: p.function("goal", ["arc/2"], SMALL, **said).value_and_grad([0.5, 0.25])[0],
    "explain": lambda p, said: p.explain(SMALL),
    "with_values": lambda p, said: repr(p.with_values({}, **said)),
}
SMALL = {"arc/2": [("a", "b", 0.5), ("b", "c", 0.25)], "end/1": [("c", 1.0)]}
"""Every method of programs with facts and without, called so that its results can be compared."""


@pytest.mark.parametrize("said", [{}, {"values": "weights"}, {"values": "probabilities"}], ids=str)
@pytest.mark.parametrize("told", [None, "probabilities"])
@pytest.mark.parametrize("semiring", ["real", "log", "tropical"])
def test_a_program_is_the_bound_program_without_facts(semiring: str, told: Any, said: dict[str, Any]) -> None:
    text = "path(a) = 0.5.  path(Y) += path(X) * arc(X,Y).  goal += path(X) * end(X)."
    program = dg.Program(text, semiring, values=told)
    for name, ask in ASKED.items():
        expected = ask(dg.Program(text, semiring, values=told), said)
        for bound in (program, program.bind(), program.bind({}), program.bind().bind()):
            assert ask(bound, said) == expected, name
            assert bound.program is program


def test_what_a_program_and_a_bound_program_are_asked_is_there_once() -> None:
    own = {name for name in vars(dg.Program) if not name.startswith("_")}
    assert isinstance(dg.Program("a += b."), dg.Bound)
    assert own == {"source", "semiring", "values", "warnings", "predicates", "inputs"}
    assert {name for name in vars(dg.Bound) if not name.startswith("_")} == set(ASKED)


def test_a_tape_is_kept_once_a_gradient_was_asked_for_with_the_bound_facts() -> None:
    def keeps_tapes(bound: dg.Bound) -> bool:
        return bound.run(SMALL).stats.tape_bytes > 0

    program, arcs = dg.Program(PATHS, "real"), {"arc/2": ARCS}
    program.run(SMALL).gradient("goal")
    bound = program.bind(arcs)
    assert keeps_tapes(program) and not keeps_tapes(bound) and not keeps_tapes(program.bind().bind(arcs))
    bound.run(SMALL).gradient("goal")
    assert keeps_tapes(bound) and keeps_tapes(bound.bind(arcs)) and keeps_tapes(bound.with_values({"arc/2": [1.0] * 4}))


def test_a_program_has_no_facts_that_could_get_new_values(program: dg.Program) -> None:
    with pytest.raises(dg.Error, match=r"arc/2 has no facts bound, .* bind has: none"):
        program.with_values({"arc/2": [1.0]})
    assert not {"with_values", "program"} & set(dir(program))


def test_facts_bound_once_serve_many_runs(bound: dg.Bound) -> None:
    assert goal(bound, "c") == 0.5 + 0.125
    assert goal(bound, "d") == 0.5 * 0.625
    assert goal(bound, "nowhere") == 0.0


def test_facts_of_a_run_add_to_the_bound_ones(bound: dg.Bound) -> None:
    chart = bound.run({"arc/2": [("a", "b", 0.5), ("d", "e", 0.5)], "end/1": [("e",)]})
    assert chart["goal"] == pytest.approx((1.0 * 0.25 + 0.5) * 0.5 * 0.5)
    assert goal(bound, "c") == 0.625, "the binding is as it was"


def test_binding_again_replaces_the_facts_of_a_predicate(bound: dg.Bound) -> None:
    other = bound.bind({"arc/2": [("a", "c", 2.0)]})
    assert goal(other, "c") == 2.0
    assert goal(bound, "c") == 0.625


def test_new_values_for_the_same_rows(bound: dg.Bound) -> None:
    changed = bound.with_values({"arc/2": [1.0, 1.0, 2.0, 0.5]})
    assert goal(changed, "c") == 3.0
    assert goal(bound, "c") == 0.625
    assert goal(changed.with_values({"arc/2": np.zeros(4)}), "c") == 0.0
    assert goal(bound.with_values({"arc/2": [1.0] * 4}, values="probabilities"), "c") == 2.0


def test_new_values_that_do_not_fit(bound: dg.Bound) -> None:
    with pytest.raises(dg.FactError, match="3 values were given for 4 rows"):
        bound.with_values({"arc/2": [1.0, 2.0, 3.0]})
    with pytest.raises(dg.Error, match="end/1 has no facts bound"):
        bound.with_values({"end/1": [1.0]})
    with pytest.raises(dg.FactError, match="nan is not possible"):
        bound.with_values({"arc/2": [1.0, math.nan, 3.0, 4.0]})


def test_terms_of_runs_stay_apart() -> None:
    bound = dg.Program("q(X) += p(X). q(f(X)) += p(X).").bind({"p/1": [(["a"],), (dg.Term("g", 1),)]})
    first = bound.run({"p/1": [(["b", "c"],)]})
    second = bound.run({"p/1": [(dg.Term("h", "x"),)]})
    third = bound.run()
    assert [len(c.query("q(X)")) for c in (first, second, third)] == [6, 6, 4]
    assert first["q([b,c])"] == second["q(f(h(x)))"] == third["q(f(g(1)))"] == 1.0
    assert first["q(h(x))"] == second["q([b,c])"] == 0.0


# -- batches ---------------------------------------------------------------------------------------------------------


def test_an_example_that_fails_is_reported_and_the_others_finish(bound: dg.Bound) -> None:
    examples: list[Any] = [{"end/1": [("c",)]}, {"end/1": [(1, 2, 3)]}, {"end/1": [("d",)]}, {"edn/1": []}, 7]
    batch = bound.run_batch(examples, query="goal", threads=3)
    assert np.array_equal(batch.values, [0.625, math.nan, 0.3125, math.nan, math.nan], equal_nan=True)
    assert sorted(batch.errors) == [1, 3, 4]
    assert all(isinstance(error, dg.FactError) for error in batch.errors.values())
    assert "edn/1" in str(batch.errors[3])


def test_without_a_query_a_batch_keeps_the_charts(bound: dg.Bound) -> None:
    batch = bound.run_batch([{"end/1": [("c",)]}, {"end/1": [(None,)]}])
    assert batch.charts[0] is not None and batch.charts[0]["path(a,c)"] == 0.625
    assert batch.charts[1] is None and list(batch.errors) == [1]


FAILED: list[tuple[str, Any, Any]] = [
    ("real", [(2.5,)], [2.5, math.nan]),
    ("log", [(2.5,)], [2.5, math.nan]),
    ("viterbi", [(2.5,)], [2.5, math.nan]),
    ("tropical", [(2.5,)], [2.5, math.nan]),
    ("boolean", [()], [1.0, math.nan]),
    ("count", [(3,)], [3.0, math.nan]),
    ("count", [(2**70,)], [2**70, math.nan]),
    ("expectation", [((2.5, 1.0),)], [[2.5, 1.0], [math.nan, math.nan]]),
    ("expectation", [((2.5, (1.0, 2.0)),)], [[2.5, 1.0, 2.0], [math.nan] * 3]),
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("semiring", "row", "expected"), FAILED)
def test_an_example_that_failed_has_the_value_nan(semiring: str, row: Any, expected: Any, threads: int) -> None:
    """It is told from one that was not derived, whose value is the semiring's zero."""
    program = dg.Program("goal += a.", semiring)
    batch = program.run_batch([{"a/0": row}, {"a/0": "text"}], query="goal", threads=threads)
    assert list(batch.errors) == [1]
    if batch.values.dtype == object:
        assert batch.values[0] == expected[0] and math.isnan(batch.values[1])
    else:
        assert np.array_equal(batch.values, np.array(expected), equal_nan=True)
    zero = program.run_batch([{"a/0": row}, {"a/0": []}], query="goal", threads=threads)
    assert not zero.errors and not np.any(zero.values[1] != zero.values[1])
    none = program.run_batch([{"a/0": "text"}] * 2, query="goal", threads=threads)
    assert np.isnan(none.values.astype(np.float64)).all() and len(none.errors) == 2


def test_an_example_of_ones_own_semiring_that_failed_has_the_value_nan() -> None:
    pairs = dg.Semiring(
        (0.0, 0.0), (1.0, 1.0), lambda a, b: (a[0] + b[0], a[1] + b[1]), lambda a, b: (a[0] * b[0], 1.0)
    )
    batch = dg.Program("goal += a.", pairs).run_batch([{"a/0": [((2.0, 1.0),)]}, {"a/0": "text"}], query="goal")
    assert np.isnan(batch.values).tolist() == [[False, False], [True, True]]


own = dg.Semiring(0.0, 1.0, lambda a, b: a + b, lambda a, b: a * b)
PLAIN = "goal max= twice(_). twice(X) += a(X)*2."
IMPOSSIBLE: list[tuple[str, Any, dict[str, Any], str]] = [
    (PLAIN, None, {"best": 1}, "in plain arithmetic a derivation has no weight of its own.* Declare a semiring"),
    (PLAIN, None, {"sample": 1}, "in plain arithmetic a derivation has no weight"),
    ("goal += a(X).", own, {"best": 2}, "the semiring has no order"),
    ("goal += a(X).", own, {"sample": 2}, "weights that add up"),
    ("goal += a(X).", own, {"gradient": ["a/1"]}, "has no gradient"),
    ("goal += a(X).", "boolean", {"gradient": ["a/1"]}, "has no gradient"),
    ("goal += a(X).", "count", {"values": "probabilities"}, "no meaning in the count semiring"),
    ("goal += a(X).", "real", {"values": "chances"}, '"weights".* or "probabilities"'),
    ("goal += a(X).", "real", {"query": "gaol"}, "no predicate `gaol/0`. Did you mean `goal/0`"),
    ("goal += a(X).", "real", {"query": "a(X)"}, r"a\(X\) has variables"),
    ("goal += a(X).", "real", {"query": "a(x"}, "not closed"),
    ("goal += a(X).", "real", {"query": "a(1+1)"}, "computes in an argument"),
    ("goal += a(X).", "real", {"query": 7}, "7 is not an item"),
    ("goal += a(X).", "real", {"query": "goal", "until": "gaol"}, "no predicate `gaol/0`"),
    ("goal += a(X).", "real", {"query": "goal", "until": "a(X)"}, "has variables"),
    ("goal += a(X).", "real", {"gradient": ["gaol/0"]}, "no predicate 'gaol/0'"),
    ("goal += a(X).", "real", {"gradient": ["goal/0"]}, "goal/0 has no facts"),
    ("goal += a(X).", "log", {"gradient": ["a/1"], "objective": "log"}, "has no meaning in the log semiring"),
    (":- output goal. goal += a(X). b(X) += a(X).", "real", {"query": "b(x)"}, "`b/1` was left out"),
    (":- output goal. goal += b(x). b(X) += a(X).", "real", {"query": "b(y)"}, "only the items with x"),
    (":- transient t/1. goal += t(X). t(X) += a(X).", "real", {"query": "t(y)"}, "transient"),
]


@pytest.mark.parametrize(("text", "semiring", "asked", "message"), IMPOSSIBLE)
def test_what_no_example_can_satisfy_raises_at_once(text: str, semiring: Any, asked: Any, message: str) -> None:
    bound = dg.Program(text, semiring).bind({})

    class Unread(dict):  # type: ignore[type-arg]
        def items(self) -> Any:
            raise AssertionError("nothing is read, and nothing runs")

    with pytest.raises(dg.Error, match=message):
        bound.run_batch([Unread({"a/1": [("x", 0.5)]})], **{"query": "goal", **asked})


def test_limits_of_a_batch_are_those_of_each_run(bound: dg.Bound) -> None:
    batch = bound.run_batch([{"end/1": []}, {"end/1": []}], query="path(a,b)", max_bytes=0)
    assert all(isinstance(error, dg.NotConverged) for error in batch.errors.values()) and len(batch.errors) == 2
    with pytest.raises(dg.Error, match="max_pops"):
        bound.run_batch([], max_pops=-1)
    assert bound.run_batch([], query="goal").values.shape == (0,)


def test_a_batch_of_vectors_has_a_row_for_each_example() -> None:
    program = dg.Program("goal += a(X).", "expectation")
    batch = program.run_batch([{"a/1": [(1, (0.5, (1.0, 2.0)))]}, {"a/1": 3}], query="goal")
    assert np.array_equal(batch.values, [[0.5, 1.0, 2.0], [math.nan] * 3], equal_nan=True)


def test_runs_over_vectors_of_one_length_share_a_plan() -> None:
    program = dg.Program("goal += a(X) * b(X).", "expectation")

    def facts(x: float, length: int) -> dict[str, Any]:
        return {key: [(1, (x, (1.0,) * length))] for key in ("a/1", "b/1")}

    for length in (1, 2, 3):
        for bound in (program, program.bind()):
            charts = [bound.run(facts(0.5, length)), program.run(facts(0.25, length))]
            charts.append(bound.bind(facts(0.5, length)).run())
            for chart, x in zip(charts, (0.5, 0.25, 0.5), strict=True):
                p, r = chart["goal"]
                assert (p, np.ravel(r).tolist()) == (x * x, [2 * x] * length)
            first, second = (run_of(chart).require().compiled for chart in charts[:2])
            assert first is second


# -- pickling --------------------------------------------------------------------------------------------------------


def through_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def times_max(a: Any, b: Any) -> Any:
    return np.maximum(a, b)


def times_plus(a: Any, b: Any) -> Any:
    return a + b


def test_programs_bindings_charts_and_tables_pickle(program: dg.Program, bound: dg.Bound) -> None:
    assert through_pickle(program).run({"arc/2": ARCS, "end/1": [("c",)]})["goal"] == 0.625
    assert goal(through_pickle(bound), "c") == 0.625
    assert goal(through_pickle(bound.with_values({"arc/2": [1.0] * 4})), "c") == 2.0
    chart = bound.run({"end/1": [("c",)]})
    again = through_pickle(chart)
    assert again["goal"] == 0.625 and again.converged
    again.add("end/1", [("d",)])
    assert again.run()["goal"] == 0.625 + 0.3125
    assert through_pickle(chart.query("path(a,X)")).values.tolist() == chart.query("path(a,X)").values.tolist()


def test_functions_of_programs_pickle_and_programs_are_copied() -> None:
    free = dg.Program("goal += score(I) * until(N) for I < N.", "real")
    for program in (free, through_pickle(free), copy.copy(free), copy.deepcopy(free)):
        assert program.program is program and repr(program) == repr(free) and program.values == "weights"
        f = through_pickle(program.function("goal", ["score/1"]))
        assert f([1.0, 2.0, 4.0], facts={"until/1": [(2,)]}) == 3.0
        assert through_pickle(program.bind({"until/1": [(2,)]})).run({"score/1": [(0, 7.0)]})["goal"] == 7.0


def test_charts_pickle_as_far_as_they_ran(bound: dg.Bound) -> None:
    chart = bound.run({"end/1": [("c",)]}, max_pops=2)
    again = through_pickle(chart)
    assert not again.converged and again.status == "max_pops"
    assert list(again.query("path(X,Y)")) == list(chart.query("path(X,Y)"))
    assert again.run(max_pops=None)["goal"] == 0.625


def test_changed_charts_pickle_with_their_changes(bound: dg.Bound) -> None:
    chart = bound.run({"end/1": [("c",)]})
    chart.retract("arc/2", [("a", "c")])
    assert through_pickle(chart).run()["goal"] == 0.125


def test_vectors_and_own_semirings_pickle() -> None:
    vectors = dg.Program("goal += a(X).", "expectation").run({"a/1": [(1, (0.5, (1.0, 2.0)))]})
    p, r = through_pickle(vectors)["goal"]
    assert (p, r.tolist()) == (0.5, [1.0, 2.0])
    own = dg.Semiring(-math.inf, 0.0, times_max, times_plus)
    chart = dg.Program("goal += a(X) * b(X).", own).run({"a/1": [(1, 2.0), (2, 3.0)], "b/1": [(1, 4.0), (2, 1.0)]})
    assert chart["goal"] == through_pickle(chart)["goal"] == 6.0


# -- threads and processes -------------------------------------------------------------------------------------------


def test_a_binding_may_be_used_from_many_threads_at_once(program: dg.Program) -> None:
    bound = program.bind({"arc/2": ARCS})  # not run before, so that the threads meet while it is prepared
    ends = ["a", "b", "c", "d"] * 5
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        found[number] = goal(bound, ends[number])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(ends))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[n] for n in range(len(ends))] == [0.0, 0.5, 0.625, 0.3125] * 5


def _in_child(bound: dg.Bound, connection: Any) -> None:
    try:
        connection.send(goal(bound, "c"))
    except BaseException as error:
        connection.send(repr(error))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_binding_works_in_a_forked_child_and_after(bound: dg.Bound) -> None:
    assert goal(bound, "c") == 0.625
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=_in_child, args=(bound, there))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of threads before a fork
        child.start()
    assert here.poll(20) and here.recv() == 0.625
    child.join(20)
    assert child.exitcode == 0
    assert goal(bound, "d") == 0.3125


# -- probabilities ---------------------------------------------------------------------------------------------------

TWO = "goal += a(X) * b(X). goal += 0.5 * c(X). c(1) = 0.5."
SCALES: dict[str, Any] = {
    "real": lambda p, best: p,
    "log": lambda p, best: math.log(p),
    "viterbi": lambda p, best: math.log(best),
    "tropical": lambda p, best: -math.log(best),
    "boolean": lambda p, best: True,
    "expectation": lambda p, best: (p, 0.0),
}


@pytest.mark.parametrize("semiring", SCALES)
def test_probabilities_turn_into_the_scale_of_any_semiring(semiring: str) -> None:
    pair = semiring == "expectation"
    rows: list[Any] = [(1, (0.5, 0.0)), (2, (0.125, 0.0))] if pair else [(1, 0.5), (2, 0.125)]
    facts = {"a/1": rows, "b/1": [(1,), (2,)]}
    expected = SCALES[semiring](0.5 + 0.125 + 0.25, 0.5)
    whole = dg.Program(TWO, semiring, values="probabilities")
    found = [
        whole.run(facts)["goal"],
        whole.bind({"a/1": rows}).run({"b/1": [(1,), (2,)]})["goal"],
        whole.run_batch([facts], query="goal").values.reshape(-1).tolist(),
    ]
    chart = whole.run({"a/1": rows[:1], "b/1": [(1,), (2,)]})
    chart.add("a/1", rows[1:])
    found.append(chart.run()["goal"])
    for value in found:
        assert np.ravel(value) == pytest.approx(np.ravel(expected))


@pytest.mark.parametrize("semiring", ["real", "log", "viterbi", "tropical", "boolean"])
def test_probabilities_for_facts_alone(semiring: str) -> None:
    program = dg.Program("goal += a(X) * b(X).", semiring)
    expected = SCALES[semiring](0.625, 0.5)
    rows, all_b = [(1, 0.5), (2, 0.125)], {"b/1": [(1,), (2,)]}
    bound = program.bind({"a/1": rows}, values="probabilities")
    assert bound.run(all_b)["goal"] == pytest.approx(expected)
    chart = program.run({"a/1": rows, **all_b}, values="probabilities")
    assert chart["goal"] == pytest.approx(expected)
    assert program.run_batch([{"a/1": rows, **all_b}], query="goal", values="probabilities").values == pytest.approx(
        [expected]
    )
    chart = program.bind(all_b).run({"a/1": []})
    chart.add("a/1", rows, values="probabilities")
    assert chart.run()["goal"] == pytest.approx(expected)


def converted(semiring: str, p: Any) -> Any:
    """Probabilities on the scale of a semiring, by numpy alone."""
    return {"log": np.log, "viterbi": np.log, "tropical": lambda x: -np.log(x)}.get(semiring, lambda x: x)(p)


MIXED = "goal += 0.5 * a(X) * b(X). goal += a(X) * c(X). c(2) = 0.25."
GIVEN = {"a/1": [0.5, 0.25], "b/1": [0.75, 0.125], "c/1": [0.0625]}
SAID = [None, "weights", "probabilities"]


def expected_goal(semiring: str, constants: bool) -> float:
    """The goal from GIVEN; constants of the text are probabilities, or stand on the scale of the semiring."""
    (a, b), (d, e), (c,) = GIVEN.values()
    back: Any = {"log": np.exp, "viterbi": np.exp, "tropical": lambda x: np.exp(-x)}.get(semiring, lambda x: x)
    half, quarter = (0.5, 0.25) if constants else (back(0.5), back(0.25))
    products = [half * a * d, half * b * e, a * c, b * quarter]
    return float(converted(semiring, sum(products) if semiring in ("log", "real") else max(products)))


@pytest.mark.parametrize("semiring", ["real", "log", "viterbi", "tropical"])
def test_numbers_are_what_the_call_that_gives_them_says(semiring: str) -> None:
    """All orders of calls: the program, two of bind, then run, then a change, each says one of two things, or nothing.

    Constants are probabilities where the program, bind or run says so, unless the program says otherwise.
    """

    def rows(key: str, said: str | None, otherwise: str | None) -> Any:
        numbers = np.array(GIVEN[key])
        given = numbers if (said or otherwise) == "probabilities" else converted(semiring, numbers)
        return [(n + 1, x) for n, x in enumerate(given.tolist())]

    programs = {said: dg.Program(MIXED, semiring, values=said) for said in SAID}
    for (whole, program), first, second, third in itertools.product(programs.items(), SAID, SAID, SAID):

        def goal(*said: str | None, whole: str | None = whole) -> Any:
            constants = whole == "probabilities" or (whole is None and "probabilities" in said)
            return pytest.approx(expected_goal(semiring, constants), rel=1e-12)

        bound = program.bind({"a/1": rows("a/1", first, whole)}, values=first)
        bound = bound.bind({"b/1": rows("b/1", second, whole)}, values=second)
        facts, expected = {"c/1": rows("c/1", third, whole)}, goal(first, second, third)
        assert bound.run(facts, values=third)["goal"] == expected, (whole, first, second, third)
        if first != second:
            continue
        assert bound.run_batch([facts], query="goal", values=third).values == [expected]
        f = pickle.loads(pickle.dumps(bound)).function("goal", ["c/1"], facts, values=third)
        assert f([x for _, x in facts["c/1"]]) == expected
        for fourth in SAID:
            chart = bound.run(facts, values=third)
            chart = pickle.loads(pickle.dumps(chart)) if fourth is None else chart
            row = rows("a/1", fourth, third or whole)
            chart.set("a/1", row[:1], values=fourth)
            assert chart.run()["goal"] == expected, (whole, first, second, third, fourth)
            chart.retract("a/1", row, values=fourth)
            chart.add("a/1", row, values=fourth)
            assert chart.run()["goal"] == expected
            numbers = {"a/1": [x for _, x in rows("a/1", fourth, whole)]}
            assert bound.with_values(numbers, values=fourth).run(facts, values=third)["goal"] == expected


@pytest.mark.parametrize("semiring", ["log", "viterbi", "tropical", "real"])
def test_a_function_of_probabilities_has_derivatives_by_them(semiring: str) -> None:
    """Of every order, with rows and with dense arrays, against numpy and its differences."""

    def by_hand(a: Any, b: Any) -> float:
        products = np.concatenate([0.5 * a * b, a * a])
        return float(converted(semiring, products.sum() if semiring in ("log", "real") else products.max()))

    program = dg.Program("goal += 0.5 * a(X) * b(X). goal += a(X) * a(X).", semiring, values="probabilities")
    facts = {"a/1": [(0, 0.5), (1, 0.5)], "b/1": [(0, 0.5), (1, 0.5)]}
    point, along = [np.array([0.1, 0.25]), np.array([0.3, 0.45])], [np.array([0.3, -0.2]), np.array([0.5, 0.1])]
    both = program.function("goal", ["a/1", "b/1"], facts)
    for f in (both, pickle.loads(pickle.dumps(both)), program.function("goal", ["a/1", "b/1"])):
        assert f(*point) == pytest.approx(by_hand(*point), rel=1e-12)

        def at(t: float) -> list[Any]:
            return [x + t * u for x, u in zip(point, along, strict=True)]

        steps = [by_hand(*at(t * 1e-3)) for t in range(-3, 4)]
        first = float(np.dot(steps, [-1, 9, -45, 0, 45, -9, 1]) / 60e-3)
        third = float(np.dot(steps, [1, -8, 13, 0, -13, 8, -1]) / 8e-9)
        assert f.jvp(point, along)[1] == pytest.approx(first, rel=1e-8, abs=1e-9)
        assert f.derivative(point, [along] * 3) == pytest.approx(third, rel=1e-4, abs=1e-4)
        _, gradients = f.value_and_grad(*point)
        assert sum(float(g @ u) for g, u in zip(gradients, along, strict=True)) == pytest.approx(
            first, rel=1e-8, abs=1e-9
        )
        near = [f.gradient(at(t)) for t in (1e-4, -1e-4)]
        for found, up, down in zip(f.hvp(point, along), *near, strict=True):
            assert found == pytest.approx((up - down) / 2e-4, rel=1e-5, abs=1e-5)
        dg.check_derivatives(f, *point)
        with pytest.raises(dg.FactError, match=r"a/1, at \[1\]: 1\.5 is not a probability"):
            f([0.5, 1.5], point[1])
        if semiring != "real":
            assert f([0.0, 0.25], point[1]) == pytest.approx(by_hand(np.array([0.0, 0.25]), point[1]), rel=1e-12)
            edge, h = [np.array([0.0, 0.25]), point[1]], 1e-6
            ahead = [by_hand(edge[0] + np.array([t * h, 0.0]), edge[1]) for t in range(3)]
            gradients = f.value_and_grad(*edge)[1]
            assert gradients[0][0] == pytest.approx(
                (-3 * ahead[0] + 4 * ahead[1] - ahead[2]) / (2 * h), rel=1e-6, abs=1e-8
            )
            beside = [by_hand(edge[0] + np.array([0.0, t * h]), edge[1]) for t in (-1, 1)]
            assert gradients[0][1] == pytest.approx((beside[1] - beside[0]) / (2 * h), rel=1e-6, abs=1e-8)
            by_jets = f.jvp(edge, along)[1]
            assert by_jets == pytest.approx(sum(float(g @ u) for g, u in zip(gradients, along, strict=True)), rel=1e-12)
            with pytest.raises(dg.NotDifferentiable, match="a/1 has a probability of 0, at which only first"):
                f.hvp(edge, along)
    weights = program.function("goal", ["a/1"], {"b/1": converted(semiring, point[1])}, values="weights")
    assert weights(converted(semiring, point[0])) == pytest.approx(by_hand(*point), rel=1e-12)


def test_a_log_has_no_derivative_where_all_is_by_a_probability_of_zero() -> None:
    """One goal needs it, the other has it beside another one; several of 0, on a cycle too, do not disturb another."""
    program = dg.Program(
        "goal += a(I) * b(I). goal += a(0) * a(1). only += a(0). way += t(0). way += way * a(0).", "log"
    )
    facts = {"a/1": [(0, 0.1), (1, 0.5)], "b/1": [(0, 0.3), (1, 0.2)], "t/1": [(0, 0.5)]}
    both, only, way = (
        program.function(goal, ["a/1", "b/1"], facts=facts, values="probabilities") for goal in ("goal", "only", "way")
    )
    assert both.gradient([[0.0, 0.5], [0.3, 0.2]])[0] == pytest.approx([(0.3 + 0.5) / 0.1, 2.0], rel=1e-12)
    assert both.gradient([[0.0, 0.5], [0.0, 0.2]])[1] == pytest.approx([0.0, 5.0], rel=1e-12, abs=1e-100)
    assert way.gradient([[0.0, 0.5], [0.0, 0.2]])[0] == pytest.approx([1.0, 0.0], rel=1e-12)
    for f, point, why in ((only, [0.0, 0.5], "own weight is 0"), (both, [0.0, 1e-290], "own weight is too near to 0")):
        with pytest.raises(dg.NotDifferentiable, match=why):
            f.gradient([point, [0.3, 0.2]])
    with pytest.raises(dg.NotDifferentiable, match="own weight is 0 without it"):
        both.jvp([[0.0, 0.0], [0.3, 0.2]], [[1.0, 0.0], [0.0, 0.0]])


def test_probabilities_are_not_for_every_semiring() -> None:
    with pytest.raises(dg.Error, match="no meaning in the count semiring"):
        dg.Program(TWO, "count", values="probabilities")
    with pytest.raises(dg.FactError, match=r"a/1, row 2: -1\.0 is not a probability"):
        dg.Program(TWO, "log", values="probabilities").bind({"a/1": [(1, 0.5), (2, -1.0)]})
    with pytest.raises(dg.Error, match="values='logs'"):
        dg.Program(TWO, values="logs")


# -- own semirings and functions -------------------------------------------------------------------------------------


def test_a_semiring_of_floats() -> None:
    own = dg.Semiring(math.inf, 0.0, lambda a, b: np.minimum(a, b), lambda a, b: a + b, less=lambda a, b: a > b)
    chart = dg.Program(PATHS, own).run({"arc/2": [*ARCS, ("b", "a", 1.0)], "end/1": [("d",)]})
    assert chart["goal"] == 1.0
    assert chart["path(b,c)"] == 0.25
    assert chart["path(d,a)"] == math.inf


def test_a_semiring_of_tuples() -> None:
    own = dg.Semiring(
        (0.0, 0.0),
        (1.0, 0.0),
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lambda a, b: (a[0] * b[0], a[0] * b[1] + a[1] * b[0]),
    )
    program = dg.Program("goal += a(X) * b(X).", own)
    facts = {"a/1": [(1, (3.0, 1.0))], "b/1": [(1, (2.0, 5.0)), (5, (7.0, 8.0))]}
    assert program.run(facts)["goal"] == (6.0, 17.0)
    assert program.run({"a/1": [(1,)], "b/1": [(1, (2.0, 5.0))]})["goal"] == (2.0, 5.0)
    assert program.run({"a/1": [], "b/1": []})["goal"] == (0.0, 0.0)
    assert program.run_batch([facts], query="goal").values.tolist() == [[6.0, 17.0]]
    with pytest.raises(dg.FactError, match="3 numbers, and should have 2"):
        program.run({"a/1": [(1, (1.0, 2.0, 3.0))], "b/1": []})


@pytest.mark.parametrize(
    "parts",
    [
        (None, 1.0, max, max),
        ("zero", 1.0, max, max),
        (0.0, ((1.0, 2.0), 3.0), max, max),
        ((), (), max, max),
        (0.0, 1.0, None, max),
        (0.0, 1.0, max, 3),
        (0.0, 1.0, max, max, "less"),
        (0.0, 1.0, max, max, None, 2.0),
    ],
)
def test_semirings_are_made_of_numbers_and_functions(parts: Any) -> None:
    with pytest.raises(dg.Error, match="a semiring's"):
        dg.Semiring(*parts)


def test_semirings_whose_functions_do_not_fit() -> None:
    with pytest.raises(dg.Error, match="one shape"):
        dg.Program("goal += a(X).", dg.Semiring((0.0, 1.0), 1.0, lambda a, b: a, lambda a, b: b))
    with pytest.raises(dg.Error, match="plus returns 1 number"):
        dg.Program("goal += a(X).", dg.Semiring((0.0, 0.0), (1.0, 1.0), lambda a, b: a[0], lambda a, b: b))
    with pytest.raises(dg.Error, match="str"):
        dg.Program("goal += a(X).", dg.Semiring(0.0, 1.0, lambda a, b: "x", lambda a, b: b))
    with pytest.raises(dg.Error, match="star cannot be called with one value"):
        dg.Program("goal += a(X).", dg.Semiring(0.0, 1.0, np.maximum, np.minimum, star=lambda a, b: a))
    with pytest.raises(dg.Error, match="star returns 2 numbers"):
        dg.Program("goal += a(X).", dg.Semiring(0.0, 1.0, np.maximum, np.minimum, star=lambda a: (a, a)))


def test_a_closure_is_traced_and_compiled_with_the_rest() -> None:
    def sums(**more: Any) -> dg.Semiring:
        return dg.Semiring(0.0, 1.0, lambda a, b: a + b, lambda a, b: a * b, **more)

    facts = {"a/1": [("x", 2.0), ("y", 3.0)], "b/0": [(0.5,)]}
    text = "goal += a(X).  goal += goal * b."
    solved = dg.Program(text, sums(star=lambda a: 1.0 / (1.0 - a))).run(facts)
    iterated = dg.Program(text, sums()).run(facts)
    assert solved["goal"] == 10.0 and solved.stats.pops == 1
    assert iterated["goal"] == pytest.approx(10.0, rel=1e-11) and iterated.stats.pops > 10
    other = dg.Program(text, sums(star=lambda a: 1.0 / (1.0 - a * a))).run(facts)
    assert other["goal"] == pytest.approx(5.0 / 0.75)  # what it says is taken for true


def test_functions_of_the_host_are_compiled() -> None:
    functions = {"square": lambda x: x * x, "soft": lambda x: np.log(1.0 + np.exp(x))}
    program = dg.Program(":- function square/1, soft/1. y(X) = soft(square(a(X))).", functions=functions)
    assert program.run({"a/1": [(1, 2.0)]})["y(1)"] == pytest.approx(math.log1p(math.exp(4.0)))
    with pytest.raises(dg.Error, match="not a function"):
        dg.Program(":- function h/1. goal += h(a(X)).", functions={"h": 3})  # type: ignore[dict-item]
    with pytest.raises(dg.Error, match="may not branch"):
        branching = {"h": lambda x: x if x > 0 else 0.0}
        dg.Program(":- function h/1. goal += h(a(X)).", functions=branching).run({"a/1": []})


# -- external predicates ---------------------------------------------------------------------------------------------

NEAR = ":- external near/2. goal += a(X) * a(Y) * near(X,Y)."


def near(function: Any, semiring: str | None = "real") -> dg.Program:
    return dg.Program(NEAR, semiring, functions={"near/2": function})


def test_values_of_external_predicates_come_from_a_function() -> None:
    rows = [(1,), (2,), (5,)]
    assert near(lambda x, y: x + y if x < y else None).run({"a/1": rows})["goal"] == 3.0 + 6.0 + 7.0
    assert near(lambda x, y: True).run({"a/1": rows})["goal"] == 9.0
    assert near(lambda x, y: float(x == y)).run({"a/1": [("u",), (["v"],)]})["goal"] == 2.0
    assert near(lambda x, y: 2, "count").run({"a/1": rows})["goal"] == 18
    assert dg.Program(NEAR, functions={"near": lambda x, y: 1.0}).run({"a/1": rows})["goal"] == 9.0


def test_what_an_external_function_raises_reaches_the_caller_and_the_chart_runs_again() -> None:
    broken = [True]

    def function(x: Any, y: Any) -> float:
        if broken:
            raise KeyError("out of order")
        return 1.0

    program = near(function)
    with pytest.raises(KeyError, match="out of order"):
        program.run({"a/1": [(1,)]})
    batch = program.run_batch([{"a/1": [(1,)]}, {"a/1": []}], query="goal")
    assert list(batch.errors) == [0] and isinstance(batch.errors[0], KeyError)
    broken.clear()
    chart = program.run({"a/1": [(1,)]})
    assert chart["goal"] == 1.0
    broken.append(True)
    chart.add("a/1", [(2,)])
    with pytest.raises(KeyError):
        chart.run()
    with pytest.raises(dg.QueryError, match="run"):
        chart["goal"]
    broken.clear()
    assert chart.run()["goal"] == 4.0


@pytest.mark.parametrize("given", ["abc", (1.0, 2.0), [None], math.nan])
def test_external_values_that_the_semiring_has_not(given: Any) -> None:
    with pytest.raises(dg.Error, match=r"near\('u', 'u'\), of the function behind near/2: "):
        near(lambda x, y: given).run({"a/1": [("u",)]})


@pytest.mark.parametrize("function", [lambda x: 1.0, lambda x, y, z: 1.0, lambda: 1.0, dg.compile(lambda x: x)])
def test_external_functions_of_another_number_of_arguments(function: Any) -> None:
    with pytest.raises(dg.Error, match="the function behind near/2 is called with 2 arguments, those of the item"):
        near(function).run({"a/1": [(1,)]})
    for other in (max, lambda *of: 1.0, lambda x, y, z=0: 1.0):  # these take two, too
        assert near(other).run({"a/1": [(1,)]})["goal"] == 1.0


NATIVE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_double))


def test_external_functions_may_be_native() -> None:
    def answer(arguments: Any, value: Any) -> int:
        value[0] = arguments[0] * 10 + arguments[1]
        return {True: 0, False: 1}[arguments[0] == arguments[1]]

    program = near(NATIVE(answer))
    assert program.run({"a/1": [(1,), (2,)]})["goal"] == 12.0 + 21.0
    with pytest.raises(dg.Error, match="have to be integers"):
        program.run({"a/1": [("x",)]})
    with pytest.raises(dg.ValueRangeError, match="failed"):
        near(NATIVE(lambda arguments, value: -1)).run({"a/1": [(1,)]})


def test_external_functions_that_are_missing_or_too_many() -> None:
    with pytest.raises(dg.ProgramError, match="no function is given for the external predicate near/2"):
        dg.Program(NEAR)
    with pytest.raises(dg.Error, match="declares no external predicate"):
        dg.Program("goal += a(X).", functions={"a/1": len})
    program = near(lambda x, y: 1.0)
    with pytest.raises(dg.FactError, match="`near/2` is external"):
        program.run({"a/1": [], "near/2": []})
    with pytest.raises(dg.QueryError, match="`near/2` is external"):
        program.run({"a/1": []})["near(1,2)"]


def test_probabilities_of_one_call_are_those_of_the_text_too():
    source = ":- semiring log. goal += 0.5 * a(X). goal = 0.25."
    facts = {"a/1": [("x", 0.5)]}
    wanted = pytest.approx(math.log(0.5))
    assert dg.Program(source, values="probabilities").run(facts)["goal"] == wanted
    assert dg.Program(source).bind(facts, values="probabilities").run()["goal"] == wanted
    assert dg.Program(source).run(facts, values="probabilities")["goal"] == wanted
    bound = dg.Program(source).bind({"a/1": [("x", math.log(0.5))]})
    assert bound.run({}, values="probabilities")["goal"] == wanted
    assert bound.run()["goal"] == pytest.approx(np.logaddexp(0.5 + math.log(0.5), 0.25))
    batch = dg.Program(source).run_batch([facts, facts], query="goal", values="probabilities")
    assert batch.values == pytest.approx([math.log(0.5)] * 2)


def test_a_batch_in_a_daemon_thread_does_not_keep_the_interpreter_from_ending() -> None:
    code = """
import threading, time, dynagrad as dg
program = dg.Program("n(X+1) max= n(X) + 1. n(0) = 0.")
program.run(max_pops=10)
threading.Thread(target=lambda: program.run_batch([{}] * 4, threads=2, max_items=10**9), daemon=True).start()
time.sleep(0.5)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, timeout=120, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_timeout_is_that_of_the_whole_call_and_compiling_goes_on_for_the_next_one() -> None:
    rules = "".join(f"timed{i}(X) += q{i}(X) * {i}. " for i in range(60))
    rules += _never_compiled()
    facts = {f"q{i}/1": [("a",)] for i in range(60)}
    program = dg.Program(rules)
    began = time.monotonic()
    with pytest.raises(dg.NotConverged, match="limit on time") as caught:
        program.run(facts, timeout=0.05)
    assert caught.value.chart is None
    assert time.monotonic() - began < 1.0
    made = _finished(program)
    chart = program.run(facts, timeout=100)
    assert chart["timed7(a)"] == 7.0
    assert [id(run_of(chart).require().compiled)] == [id(one) for one in made]  # that which went on, and no other
    assert program.run(facts)["timed8(a)"] == 8.0
    loaded = pickle.loads(pickle.dumps(program.run(facts, timeout=100)))
    assert loaded["timed9(a)"] == 9.0


def _never_compiled() -> str:
    """A rule that no run before this one has left in the cache, where it might be found at once."""
    return f" n{os.urandom(8).hex()} += 1."


def _begun(program: dg.Program, facts: Any) -> None:
    """Begins to compile, and does not wait for it."""
    with pytest.raises(dg.NotConverged, match="limit on time"):
        program.bind(facts).run(timeout=0.0)


def _finished(program: dg.Program) -> list[Any]:
    """What the background compiles of a program made, waited for."""
    jobs = [job.future for job in binding_of(program)._plans.jobs._jobs]
    return [future.result(60)[0] for future in jobs]


def test_what_is_compiled_in_the_background_is_there_for_other_bindings_of_the_program() -> None:
    program = dg.Program("other(X) += q(X) * 17." + _never_compiled())
    facts = {"q/1": [("a", 2.0)]}
    _begun(program, facts)
    (made,) = _finished(program)
    chart = program.bind(facts).run(timeout=100)
    assert chart["other(a)"] == 34.0
    assert run_of(chart).require().compiled is made
    free = dg.Program("other(X) += q(X) * 18." + _never_compiled()).bind(facts)
    with pytest.raises(dg.NotConverged, match="limit on time"):
        free.run(timeout=0.0)
    (held,) = binding_of(free)._plans.jobs._jobs
    again = free.with_values({"q/1": [3.0]}).run(timeout=100)
    assert again["other(a)"] == 54.0
    assert run_of(again).require().compiled is held.future.result(60)[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_compiles_what_the_parent_had_begun_and_takes_locks_that_it_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dynagrad.charts.binding import binding
    from dynagrad.forks import held
    from dynagrad.runtime.disk.folder import Temporary

    program, facts = dg.Program("forked(X) += q(X) * 19."), {"q/1": [("a", 2.0)]}
    go, compile_plan = threading.Event(), binding.compile_plan
    parent = os.getpid()
    monkeypatch.setattr(
        binding, "compile_plan", lambda *given: (os.getpid() != parent or go.wait(60)) and compile_plan(*given)
    )
    _begun(program, facts)
    ready, done = threading.Event(), threading.Event()

    def hold() -> None:
        with binding_of(program)._lock, Temporary.lock:
            ready.set()
            done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    ready.wait(60)
    pid = os.fork()
    if pid == 0:
        try:
            with held(Temporary.lock, 0) as free:
                os._exit(0 if free and program.run(facts, timeout=60)["forked(a)"] == 38.0 else 1)
        finally:
            os._exit(2)
    done.set()
    go.set()
    holder.join()
    assert os.waitpid(pid, 0)[1] == 0
    _finished(program)


@pytest.mark.filterwarnings("always::dynagrad.errors.ProgramWarning")
def test_warnings_of_a_background_compile_are_said_by_the_call_that_takes_its_result() -> None:
    rules = ":- solve iterate. round(X) += q(X). round(X) += 0.3 * round(X) * round(X)."
    program = dg.Program(rules + _never_compiled(), "real")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _begun(program, {"q/1": [("a", 0.1)]})
        _finished(program)
    assert not [w for w in caught if w.filename != __file__]
    with pytest.warns(dg.ProgramWarning, match="may diverge") as said:
        program.run({"q/1": [("a", 0.1)]}, timeout=100)
    assert [w.filename for w in said] == [__file__]


@pytest.mark.parametrize("wrong", [-1, -(10**30), 2**128 - 1])
def test_what_is_no_count_is_an_error_that_names_the_fact(wrong: int) -> None:
    program = dg.Program("goal += s * a(_).", "count")
    chart = program.run({"s/0": 2, "a/1": [("x", 3)]})
    for call, place in (
        (lambda: program.run({"s/0": wrong, "a/1": [("x", 3)]}), "s/0, row 1"),
        (lambda: program.bind({"a/1": [("x", 3), ("y", wrong)]}), "a/1, row 2"),
        (lambda: program.bind({"s/0": 2, "a/1": [("x", 3)]}).with_values({"a/1": [wrong]}), "a/1, row 1"),
        (lambda: chart.add("a/1", [("y", wrong)]), "a/1, row 1"),
        (lambda: chart.set("s/0", wrong), "s/0, row 1"),
    ):
        with pytest.raises(dg.FactError, match=f"^{place}, value: {wrong} is no count"):
            call()
    assert chart["goal"] == 6


def test_compiling_counts_towards_no_example_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    from dynagrad.charts.binding import binding

    compile_plan = binding.compile_plan
    monkeypatch.setattr(binding, "compile_plan", lambda *given: (time.sleep(3.0), compile_plan(*given))[1])
    program = dg.Program("patient(X) += q(X) * 20.")
    batch = program.run_batch([{"q/1": [("a", float(n))]} for n in range(5)], query="patient(a)", timeout=2.5)
    assert (batch.values.tolist(), batch.errors) == ([0.0, 20.0, 40.0, 60.0, 80.0], {})
    charts = dg.Program("patient(X) += q(X) * 21.").run_batch([{"q/1": [("a", 1.0)]}], timeout=2.5).charts
    assert charts[0] is not None and charts[0].status == "done"
    assert not run_of(charts[0]).patient  # a later run of its own waits no longer than it says


@pytest.mark.filterwarnings("always::dynagrad.errors.ProgramWarning")
@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_warns_once_of_what_its_examples_have_in_common_and_at_the_caller(threads: int) -> None:
    program = dg.Program("p += a(X) * b(X).", "real")
    small = [(x, 1e-200) for x in range(3)]
    examples = [{"a/1": small[:n], "b/1": small[:n]} for n in range(4)]
    with pytest.warns(dg.ProgramWarning, match="underflow") as caught:
        program.run_batch(examples, query="p", threads=threads)
    assert [w.filename for w in caught] == [__file__]
    assert str(caught[0].message).startswith("example 1: ")
    assert str(caught[0].message).endswith("(2 more examples likewise)")


def test_messages_of_a_batch_name_the_example_and_the_predicate(bound: dg.Bound) -> None:
    batch = bound.run_batch([{"end/1": [("c",)]}, {"end/1": [("c", "x")]}, {"end/1": 7}], query="goal")
    assert sorted(batch.errors) == [1, 2]
    for n, error in batch.errors.items():
        assert str(error).startswith(f"example {n}: end/1")


def test_an_error_that_comes_again_is_told_of_each_example() -> None:
    mine = dg.Error("mine")

    def weight(x: int) -> float:
        raise mine

    program = dg.Program(":- external weight/1. goal += a(X) * weight(X).", functions={"weight": weight})
    batch = program.run_batch([{"a/1": [(i,)]} for i in range(3)], query="goal", threads=1)
    assert [str(batch.errors[n]) for n in range(3)] == [f"example {n}: mine" for n in range(3)]
    assert str(mine) == "mine"


@pytest.mark.parametrize("threads", [1, 2])
def test_the_error_of_a_users_function_gets_a_note_that_names_its_example(threads: int) -> None:
    def weight(x: int) -> float:
        if x == 3:
            raise KeyError("three")
        return 1.0 / (x - 1)

    program = dg.Program(":- external weight/1. goal += a(X) * weight(X).", functions={"weight": weight})
    batch = program.run_batch([{"a/1": [(i,)]} for i in range(4)], query="goal", threads=threads)
    assert [type(batch.errors[n]) for n in (1, 3)] == [ZeroDivisionError, KeyError] and len(batch.errors) == 2
    assert [batch.errors[n].__notes__ for n in (1, 3)] == [["in example 1 of the batch"], ["in example 3 of the batch"]]
    assert batch.errors[3].args == ("three",)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("gradient", [None, ["c/1"]])
def test_where_filters_make_warnings_errors_they_are_those_of_their_examples(threads: int, gradient: Any) -> None:
    program = dg.Program("p += a(X) * b(X) * c(X).", "real").bind({"c/1": [(0, 1.0), (1, 1.0), (2, 1e-200)]})
    facts = [[], [(0, 1.0)], [(1, 1.0)], [(2, 1e-100)]]
    examples = [{"a/1": rows, "b/1": rows} for rows in facts]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*underflow", dg.ProgramWarning, module=__name__)
        batch = program.run_batch(examples, query="p", gradient=gradient, threads=threads)
    assert list(batch.errors) == [3] and isinstance(batch.errors[3], dg.ProgramWarning)
    assert str(batch.errors[3]).startswith("example 3: 1 item underflowed")
    assert np.array_equal(batch.values, [0.0, 1.0, 1.0, math.nan], equal_nan=True)
    if gradient:
        assert batch.gradient["c/1"].values.tolist() == [1.0, 1.0, 0.0]
    with warnings.catch_warnings():  # of another module, which is not the caller
        warnings.filterwarnings("error", category=dg.ProgramWarning, module="elsewhere")
        warnings.filterwarnings("ignore", category=dg.ProgramWarning, module=__name__)
        assert not program.run_batch(examples, query="p", threads=threads).errors


def test_numpy_numbers_are_limits() -> None:
    chart = dg.Program("n(X+1) max= n(X) + 1 for X < 9. n(0) = 0.").run(max_pops=np.int64(5), timeout=np.float32(60))
    assert chart.stats.pops == 5
    with pytest.raises(dg.Error, match="max_pops must be a number from 0"):
        dg.Program("p += 1.").run(max_pops=np.bool_(True))


def test_a_program_keeps_its_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compilers differ in the last bit, and a gradient is that of the run that it was asked of."""
    program = dg.Program("goal += keeps(X) * its(X).")
    chart = program.run({"keeps/1": [("a", 2.0)], "its/1": [("a", 3.0)]})
    monkeypatch.setenv("DYNAGRAD_CXX", "no-such-compiler")
    assert chart.gradient("goal")["keeps/1"].values == [3.0]
    with pytest.raises(dg.Error, match="no-such-compiler"):
        dg.Program("goal += another(X).").run({"another/1": [("a", 2.0)]})


@pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")
@pytest.mark.parametrize("semiring", [None, "real", "log", "viterbi", "tropical", "boolean", "count", "expectation"])
def test_truth_values_of_external_functions_are_one_and_zero(semiring: Any) -> None:
    text = ":- external below/2. pairs += SIDE(p(X)) * SIDE(p(Y)) * below(X,Y)."
    for compare in (lambda x, y: x < y, np.less):
        program = dg.Program(text, semiring, functions={"below/2": compare})
        sample = dg.Program("pairs += a(_).", semiring)
        for n in (1, 2, 3):
            found = program.run({"p/1": [(i,) for i in range(n)]})["pairs"]
            assert found == sample.run({"a/1": [(i,) for i in range(n * (n - 1) // 2)]})["pairs"]


@pytest.mark.parametrize("semiring", [None, "real", "log", "viterbi", "tropical", "boolean", "expectation"])
def test_external_functions_give_numbers_that_facts_may_have(semiring: Any) -> None:
    text = ":- external d/1. goal += d(X) * SIDE(p(X))."
    for value in (math.nan, np.float32("nan"), math.inf, -math.inf):
        number = (value, 1.0) if semiring == "expectation" else value
        program = dg.Program(text, semiring, functions={"d/1": lambda x, number=number: number})
        if value == {"log": -math.inf, "viterbi": -math.inf, "tropical": math.inf}.get(semiring):
            assert program.run({"p/1": [(1,)]})["goal"] == value
            continue
        with pytest.raises(
            dg.ValueRangeError, match=r"d\(1\), of the function behind d/1: .*(NaN is no|is not possible)"
        ):
            program.run({"p/1": [(1,)]})
