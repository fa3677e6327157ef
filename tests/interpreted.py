"""The interpreter of nests on a program and its facts, without any compiler, and what it says beside the oracle, and
beside the engine: items, values and gradients.

Where several contributions tie under a plus that selects, which one is followed depends on the order of storage: a
gradient of the engine is held against that of each choice, and has to be one of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad.charts.binding.binding import Binding
from dynagrad.charts.binding.context import ProgramContext, read_facts
from dynagrad.charts.binding.encoding import (
    Encoding,
    has_texts,
    kinds,
    program_constants,
    settle_texts,
    syntax_value,
)
from dynagrad.charts.binding.rounding import rounded
from dynagrad.charts.binding.summary import CodedFacts, pair_count, summarise
from dynagrad.charts.program import context_of
from dynagrad.plan.interpreter import Interpreted, interpret
from dynagrad.plan.interpreter.chart import GroundItem
from dynagrad.plan.interpreter.instances import GroundRule
from dynagrad.plan.interpreter.numbers import number_of
from dynagrad.plan.interpreter.state import Source
from dynagrad.plan.model import Plan
from dynagrad.plan.planner import make_plan
from dynagrad.plan.traits import selects
from dynagrad.rules import syntax as s
from dynagrad.rules.show import show
from dynagrad.semirings import scale
from oracle import Real, Struct, close
from oracle import term as oracle_term


def plan_for(context: ProgramContext, facts: Mapping[str, Any]) -> Plan:
    """The plan that a run with these facts would have."""
    if context.scale.name == "expectation":
        length = max((len(number(r)) - 1 for r in _pairs(facts)), default=1)
        options, wide = replace(context.options, vector=length), scale("expectation", vector=length)
        context = replace(context, options=options, scale=wide)
    relations = Binding(context, {}).gathered(read_facts(context, facts, False), {})
    if any(map(has_texts, relations.values())):
        relations = dict(settle_texts(context.domains, relations))
    chosen = kinds(context.rules, context.domains, relations)
    constants = program_constants(context.rules, context.domains)
    encoding = Encoding.start(chosen, constants).extend(context.domains, relations)
    known = CodedFacts.of(context, encoding, {})
    fresh = {key: encoding.codes(context.domains, relation) for key, relation in relations.items()}
    summary, _ = summarise(context, known, encoding, relations, fresh)
    rough = rounded(context, known, summary, fresh.keys())
    count = pair_count(relations, fresh, fresh.keys(), rough)
    return make_plan(context.rules, context.domains, rough, context.options, count)


def _pairs(facts: Mapping[str, Any]) -> list[Any]:
    """The values of facts in `expectation`."""
    return [row[-1] for key, rows in facts.items() for row in rows if len(row) > int(key.rpartition("/")[2])]


def ground(value: Any) -> s.Term:
    """An argument of a fact, of the engine or of the oracle, as a term of the interpreter."""
    match oracle_term(value):
        case str(name):
            return s.Symbol(name)
        case bool(number) | int(number):
            return s.Integer(int(number))
        case Real(value=number):
            return s.Float(number)
        case Struct(functor=functor, arguments=arguments):
            return s.Compound(functor, tuple(map(ground, arguments)))


def seen(value: s.Term) -> Any:
    """A term of the interpreter as one of the oracle."""
    match value:
        case s.Symbol(name=name):
            return name
        case s.Integer(value=number):
            return number
        case s.Float(value=number):
            return Real(number)
        case s.Compound(functor=functor, arguments=arguments):
            return Struct(functor, tuple(map(seen, arguments)))
    raise TypeError(f"not ground: {value!r}")


def number(value: Any) -> Any:
    """A fact's value: pairs (p, r) are flat."""
    if not isinstance(value, Iterable):
        return value
    return tuple(float(x) for part in value for x in (part if isinstance(part, Iterable) else (part,)))


def run_plan(
    program: dg.Program, facts: Mapping[str, Iterable[tuple[Any, ...]]], plan: Plan | None = None
) -> Interpreted:
    """The interpreter on a program and facts, which are rows as the engine takes them; by a plan, if one was made."""
    context = context_of(program)
    rows = {}
    for key, table in facts.items():
        arity = int(key.rpartition("/")[2])
        rows[key] = [(tuple(map(ground, row[:arity])), *(number(v) for v in row[arity:] or [None])) for row in table]
    externals = {key: _of_terms(function) for key, function in context.externals.items()}
    return interpret(plan or plan_for(context, facts), rows, externals)


def _of_terms(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python values as one of ground terms."""
    return lambda *terms: number(function(*map(syntax_value, terms)))


def items(run: Interpreted, key: str) -> dict[Any, Any]:
    """The items of a predicate, derived or given, as the oracle has them."""
    return {tuple(map(seen, row)): number_of(value) for row, value in run.state.chart.values.get(key, {}).items()}


def differences(mine: Mapping[Any, Any], theirs: Mapping[Any, Any], tolerance: float) -> list[str]:
    """Where two have not the same items, or not the same values."""
    found = [f"{row} is there, and should not be" for row in mine.keys() - theirs.keys()]
    found += [f"{row} is missing, should be {theirs[row]}" for row in theirs.keys() - mine.keys()]
    for row in mine.keys() & theirs.keys():
        a, b = number(mine[row]), number(theirs[row])
        if isinstance(a, tuple) and isinstance(b, tuple) and len(b) < len(a):
            b = (b[0], *b[1:] * (len(a) - 1))  # one number stands for a vector of that number
        if not close(a, b, tolerance):
            found.append(f"{row} is {a}, should be {b}")
    return found


# -- gradients ---------------------------------------------------------------------------------------------------------

MOST_CHOICES = 2000
"""Of how many choices among ties the gradients are looked at."""


class Undecided(Exception):
    """There are too many choices among ties."""


def tied(run: Interpreted, goal: GroundItem) -> dict[GroundItem, list[Source]]:
    """The items that a goal is derived from, whose value several contributions have: what these come from."""
    state, found = run.state, dict[GroundItem, list[Source]]()
    waiting, seen = [goal], {goal}
    while waiting:
        item = waiting.pop()
        sources, value = state.sources.get(item, {}), state.chart.value(item)
        for source in sources:
            if isinstance(source, GroundRule):
                fresh = set(state.counts(source)) - seen
                seen |= fresh
                waiting += fresh
        if sources and value is not None and selects(state.plan, state.plan.tables[item.key]):
            same = [source for source in sources if close(state.contribution(source)[0], value[0], 1e-12)]
            if len(same) > 1 and math.isfinite(value[0]):
                found[item] = same
    return found


def gradients(run: Interpreted, key: str, row: tuple[s.Term, ...]) -> Iterator[Mapping[str, Sequence[Any]]]:
    """The gradient by each choice among contributions that tie, first that of the interpreter.

    A choice that follows a cycle that changes nothing is no derivation.
    """
    yield run.gradient(key, row)
    ties, best = tied(run, GroundItem(key, row)), run.state.best
    if math.prod(map(len, ties.values())) > MOST_CHOICES:
        raise Undecided(f"there are too many choices among ties of {key}")
    first = dict(best)
    for sources in itertools.product(*ties.values()):
        best.update(zip(ties, sources, strict=True))
        if not any(_turns(run, item) for item in ties):
            yield run.gradient(key, row)
    best.update(first)


def _turns(run: Interpreted, goal: GroundItem) -> bool:
    """Whether who follows the best contributions from an item comes by some item twice."""
    state, done = run.state, set[GroundItem]()

    def visit(item: GroundItem, way: tuple[GroundItem, ...]) -> bool:
        if item in way:
            return True
        if item in done:
            return False
        source = state.best.get(item)
        if isinstance(source, GroundRule) and any(visit(other, (*way, item)) for other in state.counts(source)):
            return True
        done.add(item)
        return False

    return visit(goal, ())


def gradient_difference(run: Interpreted, chart: Any, key: str, row: tuple[s.Term, ...]) -> str | None:
    """How the gradient of an item by the engine differs from that by the interpreter, of the same program and facts."""
    item = show(s.Item(key.rpartition("/")[0], row))
    try:
        theirs = chart.gradient(item)
    except dg.Error as error:  # there is none, or it is not finite
        return None if _refuses(run, key, row) else f"the gradient of {item} is refused: {error}"
    first = None
    for mine in gradients(run, key, row):
        wrong = [table for table in mine if mine[table] and not _agree(theirs[table], mine[table])]
        if not wrong:
            return None
        shown = [number(each[-1]) for each in theirs[wrong[0]]]
        first = first or f"the gradient of {item} by {wrong[0]} is {shown}, should be {list(mine[wrong[0]])}"
    return first


def _agree(theirs: Iterable[Any], mine: Sequence[Any]) -> bool:
    """Whether the rows of a table of derivatives have the numbers of the interpreter."""
    values = [number(row[-1]) for row in theirs]
    return len(values) == len(mine) and all(close(a, number(b), 1e-7) for a, b in zip(values, mine, strict=True))


def _refuses(run: Interpreted, key: str, row: tuple[s.Term, ...]) -> bool:
    """Whether an item has no gradient, or one that is not finite."""
    try:
        derivatives = run.gradient(key, row)
    except dg.Error:
        return True
    return not all(
        math.isfinite(part) for values in derivatives.values() for x in values for part in np.ravel(number(x))
    )
