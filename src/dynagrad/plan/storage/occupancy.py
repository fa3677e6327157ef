"""Occupancy: how many items each predicate may have, estimated before anything is run.

It decides whether a large array would be nearly empty; that decision is in `layout.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from math import inf, prod

from ...rules.normal import NormalRule, Rules
from ...rules.syntax import Arithmetic, Compound, Equation, Term, Variable

PairCount = Callable[[str, int, int], float]
"""How many different pairs of values facts of a predicate have in two arguments; of values, in one argument twice."""

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
