"""Demand: what the declared outputs do not need is left out, and asking for it is an error that says so.

Costs a few seconds.
"""

from __future__ import annotations

import pytest

import dynagrad as dg
from plan.planned import planned

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

REACH = """
:- output answer/1.
reach(X,Y) += edge(X,Y).
reach(X,Y) += reach(X,Z) * edge(Z,Y).
answer(Y) += reach(a,Y).
unused(X) += edge(X,_).
"""
CHAIN = {"edge/2": [("a", "b", 0.5), ("b", "c", 0.5), ("d", "e", 0.5)]}


def test_predicates_that_no_output_needs_are_left_out():
    plan = planned(f":- semiring real. {REACH}", CHAIN)
    assert list(plan.omitted) == ["unused/1"]
    assert "unused/1" not in plan.tables


def test_an_argument_with_one_constant_in_every_use_is_fixed():
    plan = planned(f":- semiring real. {REACH}", CHAIN)
    assert {key: list(places) for key, places in plan.fixed.items()} == {"reach/2": [0]}


@pytest.mark.parametrize(
    "change",
    [
        "answer(Y) += reach(b,Y).",  # a second constant
        "answer(Y) += reach(Y,Y).",  # any
        "reach(X,Y) += reach(Z,Y) * edge(X,Z).",  # the recursion moves through the argument
        "reach(X,Y) = 0.5. :- input reach/2.",  # facts may be given
        ":- output reach/2.",
    ],
)
def test_an_argument_that_others_need_is_not(change):
    text = change.replace("reach(X,Y) = 0.5. ", "")
    assert not planned(f":- semiring real. {REACH} {text}", CHAIN).fixed


def test_the_answers_are_those_of_the_whole_program():
    program = dg.Program(REACH, semiring="real")
    whole = dg.Program(REACH.replace(":- output answer/1.", ""), semiring="real")
    chart, all_of_it = program.run(CHAIN), whole.run(CHAIN)
    assert chart.table("answer/1") == all_of_it.table("answer/1")
    assert list(chart.query("reach(a,Y)")) == [("a", "b", 0.5), ("a", "c", 0.25)]
    assert chart.stats.items < all_of_it.stats.items


@pytest.mark.parametrize("ask", ["reach(b,c)", "reach(X,c)", "unused(a)"])
def test_what_was_left_out_is_not_zero_but_an_error(ask):
    chart = dg.Program(REACH, semiring="real").run(CHAIN)
    with pytest.raises(dg.NotComputed, match="output"):
        chart.query(ask)
    if "X" not in ask:
        with pytest.raises(dg.NotComputed, match="output"):
            chart[ask]
