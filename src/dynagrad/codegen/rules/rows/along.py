"""Joins in which drivers that stand side by side add to items of the head that stand side by side, one to one.

Such are the emissions of chain models: `at(T,I) += enter(T,I) * emit(T,X) * word(I,X)` over T. All items of a row are
popped together, and what each is multiplied with is found in a loop of its own; so their updates are one operation on
vectors (`runtime/include/dynagrad/along.hpp`). Each item of the head gets its contributions in the same order as if the
drivers had been popped one by one, and they are the same to the bit.

How they are gone back over is in `back.py`; rows times a matrix are in `matrix.py`.
"""

from __future__ import annotations

from ....plan.joins import term_variables
from ....plan.model import Filter, Join, Lookup, Plan, Scan, Solve, Step
from ....plan.right_sides import factors, numbers
from ....rules.semirings import SEMIRINGS
from ....rules.syntax import Item, Variable
from ...cxx import Writer
from ..scope import Names
from ..statements import JoinWriter

MOST_FACTORS = 3
"""Beside the driver: so many mantissas of `log` may be multiplied without leaving the range of a double unnoticed."""


def along(plan: Plan, join: Join) -> str | None:
    """The variable over which drivers and heads run side by side; None where a join is not of this kind."""
    if join.driver is None or join.vector is not None or join.same or plan.order:
        return None
    if not SEMIRINGS[plan.semiring].rows or len(factors(join.rule.value)) > MOST_FACTORS + 1:
        return None
    driver, head = join.rule.antecedents[join.driver], join.rule.head
    table, to = plan.tables[driver.item.key], plan.tables[head.key]
    if driver.side or not plan.pops_rows(driver.item.key) or to.kind != "dense" or not to.arity or to.sink:
        return None
    term = driver.item.arguments[table.order[-1]]
    if not isinstance(term, Variable) or head.arguments[to.order[-1]] != term or numbers(join.rule.value):
        return None
    name, domain = term.name, table.domains[table.order[-1]]
    if uses(driver.item, name) != 1 or uses(head, name) != 1 or to.domains[to.order[-1]] != domain:
        return None
    if not alone(plan, join):
        return None
    return name if all(_fits(plan, join, step, name, domain) for step in join.steps) else None


def alone(plan: Plan, join: Join) -> bool:
    """Whether no other join has the same driver and the same head: contributions would come in another order."""
    driven = join.rule.antecedents[join.driver or 0].item.key, join.rule.head.key
    drives = (j for stage in plan.stages for j in stage.drives if j is not join)
    return all(driven != (j.rule.antecedents[j.driver or 0].item.key, j.rule.head.key) for j in drives)


def uses(item: Item, name: str) -> int:
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


def _fits(plan: Plan, join: Join, step: Step, name: str, domain: int | None) -> bool:
    """Whether a step is the same for all drivers of a row, or the lookup of a fact for each."""
    if not isinstance(step, Lookup | Scan):
        return same_for_all(step, name)
    item = join.rule.antecedents[step.antecedent].item
    table = plan.tables[item.key]
    if table.kind != "facts":
        return False
    if not uses(item, name):
        return True
    places = [k for k, term in enumerate(item.arguments) if term == Variable(name)]
    return isinstance(step, Lookup) and uses(item, name) == len(places) == 1 and table.domains[places[0]] == domain


class AlongWriter(JoinWriter):
    """Writes such a join for the `cells` of a row, a bit each from `cell` on; `a0`, ... are those of the first one."""

    def __init__(self, plan: Plan, names: Names, join: Join, writer: Writer, variable: str) -> None:
        super().__init__(plan, names, join, writer)
        self.variable = variable
        self.there = "cells"  # those for which all was found so far
        self.parts: list[str] = []  # what the drivers are multiplied with

    def _prologue(self) -> None:
        self.out.line("if (spend(__builtin_popcountll(cells))) return;")

    def one_row(self, antecedent: int) -> bool:
        return not uses(self.rule.antecedents[antecedent].item, self.variable)

    def take(self, antecedent: int, value: str, old: str | None = None) -> None:
        if antecedent != self.join.driver and antecedent in self.product:
            self.parts.append(self.part(antecedent, value))

    def part(self, antecedent: int, value: str) -> str:
        """One more factor, which is the same for all drivers."""
        return value

    def row_part(self, antecedent: int, rows: str) -> str:
        """One more factor, a fact for each driver."""
        return f"of_rows({self.place(antecedent)}.value, {rows})"

    def _lookup(self, i: int) -> None:
        item, table = self.rule.antecedents[i].item, self.table_of[i]
        if self.one_row(i):
            super()._lookup(i)
            return
        place = item.arguments.index(Variable(self.variable))
        texts, rows = self._arguments(item, table), self.fresh("rows")
        self.out.line(f"RowsAlong {rows};")
        self.out.line(f"rows_along<{place}>(*{self.place(i)}.facts(), {rows}, {self.there}, {', '.join(texts)});")
        self.out.open(f"if ({rows}.there)")
        self.there = f"{rows}.there"
        if not self.rule.antecedents[i].side and i in self.product:
            self.parts.append(self.row_part(i, rows))

    def _head(self) -> None:
        table = self.plan.tables[self.rule.head.key]
        name = self.names.table[table.key]
        texts, to = self._arguments(self.rule.head, table, True), self.fresh("to")
        self.out.line(f"const int64_t {to} = {name}.cell({self._stored(table, texts)});")
        self.update(table.key, to)

    def update(self, key: str, to: str) -> None:
        """What is done for the heads from the cell `to` on."""
        assert self.join.driver is not None
        driver = self.names.table[self.rule.antecedents[self.join.driver].item.key]
        parts = "".join(f", {part}" for part in self.parts)
        self.out.line(
            f"add_along({driver}.value.data + cell, {self.there}, {self.names.table[key]}, {to}, "
            f"(ChartBase*)this, static_cast<Arrive>({self.names.arrive(key)}){parts});"
        )
