"""Jacobians and Hessians: structures and shapes are those of jax, whatever goes in and comes out."""

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


@pytest.fixture(scope="module")
def jax() -> Any:
    module = pytest.importorskip("jax")
    module.config.update("jax_enable_x64", True)
    return module


@pytest.mark.parametrize("argnums", [0, (-1,), [1, 0]], ids=str)
@pytest.mark.parametrize("verb", ["jacfwd", "jacrev"])
@pytest.mark.parametrize("case", CASES)
def test_jacobians_are_those_of_jax(jax: Any, case: str, verb: str, argnums: Any) -> None:
    f, arguments = CASES[case]
    expected = getattr(jax, verb)(lambda *a: f(jax.numpy, *a), argnums)(*arguments)
    same(getattr(dg, verb)(lambda *a: f(np, *a), argnums)(*arguments), expected)


@pytest.mark.parametrize("argnums", [1, (0,), (1, 0)], ids=str)
@pytest.mark.parametrize(("f", "arguments"), [(to_one, (PARAMETERS, ROW)), (of_two, (0.4, ROW))])
def test_hessians_are_those_of_jax(jax: Any, f: Any, arguments: Any, argnums: Any) -> None:
    expected = jax.hessian(lambda *a: f(jax.numpy, *a), argnums)(*arguments)
    same(dg.hessian(lambda *a: f(np, *a), argnums)(*arguments), expected)


@pytest.mark.parametrize("argnums", [0, (0, 1)], ids=str)
@pytest.mark.parametrize("verb", ["jacfwd", "jacrev", "hessian"])
def test_empty_arrays(jax: Any, verb: str, argnums: Any) -> None:
    for arguments in ((np.zeros(0), ROW), (ROW, np.zeros((2, 0)))):
        expected = getattr(jax, verb)(lambda x, y: (2.0 * x, jax.numpy.sum(y)), argnums)(*arguments)
        same(getattr(dg, verb)(lambda x, y: (2.0 * x, np.sum(y)), argnums)(*arguments), expected)


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
