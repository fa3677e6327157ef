"""Expectation maximisation and its kin, over all data at each step: batch, Viterbi, variational, annealed.

The E step is a pass over the data, whose gradient by log weights is the expected count of each parameter; the M step
takes relative frequencies of the counts, with those of the prior. Dempster, Laird and Rubin 1977; Kurihara and Sato
2006 for the variational one; Ueda and Nakano 1998 for annealing. Those that step after a few examples are in
`stepwise.py`.

Counts come from `problem.py`; gradient methods, which need no best parameters in closed form, are in the other files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...arguments import real_number, whole_number
from ...charts.program import context_of
from ...eager.names.special import digamma, gammaln
from ...errors import Error, NotConverged, warn
from ...rules.syntax import AntecedentValue, Application, Expression, Negation, Numeral
from ..convergence.saddles import growing_direction, saddle, saddle_along
from ..objectives.likelihood import Best, Likelihood
from ..parameters.distribution import Distribution
from ..parameters.groups import Groups
from ..parameters.rows import Doubles, Flags
from ..priors import Dirichlet
from ..problem import NAMED, Problem
from ..specification import Specification, Theta, ravelled, unravelled
from ..steps import Observe, Saddle, TrainingStep
from ..totals import Totals

MAY_FALL = 1e-9
"""How much, relative to its size, an objective may fall for rounding."""
NEAR_ZERO = 1e-12
"""The same for each part, where the logs of parts are of numbers near one."""


# -- what EM needs -----------------------------------------------------------------------------------------------------


def check(spec: Specification) -> None:
    """Raises Error where expected counts do not give the best parameters: it says which rule, and what to do."""
    advice = "; a gradient method, such as method='l-bfgs', has no such condition"
    semiring = spec.program.semiring
    if semiring not in ("real", "log"):
        raise Error(f"EM adds up derivations: it needs a program in `real` or `log`, not {semiring}{advice}")
    if not isinstance(spec.objective, Likelihood):
        raise Error(f"EM makes the likelihood large, and no other objective{advice}")
    for name, p in spec.parametrisations.items():
        if not isinstance(p, Distribution):
            raise Error(f"EM has no formula for {name}, whose weights are no plain probabilities{advice}")
    keys = {key for p in spec.parametrisations.values() for key in p.rows.keys}
    rules = context_of(spec.program).rules
    for rule in rules.rules:
        if rule.head.key in keys:
            raise Error(f"the rule `{rule.text}` derives parameters, and EM takes them as given{advice}")
        asked = [a.item.key for a in rule.antecedents if a.side]
        asked += [c.item.key for c in rule.conditions if isinstance(c, Negation)]
        for key in asked:
            if key in keys:
                raise Error(f"the rule `{rule.text}` asks whether a parameter of {key} is there: not a factor{advice}")
        if semiring == "real" and _least(rule.value) < 0:
            raise Error(f"the rule `{rule.text}` has a factor below 0{advice}")
    for axiom in rules.axioms:
        if axiom.item.key in keys:
            raise Error(f"the text of the program gives a value to {axiom.item.key}, which is a parameter{advice}")
        if semiring == "real" and axiom.value is not None and axiom.value < 0:
            raise Error(f"an axiom of {axiom.item.key} is below 0{advice}")
    for key, relation in spec.fixed.items():
        least = 0.0 if semiring != "real" or relation.values is None else np.min(relation.values, initial=0.0)
        uses = next((r for r in rules.rules if any(a.item.key == key for a in r.antecedents)), None)
        if least < 0 and uses is not None:
            raise Error(f"the rule `{uses.text}` has a factor below 0, as a fact of {key} is {least:g}{advice}")


def _least(value: Expression) -> float:
    """The least number in the value of a rule, or 0."""
    match value:
        case Numeral(value=number):
            return float(number)
        case Application(operands=operands):
            return min(map(_least, operands), default=0.0)
        case AntecedentValue():
            return 0.0
    return 0.0


# -- the M step --------------------------------------------------------------------------------------------------------


def _counts(p: Distribution, counts: Mapping[str, Doubles]) -> Doubles:
    """The count of each parameter. Raises Error where one is below 0, which it cannot be where all factors are not."""
    assert p.groups is not None
    found = p.groups.of_parameters(p.rows.joined(counts))
    if (found < -MAY_FALL * np.abs(found).max(initial=1.0)).any():
        n = int(np.argmin(found))
        raise Error(
            f"the expected count of {p.names()[n]} is {found[n]:g}: examples have facts below 0, and EM takes factors "
            "from 0 on; a gradient method, such as method='l-bfgs', has no such condition"
        )
    return np.maximum(found, 0.0)  # less is of rounding


Statistics = dict[str, Doubles]
"""Counts of parameters, or their means, by the name of a parametrisation."""


def statistics(spec: Specification, counts: Mapping[str, Doubles]) -> Statistics:
    """The counts of parameters, from those of rows."""
    return {n: _counts(p, counts) for n, p in spec.parametrisations.items() if isinstance(p, Distribution)}


class Maximiser:
    """The M step: parameters from counts. Groups without counts keep their parameters, and are warned of once."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._spec = problem, problem.spec
        spec = problem.spec
        self._pseudo: dict[str, Doubles] = {}
        self._told = False
        for name, prior in spec.priors.items():
            if not isinstance(prior, Dirichlet):
                raise Error(f"EM takes Dirichlet priors, and {name} has another; gradient methods take all")
            self._pseudo[name] = prior.pseudo_counts(spec.parametrisations[name])

    def __call__(self, theta: Theta, counts: Mapping[str, Doubles]) -> Theta:
        """From counts of all data, by rows."""
        return self.of(theta, statistics(self._spec, counts))

    def of(self, theta: Theta, held: Statistics, scale: float = 1.0, whole: bool = True) -> Theta:
        """`scale` is of pseudo-counts, where counts are means and no sums; `whole` whether they are of all data."""
        found: Theta = {}
        for name, p in self._spec.parametrisations.items():
            assert isinstance(p, Distribution) and p.groups is not None
            totals = held[name]
            if name in self._pseudo:
                totals = totals + scale * self._pseudo[name]
            with np.errstate(divide="ignore"):
                new = p.groups.normalised(np.log(totals))
            empty = p.groups.totals(totals) == 0
            if whole:
                self._tell(name, p.groups, empty)
            found[name] = np.where(p.frozen | empty[p.groups.group], p.groups.normalised(theta[name]), new)
        return found

    def _tell(self, name: str, groups: Groups, empty: Flags) -> None:
        """Warns, once, of groups without counts."""
        if empty.any() and not self._told and not self._problem.weightless:  # of which it warns
            self._told = True
            names = [groups.names[g] for g in np.flatnonzero(empty)[:3].tolist()]
            warn(
                f"the parameters of {name} given {'; '.join(names)}"
                f"{f' and {int(empty.sum()) - 3} more' if empty.sum() > 3 else ''} have counts of 0, as no derivation "
                "that counts uses them: they stay as they are"
            )


@dataclass(frozen=True, eq=False)
class Reached:
    """The objective of a step, and that of each example or shard: what the next step is held against."""

    value: float
    values: Doubles
    counted: Doubles
    """How many examples count in each of these."""

    @staticmethod
    def of_examples(value: float, values: Doubles) -> Reached:
        """Where the parts are examples, which count unless their value is NaN."""
        return Reached(value, values, (~np.isnan(values)).astype(float))

    @staticmethod
    def read(state: Mapping[str, Any]) -> Reached | None:
        """From the state of a run that is taken up."""
        if "reached" not in state:
            return None
        return Reached(state["reached"], np.asarray(state["of parts"]), np.asarray(state["counted"]))

    @property
    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"reached": self.value, "of parts": self.values, "counted": self.counted}


def must_not_fall(
    problem: Problem, before: Reached | None, now: Reached, what: str, names: Callable[[list[int]], str] | None = None
) -> Reached:
    """What was reached. Raises NotConverged where it is below what was `before`, though theory says it cannot be.

    Pruning and beams may leave out other derivations at each step, cycles that are iterated are cut off somewhere, and
    an example that failed in one of the two passes is missing from its sum: then a fall is no error, and there is a
    warning.
    """
    rounding = 0.0 if before is None else MAY_FALL * abs(before.value) + NEAR_ZERO * len(before.values)
    if before is None or now.value >= before.value - rounding:
        return now
    named = problem.names if names is None else names
    fell = f"{what} fell from {before.value:.12g} to {now.value:.12g}"
    changed = np.flatnonzero(before.counted != now.counted).tolist()
    rules = context_of(problem.spec.program).rules
    if changed:
        warn(f"{fell}: {named(changed)} counted in one of two passes only")
    elif rules.prunes or rules.beams:
        warn(f"{fell}: the program prunes its items, so derivations are left out, and others at each step")
    elif rules.solve == "iterate" and problem.cuts_off():
        warn(f"{fell}: the program iterates its cycles, so what it sums is cut off, and elsewhere at each step")
    else:
        worst = np.argsort(now.values - before.values, kind="stable")[:NAMED].tolist()
        raise NotConverged(f"{fell}, which it cannot where runs are exact: most in {named(worst)}")
    return now


# -- methods -----------------------------------------------------------------------------------------------------------


def batch(problem: Problem, theta: Theta, observe: Observe, state: Mapping[str, Any]) -> Theta:
    """EM: an E step over all data, then an M step."""
    check(problem.spec)
    return _climb(problem, theta, observe, state, "the likelihood with its prior")


def _climb(
    problem: Problem, theta: Theta, observe: Observe, state: Mapping[str, Any], what: str, hard: bool = False
) -> Theta:
    """E and M steps over all data; `what` is the objective in messages, which must not fall.

    Hard counts, of the best derivations, do not change where parameters change little, and so have no saddles.
    """
    maximise, before = Maximiser(problem), Reached.read(state)
    while True:
        value, totals = problem.objective(theta)
        before = must_not_fall(problem, before, Reached.of_examples(value, totals.values), what)
        new = maximise(theta, totals.gradient)
        step = TrainingStep(new, value, totals.value, examples=len(totals.values), state=before.state)
        if observe(step if hard else replace(step, look=partial(saddle, problem, theta, new))):
            return new
        theta = new


def viterbi(problem: Problem, theta: Theta, observe: Observe, state: Mapping[str, Any]) -> Theta:
    """Hard EM: the counts of the best derivation of each example, all others left out."""
    check(problem.spec)
    hard = replace(problem, spec=replace(problem.spec, objective=Best()))

    def told(step: TrainingStep) -> bool:
        problem.moves = problem.moves or hard.moves  # of which the objective is
        return observe(step)

    return _climb(hard, theta, told, state, "the weight of the best derivations with the prior", hard=True)


def variational(problem: Problem, theta: Theta, observe: Observe, state: Mapping[str, Any]) -> Theta:
    """Variational Bayes: a Dirichlet for each group in place of its probabilities, which are its mean in the end.

    The E step takes exp(E[log p]), which add up to less than one; what it makes large is a bound of the evidence.
    """
    check(problem.spec)
    spec = problem.spec
    alphas: dict[str, Doubles] = {}
    for name, p in spec.parametrisations.items():
        prior = spec.priors.get(name, Dirichlet(1.0))
        if not isinstance(prior, Dirichlet):
            raise Error(f"variational Bayes takes Dirichlet priors, and {name} has another")
        alphas[name] = prior.alphas(p)
    held = {n: np.asarray(x) for n, x in state.get("held", {}).items()} or {
        n: _pseudo(spec, n, theta, a) for n, a in alphas.items()
    }
    before = Reached.read(state)

    def expected(held: Mapping[str, Doubles]) -> Totals:
        weights: dict[str, Doubles] = {}
        for name, p in spec.parametrisations.items():
            assert isinstance(p, Distribution) and p.groups is not None
            logs = _mean_logs(p, held[name])
            weights |= p.rows.split(np.where(p.frozen, p.groups.normalised(theta[name]), logs)[p.groups.parameter])
        return problem.totals(weights)

    while True:
        began, totals = dict(held), expected(held)
        bound = totals.value - sum(_divergence(spec, n, held[n], a) for n, a in alphas.items())
        before = must_not_fall(problem, before, Reached.of_examples(bound, totals.values), "the bound of the evidence")
        new: Theta = {}
        for name, p in spec.parametrisations.items():
            assert isinstance(p, Distribution) and p.groups is not None
            held[name] = alphas[name] + _counts(p, totals.gradient)
            mean = np.log(held[name]) - np.log(p.groups.totals(held[name]))[p.groups.group]
            new[name] = np.where(p.frozen, p.groups.normalised(theta[name]), mean)
        now = {"held": dict(held), **before.state}
        step = TrainingStep(new, bound, totals.value, examples=len(totals.values), state=now)
        if observe(replace(step, look=partial(_saddle_of_bound, spec, expected, alphas, began, dict(held)))):
            return new
        theta = new


def _saddle_of_bound(
    spec: Specification,
    expected: Callable[[Mapping[str, Doubles]], Totals],
    alphas: Mapping[str, Doubles],
    before: Mapping[str, Doubles],
    now: Mapping[str, Doubles],
) -> Saddle | None:
    """Whether the Dirichlets that are held are at a saddle of the bound, from the counts of those nearby."""
    like = dict(now)

    def counts(held: Doubles) -> Doubles:
        return ravelled(statistics(spec, expected(unravelled(held, like)).gradient))

    start = ravelled(like)
    fixed = spec.frozen
    metric = np.where(fixed, 0.0, start - ravelled({n: alphas[n] for n in like}))
    try:
        here = counts(start)
        found = growing_direction(lambda d, step: (counts(start * np.exp(step * d)) - here) / start, metric)
    except Error:  # a neighbour has no value: nothing is known
        return None
    return None if found is None else saddle_along(spec, metric, found, np.log(start / ravelled(dict(before))))


def _pseudo(spec: Specification, name: str, theta: Theta, alphas: Doubles) -> Doubles:
    """A Dirichlet to begin with, whose mean is what the initial probabilities say."""
    p = spec.parametrisations[name]
    assert isinstance(p, Distribution) and p.groups is not None
    sizes = p.groups.totals(np.ones(p.size))[p.groups.group]
    return alphas + p.probabilities(theta[name]) * sizes


def _mean_logs(p: Distribution, held: Doubles) -> Doubles:
    """E[log p] of each parameter, by the Dirichlets that are held."""
    assert p.groups is not None
    found: Doubles = digamma(held) - digamma(p.groups.totals(held))[p.groups.group]
    return found


def _divergence(spec: Specification, name: str, held: Doubles, alphas: Doubles) -> float:
    """Kullback and Leibler's, of the Dirichlets that are held from those of the prior."""
    p = spec.parametrisations[name]
    assert isinstance(p, Distribution) and p.groups is not None
    free = ~p.frozen
    groups = p.groups.totals(free.astype(float)) > 0
    counts = held - alphas
    whole = _bend(p.groups.totals(alphas), p.groups.totals(counts))[groups].sum()
    return float(whole - _bend(alphas, counts)[free].sum())


STIRLING = 1000.0
"""From here on the series of Stirling for the gamma function is exact to rounding after three terms."""


def _bend(a: Doubles, c: Doubles) -> Doubles:
    """log Gamma(a + c) - log Gamma(a) - c digamma(a + c): how far log Gamma is from its tangent at a + c.

    Where a is large the terms are as well, and what is left of them is small: then it is worked out by Stirling's
    series, in which they cancel before they are numbers.
    """
    large = a >= STIRLING
    small = np.where(large, 1.0, a)
    found: Doubles = gammaln(small + c) - gammaln(small) - c * digamma(small + c)
    u = np.where(large, c / np.where(large, a, 1.0), 0.0)
    powers = sum((-1) ** (k + 1) * u**k / k for k in range(2, 10))  # of log(1 + u) - u
    away = np.where(u < 0.01, powers, np.log1p(u) - u)
    series = a * away - 0.5 * (np.log1p(u) - u / (1 + u)) - u * u / (12 * a * (1 + u) ** 2)
    return np.where(large, series, found)


def annealed(
    problem: Problem,
    theta: Theta,
    observe: Observe,
    state: Mapping[str, Any],
    *,
    start: float = 0.1,
    growth: float = 1.2,
    steps: int = 5,
) -> Theta:
    """Deterministic annealing: E steps with all parameters to a power that grows from `start` to one.

    There are `steps` steps at each power; from one on it is EM. Factors that are no parameters stay as they are.

    At low powers all starts come to one point, where hidden states are alike to the last bit; at some power it is a
    maximum no more, and only what differs a little can leave it (Rose 1998, "Deterministic annealing for clustering,
    compression, classification, regression, and related optimization problems"). So each time that the power is raised
    a little of the parameters that the run began with is put back: these differ as the start did, and the run needs no
    other random numbers.
    """
    check(problem.spec)
    if not 0 < real_number("start", start) <= 1 or not 1 < real_number("growth", growth) < np.inf:
        raise Error("annealing begins with a power above 0 and at most 1, which grows by a factor above 1")
    steps = whole_number("steps", steps, 1)
    maximise = Maximiser(problem)
    power, done = float(state.get("power", start)), int(state.get("done", 0))
    first: Theta = {name: np.asarray(x) for name, x in state.get("start", theta).items()}
    before = Reached.read(state)
    while True:
        weights = {key: power * x for key, x in problem.spec.weights(theta).items()} if power < 1 else None
        totals = problem.totals(problem.spec.weights(theta) if weights is None else weights)
        value = totals.value + problem.spec.log_prior(theta)
        if power >= 1:
            before = must_not_fall(
                problem, before, Reached.of_examples(value, totals.values), "the likelihood with its prior"
            )
        began, theta = theta, maximise(theta, totals.gradient)
        done, settled = done + 1, power >= 1
        if power < 1 and done >= steps:
            power, done = min(1.0, power * growth), 0
            theta = _stirred(problem.spec, theta, first)
        now = {"power": power, "done": done, "start": first, **({} if before is None else before.state)}
        step = TrainingStep(theta, value, totals.value, examples=len(totals.values), state=now, settled=settled)
        if observe(replace(step, look=partial(saddle, problem, began, theta))):
            return theta


STIRRED = 0.01
"""The part of the parameters of the start that is put back."""


def _stirred(spec: Specification, theta: Theta, start: Theta) -> Theta:
    """Probabilities mixed with a few of those of the start. What became impossible stays so."""
    found: Theta = {}
    for name, p in spec.parametrisations.items():
        assert isinstance(p, Distribution) and p.groups is not None
        here, there = p.groups.normalised(theta[name]), p.groups.normalised(start[name])
        mixed = np.logaddexp(np.log1p(-STIRRED) + here, np.log(STIRRED) + there)
        found[name] = np.where(np.isneginf(here) | p.frozen, theta[name], mixed)
    return found
