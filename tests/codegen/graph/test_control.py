"""Branches, loops, calls and stacks in native code, against the interpreter; inputs are never written to.

Costs ten seconds.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.codegen.graph import emit, load, run
from dynagrad.errors import Error
from dynagrad.ir import builders, control
from dynagrad.ir.builders import call, cond, repeat, while_
from dynagrad.ir.control import Graph, empty, pop, push
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import Node, fresh, whole
from dynagrad.ir.ops import arrays as on_arrays
from dynagrad.ir.ops import integers, reductions
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.ops.places import at_add, at_set
from dynagrad.ir.types import arrays, boolean, integer, real, stack


def real_of(*shape: int) -> Node:
    return fresh(arrays(real, shape))


def agree(inputs: list[Node], outputs: list[Any], *several: list[Any]) -> str:
    """Compares on several inputs; the C++."""
    graph = Graph(tuple(inputs), tuple(outputs))
    native = load(graph)
    for values in several:
        copies = [np.copy(v) if np.ndim(v) else v for v in values]
        wanted = interpret(graph, values)
        for _ in range(2):  # memory that was used before must not matter
            for got, expected, node in zip(native(*copies), wanted, outputs, strict=True):
                assert np.shape(got) == node.shape
                np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13, equal_nan=True)
        for copy, value in zip(copies, values, strict=True):
            np.testing.assert_array_equal(copy, value)
    return native.text.source


A = np.random.default_rng(3).normal(size=(4, 3))


def test_branches() -> None:
    x, n, m = fresh(real), fresh(integer), real_of(4, 3)
    number = cond(x > 0.0, lambda: [ops.sqrt(x), 1.0], lambda: [-x, x * 2.0])
    nested = cond(x > 0.0, lambda: cond(x > 2.0, lambda: [1.0], lambda: [2.0]), lambda: [3.0])
    array = cond(x > 0.0, lambda: [m * 2.0, m], lambda: [ops.exp(m), reductions.total((0,), True)(m) + m])
    swapped = cond(x > 0.0, lambda: [array[0], array[1]], lambda: [array[1], array[0]])
    changed = cond(x > 0.0, lambda: [at_set(array[0], n, 7.0)], lambda: [array[0]])
    truth = cond(x > 0.0, lambda: [x > 5.0, n], lambda: [x < 5.0, n + 1])
    outputs = [*number, *nested, *array, *swapped, *changed, *truth]
    agree([x, n, m], outputs, [1.5, 2, A], [-1.5, 0, A], [3.0, -1, A], [float("nan"), 1, A])


def test_what_only_a_branch_looks_at_is_computed_in_it() -> None:
    x, m, i = fresh(real), real_of(4, 3), fresh(integer)
    dear, row = ops.exp(m), m[i]
    outputs = cond(
        x > 0.0, lambda: [reductions.total((0, 1))(dear)], lambda: [reductions.total((0,))(row) + ops.log(x)]
    )
    source = agree([x, m, i], outputs, [1.0, A, 1], [-1.0, A, 2])
    assert source.index("if (t") < source.index("vector::exp") < source.index("} else {") < source.index(" log(")
    run(Graph((x, m, i), tuple(outputs)), [1.0, A, 99])  # nobody looks at the row
    with pytest.raises(IndexError):
        run(Graph((x, m, i), tuple(outputs)), [-1.0, A, 99])


def test_loops_over_numbers() -> None:
    x, n = fresh(real), fresh(integer)
    collatz = while_(
        lambda a, k: integers.not_equal(a, 1),
        lambda a, k: [cond(integers.equal(a % 2, 0), lambda: [a // 2], lambda: [3 * a + 1])[0], k + 1],
        [n, whole(0)],
    )
    fibonacci = repeat(n, lambda i, a, b: [b, a + b], [x, x * 2.0])
    mixed = repeat(5, lambda i, a, b, k: [b * 1.0, a * integers.to_real(i), k + i], [x, 1.0, n])
    never = repeat(whole(-3), lambda i, a: [a * 2.0], [x])
    agree([x, n], [*collatz, *fibonacci, *mixed, *never], [0.5, 27], [2.0, 1], [-1.0, 9])


def test_arrays_as_states_that_change_in_place() -> None:
    m, n = real_of(4, 3), fresh(integer)
    marked = repeat(4, lambda i, a: [at_set(a, i, a[i] * 2.0 + 1.0)], [m])
    shifted = repeat(3, lambda i, a: [at_set(a, i, a[i + 1])], [m])
    summed = repeat(n, lambda i, a: [a * 0.5 + 1.0], [m])
    mixed = repeat(n, lambda i, a: [on_arrays.matmul(on_arrays.transpose((1, 0))(a), a) * 0.1], [m[:3]])
    agree([m, n], [*marked, *shifted, *summed, *mixed], [A, 3], [A, 0])


def test_states_that_change_places() -> None:
    a, b, n = real_of(5), real_of(5), fresh(integer)
    swap = repeat(n, lambda i, x, y: [y, x], [a, b])
    turn = repeat(n, lambda i, x, y, z: [y, z, x + y], [a, b, a * b])
    both = repeat(n, lambda i, x, y: [x[::-1] + y, x], [a, b])
    same = repeat(n, lambda i, x, y: [x + y, x + y], [a, b])
    outside = repeat(n, lambda i, x, y: [b, x + b], [a, b])
    twice = repeat(n, lambda i, x, y: [x, x], [a, b])
    nested = repeat(n, lambda i, x, y: repeat(i, lambda j, u, v: [v * 0.5, u[::-1]], [y, x]), [a, b])
    outputs = [*swap, *turn, *both, *same, *outside, *twice, *nested]
    values = [np.arange(5.0), np.arange(5.0) ** 2 - 3.0]
    agree([a, b, n], outputs, [*values, 0], [*values, 1], [*values, 2], [*values, 5])


def test_one_array_begins_several_states() -> None:
    a, n = real_of(3), fresh(integer)
    start = ops.exp(a)
    both = repeat(n, lambda i, x, y: [at_set(x, 0, 1.0), at_add(y, 1, 2.0)], [start, start])
    later = repeat(n, lambda i, x: [at_add(x, 1, start)], [on_arrays.stack(0, 2)(start, start)])
    agree([a, n], [*both, *later, start], [np.arange(3.0), 3], [np.arange(3.0), 0])


def test_while_over_arrays() -> None:
    m = real_of(3, 3)
    power = while_(
        lambda x, k: reductions.total((0, 1))(ops.absolute(x)) < 1000.0,
        lambda x, k: [on_arrays.matmul(x, x), k + 1],
        [m, whole(0)],
    )
    agree([m], power, [np.eye(3) + 0.1], [np.full((3, 3), 500.0)])


def test_branches_within_loops_change_an_array_in_place() -> None:
    a, n = real_of(8), fresh(integer)

    def bubble(i: Node, x: Node) -> list[Any]:
        def inner(j: Node, x: Node) -> list[Any]:
            left, right = x[j], x[j + 1]
            return cond(left > right, lambda: [at_set(at_set(x, j, right), j + 1, left)], lambda: [x])

        return repeat(whole(7) - i, inner, [x])

    values = np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0, 6.0])
    source = agree([a, n], repeat(n, bubble, [a]), [values, 8], [values, 2])
    assert source.count("memcpy") <= 2  # in, and out


def test_an_elimination_needs_no_checks_and_no_copies() -> None:
    n = 6
    m = real_of(n, n)

    def below(k: Node, x: Node) -> list[Any]:
        def row(t: Node, x: Node) -> list[Any]:
            i = k + 1 + t
            factor = x[i, k] / x[k, k]

            def entry(u: Node, x: Node) -> list[Any]:
                j = k + 1 + u
                return [at_set(x, (i, j), x[i, j] - factor * x[k, j])]

            return repeat(whole(n) - k - 1, entry, [x])

        return repeat(whole(n) - k - 1, row, [x])

    source = agree([m], repeat(n, below, [m]), [np.eye(n) * 3 + np.ones((n, n))])
    assert "outside" not in source and source.count("memcpy") == 1


def test_indices_that_are_checked_before_a_loop() -> None:
    x, n, start = real_of(10), fresh(integer), fresh(integer)
    total = repeat(n, lambda i, s: [s + x[start + i * 2]], [0.0])
    graph = Graph((x, n, start), tuple(total))
    values = np.arange(10.0)
    agree([x, n, start], total, [values, 3, 2], [values, 3, -4], [values, 0, 77], [values, 5, 1], [values, 7, -10])
    for count, first in ((6, 0), (4, 4), (1, 10), (1, -11), (2**40, 0), (3, 2**63 - 1)):
        with pytest.raises(IndexError):
            run(graph, [values, count, first])


def test_recursion() -> None:
    x, n = fresh(real), fresh(integer)
    power = control.GraphFunction("power", (real, integer), (real,))
    builders.define(power, lambda x, n: cond(n > 0, lambda: [x * call(power, x, n - 1)[0]], lambda: [1.0]))
    halves = control.GraphFunction("halves", (arrays(real, (4,)), integer), (arrays(real, (4,)), integer))

    def body(v: Node, n: Node) -> list[Any]:
        def deeper() -> list[Any]:
            first, count = call(halves, v * 0.5, n - 1)
            second, more = call(halves, v[::-1], n - 2)
            return [first + second + v, count + more]

        return cond(n > 0, deeper, lambda: [v, whole(1)])

    builders.define(halves, body)
    v = real_of(4)
    agree([x, n, v], [*call(power, x, n), *call(halves, v, n)], [1.5, 7, np.arange(4.0)], [2.0, 0, np.arange(4.0)])


def test_recursion_without_end_is_an_error() -> None:
    n = fresh(integer)
    endless = control.GraphFunction("endless", (integer,), (integer,))
    builders.define(endless, lambda n: [call(endless, n + 1)[0] + 1])
    native = load(Graph((n,), tuple(call(endless, n))))
    with pytest.raises(RecursionError):
        native(0)
    failures: list[BaseException] = []

    def attempt() -> None:
        try:
            native(0)
        except RecursionError as error:
            failures.append(error)

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert failures


def test_stacks() -> None:
    x, n, m = fresh(real), fresh(integer), real_of(3)
    [saved, last] = repeat(n, lambda i, s, y: [push(s, [y, i, y > 2.0, m * y]), y * 1.5], [empty(), x])

    def back(i: Node, s: Node, total: Node, sums: Node) -> list[Any]:
        rest, (y, k, large, v) = pop(s, (real, integer, boolean, arrays(real, (3,))))
        weight = integers.to_real(k) * y
        return [rest, total * 0.5 + ops.where(large, weight, -y), sums + v * weight]

    found = repeat(n, back, [saved, last, m])
    agree([x, n, m], found[1:], [1.0, 5, np.arange(3.0)], [1.0, 0, np.arange(3.0)], [0.5, 3000, np.ones(3) * 1e-300])


def test_stacks_through_nested_loops_of_unknown_length() -> None:
    x, limit = fresh(real), fresh(real)

    def outer(s: Node, a: Node, k: Node) -> list[Any]:
        s2, _, count = while_(
            lambda s, b, c: b < limit, lambda s, b, c: [push(s, [b]), b * 2.0, c + 1], [s, a, whole(0)]
        )
        return [push(s2, [count]), a + 1.0, k + 1]

    s, _, rounds = while_(lambda s, a, k: a < limit, outer, [empty(), x, whole(0)])

    def back(i: Node, s: Node, total: Node) -> list[Any]:
        rest, (count,) = pop(s, (integer,))

        def inner(j: Node, s: Node, total: Node) -> list[Any]:
            rest, (b,) = pop(s, (real,))
            return [rest, total * 0.9 + b]

        return repeat(count, inner, [rest, total])

    found = repeat(rounds, back, [s, 0.0])
    agree([x, limit], [found[1], rounds], [1.0, 20.0], [5.0, 1.0], [0.001, 50.0])


def test_stacks_through_branches_and_calls() -> None:
    x, n = fresh(real), fresh(integer)
    down = control.GraphFunction("down", (real, integer, stack), (real, stack))

    def body(x: Node, n: Node, s: Node) -> list[Any]:
        def deeper() -> list[Any]:
            y, t = call(down, x * 0.5, n - 1, push(s, [x]))
            return [y + x, push(t, [y])]

        return cond(n > 0, deeper, lambda: [x, s])

    builders.define(down, body)
    value, s = call(down, x, n, empty())

    def back(i: Node, s: Node, total: Node) -> list[Any]:
        rest, (y,) = pop(s, (real,))
        return [rest, total * 3.0 + y]

    found = repeat(n + n, back, [s, 0.0])
    agree([x, n], [value, found[1]], [1.0, 0], [1.0, 1], [3.0, 40])


def test_a_stack_without_end_is_an_error() -> None:
    n = fresh(integer)
    [s, _] = repeat(n, lambda i, s, y: [push(s, [y, y]), y + 1.0], [empty(), 0.0])
    _, (y, _) = pop(s, (real, real))
    with pytest.raises(MemoryError, match=r"saves more than 2 GB for its way back.*does it end\?.*dg\.checkpoint"):
        run(Graph((n,), (y,)), [2**60])


def test_how_much_a_loop_may_save_can_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def forever(x: Any) -> Any:
        while x > 0.0:
            x = np.sin(x) ** 2 + 1.0
        return x

    monkeypatch.setenv("DYNAGRAD_SAVED_GB", "0.0625")
    with pytest.raises(MemoryError, match=r"more than 64 MB for its way back.*does it end\?.*DYNAGRAD_SAVED_GB"):
        dg.compile(dg.grad(forever))(1.0)
    for wrong in ("much", "-1", "0", "nan"):
        monkeypatch.setenv("DYNAGRAD_SAVED_GB", wrong)
        with pytest.raises(Error, match="DYNAGRAD_SAVED_GB should be a number of gigabytes"):
            dg.compile(dg.grad(forever))(1.0)


def test_a_loop_without_end_can_be_interrupted() -> None:
    import _thread

    x = fresh(real)
    native = load(Graph((x,), tuple(while_(lambda y: y > 0.0, lambda y: [y + 1.0], [x]))))
    native(-1.0)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        native(1.0)
    timer.join()


def test_results_of_a_branch_that_lie_within_what_is_written_over() -> None:
    x, m = fresh(real), real_of(4, 3)
    big = ops.exp(m)
    outputs = cond(x > 0.0, lambda: [big * 0.0, big[1], big[2]], lambda: [big, big[0], big[3]])
    agree([x, m], outputs, [1.0, A], [-1.0, A])


def test_states_are_made_in_place_or_in_their_next_buffer() -> None:
    """Nothing is copied: in place where a state is read once more, next to it where all of it is, or in a branch."""
    x, n = real_of(5), fresh(integer)
    step = repeat(n, lambda i, y: [y + 0.1 * ops.sin(y)[::-1] * y[0]], [x])
    kept = repeat(n, lambda i, y, z: [z, y[::-1] * 0.5 + z], [x, x * 2.0])

    def branch(i: Node, y: Node) -> list[Any]:
        made = y[::-1] * 0.5
        return cond(y[0] > 0.0, lambda: [at_set(made, 0, -1.0)], lambda: [made])

    source = agree([x, n], [*step, *kept, *repeat(n, branch, [x])], [np.arange(5.0), 7], [np.ones(5), 0])
    bodies = source.split("for (int64_t r")[1:]
    assert [b[: b.index(" = n")].count("memcpy") for b in bodies if "_next" in b] == [0, 0, 0]


def test_a_stack_may_be_taken_off_twice() -> None:
    x, n = fresh(real), fresh(integer)
    [s, _] = repeat(n, lambda i, s, y: [push(s, [y]), y * 1.5 + 1.0], [empty(), x])

    def back(i: Node, s: Node, total: Node) -> list[Any]:
        rest, (y,) = pop(s, (real,))
        return [rest, total * 0.5 + y]

    first = repeat(n, back, [s, 0.0])[1]
    second = repeat(n, back, [s, 1.0])[1]
    again = repeat(2, lambda j, t: [t + repeat(n, back, [s, t])[1]], [0.0])
    agree([x, n], [first, second, *again], [1.0, 4], [2.0, 0], [1.0, 30])


def test_adjoints_of_reading_are_added_in_place() -> None:
    x, n = real_of(50), fresh(integer)

    def body(i: Node, total: Node) -> list[Any]:
        place = on_arrays.place((7,), (50,))
        return [total + (at_add(place(x[i]), i + 1, 2.0) + place(x[i + 2]))]

    source = agree([x, n], repeat(9, body, [x]), [np.arange(50.0), 1])
    assert "< 50;" not in source  # what would be added to most elements is zero


def test_many_threads() -> None:
    m, n = real_of(50), fresh(integer)
    graph = Graph((m, n), tuple(repeat(n, lambda i, a: [a[::-1] * 0.5 + 1.0], [m])))
    native = load(graph)
    wrong: list[object] = []

    def work(seed: int) -> None:
        values = np.random.default_rng(seed).normal(size=50)
        for k in range(30):
            expected = values
            for _ in range(k):
                expected = expected[::-1] * 0.5 + 1.0
            if not np.allclose(native(values, k)[0], expected, rtol=1e-13):
                wrong.append((seed, k))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_text_is_the_same_each_time() -> None:
    x = fresh(real)
    graph = Graph((x,), tuple(repeat(3, lambda i, y: [ops.exp(y) * y], [x])))
    assert emit(graph).source == emit(graph).source
