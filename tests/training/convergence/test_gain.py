"""Where it is said that a run has converged, little is left to gain. Costs 30 seconds, most of them scipy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize  # type: ignore[import-untyped]  # it has no types

import dynagrad as dg
from dynagrad import numpy as own
from dynagrad import training
from dynagrad.training.convergence.gain import left_to_gain
from dynagrad.training.convergence.newton import newtons_gain
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


@pytest.mark.filterwarnings("ignore:the parameters of")
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


HARD = [("cg", "mixture", 3), ("slsqp", "grammar", 18), ("bfgs", "mixture", 15), ("tnc", "grammar", 0)]
"""Where the last steps did not show how much was left: 182, 95, 7 and 18 tolerances."""
SEEDS = {"chain of 2": 0, "chain of 4": 0, "mixture": 1, "grammar": 1}


@pytest.mark.filterwarnings("ignore:training is at a saddle")
@pytest.mark.parametrize(
    ("method", "name", "seed"), [*((m, n, SEEDS[n]) for m in descent.SCIPY for n in MODELS), *HARD]
)
def test_from_where_a_gradient_method_has_converged_more_steps_gain_little(method: str, name: str, seed: int) -> None:
    made, data = MODELS[name]
    model = made(initial="random")
    fit = model.fit(data, method=method, seed=seed, iterations=1000, tolerance=TOLERANCE)
    assert fit.stopped in ("converged", "saddle")
    if fit.converged:
        more = model.fit(data, method="l-bfgs", warm=True, iterations=100, tolerance=TOLERANCE / 1000)
        assert more.objective - fit.objective <= 10 * TOLERANCE * max(1.0, abs(fit.objective))


# -- by the curvature all around ---------------------------------------------------------------------------------------

ALL = np.ones(8, bool)


def bowl(curvatures: Any) -> Any:
    """The Hessian of a quadratic with these curvatures, along directions that no parameter has alone."""
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0]
    return turn @ np.diag(curvatures) @ turn.T


@pytest.mark.parametrize("least", [1.0, 1e-3, 1e-6])
def test_of_a_quadratic_it_is_all_that_is_left(least: float) -> None:
    hessian = bowl(np.geomspace(least, 10.0, 8))
    x = np.random.default_rng(1).standard_normal(8)
    found = newtons_gain(lambda at: hessian @ at, x, hessian @ x, ALL)
    assert found == pytest.approx(x @ hessian @ x / 2, rel=1e-3)


def test_of_what_is_held_nothing_is_left() -> None:
    hessian = bowl(np.geomspace(0.1, 10.0, 8))
    x, free = np.random.default_rng(1).standard_normal(8), np.arange(8) > 2
    inner, slope = hessian[free][:, free], hessian @ x
    found = newtons_gain(lambda at: hessian @ at, x, slope, free)
    assert found == pytest.approx(slope[free] @ np.linalg.solve(inner, slope[free]) / 2, rel=1e-3)


def test_towards_a_maximum_at_infinity_it_is_half_of_what_is_left() -> None:
    x = np.arange(8.0)
    assert newtons_gain(lambda at: -np.exp(-at), x, -np.exp(-x), ALL) == pytest.approx(np.exp(-x).sum() / 2, rel=1e-3)


@pytest.mark.parametrize("curvature", [0.0, -1e-9, -1.0])
def test_where_nothing_curves_upwards_it_is_bounded_by_the_slope(curvature: float) -> None:
    hessian, slope = bowl(np.full(8, curvature)), np.full(8, 1e-3)
    found = newtons_gain(lambda at: slope + hessian @ (at - 1), np.ones(8), slope, ALL)
    assert found == pytest.approx(np.linalg.norm(slope) * np.sqrt(8))


def test_what_has_no_value_nearby_is_bounded_by_the_slope_too() -> None:
    slope = np.full(8, 1e-3)
    assert newtons_gain(lambda at: np.full(8, np.nan), np.ones(8), slope, ALL) == pytest.approx(8e-3)


def test_nothing_is_asked_beyond_bounds() -> None:
    hessian, x = bowl(np.geomspace(0.1, 10.0, 8)), np.full(8, 1e-6)
    asked: list[Any] = []

    def slope_at(at: Any) -> Any:
        asked.append(at)
        return hessian @ at

    def room(along: Any) -> float:
        return float(np.min(np.where(along < 0, x / np.maximum(-along, 1e-300), np.inf)))

    found = newtons_gain(slope_at, x, hessian @ x, ALL, room)
    assert found == pytest.approx(x @ hessian @ x / 2, rel=1e-3)
    assert asked and np.min(asked) >= 0


@pytest.mark.parametrize("method", ["tnc", "slsqp", "trust-constr", "l-bfgs"])
def test_a_run_with_bounds_asks_for_nothing_outside(method: str) -> None:
    def weights(rates: list[Any]) -> Any:
        assert all(rate >= 0 for rate in rates)
        return own.array([-((rate - best) ** 2) for rate, best in zip(rates, (0.7, 1e-5, -1.0), strict=True)])

    free = training.Differentiable({"w/1": [(0,), (1,), (2,)]}, weights, [0.5, 0.4, 0.3])
    model = dg.Model(dg.Program(":- semiring log. goal += w(0) * w(1) * w(2)."), {"w": free})
    fit = model.fit([{}], method=method, bounds=[(0, None)] * 3, iterations=200, tolerance=TOLERANCE)
    assert fit.converged or method == "trust-constr"  # which shortens its steps before bounds to nothing
    assert fit.objective == pytest.approx(-1.0, abs=10 * TOLERANCE)


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
