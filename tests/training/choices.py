"""Points with one of three classes: convex problems, with kinks or without, and their maxima by scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import optimize  # type: ignore[import-untyped]  # it has no types

import dynagrad as dg
from dynagrad import training

CHOICE = ":- semiring {}. goal += s(I,C) * at(I) * may(C){}."
CLASSES = range(3)


def problem(seed: int, kind: str, prior: Any, positive: bool = False) -> tuple[dg.Model, list[Any], Any]:
    """Points with one of three classes and random features, the model of them, and what it is made of."""
    draw = np.random.default_rng(seed)
    x, y = draw.normal(size=(10, 3, 4)) * 10.0 ** draw.uniform(-1, 1, 4), draw.integers(3, size=10)
    x = np.abs(x) if positive else x
    rows = {"s/2": [(i, c) for i in range(10) for c in CLASSES]}
    weights = training.LogLinear(rows, lambda i, c: {f"w{k}": float(x[i, c, k]) for k in range(4)})
    cost = kind == "margin"
    program = CHOICE.format("log" if kind == "log" else "viterbi", " * cost(C)" if cost else "")
    objective = training.Conditional(cost="cost/1") if cost else training.Conditional()
    model = dg.Model(program, {"s": weights}, objective=objective, prior=prior)
    data = [
        training.Example(
            {"at/1": [(i,)], "may/1": [(c,) for c in CLASSES]}
            | ({"cost/1": [(c, float(c != y[i])) for c in CLASSES]} if cost else {}),
            {"may/1": [(int(y[i]),)]},
        )
        for i in range(10)
    ]

    return model, data, (x, y, cost * (np.arange(3) != y[:, None]))


def likelihood(points: Any, w: Any) -> float:
    x, y, _ = points
    return float(np.sum((x @ w)[np.arange(10), y] - np.logaddexp.reduce(x @ w, axis=1)))


def largest(points: Any, prior: float) -> float:
    """The maximum where the best class counts: a smooth problem, with a bound of the scores of each point."""
    x, y, cost = points
    own = x[np.arange(10), y]

    def negative(v: Any) -> tuple[float, Any]:
        w, top = v[:4], v[4:]
        return float(top.sum() - (own @ w).sum() + prior * w @ w), np.r_[2 * prior * w - own.sum(0), np.ones(10)]

    rows = np.repeat(np.eye(10), 3, axis=0)
    above = {
        "type": "ineq",
        "fun": lambda v: (v[4:, None] - x @ v[:4] - cost).ravel(),
        "jac": lambda v: np.hstack([-x.reshape(30, 4), rows]),
    }
    options = {"ftol": 1e-12, "maxiter": 1000}
    found = optimize.minimize(negative, np.r_[np.zeros(4), np.ones(10)], jac=True, constraints=above, options=options)
    assert found.success
    return -float(found.fun)
