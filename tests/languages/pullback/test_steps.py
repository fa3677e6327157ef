"""Reduction step by step: each step keeps the type and the meaning, and its redex is the only one there is.

Costs twenty seconds: every step of random terms is looked at as a whole term.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynagrad.languages.pullback import parse, reduce, show
from dynagrad.languages.pullback.infer import infer
from dynagrad.languages.pullback.reduction.administrative import series_of
from dynagrad.languages.pullback.reduction.rules import ELEMENTARY, NAMES
from dynagrad.languages.pullback.reduction.steps import Reduction, Step
from dynagrad.languages.pullback.terms import (
    App,
    Covector,
    DualMap,
    Jac,
    Lam,
    Num,
    Pair,
    Prim,
    Proj,
    Pullback,
    Sum,
    Term,
    Var,
    Zero,
    covector,
)
from pullback_oracle import meaning
from pullback_terms import HigherSource, Source

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


# -- the redex ---------------------------------------------------------------------------------------------------------


def is_value(of: Term) -> bool:
    match of:
        case Lam() | Num() | Zero() | Covector() | Var():
            return True
        case Pair(first, second):
            return is_value(first) and is_value(second)
        case Jac(_, inner):
            return is_value(inner)
    return False


def redexes(of: Term) -> list[Term]:
    """The redexes of a term that call-by-value contexts reach, by the grammar of contexts: for terms without
    derivatives but Jacobians, at a place that is not under a binder."""
    match of:
        case App(first, second) | Pair(first, second) | Sum(first, second):
            if not is_value(first) and not (isinstance(of, App) and isinstance(first, Lam)):
                return redexes(first)
            if not is_value(second):
                return redexes(second)
            return [] if isinstance(of, Pair) else [of]
        case Proj(_, inner) | Prim(_, inner):
            return [of] if is_value(inner) else redexes(inner)
        case Jac(_, inner):
            return redexes(inner)
        case Pullback(_, body, form):
            return [body] if series_of(body) is None else redexes(form)
    return []


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 10))
def test_a_term_that_is_no_value_has_one_redex(pick: random.Random, fuel: int) -> None:
    """Lemma 3.6, against an enumeration of contexts, at each step of a reduction without derivatives."""
    source = Source(pick, derivatives=False)
    body = source.term(infer(parse("1")).type, {}, fuel)
    reduction = reduce(body)
    for step in reduction:
        if isinstance(step.redex, App) and step.rule == "1" and not isinstance(step.redex.function, Lam):
            continue
        found = redexes(step.before)
        assert len(found) == 1 and found[0] == step.redex, (str(step.before), str(step.redex), list(map(str, found)))
    assert is_value(reduction.result)


@pytest.mark.parametrize("kind", [Source, HigherSource])
@pytest.mark.parametrize("seed", range(14))
def test_each_step_keeps_the_type_and_the_meaning(seed: int, kind: type[Source]) -> None:
    pick = random.Random(seed)
    program = kind(pick).program(pick.randrange(1, 6))
    wanted = meaning(program, {})
    steps = list(reduce(program))
    for step in steps[:: max(1, len(steps) // 5)]:
        for whole in (step.before, step.after):
            if len(show(whole, limit=900)) > 900:  # what it means takes long to find out through nested derivatives
                continue
            # 0 has every type; and whether a variable is a function or a dual, a part of a term may not say
            if kind is Source and not isinstance(whole, Zero):
                assert str(infer(Sum(whole, covector(1, 1))).type) == "(R × R)^"
            found = meaning(whole, {})
            for u in ((1.0, 0.0), (0.0, 1.0)):
                a = 0.0 if found is None else found(u) or 0.0
                b = 0.0 if wanted is None else wanted(u) or 0.0
                assert abs(a - b) <= 1e-12 * max(abs(a), abs(b)) + 1e-15, (step.rule, str(whole))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_one_step_ends_where_the_next_begins(pick: random.Random, fuel: int) -> None:
    steps = [step for step in reduce(Source(pick, derivatives=False).program(fuel)) if step.phase == ""]
    for one, next_ in itertools.pairwise(steps):
        assert one.after == next_.before


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
