"""Unroll and jam: where it applies, and that values stay. Costs ten seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynagrad.codegen.graph import run
from dynagrad.ir.builders import repeat
from dynagrad.ir.control import Graph, empty, pop, push
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import Node, fresh, whole
from dynagrad.ir.ops.arrays import broadcast_to
from dynagrad.ir.ops.places import at_add, at_set
from dynagrad.ir.ops.scalars import sin
from dynagrad.ir.types import arrays, integer, real
from dynagrad.passes.loops.unroll_and_jam import WAYS, unroll_and_jam

N = 12
m, row, count = fresh(arrays(real, (N, N))), fresh(arrays(real, (N,))), fresh(integer)
VALUES = [np.linspace(-1.0, 1.0, N * N).reshape(N, N) ** 3 + 0.1, np.linspace(0.5, -0.75, N)]
ROUNDS = (-3, 0, 1, WAYS - 1, WAYS, 2 * WAYS + 1, N - 1)


def jammed(*outputs: Any, compiled: bool = False) -> bool:
    """Whether rounds are run at once; the values agree, however many there are."""
    before = Graph((m, row, count), tuple(outputs))
    after = unroll_and_jam(before)
    for rounds in ROUNDS:
        wanted = interpret(before, [*VALUES, rounds])
        for found in (interpret(after, [*VALUES, rounds]), *([run(before, [*VALUES, rounds])] if compiled else [])):
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    return after is not before


def of_rows(times: Any, read: Any, after: Any) -> list[Node]:
    """For each row i a loop over j that adds to a row, and to a number; `after` says what becomes of the matrix."""

    def step(i: Node, a: Node, total: Node, s: Node) -> list[Any]:
        def entry(j: Node, total: Node, t: Node) -> list[Any]:
            x = a[read(i, j)]
            return [at_add(total, j, x * row[j]), t + x * x]

        total, t = repeat(N - 1, entry, [total, 0.0])
        return [after(i, a, t), total, s + t * a[i, 0]]

    return repeat(times, step, [m, row, 0.5])


class TestLoopsThatAre:
    @pytest.mark.parametrize("times", [count, N - 1, 2 * WAYS])
    def test_a_column_is_written_and_others_are_read(self, times: Any) -> None:
        assert jammed(
            *of_rows(times, lambda i, j: (i, j + 1), lambda i, a, t: at_add(a, (i, 0), sin(t))), compiled=True
        )

    def test_other_rows_are_written(self) -> None:
        assert jammed(*of_rows(count, lambda i, j: (i, j), lambda i, a, t: at_set(a, (i, 1), t)))

    def test_rows_before_are_read(self) -> None:
        assert jammed(*of_rows(count, lambda i, j: (i - WAYS, j), lambda i, a, t: at_add(a, (i, 0), t)))

    def test_nothing_is_written(self) -> None:
        assert jammed(*of_rows(count, lambda i, j: (i, j), lambda i, a, t: a), compiled=True)

    def test_values_come_off_a_stack(self) -> None:
        [saved] = repeat(count, lambda i, s: [push(s, [sin(m[i, i])])], [empty()])

        def step(i: Node, total: Node, s: Node) -> list[Any]:
            s, (x,) = pop(s, (real,))
            return [*repeat(N, lambda j, total: [at_add(total, j, x * m[i, j])], [total]), s]

        assert jammed(repeat(count, step, [row, saved])[0], compiled=True)


class TestLoopsThatAreNot:
    @pytest.mark.parametrize("back", range(1, WAYS))
    def test_what_a_round_just_before_wrote_is_read(self, back: int) -> None:
        found = of_rows(count, lambda i, j: (i - back, j), lambda i, a, t: at_add(a, (i, 0), t))
        assert not jammed(*found)

    def test_a_row_that_is_always_written(self) -> None:
        assert not jammed(*of_rows(count, lambda i, j: (0, j), lambda i, a, t: at_add(a, (0, 1), 0.1 * t)))

    def test_a_number_that_the_round_before_has_made(self) -> None:
        def step(i: Node, total: Node, s: Node) -> list[Any]:
            total, t = repeat(N, lambda j, total, t: [at_add(total, j, s * m[i, j]), t + m[i, j]], [total, 0.0])
            return [total, s + t]

        assert not jammed(*repeat(count, step, [row, 1.0]))

    def test_a_sum_that_is_read(self) -> None:
        def step(i: Node, total: Node) -> list[Any]:
            return repeat(N, lambda j, total: [at_add(total, j, total[0] * m[i, j])], [total])

        assert not jammed(*repeat(count, step, [row]))

    def test_an_array_that_changes_before_the_inner_loop(self) -> None:
        def step(i: Node, a: Node, total: Node) -> list[Any]:
            b = at_add(a, (i, i), 1.0)
            [total] = repeat(N, lambda j, total: [at_add(total, j, b[i, j])], [total])
            return [b, total]

        assert not jammed(*repeat(count, step, [m, row]))

    def test_the_inner_loop_is_not_always_as_long(self) -> None:
        def step(i: Node, total: Node) -> list[Any]:
            return repeat(i, lambda j, total: [at_add(total, j, m[i, j])], [total])

        assert not jammed(*repeat(count, step, [row]))

    def test_there_are_few_rounds(self) -> None:
        step = of_rows(2 * WAYS - 1, lambda i, j: (i, j), lambda i, a, t: a)
        assert not jammed(*step)

    def test_two_inner_loops(self) -> None:
        def step(i: Node, total: Node) -> list[Any]:
            [total] = repeat(N, lambda j, total: [at_add(total, j, m[i, j])], [total])
            return repeat(N, lambda j, total: [at_add(total, j, m[j, i])], [total])

        assert not jammed(*repeat(count, step, [row]))


OFFSET = st.integers(-5, 5)
PLACE = st.tuples(st.sampled_from([0, 1, -1, 2]), OFFSET)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(read=PLACE, write=PLACE, column=st.integers(0, N - 1), first=st.integers(0, 1))
def test_places_at_random(read: tuple[int, int], write: tuple[int, int], column: int, first: int) -> None:
    """Rows that are read and written, as multiples of the counter and an offset, where they are in range."""
    times = N // 2
    rows = [[t * i + o for i in range(times)] for t, o in (read, write)]
    if not all(-N <= r < N for r in [*rows[0], *rows[1]]):
        return
    found = of_rows(
        whole(times) if times >= 2 * WAYS else count,
        lambda i, j: (i * read[0] + read[1], j + first),
        lambda i, a, t: at_add(a, (i * write[0] + write[1], column), 0.1 * t),
    )
    before = Graph((m, row, count), tuple(found))
    for a, b in zip(
        interpret(unroll_and_jam(before), [*VALUES, times]), interpret(before, [*VALUES, times]), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_sums_that_begin_at_zeros() -> None:
    zeros = broadcast_to((N,))(0.0)

    def step(i: Node, total: Node) -> list[Any]:
        [added] = repeat(N, lambda j, s: [at_add(s, j, m[i, j])], [zeros])
        return [total + added]

    assert jammed(*repeat(count, step, [row]), compiled=True)
