"""Where an objective has kinks: read off programs, or, where functions of users may have some, off slopes."""

from __future__ import annotations

import numpy as np

from ...charts.program import context_of
from ...errors import Error
from ...rules.aggregators import AGGREGATORS, HeadKind
from ...rules.syntax import KINKED, Application, Expression
from ..objectives.evaluation import programs_of
from ..parameters.rows import Doubles
from ..problem import Problem
from ..specification import Specification, Theta, ravelled, unravelled


def kinks(spec: Specification) -> str | None:
    """Where the objective has kinks, as far as the programs tell; None where it has none."""
    for program in (spec.program, *programs_of(spec.objective)):
        context = context_of(program)
        if program.semiring == "viterbi":
            return "where derivations of equal weight change places, as it is of the best"
        if program.semiring == "plain":
            for rule in context.rules.rules:
                if AGGREGATORS[rule.aggregator].kind is HeadKind.SELECT:
                    return f"where another contribution wins in `{rule.text}`"
                if _selects(rule.value):
                    return f"in the right side of `{rule.text}`"
    return None


def _selects(value: Expression) -> bool:
    match value:
        case Application(operator=operator, operands=operands):
            return operator in KINKED or any(map(_selects, operands))
    return False


FAR, NEAR = 1e-5, 1e-7
"""How far to both sides slopes are looked at, relative to parameters: at a kink they differ by as much however near."""
AS_MUCH, SOME = 0.3, 1e-3
"""What part of the difference is left near by, and what part of the gradient it is, where there is a kink."""
FIRST, LONGER, MOST = 1e-9, 8.0, 16
"""The first step of the search for one, relative to parameters; how much longer the next is; and how many there are."""


def kink_near(problem: Problem, theta: Theta) -> str | None:
    """Whether there is a kink where the slope along the gradient of some parameters turns; None where it is smooth."""
    held = {name: np.isneginf(x) for name, x in theta.items()}
    whole = ravelled(theta)
    start = np.where(np.isneginf(whole), 0.0, whole)

    def gradient(vector: Doubles) -> Doubles:
        at = {name: np.where(held[name], -np.inf, x) for name, x in unravelled(vector, theta).items()}
        with np.errstate(all="ignore"):  # a neighbour may have no value
            return ravelled(problem.spec.pull(at, problem.objective(at)[1]))

    try:
        here = gradient(start)
        length = float(np.linalg.norm(here))
        if not 0 < length < np.inf:
            return None
        scale = max(1.0, float(np.linalg.norm(start)))

        def slope(t: float) -> float:
            return float(gradient(start + t * scale * here / length) @ here) / length

        low, high = 0.0, FIRST
        for _ in range(MOST):
            if slope(high) <= 0:
                break
            low, high = high, LONGER * high
        else:
            return None
        while high - low > NEAR:
            middle = (low + high) / 2
            low, high = (middle, high) if slope(middle) > 0 else (low, middle)
        far, near = (abs(slope(high + h) - slope(low - h)) for h in (FAR, NEAR))
    except Error:  # a neighbour has no value: nothing is known
        return None
    # where one has none, a comparison with NaN is false
    if near > AS_MUCH * far and near > SOME * length:
        return "and one where it ended, across which its slope changes at once"
    return None
