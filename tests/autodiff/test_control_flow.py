"""Derivatives through branches, loops and recursion, in both modes and their nestings, against central differences."""

import numpy as np
import pytest

from dynagrad.autodiff.derive import generate_adjoints, tangents
from dynagrad.errors import Error
from dynagrad.ir import exp, node, sin, variable
from dynagrad.ir.builders import call, cond, define, merge, repeat, while_
from dynagrad.ir.control import (
    COND,
    PART,
    POP,
    PUSH,
    REPEAT,
    WHILE,
    Graph,
    GraphFunction,
    empty,
    part,
    part_types,
    pop,
    push,
)
from dynagrad.ir.interpret import run
from dynagrad.ir.node import constant, fresh, order, whole
from dynagrad.ir.ops.places import at_add, at_set
from dynagrad.ir.ops.reductions import total
from dynagrad.ir.types import arrays, integer, real, stack
from dynagrad.passes.optimise import optimise


def loop_of_known_length(x, y):
    return repeat(5, lambda i, s, t: [s * y + sin(t), t * s + x * (i + 1)], [x, y])[0]


def loop_of_unknown_length(x, y):
    return while_(lambda s, t: s < 50.0, lambda s, t: [s * 2.0 + exp(t * 0.1), t * x], [x, y])[1]


def branch(x, y):
    return cond(x > y, lambda: [x * x * exp(y)], lambda: [-x * y])[0]


def loop_in_loop(x, y):
    def inner(i, s):
        return [repeat(i + 2, lambda j, t: [sin(t) * y + s * x], [s])[0]]

    return repeat(3, inner, [x])[0]


def two_loops_in_a_loop(x, y):
    def inner(i, s, t):
        [a] = repeat(3, lambda j, u: [sin(u * t) + y], [s])
        [b] = while_(lambda u: u < 3.0, lambda u: [u * u + a * x + 1.0], [t])
        return [a * b, a + 0.1 * b]

    return repeat(3, inner, [x, y])[0]


def loop_in_a_branch_in_a_loop(x, y):
    def inner(i, s):
        return cond(
            s > 1.0, lambda: [s * y + 0.1 * repeat(3, lambda j, t: [t * t * x + s], [y])[0]], lambda: [s + x * y]
        )

    return repeat(4, inner, [x])[0]


def recursion(x, y):
    power = GraphFunction("power", (real, real, integer), (real,))

    def body(x, y, n):
        return cond(
            n > 0, lambda: [call(power, x * sin(y), y * x, n - 1)[0] * x + call(power, x, y, n - 2)[0]], lambda: [x * y]
        )

    define(power, body)
    return call(power, x, y, whole(4))[0]


def a_loop_that_does_not_run(x, y):
    return repeat(0, lambda i, s: [s * y], [x])[0] + while_(lambda s: s < 0.0, lambda s: [s * y], [x])[0]


SCALARS = [
    loop_of_known_length,
    loop_of_unknown_length,
    branch,
    loop_in_loop,
    two_loops_in_a_loop,
    loop_in_a_branch_in_a_loop,
    recursion,
    a_loop_that_does_not_run,
]


def determinant(a):
    n = a.shape[0]

    def column(k, a, det):
        def row(i, a):
            i = i + k + 1
            factor = a[i, k] / a[k, k]
            return repeat(n - 1 - k, lambda j, a: [at_add(a, (i, j + k + 1), -(factor * a[k, j + k + 1]))], [a])

        return [repeat(n - 1 - k, row, [a])[0], det * a[k, k]]

    return repeat(n, column, [a, 1.0])[1]


def rows_set_and_read(a):
    def step(i, a, s):
        a = at_set(a, i, sin(a[i]) * a[i - 1])
        return [a, s + total((0,))(a[i] * a[0])]

    return repeat(a.shape[0], step, [a, 0.0])[1]


def vectors_as_states(a):
    return total((0,))(repeat(3, lambda i, v: [sin(a @ v) + v], [a[0]])[0])


ARRAYS = [determinant, rows_set_and_read, vectors_as_states]
MATRIX = 2.0 * np.eye(4) + 0.3 * np.random.default_rng(1).normal(size=(4, 4))


def values_at(function, inputs, points):
    return run(Graph(tuple(inputs), tuple(function)), points)


def along(found, directions):
    """The sum of products of adjoints and directions."""
    products = [f * d for f, d in zip(found, directions, strict=True) if f is not None]
    sums = [total(tuple(range(p.ndim)))(p) if p.ndim else p for p in products]
    return sum(sums[1:], start=sums[0])


@pytest.mark.parametrize(
    ("function", "points"),
    [*((f, (0.55, 0.8)) for f in SCALARS), *((f, (MATRIX,)) for f in ARRAYS)],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_both_modes_to_second_order(function, points):
    rng = np.random.default_rng(0)
    inputs = [fresh(arrays(real, np.shape(p))) for p in points]
    dots = [fresh(x.type) for x in inputs]
    directions = [rng.normal(size=np.shape(p)) if np.shape(p) else float(rng.normal()) for p in points]
    y = function(*inputs)

    def value(step):
        return run(Graph(tuple(inputs), (y,)), [p + step * d for p, d in zip(points, directions, strict=True)])[0]

    seeds = dict(zip(inputs, dots, strict=True))
    [forward] = tangents([y], seeds)
    backward = along(generate_adjoints([y], [1.0], inputs).values(), dots)
    second = {
        "forward forward": tangents([forward], seeds)[0],
        "forward backward": tangents([backward], seeds)[0],
        "backward forward": along(generate_adjoints([forward], [1.0], inputs).values(), dots),
        "backward backward": along(generate_adjoints([backward], [1.0], inputs).values(), dots),
    }
    outputs = (y, forward, backward, *second.values())
    graph = Graph((*inputs, *dots), merge(outputs))
    found = run(graph, (*points, *directions))
    h = 1e-5
    assert found[0] == value(0.0)
    assert found[1] == pytest.approx((value(h) - value(-h)) / (2 * h), rel=2e-5, abs=1e-8)
    assert found[2] == pytest.approx(found[1], rel=1e-13)
    h = 1e-4
    by_differences = (value(h) - 2 * value(0.0) + value(-h)) / h**2
    assert found[3] == pytest.approx(by_differences, rel=1e-3, abs=1e-5)
    for name, result in zip(second, found[3:], strict=True):
        assert result == pytest.approx(found[3], rel=1e-12), name
    np.testing.assert_allclose(run(optimise(graph), (*points, *directions)), found, rtol=1e-13)


@pytest.mark.parametrize("function", SCALARS, ids=lambda f: f.__name__)
def test_third_order_mixed(function):
    x, y = fresh(), fresh()
    z = function(x, y)
    gx = generate_adjoints([z], [1.0], [x])[x]
    [gxy] = tangents([gx], {y: 1.0})
    gyx = tangents([generate_adjoints([z], [1.0], [y])[y]], {x: 1.0})[0]
    if gxy is None:
        return
    gxyx = generate_adjoints([gxy], [1.0], [x])[x]
    gyxx = tangents([gyx], {x: 1.0})[0]
    a, b = run(
        Graph((x, y), merge([zero if g is None else g for g in (gxyx, gyxx) for zero in [constant(0.0)]])), (0.55, 0.8)
    )
    assert a == pytest.approx(b, rel=1e-11, abs=1e-12)


# -- what is saved -----------------------------------------------------------------------------------------------------


def pushed(node):
    """The types of what a loop saves each round."""
    return [a.type for n in order(node.attribute.body.outputs) if n.operation is PUSH for a in n.arguments[1:]]


def loops(outputs, kind=REPEAT):
    return [n for n in order(merge(outputs)) if n.operation is kind]


def test_a_sum_saves_nothing():
    x = fresh(arrays(real, (10,)))
    [s] = repeat(10, lambda i, s: [s + x[i] * 2.0], [0.0])
    for loop in loops([generate_adjoints([s], [1.0], [x])[x]]):
        assert stack not in part_types(loop)


def test_what_is_taken_off_a_place_of_an_array_is_not_saved():
    """`a[i] -= l * u` looks at l and u on the way back, and not at a."""
    a, low, u = fresh(arrays(real, (5,))), fresh(), fresh()
    [b] = repeat(5, lambda i, a: [at_add(a, i, -(low * u))], [a])
    for loop in loops([generate_adjoints([total((0,))(b)], [1.0], [low])[low]]):
        assert stack not in part_types(loop)


def test_one_number_is_saved_where_one_of_an_array_is_looked_at():
    a = fresh(arrays(real, (5,)))
    [b] = repeat(4, lambda i, a: [at_add(a, i + 1, a[i] * a[i])], [a])
    adjoint = generate_adjoints([total((0,))(b)], [1.0], [a])[a]
    [forward, _] = loops([adjoint])
    assert pushed(forward) == [real]


def test_states_are_saved_and_cheap_values_computed_again():
    x = fresh()
    [y] = repeat(9, lambda i, s: [s * s * x + s], [x])
    [forward, backward] = loops([generate_adjoints([y], [1.0], [x])[x]])
    assert pushed(forward) == [real]
    assert any(n.operation is POP for n in order(backward.attribute.body.outputs))


def test_dear_values_are_saved():
    x = fresh()
    [y] = repeat(9, lambda i, s: [exp(s * x)], [x])
    [forward, _] = loops([generate_adjoints([y], [1.0], [x])[x]])
    assert pushed(forward) == [real, real]  # the state, and its exponential


def test_the_primal_loop_runs_once():
    x = fresh()
    [y] = while_(lambda s: s < 10.0, lambda s: [s * s + x], [x])
    outputs = merge([y, generate_adjoints([y], [1.0], [x])[x]])
    assert len([n for n in order(outputs) if n.operation is WHILE]) == 1


# -- stacks and errors -------------------------------------------------------------------------------------------------


def test_what_comes_off_an_empty_stack_is_zeros():
    _, items = pop(empty(), [real, integer, arrays(real, (2,))])
    found = run(Graph((), tuple(items)), ())
    assert found[0] == 0.0 and found[1] == 0
    np.testing.assert_array_equal(found[2], np.zeros(2))


def test_push_and_pop_are_each_others_adjoints():
    x, y = fresh(), fresh()
    _, [a, b] = pop(push(empty(), [x, y]), [real, real])
    adjoints = generate_adjoints([a * b], [1.0], [x, y])
    assert run(Graph((x, y), merge(list(adjoints.values()))), (3.0, 5.0)) == (5.0, 3.0)


def test_errors_say_what_is_wrong():
    x = variable("x")
    with pytest.raises(Error, match="one branch gives a real and the other a real\\[2\\]"):
        cond(x > 0.0, lambda: [x], lambda: [np.ones(2)])
    with pytest.raises(Error, match="one branch has 1 result and the other 2"):
        cond(x > 0.0, lambda: [x], lambda: [x, x])
    with pytest.raises(Error, match="condition should be a truth value"):
        cond(x, lambda: [x], lambda: [x])
    with pytest.raises(Error, match="result 1 is a real\\[2\\], and should be a real"):
        repeat(3, lambda i, s: [s * np.ones(2)], [x])
    with pytest.raises(Error, match="count should be a whole number"):
        repeat(x, lambda i, s: [s], [x])


@pytest.mark.parametrize("function", [recursion, loop_in_a_branch_in_a_loop])
def test_nodes_that_are_still_there_from_before_change_nothing(function, monkeypatch):
    """A node is made once, so one that is older than a subgraph may turn up inside of it."""
    monkeypatch.setattr(node, "_table", dict(node._table))  # which keeps them all
    test_both_modes_to_second_order(function, (0.55, 0.8))


def test_values_are_taken_from_outside_one_by_one():
    x, y = fresh(real), fresh(real)
    both = cond(x > 0.0, lambda: [x * y, x + y], lambda: [y, x])
    several = both[0].arguments[0]
    [z] = cond(y > 0.0, lambda: [part(several, 1) * 2.0], lambda: [x])  # the part is younger than the branch
    del both
    nodes = order([z])
    assert all(a.type.kind != "values" or n.operation is PART for n in nodes for a in n.arguments)
    assert run(Graph((x, y), (z,)), [3.0, 4.0]) == (14.0,)


def test_tangents_of_choices_in_a_row_are_no_deeper_than_these():
    def control_nodes(outputs):
        found = [node.attribute for node in order(outputs) if node.operation is COND]
        return len(found) + sum(control_nodes(branch.outputs) for a in found for branch in (a.then, a.otherwise))

    x = y = fresh(real)
    for _ in range(6):
        [y] = cond(y > 0.1, lambda y=y: [sin(y)], lambda y=y: [y * 2.0])
    assert control_nodes(merge([y, *tangents([y], {x: 1.0})])) == 6
