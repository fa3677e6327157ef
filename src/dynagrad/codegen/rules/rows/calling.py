"""Calls of joins for a whole row of items; for one item after the other, where the facts at hand do not allow more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....plan.model import Join, TableLayout
from ..context import ClassContext


@dataclass(frozen=True)
class ItemRow:
    """Items that stand side by side: their table, the first cell, the arguments there, and a bit for each item."""

    table: TableLayout
    cell: str
    arguments: Sequence[str]
    cells: str


def write_row_call(context: ClassContext, join: Join, row: ItemRow, prefix: str = "", end: str = "") -> None:
    """Calls a join for a whole row, forward, or with the `prefix` `back_` backward, where adjoints are in `updates`.

    One of a matrix says whether it is done; if its facts are no grid, it is made for one item after the other. `end` is
    the statement that ends sums which were put off.
    """
    out, call = context.out, context.drive_name(join, f"{prefix}rows")
    given = ", ".join([row.cell, *row.arguments, row.cells])
    more = ", updates" if prefix else ""
    if (join.rule.number, join.driver) in context.elementwise:
        out.line(f"{call}({given}{more});")
        return
    last = row.table.order[-1]
    each = [f"{text} + i" if i == last else text for i, text in enumerate(row.arguments)]
    one = context.reverse(join, "now", "updates[i]") if prefix else context.forward(join, "now")
    out.open("")
    out.line("bool done = false;")
    out.line(f"{call}({given}, done{more});")
    out.open(f"for (uint64_t left = {row.cells}; left && !done && !halt; left &= left - 1)")
    out.line("const int32_t i = __builtin_ctzll(left);")
    out.line(f"const value_t now = {context.names.table[row.table.key]}.value[{row.cell} + i];")
    out.line(context.visit(join, one, each, f"{row.cell} + i"))
    out.close()
    if end:
        out.line(end)
    out.close()
