"""`sort` and `argsort` with the options that the installed numpy has, against numpy: values, and derivatives along the
permutation."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

OPTIONS: list[dict[str, Any]] = [{}, {"kind": "stable"}, {"kind": "heapsort"}]
HAS_STABLE = "stable" in inspect.signature(np.sort).parameters  # new in numpy 2
if HAS_STABLE:
    OPTIONS += [{"stable": True}]
if "descending" in inspect.signature(np.sort).parameters:  # new in numpy 2.5
    OPTIONS += [{"descending": falls} | more for falls in (True, False, 1) for more in ({}, {"stable": True})]
ARRAYS = [
    np.array([1.0, 5.0, 3.0, 1.0, np.nan, 2.0, 5.0, -0.0, 0.0]),
    np.array([[2.0, -1.0, 2.0], [0.5, 3.0, 0.25]]),
    np.array([[3, -(2**50), 2**50, 3, 0]]),
    np.array([True, False, True]),
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("compiled", [False, True])
def test_sorting_is_that_of_numpy(options: dict[str, Any], compiled: bool) -> None:
    def order(x: Any, axis: Any) -> Any:
        return np.argsort(x, axis, **options)

    def method(x: Any, axis: Any) -> Any:
        return x.argsort(axis, **options)

    def ordered(x: Any, axis: Any) -> Any:
        return np.sort(x, axis, **options)

    stable = ({"stable": True} if HAS_STABLE else {"kind": "stable"}) | {
        k: v for k, v in options.items() if k == "descending"
    }
    for x in ARRAYS:
        for axis in (-1, 0, None):
            for f in (order, method):  # stable ones, which numpy's are where it is told so
                found = (dg.compile(f) if compiled else f)(x, axis)
                if compiled:
                    assert np.array_equal(found, np.argsort(x, axis, **stable))
            found = (dg.compile(ordered) if compiled else ordered)(x, axis)
            assert found.dtype == x.dtype and np.array_equal(
                found, np.sort(x, axis, **options), equal_nan=x is ARRAYS[0]
            )


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_derivative_of_sorting_is_the_permutation(options: dict[str, Any]) -> None:
    x = np.array([[2.0, -1.0, 2.5, 0.0], [0.5, 3.0, 0.25, -4.0]])
    w = np.arange(8.0).reshape(2, 4) + 1.0
    wanted = np.zeros((2, 4))
    np.put_along_axis(wanted, np.argsort(x, **options), w, -1)
    for f in (
        lambda x: np.sum(np.sort(x, **options) * w),
        lambda x: np.sum(np.take_along_axis(x, np.argsort(x, **options), -1) * w),
        lambda x: np.sum(np.take_along_axis(x, x.argsort(**options), -1) * w),
    ):
        for grad in (dg.grad(f), dg.compile(dg.grad(f)), dg.jacfwd(f)):
            assert np.array_equal(grad(x), wanted)


@pytest.mark.parametrize("function", [np.sort, np.argsort])
@pytest.mark.parametrize("name", ["kind", "order", "upwards"])
def test_what_numpy_does_not_take_is_refused(function: Any, name: str) -> None:
    x, options = np.array([2.0, 1.0]), {name: "fast"}
    with pytest.raises((TypeError, ValueError)):
        function(x, **options)
    for f in (dg.grad(lambda x: np.sum(function(x, **options))), dg.compile(lambda x: function(x, **options))):
        with pytest.raises((dg.Error, TypeError, ValueError), match=name):
            f(x)


@pytest.mark.skipif(not HAS_STABLE, reason="sorting has one such option before numpy 2")
def test_options_that_exclude_each_other_are_refused() -> None:
    x = np.array([2.0, 1.0])
    for f in (
        dg.grad(lambda x: np.sum(np.sort(x, kind="stable", stable=True))),
        dg.compile(lambda x: np.sort(x, kind="stable", stable=True)),
    ):
        with pytest.raises((dg.Error, ValueError), match="kind"):
            f(x)
