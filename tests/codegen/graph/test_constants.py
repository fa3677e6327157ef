"""Large constants in native code: passed with each call, and not part of the source.

The oracles are the interpreter and numpy. Costs ten seconds.
"""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.codegen.graph import emit, load
from dynagrad.codegen.graph.native import Native
from dynagrad.ir.builders import call, cond, function, repeat
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import Node, constant, fresh, intern, variable
from dynagrad.ir.operation import Operation
from dynagrad.ir.ops import arrays as on_arrays
from dynagrad.ir.ops import reductions
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.types import array, arrays, integer, real
from dynagrad.runtime import calling

RNG = np.random.default_rng(8)
LARGE = RNG.normal(size=(40, 30))


@pytest.fixture(params=["builtin", "ctypes"])
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How Python calls native code."""
    if request.param == "ctypes":
        monkeypatch.setattr(calling, "PYTHON", None)
    return str(request.param)


def agree(inputs: list[Node], outputs: list[Any], *values: Any) -> str:
    graph = Graph(tuple(inputs), tuple(outputs))
    native = load(graph)
    for got, wanted in zip(native(*values), interpret(graph, list(values)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13)
    return native.text.source


def scaled(data: Any) -> Graph:
    """x times the sum of the squares of some data."""
    x = variable("x")
    return Graph((x,), (x * reductions.total(tuple(range(np.ndim(data))))(constant(data) * constant(data)),))


# -- text --------------------------------------------------------------------------------------------------------------


def test_large_constants_are_no_text() -> None:
    text = emit(scaled(LARGE))
    assert repr(float(LARGE[3, 3])) not in text.source and "real[40, 30]" in text.source
    assert text.arrays == (constant(LARGE),) and text.addresses == 2


def test_another_array_of_the_same_type_is_the_same_text() -> None:
    assert emit(scaled(LARGE)).source == emit(scaled(LARGE + 1.0)).source
    assert emit(scaled(LARGE)).source != emit(scaled(LARGE[1:])).source


def test_small_constants_and_equal_numbers_stay_in_the_text() -> None:
    small = emit(scaled(RNG.normal(size=64)))
    same = emit(scaled(np.full(1000, 2.5)))
    assert not small.addresses and "constant0[64]" in small.source
    assert not same.addresses and "2.5" in same.source and "constant0" not in same.source


def test_cpp_shows_what_is_given() -> None:
    source = dg.cpp(lambda x: np.sum(LARGE * x), 2.0)
    assert "given[1]);  // real[40, 30]" in source and len(source) < 5000


def test_the_text_of_a_function_does_not_grow_with_its_data() -> None:
    data = RNG.normal(size=10**6)
    assert len(dg.cpp(dg.grad(lambda w: np.sum((data * w - 1.0) ** 2)), 2.0)) < 5000


# -- values ------------------------------------------------------------------------------------------------------------


def test_kinds_layouts_and_places() -> None:
    x, i = fresh(arrays(real, (40, 30))), fresh(integer)
    mask, order = LARGE > 0.0, RNG.permutation(1200).reshape(40, 30)
    fortran, strided, little = np.asfortranarray(LARGE), np.ones((80, 60))[::2, ::2] * LARGE, np.float32(LARGE)
    flat = on_arrays.reshape((1200,))(x)
    outputs: list[Any] = [
        ops.where(constant(mask), x, 0.0),
        flat[constant(order)],
        x * constant(fortran) + constant(strided) * constant(little),
        constant(LARGE)[i] + constant(fortran)[:, 2][i],
        on_arrays.transpose((1, 0))(constant(LARGE)) @ x,
        constant(LARGE),
        constant(order),
        constant(mask),
    ]
    agree([x, i], outputs, RNG.normal(size=(40, 30)), 7)
    agree([x, i], outputs, RNG.normal(size=(40, 30)), -3)


def test_in_loops_branches_and_functions() -> None:
    x, n = fresh(real), fresh(integer)
    data = constant(LARGE)
    rounds = repeat(n, lambda k, s: [s + x * reductions.total((0,))(data[k])], [0.0])
    either = cond(x > 0.0, lambda: [reductions.total((0, 1))(data)], lambda: [x])
    inside = function("f", (real,), (real,), lambda v: [v * reductions.total((0, 1))(ops.exp(data * v))])
    called = [call(inside, x)[0], call(inside, x + 1.0)[0]]
    source = agree([x, n], [*rounds, *either, *called], 1.5, 40)
    assert source.count("given[1]") == 2  # in the body, and in the function


def test_several_threads_in_one_loop() -> None:
    data = RNG.normal(size=2**21)
    c = dg.compile(lambda x: (np.sum(np.exp(data * x)), np.exp(data * x)))
    total, each = c(0.25)
    np.testing.assert_allclose(each, np.exp(data * 0.25), rtol=1e-13)
    assert np.isclose(total, np.sum(each))


# -- whose data --------------------------------------------------------------------------------------------------------


def test_functions_with_one_text_keep_their_data_apart(route: str) -> None:
    all_data = [RNG.normal(size=100) for _ in range(5)]
    made = [load(scaled(data)) for data in all_data]
    assert len({id(m.text.source) for m in made}) == 5 and len({m.text.source for m in made}) == 1
    for _ in range(2):
        for m, data in zip(made, all_data, strict=True):
            assert np.isclose(m(2.0)[0], 2.0 * np.sum(data * data))


def test_in_many_threads_at_once() -> None:
    all_data = [RNG.normal(size=20_000) for _ in range(4)]
    made = [load(scaled(data)) for data in all_data]
    wrong: list[int] = []

    def work(k: int) -> None:
        wanted = float(2.0 * np.sum(all_data[k] * all_data[k]))
        for _ in range(300):
            if not np.isclose(made[k](2.0)[0], wanted):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_later_changes_of_an_array_do_not_show() -> None:
    data = RNG.normal(size=1000)
    c = dg.compile(lambda x: x * np.sum(data))
    before = c(1.0)
    data[:] = 0.0
    assert c(1.0) == before and np.isclose(dg.grad(c)(2.0), before)


def test_data_live_as_long_as_the_function(route: str) -> None:
    def make() -> Any:
        return Native(scaled(np.arange(5000.0)), "f").call(True, None)

    f = make()
    gc.collect()
    room = [np.full(5000, -1.0) for _ in range(100)]  # where they would be, were they gone
    assert f(1.0) == np.sum(np.arange(5000.0) ** 2) and room


def test_operations_of_python_are_kept_apart_too(route: str) -> None:
    def operation(shift: float) -> Operation:
        return Operation("f", (array,), array, lambda x: np.sort(x) + shift, (None,), "")

    x = variable("x", arrays(real, (3,)))
    made = [load(Graph((x,), (intern(operation(s), (x,)),))) for s in (1.0, -1.0)]
    assert made[0].text.source == made[1].text.source
    for _ in range(2):
        assert made[0](np.array([3.0, 1.0, 2.0]))[0].tolist() == [2.0, 3.0, 4.0]
        assert made[1](np.array([3.0, 1.0, 2.0]))[0].tolist() == [0.0, 1.0, 2.0]
    del made[1]
    gc.collect()
    assert made[0](np.array([3.0, 1.0, 2.0]))[0].tolist() == [2.0, 3.0, 4.0]


def test_a_library_made_for_other_data_is_refused() -> None:
    from dynagrad.codegen.graph.emit import NAME
    from dynagrad.errors import CompileError
    from dynagrad.runtime import library
    from dynagrad.runtime.compiling import cache

    text = emit(scaled(LARGE))
    one = [calling.LeafType("real")]
    made = library.load(cache.build(text.source + calling.glue(NAME, one, one, text.addresses), flags=text.flags))
    with pytest.raises(CompileError, match="given 2"):
        calling.callable_of(made, NAME, one, one)


# -- derivatives, and rules --------------------------------------------------------------------------------------------


def test_derivatives_of_a_compiled_function() -> None:
    X, y = RNG.normal(size=(200, 3)), RNG.normal(size=200)

    def loss(w: Any) -> Any:
        return np.mean((X @ w - y) ** 2)

    w, c = np.array([0.5, -1.0, 2.0]), dg.compile(loss)
    wanted = 2.0 * X.T @ (X @ w - y) / 200.0
    for gradient in (dg.grad(c), dg.compile(dg.grad(loss)), dg.compile(dg.grad(c))):
        np.testing.assert_allclose(gradient(w), wanted, rtol=1e-12)
    np.testing.assert_allclose(dg.hvp(c, (w,), (w,)), 2.0 * X.T @ (X @ w) / 200.0, rtol=1e-12)


TABLE = RNG.normal(size=300)


@dg.compile
def looked_up(x):
    """A function for rules, which has to have all of it in its text."""
    total = 0.0
    for t in TABLE:
        if t < x:
            total += t * x
    return total


def test_in_rules() -> None:
    text = ":- function h/1.  goal += h(a(_X))."
    chart = dg.Program(text, functions={"h": looked_up}).run({"a/1": [(0, 0.5), (1, -1.0)]})
    wanted = sum(float(np.sum(TABLE[x > TABLE])) * x for x in (0.5, -1.0))
    assert np.isclose(chart["goal"], wanted)


# -- how long it takes -------------------------------------------------------------------------------------------------


def test_a_data_set_that_is_used_often_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from dynagrad.ir import node

    data, seen = RNG.normal(size=10**6), []

    def watched(value: Any) -> Node:
        seen.append(value)
        return made(value)

    made = node._constant_array
    monkeypatch.setattr(node, "_constant_array", watched)

    def f(w: Any) -> Any:
        s = 0.0
        for _ in ("some", "rounds", "that", "are", "not", "a", "loop"):
            s = s + np.sum(data * w)
            w = 0.5 * w
        return s

    assert "for" in dg.cpp(f, 2.0)
    assert sum(value is data for value in seen) == 1
