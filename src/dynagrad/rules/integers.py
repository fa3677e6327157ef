"""Range checks of integers in arguments, which have 32 bits: constants, and arithmetic by interval analysis.

Refused is what overflows or divides by zero whatever its variables are. What depends on their values is found as a
program runs.

The intervals here are those of a single rule; those of the facts, which storage is chosen by, are in
`plan/analyses/intervals.py`.
"""

from __future__ import annotations

from ..errors import ProgramError
from .normal import Rules
from .show import show
from .syntax import Arithmetic, Comparison, Compound, Condition, Equation, Integer, Negation, Term, Variable

LEAST, MOST = -(2**31), 2**31 - 1
"""The range of integers in arguments."""

Range = tuple[int, int]


def check_integers(rules: Rules) -> None:
    """Raises for the first integer in an argument that is out of range.

    Intermediate results of arithmetic, and bounds that an argument is compared with, may be larger.
    """
    items = [a.item for a in rules.axioms]
    conditions: list[Condition] = []
    for rule in rules.rules:
        items.append(rule.head)
        items.extend(a.item for a in rule.antecedents)
        items.extend(c.item for c in rule.conditions if isinstance(c, Negation))
        conditions.extend(rule.conditions)
    for item in items:
        _check_constants(rules, item.arguments)
    for condition in conditions:
        if isinstance(condition, Negation):
            continue
        sides = (condition.left, condition.right)
        for side in sides:
            _check_arithmetic(rules, side)
        computed = any(isinstance(side, Arithmetic) for side in sides)
        ordered = isinstance(condition, Comparison) and condition.operator not in ("==", "!=")
        _check_constants(rules, [s for s in sides if isinstance(s, Compound) or not (computed or ordered)])
        if isinstance(condition, Equation) and any(isinstance(side, Variable) for side in sides):
            for side in sides:
                _check_result(rules, side)


def _check_constants(rules: Rules, terms: list[Term] | tuple[Term, ...]) -> None:
    waiting = list(terms)[::-1]
    while waiting:
        term = waiting.pop()
        if isinstance(term, Compound):
            for argument in term.arguments:
                _check_result(rules, argument)
            waiting.extend(term.arguments[::-1])
        elif isinstance(term, Integer) and not LEAST <= term.value <= MOST:
            raise _error(rules, f"The integer {term.value} is beyond the range of arguments, {LEAST} to {MOST}.", term)


def _check_result(rules: Rules, term: Term) -> None:
    """Raises where the result of arithmetic in an argument is always out of range."""
    if not isinstance(term, Arithmetic):
        return
    least, most = _range(term)
    if most < LEAST or least > MOST:
        raise _error(rules, f"`{show(term)}` is always beyond the range of arguments, {LEAST} to {MOST}.", term)


def _check_arithmetic(rules: Rules, term: Term) -> None:
    """Raises where a divisor is always zero."""
    waiting = [term]
    while waiting:
        term = waiting.pop()
        if isinstance(term, Arithmetic):
            if term.operator in ("//", "mod") and _range(term.operands[1]) == (0, 0):
                raise _error(rules, f"`{show(term)}` divides by zero.", term)
            waiting.extend(term.operands[::-1])
        elif isinstance(term, Compound):
            waiting.extend(term.arguments[::-1])


def _range(term: Term) -> Range:
    """The interval of an integer expression, whose variables are 32-bit integers.

    >>> from dynagrad.rules.parse import parse_term
    >>> _range(parse_term("(X mod 7) * -2 + 1"))
    (-11, 1)
    """
    if isinstance(term, Integer):
        return term.value, term.value
    if not isinstance(term, Arithmetic):
        return LEAST, MOST
    (a, b), *rest = [_range(operand) for operand in term.operands]
    c, d = rest[0] if rest else (0, 0)
    match term.operator:
        case "+":
            return a + c, b + d
        case "-":
            return a - d, b - c
        case "*":
            corners = [x * y for x in (a, b) for y in (c, d)]
            return min(corners), max(corners)
        case "neg":
            return -b, -a
        case "abs":
            return (0 if a <= 0 <= b else min(abs(a), abs(b))), max(abs(a), abs(b))
        case "min":
            return min(a, c), min(b, d)
        case "max":
            return max(a, c), max(b, d)
        case "mod":  # it has the sign of the divisor
            return min(0, c + 1), max(0, d - 1)
    if c <= 0 <= d:  # division makes nothing larger
        size = max(abs(a), abs(b))
        return -size, size
    corners = [x // y for x in (a, b) for y in (c, d)]
    return min(corners), max(corners)


def _error(rules: Rules, message: str, term: Term) -> ProgramError:
    return ProgramError(message, rules.source.text, term.span, rules.source.filename)
