"""numpy's functions at their edges: ties, ends, NaN, lengths 0 and 1, matrices without full rank, other dtypes.

Expected values are worked out by hand, or numpy's. The last test compiles two functions; all takes five seconds on two
cores.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from mpmath import mp

import dynagrad as dg
import dynagrad.numpy as dnp
from dynagrad.eager.numpy import missing as numpy_missing
from dynagrad.eager.numpy import protocol
from dynagrad.eager.numpy.functions import FUNCTIONS
from dynagrad.errors import Error, NotDifferentiable

x4 = np.array([1.5, -0.5, 2.0, 0.25])


def forward(f: Any, *points: Any) -> Any:
    """The gradient by the first point, in forward mode, of a function with one result."""
    x, *rest = points
    if not np.ndim(x):
        return dg.jvp(lambda x: f(x, *rest), (x,), (1.0,))[1]
    columns = [dg.jvp(lambda x: f(x, *rest), (x,), (e.reshape(x.shape),))[1] for e in np.eye(x.size)]
    return np.array(columns).reshape(x.shape)


def both(f: Any, *points: Any) -> Any:
    """The gradient by the first point; both modes have to agree."""
    found = dg.grad(f)(*points)
    np.testing.assert_allclose(forward(f, *points), found, rtol=1e-13, atol=1e-14)
    return found.tolist() if np.ndim(found) else found


# -- interpolation -----------------------------------------------------------------------------------------------------

KNOTS, HEIGHTS = np.array([0.0, 1.0, 3.0]), np.array([2.0, 5.0, 1.0])


@pytest.mark.parametrize(("place", "slope"), [(-1.0, 0.0), (0.0, 3.0), (1.0, -2.0), (3.0, -2.0), (3.5, 0.0)])
def test_a_knot_belongs_to_the_line_after_it_and_the_last_to_the_one_before(place: float, slope: float) -> None:
    def f(x: Any) -> Any:
        return np.interp(x, KNOTS, HEIGHTS)

    assert both(f, place) == slope
    assert dg.value_and_grad(f)(place)[0] == np.interp(place, KNOTS, HEIGHTS)


def test_of_knots_at_one_place_the_last_counts() -> None:
    for knots in ([0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 2.0, 2.0], [0.0, 0.0, 1.0, 2.0]):
        p = np.array(knots)
        for place in (0.0, 0.5, 1.0, 1.5, 2.0):
            value, found = dg.value_and_grad(lambda x, p=p: np.interp(x, p, [1.0, 2.0, 4.0, 8.0]))(place)
            assert value == np.interp(place, p, [1.0, 2.0, 4.0, 8.0]) and math.isfinite(found)
    assert both(lambda f: np.interp(1.0, [0.0, 1.0, 1.0, 2.0], f), x4) == [0, 0, 1, 0]


def test_interpolation_of_one_sample_of_nan_and_of_infinities() -> None:
    assert both(lambda f: np.sum(np.interp([0.0, 1.0, 2.0], [1.0], f)), np.array([3.0])) == [3.0]
    with pytest.raises(ValueError, match="not empty"):
        dg.grad(lambda x: np.interp(x, [], []))(1.0)
    heights = [1.0, math.inf, math.inf, 2.0, math.nan, 0.0]
    places = np.array([0.5, 1.0, 1.5, 2.5, 3.0, 3.5, 5.0, math.nan])
    found = dg.jvp(lambda x: np.interp(x, np.arange(6.0), heights), (places,), (places,))[0]
    np.testing.assert_array_equal(found, np.interp(places, np.arange(6.0), heights))


# -- order statistics --------------------------------------------------------------------------------------------------


def test_at_ties_the_median_follows_the_elements_in_the_order_of_a_stable_sort() -> None:
    assert both(np.median, np.array([2.0, 1.0, 2.0, 2.0])) == [0.5, 0, 0.5, 0]
    assert both(np.median, np.ones(3)) == [0, 1, 0]
    assert both(lambda x: np.quantile(x, 1.0), np.ones(3)) == [0, 0, 1]


def test_order_statistics_of_one_element_of_none_and_of_nan() -> None:
    for f in (np.median, lambda x: np.quantile(x, 0.3), lambda x: np.percentile(x, 30.0, method="hazen")):
        assert both(f, np.array([7.0])) == [1.0]
    with pytest.raises(IndexError, match="nothing along the axis"):
        dg.grad(lambda x: np.quantile(x, 0.5))(np.zeros(0))
    holes = np.array([[1.0, math.nan, 3.0], [4.0, 5.0, 6.0]])
    for f in (lambda x: np.median(x, 1), lambda x: np.quantile(x, [0.2, 0.6], axis=1)):
        np.testing.assert_array_equal(dg.jvp(f, (holes,), (holes,))[0], f(holes))
    assert both(lambda x: np.sum(np.nanmedian(x, 1)), holes) == [[0.5, 0, 0.5], [0, 1, 0]]
    with np.errstate(all="ignore"):
        lost = dg.jvp(lambda x: np.nansum(np.nan_to_num(np.nanmedian(x, 0))), (holes * math.nan,), (holes,))
    assert lost == (0.0, 0.0)


def test_a_share_is_followed_between_elements_and_not_beyond_their_ends() -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0])
    assert both(lambda q: np.quantile(x, q), 0.5) == 3 * 2.0
    assert both(lambda q: np.quantile(x, q, method="weibull"), 0.05) == 0.0
    assert both(lambda q: np.quantile(x, q, method="lower"), 0.5) == 0.0
    for q in (-0.1, 1.1):
        with pytest.raises(ValueError, match=r"range \[0, 1\]"):
            dg.grad(lambda x, q=q: np.quantile(x, q))(x)
    with pytest.raises(ValueError, match="no method of a quantile; the methods are averaged_inverted_cdf, closest"):
        dg.grad(lambda x: np.quantile(x, 0.5, method="middle"))(x)


def test_partitions_are_those_of_numpy() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 9, size=(3, 17)).astype(float)
        for kth, axis in ((4, -1), ([1, 9], 1), (2, 0), (5, None)):
            want = np.partition(x, kth, axis)
            got, moved = dg.jvp(lambda x, k=kth, a=axis: np.partition(x, k, a), (x,), (2.0 * x,))
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(moved, 2.0 * want)


# -- lengths 0 and 1 ---------------------------------------------------------------------------------------------------


def test_rows_of_length_0_and_1() -> None:
    none, one = np.zeros(0), np.array([2.0])
    for f in (
        lambda x: np.sum(np.linspace(np.sum(x), 1.0, 0)),
        lambda x: np.sum(np.maximum.accumulate(x)),
        lambda x: np.sum(np.logaddexp.accumulate(x)),
        lambda x: np.sum(np.partition(np.append(x, 1.0), 0)),
        lambda x: np.sum(np.vander(x, 3)),
        lambda x: np.sum(np.meshgrid(x, [1.0, 2.0])[0]),
        lambda x: np.sum(np.insert(x, 0, 5.0)),
        lambda x: np.sum(np.histogram(x, 3, (0.0, 1.0))[1]),
        lambda x: np.hypot.reduce(x) ** 2,
        lambda x: np.add.reduce(x, initial=3.0),
        lambda x: np.sum(np.block([x, x])),
        lambda x: np.sum(np.nancumsum(x)),
    ):
        for x in (none, one):
            value, found = dg.value_and_grad(f)(x)
            assert value == pytest.approx(f(x)) and found.shape == x.shape
            np.testing.assert_allclose(forward(f, x), found)
    assert both(lambda x: np.sum(np.convolve(x, x)), one) == [4.0]
    assert both(lambda x: np.arctan2.reduce(x), one) == [1.0]
    assert both(lambda x: np.sum(np.linspace(x[0], 5.0, 1)), one) == [1.0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.convolve(x, []),
        lambda x: np.correlate(x[:0], x),
        lambda x: np.gradient(x[:1]),
        lambda x: np.gradient(x[:2], edge_order=2),
        lambda x: np.gradient(x, 1.0, 2.0),
        lambda x: np.gradient(x, [1.0, 2.0]),
        lambda x: np.maximum.reduce(x[:0]),
        lambda x: np.divide.reduce(np.reshape(x, (2, 2)), axis=(0, 1)),
        lambda x: np.maximum.reduce(x, where=[True, False, True, True]),
        lambda x: np.sin.reduce(x),
        lambda x: np.linspace(x[0], 1.0, -1),
        lambda x: np.insert(x, 7, 0.0),
        lambda x: np.insert(x, [1, 2], [1.0, 2.0, 3.0]),
        lambda x: np.block([[x], x]),
        lambda x: np.choose([0, 5, 0, 0], [x, x]),
        lambda x: np.hsplit(x, 3),
        lambda x: np.vsplit(x, 2),
        lambda x: np.rollaxis(x, 0, 5),
        lambda x: np.cross(x, x),
        lambda x: np.add.reduceat(x, [0, 9]),
        lambda x: np.histogram(x, [2.0, 1.0]),
        lambda x: np.histogram(x, 0),
        lambda x: np.cov(x, fweights=[1, 2]),
        lambda x: np.cov(x, aweights=[1.0, -2.0, 1.0, 1.0]),
        lambda x: np.polyfit(x, x[:2], 1),
        lambda x: np.linalg.lstsq(np.eye(3), x, rcond=None),
        lambda x: np.linalg.pinv(x),
        lambda x: np.piecewise(x, [x > 0], [np.sin, np.cos, np.exp]),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 5),
        lambda x: np.meshgrid(x, x, indexing="yx"),
        lambda x: np.bincount([0, 1], weights=x),
    ],
)
def test_mistakes_are_errors_of_the_kind_that_numpy_raises(f: Any) -> None:
    with pytest.raises(Exception) as expected:
        f(x4)
    with pytest.raises(expected.type):
        dg.grad(lambda x: np.sum(np.stack([np.sum(part) for part in f(x)])))(x4)


# -- least squares -----------------------------------------------------------------------------------------------------


def test_pseudo_inverses_without_full_rank_have_the_derivatives_of_what_numpy_computes() -> None:
    rng = np.random.default_rng(5)
    for shape, rank in (((4, 3), 2), ((3, 4), 1), ((3, 3), 2)):
        a = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
        d = rng.normal(size=shape)
        step = 1e-6  # singular values of this size stay cut off
        with mp.workdps(50):
            slope = (np.linalg.pinv(a + step * d, 1e-3) - np.linalg.pinv(a - step * d, 1e-3)) / (2 * step)
        found = dg.jvp(lambda a: np.linalg.pinv(a, 1e-3), (a,), (d,))[1]
        np.testing.assert_allclose(found, slope, rtol=1e-4, atol=1e-5 * max(1.0, abs(slope).max()))
        weights = rng.normal(size=found.shape)
        pulled = dg.grad(lambda a, w=weights: np.sum(np.linalg.pinv(a, 1e-3) * w))(a)
        assert np.sum(pulled * d) == pytest.approx(np.sum(found * weights), rel=1e-9, abs=1e-12)


def test_singular_values_that_are_cut_off_are_small_where_there_are_derivatives() -> None:
    """What is cut off turns with what stays, and derivatives at constant rank leave this out."""
    a, d = np.diag([3.0, 1.0]), np.ones((2, 2))
    least, with_noise = np.array([[3.0, 0.0], [0.0, 1e-9]]), np.array([1.0, 2.0])
    for f in (lambda a: np.linalg.pinv(a, 0.5), lambda a: np.linalg.lstsq(a, with_noise, rcond=0.5)[0]):
        for verb in (dg.jacfwd, dg.jacrev):
            with pytest.raises(NotDifferentiable, match="not small beside those that stay"):
                verb(f)(a)
        with pytest.raises(NotDifferentiable, match="not small beside those that stay"):
            dg.compile(lambda a, f=f: dg.jvp(f, (a,), (d,)))(a)
        step = 1e-6
        slope = (f(least + step * d) - f(least - step * d)) / (2 * step)
        assert np.allclose(dg.jvp(f, (least,), (d,))[1], slope, atol=1e-6)


def test_the_pseudo_inverse_jumps_at_zeros() -> None:
    for f in (np.linalg.pinv, lambda a: np.linalg.lstsq(a, np.ones(2), rcond=None)[0]):
        for verb in (dg.jacfwd, dg.jacrev):
            with pytest.raises(NotDifferentiable, match="no derivative at a matrix of zeros"):
                verb(f)(np.zeros((2, 2)))


def test_pseudo_inverses_of_full_rank_have_all_digits() -> None:
    a, d = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 1.0]]), np.array([[0.3, 0.1], [-1.0, 0.2], [0.4, 0.7]])
    with mp.workdps(50):

        def exact(t: Any) -> Any:
            m = mp.matrix(a.tolist()) + t * mp.matrix(d.tolist())
            return (m.T * m) ** -1 * m.T

        for n in (1, 2, 3):
            h = mp.mpf(10) ** -10
            signs = {1: {1: 0.5, -1: -0.5}, 2: {1: 1, 0: -2, -1: 1}, 3: {2: 0.5, 1: -1, -1: 1, -2: -0.5}}[n]
            slope = sum((w * exact(k * h) for k, w in signs.items()), mp.zeros(2, 3)) / h**n
            found = dg.derivative(lambda t: np.linalg.pinv(a + t * d), n)(0.0)
            np.testing.assert_allclose(found, np.array(slope.tolist(), float), rtol=1e-11, atol=1e-12)


def test_residuals_are_there_where_numpy_has_them() -> None:
    full, low = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 3.0]]), np.outer([1.0, 2.0, 3.0], [1.0, 2.0])
    for a, count in ((full, 1), (low, 0), (full.T, 0)):
        b = np.arange(1.0, a.shape[0] + 1.0) ** 2
        found, _ = dg.jvp(lambda b, a=a: np.linalg.lstsq(a, b, rcond=None)[:2], (b,), (b,))
        x, residuals = np.linalg.lstsq(a, b, rcond=None)[:2]
        np.testing.assert_allclose(found[0], x, atol=1e-13)
        assert found[1].shape == residuals.shape == (count,)
        np.testing.assert_allclose(found[1], residuals)
        assert dg.jvp(lambda b, a=a: b * np.linalg.lstsq(a, b, rcond=None)[2], (b,), (b,))[0] == pytest.approx(
            b * np.linalg.matrix_rank(a)
        )


# -- steps -------------------------------------------------------------------------------------------------------------


def test_counts_and_bins_are_steps() -> None:
    x = np.array([0.1, 0.5, 0.9, 1.0, 1.4])
    assert both(lambda x: np.sum(np.histogram(x, [0.0, 0.5, 1.0])[0] * x[:2]), x) == [1.0, 3.0, 0, 0, 0]
    assert both(lambda x: np.sum(np.digitize(x, [0.0, 0.5, 1.0]) * x), x) == [1, 2, 2, 3, 3]
    assert both(lambda x: np.sum(np.floor_divide.outer(x, [0.3, 0.5]) * x[:, None]), x) == [0, 2, 4, 5, 6]
    counts: list[Any] = []
    dg.grad(lambda x: counts.append(np.histogram(x, 3)[0]) or np.sum(x))(x)
    assert counts[0].dtype == np.intp and counts[0].tolist() == np.histogram(x, 3)[0].tolist()
    assert both(lambda x: np.sum(np.histogram(x, 2)[1] * [1.0, 10.0, 100.0]), x) == [6.0, 0, 0, 0, 105.0]


# -- at, vectorize -----------------------------------------------------------------------------------------------------


def test_vectorize_lets_derivatives_through_under_our_name_and_that_of_numpy_says_so() -> None:
    x, y = np.array([[1.0, -2.0], [0.5, 3.0]]), np.array([2.0, 5.0])
    one = dnp.vectorize(lambda a, b: a * b if a > 0 else a)
    assert dg.grad(lambda x: np.sum(one(x, y)))(x).tolist() == [[2.0, 1.0], [2.0, 5.0]]
    np.testing.assert_array_equal(one(x, y), np.vectorize(one.pyfunc)(x, y))
    pair = dnp.vectorize(lambda a, k: (a * k, a - k), excluded={1})
    assert dg.grad(lambda x: np.sum(pair(x, 3.0)[0]))(y).tolist() == [3.0, 3.0]
    dots = dnp.vectorize(np.dot, signature="(n),(n)->()")
    assert dg.grad(lambda y: np.sum(dots(x, y)))(y).tolist() == [1.5, 1.0]
    assert dg.grad(lambda y: dots(y, [1.0, 4.0]))(y).tolist() == [1.0, 4.0]
    doubled = dnp.vectorize(lambda r: 2.0 * r, signature="(n)->(n)")
    assert dg.grad(lambda x: np.sum(doubled(x)[0]))(x).tolist() == [[2.0, 2.0], [0.0, 0.0]]
    assert one(x, b=2.0).tolist() == np.vectorize(one.pyfunc)(x, b=2.0).tolist()
    with pytest.raises(Error, match=r"np\.vectorize makes plain arrays.*use the one of dynagrad\.numpy"):
        dg.grad(lambda x: np.sum(np.vectorize(lambda v: v * v)(x)))(y)


def test_functions_that_call_functions_take_numbers_that_these_bring_along() -> None:
    rows = np.arange(6.0).reshape(2, 3)
    assert dg.grad(lambda k: np.sum(dnp.apply_along_axis(lambda r: r * k, 1, rows)))(2.0) == 15.0
    assert dg.grad(lambda k: np.sum(dnp.apply_over_axes(lambda a, i: np.sum(a, i) * k, rows, (0, 1))))(2.0) == 60.0
    assert dg.grad(lambda k: np.sum(dnp.piecewise(rows, [rows > 2], [lambda t: t * k, k])))(2.0) == 12.0 + 3.0
    assert dg.grad(lambda k: dnp.interp(9.0, [0.0, 1.0], [0.0, 1.0], right=k * k))(3.0) == 6.0


# -- other kinds of numbers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble])
def test_reals_of_other_sizes_are_taken_and_computed_in_float64(kind: Any) -> None:
    x, weights = np.array([1.5, 2.25], kind), np.array([2.0, 3.0], kind)

    def f(x: Any) -> Any:
        return np.sum(np.exp(x) * weights)

    for verb in (dg.grad, dg.jacfwd, dg.jacrev):
        found = verb(f)(x)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, np.exp([1.5, 2.25]) * [2.0, 3.0], rtol=1e-15)
    assert dg.grad(lambda x: x * weights[0])(kind(1.5)) == 2.0
    assert dg.jvp(f, (x,), (weights,))[1] == pytest.approx(np.sum(np.exp([1.5, 2.25]) * [4.0, 9.0]), rel=1e-15)


def test_complex_numbers_are_refused_where_they_arise() -> None:
    root = np.sqrt(-1.0 + 0.0j)
    for f, says in (
        (lambda x: np.sum(np.real(np.fft.fft(x))), r"np\.fft\.fft has no derivative here: its result is complex"),
        (lambda x: np.sum(np.fft.fftshift(x)), r"np\.fft\.fftshift has no derivative here"),
        (lambda x: np.sum(x * root), "keep its two parts as reals"),
        (lambda x: np.sum(np.linalg.eigvals(np.outer(x, x))), r"np\.linalg\.eigvalsh, for symmetric"),
        (lambda x: np.sum(np.emath.log(x)), "may be complex"),
        (lambda x: np.sum(np.interp(x, [0.0, 3.0], [1j, 2.0])), "complex"),
        (lambda x: np.sum(np.convolve(x, [1j, 2.0])), "real"),
        (lambda x: abs(complex(x[0])), "keep two parts"),
    ):
        with pytest.raises(Error, match=says):
            dg.grad(f)(np.ones(2))
    for verb in (dg.grad, dg.jacfwd, dg.derivative):
        for x in (1j, np.complex64(1j), np.ones(2) * 1j):
            with pytest.raises(Error, match=r"argument 1 is complex, and has no derivatives; give its two parts"):
                verb(lambda x: np.sum(np.abs(x)))(x)


def test_complex_numbers_are_refused_in_compiled_functions_too() -> None:
    root = np.sqrt(-1.0 + 0.0j)
    many = np.array([1j, 2.0])
    for f, says in (
        (lambda x: np.sum(np.real(np.fft.rfft(x))), "its result is complex"),
        (lambda x: np.sum(x * root), r"the complex number 1j: derivatives are of reals; keep the two parts"),
        (lambda x: np.sum(many * x), r"an array of complex numbers \* an array of reals"),
        (lambda x: np.sum(np.linalg.eig(np.outer(x, x))[0]), r"np\.linalg\.eigh"),
        (lambda x: np.float32(x[0]), "derivatives are of float64"),
    ):
        with pytest.raises(Error, match=says):
            dg.compile(f)(np.ones(2))
    with pytest.raises(Error, match="keep the two parts of complex numbers"):
        dg.compile(lambda x: np.sum(x))(many)


# -- what there is not -------------------------------------------------------------------------------------------------


def test_whatever_numpy_has_and_there_is_not_says_what_it_is_and_what_to_write() -> None:
    general = numpy_missing._ELSE
    for space in (np, np.linalg, np.fft, np.emath, np.lib.stride_tricks):
        for name in dir(space):
            function = getattr(space, name)
            if name.startswith("_"):
                continue
            if type(function) is type(np.sum):  # what numpy lets others implement
                known = function in FUNCTIONS or function in protocol.LOOKS or function in protocol.SUCCESSORS
                called = protocol.name_of(function)
            elif isinstance(function, np.ufunc):
                tables = (protocol.UFUNCS, protocol.COMPOSED, protocol.STEPS)
                known, called = any(function in table for table in tables), f"np.{function.__name__}"
            else:
                continue
            assert known or general not in str(numpy_missing.unknown(called)), called


def test_advice_names_what_exists() -> None:
    for advice in (*numpy_missing.WHY.values(), *numpy_missing.FAMILIES.values()):
        for name in re.findall(r"\bnp\.([a-z0-9_.]+[a-z0-9_])", advice):
            found: Any = np
            for part in name.split("."):
                found = getattr(found, part)
            assert found is not None


def test_a_name_that_nobody_knows_gets_a_general_answer() -> None:
    assert isinstance(numpy_missing.unknown("np.brandnew"), NotDifferentiable)
    assert "dg.custom_rule" in str(numpy_missing.unknown("np.brandnew"))


def test_second_derivatives_of_pseudo_inverses_where_a_tangent_is_zero():
    a = np.random.default_rng(2).normal(size=(2, 3, 2))
    assert dg.hessian(lambda x: np.sum(np.linalg.pinv(x)[..., 0]))(a).shape == (2, 3, 2, 2, 3, 2)
    twice = dg.derivative(dg.derivative(lambda t: np.sum(np.linalg.pinv(a[0] * (1.0 + t * t)))))(0.0)
    assert np.isclose(twice, -2.0 * np.sum(np.linalg.pinv(a[0])))


def test_determinants_of_stacks_of_nothing():
    assert dg.grad(lambda x: np.sum(np.linalg.det(x)))(np.zeros((2, 0, 0))).shape == (2, 0, 0)


def test_a_mask_of_insert_is_one_or_an_error() -> None:
    """Before numpy 2, its truth values are the positions 0 and 1."""
    mask, x, new = np.array([True, False, True]), np.array([1.0, 2.0, 3.0]), np.array([7.0, 8.0])

    def f(x: Any) -> Any:
        return np.insert(x, mask, new)

    for call in (lambda: dg.jvp(f, (x,), (x,))[0], lambda: dg.compile(f)(x)):
        if int(np.__version__.partition(".")[0]) >= 2:
            assert call().tolist() == f(x).tolist() == [7.0, 1.0, 2.0, 8.0, 3.0]
        else:
            with pytest.raises(Error, match=r"np\.insert\(x, np\.flatnonzero\(mask\), values\)"):
                call()
