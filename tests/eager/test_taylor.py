"""Power series: coefficients of every operation, derivatives of high order, series nested with other numbers.

Costs a few seconds.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynagrad as dg
from dynagrad.eager import numbers
from dynagrad.eager.closures import tangent
from dynagrad.eager.kinds import fresh
from dynagrad.eager.numbers import Bundle, lift
from dynagrad.eager.perturbations import opened
from dynagrad.eager.taylor import Series, coefficients, derivative_n, make
from dynagrad.ir.operation import Operation, apply
from dynagrad.ir.ops import determinants, matrices
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.ops.arrays import concatenate, einsum, matmul, sort, stack, sum_to
from dynagrad.ir.ops.reductions import extreme, product
from dynagrad.ir.ops.scalars import TABLE
from dynagrad.ir.ops.series import multilinear
from dynagrad.ir.types import real

mp = mpmath.mp.clone()
mp.dps = 50

ANY, POSITIVE, SMALL = (-3.0, 3.0), (0.2, 4.0), (-0.8, 0.8)
MEANING = {
    "add": (lambda a, b: a + b, ANY, ANY),
    "subtract": (lambda a, b: a - b, ANY, ANY),
    "multiply": (lambda a, b: a * b, ANY, ANY),
    "divide": (lambda a, b: a / b, ANY, POSITIVE),
    "negative": (lambda a: -a, ANY),
    "power": (lambda a, b: a**b, POSITIVE, ANY),
    "exp": (mp.exp, ANY),
    "expm1": (mp.expm1, ANY),
    "log": (mp.log, POSITIVE),
    "log1p": (mp.log1p, SMALL),
    "sqrt": (mp.sqrt, POSITIVE),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), POSITIVE),
    "sin": (mp.sin, ANY),
    "cos": (mp.cos, ANY),
    "tanh": (mp.tanh, ANY),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), ANY),
    "log_add": (lambda a, b: mp.log(mp.exp(a) + mp.exp(b)), ANY, ANY),
    "absolute": (abs, POSITIVE),
    "minimum": (min, ANY, ANY),
    "maximum": (max, ANY, ANY),
    "tan": (mp.tan, (-1.2, 1.2)),
    "arcsin": (mp.asin, SMALL),
    "arccos": (mp.acos, SMALL),
    "arctan": (mp.atan, ANY),
    "arctan2": (mp.atan2, ANY, POSITIVE),
    "hypot": (mp.hypot, ANY, POSITIVE),
    "sinh": (mp.sinh, ANY),
    "cosh": (mp.cosh, ANY),
    "arcsinh": (mp.asinh, ANY),
    "arccosh": (mp.acosh, (1.3, 5.0)),
    "arctanh": (mp.atanh, SMALL),
    "square": (lambda x: x * x, ANY),
    "reciprocal": (lambda x: 1 / x, POSITIVE),
    "cbrt": (mp.cbrt, POSITIVE),
    "exp2": (lambda x: mp.mpf(2) ** x, ANY),
    "log2": (lambda x: mp.log(x, 2), POSITIVE),
    "log10": (mp.log10, POSITIVE),
}
REALS = [name for name, operation in TABLE.items() if operation.result is real and operation.tangent is not None]
ORDER = 12


def taylor(operation, lists, n=ORDER):
    """The coefficients of an operation on series."""
    tag = fresh()
    return coefficients(tag, apply(operation, *(make(tag, n, c) for c in lists)), n)


def exact(meaning, lists, n=ORDER):
    """The same with 50 digits."""
    polynomials = [[mp.mpf(c) for c in reversed(x)] for x in lists]
    return [float(c) for c in mp.taylor(lambda t: meaning(*(mp.polyval(p, t) for p in polynomials)), 0, n)]


def agree(found, expected, digits=1e-11):
    for k, (c, e) in enumerate(zip(found, expected, strict=True)):
        around = max(map(abs, expected[max(0, k - 1) : k + 2]))  # a coefficient may be small by cancellation
        assert c == pytest.approx(e, rel=digits, abs=digits * around), k


def at(name, seed):
    """Random series in the domain of an operation."""
    rng = np.random.default_rng([seed, *name.encode()])
    domains = MEANING[name][1:] if name in MEANING else [SMALL] * len(TABLE[name].arguments)
    return [[float(rng.uniform(*domain)), *rng.uniform(-1.0, 1.0, 3).tolist()] for domain in domains]


# -- operations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in REALS if name in MEANING])
def test_coefficients_are_those_of_fifty_digits(name):
    for seed in range(3):
        lists = at(name, seed)
        agree(taylor(TABLE[name], lists), exact(MEANING[name][0], lists))


@pytest.mark.parametrize("name", [name for name in MEANING if len(MEANING[name]) == 3])
def test_one_argument_may_be_constant(name):
    for place in (0, 1):
        lists = at(name, 7)
        lists[place] = lists[place][:1]
        agree(taylor(TABLE[name], lists), exact(MEANING[name][0], lists))


@pytest.mark.parametrize("name", REALS)
def test_the_tangent_gives_the_same_as_a_rule_for_series(name):
    operation = TABLE[name]
    if name == "where":
        return
    lists = at(name, 11)

    def along(k):
        """The k-th derivative along the series, by nested tangents."""

        def function(t):
            arguments = [c[0] + t * (c[1] + t * (c[2] + t * c[3])) for c in lists]
            return apply(operation, *arguments)

        for _ in range(k):
            function = dg.derivative(function)
        return function(0.0)

    found = taylor(operation, lists, 4)
    agree([c * math.factorial(k) for k, c in enumerate(found)], [along(k) for k in range(5)], 1e-10)


def test_where_follows_the_branch_taken_and_ignores_an_infinite_one():
    assert taylor(ops.where, [[True], [1.0, 2.0], [3.0, math.inf]], 2) == [1.0, 2.0, 0.0]
    assert taylor(ops.where, [[False], [1.0, 2.0], [3.0]], 2) == [3.0, 0.0, 0.0]
    assert dg.derivative(lambda x: ops.where(x > 0.0, ops.sqrt(x), x * x), 2)(-0.0) == 2.0
    [_, slope, bend] = taylor(ops.where, [[np.array([True, False])], [1.0, 2.0, 9.0], [np.zeros(2)]], 2)
    assert slope.tolist() == [2.0, 0.0] and bend.tolist() == [9.0, 0.0]


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "tanh", "log_add", "power", "divide", "hypot", "add"])
def test_arrays_are_series_of_their_elements(name):
    rng = np.random.default_rng(3)
    operation, count = TABLE[name], len(TABLE[name].arguments)
    lists = [[rng.uniform(0.3, 2.0, (2, 3)), rng.uniform(-1.0, 1.0, (2, 3))], [0.7, 0.4, -0.2]][:count]
    found = taylor(operation, lists, 5)
    for i, j in np.ndindex(2, 3):
        single = taylor(operation, [[float(c[i, j]) if np.shape(c) else c for c in x] for x in lists], 5)
        np.testing.assert_allclose([c[i, j] for c in found], single, rtol=1e-13, atol=1e-15)


def test_an_array_and_a_series_of_single_reals_broadcast():
    found = dg.derivative(lambda x: ops.exp(x * np.array([1.0, 2.0])), 3)(0.5)
    np.testing.assert_allclose(found, [math.exp(0.5), 8.0 * math.e], rtol=1e-14)
    assert dg.derivative(lambda x: sum_to(())(ops.exp(x * np.array([1.0, 2.0]))), 3)(0.0) == pytest.approx(9.0)


def test_products_of_whole_arrays_have_a_rule_that_is_not_exponential():
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(3, 2, 2)), rng.normal(size=(2, 2, 2))
    found = taylor(matmul, [list(a), list(b)], 4)
    expected = [a[0] @ b[0], a[1] @ b[0] + a[0] @ b[1], a[2] @ b[0] + a[1] @ b[1], a[2] @ b[1], np.zeros((2, 2))]
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)
    found = taylor(einsum(("ij", "jk", "k"), "i"), [list(a), list(b), [np.ones(2)]], 4)
    np.testing.assert_allclose(found, np.sum(expected, -1), rtol=1e-14, atol=1e-14)
    assert all(series is not None for series in (matmul.series, einsum(("i", "i"), "").series))


def test_operations_on_whole_arrays_follow_their_tangents():
    x = 0.8
    powers = [1.0, 2.0, 3.0]

    def array(x):
        return stack(0, 3)(*[x**p * 2.0 for p in powers])  # 2 x, 2 x**2, 2 x**3

    third = np.array([0.0, 0.0, 12.0])
    np.testing.assert_allclose(dg.derivative(array, 3)(x), third, atol=1e-12)
    np.testing.assert_allclose(dg.derivative(lambda x: concatenate(0, 2)(array(x), array(x)), 3)(x), [*third] * 2)
    assert dg.derivative(lambda x: product((0,))(array(x)), 3)(x) == pytest.approx(8.0 * 120.0 * x**3)
    assert dg.derivative(lambda x: extreme(False, (0,))(array(x)), 3)(x) == pytest.approx(12.0)
    np.testing.assert_allclose(dg.derivative(lambda x: sort(0)(array(x)), 3)(x), third[::-1], atol=1e-12)


def test_a_product_of_three_factors():
    triple = Operation("triple", (real,) * 3, real, lambda a, b, c: a * b * c, None, "")
    rule = multilinear(triple)
    a, b, c = [1.0, 2.0], [3.0, 5.0, 7.0], [11.0, 13.0]
    expected = np.polymul(np.polymul(a[::-1], b[::-1]), c[::-1])[::-1]
    assert rule(9, 33.0, a, b, c) == expected.tolist()
    assert rule(2, 33.0, a, b, c) == expected[:3].tolist()


# -- at the edges ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exponent", "n", "expected"),
    [
        (0.0, 2, 0.0),
        (1.0, 2, 0.0),
        (2.0, 2, 2.0),
        (3.0, 2, 0.0),
        (3.0, 3, 6.0),
        (2.5, 2, 0.0),
        (2.5, 3, math.inf),
        (100.0, 2, 0.0),
    ],
)
def test_powers_of_zero(exponent, n, expected):
    assert dg.derivative(lambda x: x**exponent, n)(0.0) == expected


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sqrt(x**4),
        lambda x: np.sqrt(x**3),
        lambda x: np.arccos(1.0 - x**4),
        lambda x: (x**6) ** (1 / 3),
        lambda x: np.cbrt(x**6),
        lambda x: np.sqrt(abs(x)),
        lambda x: np.sqrt(0.0 * x),
    ],
)
def test_a_coefficient_that_happens_to_be_zero_is_not_nothing(f):
    for derived in (dg.derivative(f, 2), dg.derivative(dg.derivative(f)), dg.grad(dg.grad(f))):
        with pytest.raises(dg.NotDifferentiable):
            derived(0.0)


@pytest.mark.parametrize("choose", [np.maximum, np.minimum, np.fmax, np.fmin])
def test_what_is_not_chosen_is_nothing(choose):
    sign = 1.0 if choose in (np.maximum, np.fmax) else -1.0
    assert dg.derivative(lambda x: np.sqrt(sign * choose(sign * x, 0.0)), 2)(-1.0) == 0.0
    assert dg.derivative(lambda x: np.sqrt(sign * choose(sign * x, 0.0)), 2)(4.0) == -1.0 / 32.0
    found = dg.derivative(lambda x: choose(x * np.array([1.0, -1.0]), 0.5 * x * x), 2)(1.0)
    assert found.tolist() == ([0.0, 1.0] if sign > 0 else [1.0, 0.0])


@pytest.mark.parametrize("family", ["jn", "iv", "kn", "yn"])
def test_bessel_functions_take_time_polynomial_in_the_order(family):
    pytest.importorskip("scipy")
    f = getattr(dg.special, family)
    meaning = {"jn": mp.besselj, "iv": mp.besseli, "kn": mp.besselk, "yn": mp.bessely}[family]
    found, sign = dg.derivative(lambda x: f(0, x), 24)(1.5), -1 if family in ("jn", "yn") else 1
    with mp.workdps(40):  # DLMF 10.6.7, 10.29.5
        terms = [sign**k * mp.binomial(24, k) * meaning(2 * k - 24, mp.mpf(1.5)) for k in range(25)]
        assert found == pytest.approx(float(mp.fsum(terms) / 2**24), rel=1e-12)


@pytest.mark.parametrize("mode", [dg.grad, dg.derivative])
@pytest.mark.parametrize("other", [dg.grad, dg.derivative])
def test_mixed_derivatives_of_powers_of_zero(mode, other):
    for y, expected in ((1.0, -math.inf), (1.5, 0.0), (2.0, 0.0), (0.0, 0.0)):
        assert mode(lambda x, y=y: other(lambda y: x**y)(y))(0.0) == expected
        assert mode(lambda y: other(lambda x: x**y)(0.0))(y) == expected
    with pytest.raises(dg.NotDifferentiable):  # infinity less infinity
        mode(lambda y: other(lambda x: x**y)(0.0))(0.5)
    assert mode(lambda x: other(lambda y: x**y)(3.0))(2.0) == pytest.approx(4.0 + 12.0 * math.log(2.0))


def test_a_power_of_zero_with_an_exponent_that_varies_has_derivatives_up_to_its_order():
    assert dg.derivative(lambda x: x ** (x + 5.0), 4)(0.0) == 0.0
    assert dg.derivative(lambda x: (3.0 * x) ** (x + 5.0), 5)(0.0) == pytest.approx(3.0**5 * 120.0)
    assert dg.derivative(lambda x: 0.0 ** (x + 1.0), 20)(0.0) == 0.0
    assert dg.derivative(lambda x: x ** (x + 20.0), 20)(0.0) == pytest.approx(math.factorial(20))
    for n in (2, 20):
        with pytest.raises(dg.NotDifferentiable):
            dg.derivative(lambda x: x ** (x + 1.5), n)(0.0)
    bases = lambda x: (x * np.array([1.0, 1.0]) + np.array([0.0, 2.0])) ** (x + 3.0)  # noqa: E731
    found = dg.derivative(bases, 3)(0.0)
    assert found == pytest.approx([6.0, float(mp.diff(lambda x: (x + 2) ** (x + 3), 0, 3))])


def test_a_power_that_underflows_does_not_lose_its_derivatives():
    assert dg.derivative(lambda x: x**3.0, 2)(1e-200) == pytest.approx(6e-200, rel=1e-14)
    assert dg.derivative(lambda x: x**100.0, 99)(1e-9) == pytest.approx(math.factorial(100) * 1e-9, rel=1e-13)
    assert dg.derivative(lambda x: x**2.5, 2)(1e-150) == pytest.approx(3.75 * 1e-75, rel=1e-13)


def test_powers_of_negative_bases_and_whole_powers_of_arrays():
    assert dg.derivative(lambda x: x**5.0, 3)(-2.0) == 240.0
    assert dg.derivative(lambda x: x**-1.0, 2)(-2.0) == pytest.approx(-0.25)
    found = dg.derivative(lambda x: (x * np.array([0.0, 1.0])) ** np.array([2.0, 3.0]), 2)(1.0)
    assert found.tolist() == [0.0, 6.0]


def test_zero_to_the_power_of_itself_in_every_mode():
    def f(x):
        return x**x

    for n in (1, 2, 3):
        assert dg.derivative(f, n)(0.0) == 0.0
        for verb in (dg.grad, dg.derivative):
            derived = f
            for _ in range(n):
                derived = verb(derived)
            assert derived(0.0) == 0.0
    assert dg.derivative(lambda x: x ** (2.0 * x + 3.0), 2)(0.0) == dg.grad(dg.grad(lambda x: x ** (2.0 * x + 3.0)))(
        0.0
    )


def test_zero_to_a_power_that_varies():
    assert dg.derivative(lambda x: 0.0**x, 2)(1.5) == 0.0


def test_where_the_chain_rule_has_no_answer_is_an_error():
    with pytest.raises(dg.NotDifferentiable, match="no answer"):
        dg.derivative(lambda x: ops.sqrt(x) ** 2.0, 2)(0.0)
    assert dg.derivative(ops.sqrt, 2)(0.0) == -math.inf


def test_conventions_at_kinks_are_those_of_first_derivatives():
    assert dg.derivative(ops.absolute, 2)(0.0) == 0.0
    assert taylor(ops.maximum, [[1.0, 2.0], [1.0, 5.0]], 1) == [1.0, 2.0]
    assert taylor(ops.minimum, [[1.0, 2.0], [1.0, 5.0]], 1) == [1.0, 2.0]


def test_steps_have_no_derivatives_and_comparisons_look_at_values():
    assert dg.derivative(lambda x: ops.sign(x) * x * x, 2)(-3.0) == -2.0
    assert dg.derivative(lambda x: x * x if x > 1.0 else x, 2)(3.0) == 2.0


def test_tanh_and_sigmoid_keep_their_precision_where_they_are_flat():
    for x in (9.0, 18.0, -18.0):
        for n in (2, 5):
            expected = mp.diff(mp.tanh, mp.mpf(x), n)
            assert dg.derivative(ops.tanh, n)(x) == pytest.approx(float(expected), rel=1e-12)
            expected = mp.diff(MEANING["sigmoid"][0], mp.mpf(x), n)
            assert dg.derivative(ops.sigmoid, n)(x) == pytest.approx(float(expected), rel=1e-12)


def test_where_results_are_functions_derivatives_of_derivatives_are_taken():
    h = dg.derivative(lambda x: lambda g: lambda y: g(x + y), 2)(3.0)
    assert h(lambda z: ops.exp(2.0 * z))(1.0) == pytest.approx(4.0 * math.exp(8.0), rel=1e-12)
    assert h(h(lambda z: ops.exp(2.0 * z)))(1.0) == pytest.approx(16.0 * math.exp(14.0), rel=1e-12)


def test_an_operation_without_a_derivative_is_an_error():
    bare = Operation("bare", (real,), real, lambda x: x, None, "")
    with pytest.raises(dg.NotDifferentiable, match="bare"):
        derivative_n(bare, 1.0, 3)


# -- the derivative ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 40, 170, 400])
def test_high_orders_are_accurate(n):
    assert dg.derivative(ops.exp, n)(1.3) == pytest.approx(math.exp(1.3), rel=1e-14)
    assert dg.derivative(ops.sin, 4 * n)(0.4) == pytest.approx(math.sin(0.4), rel=1e-12)


def test_order_forty_of_a_composition():
    expected = mp.diff(lambda x: mp.exp(mp.sin(x)) / (2 + x), mp.mpf("0.3"), 40)
    found = dg.derivative(lambda x: ops.exp(ops.sin(x)) / (2.0 + x), 40)(0.3)
    assert found == pytest.approx(float(expected), rel=1e-11)


def test_structures_constants_and_polynomials():
    found = dg.derivative(lambda x: {"a": x**3.0, "b": (x, 5.0, [x * x]), "name": "f"}, 2)(2.0)
    assert found == {"a": 12.0, "b": (0.0, 0.0, [2.0]), "name": "f"}
    assert dg.derivative(lambda x: 7.0, 3)(1.0) == 0.0


def counted(monkeypatch, f, n):
    """How many operations on numbers inside the coefficients a derivative takes."""
    count = 0

    def one(operation, tag, arguments):
        nonlocal count
        count += 1
        return lift_bundle(operation, tag, arguments)

    lift_bundle = numbers.LIFTS[Bundle]
    with monkeypatch.context() as patch:
        patch.setitem(numbers.LIFTS, Bundle, one)
        tag = fresh()
        with opened(tag):
            derivative_n(f, Bundle(tag, 0.6, 1.0), n)
    return count


@pytest.mark.parametrize("name", [name for name in REALS if name not in ("where", "arccosh")])
def test_time_is_polynomial_in_the_order(name, monkeypatch):
    operation = TABLE[name]

    def f(x):
        inner = ops.sin(x) * 0.5 + 0.1  # no polynomial, which some operations would be faster on
        return apply(operation, *[inner, x][: len(operation.arguments)])

    short, long = counted(monkeypatch, f, 8), counted(monkeypatch, f, 16)
    assert long <= (5.0 if operation.series else 9.0) * short


def test_a_composition_takes_quadratic_time(monkeypatch):
    def f(x):
        y = ops.tanh(ops.sin(x) * 2.0)
        return ops.exp(y / (2.0 + y * y)) ** 0.3

    assert counted(monkeypatch, f, 32) <= 4.5 * counted(monkeypatch, f, 16)


# -- nested ------------------------------------------------------------------------------------------------------------


def unary(name, change=lambda x: x):
    return lambda x: apply(TABLE[name], change(x))


STEPS = st.sampled_from(
    [
        unary("sin"),
        unary("tanh"),
        unary("sigmoid"),
        unary("exp", ops.sin),
        unary("sqrt", lambda x: 1.0 + x * x),
        unary("log", lambda x: 1.5 + ops.cos(x)),
        lambda x: x * x,
        lambda x: x / (2.0 + ops.sin(x)),
        lambda x: (2.0 + ops.cos(x)) ** x,
        lambda x: ops.maximum(x, 0.3) - x * 0.5,
        unary("arctan"),
        lambda x: ops.log_add(x, 0.2),
    ]
)


@settings(max_examples=30, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=3), st.floats(-1.5, 1.5), st.integers(2, 4))
def test_equals_nested_first_derivatives(steps, x, n):
    def f(x):
        y = x
        for step in steps:
            y = step(y) + 0.1 * x
        return y

    nested, sizes = f, []
    for _ in range(n):
        nested = dg.derivative(nested)
        sizes.append(abs(nested(x)))
    assert dg.derivative(f, n)(x) == pytest.approx(nested(x), rel=1e-9, abs=1e-9 * (1.0 + max(sizes)))


def test_a_power_whose_exponent_passes_zero():
    def f(x):
        return (2.0 + ops.cos(x)) ** x

    expected = float(mp.diff(lambda x: (2 + mp.cos(x)) ** x, 0, 3))
    assert dg.derivative(f, 3)(0.0) == pytest.approx(expected)
    assert dg.derivative(dg.derivative(dg.derivative(f)))(0.0) == pytest.approx(expected)


def cube(x):
    return ops.sin(x) * x * x


def exact_derivative(f, x, n):
    return float(mp.diff(f, mp.mpf(x), n))


EXACT = [exact_derivative(lambda x: mp.sin(x) * x * x, 0.7, n) for n in range(8)]


def test_a_derivative_of_one_of_high_order_and_the_other_way_round():
    assert dg.derivative(dg.derivative(cube, 3))(0.7) == pytest.approx(EXACT[4])
    assert dg.derivative(dg.derivative(cube), 3)(0.7) == pytest.approx(EXACT[4])
    assert dg.derivative(dg.derivative(cube, 2), 3)(0.7) == pytest.approx(EXACT[5])
    assert dg.grad(dg.derivative(cube, 3))(0.7) == pytest.approx(EXACT[4])
    assert dg.derivative(dg.grad(cube), 3)(0.7) == pytest.approx(EXACT[4])
    assert dg.grad(dg.grad(dg.derivative(cube, 2)))(0.7) == pytest.approx(EXACT[4])
    assert dg.derivative(dg.grad(dg.grad(dg.derivative(dg.grad(cube), 2))), 2)(0.7) == pytest.approx(EXACT[7])
    assert dg.jvp(dg.derivative(cube, 2), (0.7,), (10.0,))[1] == pytest.approx(10.0 * EXACT[3])


@pytest.mark.parametrize("outer", [dg.derivative, dg.grad, lambda f: dg.derivative(f, 2)])
@pytest.mark.parametrize("inner", [dg.derivative, dg.grad, lambda f: dg.derivative(f, 2)])
def test_perturbations_are_not_confused(outer, inner):
    # The inner derivative of x y**2 knows nothing of x; d/dx x (d/dy x y**2) at y = 1.
    found = outer(lambda x: x * inner(lambda y: x * y * y)(1.0))(3.0)
    assert found == pytest.approx(4.0 if outer not in (dg.derivative, dg.grad) else 12.0)


def test_with_respect_to_what_a_closure_holds():
    def f(a, x):
        return dg.derivative(lambda t: ops.exp(a * t), 5)(x)

    expected = 5 * 1.1**4 * math.exp(1.1 * 0.3) + 1.1**5 * 0.3 * math.exp(1.1 * 0.3)
    assert dg.grad(f)(1.1, 0.3) == pytest.approx(expected)
    assert dg.jvp(lambda a: f(a, 0.3), (1.1,), (1.0,))[1] == pytest.approx(expected)


def test_coefficients_are_found_beneath_a_younger_tangent():
    series, younger = fresh(), fresh()
    with opened(series, younger):
        y = ops.sin(make(series, 3, [0.5, 1.0]) * Bundle(younger, 2.0, 1.0))  # sin((x + t) b)
        found = tangent(younger, coefficients(series, y, 3)[2])
    # The coefficient is -b**2 sin(x b) / 2.
    assert found == pytest.approx(-2.0 * math.sin(1.0) - 0.5 * 2.0 * math.cos(1.0))


def test_coefficients_are_found_beneath_a_younger_series():
    series, younger = fresh(), fresh()
    y = make(series, 2, [2.0, 1.0]) * make(younger, 2, [3.0, 1.0])
    assert isinstance(y, Series) and y.tag == younger
    inner = coefficients(series, y, 2)
    assert [coefficients(younger, c, 2) for c in inner] == [[6.0, 2.0, 0.0], [3.0, 1.0, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("k", range(4))
def test_coefficients_are_found_beneath_the_cells_of_a_younger_reverse_pass(k):
    series, x = fresh(), 0.5
    number = make(series, 3, [x, 1.0])

    def coefficient(b):
        return coefficients(series, ops.sin(number * b) * (b + number), 3)[k]

    def expected(b):
        return mp.taylor(lambda t: mp.sin((x + t) * b) * (b + x + t), 0, 3)[k]

    first, second = float(mp.diff(expected, 2)), float(mp.diff(expected, 2, 2))
    with opened(series):
        assert dg.grad(coefficient)(2.0) == pytest.approx(first)
        for nested in (dg.grad(dg.grad(coefficient)), dg.derivative(dg.grad(coefficient))):
            # The pass is open around it, so the result may hold its tag; but nothing depends on that.
            assert coefficients(series, nested(2.0), 3) == pytest.approx([second, 0.0, 0.0, 0.0])
        assert dg.grad(dg.derivative(coefficient))(2.0) == pytest.approx(second)


def test_numbers_with_younger_tags_put_themselves_outside():
    series, younger = fresh(), fresh()
    made = make(series, 2, [1.0, Bundle(younger, 2.0, 3.0)])
    assert isinstance(made, Bundle) and made.tag == younger
    assert coefficients(series, made.tangent, 2) == [0.0, 3.0, 0.0]


def test_orders_of_one_tag_meet_at_the_lower_one():
    tag = fresh()
    product = lift(ops.multiply, (make(tag, 3, [1.0, 1.0, 1.0, 1.0]), make(tag, 2, [1.0, 1.0, 1.0])))
    assert product.order == 2 and product.coefficients == [1.0, 2.0, 3.0]


def test_a_series_that_escaped_is_an_error():
    kept = []
    dg.derivative(lambda x: kept.append(x) or x, 2)(1.0)
    with pytest.raises(dg.Error, match="escaped"):
        dg.derivative(lambda x: x * x * kept[0], 2)(1.0)


# -- linear algebra ----------------------------------------------------------------------------------------------------

MATRIX, CHANGE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]), np.diag([0.3, -0.2, 0.5]) + 0.1


def entries(x):
    """One real from a matrix or vector, with weights that no symmetry hides."""
    shape = np.shape(x)
    return sum_to(())(apply(ops.multiply, x, np.cos(np.arange(1.0, 1.0 + math.prod(shape))).reshape(shape)))


@pytest.mark.parametrize(
    "name",
    [
        "inverse",
        "determinant",
        "log_determinant",
        "cholesky",
        "eigenvalues",
        "eigenvectors",
        "qr_orthogonal",
        "qr_upper",
    ]
    + ["singular_values", "left_vectors", "right_vectors"],
)
def test_decompositions(name):
    operation = getattr(matrices, name, None) or getattr(determinants, name)

    def f(x):
        return entries(operation(MATRIX + (x * x + ops.sin(x)) * CHANGE))

    nested = dg.derivative(dg.derivative(dg.derivative(f)))(0.3)
    assert dg.derivative(f, 3)(0.3) == pytest.approx(nested, rel=1e-9)


def test_solving_a_system():
    def f(x):
        return entries(matrices.solve(MATRIX + x * CHANGE, ops.exp(x * MATRIX)))

    nested = dg.derivative(dg.derivative(dg.derivative(f)))(0.3)
    assert dg.derivative(f, 3)(0.3) == pytest.approx(nested, rel=1e-9)
    assert dg.derivative(lambda x: entries(matrices.solve(MATRIX, x * x * CHANGE)), 2)(0.3) == pytest.approx(
        2.0 * entries(np.linalg.solve(MATRIX, CHANGE))
    )


@pytest.mark.parametrize(
    "name", ["solve", "inverse", "determinant", "cholesky", "eigenvectors", "qr_orthogonal", "left_vectors"]
)
def test_time_of_linear_algebra_is_polynomial_in_the_order(name, monkeypatch):
    operation = getattr(matrices, name, None) or getattr(determinants, name)

    def f(x):
        a = MATRIX + ops.sin(x) * 0.1 * CHANGE
        return entries(operation(a, a) if name == "solve" else operation(a))

    short, long = counted(monkeypatch, f, 5), counted(monkeypatch, f, 10)
    assert long <= 20.0 * short  # order four at most
