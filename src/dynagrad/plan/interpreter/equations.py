"""The least solution of a system of polynomial equations, x = F(x): linear algebra where it is linear, else Newton's
method from zero (Etessami and Yannakakis 2009).

A system is a list of equations, an equation a sum of monomials, a monomial a coefficient and its unknowns. What is here
knows nothing of rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...errors import Error

Monomial = tuple[float, tuple[int, ...]]
Equations = Sequence[Sequence[Monomial]]
Vector = npt.NDArray[np.float64]

MOST_STEPS = 500
ROUNDING = 4e-16


def least_solution(equations: Equations) -> Vector | None:
    """The least solution where coefficients are not negative, else that to which iteration leads; None where iteration
    has to find out.

    >>> least_solution([[(0.5, ()), (0.25, (0,))]])
    array([0.66666667])
    >>> least_solution([[(1.0, ()), (1.0, (0,))]])
    Traceback (most recent call last):
    ...
    dynagrad.errors.Error: a cycle has no finite value
    """
    reached = support(equations)
    equations = [[m for m in each if n in reached and reached.issuperset(m[1])] for n, each in enumerate(equations)]
    linear = all(len(unknowns) <= 1 for each in equations for _, unknowns in each)
    positive = all(c >= 0 for each in equations for c, _ in each)
    x = np.zeros(len(equations))
    if not positive and (not linear or _radius(jacobian(equations, x)) >= 1):
        return None
    for _ in range(MOST_STEPS):
        step = _solved(np.eye(len(x)) - jacobian(equations, x), apply(equations, x) - x)
        x = x + step
        if not np.isfinite(x).all():
            break
        if (abs(step) <= ROUNDING * abs(x)).all():
            if positive and (x < 0).any():
                break
            return np.asarray(x)
        if positive and linear and (x < -ROUNDING).any():
            break
    else:
        if not positive or (x >= 0).all():
            return np.asarray(x)  # it is rounding that moves it
    raise Error("a cycle has no finite value")


def apply(equations: Equations, x: Vector) -> Vector:
    """F(x)."""
    return np.array([math.fsum(c * math.prod(x[i] for i in unknowns) for c, unknowns in each) for each in equations])


def jacobian(equations: Equations, x: Vector) -> npt.NDArray[np.float64]:
    """The partial derivatives of F at x, a row for each equation."""
    partials = np.zeros((len(equations), len(equations)))
    for n, each in enumerate(equations):
        for c, unknowns in each:
            for place, i in enumerate(unknowns):
                partials[n, i] += c * math.prod(x[j] for at, j in enumerate(unknowns) if at != place)
    return partials


def support(equations: Equations) -> set[int]:
    """The unknowns that some constant reaches through coefficients that are not zero: all others are zero."""
    reached: set[int] = set()
    while True:
        fresh = {n for n, each in enumerate(equations) if any(c and reached.issuperset(u) for c, u in each)} - reached
        if not fresh:
            return reached
        reached |= fresh


def least_logs(equations: Equations) -> list[float]:
    """The logs of the least solution of a system whose coefficients are logs of weights.

    Each unknown is scaled by its best derivation, so that nothing overflows or underflows.

    >>> [round(x, 12) for x in least_logs([[(-800.0, ()), (math.log(0.5), (0,))]])]
    [-799.30685281944]
    """
    best = [-math.inf] * len(equations)
    for _ in equations:
        for n, each in enumerate(equations):
            best[n] = max([best[n], *(c + sum(best[i] for i in unknowns) for c, unknowns in each)])
    scaled = [
        [
            (math.exp(power), unknowns)
            for c, unknowns in each
            if (power := c + sum(best[i] for i in unknowns)) > -math.inf and (power := power - best[n]) < 700
        ]
        for n, each in enumerate(equations)
    ]
    solution = least_solution(scaled)
    assert solution is not None, "weights are not negative"
    return [math.log(y) + top if y > 0 else -math.inf for y, top in zip(solution.tolist(), best, strict=True)]


def _radius(matrix: npt.NDArray[np.float64]) -> float:
    return float(max(abs(np.linalg.eigvals(matrix)), default=0.0))


def _solved(matrix: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(np.linalg.solve(matrix, right))
    except np.linalg.LinAlgError:
        raise Error("a cycle has no finite value") from None


def solve_linear(matrix: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The solution of (I - matrix) x = right."""
    return _solved(np.eye(len(matrix)) - matrix, right)
