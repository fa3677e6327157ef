"""Tracing: a Python function of reals becomes a graph, or an error that says where and what to do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dynagrad.autodiff.derive import generate_adjoints
from dynagrad.errors import Error, NotDifferentiable
from dynagrad.ir import Operation, boolean, constant, exp, log_add, real, trace, variable, where

x, y = variable("x"), variable("y")


def test_the_structure_of_arguments_and_results_is_kept():
    assert trace(lambda a, b: a + b, ("x", "y")) is x + y
    assert trace(lambda a: (a[0], (a[1] * 2, 1.0)), [("x", "y")]) == (x, (y * 2.0, constant(1.0)))
    assert trace(lambda: True, ()) is constant(True)
    assert trace(lambda a: [a], (x * y,)) == (x * y,)


def test_places_name_the_variables_that_have_no_name():
    assert trace(lambda a, b: (a, b[1]), (0.0, (real, boolean))) == (variable("x0"), variable("x1_1", boolean))


def test_our_operations_and_numpys_are_traced():
    def plus(a, b):
        return np.where(a > b, np.logaddexp(a, b), exp(np.float64(2.0) * b))

    assert trace(plus, ("x", "y")) is where(x > y, log_add(x, y), exp(2.0 * y))


def branches(a):
    if a > 0:
        return a
    return -a


def uses_math(a):
    return 1.0 + math.exp(a)


def returns_nothing(a):
    a + 1.0


def recurses(a):
    return recurses(a - 1.0) * a


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (branches, r"branches \(.*test_trace.py, line \d+\): .*may not branch.*np.where"),
        (uses_math, r"uses_math .*np.exp\(x\), not math.exp"),
        (returns_nothing, "returns is None; is a `return` missing"),
        (lambda a: "a", "what it returns should be a value or a tuple of values, and is a str"),
        (lambda a: (a, (a, {})), r"returns\[1\]\[1\] should be a value"),
        (lambda a: a << 2, "unsupported operand"),
        (lambda a: a * np.ones(2), "should be a single number"),
        (lambda a: a[0], "not subscriptable"),
        (lambda a: sum(a), "not iterable"),
        (lambda a: np.interp(a, [0, 1], [0, 1]), "interp is no operation"),
        (recurses, "calls itself without end"),
    ],
)
def test_what_cannot_be_traced_says_why(function, message):
    with pytest.raises(Error, match=message):
        trace(function, ("x",))


def test_the_line_is_that_of_the_mistake():
    with pytest.raises(Error, match=f"line {branches.__code__.co_firstlineno + 1}"):
        trace(lambda a: branches(a) + 1.0, ("x",))


def test_the_functions_own_mistakes_are_seen_as_they_are():
    with pytest.raises(ZeroDivisionError):
        trace(lambda a: a * (1 / 0), ("x",))
    with pytest.raises(TypeError, match="missing 1 required"):
        trace(lambda a, b: a, ("x",))


def test_an_error_with_a_meaning_of_its_own_keeps_its_class():
    opaque = Operation("opaque", (real,), real, lambda v: v, None, "{0}")
    with pytest.raises(NotDifferentiable):
        trace(lambda a: generate_adjoints([opaque(a)], [1.0], [a])[a], ("x",))


def test_bad_descriptions_and_endless_structures():
    with pytest.raises(Error, match="an argument of a traced function is a real or a tuple"):
        trace(lambda a: a, ({"x": 1},))
    endless: list = []
    endless.append(endless)
    with pytest.raises(Error, match="nested more than 100 deep"):
        trace(lambda a: a, (endless,))
    with pytest.raises(Error, match="nested more than 100 deep"):
        trace(lambda a: endless, ("x",))
