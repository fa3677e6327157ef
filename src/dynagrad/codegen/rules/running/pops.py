"""The joins of a stage, and pops of its items: an item becomes part of the chart, and drives its joins.

What a join does inside is in `codegen/rules/statements.py`; which pop comes next, in `policies.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....plan.model import Join, Stage, TableLayout
from ....plan.traits import has_agenda, holds_back, in_line, solves, watches
from ..backward import resting
from ..backward.tape import record_pop
from ..context import ClassContext
from ..rows.calling import ItemRow, write_row_call
from ..rows.driving import write_driven
from ..solving import convergence
from ..statements import JoinWriter, takes, takes_arguments
from .policies import prune


def write_joins(context: ClassContext, stage: Stage) -> None:
    """The functions of a stage's joins, and those that pop its items."""
    for join in stage.fires:
        _fire(context, join)
    for join in stage.drives:
        write_driven(context, join, often="DYNAGRAD_STEP" if _part_of_pop(context, stage, join) else "DYNAGRAD_RULE")
    if has_agenda(stage):
        for key in stage.keys:
            if not context.plan.tables[key].sink:
                _pop(context, stage, context.plan.tables[key])


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


def _pop(context: ClassContext, stage: Stage, table: TableLayout) -> None:
    out, name = context.out, context.names.table[table.key]
    row = context.plan.pops_rows(table.key)
    drives = context.drives_of[stage.number].get(table.key, [])
    alone = [join for join in drives if not context.in_rows(join)]  # those of a row are made together
    called = [context.function_of(join) for join in alone]
    reads = takes_arguments(called) or bool(context.by_key.get(table.key)) or holds_back(context.plan, table)
    parameters = "".join(f", int32_t a{i}" for i in range(table.arity)) if row and reads else ""
    out.open(f"DYNAGRAD_STEP void pop_{name}(int64_t cell{parameters})")
    if not row and reads:
        context.unpack(table)
    if stage.final:
        out.line(f"const value_t now = {name}.value[cell];")
        out.line("report.pops++;")
        convergence.write_popped(context, stage, table)
        out.line(f"{name}.popped.set(cell);")
        if context.plan.adjoint:
            record_pop(context, stage, table)
    else:
        if in_line(stage):
            out.line(f"{name}.place[cell] = 0;")
        zero = context.zero(table)
        out.line(f"const bool first = !{name}.popped.test(cell);")
        replaces = (context.plain and table.aggregator != "+=") or context.plan.selective  # and is not added
        reads_update = takes(called, "update") or context.plan.adjoint or watches(context.plan, stage)
        const = "" if replaces and reads_update else "const "
        out.line(f"{const}value_t update = {resting.pending(context.plan, table, name)};")
        out.line(f"const value_t old = first ? {zero} : {name}.value[cell];")
        out.line(f"const value_t now = first ? update : {context.plus(table, 'old', 'update')};")
        context.check(table, "now")
        if replaces:
            same = (
                "!semiring::better(now, old)" if not context.plain else "semiring::primal(now) == semiring::primal(old)"
            )
            with out.block(f"if (!first && {same})"):
                out.line(f"{name}.pending[cell] = {zero};")
                out.line("return;")
            if reads_update:
                out.line("update = now;")
        elif context.plan.semiring == "user":
            out.line("if (!first && semiring::same(now, old)) return;")
            held = convergence.tolerance(context.plan, stage)
            out.line(f"if (!first && semiring::negligible(update, old, {held})) return;")
        else:
            resting.write_stop(context, table, convergence.tolerance(context.plan, stage))
        prune(context, table)
        out.line(resting.count_pop(context.plan, table))
        convergence.write_popped(context, stage, table)
        if context.plan.adjoint:
            record_pop(context, stage, table)
        out.line(f"{name}.value[cell] = now;")
        resting.write_cleared(context, table, zero)
        out.line(f"if (first) {name}.popped.set(cell);")
    if stage.final:
        context.check(table, "now")
    if context.by_key.get(table.key):
        if context.plan.changes is not None:
            always = "" if stage.final else "if (first) "
            out.line(f"{always}enter_{name}(cell{''.join(f', a{i}' for i in range(table.arity))});")
        elif stage.final:
            context.enter(table)
        else:
            out.open("if (first)")
            context.enter(table)
            out.close()
    arguments = [f"a{i}" for i in range(table.arity)]
    for join, function in zip(alone, called, strict=True):
        within = "if (leads_out) " if stage.unknowns and stage.is_inner(join) else ""
        update = {"update": "now"} if stage.final else {}
        out.line(f"{within}{function.call(arguments, **update)};")
    out.close()
    if row:
        _pop_row(context, stage, table, drives, reads)
    out.line()


def _pop_row(context: ClassContext, stage: Stage, table: TableLayout, drives: Sequence[Join], reads: bool) -> None:
    """`pop_row_...`: pops items that stand side by side; those that are left where the run has to stop wait again.

    `reads` says whether the pop of one of them is given its arguments.
    """
    out, name, last = context.out, context.names.table[table.key], table.order[-1]
    out.open(f"DYNAGRAD_STEP void pop_row_{name}(int64_t cell, uint64_t cells)")
    context.unpack(table)
    together = [join for join in drives if context.in_rows(join)]
    if together:
        out.line("const uint64_t waited = cells;")
    if _pops_at_once(context, stage, table, drives):
        out.open(f"if ((cell & 7) == 0 && all_valid({name}.value.data + cell, cells))")
        out.line("report.pops += __builtin_popcountll(cells);")
        out.line(f"{name}.popped.merge(cell, cells);")
        if context.plan.adjoint:
            out.line(f"if (recording) tape.push_row(handle({table.number}, cell), cells);")
        out.line("cells = 0;")
        out.close()
    out.open("for (; cells && !halt; cells &= cells - 1)")
    out.line("const int32_t i = __builtin_ctzll(cells);")
    arguments = [f"a{i} + i" if i == last else f"a{i}" for i in range(table.arity if reads else 0)]
    out.line(f"pop_{name}({', '.join(['cell + i', *arguments])});")
    out.close()
    if any(map(context.plan.sums_together, drives)):
        out.line("together.end(this);")
    agenda, handle = f"agenda{stage.number}", f"handle({table.number}, cell)"
    level = context.level(stage, table)
    out.line(f"if (__builtin_expect(cells != 0, 0)) {agenda}.push({handle}, cells, {level});")
    if together:
        _join_row(context, table, together)
    out.close()


def _pops_at_once(context: ClassContext, stage: Stage, table: TableLayout, drives: Sequence[Join]) -> bool:
    """Whether there is nothing to do for single items of a row that is popped."""
    if context.by_key.get(table.key) or context.underflows or context.plan.semiring not in ("real", "log"):
        return False
    return not stage.grows and all(map(context.in_rows, drives))


def _join_row(context: ClassContext, table: TableLayout, joins: Sequence[Join]) -> None:
    """In `pop_row_...`: the joins that are driven by all items of a row that were popped."""
    out, last = context.out, table.order[-1]
    out.line("if (waited == cells) return;")
    out.line(f"const int64_t within = {context.within(table)};  // not zero where items are popped one by one")
    out.line(f"const int32_t first = a{last} - (int32_t)within;")
    listed = ["first" if i == last else f"a{i}" for i in range(table.arity)]
    out.line("const uint64_t popped = (waited & ~cells) << within;")
    for join in joins:
        write_row_call(context, join, ItemRow(table, "cell - within", listed, "popped"), end="together.end(this);")
