"""What only the program knows of its items, for the templates of `running/item.hpp`: a function for each table.

It is told by the type of the table: `level_of` an item, the `priority_of` one that is declared, whether it is
`held_back`, and `each_index` of one, with its key. Arguments are in the order of the rules. Which joins an item drives
is in `pops.py`.
"""

from __future__ import annotations

from ....plan.model import TableLayout
from ....plan.traits import holds_back, waits
from ..context import ClassContext, level_type
from ..traits import types_of_tables
from .policies import declared_priority, holding_back


def write_each_index(context: ClassContext, table: TableLayout) -> None:
    """`each_index`: calls a function with each index of an item, and its key there."""
    out, kind = context.out, context.table_types[table.key]
    lines = context.keys_of_indexes(table)
    if lines and kind.endswith(f"table_{context.names.table[table.key]}"):  # the first of those that are alike
        with out.block(f"template <class F> DYNAGRAD_ALWAYS void each_index({kind}& table, const int32_t* a, F f)"):
            out.lines += lines


def write_levels(context: ClassContext) -> None:
    """`level_of` an item, by types of tables."""
    out, stages = context.out, context.plan.stages
    for kind, tables in types_of_tables(context, [stage for stage in stages if stage.forms]).items():
        stage_of = {table.number: context.plan.stage_of[table.key] for table in tables}
        level = level_type(stage_of[tables[0].number])
        with out.block(f"{level} level_of(const {kind}& table, const int32_t* a) const"):
            texts = {t.number: context.level(stage_of[t.number], t, "a[{}]") for t in tables}
            out.switch("table.number", {n: [f"return {text};"] for n, text in texts.items()}, returns=True)
            if len(tables) > 1:
                out.line("return 0;")


def write_item(context: ClassContext, table: TableLayout) -> None:
    """The functions of a table."""
    write_each_index(context, table)
    out, stage = context.out, context.plan.stage_of[table.key]
    item = f"{context.table_types[table.key]}&, int64_t cell, const int32_t* a"
    if waits(context.plan, table):
        declared = next((p for p in context.plan.rules.priorities if p.item.key == table.key), None)
        if stage.priority == "declared" and declared is not None:
            with out.block(f"bool priority_of({item}, double& priority)"):
                declared_priority(context, stage, table, declared)
        if holds_back(context.plan, table):
            with out.block(f"bool held_back({item}, const value_t& now, bool first)"):
                holding_back(context, table)
