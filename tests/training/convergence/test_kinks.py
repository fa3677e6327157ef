"""Where there are kinks no run says that it has converged off the maximum."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import optimize  # type: ignore[import-untyped]  # it has no types

import dynagrad as dg
from dynagrad import numpy as own
from dynagrad import training
from dynagrad.training.methods import descent
from training.choices import largest, problem


@pytest.mark.parametrize("kind", ["margin", "perceptron"])
@pytest.mark.parametrize("method", [m for m in descent.SCIPY if m not in descent.SECOND])
def test_where_there_are_kinks_it_is_not_said_off_the_maximum(kind: str, method: str) -> None:
    for seed in range(3 if method == "l-bfgs" else 1):
        model, data, points = problem(seed, kind, training.L2(0.1))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            fit = model.fit(data, method=method, iterations=40)
        if fit.converged:
            assert largest(points, 0.1) - fit.objective <= 1e-3, seed
        else:
            assert fit.stopped in ("iterations", "no better step")
            kinks = any("the objective has kinks, where derivations of equal weight" in str(w.message) for w in said)
            assert kinks == (fit.stopped == "no better step")


def absolute(kind: str, x: Any, y: Any) -> dg.Model:
    """Minus the sum of the distances of lines from points: by a function of weights, a module, or one of items."""
    count, width = x.shape
    rows: Any = {"w/1": [(i,) for i in range(count)]}
    if kind == "items":
        places: Any = {"v/1": [(k,) for k in range(width)]}
        free = training.Differentiable(places, lambda p: p, np.zeros(width))
        distance = training.OfItems(
            [f"at({k})" for k in range(width)],
            lambda v, e: -abs(sum(float(a) * v[k] for k, a in enumerate(x[e.number])) - float(y[e.number])),
        )
        return dg.Model(":- semiring log. at(K) += v(K) * own(K). goal += at(_).", {"v": free}, objective=distance)

    def distances(p: Any) -> Any:
        lines = [sum(float(a) * p[k] for k, a in enumerate(row)) for row in x]
        apart = [z - float(b) for z, b in zip(lines, y, strict=True)]
        return own.stack([-own.abs(z) if kind == "abs" else own.minimum(z, -z) for z in apart])

    weights = training.Differentiable(rows, distances, np.zeros(width))
    return dg.Model(":- semiring log. goal += w(I) * own(I).", {"w": weights})


@pytest.mark.parametrize("kind", ["abs", "minimum", "items"])
@pytest.mark.parametrize("method", ["l-bfgs", "bfgs", "cg"])
def test_functions_of_users_with_kinks_are_told_of(kind: str, method: str) -> None:
    """The least sum is that of a linear program. Where a run says that it has converged, it is there."""
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(6, 3)), draw.normal(size=6)
    signs = np.vstack([np.hstack([s * x, -np.eye(6)]) for s in (1, -1)])
    least = optimize.linprog(
        np.r_[np.zeros(3), np.ones(6)], signs, np.r_[y, -y], bounds=[(None, None)] * 9, method="highs"
    ).fun
    data: list[dict[str, Any]] = [{"own/1": [(i,)] if kind != "items" else [(k,) for k in range(3)]} for i in range(6)]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fit = absolute(kind, x, y).fit(data, method=method, iterations=100)
    if fit.converged:
        assert -fit.objective - least <= 1e-5
    else:
        assert fit.stopped == "no better step"
        assert sum("kinks, and one where it ended, across which its slope" in str(w.message) for w in said) == 1


@pytest.mark.parametrize("method", ["l-bfgs", "bfgs", "cg", "tnc"])
def test_a_smooth_function_has_none(method: str) -> None:
    """However curved it is."""
    free = training.Differentiable({"w/1": [(0,)]}, lambda p: own.stack([-1e6 * (p - 1.0) ** 4 - 1e3 * p * p]), 3.0)
    model = dg.Model(":- semiring log. goal += w(I) * own(I).", {"w": free})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit([{"own/1": [(0,)]}], method=method, iterations=200, tolerance=0.0)
    assert not any("kink" in str(w.message) for w in said)
