"""`dg.graph` and `dg.cpp`: the graph and the C++ of a compiled function."""

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
    assert "sin(x_0)" in text and "DYNAGRAD_EXPORT" in text
    assert dg.cpp(dg.compile(f), 1.0, 2.0) == text


def _height(v, steps):
    height = 0.0
    for _ in range(steps):
        v = v - 0.1 * v * v
        height = height + v
    return height


def test_the_cpp_of_a_gradient_has_the_names_of_the_function():
    text = dg.cpp(dg.grad(_height), 3.0, 2)
    assert "const double v_0 = *static_cast<const double*>(inputs[0]);" in text


def _power(base, n):
    return 1.0 if n < 1.0 else base * _power(base, n - 1.0)


def test_the_cpp_of_a_recursion_and_of_its_derivative_has_the_names_of_the_function():
    heads = [line for line in dg.cpp(_power, 2.0, 5.0).splitlines() if line.endswith("// _power")]
    assert heads == ["int64_t function0(Call& call, double base_0, double n_0, double& out0);  // _power"]
    text = dg.cpp(dg.grad(_power), 2.0, 5.0)
    assert text.count("double base_0, double n_0") == 4  # declared and defined, forth and back


def test_errors_are_those_of_the_compiler():
    with pytest.raises(dg.LiftError):
        dg.graph(lambda x: setattr(x, "a", 1.0), 1.0)
    with pytest.raises(dg.LiftError, match="<Program: 1 rule, 2 predicates, real> of type Program cannot be called"):
        dg.cpp(dg.Program("goal += a(_)."))


def _descend(slope, a):
    along = slope(a)
    while along**2 > 1e-3:
        a = a - 0.1 * along
        along = slope(a)
    return a


def _payoff(x, y, p):
    return (x - p) ** 2 + x * y + 0.5 * x * y * y - y**2


def _saddle(p):
    """Descent along the gradient of where another descent ends: loops that are extended, in loops."""

    def worst(x):
        y = _descend(dg.grad(lambda y: -_payoff(x, y, p)), 1.0)
        return _payoff(x, y, p)

    return _descend(dg.grad(worst), 1.0)


def test_a_gradient_through_loops_with_gradients_in_them_is_shown():
    shown = str(dg.graph(dg.grad(_saddle), 0.3))
    assert "while" in shown and "adjoint of" in shown
