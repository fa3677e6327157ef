"""Join ordering: the order in which the antecedents of a rule are joined, by estimated cost.

A join starts from a driver (an item that was just popped, whose variables are bound), from the head, or from nothing.
Whatever needs no new variable is done as soon as possible: comparisons, equations, lookups of single items, negations.
The other antecedents are scanned as nested loops. For up to six of them every order is tried; beyond, the cheapest
scan is chosen next (greedy).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from ..errors import ProgramError
from ..rules import substitution
from ..rules.normal import NormalRule, Rules
from ..rules.syntax import Arithmetic, Comparison, Compound, Equation, Integer, Item, Negation, Term, Variable
from ..rules.types import Domains
from .model import Absent, Filter, Join, Lookup, Scan, Solve, Step, Summary, Unfold

DERIVED_SHARE = 0.3
"""The assumed selectivity: the share of the possible items of a predicate that is derived."""
LOOKUP_COST = 1.0


def term_variables(term: Term) -> set[str]:
    """The variables of a term."""
    found: set[str] = set()
    stack: list[Term] = [term]
    while stack:
        at = stack.pop()
        match at:
            case Variable(name=name):
                found.add(name)
            case Compound(arguments=parts) | Arithmetic(operands=parts):
                stack.extend(parts)
    return found


def item_variables(item: Item) -> set[str]:
    return set().union(*map(term_variables, item.arguments)) if item.arguments else set()


def solve(equation: Equation, bound: set[str]) -> Step | None:
    """The step that checks or solves an equation, if all but at most one of its variables are bound; else None."""
    unknown = (term_variables(equation.left) | term_variables(equation.right)) - bound
    if not unknown:
        return Filter(equation)
    for target, source in ((equation.left, equation.right), (equation.right, equation.left)):
        if not term_variables(source) <= bound:
            continue
        match target:
            case Variable(name=name):
                return Solve(name, source)
            case Compound() if isinstance(source, Variable):
                return Unfold(source.name, target)
        if len(unknown) == 1:
            isolated = _isolate(target, source, next(iter(unknown)))
            if isolated is not None:
                return Solve(next(iter(unknown)), isolated, (equation.left, equation.right))
    return None


def _isolate(target: Term, value: Term, unknown: str) -> Term | None:
    """The term that `unknown` must equal for `target` to equal `value`; None unless there is exactly one."""
    while not isinstance(target, Variable):
        if not isinstance(target, Arithmetic):
            return None
        if target.operator == "neg":
            target, value = target.operands[0], Arithmetic("neg", (value,))
            continue
        if target.operator not in ("+", "-", "*"):
            return None
        left, right = target.operands
        on_left = unknown in term_variables(left)
        if on_left and unknown in term_variables(right):
            return None
        other = right if on_left else left
        match target.operator, on_left:
            case "+", _:
                value = Arithmetic("-", (value, other))
            case "-", True:
                value = Arithmetic("+", (value, other))
            case "-", False:
                value = Arithmetic("-", (other, value))
            case _:
                if not isinstance(other, Integer) or other.value == 0:
                    return None  # times zero, any value is a solution
                value = Arithmetic("//", (value, other))
        target = left if on_left else right
    return value


@dataclass
class _Search:
    """A partial join: its steps so far, and their estimated cost."""

    bound: set[str]
    steps: list[Step]
    waiting: list[Comparison | Equation | Negation]
    rows: float = 1.0
    cost: float = 0.0


def step_variables(step: Step, rule: NormalRule) -> set[str]:
    """The variables that a step binds, or that it needs bound."""
    match step:
        case Scan(antecedent=i) | Lookup(antecedent=i):
            return item_variables(rule.antecedents[i].item)
        case Solve(variable=name):
            return {name}
        case Unfold(pattern=pattern):
            return term_variables(pattern)
    return set()


def rough(count: float, least: float = 1.0) -> float:
    """A count rounded up to coarse steps, so that runs with slightly different facts share a plan.

    >>> [rough(n) for n in (1, 3, 5, 40)]
    [1.0, 4.0, 32.0, 256.0]
    """
    step = 1.0
    while step < max(count, least):
        step *= 4.0 if step == 1.0 else 8.0
    return step


class JoinPlanner:
    """Orders joins. The planner chooses the index or row of each scan later, when storage is settled."""

    def __init__(
        self,
        rules: Rules,
        domains: Domains,
        summary: Summary,
    ) -> None:
        self.rules, self.domains, self.summary = rules, domains, summary

    def _spread(self, key: str, position: int) -> float:
        """The estimated number of distinct values of an argument."""
        facts = self.summary.facts.get(key)
        if facts is not None and facts.rows and not self.rules.predicates[key].defined:
            return max(1.0, float(facts.distinct[position]))
        domain = self.summary.domains[self.domains.of[key, position]]
        return 1000.0 if domain.kind == "term" else rough(domain.count, 32.0)

    def matches(self, item: Item, bound: set[str]) -> float:
        """The estimated number of items that match, given bound variables."""
        facts = self.summary.facts.get(item.key)
        predicate = self.rules.predicates[item.key]
        if not predicate.defined and facts is not None:
            rows = float(facts.rows)
            for i, term in enumerate(item.arguments):
                if term_variables(term) <= bound:
                    rows /= self._spread(item.key, i)
            return max(rows, 1e-3)
        rows = 1.0
        for i, term in enumerate(item.arguments):
            if not term_variables(term) <= bound:
                rows *= self._spread(item.key, i)
        return max(rows * DERIVED_SHARE, DERIVED_SHARE)

    def plan(self, rule: NormalRule, driver: int | None, *, from_head: bool = False) -> tuple[tuple[Step, ...], float]:
        """The cheapest steps for one rule and driver, and their estimated cost."""
        bound = set[str]() if driver is None else item_variables(rule.antecedents[driver].item)
        if from_head:
            bound = item_variables(rule.head)
        others = [i for i in range(len(rule.antecedents)) if i != driver]
        external = [i for i in others if self.rules.predicates[rule.antecedents[i].item.key].external]
        scanned = [i for i in others if i not in external]
        if len(scanned) <= 6:
            best: _Search | None = None
            for order in permutations(scanned):
                found = self._in_order(rule, set(bound), order, external, best.cost if best else float("inf"))
                if found is not None and (best is None or found.cost < best.cost):
                    best = found
        else:
            best = self._in_order(rule, set(bound), self._greedy(rule, set(bound), scanned), external, float("inf"))
        if best is None:
            raise ProgramError(
                "this rule cannot be joined: a variable of a condition or of an external item is never bound",
                self.rules.source.text,
                rule.span,
                self.rules.source.filename,
            )
        return tuple(best.steps), best.cost

    def _greedy(self, rule: NormalRule, bound: set[str], scanned: Sequence[int]) -> list[int]:
        order: list[int] = []
        left = list(scanned)
        while left:
            pick = min(left, key=lambda i: self.matches(rule.antecedents[i].item, bound))
            left.remove(pick)
            order.append(pick)
            bound |= item_variables(rule.antecedents[pick].item)
        return order

    def _in_order(
        self, rule: NormalRule, bound: set[str], order: Sequence[int], external: Sequence[int], limit: float
    ) -> _Search | None:
        at = _Search(bound, [], list(rule.conditions))
        left, outside = list(order), list(external)
        self._settle(rule, at, left, outside)
        while left:
            i = left.pop(0)
            item = rule.antecedents[i].item
            at.rows *= self.matches(item, at.bound)
            at.cost += at.rows + LOOKUP_COST
            if at.cost >= limit:
                return None
            at.steps.append(Scan(i))
            at.bound |= item_variables(item)
            self._settle(rule, at, left, outside)
        needed = item_variables(rule.head)
        return at if not at.waiting and not outside and needed <= at.bound else None

    def _settle(self, rule: NormalRule, at: _Search, left: list[int], outside: list[int]) -> None:
        """Adds all steps that need no new variable."""
        progress = True
        while progress:
            progress = False
            for condition in list(at.waiting):
                step = self._condition(condition, at.bound)
                if step is not None:
                    at.waiting.remove(condition)
                    at.steps.append(step)
                    if isinstance(step, Solve):
                        at.bound.add(step.variable)
                    elif isinstance(step, Unfold):
                        at.bound |= term_variables(step.pattern)
                    at.rows *= 0.5 if isinstance(step, Filter | Absent) else 1.0
                    progress = True
            for pool in (left, outside):
                for i in list(pool):
                    if item_variables(rule.antecedents[i].item) <= at.bound:
                        pool.remove(i)
                        at.steps.append(Lookup(i))
                        at.cost += at.rows * LOOKUP_COST
                        at.rows *= min(1.0, self.matches(rule.antecedents[i].item, at.bound))
                        progress = True

    def _condition(self, condition: Comparison | Equation | Negation, bound: set[str]) -> Step | None:
        match condition:
            case Comparison(left=left, right=right):
                return Filter(condition) if term_variables(left) | term_variables(right) <= bound else None
            case Equation():
                return solve(condition, bound)
            case Negation(item=item):
                asked = {v.name for v in substitution.item_variables(item) if not v.anonymous}
                if not asked <= bound:
                    return None
                return Absent(item)


def scan_pattern(item: Item, bound: frozenset[str]) -> tuple[tuple[Term, ...], tuple[str, ...], tuple[Term, ...]]:
    """The index that a scan needs: a pattern over canonical variables, those that are bound, and their values.

    Constants at top level count as bound variables, so two scans that differ in a constant share an index.
    """
    names: dict[str, str] = {}
    known: list[tuple[str, Term]] = []

    def rename(term: Term, top: bool) -> Term:
        match term:
            case Variable(name=name):
                if name not in names:
                    names[name] = f"v{len(names)}"
                    if name in bound:
                        known.append((names[name], Variable(name)))
                return Variable(names[name])
            case Compound() if top and not term_variables(term):
                names[f"{len(names)}!"] = new = f"v{len(names)}"
                known.append((new, term))
                return Variable(new)
            case Compound(functor=functor, arguments=arguments):
                return Compound(functor, tuple(rename(a, False) for a in arguments))
        if top:
            names[f"{len(names)}!"] = new = f"v{len(names)}"
            known.append((new, term))
            return Variable(new)
        return term

    pattern = tuple(rename(a, True) for a in item.arguments)
    return pattern, tuple(n for n, _ in known), tuple(t for _, t in known)


def starting_variables(join: Join) -> set[str]:
    """The variables that are bound before the first step."""
    if join.from_head:
        return item_variables(join.rule.head)
    return set() if join.driver is None else item_variables(join.rule.antecedents[join.driver].item)


def free_position(item: Item, bound: set[str]) -> int | None:
    """The only argument that is not bound, if it is a variable; else None."""
    free = [i for i, term in enumerate(item.arguments) if not term_variables(term) <= bound]
    if len(free) != 1 or not isinstance(item.arguments[free[0]], Variable):
        return None
    return free[0]
