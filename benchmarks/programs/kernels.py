"""Array programs as people write them in numpy, and the same in jax: nine kernels of machine learning and statistics.

Each is written once, in a function of the namespace (`numpy`, or `jax.numpy`), so that both compile the same text; but
for the filter, whose loop is a `lax.scan` in jax. Values, gradients and Hessian-vector products are compared by
`benchmarks/kernels.py`; nothing is timed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[..., Any]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Kernel:
    """A function of arrays whose result is one real, differentiated by its first argument.

    `make(np)` is the function for a namespace; `jax()` is the one for jax where it is another.
    """

    name: str
    what: str
    make: Callable[[Any], Function]
    inputs: Callable[[np.random.Generator], tuple[Array, ...]]
    jax: Callable[[], Function] | None = None


def logsumexps(np: Any) -> Function:
    """Along each of three axes, and along all."""

    def logsumexp(x: Any, axis: Any) -> Any:
        largest = np.max(x, axis=axis, keepdims=True)
        return np.log(np.sum(np.exp(x - largest), axis=axis)) + np.squeeze(largest, axis)

    def function(x: Any) -> Any:
        along = [np.sum(logsumexp(x, axis) ** 2) for axis in (0, 1, 2)]
        return along[0] + along[1] + along[2] + logsumexp(x.reshape(-1), 0)

    return function


def cross_entropy(np: Any) -> Function:
    def function(logits: Any, targets: Any) -> Any:
        shifted = logits - np.max(logits, axis=1, keepdims=True)
        logs = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
        return -np.mean(np.sum(targets * logs, axis=1))

    return function


def attention(np: Any) -> Function:
    def function(x: Any, queries: Any, keys: Any, values: Any) -> Any:
        q, k, v = x @ queries, x @ keys, x @ values
        scores = q @ k.T * (1.0 / math.sqrt(queries.shape[1]))
        weights = np.exp(scores - np.max(scores, axis=1, keepdims=True))
        weights = weights / np.sum(weights, axis=1, keepdims=True)
        return np.sum((weights @ v) ** 2)

    return function


STATES, SEEN = 4, 2


def kalman(np: Any) -> Function:
    """The log-likelihood of 200 observations under a linear Gaussian model, by its transition matrix."""

    def function(a: Any, c: Any, q: Any, r: Any, y: Any) -> Any:
        mean, cov, total = np.zeros(STATES), np.eye(STATES), 0.0
        for t in range(y.shape[0]):
            mean, cov = a @ mean, a @ cov @ a.T + q
            s = c @ cov @ c.T + r
            off = y[t] - c @ mean
            gain = np.linalg.solve(s, c @ cov).T
            total = total - 0.5 * (off @ np.linalg.solve(s, off) + np.linalg.slogdet(s)[1])
            mean, cov = mean + gain @ off, cov - gain @ s @ gain.T
        return total

    return function


def kalman_in_jax() -> Function:
    import jax
    import jax.numpy as jnp

    def function(a: Any, c: Any, q: Any, r: Any, y: Any) -> Any:
        def step(carry: Any, seen: Any) -> Any:
            mean, cov = carry
            mean, cov = a @ mean, a @ cov @ a.T + q
            s = c @ cov @ c.T + r
            off = seen - c @ mean
            gain = jnp.linalg.solve(s, c @ cov).T
            part = -0.5 * (off @ jnp.linalg.solve(s, off) + jnp.linalg.slogdet(s)[1])
            return (mean + gain @ off, cov - gain @ s @ gain.T), part

        return jnp.sum(jax.lax.scan(step, (jnp.zeros(STATES), jnp.eye(STATES)), y)[1])

    return function


def cholesky(np: Any) -> Function:
    def function(a: Any, w: Any) -> Any:
        return np.sum(np.linalg.cholesky(0.5 * (a + a.T)) * w)  # of which triangle libraries differ

    return function


def process(np: Any) -> Function:
    """The log-likelihood of a Gaussian process with a squared exponential kernel, by the logs of three parameters."""

    def function(theta: Any, squares: Any, y: Any) -> Any:
        amplitude, length, noise = np.exp(theta[0]), np.exp(theta[1]), np.exp(theta[2])
        k = amplitude * np.exp(squares * (-0.5 / (length * length))) + noise * np.eye(y.shape[0])
        lower = np.linalg.cholesky(k)
        white = np.linalg.solve(lower, y)
        return -0.5 * np.sum(white * white) - np.sum(np.log(np.diag(lower)))

    return function


def convolution(np: Any) -> Function:
    """A batch of images with one filter of 5 by 5, as a sum of 25 shifted products."""

    def function(kernel: Any, images: Any) -> Any:
        total = 0.0
        for i in range(5):
            for j in range(5):
                total = total + kernel[i, j] * images[:, i : i + 24, j : j + 24]
        return np.sum(np.tanh(total))

    return function


def sorting(np: Any) -> Function:
    def function(x: Any, w: Any) -> Any:
        return np.sum(np.sort(x) ** 2 * w)

    return function


def bodies(np: Any) -> Function:
    """The energy of 100 bodies, all pairs."""

    def function(x: Any, masses: Any) -> Any:
        apart = x[:, None, :] - x[None, :, :]
        squares = np.sum(apart * apart, axis=2) + 0.01
        return -0.5 * np.sum(masses[:, None] * masses[None, :] / np.sqrt(squares))

    return function


def _positive(rng: np.random.Generator, n: int) -> Array:
    x = rng.normal(size=(n, n))
    return x @ x.T / n + np.eye(n)


def _squares(rng: np.random.Generator, n: int) -> Array:
    x = rng.normal(size=(n, 2))
    return np.asarray(((x[:, None] - x[None]) ** 2).sum(-1))


def _kalman_inputs(rng: np.random.Generator) -> tuple[Array, ...]:
    a = 0.9 * np.linalg.qr(rng.normal(size=(STATES, STATES)))[0]
    return a, rng.normal(size=(SEEN, STATES)), np.eye(STATES) * 0.1, np.eye(SEEN) * 0.5, rng.normal(size=(200, SEEN))


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel(
            "logsumexp",
            "logsumexp of 64 by 64 by 64 along each axis",
            logsumexps,
            lambda r: (r.normal(size=(64,) * 3),),
        ),
        Kernel(
            "entropy",
            "softmax cross-entropy, 1,024 by 1,000",
            cross_entropy,
            lambda r: (r.normal(size=(1024, 1000)), r.dirichlet(np.ones(1000), 1024)),
        ),
        Kernel(
            "attention",
            "attention head, 256 by 64",
            attention,
            lambda r: (r.normal(size=(256, 64)), *(r.normal(size=(64, 64)) / 8.0 for _ in range(3))),
        ),
        Kernel("kalman", "Kalman filter, 200 steps", kalman, _kalman_inputs, kalman_in_jax),
        Kernel("cholesky", "Cholesky, 500 by 500", cholesky, lambda r: (_positive(r, 500), r.normal(size=(500, 500)))),
        Kernel(
            "process",
            "Gaussian process, 500 points",
            process,
            lambda r: (np.array([0.1, -0.2, -1.0]), _squares(r, 500), r.normal(size=500)),
        ),
        Kernel(
            "convolution",
            "convolution of 28 by 28 with 5 by 5, a batch of 64",
            convolution,
            lambda r: (r.normal(size=(5, 5)), r.normal(size=(64, 28, 28))),
        ),
        Kernel(
            "sorting", "sorting 100,000 numbers", sorting, lambda r: (r.normal(size=100_000), r.normal(size=100_000))
        ),
        Kernel("bodies", "energy of 100 bodies", bodies, lambda r: (r.normal(size=(100, 3)), r.uniform(0.5, 2.0, 100))),
    )
}
