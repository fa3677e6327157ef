"""The arrays of adjoints in a generated class: which there are, and how they are cleared, seeded and read.

A class with a backward pass has an array of adjoints for each table. Here are the functions that are called before the
pass and after it; the pass itself, which fills the arrays, is in `sweep.py`.
"""

from __future__ import annotations

from ....plan.model import Plan, TableLayout
from ....plan.traits import copy_kind, has_axioms, is_facts, keeps_total, keeps_updates, posteriors, selects, sums_up
from ....rules.aggregators import HeadKind
from ..context import ClassContext
from ..scope import Names


def update_adjoint(plan: Plan, names: Names, table: TableLayout) -> str:
    """The array of the adjoints of updates to a table's items."""
    return f"{names.table[table.key]}.{'ga' if keeps_updates(plan, table) else 'g'}"


def cells(context: ClassContext, table: TableLayout) -> str:
    """The number of cells in the arrays of a table."""
    name = context.names.table[table.key]
    return f"{name}.bound()" if not is_facts(table) else f"{name}.rows()"


def write_tape(context: ClassContext) -> None:
    """The members that hold the tape, and where the pass has come to."""
    out = context.out
    out.line("Tape<semiring> tape{&account};")
    out.line("uint32_t position = 0;  // the current pop of the stage, from 1; 0 before the first")
    out.line("int64_t saved_at = 0, from_at = 0, rounds_at = 0;  // backward: how much of the tape is left")
    out.line("Bits wanted{&account};  // per pop: whether an item waits for an update that it made")


# -- before the pass and after it --------------------------------------------------------------------------------------


def write_clear(context: ClassContext) -> None:
    """`adjoints(room)`: sets all adjoints to zero, or frees them, and says where they are."""
    plan, out = context.plan, context.out
    out.open("void adjoints(bool room)")
    for table in [*context.facts, *context.derived]:
        name = context.names.table[table.key]
        size = f"room ? {cells(context, table)} + 8 : 0"
        total, axioms = f"{name}.g", f"&{name}.g"
        if not is_facts(table):
            total = f"{name}.gt" if sums_up(plan, table) else update_adjoint(plan, context.names, table)
            axioms = f"&{name}.g_axioms" if has_axioms(context.plan, table) else "nullptr"
        out.line(f"cotangents::open(tables[{table.number}], {name}.g, {total}, {axioms}, {size});")
        if not is_facts(table):
            if keeps_updates(plan, table):
                out.line(f"{name}.ga.zeros({size});")
            if sums_up(plan, table):
                out.line(f"{name}.gt.zeros({size});")
            if keeps_total(plan, table):
                out.line(f"{name}.total.zeros({size});")
            if selects(plan, table):
                out.line(f"{name}.wait.filled({size}, nowhere);")
                out.line(f"{name}.aim.zeros({size});")
            if posteriors(plan):
                out.line(f"{name}.h.zeros({size});")
            if has_axioms(context.plan, table):
                out.line(f"{name}.g_axioms.zeros(room ? {name}.axioms.rows() : 0);")
    out.close()
    out.line()


def write_readers(context: ClassContext) -> None:
    """`seed`, which sets the cotangent of an item, and readers of adjoints: of an item, of all items, of fact rows."""
    plan, out = context.plan, context.out
    # for an outside value the root's adjoint is one, whatever the root's scale
    whole = "false" if plan.selective or plan.semiring == "plain" or posteriors(plan) else "whole"
    out.line("using cotangents = Cotangents<semiring, back>;")
    parameter = "" if whole == "false" else " whole"
    out.open(f"int64_t seed(int64_t table, const int32_t* a, const uint64_t* cotangent, int64_t{parameter})")
    out.line(f"return cotangents::seed(*this, table, a, cotangent, {whole});")
    out.close()
    out.open(f"int64_t adjoint(int64_t table, const int32_t* a, uint64_t* words, int64_t{parameter}) const")
    out.line(f"return cotangents::read(*this, table, a, words, {whole});")
    out.close()
    out.open("int64_t adjoints_of_items(int64_t table, uint64_t* words, int64_t room) const")
    out.line("return cotangents::read_items(*this, table, words, room);")
    out.close()
    rows = [t for t in [*context.facts, *context.derived] if is_facts(t) or has_axioms(context.plan, t)]
    kinds = {t.number: copy_kind(plan, t) for t in rows}
    listed = ", ".join(
        f"CopyKind::{kinds.get(number, HeadKind.SUM).value}" for number in range(max(kinds, default=0) + 1)
    )
    out.open("void adjoints_of_rows(int64_t table, const uint64_t* given, uint64_t* words) const")
    out.line(f"static constexpr CopyKind kinds[] = {{{listed}}};")
    out.line("cotangents::read_rows(*this, table, kinds[table], given, words);")
    out.close()
