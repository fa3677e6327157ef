"""Warnings about rules: variables that occur once, and sums that may diverge (a termination analysis).

Nothing is refused here. Warnings that need the facts are in `charts/binding/suspicious_facts.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ...errors import Span
from ..normal import NormalRule, Rules
from ..semirings import SEMIRINGS
from ..substitution import condition_variables, expression_items, item_variables, term_variables
from ..syntax import (
    BOUNDED,
    AntecedentValue,
    Application,
    Arithmetic,
    Comparison,
    Compound,
    Equation,
    Integer,
    Item,
    Numeral,
    Source,
    Term,
    Variable,
)
from .recursion import components, cycle_of
from .report import Reporter

LONGEST_CHAIN = 20  # of equations from one variable to another with an offset
MOST_WARNINGS = 50  # of each kind; the rest are counted


def single_variables(source: Source) -> Iterator[tuple[str, Span]]:
    for rule in source.rules:
        if not rule.head.arguments and not rule.conditions and isinstance(rule.body, Numeral):
            continue
        found = list(item_variables(rule.head))
        for node in expression_items(rule.body):
            found += item_variables(node.item)
        for condition in rule.conditions:
            found += condition_variables(condition)
        counts = Counter(variable.name for variable in found)
        for variable in found:
            if counts[variable.name] == 1 and not variable.name.startswith("_"):
                yield (
                    f"The variable `{variable.name}` occurs once in this rule. If any value is meant, write `_` or "
                    f"`_{variable.name}`.",
                    variable.span,
                )


def diverging(rules: Rules) -> Iterator[tuple[frozenset[str], str]]:
    """Recursive sums without a measure that grows from item to item: the predicates of each cycle, and a warning.

    Whether items do depend on themselves is up to the facts, so the caller issues these warnings when it knows them.

    >>> from dynagrad.rules.check import check
    >>> from dynagrad.rules.parse import parse
    >>> [(keys, text)] = diverging(check(parse("a += a * a. a += r.")))
    >>> sorted(keys), text.splitlines()[0][:39]
    (['a/0'], 'The sum of `a/0` may diverge: its items')
    """
    report = Reporter(rules.source)
    if rules.semiring is not None and not SEMIRINGS[rules.semiring].sums_up:
        return
    uses: dict[str, dict[str, None]] = {key: {} for key, p in rules.predicates.items() if p.defined}
    for rule in rules.rules:
        for index, antecedent in enumerate(rule.antecedents):
            if _may_grow(rule, index):
                uses[rule.head.key].setdefault(antecedent.item.key)
    component_of = {key: component for component in components(uses) for key in component}
    recursive = []
    directions: dict[frozenset[str], set[int]] = {}
    for rule in rules.rules:
        within = component_of[rule.head.key]
        items = [a.item for i, a in enumerate(rule.antecedents) if a.item.key in within and _may_grow(rule, i)]
        if not items:
            continue
        shifts = _shifts(rule)
        recursive.append((rule, items, shifts))
        for item in items:
            directions.setdefault(within, set()).update(_directions(rule.head, item, shifts))
    still: dict[str, dict[str, None]] = {key: {} for key in uses}
    suspects: list[tuple[NormalRule, Item]] = []
    for rule, items, shifts in recursive:
        one_way = len(directions.get(component_of[rule.head.key], ())) < 2
        for item in items:
            if not _moves_on(rule, item, items, shifts, one_way):
                still[rule.head.key].setdefault(item.key)
                suspects.append((rule, item))
    if not suspects:
        return
    closed = {key: component for component in components(still) for key in component}
    told: set[frozenset[str]] = set()
    for rule, item in suspects:
        key = rule.head.key
        if rule.aggregator in ("+=", "log+=") and item.key in closed[key] and closed[key] not in told:
            told.add(closed[key])
            cycle = cycle_of(still, key, item.key, closed[key])
            text = (
                f"The sum of `{key}` may diverge: its items can depend on themselves ({cycle}). "
                "It is finite where the facts have no cycle, or where the weights around each cycle shrink."
            )
            yield closed[key], report.warning(text, rule.span)


def _may_grow(rule: NormalRule, index: int) -> bool:
    """Whether an antecedent's value reaches the head other than through a function with bounded values."""
    stack = [rule.value]
    while stack:
        node = stack.pop()
        if isinstance(node, AntecedentValue) and node.index == index:
            return True
        if isinstance(node, Application) and node.operator not in BOUNDED:
            stack.extend(node.operands)
    return False


def _shifts(rule: NormalRule) -> dict[tuple[str, str], int]:
    """The signs of differences that equations and comparisons show: 1 for (X, Y) where X is larger, -1 if smaller."""
    shifts: dict[tuple[str, str], int] = {}
    offsets: dict[str, tuple[str, int]] = {}  # a variable as another plus a constant
    for condition in rule.conditions:
        if isinstance(condition, Equation):
            for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
                offset = _step(other)
                if isinstance(side, Variable) and offset is not None:
                    offsets.setdefault(side.name, offset)
        elif isinstance(condition, Comparison) and condition.operator in ("<", ">"):
            if isinstance(condition.left, Variable) and isinstance(condition.right, Variable):
                sign = 1 if condition.operator == ">" else -1
                shifts[condition.left.name, condition.right.name] = sign
                shifts[condition.right.name, condition.left.name] = -sign
    for name in offsets:
        base, total = name, 0
        for _ in range(LONGEST_CHAIN):
            if base not in offsets:
                break
            base, step = offsets[base]
            total += step
            if total:
                shifts[name, base] = 1 if total > 0 else -1
                shifts[base, name] = -1 if total > 0 else 1
    # Two variables with offsets from a third: `V1 = I+2` and `V2 = I+1`.
    by_base: dict[str, list[tuple[str, int]]] = {}
    for name, (base, amount) in offsets.items():
        by_base.setdefault(base, []).append((name, amount))
    for group in by_base.values():
        for name, amount in group[:LONGEST_CHAIN]:
            for second, by in group[:LONGEST_CHAIN]:
                if amount != by:
                    shifts[name, second] = 1 if amount > by else -1
    return shifts


def _step(term: Term) -> tuple[str, int] | None:
    """`X + c` or `X - c` as the variable and the constant."""
    if isinstance(term, Arithmetic) and term.operator in ("+", "-"):
        left, right = term.operands
        if isinstance(left, Variable) and isinstance(right, Integer):
            return left.name, right.value if term.operator == "+" else -right.value
        if isinstance(right, Variable) and isinstance(left, Integer) and term.operator == "+":
            return right.name, left.value
    return None


def _tops(item: Item) -> list[str]:
    return [argument.name for argument in item.arguments if isinstance(argument, Variable)]


def _directions(head: Item, item: Item, shifts: Mapping[tuple[str, str], int]) -> set[int]:
    return {shifts[h, b] for h in _tops(head) for b in _tops(item) if (h, b) in shifts}


def _moves_on(
    rule: NormalRule, item: Item, items: Sequence[Item], shifts: Mapping[tuple[str, str], int], one_way: bool
) -> bool:
    """Whether some measure grows from `item` to the head of `rule`, so that no item can depend on itself through it."""
    head = rule.head
    if one_way and _directions(head, item, shifts):
        return True
    in_head, in_item = set(_tops(head)), set(_tops(item))
    for other in items:  # another recursive item covers the rest of the head, such as the second half of a span
        if other is not item:
            covered = set(_tops(other))
            if covered & (in_head - in_item) and covered & (in_item - in_head):
                return True
    return any(_nested(a, b) for a in head.arguments for b in item.arguments)


def _nested(a: Term, b: Term) -> bool:
    """Whether one of two terms is a proper subterm of the other, or corresponding parts of them are."""
    stack = [(a, b)]
    while stack:
        left, right = stack.pop()
        if isinstance(left, Compound) and isinstance(right, Compound) and left.functor == right.functor:
            stack.extend(zip(left.arguments, right.arguments, strict=False))
            continue
        for outer, inner in ((left, right), (right, left)):
            if isinstance(outer, Compound) and isinstance(inner, Variable):
                if any(variable.name == inner.name for variable in term_variables(outer)):
                    return True
    return False


def collect(found: Iterator[tuple[str, Span]], report: Reporter) -> list[str]:
    texts: list[str] = []
    more = 0
    for message, span in found:
        if len(texts) < MOST_WARNINGS:
            texts.append(report.warning(message, span))
        else:
            more += 1
    if more:
        texts.append(f"There are {more} more warnings like the last.")
    return texts
