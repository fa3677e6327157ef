"""Decoding against all derivations, one by one: chances of what occurs in several places of one derivation, around
cycles, and in forests that are too large to multiply chances for each instance. Costs three seconds.

Random programs are decoded in `test_random_programs.py`.
"""

from __future__ import annotations

import itertools
import math
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.forests.sums import occurrences
from dynagrad.forests.sums.expectations import expected_counts
from dynagrad.forests.sums.totals import summed

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

CKY = """c(X,I,K) += r(X,W) * word(W,I,K). c(X,I,K) += r(X,Y,Z) * c(Y,I,J) * c(Z,J,K). goal += c(s,0,N) * end(N)."""
Gain = Callable[[bool, str], float]


@pytest.fixture(scope="module")
def parser() -> Any:
    return dg.Program(CKY, "real")


def grammar(generator: random.Random, length: int) -> dict[str, Any]:
    """An ambiguous grammar, whose rules a parse uses many times."""
    binary = [(x, y, z, generator.uniform(0.1, 1.0)) for x in "sa" for y in "sa" for z in "sa"]
    lexicon = [(x, w, generator.uniform(0.1, 1.0)) for x in "sa" for w in "uv"]
    words = [(generator.choice("uv"), i, i + 1) for i in range(length)]
    return {"r/3": binary, "r/2": lexicon, "word/3": words, "end/1": [(length,)]}


def instances(d: Any) -> list[tuple[Any, ...]]:
    """What a derivation uses, as often as it does: its facts, and its rules with head and items below."""
    return [(s.rule, s.item, *(d.steps[b].item for b in s.antecedents)) for s in d]


def expected(every: list[Any], gain: Gain) -> Callable[[Any], float]:
    """The expected gain of a derivation, from all of them with their weights."""
    total = math.fsum(d.weight for d in every)
    occurs: dict[Any, float] = {}
    for d in every:
        for x in set(instances(d)):
            occurs[x] = occurs.get(x, 0.0) + d.weight / total
    return lambda d: math.fsum(gain(x[0] is None, x[1]) * occurs[x] for x in instances(d))


GAINS: dict[str, Gain] = {
    "facts": lambda fact, head: float(fact),
    "rules": lambda fact, head: float(not fact),
    "all": lambda fact, head: 1.0,
    "some facts": lambda fact, head: float(fact and head.startswith("r(s")),
    "labelled spans": lambda fact, head: float(not fact and head.startswith("c(a")),
    "by name": lambda fact, head: (ord(head[2]) % 7 - 2) / 3 if fact else 0.25 * len(head),
    "less is more": lambda fact, head: -1.0 if fact else 0.5,
    "nothing": lambda fact, head: 0.0,
}


@pytest.mark.parametrize("few", [10**9, 0], ids=["each", "tokens"])
@pytest.mark.parametrize("name", GAINS)
def test_a_parse_uses_a_rule_of_the_grammar_many_times(
    parser: Any, name: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(occurrences, "FEW_PRODUCTS", few)
    monkeypatch.setattr(occurrences, "BATCH_CELLS", 200)
    gain = GAINS[name]
    for seed in range(3):
        chart = parser.run(grammar(random.Random(seed), 3))
        every = list(chart.kbest("goal"))
        of = expected(every, gain)
        for forest in (chart.forest("goal"), pickle.loads(pickle.dumps(chart.forest("goal")))):
            found = forest.decode(lambda i: gain(i.rule is None, str(i.head)))
            assert math.isclose(of(found), max(map(of, every)), rel_tol=1e-9)
    of = expected(every, GAINS["all"])
    assert math.isclose(of(chart.forest("goal").decode()), max(map(of, every)), rel_tol=1e-9)


def test_what_is_seen_to_occur_once(parser: Any) -> None:
    forest = parser.run(grammar(random.Random(1), 4)).forest("goal").packed
    walk = summed(forest)
    steps = list(occurrences._steps(forest, walk, walk.shares(), None))
    once = occurrences._occur_once(forest, steps, None)
    names = {forest.text(n): bool(o) for n, o in enumerate(once)}
    assert all(names[name] for name in names if name.startswith(("c(", "word(", "goal")))
    assert not any(names[name] for name in names if name.startswith("r("))


# b is used twice by each derivation of goal: its facts occur with a chance of 1 - (1 - p)^2, and are used 2 p times
def test_an_item_that_is_used_twice() -> None:
    program = dg.Program("goal += b * b. b += f(_). goal += g(_).", "real")
    chart = program.run({"f/1": [("x", 0.6), ("y", 0.4)], "g/1": [("z", 1.2)]})  # together 1 and 1.2
    share = 1 / 2.2
    forest = chart.forest("goal")
    for weight, takes in ((0.5, ["f(x)", "f(x)"]), (1.5, ["g(z)"])):
        gains = {"g(z)": weight, "f(x)": 1.0, "f(y)": 1.0}
        assert forest.decode(lambda i, gains=gains: gains.get(str(i.head), 0.0)).facts() == takes  # type: ignore[misc]
    assert 0.5 * 1.2 / 2.2 < 2 * 0.84 * share < 1.5 * 1.2 / 2.2


@pytest.mark.parametrize("few", [300, 0], ids=["newton", "rounds"])
def test_around_cycles(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(occurrences, "FEW", few)
    text = "p(V) += s(V). p(V) += p(U) * e(U,V). q += p(V) * p(V) * t(V). q += 0.02 * q * q. goal += q * h(_)."
    program = dg.Program(text, "real")
    arcs = [("a", "b", 0.05), ("b", "a", 0.05), ("b", "b", 0.02), ("a", "c", 0.5)]
    facts = {"s/1": [("a", 0.5), ("c", 0.2)], "e/2": arcs, "t/1": [("a", 0.1), ("c", 1.0)], "h/1": [(1, 0.6), (2, 0.4)]}
    chart = program.run(facts)
    every, left = [], chart["goal"]
    for d in itertools.islice(chart.kbest("goal"), 1000):
        every.append(d)
        left -= d.weight
    assert left < 1e-5 * chart["goal"]
    names = ("s(a)", "s(c)", "e(a,c)", "e(b,a)", "e(b,b)", "t(a)", "h(1)", "h(2)")
    total, used = math.fsum(d.weight for d in every), [set(d.facts()) for d in every]
    forest = chart.forest("goal")
    packed = forest.packed
    counts = expected_counts(packed)
    at = [n for n, i in enumerate(forest.instances) if i.rule is None and str(i.head) in names]
    found = occurrences.chances(packed, summed(packed), counts, np.array(at))
    for n, value in zip(at, found, strict=True):
        name = str(forest.instances[n].head)
        seen = math.fsum(d.weight for d, own in zip(every, used, strict=True) if name in own) / total
        assert value == pytest.approx(seen, abs=2e-5), name
        assert value <= counts[n] * (1 + 1e-12)
    # what lies outside of the cycles is chosen, and what lies in them costs
    best = forest.decode(lambda i: {"h(2)": 5.0, "h(1)": 1.0}.get(str(i.head), -0.1 if i.rule is not None else 0.0))
    assert "h(2)" in best.facts() and len(best) == 4
    with pytest.raises(dg.NotConverged, match="no best derivation"):
        forest.decode(lambda i: 1.0)


def test_all_semirings_with_weights_decode_alike() -> None:
    text = "goal += first(A) * second(A,_). goal += c. c += third(_)."
    rows = {"first/1": [("p", 0.3), ("q", 0.7)], "third/1": [(1, 0.2), (2, 0.1)]}
    rows |= {"second/2": [("p", "x", 1.0), ("q", "x", 0.4), ("q", "y", 0.35), ("q", "z", 0.25)]}
    as_costs = {k: [(*r[:-1], -math.log(r[-1])) for r in v] for k, v in rows.items()}
    for semiring in ("real", "log", "viterbi", "tropical", "count", "boolean"):
        given: Any = rows if semiring == "real" else as_costs if semiring == "tropical" else None
        if semiring in ("count", "boolean"):
            given = {k: [r[:-1] for r in v] for k, v in rows.items()}
        elif given is None:
            given = {k: [(*r[:-1], math.log(r[-1])) for r in v] for k, v in rows.items()}
        found = dg.Program(text, semiring).run(given).forest("goal").decode(lambda i: str(i.head).startswith("first("))
        assert found.facts()[0] == "first(q)", semiring
