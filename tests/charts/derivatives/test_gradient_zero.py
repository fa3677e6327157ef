"""Facts of weight zero around a cycle: nothing flows through them, and their derivatives are those of the fixed point.

The oracle is linear algebra: the sum over paths from `start` to `stop` is `start (I - W)^-1 stop`. Costs three seconds.
"""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynagrad as dg

pytestmark = pytest.mark.filterwarnings("ignore:.*may diverge:dynagrad.ProgramWarning")

PATHS = "path(V) += start(V).  path(V) += path(U) * edge(U,V).  goal += path(V) * stop(V)."
PROGRAMS = {
    (semiring, agenda): (f":- agenda {agenda}. {PATHS}", semiring)
    for semiring in ("real", None)
    for agenda in ("auto", "fifo", "lifo")
}


@cache
def program(semiring, agenda):
    return dg.Program(*PROGRAMS[semiring, agenda])


def facts(start, weights, stop):
    n = len(start)
    return {
        "start/1": [(i, start[i]) for i in range(n)],
        "edge/2": [(i, j, weights[i, j]) for i in range(n) for j in range(n)],
        "stop/1": [(i, stop[i]) for i in range(n)],
    }


def by_hand(start, weights, stop):
    """The value, and its derivatives by the start, the edges and the stop."""
    inverse = np.linalg.inv(np.eye(len(start)) - weights)
    before, after = start @ inverse, inverse @ stop
    return before @ stop, after, np.outer(before, after), before


# not negative: where updates change sign, one may fall under the tolerance early, and the run is not that close
mostly_zero = st.one_of(st.just(0.0), st.just(0.0), st.sampled_from([0.25, 0.125, 0.375]))


@settings(max_examples=20, deadline=None)
@given(st.data())
@pytest.mark.parametrize(("semiring", "agenda"), PROGRAMS)
def test_every_gradient_is_that_of_the_fixed_point(semiring, agenda, data):
    n = 3
    draw = lambda size: np.array(data.draw(st.lists(mostly_zero, min_size=size, max_size=size)))  # noqa: E731
    start, weights, stop = draw(n), draw(n * n).reshape(n, n), draw(n)
    if max(abs(np.linalg.eigvals(abs(weights)))) > 0.9:
        return
    chart = program(semiring, agenda).run(facts(start, weights, stop))
    value, by_start, by_edge, by_stop = by_hand(start, weights, stop)
    gradient = chart.gradient("goal")
    close = {"rtol": 1e-9, "atol": 1e-10}
    np.testing.assert_allclose(chart["goal"], value, **close)
    np.testing.assert_allclose(gradient["start/1"].values, by_start, **close)
    np.testing.assert_allclose(gradient["edge/2"].values, by_edge.ravel(), **close)
    np.testing.assert_allclose(gradient["stop/1"].values, by_stop, **close)
    direction = np.linspace(-1.0, 2.0, n * n)
    tangent = chart.jvp({"edge/2": direction})["goal"]
    np.testing.assert_allclose(tangent, direction @ by_edge.ravel(), **close)


SQUARES = "a(I) += r(I).  a(I) += w(I,J) * a(J) * a(J).  goal += a(I) * u(I)."


@cache
def squares(semiring):
    return dg.Program(SQUARES, semiring)


@pytest.mark.parametrize("semiring", ["real", None])
def test_what_is_not_linear_may_diverge_where_it_is_iterated(semiring):
    rows = {"r/1": [(0, 0.125)], "w/2": [(0, 0, 0.125)], "u/1": [(0, 1.0)]}
    with pytest.warns(dg.ProgramWarning, match="may diverge"):
        dg.Program(SQUARES, semiring).run(rows, tolerance=0.0)


@settings(max_examples=20, deadline=None)
@given(st.data())
@pytest.mark.parametrize("semiring", ["real", None])
def test_programs_that_are_not_linear_have_the_implicit_derivative(semiring, data):
    n = 3
    numbers = st.sampled_from([0.0, 0.0, 0.125, 0.0625])
    draw = lambda size: np.array(data.draw(st.lists(numbers, min_size=size, max_size=size)))  # noqa: E731
    r, w, u = draw(n), draw(n * n).reshape(n, n), draw(n)
    a = r
    for _ in range(200):
        a = r + w @ (a * a)
    after = np.linalg.solve((np.eye(n) - 2 * w * a).T, u)  # what a constant added to an item is worth
    chart = squares(semiring).run(
        {
            "r/1": [(i, r[i]) for i in range(n)],
            "w/2": [(i, j, w[i, j]) for i in range(n) for j in range(n)],
            "u/1": [(i, u[i]) for i in range(n)],
        },
        tolerance=0.0,  # what a tolerance holds back has no part in the derivative
    )
    gradient = chart.gradient("goal")
    close = {"rtol": 1e-9, "atol": 1e-11}
    np.testing.assert_allclose(gradient["r/1"].values, after, **close)
    np.testing.assert_allclose(gradient["w/2"].values, np.outer(after, a * a).ravel(), **close)
    direction = np.linspace(-1.0, 2.0, n * n)
    np.testing.assert_allclose(
        chart.jvp({"w/2": direction})["goal"], np.outer(after, a * a).ravel() @ direction, **close
    )


def test_a_tolerance_leaves_tangents_and_gradients_alike():
    weights = np.array([[0.2, 0.5, 0.1], [0.0, 0.3, 0.0], [0.0, 0.0, 0.4]])
    chart = program("real", "auto").run(facts(np.array([1.0, 0.0, 0.5]), weights, np.ones(3)), tolerance=0.02)
    direction = np.linspace(-1.0, 2.0, 9)
    tangent = chart.jvp({"edge/2": direction})["goal"]
    assert tangent == pytest.approx(chart.gradient("goal")["edge/2"].values @ direction, rel=1e-12)


def test_a_long_cycle_of_zeros_takes_time_in_proportion():
    n = 3000
    rows = {"start/1": [(0, 1.0)], "edge/2": [(i, (i + 1) % n, 1.0 if i % 2 else 0.0) for i in range(n)]}
    chart = program("real", "auto").run({**rows, "stop/1": [(i, 1.0) for i in range(n)]})
    gradient = chart.gradient("goal")["edge/2"]
    assert gradient.values[0] == 2.0 and not gradient.values[1:].any()


def test_hessian_products_go_through_a_cycle_that_a_zero_closes():
    start, stop = np.array([1.0, 0.0]), np.array([1.0, 1.0])
    weights = np.array([[0.0, 0.5], [0.0, 0.0]])  # 1 -> 0 is zero
    rows = facts(start, weights, stop)
    f = program("real", "auto").function("goal", inputs=["edge/2"], facts=rows)
    direction = np.array([0.0, 0.25, 1.0, 0.0])
    (product,) = f.hvp([weights.ravel()], [direction])
    step = 1e-5
    moved = [by_hand(start, weights + s * step * direction.reshape(2, 2), stop)[2] for s in (1, -1)]
    np.testing.assert_allclose(product, (moved[0] - moved[1]).ravel() / (2 * step), rtol=1e-8)


def test_weights_that_are_lost_in_rounding_count_too():
    weights = np.array([[0.0, 0.5], [1e-30, 0.0]])
    chart = program("real", "auto").run(facts(np.array([1.0, 0.0]), weights, np.array([1.0, 1.0])))
    assert chart.gradient("goal")["edge/2"][1, 0] == pytest.approx(0.75, rel=1e-12)


def test_expectations_of_weight_zero():
    pair = lambda x: (x, 0.0)  # noqa: E731
    rows = {
        "start/1": [("v", pair(1.0))],
        "edge/2": [("v", "u", pair(0.5)), ("u", "v", pair(0.0))],
        "stop/1": [("v", pair(1.0)), ("u", pair(1.0))],
    }
    chart = dg.Program(PATHS, "expectation").run(rows)
    assert chart.gradient("goal")["edge/2"]["u", "v"] == pytest.approx((0.75, 0.0))


def test_a_run_that_was_stopped_has_the_gradient_of_what_ran():
    rows = facts(np.array([1.0, 0.0]), np.array([[0.0, 0.5], [0.0, 0.0]]), np.array([1.0, 1.0]))
    bound = program("real", "auto").bind(rows)
    stopped = bound.run(max_pops=2)
    assert not stopped.converged
    assert stopped.gradient("path(0)")["edge/2"][1, 0] == 0.0
    assert bound.run().gradient("path(0)")["edge/2"][1, 0] == pytest.approx(0.5)


@pytest.mark.filterwarnings("ignore:the run stopped early")
@pytest.mark.parametrize("pops", [1, 2, 3, 4, 5, 8])
def test_where_a_run_was_stopped_tangents_and_gradients_agree(pops):
    weights = np.array([[0.25, 0.5, 0.0], [0.0, 0.125, 0.25], [0.25, 0.0, 0.0]])
    rows = facts(np.array([1.0, 0.0, 0.0]), weights, np.ones(3))
    direction = np.linspace(-1.0, 2.0, 9)
    chart = program("real", "fifo").run(rows, max_pops=pops)
    expected = chart.gradient("path(0)")["edge/2"].values @ direction
    assert chart.jvp({"edge/2": direction})["path(0)"] == pytest.approx(expected, rel=1e-13)
    f = program("real", "fifo").function("path(0)", inputs=["edge/2"], facts=rows, max_pops=pops)
    assert f.jvp([weights.ravel()], [direction])[1] == pytest.approx(expected, rel=1e-13)
    assert f.value_and_grad(weights.ravel())[1][0] @ direction == pytest.approx(expected, rel=1e-13)


def test_a_tolerance_holds_back_values_and_derivatives_alike():
    """What the tolerance leaves pending enters neither: goal is 1 + w with w the way to 1, of which 0.05 stays back."""
    weights = np.array([[0.0, 0.5], [0.1, 0.0]])
    rows = facts(np.array([1.0, 0.0]), weights, np.array([1.0, 1.0]))
    chart = program("real", "auto").run(rows, tolerance=0.1)
    assert chart["goal"] == 1.5
    assert chart.gradient("goal")["edge/2"][1, 0] == 0.0


@pytest.mark.parametrize("semiring", ["real", None])
def test_derivatives_that_grow_without_end_are_an_error(semiring):
    rows = facts(np.zeros(2), np.array([[0.0, 2.0], [2.0, 0.0]]), np.ones(2))
    chart = program(semiring, "auto").run(rows)
    assert chart["goal"] == 0.0
    with pytest.raises(dg.ValueRangeError, match=r"path\([01]\)"):
        chart.gradient("goal")
    with pytest.raises(dg.ValueRangeError, match=r"path\([01]\)"):
        chart.jvp({"start/1": np.ones(2)})
    turning = facts(np.zeros(2), np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones(2))
    chart = program(semiring, "auto").run(turning)
    with pytest.raises(dg.ValueRangeError, match=r"path\([01]\) does not settle"):
        chart.gradient("goal")
    with pytest.raises(dg.ValueRangeError, match=r"path\([01]\) does not settle"):
        chart.jvp({"start/1": np.ones(2)})


@pytest.mark.filterwarnings("ignore:The sum of `d/1` may diverge")
@pytest.mark.parametrize("solve", ["auto", "iterate"])
@pytest.mark.parametrize("semiring", ["real", "log"])
def test_outside_values_are_by_weights_where_a_cycle_has_the_value_zero(semiring: str, solve: str):
    """They are sums over ways around the cycle, whatever comes in: by logs in `log`, where an item may be -inf."""
    zero, half, one = (-math.inf, math.log(0.25), 0.0) if semiring == "log" else (0.0, 0.25, 1.0)
    rules = "d(X) += s(X). d(Y) += h*d(X)*e(X,Y). d(X) += h*d(X). goal += d(_)."
    program = dg.Program(f":- semiring {semiring}. :- solve {solve}. {rules}")
    around = np.linalg.inv(np.eye(2) - 0.25 * np.array([[1.0, 1.0], [1.0, 1.0]]))
    for come in (zero, one):
        chart = program.run({"s/1": [("a", come)], "h/0": half, "e/2": [("a", "b", one), ("b", "a", one)]})
        for goal, value in (("goal", around[0].sum()), ("d(b)", around[0, 1]), ("d(a)", around[0, 0])):
            found = chart.outside("d(a)", goal=goal)
            assert found == pytest.approx(math.log(value) if semiring == "log" else value, rel=1e-11)
            assert chart.outside("s(a)", goal=goal) == pytest.approx(found, rel=1e-11)


@pytest.mark.filterwarnings("ignore:The sum of `d/1` may diverge")
@pytest.mark.parametrize(
    "held", ["prune z(X) < -5.", "beam z(X) by (X) keep 5.", "prune s2(X) < -5.", "prune goal < -5."]
)
def test_what_is_held_back_elsewhere_changes_nothing_of_a_cycle(held: str):
    """Neither its bound nor the derivatives of what is zero: what is held back is before it, after it or beside it."""
    text = "s2(X) += s(X). d(X) += s2(X). d(X) += h*d(X). goal += d(_). z(X) += s(X)."
    program = dg.Program(f":- {held} {text}", "real")
    for weight in (0.0, 1.0):
        chart = program.run({"s/1": [("a", weight)], "h/0": 0.9})
        assert chart["goal"] == pytest.approx(10 * weight, rel=1e-12)
        assert chart.converged and chart.error_bound < 1e-12
        assert chart.gradient("goal").item("s(a)") == pytest.approx(10, rel=1e-9)
        assert chart.outside("d(a)", goal="goal") == pytest.approx(10, rel=1e-9)
        assert chart.jvp({"s/1": [1.0]})["goal"] == pytest.approx(10, rel=1e-9)
