"""What Newton's method would still gain, by the curvature all around a point: by Lanczos' method on the Hessian, from
the gradient on, with differences of gradients for its products.

The last steps of a method show the curvature only where they went. Conjugate gradients go along few directions, and
hardly along those that are nearly flat, such as towards probabilities of zero, where much may be left.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..parameters.rows import Doubles, Flags

PRODUCTS = 10
"""The most gradients that are spent on it."""
STEP, LEAST = 1e-4, 1e-8
"""The length of the differences, and the least of it that is more than rounding, relative to parameters."""
ALIKE = 1e-6
"""What is left of a product, beside its length, where the directions that matter are all known."""


def newtons_gain(
    slope_at: Callable[[Doubles], Doubles],
    x: Doubles,
    slope: Doubles,
    free: Flags,
    room: Callable[[Doubles], float] = lambda direction: np.inf,
) -> float:
    """How much lower an objective is at its least than at `x`, where its gradient is `slope`, by `slope_at` nearby.

    Only what is `free` may move, and along a direction only as far as there is `room`. Where the objective does not
    curve upwards the gain is bounded by the slope along as many parameters as there are.

    >>> found = newtons_gain(lambda x: np.array([2.0, 0.02]) * x, np.ones(2), np.array([2.0, 0.02]), np.ones(2, bool))
    >>> round(found, 6)
    1.01
    """
    slope = np.where(free, slope, 0.0)
    length, far = float(np.linalg.norm(slope)), max(1.0, float(np.linalg.norm(x)))
    if not 0 < length < np.inf:
        return length
    basis: list[Doubles] = []
    images: list[Doubles] = []
    vector = slope / length
    for _ in range(min(PRODUCTS, int(free.sum()))):
        sign = 1.0 if room(vector) >= room(-vector) else -1.0
        step = sign * min(max(STEP, LEAST * far) / float(np.abs(vector).max()), room(sign * vector))
        image = np.where(free, (slope_at(x + step * vector) - slope) / step, 0.0) if step else np.full(len(x), np.nan)
        if not np.isfinite(image).all():
            return length * far
        basis.append(vector)
        images.append(image)
        rest = image
        for _ in range(2):  # twice is enough for all digits
            for other in basis:
                rest = rest - (other @ rest) * other
        left = float(np.linalg.norm(rest))
        if left <= ALIKE * float(np.linalg.norm(image)):
            break
        vector = rest / left
    inner = np.array(basis) @ np.array(images).T
    curvatures, vectors = np.linalg.eigh((inner + inner.T) / 2)
    along = length * np.abs(vectors[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        curved = np.where(curvatures > 0, along**2 / (2 * curvatures), np.inf)
    return float(np.minimum(curved, along * far).sum())
