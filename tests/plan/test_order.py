"""The order of processing: which strategy a plan has, and that items are popped once where it says so.

Costs twenty seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

import dynagrad as dg
import examples
from dynagrad.charts.binding.binding import Purpose
from dynagrad.charts.chart import run_of
from dynagrad.plan.model import DomainSummary, FactSummary, Plan, Strategy, Summary
from dynagrad.plan.order import (
    NO_BOUND,
    DifferenceBounds,
    Edge,
    Levels,
    derive_gaps,
    find_levels,
    is_ordered,
    ordered_pairs,
    precedes,
)
from dynagrad.plan.traits import is_derived
from dynagrad.rules import check, infer, parse
from oracle import close, evaluate
from plan.planned import forms_of, planned, stage_of

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

CKY = """
constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal += constit(s,0,N) * end(N).
"""
GRAMMAR = {  # np is inside np, so the symbols have no order of their own
    "rewrite/2": [("np", "john", 0.5), ("v", "loves", 1.0), ("np", "mary", 0.25)],
    "rewrite/3": [("s", "np", "vp", 1.0), ("vp", "v", "np", 1.0), ("np", "np", "np", 0.25)],
}
SENTENCE = {"word/3": [("john", 0, 1, 1.0), ("loves", 1, 2, 1.0), ("mary", 2, 3, 1.0)], "end/1": [(3,)]}
HMM = """
forward(1,S) += initial(S) * emission(S,O) * observation(1,O).
forward(I+1,T) += forward(I,S) * transition(S,T) * emission(T,O) * observation(I+1,O).
"""


# -- gaps: lower bounds on differences of arguments --------------------------------------------------------------------


def made(source: str, gaps: Mapping[str, Any] | None = None) -> Any:
    """Rules, domains and a summary in which all arguments are integers from 0 to 9 and all inputs have facts."""
    rules = check(parse(source))
    domains = infer(rules)
    summary = Summary(
        {d.number: DomainSummary("int", 0, 9) for d in domains.domains},
        {
            key: FactSummary(10, (10,) * p.arity, (gaps or {}).get(key, {}))
            for key, p in rules.predicates.items()
            if p.input
        },
    )
    return rules, domains, summary


def gaps_of(source: str, **facts: Mapping[tuple[int, int], int]) -> Mapping[str, Any]:
    by_name = made(source)
    keys = {key.rsplit("/", 1)[0]: key for key in by_name[0].predicates}
    return derive_gaps(*made(source, gaps={keys[name]: found for name, found in facts.items()}))


class TestGaps:
    def test_a_rule_hands_on_the_gaps_of_facts(self) -> None:
        assert gaps_of("p(I,K) += a(I,K). q += p(I,I).", a={(0, 1): 1, (1, 0): -5})["p/2"] == {(0, 1): 1, (1, 0): -5}

    def test_gaps_add_up_along_a_chain(self) -> None:
        assert gaps_of("p(I,K) += a(I,J) * a(J,K).", a={(0, 1): 1})["p/2"] == {(0, 1): 2}

    def test_the_smallest_of_all_rules_counts(self) -> None:
        source = "p(I,K) += a(I,K). p(I,K) += a(I,J) * a(J,K). p(I,K) += b(I,K)."
        assert gaps_of(source, a={(0, 1): 2}, b={(0, 1): 1})["p/2"] == {(0, 1): 1}

    def test_recursion_keeps_what_no_round_lowers(self) -> None:
        assert gaps_of("p(I,K) += a(I,K). p(I,K) += p(I,J) * p(J,K).", a={(0, 1): 1})["p/2"] == {(0, 1): 1}

    def test_what_keeps_falling_has_no_bound(self) -> None:
        assert gaps_of("p(I,K) += a(I,K). p(I+1,K) += p(I,K) * b(K).", a={(0, 1): 1})["p/2"] == {}

    def test_conditions_are_bounds(self) -> None:
        assert gaps_of("p(I,K) += a(I) * a(K) for I < K.")["p/2"] == {(0, 1): 1}
        assert gaps_of("p(I,K) += a(I) * a(K) for I =< K.")["p/2"] == {(0, 1): 0}
        assert gaps_of("p(I,K) += a(I) * a(K) for K > I.")["p/2"] == {(0, 1): 1}
        assert gaps_of("p(I,K) += a(I) * a(K) for K >= I.")["p/2"] == {(0, 1): 0}
        assert gaps_of("p(I,K) += a(I) * a(K) for I == K.")["p/2"] == {(0, 1): 0, (1, 0): 0}
        assert gaps_of("p(I,K) += a(I) * a(K) for I != K.")["p/2"] == {}

    @pytest.mark.parametrize("condition", ["K > I+3", "I < K-3", "3+I < K", "K-1 >= I+3", "I+4 == K"])
    def test_conditions_with_an_offset_are_bounds(self, condition: str) -> None:
        assert gaps_of(f"p(I,K) += a(I) * a(K) for {condition}.")["p/2"][0, 1] == 4

    def test_equations_tie_variables_at_a_distance(self) -> None:
        assert gaps_of("p(I,I+3) += a(I).")["p/2"] == {(0, 1): 3, (1, 0): -3}
        assert gaps_of("p(I,K) += a(I) for K = I-2.")["p/2"] == {(0, 1): -2, (1, 0): 2}
        assert gaps_of("p(I,L) += a(I,K) for L = K+1. q += a(I,I).", a={(0, 1): 1})["p/2"] == {(0, 1): 2}

    def test_a_predicate_that_nothing_reaches_has_none_at_all(self) -> None:
        assert gaps_of("p(X) += p(X) * a(X).")["p/1"] is None

    def test_only_arguments_of_one_domain_are_compared(self) -> None:
        _, domains, summary = made("p(I,S) += a(I) * b(S).")
        assert ordered_pairs(domains, summary, "p/2", 2) == []

    def test_symbols_are_ordered_only_where_facts_rank_them(self) -> None:
        _, domains, summary = made("p(Y) += p(X) * e(X,Y). p(X) += s(X).")
        number = domains.of["p/1", 0]
        for ranked in (True, False):
            ranks = Summary({**summary.domains, number: DomainSummary("atom", 0, 9, ranked)}, summary.facts)
            assert is_ordered(domains, ranks, "p/1", 0) is ranked


# -- bounds inside a rule ----------------------------------------------------------------------------------------------


class TestBounds:
    def test_sums_of_differences_are_matched_in_the_best_way(self) -> None:
        source = "p(I,K,J,L) += p(I,M,J,N) * p(M,K,N,L)."
        rules, domains, summary = made(source + " p(I,K,J,L) += a(I,K,J,L).")
        gaps = {"p/4": {(0, 1): 1, (2, 3): 1}}
        rule = rules.rules[0]
        bounds = DifferenceBounds(rule, gaps, domains, summary)
        head, first = rule.head.arguments, rule.antecedents[0].item.arguments
        width = [(head[1], 1), (head[0], -1), (head[3], 1), (head[2], -1)]
        shorter = [(first[1], -1), (first[0], 1), (first[3], -1), (first[2], 1)]
        assert bounds.least(width) == 4
        assert bounds.least([*width, *shorter]) == 2

    def test_where_nothing_is_known_there_is_no_bound(self) -> None:
        rules, domains, summary = made("p(I,K) += a(I,K).")
        rule = rules.rules[0]
        bounds = DifferenceBounds(rule, {"a/2": {}}, domains, summary)
        assert bounds.gap(*rule.head.arguments) == NO_BOUND
        assert bounds.least([(rule.head.arguments[0], 1), (rule.head.arguments[1], -1)]) == NO_BOUND

    def test_another_antecedent_that_ends_before_the_driver_precedes_it(self) -> None:
        plan = planned(CKY, {**GRAMMAR, **SENTENCE})
        rule = plan.rules.rules[1]
        bounds = DifferenceBounds(rule, {"constit/3": {(1, 2): 1}}, plan.domains, plan.summary)
        forms = stage_of(plan, "constit/3").forms
        assert precedes(rule, 1, 2, forms, bounds)
        assert not precedes(rule, 2, 1, forms, bounds)


# -- levels ------------------------------------------------------------------------------------------------------------


def levels_of(source: str, keys: tuple[str, ...], **facts: Mapping[tuple[int, int], int]) -> Levels | None:
    rules, domains, summary = made(source)
    names = {key.rsplit("/", 1)[0]: key for key in rules.predicates}
    rules, domains, summary = made(source, gaps={names[name]: found for name, found in facts.items()})
    edges = [
        Edge(rule, i)
        for rule in rules.rules
        if rule.head.key in keys
        for i, antecedent in enumerate(rule.antecedents)
        if antecedent.item.key in keys
    ]
    return find_levels(keys, edges, rules, domains, summary, derive_gaps(rules, domains, summary))


class TestLevels:
    def test_a_span_of_two_shorter_ones(self) -> None:
        source = "c(I,K) += a(I,K). c(I,K) += c(I,J) * c(J,K)."
        found = levels_of(source, ("c/2",), a={(0, 1): 1})
        assert found is not None and found.final
        # of two neighbours the right one comes later in the order found, so that the left one never drives
        assert found.idle == {(2, 0)}

    def test_spans_that_may_be_empty_show_no_order(self) -> None:
        source = "c(I,K) += a(I,K). c(I,K) += c(I,J) * c(J,K)."
        found = levels_of(source, ("c/2",), a={(0, 1): 0})
        assert found is None or not found.final

    def test_an_order_of_several_predicates_together(self) -> None:
        source = "p(I+1) += q(I) * a(I). q(I) += p(I) * a(I). p(I) += a(I)."
        found = levels_of(source, ("p/1", "q/1"))
        assert found is not None and found.final  # q(I) comes from p(I): where positions are equal, predicates decide
        assert found.forms[-1].constant == {"p/1": 0, "q/1": 1}

    def test_where_each_predicate_moves_on(self) -> None:
        source = "p(I+1) += q(I) * a(I). q(I+1) += p(I) * a(I). p(I) += a(I)."
        found = levels_of(source, ("p/1", "q/1"))
        assert found is not None and found.final and found.idle == frozenset()

    def test_positions_that_go_down(self) -> None:
        found = levels_of("p(I-1) += p(I) * a(I). p(I) += a(I).", ("p/1",))
        assert found is not None and found.final
        assert [dict(form.coefficients["p/1"]) for form in found.forms] == [{0: -1}]

    def test_two_forms_where_one_alone_may_stand_still(self) -> None:
        source = "p(I,K) += a(I,K). p(I+1,K) += p(I,K) * b(I). p(J,K+1) += p(I,K) * a(I,J)."
        found = levels_of(source, ("p/2",))
        assert found is not None and found.final
        assert [dict(form.coefficients["p/2"]) for form in found.forms] == [{1: 1}, {0: 1}]

    def test_an_argument_that_stays_shows_no_order(self) -> None:
        assert levels_of("p(Y) += p(X) * e(X,Y). p(X) += a(X).", ("p/1",)) is None


# -- the strategy of a stage -------------------------------------------------------------------------------------------


def example(name: str) -> Plan:
    return planned(examples.source(name), examples.facts(name))


class TestStrategies:
    @pytest.mark.parametrize(
        "name, key",
        [
            ("cky", "constit/3"),
            ("ctc_recipe", "path/2"),
            ("edit_distance_recipe", "pair/2"),
            ("eisner_recipe", "right/2"),
            ("gotoh_recipe", "aligned/2"),
            ("hmm_recipe", "forward/2"),
            ("hsmm_recipe", "stay/3"),
            ("lattice", "constit/3"),
            ("nussinov", "fold/2"),
            ("rna_recipe", "closed/2"),
        ],
    )
    def test_items_become_final_level_by_level(self, name: str, key: str) -> None:
        stage = stage_of(example(name), key)
        assert (stage.strategy, stage.final) == (Strategy.LEVELS, True)
        assert "each is popped once" in stage.reason and all(form.name in stage.reason for form in stage.forms)

    def test_a_constituent_comes_after_those_inside_it(self) -> None:
        forms = forms_of(planned(CKY, {**GRAMMAR, **SENTENCE}), "constit/3")

        def level(i: int, k: int) -> list[int]:
            return [sum(c * (0, i, k)[place] for place, c in form.items()) for form in forms]

        spans = [(i, k) for i in range(6) for k in range(i + 1, 6)]
        for i, k in spans:
            for j in range(i + 1, k):
                assert level(i, k) > level(i, j) and level(i, k) > level(j, k)

    def test_of_two_neighbours_one_never_drives(self) -> None:
        stage = stage_of(planned(CKY, {**GRAMMAR, **SENTENCE}), "constit/3")
        assert len(stage.drives) == 1

    def test_an_hmm_goes_by_position(self) -> None:
        assert forms_of(example("hmm_recipe"), "forward/2") == [{0: 1}]

    def test_edit_distance_goes_by_the_sum_of_positions(self) -> None:
        assert forms_of(example("edit_distance_recipe"), "pair/2") == [{0: 1, 1: 1}]

    def test_a_lattice_of_named_states_goes_by_a_topological_numbering(self) -> None:
        arcs = [("john", "begin", "x"), ("loves", "x", "a"), ("mary", "a", "end"), ("john", "x", "end")]
        source = CKY.replace("constit(s,0,N)", "constit(s,begin,N)")
        plan = planned(source, {**GRAMMAR, "word/3": arcs, "end/1": [("end",)]})
        states = plan.summary.domains[plan.domains.of["constit/3", 1]]
        assert (states.kind, states.ranked) == ("atom", True)
        assert (stage_of(plan, "constit/3").strategy, stage_of(plan, "constit/3").final) == (Strategy.LEVELS, True)

    def test_both_sides_of_a_bitext_grow(self) -> None:
        source = """
        span(I,K,J,L) += pair(I,K,J,L).
        span(I,K,J,L) += span(I,M,J,N) * span(M,K,N,L).
        span(I,K,J,L) += span(I,M,N,L) * span(M,K,J,N).
        goal += span(0,M,0,N) * end(M,N).
        """
        plan = planned(
            source, {"pair/4": [(i, i + 1, j, j + 1) for i in range(3) for j in range(3)], "end/2": [(3, 3)]}
        )
        assert (stage_of(plan, "span/4").strategy, stage_of(plan, "span/4").final) == (Strategy.LEVELS, True)

    def test_a_bitext_in_which_one_side_may_be_empty_goes_by_both_widths_together(self) -> None:
        # No span is empty on both sides: each rule makes one item from two of less total width.
        assert stage_of(example("itg_recipe"), "span/4").final

    def test_an_acyclic_graph_goes_by_a_topological_numbering(self) -> None:
        source = "p(X) += s(X). p(Y) += p(X) * e(X,Y)."
        arcs = [("b", "c"), ("a", "b"), ("c", "d"), ("a", "d")]
        assert stage_of(planned(source, {"s/1": [("a",)], "e/2": arcs}), "p/1").strategy == Strategy.LEVELS

    def test_a_cyclic_graph_goes_by_its_ground_program(self) -> None:
        source = "p(X) += s(X). p(Y) += p(X) * e(X,Y)."
        stage = stage_of(planned(source, {"s/1": [("a",)], "e/2": [("a", "b", 0.5), ("b", "a", 0.5)]}), "p/1")
        assert (stage.strategy, stage.final, stage.unknowns, stage.inner) == (Strategy.SOLVE, True, 1, {(2, 0)})
        assert "cyclic ones are solved" in stage.reason

    def test_what_multiplies_two_items_of_a_component_is_solved_too(self) -> None:
        stage = stage_of(planned("p += s. p += 0.5 * p * p.", {"s/0": [(0.3,)]}), "p/0")
        assert (stage.strategy, stage.unknowns) == (Strategy.SOLVE, 2)

    def test_arguments_that_grow_without_end_are_not_explored(self) -> None:
        for source in ("w(0) += s. w(I+1) += w(I) * a. w(I-1) += w(I) * a.", "w(x) += s. w(f(X)) += w(X) * a."):
            plan = planned(source, {"s/0": [(0.3,)], "a/0": [(0.3,)]})
            assert stage_of(plan, "w/1").strategy in (Strategy.HEAP, Strategy.LEVELS)

    def test_a_cyclic_graph_that_is_iterated_goes_by_the_size_of_updates(self) -> None:
        source = ":- solve iterate. p(X) += s(X). p(Y) += p(X) * e(X,Y)."
        stage = stage_of(planned(source, {"s/1": [("a",)], "e/2": [("a", "b", 0.5), ("b", "a", 0.5)]}), "p/1")
        assert (stage.strategy, stage.priority, stage.final) == (Strategy.HEAP, "size", False)
        assert "largest update" in stage.reason

    def test_dijkstra_goes_best_first(self) -> None:
        stage = stage_of(example("shortest_paths_recipe"), "distance/1")
        assert (stage.strategy, stage.priority) == (Strategy.HEAP, "value")
        assert "best first" in stage.reason

    def test_min_and_max_of_plain_arithmetic_go_best_first_too(self) -> None:
        stage = stage_of(example("components"), "label/1")
        assert (stage.strategy, stage.priority) == (Strategy.HEAP, "value")

    @pytest.mark.parametrize("semiring", ["boolean", "count"])
    def test_where_updates_have_no_size_it_is_first_in_first_out(self, semiring: str) -> None:
        source = f":- semiring {semiring}. :- solve iterate. p(X) += s(X). p(Y) += p(X) * e(X,Y)."
        stage = stage_of(planned(source, {"s/1": [("a",)], "e/2": [("a", "b"), ("b", "a")]}), "p/1")
        assert stage.strategy == Strategy.QUEUE and "first in, first out" in stage.reason

    def test_without_recursion_rules_fire_once(self) -> None:
        plan = planned(CKY, {**GRAMMAR, **SENTENCE})
        stage = stage_of(plan, "goal/0")
        assert (stage.strategy, len(stage.fires), len(stage.drives)) == (Strategy.ONCE, 1, 0)
        assert plan.stages.index(stage) > plan.stages.index(stage_of(plan, "constit/3"))

    @pytest.mark.parametrize("cyclic", [False, True])
    def test_unary_rules(self, cyclic: bool) -> None:
        source = CKY + "constit(X,I,K) += unary(X,Y) * constit(Y,I,K)."
        unary = [("s", "vp", 0.5), ("vp", "np", 0.5), *([("np", "s", 0.5)] if cyclic else [])]
        plan = planned(source, {**GRAMMAR, **SENTENCE, "unary/2": unary})
        stage = stage_of(plan, "constit/3")
        if cyclic:  # span by span, and the components of a span by themselves
            assert (stage.strategy, stage.final, len(stage.forms)) == (Strategy.SOLVE, True, 2)
            assert stage.inner == {(4, 1)} and "no rule decreases" in stage.reason
            assert any(join.vector for join in stage.drives)
        else:  # widths, and for one span the order that the unary rules give the symbols
            assert (stage.strategy, stage.final) == (Strategy.LEVELS, True)
            assert len(stage.forms) > 1

    def test_earley_goes_by_the_last_position(self) -> None:
        stage = stage_of(example("earley_recipe"), "constit/3")
        assert (stage.strategy, stage.final) == (
            Strategy.HEAP,
            False,
        )  # np predicts np: within a position there are cycles
        assert forms_of(example("earley_recipe"), "constit/3")[0] == {2: 1}
        assert forms_of(example("earley_recipe"), "need/2")[0] == {1: 1}

    def test_contributions_that_may_get_worse_are_swept(self) -> None:
        source = ":- solve iterate. p(Y) min= p(X) * e(X,Y). p(X) min= s(X)."
        plan = planned(source, {"s/1": [("a", 1.0)], "e/2": [("a", "b", -1.0), ("b", "a", 1.0)]})
        assert stage_of(plan, "p/1").strategy == Strategy.SWEEP

    @pytest.mark.parametrize(
        "agenda, strategy", [("fifo", Strategy.QUEUE), ("lifo", Strategy.STACK), ("priority", Strategy.HEAP)]
    )
    def test_a_declared_agenda_is_taken(self, agenda: str, strategy: Strategy) -> None:
        stage = stage_of(planned(CKY + f":- agenda {agenda}.", {**GRAMMAR, **SENTENCE}), "constit/3")
        assert (stage.strategy, stage.forms) == (strategy, ()) and agenda in stage.reason

    def test_a_declared_priority_is_taken(self) -> None:
        plan = planned(CKY + ":- priority constit(X,I,K) = I - K.", {**GRAMMAR, **SENTENCE})
        stage = stage_of(plan, "constit/3")
        assert (stage.strategy, stage.priority) == (Strategy.HEAP, "declared") and "constit/3" in stage.reason

    def test_a_priority_reads_items_of_an_earlier_stratum(self) -> None:
        source = """
        :- semiring tropical.
        :- priority p(X) = -p(X) - h(X).
        p(X) += s(X). p(Y) += p(X) * e(X,Y).
        h(X) += t(X). h(X) += h(Y) * low(X,Y).
        """
        arcs = [("a", "b", 1.0), ("b", "a", 1.0)]
        plan = planned(source, {"s/1": [("a",)], "t/1": [("b",)], "e/2": arcs, "low/2": arcs})
        assert stage_of(plan, "h/1").number < stage_of(plan, "p/1").number

    def test_best_first_stops_early(self) -> None:
        facts = {"s/1": [("a",)], "e/2": [("a", "b", 1.0), ("b", "c", 1.0)]}
        source = ":- semiring tropical. p(X) += s(X). p(Y) += p(X) * e(X,Y). goal += p(c)."
        assert stage_of(planned(source, facts), "p/1").strategy == Strategy.LEVELS
        stage = stage_of(planned(source, facts, purpose=Purpose("goal/0")), "p/1")
        assert (stage.strategy, stage.priority) == (Strategy.HEAP, "value") and "stop" in stage.reason
        assert "goal/0" in stage.keys  # so that it runs as soon as it is the best

    def test_negation_waits_for_what_it_asks_for(self) -> None:
        source = ":- agenda fifo. r(Y) += r(X) * e(X,Y). r(X) += s(X). u(X) += node(X) for not r(X)."
        plan = planned(source, {"s/1": [("a",)], "e/2": [("a", "b"), ("b", "a")], "node/1": [("c",)]})
        assert stage_of(plan, "r/1").number < stage_of(plan, "u/1").number


# -- runs: items are popped once, and facts that break an order get another plan ---------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "ccg_recipe",
        "cky",
        "components",
        "ctc_recipe",
        "edit_distance_recipe",
        "eisner_recipe",
        "gotoh_recipe",
        "hmm_recipe",
        "hsmm_recipe",
        "itg_recipe",
        "lattice",
        "nussinov",
        "points_to_recipe",
        "reachability",
        "rna_recipe",
        "shortest_paths_recipe",
        "transducers_recipe",
    ],
)
def test_each_item_is_popped_once(name: str) -> None:
    chart = dg.Program(examples.source(name)).run(examples.facts(name))
    assert run_of(chart).prepared is not None
    tables = run_of(chart).require().compiled.plan.tables.values()
    items = {t.key: len(chart.table(t.key)) for t in tables if is_derived(t)}
    assert chart.stats.items == sum(items.values())
    assert chart.stats.pops == sum(items[t.key] for t in tables if t.key in items and not t.sink)


def test_levels_of_many_forms_stay_in_order() -> None:
    """Nothing bounds the three arguments, so each form alone may take billions of values."""
    source = """
    p(0,0,0) += start.
    p(I,J,K+1) += p(I,J,K) * step for K*K < 9.
    p(I,J+1,0) += p(I,J,_K) * step for J*J < 9.
    p(I+1,0,0) += p(I,_J,_K) * step for I*I < 9.
    """
    facts = {"start/0": [(1.0,)], "step/0": [(0.5,)]}
    chart = dg.Program(source).run(facts)
    exact = {key: value for (p, key), value in evaluate(parse(source), facts, semiring="real").items() if p == "p/3"}
    found = {(i, j, k): value for i, j, k, value in chart.table("p/3")}
    assert found.keys() == exact.keys()
    assert all(close(found[key], value) for key, value in exact.items())
    assert chart.stats.pops == len(exact)


@cache
def bound() -> Any:
    return dg.Program(CKY).bind(GRAMMAR)


def ambiguous(facts: Mapping[str, Any]) -> float:
    return float(evaluate(parse(CKY), {**GRAMMAR, **facts}, semiring="real").get(("goal/0", ()), 0.0))


class TestFactsThatBreakTheOrder:
    """One bound program: what it assumed of earlier runs must not show in later ones."""

    def strategy(self, facts: Mapping[str, Any]) -> Strategy:
        chart = bound().run(facts)
        assert close(chart["goal"], ambiguous(facts))
        return stage_of(run_of(chart).require().compiled.plan, "constit/3").strategy

    def test_a_sentence_goes_by_levels(self) -> None:
        assert self.strategy(SENTENCE) == Strategy.LEVELS

    def test_a_word_of_width_zero(self) -> None:
        self.strategy(SENTENCE)
        empty = [*SENTENCE["word/3"], ("mary", 2, 2, 0.25), ("john", 3, 3, 0.125)]
        assert self.strategy({**SENTENCE, "word/3": empty}) != Strategy.LEVELS
        assert self.strategy(SENTENCE) == Strategy.LEVELS

    def test_a_word_that_goes_back(self) -> None:
        self.strategy(SENTENCE)
        back = [*SENTENCE["word/3"], ("loves", 3, 1, 0.5)]
        assert self.strategy({**SENTENCE, "word/3": back}) != Strategy.LEVELS
        assert self.strategy(SENTENCE) == Strategy.LEVELS

    def test_named_states_whose_arcs_make_a_cycle(self) -> None:
        source = CKY.replace("constit(s,0,N)", "start(I) * constit(s,I,N)")
        program = dg.Program(source).bind(GRAMMAR)
        ends: dict[str, Any] = {"start/1": [("b",)], "end/1": [("e",)]}
        lattices = {
            Strategy.LEVELS: [("john", "b", "x", 1.0), ("loves", "x", "a", 1.0), ("mary", "a", "e", 1.0)],
            Strategy.SOLVE: [
                ("john", "b", "x", 1.0),
                ("loves", "x", "a", 1.0),
                ("mary", "a", "e", 0.5),
                ("john", "e", "a", 0.5),
            ],
        }
        for strategy in (Strategy.LEVELS, Strategy.SOLVE, Strategy.LEVELS):
            facts = {**ends, "word/3": lattices[strategy]}
            chart = program.run(facts)
            assert stage_of(run_of(chart).require().compiled.plan, "constit/3").strategy == strategy
            assert close(
                chart["goal"], float(evaluate(parse(source), {**GRAMMAR, **facts}, semiring="real")["goal/0", ()])
            )
        renumbered = [("mary", "x", "e", 1.0), ("loves", "a", "x", 1.0), ("john", "b", "a", 1.0)]  # a comes before x
        chart = program.run({**ends, "word/3": renumbered})
        assert stage_of(run_of(chart).require().compiled.plan, "constit/3").strategy == Strategy.LEVELS
        assert chart["goal"] == 0.125

    def test_after_an_irregular_sentence_the_regular_ones_still_go_by_levels(self) -> None:
        fresh = bound().bind({})
        back = [*SENTENCE["word/3"], ("loves", 3, 1, 0.5)]
        for words, strategy in ((back, Strategy.SOLVE), (SENTENCE["word/3"], Strategy.LEVELS)):
            chart = fresh.run({**SENTENCE, "word/3": words})
            assert stage_of(run_of(chart).require().compiled.plan, "constit/3").strategy == strategy

    def test_another_grammar(self) -> None:
        other = bound().bind({"rewrite/3": [("s", "np", "vp", 0.5), ("vp", "v", "np", 0.5)]})
        assert close(other.run(SENTENCE)["goal"], 0.5 * 0.5 * 0.5 * 0.25)
        assert close(bound().run(SENTENCE)["goal"], 0.5 * 0.25)
