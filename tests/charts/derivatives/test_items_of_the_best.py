"""Where plus selects, the gradient by derived items counts their uses in the winning derivation, however often an item
was popped before its value was the best.

Costs two seconds: five programs are compiled, each for many graphs.
"""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import dynagrad as dg

RULES = "reach(V) {plus} start(V). reach(V) {plus} reach(U) {times} edge(U,V). goal {plus} reach(V) {times} stop(V)."
PROGRAMS = {
    "viterbi": (":- semiring viterbi. " + RULES.format(plus="+=", times="*"), max),
    "tropical": (":- semiring tropical. " + RULES.format(plus="+=", times="*"), min),
    "first in, first out": (":- semiring viterbi. :- agenda fifo. " + RULES.format(plus="+=", times="*"), max),
    "max=": (RULES.format(plus="max=", times="+"), max),
    "not monotone": (RULES.format(plus="max=", times="+") + " reach(V) max= -(0 - reach(U) - edge(U,V)).", max),
}
NODES = "abcdef"  # and no numbers, between which plans would look for an order, so that each graph has its own
Facts = dict[str, list[tuple[Any, ...]]]


@cache
def program(name: str) -> dg.Program:
    return dg.Program(PROGRAMS[name][0])


def best(facts: Facts, better: object) -> tuple[float, list[str]]:
    """The best way from a start to a stop, and the nodes on it: all ways without a node twice are tried."""
    start, stop = ({v: w for v, w in facts[key]} for key in ("start/1", "stop/1"))
    edges = {(u, v): w for u, v, w in facts["edge/2"]}
    found = []
    for n in range(1, len(NODES) + 1):
        for way in itertools.permutations(NODES, n):
            if way[0] in start and way[-1] in stop and all(pair in edges for pair in itertools.pairwise(way)):
                weight = start[way[0]] + stop[way[-1]] + sum(edges[pair] for pair in itertools.pairwise(way))
                found.append((weight, list(way)))
    return better(found)  # type: ignore[operator]


@cache
def drawn(seed: int, better: object) -> tuple[Facts, float, list[str]]:
    """A graph, and the best way through it."""
    random = np.random.default_rng(seed)
    # potentials make weights of either sign, and no cycle a gain
    height = dict(zip(NODES, random.normal(size=len(NODES)) * 3, strict=True))
    sign = -1.0 if better is max else 1.0
    pairs = [(u, v) for u in NODES for v in NODES if u != v and random.random() < 0.5]
    facts: Facts = {
        "edge/2": [(u, v, float(sign * abs(random.normal()) + height[v] - height[u])) for u, v in pairs],
        "start/1": [(v, float(random.normal())) for v in random.permutation(list(NODES))[:3].tolist()],
        "stop/1": [(v, float(random.normal())) for v in random.permutation(list(NODES))[:2].tolist()],
    }
    return facts, *best(facts, better)


@pytest.mark.parametrize("name", PROGRAMS)
def test_uses_of_items_in_the_best_derivation(name: str) -> None:
    again = 0
    for seed in range(25):
        facts, weight, way = drawn(seed, PROGRAMS[name][1])
        chart = program(name).run(facts)
        assert chart["goal"] == pytest.approx(weight)
        gradient = chart.gradient("goal")
        uses = {v: count for v, count in gradient["reach/1"]}
        assert {v for v, count in uses.items() if count} == set(way)
        assert all(count == 1.0 for count in uses.values() if count)
        assert all(gradient.item(f"reach({v})") == uses.get(v, 0.0) for v in NODES)
        if program(name).semiring != "plain":
            assert {v: count for v, count in chart.expected_counts()["reach/1"]} == uses
            assert chart.marginal(f"reach({way[0]})") == 1.0
        again += chart.stats.pops - len(chart.table("reach/1"))
    assert again > 0 or name == "not monotone"  # or the case that this is about never came up


def test_a_run_that_was_stopped_counts_the_values_that_were_used() -> None:
    facts = {
        "start/1": [("x", 10.0), ("w", 0.0)],
        "edge/2": [("w", "x", 15.0), ("x", "z", 1.0), ("z", "w", -100.0)],
        "stop/1": [("z", 0.0)],
    }
    whole = program("viterbi").run(facts)
    assert whole["goal"] == 16.0
    assert {v: n for v, n in whole.gradient("goal")["reach/1"]} == {"w": 1.0, "x": 1.0, "z": 1.0}
    assert whole.marginal("reach(x)") == 1.0
    early = program("viterbi").run(facts, until="goal")
    assert not math.isinf(early["goal"])
    counts = {v: n for v, n in early.gradient("goal")["reach/1"]}
    on_the_way = {"x", "z"} if early["goal"] == 11.0 else {"w", "x", "z"}
    assert {v for v, n in counts.items() if n} == on_the_way
