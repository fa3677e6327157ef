"""Cycles in a user's semiring with a closure, `star=`: solved by elimination, for weights on either side.

Costs five seconds, nearly all for four compiled programs. The oracle is linear algebra in numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynagrad as dg

SUMS = dg.Semiring(zero=0.0, one=1.0, plus=lambda a, b: a + b, times=lambda a, b: a * b, star=lambda a: 1.0 / (1.0 - a))


def times(a: Any, b: Any) -> Any:
    """Of matrices of two rows, one row after the other."""
    return (
        a[0] * b[0] + a[1] * b[2],
        a[0] * b[1] + a[1] * b[3],
        a[2] * b[0] + a[3] * b[2],
        a[2] * b[1] + a[3] * b[3],
    )


def inverse(a: Any) -> Any:
    """(I - A)^-1."""
    p, q, r, s = 1.0 - a[0], -a[1], -a[2], 1.0 - a[3]
    d = p * s - q * r
    return (s / d, -q / d, -r / d, p / d)


MATRICES = dg.Semiring(
    zero=(0.0,) * 4,
    one=(1.0, 0.0, 0.0, 1.0),
    plus=lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)),
    times=times,
    star=inverse,
)
AFTER, BEFORE = "p(X) += s(X). p(Y) += p(X)*e(X,Y).", "p(X) += s(X). p(Y) += e(X,Y)*p(X)."


@pytest.mark.parametrize("text", [AFTER, BEFORE])
def test_a_linear_component_is_solved_and_each_item_popped_once(text: str) -> None:
    program = dg.Program(text, SUMS).bind({})
    for seed in range(25):
        random = np.random.default_rng(seed)
        n = int(random.integers(1, 9))
        weights = random.random((n, n)) * (random.random((n, n)) < 0.5)
        weights *= 0.99 / max(1e-9, weights.sum(1).max())
        start = random.random(n)
        arcs = [(i, j, weights[i, j]) for i in range(n) for j in range(n) if weights[i, j]]
        chart = program.run({"s/1": start, "e/2": arcs})
        wanted = np.linalg.solve(np.eye(n) - weights.T, start)
        assert [chart[f"p({i})"] for i in range(n)] == pytest.approx(wanted.tolist(), rel=1e-10)
        assert chart.stats.pops == n and chart.converged


@pytest.mark.parametrize(("text", "order"), [(AFTER, "iab,ijbc->jac"), (BEFORE, "ijab,ibc->jac")])
def test_times_need_not_commute(text: str, order: str) -> None:
    program = dg.Program(text, MATRICES).bind({})
    for seed in range(15):
        random = np.random.default_rng(seed)
        n = int(random.integers(1, 6))
        weights = random.random((n, n, 2, 2)) * (random.random((n, n, 1, 1)) < 0.6) * 0.4 / n
        start = random.random((n, 2, 2))
        wanted = start.copy()
        for _ in range(300):
            operands = (wanted, weights) if text == AFTER else (weights, wanted)
            wanted = start + np.einsum(order, *operands)
        rows = [(i, j, tuple(weights[i, j].ravel())) for i in range(n) for j in range(n) if weights[i, j].any()]
        chart = program.run({"s/1": [(i, tuple(start[i].ravel())) for i in range(n)], "e/2": rows})
        found = np.array([chart[f"p({i})"] for i in range(n)]).reshape(n, 2, 2)
        assert found == pytest.approx(wanted, rel=1e-9)


def test_a_loop_that_nothing_enters_has_no_closure_and_needs_none() -> None:
    chart = dg.Program(AFTER, SUMS).run(
        {"s/1": [("a", 0.0), ("c", 1.0)], "e/2": [("a", "a", 1.0), ("c", "d", 0.5), ("d", "c", 0.5)]}
    )
    assert (chart["p(a)"], chart["p(c)"]) == (0.0, pytest.approx(4 / 3))
