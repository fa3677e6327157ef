"""Rows of facts through changes: what is given twice, and the order and shape of all that comes back by row.

A plain list of rows is the model: charts are changed at random, with facts in drawn forms, and what they say of values,
gradients, directions and counts is held against sums and maxima over that list in a few lines of Python, and against a
fresh run on it. Costs some ten seconds.
"""

from __future__ import annotations

import copy
import heapq
import math
import pickle
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dynagrad as dg

Row = tuple[int, float]
Rows = list[Row]


# -- the model ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sum:
    """How the goal is made of all pairs of a row of `a` and a row of `w` with one argument: nothing joins before."""

    pair: Callable[[float, float], float]
    slope: Callable[[float, float], float]
    """The derivative of a pair by the row of `a`."""
    plus: Callable[[Sequence[float]], float]
    share: Callable[[Sequence[float], float], list[float]]
    """The derivative of the sum by each contribution."""

    def contributions(self, a: Rows, w: Rows) -> list[tuple[int, float, float]]:
        return [(n, self.pair(x, y), self.slope(x, y)) for n, (i, x) in enumerate(a) for j, y in w if i == j]

    def value(self, a: Rows, w: Rows) -> float:
        return self.plus([c for _, c, _ in self.contributions(a, w)])

    def gradient(self, a: Rows, w: Rows) -> list[float]:
        found = self.contributions(a, w)
        values = [c for _, c, _ in found]
        shares = self.share(values, self.plus(values)) if values else []
        return [math.fsum(s * c[2] for c, s in zip(found, shares, strict=True) if c[0] == n) for n in range(len(a))]


def log_sum(x: Sequence[float]) -> float:
    return math.log(math.fsum(map(math.exp, x))) if x else -math.inf


def first(values: Sequence[float], best: float) -> list[float]:
    at = list(values).index(best)
    return [float(n == at) for n in range(len(values))]


def times(x: float, y: float) -> float:
    return x * y


def add(x: float, y: float) -> float:
    return x + y


def softmax(values: Sequence[float], total: float) -> list[float]:
    return [math.exp(v - total) for v in values]


SUMS = {
    "+=": Sum(times, lambda x, y: y, math.fsum, lambda values, _: [1.0] * len(values)),
    "log+=": Sum(add, lambda x, y: 1.0, log_sum, softmax),
    "max=": Sum(add, lambda x, y: 1.0, lambda x: max(x, default=-math.inf), first),
    "min=": Sum(add, lambda x, y: 1.0, lambda x: min(x, default=math.inf), first),
}
OF_SEMIRING = {"real": "+=", "log": "log+=", "viterbi": "max=", "tropical": "min="}


def text(aggregator: str) -> str:
    return f"goal {aggregator} a(X) {'*' if aggregator == '+=' else '+'} w(X).  seen(X) :- a(X)."


@cache
def program(kind: str) -> dg.Program:
    """Declared semirings; programs that run as one; and plain arithmetic with rows that are told how to join."""
    if kind in OF_SEMIRING:
        return dg.Program("goal += a(X) * w(X).", kind)
    if kind.startswith("plain "):
        return dg.Program(text(kind.removeprefix("plain ")))
    return dg.Program(text(kind).split("  ")[0])


KINDS = {**OF_SEMIRING, **{k: k for k in SUMS}, **{f"plain {k}": k for k in SUMS}}


def after_set(rows: Rows, new: Rows) -> Rows:
    """Each new row where its fact stood, the n-th one where the n-th copy did; others last."""
    waiting, found = list(new), []
    for row in rows:
        mine = next((n for n in waiting if n[0] == row[0]), None)
        if mine is not None:
            waiting.remove(mine)
        if mine is not None or all(n[0] != row[0] for n in new):
            found.append(row if mine is None else mine)
    return found + waiting


# -- forms of facts ----------------------------------------------------------------------------------------------------


def as_file(rows: Rows, folder: Any) -> Any:
    path = folder / f"{random.random()}.tsv"
    path.write_text("".join(f"{i}\t{x!r}\n" for i, x in rows))
    return dg.read_file(path, "a/1")


FORMS: dict[str, Callable[[Rows, Any], Any]] = {
    "rows": lambda rows, _: list(rows),
    "generator": lambda rows, _: iter(rows),
    "pair": lambda rows, _: (np.array([[i] for i, _ in rows], int).reshape(-1, 1), np.array([x for _, x in rows])),
    "frame": lambda rows, _: pd.DataFrame(rows, columns=["node", "cost"]).astype({"node": int, "cost": float}),
    "arrow": lambda rows, _: pa.table(
        {"node": pa.array([i for i, _ in rows], pa.int64()), "cost": pa.array([x for _, x in rows], pa.float64())}
    ),
    "series": lambda rows, _: pd.Series([x for _, x in rows], index=[i for i, _ in rows], dtype=float),
}


def formed(rng: random.Random, rows: Rows, folder: Any) -> Any:
    """Rows in some form that can have them."""
    indices = [i for i, _ in rows]
    if rows and indices == list(range(len(rows))) and rng.random() < 0.5:
        return np.array([x for _, x in rows])
    if len(set(indices)) == len(rows) and rng.random() < 0.2:
        return dict(rows)
    return FORMS[rng.choice(list(FORMS))](rows, folder)


def drawn_rows(rng: random.Random, least: int, most: int) -> Rows:
    rows = [(rng.randrange(5), round(rng.uniform(-2, 2), 3)) for _ in range(rng.randint(least, most))]
    return rows + [rng.choice(rows)] * (rng.random() < 0.3) if rows else rows


# -- changes -----------------------------------------------------------------------------------------------------------

W: Rows = [(0, 0.5), (1, -1.25), (2, 2.0), (3, 0.75), (2, 0.25)]


def check(kind: str, chart: dg.Chart, rows: Rows, rng: random.Random) -> None:
    """Whether a chart says of its rows what the model does."""
    model = SUMS[KINDS[kind]]
    wanted, shares = model.value(rows, W), model.gradient(rows, W)
    assert chart["goal"] == pytest.approx(wanted)
    for i in {i for i, _ in rows}:
        assert chart["a", i] == pytest.approx(model.plus([x for j, x in rows if j == i]))
    gradient = chart.gradient("goal")
    table = gradient["a/1"]
    assert [row[0] for row in table] == [i for i, _ in rows]
    assert table.values.reshape(-1).tolist() == pytest.approx(shares, abs=1e-9)
    assert gradient["w/1"].values.tolist() == pytest.approx(model.gradient(W, rows), abs=1e-9)
    along = [rng.uniform(-1, 1) for _ in rows]
    assert chart.jvp({"a/1": along})["goal"] == pytest.approx(math.fsum(map(times, along, shares)), abs=1e-9)
    if not kind.startswith("plain") and rows and math.isfinite(wanted) and abs(wanted) > 1e-3:
        counts = chart.expected_counts("goal")["a/1"].values.reshape(-1).tolist()
        used = [g * x / wanted for g, (_, x) in zip(shares, rows, strict=True)] if kind in ("real", "+=") else shares
        assert counts == pytest.approx(used, abs=1e-9)
    fresh = program(kind).run({"a/1": rows, "w/1": W})
    within = 0 if KINDS[kind] in ("min=", "max=") else 1e-12
    assert fresh["goal"] == pytest.approx(chart["goal"], rel=within)
    assert fresh.gradient("goal")["a/1"].values.tolist() == pytest.approx(table.values.tolist(), rel=within, abs=within)


def changed(rng: random.Random, chart: dg.Chart, rows: Rows, folder: Any) -> Rows:
    """Changes the facts of a chart at random; the rows that it has then."""
    what = rng.choice(["add", "set", "set", "retract", "retract with values"])
    if what == "add":
        new = drawn_rows(rng, 0, 3)
        chart.add("a/1", formed(rng, new, folder))
        return rows + new
    if what == "set":
        new = drawn_rows(rng, 0, 2) + ([(rng.choice(rows)[0], 0.125)] if rows else [])
        chart.set("a/1", formed(rng, new, folder))
        return after_set(rows, new)
    if not rows:
        return rows
    gone = rng.sample(rows, rng.randint(1, min(2, len(rows))))
    if what == "retract":
        chart.retract("a/1", [(i,) for i, _ in gone])
        return [row for row in rows if row[0] not in {i for i, _ in gone}]
    chart.retract("a/1", gone)
    return [row for row in rows if row not in gone]


@pytest.mark.filterwarnings("ignore:The values of `a/1` all lie between 0 and 1")
@pytest.mark.parametrize("kind", KINDS)
def test_charts_after_changes_are_those_of_the_rows_that_a_list_has(kind: str, tmp_path: Any) -> None:
    for seed in range(6):
        rng = random.Random(f"{kind} {seed}")
        bound, own = drawn_rows(rng, 0, 4), drawn_rows(rng, 0, 4)
        facts = {"a/1": formed(rng, bound, tmp_path), "w/1": W} if bound else {"w/1": W}
        base = program(kind).bind(facts)
        if bound and rng.random() < 0.5:
            bound = [(i, round(rng.uniform(-2, 2), 3)) for i, _ in bound]
            base = base.with_values({"a/1": [x for _, x in bound]})
        chart = base.run({"a/1": formed(rng, own, tmp_path)} if own or not bound else {})
        rows = bound + own
        check(kind, chart, rows, rng)
        for _ in range(4):
            rows = changed(rng, chart, rows, tmp_path)
            if rng.random() < 0.3:
                rows = changed(rng, chart, rows, tmp_path)
            if rng.random() < 0.3:
                chart = rng.choice([copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])(chart)
            check(kind, chart.run(), rows, rng)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_and_functions_have_a_number_for_each_row(kind: str) -> None:
    model, rng = SUMS[KINDS[kind]], random.Random(kind)
    bound, examples = drawn_rows(rng, 3, 4) * 2, [drawn_rows(rng, 0, 3) for _ in range(4)]
    base = program(kind).bind({"a/1": bound, "w/1": W})
    batch = base.run_batch([{"a/1": rows} if rows else {} for rows in examples], query="goal", gradient=["a/1", "w/1"])
    wholes = [bound + rows for rows in examples]
    assert batch.values.tolist() == pytest.approx([model.value(rows, W) for rows in wholes])
    of_bound = np.sum([model.gradient(rows, W)[: len(bound)] for rows in wholes], axis=0)
    assert list(batch.gradient["a/1"])[: len(bound)] == [
        (i, pytest.approx(g, abs=1e-9)) for (i, _), g in zip(bound, of_bound, strict=True)
    ]
    alone = program(kind).bind({"w/1": W})
    batch = alone.run_batch([{"a/1": rows} for rows in wholes], query="goal", gradient=["a/1"])
    for table, rows in zip(batch.gradient["a/1"], wholes, strict=True):
        assert list(table) == [
            (i, pytest.approx(g, abs=1e-9)) for (i, _), g in zip(rows, model.gradient(rows, W), strict=True)
        ]
    f = base.function("goal", inputs=["a/1"])
    numbers = [round(rng.uniform(-2, 2), 3) for _ in bound]
    rows = [(i, x) for (i, _), x in zip(bound, numbers, strict=True)]
    value, (slopes,) = f.value_and_grad(np.array(numbers))
    assert (value, slopes.tolist()) == (
        pytest.approx(model.value(rows, W)),
        pytest.approx(model.gradient(rows, W), abs=1e-9),
    )


# -- dense tables ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", [True, False])
def test_a_dense_table_keeps_its_shape_through_changes_of_its_numbers(bound: bool) -> None:
    program, numbers = dg.Program("goal += m(_,Y) * x(Y).", "real"), np.arange(1.0, 7.0).reshape(2, 3)
    facts = {"m/2": numbers, "x/1": np.array([1.0, 10.0, 100.0])}
    chart = program.bind(facts).run() if bound else program.run(facts)
    slopes = np.array([[1.0, 10.0, 100.0]] * 2)
    for rows in ([(1, 2, 0.5)], {(0, 1): 7.0, (1, 0): -2.0}, -numbers, []):
        chart.set("m/2", rows)
        for i, j, value in rows if isinstance(rows, list) else []:
            numbers[i, j] = value
        if isinstance(rows, dict):
            for at, value in rows.items():
                numbers[at] = value
        if isinstance(rows, np.ndarray):
            numbers = rows.copy()
        chart.add("m/2", [])
        assert chart.run()["goal"] == pytest.approx((numbers * slopes).sum())
        assert np.array_equal(chart.gradient("goal")["m/2"].values, slopes)
        counts = chart.expected_counts("goal")["m/2"].values
        assert counts == pytest.approx(numbers * slopes / (numbers * slopes).sum())
        assert chart.jvp({"m/2": numbers})["goal"] == pytest.approx(chart["goal"])
    chart.retract("m/2", [(0, 1)])
    chart.add("m/2", [(0, 1, 3.0), (2, 0, 4.0)])
    found = chart.run().gradient("goal")["m/2"]
    assert [row[:2] for row in found] == [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2), (0, 1), (2, 0)]
    assert found.values.tolist() == [1.0, 100.0, 1.0, 10.0, 100.0, 10.0, 1.0]


def test_coordinate_descent_by_changes_of_single_facts_converges() -> None:
    """Each step solves for one number by the derivative that its own row of the gradient has."""
    program = dg.Program("fit(I) += x(I,J) * w(J).  loss += (y(I) - fit(I)) ^ 2.")
    x, y = np.array([[2.0, 1.0], [1.0, 3.0], [0.5, -1.0]]), np.array([1.0, 2.0, 3.0])
    chart = program.run({"x/2": x, "y/1": y, "w/1": np.zeros(2)})
    w = np.zeros(2)
    for step in range(60):
        j = step % 2
        w[j] -= chart.gradient("loss")["w/1"].values[j] / (2 * (x[:, j] ** 2).sum())
        chart.set("w/1", [(j, w[j])])
        chart.run()
    assert w == pytest.approx(np.linalg.lstsq(x, y, rcond=None)[0], rel=1e-9)


# -- paths -------------------------------------------------------------------------------------------------------------

ROADS = {
    "tropical": "far(0) = 0.  far(V) min= far(U) + road(U,V).",
    "plain": "far(0) = 0.  far(V) min= far(U) + road(U,V).  z = tanh(far(1)).",
    "declared": ":- semiring tropical. far(0) = 0. far(V) += far(U) * road(U,V).",
}


def distances(roads: Sequence[tuple[int, int, float]]) -> dict[int, float]:
    """Bellman and Ford, over every road by itself."""
    found = {0: 0.0}
    for _ in range(10):
        for u, v, cost in roads:
            if u in found:
                found[v] = min(found.get(v, math.inf), found[u] + cost)
    return found


@pytest.mark.parametrize("kind", ROADS)
def test_the_shorter_of_two_roads_counts_after_every_change(kind: str) -> None:
    program, rng = dg.Program(ROADS[kind]), random.Random(kind)
    for _ in range(6):
        roads = [(rng.randrange(6), rng.randrange(6), float(rng.randint(1, 9))) for _ in range(14)]
        cut = rng.randrange(14)
        chart = program.bind({"road/2": roads[:cut]}).run({"road/2": roads[cut:]})
        for _ in range(5):
            wanted = distances(roads)
            assert {v: cost for v, cost in chart.query("far(V)")} == wanted
            goal = rng.choice(sorted(wanted))
            used = chart.gradient(f"far({goal})")["road/2"]
            assert [row[:2] for row in used] == [road[:2] for road in roads]
            assert math.fsum(times(n, cost) for n, (_, _, cost) in zip(used.values, roads, strict=True)) == wanted[goal]
            assert chart.best(f"far({goal})").weight == wanted[goal] if kind != "plain" else True
            new = [(rng.randrange(6), rng.randrange(6), float(rng.randint(1, 9)))]
            if rng.random() < 0.5:
                chart.add("road/2", new)
                roads = roads + new
            else:
                gone = rng.choice(roads)
                chart.retract("road/2", [gone])
                roads = [road for road in roads if road != gone]
            chart.run()


# -- a graph of the size of real ones ----------------------------------------------------------------------------------

NODES = 20_000


def dijkstra(roads: Sequence[tuple[int, int, float]]) -> dict[int, float]:
    found: dict[int, float] = {}
    ways: dict[int, list[tuple[int, float]]] = {}
    for u, v, cost in roads:
        ways.setdefault(u, []).append((v, cost))
    heap = [(0.0, 0)]
    while heap:
        far, at = heapq.heappop(heap)
        if at not in found:
            found[at] = far
            for to, cost in ways.get(at, ()):
                heapq.heappush(heap, (far + cost, to))
    return found


@pytest.mark.parametrize("kind", ["tropical", "declared"])
def test_distances_in_a_large_graph_with_parallel_roads_are_those_of_dijkstra(kind: str) -> None:
    """Every third road is there twice; then shorter and longer ones are added beside others, and some are closed."""
    draw = np.random.default_rng(0)
    ends = draw.integers(NODES, size=(3 * NODES, 2))
    ends = np.concatenate([ends, ends[::3]])
    costs = draw.integers(1, 1000, size=len(ends)) / 8
    chart = dg.Program(ROADS[kind]).run({"road/2": pd.DataFrame({"u": ends[:, 0], "v": ends[:, 1], "cost": costs})})
    roads = list(zip(*ends.T.tolist(), costs.tolist(), strict=True))
    wanted = dijkstra(roads)
    assert len(wanted) > 0.9 * NODES
    assert dict(chart.query("far(V)")) == wanted
    other = [(u, v, cost * draw.choice([0.5, 2.0])) for u, v, cost in roads[::500]]
    closed = roads[1::500]
    chart.add("road/2", other)
    chart.retract("road/2", closed)
    assert dict(chart.run().query("far(V)")) == dijkstra([*(road for road in roads if road not in closed), *other])


def test_one_more_row_of_a_large_graph_changes_what_it_should() -> None:
    """Of rows that were bound, and of one that is brought: the shortest of all counts."""
    roads = [(n, n + 1, 1.0) for n in range(NODES)] + [(n, n + 1, 2.0) for n in range(NODES)]
    bound = dg.Program(ROADS["tropical"]).bind({"road/2": roads})
    assert bound.run()[f"far({NODES})"] == NODES
    assert bound.run({"road/2": [(5, 6, 0.25)]})[f"far({NODES})"] == NODES - 0.75
