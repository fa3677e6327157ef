"""Activity analysis of array elements: adjoints of inactive ones stay zero, whatever the partial derivatives there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.autodiff.derive import generate_adjoints
from dynagrad.autodiff.structural_zeros import ActiveElements
from dynagrad.ir.builders import cond
from dynagrad.ir.control import Graph, zero
from dynagrad.ir.interpret import run
from dynagrad.ir.node import Node, constant, fresh, order, variable
from dynagrad.ir.operation import Trait
from dynagrad.ir.ops import arrays as on_arrays
from dynagrad.ir.ops import reductions
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.ops.places import at_add, at_set
from dynagrad.ir.types import arrays, boolean, integer, real

N = 6
X = np.array([0.0, 1.0, 4.0, 0.0, 9.0, 2.0])
SLOPE = np.array([math.inf, 0.5, 0.25, math.inf, 1 / 6, 0.5 / math.sqrt(2.0)])
INDICES = {0, 1, 2, 3, 4, 5}


def picked(*indices: int) -> np.ndarray[Any, Any]:
    return np.array([SLOPE[i] if i in indices else 0.0 for i in range(N)])


def gradient(f: Callable[[Node], Any]) -> np.ndarray[Any, Any]:
    x = fresh(arrays(real, (N,)))
    found = generate_adjoints([f(ops.sqrt(x))], [1.0], [x])[x]
    assert found is not None
    with np.errstate(all="ignore"):
        return np.asarray(run(Graph((x,), (found,)), [X])[0])


def total(y: Any) -> Any:
    return reductions.total(tuple(range(y.ndim)))(y)


CASES: dict[str, tuple[Callable[[Node], Any], tuple[int, ...]]] = {
    "an element": (lambda y: y[1], (1,)),
    "two": (lambda y: y[1] + 2.0 * y[2] - y[2], (1, 2)),
    "a slice": (lambda y: total(y[1:3]), (1, 2)),
    "places": (lambda y: total(y[np.array([4, 5])]), (4, 5)),
    "a row": (lambda y: total(on_arrays.reshape((2, 3))(y)[1, 1:]), (4, 5)),
    "a transposed row": (lambda y: total(on_arrays.transpose((1, 0))(on_arrays.reshape((2, 3))(y))[2]), (2, 5)),
    "rolled": (lambda y: on_arrays.roll(1, 0)(y)[2], (1,)),
    "backwards": (lambda y: y[::-1][0], (5,)),
    "joined": (lambda y: on_arrays.concatenate(0, 2)(y, y)[7], (1,)),
    "stacked": (lambda y: on_arrays.stack(0, 2)(y, -y)[0, 2], (2,)),
    "a diagonal": (lambda y: total(on_arrays.diagonal(0)(on_arrays.reshape((2, 3))(y)[:, 1:])), (1, 5)),
    "above a diagonal": (lambda y: total(on_arrays.triangle(False, 1)(on_arrays.reshape((2, 3))(y))), (1, 2, 5)),
    "overwritten": (lambda y: total(at_set(at_set(y, 0, 0.0), 3, 7.0)), (1, 2, 4, 5)),
    "added to": (lambda y: at_add(y, 0, 5.0)[1], (1,)),
    "the largest": (lambda y: reductions.extreme(True, (0,))(y), (4,)),
    "sorted": (lambda y: on_arrays.sort(0)(y)[5], (4,)),
    "with signs": (lambda y: -(y[2] * -3.0) / 3.0, (2,)),
    "a difference": (lambda y: (y - 1.0)[1] + 0.0 * y[2], (1, 2)),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_what_is_not_picked_has_derivative_zero(name: str) -> None:
    f, indices = CASES[name]
    expected = picked(*indices)
    if name == "a difference":
        expected[2] = 0.0
    np.testing.assert_allclose(gradient(f), expected, rtol=1e-14)


def test_a_zero_that_was_computed_counts() -> None:
    """The chain rule has no answer for the square of a root at 0."""
    found = gradient(lambda y: total(y * y))
    assert np.isnan(found[[0, 3]]).all()
    np.testing.assert_allclose(found[[1, 2, 4, 5]], 1.0)


def test_what_is_picked_has_its_infinite_derivative() -> None:
    assert gradient(lambda y: y[0])[0] == math.inf


def test_an_index_known_only_at_run_time() -> None:
    x, i = fresh(arrays(real, (N,))), fresh(integer)
    found = generate_adjoints([ops.sqrt(x)[i] * 2.0], [1.0], [x])[x]
    assert found is not None
    for k in range(-N, N):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(run(Graph((x, i), (found,)), [X, k])[0], 2.0 * picked(k % N))


def test_choices_of_broadcast_values() -> None:
    x = fresh(arrays(real, (N,)))
    wide = on_arrays.reshape((N, 1))
    y = ops.where(wide(x) > 0.0, wide(ops.sqrt(x)) * np.ones(2), 0.0)
    found = generate_adjoints([total(y)], [1.0], [x])[x]
    assert found is not None
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(run(Graph((x,), (found,)), [X])[0], 2.0 * picked(1, 2, 4, 5))


@pytest.mark.parametrize("taken", [True, False])
def test_branches(taken: bool) -> None:
    x, test = fresh(arrays(real, (N,))), fresh(boolean)
    y, a = ops.sqrt(x), variable("a")
    [z] = cond(test, lambda: [y[1] * a], lambda: [a])
    found = generate_adjoints([z], [1.0], [x])[x]
    assert found is not None
    with np.errstate(all="ignore"):
        given = run(Graph((x, test, a), (found,)), [X, taken, 3.0])[0]
    np.testing.assert_allclose(given, 3.0 * picked(1) if taken else np.zeros(N))


class TestCost:
    def test_where_all_elements_are_picked_nothing_is_chosen(self) -> None:
        x = fresh(arrays(real, (N,)))
        y = ops.sqrt(x)
        found = generate_adjoints([total(y[:2]) + total(2.0 * y[2:])], [1.0], [x])[x]
        assert found is not None
        assert ops.where not in {n.operation for n in order([found])}

    def test_slopes_that_are_finite_need_no_choice(self) -> None:
        x = fresh(arrays(real, (N,)))
        found = generate_adjoints([ops.tanh(x)[1]], [1.0], [x])[x]
        assert found is not None
        assert ops.where not in {n.operation for n in order([found])}

    def test_long_sums_are_gone_through_once(self) -> None:
        delta = zero(arrays(real, (N,)))
        counting = ActiveElements()
        for i in range(5_000):
            delta = at_add(delta, i % 3, variable("v"))
            if i % 100 == 0:
                counting(delta)
        found = counting(delta)
        assert found is not None and found.is_constant
        assert found.attribute.tolist() == [True, True, True, False, False, False]

    def test_operations_that_need_none_have_finite_slopes(self) -> None:
        points = [-2.0, -0.5, 0.0, 0.5, 2.0]
        for operation in (o for o in ops.TABLE.values() if Trait.SAFE in o.traits):
            if operation is ops.where:
                continue
            variables = [fresh() for _ in operation.arguments]
            found = generate_adjoints([operation(*variables)], [constant(1.0)], variables)
            outputs = tuple(f for f in found.values() if f is not None)
            for a in points:
                given = [a, 0.7][: len(variables)]
                assert all(map(math.isfinite, run(Graph(tuple(variables), outputs), given))), operation


def test_a_choice_that_is_narrower_than_its_result_counts_in_the_shape_of_that() -> None:
    upper = np.arange(3.0).reshape(3, 1, 1) == 1.0

    def f(x: Any) -> Any:
        return np.sum(np.where(upper, 2.0, np.ones((3, 1, 1)) * np.sqrt(x)))

    x = np.array([[1.0, 4.0], [0.25, 1.0]])
    assert dg.compile(dg.grad(f))(x) == pytest.approx(1.0 / np.sqrt(x))
