"""Asks everything of random programs: values, changes, derivatives, derivations, pickles, against oracles.

    PYTHONPATH=src:tests python tests/random_charts.py SECONDS [FIRST]

One input is some programs in one class, of which a number draws the semiring, the agenda, what is done about cycles,
and the limits. To what `tests/random_programs.py` draws are added clauses, functions, external and transient
predicates, beams and thresholds that let everything through, and priorities. Their facts come in drawn forms (rows,
dicts, arrays, frames, files), spread over `bind`, `run` and `add`, some as probabilities.
After the run, and after each of some changes, everything is compared with what the facts say that are there then:

- which items are derived and their values, with `tests/oracle.py`;
- the order and the shape of gradients and directions, with the rows that were given;
- gradients along a direction, with `jvp`, and with differences of the oracle's values in 50 digits;
- derivations, best and k best, counts, draws, marginals, reasons, with those of `tests/derivation_oracle.py`;
- what was pickled, with what was not.

At its end it says which shares of the programs had what: `SHARES` has the least, to which `tests/fuzz/test_fuzz.py`
holds what is drawn. `tests/fuzz/charts.py` is the fuzzer of this, of which the suite runs a few inputs.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import random
import re
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

import dynagrad as dg
from charts.test_engine import compiled, derived, generated, given_term, oracle_semiring, visible
from derivation_oracle import Ground, TooMany, grounded
from dynagrad.rules import syntax as s
from dynagrad.rules.parse import parse
from oracle import Conflict, Diverged, Key, Numbers, _evaluate, aggregator_of, close, evaluate, term
from random_derivations import (
    CYCLIC_SEMIRINGS,
    check_item,
    check_sums,
    derivable,
    fact_of,
    item_of,
)
from random_programs import Program, combined, joined

SEMIRINGS = ("real", "log", "viterbi", None, "tropical", "boolean", "count", "expectation", None)
AGENDAS = ("auto", "auto", "auto", "priority", "fifo", "lifo")
DIFFERENTIABLE = ("real", "log", "viterbi", "tropical", None)
PROBABILITIES: dict[str | None, Callable[[float], float]] = {
    "log": math.exp,
    "viterbi": math.exp,
    "tropical": lambda cost: math.exp(-cost),
}
"""The probability that a number of a semiring stands for."""
TOGETHER = 8
"""How many programs are drawn for one class."""
CHANGES = 3
SOLVE = ("auto", "auto", "iterate", "iterate", "newton")
SHARES = {
    "accepted": 0.8,
    "cycles": 0.1,
    "negation": 0.1,
    "aggregates": 0.1,
    "clauses": 0.1,
    "gradients": 0.1,
    "compound terms": 0.1,
    "copies of facts": 0.1,
    "external predicates": 0.05,
    "functions": 0.05,
    "transient predicates": 0.05,
    "beams": 0.05,
    "thresholds": 0.05,
    "priorities": 0.05,
}
"""The least share of the accepted programs that has something; of `accepted`, of all that is drawn."""
STEP = mpmath.mpf("1e-20")

Row = tuple[Any, ...]


# -- facts as they stand in a chart -----------------------------------------------------------------------------------


def same(a: Row, b: Row) -> bool:
    """Whether arguments are the same terms: 1.0 is not 1."""
    return tuple(map(term, a)) == tuple(map(term, b))


@dataclass
class Held:
    """The rows of a predicate that a chart has, in their order: arguments, and a value or None."""

    key: str
    rows: list[tuple[Row, Any]] = field(default_factory=list)

    @property
    def arity(self) -> int:
        return int(self.key.rsplit("/", 1)[1])

    def add(self, rows: Sequence[tuple[Row, Any]]) -> None:
        self.rows += rows

    def retract(self, arguments: Row) -> None:
        self.rows = [row for row in self.rows if not same(row[0], arguments)]

    def set(self, arguments: Row, value: Any) -> None:
        """The new row stands where the first of its copies stood, or last."""
        places = [n for n, row in enumerate(self.rows) if same(row[0], arguments)]
        if not places:
            self.rows.append((arguments, value))
            return
        self.rows[places[0]] = (arguments, value)
        self.rows = [row for n, row in enumerate(self.rows) if n not in places[1:]]


def flat(rows: Sequence[tuple[Row, Any]]) -> list[Row]:
    return [arguments if value is None else (*arguments, value) for arguments, value in rows]


# -- forms ------------------------------------------------------------------------------------------------------------


def form(draw: random.Random, rows: Sequence[Row], arity: int, folder: Path, key: str, alike: bool) -> Any:
    """Rows of the engine's terms and numbers in a form that can hold them; they keep their order.

    `alike` says that no column of the program has integers beside others, which a file cannot tell apart.
    """
    valued = all(len(row) == arity + 1 for row in rows)
    numeric = valued and all(isinstance(row[-1], int | float) and not isinstance(row[-1], bool) for row in rows)
    columns = [[row[i] for row in rows] for i in range(arity)]
    whole = all(type(x) is int for column in columns for x in column)
    plain = all(all(type(x) is int for x in c) or all(type(x) is str and x.isalpha() for x in c) for c in columns)
    forms: list[Callable[[], Any]] = [lambda: list(rows), lambda: iter(list(rows)), lambda: tuple(map(list, rows))]
    if (
        rows
        and numeric
        and len({tuple(map(term, row[:-1])) for row in rows}) == len({row[:-1] for row in rows}) == len(rows)
        and arity
    ):
        forms.append(lambda: {row[:-1]: row[-1] for row in rows})
    if rows and numeric and whole and arity:
        forms.append(lambda: (np.array(columns, np.int64).T, np.array([float(row[-1]) for row in rows])))
        dense = _dense(rows, arity)
        if dense is not None:
            forms += [lambda: dense] * 2
    if rows and numeric and plain and arity:
        named = {f"c{i}": c for i, c in enumerate([*columns, [row[-1] for row in rows]])}

        def pandas() -> Any:
            import pandas as pd

            return pd.DataFrame(named)

        def polars() -> Any:
            import polars as pl

            return pl.DataFrame(named)

        def arrow() -> Any:
            import pyarrow as pa

            return pa.table(named)

        def file() -> Any:
            place = folder / f"{key.replace('/', '_')}_{draw.randrange(10**9)}.tsv"
            place.write_text("".join("\t".join(map(_written, row)) + "\n" for row in rows))
            return dg.read_file(place, key)

        forms += [pandas, polars, arrow]
        if alike or not any(type(x) is int for column in columns for x in column):
            forms += [file, file]
    return draw.choice(forms)()


def _written(entry: Any) -> str:
    return repr(entry) if isinstance(entry, float) else str(entry)


def _dense(rows: Sequence[Row], arity: int) -> Any:
    """The same as an array, if the rows are all cells of one, in their order."""
    shape = tuple(1 + max(row[i] for row in rows) for i in range(arity))
    if math.prod(shape) != len(rows) or [row[:-1] for row in rows] != list(np.ndindex(*shape)):
        return None
    return np.array([float(row[-1]) for row in rows]).reshape(shape)


# -- one input --------------------------------------------------------------------------------------------------------


@dataclass
class Input:
    """Programs of one class, what was drawn for them, and the facts that their chart has."""

    number: int
    semiring: str | None
    agenda: str
    programs: tuple[Program, ...]
    probabilities: bool
    solve: str = "auto"
    had: Counter[str] = field(default_factory=Counter)  # how many of the programs have what
    held: dict[str, Held] = field(default_factory=dict)  # by the keys of the combined program
    source: Any = None  # the combined program, compiled
    count: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def facts_of(self, place: int) -> dict[str, list[Row]]:
        """The facts of one of the programs, as its oracle takes them."""
        prefix = f"p{place}_"
        return {k.removeprefix(prefix): flat(h.rows) for k, h in self.held.items() if k.startswith(prefix) and h.rows}

    @property
    def name(self) -> str:
        return f"{self.semiring}, {self.agenda}, solve {self.solve}, input {self.number}"

    def say(self, place: int, text: str) -> None:
        self.count["wrong"] += 1
        program = Program(self.programs[place].source, self.facts_of(place))
        self.wrong.append(f"{self.name}, p{place}: {text}\n{program}")

    @contextlib.contextmanager
    def tried(self, place: int, what: str) -> Iterator[None]:
        """Counts what was compared; notes what was wrong, and goes on."""
        try:
            yield
            self.count[what] += 1
        except (TooMany, Diverged, Conflict, OverflowError):
            self.count[f"{what}: not judged"] += 1
        except Exception as error:
            self.say(place, f"{what}: {type(error).__name__}: {error}")


def with_clauses(program: Program, draw: random.Random) -> Program:
    """The program with the rules of one predicate as clauses: `d(X) += a(X) * SIDE(b) for X < 3.` says `d(X) :- ...`.

    Its items are worth one then. Of a predicate with constants in its rules nothing changes.
    """
    lines = program.source.split("\n")
    names = sorted({line.split("(")[0].split(" ")[0].rstrip(".") for line in lines})
    for name in draw.sample(names, len(names)):
        found = [_as_clause(line) if line.split("(")[0].split(" ")[0] == name else line for line in lines]
        if found != lines and None not in found:
            return Program("\n".join(filter(None, found)), program.facts, program.functions)
    return program


def _as_clause(line: str) -> str | None:
    """A rule as a clause; None where it has a constant."""
    head, plus, rest = line.partition(" += ")
    if not plus:
        return line
    body, _, conditions = rest.removesuffix(".").partition(" for ")
    factors = [re.sub(r"^SIDE\((.*)\)$", r"\1", factor) for factor in body.split(" * ")]
    if any(factor[0] in "-0123456789" for factor in factors):
        return None
    return f"{head} :- {', '.join([*factors, *filter(None, [conditions])])}."


def _headed(program: Program) -> dict[str, int]:
    """The names of predicates with rules that are not facts of the text, and their arities."""
    rules = [rule for rule in parse(program.source).rules if rule.conditions or not _is_constant(rule.body)]
    return {rule.head.predicate: len(rule.head.arguments) for rule in rules}


def _is_constant(expression: s.Expression) -> bool:
    if isinstance(expression, s.Application):
        return all(map(_is_constant, expression.operands))
    return isinstance(expression, s.Numeral)


def _of_head(program: Program, draw: random.Random, least: int = 1) -> tuple[str, list[str]] | None:
    """A predicate of rules as an item with variables, and these."""
    heads = [(name, arity) for name, arity in _headed(program).items() if arity >= least]
    if not heads:
        return None
    name, arity = draw.choice(heads)
    variables = [f"V{i}" for i in range(arity)]
    return f"{name}({','.join(variables)})", variables


def with_text(program: Program, text: str, functions: Mapping[str, Callable[..., Any]] | None = None) -> Program:
    return Program(f"{text}\n{program.source}", program.facts, {**program.functions, **(functions or {})})


def with_beam(program: Program, semiring: str | None, draw: random.Random) -> Program:
    """With a beam that lets everything through."""
    found = _of_head(program, draw)
    if found is None:
        return program
    item, variables = found
    group = draw.sample(variables, draw.randint(1, len(variables)))
    return with_text(program, f":- beam {item} by ({','.join(group)}) keep 1000000.")


def with_threshold(program: Program, semiring: str | None, draw: random.Random) -> Program:
    """With a threshold that lets everything through."""
    found = _of_head(program, draw)
    if found is None or semiring in ("boolean", "expectation"):
        return program
    return with_text(program, f":- prune {found[0]} {'< -1e300' if semiring == 'tropical' else '> 1e300'}.")


def with_priority(program: Program, semiring: str | None, draw: random.Random) -> Program:
    """With a priority, by arguments that are integers wherever there are rules for the predicate."""
    found = _of_head(program, draw)
    if found is None:
        return program
    item, variables = found
    heads = [r.head.arguments for r in parse(program.source).rules if item.startswith(f"{r.head.predicate}(")]
    whole = [v for i, v in enumerate(variables) if all(_is_whole(arguments[i]) for arguments in heads)]
    shapes = ["{0}", "-{0}", "2*{0}-{1}", "{0}*{1}"] if whole else ["1", "0.5"]
    return with_text(program, f":- priority {item} = {draw.choice(shapes).format(*(draw.choice(whole or ['']),) * 2)}.")


def _is_whole(argument: Any) -> bool:
    named = isinstance(argument, s.Variable) and argument.name[0] in "IJL"
    return named or isinstance(argument, s.Integer | s.Arithmetic)


def with_transient(program: Program, semiring: str | None, draw: random.Random) -> Program:
    """With a predicate that is never stored, of those that other rules use."""
    if semiring is None and draw.random() < 0.7:
        return program  # most aggregators of plain arithmetic do not distribute over what stands around the item
    below = _below(program)
    rules = parse(program.source).rules
    tested = {c.item.key for r in rules for c in r.conditions if isinstance(c, s.Negation)}
    tested |= {i.key for r in rules for i in items_of(r.body, sides=True)}
    used = {i.key for r in rules for i in items_of(r.body)}
    found = sorted(key for key in below if key in used - tested and key not in _reached(below, key))
    return with_text(program, f":- transient {draw.choice(found)}.") if found else program


def _below(program: Program) -> dict[str, set[str]]:
    """The predicates on the right of the rules of each."""
    below: dict[str, set[str]] = {}
    for rule in parse(program.source).rules:
        below.setdefault(rule.head.key, set()).update(i.key for i in items_of(rule.body))
    return below


def _reached(below: Mapping[str, set[str]], key: str) -> set[str]:
    """The predicates that one is derived from."""
    seen, new = set[str](), [key]
    while new:
        more = below.get(new.pop(), set()) - seen
        seen |= more
        new += more
    return seen


def items_of(expression: s.Expression, *, sides: bool = False) -> list[s.Item]:
    """The items of a right side, or those of which it only asks whether they are derived."""
    if isinstance(expression, s.ItemValue | s.Side):
        return [expression.item] if not sides or isinstance(expression, s.Side) else []
    operands = expression.operands if isinstance(expression, s.Application) else ()
    return [i for operand in operands for i in items_of(operand, sides=sides)]


@dataclass(frozen=True)
class Outer:
    """The function of an external predicate: one of a few values, by its arguments."""

    values: tuple[Any, ...]

    def __call__(self, *arguments: Any) -> Any:
        return self.values[zlib.crc32(repr(tuple(map(term, arguments))).encode()) % len(self.values)]


OUTER: dict[str | None, tuple[Any, ...]] = {
    "real": (0.5, 1.0, 0.25),
    "log": (-0.5, 0.0, -1.25),
    "viterbi": (-0.5, 0.0, -1.25),
    "tropical": (0.5, 0.0, 1.25),
    "boolean": (True,),
    "count": (1, 2),
    "expectation": ((0.5, 1.0), (1.0, 0.0)),
    "shifted": (-0.75, 0.0, -1.0),
    None: (0.5, 1.0, 0.25),
}


def with_external(program: Program, semiring: str | None, draw: random.Random) -> Program:
    """With an external predicate behind the items of a rule, whose arguments are some that they know."""
    places = []
    for rule in parse(program.source).rules:
        items = items_of(rule.body)
        known = sorted({a.name for i in items for a in i.arguments if isinstance(a, s.Variable) and a.name[0] != "_"})
        if known and rule.aggregator != "=":
            places.append((max(i.span.end for i in items), rule, draw.sample(known, draw.randint(1, len(known)))))
    if not places:
        return program
    _, rule, arguments = draw.choice(places)
    text = program.source[rule.span.start : rule.span.end]
    outer = f"x0({','.join(arguments)})"
    if " :- " in text:
        new = text.replace(" :- ", f" :- {outer}, ", 1)
    else:
        operator = f" {rule.aggregator} "
        new = text.replace(operator, f"{operator}{outer} * ", 1)
    source = program.source[: rule.span.start] + new + program.source[rule.span.end :]
    text = f":- external x0/{len(arguments)}."
    return with_text(Program(source, program.facts, program.functions), text, {"x0": Outer(OUTER[semiring])})


def squash(x: Any) -> Any:
    return x / (1.0 + x * x)


def with_function(program: Program, semiring: str | None, draw: random.Random) -> Program:
    """With a function of an item's value, in plain arithmetic."""
    values: list[s.Item] = []

    def walk(expression: s.Expression) -> None:
        if isinstance(expression, s.ItemValue) and expression.item.predicate[0] in "ed":
            values.append(expression.item)
        elif isinstance(expression, s.Application):
            for operand in expression.operands:
                walk(operand)

    for rule in parse(program.source).rules:
        walk(rule.body)
    if semiring is not None or not values:
        return program
    item = draw.choice(values).span
    source = f"{program.source[: item.start]}h0({program.source[item.start : item.end]}){program.source[item.end :]}"
    functions = {**program.functions, "h0": squash}
    facts = joined(f":- function h0/1.\n{source}", {key: list(rows) for key, rows in program.facts.items()}, functions)
    return with_text(Program(source, facts, functions), ":- function h0/1.")


ADDED: tuple[tuple[float, Callable[[Program, str | None, random.Random], Program]], ...] = (
    (0.4, lambda program, semiring, draw: with_clauses(program, draw) if semiring is not None else program),
    (0.4, with_function),
    (0.15, with_external),
    (0.9, with_transient),
    (0.15, with_beam),
    (0.2, with_threshold),
    (0.15, with_priority),
)


def features(program: Program, semiring: str | None, cyclic: bool) -> set[str]:
    """What a program has, of that of which shares are counted; `cyclic` is how it was drawn."""
    source = parse(program.source)
    below = _below(program)
    arities = {key: int(key.rsplit("/", 1)[1]) for key in program.facts}
    terms = [row[: arities[key]] for key, rows in program.facts.items() for row in rows]
    aggregators = {rule.aggregator for rule in source.rules} - {"+=", None}
    declared = {
        ":- external": "external predicates",
        ":- function": "functions",
        ":- transient": "transient predicates",
        ":- beam": "beams",
        ":- prune": "thresholds",
        ":- priority": "priorities",
    }
    found = {
        "cycles": any(key in _reached(below, key) for key in below if cyclic or key == "best/1"),
        "negation": any(isinstance(c, s.Negation) for rule in source.rules for c in rule.conditions),
        "aggregates": semiring is None and bool(aggregators),
        "clauses": any(re.search(r"^[a-z].* :- ", line) for line in program.source.split("\n")),
        "gradients": semiring in DIFFERENTIABLE,
        "compound terms": bool(re.search(r"\[|\b[fg]\(", program.source))
        or any(not isinstance(x, str | int | float) for row in terms for x in row),
        "copies of facts": any(
            len({row[: arities[key]] for row in rows}) < len(rows) for key, rows in program.facts.items()
        ),
        **{name: text in program.source for text, name in declared.items()},
    }
    return {name for name, there in found.items() if there}


def accepted(program: Program, semiring: str | None) -> str:
    """Why a program is refused; nothing where it is not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled(program.source, semiring, "auto", program.functions)
    except dg.Error as error:
        return str(error).split("\n")[0]
    return ""


def alike(program: Program) -> bool:
    """Whether columns of integers cannot meet other terms in rules."""
    arguments = [x for key, rows in program.facts.items() for row in rows for x in row[: int(key.rsplit("/", 1)[1])]]
    plain = all(type(x) is int or (type(x) is str and x.isalpha()) for x in arguments)
    return plain and not re.search(r"'|[=(,] ?-?\d+\.\d|\[|[fg]\(|2147483648", program.source)


def has_constants(program: Program) -> bool:
    """Whether the text has numbers that `values=` would convert, too."""

    def numerals(expression: s.Expression) -> bool:
        if isinstance(expression, s.Numeral):
            return True
        return isinstance(expression, s.Application) and any(map(numerals, expression.operands))

    return any(numerals(rule.body) for rule in parse(program.source).rules)


def positive(program: Program) -> Program:
    facts = {}
    for key, rows in program.facts.items():
        arity = int(key.rsplit("/", 1)[1])
        facts[key] = [(*row[:arity], *map(abs, row[arity:])) for row in rows]
    return Program(program.source, facts, program.functions)


def drawn(number: int, count: int = TOGETHER) -> Input | None:
    """The programs of a number; None where nothing is derived in any."""
    draw = random.Random(f"charts {number}")
    semiring = SEMIRINGS[number % len(SEMIRINGS)]
    cyclic = semiring in CYCLIC_SEMIRINGS and draw.random() < 0.5
    programs, had = list(generated(semiring, cyclic, count, 100_000 + number)), Counter[str]()
    for share, added in ADDED:
        programs = [added(p, semiring, draw) if draw.random() < share else p for p in programs]
    if semiring is None:
        programs = [Program(p.source, joined(p.source, dict(p.facts), p.functions), p.functions) for p in programs]
    refused = [accepted(p, semiring) for p in programs]
    had += Counter({"drawn": len(programs)}) + Counter(f"refused: {why}" for why in refused if why)
    programs = [p for p, why in zip(programs, refused, strict=True) if not why]
    if semiring == "real" and draw.random() < 0.6:  # weights that are chances, too
        programs = [positive(p) for p in programs]
    probabilities = semiring in PROBABILITIES and draw.random() < 0.4
    if probabilities:
        programs = [p for p in programs if not has_constants(p)]
    if not programs:
        return None
    had["accepted"] += len(programs)
    for program in programs:
        had.update(features(program, semiring, cyclic))
    solve, agenda = draw.choice(SOLVE) if cyclic else "auto", draw.choice(AGENDAS)
    had.update({f"solve {solve}": len(programs), f"agenda {agenda}": len(programs), str(semiring): len(programs)})
    return Input(number, semiring, agenda, tuple(programs), probabilities, solve, had)


def run(given: Input, draw: random.Random, folder: Path) -> Any:
    """The chart of an input, whose facts came in pieces."""
    together = combined(given.programs)
    text = f":- solve {given.solve}.\n{together.source}"
    program = given.source = compiled(text, given.semiring, given.agenda, together.functions)
    pieces: list[dict[str, list[tuple[Row, Any]]]] = [{}, {}, {}]
    for key, rows in together.facts.items():
        held = given.held[key] = Held(key)
        way = draw.choice([(1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 1, 1), (0, 1, 1)])
        split = [(row[: held.arity], row[held.arity] if len(row) > held.arity else None) for row in rows]
        parts: list[list[tuple[Row, Any]]] = [[], [], []]
        for row in split:
            parts[draw.choice([n for n, used in enumerate(way) if used])].append(row)
        for n, part in enumerate(parts):
            if part:
                pieces[n][key] = part
            held.add(part if n < 2 else [])

    def shaped(piece: Mapping[str, list[tuple[Row, Any]]]) -> tuple[dict[str, Any], str]:
        as_ = values_of(given, [row for rows in piece.values() for row in rows], draw)
        return {k: formed(given, draw, scaled(given, rows, as_), k, folder) for k, rows in piece.items()}, as_

    facts, values = shaped(pieces[0])
    bound = program.bind(facts, values=values)
    limits = draw.choice([{}, {}, {}, {"max_pops": draw.randrange(12)}, {"timeout": 600.0}, {"max_items": 10**6}])
    facts, values = shaped(pieces[1])
    none = {key: [] for key in given.held if key not in pieces[0] and key not in pieces[1]}
    chart = bound.run({**facts, **none}, values=values, **limits)
    if not chart.converged:
        given.count["stopped"] += 1
        stopped(given, chart)
        chart.run(max_pops=None)
    for key in pieces[2]:
        facts, values = shaped({key: pieces[2][key]})
        chart.add(key, facts[key], values=values)
        given.held[key].add(pieces[2][key])
    chart.run(max_pops=None)  # a limit under which the first facts were done is that of the next run, too
    return chart


def formed(given: Input, draw: random.Random, rows: Sequence[Row], key: str, folder: Path) -> Any:
    """Rows in a drawn form, for one of the programs."""
    program = given.programs[int(key[1 : key.index("_")])]
    return form(draw, rows, int(key.rsplit("/", 1)[1]), folder, key, alike(program))


def values_of(given: Input, rows: Sequence[tuple[Row, Any]], draw: random.Random) -> str:
    """What the numbers of rows are given as: probabilities, where they can be."""
    probabilities = given.probabilities and draw.random() < 0.5
    probabilities = probabilities and all(PROBABILITIES[given.semiring](value) <= 1 for _, value in rows)
    return "probabilities" if probabilities else "weights"


def scaled(given: Input, rows: Sequence[tuple[Row, Any]], values: str) -> list[Row]:
    """Rows as the engine takes them."""
    number: Callable[[Any], Any] = (lambda v: v) if values == "weights" else PROBABILITIES[given.semiring]
    return [(*map(given_term, arguments), *(() if value is None else (number(value),))) for arguments, value in rows]


def stopped(given: Input, chart: Any) -> None:
    """A run that stopped says of an item that its derivations are not there yet, or has all of them."""
    first_rule = 0
    for place, program in enumerate(given.programs):
        source, prefix = parse(program.source), f"p{place}_"
        for key in visible(source) if given.semiring is not None else ():
            for row in list(derived(chart, prefix + key))[:1]:
                with given.tried(place, "derivations of a stopped run"):
                    try:
                        chart.kbest(item_of((key, row), prefix), 2)
                    except dg.QueryError as error:
                        assert "run()" in str(error), error
                    except dg.ValueRangeError as error:
                        assert "weights of at least 0" in str(error), error
                    else:
                        ground = grounded(
                            program.source, given.facts_of(place), given.semiring or "real", program.functions
                        )
                        derivations(given, chart, ground, (key, row), prefix, first_rule)
        first_rule += len(source.rules)


def change(given: Input, chart: Any, draw: random.Random, folder: Path) -> None:
    """One change of the facts of each of some predicates."""
    for key, held in given.held.items():
        if not held.rows or draw.random() < 0.5:
            continue
        arguments, value = draw.choice(held.rows)
        shown = tuple(map(given_term, arguments))
        match draw.randrange(3):
            case 0:
                chart.retract(key, [shown])
                held.retract(arguments)
            case 1:
                other = draw.choice([v for _, v in held.rows])
                if not held.arity:  # all that is known of it is how many copies there are
                    continue
                values = values_of(given, [(arguments, other)], draw)
                rows = scaled(given, [(arguments, other)], values)
                chart.set(key, formed(given, draw, rows, key, folder) if other is not None else rows, values=values)
                held.set(arguments, other)
            case 2:
                if given.semiring is None and held.arity == 0:
                    continue
                fresh = tuple(draw.choice(held.rows)[0][i] for i in range(held.arity))
                if given.semiring is None and any(same(row[0], fresh) for row in held.rows):
                    continue  # a second row of a fact, whose join its readers need not agree on
                values = values_of(given, [(fresh, value)], draw)
                rows = scaled(given, [(fresh, value)], values)
                chart.add(key, formed(given, draw, rows, key, folder), values=values)
                held.add([(fresh, value)])
    chart.run()


# -- what is compared -------------------------------------------------------------------------------------------------


def compare(given: Input, chart: Any, draw: random.Random) -> None:
    """Everything that a chart says, against its facts."""
    first_rule = 0
    again = pickle.loads(pickle.dumps(chart)) if draw.random() < 0.3 else None
    for place, program in enumerate(given.programs):
        source, prefix, facts = parse(program.source), f"p{place}_", given.facts_of(place)
        values: dict[Key, Any] = {}
        with given.tried(place, "values"):
            values = evaluate(
                source, facts, semiring=oracle_semiring(given.semiring), functions=dict(program.functions)
            )
            for key in visible(source):
                mine = {row: value for (k, row), value in values.items() if k == key}
                theirs = derived(chart, prefix + key)
                assert theirs.keys() == mine.keys(), (key, theirs, mine)
                assert all(close(theirs[row], mine[row]) for row in mine), (key, theirs, mine)
                if again is not None:
                    assert derived(again, prefix + key) == theirs, f"pickled {key}"
        heads, aggregators = set(visible(source)), aggregator_of(source)
        items = [item for item in values if item[0] in heads]
        if items:
            with given.tried(place, "derivatives"):
                derivatives(given, chart, place, draw.choice(items), draw, again)
            weighed = [item for item in items if aggregators[item[0]] == "+="]  # an item of clauses is worth one
            if given.semiring in ("real", "log") and weighed and not rounds_only(program):
                with given.tried(place, "outside values"):
                    check_outside(given, chart, place, draw.choice(weighed), draw.choice(items))
            if given.semiring is not None:
                ground = grounded(program.source, facts, given.semiring, program.functions)
                for item in draw.sample(items, min(2, len(items))):
                    with given.tried(place, "derivations"):
                        derivations(given, chart, ground, item, prefix, first_rule, again)
        first_rule += len(source.rules)


def derivatives(given: Input, chart: Any, place: int, item: Key, draw: random.Random, again: Any = None) -> None:
    """The gradient of an item: its rows, along a direction, and against differences."""
    prefix, name = f"p{place}_", item_of(item, f"p{place}_")
    if given.semiring not in DIFFERENTIABLE:
        if given.semiring != "expectation":
            try:
                chart.gradient(name)
            except dg.NotDifferentiable:
                return
            raise AssertionError("has a gradient")
        return
    mine = {key: held for key, held in given.held.items() if key.startswith(prefix) and held.rows}
    try:
        gradient = chart.gradient(name)
        tables = {key: gradient[key] for key in mine}
    except (dg.NotDifferentiable, dg.ValueRangeError):
        given.count["derivatives refused"] += 1
        return
    for key, held in mine.items():
        rows = [tuple(row)[: held.arity] for row in tables[key]]
        assert all(map(same, rows, (arguments for arguments, _ in held.rows))), f"rows of {key}: {rows}"
        assert np.size(tables[key].values) == len(held.rows), f"shape of {key}"
    if again is not None:
        copied = again.gradient(name)
        assert all(np.array_equal(copied[key].values, tables[key].values) for key in mine), (
            f"pickled gradient of {name}"
        )
    finite = {k: [v is None or math.isfinite(v) for _, v in h.rows] for k, h in mine.items()}
    direction = {k: np.array([draw.choice([0.0, 1.0, -0.5]) if f else 0.0 for f in finite[k]]) for k in mine}
    along = math.fsum(float(np.dot(np.ravel(tables[k].values), direction[k])) for k in mine)
    assert math.isfinite(along), (name, {k: t.values for k, t in tables.items()})
    try:
        forward = chart.jvp({k: d.reshape(np.shape(tables[k].values)) for k, d in direction.items()})[name]
    except (dg.NotDifferentiable, dg.ValueRangeError):  # of any item that is not asked for here, too
        given.count["jvp refused"] += 1
        return
    assert close(forward, along, 1e-8), f"jvp of {name} is {forward}, and along the gradient {along}"
    if rounds_only(given.programs[place]):
        return
    left, right = (difference(given, place, item, direction, sign) for sign in (-1, 1))
    if left is None or right is None or not close(left, right, 1e-8):
        given.count["at a kink"] += 1
        return
    if not close(right, along, 1e-7) and tied(given, place):
        given.count["at a kink"] += 1
        return
    given.count["differences"] += 1
    assert close(right, along, 1e-7), f"gradient of {name} along {direction} is {along}, should be {right}"


def rounds_only(program: Program) -> bool:
    """Whether derivatives are those of the rounds that ran: where pruning or a beam holds back what a cycle goes
    through."""
    below = _below(program)
    declared = parse(program.source).declarations
    held_back = {d.item.key for d in declared if isinstance(d, s.BeamDeclaration | s.PruneDeclaration)}
    return any(key in _reached(below, key) for key in held_back)


def tied(given: Input, place: int) -> bool:
    """Whether `min` and `max` choose between equals, or `abs` has zero.

    Slopes on both sides of a value do not show it where those of its parts make up for each other:
    `max(min(x, 1) ^ 2, x)` is x on both sides of 1, but the first of equals has all of the derivative, which is 2.
    """
    numbers, program, found = Numbers(50), given.programs[place], list[bool]()
    for name in ("min", "max", "abs"):

        def noted(*operands: Any, _meant: Callable[..., Any] = numbers.operations[name]) -> Any:
            found.append(operands[0] == (operands[1] if len(operands) > 1 else 0))
            return _meant(*operands)

        numbers.operations[name] = noted
    with mpmath.workdps(50):
        source, functions = parse(program.source), dict(program.functions)
        _evaluate(source, given.facts_of(place), oracle_semiring(given.semiring), functions, numbers, 100_000, 10_000)
    return any(found)


def check_outside(given: Input, chart: Any, place: int, item: Key, goal: Key) -> None:
    """The outside value of an item, against how the goal grows with one more derivation of it of a small weight."""
    prefix, program, log = f"p{place}_", given.programs[place], given.semiring == "log"
    with mpmath.workdps(50):
        facts = given.facts_of(place)
        small = mpmath.log(STEP) if log else STEP
        more = {**facts, item[0]: [*facts.get(item[0], []), (*item[1], small)]}
        source = parse(program.source)
        before, after = (
            evaluate(source, f, semiring=given.semiring, functions=dict(program.functions), digits=50)[goal]
            for f in (facts, more)
        )
        weights = [mpmath.exp(v) if log else v for v in (before, after)]
        slope = (weights[1] - weights[0]) / STEP
    found = chart.outside(item_of(item, prefix), item_of(goal, prefix))
    wanted = float(slope) if not log else float(mpmath.log(slope)) if slope > 0 else -math.inf
    assert close(found, wanted, 1e-7), f"outside of {item} for {goal} is {found}, should be {wanted}"


def difference(given: Input, place: int, item: Key, direction: Mapping[str, Any], sign: int) -> float | None:
    """The slope of an item's value on one side, by the oracle in 50 digits."""
    prefix, program = f"p{place}_", given.programs[place]
    source = parse(program.source)

    def value(step: Any) -> Any:
        facts = {}
        with mpmath.workdps(50):
            for key, held in given.held.items():
                if key in direction:
                    moved = [
                        (a, (1 if v is None and given.semiring in (None, "real") else v or 0) + step * mpmath.mpf(d))
                        if d
                        else (a, v)
                        for (a, v), d in zip(held.rows, direction[key], strict=True)
                    ]
                    facts[key.removeprefix(prefix)] = flat(moved)
        ring = given.semiring
        return evaluate(source, facts, semiring=ring, functions=dict(program.functions), digits=50).get(item)

    with mpmath.workdps(50):
        here, there = value(mpmath.mpf(0)), value(sign * STEP)
        if here is None or there is None or not mpmath.isfinite(here) or not mpmath.isfinite(there):
            return None
        return float((there - here) / (sign * STEP))


def derivations(
    given: Input, chart: Any, ground: Ground, item: Key, prefix: str, first_rule: int, again: Any = None
) -> None:
    """The best, k best, count, sums, draws, forest and reasons of an item; `again` is the chart after pickling."""
    assert given.semiring is not None
    own = {
        key: [(*map(given_term, a), *(() if v is None else (v,))) for a, v in h.rows] for key, h in given.held.items()
    }
    if not all(is_chance(given.semiring, v) for held in given.held.values() for _, v in held.rows):
        return
    check_item(chart, ground, item, given.semiring, prefix, first_rule, given.source, own)
    name = item_of(item, prefix)
    forest, best = chart.forest(name), list(chart.kbest(name, 3))
    if again is not None:
        forest = pickle.loads(pickle.dumps(forest))
        assert list(again.kbest(name, 3)) == best, f"pickled derivations of {name}"
    assert forest.count() == chart.count(name), f"counts of {name}"
    assert list(forest.kbest(3)) == best and forest.best() == best[0], f"derivations of the forest of {name}"
    if ground.cyclic(item):
        given.count["k best around cycles"] += 1
    else:
        check_sums(chart, ground, item, given.semiring, prefix, first_rule, 200)
    if given.semiring in ("boolean", "viterbi"):
        why = chart.why(item_of(item, prefix), sets=3, budget=5_000)
        for names in why.sets:
            facts = {fact_of(name, prefix) for name in names}
            assert derivable(ground, facts, item), (item, names)


def is_chance(semiring: str, value: Any) -> bool:
    """Whether a weight can be one of a chance: derivations are ranked and drawn by weights of at least 0."""
    return semiring not in ("real", "expectation") or value is None or np.ravel(value)[0] >= 0


# -- for as long as it is told to -------------------------------------------------------------------------------------


def tried(number: int, count: int = TOGETHER) -> Input | None:
    """The input of a number, after everything was compared."""
    given = drawn(number, count)
    if given is None:
        return None
    draw = random.Random(f"runs {number}")
    given.count["programs"] += len(given.programs)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            chart = run(given, draw, Path(folder))
            compare(given, chart, draw)
            for _ in range(CHANGES):
                change(given, chart, draw, Path(folder))
                compare(given, chart, draw)
        except dg.FactError as error:
            # a priority by an argument asks for integers, and where other rules read it, of other predicates, too
            refused = "the program computes with this argument" in str(error)
            given.count["facts refused" if refused else "wrong"] += 1
            given.wrong += [] if refused else [f"{given.name}: {error}"]
        except Exception as error:  # of the package's own mistakes, too
            given.count["wrong"] += 1
            ours = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)][-3:]
            given.wrong.append(f"{given.name}: {type(error).__name__}: {error} in {' '.join(ours)}")
            given.wrong += [repr(p) for p in given.programs] if "p0_" not in str(error) else []
    return given


def main(seconds: float, number: int = 0) -> int:
    """Draws inputs until the time is over; 1 where something was wrong."""
    end, count, had = time.monotonic() + seconds, Counter[str](), Counter[str]()
    while time.monotonic() < end:
        given = tried(number)
        number += 1
        if given is not None:
            count += given.count
            had += given.had
            count["inputs"] += 1
            for text in given.wrong:
                print(text, flush=True)
    print(f"up to input {number - 1}")
    for what, share in shares(had).items():
        print(f"  {what}: {had[what]:,}, {share:.1%}")
    print("  others:", {what: n for what, n in had.items() if what not in SHARES})
    print(dict(count))
    return min(1, count["wrong"])


def shares(had: Counter[str]) -> dict[str, float]:
    """The share of the accepted programs that has each thing; of `accepted`, of all that were drawn."""
    whole = {"accepted": had["drawn"]}
    return {what: had[what] / max(1, whole.get(what, had["accepted"])) for what in SHARES}


if __name__ == "__main__":
    said, *rest = sys.argv[1:]
    sys.exit(main(float(said), *map(int, rest)))
