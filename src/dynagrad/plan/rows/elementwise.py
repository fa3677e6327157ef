"""Joins in which drivers that stand side by side add to items of the head that stand side by side, one to one.

Such are the emissions of chain models: `at(T,I) += enter(T,I) * emit(T,X) * word(I,X)` over T.
C++ is written in `codegen/rules/rows/`, and not here.
"""

from __future__ import annotations

from ...rules.semirings import SEMIRINGS
from ...rules.syntax import Variable
from ..model import Join, Lookup, Plan, Scan, Step
from ..right_sides import factors, numbers
from ..traits import is_dense, is_facts
from .drivers import is_only_join, occurrences, same_for_all

MOST_FACTORS = 3
"""Beside the driver: so many mantissas of `log` may be multiplied without leaving the range of a double unnoticed."""


def elementwise(plan: Plan, join: Join) -> str | None:
    """The variable over which drivers and heads run side by side; None where a join is not of this kind."""
    if join.driver is None or join.vector is not None or join.same or plan.order:
        return None
    if not SEMIRINGS[plan.semiring].rows or len(factors(join.rule.value)) > MOST_FACTORS + 1:
        return None
    driver, head = join.rule.antecedents[join.driver], join.rule.head
    table, to = plan.tables[driver.item.key], plan.tables[head.key]
    if driver.side or not plan.pops_rows(driver.item.key) or not is_dense(to) or not to.arity or to.sink:
        return None
    term = driver.item.arguments[table.order[-1]]
    if not isinstance(term, Variable) or head.arguments[to.order[-1]] != term or numbers(join.rule.value):
        return None
    name, domain = term.name, table.domains[table.order[-1]]
    if occurrences(driver.item, name) != 1 or occurrences(head, name) != 1 or to.domains[to.order[-1]] != domain:
        return None
    if not is_only_join(plan, join):
        return None
    return name if all(_fits(plan, join, step, name, domain) for step in join.steps) else None


def _fits(plan: Plan, join: Join, step: Step, name: str, domain: int | None) -> bool:
    """Whether a step is the same for all drivers of a row, or the lookup of a fact for each."""
    if not isinstance(step, Lookup | Scan):
        return same_for_all(step, name)
    item = join.rule.antecedents[step.antecedent].item
    table = plan.tables[item.key]
    if not is_facts(table):
        return False
    if not occurrences(item, name):
        return True
    places = [k for k, term in enumerate(item.arguments) if term == Variable(name)]
    return (
        isinstance(step, Lookup) and occurrences(item, name) == len(places) == 1 and table.domains[places[0]] == domain
    )
