"""Values that leave the range of a double, in every semiring, and cycles that do not settle: errors that name items.

Costs fifteen seconds, mostly compiling and rounds that do not settle. Infinite values in plain arithmetic have tests of
their own (`test_infinite.py`).
"""

from __future__ import annotations

import math
import random
from functools import cache
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

INF = math.inf


@cache
def program(text: str, semiring: str | None = None) -> dg.Program:
    return dg.Program(text, semiring)


def message(run: Any, kind: type[dg.Error] = dg.ValueRangeError) -> str:
    with pytest.raises(kind) as caught:
        run()
    said = str(caught.value)
    assert len(said) <= 600
    return said


# -- what is said ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("semiring", "weight", "way_out"),
    [
        ("real", 1e200, "use log"),
        ("log", 1.5e308, "smaller"),
        ("log", -1.5e308, "smaller"),
        ("viterbi", 1e308, "smaller"),
        ("viterbi", -1e308, "smaller"),
        ("tropical", 1e308, "smaller"),
        ("tropical", -1e308, "smaller"),
    ],
)
def test_numbers_that_are_too_large_are_told_as_that(semiring: str, weight: float, way_out: str) -> None:
    squared = program("goal += w(_)*w(_).", semiring)
    said = message(lambda: squared.run({"w/1": [("a", weight)]}))
    assert said.startswith("goal ") and way_out in said and "cycle" not in said
    assert ("use log" in said) == (semiring == "real")


def test_a_recursive_rule_without_a_cycle_of_facts_is_not_told_as_one() -> None:
    said = message(lambda: program("d(V) += s(V). d(V) += d(U)*e(U,V).", "real").run(
        {"s/1": [("a",)], "e/2": [("a", "b", 1e200), ("b", "c", 1e200)]}
    ))  # fmt: skip
    assert said.startswith("d(c) ") and "cycle" not in said


def test_long_items_are_cut() -> None:
    grows = program("l([]) = 1. l([a|X]) += 2*l(X).")
    assert message(grows.run).startswith("l([a,a,a")
    ring = program(":- solve linear. far(X) += start(X). far(Y) += far(X)*road(X,Y).", "real")
    towns = [c * 500 for c in "abcdefghijkl"]
    roads = [(a, b, 2.0) for a, b in zip(towns, towns[1:] + towns[:1], strict=True)]
    message(lambda: ring.run({"start/1": [(towns[0],)], "road/2": roads}), dg.NotConverged)


def test_messages_of_derivations_cut_long_items() -> None:
    long, other = ["a"] * 2000, ["a"] * 1999
    chart = program("l(X) += s(X). g += l(_).", "log").run({"s/1": [(long, -INF)]})
    for ask in (lambda: chart.best(("l", other)), lambda: next(iter(chart.sample(("l", long), 1, seed=0)))):
        assert message(ask, dg.QueryError).find("l([a,a") >= 0
    negative = program("l(X) += s(X). g += l(_).", "real").run({"s/1": [(long, -1.0)]})
    assert "s([a,a" in message(lambda: negative.best(("l", long)))


# -- where plus selects ------------------------------------------------------------------------------------------------

FAR = "far(V) += start(V). far(V) += far(U)*road(U,V)."
PLAIN = "far(V) {0} start(V). far(V) {0} far(U) + road(U,V)."
TOO_FAR = [("a", "b", 1e308), ("b", "c", 1e308)]


def ways() -> list[Any]:
    """The same program declared and recognised, as costs and as logs, with the sign of its numbers."""
    return [
        pytest.param(FAR, "tropical", 1.0, id="tropical"),
        pytest.param(FAR, "viterbi", -1.0, id="viterbi"),
        pytest.param(PLAIN.format("min="), None, 1.0, id="min="),
        pytest.param(PLAIN.format("max="), None, -1.0, id="max="),
        pytest.param(f":- agenda fifo. {FAR}", "tropical", 1.0, id="fifo"),
    ]


def facts(sign: float, roads: list[Any], start: float = 0.0) -> dict[str, Any]:
    return {"start/1": [("a", sign * start)], "road/2": [(u, v, sign * w) for u, v, w in roads]}


@pytest.mark.parametrize(("text", "semiring", "sign"), ways())
def test_a_sum_that_overflows_is_not_an_item_that_is_not_derived(text: str, semiring: str | None, sign: float) -> None:
    p = program(text, semiring)
    assert message(lambda: p.run(facts(sign, TOO_FAR))).startswith("far(c) ")
    # a better way, and one that is infinite because a fact is
    assert p.run(facts(sign, [*TOO_FAR, ("a", "c", 1.5e308)]))["far(c)"] == sign * 1.5e308
    assert p.run(facts(sign, TOO_FAR, INF))["far(c)"] == sign * INF
    assert message(lambda: p.run(facts(sign, [*TOO_FAR, ("a", "c", INF)]))).startswith("far(c) ")
    # changes, batches, functions
    chart = p.run(facts(sign, [*TOO_FAR, ("a", "c", 3.0)]))
    assert chart["far(c)"] == sign * 3.0
    chart.retract("road/2", [("a", "c")])
    assert message(chart.run).startswith("far(c) ")
    batch = p.run_batch([facts(sign, TOO_FAR), facts(sign, [("a", "c", 2.0)])], query="far(c)")
    assert list(batch.errors) == [0] and batch.values[1] == sign * 2.0
    f = p.function("far(c)", inputs=["road/2"], facts=facts(sign, [("a", "b", 1.0), ("b", "c", 1.0)]))
    assert message(lambda: f(np.full(2, sign * 1e308))).startswith("far(c) ")
    assert message(lambda: dg.grad(f)(np.full(2, sign * 1e308))).startswith("far(c) ")
    assert message(lambda: dg.jvp(f, [np.full(2, sign * 1e308)], [np.ones(2)])).startswith("far(c) ")


def test_the_k_best_end_where_a_weight_overflows() -> None:
    chart = program(FAR, "tropical").run(
        facts(1.0, [*TOO_FAR, ("a", "c", 3.0), ("a", "d", INF), ("d", "c", 1.0), ("c", "e", 0.0)])
    )
    best = iter(chart.kbest("far(c)", 3))
    assert next(best).weight == 3.0 and chart.best("far(c)").weight == 3.0
    assert "derivation of far(c)" in message(lambda: next(best))
    zero = program("g += a(X)*b(X).", "viterbi").run(
        {"a/1": [("y", -1.0), ("z", -INF)], "b/1": [("y", -2.0), ("z", 1.0)]}
    )
    assert [d.weight for d in zero.kbest("g", 5)] == [-3.0, -INF]


def test_random_graphs_of_costs_that_may_overflow() -> None:
    """Against sums of whole numbers, which do not overflow: what is too large for a double is an error."""
    p, draw = program(FAR, "tropical"), random.Random(5)
    ended = {"value": 0, "error": 0}
    for _ in range(100):
        n = draw.randint(3, 6)
        roads = [
            (u, v, draw.choice([0.0, 1.0, 1e308, 1.7e308, 1.7e308, INF]))
            for u in range(n)
            for v in range(u + 1, n)
            if draw.random() < 0.5
        ]
        least: dict[int, float | int] = {0: 0}
        for u, v, w in roads:  # in the order of a topological numbering
            if u in least:
                cost = INF if INF in (least[u], w) else least[u] + int(w)
                least[v] = min(least.get(v, INF), cost) if v in least else cost
        given = {"start/1": [(0, 0.0)], "road/2": roads or [(0, 1, 1.0)]}
        too_large = [v for v, c in least.items() if c != INF and c > 1.7976931348623157e308]
        if too_large:
            said = message(lambda given=given: p.run(given))
            assert any(said.startswith(f"far({v}) ") for v in too_large)
            ended["error"] += 1
        else:
            chart = p.run(given)
            for v, c in least.items():
                assert chart["far", v] == pytest.approx(float(c), rel=1e-15)
            ended["value"] += 1
    assert min(ended.values()) > 10


OVERFLOW = [  # in plain arithmetic, where the value would be that of nothing: rules, facts, the value or none
    ("z max= x*y. w = z.", {"x/0": -1e200, "y/0": 1e200}, None),
    ("z min= x*y. w = z.", {"x/0": 1e200, "y/0": 1e200}, None),
    ("z min= exp(x). w = z.", {"x/0": 800.0, "y/0": 0.0}, None),
    ("z min= x^2. w = z.", {"x/0": 1e200, "y/0": 0.0}, None),
    ("z log+= x*y. w = tanh(z).", {"x/0": -1e200, "y/0": 1e200}, None),
    ("z max= x*y. z max= 3. w = z.", {"x/0": -1e200, "y/0": 1e200}, 3.0),
    ("z log+= x*y. z log+= x. w = tanh(z).", {"x/0": -1e200, "y/0": 1e200}, -1.0),
    ("z max= x*y. w = z.", {"x/0": -INF, "y/0": 1e200}, -INF),
    ("z max= log(x). w = z.", {"x/0": 0.0, "y/0": 0.0}, -INF),  # nothing possible
]


def test_an_extreme_that_overflowed_in_plain_arithmetic_is_not_nothing() -> None:
    for rules, given, value in OVERFLOW:
        p = program(f":- input x/0, y/0. {rules}")
        if value is None:
            assert message(lambda p=p, given=given: p.run(given)).startswith("z became NaN, or infinite though")
        else:
            assert p.run(given)["w"] == value


# -- cycles ------------------------------------------------------------------------------------------------------------

RING = """
win(X) max= lose(Y) for move(X,Y).  win(X) max= 0 for pos(X).
lose(X) min= win(Y) for move(X,Y).  lose(X) min= 1 for pos(X).
"""
DOUBT = "win(S) = min(1, l(S)). l(S) += 0 for pos(S). l(S) += 1 - win(T) for move(S,T)."


@pytest.mark.parametrize("text", [RING, DOUBT], ids=["max over min", "one minus"])
@pytest.mark.parametrize("n", [2, 6])
def test_a_cycle_that_does_not_settle_is_named(text: str, n: int) -> None:
    """Each item of `.cycle` is an antecedent of the next: a move leads from the one to the other, or none is needed."""
    moves = {(i, (i + 1) % n) for i in range(n)}
    with pytest.raises(dg.NotConverged) as caught:
        program(text).run({"pos/1": [(i,) for i in range(n)] + [(n,)], "move/2": sorted(moves)})
    said, cycle = str(caught.value), caught.value.cycle
    assert "does not settle" in said and "finite value" not in said and "spectral" not in said and len(said) <= 600
    assert cycle and cycle[0] in said and cycle[-1] in said
    for item, after in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        (of, x), (by, y) = (c.rstrip(")").split("(") for c in (item, after))
        steps = (int(y), int(x)) in moves
        assert of != by and (steps if text is RING or by == "l" else x == y)


def test_a_negative_cycle_has_no_spectral_radius() -> None:
    for text, semiring in ((FAR, "tropical"), (PLAIN.format("min="), None)):
        with pytest.raises(dg.NotConverged) as caught:
            program(text, semiring).run(facts(1.0, [("a", "b", 1.0), ("b", "c", -2.0), ("c", "b", 1.0)]))
        said = str(caught.value)
        assert set(caught.value.cycle) == {"far(b)", "far(c)"} and "far(b)" in said and "far(c)" in said
        assert "spectral" not in said and ".radius" not in said and caught.value.radius is None


def test_games_that_settle_have_converged() -> None:
    """Rounds that suddenly change nothing have come to the end, whatever the rate before; by hand, and by iteration."""
    shrinks = program("v max= 0.3. v max= 0.5*u. u min= 0.9. u min= 0.5*v.").run()
    assert (shrinks["v"], shrinks["u"], shrinks.converged) == (0.3, 0.15, True) and shrinks.error_bound < 1e-9
    game = program("v(X) max= pay(X). v(X) max= c(X,Y)*u(Y). u(X) min= bid(X). u(X) min= d(X,Y)*v(Y).")
    draw = random.Random(3)
    for _ in range(10):
        n = draw.randint(2, 5)
        given = {key: [(i, draw.uniform(0.1, 1.0)) for i in range(n)] for key in ("pay/1", "bid/1")}
        given |= {key: [(i, draw.randrange(n), draw.uniform(0.2, 0.9)) for i in range(n)] for key in ("c/2", "d/2")}
        v, u = [0.0] * n, [2.0] * n
        for _ in range(2000):
            v, u = (
                [max(given["pay/1"][i][1], *(w * u[y] for x, y, w in given["c/2"] if x == i)) for i in range(n)],
                [min(given["bid/1"][i][1], *(w * v[y] for x, y, w in given["d/2"] if x == i)) for i in range(n)],
            )
        chart = game.run(given)
        assert chart.converged and chart.error_bound < 1e-9
        assert [chart["v", i] for i in range(n)] == pytest.approx(v, rel=1e-12)
        assert [chart["u", i] for i in range(n)] == pytest.approx(u, rel=1e-12)
