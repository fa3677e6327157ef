"""Adjoint accumulation, in place or as a sum of nodes: what each costs, and which values have which."""

import operator

import pytest

from dynagrad.autodiff.accumulation import Adjoints, cheaper, choose
from dynagrad.autodiff.derive import generate_adjoints
from dynagrad.ir import exp, order, sin, variable, where
from dynagrad.ir.builders import merge
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run
from dynagrad.ir.node import fresh
from dynagrad.ir.ops.arrays import broadcast_to, reshape
from dynagrad.ir.ops.reductions import total
from dynagrad.ir.types import arrays, real


def series(uses, log):
    """A let-series of numbers: for each value the arguments and the partial derivatives, which count as products."""

    def generate(key, delta):
        log.append((key, delta))
        return [(argument, delta * slope) for argument, slope in uses.get(key, [])]

    return generate


# t = a + b is used twice, by u and by v; a and b are used elsewhere, too, so that they have adjoints already
SUM = {"t": [("a", 1.0), ("b", 1.0)], "u": [("t", 2.0)], "v": [("t", 3.0)], "w": [("a", 5.0), ("b", 7.0)]}
ORDER = ["a", "b", "t", "u", "v", "w"]
SEED = [("u", 1.0), ("v", 1.0), ("w", 1.0)]


def test_accumulating_a_sum_that_is_used_twice_takes_a_place_and_three_additions():
    adjoints = Adjoints(operator.add, series(SUM, []), passing={"u", "v", "w"})
    assert adjoints.sweep(ORDER, SEED, {"a", "b"}) == {"a": 10.0, "b": 12.0}
    assert adjoints.additions == 1 + 2
    assert adjoints.held == 2 + 1  # a and b, and t


def test_passing_a_sum_that_is_used_twice_takes_four_additions_and_no_place():
    log = []
    adjoints = Adjoints(operator.add, series(SUM, log), passing={"u", "v", "w", "t"})
    assert adjoints.sweep(ORDER, SEED, {"a", "b"}) == {"a": 10.0, "b": 12.0}
    assert adjoints.additions == 4
    assert adjoints.held == 2
    assert [delta for key, delta in log if key == "t"] == [2.0, 3.0]  # each increment, as it comes


def test_a_product_is_propagated_once_where_it_accumulates():
    product = {**SUM, "t": [("a", 11.0), ("b", 13.0)]}
    products = {}
    for passing in ({"u", "v", "w"}, {"u", "v", "w", "t"}):
        log = []
        found = Adjoints(operator.add, series(product, log), passing).sweep(ORDER, SEED, {"a", "b"})
        assert found == {"a": 5 * 11.0 + 5.0, "b": 5 * 13.0 + 7.0}
        products["t" in passing] = 2 * sum(1 for key, _ in log if key == "t")
    assert products == {False: 2, True: 4}


def test_what_nobody_asked_for_ignores_its_increments():
    adjoints = Adjoints(operator.add, series(SUM, []), passing={"u", "v", "w", "t", "b"})
    assert adjoints.sweep(ORDER, SEED, {"a"}) == {"a": 10.0}
    assert adjoints.held == 1


def test_the_life_of_an_adjoint_step_by_step():
    adjoints = Adjoints(operator.add, series({"t": [("a", 2.0)]}, []), passing=())
    adjoints.increment("t", 1.0)
    adjoints.increment("t", 10.0)
    assert adjoints.finalise("t") == 11.0
    assert adjoints.finalise("t") is None  # it is gone
    assert adjoints.finalise("a") == 22.0


def test_passing_is_no_recursion():
    n = 10_000
    uses = {i: [(i - 1, 1.0)] for i in range(1, n)}
    adjoints = Adjoints(operator.add, series(uses, []), passing=range(1, n))
    assert adjoints.sweep(range(n), [(n - 1, 3.0)], {0}) == {0: 3.0}
    assert (adjoints.held, adjoints.additions) == (1, 0)


# -- which life --------------------------------------------------------------------------------------------------------


def vector(n=9):
    return fresh(arrays(real, (n,)))


x, y = vector(), vector()
s = fresh()


@pytest.mark.parametrize(
    ("node", "to", "most"),
    [
        (x + y, [0, 1], 2),  # 002: as many additions, and nothing to store
        (x + y, [0], None),
        (x - y, [0], None),
        (-x, [0], 2),
        (x - y, [0, 1], 1),
        (x * y, [0, 1], 1),
        (exp(x), [0], 1),
        (reshape((3, 3))(x), [0], None),
        (x + s, [0, 1], 1),  # s is summed over
        (broadcast_to((9,))(s), [0], 1),
        (s + s * 2.0, [0, 1], 1),  # a number stays in a register
        (s + 1.0, [0], None),
    ],
    ids=repr,
)
def test_how_many_increments_pass(node, to, most):
    """At most this many; None stands for any number."""
    assert cheaper(node, 1, to)
    assert [k for k in range(1, 9) if cheaper(node, k, to)] == list(range(1, (most or 8) + 1))


def chosen(output, *wrt):
    series = order([output])
    known = {n: True for n in series if not n.is_constant}
    return choose(series, [output], set(wrt), known)


def test_values_that_are_used_once_pass():
    t = exp(s)
    u = sin(t)
    assert chosen(u * 2.0, s) == {t, u, u * 2.0}


def test_values_that_are_asked_for_accumulate():
    t = exp(s)
    assert t not in chosen(sin(t), s, t)


def test_increments_are_counted_through_what_passes():
    t = exp(x)
    u = t + y  # passes two, so t gets two
    v = total((0,))(u * u)
    assert chosen(v, x, y) == {v, u * u, u}


def test_both_ways_give_the_same(monkeypatch):
    from dynagrad.autodiff import derive

    def f(x, y):
        t = x + y
        u = reshape((3, 3))(t)
        return total((0,))(t * sin(t) - (-t) * exp(x)) + total((0, 1))(u * u)

    inputs, dots = (x, y), [[0.1 * i for i in range(9)], [0.3 * i - 1.0 for i in range(9)]]
    import numpy as np

    points = [np.array(d) for d in dots]
    found = []
    for always in (False, True):
        if always:
            monkeypatch.setattr(derive, "choose", lambda *_: set())
        adjoints = generate_adjoints([f(x, y)], [1.0], inputs)
        found.append(run(Graph(inputs, merge(list(adjoints.values()))), points))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_adjoints_of_inner_values_are_collected():
    a, b = variable("a"), variable("b")
    t = a * b
    z = sin(t) + t
    inner = {}
    found = generate_adjoints([z], [1.0], [a], inner)
    assert set(inner) >= {a, t, sin(t), z} and inner[a] is found[a]
    assert b not in inner  # nobody asked about it
    point = {a: 0.3, b: 0.7}
    import math

    [bar] = run(Graph(tuple(point), (inner[t],)), list(point.values()))
    assert bar == pytest.approx(math.cos(0.21) + 1.0, rel=1e-15)


# -- cost --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        lambda t: where(t > 0.0, t * sin(t), t),
        lambda t: where(t > 0.0, t * t, sin(t) * t),
        lambda t: t + t,
        lambda t: sin(t + t) + t,
        lambda t: where(t > 1.0, where(t > 2.0, t * t, t), 0.0) + where(t < 1.5, exp(t) * t, 0.0),
        lambda t: abs(t) * t,
    ],
)
def test_a_gradient_costs_a_constant_times_the_function(step):
    sizes = []
    for n in (20, 40):
        t = s
        for _ in range(n):
            t = step(t)
        gradient = generate_adjoints([t], [1.0], [s])[s]
        sizes.append(len(order([gradient])))
        assert sizes[-1] < 8 * len(order([t]))
    assert sizes[1] < 2.2 * sizes[0]


def test_a_long_sum_is_no_recursion():
    t = s
    for _ in range(3000):
        t = sin(t) * s + t
    assert generate_adjoints([t], [1.0], [s])[s] is not None


def test_a_choice_that_is_not_taken_adds_nothing_however_it_is_reached():
    from dynagrad.ir import log, sqrt
    from dynagrad.ir.interpret import evaluate

    a, c = variable("a"), variable("c")
    root = sqrt(a)  # whose slope at zero is infinite
    for z in (
        where(a > 0.0, root, 0.0),
        where(a > 0.0, root, 0.0) + where(a > 1.0, root * c, 1.0),
        where(a > 0.0, where(c > 0.0, root, 1.0), 0.0),
        where(c > 9.0, root * 2.0, where(a > 0.0, root, c)),
        where(a > 0.0, root * log(a), 0.0) + where(c < 0.0, root, 0.0),
        where(a > 0.0, 0.0, 1.0) * c + where(a > 0.0, root, 2.0),
    ):
        adjoint = generate_adjoints([z], [1.0], [a])[a]
        assert evaluate([adjoint], {"a": 0.0, "c": 1.0}) == (0.0,)
