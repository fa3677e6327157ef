"""Storage layout: dense or hashed, and which argument is innermost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import dynagrad as dg
from dynagrad.charts.binding.binding import Purpose
from dynagrad.charts.chart import run_of
from dynagrad.plan import planner
from dynagrad.plan.model import DomainSummary, Extent, Scan, TableKind
from dynagrad.plan.storage.layout import SMALL, cells, dense_tables, still_dense
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
        assert table.kind == TableKind.DENSE
        assert table.cells >= 4 * 4 * len({"s", "np", "vp", "v"})
        assert plan.tables["word/3"].kind == TableKind.FACTS

    def test_over_the_budget_a_table_is_hashed(self) -> None:
        large = {**CKY_FACTS, "end/1": [(100_000,)]}
        assert self.kind(CKY, large, "constit/3") == TableKind.HASHED
        assert self.kind(CKY, CKY_FACTS, "constit/3") == TableKind.DENSE

    def test_the_budget_can_be_set(self) -> None:
        plan = planned(CKY, CKY_FACTS)
        small = planner.make_plan(plan.rules, plan.domains, plan.summary, planner.Options(dense_cells=50))
        assert small.tables["constit/3"].kind == TableKind.HASHED
        assert small.tables["goal/0"].kind == TableKind.DENSE

    def test_terms_are_hashed(self) -> None:
        assert self.kind("p(f(X)) += a(X). q(Y) += p(Y) * p(_).", {"a/1": [("u",)]}, "p/1") == TableKind.HASHED
        assert self.kind("p([X]) += a(X).", {"a/1": [("u",)]}, "p/1") == TableKind.HASHED

    def test_what_has_no_range_is_hashed(self) -> None:
        source = "p(0) += a. p(I+1) += p(I) * a for I < 5. p(I*2) += p(I) * a for I < 5."
        assert self.kind(source, {"a/0": [()]}, "p/1") == TableKind.HASHED

    def test_an_external_predicate_is_not_stored(self) -> None:
        program = dg.Program(":- external d/2. p(I,K) += a(I) * a(K) * d(I,K).", functions={"d": lambda i, k: 1.0})
        chart = program.run({"a/1": [(1,)]})
        assert run_of(chart).prepared is not None
        assert run_of(chart).require().compiled.plan.tables["d/2"].kind == TableKind.EXTERNAL
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
        assert not planned(f":- semiring boolean. {CKY}", CKY_FACTS, purpose=Purpose("goal/0")).tables["goal/0"].sink

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

    def test_a_large_table_that_would_be_nearly_empty_is_hashed(self) -> None:
        every = [(n,) for n in range(self.N)]
        facts = {"near/2": [(n, n // 2) for n in range(self.N)], "any/1": every}
        assert self.kinds("p(X,Y,Z) += near(X,Y) * any(Z). q(X) += p(X,_,_).", facts)["p/3"] == TableKind.HASHED
        assert self.kinds("p(X,Y,Z) += any(X) * any(Y) * any(Z). q(X) += p(X,_,_).", facts)["p/3"] == TableKind.DENSE
        few = {"near/2": facts["near/2"][:100], "any/1": every[:100]}  # a million cells, whatever is in them
        assert self.kinds("p(X,Y,Z) += near(X,Y) * any(Z). q(X) += p(X,_,_).", few)["p/3"] == TableKind.DENSE

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
        for n, kind in ((20, TableKind.DENSE), (self.N, TableKind.HASHED)):
            facts = {"near/2": [(k, k // 2) for k in range(n)], "any/1": [(k,) for k in range(n)], "ask/3": [(5, 2, 3)]}
            chart = program.run(facts)
            assert run_of(chart).require().compiled.plan.tables["p/3"].kind == kind
            assert chart["goal"] == 1.0
