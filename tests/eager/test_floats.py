"""The fast path of single floats: the values and derivatives of the rules of the operations."""

from __future__ import annotations

import itertools
import math
import threading
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.eager.floats import SLOPES
from dynagrad.ir.operation import Operation

POINTS = (-math.inf, -800.0, -1.5, -1.0, -1e-9, -0.0, 0.0, 0.3, 1.0, 2.0, 3.0, 800.0, math.inf, math.nan)


def by_rules(operation: Operation, arguments: tuple[float, ...]) -> tuple[float, ...]:
    """The value and the partial derivatives, from the declaration of an operation."""
    assert operation.tangent is not None
    y = operation.value(*arguments)
    slopes = (0.0 if rule is None else rule(1.0, y, *arguments) for rule in operation.tangent)
    return y, *slopes


@pytest.mark.parametrize("operation", SLOPES, ids=repr)
def test_values_and_slopes_are_those_of_the_rules(operation: Operation) -> None:
    for arguments in itertools.product(POINTS, repeat=len(operation.arguments)):
        found, expected = SLOPES[operation](*arguments), by_rules(operation, arguments)
        assert found == pytest.approx(expected, rel=1e-14, abs=0.0, nan_ok=True), arguments


def test_whole_numbers_and_numbers_of_numpy_are_floats() -> None:
    for two in (2, 2.0, np.float64(2.0), np.int64(2), np.float32(2.0), np.array(2.0)):
        for derivative in (dg.grad, dg.derivative):
            found = derivative(lambda x, two=two: (two * x + x * two - x / two) * (x**two))(3.0)
            assert found == pytest.approx(3.5 * 3.0 * 9.0)
            assert type(found) is float


def test_a_whole_number_too_large_for_a_float() -> None:
    for derivative in (dg.grad, dg.derivative):
        with pytest.raises(dg.Error, match="too large"):
            derivative(lambda x: x * 10**400)(1.0)


def test_what_is_no_number_is_left_to_the_other_operand() -> None:
    class Other:
        def __radd__(self, x: Any) -> Any:
            return x * 2.0

    assert dg.grad(lambda x: x + Other())(3.0) == 2.0
    with pytest.raises(TypeError):
        dg.grad(lambda x: x + "a")(3.0)


def test_threads_share_a_pass() -> None:
    """Cells made side by side have numbers of their own."""

    def f(x: Any) -> Any:
        found: list[Any] = [None] * 4

        def work(place: int) -> None:
            y = x
            for _ in range(2000):
                y = y * 1.0001 + x * 0.5
            found[place] = y

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(found))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found[0] + found[1] + found[2] + found[3]

    def alone(x: Any) -> Any:
        y = x
        for _ in range(2000):
            y = y * 1.0001 + x * 0.5
        return y * 4.0

    assert dg.grad(f)(0.3) == pytest.approx(dg.grad(alone)(0.3), rel=1e-12)
