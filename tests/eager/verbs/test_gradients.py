"""The verbs: their results, how they agree with each other, and their messages for invalid input."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.eager.verbs.gradients import made_by
from dynagrad.ir.operation import Operation
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.types import real

sin, cos, exp = ops.sin, ops.cos, ops.exp


def close(value: Any) -> Any:
    return pytest.approx(value, rel=1e-10, abs=1e-12)


def f(x: Any, y: Any) -> Any:
    return sin(x) * y * y


# -- what each gives ---------------------------------------------------------------------------------------------------


def test_grad_by_one_argument_or_several() -> None:
    assert dg.grad(f)(1.0, 2.0) == close(4 * math.cos(1))
    assert dg.grad(f, 1)(1.0, 2.0) == close(4 * math.sin(1))
    assert dg.grad(f, -1)(1.0, 2.0) == close(4 * math.sin(1))
    assert dg.grad(f, (1, 0))(1.0, 2.0) == (close(4 * math.sin(1)), close(4 * math.cos(1)))
    assert dg.grad(f, (0,))(1.0, 2.0) == (close(4 * math.cos(1)),)
    assert dg.gradient is dg.grad


def test_grad_passes_other_arguments_on() -> None:
    assert dg.grad(lambda x, n, *, power: x**power * n)(2.0, 5, power=3) == 60.0


def test_value_and_grad() -> None:
    value, gradient = dg.value_and_grad(f)(1.0, 2.0)
    assert (value, gradient) == (close(4 * math.sin(1)), close(4 * math.cos(1)))


def test_something_else_may_be_returned_too() -> None:
    def with_more(x: Any) -> Any:
        return x * x, {"seen": "x"}

    assert dg.grad(with_more, has_aux=True)(3.0) == (6.0, {"seen": "x"})
    assert dg.value_and_grad(with_more, has_aux=True)(3.0) == ((9.0, {"seen": "x"}), 6.0)


def test_what_is_returned_too_is_plain() -> None:
    gradient, more = dg.grad(lambda x: (x * x, (x * 2.0, lambda y: x * y)), has_aux=True)(3.0)
    assert gradient == 6.0 and more[0] == 6.0 and type(more[0]) is float
    assert more[1](2.0) == 6.0 and type(more[1](2.0)) is float


def test_jvp_and_vjp_are_each_others_transpose() -> None:
    def g(p: Any, z: Any) -> Any:
        return [p["a"] * z, sin(p["b"]) * p["a"]], z * z

    point = ({"a": 2.0, "b": 3.0}, 5.0)
    direction = ({"a": 0.5, "b": -1.0}, 2.0)
    weights = ([3.0, -2.0], 0.7)
    value, along = dg.jvp(g, point, direction)
    same, pullback = dg.vjp(g, *point)
    assert value == same == ([10.0, close(2 * math.sin(3))], 25.0)
    back = pullback(weights)
    forward = along[0][0] * 3.0 + along[0][1] * -2.0 + along[1] * 0.7
    assert forward == close(back[0]["a"] * 0.5 - back[0]["b"] + back[1] * 2.0)


def test_derivative_of_any_order() -> None:
    assert dg.derivative(sin, 0)(1.0) == close(math.sin(1.0))
    for n in range(1, 6):
        assert dg.derivative(lambda x: exp(2.0 * x), n)(0.3) == close(2.0**n * math.exp(0.6))


def test_derivative_of_any_structure() -> None:
    assert dg.derivative(lambda x: {"a": (x * x, 3), "b": [x]})(2.0) == {"a": (4.0, 0.0), "b": [1.0]}


def clamped(x: Any) -> Any:
    return 1 if x > 1.0 else x


FORWARD: dict[str, Callable[[Any], Any]] = {
    "derivative": dg.derivative,
    "jvp": lambda f: lambda x: dg.jvp(f, (x,), (1.0,))[1],
    "jacfwd": dg.jacfwd,
    "jacrev": dg.jacrev,
    "grad": lambda f: lambda x: dg.vjp(f, x)[1](1.0)[0],
    "twice": lambda f: dg.derivative(f, 2),
    "nested": lambda f: dg.derivative(dg.derivative(f)),
    "curried": lambda f: lambda x: dg.derivative(lambda y: lambda z: f(y))(x)(5.0),
    "of a function": lambda f: lambda x: dg.jvp(lambda g: g(x), (f,), (lambda y: 0.0,))[1],
}


@pytest.mark.parametrize("verb", FORWARD)
def test_a_whole_number_that_was_computed_has_derivative_zero(verb: str) -> None:
    for f in (
        clamped,
        round,
        math.floor,
        lambda x: x > 1.0,
        lambda x: np.int64(3),
        lambda x: np.argmax(np.stack([x, 1])),
    ):
        found = FORWARD[verb](f)(2.5)
        assert found == 0.0 and type(found) is float


def test_whole_numbers_in_results_have_derivative_zero() -> None:
    assert dg.derivative(lambda x: x * dg.derivative(lambda y: 3 if y > 1 else y)(x))(2.0) == 0.0

    def pair(x: Any) -> Any:
        return clamped(x), {"x": x * x, "n": [7, True, "name", None]}

    wanted = (0.0, {"x": 4.0, "n": [0.0, 0.0, "name", None]})
    for verb in (dg.derivative, dg.jacfwd, dg.jacrev):
        assert verb(pair)(2.0) == wanted
    assert dg.derivative(pair, 2)(2.0)[0] == 0.0
    for verb in (dg.jacfwd, dg.jacrev):
        found = verb(lambda x: (np.arange(3), x))(np.ones(2))
        assert np.array_equal(found[0], np.zeros((3, 2))) and np.array_equal(found[1], np.eye(2))
    tangent = dg.jvp(lambda x: np.arange(3) * 2, (1.0,), (1.0,))[1]
    assert np.array_equal(tangent, np.zeros(3)) and tangent.dtype == np.float64


def test_functions_that_return_whole_numbers_have_derivatives_by_functions() -> None:
    assert dg.grad(lambda g: g(2.0))(lambda x: 3)(lambda x: 5.0 * x) == 10.0
    assert dg.jvp(lambda g: g(2.0), (lambda x: 3,), (lambda x: 5.0 * x,))[1] == 10.0


def test_hvp_is_the_hessian_times_a_vector() -> None:
    def g(p: Any) -> Any:
        return p[0] * p[0] * p[1] + sin(p[1])

    point, direction = (2.0, 3.0), (0.5, -1.0)
    rows = dg.hessian(g)(point)
    wanted = tuple(close(row[0] * 0.5 - row[1]) for row in rows)
    assert dg.hvp(g, (point,), (direction,)) == wanted
    assert dg.hvp(lambda x, y: g((x, y)), point, direction) == wanted


def test_what_is_not_connected_is_zero() -> None:
    assert dg.grad(lambda x, y: y)(1.0, 2.0) == 0.0
    assert dg.grad(lambda x: 5.0)(1.0) == 0.0
    assert dg.grad(lambda p: p["a"])({"a": 1.0, "b": (2.0,)}) == {"a": 1.0, "b": (0.0,)}
    assert dg.derivative(lambda x: (1.0, "s", 3))(2.0) == (0.0, "s", 0.0)
    assert np.array_equal(dg.grad(lambda x: 5.0)(np.ones(2)), np.zeros(2))


def test_the_result_belongs_to_the_caller() -> None:
    x = np.ones(3)
    value, back = dg.vjp(lambda z: z, x)
    value[0] = 7.0
    assert x[0] == 1.0
    gradient = back(np.ones(3))[0]
    gradient[0] = 7.0
    assert back(np.ones(3))[0][0] == 1.0


def test_names_of_what_the_verbs_make() -> None:
    assert dg.grad(f).__name__ == "grad_of_f"
    assert dg.derivative(lambda x: x).__name__ == "derivative_of_<lambda>"


# -- pullbacks of 1-forms ----------------------------------------------------------------------------------------------


def test_the_pullback_of_a_form_is_the_transposed_jacobian_times_it() -> None:
    def g(p: Any) -> Any:
        return p[0] * p[1], sin(p[0]), p[1]

    def form(q: Any) -> Any:
        return q[1], q[0] * 2.0, 5.0

    point = (2.0, 3.0)
    rows = dg.jacrev(g)(point)
    weights = form(g(point))
    wanted = tuple(close(sum(w * row[i] for w, row in zip(weights, rows, strict=True))) for i in range(2))
    assert dg.pullback(g, form)(point) == wanted


def test_pullbacks_compose_the_other_way_round() -> None:
    def g(p: Any) -> Any:
        return p[0] * p[1], sin(p[0])

    def h(q: Any) -> Any:
        return q[0] + q[1] * q[1], exp(q[1]), q[0]

    def form(r: Any) -> Any:
        return r[1], r[0] * r[2], 1.0

    point = (0.4, 0.9)
    whole = dg.pullback(lambda p: h(g(p)), form)(point)
    parts = dg.pullback(g, dg.pullback(h, form))(point)
    assert parts == (close(whole[0]), close(whole[1]))


def test_the_running_example_of_001() -> None:
    def running(p: Any) -> Any:
        x, y = p
        z = (x + 1.0) * (2.0 * x + y * y)
        return z * z

    assert dg.pullback(running, lambda z: 1.0)((1.0, 3.0)) == (660.0, 528.0)


def test_the_pullback_of_several_arguments_and_of_forms_that_depend_on_the_point() -> None:
    assert dg.pullback(lambda x, y: x * y, lambda z: z)(2.0, 3.0) == (18.0, 12.0)
    assert dg.derivative(lambda t: dg.pullback(lambda x: x * x * t, lambda z: z)(1.5))(2.0) == close(27.0)


def test_the_sum_of_a_church_list() -> None:
    def church(numbers: Any) -> Any:
        def fold(combine: Any, start: Any) -> Any:
            for x in reversed(numbers):
                start = combine(x, start)
            return start

        return fold

    def total(items: Any) -> Any:
        return items(lambda x, rest: x + rest, 0.0)

    assert dg.pullback(lambda numbers: total(church(numbers)), lambda y: 3.0)([1.0, 2.0, 4.0]) == [3.0, 3.0, 3.0]


# -- functions that change their arguments --------------------------------------------------------------------------


def replaces(p: Any) -> Any:
    p["w"] = p["w"] ** 2
    return p["w"] * 3.0


def takes_out(p: Any) -> Any:
    return p.pop("w") ** 2 * 3.0


def clears(p: Any) -> Any:
    w = p["w"]
    p.clear()
    p["other"] = 5.0
    return w * w * 3.0


@pytest.mark.parametrize("f", [replaces, takes_out, clears])
def test_a_function_may_change_its_argument(f: Any) -> None:
    point = {"w": 2.0}
    for verb in (dg.grad, dg.jacfwd, dg.jacrev, lambda f: lambda p: dg.vjp(f, p)[1](1.0)[0]):
        assert verb(f)(point) == {"w": 12.0}
    assert dg.jvp(f, (point,), ({"w": 1.0},))[1] == 12.0
    assert dg.hessian(f)(point) == {"w": {"w": 6.0}}
    assert point == {"w": 2.0}
    dg.check_derivatives(f, point)
    assert point == {"w": 2.0}


def test_a_function_may_sort_or_grow_its_list() -> None:
    def in_order(p: Any) -> Any:
        p.sort(key=lambda x: -x)
        p.append(7.0)
        return p[0] * 2.0 + p[1] * 5.0

    assert dg.grad(in_order)([1.0, 2.0]) == [5.0, 2.0]


def test_an_input_function_may_change_its_arguments() -> None:
    def last(items: Any) -> Any:
        return items.pop()

    def f(g: Any) -> Any:
        return g([1.0, 2.0]) * 3.0

    dual = dg.grad(f)(last)
    assert dual(last) == dual(last) == 6.0


# -- edges -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [dg.grad, dg.derivative, lambda f: lambda x: dg.vjp(f, x)[1](1.0)])
def test_where_the_chain_rule_has_no_answer_there_is_an_error(verb: Any) -> None:
    with pytest.raises(dg.NotDifferentiable, match="0 times infinity"):
        verb(lambda x: ops.sqrt(x) ** 2.0)(0.0)


def test_a_nan_of_one_result_excuses_no_other() -> None:
    def root(x: Any) -> Any:
        return np.sqrt(x) ** 2

    for f, c in ((lambda x: (root(x), math.nan), (1.0, 0.0)), (lambda x: [np.log(-1.0 - x), root(x)], [0.0, 1.0])):
        for verb in (dg.derivative, dg.jacfwd, dg.jacrev, lambda f: dg.derivative(f, 2)):
            with pytest.raises(dg.NotDifferentiable):
                verb(f)(0.0)
        _, back = dg.vjp(f, 0.0)
        with pytest.raises(dg.NotDifferentiable):
            back(c)
    for verb in (dg.jacfwd, dg.jacrev):
        with pytest.raises(dg.NotDifferentiable):
            verb(root)(np.array([0.0, math.nan]))
        found = verb(np.sqrt)(np.array([4.0, math.nan]))  # but that of a result that is none itself means nothing
        assert found[0, 0] == 0.25 and math.isnan(found[1, 1])


def test_an_infinite_slope_is_an_answer() -> None:
    assert dg.grad(ops.sqrt)(0.0) == math.inf
    assert dg.derivative(ops.sqrt)(0.0) == math.inf


def test_the_derivative_of_nan_is_nan() -> None:
    assert math.isnan(dg.grad(lambda x: ops.log(x) * x)(-1.0))


# -- bad input ---------------------------------------------------------------------------------------------------------

HERE = r"test_gradients\.py, line \d+"


def failing(match: str) -> Any:
    return pytest.raises(dg.Error, match=match)


def test_integers_where_reals_are() -> None:
    for verb in (dg.grad, dg.derivative, dg.jacfwd, dg.jacrev, dg.value_and_grad):
        with failing(rf"argument 1 is 3.*write 3\.0.*{HERE}"):
            verb(lambda x: x)(3)
    with failing("argument 2 is 3"):
        dg.jvp(f, (1.0, 3), (1.0, 1.0))
    with failing("argument 2 is True"):
        dg.vjp(f, 1.0, True)
    with failing(r"argument 1 is an array of int64.*convert it with \.astype\(float\)"):
        dg.grad(lambda x: 1.0)(np.arange(3))
    with failing(r"write 3\.0"):
        dg.grad(lambda x: 1.0)(np.int64(3))
    with failing(r"float\(\)"):
        dg.grad(lambda x: 1.0)(10**5000)


def test_arguments_that_are_whole_numbers_only() -> None:
    for x in ([2, 3], {"w": np.array([1, 2])}, (True, "a"), ((), [1])):
        for verb in (dg.grad, dg.jacfwd, dg.jacrev, lambda f: functools.partial(dg.vjp, f)):
            with failing(rf"argument 1 is .* integers where reals are.*{HERE}"):
                verb(lambda p: 1.0)(x)
    assert dg.grad(lambda p: p[0] * p[1])([2.0, 3]) == [3.0, 3]
    assert dg.grad(lambda p: 1.0)([]) == [] and dg.grad(lambda p: 1.0)((None, "a")) == (None, "a")
    with failing(r"argument 1 is True.*write 1\.0"):
        dg.grad(lambda x: x)(True)


class Box:
    def __init__(self, content: Any) -> None:
        self.content = content


class Slotted:
    __slots__ = ("content",)

    def __init__(self, content: Any) -> None:
        self.content = content


HIDING: dict[str, Callable[[Any], Any]] = {
    "object": lambda x: Box(x * x),
    "slots": lambda x: {"a": [Slotted(x)]},
    "inside": lambda x: Box([Box({"a": x})]),
    "set": lambda x: {Box(x)},
    "array of objects": lambda x: np.array([None, Box(x)]),
}


@pytest.mark.parametrize("kind", HIDING)
def test_results_that_derivatives_do_not_go_through(kind: str) -> None:
    f = HIDING[kind]
    for verb in (dg.derivative, dg.jacfwd, dg.jacrev, lambda f: dg.derivative(f, 3)):
        with failing(f"has numbers with derivatives in an.*(dg.register|np.stack).*{HERE}"):
            verb(f)(2.0)
    with failing("numbers with derivatives"):
        dg.vjp(f, 2.0)
    with failing("numbers with derivatives"):
        dg.jvp(f, (2.0,), (1.0,))
    with failing("numbers with derivatives"):
        dg.grad(lambda x: (x * x, f(x)), has_aux=True)(2.0)
    with failing("numbers with derivatives"):
        dg.derivative(lambda x: lambda y: f(x))(2.0)(1.0)


def test_results_that_are_computed_later() -> None:
    for f in (lambda x: (x * i for i in range(3)), lambda x: map(lambda i: x * i, [1]), lambda x: [iter([x])]):
        for verb in (dg.derivative, dg.jacrev):
            with failing(f"is evaluated lazily.*return a list.*{HERE}"):
                verb(f)(2.0)


def test_objects_without_numbers_are_constants() -> None:
    thing = Box("constant")
    assert dg.derivative(lambda x: (x * x, thing))(2.0) == (4.0, thing)
    assert dg.grad(lambda x: (x * x, thing), has_aux=True)(2.0) == (4.0, thing)


def test_a_result_that_is_not_one_real() -> None:
    for y, name in (((1.0, 2.0), "tuple"), ("a", "str"), (None, "NoneType"), ((lambda: 1,), "tuple")):
        with failing(f"should return one real.*{name}.*{HERE}"):
            dg.grad(lambda x, y=y: y)(2.0)
        with failing(f"should return one real.*{name}.*{HERE}"):
            dg.grad(lambda x, y=y: lambda: y)(2.0)()
    with failing(r"an array of shape \(2,\).*dg\.jacrev"):
        dg.grad(lambda x: x * 2.0)(np.ones(2))


def test_what_is_no_function() -> None:
    for verb in (dg.grad, dg.derivative, dg.value_and_grad):
        with failing("3.0 is no function"):
            verb(3.0)
    for call in (
        lambda: dg.vjp(3.0, 1.0),
        lambda: dg.jvp(3.0, (1.0,), (1.0,)),
        lambda: dg.jacfwd(3.0),
        lambda: dg.jacrev(3.0),
        lambda: dg.hessian(3.0),
        lambda: dg.hvp(3.0, (1.0,), (1.0,)),
        lambda: dg.pullback(3.0, lambda y: y),
        lambda: dg.pullback(lambda y: y, 3.0),
    ):
        with failing("3.0 is no function"):
            call()


def test_argnums_out_of_range() -> None:
    for verb in (dg.grad, dg.value_and_grad, dg.jacfwd, dg.jacrev, dg.hessian):
        for place in (2, -3):
            with failing(f"argnums has {place}, and the call has 2 arguments.*{HERE}"):
                verb(f, place)(1.0, 2.0)
    for argnums in ("x", 1.5, None, True):
        with failing("argnums is a whole number"):
            dg.grad(f, argnums)(1.0, 2.0)
    with failing("twice"):
        dg.grad(f, (0, 0))(1.0, 2.0)
    with failing("twice"):
        dg.grad(f, (0, -2))(1.0, 2.0)


def test_orders_that_are_none() -> None:
    for n in (-1, 1.5, True, "2"):
        with failing("the order is a whole number from 0"):
            dg.derivative(sin, n)  # type: ignore[arg-type]


def test_derivative_is_for_one_real() -> None:
    for x in (np.ones(2), (1.0, 2.0), sin):
        with failing(f"one real.*{HERE}"):
            dg.derivative(lambda y: y)(x)


def test_things_that_have_no_derivatives() -> None:
    for x in ("a", None, object(), {1.0, 2.0}, 1j, np.array(["a"])):
        with failing(f"has no derivatives.*{HERE}"):
            dg.grad(lambda y: 1.0)(x)


def test_tangents_that_do_not_fit() -> None:
    with failing("give one tangent for each primal"):
        dg.jvp(f, (1.0, 2.0), (1.0,))
    with failing("given as a tuple"):
        dg.jvp(sin, 1.0, 1.0)
    with failing("tangent 1 should be a real"):
        dg.jvp(sin, (1.0,), ((1.0,),))
    with failing("given as a tuple"):
        dg.hvp(sin, 1.0, 1.0)


def test_a_cotangent_of_another_structure() -> None:
    _, pullback = dg.vjp(lambda x: (x, x * x), 2.0)
    for c in (1.0, (1.0,), (1.0, 2.0, 3.0), (1.0, "a"), (1.0, None), {"a": 1.0, "b": 2.0}):
        with failing("the cotangent.*should be"):
            pullback(c)
    with failing(f"the cotangent.*{HERE}"):
        dg.pullback(sin, lambda y: (y, y))(1.0)


def test_a_function_that_changes_the_structure_of_its_result() -> None:
    def changing(x: Any) -> Any:
        calls.append(x)
        return (x, x) if len(calls) % 2 else x

    for jacobian in (dg.jacfwd, dg.jacrev):
        calls: list[Any] = []
        if jacobian is dg.jacfwd:
            with failing("should be"):
                jacobian(lambda p: changing(p[0]))((1.0, 2.0))


def test_an_operation_without_a_derivative() -> None:
    floor = Operation("floor", (real,), real, math.floor, None, "floor({0})")
    for verb in (dg.grad, dg.derivative):
        with pytest.raises(dg.NotDifferentiable, match=rf"floor has no derivative.*dg\.custom_rule.*{HERE}"):
            verb(lambda x: floor(x) * x)(2.5)
        assert verb(lambda x: floor(2.5) * x)(2.5) == 2.0


def test_python_s_own_functions_of_numbers() -> None:
    for verb in (dg.grad, dg.derivative):
        for use in (math.sin, float, int, lambda x: [1, 2, 3][x], complex):
            with pytest.raises((dg.Error, TypeError)):
                verb(use)(1.0)


def test_errors_of_the_function_itself_are_left_alone() -> None:
    for verb in (dg.grad, dg.derivative):
        with pytest.raises(KeyError, match="missing"):
            verb(lambda x: {}["missing"])(1.0)


def test_every_error_says_in_which_line_it_came_up() -> None:
    cases: list[Callable[[], Any]] = [
        lambda: dg.grad(np.unique)(np.ones(2)),
        lambda: dg.grad(math.exp)(1.0),
        lambda: dg.grad(lambda x: np.sum(np.add(x, 1.0, out=np.zeros(2))))(np.ones(2)),
        lambda: dg.grad(lambda x: np.linalg.eigh(x)[1][0, 0])(np.eye(2)),
        lambda: dg.grad(dg.custom_rule(lambda y: y * 2, vjp=lambda p, v, c: (np.ones(1),)))(1.0),
        lambda: dg.custom_rule(sin),
        lambda: dg.fixed_point(lambda s: s * math.inf, 1.0),
        lambda: dg.fixed_point(lambda s: s + 1.0, 1.0, max_steps=3),
        lambda: dg.checkpoint(lambda s: s, lambda: 1, 2),
        lambda: dg.derivative(sin, -1),
        lambda: dg.jacfwd(lambda g: g(1.0))(sin),
        lambda: dg.add(sin, 1.0),
    ]
    for case in cases:
        with failing(HERE) as caught:
            case()
        assert str(caught.value).count(", line ") == 1
        assert f"line {case.__code__.co_firstlineno})" in str(caught.value)


def test_errors_of_others_are_not_changed() -> None:
    def f(x: Any) -> Any:
        raise dg.Error("my own")

    with failing("^my own$"):
        dg.grad(f)(1.0)


def test_a_function_that_a_verb_made_says_what_it_is() -> None:
    for made, wanted in [
        (dg.grad(f), ("grad", f, {"argnums": 0, "has_aux": False})),
        (dg.value_and_grad(f, (0, 1)), ("value_and_grad", f, {"argnums": (0, 1), "has_aux": False})),
        (dg.derivative(sin, 3), ("derivative", sin, {"n": 3})),
        (dg.jacfwd(f, 1), ("jacfwd", f, {"argnums": 1})),
        (dg.jacrev(f), ("jacrev", f, {"argnums": 0})),
        (dg.hessian(f), ("hessian", f, {"argnums": 0})),
        (dg.pullback(f, sin), ("pullback", f, {"omega": sin})),
        (dg.vjp(f, 2.0, 3.0)[1], ("vjp", f, {"primals": (2.0, 3.0)})),
        (dg.custom_rule(f, jvp=sin), ("custom_rule", f, {"jvp": sin, "vjp": None})),
        (dg.add(f, sin), ("add", f, {"b": sin})),
        (dg.scale(2.0, f), ("scale", f, {"c": 2.0})),
    ]:
        assert made.__dynagrad__ == wanted and made_by(made) == wanted
    imitation = functools.wraps(dg.grad(f))(lambda x, y: 0.0)
    assert made_by(imitation) is None and made_by(f) is None and made_by(3.0) is None


def test_functions_have_no_coordinates() -> None:
    for jacobian in (dg.jacfwd, dg.jacrev):
        with failing("functions have no coordinates"):
            jacobian(lambda g: g(1.0))(sin)
        with failing("functions have no coordinates"):
            jacobian(lambda x, g: lambda y: g(x), (0, 1))(1.0, sin)
