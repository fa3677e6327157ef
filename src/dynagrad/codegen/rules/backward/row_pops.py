"""Undoes the pops of a row together, where some of the joins that they drove were made for the whole row.

Pops one by one are undone in `running/undo.hpp`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....plan.model import Join, Stage, TableLayout
from ....plan.traits import goes_back_together, posteriors, rolls_back
from ..context import ClassContext
from ..nests import arguments_of
from ..rows.calling import ItemRow, write_row_call
from ..traits import goes_back_in_rows


def write_undo_rows(context: ClassContext, stage: Stage, table: TableLayout, drives: Sequence[Join]) -> None:
    """`undo_rows`, of up to 64 pops, as they were popped together; returns the place of the first of them."""
    out, name, n, rolls = context.out, context.names.table[table.key], stage.number, rolls_back(stage)
    last = table.order[-1]
    listed = arguments_of(table)
    out.open(f"DYNAGRAD_STEP int64_t undo_rows({context.table_types[table.key]}&, int64_t t)")
    out.line("int64_t cell = cell_of(tape.pops[t]);")
    context.unpack(table)
    out.line(f"const int64_t within = (int64_t)a{last} - {name}.range[{table.arity - 1}].low;")
    out.line("cell -= within & 63;")
    out.line(f"const int32_t first = a{last} - (int32_t)(within & 63);")
    listed[last] = "first"
    out.line(f"const int64_t left = {name}.row_length() - (within & ~63ll);")
    out.line("const uint64_t length = left < 64 ? (uint64_t)left : 64;")
    out.line("uint64_t cells = 0;")
    out.line("adjoint_t updates[64] = {};")
    alone = [join for join in drives if not goes_back_in_rows(context, join)]
    if not alone and not rolls:
        first = f"handle({table.number}, cell)"
        out.line(f"t = tape.row_before(t, tape.begins[{n}], {first}, length, cells);")
    else:
        out.open("for (;;)")
        out.line("const int64_t here = cell_of(tape.pops[t]), i = here - cell;")
        out.line("cells |= 1ull << i;")
        if alone:
            out.line(f"const value_t now = {name}.value[here];")
            out.line(f"position = (uint32_t)(t + 1 - tape.begins[{n}]);")
        arguments = [f"{x} + (int32_t)i" if x == "first" else x for x in listed]
        for join in alone:
            out.line(context.visit(join, context.reverse(join, "now", "updates[i]"), arguments, "here"))
        if rolls:
            out.line(f"hide(*this, {name}, here);")
        out.line(f"if (halt || t == tape.begins[{n}]) break;")
        out.line("const Handle before = tape.pops[t - 1];")
        out.line(f"if (table_of(before) != {table.number} || (uint64_t)(cell_of(before) - cell) >= length) break;")
        out.line("t--;")
        out.close()
    if any(goes_back_together(context.plan, join) for join in alone):
        out.line("back_together.end();")
    for join in drives:
        if goes_back_in_rows(context, join):
            end = "back_together.end();" if goes_back_together(context.plan, join) else ""
            write_row_call(context, join, ItemRow(table, "cell", listed, "cells"), "back_", end)
    over = f", {name}.h.data + cell, {name}.value.data + cell" if posteriors(context.plan) else ""
    out.line(f"if (complete_row(cells, {name}.g.data + cell, updates{over})) return t;")
    out.open("for (; cells && !halt; cells &= cells - 1)")
    out.line("const int64_t here = cell + __builtin_ctzll(cells);")
    out.line(f"if (!back::sound({name}.g[here])) lose(bad_adjoint, {table.number}, here);")
    out.close()
    out.line("return t;")
    out.close()
    out.line()
