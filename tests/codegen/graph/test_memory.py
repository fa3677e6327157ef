"""Out of memory in a compiled function: an error at whichever allocation, and no leak (five seconds).

Allocations fail by a counter that is compiled into functions of these tests alone; see `allocations`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from allocations import Allocations, counted
from dynagrad.errors import RoomError
from dynagrad.runtime import calling


@pytest.fixture
def allocations(monkeypatch: pytest.MonkeyPatch) -> Iterator[Allocations]:
    with counted(monkeypatch) as made:
        yield made


def saving(x: Any) -> Any:
    """A loop of as many rounds as the value says, with states that are saved for the way back: large ones, at last."""
    y = x
    while y < 1e6:
        y = y * 1.00001 + np.sin(y) * 1e-9
    return y


def arrays(a: Any) -> Any:
    """Arrays on the way, and as the result."""
    b = np.exp(a) @ a
    return np.sort(np.tanh(b @ b.T), axis=0)


def solved(a: Any) -> Any:
    """Linear algebra, which borrows memory, and a loop over arrays whose states are saved."""
    v = a[0]
    for _ in range(20):
        v = np.linalg.solve(a, np.sin(v))
    return np.sum(v) + np.linalg.slogdet(a)[1]


def recursive(x: Any) -> Any:
    """Calls of functions within each other, each with a frame of its own."""

    def down(v: Any, left: Any) -> Any:
        return v if left <= 0.0 else down(np.cos(v) * 2.0, left - 1.0) + v

    return np.sum(down(x * np.ones(50), 30.0 + 0.0 * x))


SMALL = np.random.default_rng(0).normal(size=(60, 60)) + 60 * np.eye(60)
FUNCTIONS: dict[str, tuple[Callable[..., Any], Any, int]] = {
    "the gradient of a loop": (lambda x: dg.grad(saving)(x), 0.5, 6),
    "arrays": (arrays, SMALL / 60, 3),
    "the gradient of arrays": (lambda a: dg.grad(lambda b: np.sum(arrays(b)))(a), SMALL / 60, 3),
    "the gradient of linear algebra": (lambda a: dg.grad(solved)(a), SMALL, 4),
    "the gradient of recursion": (lambda x: dg.grad(recursive)(x), 0.5, 5),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_whichever_allocation_fails_it_is_an_error_and_nothing_is_lost(name: str, allocations: Allocations) -> None:
    function, x, least = FUNCTIONS[name]
    compiled = dg.compile(function)
    expected = compiled(x)
    assert allocations.live() == 0
    failed = 0
    for n in range(1, 10_000):
        allocations.fail(n)
        try:
            found = compiled(x)
        except RoomError as error:
            assert "memory" in str(error)
            failed += 1
        else:
            np.testing.assert_array_equal(found, expected)
            if allocations.fail(0) > 0:  # there are not so many
                break
        allocations.fail(0)
        assert allocations.live() == 0
    assert failed >= least
    np.testing.assert_array_equal(compiled(x), expected)


@pytest.mark.parametrize("fast", [True, False])
def test_a_result_that_is_too_large_is_an_error(fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not fast:
        monkeypatch.setattr(calling, "PYTHON", None)
    with pytest.raises(RoomError, match="no memory for an array that it returns"):
        dg.compile(lambda x: x[:, None] * x)(np.empty(1 << 22))


def test_memory_that_held_reals_may_hold_whole_numbers_next() -> None:
    """By the rules of C++ a compiler might read the one before it writes the other: it is told not to."""
    from dynagrad.codegen.graph.emit import FLAGS
    from dynagrad.codegen.rules.functions import INTEGERS

    assert "-fno-strict-aliasing" in FLAGS and "-fno-strict-aliasing" in INTEGERS
