"""Right sides as polynomials in the values of recursive antecedents, for the systems of equations of cyclic components.

This is a rewriting of syntax; `codegen/rules/right_sides.py` writes code for the coefficients of these polynomials.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...rules.normal import NormalRule
from ...rules.syntax import AntecedentValue, Application, Expression, Numeral

Monomials = Mapping[tuple[int, ...], Expression]
"""A polynomial: from monomials, as sorted numbers of antecedents with repetition, to their coefficients."""

MOST_MONOMIALS = 32
MOST_FACTORS = 8


def polynomial(value: Expression, inside: frozenset[int]) -> Monomials | None:
    """A right side as a polynomial in the antecedents `inside`; None where it is not one, or has too many monomials.

    >>> x, c = AntecedentValue(0), AntecedentValue(1)
    >>> sorted(polynomial(Application("+", (Application("*", (c, x)), Numeral(1.0))), frozenset({0})))
    [(), (0,)]
    >>> polynomial(Application("exp", (x,)), frozenset({0})) is None
    True
    """
    match value:
        case AntecedentValue(index=index) if index in inside:
            return {(index,): Numeral(1.0)}
        case Application(operator="+" | "-" as operator, operands=(left, right)):
            a, b = polynomial(left, inside), polynomial(right, inside)
            if a is None or b is None:
                return None
            total = dict(a)
            for factors, c in b.items():
                negative = Application("neg", (c,)) if operator == "-" else c
                total[factors] = Application("+", (total[factors], negative)) if factors in total else negative
            return total
        case Application(operator="neg", operands=(operand,)):
            a = polynomial(operand, inside)
            return None if a is None else {factors: Application("neg", (c,)) for factors, c in a.items()}
        case Application(operator="*", operands=(left, right)):
            return _product(polynomial(left, inside), polynomial(right, inside))
        case Application(operator="/", operands=(left, right)):
            a, b = polynomial(left, inside), polynomial(right, inside)
            if a is None or b is None or set(b) != {()}:
                return None
            return {factors: Application("/", (c, right)) for factors, c in a.items()}
        case Application(operator="^", operands=(left, Numeral(value=power))) if power in (2, 3, 4):
            a = polynomial(left, inside)
            if a is None or set(a) == {()}:
                return a if a is None else {(): value}
            made: Monomials | None = a
            for _ in range(int(power) - 1):
                made = _product(made, a)
            return made
        case Application(operands=operands):
            parts = [polynomial(o, inside) for o in operands]
            return {(): value} if all(p is not None and set(p) == {()} for p in parts) else None
    return {(): value}


def _product(a: Monomials | None, b: Monomials | None) -> Monomials | None:
    if a is None or b is None or len(a) * len(b) > MOST_MONOMIALS:
        return None
    total: dict[tuple[int, ...], Expression] = {}
    for left, c in a.items():
        for right, d in b.items():
            factors = tuple(sorted((*left, *right)))
            product = d if c == Numeral(1.0) else c if d == Numeral(1.0) else Application("*", (c, d))
            total[factors] = Application("+", (total[factors], product)) if factors in total else product
    return None if any(len(f) > MOST_FACTORS for f in total) else total


def recursive(rule: NormalRule, keys: frozenset[str]) -> frozenset[int]:
    """The antecedents of a rule that are unknowns while a component of these predicates is solved."""
    return frozenset(i for i, a in enumerate(rule.antecedents) if a.item.key in keys and not a.side)


def unknowns(rule: NormalRule, keys: frozenset[str], semiring: str) -> int | None:
    """The degree of a rule's right side in the unknowns of its component; None where it is not a polynomial."""
    inside = recursive(rule, keys)
    if semiring != "plain":
        return len(inside)
    found = polynomial(rule.value, inside)
    return None if found is None else max((len(f) for f in found), default=0)
