"""Infinite values in plain arithmetic: facts may be infinite; one that arises is an error that names its item.

Costs ten seconds, mostly compiling.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from charts.test_engine import derived
from dynagrad.rules.parse import parse
from oracle import Numbers, evaluate
from random_programs import prefixed

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

INF = math.inf


@cache
def program(text: str, **functions: Any) -> dg.Program:
    return dg.Program(text)


OF_NUMBERS = [  # rules and their numbers, of which `t` becomes infinite or NaN; where they are one, nothing does
    ("t += exp(x). z = log(t).", {"x/0": 800.0}),
    ("t += x * 1e200. z = t - 1.", {"x/0": 1e200}),
    ("t += x + 0. t += y + 0. z = log(t).", {"x/0": 1.7e308, "y/0": 1.7e308}),
    ("t = 0 - exp(x). z = exp(t).", {"x/0": 800.0}),
    ("t *= exp(x). t *= exp(x). z = 1 / t.", {"x/0": 500.0}),
    ("t = log(x). z = exp(t).", {"x/0": 0.0}),
    ("t += log(x). z = exp(t).", {"x/0": 0.0}),
    ("t min= log(x). z = exp(t).", {"x/0": 0.0}),
    ("t max= 1 / x. z = exp(0 - t).", {"x/0": 0.0}),
    ("t log+= exp(x). z = t - 1.", {"x/0": 800.0}),
]


@pytest.mark.parametrize("n", range(len(OF_NUMBERS)), ids=[rules for rules, _ in OF_NUMBERS])
def test_what_arises_from_a_number_is_an_error_with_its_item(n: int) -> None:
    """All are one program, for one compile; in each run the numbers of the others are one."""
    text, numbers = side_by_side(OF_NUMBERS)
    ones = dict.fromkeys(numbers, 1.0)
    assert program(text).run(ones).converged
    assert_arises(text, ones | {f"p{n}_{key}": number for key, number in OF_NUMBERS[n][1].items()}, f"p{n}_t")


def side_by_side(cases: Sequence[tuple[Any, ...]]) -> tuple[str, dict[str, Any]]:
    """The rules of all cases, which come first, and then their facts, those of each under names of its own (`p0_z`)."""
    text = "\n".join(prefixed(rules, f"p{n}_") for n, (rules, *_) in enumerate(cases))
    return text, {f"p{n}_{key}": rows for n, (_, facts, *_) in enumerate(cases) for key, rows in facts.items()}


def assert_arises(text: str, facts: dict[str, Any], item: str | None) -> None:
    with pytest.raises(dg.ValueRangeError) as caught:
        program(text).run(facts)
    said = re.match(
        r"(\S+) became NaN, or infinite though its antecedents are finite, and is the first", str(caught.value)
    )
    assert said and (item is None or said[1] == item)
    batch = program(text).run_batch([facts, facts], query=item or "p(a)")
    assert sorted(batch.errors) == [0, 1] and isinstance(batch.errors[0], dg.ValueRangeError)


ARISE = [  # rules, facts, the item where it first arises
    ("t = exp(800). z += t * x.", {"x/0": 1.0}, "t"),
    ("z += x(a) / 2. z += exp(y).", {"x/1": [("a", 1.7e308), ("a", 1.7e308)], "y/0": 1.0}, "x(a)"),
    ("t = x(a) - 1. x(Y) += y(Y).", {"x/1": [], "y/1": [("a", 1.7e308), ("a", 1.7e308)]}, "y(a)"),
    ("p(0) = x. p(I+1) = exp(p(I)) for I < 9. z = log(p(9)).", {"x/0": 0.0}, "p(5)"),  # items in an order
    ("p(a) += 1. p(Y) += 2 * p(X) ^ 1.5 * e(X,Y).", {"e/2": [("a", "b", 2.0), ("b", "a", 2.0)]}, None),  # a cycle
    ("p(a) max= 2. p(Y) max= 2 * p(X) + e(X,Y).", {"e/2": [("a", "b", 1.0), ("b", "a", 1.0)]}, None),
    (  # a stage that is run round by round
        "r(a) min= 2. r(Y) min= p(X) + e(X,Y). p(Y) = exp(r(Y)). z = p(c).",
        {"e/2": [("a", "b", 1000.0), ("b", "c", 1.0), ("c", "a", 1.0)]},
        "p(b)",
    ),
    (":- prune q(I) < -5. q(I) += x(I). t += exp(q(I)). z = log(t).", {"x/1": [(1, 800.0), (2, -9.0)]}, "t"),
    (":- agenda fifo. q(I) += x(I) + 0. t += exp(q(I)). z = log(t).", {"x/1": [(1, 800.0), (2, -9.0)]}, "t"),
]


@pytest.mark.parametrize(("rules", "facts", "item"), ARISE, ids=[rules for rules, _, _ in ARISE])
def test_what_arises_is_an_error_with_its_item(rules: str, facts: dict[str, Any], item: str | None) -> None:
    given = {key: rows for key, rows in facts.items() if rows != []}
    text = f":- input x/1. {rules}" if "x/1" in facts and facts["x/1"] == [] else rules
    assert_arises(text, given, item)


GROWING = [  # rules, facts: around a cycle, of the items that are given, values grow without end
    ("d(s) = 1. d(Y) max= d(X) * e(X,Y).", {"e/2": [("s", "b", 1.0), ("b", "s", 2.0)]}, ["d(s)", "d(b)"]),
    ("d(s) = 1. d(Y) max= d(X) * e(X,Y).", {"e/2": [("s", "b", -1.0), ("b", "s", -2.0)]}, ["d(s)", "d(b)"]),
    (  # what overflows first is no part of the cycle
        "d(s) = 1. d(Y) max= d(X) * e(X,Y).",
        {"e/2": [("s", "b", -1.0), ("b", "s", -2.0), ("s", "t", 1.0), ("b", "u", 3.0)]},
        ["d(s)", "d(b)"],
    ),
    ("d(s) = -1. d(Y) min= d(X) * e(X,Y).", {"e/2": [("s", "b", -1.0), ("b", "s", -2.0)]}, ["d(s)", "d(b)"]),
    (
        "d(s) = 1. d(Y) max= d(X) * e(X,Y).",
        {"e/2": [("s", "b", -1.0), ("b", "c", -2.0), ("c", "s", 1.0)]},
        ["d(s)", "d(b)", "d(c)"],
    ),
    ("d(s) = 1. d(Y) max= 2 * d(X) + e(X,Y).", {"e/2": [("s", "s", 0.0)]}, ["d(s)"]),
    ("d(s) += e(s,s). h(X) max= 2 * d(X). d(X) += h(X).", {"e/2": [("s", "s", 1.0)]}, ["d(s)", "h(s)"]),
    (  # best first
        "d(s) = 1. d(Y) max= d(X) + lse(d(X), 0) + 0 * e(X,Y).",
        {"e/2": [("s", "b", 1.0), ("b", "s", 1.0)]},
        ["d(s)", "d(b)"],
    ),
    ("d(s) = -1. h(X) min= d(X) + min(d(X), 0). d(X) min= h(X).", {}, ["d(s)", "h(s)"]),
]


@pytest.mark.parametrize("n", range(len(GROWING)))
def test_values_that_grow_around_a_cycle_are_an_error_with_its_items(n: int) -> None:
    rules, facts, items = GROWING[n]
    with pytest.raises(dg.ValueRangeError, match="since values grow around a cycle") as caught:
        program(rules).run(facts)
    found = re.search(r"cycle \((.*?)\), or by", str(caught.value))
    assert found
    around = found[1].split(" -> ")
    assert around[0] == around[-1] and sorted(around[1:]) == sorted(items)
    assert str(caught.value).split(" ")[0] in items


SETTLING = [  # with signs around a cycle, but no growth; values by hand
    ("d(s) = 1. d(Y) max= d(X) * e(X,Y).", {"e/2": [("s", "b", -1.0), ("b", "s", -1.0)]}, {"d(s)": 1, "d(b)": -1}),
    ("d(s) = 1. d(Y) max= d(X) * e(X,Y).", {"e/2": [("s", "b", -1.0), ("b", "s", 2.0)]}, {"d(s)": 1, "d(b)": -1}),
    ("d(s) = 1. d(Y) min= d(X) * e(X,Y).", {"e/2": [("s", "b", -1.0), ("b", "s", -2.0)]}, {"d(s)": 1, "d(b)": -1}),
    ("d(X) max= a(X). d(Y) max= d(X) * e(X,Y).", {"a/1": [("s", -INF)], "e/2": [("s", "s", 2.0)]}, {"d(s)": -INF}),
    ("d(X) min= a(X). d(Y) min= d(X) * e(X,Y).", {"a/1": [("s", INF)], "e/2": [("s", "s", 2.0)]}, {"d(s)": INF}),
    ("d(X) max= log(a(X)). d(Y) max= d(X) * e(X,Y).", {"a/1": [("s", 0.0)], "e/2": [("s", "s", 2.0)]}, {"d(s)": -INF}),
]


@pytest.mark.parametrize("n", range(len(SETTLING)))
def test_signs_and_infinite_facts_around_a_cycle_are_no_error(n: int) -> None:
    rules, facts, values = SETTLING[n]
    chart = program(rules).run(facts)
    assert chart.converged and {item: chart[item] for item in values} == values


STAY = [  # rules, facts, an item, its value
    ("t += exp(x). z = log(t).", {"x/0": INF}, "z", INF),
    ("t += exp(x). z = t.", {"x/0": -INF}, "z", 0.0),
    ("z = x.", {"x/0": -INF}, "z", -INF),
    ("z += x(_) + 0.", {"x/1": [(1, INF), (2, 1.0)]}, "z", INF),
    ("z min= x(_). w = z - 1.", {"x/1": [(1, INF)]}, "w", INF),
    ("z max= log(x). w = exp(z).", {"x/0": 0.0}, "w", 0.0),  # nothing possible, as a maximum of nothing
    ("z max= log(x). w = z - 1. v = w * 2.", {"x/0": 0.0}, "v", -INF),
    ("z log+= log(x). w = z - 1.", {"x/0": 0.0}, "w", -INF),
    ("z min= 0 - log(x). w = z + 1.", {"x/0": 0.0}, "w", INF),
    ("z max= log(x). z max= 3. w = z.", {"x/0": 0.0}, "w", 3.0),  # of a maximum only what it comes to
    ("z = if x > 0 then log(x) else 0 - 1.", {"x/0": 0.0}, "z", -1.0),
    ("p(a) += 1. p(Y) += p(X) + e(X,Y).", {"e/2": [("a", "b", INF)]}, "p(b)", INF),
    ("p(0) = x. p(I+1) = p(I) + 1 for I < 5.", {"x/0": INF}, "p(5)", INF),
    (  # round by round: infinite on the way only
        "r(a) min= 2. r(Y) min= p(X) + e(X,Y). p(Y) = 1 / (3 - r(Y)). z = p(b).",
        {"e/2": [("a", "b", 2.0), ("b", "c", 1.0), ("a", "b", 0.5), ("c", "b", 0.25)]},
        "r(a)",
        2.0,
    ),
]


@cache
def all_that_stay() -> dg.Chart:
    text, facts = side_by_side(STAY)
    return program(text).run(facts)


@pytest.mark.parametrize("n", range(len(STAY)), ids=[rules for rules, *_ in STAY])
def test_what_was_put_in_and_what_nothing_amounts_to_stays(n: int) -> None:
    *_, item, value = STAY[n]
    assert all_that_stay()[f"p{n}_{item}"] == value


def test_infinite_facts_stay_legal_as_facts_of_derived_predicates_and_after_changes() -> None:
    text = ":- input p/1. p(X) += q(X) + 0. r(X) += p(X) * 2. s += r(_)."
    chart = program(text).run({"p/1": [("a", INF), ("b", 1.0)], "q/1": [("b", 2.0), ("c", 4.0)]})
    assert (chart["r(a)"], chart["r(b)"], chart["s"]) == (INF, 6.0, INF)
    chart.add("q/1", [("c", 1.0)])
    assert (chart.run()["r(c)"], chart["s"]) == (10.0, INF)
    chart.retract("p/1", [("a",)])
    assert chart.run()["s"] == 16.0
    chart.add("p/1", [("d", -INF)])
    assert chart.run()["r(d)"] == -INF
    chart.add("q/1", [("e", 1e308)])
    with pytest.raises(dg.ValueRangeError, match=r"r\(e\) became NaN, or infinite"):
        chart.run()


def test_what_a_function_of_the_host_gives() -> None:
    grows = dg.Program(":- function grow/1. z = grow(x).", functions={"grow": lambda v: v * 1e300})
    assert grows.run({"x/0": 2.0})["z"] == 2e300
    with pytest.raises(dg.ValueRangeError, match="z became NaN, or infinite"):
        grows.run({"x/0": 1e10})
    outside = dg.Program(
        ":- external far/1. z(X) = far(X) + n(X).", functions={"far/1": lambda n: INF if n == 1 else 0.0}
    )
    assert outside.run({"n/1": [(1, 1.0), (2, 1.0)]})["z(1)"] == INF


def test_derivatives_that_are_not_finite_are_errors_both_ways() -> None:
    text = program("y = sqrt(x). z = y * 2. u = x + 1.")
    chart = text.run({"x/0": 0.0})
    assert chart.gradient("u")["x/0"].values[0] == 1.0
    with pytest.raises(dg.ValueRangeError, match="gradient with respect to x"):
        chart.gradient("z")
    with pytest.raises(dg.ValueRangeError, match="derivative of y became NaN or infinite, and is the first"):
        chart.jvp({"x/0": [1.0]})
    batch = text.bind({"x/0": 0.0}).run_batch([{}, {}], query="z", gradient=["x/0"])
    assert sorted(batch.errors) == [0, 1] and batch.gradient["x/0"].values[0] == 0.0
    # where the value is infinite, and may be
    times = program("z = x * c. w = c + 1.")
    chart = times.run({"x/0": INF, "c/0": 2.0})
    tangents = chart.jvp({"c/0": [1.0]})
    assert tangents["w"] == 1.0
    for ask in (lambda: tangents["z"], lambda: tangents.query("z"), lambda: chart.gradient("z")):
        with pytest.raises(dg.ValueRangeError, match="NaN or infinite"):
            ask()
    f = times.function(["z", "w"], ["c/0"], {"x/0": INF, "c/0": 2.0})
    with pytest.raises(dg.ValueRangeError, match="NaN or infinite"):
        f.jvp([np.array([2.0])], [np.array([1.0])])


def test_no_gradient_of_what_overflowed_is_zero() -> None:
    text = program("t += exp(x(_)). z = log(t).")
    bound = text.bind({"x/1": [(1, 1.0), (2, 2.0)]})
    good = bound.run_batch([{}], query="z", gradient=["x/1"])
    assert good.errors == {} and abs(good.gradient["x/1"].values.sum() - 1.0) < 1e-15
    bad = bound.with_values({"x/1": [800.0, 2.0]}).run_batch([{}], query="z", gradient=["x/1"])
    assert list(bad.errors) == [0] and str(bad.errors[0]).startswith("example 0: t became NaN, or infinite")


# -- the same by many programs -----------------------------------------------------------------------------------------

RULES = (
    "a(I) = x(I) * y(I).  b += a(I) + 0.  c(I) max= log(x(I)).  c(I) max= a(I) - 1.",
    "d(I) = exp(a(I)).  e min= d(I).  f(I) log+= c(I) + y(I).  f(I) log+= d(J) * x(I).",
    "g(I) *= y(I).  g(I) *= d(I).  h(I) = (a(I) + 1) / y(I).  k += f(I) - h(I).  m max= g(I) + k.",
    "n(0) = b.  n(I+1) = n(I) * n(I) for I < 4.  o(I) |= d(I).  q(I) = if o(I) > 0 then c(I) else a(I).",
)
ZERO = {"c": -INF, "m": -INF, "f": -INF, "e": INF}


def expected(facts: dict[str, Any]) -> tuple[dict[Any, float], set[Any]]:
    """Values by the oracle, item after item, and the items where something infinite or NaN first arises."""
    source = parse("\n".join(RULES))
    values = evaluate(source, facts)
    bad = {item for item, v in values.items() if not math.isfinite(v) and v != ZERO.get(item[0].split("/")[0])}
    return values, bad


def test_random_facts_of_all_sizes() -> None:
    """Where all is finite the values are those of the oracle; where not, the item that is named is the first."""
    text = program("\n".join(RULES))
    rng = random.Random(0)
    sizes = (0.0, 1.0, -1.0, 3.0, 1e200, 710.0, -800.0, 0.5, -0.25, 1e-3)
    ended = {"error": 0, "value": 0}
    for _ in range(100):
        pool = sizes if rng.random() < 0.5 else sizes[1:4] + sizes[7:]
        facts = {key: [(i, rng.choice(pool)) for i in range(2)] for key in ("x/1", "y/1")}
        values, bad = expected(facts)
        try:
            chart = text.run(facts)
        except dg.ValueRangeError as error:
            ended["error"] += 1
            named = re.match(r"(\w+)(?:\((\d+)\))? became", str(error))
            assert named
            item = next(i for i in bad if i[0].split("/")[0] == named[1] and (not named[2] or i[1] == (int(named[2]),)))
            assert all(i not in bad for i in made_of(item)), (facts, item)
        else:
            ended["value"] += 1
            assert not bad, (facts, bad)
            for key in {key for key, _ in values if key not in facts}:
                found = derived(chart, key)
                for row, value in found.items():
                    wanted = values[key, row]
                    assert value == wanted or abs(value - wanted) <= 1e-9 * max(1.0, abs(wanted)), (key, row)
    assert min(ended.values()) > 20, ended


def made_of(item: Any) -> list[Any]:
    """The items that an item of the rules above is made of."""
    (key, row), both = item, [(0,), (1,)]
    one = {
        "a/1": [],
        "b/0": [("a/1", r) for r in both],
        "c/1": [("a/1", row)],
        "d/1": [("a/1", row)],
        "e/0": [("d/1", r) for r in both],
        "f/1": [("c/1", row), *(("d/1", r) for r in both)],
        "g/1": [("d/1", row)],
        "h/1": [("a/1", row)],
        "k/0": [(name, r) for name in ("f/1", "h/1") for r in both],
        "m/0": [("k/0", ()), *(("g/1", r) for r in both)],
        "n/1": [("b/0", ())] if row == (0,) else [("n/1", (row[0] - 1,))] if row else [],
        "q/1": [(name, row) for name in ("o/1", "c/1", "a/1")],
    }
    return one[key]


def test_the_oracle_computes_as_the_processor_does() -> None:
    assert Numbers().operations["exp"](800.0) == INF and Numbers().operations["log"](0.0) == -INF
