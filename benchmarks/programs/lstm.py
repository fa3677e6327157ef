"""An LSTM that predicts the next of 100 characters: 32 units, an alphabet of 14; the log-likelihood of the text.

The state starts at zero. The gates stand in the order input, forget, output, candidate. What the characters give to
the gates does not depend on the state, so that it is one product before the loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .program import Function, Program

STEPS, UNITS, ALPHABET = 100, 32, 14


def sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def logsumexp(a: Any) -> Any:
    largest = np.max(a)
    return np.log(np.sum(np.exp(a - largest))) + largest


def function(from_input: Any, from_state: Any, bias: Any, to_output: Any, output_bias: Any, text: Any) -> Any:
    """`text` has a row for each character, with a one at its place in the alphabet."""
    steps, units = len(text) - 1, from_state.shape[0]
    given = text[:-1] @ from_input + bias
    h, c = np.zeros(units), np.zeros(units)
    total = 0.0
    for t in range(steps):
        gates = given[t] + h @ from_state
        opened = sigmoid(gates[: 3 * units])
        c = opened[units : 2 * units] * c + opened[:units] * np.tanh(gates[3 * units :])
        h = opened[2 * units :] * np.tanh(c)
        scores = h @ to_output + output_bias
        total = total + np.sum(scores * text[t + 1]) - logsumexp(scores)
    return total / steps


def inputs(rng: np.random.Generator, small: bool = False) -> tuple[Any, ...]:
    steps, units, alphabet = (6, 4, 3) if small else (STEPS, UNITS, ALPHABET)
    return (
        0.3 * rng.normal(size=(alphabet, 4 * units)),
        rng.normal(size=(units, 4 * units)) / np.sqrt(units),
        0.1 * rng.normal(size=4 * units),
        rng.normal(size=(units, alphabet)) / np.sqrt(units),
        0.1 * rng.normal(size=alphabet),
        np.eye(alphabet)[rng.integers(0, alphabet, steps + 1)],
    )


def jax_function() -> Function:
    import jax
    import jax.numpy as jnp

    def function(from_input: Any, from_state: Any, bias: Any, to_output: Any, output_bias: Any, text: Any) -> Any:
        units = from_state.shape[0]

        def step(state: Any, given: Any) -> Any:
            h, c = state
            gates = given + h @ from_state
            opened = jax.nn.sigmoid(gates[: 3 * units])
            c = opened[units : 2 * units] * c + opened[:units] * jnp.tanh(gates[3 * units :])
            h = opened[2 * units :] * jnp.tanh(c)
            return (h, c), h

        start = jnp.zeros(units), jnp.zeros(units)
        _, states = jax.lax.scan(step, start, text[:-1] @ from_input + bias, unroll=4)
        scores = jax.nn.log_softmax(states @ to_output + output_bias, axis=1)
        return jnp.sum(scores * text[1:]) / (len(text) - 1)

    return function


PROGRAM = Program(
    name="lstm",
    what=f"LSTM, {STEPS} steps, {UNITS} units, {ALPHABET} characters",
    function=function,
    inputs=inputs,
    argnums=(0, 1, 2, 3, 4),
    jax=jax_function,
    limit=4.0,
)
