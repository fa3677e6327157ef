"""Joins in which drivers that stand side by side add to items of the head that stand side by side, one to one.

Which these are is decided in `plan/rows/elementwise.py`. All items of a row are popped together, and what each is
multiplied with is found in a loop of its own; so their updates are one operation on vectors
(`runtime/include/dynagrad/running/elementwise.hpp`). Each item of the head gets its contributions in the same order as
if the drivers had been popped one by one, and they are the same to the bit.

How they are gone back over is in `backward/row_joins.py`; rows times a matrix are in `matrix.py`.
"""

from __future__ import annotations

from ....plan.model import Join, Plan
from ....plan.rows.drivers import occurrences
from ....rules.syntax import Variable
from ...cxx import Writer
from ..scope import Names
from .writer import RowWriter


class ElementwiseWriter(RowWriter):
    """Writes such a join for the `cells` of a row, a bit each from `cell` on; `a0`, ... are those of the first one."""

    def __init__(self, plan: Plan, names: Names, join: Join, writer: Writer, variable: str) -> None:
        super().__init__(plan, names, join, writer, variable)
        self.there = "cells"  # those for which all was found so far
        self.parts: list[str] = []  # what the drivers are multiplied with

    def begin(self) -> None:
        super().begin()
        self.out.line("if (spend(__builtin_popcountll(cells))) return;")

    def one_row(self, antecedent: int) -> bool:
        return not occurrences(self.rule.antecedents[antecedent].item, self.variable)

    def take(self, antecedent: int, value: str) -> None:
        if antecedent != self.join.driver and antecedent in self.product:
            self.parts.append(self.part(antecedent, value))

    def part(self, antecedent: int, value: str) -> str:
        """One more factor, which is the same for all drivers."""
        return value

    def row_part(self, antecedent: int, rows: str) -> str:
        """One more factor, a fact for each driver."""
        return f"of_rows({self.place(antecedent)}.value, {rows})"

    def _probe(self, i: int) -> None:
        item, table = self.rule.antecedents[i].item, self.table_of[i]
        if self.one_row(i):
            super()._probe(i)
            return
        place = item.arguments.index(Variable(self.variable))
        texts, rows = self._arguments(item, table), self.fresh("rows")
        self.out.line(f"RowsAlong {rows};")
        self.out.line(f"rows_along<{place}>(*{self.place(i)}.facts(), {rows}, {self.there}, {', '.join(texts)});")
        self.out.open(f"if ({rows}.there)")
        self.there = f"{rows}.there"
        if not self.rule.antecedents[i].side and i in self.product:
            self.parts.append(self.row_part(i, rows))

    def at_head(self) -> None:
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
