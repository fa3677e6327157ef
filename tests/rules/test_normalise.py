"""Normalisation: numbered antecedents, equations for arithmetic, axioms, unfolded transients."""

from __future__ import annotations

import re

import pytest

from dynagrad.errors import ProgramError
from dynagrad.rules.normal import Rules
from dynagrad.rules.normalise import ONE, normalise
from dynagrad.rules.parse import parse
from dynagrad.rules.show import show
from dynagrad.rules.syntax import AntecedentValue, Application, Numeral


def normal(text: str, semiring: str | None = None) -> Rules:
    return normalise(parse(text), semiring)


def shown(text: str) -> list[str]:
    return [show(rule) for rule in normal(text).rules]


class TestAntecedents:
    def test_are_numbered_in_the_order_of_the_text(self) -> None:
        (rule,) = normal("p += a*(b+SIDE(c))*d.").rules
        assert [(a.item.key, a.side) for a in rule.antecedents] == [
            ("a/0", False), ("b/0", False), ("c/0", True), ("d/0", False),
        ]  # fmt: skip
        assert show(rule.value) == "#0 * (#1 + 1) * #3"

    def test_that_are_side_conditions_do_not_stand_in_the_value(self) -> None:
        (rule,) = normal("p += SIDE(c)*a.").rules
        assert rule.value == AntecedentValue(1)

    def test_all_of_them_side_conditions_leave_one(self) -> None:
        assert normal("p += SIDE(a)*SIDE(b).").rules[0].value == Numeral(1)
        assert normal(":- semiring log. p += SIDE(a)*SIDE(b).").rules[0].value == ONE
        assert normal("p += SIDE(a).", "log").rules[0].value == ONE


class TestArithmetic:
    @pytest.mark.parametrize(
        ("text", "result"),
        [
            ("p(I+1) += q(I).", "p(V1) += q(I) for V1 = I+1."),
            ("p(I) += q(I+1)*r(I).", "p(I) += q(V1) * r(I) for V1 = I+1."),
            ("p(I+1) += q(I+1).", "p(V1) += q(V1) for V1 = I+1."),
            ("p(f(I-1,V1)) += q(I,V1).", "p(f(V2,V1)) += q(I,V1) for V2 = I-1."),
            ("p(I) += q(I) for I < 2*I, not r(I+1).", "p(I) += q(I) for I < 2*I, V1 = I+1, not r(V1)."),
            ("p(I) += q(I,X) for X = f(I+1).", "p(I) += q(I,X) for V1 = I+1, X = f(V1)."),
            ("p(1+2*3) += q(7//2, -7//2, -7 mod 2).", "p(7) += q(3,-4,1)."),
            ("p(K) += q(I) for K = I+(3-1).", "p(K) += q(I) for K = I+2."),
            ("p(-I) += q(I).", "p(V1) += q(I) for V1 = -I."),
        ],
    )
    def test_leaves_the_items(self, text: str, result: str) -> None:
        assert shown(text) == [result]

    @pytest.mark.parametrize("text", ["p(1//0) = 1.", "p(I) += q(I) for I = 1 mod 0."])
    def test_by_zero_is_refused(self, text: str) -> None:
        with pytest.raises(ProgramError, match="divides by zero"):
            normal(text)

    def test_beyond_the_machine_is_refused(self) -> None:
        with pytest.raises(ProgramError, match="64 bits"):
            normal("p(9223372036854775807+1) = 1.")


class TestAxioms:
    def test_are_ground_heads_with_constants(self) -> None:
        rules = normal("need(s,0) = 1. p(a/nil,1+1) += -2.5. q max= 1/4. r(X) = 1 for X = 2.")
        assert [(show(axiom), axiom.value) for axiom in rules.axioms] == [
            ("need(s,0) = 1.", 1),
            ("p(a/nil,2) += -2.5.", -2.5),
            ("q max= 0.25.", 0.25),
        ]
        assert [rule.head.key for rule in rules.rules] == ["r/1"]

    def test_leave_their_predicate_an_input(self) -> None:
        predicate = normal("need(s,0) = 1. goal += need(s,0).").predicates["need/2"]
        assert (predicate.defined, predicate.input, predicate.aggregator) == (False, True, "+=")

    def test_asserted_twice_by_an_equation_count_once_and_must_agree(self) -> None:
        assert [show(a) for a in normal("p(x) = 1. p(x) = 1.0. p(y) = 2.").axioms] == ["p(x) = 1.", "p(y) = 2."]
        with pytest.raises(ProgramError, match=r"`p\(x\)` is given two .* by `=`; the first is in line 1"):
            normal("p(x) = 1.\np(1+1) = 1.\np(x) = 2.")
        with pytest.raises(ProgramError, match="two different values"):
            normal(":- transient p/1. p(x) = 1. p(x) = 2. goal += p(x).")
        with pytest.raises(ProgramError, match="two different values"):
            normal("p(x) = 1. p(x) = 2. p(Y) = q(Y).")

    def test_under_another_aggregator_are_contributions(self) -> None:
        for text in ("p = 1. p = 2. p += q(Y).", "p max= 1. p = 2. p = 2.", ":- semiring log. p = 1. p = 1."):
            assert [show(a) for a in normal(text).axioms] == re.findall(r"p \S*= \d\.", text)

    def test_of_a_semiring_are_single_numbers(self) -> None:
        rules = normal(":- semiring log. p = -1. q += 2*3.")
        assert [show(a) for a in rules.axioms] == ["p = -1."]
        assert [show(r) for r in rules.rules] == ["q += 2 * 3."]


class TestPredicates:
    def test_are_inputs_where_no_rule_defines_them(self) -> None:
        rules = normal(":- external d/1. :- input p/1. :- output g. p(X) += q(X)*d(X). g += p(X).")
        kinds = {key: (p.defined, p.input, p.external, p.output) for key, p in rules.predicates.items()}
        assert kinds == {
            "p/1": (True, True, False, False),
            "q/1": (False, True, False, False),
            "d/1": (False, False, True, False),
            "g/0": (True, False, False, True),
        }

    def test_have_the_aggregator_of_their_rules(self) -> None:
        rules = normal("p = 3. p max= q. r = p.")
        assert {key: p.aggregator for key, p in rules.predicates.items()} == {"p/0": "max=", "q/0": "+=", "r/0": "="}


class TestTransients:
    def test_are_unfolded_into_one_rule_for_each_way(self) -> None:
        text = ":- transient t/2. t(X,Z) += a(X,Y)*b(Y,Z). t(X,X) += c(X). g(Y) += t(X,Y)*d(X)."
        assert shown(text) == [
            "g(Y) += a(X,Y_1) * b(Y_1,Y) * d(X).",
            "g(X) += c(X) * d(X).",
        ]

    def test_used_twice_give_all_pairs(self) -> None:
        text = ":- transient t/1. t(X) += a(X). t(X) += b(X). g += t(X)*t(Y)*w(X,Y)."
        bodies = sorted(show(rule.value) + str([a.item.key for a in rule.antecedents]) for rule in normal(text).rules)
        assert len(bodies) == len(set(bodies)) == 4

    def test_unify_with_their_uses(self) -> None:
        text = ":- transient t/1. t(f(X,a)) += q(X). t(g) += r. p(X) += t(f(b,X))."
        assert shown(text) == ["p(a) += q(b)."]

    def test_never_bind_a_variable_to_a_term_that_holds_it(self) -> None:
        assert shown(":- transient t/2. t(X,f(X)) += q(X). p += t(Y,Y).") == []

    def test_may_use_each_other(self) -> None:
        text = ":- transient t/1, u/1. u(X) += t(X)*a(X). t(I+1) += b(I). p(X) += u(X)."
        assert shown(text) == ["p(X) += b(I) * a(X) for X = I+1."]

    def test_of_axioms_are_numbers(self) -> None:
        assert shown(":- transient t/1. t(a) = 0.5. p(X) += t(X)*q(X).") == ["p(a) += 0.5 * q(a)."]

    def test_of_minima_pass_through_sums(self) -> None:
        assert shown(":- transient t/1. t(X) min= a(X)+1. p(X) min= t(X)+b(X).") == ["p(X) min= a(X) + 1 + b(X)."]

    def test_leave_no_ones_in_a_product(self) -> None:
        rules = normal(":- semiring log. :- transient t/1. t(X) += SIDE(a(X)). p(X) += t(X)*b(X).").rules
        assert rules[0].value == AntecedentValue(1)

    def test_are_no_longer_among_the_predicates(self) -> None:
        assert set(normal(":- transient t/1. t(X) += a(X). p += t(_).").predicates) == {"a/1", "p/0"}

    def test_number_the_rules_that_come_of_them(self) -> None:
        text = ":- transient t/1. t(X) += a(X). t(X) += b(X). p(X) += t(X). q += c."
        assert [rule.number for rule in normal(text).rules] == [1, 2, 3]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (":- transient t/1. t(X) += t(X)*a(X). p += t(X).", "depends on itself"),
            (":- transient t/1, u/1. t(X) += u(X). u(X) += t(X). p += t(X).", "depends on itself"),
            (":- transient t/1. t(X) += a(X). p += t(X)+1.", "does not distribute"),
            (":- transient t/1. t(X) += a(X). p += exp(t(X)).", "does not distribute"),
            (":- transient t/1. t(X) max= a(X). p += t(X).", "made with `max=`"),
            (":- transient t/1. t(X) *= a(X). p *= t(X).", "does not distribute"),
            (":- transient t/1. t(X) += a(X). p += SIDE(t(X)).", "SIDE cannot use"),
            (":- transient t/1. t(X) += a(X). p += b(X) for not t(X).", "`not` cannot use"),
            (":- transient t/1. p += t(X).", "No rule defines the transient"),
        ],
    )
    def test_are_refused_where_unfolding_would_change_the_meaning(self, text: str, message: str) -> None:
        with pytest.raises(ProgramError, match=message):
            normal(text)

    def test_that_would_explode_are_refused(self) -> None:
        chain = "".join(f"t{i + 1} += t{i}*t{i}. " for i in range(40))
        declared = ", ".join(f"t{i}/0" for i in range(41))
        with pytest.raises(ProgramError, match="more than"):
            normal(f":- transient {declared}. t0 += a. {chain} p += t40.")
        with pytest.raises(ProgramError, match="more than"):
            normal(":- transient t/1. " + "".join(f"t({i}) += a{i}. " for i in range(20)) + "p += t(A)*t(B)*t(C)*t(D).")


def test_a_sum_of_side_conditions_is_plain_arithmetic() -> None:
    value = normal("p += SIDE(a)+SIDE(b).").rules[0].value
    assert value == Application("+", (Numeral(1), Numeral(1)))
