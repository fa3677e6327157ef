"""Views made by numpy's functions: a write to either shows in both, where it does in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import agrees, agrees_with_gradient, through_graph

X = np.array([0.3, 1.2, -0.7, 2.2, 0.9, 1.7])
WEIGHTS = np.random.default_rng(0).normal(size=200)


def reshaped(x: Any) -> Any:
    a = np.zeros(4).reshape(2, 2)
    a[0, 1] = x[0]
    a.T[0] += x[1]
    b = np.arange(6.0).reshape(2, 3)
    b[1] *= x[0]
    c = b.ravel()
    c[2:4] += x[1]
    return a, b, c


def rows(x: Any) -> Any:
    a = x.copy().reshape(2, 3)
    for row in a:
        row *= 2
    for row in a.reshape(3, 2):
        row[0] += x[1]
    r = a[1]
    r[2] = x[0]
    a.reshape(-1)[::-1][1] = 9.0
    a[::-1].T[1] *= x[2]
    return a


def copies(x: Any) -> Any:
    a = x.copy().reshape(2, 3)
    b, c, d = a.T.ravel(), a.T.reshape(6), a[:, :2].reshape(4)
    b[0], d[1] = 100.0, 3.0
    a[0, 0] = x[1]
    return a, b, c, d


def turned(x: Any) -> Any:
    a = np.zeros((2, 3, 2))
    np.moveaxis(a, 0, 2)[1, 1, 0] = x[0]
    a.swapaxes(0, 2)[1] += x[:3, None]
    np.transpose(a, (1, 2, 0))[2] = x[1]
    np.rot90(a)[0, 0] = x[2]
    np.flip(a)[0] *= 2
    np.fliplr(a)[0] -= 2
    np.flipud(a)[1, 1] = 4.5
    np.expand_dims(a, 0)[0, 1, 1] += x[3]
    a[:, None].squeeze()[0, 0, 0] = 5.0
    np.atleast_2d(a[0, 0])[0, 1] = 77.0
    return a


def flat(x: Any) -> Any:
    a = np.zeros((2, 3))
    a.flat[3] = x[4]
    a.T.flat[1] = x[5]
    return a


def split(x: Any) -> Any:
    a, b = np.zeros(6), np.ones((4, 3))
    p, q = np.split(a, 2)
    p[0] = x[0]
    q += x[1]
    left, middle, right = np.array_split(b, 3, axis=1)
    middle *= x[2]
    b[0] = x[:3]
    return a, p, q, b, left, middle, right


def made_of_numbers(x: Any) -> Any:
    a, b = np.full((3, 2), x[0]), np.array([[x[0], 1.0], [2.0, x[1]]])
    a.reshape(6)[2:] += x[1:5]
    b.ravel()[1] = 4.0
    return a, b


def in_loops(x: Any) -> Any:
    a = np.zeros(60).reshape(20, 3)
    for i in range(20):
        r = a[i]
        r[1] = x[0] * i
        r += x[1]
        a.T[2, i] -= x[2]
    for row in a.reshape(30, 2):
        row *= x[1]
    for i in range(60):
        a.flat[i] += i * x[i % 6]
    return a


def in_a_branch(x: Any) -> Any:
    a = np.zeros(6).reshape(3, 2)
    if x[0] > 0:
        a.T[1] += x[1]
    else:
        a.ravel()[2] = x[2]
    return a


@pytest.mark.parametrize(
    "f", [reshaped, rows, copies, turned, flat, split, made_of_numbers, in_loops, in_a_branch], ids=lambda f: f.__name__
)
def test_what_is_written_through_views(f: Callable[..., Any]) -> None:
    def total(x: Any) -> Any:
        found = f(x)
        t = 0.0
        for part in found if isinstance(found, tuple) else (found,):
            t = t + np.sum(WEIGHTS[: part.size].reshape(part.shape) * part**2)
        return t

    for x in (X, -X):
        agrees(f, x)
        agrees_with_gradient(total, x)


def test_views_that_numpy_does_not_let_change() -> None:
    def broadcast(x: Any) -> Any:
        a = np.broadcast_to(x * 2, (2, 6))
        a[0, 0] = 1.0
        return a

    def diagonal(x: Any) -> Any:
        a = np.diagonal(np.outer(x, x))
        a[0] = 1.0
        return a

    def unclear(x: Any) -> Any:
        a = (np.outer(x, x) * 2.0).ravel()
        a[0] = 1.0
        return a

    for f in (broadcast, diagonal, unclear):
        with pytest.raises(dg.LiftError, match="this view of an array cannot be changed"):
            through_graph(f, X)


def converted(x: Any) -> Any:
    y = x * 2.0
    z = np.asarray(y, copy=False)
    z[0] = 5.0 * x[1]
    w = np.array(y)
    w[1] = 100.0
    v = np.asarray(y, float)
    v[2] = x[0]
    u = np.asarray(y, copy=True)
    u[1] = 100.0
    s = np.array(y, copy=None, ndmin=1)
    s[1] *= 3.0
    r = np.asanyarray(a=y, order="K")
    r[1] += x[0]
    q = np.array(y, copy=False)
    q[3] = x[3] * x[3]
    return np.sum(y * y)


@pytest.mark.skipif(not hasattr(np, "astype"), reason="before numpy 2, copy= is another argument")
def test_a_conversion_without_a_copy_is_the_array_itself() -> None:
    agrees_with_gradient(converted, X)
    for f in (
        lambda x: np.array(x, int, copy=False),
        lambda x: np.array(x, copy=False, ndmin=2),
        lambda x: np.asarray([x[0], 1.0], copy=False),
        lambda x: np.asarray(x, order="F", copy=False),
        lambda x: np.asarray(x[0], copy=False),
    ):
        with pytest.raises(dg.Error, match="copy=False"):
            through_graph(f, X)
