"""Ravelling: several values as one vector, and back."""

from __future__ import annotations

import numpy as np

import dynagrad as dg
from dynagrad.ir.ops.ravelling import ravel, unravel


def test_there_and_back():
    reals = [1.0, np.arange(6.0).reshape(2, 3), np.zeros(0), np.array([7.0])]
    vector = ravel(reals)
    assert vector.shape == (8,)
    for x, y in zip(reals, unravel(vector, list(map(np.shape, reals))), strict=True):
        assert np.shape(x) == np.shape(y) and np.all(x == y)
    assert ravel([]).shape == (0,)


def test_derivatives_go_through():
    def f(x, y):
        a, b = unravel(ravel([x, y]) * np.arange(3.0), [(2,), ()])
        return np.sum(a) * b

    assert dg.grad(f, (0, 1))(np.array([5.0, 3.0]), 2.0)[1] == 6.0
    np.testing.assert_allclose(dg.grad(f)(np.array([5.0, 3.0]), 2.0), [0.0, 4.0])
