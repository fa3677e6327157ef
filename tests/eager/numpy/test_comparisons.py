"""Comparisons of single numbers under derivatives: Python's truth values for floats, numpy's for elements of arrays.
`+`, `-` and `~` tell them apart.

Costs two compiled programs: 5 s.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import dynagrad as dg
import dynagrad.math as dmath
import dynagrad.numpy as dnp

V, X = np.array([1.5, 2.0, 3.0]), 1.5
C = np.array([1.0, 2.0])

OF_ARRAYS = {
    "~ of an element": lambda v: ~(v[0] > 1.0),
    "+": lambda v: (v[0] > 1.0) + (v[1] > 1.0),
    "*": lambda v: (v[0] > 1.0) * (v[1] > 4.0),
    "reductions": lambda v: (np.sum(v) > 1.0) + (v.max() >= 1.0),
    "products": lambda v: (v @ v > 1.0) + (v.dot(v) != 1.0) + (np.dot(v, v) > 2.0),
    "functions": lambda v: (np.sin(v[0]) > -1.0) + (np.exp(v[1]) > 0.0),
    "operators": lambda v: (
        (v[0] * 2.0 > -1.0) + (1.0 - v[1] > -9.0) + (-v[2] < abs(v[0])) + (2 * v[0] > 0) + (v[0] > 0)
    ),
    "with True": lambda v: (v[0] > 1.0) + True,
    "is": lambda v: ((v[0] > 1.0) is True) + 2 * ((v[0] > 1.0) is not False) + 4 * ((v[0] > 1.0) is (v[1] > 1.0)),
    "with a whole number": lambda v: (v[0] > 1.0) + 1,
    "an array that is made": lambda v: (dnp.array([v[0], 2.0])[0] > 1.0) + (dnp.zeros(2)[0] > -1.0),
    "==": lambda v: (v[0] == v[0]) + (v[1] == v[1]),
    "!=": lambda v: (v[0] != v[1]) + (v[1] != v[0]),
    "one after the other": lambda v: sum(x > 1.0 for x in v),
    "sum": lambda v: sum([v[0] > 1.0, v[1] > 1.0]),
    "unpacked": lambda v: (lambda a, b, c: (a > 0.0) + (b > 0.0))(*v),
    "^": lambda v: (v[0] > 1.0) ^ (v[1] > 1.0),
    "in a loop": lambda v: sum((v[i] > 0.0) + (v[0] > 0.0) for i in range(3)),
}
OF_FLOATS = {
    "not": lambda x: not (x > 1.0),
    "+": lambda x: (x > 1.0) + (2 * x > 1.0),
    "-": lambda x: (x > 1.0) - (x * x > 0.0),
    "minus": lambda x: -(x > 1.0),
    "math": lambda x: (dmath.sin(x) > 0.0) + (dmath.hypot(x, 2.0) > 0.0),
    "an element of an array that is made": lambda x: (dnp.array([x, 2.0])[0] > 1.0) + (x > 1.0),
    "operators": lambda x: (x * 2.0 > -1.0) + (1.0 - x > -9.0) + (-x < abs(x)) + (2 * x > 0) + (x**2 > 0),
}
UNCOMPILED = {
    "beside an element of a constant": lambda x: (x * C[0] > 1.0) + (x > 1.0),
    "numpy's functions of floats": lambda x: (np.sin(x) > -1.0) + (np.exp(x) > 0.0),
    "nested": lambda x: (dg.derivative(lambda y: x * y * y)(2.0) > 0.0) + (x > 0.0),
}


def first(f):
    """f times the first number, so that there is something to differentiate."""
    return lambda z: (z[0] if np.shape(z) else z) * f(z)


WAYS = {
    "reverse": lambda f: lambda x: dg.value_and_grad(f)(x)[0],
    "forward": lambda f: lambda x: dg.jvp(f, (x,), (x,))[0],
    "nested": lambda f: lambda x: dg.value_and_grad(lambda y: dg.jvp(f, (y,), (y,))[0])(x)[0],
    "twice": lambda f: lambda x: dg.value_and_grad(lambda y: dg.value_and_grad(f)(y)[0])(x)[0],
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(
    ("f", "x"),
    [(f, V) for f in OF_ARRAYS.values()] + [(f, X) for f in (OF_FLOATS | UNCOMPILED).values()],
    ids=[*OF_ARRAYS, *OF_FLOATS, *UNCOMPILED],
)
def test_comparisons_are_those_of_plain_numbers(f, x, way):
    assert float(way(first(f))(x)) == float(first(f)(x))


@pytest.mark.parametrize(("table", "x"), [(OF_ARRAYS, V), (OF_FLOATS, X)], ids=["arrays", "floats"])
def test_and_so_they_are_compiled(table, x):
    found = dg.compile(lambda x: [f(x) for f in table.values()])(x)
    assert dict(zip(table, map(float, found), strict=True)) == {name: float(f(x)) for name, f in table.items()}


def test_series():
    f = first(lambda x: (dnp.sin(x) > 0.0) + (x > 0.0) + (dmath.sin(x) > 0.0) - 1)
    assert dg.derivative(f, 2)(X) == 0.0
    assert dg.derivative(lambda x: x * x * ((x > 0.0) + (2.0 * x > 0.0)), 2)(X) == 4.0
    assert dg.derivative(lambda x: x * x * ((dnp.sin(x) > 0.0) + (x > 0.0)), 2)(X) == 2.0


@pytest.mark.parametrize("f", [lambda v: v[0] * ((v[0] > 1.0) - (v[1] > 1.0)), lambda v: v[0] * -(v[0] > 1.0)])
def test_what_numpy_does_not_do(f):
    with pytest.raises(TypeError, match="numpy boolean"):
        f(V)
    with pytest.raises(TypeError, match="numpy boolean"):
        dg.grad(f)(V)
    with pytest.raises(dg.LiftError, match=r"np\.logical"):
        dg.compile(f)(V)


def test_kinds():
    """A comparison of floats is True, and one of elements is np.True_; `math` makes floats of elements."""
    kinds = []

    def f(v, x):
        kinds.extend(map(type, (v[0] > 1.0, x > 1.0, v[0] > 1.0, x > 1.0, dmath.sin(v[0]) > 0.0, x > np.float64(1.0))))
        return v[0] * x

    for verb in (dg.grad, lambda f: lambda v, x: dg.jvp(f, (v, x), (v, x))):
        kinds.clear()
        verb(f)(V, X)
        assert kinds == [np.bool_, bool, np.bool_, bool, bool, np.bool_]
    assert math.isclose(dg.grad(f, 1)(V, X), V[0])
