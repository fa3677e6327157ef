"""Nests: what a join becomes, what its operations bind, and the text that says it. Costs a second."""

from __future__ import annotations

import pytest

import dynagrad as dg
from dynagrad.charts.chart import run_of
from dynagrad.plan.lower import lower
from dynagrad.plan.model import Plan, TableKind
from dynagrad.plan.nest import Access, Loop, Nest, Probe, lines, occurrences, title

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

PARSER = """
    constit(X,I,K) += word(W,I,K) * rewrite(X,W).
    constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
    goal += constit(s,0,N) * end(N).
"""
SENTENCE = {
    "word/3": [("a", 0, 1), ("b", 1, 2)],
    "rewrite/2": [("x", "a"), ("y", "b")],
    "rewrite/3": [("s", "x", "y")],
    "end/1": [(2,)],
}


def plan_of(text: str, facts: dict[str, list[tuple[object, ...]]]) -> Plan:
    return run_of(dg.Program(text, "real").run(facts)).require().compiled.plan


def nests(plan: Plan) -> dict[str, Nest]:
    """The nests of all stages by their titles."""
    joins = [join for stage in plan.stages for join in (*stage.fires, *stage.drives)]
    return {title(nest): nest for nest in (lower(plan, join) for join in joins)}


@pytest.fixture(scope="module")
def parser() -> dict[str, Nest]:
    return nests(plan_of(PARSER, SENTENCE))


def test_a_nest_says_what_it_begins_with(parser: dict[str, Nest]) -> None:
    assert list(parser) == ["rule 1", "rule 2 from constit(Z,J,K)", "rule 3"]
    assert parser["rule 1"].given == () and parser["rule 1"].driver is None
    assert [str(t.name) for t in parser["rule 2 from constit(Z,J,K)"].given] == ["Z", "J", "K"]  # type: ignore[union-attr]


def test_loops_bind_variables_and_probes_bind_none(parser: dict[str, Nest]) -> None:
    outer, inner = parser["rule 2 from constit(Z,J,K)"].body
    assert isinstance(outer, Loop) and isinstance(inner, Loop)
    assert (outer.kind, outer.access, outer.binds) == (TableKind.FACTS, Access.INDEX, ("X", "Y"))
    assert (inner.kind, inner.access, inner.binds) == (TableKind.DENSE, Access.INDEX, ("I",))
    assert inner.final and outer.final
    first, second = parser["rule 3"].body
    assert isinstance(second, Probe) and not second.invariant and isinstance(first, Loop)


def test_a_probe_of_facts_in_a_loop_is_of_the_same_table_each_time() -> None:
    found = nests(plan_of("goal += e(X,Y) * w(Y).", {"e/2": [("a", "b")], "w/1": [("b",)]}))["rule 1"]
    probe = found.body[1]
    assert isinstance(probe, Probe) and probe.invariant


def test_what_is_not_final_says_so() -> None:
    plan = plan_of(":- agenda fifo. p(X) += s(X). p(Y) += p(X) * e(X,Y) * p(z).", {"s/1": [("z", 0.1)], "e/2": []})
    probes = [o for nest in nests(plan).values() for o in nest.body if isinstance(o, Probe)]
    assert [p.final for p in probes if p.item.key == "p/1"] == [False, False]  # driven by either


def test_variables_are_counted_in_all_that_is_read() -> None:
    facts = {"a/2": [(1, 2)], "b/1": [(1,)]}
    found = nests(plan_of("p(X,Z) += a(X,Y) for Z = X+Y, Z > 2, not b(Z).", facts))["rule 1"]
    assert occurrences(found) == {"X": 3, "Y": 2, "Z": 4}


def test_the_text_reads_like_pseudocode() -> None:
    facts = {"a/2": [(1, 2)], "b/1": [(1,)], "q/1": [(dg.Term("f", (1, "x")),)]}
    plan = plan_of("p(X,Z) += a(X,Y) for Z = X+Y, Z > 2, not b(Z). r(X,Y) += q(f(X,Y)) * p(X,X).", facts)
    assert lines(nests(plan)["rule 1"]) == [
        "for (X, Y) in a(X,Y)  -- facts, all of them",
        "  let Z = X+Y",
        "    if Z > 2",
        "      if not b(Z)",
        "        head p(X,Z)",
    ]
    assert lines(nests(plan)["rule 2"]) == [
        "for (X, Y) in q(f(X,Y))  -- facts, index 0",
        "  probe p(X,X)",
        "    head r(X,Y)",
    ]
