"""When a run may say that it has converged: little is left to gain, and where it is is no saddle.

A small step alone says neither. Near a saddle, as where all hidden states are alike, steps of EM get small and then
large again; and a method may step shorter and shorter towards a kink. So what is left to gain is estimated, by the
method from the curvature that it knows, or from the last steps of the objective; and directions of growth are looked
for (by Arnoldi's method on the derivative of an EM step, or of a scaled step along the gradient, by differences).

When a run ends for other reasons is for `fit.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..charts.program import context_of
from ..errors import Error
from ..rules.aggregators import AGGREGATORS
from ..rules.syntax import Application, Expression
from .objectives.evaluation import programs_of
from .objectives.likelihood import Likelihood
from .parameters.distribution import Distribution
from .parameters.parametrisation import Parametrisation
from .parameters.rows import Doubles
from .priors import Dirichlet
from .problem import Problem
from .specification import Specification, Theta, ravelled, unravelled
from .steps import Saddle

ROUNDING = 1e-13
"""How much, relative to its size, an objective may change for rounding."""


def left_to_gain(objectives: Sequence[float]) -> float:
    """What steps like the last ones would still gain: their gains as a geometric series (Aitken).

    >>> left_to_gain([-4.0, -2.0, -1.0]), left_to_gain([-4.0, -3.0, -1.0])
    (1.0, inf)
    """
    if len(objectives) < 2:
        return np.inf
    gain = objectives[-1] - objectives[-2]
    if abs(gain) <= ROUNDING * max(1.0, abs(objectives[-1])):
        return 0.0
    before = objectives[-2] - objectives[-3] if len(objectives) > 2 else 0.0
    ratio = gain / before if before else np.inf
    return abs(gain) * ratio / (1.0 - ratio) if 0 <= ratio < 1 else np.inf


# -- saddles -----------------------------------------------------------------------------------------------------------

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


def growth(change: Callable[[Doubles, float], Doubles], metric: Doubles) -> Doubles | None:
    """A direction that grows by a step of training; None where none was found.

    `change` is how the result of a step changes if parameters move by so much along a direction; `metric` is how long
    a direction is: parameters without any are left out.
    """
    some = metric > 0
    root = np.sqrt(np.where(some, metric, 1.0))
    count = int(some.sum())
    vector = np.where(some, np.random.default_rng(0).standard_normal(len(root)), 0.0)
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
    found = _growth_at(problem, now) if _counts(spec) or _some_alike(now) else None
    with np.errstate(invalid="ignore"):
        return None if found is None else told(spec, *found, ravelled(now) - ravelled(before))


def alike(problem: Problem, now: Theta) -> Saddle | None:
    """The same where a run ended by a limit: whether groups of a distribution have the same numbers, and should not."""
    spec = problem.spec
    same = {name: _same_groups(p, now[name]) for name, p in spec.parametrisations.items()}
    found = _growth_at(problem, now) if any(same.values()) else None
    if found is None:
        return None
    metric, direction = found
    slope = ravelled(spec.pull(now, problem.objective(now)[1])) @ direction
    if abs(float(slope)) > FLAT * np.sqrt(float(metric @ direction**2) * float(metric.sum())):
        return None  # steps go along it by themselves: they are alike by chance, and do not stay so
    along = unravelled(direction, now)
    weight = unravelled(metric, now)
    apart, whole = 0.0, 0.0
    for name, p in spec.parametrisations.items():
        if p.groups is None or len(p.groups.group) != p.size:
            continue
        mean = p.groups.totals(weight[name] * along[name]) / np.maximum(p.groups.totals(weight[name]), 1e-300)
        free = along[name] - mean[p.groups.group]  # normalisation takes the rest away
        whole += float(weight[name] @ free**2)
        for groups in same[name]:
            rows = np.array([free[p.groups.group == g] for g in groups])
            weights = np.array([weight[name][p.groups.group == g] for g in groups])
            apart += float(np.sum(weights * (rows - rows.mean(axis=0)) ** 2))
    return told(spec, metric, direction, np.zeros(len(metric))) if apart > APART * whole else None


FLAT = 1e-3
"""How small a slope along a direction of growth, relative to counts, is none: by symmetry it is near rounding."""
APART = 0.01
"""How much of a direction of growth moves groups apart that have the same numbers."""


def _same_groups(p: Parametrisation, theta: Doubles) -> list[list[int]]:
    """The groups of a distribution that have the same probabilities, in the same order."""
    if not isinstance(p, Distribution) or p.groups is None:
        return []
    chances = p.probabilities(theta).round(SAME)
    order = np.argsort(p.groups.group, kind="stable")
    sizes = np.bincount(p.groups.group, minlength=len(p.groups.names))
    found: dict[bytes, list[int]] = {}
    for g, part in enumerate(np.split(chances[order], np.cumsum(sizes)[:-1])):
        if len(part) > 1:
            found.setdefault(part.tobytes(), []).append(g)
    return [groups for groups in found.values() if len(groups) > 1]


SAME = 9
"""The digits after the point in which probabilities agree that are the same."""


def _growth_at(problem: Problem, theta: Theta) -> tuple[Doubles, Doubles] | None:
    """The metric, and a direction in which steps grow; None where none was found, or where there may be kinks."""
    if kinks(problem.spec) is not None or not all(prior.smooth for prior in problem.spec.priors.values()):
        return None
    try:
        change, metric = _step_of(problem, theta)
        found = growth(change, metric)
    except Error:  # a neighbour has no value: nothing is known
        return None
    return None if found is None else (metric, found)


def told(spec: Specification, metric: Doubles, found: Doubles, moved: Doubles) -> Saddle:
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


def _counts(spec: Specification) -> bool:
    """Whether gradients by log weights are counts."""
    distributions = any(isinstance(p, Distribution) for p in spec.parametrisations.values())
    return isinstance(spec.objective, Likelihood) and distributions


def _some_alike(theta: Theta) -> bool:
    """Whether two parameters are the same number, and not zero."""
    for x in theta.values():
        some = np.sort(x[np.isfinite(x) & (x != 0)])
        if (np.abs(np.diff(some)) <= 1e-9 * np.abs(some[1:])).any():
            return True
    return False


SOME = 1e-8
"""The least share of its group that a parameter has whose changes are looked at."""


def _step_of(problem: Problem, theta: Theta) -> tuple[Callable[[Doubles, float], Doubles], Doubles]:
    """How a step of EM changes near some parameters, and its metric, the counts.

    For parameters of other kinds it is a step along the gradient, that is scaled to be as long as it may be.
    """
    spec = problem.spec
    held = ravelled({n: np.isneginf(x).astype(float) for n, x in theta.items()}) > 0
    start = np.where(held, 0.0, ravelled(theta))

    def gradient(vector: Doubles) -> tuple[Doubles, Mapping[str, Doubles]]:
        moved = unravelled(np.where(held, -np.inf, vector), theta)
        totals = problem.objective(moved)[1]
        return ravelled(spec.pull(moved, totals)), totals.gradient

    here, counts = gradient(start)
    free = ~held & ~spec.frozen

    def difference(direction: Doubles, step: float) -> Doubles:
        return gradient(start + step * direction)[0] - here

    metric, begin, first = np.zeros(len(start)), 0, np.zeros(0)
    by_counts = _counts(spec)
    for name, p in spec.parametrisations.items():
        part = slice(begin, begin + p.size)
        begin += p.size
        if by_counts and isinstance(p, Distribution) and p.groups is not None:
            found = p.groups.of_parameters(np.abs(p.rows.joined(counts)))
            prior = spec.priors.get(name)
            if isinstance(prior, Dirichlet):
                found = found + prior.pseudo_counts(p)
            metric[part] = np.where(found > SOME * p.groups.totals(found)[p.groups.group], found, 0.0)
        else:
            if not len(first):
                some = np.where(free, np.random.default_rng(1).standard_normal(len(start)), 0.0)
                first = difference(some, STEP) / STEP
            metric[part] = float(np.sqrt(np.mean(first[part] ** 2))) or 1.0
    metric = np.where(free, metric, 0.0)
    scale = np.where(metric > 0, metric, 1.0)
    return (lambda d, step: step * d + np.where(metric > 0, difference(d, step) / scale, 0.0)), metric


# -- kinks -------------------------------------------------------------------------------------------------------------

SELECTING = ("max", "min", "abs")
"""The operations of right sides that have kinks."""


def kinks(spec: Specification) -> str | None:
    """Where the objective has kinks, as far as the programs tell; None where it has none."""
    for program in (spec.program, *programs_of(spec.objective)):
        context = context_of(program)
        if program.semiring == "viterbi":
            return "where derivations of equal weight change places, as it is of the best"
        if program.semiring == "plain":
            for rule in context.rules.rules:
                if AGGREGATORS[rule.aggregator].kind == "select":
                    return f"where another contribution wins in `{rule.text}`"
                if _selects(rule.value):
                    return f"in the right side of `{rule.text}`"
    return None


def _selects(value: Expression) -> bool:
    match value:
        case Application(operator=operator, operands=operands):
            return operator in SELECTING or any(map(_selects, operands))
    return False
