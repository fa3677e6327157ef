"""Jacobians and Hessians: structures and shapes as in jax, for all inputs and outputs. Costs a few seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynagrad as dg

ROW, MATRIX = np.array([0.3, -1.2, 0.7]), np.array([[1.0, 2.0, -0.5], [0.25, -1.0, 3.0]])


def of_two(np: Any, x: Any, y: Any) -> Any:
    return np.sin(x) * np.sum(y * y) + x


def of_arrays(np: Any, x: Any, y: Any) -> Any:
    return {"a": np.dot(y, x) ** 2, "b": [np.sum(x) * y, x[0]]}


def of_containers(np: Any, p: Any, x: Any) -> Any:
    return np.tanh(np.dot(p["w"], x) + p["b"][0]), p["b"][1] * np.sum(x)


def to_one(np: Any, p: Any, x: Any) -> Any:
    return np.sum(np.tanh(np.dot(p["w"], x)) * p["b"][0]) * np.exp(p["b"][1])


PARAMETERS = {"w": MATRIX, "b": (np.array([0.5, -0.1]), 0.2)}
CASES = {
    "a real and a row": (of_two, (0.4, ROW)),
    "a row and a matrix": (of_arrays, (ROW, MATRIX)),
    "a dict and a row": (of_containers, (PARAMETERS, ROW)),
}


def leaves(x: Any) -> list[Any]:
    """Arrays and reals with the way to each."""
    if isinstance(x, dict):
        return [((key, *way), leaf) for key in sorted(x) for way, leaf in leaves(x[key])]
    if isinstance(x, tuple | list):
        return [((type(x), i, *way), leaf) for i, part in enumerate(x) for way, leaf in leaves(part)]
    return [((), x)]


def same(found: Any, expected: Any) -> None:
    ours, theirs = leaves(found), leaves(expected)
    assert [way for way, _ in ours] == [way for way, _ in theirs]
    for (_, a), (_, b) in zip(ours, theirs, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


EMPTY = {"the first": (np.zeros(0), ROW), "the second": (ROW, np.zeros((2, 0)))}


def of_empty(np: Any, x: Any, y: Any) -> Any:
    return 2.0 * x, np.sum(y)


SECOND = {"containers to one": (to_one, (PARAMETERS, ROW)), "a real and a row": (of_two, (0.4, ROW))}
Question = tuple[str, Any, Any, Any]  # verb, function, arguments, argnums

JACOBIANS: dict[str, Question] = {
    f"{verb} {case} {argnums}": (verb, *CASES[case], argnums)
    for verb in ("jacfwd", "jacrev")
    for case in CASES
    for argnums in (0, (-1,), [1, 0])
}
HESSIANS: dict[str, Question] = {
    f"{case} {argnums}": ("hessian", *SECOND[case], argnums) for case in SECOND for argnums in (1, (0,), (1, 0))
}
OF_EMPTY: dict[str, Question] = {
    f"{verb} {which} {argnums}": (verb, of_empty, EMPTY[which], argnums)
    for verb in ("jacfwd", "jacrev", "hessian")
    for which in EMPTY
    for argnums in (0, (0, 1))
}
ALL = JACOBIANS | HESSIANS | OF_EMPTY


@pytest.fixture(scope="module")
def expected() -> Any:
    """What jax says, all of it compiled at once: one by one takes much longer."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    peers = {"jacfwd": jax.jacrev, "jacrev": jax.jacrev, "hessian": jax.hessian}  # its two Jacobians are the same

    def everything() -> Any:
        return {
            name: peers[verb](lambda *a, f=f: f(jax.numpy, *a), argnums)(*arguments)
            for name, (verb, f, arguments, argnums) in ALL.items()
        }

    return jax.jit(everything)()


@pytest.mark.parametrize("name", ALL)
def test_shapes_structures_and_numbers_are_those_of_jax(expected: Any, name: str) -> None:
    verb, f, arguments, argnums = ALL[name]
    same(getattr(dg, verb)(lambda *a: f(np, *a), argnums)(*arguments), expected[name])


def test_by_hand_without_a_peer() -> None:
    assert dg.jacfwd(lambda x, y: (x * y, x), (0, 1))(2.0, 3.0) == ((3.0, 2.0), (1.0, 0.0))
    assert dg.jacrev(lambda x, y: (x * y, x), (0, 1))(2.0, 3.0) == ((3.0, 2.0), (1.0, 0.0))
    assert dg.hessian(lambda x, y: x * x * y, (1, 0))(3.0, 2.0) == ((0.0, 6.0), (6.0, 4.0))
    for jacobian in (dg.jacfwd, dg.jacrev, dg.hessian):
        assert jacobian(lambda x, *, power: x**power)(3.0, power=1) == (0.0 if jacobian is dg.hessian else 1.0)
        with pytest.raises(dg.Error, match="twice"):
            jacobian(lambda x, y: x, (0, -2))(1.0, 2.0)
        with pytest.raises(dg.Error, match="functions have no coordinates"):
            jacobian(lambda x, g: g(x), (0, 1))(1.0, lambda z: z)


def test_jacobians_of_structures() -> None:
    def g(p: Any) -> Any:
        return {"product": p[0] * p[1], "square": p[0] * p[0]}

    wanted = {"product": (3.0, 2.0), "square": (4.0, 0.0)}
    assert dg.jacfwd(g)((2.0, 3.0)) == wanted
    assert dg.jacrev(g)((2.0, 3.0)) == wanted
    for jacobian in (dg.jacfwd, dg.jacrev):
        assert jacobian(lambda x, y: x * y * y, 1)(3.0, 2.0) == 12.0


def test_jacobians_of_arrays() -> None:
    x = np.array([1.0, 2.0, 3.0])
    for jacobian in (dg.jacfwd, dg.jacrev):
        assert np.array_equal(jacobian(lambda z: z * z)(x), np.diag(2 * x))
        assert np.array_equal(jacobian(lambda z: z * 2.0)(np.ones((2, 2))).shape, (2, 2, 2, 2))


INFINITE = {
    "a tuple": lambda x: (np.sqrt(x[0]), x[0] * x[1]),
    "a stack": lambda x: np.stack([np.sqrt(x[0]), x[0] * x[1]]),
    "an array": np.sqrt,
    "a list of arrays": lambda x: [np.sqrt(x), x * x],
    "an infinite factor": lambda x: np.stack([np.log(x[0]) * x[1], x[1] ** 2, np.sum(x)]),
    "joined": lambda x: np.concatenate([np.log(x[:1]) * x[1:], x * x]),
    "ten rows": lambda x: np.stack([np.sqrt(x[i % 2]) * x[1] for i in range(10)]),
}


@pytest.mark.parametrize("f", INFINITE.values(), ids=INFINITE)
def test_each_row_is_the_gradient_of_its_component(f):
    """What is infinite in one row is not seen in the others. One compiled program each, 1 s."""
    x = np.array([0.0, 2.0])
    with np.errstate(divide="ignore"):
        flat = dg.vjp(f, x)[0]
        parts = [np.size(y) for y in flat] if isinstance(flat, tuple | list) else None

        def component(i):
            def one(x):
                y = f(x)
                whole = y if parts is None else np.concatenate([np.reshape(p, -1) for p in y])
                return np.reshape(whole, -1)[i]

            return one

        count = np.size(flat) if parts is None else sum(parts)
        expected = np.stack([dg.grad(component(i))(x) for i in range(count)])
        assert np.isinf(expected).any() and not np.isnan(expected).any()
        for found in (dg.jacrev(f)(x), dg.compile(dg.jacrev(f))(x)):
            rows = found if parts is None else np.concatenate([np.reshape(r, (-1, 2)) for r in found])
            np.testing.assert_array_equal(np.reshape(rows, (-1, 2)), expected)


def test_a_row_without_a_derivative_is_an_error():
    def f(x):
        return np.stack([np.sqrt(x[0]) ** 2, x[0] * x[1]])

    x = np.array([0.0, 2.0])
    with pytest.raises(dg.NotDifferentiable, match="jacrev"):
        dg.jacrev(f)(x)
    np.testing.assert_array_equal(dg.compile(dg.jacrev(f))(x), [[np.nan, 0.0], [2.0, 0.0]])
