"""Programs pasted from papers, textbooks and other languages: which notation is accepted, and what it means.

Costs fifteen seconds: about ten programs are compiled, each of which serves many cases.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Mapping
from typing import Any

import pytest

import dynagrad as dg
from dynagrad.charts.program import context_of
from oracle import close, evaluate

T = dg.Term


def said(call: Any) -> list[str]:
    """The warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, dg.ProgramWarning)]


# -- numbers, comparisons and powers -----------------------------------------------------------------------------------

SPELLINGS = """
    edge(a,b).  edge(b,c).  two(X,Z) += edge(X,Y) * edge(Y,Z).
    half = .5.  less = -.5e1 + .25.  at(.5) += half.
    power = three ** 2.  tower = 2 ** three ** 2 - 2 ^ three ^ 2.  minus = -three ** 2.
    low(X) += number(X) for X <= 2.  inside(X) += number(X) for 0 < X < 3.  outside(X) += number(X) for 3 > X > 0 >= X.
    chosen(X) = if 0 < number(X) <= 20 then 1 else 2.
    chain = if 1 < three < 4 < 5 < 6 then 1 else 0.
    count += 1 for number(_).
    square(X,X) :- number(X), X > 0, not outside(X).
    next(Y) :- number(X), Y = X + 1.
"""


@pytest.fixture(scope="module")
def spellings() -> dg.Chart:
    facts = {"three/0": 3.0, "number/1": [(0, 0.0), (1, 10.0), (2, 20.0), (3, 30.0)]}
    return dg.Program(SPELLINGS).run(facts)


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ("two(a,c)", 1.0),
        ("half", 0.5),
        ("less", -4.75),
        ("at(0.5)", 0.5),
        ("at(.5)", 0.5),
        ("power", 9.0),
        ("tower", 0.0),
        ("minus", -9.0),
        ("low(2)", 20.0),
        ("low(3)", 0.0),
        ("inside(1)", 10.0),
        ("inside(0)", 0.0),
        ("inside(3)", 0.0),
        ("chosen(0)", 2.0),
        ("chosen(2)", 1.0),
        ("chosen(3)", 2.0),
        ("chain", 1.0),
        ("count", 4.0),
        ("square(3,3)", 1.0),
        ("square(0,0)", 0.0),
        ("next(4)", 1.0),
    ],
)
def test_spellings(spellings: dg.Chart, item: str, value: float) -> None:
    assert spellings[item] == value


@pytest.mark.parametrize(
    "text", ["p += q .5.", "p = 1.5.5.", "p = 1..5.", "p += q * .", "p += q * * r.", "p += q ** ."]
)
def test_what_is_still_no_number_and_no_power(text: str) -> None:
    with pytest.raises(dg.SyntaxError, match=r"line 1, column"):
        dg.Program(text)


@pytest.mark.parametrize("place", ["{0} {1} {2}", "{1} {0} {2}", "{1} {2} {0}"])
def test_a_semiring_is_declared_in_any_place(place: str) -> None:
    text = place.format(":- semiring viterbi.", "a = 0.25.", "b += a * a.")
    assert dg.Program(text).semiring == "viterbi"


# -- clauses -----------------------------------------------------------------------------------------------------------

CLAUSES = """
    need(a).
    need(Y) :- seen(X), edge(X,Y).
    path(X,Y) :- edge(X,Y), X != Y.
    path(X,Z) :- path(X,Y), path(Y,Z).
    edge(X,Y) :- both, edge(Y,X).
    alone(X) :- weight(X), not edge(X,_).
    seen(X) += weight(X) for need(X).
    seen(Y) += seen(X) * arc(X,Y) for need(Y).
    total += path(X,_) * weight(X).
    total += seen(X) * need(X) * arc(X,_).
    total += alone(X) * weight(X).
"""
ONES: Mapping[str, Any] = {"real": 1.0, "log": 0.0, "viterbi": 0.0, "tropical": 0.0, "boolean": True, "count": 1}


def _facts(semiring: str, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)

    def number() -> Any:
        if semiring == "expectation":
            return (0.3 * rng.random(), rng.random())
        return {"boolean": True, "count": rng.randint(1, 3), "log": -2.0 - rng.random(), "viterbi": -rng.random()}.get(
            semiring, 0.3 * rng.random()
        )

    ring = "abcd" if semiring != "count" else "ab"  # there, a cycle has no finite value
    arcs = sorted({(rng.choice(ring), rng.choice(ring)) for _ in range(5)} | {("a", "b")})
    if semiring == "count":
        arcs = [("a", "b"), ("b", "c")]
    return {
        "edge/2": arcs,
        "arc/2": [(*arc, number()) for arc in arcs],
        "weight/1": [(x, number()) for x in "abcde"],
        **({"both/0": [()]} if seed % 2 and semiring != "count" else {"both/0": []}),
    }


@pytest.mark.parametrize("semiring", [*ONES, "expectation"])
def test_a_clause_gives_each_head_one_in_every_semiring(semiring: str) -> None:
    program = dg.Program(":- input both/0." + CLAUSES, semiring)
    for seed in range(4):
        facts = _facts(semiring, seed)
        chart = program.run(facts)
        expected = evaluate(context_of(program).rules.source, facts, semiring=semiring)
        for (key, row), value in expected.items():
            assert close(chart[(key.rpartition("/")[0], *row)], value), (key, row, facts)
        for item in ("path(a,b)", "need(a)", "alone(e)", "edge(a,b)"):
            assert chart[item] == ONES.get(semiring, (1.0, 0.0))
        assert "path(a,e)" not in chart


@pytest.mark.parametrize("semiring", ["real", "log", "tropical"])
def test_clauses_in_gradients_and_changes(semiring: str) -> None:
    program = dg.Program(":- input both/0." + CLAUSES, semiring)
    facts = _facts(semiring, 3)
    chart = program.run(facts)
    gradient = chart.gradient("total")
    assert not gradient["edge/2"].values.any()  # whether something is derived does not change by degrees
    for key in ("weight/1", "arc/2"):
        for n, row in enumerate(facts[key]):
            up, down = (
                program.run({**facts, key: [*facts[key][:n], (*row[:-1], row[-1] + step), *facts[key][n + 1 :]]})
                for step in (1e-6, -1e-6)
            )
            slope = (up["total"] - down["total"]) / 2e-6
            assert gradient[key].values[n] == pytest.approx(slope, rel=1e-4, abs=1e-6)
    chart.retract("edge/2", [facts["edge/2"][-1]])
    fresh = program.run({**facts, "edge/2": facts["edge/2"][:-1]})
    assert chart.run()["total"] == pytest.approx(fresh["total"], rel=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p(X) :- q(X).  p(X) += r(X).", r"aggregated with `\+=` here, but with `:-` in line 1"),
        (":- semiring log. p(X) :- q(X).  p(X) += r(X).", r"aggregated with `\+=` here, but with `:-` in line 1"),
        (":- semiring log. p(X) |= q(X).", r"`\|=` is for programs without a semiring"),
        (":- semiring log. p(X) :- q(X).  p(a) = 0.5.", "worth one, and a number cannot be asserted"),
        (":- semiring log. :- transient p/1. p(X) :- q(X). r += p(X).", "worth one, however often it is derived"),
        ("p(X) :- q(X), 3.", "A condition compares arguments"),
    ],
)
def test_clauses_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(dg.ProgramError if "condition" not in message else dg.SyntaxError, match=message):
        dg.Program(text)


def test_values_of_facts_that_clauses_pass_over_are_a_warning() -> None:
    program = dg.Program("edge(X,Y) :- edge(Y,X).  n += edge(_,_).", "real")
    (text,) = said(lambda: program.run({"edge/2": [("a", "b", 0.5)]}))
    assert text.startswith("`edge/2` is defined by `:-`, so each of its items is worth one")
    assert said(lambda: program.run({"edge/2": [("a", "b")]})) == []
    assert program.run({"edge/2": [("a", "b"), ("a", "b")]})["n"] == 2.0


# -- compound terms beside integers ------------------------------------------------------------------------------------

MIXED = """
    p(I+1) += q(I).  p(f(X)) += q(X).  p([X|R]) += list([X|R]).
    whole += p(_+1).  wrapped += p(f(_)).
    low(X) += p(X) for X < 3.  pair(X,Y) += p(X) * p(Y) for X == Y+1.
    other(X,Y) += p(X) * q(Y) for X != Y+1.
    m(f(0)) = 1.  m(0) = 1.  m(I+1) += m(I) for I < 5.  reached(I) += m(I) for I >= 0.
    gone(X) += q(X) for not p(X+2).
    given(I) += given_as(I+1).  given_as_term += given_as(f(_)).
    total += low(X) * pair(X+1,X).  total += wrapped.
"""


@pytest.fixture(scope="module")
def mixed() -> dg.Chart:
    facts = {
        "q/1": [(1, 5.0), (2, 1.0)],
        "list/1": [([1, 2],)],
        "given_as/1": [(1, 2.0), (T("f", "a"), 3.0), (T("g", 1), 4.0), ("b", 7.0)],
    }
    return dg.Program(MIXED).run(facts)


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ("p(2)", 5.0),
        ("p(f(2))", 1.0),
        ("p([1,2])", 1.0),
        ("whole", 6.0),
        ("wrapped", 6.0),
        ("low(2)", 5.0),
        ("pair(3,2)", 5.0),
        ("pair(2,3)", 0.0),
        ("other(2,2)", 5.0),
        ("other(2,1)", 0.0),
        ("other(f(1),2)", 5.0),
        ("m(5)", 1.0),
        ("m(6)", 0.0),
        ("m(f(0))", 1.0),
        ("reached(5)", 1.0),
        ("gone(2)", 1.0),
        ("gone(1)", 0.0),
        ("given(0)", 2.0),
        ("given_as_term", 3.0),
    ],
)
def test_a_compound_term_where_another_rule_computes_does_not_match(mixed: dg.Chart, item: str, value: float) -> None:
    assert mixed[item] == value


def test_the_gradient_through_integers_among_terms(mixed: dg.Chart) -> None:
    assert list(mixed.gradient("total")["q/1"]) == [(1, 2 * 5.0 * 1.0 + 1.0), (2, 25.0 + 1.0)]


@pytest.mark.parametrize(
    "text",
    [
        ":- type p(int). p(I+1) += q(I). p(f(X)) += q(X).",  # it is declared
        "p(I+1) += q(I). z += p(abc).",  # a symbol is rather a slip
    ],
)
def test_types_that_clash_all_the_same(text: str) -> None:
    with pytest.raises(dg.ProgramError, match="These types cannot meet"):
        dg.Program(text)


# -- facts and inputs that are not used --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def words() -> dg.Program:
    return dg.Program(":- input colour/2. goal += word(W,_) * weight(W).")


def test_inputs_that_no_rule_uses_take_facts(words: dg.Program) -> None:
    facts = {"word/2": [("a", 1)], "weight/1": [("a", 2.0)]}
    assert said(lambda: words.run(facts)) == []
    assert said(lambda: words.run({**facts, "colour/2": [("a", "red")]})) == []
    assert words.run({**facts, "colour/2": [("a", "red", 3.0)]})["colour(a,red)"] == 3.0
    with pytest.raises(dg.FactError, match=r"colour/2, row 1"):
        words.run({"colour/2": [("a",)]})


def test_facts_that_the_program_does_not_use_are_a_warning(words: dg.Program) -> None:
    facts = {"word/2": [("a", 1)], "weight/1": [("a", 2.0)], "rewrite/3": [("a", "b", "c", 0.5)]}
    message = "The program does not use `rewrite/3`, so the facts given for it are ignored."
    assert said(lambda: words.run(facts)) == [message]
    assert said(lambda: words.bind(facts)) == [message]
    assert said(lambda: words.run_batch([facts], query="goal")) == [message]
    with pytest.warns(dg.ProgramWarning, match="rewrite/3"):
        assert words.run(facts)["goal"] == 2.0


@pytest.mark.parametrize("key", ["wrod/2", "words/2", "Word/2", "word/3", "wieght/1", "weights/1"])
def test_facts_that_are_nearly_for_a_predicate_are_an_error(words: dg.Program, key: str) -> None:
    with pytest.raises(dg.FactError, match=f"no predicate `{key}`"):
        words.run({"word/2": [("a", 1)], "weight/1": [("a", 2.0)], key: []})


@pytest.mark.parametrize(
    ("key", "meant"), [("wieght/1", "weight(W)"), ("weights/1", "weight(W)"), ("wrod/2", "word(W,_)")]
)
def test_facts_that_are_nearly_for_a_predicate_that_has_none_show_the_rule_that_reads_it(
    words: dg.Program, key: str, meant: str
) -> None:
    facts: dict[str, Any] = {"word/2": [("a", 1)], "weight/1": [("a", 2.0)]}
    given = {k: rows for k, rows in facts.items() if k.partition("/")[0] != meant.partition("(")[0]}
    with pytest.raises(dg.FactError, match=rf"(?s)No rule reads `{key}`.*{re.escape(meant)}"):
        words.run({**given, key: []})


def test_changes_of_facts_that_the_program_does_not_use_are_an_error(words: dg.Program) -> None:
    chart = words.run({"word/2": [("a", 1)], "weight/1": [("a", 2.0)]})
    for change in (chart.add, chart.set, chart.retract):
        with pytest.raises(dg.FactError, match="no predicate `rewrite/3`"):
            change("rewrite/3", [("a", "b", "c")])
