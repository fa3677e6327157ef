"""Ground terms as nests compute and match them: building a term under a binding, and matching a pattern with a term.

A ground term is a term of `rules/syntax.py` without variables and arithmetic. Two are equal exactly where they are the
same term: the integer 1 is not the float 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...errors import ValueRangeError
from ...rules.syntax import Arithmetic, Comparison, Compound, Equation, Integer, Term, Variable

Row = tuple[Term, ...]
"""The arguments of an item."""
Binding = Mapping[str, Term]
"""The variables that are bound so far."""

_ARITHMETIC: Mapping[str, Callable[..., int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "neg": lambda a: -a,
    "abs": abs,
    "min": min,
    "max": max,
}

_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "=<": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def build(term: Term, binding: Binding) -> Term | None:
    """The ground term that a term is under a binding; None where its arithmetic has no value.

    >>> build(Arithmetic("+", (Variable("I"), Integer(1))), {"I": Integer(2)})
    Integer(value=3)
    """
    match term:
        case Variable(name=name):
            return binding[name]
        case Compound(functor=functor, arguments=arguments):
            parts = build_all(arguments, binding)
            return None if parts is None else Compound(functor, parts)
        case Arithmetic(operator=operator, operands=operands):
            parts = build_all(operands, binding)
            if parts is None:
                return None
            numbers = [part.value for part in parts if isinstance(part, Integer)]
            if len(numbers) < len(parts):
                return None
            if operator in ("//", "mod") and numbers[1] == 0:
                raise ValueRangeError("integer arithmetic in an argument divided by zero")
            return Integer(_ARITHMETIC[operator](*numbers))
    return term


def build_all(terms: tuple[Term, ...], binding: Binding) -> Row | None:
    """The ground terms of several terms; None where one has no value."""
    row = tuple(ground for term in terms if (ground := build(term, binding)) is not None)
    return row if len(row) == len(terms) else None


def match(pattern: Term, term: Term, binding: Binding) -> Binding | None:
    """The binding, extended so that a pattern is a ground term; None where it cannot be.

    >>> match(Compound("f", (Variable("X"),)), Compound("f", (Integer(1),)), {})
    {'X': Integer(value=1)}
    """
    match pattern:
        case Variable(name=name):
            value = binding.get(name)
            if value is None:
                return {**binding, name: term}
            return binding if value == term else None
        case Compound(functor=functor, arguments=arguments):
            if not isinstance(term, Compound) or (term.functor, len(term.arguments)) != (functor, len(arguments)):
                return None
            return match_all(arguments, term.arguments, binding)
    return binding if pattern == term else None


def match_all(patterns: tuple[Term, ...], terms: Row, binding: Binding) -> Binding | None:
    """The binding, extended so that each pattern is the term in its place."""
    extended: Binding | None = binding
    for pattern, term in zip(patterns, terms, strict=True):
        extended = None if extended is None else match(pattern, term, extended)
    return extended


def holds(condition: Comparison | Equation, binding: Binding) -> bool:
    """Whether a condition holds whose variables are bound: not where its arithmetic has no value."""
    left, right = build(condition.left, binding), build(condition.right, binding)
    if left is None or right is None:
        return False
    if isinstance(condition, Equation) or condition.operator == "==":
        return left == right
    if condition.operator == "!=":
        return left != right
    if not isinstance(left, Integer) or not isinstance(right, Integer):
        return False
    return _COMPARISONS[condition.operator](left.value, right.value)
