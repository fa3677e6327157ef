"""A compiled `solve` with a Cholesky factor uses triangular solves: the same values and derivatives. Costs 6 s."""

from __future__ import annotations

import numpy as np

import dynagrad as dg

chance = np.random.default_rng(3)
ROOT = chance.normal(size=(40, 40))
S, Y = ROOT @ ROOT.T / 40 + np.eye(40), chance.normal(size=(40, 3))


def white(s, y):
    lower = np.linalg.cholesky(s)
    once = np.linalg.solve(lower, y)
    twice = np.linalg.solve(lower.T, once)
    return np.sum(once * once) + np.sum(twice[:, 0] * np.linalg.solve(lower, y[:, 1]))


def test_value_and_derivatives():
    def hessian(s, y):
        return dg.jvp(lambda s: dg.grad(white)(s, y), (s,), (np.outer(y[:, 0], y[:, 1]),))[1]

    def all_of_them(s, y):
        return white(s, y), dg.grad(white, (0, 1))(s, y), hessian(s, y)

    found = dg.compile(all_of_them)(S, Y)
    assert np.isclose(found[0], white(S, Y), rtol=1e-12)
    for a, b in zip(found[1], dg.grad(white, (0, 1))(S, Y), strict=True):
        assert np.allclose(a, b, rtol=1e-10, atol=1e-12)
    assert np.allclose(found[2], hessian(S, Y), rtol=1e-9, atol=1e-10)
    text = str(dg.graph(white, S, Y))
    assert "solve_lower(" in text and "solve_lower_transposed(" in text and " solve(" not in text
