"""An ordinary differential equation in 200,000 steps of Runge and Kutta's classical method: hares and lynxes.

The equations are those of Lotka and Volterra; the function is the product of both numbers at the end.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .program import Function, Program, vary

STEPS = 200_000
H = 2e-4


def slope(x: Any, y: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return x * (a - b * y), y * (d * x - c)


def solution(steps: int) -> Function:
    """The function for a number of steps."""

    def function(a: Any, b: Any, c: Any, d: Any, x: Any, y: Any) -> Any:
        for _ in range(steps):
            x1, y1 = slope(x, y, a, b, c, d)
            x2, y2 = slope(x + 0.5 * H * x1, y + 0.5 * H * y1, a, b, c, d)
            x3, y3 = slope(x + 0.5 * H * x2, y + 0.5 * H * y2, a, b, c, d)
            x4, y4 = slope(x + H * x3, y + H * y3, a, b, c, d)
            x = x + H / 6.0 * (x1 + 2.0 * x2 + 2.0 * x3 + x4)
            y = y + H / 6.0 * (y1 + 2.0 * y2 + 2.0 * y3 + y4)
        return x * y

    return function


def inputs(rng: np.random.Generator, small: bool = False) -> tuple[Any, ...]:
    return vary(rng, 1.1, 0.4, 0.4, 0.1, 10.0, 5.0)


def jax_solution(steps: int, unroll: int = 1) -> Function:
    """Each step is taken again when going backward: kept in whole, they cost a hundred times the value.

    Unrolled, the value is quicker, and the gradient far slower.
    """
    import jax

    def function(a: Any, b: Any, c: Any, d: Any, x: Any, y: Any) -> Any:
        @jax.checkpoint
        def step(state: Any, _: None) -> Any:
            x, y = state
            x1, y1 = slope(x, y, a, b, c, d)
            x2, y2 = slope(x + 0.5 * H * x1, y + 0.5 * H * y1, a, b, c, d)
            x3, y3 = slope(x + 0.5 * H * x2, y + 0.5 * H * y2, a, b, c, d)
            x4, y4 = slope(x + H * x3, y + H * y3, a, b, c, d)
            x = x + H / 6.0 * (x1 + 2.0 * x2 + 2.0 * x3 + x4)
            y = y + H / 6.0 * (y1 + 2.0 * y2 + 2.0 * y3 + y4)
            return (x, y), None

        (x, y), _ = jax.lax.scan(step, (x, y), None, length=steps, unroll=unroll)
        return x * y

    return function


PROGRAM = Program(
    name="ode",
    what=f"ODE of {STEPS:,} steps of Runge and Kutta",
    function=solution(STEPS),
    inputs=inputs,
    argnums=(0, 1, 2, 3, 4, 5),
    jax=partial(jax_solution, STEPS),
    jax_tuned=partial(jax_solution, STEPS, 8),
    native="ode.cpp",
    small=(solution(300), partial(jax_solution, 300)),
)
