"""What a number with derivatives says it is, however it is asked, in every verb: what would be there without.

A function of the argument notes the answers; those without derivatives are the oracle.
"""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
import dynagrad.numpy as dnp

CLASSES: dict[str, Any] = {
    "float": float,
    "int": int,
    "bool": bool,
    "complex": complex,
    "str": str,
    "tuple": (int, float),
    "union": int | float,
    "nested": ((str, bytes), (int, (float,))),
    "Number": numbers.Number,
    "Complex": numbers.Complex,
    "Real": numbers.Real,
    "Integral": numbers.Integral,
    "floating": np.floating,
    "float64": np.float64,
    "integer": np.integer,
    "generic": np.generic,
    "either": (float, np.floating),
    "ndarray": np.ndarray,
    "array or number": (np.ndarray, float),
    "ours": dnp.ndarray,
}
ASKING: dict[str, Callable[[Any], Any]] = {
    **{name: (lambda x, c=c: isinstance(x, c)) for name, c in CLASSES.items()},
    "__class__": lambda x: x.__class__,
    "issubclass": lambda x: issubclass(x.__class__, float),
    "isscalar": np.isscalar,
    "isscalar of ours": dnp.isscalar,
    "iterable": np.iterable,
    "hashable": lambda x: isinstance(x, np.ndarray) or x.__class__.__hash__ is not None,
}
SEEN: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "a float": (1.5, lambda x: x),
    "a float computed": (1.5, lambda x: x * 2.0 + 1.0),
    "an array": (np.array([1.0, 2.0]), lambda x: x),
    "a row": (np.array([[1.0, 2.0], [3.0, 4.0]]), lambda x: x[0]),
    "an element": (np.array([1.0, 2.0]), lambda x: x[1]),
    "a sum": (np.array([1.0, 2.0]), np.sum),
    "of numpy": (1.5, np.sin),
    "an element times a float": (np.array([1.0, 2.0]), lambda x: 2.0 * x[1]),
    "an array that may be written to": (1.5, lambda x: dnp.array([x, 1.0])),
}
VERBS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, x: dg.grad(f)(x),
    "jvp": lambda f, x: dg.jvp(f, (x,), (np.ones_like(x) if np.ndim(x) else 1.0,)),
    "vjp": lambda f, x: dg.vjp(f, x)[1](1.0),
    "hessian": lambda f, x: dg.hessian(f)(x),
    "grad of grad": lambda f, x: dg.grad(lambda y: np.sum(dg.grad(f)(y)))(x),
    "jacfwd": lambda f, x: dg.jacfwd(f)(x),
    "series": lambda f, x: dg.derivative(lambda t: f(x * t), 3)(1.0),
    "checkpoint": lambda f, x: dg.grad(lambda y: dg.checkpoint(lambda s: s * 1.0, f(y), 2))(x),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("seen", SEEN)
def test_a_number_says_what_would_be_there(seen: str, verb: str) -> None:
    x, made = SEEN[seen]
    plain = made(x) if verb != "series" else made(x * 1.0)
    wanted = {name: ask(plain) for name, ask in ASKING.items()}
    answers: list[dict[str, Any]] = []

    def f(y: Any) -> Any:
        z = made(y)
        answers.append({name: ask(z) for name, ask in ASKING.items()})
        return np.sum(z * z)

    VERBS[verb](f, x)
    assert answers
    for found in answers:
        assert found == wanted


@functools.singledispatch
def dispatched(x: Any) -> Any:
    return 0.0 * x


@dispatched.register
def _(x: float) -> Any:
    return x**3


@dispatched.register
def _(x: np.ndarray) -> Any:
    return np.sum(x**3)


def matched(x: Any) -> Any:
    match x:
        case int():
            return 0.0 * x
        case float(y):
            return y**3
        case np.ndarray():
            return np.sum(x**3)
    return 0.0 * x


def asked(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return np.sum(x**3)
    return x**3 if isinstance(x, (float, np.floating)) else 0.0 * x


@pytest.mark.parametrize("f", [dispatched, matched, asked], ids=lambda f: f.__name__)
def test_functions_that_choose_by_the_class_have_the_derivatives_of_their_choice(f: Any) -> None:
    assert (dg.grad(f)(2.0), dg.hessian(f)(2.0), dg.derivative(f, 3)(2.0)) == (12.0, 12.0, 6.0)
    assert dg.grad(lambda x: dg.grad(f)(x) * x)(2.0) == 36.0
    x = np.array([1.0, 2.0])
    assert np.array_equal(dg.grad(f)(x), 3 * x**2)
    assert np.array_equal(dg.grad(lambda x: f(x[1]))(x), [0.0, 12.0])


def test_compiled_functions_choose_in_the_same_way() -> None:
    x = np.array([1.0, 2.0])
    for f, at in ((asked, 2.0), (asked, x), (lambda x: asked(x[1]), x)):
        assert np.array_equal(dg.compile(f)(at), f(at))
        assert np.array_equal(dg.compile(dg.grad(f))(at), dg.grad(f)(at))
    for name in ("float", "tuple", "union", "nested", "Real", "either", "ndarray", "array or number", "int", "str"):
        ask = ASKING[name]
        for seen in ("a float", "an array", "an element", "a sum", "a row"):
            at, made = SEEN[seen]
            assert dg.compile(lambda x, ask=ask, made=made: 1.0 if ask(made(x)) else 0.0)(at) == ask(made(at))
    assert dg.compile(lambda x: 1.0 if isinstance(x[0], np.floating) else 0.0)(x) == 1.0
    with pytest.raises(dg.Error, match=r"(?s)isinstance\(\).*line"):
        dg.compile(lambda x: 1.0 if isinstance(x, np.floating) else 0.0)(2.0)
    with pytest.raises(dg.Error, match="match"):
        dg.compile(matched)(2.0)
