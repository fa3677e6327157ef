"""Array operations as loop nests in native code, against the values of the operations. Costs four seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dynagrad.codegen.graph import emit, load, run
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import Node, constant, fresh
from dynagrad.ir.ops import arrays as on_arrays
from dynagrad.ir.ops import integers, reductions
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.ops.places import at_add, at_set
from dynagrad.ir.types import Type, arrays, boolean, integer, real

INF, NAN = float("inf"), float("nan")


def real_of(*shape: int) -> Node:
    return fresh(arrays(real, shape))


def agree(inputs: list[Node], outputs: list[Any], values: list[Any], rtol: float = 1e-12) -> None:
    graph = Graph(tuple(inputs), tuple(outputs))
    copies = [np.copy(v) if np.ndim(v) else v for v in values]
    with np.errstate(all="ignore"):
        wanted = interpret(graph, values)
    for got, expected, node in zip(run(graph, copies), wanted, outputs, strict=True):
        assert np.shape(got) == node.shape
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=1e-13, equal_nan=True, err_msg=repr(node))
        if node.type.kind == "real" and node.operation.name != "sign":  # zeros have signs; numpy's sign drops them
            zeros = np.asarray(expected) == 0.0
            assert (np.signbit(got) == np.signbit(expected))[zeros & (np.asarray(got) == 0)].all(), repr(node)
    for copy, value in zip(copies, values, strict=True):
        np.testing.assert_array_equal(copy, value)  # nothing is written to what came in


OPTIMISED = True  # see conftest.py
RNG = np.random.default_rng(7)
MATRIX = RNG.normal(size=(5, 4))
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-310, 1e308, -2.5, 3.5])


def test_elementwise_operations_in_loops() -> None:
    x, y = real_of(11), real_of(11)
    outputs: list[Any] = []
    for operation in ops.TABLE.values():
        kinds = {t.kind for t in operation.arguments}
        if kinds == {"real"}:
            outputs.append(operation(*[x, y][: len(operation.arguments)]))
    outputs.append(ops.where(x > y, x, y))
    outputs.append(ops.logical_and(x > y, ops.logical_not(x == y)))
    agree([x, y], outputs, [SPECIAL, SPECIAL[::-1].copy()], rtol=1e-11)
    agree([x, y], outputs, [np.linspace(0.1, 0.9, 11), RNG.uniform(0.1, 2.0, 11)], rtol=1e-11)


def test_whole_numbers() -> None:
    a, b = fresh(arrays(integer, (6,))), fresh(arrays(integer, (6,)))
    i, j = fresh(integer), fresh(integer)
    outputs: list[Any] = []
    for x, y in ((a, b), (i, j), (a, j)):
        for operation in integers.TABLE.values():
            kinds = [t.kind for t in operation.arguments]
            if kinds == ["integer", "integer"]:
                outputs.append(operation(x, y))
            elif kinds == ["integer"]:
                outputs.append(operation(x))
        outputs.append(integers.where(integers.less(x, y), x, y))
    agree([a, b, i, j], outputs, [np.array([7, -7, 3, 0, 9, -9]), np.array([2, 2, -2, 5, 0, -4]), -17, 5])


def test_broadcasting() -> None:
    m, row, column, s = real_of(5, 4), real_of(4), real_of(5, 1), fresh(real)
    outer = real_of(3, 1, 4)
    agree(
        [m, row, column, s, outer],
        [m + row, m * column, m - s, ops.exp(column) * row, outer + m, ops.exp(outer + m) / (outer * 2.0), m + m],
        [MATRIX, RNG.normal(size=4), RNG.normal(size=(5, 1)), 1.5, RNG.normal(size=(3, 1, 4))],
    )


def test_views() -> None:
    m, t = real_of(5, 4), real_of(2, 3, 4)
    big = ops.exp(m)
    outputs = [
        on_arrays.transpose((1, 0))(m),
        on_arrays.transpose((2, 0, 1))(t),
        on_arrays.reshape((4, 5))(m),
        on_arrays.reshape((2, 10))(big),
        on_arrays.reshape((20,))(on_arrays.transpose((1, 0))(big)),
        on_arrays.reshape((6, 4))(t),
        on_arrays.reshape((2, 3, 1, 4))(t) * 2.0,
        on_arrays.broadcast_to((3, 5, 4))(m),
        m[1:4],
        m[::-1, ::2],
        big[2],
        big[:, 3] + m[:, 0],
        m[-1, -1],
        big[1, 2],
        t[:, None, 1],
        t[1, 2:0:-1, :3],
        on_arrays.diagonal(1)(m),
        on_arrays.diagonal(-2)(big),
        m[np.array([0, 2, -1])],
        big[:, np.array([[0, 3], [1, 1]])],
        t[np.array([1, 0]), :, np.array([2, 3])],
        t[1, :, np.array([2, 3, 0])],
        t[:, 1, np.array([2, 3, 0])],
        on_arrays.getitem(([2, 0], slice(None)))(m),
    ]
    agree([m, t], outputs, [MATRIX, RNG.normal(size=(2, 3, 4))])


@pytest.mark.parametrize("shape", [(5, 4), (2, 3, 4), (7,), (3, 1), (1, 1, 3), (40, 33)])
def test_reductions(shape: tuple[int, ...]) -> None:
    x = real_of(*shape)
    big = ops.exp(x)
    outputs: list[Any] = []
    for k in range(1 << len(shape)):
        axes = tuple(i for i in range(len(shape)) if k >> i & 1)
        for keep in (True, False):
            outputs += [
                reductions.total(axes, keep)(x),
                reductions.total(axes, keep)(big),
                reductions.extreme(True, axes, keep)(x),
                reductions.extreme(False, axes, keep)(big),
                reductions.product(axes, keep)(x),
            ]
    for narrow in [(), (1,), shape[-1:], (*shape[:-1], 1)]:
        outputs.append(on_arrays.sum_to(narrow)(x))
    agree([x], outputs, [RNG.normal(size=shape)], rtol=1e-11)


def test_extremes_of_every_kind_of_number_at_every_place() -> None:
    """Lengths around those of vectors, and all numbers that are not like the others; zeros have either sign."""
    rng = np.random.default_rng(6)
    odd = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1.5, -2.5])
    for length in (1, 3, 8, 9, 31, 65):
        x, y = real_of(240, length), real_of(length, 240)
        reduced = [(x, (1,)), (x, (0,)), (y, (0,)), (x, (0, 1))]
        outputs = [reductions.extreme(largest, axes)(z) for z, axes in reduced for largest in (True, False)]
        graph = Graph((x, y), tuple(outputs))
        native = load(graph, optimise=3 if length == 31 else 1)
        for some in (odd, odd[2:], odd[3:10], odd[4:6]):
            values = rng.choice(some, size=(240, length))
            for row in range(0, 240, 3):
                values[row] = rng.choice(odd[4:], size=length)
                values[row, row % length] = rng.choice(odd)
            given = [values, np.ascontiguousarray(values.T)]
            for found, wanted in zip(native(*given), interpret(graph, given), strict=True):
                np.testing.assert_array_equal(found, wanted)


def test_the_extreme_of_reals_is_that_of_whole_numbers_in_the_same_order() -> None:
    """So the compiler vectorises it, which it does not where any number may be NaN."""
    x = real_of(6, 50)
    assert "rank<true>" in emit(Graph((x,), (reductions.extreme(True, (1,))(x),))).source


def test_not_a_number_wins_extremes_and_infinities_pass() -> None:
    x = real_of(3, 11)
    outputs = [
        operation
        for axes in ((0,), (1,), (0, 1))
        for operation in (
            reductions.extreme(True, axes)(x),
            reductions.extreme(False, axes)(x),
            reductions.total(axes)(x),
        )
    ]
    agree([x], outputs, [np.stack([SPECIAL, SPECIAL[::-1], np.roll(SPECIAL, 3)])])


def test_products_of_arrays() -> None:
    a, b, v, w, s = real_of(5, 4), real_of(4, 6), real_of(4), real_of(5), real_of(2, 5, 4)
    t = real_of(2, 4, 3)
    mul = on_arrays.matmul
    turn = on_arrays.transpose((1, 0))
    outputs = [
        mul(a, b),
        mul(a, v),
        mul(w, a),
        mul(v, v),
        mul(turn(a), a),
        mul(a, turn(a)),
        mul(turn(b), turn(a)),
        mul(ops.exp(a), b * 2.0),
        mul(s, t),
        mul(s, b),
        mul(s, v),
        mul(w, s),
        mul(a, t),
        on_arrays.einsum(("ij", "jk"), "ki")(a, b),
        on_arrays.einsum(("ij", "ij"), "")(a, a),
        on_arrays.einsum(("i", "j"), "ij")(w, v),
        on_arrays.einsum(("ij",), "j")(a),
        on_arrays.einsum(("sij", "j", "i"), "s")(s, v, w),
    ]
    values = [RNG.normal(size=n.shape) for n in (a, b, v, w, s, t)]
    agree([a, b, v, w, s, t], outputs, values)


def test_a_large_product_of_matrices() -> None:
    a, b = real_of(67, 53), real_of(53, 71)
    agree(
        [a, b],
        [on_arrays.matmul(a, b), on_arrays.matmul(on_arrays.transpose((1, 0))(b), on_arrays.transpose((1, 0))(a))],
        [RNG.normal(size=(67, 53)), RNG.normal(size=(53, 71))],
    )


def test_arrays_put_together() -> None:
    a, b, v, s = real_of(5, 4), real_of(3, 4), real_of(4), fresh(real)
    outputs = [
        on_arrays.concatenate(0, 2)(a, b),
        on_arrays.concatenate(1, 2)(a, ops.exp(a)),
        on_arrays.stack(0, 2)(a, a * 2.0),
        on_arrays.stack(1, 3)(v, ops.exp(v), v),
        on_arrays.stack(0, 2)(s, s + 1.0),
        on_arrays.place((slice(1, 4), 2), (5, 4))(on_arrays.getitem((slice(0, 3), 0))(a)),
        on_arrays.place((np.array([1, 1, 0]),), (3, 4))(b),
        on_arrays.place((slice(None, None, -2),), (5, 4))(b),
        on_arrays.on_diagonal(1, (4, 5))(v),
        on_arrays.on_diagonal(-1, (5, 4))(v),
        on_arrays.triangle(True, 0)(a),
        on_arrays.triangle(False, -1)(ops.exp(a)),
        on_arrays.roll(3, 0)(a),
        on_arrays.roll(-1, 1)(ops.exp(a)),
        reductions.cumsum(0)(a),
        reductions.cumsum(1)(ops.exp(a)),
        reductions.cumprod(1)(a),
        reductions.winners(True, (1,))(a),
        on_arrays.sort(1)(a),
    ]
    agree([a, b, v, s], outputs, [MATRIX, MATRIX[:3] * 2, MATRIX[0], 0.5])


def test_reading_and_writing_at_places() -> None:
    x, z, i, j = real_of(5, 4), real_of(4), fresh(integer), fresh(integer)
    k = fresh(arrays(integer, (3,)))
    outputs = [
        x[i],
        x[i, j],
        x[:, j],
        x[k],
        x[k, i],
        ops.exp(x)[k][:, 1:],
        at_set(x, (i, j), 7.0),
        at_add(x, i, z),
        at_set(x, (slice(1, 3), j), 1.0),
        at_add(x, k, z),
        at_add(ops.exp(x), (k, i), 1.0),
        at_set(at_set(x, i, z), j, x[i] + 1.0),
    ]
    values = [MATRIX, RNG.normal(size=4), -2, 3, np.array([1, 1, -1])]
    agree([x, z, i, j, k], outputs, values)


def test_an_array_is_read_before_it_is_written_over() -> None:
    x = real_of(6)
    y = ops.exp(x)
    shifted = at_set(y, slice(1, 6), y[0:5])
    turned = at_set(y, slice(0, 6), y[::-1])
    added = at_add(y, slice(0, 5), y[1:6] * 2.0)
    same = at_add(y, slice(0, 5), y[0:5] * y[0:5])
    one = at_set(y, 2, y[3] + y[2])
    back = at_add(y, slice(0, 5), y[0:5][::-1] * 3.0)
    for node in (shifted, turned, added, same, one, back):
        agree([x], [node], [np.arange(6.0)])
        agree([x], [node, y], [np.arange(6.0)])
        agree([x], [reductions.total((0,))(node) + node * y], [np.arange(6.0)])
    first = at_set(y, 0, 1.0)
    second = at_set(y, 1, 2.0)
    agree([x], [first + second, at_set(first, 3, 3.0)], [np.arange(6.0)])


def test_outputs_that_are_inputs_constants_or_the_same() -> None:
    x, n = real_of(2, 3), fresh(real)
    c = constant(np.arange(3.0))
    agree([x, n], [x, x, n, c, constant(2.0), x * 2.0, x * 2.0, c + x], [np.ones((2, 3)), 4.0])


def test_arrays_without_elements() -> None:
    x, y = real_of(0, 3), real_of(2, 0)
    outputs = [
        ops.exp(x),
        reductions.total((0,))(x),
        reductions.total((0, 1))(x),
        reductions.total((1,))(y),
        reductions.product((0,))(x),
        on_arrays.matmul(y, x),
        on_arrays.concatenate(0, 2)(x, x),
        on_arrays.reshape((3, 0))(x),
        on_arrays.transpose((1, 0))(x),
    ]
    agree([x, y], outputs, [np.zeros((0, 3)), np.zeros((2, 0))])


def test_arrays_of_one_element() -> None:
    x = real_of(1, 1)
    agree([x], [ops.exp(x), reductions.total((0,))(x), x[0, 0], x[0], x + 1.0], [np.full((1, 1), 2.0)])


@pytest.mark.parametrize("index", [5, -6, 2**62, -(2**63)])
def test_an_index_out_of_range_is_an_error(index: int) -> None:
    x, i = real_of(5), fresh(integer)
    k = fresh(arrays(integer, (2,)))
    with pytest.raises(IndexError, match=f"index {index} is out of range for an axis of length 5"):
        run(Graph((x, i), (x[i],)), [np.zeros(5), index])
    with pytest.raises(IndexError, match=str(index)):
        run(Graph((x, i), (at_set(x, i, 1.0),)), [np.zeros(5), index])
    with pytest.raises(IndexError, match=str(index)):
        run(Graph((x, k), (x[k],)), [np.zeros(5), np.array([0, index])])


def test_an_error_of_an_operation_that_python_computes() -> None:
    from dynagrad.ir.ops.matrices import cholesky

    x = real_of(2, 2)
    with pytest.raises(np.linalg.LinAlgError):
        run(Graph((x,), (cholesky(x) + x,)), [-np.eye(2)])


def _types() -> list[Type]:
    return [arrays(boolean, (3,)), arrays(integer, (3,))]


def test_arrays_of_other_kinds() -> None:
    t, n = (fresh(x) for x in _types())
    x = real_of(3)
    outputs: list[Any] = [ops.where(t, x, 0.0), integers.to_real(n) * x, t, n, n[1], t[::-1], integers.add(n, n[0])]
    agree([t, n, x], outputs, [np.array([True, False, True]), np.array([3, -1, 2]), np.array([1.0, 2.0, 3.0])])


Make = Callable[[Node], Any]
