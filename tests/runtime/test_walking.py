"""The native walker over structures of arguments and results, against a walk in Python.

Costs one compilation for all walks, and one for each of eight compiled functions.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.compiler.evaluate.signatures import structure
from dynagrad.runtime.walking import LEAF, MOST_LEAVES, UNFIT, Fixed, Keyed, Sequenced, Structure, count, walker

OTHERWISE = "otherwise"


def generated(pick: random.Random, depth: int) -> Any:
    """Containers of floats and known values."""
    kind = pick.choice(["leaf", "leaf", "known", "list", "tuple", "dict"] if depth else ["leaf", "known"])
    if kind == "leaf":
        return pick.random()
    if kind == "known":
        return pick.choice([None, True, 3, "text", len])
    parts = [generated(pick, depth - 1) for _ in range(pick.randrange(4))]
    if kind == "dict":
        return dict(zip(["a", 7, None, "long key"], parts, strict=False))
    return parts if kind == "list" else tuple(parts)


def leaves_of(x: Any) -> list[float]:
    if isinstance(x, list | tuple):
        return [leaf for part in x for leaf in leaves_of(part)]
    if isinstance(x, dict):
        return leaves_of(list(x.values()))
    return [x] if isinstance(x, float) else []


def taken(x: Any) -> Structure:
    found = structure(x)
    assert found is not None
    return found


def test_what_is_taken_apart_is_put_together_again() -> None:
    pick = random.Random(0)
    for _ in range(300):
        arguments = [generated(pick, 4) for _ in range(pick.randrange(4))]
        shapes = [taken(x) for x in arguments]
        seen: list[Any] = []

        def flat(*leaves: float, seen: list[Any] = seen) -> tuple[float, ...]:
            seen.append(leaves)
            return tuple(-x for x in leaves)

        walk = walker(flat, shapes, Sequenced(tuple, tuple(shapes)), lambda *a: OTHERWISE, single=False)
        assert walk is not None
        found = walk(*arguments)
        assert list(seen[0]) == leaves_of(arguments)
        assert leaves_of(found) == [-x for x in leaves_of(arguments)]
        assert [taken(x) for x in found] == shapes
        assert sum(map(count, shapes)) == len(seen[0])


@pytest.mark.parametrize(
    "other",
    [
        (),
        ([1.0], 2.0),
        ([1.0, 2.0],),
        ((1.0,),),
        ({0: 1.0},),
        (1.0,),
        (None,),
        (type("L", (list,), {})([1.0]),),
    ],
)
def test_another_structure_goes_elsewhere(other: tuple[Any, ...]) -> None:
    walk = walker(lambda x: x, [Sequenced(list, (LEAF,))], LEAF, lambda *a: a, single=True)
    assert walk is not None
    assert walk([1.5]) == 1.5
    assert walk(*other) == other


def test_keys_are_those_of_the_dict_in_order() -> None:
    walk = walker(lambda x, y: x - y, [Keyed(("a", "b"), (LEAF, LEAF))], LEAF, lambda *a: OTHERWISE, single=True)
    assert walk is not None
    assert walk({"a": 3.0, "b": 1.0}) == 2.0
    others = [
        {"b": 1.0, "a": 3.0},
        {"a": 3.0},
        {"a": 3.0, "c": 1.0},
        OrderedDict(a=3.0, b=1.0),
        {"a": 3.0, "b": 1.0, "c": 0},
    ]
    assert [walk(x) for x in others] == [OTHERWISE] * len(others)


def test_known_values_are_the_same_objects() -> None:
    many = 10**30
    walk = walker(
        lambda x: x, [LEAF, Fixed(many)], Sequenced(list, (LEAF, Fixed(many))), lambda *a: OTHERWISE, single=True
    )
    assert walk is not None
    assert walk(1.0, many) == [1.0, many]
    assert walk(1.0, 10**30) == OTHERWISE


def test_leaves_that_do_not_fit_go_elsewhere_with_all_arguments() -> None:
    walk = walker(lambda x: UNFIT, [Sequenced(list, (LEAF,))], LEAF, lambda *a: a, single=True)
    assert walk is not None
    assert walk(["no number"]) == (["no number"],)


def test_errors_come_through() -> None:
    def flat(x: float) -> float:
        raise ValueError(x)

    walk = walker(flat, [Sequenced(list, (LEAF,))], LEAF, print, single=True)
    assert walk is not None
    with pytest.raises(ValueError, match=r"2\.5"):
        walk([2.5])


def test_there_is_no_walk_over_too_many_leaves() -> None:
    def of(n: int) -> Any:
        return walker(lambda *x: x[0], [Sequenced(list, (LEAF,) * n)], LEAF, print, single=True)

    assert of(MOST_LEAVES)([2.0] * MOST_LEAVES) == 2.0
    assert of(MOST_LEAVES + 1) is None


def test_references_are_given_back() -> None:
    shape = Sequenced(list, (LEAF, Keyed(("k",), (LEAF,))))
    walk = walker(lambda x, y: (x, y), [shape], shape, lambda *a: OTHERWISE, single=False)
    assert walk is not None
    leaf, key = object(), "k"
    before = [sys.getrefcount(x) for x in (leaf, key, UNFIT)]
    for _ in range(100):
        walk([leaf, {key: leaf}])
        walk([leaf])
    assert [sys.getrefcount(x) for x in (leaf, key, UNFIT)] == pytest.approx(before, abs=2)


def test_a_walk_holds_what_it_needs() -> None:
    walk = walker(lambda x: x + 1.0, [Sequenced(list, (LEAF,))], Keyed(("a" * 50,), (LEAF,)), lambda *a: a, single=True)
    assert walk is not None
    gc.collect()
    assert walk([1.0]) == {"a" * 50: 2.0}


Point = namedtuple("Point", "x y")


class TestCompiled:
    """The calls of compiled functions, which take the native walk from the second call on."""

    def twice(self, function: Any, *arguments: Any) -> Any:
        compiled = dg.compile(function)
        first, second = compiled(*arguments), compiled(*arguments)
        assert repr(first) == repr(second)
        return second

    def test_structures_of_all_kinds(self) -> None:
        def f(p: Any, n: int, flag: Any) -> Any:
            w = p["w"][0] * p["w"][1] + n
            return {"sum": np.sum(w), "parts": [w, (p["b"], None)], "n": n}

        x = np.array([1.0, 2.0])
        found = self.twice(f, {"w": [x, x + 1.0], "b": 0.5}, 3, None)
        assert repr(found) == repr({"sum": 14.0, "parts": [np.array([5.0, 9.0]), (0.5, None)], "n": 3})

    def test_gradients(self) -> None:
        def f(p: Any) -> Any:
            return np.sum(p["w"][0] * p["w"][1]) * p["b"]

        x = np.array([1.0, 2.0])
        found = self.twice(dg.grad(f), {"w": [x, x + 1.0], "b": 0.5})
        assert repr(found) == repr({"w": [(x + 1.0) * 0.5, x * 0.5], "b": 8.0})

    def test_other_shapes_kinds_and_structures_after_it(self) -> None:
        compiled = dg.compile(lambda p: np.sum(p[0]) * 2.0)
        x = np.array([1.0, 2.0])
        calls: list[Any] = [[x], [x], [np.ones(5)], (x,), [3.0], [x[::2]], [x.astype(np.float32)], [x], [x, x]]
        assert [compiled(c) for c in calls] == [6.0, 6.0, 10.0, 6.0, 6.0, 2.0, 6.0, 6.0, 6.0]

    def test_a_list_of_one_number_is_no_number(self) -> None:
        compiled = dg.compile(lambda p: p[0] * 2.0)
        assert [compiled([1.5]), compiled([2.5])] == [3.0, 5.0]
        with pytest.raises(dg.Error):
            compiled(1.5)

    def test_results_that_are_no_plain_containers(self) -> None:
        assert self.twice(lambda p: Point(p[0], p[1] * 2.0), [1.0, 2.0]) == Point(1.0, 4.0)
        assert self.twice(lambda p: p.x * p.y, Point(3.0, 2.0)) == 6.0

    def test_derivatives_of_it(self) -> None:
        compiled = dg.compile(lambda p: p[0] * p[0] * p[1])
        assert compiled([3.0, 2.0]) == compiled([3.0, 2.0]) == 18.0
        assert dg.grad(compiled)([3.0, 2.0]) == [12.0, 9.0]

    def test_lists_that_others_change_meanwhile(self) -> None:
        compiled = dg.compile(lambda p: np.sum(p[0] * p[1]))
        shared: list[Any] = [np.ones(1000), np.ones(1000)]
        compiled(shared), compiled(shared)
        done = threading.Event()

        def change() -> None:
            while not done.is_set():
                shared[0] = np.ones(1000)

        other = threading.Thread(target=change)
        other.start()
        try:
            assert {compiled(shared) for _ in range(2000)} == {1000.0}
        finally:
            done.set()
            other.join()
