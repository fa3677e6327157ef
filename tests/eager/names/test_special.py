"""Special functions: values and derivatives to second order against mpmath at 50 digits; what happens at infinities.

Costs twenty seconds.
"""

from __future__ import annotations

import math
import sys

import mpmath
import numpy as np
import pytest

import dynagrad as dg
from dynagrad.eager import special
from dynagrad.errors import Error

inf = math.inf
mp = mpmath.mp.clone()
mp.dps = 50


def bell(x):
    return mp.ncdf(x)


# What each function means, and where it is looked at.
ANY = (-2.5, -0.75, 0.1, 0.5, 1.0, 3.25)
POSITIVE = (0.1, 0.5, 1.0, 2.75, 12.5)
FEW = (0.5, 2.75)
INSIDE = (0.01, 0.25, 0.5, 0.875)
MEANING = {
    "digamma": (mp.digamma, POSITIVE),
    "entr": (lambda x: -x * mp.log(x), POSITIVE),
    "erf": (mp.erf, ANY),
    "erfc": (mp.erfc, ANY),
    "erfcinv": (lambda x: mp.erfinv(1 - x), INSIDE),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), ANY),
    "erfinv": (mp.erfinv, INSIDE),
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), (*ANY, -30.0, 30.0)),
    "gamma": (mp.gamma, (*POSITIVE, -0.5, -1.75)),
    "gammaln": (lambda x: mp.log(abs(mp.gamma(x))), POSITIVE),
    "i0": (lambda x: mp.besseli(0, x), ANY),
    "i1": (lambda x: mp.besseli(1, x), ANY),
    "j0": (lambda x: mp.besselj(0, x), ANY),
    "j1": (lambda x: mp.besselj(1, x), ANY),
    "k0": (lambda x: mp.besselk(0, x), FEW),
    "k1": (lambda x: mp.besselk(1, x), FEW),
    "log_expit": (lambda x: -mp.log(1 + mp.exp(-x)), (*ANY, -30.0)),
    "log_ndtr": (lambda x: mp.log(bell(x)), (*ANY, -12.0)),
    "logit": (lambda x: mp.log(x / (1 - x)), INSIDE),
    "ndtr": (bell, ANY),
    "ndtri": (lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1), INSIDE),
    "softplus": (lambda x: mp.log(1 + mp.exp(x)), (*ANY, -30.0)),
    "y0": (lambda x: mp.bessely(0, x), FEW),
    "y1": (lambda x: mp.bessely(1, x), FEW),
}
OF_ORDER = {
    "polygamma": (mp.polygamma, (0, 1, 3), POSITIVE),
    "iv": (mp.besseli, (0, 2, 3), ANY),
    "jn": (mp.besselj, (0, 2, 3), ANY),
    "kn": (mp.besselk, (0, 3, 0.3, -1.5), FEW),
    "yn": (mp.bessely, (0, 3, 0.3, 2.5), FEW),
}
OF_TWO = {
    "beta": (mp.beta, POSITIVE, POSITIVE),
    "betaln": (lambda a, b: mp.log(mp.beta(a, b)), POSITIVE, POSITIVE),
    "kl_div": (lambda a, b: a * mp.log(a / b) - a + b, POSITIVE, POSITIVE),
    "rel_entr": (lambda a, b: a * mp.log(a / b), POSITIVE, POSITIVE),
    "xlog1py": (lambda a, b: a * mp.log(1 + b), ANY, POSITIVE),
    "xlogy": (lambda a, b: a * mp.log(b), ANY, POSITIVE),
}
SUMS = {"logsumexp", "softmax", "log_softmax"}
SAME = {"sigmoid"}  # other names


def test_every_function_is_looked_at():
    assert set(special.__all__) == set(MEANING) | set(OF_ORDER) | set(OF_TWO) | SUMS | SAME
    assert set(special.UFUNCS) >= (set(MEANING) | set(OF_ORDER) | set(OF_TWO)) - {"softplus"}


def derivatives(f, x):
    """First and second derivatives, in all modes."""
    forward = dg.derivative(f)
    backward = dg.grad(f)
    second = [dg.derivative(forward)(x), dg.derivative(backward)(x), dg.grad(forward)(x), dg.grad(backward)(x)]
    return [forward(x), backward(x)], second


def differences(meaning, x):
    """Value, first and second derivative of what is computed in 50 digits, of which 24 cancel at the most."""
    h = mp.mpf(10) ** -12
    low, here, high = (meaning(mp.mpf(x) + d) for d in (-h, 0, h))
    return here, (high - low) / (2 * h), (high - 2 * here + low) / h**2


def close(values, expected, rel=1e-11):
    return values == pytest.approx([float(expected)] * len(values), rel=rel, abs=1e-13)


ONE = [(name, getattr(special, name), *MEANING[name]) for name in MEANING] + [
    (f"{name}({n})", lambda x, name=name, n=n: getattr(special, name)(n, x), lambda x, f=f, n=n: f(n, x), points)
    for name, (f, orders, points) in OF_ORDER.items()
    for n in orders
]


@pytest.mark.parametrize(("f", "meaning", "points"), [case[1:] for case in ONE], ids=[case[0] for case in ONE])
def test_functions_of_one_real(f, meaning, points):
    if f not in (special.entr, special.expit, special.log_expit, special.logit, special.softplus):
        pytest.importorskip("scipy")
    for x in points:
        first, second = derivatives(f, x)
        value, slope, curvature = differences(meaning, x)
        assert close([f(x)], value), x
        assert close(first, slope), x
        assert close(second, curvature, 1e-10), x
    array = np.array(points)
    assert f(array) == pytest.approx(np.array([f(x) for x in points]), rel=1e-13)
    gradient = dg.grad(lambda x: np.sum(f(x)))(array)
    assert gradient == pytest.approx(np.array([dg.grad(f)(x) for x in points]), rel=1e-12)
    assert dg.jvp(f, (array,), (np.ones_like(array),))[1] == pytest.approx(gradient, rel=1e-12)


@pytest.mark.parametrize("order", [0.3, 1.5, 7.25])
def test_bessel_functions_of_orders_that_are_not_whole(order):
    pytest.importorskip("scipy")
    for f, meaning in ((special.iv, mp.besseli), (special.jn, mp.besselj)):
        for x in POSITIVE:
            first, second = derivatives(lambda x, f=f: f(order, x), x)
            _, slope, curvature = differences(lambda x, f=meaning: f(order, x), x)
            assert close(first, slope), x
            assert close(second, curvature, 1e-9), x
    with pytest.raises(Error, match="constant"):
        dg.grad(lambda x: special.iv(x, 1.0))(0.5)


def test_compiled_functions_of_numbers_and_of_arrays():
    pytest.importorskip("scipy")
    points = np.array(INSIDE)

    def every(x):
        ones = [f(x) for _, f, _, places in ONE if places is not FEW]
        twos = [getattr(special, name)(x, 0.5 + x) + getattr(special, name)(0.5, x) for name in OF_TWO]
        return np.stack([*ones, *twos])

    compiled = dg.compile(every)
    for x in (points, points.reshape(2, 2), 0.25):
        assert compiled(x) == pytest.approx(every(x), rel=1e-13)
        assert dg.jvp(compiled, (x,), (x,))[1] == pytest.approx(dg.jvp(every, (x,), (x,))[1], rel=1e-12)
    gradient = dg.grad(lambda x: np.sum(np.cos(every(x))))
    assert dg.compile(gradient)(points) == pytest.approx(gradient(points), rel=1e-10)


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_reals(name):
    pytest.importorskip("scipy")
    meaning, *points = OF_TWO[name]
    f = getattr(special, name)
    for a, b in zip(points[0], points[1][::-1], strict=False):
        at = mp.mpf(a), mp.mpf(b)
        assert close([f(a, b)], meaning(*at)), (a, b)
        for i in (0, 1):
            order = (int(i == 0), int(i == 1))
            backward = dg.grad(f, i)
            forward = dg.jvp(f, (a, b), (float(order[0]), float(order[1])))[1]
            assert close([backward(a, b), forward], mp.diff(meaning, at, order, h=mp.mpf(10) ** -15)), (a, b)
            for j in (0, 1):
                orders = tuple((k == i) + (k == j) for k in (0, 1))
                expected = mp.diff(meaning, at, orders, h=mp.mpf(10) ** -12)
                assert close([dg.grad(backward, j)(a, b)], expected, 1e-9), (a, b)
    a, b = np.array(points[0])[:, None], np.array(points[1])
    rows, columns = dg.grad(lambda a, b: np.sum(f(a, b)), (0, 1))(a, b)
    assert rows.shape == a.shape and columns.shape == b.shape
    assert rows[0, 0] == pytest.approx(sum(dg.grad(f)(float(a[0, 0]), float(x)) for x in b))


# -- edges -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "arguments", "value"),
    [
        ("xlogy", (0.0, 0.0), 0.0),
        ("xlogy", (0.0, -1.0), 0.0),
        ("xlogy", (0.0, math.nan), math.nan),
        ("xlogy", (1.0, 0.0), -inf),
        ("xlog1py", (0.0, -1.0), 0.0),
        ("entr", (0.0,), 0.0),
        ("entr", (-1.0,), -inf),
        ("rel_entr", (0.0, 0.0), 0.0),
        ("rel_entr", (1.0, 0.0), inf),
        ("rel_entr", (-1.0, 1.0), inf),
        ("kl_div", (0.0, 2.0), 2.0),
        ("expit", (-inf,), 0.0),
        ("expit", (inf,), 1.0),
        ("logit", (0.0,), -inf),
        ("logit", (1.0,), inf),
        ("logit", (2.0,), math.nan),
        ("log_expit", (-1000.0,), -1000.0),
        ("softplus", (1000.0,), 1000.0),
        ("softplus", (-inf,), 0.0),
    ],
)
def test_values_at_the_edges(f, arguments, value):
    got = getattr(special, f)(*arguments)
    assert type(got) is float
    assert got == value or (math.isnan(got) and math.isnan(value))
    arrays = getattr(special, f)(*(np.array([x, x]) for x in arguments))
    np.testing.assert_array_equal(arrays, [value, value])


def test_derivatives_at_the_edges():
    assert dg.grad(special.xlogy, 1)(0.0, 0.0) == 0.0
    assert dg.grad(special.xlogy, 0)(0.0, 0.0) == -inf
    assert dg.grad(special.xlog1py, 1)(0.0, -1.0) == 0.0
    assert dg.grad(special.rel_entr, 1)(0.0, 0.0) == 0.0
    assert dg.grad(special.entr)(0.0) == inf
    assert dg.grad(special.expit)(-800.0) == 0.0
    assert dg.grad(special.softplus)(800.0) == 1.0
    assert dg.grad(special.log_ndtr)(-30.0) == pytest.approx(30.0333, rel=1e-4)


def far(meaning, x, n, digits):
    with mp.workdps(digits):
        return float(mp.diff(meaning, x, n))


@pytest.mark.parametrize("x", [-12.0, -5.0, -0.1, 0.0, 0.1, 8.0])
def test_log_ndtr_has_its_digits(x):
    for n, tolerance in ((1, 1e-14), (2, 1e-13), (3, 1e-11)):
        expected = far(lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), x, n, 80)
        assert derivative_of(special.log_ndtr, n)(x) == pytest.approx(expected, rel=tolerance)


def derivative_of(f, n):
    for _ in range(n):
        f = dg.derivative(f)
    return f


def test_small_and_large_slopes_far_out():
    for x in (-1e5, -1e7, -1e10):
        assert dg.grad(special.log_ndtr)(x) == pytest.approx(-x + -1.0 / x, rel=1e-15)
        assert dg.grad(dg.grad(special.log_ndtr))(x) == pytest.approx(-1.0, rel=1e-9)
    for x in (1e6, 1e8, 1e100):
        assert dg.grad(special.erfcx)(x) == pytest.approx(-1.0 / math.sqrt(math.pi) / x / x, rel=1e-11)
    assert dg.grad(lambda x: np.sum(special.erfcx(x)))(np.array([inf, 1e300])).tolist() == [0.0, 0.0]
    assert dg.grad(special.betaln)(1e10, 1e-3) == pytest.approx(-1e-13, rel=1e-10)


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_erfcx_has_its_digits_in_every_order(n):
    for x in (-3.0, -0.1, 0.0, 0.1, 0.7, 2.0, 9.0):
        expected = far(lambda x: mp.exp(x * x) * mp.erfc(x), x, n, 60)
        assert special._erfcx(n)(x) == pytest.approx(expected, rel=2e-14), x


@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize(("a", "b"), [(1e10, 1e-3), (1e-3, 1e10), (2.5, 1.5), (0.1, 1e-12), (30.0, -29.5), (-0.5, 0.2)])
def test_differences_of_polygammas_have_their_digits(n, a, b):
    with mp.workdps(80):
        expected = mp.polygamma(n, a) - mp.polygamma(n, mp.mpf(a) + mp.mpf(b))
    assert special._polygamma_difference(n)(a, b) == pytest.approx(float(expected), rel=1e-13)


def test_ufuncs_of_scipy_work_on_numbers():
    scipy = pytest.importorskip("scipy.special")
    x = np.array(POSITIVE)
    for name in ("erf", "gammaln", "psi", "expit", "i0", "log_ndtr", "entr"):
        f = getattr(scipy, name)
        ours = special.UFUNCS[name]
        assert dg.grad(lambda x, f=f: np.sum(f(x)))(x).tolist() == dg.grad(lambda x, f=ours: np.sum(f(x)))(x).tolist()
    assert dg.grad(scipy.xlogy)(2.0, 3.0) == pytest.approx(math.log(3.0))
    with pytest.raises(Error, match="dawsn has no derivative"):
        dg.grad(scipy.dawsn)(1.0)


def test_the_order_is_constant():
    with pytest.raises(Error, match=r"polygamma: the order should be a whole number.*0.5"):
        special.polygamma(0.5, 1.0)
    with pytest.raises(Error, match="constant"):
        dg.grad(lambda x: special.jn(x, x))(1.0)


def test_without_scipy_the_error_says_so_and_the_rest_works(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    special._scipy.cache_clear()
    with pytest.raises(Error, match=r"dg\.special\.erf needs scipy, which is not installed: pip install scipy"):
        special.erf(1.0)
    assert special.softmax(np.zeros(2)).tolist() == [0.5, 0.5]
    assert special.xlogy(0.0, 0.0) == 0.0 and special.expit(0.0) == 0.5 and special.logit(0.5) == 0.0
    monkeypatch.undo()
    special._scipy.cache_clear()
