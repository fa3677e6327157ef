"""Iterative scaling rises at each step to the optimum that L-BFGS reaches, and is the textbook's. Costs 3 seconds."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import training
from training.tagging import ROWS as TAGGER_ROWS
from training.tagging import SENTENCES, TAGGER, tagged

RANDOM = np.random.default_rng(8)
CLASSES, CONTEXTS, FEATURES = 3, 4, 3
X = RANDOM.integers(0, 3, (CONTEXTS, CLASSES, FEATURES)).astype(float)
X[0, 0] = 0.0  # a row without features
Y = Counter((int(RANDOM.integers(CONTEXTS)), int(RANDOM.integers(CLASSES))) for _ in range(40))
ROWS = {"class/2": [(n, c) for n in range(CONTEXTS) for c in range(CLASSES)]}
TEXT = ":- semiring log. goal += class(N,C) * seen(N,C)."
DATA = [training.Example({"seen/2": [row]}, weight=float(count)) for row, count in Y.items()]


def classifier(prior: Any = None, text: str = TEXT) -> dg.Model:
    features = training.LogLinear(
        ROWS, lambda n, c: {f"f{j}": X[n, c, j] for j in range(FEATURES) if X[n, c, j]}, given=0
    )
    return dg.Model(text, {"w": features}, prior=prior)


def by_hand(method: str, steps: int) -> np.ndarray:
    """Darroch and Ratcliff's update, and Della Pietra's with its equations solved by bisection."""
    theta = np.zeros(FEATURES)
    observed = sum(count * X[row] for row, count in Y.items())
    for _ in range(steps):
        p = np.exp(X @ theta)
        p /= p.sum(1, keepdims=True)
        if method == "gis":
            expected = sum(count * p[n] @ X[n] for (n, _), count in Y.items())
            theta = theta + np.log(observed / expected) / X.sum(2).max()
            continue
        for_all = []
        for j in range(FEATURES):
            low, high = -50.0, 50.0
            for _ in range(60):
                middle = (low + high) / 2
                held = sum(w * p[n] @ (X[n][:, j] * np.exp(middle * X[n].sum(1))) for (n, _), w in Y.items())
                low, high = (middle, high) if held < observed[j] else (low, middle)
            for_all.append(low)
        theta = theta + np.array(for_all)
    return theta


@pytest.mark.parametrize("method", ["gis", "iis"])
def test_steps_are_those_of_the_textbook(method: str) -> None:
    m = classifier()
    m.fit(DATA, method=method, iterations=5, tolerance=0.0)
    named = dict(zip(m._spec.parametrisations["w"].names(), m.parameters["w"], strict=True))
    assert [named[f"f{j}"] for j in range(FEATURES)] == pytest.approx(by_hand(method, 5), abs=1e-10)


@pytest.mark.parametrize("method", ["gis", "iis"])
@pytest.mark.parametrize("prior", [None, training.L2(0.3), training.Gaussian(2.0, mean=0.5)])
def test_each_step_rises_to_the_optimum_of_l_bfgs(method: str, prior: Any) -> None:
    best, m = classifier(prior), classifier(prior)
    top = best.fit(DATA, method="l-bfgs", tolerance=1e-15, iterations=300).objective
    fit = m.fit(DATA, method=method, tolerance=1e-13, iterations=1000)
    values = [r.objective for r in fit.history]
    assert all(b >= a - 1e-12 * abs(a) for a, b in pairwise(values))
    assert values[-1] == pytest.approx(top, rel=1e-9)


def test_improved_scaling_needs_fewer_steps() -> None:
    steps = {k: len(classifier().fit(DATA, method=k, tolerance=1e-9, iterations=3000).history) for k in ("gis", "iis")}
    assert steps["iis"] < steps["gis"]


def test_what_is_hidden_is_expected() -> None:
    """A step of generalised EM: the likelihood of classes that were seen in part rises."""
    data = [
        training.Example({"seen/2": [(n, c), (n, (c + 1) % CLASSES)]}, weight=float(count))
        for (n, c), count in Y.items()
    ]
    for method in ("gis", "iis"):
        m = classifier(training.L2(0.01))
        values = [r.objective for r in m.fit(data, method=method, tolerance=0.0, iterations=60).history]
        assert all(b >= a - 1e-12 * abs(a) for a, b in pairwise(values)) and values[-1] > values[0]


def sentences() -> list[training.Example]:
    return tagged((*SENTENCES, ("the saw", "d v")), value=lambda _, i: 0.1 * i)


def crf(prior: Any = None) -> dg.Model:
    linear = training.LogLinear(TAGGER_ROWS, lambda a, b: {f"{a}-{b}": 1.0, b: 0.5})
    return dg.Model(TAGGER, {"w": linear}, objective=training.Conditional(), prior=prior)


@pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")
def test_a_conditional_random_field_is_scaled_by_the_features_of_derivations() -> None:
    """Lafferty, McCallum and Pereira 2001, section 3: four words have 3 features' worth each, 12 in all."""
    best, m, told = (crf(training.L2(0.5)) for _ in range(3))
    top = best.fit(sentences(), method="l-bfgs", tolerance=1e-15, iterations=300).objective
    fit = m.fit(sentences(), method="gis", tolerance=1e-9, iterations=400)
    values = [r.objective for r in fit.history]
    assert all(b >= a - 1e-12 * abs(a) for a, b in pairwise(values))
    assert values[-1] == pytest.approx(top, rel=1e-5)
    same = told.fit(sentences(), method="gis", iterations=3, tolerance=0.0, total=12.0)
    assert [r.objective for r in same.history] == pytest.approx(values[:3], rel=1e-13)


@pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")
def test_where_iterative_scaling_has_no_formula_it_says_so() -> None:
    with pytest.raises(dg.Error, match="use method='gis'"):
        crf().fit(sentences(), method="iis")
    rows = {"class/2": [(0, 0), (0, 1)]}
    data = [{"seen/2": [(0, 0)]}]

    def of(parametrisation: Any, **options: Any) -> dg.Model:
        return dg.Model(TEXT, {"w": parametrisation}, **options)

    with pytest.raises(dg.Error, match="at least 0, and x of w is not; a gradient method"):
        of(training.LogLinear(rows, lambda n, c: {"x": c - 0.5}, given=0)).fit(data, method="gis")
    with pytest.raises(dg.Error, match=r"class\(0,1\) is never observed where it could be"):
        of(training.LogLinear(rows, given=0)).fit(data, method="iis")
    with pytest.raises(dg.Error, match="for weights that are normalised"):
        of(training.LogLinear(rows)).fit(data, method="gis")
    for method in ("gis", "iis"):
        with pytest.raises(dg.Error, match=f"here {method} has no use for it"):
            of(training.LogLinear(rows, given=0)).fit(data, method=method, total=1.0)
    with pytest.raises(dg.Error, match="log-linear weights, and w has others"):
        of(training.Distribution(rows, given=0)).fit(data, method="gis")
    with pytest.raises(dg.Error, match="takes Gaussian priors"):
        of(training.LogLinear(rows, given=0), prior=training.L1(1.0)).fit(data, method="gis")
    with pytest.raises(dg.Error, match="makes likelihoods large"):
        of(training.LogLinear(rows, given=0), objective=training.Entropy()).fit(data, method="gis")
