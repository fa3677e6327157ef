"""The values of facts: each shape from every kind of number; values outside the semiring are refused."""

from typing import Any

import numpy as np
import pytest

from dynagrad.errors import FactError
from dynagrad.facts.readers import read


def test_counts_are_exact() -> None:
    def values(numbers: list[Any]) -> Any:
        return read("n/1", list(enumerate(numbers)), value_shape="count").values

    assert values([1, 2**62 + 1]).tolist() == [1, 2**62 + 1]
    assert values([1, 2**62 + 1]).dtype == np.int64
    assert values([1, 10**38]).tolist() == [1, 10**38]
    assert values([0, 2**128 - 2]).tolist() == [0, 2**128 - 2]
    assert values([1.0, np.uint8(3)]).tolist() == [1, 3]
    large = read("n/1", np.array([2**64 - 1], np.uint64), value_shape="count").values
    assert large is not None and large.tolist() == [2**64 - 1]
    with pytest.raises(FactError, match=r"row 2, value: the value 0.5 is not a whole number"):
        values([1, 0.5])
    with pytest.raises(FactError, match="float too large to be exact"):
        values([1e300])
    with pytest.raises(FactError, match="nan is not a whole number"):
        values([float("nan")])
    for given in ([2, -1], np.array([2, -1]), np.array([2.0, -1.0]), [2, 2**128 - 1], [2, 10**40], [10**30, -1]):
        with pytest.raises(
            FactError, match=r"n/1, row 2, value: (-1|\d+) is no count, which is a whole number from 0 to"
        ):
            read("n/1", given if isinstance(given, np.ndarray) else list(enumerate(given)), value_shape="count")


def test_truths() -> None:
    def values(truths: Any) -> Any:
        return read("b/1", truths, value_shape="boolean").values

    assert values([("x", True), ("y", 0), ("z", 1.0)]).tolist() == [True, False, True]
    assert values(np.array([True, False])).tolist() == [True, False]
    with pytest.raises(FactError, match="row 1, value: the value 2 is neither true nor false"):
        values([("x", 2)])


def test_pairs_and_vectors() -> None:
    def values(shape: Any, *given: Any) -> Any:
        array = read("e/1", list(enumerate(given)), value_shape=shape).values
        assert array is not None
        return array.tolist()

    assert values("expectation", (0.5, 1), [1, 2.0]) == [[0.5, 1.0], [1.0, 2.0]]
    assert values("expectation", (0.5, (1, 2)), (1.0, np.array([3, 4]))) == [[0.5, 1.0, 2.0], [1.0, 3.0, 4.0]]
    assert values(("vector", 3), (1, 2, 3)) == [[1.0, 2.0, 3.0]]
    assert values(("vector", None), (1, (2, 3)), np.array([4, 5, 6])) == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    dense = read("e/1", np.ones((4, 2)), value_shape="expectation")
    assert dense.dense_shape == (4,) and dense.values is not None and dense.values.shape == (4, 2)
    with pytest.raises(FactError, match=r"row 1, value: the value 0.5 is not a pair \(p, r\)"):
        values("expectation", 0.5)
    with pytest.raises(FactError, match="row 2, value: the value has 2 numbers, and should have 3"):
        values("expectation", (0.5, (1, 2)), (0.5, 1))
    with pytest.raises(FactError, match="row 1, value: the value 'x' is not a number"):
        values(("vector", 2), (1, "x"))
    with pytest.raises(FactError, match="row 2, value: nan is not possible"):
        values("expectation", (0.5, 1), (0.5, float("nan")))


@pytest.mark.parametrize(
    ("finite", "good", "bad"),
    [
        ("finite", [0.0], [float("nan"), float("inf"), -float("inf")]),
        ("no_nan", [float("inf"), -float("inf")], [float("nan")]),
        ("no_nan_no_posinf", [-float("inf")], [float("nan"), float("inf")]),
        ("no_nan_no_neginf", [float("inf")], [float("nan"), -float("inf")]),
    ],
)
def test_what_a_semiring_does_not_have_is_refused(finite: str, good: list[float], bad: list[float]) -> None:
    assert read("p/1", list(enumerate(good)), finite=finite).count == len(good)
    for value in bad:
        for rows in ([(1, 0.0), (2, value)], np.array([0.0, value])):
            with pytest.raises(FactError, match=f"p/1, row 2, value: {value} is not possible"):
                read("p/1", rows, finite=finite)
