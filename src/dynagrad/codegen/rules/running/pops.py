"""The joins of a stage, and which of them an item drives that is popped, as `running/item.hpp` does it.

What a join does inside is in `codegen/rules/statements.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....plan.model import Join, Stage, TableLayout
from ....plan.traits import has_agenda, solves
from ..context import ClassContext
from ..rows.calling import ItemRow, write_row_call
from ..rows.driving import write_driven
from ..statements import JoinWriter, arguments_of
from ..traits import driven, types_of_tables


def write_joins(context: ClassContext, stage: Stage) -> None:
    """The functions of a stage's joins, and those that call them for an item."""
    for join in stage.fires:
        _fire(context, join)
    for join in stage.drives:
        write_driven(context, join, often="DYNAGRAD_STEP" if _part_of_pop(context, stage, join) else "DYNAGRAD_RULE")


def _part_of_pop(context: ClassContext, stage: Stage, join: Join) -> bool:
    """Whether a join is called by the pop of its driver alone, and is the only one that this calls."""
    assert join.driver is not None
    key = join.rule.antecedents[join.driver].item.key
    if context.plan.changes is not None or not has_agenda(stage) or solves(stage):
        return False
    return [other for other in context.drives_of[stage.number].get(key, []) if not context.in_rows(other)] == [join]


def _fire(context: ClassContext, join: Join) -> None:
    if context.shapes is not None:
        context.functions["rule", join.rule.number, None] = context.shapes.function(join)
        return
    context.join_comment(join)
    context.join_function(join, "rule", JoinWriter(context.plan, context.names, join, context.out), "DYNAGRAD_FIRED")


def write_drives(context: ClassContext, stages: Sequence[Stage]) -> None:
    """`drive`, which calls the joins of a popped item, and `drive_row`, those of a row of items, by types of tables."""
    out, values = context.out, "const value_t& update, const value_t& old, const value_t& now, bool first"
    for kind, tables in types_of_tables(context, stages).items():
        with out.block(f"DYNAGRAD_ALWAYS void drive({kind}& table, int64_t cell, const int32_t* a, {values})"):
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
    called = [context.function_of(join).call(arguments_of(table, "a[{}]")) for join in joins]
    return [f"{only}{call};" for only, call in zip(within, called, strict=True)]
