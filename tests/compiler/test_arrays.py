"""Arrays in compiled functions: numpy's functions, indexing, views, and writes in place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import agrees, agrees_with_gradient

A = np.linspace(-1, 1, 7)
M = np.array([[2.0, 0.5, 0.1], [0.3, 1.5, 0.2], [0.0, 0.4, 3.0]])

OF_VECTORS: dict[str, Callable[[Any], Any]] = {
    "where": lambda a: np.where(a > 0, a, 0.0),
    "maximum": lambda a: np.maximum(a, 0),
    "clip": lambda a: np.clip(a, -0.5, 0.5),
    "concatenate": lambda a: np.concatenate([a, a * 2]),
    "stack": lambda a: np.stack([a, a * 2], axis=1),
    "vstack": lambda a: np.vstack([a, a * 2]),
    "array": lambda a: np.array([[a[0], 1], [2, a[1]]]),
    "asarray of a list": lambda a: np.asarray([a[0], 2.0]) * [1.0, 2.0],
    "outer": lambda a: np.outer(a, a),
    "dot": lambda a: np.dot(a, a) + a @ a,
    "norm": lambda a: np.linalg.norm(a),
    "mean and std": lambda a: (np.mean(a), np.std(a), a.var(), a.mean()),
    "any and all": lambda a: (np.any(a > 0.9), np.all(a > -2), (a > 0).any()),
    "isnan": lambda a: (np.isnan(a), np.isinf(a), np.isfinite(a)),
    "round": lambda a: (np.round(a), np.round(a, 1), np.floor(a * 3), np.sign(a)),
    "like": lambda a: (np.zeros_like(a), np.ones_like(a), np.full_like(a, 2.0), np.full(3, a[0])),
    "cumsum": lambda a: (np.cumsum(a), a.cumsum(), np.prod(a), np.diff(a)),
    "elementwise": lambda a: (np.tanh(a), np.exp(a), abs(a), -a, a**3, (a + 2) ** -1, 2.0**a, a // 0.3, a % 0.3),
    "einsum": lambda a: np.einsum("i,j->ij", a, a),
    "sort": lambda a: (np.sort(a), np.argsort(-a), np.argmax(a), a.argmin(), a.max(), a.min()),
    "linspace": lambda a: np.linspace(a[0], a[1], 4),
    "roll": lambda a: np.roll(a, 2),
    "reduce": lambda a: (np.add.reduce(a), np.maximum.reduce(a)),
    "broadcast": lambda a: a[:, None] * np.ones(3) + np.eye(7, 3),
    "shapes": lambda a: (a.shape, a.ndim, a.size, len(a), np.shape(a), a.dtype == float),
    "astype": lambda a: (a.astype(float), (a * 3).astype(int), (a > 0).astype(float)),
    "sum of truth values": lambda a: np.sum(a > 0),
    "python": lambda a: (sum(a), max(a), min(a), list(a)[2], a.tolist()[3], a[0].item()),
    "select": lambda a: np.select([a < -0.5, a > 0.5], [a * 2, a * 3], default=0.0),
    "take": lambda a: (np.take(a, [0, 2]), a.take(1), np.take(a, np.argmax(a))),
    "nan_to_num": lambda a: np.nan_to_num(np.log(a)),
    "logaddexp": lambda a: np.logaddexp(a, 0.5),
    "special": lambda a: dg.special.gammaln(a + 2.0),
}
OF_MATRICES: dict[str, Callable[[Any], Any]] = {
    "axes": lambda m: (m.sum(axis=0), m.sum(1, keepdims=True), m.max(axis=1), np.mean(m, 0), m.prod(axis=1)),
    "transposed": lambda m: (m.T @ m, np.transpose(m), m.swapaxes(0, 1), m.transpose(1, 0)),
    "sort of all": lambda m: (np.sort(m, axis=None), m.argsort(axis=None), np.argsort(m, None)[2] * m),
    "shapes": lambda m: (m.reshape(-1), m.reshape(1, 9), m.ravel(), m.flatten(), m[None].squeeze(), m.shape),
    "indices": lambda m: (m[0], m[-1, 1:], m[:, 0], m[::2], m[..., 1], m[1, 2], m[:, [0, 0]], m[[0, 1], [1, 2]]),
    "masks that are known": lambda m: (m[np.array([True, False, True])], m[np.eye(3, dtype=bool)]),
    "linear algebra": lambda m: (np.linalg.solve(m, m[0]), np.linalg.inv(m), np.linalg.det(m)),
    "tril": lambda m: (np.tril(m), np.triu(m, 1), np.diag(m), np.trace(m)),
    "argmax": lambda m: (np.argmax(m, axis=1), np.argmin(m), m[0, np.argmax(m[0])]),
    "unpacked": lambda m: [x * 2 + y for x, y, z in m.T] + list(m[0]),
    "compress": lambda m: (m.compress([True, False, True]), m.compress([False, True, True], 1)),
    "flip": lambda m: (np.flip(m, 0), m[::-1, ::-1], np.rot90(m)),
}


@pytest.mark.parametrize("name", OF_VECTORS)
def test_functions_of_vectors(name: str) -> None:
    agrees(OF_VECTORS[name], A)


@pytest.mark.parametrize("name", OF_MATRICES)
def test_functions_of_matrices(name: str) -> None:
    agrees(OF_MATRICES[name], M)


def test_functions_of_single_numbers() -> None:
    def f(x: Any) -> Any:
        a = math.exp(x), math.floor(x), int(x), round(x), math.ceil(x), x // 1, x % 1.5, math.trunc(x)
        b = math.atan2(x, 2), math.log(abs(x)), math.log(abs(x), 2), math.hypot(x, 3), math.pi * x, float(x), x**2
        return a, b, math.isnan(x), pow(x, 2), abs(x), max(x, 1), min(x, 0.5), round(x, 1), math.copysign(1.0, x)

    agrees(f, 3.7)
    agrees(f, -2.2)


@pytest.mark.parametrize("x", [0.3, 2.5, 4.0])
def test_special_functions_of_math(x: float) -> None:
    agrees_with_gradient(lambda x: math.gamma(x) + math.lgamma(x) * math.erf(x) + math.erfc(x), x)
    agrees_with_gradient(lambda x: math.dist((x, 1.0), [2.0 * x, x]), x)


@pytest.mark.parametrize("y", [1.0, 1.0 + 1e-10, 1.1, 0.0, 1e-4, np.inf, -np.inf, np.nan, 1e308, -1e308])
def test_numbers_that_are_close(y: float) -> None:
    def f(x: Any, y: Any) -> Any:
        near = math.isclose(x, y), math.isclose(x, y, rel_tol=0.2), math.isclose(x, y, abs_tol=1e-3)
        return near, math.isclose(x, 1.0), np.isclose(x, y), np.allclose(x, y), np.allclose([x, y], 1.0, atol=0.2)

    for x in (1.0, 0.0, np.inf, np.nan, 1e308):
        agrees(f, x, y)


def test_arrays_that_are_close_or_equal() -> None:
    a, b = np.array([0.1, 0.5, 0.5, 0.7, 1.3]), np.array([0.1, 0.5 + 1e-9, 0.501, 0.7, 1.3])
    c, d = np.array([1.0, np.inf, -np.inf, np.nan, 2.0]), np.array([1.0, np.inf, np.inf, np.nan, np.nan])

    def f(x: Any, y: Any) -> Any:
        near = np.isclose(x, y), np.allclose(x, y), np.isclose(x, y, equal_nan=True), np.allclose(x, y, 0, 0.1)
        same = np.array_equal(x, y), np.array_equal(x, y, equal_nan=True), np.array_equal(x, y[1:])
        counts = np.count_nonzero(x > 0.5), np.count_nonzero(x), np.count_nonzero(x[:, None] * y > 0.3, axis=1)
        among = np.isin(x, y), np.isin(x, [0.1, 2.0], invert=True), np.isin(x[0], y)
        return near, same, counts, among

    for x, y in ((a, b), (a, a), (c, d), (c, c)):
        agrees(f, x, y)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 17])
def test_searching_in_sorted_arrays(n: int) -> None:
    rng = np.random.default_rng(n)
    ordered, x = np.sort(rng.integers(0, 8, n) / 8.0), np.array([*np.arange(10) / 8.0, np.inf, -np.inf, np.nan])

    def f(a: Any, x: Any) -> Any:
        found = np.searchsorted(a, x), np.searchsorted(a, x, side="right"), a.searchsorted(x[2])
        return found, np.searchsorted(a, x.reshape(13, 1)), np.searchsorted(a[::-1], x, sorter=np.arange(n)[::-1])

    agrees(f, ordered, x)
    agrees(f, np.append(ordered, [np.nan, np.nan])[2 if n > 2 else 0 :][:n], x)


def test_interpolation_with_searchsorted() -> None:
    def f(x: Any, xs: Any, ys: Any) -> Any:
        i = np.searchsorted(xs, x) - 1
        t = (x - xs[i]) / (xs[i + 1] - xs[i])
        return np.sum(ys[i] * (1 - t) + ys[i + 1] * t)

    xs = np.linspace(0.0, 1.0, 40)
    agrees_with_gradient(f, np.array([0.11, 0.52, 0.93]), xs, xs**2)
    agrees_with_gradient(lambda y, x: f(x, xs, y), xs**2, np.array([0.11, 0.52, 0.93]))


def test_kinds_of_numbers_of_numpy() -> None:
    def f(a: Any) -> Any:
        small = np.finfo(float).eps, np.finfo(a.dtype).tiny, np.iinfo(int).max, np.iinfo(np.int32).min
        made = np.float64(0.0), np.int64(3), np.bool_(True), np.float64(2) * a, np.fix(a * 3)
        return small, made, np.float64(a[0]), np.int64(a[-1] * 10), np.bool_(a[0] > 1), np.float64(a), np.int64(a * 5)

    agrees(f, A)


def test_changes_in_place_by_methods_and_by_out() -> None:
    def f(a: Any) -> Any:
        b = a * 1.0
        c = b
        b.sort()
        m = np.outer(a, a)
        m.sort(axis=0)
        np.multiply(m, 2.0, out=m)
        np.sin(a, out=m[1])
        np.add(a, a[::-1], out=c)
        np.fill_diagonal(m, a[1])
        np.fill_diagonal(m[:3, :3], [1.0, a[0], 2.0])
        np.copyto(m[4], a)
        return b, c, m, np.add.outer(a, a[:2]), np.multiply.outer(m[:2], a)

    agrees(f, A)
    agrees_with_gradient(lambda a: sum(np.sum(np.cos(part)) for part in f(a)), A)


def test_indices_of_single_numbers() -> None:
    def f(a: Any) -> Any:
        return a[()], a[...] * 1.0, a[None], a[None, None] + 1.0

    agrees(f, np.array(1.5))


def test_places_that_only_the_run_knows() -> None:
    def f(a: Any, places: Any) -> Any:
        m = np.zeros((3, 5))
        for k in range(3):
            m[k] = a * k
            m[k, places[k]] += 100.0
        return m, m[places, places], m[:, places], a[places], m[int(a[1])], m[places[0], ::2]

    agrees(f, np.arange(5.0), np.array([2, 1, 2]))
    agrees_with_gradient(lambda a, i: (f(a, i)[0] ** 2).sum() + f(a, i)[2].sum(), np.arange(5.0), np.array([2, 1, 2]))


def test_names_of_one_array_see_each_other() -> None:
    def f(a: Any) -> Any:
        b = a.copy()
        c = b
        b[0] = 10.0
        view = b[1:]
        view[0] = 20.0
        view += 1
        b *= 2
        turned = b.reshape(1, -1).T
        b[-1] = a[0]
        return c, view, turned, a, c is b, view.copy()

    agrees(f, np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("n", [4, 20])
def test_views_in_loops(n: int) -> None:
    def f(a: Any) -> Any:
        m = np.zeros((n, 3))
        for i in range(n):
            row = m[i]
            row[1] = a[i] * i
            row += 1.0
        return m.sum() + (m[:, 1] ** 2).sum()

    agrees_with_gradient(f, np.linspace(0, 1, n))


def test_functions_may_change_what_they_are_given() -> None:
    def f(a: Any) -> Any:
        def pivot(m: Any, k: Any) -> None:
            m[k] /= m[k, k]
            np.add.at(m, (np.array([0, 0]), np.array([1, 1])), 1.0)

        m = a.copy()
        for k in range(3):
            pivot(m, k)
        return m

    agrees(f, M)


def test_adding_at_places_that_occur_twice_is_what_numpy_makes_of_it() -> None:
    def f(a: Any) -> Any:
        b = a * 1.0
        b[np.array([0, 0, 1])] += a[:3]
        return b

    agrees(f, A)


def test_masks_are_written_through() -> None:
    def f(a: Any) -> Any:
        b = a * 1.0
        b[a > 0] = 0.5
        b[np.abs(a) < 0.1] *= 3.0
        return b

    agrees(f, A)


def test_truth_values_and_whole_numbers_in_arrays() -> None:
    def f(a: Any, n: Any) -> Any:
        counts = np.zeros(3, dtype=int)
        for i in range(20):
            counts[n[i % 4] % 3] += 1
        return counts, n + 1, n * 2.0, n // 2, (n > 1) & (n < 3), a[n]

    agrees(f, A, np.array([1, 2, 3, 5]))


def test_one_branch_changes_an_array_and_the_other_makes_a_new_one() -> None:
    def f(a: Any, x: Any) -> Any:
        b = a * 1.0
        if x > 0:
            b[2] -= x
        else:
            b = b.copy() * x
        for i in range(20):
            if i > x:
                b = b * 0.5
            else:
                b = b + x
        return b

    agrees(f, A, 3.0)
    agrees(f, A, -3.0)
