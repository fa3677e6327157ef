"""The engine against the oracle: hand-written cases and generated programs, every semiring, every order of the agenda.

Compiling costs far more than running these programs, so many programs share one source, each with names of its own.
Failures are reported program by program, the shortest first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pytest

import dynagrad as dg
from dynagrad.rules import syntax as s
from dynagrad.rules.parse import parse
from language_cases import CASES, SHIFTED, Case, oracle_semiring
from oracle import Real, Struct, close, evaluate, term, zero_of
from random_programs import (
    CYCLIC_SEMIRINGS,
    SEMIRINGS,
    Draw,
    Program,
    combined,
    in_range,
    plain_program,
    semiring_program,
)

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

AGENDAS = ("auto", "priority", "fifo", "lifo")
# A longer search than the suite has time for: DYNAGRAD_SEEDS=20 pytest tests/charts/test_engine.py
SEEDS = range(int(os.environ.get("DYNAGRAD_SEEDS", "1")))


# -- the engine, as the oracle sees it -------------------------------------------------------------------------------


def given_term(value: Any) -> Any:
    """An oracle's term as the engine takes it in a row."""
    if isinstance(value, Struct):
        return dg.Term(value.functor, *map(given_term, value.arguments))
    return value.value if isinstance(value, Real) else value


def given_facts(facts: Mapping[str, Any]) -> dict[str, list[tuple[Any, ...]]]:
    """Facts as the engine takes them; their values are left as they are."""
    result = {}
    for key, rows in facts.items():
        arity = int(key.rsplit("/", 1)[1])
        result[key] = [(*map(given_term, row[:arity]), *row[arity:]) for row in rows]
    return result


def compiled(source: str, semiring: str | None, agenda: str, functions: Mapping[str, Callable[..., Any]]) -> Any:
    """The engine's program for a source without declarations of semiring and agenda."""
    text = f":- agenda {agenda}.\n{source}"
    if semiring == "shifted":
        return dg.Program(text, semiring=dg.Semiring(**SHIFTED), functions=dict(functions))
    return dg.Program(text, semiring=semiring, functions=dict(functions))


def derived(chart: Any, key: str) -> dict[Any, Any]:
    """All derived items of a predicate and their values."""
    name, arity = key.rsplit("/", 1)
    arguments = ",".join(f"X{i}" for i in range(int(arity)))
    rows = [tuple(row) for row in chart.query(f"{name}({arguments})" if arguments else name)]
    result = {tuple(map(term, row[:-1])): row[-1] for row in rows}
    assert len(result) == len(rows), f"{key} lists an item twice"
    return result


def visible(source: s.Source) -> list[str]:
    """The predicates with stored items that rules define."""
    hidden = {
        key
        for d in source.declarations
        if isinstance(d, s.PredicateDeclaration) and d.kind == "transient"
        for key in d.keys
    }
    return sorted({rule.head.key for rule in source.rules} - hidden)


def differences(chart: Any, program: Any, semiring: str | None, prefix: str = "") -> list[str]:
    """Where a chart and the oracle disagree about a program whose names got a prefix."""
    source = parse(program.source)
    ring = oracle_semiring(semiring)
    values = evaluate(source, program.facts, semiring=ring, functions=dict(program.functions))
    found = []
    for key in visible(source):
        mine = {row: value for (k, row), value in values.items() if k == key}
        theirs = derived(chart, prefix + key)
        found += [f"{key}{row} is not derived but has {theirs[row]}" for row in theirs.keys() - mine.keys()]
        found += [f"{key}{row} is missing, should be {mine[row]}" for row in mine.keys() - theirs.keys()]
        found += [
            f"{key}{row} is {theirs[row]}, should be {mine[row]}"
            for row in mine.keys() & theirs.keys()
            if not close(theirs[row], mine[row])
        ]
    return found


def check(programs: Sequence[Any], semiring: str | None, agenda: str) -> None:
    """Run programs side by side and compare each with the oracle."""
    together = combined(programs)
    try:
        chart = compiled(together.source, semiring, agenda, together.functions).run(given_facts(together.facts))
    except dg.Error:
        for program in sorted(programs, key=lambda p: len(p.source)):  # which of them is it?
            try:
                compiled(program.source, semiring, agenda, program.functions).run(given_facts(program.facts))
            except dg.Error as error:
                raise AssertionError(f"{agenda}, {semiring}: {program}\nfails: {error}") from error
        raise
    wrong = [(p, differences(chart, p, semiring, f"p{number}_")) for number, p in enumerate(programs)]
    failed = sorted(((p, d) for p, d in wrong if d), key=lambda pair: len(pair[0].source))
    assert not failed, (
        f"{agenda}, {semiring}: {len(failed)} of {len(programs)} differ, such as {failed[0][0]}\n"
        + "\n".join(failed[0][1])
    )


# -- cases -----------------------------------------------------------------------------------------------------------

COMBINABLE = {
    semiring: [case for case in CASES if case.semiring == semiring and not case.declared]
    for semiring in dict.fromkeys(case.semiring for case in CASES)
}


@cache
def _cases_chart(semiring: str | None) -> Any:
    """All cases of a semiring; those of `real`, which are the most, and plain ones compiled as users have it."""
    together = combined(COMBINABLE[semiring])
    with pytest.MonkeyPatch.context() as patch:
        if semiring in ("real", None):
            patch.setenv("DYNAGRAD_OPTIMISE", "3")
        return compiled(together.source, semiring, "auto", together.functions).run(given_facts(together.facts))


@pytest.mark.parametrize("case", [case for case in CASES if not case.declared], ids=lambda case: case.name)
def test_cases_have_the_answers_worked_out_by_hand(case: Case) -> None:
    prefix = f"p{COMBINABLE[case.semiring].index(case)}_"
    chart = _cases_chart(case.semiring)
    assert not differences(chart, case, case.semiring, prefix)
    source = parse(case.source)
    for item, value in case.expected.items():
        assert close(chart[prefix + item], value), item
    for key in case.empty:
        assert derived(chart, prefix + key) == {}
    for key in {rule.head.key for rule in source.rules if not rule.head.arguments}:
        name = key.removesuffix("/0")
        if name not in case.expected and key in visible(source):
            assert close(chart[prefix + name], zero_of(source, key, oracle_semiring(case.semiring)))


@pytest.mark.parametrize("case", [case for case in CASES if case.declared], ids=lambda case: case.name)
def test_cases_that_declare_their_semiring(case: Case) -> None:
    chart = dg.Program(case.source).run(given_facts(case.facts))
    for item, value in case.expected.items():
        assert close(chart[item], value), item


# -- generated programs ----------------------------------------------------------------------------------------------


def drawn(draw: Draw, semiring: str | None, cyclic: bool) -> Program:
    if semiring is None:
        return plain_program(draw)
    return semiring_program(draw, semiring, cyclic, oracle_semiring(semiring))


@cache
def generated(semiring: str | None, cyclic: bool, count: int = 16, number: int = 0) -> tuple[Program, ...]:
    """Of so many programs those that differ and in which something is derived; the same ones for the same number."""
    draw, kept = Draw(f"{semiring} {cyclic} {number}"), dict[str, Program]()
    for _ in range(count):
        program = drawn(draw, semiring, cyclic)
        source = parse(program.source)
        heads = set(visible(source))
        values = evaluate(source, program.facts, semiring=oracle_semiring(semiring))
        if semiring == "count" and not in_range(values.values()):
            continue  # too large to be counted, which is an error
        if any(key in heads for key, _ in values):
            kept[program.source] = program
    return tuple(kept.values())


# Each order with a plus that adds, one that selects, pairs or truth, and plain arithmetic; with more seeds, with all.
OF_ORDERS = {
    "priority": ("real", "tropical", "expectation", "shifted", None),
    "fifo": ("real", "log", "viterbi", "boolean", None),
    "lifo": ("real", "viterbi", "count", "expectation", "shifted", None),
}
RUNS = [
    (semiring, agenda)
    for semiring in (*SEMIRINGS, None)
    for agenda in AGENDAS
    if len(SEEDS) > 1 or semiring in OF_ORDERS.get(agenda, (semiring,))
]


@pytest.mark.parametrize(("semiring", "agenda"), RUNS, ids=str)
def test_engine_agrees_with_the_oracle(semiring: str | None, agenda: str) -> None:
    """A share of the generated programs, and of the cases for orders other than `auto`; with more seeds, all."""
    for number in SEEDS:
        if len(SEEDS) == 1:
            check(share(semiring, agenda), semiring, agenda)
        else:
            check([*COMBINABLE.get(semiring, []), *of_all_kinds(semiring, number)], semiring, agenda)


def of_all_kinds(semiring: str | None, number: int = 0) -> list[Any]:
    """Generated programs without cycles, and with, where the semiring has them."""
    programs = [*generated(semiring, False, number=number)]
    programs += generated(semiring, True, number=number) if semiring in CYCLIC_SEMIRINGS else ()
    assert len(programs) > 10
    return programs


def share(semiring: str | None, agenda: str) -> list[Any]:
    """The programs that are run under an order of the agenda: of all, the cases aside, as those are tested above.

    Each case is run under one of the other orders that a semiring has.
    """
    place, programs = AGENDAS.index(agenda), of_all_kinds(semiring)
    if agenda == "auto":
        return programs[::4]
    others = [order for ring, order in RUNS if ring == semiring and order != "auto"]
    return [*COMBINABLE.get(semiring, [])[others.index(agenda) :: len(others)], *programs[place::8]]
