"""`check_derivatives`: correct derivatives pass in all modes and orders, wrong ones are named."""

from __future__ import annotations

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.ir.ops import scalars as ops


def wrong(factor, order=1):
    """sin with a derivative that is off, of the first or the second order."""
    if order == 1:
        return dg.custom_rule(np.sin, jvp=lambda p, t: factor * ops.cos(p[0]) * t[0])
    cos = dg.custom_rule(np.cos, jvp=lambda p, t: -factor * ops.sin(p[0]) * t[0])
    return dg.custom_rule(np.sin, jvp=lambda p, t: cos(p[0]) * t[0])


@pytest.mark.parametrize("order", [1, 2, 3])
def test_right_ones(order):
    dg.check_derivatives(lambda x, y: ops.exp(x) * ops.sin(x * y), 0.3, 1.2, order=order)
    dg.check_derivatives(lambda s: {"a": [s["x"] * s["y"], ops.log(s["y"])]}, {"x": 2.0, "y": 3.0}, order=order)


def test_arrays_few_and_many():
    random = np.random.default_rng(1)
    assert dg.check_derivatives(lambda x, y: ops.tanh(x) * y, random.standard_normal(3), 2.0) is None
    dg.check_derivatives(lambda x: np.matmul(x, x), random.standard_normal((6, 6)))
    dg.check_derivatives(lambda x: ops.exp(x), random.standard_normal((2, 2)), order=3)


def test_near_the_edge_of_where_a_function_is_defined():
    dg.check_derivatives(lambda x: ops.log(x), 1e-3)
    dg.check_derivatives(lambda x: ops.sqrt(x), 1e-2, order=3)
    dg.check_derivatives(lambda x: ops.exp(x), 30.0)


def test_wrong_ones_are_named():
    with pytest.raises(dg.Error, match=r"forward: the derivative of the result by argument 1 should be 0.9553\d* by"):
        dg.check_derivatives(wrong(1.001), 0.3)
    with pytest.raises(dg.Error, match="reverse: the derivative of the result by argument 2 should"):
        dg.check_derivatives(lambda x, y: x * wrong(0.9)(y), 1.0, 0.3, modes="reverse")
    with pytest.raises(dg.Error, match=r"result at \[1\] by argument 1 at \[1\]"):
        dg.check_derivatives(wrong(1.1), np.array([np.pi / 2, 0.3]))
    with pytest.raises(dg.Error, match="random direction 1 "):
        dg.check_derivatives(wrong(1.1), np.linspace(0.0, 1.0, 20))
    with pytest.raises(dg.Error, match=r"part 2, by argument 1, part 1,"):
        dg.check_derivatives(lambda s: (s[1], wrong(1.1)(s[0])), (0.3, 0.4))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_second_orders_that_are_wrong(mode):
    f = wrong(1.01, order=2)
    dg.check_derivatives(f, 0.3, order=1)
    with pytest.raises(dg.Error, match=f"{mode} over {mode}: the derivative"):
        dg.check_derivatives(f, 0.3, modes=[mode])


def test_a_mode_of_its_own():
    f = dg.custom_rule(np.sin, jvp=lambda p, t: ops.cos(p[0]) * t[0], vjp=lambda p, y, c: c)
    dg.check_derivatives(f, 0.3, modes=["forward"])
    with pytest.raises(dg.Error, match="reverse: "):
        dg.check_derivatives(f, 0.3, order=1)


def test_points_that_cannot_be_checked():
    with pytest.raises(dg.Error, match=r"should be|do not converge"):
        dg.check_derivatives(lambda x: ops.maximum(x, 0.0), 0.0)  # the convention is no derivative there
    with pytest.raises(dg.Error, match="do not converge"):
        dg.check_derivatives(lambda x: ops.sqrt(ops.multiply(x, -1.0)), 1.0, order=1)
    with pytest.raises(dg.Error, match=r"do not converge|should be"):
        dg.check_derivatives(lambda x: ops.sign(x) + x, 1e-9)


def test_functions_that_go_up_and_down_many_times():
    for k in (1e3, 3e4, 1e6):
        dg.check_derivatives(lambda x, k=k: np.sin(k * x), 1.0)
    slightly = dg.custom_rule(lambda x: np.sin(1e3 * x), jvp=lambda p, t: 999.0 * np.cos(1e3 * p[0]) * t[0])
    with pytest.raises(dg.Error, match=r"should be 562\.3790"):
        dg.check_derivatives(slightly, 1.0)


def test_small_functions_have_derivatives_too():
    small = dg.custom_rule(lambda x: 1e-7 * np.sin(x), jvp=lambda p, t: 0.0 * t[0])
    with pytest.raises(dg.Error, match=r"should be 5\.40302305"):
        dg.check_derivatives(small, 1.0)
    dg.check_derivatives(lambda x: 1e-7 * np.sin(x), 1.0)
    dg.check_derivatives(lambda x: 1e-30 * np.exp(x), 1.0)
    dg.check_derivatives(lambda x: x - np.sin(x), 0.0)


def test_functions_whose_results_change_their_shape_or_kind():
    dg.check_derivatives(lambda x: x[x > 0], np.array([1e-3, 1.0]))
    dg.check_derivatives(lambda x: 1 if x > 1 else x, 2.0)
    dg.check_derivatives(lambda x: (1 if x > 1 else x, [x * x, "name", True]), 2.0)
    with pytest.raises(dg.Error, match=r"cannot be checked|should be"):
        dg.check_derivatives(lambda x: 1 if x > 1 else 2 * x, 1.0)


@pytest.mark.filterwarnings("error")
def test_differences_that_are_infinite_are_an_error_and_no_warning_of_numpy():
    with pytest.raises(dg.Error, match="check_derivatives"):
        dg.check_derivatives(lambda x: x * x, 1e308)


def test_bad_questions():
    for arguments, message in [
        ((3.0, 1.0), "should be a function"),
        ((ops.sin,), "give the arguments"),
        ((ops.sin, 1), "reals"),
        ((ops.sin, ops.sin), "is a function"),
        ((lambda x: ops.sin, 1.0), "result is or contains a function"),
    ]:
        with pytest.raises(dg.Error, match=message):
            dg.check_derivatives(*arguments)
    with pytest.raises(dg.Error, match="modes"):
        dg.check_derivatives(ops.sin, 1.0, modes=["sideways"])
    with pytest.raises(dg.Error, match="modes should be a list of modes, and is None"):
        dg.check_derivatives(ops.sin, 1.0, modes=None)
    for tolerance in (None, "1", True, -1.0, float("nan"), np.matrix([[1.0]])):
        with pytest.raises(dg.Error, match="the tolerance is a number from 0"):
            dg.check_derivatives(ops.sin, 1.0, tolerance=tolerance)
    with pytest.raises(dg.Error, match="order"):
        dg.check_derivatives(ops.sin, 1.0, order=0)
