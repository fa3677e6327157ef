"""Interval analysis of integer arguments (Cousot and Cousot 1977).

An integer argument of a derived predicate is *bounded* if every rule computes it from bounded ones; its interval is
then the range of the facts in its domain, extended by constants. The layouts of tables that follow are chosen in
`plan/storage/layout.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...rules.normal import NormalRule, Rules
from ...rules.syntax import Arithmetic, Comparison, Equation, Integer, Term, Variable
from ...rules.types import Domains
from ..model import Extent, Summary

Interval = tuple[int | None, int | None]  # relative to the domain's low and high; None is unbounded
WHOLE: Interval = (0, 0)
UNBOUNDED: Interval = (None, None)


def _shift(interval: Interval, by: int) -> Interval:
    low, high = interval
    return (None if low is None else low + by, None if high is None else high + by)


def _meet(a: Interval, b: Interval) -> Interval:
    low = b[0] if a[0] is None else a[0] if b[0] is None else max(a[0], b[0])
    high = b[1] if a[1] is None else a[1] if b[1] is None else min(a[1], b[1])
    return (low, high)


def _join(a: Interval | None, b: Interval) -> Interval:
    if a is None:
        return b
    low = None if a[0] is None or b[0] is None else min(a[0], b[0])
    high = None if a[1] is None or b[1] is None else max(a[1], b[1])
    return (low, high)


class _Intervals:
    """The intervals of one rule's variables, from its antecedents and conditions."""

    def __init__(self, rule: NormalRule, known: Mapping[tuple[str, int], Interval | None]) -> None:
        self.of: dict[str, Interval] = {}
        self.possible = True
        for antecedent in rule.antecedents:
            for i, term in enumerate(antecedent.item.arguments):
                interval = known.get((antecedent.item.key, i), UNBOUNDED)  # not of integers, or not of them alone
                if interval is None:
                    self.possible = False
                elif isinstance(term, Variable):
                    self._narrow(term.name, interval)
        for _ in range(3):  # chains of equations are rarely longer
            for condition in rule.conditions:
                if isinstance(condition, Equation):
                    self._equate(condition.left, condition.right)
                    self._equate(condition.right, condition.left)
                elif isinstance(condition, Comparison):
                    self._compare(condition)

    def _narrow(self, name: str, interval: Interval) -> None:
        self.of[name] = _meet(self.of.get(name, UNBOUNDED), interval)

    def interval(self, term: Term) -> Interval:
        match term:
            case Variable(name=name):
                return self.of.get(name, UNBOUNDED)
            case Integer():
                return WHOLE  # the domain's range includes the program's constants
            case Arithmetic(operator="+", operands=(inner, Integer(value=by))):
                return _shift(self.interval(inner), by)
            case Arithmetic(operator="+", operands=(Integer(value=by), inner)):
                return _shift(self.interval(inner), by)
            case Arithmetic(operator="-", operands=(inner, Integer(value=by))):
                return _shift(self.interval(inner), -by)
            case Arithmetic(operator="min" | "max", operands=(left, right)):  # one of the two
                return _join(self.interval(left), self.interval(right))
        return UNBOUNDED

    def _equate(self, target: Term, source: Term) -> None:
        match target:
            case Variable(name=name):
                self._narrow(name, self.interval(source))
            case Arithmetic(operator="+", operands=(Variable(name=name), Integer(value=by))):
                self._narrow(name, _shift(self.interval(source), -by))
            case Arithmetic(operator="-", operands=(Variable(name=name), Integer(value=by))):
                self._narrow(name, _shift(self.interval(source), by))

    def _compare(self, condition: Comparison) -> None:
        left, right = condition.left, condition.right
        flip = {"<": ">", "=<": ">=", ">": "<", ">=": "=<", "==": "=="}
        for operator, a, b in ((condition.operator, left, right), (flip.get(condition.operator, ""), right, left)):
            if isinstance(a, Variable):
                low, high = self.interval(b)
                match operator:
                    case "<":
                        self._narrow(a.name, (None, None if high is None else high - 1))
                    case "=<":
                        self._narrow(a.name, (None, high))
                    case ">":
                        self._narrow(a.name, (None if low is None else low + 1, None))
                    case ">=":
                        self._narrow(a.name, (low, None))
                    case "==":
                        self._narrow(a.name, (low, high))


def extents(rules: Rules, domains: Domains, summary: Summary) -> dict[tuple[str, int], Extent | None]:
    """The interval of every integer argument of every predicate; None where it is unbounded."""
    known: dict[tuple[str, int], Interval | None] = {}

    def is_int(key: str, i: int) -> bool:
        return summary.domains[domains.of[key, i]].kind == "int"

    for key, predicate in rules.predicates.items():
        facts = summary.facts.get(key)
        given = (facts is not None and facts.rows > 0) or not predicate.defined
        for i in range(predicate.arity):
            if is_int(key, i):
                known[key, i] = UNBOUNDED if predicate.external else WHOLE if given else None
    by_head: dict[str, list[NormalRule]] = {}
    for rule in rules.rules:
        by_head.setdefault(rule.head.key, []).append(rule)

    def result(rule: NormalRule) -> list[tuple[int, Interval]] | None:
        scope = _Intervals(rule, known)
        if not scope.possible:
            return None
        return [(i, scope.interval(t)) for i, t in enumerate(rule.head.arguments) if is_int(rule.head.key, i)]

    for component in rules.components:
        members = [rule for key in component for rule in by_head.get(key, ())]
        axioms = {p: v for p, v in known.items() if p[0] in component}
        changed, rounds = True, 0
        while changed:
            changed, rounds = False, rounds + 1
            for rule in members:
                for i, interval in result(rule) or ():
                    place = (rule.head.key, i)
                    old = known[place]
                    new = _join(old, interval)
                    if new == old:
                        continue
                    if rounds > 4 and old is not None:  # widening: a bound that keeps moving is none
                        new = (new[0] if new[0] == old[0] else None, new[1] if new[1] == old[1] else None)
                    known[place] = new
                    changed = True
        for _ in range(2):  # narrowing, by the conditions of rules
            fresh: dict[tuple[str, int], Interval | None] = dict(axioms)
            for rule in members:
                for i, interval in result(rule) or ():
                    fresh[rule.head.key, i] = _join(fresh[rule.head.key, i], interval)
            known.update(fresh)
    out: dict[tuple[str, int], Extent | None] = {}
    for place, bounds in known.items():
        low, high = bounds if bounds is not None else WHOLE
        out[place] = None if low is None or high is None else Extent(low, high)
    return out
