"""Congruent loop states, equal in every round, become one; values and derivatives stay."""

from __future__ import annotations

import math

import pytest

from dynagrad.autodiff.derive import generate_adjoints, tangents
from dynagrad.ir import exp, sin
from dynagrad.ir.builders import repeat, while_
from dynagrad.ir.control import REPEAT, WHILE, Graph, part_types
from dynagrad.ir.interpret import run
from dynagrad.ir.node import Node, constant, fresh, order, substitute, variable
from dynagrad.ir.value_numbering.congruent_states import congruent


def states_of(outputs: list[Node]) -> list[int]:
    """How many states each loop has."""
    return [len(part_types(n)) for n in order(outputs) if n.operation in (REPEAT, WHILE)]


class TestWhatIsEqual:
    def test_the_same_steps_from_the_same_start(self) -> None:
        x = variable("x")
        outputs = repeat(3, lambda i, a, b: [sin(a), sin(b)], [x, x])
        assert outputs[0] is outputs[1]
        assert states_of(outputs) == [1]
        assert run(Graph((x,), tuple(outputs)), [0.5]) == (math.sin(math.sin(math.sin(0.5))),) * 2

    def test_other_starts_are_other_states(self) -> None:
        x = variable("x")
        assert states_of(repeat(3, lambda i, a, b: [sin(a), sin(b)], [x, x + 1.0])) == [2]

    def test_states_that_take_turns(self) -> None:
        """Neither makes the same of itself, and yet both are equal."""
        x = variable("x")
        assert states_of(repeat(3, lambda i, a, b: [2.0 * b, 2.0 * a], [x, x])) == [1]

    def test_a_difference_spreads(self) -> None:
        x = variable("x")
        [a, b, c, d] = (fresh() for _ in range(4))
        assert congruent([a, b, c, d], [2.0 * b, 2.0 * c, 2.0 * d, 3.0 * d], [x] * 4) == {}
        assert congruent([a, b, c, d], [2.0 * d, 2.0 * d, 3.0 * d, sin(d)], [x] * 4) == {1: 0}

    def test_the_first_ones_may_have_to_stay(self) -> None:
        x = variable("x")
        [a, b, c] = (fresh() for _ in range(3))
        assert congruent([a, b, c], [sin(a), sin(b), sin(c)], [x] * 3, keep=2) == {2: 0}

    def test_states_of_a_condition(self) -> None:
        x = variable("x")
        outputs = while_(lambda a, b: b < 100.0, lambda a, b: [a * a, b * b], [x, x])
        assert states_of(outputs) == [1]
        assert run(Graph((x,), tuple(outputs)), [3.0]) == (6561.0, 6561.0)


class TestDerivatives:
    def test_the_second_derivative_carries_the_first_one_once(self) -> None:
        x = variable("x")
        [y] = repeat(5, lambda i, y: [sin(y) + 0.1 * exp(y)], [x])
        [first] = tangents([y], {x: constant(1.0)})
        [second] = tangents([first], {x: constant(1.0)})
        assert states_of([y, first, second])[-1] == 3
        graph = Graph((x,), (y, first, second))
        h, (_, _, slope) = 1e-5, run(graph, [0.3])
        up, down = run(graph, [0.3 + h]), run(graph, [0.3 - h])
        assert slope == pytest.approx((up[1] - down[1]) / (2 * h), rel=1e-8)

    def test_adjoints_of_states_that_were_joined_add_up(self) -> None:
        x = variable("x")
        [a, b] = repeat(4, lambda i, a, b: [sin(a) * 1.5, sin(b) * 1.5], [x, x])
        [alone] = repeat(4, lambda i, a: [sin(a) * 1.5], [x])
        both = generate_adjoints([a, b], [constant(2.0), constant(3.0)], [x])[x]
        one = generate_adjoints([alone], [constant(5.0)], [x])[x]
        assert both is not None and one is not None
        assert run(Graph((x,), (both,)), [0.7]) == run(Graph((x,), (one,)), [0.7])

    def test_an_extended_loop_keeps_its_states_in_place(self) -> None:
        """Where outer values turned out to be equal after the loop was made."""
        x, p, q = variable("x"), variable("p"), variable("q")
        outputs = repeat(3, lambda i, a, b: [sin(a) * 2.0, sin(b) * 2.0], [p, q])
        joined = substitute(outputs, {p: x, q: x})
        found = tangents(list(joined), {x: constant(1.0)})
        assert all(f is not None for f in found)
        graph = Graph((x,), (*joined, *(f for f in found if f is not None)))
        a, b, da, db = run(graph, [0.4])
        assert a == b and da == db
        assert da == pytest.approx((run(graph, [0.4 + 1e-6])[0] - run(graph, [0.4 - 1e-6])[0]) / 2e-6, rel=1e-8)
