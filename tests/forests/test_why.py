"""Why an item is there, and why one is not: sets of facts that are irreducible, and what is missing, by trying it out.

Costs two seconds: programs are run again with fewer facts, and with more.
"""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import pytest

import dynagrad as dg
from dynagrad.forests.absence.attempts import Attempt
from dynagrad.rules.parse import parse_item
from dynagrad.rules.syntax import Float, Integer, Symbol, Variable

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")  # of predicates without facts

PATHS = "path(V) min= path(U) + edge(U,V).  path(a) = 0."
CKY = """
constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal += constit(s,0,N) * end(N).
"""
GRAMMAR = {
    "rewrite/3": [("s", "np", "vp", 1.0), ("np", "np", "pp", 0.2), ("vp", "v", "np", 0.7), ("vp", "vp", "pp", 0.3)]
    + [("pp", "p", "np", 1.0), ("np", "det", "n", 0.5)],
    "rewrite/2": [("np", "i", 0.3), ("v", "saw", 1.0), ("det", "the", 1.0), ("n", "man", 0.5), ("n", "hill", 0.5)]
    + [("p", "on", 1.0)],
}


def sentence(text: str) -> dict[str, Any]:
    words = text.split()
    return {"word/3": [(w, i, i + 1) for i, w in enumerate(words)], "end/1": [(len(words),)]}


# -- why


def test_all_instances_with_their_shares() -> None:
    program = dg.Program("goal += a(X) * b(X). goal += 2 * c.", "real")
    chart = program.run({"a/1": [("x", 1.0), ("y", 3.0)], "b/1": [("x", 2.0), ("y", 2.0)], "c/0": [(1.0,)]})
    why = chart.why("goal", depth=2, goal="goal")
    assert why.value == 10.0 and why.reasons is not None
    assert [(r.text, r.share, r.value, r.change) for r in why.reasons] == [
        ("goal += a(y) * b(y)", 0.6, 6.0, 6.0),
        ("goal += a(x) * b(x)", 0.2, 2.0, 2.0),
        ("goal += 2 * c", 0.2, 2.0, 2.0),
    ]
    inner = why.reasons[0].antecedents[0].reasons
    assert inner is not None and inner[0].change == 6.0
    assert math.isclose(sum(r.share or 0.0 for r in why.reasons), 1.0)
    data = json.loads(why.to_json())
    assert data["reasons"][0]["antecedents"][0]["item"] == "a(y)" and data["sets"] == [["a(x)", "b(x)"]]
    assert why.svg().startswith("<svg") and "60%" in str(why)


def test_shares_in_log_and_where_plus_selects() -> None:
    facts = {"a/1": [("x", math.log(1.0)), ("y", math.log(3.0))]}
    why = dg.Program("goal += a(_).", "log").run(facts).why("goal", goal="goal")
    assert why.reasons is not None
    assert [round(r.share or 0, 12) for r in why.reasons] == [0.75, 0.25]
    assert [round(r.change or 0, 12) for r in why.reasons] == [0.75, 0.25]
    why = dg.Program(PATHS).run({"edge/2": [("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 9.0)]}).why("path(c)")
    assert why.reasons is not None and [r.share for r in why.reasons] == [1.0, 0.0]


def text_of(key: str, row: tuple[Any, ...]) -> str:
    return f"{key.rpartition('/')[0]}({','.join(map(str, row[: int(key[-1])]))})"


def subsets(program: dg.Program, facts: dict[str, list[Any]], item: str) -> set[frozenset[str]]:
    """All irreducible sets of facts that derive an item, by running the program on every set of facts."""
    every = [(key, row) for key, rows in facts.items() for row in rows]
    found: set[frozenset[str]] = set()
    for size in range(len(every) + 1):
        for chosen in itertools.combinations(every, size):
            names = frozenset(
                f"{key.rpartition('/')[0]}({','.join(map(str, row[: int(key[-1])]))})" for key, row in chosen
            )
            if any(s <= names for s in found):
                continue
            given: dict[str, list[Any]] = {key: [] for key in facts}
            for key, row in chosen:
                given[key].append(row)
            if item in program.run(given):
                found.add(names)
    return found


def test_all_sets_of_facts_that_suffice_are_those_of_trying_every_set() -> None:
    program = dg.Program("path(V) += path(U) * edge(U,V). path(a) += 1. out += path(d) * SIDE(ok(_)).", "viterbi")
    edges = [("a", "b"), ("b", "c"), ("c", "b"), ("a", "c"), ("c", "d"), ("b", "d")]
    facts: dict[str, list[Any]] = {"edge/2": edges, "ok/1": [("x",), ("y",)]}
    chart = program.run(facts)
    why = chart.why("out", sets=100)
    assert why.complete
    assert {frozenset(s) for s in why.sets} == subsets(program, facts, "out")
    assert [len(s) for s in why.sets] == sorted(len(s) for s in why.sets)
    few = chart.why("out", sets=3)
    assert len(few.sets) == 3 and not few.complete and few.sets == why.sets[:3]
    one = chart.why("out").facts
    assert frozenset(one) in {frozenset(s) for s in why.sets}
    short = chart.why("out", sets=4, budget=3)
    assert not short.complete and all(frozenset(s) in {frozenset(s) for s in why.sets} for s in short.sets)


def test_one_set_is_irreducible_in_a_parse() -> None:
    program = dg.Program(CKY, "real")
    facts = GRAMMAR | sentence("i saw the man on the hill")
    chosen = program.run(facts).why("goal").facts

    def derives(names: list[str]) -> bool:
        given: dict[str, list[Any]] = {}
        for key, rows in facts.items():
            given[key] = [r for r in rows if text_of(key, r) in names]
        return "goal" in program.run(given)

    assert derives(chosen)
    assert not any(derives([f for f in chosen if f != left]) for left in chosen)


def test_facts_for_a_value_above_a_threshold() -> None:
    program = dg.Program("goal += a(X) * b(X).", "real")
    facts = {"a/1": [("x", 1.0), ("y", 3.0), ("z", 0.5)], "b/1": [("x", 2.0), ("y", 2.0), ("z", 1.0)]}
    chart = program.run(facts)  # 2 + 6 + 0.5
    assert chart.why("goal", above=5.9).facts == ["a(y)", "b(y)"]
    assert chart.why("goal", above=7.0).facts == ["a(x)", "a(y)", "b(x)", "b(y)"]
    with pytest.raises(dg.QueryError, match="does not reach"):
        chart.why("goal", above=9.0)
    chart = dg.Program(PATHS).run({"edge/2": [("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 9.0)]})
    assert chart.why("path(c)", above=4.0).facts == ["edge(a,b)", "edge(b,c)"]
    assert chart.why("path(c)", above=10.0).facts in (["edge(a,c)"], ["edge(a,b)", "edge(b,c)"])
    chart = dg.Program("goal += a(_).", "boolean").run({"a/1": [("x",)]})
    with pytest.raises(dg.QueryError, match="above= asks for"):
        chart.why("goal", above=1.0)


# -- why not


def completed(attempt: Attempt) -> dict[str, list[tuple[Any, ...]]]:
    """The facts that an attempt says are missing, with a new symbol for each of their variables."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for text in attempt.facts:
        item = parse_item(text)
        row: list[Any] = []
        for term in item.arguments:
            match term:
                case Variable(name=name):
                    row.append(f"new_{name.lower()}")
                case Symbol(name=value) | Integer(value=value) | Float(value=value):
                    row.append(value)
                case _:
                    raise TypeError(term)
        found.setdefault(item.key, []).append((*row, 1.0) if item.predicate == "rewrite" else tuple(row))
    return found


def test_what_is_missing_derives_the_item_when_it_is_added() -> None:
    program = dg.Program(CKY, "real")
    for text in ("i saw the dog", "i saw the man of the hill", "saw the man", "i saw the", "the man saw i on"):
        facts = GRAMMAR | sentence(text)
        found = program.run(facts).why_not("goal", seconds=20)
        assert found.complete and found.attempts, text
        for attempt in found.attempts:
            assert found.missing == len(attempt.missing) == len(attempt.facts), (text, attempt)
            more = completed(attempt)
            given = {key: [*facts.get(key, []), *more.get(key, [])] for key in {*facts, *more}}
            assert "goal" in program.run(given), (text, attempt.facts)


def test_an_unknown_word_is_named() -> None:
    chart = dg.Program(CKY, "real").run(GRAMMAR | sentence("i saw the dog"))
    found = chart.why_not("goal")
    assert found.missing == 1 and found.complete
    assert ["rewrite(n,dog)"] in [a.missing for a in found.attempts]
    assert "no rewrite/2 has dog as argument 2" in str(found)
    data = json.loads(found.to_json())
    assert data["complete"] and data["attempts"][0]["parts"]
    assert found.svg().startswith("<svg")


def test_comparisons_and_negated_items_are_named() -> None:
    program = dg.Program("goal += a(I) for I < 3, not stop(I). other += a(I) * b(I+1).", "real")
    chart = program.run({"a/1": [(5,)], "stop/1": [(7,)], "b/1": [(1,)]})
    assert [a.missing for a in chart.why_not("goal").attempts] == [["5 < 3"]]
    chart = program.run({"a/1": [(2,)], "stop/1": [(2,)], "b/1": [(1,)]})
    assert [a.missing for a in chart.why_not("goal").attempts] == [["not stop(2)"]]
    assert sorted(a.missing for a in chart.why_not("other").attempts) == [["a(0)"], ["b(3)"]]


def test_unbound_variables_stay_variables() -> None:
    chart = dg.Program("goal += a(X) * b(X). c(X) += d(X,Y) * e(Y).", "real").run(
        {"a/1": [], "b/1": [], "d/2": [], "e/1": []}
    )
    found = chart.why_not("goal")
    assert found.missing == 2 and found.attempts[0].missing == ["a(X)", "b(X)"]
    assert chart.why_not("c(Z)").attempts[0].missing == ["d(Z,Y)", "e(Y)"]


def test_limits_of_the_search() -> None:
    program = dg.Program(CKY, "real")
    chart = program.run(GRAMMAR | sentence("i saw the dog on the hill"))
    assert not chart.why_not("goal", bindings=3).complete
    assert not chart.why_not("goal", depth=1).complete
    assert chart.why_not("goal", missing=1, depth=40).complete
    with pytest.raises(dg.QueryError, match=r"is derived; chart\.why"):
        chart.why_not("constit(np,0,1)")
    with pytest.raises(dg.QueryError, match="no predicate"):
        chart.why_not("nowhere")
    assert chart.why_not("word(fox,0,1)").attempts[0].parts[0].kind == "missing"
    cyclic = dg.Program("p(X) += p(Y) * e(Y,X).", "viterbi").run({"e/2": [("a", "b"), ("b", "a")]})
    found = cyclic.why_not("p(a)")
    assert not found.attempts and found.complete and "no rule derives it" in str(found)
