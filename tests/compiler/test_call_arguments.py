"""Every optional argument of every function of Python's library that has a handler: it is honoured, by place and by
name, with its derivative, or an error names it; none is dropped. Those of numpy are in `test_every_argument.py`.

Costs a few seconds: nothing is compiled, functions are specialised and interpreted.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import agrees_with_gradient, through_graph
from dynagrad.compiler import call_arguments, specialised
from dynagrad.compiler.call_arguments import checked, signature_of
from dynagrad.compiler.evaluate.specialiser import CALLS, KNOWS, Specialiser

assert specialised  # which enters the handlers
X = np.array([0.75, -1.5, 2.25])


def _ours(f: Any) -> bool:
    return str(getattr(f, "__module__", "")).startswith("dynagrad")


LIBRARY = [f for f in KNOWS if not isinstance(f, np.ufunc) and f not in (print, complex, next, super)]
"""All but those that are never compiled, `super`, and ufuncs, which `test_every_argument.py` walks."""


def options(f: Any) -> list[inspect.Parameter]:
    return [p for p in signature_of(f).parameters.values() if p.default is not p.empty]


class Odd:
    """What no argument is."""


def call(f: Any, *arguments: Any, **named: Any) -> Any:
    return CALLS[f](Specialiser([]), arguments, named)


def needed(f: Any) -> list[Any]:
    """As many arguments as a call needs."""
    return [
        (1.0, 2.0)
        for p in signature_of(f).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, 1)
    ]


@pytest.mark.parametrize("f", LIBRARY, ids=lambda f: f.__qualname__)
def test_what_a_handler_does_not_know_is_refused(f: Any) -> None:
    parameters = signature_of(f).parameters.values()
    names = KNOWS[f]
    for p in options(f):
        if names is not None and p.name not in names and p.kind is not p.POSITIONAL_ONLY:
            with pytest.raises(dg.Error, match=p.name):
                call(f, *needed(f), **{p.name: Odd()})
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        with pytest.raises((dg.Error, TypeError), match="of_a_later_python"):
            call(f, *needed(f), of_a_later_python=1)
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        with pytest.raises((dg.Error, TypeError), match=f"{f.__name__}|too many"):
            call(f, *needed(f), *[Odd()] * (len(options(f)) + 1))


def test_what_a_later_python_adds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    later = inspect.signature(lambda iterable, start=0, /, scale=1.0, *, weight=1.0: None)
    monkeypatch.setattr(call_arguments, "signature_of", lambda f: later)
    call_arguments._takes.cache_clear()
    try:
        knows = frozenset({"start"})
        assert checked(sum, knows, [[1.0], 2.0], {}) == ([[1.0], 2.0], {})
        assert checked(sum, knows, [[1.0], 2.0, 1.0], {"weight": 1.0}) == ([[1.0], 2.0], {})
        for arguments, named in (([[1.0], 2.0, 3.0], {}), ([[1.0]], {"scale": 3.0}), ([[1.0]], {"weight": 3.0})):
            with pytest.raises(dg.Error, match=r"sum\(\) does not take (scale|weight)=3.0"):
                checked(sum, knows, arguments, named)
    finally:
        call_arguments._takes.cache_clear()


def test_misspelt_and_superfluous_arguments_in_a_compiled_function() -> None:
    cases: list[tuple[Callable[..., Any], str]] = [
        (lambda x: sum(x, begin=1.0), "begin"),
        (lambda x: math.prod(x, begin=1.0), "begin"),
        (lambda x: math.sqrt(x[0], x[1]), "sqrt"),
        (lambda x: len(x, x), "len"),
        (lambda x: dg.grad(lambda y: y * y, argnum=0)(x[0]), "argnum"),
        (lambda x: int(x[0], 10), "base"),
        (lambda x: int(x[0], base=10), "base"),
        (lambda x: max(x[0], x[1], default=1.0), "default"),
        (lambda x: repr(x[0], "utf-8"), "repr"),
        (lambda x: type(x[0], (), {}), "type"),
        (lambda x: [x[0]].sort(lambda y: y), "sort|argument"),
        (lambda x: {"a": x[0]}.get("b", default=1.0), "default"),
    ]
    for f, named in cases:
        with pytest.raises(dg.Error, match=named):
            pytest.fail(f"{named} is dropped: {through_graph(f, X)}")


# -- what is honoured --------------------------------------------------------------------------------------------------

HONOURED: dict[tuple[Any, str], Callable[..., Any]] = {
    (bool, "object"): lambda x: x[0] * bool(x[0] > 0.5),
    (np.copy, "order"): lambda x: np.sum(np.copy(x, "C") ** 2),
    (np.copy, "subok"): lambda x: np.sum(np.copy(x, "C", False) ** 2),
    (np.delete, "axis"): lambda x: np.sum(np.delete(np.reshape(x, (1, 3)), 1, axis=1) ** 2),
    (np.fromfunction, "dtype"): lambda x: np.sum(np.fromfunction(lambda i: i * x, (3,), dtype=int)),
    (np.fromiter, "count"): lambda x: np.sum(np.fromiter([x[0] * x[0], x[1], x[2]], float, count=2)),
    (dict, "iterable"): lambda x: dict([("a", x[0] * x[1])], b=x[2])["a"],
    (enumerate, "start"): lambda x: (
        sum([i * y for i, y in enumerate(x, start=3)]) + sum([i for i, _ in enumerate(x, 5)])
    ),
    (float, "x"): lambda x: float(x[0]) * 2.0,
    (frozenset, "iterable"): lambda x: x[0] * len(frozenset([1, 2, 2])),
    (functools.reduce, "initial"): lambda x: functools.reduce(lambda a, b: a * b, x, x[0] * 3.0),
    (getattr, "default"): lambda x: getattr(x, "nothing", x[0]) * 2.0,
    (int, "base"): lambda x: x[0] * int("11", 2) + int("12", base=5),
    (int, "x"): lambda x: x[0] * int(x[2]),
    (itertools.accumulate, "func"): lambda x: sum(itertools.accumulate(x, lambda a, b: a * b)),
    (itertools.accumulate, "initial"): lambda x: sum(itertools.accumulate(x, initial=x[0] * x[0])),
    (itertools.combinations, "r"): lambda x: sum([a * b for a, b in itertools.combinations(x, r=2)]),
    (itertools.count, "start"): lambda x: sum([a * b for a, b in zip(x, itertools.count(start=2), strict=False)]),
    (itertools.count, "step"): lambda x: sum([a * b for a, b in zip(x, itertools.count(2, step=3), strict=False)]),
    (itertools.groupby, "key"): lambda x: sum(
        [len(g) * x[0] for _, g in [(k, list(g)) for k, g in itertools.groupby([1, 3, 2], key=lambda i: i % 2)]]
    ),
    (itertools.islice, "stop"): lambda x: sum(list(itertools.islice([x[0], x[1] ** 2, x[2]], 1, 2))),
    (itertools.islice, "step"): lambda x: sum(list(itertools.islice([x[0] ** 2, x[1], x[2]], 0, 3, 2))),
    (itertools.permutations, "r"): lambda x: (
        sum([a * a * b for a, b in itertools.permutations(x, r=2)]) + len(list(itertools.permutations([1, 2], None)))
    ),
    (itertools.product, "repeat"): lambda x: sum([a * a * b for a, b in itertools.product(x, repeat=2)]),
    (itertools.repeat, "times"): lambda x: sum(list(itertools.repeat(x[0] ** 2, times=3))),
    (itertools.tee, "n"): lambda x: sum([sum(list(y)) * x[0] for y in itertools.tee(x, 3)]),
    (itertools.zip_longest, "fillvalue"): lambda x: sum(
        [a * b for a, b in itertools.zip_longest([x[0], x[1]], [x[1]], fillvalue=x[2])]
    ),
    (list, "iterable"): lambda x: sum(list(x)) * x[0],
    (math.isclose, "abs_tol"): lambda x: (
        x[0] * math.isclose(x[0], x[1], abs_tol=3.0) + math.isclose(x[0], x[1], abs_tol=x[2] + 1.0)
    ),
    (math.isclose, "rel_tol"): lambda x: (
        x[0] * math.isclose(x[0], x[2], rel_tol=0.9) + math.isclose(x[0], x[2], rel_tol=0.1)
    ),
    (math.log, "base"): lambda x: math.log(x[0], x[2]),
    (math.prod, "start"): lambda x: math.prod(x, start=x[0] * 3.0),
    (max, "default"): lambda x: max([], default=x[0] ** 2) + max(x, default=9.0),
    (max, "key"): lambda x: max(x, key=lambda y: -y) + max(x[0], x[1], key=lambda y: y * y),
    (min, "default"): lambda x: min([], default=x[0] ** 2) + min(x, default=-9.0),
    (min, "key"): lambda x: min(x, key=lambda y: -y) * min(x[0], x[1], key=lambda y: y * y),
    (operator.length_hint, "default"): lambda x: x[0] * operator.length_hint([1, 2], 7),
    (pow, "mod"): lambda x: x[0] * pow(7, 2, 5) + pow(x[0], 2, None) + pow(base=x[2], exp=3),
    (range, "step"): lambda x: sum([x[i] ** 2 for i in range(0, 3, 2)]),
    (range, "stop"): lambda x: sum([x[i] ** 2 for i in range(1, 2)]),
    (round, "ndigits"): lambda x: (
        x[0] * round(x[1] * 1.234567, ndigits=2) + round(number=1.256, ndigits=1) + round(x[2], None)
    ),
    (set, "iterable"): lambda x: x[0] * len(set([1, 2, 2])),
    (slice, "step"): lambda x: np.sum(x[slice(0, 3, 2)] ** 2),
    (slice, "stop"): lambda x: np.sum(x[slice(1, 2)] ** 2),
    (sorted, "key"): lambda x: np.dot(np.array(sorted(x, key=lambda y: y * y)), np.array([1.0, 10.0, 100.0])),
    (sorted, "reverse"): lambda x: np.dot(np.array(sorted(x, reverse=True)), np.array([1.0, 10.0, 100.0])),
    (str, "encoding"): lambda x: x[0] * len(str(b"\xc3\xa4", "utf-8")),
    (str, "errors"): lambda x: x[0] * len(str(b"\xff", "utf-8", errors="replace")),
    (str, "object"): lambda x: x[0] * len(str(object=12)),
    (sum, "start"): lambda x: sum(x, start=x[0] * 3.0) * sum(x, x[1]) + sum([], x[2]),
    (tuple, "iterable"): lambda x: tuple(x)[1] * x[0],
    (zip, "strict"): lambda x: sum([a * b for a, b in zip(x, x[::-1], strict=True)]),
}
"""A function of an array for each optional argument, whose value is another without the argument."""


def _known(f: Any) -> list[str]:
    names = KNOWS[f]
    if f is np.vectorize or _ours(f) or names is None:
        return []  # of this package; and tests/compiler/library/test_callables.py
    return [p.name for p in options(f) if p.name in names]


def test_what_a_handler_knows_is_honoured() -> None:
    missing = [(f.__name__, name) for f in LIBRARY for name in _known(f) if (f, name) not in HONOURED]
    newer = {("batched", "strict"), ("batched", "n"), ("map", "strict")}
    assert set(missing) <= newer
    for (f, name), case in HONOURED.items():
        assert name in signature_of(f).parameters, (f, name)
        try:
            agrees_with_gradient(case, X)
        except BaseException as problem:
            raise AssertionError(f"{f.__name__} with {name}=") from problem


@pytest.mark.skipif("strict" not in signature_of(map).parameters, reason="map(strict=) is of Python 3.14")
def test_map_strict() -> None:
    with pytest.raises(dg.Error, match="strict"):
        through_graph(lambda x: sum(map(lambda a, b: a * b, x, [1.0], strict=True)), X)


def test_lengths_of_strict_zips() -> None:
    with pytest.raises(dg.Error, match=r"strict=True .* differ in length"):
        through_graph(lambda x: sum([a * b for a, b in zip(x, [1.0, 2.0], strict=True)]), X)

    def with_dynamic_length(x: Any, n: int) -> Any:
        total = 0.0
        for a, _ in zip(x, range(n), strict=True):
            total = total + a
        return total

    with pytest.raises(dg.Error, match="strict"):
        through_graph(lambda x: with_dynamic_length(x, int(x[2])), X)


@pytest.mark.skipif(not hasattr(math, "sumprod"), reason="of Python 3.12")
def test_sumprod_and_hypot() -> None:
    agrees_with_gradient(lambda x: math.sumprod(x, [x[1], 2.0, x[0]]), X)


def test_hypot_of_any_number_of_coordinates() -> None:
    agrees_with_gradient(lambda x: math.hypot(x[0]) + math.hypot(x[0], x[1], x[2]) * math.hypot(*x, 1.0), X)


@dataclasses.dataclass
class Point:
    x: float
    y: float = 2.0


def test_objects_take_what_their_classes_do() -> None:
    agrees_with_gradient(lambda x: (p := Point(y=x[1], x=x[0])).x * p.y * dataclasses.replace(p, y=x[2]).y, X)
    for f in (lambda x: Point(x[0], z=x[1]).x, lambda x: dataclasses.replace(Point(x[0]), z=x[1]).x):
        with pytest.raises(dg.Error, match="z"):
            through_graph(f, X)
