"""Likelihoods that have no finite maximum are told of, and bounded ones are not. Costs five seconds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import numpy as own
from dynagrad import training

ROWS = {"side/2": [(c, s) for c in "ab" for s in ("h", "t")], "coin/1": [("a",), ("b",)]}
DATA = [{"seen/1": [("h",), ("t",)]}, {"seen/1": [("h",)]}]
PROGRAMS = {
    name: dg.Program(f":- semiring {name}. goal += coin(C) * side(C,S) * seen(S).")
    for name in ("log", "viterbi", "real")
}
KNOWN, SEEN = "the likelihood has no finite maximum.*weights of 'free'", "still grows as fast.*weights of 'free'"
NORMAL = training.Distribution({"coin/1": ROWS["coin/1"]})


def free(**options: Any) -> training.LogLinear:
    return training.LogLinear({"side/2": ROWS["side/2"]}, **options)


def function(f: Any) -> training.Differentiable:
    return training.Differentiable({"side/2": ROWS["side/2"]}, f, np.linspace(0.1, 0.4, 4))


def normalised(p: Any) -> Any:
    p = p.reshape((2, 2))
    return own.ravel(p - own.log(own.sum(own.exp(p), axis=1, keepdims=True)))


def fitted(
    side: Any, semiring: str = "log", data: Any = DATA, method: str = "adam", steps: int = 12, **more: Any
) -> Any:
    m = dg.Model(PROGRAMS[semiring], {"coin": NORMAL, "free": side}, **more)
    return m.fit(data, method=method, iterations=steps, tolerance=0.0, **OPTIONS.get(method, {}))


OPTIONS: dict[str, Any] = {"sgd": {"rate": 0.5}}


@pytest.mark.parametrize(
    ("semiring", "method"),
    [*((s, m) for s in ("log", "viterbi") for m in ("adam", "sgd", "l-bfgs")), ("log", "newton-cg")],
)
def test_free_weights_are_told_of_before_they_grow(semiring: str, method: str) -> None:
    with pytest.warns(dg.ProgramWarning, match=KNOWN) as found:
        fitted(free(), semiring, method=method, steps=2)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("side", "semiring"), [(free(), "real"), (function(lambda p: 2 * p), "log"), (function(lambda p: p), "viterbi")]
)
def test_what_is_not_known_is_seen_in_the_end(side: Any, semiring: str) -> None:
    for method in ("adam", "sgd"):
        with pytest.warns(dg.ProgramWarning, match=SEEN) as found:
            fitted(side, semiring, method=method)
        assert len(found) == 1


def test_growth_is_of_convex_functions_in_both_directions_of_a_feature() -> None:
    """The derivations have the feature with both signs, and data that are even: still there is no maximum."""
    sign = free(features=lambda c, s: {"x": 1.0 if s == "h" else -1.0}, initial=0.1)
    with pytest.warns(dg.ProgramWarning, match=KNOWN):
        fit = fitted(sign, data=[DATA[0]], method="sgd", steps=40)
    assert fit.objective > 10.0


@pytest.mark.parametrize(
    ("side", "more"),
    [
        (free(given=0), {}),
        (free(), {"prior": {"free": training.L2(0.1)}}),
        (free(), {"prior": {"free": training.L1(5.0)}, "method": "l-bfgs"}),
        (free(frozen=lambda _: True, initial={"side(a,h)": 0.5}), {}),
        (function(normalised), {}),
        (function(normalised), {"method": "sgd"}),
        (function(lambda p: -own.log(1 + own.exp(-p))), {"method": "sgd"}),  # of probabilities, one by one
        (function(lambda p: own.tanh(p)), {"method": "sgd", "steps": 60}),  # bounded, above one
        (free(), {"objective": training.Entropy(), "method": "sgd"}),
    ],
)
def test_nothing_is_said_of_what_is_bounded(side: Any, more: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(side, **more)


def test_nothing_is_said_of_conditional_models_nor_within_bounds_nor_of_scores() -> None:
    told = [training.Example(DATA[0], {"seen/1": [("h",)]})]  # separable: the weights grow, and the objective to zero
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(free(), data=told, objective=training.Conditional(), method="l-bfgs")
        m = dg.Model(PROGRAMS["log"], {"free": free(), "coin": training.LogLinear({"coin/1": ROWS["coin/1"]})})
        m.fit(DATA, method="l-bfgs", bounds=[(-1.0, 1.0)] * 6, tolerance=0.0)
        assert m.parameters["free"] == pytest.approx(1.0)
        assert m.score(DATA) > 2.0
