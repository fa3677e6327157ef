"""Specialises functions, interprets their graphs, and compares the results with Python's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad.compiler.specialised import key_of, specialised
from dynagrad.ir.interpret import run


def through_graph(f: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What a function returns when it is specialised to its arguments, and its graph is evaluated."""
    made = specialised(f, arguments, named)
    return made.output(run(made.graph, key_of(arguments, named)[1]))


def same(a: Any, b: Any) -> bool:
    """Whether two results are equal to rounding, in kind and structure too."""
    if isinstance(b, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in b)
    if dataclasses.is_dataclass(b):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(b))
    if isinstance(b, np.ndarray):
        return np.shape(a) == b.shape and bool(np.allclose(a, b, rtol=1e-11, atol=1e-13, equal_nan=True))
    if isinstance(b, float | np.floating):
        return bool(np.isclose(a, b, rtol=1e-11, atol=1e-13, equal_nan=True))
    return bool(a == b) and isinstance(a, bool | np.bool_) == isinstance(b, bool | np.bool_)


def agrees(f: Callable[..., Any], *arguments: Any) -> None:
    """Fails where the graph returns something else than the function."""
    with np.errstate(all="ignore"):
        wanted = f(*arguments)
        found = through_graph(f, *arguments)
    assert same(found, wanted), f"{found!r} is not {wanted!r}"


def agrees_with_gradient(f: Callable[..., Any], *arguments: Any) -> None:
    """The same for the function, and for its gradient by its first argument, against differences."""
    agrees(f, *arguments)
    found = through_graph(dg.grad(f), *arguments)
    x, rest = np.asarray(arguments[0], float), arguments[1:]
    wanted = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        h = np.zeros(x.shape)
        h[i] = 1e-6
        up, down = (f(y if y.ndim else float(y), *rest) for y in (x + h, x - h))
        wanted[i] = (up - down) / 2e-6
    assert np.allclose(found, wanted, rtol=1e-5, atol=1e-6), f"{found!r} is not {wanted!r}"
