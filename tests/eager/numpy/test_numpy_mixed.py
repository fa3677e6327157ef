"""Random chains of numpy's functions on rows: both modes to second order against differences, and compiled.

The functions are smooth or piecewise, and dealt with a seed, four to a chain, so that each occurs twice. All chains run
eagerly, and half of them, where each function occurs once, compiled in one function; in all 15 s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

OPTIMISED = True  # see conftest.py

Row = Callable[[Any], Any]

ROWS: list[Row] = [
    lambda x: np.convolve(x, np.tanh(x[:2]), "same"),
    lambda x: np.correlate(x, [0.5, -0.2, 0.1], "full")[: x.shape[0] + 1],
    lambda x: np.gradient(x, np.cumsum(1.0 + x * x)),
    lambda x: np.interp(np.sin(x) * 2.0, np.cumsum(0.3 + x * x) - 1.5, np.cos(x)),
    lambda x: np.quantile(x, np.linspace(0.05, 0.95, 4) + 0.01 * np.tanh(x[0])),
    lambda x: np.append(np.median(x), x[1:] * 0.5),
    lambda x: np.cov(np.vander(np.tanh(x), 3), rowvar=False)[0] + x[:3],
    lambda x: np.ravel(np.linalg.pinv(np.stack([x[:3], np.ones(3) + x[1:4]]))),
    lambda x: np.linalg.lstsq(np.vander(np.arange(1.0, x.shape[0] + 1.0), 3), x, rcond=None)[0],
    lambda x: np.polyfit(np.arange(x.shape[0]) * 0.2, x, 2) * 0.1,
    lambda x: np.insert(x, [1, 2], x[:2] * x[1:3]),
    lambda x: np.block([x[:2], np.sum(x), x[2:]]),
    lambda x: np.maximum.accumulate(x) + 0.1 * x,
    lambda x: np.logaddexp.accumulate(x),
    lambda x: np.append(np.logaddexp.reduce(x), x[1:]),
    lambda x: np.hypot.outer(x[:2], x[1:3]).ravel(),
    lambda x: np.linspace(x[0], x[1:3], 3, axis=1).ravel(),
    lambda x: np.geomspace(np.exp(x[0]), np.exp(x[1]), 4),
    lambda x: np.ravel(np.lib.stride_tricks.sliding_window_view(x, 2) @ np.array([1.0, -0.5])),
    lambda x: np.piecewise(x, [x < 0.0], [np.sin, lambda t: t * t * 0.5]),
    lambda x: np.nanmean(np.where(x > 1.5, np.nan, x)) + x,
    lambda x: np.apply_along_axis(np.prod, 0, np.stack([x, np.cos(x)])),
    lambda x: np.histogram(np.arange(x.shape[0]) % 3, 3, weights=x)[0],
    lambda x: np.cross(x[:3], x[1:4]),
    lambda x: np.corrcoef(np.stack([x, x * x, np.sin(x)]))[0],
    lambda x: np.sum(np.multiply(*np.meshgrid(x[:3], x[1:4])), 0),
    lambda x: np.choose(np.arange(x.shape[0]) % 2, [x, x * x]),
]


LENGTH = 4  # functions in a chain


def dealt(seed: int) -> list[list[Row]]:
    """Chains in which each function occurs; some are drawn again to fill the last one."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(ROWS))
    order = np.append(order, rng.choice(order, -len(ROWS) % LENGTH))
    return [[ROWS[k] for k in part] for part in order.reshape(-1, LENGTH)]


def program(steps: list[Row]) -> Row:
    def run(x: Any) -> Any:
        for step in steps:
            if x.shape[0] < 5:
                x = np.concatenate([x, [0.3, -0.8, 0.5], x * 0.7])
            x = np.tanh(step(x[:9])) + 0.01 * step(x[:9])
        return np.sum(x * np.cos(np.arange(x.shape[0])))

    return run


COMPILED = [program(steps) for steps in dealt(0)]
PROGRAMS = [*COMPILED, *(program(steps) for steps in dealt(1))]


def seen(f: Row, x: Any, d: Any) -> Any:
    """Value, gradient, and Hessian times a vector in three ways."""
    slope = lambda x: dg.jvp(f, (x,), (d,))[1]  # noqa: E731
    gradient, product = dg.jvp(dg.grad(f), (x,), (d,))
    return f(x), gradient, product, dg.grad(slope)(x), dg.jvp(slope, (x,), (d,))[1]


def point(k: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1000 + k)
    return rng.normal(size=7), rng.normal(size=7)


@pytest.mark.parametrize("k", range(len(PROGRAMS)))
def test_random_programs(k: int) -> None:
    f, (x, d) = PROGRAMS[k], point(k)
    value, gradient, product, other, twice = seen(f, x, d)
    assert value == pytest.approx(f(x), rel=1e-12)
    dg.check_derivatives(lambda t: f(x + t * d), 0.0, order=1, tolerance=1e-4)
    assert dg.jvp(f, (x,), (d,))[1] == pytest.approx(gradient @ d, rel=1e-9, abs=1e-9)
    scale = max(1.0, abs(product).max())
    np.testing.assert_allclose(product, other, rtol=1e-8, atol=1e-9 * scale)
    assert twice == pytest.approx(product @ d, rel=1e-8, abs=1e-9 * scale)
    step = 1e-5
    slope = (dg.grad(f)(x + step * d) - dg.grad(f)(x - step * d)) / (2 * step)
    np.testing.assert_allclose(product, slope, rtol=1e-3, atol=1e-4 * scale)


def test_random_programs_compiled() -> None:
    def every(points: Any) -> Any:
        return [seen(f, x, d) for f, (x, d) in zip(COMPILED, points, strict=True)]

    points = [point(k) for k in range(len(COMPILED))]
    for found, wanted in zip(dg.compile(every)(points), every(points), strict=True):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-8 * max(1.0, np.abs(b).max()))
