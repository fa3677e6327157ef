"""Levels of a stage: an order in which items become final, from a termination analysis with linear ranking functions.

A *gap* is a lower bound on the difference of two ordered arguments (integers, or atoms that the facts order). Gaps of
derived predicates follow from those of facts, by abstract interpretation of the rules over difference bounds (Dill
1989). A *form* maps each item of a stage to an integer. A list of forms is an order if in every recursive rule it is
lexicographically larger at the head than at each recursive antecedent; then each item is popped once. Whether a stage
runs by levels is decided in `strategy.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from ..rules.normal import NormalRule, Rules
from ..rules.syntax import Arithmetic, Comparison, Equation, Integer, Item, Negation, Term, Variable
from ..rules.types import Domains
from .model import LinearForm, Summary

NO_BOUND = -(10**9)
TOTAL = (-1, -1)  # the key of the bound on an item's total width, among those of pairs of arguments
ZERO = "0"  # the node of the constant zero
Gaps = Mapping[tuple[int, int], int]


def is_ordered(domains: Domains, summary: Summary, key: str, position: int) -> bool:
    """Whether an argument is an integer, or an atom with a rank."""
    domain = summary.domains[domains.of[key, position]]
    return domain.kind == "int" or (domain.kind == "atom" and domain.ranked)


@dataclass(frozen=True)
class Linear:
    """`node + offset`; the node is a variable's name or ZERO."""

    node: str
    offset: int


def linear(term: Term, resolve: Callable[[str], Linear]) -> Linear | None:
    """A term as `node + offset`, if it is a variable, an integer, or the sum of both."""
    match term:
        case Variable(name=name):
            return resolve(name)
        case Integer(value=value):
            return Linear(ZERO, value)
        case Arithmetic(operator="+", operands=(Variable(name=name), Integer(value=value))):
            base = resolve(name)
            return Linear(base.node, base.offset + value)
        case Arithmetic(operator="+", operands=(Integer(value=value), Variable(name=name))):
            base = resolve(name)
            return Linear(base.node, base.offset + value)
        case Arithmetic(operator="-", operands=(Variable(name=name), Integer(value=value))):
            base = resolve(name)
            return Linear(base.node, base.offset - value)
    return None


def offsets(rule: NormalRule) -> dict[str, Linear]:
    """The variables that equations define as another variable, or zero, plus a constant offset."""
    tied: dict[str, Linear] = {}

    def resolve(name: str) -> Linear:
        shift = 0
        while name in tied:
            step = tied[name]
            name, shift = step.node, shift + step.offset
        return Linear(name, shift)

    for condition in rule.conditions:
        if not isinstance(condition, Equation):
            continue
        left, right = linear(condition.left, resolve), linear(condition.right, resolve)
        if left is None or right is None or left.node == right.node:
            continue
        if left.node != ZERO:
            tied[left.node] = Linear(right.node, right.offset - left.offset)
        elif right.node != ZERO:
            tied[right.node] = Linear(left.node, left.offset - right.offset)
    return {name: resolve(name) for name in tied}


def largest_offset(rules: Rules) -> int:
    """The most that a rule adds to variables, or takes from them, all of its terms together.

    No order depends on larger gaps than this and one more.
    """
    return max((sum(map(_offset, _terms_of(rule))) for rule in rules.rules), default=0)


def _offset(term: Term) -> int:
    """The whole numbers in the arithmetic of a term, as if all had one sign."""
    if not isinstance(term, Arithmetic):
        return 0
    return sum(abs(part.value) if isinstance(part, Integer) else _offset(part) for part in term.operands)


def _terms_of(rule: NormalRule) -> Iterator[Term]:
    """The arguments of a rule's items, and the sides of its conditions."""
    for item in (rule.head, *(antecedent.item for antecedent in rule.antecedents)):
        yield from item.arguments
    for condition in rule.conditions:
        if isinstance(condition, Equation | Comparison):
            yield from (condition.left, condition.right)


class DifferenceBounds:
    """Difference bounds on the variables of a rule: lower bounds on x - y, closed under addition (shortest paths)."""

    def __init__(
        self,
        rule: NormalRule,
        gaps: Mapping[str, Gaps | None],
        domains: Domains,
        summary: Summary,
        assume: Iterable[tuple[str, str, int]] = (),
    ) -> None:
        self.tied = offsets(rule)
        self.possible = True
        self.sums: list[tuple[list[tuple[Term, int]], int]] = []  # sums of terms, and their lower bounds
        self.low: dict[tuple[str, str], int] = {}
        for antecedent in rule.antecedents:
            known = gaps.get(antecedent.item.key)
            if known is None:
                self.possible = False
                continue
            for (i, j), least in known.items():
                if (i, j) == TOTAL:
                    self.sums.append((total_width(domains, summary, antecedent.item), least))
                else:
                    self._learn(antecedent.item.arguments[i], antecedent.item.arguments[j], least)
        for condition in rule.conditions:
            if isinstance(condition, Comparison):
                match condition.operator:
                    case "<":
                        self._learn(condition.left, condition.right, 1)
                    case "=<":
                        self._learn(condition.left, condition.right, 0)
                    case ">":
                        self._learn(condition.right, condition.left, 1)
                    case ">=":
                        self._learn(condition.right, condition.left, 0)
                    case "==":
                        self._learn(condition.left, condition.right, 0)
                        self._learn(condition.right, condition.left, 0)
        for left, right, least in assume:
            self._put(left, right, least)
        self._close()

    def linear(self, term: Term) -> Linear | None:
        return linear(term, lambda name: self.tied.get(name, Linear(name, 0)))

    def _put(self, low: str, high: str, least: int) -> None:
        if low != high and least > self.low.get((low, high), NO_BOUND):
            self.low[low, high] = least

    def _learn(self, low: Term, high: Term, least: int) -> None:
        a, b = self.linear(low), self.linear(high)
        if a is not None and b is not None:
            self._put(a.node, b.node, least + a.offset - b.offset)

    def _close(self) -> None:
        nodes = sorted({n for pair in self.low for n in pair})
        for via in nodes:
            for a in nodes:
                first = self.low.get((a, via))
                if first is None or a == via:
                    continue
                for b in nodes:
                    second = self.low.get((via, b))
                    if second is not None and b not in (a, via):
                        self._put(a, b, min(first + second, 10**6))

    def gap(self, low: Term, high: Term) -> int:
        """A lower bound on `high - low`, or NO_BOUND."""
        a, b = self.linear(low), self.linear(high)
        if a is None or b is None:
            return NO_BOUND
        if a.node == b.node:
            return b.offset - a.offset
        known = self.low.get((a.node, b.node), NO_BOUND)
        return NO_BOUND if known == NO_BOUND else known + b.offset - a.offset

    def least(self, terms: Sequence[tuple[Term, int]]) -> int:
        """A lower bound on a sum of coefficient * term, or NO_BOUND."""
        best = self._least(terms)
        for known, least in self.sums:
            rest = self._least([*terms, *((t, -c) for t, c in known)])
            if rest != NO_BOUND:
                best = max(best, rest + least)
        return best

    def _least(self, terms: Sequence[tuple[Term, int]]) -> int:
        """The same from bounds on pairs alone, by the best matching of positive with negative terms."""
        total, weights = 0, dict[str, int]()
        for term, coefficient in terms:
            part = self.linear(term)
            if part is None:
                return NO_BOUND
            total += coefficient * part.offset
            if part.node != ZERO:
                weights[part.node] = weights.get(part.node, 0) + coefficient
        highs = [n for n, w in weights.items() for _ in range(w)]
        lows = [n for n, w in weights.items() for _ in range(-w)]
        while len(highs) < len(lows):
            highs.append(ZERO)
        while len(lows) < len(highs):
            lows.append(ZERO)
        if len(highs) > 4:
            return NO_BOUND
        best = NO_BOUND
        for match in permutations(lows):
            parts = [self.low.get((a, b), NO_BOUND) for a, b in zip(match, highs, strict=True)]
            if NO_BOUND not in parts:
                best = max(best, sum(parts))
        return NO_BOUND if highs and best == NO_BOUND else total + (best if highs else 0)


def ordered_pairs(domains: Domains, summary: Summary, key: str, arity: int) -> list[tuple[int, int]]:
    """The pairs of ordered arguments that share a domain."""
    return [
        (i, j)
        for i in range(arity)
        for j in range(arity)
        if i != j and domains.of[key, i] == domains.of[key, j] and is_ordered(domains, summary, key, i)
    ]


def total_width(domains: Domains, summary: Summary, item: Item) -> list[tuple[Term, int]]:
    """Last position minus first, summed over the domains of an item's ordered arguments; empty for fewer than two."""
    places: dict[int, list[int]] = {}
    for i in range(len(item.arguments)):
        if is_ordered(domains, summary, item.key, i):
            places.setdefault(domains.of[item.key, i], []).append(i)
    wide = [p for p in places.values() if len(p) > 1]
    if len(wide) < 2:
        return []
    return [(item.arguments[i], c) for p in wide for i, c in ((p[-1], 1), (p[0], -1))]


def derive_gaps(rules: Rules, domains: Domains, summary: Summary) -> dict[str, Gaps | None]:
    """The gaps of every predicate, by a fixed point over the rules; None for one that has no items."""
    gaps: dict[str, Gaps | None] = {}
    pairs: dict[str, list[tuple[int, int]]] = {}
    for key, predicate in rules.predicates.items():
        facts = summary.facts.get(key)
        if predicate.external:
            gaps[key] = {}
        elif facts is not None and facts.rows:
            gaps[key] = facts.gaps
        else:
            gaps[key] = {} if not predicate.defined else None
        pairs[key] = ordered_pairs(domains, summary, key, predicate.arity)
    by_head: dict[str, list[NormalRule]] = {}
    for rule in rules.rules:
        by_head.setdefault(rule.head.key, []).append(rule)
    for component in rules.components:
        members = [rule for key in component for rule in by_head.get(key, ())]
        rounds = 0
        changed = True
        while changed:
            changed = False
            rounds += 1
            for rule in members:
                bounds = DifferenceBounds(rule, gaps, domains, summary)
                if not bounds.possible:
                    continue
                key = rule.head.key
                arguments = rule.head.arguments
                new = {(i, j): bounds.gap(arguments[i], arguments[j]) for i, j in pairs[key]}
                total = total_width(domains, summary, rule.head)
                if total:
                    new[TOTAL] = bounds.least(total)
                old = gaps[key]
                if old is not None:
                    new = {p: min(g, old.get(p, NO_BOUND)) for p, g in new.items()}
                    if rounds > 3:  # widening: a bound that keeps falling is none
                        new = {p: g if g == old.get(p, NO_BOUND) else NO_BOUND for p, g in new.items()}
                new = {p: g for p, g in new.items() if g != NO_BOUND}
                if new != old:
                    gaps[key] = new
                    changed = True
    return gaps


# -- levels ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Edge:
    """An edge from a recursive antecedent of a rule to its head."""

    rule: NormalRule
    antecedent: int


def candidate_forms(keys: Sequence[str], rules: Rules, domains: Domains, summary: Summary) -> list[LinearForm]:
    """The forms that are tried: positions and widths, by domain and over all domains."""
    places: dict[str, dict[int, list[int]]] = {}
    for key in keys:
        arity = rules.predicates[key].arity
        for i in range(arity):
            if is_ordered(domains, summary, key, i):
                places.setdefault(key, {}).setdefault(domains.of[key, i], []).append(i)
    everywhere = sorted({d for by_domain in places.values() for d in by_domain})
    forms: list[LinearForm] = []

    def form(name: str, pick: Mapping[str, Iterable[tuple[int, int]]]) -> None:
        coefficients = {key: tuple(pick.get(key, ())) for key in keys}
        if any(coefficients.values()) and all(f.coefficients != coefficients for f in forms):
            forms.append(LinearForm(name, coefficients))

    for d in everywhere:
        with_d = {key: places[key][d] for key in keys if d in places.get(key, {})}
        label = "" if len(everywhere) == 1 else f" of domain {d}"
        form("last position" + label, {k: [(p[-1], 1)] for k, p in with_d.items()})
        form("first position, downwards" + label, {k: [(p[0], -1)] for k, p in with_d.items()})
        form("width" + label, {k: [(p[-1], 1), (p[0], -1)] for k, p in with_d.items() if len(p) > 1})
        form("first position" + label, {k: [(p[0], 1)] for k, p in with_d.items()})
        form("last position, downwards" + label, {k: [(p[-1], -1)] for k, p in with_d.items()})
        form("sum of positions" + label, {k: [(i, 1) for i in p] for k, p in with_d.items() if len(p) > 1})
        for n in range(1, max(len(p) for p in with_d.values()) - 1):
            form(f"position {n + 1}" + label, {k: [(p[n], 1)] for k, p in with_d.items() if len(p) > n})
            form(f"position {n + 1}, downwards" + label, {k: [(p[n], -1)] for k, p in with_d.items() if len(p) > n})
    if len(everywhere) > 1:
        form(
            "sum of widths",
            {
                k: [pair for p in by_domain.values() if len(p) > 1 for pair in ((p[-1], 1), (p[0], -1))]
                for k, by_domain in places.items()
            },
        )
        form(
            "sum of positions", {k: [(i, 1) for p in by_domain.values() for i in p] for k, by_domain in places.items()}
        )
    return forms


def form_terms(form: LinearForm, item: Item, sign: int = 1) -> list[tuple[Term, int]]:
    return [(item.arguments[i], sign * c) for i, c in form.coefficients.get(item.key, ())]


@dataclass(frozen=True)
class Levels:
    """An order: its forms, whether every item is final when popped, and the drivers that are idle, because another
    antecedent is always popped later."""

    forms: tuple[LinearForm, ...]
    final: bool
    idle: frozenset[tuple[int, int]]  # (rule number, antecedent)
    rest: frozenset[tuple[int, int]] = frozenset()  # the antecedents whose head may be on the same level


def find_levels(
    keys: Sequence[str],
    edges: Sequence[Edge],
    rules: Rules,
    domains: Domains,
    summary: Summary,
    gaps: Mapping[str, Gaps | None],
) -> Levels | None:
    """The best order for a recursive stage, or None where no form increases along any edge.

    The best one is final if possible, then has the fewest drivers, then the fewest forms.
    """
    forms = candidate_forms(keys, rules, domains, summary)[:24]
    if not forms:
        return None
    bounds: dict[int, DifferenceBounds] = {}
    for edge in edges:
        if edge.rule.number not in bounds:
            bounds[edge.rule.number] = DifferenceBounds(edge.rule, gaps, domains, summary)
    live = [e for e in edges if bounds[e.rule.number].possible]

    def step(edge: Edge, form: LinearForm) -> int:
        head = form_terms(form, edge.rule.head)
        antecedent = form_terms(form, edge.rule.antecedents[edge.antecedent].item, -1)
        return bounds[edge.rule.number].least([*head, *antecedent])

    steps = [[step(edge, form) for edge in live] for form in forms]
    recursive = frozenset(keys)
    rule_of = {e.rule.number: e.rule for e in edges}

    def idle(sequence: Sequence[LinearForm]) -> frozenset[tuple[int, int]]:
        found = set()
        for number, bound in bounds.items():
            rule = rule_of[number]
            members = [i for i, a in enumerate(rule.antecedents) if a.item.key in recursive]
            for i in members:
                for j in members:
                    if i == j:
                        continue
                    for form in sequence:
                        least = form_gap(form, rule.antecedents[j].item, rule.antecedents[i].item, bound)
                        if least >= 1:
                            found.add((number, i))
                        if least != 0:
                            break
                        # a bound of 0: j's is larger, so i comes first, or they are equal, and the next form decides
        return frozenset(found)

    best: tuple[tuple[bool, int, int], tuple[LinearForm, ...], frozenset[tuple[int, int]], tuple[int, ...]] | None = (
        None
    )

    def offer(sequence: tuple[LinearForm, ...], rest: tuple[int, ...]) -> None:
        nonlocal best
        passive = idle(sequence)
        rank = (bool(rest), len(live) - len(passive) + len(rest), len(sequence))
        if (not rest or len(rest) < len(live)) and (best is None or rank < best[0]):
            best = (rank, sequence, passive, rest)

    def extend(sequence: tuple[int, ...], rest: tuple[int, ...]) -> None:
        if sequence:
            chosen = tuple(forms[f] for f in sequence)
            offer(chosen, rest)
            ranked = predicate_form(keys, [live[e] for e in rest]) if rest else None
            if ranked is not None:
                offer((*chosen, ranked), ())
        if len(sequence) == 3 or (sequence and not rest):
            return
        for f in range(len(forms)):
            if f not in sequence and all(steps[f][e] >= 0 for e in rest):
                left = tuple(e for e in rest if steps[f][e] < 1)
                if len(left) < len(rest) or not sequence:
                    extend((*sequence, f), left)

    extend((), tuple(range(len(live))))
    if best is None:
        return None
    rank, sequence, passive, rest = best
    same = frozenset((live[e].rule.number, live[e].antecedent) for e in rest)
    return Levels(sequence, not rank[0], passive, same)


def predicate_form(keys: Sequence[str], edges: Sequence[Edge]) -> LinearForm | None:
    """A form that ranks predicates topologically, if these edges form no cycle of predicates."""
    below: dict[str, set[str]] = {key: set() for key in keys}
    for edge in edges:
        below[edge.rule.head.key].add(edge.rule.antecedents[edge.antecedent].item.key)
    place: dict[str, int] = {}
    while len(place) < len(keys):
        ready = [k for k in keys if k not in place and below[k] <= place.keys()]
        if not ready:
            return None
        place.update({k: len(place) for k in ready})
    return LinearForm("predicate", {}, place) if len(set(place.values())) > 1 else None


def form_gap(form: LinearForm, high: Item, low: Item, bounds: DifferenceBounds) -> int:
    """A lower bound on the difference of a form between two items of a rule, or NO_BOUND."""
    least = bounds.least([*form_terms(form, high), *form_terms(form, low, -1)])
    return least if least == NO_BOUND else least + form.constant.get(high.key, 0) - form.constant.get(low.key, 0)


def precedes(
    rule: NormalRule,
    other: int,
    driver: int,
    levels: Sequence[LinearForm],
    bounds: DifferenceBounds,
) -> bool:
    """Whether another antecedent's level is provably below the driver's."""
    for form in levels:
        least = form_gap(form, rule.antecedents[driver].item, rule.antecedents[other].item, bounds)
        if least >= 1:
            return True
        if least != 0:
            return False
    return False


def negated(rule: NormalRule) -> list[Item]:
    return [c.item for c in rule.conditions if isinstance(c, Negation)]
