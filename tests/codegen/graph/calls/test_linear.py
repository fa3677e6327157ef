"""Linear algebra in native code: values and errors of numpy, for matrices and stacks of them. Costs a few seconds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

import dynagrad as dg
from dynagrad import NotDifferentiable
from dynagrad.codegen.graph.emit import emit
from dynagrad.codegen.graph.running import load
from dynagrad.ir.control import Graph
from dynagrad.ir.node import fresh
from dynagrad.ir.operation import Operation
from dynagrad.ir.ops import arrays, determinants, matrices
from dynagrad.ir.types import arrays as array_type
from dynagrad.ir.types import real

RNG = np.random.default_rng(0)


def graph_of(operation: Operation, *values: np.ndarray) -> Graph:
    inputs = tuple(fresh(array_type(real, np.shape(v))) for v in values)
    return Graph(inputs, (operation(*inputs),))


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def square(*shape: int) -> np.ndarray:
    return normal(*shape) + 3 * np.eye(shape[-1])


def positive(*shape: int) -> np.ndarray:
    a = square(*shape)
    return a @ np.swapaxes(a, -1, -2)


CASES = {
    "matrices": (arrays.matmul, normal(40, 50), normal(50, 30)),
    "stacks": (arrays.matmul, normal(3, 40, 50), normal(3, 50, 30)),
    "stack_and_matrix": (arrays.matmul, normal(2, 3, 40, 20), normal(20, 30)),
    "matrix_and_stack": (arrays.matmul, normal(40, 20), normal(5, 20, 30)),
    "matrix_and_vector": (arrays.matmul, normal(400, 300), normal(300)),
    "vector_and_matrix": (arrays.matmul, normal(300), normal(300, 400)),
    "solve": (matrices.solve, square(5, 5), normal(5, 3)),
    "solve_stacks": (matrices.solve, square(4, 5, 5), normal(4, 5, 2)),
    "solve_one_for_many": (matrices.solve, square(5, 5), normal(4, 5, 2)),
    "solve_lower": (matrices.solve_lower, square(70, 70), normal(70, 40)),
    "solve_lower_of_a_triangle": (matrices.solve_lower, square(70, 70), np.tril(square(70, 70))),
    "solve_lower_transposed_of_one": (matrices.solve_lower_transposed, square(70, 70), np.triu(square(70, 70))),
    "lower_product": (matrices.lower_product, square(70, 70), normal(70, 70)),
    "lower_products": (matrices.lower_product, square(5, 5), normal(4, 5, 5)),
    "solve_lower_stacks": (matrices.solve_lower, square(4, 5, 5), normal(4, 5, 2)),
    "solve_lower_one_for_many": (matrices.solve_lower_transposed, square(5, 5), normal(4, 5, 2)),
    "solve_lower_transposed": (matrices.solve_lower_transposed, square(70, 70), normal(70, 40)),
    "cofactors_1": (determinants.cofactors, square(1, 1)),
    "cofactors_2": (determinants.cofactors, square(2, 2)),
    "cofactors_3": (determinants.cofactors, square(3, 3)),
    "cofactors": (determinants.cofactors, square(40, 40) / 8.0),
    "cofactors_of_stacks": (determinants.cofactors, square(2, 3, 5, 5)),
    "cofactors_of_zeros": (determinants.cofactors, square(2, 3, 5, 5) * (np.arange(5) > 1)),
    "inverse": (matrices.inverse, square(6, 6)),
    "inverses": (matrices.inverse, square(2, 3, 4, 4)),
    "cholesky": (matrices.cholesky, positive(5, 5)),
    "choleskys": (matrices.cholesky, positive(3, 5, 5)),
    "determinant": (determinants.determinant, square(5, 5)),
    "determinants": (determinants.determinant, square(2, 3, 5, 5)),
    "log_determinant": (determinants.log_determinant, -square(5, 5)),
    "sign": (determinants.sign_of_determinant, -square(4, 5, 5)),
}


@pytest.fixture(scope="module")
def cofactors():
    """The cofactors as compiled code and as numpy have them."""
    run = {}

    def of(a):
        if a.shape not in run:
            run[a.shape] = load(graph_of(determinants.cofactors, a), optimise=1)
        return run[a.shape](a)[0], determinants.cofactors(a)

    return of


def exactly(a):
    """The cofactors in rational numbers, by minors."""

    def det(rows):
        rows, total = [list(row) for row in rows], Fraction(1)
        for k in range(len(rows)):
            at = next((i for i in range(k, len(rows)) if rows[i][k]), None)
            if at is None:
                return Fraction(0)
            if at != k:
                rows[k], rows[at], total = rows[at], rows[k], -total
            total *= rows[k][k]
            for i in range(k + 1, len(rows)):
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
        return total

    m, n = [[Fraction(x) for x in row] for row in a.tolist()], len(a)
    return np.array(
        [
            [
                float(det([[m[r][c] for c in range(n) if c != j] for r in range(n) if r != i]) * (-1) ** (i + j))
                for j in range(n)
            ]
            for i in range(n)
        ]
    )


@pytest.mark.parametrize("n", [2, 3, 4, 6])
@pytest.mark.parametrize("kind", ["regular", "twice", "nearly twice", "scaled rows", "no column", "of rank n - 2"])
def test_cofactors_of_singular_and_badly_scaled_matrices(cofactors, n, kind):
    for seed in range(5):
        chance = np.random.default_rng(seed)
        a = chance.normal(size=(n, n))
        if kind == "twice":
            a[-1] = a[0]
        elif kind == "nearly twice":
            a[-1] = a[0] * (1.0 + 1e-14)
        elif kind == "scaled rows":
            a *= 10.0 ** chance.integers(-8, 8, size=(n, 1))
        elif kind == "no column":
            a[:, 0] = 0.0
        elif kind == "of rank n - 2":
            a[-1], a[-2] = a[0], 2.0 * a[0]
        wanted = exactly(a)
        for found in cofactors(a):
            assert np.abs(found - wanted).max() <= 2e-15 * max(np.abs(wanted).max(), 1e-3)


@pytest.mark.parametrize("k", [0, 4, 8])
def test_the_second_derivative_of_a_determinant_does_not_depend_on_the_scale_of_rows(k):
    chance = np.random.default_rng(1)
    a, d, e = chance.normal(size=(3, 4, 4))
    rows = 10.0 ** np.linspace(-k, k, 4)[:, None]  # whose product is 1

    def mixed(s, t):
        return np.linalg.det((a + s * d + t * e) * rows)

    def exact(s, t):
        return mp.det(mp.matrix((a + s * d + t * e).tolist()))

    wanted = float(mp.diff(exact, (0.0, 0.0), (1, 1)))
    assert np.isclose(dg.grad(lambda s: dg.grad(lambda t: mixed(s, t))(0.0))(0.0), wanted, rtol=1e-11)


@pytest.fixture(scope="module")
def together() -> dict[str, tuple[object, object]]:
    """What each case gives and should give: all of them in one graph, which compiles once."""
    inputs, outputs, values = [], [], []
    for operation, *given in CASES.values():
        graph = graph_of(operation, *given)
        inputs += graph.inputs
        outputs += graph.outputs
        values += given
    graph = Graph(tuple(inputs), tuple(outputs))
    assert not emit(graph).hosted  # nothing is left to Python
    found = load(graph, optimise=1)(*values)
    return {name: (y, case[0](*case[1:])) for y, (name, case) in zip(found, CASES.items(), strict=True)}


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_numpy(name: str, together: dict[str, tuple[object, object]]) -> None:
    found, wanted = together[name]
    assert np.allclose(found, wanted, rtol=1e-10, atol=1e-12)


def test_stacks_that_repeat_each_other_are_left_to_python() -> None:
    a, b = normal(3, 1, 40, 30), normal(1, 2, 30, 40)
    graph = graph_of(arrays.matmul, a, b)
    assert len(emit(graph).hosted) == 1
    assert np.allclose(load(graph, optimise=0)(a, b)[0], a @ b)


def test_a_singular_matrix_is_an_error() -> None:
    zeros = np.zeros((3, 3))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        load(graph_of(matrices.inverse, zeros), optimise=0)(zeros)
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        load(graph_of(matrices.solve, zeros, zeros), optimise=0)(zeros, zeros)
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        load(graph_of(matrices.cholesky, zeros), optimise=0)(zeros)
    with pytest.raises(NotDifferentiable, match="singular"):
        load(graph_of(matrices.inverse_for_rule, zeros), optimise=0)(zeros)
