"""Why an item is not there: the rules that came nearest, and what is missing for them, down to the facts.

A rule comes as near as few leaves are missing: facts that were not given, comparisons that do not hold, negated items
that are there. Explanations with one missing leaf are looked for first, then with two, and so on, under limits of
depth, bindings and time. Each rule is tried with some of its items taken as missing: the others are joined with what
the chart has, which binds variables; conditions follow; then each missing item that rules define is explained in turn.
Variables that stay unbound are left as variables, the same ones wherever they are the same (logic variables, as in
Prolog).

It is long because the search is one recursion, with its limits.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from ...facts.terms import Term, canonical, term_text
from ...rules.normal import NormalRule
from ...rules.syntax import Comparison, Compound, Condition, Equation, Item, Negation, Variable
from ...rules.syntax import Term as Pattern
from ..terms import PartialMatch, Unbound, hashed
from .attempts import Attempt, BodyPart, WhyNot
from .logic import Env, LogicVariable, Shape, ground, text, unify, walk

MOST_GIVEN = 10
"""How many explanations are given at most."""


@dataclass(frozen=True)
class Knowledge:
    """What there is: items and facts by predicate, and the rules in normal form."""

    rows: Callable[[str], Sequence[tuple[Any, ...]]]
    """All items of a predicate, decoded."""
    rules: Sequence[NormalRule]
    defined: frozenset[str]
    inputs: frozenset[str]
    external: frozenset[str]
    external_value: Callable[[str, tuple[Any, ...]], Any]
    pending: Callable[[str], Iterable[tuple[Any, ...]]]
    """Items with an update that the run held back."""
    stopped: str = ""
    """Why the run ended early, if it did."""


# -- the search --------------------------------------------------------------------------------------------------------


class _Over(Exception):
    """A limit was met."""


Target = tuple[str, tuple[Any, ...]]
"""A predicate, and arguments that may be logic variables."""


@dataclass
class Search:
    """The search for what is missing for an item."""

    known: Knowledge
    depth: int
    bindings: int
    seconds: float
    _tried: int = 0
    _began: float = field(default_factory=time.monotonic)
    _index: dict[tuple[str, tuple[int, ...]], dict[Any, list[tuple[Any, ...]]]] = field(default_factory=dict)
    _rows: dict[str, Sequence[tuple[Any, ...]]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _hopeless: dict[Any, int] = field(default_factory=dict)
    _cut: bool = False

    def explain(self, key: str, arguments: tuple[Any, ...], most: int) -> tuple[list[Attempt], int, bool]:
        """The nearest attempts, how many leaves they miss, and whether the search came to its end."""
        target = (key, arguments)
        for missing in range(1, most + 1):
            self._cut = False
            self._hopeless.clear()
            found: list[Attempt] = []
            try:
                for _, env, attempt in self._attempts(target, missing, self.depth, {}, ()):
                    made = attempt(env)
                    if made not in found:
                        found.append(made)
                    if len(found) >= MOST_GIVEN:
                        break
            except _Over:
                return found, missing if found else 0, False
            except RecursionError:
                return found, missing if found else 0, False
            if found:
                return found, missing, not self._cut
        return [], 0, not self._cut

    def _spend(self) -> None:
        self._tried += 1
        if self._tried > self.bindings or (self._tried & 63 == 0 and time.monotonic() - self._began > self.seconds):
            raise _Over

    # rows that match

    def rows(self, key: str) -> Sequence[tuple[Any, ...]]:
        if key not in self._rows:
            self._rows[key] = self.known.rows(key)
        return self._rows[key]

    def matching(self, target: Target, env: Env) -> Sequence[tuple[Any, ...]]:
        key, arguments = target
        places, values = [], []
        for i, value in enumerate(arguments):
            try:
                values.append(hashed(ground(value, env)))
                places.append(i)
            except Unbound:
                continue
        place = (key, tuple(places))
        if place not in self._index:
            index: dict[Any, list[tuple[Any, ...]]] = {}
            for row in self.rows(key):
                index.setdefault(tuple(hashed(row[i]) for i in places), []).append(row)
            self._index[place] = index
        return self._index[place].get(tuple(values), ())

    # one item

    def _attempts(
        self, target: Target, missing: int, depth: int, env: Env, path: tuple[Any, ...]
    ) -> Iterator[tuple[int, Env, Callable[[Env], Attempt]]]:
        """Attempts at an item with at most so many missing leaves: how many, what they bind, and how they are told."""
        key, arguments = target
        shape = (key, tuple(_key_of(v, env) for v in arguments))
        if shape in path:
            return  # an explanation that needs itself explains nothing
        if self._hopeless.get((shape, depth), 0) >= missing:
            return
        if depth == 0:
            self._cut = True
            return
        some = False
        for rule in self.known.rules:
            if rule.head.key != key:
                continue
            for cost, after, told in self._tries(rule, target, missing, depth, env, (*path, shape)):
                some = True
                yield cost, after, told
        if not some:
            self._hopeless[shape, depth] = missing

    def _tries(
        self, rule: NormalRule, target: Target, missing: int, depth: int, env: Env, path: tuple[Any, ...]
    ) -> Iterator[tuple[int, Env, Callable[[Env], Attempt]]]:
        frame: dict[str, LogicVariable] = {}

        def value(term: Pattern) -> Any:
            match term:
                case Variable(name=name, anonymous=anonymous):
                    if name not in frame:
                        frame[name] = LogicVariable("_" if anonymous else name)
                    return frame[name]
                case Compound(functor=functor, arguments=parts):
                    made = tuple(map(value, parts))
                    if any(isinstance(m, LogicVariable | Shape) for m in made):
                        return Shape(functor, made)
                    return canonical(Term(functor, *made))
            return PartialMatch().value(term)

        start = dict(env)
        if not all(unify(value(t), v, start) for t, v in zip(rule.head.arguments, target[1], strict=True)):
            return
        items: list[Target] = [(a.item.key, tuple(map(value, a.item.arguments))) for a in rule.antecedents]
        for condition in rule.conditions:
            _name_all(condition, value)
        numbers = [i for i, (key, _) in enumerate(items) if key not in self.known.external]
        for count in range(min(missing, len(numbers)) + 1):
            for absent in itertools.combinations(numbers, count):
                there = [i for i in range(len(items)) if i not in absent]
                for joined in self._join(rule, items, there, start, frame):
                    yield from self._finish(rule, items, absent, missing, depth, joined, frame, target, path)

    def _join(
        self,
        rule: NormalRule,
        items: Sequence[Target],
        there: Sequence[int],
        env: Env,
        frame: Mapping[str, LogicVariable],
    ) -> Iterator[Env]:
        """The ways in which items of a rule are there."""
        env = dict(env)
        self._equations(rule, env, frame)
        if not there:
            yield env
            return
        options = [(len(rows) if (rows := self._options(items[i], env)) is not None else 1 << 60, i) for i in there]
        count, i = min(options)
        if count == 1 << 60:
            self._cut = True
            return
        rest = [j for j in there if j != i]
        for row in self._options(items[i], env) or ():
            self._spend()
            further = dict(env)
            if all(unify(v, r, further) for v, r in zip(items[i][1], row, strict=True)):
                yield from self._join(rule, items, rest, further, frame)

    def _options(self, target: Target, env: Env) -> Sequence[tuple[Any, ...]] | None:
        """The rows that an item may be; None for an external one whose arguments are not known yet."""
        if target[0] not in self.known.external:
            return self.matching(target, env)
        try:
            row = tuple(ground(v, env) for v in target[1])
        except Unbound:
            return None
        return [row] if self.known.external_value(target[0], row) is not None else []

    def _equations(self, rule: NormalRule, env: Env, frame: Mapping[str, LogicVariable]) -> None:
        """Binds what equations say of variables, where they hold."""
        equations = [c for c in rule.conditions if _equates(c)]
        if not equations:
            return
        bindings = self._bindings(frame, env)
        for equation in equations:
            tried = bindings.copy()
            tried.equate(equation.left, equation.right)
            if tried.settle() and not tried.waiting:
                bindings = tried
        for name, value in bindings.known.items():
            if name in frame:
                unify(frame[name], value, env)

    def _bindings(self, frame: Mapping[str, LogicVariable], env: Env) -> PartialMatch:
        known = {}
        for name, variable in frame.items():
            try:
                known[name] = ground(variable, env)
            except Unbound:
                continue
        return PartialMatch(known)

    def _finish(
        self,
        rule: NormalRule,
        items: Sequence[Target],
        absent: Sequence[int],
        missing: int,
        depth: int,
        env: Env,
        frame: Mapping[str, LogicVariable],
        target: Target,
        path: tuple[Any, ...],
    ) -> Iterator[tuple[int, Env, Callable[[Env], Attempt]]]:
        """What follows once the items that are there are joined: conditions, then the items that are missing."""
        self._spend()
        failed = self._failed(rule, env, frame)
        if len(failed) + len(absent) > missing:
            return
        if not failed and not absent:
            yield from self._unfinished(rule, items, env, target)
            return
        yield from self._missing(
            rule, items, absent, missing - len(failed), depth, env, frame, failed, target, path, {}
        )

    def _missing(
        self,
        rule: NormalRule,
        items: Sequence[Target],
        absent: Sequence[int],
        left: int,
        depth: int,
        env: Env,
        frame: Mapping[str, LogicVariable],
        failed: Sequence[tuple[str, Condition]],
        target: Target,
        path: tuple[Any, ...],
        made: Mapping[int, Callable[[Env], BodyPart]],
    ) -> Iterator[tuple[int, Env, Callable[[Env], Attempt]]]:
        if not absent:
            env = dict(env)
            self._equations(rule, env, frame)  # of what the missing items bound
            again = self._failed(rule, env, frame)
            if len(again) > len(failed):
                return  # what the missing items bound made another condition fail

            def told(after: Env) -> Attempt:
                return self._told(rule, items, after, frame, again, target, made)

            yield len(made) + len(again), env, told
            return
        i, rest = absent[0], absent[1:]
        item = items[i]
        budget = left - len(rest)
        if budget < 1 or self.matching_ground(item, env):
            return
        key = item[0]
        held = next((r for r in self.known.pending(key) if self.fits(item, r, env)), None)
        if held is not None:
            part = self._leaf("pruned" if not self.known.stopped else "stopped", item, self.known.stopped)
            yield from self._missing(
                rule, items, rest, left - 1, depth, env, frame, failed, target, path, {**made, i: part}
            )
            return
        if key in self.known.inputs or key not in self.known.defined:
            part = self._leaf("missing", item, "")
            yield from self._missing(
                rule, items, rest, left - 1, depth, env, frame, failed, target, path, {**made, i: part}
            )
        if key in self.known.defined:
            for cost, after, below in self._attempts(item, budget, depth - 1, env, path):
                nested = self._nested(item, below)
                yield from self._missing(
                    rule, items, rest, left - cost, depth, after, frame, failed, target, path, {**made, i: nested}
                )

    def matching_ground(self, item: Target, env: Env) -> bool:
        """Whether an item whose arguments are all known is there."""
        try:
            for argument in item[1]:
                ground(argument, env)
        except Unbound:
            return False
        return bool(self.matching(item, env))

    def fits(self, item: Target, row: tuple[Any, ...], env: Env) -> bool:
        tried = dict(env)
        return all(unify(v, r, tried) for v, r in zip(item[1], row, strict=True))

    def _leaf(self, kind: str, item: Target, note: str) -> Callable[[Env], BodyPart]:
        def told(env: Env) -> BodyPart:
            return BodyPart(
                kind, self.item_text(item, env), note or (self.unknown_argument(item, env) if kind == "missing" else "")
            )

        return told

    def _nested(self, item: Target, below: Callable[[Env], Attempt]) -> Callable[[Env], BodyPart]:
        return lambda env: BodyPart("underived", self.item_text(item, env), "", below(env))

    def unknown_argument(self, item: Target, env: Env) -> str:
        """Whether some argument occurs in no fact of the predicate: an unknown word."""
        key, arguments = item
        for i, value in enumerate(arguments):
            try:
                known = ground(value, env)
            except Unbound:
                continue
            alone = (key, tuple(known if j == i else LogicVariable("_") for j in range(len(arguments))))
            if len(arguments) > 1 and not self.matching(alone, {}):
                return f"no {key} has {term_text(known)} as argument {i + 1}"
        return ""

    def item_text(self, item: Target, env: Env) -> str:
        name = item[0].rpartition("/")[0]
        return f"{name}({','.join(text(v, env) for v in item[1])})" if item[1] else name

    def _failed(self, rule: NormalRule, env: Env, frame: Mapping[str, LogicVariable]) -> list[tuple[str, Condition]]:
        """The conditions that do not hold."""
        bindings = self._bindings(frame, env)
        found: list[tuple[str, Condition]] = []
        for condition in rule.conditions:
            if isinstance(condition, Negation):
                pattern = (condition.item.key, tuple(self._pattern(t, frame, env) for t in condition.item.arguments))
                if self.matching(pattern, env):
                    found.append(("present", condition))
                continue
            try:
                if not bindings.holds(condition, lambda item, known: False):
                    found.append(("fails", condition))
            except Unbound:  # what it compares is part of what is missing
                if _equates(condition):
                    tried = bindings.copy()
                    tried.equate(condition.left, condition.right)
                    if not tried.settle():
                        found.append(("fails", condition))
            except (ArithmeticError, ZeroDivisionError):
                found.append(("fails", condition))
        return found

    def _pattern(self, term: Pattern, frame: Mapping[str, LogicVariable], env: Env) -> Any:
        if isinstance(term, Variable):
            return frame.get(term.name, LogicVariable("_"))
        try:
            return self._bindings(frame, env).value(term)
        except (Unbound, ArithmeticError):
            return LogicVariable("_")

    def _unfinished(
        self, rule: NormalRule, items: Sequence[Target], env: Env, target: Target
    ) -> Iterator[tuple[int, Env, Callable[[Env], Attempt]]]:
        """All is there, and yet the item is not: it was held back, or the run stopped before it."""
        kind = "stopped" if self.known.stopped else "pruned"

        def told(after: Env) -> Attempt:
            there = [BodyPart("there", self.item_text(i, after)) for i in items]
            return Attempt(
                self.item_text(target, after),
                rule.text,
                (*there, BodyPart(kind, self.item_text(target, after), self.known.stopped)),
            )

        if self.matching_ground(target, env):
            return
        yield 1, env, told

    def _told(
        self,
        rule: NormalRule,
        items: Sequence[Target],
        env: Env,
        frame: Mapping[str, LogicVariable],
        failed: Sequence[tuple[str, Condition]],
        target: Target,
        made: Mapping[int, Callable[[Env], BodyPart]],
    ) -> Attempt:
        parts = [
            made[i](env) if i in made else BodyPart("there", self.item_text(item, env)) for i, item in enumerate(items)
        ]
        bindings = self._bindings(frame, env)
        for kind, condition in failed:
            if isinstance(condition, Negation):
                parts.append(BodyPart(kind, bindings.item_text(condition.item)))
            else:
                parts.append(BodyPart(kind, bindings.condition_text(condition)))
        return Attempt(self.item_text(target, env), rule.text, tuple(parts))


def _equates(condition: Condition) -> TypeGuard[Equation | Comparison]:
    """Whether a condition says that two terms are the same."""
    return isinstance(condition, Equation) or (isinstance(condition, Comparison) and condition.operator == "==")


def _key_of(value: Any, env: Env) -> Any:
    value = walk(value, env)
    if isinstance(value, LogicVariable):
        return None
    if isinstance(value, Shape):
        return (value.functor, tuple(_key_of(v, env) for v in value.arguments))
    return hashed(value)


def _name_all(condition: Condition, value: Callable[[Pattern], Any]) -> None:
    """Gives the variables of a condition their logic variables."""
    terms: list[Pattern] = (
        [condition.left, condition.right]
        if isinstance(condition, Equation | Comparison)
        else list(condition.item.arguments)
    )
    while terms:
        term = terms.pop()
        if isinstance(term, Variable):
            value(term)
        else:
            terms.extend(getattr(term, "operands", ()) or getattr(term, "arguments", ()))


def why_not(
    known: Knowledge, item: Item, most: int, depth: int, bindings: int, seconds: float, note: str = ""
) -> WhyNot:
    """Why an item is not there; its variables stand for anything."""
    variables: dict[str, LogicVariable] = {}
    reader = PartialMatch()

    def value(term: Pattern) -> Any:
        if isinstance(term, Variable):
            if term.anonymous:
                return LogicVariable("_")
            return variables.setdefault(term.name, LogicVariable(term.name))
        if isinstance(term, Compound):
            made = tuple(map(value, term.arguments))
            if any(isinstance(m, LogicVariable | Shape) for m in made):
                return Shape(term.functor, made)
        return reader.value(term)

    search = Search(known, depth, bindings, seconds)
    arguments = tuple(map(value, item.arguments))
    target = (item.key, arguments)
    name = search.item_text(target, {})
    held = next((r for r in known.pending(item.key) if search.fits(target, r, {})), None)
    if held is not None:
        kind = "stopped" if known.stopped else "pruned"
        part = BodyPart(kind, name, known.stopped)
        return WhyNot(
            name, (Attempt(name, "", (part,)),), 1, True, known.stopped or "it was held back by pruning or a beam"
        )
    if item.key not in known.defined:
        strange = search.unknown_argument(target, {})
        return WhyNot(
            name, (Attempt(name, "", (BodyPart("missing", name, strange),)),), 1, True, note or "no rule derives it"
        )
    found, missing, complete = search.explain(item.key, arguments, most)
    if item.key in known.inputs:
        given = Attempt(name, "", (BodyPart("missing", name, search.unknown_argument(target, {})),))
        found, missing = ([given, *found] if missing <= 1 else [given]), 1
    return WhyNot(name, tuple(found), missing, complete, note)
