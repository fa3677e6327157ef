"""Functions returned by functions that are differentiated in reverse, in all verbs, against forward mode and closed
forms.

Five seconds: nothing is compiled here.
"""

from __future__ import annotations

import gc
import math
import threading
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.ir.ops import scalars as ops

sin, cos, exp = ops.sin, ops.cos, ops.exp
VERBS = {"derivative": dg.derivative, "jacfwd": dg.jacfwd, "grad": dg.grad, "jacrev": dg.jacrev}
BACKWARD = {"grad": dg.grad, "jacrev": dg.jacrev}
X = np.array([0.3, 0.7, 1.1])


def close(value: Any) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-11)


def shift(x: Any) -> Any:
    return lambda g: lambda y: g(x + y)


# -- the derivative of a function result is a function -----------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_its_calls_are_the_derivatives_of_calls(verb: str) -> None:
    h = VERBS[verb](lambda x: lambda y: sin(x * x * y))(2.0)
    assert [h(y) for y in (0.0, 1.0, 3.0)] == [close(4.0 * y * math.cos(4.0 * y)) for y in (0.0, 1.0, 3.0)]


@pytest.mark.parametrize("verb", VERBS)
def test_functions_that_return_functions_that_return_functions(verb: str) -> None:
    h = VERBS[verb](lambda x: lambda a: lambda b: lambda c: x * x * a * b + x * c)(3.0)
    assert h(2.0)(5.0)(7.0) == 67.0
    first = h(2.0)
    assert [first(1.0)(1.0), first(5.0)(0.0)] == [13.0, 60.0]


@pytest.mark.parametrize("outer", VERBS)
@pytest.mark.parametrize("verb", VERBS)
def test_it_may_be_applied_to_itself_and_differentiated(verb: str, outer: str) -> None:
    h, d = VERBS[verb](shift)(3.0), VERBS[outer]
    assert h(h(exp))(1.0) == close(math.exp(7))
    assert h(h(h(exp)))(1.0) == close(math.exp(10))
    assert d(h(h(exp)))(1.0) == close(math.exp(7))
    assert d(d(h(h(exp))))(1.0) == close(math.exp(7))
    assert h(d(h(d(exp))))(1.0) == close(math.exp(7))
    assert d(lambda t: VERBS[verb](shift)(t)(lambda y: sin(y) * t)(1.0))(2.0) == close(math.cos(3) - 2 * math.sin(3))
    assert d(VERBS[verb](lambda x: lambda y: x * x * y * y))(2.0)(3.0) == 18.0
    assert d(lambda t: VERBS[verb](lambda x: lambda y: t * x * x * y)(t))(2.0)(3.0) == 24.0


@pytest.mark.parametrize("verb", VERBS)
def test_it_may_be_called_in_the_pass_that_it_was_made_in_and_after_it(verb: str) -> None:
    kept: list[Any] = []

    def f(t: Any) -> Any:
        h = VERBS[verb](lambda x: lambda y: x * x * y)(t)
        kept.append(h)
        return h(t) + h(2.0 * t)

    assert dg.grad(f)(3.0) == 36.0  # 6 t^2
    with pytest.raises(dg.Error, match="escaped"):
        kept[0](1.0)
    assert VERBS[verb](lambda x: lambda y: x * x * y)(3.0)(1.0) == 6.0


@pytest.mark.parametrize("verb", VERBS)
def test_a_number_of_an_outer_pass_in_the_point_and_in_the_call(verb: str) -> None:
    d = VERBS[verb]

    def f(t: Any) -> Any:
        h = d(lambda x: lambda y: sin(x * y * t))(t)
        return h(t) * h(1.0)

    def by_hand(t: Any) -> Any:
        return t * t * cos(t**3) * t * cos(t * t)

    for outer in VERBS.values():
        assert outer(f)(0.7) == close(dg.derivative(by_hand)(0.7))
        assert outer(outer(f))(0.7) == close(dg.derivative(by_hand, 2)(0.7))


@pytest.mark.parametrize("verb", VERBS)
def test_second_derivatives_of_function_results(verb: str) -> None:
    def f(x: Any) -> Any:
        return lambda y: sin(x) * exp(x * y)

    wanted = dg.derivative(lambda x: f(x)(0.3), 2)(0.5)
    assert VERBS[verb](dg.grad(f))(0.5)(0.3) == close(wanted)
    assert dg.jacrev(VERBS[verb](f))(0.5)(0.3) == close(wanted)
    assert dg.hessian(f)(0.5)(0.3) == close(wanted)
    assert dg.hvp(f, (0.5,), (2.0,))(0.3) == close(2.0 * wanted)
    assert dg.derivative(f, 2)(0.5)(0.3) == close(wanted)


def test_with_its_value() -> None:
    value, gradient = dg.value_and_grad(lambda x: lambda y: x * x * y)(3.0)
    assert (value(5.0), gradient(5.0)) == (45.0, 30.0)
    (value, aux), gradient = dg.value_and_grad(lambda x: (lambda y: x * x * y, x + 1.0), has_aux=True)(3.0)
    assert (value(5.0), aux, gradient(5.0)) == (45.0, 4.0, 30.0)
    gradient, aux = dg.grad(lambda x: (lambda y: x * x * y, {"aux": x}), has_aux=True)(3.0)
    assert (gradient(5.0), aux) == (30.0, {"aux": 3.0})


def test_values_and_what_comes_beside_them_are_functions_of_their_own() -> None:
    def f(x: Any) -> Any:
        return lambda y: sin(x * y)

    (value, aux), _ = dg.value_and_grad(lambda x: (f(x), {"aux": f(x), "x": x * x}), has_aux=True)(2.0)
    assert aux["x"] == 4.0
    several = [dg.vjp(f, 2.0)[0], dg.jvp(f, (2.0,), (1.0,))[0], dg.value_and_grad(f)(2.0)[0], value, aux["aux"]]
    for g in several:
        assert g(3.0) == close(math.sin(6.0))
        for verb in VERBS.values():
            assert verb(g)(3.0) == close(2.0 * math.cos(6.0))
            assert verb(dg.grad(g))(3.0) == close(-4.0 * math.sin(6.0))
    gradient, aux = dg.grad(lambda x: (x * x, lambda y: x * y), has_aux=True)(2.0)
    assert (gradient, aux(3.0), dg.grad(aux)(3.0)) == (4.0, 6.0, 2.0)


def test_a_value_that_solves_and_differentiates_when_it_is_called() -> None:
    def f(x: Any) -> Any:
        return lambda y: dg.fixed_point(lambda z: 0.5 * (z + x * y / z), 1.0) + dg.grad(lambda z: z * z * x)(y)

    value, gradient = dg.value_and_grad(f)(2.0)
    for _ in range(2):
        assert value(3.0) == close(math.sqrt(6.0) + 12.0) and gradient(3.0) == close(0.5 * math.sqrt(1.5) + 6.0)
    assert dg.grad(value)(3.0) == close(0.5 * math.sqrt(2.0 / 3.0) + 4.0)


def test_several_arguments_and_structures() -> None:
    def f(p: Any, x: Any, *, power: int) -> Any:
        return lambda y: p["w"][0] ** power * x * y + p["w"][1]

    p = {"w": [3.0, 5.0], "name": "p"}
    assert dg.grad(f)(p, 2.0, power=2)(7.0) == {"w": [84.0, 1.0], "name": "p"}
    assert dg.grad(f, (1, 0))(p, 2.0, power=2)(7.0) == (63.0, {"w": [84.0, 1.0], "name": "p"})
    for jacobian in (dg.jacrev, dg.jacfwd):
        assert jacobian(f, (0, 1))(p, 2.0, power=2)(7.0) == ({"w": [84.0, 1.0], "name": "p"}, 63.0)
        assert jacobian(f, 1)(p, 2.0, power=2)(7.0) == 63.0


def test_jacobians_of_arrays() -> None:
    def f(x: Any) -> Any:
        return lambda y: {"outer": np.outer(x, y), "sum": np.sum(x * x) * y[0], "more": lambda z: x * z}

    y = np.array([2.0, 5.0])
    for jacobian in (dg.jacrev, dg.jacfwd):
        found = jacobian(f)(X)(y)
        assert np.array_equal(found["outer"], np.einsum("ik,j->ijk", np.eye(3), y))
        assert found["sum"] == close(4.0 * X)
        assert np.array_equal(found["more"](3.0), 3.0 * np.eye(3))
        assert np.array_equal(dg.jacrev(found["more"])(3.0), np.eye(3))
    assert dg.grad(lambda x: lambda y: np.sum(x * x * y))(X)(2.0) == close(4.0 * X)
    assert dg.hessian(lambda x: lambda y: np.sum(x * x * y))(X)(2.0) == close(4.0 * np.eye(3))


def test_jacobians_by_nothing() -> None:
    for jacobian in (dg.jacrev, dg.jacfwd):
        assert jacobian(lambda x: lambda y: np.sum(x) + y)(np.zeros(0))(2.0).shape == (0,)


@pytest.mark.parametrize("verb", VERBS)
def test_a_function_that_takes_what_it_returns(verb: str) -> None:
    h = VERBS[verb](lambda u: lambda f: lambda g: lambda x: f(g)(x + u))(0.0)
    assert h(h(lambda f: f))(exp)(1.0) == close(math.e)


@pytest.mark.parametrize("verb", VERBS)
def test_functions_that_do_not_depend_on_the_argument(verb: str) -> None:
    assert VERBS[verb](lambda x: sin)(2.0)(1.0) == 0.0
    assert VERBS[verb](lambda x: lambda y: 3)(2.0)(1.0) == 0.0


@pytest.mark.parametrize("verb", VERBS)
def test_derivatives_inside_a_function_result(verb: str) -> None:
    for inner in VERBS.values():
        h = VERBS[verb](lambda x, d=inner: lambda g: lambda y: d(lambda z: g(z * x))(y) * x)(0.5)
        assert h(sin)(0.7) == close(2 * 0.5 * math.cos(0.35) - 0.25 * 0.7 * math.sin(0.35))


# -- functions as arguments and results --------------------------------------------------------------------------------


def test_the_gradient_of_a_function_to_a_function_is_a_function_to_functionals() -> None:
    gradient = dg.grad(lambda f: lambda y: f(f(y)))(sin)
    dual = gradient(2.0)
    assert isinstance(dual, dg.Dual)
    assert dual(exp) == close(math.exp(math.sin(2)) + math.cos(math.sin(2)) * math.exp(2))
    by_number, by_function = dg.grad(lambda c, f: lambda y: f(c * f(y)), (0, 1))(0.7, sin)(2.0)
    assert by_number == close(math.cos(0.7 * math.sin(2)) * math.sin(2))
    assert by_function(exp) == close(math.exp(0.7 * math.sin(2)) + math.cos(0.7 * math.sin(2)) * 0.7 * math.exp(2))


# -- functionals of users ----------------------------------------------------------------------------------------------


def integral(h: Any) -> Any:
    """By Simpson's rule, from 0 to 1, and exact for cubics."""
    return (h(0.0) + 4.0 * h(0.5) + h(1.0)) / 6.0


def test_a_dual_is_made_of_a_function() -> None:
    value, back = dg.vjp(lambda x: lambda y: x * x * y * y, 3.0)
    assert value(2.0) == 36.0
    assert back(dg.Dual(integral)) == (close(2.0),)
    assert back(dg.Dual(lambda h: h(3.0) + 2.0 * h(1.0))) == (66.0,)
    assert back(dg.Dual(lambda h: dg.grad(h)(3.0))) == (36.0,)
    assert back(dg.Dual(lambda h: dg.derivative(h, 2)(3.0))) == (12.0,)
    assert back(dg.Dual(integral) * 3.0 + dg.Dual(lambda h: h(1.0))) == (close(12.0),)
    one = dg.Dual(lambda h: h(1.0))
    assert back(-one) == (-6.0,) and back(one - dg.Dual(lambda h: h(2.0)) / 4.0) == (0.0,)
    assert back(sum([one, one])) == (12.0,)
    assert back(dg.Dual(lambda h: 0)) == back(dg.Dual()) == (0.0,)
    assert dg.Dual(lambda h: 0)(sin) == 0.0 and dg.Dual(lambda h: np.float64(2.0) * h(1))(sin) == 2.0 * math.sin(1)


def test_pullbacks_of_functions_by_functionals_are_pulled_back_again() -> None:
    def f(t: Any) -> Any:
        return dg.vjp(lambda x: lambda y: sin(t * x * y), 2.0)[1](dg.Dual(lambda h: h(t)))[0]

    def by_hand(t: Any) -> Any:
        return t * t * cos(2.0 * t * t)

    for verb in VERBS.values():
        assert verb(f)(0.7) == close(dg.derivative(by_hand)(0.7))
        assert verb(verb(f))(0.7) == close(dg.derivative(by_hand, 2)(0.7))


def test_a_functional_of_functionals() -> None:
    value, back = dg.vjp(lambda x: lambda g: lambda y: g(x * y), 2.0)
    assert value(exp)(1.0) == close(math.exp(2))
    assert back(dg.Dual(lambda h: integral(h(lambda z: z * z)))) == (close(4.0 / 3.0),)
    assert dg.pullback(lambda x: lambda y: x * x * y * y, lambda h: dg.Dual(integral))(3.0) == close(2.0)


def test_functionals_for_some_functions_of_a_structure() -> None:
    def f(x: Any, g: Any) -> Any:
        return {"number": x * x, "one": lambda y: x * g(y), "other": [lambda y: y * x**3]}

    _, back = dg.vjp(f, 2.0, sin)
    by_x, by_g = back({"number": 1.0, "one": dg.Dual(), "other": [dg.Dual()]})
    assert by_x == 4.0 and by_g(exp) == 0.0
    by_x, by_g = back({"number": 10.0, "one": dg.Dual(lambda h: h(1.0)), "other": [dg.Dual(lambda h: h(2.0))]})
    assert by_x == close(40.0 + math.sin(1) + 24.0) and by_g(exp) == close(2.0 * math.e)


def test_what_is_no_functional() -> None:
    for wrong in (3.0, [integral], "h"):
        with pytest.raises(dg.Error, match="the functional should be a function"):
            dg.Dual(wrong)  # type: ignore[arg-type]
    with pytest.raises(dg.Error, match=r"should give one real, and gave .*test_returned\.py, line"):
        dg.vjp(lambda x: lambda y: x * y, 2.0)[1](dg.Dual(lambda h: (h(1.0), h(2.0))))
    with pytest.raises(dg.Error, match="should give one real"):
        dg.Dual(lambda h: h(X))(sin)
    with pytest.raises(dg.Error, match="should be applied to a function"):
        dg.Dual(integral)(2.0)  # type: ignore[arg-type]
    with pytest.raises(dg.Error, match=r"a dg\.Dual, and .*dg\.Dual\(functional\) makes one"):
        dg.vjp(lambda x: lambda y: x * y, 2.0)[1](integral)


# -- what is evaluated, and when ---------------------------------------------------------------------------------------


def test_a_call_evaluates_the_function_again_and_costs_as_much() -> None:
    calls: list[Any] = []

    def f(x: Any) -> Any:
        calls.append(x)
        return lambda y: x * y

    for verb in BACKWARD.values():
        calls.clear()
        h = verb(f)(2.0)
        assert len(calls) == 1
        assert [h(float(y)) for y in range(10)] == [float(y) for y in range(10)]
        assert len(calls) == 11


def test_calls_leave_nothing_behind() -> None:
    value, gradient = dg.value_and_grad(lambda x: lambda y: sin(x * y))(2.0)
    pulled, back = dg.vjp(lambda x: lambda g: lambda y: g(x * y), 2.0)
    calls = (lambda: value(3.0), lambda: gradient(3.0), lambda: pulled(sin)(3.0), lambda: back(dg.Dual.at(1.0, (sin,))))
    for call in calls[:3]:
        call()
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(300):
            call()
        gc.collect()
        assert len(gc.get_objects()) - before < 100


@pytest.mark.parametrize("verb", BACKWARD)
def test_what_is_written_later_does_not_matter(verb: str) -> None:
    point, weights, index, names, y = X.copy(), X.copy(), np.array([0, 2]), [2.0], np.array([3.0, 5.0])
    h = BACKWARD[verb](lambda x, w: lambda y, k, c: lambda z: np.sum(x[k] * y * w[k]) * c[0] * z)(point, weights)
    point[:], weights[:] = 100.0, 100.0
    inner = h(y, index, names)
    y[:], index[:], names[0] = 100.0, 1, 100.0
    assert inner(1.0) == close(np.array([1.8, 0.0, 11.0]))


@pytest.mark.parametrize("verb", VERBS)
def test_a_function_result_may_write_to_what_it_is_given(verb: str) -> None:
    def f(x: Any) -> Any:
        def g(values: Any, table: Any) -> Any:
            values.append(x * values[0])
            table[0] = 7.0
            return values[-1] * x * table[0]

        return g

    h = VERBS[verb](f)(3.0)
    assert [h([2.0], np.zeros(2)), h([2.0], np.zeros(2))] == [84.0, 84.0]
    given = [2.0]
    assert h(given, np.zeros(2)) == h(given, np.zeros(2)) == 84.0 and given == [2.0]


@pytest.mark.parametrize("verb", VERBS)
def test_arrays_that_are_written_to_in_a_function_result(verb: str) -> None:
    import dynagrad.numpy as dnp

    def f(x: Any) -> Any:
        table = dnp.zeros(2)
        table[0] = x * x

        def g(values: Any) -> Any:
            made = dnp.zeros(3)
            made[0] = x
            made[1:] += table * values
            return dnp.sum(made * made)

        return g

    def by_hand(x: float, v: float) -> float:
        return 2.0 * x + 4.0 * x**3 * v * v

    h = VERBS[verb](f)(3.0)
    assert h(np.array([2.0, 5.0])) == close(by_hand(3.0, 2.0))
    value, gradient = dg.value_and_grad(f)(3.0)
    assert (value(X[:2]), gradient(X[:2])) == (close(9.0 + 81.0 * 0.09), close(by_hand(3.0, 0.3)))

    def outer(t: Any) -> Any:
        given = dnp.zeros(2)
        given[0] = t
        inner = VERBS[verb](lambda x: lambda v: lambda u: x * x * v[0] * u)(t)(given)
        given[0] = 100.0
        return inner(t)

    if verb in BACKWARD:
        assert dg.grad(outer)(2.0) == dg.derivative(outer)(2.0) == 24.0


@pytest.mark.parametrize("verb", BACKWARD)
def test_a_function_result_with_a_state_of_its_own_starts_anew_with_each_call(verb: str) -> None:
    def f(x: Any) -> Any:
        total = [x]

        def g(y: Any) -> Any:
            total[0] = total[0] * y
            return total[0]

        return g

    h = BACKWARD[verb](f)(3.0)
    assert [h(2.0), h(2.0)] == [2.0, 2.0]


def test_a_function_that_returns_another_structure_the_next_time() -> None:
    several: list[Any] = [(sin, cos), (sin,), sin]
    found = dg.jacrev(lambda x: several.pop(0))(2.0)
    with pytest.raises(dg.Error, match="returned another structure"):
        found[1](1.0)


def test_threads_may_call_it_side_by_side() -> None:
    h = dg.jacrev(lambda x: lambda g: lambda y: g(x * y))(3.0)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda k=k: found.append((k, dg.grad(h(h(sin)))(0.1 * k)))) for k in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    wanted = dg.derivative(lambda x: lambda g: lambda y: g(x * y))(3.0)
    assert len(found) == 4
    for k, value in found:
        assert value == close(dg.grad(wanted(wanted(sin)))(0.1 * k))


def test_errors_of_calls_name_the_line() -> None:
    with pytest.raises(dg.Error, match=r"one real, or a function whose calls do.*test_returned\.py, line \d+"):
        dg.grad(lambda x: lambda y: x * y)(2.0)(X)
    with pytest.raises(dg.Error, match=r"one real, or a function.*tuple.*dg\.jacrev"):
        dg.grad(lambda x: (lambda y: x * y, x))(2.0)
