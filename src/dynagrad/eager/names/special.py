"""Special functions, `dg.special`: of floats, arrays and numbers with derivatives.

Here are elementwise functions of one or two reals; `logsumexp` and `softmax` are in `eager/numpy/exponentials.py`.
`xlogy` and the entropies are 0 where their first factor is. Most take their values from scipy, which must be installed
for them; scipy's ufuncs of the same names work on numbers with derivatives too. All have derivatives of every order by
their real arguments; the order of a Bessel function or a polygamma is a constant.

It is long because of its table: each function has its value, its derivatives and its source in one place.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import Error, shown
from ...ir.operation import LinearMap, Operation, as_number
from ...ir.ops import scalars as ops
from ...ir.types import real
from ...packages import optional
from ..numbers import lift
from ..numpy.exponentials import log_softmax, logsumexp, softmax
from ..numpy.functions import OF_SCIPY

__all__ = [
    "beta",
    "betaln",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "expit",
    "gamma",
    "gammaln",
    "i0",
    "i1",
    "iv",
    "j0",
    "j1",
    "jn",
    "k0",
    "k1",
    "kl_div",
    "kn",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "ndtr",
    "ndtri",
    "polygamma",
    "rel_entr",
    "sigmoid",
    "softmax",
    "softplus",
    "xlog1py",
    "xlogy",
    "y0",
    "y1",
    "yn",
]

ROOT_PI = math.sqrt(math.pi)
ROOT_2PI = math.sqrt(2.0 * math.pi)


# -- elementwise functions ---------------------------------------------------------------------------------------------


def _elementwise(name: str, value: Callable[..., Any], *tangent: LinearMap | None) -> Operation:
    """An operation on reals, with as many arguments as there are tangent rules; `value` is for arrays and floats."""

    def quietly(*xs: Any) -> Any:
        with np.errstate(all="ignore"):
            return value(*xs)

    return Operation(name, (real,) * len(tangent), real, lambda *xs: float(quietly(*xs)), tangent, "", array=quietly)


@functools.cache
def _scipy(name: str) -> Any:
    return getattr(optional("scipy.special", f"dg.special.{name}"), name)


def _from_scipy(name: str, *tangent: LinearMap | None, scipy: str = "", first: tuple[Any, ...] = ()) -> Operation:
    """An operation with values from scipy; `first` are constant arguments before the others."""
    return _elementwise(name, lambda *xs: _scipy(scipy or name)(*first, *xs), *tangent)


def _product_with_log(log: Any) -> Callable[[Any, Any], Any]:
    def value(a: Any, b: Any) -> Any:
        return np.where((np.asarray(a) == 0.0) & ~np.isnan(b), 0.0, a * log(b))

    return value


def _slope(d: Any, a: Any, b: Any) -> Any:
    """d * a / b, and 0 where a and b are 0: the derivative by b of a function that is 0 where a is."""
    both = ops.logical_and(ops.equal(a, 0.0), ops.equal(b, 0.0))
    return ops.where(both, 0.0, ops.multiply(d, ops.divide(a, b)))


_xlogy = _elementwise(
    "xlogy",
    _product_with_log(np.log),
    lambda d, y, a, b: ops.multiply(d, ops.log(b)),
    lambda d, y, a, b: _slope(d, a, b),
)
_xlog1py = _elementwise(
    "xlog1py",
    _product_with_log(np.log1p),
    lambda d, y, a, b: ops.multiply(d, ops.log1p(b)),
    lambda d, y, a, b: _slope(d, a, ops.add(1.0, b)),
)


def _entr_value(x: Any) -> Any:
    x = np.asarray(x)
    return np.where(x > 0.0, -x * np.log(x), np.where(x == 0.0, 0.0, np.where(x < 0.0, -math.inf, x)))


_entr = _elementwise("entr", _entr_value, lambda d, y, x: ops.negative(ops.multiply(d, ops.add(1.0, ops.log(x)))))


def _rel_entr_value(a: Any, b: Any) -> Any:
    a, b = np.asarray(a), np.asarray(b)
    inside = np.where((a > 0.0) & (b > 0.0), a * (np.log(a) - np.log(b)), math.inf)
    return np.where(np.isnan(a) | np.isnan(b), math.nan, np.where((a == 0.0) & (b >= 0.0), 0.0, inside))


_rel_entr = _elementwise(
    "rel_entr",
    _rel_entr_value,
    lambda d, y, a, b: ops.multiply(d, ops.add(1.0, ops.subtract(ops.log(a), ops.log(b)))),
    lambda d, y, a, b: ops.negative(_slope(d, a, b)),
)
_logit = _elementwise(
    "logit",
    lambda x: np.log(x) - np.log1p(-np.asarray(x)),
    lambda d, y, x: ops.divide(d, ops.multiply(x, ops.subtract(1.0, x))),
)


@functools.cache
def _polygamma(n: int) -> Operation:
    def rule(d: Any, y: Any, x: Any) -> Any:
        return ops.multiply(d, _polygamma(n + 1)(x))

    if n == 0:
        return _from_scipy("digamma", rule)
    return _from_scipy(f"polygamma{n}", rule, scipy="polygamma", first=(n,))


_gammaln = _from_scipy("gammaln", lambda d, y, x: ops.multiply(d, _polygamma(0)(x)))
_gamma = _from_scipy("gamma", lambda d, y, x: ops.multiply(d, ops.multiply(y, _polygamma(0)(x))))


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)  # of orders 2, 4, ..., 16


@functools.cache
def _polygamma_difference(n: int) -> Operation:
    """polygamma(n, a) - polygamma(n, a + b), with polygamma(0, x) = digamma(x), accurate where b is small against a.

    By recurrence to a large argument and the asymptotic series there (DLMF 5.15.5, 5.15.8), with the difference taken
    term by term.
    """

    def value(a: Any, b: Any) -> Any:
        def difference(z: Any, p: int) -> Any:
            """z**-p - (z + b)**-p"""
            return -np.expm1(-p * np.log1p(b / z)) * z**-p

        a, b = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float))
        sign, steps = (-1.0) ** n, 12 + 2 * n
        far, whole = a + steps, math.factorial(n)
        first = np.log1p(b / far) if n == 0 else math.factorial(n - 1) * difference(far, n)
        found = first + 0.5 * whole * difference(far, n + 1)
        for j, number in enumerate(_BERNOULLI, 1):
            found = found + number * math.factorial(2 * j + n - 1) / math.factorial(2 * j) * difference(far, 2 * j + n)
        near = sum(difference(a + k, n + 1) for k in range(steps))
        direct = _polygamma(n).array(a) - _polygamma(n).array(a + b)  # type: ignore[misc]  # there is one, as was asked before
        return np.where((a > 0.0) & (a + b > 0.0), -sign * (found + whole * near), direct)

    return _elementwise(
        f"polygamma_gap{n}",
        value,
        lambda d, y, a, b: ops.multiply(d, _polygamma_difference(n + 1)(a, b)),
        lambda d, y, a, b: ops.negative(ops.multiply(d, _polygamma(n + 1)(ops.add(a, b)))),
    )


_betaln = _from_scipy(
    "betaln",
    lambda d, y, a, b: ops.multiply(d, _polygamma_difference(0)(a, b)),
    lambda d, y, a, b: ops.multiply(d, _polygamma_difference(0)(b, a)),
)
_beta = _from_scipy(
    "beta",
    lambda d, y, a, b: ops.multiply(d, ops.multiply(y, _polygamma_difference(0)(a, b))),
    lambda d, y, a, b: ops.multiply(d, ops.multiply(y, _polygamma_difference(0)(b, a))),
)


def _bell(factor: float, x: Any, scale: float = 1.0) -> Any:
    """factor * exp(-scale * x**2)"""
    return ops.multiply(factor, ops.exp(ops.multiply(-scale, ops.multiply(x, x))))


_erf = _from_scipy("erf", lambda d, y, x: ops.multiply(d, _bell(2.0 / ROOT_PI, x)))
_erfc = _from_scipy("erfc", lambda d, y, x: ops.negative(ops.multiply(d, _bell(2.0 / ROOT_PI, x))))


@functools.cache
def _erfcx(n: int) -> Operation:
    """The n-th derivative of erfcx.

    For negative x by recurrence (DLMF 7.18.7), whose terms have one sign there. For positive x they cancel; there by
    quadrature of the integral of (-2 t)**n exp(-t**2 - 2 x t) over t from 0, whose integrand has one sign.
    """

    def value(x: Any) -> Any:
        x = np.asarray(x, float)
        return np.where(x > 0.0, right(np.clip(x, 0.0, 1e300)), left(np.minimum(x, 0.0)))

    def left(x: Any) -> Any:
        below, found = _scipy("erfcx")(x), 2.0 * x * _scipy("erfcx")(x) - 2.0 / ROOT_PI
        for k in range(1, n):
            below, found = found, 2.0 * x * found + 2.0 * k * below
        return found

    def right(x: Any) -> Any:
        reach = 45.0 + 3.0 * n  # the size of the exponent at which the integral is cut off
        places, weights = np.polynomial.legendre.leggauss(32 + int(reach) // 2)
        end = reach / (x + np.hypot(x, math.sqrt(reach)))
        t = end[..., None] * (0.5 + 0.5 * places)
        heights = t**n * np.exp(-t * (t + 2.0 * x[..., None]))
        return (-2.0) ** n / ROOT_PI * end * np.sum(weights * heights, axis=-1)

    def rule(d: Any, y: Any, x: Any) -> Any:
        return ops.multiply(d, _erfcx(n + 1)(x))

    return _from_scipy("erfcx", rule) if n == 0 else _elementwise(f"erfcx{n}", value, rule)


_erfinv = _from_scipy("erfinv", lambda d, y, x: ops.multiply(d, _bell(ROOT_PI / 2.0, y, -1.0)))
_erfcinv = _from_scipy("erfcinv", lambda d, y, x: ops.negative(ops.multiply(d, _bell(ROOT_PI / 2.0, y, -1.0))))
_ndtr = _from_scipy("ndtr", lambda d, y, x: ops.multiply(d, _bell(1.0 / ROOT_2PI, x, 0.5)))
_ndtri = _from_scipy("ndtri", lambda d, y, x: ops.multiply(d, _bell(ROOT_2PI, y, -0.5)))


def _log_ndtr_slope(y: Any, x: Any) -> Any:
    """The density divided by the distribution function. For negative x both are small, and erfcx has their ratio."""
    left = ops.less(x, 0.0)
    scaled = _erfcx(0)(ops.multiply(-math.sqrt(0.5), ops.where(left, x, 0.0)))
    density = ops.exp(ops.negative(ops.add(ops.multiply(0.5, ops.multiply(x, x)), y)))
    return ops.where(left, ops.divide(2.0 / ROOT_2PI, scaled), ops.multiply(1.0 / ROOT_2PI, density))


_log_ndtr = _from_scipy("log_ndtr", lambda d, y, x: ops.multiply(d, _log_ndtr_slope(y, x)))


def _bessel(
    family: str, of_order: str, known: dict[float, str], up: float, down: float
) -> Callable[[float], Operation]:
    """Bessel functions of constant order: f_n' = down * f_(n-1) + up * f_(n+1)."""

    @functools.cache
    def make(n: float) -> Operation:
        def rule(d: Any, y: Any, x: Any) -> Any:
            below, above = ops.multiply(down, make(n - 1)(x)), ops.multiply(up, make(n + 1)(x))
            return ops.multiply(d, ops.add(below, above))

        if n in known:
            return _from_scipy(known[n], rule)
        return _from_scipy(f"{family}{n}", rule, scipy=of_order, first=(n,))

    return make


_iv = _bessel("i", "iv", {0: "i0", 1: "i1"}, 0.5, 0.5)
_jn = _bessel("j", "jv", {0: "j0", 1: "j1"}, -0.5, 0.5)
_kn = _bessel("k", "kv", {0: "k0", 1: "k1"}, -0.5, -0.5)
_yn = _bessel("y", "yv", {0: "y0", 1: "y1"}, -0.5, 0.5)


def xlogy(x: Any, y: Any) -> Any:
    """x * log(y), and 0 where x is 0, whatever y.

    >>> xlogy(0.0, 0.0), xlogy(2.0, 1.0)
    (0.0, 0.0)
    """
    return lift(_xlogy, (x, y))


def xlog1py(x: Any, y: Any) -> Any:
    """x * log(1 + y), and 0 where x is 0.

    >>> xlog1py(0.0, -1.0)
    0.0
    """
    return lift(_xlog1py, (x, y))


def entr(x: Any) -> Any:
    """The entropy of one outcome, -x * log(x); 0 at 0, -inf below.

    >>> entr(0.0), entr(1.0)
    (0.0, -0.0)
    """
    return lift(_entr, (x,))


def rel_entr(x: Any, y: Any) -> Any:
    """The relative entropy of one outcome, x * log(x / y); 0 where x is 0, infinite outside of the domain.

    >>> rel_entr(0.0, 1.0), rel_entr(1.0, 0.0)
    (0.0, inf)
    """
    return lift(_rel_entr, (x, y))


def kl_div(x: Any, y: Any) -> Any:
    """rel_entr(x, y) - x + y.

    >>> kl_div(1.0, 1.0)
    0.0
    """
    return lift(ops.add, (lift(ops.subtract, (rel_entr(x, y), x)), y))


def expit(x: Any) -> Any:
    """1 / (1 + exp(-x)), to full precision on both sides.

    >>> expit(0.0), expit(-1000.0)
    (0.5, 0.0)
    """
    return lift(ops.sigmoid, (x,))


sigmoid = expit


def log_expit(x: Any) -> Any:
    """log(expit(x)), without underflow.

    >>> log_expit(-1000.0)
    -1000.0
    """
    return lift(ops.negative, (softplus(lift(ops.negative, (x,))),))


def softplus(x: Any) -> Any:
    """log(1 + exp(x)), without overflow.

    >>> softplus(1000.0)
    1000.0
    """
    return lift(ops.log_add, (0.0, x))


def logit(x: Any) -> Any:
    """log(x / (1 - x)), the inverse of expit.

    >>> logit(0.5), logit(1.0)
    (0.0, inf)
    """
    return lift(_logit, (x,))


def gamma(x: Any) -> Any:
    """The gamma function (scipy)."""
    return lift(_gamma, (x,))


def gammaln(x: Any) -> Any:
    """The log of the size of the gamma function (scipy); its derivative is `digamma`."""
    return lift(_gammaln, (x,))


def digamma(x: Any) -> Any:
    """The logarithmic derivative of the gamma function (scipy); its derivative is `polygamma(1, x)`."""
    return lift(_polygamma(0), (x,))


def polygamma(n: int, x: Any) -> Any:
    """The n-th derivative of `digamma` (scipy); n is a constant."""
    return lift(_polygamma(_whole_order("polygamma", n)), (x,))


def beta(a: Any, b: Any) -> Any:
    """The beta function (scipy)."""
    return lift(_beta, (a, b))


def betaln(a: Any, b: Any) -> Any:
    """The log of the size of the beta function (scipy)."""
    return lift(_betaln, (a, b))


def erf(x: Any) -> Any:
    """The error function (scipy)."""
    return lift(_erf, (x,))


def erfc(x: Any) -> Any:
    """1 - erf(x) (scipy)."""
    return lift(_erfc, (x,))


def erfcx(x: Any) -> Any:
    """exp(x**2) * erfc(x) (scipy)."""
    return lift(_erfcx(0), (x,))


def erfinv(x: Any) -> Any:
    """The inverse of erf (scipy)."""
    return lift(_erfinv, (x,))


def erfcinv(x: Any) -> Any:
    """The inverse of erfc (scipy)."""
    return lift(_erfcinv, (x,))


def ndtr(x: Any) -> Any:
    """The standard normal distribution function (scipy)."""
    return lift(_ndtr, (x,))


def ndtri(x: Any) -> Any:
    """The inverse of ndtr (scipy)."""
    return lift(_ndtri, (x,))


def log_ndtr(x: Any) -> Any:
    """log(ndtr(x)), without underflow (scipy)."""
    return lift(_log_ndtr, (x,))


def i0(x: Any) -> Any:
    """The modified Bessel function of the first kind, of order 0 (scipy)."""
    return lift(_iv(0), (x,))


def i1(x: Any) -> Any:
    """The modified Bessel function of the first kind, of order 1 (scipy)."""
    return lift(_iv(1), (x,))


def iv(n: float, x: Any) -> Any:
    """The modified Bessel function of the first kind, of constant order n (scipy)."""
    return lift(_iv(_order("iv", n)), (x,))


def j0(x: Any) -> Any:
    """The Bessel function of the first kind, of order 0 (scipy)."""
    return lift(_jn(0), (x,))


def j1(x: Any) -> Any:
    """The Bessel function of the first kind, of order 1 (scipy)."""
    return lift(_jn(1), (x,))


def jn(n: float, x: Any) -> Any:
    """The Bessel function of the first kind, of constant order n (scipy)."""
    return lift(_jn(_order("jn", n)), (x,))


def k0(x: Any) -> Any:
    """The modified Bessel function of the second kind, of order 0 (scipy)."""
    return lift(_kn(0), (x,))


def k1(x: Any) -> Any:
    """The modified Bessel function of the second kind, of order 1 (scipy)."""
    return lift(_kn(1), (x,))


def kn(n: float, x: Any) -> Any:
    """The modified Bessel function of the second kind, of constant order n (scipy)."""
    return lift(_kn(_order("kn", n)), (x,))


def y0(x: Any) -> Any:
    """The Bessel function of the second kind, of order 0 (scipy)."""
    return lift(_yn(0), (x,))


def y1(x: Any) -> Any:
    """The Bessel function of the second kind, of order 1 (scipy)."""
    return lift(_yn(1), (x,))


def yn(n: float, x: Any) -> Any:
    """The Bessel function of the second kind, of constant order n (scipy)."""
    return lift(_yn(_order("yn", n)), (x,))


def _order(name: str, n: Any) -> float:
    value = as_number(n)
    if value is None or not math.isfinite(value):
        raise Error(f"dg.special.{name}: the order should be a constant number, and is {shown(n)}")
    return int(value) if value == int(value) else value


def _whole_order(name: str, n: Any) -> int:
    value = _order(name, n)
    if value != int(value) or value < 0:
        raise Error(f"dg.special.{name}: the order should be a whole number, 0 or larger, and is {value!r}")
    return int(value)


def __dir__() -> list[str]:
    """The public names, for completion."""
    return list(__all__)


UFUNCS: dict[str, Callable[..., Any]] = {
    name: globals()[name]
    for name in __all__
    if name not in ("logsumexp", "softmax", "log_softmax", "sigmoid", "softplus")
} | {"psi": digamma, "jv": jn, "kv": kn, "yv": yn}
"""The functions here by the names of scipy's ufuncs."""
OF_SCIPY.update(UFUNCS)
