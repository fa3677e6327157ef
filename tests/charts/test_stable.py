"""Recursion with stable arguments: one system of equations, solved for all values of the argument side by side.

The oracle is numpy: the closure of a matrix A is (I - A)^-1 - I, and its derivatives follow. The programs run over
small dense and sparse graphs in a few shapes of rules; ten are compiled, which takes half a minute.
"""

from __future__ import annotations

import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

N = 12
LEFT = "path(I,J) += edge(I,J).  path(I,K) += path(I,J) * edge(J,K)."
RIGHT = "path(I,J) += edge(I,J).  path(I,K) += edge(I,J) * path(J,K)."
BY_TURNS = """
path(I,J) += edge(I,J).  path(I,K) += back(K,I).
back(K,I) += path(I,J) * edge(J,K).
"""
Matrix = np.ndarray[Any, Any]


@cache
def bound(source: str, semiring: str) -> dg.Bound:
    return dg.Program(source, semiring).bind({})


def sparse(degree: float, radius: float, seed: int) -> Matrix:
    """A graph of several components, some of single nodes without a loop; NaN where there is no edge."""
    random = np.random.default_rng(seed)
    matrix = np.where(random.random((N, N)) < degree / N, random.random((N, N)), 0.0)
    largest = max(abs(np.linalg.eigvals(matrix)))
    matrix *= radius / largest if largest > 1e-3 else 1.0
    return np.where(matrix != 0, matrix, np.nan)


def facts(matrix: Matrix, semiring: str) -> dict[str, Any]:
    there = np.argwhere(~np.isnan(matrix)).tolist()
    numbers = np.log(matrix) if semiring == "log" else matrix
    return {"edge/2": [(i, j, numbers[i, j]) for i, j in there]}


def closed(matrix: Matrix) -> Matrix:
    return np.linalg.inv(np.eye(N) - np.nan_to_num(matrix)) - np.eye(N)


def table(chart: dg.Chart, semiring: str) -> Matrix:
    found = np.zeros((N, N))
    for i, j, value in chart.table("path/2"):
        found[i, j] = np.exp(value) if semiring == "log" else value
    return found


@pytest.mark.parametrize("semiring", ["real", "log"])
@pytest.mark.parametrize("source", [LEFT, RIGHT, BY_TURNS])
class TestClosure:
    """Values and derivatives of all pairs of nodes."""

    @pytest.mark.parametrize(("degree", "radius"), [(1.2, 0.7), (2.0, 0.95), (12.0, 0.9), (4.0, 0.99999)])
    def test_values_and_items(self, source: str, semiring: str, degree: float, radius: float) -> None:
        for seed in range(6):
            matrix = sparse(degree, radius, seed)
            chart = bound(source, semiring).run(facts(matrix, semiring))
            right = closed(matrix)
            condition = np.abs(np.linalg.inv(np.eye(N) - np.nan_to_num(matrix))).sum()
            assert table(chart, semiring) == pytest.approx(right, rel=1e-15 * condition + 1e-12, abs=1e-14)
            reached = np.linalg.matrix_power(np.eye(N) + ~np.isnan(matrix), N) @ ~np.isnan(matrix) > 0
            assert {(i, j) for i, j, _ in chart.table("path/2")} == set(map(tuple, np.argwhere(reached).tolist()))
            assert chart.stats.pops == reached.sum() + (len(chart.table("back/2")) if source == BY_TURNS else 0)
            assert chart.converged

    def test_gradient(self, source: str, semiring: str) -> None:
        for seed in range(4):
            matrix = sparse(2.5, 0.8, seed)
            chart = bound(source, semiring).run(facts(matrix, semiring))
            random = np.random.default_rng(seed)
            cotangent = np.where(random.random((N, N)) < 0.4, random.normal(size=(N, N)), 0.0)
            seeds = {f"path({i},{j})": cotangent[i, j] for i, j, _ in chart.table("path/2") if cotangent[i, j]}
            cotangent = np.zeros((N, N))
            for item, number in seeds.items():
                i, j = map(int, item[5:-1].split(","))
                cotangent[i, j] = number
            plain, inverse = np.nan_to_num(matrix), np.linalg.inv(np.eye(N) - np.nan_to_num(matrix))
            if semiring == "log":  # derivatives of logs by logs
                cotangent = np.where(cotangent != 0, cotangent / np.where(cotangent != 0, closed(matrix), 1), 0)
            right = inverse.T @ cotangent @ inverse.T * (plain if semiring == "log" else 1)
            for i, j, value in chart.gradient(seeds)["edge/2"]:
                assert value == pytest.approx(right[i, j], rel=1e-9, abs=1e-11)

    def test_tangents(self, source: str, semiring: str) -> None:
        matrix = sparse(3.0, 0.8, 3)
        given = facts(matrix, semiring)
        chart = bound(source, semiring).run(given)
        direction = np.random.default_rng(1).normal(size=len(given["edge/2"]))
        plain, inverse = np.nan_to_num(matrix), np.linalg.inv(np.eye(N) - np.nan_to_num(matrix))
        moves = np.zeros((N, N))
        for (i, j, _), d in zip(given["edge/2"], direction, strict=True):
            moves[i, j] = d * (plain[i, j] if semiring == "log" else 1)
        right = inverse @ moves @ inverse
        tangents = chart.jvp({"edge/2": direction})
        for i, j, _ in chart.table("path/2"):
            scale = closed(matrix)[i, j] if semiring == "log" else 1
            assert tangents[f"path({i},{j})"] == pytest.approx(right[i, j] / scale, rel=1e-9, abs=1e-11)


def given(*edges: tuple[int, int, float], semiring: str = "real") -> dict[str, Any]:
    return {"edge/2": [(i, j, np.log(w) if semiring == "log" else w) for i, j, w in edges]}


class TestColumns:
    """What one value of the argument needs that others do not."""

    def test_signs_are_solved_value_by_value(self) -> None:
        matrix = sparse(4.0, 0.5, 7) * np.where(np.random.default_rng(0).random((N, N)) < 0.5, 1, -1)
        chart = bound(LEFT, "real").run(facts(matrix, "real"))
        assert table(chart, "real") == pytest.approx(closed(matrix), rel=1e-9, abs=1e-13)

    @pytest.mark.parametrize("semiring", ["real", "log"])
    def test_a_cycle_that_grows_is_named_where_something_enters(self, semiring: str) -> None:
        grows = given((0, 1, 0.5), (1, 2, 2.0), (2, 1, 1.0), (3, 4, 0.5), (4, 3, 0.5), semiring=semiring)
        with pytest.raises(dg.NotConverged) as raised:
            bound(LEFT, semiring).run(grows)
        assert raised.value.radius == pytest.approx(np.sqrt(2.0), rel=1e-6)
        assert [item.partition(",")[2] for item in sorted(raised.value.cycle)] == ["1)", "2)"]

    def test_zeros_do_not_enter_it(self) -> None:
        start = "path(I,J) += start(I,J).  path(I,K) += path(I,J) * edge(J,K)."
        edges = [(1, 2, 2.0), (2, 1, 1.0), (2, 3, 1.0)]
        chart = bound(start, "real").run({"start/2": [(0, 1, 0.0), (5, 3, 7.0)], "edge/2": edges})
        assert {(i, j): v for i, j, v in chart.table("path/2")} == {(0, 1): 0, (0, 2): 0, (0, 3): 0, (5, 3): 7}
        with pytest.raises(dg.NotConverged, match="path"):
            bound(start, "real").run({"start/2": [(0, 1, 0.0), (5, 1, 7.0)], "edge/2": edges})

    def test_near_critical(self) -> None:
        edges = given((0, 1, 1.0), (1, 0, 1 - 1e-13), (1, 1, 0.0))
        chart = bound(LEFT, "real").run(edges)
        assert not chart.converged
        assert chart["path(0,1)"] == pytest.approx(1e13, rel=10 * chart.error_bound)
        with pytest.raises(dg.ValueRangeError):
            chart.gradient("path(0,1)")

    def test_logs_of_very_different_sizes(self) -> None:
        start = "path(I,J) += start(I,J).  path(I,K) += path(I,J) * edge(J,K)."
        edges = [(0, 1, 0.0), (1, 0, -1.0)]
        around = -np.log1p(-np.exp(-1.0))
        starts = [0.0, -300.0, -800.0, -3000.0, 5000.0]
        chart = bound(start, "log").run({"start/2": [(i, 0, s) for i, s in enumerate(starts)], "edge/2": edges})
        for i, s in enumerate(starts):
            assert chart[f"path({i},0)"] == chart[f"path({i},1)"] == pytest.approx(s + around, rel=1e-14)
            edge = {(j, k): v for j, k, v in chart.gradient(f"path({i},1)")["edge/2"]}
            assert edge[1, 0] == pytest.approx(1 / np.expm1(1.0))
        both = bound(start, "log").run({"start/2": [(0, 0, 0.0), (0, 1, -2000.0), (1, 1, -2000.0)], "edge/2": edges})
        assert both["path(1,0)"] == pytest.approx(-2001 + around, rel=1e-14)
        assert both["path(0,0)"] == pytest.approx(around, rel=1e-14)

    def test_constant_terms(self) -> None:
        rules = "x(A,I) += start(A,I).  x(A,J) += 0.5 * x(A,I) * edge(I,J) + 0.25 * edge(I,J)."
        edges = [(0, 1, 1.0), (1, 0, 0.5)]
        chart = dg.Program(rules).run({"start/2": [(0, 0, 1.0), (1, 1, 2.0)], "edge/2": edges})
        a = np.array([[0.0, 0.25], [0.5, 0.0]])
        right = np.linalg.solve(np.eye(2) - a, [[1.125, 0.125], [0.25, 2.25]])
        for i, j in [(0, 0), (0, 1), (1, 0), (1, 1)]:
            assert chart[f"x({j},{i})"] == pytest.approx(right[i, j])
        linear = dg.Program(":- solve linear. x += a. x += 0.5 * x + b.").run({"a/0": [(1.0,)], "b/0": [(2.0,)]})
        assert linear["x"] == pytest.approx(6.0)

    def test_logs_out_of_the_range_of_doubles(self) -> None:
        logs = {"edge/2": [(0, 1, -2000.0), (1, 0, 1500.0), (1, 2, -3000.0), (2, 1, 2.0)]}
        chart = bound(LEFT, "log").run(logs)
        around = -np.log1p(-np.exp(-500.0))
        assert chart["path(0,2)"] == pytest.approx(-5000.0 + around)
        assert chart["path(2,0)"] == pytest.approx(1502.0 + around)
        assert list(chart.gradient("path(0,2)")["edge/2"]) == [
            (0, 1, pytest.approx(1.0)), (1, 0, pytest.approx(np.exp(-500.0))),
            (1, 2, pytest.approx(1.0)), (2, 1, pytest.approx(0.0, abs=1e-100)),
        ]  # fmt: skip


class TestRuns:
    """Runs that stop, go on, are made again, and pieces of other forms."""

    def test_limits(self) -> None:
        program = bound(LEFT + " far(I) += path(I,J) * last(J).", "real")
        n = 300
        chain = {"edge/2": [(i, i + 1, 0.5) for i in range(n)] + [(n, n - 1, 0.5)], "last/1": [(n, 1.0)]}
        whole = program.run(chain)
        with pytest.raises(dg.NotConverged) as raised:
            program.run(chain, max_items=9000)
        chart = raised.value.chart
        assert 9000 <= chart.stats.items <= 9090
        assert chart.run(max_items=10**9).converged
        # In slices, which end between two items of a line, the run goes on where it was, and comes to its end.
        chart, slices = program.run(chain, timeout=1e-3), 0
        while not chart.converged and slices < 3000:
            chart.run(timeout=3e-3)
            slices += 1
        assert slices < 3000
        for key in ("path/2", "far/1"):
            assert list(chart.table(key)) == list(whole.table(key))

    def test_until_stops_at_the_item(self) -> None:
        chain = given(*((i, i + 1, 0.5) for i in range(60)), (60, 59, 0.5))
        chart = bound(LEFT, "real").run(chain, until="path(3,5)")
        assert chart["path(3,5)"] == 0.25
        assert chart.stats.pops < 60 * 61 / 2

    def test_pickled(self) -> None:
        matrix = sparse(3.0, 0.9, 5)
        chart = bound(LEFT, "real").run(facts(matrix, "real"))
        again = pickle.loads(pickle.dumps(chart))
        assert list(again.table("path/2")) == list(chart.table("path/2"))
        item = next(f"path({i},{j})" for i, j, _ in chart.table("path/2"))
        assert list(again.gradient(item)["edge/2"]) == list(chart.gradient(item)["edge/2"])

    def test_expectation(self) -> None:
        matrix = sparse(3.0, 0.8, 2)
        there = np.argwhere(~np.isnan(matrix)).tolist()
        chart = bound(LEFT, "expectation").run({"edge/2": [(i, j, (matrix[i, j], matrix[i, j])) for i, j in there]})
        inverse, plain = np.linalg.inv(np.eye(N) - np.nan_to_num(matrix)), np.nan_to_num(matrix)
        length = inverse @ plain @ inverse  # expected number of edges: the derivative along the matrix itself
        for i, j, (p, r) in chart.table("path/2"):
            assert (p, r) == (pytest.approx(closed(matrix)[i, j], rel=1e-9), pytest.approx(length[i, j], rel=1e-9))

    def test_second_derivatives(self) -> None:
        n = 5
        program = dg.Program(LEFT + " goal += path(I,J).", "real")
        function = program.function("goal", ["edge/2"], {"edge/2": np.full((n, n), 0.1)})
        random = np.random.default_rng(3)
        a, u = random.random((n, n)) / n / 2, random.normal(size=(n, n))
        inverse, ones = np.linalg.inv(np.eye(n) - a), np.ones((n, n))
        moved = inverse @ u @ inverse
        right = moved.T @ ones @ inverse.T + inverse.T @ ones @ moved.T
        assert function(a) == pytest.approx((inverse - np.eye(n)).sum())
        assert np.asarray(function.hvp([a], [u])[0]) == pytest.approx(right, rel=1e-9)

    def test_plain_arithmetic(self) -> None:
        source = "path(I,J) += edge(I,J).  path(I,K) += 0.5 * path(I,J) * edge(J,K) + 0.25 * edge(J,K) * path(I,J)."
        matrix = sparse(3.0, 0.8, 4)
        chart = dg.Program(source).run(facts(matrix, "real"))
        a = np.nan_to_num(matrix)
        right = a @ np.linalg.inv(np.eye(N) - 0.75 * a)
        for i, j, value in chart.table("path/2"):
            assert value == pytest.approx(right[i, j], rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(
    ("source", "stable"),
    [
        (LEFT, True),
        (RIGHT, True),
        (BY_TURNS, True),
        ("p(I,J) += e(I,J).  p(I,K) += p(I,J) * e(J,K) for I < K.", False),
        ("p(I,J) += e(I,J).  p(I,K) += p(I,J) * e(J,K) * w(I).", False),
        ("p(I,J) += e(I,J).  p(I,K) += p(I,J) * p(J,K).", False),
        ("p(I,J) += e(I,J).  p(K,I) += p(I,J) * e(J,K).", False),
        ("p(I,J) += e(I,J).  p(I,J) += p(I,J) * e(J,J).", True),
        ("p(I,J) += e(I,J).  p(I,I) += p(I,J) * e(J,I).", False),
    ],
)
def test_what_is_stable(source: str, stable: bool) -> None:
    """An argument that anything but the head reads is not."""
    there = {key: [(0,) * int(key[-1]) + (0.5,)] for key in ("edge/2", "e/2", "w/1") if f" {key[:-2]}(" in source}
    text = dg.Program(source, "real").bind(there).explain()
    assert ("for all values of argument" in text) == stable
