"""The determinant of a matrix of 40 by 40 by elimination, number by number, without pivots.

The matrices have large diagonals, so that no pivots are needed, and determinants near one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .program import Function, Program

N = 40


def function(matrix: Any) -> Any:
    a = matrix.copy()
    n = len(a)
    determinant = 1.0
    for k in range(n):
        determinant = determinant * a[k, k]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= factor * a[k, j]
    return determinant


def with_lists(matrix: Any) -> Any:
    """The same without writing into an array, which derivatives without a compiler do not allow."""
    n = len(matrix)
    a = [[matrix[i, j] for j in range(n)] for i in range(n)]
    determinant = 1.0
    for k in range(n):
        determinant = determinant * a[k][k]
        for i in range(k + 1, n):
            factor = a[i][k] / a[k][k]
            for j in range(k + 1, n):
                a[i][j] -= factor * a[k][j]
    return determinant


def inputs(rng: np.random.Generator, small: bool = False) -> tuple[Any, ...]:
    n = 6 if small else N
    return (np.eye(n) + rng.uniform(-0.5, 0.5, size=(n, n)) / n,)


def jax_function() -> Function:
    import jax
    import jax.numpy as jnp

    def function(matrix: Any) -> Any:
        """Each row in turn taken off all below it. Unrolled in Python it is quicker, but compiles for a minute."""
        rows = jnp.arange(len(matrix))

        @jax.checkpoint  # a backward pass that saves the matrices alone is the quicker one
        def step(a: Any, k: Any) -> Any:
            pivot = a[k, k]
            factors = jnp.where(rows > k, a[:, k] / pivot, 0.0)
            return a - factors[:, None] * a[k], pivot

        return jnp.prod(jax.lax.scan(step, matrix, rows)[1])

    return function


PROGRAM = Program(
    name="elimination",
    what=f"determinant by elimination, {N} by {N}",
    function=function,
    inputs=inputs,
    argnums=(0,),
    jax=jax_function,
    native="elimination.cpp",
    small=(with_lists, jax_function),
)
