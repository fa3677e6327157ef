"""What is left to gain, by the last steps of the objective; methods that know the curvature say it themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
