"""Charts whose facts change: after any sequence of changes a chart equals a fresh run with the facts that remain.

Costs three seconds, mostly compiling. Nodes of graphs are names, but in `path`: between numbers, plans look for an
order, and each graph has its own.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

CKY = """
constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += rewrite(X,Y) * constit(Y,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal += constit(s,0,N) * end(N).
"""
REACH = "reach(X,Y) += edge(X,Y). reach(X,Y) += reach(X,Z) * reach(Z,Y). ok(X) += reach(X,X). total += reach(X,Y)."
PATH = "path(V) min= path(U) + edge(U,V). path(0) = 0. far(V) min= path(V) + path(V) + edge(V,V)."
TERMS = """
need([a]) += start.
need(T) += need([X|T]) * e(X).
need([X,Y|T]) += need([Y|T]) * e2(X,Y).
first(X) += need([X|_]).
"""
LAYERS = "h(I,J) += w(I,J) * x(J). y(I) += tanh(h(I,J)). z += y(I) * y(I) * a(I)."
MIXED = ":- input p/1. p(X) += q(X) * 2. p(Y) += p(X) * e(X,Y) * 0.1. s += p(X) * p(X)."

Row = tuple[Any, ...]
Maker = Callable[[random.Random, Any], Row]


def cky_facts(r: random.Random) -> dict[str, Callable[[Any], Row]]:
    labels, words = ["s", "np"], ["x", "y"]

    def unary(v: Any) -> Row:
        return (r.choice(labels), r.choice(words), v) if r.random() < 0.8 else ("s", "np", v)

    def word(v: Any) -> Row:
        start = r.randint(0, 5)
        return (r.choice(words), start, start + 1, v)

    return {
        "rewrite/2": unary,
        "rewrite/3": lambda v: (r.choice(labels), r.choice(labels), r.choice(labels), v),
        "word/3": word,
        "end/1": lambda v: (r.randint(3, 6), v),
    }


def reach_facts(r: random.Random) -> dict[str, Callable[[Any], Row]]:
    return {"edge/2": lambda v: (r.choice("abcdef"), r.choice("abcdef"), v)}


def numbered_facts(r: random.Random) -> dict[str, Callable[[Any], Row]]:
    """Upwards at first, so that there is an order, until a change breaks it."""
    earlier = itertools.count()

    def edge(v: Any) -> Row:
        low, high = sorted(r.sample(range(6), 2))
        return (low, high, v) if next(earlier) < 10 or r.random() < 0.5 else (high, low, v)

    return {"edge/2": edge}


def layer_facts(r: random.Random) -> dict[str, Callable[[Any], Row]]:
    return {
        "w/2": lambda v: (r.randint(0, 2), r.randint(0, 2), v),
        "x/1": lambda v: (r.randint(0, 2), v),
        "a/1": lambda v: (r.randint(0, 2), v),
    }


def term_facts(r: random.Random) -> dict[str, Callable[[Any], Row]]:
    def pair(v: Any) -> Row:
        n = r.randint(1, 6)
        return ("abcdefgh"[n], "abcdefgh"[n - 1], v)

    return {"start/0": lambda v: (v,), "e/1": lambda v: (r.choice("abc"), v), "e2/2": pair}


def mixed_facts(r: random.Random) -> dict[str, Callable[[Any], Row]]:
    return {
        "q/1": lambda v: (r.choice("abcdef"), v),
        "p/1": lambda v: (r.choice("abcdef"), v),
        "e/2": lambda v: (r.choice("abcd"), r.choice("efg"), v),
    }


VALUES: dict[str | None, Callable[[random.Random], Any]] = {
    "boolean": lambda r: True,
    "count": lambda r: r.randint(0, 3),
    "viterbi": lambda r: -r.random(),
    "log": lambda r: -1 - r.random(),
    "tropical": lambda r: 3 * r.random(),
    "real": lambda r: r.choice([0.0, 0.1, 0.2 * r.random()]),
    None: lambda r: 3 * r.random(),
}
EXACT = {"boolean", "count", "viterbi", "tropical"}

CASES = [
    *((CKY, s, cky_facts) for s in ("real", "viterbi", "count")),
    *((REACH, s, reach_facts) for s in ("boolean", "tropical")),
    (PATH, None, numbered_facts),
    (TERMS, "real", term_facts),
    (TERMS, "log", term_facts),
    (LAYERS, None, layer_facts),
    (MIXED, "real", mixed_facts),
]
IDS = [
    "cky-real",
    "cky-viterbi",
    "cky-count",
    "reach-boolean",
    "reach-tropical",
    "path",
    "terms",
    "terms-log",
    "layers",
    "mixed",
]


def items(chart: dg.Chart, keys: tuple[str, ...]) -> dict[Any, Any]:
    return {(key, *row[:-1]): row[-1] for key in keys for row in chart.table(key)}


@pytest.mark.parametrize(("source", "semiring", "facts"), CASES, ids=IDS)
def test_a_changed_chart_equals_a_fresh_run(source, semiring, facts):
    r = random.Random(f"{source}{semiring}")
    program = dg.Program(source, semiring=semiring)
    make = facts(r)

    def value() -> Any:
        return VALUES[semiring](r)

    exact = semiring in EXACT or source == PATH
    now = {key: [f(value()) for _ in range(r.randint(4, 8))] for key, f in make.items()}
    shared = [key for key in now if r.random() < 0.5]
    bound = program.bind({key: now[key] for key in shared})
    chart = bound.run({key: rows for key, rows in now.items() if key not in shared})
    for _ in range(5):
        for _ in range(r.randint(1, 2)):
            key = r.choice(list(make))
            row = make[key](value())
            match r.choice(["add", "retract", "set"]):
                case "add":
                    chart.add(key, [row])
                    now[key].append(row)
                case "set":
                    chart.set(key, [row])
                    now[key] = [x for x in now[key] if x[:-1] != row[:-1]] + [row]
                case _ if now[key]:
                    gone = r.choice(now[key])[:-1]
                    chart.retract(key, [gone])
                    now[key] = [x for x in now[key] if x[:-1] != gone]
        chart.run()
        got, fresh = items(chart, program.predicates), items(program.run(now), program.predicates)
        assert got.keys() == fresh.keys()
        for item, wanted in fresh.items():
            if exact:
                assert got[item] == wanted, item
            else:
                assert got[item] == pytest.approx(wanted, rel=2e-11, abs=2e-11), item


def test_what_a_change_does_not_reach_is_not_computed_again():
    n = 60
    program = dg.Program(CKY.replace("constit(X,I,K) += rewrite(X,Y) * constit(Y,I,K).\n", ""), semiring="log")
    grammar = {
        "rewrite/2": [("s", "x", -1.0)],
        "rewrite/3": [("s", "s", "s", -1.5)],
    }
    words = [("x", i, i + 1) for i in range(n)]
    chart = program.bind(grammar).run({"word/3": words, "end/1": [(n,), (n + 1,)]})
    chart.add("word/3", [("x", n, n + 1)])
    chart.run()
    fresh = program.run({**grammar, "word/3": [*words, ("x", n, n + 1)], "end/1": [(n,), (n + 1,)]})
    assert chart["goal"] == pytest.approx(fresh["goal"], rel=1e-12)
    assert chart.stats.pops < fresh.stats.pops / 10  # the spans that end at the new word, and goal


def test_the_shared_facts_of_other_charts_stay():
    bound = dg.Program("total += a(X).").bind({"a/1": {"x": 1.0}})
    first, second = bound.run(), bound.run()
    first.add("a/1", {"y": 2.0})
    first.run()
    assert (first["total"], second["total"], bound.run()["total"]) == (3.0, 1.0, 1.0)


def test_changes_of_programs_with_negation_run_afresh():
    program = dg.Program("free(X) |= node(X) for not taken(X). taken(X) |= hold(X).")
    chart = program.run({"node/1": [("a", True), ("b", True)], "hold/1": [("a", True)]})
    assert [row[0] for row in chart.table("free/1")] == ["b"]
    chart.set("hold/1", [("b", True)])
    chart.retract("hold/1", [("a",)])
    assert [row[0] for row in chart.run().table("free/1")] == ["a"]
    assert np.isfinite(chart.stats.seconds)


def test_what_fails_in_a_change_fails_again_until_the_facts_are_mended():
    chart = dg.Program("p(I*2) += q(I).", semiring="real").run({"q/1": [(1,), (2,)]})
    chart.add("q/1", [(2**30,)])
    for _ in range(2):
        with pytest.raises(dg.ValueRangeError):
            chart.run()
    chart.retract("q/1", [(2**30,)])
    assert list(chart.run().query("p(X)")) == [(2, 1.0), (4, 1.0)]


def test_a_sum_that_a_change_makes_too_large_is_an_error():
    chart = dg.Program("s += q(_) * q(_).", semiring="real").run({"q/1": [(1, 1.0), (2, 1.0)]})
    chart.set("q/1", [(1, 1e200)])
    for _ in range(2):
        with pytest.raises(dg.ValueRangeError):
            chart.run()


def test_adding_no_facts_changes_nothing() -> None:
    program = dg.Program("goal += x(I) * w(I,J) * x(J) for I < J.")
    chart = program.run({"x/1": [(0, 2.0), (1, 3.0)], "w/2": {(0, 1): 5.0}})
    for nothing in ({}, [], np.zeros((0, 0))):
        chart.add("w/2", nothing)
        assert chart.run()["goal"] == 30.0


# -- room --------------------------------------------------------------------------------------------------------------

ROOMS = {
    "solved": (":- semiring real. reach(X,Y) += edge(X,Y). reach(X,Y) += reach(X,Z) * edge(Z,Y).", "reach(0,2)"),
    "ordered": ("path(V) min= path(U) + edge(U,V). path(0) = 0.", "path(2)"),
}


def _failing_once(usual: Callable[..., Any], error: Exception, failed: list[bool]) -> Callable[..., Any]:
    def function(*given: Any, **more: Any) -> Any:
        if failed:
            return usual(*given, **more)
        failed.append(True)
        raise error

    return function


@pytest.mark.parametrize("phase", ["restore", "change", "swap", "run"])
@pytest.mark.parametrize("name", list(ROOMS))
def test_where_a_change_has_no_room_a_fresh_run_is_made(name: str, phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from dynagrad.runtime import engine

    source, item = ROOMS[name]
    chart = dg.Program(source).run({"edge/2": [(0, 1, 0.5), (1, 2, 0.25)]})
    for limited in (True, False):
        failed: list[bool] = []
        usual = getattr(engine.NativeChart, phase)
        error = engine.out_of_memory(engine.Failure.LIMITED if limited else engine.Failure.EXHAUSTED)
        monkeypatch.setattr(engine.NativeChart, phase, _failing_once(usual, error, failed))
        value = 0.5 if limited else 0.125
        chart.set("edge/2", [(0, 1, value)])
        wanted = value * 0.25 if name == "solved" else value + 0.25
        assert chart.run()[item] == pytest.approx(wanted)
        assert failed or (name, phase) == ("solved", "swap"), "nothing was changed in place"
        monkeypatch.undo()


def test_a_chart_that_is_brought_up_to_date_has_a_limit_on_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from dynagrad.runtime import engine

    chart = dg.Program(ROOMS["ordered"][0]).run({"edge/2": [(0, 1, 0.5), (1, 2, 0.25)]})
    rooms: list[Any] = []
    made = engine.World.__init__

    def spied(self: Any, of: Any, base: Any = None, room: int | None = None) -> None:
        made(self, of, base, room)
        if base is not None:  # the world of a chart, over that of its shared facts
            rooms.append(room)

    monkeypatch.setattr(engine.World, "__init__", spied)
    chart.set("edge/2", [(0, 1, 1.0)])
    assert chart.run()["path(2)"] == 1.25
    assert rooms and all(rooms)


def test_facts_that_are_left_may_be_of_another_kind_than_those_that_were_bound() -> None:
    """Where a symbol, a number and a term may stand, and the only one of its kind goes, and comes again."""
    kinds: tuple[Any, ...] = ("x", 1, 0.5, dg.Term("f", 1))
    program = dg.Program("d(X) += a(X) * b(X).", "real")
    for gone, left, way in itertools.product(kinds, kinds, range(3)):
        facts = {"a/1": [(gone, 2.0)], "b/1": [(left, 3.0)]}
        bound = (facts, {"a/1": facts["a/1"]}, {})[way]
        chart = program.bind(bound).run({key: rows for key, rows in facts.items() if key not in bound})
        chart.retract("a/1", [(gone,)])
        assert list(chart.run().query("d(X)")) == []
        chart.add("a/1", [(left, 4.0)])
        assert list(chart.run().query("d(X)")) == [(left, 12.0)]
        assert list(chart.gradient(("d", left))["a/1"]) == [(left, 3.0)]
        chart.add("a/1", [(gone, 1.0)])
        assert dict(chart.run().query("d(X)")) == {left: 15.0 if gone == left else 12.0}
