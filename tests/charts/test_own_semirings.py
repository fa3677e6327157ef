"""Users' semirings with a selecting plus: best-first search by `less`, and checks that `plus` and `less` agree.

Costs six seconds, most of them compiling.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from charts.test_engine import derived
from dynagrad.rules.parse import parse
from oracle import evaluate, user_semiring

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

UP = "up(V) += start(V).  up(V) += up(U) * link(U,V)."


def times(a: Any, b: Any) -> Any:
    return a * b


def sums(a: Any, b: Any) -> Any:
    return a + b


def shorter(a: Any, b: Any) -> Any:
    """Of two pairs of cost and length the one that costs less, or else is shorter."""
    better = np.logical_or(b[0] < a[0], np.logical_and(b[0] == a[0], b[1] < a[1]))
    return (np.where(better, b[0], a[0]), np.where(better, b[1], a[1]))


def is_shorter(a: Any, b: Any) -> Any:
    return np.logical_or(b[0] < a[0], np.logical_and(b[0] == a[0], b[1] < a[1]))


# Each with the values that facts may have. `less(a, b)`: b is the better one.
ORDERED: Mapping[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "the most reliable": (
        {"zero": 0.0, "one": 1.0, "plus": np.maximum, "times": times, "less": lambda a, b: a < b},
        (0.9, 0.5, 0.3, 0.8, 1.0, 0.0),
    ),
    "the cheapest": (
        {"zero": math.inf, "one": 0.0, "plus": np.minimum, "times": sums, "less": lambda a, b: a > b},
        (1.0, 2.5, 4.0, 0.0, 7.0),
    ),
    "the widest": (
        {"zero": -math.inf, "one": math.inf, "plus": np.maximum, "times": np.minimum, "less": lambda a, b: a < b},
        (1.0, 2.5, 4.0, 0.0, 7.0, math.inf),
    ),
    "the cheapest, then the shortest": (
        {
            "zero": (math.inf, math.inf),
            "one": (0.0, 0.0),
            "plus": shorter,
            "times": lambda a, b: (a[0] + b[0], a[1] + b[1]),
            "less": is_shorter,
        },
        ((1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (0.0, 1.0)),
    ),
}


@cache
def program(name: str, agenda: str, reverse: bool = False, less: bool = True) -> dg.Program:
    given = dict(ORDERED[name][0])
    right = given["less"]
    if reverse:
        given["less"] = lambda a, b: right(b, a)
    if not less:
        del given["less"]
    return dg.Program(f":- agenda {agenda}. {UP}", dg.Semiring(**given))


def random_facts(rng: random.Random, values: tuple[Any, ...]) -> dict[str, Any]:
    nodes = "abcdefg"[: rng.randrange(2, 8)]  # between numbers, plans would look for an order
    links = [(rng.choice(nodes), rng.choice(nodes)) for _ in range(rng.randrange(2, 4 * len(nodes)))]
    return {"start/1": [("a",)], "link/2": [(*link, rng.choice(values)) for link in links]}


def expected(name: str, facts: dict[str, Any]) -> dict[Any, Any]:
    given = {k: v for k, v in ORDERED[name][0].items() if k != "less"}
    wide = isinstance(given["zero"], tuple)
    ring = user_semiring(**given, number=tuple if wide else float)
    values = evaluate(parse(UP), facts, semiring=ring)
    return {row: value for (key, row), value in values.items() if key == "up/1"}


@pytest.mark.parametrize(
    ("agenda", "name"),
    [*(("auto", name) for name in ORDERED), *zip(("lifo", "fifo", "priority", "fifo"), ORDERED, strict=True)],
)
def test_random_graphs_with_cycles(name: str, agenda: str) -> None:
    rng = random.Random(f"{name} {agenda}")
    for _ in range(40):
        facts = random_facts(rng, ORDERED[name][1])
        chart = program(name, agenda).run(facts)
        assert derived(chart, "up/1") == expected(name, facts), facts
        if agenda == "auto":  # no link makes anything better, so what is popped best first is popped once
            assert chart.stats.pops <= len(chart.table("up/1"))


@pytest.mark.parametrize(("name", "agenda"), zip(ORDERED, ("auto", "fifo", "fifo", "auto"), strict=True))
def test_an_order_the_wrong_way_round_is_an_error_and_never_a_wrong_value(name: str, agenda: str) -> None:
    rng = random.Random(name)
    refused = 0
    for _ in range(50):
        facts = random_facts(rng, ORDERED[name][1])
        try:
            chart = program(name, agenda, reverse=True).run(facts)
        except dg.Error as error:
            assert "plus and less do not agree, at up(" in str(error)
            refused += 1
        else:  # no two values met
            assert derived(chart, "up/1") == expected(name, facts), facts
    assert refused > 20


@pytest.mark.parametrize("name", ORDERED)
def test_without_an_order_the_values_are_the_same(name: str) -> None:
    rng = random.Random(name)
    for _ in range(30):
        facts = random_facts(rng, ORDERED[name][1])
        assert derived(program(name, "auto", less=False).run(facts), "up/1") == expected(name, facts), facts


@pytest.mark.parametrize("rules", ["p += a. p += b.", "p(X+1) += p(X) * c(X). p(0) += a. p(0) += b.", UP])
def test_the_error_says_how_they_differ(rules: str) -> None:
    """In every strategy: rules that fire once, items in order of an argument, a cycle."""
    facts: dict[str, Any] = {"a/0": 0.5, "b/0": 0.25, "c/1": [(0, 1.0), (1, 1.0)]}
    if rules == UP:
        facts = {"start/1": [("x", 0.5)], "link/2": [("x", "x", 0.5)]}
    facts = {key: rows for key, rows in facts.items() if key.split("/")[0] in rules}
    wrong = dg.Semiring(0.0, 1.0, np.maximum, times, less=lambda a, b: b < a)
    with pytest.raises(dg.Error) as caught:
        dg.Program(rules, wrong).run(facts)
    text = str(caught.value)
    assert "0.5" in text and "0.25" in text and "plus(0." in text
    assert "less(0.5, 0.25) is True and less(0.25, 0.5) is False" in text or (
        "less(0.25, 0.5) is False and less(0.5, 0.25) is True" in text
    )


@pytest.mark.parametrize(
    ("plus", "less", "said"),
    [
        (sums, lambda a, b: a < b, "plus(2.0, 3.0) is 5.0"),  # does not select
        (np.maximum, lambda a, b: np.logical_and(a < b, b < a), "less(3.0, 2.0) is False"),  # says nothing
        (np.maximum, lambda a, b: np.logical_or(a < b, b < a), "less(3.0, 2.0) is True"),  # says everything
    ],
)
def test_other_ways_not_to_agree(plus: Any, less: Any, said: str) -> None:
    with pytest.raises(dg.Error, match="do not agree") as caught:
        dg.Program("p += q(X).", dg.Semiring(0.0, 1.0, plus, times, less=less)).run({"q/1": [(1, 2.0), (2, 3.0)]})
    assert said in str(caught.value)


def test_an_order_that_calls_a_value_better_than_itself() -> None:
    own = dg.Semiring(0.0, 1.0, np.maximum, times, less=lambda a, b: a <= b)
    with pytest.raises(dg.Error, match=r"at p: less\(2.0, 2.0\) is True\. "):
        dg.Program("p += q(X).", own).run({"q/1": [(1, 2.0), (2, 2.0)]})


def test_of_values_that_tie_plus_may_keep_either() -> None:
    """An order by the first of two numbers says nothing of the second."""
    for plus in (
        lambda a, b: (np.where(b[0] > a[0], b[0], a[0]), np.where(b[0] > a[0], b[1], a[1])),  # the first
        lambda a, b: (np.where(b[0] >= a[0], b[0], a[0]), np.where(b[0] >= a[0], b[1], a[1])),  # the second
    ):
        own = dg.Semiring(
            (0.0, 0.0), (1.0, 0.0), plus, lambda a, b: (a[0] * b[0], a[1] + b[1]), less=lambda a, b: a[0] < b[0]
        )
        facts = {"q/1": [(1, (2.0, 5.0)), (2, (2.0, 7.0)), (3, (1.0, 9.0))]}
        assert dg.Program("p += q(X).", own).run(facts)["p"] in ((2.0, 5.0), (2.0, 7.0))


class TestIteration:
    """Cycles of a semiring without `star` are iterated, and what is still to come is estimated."""

    sums = dg.Semiring(0.0, 1.0, lambda a, b: a + b, lambda a, b: a * b)

    def test_converged_means_it(self) -> None:
        program = dg.Program("x(I) += given(I). x(J) += x(I) * edge(I,J).", self.sums)
        bound = program.bind({"given/1": [(0, 1.0)]})
        for weight in (0.5, 0.9, 0.999):
            edges = {"edge/2": [(0, 1, weight), (1, 0, 1.0)]}
            chart = bound.run(edges)
            assert chart.converged
            assert chart["x(0)"] == pytest.approx(1 / (1 - weight), rel=1e-12)
            loose = bound.run(edges, tolerance=1e-6)
            wrong = abs(loose["x(0)"] * (1 - weight) - 1)
            assert loose.converged == (loose.error_bound <= 1e-6)
            assert wrong <= 2 * loose.error_bound + 1e-15
        assert not loose.converged  # three digits are right, where a step changes less than six
        with pytest.raises(dg.NotConverged, match="does not converge"):
            bound.run({"edge/2": [(0, 1, 1.0), (1, 0, 1.0)]})


# -- values without end, and out of range ------------------------------------------------------------------------------


def largest(less: bool) -> dg.Semiring:
    return dg.Semiring(0.0, 1.0, np.maximum, times, less=(lambda a, b: a < b) if less else None)


def cheapest(less: bool) -> dg.Semiring:
    return dg.Semiring(math.inf, 0.0, np.minimum, sums, less=(lambda a, b: a > b) if less else None)


def ring(*links: float) -> dict[str, Any]:
    n = len(links)
    return {"start/1": [(0, 1.0)], "link/2": [(i, (i + 1) % n, x) for i, x in enumerate(links)]}


@pytest.mark.parametrize("less", [True, False])
def test_values_that_improve_around_a_cycle_have_no_end(less: bool) -> None:
    with pytest.raises(dg.NotConverged) as caught:
        dg.Program(UP, cheapest(less)).run(ring(0.75, 0.5, -9.0))
    assert sorted(caught.value.cycle) == ["up(0)", "up(1)", "up(2)"]
    costs = dg.Program(UP, cheapest(less)).run(ring(0.75, 0.5, -1.25))
    assert [costs[f"up({i})"] for i in range(3)] == [1.0, 1.75, 2.25]
    with pytest.raises(dg.ValueRangeError, match=r"up\(\d\) -> up\(\d\)"):
        dg.Program(UP, largest(less)).run(ring(0.75, 0.5, 9.0))
    gains = dg.Program(UP, largest(less)).run(ring(0.75, 0.5, 2.0))
    assert [gains[f"up({i})"] for i in range(3)] == [1.0, 0.75, 0.375]


def test_values_that_improve_up_to_a_bound_settle() -> None:
    capped = dg.Semiring(0.0, 1.0, np.maximum, lambda a, b: np.minimum(a * b, 1.0), less=lambda a, b: a < b)
    chart = dg.Program(UP, capped).run({**ring(1.0, 1.0, 1.001), "start/1": [(0, 1e-3)]})
    assert chart.converged and [chart[f"up({i})"] for i in range(3)] == [1.0, 1.0, 1.0]


def test_what_overflows_is_an_error_and_no_infinity() -> None:
    product = dg.Program("goal += a(X) * b(X).", largest(True))
    with pytest.raises(dg.ValueRangeError, match="goal became NaN or left the range"):
        product.run({"a/1": [(0, 1e300)], "b/1": [(0, 1e300)]})
    with pytest.raises(dg.FactError, match="a/1, row 1, value: inf is not possible"):
        product.run({"a/1": [(0, math.inf)], "b/1": [(0, 1.0)]})
    grown = dg.Semiring(0.0, 1.0, sums, times)
    with pytest.raises(dg.Error, match=r"up\(0\)"):
        dg.Program(UP, grown).run(ring(2.0))
    widest = dg.Semiring(0.0, math.inf, np.maximum, np.minimum, less=lambda a, b: a < b)  # its one is infinite
    chart = dg.Program(UP, widest).run({**ring(3.0, 2.0, 5.0), "start/1": [(0,)]})
    assert [chart[f"up({i})"] for i in range(3)] == [math.inf, 3.0, 2.0]
    with pytest.raises(dg.FactError, match="-inf is not possible; values here are numbers or inf"):
        dg.Program(UP, cheapest(True)).run({**ring(1.0), "start/1": [(0, -math.inf)]})
