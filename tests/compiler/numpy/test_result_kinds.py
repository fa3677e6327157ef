"""Whole numbers and truth values: results have the kinds, and the rounding, that Python and numpy give them.

Costs a few seconds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import through_graph

A, B = np.array([7, 8, -3, 2**40]), np.array([1, -2, 63, 70])
M, N = np.array([True, False, True, False]), np.array([True, True, False, False])
X = np.array([[1, 2], [3, 5]])


def kind(x: Any) -> str:
    found = np.asarray(x).dtype.kind
    return "i" if found == "u" else found


def same_kind(a: Any, b: Any) -> bool:
    if isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(same_kind, a, b))
    return np.shape(a) == np.shape(b) and kind(a) == kind(b) and np.array_equal(a, b, equal_nan=True)


def is_as_uncompiled(f: Callable[..., Any], *arguments: Any) -> None:
    with np.errstate(all="ignore"):
        wanted = f(*arguments)
    found = through_graph(f, *arguments)
    assert same_kind(found, wanted), f"{found!r} is not {wanted!r}"


# -- bits --------------------------------------------------------------------------------------------------------------

BITS: dict[str, Callable[..., Any]] = {
    "a & 6": lambda a, b, m, n: a & 6,
    "6 & a": lambda a, b, m, n: 6 & a,
    "a | b": lambda a, b, m, n: a | b,
    "a ^ b": lambda a, b, m, n: a ^ b,
    "~a": lambda a, b, m, n: ~a,
    "a << b": lambda a, b, m, n: a << b,
    "a >> b": lambda a, b, m, n: a >> b,
    "1 << b": lambda a, b, m, n: 1 << b,
    "np.bitwise_and": lambda a, b, m, n: np.bitwise_and(a, 6),
    "np.bitwise_or": lambda a, b, m, n: np.bitwise_or(a, b),
    "np.bitwise_xor": lambda a, b, m, n: np.bitwise_xor(a, b),
    "np.invert": lambda a, b, m, n: (np.invert(a), np.invert(m)),
    "np.left_shift": lambda a, b, m, n: np.left_shift(a, b),
    "np.right_shift": lambda a, b, m, n: np.right_shift(a, b),
    "truth values": lambda a, b, m, n: (m & n, m | n, m ^ n, ~m, np.bitwise_and(m, a > 0), m & True),
    "both": lambda a, b, m, n: (m & a, a | m, a ^ True, m << 2),
    "np.logical": lambda a, b, m, n: (np.logical_xor(a, m), np.logical_not(a), np.logical_and(a, b)),
    "single": lambda a, b, m, n: (a[0] & b[0], a[1] ^ b[1], a[0] << 3, ~a[2], m[0] & a[0], m[0] ^ m[1], ~m[0]),
    "in expressions": lambda a, b, m, n: (-(a & b) + 3 * ~a, (a & 1) == 0, np.where(a & 1, a, b)),
    "in a loop": lambda a, b, m, n: sum([int(x & 1) for x in a]),
}


@pytest.mark.parametrize("name", BITS)
def test_bits(name: str) -> None:
    is_as_uncompiled(BITS[name], A, B, M, N)


def test_bits_in_native_code() -> None:
    def f(a: Any, b: Any, m: Any) -> Any:
        return a & b, a | 6, a ^ b, ~a, a << b, a >> b, m & a, (a & -4) * 3 - ~b

    for found, wanted in zip(dg.compile(f)(A, B, M), f(A, B, M), strict=True):
        assert same_kind(found, wanted)


@pytest.mark.parametrize("f", [lambda x: x & 3, lambda x: ~x, lambda x: np.bitwise_and(x, 2), lambda x: x << 1])
def test_reals_have_no_bits(f: Any) -> None:
    with pytest.raises(dg.Error, match="takes truth values and whole numbers, not an array of reals"):
        through_graph(f, np.ones(2))


# -- kinds -------------------------------------------------------------------------------------------------------------

ONE: list[Any] = [
    np.absolute,
    np.square,
    np.floor,
    np.ceil,
    np.trunc,
    np.rint,
    np.fix,
    np.sqrt,
    np.isnan,
    np.reciprocal,
]
ONE += [np.round, np.nan_to_num, np.real, np.imag, np.max, np.sum, np.cumsum, np.mean, np.sort, np.argmax, np.copy]
TWO: list[Any] = [np.add, np.multiply, np.true_divide, np.floor_divide, np.remainder, np.fmod, np.divmod, np.maximum]
TWO += [np.minimum, np.fmax, np.fmin, np.greater, np.append, np.dot, np.outer, np.polyval, np.broadcast_arrays]
TWO += [np.float_power, np.logical_and]


@pytest.mark.parametrize("function", ONE, ids=lambda f: f.__name__)
def test_functions_of_one(function: Any) -> None:
    is_as_uncompiled(lambda a: function(a), np.array([7, 8, -3, 4]))
    if function not in (np.sqrt, np.reciprocal, np.square, np.rint, np.round):  # in numpy these are of few bits
        is_as_uncompiled(lambda m: function(m), M)


@pytest.mark.parametrize("function", TWO, ids=lambda f: f.__name__)
def test_functions_of_two(function: Any) -> None:
    a, b = np.array([7, 8, -3, 4]), np.array([2, -2, 5, 0])
    is_as_uncompiled(lambda x, y: function(x, y), a, b)
    is_as_uncompiled(lambda x, y: function(x, y), a, M)
    if function is not np.polyval:
        is_as_uncompiled(lambda x, y: function(x[0], y[1]), a, b)
    if function not in (np.true_divide, np.floor_divide, np.remainder):
        is_as_uncompiled(lambda x, y: function(x, y), M, N)


OTHERS: dict[str, Callable[..., Any]] = {
    "np.delete": lambda a, m, x: (np.delete(a, 1), np.delete(m, 1)),
    "np.einsum": lambda a, m, x: (np.einsum("i,i->", a, a), np.einsum("i,i->i", a, m)),
    "np.full": lambda a, m, x: (np.full(3, a[0]), np.full(3, a[0], float), np.full_like(a, a[1]), np.full(2, m[0])),
    "matrix_power": lambda a, m, x: np.linalg.matrix_power(x, 3),
    "np.power": lambda a, m, x: (np.power(a, 3), np.power(a, 0), np.power(x, 21)),
    "rounding": lambda a, m, x: (np.round(a, -1), a.round(), round(a[0], -1), round(a[0], 1), round(a[0])),
    "max and min": lambda a, m, x: (max(m), min(m[0], m[1]), max(a[0], m[0]), min(a)),
    "abs": lambda a, m, x: (abs(a), abs(m), abs(a[2])),
    "lists": lambda a, m, x: (np.abs([a[2], 1]), np.maximum([1, 2], a[:2]), np.floor([a[0], 1.5])),
    "large": lambda a, m, x: np.maximum(a * 2**50 + 1, m),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_functions(name: str) -> None:
    is_as_uncompiled(OTHERS[name], np.array([7, 8, -3, 4]), M, X)


def test_a_truth_value_counts_as_one() -> None:
    is_as_uncompiled(lambda x: (abs(x > 1.0), max(x > 1.0, x > 3.0), max(x > 1.0, 2)), 2.0)


@pytest.mark.parametrize("function", [np.sign, np.positive, np.negative])
def test_what_numpy_refuses_of_truth_values(function: Any) -> None:
    with pytest.raises(dg.Error, match=f"np.{function.__name__} does not take truth values"):
        through_graph(lambda m: function(m), M)


def test_the_step_of_what_is_no_number() -> None:
    is_as_uncompiled(lambda x: np.heaviside(x, 0.5), np.array([-1.0, 0.0, 2.0, np.nan, np.inf]))


def test_the_sign_of_nothing() -> None:
    x = np.array([-0.0, 0.0, -2.0, np.nan, 3.0])
    for found in (dg.compile(lambda x: np.sign(x))(x), through_graph(lambda x: np.stack([np.sign(v) for v in x]), x)):
        assert same_kind(found, np.sign(x)) and not np.signbit(found[0])


# -- other widths ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, "float16", np.int8, np.uint8, "i4", np.uint64])
def test_numbers_of_other_widths_are_refused(dtype: Any) -> None:
    for f in (
        lambda x: x.astype(dtype),
        lambda x: np.array(x, dtype=dtype),
        lambda x: np.array([x[0], x[1]], dtype=dtype),
        lambda x: np.zeros_like(x, dtype=dtype),
        lambda x: np.full_like(x, 2.5, dtype),
    ):
        with pytest.raises(dg.Error, match=f"a compiled function has no {np.dtype(dtype)} numbers"):
            through_graph(f, np.ones(2))


@pytest.mark.parametrize("q", [1.5, -0.25, np.nan, np.array([0.5, 2.0])])
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_a_share_that_there_is_not(name: str, q: Any) -> None:
    """As it runs an error of an index, and never the last element."""
    weighted = {"weights": np.ones(4), "method": "inverted_cdf"} if np.__version__ >= "2" else {}
    for options in ({}, weighted):
        with pytest.raises((IndexError, dg.Error), match="index"):
            through_graph(lambda x, q, o=options: getattr(np, name)(x, q, **o), np.arange(4.0), q)


def test_writing_into_an_array_of_another_width_is_refused() -> None:
    def f(x: float) -> Any:
        a = np.zeros(2, np.float32)
        a[0] = x
        return a

    with pytest.raises(dg.Error, match="has no float32 numbers"):
        through_graph(f, 0.1)


@pytest.mark.parametrize("dtype", [float, int, bool, np.float64, "f8", np.int64, np.intp, "?"])
def test_those_of_the_graph_are_there(dtype: Any) -> None:
    x = np.array([1.5, 0.0, -2.5])
    is_as_uncompiled(lambda x: (x.astype(dtype), np.array(x, dtype=dtype), np.asarray(x, dtype)), x)
    is_as_uncompiled(lambda a: a.astype(dtype), A)


# -- rounding to decimals ----------------------------------------------------------------------------------------------


def some_real(n: int) -> float:
    """One that is hard to round to so many decimals, more often than not."""
    where = random.random()
    if where < 0.5:
        whole = random.randrange(-(10**6), 10**6) + 0.5
        near = whole / 10.0**n if n > 0 else whole * 10.0**-n
        return float(np.nextafter(near, random.choice([near, math.inf, -math.inf])))
    if where < 0.7:
        return random.uniform(-1, 1) * 10.0 ** random.uniform(-20, 20)
    if where < 0.8:
        return random.choice([0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1.7e308, 2.675, 1.15, 2.0**52])
    return random.uniform(0.5, 2) * 2.0 ** random.randrange(45, 56) / 10.0**n


@pytest.mark.parametrize("n", [-22, -21, -16, -15, -3, -2, -1, 0, 1, 2, 3, 8, 14, 15])
def test_round_is_that_of_python(n: int) -> None:
    random.seed(n)
    fast = dg.compile(lambda x: round(x, n))
    for _ in range(500):
        x = some_real(n)
        wanted = round(x, n) if abs(x) < 1e300 else x
        assert same_kind(fast(x), wanted) and math.copysign(1.0, fast(x)) == math.copysign(1.0, wanted), (x, n)


@pytest.mark.parametrize("x", [2.675, 0.0, 1e15, -1e300, 12.5])
def test_a_rounded_number_is_a_step(x: float) -> None:
    assert through_graph(dg.grad(lambda x: round(x, 2)), x) == through_graph(dg.grad(lambda x: round(x, -1)), x) == 0.0


def test_other_numbers_of_decimals() -> None:
    is_as_uncompiled(lambda x: (round(x), round(x, None), round(x, ndigits=1)), 2.25)
    for f in (lambda x: round(x, 16), lambda x: round(x, -23), lambda x: round(x, int(x))):
        with pytest.raises(dg.Error, match="from -22 to 15"):
            through_graph(f, 2.5)


@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 2])
def test_arrays_are_rounded_as_numpy_does(decimals: int) -> None:
    is_as_uncompiled(lambda x: (np.round(x, decimals), x.round(decimals)), np.array([2.675, 1.15, -25.0, 15.0, np.nan]))
