"""Whether parameters are at a saddle: directions that grow are looked for, by Arnoldi's method on the derivative of a
step of EM, or of a scaled step along the gradient, by differences.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import Error
from ..objectives.likelihood import Likelihood
from ..parameters.distribution import Distribution
from ..parameters.parametrisation import Parametrisation
from ..parameters.rows import Doubles
from ..priors import Dirichlet
from ..problem import Problem
from ..specification import Specification, Theta, ravelled, unravelled
from ..steps import Saddle
from ..totals import Totals
from .kinks import kinks

PRODUCTS = 10
"""The most passes over the data that are spent on a look for directions of growth."""
STEP = 1e-4
"""The length of the differences, relative to parameters."""
GROWS = 3e-3
"""By how much more than one a direction has to grow in a step to be one of growth: more than differences are off by."""
STILL = 1e-9
"""How little of the last step, relative to parameters, is rounding."""


def text_of(found: Saddle, starts: int) -> str:
    """What is said of a saddle, of a run from so many starts: what it had already is no advice."""
    one, other = found.names
    text = (
        f"training is at a saddle, which is no maximum: the objective is larger nearby, where {one} and {other} move "
        "apart. "
    )
    if found.drawn:
        return text + ("Give fit another seed=, or more restarts=" if starts > 1 else "Give fit restarts=")
    return text + (
        "What is alike to begin with, such as hidden states with the same numbers, stays alike by symmetry: begin with "
        'training.Distribution(..., initial="random")' + (", or give fit restarts=" if starts == 1 else "")
    )


def growing_direction(
    change: Callable[[Doubles, float], Doubles], metric: Doubles, begin: Doubles | None = None
) -> Doubles | None:
    """A direction that grows by a step of training; None where none was found.

    `change` is how the result of a step changes if parameters move by so much along a direction; `metric` is how long
    a direction is: parameters without any are left out. It is looked for among all directions, or those that steps make
    of the one to `begin` with.
    """
    some = metric > 0
    root = np.sqrt(np.where(some, metric, 1.0))
    count = int(some.sum())
    drawn = np.random.default_rng(0).standard_normal(len(root)) if begin is None else root * begin
    vector = np.where(some, drawn, 0.0)
    basis: list[Doubles] = []
    inner = np.zeros((PRODUCTS + 1, PRODUCTS))
    vector = vector / max(float(np.linalg.norm(vector)), 1e-300)
    for k in range(min(PRODUCTS, count)):
        basis.append(vector)
        with np.errstate(all="ignore"):
            direction = vector / root
            step = STEP / max(float(np.abs(direction).max(initial=0.0)), 1e-300)
            image = np.where(some, root * change(direction, step) / step, 0.0)
        if not np.isfinite(image).all():
            return None
        size = float(np.linalg.norm(image))
        for _ in range(2):  # twice is enough for all digits
            for n, other in enumerate(basis):
                part = float(other @ image)
                inner[n, k] += part
                image = image - part * other
        values, vectors = np.linalg.eig(inner[: k + 1, : k + 1])
        most = int(np.argmax(values.real))
        if values[most].real > 1 + GROWS:
            found: Doubles = sum(
                (c * v for c, v in zip(vectors[:, most].real, basis, strict=True)), np.zeros(len(root))
            )
            return found / root
        rest = float(np.linalg.norm(image))
        if rest <= max(10 * STEP * size, STEP):
            return None  # of the directions that matter there are no more
        inner[k + 1, k] = rest
        vector = image / rest
    return None


def saddle(problem: Problem, before: Theta, now: Theta) -> Saddle | None:
    """Whether parameters, where a run came by a last step from those `before`, are at a saddle of the objective.

    It is looked for where that is likely enough for its passes over the data: with distributions, whose hidden states
    may be alike, and else where parameters are the same number.
    """
    spec = problem.spec
    found = _growth_at(problem, now) if any(_by_counts(spec, name) for name in now) or _some_alike(now) else None
    with np.errstate(invalid="ignore"):
        return None if found is None else saddle_along(spec, *found, ravelled(now) - ravelled(before))


def alike(problem: Problem, now: Theta) -> Saddle | None:
    """The same where a run ended by a limit: whether groups of a distribution are alike, and should not be.

    They are where they have the same numbers and the same counts, so that steps leave them alike, whatever the method.
    Whether they should be is asked of the directions in which these groups alone move apart, and of what steps make of
    them. All others may be directions of growth because the run has not converged.
    """
    spec = problem.spec
    if not _smooth(spec) or not any(_same_groups(p, now[name]) for name, p in spec.parametrisations.items()):
        return None
    try:
        totals = problem.objective(now)[1]
    except Error:
        return None
    random, begin = np.random.default_rng(0), {}
    for name, p in spec.parametrisations.items():
        begin[name] = _apart(p, _same_groups(p, now[name], p.rows.joined(totals.gradient)), random)
    if not any(direction.any() for direction in begin.values()):
        return None
    found = _growth_at(problem, now, ravelled(begin))
    if found is None:
        return None
    metric, direction = found
    slope = abs(float(ravelled(spec.pull(now, totals)) @ direction))
    if slope > FLAT * np.sqrt(float(metric @ direction**2) * float(metric.sum())):
        return None  # steps go along it by themselves: they are alike by chance, and do not stay so
    return saddle_along(spec, metric, direction, np.zeros(len(metric)))


FLAT = 1e-3
"""How small a slope along a direction of growth, relative to counts, is none: what differences are off by."""


def _apart(p: Parametrisation, same: list[list[int]], random: np.random.Generator) -> Doubles:
    """A direction in which groups that are alike move apart, and nothing else does."""
    found = np.zeros(p.size)
    for groups in same:
        assert p.groups is not None
        places = np.array([np.flatnonzero(p.groups.group == g) for g in groups])
        drawn = random.standard_normal(places.shape)
        found[places] = drawn - drawn.mean(axis=0)
    return found


def _same_groups(p: Parametrisation, theta: Doubles, of_rows: Doubles | None = None) -> list[list[int]]:
    """The groups of a distribution that have the same probabilities, in the same order, and the same counts."""
    if not isinstance(p, Distribution) or p.groups is None:
        return []
    numbers = p.probabilities(theta).round(SAME)[:, None]
    if of_rows is not None:
        counts = p.groups.of_parameters(of_rows)
        scale = np.abs(counts).max(initial=0.0) or 1.0
        numbers = np.column_stack([numbers, (counts / scale).round(SAME)]) + 0.0  # minus zero is zero
    order = np.argsort(p.groups.group, kind="stable")
    sizes = np.bincount(p.groups.group, minlength=len(p.groups.names))
    found: dict[bytes, list[int]] = {}
    for g, part in enumerate(np.split(numbers[order], np.cumsum(sizes)[:-1])):
        if len(part) > 1:
            found.setdefault(part.tobytes(), []).append(g)
    return [groups for groups in found.values() if len(groups) > 1]


SAME = 9
"""The digits after the point in which probabilities, and shares of counts, agree that are the same."""


def _smooth(spec: Specification) -> bool:
    """Whether the objective has no kinks, as far as can be saddle_along."""
    return kinks(spec) is None and all(prior.smooth for prior in spec.priors.values())


def _growth_at(problem: Problem, theta: Theta, apart: Doubles | None = None) -> tuple[Doubles, Doubles] | None:
    """The metric, and a direction in which steps grow; None where none was found, or where there may be kinks.

    Where a run has not converged only those are looked at that move some parameters `apart`.
    """
    if not _smooth(problem.spec):
        return None
    try:
        change, metric = _step_of(problem, theta, apart is None)
        found = growing_direction(change, metric, apart)
    except Error:  # a neighbour has no value: nothing is known
        return None
    return None if found is None else (metric, found)


def saddle_along(spec: Specification, metric: Doubles, found: Doubles, moved: Doubles) -> Saddle:
    """What is said of a direction of growth, beside how the last step moved."""
    weighted = metric * found
    with np.errstate(invalid="ignore"):
        along = abs(float(weighted @ np.where(metric > 0, moved, 0.0)))
    along /= np.sqrt(float(weighted @ found) * float(metric.sum()))
    names = [name for p in spec.parametrisations.values() for name in p.names()]
    shares = np.sqrt(metric) * found
    distributions = [p for p in spec.parametrisations.values() if isinstance(p, Distribution)]
    drawn = bool(distributions) and all(p.initial == "random" for p in distributions)
    return Saddle((names[int(np.argmax(shares))], names[int(np.argmin(shares))]), along > STILL, drawn)


def _some_alike(theta: Theta) -> bool:
    """Whether two parameters are the same number, and not zero."""
    for x in theta.values():
        some = np.sort(x[np.isfinite(x) & (x != 0)])
        if (np.abs(np.diff(some)) <= 1e-9 * np.abs(some[1:])).any():
            return True
    return False


SOME = 1e-8
"""The least share of its group that a parameter has whose changes are looked at."""


def _step_of(problem: Problem, theta: Theta, still: bool = True) -> tuple[Callable[[Doubles, float], Doubles], Doubles]:
    """How what a step leads to changes with some parameters, and their metric.

    It is a step along the gradient that is scaled by the metric: by counts, which is a step of EM where the run stands
    `still`. Elsewhere, where there are counts, it is how EM itself moves the logs of probabilities: they do not part
    where the likelihood is a concave function of probabilities, though of the step along the gradient one cannot tell.
    """
    spec = problem.spec
    held = ravelled({n: np.isneginf(x).astype(float) for n, x in theta.items()}) > 0
    start = np.where(held, 0.0, ravelled(theta))

    def at(vector: Doubles) -> tuple[Theta, Totals]:
        moved = unravelled(np.where(held, -np.inf, vector), theta)
        totals = problem.objective(moved)[1]
        return spec.pull(moved, totals), totals

    here, totals = at(start)
    free = unravelled((~held & ~spec.frozen).astype(float), theta)
    counts = {name: _counts_of(spec, name, totals) for name in theta if _by_counts(spec, name)}
    metric: Theta = {}
    slopes: Theta = {}
    for name, p in spec.parametrisations.items():
        if name in counts:
            assert p.groups is not None
            few = SOME * p.groups.totals(counts[name])[p.groups.group]
            metric[name] = np.where(counts[name] > few, counts[name], 0.0)
        else:
            if not slopes:
                drawn = np.where(ravelled(free) > 0, np.random.default_rng(1).standard_normal(len(start)), 0.0)
                moved = at(start + STEP * drawn)[0]
                slopes = {n: (moved[n] - x) / STEP for n, x in here.items()}
            metric[name] = np.full(p.size, float(np.sqrt(np.mean(slopes[name] ** 2))) or 1.0)
        metric[name] = metric[name] * free[name]

    def change(direction: Doubles, step: float) -> Doubles:
        moved, totals = at(start + step * direction)
        found = unravelled(step * direction, theta)
        for name, p in spec.parametrisations.items():
            some = metric[name] > 0
            if name in counts and not still:
                assert p.groups is not None
                before, after = (p.groups.normalised(np.log(x)) for x in (counts[name], _counts_of(spec, name, totals)))
                found[name] = np.where(some, after - before, found[name])
            else:
                slope = moved[name] - here[name]
                found[name] = np.where(some, found[name] + slope / np.where(some, metric[name], 1.0), found[name])
        return ravelled(found)

    return change, ravelled(metric)


def _by_counts(spec: Specification, name: str) -> bool:
    """Whether a step of EM sets some parameters by their counts."""
    return isinstance(spec.objective, Likelihood) and isinstance(spec.parametrisations[name], Distribution)


def _counts_of(spec: Specification, name: str, totals: Totals) -> Doubles:
    """The count of each parameter, with that of its prior."""
    p, prior = spec.parametrisations[name], spec.priors.get(name)
    assert p.groups is not None
    found = p.groups.of_parameters(np.abs(p.rows.joined(totals.gradient)))
    return found + prior.pseudo_counts(p) if isinstance(prior, Dirichlet) else found
