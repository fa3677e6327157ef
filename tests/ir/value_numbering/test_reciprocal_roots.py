"""Divisions by one square root share its reciprocal: equal to rounding, with the same infinities and NaN."""

import math

import numpy as np
import pytest

from dynagrad.ir import sqrt
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run
from dynagrad.ir.node import fresh, order
from dynagrad.ir.ops.scalars import divide, rsqrt
from dynagrad.ir.value_numbering.reciprocal_roots import share_roots

EDGES = [0.0, 5e-324, 1e-310, 1.0, 2.0, 1e300, 1.7e308, math.inf, math.nan]


@pytest.mark.parametrize("x", [0.0, -1.5, 5e-324, 1e-200, 1e200, math.inf, math.nan])
@pytest.mark.parametrize("y", EDGES)
def test_values_are_the_same(x, y):
    a, b = fresh(), fresh()
    outputs = (a / sqrt(b), (a / sqrt(b) + 2.0) / sqrt(b), 1.0 / sqrt(b))
    shared = share_roots(outputs)
    found, expected = run(Graph((a, b), shared), (x, y)), run(Graph((a, b), outputs), (x, y))
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=5e-324)
    assert [n.operation for n in order(shared) if n.operation in (divide, rsqrt)] == [rsqrt]


def test_one_division_stays():
    a, b = fresh(), fresh()
    [q] = share_roots([a / sqrt(b)])
    assert q is a / sqrt(b)
    [q] = share_roots([1.0 / sqrt(b)])
    assert q is rsqrt(b)
