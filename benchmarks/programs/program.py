"""The record of a benchmark program, which each file of this folder makes. No program and no timing lives here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[..., Any]


@dataclass(frozen=True)
class Program:
    """A function in plain Python, the same in jax, and how to get arguments for both.

    `inputs(rng)` makes fresh arguments of the same shapes; `inputs(rng, small=True)` makes smaller ones, for
    derivatives without a compiler. `argnums` are the arguments that the gradient is by. `jax()` imports jax and gives
    the function, not yet compiled. `native` names a file beside the program's, hand-written C++ with `function` and
    `gradient`.
    """

    name: str
    what: str
    function: Function
    inputs: Callable[..., tuple[Any, ...]]
    argnums: tuple[int, ...]
    jax: Callable[[], Function]
    native: str | None = None
    limit: float = 3.0
    """What the compiled gradient may cost, in compiled functions."""
    only_forward: str = ""
    """Why jax cannot go backward, where it cannot. Its gradient is then `jax.jacfwd`."""
    jax_tuned: Callable[[], Function] | None = None
    """Another function in jax that is quicker, where its gradient is not."""
    small: tuple[Function, Callable[[], Function]] | None = None
    """The function and its jax for small inputs, where the size is no argument."""


def vary(rng: np.random.Generator, *values: float) -> tuple[float, ...]:
    """Numbers a little off the given ones."""
    return tuple(float(v) for v in np.array(values) * rng.uniform(0.99, 1.01, len(values)))
