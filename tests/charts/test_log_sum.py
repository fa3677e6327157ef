"""`log+=` and `lse`: logs of sums of exps in plain arithmetic, against 50 digits, also where exp would overflow.

Costs three seconds.
"""

from __future__ import annotations

import itertools
import math
import random
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

import dynagrad as dg
from charts.taped import untaped, with_tapes  # noqa: F401
from dynagrad.rules.parse import parse
from oracle import close, evaluate

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

EXTREMES = (800.0, -800.0, 0.0, 1.5, -0.25, 3e5, -3e5, 710.0, 1e-30)


@cache
def program(text: str) -> dg.Program:
    return dg.Program(text)


def log_sum(values: Any) -> Any:
    with mpmath.workdps(50):
        weights = [mpmath.exp(mpmath.mpf(v)) for v in values if v > -math.inf]
        return mpmath.log(mpmath.fsum(weights)) if weights else mpmath.mpf("-inf")


def shares(values: Any) -> list[Any]:
    with mpmath.workdps(50):
        total = log_sum(values)
        return [mpmath.exp(mpmath.mpf(v) - total) if v > -math.inf else mpmath.mpf(0) for v in values]


# `plain` keeps the program from running in a semiring; both must give the same.
PLAIN, LOG = "z log+= x(_). y = z * 1.", "z log+= x(_). y log+= z."


@pytest.mark.parametrize("text", [PLAIN, LOG], ids=["plain", "log"])
def test_values_and_gradients_in_fifty_digits(text: str) -> None:
    rng = random.Random(text)
    assert program(text).semiring == ("plain" if text == PLAIN else "log")
    for _ in range(60):
        values = [rng.choice([rng.choice(EXTREMES), rng.uniform(-5, 5), -math.inf]) for _ in range(rng.randrange(1, 9))]
        chart = program(text).run({"x/1": [(i, v) for i, v in enumerate(values)]})
        wanted = log_sum(values)
        if wanted == -math.inf:
            assert chart["y"] == -math.inf
            continue
        assert abs(chart["y"] - wanted) <= 4e-16 * len(values) * max(1.0, abs(float(wanted)))
        direction = [rng.uniform(-1, 1) for _ in values]
        tangent = float(sum(s * u for s, u in zip(shares(values), direction, strict=True)))
        # a log of size 3e5 is known to 6e-11 only, and so is the share of what weighs alike
        slack = 1e-14 + 1e-15 * max(abs(v) for v in values if v > -math.inf)
        assert abs(chart.jvp({"x/1": direction})["y"] - tangent) <= 10 * slack
        for found, share in zip(chart.gradient("y")["x/1"].values, shares(values), strict=True):
            assert abs(found - float(share)) <= 10 * slack


def test_lse_of_two_values_in_fifty_digits() -> None:
    text = program("y = lse(a, b). w = y * y.")
    for a, b in itertools.product((*EXTREMES, 2.0), repeat=2):
        chart = text.run({"a/0": a, "b/0": b})
        assert abs(chart["y"] - log_sum((a, b))) <= 4e-16 * max(1.0, abs(chart["y"]))
        gradient = chart.gradient("y")
        for key, share in zip(("a/0", "b/0"), shares((a, b)), strict=True):
            assert abs(gradient[key].values[0] - float(share)) <= 1e-15 + 1e-15 * max(abs(a), abs(b))


def test_edges() -> None:
    low, high = -math.inf, math.inf
    text = program("y = lse(a, b). y2 max= lse(a, b). z log+= a. z log+= b. v = exp(y2) + exp(z).")
    chart = text.run({"a/0": low, "b/0": low})
    assert chart["y"] == chart["z"] == low and chart["v"] == 0.0
    assert np.isfinite(chart.gradient("v")["a/0"].values).all() and chart.jvp({"a/0": [1.0]})["v"] == 0.0
    assert [chart.gradient("y")[key].values[0] for key in ("a/0", "b/0")] == [0.0, 0.0]
    assert chart.gradient("z")["a/0"].values[0] == 0.0  # of nothing there are no shares, however it is added up
    chart = text.run({"a/0": low, "b/0": 3.0})
    assert chart["y"] == chart["z"] == 3.0
    for item in ("y", "z"):
        assert [chart.gradient(item)[key].values[0] for key in ("a/0", "b/0")] == [0.0, 1.0]
    chart = text.run({"a/0": high, "b/0": 3.0})
    assert chart["y"] == chart["z"] == high
    with pytest.raises(dg.ValueRangeError):  # inf less inf
        chart.gradient("z")
    assert program("z log+= x(_). w log+= 1 + z * q(_).").run({"x/1": [], "q/1": []})["z"] == low


def test_second_and_third_derivatives() -> None:
    """Of the softmax: its covariance, and the third central moment."""
    f = program("z log+= x(I) * s(I). y = lse(z, c).").function(
        "y", ["x/1"], {"x/1": [(i, 0.0) for i in range(3)], "s/1": [(i, 1.0) for i in range(3)], "c/0": 799.0}
    )
    x, u, v = np.array([800.0, 801.5, -math.inf]), np.array([1.0, -2.0, 0.5]), np.array([0.25, 3.0, 1.0])
    p = np.array([float(s) for s in shares([800.0, 801.5, -math.inf, 799.0])])
    mean = lambda a: float(p[:3] @ a)  # noqa: E731  # the constant moves along nothing
    gradient, hessian = f.hvp([x], [u])[0], f.gradient([x], [[u]])[0]
    assert np.allclose(gradient, p[:3] * (u - mean(u)), rtol=1e-12, atol=1e-13)
    assert np.allclose(hessian, gradient, rtol=1e-12, atol=1e-13)
    third = mean(u * u * v) - mean(u * u) * mean(v) - 2 * mean(u * v) * mean(u) + 2 * mean(u) ** 2 * mean(v)
    assert close(f.derivative([x], [[u], [u], [v]]), third, 1e-12)


CHAINS = {  # in levels, fired once, around a cycle that is run round by round, and held back
    "levels": "a(0,T) log+= s(T). a(I+1,T) log+= a(I,S) + m(S,T) for I < 4. z = 2 * z0. z0 log+= a(4,_).",
    "cycle": "a(T) log+= s(T). a(T) log+= a(S) + m(S,T) - 2. z = 2 * z0. z0 log+= a(_).",
    "pruned": ":- prune a(I,T) < -50. a(0,T) log+= s(T). a(I+1,T) log+= a(I,S) + m(S,T) for I < 4. z = 2 * z0. "
    "z0 log+= a(4,_).",
}


@pytest.mark.parametrize(("name", "agenda"), [*((name, "auto") for name in CHAINS), ("cycle", "fifo")])
def test_recursion_against_matrices(name: str, agenda: str) -> None:
    chain = program(f":- agenda {agenda}. {CHAINS[name]}")
    assert chain.semiring == "plain"
    rng = np.random.default_rng(len(name))
    for _ in range(5):
        s, m = rng.normal(size=3), rng.normal(size=(3, 3)) - 1

        def answer(s: Any, m: Any) -> float:
            if name == "cycle":
                total = np.exp(s) @ np.linalg.inv(np.eye(3) - np.exp(m - 2))
            else:
                total = np.exp(s) @ np.linalg.matrix_power(np.exp(m), 4)
            return 2 * math.log(total.sum())

        chart = chain.run({"s/1": s, "m/2": m})
        assert close(chart["z"], answer(s, m), 1e-11)
        gradient = chart.gradient("z")
        direction = rng.normal(size=(3, 3))
        h = 1e-5
        slope = (answer(s, m + h * direction) - answer(s, m - h * direction)) / (2 * h)
        assert close(float((gradient["m/2"].values * direction).sum()), slope, 1e-7)
        assert close(chart.jvp({"m/2": direction})["z"], slope, 1e-7)
        assert close(float(gradient["s/1"].values.sum()), 2.0, 1e-10)  # all together they are one sum


def test_a_program_of_sums_runs_as_log() -> None:
    text = "a(0,T) log+= s(T) + 0.5. a(I+1,T) log+= a(I,S) + m(S,T) for I < 400. z log+= a(400,_)."
    logs = program(text)
    assert logs.semiring == "log"
    rng = np.random.default_rng(0)
    facts = {"s/1": rng.normal(size=3), "m/2": rng.normal(size=(3, 3)) + 3}
    chart = logs.run(facts)
    plain = program(f"{text} other *= s(0).").run(facts)
    assert chart["z"] > 1000 and close(chart["z"], plain["z"], 1e-13)
    for key in facts:
        assert np.allclose(chart.gradient("z")[key].values, plain.gradient("z")[key].values, rtol=1e-9, atol=1e-12)
    assert chart["a(9999,1)"] == plain["a(9999,1)"] == -math.inf
    assert chart["m(7,0)"] == -math.inf  # the rule that reads it puts rows together by `log+=`
    assert plain["s(7)"] == 0.0  # two rules read it, each by another aggregator
    assert chart.marginal("a(7,0)", "z") == pytest.approx(plain.gradient("z").item("a(7,0)"), rel=1e-9)


def test_copies_of_facts_join_as_logs_of_weights() -> None:
    text = "z log+= x(I) + c. c = 2. c = 2."
    facts = {"x/1": [("a", 1.0), ("a", -3.0), ("b", 0.5)]}
    values = [1.0 + 2.0, -3.0 + 2.0, 0.5 + 2.0]
    for source in (text, f"{text} other *= c."):
        chart = program(source).run(facts)
        assert close(chart["z"], float(log_sum(values)), 1e-13)
        assert close(chart["x(a)"], float(log_sum([1.0, -3.0])), 1e-13)
        a, b, c = map(float, shares(values))
        assert np.allclose(chart.gradient("z")["x/1"].values, [a, b, c], rtol=1e-13)
        assert close(chart.jvp({"x/1": [1.0, 10.0, 100.0]})["z"], a + 10 * b + 100 * c, 1e-12)
    entropy = -(a * math.log(a) + b * math.log(b) + c * math.log(c))
    assert close(program(text).run(facts).entropy("z"), entropy, 1e-12)


def test_copies_of_facts_add_up_in_programs_that_run_as_log_where_that_is_declared() -> None:
    text = ":- input x/1 +=. z log+= x(I) + c. c = 2. c = 2."
    facts = {"x/1": [("a", 1.0), ("a", -3.0), ("b", 0.5), ("c",)][:3]}
    values = [1.0 - 3.0 + 2.0, 0.5 + 2.0]
    for source in (text, f"{text} other *= x(I)."):
        chart = program(source).run(facts)
        assert close(chart["z"], float(log_sum(values)), 1e-13) and chart["x(a)"] == -2.0
        a, b = map(float, shares(values))
        assert np.allclose(chart.gradient("z")["x/1"].values, [a, a, b], rtol=1e-13)
        assert close(chart.jvp({"x/1": [1.0, 10.0, 100.0]})["z"], 11 * a + 100 * b, 1e-12)
    assert close(program(text).run(facts).entropy("z"), -(a * math.log(a) + b * math.log(b)), 1e-12)


def test_facts_and_constants_of_a_sum_of_logs_have_their_shares() -> None:
    for extra in ("", " w = z(u)."):
        chart = program(f":- input z/1. z(u) log+= 2. z(u) = 1. z(X) log+= q(X) + 0.5.{extra}").run(
            {"z/1": [("u", 0.5), ("u", 0.5), ("v", 7.0)], "q/1": [("u", 0.25)]}
        )
        values = [0.5, 0.5, 2.0, 1.0, 0.75]
        assert close(chart["z(u)"], float(log_sum(values)), 1e-13) and chart["z(v)"] == 7.0
        wanted = list(map(float, shares(values)))
        gradient = chart.gradient("z(u)")
        assert np.allclose(gradient["z/1"].values, [wanted[0], wanted[1], 0.0], rtol=1e-13)
        assert np.allclose(gradient["q/1"].values, [wanted[4]], rtol=1e-13)
    only = program("z(u) log+= 2. w = 2 * z(u).").run({"z/1": [("u", 0.5), ("u", 3.0)]})
    assert close(only["w"], 2 * float(log_sum([2.0, 0.5, 3.0])), 1e-13)
    assert np.allclose(only.gradient("w")["z/1"].values, [2 * float(s) for s in shares([0.5, 3.0, 2.0])[:2]])


@pytest.mark.usefixtures("untaped")
def test_facts_may_change() -> None:
    for text in ("z log+= x(I) + y(I).", "z log+= x(I) + y(I). w = z - 1."):
        chart = program(text).run({"x/1": [(1, 800.0), (2, 1.0)], "y/1": [(1, 1.0), (2, 801.0)]})
        chart.set("x/1", [(1, 3.0)])
        assert close(chart.run()["z"], float(log_sum([4.0, 802.0])), 1e-14)
        chart.retract("y/1", [(2,)])
        assert chart.run()["z"] == 4.0
        chart.add("y/1", [(2, 3.0)])
        assert close(chart.run()["z"], float(log_sum([4.0, 4.0])), 1e-14)


def test_transient_predicates_are_unfolded() -> None:
    text = "t(X) log+= p(X,_). z log+= 1 + t(X) + q(X)."
    facts = {"p/2": [("a", 1, 2.0), ("a", 2, 3.0), ("b", 1, -1.0)], "q/1": [("a", 1.0), ("b", 5.0)]}
    assert close(program(f":- transient t/1. {text}").run(facts)["z"], program(text).run(facts)["z"], 1e-13)
    with pytest.raises(dg.ProgramError, match="cannot be unfolded"):
        dg.Program(":- transient t/1. t(X) log+= p(X,_). z log+= 2 * t(X).")


def test_what_may_grow_without_end_is_warned_of() -> None:
    facts = {"e/2": [("z", "z", -1.0)]}
    with pytest.warns(dg.ProgramWarning, match="may diverge"):
        dg.Program(":- solve iterate. a(Y) log+= a(X) + e(X,Y). a(z) = 0.").run(facts)
    solved = dg.Program("a(Y) log+= a(X) + e(X,Y). a(z) = 0.").run(facts)["a(z)"]
    assert solved == pytest.approx(-math.log(1 - math.exp(-1)), rel=1e-14)
    with pytest.raises(dg.ProgramError, match="one aggregator"):
        dg.Program("z log+= x. z += y.")


def test_fixed_points_agree_with_the_oracle() -> None:
    rng = random.Random(1)
    text = "a(X) log+= s(X). a(Y) log+= a(X) + e(X,Y) - 3. b(X) = lse(a(X), 0 - s(X)) + 1."
    for _ in range(25):
        s = [(i, rng.uniform(-2, 2)) for i in range(4)]
        arcs = {(rng.randrange(4), rng.randrange(4)): rng.uniform(-2, 0.5) for _ in range(8)}
        facts = {"s/1": s, "e/2": [(*arc, v) for arc, v in arcs.items()]}
        values = evaluate(parse(text), facts)
        chart = program(text).run(facts)
        for (key, row), value in values.items():
            assert close(chart[(key[0], *row)], value, 1e-10)
