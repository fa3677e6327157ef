"""Each operation against mpmath at 50 digits: its value, its tangent, and its adjoint as the transpose of that."""

from __future__ import annotations

import math

import mpmath
import pytest

from dynagrad.autodiff.derive import generate_adjoints, tangents
from dynagrad.errors import Error, NotDifferentiable
from dynagrad.ir import TABLE, Operation, boolean, declare, evaluate, real, variable
from dynagrad.ir.ops import scalars as ops

mp = mpmath.mp.clone() if hasattr(mpmath.mp, "clone") else mpmath.MPContext()
mp.dps = 50

# What each operation means, written down a second time.
MEANING = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "negative": lambda x: -x,
    "power": lambda a, b: a**b,
    "exp": mp.exp,
    "expm1": lambda x: mp.exp(x) - 1,
    "log": mp.log,
    "log1p": lambda x: mp.log(1 + x),
    "sqrt": mp.sqrt,
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "sin": mp.sin,
    "cos": mp.cos,
    "tanh": mp.tanh,
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "log_add": lambda a, b: mp.log(mp.exp(a) + mp.exp(b)),
    "absolute": abs,
    "sign": mp.sign,
    "minimum": min,
    "maximum": max,
    "tan": mp.tan,
    "arcsin": mp.asin,
    "arccos": mp.acos,
    "arctan": mp.atan,
    "arctan2": mp.atan2,
    "hypot": mp.hypot,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "arcsinh": mp.asinh,
    "arccosh": mp.acosh,
    "arctanh": mp.atanh,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "cbrt": lambda x: mp.sign(x) * mp.root(abs(x), 3),
    "exp2": lambda x: mp.mpf(2) ** x,
    "log2": lambda x: mp.log(x) / mp.log(2),
    "log10": lambda x: mp.log(x) / mp.log(10),
    "fminimum": min,
    "fmaximum": max,
    "copysign": lambda a, b: abs(a) * (1 if b >= 0 else -1),
    "floor": mp.floor,
    "ceil": mp.ceil,
    "trunc": lambda x: mp.floor(x) if x >= 0 else mp.ceil(x),
    "rint": mp.nint,
    "modulo": lambda a, b: a - b * mp.floor(a / b),
    "fmod": lambda a, b: a - b * (mp.floor(a / b) if a / b >= 0 else mp.ceil(a / b)),
}
# Steps, and what is a straight line on both sides of each step: their second derivatives are zero.
STRAIGHT = {"absolute", "sign", "minimum", "maximum", "fminimum", "fmaximum", "copysign", "floor", "ceil", "trunc"}
STRAIGHT |= {"rint", "modulo", "fmod"}
ANY = (-30.0, -2.5, -1.0, -0.3, -1e-9, 1e-12, 0.1, 0.75, 1.0, 3.0, 20.0)
POSITIVE = tuple(x for x in ANY if x > 0)
SMALL = (-0.9, -0.3, -1e-9, 1e-12, 0.1, 0.75)
BROKEN = (-30.25, -2.6, -0.3, 0.1, 0.75, 3.2, 20.4)  # between the steps
DOMAIN = {
    "log": [POSITIVE],
    "log2": [POSITIVE],
    "log10": [POSITIVE],
    "sqrt": [POSITIVE],
    "rsqrt": [POSITIVE],
    "power": [POSITIVE, ANY],
    "log1p": [(*SMALL, *POSITIVE)],
    "arcsin": [SMALL],
    "arccos": [SMALL],
    "arctanh": [SMALL],
    "arccosh": [(1.1, 1.75, 3.0, 20.0, 1e9)],
    "tan": [(-1.2, -0.3, 1e-9, 0.1, 0.75, 1.4)],
    "floor": [BROKEN],
    "ceil": [BROKEN],
    "trunc": [BROKEN],
    "rint": [BROKEN],
    "modulo": [BROKEN, (-2.5, 0.7, 3.0)],
    "fmod": [BROKEN, (-2.5, 0.7, 3.0)],
}
REALS = [name for name, operation in TABLE.items() if operation.result is real and name != "where"]


def points(name: str) -> list[tuple[float, ...]]:
    arity = len(TABLE[name].arguments)
    domains = DOMAIN.get(name, [ANY] * arity)
    if arity == 1:
        return [(x,) for x in domains[0]]
    return [(a, b) for a in domains[0] for b in domains[1] if a != b]


def slope(name: str, point: tuple[float, ...], index: int) -> mpmath.mpf:
    """The partial derivative, by central differences at 50 digits."""
    h = mp.mpf(10) ** -16 * (abs(mp.mpf(point[index])) if point[index] else 1)
    ends = [[mp.mpf(x) + (sign * h if i == index else 0) for i, x in enumerate(point)] for sign in (1, -1)]
    return (MEANING[name](*ends[0]) - MEANING[name](*ends[1])) / (2 * h)


def test_every_real_operation_has_a_meaning_here():
    assert set(MEANING) == set(REALS)


@pytest.mark.parametrize("name", REALS)
def test_value(name):
    for point in points(name):
        expected = MEANING[name](*map(mp.mpf, point))
        assert TABLE[name](*point) == pytest.approx(float(expected), rel=4e-16, abs=1e-300), point


@pytest.mark.parametrize("name", REALS)
def test_tangent_of_each_argument(name):
    operation = TABLE[name]
    for point in points(name):
        for index in range(len(point)):
            rule = operation.tangent[index]
            got = 0.0 if rule is None else rule(1.5, operation(*point), *point)
            expected = float(1.5 * slope(name, point, index))
            # 1 - tanh(x)**2 and the like lose digits where the function is flat, which is why there is an `abs`
            assert got == pytest.approx(expected, rel=5e-15, abs=5e-16), (point, index)


@pytest.mark.parametrize("name", REALS)
def test_second_derivatives_by_nesting(name):
    operation = TABLE[name]
    inputs = [variable(f"x{i}") for i in range(len(operation.arguments))]
    first = generate_adjoints([operation(*inputs)], [1.0], inputs)
    for i, outer in enumerate(inputs):
        if first[outer] is None:
            continue
        second = generate_adjoints([first[outer]], [1.0], inputs)
        for point in points(name)[::3]:
            for j, inner in enumerate(inputs):
                values = {f"x{k}": x for k, x in enumerate(point)}
                got = 0.0 if second[inner] is None else evaluate([second[inner]], values)[0]
                orders = tuple((i == k) + (j == k) for k in range(len(point)))
                if name in STRAIGHT:
                    expected = 0.0
                else:
                    expected = float(
                        mp.diff(
                            MEANING[name], tuple(map(mp.mpf, point)), orders, h=mp.mpf(10) ** -14 * min(map(abs, point))
                        )
                        if len(point) > 1
                        else mp.diff(MEANING[name], mp.mpf(point[0]), 2, h=mp.mpf(10) ** -14 * abs(point[0]))
                    )
                assert got == pytest.approx(expected, rel=1e-10, abs=1e-13), (point, i, j)


@pytest.mark.parametrize("name", REALS)
def test_adjoint_is_the_transpose_of_the_tangent(name):
    operation = TABLE[name]
    inputs = [variable(f"x{i}") for i in range(len(operation.arguments))]
    directions = {x: variable(f"d{i}") for i, x in enumerate(inputs)}
    output = operation(*inputs)
    (forward,) = tangents([output], directions)
    backward = generate_adjoints([output], [variable("delta")], inputs)
    for point in points(name):
        values = {f"x{i}": x for i, x in enumerate(point)} | {"d0": 0.7, "d1": -1.3, "delta": 2.1}
        pushed = 0.0 if forward is None else 2.1 * evaluate([forward], values)[0]
        pulled = [
            evaluate([a], values)[0] * d for a, d in zip(backward.values(), (0.7, -1.3), strict=False) if a is not None
        ]
        if math.isfinite(pushed):  # 1e-12 to the power of -30 is not
            assert pushed == pytest.approx(sum(pulled), abs=1e-13 * max(map(abs, pulled), default=0.0)), point


def test_where_takes_one_branch_and_its_tangent():
    assert ops.where(True, 1.0, math.nan) == 1.0
    assert ops.where(False, math.inf, 2.0) == 2.0
    condition, a, b = variable("c", boolean), variable("a"), variable("b")
    adjoints = generate_adjoints([ops.where(condition, a, b)], [3.0], [a, b])
    assert evaluate([adjoints[a], adjoints[b]], {"c": True}) == (3.0, 0.0)
    assert evaluate([adjoints[a], adjoints[b]], {"c": False}) == (0.0, 3.0)


@pytest.mark.parametrize(
    ("name", "a", "b", "result"),
    [
        ("less", 1.0, 1.0, False),
        ("less_equal", 1.0, 1.0, True),
        ("greater", 2.0, 1.0, True),
        ("greater_equal", math.nan, 1.0, False),
        ("equal", 0.0, -0.0, True),
        ("equal", math.nan, math.nan, False),
        ("not_equal", math.nan, math.nan, True),
        ("logical_and", True, False, False),
        ("logical_or", True, False, True),
    ],
)
def test_truth_values(name, a, b, result):
    assert TABLE[name](a, b) is result


def test_logical_not():
    assert ops.logical_not(False) is True


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("exp", (1e3,), math.inf),
        ("expm1", (1e3,), math.inf),
        ("log", (0.0,), -math.inf),
        ("log", (-1.0,), math.nan),
        ("log1p", (-1.0,), -math.inf),
        ("log1p", (-2.0,), math.nan),
        ("sqrt", (-1.0,), math.nan),
        ("rsqrt", (-1.0,), math.nan),
        ("rsqrt", (0.0,), math.inf),
        ("rsqrt", (math.inf,), 0.0),
        ("sin", (math.inf,), math.nan),
        ("cos", (-math.inf,), math.nan),
        ("divide", (1.0, 0.0), math.inf),
        ("divide", (-1.0, 0.0), -math.inf),
        ("divide", (0.0, 0.0), math.nan),
        ("power", (0.0, -1.0), math.inf),
        ("power", (-0.0, -1.0), -math.inf),
        ("power", (-2.0, 0.5), math.nan),
        ("power", (-10.0, 1001.0), -math.inf),
        ("power", (1e200, 2.0), math.inf),
        ("sigmoid", (-800.0,), 0.0),
        ("sigmoid", (800.0,), 1.0),
        ("tan", (math.inf,), math.nan),
        ("arcsin", (1.5,), math.nan),
        ("arccos", (-1.5,), math.nan),
        ("sinh", (-1e3,), -math.inf),
        ("cosh", (-1e3,), math.inf),
        ("arccosh", (0.5,), math.nan),
        ("arctanh", (-1.0,), -math.inf),
        ("arctanh", (1.5,), math.nan),
        ("reciprocal", (-0.0,), -math.inf),
        ("exp2", (2e3,), math.inf),
        ("log2", (0.0,), -math.inf),
        ("log10", (-1.0,), math.nan),
        ("arctan2", (0.0, 0.0), 0.0),
        ("hypot", (math.inf, math.nan), math.inf),
        ("floor", (-math.inf,), -math.inf),
        ("rint", (math.nan,), math.nan),
        ("modulo", (1.0, 0.0), math.nan),
        ("modulo", (-1.0, math.inf), math.inf),
        ("fmod", (math.inf, 1.0), math.nan),
        ("fmaximum", (math.nan, 1.0), 1.0),
        ("fmaximum", (1.0, math.nan), 1.0),
        ("fminimum", (math.nan, 1.0), 1.0),
        ("fminimum", (1.0, math.nan), 1.0),
        ("log_add", (-math.inf, -math.inf), -math.inf),
        ("log_add", (-math.inf, 3.0), 3.0),
        ("log_add", (math.inf, math.inf), math.inf),
        ("log_add", (math.inf, -math.inf), math.inf),
        ("log_add", (math.nan, 1.0), math.nan),
        ("log_add", (1.0, math.nan), math.nan),
        ("log_add", (1000.0, 1000.0), 1000.0 + math.log(2.0)),
        ("minimum", (math.nan, 1.0), math.nan),
        ("minimum", (1.0, math.nan), math.nan),
        ("maximum", (math.nan, 1.0), math.nan),
        ("maximum", (1.0, math.nan), math.nan),
    ],
)
def test_at_the_edges_values_are_those_of_ieee_754_and_nothing_raises(name, arguments, result):
    got = TABLE[name](*arguments)
    assert got == result or (math.isnan(got) and math.isnan(result))


def gradient(operation, *point):
    inputs = [variable(f"x{i}") for i in range(len(point))]
    adjoints = generate_adjoints([operation(*inputs)], [1.0], inputs)
    return evaluate([adjoints[x] for x in inputs], {f"x{i}": x for i, x in enumerate(point)})


def test_conventions_for_derivatives_at_the_edges():
    assert gradient(ops.minimum, 1.0, 1.0) == (1.0, 0.0)  # the first of two equals
    assert gradient(ops.maximum, 1.0, 1.0) == (1.0, 0.0)
    assert gradient(ops.absolute, 0.0) == (0.0,)
    assert gradient(ops.power, 0.0, 0.0) == (0.0, 0.0)
    assert gradient(ops.power, 0.0, 2.0) == (0.0, 0.0)
    assert gradient(ops.log_add, -math.inf, -math.inf) == (0.0, 0.0)  # a sum of nothing has no shares
    assert gradient(ops.log_add, math.inf, math.inf) == (0.5, 0.5)
    assert gradient(ops.log_add, -math.inf, 1.0) == (0.0, 1.0)
    assert gradient(ops.log_add, math.inf, 1.0) == (1.0, 0.0)
    assert gradient(ops.sqrt, 0.0) == (math.inf,)
    assert gradient(ops.fmaximum, 1.0, 1.0) == (1.0, 0.0)
    assert gradient(ops.fmaximum, math.nan, 1.0) == (0.0, 1.0)
    assert gradient(ops.fminimum, 1.0, math.nan) == (1.0, 0.0)
    assert gradient(ops.modulo, 6.0, 3.0) == (1.0, -2.0)  # the piece that begins there


def test_a_declared_adjoint_is_used():
    seen = []

    def adjoint(delta, y, x):
        seen.append(delta)
        return [ops.multiply(3.0, delta)]

    triple = Operation("triple", (real,), real, lambda x: 3 * x, (lambda d, y, x: triple(d),), "3.0 * {0}", adjoint)
    x = variable("x")
    assert evaluate([generate_adjoints([triple(x)], [2.0], [x])[x]], {}) == (6.0,)
    assert len(seen) == 1


def test_an_operation_without_derivative_says_so_only_when_one_is_asked_for():
    opaque = Operation("opaque", (real, real), real, lambda x, y: x, None, "{0} + {1}")
    x, z = variable("x"), variable("z")
    with pytest.raises(NotDifferentiable, match=r"opaque has no derivative.*argument 1"):
        generate_adjoints([opaque(x, 1.0)], [1.0], [x])
    with pytest.raises(NotDifferentiable, match="opaque"):
        tangents([opaque(x, 1.0) * z], {x: 1.0})
    assert generate_adjoints([opaque(x, 1.0) * z], [1.0], [z])[z] is not None
    assert tangents([opaque(x, 1.0)], {z: 1.0}) == (None,)


def test_a_name_is_declared_once():
    with pytest.raises(Error, match="exp is declared already"):
        declare(TABLE["exp"])


def test_bad_arguments_are_named():
    with pytest.raises(Error, match="exp takes 1 argument and was given 2"):
        ops.exp(1.0, 2.0)
    with pytest.raises(Error, match=r"add: argument 2 .* 'one' of type str"):
        ops.add(1.0, "one")
    with pytest.raises(Error, match="where: argument 1 should be a truth value"):
        ops.where(1.0, 2.0, 3.0)
    with pytest.raises(Error, match="too large for a double"):
        ops.exp(10**400)
