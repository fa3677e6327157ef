"""Graphs as text: lines, indentation, and which adjoint belongs to which value."""

import numpy as np

from dynagrad.autodiff.derive import generate_adjoints
from dynagrad.ir import exp, maximum, sin, variable
from dynagrad.ir.builders import call, cond, define, merge, repeat, while_
from dynagrad.ir.control import Graph, GraphFunction
from dynagrad.ir.node import fresh, whole
from dynagrad.ir.ops.arrays import transpose
from dynagrad.ir.ops.places import at_add, at_set
from dynagrad.ir.ops.reductions import total
from dynagrad.ir.show import levels, show
from dynagrad.ir.types import arrays, boolean, integer, real

x, y = variable("x"), variable("y")


def text(inputs, outputs, **options):
    return show(Graph(tuple(inputs), tuple(outputs)), **options)


def right_side(node, **names):
    """What a node of the variables of these names does."""
    lines = text([], [node]).splitlines()
    return lines[-2].split(" = ")[1]


def test_a_let_series():
    t = exp(x * y)
    assert text([x, y], [t + 2.0 * t]) == "\n".join(
        [
            "(x : real, y : real)",
            "t1 : real = x * y",
            "t2 : real = exp(t1)",
            "t3 : real = 2.0 * t2",
            "t4 : real = t2 + t3",
            "-> t4",
        ]
    )


def test_outputs_may_be_inputs_and_constants():
    assert text([x], [x, x * 0.0 + 1.0, sin(x).arguments[0]]).endswith("-> x, t2, x")
    assert text([x], []) == "(x : real)\n->"
    assert text([], [whole(3)]) == "()\n-> 3"


def test_what_has_no_name_gets_one_that_is_free():
    a, b = fresh(), fresh(arrays(real, (100, 3)))
    assert text([variable("x1"), a, b], [a * b, variable("x1") + a]).splitlines() == [
        "(x1 : real, x2 : real, x3 : real[100, 3])",
        "t1 : real[100, 3] = x2 * x3",
        "t2 : real = x1 + x2",
        "-> t1, t2",
    ]


def test_names_are_given_and_told_apart():
    a, b = fresh(), fresh()
    assert text([a, b], [a * b], names={a: "w", b: "w", a * b: "t1"}).splitlines() == [
        "(w : real, w_2 : real)",
        "t1 : real = w * w_2",
        "-> t1",
    ]


def test_operations_are_written_as_in_python():
    n, m = variable("n", integer), variable("m", integer)
    p, q = variable("p", boolean), variable("q", boolean)
    a = variable("a", arrays(real, (4, 5)))
    i = variable("i", arrays(integer, (3,)))
    for node, written in (
        (x**y, "x ** y"),
        (-x, "-x"),
        (abs(x), "abs(x)"),
        (n // m, "n // m"),
        (n % m, "n % m"),
        (n < m, "n < m"),
        (p & ~q, "p and t1"),
        (maximum(x, 2.0), "maximum(x, 2.0)"),
        (n * 1.5, "t1 * 1.5"),
        (a[n], "a[n, :]"),
        (a[1:, m], "a[1:, m]"),
        (a[:, ::-1], "a[:, ::-1]"),
        (a[::2, 1:3], "a[::2, 1:3]"),
        (a[None, 2], "a[None, 2, :]"),
        (a[i], "a[i, :]"),
        (at_add(a, (n, 0), x), "add_at(a, [n, 0], x)"),
        (at_set(a, n, x), "set_at(a, [n, :], x)"),
        (total((0,))(a), "sum(a, axis=0)"),
        (total((0, 1), True)(a), "sum(a, axis=(0, 1), keepdims=True)"),
        (transpose((1, 0))(a), "transpose(a, axes=(1, 0))"),
        (a @ np.ones(5), "a @ [1.0, 1.0, 1.0, 1.0, 1.0]"),
        (a + np.ones((4, 5)), "a + constant real[4, 5]"),
    ):
        assert right_side(node) == written


def test_control_flow_is_indented():
    [z] = cond(x > 0.0, lambda: [exp(x)], lambda: [y])
    [_, w] = while_(lambda s, t: s < 3.0, lambda s, t: [s + z, t * s], [x, 1.0])
    [v] = repeat(variable("n", integer), lambda i, s: [s * w + i], [z])
    assert text([x, y], [v]).splitlines() == [
        "(x : real, y : real, n : integer)",
        "t1 : boolean = x > 0.0",
        "t2 : real = if t1:",
        "    t3 : real = exp(x)",
        "    give t3",
        "else:",
        "    give y",
        "_ : real, t4 : real = while (s1 = x, s2 = 1.0):",
        "    t5 : boolean = s1 < 3.0",
        "    stop unless t5",
        "    t6 : real = s1 + t2",
        "    t7 : real = s2 * s1",
        "    next t6, t7",
        "t8 : real = repeat n times (i1; s3 = t2):",
        "    t9 : real = s3 * t4",
        "    t10 : real = real(i1)",
        "    t11 : real = t9 + t10",
        "    next t11",
        "-> t8",
    ]


def test_functions_come_first():
    power = GraphFunction("power", (real, integer), (real,))
    define(power, lambda x, n: cond(n > 0, lambda: [x * call(power, x, n - 1)[0]], lambda: [1.0]))
    assert text([x], call(power, x, whole(3))).splitlines() == [
        "power(x1 : real, x2 : integer):",
        "    t1 : boolean = x2 > 0",
        "    t2 : real = if t1:",
        "        t3 : integer = x2 - 1",
        "        t4 : real = power(x1, t3)",
        "        t5 : real = x1 * t4",
        "        give t5",
        "    else:",
        "        give 1.0",
        "    -> t2",
        "",
        "(x : real)",
        "t1 : real = power(x, 3)",
        "-> t1",
    ]


def test_adjoints_follow_the_values_backward():
    t = x * y
    z = sin(t)
    found = generate_adjoints([z], [variable("w")], [x, y, t, z])
    assert text([x, y], [z, found[x], found[y]], names={t: "product"}, adjoints=found).splitlines() == [
        "(x : real, y : real, w : real)",
        "product : real = x * y",
        "t1 : real = sin(product)",
        "t1_bar : real = w                 # adjoint of t1",
        "t2 : real = cos(product)",
        "product_bar : real = w * t2       # adjoint of product",
        "x_bar : real = product_bar * y    # adjoint of x",
        "y_bar : real = product_bar * x    # adjoint of y",
        "-> t1, x_bar, y_bar",
    ]


def test_one_node_may_be_the_adjoint_of_several():
    s, t = x + y, y * 2.0
    found = generate_adjoints([sin(s) + t], [1.0], [x, y, s, t])
    shown = text([x, y], [found[x], found[y]], adjoints=found).splitlines()
    assert [line.split("#")[0].rstrip() for line in shown if "_bar :" in line] == [
        "t1_bar : real = 1.0 * t2",
        "x_bar : real = t1_bar",
        "y_bar : real = t3 + t1_bar",
    ]


def test_a_loop_of_adjoints_has_their_names():
    [z] = repeat(3, lambda i, s: [s * y + i], [x])
    found = generate_adjoints([z], [1.0], [x, y])
    shown = text([x, y], merge([z, *found.values()]), adjoints=found)
    assert "x_bar : real, y_bar : real, _ : stack = repeat 3 times" in shown
    assert "# adjoint of x, y" in shown and shown.endswith("x_bar, y_bar")


def test_what_is_not_connected_has_no_adjoint():
    found = generate_adjoints([x * 2.0], [1.0], [x, y])
    assert "y_bar" not in text([x, y], [found[x]], adjoints=found)


def test_where_values_come_from_and_how_many_lines_there_are():
    t = x * y
    assert "t1 : real = x * y    # model.py:7" in text([x, y], [t + 1.0], sources={t: "model.py:7"})
    node = x
    for _ in range(50):
        node = sin(node)
    shown = text([x], [node], limit=10).splitlines()
    assert len(shown) == 11 and shown[-1] == "... and 42 more lines"


def test_levels():
    a, b, c = map(variable, "abc")
    t10, t11 = x * x, b * x
    t20, t21 = a * t10, t11 + c
    found = levels([t20 + t21])
    assert [set(level) for level in found] == [{a, b, c, x}, {t10, t11}, {t20, t21}, {t20 + t21}]


def test_a_long_series_is_no_recursion():
    node = x
    for _ in range(6000):
        node = sin(node)
    assert len(text([x], [node]).splitlines()) == 6002
