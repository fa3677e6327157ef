"""Checks of recursion: strongly connected components, stratified negation, monotone cycles, priorities.

Whether a cycle may diverge is not refused: `suspicious_rules.py` warns of it. How cycles are run is settled in
`plan/strategy.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from ...components import strongly_connected
from ..aggregators import AGGREGATORS
from ..normal import NormalRule, Rules
from ..show import show
from ..substitution import item_variables
from ..syntax import (
    AntecedentValue,
    Application,
    Expression,
    Item,
    Negation,
    Numeral,
    VariableValue,
)
from .declarations import priority_items, priority_nodes
from .each_rule import quoted
from .report import Reporter


def components(uses: Mapping[str, Iterable[str]]) -> tuple[frozenset[str], ...]:
    """The strongly connected components of a graph, in topological order: each after all that it uses.

    >>> [sorted(c) for c in components({"a": ["b"], "b": ["a", "c"], "c": []})]
    [['c'], ['a', 'b']]
    """
    found = strongly_connected(uses, lambda node: [used for used in uses[node] if used in uses])
    return tuple(map(frozenset, found))


def uses_of(rules: Rules) -> dict[str, dict[str, None]]:
    """The dependency graph: for each defined predicate, those that its rules and its priority use."""
    uses: dict[str, dict[str, None]] = {key: {} for key, p in rules.predicates.items() if p.defined}
    for rule in rules.rules:
        for antecedent in rule.antecedents:
            uses[rule.head.key].setdefault(antecedent.item.key)
        for condition in rule.conditions:
            if isinstance(condition, Negation):
                uses[rule.head.key].setdefault(condition.item.key)
    for declaration in rules.priorities:
        for item in priority_items(declaration):
            uses.get(declaration.item.key, {}).setdefault(item.key)
    return uses


def path_of(uses: Mapping[str, Iterable[str]], start: str, goal: str, within: frozenset[str]) -> list[str]:
    """A shortest path from `start` to `goal` within a component."""
    before: dict[str, str | None] = {start: None}
    queue = deque([start])
    while queue and goal not in before:
        node = queue.popleft()
        for successor in uses[node]:
            if successor in within and successor not in before:
                before[successor] = node
                queue.append(successor)
    path: list[str] = []
    step: str | None = goal
    while step is not None:
        path.append(step)
        step = before[step]
    return path[::-1]


def cycle_of(uses: Mapping[str, Iterable[str]], head: str, used: str, within: frozenset[str], mark: str = "") -> str:
    """A cycle from `head` through `used`, as text: `a/1 -> not b/1 -> a/1`."""
    rest = path_of(uses, used, head, within)
    if len(rest) > 8:
        rest = [*rest[:4], "...", *rest[-3:]]
    return " -> ".join([head, mark + rest[0], *rest[1:]] if used != head else [head, mark + head])


def check_cycles(rules: Rules, uses: Mapping[str, Mapping[str, None]], report: Reporter) -> None:
    component_of = {key: component for component in rules.components for key in component}
    identity: dict[str, dict[str, None]] = {key: {} for key in uses}
    equal: list[tuple[NormalRule, Item]] = []
    for rule in rules.rules:
        head = rule.head.key
        within = component_of[head]
        for condition in rule.conditions:
            if isinstance(condition, Negation) and condition.item.key in within:
                cycle = cycle_of(uses, head, condition.item.key, within, "not ")
                raise report.error(
                    f"`{head}` depends on its own negation: {cycle}. What `not` negates must be complete before; only "
                    "predicates that do not depend on this one can be negated.",
                    condition.span,
                )
        recursive = [(i, a) for i, a in enumerate(rule.antecedents) if not a.side and a.item.key in within]
        if not recursive or rules.semiring is not None:
            continue
        if AGGREGATORS[rule.aggregator].monotone:
            for index, antecedent in recursive:
                if _falls(rule.value, index):
                    cycle = cycle_of(uses, head, antecedent.item.key, within)
                    raise report.error(
                        f"`{rule.aggregator}` in a cycle, {cycle}, must not fall where `{antecedent.item.key}` rises: "
                        "the item stands after `-`, below `/`, in an `abs` or in the condition of an `if`.",
                        antecedent.item.span,
                    )
        for _, antecedent in recursive:
            if antecedent.item.arguments == rule.head.arguments:
                identity[head].setdefault(antecedent.item.key)
                if rule.aggregator == "=":
                    equal.append((rule, antecedent.item))
    if equal:
        same = {key: component for component in components(identity) for key in component}
        for rule, item in equal:
            if item.key in same[rule.head.key]:
                cycle = cycle_of(identity, rule.head.key, item.key, same[rule.head.key])
                raise report.error(
                    f"`=` defines `{show(rule.head)}` by itself: {cycle}. Such a cycle has no first value.",
                    rule.span,
                )


# The monotonicity of operations in each operand: 1 increasing, -1 decreasing, 0 neither.
_DIRECTIONS: Mapping[str, tuple[int, ...]] = {
    "-": (1, -1),
    "/": (1, -1),
    "neg": (-1,),
    "abs": (0,),
    "if": (0, 1, 1),
}


def _falls(value: Expression, index: int) -> bool:
    """Whether `value` may decrease where the value of antecedent `index` increases; factors count as positive."""
    stack = [(value, 1)]
    while stack:
        node, direction = stack.pop()
        if isinstance(node, AntecedentValue):
            if node.index == index and direction != 1:
                return True
        elif isinstance(node, Application):
            directions = _DIRECTIONS.get(node.operator, (1,) * len(node.operands))
            if node.operator == "*" and any(isinstance(o, Numeral) and o.value < 0 for o in node.operands):
                directions = (-1,) * len(node.operands)
            stack.extend((o, direction * d) for o, d in zip(node.operands, directions, strict=True))
    return False


def check_priorities(rules: Rules, report: Reporter) -> None:
    """Raises where a priority reads more than its own item's arguments and value, and items of earlier strata."""
    component_of = {key: component for component in rules.components for key in component}
    for declaration in rules.priorities:
        own = {variable.name for variable in item_variables(declaration.item) if not variable.anonymous}
        for node in priority_nodes(declaration):
            if isinstance(node, VariableValue) and node.name not in own:
                raise report.error(f"`{node.name}` is not a variable of `{show(declaration.item)}`.", node.span)
        for item in priority_items(declaration):
            for variable in item_variables(item):
                if variable.name not in own:
                    raise report.error(
                        f"Which `{item.key}` is meant is not known: {quoted(variable)} does not stand in "
                        f"`{show(declaration.item)}`.",
                        variable.span,
                    )
            key = declaration.item.key
            if key in component_of.get(item.key, ()):
                raise report.error(
                    f"`{item.key}` is not complete before `{key}` is, so the priority of `{key}` cannot read it.",
                    item.span,
                )
