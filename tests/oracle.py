"""A naive evaluator of rule programs, the oracle of the engine: all ground instances, iterated to a fixed point.

It defines what a program means, and shares nothing with the engine but the parsed syntax: no agenda, no index that
outlives a round, no storage and no generated code. Slow on purpose.

Terms here are `str` (symbols), `int`, `Real` (a float in an argument) and `Struct` (everything else; lists are made of
`cons` and `nil`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath

from dynagrad.rules import syntax as s

# -- terms -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Real:
    """A float in an argument: never equal to an integer."""

    value: float


@dataclass(frozen=True, slots=True)
class Struct:
    """`functor(arguments)`."""

    functor: str
    arguments: tuple[Value, ...]


Value = str | int | Real | Struct
Row = tuple[Value, ...]
Key = tuple[str, Row]  # ("constit/3", ("np", 0, 2))


def list_term(elements: Sequence[Any], rest: Value = "nil") -> Value:
    """The list term of some Python values, each turned into a term."""
    for element in reversed([term(e) for e in elements]):
        rest = Struct("cons", (element, rest))
    return rest


def term(value: Any) -> Value:
    """A Python value of a row as a term: lists and tuples are list terms, `functor`/`arguments` pairs are compounds."""
    if isinstance(value, (Real, Struct, str)):
        return value
    if isinstance(value, float):
        return Real(value)
    if isinstance(value, int):
        return value
    if isinstance(value, (list, tuple)):
        return list_term(value)
    return Struct(str(value.functor), tuple(term(a) for a in value.arguments))


# -- errors ----------------------------------------------------------------------------------------------------------


class Diverged(Exception):
    """The values, or the set of items, did not settle."""


class Unbound(Exception):
    """A variable was never bound: the program should have been refused."""


class Conflict(Exception):
    """Two different values under `=`."""


class _Fails(Exception):
    """Arithmetic of an argument has no value; there is no such instance."""


# -- numbers: floats, or mpmath's for answers of many digits ---------------------------------------------------------


def _guard(function: Callable[..., float]) -> Callable[..., float]:
    """As the processor computes: infinities and NaN in place of exceptions."""

    def guarded(*arguments: float) -> float:
        try:
            return float(function(*arguments))
        except OverflowError:
            return math.inf
        except ZeroDivisionError:
            left = arguments[0]
            return math.nan if left == 0 or left != left else math.copysign(math.inf, left)
        except ValueError:
            return -math.inf if function is math.log and arguments[0] == 0 else math.nan

    return guarded


def _sum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # too large, or infinities of both signs
        return sum(values)


def _sigmoid(x: Any, exp: Callable[[Any], Any]) -> Any:
    return 1 / (1 + exp(-x)) if x >= 0 else exp(x) / (1 + exp(x))


class Numbers:
    """What arithmetic is done with."""

    def __init__(self, digits: int | None = None) -> None:
        self.digits = digits
        guard: Callable[..., Any] = _guard if digits is None else (lambda f: f)
        m: Any = math if digits is None else mpmath
        self.convert: Callable[[Any], Any] = float if digits is None else mpmath.mpf
        self.sum: Callable[[list[Any]], Any] = _sum if digits is None else mpmath.fsum
        self.exp, self.log = guard(m.exp), guard(m.log)
        self.operations: dict[str, Callable[..., Any]] = {
            "+": lambda a, b: a + b,
            "-": lambda a, b: a - b,
            "*": lambda a, b: a * b,
            "/": guard(lambda a, b: a / b),
            "^": guard(lambda a, b: a**b),
            "neg": lambda a: -a,
            "exp": self.exp,
            "log": self.log,
            "sqrt": guard(m.sqrt),
            "tanh": guard(m.tanh),
            "sigmoid": lambda a: _sigmoid(a, self.exp),
            "abs": abs,
            "min": min,
            "max": max,
            "lse": lambda a, b: self.log_sum([a, b]),
            "if": lambda c, a, b: a if c else b,
            "<": lambda a, b: self.convert(a < b),
            "=<": lambda a, b: self.convert(a <= b),
            ">": lambda a, b: self.convert(a > b),
            ">=": lambda a, b: self.convert(a >= b),
            "==": lambda a, b: self.convert(a == b),
            "!=": lambda a, b: self.convert(a != b),
        }

    def log_sum(self, values: list[Any]) -> Any:
        """The log of a sum of weights that are given by their logs."""
        top = max(values)
        if any(v != v for v in values) or top in (math.inf, -math.inf):
            return sum(values, self.convert(0)) if any(v != v for v in values) else top
        return top + self.log(self.sum([self.exp(v - top) for v in values]))

    def same(self, a: Any, b: Any) -> bool:
        """Whether an iteration that went from a to b has settled."""
        if isinstance(a, tuple):
            return len(a) == len(b) and all(self.same(x, y) for x, y in zip(a, b, strict=True))
        if a != a and b != b:  # NaN
            return True
        if isinstance(a, (bool, int, str)) or a == b or abs(a) == math.inf or abs(b) == math.inf:
            return bool(a == b)
        small = 1e-15 if self.digits is None else mpmath.mpf(10) ** (3 - self.digits)
        return bool(abs(a - b) <= small * max(abs(a), abs(b)))


# -- semirings -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Semiring:
    """`total` adds up a list that is not empty; `number` reads a constant or a fact's value."""

    zero: Any
    one: Any
    total: Callable[[list[Any]], Any]
    times: Callable[[Any, Any], Any]
    number: Callable[[Any], Any]


def user_semiring(
    zero: Any, one: Any, plus: Callable[[Any, Any], Any], times: Callable[[Any, Any], Any], number: Any = float
) -> Semiring:
    """A semiring from the four things that a user of the engine gives."""

    def total(values: list[Any]) -> Any:
        result = values[0]
        for value in values[1:]:
            result = plus(result, value)
        return result

    return Semiring(zero, one, total, times, number)


def _vector(value: Any, convert: Callable[[Any], Any]) -> Any:
    return tuple(convert(v) for v in value) if isinstance(value, Iterable) else convert(value)


def _add(a: Any, b: Any) -> Any:
    """Numbers or vectors; a number among vectors stands for a vector of that number."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        width = len(a) if isinstance(a, tuple) else len(b)
        a, b = (v if isinstance(v, tuple) else (v,) * width for v in (a, b))
        return tuple(x + y for x, y in zip(a, b, strict=True))
    return a + b


def _scale(p: Any, r: Any) -> Any:
    return tuple(p * x for x in r) if isinstance(r, tuple) else p * r


def builtin_semirings(numbers: Numbers) -> dict[str, Semiring]:
    """The semirings of the language, by name."""
    convert, zero, one, inf = numbers.convert, numbers.convert(0), numbers.convert(1), numbers.convert(math.inf)

    def pair(value: Any) -> Any:
        if isinstance(value, Iterable):
            p, r = value
            return (convert(p), _vector(r, convert))
        return (convert(value), zero)

    def pair_total(values: list[Any]) -> Any:
        p, r = values[0]
        for q, t in values[1:]:
            p, r = p + q, _add(r, t)
        return (p, r)

    add = lambda a, b: a + b  # noqa: E731
    multiply = lambda a, b: a * b  # noqa: E731
    return {
        "real": Semiring(zero, one, numbers.sum, multiply, convert),
        "log": Semiring(-inf, zero, numbers.log_sum, add, convert),
        "viterbi": Semiring(-inf, zero, max, add, convert),
        "tropical": Semiring(inf, zero, min, add, convert),
        "boolean": Semiring(False, True, any, lambda a, b: a and b, bool),
        "count": Semiring(0, 1, sum, multiply, int),
        "expectation": Semiring(
            (zero, zero),
            (one, zero),
            pair_total,
            lambda a, b: (a[0] * b[0], _add(_scale(a[0], b[1]), _scale(b[0], a[1]))),
            pair,
        ),
    }


def _product(values: list[Any]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = result * value
    return result


def _only(values: list[Any]) -> Any:
    """Under `=`: the value, while iterating the newest; that all agree is checked at the end."""
    return values[-1]


def aggregators(numbers: Numbers) -> dict[str, tuple[Any, Callable[[list[Any]], Any]]]:
    """Per aggregator of plain arithmetic: what a lookup of an item never derived gives, and how values are combined."""
    convert, inf = numbers.convert, numbers.convert(math.inf)
    return {
        "+=": (convert(0), numbers.sum),
        "log+=": (-inf, numbers.log_sum),
        "*=": (convert(1), _product),
        "max=": (-inf, max),
        "min=": (inf, min),
        "|=": (convert(0), lambda values: convert(any(v != 0 for v in values))),
        "&=": (convert(1), lambda values: convert(all(v != 0 for v in values))),
        "=": (convert(0), _only),
    }


# -- matching --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ground:
    """A term that is known, in the place of a pattern."""

    value: Value


Binding = dict[str, Value]
Goal = tuple[Any, Any]  # two terms that must be equal, not decided yet


def _arithmetic(operator: str, operands: list[Value]) -> int:
    if not all(isinstance(v, int) for v in operands):
        raise _Fails
    a: Any = operands[0]
    b: Any = operands[-1]
    if operator in ("//", "mod") and b == 0:
        raise _Fails
    table: dict[str, Callable[[], int]] = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "//": lambda: a // b,
        "mod": lambda: a % b,
        "neg": lambda: -a,
        "abs": lambda: abs(a),
        "min": lambda: min(a, b),
        "max": lambda: max(a, b),
    }
    return table[operator]()


def ground(pattern: Any, binding: Binding) -> Value | None:
    """The value of a term under a binding; None where a variable of it is not bound."""
    kind = type(pattern)  # the kinds that are met most often are asked for first, and quickly
    if kind is _Ground:
        known_value: Value = pattern.value
        return known_value
    if kind is s.Variable:
        return binding.get(pattern.name)
    match pattern:
        case s.Symbol(name):
            return name
        case s.Integer(value):
            return int(value)
        case s.Float(value):
            return Real(float(value))
        case s.Compound(functor, arguments) | s.Arithmetic(functor, arguments):
            values = [ground(a, binding) for a in arguments]
            known = [v for v in values if v is not None]
            if len(known) < len(values):
                return None
            return Struct(functor, tuple(known)) if isinstance(pattern, s.Compound) else _arithmetic(functor, known)
    raise TypeError(f"not a term: {pattern!r}")


def unify(left: Any, right: Any, binding: Binding, goals: list[Goal]) -> bool:
    """Make two terms equal, extending the binding; what cannot be decided yet is added to the goals."""
    try:
        a, b = ground(left, binding), ground(right, binding)
    except _Fails:
        return False
    if a is not None and b is not None:
        return a == b
    if a is None and b is None:
        if isinstance(left, s.Compound) and isinstance(right, s.Compound):
            return (left.functor, len(left.arguments)) == (right.functor, len(right.arguments)) and all(
                unify(x, y, binding, goals) for x, y in zip(left.arguments, right.arguments, strict=True)
            )
        goals.append((left, right))
        return True
    pattern, value = (left, b) if a is None else (right, a)
    assert value is not None
    match pattern:
        case s.Variable(name):
            binding[name] = value
            return True
        case s.Compound(functor, arguments):
            return (
                isinstance(value, Struct)
                and (functor, len(arguments)) == (value.functor, len(value.arguments))
                and all(unify(x, _Ground(y), binding, goals) for x, y in zip(arguments, value.arguments, strict=True))
            )
        case s.Arithmetic():
            return isinstance(value, int) and _solve(pattern, value, binding, goals)
    raise TypeError(f"not a term: {pattern!r}")


def _solve(pattern: s.Arithmetic, value: int, binding: Binding, goals: list[Goal]) -> bool:
    """Find the one unknown operand of arithmetic whose result is known."""
    operator, operands = pattern.operator, pattern.operands
    if operator == "neg":
        return unify(operands[0], _Ground(-value), binding, goals)
    if operator == "abs":
        goals.append((pattern, _Ground(value)))
        return True
    a, b = (ground(o, binding) for o in operands)
    known, unknown = (a, operands[1]) if b is None else (b, operands[0])
    if (
        known is None
        or operator in ("min", "max")
        or operator in ("//", "mod")
        or (operator == "*" and known == 0 and value == 0)
    ):
        goals.append((pattern, _Ground(value)))  # perhaps later, when more is bound
        return True
    if not isinstance(known, int):
        return False
    if operator == "*":
        return known != 0 and value % known == 0 and unify(unknown, _Ground(value // known), binding, goals)
    result = value - known if operator == "+" else known - value if b is None else value + known
    return unify(unknown, _Ground(result), binding, goals)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "=<": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def _settle(binding: Binding, goals: list[Goal]) -> list[Goal] | None:
    """Decide what can be decided of the goals; what is left of them, or None where one fails."""
    while goals:
        left: list[Goal] = []
        before = len(binding)
        for a, b in goals:
            if not unify(a, b, binding, left):
                return None
        if len(binding) == before and len(left) >= len(goals):
            return left
        goals = left
    return goals


# -- instances -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Instance:
    """A ground rule: its head and its items, in the order of the text."""

    rule: s.Rule
    head: Row
    items: tuple[Key, ...]


def _items(expression: s.Expression) -> list[s.Item]:
    """The items of a right side in the order of the text, those of `SIDE` too."""
    match expression:
        case s.ItemValue(item) | s.Side(item):
            return [item]
        case s.Application(_, operands):
            return [item for operand in operands for item in _items(operand)]
    return []


def _mentioned(rule: s.Rule) -> list[str]:
    """The predicates whose items say which instances a rule has."""
    negated = [c.item.key for c in rule.conditions if isinstance(c, s.Negation)]
    return [item.key for item in _items(rule.body)] + negated


class _Database:
    """The derived items, and for one round the rows that agree with given values at given positions."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[Row, None]] = {}
        self._by: dict[tuple[str, tuple[int, ...]], dict[Row, list[Row]]] = {}

    def add(self, key: str, row: Row) -> bool:
        rows = self.rows.setdefault(key, {})
        if row in rows:
            return False
        rows[row] = None
        return True

    def count(self, key: str) -> int:
        return len(self.rows.get(key, ()))

    def new_round(self) -> None:
        self._by = {}

    def matching(self, item: s.Item, binding: Binding) -> list[Row]:
        known = [(i, v) for i, a in enumerate(item.arguments) if (v := ground(a, binding)) is not None]
        positions = tuple(i for i, _ in known)
        if (item.key, positions) not in self._by:
            index: dict[Row, list[Row]] = {}
            for row in self.rows.get(item.key, {}):
                index.setdefault(tuple(row[i] for i in positions), []).append(row)
            self._by[item.key, positions] = index
        return self._by[item.key, positions].get(tuple(v for _, v in known), [])


def _instances(rule: s.Rule, database: _Database, externals: frozenset[str]) -> Iterator[Instance]:
    """All instances of a rule whose items are derived: one per distinct binding of its variables."""
    items = _items(rule.body)
    joined = [item for item in items if item.key not in externals]
    equations: list[Goal] = [(c.left, c.right) for c in rule.conditions if isinstance(c, s.Equation)]

    def comparisons_hold(binding: Binding, final: bool) -> bool:
        for condition in rule.conditions:
            if isinstance(condition, s.Comparison):
                try:
                    a, b = ground(condition.left, binding), ground(condition.right, binding)
                except _Fails:
                    return False
                if a is None or b is None:
                    if final:
                        raise Unbound(f"{condition} of {rule.text}")
                elif not _COMPARISONS[condition.operator](a, b):
                    return False
        return True

    def join(position: int, binding: Binding, goals: list[Goal]) -> Iterator[Binding]:
        settled = _settle(binding, goals)
        if settled is None or not comparisons_hold(binding, final=position == len(joined)):
            return
        if position == len(joined):
            if settled:
                raise Unbound(f"{settled} of {rule.text}")
            yield binding
            return
        item = joined[position]
        try:
            rows = database.matching(item, binding)
        except _Fails:
            return
        for row in rows:
            extended, more = dict(binding), list(settled)
            if all(unify(a, _Ground(v), extended, more) for a, v in zip(item.arguments, row, strict=True)):
                yield from join(position + 1, extended, more)

    def absent(item: s.Item, binding: Binding) -> bool:
        try:
            rows = database.matching(item, binding)
        except _Fails:
            return True
        for row in rows:
            extended: Binding = dict(binding)
            goals: list[Goal] = []
            if all(unify(a, _Ground(v), extended, goals) for a, v in zip(item.arguments, row, strict=True)):
                left = _settle(extended, goals)
                if left:
                    raise Unbound(f"{left} of {rule.text}")
                if left is not None:
                    return False
        return True

    def row_of(item: s.Item, binding: Binding) -> Row:
        values = [ground(a, binding) for a in item.arguments]
        if any(v is None for v in values):
            raise Unbound(f"{item} of {rule.text}")
        return tuple(v for v in values if v is not None)

    seen: set[tuple[tuple[str, Value], ...]] = set()
    for binding in join(0, {}, equations):
        distinct = tuple(sorted(binding.items(), key=lambda entry: entry[0]))
        if distinct in seen:
            continue
        seen.add(distinct)
        if all(absent(c.item, binding) for c in rule.conditions if isinstance(c, s.Negation)):
            try:
                yield Instance(rule, row_of(rule.head, binding), tuple((i.key, row_of(i, binding)) for i in items))
            except _Fails:
                continue


# -- programs --------------------------------------------------------------------------------------------------------


def _constant(expression: s.Expression) -> float | int | None:
    """The number that a right side is, if it is one."""
    match expression:
        case s.Numeral(value):
            return value
        case s.Application("neg", (operand,)):
            inner = _constant(operand)
            return None if inner is None else -inner
    return None


def _is_axiom(rule: s.Rule) -> bool:
    return (
        rule.aggregator == "=" and not rule.conditions and (rule.body == _NOTHING or _constant(rule.body) is not None)
    )


_NOTHING = s.Application("*", ())  # the product of nothing, which `head.` asserts


def aggregator_of(program: s.Source) -> dict[str, str]:
    """How contributions to an item are put together, for each predicate of which some rule says it.

    A constant may be asserted by `=` whatever the aggregator is, so it does not say it.
    """
    found: dict[str, str] = {}
    for rule in program.rules:
        if not (rule.aggregator == "=" and not rule.conditions and not _items(rule.body)):
            found.setdefault(rule.head.key, rule.aggregator)
    return found


def _reading(expression: s.Expression) -> list[bool]:
    """For each item of a right side, whether its value is read, and not only asked for by `SIDE`."""
    match expression:
        case s.ItemValue():
            return [True]
        case s.Side():
            return [False]
        case s.Application(_, operands):
            return [reads for operand in operands for reads in _reading(operand)]
    return []


def _join_of(source: s.Source) -> dict[str, str]:
    """How several values that are given for one fact are put together, where no rule defines its predicate: as the
    program declares, or as the rules do that read it."""
    found: dict[str, str] = {}
    for rule in source.rules:
        for item, reads in zip(_items(rule.body), _reading(rule.body), strict=True):
            if reads:
                found.setdefault(item.key, rule.aggregator)
    found.update(aggregator_of(source))
    declared = [d for d in source.declarations if isinstance(d, s.PredicateDeclaration)]
    return found | {key: aggregator for d in declared for key, aggregator in d.joins}


def _groups(rules: Sequence[s.Rule]) -> list[set[str]]:
    """Predicates that depend on one another, and an order in which each group needs only earlier ones."""
    needs: dict[str, set[str]] = {}
    negative: set[tuple[str, str]] = set()
    for rule in rules:
        mine = needs.setdefault(rule.head.key, set())
        mine.update(item.key for item in _items(rule.body))
        for condition in rule.conditions:
            if isinstance(condition, s.Negation):
                mine.add(condition.item.key)
                negative.add((rule.head.key, condition.item.key))
    for key in list(needs):
        for other in needs[key]:
            needs.setdefault(other, set())
    reach = {key: set(direct) for key, direct in needs.items()}
    while any(add := {k: {y for x in r for y in reach[x]} - r for k, r in reach.items()}) and any(add.values()):
        for key, more in add.items():
            reach[key] |= more
    groups: list[set[str]] = []
    for key in reach:
        if not any(key in group for group in groups):
            groups.append({key} | {other for other in reach[key] if key in reach[other]})
    for head, item in negative:
        if head in reach[item] or head == item:
            raise ValueError(f"{head} depends on `not {item}` in a cycle")
    return sorted(groups, key=lambda group: len(set().union(*(reach[key] for key in group)) | group))


def fact_rows(facts: Mapping[str, Any]) -> Iterator[tuple[str, Row, Any]]:
    """Key, row and value (None where none is given) of facts, which are rows or dicts from rows to values."""
    for key, rows in facts.items():
        arity = int(key.rsplit("/", 1)[1])
        pairs = rows.items() if isinstance(rows, Mapping) else ((row[:arity], *row[arity:]) for row in rows)
        for row, *value in pairs:
            yield key, tuple(term(v) for v in row), value[0] if value else None


def evaluate(
    program: Any,
    facts: Mapping[str, Any] | None = None,
    *,
    semiring: str | Semiring | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    digits: int | None = None,
    max_items: int = 100_000,
    max_rounds: int = 10_000,
) -> dict[Key, Any]:
    """The value of every derived item of a program (a `Source`, or anything with one as its `.source`).

    `digits` computes with that many decimal digits. Raises `Diverged` where items or values do not settle.
    """
    if digits is not None:
        with mpmath.workdps(digits):
            return _evaluate(program, facts or {}, semiring, functions or {}, Numbers(digits), max_items, max_rounds)
    return _evaluate(program, facts or {}, semiring, functions or {}, Numbers(), max_items, max_rounds)


def declared_semiring(source: s.Source) -> str | None:
    """The semiring that a program's text declares."""
    return next((d.name for d in source.declarations if isinstance(d, s.SemiringDeclaration)), None)


def _evaluate(
    program: Any,
    facts: Mapping[str, Any],
    semiring: str | Semiring | None,
    functions: Mapping[str, Callable[..., Any]],
    numbers: Numbers,
    max_items: int,
    max_rounds: int,
) -> dict[Key, Any]:
    source: s.Source = getattr(program, "source", program)
    semiring = declared_semiring(source) if semiring is None else semiring
    ring = builtin_semirings(numbers)[semiring] if isinstance(semiring, str) else semiring
    external = frozenset(
        key
        for d in source.declarations
        if isinstance(d, s.PredicateDeclaration) and d.kind == "external"
        for key in d.keys
    )
    rules = [rule for rule in source.rules if not _is_axiom(rule)]
    combine_of = aggregators(numbers)
    aggregator = aggregator_of(source)
    joins = _join_of(source)
    total_of = {key: combine_of[op][1] for key, op in (joins | aggregator).items()}
    read = numbers.convert if ring is None else ring.number

    # What is asserted: a value per fact and per axiom, to be combined with the contributions of rules.
    asserted: dict[Key, list[Any]] = {}
    for key, row, value in fact_rows(facts):
        one = numbers.convert(1) if ring is None else ring.one
        asserted.setdefault((key, row), []).append(one if value is None else read(value))
    only: dict[Key, Any] = {}  # by `=` where nothing else says how to put several together: they have to agree
    for rule in source.rules:
        if _is_axiom(rule):
            item = rule.head.key, tuple(v for a in rule.head.arguments if (v := ground(a, {})) is not None)
            one = numbers.convert(1) if ring is None else ring.one
            value = one if rule.body == _NOTHING else read(_constant(rule.body))
            if ring is None and rule.head.key not in aggregator:
                if only.setdefault(item, value) != value:
                    raise Conflict(f"{item} has the values {only[item]} and {value}")
            else:
                asserted.setdefault(item, []).append(value)
    for item, value in only.items():
        asserted.setdefault(item, []).append(value)
    database = _Database()
    for key, row in asserted:
        database.add(key, row)

    def total(key: str, values: list[Any]) -> Any:
        if ring is None:
            return total_of.get(key, numbers.sum)(values)
        states = aggregator.get(key) == "|=" and semiring != "boolean"  # an item is worth one, whatever its values
        return ring.one if states else ring.total(values)

    declared = {key for d in source.declarations if isinstance(d, s.PredicateDeclaration) for key, _ in d.joins}
    derived = {rule.head.key for rule in rules}

    def rows(item: Key, reads: bool) -> list[Any]:
        """What a rule may read of an item: each value that was given for a fact, where only rules say how they join."""
        apart = ring is None and reads and item[0] not in derived | declared | aggregator.keys()
        if item[0] in external:
            return [external_value(item)]
        return asserted[item] if apart else [values.get(item)]

    def external_value(item: Key) -> Any:
        return read(functions[item[0].rsplit("/", 1)[0]](*item[1]))

    def contribution(instance: Instance, values: Iterator[Any]) -> Any:
        def compute(expression: s.Expression) -> Any:
            match expression:
                case s.Numeral(value):
                    return read(value)
                case s.Side():
                    next(values)
                    return numbers.convert(1) if ring is None else ring.one
                case s.ItemValue():
                    return next(values)
                case s.Application("*", ()):
                    return numbers.convert(1) if ring is None else ring.one
                case s.Application(operator, operands):
                    constant = _constant(expression)
                    if constant is not None:
                        return read(constant)
                    arguments = [compute(o) for o in operands]
                    if ring is not None:
                        if operator != "*":
                            raise ValueError(f"{operator} is no operation of a semiring: {instance.rule.text}")
                        return ring.times(*arguments)
                    if operator in numbers.operations:
                        return numbers.operations[operator](*arguments)
                    return numbers.convert(functions[operator](*arguments))
            raise TypeError(f"not an expression: {expression!r}")

        return compute(instance.rule.body)

    values: dict[Key, Any] = {item: total(item[0], given) for item, given in asserted.items()}
    for group in _groups(rules):
        mine = [rule for rule in rules if rule.head.key in group]
        if not mine:
            continue
        # First which items are derived, whatever their values.
        grew = True
        # the instances of each rule, and how many items there were of what it mentions
        of_rule: list[tuple[list[int] | None, list[Instance]]] = [(None, [])] * len(mine)
        while grew:
            database.new_round()
            for n, rule in enumerate(mine):
                counts = [database.count(key) for key in _mentioned(rule)]
                if of_rule[n][0] != counts:
                    of_rule[n] = counts, list(_instances(rule, database, external))
            found = [i for _, instances in of_rule for i in instances]
            grew = False
            for instance in found:
                grew |= database.add(instance.rule.head.key, instance.head)
            if sum(map(len, database.rows.values())) > max_items:
                raise Diverged(f"more than {max_items} items")
        # Then their values: each from the newest of the others, until nothing changes.
        by_head: dict[Key, list[Instance]] = {}
        for instance in found:
            by_head.setdefault((instance.rule.head.key, instance.head), []).append(instance)
        for item in by_head:
            values.pop(item, None)

        def contributions(item: Key, instances: list[Instance]) -> list[Any]:
            result = list(asserted.get(item, []))
            for instance in instances:
                pairs = zip(instance.items, _reading(instance.rule.body), strict=True)
                for now in itertools.product(*(rows(i, reads) for i, reads in pairs)):
                    if all(v is not None for v in now):
                        result.append(contribution(instance, iter(now)))
            return result

        heads_of: dict[Key, set[Key]] = {}
        for item, instances in by_head.items():
            for other in {other for instance in instances for other in instance.items}:
                heads_of.setdefault(other, set()).add(item)
        stale = set(by_head)  # of which something has changed since they were computed
        for _ in range(max_rounds):
            for item, instances in by_head.items():
                if item not in stale:
                    continue
                stale.remove(item)
                given = contributions(item, instances)
                if not given:
                    continue
                new = total(item[0], given)
                old = values.get(item)
                if old is None or not numbers.same(old, new):
                    stale |= heads_of.get(item, set())
                values[item] = new
            if not stale:
                if any(item not in values for item in by_head):
                    raise Diverged(f"some of {sorted(group)} have no value")
                break
        else:
            raise Diverged(f"the values of {sorted(group)} did not settle in {max_rounds} rounds")
        if ring is None:
            for item, instances in by_head.items():
                if aggregator[item[0]] == "=" and len(set(contributions(item, instances))) > 1:
                    raise Conflict(f"{item} has the values {contributions(item, instances)}")
    if ring is None:
        for item, given in asserted.items():
            if aggregator.get(item[0]) == "=" and len(set(given)) > 1:
                raise Conflict(f"{item} has the values {given}")
    return values


def zero_of(program: Any, key: str, semiring: str | Semiring | None = None) -> Any:
    """What a lookup of an item that is never derived gives."""
    source: s.Source = getattr(program, "source", program)
    semiring = declared_semiring(source) if semiring is None else semiring
    if semiring is not None:
        return (builtin_semirings(Numbers())[semiring] if isinstance(semiring, str) else semiring).zero
    return aggregators(Numbers())[aggregator_of(source).get(key, "+=")][0]


def close(a: Any, b: Any, tolerance: float = 1e-9) -> bool:
    """Whether two values are the same up to rounding; a truth value may be given as a number."""
    if isinstance(a, (tuple, list)) or isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(close(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if a == b:
        return True
    return bool(abs(float(a) - float(b)) <= tolerance * max(1.0, abs(float(a)), abs(float(b))))
