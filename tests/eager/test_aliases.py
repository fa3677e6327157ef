"""Arrays without axes, and views made by einsum and meshgrid: a write shows wherever it shows in numpy.

In both modes and compiled; costs one compiled program for each function, 14 s.
"""

from __future__ import annotations

import numpy
import pytest

import dynagrad as dg
import dynagrad.math as math
import dynagrad.numpy as np


def in_place(x):
    a = np.array(x)
    b = a
    b += 1.0
    b *= x
    return a[()] * x


def by_index(x):
    a = np.array(x)
    a[()] = a + x
    a[...] = a * 2.0
    a[()] += x
    return a


def as_any_array(x):
    a = np.array(x)
    assert a.shape == () and a.ndim == 0 and a.size == 1
    joined = np.stack([a, a])[1] + np.array([a, 1.0])[0] + np.concatenate([a[None], np.ones(2)])[0]
    chosen = np.where(a > 0, a, 0.0) * np.maximum(a, 0) + (a if a else 0.0)
    return np.sin(a) + a.sum() + np.sum(a) + a.reshape(1)[0] + a.copy() + abs(a) + a**2 + joined + chosen - 2 / a


def other_makers(x):
    a, b, c, d, e = np.full((), x), np.zeros(()), np.ones(()), np.array(2.0), np.asarray(x)
    f = a.copy()
    b += a * x
    c += x * x
    d *= x
    e -= 0.5
    f += c
    return a + b + c * d * e * f


def through_a_view(x):
    a = np.array(x)
    r = a.reshape(1, 1)
    r[0, 0] = x * x
    return a + r[0, 0]


def new_axes(x):
    a = np.array(x)
    row, table = a[None], a[..., np.newaxis, None]
    row[0] *= x
    table += row
    return a * row[0] + table[0, 0]


def by_an_ellipsis(x):
    a, b = np.array(x), np.array([x, 2.0])
    same, first, last = a[...], b[0, ...], b[..., -1]
    same += x
    first *= x
    last[...] = same * x
    return a * b[0] + b[1] * b[1] + first


def fewer_axes(x):
    a = np.zeros((2, 3))
    a[0:1, 1:2] = np.array([[[x]]])
    a[1] = np.ones((1, 1, 3)) * x
    a[1, 1:] = np.array([[x * x]])
    return np.sum(a * a)


def views_after_a_write(x):
    a = np.array(x)
    a[()] = a * x
    across, all_of_it, squeezed = a.T, a.reshape(()), np.squeeze(a)
    a += x
    across *= 2.0
    return a * across + all_of_it * x + squeezed


COPIES = int(numpy.__version__.partition(".")[0]) >= 2
"""Whether numpy itself copies what is written to places of an array that it is read from; before 2, it does not."""


def onto_itself(x):
    a, m = np.array([x, 2.0, x * x, 1.0]), np.ones((2, 2)) * x
    a[::-1] = a
    a[[1, 2, 3, 0]] = a if COPIES else a.copy()
    a[::-1] += a * x
    a[::-1] += a
    m[0] = [1.0, x * x]
    m[:, ::-1] = m
    m.T[...] -= m[::-1]
    for _ in range(3):
        a[::-1] = a
        a[0] *= x
    return np.sum(a * np.arange(4.0)) + np.sum(m * np.array([[1.0, 2.0], [3.0, x]]))


def in_a_loop(x):
    total = np.array(0.0)
    again = np.zeros(())
    for _ in range(3):
        total = total + x * x
        again += x * total
    return again


def in_functions_of_python(x):
    a = np.array(x)
    return math.sin(a) + max(a, 1.0) + sum([a, a]) + round(2.0) * a


def transposed(x):
    a = np.ones((2, 3)) * x
    d = np.einsum("ij->ji", a)
    d[2, 1] = x * x
    np.einsum(a, [0, 1], [1, 0])[0, 1] += x
    return np.sum(a * a) + a[1, 2]


def read_later(x):
    a = np.ones((2, 2)) * x
    d, t = np.einsum("ii->i", a), np.einsum("ii", a)
    a[0, 0] = x**3
    return np.sum(d * d) * t


def sums_are_no_views(x):
    a = np.ones((2, 3)) * x
    total = np.einsum("ij->i", a)
    total += x
    return np.sum(total * total) + a[0, 0]


def grid_read_later(x):
    a = np.array([x, 2.0])
    p, q = np.meshgrid(a, a, copy=False)
    own = np.meshgrid(a, a)[0]
    a[0] = x * x
    return np.sum(p * q) + np.sum(own)


ALIKE = [
    *(in_place, by_index, as_any_array, other_makers, through_a_view, in_a_loop, in_functions_of_python),
    *(new_axes, by_an_ellipsis, fewer_axes, views_after_a_write, onto_itself),
    *(transposed, read_later, sums_are_no_views, grid_read_later),
]


def diagonal(x):
    a = np.zeros((2, 2))
    a[0, 0] = x
    d = np.einsum("ii->i", a)
    d += x
    return np.sum(a * a)


def last_axes(x):
    a = np.ones((2, 2)) * x
    np.einsum("...ij->...ji", a)[0, 1] = x * x
    np.einsum("ii->i", a)[1] = 3.0 * x
    return np.sum(a * a) * a[1, 0]


def sparse_grid(x):
    a, b = np.array([x, 2.0]), np.array([1.0, x, x])
    p, q = np.meshgrid(a, b, copy=False, sparse=True)
    p[0, 0] = x * x
    q[1] += 1.0
    return np.sum(a) * np.sum(b * b)


UNCOMPILED = [diagonal, last_axes, sparse_grid]  # views that compiled code can read alone


def close(x):
    return pytest.approx(float(x), rel=1e-7)


@pytest.mark.parametrize("f", ALIKE + UNCOMPILED, ids=lambda f: f.__name__)
def test_values_are_those_of_numpy_and_derivatives_those_of_values(f):
    x, h = 1.5, 1e-6
    slope = (f(x + h) - f(x - h)) / (2.0 * h)
    assert dg.value_and_grad(f)(x) == (close(f(x)), close(slope))
    assert dg.jvp(f, (x,), (1.0,)) == (close(f(x)), close(slope))
    second = dg.derivative(f, 2)(x)
    assert dg.derivative(dg.grad(f))(x) == close(second) and dg.grad(dg.derivative(f))(x) == close(second)


@pytest.mark.parametrize("f", ALIKE, ids=lambda f: f.__name__)
def test_compiled_as_well(f):
    x = 1.5
    assert dg.compile(dg.value_and_grad(f))(x) == (close(f(x)), close(dg.grad(f)(x)))


@pytest.mark.parametrize("f", UNCOMPILED, ids=lambda f: f.__name__)
def test_what_compiled_code_cannot_write_to_is_an_error(f):
    with pytest.raises(dg.LiftError, match="this view of an array cannot be changed"):
        dg.compile(f)(1.5)


def test_views_that_repeat_elements_cannot_be_written_to():
    def f(x):
        a = np.array([x, 2.0])
        np.meshgrid(a, a, copy=False)[0][0, 0] = x
        return a[0]

    with pytest.raises(ValueError, match="read-only"):
        dg.grad(f)(1.5)
    with pytest.raises(dg.LiftError, match="this view of an array cannot be changed"):
        dg.compile(f)(1.5)


def test_an_array_without_axes_is_an_array_and_no_scalar():
    seen = []

    def f(x):
        a = np.array(x)
        seen.extend((isinstance(a, np.ndarray), np.isscalar(a), isinstance(x, np.ndarray), np.isscalar(x)))
        return a

    assert dg.grad(f)(2.0) == 1.0 and type(dg.grad(f)(2.0)) is float
    assert seen[:4] == [True, False, False, True]
    f(np.array(2.0)[()])
    assert seen[-4:] == [True, False, False, True]


def test_reals_in_arrays_of_objects_are_no_result():
    """They would pass for constants. Texts may be there."""
    for f in (
        lambda x: numpy.array([1.0, 2.0], dtype=object),
        lambda x: [x, numpy.array([numpy.ones(2), None], dtype=object)],
    ):
        for verb in (dg.derivative, dg.jacrev, lambda f: dg.derivative(f, 2), lambda f: lambda x: dg.vjp(f, x)):
            with pytest.raises(dg.Error, match="array of objects"):
                verb(f)(1.5)
    names = numpy.array(["a", None], dtype=object)
    value, slope = dg.jvp(lambda x: (x * x, names), (3.0,), (1.0,))
    assert value[0] == 9.0 and value[1] is names and slope[0] == 6.0
