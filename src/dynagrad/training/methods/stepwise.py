"""EM that steps after a few examples: stepwise (online), and incremental.

Cappé and Moulines 2009, "On-line expectation-maximization algorithm for latent data models", and Liang and Klein 2009,
"Online EM for unsupervised models", for the stepwise one; Neal and Hinton 1998 for the incremental one. What EM needs,
and the M step, are in `em.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...arguments import real_number, whole_number
from ...errors import Error
from ..convergence.saddles import saddle
from ..examples import Example
from ..parameters.distribution import Distribution
from ..parameters.rows import Doubles
from ..problem import NAMED, WEIGHTLESS, Problem
from ..specification import Specification, Theta
from ..steps import Observe, TrainingStep
from .em import Maximiser, Reached, Statistics, check, must_not_fall, statistics


def online(
    problem: Problem,
    theta: Theta,
    observe: Observe,
    state: Mapping[str, Any],
    *,
    power: float = 0.7,
    size: int = 16,
) -> Theta:
    """Stepwise EM: after each `size` examples the mean counts move towards theirs by (k + 2) ** -power at step k.

    The mean counts of a group begin, when an example first uses it, as its probabilities of then say (Cappé and
    Moulines 2009, "On-line expectation-maximization algorithm for latent data models"): so what the examples of a step
    do not use gets less likely, and never impossible. Where one step takes all data, the first is one of EM.
    """
    check(problem.spec)
    if not 0.5 < real_number("power", power) <= 1:
        raise Error(f"power must be above 0.5 and at most 1, for the steps to converge, not {power}")
    size = whole_number("size", size, 1)
    spec, maximise = problem.spec, Maximiser(problem)
    means: Statistics = {k: np.asarray(x) for k, x in state.get("means", {}).items()} or {
        name: np.zeros(p.size) for name, p in spec.parametrisations.items()
    }
    k, whole = int(state.get("step", 0)), float(state.get("weight", 1.0))
    while True:
        value, weight, count = 0.0, 0.0, 0
        for shard, last in _with_the_last(problem.passes.shards(size)):
            totals = problem.of_shard(spec.weights(theta), shard)
            whole_data = last and count == 0
            count += len(totals.values)
            if totals.weight == 0:
                continue
            value += totals.value
            weight += totals.weight
            rate = (k + 2.0) ** -power
            k += 1
            for name, counts in statistics(spec, totals.gradient).items():
                new = counts / totals.weight
                first = k == 1 and whole_data  # a step of EM
                old = new if first else _begun(spec, name, means[name], new, theta[name])
                means[name] = (1 - rate) * old + rate * new
            theta = maximise.of(theta, means, 1.0 / max(weight, whole), whole=False)  # as far as they are known
        if k == 0:
            problem.must_count(theta)
            raise Error(f"{WEIGHTLESS}, so that there are no mean counts: give some a weight")
        theta = maximise.of(theta, means, 1.0 / max(weight, whole))
        whole, now = weight, {"means": dict(means), "step": k, "weight": weight}
        objective = value + spec.log_prior(theta)
        # steps get small by themselves, so that a small change says nothing
        if observe(TrainingStep(theta, objective, value, examples=count, state=now, settled=False)):
            return theta


def _with_the_last(shards: Iterator[list[Example]]) -> Iterator[tuple[list[Example], bool]]:
    """Shards, and whether each is the last."""
    before = next(shards, None)
    while before is not None:
        after = next(shards, None)
        yield before, after is None
        before = after


def _begun(spec: Specification, name: str, means: Doubles, new: Doubles, theta: Doubles) -> Doubles:
    """Mean counts, with those of groups that had none as their probabilities say, as many as are new."""
    p = spec.parametrisations[name]
    assert isinstance(p, Distribution) and p.groups is not None
    first = p.groups.totals(means) == 0
    if not first.any():
        return means
    return np.where(first[p.groups.group], p.groups.totals(new)[p.groups.group] * p.probabilities(theta), means)


def incremental(problem: Problem, theta: Theta, observe: Observe, state: Mapping[str, Any], *, size: int = 16) -> Theta:
    """Incremental EM: the counts of each `size` examples are kept, and replaced when their turn comes.

    What it makes large is the free energy, of which the likelihood is the largest value.
    """
    check(problem.spec)
    size = whole_number("size", size, 1)
    spec, maximise = problem.spec, Maximiser(problem)
    counts: list[dict[str, Doubles]] = [{k: np.asarray(x) for k, x in c.items()} for c in state.get("counts", ())]
    constants: list[float] = list(state.get("constants", ()))
    counted: list[float] = [float(x) for x in state.get("counted", ())]
    before = Reached.read(state)
    seen = bool(counts)

    def names(shards: list[int]) -> str:
        return f"examples {'; '.join(f'{n * size} to {n * size + size - 1}' for n in shards[:NAMED])}"

    while True:
        total, examples, began = _sum(counts), 0, theta
        for n, shard in enumerate(problem.passes.shards(size)):
            weights = spec.weights(theta)
            totals = problem.of_shard(weights, shard)
            new, constant = totals.gradient, totals.value - _along(totals.gradient, weights)
            examples += len(totals.values)
            if not seen:  # the first pass is an E step: of what was not seen there are no counts
                counts.append(new)
                constants.append(constant)
                counted.append(totals.counted)
                continue
            if n == len(counts):
                raise Error("the data have more examples than in the pass before; incremental EM keeps their counts")
            total = {key: total[key] + (new[key] - counts[n][key]) for key in new}
            counts[n], constants[n], counted[n] = new, constant, totals.counted
            theta = maximise(theta, total)
        if not counts:
            raise Error("the data have no examples")
        if not any(counted):
            problem.must_count(theta)
        seen = True
        total = _sum(counts)  # anew, so that rounding does not add up
        theta = maximise(theta, total)
        problem.after_a_pass()
        logs, prior = spec.weights(theta), spec.log_prior(theta)
        energies = np.array([x + _along(c, logs) for x, c in zip(constants, counts, strict=True)])
        energy = float(energies.sum())
        reached = Reached(energy + prior, energies, np.array(counted, float))
        before = must_not_fall(problem, before, reached, "the free energy", names)
        now = {"counts": list(counts), "constants": list(constants), **before.state}
        look = partial(saddle, problem, began, theta)
        if observe(TrainingStep(theta, energy + prior, energy, examples=examples, state=now, look=look)):
            return theta


def _sum(counts: Sequence[Mapping[str, Doubles]]) -> dict[str, Doubles]:
    """The counts of all shards."""
    return {key: np.add.reduce([c[key] for c in counts]) for key in counts[0]} if counts else {}


def _along(counts: Mapping[str, Doubles], logs: Mapping[str, Doubles]) -> float:
    """The sum of counts times log weights, where the count is not zero.

    Minus the free energy is, of each shard, log Z where its counts were taken, moved along them to the weights of now.
    """
    return sum(float(np.sum(c[c != 0] * logs[key][c != 0])) for key, c in counts.items())
