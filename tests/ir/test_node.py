"""Nodes: interned, built by Python's and numpy's operators, of any depth. Costs a few seconds."""

from __future__ import annotations

import copy
import gc
import math
import os
import pickle
import threading

import numpy as np
import pytest

from dynagrad.autodiff.derive import generate_adjoints, tangents
from dynagrad.errors import Error
from dynagrad.ir import boolean, constant, evaluate, order, variable
from dynagrad.ir.node import _table
from dynagrad.ir.ops import scalars as ops
from dynagrad.passes.simplify import simplify

x, y = variable("x"), variable("y")


def value(node, **values):
    return evaluate([node], values)[0]


def test_equal_nodes_are_the_same_object():
    assert (x + y) * 2.0 is (x + y) * 2
    assert x + y is not y + x
    assert variable("x") is x
    assert variable("x", boolean) is not x


def test_constants_are_told_apart_by_their_bits():
    assert constant(0.0) is not constant(-0.0)
    assert constant(True) is not constant(1.0)
    assert constant(math.nan) is constant(math.nan)


def test_nodes_that_nobody_holds_are_forgotten():
    gc.collect()
    before = len(_table)
    node = variable("temporary") + 17.25
    assert len(_table) == before + 3
    del node
    gc.collect()
    assert len(_table) == before


def test_threads_agree_on_nodes():
    barrier = threading.Barrier(8)
    built = []

    def build():
        barrier.wait()
        node = variable("shared")
        for i in range(200):
            node = ops.sin(node * float(i))
        built.append(node)

    threads = [threading.Thread(target=build) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(node is built[0] for node in built)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_nodes_are_built_after_a_fork_in_the_middle_of_building():
    from dynagrad.ir import node as module

    with module._lock:
        child = threading.Thread(target=lambda: statuses.append(_fork_and_build()))
        statuses: list[int] = []
        child.start()
        child.join()
    assert statuses == [0]


def _fork_and_build() -> int:
    pid = os.fork()
    if pid == 0:
        variable("child") * 2.0
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def test_python_operators():
    at = {"x": 3.0, "y": -2.0}
    assert value(2 + x - y * 4 / x, **at) == 2 + 3.0 + 8 / 3.0
    assert value(1 - x, **at) == -2.0
    assert value(1 / x, **at) == 1 / 3.0
    assert value(2**x, **at) == 8.0
    assert value(x**2, **at) == 9.0
    assert value(-abs(+y), **at) == -2.0
    assert value((x > 0) & ~(y >= 0) | (x == y), **at) is True
    assert value((x != y) & (x <= 3), **at) is True
    assert value(True & (0 < y), **at) is False  # noqa: SIM300
    assert value(1.0 * (x < 4) + True * x, **at) == 4.0  # a truth value counts 1 or 0 among reals


def test_numpy_functions_and_numbers():
    assert np.exp(x) is ops.exp(x)
    assert np.logaddexp(x, 1.0) is ops.log_add(x, 1.0)
    assert np.maximum(0.0, x) is ops.maximum(0.0, x)
    assert np.where(x > 0, x, 0.0) is ops.where(x > 0, x, 0.0)
    assert np.float64(2.0) * x is 2.0 * x
    assert x * np.float32(0.5) is x * 0.5
    assert x + np.array(3) is x + 3.0
    assert np.square(x) is x * x
    assert np.abs(x) is abs(x)
    assert ops.where(np.bool_(True), x, y) is ops.where(True, x, y)


@pytest.mark.parametrize("name", ["add", "exp", "tanh", "minimum", "less", "logical_and", "power", "log1p"])
def test_numpy_and_our_operations_agree(name):
    operation = ops.TABLE[name]
    point = [True, False] if name == "logical_and" else [0.3, 0.8][: len(operation.arguments)]
    inputs = [variable(f"v{i}", kind) for i, kind in enumerate(operation.arguments)]
    node = getattr(np, name)(*inputs)
    assert value(node, v0=point[0], v1=point[-1]) == pytest.approx(getattr(np, name)(*point), rel=1e-15)


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: 1 if x > 0 else 2, "may not branch on a value"),
        (lambda: max(x, y), "np.maximum"),
        (lambda: 0 < x < 1, "may not branch"),
        (lambda: x in [y], "may not branch"),
        (lambda: math.exp(x), "np.exp"),
        (lambda: int(x), "cannot become a whole number"),
        (lambda: [1, 2][x], "cannot become a whole number"),
        (lambda: complex(x), "complex"),
        (lambda: np.array([x, 1.0]), "cannot become part of an array"),
        (lambda: np.array(["a", "b"]) * x, "works on numbers and arrays"),
        (lambda: np.logaddexp2(x, 1.0), "logaddexp2 is no operation"),
        (lambda: np.add.reduce(x), "no out=, where=, reduce"),
        (lambda: np.add(x, 1.0, where=True), "no out=, where=, reduce"),
        (lambda: np.sum(x), "sum is no operation"),
        (lambda: ops.exp("x") if False else ops.add(x, "x"), "'x' of type str"),
        (lambda: ~x, "should be a truth value"),
        (lambda: ops.where(x, 1.0, 2.0), "should be a truth value"),
        (lambda: constant("1"), "a constant should be a number"),
        (lambda: setattr(x, "type", boolean), "cannot be changed"),
        (lambda: type(x)(), "nodes are made by"),
        (lambda: evaluate([x + y], {"x": 1.0}), "no value is given for the variable y"),
        (lambda: evaluate([x], {"x": "1"}), "the variable x is a real"),
    ],
)
def test_what_a_node_cannot_do_says_what_to_do_instead(attempt, message):
    with pytest.raises(Error, match=message):
        attempt()


def test_what_is_no_number_is_left_to_python():
    assert (x == None) is False  # noqa: E711
    with pytest.raises(TypeError):
        x + "1"
    with pytest.raises(TypeError):
        x << 2.0
    assert (np.array([1.0, 2.0]) * x).shape == (2,)


def test_other_kinds_of_numbers_may_take_over():
    class Pair:
        @staticmethod
        def __apply_operation__(operation, arguments):
            return operation.name, arguments

        def __radd__(self, other):
            return ops.add(other, self)

    pair = Pair()
    assert ops.add(x, pair) == ("add", (x, pair))
    assert (x + pair)[0] == "add"


def test_order_has_each_node_once_and_after_its_arguments():
    node = ops.exp(x * y) + x * y
    series = order([node, x])
    assert len(series) == len(set(series)) == 5
    place = {n: i for i, n in enumerate(series)}
    assert all(place[a] < place[n] for n in series for a in n.arguments)
    assert order([]) == ()


def test_pickles_and_copies_are_the_same_node():
    node = ops.where(x > -0.0, ops.log(y), math.inf) * x
    assert pickle.loads(pickle.dumps(node)) is node
    assert copy.deepcopy(node) is node
    assert copy.copy(node) is node


def test_printing():
    assert repr(-(x + 1.0) * ops.exp(x - y)) == "(-(x + 1.0)) * exp(x - y)"
    deep = x
    for _ in range(50):
        deep = deep + y
    assert len(repr(deep)) < 100


def chain(length):
    node = x
    for i in range(length // 2):
        node = ops.sin(node) + float(i % 3)
    return node


def test_a_chain_of_twenty_thousand_nodes_is_no_trouble():
    gc.collect()
    before = len(_table)
    node = chain(20_000)
    assert len(order([node])) == 20_000 + 4
    assert math.isfinite(value(node, x=0.5))
    assert len(repr(node)) < 200
    assert pickle.loads(pickle.dumps(node)) is node
    assert len(_table) > before + 19_000
    del node
    gc.collect()
    assert len(_table) < before + 10


def test_long_chains_are_simplified_and_differentiated():
    (node,) = simplify([chain(6_000)])
    (forward,) = tangents([node], {x: 1.0})
    backward = generate_adjoints([node], [1.0], [x])[x]
    assert value(forward, x=0.5) == pytest.approx(value(backward, x=0.5), rel=1e-6)
