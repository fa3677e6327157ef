"""Fixed points in the graph and their implicit derivatives, against closed forms and numpy's linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.autodiff import fixed_point as implicit
from dynagrad.autodiff.custom_rules import apply
from dynagrad.autodiff.derive import generate_adjoints, tangents
from dynagrad.autodiff.fixed_point import solver
from dynagrad.codegen.graph.native import Native
from dynagrad.ir import cos, real, variable
from dynagrad.ir.control import Graph, GraphFunction
from dynagrad.ir.interpret import run
from dynagrad.ir.node import Node, constant, fresh
from dynagrad.ir.ops.arrays import matmul
from dynagrad.ir.ops.ravelling import ravel, unravel
from dynagrad.ir.types import arrays

x, a = variable("x"), variable("a")


def root(most: int = 100) -> list[Node]:
    """The square root of a, by the Babylonians."""
    return apply(solver(Graph((x, a), (0.5 * (x + a / x),)), 1), 1.0, 1e-12, most, a)


def everywhere(graph: Graph, *arguments: Any) -> tuple[Any, ...]:
    """What the interpreter and native code compute; they agree."""
    found = run(graph, arguments)
    for one, other in zip(Native(graph, "f")(*arguments), found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    return found


def test_a_square_root_and_its_derivatives() -> None:
    [y] = root()
    forward = tangents([y], {a: 1.0})[0]
    back = generate_adjoints([y], [1.0], [a])[a]
    assert forward is not None and back is not None
    seconds = [tangents([forward], {a: 1.0})[0], tangents([back], {a: 1.0})[0]]
    seconds += [generate_adjoints([d], [1.0], [a])[a] for d in (forward, back)]
    found = everywhere(Graph((a,), (y, forward, back, *seconds)), 2.0)  # type: ignore[arg-type]
    first, second = 0.5 / np.sqrt(2.0), -0.25 * 2.0**-1.5
    assert found == pytest.approx((np.sqrt(2.0), first, first, second, second, second, second))


def linear(n: int) -> tuple[GraphFunction, Node, Node]:
    """x = A x + b, in two pieces."""
    m, b = fresh(arrays(real, (n + 1, n + 1))), fresh(arrays(real, (n + 1,)))
    types = [arrays(real, (n,)), real]
    states = [fresh(t) for t in types]
    new = matmul(m, ravel(states)) + b
    return solver(Graph((*states, m, b), tuple(unravel(new, [t.shape for t in types]))), 2), m, b


@pytest.mark.parametrize("n", [1, 3, 20])
def test_a_linear_equation(n: int) -> None:
    made, m, b = linear(n)
    solution = ravel(apply(made, np.zeros(n), 0.0, 1e-14, 500, m, b))
    weights = np.arange(1.0, n + 2.0)
    back = generate_adjoints([solution], [constant(weights)], [m, b])
    dm, db = fresh(m.type), fresh(b.type)
    along = tangents([solution], {m: dm, b: db})[0]
    assert along is not None
    rng = np.random.default_rng(n)
    at = rng.uniform(-0.5, 0.5, (n + 1, n + 1)) / n, rng.standard_normal(n + 1)
    moved = rng.standard_normal((n + 1, n + 1)), rng.standard_normal(n + 1)
    found = everywhere(Graph((m, b, dm, db), (solution, back[m], back[b], along)), *at, *moved)  # type: ignore[arg-type]
    inverse = np.linalg.inv(np.eye(n + 1) - at[0])
    y = inverse @ at[1]
    np.testing.assert_allclose(found[0], y, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found[2], inverse.T @ weights, rtol=1e-10)
    np.testing.assert_allclose(found[1], np.outer(inverse.T @ weights, y), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[3], inverse @ (moved[0] @ y + moved[1]), rtol=1e-9, atol=1e-11)


def test_without_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above so many reals, the linear equation is iterated; the results are those of the matrix, to second order."""
    p = fresh(arrays(real, (6,)))
    v = fresh(arrays(real, (6,)))
    given = np.linspace(0.1, 0.9, 6)

    def derivatives() -> tuple[Any, ...]:
        step = Graph((v, p), (0.5 * cos(p * v + v[0]),))
        [y] = apply(solver(step, 1), np.zeros(6), 1e-15, 1000, p)
        back = generate_adjoints([y * y], [constant(np.ones(6))], [p])[p]
        along = tangents([y], {p: constant(np.ones(6))})[0]
        assert back is not None and along is not None
        twice = generate_adjoints([back], [constant(given)], [p])[p]
        mixed = tangents([back], {p: constant(given)})[0]
        return everywhere(Graph((p,), (y, back, along, twice, mixed)), given)  # type: ignore[arg-type]

    dense = derivatives()
    monkeypatch.setattr(implicit, "DENSE", 5)
    for one, other in zip(derivatives(), dense, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)
    np.testing.assert_allclose(dense[3], dense[4], rtol=1e-11)


@pytest.mark.parametrize(
    "most, at, error, message",
    [
        (2, 4.0, dg.NotConverged, "no fixed point was reached in 2 steps; the last one still changed x by 0.45"),
        (100, np.nan, dg.Error, "step 1 reached NaN"),
        (100, np.inf, dg.Error, "step 1 reached an infinity"),
    ],
)
def test_what_does_not_settle_is_an_error(most: int, at: float, error: type[Exception], message: str) -> None:
    graph = Graph((a,), tuple(root(most)))
    for computed in (lambda: run(graph, [at]), lambda: Native(graph, "f")(at)):
        with pytest.raises(error, match=message):
            computed()


@pytest.mark.parametrize("n", [1, 2])
def test_where_the_solution_is_not_differentiable(n: int) -> None:
    t = arrays(real, (n,))
    s, b, d = fresh(t), fresh(t), fresh(t)
    for step, message in ((s + b, "I - A is singular"), (s + b * np.sqrt(s - s), "is not finite")):
        [y] = apply(solver(Graph((s, b), (step,)), 1), np.ones(n), 1e-12, 10, b)
        for derivative in (tangents([y], {b: d})[0], generate_adjoints([y], [d], [b])[b]):
            assert derivative is not None
            with pytest.raises(dg.NotDifferentiable, match=message):
                run(Graph((b, d), (derivative,)), [np.zeros(n), np.ones(n)])


def test_native_code_says_where_it_is_not_differentiable() -> None:
    t = arrays(real, (2,))
    s, b = fresh(t), fresh(t)
    [y] = apply(solver(Graph((s, b), (s + b,)), 1), np.ones(2), 1e-12, 10, b)
    d = tangents([y], {b: constant(np.ones(2))})[0]
    assert d is not None
    with pytest.raises(dg.NotDifferentiable, match="I - A is singular"):
        Native(Graph((b,), (d,)), "f")(np.zeros(2))


def test_an_equation_without_a_solution_is_found_out_before_its_derivative() -> None:
    """x = x + a has the derivative of no solution, whatever the linear equation says."""
    [y] = apply(solver(Graph((x, a), (x + a,)), 1), 0.0, 1e-12, 10, a)
    d = tangents([y], {a: 1.0})[0]
    assert d is not None
    for computed in (run, lambda graph, xs: Native(graph, "f")(*xs)):
        with pytest.raises(dg.NotConverged):
            computed(Graph((a,), (d,)), [1.0])


def test_vectors_and_their_pieces() -> None:
    types = [arrays(real, (2, 2)), real, arrays(real, (3,)), arrays(real, (0,))]
    nodes = [fresh(t) for t in types]
    values = [np.arange(4.0).reshape(2, 2), 4.0, np.arange(5.0, 8.0), np.zeros(0)]
    found = everywhere(Graph(tuple(nodes), (ravel(nodes), *unravel(ravel(nodes), [t.shape for t in types]))), *values)
    np.testing.assert_array_equal(found[0], np.arange(8.0))
    for piece, value in zip(found[1:], values, strict=True):
        np.testing.assert_array_equal(piece, value)
