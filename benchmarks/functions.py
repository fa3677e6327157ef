"""Eager derivatives of Python functions, beside autograd and torch.func, and how their cost grows.

Each function is written once, with numpy as an argument, so that own and peer compute the same; ours gets numpy itself.
"""

from __future__ import annotations

import importlib
import tracemalloc
from collections.abc import Callable
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import dynagrad as dg

from .common import Row, Skip, medians, timed

Function = Callable[..., Any]


def peer(name: str) -> ModuleType:
    """A peer's module. Raises Skip where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Skip(f"{error.name} is not installed") from error


def repeated(times: int, work: Callable[[], object]) -> Callable[[], float]:
    """The seconds of a call, from several in a row where one is too short to be timed."""

    def several() -> None:
        for _ in range(times):
            work()

    return lambda: timed(several) / times


# -- loops over single numbers -----------------------------------------------------------------------------------------

ITERATIONS = 2000


def products_and_sums(np: Any, x: Any) -> Any:
    y = x
    for _ in range(ITERATIONS):
        y = (y * 0.9 + x) * 0.5 - 0.1
    return y


def only_numbers(np: Any, x: Any) -> Any:
    y = x
    for _ in range(ITERATIONS):
        y = (y + x) * x - y * x
    return y


def quotients(np: Any, x: Any) -> Any:
    y = x
    for _ in range(ITERATIONS):
        y = 1.0 / (y + 2.0) + x / 3.0
    return y


def elementary(np: Any, x: Any) -> Any:
    y = x
    for _ in range(ITERATIONS):
        y = np.exp(np.tanh(np.sin(y) * x))
    return y


def choices(np: Any, x: Any) -> Any:
    y = x
    for _ in range(ITERATIONS):
        y = (y - 2.0) ** 2 * 0.3 if y > 1.0 else 1.0 + y * x
    return y


LOOPS: dict[str, Function] = {
    "* + * - with floats": products_and_sums,
    "+ * - * of numbers": only_numbers,
    "/ + and /": quotients,
    "np.exp, np.tanh, np.sin, *": elementary,
    "- ** * or + *, by a comparison": choices,
}


def scalars() -> list[Row]:
    """Gradients of loops over single numbers, four operations in each of 2,000 rounds."""
    autograd, their_numpy = peer("autograd"), peer("autograd.numpy")
    rows = []
    worst = 0.0
    for name, f in LOOPS.items():
        own, theirs = dg.grad(partial(f, np)), autograd.grad(partial(f, their_numpy))
        worst = max(worst, abs(own(0.3) - theirs(0.3)) / abs(theirs(0.3)))
        times = medians(repeated(1, partial(own, 0.3)), repeated(1, partial(theirs, 0.3)))
        what = f"gradient of a loop of {ITERATIONS:,} rounds: {name}"
        rows.append(Row(what, times[0], "s", "autograd", times[1], 0.12))
    return [*rows, Row("gradients of loops: worst relative difference", worst, "", target=1e-9, note="from autograd")]


# -- arrays ------------------------------------------------------------------------------------------------------------


def perceptron(new: bool = False) -> tuple[Function, tuple[Any, ...]]:
    """The cross entropy of a perceptron 784-100-10 on 128 rows, which may be in a new array each time; its weights."""
    random = np.random.default_rng(0)
    x, labels = random.normal(size=(128, 784)), np.eye(10)[random.integers(0, 10, 128)]
    weights = (
        random.normal(size=(784, 100)) / 28.0,
        random.normal(size=100),
        random.normal(size=(100, 10)) / 10.0,
        random.normal(size=10),
    )

    def f(np: Any, logsumexp: Function, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        rows = x.copy() if new else x
        logits = np.dot(np.tanh(np.dot(rows, w1) + b1), w2) + b2
        return np.mean(logsumexp(logits, axis=1) - np.sum(logits * labels, axis=1))

    return f, weights


def mixture() -> tuple[Function, tuple[Any, ...]]:
    """The log-likelihood of a mixture of 25 Gaussians at 1,000 points in 10 dimensions, and its parameters.

    These are the logits of the components, their means, the logarithms of the diagonals of the factors of their
    precisions, and what is below the diagonals.
    """
    random = np.random.default_rng(0)
    points, components, d = 1000, 25, 10
    x, below, diagonal = random.normal(size=(points, d)), np.tril(np.ones((d, d)), -1), np.eye(d)
    parameters = (
        random.normal(size=components),
        random.normal(size=(components, d)),
        0.1 * random.normal(size=(components, d)),
        0.1 * random.normal(size=(components, d, d)),
    )

    def f(np: Any, logsumexp: Function, logits: Any, means: Any, logs: Any, factors: Any) -> Any:
        whole = factors * below + np.expand_dims(np.exp(logs), 2) * diagonal
        apart = np.expand_dims(x, 1) - means
        turned = np.einsum("kij,nkj->nki", whole, apart)
        each = logits + np.sum(logs, axis=1) - 0.5 * np.sum(turned**2, axis=2)
        return np.sum(logsumexp(each, axis=1)) - points * logsumexp(logits)

    return f, parameters


def logistic() -> tuple[Function, tuple[Any, ...]]:
    """The loss of a logistic regression on 1,000 rows of 20, and its weights."""
    random = np.random.default_rng(0)
    x, labels = random.normal(size=(1000, 20)), random.integers(0, 2, 1000).astype(float)

    def f(np: Any, logsumexp: Function, w: Any, b: Any) -> Any:
        z = np.dot(x, w) + b
        return np.mean(np.logaddexp(0.0, z) - labels * z) + 0.01 * np.sum(w**2)

    return f, (random.normal(size=20), 0.5)


MODELS: dict[str, tuple[Callable[[], tuple[Function, tuple[Any, ...]]], int]] = {  # with gradients in a measurement
    "perceptron 784-100-10, 128 rows": (perceptron, 3),
    "perceptron 784-100-10, 128 rows in a new array": (partial(perceptron, True), 3),
    "mixture of 25 Gaussians, 1,000 points in 10 dimensions": (mixture, 1),
    "logistic regression, 1,000 by 20": (logistic, 20),
}


def arrays() -> list[Row]:
    """Gradients of functions of arrays, by all their parameters."""
    autograd = peer("autograd")
    their_numpy, their_logsumexp = peer("autograd.numpy"), peer("autograd.scipy.special").logsumexp
    rows, worst = [], 0.0
    for name, (make, times) in MODELS.items():
        f, parameters = make()
        places = tuple(range(len(parameters)))
        own = dg.value_and_grad(partial(f, np, dg.special.logsumexp), places)
        theirs = autograd.value_and_grad(lambda p, f=f: f(their_numpy, their_logsumexp, *p))
        (value, gradient), (their_value, their_gradient) = own(*parameters), theirs(parameters)
        worst = max(worst, abs(value - their_value) / abs(their_value))
        for a, b in zip(gradient, their_gradient, strict=True):
            worst = max(worst, float(np.max(np.abs(a - b)) / np.max(np.abs(b))))
        ours, peers = medians(
            repeated(times, partial(own, *parameters)), repeated(times, partial(theirs, parameters)), repeats=101
        )
        rows.append(Row(f"gradient: {name}", ours, "s", "autograd", peers, 0.8))
    return [*rows, Row("gradients of arrays: worst relative difference", worst, "", target=1e-9, note="from autograd")]


# -- high orders, and derivatives in derivatives -----------------------------------------------------------------------


def taylor() -> list[Row]:
    """The 32nd derivative of tanh beside the 8th."""
    high, low = dg.derivative(np.tanh, 32), dg.derivative(np.tanh, 8)
    ours, peers = medians(repeated(10, partial(high, 0.5)), repeated(10, partial(low, 0.5)))
    return [Row("derivative(tanh, 32)", ours, "s", "derivative(tanh, 8)", peers, 16.0)]


DEPTHS = range(1, 9)


def product(np: Any, x: Any) -> Any:
    return x * x * x * np.sin(x)


def several(np: Any, x: Any) -> Any:
    return np.sin(x) * np.exp(0.3 * x) + x / (1.0 + x * x)


def nested() -> list[Row]:
    """Nested gradients, beside torch.func with its default number of threads."""
    torch = peer("torch")
    at = torch.tensor(0.7, dtype=torch.float64)
    rows = []
    for name, f in {"x**3 sin(x)": product, "sin(x) exp(0.3 x) + x / (1 + x**2)": several}.items():
        own: Function = partial(f, np)
        theirs: Function = partial(f, SimpleNamespace(sin=torch.sin, exp=torch.exp))
        found: list[tuple[float, float, int]] = []
        worst = 0.0
        for depth in DEPTHS:
            own, theirs = dg.grad(own), torch.func.grad(theirs)
            expected = theirs(at).item()
            worst = max(worst, abs(own(0.7) - expected) / abs(expected))
            once = timed(partial(theirs, at))
            times, repeats = max(1, int(2e-3 / once)), 15 if once < 0.05 else 3
            ours, peers = medians(
                repeated(times, partial(own, 0.7)), repeated(times, partial(theirs, at)), repeats=repeats
            )
            found.append((ours, peers, depth))
        for ours, peers, depth in found:
            rows.append(Row(f"gradients of {name}, {depth} deep", ours, "s", "torch.func", peers, 1.0))
        rows.append(
            Row(f"gradients of {name}: worst relative difference", worst, "", target=1e-6, note="from torch.func")
        )
    return rows


# -- memory ------------------------------------------------------------------------------------------------------------


def memory() -> list[Row]:
    """Bytes of tape for each operation on single numbers, of four kinds, before the sweep frees them."""
    held: dict[str, int] = {}

    def f(x: Any) -> Any:
        y = x
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(ITERATIONS):
            y = (y * 0.9 + x) * x - 0.1
        held["bytes"] = tracemalloc.get_traced_memory()[0] - before
        return y

    tracemalloc.start()
    dg.grad(f)(0.3)
    tracemalloc.stop()
    return [Row("memory of a tape, each operation on single numbers", held["bytes"] / (4 * ITERATIONS), "bytes")]
