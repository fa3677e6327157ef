"""Our limited-memory BFGS: directions are those of the recursion, minima those that are known, and scipy's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize  # type: ignore[import-untyped]  # it has no types

import dynagrad as dg
from dynagrad import training
from dynagrad.training.methods import descent
from dynagrad.training.methods.limited_memory import FLAT, PAIRS, LastSteps, limited_memory
from dynagrad.training.parameters.rows import Doubles

Found = tuple[float, Doubles]


def found(objective: Callable[[Doubles], Found], start: Any) -> tuple[Doubles, list[Doubles], list[Found]]:
    """Where the method ends, the points that it told of, and all that was evaluated."""
    told: list[Doubles] = []
    seen: list[Found] = []

    def watched(x: Doubles) -> Found:
        seen.append(objective(x))
        return seen[-1]

    return limited_memory(watched, np.asarray(start, np.float64), told.append), told, seen


def bowl(hessian: Doubles, centre: Doubles) -> Callable[[Doubles], Found]:
    def objective(x: Doubles) -> Found:
        slope = hessian @ (x - centre)
        return float((x - centre) @ slope) / 2, slope

    return objective


def rosenbrock(x: Doubles) -> Found:
    return float(optimize.rosen(x)), np.asarray(optimize.rosen_der(x))


def logistic(rows: Doubles, labels: Doubles) -> Callable[[Doubles], Found]:
    def objective(x: Doubles) -> Found:
        scores = labels * (rows @ x)
        slope = -labels / (1 + np.exp(scores))
        return float(np.logaddexp(0, -scores).sum() + x @ x / 2), rows.T @ slope + x

    return objective


# -- directions --------------------------------------------------------------------------------------------------------


def recursion(pairs: list[tuple[Doubles, Doubles]], gradient: Doubles) -> Doubles:
    """Nocedal's two loops, pair by pair."""
    q, first = gradient.copy(), []
    for s, y in reversed(pairs):
        first.append(float(s @ q / (s @ y)))
        q = q - first[-1] * y
    s, y = pairs[-1]
    q = q * float(s @ y / (y @ y))
    for (s, y), a in zip(pairs, reversed(first), strict=True):
        q = q + s * (a - float(y @ q / (s @ y)))
    return -q


@pytest.mark.parametrize("count", [1, 2, PAIRS - 1, PAIRS, PAIRS + 1, 3 * PAIRS + 2])
@pytest.mark.parametrize("size", [1, 3, 40])
def test_directions_are_those_of_the_recursion_over_the_last_pairs(size: int, count: int) -> None:
    random = np.random.default_rng(count)
    root = random.standard_normal((size, size)) + 2 * np.eye(size)
    memory, pairs = LastSteps(size), []
    for _ in range(count):
        step = random.standard_normal(size)
        pairs.append((step, root @ (root.T @ step)))
        memory.add(*pairs[-1])
    gradient = random.standard_normal(size)
    assert memory.direction(gradient) == pytest.approx(recursion(pairs[-PAIRS:], gradient), rel=1e-6)


def test_steps_along_which_it_does_not_curve_upwards_are_not_remembered() -> None:
    memory, step, gradient = LastSteps(2), np.array([1.0, 0.0]), np.array([0.5, 2.0])
    for change in (-step, 0 * step, np.array([np.nan, 0.0]), np.array([0.0, 1.0])):
        memory.add(step, change)
        assert memory.direction(gradient).tolist() == [-0.5, -2.0]
    memory.add(step, 4 * step)
    assert memory.direction(gradient).tolist() == [-0.125, -0.5]
    memory.forget()
    assert memory.direction(gradient).tolist() == [-0.5, -2.0]


# -- minima ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e7])
def test_bowls(condition: float) -> None:
    random = np.random.default_rng(0)
    turn = np.linalg.qr(random.standard_normal((12, 12)))[0]
    hessian = turn @ np.diag(np.geomspace(1.0, condition, 12)) @ turn.T
    centre = random.standard_normal(12)
    x, told, seen = found(bowl(hessian, centre), np.zeros(12))
    assert x == pytest.approx(centre, abs=1e-6)
    values = [bowl(hessian, centre)(p)[0] for p in told]
    assert all(a > b for a, b in pairwise(values))  # each step is to a lower point
    assert len(told) < len(seen) <= 3 * len(told) + 45


@pytest.mark.parametrize("size", [2, 5, 20])
def test_a_bent_valley(size: int) -> None:
    start = np.tile([-1.2, 1.0], size)[:size]
    x, _, seen = found(rosenbrock, start)
    assert x == pytest.approx(np.ones(size), abs=1e-7) or optimize.rosen(x) < 4.0  # it has one more minimum
    theirs = optimize.minimize(rosenbrock, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 0.0})
    assert optimize.rosen(x) <= theirs.fun + 1e-12
    assert len(seen) <= 2 * theirs.nfev


def test_it_ends_where_scipys_does_after_about_as_many_evaluations() -> None:
    random = np.random.default_rng(1)
    rows, labels = random.standard_normal((200, 50)), np.sign(random.standard_normal(200))
    x, _, seen = found(logistic(rows, labels), np.zeros(50))
    theirs = optimize.minimize(
        logistic(rows, labels), np.zeros(50), jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 0.0}
    )
    assert x == pytest.approx(theirs.x, abs=1e-7)
    assert len(seen) <= theirs.nfev + 60  # it goes on to the last digits


def test_infinite_values_are_backed_off_from() -> None:
    def objective(x: Doubles) -> Found:
        if not x[0] > 0:
            return np.inf, np.full(1, np.nan)
        return float(x[0] - 100 * np.log(x[0])), 1 - 100 / x

    x, told, seen = found(objective, [1e-3])
    assert x[0] == pytest.approx(100, rel=1e-6)
    assert all(p[0] > 0 for p in told)
    assert not np.isnan([g for v, g in seen if np.isfinite(v)]).any()


def test_it_stops_at_once_where_there_is_no_slope() -> None:
    x, told, seen = found(lambda x: (1.0, np.full(3, FLAT)), np.ones(3))
    assert x.tolist() == [1, 1, 1] and not told and len(seen) == 1
    assert not len(found(lambda x: (1.0, x), np.zeros(0))[0])


def test_it_stops_where_a_gradient_is_wrong() -> None:
    x, told, seen = found(lambda x: (float(x @ x), -2 * x), np.ones(2))
    assert x.tolist() == [1, 1] and not told and len(seen) < 50


def test_the_start_is_left_as_it_is() -> None:
    start = np.zeros(2)
    x = limited_memory(bowl(np.eye(2), np.ones(2)), start, lambda x: None)
    assert start.tolist() == [0, 0] and x == pytest.approx(np.ones(2))


# -- in training -------------------------------------------------------------------------------------------------------


def fit(**options: Any) -> tuple[float, np.ndarray[Any, Any]]:
    text = ":- semiring log. goal += weight(S) * seen(S)."
    rows = {"weight/1": [(s,) for s in "abc"]}
    m = dg.Model(text, {"weight": training.LogLinear(rows)}, objective=training.Conditional(), prior=training.L2(0.1))
    every = [(s,) for s in "abc"]
    data = [training.Example({"seen/1": every}, {"seen/1": [(s,)]}) for s in "aab"]
    done = m.fit(data, **{"method": "l-bfgs", "iterations": 100, "tolerance": 1e-14, **options})
    return done.objective, m.weights["weight/1"].values


def test_scipys_method_is_for_bounds_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    ours: list[int] = []
    real = descent.limited_memory

    def counted(*given: Any) -> Doubles:
        ours.append(1)
        return real(*given)

    monkeypatch.setattr(descent, "limited_memory", counted)
    objective, weights = fit()
    assert len(ours) == 1
    for options in ({"options": {"maxcor": 5}}, {"bounds": [(None, None)] * 3}):
        other, found = fit(**options)
        assert len(ours) == 1
        assert other == pytest.approx(objective, abs=1e-10) and found == pytest.approx(weights, abs=1e-5)


def test_it_needs_no_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    assert fit()[0] < 0
    with pytest.raises(dg.Error, match=r"method='l-bfgs' needs scipy, which is not installed"):
        fit(bounds=[(None, None)] * 3)


def test_a_checkpoint_that_took_other_steps_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of before, when the method was scipy's."""

    def another(objective: Callable[[Doubles], Found], start: Doubles, told: Any, expects: Any) -> Doubles:
        for n in range(3):
            objective(start + 0.01 * n)
            told(start + 0.01 * n)
        return start

    with monkeypatch.context() as patched:
        patched.setattr(descent, "limited_memory", another)
        fit(iterations=2, checkpoint=tmp_path / "run")
    with pytest.raises(dg.Error, match="by another version of dynagrad or scipy, or on another machine"):
        fit(iterations=5, checkpoint=tmp_path / "run")
