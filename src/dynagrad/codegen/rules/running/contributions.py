"""Contributions to items: added to what an item has so far, and the item is pushed on the agenda of its stage.

How an item is reached, waits and is popped (`pops.py`) has to agree for each strategy.
"""

from __future__ import annotations

from ....plan.model import Strategy, TableLayout
from ....plan.traits import (
    by_level,
    clause_defined,
    has_agenda,
    head_kind,
    keeps_rest,
    keeps_updates,
    selects,
    solves,
    sweeps,
)
from ....rules.aggregators import AGGREGATORS, HeadKind
from ....rules.semirings import SEMIRINGS
from ..backward import resting
from ..backward.tape import either, improves, record_contribution
from ..combine import compared_with_zero
from ..context import ClassContext
from ..solving import convergence, exploring
from .policies import priority


def write_add(context: ClassContext, table: TableLayout) -> None:
    """`add_...` and `push_...`: add a contribution to an item, and push the item on the agenda."""
    out, stage = context.out, context.plan.stage_of[table.key]
    name = context.names.table[table.key]
    agenda = has_agenda(stage) and not table.sink
    if agenda:
        often = "DYNAGRAD_RULE" if not by_level(stage) else "DYNAGRAD_FIRED"
        parameters = "".join(f", int32_t a{i}" for i in context.waits_by(table))
        out.open(f"{often} void push_{name}(int64_t cell{parameters})")
        handle = f"handle({table.number}, cell)"
        if solves(stage):
            at = exploring.line_of(context, stage, table)
            out.line(f"if (block{stage.number}.has(grown({name}.node, {at}, 0u))) return;  // it has its turn")
        if context.plan.pops_rows(table.key):
            out.line(f"const int64_t within = {context.within(table)};")
            first = f"handle({table.number}, cell - within)"
            out.line(f"agenda{stage.number}.push({first}, 1ull << within, {context.level(stage, table)});")
        elif by_level(stage):
            one = "1, " if context.plan.waits_in_rows(stage) else ""
            out.line(f"agenda{stage.number}.push({handle}, {one}{context.level(stage, table)});")
        elif stage.strategy is Strategy.HEAP:
            priority(context, stage, table)
            first = resting.first(context.plan, table, name)
            out.line(f"agenda{stage.number}.push({handle}, {context.level(stage, table)}, {first});")
        else:
            out.line(f"if ({name}.place[cell]) return;")
            out.line(f"{name}.place[cell] = 1;")
            out.line(f"agenda{stage.number}.push({handle});")
        out.close()
    if table.key in context.row_heads:
        out.open(f"DYNAGRAD_STEP void arrive_{name}(int64_t cell, uint64_t cells)")
        out.line("const int64_t fresh = __builtin_popcountll(cells);")
        out.line(f"{name}.items += fresh, report.items += fresh;")
        if context.plan.pops_rows(table.key):
            context.unpack(table)
            out.line(f"const int64_t within = {context.within(table)};")
            level, first = context.level(stage, table), f"handle({table.number}, cell - within)"
            out.line(f"agenda{stage.number}.push_from({first}, within, cells, {level});")
        else:
            _each(context, "cell", "cells")
            if context.waits_by(table):
                context.unpack(table)
            out.line(context.push(table))
            out.close()
        out.close()
    leading = ", ".join([*(f"int32_t a{i}" for i in range(table.arity)), "value_t x"])
    out.open(f"DYNAGRAD_RULE void add_{name}({leading})")
    if context.plain and AGGREGATORS[table.aggregator].truth:
        out.line("x = semiring::constant(semiring::primal(x) != 0);")
    if context.plain and context.plan.order and (nothing := compared_with_zero(table, "x", "==")):
        out.line(f"if ({nothing}) x = semiring::constant(semiring::primal(x));", "nothing stays nothing")
    if context.plan.resolves:
        out.line(f"if (!{name}.inside({context.stored(table)})) return;")
    out.line(f"const int64_t cell = {name}.locate({context.stored(table)});")
    if context.plan.resolves:
        out.line(f"if (!block{stage.number}.has(grown({name}.node, cell, 0u))) return;  // it stays as it is")
    if clause_defined(context.plan, table):
        out.line(f"if ({name}.seen.test(cell)) return;  // it is worth one, however often it is derived")
        out.line("x = semiring::one();")
    if stage.unknowns and not table.sink:
        at = exploring.line_of(context, stage, table)
        out.line(f"if (grown({name}.solved, {at}, 0u)) return;  // it is solved, and this is part of the solution")
    improving = context.plan.selective and agenda and table.updates

    def agree(here: str, when: str) -> None:
        """A check that a user's plus and less agree, since the run uses both."""
        if context.ordered:
            out.line(
                f"if ({when}__builtin_expect(!semiring::agree({here}, x), 0)) "
                f"return no_order_at({table.number}, cell, {here}, x);"
            )

    if improving:  # most updates of a best-first search are no improvement
        agree(f"{name}.value[cell]", f"{name}.popped.test(cell) && ")
        out.line(f"if ({name}.popped.test(cell) && !semiring::better(x, {name}.value[cell])) return;")
    where = f"{name}.pending[cell]" if keeps_updates(context.plan, table) else f"{name}.value[cell]"
    if sweeps(stage):
        out.line(f"if (!{name}.seen.test(cell) && full()) return;")
        out.line(f"const bool fresh = !{name}.place[cell];")
        out.line(f"{name}.place[cell] = 1;")
        out.line(f"if ({name}.seen.set(cell)) {name}.items++, report.items++;")
    elif not table.updates and not (context.plain and table.aggregator == "="):
        # the usual case first: one more contribution to an existing item
        out.open(f"if (__builtin_expect({name}.seen.test(cell), 1))")
        if SEMIRINGS[context.plan.semiring].order == "value":  # few contributions are better: what follows is for them
            out.line(f"if (!semiring::better(x, {where})) return;")
        if context.plan.adjoint:
            record_contribution(context, table, improves(context, table, where))
        agree(where, "")
        convergence.write_changed(context, table, where)
        out.line(f"{where} = {_sum(context, table, where)};")
        out.line("return;")
        out.close()
        if context.plan.adjoint and head_kind(context.plan, table) in (HeadKind.SELECT, HeadKind.PRODUCT):
            out.line("if (full()) return;")  # what takes memory comes before the item is there
            record_contribution(context, table, None)
        out.line(f"if (!enter({name}, cell)) return;")
        if keeps_rest(context.plan, table):
            out.line(f"if (cell < {name}.rest.size) {name}.rest[cell] = 0;")
        out.line(f"{where} = x;")
        if agenda:
            out.line(context.push(table))
        out.close()
        out.line()
        return
    else:
        out.line(f"if (!{name}.seen.test(cell) && full()) return;")
        out.line(f"const bool fresh = {name}.seen.set(cell);")
        out.line(f"if (fresh) {name}.items++, report.items++;")
        agree(where, "!fresh && ")
    if improving:
        out.line(f"if (!fresh && !semiring::better(x, {where})) return;")
    if context.plain and table.aggregator == "=":
        out.line(f"const double here = semiring::primal({where}), given = semiring::primal(x);")
        out.line(
            f"if (!fresh && here != given && !(isnan(here) && isnan(given))) "
            f"return fail(two_values, {table.number}, cell);"
        )
    if context.plan.adjoint and not sweeps(stage):
        record_contribution(context, table, either("fresh", improves(context, table, where)))
    resting.write_rest(context, table)
    convergence.write_sent(context, table)
    if selects(context.plan, table):
        better = improves(context, table, where)
        convergence.write_improved(context, table, "" if improving else either("fresh", better))
    out.line(f"{where} = fresh ? x : {_sum(context, table, where)};")
    if agenda:
        if by_level(stage):
            out.line(f"if (fresh) {context.push(table)}")
        else:
            out.line(context.push(table))
    out.close()
    out.line()


def _sum(context: ClassContext, table: TableLayout, where: str) -> str:
    """What an item has, plus a contribution `x`."""
    if not keeps_rest(context.plan, table):
        return context.plus(table, where, "x")
    return f"semiring::log_plus({where}, x, grown({context.names.table[table.key]}.rest, cell, 0.0))"


def _each(context: ClassContext, first: str, cells: str) -> None:
    """Opens a loop over the cells whose bits are set, as `cell`."""
    context.out.open(f"for (uint64_t left = {cells}, first = {first}; left; left &= left - 1)")
    context.out.line("const int64_t cell = (int64_t)first + __builtin_ctzll(left);")


def write_order(context: ClassContext) -> None:
    """`no_order_at`: fails where a user's plus and less disagree about two values, which are kept for the message."""
    out = context.out
    out.open("void no_order_at(int64_t table, int64_t cell, const value_t& a, const value_t& b)")
    out.line("disagree.clear();")
    for name in "ab":
        out.line(f"for (double x : {name}.v) disagree.push(x);")
    out.line("fail(no_order, table, cell);")
    out.close()
    out.line()
