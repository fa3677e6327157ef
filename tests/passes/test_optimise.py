"""Optimisation of whole graphs: what is removed inside control flow, and that values stay."""

import numpy as np
import pytest

from dynagrad.autodiff.derive import generate_adjoints, tangents
from dynagrad.ir import exp, negative, order, sin, variable
from dynagrad.ir.builders import call, cond, define, merge, repeat, while_
from dynagrad.ir.control import CALL, COND, LOOPS, REPEAT, WHILE, Graph, GraphFunction, part_types
from dynagrad.ir.interpret import run
from dynagrad.ir.node import constant, fresh, whole
from dynagrad.ir.ops.arrays import broadcast_to, reshape, transpose
from dynagrad.ir.ops.reductions import total
from dynagrad.ir.types import arrays, integer, real
from dynagrad.passes.optimise import optimise

x, y = variable("x"), variable("y")
n = variable("n", integer)
INPUTS, POINT = (x, y, n), (0.7, 1.3, 4)


def there_and_back(node):
    return negative(negative(node))


def small(*outputs):
    """The graph of some outputs, made smaller; it computes the same."""
    graph = Graph(INPUTS, outputs)
    found = optimise(graph)
    assert found.inputs is graph.inputs
    np.testing.assert_allclose(run(found, POINT), run(graph, POINT), rtol=1e-14)
    return found


def the(graph, operation):
    [found] = [node for node in order(graph.outputs) if node.operation is operation]
    return found


def count(graph, operation):
    return len([node for node in order(graph.outputs) if node.operation is operation])


# -- loops -------------------------------------------------------------------------------------------------------------


def test_a_state_that_nobody_looks_at_goes():
    _, a = repeat(n, lambda i, s, t: [exp(s), t * y], [x, y])
    assert part_types(the(small(a), REPEAT)) == (real,)


def test_a_state_that_another_needs_stays():
    _, a = repeat(n, lambda i, s, t: [sin(s), t * s], [x, y])
    assert part_types(the(small(a), REPEAT)) == (real, real)


def test_a_state_that_the_condition_needs_stays():
    _, a = while_(lambda s, t: s < 9.0, lambda s, t: [s * 2.0, t * y], [x, y])
    assert part_types(the(small(a), WHILE)) == (real, real)


def test_states_that_only_need_themselves_go_together():
    _, _, a = repeat(n, lambda i, s, t, u: [sin(t), exp(-s), u * y], [x, y, x])
    assert part_types(the(small(a), REPEAT)) == (real,)


def test_a_state_that_turns_out_not_to_change_becomes_an_input():
    _, a = repeat(n, lambda i, s, t: [there_and_back(s), t * s], [x, y])
    node = the(small(a), REPEAT)
    assert part_types(node) == (real,) and set(node.arguments) == {n, x, y}


def test_constants_from_outside_are_constants_inside():
    two = constant(1.0) + constant(1.0)
    [a] = repeat(n, lambda i, s: [s * two], [x])
    node = the(small(a), REPEAT)
    assert len(node.arguments) == 2 and constant(2.0) in set(order(node.attribute.body.outputs))


def test_arrays_of_one_number_are_made_inside():
    ones = broadcast_to((3,))(1.0)
    [a] = repeat(n, lambda i, a: [a * y + ones], [broadcast_to((3,))(x)])
    loop = the(small(total((0,))(a)), REPEAT)
    assert [v.type for v in loop.attribute.body.inputs] == [integer, arrays(real, (3,)), real]  # and y


def test_equal_inputs_are_one():
    p, q = fresh(), fresh()
    [a] = repeat(n, lambda i, s: [s * p + q], [x])
    graph = Graph((x, y, n), Graph((p, q), (a,))(y, there_and_back(y)))
    found = optimise(graph)
    assert len(the(found, REPEAT).arguments) == 3
    assert run(found, POINT) == run(graph, POINT)


def test_a_loop_of_no_rounds_is_where_it_began():
    [a] = repeat(whole(2) - whole(2), lambda i, s: [exp(s)], [x])
    assert small(a).outputs == (x,)


def test_a_loop_that_is_extended_runs_once():
    [a] = repeat(n, lambda i, s: [sin(s) * y], [x])
    assert count(small(a, *tangents([a], {y: 1.0})), REPEAT) == 1


def test_loops_inside_are_made_smaller_too():
    def inner(i, s):
        _, t = repeat(i, lambda j, u, v: [exp(u), v * 1.0 + y], [s, s])
        return [t]

    [a] = repeat(n, inner, [x])
    body = the(small(a), REPEAT).attribute.body
    loop = the(body, REPEAT)
    assert part_types(loop) == (real,)
    assert [m.operation.name for m in order(loop.attribute.body.outputs) if m.arguments] == ["add"]


# -- branches and calls ------------------------------------------------------------------------------------------------


def test_a_result_of_branches_that_nobody_looks_at_goes():
    _, a = cond(x > 0.0, lambda: [exp(x), y], lambda: [sin(x), -y])
    node = the(small(a), COND)
    assert part_types(node) == (real,) and x not in set(node.arguments)


def test_a_condition_that_becomes_known_decides():
    [a] = cond((x > 0.0) & (constant(1.0) > 2.0), lambda: [exp(x)], lambda: [y])
    assert small(a).outputs == (y,)


def test_what_both_branches_pass_on_is_no_result_of_theirs():
    a, b = cond(x > 0.0, lambda: [exp(x), y * 1.0], lambda: [sin(x), y])
    found = small(a, b)
    assert found.outputs[1] is y and part_types(the(found, COND)) == (real,)
    assert small(cond(x > 0.0, lambda: [y], lambda: [y / 1.0])[0]).outputs == (y,)


def test_equal_branches_stay_a_choice():
    """That both say the same is not looked for, but what they say is not lost."""
    [a] = cond(x > 0.0, lambda: [y * 2.0], lambda: [2.0 * y])
    assert run(small(a), POINT) == (2.6,)


def test_functions_are_made_smaller_once_and_may_be_recursive():
    power = GraphFunction("power", (real, integer), (real,))
    one = there_and_back(constant(1.0))
    define(power, lambda a, k: cond(k > 0, lambda: [call(power, a, k - 1)[0] * a * 1.0], lambda: [one]))
    found = small(*call(power, x, n), *call(power, y, n))
    made = {node.attribute.function for node in order(found.outputs) if node.operation is CALL}
    assert len(made) == 1
    [again] = made
    [branches] = [node.attribute for node in order(again.graph.outputs) if node.operation is COND]
    [inner] = [node for node in order(branches.then.outputs) if node.operation is CALL]
    assert inner.attribute.function is again
    assert [m.operation.name for m in order(branches.then.outputs) if m.arguments].count("multiply") == 1


# -- values ------------------------------------------------------------------------------------------------------------


def test_values_stay_also_where_they_are_infinite_or_nan():
    outputs = (x * 0.0, x - x, x + 0.0, x / x, (x * 2.0) / 2.0, there_and_back(x))
    graph = Graph((x,), outputs)
    for point in (np.inf, -np.inf, np.nan, -0.0, 0.0, 1e308, 5e-324):
        wanted, found = run(graph, [point]), run(optimise(graph), [point])
        assert [np.float64(w).tobytes() for w in np.abs(wanted)] == [np.float64(f).tobytes() for f in np.abs(found)]
        assert [np.signbit(w) for w in wanted if w == w] == [np.signbit(f) for f in found if f == f]


def test_shapes_stay_and_views_of_views_go():
    a = fresh(arrays(real, (3, 4)))
    turned = transpose((1, 0))(transpose((1, 0))(a))
    shaped = reshape((3, 4))(reshape((12,))(a))
    spread = broadcast_to((3, 4))(broadcast_to((4,))(x)) * a
    found = optimise(Graph((a, x), (turned, shaped, spread)))
    assert found.outputs[0] is a and found.outputs[1] is a
    assert [m.operation.name for m in order(found.outputs) if m.arguments] == ["multiply"]
    assert found.outputs[2].type is a.type


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_gradient_of_a_loop_stays_the_same(rounds):
    v = fresh(arrays(real, (3,)))

    def body(i, s, w):
        return cond(s > 1.0, lambda: [s * 0.5 + w[0], w * s], lambda: [s + total((0,))(w), sin(w)])

    a, w = repeat(rounds, body, [x, v])
    z = a + total((0,))(w)
    graph = Graph((x, v), merge([z, *generate_adjoints([z], [1.0], [x, v]).values()]))
    point = (0.9, np.array([0.1, 0.2, 0.3]))
    for found, wanted in zip(run(optimise(graph), point), run(graph, point), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


def nested(depth):
    if depth == 0:
        return lambda s: sin(s) * y
    inner = nested(depth - 1)
    return lambda s: repeat(2, lambda i, t: [inner(t) + i], [s])[0]


def test_a_nest_is_gone_through_once():
    """Each level looks at its body some times; without a memory that is exponential in the depth."""
    import time

    seconds = []
    for depth in (3, 9):
        graph = Graph((x, y), (nested(depth)(x),))
        start = time.process_time()
        found = optimise(graph)
        seconds.append(time.process_time() - start)
        assert run(found, (0.3, 0.9)) == run(graph, (0.3, 0.9))
    assert seconds[1] < 1.0


def test_what_is_small_stays_as_it_is():
    [a] = while_(lambda s: s < 9.0, lambda s: [s * s + y], [x + 1.0])
    once = optimise(Graph(INPUTS, (a,)))
    twice = optimise(once)
    assert [m.operation for m in order(once.outputs)] == [m.operation for m in order(twice.outputs)]
    assert sum(m.operation in LOOPS for m in order(twice.outputs)) == 1
