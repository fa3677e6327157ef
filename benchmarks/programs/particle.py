"""A particle in the potential of two charges, integrated by Euler inside a Newton search: derivatives in derivatives.

After Pearlmutter and Siskind, "Using programming language theory to make automatic differentiation sound and
efficient" (2008): the particle flies off sideways and falls to the line y = 0; one of the charges may be moved, by w,
and Newton's method finds the w with which the particle comes down nearest to the origin. The force is the derivative of
the potential, Newton wants the first and the second derivative of the miss by w, and the gradient asked for is that of
the w found, by where and how the particle starts. None of the loops is of known length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import dynagrad as dg

from .program import Function, Program

STEP = 0.1
TOLERANCE = 1e-9


def miss(w: Any, x: Any, y: Any, vx: Any, vy: Any) -> Any:
    """The square of where the particle comes down."""

    def potential(x: Any, y: Any) -> Any:
        return 1.0 / np.sqrt((x - 10.0) ** 2 + (y - 10.0 + w) ** 2) + 1.0 / np.sqrt((x - 10.0) ** 2 + y**2)

    slope = dg.grad(potential, (0, 1))
    while y + STEP * vy > 0.0:
        along_x, along_y = slope(x, y)
        x, y = x + STEP * vx, y + STEP * vy
        vx, vy = vx - STEP * along_x, vy - STEP * along_y
    return (x - y / vy * vx) ** 2


def function(x: Any, y: Any, vx: Any, vy: Any) -> Any:
    first = dg.derivative(lambda w: miss(w, x, y, vx, vy))
    w, change = 0.0, 1.0
    while abs(change) > TOLERANCE:
        slope, curvature = dg.jvp(first, (w,), (1.0,))
        change = slope / curvature
        w = w - change
    return w


def inputs(rng: np.random.Generator, small: bool = False) -> tuple[Any, ...]:
    """Close to one another: where the number of steps changes with w, Newton's method may turn in a circle for ever."""
    x, y, vx = np.array([0.5, 8.0, 0.75]) * (1.0 + rng.uniform(-2e-4, 2e-4, 3))
    return float(x), float(y), float(vx), float(rng.uniform(-2e-4, 2e-4))


def jax_function() -> Function:
    import jax
    import jax.numpy as jnp

    def miss(w: Any, x: Any, y: Any, vx: Any, vy: Any) -> Any:
        def potential(x: Any, y: Any) -> Any:
            return 1.0 / jnp.sqrt((x - 10.0) ** 2 + (y - 10.0 + w) ** 2) + 1.0 / jnp.sqrt((x - 10.0) ** 2 + y**2)

        def above(state: Any) -> Any:
            _, y, _, vy = state
            return y + STEP * vy > 0.0

        def step(state: Any) -> Any:
            x, y, vx, vy = state
            along_x, along_y = jax.grad(potential, (0, 1))(x, y)
            return x + STEP * vx, y + STEP * vy, vx - STEP * along_x, vy - STEP * along_y

        x, y, vx, vy = jax.lax.while_loop(above, step, (x, y, vx, vy))
        return (x - y / vy * vx) ** 2

    def function(x: Any, y: Any, vx: Any, vy: Any) -> Any:
        def first(w: Any) -> Any:
            return jax.jvp(lambda w: miss(w, x, y, vx, vy), (w,), (1.0,))[1]

        def newton(state: Any) -> Any:
            w, _ = state
            slope, curvature = jax.jvp(first, (w,), (1.0,))
            change = slope / curvature
            return w - change, change

        return jax.lax.while_loop(lambda state: abs(state[1]) > TOLERANCE, newton, (0.0, 1.0))[0]

    return function


PROGRAM = Program(
    name="particle",
    what="particle in a potential, Euler inside Newton",
    function=function,
    inputs=inputs,
    argnums=(0, 1, 2, 3),
    jax=jax_function,
    native="particle.cpp",
    only_forward="loops of unknown length have no reverse derivative in jax, so its gradient is jacfwd",
)
