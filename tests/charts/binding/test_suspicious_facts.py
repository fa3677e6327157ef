"""Warnings about facts that are probably not meant: given when facts are known, once for a bound program.

Costs a few seconds.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import dynagrad as dg

A = {"q/1": [("a",)], "r/1": [("a",)]}
CHANCES = {"q/1": [("a", 0.25), ("b", 0.75)]}


def said(call: Any) -> list[str]:
    """The warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if issubclass(w.category, dg.ProgramWarning)]


class TestConstants:
    def test_that_no_fact_has_are_named_with_their_place(self) -> None:
        (text,) = said(lambda: dg.Program("p(x) += q(x)*r(x).").run(A))
        assert text.startswith(
            "No fact has the constants `x` in `q(x)`, `x` in `r(x)`, so what asks for them gives nothing."
        )
        assert "A variable starts with a capital letter" in text and "line 1, column 9" in text

    @pytest.mark.parametrize(
        ("rules", "facts"),
        [
            ("p += q(1).", {"q/1": [("1",), ("2",)]}),
            ("p += q(1.0).", {"q/1": [(1,)]}),
            ("p += q('1').", {"q/1": [(1,)]}),
            ("p += q(b,_).", {"q/2": [("a", 1)]}),
            ("p += d(b). d(X) += e(X).", {"e/1": [("a",)]}),
        ],
    )
    def test_of_another_kind_or_of_a_derived_item_are_found_too(self, rules: str, facts: Any) -> None:
        (text,) = said(lambda: dg.Program(rules).run(facts))
        assert text.startswith("No fact has the constant ")

    @pytest.mark.parametrize(
        ("rules", "facts"),
        [
            ("p += q(a).", {"q/1": [("a",)]}),
            ("p += q(a) * r(X) * q(X).", {"q/1": [("b",)], "r/1": [("a",)]}),  # it stands in the same domain
            ("p += d(b). d(X) += q(X). d(b) += q(a).", {"q/1": [("a",)]}),  # a rule makes it
            ("p += d(b). d(X) += q(Y) for X = b, Y != X.", {"q/1": [("a",)]}),  # an equation does
            ("p += d(7). d(I+1) += d(I) for I < 9. d(0) = 1.", {}),  # arithmetic does
            ("p += q(b) * r([X|_]) * q(X).", {"q/1": [("a",)], "r/1": [(["b"],)]}),  # it may come out of a term
            (":- input q/1. p += q(b).", {}),  # no facts at all
        ],
    )
    def test_that_something_may_be_equal_to_are_not(self, rules: str, facts: Any) -> None:
        assert said(lambda: dg.Program(rules).run(facts)) == []

    def test_are_told_once_for_a_bound_program(self) -> None:
        bound = dg.Program("p(x) += q(x) * r(_).").bind({"q/1": [("a",)]})
        runs = [said(lambda: bound.run({"r/1": [("u",)]})) for _ in range(3)]
        assert list(map(len, runs)) == [1, 0, 0]


class TestProbabilities:
    @pytest.mark.parametrize("semiring", ["log", "viterbi"])
    def test_given_as_logs_are_told(self, semiring: str) -> None:
        (text,) = said(lambda: dg.Program("p += q(_).", semiring).run(CHANCES))
        assert text.startswith(f"The values of `q/1` all lie between 0 and 1, and in `{semiring}` a value is the log")

    def test_given_as_what_they_are_or_as_weights_are_not(self) -> None:
        assert said(lambda: dg.Program("p += q(_).", "log").run(CHANCES, values="probabilities")) == []
        assert said(lambda: dg.Program("p += q(_).", "real").run(CHANCES)) == []

    @pytest.mark.parametrize("values", [(0.25, -0.75), (0.25, 1.5), (0.0, 1.0), (0.5,)])
    def test_are_not_seen_where_logs_may_be_meant(self, values: tuple[float, ...]) -> None:
        facts = {"q/1": [(n, value) for n, value in enumerate(values)]}
        assert said(lambda: dg.Program("p += q(_).", "log").run(facts)) == []

    @pytest.mark.parametrize("semiring", ["real", "log", "viterbi", "tropical", "boolean"])
    def test_above_one_are_an_error_but_for_rounding(self, semiring: str) -> None:
        program = dg.Program("p += q.", semiring)
        program.run({"q/0": 1 + 5e-10}, values="probabilities")
        with pytest.raises(dg.FactError, match=r"q/0, row 1: 3\.0 is not a probability, which is a number from 0 to 1"):
            program.run({"q/0": 3.0}, values="probabilities")
        with pytest.raises(dg.FactError, match="not a probability"):
            program.run({"q/0": 1 + 2e-9}, values="probabilities")

    def test_above_one_are_an_error_in_expectation_and_in_the_text_too(self) -> None:
        with pytest.raises(dg.FactError, match=r"row 1: 3\.0 is not a probability"):
            dg.Program("p += q.", "expectation").run({"q/0": [((3.0, 1.0),)]}, values="probabilities")
        with pytest.raises(dg.ProgramError, match="3 is not a probability"):
            dg.Program("p += 3 * q.", "log").run({"q/0": 0.5}, values="probabilities")

    @pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")
    def test_constants_of_plain_arithmetic_are_none(self) -> None:
        text, facts = "p += a(_)^2 - 3 * c. c = 4.", {"a/1": [("x", 0.5), ("y", 0.25)]}
        named: dict[str, Any] = {"values": "probabilities"}
        for program, said_by_call in ((dg.Program(text, **named), {}), (dg.Program(text), named)):
            assert program.run(facts, **said_by_call)["p"] == 0.3125 - 2 * 12
            assert program.bind(facts, **said_by_call).run()["p"] == 0.3125 - 2 * 12
            assert program.function("p", inputs=["a/1"], **said_by_call)([0.5, 0.25]) == 0.3125 - 2 * 12
            with pytest.raises(dg.FactError, match=r"a/1, row 1: 2\.0 is not a probability"):
                program.run({"a/1": [("x", 2.0)]}, **said_by_call)
