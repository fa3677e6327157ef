"""Cells: what the interpreter makes of them is what native code makes of them, with derivatives in both modes and of
second order; what comes out; and what ends a call. Costs five seconds.
"""

from __future__ import annotations

import math

import pytest

from dynagrad.autodiff.derive import generate_adjoints, tangents
from dynagrad.codegen.graph.running import run as native
from dynagrad.compiler.returned_cells import imported
from dynagrad.errors import DepthError
from dynagrad.ir import Node, variable
from dynagrad.ir.builders import while_
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run
from dynagrad.ir.ops import cells
from dynagrad.ir.ops import scalars as ops

EMPTY, PAIR = cells.FIRST, cells.FIRST + 1
N, X = variable("n"), variable("x")


def made(key: int, parts: list[object]) -> object:
    return () if key == EMPTY else tuple(parts)


def squares() -> Node:
    """The list of i x^2 for i from n - 1 down to 0."""

    def body(i: Node, items: Node) -> list[Node]:
        return [i + 1.0, cells.record(PAIR, 2)(cells.real_cell(i * X * X), items)]

    return while_(lambda i, items: i < N, body, [0.0, cells.constant_cell(EMPTY)])[1]


def total(items: Node) -> Node:
    """The sum of the sines of a list."""

    def body(left: Node, sum: Node) -> list[Node]:
        return [cells.part(1)(left), sum + ops.sin(cells.real_of(cells.part(0)(left)))]

    return while_(lambda left, _: cells.key_of(left) > EMPTY, body, [items, 0.0])[1]


def test_a_list_and_its_derivatives_in_both_modes() -> None:
    y = total(squares())
    adjoint = generate_adjoints([y], [1.0], [X])[X]
    assert adjoint is not None
    (tangent,) = tangents([y], {X: 1.0})
    (second,) = tangents([adjoint], {X: 1.0})
    twice = generate_adjoints([adjoint], [1.0], [X])[X]
    n, x = 5, 0.7
    value = sum(math.sin(i * x * x) for i in range(n))
    first = sum(2 * i * x * math.cos(i * x * x) for i in range(n))
    curvature = sum(2 * i * math.cos(i * x * x) - (2 * i * x) ** 2 * math.sin(i * x * x) for i in range(n))
    graph = Graph((N, X), (y, tangent, adjoint, second, twice))  # type: ignore[arg-type]  # none of them is None
    for found in (run(graph, [float(n), x]), native(graph, [float(n), x])):
        assert found == pytest.approx((value, first, first, curvature, curvature), rel=1e-13)


def test_the_adjoint_of_a_list_is_a_list() -> None:
    """With zeros in the place of what has no influence: the tail of one that is only looked at in part."""
    items = squares()
    first = cells.real_of(cells.part(0)(items))
    adjoint = generate_adjoints([first * first], [1.0], [items])[items]
    whole = cells.exported(cells.filled(items, adjoint))
    assert imported(native(Graph((N, X), (whole,)), [3.0, 2.0])[0], made) == (16.0, (0.0, (0.0, ())))
    assert imported(run(Graph((N, X), (whole,)), [3.0, 2.0])[0], made) == (16.0, (0.0, (0.0, ())))


def test_long_lists_come_out_and_go_through_sums() -> None:
    items = squares()
    both = cells.exported(cells.cell_sum(items, items))
    found = imported(native(Graph((N, X), (both,)), [100_000.0, 1.0])[0], made)
    for i in range(100_000):
        assert isinstance(found, tuple) and found[0] == 2.0 * (99_999 - i)
        found = found[1]
    assert found == ()


def test_what_is_shared_comes_out_once() -> None:
    """In 61 cells of what would have 2^60 numbers, were it written."""
    both = while_(lambda i, _: i < N, lambda i, x: [i + 1.0, cells.record(PAIR, 2)(x, x)], [0.0, cells.real_cell(X)])[1]
    graph = Graph((N, X), (cells.exported(both),))
    for found in (imported(run(graph, [60.0, 2.5])[0], made), imported(native(graph, [60.0, 2.5])[0], made)):
        depth = 0
        while isinstance(found, tuple):
            assert found[0] is found[1]
            found, depth = found[0], depth + 1
        assert (found, depth) == (2.5, 60)


def test_what_is_nested_too_deep_is_an_error() -> None:
    def deeper(i: Node, inside: Node) -> list[Node]:
        return [i + 1.0, cells.record(PAIR, 2)(inside, cells.real_cell(i))]

    deep = while_(lambda i, _: i < N, deeper, [0.0, cells.constant_cell(EMPTY)])[1]
    assert imported(native(Graph((N,), (cells.exported(deep),)), [2.0])[0], made) == (((), 0.0), 1.0)
    with pytest.raises(DepthError, match="nested too deep"):
        native(Graph((N,), (cells.exported(cells.cell_sum(deep, deep)),)), [1e6])
