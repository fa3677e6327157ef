"""Storage layout: ranges of arguments, dense or hashed, and which argument is innermost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import dynagrad as dg
from dynagrad.charts.chart import run_of
from dynagrad.plan import planner
from dynagrad.plan.layout import SMALL, Occupancy, cells, dense_tables, extents, still_dense
from dynagrad.plan.model import DomainSummary, Extent, FactSummary, Scan, Summary
from dynagrad.rules import check, infer, parse
from plan.planned import planned

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

CKY = """
constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal += constit(s,0,N) * end(N).
"""
CKY_FACTS = {
    "rewrite/2": [("np", "john"), ("v", "loves"), ("np", "mary")],
    "rewrite/3": [("s", "np", "vp"), ("vp", "v", "np"), ("np", "np", "np")],
    "word/3": [("john", 0, 1), ("loves", 1, 2), ("mary", 2, 3)],
    "end/1": [(3,)],
}


def ranges(source: str, key: str, facts: Mapping[str, int] | None = None) -> list[tuple[int, int] | None]:
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


class TestCells:
    DOMAINS = (DomainSummary("atom", 0, 9), DomainSummary("int", 0, 20))

    def test_the_innermost_argument_is_padded_to_eight(self) -> None:
        assert cells(2, self.DOMAINS, [None, Extent(0, 0)], (0, 1)) == 10 * 24
        assert cells(2, self.DOMAINS, [None, Extent(0, 0)], (1, 0)) == 21 * 16

    def test_a_wider_range_needs_more(self) -> None:
        assert cells(2, self.DOMAINS, [None, Extent(-1, 3)], (0, 1)) == 10 * 32

    def test_without_a_range_there_is_no_array(self) -> None:
        assert cells(2, self.DOMAINS, [None, None], (0, 1)) is None

    def test_terms_have_no_array(self) -> None:
        assert cells(1, (DomainSummary("term"),), [None], (0,)) is None

    def test_an_item_without_arguments_is_one_cell(self) -> None:
        assert cells(0, (), [], ()) == 1


class TestStorage:
    def kind(self, source: str, facts: Mapping[str, Any], key: str) -> str:
        return planned(source, facts).tables[key].kind

    def test_small_domains_are_dense(self) -> None:
        plan = planned(CKY, CKY_FACTS)
        table = plan.tables["constit/3"]
        assert table.kind == "dense"
        assert table.cells >= 4 * 4 * len({"s", "np", "vp", "v"})
        assert plan.tables["word/3"].kind == "facts"

    def test_over_the_budget_a_table_is_hashed(self) -> None:
        large = {**CKY_FACTS, "end/1": [(100_000,)]}
        assert self.kind(CKY, large, "constit/3") == "hashed"
        assert self.kind(CKY, CKY_FACTS, "constit/3") == "dense"

    def test_the_budget_can_be_set(self) -> None:
        setting = planned(CKY, CKY_FACTS)
        small = planner.make_plan(setting.rules, setting.domains, setting.summary, planner.Options(dense_cells=50))
        assert small.tables["constit/3"].kind == "hashed"
        assert small.tables["goal/0"].kind == "dense"

    def test_terms_are_hashed(self) -> None:
        assert self.kind("p(f(X)) += a(X). q(Y) += p(Y) * p(_).", {"a/1": [("u",)]}, "p/1") == "hashed"
        assert self.kind("p([X]) += a(X).", {"a/1": [("u",)]}, "p/1") == "hashed"

    def test_what_has_no_range_is_hashed(self) -> None:
        source = "p(0) += a. p(I+1) += p(I) * a for I < 5. p(I*2) += p(I) * a for I < 5."
        assert self.kind(source, {"a/0": [()]}, "p/1") == "hashed"

    def test_an_external_predicate_is_not_stored(self) -> None:
        program = dg.Program(":- external d/2. p(I,K) += a(I) * a(K) * d(I,K).", functions={"d": lambda i, k: 1.0})
        chart = program.run({"a/1": [(1,)]})
        assert run_of(chart).prepared is not None
        assert run_of(chart).require().compiled.plan.tables["d/2"].kind == "external"
        assert chart["p(1,1)"] == 1.0


class TestStoredOrder:
    def test_the_argument_that_joins_run_over_is_innermost(self) -> None:
        # a right half is joined with all left halves that end where it begins: one row over I, and so is the head
        plan = planned(CKY, CKY_FACTS)
        assert plan.tables["constit/3"].order[-1] == 1
        [join] = [join for stage in plan.stages for join in stage.drives]
        last = join.steps[-1]
        assert isinstance(last, Scan) and last.via == "rows"
        assert join.vector == "I"

    def test_the_arguments_that_levels_are_made_of_come_first(self) -> None:
        plan = planned(CKY, CKY_FACTS)
        assert plan.tables["constit/3"].order == (2, 0, 1)

    def test_only_sums_of_products_of_numbers_run_side_by_side(self) -> None:
        for semiring, vector in (("real", "I"), ("log", "I"), ("viterbi", None), ("count", None)):
            plan = planned(f":- semiring {semiring}. {CKY}", CKY_FACTS)
            assert {join.vector for stage in plan.stages for join in stage.drives} == {vector}

    def test_facts_run_side_by_side_with_the_head(self) -> None:
        facts = {"pot/3": [(0, 0, 0), (0, 0, 1)], "start/1": [(0,)]}
        for last, vector in (
            ("pot(T,I,J)", "J"),
            ("pot(T,J,I)", "J"),
            ("pot(J,T,I)", "J"),
            ("pot(T,I,J) * start(J)", None),
        ):
            plan = planned(f":- semiring log. a(0,J) += start(J). a(T+1,J) += a(T,I) * {last}.", facts)
            assert [join.vector for stage in plan.stages for join in stage.drives] == [vector], last

    @pytest.mark.parametrize("agenda", ["auto", "fifo"])
    def test_every_argument_is_stored_once(self, agenda: str) -> None:
        for table in planned(f":- agenda {agenda}. {CKY}", CKY_FACTS).tables.values():
            assert sorted(table.order) == list(range(table.arity))


class TestWhatIsKept:
    def test_items_that_are_never_antecedents_bypass_the_agenda(self) -> None:
        plan = planned(CKY, CKY_FACTS)
        assert plan.tables["goal/0"].sink and not plan.tables["constit/3"].sink

    def test_what_a_run_stops_at_is_popped(self) -> None:
        assert not planned(f":- semiring boolean. {CKY}", CKY_FACTS, until="goal/0").tables["goal/0"].sink

    def test_items_that_are_popped_once_need_no_update_beside_the_value(self) -> None:
        plan = planned(CKY, CKY_FACTS)
        assert not plan.tables["constit/3"].updates
        assert planned(CKY + ":- agenda fifo.", CKY_FACTS).tables["constit/3"].updates

    def test_predicates_that_no_output_needs_are_left_out(self) -> None:
        plan = planned(CKY + "spare(X) += constit(X,_,_). :- output goal.", CKY_FACTS)
        assert list(plan.omitted) == ["spare/1"] and "goal" in plan.omitted["spare/1"]
        assert "spare/1" not in plan.tables and "constit/3" in plan.tables

    def test_without_an_output_nothing_is_left_out(self) -> None:
        assert planned(CKY + "spare(X) += constit(X,_,_).", CKY_FACTS).omitted == {}


class TestOccupancy:
    """Large tables are dense only where enough of their cells would be filled."""

    N = 300
    """So many places give a table of three of them 27 million cells."""

    def kinds(self, source: str, facts: Mapping[str, Any]) -> dict[str, str]:
        return {key: table.kind for key, table in planned(source, facts).tables.items()}

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

    def test_a_large_table_that_would_be_nearly_empty_is_hashed(self) -> None:
        every = [(n,) for n in range(self.N)]
        facts = {"near/2": [(n, n // 2) for n in range(self.N)], "any/1": every}
        assert self.kinds("p(X,Y,Z) += near(X,Y) * any(Z). q(X) += p(X,_,_).", facts)["p/3"] == "hashed"
        assert self.kinds("p(X,Y,Z) += any(X) * any(Y) * any(Z). q(X) += p(X,_,_).", facts)["p/3"] == "dense"
        few = {"near/2": facts["near/2"][:100], "any/1": every[:100]}  # a million cells, whatever is in them
        assert self.kinds("p(X,Y,Z) += near(X,Y) * any(Z). q(X) += p(X,_,_).", few)["p/3"] == "dense"

    def test_all_dense_tables_share_a_budget(self) -> None:
        sizes = {"a/2": 30, "b/2": 50, "c/2": 30, "d/2": None, "e/2": 1000}
        assert dense_tables(sizes, 100, lambda: None) == {"a/2", "c/2"}
        assert still_dense({"a/2": 30, "c/2": 70}, {"a/2": 30, "c/2": 30}, 100)
        assert not still_dense({"a/2": 31, "c/2": 70}, {"a/2": 30, "c/2": 30}, 100)
        assert not still_dense({"a/2": None}, {"a/2": 30}, 100)
        assert not still_dense({"a/2": SMALL + 1}, {"a/2": SMALL}, 1 << 60)
        assert still_dense({"a/2": SMALL + 2}, {"a/2": SMALL + 1}, 1 << 60)

    def test_a_plan_of_few_facts_is_not_taken_for_many_that_fill_little(self) -> None:
        program = dg.Program("p(X,Y,Z) += near(X,Y) * any(Z). goal += p(X,Y,Z) * ask(X,Y,Z).")
        for n, kind in ((20, "dense"), (self.N, "hashed")):
            facts = {"near/2": [(k, k // 2) for k in range(n)], "any/1": [(k,) for k in range(n)], "ask/3": [(5, 2, 3)]}
            chart = program.run(facts)
            assert run_of(chart).require().compiled.plan.tables["p/3"].kind == kind
            assert chart["goal"] == 1.0
