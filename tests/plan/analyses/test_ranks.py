"""Which columns of facts may order a domain. Costs nothing: nothing is compiled."""

from __future__ import annotations

from dynagrad.plan.analyses.ranks import rank_sources
from dynagrad.rules import check, infer, parse

SPANS = """
constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
"""


def sources(source: str) -> dict[int, list[tuple[str, int, int]]]:
    rules = check(parse(source))
    return rank_sources(rules, infer(rules))


def test_arcs_that_recursion_follows() -> None:
    assert list(sources("p(Y) += p(X) * e(X,Y). p(X) += s(X).").values()) == [[("e/2", 0, 1)]]


def test_arcs_that_recursion_follows_against_their_direction() -> None:
    assert list(sources("p(X) += e(X,Y) * p(Y). p(X) += s(X).").values()) == [[("e/2", 1, 0)]]


def test_arcs_that_become_spans() -> None:
    assert ("word/3", 1, 2) in [source for found in sources(SPANS).values() for source in found]


def test_arcs_that_recursion_follows_both_ways_order_nothing() -> None:
    assert sources("p(X,Y) += p(Y,X) * e(X,Y). p(X,X) += s(X).") == {}


def test_without_recursion_nothing_needs_an_order() -> None:
    assert sources("p(Y) += q(X) * e(X,Y). q(X) += s(X).") == {}
