"""The interpreter of nests on a program and its facts, without any compiler, and what it says beside the oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

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
from dynagrad.plan.interpreter.numbers import outside as outside_value
from dynagrad.plan.model import Plan
from dynagrad.plan.planner import make_plan
from dynagrad.rules import syntax as s
from oracle import Real, Struct, close
from oracle import term as oracle_term


def plan_for(context: ProgramContext, facts: Mapping[str, Any]) -> Plan:
    """The plan that a run with these facts would have."""
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
    outside = {key: _of_terms(function) for key, function in context.externals.items()}
    return interpret(plan or plan_for(context, facts), rows, outside)


def _of_terms(function: Callable[..., Any]) -> Callable[..., float]:
    """A function of Python values as one of ground terms."""
    return lambda *terms: float(function(*map(syntax_value, terms)))


def items(run: Interpreted, key: str) -> dict[Any, Any]:
    """The items of a predicate, derived or given, as the oracle has them."""
    return {tuple(map(seen, row)): outside_value(value) for row, value in run.state.chart.values.get(key, {}).items()}


def differences(mine: Mapping[Any, Any], theirs: Mapping[Any, Any], tolerance: float) -> list[str]:
    """Where two have not the same items, or not the same values."""
    found = [f"{row} is there, and should not be" for row in mine.keys() - theirs.keys()]
    found += [f"{row} is missing, should be {theirs[row]}" for row in theirs.keys() - mine.keys()]
    for row in mine.keys() & theirs.keys():
        a, b = number(mine[row]), number(theirs[row])
        if not close(a, b, tolerance):
            found.append(f"{row} is {a}, should be {b}")
    return found
