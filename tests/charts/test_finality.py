"""Derivations of runs that ended early: those of the finished chart, or an error that names `chart.run()`; and those of
runs with pruning and beams, which add up to the values of the chart or say that they do not. Costs ten seconds.
"""

from __future__ import annotations

import math
import pickle
import random
import warnings
from functools import cache
from typing import Any

import pytest

import dynagrad as dg

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

WALKS = """
path(V) += start(V). path(V) += path(U) * arc(U,V).
pair(U,V) += path(U) * path(V) * near(U,V).
goal += path(V) * last(V). goal += pair(_,_).
"""
AGENDAS = ("auto", "fifo", "lifo", "priority")
VERBS: dict[str, Any] = {
    "best": lambda c, item: c.best(item).weight,
    "kbest": lambda c, item: [d.weight for d in c.kbest(item, 60)],
    "count": lambda c, item: c.count(item),
    "sample": lambda c, item: [d.tree() for d in c.sample(item, 5, seed=1)],
    "forest": lambda c, item: sorted(map(str, c.forest(item).instances)),
    "size": lambda c, item: c.forest_size(item),
    "expected": lambda c, item: c.expected(item, lambda i: 1.0),
    "why": lambda c, item: [str(c.why(item, depth=9))],
}


@cache
def program(text: str, semiring: str | None = "real") -> Any:
    return dg.Program(text, semiring)


def facts(seed: int, semiring: str, *, cyclic: bool = False) -> dict[str, Any]:
    generator = random.Random(seed)
    nodes = "abcde"

    def row(*key: Any) -> tuple[Any, ...]:
        weight = generator.choice((0.5, 0.25, 0.125)) / (3 if cyclic else 1)
        values = {
            "real": (weight,),
            "log": (math.log(weight),),
            "viterbi": (math.log(weight),),
            "tropical": (1 / weight,),
        }
        return (*key, *values.get(semiring, ()))

    arcs = [(u, v) for u in nodes for v in nodes if (u < v or (cyclic and u != v)) and generator.random() < 0.7]
    return {
        "start/1": [row("a"), row("b")],
        "arc/2": [row(*arc) for arc in arcs],
        "near/2": [row(u, v) for u, v in arcs[::3]],
        "last/1": [row("d"), row("e")],
    }


def asked(chart: Any, item: str, verb: str) -> Any:
    """What a verb says, or the message of the error."""
    try:
        return VERBS[verb](chart, item)
    except dg.QueryError as error:
        return str(error)


def close(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or math.isclose(a, b, rel_tol=1e-9)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    return bool(a == b)


PAIRS = [("real", agenda) for agenda in AGENDAS] + [("log", "fifo"), ("viterbi", "auto"), ("viterbi", "lifo")]
PAIRS += [("tropical", "priority"), ("boolean", "auto"), ("boolean", "lifo"), ("count", "priority")]


@pytest.mark.parametrize(("semiring", "agenda"), PAIRS)
def test_they_are_those_of_the_finished_chart_or_an_error_says_so(semiring: str, agenda: str) -> None:
    bound = program(f":- agenda {agenda}. {WALKS}", semiring).bind(facts(1, semiring))
    done = bound.run()
    items = ["goal", "path(b)", "path(d)", "pair(a,b)"]
    want = {(item, verb): asked(done, item, verb) for item in items if item in done for verb in VERBS}
    told = given = 0
    for most in range(done.stats.pops + 1):
        chart = bound.run(max_pops=most)
        for item in items:
            for verb in VERBS if item in chart else ():
                found = asked(chart, item, verb)
                if isinstance(found, str):
                    assert "chart.run()" in found and "max_pops" in found
                    told += 1
                else:
                    assert close(found, want[item, verb]), (most, item, verb)
                    given += 1
        if "goal" not in chart and most < done.stats.pops:
            assert "chart.run()" in asked(chart, "goal", "best")
    chart.run(max_pops=None)
    assert all(close(asked(chart, *key), found) for key, found in want.items())
    assert given and (told or agenda == "auto")  # in order of places each item is final when it is popped


@pytest.mark.parametrize("agenda", AGENDAS)
def test_in_a_cycle(agenda: str) -> None:
    bound = program(f":- agenda {agenda}. {WALKS}").bind(facts(2, "real", cyclic=True))
    done = bound.run()
    for most in (0, 1, 2, 3, 5, 8, 13, 40):
        chart = bound.run(max_pops=most)
        for item in ("goal", "path(a)", "path(e)"):
            for verb in ("best", "sample", "forest", "count"):
                found = asked(chart, item, verb)
                if chart.status == "done" or not isinstance(found, str):
                    assert close(found, asked(done, item, verb))
                else:
                    assert "chart.run()" in found


# An item that was popped has more to come, which its goal does not have yet.
def test_a_stack_without_any_cycle() -> None:
    text = ":- agenda lifo. x(V) += s(V). x(V) += x(U) * e(U,V). goal += x(c)."
    rows = {"s/1": [("a", 1.0), ("b", 0.5)], "e/2": [("a", "b", 0.5), ("b", "c", 0.5)]}
    chart = program(text).run(rows, max_pops=2)
    assert chart["goal"] == 0.25
    for verb in VERBS:
        assert "chart.run()" in asked(chart, "goal", verb), verb
    assert "chart.run()" in asked(pickle.loads(pickle.dumps(chart)), "goal", "kbest")
    chart.run(max_pops=None)
    assert sum(d.weight for d in chart.kbest("goal")) == chart["goal"] == 0.5


def test_until_the_item_is_final() -> None:
    for semiring in ("viterbi", "tropical"):
        bound = program("path(V) += start(V). path(V) += path(U) * arc(U,V).", semiring).bind(
            {k: v for k, v in facts(3, semiring).items() if k in ("start/1", "arc/2")}
        )
        done, chart = bound.run(), bound.run(until="path(d)")
        assert chart.status == "until"
        assert chart.best("path(d)") == done.best("path(d)")
        for verb in ("kbest", "count", "sample", "forest", "expected", "why"):  # worse ones may still come
            assert "until" in asked(chart, "path(d)", verb) and "chart.run()" in asked(chart, "path(d)", verb)
    bound = program("path(V) += start(V). path(V) += path(U) * arc(U,V).").bind(
        {k: v for k, v in facts(3, "real").items() if k in ("start/1", "arc/2")}
    )
    done, chart = bound.run(), bound.run(until="path(d)")
    for verb in VERBS:
        assert close(asked(chart, "path(d)", verb), asked(done, "path(d)", verb))


def test_a_maximum_in_plain_arithmetic_is_final_where_the_run_stops_for_it() -> None:
    text = "best(V) max= best(U) * 0.5 + w(U,V) * 0. best(a) = 0.25."
    rows = {"w/2": [("a", "b", 0.5), ("b", "d", 0.1), ("a", "d", 0.3), ("d", "e", 1.0)]}
    done, chart = program(text, None).run(rows), program(text, None).run(rows, until="best(d)")
    assert chart.best("best(d)").tree() == done.best("best(d)").tree()


def test_runs_that_met_other_limits() -> None:
    bound = program(":- agenda lifo. " + WALKS).bind(facts(1, "real"))
    with pytest.raises(dg.NotConverged) as stopped:
        bound.run(max_items=6)
    chart: Any = stopped.value.chart
    names = [i for i in ("goal", *(f"path({v})" for v in "abcde")) if i in chart]
    assert names and all("chart.run()" in str(asked(chart, i, "kbest")) for i in names)
    endless = program("n(X+1) += n(X) * half. n(0) += start.")
    with pytest.raises(dg.NotConverged) as stopped:
        endless.run({"half/0": 0.5, "start/0": 1.0}, max_items=1000)
    assert asked(stopped.value.chart, "n(3)", "best") == 0.125


def test_a_tolerance_that_is_not_met() -> None:
    ring = program("p(V) += s(V). p(V) += p(U) * e(U,V).")
    rows = {"s/1": [("a", 1.0)], "e/2": [("a", "b", 0.999), ("b", "a", 0.999)]}
    rough = ring.run(rows, tolerance=0.01)
    assert rough.status == "done" and not rough.converged
    with pytest.raises(dg.QueryError, match=r"chart\.run\(tolerance=None\)"):
        rough.kbest("p(a)")
    fine = ring.run({**rows, "e/2": [("a", "b", 0.25), ("b", "a", 0.25)]}, tolerance=1e-10)
    assert fine.converged and fine.best("p(a)").weight == 1.0
    rough.run(tolerance=None)
    assert rough.best("p(a)").weight == 1.0


def test_batches_tell_of_it_by_example() -> None:
    bound = program(":- agenda lifo. " + WALKS).bind({k: v for k, v in facts(1, "real").items() if k != "start/1"})
    starts: list[dict[str, Any]] = [{"start/1": [("a", 1.0), ("b", 0.5)]}, {"start/1": [("e", 1.0)]}]
    batch = bound.run_batch(starts, query="goal", best=3, sample=2, max_pops=2)
    assert list(batch.errors) == [0] and "chart.run()" in str(batch.errors[0])
    alone = bound.run(starts[1])
    assert [d.weight for d in batch.best[1]] == [d.weight for d in alone.kbest("goal", 3)]


# -- pruning and beams


def totals(chart: Any, item: str) -> tuple[float, bool]:
    """The sum over derivations, and whether a warning says that they leave something out or have too much."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        total = math.fsum(d.weight for d in chart.kbest(item))
    return total, any("held back" in str(w.message) for w in said)


HELD = {
    "beam": ":- beam path(V) by () keep {n}.",
    "groups": ":- beam path(V) by (V) keep 1. :- beam path(V) by () keep {n}.",
    "two predicates": ":- beam path(V) by () keep {n}. :- beam pair(U,V) by (U) keep 1.",
    "prune": ":- prune path(V) < 0.{n}.",
    "prune above": ":- prune path(V) > 0.{n}.",
    "both": ":- prune path(V) < 0.0{n}. :- beam path(V) by () keep {n}.",
}


@pytest.mark.parametrize(
    "agenda", ["", ":- agenda lifo.", ":- priority path(V) = 1."], ids=["auto", "lifo", "priority"]
)
@pytest.mark.parametrize("name", HELD)
def test_what_is_left_adds_up_or_a_warning_says_so(name: str, agenda: str) -> None:
    for n in (2, 3):
        chart = program(f"{HELD[name].format(n=n)} {agenda} {WALKS}").run(facts(1, "real"))
        assert chart.status == "done"
        for item in ("goal", *(f"path({v})" for v in "abcde")):
            if item in chart:
                total, told = totals(chart, item)
                assert told or math.isclose(total, chart[item], rel_tol=1e-12), item
                assert chart.best(item).weight <= total * (1 + 1e-12)
                for tree in (chart.best(item), *chart.sample(item, 3)):
                    assert all(i in chart for i in tree.items() if i.startswith(("path", "pair", "goal")))


def test_a_part_that_was_held_back_is_told_of() -> None:
    text = ":- agenda lifo. :- prune x(V) > 0.4. x(V) += s(V). x(V) += x(U) * e(U,V). goal += x(c)."
    rows = {"s/1": [("a", 0.3), ("b", 0.25)], "e/2": [("a", "b", 1.0), ("b", "c", 0.5)]}
    chart = program(text).run(rows)
    total, told = totals(chart, "goal")
    assert (total, told) == (0.275, True) and chart["goal"] == 0.125
    with pytest.warns(dg.ProgramWarning, match=r"held back a part of x\(b\)"):
        draws = chart.sample("goal", 2000, seed=1)
    share = sum("x(a)" in d.items() for d in draws) / 2000
    assert share == pytest.approx(0.15 / 0.275, abs=0.04)  # the draws are from what is enumerated


# -- values that come without a chart ----------------------------------------------------------------------------------


CHAIN = "at(0). at(I+1) += at(I) * step(I). goal += at(I) * last(I). first += at(1)."
LONG = 40
STOPPED = "the run stopped early, at its limit on max_pops, and goal is not known to be final"


def given() -> dict[str, Any]:
    return {"step/1": [(i, 0.5) for i in range(LONG)], "last/1": [(LONG,)]}


def told(call: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        return call(), [str(w.message) for w in said]


@pytest.mark.parametrize("more", [{}, {"gradient": ["step/1"]}, {"best": 1}, {"sample": 2}], ids=str)
def test_batches_say_which_values_are_not_final(more: Any) -> None:
    chain, rows = program(CHAIN), given()
    bound = chain.bind({"step/1": rows["step/1"]}) if "gradient" in more else chain
    one = {"last/1": rows["last/1"]} if "gradient" in more else rows
    batch, said = told(lambda: bound.run_batch([one, one], query="goal", max_pops=5, **more))
    assert batch.values.tolist() == [0.0, 0.0] and not batch.errors
    assert len(said) == 1 and said[0].startswith(f"example 0: {STOPPED}") and "1 more example likewise" in said[0]
    for limits in ({}, {"max_pops": 10**6}, {"until": "goal"}, {"tolerance": 1e-3}, {"timeout": 60.0}):
        whole, said = told(lambda limits=limits: bound.run_batch([one, one], query="goal", **limits, **more))
        assert (whole.values.tolist(), said) == ([0.5**LONG] * 2, []), limits
    late, said = told(lambda: chain.run_batch([given()], query="goal", until="at(3)"))
    assert late.values.tolist() == [0.0] and len(said) == 1 and "at the item of until" in said[0]


def test_functions_say_which_values_are_not_final() -> None:
    chain, rows, x = program(CHAIN), given(), [0.5] * LONG
    for limits, final in (({"max_pops": 5}, False), ({"max_pops": 10**6}, True), ({"until": "goal"}, True), ({}, True)):
        f = chain.function("goal", inputs=["step/1"], facts=rows, **limits)
        for call in (lambda f=f: f(x), lambda f=f: f.value_and_grad(x)[0], lambda f=f: f.jvp([x], [x])[0]):
            value, said = told(call)
            assert value == (0.5**LONG if final else 0.0), limits
            assert [text.startswith(STOPPED) for text in said] == ([] if final else [True]), limits
        third, said = told(lambda f=f: f.derivative([x], [[x]] * 3))  # along x, of a product of so many factors
        assert third == pytest.approx(LONG * (LONG - 1) * (LONG - 2) * 0.5**LONG if final else 0.0) and final == (
            not said
        )


def test_a_gradient_by_nothing_is_refused() -> None:
    with pytest.raises(dg.Error, match="gradient names predicates"):
        program(CHAIN).run_batch([given()], query="goal", gradient=[])
