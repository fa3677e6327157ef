"""Bundle adjustment: how far projections of points are from where cameras saw them, as in ADBench.

A camera is a rotation (three numbers: its axis, as long as its angle), a centre, a focal length, a principal point and
two coefficients of radial distortion. Residuals are weighted, and each weight has a residual of its own. ADBench wants
their sparse Jacobian; here the function is the sum of their squares, so that a gradient makes sense.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .program import Function, Program

CAMERAS, POINTS, OBSERVATIONS = 50, 500, 2000


def function(cameras: Any, points: Any, weights: Any, camera: Any, point: Any, seen: Any) -> Any:
    a, b, c, at_x, at_y, at_z, focal, centre_x, centre_y, k1, k2 = cameras[camera].T
    px, py, pz = points[point].T
    x, y, z = px - at_x, py - at_y, pz - at_z

    # Rodrigues: around the axis (a, b, c) by its length. Without rotation the quotients have limits: 1 and 1/2.
    square = a * a + b * b + c * c
    still = square == 0.0
    safe = np.where(still, 1.0, square)
    angle = np.sqrt(safe)
    cosine = np.where(still, 1.0, np.cos(angle))
    sine = np.where(still, 1.0, np.sin(angle) / angle)
    along = np.where(still, 0.5, (1.0 - cosine) / safe) * (a * x + b * y + c * z)
    turned_x = x * cosine + (b * z - c * y) * sine + a * along
    turned_y = y * cosine + (c * x - a * z) * sine + b * along
    turned_z = z * cosine + (a * y - b * x) * sine + c * along

    u, v = turned_x / turned_z, turned_y / turned_z
    radius = u * u + v * v
    distorted = focal * (1.0 + radius * (k1 + radius * k2))
    off_x = weights * (u * distorted + centre_x - seen[:, 0])
    off_y = weights * (v * distorted + centre_y - seen[:, 1])
    return np.sum(off_x**2) + np.sum(off_y**2) + np.sum((1.0 - weights**2) ** 2)


def inputs(rng: np.random.Generator, small: bool = False) -> tuple[Any, ...]:
    n, m, p = (3, 5, 12) if small else (CAMERAS, POINTS, OBSERVATIONS)
    cameras = np.concatenate(
        [
            0.3 * rng.normal(size=(n, 3)),
            rng.normal(size=(n, 3)) - [0.0, 0.0, 8.0],
            rng.uniform(0.8, 1.2, size=(n, 1)),
            0.1 * rng.normal(size=(n, 4)),
        ],
        axis=1,
    )
    return (
        cameras,
        rng.normal(size=(m, 3)),
        rng.uniform(0.5, 1.5, size=p),
        rng.integers(0, n, size=p),
        rng.integers(0, m, size=p),
        rng.normal(size=(p, 2)),
    )


def jax_function() -> Function:
    import jax.numpy as jnp

    def function(cameras: Any, points: Any, weights: Any, camera: Any, point: Any, seen: Any) -> Any:
        a, b, c, at_x, at_y, at_z, focal, centre_x, centre_y, k1, k2 = cameras[camera].T
        px, py, pz = points[point].T
        x, y, z = px - at_x, py - at_y, pz - at_z

        square = a * a + b * b + c * c
        still = square == 0.0
        safe = jnp.where(still, 1.0, square)
        angle = jnp.sqrt(safe)
        cosine = jnp.where(still, 1.0, jnp.cos(angle))
        sine = jnp.where(still, 1.0, jnp.sin(angle) / angle)
        along = jnp.where(still, 0.5, (1.0 - cosine) / safe) * (a * x + b * y + c * z)
        turned_x = x * cosine + (b * z - c * y) * sine + a * along
        turned_y = y * cosine + (c * x - a * z) * sine + b * along
        turned_z = z * cosine + (a * y - b * x) * sine + c * along

        u, v = turned_x / turned_z, turned_y / turned_z
        radius = u * u + v * v
        distorted = focal * (1.0 + radius * (k1 + radius * k2))
        off_x = weights * (u * distorted + centre_x - seen[:, 0])
        off_y = weights * (v * distorted + centre_y - seen[:, 1])
        return jnp.sum(off_x**2) + jnp.sum(off_y**2) + jnp.sum((1.0 - weights**2) ** 2)

    return function


PROGRAM = Program(
    name="bundle",
    what=f"bundle adjustment, {CAMERAS} cameras, {POINTS} points, {OBSERVATIONS:,} observations",
    function=function,
    inputs=inputs,
    argnums=(0, 1, 2),
    jax=jax_function,
)
