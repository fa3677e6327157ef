"""Derivations checked step by step, with the text of the program and the facts alone.

The text is parsed again, and rules are matched, computed and weighed here, in plain Python, by nothing that the engine
has. Each step has to be an instance of its rule over the items of its antecedents; all conditions have to hold; each
leaf has to be a given fact; and the weight has to be the product of the constants and of the facts. What cannot be seen
without deriving everything again is taken as given: that an item under `SIDE` is derived and one under `not` is not,
where rules define the predicate; and that an external function or a function of values computes what it should.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import Error, FactError, shown, shown_path
from ..facts.readers import read
from ..facts.relation import Relation
from ..facts.terms import canonical, item_text
from ..rules.parse import parse
from ..rules.syntax import (
    ONE,
    Application,
    Expression,
    Item,
    ItemValue,
    Numeral,
    PredicateDeclaration,
    Rule,
    SemiringDeclaration,
    Side,
    Source,
)
from .listed import Listed
from .steps import DerivationStep
from .terms import PartialMatch, Row, Unbound, bind_rule, body_items, hashed, same


class _Wrong(Exception):
    """A step is not right: why."""


@dataclass(frozen=True)
class _Fact:
    row: Row
    value: Any


@dataclass
class _Given:
    """A program as it is written, and its facts, which are read when a step asks for them: most use few predicates."""

    said: _ProgramText
    semiring: str | None
    probabilities: bool
    constants: bool  # whether those of the text are probabilities
    unread: Mapping[str, Any]
    axioms: Mapping[str, list[_Fact]]
    read: dict[str, Sequence[_Fact]] = field(default_factory=dict)
    index: dict[str, dict[Hashable, list[_Fact]]] = field(default_factory=dict)

    def facts(self, key: str) -> Sequence[_Fact]:
        """The facts of a predicate, without axioms."""
        if key not in self.read:
            self.read[key] = _read(self, key, self.unread[key]) if key in self.unread else []
        return self.read[key]

    def matching(self, key: str, row: Row) -> list[_Fact]:
        """The given facts with these arguments."""
        if key not in self.index:
            found: dict[Hashable, list[_Fact]] = {}
            for fact in self.rows(key):
                found.setdefault(tuple(map(hashed, fact.row)), []).append(fact)
            self.index[key] = found
        return self.index[key].get(tuple(map(hashed, row)), [])

    def rows(self, key: str) -> list[_Fact]:
        return [*self.facts(key), *self.axioms.get(key, [])]

    def row(self, key: str, number: int) -> _Fact | None:
        """A given fact by its number: from 0 those that were given, from -1 downwards the axioms of the text."""
        rows, place = (self.facts(key), number) if number >= 0 else (self.axioms.get(key, []), -1 - number)
        return rows[place] if place < len(rows) else None


def check(
    steps: Sequence[DerivationStep], weight: Any, program: Any, facts: Mapping[str, Any] | None, values: str | None
) -> None:
    """Raises Error for the first step of a derivation that is not right, and where its weight is another."""
    found = weigh(steps, program, facts or {}, values)
    if weight is not None and found is not None and not _close(weight, found):
        raise Error(f"the weight of the derivation of {steps[0].item} is {found}, and it says {weight}")


def weigh(steps: Sequence[DerivationStep], program: Any, facts: Mapping[str, Any], values: str | None) -> Any:
    """The weight of a derivation over these facts. Raises Error for the first step that is not right."""
    given = _given(program, facts, values)
    item = steps[0].item
    used = [0] * len(steps)
    for step in steps:
        for i in step.antecedents:
            used[i] += 1
    if used != [0, *[1] * (len(steps) - 1)]:
        raise Error(f"the steps of the derivation of {item} are no tree")
    weights: list[Any] = [None] * len(steps)
    for n in range(len(steps) - 1, -1, -1):
        step = steps[n]
        try:
            weights[n] = _checked(
                given, step, [steps[i] for i in step.antecedents], [weights[i] for i in step.antecedents]
            )
        except _Wrong as wrong:
            raise Error(f"step {n + 1} of the derivation, {step.text}, is not right: {wrong}") from None
    return weights[0]


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_close, a, b))
    if a == b:
        return True
    try:
        return math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-12)
    except (TypeError, ValueError):
        return bool((abs(a - b) <= 1e-9).all())


# -- what is given -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ProgramText:
    """What a program's text says: a program is read once for all derivations that are checked against it."""

    source: Source
    semiring: str | None
    axioms: tuple[Rule, ...]
    heads: frozenset[str]
    defined: frozenset[str]  # by rules that are no axioms
    clauses: frozenset[str]  # heads of `:-`
    external: frozenset[str]
    sums: frozenset[str]  # inputs of which copies add up, in whatever semiring the program runs that declares none


@lru_cache(8)
def _parsed(text: str) -> _ProgramText:
    source = parse(text)
    semiring = next((d.name for d in source.declarations if isinstance(d, SemiringDeclaration)), None)
    named = [d for d in source.declarations if isinstance(d, PredicateDeclaration) and d.kind == "external"]
    axioms = tuple(rule for rule in source.rules if _asserted(rule))
    heads = frozenset(rule.head.key for rule in source.rules)
    defined = frozenset(rule.head.key for rule in source.rules if not _asserted(rule))
    clauses = frozenset(rule.head.key for rule in source.rules if rule.aggregator == "|=")
    external = frozenset(key for d in named for key in d.keys)
    stated = {key: aggregator for d in source.declarations for key, aggregator in getattr(d, "joins", ())}
    stated.update({rule.head.key: rule.aggregator for rule in axioms if rule.aggregator != "="})
    sums = frozenset(key for key, aggregator in stated.items() if aggregator == "+=" and key not in defined)
    selects = any(rule.aggregator in ("max=", "min=", "log+=") for rule in source.rules)
    return _ProgramText(source, semiring, axioms, heads, defined, clauses, external, sums if selects else frozenset())


def _given(program: Any, facts: Mapping[str, Any], values: str | None) -> _Given:
    if isinstance(program, Path):
        try:
            program = program.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise Error(f"no program can be read from {shown_path(program)}: {error}") from None
    text = program if isinstance(program, str) else getattr(program, "source", None)
    if not isinstance(text, str):
        raise Error(f"derivation.check takes a dg.Program, its text or its path, and {shown(program)} is none of these")
    said = _parsed(text)
    if values not in (None, "weights", "probabilities"):
        raise Error(f'values={shown(values)}: it is "weights", the semiring\'s own numbers, or "probabilities"')
    # what `Program(values=)` said, if anything; `program.values` says "weights" then
    told = getattr(getattr(program, "_numbers", None), "said", None)
    probabilities = (values or told) == "probabilities"
    constants = (told or values) == "probabilities"  # a call's `values` are those of the text where that says nothing
    if not isinstance(facts, Mapping):
        raise FactError(f'{shown(facts)} is not a dict of facts; give predicates and rows: {{"rewrite/3": rows}}')
    semiring = said.semiring or getattr(program, "semiring", None)
    return _Given(said, semiring, probabilities, constants, facts, _axioms(text, semiring, constants))


@lru_cache(8)
def _axioms(text: str, semiring: str | None, probabilities: bool) -> Mapping[str, list[_Fact]]:
    """The facts of a program's text, read once for all derivations that are checked against it."""
    said, found = _parsed(text), dict[str, list[_Fact]]()
    given = _Given(said, semiring, probabilities, probabilities, {}, {})
    for rule in said.axioms:
        value = _one(given) if rule.body == ONE else _constant(given, rule.body)
        row = tuple(PartialMatch().value(t) for t in rule.head.arguments)
        found.setdefault(rule.head.key, []).append(_Fact(row, value))
    return found


def _asserted(rule: Rule) -> bool:
    return not body_items(rule) and not rule.conditions and _is_number(rule.body)


def _is_number(body: Expression) -> bool:
    return (
        isinstance(body, Numeral)
        or body == ONE
        or (isinstance(body, Application) and all(map(_is_number, body.operands)))
    )


def _read(given: _Given, key: str, rows: Any) -> Sequence[_Fact]:
    shape: Any = {"expectation": "expectation", "count": "count", "boolean": "boolean"}.get(
        str(given.semiring), "float"
    )
    if given.probabilities and shape != "expectation":
        shape = "float"
    relation: Relation = rows if isinstance(rows, Relation) else read(key, rows, value_shape=shape, finite="no_nan")
    columns = [c.to_list() for c in relation.columns]
    values: Sequence[Any] = [None] * relation.count if relation.values is None else relation.values.tolist()
    return Listed(relation.count, lambda n: _Fact(tuple(c[n] for c in columns), _value(given, values[n])))


def _value(given: _Given, value: Any) -> Any:
    if value is None:
        return _one(given)
    if isinstance(value, list):
        return tuple(value)
    return _probability(given, value) if given.probabilities else value


def _probability(given: _Given, value: Any) -> Any:
    if given.semiring in ("log", "viterbi"):
        return math.log(value) if value else -math.inf
    if given.semiring == "tropical":
        return -math.log(value) if value else math.inf
    return value > 0 if given.semiring == "boolean" else value


# -- weights -----------------------------------------------------------------------------------------------------------


def _add(a: Any, b: Any) -> Any:
    return a + b


def _pairs(a: Any, b: Any) -> Any:
    return (a[0] * b[0], a[0] * b[1] + a[1] * b[0])


_TIMES: dict[str, tuple[Any, Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "real": (1.0, lambda a, b: a * b, float),
    "log": (0.0, _add, float),
    "viterbi": (0.0, _add, float),
    "tropical": (0.0, _add, float),
    "boolean": (True, lambda a, b: bool(a and b), bool),
    "count": (1, lambda a, b: a * b, int),
    "expectation": ((1.0, 0.0), _pairs, lambda n: (float(n), 0.0)),
}
"""One, times, and a constant of the text, in each semiring."""


def _one(given: _Given) -> Any:
    return _TIMES[given.semiring][0] if given.semiring in _TIMES else None


def _constant(given: _Given, body: Expression) -> Any:
    """The value of a right side of numbers alone."""
    if given.semiring not in _TIMES:
        return None
    one, times, read_number = _TIMES[given.semiring]
    if isinstance(body, Numeral):
        return read_number(_probability(given, body.value) if given.constants else body.value)
    if isinstance(body, Application) and body.operator == "neg":
        return -_constant(given, body.operands[0])
    assert isinstance(body, Application)
    found = one
    for operand in body.operands:
        found = times(found, _constant(given, operand))
    return found


def _weight(given: _Given, body: Expression, below: list[Any]) -> Any:
    """The product of a right side over the weights of its items, taken from the front of `below`."""
    if given.semiring not in _TIMES:
        return None
    one, times, _ = _TIMES[given.semiring]
    if isinstance(body, ItemValue | Side):
        weight = below.pop(0)
        return one if isinstance(body, Side) else weight
    if isinstance(body, Numeral) or (isinstance(body, Application) and body.operator == "neg"):
        return _constant(given, body)
    found = one
    assert isinstance(body, Application)
    for operand in body.operands:
        weight = _weight(given, operand, below)
        if weight is None:
            return None
        found = times(found, weight)
    return found


# -- a step ------------------------------------------------------------------------------------------------------------


def _checked(given: _Given, step: DerivationStep, below: Sequence[DerivationStep], weights: Sequence[Any]) -> Any:
    """The weight of what a step derives. Raises _Wrong."""
    if step.rule is None:
        return _leaf(given, step)
    if step.rule_number is None or not 0 <= step.rule_number < len(given.said.source.rules):
        raise _Wrong("the program has no such rule")
    rule = given.said.source.rules[step.rule_number]
    if rule.head.key != step.name[0]:
        raise _Wrong(f"the rule `{rule.text}` derives another predicate")
    items = body_items(rule)
    if [item.key for item, _ in items] != [s.name[0] for s in below]:
        raise _Wrong(f"its antecedents are not those of `{rule.text}`")
    for (item, side), antecedent in zip(items, below, strict=True):
        if antecedent.side and not side and not _clause(given, item.key):
            raise _Wrong(f"{antecedent.item} is taken as derived, and the rule asks for its value")
        if side and not antecedent.side and antecedent.rule is not None:
            raise _Wrong(f"SIDE({antecedent.item}) is never opened")
    bindings = bind_rule(rule, step.name[1], [s.name[1] for s in below])
    if bindings is None:
        raise _Wrong(f"it is no instance of `{rule.text}`")
    for condition in rule.conditions:
        try:
            if not bindings.holds(condition, lambda item, known: _derived(given, item, known)):
                raise _Wrong(f"{bindings.condition_text(condition)} does not hold")
        except (Unbound, ArithmeticError) as error:
            raise _Wrong(f"{bindings.condition_text(condition)} cannot be worked out") from error
    if bindings.waiting:
        raise _Wrong("an equation of the rule cannot be worked out")
    if any(_clause(given, item.key) for item, _ in items) and given.semiring in _TIMES:
        one = _TIMES[given.semiring][0]
        weights = [one if s.side else w for s, w in zip(below, weights, strict=True)]
    return _weight(given, rule.body, list(weights))


def _clause(given: _Given, key: str) -> bool:
    """Whether clauses derive a predicate, so that its items are worth one."""
    return given.semiring != "boolean" and key in given.said.clauses


def _derived(given: _Given, item: Item, known: PartialMatch) -> bool:
    """Whether a given fact matches; of a predicate that rules define, the derivation is believed."""
    if item.key in given.said.defined:
        return False
    with contextlib.suppress(Unbound, ArithmeticError):  # or some variable stands for anything
        return bool(given.matching(item.key, tuple(map(known.value, item.arguments))))
    for fact in given.rows(item.key):
        tried = known.copy()
        if tried.match_item(item, fact.row) and tried.settle() and not tried.waiting:
            return True
    return False


def _leaf(given: _Given, step: DerivationStep) -> Any:
    key, arguments = step.name
    if key in given.said.external:
        return None
    fact = None if step.row is None else given.row(key, step.row)
    if fact is not None and _same_row(fact.row, arguments) and not step.side and not _shifts(given, key):
        return fact.value
    matching = given.matching(key, arguments)
    if step.side:
        if not matching and key not in given.said.defined:
            raise _Wrong("it is no given fact, and no rule derives it")
        return _one(given)
    if not matching:
        raise _Wrong(f"{item_text(key, list(arguments))} is no given fact")
    if fact is None or not _same_row(fact.row, arguments):
        raise _Wrong(f"row {step.row} of {key} is another fact")
    return _merged(given, matching)


def _same_row(a: Row, b: Row) -> bool:
    return len(a) == len(b) and all(same(canonical(x), y) for x, y in zip(a, b, strict=True))


def _shifts(given: _Given, key: str) -> bool:
    """Whether copies of a fact are one: without a declared semiring, under an aggregator that is its times."""
    return given.semiring in ("log", "viterbi", "tropical") and key in given.said.sums


def _merged(given: _Given, facts: Sequence[_Fact]) -> Any:
    one, times, _ = _TIMES[str(given.semiring)]
    found = one
    for fact in facts:
        found = times(found, fact.value)
    return found
