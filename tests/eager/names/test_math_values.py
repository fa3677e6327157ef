"""Every function of Python's `math`, with every option, at ordinary numbers and at edges: with derivatives, and
compiled, it has the value that `math` has.

Slopes are held against differences in `test_numpy_names.py`. Costs one compiled program, some five seconds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import dynagrad as dg
import dynagrad.math as own

Call = Callable[[Any, Any], Any]
"""A call of a function of a module, `math` or ours, with a number."""
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.7, 1e-300, 1e300, 5e-324, 1e16, 700.0, 0.1, math.inf, -math.inf, math.nan]
INF = math.inf
WITH: dict[str, list[Call]] = {
    "atan2": [lambda m, x: m.atan2(x, 2.0), lambda m, x: m.atan2(1.0, x), lambda m, x: m.atan2(x, -1)],
    "comb": [lambda m, x: m.comb(5, 2) * x],
    "copysign": [lambda m, x: m.copysign(x, -1.0), lambda m, x: m.copysign(3.0, x)],
    "dist": [lambda m, x: m.dist([x], [1.0]), lambda m, x: m.dist((x, 1), (0.5, x)), lambda m, x: m.dist([x], [x, x])],
    "factorial": [lambda m, x: m.factorial(5) * x],
    "fma": [lambda m, x: m.fma(x, 2.0, 1.0), lambda m, x: m.fma(2.0, 3.0, x)],
    "fmod": [lambda m, x: m.fmod(x, 0.4), lambda m, x: m.fmod(5.0, x), lambda m, x: m.fmod(x, INF)],
    "fsum": [
        lambda m, x: m.fsum([x, 0.1, 0.2]),
        lambda m, x: m.fsum([1e100, x, -1e100]),
        lambda m, x: m.fsum(y for y in (x, 1.0)),
    ],
    "gcd": [lambda m, x: m.gcd(4, 6) * x],
    "hypot": [lambda m, x: m.hypot(x), lambda m, x: m.hypot(x, 3.0), lambda m, x: m.hypot(1.0, x, 2.0)],
    "isclose": [
        lambda m, x: m.isclose(x, 1.0),
        lambda m, x: m.isclose(x, 1.0, rel_tol=0.6),
        lambda m, x: m.isclose(1.0, x, abs_tol=0.51),
        lambda m, x: m.isclose(x, x, rel_tol=0.0, abs_tol=0.0),
    ],
    "isqrt": [lambda m, x: m.isqrt(17) * x],
    "lcm": [lambda m, x: m.lcm(4, 6) * x],
    "ldexp": [
        lambda m, x: m.ldexp(x, 3),
        lambda m, x: m.ldexp(x, 1024),
        lambda m, x: m.ldexp(x, -1074),
        lambda m, x: m.ldexp(x, -2500),
    ],
    "log": [lambda m, x: m.log(x), lambda m, x: m.log(x, 2.0), lambda m, x: m.log(3.0, x)],
    "nextafter": [lambda m, x: m.nextafter(x, 9.0), lambda m, x: m.nextafter(2.0, x)],
    "perm": [lambda m, x: m.perm(5, 2) * x],
    "pow": [lambda m, x: m.pow(x, 2.5), lambda m, x: m.pow(2, x), lambda m, x: m.pow(x, -1), lambda m, x: m.pow(x, 0)],
    "prod": [lambda m, x: m.prod([x, 2]), lambda m, x: m.prod((x, 2.0), start=3), lambda m, x: m.prod([2.0], start=x)],
    "remainder": [
        lambda m, x: m.remainder(x, 0.35),
        lambda m, x: m.remainder(7.0, x),
        lambda m, x: m.remainder(x, INF),
        lambda m, x: m.remainder(x, -3),
    ],
    "sumprod": [lambda m, x: m.sumprod([x, 1e100, -1e100], [2.0, 1.0, 1.0])],
}  # fmt: skip
NAMES = [name for name in dir(math) if callable(getattr(math, name)) and not name.startswith("_")]
CALLS: dict[tuple[str, int], Call] = {
    (name, n): call
    for name in NAMES
    for n, call in enumerate(WITH.get(name, [lambda m, x, name=name: getattr(m, name)(x)]))
}
NOT_COMPILED = ("frexp", "nextafter", "remainder", "ulp", "fma")
"""What is refused where arguments are known only as the function runs."""
BEYOND = {"lgamma": (5e-324, -INF), "gamma": (-INF,)}
"""Where a function of ours overflows, or is that of scipy."""


def value(call: Call, module: Any, x: Any) -> Any:
    """What a call gives; None where it is an error."""
    try:
        return call(module, x)
    except (ValueError, ArithmeticError, TypeError, dg.Error):
        return None


def same(a: Any, b: Any) -> bool:
    """Whether two results are the same to the bit, but for the bits of NaN."""
    a, b = numpy.asarray(a, float), numpy.asarray(b, float)
    signs = numpy.signbit(a) == numpy.signbit(b)
    return a.shape == b.shape and bool(numpy.all((a == b) & signs | numpy.isnan(a) & numpy.isnan(b)))


@pytest.mark.parametrize("name", NAMES)
def test_with_derivatives_values_and_errors_are_pythons(name: str) -> None:
    draw = random.Random(name)
    points = [*EDGES, *(draw.choice([-1, 1]) * 10 ** draw.uniform(-20, 20) for _ in range(20))]
    for (of, n), call in CALLS.items():
        for x in points if of == name else []:
            wanted, plainly = value(call, math, x), value(call, own, x)
            assert (plainly is None and wanted is None) or same(plainly, wanted), (n, x)
            for run in (lambda f, x: dg.jvp(f, (x,), (1.0,)), dg.vjp):
                try:
                    found = run(lambda y, call=call: call(own, y), x)[0]
                except (ValueError, ArithmeticError, TypeError, dg.Error) as problem:
                    no_rule = "the chain rule has no answer here" in str(problem)
                    assert wanted is None or no_rule, (n, x)
                else:
                    assert wanted is not None and (
                        numpy.array_equal(*numpy.asarray((found, wanted), float), equal_nan=True)
                        or x in BEYOND.get(name, ())
                    ), (n, x)


def test_compiled_values_are_pythons_to_rounding() -> None:
    some = {key: call for key, call in CALLS.items() if key[0] not in NOT_COMPILED and key != ("dist", 2)}
    compiled = dg.compile(lambda x: [call(math, x) for call in some.values()])
    draw = random.Random(0)
    small = [x for x in EDGES if not abs(x) > 1e18 or math.isnan(x)]  # whole numbers of compiled functions have 64 bits
    for x in [*small, *(draw.uniform(-5, 5) for _ in range(20))]:
        if math.isnan(x):
            continue  # whose floor is an error
        for ((name, n), call), found in zip(some.items(), compiled(x), strict=True):
            wanted = value(call, math, x)
            if wanted is not None and x not in BEYOND.get(name, ()):
                assert numpy.allclose(found, wanted, rtol=1e-13, atol=0.0, equal_nan=True), (name, n, x)


@pytest.mark.parametrize("name", [name for name in NOT_COMPILED if hasattr(math, name)])
def test_what_is_not_compiled_is_refused(name: str) -> None:
    for (of, _), call in CALLS.items():
        if of == name:
            with pytest.raises(dg.Error, match=rf"{name}\(\) cannot be compiled with arguments that are known only as"):
                dg.compile(lambda x, call=call: call(math, x))(1.5)


def test_exact_sums_are_exact_whatever_cancels() -> None:
    """Compiled, of terms that are drawn to cancel nearly; and their slopes are ones."""
    draw = random.Random(1)
    compiled = dg.compile(lambda x: math.fsum([x[k] for k in range(8)]))
    gradient = dg.compile(dg.grad(lambda x: math.fsum([x[k] for k in range(8)])))
    for _ in range(50):
        x = [draw.uniform(-1, 1) * 10.0 ** draw.randint(-8, 12) for _ in range(5)]
        x = [*x, -x[0], -x[1] * (1 + 1e-15), draw.uniform(-1e-9, 1e-9)]
        draw.shuffle(x)
        assert compiled(numpy.array(x)) == math.fsum(x)
        assert gradient(numpy.array(x)).tolist() == [1.0] * 8
