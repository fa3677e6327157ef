"""Adjoints of updates that rest, see `running/sweep.hpp`: what a backward join does that sent one."""

from __future__ import annotations

from ....plan.model import TableLayout
from ..context import ClassContext


def _nothing_new(context: ClassContext, table: TableLayout, cell: str, x: str) -> str:
    """The test that the contribution `x` leaves the value at `cell` as it is."""
    value = f"{context.names.table[table.key]}.value[{cell}]"
    return f"semiring::same({context.plus(table, value, x)}, {value})"


def write_resting_adjoint(context: ClassContext, table: TableLayout, to: str, x: str) -> None:
    """In a backward join: the adjoint of resting updates, if the contribution `x` left the item at `to` as it was."""
    out, name, stage = context.out, context.names.table[table.key], context.plan.stage_of[table.key]
    out.line(
        f"if (report.stage > {stage.number} && {name}.popped.test({to}) && {_nothing_new(context, table, to, x)}) "
        f"need(needed{stage.number}, {name}.is_needed[{to}], handle({table.number}, {to})), g = {name}.resting[{to}];"
    )
