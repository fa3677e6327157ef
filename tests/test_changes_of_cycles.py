"""Charts whose cycles were solved, and whose facts change: what a change reaches is solved again, the rest stays.

The judge of a changed chart is a fresh run with the facts that remain: its items, values, errors, and what it says of
itself; and solutions in 50 digits. Costs some fifty seconds, most of them for compiling: a program for fresh runs and
one for changes a case, over which hundreds of changes then run.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

PATHS = "path(Y) += start(Y). path(Y) += path(X) * edge(X,Y). goal += path(X) * stop(X)."
PAIRS = "x(A) += p(A,B,C) * x(B) * x(C). x(A) += u(A,B) * x(B). x(A) += q(A). goal += x(A) * s(A)."
CLOSURE = "path(X,Y) += edge(X,Y). path(X,Z) += path(X,Y) * path(Y,Z). loops += path(X,X)."
CKY = """
constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
constit(X,I,K) += unary(X,Y) * constit(Y,I,K).
goal += constit(s,0,N) * end(N).
"""
STAGES = """
:- input b/1.
a(Y) += start(Y). a(Y) += a(X) * edge(X,Y).
b(X) += a(X) * u(X). b(Y) += b(X) * back(Y,X). b(z) += 0.25.
c(X) += b(X) * a(X). c(Y) += d(X) * edge(X,Y). d(X) += c(X) * u(X) * 0.5.
first(X) += SIDE(b(X)) * u(X). some += SIDE(c(X)).
all += c(X) * first(X) * b(_).
"""
STEPS = """
v(T,X) += begin(T,X). v(T,Y) += v(T,X) * edge(X,Y). v(T+1,X) += v(T,X) * w(T,X) for T < 6.
w2(T,X) += v(T,X) * v(T,X). goal += v(T,X) * stop(X).
"""
PLAIN = """
x(A) += q(A). x(A) += p(A,B) * x(B) * x(B) / 4. x(A) += tanh(u(A,B)) * x(B).
y(A) += exp(-x(A)) * q(A). y(A) += 0.5 * y(B) * u(A,B) - 0.01. z += y(A) ^ 2.
"""
TERMS = "need(T) += start(T). need(U) += need(T) * edge(T,U). need(X) += need([X|T]) * 0.5. goal += need([a]) * w."

SUMS = dg.Semiring(zero=0.0, one=1.0, plus=lambda a, b: a + b, times=lambda a, b: a * b, star=lambda a: 1.0 / (1.0 - a))
PRODUCTS = dg.Semiring(  # of matrices ((a, b), (0, a)), written as pairs
    zero=(0.0, 0.0),
    one=(1.0, 0.0),
    plus=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    times=lambda a, b: (a[0] * b[0], a[0] * b[1] + a[1] * b[0]),
    star=lambda a: (1.0 / (1.0 - a[0]), a[1] / ((1.0 - a[0]) * (1.0 - a[0]))),
)

Row = tuple[Any, ...]
Maker = Callable[[random.Random], Row]
Makers = dict[str, Maker]


def pick(*columns: Any) -> Maker:
    """A row of one of the values of each column."""
    return lambda r: tuple(r.choice(c) for c in columns)


def either(*makers: Maker) -> Maker:
    return lambda r: r.choice(makers)(r)


NODES = range(7)
GRAPH = {"start/1": pick(NODES), "edge/2": pick(NODES, NODES), "stop/1": pick(NODES)}
NAMES = "abcdefz"
LISTS = ["nil", "a", "b", ("cons", "a", "nil"), ("cons", "b", ("cons", "a", "nil"))]
LABELS = ["s", "np", "vp", "x"]
CASES: list[tuple[str, Any, Makers]] = [
    (PATHS, "real", GRAPH),
    (PATHS, "log", {key: pick(*[NAMES] * int(key[-1])) for key in GRAPH}),
    (PATHS, "expectation", GRAPH),
    (PATHS, "count", GRAPH),
    (PATHS, SUMS, GRAPH),
    (PATHS, PRODUCTS, GRAPH),
    (PAIRS, "real", {"p/3": pick(NODES, NODES, NODES), "u/2": pick(NODES, NODES), "q/1": pick(NODES), "s/1": pick(NODES)}),
    (PAIRS, "log", {"p/3": pick(NAMES, NAMES, NAMES), "u/2": pick(NAMES, NAMES), "q/1": pick(NAMES), "s/1": pick(NAMES)}),
    (CLOSURE, "real", {"edge/2": pick(NAMES[:4], NAMES[:4])}),
    *(
        (
            CKY,
            semiring,
            {
                "rewrite/2": pick(LABELS, "vw"),
                "rewrite/3": pick(LABELS, LABELS, LABELS),
                "unary/2": pick(LABELS, LABELS),
                "word/3": lambda r: (r.choice("vw"), i := r.randrange(5), i + 1),
                "end/1": pick(range(3, 6)),
            },
        )
        for semiring in ("real", "log")
    ),
    (
        STAGES,
        "real",
        {
            "start/1": pick(NAMES),
            "edge/2": pick(NAMES, NAMES),
            "back/2": pick(NAMES, NAMES),
            "u/1": pick(NAMES),
            "b/1": pick(NAMES),
        },
    ),
    (
        STEPS,
        "real",
        {
            "begin/2": pick(range(3), NAMES),
            "edge/2": pick(NAMES, NAMES),
            "w/2": pick(range(6), NAMES),
            "stop/1": pick(NAMES),
        },
    ),
    (PLAIN, None, {"q/1": pick(NODES), "p/2": pick(NODES, NODES), "u/2": pick(NODES, NODES)}),
    (TERMS, "real", {"start/1": pick(LISTS), "edge/2": pick(LISTS, LISTS), "w/0": lambda _: ()}),
]  # fmt: skip
IDS = ["paths-real", "paths-log", "paths-expectation", "paths-count", "paths-sums", "paths-products", "pairs-real",
       "pairs-log", "closure", "cky-real", "cky-log", "stages", "steps", "plain", "terms"]  # fmt: skip


def value(semiring: Any, r: random.Random) -> Any:
    """A small weight, so that cycles are well-conditioned; now and then zero, or one that makes them diverge."""
    weight = r.choice([0.0, 1.5] if r.random() < 0.05 else [0.05, 0.1 * r.random(), 0.1])
    if semiring == "log":
        return float(np.log(weight)) if weight else -np.inf
    if semiring == "count":
        return r.randrange(3)
    return (weight, r.random()) if semiring == "expectation" or semiring is PRODUCTS else weight


def outcome(run: Callable[[], dg.Chart], predicates: Any) -> Any:
    """What there is to see of a run: items, and what the chart says of itself; or the error."""
    try:
        chart = run()
    except dg.NotConverged as error:
        return type(error), str(error), error.cycle, error.radius
    except dg.Error as error:
        return type(error), str(error)
    items = {(key, *row[:-1]): row[-1] for key in predicates for row in chart.table(key)}
    return items, chart.converged, chart.error_bound


def agree(got: Any, wanted: Any, relative: float) -> None:
    assert len(got) == len(wanted), (got, wanted)
    if not isinstance(wanted[0], dict):
        assert got == wanted
        return
    items, converged, bound = wanted
    assert got[0].keys() == items.keys()
    assert got[1] == converged
    assert got[2] == pytest.approx(bound, rel=1e-3, abs=1e-13)
    for item, number in items.items():
        assert np.asarray(got[0][item]) == pytest.approx(np.asarray(number), rel=relative, abs=1e-300), item


def changed(chart: dg.Chart, now: dict[str, list[Row]], makers: Makers, semiring: Any, r: random.Random) -> None:
    """Changes some facts of a chart, and of what is known of them."""
    for _ in range(r.randint(1, 3)):
        key = r.choice(list(makers))
        row = (*makers[key](r), value(semiring, r))
        if now[key] and r.random() < 0.4:
            row = (*r.choice(now[key])[:-1], row[-1])
        match r.choice(["add", "retract", "set"]):
            case "add":
                chart.add(key, [row])
                now[key].append(row)
            case "set":
                chart.set(key, [row])
                now[key] = [x for x in now[key] if x[:-1] != row[:-1]] + [row]
            case _ if now[key]:
                gone = r.choice(now[key])[:-1]
                chart.retract(key, [gone])
                now[key] = [x for x in now[key] if x[:-1] != gone]


@pytest.mark.parametrize(("source", "semiring", "makers"), CASES, ids=IDS)
def test_a_changed_chart_equals_a_fresh_run(source: str, semiring: Any, makers: Makers) -> None:
    program = dg.Program(source, semiring)
    followed = 0
    for seed in range(ROUNDS):
        r = random.Random(seed)
        now = {key: [(*f(r), value(semiring, r)) for _ in range(r.randint(1, 8))] for key, f in makers.items()}
        shared = [key for key in now if r.random() < 0.5]
        try:
            chart = program.bind({key: now[key] for key in shared}).run(
                {key: rows for key, rows in now.items() if key not in shared}
            )
        except dg.NotConverged as error:
            chart = error.chart
        for _ in range(6):
            changed(chart, now, makers, semiring, r)
            got, wanted = (outcome(run, program.predicates) for run in (chart.run, partial(program.run, now)))
            agree(got, wanted, 1e-11)
            followed += chart._prepared.compiled.plan.resolves
    print(followed)
    assert followed > ROUNDS


ROUNDS = 60
