"""Signatures: what distinguishes specialisations, and the arguments and results of their graphs.

Costs a few seconds.
"""

from __future__ import annotations

import array
import collections
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import same, through_graph
from dynagrad.compiler.specialised import graph_of, key_of, specialised
from dynagrad.ir.types import arrays, boolean, integer, real


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
    class Thing:
        __hash__ = None  # type: ignore[assignment]

    s = Thing()
    assert key(s) == key(s) != key(Thing())


def test_sets_are_the_same_as_those_with_the_same_members() -> None:
    assert key({1, 2}) == key({2, 1}) != key({1, 3})
    assert key({1}) != key({True}) and key({1}) != key(frozenset({1}))


# -- kinds of containers -----------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Layer:
    """A class with numbers in it that can be called, as those of networks are."""

    w: float

    def __call__(self, x: Any) -> Any:
        return self.w * x


@dataclasses.dataclass(frozen=True, slots=True)
class Network:
    layers: list[Layer]
    scale: float

    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = np.tanh(layer(x))
        return self.scale * x


def network(x: float) -> Network:
    return Network([Layer(x), Layer(3.0)], 0.5)


def missing() -> float:
    return 2.5


STRUCTURES: dict[str, tuple[Callable[..., Any], Callable[[float], Any]]] = {
    "OrderedDict": (lambda d: d["a"] * d["b"] * d["a"], lambda x: collections.OrderedDict(a=x, b=2.0)),
    "defaultdict": (lambda d: d["a"] ** 2, lambda x: collections.defaultdict(float, a=x)),
    "copy of a defaultdict": (lambda d: d.copy()["b"] + d["a"], lambda x: collections.defaultdict(missing, a=x)),
    "object that is called": (lambda m: m(1.5), Layer),
    "objects that are called": (lambda m: m(0.5), network),
    "derivative of one": (lambda m: dg.grad(m)(0.5), network),
    "whether it can be called": (lambda m: m(1.0) if callable(m) else 0.0, Layer),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_numbers_of_such_containers_are_arguments(name: str) -> None:
    f, make = STRUCTURES[name]
    compiled = dg.compile(f)
    for x in (2.0, 0.5):
        assert same(compiled(make(x)), f(make(x)))
    assert len(compiled._versions) == 1


@pytest.mark.parametrize("name", STRUCTURES)
def test_derivatives_by_such_containers_are_of_their_kind(name: str) -> None:
    f, make = STRUCTURES[name]
    wanted = dg.grad(f)(make(2.0))
    for found in (dg.grad(dg.compile(f))(make(2.0)), dg.compile(dg.grad(f))(make(2.0))):
        assert same(found, wanted) and type(found) is type(wanted)


@pytest.mark.parametrize("f", [lambda d: d, lambda d: d.copy(), lambda d: {**d}, lambda d: type(d) is dict])
@pytest.mark.parametrize("d", [{"a": 1.0}, collections.OrderedDict(a=1.0), collections.defaultdict(int, a=1.0)])
def test_dicts_that_come_out_are_of_the_kind_that_went_in(f: Any, d: Any) -> None:
    found, wanted = through_graph(f, d), f(d)
    assert type(found) is type(wanted) and found == wanted
    assert getattr(found, "default_factory", None) is getattr(wanted, "default_factory", None)


def test_the_order_counts_between_dicts_that_keep_one() -> None:
    a, b = collections.OrderedDict(a=1.0, b=2.0), collections.OrderedDict(b=2.0, a=1.0)
    for x, y in ((a, b), (a, a), (dict(a), b), (dict(a), dict(b))):
        assert through_graph(lambda x, y: x == y, x, y) == (x == y)


class Numbers(list[float]):
    pass


class Table(dict[str, float]):
    pass


class Pair(tuple[Any, ...]):
    pass


class Point:
    def __init__(self, x: float) -> None:
        self.x = x


dg.register(Point, lambda p: (p.x,), lambda p, parts: Point(*parts))

REFUSED = {
    "a list": [collections.deque([1.0]), Numbers([1.0]), array.array("d", [1.0]), collections.UserList([1.0])],
    "a dict": [Table(a=1.0), collections.Counter("ab"), collections.UserDict(a=1.0)],
    "a tuple": [Pair((1.0,))],
    "a dataclass": [Point(1.0)],
}


@pytest.mark.parametrize(("instead", "argument"), [(name, x) for name, xs in REFUSED.items() for x in xs])
def test_other_containers_are_refused(instead: str, argument: Any) -> None:
    with pytest.raises(dg.Error, match=f"make {instead} of it"):
        through_graph(lambda x: 1.0, argument)
    with pytest.raises(dg.Error, match=f"make {instead} of it"):
        dg.grad(dg.compile(lambda x, y: x))(1.0, [argument])


def test_other_tuples_without_reals_are_known() -> None:
    assert key(Pair((1, "a"))) == key(Pair((1, "a"))) != key(Pair((True, "a")))
    assert through_graph(lambda x, p: x * p[0], 1.5, Pair((2,))) == 3.0


def test_keys_of_dicts_are_told_apart_by_type() -> None:
    assert key({1: 2.0}) != key({True: 2.0})


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
