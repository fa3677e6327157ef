"""Cyclic programs, beside linear algebra, iteration, and the same programs without the cycle."""

from __future__ import annotations

import time
import warnings
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import dynagrad as dg

from . import wsj
from .common import Row, alternate, timed

RUIN = "w(I) += step(I,J) * w(J).  w(I) += top(I)."
FLOW = "x(I) += given(I).  x(J) += x(I) * arc(I,J)."
CLOSURE = "path(I,J) += edge(I,J).  path(I,K) += path(I,J) * edge(J,K)."
CKY = """
constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
constit(X,I,K) += unary(X,Y) * constit(Y,I,K).
"""
ITERATE = ":- solve iterate.\n"
PATIENCE = 50.0  # seconds that an iteration may take


def difference(own: Any, peer: Any) -> float:
    """The largest relative difference between two lists of values."""
    a, b = np.asarray(own, float), np.asarray(peer, float)
    return float(np.max(np.abs(a - b) / np.abs(b)))


def cycles() -> list[Row]:
    """All benchmarks of this file, in a minute and a half."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.ProgramWarning)  # that sums around a cycle may grow, where they are iterated
        return [*ruin(), *large(), *grid(), *closure(), *change(), *parser(), *chains()]


def ruin() -> list[Row]:
    """Gambler's ruin, fair: a linear component of 399 items, on which iteration converges slowly."""
    n = 400
    steps = [(i, i + d, 0.5) for i in range(1, n) for d in (-1, 1) if 0 < i + d < n]
    bound = dg.Program(RUIN).bind({"step/2": steps, "top/1": [(n - 1, 0.5)]})
    matrix, top = np.eye(n - 1), np.zeros(n - 1)
    for i, j, p in steps:
        matrix[i - 1, j - 1] -= p
    top[-1] = 0.5
    wins = np.linalg.solve(matrix, top)
    found = bound.run().query("w(I)")
    worst = difference([value for _, value in sorted(found)], wins)
    own, peer = alternate(lambda: timed(bound.run), lambda: timed(lambda: np.linalg.solve(matrix, top)), repeats=100)
    what = f"gambler's ruin of {n} states"
    before = "by iteration 10.25 s and 93,363,004 pops, for 7 digits"
    return [
        Row(what, own, "s", "numpy.linalg.solve", peer, 1.0, before),
        Row(f"{what}: worst relative difference (from numpy)", worst, "", target=1e-11),
    ]


def large() -> list[Row]:
    """A sparse component of 100,000 items, whose spectral radius is 0.999, solved and iterated."""
    n, degree, radius = 100_000, 4, 0.999
    random = np.random.default_rng(0)
    heads, tails = np.repeat(np.arange(n), degree), random.integers(0, n, n * degree)
    weights = random.uniform(0.5, 1.5, n * degree)
    x, size = np.ones(n), 1.0
    for _ in range(300):  # powers of the matrix
        x = np.bincount(tails, weights * x[heads], n)
        size = x.sum()
        x /= size
    weights *= radius / size
    arcs = np.stack([heads, tails], 1)
    facts = {"given/1": [(0, 1.0)], "arc/2": (arcs, weights)}
    solved, iterated = dg.Program(FLOW).bind(facts), dg.Program(ITERATE + FLOW).bind(facts)
    found = np.zeros(n)
    for i, value in solved.run().query("x(I)"):
        found[i] = value
    again = np.bincount(tails, weights * found[heads], n)
    again[0] += 1.0
    own = alternate(lambda: timed(solved.run), repeats=3)[0]
    iterated.run(max_pops=1)  # compiles
    start = time.perf_counter()
    chart = iterated.run(timeout=PATIENCE)
    peer = time.perf_counter() - start
    share = chart.table("x/1").values.sum() / found.sum()
    what = f"linear component of {n:,} items, 4 arcs each, spectral radius {radius}"
    rest = peer * np.log(1e-12) / np.log(1 - share) if 0 < share < 1 else np.inf
    note = f"iteration was stopped with {share:.0%} of the sum of all values; to 12 digits it would take {rest:,.0f} s"
    return [
        Row(what, own, "s", "iteration", peer, 1 / 20, "" if chart.converged else note),
        Row(f"{what}: largest residual relative to the largest value", residual(found, again), "", target=1e-14),
    ]


def grid() -> list[Row]:
    """Walks on a grid, in log: a component of 90,000 items whose values span 78 orders of magnitude."""
    from scipy.sparse import csc_matrix, identity
    from scipy.sparse.linalg import spsolve

    n, weight = 300, 0.24
    places = np.arange(n * n).reshape(n, n)
    steps = [(places[:, :-1], places[:, 1:]), (places[:-1], places[1:])]
    pairs = [np.stack([a.ravel(), b.ravel()], 1) for a, b in steps]
    arcs = np.concatenate([*pairs, *(p[:, ::-1] for p in pairs)])
    facts = {"given/1": [(0, 0.0)], "arc/2": (arcs, np.full(len(arcs), np.log(weight)))}
    bound = dg.Program(FLOW, "log").bind(facts)
    matrix = csc_matrix((np.full(len(arcs), weight), (arcs[:, 1], arcs[:, 0])), (n * n, n * n))
    system, right = (identity(n * n) - matrix).tocsc(), np.zeros(n * n)
    right[0] = 1.0
    walks = spsolve(system, right)
    found = np.zeros(n * n)
    for i, value in bound.run().query("x(I)"):
        found[i] = np.exp(value)
    own, peer = alternate(lambda: timed(bound.run), lambda: timed(lambda: spsolve(system, right)), repeats=3)
    what = f"walks on a grid of {n} by {n} places, in log"
    return [
        Row(what, own, "s", "scipy.sparse.linalg.spsolve, in real", peer, 2.0),
        Row(f"{what}: worst relative difference (from scipy)", difference(found, walks), "", target=1e-9),
    ]


def residual(values: np.ndarray, again: np.ndarray) -> float:
    return float(np.max(np.abs(values - again)) / np.max(np.abs(values)))


def closure() -> list[Row]:
    """The closure of a complete graph: a component for each start, all with the same matrix."""
    n = 200
    random = np.random.default_rng(0)
    matrix = random.random((n, n))
    matrix *= 0.9 / np.max(np.abs(np.linalg.eigvals(matrix)))
    bound = dg.Program(CLOSURE).bind({"edge/2": matrix})
    identity = np.eye(n)
    paths = np.linalg.solve(identity - matrix, matrix)
    found = np.array([value for *_, value in sorted(bound.run().query("path(I,J)"))]).reshape(n, n)
    own, peer = alternate(
        lambda: timed(bound.run), lambda: timed(lambda: np.linalg.solve(identity - matrix, matrix)), repeats=20
    )
    what = f"closure of a dense {n} by {n} matrix, written as paths"
    return [
        Row(what, own, "s", "numpy.linalg.solve", peer, 20.0),
        Row(f"{what}: worst relative difference (from numpy)", difference(found, paths), "", target=1e-11),
    ]


def change() -> list[Row]:
    """One arc of a large graph changes its weight: an incremental change of the chart, beside a fresh run."""
    count, size, degree, chain = 1000, 100, 4, 10
    n = count * size
    random = np.random.default_rng(0)
    nodes = np.arange(n)
    first = nodes // size * size
    heads = np.repeat(nodes, degree)
    onward = np.arange(0, n - size, size)[np.arange(count - 1) % chain != chain - 1]  # ten components in a row
    arcs = [
        (heads, np.repeat(first, degree) + random.integers(0, size, n * degree), random.uniform(0, 0.23, n * degree)),
        (nodes, first + (nodes + 1) % size, np.full(n, 0.02)),
        (onward, onward + size, np.full(len(onward), 0.1)),
    ]
    tails, tips, weights = (np.concatenate([part[k] for part in arcs]) for k in range(3))
    bound = dg.Program(FLOW).bind(
        {"given/1": (nodes[:, None], np.ones(n)), "arc/2": (np.stack([tails, tips], 1), weights)}
    )
    following, afresh = bound.run(), bound.run()

    def changed(chart: dg.Chart, **limits: Any) -> Any:
        def work() -> float:
            chart.set("arc/2", [(500, 501, float(random.uniform(0.01, 0.02)))])
            return timed(partial(chart.run, **limits))

        return work

    changed(following)()  # compiles
    limited = changed(afresh, timeout=1e6)  # any limit means a run of all of it
    own, peer = alternate(changed(following), limited, repeats=15)
    afresh.set("arc/2", [(500, 501, 0.015)])
    following.set("arc/2", [(500, 501, 0.015)])
    worst = difference(
        *(chart.run(**kwargs).table("x/1").values for chart, kwargs in ((following, {}), (afresh, {"timeout": 1e6})))
    )
    again, whole = following.stats, afresh.stats
    what = f"one of {len(weights):,} arcs changes, {count:,} linear components of {size} items in rows of {chain}"
    note = f"{again.pops:,} items computed again; native time {again.seconds:.2g} s, afresh {whole.seconds:.2g} s"
    return [
        Row(what, own, "s", "a fresh run", peer, 1 / 3, note),
        Row(f"{what}: worst relative difference (from a fresh run)", worst, "", target=1e-13),
    ]


def native(bound: dg.Bound, given: list[dict[str, Any]]) -> float:
    """Seconds in native code for runs over several sets of facts."""
    return sum(bound.run(facts).stats.seconds for facts in given)


def parser() -> list[Row]:
    """A parser with cyclic unary rules, beside the same with acyclic ones."""
    n, words = 40, 40
    binary = [(f"n{i}", f"n{(i * 7 + j) % n}", f"n{(i * 3 + j * 5) % n}", 0.02) for i in range(n) for j in range(20)]
    chain = [(f"n{i}", f"n{i + 1}", 0.1) for i in range(n - 1)]
    around = [*chain, (f"n{n - 1}", f"n{n - 10}", 0.1)]
    lexical = [(f"n{i}", "w", 0.3) for i in range(n)]
    sentence = [{"word/3": [("w", i, i + 1) for i in range(words)]}]
    rows = []
    for semiring in ("log", "real"):
        facts = {"rewrite/3": binary, "rewrite/2": lexical}
        straight, cyclic, iterated = (
            dg.Program(text + CKY, semiring).bind({**facts, "unary/2": unary}, values="probabilities")
            for text, unary in (("", chain), ("", around), (ITERATE, around))
        )
        own, peer = alternate(partial(native, cyclic, sentence), partial(native, straight, sentence), repeats=15)
        before = native(iterated, sentence) / peer
        what = f"CKY of {words} words in {semiring}, with a cycle of 10 unary rules"
        note = f"by iteration {before:.0f} times"
        rows.append(Row(what, own, "s", "its unary rules without the cycle", peer, 1.3, note))
    return rows


def chains() -> list[Row]:
    """The WSJ sample with a chain of unary rules over all its phrases, without and with a cycle."""
    binary, lexical = (wsj.rows(name) for name in ("binary.tsv", "lexical.tsv"))
    phrases = sorted({rule[0] for rule in binary if "|" not in rule[0]})
    chain = [(x, y, 0.05) for x, y in pairwise(phrases)]
    around = [*chain, (phrases[-1], phrases[-10], 0.05)]
    given = [wsj.facts(s) for s in wsj.sentences() if 25 <= len(s) <= 40][:20]

    def bind(unary: list[Any], text: str = "") -> dg.Bound:
        facts = {"rewrite/3": binary, "rewrite/2": lexical, "unary/2": unary}
        return dg.Program(text + CKY + "goal += constit('TOP',0,N) * end(N).", "log").bind(
            facts, values="probabilities"
        )

    straight, cyclic, iterated = bind(chain), bind(around), bind(around, ITERATE)
    worst = max(difference(cyclic.run(facts)["goal"], iterated.run(facts)["goal"]) for facts in given[:1])
    before = native(iterated, given) / len(given)
    own, peer = alternate(partial(native, cyclic, given), partial(native, straight, given), repeats=5)
    what = f"WSJ in log with unary rules of which 10 are a cycle, {len(given)} sentences of 25 to 40 words"
    note = f"{own / len(given):.2g} s a sentence; by iteration {before:.2g} s"
    return [
        Row(what, own, "s", "its unary rules without the cycle", peer, 1.3, note),
        Row(f"{what}: relative difference of log p from iteration", worst, "", target=1e-9),
    ]
