"""Power series of determinants of badly scaled matrices, whose rows and columns differ by many powers of ten, against
60 digits.

Costs one compiled program; 3 s.
"""

from __future__ import annotations

import numpy as np
import pytest

import dynagrad as dg
from fifty_digits import mp

EVEN = np.ones(4)
SIZES = {
    "even": (EVEN, EVEN),
    "rows": (np.array([1.0, 1e6, 1e-6, 1e3]), EVEN),
    "rows that differ more": (np.array([1.0, 1e9, 1e-9, 1e3]), EVEN),
    "columns": (EVEN, np.array([1e-8, 1.0, 1e8, 1.0])),
    "both": (np.array([1.0, 1e7, 1e-7, 1e3]), np.array([1e5, 1.0, 1e-5, 1.0])),
    "far out": (np.array([1e25, 1e-25, 1e20, 1e-20]), EVEN),
}


def matrices(rows, columns):
    """A quadratic curve of matrices, and its determinant."""
    parts = np.random.default_rng(3).normal(size=(3, 4, 4)) * rows[:, None] * columns
    return parts, lambda t: np.linalg.det(parts[0] + t * parts[1] + t * t * parts[2])


def derivatives(parts):
    """Those of the determinant at 0, of order 0 to 4: it is a polynomial of degree 8, known from 9 of its values."""
    exact = [[[mp.mpf(float(x)) for x in row] for row in part] for part in parts]

    def determinant(t):
        return mp.det(
            mp.matrix([[a + t * b + t * t * c for a, b, c in zip(*r, strict=True)] for r in zip(*exact, strict=True)])
        )

    points = [mp.mpf(k) for k in range(9)]
    powers = mp.matrix([[x**k for k in range(9)] for x in points])
    found = mp.lu_solve(powers, mp.matrix([determinant(x) for x in points]))
    return [float(found[k] * mp.factorial(k)) for k in range(5)]


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_derivatives_of_high_order_keep_their_digits(sizes):
    parts, f = matrices(*sizes)
    expected = derivatives(parts)
    assert dg.derivative(f)(0.0) == pytest.approx(expected[1], rel=1e-11)  # by cofactors
    assert [dg.derivative(f, n)(0.0) for n in range(2, 5)] == pytest.approx(expected[2:], rel=1e-12)
    assert dg.grad(dg.derivative(f, 2))(0.0) == pytest.approx(expected[3], rel=1e-12)
    assert dg.derivative(dg.derivative(f, 2), 2)(0.0) == pytest.approx(expected[4], rel=1e-12)


def test_compiled_as_well():
    """There they are derivatives of derivatives, by cofactors."""
    parts, f = matrices(*SIZES["both"])
    found = dg.compile(lambda t: [dg.derivative(f, n)(t) for n in (2, 3, 4)])(0.0)
    assert found == pytest.approx(derivatives(parts)[2:], rel=1e-10)


def test_of_stacks_and_of_zeros():
    parts, _ = matrices(*SIZES["rows"])
    both = dg.derivative(lambda t: np.linalg.det(np.stack([parts[0] + t * t * parts[1], t * parts[0]])), 4)(0.0)
    assert both[1] == pytest.approx(24.0 * np.linalg.det(parts[0]), rel=1e-12)
    once = dg.derivative(dg.derivative(lambda t: np.linalg.det(parts[0] + t * parts[1])))(0.0)
    assert both[0] == pytest.approx(12.0 * once, rel=1e-12)
    assert dg.derivative(lambda t: np.linalg.det(t * np.zeros((3, 3))), 2)(1.0) == 0.0
