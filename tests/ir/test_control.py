"""Control flow as nodes: scopes of subgraphs, hoisting, loops extended by their tangents, merging, and errors."""

import numpy as np
import pytest

from dynagrad.autodiff.derive import tangents
from dynagrad.errors import Error
from dynagrad.ir import exp, order, sin, variable
from dynagrad.ir.builders import call, cond, define, function, merge, repeat, while_
from dynagrad.ir.control import (
    COND,
    PUSH,
    REPEAT,
    WHILE,
    Graph,
    GraphFunction,
    empty,
    extended,
    part,
    part_types,
    parts,
    pop,
    push,
    values,
)
from dynagrad.ir.interpret import evaluate, run
from dynagrad.ir.node import constant, fresh, whole
from dynagrad.ir.types import arrays, boolean, integer, real, stack

x, y = variable("x"), variable("y")
n = variable("n", integer)


def the(outputs, operation):
    """The only node of an operation."""
    [found] = [node for node in order(outputs) if node.operation is operation]
    return found


def operations(graph):
    return [node.operation.name for node in order(graph.outputs) if node.arguments]


# -- several values ----------------------------------------------------------------------------------------------------


def test_the_type_of_several_values_is_one_object():
    assert values([real, integer]) is values([real, integer]) and values([real]) is not values([integer])
    assert str(values([real, arrays(integer, (2,))])) == "(real, integer[2])"


def test_parts_have_the_types_of_the_results():
    outputs = repeat(n, lambda i, s, t: [s * 2.0, t + i], [x, whole(0)])
    node = the(outputs, REPEAT)
    assert part_types(node) == (real, integer) and [o.type for o in outputs] == [real, integer]
    assert all(a is b for a, b in zip(parts(node), outputs, strict=True)) and part(node, 1) is outputs[1]


# -- what a subgraph is ------------------------------------------------------------------------------------------------


def test_a_graph_is_a_function():
    graph = Graph((x, y), (x * y, x + 1.0))
    assert graph(y, y) == (y * y, y + 1.0)
    assert repr(graph) == "<graph of 2 inputs, 2 outputs>"


def test_a_subgraph_sees_its_inputs_alone():
    outer = exp(x)
    [z] = cond(x > 0.0, lambda: [outer * y], lambda: [outer])
    node = the([z], COND)
    for graph in (node.attribute.then, node.attribute.otherwise):
        assert {v for v in order(graph.outputs) if v.is_variable} <= set(graph.inputs)
    assert set(node.arguments) == {x > 0.0, outer, y}  # exp(x) is older than the branches


def test_what_only_a_branch_makes_stays_in_it():
    [z] = cond(x > 0.0, lambda: [exp(x) * y], lambda: [x])
    node = the([z], COND)
    assert operations(node.attribute.then) == ["exp", "multiply"] and operations(node.attribute.otherwise) == []


def test_what_does_not_change_is_moved_out_of_a_loop():
    [z] = repeat(n, lambda i, s: [s * exp(y)], [x])
    node = the([z], REPEAT)
    assert operations(node.attribute.body) == ["multiply"]
    assert exp(y) in set(node.arguments)


def test_what_may_not_end_is_not_moved_out_of_a_loop():
    """It would run also where the loop has no rounds."""
    [z] = repeat(n, lambda i, s: [s + while_(lambda t: t > y, lambda t: [t * y], [y])[0]], [x])
    assert "while" in operations(the([z], REPEAT).attribute.body)


def test_states_that_no_round_changes_are_not_states():
    [a, b, c] = repeat(n, lambda i, s, t, u: [s * u, t, u], [x, y, 2.0])
    node = the([a], REPEAT)
    assert part_types(node) == (real,) and b is y and c is constant(2.0)
    assert repeat(n, lambda i, s: [s], [x]) == [x]


def test_a_condition_that_is_known_decides_at_once():
    assert cond(constant(True), lambda: [x], lambda: [y]) == [x]
    assert cond(constant(False), lambda: [x], lambda: [y]) == [y]


def test_results_agree_on_a_type():
    [z] = cond(x > 0.0, lambda: [1], lambda: [x])
    assert z.type is real and evaluate([z], {"x": 2.0}) == (1.0,)
    [z] = cond(x > 0.0, lambda: [n], lambda: [x > 1.0])
    assert z.type is integer
    [z] = repeat(3, lambda i, s: [s + i], [x])  # a whole number becomes a real where one is wanted
    assert evaluate([z], {"x": 0.5}) == (3.5,)


def test_loops_that_say_the_same_are_not_the_same_node():
    """A body is traced anew, so its inputs are others; `merge` and the optimiser know more."""

    def made():
        return repeat(n, lambda i, s: [s * s], [x])[0]

    assert made() is not made()


# -- functions ---------------------------------------------------------------------------------------------------------


def test_a_function_is_called_with_what_can_be_made_its_types():
    f = function("f", (real, integer), (real,), lambda a, k: [a * k])
    assert evaluate(call(f, 2, 3), {}) == (6.0,)
    with pytest.raises(Error, match="the function f: result 2 is a real, and should be a integer"):
        call(f, x, x)
    assert repr(f) == "<function f of the graph>"


def test_functions_may_call_one_another():
    even, odd = GraphFunction("even", (integer,), (boolean,)), GraphFunction("odd", (integer,), (boolean,))
    define(even, lambda k: cond(k > 0, lambda: call(odd, k - 1), lambda: [constant(True)]))
    define(odd, lambda k: cond(k > 0, lambda: call(even, k - 1), lambda: [constant(False)]))
    assert [evaluate(call(even, n), {"n": k})[0] for k in range(4)] == [True, False, True, False]


# -- stacks ------------------------------------------------------------------------------------------------------------


def test_each_empty_stack_is_one_of_its_own():
    assert empty() is not empty() and empty().type is stack


def test_nothing_pushed_and_nothing_popped_is_no_node():
    s = empty()
    assert push(s, []) is s and pop(s, []) == (s, [])


def test_a_stack_may_be_a_state():
    s, total = repeat(n, lambda i, s, t: [push(s, [t]), t * 2.0], [empty(), x])
    _, items = repeat(2, lambda i, s, t: [pop(s, [real])[0], t * 10.0 + pop(s, [real])[1][0]], [s, 0.0])
    assert evaluate([total, items], {"x": 1.0, "n": 3}) == (8.0, 42.0)
    assert [a.type for a in the(the([total], REPEAT).attribute.body.outputs, PUSH).arguments] == [stack, real]


# -- extending ---------------------------------------------------------------------------------------------------------


def test_a_tangent_extends_the_loop_that_it_is_of():
    [z] = while_(lambda s: s < 9.0, lambda s: [s * s + y], [x])
    node = the([z], WHILE)
    [dz] = tangents([z], {x: 1.0})
    assert extended(the([dz], WHILE)) is node
    together = merge([z, dz])
    assert the(together, WHILE) is the([dz], WHILE)
    assert run(Graph((x, y), together), (2.0, 1.0)) == run(Graph((x, y), (z,)), (2.0, 1.0)) + run(
        Graph((x, y), (dz,)), (2.0, 1.0)
    )


def test_merging_goes_on_to_what_depends_on_the_old_node():
    [z] = repeat(3, lambda i, s: [s * y], [x])
    [dz] = tangents([z], {y: 1.0})
    w = sin(z)
    outputs = merge([w, dz])
    assert the(outputs, REPEAT) is the([dz], REPEAT)
    assert run(Graph((x, y), outputs), (2.0, 0.5)) == (np.sin(0.25), 1.5)


def test_merging_leaves_what_is_older_alone():
    [z] = repeat(3, lambda i, s: [s * y], [x])
    [dz] = tangents([z], {y: 1.0})
    before = merge([z, dz], since=fresh().birth)
    assert before[0] is z and before[1] is dz


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: cond(1.0, lambda: [x], lambda: [x]), "cond: the condition should be a truth value, and is 1.0"),
        (lambda: cond(x > 0, lambda: [x], lambda: []), "one branch has 1 result and the other 0"),
        (lambda: cond(x > 0, lambda: ["x"], lambda: [x]), "a branch gives 'x', which is no value of a graph"),
        (lambda: cond(x > 0, lambda: [x], lambda: [np.ones(2)]), r"one branch gives a real and the other a real\[2\]"),
        (lambda: while_(lambda s: s, lambda s: [s], [x]), "while: the condition should be a truth value"),
        (lambda: while_(lambda s: s < 1.0, lambda s: [s, s], [x]), "while: 1 value wanted, and 2 given"),
        (lambda: repeat(n, lambda i, s: [], [x]), "repeat: 1 value wanted, and 0 given"),
        (
            lambda: call(GraphFunction("f", (real,), (real,)), x, y),
            "the function f: 1 value wanted, and 2 given",
        ),
        (lambda: repeat(1.5, lambda i, s: [s], [x]), "repeat: the count should be a whole number, and is 1.5"),
        (lambda: repeat(n, lambda i, s: [s], [None]), "repeat: result 1 is None, which is no value of a graph"),
        (lambda: repeat(n, lambda i, s: [s * x], [n]), "repeat: result 1 is a real, and should be a integer"),
        (lambda: function("f", (real,), (real,), lambda a: [a * x]), "the function f uses x, which is not an argument"),
        (
            lambda: tangents(call(GraphFunction("f", (real,), (real,)), x), {x: 1.0}),
            "f is differentiated before it has",
        ),
        (lambda: the(repeat(n, lambda i, s: [s * x], [x]), REPEAT).operation.value(), "control flow is computed by"),
    ],
)
def test_errors_say_what_is_wrong(attempt, message):
    with pytest.raises(Error, match=message):
        attempt()


def test_a_loop_without_rounds_reads_at_no_index():
    """What does not change from round to round moves out of a loop, but not what may be an error."""
    x, k, n, s = fresh(arrays(real, (3,))), fresh(integer), fresh(integer), variable("s")
    [y] = repeat(n, lambda i, s: [s + x[k] * x[k]], [s])
    graph = Graph((x, k, n, s), (y,))
    assert run(graph, [np.array([1.0, 2.0, 3.0]), 7, 0, 5.0]) == (5.0,)
    assert run(graph, [np.array([1.0, 2.0, 3.0]), 2, 2, 5.0]) == (23.0,)
