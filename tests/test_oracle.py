"""The oracle itself: cases by hand, closed forms, and brute-force enumeration."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from typing import Any

import mpmath
import networkx
import numpy as np
import pytest

from dynagrad.rules import syntax as s
from dynagrad.rules.parse import parse
from language_cases import CASES, Case, oracle_semiring
from oracle import Conflict, Diverged, Key, Struct, Unbound, close, evaluate, ground, list_term, zero_of


def key_of(item: str) -> Key:
    """The item that some text of the rule language names."""
    head = parse(f"{item} = 1.").rules[0].head
    return head.key, tuple(v for a in head.arguments if (v := ground(a, {})) is not None)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases_worked_out_by_hand(case: Case) -> None:
    values = evaluate(
        parse(case.source), case.facts, semiring=oracle_semiring(case.semiring), functions=dict(case.functions)
    )
    wanted = {key_of(item): value for item, value in case.expected.items()}
    listed = {key for key, _ in wanted} | set(case.empty)
    derived = {item: value for item, value in values.items() if item[0] in listed}
    assert derived.keys() == wanted.keys()
    for item, value in wanted.items():
        assert close(derived[item], value), item


# -- closed forms ----------------------------------------------------------------------------------------------------


def test_catalan_cycle_to_fifty_digits() -> None:
    program = parse("a += r. a += a * a.")
    value = evaluate(program, {"r/0": [("0.125",)]}, semiring="real", digits=50)["a/0", ()]
    with mpmath.workdps(50):
        assert abs(value - (1 - mpmath.sqrt(mpmath.mpf("0.5"))) / 2) < mpmath.mpf(10) ** -45


def test_a_linear_cycle_is_the_closure_of_a_matrix() -> None:
    weights = np.random.default_rng(0).uniform(0, 0.2, (4, 4))
    facts = {"e/2": [(i, j, float(weights[i, j])) for i in range(4) for j in range(4)], "n/1": [(i,) for i in range(4)]}
    values = evaluate(parse("p(I,I) += n(I). p(I,K) += p(I,J) * e(J,K)."), facts, semiring="real")
    closure = np.linalg.inv(np.eye(4) - weights)
    for i, j in itertools.product(range(4), repeat=2):
        assert close(values["p/2", (i, j)], closure[i, j], 1e-13)


@pytest.mark.parametrize("semiring", ["log", "expectation"])
def test_the_same_cycle_in_log_and_with_expectations(semiring: str) -> None:
    rng = np.random.default_rng(1)
    weights, lengths = rng.uniform(0.05, 0.2, (3, 3)), rng.uniform(1, 2, (3, 3))
    value = {
        "log": lambda i, j: math.log(weights[i, j]),
        "expectation": lambda i, j: (weights[i, j], weights[i, j] * lengths[i, j]),
    }[semiring]
    facts = {"e/2": [(i, j, value(i, j)) for i in range(3) for j in range(3)]}
    values = evaluate(parse("p(I,J) += e(I,J). p(I,K) += p(I,J) * e(J,K)."), facts, semiring=semiring)
    closure = np.linalg.inv(np.eye(3) - weights)
    if semiring == "log":
        assert close(values["p/2", (0, 2)], math.log((closure - np.eye(3))[0, 2]), 1e-12)
    else:  # the derivative of the closure along weights * lengths
        assert close(values["p/2", (0, 2)][1], (closure @ (weights * lengths) @ closure)[0, 2], 1e-12)


@pytest.mark.parametrize("semiring", ["tropical", "viterbi", None])
def test_shortest_paths(semiring: str | None) -> None:
    rng = random.Random(2)
    arcs = [(rng.randrange(12), rng.randrange(12), float(rng.randrange(1, 9))) for _ in range(30)]
    graph = networkx.DiGraph()
    for a, b, cost in arcs:
        if not graph.has_edge(a, b) or graph[a][b]["weight"] > cost:
            graph.add_edge(a, b, weight=cost)
    sign = -1.0 if semiring == "viterbi" else 1.0
    rows = [(a, b, sign * data["weight"]) for a, b, data in graph.edges(data=True)]
    program = {None: "d(0) = 0. d(Y) min= d(X) + e(X,Y)."}.get(semiring, "d(0) = 0. d(Y) += d(X) * e(X,Y).")
    values = evaluate(parse(program), {"e/2": rows}, semiring=semiring)
    expected = networkx.single_source_dijkstra_path_length(graph, 0)
    found = {row[0]: sign * value for (key, row), value in values.items() if key == "d/1"}
    assert found == dict(expected)


# -- brute force -----------------------------------------------------------------------------------------------------

BINARY = {("s", "np", "vp"): 1.0, ("vp", "v", "np"): 0.6, ("vp", "vp", "pp"): 0.4, ("np", "np", "pp"): 0.3}
BINARY |= {("pp", "p", "np"): 1.0, ("np", "np", "np"): 0.1}
LEXICAL = {("np", "he"): 0.2, ("np", "dogs"): 0.3, ("np", "parks"): 0.1, ("v", "saw"): 1.0, ("p", "in"): 1.0}


def trees(symbol: str, words: tuple[str, ...]) -> Iterator[float]:
    """The probability of each derivation of some words, one at a time."""
    if len(words) == 1 and (symbol, words[0]) in LEXICAL:
        yield LEXICAL[symbol, words[0]]
    for (x, y, z), p in BINARY.items():
        if x == symbol:
            for cut in range(1, len(words)):
                for left in trees(y, words[:cut]):
                    for right in trees(z, words[cut:]):
                        yield p * left * right


@pytest.mark.parametrize(
    "sentence", ["he saw dogs in parks", "he saw dogs in parks in parks", "dogs dogs saw dogs dogs dogs"]
)
def test_a_small_grammar_against_all_its_trees(sentence: str) -> None:
    words = tuple(sentence.split())
    program = parse(
        "c(X,I,K) += r(X,W) * w(W,I,K). c(X,I,K) += r(X,Y,Z) * c(Y,I,J) * c(Z,J,K). goal += c(s,0,N) * end(N)."
    )
    weights = list(trees("s", words))
    assert len(weights) > 1
    number: dict[str, Any] = {"real": float, "log": math.log, "viterbi": math.log, "count": lambda p: 1}
    answer = {
        "real": sum(weights),
        "log": math.log(sum(weights)),
        "viterbi": math.log(max(weights)),
        "count": len(weights),
        "boolean": True,
    }
    for semiring, expected in answer.items():
        convert = number.get(semiring, lambda p: True)
        facts = {
            "r/2": [(*key, convert(p)) for key, p in LEXICAL.items()],
            "r/3": [(*key, convert(p)) for key, p in BINARY.items()],
            "w/3": [(word, i, i + 1) for i, word in enumerate(words)],
            "end/1": [(len(words),)],
        }
        assert close(evaluate(program, facts, semiring=semiring)["goal/0", ()], expected, 1e-13), semiring


def test_joins_against_loops_over_everything() -> None:
    rng = random.Random(3)
    rows = {name: [(rng.choice("ab"), rng.randrange(4), float(rng.randrange(3))) for _ in range(8)] for name in "ef"}
    program = parse("p(X,K) += e(X,I) * f(Y,I+1) * f(Y,K) for K > I, X != Y. q(I) += e(_,I) for not f(_,I).")
    values = evaluate(program, {"e/2": rows["e"], "f/2": rows["f"]}, semiring="real")
    total: dict[Key, float] = {}
    for (x, i, u), (y, j, v), (y2, k, w) in itertools.product(rows["e"], rows["f"], rows["f"]):
        if j == i + 1 and y == y2 and k > i and x != y:
            total["p/2", (x, k)] = total.get(("p/2", (x, k)), 0.0) + u * v * w
    for _, i, u in rows["e"]:
        if all(j != i for _, j, _ in rows["f"]):
            total["q/1", (i,)] = total.get(("q/1", (i,)), 0.0) + u
    assert {item: value for item, value in values.items() if item[0] in ("p/2", "q/1")} == total


# -- terms, and what goes wrong --------------------------------------------------------------------------------------


def test_lists_in_rows_are_list_terms() -> None:
    values = evaluate(parse("p(X) += l([X|_])."), {"l/1": [(["a", ["b"]],), ([["c"]],)]}, semiring="real")
    assert {row for key, row in values if key == "p/1"} == {("a",), (list_term(["c"]),)}
    assert list_term(["a"]) == Struct("cons", ("a", "nil"))


def test_what_does_not_settle_is_an_error() -> None:
    with pytest.raises(Diverged):
        evaluate(parse("a += 1. a += 2 * a."), semiring="count", max_rounds=50)
    with pytest.raises(Diverged):
        evaluate(parse("p(0) += 1. p(I+1) += p(I)."), semiring="real", max_items=30)


def test_two_values_under_equality_are_an_error() -> None:
    with pytest.raises(Conflict):
        evaluate(parse("p(X) = a(X,_)."), {"a/2": [("x", 1, 1.0), ("x", 2, 3.0)]})


def test_an_unbound_variable_is_an_error() -> None:
    with pytest.raises(Unbound):
        evaluate(parse("p(X) += a."), {"a/0": [(1.0,)]}, semiring="real")


def test_items_never_derived_have_the_zero_of_plus() -> None:
    program = parse("p += a. q min= a. r max= a. t *= a.")
    assert [zero_of(program, f"{name}/0") for name in "pqrt"] == [0.0, math.inf, -math.inf, 1.0]
    assert zero_of(parse("p += a."), "p/0", "log") == -math.inf
    assert isinstance(program, s.Source)


def test_infinity_is_no_place_to_settle() -> None:
    """A sum that begins at log 0 goes on from there."""
    program = parse("p(b) += q.  p(b) += p(_) * -2.  p(a) += 0.")
    assert evaluate(program, {"q/0": [(-math.inf,)]}, semiring="log")["p/1", ("b",)] == pytest.approx(
        -1.8545865421311414
    )
