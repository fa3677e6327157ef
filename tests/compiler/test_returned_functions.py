"""Derivatives of functions that return functions, and functionals on functions, in compiled functions. The oracle is
Python; `eager/verbs/test_returned.py` has its values by hand.

Ten seconds. One function is compiled to machine code, with all cases in it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import agrees, through_graph
from dynagrad import LiftError

X = np.array([0.3, 0.7, 1.1])
OUTSIDE = dg.Dual(lambda h: h(0.5) + 2.0 * h(1.5))
SLOPE = dg.Dual(lambda h: dg.grad(h)(0.4))
AT = dg.Dual.at(3.0, (0.5,))


def curried(x: Any) -> Any:
    return lambda y: np.sin(x * y) * x


def of_functions(x: Any) -> Any:
    return lambda g: lambda y: g(x * y) + x * y


def grads(x: Any) -> Any:
    h = dg.grad(of_functions)(x)
    return h(np.sin)(0.3), h(h(np.sin))(0.3), dg.grad(h(np.cos))(x), dg.grad(dg.grad(curried))(x)(0.3)


def values(x: Any) -> Any:
    value, gradient = dg.value_and_grad(curried)(x)
    (other, aux), slope = dg.value_and_grad(lambda z: (lambda y: z * z * y, z + 1.0), has_aux=True)(x)
    found, more = dg.grad(lambda z: (lambda y: z * z * y, {"z": z}), has_aux=True)(x)
    return value(0.3), gradient(0.3), other(0.3), aux, slope(0.3), found(0.3), more


def several(x: Any) -> Any:
    def f(p: Any, z: Any, *, power: int) -> Any:
        return lambda y: p["w"][0] ** power * z * y + p["w"][1]

    p = {"w": [x, 5.0], "name": "p"}
    return (
        dg.grad(f)(p, 2.0, power=2)(7.0),
        dg.grad(f, (1, 0))(p, 2.0, power=2)(7.0),
        dg.jacrev(f, (0, 1))(p, 2.0, power=3)(x),
        dg.jacfwd(f, (0, 1))(p, x, power=3)(x),
    )


def structures(x: Any) -> Any:
    def f(z: Any) -> Any:
        return {"pair": (lambda g: lambda y: g(z + y), lambda y: z * y), "square": z * z, "n": 3, "name": "f"}

    forward, back = dg.jacfwd(f)(x), dg.jacrev(f)(x)
    return tuple([(j["pair"][0](j["pair"][1])(0.3), j["square"], j["n"], j["name"]) for j in (forward, back)])


def arrays(x: Any) -> Any:
    def f(v: Any) -> Any:
        return lambda y: {"outer": np.outer(v, y), "sum": np.sum(v * v) * y[0], "more": lambda z: v * z}

    v = x * X
    forward, back = dg.jacfwd(f)(v)(X[:2]), dg.jacrev(f)(v)(X[:2])
    rest = tuple([(j["outer"], j["sum"], j["more"](3.0)) for j in (forward, back)])
    return rest, dg.hessian(lambda v: lambda y: np.sum(v * v * v * y))(v)(2.0), dg.grad(lambda v: lambda y: v @ y)(v)(X)


def mixed(x: Any) -> Any:
    d = [dg.derivative, dg.grad, dg.jacrev, dg.jacfwd]
    return tuple([a(b(curried))(x)(0.3) + a(lambda t, b=b: b(curried)(t)(t))(x) for a in d for b in d])


def higher(x: Any) -> Any:
    return dg.hessian(curried)(x)(0.3), dg.hvp(curried, (x,), (2.0,))(0.3), dg.derivative(dg.grad(curried), 2)(x)(0.3)


def duals(x: Any) -> Any:
    value, back = dg.vjp(curried, x)
    at, made = dg.Dual.at(2.0, (x,)), dg.Dual(lambda h: h(x) * x)
    two = dg.Dual(lambda h: dg.derivative(h, 2)(x))
    return (
        value(0.3),
        [back(c)[0] for c in (at, made, two, dg.Dual(), OUTSIDE, SLOPE, AT, at + made * x, 2.0 * OUTSIDE + AT * x)],
        back(dg.add(at, dg.scale(3.0, SLOPE)))[0],
        (at + made)(np.sin),
        (OUTSIDE * x + SLOPE + 2.0 * AT)(np.sin),
        dg.pullback(curried, lambda h: dg.Dual(lambda k: k(h(x))))(x),
    )


def functionals_of_structures(x: Any) -> Any:
    def f(z: Any, g: Any) -> Any:
        return {"number": z * z, "one": lambda y: z * g(y), "other": [lambda y: y * z**3]}

    _, back = dg.vjp(f, x, np.sin)
    one, other = dg.Dual(lambda h: h(1.0)), dg.Dual(lambda h: h(2.0))
    by_x, by_g = back({"number": 10.0, "one": one, "other": [other]})
    return by_x, by_g(np.exp), back({"number": 1.0, "one": dg.Dual(), "other": [dg.Dual()]})[0]


def functions_to_functions(x: Any) -> Any:
    dual = dg.grad(lambda f: lambda y: f(f(y)))(np.sin)(x)
    by_c, by_f = dg.grad(lambda c, f: lambda y: f(c * f(y)), (0, 1))(x, np.sin)(0.3)
    found = dg.jacrev(lambda c: dg.grad(lambda f: f(c * f(2.0)))(np.sin))(x)
    _, back = dg.vjp(lambda c: dg.grad(lambda f: f(c * f(2.0)))(np.sin), x)
    return (
        dual(np.exp),
        by_c,
        by_f(np.exp),
        found(np.exp),
        (found * 2.0 + dual)(np.cos),
        back(dg.Dual.at(1.0, (np.exp,))),
    )


def forward_along_functions(x: Any) -> Any:
    def f(g: Any) -> Any:
        return lambda y: g(g(y) * x)

    value, slope = dg.jvp(f, (np.sin,), (np.exp,))
    numbers = dg.jvp(lambda c, g: {"one": lambda y: c * g(y), "two": c * g(x)}, (x, np.sin), (2.0, np.exp))[1]
    backward = dg.vjp(lambda g: lambda a: lambda y: g(g(y) * x) * a, np.sin)[1](dg.Dual(lambda h: h(3.0)(2.0)))[0]
    inside = dg.grad(lambda g: lambda y: dg.jacrev(g)(y * x))(np.sin)(2.0)
    return value(2.0), slope(2.0), numbers["one"](0.3), numbers["two"], backward(np.exp), inside(np.exp)


def in_loops(x: Any) -> Any:
    h, total = dg.jacrev(of_functions)(x), 0.0
    for k in range(40):
        total = total + h(lambda y, total=total: np.sin(y) * 0.1 + total)(0.01 * k)
    while total > 1.0:
        total = total * dg.grad(curried)(0.1 * total)(0.3) * 0.5
    return total


def in_branches(x: Any) -> Any:
    h = dg.grad(curried)(x) if x > 0.5 else dg.grad(curried)(2.0 * x)
    c = dg.Dual.at(1.0, (x,)) if x > 0.2 else dg.Dual.at(3.0, (0.1,))
    return h(0.3), dg.vjp(curried, x)[1](c)[0], h(0.1) if x > 1.0 else dg.jacrev(curried)(x)(0.2)


def by_names(x: Any) -> Any:
    def f(z: Any) -> Any:
        return lambda *, g, y: lambda u: g(z + y) * u * z

    def outer(d: Any) -> Any:
        return dg.grad(lambda t: d(lambda z: f(z)(g=lambda y: np.sin(y) * t, y=t)(t))(t))(x)

    def named(d: Any) -> Any:
        return dg.grad(lambda t: d(f)(t)(g=lambda y: np.sin(y) * t, y=t)(t))(x)

    verbs = [dg.derivative, dg.grad, dg.jacrev, dg.jacfwd]
    return (
        [outer(d) for d in verbs],
        [named(d) for d in verbs],
        [dg.grad(lambda t, d=d: d(named_twice)(t)(y=t))(x) for d in verbs],
    )


def named_twice(z: Any) -> Any:
    return lambda *, y: dg.grad(lambda a: lambda *, b: a * a * b * z)(y)(b=y * z)


def written_later(x: Any) -> Any:
    y, names = np.array([3.0, 5.0]), [2.0]
    inner = dg.jacrev(lambda z: lambda y, c: lambda u: np.sum(y) * c[0] * u * z)(x)(y, names)
    y[0], names[0] = 100.0, 100.0
    return inner(x), y[0] + names[0]


def writing(x: Any) -> Any:
    def f(z: Any) -> Any:
        def g(values: Any, table: Any) -> Any:
            values.append(z * values[0])
            table[0] = 7.0
            return values[-1] * z * table[0]

        return g

    given, table = [2.0], np.zeros(2)
    return dg.grad(f)(x)(given, table), dg.jacrev(f)(x)(given, table), given, table


class Point(NamedTuple):
    x: Any
    y: Any


SHIFTED, SLOPES = dg.jacrev(of_functions), dg.hessian(curried)


def made_outside(x: Any) -> Any:
    h = SHIFTED(x)
    return h(h(np.sin))(0.3), SLOPES(x)(0.3), dg.jacrev(lambda z: lambda p: z * p.x * p.y)(x)(Point(x, 2.0))


CASES = {
    f.__name__: f
    for f in (grads, values, several, structures, arrays, mixed, higher, duals, functionals_of_structures)
    + (
        functions_to_functions,
        forward_along_functions,
        in_loops,
        in_branches,
        by_names,
        written_later,
        writing,
        made_outside,
    )
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_lifted_is_what_python_does(name: str) -> None:
    for x in (0.7, 1.3):
        agrees(CASES[name], x)


@pytest.mark.parametrize(
    "name", ["grads", "mixed", "duals", "functions_to_functions", "forward_along_functions", "by_names"]
)
def test_the_gradients_of_these(name: str) -> None:
    def total(x: Any) -> Any:
        return leaves_of(CASES[name](x))

    def leaves_of(found: Any) -> Any:
        if isinstance(found, tuple | list):
            return sum([leaves_of(part) for part in found])
        return found

    wanted = dg.derivative(total)(0.7)
    assert dg.grad(total)(0.7) == pytest.approx(wanted, rel=1e-9)
    assert through_graph(dg.grad(total), 0.7) == pytest.approx(wanted, rel=1e-9)
    assert through_graph(dg.derivative(total), 0.7) == pytest.approx(wanted, rel=1e-9)


def test_as_machine_code() -> None:
    def everything(x: Any) -> Any:
        return [grads(x), values(x), duals(x), functions_to_functions(x), in_branches(x), in_loops(x), written_later(x)]

    def flat(found: Any) -> Any:
        if isinstance(found, dict):
            found = list(found.values())
        return [y for part in found for y in flat(part)] if isinstance(found, tuple | list) else [found]

    compiled = dg.compile(everything)
    for x in (0.7, 1.3):
        assert flat(compiled(x)) == pytest.approx(flat(everything(x)), rel=1e-11)


REFUSED: dict[str, tuple[Any, str]] = {
    "a container in grad": (lambda x: dg.grad(lambda z: (lambda y: z,))(x), "one real, or a function whose calls do"),
    "a call that gives a pair": (lambda x: dg.grad(lambda z: lambda y: (z, y))(x)(x), "one real, or a function"),
    "a number for a functional": (
        lambda x: dg.vjp(lambda z: lambda y: z * y, x)[1](1.0),
        r"a dg\.Dual, not .*; dg\.Dual\(functional\) makes one",
    ),
    "a function for a functional": (
        lambda x: dg.vjp(lambda z: lambda y: z * y, x)[1](lambda h: h(1.0)),
        r"dg\.Dual\(functional\) makes one",
    ),
    "a functional of a number": (lambda x: dg.Dual(x), "a Dual is made of a function"),
    "a functional that gives two": (lambda x: dg.Dual(lambda h: (h(x), x))(np.sin), "should give one real"),
    "a functional on a number": (lambda x: dg.Dual.at(1.0, (x,))(x), "is applied to a function"),
    "a functional and a number": (lambda x: dg.Dual.at(1.0, (x,)) + x, "adds up with Duals only"),
    "a functional times another": (lambda x: OUTSIDE * dg.Dual(lambda h: h(x)), "Duals add up, and are scaled"),
    "functions as coordinates": (lambda x: dg.jacrev(lambda f: f(x))(np.sin), "functions have no coordinates"),
    "a function as what comes out": (lambda x: dg.grad(curried)(x), "call that inside, or compile the caller"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be(name: str) -> None:
    f, message = REFUSED[name]
    with pytest.raises(LiftError, match=message):
        through_graph(f, 0.7)
