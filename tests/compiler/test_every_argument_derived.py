"""Derivatives with each optional argument of numpy's functions, of arrays' methods, and of ufuncs and their methods: of
running and of compiled functions, forward and backward, against differences of what numpy computes. A call is
compiled in one of the two modes.

The calls are those of `argument_cases.py`; what is refused, by a `dg.Error`, is refused there, too. Costs a few
seconds: nothing is compiled, calls are specialised and interpreted.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
import dynagrad.numpy as dnp
from compiler.argument_cases import LINE, POSITIVE, UNCHANGING, calls_of, given_in, put, result
from compiler.test_every_argument import WALKED, of_methods, of_ufuncs
from dynagrad.compiler.specialised import specialised
from dynagrad.ir.interpret import run
from dynagrad.ir.types import KINDS, arrays

Pure = Callable[..., tuple[Any, ...]]
STEP = 1e-6


def reals(x: Any) -> list[Any]:
    """The arrays of reals in the arguments of a call."""
    if isinstance(x, np.ndarray):
        return [x] if x.dtype == np.float64 else []
    parts = list(x.values()) if isinstance(x, dict) else x
    return [y for part in parts for y in reals(part)] if isinstance(parts, tuple | list) else []


def of_arrays(f: Any, given: Any, named: Any) -> Pure:
    """A call as a function of the arrays of reals in it."""

    def call(*xs: Any) -> tuple[Any, ...]:
        left = list(xs)
        found = f(*put(given, left), **put(named, left))
        return tuple(found) if isinstance(found, tuple | list) else (found,)

    return call


def slopes(call: Pure, xs: list[Any], vs: list[Any]) -> list[Any] | None:
    """How results change along a direction; None at a kink, where both sides differ."""
    low, at, high = (call(*[x + h * v for x, v in zip(xs, vs, strict=True)]) for h in (-STEP, 0.0, STEP))
    below, above = ([(b - a) / STEP for a, b in zip(*both, strict=True)] for both in ((low, at), (at, high)))
    if not all(np.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(below, above, strict=True)):
        return None
    return [(a + b) / 2 for a, b in zip(below, above, strict=True)]


def derived(call: Pure, xs: Any, vs: Any, ws: Any, forward: bool) -> tuple[Any, Any]:
    """The value, and the tangent or else the cotangent."""
    if forward:
        return dg.jvp(call, xs, vs)
    value, back = dg.vjp(call, *xs)
    return value, back(ws)


def compiled(call: Pure, xs: Any, vs: Any, ws: Any, forward: bool) -> Any:
    types = [tuple(arrays(KINDS["real"], np.shape(x)) for x in of) for of in (xs, vs, ws)]
    made = specialised(lambda xs, vs, ws: derived(call, xs, vs, ws, forward), types)
    return made.output(run(made.graph, [np.asarray(x) for of in (xs, vs, ws) for x in of]))


def wrong_derivatives(what: str, f: Any, given: Any, named: Any) -> list[str] | None:
    """What is wrong with the derivatives of a call; None where differences do not say them."""
    xs, call = reals((given, named)), of_arrays(f, given, named)
    if not xs or not all(np.isfinite(x).all() for x in xs):
        return None
    wanted = result(call, tuple(xs), {})
    if isinstance(wanted, Exception) or any(np.asarray(x).dtype != np.float64 for x in wanted):
        return None
    draw = np.random.default_rng(1)
    vs, ws = ([draw.standard_normal(np.shape(x)) for x in of] for of in (xs, wanted))
    changes = slopes(call, xs, vs)
    if changes is None:
        return None
    weighed = sum(float(np.sum(w * d)) for w, d in zip(ws, changes, strict=True))
    found = []
    for way, forward in ((derived, True), (derived, False), (compiled, len(named) == 0 or len(what) % 2 == 0)):
        try:
            value, slope = way(call, tuple(xs), tuple(vs), tuple(ws), forward)
        except dg.Error:
            continue
        right = all(np.allclose(a, b, rtol=1e-9) for a, b in zip(value, wanted, strict=True))
        if forward:
            right &= all(np.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(slope, changes, strict=True))
        else:
            back = sum(float(np.sum(np.asarray(c) * v)) for c, v in zip(slope, vs, strict=True))
            right &= bool(np.isclose(back, weighed, rtol=1e-3, atol=1e-5))
        found.append("" if right else f"{what}{given}{named} {way.__name__} {forward=}: {value} {slope}, not {changes}")
    return found


def of_functions() -> Iterator[tuple[str, Any, Any, Any]]:
    for f in WALKED:
        tried: Counter[str] = Counter()
        for given, named in calls_of(f, (POSITIVE, LINE)):
            if not tried[str(named)] and not named.keys() & UNCHANGING.keys() and given_in(f, given, named):
                tried[str(named)] += 1
                yield f.__name__, f, given, named


def free_sign(what: str, named: dict[str, Any]) -> bool:
    """Whether numpy's choice of signs is free, or what it computes is not what it stands for."""
    return what == "svd" and "hermitian" in named


@pytest.mark.parametrize("some", range(4))
def test_derivatives_with_each_argument(some: int) -> None:
    small = POSITIVE[:3, :3]
    calls = [of_functions, lambda: of_methods(small), lambda: of_ufuncs([small]), lambda: into_arrays(small)][some]
    found: list[str] = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for what, f, given, named in calls():
            if not free_sign(what, named):
                found += wrong_derivatives(what, f, given, named) or []
    assert not [wrong for wrong in found if wrong]
    assert len(found) > (700, 70, 120, 60)[some]


# -- results that are written into arrays ------------------------------------------------------------------------------

MASK = POSITIVE[:3, :3] > 1
PLACES = ([0, 0, 1], [1, 1, 2])
INTO: dict[str, tuple[Any, tuple[int, ...], Callable[[Any, Any], Any]]] = {
    "multiply": (None, (3, 3), lambda x, z: np.multiply(x, x, out=z)),
    "multiply, a tuple": (None, (3, 3), lambda x, z: np.multiply(x, x, out=(z,))),
    "multiply, by place": (None, (3, 3), lambda x, z: np.multiply(x, x, z)),
    "sum": (None, (3,), lambda x, z: np.sum(x * x, axis=0, out=z)),
    "sum, some": (None, (3,), lambda x, z: np.sum(x * x, axis=0, out=z, where=MASK, initial=2.0)),
    "reduce": (None, (3,), lambda x, z: np.add.reduce(x * x, axis=1, out=z)),
    "accumulate": (None, (3, 3), lambda x, z: np.multiply.accumulate(x, axis=1, out=z)),
    "outer": (None, (3, 3), lambda x, z: np.multiply.outer(x[0], x[1], out=z)),
    "cumsum": (None, (3, 3), lambda x, z: np.cumsum(x * x, axis=1, out=z)),
    "dot": (None, (3, 3), lambda x, z: np.dot(x, x, out=z)),
    "einsum": (None, (3, 3), lambda x, z: np.einsum("ij,jk->ik", x, x, out=z)),
    "clip": (None, (3, 3), lambda x, z: np.clip(x, 1.1, 2.9, out=z)),
    "take": (None, (2, 3), lambda x, z: np.take(x, [0, 2], axis=0, out=z)),
    "mean": (None, (3,), lambda x, z: np.mean(x, axis=0, out=z)),
    "concatenate": (None, (6, 3), lambda x, z: np.concatenate([x, x * x], out=z)),
    "stack": (None, (2, 3, 3), lambda x, z: np.stack([x, x * x], out=z)),
    "method": (None, (3,), lambda x, z: (x * x).sum(0, None, z)),
    "add, some": (1, (3, 3), lambda x, z: np.add(x, x, out=z, where=MASK)),
    "log, some": (1, (3, 3), lambda x, z: np.log(x - 1.0, out=z, where=MASK)),
    "add.at": (1, (3, 3), lambda x, z: np.add.at(z, PLACES, x[0])),
    "subtract.at": (1, (3, 3), lambda x, z: np.subtract.at(z, [0, 0, 1], x[2])),
    "multiply.at": (1, (3, 3), lambda x, z: np.multiply.at(z, PLACES, x[0])),
    "negative.at": (1, (3, 3), lambda x, z: np.negative.at(z, [0, 0, 1])),
    "maximum.at": (1, (3, 3), lambda x, z: np.maximum.at(z, [0, 0, 1], x[2])),
    "itself": (1, (3, 3), lambda x, z: np.cumprod(z, axis=0, out=z)),
    "a part": (1, (3, 3), lambda x, z: np.multiply(z[0], z[1], out=z[2])),
    "more axes": (None, (2, 3, 3), lambda x, z: np.multiply(x, x, out=z)),
}
"""What is written into an array, which starts as zeros or as x."""


def into_arrays(x: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    for what, (start, shape, write) in INTO.items():

        def call(x: Any, start: Any = start, shape: Any = shape, write: Any = write) -> Any:
            here = np if type(x) is np.ndarray else dnp
            z = here.zeros(shape) if start is None else here.array(x)
            write(x, z)
            return z

        yield what, call, (x,), {}
