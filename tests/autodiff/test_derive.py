"""Derivatives of graphs: forward and reverse mode agree, they nest, and "not connected" differs from zero."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynagrad.autodiff.accumulation import sweep
from dynagrad.autodiff.derive import generate_adjoints, increments, tangent, tangents
from dynagrad.errors import Error
from dynagrad.ir import constant, evaluate, order, trace, variable
from dynagrad.ir.ops import scalars as ops
from dynagrad.passes.simplify import simplify

NAMES = ("x", "y", "z")
x, y, z = map(variable, NAMES)
SMOOTH = [
    ops.add,
    ops.subtract,
    ops.multiply,
    ops.sin,
    ops.tanh,
    ops.sigmoid,
    ops.log_add,
    lambda a, b: a / (1.0 + b * b),
    lambda a: ops.sqrt(1.0 + a * a),
    lambda a: ops.log1p(a * a),
    lambda a: ops.exp(-a * a),
    lambda a, b: ops.power(1.0 + a * a, ops.cos(b)),
    lambda a, b: ops.where(a > b, a * b, b),
    ops.maximum,
    ops.minimum,
    ops.absolute,
]


def arity(function):
    return len(function.arguments) if hasattr(function, "arguments") else function.__code__.co_argcount


@st.composite
def graphs(draw):
    nodes = [x, y, z]
    for _ in range(draw(st.integers(1, 12))):
        function = draw(st.sampled_from(SMOOTH))
        nodes.append(function(*(draw(st.sampled_from(nodes)) for _ in range(arity(function)))))
    return tuple(nodes[-2:])


numbers = st.floats(-2.0, 2.0).map(lambda v: round(v, 3) + 0.0001)
triples = st.tuples(numbers, numbers, numbers)


def at(nodes, values):
    """The values of nodes, 0 for what is not connected."""
    known = iter(evaluate([n for n in nodes if n is not None], values))
    return [0.0 if n is None else next(known) for n in nodes]


@settings(max_examples=70, deadline=None)
@given(graphs(), triples, triples, st.tuples(numbers, numbers))
def test_forward_equals_reverse(outputs, point, direction, weights):
    values = dict(zip(NAMES, point, strict=True))
    forward = tangents(outputs, dict(zip((x, y, z), direction, strict=True)))
    backward = generate_adjoints(outputs, weights, [x, y, z])
    pushed = [w * t for w, t in zip(weights, at(forward, values), strict=True)]
    pulled = [a * d for a, d in zip(at(backward.values(), values), direction, strict=True)]
    assume(all(map(math.isfinite, pushed + pulled)))
    assert sum(pushed) == pytest.approx(sum(pulled), rel=1e-9, abs=1e-9 * (1 + max(map(abs, pushed + pulled))))
    for node, adjoint in backward.items():
        reached = tangents(outputs, {node: 1.0})
        assert (adjoint is None) == all(t is None for t in reached)


@settings(max_examples=30, deadline=None)
@given(graphs(), triples, triples)
def test_second_derivatives_forward_over_reverse_equal_reverse_over_forward(outputs, point, direction):
    values = dict(zip(NAMES, point, strict=True))
    seeds = dict(zip((x, y, z), direction, strict=True))
    output = outputs[-1]
    gradient = generate_adjoints([output], [1.0], [x, y, z])
    connected = [a if a is not None else constant(0.0) for a in gradient.values()]
    one = at(tangents(connected, seeds), values)
    (pushed,) = tangents([output], seeds)
    two = [0.0] * 3 if pushed is None else at(generate_adjoints([pushed], [1.0], [x, y, z]).values(), values)
    assume(all(map(math.isfinite, one + two)))
    assert one == pytest.approx(two, rel=1e-8, abs=1e-8 * (1 + max(map(abs, one + two))))


def test_the_worked_example_of_a_quadratic():
    a, b, c = map(variable, "abc")
    output = a * (x * x) + (b * x + c)
    adjoints = generate_adjoints([output], [1.0], [a, b, c, x])
    values = {"a": 2.0, "b": 3.0, "c": 5.0, "x": 7.0}
    assert evaluate(list(adjoints.values()), values) == (49.0, 7.0, 1.0, 2 * 2.0 * 7.0 + 3.0)


def test_derivatives_nest_to_any_order():
    node = ops.exp(2.0 * x)
    for _ in range(6):
        (node,) = simplify([generate_adjoints([node], [1.0], [x])[x]])
    assert evaluate([node], {"x": 0.0}) == (64.0,)


def test_not_connected_is_none_and_zero_is_a_node():
    adjoints = generate_adjoints([x * y - x * y, ops.where(z > 0, y, 1.0)], [1.0, 1.0], [x, z])
    assert adjoints[z] is None  # only through a condition, in steps
    assert evaluate([adjoints[x]], {"x": 2.0, "y": 3.0}) == (0.0,)
    assert tangents([x > y, constant(1.0), x], {x: 1.0}) == (None, None, constant(1.0))
    assert generate_adjoints([x * y, x], [None, 1.0], [x, y]) == {x: constant(1.0), y: None}


def test_a_node_of_wrt_may_lie_on_the_way_to_another():
    middle = x * x
    adjoints = generate_adjoints([middle * 3.0], [1.0], [x, middle])
    assert evaluate([adjoints[x], adjoints[middle]], {"x": 5.0}) == (30.0, 3.0)
    (forward,) = tangents([middle * 3.0], {x: 1.0, middle: 1.0})
    assert evaluate([forward], {"x": 5.0}) == (33.0,)


def test_an_output_given_twice_counts_twice():
    assert evaluate([generate_adjoints([x, x], [1.0, 2.0], [x])[x]], {}) == (3.0,)


def test_reverse_costs_a_constant_times_the_function():
    node = x
    for _ in range(200):
        node = node * ops.sin(node)
    adjoint = generate_adjoints([node], [1.0], [x])[x]
    assert len(order([adjoint])) < 4 * len(order([node]))


def test_rules_compute_on_plain_numbers_too():
    assert tangent(ops.divide, 2.0, (6.0, 3.0), (1.0, 1.0)) == pytest.approx(1 / 3 - 2 / 3)
    assert increments(ops.divide, 2.0, (6.0, 3.0), 3.0, [1]) == [(1, -2.0)]


def test_the_sweep_works_on_any_let_series():
    # c = a * b, d = c * a at a = 2, b = 3
    uses = {"c": [("a", 3.0), ("b", 2.0)], "d": [("c", 2.0), ("a", 6.0)]}
    log = []

    def generate(step, delta):
        log.append((step, delta))
        return [(argument, delta * partial) for argument, partial in uses.get(step, [])]

    kept = sweep(["a", "b", "c", "d"], {"d": 1.0}, lambda s, t: s + t, generate, {"a", "b"})
    assert kept == {"a": 12.0, "b": 4.0}
    assert log == [("d", 1.0), ("c", 2.0), ("b", 4.0), ("a", 12.0)]  # each once, when it is complete


def test_a_semiring_is_traced_and_differentiated():
    p, r = trace(lambda a, b: (a[0] * b[0], a[0] * b[1] + a[1] * b[0]), (("p", "r"), ("q", "s")))
    adjoints = generate_adjoints([p, r], [1.0, 10.0], [variable("p"), variable("r")])
    assert evaluate(list(adjoints.values()), {"p": 2.0, "r": 3.0, "q": 5.0, "s": 7.0}) == (75.0, 50.0)


def test_bad_seeds_are_refused():
    with pytest.raises(Error, match="each output needs a cotangent: 2 and 1 were given"):
        generate_adjoints([x, y], [1.0], [x])
    with pytest.raises(Error, match="should be real"):
        generate_adjoints([x], ["1"], [x])
    with pytest.raises(Error, match="should be real"):
        tangents([x], {x: True})
