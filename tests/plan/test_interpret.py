"""The interpreter of nests against the engine on the examples, against the oracle on random programs, and against both
on a few of these, gradients too.

Costs thirty seconds: an example is compiled once, most random programs are not compiled at all. `tests/fuzz/nests.py`
and `tests/fuzz/judges.py` try as many of these as they are told to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
import examples
from charts.test_engine import derived
from dynagrad.charts.chart import run_of
from dynagrad.charts.program import context_of
from dynagrad.plan.model import Strategy
from dynagrad.rules.aggregators import AGGREGATORS
from dynagrad.rules.parse import parse
from fuzz import judges
from fuzz.nests import AGENDAS, KINDS, check, folded, program_of, wrong
from interpreted import differences, gradient_difference, items, number, run_plan
from language_cases import CASES, Case
from oracle import close, evaluate
from random_programs import Program, combined

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

Facts = Mapping[str, list[tuple[Any, ...]]]

# -- values ------------------------------------------------------------------------------------------------------------

EXAMPLES = (
    "cky",
    "components",
    "ctc_recipe",
    "earley_recipe",
    "lattice",
    "network",
    "reachability",
    "transducers_recipe",
)
"""Of all semirings and strategies; the others are compared by hand, since each is compiled."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_have_the_values_of_the_engine(name: str) -> None:
    program, facts = dg.Program(examples.source(name)), examples.facts(name)
    run, chart = run_plan(program, facts), program.run(facts)
    for key in run.state.plan.stage_of:
        assert differences(items(run, key), derived(chart, key), 1e-12) == [], key


LARGE = {"collins_recipe", "crf_recipe", "gotoh_recipe", "mdp_recipe", "nussinov", "rna_recipe", "treebank_recipe"}


@pytest.mark.parametrize("name", sorted({*examples.NAMES} - LARGE - {*EXAMPLES}))
def test_examples_have_the_values_of_the_oracle(name: str) -> None:
    text, facts = examples.source(name), examples.facts(name)
    run, values = run_plan(dg.Program(text), facts), evaluate(parse(text), facts)
    for key in run.state.plan.stage_of:
        assert differences(items(run, key), {row: value for (k, row), value in values.items() if k == key}, 1e-9) == []


@pytest.mark.parametrize("case", [case for case in CASES if not case.declared], ids=lambda case: case.name)
def test_cases_have_the_items_and_values_of_the_oracle(case: Case) -> None:
    assert wrong(case, case.semiring, "auto") is None


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=lambda n: f"{KINDS[n][0]}{' cyclic' * KINDS[n][1]}")
def test_random_programs_have_the_items_and_values_of_the_oracle(kind: int) -> None:
    assert [said for n in range(8) if (said := check(kind + n * len(KINDS)))] == []


CONSTRUCTS: Mapping[str, str] = {
    **{aggregator: rf"^d\d.* {re.escape(aggregator)} " for aggregator in AGGREGATORS},
    **{f"{name} on a right side": rf"= .*{re.escape(name)}.*\." for name in ("SIDE(", "tanh(", "lse(", "if ", " / ")},
    "negation": r" not \w",
    "an order of integers": r"\w (<|=<|>=|>) \w",
    "a term that is compared": r"\w (=|!=|==) ([fg]\(|\[)",
    "a term in an item": r"= .*\([^ ]*[fg]\(|= .*\[\w\|",
    "a division of integers": r" (mod|//) ",
    "an equation that divides": r"2\*K0|\w\*2\)",
    "a clause": r"^d.* :- ",
    "an axiom": r"^d[^=]*\.$",
    "an item that meets itself": r"(\bd\d\b\(?.*) \* \1",
    **{f"{name} predicates": rf"^:- {name} " for name in ("external", "transient")},
    "a function of values": r"^:- function ",
    "a declared priority": r"^:- priority ",
    "facts that join as declared": r"^:- input .*=\.",
    "facts of what rules define": r"^:- input d.*\d\.",
    "a method for cycles": r"^:- solve ",
}
"""By what is drawn, an expression that matches some line of it."""


def test_what_is_drawn_here_has_every_construct_in_some_program() -> None:
    programs = [program_of(seed) for seed in range(8 * len(KINDS))]
    lines = [line for program, *_ in programs for line in program.source.splitlines()]
    assert [name for name, shape in CONSTRUCTS.items() if not any(re.search(shape, line) for line in lines)] == []
    plain = [program.facts for program, semiring, _ in programs if semiring is None]
    assert any(np.inf in row[-1:] or -np.inf in row[-1:] for facts in plain for rows in facts.values() for row in rows)
    pairs = [program.facts for program, semiring, _ in programs if semiring == "expectation"]
    assert any(isinstance(row[-1][1], tuple) for facts in pairs for rows in facts.values() for row in rows)
    assert any(folded in program.functions.values() for program, *_ in programs)
    assert {(semiring, agenda) for _, semiring, agenda in programs} >= {
        (semiring, agenda) for semiring in ("real", "log", None) for agenda in AGENDAS
    }


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("d log+= e. d log+= tanh(d) + f - 3.", {"e/0": [(-np.inf,)], "f/0": [(0.5,)]}),  # from -inf it goes on
        ("d max= e. goal max= d * f.", {"e/0": [(-np.inf,)], "f/0": [(-1.0,)]}),
        ("d(X) += e(X,_) for X mod 2 == 1, X // 2 == 1.", {"e/2": [(n, "a", 0.5) for n in range(1, 5)]}),
        ("d(X) += e(2*X+1,_).", {"e/2": [(n, "a", 0.5) for n in range(-3, 5)]}),
    ],
)
def test_corners_of_numbers_have_the_values_of_the_oracle(text: str, facts: Facts) -> None:
    for agenda in ("auto", "fifo", "lifo"):
        assert wrong(Program(text, facts), None, agenda) is None


@pytest.mark.parametrize("agenda", sorted({*AGENDAS}))
@pytest.mark.parametrize(
    "text",
    [
        "d += e. d += 0.2 * d / (1 + abs(e)).",
        "d(0) += e. d(1) += e. d(I+1) += d(I) - e for I < 2.",
        "d log+= e - e. d log+= 1 + SIDE(e).",
    ],
)
def test_a_value_that_is_no_number_is_an_error(text: str, agenda: str) -> None:
    with pytest.raises(dg.Error, match=r"NaN|no finite value"):
        run_plan(dg.Program(f":- agenda {agenda}. {text}"), {"e/0": [(-np.inf,)]})


def test_a_division_of_arguments_by_zero_is_an_error() -> None:
    with pytest.raises(dg.ValueRangeError, match="divided by zero"):
        run_plan(dg.Program("d(X) += e(X) for 4 // X > 1."), {"e/1": [(0, 1.0)]})


# -- beside the engine -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unplanned")
@pytest.mark.parametrize(
    ("semiring", "cyclic", "agenda", "cut"),
    [
        ("real", True, "auto", "a group for each table"),
        ("log", True, "auto", "tables in one group"),
        ("tropical", True, "fifo", "rules that share functions"),
        ("expectation", False, "lifo", "rules that share functions"),
        ("closed", True, "auto", "tables in one group"),
        (None, False, "priority", "rules that share functions"),
        (None, True, "auto", "a group for each table"),
    ],
)
def test_random_programs_have_the_items_values_and_gradients_of_the_engine(
    semiring: str | None, cyclic: bool, agenda: str, cut: str
) -> None:
    seed = KINDS.index((semiring, cyclic)) + len(KINDS) * AGENDAS.index(agenda)
    assert judges.check(seed, 6, cut) is None


TIED = (
    Program("goal += a. goal += b.", {"a/0": [(0.5,)], "b/0": [(0.5,)]}),
    Program("goal += a(_).", {"a/1": [("x", 0.25), ("x", 0.5), ("x", 0.5)]}),
    Program("goal += d(_) * 1. d(X) += a(X).", {"a/1": [("x", 0.5), ("y", 0.5), ("z", 0.25)]}),
    Program(
        "d(X) += a(X). d(Y) += d(X) * e(X,Y). goal += d(z).",
        {
            "a/1": [("x", 0.0)],
            "e/2": [("x", "y", -1.0), ("x", "w", -0.5), ("w", "z", -0.5), *((*arc, 0.0) for arc in ("yz", "yy", "yx"))],
        },
    ),
)
"""Programs in which contributions tie, in the chart or as copies of a fact."""


@pytest.mark.parametrize("agenda", ["auto", "fifo", "lifo"])
def test_where_contributions_tie_the_engine_follows_one(agenda: str) -> None:
    together = combined(TIED)
    program = dg.Program(f":- agenda {agenda}.\n{together.source}", "viterbi")
    chart = program.run(together.facts)
    run = run_plan(program, together.facts, run_of(chart).ready().compiled.plan)
    for place in range(len(TIED)):
        assert gradient_difference(run, chart, f"p{place}_goal/0", ()) is None
    first = chart.gradient("p1_goal")["p1_a/1"].values
    assert first.tolist() == [0.0, 1.0, 0.0] == run.gradient("p1_goal/0")["p1_a/1"]


# -- gradients ---------------------------------------------------------------------------------------------------------

ARCS: Facts = {
    "s/1": [("a", 0.5)],
    "e/2": [("a", "b", 0.4), ("b", "c", 0.3), ("c", "a", 0.2), ("b", "b", 0.15), ("c", "d", 0.6), ("a", "d", 0.05)],
}
LOGS: Facts = {key: [(*row[:-1], float(np.log(row[-1]))) for row in rows] for key, rows in ARCS.items()}
PAIRS: Facts = {key: [(*row[:-1], (row[-1], n - 1.5)) for n, row in enumerate(rows)] for key, rows in ARCS.items()}
REACH = "d(V) += s(V). d(V) += d(U) * e(U,V). goal += d(V) * d(V)."
DIFFERENTIABLE: Mapping[str | None, tuple[Program, ...]] = {
    "real": (
        Program("goal += e(X,Y) * e(Y,Z) * 2. goal += s(X) * SIDE(e(X,_)).", ARCS),
        Program(REACH, ARCS),
        Program("d += s(_). d += 0.3 * d * d. goal += d * d.", {"s/1": ARCS["s/1"]}),
        Program(
            ":- input d/1. d(V) += d(U) * e(U,V). goal += d(V) * s(V).",
            {**ARCS, "s/1": [("c", 0.5)], "d/1": [("a", 0.25), ("b", 0.5), ("a", 1.0)]},
        ),
    ),
    "log": (Program(REACH, LOGS), Program("goal += e(X,Y) * e(Y,Z) * -2. goal += s(X) * SIDE(e(X,_)).", LOGS)),
    "viterbi": (Program(REACH, LOGS),),
    "expectation": (Program(REACH, PAIRS),),
    None: (
        Program(
            "p(X) *= e(X,_). l(X) log+= e(X,_) * s(Y). m max= tanh(e(X,Y)) for X != Y. n min= e(X,Y) / s(a). "
            "t |= e(_,_). o(X) = sigmoid(p(X)) + l(X). goal += o(X) * m + lse(n, p(X)) - t. goal += exp(s(X) * m) ^ 2.",
            ARCS,
        ),
        Program("v(X) = tanh(w(X)) + s(X). w(Y) += 0.4 * v(X) * e(X,Y). w(a) += s(a). goal += v(a).", ARCS),
        Program(
            "v(X) = 0.5 * w(X) + s(X). w(Y) += 0.4 * v(X) ^ 2 * e(X,Y). w(a) += 0.5 * s(a). goal += v(a).",
            ARCS,
        ),
        Program("d(V) log+= s(V). d(V) log+= tanh(d(U)) + e(U,V) - 3. goal += d(V) ^ 2.", ARCS),
        Program(
            "b(a) max= s(a). b(Y) max= b(X) - abs(e(X,Y)). goal += b(_) * 2.",  # what is worse arrives while it waits
            {**ARCS, "e/2": [*ARCS["e/2"], ("a", "a", 1.0), ("d", "a", 0.3)]},
        ),
        Program(
            "l(V) min= l(V) + abs(z). l(V) min= s(W) * max(l(U), e(U,V)). l(V) min= s(V). goal += l(_).",  # in rounds
            {**ARCS, "z/0": [(0.0,)]},
        ),
        Program(
            ":- input e/2 *=, s/1 log+=. goal += e(X,Y) * s(X).",
            {"e/2": [("a", "b", 0.5), ("a", "b", 3.0), ("a", "c", 2.0)], "s/1": [("a", 0.5), ("a", -1.0)]},
        ),
    ),
}


def moved(facts: Facts, key: str, place: int, step: float) -> Facts:
    """Facts of which one has another number."""
    rows = list(facts[key])
    *row, value = rows[place]
    rows[place] = (*row, value + step)
    return {**facts, key: rows}


def check_differences(program: dg.Program, facts: Facts) -> None:
    """Holds a gradient against central differences, by one plan."""
    run = run_plan(program, facts)
    found = run.gradient("goal/0")

    def value(key: str, place: int, step: float) -> float:
        (at,) = items(run_plan(program, moved(facts, key, place, step), run.state.plan), "goal/0").values()
        return float(at)

    for key, rows in facts.items():
        for n in range(len(rows)):
            slope = (value(key, n, 1e-5) - value(key, n, -1e-5)) / 2e-5
            assert close(found[key][n], slope, 1e-6), (key, rows[n])


@pytest.mark.parametrize("semiring", DIFFERENTIABLE)
def test_gradients_are_those_of_the_engine(semiring: str | None) -> None:
    programs = DIFFERENTIABLE[semiring]
    together = combined(programs)
    chart = dg.Program(together.source, semiring).run(together.facts)
    for place, program in enumerate(programs):
        found = run_plan(dg.Program(program.source, semiring), program.facts).gradient("goal/0")
        theirs = chart.gradient(f"p{place}_goal")
        for key in program.facts:
            for mine, row in zip(found[key], theirs[f"p{place}_{key}"], strict=True):
                assert close(number(mine), number(row[-1]), 1e-9), (program.source, key, row)


@pytest.mark.parametrize("semiring", [semiring for semiring in DIFFERENTIABLE if semiring != "expectation"])
def test_gradients_are_those_of_differences(semiring: str | None) -> None:
    for program in DIFFERENTIABLE[semiring]:
        check_differences(dg.Program(program.source, semiring), program.facts)


@pytest.mark.parametrize(
    "text",
    [
        f":- semiring real. :- agenda fifo. {REACH}",
        f":- semiring real. :- agenda priority. {REACH}",
        ":- solve iterate. d(V) log+= s(V). d(V) log+= tanh(d(U)) + e(U,V) - 3. goal += d(V) ^ 2.",
    ],
)
def test_gradients_of_what_was_iterated_are_those_of_the_fixed_point(text: str) -> None:
    check_differences(dg.Program(text), ARCS)


@pytest.mark.parametrize("agenda", ["auto", "fifo", "lifo"])
def test_gradients_go_past_values_from_outside(agenda: str) -> None:
    def halved(x: str) -> float:
        return 0.5 + (x == "a")

    text = f":- agenda {agenda}. :- external h/1. d(V) += s(V) * h(V). d(V) += d(U) * e(U,V) * h(U). goal += d(V)^2."
    facts = {"s/1": ARCS["s/1"], "e/2": [(*row[:-1], 0.3 * row[-1]) for row in ARCS["e/2"]]}
    check_differences(dg.Program(text, functions={"h": halved}), facts)


def test_boolean_and_count_have_no_gradient() -> None:
    for semiring in ("boolean", "count"):
        run = run_plan(dg.Program("goal += a(X).", semiring), {"a/1": [("x",)]})
        with pytest.raises(dg.NotDifferentiable, match="there are no derivatives"):
            run.gradient("goal/0")


# -- strategies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        ("goal += s(X) * e(X,_).", Strategy.ONCE),
        (":- semiring real. n(0) = 1. n(I+1) += n(I) * s(a) for I < 5.", Strategy.LEVELS),
        (f":- semiring real. {REACH}", Strategy.SOLVE),
        (f":- semiring tropical. {REACH}", Strategy.HEAP),
        (f":- semiring real. :- agenda fifo. {REACH}", Strategy.QUEUE),
        (f":- semiring real. :- agenda lifo. {REACH}", Strategy.STACK),
        (f":- semiring real. :- priority d(V) = -d(V) + s(a). {REACH}", Strategy.HEAP),
        (":- solve iterate. d(V) log+= s(V). d(V) log+= tanh(d(U)) + e(U,V) - 3.", Strategy.SWEEP),
        ("d(V) &= s(V). d(V) &= d(U) * e(U,V).", Strategy.SOLVE),
    ],
)
def test_every_strategy_runs(text: str, strategy: Strategy) -> None:
    program = dg.Program(text)
    used = {key: rows for key, rows in ARCS.items() if key in context_of(program).rules.predicates}
    run, values = run_plan(program, used), evaluate(parse(text), used)
    assert strategy in {stage.strategy for stage in run.state.plan.stages}
    for key in run.state.plan.stage_of:
        assert differences(items(run, key), {row: value for (k, row), value in values.items() if k == key}, 1e-9) == []


# -- what it does not run ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (":- semiring viterbi. :- prune d(V) < -3. d(V) += s(V).", "pruning"),
        (":- semiring viterbi. :- beam d(V) by () keep 2. d(V) += s(V).", "beams"),
    ],
)
def test_what_it_does_not_run_is_an_error(text: str, what: str) -> None:
    with pytest.raises(dg.Error, match=f"the interpreter of nests does not run {what}"):
        run_plan(dg.Program(text), {"s/1": [("a", 1.0)]})


def test_two_values_of_what_has_one_are_an_error() -> None:
    with pytest.raises(dg.Error, match=r"d/1 has two values, 1\.0 and 2\.0"):
        run_plan(dg.Program("d(X) = e(X,_)."), {"e/2": [("a", "b", 1.0), ("a", "c", 2.0)]})


def test_a_cycle_without_a_finite_value_is_an_error() -> None:
    program = dg.Program("d(V) += s(V). d(V) += d(U) * e(U,V).", "real")
    with pytest.raises(dg.Error, match="no finite value"):
        run_plan(program, {"s/1": [("a", 1.0)], "e/2": [("a", "a", 1.0)]})
