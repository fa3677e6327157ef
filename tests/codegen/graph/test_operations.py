"""Every operation on elements in native code: its value and its adjoint, on single numbers and on arrays.

At random points the oracle is mpmath in 50 digits (`fifty_digits.py`), at edges numpy and the interpreter. Single
numbers use the C library, arrays the vectorised functions. Many operations share one graph, compiled once. A test
checks that the tables are complete; operations on whole arrays are in `test_array_operations.py`. Costs two seconds.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from dynagrad.autodiff.derive import generate_adjoints
from dynagrad.codegen.graph.native import Native
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import Node, constant, fresh
from dynagrad.ir.operation import Operation
from dynagrad.ir.ops import families, integers
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.types import Type, boolean, integer, real
from dynagrad.ir.types import arrays as array_type
from eager.numpy.test_fifty_digits import DOMAINS, POSITIVE, meaning_of, operations_of
from fifty_digits import Differences, exact, mp, numbers

OPTIMISED = True  # see conftest.py
EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 2.5, 3.0, 1e300, 5e-324, np.inf, -np.inf, np.nan]
SIZE = len(EDGES) ** 2
SHAPES = ((), (SIZE,))
POINTS = 25  # that mpmath computes


def of_shape(type: Type, shape: tuple[int, ...]) -> Type:
    return array_type(type, shape) if shape else type


def adjoints(y: Node, weights: Any, inputs: Sequence[Node]) -> list[Node]:
    """The adjoint of each input; zeros where the result does not depend on it."""
    found = generate_adjoints([y], [constant(weights)], inputs)
    zeros = [constant(np.zeros(x.shape) if x.shape else 0.0) for x in inputs]
    return [zero if found[x] is None else found[x] for x, zero in zip(inputs, zeros, strict=True)]  # type: ignore[misc]


def each(graph: Callable[..., Any], points: Sequence[np.ndarray], shape: tuple[int, ...]) -> list[np.ndarray]:
    """The outputs at all points: of a graph of arrays by one call, of one of single numbers by a call for each."""
    with np.errstate(all="ignore"):
        if shape:
            return [np.broadcast_to(y, shape) for y in graph(*points)]
        rows = [graph(*(p[i].item() for p in points)) for i in range(len(points[0]))]
    return [np.array(column) for column in zip(*rows, strict=True)]


# -- operations on elements --------------------------------------------------------------------------------------------

Row = tuple[Operation, tuple[tuple[float, float], ...], Callable[..., Any]]


def derivative_of_sinc(n: int) -> Callable[..., Any]:
    return np.frompyfunc(lambda x: mp.diff(lambda t: mp.sinc(mp.pi * t), x, n), 1, 1)


ELEMENTS: dict[str, Row] = {name: (ops.TABLE[name], DOMAINS[name], meaning_of(name)) for name in DOMAINS}
ELEMENTS |= {
    f"power_log{k}": (ops.power_log(k), (POSITIVE, (-3.0, 3.0)), lambda a, b, k=k: a**b * np.log(a) ** k)
    for k in range(3)
}
ELEMENTS |= {
    f"scaled_root{p}": (families.scaled_root(p), (POSITIVE, POSITIVE), lambda t, s, p=p: (t * s**p) ** (mp.mpf(1) / p))
    for p in (2.0, 3.0)
}
ELEMENTS |= {f"sinc{n}": (families.sinc(n), ((0.1, 0.9),), derivative_of_sinc(n)) for n in range(3)}
TRUTHS = [name for name, operation in ops.TABLE.items() if operation.result is boolean]


@functools.cache
def of_elements(shape: tuple[int, ...]) -> tuple[Graph, Native, dict[str, slice]]:
    """All operations of one or two reals, and their adjoints: the graph, its code, and where outputs of each are."""
    x, y = inputs = tuple(fresh(of_shape(real, shape)) for _ in range(2))
    outputs: list[Node] = []
    places = {}
    for name, (operation, domains, _) in ELEMENTS.items():
        given = inputs[: len(domains)]
        z = operation(*given)
        places[name] = slice(len(outputs), len(outputs) + 1 + len(given))
        outputs += [z, *adjoints(z, np.ones(shape) if shape else 1.0, given)]
    p, q = x > y, x > 0.0
    truths = {boolean: (p, q), real: (x, y)}
    for name in TRUTHS:
        kinds = ops.TABLE[name].arguments
        places[name] = slice(len(outputs), len(outputs) + 1)
        outputs.append(ops.TABLE[name](*truths[kinds[0]][: len(kinds)]))
    places["where"] = slice(len(outputs), len(outputs) + 3)
    z = ops.where(p, x, y)
    outputs += [z, *adjoints(z, np.ones(shape) if shape else 1.0, inputs)]
    graph = Graph(inputs, tuple(outputs))
    return graph, Native(graph, "elements"), places


@functools.cache
def at_edges(shape: tuple[int, ...]) -> list[np.ndarray]:
    """The outputs of `of_elements` at all pairs of edges."""
    return each(of_elements(shape)[1], [p.ravel() for p in np.meshgrid(EDGES, EDGES, indexing="ij")], shape)


@functools.cache
def interpreted_at_edges() -> list[np.ndarray]:
    """The same, when Python computes one number after the other."""
    graph = of_elements(())[0]
    return each(lambda *xs: interpret(graph, xs), [p.ravel() for p in np.meshgrid(EDGES, EDGES, indexing="ij")], ())


def random_points(name: str, wide: bool) -> list[np.ndarray]:
    chance = np.random.default_rng([int(wide), *name.encode()])
    if wide:
        return [chance.choice([-1.0, 1.0], POINTS) * 2.0 ** chance.uniform(-30, 30, POINTS) for _ in range(2)]
    domains = ELEMENTS[name][1]
    return [chance.uniform(*domains[i % len(domains)], POINTS) for i in range(2)]


def outputs_at(name: str, points: list[np.ndarray], shape: tuple[int, ...]) -> list[np.ndarray]:
    _, native, places = of_elements(shape)
    points = [np.tile(p, SIZE // POINTS) for p in points] if shape else points
    return [y[:POINTS] for y in each(native, points, shape)[places[name]]]


@functools.cache
def wanted_at(name: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """The value with 50 digits, and the derivative in each argument."""
    _, domains, meaning = ELEMENTS[name]
    points = random_points(name, False)[: len(domains)]
    slopes = []
    for i in range(len(domains)):
        along = [np.full(POINTS, float(i == k)) for k in range(len(domains))]
        seen = Differences(meaning, points, along, along)
        slopes.append(seen.first().astype(float))
    return seen.value, slopes


@functools.cache
def wanted_at_wide(name: str) -> dict[int, Any]:
    """The value with 50 digits at points of all sizes, where it is a real number."""
    given = [exact(p) for p in random_points(name, True)[: len(DOMAINS[name])]]
    found = {}
    for i in range(POINTS):
        try:
            found[i] = numbers(meaning_of(name)(*(g[i : i + 1] for g in given)))[0]
        except (ValueError, ZeroDivisionError, TypeError, OverflowError):
            continue
    return {i: value for i, value in found.items() if isinstance(value, mp.mpf)}


def assert_ulps(found: np.ndarray, wanted: Any, most: float, points: list[np.ndarray]) -> None:
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        near = float(b)
        if np.isinf(near) or np.isinf(a):
            off = 0.0 if a == near else np.inf
        else:
            off = float(abs(mp.mpf(float(a)) - b) / mp.mpf(float(np.spacing(abs(near)))))
        assert off <= most, f"{off:.1f} ulp off at {[p[i] for p in points]}: found {a!r}, expected {near!r}"


ULPS = {"log_add": 20.0, "power_log1": 6.0, "power_log2": 8.0, "sinc0": 20.0} | dict.fromkeys(("sinc1", "sinc2"), 1e3)
"""Where more than four are given away: where a sum cancels."""


@pytest.mark.parametrize("shape", SHAPES, ids=("single", "array"))
@pytest.mark.parametrize("name", ELEMENTS)
def test_values_and_adjoints_of_elements(name: str, shape: tuple[int, ...]) -> None:
    points = random_points(name, False)
    value, slopes = wanted_at(name)
    found, *back = outputs_at(name, points, shape)
    assert_ulps(found, value, ULPS.get(name, 4.0), points)
    for got, wanted in zip(back, slopes, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shape", SHAPES, ids=("single", "array"))
@pytest.mark.parametrize("name", DOMAINS)
def test_values_of_all_sizes(name: str, shape: tuple[int, ...]) -> None:
    points = random_points(name, True)
    found, *_ = outputs_at(name, points, shape)
    for i, wanted in wanted_at_wide(name).items():
        assert_ulps(found[i : i + 1], [wanted], ULPS.get(name, 4.0), [p[i : i + 1] for p in points])


@pytest.mark.parametrize("shape", SHAPES, ids=("single", "array"))
@pytest.mark.parametrize("name", sorted(ELEMENTS.keys() | {"where", *TRUTHS}))
def test_edges_of_elements(name: str, shape: tuple[int, ...]) -> None:
    x, y = (p.ravel() for p in np.meshgrid(EDGES, EDGES, indexing="ij"))
    place = of_elements(shape)[2][name]
    (found, *back), (value, *slopes) = (outputs[place] for outputs in (at_edges(shape), interpreted_at_edges()))
    operation = ELEMENTS[name][0] if name in ELEMENTS else ops.TABLE[name]
    truths = {"where": (x > y, x, y)} | dict.fromkeys(("logical_and", "logical_or", "logical_not"), (x > y, x > 0.0))
    with np.errstate(all="ignore"):
        in_numpy = operation.array(*truths.get(name, (x, y))[: len(operation.arguments)])  # type: ignore[misc]
    assert_same(found, value, (x, y), signs=True)
    assert_same(found, in_numpy, (x, y), signs=name not in ZEROS)
    for got, wanted in zip(back, slopes, strict=True):
        assert_same(got, wanted, (x, y), signs=False)


ZEROS = ("minimum", "maximum", "fminimum", "fmaximum")
"""Where the sign of a zero is not that of numpy: of equals the first is taken."""


def assert_same(found: np.ndarray, wanted: np.ndarray, points: Sequence[np.ndarray], signs: bool) -> None:
    """Equal but for rounding, where wanted zeros with their signs; what is not a number is none in both."""
    close = np.isclose(found, wanted, rtol=1e-14, atol=1e-310, equal_nan=True)
    if signs and np.asarray(wanted).dtype.kind == "f":
        close &= (np.signbit(found) == np.signbit(wanted)) | (wanted != 0.0)
    first = next(iter(np.flatnonzero(~close)), None)
    assert first is None, f"at {[p[first] for p in points]}: found {found[first]!r}, expected {wanted[first]!r}"


# -- whole numbers and truth values ------------------------------------------------------------------------------------


def wrapped(x: int) -> int:
    return (x + 2**63) % 2**64 - 2**63


WHOLE_NUMBERS: dict[str, Callable[..., Any]] = {
    "integer_add": lambda i, j: wrapped(i + j),
    "integer_subtract": lambda i, j: wrapped(i - j),
    "integer_multiply": lambda i, j: wrapped(i * j),
    "integer_negative": lambda i: wrapped(-i),
    "integer_floor_divide": lambda i, j: wrapped(i // j) if j else 0,
    "integer_remainder": lambda i, j: i % j if j else 0,
    "integer_power": lambda i, j: wrapped(pow(i, j, 2**64)) if j >= 0 else 0,
    "integer_power_fits": lambda i, j: j >= 0 and (abs(i) < 2 or (j < 64 and wrapped(i**j) == i**j)),
    "integer_bitwise_and": lambda i, j: i & j,
    "integer_bitwise_or": lambda i, j: i | j,
    "integer_bitwise_xor": lambda i, j: i ^ j,
    "integer_invert": lambda i: ~i,
    "integer_left_shift": lambda i, j: wrapped(i << j) if 0 <= j < 64 else 0,
    "integer_right_shift": lambda i, j: i >> j if 0 <= j < 64 else -(i < 0),
    "integer_minimum": min,
    "integer_maximum": max,
    "integer_absolute": lambda i: wrapped(abs(i)),
    "integer_less": lambda i, j: i < j,
    "integer_less_equal": lambda i, j: i <= j,
    "integer_greater": lambda i, j: i > j,
    "integer_greater_equal": lambda i, j: i >= j,
    "integer_equal": lambda i, j: i == j,
    "integer_not_equal": lambda i, j: i != j,
    "integer_where": lambda p, i, j: i if p else j,
    "boolean_where": lambda p, q, r: q if p else r,
    "to_real": float,
    "to_integer": int,
    "boolean_to_integer": int,
    "boolean_to_real": float,
}
NUMBERS = [-(2**63), -(2**40), -7, -3, -1, 0, 1, 2, 3, 7, 2**40 + 1, 2**63 - 1]


@pytest.mark.parametrize("shape", ((), (len(NUMBERS) ** 2,)), ids=("single", "array"))
def test_whole_numbers_and_truth_values(shape: tuple[int, ...]) -> None:
    i, j = (p.ravel() for p in np.meshgrid(NUMBERS, NUMBERS, indexing="ij"))
    chance = np.random.default_rng(7)
    points = {
        integer: (i, j),
        boolean: tuple(chance.random((3, len(i))) < 0.5),
        real: (np.resize([0.0, -0.0, 0.99, -0.99, 2.5, -2.5, 1e18, -(2.0**63), 2.0**53 + 2.0], len(i)),),
    }
    inputs = {kind: tuple(fresh(of_shape(kind, shape)) for _ in values) for kind, values in points.items()}
    taken = {kind: [o.arguments for o in integers.TABLE.values()] for kind in points} and points

    def given(kinds: tuple[Type, ...], pool: dict[Type, Any]) -> list[Any]:
        left = {kind: iter(values) for kind, values in pool.items()}
        return [next(left[kind]) for kind in kinds]

    outputs = [operation(*given(operation.arguments, inputs)) for operation in integers.TABLE.values()]
    native = Native(Graph(tuple(x for xs in inputs.values() for x in xs), tuple(outputs)), "whole")
    found = each(native, [np.asarray(p) for ps in taken.values() for p in ps], shape)
    for (name, operation), got in zip(integers.TABLE.items(), found, strict=True):
        wanted = [
            WHOLE_NUMBERS[name](*(a.item() for a in row))
            for row in zip(*given(operation.arguments, points), strict=True)
        ]
        assert got.tolist() == wanted, name


# -- the tables are complete -------------------------------------------------------------------------------------------


def test_every_operation_has_a_row() -> None:
    assert set(ops.TABLE) == set(DOMAINS) | set(TRUTHS) | {"where"}
    assert set(integers.TABLE) == set(WHOLE_NUMBERS)
    assert operations_of(families) | {"power_log"} == {
        re.sub(r"[\d.]+$", "", name) for name in ELEMENTS.keys() - DOMAINS.keys()
    }
