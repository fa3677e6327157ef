"""Derivative rules of array operations that reuse memory of intermediates: equal to the bit; inputs never change."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.autodiff.buffer_reuse import follow, plan
from dynagrad.ir.buffers import SMALLEST
from dynagrad.ir.operation import Operation
from dynagrad.ir.ops import scalars as ops

RULES = [
    (operation, index)
    for operation in ops.TABLE.values()
    for index, rule in enumerate(operation.tangent or ())
    if rule is not None
]


def points(operation: Operation, size: int) -> list[Any]:
    """Arguments inside the domain of every operation, and at some edges of it."""
    rng = np.random.default_rng(1)
    reals = [rng.uniform(0.1, 0.9, size) for _ in operation.arguments]
    for x in reals:
        x[:4] = 0.0, 1.0, -1.0, np.inf
    if operation is ops.where:
        reals[0] = reals[0] > 0.5
    return reals


@pytest.mark.parametrize(("operation", "index"), RULES, ids=lambda case: getattr(case, "name", str(case)))
@pytest.mark.parametrize("size", [7, SMALLEST + 5])
def test_it_is_what_the_rule_says_and_nothing_that_is_given_changes(
    operation: Operation, index: int, size: int
) -> None:
    with np.errstate(all="ignore"):
        given = points(operation, size)
        y, d = operation(*given), np.random.default_rng(2).normal(size=size)
        before = [x.copy() for x in (d, y, *given)]
        for x in (d, y, *given):
            x.flags.writeable = False
        found = follow(operation, index, d, y, given)
        np.testing.assert_array_equal(found, operation.tangent[index](d, y, *given))  # type: ignore[index,misc]
    for x, was in zip((d, y, *given), before, strict=True):
        np.testing.assert_array_equal(x, was)
    if plan(operation, index) is not None:
        assert found.flags.writeable and not any(np.shares_memory(found, x) for x in (d, y, *given))


def test_what_is_in_between_takes_as_few_places_as_there_are_values_at_a_time() -> None:
    found = plan(ops.tanh, 0)  # d * ((1 - y) * (1 + y))
    assert found is not None and found.spare == 2
    assert found.looked_at == (0, 1)  # not the argument, which a tape need not keep
    assert [step[0] for step in found.steps] == [np.subtract, np.add, np.multiply, np.multiply]
    assert [place for *_, place in found.steps][-2:] in ([4, 4], [5, 5])


@pytest.mark.parametrize("operation", [ops.exp, ops.maximum, ops.power, ops.log_add, ops.add])
def test_rules_that_choose_or_have_nothing_in_between_are_followed_as_they_stand(operation: Operation) -> None:
    assert plan(operation, 0) is None


def test_floats_numbers_and_several_shapes_go_through_the_rule_itself() -> None:
    y = np.array([0.5, 0.25])
    assert follow(ops.tanh, 0, 2.0, 0.5, [0.0]) == 1.5
    np.testing.assert_array_equal(follow(ops.tanh, 0, np.array([1.0, 2.0]), 0.5, [0.0]), [0.75, 1.5])
    column = np.array([[1.0], [2.0]])
    np.testing.assert_array_equal(follow(ops.tanh, 0, column, y, [y]), column * ((1.0 - y) * (1.0 + y)))
    single = np.array([1.0, 2.0], np.float32)
    np.testing.assert_array_equal(follow(ops.tanh, 0, single, y, [y]), single * ((1.0 - y) * (1.0 + y)))
    second = dg.jacfwd(lambda d: follow(ops.tanh, 0, d, y, [y]))(np.ones(2))
    np.testing.assert_array_equal(second, np.diag((1.0 - y) * (1.0 + y)))


def test_an_operation_that_only_has_a_name_of_the_table_has_its_own_rule() -> None:
    other = Operation(
        "tanh", ops.tanh.arguments, ops.tanh.result, abs, (lambda d, y, x: ops.multiply(5.0, d),), "", array=np.abs
    )
    np.testing.assert_array_equal(follow(other, 0, np.ones(2), np.ones(2), [np.ones(2)]), [5.0, 5.0])


def test_adjoints_that_several_share_are_not_written_over() -> None:
    x = np.linspace(-1.0, 1.0, SMALLEST)

    def f(x: Any) -> Any:
        y = x + 1.5
        return np.sum(2.0 * (np.tanh(y) + np.log1p(y) + np.cos(y) / y))  # one adjoint for three results

    y = x + 1.5
    expected = 2.0 * (1.0 - np.tanh(y) ** 2 + 1.0 / (1.0 + y) - np.sin(y) / y - np.cos(y) / y**2)
    np.testing.assert_allclose(dg.grad(f)(x), expected, rtol=1e-12, atol=1e-14)
    value, back = dg.vjp(f, x)
    first = back(1.0)[0]
    first[:] = np.nan  # whoever has the result may write to it
    np.testing.assert_allclose(back(1.0)[0], expected, rtol=1e-12, atol=1e-14)
    assert value == f(x)


def test_a_cotangent_of_the_users_is_not_written_over() -> None:
    x, cotangent = np.linspace(0.1, 0.9, 9), np.linspace(1.0, 2.0, 9)
    was = cotangent.copy()
    for f in (np.tanh, np.arcsin, lambda x: np.cos(x) / x):
        _, back = dg.vjp(f, x)
        first = back(cotangent)[0]
        np.testing.assert_array_equal(cotangent, was)
        np.testing.assert_array_equal(back(cotangent)[0], first)
        tangent = dg.jvp(f, (x,), (cotangent,))[1]
        np.testing.assert_array_equal(cotangent, was)
        np.testing.assert_allclose(tangent, first, rtol=1e-13)
