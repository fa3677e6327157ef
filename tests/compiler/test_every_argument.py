"""Every argument that the installed numpy gives a function that has a handler: it is honoured, or an error names it;
none is dropped.

A handler that does not name an argument refuses each value but the usual one; one that names it is held against numpy,
on arrays, compiled and as it runs, with values that change numpy's own result. A value that changes nothing there shows
nothing, so an argument has to have one in `argument_cases.py`, or to be named there as one that cannot change any.
Derivatives are in `test_every_argument_derived.py`. Costs a few seconds: nothing is compiled, calls are specialised and
interpreted.
"""

from __future__ import annotations

import inspect
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.argument_cases import (
    UNCHANGING,
    VALUES,
    X,
    calls_of,
    given_in,
    optional,
    parameters,
    put,
    result,
    same,
)
from compiler.test_every_function import EVERY, NO_VALUES, Later, _changed, _numbers, through
from dynagrad.compiler.numpy.nodes import ON_NODES
from dynagrad.compiler.specialised import specialised
from dynagrad.eager.kinds import real_part
from dynagrad.eager.numpy.functions import FUNCTIONS, bound
from dynagrad.ir.interpret import run


class Odd:
    """What no argument is."""

    def __repr__(self) -> str:
        return "odd"


def handlers() -> Iterator[tuple[Any, Any]]:
    yield from ((f, h) for f, h in {**FUNCTIONS, **ON_NODES}.items() if not isinstance(f, np.ufunc))


def test_what_a_handler_does_not_name_is_refused() -> None:
    looked_at = 0
    for table in (FUNCTIONS, ON_NODES):
        for f, handler in table.items():
            if isinstance(f, np.ufunc):
                continue
            named = inspect.signature(handler).parameters
            swallows = [n for n, p in named.items() if p.kind is p.VAR_KEYWORD]
            takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters(f).values())
            refuses_all = handler.__name__.startswith("_unknown")
            assert takes_any or refuses_all or not swallows, f"{f.__name__} may drop arguments"
            for name in optional(f):
                by_place = parameters(f)[name].kind is inspect.Parameter.POSITIONAL_ONLY
                if name not in named and not refuses_all and not by_place:
                    needed = [X] * sum(p.default is p.empty for p in parameters(f).values())
                    with pytest.raises(dg.Error, match=f"does not take {name}="):
                        bound(f, handler, needed, {name: np.float32 if name == "dtype" else Odd()})
                    looked_at += 1
            if parameters(f) and not takes_any:
                with pytest.raises(TypeError, match="of_a_later_numpy"):
                    bound(f, handler, [], {"of_a_later_numpy": Odd()})
    assert looked_at > 80


def later(x: Any) -> Any:
    """Arrays of a kind that compiled functions have, in lists and dicts too, as known only when it runs."""
    if isinstance(x, dict):
        return {key: later(value) for key, value in x.items()}
    if isinstance(x, tuple | list):
        return type(x)(map(later, x))
    return Later(x) if isinstance(x, np.ndarray) and x.dtype.kind in "fib" else x


def attempt(f: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    given, named = later(given), later(named)
    made = specialised(through, (f, _changed(given, lambda x: x.type), _changed(named, lambda x: x.type)))
    return made.output(run(made.graph, [*_numbers(given), *_numbers(named)]))


def as_it_runs(f: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What a call gives with numbers that carry derivatives, without them."""
    numbers, found = [x for x in _numbers(later((given, named))) if x.dtype.kind == "f"], []

    def strip(x: Any) -> Any:
        if isinstance(x, tuple | list):
            return tuple(map(strip, x))
        return real_part(x.settled() if hasattr(x, "settled") else x)

    def call(*xs: Any) -> Any:
        left = list(xs)
        found.append(strip(f(*put(given, left), **put(named, left))))
        return 0.0

    if numbers:
        dg.jvp(call, tuple(numbers), tuple(map(np.zeros_like, numbers)))
    else:
        call()
    return found[0]


WALKED = [f for f in EVERY if not isinstance(f, np.ufunc | type) and f.__name__ not in NO_VALUES]


def test_what_a_handler_names_is_honoured_or_refused() -> None:
    wrong, compared, changing = [], 0, set()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for f in WALKED:
            tried: Counter[str] = Counter()
            for given, named in calls_of(f):
                if tried[str(named)] > 1 or isinstance(wanted := result(f, given, named), Exception):
                    continue
                changes = given_in(f, given, named)
                if not changes:
                    continue
                changing |= {(f.__name__, name) for name in changes}
                tried[str(named)] += 1
                for way in (attempt, as_it_runs):
                    try:
                        found = way(f, given, named)
                    except dg.Error:
                        continue
                    compared += 1
                    dynamic = any(True for _ in _numbers(later((given, named))))
                    if not same(found, wanted, kinds="dtype" in named and dynamic):
                        wrong.append(f"{f.__name__}{given}{named} is {found!r} and not {wanted!r}: {way.__name__}")
    assert not wrong, "\n".join(wrong[:20])
    assert compared > 900
    every = {(f.__name__, name) for f in WALKED for name in optional(f)}
    shown = {f"{f}.{name}" for f, name in every - changing if name not in UNCHANGING}
    assert shown - UNCHANGING.keys() == set(), "have no value that changes something"


# -- methods of arrays and of ufuncs -----------------------------------------------------------------------------------

WHOLE = np.array([[2, 0, -1], [0, 3, 1], [1, 0, 4]])
METHODS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("all", "any", "argmax", "argmin", "argsort", "cumprod", "cumsum", "max", "mean", "min"), ()),
    **dict.fromkeys(("prod", "round", "std", "sum", "trace", "var", "diagonal", "flatten", "ravel", "copy"), ()),
    "astype": (float,), "clip": (0.5,), "compress": ([True, False, True],), "dot": (WHOLE * 1.0,), "repeat": (2,),
    "reshape": (9,), "searchsorted": (1.5,), "take": ([0, 2],), "argpartition": (1,),
}  # fmt: skip
"""Methods of arrays, and what they need."""
REDUCING = ("all", "any", "max", "mean", "min", "prod", "std", "sum", "var")  # whose signatures say **kwargs
CHANGES: dict[str, list[Any]] = {**VALUES, "where": [WHOLE > 0], "min": [1.0], "max": [1.0], "sorter": [[2, 1, 0]],
                                 "casting": ["no", "nonsense"], "kind": ["stable", "nonsense"]}  # fmt: skip


def method(name: str) -> Any:
    def call(x: Any, *arguments: Any, **named: Any) -> Any:
        return getattr(x, name)(*arguments, **named)

    return call


def of_ufunc(ufunc: Any, name: str) -> Any:
    def call(x: Any, *arguments: Any, **named: Any) -> Any:
        return getattr(ufunc, name)(x, *arguments, **named)

    return call


def wrong_with(what: str, f: Any, given: tuple[Any, ...], named: dict[str, Any]) -> str | None:
    """What is wrong with a call, compiled and as it runs; None where numpy refuses it."""
    wanted = result(f, given, named)
    if isinstance(wanted, Exception):
        return None
    unwritten = "where" in named and not what.endswith("reduce") and what.startswith("np.")
    for way in (attempt,) if unwritten else (attempt, as_it_runs):  # numpy leaves in memory what was there
        try:
            found = way(f, given, named)
        except dg.Error:
            continue
        if not same(found, wanted):
            return f"{what} of {given} and {named} is {found!r} and not {wanted!r}: {way.__name__}"
    return ""


PARTS = WHOLE * 1.25


def of_methods(whole: Any = PARTS) -> Iterator[tuple[str, Any, tuple[Any, ...], dict[str, Any]]]:
    for name, needed in METHODS.items():
        extra = ["keepdims", "where", "initial", "ddof"] if name in REDUCING else []
        x = np.array([0.5, 1.0, 2.0]) if name == "searchsorted" else whole
        for option in dict.fromkeys([*optional(getattr(np.ndarray, name)), *extra]):
            for value in CHANGES.get(option, []):
                yield f"x.{name}", method(name), (x, *needed), {option: value}
    for x in (whole, WHOLE):
        for by_place in ((1, None, None, True), (0, float), (0, int), (0, None, None, False, 2.0, WHOLE > 0)):
            yield "x.sum", method("sum"), (x, *by_place), {}
            yield "np.add.reduce", of_ufunc(np.add, "reduce"), (x, *by_place), {}


UFUNCS = (np.add, np.subtract, np.maximum, np.logaddexp, np.logical_and, np.floor_divide, np.sqrt, np.matmul, np.modf)


ABOVE = np.abs(WHOLE) * 1.25


def of_ufuncs(xs: Any = (ABOVE, WHOLE)) -> Iterator[tuple[str, Any, tuple[Any, ...], dict[str, Any]]]:
    for x in xs:
        for u in UFUNCS:
            options: dict[str, list[Any]] = {"where": [WHOLE > 0], "dtype": [float, int, np.float32], "casting": ["no"]}
            options |= {"order": ["F"], "signature": ["d" * u.nin + "->" + "d" * u.nout], "subok": [False]}
            options |= {"axes": [[(1, 0), (0, 1), (0, 1)]], "keepdims": [True]} if u.signature else {}
            for option, values in options.items():
                for value in values:
                    out = {"out": None} if option == "where" else {}
                    yield f"np.{u.__name__}", u, (x,) * u.nin, {option: value, **out}
            if u.nin == 1 or u.signature:
                continue
            for name, rest in (("reduce", ()), ("accumulate", ()), ("reduceat", ([0, 2],)), ("outer", (x,))):
                options = {
                    "dtype": [float, int],
                    "axis": [1],
                    "keepdims": [True],
                    "initial": [2.0],
                    "where": [WHOLE > 0],
                }
                for option, values in options.items():
                    for value in values:
                        yield f"np.{u.__name__}.{name}", of_ufunc(u, name), (x, *rest), {option: value}


def test_methods_and_ufuncs_honour_or_refuse_each_argument() -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [wrong_with(*case) for case in (*of_methods(), *of_ufuncs())]
    assert not [wrong for wrong in found if wrong]
    assert sum(wrong is not None for wrong in found) > 150


def test_an_initial_value_comes_first() -> None:
    """Also of what is not associative; with its derivatives, against differences."""
    x = np.array([3.0, 0.5, 2.0])
    for ufunc in (np.subtract, np.divide, np.add, np.multiply, np.maximum, np.logaddexp):

        def f(y: Any, ufunc: Any = ufunc) -> Any:
            return ufunc.reduce(y, initial=y[2] * 0.75)

        wanted = [(f(x + h) - f(x - h)) / 2e-6 for h in np.eye(3) * 1e-6]
        assert np.allclose(f(x), ufunc.reduce(np.array([1.5, *x])))
        assert np.allclose(dg.grad(f)(x), wanted, atol=1e-5)
        assert np.allclose(dg.value_and_grad(f)(x)[0], f(x))
