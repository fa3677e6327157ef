"""The nests of a program, and which of them an item drives that is popped, as `running/item.hpp` does it.

What a nest does inside is in `codegen/rules/nests.py`; what its visitors do, in `visiting/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ....plan.model import Join, Stage, TableLayout
from ...cxx import comment
from ..context import ClassContext
from ..nests import arguments_of
from ..right_sides import constants, write_right_side
from ..rows.calling import ItemRow, write_row_call
from ..rows.driving import write_row
from ..shapes import FEW, write_visits
from ..traits import driven, types_of_tables


def write_nests(context: ClassContext) -> None:
    """The right sides of rules, and the functions of all nests."""
    plan, changes = context.plan, context.plan.changes
    joins = [join for stage in plan.stages for join in (*stage.fires, *stage.drives, *stage.inner_joins)]
    if changes is not None:
        joins += (*changes.facts, *changes.heads)
    write_right_sides(context, joins)
    for join in joins:
        if (join.rule.number, join.driver) not in context.elementwise:
            context.nest(join)
    for join in joins:
        if context.in_rows(join):
            write_row(context, join)


def write_right_sides(context: ClassContext, joins: Sequence[Join]) -> None:
    """A struct for the right side of each rule; rules that are alike share one where there are thousands."""
    out, alike = context.out, dict[tuple[str, ...], str]()
    for rule in {join.rule.number: join.rule for join in joins}.values():
        with out.aside(1) as body:
            write_right_side(context.plan, context.names, rule, out, goes_back=context.goes_back)
        name = f"rule{rule.number}"
        known = alike.setdefault(tuple(body), name) if context.shapes is not None else name
        context.right_sides[rule.number] = known
        if known == name:
            count = len(constants(context.plan, context.names, rule))
            out.line(f"struct {name} : Constants<value_t, {count}> {{", comment(rule.text))
            out.lines += body
            out.line("};")
    out.line()


def write_drives(context: ClassContext, stages: Sequence[Stage]) -> None:
    """`drive`, which calls the joins of a popped item, and `drive_row`, those of a row of items, by types of tables."""
    out, values = context.out, "const value_t& update, const value_t& old, const value_t& now, bool first"
    for kind, tables in types_of_tables(context, stages).items():
        with out.block(f"DYNAGRAD_ALWAYS void drive({kind}& table, int64_t cell, const int32_t* a, {values})"):
            if context.shapes is not None and len(tables) > FEW:
                joins = {table.number: driven(context, table) for table in tables}
                visits = partial(context.row, visitor=context.forward, arguments=arguments_of(tables[0], "a[{}]"))
                write_visits(out, joins, visits, "table.number")
                continue
            out.switch("table.number", {table.number: _calls(context, table) for table in tables})
        together = [join for join in driven(context, tables[0]) if context.in_rows(join)]
        if together:
            with out.block(f"DYNAGRAD_ALWAYS void drive_row({kind}&, int64_t cell, const int32_t* a, uint64_t cells)"):
                for join in together:
                    row = ItemRow(tables[0], "cell", arguments_of(tables[0], "a[{}]"), "cells")
                    write_row_call(context, join, row, end="together.end(this);")


def _calls(context: ClassContext, table: TableLayout) -> list[str]:
    """The calls of the joins that an item drives by itself; those of a row are made together."""
    stage = context.plan.stage_of[table.key]
    joins = [join for join in driven(context, table) if not context.in_rows(join)]
    within = ["if (solving.leads_out) " if stage.unknowns and stage.is_inner(join) else "" for join in joins]
    called = [context.visit(join, context.forward(join), arguments_of(table, "a[{}]")) for join in joins]
    return [f"{only}{call}" for only, call in zip(within, called, strict=True)]
