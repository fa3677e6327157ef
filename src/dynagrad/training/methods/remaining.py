"""What a gradient method has still to gain, as far as its steps tell: the decrease that Newton's method would promise.

The curvature is what the gradient changed by along the last steps, as `limited_memory.py` keeps it. That holds where
the objective is smooth. A gradient that did not shrink, though steps are small, speaks of a kink or of an edge: then
what is left is bounded by its length, which an objective with kinks seldom brings near zero.

Before a run is said to have converged, the curvature is looked at anew, also where steps did not go
(`convergence/newton.py`): but for L-BFGS, which itself steps by the curvature that its last steps showed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..convergence.newton import newtons_gain
from ..parameters.rows import Doubles
from .limited_memory import FLAT, LastSteps

SHRUNK = 0.01
"""How short the gradient has to be, beside the longest of the run, for its curvature to be believed."""


class Remaining:
    """What is left to gain, told of a point after each step; `bounds` are those of the numbers that the method has."""

    def __init__(self, bounds: Sequence[tuple[float | None, float | None]] | None) -> None:
        self._low, self._high = None, None
        if bounds is not None:
            self._low = np.array([-np.inf if low is None else low for low, _ in bounds])
            self._high = np.array([np.inf if high is None else high for _, high in bounds])
        self._longest = 0.0
        self._memory: LastSteps | None = None
        self._at: tuple[Doubles, Doubles] | None = None

    def begin(self, x: Doubles, slope: Doubles) -> None:
        """Where the run begins."""
        self._at = np.array(x), np.array(slope)
        self._longest = float(np.linalg.norm(self._free(x, slope)))

    def after(self, x: Doubles, slope: Doubles, expected: float | None = None) -> float:
        """What is left after a step: the decrease that the method expects, or what the last steps tell."""
        free = self._free(x, slope)
        length = float(np.linalg.norm(free))
        self._longest = max(self._longest, length)
        decrease = self._decrease(x, slope, free) if expected is None else expected
        if length <= FLAT:
            return 0.0
        if decrease is None or length > SHRUNK * self._longest:
            return max(decrease or 0.0, length * max(1.0, float(np.linalg.norm(x))))
        return decrease

    def anew(self, x: Doubles, slope: Doubles, slope_at: Callable[[Doubles], Doubles]) -> float:
        """What is left by the curvature around a point, for which some more gradients are asked."""
        free = self._free(x, slope)
        if float(np.linalg.norm(free)) <= FLAT:
            return 0.0
        with np.errstate(all="ignore"):
            return newtons_gain(slope_at, x, slope, free == slope, lambda direction: self._room(x, direction))

    def _room(self, x: Doubles, direction: Doubles) -> float:
        """How far it is to a bound."""
        if self._low is None or self._high is None:
            return np.inf
        ends = np.where(direction > 0, self._high, self._low)
        return float(np.where(direction == 0, np.inf, (ends - x) / direction).min())

    def _free(self, x: Doubles, slope: Doubles) -> Doubles:
        """The gradient without what bounds hold back."""
        if self._low is None or self._high is None:
            return slope
        return np.where(((x <= self._low) & (slope > 0)) | ((x >= self._high) & (slope < 0)), 0.0, slope)

    def _decrease(self, x: Doubles, slope: Doubles, free: Doubles) -> float | None:
        if self._at is None:
            return None
        before, self._at = self._at, (np.array(x), np.array(slope))
        if self._memory is None:
            self._memory = LastSteps(len(x))
        self._memory.add(x - before[0], slope - before[1])
        return None if self._memory.empty else -0.5 * float(free @ self._memory.direction(free))
