"""Joins that multiply a row of drivers by a matrix of facts: `enter(T,I+1) += at(S,I) * move(S,T)` over all S and T.

Where the facts are a full grid in the order that the join wants, their lines are found without looking for each
(`GridAlong` of `runtime/include/dynagrad/along.hpp`); where they are not, the join is made for one driver
after the other.
"""

from __future__ import annotations

from ....plan.model import Filter, Join, Plan, Scan, Solve
from ....plan.right_sides import factors, numbers
from ....rules.syntax import Variable
from ...cxx import Writer
from ..scope import Names
from ..statements import JoinWriter
from .along import alone, same_for_all, uses


def matrix(plan: Plan, join: Join) -> str | None:
    """The variable of the row of drivers; None where a join is not of this kind."""
    if not plan.sums_together(join) or len(join.rule.antecedents) != 2 or not alone(plan, join):
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
    if uses(driver.item, name) != 1 or uses(join.rule.head, name) or uses(other.item, name) != 1 or len(places) != 1:
        return None
    if facts.domains[places[0]] != domain:
        return None
    for step in join.steps[:-1]:
        if not isinstance(step, Filter | Solve) or not same_for_all(step, name):
            return None
    return name


class MatrixWriter(JoinWriter):
    """Writes such a join for the `cells` of a row, a bit each from `cell` on; `a0`, ... are those of the first one.

    Where the facts are no grid, `done` stays false.
    """

    def __init__(self, plan: Plan, names: Names, join: Join, writer: Writer, variable: str) -> None:
        super().__init__(plan, names, join, writer)
        self.variable = variable

    def _prologue(self) -> None:
        pass

    def _scan(self, step: Scan, vector: str | None = None) -> None:
        item, table = self.rule.antecedents[step.antecedent].item, self.table_of[step.antecedent]
        name, place = self.place(step.antecedent), item.arguments.index(Variable(self.variable))
        head, last = self.plan.tables[self.rule.head.key], table.arity - 1
        low = f"{name}.facts()->by_all.low[{last}]"
        texts = [
            low if i == last else self.build(term, table.domains[i], False) for i, term in enumerate(item.arguments)
        ]
        self.out.line("GridAlong grid;")
        self.out.open(f"if (grid_along<{place}>(*{name}.facts(), grid, cells, {', '.join(texts)}))")
        self.out.line("if (spend(__builtin_popcountll(cells) * grid.length / 8)) return;")
        heads = [
            low if i == head.order[-1] else self.build(term, head.domains[i], True)
            for i, term in enumerate(self.rule.head.arguments)
        ]
        self.out.line("done = true;")
        to = self.fresh("to")
        self.out.line(f"const int64_t {to} = {self.names.table[head.key]}.cell({self._stored(head, heads)});")
        self.out.open("for (uint64_t left = cells; left; left &= left - 1)")
        self.out.line("const int64_t i = __builtin_ctzll(left), at = grid.first + i * grid.step;")
        assert self.join.driver is not None
        driver = self.names.table[self.rule.antecedents[self.join.driver].item.key]
        self.update(name, to, f"{driver}.value[cell + i]")
        self.out.close()
        self.end()

    def update(self, facts: str, to: str, value: str) -> None:
        """What is done with a line of the matrix for the heads from the cell `to` on."""
        head = self.rule.head.key
        self.out.line(
            f"together.add({facts}.value, at, grid.length, {self.names.table[head]}, {to}, {value}, this, "
            f"{self.names.arrive(head)});"
        )

    def end(self) -> None:
        """After the last line."""
        self.out.line("together.end(this);")

    def _head(self) -> None:
        pass
