"""Axes of length 0 and 1: reductions, sorts and indices over them, eager and compiled, values and derivatives.

Costs one compiled program for all values and one for all gradients, which is 10 s.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import through_graph

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of the mean of nothing

SHAPES = [(1,), (0,), (1, 1), (3, 1), (1, 3), (0, 3), (3, 0), (2, 1, 3)]
ARRAYS = [np.random.default_rng(i).normal(size=shape) for i, shape in enumerate(SHAPES)]

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: np.sum(x),
    "sum 0": lambda x: np.sum(x * x, axis=0),
    "sum -1": lambda x: x.sum(axis=-1, keepdims=True) * x,
    "prod": lambda x: np.prod(x),
    "prod 0": lambda x: np.prod(x, axis=0),
    "prod -1": lambda x: np.prod(x, axis=-1),
    "max": lambda x: np.max(x),
    "max 0": lambda x: np.max(x, axis=0),
    "max -1": lambda x: x.max(axis=-1),
    "min": lambda x: np.min(x),
    "min 0": lambda x: np.min(x, axis=0),
    "min -1": lambda x: np.min(x, axis=-1, keepdims=True),
    "ptp": lambda x: np.ptp(x, axis=0),
    "mean": lambda x: np.mean(x),
    "mean 0": lambda x: np.mean(x, axis=0),
    "mean -1": lambda x: x.mean(axis=-1),
    "average": lambda x: np.average(x, axis=-1, weights=np.ones(x.shape[-1])),
    "var": lambda x: np.var(x),
    "var 0": lambda x: np.var(x, axis=0),
    "std": lambda x: np.std(x),
    "std 0": lambda x: x.std(axis=0),
    "std -1": lambda x: x.std(axis=-1),
    "cumsum": lambda x: np.cumsum(x),
    "cumsum 0": lambda x: np.cumsum(x, axis=0) * x,
    "cumsum -1": lambda x: np.cumsum(x, axis=-1) * x,
    "cumprod": lambda x: np.cumprod(x),
    "cumprod 0": lambda x: np.cumprod(x, axis=0),
    "cumprod -1": lambda x: np.cumprod(x, axis=-1),
    "diff 0": lambda x: np.diff(x, axis=0),
    "diff -1": lambda x: np.diff(x, axis=-1) ** 2,
    "diff 2": lambda x: np.diff(x, n=2, axis=-1) ** 2,
    "sort": lambda x: np.sort(x),
    "sort 0": lambda x: np.sort(x, axis=0) * x,
    "sort all": lambda x: np.sort(x, axis=None) ** 2,
    "argsort": lambda x: np.take_along_axis(x, np.argsort(x, axis=0), axis=0) ** 2,
    "argsort 0": lambda x: np.argsort(x, axis=0),
    "argsort -1": lambda x: np.argsort(x),
    "argmax": lambda x: np.argmax(x),
    "argmax 0": lambda x: np.argmax(x, axis=0),
    "argmin -1": lambda x: np.argmin(x, axis=-1),
    "any": lambda x: np.any(x > 0, axis=0),
    "all": lambda x: np.all(x > 0, axis=-1),
    "all of all": lambda x: (np.all(x > 0), np.any(x > 0)),
    "count": lambda x: np.count_nonzero(x > 0, axis=0),
    "norm": lambda x: np.linalg.norm(x),
    "norm -1": lambda x: np.linalg.norm(x, axis=-1),
    "norm inf": lambda x: np.linalg.norm(x, ord=np.inf, axis=-1),
    "logsumexp": lambda x: dg.special.logsumexp(x, axis=-1),
    "logsumexp 0": lambda x: dg.special.logsumexp(x, axis=0),
    "softmax": lambda x: dg.special.softmax(x, axis=-1) * x,
    "first": lambda x: x[0] * 2.0,
    "last": lambda x: x[..., -1] ** 2,
    "slice": lambda x: x[1:] ** 2,
    "back": lambda x: x[::-1] * x,
    "none": lambda x: x[..., :0] ** 2,
    "places": lambda x: x[[0, 0]] ** 2,
    "new axis": lambda x: x[:, None] * x,
    "flip": lambda x: np.flip(x) * x,
    "roll": lambda x: np.roll(x, 1, axis=0) * x,
    "roll all": lambda x: np.roll(x, 2) * x,
    "repeat": lambda x: np.repeat(x, 2, axis=0) ** 2,
    "tile": lambda x: np.tile(x, 2) ** 2,
    "squeeze": lambda x: np.squeeze(x) ** 2,
    "ravel": lambda x: np.ravel(x) ** 2,
    "transpose": lambda x: np.transpose(x) ** 2,
    "concatenate": lambda x: np.concatenate([x, x * x], axis=0),
    "concatenate -1": lambda x: np.concatenate([x, x[..., :0], x * x], axis=-1),
    "stack": lambda x: np.stack([x, x * x]),
    "split": lambda x: [part**2 for part in np.array_split(x, 2, axis=-1)],
    "pad": lambda x: np.pad(x, 1) ** 2,
    "delete": lambda x: np.delete(x, 0, axis=0) ** 2,
    "append": lambda x: np.append(x, x * x),
    "outer": lambda x: np.outer(x, x),
    "inner": lambda x: np.inner(x, x),
    "dot": lambda x: np.dot(x.T, x) if x.ndim < 3 else x,
    "matmul": lambda x: x.T @ x if x.ndim < 3 else x @ np.swapaxes(x, 1, 2),
    "einsum": lambda x: np.einsum("...i,...i->...", x, x),
    "einsum sum": lambda x: np.einsum("...i->i", x) ** 2,
    "trace": lambda x: np.trace(x) if x.ndim == 2 else x,
    "diagonal": lambda x: np.diagonal(x) ** 2 if x.ndim == 2 else x,
    "tril": lambda x: np.tril(x) ** 2 if x.ndim == 2 else x,
    "diag": lambda x: np.diag(x) ** 2 if x.ndim < 3 else x,
    "where": lambda x: np.where(x > 0, x * x, -x),
    "clip": lambda x: np.clip(x, -0.5, 0.5) ** 2,
    "broadcast": lambda x: np.broadcast_to(x, (2, *x.shape)) * x,
    "add at": lambda x: _added(x),
    "set": lambda x: _set(x),
    "loop": lambda x: _looped(x),
    "polyval": lambda x: np.polyval(x, 0.5),
    "trapezoid": lambda x: np.trapezoid(x) if hasattr(np, "trapezoid") else np.sum(x),
    "max where": lambda x: x[x > 0].sum(),
    "inv": lambda x: np.linalg.inv(x + 3.0) if x.ndim == 2 and x.shape[0] == x.shape[1] else x,
    "det": lambda x: np.linalg.det(x) if x.ndim == 2 and x.shape[0] == x.shape[1] else x,
    "solve": lambda x: np.linalg.solve(x + 3.0, x) if x.ndim == 2 and x.shape[0] == x.shape[1] else x,
    "cholesky": lambda x: np.linalg.cholesky(x * x) if x.ndim == 2 and x.shape[0] == x.shape[1] else x,
}


def _added(x: Any) -> Any:
    y = np.zeros(x.shape)
    y[:1] += x[:1] ** 2
    return y


def _set(x: Any) -> Any:
    y = np.ones(x.shape)
    y[..., :1] = x[..., :1] ** 2
    return y


def _looped(x: Any) -> Any:
    total = 0.0
    for row in x:
        total = total + np.sum(row * row)
    return total


def flat(result: Any) -> list[Any]:
    return [part for r in result for part in flat(r)] if isinstance(result, tuple | list) else [result]


def is_same(a: Any, b: Any) -> bool:
    if isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(is_same, a, b))
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype.kind == b.dtype.kind and np.allclose(a, b, rtol=1e-11, equal_nan=True)


def _cases() -> list[tuple[str, int]]:
    """What numpy itself can do: the name of a function and the number of an array."""
    found = []
    for name, f in FUNCTIONS.items():
        for i, x in enumerate(ARRAYS):
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    f(x)
                except (ValueError, IndexError, ZeroDivisionError, np.linalg.LinAlgError):
                    continue
            found.append((name, i))
    return found


CASES = _cases()
GIVEN = tuple((FUNCTIONS[name], i) for name, i in CASES)
ONLY_COMPILED = {"add at", "set"}  # of which uncompiled numbers say what to write instead


def _value(f: Any, x: Any) -> Any:
    return f(x)


def _total(f: Any, x: Any) -> Any:
    """The sum of the reals in a result, each part with a weight of its own."""
    found, weight = 0.0, 1.0
    y = f(x)
    for part in y if isinstance(y, list) else [y]:
        found, weight = found + np.sum(part) * weight, weight + 1.0
    return found


def _is_real(name: str, i: int) -> bool:
    y = FUNCTIONS[name](ARRAYS[i])
    return all(np.asarray(part).dtype.kind == "f" for part in flat(y))


@pytest.fixture(scope="module")
def smooth() -> list[tuple[str, int]]:
    """The cases that have a gradient."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            (name, i) for name, i in CASES if _is_real(name, i) and math.isfinite(_total(FUNCTIONS[name], ARRAYS[i]))
        ]


def test_most_of_them_are_to_be_had() -> None:
    assert len(CASES) > 550


def test_values() -> None:
    for name, i in CASES:
        found, wanted = through_graph(FUNCTIONS[name], ARRAYS[i]), FUNCTIONS[name](ARRAYS[i])
        assert is_same(found, wanted), f"{name} of {SHAPES[i]}: {found!r} is not {wanted!r}"


def test_values_in_native_code() -> None:
    compiled = dg.compile(lambda xs, given: [_value(f, xs[i]) for f, i in given])(ARRAYS, GIVEN)
    for (name, i), found in zip(CASES, compiled, strict=True):
        wanted = FUNCTIONS[name](ARRAYS[i])
        assert is_same(found, wanted), f"{name} of {SHAPES[i]}: {found!r} is not {wanted!r}"


def test_derivatives_in_both_modes(smooth: list[tuple[str, int]]) -> None:
    for name, i in smooth:
        if name in ONLY_COMPILED:
            continue
        x, f = ARRAYS[i], FUNCTIONS[name]
        found = dg.grad(lambda x, f=f: _total(f, x))(x)
        along = dg.jvp(lambda x, f=f: _total(f, x), (x,), (x,))[1]
        assert is_same(np.sum(found * x), along), f"{name} of {SHAPES[i]}"
        assert np.allclose(found, _slopes(f, x), rtol=1e-5, atol=1e-6), f"{name} of {SHAPES[i]}: {found!r}"


def test_gradients_in_native_code(smooth: list[tuple[str, int]]) -> None:
    given = tuple((FUNCTIONS[name], i) for name, i in smooth)
    compiled = dg.compile(lambda xs, given: [dg.grad(_total, 1)(f, xs[i]) for f, i in given])(ARRAYS, given)
    for (name, i), found in zip(smooth, compiled, strict=True):
        wanted = _slopes(FUNCTIONS[name], ARRAYS[i])
        assert np.allclose(found, wanted, rtol=1e-5, atol=1e-6), f"{name} of {SHAPES[i]}: {found!r} is not {wanted!r}"


def _slopes(f: Any, x: Any, h: float = 1e-6) -> Any:
    """Central differences."""
    found = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[place] = h
        found[place] = (_total(f, x + step) - _total(f, x - step)) / (2 * h)
    return found


def test_the_deviation_of_one_number_is_0_and_so_is_its_derivative() -> None:
    for f in (np.std, lambda x: np.std(x, axis=0).sum(), lambda x: x.std(ddof=0)):
        assert dg.grad(f)(np.array([2.0])).tolist() == [0.0]
        assert dg.jvp(f, (np.array([2.0]),), (np.array([3.0]),)) == (0.0, 0.0)
        assert dg.hessian(f)(np.array([2.0])).tolist() == [[0.0]]
    with pytest.raises(dg.NotDifferentiable):  # two numbers that are equal are a kink
        dg.grad(np.std)(np.array([2.0, 2.0]))
