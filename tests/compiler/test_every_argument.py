"""Every argument that the installed numpy gives a function that has a handler: it is honoured, or an error names it;
none is dropped.

A handler that does not name an argument refuses each value but the usual one; one that names it is held against numpy,
on arrays, with values that change numpy's own result. A value that changes nothing there shows nothing, so an argument
of a handler has to have one in `VALUES`. Costs a few seconds: nothing is compiled, calls are specialised and
interpreted.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.test_every_function import BASE, NO_VALUES, Later, _numbers, _same, through
from dynagrad.compiler.numpy.nodes import ON_NODES
from dynagrad.compiler.specialised import specialised
from dynagrad.eager.numpy.functions import FUNCTIONS, bound
from dynagrad.eager.numpy.protocol import LOOKS
from dynagrad.ir.interpret import run

X = np.array([[2.5, 0.5, -1.25, np.nan], [0.25, 3.0, 1.5, 2.0], [1.0, -0.5, 4.0, 0.5], [1.0, 5.0, 0.0, -7.5]])
FINITE = np.nan_to_num(X)
VALUES: dict[str, list[Any]] = {
    "axis": [0, 1], "keepdims": [True], "ddof": [1], "decimals": [1], "descending": [True], "side": ["right"],
    "equal_nan": [True], "rtol": [1.0], "atol": [9.0], "invert": [True], "nan": [3.0], "n": [2], "k": [1],
    "offset": [1], "axis1": [1], "axis2": [0], "shape": [(2, 2)], "dtype": [int, bool], "ndmin": [3], "order": ["F"],
    "copy": [False], "right": [True], "correction": [2], "kind": ["nonsense"], "initial": [9.0], "where": [FINITE > 1],
    "mean": [np.ones(())], "posinf": [1.0], "neginf": [1.0], "default": [7.0], "mode": ["clip", "wrap", "same"],
    "stable": ["x", True], "ndmax": [1], "bias": [True], "rowvar": [False], "increasing": [True], "ord": [1, np.inf],
    "left": [3.0], "prepend": [1.0], "append": [1.0], "to_begin": [1.0], "to_end": [1.0], "dx": [2.0],
}  # fmt: skip
"""Values of arguments that differ from the usual ones."""


class Odd:
    """What no argument is."""

    def __repr__(self) -> str:
        return "odd"


def handlers() -> Iterator[tuple[Any, Any]]:
    yield from ((f, h) for f, h in {**FUNCTIONS, **ON_NODES}.items() if not isinstance(f, np.ufunc))


def parameters(f: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(f).parameters)
    except ValueError:
        return {}


def optional(f: Any) -> list[str]:
    return [name for name, p in parameters(f).items() if p.default is not p.empty and name != "out"]


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
    assert looked_at > 100


def attempt(f: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    later = tuple(Later(x) if isinstance(x, np.ndarray) and x.dtype.kind in "fib" else x for x in given)
    types = tuple(x.type if isinstance(x, Later) else x for x in later)
    made = specialised(through, (f, types, named))
    return made.output(run(made.graph, list(_numbers(later))))


def cases(f: Any) -> Iterator[tuple[tuple[Any, ...], str, Any]]:
    needed = [p.name for p in parameters(f).values() if p.default is p.empty and p.kind in (0, 1)]
    for main in (X, FINITE, np.arange(4.0)):
        lists = {"condlist": [main > 0], "choicelist": [main], "arrays": [main], "tup": [main]}
        given = tuple(lists.get(name, BASE.get(name, main)) for name in needed)
        for name in optional(f):
            for value in VALUES.get(name, []):
                yield given, name, value


def test_what_a_handler_names_is_honoured_or_refused() -> None:
    wrong, compared = [], 0
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for f in dict.fromkeys([*FUNCTIONS, *ON_NODES, *LOOKS]):
            if isinstance(f, np.ufunc | type) or f.__name__ in NO_VALUES:
                continue
            for given, name, value in cases(f):
                try:
                    usual, wanted = f(*given), f(*given, **{name: value})
                except Exception as problem:
                    usual, wanted = None, problem
                if not isinstance(wanted, Exception) and _same(usual, wanted):
                    continue
                try:
                    found = attempt(f, given, {name: value})
                except dg.Error:
                    continue
                except np.linalg.LinAlgError:  # as it runs, where numpy raises it too
                    assert isinstance(wanted, np.linalg.LinAlgError)
                    continue
                compared += 1
                if not isinstance(wanted, Exception) and not _same(found, wanted):
                    wrong.append(f"{f.__name__}({name}={value!r}) is {found!r} and not {wanted!r}")
    assert not wrong, "\n".join(wrong[:20])
    assert compared > 100


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
    """What is wrong with a call, as it is and with numbers known later; None where numpy refuses it."""
    try:
        wanted = f(*given, **named)
    except Exception:
        return None
    try:
        found = attempt(f, given, named)
    except dg.Error:
        return ""
    shown = f"{what} of {given[1:]} and {named} is {found!r} and not {wanted!r}"
    return "" if _same(found, wanted) else shown


def of_methods() -> Iterator[tuple[str, Any, tuple[Any, ...], dict[str, Any]]]:
    for name, needed in METHODS.items():
        extra = ["keepdims", "where", "initial", "ddof"] if name in REDUCING else []
        x = np.array([0.5, 1.0, 2.0]) if name == "searchsorted" else WHOLE * 1.25
        for option in dict.fromkeys([*optional(getattr(np.ndarray, name)), *extra]):
            for value in CHANGES.get(option, []):
                yield f"x.{name}", method(name), (x, *needed), {option: value}
    for x in (WHOLE * 1.25, WHOLE):
        for by_place in ((1, None, None, True), (0, float), (0, int), (0, None, None, False, 2.0, WHOLE > 0)):
            yield "x.sum", method("sum"), (x, *by_place), {}
            yield "np.add.reduce", of_ufunc(np.add, "reduce"), (x, *by_place), {}


UFUNCS = (np.add, np.subtract, np.maximum, np.logaddexp, np.logical_and, np.floor_divide, np.sqrt, np.matmul, np.modf)


def of_ufuncs() -> Iterator[tuple[str, Any, tuple[Any, ...], dict[str, Any]]]:
    for x in (np.abs(WHOLE) * 1.25, WHOLE):
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
