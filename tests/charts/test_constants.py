"""Constant items and facts that are given more than once: contributions like any other. Costs two seconds."""

from __future__ import annotations

import itertools
import random
from functools import cache
from typing import Any

import pytest

import dynagrad as dg
from charts.test_engine import derived, differences
from dynagrad.rules.parse import parse
from oracle import Conflict, evaluate
from random_programs import combined, prefixed

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

AGGREGATORS = ("+=", "*=", "max=", "min=", "|=", "&=", "=")


CONSTANTS = (
    ("a(x) max= 3. a(x) max= 3. b = a(x).", "b", 3.0),
    ("a(x) min= 1. a(x) min= 5. b += a(X).", "b", 1.0),
    ("a(x) |= 0.25. b += a(X).", "b", 1.0),
    ("a(x) |= 0.25. a(x) |= 0. b += a(X).", "b", 1.0),
    ("a(x) &= 0.25. b += a(X).", "b", 1.0),
    ("a(x) &= 0.25. a(x) &= 0. b += a(X).", "b", 0.0),
    ("a(x) *= 3. a(x) *= 4. b += a(X).", "b", 12.0),
    ("a(x) += 3. a(x) += 3. b += a(X).", "b", 6.0),
    ("a(x) = 2. a(x) = 2. b += a(X).", "b", 2.0),
    ("a(x) = 2. a(x) = 2. a(x) += 2. b += a(X).", "b", 6.0),
    ("a(x) = 2. a(x) = 4. a(x) max= 3. b += a(X).", "b", 4.0),
    ("a(x) max= 1. a(x) max= 3. b min= a(X) + 1.", "b", 4.0),
    ("a(x) max= 1. a(x) max= 3. b max= a(X) + 1.", "b", 4.0),
    (":- transient a/1. a(x) = 2. a(x) = 2. b += a(X).", "b", 2.0),
    (":- semiring real. a(x) = 2. a(x) = 2. b += a(X).", "b", 4.0),
)


@cache
def all_plain() -> dict[str, str]:
    """What runs in no semiring and so can be compiled together: by text, the names that it has there begin with."""
    plain = [text for text, _, _ in CONSTANTS if dg.Program(text).semiring == "plain"]
    return {text: f"p{number}_" for number, text in enumerate(plain)}


@cache
def chart_of(text: str) -> dg.Chart:
    return dg.Program(text).run()


@pytest.mark.parametrize(("text", "item", "value"), CONSTANTS)
def test_constants_of_one_item(text: str, item: str, value: float) -> None:
    prefix = all_plain().get(text, "")
    every = "\n".join(prefixed(each, names) for each, names in all_plain().items())
    assert chart_of(every if prefix else text)[prefix + item] == value


@pytest.mark.parametrize("rest", ["", " b += a(X).", " b max= a(X) + 1.", " a(Y) = c(Y). c(z) = 1."])
def test_two_values_under_equality_are_an_error(rest: str) -> None:
    with pytest.raises(dg.ProgramError, match=r"`a\(x\)` is given two different values by `=`; the first is in line 1"):
        dg.Program(f"a(x) = 1. a(x) = 2.{rest}")


def test_a_transient_made_with_another_aggregator_cannot_be_unfolded() -> None:
    with pytest.raises(dg.ProgramError, match="made with `max=`"):
        dg.Program(":- transient a/1. a(x) max= 3. a(x) max= 3. b += a(X).")


def test_facts_for_a_predicate_with_an_aggregator_are_contributions() -> None:
    for aggregator, value in (("+=", 8.0), ("*=", 15.0), ("max=", 5.0), ("min=", 1.0), ("|=", 1.0), ("&=", 1.0)):
        program = dg.Program(f"a(x) {aggregator} 1. b += a(X).")
        facts = {"a/1": [("x", 5.0), ("x", 2.0 if aggregator == "+=" else 3.0)]}
        assert program.run(facts)["b"] == program.run(facts)["a(x)"] == value, aggregator


def test_facts_of_one_item_under_equality_have_one_value() -> None:
    program = dg.Program(":- input a/1. a(X) = c(X). b += a(X).")
    c = [("z", 4.0)]
    assert program.run({"a/1": [("x", 5.0), ("x", 5.0)], "c/1": c})["b"] == 9.0
    for rows in ([("x", 5.0), ("y", 1.0), ("x", 3.0)], [("z", 3.0)]):
        with pytest.raises(dg.ValueRangeError, match=rf"a\({rows[0][0]}\) is given two different values by `=`"):
            program.run({"a/1": rows, "c/1": c})
    chart = program.run({"a/1": [("x", 5.0)], "c/1": c})
    chart.add("a/1", [("x", 5.0)])
    assert chart.run()["b"] == 9.0
    chart.add("a/1", [("x", 6.0)])
    with pytest.raises(dg.ValueRangeError, match="two different values"):
        chart.run()
    batch = program.run_batch([{"a/1": [("x", 1.0), ("x", x)], "c/1": c} for x in (1.0, 2.0)], query="b")
    assert batch.values[0] == 5.0 and list(batch.errors) == [1]


def test_derivatives_by_facts_given_twice() -> None:
    """Those of the rows as they came: of a maximum the first that has it, of a product the other."""
    in_semiring = {"+=": [2.0, 2.0, 2.0]}
    in_plain = {
        "*=": [30.0, 50.0, 30.0],
        "max=": [2.0, 0.0, 0.0],
        "min=": [0.0, 2.0, 0.0],
        "|=": [0.0, 0.0, 0.0],
        "&=": [0.0, 0.0, 0.0],
    }
    for together in (in_semiring, in_plain):
        program = dg.Program(" ".join(f"a{n}(y) {op} 1. b{n} += 2 * a{n}(X)." for n, op in enumerate(together)))
        rows, moves = [("x", 5.0), ("x", 3.0), ("x", 5.0)], [1.0, 10.0, 100.0]
        chart = program.run({f"a{n}/1": rows for n in range(len(together))})
        for n, (operator, expected) in enumerate(together.items()):
            assert chart.gradient(f"b{n}")[f"a{n}/1"].values.tolist() == expected, operator
            tangent = chart.jvp({f"a{n}/1": moves})[f"b{n}"]
            assert tangent == sum(e * u for e, u in zip(expected, moves, strict=True)), operator


# -- the same by many programs -----------------------------------------------------------------------------------------


class Drawn:
    """A program of constants, some of them said again, and what reads them."""

    def __init__(self, rng: random.Random) -> None:
        self.facts: dict[str, list[Any]] = {"seed/1": [("x", 2.0), ("y", -1.0)]}
        self.functions: dict[str, Any] = {}
        statements = []
        for n in range(4):
            aggregator = rng.choice(AGGREGATORS)
            values = (3.0, 3.0, 0.25, -1.0, 0.0, 2.0) if aggregator != "=" else (2.0, 2.0, 2.0, 2.0, 2.0, 3.0)
            for _ in range(rng.randrange(1, 5)):
                written = rng.choice([aggregator, aggregator, "="])
                statements.append(f"c{n}({rng.choice('xyz')}) {written} {rng.choice(values)}.")
            if aggregator != "=" and rng.random() < 0.3:
                statements.append(f"c{n}(w) {aggregator} seed(x) + seed(y).")
            statements.append(f"u{n}(X) {rng.choice(['+=', 'max=', 'min='])} 2 * c{n}(X) + seed(x).")
        rng.shuffle(statements)
        self.source = "\n".join(statements)


def test_random_constants_mean_what_the_oracle_says() -> None:
    rng = random.Random(0)
    agreed: list[Drawn] = []
    refused = 0
    while len(agreed) < 40:
        drawn = Drawn(rng)
        try:
            evaluate(parse(drawn.source), drawn.facts)
        except Conflict:
            refused += 1
            with pytest.raises(dg.ProgramError, match="two different values"):
                dg.Program(drawn.source)
        else:
            agreed.append(drawn)
    assert refused > 5

    together = combined(agreed)
    chart = dg.Program(together.source).run(together.facts)
    for number, drawn in enumerate(agreed):
        assert differences(chart, drawn, None, f"p{number}_") == [], drawn.source


# Programs that run as a semiring, and rules for other items, after which they do not.
BASES = (
    "d(X) += 2 * e(X,Y) * f(Y).  d(X) += e(X,Y) * c.  c = 3.  c = 3.",
    "d(X) min= 1 + e(X,Y) + f(Y).  d(X) min= e(X,Y) + c.  c max= 3.  c max= 3.",
    "d(X) max= 1 + e(X,Y) + f(Y).  d(X) max= e(X,Y) + c.  c min= 3.  c min= 1.  c = 5.",
)
OTHERS = ("zz |= 0.5.", "zz *= d(X).", "d(other) {op} f(Y) / 7.", "f(other) = 1. f(other) = 1.")


def facts_with_copies(rng: random.Random) -> dict[str, Any]:
    pairs = list(itertools.product("xyz", "xyz"))
    e = [(*rng.choice(pairs), rng.choice((0.5, 2.0, -1.0, 4.0))) for _ in range(8)]
    return {"e/2": e, "f/1": [(rng.choice("xyz"), rng.choice((1.0, 3.0, -2.0))) for _ in range(4)]}


@pytest.mark.parametrize("base", BASES)
def test_a_rule_for_another_item_changes_no_item(base: str) -> None:
    rng = random.Random(base)
    drawn = [facts_with_copies(rng) for _ in range(12)]
    operator = base.split()[1]
    alone = dg.Program(base)
    assert alone.semiring != "plain"
    values = [derived(alone.run(facts), "d/1") for facts in drawn]
    assert values[0] == pytest.approx(
        {row: v for (key, row), v in evaluate(parse(base), drawn[0]).items() if key == "d/1"}
    )
    gradients = [alone.run(facts).gradient({"d(x)": 1.0, "d(y)": 0.5}) for facts in drawn[:4]]
    for other in OTHERS:
        more = dg.Program(f"{base} {other.format(op=operator)}")
        for n, facts in enumerate(drawn):
            chart = more.run(facts)
            found = {row: v for row, v in derived(chart, "d/1").items() if row != ("other",)}
            assert found == pytest.approx(values[n], rel=1e-14), (other, facts)
            for item in ("e(x,x)", "f(x)", "c"):
                assert chart[item] == alone.run(facts)[item], item
            if n < len(gradients) and "zz" in other:
                again = chart.gradient({"d(x)": 1.0, "d(y)": 0.5})
                for key in ("e/2", "f/1"):
                    assert again[key].values.tolist() == pytest.approx(gradients[n][key].values.tolist(), rel=1e-14)
