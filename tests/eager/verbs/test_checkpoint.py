"""Checkpointing: gradients of long loops with a short tape. Costs twenty seconds."""

from __future__ import annotations

import functools
import itertools
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

import dynagrad as dg
import dynagrad.numpy as dnp
from dynagrad.eager.numbers import TapeCell
from dynagrad.eager.verbs.checkpoint import split
from dynagrad.ir.ops import scalars as ops

MODES = {"forward": dg.derivative, "reverse": dg.grad}


def loop(step, state, n=None, **_):
    for _ in itertools.count() if n is None else range(n):
        new = step(state)
        if new is None:
            break
        state = new
    return state


def turned(run, n, entries=None, **options):
    """A loop with two numbers for its state and a number that the step closes over."""

    def f(x, w):
        def step(state):
            a, b = state
            if entries is not None and isinstance(a, TapeCell):
                entries.append(len(a.tape.entries))
            return a * 0.999 + b * w, b - ops.sin(a) * w

        a, b = run(step, (x, 2.0 * x), n, **options)
        return a * b

    return f


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10, 300, 3000])
@pytest.mark.parametrize("snapshots", [None, 1, 2, 5])
def test_the_gradient_is_that_of_the_loop(n, snapshots):
    expected = dg.value_and_grad(turned(loop, n), (0, 1))(1.1, 0.01)
    found = dg.value_and_grad(turned(dg.checkpoint, n, snapshots=snapshots), (0, 1))(1.1, 0.01)
    assert found[0] == expected[0]
    assert found[1] == pytest.approx(expected[1], rel=1e-10)


@pytest.mark.parametrize("modes", list(itertools.product(MODES, repeat=2)))
@pytest.mark.parametrize("same", [True, False])
def test_nested_derivatives(modes, same):
    outer, inner = (MODES[m] for m in modes)

    def second(run):
        f = turned(run, 9, snapshots=3)
        if same:
            return outer(lambda x: inner(lambda y: f(y, 0.3))(x))(0.7)
        return outer(lambda x: inner(lambda w: f(x, w))(0.3))(0.7)

    assert second(dg.checkpoint) == pytest.approx(second(loop), rel=1e-12)


def test_third_derivatives_and_series():
    for run in (dg.checkpoint, loop):
        f = functools.partial(turned(run, 6), 0.7)
        found = [
            dg.grad(dg.grad(dg.grad(f)))(0.3),
            dg.grad(dg.derivative(f, 2))(0.3),
            dg.derivative(dg.grad(f), 2)(0.3),
        ]
        assert found == pytest.approx([dg.derivative(f, 3)(0.3)] * 3, rel=1e-10)


def test_the_tape_stays_short():
    entries = []
    n = 20_000
    found = dg.grad(turned(dg.checkpoint, n, entries, snapshots=50), (0, 1))(1.1, 1e-4)
    assert max(entries) < 5000
    assert found == pytest.approx(dg.grad(turned(loop, n), (0, 1))(1.1, 1e-4), rel=1e-9)


def test_the_tape_of_arrays_is_shorter():
    """A stride is counted in the arrays that its steps keep: x, w and sin(x), so that two steps are a small tape.

    Then what is on the tape when a step begins is w, the state before the stride, and the two entries of one step.
    """
    entries = []
    w, start = np.linspace(0.1, 1.0, 10_000), np.full(10_000, 0.5)

    def f(run, w):
        def step(x):
            entries.append(len(w.tape.entries))
            return ops.sin(x) * w

        return np.sum(run(step, start, 60))

    found = dg.grad(functools.partial(f, dg.checkpoint))(w)
    assert max(entries) == 4
    np.testing.assert_allclose(found, dg.grad(functools.partial(f, loop))(w), rtol=1e-12)
    assert max(entries) == 118  # without checkpoints: w, and two for each step but sin of the start


def test_how_often_a_step_is_computed():
    """With c states and binomial(c + r, c) strides, r times again; also where the number of steps is not known."""
    calls = 0
    n = 1000

    def step(state):
        nonlocal calls
        calls += 1
        x, i = state
        if i == n:
            return None
        y = x
        for _ in range(100):  # many entries: a stride is a few steps
            y = y + 0.0
        return y * 0.999, i + 1

    for known in (n, None):
        calls = 0
        assert dg.grad(lambda x, known=known: dg.checkpoint(step, (x, 0), known)[0])(1.0) == pytest.approx(0.999**n)
        assert calls < 5 * n


@pytest.mark.parametrize("n", [0, 1, 5, 100, 1000])
@pytest.mark.parametrize("snapshots", [None, 1, 3, 10])
def test_a_number_of_steps_that_is_not_known(n, snapshots):
    def f(run, x, w):
        def step(state):
            a, i = state
            return None if i == n else (a + w * ops.cos(a), i + 1)

        return run(step, (x, 0), None, snapshots=snapshots)[0]

    expected = dg.grad(functools.partial(f, loop), (0, 1))(0.5, 0.01)
    assert dg.grad(functools.partial(f, dg.checkpoint), (0, 1))(0.5, 0.01) == pytest.approx(expected, rel=1e-12)


def test_structures_and_what_a_step_returns_as_it_is():
    def f(run, w, v):
        def step(s):
            return {"a": s["b"] * v, "b": w, "n": s["n"] + 1, "x": [s["a"], s["x"][0] * s["b"]]}

        s = run(step, {"a": 1.0, "b": 2.0, "n": 0, "x": [w, np.ones(2)]}, 4)
        assert s["n"] == 4
        return s["a"] + s["b"] * s["x"][0] + np.sum(s["x"][1])

    expected = dg.grad(functools.partial(f, loop), (0, 1))(1.5, 0.7)
    assert dg.grad(functools.partial(f, dg.checkpoint), (0, 1))(1.5, 0.7) == pytest.approx(expected)


def test_checkpoints_in_checkpoints():
    def f(run, x, w):
        return run(lambda s: run(lambda t: t + w * ops.sin(t), s, 5) * x, x, 4)

    for modes in itertools.product(MODES, repeat=2):
        a, b = (MODES[m] for m in modes)
        found = [a(lambda x, run=run: b(lambda w: f(run, x, w))(0.1))(0.9) for run in (dg.checkpoint, loop)]  # noqa: B023
        assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_a_fixed_point_in_a_step():
    def f(run, w):
        return run(lambda s: dg.fixed_point(lambda x: 0.3 * ops.cos(x * s) + w, 0.0), w, 5)

    for derivative in (dg.grad, dg.derivative, lambda f: dg.grad(dg.grad(f))):
        assert derivative(functools.partial(f, dg.checkpoint))(0.4) == pytest.approx(
            derivative(functools.partial(f, loop))(0.4), rel=1e-10
        )


def test_functions_that_the_step_closes_over_have_their_duals():
    def f(run):
        return lambda g: run(lambda s: g(s) * 0.5, 0.3, 4)

    duals = [dg.grad(f(run))(ops.sin) for run in (dg.checkpoint, loop)]
    assert duals[0](ops.cos) == pytest.approx(duals[1](ops.cos))


def test_pulling_back_twice():
    value, pullback = dg.vjp(turned(dg.checkpoint, 20, snapshots=3), 1.1, 0.1)
    assert value == turned(loop, 20)(1.1, 0.1)
    assert pullback(1.0) == pullback(1.0)
    found = dg.jacrev(lambda w: np.stack(dg.checkpoint(lambda s: (s[0] * w, s[1] + s[0]), (1.0, 0.0), 3)))(2.0)
    np.testing.assert_allclose(found, [12.0, 5.0])  # of w**3 and 1 + w + w**2


def test_a_state_that_does_not_depend_on_the_pass_stays_plain():
    kinds = []

    def f(x):
        kinds.append(type(dg.checkpoint(lambda s: s * 2.0, 1.0, 3)))
        return x

    dg.grad(f)(1.0)
    assert kinds == [float]


def test_a_pass_is_paused_in_one_thread_only():
    def f(x):
        used = set()
        with x.tape.pause(used):
            here = x * x
            with ThreadPoolExecutor(1) as pool:
                there = pool.submit(lambda: x * x).result()
        assert here == 9.0 and type(here) is float and used == {x.number}
        return there

    assert dg.grad(f)(3.0) == 6.0


@pytest.mark.parametrize("c", [2, 3, 5])
def test_the_schedule_is_the_best_one(c):
    @functools.cache
    def fewest(n, c):
        if n == 1:
            return 0
        if c == 1:
            return n * (n - 1) // 2
        return min(m + fewest(n - m, c - 1) + fewest(m, c) for m in range(1, n))

    @functools.cache
    def ours(n, c):
        if n == 1:
            return 0
        if c == 1:
            return n * (n - 1) // 2
        m = split(n, c)
        return m + ours(n - m, c - 1) + ours(m, c)

    for n in range(2, 90):
        assert ours(n, c) == fewest(n, c)


def outside(x):
    a = dnp.zeros(2)

    def step(s):
        a[0] += s * x
        return s * x

    return dg.checkpoint(step, 1.0, 3) + a[0]


def through_a_view(x):
    a = dnp.zeros(4)
    b = a[1:3]

    def step(s):
        b[0] += 1.0
        return s * x

    return dg.checkpoint(step, 1.0, 3) + np.sum(a)


def in_place(x):
    a = dnp.zeros(2)

    def step(s):
        nonlocal a
        a += s
        return s * x

    return dg.checkpoint(step, 1.0, 3) + np.sum(a)


def sorted_in_place(x):
    a = dnp.array([2.0, 1.0])

    def step(s):
        a.sort()
        return s * x * a[0]

    return dg.checkpoint(step, 1.0, 3)


def until(x):
    a = dnp.zeros(2)

    def step(s):
        if s[1] > 2:
            return None
        a[0] += s[0]
        return s[0] * x, s[1] + 1

    return dg.checkpoint(step, (1.0, 0))[0] + a[0]


def counted(x):
    counts = np.zeros(2, int)

    def step(s):
        counts[0] += 1
        return s * x

    return dg.checkpoint(step, 1.0, 3) + counts[0]


def into_the_state(x):
    def step(s):
        s[0] = s[1] * x
        return s

    return np.sum(dg.checkpoint(step, dnp.array([1.0, 2.0]), 3))


@pytest.mark.parametrize(
    "f", [outside, through_a_view, in_place, sorted_in_place, until, counted], ids=lambda f: f.__name__
)
def test_a_step_that_writes_to_what_is_outside_of_it(f):
    """Forward, and compiled, it is run once, and may; backward it is run again and again, and is refused."""
    slope = (f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6
    assert dg.derivative(f)(1.5) == pytest.approx(slope, rel=1e-6)
    assert dg.compile(dg.grad(f))(1.5) == pytest.approx(slope, rel=1e-6)
    for verb in (dg.grad, dg.value_and_grad, dg.jacrev, lambda f: dg.derivative(dg.grad(f))):
        with pytest.raises(dg.Error, match=r"writes to an array from outside.* part of the state.*a changed"):
            verb(f)(1.5)


def in_a_list(x):
    log = []

    def step(s):
        log.append(s)
        return s * x

    return dg.checkpoint(step, x, 3) + log[1]


def in_a_dict_of_lists(x):
    sums = {"all": [0.0]}

    def step(s):
        sums["all"][0] += s * x
        return s * x

    return dg.checkpoint(step, x, 3) + sums["all"][0]


def in_a_variable(x):
    last = 0.0

    def step(s):
        nonlocal last
        last = s * x
        return last

    return dg.checkpoint(step, x, 3) + last


def in_an_object(x):
    seen = SimpleNamespace(last=None)

    def keep(s):
        seen.last = dnp.array([s, 1.0])

    def step(s):
        keep(s)
        return s * x

    return dg.checkpoint(step, x, 3) + seen.last[0]


@pytest.mark.parametrize("f", [in_a_list, in_a_dict_of_lists, in_a_variable, in_an_object], ids=lambda f: f.__name__)
def test_a_step_that_keeps_numbers_outside_of_it(f):
    slope = (f(1.5 + 1e-6) - f(1.5 - 1e-6)) / 2e-6
    assert dg.derivative(f)(1.5) == pytest.approx(slope, rel=1e-6)
    for verb in (dg.grad, dg.value_and_grad, dg.jacrev, lambda f: dg.derivative(dg.grad(f))):
        with pytest.raises(dg.Error, match=r"the step stores a number outside.* part of the state"):
            verb(f)(1.5)


def test_a_step_may_keep_plain_values_and_see_numbers_of_others():
    def f(x):
        calls, weights = [], [x, {"b": x * x}]

        def step(s):
            calls.append(1.0)
            return s * weights[0] + weights[1]["b"]

        return dg.checkpoint(step, 1.0, 2)

    assert dg.grad(f)(2.0) == pytest.approx(2 * 2.0 + 3 * 4.0 + 2 * 2.0)


def test_a_step_that_writes_to_its_state():
    with pytest.raises(dg.Error, match=r"writing into it would lose.* write into a copy, y = x\.copy\(\)"):
        dg.grad(into_the_state)(1.5)


def test_a_step_that_writes_to_what_is_its_own():
    def f(run, x):
        def step(s):
            s, a = s.copy(), dnp.zeros(2)
            s[0] = s[1] * x
            a += s
            a[1] *= run(lambda t: t * x, a[0], 2)
            return a

        return np.sum(run(step, x * np.array([1.0, 2.0]), 5))

    for verb in (dg.grad, dg.derivative, lambda f: dg.derivative(dg.grad(f)), lambda f: dg.grad(dg.grad(f))):
        found = verb(lambda x: f(dg.checkpoint, x))(0.9)
        assert found == pytest.approx(verb(lambda x: f(loop, x))(0.9), rel=1e-12)


def test_what_goes_wrong_says_so():
    for n in (-1, 2.5, True):
        with pytest.raises(dg.Error, match="n, where it is not None, must be a whole number"):
            dg.checkpoint(lambda s: s, 1.0, n)
    with pytest.raises(dg.Error, match="snapshots"):
        dg.checkpoint(lambda s: s, 1.0, 3, snapshots=0)
    with pytest.raises(dg.Error, match="returned None"):
        dg.checkpoint(lambda s: None, 1.0, 3)
    with pytest.raises(dg.Error, match="function in it"):
        dg.checkpoint(lambda s: s, (1.0, ops.sin), 3)
    random = np.random.default_rng(0)
    with pytest.raises(dg.Error, match="another result"):
        dg.grad(lambda x: dg.checkpoint(lambda s: s * random.uniform(), x, 3))(1.0)


def test_a_step_that_reads_an_iterator_to_its_end_is_an_error():
    def f(x):
        numbers = iter([1.0, 2.0, 3.0])
        return dg.checkpoint(lambda s: s * x + next(numbers), x, 3)

    assert f(2.0) == 2.0**4 + 2.0**2 + 2.0 * 2.0 + 3.0
    with pytest.raises(dg.Error, match="an iterator"):
        dg.grad(f)(2.0)
