"""What a number with derivatives says it is, however it is asked, in every verb: what would be there without.

A function of the argument notes the answers; those without derivatives are the oracle.
"""

from __future__ import annotations

import fractions
import functools
import math
import numbers
import re
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


# -- what a float can do, and cannot with derivatives ------------------------------------------------------------------

OF_VALUES: dict[str, Callable[[Any], Any]] = {
    "is_integer": lambda x: x.is_integer(),
    "hex": lambda x: x.hex(),
    "conjugate": lambda x: x.conjugate() > 1.0,
    "format": lambda x: f"{x}|{x:.3f}|{x:>12}|{x!s}",
    "percent": lambda x: "%s" % x,  # noqa: UP031  # what is tested
    "trunc": math.trunc,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "bool": bool,
    "compared": lambda x: (x == 2.5, x < 3),
}
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "hash": (hash, "no key of a dict"),
    "a set": (lambda x: {x}, "no key of a dict"),
    "a cache": (functools.lru_cache(lambda x: x * x), "lru_cache"),
    "as_integer_ratio": (lambda x: x.as_integer_ratio(), "would lose the derivatives"),
    "Fraction": (fractions.Fraction, "would lose the derivatives"),
    "fromhex": (lambda x: x.fromhex("0x1p0"), "float.fromhex"),
    "int": (int, "np.floor"),
    "%f": (lambda x: "%.3f" % x, r"f\"\{x:.3f\}"),  # noqa: UP031  # what is tested
    "nbytes": (lambda x: x.nbytes, "ask a plain one"),
    "searchsorted": (lambda x: x.searchsorted(1.0), r"np\.searchsorted"),
}
FAULTY: dict[str, Callable[[Any], Any]] = {
    "no attribute": lambda x: x.nope,
    "plus text": lambda x: x + "a",
    "shifted": lambda x: x << 1,
    "called": lambda x: x(),
    "set": lambda x: setattr(x, "nope", 1),
    "joined": lambda x: ",".join([x]),
    "compared": lambda x: x < "a",
}
SCALARS = [name for name in SEEN if not np.ndim(SEEN[name][1](SEEN[name][0]))]


def told(verb: str, seen: str, ask: Callable[[Any], Any]) -> tuple[Any, list[Any]]:
    """What a function that asks in this way is told without derivatives, and with them: values, or errors."""

    def answer(y: Any) -> Any:
        try:
            return ask(y)
        except (TypeError, AttributeError, dg.Error) as error:
            return error

    x, made = SEEN[seen]
    answers: list[Any] = []

    def f(y: Any) -> Any:
        z = made(y)
        answers.append(answer(z))
        return np.sum(z * z)

    VERBS[verb](f, x)
    assert answers
    return answer(made(x) if verb != "series" else made(x * 1.0)), answers


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("seen", SCALARS)
def test_what_a_float_says_of_its_value_it_says_with_derivatives(seen: str, verb: str) -> None:
    for name, ask in OF_VALUES.items():
        wanted, found = told(verb, seen, ask)
        assert all(f == wanted for f in found), (name, wanted, found)


@pytest.mark.parametrize("verb", VERBS)
def test_what_would_lose_derivatives_is_an_error_that_says_what_to_write(verb: str) -> None:
    for ask, message in REFUSED.values():
        for found in told(verb, "a float", ask)[1]:
            assert isinstance(found, dg.Error), found
            assert re.search(message, str(found)), found


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("seen", SEEN)
def test_no_message_names_a_class_of_the_package(seen: str, verb: str) -> None:
    shown = {"repr": repr, "str": str, "class": lambda x: repr(type(x)), "name": lambda x: type(x).__name__}
    for name, ask in ({"hash": hash} | FAULTY | shown).items():
        for found in told(verb, seen, ask)[1]:
            assert isinstance(found, Exception) == (name not in shown)
            assert not re.search(r"TapeCell|Bundle|Series|Unknown|MutableArray", str(found)), (name, found)


COMPARED: dict[str, Callable[[Any], Any]] = {
    "==": lambda x: type(x) == float,  # noqa: E721  # what is tested, here and below
    "from the right": lambda x: float == type(x),  # noqa: E721
    "!=": lambda x: type(x) != float,  # noqa: E721
    "in a tuple": lambda x: type(x) in (float, int),
    "in a list": lambda x: type(x) in [str, np.ndarray],
    "float64": lambda x: type(x) == np.float64,  # noqa: E721
    "ndarray": lambda x: type(x) == np.ndarray,  # noqa: E721
    "ours": lambda x: type(x) == dnp.ndarray,  # noqa: E721
    "ours from the right": lambda x: dnp.ndarray == type(x),  # noqa: E721
}
TRUE: tuple[Callable[[Any], Any], ...] = (  # what is true without derivatives, and is with them
    lambda x: type(x) == type(x),  # noqa: E721
    lambda x: type(x) not in (list, tuple),
    lambda x: {type(x): 1}[type(x)],
    lambda x: type(x) != int,  # noqa: E721
    lambda x: type(x) not in (int, bool, np.int64),
)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("seen", SEEN)
def test_a_class_that_is_compared_with_that_of_a_float_or_an_array_is_an_error(seen: str, verb: str) -> None:
    for name, ask in COMPARED.items():
        for found in told(verb, seen, ask)[1]:
            assert isinstance(found, dg.Error), (name, found)
            assert "isinstance(x, " in str(found)
    for ask in TRUE:
        assert all(found == 1 for found in told(verb, seen, ask)[1])
