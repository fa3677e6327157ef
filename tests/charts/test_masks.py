"""Masks and large scores in `log` and under `log+=`: values, shares and derivatives of logs of any size.

The oracle sums over all paths, or solves the cycle, in 700 digits. Costs half a minute, most of it compiling.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import dynagrad as dg
from dynagrad import special

SIZES = [1e3, 1e5, 1e10, 1e15, 1e16, 1e17, 2.8e17, 3e17, 1e18, 1.2e19, 1.3e19, 1e20, 1e30, 1e100, 1e300, 1.7e308]

CHAIN = "a(0,T) += emit(0,T). a(I+1,T) += a(I,S)*trans(S,T)*emit(I+1,T). goal += a(N,_)*end(N)."
PATHS = "path(V) += start(V). path(V) += path(U)*edge(U,V). goal += path(V)*stop(V)."
WAYS = {"log": "p += a(X)*b(X).", "log+=": "p log+= a(X)+b(X).", "plain": "p log+= a(X)*1 + b(X). q = 0*p."}


@cache
def program(text: str, semiring: str | None = None) -> dg.Program:
    return dg.Program(text, semiring)


def softmax(scores: Any) -> tuple[float, np.ndarray]:
    """log(sum(exp)) and the shares, in 700 digits."""
    with mp.workdps(700):
        logs = [mp.mpf(float(s)) for s in scores]
        top = max(logs)
        weights = [mp.exp(x - top) for x in logs]
        return float(top + mp.log(sum(weights))), np.array([float(w / sum(weights)) for w in weights])


def close(found: Any, expected: Any, slack: float = 1e-14) -> bool:
    found, expected = np.asarray(found), np.asarray(expected)
    return bool(np.all((found == expected) | (abs(found - expected) <= slack * np.maximum(1, abs(expected)))))


@pytest.mark.parametrize("way", WAYS)
def test_a_score_of_any_size_beside_a_mask_of_any(way: str) -> None:
    p = program(WAYS[way], "log" if way == "log" else None)
    for score, mask in itertools.product(SIZES, SIZES):
        chart = p.run({"a/1": np.array([score, -mask]), "b/1": np.zeros(2)})
        assert close(chart["p"], score), (score, mask)
        assert close(chart.gradient("p")["a/1"].values, [1.0, 0.0]), (score, mask)
        assert way == "plain" or close([chart.marginal(f"a({i})", "p") for i in (0, 1)], [1.0, 0.0]), (score, mask)
        assert close(chart.jvp({"a/1": np.array([0.5, -1.0])})["p"], 0.5), (score, mask)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_mask_or_a_score_of_any_size(way: str, sign: float) -> None:
    p = program(WAYS[way], "log" if way == "log" else None)
    for size in SIZES:
        for scores in (np.array([1.0, 2.0, sign * size]), np.full(3, sign * size)):
            chart = p.run({"a/1": scores, "b/1": np.zeros(3)})
            value, shares = softmax(scores)
            assert close(chart["p"], value), size
            assert close(chart.gradient("p")["a/1"].values, shares), size
            direction = np.array([0.5, -1.0, 2.0])
            assert close(chart.jvp({"a/1": direction})["p"], shares @ direction), size
    batch = p.run_batch(
        [{"a/1": np.array([1.0, sign * size]), "b/1": np.zeros(2)} for size in SIZES], query="p", gradient=["a/1"]
    )
    assert not batch.errors and close(batch.values, [softmax([1.0, sign * size])[0] for size in SIZES])


def test_the_mask_of_other_libraries() -> None:
    """By hand, log(e + e^2) = 2 + log(1 + 1/e)."""
    chart = program(WAYS["log"], "log").run({"a/1": np.array([1.0, 2.0, -1e20]), "b/1": np.zeros(3)})
    assert chart["p"] == pytest.approx(2.313261687518223, rel=1e-15)
    assert chart.gradient("p")["a/1"].values.tolist() == pytest.approx([0.2689414213699951, 0.7310585786300049, 0.0])
    assert chart.marginal("a(2)", "p") == 0.0 and chart.expected_counts("p")["a/1"].values[2] == 0.0
    assert [d.weight for d in chart.kbest("p", 3)] == [2.0, 1.0, -1e20]
    assert {d.weight for d in chart.sample("p", 20, seed=0)} <= {1.0, 2.0}
    assert chart.entropy("p") == pytest.approx(0.5822031088882185)


@pytest.mark.parametrize("way", WAYS)
def test_shares_sum_to_one_whatever_the_size(way: str) -> None:
    p = program(WAYS[way], "log" if way == "log" else None)
    for size in (0.0, 10.0, 1e6, -1e10, 1e15, -1e15, 1e16, 1e17, 1e20, -1e20, 1e300):
        for n in (2, 3, 7):
            facts = {"a/1": np.full(n, size), "b/1": np.zeros(n)}
            chart = p.run(facts)
            assert close(chart.gradient("p")["a/1"].values, np.full(n, 1 / n)), size
            f = p.function("p", inputs=["a/1"], facts=facts)
            assert close(dg.hessian(f)(facts["a/1"]), np.eye(n) / n - 1 / n**2), size
            assert close(dg.jacfwd(dg.grad(f))(facts["a/1"]), np.eye(n) / n - 1 / n**2), size
    chart.set("a/1", [(0, 3e15)])
    chart.add("a/1", [(8, 3e15)])
    chart.add("b/1", [(8, 0.0)])
    chart.run()
    assert chart.gradient("p")["a/1"].values.sum() == pytest.approx(1.0, rel=1e-14)


def test_copies_of_a_fact_have_shares_of_large_logs() -> None:
    both = program(":- input a/1. a(X) log+= z(X)*1. p log+= a(_)*1. q = 0*p.")
    chart = both.run({"a/1": [(1, 1e20)] * 3, "z/1": [(1, 1e20)]})
    table = chart.gradient("p")
    assert close(table["a/1"].values, np.full(3, table["a/1"].values[0]))
    assert table["a/1"].values.sum() + table["z/1"].values.sum() == pytest.approx(1.0, rel=1e-14)


# -- chains: joins by rows and matrices --------------------------------------------------------------------------------


def brute(emit: np.ndarray, trans: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    n, k = emit.shape
    paths = list(itertools.product(range(k), repeat=n))
    with mp.workdps(700):
        scores = [
            sum(mp.mpf(emit[i, t]) for i, t in enumerate(p))
            + sum(mp.mpf(trans[s, t]) for s, t in itertools.pairwise(p))
            for p in paths
        ]
        top = max(scores)
        weights = [mp.exp(s - top) for s in scores]
        value, shares = float(top + mp.log(sum(weights))), [float(w / sum(weights)) for w in weights]
    of_emit, of_trans = np.zeros(emit.shape), np.zeros(trans.shape)
    for p, share in zip(paths, shares, strict=True):
        for i, t in enumerate(p):
            of_emit[i, t] += share
        for s, t in itertools.pairwise(p):
            of_trans[s, t] += share
    return value, of_emit, of_trans


def test_chains_with_random_masks() -> None:
    """Where all paths are masked too: masks are whole powers of two there, of which sums are exact."""
    rng = np.random.default_rng(3)
    p = program(CHAIN, "log")
    joined = program(CHAIN.replace("+=", "log+=").replace("*", "+"))
    for trial in range(8):
        n, k = int(rng.integers(2, 4)), 3
        emit, trans = rng.normal(size=(n, k)), rng.normal(size=(k, k))
        size = float(rng.choice([-1.0, 1.0]) * 2.0 ** rng.integers(4, 1015))
        for scores in (emit, trans):
            scores[rng.random(scores.shape) < rng.choice([0.2, 0.5, 1.0])] = size
        value, of_emit, of_trans = brute(emit, trans)
        for q, end in ((p, [(n - 1,)]), (joined, [(n - 1, 0.0)])):
            facts = {"emit/2": emit, "trans/2": trans, "end/1": end}
            chart = q.run(facts)
            table = chart.gradient("goal")
            assert close(chart["goal"], value), (trial, size)
            assert close(table["emit/2"].values, of_emit, 1e-11) and close(table["trans/2"].values, of_trans, 1e-11)
            assert chart.jvp({"emit/2": np.ones((n, k))})["goal"] == pytest.approx(n, abs=1e-9)
            f = q.function("goal", inputs=["emit/2"], facts=facts)  # the same for all does not change the shares
            assert abs(np.asarray(dg.jvp(dg.grad(f), [emit], [np.ones((n, k))])[1])).max() < 1e-8


def test_wide_rows_with_masks() -> None:
    """Tags enough for vectors, of which some are masked: as the same chain without these tags."""
    rng = np.random.default_rng(4)
    p, n, k = program(CHAIN, "log"), 5, 40
    for size in (-1e4, -1e17, -1e20, -1e30, -1e300):
        emit, trans = rng.normal(size=(n, k)), rng.normal(size=(k, k))
        kept = rng.random(k) < 0.6
        masked = np.where(kept, emit, size)
        few = p.run({"emit/2": emit[:, kept], "trans/2": trans[np.ix_(kept, kept)], "end/1": [(n - 1,)]})
        all_of = p.run({"emit/2": masked, "trans/2": trans, "end/1": [(n - 1,)]})
        assert close(all_of["goal"], few["goal"], 1e-13)
        assert close(all_of.gradient("goal")["emit/2"].values[:, kept], few.gradient("goal")["emit/2"].values, 1e-12)
        assert not all_of.gradient("goal")["emit/2"].values[:, ~kept].any()
        assert not all_of.gradient("goal")["trans/2"].values[~kept].any()


# -- cycles ------------------------------------------------------------------------------------------------------------


def test_a_cycle_with_masks() -> None:
    """An edge of no weight to speak of changes nothing, and a start of any size only the value."""
    p = program(PATHS, "log")
    edges = [("a", "b", -1.0), ("b", "a", -0.5), ("b", "c", -0.3), ("c", "c", -1.0)]
    free = p.run({"start/1": [("a", 0.0)], "edge/2": edges, "stop/1": [("c", 0.0)]})
    counts = free.gradient("goal")["edge/2"].values
    for size in (-1e3, -1e17, -1e20, -1e300, 1e17, 1e20):
        masked = edges if size > 0 else [*edges, ("c", "b", size), ("a", "c", size)]
        for start in (0.0, size):
            facts = {"start/1": [("a", start)], "edge/2": masked, "stop/1": [("c", 0.0)]}
            chart = p.run(facts)
            assert close(chart["goal"], free["goal"] + start) and chart.converged
            found = chart.gradient("goal")
            assert close(found["edge/2"].values, [*counts, *[0.0] * (len(masked) - 4)], 1e-12)
            assert close(found["start/1"].values, [1.0], 1e-12)
            assert close(chart.jvp({"edge/2": np.ones(len(masked))})["goal"], counts.sum(), 1e-11)
            f = p.function("goal", inputs=["start/1"], facts=facts)
            assert abs(dg.hessian(f)(np.array([start]))).max() < 1e-9


def test_what_cannot_be_held_is_an_error_that_names_the_item() -> None:
    p = program("p += a(X)*a(X).", "log")
    for size in (1e308, -1e308):
        with pytest.raises(dg.ValueRangeError, match=r"^p "):
            p.run({"a/1": [(0, size)]})
    assert p.run({"a/1": [(0, -1e308), (1, 0.0)]})["p"] == 0.0  # where it is not the value, it is nothing
    with pytest.raises(dg.FactError, match="row 2"):
        p.run({"a/1": [(0, 1.0), (1, math.nan)]})
    with pytest.raises(dg.ValueRangeError, match="too large for sums over derivations"):
        program("p += a(_).", "log").run({"a/1": [(0, 1e20)]}).sample("p", 1, seed=0)


# -- functions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_functions_of_scores_of_any_size(sign: float) -> None:
    def pair(x: Any) -> Any:
        return np.logaddexp(x[0], x[1])

    for size in SIZES:
        for scores in (np.array([1.0, sign * size]), np.full(2, sign * size)):
            value, shares = softmax(scores)
            for f in (pair, np.logaddexp.reduce, special.logsumexp):
                assert close(f(scores), value) and close(dg.grad(f)(scores), shares)
                assert close(dg.jvp(f, [scores], [np.array([1.0, 3.0])])[1], shares @ [1.0, 3.0])
                assert close(dg.hessian(f)(scores), np.diag(shares) - np.outer(shares, shares))


def test_compiled_functions_of_large_scores() -> None:
    compiled = [dg.compile(dg.grad(lambda x: np.logaddexp(x[0], x[1]))), dg.compile(dg.grad(special.logsumexp))]
    for size in (-1e3, 1e15, -1e20, 1e20, -1e300):
        for scores in (np.array([1.0, size]), np.full(2, size)):
            for gradient in compiled:
                assert close(gradient(scores), softmax(scores)[1])
