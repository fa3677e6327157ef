"""Where there are kinks no run says that it has converged off the maximum."""

from __future__ import annotations

import warnings

import pytest

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
