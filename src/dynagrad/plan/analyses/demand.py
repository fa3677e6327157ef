"""Demand analysis: predicates that no declared output depends on, and arguments in which only one constant is needed.

An argument is *fixed* where every use of its predicate has the same constant there, directly or because the head of
the using rule is fixed in that argument: in `answer(Y) += reach(a,Y)` with `reach(X,Y) += reach(X,Z) * edge(Z,Y)` only
the items `reach(a,_)` are needed, and one test per rule keeps the others from being derived. That always pays. Magic
sets (Bancilhon, Maier, Sagiv and Ullman 1986), which derive demand that varies from item to item, are not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...rules.normal import NormalRule, Rules
from ...rules.syntax import Application, Equation, Float, Integer, Item, ItemValue, Negation, Symbol, Term, Variable

Fixed = Mapping[str, Mapping[int, Term]]
"""Predicate -> argument -> the only constant that is needed there."""


def items_of(expression: object) -> list[Item]:
    """The items whose values an expression reads."""
    found: list[Item] = []
    stack: list[object] = [expression]
    while stack:
        match stack.pop():
            case ItemValue(item=item):
                found.append(item)
            case Application(operands=operands):
                stack.extend(operands)
    return found


def uses_of(rule: NormalRule) -> list[Item]:
    """The antecedents and negated items of a rule."""
    return [a.item for a in rule.antecedents] + [c.item for c in rule.conditions if isinstance(c, Negation)]


def omitted(rules: Rules) -> dict[str, str]:
    """The predicates that the outputs do not need, each with the reason; none where no outputs are declared."""
    if not rules.outputs:
        return {}
    needs: dict[str, set[str]] = {}
    for rule in rules.rules:
        needs.setdefault(rule.head.key, set()).update(item.key for item in uses_of(rule))
    for declared in rules.priorities:
        needs.setdefault(declared.item.key, set()).update(i.key for i in items_of(declared.expression))
    reached = set(rules.outputs)
    stack = list(reached)
    while stack:
        for key in needs.get(stack.pop(), ()):
            if key not in reached:
                reached.add(key)
                stack.append(key)
    return {
        key: f"no output needs it (outputs: {', '.join(rules.outputs)})"
        for key, p in rules.predicates.items()
        if p.defined and key not in reached
    }


def fixed_arguments(rules: Rules, live: list[NormalRule]) -> dict[str, dict[int, Term]]:
    """The arguments in which only one constant is needed: the greatest fixed point, by elimination."""
    if not rules.outputs:
        return {}
    free = set(rules.outputs) | {axiom.item.key for axiom in rules.axioms}
    free |= {item.key for d in rules.priorities for item in items_of(d.expression)}
    fixed: dict[str, dict[int, Term | None]] = {
        key: dict.fromkeys(range(p.arity))
        for key, p in rules.predicates.items()
        if p.defined and not p.input and key not in free
    }
    uses = [(rule, item) for rule in live for item in uses_of(rule) if item.key in fixed]
    changed = True
    while changed:
        changed = False
        for rule, item in uses:
            here = fixed[item.key]
            for i in list(here):
                wanted, known = _needed(rule, item.arguments[i], fixed)
                if not known or (wanted is not None and here[i] is not None and here[i] != wanted):
                    del here[i]
                    changed = True
                elif wanted is not None and here[i] is None:
                    here[i] = wanted
                    changed = True
    found = {key: {i: c for i, c in places.items() if c is not None} for key, places in fixed.items()}
    return {key: places for key, places in found.items() if places}


def _needed(rule: NormalRule, term: Term, fixed: Mapping[str, Mapping[int, Term | None]]) -> tuple[Term | None, bool]:
    """The constant that a use needs (None: not known yet), and whether it needs only one."""
    if isinstance(term, Symbol | Integer | Float):
        return term, True
    if isinstance(term, Variable):
        head = fixed.get(rule.head.key, {})
        for i, argument in enumerate(rule.head.arguments):
            if argument == term and i in head:
                return head[i], True
    return None, False


def restrict(rule: NormalRule, fixed: Fixed) -> NormalRule:
    """The rule restricted to the needed items of its head."""
    places = fixed.get(rule.head.key)
    if not places:
        return rule
    tests = tuple(Equation(rule.head.arguments[i], constant) for i, constant in places.items())
    return replace(rule, conditions=(*tests, *rule.conditions))
