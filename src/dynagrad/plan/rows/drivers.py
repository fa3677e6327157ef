"""What joins of whole rows ask of their drivers: no other join from these to the same head, and steps that are the same
for all of a row."""

from __future__ import annotations

from ...rules.syntax import Item
from ..joins import term_variables
from ..model import Filter, Join, Plan, Solve, Step


def is_only_join(plan: Plan, join: Join) -> bool:
    """Whether no other join has the same driver and the same head: contributions would come in another order."""
    driven = join.rule.antecedents[join.driver or 0].item.key, join.rule.head.key
    drives = (j for stage in plan.stages for j in stage.drives if j is not join)
    return all(driven != (j.rule.antecedents[j.driver or 0].item.key, j.rule.head.key) for j in drives)


def occurrences(item: Item, name: str) -> int:
    """In how many arguments a variable stands."""
    return sum(name in term_variables(term) for term in item.arguments)


def same_for_all(step: Step, name: str) -> bool:
    """Whether a condition or an equation is the same for all drivers of a row over a variable."""
    match step:
        case Filter(condition=condition):
            return name not in term_variables(condition.left) | term_variables(condition.right)
        case Solve(term=term):
            return name not in term_variables(term)
    return False
