"""Every operation on whole arrays in native code: its value and its adjoint; edges of them.

At points the oracle is mpmath in 50 digits (`fifty_digits.py`), at edges numpy and the interpreter. All rows share one
graph, and all edges another, each compiled once, as users have them. A test checks that the tables are complete. Costs
three seconds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from codegen.graph.test_operations import adjoints, of_shape
from dynagrad.codegen.graph.native import Native
from dynagrad.eager.numpy import exponentials
from dynagrad.ir import code
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import fresh, order
from dynagrad.ir.ops import arrays, determinants, reductions
from dynagrad.ir.ops.places import at_add, at_set, item
from dynagrad.ir.types import arrays as array_type
from dynagrad.ir.types import integer, real
from dynagrad.passes import decompose as lower
from eager.numpy.test_fifty_digits import WHOLE
from fifty_digits import Differences, exact

chance = np.random.default_rng(17)
A, B, v = chance.normal(size=(4, 5)), chance.normal(size=(2, 5)), chance.normal(size=5)
ONE, TWO = fresh(integer), fresh(array_type(integer, (2,)))
AT = {ONE: 3, TWO: np.array([2, 0])}
OPTIMISED = True  # see conftest.py
TWICE = [1, 3, 1]  # the first and the last are one place


def changed(index: Any, adding: bool) -> Callable[..., Any]:
    """With 50 digits, what `at_add` and `at_set` are."""

    def meaning(x: Any, z: Any) -> Any:
        out = np.array(x.view(np.ndarray))
        if adding:
            np.add.at(out, index, np.broadcast_to(z.view(np.ndarray), np.shape(out[index])))
        else:
            out[index] = z.view(np.ndarray)
        return exact(out)

    return meaning


def place_rows() -> list[Any]:
    """Reading, adding and setting at each kind of index: a name, the operation, what it means, the points."""
    last = slice(None, None, -2)
    rows: list[Any] = []
    for index, known, z in [
        (1, 1, v),
        ((-1, 2), (-1, 2), 1.5),
        ((slice(1, 3), slice(0, 5)), slice(1, 3), B),
        ((last, slice(1, 4)), (last, slice(1, 4)), B[:, :3]),
        ((slice(0, 2), None), (slice(0, 2), None), B[:, None]),
        (ONE, AT[ONE], v),
        ((ONE, 2), (AT[ONE], 2), 1.5),
        ((slice(1, 4), ONE), (slice(1, 4), AT[ONE]), v[:3]),
        (TWO, AT[TWO], B),
        ((TWO, slice(0, 2)), (AT[TWO], slice(0, 2)), B[:, :2]),
        (TWICE, TWICE, np.stack([*B, v])),
        ((slice(0, 2), TWICE), (slice(0, 2), TWICE), np.stack([v[:3], v[2:]])),
        ([], [], A[:0]),
        (slice(0, 3), slice(0, 3), 2.5),
    ]:
        rows.append(("item", lambda x, i=index: item(x, i), lambda x, k=known: x[k], A))
        rows.append(("add_at", lambda x, z, i=index: at_add(x, i, z), changed(known, True), A, z))
        rows.append(("set_at", lambda x, z, i=index: at_set(x, i, z), changed(known, False), A, z))
    return rows


PLACES = place_rows()


@functools.cache
def of_arrays() -> tuple[Graph, list[np.ndarray], list[np.ndarray], list[slice]]:
    """A graph with a value and adjoints for each row, outputs native and interpreted, and where those of each are."""
    inputs, values, outputs, places = [], [], [], []
    for row in (*WHOLE, *PLACES):
        _, f, _, *points = row
        given = [fresh(of_shape(real, np.shape(p))) for p in points]
        y = f(*given)
        places.append(slice(len(outputs), len(outputs) + 1 + len(given)))
        outputs += [y, *adjoints(y, weights(y.shape), given)]
        inputs += given
        values += [np.array(p) if np.ndim(p) else p for p in points]
    graph = Graph((*inputs, *AT), tuple(outputs))
    values += AT.values()
    return graph, Native(graph, "arrays")(*values), interpret(graph, values), places  # type: ignore[return-value]


def weights(shape: tuple[int, ...]) -> Any:
    found = np.random.default_rng(11).integers(-16, 17, shape) / 8.0
    return found if shape else float(found)


@pytest.mark.parametrize("k", range(len(WHOLE) + len(PLACES)), ids=lambda k: f"{(*WHOLE, *PLACES)[k][0]}-{k}")
def test_values_and_adjoints_of_arrays(k: int) -> None:
    _, _, meaning, *points = (*WHOLE, *PLACES)[k]
    _, native, interpreted, places = of_arrays()
    value, *back = native[places[k]]
    along = [np.random.default_rng(i).integers(-16, 17, np.shape(p)) / 8.0 for i, p in enumerate(points)]
    seen = Differences(meaning, points, along, along)
    near(np.ravel(value), seen.value)
    changes = sum(np.sum(a * d) for a, d in zip(back, along, strict=True))
    near(changes, seen.first() @ np.ravel(weights(np.shape(value))), 1e-11)
    for got, wanted in zip((value, *back), interpreted[places[k]], strict=True):
        assert np.shape(got) == np.shape(wanted)
        near(got, wanted, 1e-11)


def near(found: Any, wanted: Any, tolerance: float = 1e-12) -> None:
    """To the tolerance, relative to the largest of the numbers: one may be small by cancellation."""
    found, wanted = np.asarray(found, float), np.asarray(wanted).astype(float)
    scale = max(1.0, np.max(abs(wanted), initial=0.0))
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=tolerance * scale)


# -- edges of operations on whole arrays -------------------------------------------------------------------------------

TIED = np.array([[1.0, 3.0, 3.0], [3.0, 0.0, 3.0]])
SIGNS = np.array([[0.0, -0.0, 0.0], [-0.0, -0.0, 0.0]])
BAD = np.array([[np.nan, 1.0, np.inf], [-np.inf, np.nan, np.nan], [1.0, -np.inf, 2.0]])
INFINITE = np.array([[np.inf, 1.0, np.inf], [-np.inf, 0.0, -1.0], [1.0, -np.inf, 2.0]])
NONE = np.zeros((0, 3))
MATRICES = [np.zeros((3, 3)), np.eye(3), np.arange(9.0).reshape(3, 3), np.outer([1.0, 2.0, 3.0], [1.0, 0.0, 2.0])]
EDGE_ROWS: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    *(
        (name, f, (x,))
        for x in (TIED, SIGNS, BAD, INFINITE)
        for name, f in (
            *((f"{n}{a}", reductions.extreme(n == "max", a)) for n in ("max", "min") for a in ((0,), (1,), (0, 1))),
            ("logsumexp", exponentials._logsumexp((1,), False)),
            ("softmax", exponentials._softmax((0,))),
            ("log softmax", exponentials._log_softmax((1,))),
            ("winners", reductions.winners(True, (1,))),
            ("losers", reductions.winners(False, (0, 1))),
            ("sum", reductions.total((1,))),
            ("prod", reductions.product((0,))),
            ("cumsum", reductions.cumsum(0)),
            ("cumprod", reductions.cumprod(1)),
            ("sort", arrays.sort(1)),
            ("argsort", arrays.argsort(0)),
            ("tril", arrays.triangle(True)),
            ("reversed", arrays.getitem((slice(None, None, -1),))),
            ("concatenate", lambda x: arrays.concatenate(0, 2)(x, x)),
            ("einsum", lambda x: arrays.einsum(("ij", "ij"), "i")(x, x)),
        )
    ),
    ("sum of none", reductions.total((0,)), (NONE,)),
    ("sum of none at all", reductions.total((0, 1)), (NONE,)),
    ("product of none", reductions.product((0,)), (NONE,)),
    ("largest along none", reductions.extreme(True, (1,)), (NONE,)),
    ("cumsum of none", reductions.cumsum(0), (NONE,)),
    ("sort of none", arrays.sort(0), (NONE,)),
    ("matmul of none", arrays.matmul, (NONE.T, NONE)),
    *(("det", determinants.determinant, (x,)) for x in MATRICES),
    *(("slogdet sign", determinants.sign_of_determinant, (x,)) for x in MATRICES),
    *(("cofactors", determinants.cofactors, (x,)) for x in MATRICES),
    ("dets", determinants.determinant, (np.stack(MATRICES),)),
    ("signs", determinants.sign_of_determinant, (np.stack(MATRICES),)),
]


@functools.cache
def edges_of_arrays() -> list[tuple[Any, Any, Any]]:
    inputs, values, outputs, counts, wanted = [], [], [], [], []
    for _, f, points in EDGE_ROWS:
        given = [fresh(of_shape(real, np.shape(p))) for p in points]
        y = f(*given)
        back = adjoints(y, weights(y.shape), given) if y.type.kind == "real" else []
        counts.append(1 + len(back))
        outputs += [y, *back]
        inputs += given
        values += points
        with np.errstate(all="ignore"):
            wanted.append(f(*points))
    graph = Graph(tuple(inputs), tuple(outputs))
    with np.errstate(all="ignore"):
        native, interpreted = Native(graph, "edges")(*values), interpret(graph, values)
    ends = np.cumsum(counts)
    places = [slice(end - n, end) for end, n in zip(ends, counts, strict=True)]
    return [(native[p], interpreted[p], y) for p, y in zip(places, wanted, strict=True)]


@pytest.mark.parametrize("k", range(len(EDGE_ROWS)), ids=lambda k: f"{EDGE_ROWS[k][0]}-{k}")
def test_edges_of_arrays(k: int) -> None:
    (value, *back), (again, *wanted), in_numpy = edges_of_arrays()[k]
    for expected in (in_numpy, again):
        assert np.shape(value) == np.shape(expected)
        np.testing.assert_allclose(value, expected, rtol=1e-13, atol=1e-13)
    for got, expected in zip(back, wanted, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


# -- the tables are complete -------------------------------------------------------------------------------------------


def test_every_family_has_a_row() -> None:
    seen = {code.code_of(node)[0] for node in order(of_arrays()[0].outputs) if code.code_of(node)}
    elsewhere = set(lower.RULES)  # in test_lower.py
    assert seen | elsewhere == set(code.FAMILIES) | set(code.BY_NUMPY)
