"""Reduction step by step: each step keeps the type and the meaning, and its redex is the only one there is.

Costs two seconds: every step of random terms is looked at as a whole term.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynagrad.languages.pullback import evaluate, parse, reduce
from dynagrad.languages.pullback.primitives import PrimitiveFunction
from dynagrad.languages.pullback.reduction.rules import ELEMENTARY, NAMES
from dynagrad.languages.pullback.reduction.steps import Reduction, Step
from dynagrad.languages.pullback.terms import App, DualMap, Num
from dynagrad.languages.pullback.types import R
from languages.pullback.agreement import drawn
from languages.pullback.steps import apart_from_the_next, changed, without_its_redex
from languages.pullback.terms import HigherSource, Source

PAGE = Path(__file__).parents[3] / "docs/languages/pullback.md"
EXAMPLE = "((Ω λ<x, y>. square((x + 1) * (2 * x + y * y))) . (λ_. 1^)) <1, 3>"


def every(steps: Iterator[Step] | Reduction) -> Iterator[Step]:
    for step in steps:
        yield step
        yield from every(step.premises)


def test_the_running_example() -> None:
    """The forward phase computes 2, 11, 22 and 484; the reverse phase starts at 44 and ends in the Jacobian."""
    reduction = reduce(EXAMPLE)
    steps = list(reduction)
    assert str(reduction.result) == "(660, 528)^"
    assert [step.rule for step in steps if step.rule in ("A", "7")] == ["A", "7"]
    forward = [step.contractum for step in steps if step.phase == "forward" and step.rule in ("3", "sum")]
    assert [term.value for term in forward if isinstance(term, Num)] == [2, 2, 9, 11, 22, 484]
    reverse = [step for step in steps if step.phase == "reverse" and step.rule == "5"]
    assert "44^" in str(reverse[0].contractum) and "(484, 88)^" in str(reverse[1].contractum)
    assert [step.phase for step in steps] == sorted(
        (step.phase for step in steps), key=["", "forward", "reverse"].index
    )


def test_every_rule_has_a_number_and_a_name() -> None:
    assert set(ELEMENTARY) | {"19c"} == {
        *map(str, range(9, 16)), "16a", "16b", "16c", "17", "18", "19a", "19b", "20", "19c",
    }  # fmt: skip
    assert set(NAMES) == {*ELEMENTARY, "19c", *map(str, range(1, 9)), "A", "dual", "sum"}


BY_RULE = {
    "1": ("(λx. x) 3", "3"),
    "2": ("π2 <1, 2>", "2"),
    "3": ("mult(2, 3)", "6"),
    "4": ("(Jmult . <1, 0>) <2, 3>", "3"),
    "5": ("(λx. <x, x>)^ . (660, 528)^", "1188^"),
    "6": ("(λx. let y = x + x in <x, y>)^ . (1, 10)^", "21^"),
    "7": ("((Ω λx. x) . (λ_. 1^)) 3", "1^"),
    "8": ("((Ω λx. x * x) . (λ_. 1^)) 3", "6^"),
    "9": ("((Ω λx. 5) . (λ_. 1^)) 3", "0"),
    "10": ("((Ω λx. x) . (λ_. 1^)) 3", "1^"),
    "11": ("((Ω λx. x + x) . (λ_. 1^)) 3", "2^"),
    "12": ("((Ω λp. π1 p + π2 p) . (λ_. 1^)) <3, 4>", "(1, 1)^"),
    "13": ("((Ω λx. (Jsin . x) 0.0) . (λ_. 1^)) 3", "1^"),
    "14": ("((Ω λx. 5^ x) . (λ_. 1^)) 3", "5^"),
    "15": ("((Ω λx. square(x)) . (λ_. 1^)) 3", "6^"),
    "16a": ("((Ω λd. (λv. v + v)^ . d) . (λ_. (λe. e 5)^ . 1^)) 3^ 1^", "10"),
    "16b": ("((Ω λx. ((λv. (Jsquare . v) x)^ . 1^) 1) . (λ_. 1^)) 3", "2^"),
    "16c": ("((Ω λx. let d = (λu. (Jsquare . u) x)^ . 1^ in ((λv. (Jsquare . v) x)^ . d) 1) . (λ_. 1^)) 3", "24^"),
    "17": ("((Ω λx. ((Ω λy. x * y * y) . (λ_. 1^)) 3 1) . (λ_. 1^)) 2", "6^"),
    "18": ("((Ω λx. let f = λy. x * y in f 3) . (λ_. 1^)) 2", "3^"),
    "19a": ("((Ω λf. f 3) . (λ_. 1^)) (λx. x) (λx. x * x)", "9"),
    "19b": ("((Ω λx. let f = λy. y * y in f (x + 1)) . (λ_. 1^)) 2", "6^"),
    "19c": ("((Ω λx. let f = λy. 7 * x in f x) . (λ_. 1^)) 2", "7^"),
    "20": ("((Ω λx. <x, x * x>) . (λ_. (1, 10)^)) 3", "61^"),
    "sum": ("1 + 2", "3"),
    "dual": ("(3, 4)^ <1, 2>", "11"),
    "A": ("((Ω λx. x * (x + 1)) . (λ_. 1^)) 3", "7^"),
}


@pytest.mark.parametrize("rule", BY_RULE)
def test_each_rule_by_an_example(rule: str) -> None:
    text, wanted = BY_RULE[rule]
    reduction = reduce(text)
    assert str(reduction.result) == wanted
    assert rule in {step.rule for step in every(reduction)}


def test_all_rules_have_an_example() -> None:
    assert set(BY_RULE) == set(NAMES)


def test_the_documents_have_all_rules_by_their_names() -> None:
    rows = re.findall(r"^\| (A|sum|dual|\d+[abc]?) \| ([^|]+?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(NAMES.items())


@pytest.mark.parametrize(
    "text",
    [
        "((Ω λx. let y = f x in y) . w) 2",  # a free variable stands in function position
        "((Ω λ<g, x>. let y = g x in y) . w) <f, 2>",  # and here it would, by substitution
    ],
)
def test_the_two_irreducible_forms(text: str) -> None:
    """Reduction ends in the same pullback, under a name, which has no redex."""
    result = reduce(text).result
    assert isinstance(result, App) and result.argument == parse(text)
    assert reduce(result).result == result


def test_evaluation_computes_the_values_of_reduction_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, list[float]]] = []
    value = PrimitiveFunction.value

    def noted(self: PrimitiveFunction, given: list[float]) -> float:
        seen.append((self.name, given))
        return value(self, given)

    monkeypatch.setattr(PrimitiveFunction, "value", noted)
    longest = 0
    for seed in range(100):
        term = Source(random.Random(seed), derivatives=False).term(R, {}, 14)
        assert float(str(reduce(term).result)) == evaluate(term)
        half = len(seen) // 2
        assert seen[:half] == seen[half:]
        longest = max(longest, half)
        seen.clear()
    assert longest > 10


# -- the redex ---------------------------------------------------------------------------------------------------------


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**9))
def test_a_term_that_is_no_value_has_one_redex(seed: int) -> None:
    """Lemma 3.6, at each step of a reduction: contexts and redexes, enumerated by their grammar, are one, and it is the
    redex of the step; what a reduction ends in has none. More of them: `make fuzz KINDS=steps`."""
    assert not without_its_redex(drawn(Source, seed))


@pytest.mark.parametrize("kind", [Source, HigherSource])
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**9))
def test_one_step_ends_where_the_next_begins(kind: type[Source], seed: int) -> None:
    """As whole terms; a pullback that rules 8 and 7 have taken apart is written as what it was once it is a value."""
    assert not apart_from_the_next(drawn(kind, seed))


@pytest.mark.parametrize("kind", [Source, HigherSource])
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**9))
def test_each_step_keeps_the_type_and_the_meaning(kind: type[Source], seed: int) -> None:
    """Of small terms, at every step: the whole term before it has the type and the meaning of the first.

    Terms of up to 1,200 characters, which take several times longer, are looked at by the fuzzer of steps.
    """
    pick = random.Random(seed)
    assert not changed(kind(pick).program(pick.randrange(1, 5)), longest=700)


ZEROS = [
    ("((1, 2), 3)^ <0, 1>", 3.0),
    ("((1, 2), 3)^ <<1, 0>, 1>", 4.0),
    ("(1, 2, 3)^ <1, 0>", 1.0),
    ("mult'(0, <1, 2>)", 0.0),
    ("mult'(<1, 2>, 0)", 0.0),
    ("mult''(0, <1, 2>, <3, 4>)", 0.0),
    ("(Jmult . 0) <1, 2>", 0.0),
    ("(Jmult' . <<1, 2>, 0>) <0, <3, 4>>", 10.0),
    ("((λy. ((Ω λg. y <<g, 0.5>, g>) . (λ_. 2^)) 1 1)^ . 1^) ((λy. π2 y)^ . 1^)", 2.0),
]


@pytest.mark.parametrize(("text", "wanted"), ZEROS)
def test_the_term_0_stands_for_a_part_of_any_size(text: str, wanted: float) -> None:
    assert float(str(reduce(text).result)) == evaluate(text) == wanted


def test_reduction_is_lazy() -> None:
    """The first steps of a reduction that would take a million are there at once."""
    body = "x"
    for _ in range(20):
        body = f"(λf. λy. f (f y)) ({body})" if body != "x" else "λy. sin(y)"
    reduction = reduce(f"({body}) 1")
    assert [step.rule for step, _ in zip(reduction, range(5), strict=False)] == ["1"] * 5


def test_dual_maps_are_no_redexes_of_others() -> None:
    """A dual of functions is a value, read by applying it."""
    reduction = reduce("(λh. h 3)^ . 1^")
    assert isinstance(reduction.result, DualMap)
    assert str(reduce("((λh. h 3)^ . 1^) (λx. x * x)").result) == "9"
