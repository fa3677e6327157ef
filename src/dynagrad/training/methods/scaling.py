"""Iterative scaling for maximum entropy: generalised (Darroch and Ratcliff 1972), improved (Della Pietra et al. 1997).

A feature's weight moves until what the model expects of it is what was observed, as far as a bound of the objective
tells, which rises by as much at least; so each step rises. Where derivations are hidden, what was observed is expected
itself, and a step is one of generalised EM, which rises too. The slack feature of the original is not needed (Curran
and Clark 2003, "Investigating GIS and smoothing for maximum entropy taggers"). A Gaussian prior joins the equation of
each weight (Chen and Rosenfeld 1999).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...arguments import bounded_number
from ...charts.program import with_own_plans
from ...errors import Error, NotConverged
from ...facts.readers import read
from ..convergence.saddles import saddle
from ..objectives.evaluation import LOGS
from ..objectives.expectations import without_constants
from ..objectives.likelihood import Conditional, Likelihood
from ..parameters.log_linear import LogLinear
from ..parameters.rows import Doubles, Indices, sums
from ..priors import Gaussian
from ..problem import Problem
from ..specification import Theta
from ..steps import Observe, TrainingStep
from ..totals import Totals
from .em import Reached, must_not_fall


@dataclass(frozen=True, eq=False)
class _Equation:
    """Of each weight, by what it moves: observed = sum of expected * exp(moves * total) + its prior's pull."""

    feature: Indices
    """The feature of each term of the sum."""
    expected: Doubles
    total: Doubles
    """What a row, or a whole derivation, has of all features."""
    observed: Doubles


def scale(
    problem: Problem,
    theta: Theta,
    observe: Observe,
    state: Mapping[str, Any],
    *,
    method: str,
    total: float | None = None,
) -> Theta:
    """Steps of iterative scaling, each after a pass over the data.

    `total` is the most that a derivation has of all features, for conditional models; without, it is found by a run.
    """
    spec = problem.spec
    for name, p in spec.parametrisations.items():
        _check(p, name, spec.priors.get(name))
    priors = {name: prior for name, prior in spec.priors.items() if isinstance(prior, Gaussian)}
    whole = isinstance(spec.objective, Conditional)
    if not whole and not isinstance(spec.objective, Likelihood):
        raise Error(
            f"{method} makes likelihoods large, conditional ones too; other objectives are for gradient methods"
        )
    if whole and method == "iis":
        raise Error("iis needs the features of each derivation where these are normalised as wholes; use method='gis'")
    if total is not None and not whole:
        raise Error(f"total is about derivations that are normalised as wholes; here {method} has no use for it")
    if whole:
        most = _most(problem) if total is None else bounded_number("total", total, 0.0, above=True)
    before = Reached.read(state)
    while True:
        value, totals = problem.objective(theta)
        before = must_not_fall(problem, before, Reached.of_examples(value, totals.values), "the objective")
        new: Theta = {}
        for name, p in spec.parametrisations.items():
            assert isinstance(p, LogLinear)
            equation = (
                _of_wholes(problem, p, totals, theta, most) if whole else _of_rows(p, totals, theta[name], method)
            )
            new[name] = _solved(p, theta[name], equation, priors.get(name))
        step = TrainingStep(new, value, totals.value, examples=len(totals.values), state=before.state)
        if observe(replace(step, look=partial(saddle, problem, theta, new))):
            return new
        theta = new


def _check(p: Any, name: str, prior: Any) -> None:
    advice = "; a gradient method, such as method='l-bfgs', has no such condition"
    if not isinstance(p, LogLinear):
        raise Error(f"iterative scaling is for log-linear weights, and {name} has others{advice}")
    _, feature, values = p.entries()
    if (values < 0).any():
        at = p.names()[int(feature[int(np.argmin(values))])]
        raise Error(f"iterative scaling wants features that are at least 0, and {at} of {name} is not{advice}")
    if prior is not None and not isinstance(prior, Gaussian):
        raise Error(f"iterative scaling takes Gaussian priors, and {name} has another{advice}")


# -- the equations -----------------------------------------------------------------------------------------------------


def _of_rows(p: LogLinear, totals: Totals, theta: Doubles, method: str) -> _Equation:
    """Rows are normalised in groups: each count of a group is a draw from its rows."""
    if p.groups is None:
        raise Error(
            "iterative scaling of a likelihood is for weights that are normalised: give LogLinear `given`, or give the "
            "model the objective training.Conditional()"
        )
    counts = np.maximum(p.rows.joined(totals.gradient), 0.0)
    at, feature, values = p.entries()
    chances = np.exp(p.weights(theta)) * p.groups.totals(counts)[p.groups.group]
    per_row = p.row_totals()
    total = np.full(len(at), per_row.max(initial=0.0)) if method == "gis" else per_row[at]
    return _Equation(feature, values * chances[at], total, p.totals(counts))


def _of_wholes(problem: Problem, p: LogLinear, totals: Totals, theta: Theta, most: float) -> _Equation:
    """Derivations are normalised as wholes: expectations of the clamped run against those of the free one."""
    if p.groups is not None:
        raise Error("iterative scaling of a conditional model is for free weights: leave out `given`")
    free = _free(problem, theta)
    expected = p.totals(np.maximum(p.rows.joined(free), 0.0))
    difference = p.totals(p.rows.joined(totals.gradient))
    return _Equation(np.arange(p.size), expected, np.full(p.size, most), np.maximum(expected + difference, 0.0))


def _free(problem: Problem, theta: Theta) -> dict[str, Doubles]:
    """Expected counts of the free runs of examples that count on both sides."""
    spec = replace(problem.spec, objective=_Free(problem.spec.objective))
    other = replace(problem, spec=spec, missing="skip")
    return other.totals(spec.weights(theta)).gradient


@dataclass(frozen=True)
class _Free:
    """The free runs of a conditional objective."""

    of: Any

    def totals(self, task: Any, examples: Any) -> Totals:
        found: Totals = self.of.free(task, examples)
        return found


def _most(problem: Problem) -> float:
    """The most that any derivation has of all features: the best derivation is sought with their totals as weights."""
    spec = problem.spec
    if spec.program.semiring not in LOGS:
        raise Error("the most features of a derivation are found in `log`; in other programs give `total`")
    without_constants(spec.program, "the number of features of a derivation")
    totals = {k: x for p in spec.parametrisations.values() for k, x in p.rows.split(_row_totals(p)).items()}
    fixed = {key: replace(r, values=None) for key, r in spec.fixed.items()}
    here = {**fixed, **{key: replace(r, values=totals[key]) for key, r in spec.places.relations.items()}}
    bound = with_own_plans(spec.program.bind(here))
    most = 0.0
    for shard in problem.passes.shards():
        facts = [
            {key: replace(read(key, rows, finite="no_nan"), values=None) for key, rows in e.facts.items()}
            for e in shard
        ]
        for best in bound.run_batch(facts, query=spec.goal, best=1).best:
            most = max(most, *(float(d.weight) for d in best or ()), 0.0)
    if not 0 < most < np.inf:
        raise Error("no derivation has a feature, or one has as many as it likes; give `total`, the most that one has")
    return most


def _row_totals(p: Any) -> Doubles:
    assert isinstance(p, LogLinear)
    return p.row_totals()


# -- solving them ------------------------------------------------------------------------------------------------------

STEPS = 100
"""The most steps of Newton's method; twice as many where it is kept between bounds."""
NEAR = 1e-13
"""How small its last step has to be, relative to the change of the weights that is sought, or to one."""


def _solved(p: LogLinear, theta: Doubles, equation: _Equation, prior: Gaussian | None) -> Doubles:
    """The weights that solve their equations, one apart from another, by Newton's method."""
    e = equation
    expected = sums(e.feature, e.expected, p.size)
    used = ~p.frozen & (expected > 0)
    if prior is None:
        never = used & (e.observed <= 0)
        if never.any():
            raise NotConverged(
                f"the feature {p.names()[int(np.flatnonzero(never)[0])]} is never observed where it could be, so no "
                "finite weight is best: leave it out, or give a prior such as training.L2(0.01)"
            )
        return np.where(used, theta + _by_logs(p.size, e, used), theta)
    return np.where(used, theta + _with_prior(p, theta, e, used, prior), theta)


def _by_logs(size: int, e: _Equation, used: Any) -> Doubles:
    """Newton's method on the logs of both sides, whose slope is between the least and the greatest total."""
    moved = np.zeros(size)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.log(e.observed)
        for _ in range(STEPS):
            terms = e.expected * np.exp(moved[e.feature] * e.total)
            held = sums(e.feature, terms, size)
            slope = sums(e.feature, terms * e.total, size) / held
            step = np.where(used, (wanted - np.log(held)) / slope, 0.0)
            moved = moved + step
            if np.abs(step).max(initial=0.0) <= NEAR * (1.0 + np.abs(moved).max(initial=0.0)):
                break
    return moved


def _with_prior(p: LogLinear, theta: Doubles, e: _Equation, used: Any, prior: Gaussian) -> Doubles:
    """The same with a prior, which makes the equation one of an increasing function, solved between two bounds."""
    away, variance = theta - prior.means(p), prior.variance

    def excess(moved: Doubles) -> tuple[Doubles, Doubles]:
        with np.errstate(over="ignore"):
            terms = e.expected * np.exp(moved[e.feature] * e.total)
            held, slope = sums(e.feature, terms, p.size), sums(e.feature, terms * e.total, p.size)
        return held + (away + moved) / variance - e.observed, slope + 1.0 / variance

    value, _ = excess(np.zeros(p.size))
    # the prior alone pulls a weight to where its part is what is observed; beyond that the excess is positive
    low = np.minimum(0.0, -np.abs(value) * variance)
    high = np.maximum(0.0, np.abs(value) * variance)
    moved = np.zeros(p.size)
    for _ in range(2 * STEPS):
        value, slope = excess(moved)
        low, high = np.where(value < 0, moved, low), np.where(value > 0, moved, high)
        with np.errstate(invalid="ignore", over="ignore"):
            newton = moved - value / slope
        inside = np.isfinite(newton) & (newton > low) & (newton < high)
        new = np.where(value == 0, moved, np.where(inside, newton, (low + high) / 2))
        done = np.abs(np.where(used, new - moved, 0.0)).max(initial=0.0) <= NEAR * (1.0 + np.abs(new).max(initial=0.0))
        moved = new
        if done:
            break
    return moved
