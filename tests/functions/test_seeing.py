"""`dg.graph` and `dg.cpp`: what a compiled function is made of."""

import xml.etree.ElementTree as xml

import numpy as np
import pytest

import dynagrad as dg


def f(x, y):
    return np.sin(x) * y + x


def test_the_let_series_has_a_line_for_each_value():
    assert str(dg.graph(f, 1.0, 2.0)).splitlines() == [
        "(x : real, y : real)",
        "t1 : real = sin(x)",
        "t2 : real = t1 * y",
        "t3 : real = t2 + x",
        "-> t3",
    ]


def test_loops_are_indented():
    def halve(x):
        while x > 1.0:
            x = 0.5 * x
        return x

    text = str(dg.graph(halve, 5.0))
    assert "while (s1 = x):" in text and "    next" in text


def test_a_gradient_says_which_adjoint_belongs_to_which_value():
    text = str(dg.graph(dg.grad(f, (0, 1)), 1.0, 2.0))
    assert "t1_bar : real" in text and "# adjoint of t1" in text


def test_it_draws_itself():
    picture = dg.graph(dg.grad(f), 1.0, 2.0)._repr_svg_()
    assert xml.fromstring(picture).tag.endswith("svg")


def test_the_cpp_is_what_is_compiled():
    text = dg.cpp(f, 1.0, 2.0)
    assert "sin(x0)" in text and "DYNAGRAD_EXPORT" in text
    assert dg.cpp(dg.compile(f), 1.0, 2.0) == text


def test_errors_are_those_of_the_compiler():
    with pytest.raises(dg.LiftError):
        dg.graph(lambda x: setattr(x, "a", 1.0), 1.0)
