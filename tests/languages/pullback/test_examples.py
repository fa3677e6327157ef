"""The examples of the paper, D-curry and D-eval, derivatives of derivatives, and no expression swell.

Costs ten seconds, most of it sympy.
"""

from __future__ import annotations

import itertools
import math
import random

import pytest
import sympy

import dynagrad as dg
from dynagrad.languages.pullback import evaluate, parse, reduce
from pullback_oracle import meaning

ONE = "(λ_. 1^)"


def test_the_three_computations_of_the_running_example() -> None:
    """Symbolic, forward and reverse: one Jacobian."""
    x, y = sympy.symbols("x y")
    f = ((x + 1) * (2 * x + y**2)) ** 2
    symbolic = [float(sympy.diff(f, v).subs({x: 1, y: 3})) for v in (x, y)]

    def function(a: float, b: float) -> float:
        return ((a + 1) * (2 * a + b * b)) ** 2

    forward = [dg.jvp(function, (1.0, 3.0), u)[1] for u in ((1.0, 0.0), (0.0, 1.0))]
    reverse = reduce(f"((Ω λ<x, y>. square((x + 1) * (2 * x + y * y))) . {ONE}) <1, 3>").result
    assert symbolic == forward == [660.0, 528.0]
    assert str(reverse) == "(660, 528)^"


def church(*items: object) -> str:
    body = "d"
    for item in reversed(items):
        body = f"f ({item}) ({body})"
    return f"(λf. λd. {body})"


FOLDS = {"sum": ("(λx. λy. x + y)", "0"), "product": ("(λx. λy. x * y)", "1"), "nested": ("(λx. λy. sin(x + y))", "0")}


@pytest.mark.parametrize("fold", FOLDS)
def test_a_fold_of_a_church_list(fold: str) -> None:
    """Its Jacobian, as a dual of coefficients and as a dual of lists that is applied to tangents."""
    combine, start = FOLDS[fold]
    items = (2, 3, 5)
    from_reals = f"((Ω λ<a, b, c>. {church('a', 'b', 'c')} {combine} {start}) . {ONE}) <2, 3, 5>"
    found = evaluate(from_reals).coefficients
    assert str(reduce(from_reals).result) == str(parse(f"({found[0]}, {found[1][0]}, {found[1][1]})^"))
    dual = f"((Ω λl. l {combine} {start}) . {ONE}) {church(*items)}"
    composed = f"((Ω λ<a, b, c>. {church('a', 'b', 'c')}) . (λ_. {dual})) <2, 3, 5>"
    assert str(reduce(composed).result) == str(reduce(from_reals).result)
    if fold == "sum":
        assert found == (1.0, (1.0, 1.0))
        assert str(reduce(f"({dual}) {church(10, 20, 30)}").result) == "60"


def test_d_curry() -> None:
    """D(curry f)(x) v = λy. Df(x, y)(v, 0), tested by random functionals h -> c (h a)."""
    pick = random.Random(0)
    for _ in range(10):
        x, a, c = (round(pick.uniform(-2, 2), 3) for _ in range(3))
        curried = f"((Ω λx. λy. sin(x * y) + x) . (λ_. (λh. h ({a}))^ . ({c})^)) ({x})"
        plain = f"((Ω λ<x, y>. sin(x * y) + x) . (λ_. ({c})^)) <{x}, {a}> <1, 0>"
        assert evaluate(curried)(1.0) == pytest.approx(evaluate(plain), rel=1e-12)
        assert float(str(reduce(f"({curried}) 1").result)) == pytest.approx(evaluate(plain), rel=1e-12)


def test_d_eval() -> None:
    """D(eval)(f, x)(g, v) = g x + Df(x) v."""
    dual = f"((Ω λ<f, x>. f x) . {ONE}) <(λy. y * y), 3>"
    assert str(reduce(f"({dual}) <(λy. sin(y)), 2>").result) == repr(math.sin(3.0) + 12.0)
    assert evaluate(f"({dual}) <(λy. sin(y)), 2>") == math.sin(3.0) + 12.0


@pytest.mark.parametrize(
    ("body", "at", "wanted"),
    [
        (f"((Ω λy. y * y * y) . {ONE}) x 1", 2, 12.0),
        (f"((Ω λy. sin(x * y)) . {ONE}) 2 1", 3, math.cos(6.0) - 6 * math.sin(6.0)),
        (f"let g = λy. x * x * y in ((Ω λy. g y) . {ONE}) 2 1", 3, 6.0),
        (f"((Ω λy. ((Ω λz. exp(z) * z * z * z) . {ONE}) y 1) . {ONE}) x 1", 2, 86 * math.exp(2.0)),
    ],
)
def test_derivatives_of_derivatives(body: str, at: int, wanted: float) -> None:
    text = f"((Ω λx. {body}) . {ONE}) {at} 1"
    assert float(str(reduce(text).result)) == pytest.approx(wanted, rel=1e-12)
    assert evaluate(text) == pytest.approx(wanted, rel=1e-12)
    assert meaning(parse(text), {}) == pytest.approx(wanted, rel=1e-12)


def test_free_variables_stay() -> None:
    """What a free variable stands in the way of is a value."""
    assert str(reduce("f (1 + 1)").result) == "let n = f 2 in n"
    stuck = reduce("((Ω λx. f (x * x)) . w) 2").result
    assert "Ω" in str(stuck) and meaning(stuck, {"f": lambda x: x * x, "w": lambda _: lambda u: u})(1.0) == 32.0
    open_term = reduce("((Ω λ<x, y>. x * y * z) . w) <2, 3>").result
    assert meaning(open_term, {"z": 5.0, "w": lambda _: lambda u: u})((1.0, 10.0)) == 15.0 + 100.0


def test_no_expression_swell() -> None:
    """The steps for squares of squares grow linearly, where symbolic differentiation doubles."""

    def term(count: int) -> str:
        body = "x"
        for _ in range(count):
            body = f"let y = {body} in (1 + y) * (1 + y)"
        return f"((Ω λx. {body}) . {ONE}) 0.001"

    counts = [reduce(term(k)).count() for k in (2, 4, 6, 8, 10)]
    assert len({b - a for a, b in itertools.pairwise(counts)}) == 1
    x = sympy.symbols("x")

    def swollen(count: int) -> int:
        f = x
        for _ in range(count):
            f = sympy.Mul(1 + f, 1 + f, evaluate=False)
        return int(sympy.count_ops(sympy.diff(f, x)))

    assert swollen(8) > 3 * swollen(6) > 9 * swollen(4)
