"""Elements of arrays under dynamic masks: arithmetic, assignment and reductions. Costs a few seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import agrees, agrees_with_gradient, through_graph

X = np.array([0.3, 1.2, -0.7, 2.2, -0.9, 1.7])
NONE = np.full(6, -1.0)


def written(x: Any) -> Any:
    a = x * 1.0
    a[a > 1] *= 2.0
    a[a < 0] = 0.5
    m = a > 0.4
    a[m] = np.sin(x[m]) * a[m]
    a[~m] -= 3
    a[m] **= 2
    a[m] += x[m]
    return a


def written_rows(x: Any) -> Any:
    a = np.outer(x, x)
    r = a.sum(axis=1) > 0.5
    a[r] = x
    a[~r] *= 2.0
    a[a < -1] = -1.0
    a[r] += a[r] * x
    a[x > 1] = 7.0
    return a.sum(axis=0)


def in_loops_and_branches(x: Any) -> Any:
    def f(v: Any) -> Any:
        return np.sqrt(v) * v

    m = x > 0
    y, t = x[m], 0.0
    for i in range(30):
        t = t + f(y).sum() * i
        y = y * 0.9
    y = y + 1 if t > 3 else x[m]
    return t + y.sum()


@pytest.mark.parametrize("f", [written, written_rows, in_loops_and_branches], ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", [X, -X, NONE], ids=["some", "others", "none"])
def test_arithmetic_and_writing(f: Callable[..., Any], x: Any) -> None:
    agrees(f, x)
    if x is not NONE:
        agrees_with_gradient(lambda x: np.sum(f(x) * np.arange(6.0)), x)


def test_whole_numbers_and_truth_values() -> None:
    def f(x: Any) -> Any:
        n = (x * 5).astype(int)
        n[n > 4] = 4
        n[x < 0] += 2
        b = n > 2
        b[x > 2] = False
        n[b] = 9
        return n, b, n[b].sum(), b[n > 1].any()

    agrees(f, X)
    agrees(f, -X)


OF_VECTORS: dict[str, Callable[[Any, Any], Any]] = {
    "sums": lambda x, y: (y.sum(), np.sum(y**2), sum(y), y.sum(axis=0), np.sum(x[x > 100]), x[(x > 0) & (x < 2)].sum()),
    "means": lambda x, y: (y.mean(), np.mean(np.log(y)), y.var(), np.std(y), np.var(y, ddof=1)),
    "products": lambda x, y: (y.prod(), y @ x[x > 0], np.dot(y, y), np.linalg.norm(y)),
    "extremes": lambda x, y: (y.max(), np.min(y), max(y), min(y)),
    "each": lambda x, y: (
        abs(-y).sum(),
        np.clip(y, 0.5, 1).sum(),
        np.maximum(y, 1.0).sum(),
        np.where(y > 1, y, -y).sum(),
    ),
    "again": lambda x, y: (y.copy().sum(), y[y > 1].sum(), (2.0**y).sum(-1), np.sqrt(y).sum()),
}
EXACT: Callable[[Any, Any], Any] = lambda x, y: (  # noqa: E731
    (y.any(), (y > 1).all(), any(y > 1), all(y > 0.1), np.isclose(y, 0.3).sum(), y.dtype),
    (len(y), y.size, np.count_nonzero(y > 1), len(x[(x > 0) & (x > 1)])),
)


@pytest.mark.parametrize("name", OF_VECTORS)
@pytest.mark.parametrize("x", [X, -X], ids=["some", "others"])
def test_reductions(name: str, x: Any) -> None:
    f = OF_VECTORS[name]
    agrees(lambda x: f(x, x[x > 0]), x)
    agrees_with_gradient(lambda x: sum(v * k for k, v in enumerate(f(x, x[x > 0]), 1)), x)


@pytest.mark.parametrize("x", [X, -X], ids=["some", "others"])
def test_counts_and_truth(x: Any) -> None:
    agrees(lambda x: EXACT(x, x[x > 0]), x)


def test_reductions_of_rows() -> None:
    def f(x: Any) -> Any:
        a = np.outer(x, x + 1)
        b = a[a.sum(axis=1) > 0.5]
        sums = b.sum(), b.sum(axis=0), b.mean(0), b.max(axis=0), (b * x).sum(), b.mean()
        return (*sums, (b - b.mean(axis=0)).var(axis=0), b.size, len(b), a[a > 0].sum())

    agrees(f, X)
    agrees(f, -X)


def test_reductions_of_nothing() -> None:
    found = through_graph(
        lambda x: (x[x > 0].sum(), x[x > 0].prod(), x[x > 0].mean(), x[x > 0].max(), len(x[x > 0])), NONE
    )
    assert np.array_equal(found, (0.0, 1.0, np.nan, np.nan, 0), equal_nan=True)


def test_derivatives_of_what_is_not_chosen_are_zero_even_at_poles() -> None:
    def f(x: Any) -> Any:
        return np.log(x[x > 0]).sum()

    assert through_graph(dg.grad(f), np.array([0.0, 1.0, -1.0])).tolist() == [0.0, 1.0, 0.0]


def aliased(x: Any) -> Any:
    y = x[x > 0]
    y *= 2
    return y.sum()


REFUSED: list[Callable[[Any], Any]] = [
    lambda x: x[x > 0],
    lambda x: (x[x > 0], 1.0),
    lambda x: np.concatenate([x[x > 0], x]),
    lambda x: np.sort(x[x > 0]),
    lambda x: x[x > 0][0],
    lambda x: x[x > 0] + x,
    lambda x: x[x > 0] + x[x > 1],
    lambda x: [v * 2 for v in x[x > 0]],
    lambda x: x[x > 0].shape,
    lambda x: x[x[x > 0]],
    lambda x: 1.0 if x[x > 0] else 2.0,
    lambda x: np.sum(x[x > 0], keepdims=True),
    aliased,
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_needs_their_number_is_refused(number: int) -> None:
    with pytest.raises(dg.LiftError, match="mask"):
        through_graph(REFUSED[number], X)
