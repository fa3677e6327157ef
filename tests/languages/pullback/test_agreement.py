"""Reduction, the evaluator and machine code agree with each other, and with what terms mean through `dg.vjp`.

Programs that are drawn sum numbers of the size of 1 to 10, which may cancel. All ways of running a term, and `dg`, lose
the same digits then: they agree with each other to the last ones, which is what is asked for here; values in 50 digits
tell how many of them are right, in units of the numbers that were summed.

Costs three seconds: a few hundred random programs, and a dozen compiled ones. The fuzzer has more of them:
`make fuzz KINDS=pullback`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dynagrad as dg
from dynagrad.ir import Node, order
from dynagrad.languages.pullback.compile import compile
from dynagrad.languages.pullback.evaluate import evaluate
from dynagrad.languages.pullback.infer import infer
from dynagrad.languages.pullback.reduction.reduce import reduce
from dynagrad.languages.pullback.rename import with_distinct_binders
from dynagrad.languages.pullback.terms import App, Covector, FormPullback, Lam, Num, PullbackTerm
from languages.pullback.agreement import BASIS, agree, agree_with_stranger, drawn, evaluated, near, oracle, reduced
from languages.pullback.oracle import along, substituted
from languages.pullback.strangers import stranger
from languages.pullback.terms import HigherSource, Source

EXACT = mpmath.mp.clone()
EXACT.dps = 50


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 14))
def test_random_programs(pick: random.Random, fuel: int) -> None:
    agree(Source(pick).program(fuel))


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 14))
def test_random_programs_with_derivatives_along_functions_and_duals(pick: random.Random, fuel: int) -> None:
    agree(HigherSource(pick).program(fuel))


@pytest.mark.parametrize("first", range(0, 150, 50))
def test_terms_of_a_stranger_have_the_values_that_differences_in_50_digits_give(first: int) -> None:
    """The terms are text of any type, with names that hide others; see `strangers.py`."""
    for seed in range(first, first + 50):
        agree_with_stranger(seed)


def test_a_strangers_terms_have_derivatives_along_functions_and_duals() -> None:
    texts = [stranger(seed)[0] for seed in range(300)]
    assert sum("Ω" in text for text in texts) > 200
    assert sum(text.count("Ω") > 2 for text in texts) > 60
    assert sum("mult''" in text for text in texts) > 20  # what is linear in two variables: duals of duals


OPERATIONS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "negative": lambda a: -a,
    "square": lambda a: a * a,
    "sin": EXACT.sin,
    "cos": EXACT.cos,
    "tanh": EXACT.tanh,
}


def exactly(program: PullbackTerm) -> tuple[list[mpmath.mpf], mpmath.mpf]:
    """The coefficients in 50 digits by the graph that is compiled, and the largest number on the way."""
    made = compile(program)
    graph = made.graph
    assert made.numerals is not None
    values: dict[Node, mpmath.mpf] = dict(zip(graph.inputs, map(EXACT.mpf, made.numerals), strict=True))
    for node in order(graph.outputs):
        if node.is_constant:
            values[node] = EXACT.mpf(node.attribute)
        elif node not in values:
            values[node] = OPERATIONS[node.operation.name](*(values[x] for x in node.arguments))
    return [values[node] for node in graph.outputs], max(map(abs, values.values()))


@pytest.mark.parametrize("kind", [Source, HigherSource])
@pytest.mark.parametrize("seed", [4264, 6342, 2116, 1, 2, 3])
def test_digits_are_lost_where_sums_cancel_and_nowhere_else(
    seed: int, kind: type[Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first three are those of 10,000 that lose most."""
    monkeypatch.setattr(sys.modules[compile.__module__], "Native", lambda *_: None)  # the graph is what counts here
    program = drawn(kind, seed)
    exact, size = exactly(program)
    for found in (reduced(program), evaluated(program), oracle(program)):
        assert all(abs(a - b) <= 1e-15 * max(size, 1) for a, b in zip(found, exact, strict=True))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 10))
def test_differential_substitution_agrees(pick: random.Random, fuel: int) -> None:
    program = with_distinct_binders(Source(pick, derivatives=False).program(fuel))
    assert isinstance(program, App) and isinstance(program.function, FormPullback)
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


@pytest.mark.parametrize("kind", [Source, HigherSource])
@pytest.mark.parametrize("seed", range(5))
def test_machine_code_agrees(seed: int, kind: type[Source]) -> None:
    program = kind(random.Random(seed)).program(10)
    made = compile(program)()
    assert all(map(near, made, oracle(program)))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("((Ω λx. power(x, 2)) . (λ_. 1^)) (-3) 1", -6.0),
        ("((Ω λ<x, y>. power(x, 2) * y) . (λ_. 1^)) <-3, 2> <1, 10>", 78.0),
        ("((Ω λg. power(g 2, 2)) . (λ_. 1^)) (λx. -x) (λx. x)", -8.0),
        ("(Jpower . <1, 0>) <-3, 2>", -6.0),
    ],
)
def test_a_partial_derivative_that_nothing_asks_for_need_not_be_there(text: str, wanted: float) -> None:
    """A power of a negative number has none by its exponent."""
    assert evaluate(text) == wanted == float(str(reduce(text).result))
    if "Ω" in text:
        assert compile(text)() == wanted


@pytest.mark.parametrize("run", [lambda text: reduce(text).result, evaluate])
@pytest.mark.parametrize(
    "text",
    ["((Ω λp. power(p)) . (λ_. 1^)) <-3, 2>", "((Ω λy. power(-3, y)) . (λ_. 1^)) 2", "(Jpower . <1, 1>) <-3, 2>"],
)
def test_a_partial_derivative_that_something_asks_for_is_an_error(text: str, run: Callable[[str], Any]) -> None:
    with pytest.raises(dg.NotDifferentiable, match="power has no derivative"):
        run(text)


def test_compiled_functions_take_arguments() -> None:
    compiled = compile("(Ω λ<x, y>. square((x + 1) * (2 * x + y * y))) . (λ_. 1^)")
    assert compiled(1.0, 3.0) == (660.0, 528.0)
    assert compiled(0.0, 1.0) == (6.0, 4.0)


def test_types_are_those_of_programs() -> None:
    for seed in range(100):
        program = Source(random.Random(seed)).program(8)
        assert str(infer(program).type) == "(R × R)^"
