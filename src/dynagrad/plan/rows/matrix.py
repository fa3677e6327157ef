"""Joins that multiply a row of drivers by a matrix of facts: `enter(T,I+1) += at(S,I) * move(S,T)` over all S and T.

C++ is written in `codegen/rules/rows/`, and not here.
"""

from __future__ import annotations

from ...rules.syntax import Variable
from ..model import Filter, Join, Plan, Solve
from ..right_sides import factors, numbers
from .drivers import is_only_join, occurrences, same_for_all


def matrix(plan: Plan, join: Join) -> str | None:
    """The variable of the row of drivers; None where a join is not of this kind."""
    if not plan.sums_together(join) or len(join.rule.antecedents) != 2 or not is_only_join(plan, join):
        return None
    assert join.driver is not None
    driver, other = join.rule.antecedents[join.driver], join.rule.antecedents[1 - join.driver]
    if driver.side or numbers(join.rule.value) or len(factors(join.rule.value)) != 2:
        return None
    table, facts = plan.tables[driver.item.key], plan.tables[other.item.key]
    term, last = driver.item.arguments[table.order[-1]], other.item.arguments[-1]
    if not isinstance(term, Variable) or last != Variable(join.vector or ""):
        return None
    name, domain = term.name, table.domains[table.order[-1]]
    places = [i for i, argument in enumerate(other.item.arguments) if argument == term]
    if (
        occurrences(driver.item, name) != 1
        or occurrences(join.rule.head, name)
        or occurrences(other.item, name) != 1
        or len(places) != 1
    ):
        return None
    if facts.domains[places[0]] != domain:
        return None
    for step in join.steps[:-1]:
        if not isinstance(step, Filter | Solve) or not same_for_all(step, name):
            return None
    return name
