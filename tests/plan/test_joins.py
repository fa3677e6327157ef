"""Join planning: order by estimated cost, early filters, and indexes."""

from __future__ import annotations

from typing import Any

import pytest

from dynagrad.errors import ProgramError
from dynagrad.plan.joins import JoinPlanner, scan_pattern, solve
from dynagrad.plan.model import Absent, DomainSummary, FactSummary, Filter, Lookup, Scan, Solve, Step, Summary, Unfold
from dynagrad.rules import check, infer, parse
from dynagrad.rules.show import show
from dynagrad.rules.syntax import Equation, Variable
from plan.planned import columns, indexes_of, joins_of, planned, scanned

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")


def joined(source: str, driver: int | None = None, size: int = 100, **rows: tuple[int, ...]) -> list[Step]:
    """The steps of a program's first rule. `rows` has per predicate its number of rows, then of values per column."""
    rules = check(parse(source))
    domains = infer(rules)
    facts = {}
    for key, p in rules.predicates.items():
        if p.input:
            count, *distinct = rows.get(p.name, (size,))
            facts[key] = FactSummary(count, tuple(distinct or (count,) * p.arity))
    summary = Summary({d.number: DomainSummary("int", 0, size - 1) for d in domains.domains}, facts)
    return list(JoinPlanner(rules, domains, summary).plan(rules.rules[0], driver)[0])


def order(steps: list[Step]) -> list[int]:
    return [step.antecedent for step in steps if isinstance(step, Scan | Lookup)]


class TestOrder:
    def test_the_smaller_relation_comes_first(self) -> None:
        source = "p(X,Z) += a(X,Y) * b(Y,Z)."
        assert order(joined(source, a=(1000, 10, 100), b=(5, 5, 5))) == [1, 0]
        assert order(joined(source, a=(5, 5, 5), b=(1000, 100, 10))) == [0, 1]

    def test_what_is_bound_selects(self) -> None:
        # from d(X): a has 10 rows for an X and b 1000 for a Z, so a comes first though it is larger
        source = "p += d(X) * b(Z) * a(X,Z). d(X) += s(X). s(X) += d(X)."
        assert order(joined(source, driver=0, a=(10_000, 1000, 100), b=(1000, 1000)))[0] == 2

    def test_a_cross_product_is_put_off(self) -> None:
        source = "p += a(X,Y) * b(Z,W) * c(Y,Z)."
        assert order(joined(source, a=(10, 10, 10), b=(10, 10, 10), c=(10, 10, 10)))[:2] in (
            [0, 2],
            [1, 2],
            [2, 0],
            [2, 1],
        )

    def test_the_driver_is_not_joined_again(self) -> None:
        assert order(joined("p(X) += a(X,Y) * b(Y).", driver=0)) == [1]

    def test_one_item_that_is_fully_known_is_looked_up(self) -> None:
        steps = joined("p(X) += a(X,Y) * b(Y) * c(X,Y).", driver=0)
        assert [type(step) for step in steps] == [Lookup, Lookup]

    def test_many_antecedents_are_put_in_order_too(self) -> None:
        chain = " * ".join(f"a{i}(X{i},X{i + 1})" for i in range(12))
        steps = joined(f"p(X0,X12) += {chain}.", driver=5, size=1000)
        seen = {5}
        for step in order(steps):  # each is next to one that was joined already
            assert {step - 1, step + 1} & seen
            seen.add(step)


class TestSteps:
    def test_a_comparison_is_made_as_soon_as_its_variables_are_known(self) -> None:
        steps = joined("p(X) += a(X) * b(Y) * c(Z) for X < Y.", c=(1000, 1000))
        place = next(i for i, step in enumerate(steps) if isinstance(step, Filter))
        assert [step.antecedent for step in steps[:place] if isinstance(step, Scan)] in ([0, 1], [1, 0])
        assert isinstance(steps[-1], Scan) and steps[-1].antecedent == 2

    def test_an_equation_binds_and_saves_a_scan(self) -> None:
        steps = joined("p(X) += a(X) * b(Y) for Y = X+1.")
        assert [type(step) for step in steps] == [Scan, Solve, Lookup]

    def test_an_equation_with_both_sides_known_is_a_test(self) -> None:
        assert isinstance(joined("p += a(X,Y) for Y = X+1.")[-1], Filter)

    def test_a_negation_waits_for_its_variables(self) -> None:
        steps = joined("p(X) += a(X) * b(Y) for not c(X,Y).")
        assert isinstance(steps[-1], Absent)

    def test_an_external_item_is_asked_for_when_its_arguments_are_known(self) -> None:
        steps = joined(":- external d/2. p(X) += d(X,Y) * a(X) * b(Y).")
        assert [type(step) for step in steps] == [Scan, Scan, Lookup]
        assert order(steps)[-1] == 0

    def test_a_term_is_taken_apart(self) -> None:
        steps = joined("p(X) += a(T) for f(X,b) = T.")
        assert isinstance(steps[0], Scan) and any(isinstance(step, Unfold) for step in steps)

    def test_a_variable_that_nothing_binds_is_an_error(self) -> None:
        with pytest.raises(ProgramError):
            joined(":- external d/2. p(X) += d(X,_Y) * a(X).")


class TestEquations:
    def solution(self, text: str, bound: set[str]) -> Any:
        rule = check(parse(f"p += a(X,Y,Z) for {text}.")).rules[0]
        equation = next(c for c in rule.conditions if isinstance(c, Equation))
        return solve(equation, bound)

    @pytest.mark.parametrize(
        "text, unknown, says",
        [
            ("Z = X+Y", "Z", "X+Y"),
            ("X+2 = Y", "X", "Y-2"),
            ("2+X = Y", "X", "Y-2"),
            ("X-2 = Y", "X", "Y+2"),
            ("2-X = Y", "X", "2-Y"),
            ("Y = X*3", "X", "Y//3"),
            ("Y = -X", "X", "-Y"),
            ("Y = 2*(X+1)", "X", "Y//2-1"),
        ],
    )
    def test_the_one_unknown_is_isolated(self, text: str, unknown: str, says: str) -> None:
        found = self.solution(text, {"X", "Y", "Z"} - {unknown})
        assert isinstance(found, Solve) and found.variable == unknown
        assert show(found.term).replace(" ", "") == says

    def test_two_unknowns_wait(self) -> None:
        assert self.solution("X+Y = Z", {"Z"}) is None

    def test_what_may_have_several_solutions_is_not_solved(self) -> None:
        assert self.solution("X*X = Y", {"Y"}) is None
        assert self.solution("X mod 3 = Y", {"Y"}) is None

    def test_division_has_to_come_out_even(self) -> None:
        found = self.solution("Y = X*3", {"Y"})
        assert found.exact is not None


class TestIndexes:
    CKY = """
    constit(X,I,K) += rewrite(X,W) * word(W,I,K).
    constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
    goal += constit(s,0,N) * end(N).
    """
    FACTS = {  # noqa: RUF012
        "rewrite/2": [("np", "john"), ("v", "loves"), ("np", "mary")],
        "rewrite/3": [("s", "np", "vp"), ("vp", "v", "np"), ("np", "np", "np")],
        "word/3": [("john", 0, 1), ("loves", 1, 2), ("mary", 2, 3)],
        "end/1": [(3,)],
    }

    def test_a_join_scans_the_grammar_from_a_constituent(self) -> None:
        plan = planned(self.CKY, self.FACTS, bound=("rewrite/2", "rewrite/3"))
        [join] = [j for d, j in joins_of(plan, 2).items() if d is not None]
        assert scanned(join)[0] == "rewrite/3"
        [index] = indexes_of(plan, "rewrite/3")
        assert columns(index) in ((1,), (2,))

    def test_a_row_of_a_dense_table_needs_no_index(self) -> None:
        plan = planned(self.CKY, self.FACTS, bound=("rewrite/2", "rewrite/3"))
        [join] = [j for d, j in joins_of(plan, 2).items() if d is not None]
        vias = {join.rule.antecedents[s.antecedent].item.key: s.via for s in join.steps if isinstance(s, Scan)}
        assert (vias["constit/3"] == "rows") == (not indexes_of(plan, "constit/3"))

    def test_lookups_need_no_index(self) -> None:
        source = "p(X) += a(X). q(X) += p(X) * b(X)."
        plan = planned(source, {"a/1": [("x",)], "b/1": [("x",)]})
        assert plan.indexes == ()

    def test_a_scan_of_everything_needs_no_index(self) -> None:
        plan = planned("p(X,Y) += a(X) * b(Y).", {"a/1": [("x",)], "b/1": [("y",)]})
        assert plan.indexes == ()

    def test_scans_that_ask_the_same_share_an_index(self) -> None:
        source = "p(X) += p(Y) * e(Y,X). p(X) += s(X). q(Z) += p(Y) * e(Y,Z) * s(Z). r(X) += s(Y) * e(Y,X)."
        arcs = [("a", "b"), ("b", "a"), ("b", "c")] * 5
        plan = planned(source, {"e/2": arcs, "s/1": [("a",)]}, bound=("e/2", "s/1"))
        assert {columns(index) for index in indexes_of(plan, "e/2")} <= {(0,), (1,)}
        assert len(indexes_of(plan, "e/2")) == len({columns(index) for index in indexes_of(plan, "e/2")})

    def test_a_constant_is_a_known_argument(self) -> None:
        source = "p(X) += e(a,X). q(X) += e(b,X)."
        plan = planned(source, {"e/2": [("a", "b"), ("b", "a")]})
        assert [columns(index) for index in indexes_of(plan, "e/2")] == [(0,)]

    def test_a_negation_with_a_free_argument_needs_one(self) -> None:
        plan = planned("p(X) += n(X) for not e(X,_).", {"n/1": [("a",)], "e/2": [("a", "b")]})
        assert [columns(index) for index in indexes_of(plan, "e/2")] == [(0,)]

    def test_a_pattern_inside_a_term_is_part_of_the_index(self) -> None:
        plan = planned("p(X) += t(f(X,Y)) * s(Y).", {"t/1": [("u",)], "s/1": [("y",)] * 1})
        assert all(index.key in ("t/1", "s/1") for index in plan.indexes)


class TestPatterns:
    def item(self, text: str) -> Any:
        return check(parse(f"q += {text}.")).rules[0].antecedents[0].item

    def test_known_variables_are_keys(self) -> None:
        pattern, by, keys = scan_pattern(self.item("p(X,Y)"), frozenset({"X"}))
        assert len(pattern) == 2 and len(set(pattern)) == 2
        assert keys == (Variable("X"),) and by == (getattr(pattern[0], "name", None),)

    def test_constants_are_keys_too(self) -> None:
        _, by, keys = scan_pattern(self.item("p(a,Y)"), frozenset())
        assert len(by) == 1 and show(keys[0]) == "a"

    def test_a_repeated_variable_is_repeated_in_the_pattern(self) -> None:
        pattern, by, _ = scan_pattern(self.item("p(X,X)"), frozenset())
        assert pattern[0] == pattern[1] and by == ()

    def test_names_do_not_matter(self) -> None:
        assert (
            scan_pattern(self.item("p(X,Y)"), frozenset({"X"}))[:2]
            == scan_pattern(self.item("p(A,B)"), frozenset({"A"}))[:2]
        )
