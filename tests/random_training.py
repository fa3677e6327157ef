"""Random small models, held against all of their derivations, which are listed in Python and weighed in 40 digits.

    PYTHONPATH=src:tests python tests/random_training.py SECONDS [FIRST]

Values, gradients, products with Hessians, steps of EM and its kin, a step along the gradient, and which rows of
parameters examples can use; and two steps of every method, on models that bring it something new by
`tests/training_cover.py`. What is drawn is in `tests/random_models.py`; `tests/training/test_random_models.py` runs
some.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import mpmath
import numpy as np
from mpmath import mpf

import dynagrad as dg
from dynagrad.training.examples import DataPasses
from dynagrad.training.parameters.parametrisation import Parametrisation
from dynagrad.training.problem import Problem
from dynagrad.training.specification import ravelled, unravelled
from dynagrad.training.used_rows import UsedRows
from dynagrad.training.workers import in_threads
from random_models import (
    DIGITS,
    ROWS,
    SHARES,
    Case,
    Drawn,
    Facts,
    Logs,
    Numbers,
    draw_case,
    log_max,
    log_sum,
    softmax,
    trees,
)

STEP = mpf(10) ** -10


def close(found: Any, wanted: Any, what: str, case: Case, tolerance: float = 1e-9) -> None:
    """Raises AssertionError, with the case, where two arrays differ."""
    a, b = np.asarray(found, float), np.asarray([float(x) for x in np.ravel(np.asarray(wanted, object))], float)
    worst = np.abs(a.ravel() - b) - tolerance * (1 + np.abs(b))
    assert a.size == b.size and (worst <= 0).all(), f"{what} of {case.name}: {a.ravel()} and not {b}"


def differences(f: Callable[[Numbers], Any], at: Numbers, along: Sequence[Numbers]) -> list[Any]:
    """The derivatives of a function along directions."""
    found = []
    for d in along:
        up, down = ([x + s * STEP * mpf(y) for x, y in zip(at, d, strict=False)] for s in (1, -1))
        found.append((f(up) - f(down)) / (2 * STEP))
    return found


def check_gradient(case: Case) -> bool:
    """Value, gradient and, but in `viterbi` and with L1, a product with the Hessian. Whether any example counts."""
    random = np.random.default_rng(len(case.name))
    problem = Problem(case.model._spec, DataPasses(case.given), in_threads(1), "skip")
    like = case.model.parameters
    start = ravelled(like) + np.where(case.free, random.normal(size=len(case.free)) * 0.5, 0.0)
    at = [mpf(float(x)) for x in start]
    value, counted = case.objective(at)
    if not counted:
        return False
    theta = unravelled(start, like)
    found, totals = problem.objective(theta)
    close([found], [value], "value", case)
    close([totals.counted], [counted], "number of examples", case)
    unit: list[Any] = [d if free else np.zeros(len(at)) for d, free in zip(np.eye(len(at)), case.free, strict=False)]
    f = lambda x: case.objective(x)[0]  # noqa: E731
    gradient = differences(f, at, unit)
    close(ravelled(case.model._spec.pull(theta, totals)), gradient, "gradient", case)
    if case.semiring != "viterbi" and "prior L1" not in case.name:
        tangent: Any = np.where(case.free, random.normal(size=len(at)), 0.0)
        product = ravelled(problem.product(theta, totals, unravelled(tangent, like)))
        along: Any = random.normal(size=(2, len(at)))  # a number that is wrong shows along both
        wanted = differences(lambda x: differences(f, x, [tangent])[0], at, np.where(case.free, along, 0.0).tolist())
        close(along @ product, wanted, "product with the Hessian", case)
    check_step(case, theta, start, gradient)
    check_used(case, theta)
    return True


def check_step(case: Case, theta: Mapping[str, np.ndarray], start: np.ndarray, gradient: Numbers) -> None:
    """One step of gradient ascent after all examples: along the gradient, divided by their weight."""
    case.model._theta = dict(theta)
    case.model.fit(
        case.given, method="sgd", size=len(case.data), iterations=1, rate=0.25, missing="skip", warm=True, tolerance=0.0
    )
    logs = case.weights.logs(case.split([mpf(float(x)) for x in start]))
    weight = sum(e.weight for e in case.data if case.value(e, logs) is not None)
    wanted = [mpf(float(x)) + mpf(0.25) * g / mpf(max(weight, 1.0)) for x, g in zip(start, gradient, strict=True)]
    close(ravelled(case.model.parameters), wanted, "a step along the gradient", case)


def used_by(case: Case, e: Drawn) -> set[tuple[str, int]]:
    """The rows that derivations of an example use, in all runs of the objective."""
    found = set() if e.derivation is None else set(e.derived().uses)
    runs: list[tuple[Facts, int]] = []
    for part in case.objectives:
        other = part in ("conditional item", "conditional program")
        runs.append((e.facts if part in ("entropy", "risk") else e.clamped, 1 if other else 0))
        if part.startswith("conditional"):
            runs.append((e.facts, 0))
        if part == "items":
            runs.append((e.clamped, 1))
    return found.union(*(t.uses for facts, item in runs for t in trees(facts, item)))


def check_used(case: Case, theta: dict[str, np.ndarray]) -> None:
    """The rows that examples can use are those in their derivations, and what the others weigh changes nothing."""
    spec = case.model._spec
    few = replace(spec, parametrisations={name: Some(p) for name, p in spec.parametrisations.items()})
    problem = Problem(few, DataPasses(case.given), in_threads(1), "skip")
    examples = list(problem.passes)
    used = UsedRows(few).of(examples)
    if case.semiring == "viterbi":
        assert used is None
        return
    assert used is not None, case.name
    mine = {
        (p.rows.keys_of_rows[n][:-2], p.rows.arguments[n][0])
        for name, p in spec.parametrisations.items()
        for n in used[name].tolist()
    }
    assert mine == set().union(*(used_by(case, e) for e in case.data)), f"{case.name}: {mine}"
    weights = problem.weights_for(theta, examples)
    assert not any(np.isnan(x).any() for x in weights.values())
    whole, some = (problem.of_shard(w, examples) for w in (spec.weights(theta), weights))
    close([some.value], [whole.value], "the value with the rows that are used", case)
    for key, x in whole.gradient.items():
        close(some.gradient[key], x.tolist(), f"the gradient by {key} with the rows that are used", case)


class Some(Parametrisation):
    """One that is there, of which some rows are worked out alone: the others weigh nothing."""

    rowwise = True

    def __init__(self, of: Parametrisation) -> None:
        self.of = of
        self.rows, self.size, self.logs = of.rows, of.size, of.logs

    def start(self, random: np.random.Generator) -> np.ndarray:
        return self.of.start(random)

    def weights(self, theta: np.ndarray) -> np.ndarray:
        return self.of.weights(theta)

    def weights_of(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        found = np.full(len(self.rows), -np.inf if self.logs else 0.0)
        found[rows] = self.of.weights(theta)[rows]
        return found

    def pull(self, theta: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        return self.of.pull(theta, cotangent)

    def names(self) -> list[str]:
        return self.of.names()


class Tie(Exception):
    """Two derivations are the best ones."""


def terms_of(e: Drawn) -> list[Any]:
    """The derivations of an example that count."""
    return trees(e.clamped, 0) if e.derivation is None else [e.derived()]


def counts(case: Case, logs: Logs, best: bool = False, power: float = 1.0) -> tuple[Any, dict[tuple[str, int], Any]]:
    """The log-likelihood and the expected count of each row; with `best` of the best derivation alone."""
    found, value = dict.fromkeys(ROWS + SHARES, mpf(0)), mpf(0)
    scaled = {row: power * x for row, x in logs.items()}
    for e in case.data:
        here = terms_of(e)
        terms = [t.log(scaled) for t in here]
        z = (log_max if best else log_sum)(terms)
        if z is None:
            continue
        value += mpf(e.weight) * z
        firsts = [x for x in terms if abs(x - z) < mpf(10) ** -20] if best else []
        if len(firsts) > 1:  # either may be taken
            raise Tie
        for t, x in zip(here, terms, strict=False):
            p = mpf(x == z) if best else mpmath.exp(x - z)
            for use in t.uses:
                found[use] += mpf(e.weight) * p
    return value, found


def maximised(case: Case, found: Mapping[tuple[str, int], Any], before: Mapping[str, Numbers]) -> dict[str, list[Any]]:
    """Relative frequencies of counts with pseudo-counts, as probabilities; groups without any stay."""
    new = {}
    for name, (parameter, group) in case.weights.groups.items():
        sums = [mpf(a) - 1 for a in case.alphas.get(name, [1.0] * len(group))]
        for row, p in zip(case.weights.rows[name], parameter, strict=False):
            sums[p] += found[row]
        whole = {g: sum(s for s, h in zip(sums, group, strict=False) if h == g) for g in set(group)}
        old = [mpmath.exp(x) for x in softmax(before[name], group)]
        new[name] = [
            old[n] if case.weights.frozen[name][n] or not whole[g] else sums[n] / whole[g] for n, g in enumerate(group)
        ]
    return new


def check_em(case: Case) -> bool:
    """One step of EM, of Viterbi EM, of annealed and of stepwise EM; two of variational Bayes and of incremental EM."""
    like = case.model.parameters
    at = {name: [mpf(float(x)) for x in numbers] for name, numbers in like.items()}
    logs = case.weights.logs(at)
    value, found = counts(case, logs)
    if not any(found.values()):
        return False

    def after(method: str, steps: int = 1, **options: Any) -> tuple[float, dict[str, np.ndarray]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = case.model.fit(case.given, method=method, iterations=steps, missing="skip", tolerance=0.0, **options)
        return fit.objective, {name: np.exp(x) for name, x in case.model.parameters.items()}

    def held(method: str, wanted: Any, new: dict[str, list[Any]], steps: int = 1, **options: Any) -> None:
        objective, parameters = after(method, steps, **options)
        if wanted is not None:
            close([objective], [wanted], f"objective of {method}", case)
        for name, numbers in new.items():
            close(parameters[name], numbers, f"{name} after {method}", case)

    prior = case.prior(at)
    held("em", value + prior, maximised(case, found, at))
    with suppress(Tie):
        best, hard = counts(case, logs, best=True)
        held("viterbi-em", best + prior, maximised(case, hard, at))
    cool, soft = counts(case, logs, power=0.5)
    held("annealing", cool + prior, maximised(case, soft, at), start=0.5)
    check_stepwise(case, at, held)
    check_incremental(case, at, held)
    check_variational(case, at, held)
    return True


def check_stepwise(case: Case, at: Mapping[str, Numbers], held: Callable[..., None]) -> None:
    """A pass that steps after each example, after each two, and after all of them, which is a step of EM."""
    whole = case.data
    for size in sorted({1, 2, len(whole)}):
        theta, means, weight, steps = at, {name: [mpf(0)] * len(p) for name, p in at.items()}, mpf(0), 0
        for first in range(0, len(whole), size):
            case.data = whole[first : first + size]
            logs = case.weights.logs(theta)
            here = sum(mpf(e.weight) for e in case.data if log_sum([t.log(logs) for t in terms_of(e)]) is not None)
            _, found = counts(case, logs)
            case.data = whole
            if not here:
                continue
            weight, rate, steps = weight + here, mpf(steps + 2) ** mpf(-0.7), steps + 1
            scaled = {}
            for name, (parameter, group) in case.weights.groups.items():
                new, rows = [mpf(0)] * len(group), case.weights.rows[name]
                for row, n in zip(rows, parameter, strict=False):
                    new[n] += found[row] / here
                old = new if steps == 1 and size >= len(whole) else begun(means[name], new, theta[name], group)
                means[name] = [(1 - rate) * x + rate * y for x, y in zip(old, new, strict=True)]
                for row, n in zip(rows, parameter, strict=False):
                    scaled[row] = max(weight, mpf(1)) * means[name][n] / parameter.count(n)
            theta = logs_of(maximised(case, scaled, theta))
        held("online-em", None, {name: [mpmath.exp(x) for x in p] for name, p in theta.items()}, size=size)


def begun(means: Numbers, new: Numbers, theta: Numbers, group: Sequence[int]) -> list[Any]:
    """Mean counts, where groups that have none begin with as many as are new, as their probabilities say."""
    total = lambda numbers, g: sum(x for x, h in zip(numbers, group, strict=True) if h == g)  # noqa: E731
    p = [mpmath.exp(x) for x in softmax(theta, group)]
    return [means[n] if total(means, g) else total(new, g) * p[n] for n, g in enumerate(group)]


def check_incremental(case: Case, at: Mapping[str, Numbers], held: Callable[..., None]) -> None:
    """The counts of each example are kept: those of a second pass replace them one by one."""
    whole, kept = case.data, []
    theta: Mapping[str, Numbers] = at
    for turn in (0, 1):
        for n, e in enumerate(whole):
            case.data = [e]
            _, here = counts(case, case.weights.logs(theta))
            if turn == 0:
                kept.append(here)
                continue
            kept[n] = here
            theta = logs_of(maximised(case, added(kept), theta))
        case.data = whole
        theta = logs_of(maximised(case, added(kept), theta))
    held("incremental-em", None, {name: [mpmath.exp(x) for x in p] for name, p in theta.items()}, 2, size=1)


def added(many: Sequence[Mapping[tuple[str, int], Any]]) -> dict[tuple[str, int], Any]:
    """The sums of counts."""
    return {row: sum(one[row] for one in many) for row in ROWS + SHARES}


def logs_of(probabilities: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Parameters from probabilities; a log of zero is so small that it is one."""
    return {name: [mpmath.log(p) if p > 0 else mpf(-10000) for p in numbers] for name, numbers in probabilities.items()}


def check_variational(case: Case, at: Mapping[str, Numbers], held: Callable[..., None]) -> None:
    """A Dirichlet for each group, first with the initial probabilities as its mean; then its bound and its mean."""
    weights = case.weights
    alphas = {name: list(map(mpf, case.alphas.get(name, [1.0] * len(g)))) for name, (_, g) in weights.groups.items()}
    q = {}
    for name, (_, group) in weights.groups.items():
        p = [mpmath.exp(x) for x in softmax(at[name], group)]
        q[name] = [a + x * group.count(g) for a, x, g in zip(alphas[name], p, group, strict=False)]
    bound = mpf(0)
    for _ in range(2):
        logs: dict[tuple[str, int], Any] = {}
        apart = mpf(0)
        for name, (parameter, group) in weights.groups.items():
            stays = softmax(at[name], group)
            sums = {g: sum(x for x, h in zip(q[name], group, strict=False) if h == g) for g in set(group)}
            mean = [mpmath.digamma(x) - mpmath.digamma(sums[g]) for x, g in zip(q[name], group, strict=False)]
            frozen = weights.frozen[name]
            for row, n in zip(weights.rows[name], parameter, strict=False):
                logs[row] = stays[n] if frozen[n] else mean[n]
            for g in set(group):
                mine = [n for n, h in enumerate(group) if h == g and not frozen[n]]
                if mine:
                    apart += mpmath.loggamma(sums[g]) - mpmath.loggamma(sum(alphas[name][n] for n in mine))
                    for n in mine:
                        a, x = alphas[name][n], q[name][n]
                        apart += mpmath.loggamma(a) - mpmath.loggamma(x) + (x - a) * mean[n]
        value, found = counts(case, logs)
        bound = value - apart
        for name, (parameter, _) in weights.groups.items():
            q[name] = list(alphas[name])
            for row, n in zip(weights.rows[name], parameter, strict=False):
                q[name][n] += found[row]
    means = {}
    for name, (_, group) in weights.groups.items():
        sums = {g: sum(x for x, h in zip(q[name], group, strict=False) if h == g) for g in set(group)}
        stays = [mpmath.exp(x) for x in softmax(at[name], group)]
        means[name] = [stays[n] if weights.frozen[name][n] else q[name][n] / sums[g] for n, g in enumerate(group)]
    held("variational", bound, means, 2)


DRAWN: tuple[dict[str, bool], ...] = (
    {},
    {"several": True},
    {"em": True},
    {"em": True, "several": True},
    {"l1": True},
    {"scaled": True},
)
"""What models are drawn for each number."""


def main(seconds: float, first: int = 0) -> None:
    """Draws models until the time is over, and says which pairs of what models can have none had."""
    import training_cover as cover  # which is made of this module

    mpmath.mp.dps = DIGITS
    warnings.simplefilter("ignore", dg.ProgramWarning)
    end, seed, counted = time.monotonic() + seconds, first, {"gradients": 0, "steps of EM": 0, "methods": 0}
    left, tried = cover.wanted(), {method: set[str]() for method in (*cover.TAKES, *cover.SCALING)}

    def held(what: str, told: str, check: Callable[[], Any]) -> bool:
        try:
            found = bool(check())
        except Exception as error:  # a difference, or what the package raised: print it and go on
            if not (isinstance(error, dg.NotConverged) and "never observed" in str(error)):  # as scaling may say
                print(f"seed {seed}, {told}: {what}: {type(error).__name__}: {error}", flush=True)
            return False
        counted[what] += found
        return found

    while time.monotonic() < end:
        for drawn in DRAWN:
            case, told = draw_case(seed, **drawn), ", ".join(drawn) or "any"
            what, check = ("steps of EM", check_em) if "em" in drawn else ("gradients", check_gradient)
            if not held(what, told, partial(check, case)) or "several" in drawn:
                continue
            facets = cover.facets_of(case)
            left -= cover.pairs(facets)
            named = {f"{name} {x}" for name, x in zip(cover.NAMES, facets, strict=True)}
            for method, met in tried.items():
                if cover.takes(method, facets, "scaled" in drawn) and not named <= met:
                    met |= named
                    again = draw_case(seed, **drawn)
                    held("methods", f"{told}, {method}", partial(cover.check_steps, again, method))
        seed += 1
    print(f"seeds {first} to {seed - 1}: " + ", ".join(f"{n} {what}" for what, n in counted.items()))
    if left:
        print(f"no model had {' with '.join(min(left))}, nor {len(left) - 1} other pairs")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
