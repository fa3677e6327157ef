"""Residuals of arrays that loops read: the elements that were read, or the whole array where that is smaller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dynagrad.autodiff.derive import generate_adjoints
from dynagrad.ir.builders import repeat
from dynagrad.ir.control import PUSH, REPEAT, Graph
from dynagrad.ir.interpret import run
from dynagrad.ir.node import Node, constant, fresh, order
from dynagrad.ir.ops.places import at_add, at_set
from dynagrad.ir.ops.reductions import total
from dynagrad.ir.types import arrays, real

N = 8
x = fresh(arrays(real, (N,)))


def saved(step: Callable[[Node, Node], Any]) -> list[tuple[int, ...]]:
    """The shapes of the reals that each round of a loop saves; its gradient agrees with differences."""
    [after] = repeat(N, lambda i, a: [step(i, a)], [x])
    y = total((0,))(after * constant(np.arange(1.0, N + 1.0)))
    slope = generate_adjoints([y], [constant(1.0)], [x])[x]
    assert slope is not None
    at, h = np.linspace(-0.6, 0.9, N), 1e-6
    value = Graph((x,), (y,))
    differences = [(run(value, [at + e])[0] - run(value, [at - e])[0]) / (2 * h) for e in np.eye(N) * h]
    np.testing.assert_allclose(run(Graph((x,), (slope,)), [at])[0], differences, rtol=1e-7, atol=1e-7)
    loops = [n for n in order([slope]) if n.operation is REPEAT]
    pushed = [a for n in loops for p in order(n.attribute.body.outputs) if p.operation is PUSH for a in p.arguments[1:]]
    return sorted(a.shape for a in pushed if a.type.kind == "real")


def test_places_that_are_looked_at() -> None:
    assert saved(lambda i, a: at_set(a, i, a[i] * a[i - 1])) == [(), ()]


def test_pieces_that_are_looked_at() -> None:
    assert saved(lambda i, a: at_add(a, slice(0, 3), a[1:4] * a[i] * 0.1)) == [(), (3,)]


def test_the_array_where_most_of_it_is_looked_at() -> None:
    assert saved(lambda i, a: at_add(a, i, 0.1 * a[i] * total((0,))(a[0:4] * a[4:8]))) == [(), (N,)]  # and the sum


@pytest.mark.parametrize("first", [True, False])
def test_the_array_where_all_of_it_is_looked_at(first: bool) -> None:
    def step(i: Node, a: Node) -> Any:
        whole = total((0,))(a * a) * 0.01
        return at_add(a, i, a[i] * a[0] + whole if first else whole + a[i] * a[0])

    assert saved(step) == [(N,)]
