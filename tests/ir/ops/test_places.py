"""Indexing of arrays: gather, scatter-add and scatter, against numpy; derivatives; invalid indices."""

import itertools

import numpy as np
import pytest

from dynagrad.autodiff.derive import generate_adjoints, tangents
from dynagrad.errors import Error
from dynagrad.ir import sin, variable
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run
from dynagrad.ir.node import fresh
from dynagrad.ir.ops.places import Slice, at_add, at_set, item, pattern_of
from dynagrad.ir.ops.reductions import total
from dynagrad.ir.types import arrays, boolean, integer, real

SHAPE = (4, 5, 3)
A = np.random.default_rng(3).normal(size=SHAPE)
a = variable("a", arrays(real, SHAPE))
i, j = variable("i", integer), variable("j", integer)
k = variable("k", arrays(integer, (2,)))
KNOWN = {"a": A, "i": 2, "j": -1, "k": np.array([3, 0])}
INPUTS = (a, i, j, k)

FIXED = [
    (),
    (1,),
    (-1,),
    (1, 2, 0),
    (slice(1, 3),),
    (slice(None, None, 2), slice(4, 0, -2)),
    (slice(None, None, -1),),
    (..., 1),
    (0, ..., slice(0, 2)),
    (None, 1, None),
    (slice(None), None, slice(None)),
    (slice(3, 1),),
    ([2, 0, 2],),
    (slice(None), np.array([1, -1])),
    (np.array([True, False, True, True]),),
    (np.int64(3), slice(None, -1)),
]
KNOWN_LATER = [
    (i,),
    (i, j),
    (i, slice(1, 4), 2),
    (slice(None), j),
    (..., i),
    (k,),
    (slice(None), k),
    (k, i),
    (0, k, slice(None, None, -1)),
    (i + 1, j, 0),
    (None, i),
]


def plain(index):
    """The index with the values of what is known later."""
    from dynagrad.ir.node import Node

    return tuple(run(Graph(INPUTS, (e,)), list(KNOWN.values()))[0] if isinstance(e, Node) else e for e in index)


def value(node):
    return run(Graph(INPUTS, (node,)), list(KNOWN.values()))[0]


@pytest.mark.parametrize("index", [*FIXED, *KNOWN_LATER], ids=repr)
def test_reading_is_numpys(index):
    node = a[index]
    wanted = A[plain(index)]
    assert node.type.shape == wanted.shape
    np.testing.assert_array_equal(value(node), wanted)


@pytest.mark.parametrize("index", [*FIXED, *KNOWN_LATER], ids=repr)
def test_adding_and_setting_are_numpys(index):
    at = plain(index)
    z = np.random.default_rng(0).normal(size=A[at].shape)
    added, replaced = A.copy(), A.copy()
    np.add.at(added, at, z)
    replaced[at] = z
    z = float(z) if z.ndim == 0 else z
    np.testing.assert_array_equal(value(at_add(a, index, z)), added)
    np.testing.assert_array_equal(value(at_set(a, index, z)), replaced)
    if A[at].size:
        replaced[at] = 7.0
        np.testing.assert_array_equal(value(at_set(a, index, 7.0)), replaced)  # a number goes everywhere


def test_a_place_that_occurs_several_times_gets_all_that_is_added():
    v = np.array([1, 1, 3])
    assert value(at_add(a, (v, 0, 0), np.array([1.0, 10.0, 100.0])))[:, 0, 0].tolist() == pytest.approx(
        (A[:, 0, 0] + [0.0, 11.0, 0.0, 100.0]).tolist()
    )


def test_nothing_is_written_to():
    before = A.copy()
    value(at_set(at_add(a, 0, 1.0), 1, 2.0))
    np.testing.assert_array_equal(A, before)


def test_the_whole_array_is_itself():
    assert item(a, ...) is a and item(a, (slice(None), slice(0, 5))) is a


def test_arrays_of_whole_numbers_and_of_truth_values_keep_their_kind():
    n, p = fresh(arrays(integer, (3,))), fresh(arrays(boolean, (3,)))
    assert n[i].type is integer and p[1:].type is arrays(boolean, (2,))
    found = run(
        Graph((n, p, i), (n[i], p[i], at_set(n, i, 9))), [np.array([5, 6, 7]), np.array([True, False, True]), 1]
    )
    assert found[:2] == (6, False) and found[2].tolist() == [5, 9, 7] and found[2].dtype == np.int64


def test_patterns():
    assert pattern_of((4, 5), (1, slice(None, None, -2))) == ((1, Slice(4, -1, -2)), ())
    pattern, holes = pattern_of((4, 5), (i, None, k))
    assert pattern == ("hole", "new axis", "hole") and holes[0] is i and holes[1] is k
    assert Slice(1, 4, 2).length == 2 and Slice(4, -1, -2).python() == slice(4, None, -2)


# -- derivatives -------------------------------------------------------------------------------------------------------

z = variable("z")


def gradient_by_differences(f, at, h=1e-6):
    found = np.zeros(at.shape)
    for place in itertools.product(*map(range, at.shape)):
        up, down = at.copy(), at.copy()
        up[place] += h
        down[place] -= h
        found[place] = (f(up) - f(down)) / (2 * h)
    return found


@pytest.mark.parametrize("index", [*FIXED[4:6], FIXED[12], *KNOWN_LATER[1::5], (k, k)], ids=repr)
@pytest.mark.parametrize("how", ["item", "add", "set"])
def test_both_modes_against_differences(index, how):
    w = variable("w", arrays(real, A[plain(index)].shape))
    y = {"item": lambda: a[index] * w, "add": lambda: at_add(a, index, w), "set": lambda: at_set(a, index, w)}[how]()
    s = total(tuple(range(y.ndim)))(sin(y) * y) if y.ndim else sin(y) * y
    inputs = (a, i, j, k, w)
    W = np.random.default_rng(1).normal(size=w.shape) if w.shape else 0.3
    points = [*KNOWN.values(), W]

    def f(at):
        return run(Graph(inputs, (s,)), [at, *points[1:]])[0]

    found = generate_adjoints([s], [1.0], [a, w])
    da, dw = run(Graph(inputs, tuple(found.values())), points)
    assert da.shape == SHAPE and np.shape(dw) == w.shape
    np.testing.assert_allclose(da, gradient_by_differences(f, A), atol=1e-7)
    ta, tw = fresh(a.type), fresh(w.type)
    [forward] = tangents([s], {a: ta, w: tw})
    rng = np.random.default_rng(2)
    directions = [rng.normal(size=SHAPE), rng.normal(size=w.shape) if w.shape else 1.7]
    [along] = run(Graph((*inputs, ta, tw), (forward,)), [*points, *directions])
    assert along == pytest.approx(np.sum(da * directions[0]) + np.sum(dw * directions[1]), rel=1e-12)


def test_of_a_place_that_is_set_twice_the_last_counts_also_in_derivatives():
    v, w = fresh(arrays(real, (2,))), variable("w", arrays(real, (3,)))
    for places in (np.array([1, 0, 1]), fresh(arrays(integer, (3,)))):
        y = total((0,))(at_set(v, places, w) * np.array([5.0, 7.0]))
        adjoint = generate_adjoints([y], [1.0], [w])[w]
        inputs = (v, w, *(() if isinstance(places, np.ndarray) else (places,)))
        points = [np.zeros(2), np.ones(3), np.array([1, 0, 1])][: len(inputs)]
        assert run(Graph(inputs, (adjoint,)), points)[0].tolist() == [0.0, 5.0, 7.0]


def test_a_number_that_is_set_everywhere_has_the_sum_of_adjoints():
    y = total((0, 1, 2))(at_set(a, (slice(1, 3),), z) * 2.0)
    assert run(Graph((a, z), (generate_adjoints([y], [1.0], [z])[z],)), [A, 1.0]) == (2.0 * 2 * 5 * 3,)


def test_reading_a_place_again_and_again_adds_to_one_array():
    """n places that are read take n additions in one array, not n arrays."""
    from dynagrad.ir import order

    v = fresh(arrays(real, (9,)))
    y = sum((v[n] * v[n] for n in range(1, 9)), start=v[0])
    adjoint = generate_adjoints([y], [1.0], [v])[v]
    kinds = [n.operation.name for n in order([adjoint])]
    zeros = [n for n in order([adjoint]) if n.type is v.type and n.operation.name in ("broadcast_to", "constant")]
    assert len(zeros) == 1 and kinds.count("add_at") >= 9
    [found] = run(Graph((v,), (adjoint,)), [np.arange(9.0)])
    assert found.tolist() == [1.0, *(2.0 * n for n in range(1, 9))]


# -- what is no index --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (4, "the index 4 is out of range for an axis of length 4"),
        ((0, -6), "the index -6 is out of range for an axis of length 5"),
        ((0, 0, 0, 0), "has 3 axes, and 4 were indexed"),
        (([4],), "an index is out of range for an axis of length 4"),
        ("x", "an index is a whole number, a slice or an array"),
        (1.0, "an index is a whole number, a slice or an array"),
        (([0.5],), "an index is a whole number, a slice or an array"),
        (z, "an index is a whole number, and z is a real; a mask goes with np.where"),
        (a > 0.0, "a mask goes with np.where"),
        (slice(i, None), "the bounds of a slice decide a shape"),
        ((..., 0, ...), "there are too many indices, or two `...`"),
    ],
)
def test_what_is_no_index_says_why(index, message):
    with pytest.raises(Error, match=message):
        a[index]


def test_a_number_has_no_places():
    with pytest.raises(TypeError, match="a single number is not subscriptable"):
        z[0]


def test_a_place_out_of_range_is_an_error_of_the_run():
    with pytest.raises(IndexError):
        run(Graph((a, i), (a[i],)), [A, 4])


def test_what_is_set_has_to_fit():
    with pytest.raises((Error, ValueError)):
        run(Graph((a,), (at_set(a, 0, np.ones(7)),)), [A])
