"""Joins that multiply a row of drivers by a matrix of facts: `enter(T,I+1) += at(S,I) * move(S,T)` over all S and T.

Which these are is decided in `plan/rows/matrix.py`. Where the facts are a full grid in the order that the join wants,
their lines are found without looking for each, and the product is one operation
(`runtime/include/dynagrad/running/matrix.hpp`); where they are not, the join is made for one driver after the other.
"""

from __future__ import annotations

from ....plan.nest import Loop
from ....rules.syntax import Variable
from .writer import RowWriter


class MatrixWriter(RowWriter):
    """Writes such a join for the `cells` of a row, a bit each from `cell` on; `a0`, ... are those of the first one.

    Where the facts are no grid, `done` stays false.
    """

    def _loop(self, loop: Loop) -> None:
        item, table = loop.item, self.table_of[loop.antecedent]
        name, place = self.place(loop.antecedent), item.arguments.index(Variable(self.variable))
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
        assert self.join.driver is not None
        driver = self.names.table[self.rule.antecedents[self.join.driver].item.key]
        self.update(name, to, f"{driver}.value.data + cell")

    def update(self, facts: str, to: str, drivers: str) -> None:
        """What is done for the heads from the cell `to` on."""
        head = self.rule.head.key
        self.out.line(
            f"add_matrix({facts}.value, grid, cells, {drivers}, {self.names.table[head]}, {to}, (ChartBase*)this, "
            f"static_cast<Arrive>({self.names.arrive(head)}));"
        )

    def at_head(self) -> None:
        pass
