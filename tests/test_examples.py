"""Small programs, those of the recipes among them, under every order of the agenda: all items have the values that the
oracle gives them.

Costs twelve seconds where programs are compiled for the first time, and five where they are not.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import dynagrad as dg
import examples
from dynagrad.rules.parse import parse
from oracle import Key, Real, Struct, Value, close, declared_semiring, evaluate, ground, zero_of
from random_programs import Program, combined

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

SLOW_FOR_THE_ORACLE = {"nussinov"}
JUDGED = [name for name in examples.NAMES if name not in SLOW_FOR_THE_ORACLE]


def key_of(item: str) -> Key:
    """The item that some text of the rule language names."""
    head = parse(f"{item} = 1.").rules[0].head
    return head.key, tuple(v for a in head.arguments if (v := ground(a, {})) is not None)


def argument(value: Value) -> Any:
    """An argument of the oracle as charts take it."""
    if isinstance(value, Real):
        return value.value
    if not isinstance(value, Struct):
        return [] if value == "nil" else value
    if value.functor == "cons":
        first, rest = value.arguments
        return [argument(first), *argument(rest)]
    return dg.Term(value.functor, *map(argument, value.arguments))


@cache
def judged(name: str) -> dict[Key, float]:
    """All items, facts among them, as the oracle has them."""
    return {key: float(value) for key, value in evaluate(parse(examples.source(name)), examples.facts(name)).items()}


def test_every_recipe_is_among_them() -> None:
    folder = Path(__file__).parent.parent / "docs" / "recipes"
    assert {path.stem for path in folder.glob("*.py")} - {"build"} == set(examples.RECIPES)


# -- the engine --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", examples.HERE)
def test_the_listed_values(name: str) -> None:
    chart = dg.Program(examples.source(name)).run(examples.facts(name))
    assert chart.converged
    for item, value in examples.expected(name):
        assert close(chart[item], value), item


SEMIRING = {name: declared_semiring(parse(examples.source(name))) for name in examples.NAMES}


@pytest.mark.parametrize("agenda", ["auto", "priority", "fifo", "lifo"])
@pytest.mark.parametrize("semiring", sorted(set(SEMIRING.values()), key=str), ids=str)
def test_all_items_have_the_values_of_the_oracle_in_every_order(semiring: str | None, agenda: str) -> None:
    """The programs of one semiring share one source, each with names of its own: that compiles once."""
    names = [name for name in JUDGED if SEMIRING[name] == semiring]
    together = combined([Program(_without_semiring(examples.source(name)), examples.facts(name)) for name in names])
    declared = f":- semiring {semiring}.\n" if semiring else ""
    chart = dg.Program(f"{declared}:- agenda {agenda}.\n{together.source}").run(together.facts)
    assert chart.converged
    for number, name in enumerate(names):
        for (key, row), value in judged(name).items():
            predicate = key.rpartition("/")[0]
            found = chart[(f"p{number}_{predicate}", *map(argument, row))]
            assert close(found, value, 1e-9), f"{name}: {predicate}{row}"
    assert len(chart) == sum(len(judged(name)) for name in names), "as many items are derived"


def _without_semiring(source: str) -> str:
    return "\n".join(line for line in source.splitlines() if not line.startswith(":- semiring"))


def test_a_program_runs_from_its_file(tmp_path: Path) -> None:
    chart = dg.Program(examples.write("lattice", tmp_path)).run(examples.facts("lattice"))
    assert all(close(chart[item], value) for item, value in examples.expected("lattice"))


def test_all_sentences_of_the_grammar_parse() -> None:
    facts = examples.facts("cky")
    grammar = {key: facts[key] for key in ("rewrite/2", "rewrite/3")}
    bound = dg.Program(examples.source("cky")).bind(grammar)
    for sentence, probability in examples.SENTENCES.items():
        words = sentence.split()
        chart = bound.run({"word/3": [(w, i, i + 1) for i, w in enumerate(words)], "end/1": [(len(words),)]})
        assert close(chart["goal"] / probability, 1.0), sentence


def test_a_long_sentence_stays_in_range() -> None:
    """Against the forward-backward algorithm with weights that are brought near one at each word."""
    rng = np.random.default_rng(0)
    tags, vocabulary = ["t0", "t1", "t2", "t3"], [f"w{n}" for n in range(12)]
    emit = {(t, w): x for (t, w), x in zip(itertools.product(tags, vocabulary), rng.normal(2, 1, 48), strict=True)}
    move = {
        (s, t): x for (s, t), x in zip(itertools.product(["start", *tags], tags), rng.normal(0, 1, 20), strict=True)
    }
    words = [vocabulary[i] for i in rng.integers(len(vocabulary), size=400)]
    gold = [tags[i] for i in rng.integers(len(tags), size=400)]
    weigh = np.exp([[move[s, t] for t in tags] for s in tags])
    suits = np.exp([[emit[t, w] for t in tags] for w in words])
    forward, logz = [], 0.0
    at = np.exp([move["start", t] for t in tags]) * suits[0]
    for n in range(400):
        at = at if n == 0 else (at @ weigh) * suits[n]
        logz += math.log(at.sum())
        at = at / at.sum()
        forward.append(at)
    backward = [np.ones(len(tags))]
    for n in range(399, 0, -1):
        after = weigh @ (suits[n] * backward[0])
        backward.insert(0, after / after.sum())
    wanted = {key: dict.fromkeys(rows, 0.0) for key, rows in (("emit/2", emit), ("move/2", move))}
    score = 0.0
    for n, (word, tag) in enumerate(zip(words, gold, strict=True)):
        here = forward[n] * backward[n]
        for t, p in zip(tags, here / here.sum(), strict=True):
            wanted["emit/2"][t, word] += p
            if n == 0:
                wanted["move/2"]["start", t] += p
        before = "start" if n == 0 else gold[n - 1]
        wanted["emit/2"][tag, word] -= 1.0
        wanted["move/2"][before, tag] -= 1.0
        score += emit[tag, word] + move[before, tag]
        if n:
            pairs = forward[n - 1][:, None] * weigh * (suits[n] * backward[n])
            for (i, s), (j, t) in itertools.product(enumerate(tags), repeat=2):
                wanted["move/2"][s, t] += pairs[i, j] / pairs.sum()
    tagger = dg.Program(examples.source("crf_recipe")).bind({"emit/2": emit, "move/2": move})
    sentence = {"feature/2": list(enumerate(words, 1)), "tag/2": list(enumerate(gold, 1)), "length/1": [(400,)]}
    chart = tagger.run(sentence)
    assert logz > 800 and close(chart["logz"], logz, 1e-12) and close(-chart["goal"], logz - score, 1e-10)
    batch = tagger.run_batch([sentence], query="goal", gradient=list(wanted))
    for key, rows in wanted.items():
        for table in (chart.gradient("goal")[key], batch.gradient[key]):
            for row, derivative in rows.items():
                assert abs(table[row] + derivative) < 1e-9, (key, row)


# -- the listed values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in examples.HERE if name not in SLOW_FOR_THE_ORACLE])
def test_the_oracle_agrees_with_the_listed_values(name: str) -> None:
    program = parse(examples.source(name))
    for item, value in examples.expected(name):
        key = key_of(item)
        mine = judged(name).get(key, float(zero_of(program, key[0])))
        assert mine == value or close(mine / value, 1.0, 1e-12), item


def test_nussinov_by_hand() -> None:
    bases = "".join(row[1] for row in sorted(examples.facts("nussinov")["base/2"]))
    bonds = {"au", "ua", "cg", "gc", "gu", "ug"}
    n = len(bases)
    most = [[0] * (n + 1) for _ in range(n + 1)]
    for i, k in sorted(itertools.combinations(range(n + 1), 2), key=lambda span: span[1] - span[0]):
        paired = [most[i][j] + 1 + most[j + 1][k - 1] for j in range(i, k - 4) if bases[j] + bases[k - 1] in bonds]
        most[i][k] = max([most[i][k - 1], *paired])
    chart = dg.Program(examples.source("nussinov")).run(examples.facts("nussinov"))
    assert all(value == most[i][k] for i, k, value in chart.table("fold/2"))
    assert dict(examples.expected("nussinov"))["goal"] == most[0][n] == 28


def test_components_by_networkx() -> None:
    facts = examples.facts("components")
    graph = networkx.Graph(row[:2] for row in facts["edge/2"])
    number = dict(facts["number/1"])
    graph.add_nodes_from(number)
    components = list(networkx.connected_components(graph))
    chart = dg.Program(examples.source("components")).run(facts)
    assert chart["components"] == len(components)
    assert dict(chart.table("label/1")) == {x: min(number[y] for y in c) for c in components for x in c}
