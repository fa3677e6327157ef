"""`error_bound` where cycles are solved: at least the true error, near singular systems too, and not far above it.

Systems are drawn with spectral radii that come close to one, and solved in 50 digits. Costs twelve seconds.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import dynagrad as dg

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

PATHS = "path(V) += start(V). path(V) += path(U)*edge(U,V)."
TREES = "t(X) += leaf(X). t(X) += node(X,Y,Z)*t(Y)*t(Z)."


@cache
def program(text: str, semiring: str = "real") -> dg.Program:
    return dg.Program(text, semiring)


def drawn(rng: np.random.Generator, n: int, closest: float, signed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """A matrix whose absolute values have a spectral radius below one by 1 to 10^-closest, and a right side."""
    a = rng.random((n, n)) * (rng.random((n, n)) < 0.6)
    a[np.arange(n), (np.arange(n) + 1) % n] += 0.5
    a *= (1 - 10.0 ** -rng.uniform(0, closest)) / max(abs(np.linalg.eigvals(a)))
    return a * (np.where(rng.random((n, n)) < 0.3, -1, 1) if signed else 1), rng.random(n)


def solved(a: np.ndarray, b: np.ndarray) -> list[Any]:
    with mp.workdps(50):
        matrix = mp.matrix(a.T.tolist())
        return list(mp.lu_solve(mp.eye(len(b)) - matrix, mp.matrix(b.tolist())))


def rows_of(a: np.ndarray, b: np.ndarray, number: Any = float) -> dict[str, Any]:
    edges = [(i, j, number(a[i, j])) for i in range(len(b)) for j in range(len(b)) if a[i, j]]
    return {"start/1": [(i, number(x)) for i, x in enumerate(b)], "edge/2": edges}


def worst(chart: dg.Chart, x: list[Any], of: str = "path") -> float:
    with mp.workdps(50):
        return float(max(abs((mp.mpf(chart[of, i]) - v) / v) for i, v in enumerate(x)))


def judge(found: list[tuple[float, float]]) -> None:
    """Errors and bounds: a bound holds, but for the rounding of a few sums, and most are within a factor of 300."""
    assert all(error <= bound + 4e-15 for error, bound in found)
    assert np.median([bound / max(error, 1e-16) for error, bound in found]) < 300


@pytest.mark.parametrize("signed", [False, True])
def test_linear_systems_close_to_singular_ones(signed: bool) -> None:
    rng, found = np.random.default_rng(1), []
    for _ in range(40):
        a, b = drawn(rng, int(rng.integers(2, 9)), 9, signed)
        chart = program(PATHS).run(rows_of(a, b))
        found.append((worst(chart, solved(a, b)), chart.error_bound))
    judge(found)
    assert signed or sum(bound > 1e-12 for _, bound in found) > 5  # so close that digits are lost


@pytest.mark.parametrize(("n", "closest"), [(3, 9), (5, 4), (12, 8)])
def test_badly_scaled_systems(n: int, closest: float) -> None:
    """Loops of weights near one beside entries of very different sizes: what elimination has right, no step undoes."""
    rng, found = np.random.default_rng(5), []
    for _ in range(40):
        a = np.exp(rng.uniform(-14, 5, (n, n)))
        a *= (1 - 10.0**-closest) / max(abs(np.linalg.eigvals(a)))
        chart = program(PATHS).run(rows_of(a, np.ones(n)))
        found.append((worst(chart, solved(a, np.ones(n))), chart.error_bound))
    judge(found)


def test_logs() -> None:
    """The error of a log is that of its weight, relative."""
    rng, found = np.random.default_rng(2), []
    for _ in range(20):
        a, b = drawn(rng, int(rng.integers(2, 9)), 7)
        a, b = np.log(a, where=a > 0, out=np.zeros(a.shape)), np.log(b)
        x = solved_exactly(a, b)
        chart = program(PATHS, "log").run(rows_of(a, b))
        with mp.workdps(50):
            error = float(max(abs(mp.mpf(chart["path", i]) - mp.log(v)) for i, v in enumerate(x)))
        found.append((error, chart.error_bound + 4e-16 * max(abs(float(mp.log(v))) for v in x)))
    judge(found)


def solved_exactly(a: np.ndarray, b: np.ndarray) -> list[Any]:
    """The solution where entries are given by their logs, 0 where there is none."""
    n = len(b)
    with mp.workdps(50):
        matrix = mp.matrix(n, n)
        for i in range(n):
            for j in range(n):
                matrix[j, i] = mp.exp(mp.mpf(float(a[i, j]))) if a[i, j] else 0
        return list(mp.lu_solve(mp.eye(n) - matrix, mp.matrix([mp.exp(mp.mpf(float(v))) for v in b])))


def test_a_loop_in_two_parts_has_lost_what_their_sum_rounded() -> None:
    """One minus one weight is exact; one minus a sum is not, and the bound says so."""
    loops = program("x += 1. x += w(_)*x.")
    for parts in ([0.1, 0.2, 0.3, 0.4 - 1e-7], [1 / 3, 1 / 3, 1 / 3 - 1e-9], [1 - 2.0**-30]):
        chart = loops.run({"w/1": list(enumerate(parts))})
        with mp.workdps(50):
            true = 1 / (1 - sum(mp.mpf(p) for p in parts))
            error = float(abs(mp.mpf(chart["x"]) - true) / true)
        assert error <= chart.error_bound + 4e-16
        assert (chart.error_bound > 1e-11) == (len(parts) > 1) and chart.error_bound < 1e-5


def test_polynomials_close_to_a_double_root() -> None:
    """A branching process: x = p + (1 - p) x^2 around a ring; the true solution by Newton's method in 50 digits."""
    rng, found = np.random.default_rng(3), []
    for _ in range(20):
        n = int(rng.integers(1, 5))
        p = 0.5 + 0.5 * 10.0 ** -rng.uniform(0, 4, size=n)
        facts = {
            "leaf/1": [(i, float(p[i])) for i in range(n)],
            "node/3": [(i, (i + 1) % n, (i + 1) % n, float(1 - p[i])) for i in range(n)],
        }
        chart = program(TREES).run(facts)
        with mp.workdps(50):
            weights = [(mp.mpf(float(p[i])), mp.mpf(float(1 - p[i]))) for i in range(n)]
            x = [mp.mpf(0)] * n
            for _ in range(200):  # from zero, which comes to the least solution
                jacobian = mp.eye(n)
                for i, (_, w) in enumerate(weights):
                    jacobian[i, (i + 1) % n] -= 2 * w * x[(i + 1) % n]
                rest = mp.matrix([q + w * x[(i + 1) % n] ** 2 - x[i] for i, (q, w) in enumerate(weights)])
                x = [a + d for a, d in zip(x, mp.lu_solve(jacobian, rest), strict=True)]
        found.append((worst(chart, x, "t"), chart.error_bound))
    judge(found)


def test_well_conditioned_systems_have_a_small_bound() -> None:
    rng = np.random.default_rng(4)
    for n in (1, 3, 80):
        a = rng.random((n, n)) / (4 * n)
        chart = program(PATHS).run(rows_of(a, np.ones(n)))
        assert chart.converged and chart.error_bound < 1e-14
    assert program("p(0) += 1. p(I+1) += 0.5*p(I) for I < 9.").run().error_bound == 0.0


def test_bounds_after_changes_are_those_of_a_fresh_run() -> None:
    rng = np.random.default_rng(5)
    a, b = drawn(rng, 6, 1)
    chart = program(PATHS).run(rows_of(a, b))
    before = chart.error_bound
    near = a * (1 - 1e-7) / max(abs(np.linalg.eigvals(a)))
    chart.set("edge/2", [(i, j, float(near[i, j])) for i in range(6) for j in range(6) if near[i, j]])
    chart.run()
    fresh = program(PATHS).run(rows_of(near, b))
    assert chart.error_bound > 1e-10 > before
    assert chart.error_bound == pytest.approx(fresh.error_bound, rel=0.5)
    assert worst(chart, solved(near, b)) <= chart.error_bound


def test_columns_that_are_solved_side_by_side() -> None:
    """All pairs: one system for every source, each near singular."""
    rng = np.random.default_rng(6)
    pairs = program("d(S,S) += at(S). d(S,V) += d(S,U)*edge(U,V).")
    for closest in (2.0, 5.0, 8.0):
        a, b = drawn(rng, 6, 1.0)
        a *= (1 - 10.0**-closest) / max(abs(np.linalg.eigvals(a)))
        chart = pairs.run({"at/1": [(i, 1.0) for i in range(6)], "edge/2": rows_of(a, b)["edge/2"]})
        error = 0.0
        for s in range(6):
            x = solved(a, np.eye(6)[s])
            with mp.workdps(50):
                error = max(error, float(max(abs((mp.mpf(chart["d", s, v]) - x[v]) / x[v]) for v in range(6))))
        assert error <= chart.error_bound + 4e-15 and chart.error_bound < 10.0 ** (closest - 11)
    assert math.isfinite(chart.error_bound)


def test_what_is_sent_to_items_without_a_value_says_nothing_of_the_rate() -> None:
    """`c(c,c)` gets its first value from later updates of `d`: relative to no value, that is no sign of divergence."""
    text = """
    d((I+1) mod 5,(J+1) mod 5) += c(_,Q) * e(M,J) * e(_,I) * 0.2 for J >= abs(J-I).
    d(J,I) += 0.2 * d(J,3) * d(J,I).  c(c,b) += e(M,J) for J < 2.  c(c,c) += 0.1 * d(_,_) * d(I,J) * e(N,J).
    """
    edges = [(0, 4, 0.1), (-9, 0, 0.2), ("a", 0, 0.2), (1.0, 2, 0.05), (1, 2, 0.05), ("1", 0, 0.2)]
    chart = program(text).run({"e/2": edges})
    d, c, start = {}, 0.0, 0.6  # c is c(c,c), and start is c(c,b)
    at = {0: 0.6, 2: 0.1, 4: 0.1}
    for _ in range(60):
        new: dict[tuple[int, int], float] = {}
        for j, one in at.items():
            for i, other in at.items():
                if j >= abs(j - i):
                    to = (i + 1) % 5, (j + 1) % 5
                    new[to] = new.get(to, 0.0) + (start + c) * one * other * 0.2
        for (j, i), value in d.items():
            new[j, i] = new.get((j, i), 0.0) + 0.2 * d.get((j, 3), 0.0) * value
        c = 0.1 * sum(d.values()) * sum(value * at.get(j, 0.0) for (_, j), value in d.items())
        d = new
    assert chart.converged and chart.error_bound < 1e-11
    assert chart["c(c,c)"] == pytest.approx(c, rel=1e-11)
    assert chart.count("c(c,c)") == math.inf


LOOPS = ("chain", "ring", "loops", "sparse")


def network(rng: np.random.Generator, kind: str, n: int) -> np.ndarray:
    """Weights in which what is held back adds up on its way: along chains of loops, around rings, in what is sparse."""
    if kind == "chain":
        a = np.diag(0.5 + 0.45 * rng.random(n)) + np.diag(0.01 + 0.2 * rng.random(n - 1), 1)
    elif kind == "ring":
        a = np.diag(10.0 ** rng.uniform(-8, 3, n - 1), 1)
        a[n - 1, rng.integers(n)] = 1.0
    elif kind == "loops":
        a = np.diag(rng.random(n)) + np.diag(1e-6 * rng.random(n - 1), 1)
    else:
        a = rng.random((n, n)) ** 8 * (rng.random((n, n)) < 0.2) + np.diag(rng.random(n))
    return a * (1 - 10.0 ** -rng.uniform(0.1, 2.5)) / max(abs(np.linalg.eigvals(a)))


@pytest.mark.parametrize("semiring", ["real", "log"])
def test_iterated_systems_converge_within_their_bounds(semiring: str) -> None:
    rng = np.random.default_rng(31)
    iterated = program(":- solve iterate. " + PATHS, semiring)
    number, exp = (math.log, mp.exp) if semiring == "log" else (float, mp.mpf)
    for kind in LOOPS * 3:
        n = int(rng.integers(3, 16))
        a = network(rng, kind, n)
        b = np.concatenate([[1.0], np.where(rng.random(n - 1) < 0.2, rng.random(n - 1), 0.0)])
        edges = rows_of(a, np.ones(n), number)["edge/2"]
        chart = iterated.run({"start/1": [(i, number(x)) for i, x in enumerate(b) if x], "edge/2": edges})
        with mp.workdps(50):
            x = solved(a, b)
            error = float(max(abs((exp(chart["path", i]) - v) / v) for i, v in enumerate(x) if v))
        largest = max([1.0, *(abs(float(mp.log(v))) for v in x if v)]) if semiring == "log" else 1.0
        # what a step that is lost in rounding takes, of sums of n numbers, which may be logs
        rounding = 1e-15 * n * largest / (1 - max(abs(np.linalg.eigvals(a))))
        assert chart.converged and error <= 2 * chart.error_bound + rounding, kind
        assert chart.error_bound < 1e-12 + 4 * rounding


def best_policy(rewards: dict[Any, float], moves: dict[Any, float], discount: float) -> Any:
    """The value of state 0 under the best of all policies, by linear algebra in 50 digits."""
    values = []
    for policy in product(("stay", "go"), repeat=2):
        a, b = mp.eye(2), mp.matrix([rewards[s, policy[s]] for s in (0, 1)])
        for s, t in product((0, 1), repeat=2):
            a[s, t] -= mp.mpf(discount) * moves.get((s, policy[s], t), 0.0)
        values.append(mp.lu_solve(a, b)[0])
    return max(values)


def test_rounds_say_how_far_a_step_that_is_lost_in_rounding_is_from_the_end() -> None:
    text = "v(S) max= q(S,A). q(S,A) += r(S,A). q(S,A) += gamma*move(S,A,T)*v(T)."
    moves = {(0, "stay", 0): 1.0, (0, "go", 1): 0.5, (0, "go", 0): 0.5, (1, "go", 0): 1.0}
    moves |= {(1, "stay", 1): 0.75, (1, "stay", 0): 0.25}
    rewards = {(0, "stay"): 1.0, (0, "go"): 0.0, (1, "stay"): 2.0, (1, "go"): 0.0}
    planning, single = dg.Program(text), dg.Program("x max= k*x + c. x max= b.")
    for k in (0.5, 0.9, 0.99, 0.999, 0.9999):
        chart = planning.run({"r/2": rewards, "gamma/0": k, "move/3": moves})
        one = single.run({"k/0": k, "c/0": 1 - k, "b/0": 0.0})
        with mp.workdps(50):
            value = best_policy(rewards, moves, k)
            wrong = float(abs((chart["v(0)"] - value) / value))
            fixed = mp.mpf(1 - k) / (1 - mp.mpf(k))
            alone = float(abs((one["x"] - fixed) / fixed))
        assert chart.converged and wrong <= 1.1 * chart.error_bound < 1e-11 / (1 - k)
        assert one.converged and alone <= 1.1 * one.error_bound < 1e-11 / (1 - k)


def test_sums_of_functions_that_stand_still_have_the_bound_of_their_rate() -> None:
    exp, tanh = dg.Program("x += exp(x)*a. x += b."), dg.Program("x += tanh(x). x += a.")
    for below in (0.07, 1e-3, 1e-6, 1e-10):
        chart = exp.run({"a/0": math.exp(-1) - below, "b/0": 0.0})
        with mp.workdps(50):
            x = -mp.lambertw(-mp.mpf(math.exp(-1) - below)).real
            assert float(abs((chart["x"] - x) / x)) <= chart.error_bound + 1e-15 and chart.converged
    for a in (1e-3, 1e-6):
        chart = tanh.run({"a/0": a})
        with mp.workdps(50):
            x = mp.findroot(lambda x, a=a: x - mp.tanh(x) - mp.mpf(a), chart["x"])
            assert float(abs((chart["x"] - x) / x)) <= chart.error_bound < 1e-9


def test_what_has_no_finite_value_but_for_rounding_has_not_converged() -> None:
    """x = a exp(x) has no solution for a above 1/e, which a few roundings of this number are."""
    chart = dg.Program("x += exp(x)*a. x += b.").run({"a/0": math.exp(-1) - 1e-13, "b/0": 0.0})
    assert not chart.converged and 1e-9 < chart.error_bound < 1e-5


@pytest.mark.parametrize(
    ("text", "facts", "limit"),
    [
        ("x += tanh(x). x += a.", {"a/0": 1e-3}, 20),
        ("x(s) = 1. x(Y) max= x(X) * e(X,Y).", {"e/2": [("s", "b", 0.5), ("b", "s", 0.5), ("b", "c", 2.0)]}, 2),
        ("x(s) += 1. x(Y) += x(X) * e(X,Y).", {"e/2": [("s", "b", 0.5), ("b", "s", 0.5)]}, 2),
        ("x(s) min= 0. x(Y) min= x(X) + e(X,Y).", {"e/2": [("s", "b", 1.0), ("b", "s", 0.5), ("b", "c", 2.0)]}, 2),
    ],
)
def test_nothing_bounds_the_values_of_a_cycle_that_a_limit_ended(text: str, facts: dict[str, Any], limit: int) -> None:
    chart = dg.Program(text).run(facts, max_pops=limit)
    assert (chart.status, chart.converged, chart.error_bound) == ("max_pops", False, math.inf)
    chart.run(max_pops=None)  # goes on to the end
    assert chart.status == "done" and chart.error_bound < 1e-6


def test_a_limit_elsewhere_leaves_the_bound() -> None:
    chain = "p(0) += 1. p(I+1) += 0.5 * p(I) for I < 50."
    assert dg.Program(chain).run({}, max_pops=20).error_bound == 0.0  # each item is popped once
    roads = {"e/2": [(n, n + 1, 1.0) for n in range(30)]}
    far = dg.Program("far(0) min= 0. far(Y) min= far(X) + e(X,Y).")
    assert far.run(roads, until="far(5)").error_bound == 0.0
    assert far.run(roads, max_pops=1000).error_bound == 0.0


def test_the_bound_is_of_both_numbers_of_an_expectation() -> None:
    """Errors of r are relative to what it adds up, of which signs may cancel."""
    rng, found = np.random.default_rng(12), []
    for n in [1] * 10 + [2, 3, 4] * 10:
        a, b = drawn(rng, n, 10)
        r, s = rng.uniform(-1, 1, (n, n)) * (a > 0), rng.random(n)
        scale = 10.0 ** rng.uniform(-3, 3, n)
        a, r = a * scale[:, None] / scale, r * scale[:, None] / scale
        edges = [(i, j, (float(a[i, j]), float(r[i, j]))) for i in range(n) for j in range(n) if a[i, j]]
        starts = [(i, (float(b[i]), float(s[i]))) for i in range(n)]
        chart = program(PATHS, "expectation").run({"start/1": starts, "edge/2": edges})
        if not chart.converged:
            continue
        with mp.workdps(50):
            matrix, x = mp.eye(n) - mp.matrix(a.T.tolist()), mp.matrix(solved(a, b))
            y = mp.lu_solve(matrix, mp.matrix(r.T.tolist()) * x + mp.matrix(s.tolist()))
            added = mp.lu_solve(matrix, mp.matrix(abs(r).T.tolist()) * x + mp.matrix(s.tolist()))
            pairs = [chart["path", i] for i in range(n)]
            errors = [abs(p - x[i]) / x[i] for i, (p, _) in enumerate(pairs)]
            errors += [abs(q - y[i]) / added[i] for i, (_, q) in enumerate(pairs)]
        found.append((float(max(errors)), chart.error_bound))
    assert len(found) > 30
    judge(found)
