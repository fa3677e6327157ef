"""The log-likelihood of a mixture of Gaussians with a Wishart prior: 1,000 points, 10 dimensions, 25 components.

The objective is that of ADBench (Srajer, Kukelova and Fitzgibbon, "A benchmark of selected algorithmic differentiation
tools on some problems in computer vision and machine learning", 2018): the logits of the components, their means, and
the Cholesky factors of their inverse covariances, as the logarithms of the diagonal and then what is below it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .program import Function, Program

POINTS, D, COMPONENTS = 1000, 10, 25
GAMMA, M = 1.0, 0  # of the prior


def places(d: int) -> tuple[Any, Any]:
    """For each entry of a factor its place among the parameters of the factor, and 1.0 below the diagonal."""
    place, below = np.zeros((d, d), dtype=int), np.tril(np.ones((d, d)), -1)
    column, row = np.triu_indices(d, 1)  # ADBench counts down the columns
    place[row, column] = d + np.arange(len(row))
    return place, below


def constant(points: int, d: int, components: int) -> float:
    """What does not depend on the parameters."""
    n = d + M + 1
    multivariate = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * (n - j)) for j in range(d))
    prior = n * d * (math.log(GAMMA) - 0.5 * math.log(2.0)) - multivariate
    return -0.5 * points * d * math.log(2.0 * math.pi) - components * prior


def logsumexp(a: Any) -> Any:
    """Along the first axis."""
    largest = np.max(a, axis=0)
    return np.log(np.sum(np.exp(a - largest), axis=0)) + largest


def function(logits: Any, means: Any, factors: Any, x: Any, place: Any, below: Any, rest: float) -> Any:
    (points, d), components = x.shape, len(logits)
    logs = factors[:, :d]
    diagonal = np.exp(logs)
    lower = factors[:, place] * below
    whole = lower + diagonal[:, :, None] * np.eye(d)
    centres = np.sum(whole * means[:, None, :], axis=2)  # each mean, turned by its factor
    turned = (whole.reshape(components * d, d) @ x.T).reshape(components, d, points) - centres[:, :, None]
    weights = np.sum(logs, axis=1)
    each = (logits + weights)[:, None] - 0.5 * np.sum(turned**2, axis=1)
    likelihood = np.sum(logsumexp(each)) - points * logsumexp(logits)
    prior = 0.5 * GAMMA**2 * (np.sum(diagonal**2) + np.sum(lower**2)) - M * np.sum(weights)
    return likelihood + prior + rest


def inputs(rng: np.random.Generator, small: bool = False) -> tuple[Any, ...]:
    points, d, components = (20, 3, 4) if small else (POINTS, D, COMPONENTS)
    return (
        rng.normal(size=components),
        rng.normal(size=(components, d)),
        0.3 * rng.normal(size=(components, d + d * (d - 1) // 2)),
        rng.normal(size=(points, d)),
        *places(d),
        constant(points, d, components),
    )


def jax_function() -> Function:
    import jax
    import jax.numpy as jnp

    logsumexp = jax.scipy.special.logsumexp

    def function(logits: Any, means: Any, factors: Any, x: Any, place: Any, below: Any, rest: Any) -> Any:
        (points, d), components = x.shape, len(logits)
        logs = factors[:, :d]
        diagonal = jnp.exp(logs)
        lower = factors[:, place] * below
        whole = lower + diagonal[:, :, None] * jnp.eye(d)
        centres = jnp.sum(whole * means[:, None, :], axis=2)
        turned = (whole.reshape(components * d, d) @ x.T).reshape(components, d, points) - centres[:, :, None]
        weights = jnp.sum(logs, axis=1)
        each = (logits + weights)[:, None] - 0.5 * jnp.sum(turned**2, axis=1)
        likelihood = jnp.sum(logsumexp(each, axis=0)) - points * logsumexp(logits)
        prior = 0.5 * GAMMA**2 * (jnp.sum(diagonal**2) + jnp.sum(lower**2)) - M * jnp.sum(weights)
        return likelihood + prior + rest

    return function


PROGRAM = Program(
    name="mixture",
    what=f"Gaussian mixture, {POINTS:,} points in {D} dimensions, {COMPONENTS} components",
    function=function,
    inputs=inputs,
    argnums=(0, 1, 2),
    jax=jax_function,
)
