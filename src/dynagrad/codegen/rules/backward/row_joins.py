"""Joins of a whole row of drivers on the way back: each driver and each factor gets the adjoint of its update.

The adjoints of drivers are added to the array `updates`; `cells` has a bit for each driver of the row. The order in
which pops are undone is in `row_pops.py`.
"""

from __future__ import annotations

from ....plan.model import Join, Stage
from ....plan.traits import keeps_updates, posteriors
from ..context import ClassContext
from ..rows.elementwise import ElementwiseWriter
from ..rows.matrix import MatrixWriter
from ..rows.writer import RowWriter


def write_back(context: ClassContext, join: Join) -> RowWriter:
    """The body of the function of such a join; returns its writer."""
    place = join.rule.number, join.driver
    writer: RowWriter
    if place in context.elementwise:
        writer = BackElementwiseWriter(context, join, context.elementwise[place])
    else:
        writer = BackMatrixWriter(context, join, context.matrices[place])
    writer.write()
    return writer


def head_adjoints(context: ClassContext, join: Join) -> str:
    """The array of the adjoints of a join's heads; where adjoints are posteriors, over the weights."""
    table = context.plan.tables[join.rule.head.key]
    array = "ga" if keeps_updates(context.plan, table) else "g"
    return f"{context.names.table[table.key]}.{'h' if posteriors(context.plan) else array}"


class BackElementwiseWriter(ElementwiseWriter):
    """Goes back over a join whose drivers and heads stand side by side."""

    def __init__(self, context: ClassContext, join: Join, variable: str) -> None:
        super().__init__(context.plan, context.names, join, context.out, variable)
        self.adjoints = head_adjoints(context, join)

    def part(self, antecedent: int, value: str) -> str:
        at = self.cells[antecedent]
        return f"back_one_of({value}, {self.names.table[self.rule.antecedents[antecedent].item.key]}.g[{at}])"

    def row_part(self, antecedent: int, rows: str) -> str:
        name = self.names.table[self.rule.antecedents[antecedent].item.key]
        return f"back_of_rows({name}.value, {rows}, {name}.g.data)"

    def update(self, key: str, to: str) -> None:
        assert self.join.driver is not None
        driver = self.names.table[self.rule.antecedents[self.join.driver].item.key]
        parts = "".join(f", {part}" for part in self.parts)
        self.out.line(
            f"back_along({driver}.value.data + cell, {self.there}, updates, {self.adjoints}.data, {to}{parts});"
        )


class BackMatrixWriter(MatrixWriter):
    """Goes back over a join that multiplies a row of drivers by a matrix of facts."""

    def __init__(self, context: ClassContext, join: Join, variable: str) -> None:
        super().__init__(context.plan, context.names, join, context.out, variable)
        self.adjoints = head_adjoints(context, join)

    def update(self, facts: str, to: str, drivers: str) -> None:
        add = f"{waiting_rows(self.join)}->add" if posteriors(self.plan) else "back_matrix"
        self.out.line(
            f"{add}({facts}.value, grid, cells, {facts}.g.data, {self.adjoints}.data + {to}, {drivers}, updates);"
        )


# -- rows that wait, where adjoints are posteriors ---------------------------------------------------------------------


def waiting_rows(join: Join) -> str:
    """The member that refers to what waits for the facts of such a join, while its stage is undone."""
    assert join.driver is not None
    return f"back_matrix{join.rule.number}_{join.driver + 1}"


def waits(context: ClassContext, stage: Stage) -> list[Join]:
    """The joins of a stage whose matrices of facts have rows wait for them."""
    if not posteriors(context.plan):
        return []
    return [join for join in stage.drives if (join.rule.number, join.driver) in context.matrices]


def write_waiting_members(context: ClassContext) -> None:
    """A member for each such join."""
    for stage in context.plan.stages:
        for join in waits(context, stage):
            context.out.line(f"BackMatrix* {waiting_rows(join)} = nullptr;")


def write_waiting(context: ClassContext, stage: Stage) -> None:
    """`in_rows_back<n>`: has them while a stage is undone."""
    members, out = [waiting_rows(join) for join in waits(context, stage)], context.out
    if members:
        with out.block(f"template <class F> DYNAGRAD_ALWAYS bool in_rows_back{stage.number}(F f)"):
            for member in members:
                out.line(f"BackMatrix rows_of_{member};")
                out.line(f"{member} = &rows_of_{member};")
            out.line("if (!f()) return false;")
            for member in members:
                out.line(f"{member}->end();")
            out.line("return true;")
