"""Forward and backward pass as separate libraries: a first gradient compiles the backward pass alone.

A gradient after a run, in two libraries, equals to the bit that of a program that was asked for it before its first
run, in one. Costs ten seconds, nearly all compiling: twelve programs of three or more libraries.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.charts.chart import run_of
from dynagrad.charts.program import binding_of
from dynagrad.codegen.rules import context as class_context
from dynagrad.codegen.rules.functions import Functions
from dynagrad.codegen.rules.program import generate
from dynagrad.ir import variable
from dynagrad.plan import size as class_size
from dynagrad.plan.model import Derivatives, Passes
from dynagrad.plan.right_sides import as_real
from dynagrad.runtime.compiling import cache
from plan.planned import planned

PARSING = """
constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal += constit("s",0,N) * end(N).
"""
SENTENCE = {
    "rewrite/3": [("s", "s", "s", 0.25), ("s", "np", "vp", 0.5), ("np", "np", "np", 0.125)],
    "rewrite/2": [("np", "fish", 0.75), ("vp", "fish", 0.5), ("s", "fish", 0.0625)],
    "word/3": [("fish", i, i + 1) for i in range(5)],
    "end/1": [(5,)],
}
PATHS = "path(X) += start(X).\npath(Y) += path(X) * arc(X,Y).\ngoal += path(X) * stop(X)."
CYCLE = {
    "start/1": [("a", 1.0)],
    "arc/2": [("a", "b", 0.5), ("b", "c", 0.25), ("c", "a", 0.375), ("b", "b", 0.125)],
    "stop/1": [("c", 0.5)],
}
MIXED = """
far(X) max= start(X).
far(Y) max= far(X) * arc(X,Y).
goal += far(X) * stop(X).
near(X) *= start(X).
near(Y) *= arc(_,Y).
goal += lse(near(X), stop(X)).
v(Y) += exp(start(_)) * arc(_,Y).
goal += tanh(v(Y)) * stop(Y).
"""
K, Z = dg.Term("f", "x", "k"), dg.Term("f", "y", "k")
TERMS = {
    "src/1": [(K, 2e-4), (Z, 3e-4), (dg.Term("f", "x", "a"), 5e-2), (dg.Term("g", "x", "k"), 7e-4)],
    "w/1": [("a", 1.5e-4), ("k", 0.01), ("z", 0.1)],
}
# An index with constants is entered where items are sealed, before the rule that reads it is fired.
INDEXED = "p(T,Y) += src(T) * w(Y).  q(X) += w(a) * p(f(X,k),z).  goal += q(X) * w(z)."
CROSSED = "p(T) += src(T).  p(T) += w(T).  q(X) += w(a) * w(_) * p(f(X,k)).  goal += q(X)."
SWEPT = "a(X) += start(X).  a(Y) += 0.25 * tanh(a(X)) * arc(X,Y).  goal += a(X) * stop(X)."
GIVEN = "start(X) += stop(X).\npath(X) += start(X).\npath(Y) += path(X) * arc(X,Y).\ngoal += path(X) * 0.5."
CASES = {
    "constants in an index": (INDEXED, "real", TERMS),
    "constants in an index, selected": (INDEXED, "viterbi", TERMS),
    "constants in terms": (CROSSED, "real", TERMS),
    "swept": (SWEPT, None, CYCLE),
    "axioms beside rules": (GIVEN, "real", CYCLE),
    "iterated": (":- solve iterate.\n" + PATHS, "real", CYCLE),
    "popped once": (PARSING, "log", SENTENCE),
    "selected": (PARSING, "viterbi", SENTENCE),
    "solved": (PATHS, "real", CYCLE),
    "best first": (PATHS, "tropical", CYCLE),
    "aggregators and functions": (MIXED, None, CYCLE),
    "expected": (PARSING, "expectation", None),
}


def facts_of(name: str) -> dict[str, list[tuple[object, ...]]]:
    facts = CASES[name][2]
    if facts is not None:
        return facts  # type: ignore[return-value]
    return {
        key: [(*row[:-1], (row[-1], row[-1] * 2.0)) if key.startswith("rewrite") else row for row in rows]
        for key, rows in SENTENCE.items()
    }


pytestmark = [
    pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning"),
    pytest.mark.usefixtures("unplanned"),
]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources of the libraries that are asked for."""
    sources: list[str] = []
    real = cache.build

    def build(source: str, **more: object) -> object:
        sources.append(source)
        return real(source, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("dynagrad.codegen.rules.compiled.cache.build", build)
    return sources


@pytest.fixture(params=["one group", "a group a table", "rules that share functions"])
def cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How classes of large programs are cut up, for small ones."""
    if request.param == "a group a table":
        monkeypatch.setattr(class_context, "GROUP", 1)
    if request.param == "rules that share functions":
        monkeypatch.setattr(class_size, "LARGE_PROGRAM", 1)


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("name", CASES)
def test_both_classes_have_the_same_slots(name: str) -> None:
    """Nothing is compiled: charts of one class are looked at as those of the other.

    That members are the same, too, is shown by gradients: here, and of random programs in `plan/test_interpret.py`.
    """
    text, semiring, _ = CASES[name]
    plan = planned(f":- semiring {semiring}.\n{text}" if semiring else text, facts_of(name))
    taped = replace(plan, derivatives=Derivatives())
    forward = generate(taped, passes=Passes.FORWARD)
    backward = generate(taped, passes=Passes.BACKWARD, like=forward)
    assert backward.works_on(forward) and backward.works_on(generate(taped))
    assert forward.constants == backward.constants and forward.functors == backward.functors
    assert forward.weights == backward.weights


@pytest.mark.parametrize("name", ["constants in an index", "solved", "best first", "swept"])
def test_a_gradient_where_every_table_is_a_group(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, semiring, _ = CASES[name]
    facts = facts_of(name)
    whole = dg.Program(text, semiring).run(facts).gradient("goal")
    monkeypatch.setattr(class_context, "GROUP", 1)
    cut = dg.Program(text, semiring).run(facts).gradient("goal")
    for key in facts:
        assert np.array_equal(cut[key].values, whole[key].values), key


def test_a_gradient_where_rules_of_several_stages_share_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_size, "LARGE_PROGRAM", 1)
    text = "far(X) += start(X).  far(Y) += far(X) * arc(X,Y).  path(X) += far(X).  path(Y) += path(X) * arc(X,Y).  "
    text += "goal += path(X) * stop(X)."
    assert np.allclose(
        dg.Program(text, "real").run(CYCLE).gradient("goal")["stop/1"].values,
        dg.Program(text, "real").run(CYCLE)["path(c)"],
        rtol=1e-12,
    )


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_after_a_run_is_that_of_a_class_with_both_passes(name: str, built: list[str]) -> None:
    text, semiring, _ = CASES[name]
    facts = facts_of(name)
    chart = dg.Program(text, semiring).run(facts)
    forward = len(built)  # two where it turns out that a cycle has to be iterated
    assert not run_of(chart).ready().compiled.engine.goes_back
    after = chart.gradient("goal")
    taped = run_of(chart).taped
    assert len(built) == forward + 1 and taped is not None and taped.compiled.engine.goes_back

    whole = dg.Program(text, semiring).bind({})
    binding_of(whole).derivatives = Derivatives()
    first = whole.run(facts).gradient("goal")
    assert built[-1] != built[forward]
    for key in facts:
        assert np.array_equal(after[key].values, first[key].values), key


def test_the_run_that_is_made_again_has_the_library_and_the_facts_of_the_run(built: list[str]) -> None:
    bound = dg.Program(PARSING, "log").bind(SENTENCE)
    chart = bound.run()
    before = run_of(chart).ready()
    chart.gradient("goal")
    taped = run_of(chart).taped
    assert taped is not None and taped.compiled.engine.path == before.compiled.engine.path
    assert [a and a.facts for a in taped.chart.weights] == [b and b.facts for b in before.chart.weights]
    assert before.chart.report.tape == 0 < taped.chart.report.tape
    bound.run().gradient("goal")  # keeps a tape from the start
    assert len(built) == 2


def test_a_backward_class_has_the_functions_of_values_that_it_calls() -> None:
    text = ":- function halved/1.  far(X) += halved(start(X)).  goal += far(X) * stop(X)."
    facts = {"start/1": [(1, 3.0)], "stop/1": [(1, 0.5)]}
    program = dg.Program(text, functions={"halved": dg.compile(_halved)})
    plan = run_of(program.run(facts, max_pops=0)).ready().compiled.plan
    taped = replace(plan, derivatives=Derivatives())
    forward = generate(taped, passes=Passes.FORWARD)
    backward = generate(taped, passes=Passes.BACKWARD, like=forward)
    assert backward.works_on(forward)
    gradient = program.run(facts).gradient("goal")
    assert gradient["start/1"].values.tolist() == [0.125] and gradient["stop/1"].values.tolist() == [0.75]


def test_a_class_has_the_member_for_functions_of_the_class_that_it_is_like() -> None:
    """Even if it calls none: it works on charts of the other. One that calls some does not, if the other has none."""
    calling = Functions()
    calling.call([as_real(variable("x") * 2.0)], {"x": "a"}, "t", "twice")
    silent = Functions(calling)
    assert silent and silent.includes() == ["running/functions.hpp"] and silent.objects() == calling.objects()
    assert silent.write() == ([], [])
    assert not Functions(Functions()) and not Functions().objects()


def test_the_level_of_solvers_of_derivatives_is_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are many, and each is compiled for a second; those of values are few, and all programs share them.

    Results are the same to the bit. And what is precompiled hides no header that a class forgets to include.
    """
    levels: dict[bool, set[int]] = {True: set(), False: set()}
    built: dict[str, dict[str, Any]] = {}
    build = cache.build

    def noted(source: str, **options: Any) -> Path:
        built[source] = options
        for one in options["objects"]:
            if "struct System<" in one.source:
                levels["Jets" in one.source].add(one.optimise)
        return build(source, **options)

    monkeypatch.setattr(cache, "build", noted)

    def seen() -> list[Any]:
        chart = dg.Program(PATHS, "real").run(CYCLE)
        found = [chart.jvp({"arc/2": np.linspace(0.5, 2.0, 4)})["goal"], chart["goal"]]
        chart.set("arc/2", [("a", "b", 0.125)])
        chart.run()
        return [
            *found,
            chart["goal"],
            chart.jvp({"arc/2": np.ones(4)})["goal"],
            chart.gradient("goal")["arc/2"]["a", "b"],
        ]

    monkeypatch.setenv("DYNAGRAD_OPTIMISE", "0")
    found = seen()
    assert levels == {True: {0}, False: {3}}
    for source, options in built.items():
        build(f"{source}\n", **{**options, "prelude": "", "ahead": None})
    monkeypatch.setenv("DYNAGRAD_OPTIMISE", "3")
    assert seen() == found and levels == {True: {0, 3}, False: {3}}


def _halved(x: float) -> float:
    while x > 1.0:
        x = 0.5 * x
    return x
