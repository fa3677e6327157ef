"""Estimated numbers of items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynagrad.plan.storage.occupancy import Occupancy
from dynagrad.rules import check, parse


class TestOccupancy:
    def items(self, source: str, key: str, facts: Mapping[str, Any]) -> float:
        """The estimate, of facts whose arguments are all of integers, beside the number of items that there are."""
        rules = check(parse(source))
        values = {x for rows in facts.values() for row in rows for x in row}

        def count(fact: str, i: int, j: int) -> float:
            return float(len({(row[i], row[j]) for row in facts.get(fact, ())}))

        return Occupancy(rules, rules.rules, lambda *_: float(len(values)), count).items(key)

    def test_an_estimate_of_facts_is_their_number(self) -> None:
        rows = [(n, (7 * n) % 50) for n in range(50)]
        assert self.items("p(X,Y) += e(X,Y).", "p/2", {"e/2": rows}) == 50
        assert self.items("p(X,Y,Z) += e(X,Y) * e(Y,Z).", "p/3", {"e/2": rows}) == 50

    def test_what_shares_nothing_is_multiplied(self) -> None:
        assert self.items("p(X,Y) += a(X) * a(Y).", "p/2", {"a/1": [(n,) for n in range(40)]}) == 1600

    def test_a_join_is_estimated_over_what_two_share(self) -> None:
        """Of 60 heads, each of one of 6 kinds, and 60 places with a kind each: 10 of each kind on either side."""
        facts = {"head/2": [(n, n % 6) for n in range(60)], "tag/2": [(n, n % 6) for n in range(60)]}
        found = self.items("part(F,H) += head(F,U) * tag(H,U).", "part/2", facts)
        assert found == 60 * 60 / 6

    def test_what_several_rules_derive_is_added(self) -> None:
        facts = {"a/1": [(1,), (2,)], "b/1": [(n,) for n in range(10, 20)]}
        assert self.items("p(X) += a(X). p(X) += b(X).", "p/1", facts) == 12

    def test_what_grows_round_by_round_may_have_all_values(self) -> None:
        arcs = [(n, (n + k) % 200) for n in range(200) for k in (1, 2)]
        assert self.items("path(X,Y) += arc(X,Y). path(X,Y) += path(X,Z) * arc(Z,Y).", "path/2", {"arc/2": arcs}) == 4e4

    def test_a_rule_that_keeps_arguments_adds_none(self) -> None:
        facts = {"start/2": [(n, n) for n in range(100)], "step/1": [(n,) for n in range(100)]}
        source = "at(X,Y,0) += start(X,Y). at(X,Y,K) += at(X,Y,J) * step(K) * step(J)."
        assert self.items(source, "at/3", facts) == 100 * 100
