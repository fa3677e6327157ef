"""Objectives that no parameter changes are warned of, once, by every method; those that rest somewhere are not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import training

BET = dg.Program(":- semiring log. goal += w(S) * may(S) * loss(S).")
BEST = dg.Program(":- semiring viterbi. goal += w(S) * may(S) * loss(S).")
ASIDE = dg.Program(":- semiring log. goal += may(S) * loss(S). aside += w(_).")
SIDES = {"w/1": [("h",), ("t",)]}
LOSSES = {"loss/1": [("h", 0.0), ("t", 3.0)]}
BOTH = {"may/1": [("h",), ("t",)]}
METHODS = ("l-bfgs", "bfgs", "newton-cg", "sgd", "adam", "perceptron")


def told(model: dg.Model, data: Any, **options: Any) -> list[str]:
    """What is said of a constant objective."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(data, **options)
    return [str(w.message) for w in found if "constant" in str(w.message)]


def weights(**options: Any) -> dict[str, Any]:
    return {"w": training.LogLinear(SIDES, **options)}


@pytest.mark.parametrize("method", METHODS)
def test_an_expectation_over_one_derivation(method: str) -> None:
    one = [{**LOSSES, "may/1": [("t",)]}] * 3
    for objective in (training.Risk("loss/1"), training.Entropy()):
        for prior in (None, training.L2(0.1)):
            model = dg.Model(BET, weights(initial=0.5), objective=objective, prior=prior)
            (said,) = told(model, one, method=method, iterations=3)
            assert f"the objective, {type(objective).__name__}, is constant" in said
            assert "w/1" in said


def test_parameters_that_are_no_part_of_the_goal() -> None:
    example = {**LOSSES, **BOTH}
    for objective in (training.Likelihood(), training.Risk("loss/1"), training.Entropy()):
        assert len(told(dg.Model(ASIDE, weights(), objective=objective), [example], method="l-bfgs")) == 1
    rules = ":- semiring log. :- distribution w(S). goal += may(S) * loss(S). aside += w(_)."
    assert len(told(dg.Model(rules, SIDES), [example], method="l-bfgs")) == 1


def test_a_distribution_of_one_row_and_a_function_of_nothing() -> None:
    rules = ":- semiring log. :- distribution w(S) given S. goal += w(S) * may(S) * loss(S)."
    for method in ("em", "online-em", "incremental-em", "variational", "l-bfgs", "sgd"):
        assert len(told(dg.Model(rules, SIDES), [{**LOSSES, **BOTH}], method=method, iterations=3)) == 1, method
    nothing = training.Differentiable(SIDES, lambda p: np.zeros(2) + 0.0 * p, 1.0)
    assert len(told(dg.Model(BET, {"w": nothing}), [{**LOSSES, **BOTH}], method="l-bfgs")) == 1


def test_all_derivations_have_one_loss() -> None:
    data = [{"loss/1": [("h", 2.0), ("t", 2.0)], **BOTH}]
    assert len(told(dg.Model(BET, weights(noise=1.0), objective=training.Risk("loss/1")), data, method="l-bfgs")) == 1


def test_a_gradient_of_zero_that_is_not_zero_elsewhere() -> None:
    data = [{**LOSSES, **BOTH}]
    assert not told(dg.Model(BET, weights(), objective=training.Entropy()), data, method="l-bfgs")  # its maximum
    seen = [training.Example(data[0], {"may/1": [("h",)]})]
    first = weights(initial={"w(h)": 20.0})  # the margin is kept where training begins
    model = dg.Model(BEST, first, objective=training.Conditional(cost="loss/1"))
    for method in ("perceptron", "l-bfgs"):
        assert not told(model, seen, method=method, iterations=3)
    hidden = ":- semiring log. :- distribution w(S). :- distribution v(S,O) given S. goal += w(S) * v(S,O) * may(O)."
    alike = {**SIDES, "v/2": [(s, o) for s in "ht" for o in "ht"]}  # EM rests there after a step
    assert not told(dg.Model(hidden, alike), [{"may/1": [("h",)]}, {"may/1": [("t",)]}])


def test_one_of_the_examples_is_enough() -> None:
    data = [{**LOSSES, "may/1": [("t",)]}, {**LOSSES, **BOTH}]
    assert not told(dg.Model(BET, weights(), objective=training.Risk("loss/1")), data, method="l-bfgs")


def test_what_was_observed_in_no_example_is_said_in_its_own_words() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        dg.Model(BET, weights(), objective=training.Conditional()).fit([{**LOSSES, **BOTH}], method="l-bfgs")
    assert len(found) == 1 and "no example says what was observed" in str(found[0].message)


def test_a_margin_of_nothing_observed_is_not_said_to_be_constant() -> None:
    model = dg.Model(BEST, weights(), objective=training.Conditional(cost="loss/1"))
    with pytest.warns(dg.ProgramWarning, match="so its margin compares the best derivation with one of all"):
        model.score([{**LOSSES, **BOTH}])
