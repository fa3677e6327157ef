"""Reduction, the evaluator and machine code agree with each other, and with what terms mean through `dg.vjp`.

Costs ten seconds: a few hundred random programs, and a dozen compiled ones; `slow`, a minute for 10,000.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynagrad.languages.pullback.compile import compile
from dynagrad.languages.pullback.evaluate import evaluate
from dynagrad.languages.pullback.infer import infer
from dynagrad.languages.pullback.reduction.reduce import reduce
from dynagrad.languages.pullback.rename import apart
from dynagrad.languages.pullback.terms import App, Covector, Lam, Num, Pullback, Term, Zero
from pullback_oracle import along, meaning, substituted
from pullback_terms import Source

BASIS = [(1.0, 0.0), (0.0, 1.0)]


def near(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-12 * max(1.0, abs(a), abs(b), 1e3)


def reduced(of: Term) -> tuple[float, float] | None:
    match reduce(of).result:
        case Covector((float() as a, float() as b)):
            return a, b
        case Zero():
            return 0.0, 0.0
    return None


def agree(program: Term) -> bool:
    """Whether all ways give the same; False where reduction is stuck at an unknown function."""
    dual = meaning(program, {})
    wanted = tuple(0.0 if dual is None else dual(u) for u in BASIS)
    direct = evaluate(program)
    assert all(near(direct(u) if direct != 0.0 else 0.0, w) for u, w in zip(BASIS, wanted, strict=True)), program
    found = reduced(program)
    if found is None:
        return False
    assert all(near(a, b) for a, b in zip(found, wanted, strict=True)), (str(program), found, wanted)
    return True


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 14))
def test_random_programs(pick: random.Random, fuel: int) -> None:
    agree(Source(pick).program(fuel))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 14))
def test_reduction_of_programs_without_inner_derivatives_is_never_stuck(pick: random.Random, fuel: int) -> None:
    assert agree(Source(pick, derivatives=False).program(fuel))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 10))
def test_differential_substitution_agrees(pick: random.Random, fuel: int) -> None:
    program = apart(Source(pick, derivatives=False).program(fuel))
    assert isinstance(program, App) and isinstance(program.function, Pullback)
    (x, y), body, form = program.function.pattern, program.function.body, program.function.form
    plain = substituted(body, {})
    found = reduced(program)
    assert found is not None and isinstance(form, Lam) and isinstance(form.body, Covector)
    counts = form.body.coefficients
    for u, wanted in zip(BASIS, found, strict=True):
        tangent = along(plain, {x: Num(u[0]), y: Num(u[1])})
        value = evaluate(App(Lam((x, y), tangent), program.argument))
        parts = value if isinstance(value, tuple) else (value,)
        weights = counts if isinstance(counts, tuple) else (counts,)
        assert near(sum(c * p for c, p in zip(weights, parts, strict=False)), wanted)


@pytest.mark.slow
def test_ten_thousand_programs() -> None:
    stuck = 0
    for seed in range(10_000):
        pick = random.Random(seed)
        stuck += not agree(Source(pick).program(pick.randrange(1, 12)))
    assert stuck < 100


@pytest.mark.parametrize("seed", range(8))
def test_machine_code_agrees(seed: int) -> None:
    program = Source(random.Random(seed)).program(10)
    made = compile(program)()
    dual = meaning(program, {})
    for index, u in enumerate(BASIS):
        assert near(made[index], 0.0 if dual is None else dual(u))


def test_compiled_functions_take_arguments() -> None:
    compiled = compile("(Ω λ<x, y>. square((x + 1) * (2 * x + y * y))) . (λ_. 1^)")
    assert compiled(1.0, 3.0) == (660.0, 528.0)
    assert compiled(0.0, 1.0) == (6.0, 4.0)


def test_types_are_those_of_programs() -> None:
    for seed in range(100):
        program = Source(random.Random(seed)).program(8)
        assert str(infer(program).type) == "(R × R)^"
