"""What tells one specialisation from another, and what goes in and out of its graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.functions.lifting import graph_of, key_of, specialised
from dynagrad.graph.types import arrays, boolean, integer, real


def key(*arguments: Any, **named: Any) -> Any:
    return key_of(arguments, named)[0]


def test_numbers_and_shapes() -> None:
    assert key(1.5) == key(2.5) == key(np.float64(3.0))
    assert key(np.ones(3)) == key(np.zeros(3)) != key(np.ones(4))
    assert key(np.ones(3)) != key(np.ones(3, dtype=int)) != key(np.ones(3, dtype=bool))
    assert key(1) != key(2) and key(1) != key(True) and key(1) != key(1.0)
    assert key("a") != key("b") and key(None) != key(0)
    assert key(x=1.0, y=2.0) == key(y=3.0, x=4.0)
    assert key((1.0, 2)) != key([1.0, 2])
    hash(key(np.ones(3), {"a": [1.0, (2,)]}, len, x=3))


def test_things_without_a_hash_are_the_same_only_as_themselves() -> None:
    s = {1, 2}
    assert key(s) == key(s) != key({1, 2})


def test_the_numbers_of_the_arguments_are_the_inputs() -> None:
    made = specialised(lambda x, p, n, *, k: x * p["a"][0] * n + k[0], (1.5, {"a": [2.5, "s"]}, 3), {"k": np.ones(2)})
    assert [v.type for v in made.graph.inputs] == [real, real, arrays(real, (2,))]
    assert key_of((1.5, {"a": [2.5, "s"]}, 3), {"k": np.ones(2)})[1][:2] == [1.5, 2.5]


def test_arrays_of_whole_numbers_and_of_truth_values_are_inputs() -> None:
    graph = graph_of(lambda i, m: np.where(m, i, 0), np.arange(3), np.ones(3, dtype=bool))
    assert [v.type for v in graph.inputs] == [arrays(integer, (3,)), arrays(boolean, (3,))]
    assert [o.type for o in graph.outputs] == [arrays(integer, (3,))]


def test_types_of_the_graph_stand_for_arguments() -> None:
    assert graph_of(lambda x: x.sum(), arrays(real, (4, 2))).outputs[0].type is real


def test_results_have_their_structure() -> None:
    made = specialised(lambda x: {"a": (x, 3), "b": [x * 2, "s", None]}, (1.0,))
    assert made.output([10.0, 20.0]) == {"a": (10.0, 3), "b": [20.0, "s", None]}
    assert specialised(lambda x: None, (1.0,)).output([]) is None


@pytest.mark.parametrize("argument", [np.array([1j]), np.array(["a"])])
def test_other_arrays_are_refused(argument: Any) -> None:
    with pytest.raises(dg.Error, match="an argument is an array of"):
        specialised(lambda x: x, (argument,))
