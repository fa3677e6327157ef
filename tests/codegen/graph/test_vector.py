"""Vectorised elementary functions, against mpmath on their whole range; special values against numpy."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from dynagrad.runtime import library
from dynagrad.runtime.compiling import cache

ONE = ("exp", "expm1", "log", "log1p", "tanh", "sigmoid", "sin", "cos", "small_sin", "small_cos")
LARGEST_ANGLE = 2.0**30
FUSED = ("-ffp-contract=fast",)  # as the code of graphs is compiled: sums and products may be rounded once
SOURCE = (
    """
#include <dynagrad/calls/body.hpp>
#include <dynagrad/graphs/vector.hpp>
DYNAGRAD_EXPORT void pow_all(int64_t n, const double* x, const double* y, double* __restrict z) {
    for (int64_t i = 0; i < n; ++i) z[i] = dynagrad::graphs::vector::pow(x[i], y[i]);
}
"""
    + "".join(
        f"""
DYNAGRAD_EXPORT void {name}_all(int64_t n, const double* x, double* __restrict z) {{
    for (int64_t i = 0; i < n; ++i) z[i] = dynagrad::graphs::vector::{name}(x[i]);
}}"""
        for name in ONE
    )
    + "".join(
        f"""
DYNAGRAD_EXPORT void library_{name}_all(int64_t n, const double* x, double* __restrict z) {{
    for (int64_t i = 0; i < n; ++i) z[i] = ::{name}(x[i]);
}}"""
        for name in ("exp", "tanh")
    )
)


def prepare(name: str, *arguments: np.ndarray, flags: tuple[str, ...] = ()) -> tuple[Callable[[], None], np.ndarray]:
    """A call of the function on all numbers, and where its results will be."""
    pointers = [ctypes.c_void_p] * (len(arguments) + 1)
    function = library.load(cache.build(SOURCE, flags=flags)).function(f"{name}_all", None, ctypes.c_int64, *pointers)
    arrays = [np.ascontiguousarray(a, float) for a in arguments]
    out = np.empty(len(arrays[0]))
    addresses = [a.ctypes.data for a in (*arrays, out)]
    return lambda keep=arrays: function(len(out), *addresses), out


def compute(name: str, *arguments: np.ndarray, flags: tuple[str, ...] = ()) -> np.ndarray:
    call, out = prepare(name, *arguments, flags=flags)
    call()
    return out


def exact(name: str, *arguments: float) -> mpf:
    name = name.removeprefix("small_")
    x, *rest = map(mpf, arguments)
    if name == "log1p":
        return mpmath.log(1 + x) if abs(x) > 1e-30 else x - x * x / 2
    if name == "sigmoid":
        return 1 / (1 + mpmath.exp(-x))
    if name == "tanh" and abs(x) > 400:
        return mpmath.sign(x) * (1 - mpf(2) ** -180)
    return {"pow": mpmath.power}.get(name, getattr(mpmath, name, None))(x, *rest)


def ulps(found: float, wanted: mpf) -> float:
    """How far off a number is, in units of the last place of the double next to the wanted one."""
    near = float(wanted)
    if not np.isfinite(near) or not np.isfinite(found):
        return 0.0 if found == near else np.inf
    return float(abs(mpf(found) - wanted) / mpf(float(np.spacing(abs(near)))))


def samples(name: str) -> list[np.ndarray]:
    rng = np.random.default_rng(len(name))
    n = 250
    sign = rng.choice([-1.0, 1.0], n)
    wide = sign * 2.0 ** rng.uniform(-1074, 1024, n)
    moderate = sign * 2.0 ** rng.uniform(-60, 10, n)
    small = sign * rng.uniform(0, 3, n)
    turns = np.array([float(int(k) * mpmath.pi / 2) for k in rng.integers(1, 2**29, n)])
    one = 1 + sign * 2.0 ** rng.uniform(-53, -1, n)
    return {
        "exp": [rng.uniform(-746, 711, n), moderate, small, rng.uniform(-746, -700, n)],
        "expm1": [rng.uniform(-50, 711, n), moderate, small],
        "log": [abs(wide), abs(moderate), one],
        "log1p": [abs(wide), rng.uniform(-1, 2, n), abs(moderate), -(2.0 ** rng.uniform(-1074, 0, n))],
        "tanh": [wide, moderate, small, rng.uniform(-22, 22, n)],
        "sigmoid": [rng.uniform(-746, 40, n), moderate, small],
        "small_sin": [rng.uniform(-LARGEST_ANGLE, LARGEST_ANGLE, n), small, turns, moderate],
    }.get(name.replace("cos", "sin"), [wide, moderate, small, turns, np.array([6381956970095103 * 2.0**797, 1e22])])


@pytest.mark.parametrize("name", ONE)
def test_every_value_is_right_to_two_ulp(name: str) -> None:
    x = np.concatenate(samples(name))
    with mpmath.workprec(1400 if name in ("sin", "cos") else 250):
        wanted = [exact(name, a) for a in x]
        for flags in ((), FUSED):
            errors = [ulps(y, w) for y, w in zip(compute(name, x, flags=flags), wanted, strict=True)]
            worst = int(np.argmax(errors))
            assert errors[worst] < 1.5, f"{name}({x[worst]!r}) is {errors[worst]:.2f} ulp off"


def test_powers_are_right_to_two_ulp() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [2.0 ** rng.uniform(-1074, 1024, 300), rng.uniform(0.3, 3, 300), 1 + 2.0 ** -rng.uniform(1, 52, 200)]
    )
    y = rng.uniform(-746, 711, len(x)) / np.log(x)
    y[:100] = rng.integers(-20, 20, 100)
    with mpmath.workprec(250), np.errstate(over="ignore"):
        errors = [ulps(z, exact("pow", a, b)) for a, b, z in zip(x, y, compute("pow", x, y), strict=True)]
    assert max(errors) < 1.5


SPECIAL = np.array(
    [
        0.0,
        5e-324,
        1e-310,
        2.0**-1022,
        1e-20,
        0.5,
        1.0,
        2.0,
        2.5,
        3.0,
        709.9,
        710.0,
        745.2,
        746.0,
        1e5,
        2.0**53 + 2,
        1e17,
    ]
    + [1.7976931348623157e308, np.inf]
)
SPECIAL = np.concatenate([SPECIAL, -SPECIAL, [np.nan]])


def same(found: np.ndarray, wanted: np.ndarray) -> bool:
    close = np.isclose(found, wanted, rtol=4e-16, atol=0.0) & (np.signbit(found) == np.signbit(wanted))
    return bool(np.all(close | (np.isnan(found) & np.isnan(wanted)) | (abs(found - wanted) <= 5e-324)))


@pytest.mark.parametrize("name", [name for name in ONE if name != "sigmoid"])
def test_special_values_are_those_of_numpy(name: str) -> None:
    x = SPECIAL if not name.startswith("small") else SPECIAL[~(np.isfinite(SPECIAL) & (abs(SPECIAL) > LARGEST_ANGLE))]
    with np.errstate(all="ignore"):
        assert same(compute(name, x), getattr(np, name.removeprefix("small_"))(x))


def test_special_values_of_sigmoid() -> None:
    found = compute("sigmoid", np.array([0.0, -0.0, np.inf, -np.inf, -1e5, 1e5, np.nan]))
    assert np.array_equal(found, [0.5, 0.5, 1.0, 0.0, 0.0, 1.0, np.nan], equal_nan=True)


def test_special_powers_are_those_of_numpy() -> None:
    x, y = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        assert same(compute("pow", x, y), np.power(x, y))


@pytest.mark.parametrize("name", ["exp", "tanh"])
def test_loops_over_them_are_vectorised(name: str) -> None:
    x = np.random.default_rng(0).uniform(-3, 3, 4096)
    assert seconds(name, x) < 0.7 * seconds(f"library_{name}", x)


def seconds(name: str, x: np.ndarray) -> float:
    call, _ = prepare(name, x)
    times = []
    for _ in range(50):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
