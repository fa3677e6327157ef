"""How rows of one fact join where no rule defines its predicate: by the aggregator of the rules that read its value.

They join before the rules read them, which has to be the same as joining what the rules make of each. So readers have
to agree, each reads the fact once, and its right side has to be linear in it (`+=`), a sum with it as a term (`log+=`),
or increasing in it whatever the other values are (`min=`, `max=`), and defined for each row where it is for their join:
`max= sqrt(a(_))` of -2 and 4 is an error, that of their largest is none. Rules that only test it do not count. Where
that cannot be seen from the rules, rows do not join, and a fact that is given twice is an error when facts are loaded
(`charts/binding/copies.py`), unless the program declares how they do. A semiring joins all rows by its plus.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...errors import cut
from ..aggregators import AGGREGATORS
from ..normal import NormalRule, Predicate, Rules
from ..syntax import INCREASING, OF_POSITIVE, AntecedentValue, Application, Expression, Numeral
from ..unfold import is_linear
from .declarations import declared_aggregators


def joined(rules: Rules) -> dict[str, Predicate]:
    """The predicates of a program, with the aggregators by which rows of inputs join.

    >>> from dynagrad.rules.check import check
    >>> from dynagrad.rules.parse import parse
    >>> predicates = check(parse("far(V) min= far(U) + road(U,V).  far(home) = 0.  less max= -toll(_).")).predicates
    >>> predicates["road/2"].aggregator, predicates["toll/1"].unjoined
    ('min=', '`less max= -toll(_).` (line 1) may fall where it rises')
    """
    if rules.semiring is not None:
        return rules.predicates
    stated = {axiom.item.key: axiom.aggregator for axiom in rules.axioms if axiom.aggregator != "="}
    stated.update({key: aggregator for key, (aggregator, _) in declared_aggregators(rules.source).items()})
    readers = _readers(rules.rules)
    found = dict(rules.predicates)
    for key, predicate in found.items():
        if predicate.external:
            continue
        if key in stated:
            found[key] = replace(predicate, aggregator=stated[key], stated=True)
        elif not predicate.defined and key in readers:
            reason = _reason(readers[key])
            aggregator = "+=" if reason else readers[key][0][0].aggregator
            found[key] = replace(predicate, aggregator=aggregator, unjoined=reason)
    return found


def _readers(rules: Iterable[NormalRule]) -> dict[str, list[tuple[NormalRule, list[int]]]]:
    """The rules that read the value of an item of each predicate, and which of their antecedents do."""
    found: dict[str, list[tuple[NormalRule, list[int]]]] = {}
    for rule in rules:
        read: dict[str, list[int]] = {}
        for index, antecedent in enumerate(rule.antecedents):
            if not antecedent.side:
                read.setdefault(antecedent.item.key, []).append(index)
        for key, indices in read.items():
            found.setdefault(key, []).append((rule, indices))
    return found


def _reason(readers: Sequence[tuple[NormalRule, list[int]]]) -> str:
    """Why rows do not join for these readers; empty where they do."""
    first = readers[0][0]
    for rule, indices in readers:
        if rule.aggregator != first.aggregator:
            return f"{_named(first)} and {_named(rule)} do not agree on how"
        if len(indices) > 1:
            return f"{_named(rule)} reads it twice"
        if fault := _fault(rule, indices[0]):
            return f"{_named(rule)} {fault}"
    return ""


_NOT_LINEAR = {"+=": "is not linear in it", "log+=": "is no sum with it as a term"}


def _named(rule: NormalRule) -> str:
    return f"`{cut(rule.text)}` (line {rule.span.line})"


def _fault(rule: NormalRule, index: int) -> str:
    """Why joining the values of an antecedent is not the same as joining what the rule makes of each of them; empty
    where it is."""
    if rule.aggregator == "=":  # all of them are the same
        return ""
    aggregator = AGGREGATORS[rule.aggregator]
    if not aggregator.sign:
        linear = is_linear(_shortened(rule.value), index, aggregator.distributes)
        return "" if linear else _NOT_LINEAR.get(rule.aggregator, "reads it together with others")
    if _trend(rule.value, index) != 1:
        return "may fall where it rises"
    hidden, which, kept = (-1, "small", "largest") if rule.aggregator == "max=" else (1, "large", "smallest")
    if hidden in _undefined(rule.value, index):
        return f"may be undefined where it is {which}, which would be lost behind the {kept} of its rows"
    return ""


def _shortened(value: Expression) -> Expression:
    """A right side without terms of zero and factors of one."""
    if not isinstance(value, Application) or len(value.operands) != 2:
        return value
    left, right = map(_shortened, value.operands)
    neutral = {"+": 0, "-": 0, "*": 1, "/": 1}.get(value.operator)
    if neutral is not None and isinstance(right, Numeral) and right.value == neutral:
        return left
    if value.operator in ("+", "*") and isinstance(left, Numeral) and left.value == neutral:
        return right
    return replace(value, operands=(left, right))


# -- signs and trends ----------------------------------------------------------------------------------------------

_Sign = tuple[bool, bool]
"""Whether a number is known to be at least 0, and whether it is known to be at most 0."""


def _sign(node: Expression) -> _Sign:
    """What is known of the sign of a part of a right side. That of an item is not, whatever its rules are, since facts
    may be given for each predicate."""
    match node:
        case Numeral(value=number):
            return number >= 0, number <= 0
        case Application(operator="^", operands=(_, Numeral(value=power))) if power % 2 == 0:
            return True, False
        case Application(operator=operator, operands=operands):
            parts = operands[1:] if operator == "if" else operands
            return _sign_of(operator, list(map(_sign, parts)))
    return False, False


def _sign_of(operator: str, of: Sequence[_Sign]) -> _Sign:
    """The sign of what an operation makes of operands with these signs."""
    ups, downs = [up for up, _ in of], [down for _, down in of]
    match operator:
        case "+" | "if":
            return all(ups), all(downs)
        case "-":
            return ups[0] and downs[1], downs[0] and ups[1]
        case "neg":
            return downs[0], ups[0]
        case "*" | "/":
            if not all(up or down for up, down in of):
                return False, False
            odd = sum(not up for up in ups) % 2 == 1
            zero = any(up and down for up, down in of)
            return not odd or zero, odd or zero
        case "min":
            return all(ups), any(downs)
        case "max":
            return any(ups), all(downs)
        case "lse":
            return any(ups), False
        case "exp" | "sigmoid" | "sqrt" | "abs":
            return True, False
        case "tanh":
            return ups[0], downs[0]
        case "^":
            return ups[0], False
    return False, False


def _trend(node: Expression, index: int) -> int | None:
    """1 where a part of a right side never falls as the value of an antecedent rises, -1 where it never rises, 0 where
    it does not depend on it; None where nothing is known."""
    if isinstance(node, AntecedentValue):
        return int(node.index == index)
    if not isinstance(node, Application):
        return 0
    trends = [_trend(operand, index) for operand in node.operands]
    at = next((i for i, trend in enumerate(trends) if trend != 0), None)  # it has one place
    if at is None:
        return 0
    own, direction = trends[at], _direction(node, at)
    return None if own is None or direction is None else own * direction


def _direction(node: Application, at: int) -> int | None:
    """How an operation moves with one of its operands: 1 with it, -1 against it, None where that is not known."""
    signs = list(map(_sign, node.operands))
    rest = _by(_sign_of("*", signs[:at] + signs[at + 1 :]))
    match node.operator, at:
        case (operator, _) if operator in INCREASING:
            return 1
        case ("-", 0) | ("if", 1 | 2):
            return 1
        case ("-", 1) | ("neg", _):
            return -1
        case "abs", _:
            return _by(signs[at])
        case ("*", _) | ("/", 0):
            return rest
        case "/", 1:  # on one side of zero, against it for a numerator that is not negative
            return None if rest is None or _by(signs[1]) is None else -rest
        case "^", 0:
            return _of_base(node.operands[1], signs[0])
        case "^", 1:
            base = node.operands[0]
            return (1 if base.value >= 1 else -1) if isinstance(base, Numeral) and base.value > 0 else None
    return None


def _undefined(node: Expression, index: int) -> set[int]:
    """Where a part of a right side may be undefined by the value of an antecedent alone: -1 for all that are lower than
    some value, 1 for all that are higher."""
    if not isinstance(node, Application):
        return set()
    found = {direction for operand in node.operands for direction in _undefined(operand, index)}
    if node.operator in OF_POSITIVE and not _sign(node.operands[0])[0]:
        trend = _trend(node.operands[0], index)
        found |= {-1, 1} if trend is None else {-trend} - {0}
    return found


def _by(sign: _Sign) -> int | None:
    """The direction of a product in a factor, by the sign of the rest."""
    return 1 if sign[0] else -1 if sign[1] else None


def _of_base(exponent: Expression, base: _Sign) -> int | None:
    """The direction of a power in its base."""
    if not isinstance(exponent, Numeral):
        return None
    if exponent.value >= 0 and (base[0] or exponent.value % 2 == 1):
        return 1
    return -1 if exponent.value < 0 and base[0] else None
