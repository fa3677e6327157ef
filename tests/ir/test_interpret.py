"""The interpreter of graphs: floats, numpy, torch and jax; loops, branches, recursion, stacks; errors."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from dynagrad.autodiff.derive import generate_adjoints, tangents
from dynagrad.errors import Error
from dynagrad.ir import evaluate, exp, interpret, sin, variable
from dynagrad.ir.builders import call, cond, define, merge, repeat, while_
from dynagrad.ir.control import Graph, GraphFunction, empty, pop, push
from dynagrad.ir.interpret import DEEP, run
from dynagrad.ir.node import constant, fresh, whole
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.ops.arrays import broadcast_to, concatenate, getitem, place, sort, stack, sum_to, transpose
from dynagrad.ir.ops.determinants import determinant
from dynagrad.ir.ops.integers import TABLE as INTEGERS
from dynagrad.ir.ops.matrices import cholesky, inverse, solve
from dynagrad.ir.ops.places import at_add, at_set
from dynagrad.ir.ops.reductions import cumprod, cumsum, extreme, product, total, winners
from dynagrad.ir.types import arrays, boolean, integer, real

RNG = np.random.default_rng(5)


class Library:
    """Arrays of a library, to and from numpy's."""

    def __init__(self, name: str) -> None:
        self.module = pytest.importorskip(name)
        self.name = name

    def array(self, value: Any) -> Any:
        if self.name == "torch":
            return self.module.tensor(value, dtype=self.module.float64 if isinstance(value, float) else None)
        return self.module.numpy.asarray(value)

    def owns(self, value: Any) -> bool:
        return type(value).__module__.split(".")[0] in {"torch": {"torch"}, "jax": {"jax", "jaxlib"}}[self.name]


@pytest.fixture(params=["torch", "jax"])
def library(request: Any) -> Any:
    found = Library(request.param)
    if found.name == "torch":
        yield found
        return
    before = found.module.config.jax_enable_x64
    found.module.config.update("jax_enable_x64", True)
    yield found
    found.module.config.update("jax_enable_x64", before)


def agree(library: Library, inputs: Any, outputs: Any, points: Any) -> None:
    """The library computes what numpy does, with its own arrays."""
    graph = Graph(tuple(inputs), tuple(outputs))
    wanted = run(graph, points)
    found = run(graph, [library.array(p) for p in points])
    for f, w in zip(found, wanted, strict=True):
        assert library.owns(f) or np.ndim(w) == 0
        assert np.shape(f) == np.shape(w)
        np.testing.assert_allclose(np.asarray(f), w, rtol=1e-12, atol=1e-14)


# -- straight lines ----------------------------------------------------------------------------------------------------


def points_of(operation: Any) -> tuple[list[Any], list[Any]]:
    inputs, points = [], []
    for t in operation.arguments:
        inputs.append(fresh(arrays(t, (3,))))
        if t is boolean:
            points.append(RNG.random(3) > 0.5)
        elif t is integer:
            points.append(RNG.integers(1, 5, 3) * RNG.choice([-1, 1], 3))
        else:
            points.append(RNG.random(3) * 0.8 + (1.1 if operation.name == "arccosh" else 0.1))
    return inputs, points


def test_every_elementwise_operation(library):
    operations = [*ops.TABLE.values(), *INTEGERS.values()]
    given = [points_of(operation) for operation in operations]
    inputs = [x for xs, _ in given for x in xs]
    points = [p for _, ps in given for p in ps]
    graph = Graph(tuple(inputs), tuple(operation(*xs) for operation, (xs, _) in zip(operations, given, strict=True)))
    compute = library.module.jit if library.name == "jax" else lambda f: f  # one by one takes jax seconds
    found = compute(lambda points: run(graph, points))([library.array(p) for p in points])
    for operation, f, w in zip(operations, found, run(graph, points), strict=True):
        assert library.owns(f) and tuple(f.shape) == (3,)
        np.testing.assert_allclose(np.asarray(f), w, rtol=1e-12, atol=1e-14, err_msg=operation.name)


def test_powers_of_integers_at_the_edges(library):
    numbers = [-(2**63), -(2**40), *range(-7, 8), 62, 63, 64, 3037000499, 3037000500, 2**40 + 1, 2**63 - 1]
    of, to = (np.array([pair[k] for pair in itertools.product(numbers, numbers)]) for k in (0, 1))
    x, n = fresh(arrays(integer, of.shape)), fresh(arrays(integer, of.shape))
    power, fits = run(
        Graph((x, n), (INTEGERS["integer_power"](x, n), INTEGERS["integer_power_fits"](x, n))),
        [library.array(of), library.array(to)],
    )
    wanted = [pow(a, b, 2**64) if b >= 0 else 0 for a, b in itertools.product(numbers, numbers)]
    assert np.asarray(power).tolist() == [p - 2**64 if p >= 2**63 else p for p in wanted]
    assert np.asarray(fits).tolist() == [
        b >= 0 and (abs(a) < 2 or (b < 64 and -(2**63) <= a**b < 2**63)) for a, b in itertools.product(numbers, numbers)
    ]


a, i, z = fresh(arrays(real, (3, 4))), fresh(integer), fresh()
j = fresh(arrays(integer, (3,)))
POINTS = [RNG.normal(size=(3, 4)), 1, np.array([1, 1, 0]), 0.5]
WHOLE = {
    "a row": a[i],
    "downward": a[::-1, 1],
    "downward twice": a[::-2, ::-1],
    "places": a[j],
    "places of columns": a[:, j],
    "places and a place": a[j, i],
    "a new axis": a[None, i, ::2],
    "add": at_add(a, (i,), z),
    "add at places that occur twice": at_add(a, j, z),
    "add to columns": at_add(a, (slice(None), j), z),
    "add downward": at_add(a, (slice(None, None, -1), 0), np.arange(3.0)),
    "set": at_set(a, (i, slice(None)), z),
    "set downward": at_set(a, (0, slice(None, None, -2)), np.array([1.0, 2.0])),
    "maximum": extreme(True, (0,))(a),
    "minimum": extreme(False, (0, 1))(a),
    "running sum": cumsum(1)(a),
    "running product": cumprod(0)(a),
    "product": product((0, 1))(a),
    "sum": total((1,), True)(a),
    "python's index": getitem((..., slice(None, None, -1)))(a),
    "placed": place((slice(1, 3),), (5, 4))(a[:2]),
    "one after the other": concatenate(0, 2)(a, a),
    "along a new axis": stack(1, 2)(a, a),
    "transposed": transpose((1, 0))(a),
    "broadcast": broadcast_to((2, 3, 4))(a),
    "summed to": sum_to((4,))(a),
    "matrices": a @ transpose((1, 0))(a),
    "chosen": ops.where(a > 0.0, a, 0.0),
    "solved": solve(a[:, :3], a[:, 3:]),
    "inverse": inverse(a[:, :3]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_operations_on_whole_arrays_and_their_gradients(name, library):
    y = WHOLE[name]
    s = y * sin(y)
    s = total(tuple(range(y.ndim)))(s) if y.ndim else s
    gradient = [g for g in generate_adjoints([s], [1.0], [a, z]).values() if g is not None]
    if library.name == "jax" and name not in ("places", "set downward", "maximum", "matrices", "solved"):  # it is slow
        gradient = []
    agree(library, [a, i, j, z], [y, *gradient], POINTS)


def test_truth_values_of_whole_arrays(library):
    agree(library, [a], [winners(True, (1,))(a), winners(False, (0, 1))(a), (a > 0.0) & (a < 1.0)], POINTS[:1])


def test_cholesky_and_determinants(library):
    m = fresh(arrays(real, (3, 3)))
    agree(library, [m], [cholesky(m), determinant(m)], [POINTS[0] @ POINTS[0].T])


def test_set_at_places_of_an_array(library):
    agree(library, [a, j], [at_set(a, j, np.arange(12.0).reshape(3, 4))], [POINTS[0], np.array([2, 0, 1])])


def test_numbers_that_are_not_arrays_stay_so(library):
    x = fresh()
    assert run(Graph((x,), (x * 2.0, x > 1.0, x + constant(1.0))), [3.0]) == (6.0, True, 4.0)
    v = fresh(arrays(real, (2,)))
    found = run(Graph((v, x), (broadcast_to((2,))(x) * 2.0,)), [library.array([1.0, 2.0]), 3.0])
    assert library.owns(found[0]) and found[0].tolist() == [6.0, 6.0]


def test_arrays_of_numpy_may_stand_beside_others(library):
    v, w = fresh(arrays(real, (2,))), fresh(arrays(real, (2,)))
    [found] = run(Graph((v, w), (v * w,)), [np.array([1.0, 2.0]), library.array([3.0, 4.0])])
    assert library.owns(found) and found.tolist() == [3.0, 8.0]


def test_what_a_library_does_not_have_is_named(library):
    v = fresh(arrays(real, (3,)))
    with pytest.raises(
        Error, match=r"(torch|jax.numpy) has no function for the operation sort; use numpy arrays for it"
    ):
        run(Graph((v,), (sort(0)(v),)), [library.array([3.0, 1.0, 2.0])])


def test_errors_of_a_library_are_its_own(library):
    m = fresh(arrays(real, (2, 2)))
    graph = Graph((m,), (cholesky(m),))
    if library.name == "torch":
        with pytest.raises(library.module.linalg.LinAlgError):
            run(graph, [library.array([[1.0, 2.0], [2.0, 1.0]])])
    else:
        assert np.isnan(np.asarray(run(graph, [library.array([[1.0, 2.0], [2.0, 1.0]])])[0])).any()


def test_a_library_may_differentiate_what_it_computes():
    torch = pytest.importorskip("torch")
    v = fresh(arrays(real, (4,)))
    y = total((0,))(exp(at_add(v, 1, v[0] * v[2])) * v[::-1])
    point = np.array([0.1, 0.5, -0.3, 0.7])
    [wanted] = run(Graph((v,), tuple(generate_adjoints([y], [1.0], [v]).values())), [point])
    given = torch.tensor(point, requires_grad=True)
    run(Graph((v,), (y,)), [given])[0].backward()
    np.testing.assert_allclose(given.grad.numpy(), wanted, rtol=1e-14)


def test_jax_may_compile_what_it_computes():
    jax = pytest.importorskip("jax")
    v = fresh(arrays(real, (4,)))
    graph = Graph((v,), (total((0,))(exp(v) * v[::-1]),))
    point = np.array([0.1, 0.5, -0.3, 0.7], np.float32)
    [wanted] = run(graph, [point.astype(float)])
    assert float(jax.jit(lambda x: run(graph, [x])[0])(point)) == pytest.approx(wanted, rel=1e-5)


# -- control flow ------------------------------------------------------------------------------------------------------


def loops(x: Any, v: Any) -> Any:
    def body(n: Any, s: Any, w: Any) -> Any:
        [t] = cond(s > 1.0, lambda: [sin(s)], lambda: [s + total((0,))(w)])
        return [t, at_set(w, n, t) * 0.9]

    s, w = repeat(3, body, [x, v])
    return while_(lambda s, w: s < 5.0, lambda s, w: [s + 0.5 + exp(-s), w + s], [s, w])


def power() -> GraphFunction:
    made = GraphFunction("power", (real, integer), (real,))
    define(made, lambda x, n: cond(n > 0, lambda: [x * call(made, x, n - 1)[0]], lambda: [1.0]))
    return made


def test_control_flow_and_its_gradients(library):
    x, v = fresh(), fresh(arrays(real, (3,)))
    s, w = loops(x, v)
    y = s + total((0,))(w * w) + call(power(), x, whole(5))[0]
    gradient = generate_adjoints([y], [1.0], [x, v])
    agree(library, [x, v], merge([y, *gradient.values()]), [0.7, np.array([0.1, -0.2, 0.4])])


def test_how_often_may_be_an_array_of_no_dimension(library):
    n, x = fresh(integer), fresh()
    agree(library, [n, x], repeat(n, lambda i, s: [s * x + i], [x]), [4, 0.5])


def test_a_branch_that_is_not_taken_is_not_computed():
    x = variable("x")
    endless = GraphFunction("endless", (real,), (real,))
    define(endless, lambda x: call(endless, x))
    [y] = cond(x > 0.0, lambda: [x], lambda: call(endless, x))
    assert evaluate([y], {"x": 2.0}) == (2.0,)


def test_a_loop_of_no_rounds():
    x = variable("x")
    assert evaluate(repeat(0, lambda i, s: [s * 2.0], [x]), {"x": 3.0}) == (3.0,)
    assert evaluate(repeat(whole(-2), lambda i, s: [s * 2.0], [x]), {"x": 3.0}) == (3.0,)
    assert evaluate(while_(lambda s: s < 0.0, lambda s: [s * 2.0], [x]), {"x": 3.0}) == (3.0,)


def test_a_recursion_may_be_deep():
    x, n = variable("x"), variable("n", integer)
    y = call(power(), x, n)
    assert evaluate(y, {"x": 1.0001, "n": 5000})[0] == pytest.approx(1.0001**5000, rel=1e-10)
    [slope] = tangents(y, {x: 1.0})
    assert evaluate([slope], {"x": 1.0001, "n": 3000})[0] == pytest.approx(3000 * 1.0001**2999, rel=1e-9)


def test_a_recursion_without_end_is_an_error(monkeypatch):
    monkeypatch.setattr(interpret, "DEEP", 1000)
    assert DEEP == 100_000
    x = variable("x")
    endless = GraphFunction("endless", (real,), (real,))
    define(endless, lambda x: call(endless, x))
    with pytest.raises(Error, match=r"a recursion is more than 1,000 deep; if it ends at all, write it as a loop"):
        evaluate(call(endless, x), {"x": 1.0})


def test_stacks():
    x, y = variable("x"), variable("y")
    first = push(empty(), [x, y])
    second = push(first, [x * y])
    rest, [top] = pop(second, [real])
    rest, below = pop(rest, [real, real])
    _, nothing = pop(rest, [real, integer, boolean, arrays(real, (2,))])
    found = evaluate([top, *below, *nothing], {"x": 2.0, "y": 3.0})
    assert found[:3] == (6.0, 2.0, 3.0)
    assert found[3:6] == (0.0, 0, False) and found[6].tolist() == [0.0, 0.0]
    _, again = pop(first, [real, real])  # an old stack is as it was
    assert evaluate([top, *again], {"x": 2.0, "y": 3.0}) == (6.0, 2.0, 3.0)


# -- what is given -----------------------------------------------------------------------------------------------------


def test_values_are_converted_as_their_variables_say():
    n, p = variable("n", integer), variable("p", boolean)
    assert evaluate([n + 1, p], {"n": 3, "p": np.True_}) == (4, True)
    assert evaluate([variable("x") / 2.0], {"x": 3}) == (1.5,)


def test_numbers_out_of_range_are_no_errors():
    x = variable("x")
    found = evaluate([exp(x), 1.0 / (x - x), ops.log(-x)], {"x": 1000.0})
    assert found[0] == math.inf and found[1] == math.inf and math.isnan(found[2])
    v = fresh(arrays(real, (2,)))
    [logs] = run(Graph((v,), (ops.log(v),)), [np.array([0.0, -1.0])])
    assert logs[0] == -math.inf and math.isnan(logs[1])


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (
            lambda: evaluate([variable("x")], {"y": 1.0}),
            "no value is given for the variable x; values are given for: y",
        ),
        (lambda: evaluate([variable("x")], {}), "values are given for: none"),
        (lambda: evaluate([variable("x")], {"x": "1"}), "the variable x is a real, and its value '1' is not"),
        (lambda: evaluate([variable("p", boolean)], {"p": 1.0}), "the variable p is a boolean"),
        (
            lambda: evaluate([variable("v", arrays(real, (2,)))], {"v": np.ones(3)}),
            r"the input v is a real\[2\], and its value has the shape \(3,\)",
        ),
        (lambda: run(Graph((variable("x"),), ()), []), "the graph has 1 input, and was given 0"),
        (lambda: run(Graph((), (variable("x"),)), []), "the variable x is no input of the graph"),
        (
            lambda: evaluate(call(GraphFunction("later", (real,), (real,)), 1.0), {}),
            "the function later has no body",
        ),
    ],
)
def test_errors_say_what_is_wrong(attempt, message):
    with pytest.raises(Error, match=message):
        attempt()
