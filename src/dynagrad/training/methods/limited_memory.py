"""Limited-memory BFGS without bounds: the method of Liu and Nocedal 1989 in the compact form of Byrd, Nocedal and
Schnabel 1994 ("Representations of quasi-Newton matrices").

It goes over the steps that it remembers three times an iteration, each time as one product of matrices. scipy's method
is for bounds: it goes over them element by element, and takes about three times as long. Which of the two is used, and
what is told of its steps, is decided in `descent.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..parameters.rows import Doubles

Objective = Callable[[Doubles], tuple[float, Doubles]]
"""What is made small, with its gradient."""

PAIRS = 10
"""How many of the last steps are remembered."""
DECREASE, CURVATURE = 1e-4, 0.9
"""Wolfe's conditions: at least so much of the decrease that the slope promises, and at most so much of the slope."""
TRIALS = 20
"""How many points of a line are looked at."""
WIDEN, INNER = 4.0, 0.1
"""By how much a step grows while no end of the valley is seen; how near the ends of an interval nothing is tried."""
FLAT = 1e-12
"""A gradient whose numbers are no larger is zero."""


@dataclass(frozen=True, eq=False)
class _Point:
    """A point of a line: how far along, and what is there. `slope` is the derivative along the line."""

    along: float
    x: Doubles
    value: float
    gradient: Doubles
    slope: float


class LastSteps:
    """The last steps, and how the gradient changed along each: what is known of the curvature."""

    def __init__(self, size: int) -> None:
        self._pairs = np.zeros((2, PAIRS, size))
        self._inner = np.zeros((2, PAIRS, PAIRS))
        """Of the changes of the gradient with steps, and with each other."""
        self._order: list[int] = []
        """The places of the pairs, the oldest first."""

    @property
    def empty(self) -> bool:
        return not self._order

    def forget(self) -> None:
        self._order.clear()

    def add(self, step: Doubles, change: Doubles) -> None:
        """Remembers a step in place of the oldest; not one along which the objective does not curve upwards."""
        curvature = float(step @ change)
        if not curvature > np.finfo(float).eps * float(change @ change):
            return
        at = len(self._order) if len(self._order) < PAIRS else self._order.pop(0)
        self._order.append(at)
        self._pairs[0, at], self._pairs[1, at] = step, change
        steps, changes = self._products(change)
        self._inner[0, :, at] = steps
        self._inner[1, :, at] = self._inner[1, at, :] = changes

    def _products(self, x: Doubles) -> Doubles:
        """Of all steps, and of all changes, with a vector; those that are not there yet are zero."""
        found: Doubles = (self._pairs.reshape(2 * PAIRS, -1) @ x).reshape(2, PAIRS)
        return found

    def direction(self, gradient: Doubles) -> Doubles:
        """Minus the inverse of the Hessian, as far as it is known, times the gradient."""
        order = self._order
        if not order:
            return -gradient
        steps, changes = self._products(gradient)[:, order]
        mixed, squares = self._inner[:, order][:, :, order]
        upper, diagonal = np.triu(mixed), np.diagonal(mixed)
        scale = diagonal[-1] / squares[-1, -1]
        of_changes = np.linalg.solve(upper, steps)
        of_steps = np.linalg.solve(upper.T, diagonal * of_changes + scale * (squares @ of_changes - changes))
        weights = np.zeros((2, PAIRS))
        weights[0, order], weights[1, order] = -of_steps, scale * of_changes
        found: Doubles = weights.ravel() @ self._pairs.reshape(2 * PAIRS, -1)
        found -= scale * gradient
        return found


def limited_memory(
    objective: Objective,
    start: Doubles,
    told: Callable[[Doubles], None],
    expects: Callable[[float], None] | None = None,
) -> Doubles:
    """Where the objective is least, as far as digits reach; `told` is called with the point after each step.

    `expects` is called before with the decrease that the curvature promises from there on.

    >>> found = limited_memory(lambda x: (float((x - 3) @ (x - 3)), 2 * (x - 3)), np.zeros(2), lambda x: None)
    >>> found.round(6).tolist()
    [3.0, 3.0]
    """
    x = np.array(start, np.float64)
    value, gradient = objective(x)
    memory, fresh = LastSteps(len(x)), True
    direction = -gradient
    while len(x) and float(np.abs(gradient).max()) > FLAT:
        slope = float(gradient @ direction)
        reached = None
        if slope < 0:
            first = 1.0 / float(np.sqrt(gradient @ gradient)) if fresh else 1.0
            reached = _along(objective, _Point(0.0, x, value, gradient, slope), direction, first)
        if reached is None:
            if fresh:
                return x  # there are no digits left
            memory.forget()
            fresh, direction = True, -gradient
            continue
        memory.add(reached.x - x, reached.gradient - gradient)
        x, value, gradient, fresh = reached.x, reached.value, reached.gradient, False
        direction = memory.direction(gradient)
        if expects is not None:
            expects(-0.5 * float(gradient @ direction))
        told(x)
    return x


def _along(objective: Objective, begin: _Point, direction: Doubles, step: float) -> _Point | None:
    """A point along a direction of descent at which Wolfe's conditions hold; else the lowest that was found, if any.

    As in Nocedal and Wright, "Numerical optimization", section 3.5: `low` has the least value so far, and there is such
    a point between it and `high`, if that is known.
    """
    low, high = begin, None
    for _ in range(TRIALS):
        x = begin.x + step * direction
        value, gradient = objective(x)
        point = _Point(step, x, value, gradient, float(gradient @ direction))
        lower = value <= begin.value + DECREASE * step * begin.slope and value < low.value
        if not (lower and np.isfinite(value) and np.isfinite(gradient).all()):
            high = point
        elif abs(point.slope) <= -CURVATURE * begin.slope:
            return point
        else:
            if high is None:
                high = low if point.slope >= 0 else None
            elif point.slope * (high.along - low.along) >= 0:
                high = low
            low = point
        step = low.along + WIDEN * (low.along or step) if high is None else _between(low, high)
        if step in (low.along, high.along if high is not None else np.inf):
            break
    return low if low is not begin else None


def _between(low: _Point, high: _Point) -> float:
    """Where the cubic through two points, with their slopes, is least; not too near either.

    Beyond an edge where the objective is not finite there is no cubic: there steps get much shorter until one has come
    back, and then the interval is halved.
    """
    width = high.along - low.along
    part = 0.5 if low.along else INNER
    if np.isfinite(high.value) and np.isfinite(high.slope):
        part = 0.5
        mean = low.slope + high.slope - 3 * (high.value - low.value) / width
        root = mean * mean - low.slope * high.slope
        if root >= 0:
            root = float(np.copysign(np.sqrt(root), width))
            below = high.slope - low.slope + 2 * root
            part = 1 - (high.slope + root - mean) / below if below else 0.5
    return low.along + width * min(max(part, INNER), 1 - INNER)
