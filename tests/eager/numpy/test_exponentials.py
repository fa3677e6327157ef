"""Sums of exponentials: equal to their definitions, with the same derivatives; and at infinities."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.eager import special
from dynagrad.eager.numpy import exponentials

inf = math.inf
X = np.random.default_rng(3).normal(size=(2, 3, 4)) * 3


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize(
    ("f", "plain"),
    [
        (special.logsumexp, lambda x, axis: np.log(np.sum(np.exp(x), axis=axis))),
        (special.softmax, lambda x, axis: np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True)),
        (special.log_softmax, lambda x, axis: x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))),
    ],
)
def test_sums_of_exponentials_equal_what_they_abbreviate(f, plain, axis):
    weights = np.random.default_rng(4).normal(size=np.shape(plain(X, axis)))
    direction = np.cos(X)
    assert f(X, axis) == pytest.approx(plain(X, axis), rel=1e-12)

    def g(x, function):
        return np.sum(function(x, axis) * weights)

    def along(x, function):
        return dg.jvp(lambda x: g(x, function), (x,), (direction,))[1]

    for h in (g, along):
        expected = dg.grad(h)(X, plain)
        assert dg.grad(h)(X, f) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert dg.jvp(lambda x, h=h: h(x, f), (X,), (direction,))[1] == pytest.approx(
            np.sum(expected * direction), rel=1e-9, abs=1e-12
        )


def test_options_of_logsumexp():
    assert special.logsumexp(X, 1, keepdims=True).shape == (2, 1, 4)
    assert special.logsumexp(X, b=np.full(4, 2.0)) == pytest.approx(special.logsumexp(X) + math.log(2.0))
    assert special.logsumexp(2.0) == 2.0
    assert special.logsumexp([0.0, -inf], b=[1.0, 0.0]) == 0.0
    assert isinstance(special.logsumexp(X), float)
    with pytest.raises(ValueError):
        special.logsumexp(X, 3)


@pytest.mark.parametrize(
    ("x", "value", "shares"),
    [
        ([-inf, 1.0], 1.0, [0.0, 1.0]),
        ([inf, 1.0], inf, [1.0, 0.0]),
        ([inf, inf, 0.0], inf, [0.5, 0.5, 0.0]),
        ([1e300, -1e300], 1e300, [1.0, 0.0]),
        ([1000.0, 1000.0], 1000.0 + math.log(2.0), [0.5, 0.5]),
    ],
)
def test_infinite_weights_have_finite_gradients(x, value, shares):
    x = np.array(x)
    assert special.logsumexp(x) == value
    assert dg.grad(special.logsumexp)(x).tolist() == shares
    assert special.softmax(x).tolist() == shares
    assert np.isfinite(dg.jacrev(special.softmax)(x)).all()


NOTHING = [  # each of two numbers, or of an array with them in a row of -inf
    ("logaddexp", lambda x: np.logaddexp(x[0], x[1])),
    ("logaddexp2", lambda x: np.logaddexp2(x[0], x[1])),
    ("logaddexp.reduce", np.logaddexp.reduce),
    ("logaddexp.accumulate", lambda x: np.logaddexp.accumulate(x)[1]),
    ("logsumexp", special.logsumexp),
    ("logsumexp of rows", lambda x: special.logsumexp(np.stack([x, x + 1.0]), axis=1)[1]),
    ("weights", lambda x: special.logsumexp(x, b=np.array([1.0, 2.0]))),
    ("weights with zeros", lambda x: special.logsumexp(x, b=np.array([0.0, 2.0]))),
]


@pytest.mark.parametrize(("name", "f"), NOTHING, ids=[name for name, _ in NOTHING])
def test_a_sum_of_nothing_has_derivatives_of_zero(name, f):
    """In both modes, compiled or not, and in every order; of a row beside it, the gradient is as ever."""
    x, v = np.full(2, -inf), np.array([1.0, 2.0])
    assert f(x) == -inf
    for at in (dg.grad(f), dg.compile(dg.grad(f))) if "zeros" not in name else (dg.grad(f),):
        assert at(x).tolist() == [0.0, 0.0]
    assert dg.jvp(f, [x], [v]) == (-inf, 0.0)
    assert not dg.hessian(f)(x).any() and not dg.jacfwd(dg.jacrev(f))(x).any()
    assert not dg.jacfwd(dg.hessian(f))(x).any()


def test_an_impossible_row_of_several_trains_nothing():
    rows = np.array([[0.0, 1.0], [-inf, -inf], [2.0, 2.0]])

    def loss(x):
        return special.logsumexp(x, axis=1)

    expected = [[1 / (1 + math.e), math.e / (1 + math.e)], [0.0, 0.0], [0.5, 0.5]]
    for pull in (dg.vjp(loss, rows)[1](np.ones(3))[0], dg.compile(lambda x: dg.vjp(loss, x)[1](np.ones(3))[0])(rows)):
        assert np.allclose(pull, expected, rtol=1e-15, atol=0)


def test_log_softmax_does_not_underflow():
    assert special.log_softmax(np.array([0.0, -2000.0])).tolist() == [0.0, -2000.0]
    assert dg.jacfwd(special.log_softmax)(np.array([0.0, -2000.0])).tolist() == [[0.0, 0.0], [-1.0, 1.0]]
    assert special.log_softmax(np.array([0.0, -inf])).tolist() == [0.0, -inf]


def test_weights_of_logsumexp_may_be_zero_or_negative():
    a, b = np.array([1.0, 2.0]), np.array([-1.0, 1.0])
    total = math.exp(2.0) - math.exp(1.0)
    assert special.logsumexp(a, b=b) == pytest.approx(math.log(total), rel=1e-15)
    expected = pytest.approx(np.exp(a) / total, rel=1e-14)
    assert dg.grad(lambda b: special.logsumexp(a, b=b))(b) == expected
    assert dg.grad(lambda a: special.logsumexp(a, b=b))(a) == pytest.approx(b * np.exp(a) / total, rel=1e-14)
    assert dg.jvp(lambda b: special.logsumexp(a, b=b), (b,), (np.ones(2),))[1] == pytest.approx(
        np.sum(np.exp(a)) / total, rel=1e-14
    )
    assert dg.grad(lambda b: special.logsumexp(a, b=b))(np.array([1.0, 0.0])) == pytest.approx([1.0, math.e])
    assert dg.grad(lambda a: special.logsumexp(a, b=np.array([1.0, 0.0])))(np.array([1.0, 800.0])).tolist() == [1, 0]
    assert dg.hessian(lambda b: special.logsumexp(a, b=b))(np.array([1.0, 0.0])) == pytest.approx(
        -np.outer([1.0, math.e], [1.0, math.e])
    )
    rows = special.logsumexp(np.stack([a, a]), 1, np.stack([b, -b]), keepdims=True)
    assert rows.shape == (2, 1) and rows[0, 0] == pytest.approx(math.log(total)) and math.isnan(rows[1, 0])


def shares(x, weights):
    return np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True) * weights[:, None]


@pytest.mark.parametrize("rows", [3, 2000])
def test_what_a_derivative_writes_over_is_nobody_elses(rows):
    rng = np.random.default_rng(5)
    x, weights = rng.normal(size=(rows, 9)), rng.normal(size=rows)

    def f(x):
        y = x * 1.0
        first = special.logsumexp(y, 1) * weights
        return np.sum(first) + np.sum(special.logsumexp(y - 1.0, 1)) + np.sum(special.softmax(y, 1)[:, 0])

    def expected(x):
        p = shares(x, np.ones(rows))
        return shares(x, weights) + p + p[:, :1] * (np.eye(9)[:1] - p)

    was = x.copy()
    value, back = dg.vjp(f, x)
    first = back(1.0)[0]
    first[:] = np.nan
    for _ in range(2):  # again from the same tape, with what the first time wrote over gone
        np.testing.assert_allclose(back(1.0)[0], expected(x), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(x, was)
    assert f(x) == value

    other = dg.vjp(f, x + 1.0)[1]  # two tapes at a time, the older one gone back over first and last
    third = dg.vjp(f, x)[1]
    np.testing.assert_allclose(other(1.0)[0], expected(x + 1.0), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(third(1.0)[0], expected(x), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(back(1.0)[0], expected(x), rtol=1e-10, atol=1e-12)


def test_an_array_that_is_closed_to_writing_may_still_change_through_an_older_view():
    x = np.linspace(0.0, 1.0, 6).reshape(2, 3)
    view = x[:]
    x.flags.writeable = False
    weights = np.array([1.0, 2.0])
    special.logsumexp(x, 1)
    view += np.array([0.0, 1.0, 2.0])
    np.testing.assert_allclose(special.softmax(x, 1), shares(x, np.ones(2)))
    gradient = dg.grad(lambda x: np.sum(special.logsumexp(x, 1) * weights))(x)
    np.testing.assert_allclose(gradient, shares(x, weights))


def test_what_waits_for_a_derivative_goes_with_its_argument():
    x = np.ones((2, 3))
    _, back = dg.vjp(lambda x: special.logsumexp(x, 1), x)
    assert exponentials._LAST
    del back
    assert not exponentials._LAST


def test_derivatives_side_by_side_in_threads():
    x = np.random.default_rng(6).normal(size=(300, 40))
    weights = np.linspace(1.0, 2.0, 300)
    gradient = dg.grad(lambda x: np.sum(special.logsumexp(x * 1.0, 1) * weights))
    with ThreadPoolExecutor(4) as pool:
        for k, found in enumerate(pool.map(lambda k: gradient(x + k), range(40))):
            np.testing.assert_allclose(found, shares(x + k, weights), rtol=1e-10)
