"""The tape of a program: what the forward pass records for the backward pass, and the members that hold it.

An entry is a pop. Items that can be popped several times have their earlier values saved, and where the aggregator
selects, an update says in which pop it was made. The pass that reads the tape is in `sweep.py`, the C++ of the tape
itself in `running/tape.hpp`.
"""

from __future__ import annotations

from ....plan.model import Plan, Stage, TableLayout
from ....plan.traits import (
    head_kind,
    selects,
    sweeps,
)
from ....rules.aggregators import AGGREGATORS, HeadKind
from ..context import ClassContext


def write_members(context: ClassContext) -> None:
    plan, out = context.plan, context.out
    out.line("Tape<semiring> tape{&account};")
    out.line("uint32_t position = 0;  // the current pop of the stage, from 1; 0 before the first")
    out.line("int64_t saved_at = 0, from_at = 0;  // backward: how much of the tape is left")
    out.line("Bits wanted{&account};  // per pop: whether an item waits for an update that it made")
    for stage in plan.stages:
        if sweeps(stage):
            out.line(f"Array<int64_t> rounds{stage.number}{{&account}};  // the pops before each round")


def record_pop(context: ClassContext, stage: Stage, table: TableLayout) -> None:
    """In `pop`: records the pop on the tape."""
    out, name = context.out, context.names.table[table.key]
    if stage.final:
        out.line(f"if (recording) position = tape.popped({stage.number}, handle({table.number}, cell));")
        return
    out.open("if (recording)")
    out.line(f"position = tape.popped({stage.number}, handle({table.number}, cell) | (first ? 0 : tape.again));")
    out.line("if (!first) tape.saved.push({old, update});")
    if selects(context.plan, table):
        out.line(f"tape.from.push({name}.from[cell]);")
    out.close()


def tape_bytes(plan: Plan) -> str:
    """The size of the tape in bytes."""
    rounds = [f" + rounds{s.number}.size * 8" for s in plan.stages if sweeps(s)]
    return f"tape.bytes(){''.join(rounds)}"


def record_contribution(context: ClassContext, table: TableLayout, selected: str | None) -> None:
    """In `add`: records where a contribution `x` came from if it is selected, or the factors of a product.

    None stands for a contribution that always is, and no test for one that never is.
    """
    out, name = context.out, context.names.table[table.key]
    match head_kind(context.plan, table):
        case HeadKind.SELECT if selected != "":
            test = "" if selected is None else f" && {selected}"
            out.line(f"if (__builtin_expect(recording, 0){test}) grown({name}.from, cell, 0u) = position;")
        case HeadKind.PRODUCT:
            out.line(f"if (recording) {name}.factors.add(cell, x);")


def either(first: str, second: str) -> str:
    """The test that holds where one of two does, of which the second may be empty; an operand of `&&`."""
    return f"({first} || {second})" if second else first


def improves(context: ClassContext, table: TableLayout, where: str) -> str:
    """The test that a contribution `x` is selected over the number `where`; empty where none is."""
    if not context.plain:
        return f"semiring::better(x, {where})"
    sign = AGGREGATORS[table.aggregator].sign
    if not sign:
        return ""
    return f"semiring::primal(x) {'>' if sign > 0 else '<'} semiring::primal({where})"


def forget(context: ClassContext, table: TableLayout) -> None:
    """Removes the item at `cell`, the last one entered, from the chart and its indexes."""
    out, name = context.out, context.names.table[table.key]
    out.line(f"{name}.popped.clear(cell);")
    context.enter(table, "remove(key)")
