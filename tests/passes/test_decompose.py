"""Decomposition of sums of exponentials for native code: the same as numpy. Costs two seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.codegen.graph import load
from dynagrad.eager.numpy import exponentials
from dynagrad.ir.builders import cond, repeat
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import Node, fresh, whole
from dynagrad.ir.ops import reductions
from dynagrad.ir.types import arrays, real
from dynagrad.passes.decompose import RULES, decompose

INF, NAN = np.inf, np.nan
RNG = np.random.default_rng(4)
EDGES = np.array(
    [
        [0.0, 1.0, -1.0, 2.0],
        [1000.0, 1000.0, -1000.0, 999.0],
        [INF, 0.0, INF, 1.0],
        [-INF, -INF, -INF, -INF],
        [-INF, 0.0, -2000.0, -INF],
        [INF, -INF, 0.0, 0.0],
        [NAN, 0.0, INF, 1.0],
        [0.0, -0.0, -INF, NAN],
    ]
)
OPERATIONS = {
    "logsumexp": lambda axes: exponentials._logsumexp(axes, False),
    "logsumexp_kept": lambda axes: exponentials._logsumexp(axes, True),
    "softmax": exponentials._softmax,
    "shares": exponentials._shares,
    "log_softmax": exponentials._log_softmax,
}
GIVEN = {"edges": EDGES, "cube": 3.0 * RNG.normal(size=(4, 5, 6)), "line": RNG.normal(size=37)}
AXES = {"edges": [(0,), (1,), (0, 1)], "cube": [(0,), (1,), (2,), (0, 2), (0, 1, 2)], "line": [(0,)]}
CASES = [(name, given, axes) for name in OPERATIONS for given, several in AXES.items() for axes in several]


def real_of(x: Any) -> Node:
    return fresh(arrays(real, np.shape(x)))


@pytest.fixture(scope="module")
def together() -> dict[Any, tuple[Any, Any]]:
    """What each case gives, and should give: all of them in one graph, which compiles once."""
    inputs = {name: real_of(x) for name, x in GIVEN.items()}
    outputs = [OPERATIONS[name](axes)(inputs[given]) for name, given, axes in CASES]
    graph = Graph(tuple(inputs.values()), tuple(outputs))
    native, values = load(graph, optimise=1), list(GIVEN.values())
    assert not native.text.hosted  # nothing is left to Python
    with np.errstate(all="ignore"):
        wanted = interpret(graph, values)
    return dict(zip(CASES, zip(native(*values), wanted, strict=True), strict=True))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_are_those_of_numpy(case: Any, together: dict[Any, tuple[Any, Any]]) -> None:
    found, wanted = together[case]
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-15, equal_nan=True)


def test_each_rule_is_of_a_family_that_has_a_tag() -> None:
    x = real_of(GIVEN["line"])
    made = {op(axes)(x).operation.code[0] for op in OPERATIONS.values() for axes in [(0,)]}
    assert made == set(RULES)


def test_a_graph_without_them_is_the_same_graph() -> None:
    x = real_of(GIVEN["line"])
    graph = Graph((x,), (x + 1.0,))
    assert decompose(graph) is graph


def test_in_loops_and_branches() -> None:
    x, n = real_of(EDGES[:2]), fresh(whole(0).type)
    rounds = repeat(n, lambda _, y: [exponentials._log_softmax((1,))(y) * 1.5], [x])
    either = cond(n > 1, lambda: [exponentials._logsumexp((0,), False)(x)], lambda: [reductions.total((0,))(x)])
    graph = Graph((x, n), (*rounds, *either))
    native = load(graph)
    assert not native.text.hosted
    for count in (0, 1, 5):
        for found, wanted in zip(native(EDGES[:2], count), interpret(graph, [EDGES[:2], count]), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("function", [dg.special.logsumexp, dg.special.softmax, dg.special.log_softmax])
def test_derivatives(function: Any) -> None:
    x, w = RNG.normal(size=(6, 9)), RNG.normal(size=(6, 9))

    def weighted(x: Any) -> Any:
        y = function(x, axis=-1)
        return np.sum(y * y) if y.ndim == 1 else np.sum(w * y)

    fast = dg.compile(weighted)
    for made in (dg.compile(dg.grad(weighted)), dg.grad(fast)):
        np.testing.assert_allclose(made(x), dg.grad(weighted)(x), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(dg.compile(dg.hessian(weighted))(x), dg.hessian(weighted)(x), rtol=1e-10, atol=1e-12)


def test_large_ones_in_several_threads() -> None:
    x = RNG.normal(size=(300, 5000))
    value, shares = dg.compile(lambda x: (dg.special.logsumexp(x, axis=-1), dg.special.softmax(x, axis=0)))(x)
    np.testing.assert_allclose(value, dg.special.logsumexp(x, axis=-1), rtol=1e-13)
    np.testing.assert_allclose(shares, dg.special.softmax(x, axis=0), rtol=1e-12)
