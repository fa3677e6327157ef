"""Simplification: graphs shrink, and every value stays to the bit. Costs a few seconds."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynagrad.autodiff.derive import generate_adjoints
from dynagrad.ir import TABLE, boolean, constant, evaluate, order, real, variable
from dynagrad.ir.ops import scalars as ops
from dynagrad.passes.simplify import simplify

x, y, c = variable("x"), variable("y"), variable("c", boolean)
NAMES = ("x", "y", "z")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -4.0, 3.0, 1e308, 5e-324, math.inf, -math.inf, math.nan]


@st.composite
def graphs(draw):
    """Two outputs over three variables, with special constants and much sharing."""
    nodes = [variable(name) for name in NAMES] + [constant(v) for v in draw(st.lists(st.sampled_from(SPECIAL)))]
    truths = [constant(True), constant(False)]
    for _ in range(draw(st.integers(1, 12))):
        operation = TABLE[draw(st.sampled_from(sorted(TABLE)))]
        arguments = [draw(st.sampled_from(nodes if t is real else truths)) for t in operation.arguments]
        (nodes if operation.result is real else truths).append(operation(*arguments))
    return nodes[-1], nodes[-2], truths[-1]


def bits(values):
    return [b"nan" if v != v else struct.pack("<d", v) for v in values]


@settings(max_examples=120, deadline=None)
@given(graphs(), st.lists(st.sampled_from(SPECIAL), min_size=3, max_size=3))
def test_simplification_keeps_values_to_the_bit(outputs, point):
    values = dict(zip(NAMES, point, strict=True))
    simple = simplify(outputs)
    assert bits(evaluate(simple, values)) == bits(evaluate(outputs, values))
    assert len(order(simple)) <= len(order(outputs)) + 2  # a folded constant may be new
    again = simplify(simple)  # finds no more, though it may write the terms of a sum in another order
    assert len(order(again)) == len(order(simple))
    assert bits(evaluate(again, values)) == bits(evaluate(simple, values))


@pytest.mark.parametrize(
    ("node", "simple"),
    [
        (x * 1.0, x),
        (1.0 * x, x),
        (x * -1.0, -x),
        (x / 1.0, x),
        (x / 4.0, x * 0.25),
        (x + -0.0, x),
        (x - 0.0, x),
        (-0.0 - x, -x),
        (ops.negative(-x), x),
        (x + (-y), x - y),
        ((-x) + y, y - x),
        (x - (-y), x + y),
        ((-x) * (-y), x * y),
        (x**1.0, x),
        (x**2.0, x * x),
        (x**0.0, constant(1.0)),
        (abs(-x), abs(x)),
        (abs(abs(x)), abs(x)),
        (ops.minimum(x, x), x),
        (x < x, constant(False)),
        (~(x == y), x != y),
        (~~c, c),
        (c & True, c),
        (c | True, constant(True)),
        (c & c, c),
        (ops.where(True, x, y), x),
        (ops.where(c, x, x), x),
        (ops.where(~c, x, y), ops.where(c, y, x)),
        (ops.where(c, ops.where(c, x, 1.0), y), ops.where(c, x, y)),
        (ops.exp(constant(0.0)) + x, x + 1.0),
        (ops.exp(x * y) + ops.exp(y * x), ops.exp(x * y) + ops.exp(x * y)),
        (ops.sin(x * y) - ops.sin(y * x), ops.sin(x * y) - ops.sin(x * y)),
    ],
)
def test_what_becomes_simpler(node, simple):
    (got,) = simplify([node])
    assert got is simplify([simple])[0]
    assert len(order([got])) <= len(order([node]))


@pytest.mark.parametrize(
    "node",
    [x * 0.0, x + 0.0, 0.0 - x, x - x, x / x, x / 3.0, x == x, x <= x, ~(x < y), ops.exp(ops.log(x)), x / 5e-324],
)
def test_what_stays_because_some_value_would_change(node):
    assert simplify([node])[0] is node


def test_a_derivative_with_a_constant_exponent_becomes_small():
    adjoint = generate_adjoints([x**3.0], [1.0], [x])[x]
    assert repr(simplify([adjoint])[0]) == "(x * x) * 3.0"
