"""Functions that numpy computes in float64 only, against differences of their definitions in 50 digits: values, first
derivatives in both modes and second ones in all four mixes, eager and compiled.

A row is a function, its definition on arrays of 50 digits (`fifty_digits.py`), and points without ties or kinks. Costs
one compiled program, ten seconds.
"""

from __future__ import annotations

import numpy as np
import pytest

import dynagrad as dg
from eager.numpy.test_fifty_digits import TOLERANCE, agree, near
from fifty_digits import Differences, exact

chance = np.random.default_rng(17)
A, B, C = chance.normal(size=(3, 4)), chance.normal(size=(4, 3)), chance.normal(size=(3, 3))
T = chance.normal(size=(2, 3, 4))
u, v, w, row = (chance.normal(size=n) for n in (4, 3, 2, 9))
knots, heights = np.array([0.0, 1.0, 2.5, 4.0, 4.5]), np.array([1.0, -1.0, 2.0, 0.5, 3.0])
at = np.array([0.3, -0.2, 2.0, 4.2, 7.0])
P = abs(A) + 0.5


def same(f):
    return f, f


def on_lines(x, p, f):
    """Interpolation, where the points and the knots lie as `at` and `knots` do."""
    found = []
    for i, place in enumerate(at):
        k = int(np.searchsorted(knots, place)) - 1
        inside = 0 <= k < len(knots) - 1
        slope = (f[k + 1] - f[k]) / (p[k + 1] - p[k]) if inside else None
        found.append(f[k] + slope * (x[i] - p[k]) if inside else f[0] if k < 0 else f[-1])
    return np.stack(found)


def differences(x):
    """`np.gradient` of a row, with lines at the ends."""
    return np.concatenate([x[1:2] - x[:1], (x[2:] - x[:-2]) / 2, x[-1:] - x[-2:-1]])


def uneven(x, p):
    """The same for points that are not evenly spaced: the slope of the parabola through three of them."""
    s, h = (x[1:] - x[:-1]) / (p[1:] - p[:-1]), p[1:] - p[:-1]
    middle = (s[:-1] * h[1:] + s[1:] * h[:-1]) / (h[1:] + h[:-1])
    return np.concatenate([s[:1], middle, s[-1:]])


def covariance(x, y=None, weights=None):
    rows = x if y is None else np.concatenate([x, y])
    weights = exact(np.ones(rows.shape[1])) if weights is None else weights
    total = np.sum(weights)
    apart = rows - (np.sum(rows * weights, 1) / total)[:, None]
    return (apart * weights) @ apart.T / (total - np.sum(weights * weights) / total)


def correlation(x):
    c = covariance(x)
    size = np.sqrt(np.stack([c[i, i] for i in range(len(c))]))
    return c / (size[:, None] * size)


def fit(x, y):
    return np.linalg.inv(x.T @ x) @ (x.T @ y)


def thirds():
    return exact(np.arange(4.0)) / 3


def powers(x, n):
    return np.stack([x ** (n - k) if k < n else 0 * x + 1 for k in range(n + 1)], 1)


def quantile(x, q, point=row):
    """Between two of the elements of a row that lies as another one does."""
    order = np.argsort(point)
    place = q * (len(point) - 1)
    k = int(float(np.asarray(place).astype(float)))
    low, high = x[order[k]], x[order[k + 1]]
    return low + (high - low) * (place - k)


def of_halves(x):
    return np.stack([t * t if s < 0.0 else np.sin(t) for t, s in zip(x, row, strict=True)])


ROWS = {
    "interp": (np.interp, on_lines, at, knots, heights),
    "interp of heights": (
        lambda f: np.interp(at, knots, f) ** 2,
        lambda f: on_lines(exact(at), exact(knots), f) ** 2,
        heights,
    ),
    "convolve": (*same(np.convolve), u, v),
    "convolve, same": (*same(lambda x, y: np.convolve(x, y, "same")), row, u),
    "correlate": (*same(np.correlate), row, v),
    "correlate, full": (*same(lambda x, y: np.correlate(x, y, "full")), v, u),
    "gradient": (lambda x: np.gradient(x) ** 2, lambda x: differences(x) ** 2, row),
    "gradient, spaced": (lambda x, h: np.gradient(x, h) ** 2, lambda x, h: (differences(x) / h) ** 2, row, 0.4),
    "gradient, uneven": (lambda x, p: np.gradient(x, p) ** 2, lambda x, p: uneven(x, p) ** 2, heights, knots),
    "meshgrid": (lambda x, y: np.multiply(*np.meshgrid(x, y)), lambda x, y: y[:, None] * x, u, v),
    "linspace": (*same(lambda x, y: np.linspace(x, y, 3, axis=1) ** 2), A, u),
    "logspace": (
        lambda x, b: np.logspace(x[0], x[1], 4, base=b),
        lambda x, b: b ** (x[0] + (x[1] - x[0]) * thirds()),
        u,
        2.5,
    ),
    "geomspace": (
        lambda x: np.geomspace(x[0], x[1], 4),
        lambda x: x[0] * (x[1] / x[0]) ** thirds(),
        abs(u) + 0.5,
    ),
    "vander": (lambda x: np.vander(x, 4) ** 2, lambda x: powers(x, 3) ** 2, u),
    "median": (lambda x: np.median(x) ** 2, lambda x: x[np.argsort(row)[4]] ** 2, row),
    "median of rows": (
        lambda x: np.median(x, 1) ** 2,
        lambda x: np.stack([quantile(x[i], exact(0.5), A[i]) for i in range(3)]) ** 2,
        A,
    ),
    "percentile": (lambda x, q: np.percentile(x, q) ** 2, lambda x, q: quantile(x, q / 100) ** 2, row, 33.0),
    "quantile": (lambda x, q: np.quantile(x, q) * x, lambda x, q: quantile(x, q) * x, row, 0.61),
    "cov": (np.cov, covariance, A),
    "cov of two": (np.cov, covariance, A, C @ A),
    "cov, weighted": (lambda x, a: np.cov(x, aweights=a), lambda x, a: covariance(x, weights=a), A, abs(u) + 0.2),
    "corrcoef": (np.corrcoef, correlation, A),
    "pinv, tall": (np.linalg.pinv, lambda x: fit(x, np.eye(4, dtype=int)), B),
    "pinv, wide": (np.linalg.pinv, lambda x: fit(x.T, np.eye(4, dtype=int)).T, A),
    "lstsq": (lambda x, y: np.linalg.lstsq(x, y, rcond=None)[0], fit, B, u),
    "lstsq, wide": (
        lambda x, y: np.linalg.lstsq(x, y, rcond=None)[0],
        lambda x, y: x.T @ (np.linalg.inv(x @ x.T) @ y),
        A,
        C,
    ),
    "polyfit": (lambda x, y: np.polyfit(x, y, 2), lambda x, y: fit(powers(x, 2), y), knots, heights),
    "cross": (*same(np.cross), C, C.T + 1.0),
    "cross, axes": (*same(lambda x, y: np.cross(x, y, axisa=0, axisb=1, axisc=0)), B[:3], A[:, :3].copy().T),
    "piecewise": (lambda x: np.piecewise(x, [x < 0], [lambda t: t * t, np.sin]), of_halves, row),
    "histogram, weighted": (
        lambda x: np.histogram(np.array([0.1, 2.2, 2.6, 3.9]), [0, 1, 2.5, 4], weights=x)[0] ** 2,
        lambda x: np.stack([x[0], x[1], x[2] + x[3]]) ** 2,
        u,
    ),
    "logaddexp.reduce": (lambda x: np.logaddexp.reduce(x, axis=1), lambda x: np.log(np.sum(np.exp(x), 1)), A),
    "hypot.accumulate": (lambda x: np.hypot.accumulate(x, axis=1), lambda x: np.sqrt(np.cumsum(x * x, 1)), P),
    "divide.reduce": (lambda x: np.divide.reduce(x, axis=1), lambda x: x[:, 0] / x[:, 1] / x[:, 2] / x[:, 3], P),
    "insert": (*same(lambda x, y: np.insert(x, [2, 0, -1], y, axis=1) ** 2), A, v),
    "block": (*same(lambda x: np.block([x, 2.0, x * x])), u),
    "choose": (*same(lambda x, y: np.choose(np.array([0, 1, 1, 0]), [x, y]) ** 2), u, u + 1),
    "rollaxis": (*same(lambda x: np.rollaxis(x, 2) ** 2), T),
    "splits": (*same(lambda x: np.concatenate([k * np.ravel(p) ** 2 for k, p in enumerate(np.hsplit(x, 2))])), A),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_against_fifty_digits(name):
    f, meaning, *points = ROWS[name]
    agree(f, meaning, points, order=2, tolerance=1e-11)


def directions(points):
    """Two directions at the points, of eighths."""
    random = np.random.default_rng(11)

    def draw(x):
        found = random.integers(-16, 17, np.shape(x)) / 8.0
        return found if np.ndim(x) else float(found)

    return [tuple(map(draw, points)) for _ in range(2)]


def derivatives(f, u, v, w):
    """The value, and derivatives along directions u and v, by each way to take them; w weights the results."""
    g = lambda *xs: np.ravel(f(*xs))  # noqa: E731
    forward = lambda *xs: dg.jvp(g, xs, u)[1]  # noqa: E731
    backward = lambda *xs: dg.vjp(g, *xs)[1](w)  # noqa: E731
    along = lambda parts, d: sum([np.sum(p * q) for p, q in zip(parts, d, strict=True)])  # noqa: E731
    return lambda *xs: (
        g(*xs),
        forward(*xs),
        along(backward(*xs), u),
        dg.jvp(forward, xs, v)[1],
        along(dg.jvp(backward, xs, v)[1], u),
        along(dg.vjp(forward, *xs)[1](w), v),
        along(dg.vjp(backward, *xs)[1](u), v),
    )


def test_compiled_as_well():
    runs, seen, points = [], [], []
    for f, meaning, *xs in ROWS.values():
        u, v = directions(xs)
        differences = Differences(meaning, xs, u, v)
        w = np.random.default_rng(5).integers(-16, 17, differences.value.shape) / 8.0
        runs.append(derivatives(f, u, v, w))
        seen.append((differences, w))
        points.append(tuple(xs))
    found = dg.compile(lambda points: [run(*xs) for run, xs in zip(runs, points, strict=True)])(points)
    for name, results, (differences, w) in zip(ROWS, found, seen, strict=True):
        first, mixed = differences.first(), differences.mixed()
        expected = (differences.value, first, first @ w, mixed, *[mixed @ w] * 3)
        for place, (got, right) in enumerate(zip(results, expected, strict=True)):
            near(f"{name}, {place}", got, right, TOLERANCE * 100)
