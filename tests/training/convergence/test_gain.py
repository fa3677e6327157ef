"""Where it is said that a run has converged, little is left to gain. Costs 15 seconds, most of them scipy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize  # type: ignore[import-untyped]  # it has no types

from dynagrad import training
from dynagrad.training.convergence.gain import left_to_gain
from dynagrad.training.methods import descent
from training.choices import likelihood, problem
from training.hidden import MODELS

TOLERANCE = 1e-6


def test_what_is_left_is_a_geometric_series() -> None:
    gains = [0.5**k for k in range(8)]
    assert left_to_gain(np.cumsum(gains).tolist()) == pytest.approx(2.0 - sum(gains))
    assert left_to_gain([1.0]) == left_to_gain([1.0, 2.0]) == left_to_gain([0.0, 1.0, 3.0]) == np.inf
    assert left_to_gain([0.0, 1.0, 1.0]) == left_to_gain([5.0, 5.0]) == 0.0
    assert left_to_gain([0.0, 1.0, 0.5]) == np.inf


@pytest.mark.filterwarnings("ignore:no example uses a parameter")
@pytest.mark.parametrize(
    ("name", "method"),
    [*((name, "em") for name in MODELS), ("mixture", "incremental-em"), ("chain of 2", "viterbi-em")],
)
def test_from_where_em_has_converged_more_steps_gain_little(name: str, method: str) -> None:
    made, data = MODELS[name]
    some = 0
    for seed in range(2):
        model = made(initial="random")
        fit = model.fit(data, method=method, seed=seed, iterations=200, tolerance=TOLERANCE)
        if fit.converged:
            some += 1
            more = model.fit(
                data, method="viterbi-em" if method == "viterbi-em" else "em", warm=True, iterations=300, tolerance=0
            )
            assert more.objective - fit.objective <= 10 * TOLERANCE * max(1.0, abs(fit.objective)), seed
    assert some


# -- convex problems ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [*descent.SCIPY, "gis"])
def test_where_a_method_has_converged_the_maximum_is_near(method: str) -> None:
    tolerance = 1e-4 if method == "gis" else TOLERANCE  # its steps are many
    for seed in range(2 if method in ("l-bfgs", "bfgs") else 1):
        model, data, points = problem(seed, "log", training.L2(0.05), positive=method == "gis")
        fit = model.fit(data, method=method, iterations=3000, tolerance=tolerance)
        best = optimize.minimize(lambda w, of=points: 0.05 * w @ w - likelihood(of, w), np.zeros(4), tol=1e-10)
        assert fit.converged, seed
        assert -best.fun - fit.objective <= 10 * tolerance * max(1.0, abs(best.fun)), seed


@pytest.mark.parametrize("method", ["l-bfgs", "tnc"])
@pytest.mark.parametrize("strength", [0.3, 3.0])
def test_with_an_l1_prior_it_is(method: str, strength: float) -> None:
    for seed in range(2):
        model, data, points = problem(seed, "log", training.L1(strength))
        fit = model.fit(data, method=method, iterations=3000, tolerance=TOLERANCE)

        def negative(both: Any, of: Any = points) -> float:
            return strength * float(both.sum()) - likelihood(of, both[:4] - both[4:])

        options = {"ftol": 1e-12, "maxiter": 2000}
        best = optimize.minimize(negative, np.full(8, 0.1), bounds=[(0, None)] * 8, method="SLSQP", options=options)
        assert fit.converged, seed
        assert -best.fun - fit.objective <= 10 * TOLERANCE * max(1.0, abs(best.fun)), seed
