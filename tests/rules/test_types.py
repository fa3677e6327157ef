"""Type inference for arguments: which positions share a domain, what is known of it, and type errors."""

from __future__ import annotations

import pytest

from dynagrad.errors import ProgramError
from dynagrad.rules.normalise import normalise
from dynagrad.rules.parse import parse
from dynagrad.rules.syntax import Integer, Symbol
from dynagrad.rules.types import Domain, Domains, infer

from .paper_programs import FIGURE_1, FIGURE_2


def domains(text: str) -> Domains:
    return infer(normalise(parse(text)))


def groups(text: str) -> set[frozenset[str]]:
    """The domains as sets of positions, each as `p/1.0`."""
    return {frozenset(f"{key}.{i}" for key, i in d.positions) for d in domains(text).domains if d.positions}


def only(text: str, key: str = "p/1") -> Domain:
    return domains(text).at(key, 0)


class TestGroups:
    def test_of_a_parser(self) -> None:
        assert groups(FIGURE_1) == {
            frozenset(("constit/3.0", "rewrite/2.0", "rewrite/3.0", "rewrite/3.1", "rewrite/3.2")),
            frozenset(("constit/3.1", "constit/3.2", "word/3.1", "word/3.2", "end/1.0")),
            frozenset(("rewrite/2.1", "word/3.0")),
        }

    def test_of_earley(self) -> None:
        found = domains(FIGURE_2)
        symbols = found.at("need/2", 0)
        assert set(symbols.positions) == {("need/2", 0), ("rewrite/2", 0)}
        assert symbols.nested and symbols.constants == (Symbol("s"),)
        assert found.at("constit/3", 0).kinds == {"term"}
        assert found.variables[2]["Needed"] is None and found.variables[2]["I"] == found.of["constit/3", 1]

    @pytest.mark.parametrize(
        "text",
        [
            "p(X) += q(X).",
            "p(X+1) += q(X).",
            "p(X) += q(Y)*q(X) for X = Y.",
            "p(X) += r(X)*q(Y) for X < Y.",
            "p(X) += r(X) for not q(X).",
            "p(X) += q(Y)*r(X) for X = V, V = Y.",
        ],
    )
    def test_are_joined_by_variables_and_equations(self, text: str) -> None:
        found = domains(text)
        assert found.of["p/1", 0] == found.of["q/1", 0]

    def test_are_not_joined_inside_terms(self) -> None:
        found = domains("p(X) += q(f(X)).")
        assert found.of["p/1", 0] != found.of["q/1", 0]
        assert found.at("p/1", 0).nested and not found.at("q/1", 0).nested

    def test_of_a_variable_in_an_equation_only(self) -> None:
        found = domains("p(f(I)) += q(f(K)) for I = K+1.")
        number = found.variables[1]["I"]
        assert number is not None and number == found.variables[1]["K"]
        assert found.domains[number].positions == () and found.domains[number].kinds == {"int"}


class TestKinds:
    @pytest.mark.parametrize(
        ("text", "kinds"),
        [
            ("p(a) = 1.", {"symbol"}),
            ("p(1) = 1.", {"int"}),
            ("p(0.5) = 1.", {"float"}),
            ("p(f(a)) = 1.", {"term"}),
            ("p([]) = 1.", {"symbol"}),
            ("p([a]) = 1.", {"term"}),
            ("p(a) = 1. p(2) = 1. p([3]) = 1.", {"symbol", "int", "term"}),
            ("p(X) += q(X).", set()),
            ("p(X) += q(X) for X != a.", {"symbol"}),
            ("p(I+1) += p(I).", {"int"}),
        ],
    )
    def test_are_what_the_text_shows(self, text: str, kinds: set[str]) -> None:
        assert only(text).kinds == kinds

    def test_know_arithmetic_order_and_constants(self) -> None:
        domain = only("p(I+1) += p(I) for I < 7. p(0) = 1. p(0) = 2.")
        assert domain.arithmetic and domain.ordered and domain.constants == (Integer(0), Integer(7))
        assert not only("p(X) += q(X).").arithmetic
        assert only("p(X) += q(X) for X < 3.").ordered

    def test_a_priority_that_computes_with_an_argument_needs_numbers(self) -> None:
        assert only(":- priority p(I) = -I. p(I) += q(I).").ordered

    @pytest.mark.parametrize(
        ("declared", "kinds"),
        [
            ("int", {"int"}),
            ("symbol | int", {"int", "symbol"}),
            ("list", {"term", "symbol"}),
            ("slash(symbol, list)", {"term"}),
            ("term", {"int", "symbol", "float", "term"}),
        ],
    )
    def test_may_be_declared(self, declared: str, kinds: set[str]) -> None:
        assert only(f":- type p({declared}). p(X) += q(X).").declared == kinds

    def test_are_not_declared_where_the_text_is_silent(self) -> None:
        assert only("p(X) += q(X).").declared is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p(I+1) += p(I).\np(a) = 1.", "here is the symbol `a`, but in line 1 `I.1` is computed"),
        (":- type p(int).\np(I+1) += p(I).\np(f(a)) = 1.", r"a term `f\(...\)`"),
        ("p(I+1) += p(I).\np(0.5) = 1.", "the float `0.5`"),
        ("p(I+1) += q(I). r(X) += q(X). r(b) = 1.", "the symbol `b`"),
        ("p(I+a) += q(I).", "Arithmetic in arguments is for integers"),
        ("p(I+0.5) += q(I).", "Arithmetic in arguments is for integers"),
        ("p(X) += q(X) for f(X) = X+1.", "Arithmetic gives an integer"),
        ("p(X) += q(X) for X < a.", "Only integers have an order"),
        ("p(X) += q(X) for X < 2.5.", "Only integers have an order"),
        ("p(X) += q(X) for X < 3. p(2.5) = 1.", "only integers have an order"),
        ("p(X) += q(I) for I < 9, X = I/2.", "To divide integers write `//`"),
        ("p(X) += q(I) for X = (I+1)/2.", "To divide integers write `//`"),
        ("p(X) += q for X = 3/2.", "To divide integers write `//`"),
        (":- type q(int). p += q(I) * r(I,X) for [X] == [I/2].", "To divide integers write `//`"),
        ("p(X) += q(I) for X = I/2 + 1.", "To divide integers, write `//`"),
        ("p(I/2+1) += q(I).", "To divide integers, write `//`"),
        ("p(X) += q(X) for X < 3. p(b) = 1.", "only integers have an order"),
        (":- type p(symbol). p(I+1) += q(I).", "declared symbol"),
        (":- type p(symbol). p(3) = 1.", "argument 1 of `p/1` is declared `symbol`, and this is the number `3`"),
        (":- type p(slash(symbol, list)). p(a/b) = 1.", "argument 1 of `p/1` is declared"),
        (":- type p(symbol), q(int). p(X) += q(X).", "only `symbol` is declared"),
        (":- type p(int). p(X) += q(X). q(a) = 1.", "here is the symbol `a`"),
        (":- type p(symbol). p(X) += q(X) for X < 3.", "These types cannot meet"),
    ],
)
def test_types_that_cannot_meet_are_refused(text: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        domains(text)
    assert caught.value.span is not None


@pytest.mark.parametrize(
    "text",
    [
        ":- type p(symbol | int). p(a) = 1. p(1) = 1.",
        ":- type p(slash(symbol, list)). p(a/[b]) = 1. p(X/Y) += q(X,Y).",
        ":- type p(list). p([]) = 1. p([a|X]) += q(X).",
        ":- type p(symbol | int), q(int). p(X) += q(X).",
        "p(a) = 1. p(1) = 1. p(X) += q(X).",
    ],
)
def test_kinds_may_mix_where_nothing_forbids_it(text: str) -> None:
    domains(text)


class TestMixedPositions:
    """Where one rule computes with an argument in which another has a compound term."""

    def test_what_is_computed_has_a_domain_apart_from_the_terms(self) -> None:
        domains = infer(normalise(parse("p(I+1) += q(I). p(f(X)) += r(X). z(I) += p(I).")))
        assert "term" in domains.at("p/1", 0).kinds and not domains.at("p/1", 0).arithmetic
        assert domains.at("q/1", 0).arithmetic and not domains.at("q/1", 0).kinds - {"int"}
        assert domains.of["z/1", 0] == domains.of["p/1", 0] != domains.of["q/1", 0]
        assert domains.variables[1]["I"] == domains.of["q/1", 0]

    def test_what_is_only_different_from_an_integer_may_be_a_term(self) -> None:
        domains = infer(normalise(parse("p(f(X)) += q(X). d(X) += p(X) * q(Y) for X != Y+1, Y < 3.")))
        assert domains.of["d/1", 0] == domains.of["p/1", 0] != domains.of["q/1", 0]

    def test_orders_are_of_integers_too(self) -> None:
        domains = infer(normalise(parse("p(f(X)) += q(X). d(X) += p(X) for X < 3.")))
        assert domains.at("d/1", 0).ordered and not domains.at("p/1", 0).ordered
