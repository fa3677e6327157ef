"""What was observed, and losses: which facts each objective takes, alone and in sums, against a few lines of numpy.

An example has four outcomes, each a derivation; some were observed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import training
from dynagrad.training.examples import DataPasses
from dynagrad.training.problem import Problem
from dynagrad.training.workers import in_threads

pytestmark = pytest.mark.filterwarnings("ignore:the likelihood has no finite maximum")

RULE = "goal += w(S) * may(S) * fixed(S) * loss(S) * toll(S)."
SIDES = "abcd"
WEIGHTS = np.array([0.3, -0.5, 0.1, 0.7])
FIXED = np.array([-0.2, -0.4, -1.3, -1.0])  # logs of probabilities, as the tolls are
LOSS, TOLL = np.array([0.0, 3.0, 1.0, 0.5]), np.array([-0.5, -2.5, -2.25, -1.5])
SEEN = np.array([1, 0, 1, 0], bool)


def log_sum(x: Any) -> float:
    return float(np.log(np.exp(x).sum()))


def chances(w: Any) -> Any:
    """Of all outcomes: what was observed has no part in it, nor have losses."""
    return np.exp(w + FIXED - log_sum(w + FIXED))


Value = Callable[[Any], float]
OBJECTIVES: dict[str, tuple[Any, Value]] = {
    "likelihood": (training.Likelihood(), lambda w: log_sum((w + FIXED)[SEEN])),
    "conditional": (training.Conditional(), lambda w: log_sum((w + FIXED)[SEEN]) - log_sum(w + FIXED)),
    "conditional with tolls": (
        training.Conditional(cost="toll/1"),
        lambda w: log_sum((w + FIXED)[SEEN]) - log_sum(w + FIXED + TOLL),
    ),
    "risk of losses": (training.Risk("loss/1"), lambda w: -float(chances(w) @ LOSS)),
    "risk of tolls": (training.Risk("toll/1"), lambda w: -float(chances(w) @ TOLL)),
    "entropy": (training.Entropy(), lambda w: -float(chances(w) @ np.log(chances(w)))),
    "items": (training.OfItems(["goal"], lambda x, _: x[0] ** 2), lambda w: log_sum((w + FIXED)[SEEN]) ** 2),
}


PROGRAMS = {values: dg.Program(f":- semiring log. {RULE}", values=values) for values in ("weights", "probabilities")}
PLACES = ("facts", "observed", "model", "model and facts")


def model_and_example(
    objective: Any, place: str = "facts", values: str = "weights", w: Any = WEIGHTS
) -> tuple[dg.Model, training.Example]:
    """All facts, with the losses in some place; what an objective does not take for losses has the weight one."""
    losses = named_by(objective)
    scale = np.exp if values == "probabilities" else np.asarray

    def rows(numbers: Any, which: Any = slice(None)) -> list[tuple[Any, ...]]:
        return [(s, float(x)) for s, x in list(zip(SIDES, numbers, strict=True))[which]]

    own = {"fixed/1": rows(scale(FIXED)), "may/1": [(s,) for s in SIDES]}
    shared: dict[str, Any] = {}
    observed: dict[str, Any] = {"may/1": [(s,) for s, ok in zip(SIDES, SEEN, strict=True) if ok]}
    for key, numbers in (("loss/1", LOSS), ("toll/1", TOLL)):
        if key not in losses:
            own[key] = [(s,) for s in SIDES]
            continue
        given = scale(numbers) if "cost" in losses[key] else numbers
        match place:
            case "facts":
                own[key] = rows(given)
            case "observed":
                observed[key] = rows(given)
            case "model":
                shared[key] = rows(given)
            case "model and facts":
                shared[key], own[key] = rows(given, slice(0, 2)), rows(given, slice(2, 4))
    start = dict(zip([f"w({s})" for s in SIDES], w.tolist(), strict=True))
    weights = training.LogLinear({"w/1": [(s,) for s in SIDES]}, initial=start)
    model = dg.Model(PROGRAMS[values], {"w": weights}, objective=objective, facts=shared)
    return model, training.Example(own, observed)


def named_by(objective: Any) -> dict[str, set[str]]:
    """The predicates of losses, and what they are: a cost of margins is on the program's scale, a loss is a number."""
    found: dict[str, set[str]] = {}
    for part in [p for _, p in objective.parts] if isinstance(objective, training.Sum) else [objective]:
        if isinstance(part, training.Sum):
            for key, kinds in named_by(part).items():
                found.setdefault(key, set()).update(kinds)
        elif isinstance(part, training.Risk):
            found.setdefault(part.cost, set()).add("loss")
        elif isinstance(part, training.Conditional) and part.cost:
            found.setdefault(part.cost, set()).add("cost")
    return found


def check(objective: Any, value: Value, place: str = "facts", values: str = "weights") -> None:
    """The value, its gradient, and a product with the Hessian by differences of gradients, on both kinds of passes."""
    model, example = model_and_example(objective, place, values)
    assert model.score([example]) == pytest.approx(value(WEIGHTS), abs=1e-12)
    spec, theta = model._spec, model.parameters
    step = 1e-5 * np.eye(4)
    slopes = [(value(WEIGHTS + d) - value(WEIGHTS - d)) / 2e-5 for d in step]
    problem = Problem(spec, DataPasses([example] * 3), in_threads(1, True))
    for _ in range(3):  # the later passes have the facts loaded
        found, totals = problem.objective(theta)
        assert found == pytest.approx(3 * value(WEIGHTS), abs=1e-11)
        assert spec.pull(theta, totals)["w"] == pytest.approx(3 * np.array(slopes), abs=1e-7)
    along = np.array([0.3, -1.0, 0.5, 0.2])
    product = problem.product(theta, totals, {"w": along})["w"]
    ends = []
    for sign in (1, -1):
        moved = {"w": theta["w"] + sign * 1e-5 * along}
        ends.append(spec.pull(moved, problem.objective(moved)[1])["w"])
    assert product == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-7)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_each_objective_alone(name: str, place: str) -> None:
    objective, value = OBJECTIVES[name]
    for values in PROGRAMS:
        check(objective, value, place, values)


def test_the_losses_of_one_are_ones_for_the_others() -> None:
    pairs = [(a, b) for a, b in product(OBJECTIVES, OBJECTIVES) if a < b]
    for n, (a, b) in enumerate(pairs):
        (one, f), (two, g) = OBJECTIVES[a], OBJECTIVES[b]
        values = "weights" if {"conditional with tolls", "risk of tolls"} == {a, b} else [*PROGRAMS][n % 2]
        check(training.Sum((0.5, one), (-2.0, two)), lambda w, f=f, g=g: 0.5 * f(w) - 2 * g(w), PLACES[n % 4], values)


def test_sums_in_sums() -> None:
    (one, f), (two, g), (three, h) = (OBJECTIVES[n] for n in ("risk of losses", "conditional with tolls", "entropy"))
    for place in PLACES:
        whole = training.Sum((1.0, one), (2.0, training.Sum((0.5, two), (1.0, three))), (1.0, three))
        check(whole, lambda w: f(w) + g(w) + 3 * h(w), place)


def test_best_derivations_and_models_in_files_take_losses_for_ones(tmp_path: Path) -> None:
    pytest.importorskip("tomli_w")
    (one, _), (two, _) = OBJECTIVES["risk of losses"], OBJECTIVES["conditional with tolls"]
    for place, values in product(PLACES, PROGRAMS):
        model, example = model_and_example(training.Sum((1.0, one), (1.0, two)), place, values)
        model.save(tmp_path / "model")
        again = dg.load_model(tmp_path / "model")
        assert again.score([example]) == model.score([example])
        losses = {key: rows for key, rows in example.observed.items() if key != "may/1"}
        for m in (model, again):
            best = m.predict({**example.facts, **losses})
            assert [tuple(s.name[1]) for s in best if s.name[0] == "w/1"] == [("a",)]


def test_losses_of_a_model_in_files_are_those_of_the_objective_that_it_is_loaded_with(tmp_path: Path) -> None:
    pytest.importorskip("tomli_w")
    risk = training.Risk("loss/1")
    values = {  # to the likelihood they are weights like any other
        risk: OBJECTIVES["risk of losses"][1](WEIGHTS),
        training.Likelihood(): log_sum((WEIGHTS + FIXED + LOSS)[SEEN]),
    }
    model, example = model_and_example(risk, "model")
    fixed = {"loss/1": [(s, float(x)) for s, x in zip(SIDES, LOSS, strict=True)]}
    for n, (saved, loaded) in enumerate(product(values, values)):
        given = dg.Model(PROGRAMS["weights"], model._spec.parametrisations, objective=saved, facts=fixed)
        given.save(tmp_path / f"{n}")
        assert given.score([example]) == pytest.approx(values[saved])
        assert dg.load_model(tmp_path / f"{n}", objective=loaded).score([example]) == pytest.approx(values[loaded])


def test_an_observed_derivation_is_no_part_of_expectations() -> None:
    for name in ("risk of losses", "entropy"):
        objective, value = OBJECTIVES[name]
        model, example = model_and_example(objective)
        *_, derived = model.bound.run(dict(example.facts)).kbest("goal", 4)
        assert model.score([replace(example, observed={}, derivation=derived)]) == pytest.approx(value(WEIGHTS))


def test_facts_of_a_predicate_in_two_places_are_all_in_the_entropy() -> None:
    rows = [(s, float(x)) for s, x in zip(SIDES, FIXED, strict=True)]
    ones = {key: [(s,) for s in SIDES] for key in ("may/1", "loss/1", "toll/1")}
    weights = training.LogLinear({"w/1": [(s,) for s in SIDES]})
    model = dg.Model(PROGRAMS["weights"], {"w": weights}, objective=training.Entropy(), facts={"fixed/1": rows[:1]})
    p = np.exp(FIXED - log_sum(FIXED))
    assert model.score([{**ones, "fixed/1": rows[1:]}] * 2) == pytest.approx(-2 * float(p @ np.log(p)))


def test_losses_that_would_count_for_nothing_are_errors() -> None:
    rules = ":- semiring log. loss(X) += open(X). goal += w(X) * loss(X)."
    sides = {"w": training.LogLinear({"w/1": [("a",)]})}
    for objective in (training.Risk("loss/1"), training.Conditional(cost="loss/1")):
        for whole in (objective, training.Sum((1.0, objective))):
            with pytest.raises(dg.Error, match="costs are facts, and the program has rules for loss/1"):
                dg.Model(rules, sides, objective=whole)
    with pytest.raises(dg.Error, match="costs are facts"):
        dg.Model(":- semiring log. loss(a) += 2. goal += w(X) * loss(X).", sides, objective=training.Risk("loss/1"))
