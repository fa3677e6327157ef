"""Variables of terms and rules: occurrences, fresh names, substitution, unification (Robinson 1965).

Terms here are syntax: values of facts are matched in `forests/terms.py`, and in generated code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from .syntax import (
    MAX_DEPTH,
    AntecedentValue,
    Application,
    Arithmetic,
    Compound,
    Condition,
    Equation,
    Expression,
    Item,
    ItemValue,
    Negation,
    Side,
    Term,
    Variable,
)


def term_variables(term: Term) -> Iterator[Variable]:
    """Every occurrence of a variable in `term`, from left to right.

    >>> [v.name for v in term_variables(Compound("f", (Variable("X"), Compound("g", (Variable("Y"), Variable("X"))))))]
    ['X', 'Y', 'X']
    """
    stack: list[Term] = [term]
    while stack:
        node = stack.pop()
        if isinstance(node, Variable):
            yield node
        elif isinstance(node, Compound):
            stack.extend(reversed(node.arguments))
        elif isinstance(node, Arithmetic):
            stack.extend(reversed(node.operands))


def item_variables(item: Item) -> Iterator[Variable]:
    """Every occurrence of a variable in `item`, from left to right."""
    for argument in item.arguments:
        yield from term_variables(argument)


def condition_variables(condition: Condition) -> Iterator[Variable]:
    """Every occurrence of a variable in `condition`, from left to right."""
    if isinstance(condition, Negation):
        yield from item_variables(condition.item)
    else:
        yield from term_variables(condition.left)
        yield from term_variables(condition.right)


def expression_items(expression: Expression) -> Iterator[ItemValue | Side]:
    """Every item on a right side, in the order of the text, as a value or as a side condition."""
    stack: list[Expression] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, ItemValue | Side):
            yield node
        elif isinstance(node, Application):
            stack.extend(reversed(node.operands))


class FreshVariables:
    """Fresh names of variables, distinct from those in a rule."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)
        self.counters: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        number = self.counters.get(stem, 0) + 1
        while f"{stem}{number}" in self.taken:
            number += 1
        self.counters[stem] = number
        name = f"{stem}{number}"
        self.taken.add(name)
        return name


def decomposed(conditions: Iterable[Condition]) -> list[Condition]:
    """Conditions with each equation of compound terms of the same functor replaced by equations of their arguments.

    >>> from dynagrad.rules.show import show
    >>> from dynagrad.rules.syntax import Integer
    >>> [x, y, one] = Variable("X"), Variable("Y"), Integer(1)
    >>> [show(c) for c in decomposed([Equation(Compound("f", (x, Compound("g", (y,)))), Compound("f", (one, x)))])]
    ['X = 1', 'g(Y) = X']
    """
    found: list[Condition] = []
    stack = list(conditions)[::-1]
    while stack:
        condition = stack.pop()
        if isinstance(condition, Equation):
            left, right = condition.left, condition.right
            if isinstance(left, Compound) and isinstance(right, Compound) and left.functor == right.functor:
                if len(left.arguments) == len(right.arguments):
                    pairs = zip(left.arguments, right.arguments, strict=True)
                    stack.extend([Equation(a, b, condition.span) for a, b in pairs][::-1])
                    continue
        found.append(condition)
    return found


Substitution = dict[str, Term]


def _walk(term: Term, substitution: Substitution) -> Term:
    while isinstance(term, Variable) and term.name in substitution:
        term = substitution[term.name]
    return term


def unify(pairs: Iterable[tuple[Term, Term]], substitution: Substitution) -> bool:
    """Unification (Robinson 1965), with the occurs check: extends `substitution`; False where the terms do not unify.

    >>> from dynagrad.rules.syntax import Integer
    >>> bindings = {}
    >>> unify([(Variable("X"), Compound("f", (Variable("Y"),))), (Variable("Y"), Integer(1))], bindings)
    True
    >>> unify([(Variable("X"), Integer(2))], bindings)
    False
    """
    stack = list(pairs)
    while stack:
        left, right = stack.pop()
        left, right = _walk(left, substitution), _walk(right, substitution)
        if isinstance(left, Variable):
            if not (isinstance(right, Variable) and right.name == left.name):
                if _occurs(left.name, right, substitution):
                    return False
                substitution[left.name] = right
        elif isinstance(right, Variable):
            stack.append((right, left))
        elif isinstance(left, Compound) and isinstance(right, Compound):
            if left.functor != right.functor or len(left.arguments) != len(right.arguments):
                return False
            stack.extend(zip(left.arguments, right.arguments, strict=True))
        elif left != right:
            return False
    return True


def _occurs(name: str, term: Term, substitution: Substitution) -> bool:
    stack, seen = [term], set()
    while stack:
        for variable in term_variables(stack.pop()):
            if variable.name == name:
                return True
            if variable.name in substitution and variable.name not in seen:
                seen.add(variable.name)
                stack.append(substitution[variable.name])
    return False


class TooDeep(Exception):
    """Unfolding made a term or an expression deeper than the language allows."""


def substituted(term: Term, substitution: Substitution, depth: int = 0) -> Term:
    if depth > MAX_DEPTH:
        raise TooDeep
    term = _walk(term, substitution)
    if isinstance(term, Compound):
        return replace(term, arguments=tuple([substituted(a, substitution, depth + 1) for a in term.arguments]))
    if isinstance(term, Arithmetic):
        return replace(term, operands=tuple([substituted(a, substitution, depth + 1) for a in term.operands]))
    return term


def substituted_item(item: Item, substitution: Substitution) -> Item:
    return replace(item, arguments=tuple([substituted(a, substitution) for a in item.arguments]))


def substituted_condition(condition: Condition, substitution: Substitution) -> Condition:
    if isinstance(condition, Negation):
        return replace(condition, item=substituted_item(condition.item, substitution))
    left, right = substituted(condition.left, substitution), substituted(condition.right, substitution)
    return replace(condition, left=left, right=right)


def with_values(node: Expression, values: Mapping[int, Expression], depth: int = 0) -> Expression:
    """`node` with the values of antecedents substituted by `values`."""
    if depth > MAX_DEPTH:
        raise TooDeep
    if isinstance(node, AntecedentValue):
        return values[node.index]
    if isinstance(node, Application):
        return replace(node, operands=tuple([with_values(x, values, depth + 1) for x in node.operands]))
    return node
