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
from dynagrad.languages.pullback.reduction.administrative import series_of
from dynagrad.languages.pullback.terms import App, Lam, Var, subterms
from languages.pullback.oracle import meaning

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


def test_the_growth_is_linear_with_premises_too() -> None:
    """Each square is the application of a function, whose Jacobian a premise finds (19b)."""

    def term(count: int) -> str:
        return f"((Ω λx. let s = λy. (1 + y) * (1 + y) in {'s (' * count}x{')' * count}) . {ONE}) 0.001"

    reductions = [reduce(term(k)) for k in (2, 4, 6, 8, 10)]
    assert all(any(True for _ in step.premises) for r in reductions for step in r if step.rule == "20")
    assert len({b.count() - a.count() for a, b in itertools.pairwise(reductions)}) == 1
    assert "19b" in {inner.rule for step in reductions[0] for inner in step.premises}


def separated(one: str, other: str, pick: random.Random) -> bool:
    """Whether a random functional tells two functions of a real and a function apart (Hahn-Banach)."""
    for _ in range(20):
        a, b, c = (round(pick.uniform(-2, 2), 3) for _ in range(3))
        functional = f"(λh. h ({a}) (λz. sin(z) * ({b})))^ . ({c})^"
        first, second = (float(str(reduce(f"({functional}) ({text})").result)) for text in (one, other))
        if abs(first - second) > 1e-9:
            return True
    return False


def test_terms_are_equal_if_no_functional_tells_them_apart() -> None:
    pick = random.Random(0)
    binomial = "λx. λf. square(x) + 2 * x * f x + f x * f x"
    assert not separated("λx. λf. square(x + f x)", binomial, pick)
    assert separated("λx. λf. square(x + f x)", "λx. λf. square(x) + f x * f x", pick)
    eval_rule = f"λx. λf. ((Ω λ<g, y>. g y) . {ONE}) <f, x> <(λz. z * z), 3>"
    assert not separated(eval_rule, f"λx. λf. (λz. z * z) x + ((Ω λy. f y) . {ONE}) x 3", pick)
    curry_rule = "λx. λf. ((Ω λu. λy. u * f y) . (λ_. (λh. h x)^ . 1^)) 2 5"
    assert not separated(curry_rule, f"λx. λf. ((Ω λ<u, y>. u * f y) . {ONE}) <2, x> <5, 0>", pick)


SHARED = "let a = sin(x * y) in let g = λz. a * z in square(g (a + x)) + g y * a"


def test_administrative_reduction_evaluates_no_subterm_twice() -> None:
    """Each part that is no variable has one binding, and each primitive outside of functions one evaluation."""
    reduction = reduce(f"((Ω λ<x, y>. {SHARED}) . {ONE}) <0.5, 2>")
    steps = list(reduction)
    [series] = [step.contractum for step in steps if step.rule == "A"]
    bound = series_of(series)
    assert bound is not None
    names = [name for name, _ in bound.bindings]
    assert len(set(names)) == len(names)
    parts = [part for part in subterms(parse(SHARED)) if not isinstance(part, Var)]
    lets = [part for part in parts if isinstance(part, App) and isinstance(part.function, Lam)]
    inside = [part for part in parts if isinstance(part, Lam) and part not in [let.function for let in lets]]
    hidden = sum(len([p for p in subterms(f.body) if not isinstance(p, Var)]) for f in inside)
    assert len(names) == len(parts) - 2 * len(lets) - hidden
    values = [step for step in steps if step.rule == "3" and step.phase == "forward"]
    assert sum("sin" in str(step.redex) for step in values) == 1


@pytest.mark.parametrize(
    ("body", "at", "wanted"),
    [
        ("<x * y, sin(x)>", (2.0, 3.0), (3.0 + 10 * math.cos(2.0), 2.0)),
        ("let d = (λv. v * 0.0 + v)^ . (3)^ in <x, y>", None, None),
        ("let d = (λv. (Jsin . v) x)^ . (3)^ in <d y, x>", (2.0, 3.0), (-9 * math.sin(2.0) + 10, 3 * math.cos(2.0))),
    ],
)
def test_several_outputs_and_duals_inside(body: str, at: tuple[float, float] | None, wanted: object) -> None:
    """Read by the dual (1, 10)."""
    if at is None:
        with pytest.raises(dg.ProgramError, match="not linear"):
            reduce(f"((Ω λ<x, y>. {body}) . (λ_. (1, 10)^)) <2, 3>")
        return
    found = evaluate(f"((Ω λ<x, y>. {body}) . (λ_. (1, 10)^)) <{at[0]}, {at[1]}>").coefficients
    assert found == pytest.approx(wanted, rel=1e-13)
    result = reduce(f"((Ω λ<x, y>. {body}) . (λ_. (1, 10)^)) <{at[0]}, {at[1]}>").result
    assert result.coefficients == pytest.approx(found, rel=1e-13)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        # along a function that an inner pullback differentiates
        (f"((Ω λg. ((Ω λx. g x) . {ONE}) 3 1) . {ONE}) (λy. y * y) (λy. y * y * y)", 27.0),
        (f"((Ω λx. ((Ω λh. h (h x)) . {ONE}) (λy. y * y) (λy. y)) . {ONE}) 3 1", 60.0),
        (
            f"((Ω λg. ((Ω λx. ((Ω λh. h (h x)) . {ONE}) g (λy. y)) . {ONE}) 3 1) . {ONE}) (λy. y * y) (λy. y)",
            14.0,
        ),
        # a function that keeps what its binder binds
        (f"((Ω λx. let f = λy. (let h = λk. k x in h (λz. z * y)) in f 5) . {ONE}) 2 1", 5.0),
    ],
)
def test_derivatives_along_functions_nest(text: str, wanted: float) -> None:
    assert float(str(reduce(text).result)) == evaluate(text) == wanted
    assert meaning(parse(text), {}) == pytest.approx(wanted, rel=1e-12)
