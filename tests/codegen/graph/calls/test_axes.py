"""Operations along an axis in native code: sorting, selection and scans, against numpy. Costs a few seconds."""

from __future__ import annotations

import numpy as np
import pytest

from dynagrad.codegen.graph.emit import emit
from dynagrad.codegen.graph.running import load
from dynagrad.ir.control import Graph
from dynagrad.ir.node import Node, fresh
from dynagrad.ir.operation import Operation
from dynagrad.ir.ops import arrays, matrices, reductions, windows
from dynagrad.ir.types import arrays as array_type
from dynagrad.ir.types import integer, real

RNG = np.random.default_rng(0)


def inputs_for(*values: np.ndarray) -> tuple[Node, ...]:
    return tuple(fresh(array_type(integer if v.dtype.kind == "i" else real, v.shape)) for v in values)


X = RNG.normal(size=(3, 40, 2))
TIES = RNG.integers(0, 4, (5, 70)).astype(float)
TIES[2, 7] = TIES[2, 50] = np.nan
LONG = RNG.integers(-300, 300, (40, 400)).astype(float)
LONG[::4, 200] = LONG[1::4, 399] = LONG[2::4, 0] = np.nan
LONG[::8, 10] = -np.nan
INFINITIES = RNG.choice([np.inf, -np.inf, 0.0, -0.0], size=(30, 5))
ORDER = RNG.integers(-40, 40, (3, 9, 2))
CASES: dict[str, tuple[Operation, ...]] = {
    "winners": (reductions.winners(True, (1,)), X),
    "winners_of_ties": (reductions.winners(False, (1,)), TIES),
    "winners_of_ties_down": (reductions.winners(True, (0,)), TIES),
    "winners_of_two_axes": (reductions.winners(True, (0, 1)), X),
    "winners_of_one": (reductions.winners(True, (1,)), TIES[:, :1]),
    "winners_of_long_rows": (reductions.winners(True, (1,)), LONG),
    "winners_of_long_rows_down": (reductions.winners(False, (1,)), LONG),
    "winners_of_long_columns": (reductions.winners(False, (0,)), LONG),
    "winners_of_infinities": (reductions.winners(True, (1,)), INFINITIES),
    "winners_of_infinities_down": (reductions.winners(False, (1,)), INFINITIES),
    "cumprod": (reductions.cumprod(1), X),
    "cumprod_last": (reductions.cumprod(1), TIES),
    "convolve": (windows.convolve(True), LONG[1, :37], X[0, :, 0]),
    "convolve_long": (windows.convolve(True), X[0, :, 0], RNG.normal(size=300)),
    "convolve_infinite": (windows.convolve(True), np.array([1.0, 2.0, 3.0]), np.array([np.inf, 1.0, -1.0])),
    "convolve_one": (windows.convolve(True), X[0, :1, 0], X[0, :1, 1]),
    "convolve_within": (windows.convolve(False), RNG.normal(size=300), X[0, :, 0]),
    "convolve_within_few": (windows.convolve(False), RNG.normal(size=43), X[0, :, 0]),
    "overlaps": (windows.overlaps((1,), (5,), (3, 44, 2)), RNG.normal(size=(3, 40, 2, 5))),
    "overlaps_of_two": (windows.overlaps((0, 2), (2, 3), (4, 40, 4)), RNG.normal(size=(3, 40, 2, 2, 3))),
    "overlaps_of_none": (windows.overlaps((0,), (3,), (2,)), np.zeros((0, 3))),
    "windows": (windows.windows((1, 2), (3, 2)), X),
    "windows_last": (windows.windows((0,), (40,)), X[0]),
    "symmetric": (matrices.symmetric, RNG.normal(size=(2, 3, 4, 4))),
    "sort": (arrays.sort(1), X),
    "sort_ties": (arrays.sort(1), TIES),
    "argsort": (arrays.argsort(0), X),
    "argsort_ties": (arrays.argsort(1), TIES),
    "take_along": (arrays.take_along(1), X, ORDER),
    "put_along": (arrays.put_along(1, (3, 40, 2)), RNG.normal(size=(3, 9, 2)), ORDER),
}


@pytest.fixture(scope="module")
def together() -> dict[str, tuple[object, object]]:
    """What each case gives and should give: all of them in one graph, which compiles once."""
    inputs: list[Node] = []
    outputs, values = [], []
    for operation, *given in CASES.values():
        mine = inputs_for(*given)
        inputs += mine
        outputs.append(operation(*mine))
        values += given
    graph = Graph(tuple(inputs), tuple(outputs))
    assert not emit(graph).hosted  # nothing is left to Python
    found = load(graph, optimise=1)(*values)
    return {name: (y, case[0].value(*case[1:])) for y, (name, case) in zip(found, CASES.items(), strict=True)}


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_numpy(name: str, together: dict[str, tuple[object, object]]) -> None:
    found, wanted = together[name]
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    near = 1e-12 if name.startswith(("convolve", "overlaps")) else 0.0  # sums, in another order
    assert np.allclose(found, wanted, rtol=1e-13, atol=near, equal_nan=True)


def test_places_out_of_range_are_an_error() -> None:
    values = X, np.full((3, 9, 2), 40)
    inputs = inputs_for(*values)
    with pytest.raises(IndexError, match="40 is out of range for an axis of length 40"):
        load(Graph(inputs, (arrays.take_along(1)(*inputs),)), optimise=0)(*values)


def test_the_largest_over_axes_apart_is_left_to_python() -> None:
    inputs = inputs_for(X)
    graph = Graph(inputs, (reductions.winners(True, (0, 2))(*inputs),))
    assert len(emit(graph).hosted) == 1
    assert np.array_equal(load(graph, optimise=0)(X)[0], reductions.winners(True, (0, 2)).value(X))
