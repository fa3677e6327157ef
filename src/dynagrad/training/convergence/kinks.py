"""Where an objective has kinks, as far as programs, objectives and parametrisations tell."""

from __future__ import annotations

from ...charts.program import context_of
from ...rules.aggregators import AGGREGATORS
from ...rules.syntax import Application, Expression
from ..objectives.evaluation import programs_of
from ..specification import Specification

SELECTING = ("max", "min", "abs")
"""The operations of right sides that have kinks."""


def kinks(spec: Specification) -> str | None:
    """Where the objective has kinks, as far as the programs tell; None where it has none."""
    for program in (spec.program, *programs_of(spec.objective)):
        context = context_of(program)
        if program.semiring == "viterbi":
            return "where derivations of equal weight change places, as it is of the best"
        if program.semiring == "plain":
            for rule in context.rules.rules:
                if AGGREGATORS[rule.aggregator].kind == "select":
                    return f"where another contribution wins in `{rule.text}`"
                if _selects(rule.value):
                    return f"in the right side of `{rule.text}`"
    return None


def _selects(value: Expression) -> bool:
    match value:
        case Application(operator=operator, operands=operands):
            return operator in SELECTING or any(map(_selects, operands))
    return False
