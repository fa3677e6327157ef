"""The worked examples of op-graph automatic differentiation, level by level: a x^2 + b x + c, and x y."""

import pytest

from dynagrad.autodiff.accumulation import Adjoints, choose
from dynagrad.autodiff.derive import generate_adjoints, increments, tangent, tangents
from dynagrad.ir import constant, evaluate, order, variable
from dynagrad.ir.control import Graph
from dynagrad.ir.ops import scalars as ops
from dynagrad.ir.show import levels, show
from dynagrad.passes.simplify import simplify

a, b, c, x, y = map(variable, "abcxy")
LEVEL_0 = (a, b, c, x)  # t00, t01, t02, t03
t10, t11 = x * x, b * x
t20, t21 = a * t10, t11 + c
t30 = t20 + t21
VALUES = (*LEVEL_0, t10, t11, t20, t21, t30)
NAMES = {t10: "t10", t11: "t11", t20: "t20", t21: "t21", t30: "t30"}
POINT = {"a": 2.0, "b": 3.0, "c": 5.0, "x": 7.0}


def same(nodes, others):
    """Whether they are the same after algebra."""
    return all(p is q for p, q in zip(simplify(list(nodes)), simplify(list(others)), strict=True))


def generate(node, delta):
    pairs = increments(node.operation, node, node.arguments, delta, range(len(node.arguments)))
    return [(node.arguments[index], increment) for index, increment in pairs]


def sweep(passing, keep=LEVEL_0):
    adjoints = Adjoints(ops.add, generate, passing)
    return adjoints.sweep(order([t30]), [(t30, constant(1.0))], set(keep)), adjoints


# -- a x^2 + b x + c ---------------------------------------------------------------------------------------------------


def test_the_graph_level_by_level():
    assert [set(level) for level in levels([t30])] == [set(LEVEL_0), {t10, t11}, {t20, t21}, {t30}]
    assert show(Graph(LEVEL_0, (t30,)), NAMES).splitlines() == [
        "(a : real, b : real, c : real, x : real)",
        "t10 : real = x * x",
        "t20 : real = a * t10",
        "t11 : real = b * x",
        "t21 : real = t11 + c",
        "t30 : real = t20 + t21",
        "-> t30",
    ]


def test_the_differentials_of_the_steps():
    d = {v: variable(f"d{NAMES.get(v, v)}") for v in VALUES}

    def differential(node):
        return tangent(node.operation, node, node.arguments, [d[v] for v in node.arguments])

    assert same([differential(t10)], [d[x] * x + d[x] * x])  # 2 x dx
    assert same([differential(t11)], [d[b] * x + d[x] * b])
    assert same([differential(t20)], [d[a] * t10 + d[t10] * a])
    assert same([differential(t21)], [d[t11] + d[c]])
    assert same([differential(t30)], [d[t20] + d[t21]])


def test_the_expansion_level_by_level():
    """dy as a sum of a_ij dt_ij: each level's terms are replaced by those of the levels below."""
    adjoints = Adjoints(ops.add, generate, passing=())
    adjoints.increment(t30, constant(1.0))
    one = constant(1.0)

    def held(*nodes):
        found = {v: adjoints._values[v] for v in VALUES if v in adjoints._values}
        assert set(found) == set(nodes)
        return [found[n] for n in nodes]

    assert same(held(t30), [one])
    adjoints.finalise(t30)
    assert same(held(t20, t21), [one, one])
    adjoints.finalise(t21)
    adjoints.finalise(t20)
    assert same(held(t10, a, t11, c), [a, t10, one, one])
    adjoints.finalise(t11)
    adjoints.finalise(t10)
    assert same(held(a, b, c, x), [t10, x, one, b + a * x + a * x])


def test_the_gradient_and_the_misprint_in_its_last_coefficient():
    found = generate_adjoints([t30], [1.0], LEVEL_0)
    values = evaluate(list(found.values()), POINT)
    right, misprint = 2 * 2.0 * 7.0 + 3.0, 2 * 2.0 * 3.0 + 3.0  # 2 a x + b, and what is printed: 2 a b + b
    assert values == (49.0, 7.0, 1.0, right) and right != misprint
    (forward,) = tangents([t30], {x: 1.0})
    assert evaluate([forward], POINT) == (right,)


def test_the_gradient_printed():
    inner = {}
    found = generate_adjoints([t30], [1.0], LEVEL_0, inner)
    given = [*VALUES, *found.values(), *inner.values()]
    small = dict(zip(given, simplify(given), strict=True))  # which may turn a product round
    names = {small[v]: name for v, name in NAMES.items()}
    adjoints = {small[v]: small[delta] for v, delta in inner.items()}
    shown = show(Graph(LEVEL_0, (small[t30], *(small[g] for g in found.values()))), names, adjoints)
    assert shown.splitlines() == [
        "(a : real, b : real, c : real, x : real)",
        "t10 : real = x * x",
        "t20 : real = a * t10",
        "t11 : real = b * x",
        "t21 : real = c + t11",
        "t30 : real = t20 + t21",
        "t30_bar : real = 1.0      # adjoint of t30",
        "t21_bar : real = 1.0      # adjoint of t21",
        "t11_bar : real = 1.0      # adjoint of t11",
        "t20_bar : real = 1.0      # adjoint of t20",
        "t10_bar : real = a        # adjoint of t10",
        "a_bar : real = t10        # adjoint of a",
        "b_bar : real = x          # adjoint of b",
        "c_bar : real = 1.0        # adjoint of c",
        "t1 : real = a * x",
        "t2 : real = b + t1",
        "x_bar : real = t1 + t2    # adjoint of x",
        "-> t30, t10, x, 1.0, x_bar",
    ]


def test_the_derivative_is_a_graph_and_is_differentiated_again():
    gradient = generate_adjoints([t30], [1.0], LEVEL_0)
    hessian = [generate_adjoints([g], [1.0], LEVEL_0) for g in gradient.values()]
    rows = [evaluate([constant(0.0) if h is None else h for h in row.values()], POINT) for row in hessian]
    #       a     b    c    x
    assert rows == [
        (0.0, 0.0, 0.0, 14.0),
        (0.0, 0.0, 0.0, 1.0),
        (0.0, 0.0, 0.0, 0.0),
        (14.0, 1.0, 0.0, 4.0),
    ]
    third = generate_adjoints([hessian[3][x]], [1.0], [a])[a]
    assert evaluate([third], POINT) == (2.0,)
    assert generate_adjoints([third], [1.0], LEVEL_0) == dict.fromkeys(LEVEL_0)  # nothing is left to depend on


def test_additions_and_buffers_of_both_ways():
    """Each value above level 0 is used once, so passing adds nothing and holds the four that are asked for."""
    everything, all_held = sweep(passing=())
    passed, by_cost = sweep(choose(order([t30]), [t30], set(LEVEL_0), dict.fromkeys(VALUES, True)))
    assert evaluate([everything[v] for v in LEVEL_0], POINT) == evaluate([passed[v] for v in LEVEL_0], POINT)
    assert (all_held.additions, all_held.held) == (2, 9)  # x is used three times
    assert (by_cost.additions, by_cost.held) == (2, 4)


def test_level_0_accumulates_where_asked_and_ignores_otherwise():
    passing = choose(order([t30]), [t30], {x}, dict.fromkeys(VALUES, True))
    found, adjoints = sweep(passing, keep=[x])
    assert set(found) == {x} and {a, b, c} <= passing
    assert (adjoints.additions, adjoints.held) == (2, 1)


# -- x y ---------------------------------------------------------------------------------------------------------------


def test_a_product_and_its_adjoint():
    assert levels([x * y]) == [[x, y], [x * y]]
    delta = variable("delta")
    assert increments(ops.multiply, x * y, (x, y), delta, [0, 1]) == [(0, delta * y), (1, delta * x)]
    found = generate_adjoints([x * y], [delta], [x, y])
    assert show(Graph((x, y, delta), tuple(found.values())), adjoints=found).splitlines() == [
        "(x : real, y : real, delta : real)",
        "x_bar : real = delta * y    # adjoint of x",
        "y_bar : real = delta * x    # adjoint of y",
        "-> x_bar, y_bar",
    ]


def test_the_derivative_of_a_product_again():
    found = generate_adjoints([x * y], [1.0], [x, y])
    mixed = generate_adjoints([found[x]], [1.0], [x, y])
    assert mixed[x] is None and evaluate([mixed[y]], {}) == (1.0,)


@pytest.mark.parametrize(
    ("t", "chosen", "counted", "other"),
    [
        (x * y, False, (3, 3, 2), (4, 2, 4)),  # accumulates, so that there are two products and not four
        (x + y, False, (3, 3, 0), (4, 2, 0)),
    ],
    ids=["product", "sum"],
)
def test_a_value_that_is_used_twice(t, chosen, counted, other):
    """The additions, the adjoints that are held and the products that propagate t, held and passed on.

    x and y have adjoints before those of t come; t is a number, which costs no storage, so both accumulate.
    """
    u, v = ops.sin(t), ops.exp(t)
    output = u + v + (x + 2.0 * y)
    series = order([output])
    values = {n: True for n in series if not n.is_constant}
    choice = choose(series, [output], {x, y}, values)
    assert (t in choice) == chosen
    for passing, wanted in ((choice - {t}, counted), (choice | {t}, other)):
        products = 0

        def spread(node, delta):
            nonlocal products
            products += 2 * (node is t and t.operation is ops.multiply)
            return [(n, d) for n, d in generate(node, delta) if not n.is_constant]

        adjoints = Adjoints(ops.add, spread, passing)
        # x and y first, as where their other uses come later
        found = adjoints.sweep(series, [(output, constant(1.0))], {x, y})
        assert (adjoints.additions, adjoints.held, products) == wanted
        point = {"x": 0.5, "y": 0.75}
        if passing == choice - {t}:
            expected = evaluate([found[x], found[y]], point)
        assert evaluate([found[x], found[y]], point) == pytest.approx(expected, rel=1e-15)
