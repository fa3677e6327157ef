"""Holds the programs against each other: Python, jax and C++, values and gradients.

Run it as `python -m benchmarks.programs.check`, with names or for all. Gradients without a compiler are taken of small
inputs, as they take long.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import dynagrad as dg

from . import PROGRAMS
from .native import Native
from .program import Function, Program


def off(found: Any, expected: Any) -> float:
    """The largest difference, over the largest of what was expected."""
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    return max(float(np.max(np.abs(np.asarray(a) - b)) / np.max(np.abs(b))) for a, b in pairs)


def in_jax(program: Program, make: Callable[[], Function] | None = None) -> tuple[Function, Function]:
    """The function and the gradient, compiled, in double precision."""
    import jax

    jax.config.update("jax_enable_x64", True)
    derive = jax.jacfwd if program.only_forward else jax.grad
    function = (make or program.jax)()
    return jax.jit(function), jax.jit(derive(function, program.argnums))


def by_hand(program: Program, arguments: Sequence[Any]) -> tuple[float, tuple[Any, ...]]:
    """Value and gradient of the C++."""
    assert program.native is not None
    work, out = Native(program.native).gradient(Native.flat(arguments))
    value = work()
    ends = np.cumsum([np.size(a) for a in arguments])
    return value, tuple(g.reshape(np.shape(a)) for g, a in zip(np.split(out, ends[:-1]), arguments, strict=True))


def check(program: Program, rng: np.random.Generator) -> dict[str, float]:
    """Relative differences, by what was compared."""
    found = {}
    function, gradient = in_jax(program)
    arguments = program.inputs(rng)
    value, slopes = function(*arguments), gradient(*arguments)
    found["value, Python and jax"] = off(program.function(*arguments), value)
    if program.native is not None:
        native = Native(program.native)
        by_value = native.function(Native.flat(arguments))()
        other, by_gradient = by_hand(program, arguments)
        found["value, C++ and jax"] = max(off(by_value, value), off(other, value))
        found["gradient, C++ and jax"] = off(by_gradient, slopes)
    plain, make = program.small or (program.function, program.jax)
    small = program.inputs(rng, small=True)
    _, gradient = in_jax(program, make)
    start = time.perf_counter()
    own = dg.grad(plain, program.argnums)(*small)
    seconds = time.perf_counter() - start
    found[f"gradient, dg.grad without a compiler ({seconds:.3g} s) and jax, small"] = off(own, gradient(*small))
    return found


def main(names: list[str]) -> int:
    wrong = 0
    for name in names or PROGRAMS:
        for what, difference in check(PROGRAMS[name], np.random.default_rng()).items():
            wrong += not difference < 1e-7
            print(f"{name:12} {difference:8.1e}  {what}{'' if difference < 1e-7 else '  WRONG'}", flush=True)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
