"""The text of terms, their types, and what is said of wrong ones. Costs two seconds."""

from __future__ import annotations

import math
import pickle
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dynagrad as dg
from dynagrad.languages.pullback import (
    Lam,
    Num,
    Var,
    covector,
    evaluate,
    infer,
    lam,
    let,
    omega,
    pair,
    parse,
    primitive_call,
    reduce,
    show,
)
from languages.pullback.terms import HigherSource, Source


@pytest.mark.parametrize("kind", [Source, HigherSource])
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(0, 14))
def test_what_is_printed_parses_to_the_same_term(kind: type[Source], pick: random.Random, fuel: int) -> None:
    program = kind(pick).program(fuel)
    assert parse(show(program)) == program
    assert parse(show(program, unicode=False)) == program
    assert hash(parse(str(program))) == hash(program)
    assert pickle.loads(pickle.dumps(program)) == program


def test_plain_letters_and_unicode_are_one_language() -> None:
    assert parse(r"(W \x. pi1 x) . (\_. 1^)") == parse("(Ω λx. π₁ x) · (λ_. 1\u2217)")
    assert parse("⟨1, 2⟩") == parse("<1, 2>") == parse("(1, 2)")


def test_names_of_bound_variables_do_not_matter() -> None:
    assert parse("λx. λy. x y") == parse("λa. λb. a b") != parse("λa. λb. b a")


def test_tuples_of_python_may_be_deep() -> None:
    """As the values are that `evaluate` gives."""
    count = 2000
    deep = evaluate(f"<{', '.join(['1'] * count)}>")
    names: Any = "y"
    for index in range(count - 1):
        names = (f"x{index}", names)
    assert evaluate(lam(names, Var("y"))(deep)) == 1.0
    assert evaluate(covector(deep)(deep)) == count


def test_terms_are_built_in_python() -> None:
    x, y = Var("x"), Var("y")
    square = (x + 1) * (2 * x + y * y)
    built = omega(("x", "y"), let("z", square, Var("z") * Var("z")), lam("_", covector(1)))(1, 3)
    assert str(reduce(built).result) == "(660, 528)^"
    assert str(infer(Lam("x", x[0] - x[1])).type) == "R × R ⇒ R"


X = Var("x")
BUILT_WRONG = [
    (lambda: X + "a", "a term, a number or a tuple of these is needed, and 'a' is none"),
    (lambda: X * True, "True is none"),
    (lambda: np.array([1.0, 2.0]) * X, "is none"),
    (lambda: X + math.nan, "a finite number is needed, and nan is none"),
    (lambda: X(), "a tuple has at least one part"),
    (lambda: pair(), "a tuple has at least one part"),
    (lambda: primitive_call("sin"), "a tuple has at least one part"),
    (lambda: primitive_call("foo", 1), "there is no primitive 'foo'"),
    (lambda: primitive_call("sin" + "'" * 5000, 1), "order 5,000 of sin"),
    (lambda: covector(), "at least one coefficient"),
    (lambda: covector(1, "a"), "a finite number is needed, and 'a' is none"),
    (lambda: covector(math.inf), "a finite number is needed, and inf is none"),
    (lambda: lam(("x", "x"), X), "a name or a tuple of different names"),
    (lambda: infer(Var("x y")), "a variable is called 'x y', which is no name"),
    (lambda: infer(lam("sin", 1)), "a variable is called 'sin', which is no name"),
    (lambda: reduce(lam("let", X)), "a variable is called 'let', which is no name"),
    (lambda: evaluate(Num(math.nan)), "a numeral is a finite number, and nan is none"),
    (lambda: evaluate(Num("a")), "a numeral is a finite number, and 'a' is none"),
    (lambda: infer(3), "a term or the text of one is needed, and 3 is neither"),
    (lambda: evaluate(None), "a term or the text of one is needed"),
    (lambda: parse(X), "the text of a term is needed"),
    (lambda: show("x"), "a term is needed"),
]


@pytest.mark.parametrize(("make", "said"), BUILT_WRONG)
def test_terms_that_cannot_be_built_are_errors(make: Callable[[], object], said: str) -> None:
    with pytest.raises(dg.Error, match=re.escape(said)):
        make()


TYPES = [
    ("λx. x + 1", "R ⇒ R"),
    ("(Ω λx. <x, x>) . w", "a ⇒ a^"),
    ("λd. λx. (d x) + 3^ x", "(R ⇒ R) ⇒ R ⇒ R"),
    ("(λx. <x, x>)^ . (1, 2)^", "R^"),
    ("(λh. h 3)^ . 1^", "(R ⇒ R)^"),
    ("(λx. let y = <x, 0> in <x, y>)^ . (1, 2, 3)^", "R^"),
    ("λx. (λd. d x)^ . 1^", "a ⇒ (a ⇒ R)^"),
    ("(λv. ((Ω λx. 3^ v) . (λ_. 1^)) 2 1)^ . 1^", "R^"),  # a pullback of a constant 1-form is linear in its function
]


@pytest.mark.parametrize(("text", "type"), TYPES)
def test_types(text: str, type: str) -> None:
    assert str(infer(parse(text)).type) == str(infer(text).type) == type


WRONG = [
    ("1 2", "should be a function or a dual, and has the type R", 1, 1),
    ("sin(<1, 2>)", "This has the type R × R, and R is expected", 1, 6),
    ("let y = 1 in\n  π1 y", "This has the type R, and a × b is expected: a pair", 2, 6),
    ("λx. x x", "would contain itself", 1, 5),
    ("(λx. x * x)^ . 1^", "`x` is not linear in the body of this dual map: a primitive takes it", 1, 6),
    ("(λx. x + 1)^ . 1^", "one operand depends on it and the other does not", 1, 6),
    ("(λx. f x)^ . 1^", "a function takes it as an argument", 1, 8),
    ("(λx. 5)^ . 1^", "does not depend on it", 1, 6),
    ("(λv. ((Ω λx. 3^ v) . w) 2 1)^ . 1^", "a pullback is taken along it", 1, 8),
    ("λsin. 1", "`sin` is a primitive function and cannot be bound", 1, 2),
    ("λ<x, x>. 1", "bound twice", 1, 3),
    ("<1, y>^", "numerals for coefficients", 1, 5),
]


@pytest.mark.parametrize(("text", "said", "line", "column"), WRONG)
def test_wrong_terms_are_errors_at_their_place(text: str, said: str, line: int, column: int) -> None:
    with pytest.raises(dg.SourceError) as caught:
        infer(text)
    assert said in str(caught.value)
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (line, column)


@pytest.mark.parametrize("run", [lambda text: reduce(text).result, evaluate])
@pytest.mark.parametrize("text", ["1 / 0.0", "((Ω λx. 1 / x) . (λ_. 1^)) 0.0", "log(0.0)"])
def test_what_has_no_value_is_an_error(run: object, text: str) -> None:
    with pytest.raises(dg.Error, match="no value"):
        run(text)  # type: ignore[operator]  # both take a text


def test_a_derivative_that_is_not_there_is_an_error() -> None:
    with pytest.raises(dg.NotDifferentiable, match="sqrt has no derivative"):
        assert reduce("((Ω λx. sqrt(x)) . (λ_. 1^)) 0.0").result


def test_a_reduction_has_a_limit() -> None:
    with pytest.raises(dg.NotConverged, match="more than 10 steps"):
        assert reduce("((Ω λx. x * x * x) . (λ_. 1^)) 2", max_steps=10).result


def test_deep_terms() -> None:
    """Nothing recurses on depth."""
    count = 2000
    lets = "let y0 = 1 in " + "".join(f"let y{i + 1} = y{i} + 1 in " for i in range(count)) + f"y{count}"
    assert str(reduce(lets).result) == str(count + 1)
    assert evaluate(lets) == count + 1
    assert parse("(" * count + "x" + ")" * count) == Var("x")
    functions = "".join(f"let f{i + 1} = λx. f{i} x in " for i in range(300))
    assert str(reduce(f"((Ω λy. let f0 = λx. x * x in {functions} f300 y) . (λ_. 1^)) 3").result) == "6^"
