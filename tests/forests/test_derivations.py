"""What a derivation is, in which forms it comes, and what its check refuses.

Costs ten seconds: each program compiles.
"""

from __future__ import annotations

import io
import json
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.forests.derivation import make_derivation

pytestmark = pytest.mark.filterwarnings(
    "ignore:The :dynagrad.errors.ProgramWarning"
)  # of cycles, and of single variables

EDGES = {"edge/2": [("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 9.0)]}
PATHS = "path(V) min= path(U) + edge(U,V).  path(a) = 0."


def trees(chart: dg.Chart, item: str) -> list[Any]:
    return [d.tree() for d in chart.kbest(item)]


# -- what counts as one


def test_antecedents_are_ordered() -> None:
    chart = dg.Program("a += b * b. b += c(_).", "real").run({"c/1": [("x", 1.0), ("y", 2.0)]})
    found = trees(chart, "a")
    assert found == [
        ("a", ("b", "c(y)"), ("b", "c(y)")),
        ("a", ("b", "c(y)"), ("b", "c(x)")),
        ("a", ("b", "c(x)"), ("b", "c(y)")),
        ("a", ("b", "c(x)"), ("b", "c(x)")),
    ]
    assert chart.count("a") == 4 and chart["a"] == 9.0


@pytest.mark.parametrize("transient", ["", ":- transient link/2. "])
def test_the_rows_of_given_facts_that_derivations_use(transient: str) -> None:
    """Those that are bound first, then those of the run, axioms left out; copies of a fact are rows of their own."""
    text = transient + ":- input edge/2. a += start(_) * 2. link(U,V) += edge(U,V). b += link(U,x) * a. edge(c,x) += 4."
    bound = dg.Program(text, "real").bind({"edge/2": [("y", "z", 1.0), ("a", "x", 1.0), ("b", "x", 0.0)]})
    chart = bound.run({"edge/2": [("z", "y", 3.0), ("a", "x", 2.0)], "start/1": [("s",)], "unused/0": [()]})
    packed = chart.forest("b").packed
    assert packed.rows("edge/2").tolist() == [1, 2, 4]
    assert (
        packed.rows("start/1").tolist() == [0]
        and packed.rows("link/2").tolist() == packed.rows("none/1").tolist() == []
    )
    assert {name for name in packed.facts() if name[0] == "edge/2"} == {("edge/2", (x, "x")) for x in "abc"}


def test_side_items_negated_items_and_conditions_are_leaves() -> None:
    program = dg.Program("goal += a(I) * SIDE(b(J)) for J = I+1, I < 3, not stop(J). b(J) += c(J,_).", "real")
    facts = {"a/1": [(1, 2.0), (2, 3.0)], "c/2": [(2, "x"), (2, "y"), (3, "z")], "stop/1": [(3,)]}
    chart = program.run(facts)
    (derivation,) = chart.kbest("goal")
    assert derivation.tree() == ("goal", "a(1)", "SIDE(b(2))")
    assert derivation.tree(conditions=True) == ("goal", "a(1)", "SIDE(b(2))", "2 = 1+1", "1 < 3", "not stop(2)")
    assert derivation.weight == chart["goal"] == 2.0
    assert derivation.items() == ["goal", "a(1)"] and derivation.facts() == ["a(1)"]
    derivation.check(program, facts)
    assert [i.opened for i in chart.forest("goal").items] == [True, True, False]


def test_an_item_that_clauses_derive_is_a_leaf_where_it_is_used() -> None:
    program = dg.Program("reach(a). reach(Y) :- reach(X), edge(X,Y). goal += reach(X) * w(X).", "real")
    facts = {"edge/2": [("a", "b"), ("a", "c"), ("b", "c"), ("c", "b")], "w/1": [("b", 2.0), ("c", 3.0)]}
    chart = program.run(facts)
    assert chart["goal"] == 5.0
    found = list(chart.kbest("goal"))
    assert [d.weight for d in found] == [3.0, 2.0]
    assert found[0].tree() == ("goal", "SIDE(reach(c))", "w(c)")
    for d in found:
        d.check(program, facts)
    assert [d.weight for d in chart.kbest("reach(b)")] == [1.0, 1.0]


def test_external_values_are_leaves() -> None:
    program = dg.Program(
        ":- external dist/2. path(V) += path(U) * road(U,V) * dist(U,V). path(1) += 1.",
        "real",
        functions={"dist/2": lambda a, b: 0.5 * (a + b)},
    )
    chart = program.run({"road/2": [(1, 2), (2, 3), (1, 3)]})
    found = list(chart.kbest("path(3)"))
    assert [d.weight for d in found] == [1.5 * 2.5, 2.0]
    assert found[0].tree() == (
        "path(3)",
        ("path(2)", "path(1)", "road(1,2)", "dist(1,2)"),
        "road(2,3)",
        "dist(2,3)",
    )
    assert found[0].facts() == ["path(1)", "road(1,2)", "road(2,3)"]


def test_repeated_rows_are_separate_leaves_and_an_assertion_is_one_more_instance() -> None:
    program = dg.Program(":- input p/1. p(X) += q(X). p(a) += 0.25.", "real")
    facts = {"p/1": [("a", 1.0), ("a", 2.0), ("b", 5.0)], "q/1": [("a", 4.0), ("a", 0.5)]}
    chart = program.run(facts)
    found = list(chart.kbest("p(a)"))
    assert [d.weight for d in found] == [4.0, 2.0, 1.0, 0.5, 0.25]
    assert sum(d.weight for d in found) == chart["p(a)"]
    assert [d.steps[-1].row for d in found] == [0, 1, 0, 1, -1]
    assert len(set(found)) == 5
    for d in found:
        d.check(program, facts)


def test_copies_are_leaves_of_their_own_also_in_a_program_that_runs_as_a_semiring() -> None:
    facts = {"edge/2": [("a", "b", 2.0), ("a", "b", 1.0)]}
    program = dg.Program(PATHS)
    chart = program.run(facts)
    found = list(chart.kbest("path(b)"))
    assert [d.weight for d in found] == [1.0, 2.0] and chart["path(b)"] == 1.0
    assert [d.steps[-1].row for d in found] == [1, 0]
    for d in found:
        d.check(program, facts)


def test_copies_that_add_up_by_times_are_one_leaf() -> None:
    facts = {"edge/2": [("a", "b", 2.0), ("a", "b", 1.0)]}
    program = dg.Program(f":- input edge/2 +=. {PATHS}")
    chart = program.run(facts)
    (derivation,) = chart.kbest("path(b)")
    assert derivation.weight == chart["path(b)"] == 3.0
    derivation.check(program, facts)


def test_transient_items_are_shown() -> None:
    program = dg.Program(
        ":- transient pair/2. pair(X,Y) += 0.5 * a(X,Z) * b(Z,Y). pair(X,X) += 2 * c(X). goal += pair(X,Y) * d(Y).",
        "real",
    )
    facts = {"a/2": [("x", "m"), ("x", "n")], "b/2": [("m", "y"), ("n", "y")], "c/1": [("y",)], "d/1": [("y", 3.0)]}
    chart = program.run(facts)
    found = list(chart.kbest("goal"))
    assert [d.weight for d in found] == [6.0, 1.5, 1.5] and chart["goal"] == 9.0
    assert [d.tree() for d in found] == [
        ("goal", ("pair(y,y)", "c(y)"), "d(y)"),
        ("goal", ("pair(x,y)", "a(x,m)", "b(m,y)"), "d(y)"),
        ("goal", ("pair(x,y)", "a(x,n)", "b(n,y)"), "d(y)"),
    ]
    for d in found:
        d.check(program, facts)
    forest = chart.forest("goal")
    assert sorted(str(i) for i in forest.items if i.predicate == "pair/2") == ["pair(x,y)", "pair(y,y)"]
    draws = chart.sample("goal", 300, seed=2)
    assert {d.tree() for d in draws} == {d.tree() for d in found}


def test_terms_and_lists_are_told_as_they_are_written() -> None:
    program = dg.Program("p([X|R]) += q(X,R). r(X/Y) += p([X,Y]). s(f(1,1.0)) += r(_).", "real")
    facts = {"q/2": [("a", ["b"])]}
    (derivation,) = program.run(facts).kbest(("s", dg.Term("f", 1, 1.0)))
    assert derivation.tree() == ("s(f(1,1.0))", ("r(a/b)", ("p([a,b])", "q(a,[b])")))
    derivation.check(program, facts)


def test_the_empty_list_among_symbols_is_found_however_it_is_written() -> None:
    chart = dg.Program("d([]) += e. d(a) += e.", "real").run({"e/0": [(0.5,)]})
    for item in ("d([])", "d(nil)", ("d", ()), ("d", "nil"), ("d", [])):
        assert chart[item] == 0.5 and chart.best(item).tree() == ("d(nil)", "e")
    assert dict(chart)["d(nil)"] == 0.5


# -- ties


def test_ties_go_to_fewer_instances_then_to_the_order_of_rules_and_antecedents() -> None:
    text = "goal += long. long += short. goal += b(X). goal += a(X). short += a(_)."
    chart = dg.Program(text, "viterbi").run({"a/1": [("y", 0.0), ("x", 0.0)], "b/1": [("z", 0.0)]})
    assert trees(chart, "goal") == [
        ("goal", "b(z)"),
        ("goal", "a(x)"),
        ("goal", "a(y)"),
        ("goal", ("long", ("short", "a(x)"))),
        ("goal", ("long", ("short", "a(y)"))),
    ]


def test_a_cycle_of_gain_one_does_not_loop() -> None:
    program = dg.Program("a += b. b += a. a += c.", "viterbi")
    chart = program.run({"c/0": [(-1.0,)]})
    assert [(d.weight, len(d)) for d in chart.kbest("a", 4)] == [(-1.0, 1), (-1.0, 3), (-1.0, 5), (-1.0, 7)]
    assert chart.best("b").tree() == ("b", ("a", "c"))
    assert chart.count("a") == math.inf
    assert chart.count("a", simple=True) == 1
    assert [d.tree() for d in chart.kbest("a", 1, simple=True)] == [("a", "c")]


def test_what_only_has_to_be_derived_may_stand_below_itself() -> None:
    text = "a += c. b += c * SIDE(a). a += b.  d += c. e += SIDE(d) * d. d += 0.5 * e."
    chart = dg.Program(text, "real").run({"c/0": [(0.5,)]})
    assert trees(chart, "a") == [("a", "c"), ("a", ("b", "c", "SIDE(a)"))]
    assert [d.tree() for d in chart.kbest("a", simple=True)] == trees(chart, "a")
    assert chart.count("a") == chart.count("a", simple=True) == 2
    assert [d.tree() for d in chart.kbest("d", 1, simple=True)] == [("d", "c")] and chart.count("d", simple=True) == 1


def test_zeros_come_last_the_smallest_first() -> None:
    program = dg.Program("a += b(X) * c(X). b(X) += e(X). b(X) += f(X).", "real")
    facts = {"e/1": [("x", 0.0), ("y", 2.0)], "f/1": [("x", 3.0), ("y", 0.0)], "c/1": [("x", 1.0), ("y", 0.0)]}
    found = list(program.run(facts).kbest("a"))
    assert [d.weight for d in found] == [3.0, 0.0, 0.0, 0.0]
    assert len(set(found)) == 4


def test_distinct_gives_the_first_of_those_that_share_a_key() -> None:
    program = dg.Program("a += b * b. b += c(_). b += 0.5 * d(_). d(X) += c(X).", "real")
    chart = program.run({"c/1": [("x", 1.0), ("y", 3.0)]})
    every = list(chart.kbest("a"))

    def shape(tree: Any) -> Any:
        return tuple(map(shape, tree[1:])) if isinstance(tree, tuple) else ()

    keys: dict[str, Any] = {
        "yield": lambda d: tuple(i for i in d.items() if i.startswith("c")),
        "tree": lambda d: shape(d.tree()),
    }
    keys["function"] = lambda d: (d.weight, "d(x)" in d.items())
    counts = {}
    for name, key in keys.items():
        first: dict[Any, dg.Derivation] = {}
        for derivation in every:
            first.setdefault(key(derivation), derivation)
        found = list(chart.kbest("a", distinct=key if name == "function" else name))
        assert found == list(first.values())
        counts[name] = len(found)
    assert len(every) == 16 and counts == {"yield": 4, "tree": 4, "function": 10}


# -- runs that are not complete


def test_of_a_run_that_was_stopped_there_is_what_is_final() -> None:
    chart = dg.Program("path(V) += path(U) * edge(U,V). path(0) += 1.", "real").run(
        {"edge/2": [(i, i + 1, 0.5) for i in range(10)]}, max_pops=3
    )
    derived = [i for i in range(11) if f"path({i})" in chart]
    assert 0 < len(derived) < 11
    assert len(chart.best(f"path({derived[-1]})")) == derived[-1]
    with pytest.raises(dg.QueryError, match="why_not"):
        chart.best("path(10)")
    assert "the run ended early" in str(chart.why_not("path(10)"))


def test_of_a_run_that_was_pruned_there_is_what_ran() -> None:
    text = ":- prune path(V) < 0.2. path(V) += path(U) * edge(U,V). path(0) += 1."
    chart = dg.Program(text, "real").run({"edge/2": [(0, 1, 0.5), (1, 2, 0.1), (0, 2, 0.3)]})
    assert trees(chart, "path(1)") == [("path(1)", "path(0)", "edge(0,1)")]
    chart = dg.Program(text, "real").run({"edge/2": [(0, 1, 0.5), (1, 2, 0.1)]})
    found = chart.why_not("path(2)")
    assert found.attempts[0].parts[-1].kind == "pruned" and "held back" in str(found)


def test_facts_that_changed_ask_for_a_run() -> None:
    chart = dg.Program(PATHS).run(EDGES)
    assert chart.best("path(c)").weight == 3.0
    chart.add("edge/2", [("a", "c", -8.0)])
    with pytest.raises(dg.QueryError, match=r"call chart\.run"):
        chart.best("path(c)")
    chart.run()
    assert chart["path(c)"] == -8.0
    assert chart.best("path(c)").tree() == ("path(c)", "path(a)", "edge(a,c)")


# -- forms


def test_forms_of_a_derivation() -> None:
    program = dg.Program(PATHS)
    derivation = program.run(EDGES).best("path(c)")
    assert derivation.rules() == ["path(V) min= path(U) + edge(U,V)."] * 2
    assert len(derivation) == 2 and derivation.item == "path(c)"
    assert [step.item for step in derivation] == derivation.items()
    assert derivation.brackets() == "('path(c)' ('path(b)' 'path(a)' 'edge(a,b)') 'edge(b,c)')"
    assert derivation.text().splitlines() == [
        "path(c)",
        "├── path(b)",
        "│   ├── path(a)",
        "│   └── edge(a,b)",
        "└── edge(b,c)",
    ]
    data = json.loads(derivation.to_json())
    assert data["weight"] == 3.0 and data["steps"][0]["antecedents"] == [1, 4]
    assert data["steps"][3] == {"item": "edge(a,b)", "row": 0}
    assert derivation.graphviz().startswith("digraph") and "n0 -> n1;" in derivation.graphviz()
    svg = derivation.svg()
    assert svg.startswith("<svg") and svg.count("<rect") == 5 and derivation._repr_svg_() == svg
    again = pickle.loads(pickle.dumps(derivation))
    assert again == derivation and hash(again) == hash(derivation) and again.tree() == derivation.tree()
    assert repr(derivation) == "<Derivation of path(c) of weight 3.0: 2 instances>"
    assert derivation != program.run(EDGES).best("path(b)") and derivation != 3
    again.check(program, EDGES)


def test_drawn_in_a_terminal() -> None:
    from rich.console import Console

    console = Console(width=60, record=True, file=io.StringIO())
    console.print(dg.Program(PATHS).run(EDGES).best("path(c)"))
    assert console.export_text().splitlines()[:3] == ["path(c)", "├── path(b)", "│   ├── path(a)"]


def test_as_a_tree_of_nltk() -> None:
    nltk = pytest.importorskip("nltk")
    tree = dg.Program(PATHS).run(EDGES).best("path(c)").nltk()
    assert isinstance(tree, nltk.Tree)
    assert tree.label() == "path(c)" and tree.leaves() == ["path(a)", "edge(a,b)", "edge(b,c)"]


def test_forests_travel() -> None:
    chart = dg.Program("p(X) += 0.5 * q(X) * r(X). p(X) += SIDE(q(X)).", "expectation").run(
        {"q/1": [("a", (0.5, 1.0)), (1.5, (1.0, 0.0))], "r/1": [("a", (0.25, 2.0))]}
    )
    forest = chart.forest("p(a)")
    again = dg.read_forest(forest.to_json())
    assert [str(i) for i in again.instances] == [str(i) for i in forest.instances]
    assert list(again.kbest()) == list(forest.kbest())
    assert [d.weight for d in again.kbest()] == [(1.0, 0.0), (0.0625, 0.625)]
    assert [i.value for i in again.items] == [i.value for i in forest.items]
    assert pickle.loads(pickle.dumps(forest)).count() == 2
    for wrong in ("{}", '{"format": "x"}', "{", '{"format": "dynagrad forest 1"}'):
        with pytest.raises(dg.FactError, match=r"no forest|not the format"):
            dg.read_forest(wrong)


def test_a_forest_stays_as_it_is_when_another_is_collected() -> None:
    chart = dg.Program(PATHS).run(EDGES)
    forest = chart.forest("path(c)")
    before = forest.to_json()
    iterator = chart.kbest("path(c)")
    first = next(iterator)
    assert chart.forest_size("path(b)") == (3, 3)
    assert [str(i) for i in chart.forest("path(b)").items] == ["path(b)", "path(a)", "edge(a,b)"]
    chart.add("edge/2", [("c", "d", 1.0)])
    chart.run()
    assert chart.best("path(d)").weight == 4.0
    del chart
    assert forest.to_json() == before and forest.best() == first
    assert [d.weight for d in iterator] == [9.0]


def test_forests_as_arrow_tables() -> None:
    pytest.importorskip("pyarrow")
    tables = dg.Program(PATHS).run(EDGES).forest("path(c)").to_arrow()
    items, instances = tables["items"].to_pylist(), tables["instances"].to_pylist()
    assert items[0] == {"item": "path(c)", "predicate": "path/1", "value": 3.0, "opened": True}
    heads = [(items[i["head"]]["item"], [items[u]["item"] for u in i["antecedents"]]) for i in instances]
    assert ("path(c)", ["path(b)", "edge(b,c)"]) in heads


# -- what is wrong is seen


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: [replace(s[0], name=("path/1", ("d",))), *s[1:]], "no instance"),
        (lambda s: [*s[:3], replace(s[3], row=1), s[4]], "another fact"),
        (lambda s: [*s[:3], replace(s[3], name=("edge/2", ("a", "z"))), s[4]], "no given fact"),
        (lambda s: [replace(s[0], antecedents=(1,)), *s[1:]], "no tree"),
        (lambda s: [replace(s[0], rule_number=1), *s[1:]], "not those of"),
        (lambda s: [replace(s[0], rule_number=7), *s[1:]], "no such rule"),
    ],
)
def test_a_derivation_that_is_not_right_is_refused(change: Any, said: str) -> None:
    program = dg.Program(PATHS)
    right = program.run(EDGES).best("path(c)")
    with pytest.raises(dg.Error, match=said):
        make_derivation(None, (), right.weight, steps=tuple(change(list(right.steps)))).check(program, EDGES)


def test_a_weight_that_is_not_right_is_refused() -> None:
    program = dg.Program(PATHS)
    right = program.run(EDGES).best("path(c)")
    with pytest.raises(dg.Error, match="it says 2"):
        make_derivation(None, (), 2.0, steps=right.steps).check(program, EDGES)


def test_negations_and_comparisons_are_checked() -> None:
    program = dg.Program("goal += a(I) for I < 3, not stop(I).", "real")
    right = program.run({"a/1": [(1, 2.0)], "stop/1": [(7,)]}).best("goal")
    with pytest.raises(dg.Error, match="not stop\\(1\\) does not hold"):
        right.check(program, {"a/1": [(1, 2.0)], "stop/1": [(1,)]})
    with pytest.raises(dg.Error, match="1 < 1 does not hold"):
        right.check("goal += a(I) for I < 1, not stop(I).", {"a/1": [(1, 2.0)]})


# -- bad input


def test_what_cannot_be_asked() -> None:
    chart = dg.Program("goal += a(_).", "real").run({"a/1": [("x", 1.0), ("y", -2.0)]})
    with pytest.raises(dg.ValueRangeError, match=r"the fact a\(y\) has the weight -2"):
        chart.best("goal")
    chart = dg.Program("goal += -0.5 * a(_).", "real").run({"a/1": [("x", 1.0)]})
    with pytest.raises(dg.ValueRangeError, match="the rule `goal"):
        chart.sample("goal", 2)
    chart = dg.Program(PATHS).run(EDGES)
    for k in (0, -1, True, 1.5, "2"):
        with pytest.raises(dg.Error, match="k must be"):
            chart.kbest("path(c)", k)  # type: ignore[arg-type]
    with pytest.warns(dg.ProgramWarning, match="has 2 derivations in all"):
        assert len(list(chart.kbest("path(c)", 5))) == 2
    with pytest.raises(dg.QueryError, match="no predicate"):
        chart.best("nowhere")
    with pytest.raises(dg.QueryError, match="was not derived"):
        chart.forest("path(z)")
    with pytest.raises(dg.NotConverged, match="more than 3 instances"):
        chart.forest("path(c)", limit=3)
    with pytest.raises(dg.Error, match="distinct is"):
        chart.kbest("path(c)", distinct="leaves")
    assert chart.forest_size("path(c)") == (6, 7)


def test_a_cycle_that_gets_better_without_end_is_an_error() -> None:
    chart = dg.Program("a += b. b += 0.5 * a. a += c.", "real").run({"c/0": [(1.0,)]})
    assert chart.best("a").weight == 1.0
    log = dg.Program("a += b * 0.5. b += a. a += c. ", "viterbi")
    with pytest.raises(dg.Error):
        log.run({"c/0": [(1.0,)]})
    chart = dg.Program("a(I) += a(J) * w(J,I). a(0) += 1.", "real").run({"w/2": [(0, 1, 2.0), (1, 0, 0.4)]})
    assert [round(d.weight, 6) for d in chart.kbest("a(1)", 3)] == [2.0, 1.6, 1.28]
    assert np.isclose(chart["a(1)"], 10.0)


def test_semirings_of_ones_own() -> None:
    reliable = dg.Semiring(0.0, 1.0, np.maximum, lambda a, b: a * b, less=lambda a, b: a < b)
    text = "up(Y) += up(X) * link(X,Y)."
    facts = {"up/1": [("a",)], "link/2": [("a", "b", 0.5), ("b", "c", 0.5), ("a", "c", 0.25), ("c", "b", 0.9)]}
    chart = dg.Program(text, reliable).run(facts)
    assert [d.weight for d in chart.kbest("up(c)", 4)] == [0.25, 0.25, 0.1125, 0.1125]
    assert chart.best("up(c)").tree() == ("up(c)", "up(a)", "link(a,c)")
    with pytest.raises(dg.QueryError, match="draws need weights"):
        chart.sample("up(c)")
    plain = dg.Semiring(0.0, 1.0, lambda a, b: a + b, lambda a, b: a * b)
    chart = dg.Program(text, plain).run({"up/1": [("a",)], "link/2": [("a", "b", 0.5)]})
    with pytest.raises(dg.QueryError, match="no order"):
        chart.best("up(b)")
    assert chart.count("up(b)") == 1


def test_plain_arithmetic() -> None:
    text = "best(V) max= best(U)*0.5 - w(U,V) + 1. best(a) max= 0.25. out = best(d)*best(d). s += w(_,_). t = s + out."
    facts = {"w/2": [("a", "b", 0.5), ("b", "d", 0.1), ("a", "d", 0.3)]}
    program = dg.Program(text)
    assert program.semiring == "plain"
    chart = program.run(facts)
    derivation = chart.best("out")
    below = ("best(d)", ("best(b)", "best(a)", "w(a,b)"), "w(b,d)")
    assert derivation.tree() == ("out", below, below) and derivation.weight is None
    derivation.check(program, facts)
    with pytest.raises(dg.QueryError, match=r"items of s/0 have several"):
        chart.best("t")
    with pytest.raises(dg.QueryError, match="no weight of its own"):
        chart.kbest("out", 2)
    with pytest.raises(dg.QueryError, match="no weight of its own"):
        chart.sample("out", 2)
    assert chart.count("t") == 12
    assert math.isclose(chart.why("best(d)").reasons[0].value, 1.2125)  # type: ignore[index]


def test_the_gradient_of_an_expectation_through_samples() -> None:
    chart = dg.Program("goal += a(X) * b(X).", "real").run(
        {"a/1": [("x", 1.0), ("y", 3.0)], "b/1": [("x", 1.0), ("y", 1.0)]}
    )
    found = chart.sample("goal", 20_000, seed=3).score_gradient(lambda d: 2.0 * ("a(y)" in d.items()))
    exact = chart.forest("goal").covariance(lambda i: 2.0 * (str(i.head) == "a(y)"), lambda i: str(i.head) == "a(y)")
    assert exact == pytest.approx(2 * 0.75 * 0.25)
    assert found["a(y)"] == pytest.approx(exact, abs=0.01) and found["a(x)"] == pytest.approx(-exact, abs=0.01)
    with pytest.raises(dg.Error, match="at least two draws"):
        chart.sample("goal", 1).score_gradient(lambda d: 1.0)


def test_what_cannot_be_decoded() -> None:
    forest = dg.Program("goal += a(_).", "real").run({"a/1": [("x", 1.0), ("y", 0.0)]}).forest("goal")
    assert forest.decode(lambda i: 2.0).facts() == ["a(x)"]
    for wrong in ({"by": "max"}, {"gain": len, "by": "product"}, {"gain": lambda i: math.inf}):
        with pytest.raises(dg.Error):
            forest.decode(**wrong)  # type: ignore[arg-type]


def test_batches() -> None:
    program = dg.Program("path(V) min= path(U) + edge(U,V).  path(V) min= start(V).")
    bound = program.bind({"edge/2": [("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 9.0)]})
    starts: list[dict[str, Any]] = [{"start/1": [(x, 0.0)]} for x in "abc"] + [
        {"start/1": 7},
        {"start/1": [("z", 0.0)]},
    ]
    found = [bound.run_batch(starts, query="path(c)", best=2, sample=3, seed=5, threads=n) for n in (1, 2)]
    for batch in found:
        assert [None if d is None else [x.weight for x in d] for d in batch.best] == [
            [3.0, 9.0],
            [1.0],
            [0.0],
            None,
            [],
        ]
        assert [None if s is None else len(s) for s in batch.samples] == [3, 3, 3, None, None]
        assert sorted(batch.errors) == [3]
    assert [list(s) for s in found[0].samples if s] == [list(s) for s in found[1].samples if s]
    both = bound.run_batch(starts[:2], query="path(c)", best=1, gradient=["edge/2"])
    assert both.best[0] is not None and both.gradient["edge/2"]["b", "c"] == 2.0
    with pytest.raises(dg.Error, match="need an item"):
        bound.run_batch(starts, best=1)
    with pytest.raises(dg.Error, match="best must be a whole number"):
        bound.run_batch(starts, query="path(c)", best=0)
