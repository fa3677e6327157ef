"""What only the program knows of its backward pass, for `running/sweep.hpp`, which has the pass itself.

Who visits its nests, backward (`visiting/reverse.hpp`): `drive_back`, by types of tables, those that an item drove;
`share`, those of an item inside a solved component; `fire_back<n>`, those that no item drove; `undo_rows`, those of
a whole row of items, for which rows of facts wait in `in_rows_back<n>`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ....plan.model import Join, Stage, TableLayout
from ....plan.traits import copy_kind, has_agenda, has_axioms, head_clause_defined, is_facts, steps
from ....rules.aggregators import HeadKind
from ..context import ClassContext
from ..nests import arguments_of
from ..shapes import FEW, write_visits
from ..solving.blocks import driver_of
from ..traits import goes_back_in_rows, live, rows_back, types_of_tables
from .row_joins import write_back, write_waiting
from .row_pops import write_undo_rows


def write_backward(context: ClassContext) -> None:
    """All functions of the pass."""
    plan = context.plan
    for stage in plan.stages:
        for join in _live(context, stage.drives):
            if goes_back_in_rows(context, join):
                _join_rows(context, join)
    _drive_back(context)
    for stage in plan.stages:
        for table in (plan.tables[key] for key in stage.keys if not plan.tables[key].sink):
            if has_agenda(stage) and rows_back(context, table):
                write_undo_rows(context, stage, table, live(context, table))
        write_waiting(context, stage)
        _share(context, stage)
        _fire_back(context, stage)
    rows = [t for t in [*context.facts, *context.derived] if is_facts(t) or has_axioms(plan, t)]
    kinds = {t.number: copy_kind(plan, t) for t in rows}
    count = max(kinds, default=0) + 1
    listed = ", ".join(f"CopyKind::{kinds.get(number, HeadKind.SUM).value}" for number in range(count))
    context.out.line(f"static constexpr CopyKind copy_kinds[] = {{{listed}}};")


def _join_rows(context: ClassContext, join: Join) -> None:
    assert join.driver is not None
    context.join_comment(join)
    with context.out.aside(1) as body:
        given = context.row_parameters(join, write_back(context, join))
    head = f"DYNAGRAD_RULE void {context.drive_name(join, 'back_rows')}({given}, double* updates)"
    context.out.function(head, body)


def _live(context: ClassContext, joins: tuple[Join, ...]) -> Iterator[Join]:
    for join in joins:
        if not steps(context.plan, context.plan.tables[join.rule.head.key]):
            yield join


def _drive_back(context: ClassContext) -> None:
    out = context.out
    values = "const value_t& update, const value_t& old, const value_t& now, bool first"
    for kind, tables in types_of_tables(context, context.plan.stages).items():
        if rows_back(context, tables[0]):
            continue
        item = f"{kind}& table, int64_t cell, const int32_t* a"
        with out.block(f"DYNAGRAD_ALWAYS void drive_back({item}, {values}, adjoint_t& gupdate, adjoint_t& gold)"):
            if context.shapes is not None and len(tables) > FEW:
                joins = {table.number: live(context, table) for table in tables}
                row = partial(context.row, visitor=context.reverse, arguments=arguments_of(tables[0], "a[{}]"))
                write_visits(out, joins, row, "table.number")
                continue
            out.switch("table.number", {table.number: _calls(context, table) for table in tables})


def _calls(context: ClassContext, table: TableLayout) -> list[str]:
    stage, node = context.plan.stage_of[table.key], f"{context.names.table[table.key]}.node"
    lines = []
    for join in live(context, table):
        within = ""
        if stage.stable and stage.is_inner(join):  # the whole stage is one block, which still exists
            within = f"if (blocks{stage.number}.block.leads_out_at({node}[line_of(table, cell)])) "
        lines.append(within + context.visit(join, context.reverse(join), arguments_of(table, "a[{}]")))
    return lines


def _share(context: ClassContext, stage: Stage) -> None:
    """`share`: propagates the adjoint of a solved item to the weights of the instances inside the component."""
    out = context.out
    for table in (context.plan.tables[key] for key in stage.keys if stage.unknowns):
        inner = (join for join in stage.inner_joins if driver_of(join) == table.key)
        joins = [join for join in inner if not head_clause_defined(context.plan, join)]
        if joins:
            with out.block(f"DYNAGRAD_RULE void share({context.table_types[table.key]}& table, int64_t cell)"):
                out.line("const auto a = arguments_of(table, cell);")
                out.line("const value_t now = table.value[cell];")
                out.line("adjoint_t gupdate = {};")
                for join in joins:
                    out.line(context.visit(join, context.reverse(join, "now"), arguments_of(table, "a[{}]")))


def _fire_back(context: ClassContext, stage: Stage) -> None:
    joins = list(_live(context, stage.fires))
    if joins:
        with context.out.block(f"void fire_back{stage.number}()"):
            if context.shapes is not None and len(joins) > FEW:
                write_visits(context.out, {0: joins}, partial(context.row, visitor=context.reverse), halts=True)
                return
            for join in joins:
                halts = "if (!halt) " if join is not joins[0] else ""
                context.out.line(halts + context.visit(join, context.reverse(join)))
