"""A saddle point by gradient descent in gradient descent: the derivative of a loop that follows a derivative.

After Pearlmutter and Siskind, "Using programming language theory to make automatic differentiation sound and
efficient" (2008): min over x of the max over y of a payoff. The inner descent follows the gradient of the payoff; the
outer one the gradient of what the inner one finds, which goes backward through its loop. The gradient asked for is that
of where the outer one ends, by the coefficients of the payoff, so that it goes backward through both. None of the
loops is of known length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import dynagrad as dg

from .program import Function, Program, vary

RATE = 0.1
TOLERANCE = 1e-12  # of the square of a gradient


def payoff(x1: Any, x2: Any, y1: Any, y2: Any, p: Any, q: Any, r: Any) -> Any:
    return (x1 - p) ** 2 + (x2 - q) ** 2 + x1 * y1 + r * x2 * y1 * y2 - y1**2 - y2**2


def descend(slope: Function, a: Any, b: Any) -> Any:
    """Along a gradient until there is hardly any."""
    along_a, along_b = slope(a, b)
    while along_a**2 + along_b**2 > TOLERANCE:
        a, b = a - RATE * along_a, b - RATE * along_b
        along_a, along_b = slope(a, b)
    return a, b


def function(p: Any, q: Any, r: Any) -> Any:
    def worst(x1: Any, x2: Any) -> Any:
        def loss(y1: Any, y2: Any) -> Any:
            return -payoff(x1, x2, y1, y2, p, q, r)

        y1, y2 = descend(dg.grad(loss, (0, 1)), 1.0, 1.0)
        return payoff(x1, x2, y1, y2, p, q, r)

    x1, x2 = descend(dg.grad(worst, (0, 1)), 1.0, 1.0)
    return x1 * x2


def inputs(rng: np.random.Generator, small: bool = False) -> tuple[Any, ...]:
    return vary(rng, 1.5, 0.5, 0.7)


def jax_function() -> Function:
    import jax

    def descend(slope: Function, a: Any, b: Any) -> Any:
        def step(state: Any) -> Any:
            a, b, along_a, along_b = state
            a, b = a - RATE * along_a, b - RATE * along_b
            return a, b, *slope(a, b)

        def steep(state: Any) -> Any:
            return state[2] ** 2 + state[3] ** 2 > TOLERANCE

        a, b, _, _ = jax.lax.while_loop(steep, step, (a, b, *slope(a, b)))
        return a, b

    def function(p: Any, q: Any, r: Any) -> Any:
        def worst(x1: Any, x2: Any) -> Any:
            y1, y2 = descend(jax.grad(lambda y1, y2: -payoff(x1, x2, y1, y2, p, q, r), (0, 1)), 1.0, 1.0)
            return payoff(x1, x2, y1, y2, p, q, r)

        x1, x2 = descend(jax.jacfwd(worst, (0, 1)), 1.0, 1.0)
        return x1 * x2

    return function


PROGRAM = Program(
    name="saddle",
    what="saddle point, gradient descent in gradient descent",
    function=function,
    inputs=inputs,
    argnums=(0, 1, 2),
    jax=jax_function,
    native="saddle.cpp",
    only_forward="loops of unknown length have no reverse derivative in jax, so its gradients through them are jacfwd",
)
