"""Types of columns that the program leaves open, inferred from facts when these are bound."""

from __future__ import annotations

from typing import Any

import pytest

import dynagrad as dg


class TestDivisionAfterFor:
    """`A/B` after `for` is a term, but between integers it is an error that names `//`."""

    @pytest.mark.parametrize(
        ("rules", "facts"),
        [
            ("h(X) += a(I) for X = I/2.", {"a/1": [(2,), (3,)]}),
            ("h(X) += a(I) * b(J) for X = I/J.", {"a/1": [(2,)], "b/1": [(3,)]}),
            ("h(I) += a(I) * c(X) for X == I/2.", {"a/1": [(2,)], "c/1": [("x",)]}),
            ("h(X) += a(I) for X = [f(I/I)].", {"a/1": [(2,)]}),
            ("b(I) += a(I). h(X) += b(I) for X = I/2.", {"a/1": [(2,)]}),
        ],
    )
    def test_of_integers_is_an_error_once_facts_show_it(self, rules: str, facts: dict[str, Any]) -> None:
        with pytest.raises(dg.ProgramError, match="To divide integers write `//`") as caught:
            dg.Program(rules).run(facts)
        assert caught.value.span is not None

    def test_of_symbols_and_of_mixed_columns_is_a_term(self) -> None:
        chart = dg.Program("h(X) += a(A) * a(B) for X = A/B, A != B.").run({"a/1": [("np",), (2,)]})
        assert {row[0] for row in chart.query("h(X)")} == {dg.Term("slash", "np", 2), dg.Term("slash", 2, "np")}

    def test_in_an_item_is_a_term_whatever_the_facts(self) -> None:
        chart = dg.Program("h(I/2) += a(I). g(I) += h(I/2).").run({"a/1": [(2,), (3,)]})
        assert chart["h(3/2)"] == 1.0 and chart["g(3)"] == 1.0


class TestArithmetic:
    """What is computed with is an integer: another argument in a fact is an error, another part of a term no match."""

    RULES = "p(K) += q(I) for K = {}."

    @pytest.mark.parametrize("sum_", ["I+1", "abs(I)", "max(I,1)", "min(1,I)", "I//2", "I mod 2", "-I"])
    @pytest.mark.parametrize("value", ["a", 1.5, [1], dg.Term("f", 1)], ids=str)
    def test_with_a_fact_that_is_no_integer_is_an_error(self, sum_: str, value: Any) -> None:
        with pytest.raises(dg.FactError, match=r"q/1, row 2, column 1: .* is not an integer, but the program computes"):
            dg.Program(self.RULES.format(sum_)).run({"q/1": [(1,), (value,)]})

    def test_with_a_part_of_a_term_that_is_no_integer_does_not_match(self) -> None:
        program = dg.Program("p(K) += q(f(I)) for K = max(I,0)+1. n += q(f(I)) for I > 1.")
        chart = program.run({"q/1": [(dg.Term("f", value), 2.0) for value in (3, "a", 1.5, [4])]})
        assert [tuple(row) for row in chart.query("p(K)")] == [(4, 2.0)] and chart["n"] == 2.0
