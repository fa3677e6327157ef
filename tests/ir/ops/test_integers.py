"""Operations on whole numbers, against Python and numpy; and which results are whole numbers."""

import operator

import numpy as np
import pytest

from dynagrad.autodiff.derive import generate_adjoints, tangents
from dynagrad.errors import Error
from dynagrad.ir import exp, variable
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run
from dynagrad.ir.node import fresh, whole
from dynagrad.ir.ops import integers as ints
from dynagrad.ir.types import arrays, boolean, integer, real

i, j, x = variable("i", integer), variable("j", integer), variable("x")

PAIRS = {
    ints.add: operator.add,
    ints.subtract: operator.sub,
    ints.multiply: operator.mul,
    ints.floor_divide: operator.floordiv,
    ints.remainder: operator.mod,
    ints.minimum: min,
    ints.maximum: max,
    ints.less: operator.lt,
    ints.less_equal: operator.le,
    ints.greater: operator.gt,
    ints.greater_equal: operator.ge,
    ints.equal: operator.eq,
    ints.not_equal: operator.ne,
    ints.bitwise_and: operator.and_,
    ints.bitwise_or: operator.or_,
    ints.bitwise_xor: operator.xor,
}
SHIFTS = {ints.left_shift: np.left_shift, ints.right_shift: np.right_shift}
SINGLE = {ints.negative: operator.neg, ints.absolute: abs, ints.to_real: float, ints.invert: operator.invert}
VALUES = [-7, -2, -1, 1, 3, 10**6]


def at(node, *points):
    inputs = [n for n in (i, j, x) if n.type is not real or len(points) == 3][: len(points)]
    return run(Graph(tuple(inputs), (node,)), points)[0]


def test_every_operation_is_tested_here():
    rest = {ints.power, ints.power_fits, ints.where, ints.choose, ints.to_integer, ints.count_true, ints.truth_to_real}
    assert set(ints.TABLE.values()) == {*PAIRS, *SHIFTS, *SINGLE, *rest}


@pytest.mark.parametrize("operation", PAIRS, ids=lambda o: o.name)
def test_pairs_are_those_of_python(operation):
    node = operation(i, j)
    assert node.type is operation.result
    for a in VALUES:
        for b in VALUES:
            found = at(node, a, b)
            assert found == PAIRS[operation](a, b) and type(found) is type(PAIRS[operation](a, b))


@pytest.mark.parametrize("operation", PAIRS, ids=lambda o: o.name)
def test_pairs_of_arrays_are_those_of_numpy(operation):
    a, b = np.array([[-7], [3], [2]]), np.array([-2, 5, 1, 4])
    node = operation(fresh(arrays(integer, a.shape)), fresh(arrays(integer, b.shape)))
    found = run(Graph(node.arguments, (node,)), [a, b])[0]
    assert node.type.shape == found.shape == (3, 4)
    assert node.dtype == found.dtype
    np.testing.assert_array_equal(found, [[PAIRS[operation](p, q) for q in b.tolist()] for p in a[:, 0].tolist()])


@pytest.mark.parametrize("operation", SHIFTS, ids=lambda o: o.name)
def test_shifts_are_those_of_numpy(operation):
    for a in (-7, 1, 2**62, -(2**63)):
        for b in (-1, 0, 1, 5, 62, 63, 64, 100):
            found = at(operation(i, j), a, b)
            assert found == SHIFTS[operation](np.int64(a), np.int64(b)) and type(found) is int


@pytest.mark.parametrize("operation", SINGLE, ids=lambda o: o.name)
def test_single_ones(operation):
    for a in VALUES:
        assert at(operation(i), a) == SINGLE[operation](a)
    v = fresh(arrays(integer, (3,)))
    [found] = run(Graph((v,), (operation(v),)), [np.array([-1, 0, 5])])
    assert found.tolist() == [SINGLE[operation](a) for a in (-1, 0, 5)]


def test_powers_go_round_and_say_so():
    for a in (*VALUES, 0, 2**31, -(2**62), -(2**63)):
        for n in (0, 1, 2, 3, 39, 40, 62, 63, 64, 1000):
            wanted = a**n
            assert at(ints.power(i, j), a, n) == (wanted + 2**63) % 2**64 - 2**63
            assert at(ints.power_fits(i, j), a, n) is (-(2**63) <= wanted < 2**63)
        assert at(ints.power(i, j), a, -1) == 0 and at(ints.power_fits(i, j), a, -1) is False
    v = fresh(arrays(integer, (3,)))
    powers, fits = run(Graph((v,), (ints.power(v, whole(40)), ints.power_fits(v, whole(40)))), [np.array([2, 3, -1])])
    assert powers.dtype == np.int64 and powers.tolist() == [2**40, (3**40 + 2**63) % 2**64 - 2**63, 1]
    assert fits.dtype == np.bool_ and fits.tolist() == [True, False, True]


def test_conversions():
    p = variable("p", boolean)
    assert run(Graph((x,), (ints.to_integer(x),)), [-2.9]) == (-2,)
    assert run(Graph((p,), (ints.count_true(p), ints.truth_to_real(p))), [True]) == (1, 1.0)
    truths = fresh(arrays(boolean, (3,)))
    counts, reals = run(
        Graph((truths,), (ints.count_true(truths), ints.truth_to_real(truths))), [np.array([1, 0, 1]) > 0]
    )
    assert counts.dtype == np.int64 and reals.dtype == np.float64 and counts.tolist() == [1, 0, 1]


def test_choices():
    p = variable("p", boolean)
    node = ints.where(p, i, whole(3))
    assert [run(Graph((p, i), (node,)), [t, 7])[0] for t in (True, False)] == [7, 3]
    either = ints.choose(p, i > 3, i < 0)
    assert [run(Graph((p, i), (either,)), [t, 7])[0] for t in (True, False)] == [True, False]


def test_a_division_by_zero_is_zero_for_single_numbers():
    """C++ must not divide by zero, and no value is asked for there."""
    assert at(ints.floor_divide(i, j), 5, 0) == 0 and at(ints.remainder(i, j), 5, 0) == 0


# -- Python's and numpy's operators ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "type"),
    [
        (i + 1, integer),
        (1 - i, integer),
        (i * j, integer),
        (7 // i, integer),
        (i % 3, integer),
        (-i, integer),
        (abs(i), integer),
        (i < 3, boolean),
        (i == j, boolean),
        (np.int64(2) + i, integer),
        (np.minimum(i, 3), integer),
        (np.maximum(2, i), integer),
        (np.absolute(i), integer),
        (i + 1.5, real),
        (i + 1.0, real),
        (i * x, real),
        (i / 2, real),
        (i**2, real),
        (np.maximum(i, 2.5), real),
        (exp(i), real),
        (np.arange(3) + i, arrays(integer, (3,))),
        (i * np.arange(3), arrays(integer, (3,))),
        (i * np.ones(3), arrays(real, (3,))),
        (i < np.arange(3), arrays(boolean, (3,))),
    ],
    ids=repr,
)
def test_arithmetic_of_whole_numbers_stays_whole(node, type):
    assert node.type is type


def test_a_truth_value_counts_as_a_whole_number_where_one_is_wanted():
    assert at(i + (i > 2), 5) == 6


def test_a_real_is_no_whole_number():
    with pytest.raises(Error, match="argument 2 should be a whole number"):
        ints.add(i, x)
    with pytest.raises(Error, match="argument 1 should be a whole number"):
        ints.negative(1.5 * x)


def test_names_are_given_once():
    with pytest.raises(Error, match="an operation named integer_add is declared already"):
        ints.declare(ints.add)


def test_nothing_is_connected_through_a_whole_number():
    y = ints.to_real(ints.to_integer(x)) * 2.0
    assert generate_adjoints([y], [1.0], [x]) == {x: None}
    assert tangents([y, ints.to_real(i) * x], {x: 1.0})[0] is None
