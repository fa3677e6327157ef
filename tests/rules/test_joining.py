"""How rows of inputs join, by the rules that read them: which aggregator, and why not.

That rows which join this way give what joining afterwards gives is tested in `tests/charts/test_rows_of_facts.py`.
"""

from __future__ import annotations

import itertools
import math
import random
import warnings
from collections.abc import Callable

import pytest

from dynagrad.errors import Error, ProgramWarning
from dynagrad.rules import check, parse
from dynagrad.rules.normal import Predicate, Rules
from dynagrad.rules.syntax import AntecedentValue, Application, Expression, Numeral


def checked(text: str, semiring: str | None = None) -> Rules:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProgramWarning)
        return check(parse(text), semiring=semiring)


def predicate(text: str, key: str = "a/1", semiring: str | None = None) -> Predicate:
    return checked(text, semiring).predicates[key]


@pytest.mark.parametrize(
    ("text", "aggregator"),
    [
        ("p += a(_).", "+="),
        ("p += 2 * a(X) * w(X) / v(X).", "+="),
        ("p += -a(_).", "+="),
        ("p += (0 + a(X) - 0) * 1 + 0.", "+="),
        ("p *= 1 * a(X) / 1.", "*="),
        ("p += a(X) * SIDE(a(X)).", "+="),
        ("p log+= 1 + a(X) - w(X).", "log+="),
        ("p min= d + a(_). d += w(_).", "min="),
        ("p max= a(X) - w(X).", "max="),
        ("p max= 3 - -a(_).", "max="),
        ("p max= exp(w(X)) * tanh(a(X)).", "max="),
        ("p min= 1 / (1 + exp(-a(_))).", "min="),
        ("p min= if w > 0 then a(_) else 2 * a(_). ", ""),  # it stands there twice
        ("p min= if w > 0 then a(_) else 2.", "min="),
        ("p max= a(X) * exp(n). n += w(_).", "max="),
        ("p max= a(X) * w(X) ^ 2.", "max="),
        ("p max= a(X) * n. n += w(_) ^ 2.", ""),  # facts may be given for n, too
        ("p max= a(X) * n. n |= m(_).", ""),
        ("p max= a(X) * n. n = 0.25.", ""),
        ("p max= a(X) ^ 3.", "max="),
        ("p max= a(X) ^ 2.", ""),
        ("p max= 2 ^ a(X).", "max="),
        ("p max= 0.5 ^ a(X).", ""),
        ("p max= abs(a(_)).", ""),
        ("p max= sqrt(a(_)).", ""),  # -2 beside 4 is an error
        ("p min= sqrt(a(_)).", "min="),  # which the smallest row is, if any is
        ("p max= 1 + 2 * log(a(_)).", ""),
        ("p min= 1 + 2 * log(a(_)).", "min="),
        ("p max= -sqrt(-a(_)).", "max="),
        ("p min= -log(3 - a(_)).", ""),
        ("p max= exp(sqrt(a(X)) - w(X)).", ""),
        ("p max= a(X) * sqrt(w(X)).", "max="),  # for all rows of a, or none
        ("p max= sqrt(exp(a(_))) + log(max(a0, 1)).", "max="),
        ("p max= log(max(a(_), 0.5)).", "max="),
        ("p min= sqrt(min(a(_), 3)).", "min="),
        ("p max= w(X) * a(X).", ""),
        ("p max= if a(_) > 0 then 1 else 0.", ""),
        (":- function h/1. p max= h(a(_)).", ""),
        ("p |= a(X) * w(X).", "|="),
        ("p |= a(X) + w(X).", ""),
        ("p *= a(_).", "*="),
        ("p *= 2 * a(_).", ""),
        ("p &= a(_).", "&="),
        ("p(X) = a(X) + 1.", "="),
        ("p += a(X) * a(Y).", ""),
        ("p += a(X) + 1.", ""),
        ("p += a(_). q max= a(_).", ""),
        ("p min= a(_). q :- a(_). r(X) += 1 * SIDE(a(X)). s(X) += w(X) for not a(X).", "min="),
        ("q :- a(_).", "+="),
        (":- transient t/1. t(X) min= a(X) + w(X). p min= t(_) + 1.", "min="),
        ("a(x) max= 3. p += a(_).", "max="),  # the text says how
        ("a(x) = 3. p min= a(_).", "min="),
        (":- input a/1 max=. p += a(X) ^ 2.", "max="),
        (":- input w/1, a/1 =. p min= a(X) + w(X).", "="),
    ],
)
def test_rows_join_by_the_aggregator_of_those_who_read_them(text: str, aggregator: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProgramWarning)
        found = check(parse(text), functions=None).predicates["a/1"]
    assert (found.aggregator, bool(found.unjoined)) == (aggregator or "+=", not aggregator), found.unjoined


@pytest.mark.parametrize("semiring", ["real", "tropical", "boolean"])
def test_in_a_semiring_all_rows_join_by_its_plus(semiring: str) -> None:
    found = predicate("p += a(X) * a(Y).", semiring=semiring)
    assert (found.aggregator, found.unjoined) == ("+=", "")
    assert predicate(":- input a/1 +=. p += a(_).", semiring=semiring).aggregator == "+="


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("p += a(_).\nq max= a(_).", "`p += a(_).` (line 1) and `q max= a(_).` (line 2) do not agree on how"),
        ("p += a(X) * a(Y).", "`p += a(X) * a(Y).` (line 1) reads it twice"),
        ("p += a(_).\np += a(_) ^ 2.", "`p += a(_) ^ 2.` (line 2) is not linear in it"),
        ("p log+= 2 * a(_).", "`p log+= 2 * a(_).` (line 1) is no sum with it as a term"),
        ("p min= -a(_).", "`p min= -a(_).` (line 1) may fall where it rises"),
        (
            "p max= sqrt(a(_)).",
            "`p max= sqrt(a(_)).` (line 1) may be undefined where it is small, which would be lost behind the largest "
            "of its rows",
        ),
        (
            "p min= -log(-a(_)).",
            "`p min= -log(-a(_)).` (line 1) may be undefined where it is large, which would be lost behind the "
            "smallest of its rows",
        ),
    ],
)
def test_why_rows_do_not_join(text: str, reason: str) -> None:
    assert predicate(text).unjoined == reason


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (":- output p min=. p min= a(_).", "facts are given for an input: write `:- input p/0 min=.`"),
        (":- external a/1 min=. p min= a(_).", "write `:- input a/1 min=.`"),
        (
            ":- semiring real. :- input a/1 max=. p += a(_).",
            "join by its plus, which is written `+=`, and not by `max=",
        ),
        (":- input a/1 max=. a(X) min= w(X). p min= a(_).", "aggregated with `min=` in line 1"),
        (":- input a/1 max=. a(x) min= 2. p min= a(_).", "aggregated with `min=` in line 1"),
        (":- input a/1 max=, a/1 min=. p min= a(_).", "declared twice"),
    ],
)
def test_declarations_that_cannot_be(text: str, message: str) -> None:
    with pytest.raises(Error, match="(?s)" + message.replace("(", r"\(").replace("+", r"\+")):
        checked(text)


# -- the criterion, held against its meaning on numbers ----------------------------------------------------------------

OPERATIONS: dict[str, Callable[..., float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else math.nan,
    "^": lambda a, b: a**b,
    "neg": lambda a: -a,
    "exp": math.exp,
    "abs": abs,
    "tanh": math.tanh,
    "sigmoid": lambda a: 1 / (1 + math.exp(-a)),
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "log": lambda a: math.log(a) if a > 0 else -math.inf if a == 0 else math.nan,
    "min": lambda a, b: a + b if math.isnan(a + b) else min(a, b),
    "max": lambda a, b: a + b if math.isnan(a + b) else max(a, b),
    "lse": lambda a, b: math.log(math.exp(a) + math.exp(b)),
    "if": lambda c, a, b: a if c else b,
    ">": lambda a, b: a > b,
}
JOINS: dict[str, Callable[[list[float]], float]] = {
    "+=": sum,
    "log+=": lambda x: math.log(sum(map(math.exp, x))),
    "max=": max,
    "min=": min,
    "|=": lambda x: float(any(x)),
    "*=": math.prod,
}


def drawn(rng: random.Random, leaves: list[str], depth: int) -> str:
    """A right side over some items, each of which stands there once."""
    if len(leaves) > 1:
        cut = rng.randint(1, len(leaves) - 1)
        left, right = drawn(rng, leaves[:cut], depth - 1), drawn(rng, leaves[cut:], depth - 1)
        shape = rng.choice(["({} + {})", "({} - {})", "({} * {})", "({} / {})", "min({}, {})", "max({}, {})"])
        return shape.format(left, right)
    if depth > 0:
        shape = rng.choice(
            ["{}", "2 * {}", "-{}", "abs({})", "exp({})", "tanh({})", "({} - 1)", "(3 / {})", "({} ^ 2)"]
            + ["sqrt({})", "log({})"]
        )
        inner = drawn(rng, leaves, depth - 1)
        if rng.random() < 0.2:
            return f"(if {inner} > 0 then 1 else 2)" if rng.random() < 0.2 else f"(if 2 > 1 then {inner} else 2)"
        return shape.format(inner)
    return leaves[0]


def value(node: Expression, values: list[float]) -> float:
    match node:
        case Numeral(value=number):
            return number
        case AntecedentValue(index=index):
            return values[index]
        case Application(operator=operator, operands=operands):
            return OPERATIONS[operator](*(value(o, values) for o in operands))
    raise TypeError(node)


@pytest.mark.parametrize("aggregator", JOINS)
def test_where_rows_join_joining_them_before_is_joining_what_a_rule_makes_of_them(aggregator: str) -> None:
    rng = random.Random(aggregator)
    join, joined = JOINS[aggregator], 0
    for n in range(160):
        leaves = rng.sample(["a", "v", "w"], rng.randint(1, 3))
        leaves = leaves if n % 5 else ["a"]
        rules = checked(f"p {aggregator} {drawn(rng, leaves, n % 3)}.")
        rule = next(r for r in rules.rules if r.head.key == "p/0")
        order = [a.item.predicate for a in rule.antecedents]
        if "a" not in leaves or rules.predicates["a/0"].unjoined:
            continue
        joined += 1
        at = order.index("a")
        for _ in range(10):
            values = [rng.gauss(0, 1) for _ in order]
            rows = [rng.gauss(0, 1) for _ in range(rng.randint(1, 3))]
            each = [value(rule.value, [*values[:at], row, *values[at + 1 :]]) for row in rows]
            whole = value(rule.value, [*values[:at], join(rows), *values[at + 1 :]])
            if aggregator in ("max=", "min="):  # what is undefined for a row stays an error
                assert any(map(math.isnan, each)) == math.isnan(whole), (rule.text, rows, values)
            if all(map(math.isfinite, itertools.chain(each, [whole]))):
                after = join(each)
                assert math.isclose(float(bool(whole)) if aggregator == "|=" else whole, after, rel_tol=1e-9), rule.text
    assert joined > 10
