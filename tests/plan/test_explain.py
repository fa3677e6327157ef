"""The text of `explain`: enough to follow a run by hand, in stable words. Costs a few seconds."""

from __future__ import annotations

import pytest

import dynagrad as dg
import examples
from dynagrad.plan.assume import assumed_plan
from dynagrad.plan.explain import explain
from dynagrad.rules import check, infer, parse

EDGES = {"edge/2": [("a", "b", 1.0), ("b", "a", 2.0), ("b", "c", 1.0)]}


@pytest.fixture(scope="module")
def cky() -> str:
    return dg.Program(examples.source("cky")).bind(examples.facts("cky")).explain()


def plan_for_any(text: str, kinds: list[str]):
    rules = check(parse(text))
    return assumed_plan(rules, infer(rules), kinds)


def test_the_semiring_comes_first(cky):
    assert cky.splitlines()[0] == "semiring: real"


def test_every_predicate_has_its_storage(cky):
    assert "  constit/3: dense array of " in cky
    assert "(integers 0..12)" in cky and "(26 symbols)" in cky
    assert "  rewrite/2: facts, 57 rows\n    index " in cky
    assert "  goal/0: one value; it drives no rule, so it bypasses the agenda" in cky


def test_indexes_are_said_by_what_they_are_grouped_by(cky):
    assert " by argument 2\n" in cky and " by argument 3\n" in cky


def test_the_order_has_a_reason_and_its_formula(cky):
    assert "  1. constit/3: by level, lowest first" in cky
    assert "why: items become final in order of last position" in cky
    assert "last position of constit/3: argument 3" in cky
    assert "  2. goal/0: once" in cky


def test_each_driver_of_a_rule_has_its_nest(cky):
    assert "rule 2: constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K)." in cky
    assert "from each popped constit(Z,J,K), antecedent 3 (estimated cost" in cky
    assert (
        """
         for (X, Y) in rewrite(X,Y,Z) by Z  -- facts, index 1
           for I in constit(Y,I,J)  -- items, a row of bits; contiguous over I in the head, too
             head constit(X,I,K)
"""
        in cky
    )
    assert "\n           probe constit(s,0,N)\n             head goal\n" in cky


def test_idle_drivers_are_named(cky):
    assert "from constit(Y,I,J), antecedent 2: idle, it can never be the last to arrive" in cky


def test_joins_of_whole_rows_are_named(cky):
    text = """
    :- semiring log.
    enter(T,0)   += first(T).
    enter(T,I+1) += at(S,I) * move(S,T).
    at(T,I)      += enter(T,I) * emit(T,X) * word(I,X).
    goal         += at(_,N) * last(N).
    """
    states, words = range(20), list(enumerate([0, 1, 1, 0]))
    facts = {
        "first/1": [(s,) for s in states],
        "move/2": [(s, t) for s in states for t in states],
        "emit/2": [(t, x) for t in states for x in range(2)],
        "word/2": words,
        "last/1": [(len(words) - 1,)],
    }
    chain = dg.Program(text).bind(facts).explain()
    whole = "  -- all popped items of a row, over"
    assert f"head enter(T,V1){whole} S, times a matrix where no fact is missing" in chain
    assert f"head at(T,I){whole} T, in vector operations" in chain
    assert chain.count(whole) == 2 and whole not in cky
    plain = dg.Program(text.replace("* word(I,X)", "* word(I,X) * odd(T,T)")).bind({**facts, "odd/2": [(1, 1)]})
    assert plain.explain().count(whole) == 1


def test_what_the_order_relies_on_is_said(cky):
    assert cky.endswith("what the order relies on in the facts\n  word/3: argument 3 - argument 2 >= 1")


def test_the_text_is_stable(cky):
    assert dg.Program(examples.source("cky")).bind(examples.facts("cky")).explain() == cky


def test_best_first_where_there_is_no_order():
    text = dg.Program(":- semiring tropical. path(V) += path(U) * edge(U,V). path(a) = 0.").bind(EDGES).explain()
    assert "1. path/1: best value first" in text
    assert "why: facts and rules show no order in which items become final" in text


def test_conditions_solutions_and_negation_are_operations():
    source = """
        :- semiring real.
        next(I+1,X) += at(I,X) for I < 5, X != a, not stop(X).
        at(I,X) += next(I,X).
        at(0,X) += start(X).
    """
    facts = {"start/1": [("a", 1.0), ("b", 1.0)], "stop/1": [("c", 1.0)]}
    text = dg.Program(source).bind(facts).explain()
    assert " if I < 5\n" in text and " if X != a\n" in text
    assert " let V1 = I+1\n" in text
    assert " if not stop(X)\n" in text


def test_terms_are_hashed_and_matched():
    shown = explain(plan_for_any("p(X) += q(f(X,Y)) * r(Y).", ["term", "term", "term"]))
    assert "p/1: hash table on argument 1: terms in argument 1" in shown
    assert "q(f(X,Y))" in shown


def test_what_outputs_do_not_need_is_left_out():
    source = ":- output goal. goal += a(_X). other(X) += a(X)."
    text = dg.Program(source).bind({"a/1": [("x", 1.0)]}).explain()
    assert "left out\n  other/1: no output needs it (outputs: goal/0)" in text
    assert "rule 2" not in text


def test_rounds_of_plain_arithmetic():
    text = explain(plan_for_any("a(X) max= a(Y) * move(Y,X). a(X) max= start(X).", ["atom"]))
    assert "semiring: none: each predicate has the arithmetic of its own aggregator" in text
    assert "in topological order of the ground program, found at run time" in text
    text = explain(plan_for_any(":- solve iterate. a(X) max= a(Y) * move(Y,X). a(X) max= start(X).", ["atom"]))
    assert "sweep: all rules in each round" in text and "in every round" in text


def test_without_facts_nothing_is_assumed():
    rules = check(parse(examples.source("cky")))
    text = explain(assumed_plan(rules, infer(rules), ["atom", "int", "atom"]))
    assert "facts: none given" in text
    assert "constit/3: hash table on arguments 1, 2 and 3: the number of items is unknown" in text
    assert "by level" not in text


def test_long_rules_are_cut():
    atoms = " * ".join(f"p{i}(X)" for i in range(100))
    text = explain(plan_for_any(f"goal += {atoms}.", ["atom"]))
    assert max(map(len, text.splitlines())) < 260


def test_how_rows_of_one_fact_join_is_said(cky):
    program = dg.Program("far(V) min= far(U) + road(U,V). far(home) = 0. less max= -toll(_). most max= far(_).")
    text = program.bind({"road/2": [("home", "a", 5.0), ("home", "a", 1.0)], "toll/1": []}).explain()
    assert "  road/2: facts, 2 rows; rows of one fact join by `min=`" in text
    assert "  toll/1: facts, 0 rows; a fact may be given once" in text
    text = program.bind({"road/2": [], "toll/1": [("x", 1.0)]}).explain()
    assert "toll/1: facts, 1 row; a fact may be given once, as `less max= -toll(_).` (line 1) may fall where" in text
    assert "rows of one fact" not in cky
