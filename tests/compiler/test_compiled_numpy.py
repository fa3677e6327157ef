"""The functions of `eager/numpy/numpy_cases.py` compiled: values, gradients or tangents, and Hessian-vector products by
forward over reverse or reverse over forward, in turns; `test_fifty_digits_compiled.py` takes some in all four mixes.

The oracle is the eager derivative, which `eager/numpy/test_fifty_digits.py` and `eager/numpy/test_numpy.py` compare
with differences. One compiled function has many cases; in all this costs four seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from eager.numpy.numpy_cases import MORE

SIZE = 24  # cases in one compiled function
GROUPS = [MORE[i : i + SIZE] for i in range(0, len(MORE), SIZE)]


def flat(result: Any) -> Any:
    parts = result if isinstance(result, tuple | list) else [result]
    return np.concatenate([np.ravel(part) for part in parts])


def seen(f: Callable[..., Any], ways: Any, points: Any, directions: Any) -> Any:
    """The values, and what modes over each other make of their weighted sum to second order."""
    values = flat(f(*points))
    weights = np.cos(1.0 + np.arange(values.shape[0]))
    every = tuple(range(len(points)))

    def g(*xs: Any) -> Any:
        return np.sum(flat(f(*xs)) * weights)

    def forward(*xs: Any) -> Any:
        return dg.jvp(g, xs, directions)[1]

    found = [values]
    if "forward over reverse" in ways:
        found += dg.jvp(dg.grad(g, every), points, directions)
    if "reverse over forward" in ways:
        found += dg.value_and_grad(forward, every)(*points)
    return found


WAYS = ("forward over reverse", "reverse over forward")


def ways_of(case: Any) -> tuple[str, ...]:
    """Cases of one function take turns in how they are differentiated; one that has no other goes both ways."""
    same = [other for other in MORE if other[0] == case[0]]
    place = next(k for k, other in enumerate(same) if other is case)
    return WAYS if len(same) == 1 else WAYS[place % 2 :][:1]


def of_group(group: Any) -> Callable[..., Any]:
    functions = [(f, ways_of(case)) for case in group for f in case[1:2]]

    def every(points: Any, directions: Any) -> Any:
        return [seen(f, ways, p, d) for (f, ways), p, d in zip(functions, points, directions, strict=True)]

    return every


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0][0])
def test_compiled_as_uncompiled_to_second_order(group: Any) -> None:
    points = [tuple(np.array(x, float) if np.ndim(x) else float(x) for x in case[2:]) for case in group]
    rng = np.random.default_rng(3)
    directions = [tuple(rng.normal(size=np.shape(x)) if np.ndim(x) else 0.7 for x in xs) for xs in points]
    both = of_group(group)
    found, wanted = dg.compile(both)(points, directions), both(points, directions)
    for case, a, b in zip(group, found, wanted, strict=True):
        for x, y in zip(a, b, strict=True):
            for p, q in zip(*(part if isinstance(part, tuple) else (part,) for part in (x, y)), strict=True):
                assert np.shape(p) == np.shape(q), case[0]
                np.testing.assert_allclose(p, q, rtol=1e-8, atol=1e-9, err_msg=case[0])
