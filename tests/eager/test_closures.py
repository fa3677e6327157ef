"""Functions as outputs and as inputs of what is differentiated: in every mix of modes, against sympy.

The oracle differentiates expressions, with a fresh symbol for each call, so it is free of perturbation confusion.
Costs ten seconds.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy as sp

import dynagrad as dg
from dynagrad.eager.kinds import fresh
from dynagrad.ir.ops import scalars as ops

sin, cos, exp = ops.sin, ops.cos, ops.exp
D, G = dg.derivative, dg.grad
MODES = {"forward": D, "reverse": G}
VERBS = {"derivative": D, "jacfwd": dg.jacfwd, "grad": G, "jacrev": dg.jacrev}
OF_STRUCTURES = {"derivative": D, "jacfwd": dg.jacfwd, "jacrev": dg.jacrev}


def close(value: Any) -> Any:
    return pytest.approx(float(value), rel=1e-9, abs=1e-11)


# -- the oracle --------------------------------------------------------------------------------------------------------


def symbolic(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative, whose results may be functions and tuples as those of `f`."""
    return lambda x: _part(f, x)


def _part(along: Callable[[Any], Any], x: Any) -> Any:
    s = sp.Dummy()
    y = along(s)
    if callable(y):
        return lambda *a: _part(lambda t: along(t)(*a), x)
    if isinstance(y, tuple):
        return tuple(_part(lambda t, i=i: along(t)[i], x) for i in range(len(y)))  # type: ignore[misc]
    return sp.diff(y, s).subs(s, x)


# -- functions as outputs ----------------------------------------------------------------------------------------------


def shift(x: Any) -> Any:
    return lambda g: lambda y: g(x + y)


def mixed(x: Any) -> Any:
    return lambda g: lambda y: x * g(x * y) + g(y) * y


def nested(x: Any) -> Any:
    """A function that takes the derivative of what it is given."""
    return lambda g: lambda y: D(lambda z: g(z * x))(y) * x


def made_forward(f: Any, x: float) -> Any:
    return D(f)(x)


def made_along_one(f: Any, x: float) -> Any:
    return dg.jvp(f, (x,), (1.0,))[1]


def made_in_reverse(f: Any, x: float) -> Any:
    pullback = dg.vjp(f, x)[1]
    return lambda g: lambda y: pullback(dg.Dual(lambda k: k(g)(y)))[0]


def made_by_a_gradient(f: Any, x: float) -> Any:
    return G(f)(x)


def made_by_a_jacobian(f: Any, x: float) -> Any:
    return dg.jacrev(f)(x)


MAKERS = [made_forward, made_along_one, made_in_reverse, made_by_a_gradient, made_by_a_jacobian]


@pytest.mark.parametrize("make", MAKERS)
def test_the_derivative_of_a_curried_function_may_be_applied_to_itself(make: Any) -> None:
    h = make(shift, 3.0)
    assert h(exp)(1.0) == close(math.exp(4))
    assert h(h(exp))(1.0) == close(math.exp(7))
    assert h(h(h(exp)))(1.0) == close(math.exp(10))
    assert G(h(exp))(1.0) == close(math.exp(4))
    assert D(h(exp))(1.0) == close(math.exp(4))


PROGRAMS: list[Callable[..., Any]] = [  # of a function h -> (R -> R), a function of one real and two derivatives
    lambda h, f, d1, d2: lambda t: h(f)(t),
    lambda h, f, d1, d2: lambda t: h(h(f))(t) * t,
    lambda h, f, d1, d2: lambda t: h(lambda y: f(t * y))(t),
    lambda h, f, d1, d2: lambda t: d1(h(f))(t) + h(d1(f))(t),
    lambda h, f, d1, d2: lambda t: d1(lambda s: h(lambda y: f(s * y) * t)(s))(t),
    lambda h, f, d1, d2: lambda t: h(lambda y: d1(lambda z: f(y * z * t))(y))(t),
    lambda h, f, d1, d2: lambda t: h(d1(h(d2(f))))(t * t),
    lambda h, f, d1, d2: lambda t: d1(lambda s: d2(lambda r: h(h(lambda y: f(r * y) * s))(r))(s * t))(t),
    lambda h, f, d1, d2: lambda t: h(lambda y: h(lambda z: f(y * z))(t))(t),
    lambda h, f, d1, d2: lambda t: h(lambda y: y * d1(h(lambda z: f(z) * y))(y))(t),
]


@pytest.mark.parametrize("index", range(len(PROGRAMS)))
@pytest.mark.parametrize("f", [shift, mixed], ids=lambda f: f.__name__)
def test_a_function_made_before_is_used_inside_passes_of_both_modes_to_depth_three(f: Any, index: int) -> None:
    program = PROGRAMS[index]
    t = sp.Symbol("t")
    text = program(symbolic(f)(sp.Rational(1, 2)), sp.sin, symbolic, symbolic)(t)
    wanted = float(sp.diff(text, t).subs(t, 0.7))
    mixes = list(itertools.product(MODES.values(), repeat=3))
    for make in MAKERS:
        h = make(f, 0.5)
        # The others make what these two make, so a few mixes are enough for them; two have no reverse pass inside.
        few = [mixes[k] for k in (0, 3, 4, 6)]
        for outer, first, second in mixes if make in (made_forward, made_in_reverse) else few:
            if index in (0, 1, 2, 8) and (first is G or second is G):
                continue  # no derivatives inside
            assert outer(program(h, sin, first, second))(0.7) == close(wanted)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("outer", MODES)
def test_a_function_whose_own_text_takes_derivatives(outer: str, verb: str) -> None:
    t = sp.Symbol("t")

    def same(x: Any) -> Any:
        return lambda g: lambda y: symbolic(lambda z: g(z * x))(y) * x

    h, k = VERBS[verb](nested)(0.5), symbolic(same)(sp.Rational(1, 2))
    wanted = sp.diff(k(k(lambda y: sp.sin(y * t)))(t), t).subs(t, 0.7)
    assert MODES[outer](lambda t: h(h(lambda y: sin(y * t)))(t))(0.7) == close(wanted)


def test_a_function_made_inside_a_pass_is_differentiated_through_what_it_captured() -> None:
    for outer, inner in itertools.product(MODES.values(), VERBS.values()):
        assert outer(lambda t, inner=inner: inner(shift)(t)(lambda y: sin(y) * t)(1.0))(2.0) == close(
            sp.diff(sp.Symbol("t") * sp.cos(sp.Symbol("t") + 1), "t").subs("t", 2)
        )


@pytest.mark.parametrize("verb", VERBS)
def test_three_arrows(verb: str) -> None:
    def f(x: Any) -> Any:
        return lambda a: lambda g: lambda y: g(a(x) * y) + a(x * y)

    h = VERBS[verb](f)(0.5)
    k = symbolic(f)(sp.Rational(1, 2))
    wanted = k(sp.sin)(k(sp.sin)(sp.exp))(0.7)
    assert h(sin)(h(sin)(exp))(0.7) == close(wanted)
    t = sp.Symbol("t")
    wanted = sp.diff(k(lambda z: sp.sin(z * t))(k(sp.cos)(sp.exp))(t), t).subs(t, 0.7)
    for outer in MODES.values():
        assert outer(lambda t: h(lambda z: sin(z * t))(h(cos)(exp))(t))(0.7) == close(wanted)


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass
class Model:
    apply: Callable[..., Any]
    weight: Any


@pytest.mark.parametrize("verb", OF_STRUCTURES)
def test_a_container_of_functions_gives_a_container(verb: str) -> None:
    def f(x: Any) -> Any:
        return {"pair": Pair(shift(x), lambda y: x * y), "list": [x * x, lambda y: sin(x * y)], "name": "f", "n": 3}

    found = OF_STRUCTURES[verb](f)(3.0)
    assert type(found["pair"]) is Pair and found["name"] == "f" and found["n"] == 0.0
    assert found["pair"].first(exp)(1.0) == close(math.exp(4))
    assert found["pair"].second(7.0) == 7.0
    assert found["list"][0] == 6.0
    assert found["list"][1](2.0) == close(2 * math.cos(6.0))
    model = OF_STRUCTURES[verb](lambda x: Model(lambda y: x * x * y, x * x))(3.0)
    assert type(model) is Model and (model.weight, model.apply(2.0)) == (6.0, 12.0)


@pytest.mark.parametrize("verb", OF_STRUCTURES)
def test_functions_out_of_one_container_may_be_applied_to_each_other(verb: str) -> None:
    def f(x: Any) -> Any:
        return shift(x), mixed(x)

    a, b = OF_STRUCTURES[verb](f)(0.5)
    p, q = symbolic(f)(sp.Rational(1, 2))
    assert a(b(sin))(0.7) == close(p(q(sp.sin))(0.7))
    assert b(a(sin))(0.7) == close(q(p(sp.sin))(0.7))


@pytest.mark.parametrize("verb", OF_STRUCTURES)
def test_a_church_pair_is_one_function_and_its_parts_are_not_separate(verb: str) -> None:
    def container(x: Any) -> Any:
        return (lambda y: x * y), (lambda y: x + y)

    def church(x: Any) -> Any:
        return lambda select: select(*container(x))

    one, other = OF_STRUCTURES[verb](container)(3.0)
    assert one(other(2.0)) == 1.0  # y -> y of y -> 1
    pair = OF_STRUCTURES[verb](church)(3.0)
    assert pair(lambda a, b: a)(2.0) == 2.0 and pair(lambda a, b: b)(2.0) == 1.0
    assert pair(lambda a, b: a(b(2.0))) == 8.0  # the derivative of x * (x + 2)


@pytest.mark.parametrize("verb", OF_STRUCTURES)
def test_results_that_are_tuples_of_functions_of_functions(verb: str) -> None:
    def f(x: Any) -> Any:
        return lambda g: (lambda y: g(x * y), x * g(x))

    h = OF_STRUCTURES[verb](f)(0.5)
    inner, number = h(h(sin)[0])
    k = symbolic(f)(sp.Rational(1, 2))
    wanted = k(k(sp.sin)[0])
    assert inner(0.7) == close(wanted[0](0.7))
    assert number == close(wanted[1])


@pytest.mark.parametrize("verb", VERBS)
def test_arguments_by_name(verb: str) -> None:
    h = VERBS[verb](lambda x: lambda *, g, y: g(x + y))(3.0)
    assert h(g=lambda z: h(g=exp, y=z), y=1.0) == close(math.exp(7))


@pytest.mark.parametrize("made", [D, G], ids=["forward", "reverse"])
def test_many_calls_cost_a_constant_times_what_they_come_from(made: Any) -> None:
    h = made(lambda x: lambda g: lambda y: g(x * y) * x)(3.0)

    def numbers(verb: Any, calls: int) -> int:
        def f(t: Any) -> Any:
            for _ in range(calls):
                t = h(lambda z: sin(z) * 0.1)(t) * 0.01 + t * 0.5
            return t

        before = fresh()
        verb(f)(0.3)
        return fresh() - before

    for verb in (D, G, lambda f: G(G(f))):
        few, many = numbers(verb, 30), numbers(verb, 120)
        assert many < 4.2 * few
        assert many < 200 * 120


def test_ancestors_are_split_once_for_all_calls() -> None:
    h = D(shift)(3.0)

    def f(x: Any) -> Any:
        def long(y: Any) -> Any:
            for _ in range(50):
                y = y * 0.9
            return y

        z = long(x)
        return z + sum(h(lambda y: sin(y * z))(1.0) for _ in range(40))

    before = fresh()
    G(f)(1.0)
    assert fresh() - before < 50 + 40 * 40


# -- pullbacks of functions as outputs ---------------------------------------------------------------------------------


def test_the_pullback_of_a_function_valued_function_takes_a_dual() -> None:
    value, pullback = dg.vjp(lambda x: lambda y: sin(x * y), 2.0)
    assert value(3.0) == close(math.sin(6.0))
    at_three, at_one = dg.Dual.at(1.0, (3.0,)), dg.Dual.at(1.0, (1.0,))
    assert pullback(at_three) == (close(3 * math.cos(6.0)),)
    assert pullback(at_three * 2.0 + at_one) == (close(6 * math.cos(6.0) + math.cos(2.0)),)
    assert pullback(dg.Dual(lambda h: D(h)(3.0))) == (close(math.cos(6.0) - 6 * math.sin(6.0)),)


def test_the_pullback_of_numbers_and_functions_together() -> None:
    def f(x: Any, y: Any) -> Any:
        return {"number": x * y, "function": lambda z: x * z * z}

    value, pullback = dg.vjp(f, 2.0, 5.0)
    assert value["number"] == 10.0 and value["function"](3.0) == 18.0
    assert pullback({"number": 1.0, "function": dg.Dual.at(10.0, (3.0,))}) == (95.0, 2.0)
    assert pullback({"function": dg.Dual(), "number": 1}) == (5.0, 2.0)


def test_a_function_to_a_function() -> None:
    value, pullback = dg.vjp(lambda f: lambda y: f(f(y)), sin)
    (dual,) = pullback(dg.Dual.at(1.0, (2.0,)))
    assert value(2.0) == close(math.sin(math.sin(2.0)))
    assert dual(exp) == close(math.exp(math.sin(2)) + math.cos(math.sin(2)) * math.exp(2))


# -- functions as inputs -----------------------------------------------------------------------------------------------


def test_the_cotangent_of_a_function_is_a_linear_functional() -> None:
    dual = G(lambda f: f(f(2.0)))(sin)
    assert isinstance(dual, dg.Dual)
    assert dual(exp) == close(math.exp(math.sin(2)) + math.cos(math.sin(2)) * math.exp(2))
    assert dual(lambda x: 2.0 * exp(x) + x) == close(2 * dual(exp) + dual(lambda x: x))
    both = dg.add(dual, dg.scale(3.0, dual))
    assert isinstance(both, dg.Dual) and both(exp) == close(4 * dual(exp))
    assert isinstance(dual + 2.0 * dual, dg.Dual)


FUNCTIONALS: dict[str, Callable[..., Any]] = {  # of two derivatives and a function
    "twice": lambda d, e, f: f(f(0.7)),
    "thrice": lambda d, e, f: f(f(f(0.7) * 0.5) + f(0.2)),
    "square": lambda d, e, f: f(0.3) * f(0.3) * f(0.7),
    "ignored": lambda d, e, f: 1.0 + 0.0 * f(0.1),
    "its derivative": lambda d, e, f: d(f)(0.7),
    "its second derivative": lambda d, e, f: d(e(f))(0.7) * f(0.2),
    "of a composition": lambda d, e, f: d(lambda x: f(f(x) * x))(0.7),
    "at its derivative": lambda d, e, f: f(d(f)(0.7) + f(0.1)),
    "derivatives in derivatives": lambda d, e, f: d(lambda x: x * e(lambda y: f(x * y))(f(x)))(0.7),
    "of a closure": lambda d, e, f: (lambda g: g(g(0.3)) * d(g)(0.2))(lambda x: f(x) * f(0.5) + x),
    "a curried use": lambda d, e, f: d(lambda x: lambda g: lambda y: g(f(x) + y))(0.4)(lambda z: f(z) * z)(0.3),
}


@pytest.mark.parametrize("name", FUNCTIONALS)
def test_both_modes_agree_on_functionals(name: str) -> None:
    functional = FUNCTIONALS[name]
    a = sp.Symbol("a")
    text = functional(symbolic, symbolic, lambda x: sp.sin(x) + a * sp.exp(x) * x)
    wanted = sp.diff(text, a).subs(a, 0) if hasattr(text, "diff") else 0.0
    for d, e in itertools.product(MODES.values(), repeat=2):
        along = dg.jvp(lambda f: functional(d, e, f), (sin,), (lambda x: exp(x) * x,))[1]  # noqa: B023
        assert along == close(wanted)
        assert G(lambda f: functional(d, e, f))(sin)(lambda x: exp(x) * x) == close(wanted)  # noqa: B023


@pytest.mark.parametrize("name", FUNCTIONALS)
def test_second_derivatives_of_functionals(name: str) -> None:
    functional = FUNCTIONALS[name]
    a, b = sp.symbols("a b")
    text = sp.sympify(functional(symbolic, symbolic, lambda x: sp.sin(x) + a * sp.exp(x) + b * x * x))
    wanted = sp.diff(text, a, b).subs({a: 0, b: 0})

    def forward(functional: Any, direction: Any) -> Any:
        return lambda f: dg.jvp(functional, (f,), (direction,))[1]

    def reverse(functional: Any, direction: Any) -> Any:
        return lambda f: G(functional)(f)(direction)

    for first, second in itertools.product((forward, reverse), repeat=2):
        along = first(lambda f: functional(D, D, f), exp)
        assert second(along, lambda x: x * x)(sin) == close(wanted)


def test_numbers_that_an_input_captured_get_ordinary_gradients() -> None:
    def f(c: Any) -> Any:
        return G(lambda g: g(g(2.0)))(lambda x: c * x)(lambda x: x * x * c)

    c = sp.Symbol("c")  # h(f(2)) + f'(f(2)) h(2)
    wanted = sp.diff(c * (2 * c) ** 2 + c * 4 * c, c).subs(c, 3)
    assert G(f)(3.0) == close(wanted)
    assert D(f)(3.0) == close(wanted)
    assert G(G(f))(3.0) == close(sp.diff(c * (2 * c) ** 2 + c * 4 * c, c, 2).subs(c, 3))


def test_captured_numbers_and_the_function_itself_in_one_pass() -> None:
    def f(c: Any, g: Any) -> Any:
        return g(c * g(c))

    by_number, by_function = G(f, (0, 1))(0.7, sin)
    c, a = sp.symbols("c a")
    assert by_number == close(sp.diff(sp.sin(c * sp.sin(c)), c).subs(c, 0.7))

    def h(x: Any) -> Any:
        return sp.sin(x) + a * sp.exp(x)

    assert by_function(exp) == close(sp.diff(h(0.7 * h(0.7)), a).subs(a, 0))


def test_inputs_whose_results_are_functions() -> None:
    def functional(f: Any) -> Any:
        return f(f(0.7)(0.3))(0.2) * f(0.1)(0.4)

    a = sp.Symbol("a")
    text = functional(lambda x: lambda y: sp.sin(x * y) + a * x * sp.exp(y))
    wanted = sp.diff(text, a).subs(a, 0)

    def at(x: Any) -> Any:
        return lambda y: sin(x * y)

    def direction(x: Any) -> Any:
        return lambda y: x * exp(y)

    assert G(functional)(at)(direction) == close(wanted)
    assert dg.jvp(functional, (at,), (direction,))[1] == close(wanted)


def test_inputs_whose_results_are_functions_of_functions() -> None:
    def functional(f: Any) -> Any:
        inner = f(0.7)
        return inner(lambda z: inner(lambda w: w * z)(0.3))(0.2)

    a = sp.Symbol("a")
    text = functional(lambda x: lambda g: lambda y: g(sp.sin(x * y)) + a * x * g(y) * y)
    wanted = sp.diff(text, a).subs(a, 0)
    f = lambda x: lambda g: lambda y: g(sin(x * y))  # noqa: E731
    h = lambda x: lambda g: lambda y: x * g(y) * y  # noqa: E731
    assert dg.jvp(functional, (f,), (h,))[1] == close(wanted)
    assert G(functional)(f)(h) == close(wanted)


def test_inputs_whose_results_are_structures() -> None:
    def functional(f: Any) -> Any:
        value = f(0.7)
        return value["a"] * value["b"][1](value["b"][0])

    found = G(functional)(lambda x: {"a": sin(x), "b": (x, lambda y: y * y), "n": 3})
    direction = lambda x: {"a": 1.0, "b": (2.0, lambda y: y), "n": 3}  # noqa: E731
    wanted = 0.49 + math.sin(0.7) * 2 * 0.7 * 2.0 + math.sin(0.7) * 0.7
    assert found(direction) == close(wanted)


def test_a_function_inside_a_structure() -> None:
    point = {"f": sin, "x": 2.0, "name": "p", "more": [cos]}
    found = G(lambda p: p["f"](p["x"]) * p["more"][0](1.0))(point)
    assert found["x"] == close(math.cos(2) * math.cos(1)) and found["name"] == "p"
    assert found["f"](exp) == close(math.exp(2) * math.cos(1))
    assert found["more"][0](exp) == close(math.sin(2) * math.exp(1))


def test_a_function_that_is_not_used_has_the_zero_functional() -> None:
    assert G(lambda f: 3.0)(sin)(exp) == 0.0
    assert G(lambda p: p[0])((2.0, sin))[1](exp) == 0.0


def test_the_derivative_of_a_functional_is_a_functional_also_along_a_number() -> None:
    def dual(c: Any) -> Any:
        return G(lambda f: f(c * f(2.0)))(sin)

    c, a = sp.symbols("c a")

    def g(x: Any) -> Any:
        return sp.sin(x) + a * sp.exp(x)

    wanted = sp.diff(g(c * g(2)), a, c).subs({a: 0, c: 0.7})
    for verb in VERBS.values():
        found = verb(dual)(0.7)
        assert isinstance(found, dg.Dual) and found(exp) == close(wanted)
        assert (found * 2.0 + found)(exp) == close(3 * wanted)
    assert dg.vjp(dual, 0.7)[1](dg.Dual.at(1.0, (exp,)))[0] == close(wanted)


def test_many_sums_and_multiples_of_a_functional() -> None:
    dual = G(lambda f: f(2.0))(np.sin)
    scaled = dual
    for _ in range(5000):
        scaled = scaled * 1.0
    assert scaled(exp) == dual(exp) == close(math.exp(2.0))
    doubled = dual
    for _ in range(60):
        doubled = doubled + doubled
    assert doubled(exp) == close(2.0**60 * math.exp(2.0))
    assert repr(doubled * 2.0) == "<Dual of 1 term>"
    assert D(lambda t: (dual * t + dual * (t * t))(exp))(3.0) == close(7.0 * math.exp(2.0))
    assert (dg.Dual() + dg.Dual() * 2.0)(exp) == 0.0 and (dual + dg.Dual())(exp) == (dg.Dual() + dual)(exp)


def test_a_functional_of_many_calls_takes_time_in_proportion() -> None:
    calls = 5_000
    dual = G(lambda f: sum(f(i / calls) for i in range(calls)))(sin)
    assert dual(lambda x: x) == close((calls - 1) / 2)
    assert repr(dual) == f"<Dual of {calls:,} terms>"


def test_passes_of_other_threads_do_not_matter_to_a_functional() -> None:
    begun, done, calls = threading.Event(), threading.Event(), []

    def waiting(x: Any) -> Any:
        begun.set()
        done.wait(10.0)
        return x

    other = threading.Thread(target=lambda: G(waiting)(1.0))

    def f(g: Any) -> Any:
        calls.append(g)
        if len(calls) == 1:
            other.start()
            begun.wait(10.0)
        return g(g(2.0))

    try:
        dual = G(f)(sin)
        assert dual(cos) == close(math.cos(math.sin(2.0)) + math.cos(math.sin(2.0)) * math.cos(2.0))
        assert len(calls) == 1
    finally:
        done.set()
        other.join()


def test_a_functional_may_be_given_numbers_of_a_pass_from_another_thread() -> None:
    def f(g: Any) -> Any:
        def inner(y: Any) -> Any:
            found: list[Any] = []
            worker = threading.Thread(target=lambda: found.append(g(y * y)))
            worker.start()
            worker.join()
            return found[0]

        return D(inner)(1.5)

    assert G(f)(sin)(exp) == close(3.0 * math.exp(2.25))


# -- arrays ------------------------------------------------------------------------------------------------------------

X = np.array([0.3, 0.7, 1.1])


@pytest.mark.parametrize("verb", OF_STRUCTURES)
def test_curried_functions_of_arrays(verb: str) -> None:
    def f(a: Any) -> Any:
        return lambda g: lambda y: g(a * y)

    h, k = OF_STRUCTURES[verb](f)(2.0), symbolic(f)(sp.Integer(2))
    z = sp.Symbol("z")
    wanted = sp.lambdify(z, k(k(sp.sin))(z))
    slope = sp.lambdify(z, sp.diff(k(k(sp.sin))(z), z))
    assert h(h(sin))(X) == pytest.approx(wanted(X), rel=1e-9)
    assert G(lambda y: np.sum(h(h(sin))(y)))(X) == pytest.approx(slope(X), rel=1e-9)
    assert dg.jvp(h(h(sin)), (X,), (np.ones(3),))[1] == pytest.approx(slope(X), rel=1e-9)


def test_functionals_of_functions_of_arrays() -> None:
    wanted = np.sum(2 * np.sin(X) * np.exp(X))
    assert G(lambda f: np.sum(f(X) * f(X)))(sin)(exp) == close(wanted)
    assert dg.jvp(lambda f: np.sum(f(X) * f(X)), (sin,), (exp,))[1] == close(wanted)
    assert G(lambda c: G(lambda f: np.sum(f(X)))(lambda x: c * x)(lambda x: c * x))(2.0) == close(np.sum(X))


def test_a_dual_does_not_see_what_is_written_later() -> None:
    point = X.copy()
    dual = G(lambda f: np.sum(f(point)))(sin)
    point[:] = 100.0
    assert dual(exp) == close(np.sum(np.exp(X)))


# -- what leaks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_number_that_a_closure_remembers_is_an_error_or_right(mode: str) -> None:
    d = MODES[mode]
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x)
        return x * kept[0]

    assert d(f)(2.0) == 4.0
    with pytest.raises(dg.Error, match="escaped"):
        d(f)(3.0)  # the gradient is the number kept from the first call
    assert d(lambda x: x * x if kept[0] > 1.0 else x)(3.0) == 6.0  # to be compared it may well be used


def test_a_number_kept_from_an_inner_derivative_is_an_error_outside() -> None:
    kept: list[Any] = []
    with pytest.raises(dg.Error, match=r"escaped.*test_closures\.py, line \d+"):
        G(lambda x: D(lambda y: (kept.append(x * y), y * y)[1])(x) * kept[0])(2.0)


def test_a_number_kept_from_the_call_of_a_derivative_that_is_a_function_is_an_error() -> None:
    kept: list[Any] = []
    h = D(lambda x: (kept.append(x), shift(x))[1])(3.0)
    with pytest.raises(dg.Error, match="escaped"):
        h(lambda y: y * kept[0])(1.0)


def test_a_number_kept_within_the_same_pass_is_an_ordinary_number() -> None:
    for d in MODES.values():
        kept: list[Any] = []

        def f(x: Any, kept: list[Any] = kept) -> Any:
            kept.append(x * x)
            return kept[-1] * x

        assert d(f)(2.0) == 12.0


def test_where_the_chain_rule_has_no_answer_there_is_an_error_when_it_is_called() -> None:
    for verb in VERBS.values():
        h = verb(lambda x: lambda y: ops.sqrt(x) ** 2.0 * y)(0.0)
        with pytest.raises(dg.NotDifferentiable, match=r"0 times infinity.*test_closures\.py, line"):
            h(1.0)


# -- bad input ---------------------------------------------------------------------------------------------------------


def test_tangents_and_cotangents_of_functions_are_functions_and_functionals() -> None:
    with pytest.raises(dg.Error, match="tangent of a function should be a function"):
        dg.jvp(lambda f: f(2.0), (sin,), (1.0,))
    with pytest.raises(dg.Error, match=r"cotangent of a function should be a dg\.Dual"):
        dg.vjp(lambda x: lambda y: x * y, 2.0)[1](1.0)
    with pytest.raises(dg.Error, match="only a Dual can be added to a Dual"):
        dg.Dual() + 1.0


def test_a_direction_whose_results_have_another_structure() -> None:
    with pytest.raises(dg.Error, match="should be a real"):
        G(lambda f: f(2.0))(sin)(lambda x: (x, x))
    with pytest.raises(dg.Error, match="should be a real"):
        dg.jvp(lambda f: f(2.0), (sin,), (lambda x: (x, x),))
