"""Fuzzes plans: random programs in all semirings and under all agendas, run by the interpreter of nests, have the items
and the values that the oracle has. Nothing is compiled: `judges.py` holds the interpreter against the engine.

    PYTHONPATH=src:tests python -m fuzz.nests COUNT [FIRST]
"""

from __future__ import annotations

import functools
import math
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import dynagrad as dg
from charts.test_engine import compiled, drawn, given_facts, visible
from dynagrad.rules import syntax as s
from dynagrad.rules.parse import parse
from interpreted import differences, items, run_plan, seen
from language_cases import SHIFTED, Case, oracle_semiring
from oracle import Conflict, Diverged, evaluate
from random_charts import items_of, with_clauses, with_external, with_function, with_priority, with_text, with_transient
from random_programs import CYCLIC_SEMIRINGS, SEMIRINGS, Draw, Program, is_accepted, joined, plain_cycles

KINDS: tuple[tuple[str | None, bool], ...] = (
    *((semiring, False) for semiring in SEMIRINGS),
    *((semiring, True) for semiring in CYCLIC_SEMIRINGS),
    ("closed", True),
    (None, False),
    (None, True),
)
"""A semiring, and whether there are cycles; None is plain arithmetic, and `closed` is `shifted` with a star."""
AGENDAS = ("auto", "auto", "priority", "fifo", "lifo")


# -- what is drawn -----------------------------------------------------------------------------------------------------


def with_division(program: Program, semiring: str | None, draw: random.Random) -> Program:
    """With a condition on an integer of some rule: divisions, exact ones and such as have no value."""
    rules = []
    for rule in parse(program.source).rules:
        arguments = [a for item in items_of(rule.body) for a in item.arguments]
        whole = sorted({a.name for a in arguments if isinstance(a, s.Variable) and a.name[0] in "IJL"})
        if whole and rule.aggregator != "=":
            rules.append((rule, draw.choice(whole)))
    if not rules:
        return program
    rule, name = draw.choice(rules)
    shapes = [
        "{0} mod 2 == 1",
        "K0 = {0} // 2, K0 < 2",
        "4 // ({0}+1) == 2",
        "{0} = 2*K0",
        "2*K0 = {0}+1",
        "-{0} mod 3 != 0",
    ]
    text = program.source[rule.span.start : rule.span.end].removesuffix(".")
    joint = ", " if " for " in text or " :- " in text else " for "
    text = f"{text}{joint}{draw.choice(shapes).format(name)}."
    source = program.source[: rule.span.start] + text + program.source[rule.span.end :]
    return Program(source, program.facts, program.functions)


def with_infinite_facts(program: Program, semiring: str | None, draw: random.Random) -> Program:
    """With a fact of plain arithmetic that is infinite."""
    keys = sorted(key for key, rows in program.facts.items() if rows)
    if semiring is not None or not keys:
        return program
    key = draw.choice(keys)
    rows = list(program.facts[key])
    place = draw.randrange(len(rows))
    rows[place] = (*rows[place][:-1], draw.choice([math.inf, -math.inf]))
    return Program(program.source, {**program.facts, key: rows}, program.functions)


def with_joins(program: Program, semiring: str | None, draw: random.Random) -> Program:
    """With facts that are given several times, in plain arithmetic, and a declaration of how these join."""
    keys = sorted(key for key, rows in program.facts.items() if rows)
    if semiring is not None or not keys:
        return program
    key = draw.choice(keys)
    values = [row[-1] for row in program.facts[key]]
    copies = [(*row[:-1], draw.choice(values)) for row in draw.choices(program.facts[key], k=3)]
    more = Program(program.source, {**program.facts, key: [*program.facts[key], *copies]}, program.functions)
    return with_text(more, f":- input {key} {draw.choice(['+=', 'log+=', '*=', 'max=', 'min='])}.")


def with_given_items(program: Program, semiring: str | None, draw: random.Random) -> Program:
    """With facts of a predicate that rules define."""
    source = parse(program.source)
    values = [row[-1] for key, rows in program.facts.items() for row in rows if len(row) > int(key.rpartition("/")[2])]
    rules = [rule for rule in source.rules if not rule.head.arguments or all(map(is_ground, rule.head.arguments))]
    if not rules or not values:
        return program
    head = draw.choice(rules).head
    row = tuple(seen(argument) for argument in head.arguments)
    copies = [(*row, draw.choice(values)) for _ in range(draw.randint(1, 2))]
    more = Program(program.source, {**program.facts, head.key: copies}, program.functions)
    return with_text(more, f":- input {head.key}.")


def is_ground(term: s.Term) -> bool:
    """Whether a term of the text is ground."""
    if isinstance(term, s.Compound):
        return all(map(is_ground, term.arguments))
    return isinstance(term, s.Symbol | s.Integer | s.Float)


def with_iteration(program: Program, semiring: str | None, draw: random.Random) -> Program:
    """With cycles that are not solved, or by another method, which some refuse where weights have signs."""
    return with_text(program, f":- solve {draw.choice(['iterate', 'newton'] if semiring == 'log' else ['iterate'])}.")


def with_vectors(program: Program) -> Program:
    """A program in `expectation` with pairs of a number and a vector, where all numbers are those of facts."""
    if ":- external" in program.source:
        return program
    facts = {
        key: [(*row[:-1], (row[-1][0], (row[-1][1], 1.0 - row[-1][0]))) for row in rows]
        for key, rows in program.facts.items()
    }
    return Program(program.source, facts, program.functions)


@dg.compile
def folded(x: float) -> float:
    """A function with a loop and a branch."""
    while 1.0 < x < 1e6:
        x = 0.5 * x
    return x / (1.0 + x * x) if x < 1e6 else 0.0


def with_compiled_function(program: Program, semiring: str | None, draw: random.Random) -> Program:
    """With a function of an item's value, in plain arithmetic, that is more than an expression."""
    more = with_function(program, semiring, draw)
    return more if more is program else Program(more.source, more.facts, {**more.functions, "h0": folded})


ADDED: tuple[tuple[float, Callable[[Program, str | None, random.Random], Program]], ...] = (
    (0.3, lambda program, semiring, draw: with_clauses(program, draw) if semiring is not None else program),
    (0.1, with_compiled_function),
    (0.2, with_function),
    (0.2, with_division),
    (0.15, with_external),
    (0.3, with_transient),
    (0.15, with_priority),
    (0.1, with_infinite_facts),
    (0.4, with_joins),
    (0.2, with_given_items),
    (0.15, with_iteration),
)
"""How often something is added to what `random_programs.py` draws."""


def program_in(draw: Draw, semiring: str | None, cyclic: bool) -> Program:
    """A program with what is added to it, where the language has that."""
    semiring = "shifted" if semiring == "closed" else semiring
    program = plain_cycles(draw) if cyclic and semiring is None else drawn(draw, semiring, cyclic)
    chance = random.Random(draw.whole(0, 10**9))
    for share, add in ADDED:
        if chance.random() < share and is_accepted(more := add(program, semiring, chance), semiring):
            program = more
    if semiring is not None:
        return program
    return Program(program.source, joined(program.source, dict(program.facts), program.functions), program.functions)


@functools.lru_cache(maxsize=4)
def program_of(seed: int) -> tuple[Program, str | None, str]:
    """The program of that number, its semiring, and its agenda."""
    semiring, cyclic, agenda = kind_of(seed)
    program = program_in(Draw(f"nests {seed}"), semiring, cyclic)
    vectors = semiring == "expectation" and agenda == "auto"
    return with_vectors(program) if vectors else program, semiring, agenda


def kind_of(seed: int) -> tuple[str | None, bool, str]:
    """The kind of a number, and an agenda: numbers in a row have all of either."""
    return *KINDS[seed % len(KINDS)], AGENDAS[seed // len(KINDS) % len(AGENDAS)]


# -- what is compared --------------------------------------------------------------------------------------------------


def checked(program: Program | Case, semiring: str | None, agenda: str) -> dg.Program:
    """A program as the engine has it, which compiles nothing yet."""
    if semiring != "closed":
        return compiled(program.source, semiring, agenda, program.functions)
    ring = dg.Semiring(**SHIFTED, star=lambda a: -1.0 / a - 1.0)
    return dg.Program(f":- agenda {agenda}.\n{program.source}", semiring=ring, functions=dict(program.functions))


class NoNumber(Exception):
    """By the oracle a value is no number."""


def wrong(program: Program | Case, semiring: str | None, agenda: str) -> str | None:
    """What the interpreter makes of a program that the oracle does not."""
    source = parse(program.source)
    ring = oracle_semiring("shifted" if semiring == "closed" else semiring)
    values = evaluate(source, program.facts, semiring=ring, functions=dict(program.functions))
    compared = checked(program, semiring, agenda)
    keys = visible(source)
    if semiring is None and any(math.isnan(value) for (key, _), value in values.items() if key in keys):
        if not refused(compared, program):
            return "a value is NaN, and that is no error"
        raise NoNumber
    run = run_plan(compared, given_facts(program.facts))
    for key in keys:
        theirs = {row: value for (k, row), value in values.items() if k == key}
        if found := differences(items(run, key), theirs, 1e-9):
            return f"{key}: {found[0]}"
    return None


def refused(compared: dg.Program, program: Program | Case) -> bool:
    """Whether the interpreter says that a value is no number."""
    try:
        run_plan(compared, given_facts(program.facts))
    except dg.Error as error:
        return "NaN" in str(error) or "no finite value" in str(error)
    return False


def judged_by_oracle(program: Program, semiring: str | None, agenda: str) -> tuple[str, str | None]:
    """Whether the interpreter runs a program right or wrong, or there are no values to compare; and what is wrong."""
    try:
        said = wrong(program, semiring, agenda)
    except (Conflict, Diverged, NoNumber, OverflowError):
        return "without values", None
    except dg.Error as error:
        # an agenda may take any number of pops, and Python's least of a number and NaN may be either
        infinite = semiring is None and any(math.inf in map(abs, row[-1:]) for row in _valued(program))
        if "settle" in str(error) or ("NaN" in str(error) and infinite):
            return "without values", None
        said = f"{type(error).__name__}: {error}"
    return ("wrong", f"{semiring}, {agenda}: {said} in {program}") if said else ("right", None)


def _valued(program: Program) -> Iterator[tuple[Any, ...]]:
    """The facts that have a number."""
    return (row for key, rows in program.facts.items() for row in rows if len(row) > int(key.rpartition("/")[2]))


def check(seed: int) -> str | None:
    """What is wrong with the program of that number, or nothing."""
    return judged_by_oracle(*program_of(seed))[1]


def main(count: int, first: int = 0) -> int:
    """Tries so many programs, and prints what is wrong."""
    warnings.simplefilter("ignore")
    began, verdicts = time.monotonic(), Counter[str]()
    for seed in range(first, first + count):
        verdict, said = judged_by_oracle(*program_of(seed))
        verdicts[verdict] += 1
        if said:
            print(f"{seed}: {said}", flush=True)
        if (seed + 1) % 1000 == 0:
            print(f"{seed + 1}: {dict(verdicts)}, {time.monotonic() - began:.0f} s", flush=True)
    return min(1, verdicts["wrong"])


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
