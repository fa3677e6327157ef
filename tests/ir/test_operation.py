"""An operation is added in one file: one declared here has its value, derivatives in both modes, works on arrays and in
native code, with the traits of its declaration.

Costs two seconds: a few small graphs are compiled.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import dynagrad as dg
from dynagrad.codegen.graph import emit
from dynagrad.eager.numbers import lift
from dynagrad.ir.control import Graph
from dynagrad.ir.node import fresh
from dynagrad.ir.operation import CALL, Operation, Trait, apply
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.ops.arrays import linear
from dynagrad.ir.types import arrays, real
from dynagrad.passes.simplify import simplify

sinc: Operation = Operation(
    "sine over its argument",
    (real,),
    real,
    lambda x: float(np.sinc(x / np.pi)),
    (lambda d, y, x: ops.multiply(d, ops.where(ops.equal(x, 0.0), 0.0, ops.divide(ops.subtract(ops.cos(x), y), x))),),
    "{0} == 0.0 ? 1.0 : sin({0}) / {0}",
    array=lambda x: np.sinc(x / np.pi),
    traits=Trait.SAFE | Trait.EXPENSIVE | Trait.DIVIDES,
)
mean_of_two: Operation = Operation(
    "mean of two",
    (real, real),
    real,
    lambda a, b: 0.5 * (a + b),
    (lambda d, y, a, b: ops.multiply(d, 0.5), lambda d, y, a, b: ops.multiply(d, 0.5)),
    "0.5 * ({0} + {1})",
    array=lambda a, b: 0.5 * (a + b),
    traits=Trait.COMMUTES,
    cost=2,
)
swapped: Operation = linear(
    "halves swapped",
    lambda x: np.concatenate([x[len(x) // 2 :], x[: len(x) // 2]]),
    lambda delta, shape: swapped(delta),
    code=("swapped",),
)
POINTS = np.array([-2.5, -0.3, 0.0, 1e-9, 0.7, 3.0])


def f(x: Any) -> Any:
    return lift(sinc, (x,))


def meaning(x: float, n: int) -> float:
    return float(mpmath.diff(lambda t: mpmath.sin(t) / t if t else mpmath.mpf(1), x, n))


@pytest.mark.parametrize("x", [-2.5, 0.7, 3.0])
def test_value_and_derivatives_in_both_modes_and_of_higher_order(x: float) -> None:
    for n, g in enumerate([f, dg.derivative(f), dg.derivative(dg.derivative(f))]):
        assert g(x) == pytest.approx(meaning(x, n), rel=1e-9)
    assert dg.grad(f)(x) == pytest.approx(meaning(x, 1), rel=1e-12)
    assert dg.hessian(f)(x) == pytest.approx(meaning(x, 2), rel=1e-9)


def test_arrays() -> None:
    np.testing.assert_allclose(f(POINTS), np.sinc(POINTS / np.pi), rtol=1e-15)
    slopes = dg.grad(lambda x: np.sum(f(x)))(POINTS[[0, 1, 4, 5]])
    np.testing.assert_allclose(slopes, [meaning(x, 1) for x in POINTS[[0, 1, 4, 5]]], rtol=1e-12)


def test_machine_code_of_numbers_and_arrays() -> None:
    from dynagrad.codegen.graph.native import Native

    for t, given in ((real, 0.7), (arrays(real, (6,)), POINTS)):
        x = fresh(t)
        graph = Graph((x,), (apply(sinc, x),))
        assert "sin(" in emit(graph).source and not emit(graph).hosted
        np.testing.assert_allclose(Native(graph, "f")(given)[0], np.sinc(np.asarray(given) / np.pi), rtol=1e-14)


def test_traits_are_looked_at_where_graphs_are_rewritten() -> None:
    x, y = fresh(real), fresh(real)
    [one, other] = simplify([mean_of_two(x, y), mean_of_two(y, x)])
    assert one is other
    [one, other] = simplify([ops.subtract(x, y), ops.subtract(y, x)])
    assert one is not other
    assert (mean_of_two.cost, sinc.cost) == (2, CALL)
    divides = [emit(Graph((x, y), (f(x, y),))).divides for f in (lambda x, y: sinc(x), mean_of_two)]
    assert divides == [True, False]


def test_one_of_whole_arrays_that_native_code_does_not_know_is_computed_by_numpy() -> None:
    from dynagrad.codegen.graph.native import Native

    x = fresh(arrays(real, (6,)))
    graph = Graph((x,), (apply(swapped, x),))
    assert len(emit(graph).hosted) == 1
    np.testing.assert_array_equal(Native(graph, "swap")(POINTS)[0], np.roll(POINTS, 3))
    gradient = dg.grad(lambda v: np.sum(lift(swapped, (v,)) * POINTS))(np.ones(6))
    np.testing.assert_array_equal(gradient, np.roll(POINTS, 3))
