"""`dg.checkpoint` in compiled functions: equal to eager ones, with fewer residuals. Costs two seconds."""

from __future__ import annotations

import itertools
import resource
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import same, through_graph
from dynagrad.autodiff import rematerialisation as again

MODES = (dg.derivative, dg.grad)
ROOMS = (1 << 17, 20)
"""For what is saved of a loop on the way to its gradient. With the second, loops are pieces on several levels."""


def agrees_with_derivatives(f: Any, x: float, depth: int = 2) -> None:
    for modes in (m for k in range(depth + 1) for m in itertools.product(MODES, repeat=k)):
        g = f
        for mode in modes:
            g = mode(g)
        with np.errstate(all="ignore"):
            wanted = g(x)
        for room in ROOMS if dg.grad in modes else ROOMS[:1]:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(again, "ROOM", room)
                found = through_graph(g, x)
            assert same(found, wanted), f"{modes}, room for {room}: {found!r} is not {wanted!r}"


@pytest.mark.parametrize("n", [0, 1, 5, 100])
def test_a_known_number_of_steps(n: int) -> None:
    agrees_with_derivatives(lambda x: dg.checkpoint(lambda s: s + 0.1 * np.sin(s * x), 1.0, n), 0.7)


def test_a_number_of_steps_that_is_computed() -> None:
    def f(x: Any) -> Any:
        n = 0
        while n * 0.01 < x:
            n = n + 1
        return dg.checkpoint(lambda s: s + 0.1 * np.sin(s * x), 1.0, n)

    agrees_with_derivatives(f, 0.7)


def test_until_the_step_returns_none() -> None:
    def step(s: Any, x: Any) -> Any:
        return None if s > 3.0 else s + 0.1 * np.sin(s * x)

    agrees_with_derivatives(lambda x: dg.checkpoint(lambda s: step(s, x), 1.0), 0.7)
    agrees_with_derivatives(lambda x: dg.checkpoint(lambda s: step(s, x), 1.0, snapshots=3), 0.7, 1)


def test_a_loop_that_ends_at_once() -> None:
    agrees_with_derivatives(lambda x: dg.checkpoint(lambda s: None, x * x), 0.7)
    agrees_with_derivatives(lambda x: dg.checkpoint(lambda s: s if s < x else None, x * x + 3.0), 0.7)


def test_a_counter_that_is_known() -> None:
    def f(x: Any) -> Any:
        def step(s: Any) -> Any:
            n, y = s
            return None if n == 3 else (n + 1, y * x)

        return dg.checkpoint(step, (0, 1.0))[1]

    agrees_with_derivatives(f, 0.7)


def test_the_last_step_computes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end there is no place in the array that the next state would be computed with."""

    def f(x: Any) -> Any:
        a = np.linspace(1.0, 2.0, 40)

        def step(s: Any) -> Any:
            i, y = s
            if i >= 40:
                return None
            return i + 1, y * 0.9 + a[i] * x * np.sin(y)

        return dg.checkpoint(step, (0, np.ones(3)))[1].sum()

    agrees_with_derivatives(f, 0.7)
    for room in ROOMS:
        monkeypatch.setattr(again, "ROOM", room)
        assert dg.grad(dg.compile(f))(0.7) == pytest.approx(dg.grad(f)(0.7), rel=1e-11)


def test_structures_and_returns_from_inside() -> None:
    def f(x: Any) -> Any:
        def step(s: Any) -> Any:
            first, second = s["y"]
            for i in range(20):
                if first > i * x + 5.0:
                    return
                first = first + 0.1 * x
            return {"n": s["n"] + 1, "y": [first, second + x]}

        found = dg.checkpoint(step, {"n": 0, "y": [x, 0.0]})
        return found["y"][0] * found["y"][1]

    agrees_with_derivatives(f, 0.7, 1)


def test_a_step_that_asks_another_function_for_none() -> None:
    def f(x: Any) -> Any:
        def tried(s: Any) -> Any:
            return s * 1.1 if s < 3.0 else None

        def step(s: Any) -> Any:
            found = tried(s)
            if found is None:
                return None
            return found + 0.01 * x

        return dg.checkpoint(step, x)

    agrees_with_derivatives(f, 0.7)
    agrees_with_derivatives(lambda x: dg.checkpoint(lambda s: None if tried_not(s) is None else s + x, x), 0.7, 1)
    agrees_with_derivatives(lambda x: dg.checkpoint(lambda s: s + x if tried_not(s) is not None else None, x), 0.7, 1)


def tried_not(s: Any) -> Any:
    return None if s > 3.0 else s


def test_what_may_be_none_is_no_number() -> None:
    def f(x: Any) -> Any:
        return dg.checkpoint(lambda s: tried_not(s) + 0.5, x)

    with pytest.raises(dg.LiftError, match="either None or a real"):
        through_graph(f, 0.7)


def test_inside_of_loops_and_branches() -> None:
    def f(x: Any) -> Any:
        t = 0.0
        for i in range(20):
            t = t + dg.checkpoint(lambda s: None if s > 3.0 + i else s + 0.5 + 0.3 * np.sin(s * x), t)  # noqa: B023
            if t > 20.0:
                t = t / 7.0 + dg.checkpoint(lambda s: s * x, 1.0, 33)
        return t

    agrees_with_derivatives(f, 0.7, 1)  # second ones, inside of loops drawn at random, are in `test_random_verbs.py`


@pytest.mark.parametrize("until", [False, True])
def test_native_code_saves_few_states(until: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state has 64 kB. Some dozens are saved of 2,000 steps, of which a loop would save 128 MB."""
    monkeypatch.setattr(again, "ROOM", 1 << 17)

    def loss(x: Any, n: Any) -> Any:
        a = np.linspace(0.0, 1.0, 8192)
        if until:
            return dg.checkpoint(lambda s: None if s[0] >= n else (s[0] + 1.0, s[1] - x * s[1] ** 2), (0.0, a))[1].sum()
        return dg.checkpoint(lambda s: s - x * s**2, a, int(n)).sum()

    compiled = dg.compile(dg.grad(loss))
    wanted = dg.grad(loss)(0.01, 30.0)
    assert compiled(0.01, 30.0) == pytest.approx(wanted, rel=1e-10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    compiled(0.01, 2000.0)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (after - before) * 1024 < 64e6  # on Linux it counts in kB, elsewhere in bytes


@pytest.mark.parametrize(
    "f, message",
    [
        (lambda x: dg.checkpoint(2.0, x, 3), "step must be a function"),
        (lambda x: dg.checkpoint(lambda s: s, x, -1), "n, where it is not None, must be a whole number, at least 0"),
        (lambda x: dg.checkpoint(lambda s: s, x, 2.5), "n, where it is not None, must be a whole number, at least 0"),
        (lambda x: dg.checkpoint(lambda s: s, x, 3, snapshots=0), "snapshots must be a whole number"),
        (lambda x: dg.checkpoint(lambda s: s, x, steps=3), "takes step, state, n and snapshots"),
        (lambda x: dg.checkpoint(lambda s: None, x, 3), "returned None, which may only end a loop without n"),
        (lambda x: dg.checkpoint(lambda s: s, (x, np.sin), 3), "the state has a function in it"),
        (lambda x: dg.checkpoint(lambda s: (s, x) if s < 3.0 else None, x), "before a step and a tuple of 2 after it"),
    ],
)
def test_what_is_wrong_is_shown(f: Any, message: str) -> None:
    with pytest.raises(dg.LiftError, match=message):
        through_graph(f, 1.0)
