"""Derivations in corners: limits that are just met, transient items, items under `SIDE`, several threads, long chains.

Costs three seconds: each program compiles.
"""

from __future__ import annotations

import json
import math
import pickle
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.forests.ranking import k_best

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")  # of cycles, and of single variables

CHAIN = "at(J) += at(I) * step(I,J). at(0)."
TRANSIENT = ":- transient t/1. t(I) += a(I). t(I) += 3 * b(I). goal += t(I)."


def strict(text: str) -> Any:
    """JSON as its standard has it, without NaN and infinities."""

    def refuse(name: str) -> NoReturn:
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


def test_a_check_knows_how_the_numbers_of_a_program_are_given() -> None:
    program, facts = dg.Program(":- semiring log. goal += 0.5 * a(_).", values="probabilities"), {"a/1": [("x", 0.25)]}
    best = program.run(facts).best("goal")
    assert program.values == "probabilities" and best.weight == math.log(0.125)
    best.check(program, facts)
    best.check(program.source, facts, values="probabilities")
    with pytest.raises(dg.Error, match="weight"):
        best.check(program.source, facts)


@pytest.mark.parametrize("said", [None, "weights", "probabilities"])
def test_a_check_reads_numbers_as_the_run_did(said: Any) -> None:
    """Those of the text are probabilities where the program says so, or says nothing and the call says so."""
    program, facts = dg.Program("goal += 0.5 * a(_).", "viterbi", values=said), {"a/1": [("x", 0.25)]}
    found = []
    for values in (None, "weights", "probabilities"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dg.ProgramWarning)  # weights that look like probabilities
            best = program.run(facts, values=values).best("goal")
        best.check(program, facts, values=values)
        found.append(best.weight)
    text, number = (math.log(0.5), math.log(0.25)) if said == "probabilities" else (0.5, 0.25)
    given = math.log(0.25) + (0.5 if said == "weights" else math.log(0.5))
    assert found == pytest.approx([text + number, text + 0.25, given], rel=1e-12)


def test_items_and_instances_are_told_whole() -> None:
    """And cut in messages alone."""
    name = "x" * 500
    forest = dg.Program("goal += a(X).").run({"a/1": [(name, 1.0)]}).forest("goal")
    assert {str(item) for item in forest.items} == {"goal", f"a({name})"}
    assert f"a({name})" in str(next(i for i in forest.instances if i.rule is not None))


def test_a_check_reads_the_facts_that_a_derivation_uses() -> None:
    program, facts = dg.Program("goal += a(_).  other += b(_).", "real"), {"a/1": [("x", 0.25)], "b/1": [("y", 0.5)]}
    best = program.run(facts).best("goal")
    best.check(program, {**facts, "b/1": "nothing that facts are read from"})
    with pytest.raises(dg.Error, match="a/1"):
        best.check(program, {**facts, "a/1": "nothing that facts are read from"})
    with pytest.raises(dg.FactError, match="is not a dict of facts"):
        best.check(program, [facts])  # type: ignore[arg-type]  # that is the mistake


def test_a_forest_may_have_as_many_instances_as_its_limit() -> None:
    chart = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.").run(
        {"edge/2": [("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 9.0)]}
    )
    items, instances = chart.forest_size("path(c)")
    assert len(chart.forest("path(c)", limit=instances).instances) == instances
    assert chart.forest_size("path(c)", limit=instances) == (items, instances)
    for limit in (instances - 1, 3, 1, 0):
        with pytest.raises(dg.NotConverged, match=f"more than {limit} instance"):
            chart.forest("path(c)", limit=limit)


# -- an iterator that met an error


def test_an_iterator_goes_on_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    chart = dg.Program("a += b. b += a. a += c.", "viterbi").run({"c/0": [(-1.0,)]})
    monkeypatch.setattr(k_best, "MOST_LOOKED_AT", 10)
    found = chart.kbest("a", simple=True)
    assert len(next(found)) == 1
    for _ in range(2):
        with pytest.raises(dg.NotConverged, match="repeat an item"):
            next(found)
    assert not found.complete
    seen: list[int] = []

    def key(derivation: dg.Derivation) -> int:
        seen.append(len(derivation))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return len(derivation)

    found = chart.kbest("a", distinct=key)
    sizes = [len(next(found)), len(next(found))]
    with pytest.raises(KeyboardInterrupt):
        next(found)
    assert [*sizes, len(next(found)), len(next(found))] == [1, 3, 5, 7]
    with pytest.raises(dg.Error, match="must be hashable"):
        next(chart.kbest("a", distinct=lambda d: [len(d)]))  # type: ignore[arg-type,return-value]


def test_an_item_under_side_is_not_repeated() -> None:
    chart = dg.Program("b(X) += d(X) * SIDE(b(_)). b(z) += 1.", "boolean").run({"d/1": [("x",), ("z",)]})
    assert len(list(chart.kbest("b(x)", simple=True))) == chart.count("b(x)", simple=True) == chart.count("b(x)") == 2


# -- transient items


def test_transient_items_have_values_and_an_order() -> None:
    program = dg.Program(TRANSIENT, "real")
    chart = program.run({"a/1": [(10, 1.0), (9, 1.0), (2, 1.0)], "b/1": [(9, 1.0)]})
    assert [d.facts() for d in chart.kbest("goal")] == [["b(9)"], ["a(2)"], ["a(9)"], ["a(10)"]]
    why = chart.why("goal", depth=2)
    assert why.reasons is not None
    assert [(r.share, r.value, r.antecedents[0].value) for r in why.reasons] == [
        (4 / 6, 4.0, 4.0),
        (1 / 6, 1.0, 1.0),
        (1 / 6, 1.0, 1.0),
    ]
    strict(why.to_json())
    with pytest.raises(dg.QueryError, match="`t/1` is transient"):
        chart.best("t(9)")


def test_transient_items_in_plain_arithmetic() -> None:
    text = ":- transient t/1. t(X) max= a(X) + b(X). t(X) max= c(X). goal max= t(X) + c(X). o = tanh(goal)."
    program = dg.Program(text)
    assert program.semiring == "plain"
    facts = {"a/1": [("x", 1.0), ("y", 2.0)], "b/1": [("x", 1.0), ("y", 2.0)], "c/1": [("x", 1.0), ("y", 2.0)]}
    chart = program.run(facts)
    assert chart["goal"] == 6.0
    assert chart.best("goal").tree() == ("goal", ("t(y)", "a(y)", "b(y)"), "c(y)")
    chart.best("goal").check(program, facts)
    assert dg.read_forest(chart.forest("goal").to_json()).best() == chart.best("goal")


def test_what_a_use_of_a_transient_item_leaves_open_is_asked_for_by_its_rules() -> None:
    text = ":- transient t/1. t(X) += e(X) for not n(X). goal += t(_) * t(Y)."
    chart = dg.Program(text, "real").run({"e/1": [("a", 2.0), ("b", 1.0), ("c", 9.0)], "n/1": [("c",)]})
    assert chart["goal"] == 9.0 and chart.count("goal") == 4


@pytest.mark.parametrize("transient", ["", ":- transient t/1. "])
@pytest.mark.parametrize("numbers", [(1, 1.0), (1.0, 1), (("x", 1), ("x", 1.0)), ((), "y")])
def test_numbers_that_are_equal_in_python_are_two_transient_items(transient: str, numbers: tuple[Any, Any]) -> None:
    """1 is not 1.0, alone and in a term: neither takes the derivations of the other."""
    program = dg.Program(f"{transient}t(X) += e(X,_). one(X) += t(X) * f(X). two += t(_) * t(_).", "real")
    first, second = numbers
    facts: dict[str, Any] = {
        "e/2": [(first, "a", 2.0), (first, "b", 3.0), (second, "a", 7.0)],
        "f/1": [(first, 1.0), (second, 1.0)],
    }
    chart = program.run(facts)
    found = {(type(row[0]), repr(row[0])): row[-1] for row in chart.query("one(X)")}
    assert sorted(found.values()) == [5.0, 7.0] and chart["two"] == 144.0
    assert (chart.count(("one", first)), chart.count(("one", second)), chart.count("two")) == (2, 1, 9)
    derivations = list(chart.kbest("two", 9))
    assert [d.weight for d in derivations] == [49.0, 21.0, 21.0, 14.0, 14.0, 9.0, 6.0, 6.0, 4.0]
    for derivation in derivations:
        derivation.check(program, facts)


def test_a_name_that_begins_with_an_underscore_is_a_name_under_not() -> None:
    program = dg.Program("goal += e(_X) for not n(_X).", "real")
    chart = program.run({"e/1": [("a", 2.0), ("b", 1.0)], "n/1": [("b",)]})
    assert chart["goal"] == 2.0
    assert chart.best("goal").tree(conditions=True) == ("goal", "e(a)", "not n(a)")


# -- why


def test_facts_for_a_threshold_hold_what_stands_under_side() -> None:
    text = "goal += a(X) * SIDE(b(X)). b(X) += q(X,_)."
    facts: dict[str, Any] = {"a/1": [("x", 1.0), ("y", 3.0)], "q/2": [("x", 1, 5.0), ("y", 1, 7.0), ("y", 2, 3.0)]}
    for semiring, most in (("real", 4.0), ("viterbi", 3.0)):
        program = dg.Program(text, semiring)
        chart = program.run(facts)
        assert chart["goal"] == most
        for threshold in (most, 3.0, 0.5, 0.0):
            chosen = chart.why("goal", above=threshold).facts

            def reaches(names: list[str], program: dg.Program = program, threshold: float = threshold) -> bool:
                rows = {key: [r for r in given if text_of(key, r) in names] for key, given in facts.items()}
                again = program.run(rows)
                return "goal" in again and again["goal"] >= threshold

            assert reaches(chosen)
            assert not any(reaches([f for f in chosen if f != left]) for left in chosen)
        with pytest.raises(dg.QueryError, match="does not reach"):
            chart.why("goal", above=most + 1)


def text_of(key: str, row: tuple[Any, ...]) -> str:
    name, _, arity = key.rpartition("/")
    return f"{name}({','.join(map(str, row[: int(arity)]))})"


def test_many_sets_end_within_the_budget() -> None:
    n = 120
    facts = {"a/1": [(i, 1.0) for i in range(n)], "b/1": [(i, 1.0) for i in range(n)]}
    chart = dg.Program("goal += a(_) * b(_).", "real").run(facts)
    few = chart.why("goal", depth=0, sets=5, budget=1000)
    assert len(few.sets) == 5 and not few.complete
    every = chart.why("goal", depth=0, sets=n * n, budget=10_000_000)
    assert len(every.sets) == n * n and every.complete


def test_json_has_no_infinities() -> None:
    for semiring, nothing in (("tropical", math.inf), ("log", -math.inf)):
        chart = dg.Program("goal += a(_).", semiring).run({"a/1": [("x", nothing), ("y", 1.0)]})
        data = strict(chart.why("goal", depth=2).to_json())
        assert str(nothing) in [reason["value"] for reason in data["reasons"]]
        (best, zero) = chart.kbest("goal")
        assert strict(zero.to_json())["weight"] == str(nothing) and strict(best.to_json())["weight"] == 1.0
        again = dg.read_forest(chart.forest("goal").to_json())
        assert strict(again.to_json()) == strict(chart.forest("goal").to_json())
        assert [d.weight for d in again.kbest()] == [1.0, nothing]


def test_why_not_takes_in_what_missing_items_bind() -> None:
    text = "d(X,X+1) += s(X). goal += g * d(X,_) * d(Z,Z-1). s(X) += e(X)."
    found = dg.Program(text, "real").run({"e/1": [(3,)], "g/0": []}).why_not("goal")
    for attempt in found.attempts:
        assert "d(3,V1)" not in {part.text for part in attempt.parts}


# -- decoding


def test_decoding_never_takes_what_has_no_chance() -> None:
    chart = dg.Program("goal += a(_) * b.", "real").run(
        {"a/1": [("x", 0.0), ("x", 3.0)], "b/0": [(0.0,), (1.0,), (3.0,)]}
    )
    for by in ("sum", "product"):
        assert chart.forest("goal").decode(by=by).weight > 0


# -- semirings of one's own


def test_a_forest_of_a_semiring_of_ones_own_travels_without_its_functions() -> None:
    ring = dg.Semiring(zero=0.0, one=1.0, plus=np.maximum, times=lambda a, b: a * b, less=lambda a, b: a < b)
    chart = dg.Program("goal += a(X) * b(X).", ring).run(
        {"a/1": [("x", 0.5), ("y", 0.25)], "b/1": [("x", 0.5), ("y", 0.75)]}
    )
    forest = chart.forest("goal")
    for again in (dg.read_forest(forest.to_json()), pickle.loads(pickle.dumps(forest))):
        assert again.count() == 2 and again.semiring == "user"
        assert [i.value for i in again.instances] == [i.value for i in forest.instances]
        for ask in (again.best, again.kbest, again.sample):
            with pytest.raises(dg.QueryError, match="functions of your semiring"):
                ask()


def test_terms_tie_in_the_same_order_when_a_forest_is_read_again() -> None:
    rows = [(dg.Term("f", "b"),), (["b"],), (["a"],), ("z",), (2.5,), (10,), (9,), ([],)]
    forest = dg.Program("goal += t(X). t(X) += a(X).", "viterbi").run({"a/1": rows}).forest("goal")
    told = [d.facts() for d in forest.kbest()]
    assert told[:3] == [["a(9)"], ["a(10)"], ["a(2.5)"]]
    assert [d.facts() for d in dg.read_forest(forest.to_json()).kbest()] == told


# -- large ones


def test_a_long_chain_is_explained_checked_and_filtered_in_time() -> None:
    n = 5_000
    program = dg.Program("at(J) min= at(I) + step(I,J). at(0) = 0.")
    facts = {"step/2": [(i, i + 1, 0.5) for i in range(n)]}
    chart = program.run(facts)
    began = time.process_time()
    item = f"at({n})"
    assert len(chart.why(item).facts) == n
    assert len(chart.why(item, above=1e9).facts) == n
    several = chart.why(item, sets=3)
    assert len(several.sets[0]) == n and not several.complete
    (best,) = chart.kbest(item, simple=True)
    best.check(program, facts)
    assert time.process_time() - began < 5  # each went through all steps for each of them before


def test_expectations_around_long_cycles() -> None:
    n = 700
    program = dg.Program(CHAIN, "viterbi")
    w = math.log(0.3)
    chart = program.run({"step/2": [(i, i + 1, w) for i in range(n)] + [(i + 1, i, w) for i in range(n)]})
    real = dg.Program(CHAIN, "real").run(
        {"step/2": [(i, i + 1, 0.3) for i in range(20)] + [(i + 1, i, 0.3) for i in range(20)]}
    )
    began = time.monotonic()
    size = chart.expected("at(10)", lambda i: float(i.rule is not None))
    assert size == pytest.approx(real.expected("at(10)", lambda i: float(i.rule is not None)), rel=1e-4)
    assert chart.forest("at(10)").covariance(lambda i: float(i.rule is not None)) > 0
    assert time.monotonic() - began < 100
    long = dg.Program(CHAIN, "log")
    many = long.run({"step/2": [(i, i + 1, w) for i in range(5000)] + [(i + 1, i, w) for i in range(5000)]})
    assert many.expected("at(10)", lambda i: float(i.rule is not None)) == pytest.approx(size, rel=1e-6)


def test_threads_may_share_a_forest() -> None:
    n = 60
    facts = {"step/2": [(i, j, -0.5) for i in range(n) for j in range(i + 1, n + 1)]}
    forest = dg.Program(CHAIN, "log").run(facts).forest(f"at({n})")

    def work(seed: int) -> tuple[Any, ...]:
        weights = [d.weight for d in forest.kbest(300)]
        return (
            weights,
            forest.count(),
            len(forest.sample(500, seed=seed)),
            forest.expected(lambda _: 1.0),
            forest.best(),
        )

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(8)))
    assert all(f == found[0] for f in found)


def test_threads_may_ask_one_finished_chart_for_derivations() -> None:
    program = dg.Program("path(V) min= path(U) + edge(U,V).  path(0) = 0.")
    arcs = [(u, v, float((7 * u + 3 * v) % 11)) for u in range(25) for v in range(25) if u != v]
    chart = program.run({"edge/2": arcs})
    weights = [chart[f"path({n})"] for n in range(25)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda n: chart.best(f"path({n})").weight, list(range(25)) * 2))
    assert found == weights * 2


def test_simple_derivations_behind_a_cycle_of_gain_one_are_given_up_in_time() -> None:
    program = dg.Program("a += a. a += b. b += c(_). a += d.", "tropical")
    chart = program.run({"c/1": [("x", 1.0)], "d/0": [(5.0,)]})
    ranked = chart.kbest("a", simple=True)
    assert next(ranked).weight == 1.0
    with pytest.raises(dg.NotConverged, match="all repeat an item on their own path"):
        next(ranked)


def test_programs_of_more_tables_than_a_function_takes_have_derivations():
    """The members of a hundred tables are a base of the class that collects derivations, as of the one that runs."""
    chain = [f"p{k + 1}(X) += p{k}(X)*w(X)." for k in range(120)]
    program = dg.Program(
        ":- external near/1. p0(X) += w(X) * near(X). " + " ".join(chain), "real", {"near/1": lambda x: 0.5}
    )
    chart = program.run({"w/1": [("x", 2.0)], "p60/1": [("x", 1.0)]})
    assert chart.count("p120(x)") == 2 and chart.best("p120(x)").weight == 2.0**120
    assert [d.weight for d in chart.kbest("p120(x)", 3)] == [2.0**120, 2.0**60]


@pytest.mark.parametrize(("semiring", "nothing"), [("log", -math.inf), ("real", 0.0)])
def test_an_item_of_weight_zero_has_no_draws_and_no_expectations_but_a_value(semiring: str, nothing: float) -> None:
    program = dg.Program("goal += a(X) * b(X).", semiring)
    examples = [{"a/1": [("x", nothing)]}, {"a/1": [("x", 1.0)]}, {"a/1": [("y", 1.0)]}]
    bound = program.bind({"b/1": [("x", 1.0)]})
    chart = bound.run(examples[0])
    forest = chart.forest("goal")
    for ask in (
        lambda: chart.sample("goal"),
        lambda: chart.expected("goal", lambda instance: 1.0),
        lambda: forest.expected(lambda instance: 1.0),
        lambda: forest.covariance(lambda instance: 1.0),
        lambda: chart.entropy("goal"),
    ):
        with pytest.raises(dg.QueryError, match="weight"):
            ask()
    batch = bound.run_batch(examples, query="goal", best=1, sample=2)
    assert not batch.errors
    assert batch.values.tolist() == pytest.approx([nothing, 2.0 if semiring == "log" else 1.0, nothing])
    assert [len(best or ()) for best in batch.best] == [1, 1, 0]
    assert [draws and len(draws) for draws in batch.samples] == [None, 2, None]


def test_draws_where_all_is_masked_by_large_logs_say_so() -> None:
    chart = dg.Program("goal += a(X) * b(X).", "log").run({"a/1": [("x", -1e30)], "b/1": [("x", 1.0)]})
    with pytest.raises(dg.QueryError, match=r"are masked by facts such as one of -1e\+30"):
        chart.sample("goal")
    with pytest.raises(dg.QueryError, match="so there is no expectation"):
        chart.expected("goal", lambda instance: 1.0)
