"""Array programs beside jax: value, gradient and Hessian-vector product of nine kernels, compiled; a short filter, with
and without compiling; determinants.

The kernels are in `programs/kernels.py`, the same text for both libraries; both compute in float64 with the threads
that they take by themselves. All figures of a kernel come from one run, in which the contenders take turns.
`python -m benchmarks.kernels kalman sorting` measures these alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import dynagrad as dg

from .common import Row, medians
from .compiled import in_turn
from .functions import peer
from .programs.check import off
from .programs.kernels import KERNELS, Function, Kernel, kalman

PARTS = ("value", "gradient", "Hessian-vector product")
SIZES = (3, 20, 100, 200)  # of determinants


def parts(function: Function, grad: Any, jvp: Any) -> list[Function]:
    """A kernel, its gradient, and its Hessian-vector product by the last argument."""

    def along(x: Any, *rest: Any) -> Any:
        *others, direction = rest
        return jvp(lambda x: grad(function)(x, *others), (x,), (direction,))[1]

    return [function, grad(function), along]


def rows(kernel: Kernel) -> list[Row]:
    jax = peer("jax")
    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)
    arguments = kernel.inputs(rng)
    direction = rng.normal(size=arguments[0].shape)
    given = [arguments, arguments, (*arguments, direction)]
    theirs = kernel.jax() if kernel.jax else kernel.make(jax.numpy)
    ours = [dg.compile(f) for f in parts(kernel.make(np), dg.grad, dg.jvp)]
    peers = [jax.jit(f) for f in parts(theirs, jax.grad, jax.jvp)]
    works: list[Callable[[], float]] = []
    worst = 0.0
    for f, g, xs in zip(ours, peers, given, strict=True):
        ys = [jax.numpy.asarray(x) for x in xs]
        worst = max(worst, off(np.asarray(f(*xs)), np.asarray(g(*ys))))
        works += [in_turn([partial(f, *xs)]), in_turn([lambda g=g, ys=ys: jax.block_until_ready(g(*ys))])]
    times = medians(*works)
    table = [
        Row(f"{kernel.what}: {part}", times[2 * i], "s", "jax.jit", times[2 * i + 1], 1.0)
        for i, part in enumerate(PARTS)
    ]
    return [*table, Row(f"{kernel.what}: worst relative difference", worst, "", target=1e-9, note="from jax")]


def determinants() -> list[Row]:
    """The gradient of a determinant, which uses the inverse from the same factors."""
    found = []
    for n in SIZES:
        a = np.random.default_rng(n).normal(size=(n, n)) / np.sqrt(n)
        works = [in_turn([partial(dg.compile(f), a)]) for f in (np.linalg.det, dg.grad(np.linalg.det))]
        value, gradient = medians(*works)
        found.append(Row(f"determinant of {n} by {n}, compiled: gradient", gradient, "s", "the function", value, 3.0))
    return found


def short_filter() -> list[Row]:
    """A Kalman filter of 15 steps, whose loop is unrolled: compiled and eager."""
    plain = kalman(np)
    *model, seen = KERNELS["kalman"].inputs(np.random.default_rng(0))
    given = (*model, seen[:15])
    found = []
    for part, f in zip(PARTS[:2], (plain, dg.grad(plain)), strict=True):
        own, other = medians(in_turn([partial(dg.compile(f), *given)]), in_turn([partial(f, *given)]))
        found.append(Row(f"Kalman filter, 15 steps: {part}", own, "s", "without compiling", other, 0.2))
    return found


def kernels(names: Sequence[str] = ()) -> list[Row]:
    """The rows of the named kernels, or of all."""
    found = [row for name in names or KERNELS for row in rows(KERNELS[name])]
    return found if names else [*found, *short_filter(), *determinants()]


if __name__ == "__main__":
    for row in kernels(sys.argv[1:]):
        theirs = "" if row.peers is None else f"{row.peer} {row.peers:.3g}"
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        print(f"{row.what:70} {row.own:9.3g} {row.unit:1} {theirs:24} {ratio:>6} {row.target} {row.verdict}")
