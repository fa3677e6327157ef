"""The functions of `dynagrad.numpy` and `dynagrad.math` on dual numbers and tape cells. Costs 8 s.

Arrays that are created and written to are in `eager/mutation/test_arrays.py`.
"""

from __future__ import annotations

import math as plain_math

import numpy
import pytest

import dynagrad as dg
import dynagrad.math as math
import dynagrad.numpy as np
from dynagrad.eager.names.math_names import LOOKS, MATH, OWN, SPECIAL

X = numpy.array([0.6, 0.3, 0.8])


CREATIONS = {
    "array of lists": lambda x: np.array([[x[0], 1.0], [x[1] * x[2], x[0]]]),
    "array with ndmin": lambda x: np.array([x[0], x[1]], ndmin=3),
    "array of arrays": lambda x: np.array([x, x * 2.0, numpy.ones(3)]),
    "array of one": lambda x: np.array(x[0]) * np.ones(2),
    "array of tuples": lambda x: np.array(((x[0], 2), (x[1], 3))),
    "asarray": lambda x: np.asarray([x[0], x[1]]) + np.asarray(x)[0],
    "full": lambda x: np.full((2, 3), x[1]) + np.full((2, 3), x),
    "full_like": lambda x: np.full_like(numpy.ones((2, 3)), x) * np.full_like(x, 3.0),
    "fromiter": lambda x: np.fromiter((y * y for y in x), float),
    "fromfunction": lambda x: np.fromfunction(lambda i, j: x[0] * i + x[1] * j, (2, 3)),
    "r_ with axes": lambda x: np.r_["0,2", x, numpy.ones(3), 4.0 * x],
    "r_ along 1": lambda x: np.r_["1,2,0", x, 2.0 * x],
    "c_": lambda x: np.c_[x, numpy.ones(3), np.c_[x, x]],
    "r_ of slices": lambda x: np.r_[0:1:4j, x, 5],
    "sum of a list": lambda x: np.sum([x[0], x[1] * x[1], 2.0]),
    "mean along an axis of lists": lambda x: np.mean([[x[0], 1.0], [x[1], x[2]]], axis=0),
    "dot of lists": lambda x: np.dot([x[0], x[1]], [2.0, x[2]]),
    "norm of a list": lambda x: np.linalg.norm([x[0], x[1], 3.0]),
    "stacks of lists": lambda x: np.vstack(([x[0], x[1]], (1.0, x[2]))) @ np.column_stack(([x[0], x[1]], [1.0, 2.0])),
    "rows of lists": lambda x: np.hstack(([x[0], x[1]], x[2], [1.0])) + np.dstack(([x[0], x[1]], [1.0, 2.0])).sum(),
    "concatenate of matrices": lambda x: np.concatenate([[[x[0], 1.0]], [[x[1], x[2]]]], axis=1),
    "concatenate of lists": lambda x: np.concatenate([[x[0], x[1]], x, [1.0]]),
    "block": lambda x: np.block([[np.eye(2) * x[0], np.zeros((2, 2))], [np.ones((2, 2)), np.diag(x[1:])]]),
    "block of numbers": lambda x: np.block([[x[0], x[1]], [1.0, x[2]]]) + np.block([[x[:2]], [np.array([x[1], 2.0])]]),
    "einsum of lists": lambda x: np.einsum("ij,jk->ik", [[x[0], x[1]], [x[2], 1.0]], [[1.0, x[0]], [2.0, 3.0]]),
    "einsum by places": lambda x: np.einsum([x[0], x[1]], [0], x[:2], [0]),
    "meshgrid of lists": lambda x: np.stack(np.meshgrid([x[0], x[1]], [1.0, x[2], 2.0])),
    "broadcast_arrays of lists": lambda x: np.broadcast_arrays([x[0], x[1]], [[1.0], [x[2]]])[0],
    "choose of lists": lambda x: np.choose([0, 1], [[x[0], x[1]], [x[1], x[2]]]),
    "multi_dot of lists": lambda x: np.linalg.multi_dot([[[x[0], 1.0]], [[x[1], 1.0], [x[2], x[0]]], np.eye(2)]),
    "block of a row": lambda x: np.block([x, 2.0, x[0]]),
    "stack of numbers": lambda x: np.stack([x[0], x[1]]) + np.hstack([x[0], [x[1]]]),
    "block of equal blocks": lambda x: np.block([[np.outer(x, x), np.eye(3)], [np.zeros((3, 3)), np.outer(x, x)]]),
    "where of lists": lambda x: np.where([True, False], [x[0], 1.0], [2.0, x[1]]),
    "outer of lists": lambda x: np.outer([x[0], x[1]], [x[2], 1.0]),
    "vectorize": lambda x: np.vectorize(lambda a, b: a * b if a > b else b)(x, [0.5, x[0], 0.1]),
    "vectorize of several": lambda x: np.vectorize(lambda a: (a * a, 2.0 * a))(x)[1],
    "vectorize with a constant": lambda x: np.vectorize(lambda a, n: a**n, excluded=[1])(x, 3),
}


@pytest.mark.parametrize("f", CREATIONS.values(), ids=CREATIONS)
def test_creation_and_lists(f):
    plainly = numpy.asarray(f(X))
    value, _ = dg.jvp(f, (X,), (X,))
    assert numpy.shape(value) == plainly.shape and numpy.allclose(value, plainly, rtol=1e-13)
    dg.check_derivatives(f, X)


def test_creation_and_lists_are_compiled():
    every = list(CREATIONS.values())
    compiled = dg.compile(lambda x: [f(x) for f in every])
    for found, f in zip(compiled(X), every, strict=True):
        assert numpy.shape(found) == numpy.shape(f(X)) and numpy.allclose(found, f(X), rtol=1e-13)
    gradient = dg.grad(lambda x: sum([np.sum(np.cos(f(x))) for f in every]))
    assert numpy.allclose(dg.compile(gradient)(X), gradient(X), rtol=1e-11)


def test_creation_refuses_what_it_cannot_hold():
    with pytest.raises(ValueError, match=r"differ in shape: \(\), \(3,\)"):
        dg.jvp(lambda x: np.array([x, x[0]]), (X,), (X,))
    with pytest.raises(dg.Error, match="of float64, and cannot become complex128"):
        dg.jvp(lambda x: np.array([x[0]], dtype=complex), (X,), (X,))
    with pytest.raises(dg.Error, match="is complex; keep its two parts"):
        dg.jvp(lambda x: np.array([1j, 2.0]), (X,), (X,))
    with pytest.raises(ValueError, match="cannot include zero"):
        dg.jvp(lambda x: np.geomspace(x[0], 0.0, 3), (X,), (X,))
    with pytest.raises(dg.Error, match="makes a matrix"):
        dg.jvp(lambda x: np.r_["r", x], (X,), (X,))


Y = numpy.array([1.7, 0.0, -2.2])
STEPS = {
    "astype": lambda x: x.astype(int),
    "astype of a computed array": lambda x: (2.0 * x + np.zeros(3)).astype(np.int32),
    **({"astype of a function": lambda x: numpy.astype(x, bool)} if hasattr(numpy, "astype") else {}),
    "array": lambda x: np.array(x, dtype=int),
    "array of numbers": lambda x: np.array([x[0], 2.0, x[2]], dtype=np.int64),
    "array of one number": lambda x: np.array(x[0], dtype=int),
    "asarray": lambda x: np.asarray(x, bool),
    "full": lambda x: np.full((2, 2), x[0], dtype=int),
    "full_like": lambda x: np.full_like(x, x[2], dtype=int),
    "int64": lambda x: np.int64(x),
    "intp of one": lambda x: np.intp(x[2]),
    "bool_": lambda x: np.bool_(x),
    "plain int64": lambda x: numpy.int64(2.0 * x),
}


@pytest.mark.parametrize("f", STEPS.values(), ids=STEPS)
def test_whole_numbers_and_truth_values_are_steps(f):
    plainly = numpy.asarray(f(Y))
    seen = []

    def through(x):
        seen.append(numpy.asarray(dg.jvp(f, (x,), (x,))[0]))
        return np.sum(f(x) * np.sum(x))

    slope = dg.grad(through)(Y)
    assert seen[0].dtype == plainly.dtype and numpy.array_equal(seen[0], plainly)
    assert numpy.array_equal(slope, numpy.full(3, float(plainly.sum())))


def test_a_number_as_an_index():
    # Not written in the assertions: what pytest makes of these loses, in older releases, the places of calls in them.
    once = dg.grad(lambda x: x[np.int64(x[0])] * x[x[:1].astype(int)][0])(Y)
    both = dg.grad(lambda x: np.sum(x[np.array([x[0], 0.0], dtype=int)]))(Y)
    assert once.tolist() == [0.0, 0.0, 0.0] and both.tolist() == [1.0, 1.0, 0.0]


def test_the_angle_of_a_real_is_half_a_turn_by_its_sign():
    x = numpy.array([-2.0, -0.0, 0.0, 3.0, numpy.nan])
    value, slope = dg.jvp(np.angle, (x,), (x,))
    assert numpy.array_equal(value, numpy.angle(x), equal_nan=True) and not numpy.any(slope[:4])
    assert numpy.array_equal(dg.compile(np.angle)(x), numpy.angle(x), equal_nan=True)


def test_arrays_with_derivatives_are_instances_of_ndarray():
    def kinds(x):
        made = (2.0 * x, np.zeros(2), x.copy(), np.array([x[0]]))
        seen.append([isinstance(y, np.ndarray) for y in (x, x[0], 1.0, *made)])
        seen.append([np.isscalar(y) for y in (x, x[0], 2.0 * x[0], "name", 1.0)])
        return np.sum(x)

    seen = []
    dg.grad(kinds)(X)
    kinds(X)
    assert seen[0] == seen[2] == [True, False, False, True, True, True, True]
    assert seen[1] == seen[3] == [False, True, True, True, True]
    branch = dg.compile(dg.grad(lambda x: np.sum(x * x) if isinstance(x, np.ndarray) and not np.isscalar(x) else x))
    assert branch(X).tolist() == (2.0 * X).tolist() and branch(3.0) == 1.0


def test_ndarray_is_that_of_numpy_otherwise():
    class Own(np.ndarray):
        pass

    assert Own.__mro__[1] is numpy.ndarray and issubclass(Own, np.ndarray) and not issubclass(list, np.ndarray)
    assert np.ndarray == numpy.ndarray and {numpy.ndarray: 1}[np.ndarray] == 1
    assert np.ndarray((2,)).shape == (2,) and type(np.ndarray((2,))) is numpy.ndarray
    assert np.ndarray.sum is numpy.ndarray.sum and np.ndarray[int, float] == numpy.ndarray[int, float]
    assert isinstance(None, np.ndarray | None) and isinstance(X, (list, np.ndarray))


ONE = [
    name
    for name, function in vars(plain_math).items()
    if callable(function) and function in {**MATH, **SPECIAL, **OWN, **dict.fromkeys(LOOKS)}
]
POINTS = {"acosh": 1.7, "atanh": 0.4, "acos": 0.4, "asin": 0.4}
CALLS = {
    **{name: getattr(math, name) for name in ONE},
    "atan2": lambda x: math.atan2(x, 2.0) + math.atan2(1.0, x) + math.atan2(x, x * x),
    "copysign": lambda x: math.copysign(x, -1.0),
    "dist": lambda x: math.dist([x, 1.0], (0.5 * x, x * x)),
    "fma": lambda x: math.fma(x, x, 2.0 * x),
    "fmod": lambda x: math.fmod(x, 0.4) + math.fmod(5.0, x),
    "frexp": lambda x: math.frexp(x)[0] + math.frexp(x)[1] + math.frexp(8.0 * x)[0],
    "fsum": lambda x: math.fsum(y for y in [x, 0.1, x * x]) + math.fsum([1e100, x, -1e100]) * 0.0 + x,
    "hypot": lambda x: math.hypot(x) + math.hypot(x, 2.0, x * x) + math.hypot(),
    "isclose": lambda x: x * math.isclose(x, x * (1.0 + 1e-12), rel_tol=1e-9),
    "ldexp": lambda x: math.ldexp(x, -3),
    "log": lambda x: math.log(x) + math.log(x, 10.0) + math.log(7.0, x + 1.0),
    "modf": lambda x: math.modf(x + 3.0)[0] * math.modf(x + 3.0)[1],
    "nextafter": lambda x: x * math.nextafter(x, 9.0) + math.nextafter(2.0, x) + math.nextafter(x, x),
    "pow": lambda x: math.pow(x, 2.5) + math.pow(2.0, x) + math.pow(x, x),
    "prod": lambda x: math.prod([x, x, 2]) + math.prod((x, 3.0), start=x),
    "remainder": lambda x: math.remainder(x, 0.35) + math.remainder(7.0, x) + math.remainder(x, math.inf),
    "sumprod": lambda x: math.sumprod([x, 2.0], [x, x]),
}


@pytest.mark.parametrize("name", [name for name in CALLS if hasattr(plain_math, name)])
def test_function_of_math(name):
    f, at = CALLS[name], POINTS.get(name, 1.37)
    value, slope = dg.jvp(f, (at,), (1.0,))
    assert numpy.isclose(float(value), float(f(at)), rtol=1e-15)  # the same as outside, where it is Python's own
    if name in LOOKS or getattr(plain_math, name) in LOOKS:
        return
    h = 1e-6
    assert numpy.isclose(slope, (f(at + h) - f(at - h)) / (2.0 * h), rtol=1e-6, atol=1e-9)
    assert numpy.isclose(dg.grad(f)(at), slope, rtol=1e-12)


def test_math_has_pythons_errors():
    for call, error in (
        (lambda x: math.sqrt(-x), ValueError),
        (lambda x: math.log(x - x), ValueError),
        (lambda x: math.exp(1000.0 * x), OverflowError),
        (lambda x: math.dist([x], [x, x]), ValueError),
        (lambda x: math.factorial(x), dg.Error),
    ):
        with pytest.raises(error):
            dg.grad(call)(1.0)
    with pytest.raises(dg.Error, match=r"math\.exp takes single numbers, and was given an array of shape \(3,\)"):
        dg.jvp(math.exp, (X,), (X,))


def test_math_is_compiled():
    def f(x):
        return math.exp(x) * math.hypot(x, 2.0) + math.log(x, 3.0) + math.lgamma(x) + math.dist([x], [1.0])

    assert numpy.isclose(dg.compile(dg.grad(f))(1.3), dg.grad(f)(1.3), rtol=1e-13)


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (lambda x: plain_math.exp(x), "math.exp(x) is of floats alone: use dynagrad.math.exp"),
        (lambda x: plain_math.hypot(x, 1.0), "use dynagrad.math.hypot (import dynagrad.math as math), or np.hypot"),
        (lambda x: plain_math.gamma(x), "use dynagrad.math.gamma"),
        (lambda x: plain_math.asin(x), "np.arcsin"),
        (lambda x: float(x), "turning it into a float"),
    ],
)
def test_pythons_own_math_says_which_name_to_use(f, says):
    with pytest.raises(dg.Error) as caught:
        dg.grad(f)(0.5)
    assert says in str(caught.value)
