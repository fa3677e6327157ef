"""Ranges of integer arguments."""

from __future__ import annotations

from dynagrad.plan.analyses.intervals import extents
from dynagrad.plan.model import DomainSummary, FactSummary, Summary
from dynagrad.rules import check, infer, parse


def ranges(source: str, key: str) -> list[tuple[int, int] | None]:
    """The range of each argument, relative to the integers from 0 to 9 that the facts hold."""
    rules = check(parse(source))
    domains = infer(rules)
    summary = Summary(
        {d.number: DomainSummary("int", 0, 9) for d in domains.domains},
        {k: FactSummary(10, (10,) * p.arity) for k, p in rules.predicates.items() if p.input},
    )
    found = extents(rules, domains, summary)
    arity = rules.predicates[key].arity
    return [None if (e := found[key, i]) is None else (e.below, e.above) for i in range(arity)]


class TestRanges:
    def test_arguments_of_facts_stay_in_the_range_of_the_facts(self) -> None:
        assert ranges("p(I,K) += a(I,K).", "p/2") == [(0, 0), (0, 0)]

    def test_an_offset_shifts_the_range(self) -> None:
        assert ranges("p(I+1,K-2) += a(I,K).", "p/2") == [(1, 1), (-2, -2)]

    def test_solving_for_a_variable_shifts_it(self) -> None:
        assert ranges("p(I) += a(I+1).", "p/1") == [(-1, -1)]

    def test_the_range_covers_all_rules(self) -> None:
        assert ranges("p(I-1) += a(I). p(I+1) += a(I).", "p/1") == [(-1, 1)]

    def test_a_step_in_recursion_that_a_fact_bounds_stays_bounded(self) -> None:
        assert ranges("p(0) += start. p(I+1) += p(I) * a(I).", "p/1") == [(0, 1)]

    def test_a_step_in_recursion_that_nothing_bounds_has_no_range(self) -> None:
        assert ranges("p(0) += start. p(I+1) += p(I).", "p/1") == [None]

    def test_a_condition_bounds_a_step(self) -> None:
        assert ranges("p(0) += start. p(I+1) += p(I) * top(N) for I < N.", "p/1") == [(0, 0)]

    def test_a_condition_on_the_other_side_bounds_nothing(self) -> None:
        assert ranges("p(0) += start. p(I+1) += p(I) * top(N) for I > N.", "p/1") == [None]

    def test_the_larger_or_smaller_of_two_lies_where_they_lie(self) -> None:
        assert ranges("p(K) += a(I) * a(J) for K = max(I+1,J).", "p/1") == [(0, 1)]
        assert ranges("p(K) += a(I) for K = min(I-2,7).", "p/1") == [(-2, 0)]
        assert ranges("p(K) += a(I) for K = abs(I).", "p/1") == [None]

    def test_products_have_no_range(self) -> None:
        assert ranges("p(I*I) += a(I).", "p/1") == [None]

    def test_a_bound_of_one_argument_says_nothing_of_another(self) -> None:
        source = "p(0,0) += start. p(I+1,K+1) += p(I,K) * a(I)."
        found = ranges(source, "p/2")
        assert found[0] is not None and found[1] is None
