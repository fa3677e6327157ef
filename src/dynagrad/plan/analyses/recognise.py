"""Recognition of the semiring of plain programs: `min=` over sums is tropical, `+=` over products real, and so on.

It looks at the rules alone, never at facts.
"""

from __future__ import annotations

from ...rules.normal import NormalRule, Rules
from ...rules.semirings import SEMIRINGS
from ...rules.syntax import AntecedentValue, Application, Expression, Numeral


def _made_of(value: Expression, operator: str) -> bool:
    """Whether a right side applies one operator to numbers and to antecedents, each once."""
    seen: set[int] = set()
    stack: list[Expression] = [value]
    while stack:
        at = stack.pop()
        match at:
            case Numeral():
                pass
            case AntecedentValue(index=index):
                if index in seen:
                    return False
                seen.add(index)
            case Application(operator=o, operands=operands) if o == operator:
                stack.extend(operands)
            case _:
                return False
    return True


ORDERS = {
    "arrival": "first in, first out",
    "value": "best first, since plus selects",
    "size": "largest update first",
}

# Aggregator, operator on right sides, semiring: plain programs of this form run in that semiring.
SHAPES = tuple((*row.recognised, name) for name, row in SEMIRINGS.items() if row.recognised is not None)


def effective_semiring(rules: Rules) -> str:
    """The semiring that a program runs in; "plain" for arithmetic that is that of no semiring.

    `+=` over products is `real`; `min=` over sums is `tropical`, `max=` over sums `viterbi`, `log+=` over sums `log`,
    with each antecedent once. Copies of facts still join by the aggregator of their predicate.
    """
    if rules.semiring is not None:
        return rules.semiring
    if rules.functions or not rules.rules:
        return "plain"
    aggregators = {p.aggregator for p in rules.predicates.values() if p.defined}
    given = {p.aggregator for p in rules.predicates.values() if not p.defined and not p.external}
    values = [(r, r.value) for r in rules.rules]
    for aggregator, operator, name in SHAPES:
        if (
            aggregators == {aggregator}
            and given <= SEMIRINGS[name].copies.keys()
            and all(
                _made_of(v, operator)
                and _reads_all(r, v)
                and (operator == "*" or not any(a.side for a in r.antecedents))
                for r, v in values
            )
        ):
            return name
    return "plain"


def _reads_all(rule: NormalRule, value: Expression) -> bool:
    """Whether every antecedent except side conditions occurs in the value."""
    seen: set[int] = set()
    stack: list[Expression] = [value]
    while stack:
        at = stack.pop()
        match at:
            case AntecedentValue(index=index):
                seen.add(index)
            case Application(operands=operands):
                stack.extend(operands)
    return all(i in seen or a.side for i, a in enumerate(rule.antecedents))
