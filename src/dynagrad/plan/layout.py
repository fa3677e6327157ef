"""Interval analysis of integer arguments (Cousot and Cousot 1977), and the storage of predicates that follows from it.

An integer argument of a derived predicate is *bounded* if every rule computes it from bounded ones; its interval is
then the range of the facts in its domain, extended by constants. A predicate with bounded arguments over small domains
is stored as a dense array, any other in a hash table; and so is one whose large array would be nearly empty, by an
estimate of its items. Indexes follow from joins, and are chosen in `planner.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from math import inf, prod

from ..rules.normal import NormalRule, Rules
from ..rules.syntax import Arithmetic, Comparison, Compound, Equation, Integer, Term, Variable
from ..rules.types import Domains
from .model import DomainSummary, Extent, Summary

DENSE_CELLS = 1 << 26
"""The most cells of all dense tables of a plan."""
SMALL = 1 << 22
"""A table of at most so many cells is dense whatever the number of its items."""
LEAST_SHARE = 1 / 8
"""The least share of the cells of a larger table that has to be filled, as is estimated: a hash table then needs no
more memory than the array."""

PairCount = Callable[[str, int, int], float]
"""How many different pairs of values facts of a predicate have in two arguments; of values, in one argument twice."""

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


def cells(
    arity: int, domain_of: Sequence[DomainSummary], ranges: Sequence[Extent | None], order: Sequence[int]
) -> int | None:
    """The number of cells of a dense table in the runtime's layout; None where an argument is unbounded."""
    total = 1
    for place, i in enumerate(order):
        domain = domain_of[i]
        if domain.kind == "term":
            return None
        count = domain.count
        if domain.kind == "int":
            extent = ranges[i]
            if extent is None:
                return None
            count = max(0, count - extent.below + extent.above)
        total *= (count + 7) // 8 * 8 if place == arity - 1 else count
    return total


# -- how full a table would be -----------------------------------------------------------------------------------------

MOST_RULES = 1000
"""With more rules than this, no estimate is made."""
ROUNDS = 8
"""So often estimates of recursive predicates are improved; what grows on may have all values that its domains have."""


class Occupancy:
    """The estimated number of items of each predicate, from the numbers of values of its arguments and of their pairs.

    Those of facts are counted. Those of rules are of joins, as query optimisers estimate them (Selinger et al. 1979):
    a pair of variables that share no antecedent is joined over a variable that both stand beside. What several rules
    derive is added up. Items are then estimated from the pairs that say most, as if all else were independent (Chow
    and Liu 1968). It is rather too large: it knows neither of order nor of three arguments that belong together.
    """

    def __init__(
        self, rules: Rules, live: Sequence[NormalRule], most: Callable[[str, int], float], count: PairCount
    ) -> None:
        """`most` is how many values an argument of a predicate may have, `count` the pairs of those with facts."""
        self._rules, self._most = rules, most
        self._known: dict[tuple[str, int, int], float] = {}
        by_head: dict[str, list[_Sources]] = {}
        for rule in live:
            by_head.setdefault(rule.head.key, []).append(_Sources(rule))
        for key, predicate in rules.predicates.items():
            for i, j in _pairs(predicate.arity):
                self._known[key, i, j] = inf if predicate.external else min(count(key, i, j), self._cap(key, i, j))
        given = dict(self._known)
        for component in rules.components:
            keys = [key for key in component if key in by_head]
            rounds, growing = 0, True
            while growing:
                rounds, growing = rounds + 1, False
                for key in keys:
                    for i, j in _pairs(rules.predicates[key].arity):
                        before, cap = self._known[key, i, j], self._cap(key, i, j)
                        found = min(given[key, i, j] + sum(s.values(self._known, i, j) for s in by_head[key]), cap)
                        if found > 1.01 * before:
                            self._known[key, i, j] = found if rounds <= ROUNDS else cap
                            growing = True

    def _cap(self, key: str, i: int, j: int) -> float:
        return self._most(key, i) * (self._most(key, j) if i != j else 1.0)

    def items(self, key: str) -> float:
        """How many items a predicate may have."""
        arity = self._rules.predicates[key].arity
        one = [max(1.0, self._known[key, i, i]) for i in range(arity)]
        share = {(i, j): self._known[key, i, j] / (one[i] * one[j]) for i, j in combinations(range(arity), 2)}
        total, tree = prod(one), list(range(arity))
        for i, j in sorted(share, key=lambda pair: share[pair]):
            if share[i, j] < 1 and tree[i] != tree[j]:
                total *= share[i, j]
                tree = [tree[i] if t == tree[j] else t for t in tree]
        return max(total, 1.0)


class _Sources:
    """Where the values of the arguments of a rule's head come from."""

    def __init__(self, rule: NormalRule) -> None:
        self._rule = rule
        self._places: dict[str, list[tuple[int, int]]] = {}
        for n, antecedent in enumerate(rule.antecedents):
            for i, term in enumerate(antecedent.item.arguments):
                for name in _names(term):
                    self._places.setdefault(name, []).append((n, i))
        self._equal: dict[str, Term] = {}
        for condition in rule.conditions:
            if isinstance(condition, Equation):
                for a, b in ((condition.left, condition.right), (condition.right, condition.left)):
                    if isinstance(a, Variable) and a.name not in self._places:
                        self._equal.setdefault(a.name, b)
        self._of = [self._roots(t) for t in rule.head.arguments]

    def _roots(self, term: Term) -> frozenset[str]:
        """The variables of antecedents that a term is made of; the term's own where these are not known."""
        found: set[str] = set()
        waiting, seen = list(_names(term)), set[str]()
        while waiting:
            name = waiting.pop()
            if name in self._equal and name not in seen:
                waiting.extend(_names(self._equal[name]))
            else:
                found.add(name)
            seen.add(name)
        return frozenset(found)

    def values(self, known: Mapping[tuple[str, int, int], float], i: int, j: int) -> float:
        """How many pairs of values the rule gives two arguments of its head; none that the same item had already."""
        names = sorted(self._of[i] | self._of[j])
        for antecedent in self._rule.antecedents:
            if antecedent.item.key == self._rule.head.key and all(
                self._rule.head.arguments[k] == antecedent.item.arguments[k] and isinstance(term, Variable)
                for k in {i, j}
                for term in [antecedent.item.arguments[k]]
            ):
                return 0.0
            if any(known[antecedent.item.key, k, k] == 0 for k in range(len(antecedent.item.arguments))):
                return 0.0  # nothing is derived yet
        if len(names) == 2:
            return self._pair(known, *names)
        return prod((self._single(known, name) for name in names), start=1.0)

    def _single(self, known: Mapping[tuple[str, int, int], float], name: str) -> float:
        at = self._places.get(name, ())
        return min((known[self._rule.antecedents[n].item.key, i, i] for n, i in at), default=inf)

    def _pair(self, known: Mapping[tuple[str, int, int], float], x: str, y: str) -> float:
        """How many pairs of values two variables have: in an antecedent with both, or in two that share a third."""
        best = self._single(known, x) * self._single(known, y)
        for n, i in self._places.get(x, ()):
            for m, j in self._places.get(y, ()):
                a, b = self._rule.antecedents[n].item, self._rule.antecedents[m].item
                if n == m:
                    best = min(best, known[a.key, min(i, j), max(i, j)])
                    continue
                for k, term in enumerate(a.arguments):
                    for h, other in enumerate(b.arguments):
                        if isinstance(term, Variable) and term == other:
                            left, right = known[a.key, min(i, k), max(i, k)], known[b.key, min(j, h), max(j, h)]
                            values = max(known[a.key, k, k], known[b.key, h, h], 1.0)
                            best = min(best, left * right / values)
        return best


def _pairs(arity: int) -> Iterable[tuple[int, int]]:
    return [(i, j) for i in range(arity) for j in range(i, arity)]


def _names(term: Term) -> list[str]:
    found: list[str] = []
    waiting: list[Term] = [term]
    while waiting:
        match waiting.pop():
            case Variable(name=name):
                found.append(name)
            case Compound(arguments=parts) | Arithmetic(operands=parts):
                waiting.extend(parts)
    return found


def dense_tables(
    sizes: Mapping[str, int | None], most: int, occupancy: Callable[[], Occupancy | None]
) -> frozenset[str]:
    """The predicates that are stored as arrays, from the numbers of cells that these would have.

    >>> sorted(dense_tables({"a/1": 100, "b/2": 60, "c/1": None}, 120, lambda: None))
    ['b/2']
    """
    found, left, estimate = set[str](), most, None
    for key, size in sorted(sizes.items(), key=lambda pair: (pair[1] or 0, pair[0])):
        if size is None or size > left:
            continue
        if size > SMALL:
            estimate = estimate or occupancy()
            if estimate is not None and estimate.items(key) < LEAST_SHARE * size:
                continue
        found.add(key)
        left -= size
    return frozenset(found)


def still_dense(now: Mapping[str, int | None], planned: Mapping[str, int], most: int) -> bool:
    """Whether tables that are dense in a plan, with so many cells there, may be with as many as they have now."""
    total = 0
    for key, size in now.items():
        if size is None or (size > SMALL and planned[key] <= SMALL):
            return False  # how full it would be was never asked
        total += size
    return total <= most
