"""The arrays of adjoints in a generated class: which there are, and how they are cleared, seeded and read.

A class with a backward pass has an array of adjoints for each table. Here are the functions that are called before the
pass and after it; the pass itself, which fills the arrays, is in `sweep.py`.
"""

from __future__ import annotations

from ....plan.aggregators import copy_kind, head_kind, stage_of
from ....plan.model import Plan, TableLayout
from ....rules.semirings import SEMIRINGS
from ..context import ClassContext
from ..scope import Names


def two_adjoints(plan: Plan, table: TableLayout) -> bool:
    """Whether pending updates have adjoints of their own."""
    return table.updates or stage_of(plan, table).strategy == "sweep"


def keeps_total(plan: Plan, table: TableLayout) -> bool:
    """Whether the total of which contributions have a share is kept in an array: each round of a sweep has another."""
    return head_kind(plan, table) == "softmax" and stage_of(plan, table).strategy == "sweep"


def sums_up(plan: Plan, table: TableLayout) -> bool:
    """Whether the derivative by an item is the sum of the adjoints of all values that it had, one after another.

    In a sweep each round has another. Where plus selects, a value is used until a better one takes its place; else a
    value is a part of the next one, and so is its adjoint.
    """
    stage = stage_of(plan, table)
    if stage.strategy == "sweep":
        return True
    return head_kind(plan, table) == "select" and table.updates and not table.sink and not stage.final


def update_adjoint(plan: Plan, names: Names, table: TableLayout) -> str:
    """The array of the adjoints of updates to a table's items."""
    return f"{'ga' if two_adjoints(plan, table) else 'g'}_{names.table[table.key]}"


def posteriors(plan: Plan) -> bool:
    """Whether adjoints are with respect to log weights (posteriors): in `log`, where every item is popped once."""
    derivatives = plan.derivatives
    if not SEMIRINGS[plan.semiring].adds_logs or derivatives is None or derivatives.order or derivatives.outside:
        return False
    return all(stage.final for stage in plan.stages)


def cells(context: ClassContext, table: TableLayout) -> str:
    """The number of cells in the arrays of a table."""
    name = context.names.table[table.key]
    return f"{name}.bound()" if table.kind != "facts" else f"{name}.rows()"


# -- before the pass and after it --------------------------------------------------------------------------------------


def write_clear(context: ClassContext) -> None:
    """`adjoints(room)`: sets all adjoints to zero, or frees them."""
    plan, out = context.plan, context.out
    out.open("void adjoints(bool room)")
    for table in [*context.facts, *context.derived]:
        name = context.names.table[table.key]
        size = f"room ? {cells(context, table)} + 8 : 0"
        arrays = [f"g_{name}"]
        if table.kind != "facts":
            if two_adjoints(plan, table):
                arrays.append(f"ga_{name}")
            if sums_up(plan, table):
                arrays.append(f"gt_{name}")
            if keeps_total(plan, table):
                out.line(f"total_{name}.zeros({size});")
            if head_kind(plan, table) == "select":
                out.line(f"wait_{name}.filled({size}, nowhere);")
                out.line(f"aim_{name}.zeros({size});")
            if posteriors(plan):
                out.line(f"h_{name}.zeros({size});")
            if context.has_axioms(table):
                out.line(f"g_axioms_{name}.zeros(room ? axioms_{name}.rows() : 0);")
        for array in arrays:
            out.line(f"{array}.zeros({size});")
    out.close()
    out.line()


def write_view(context: ClassContext, table: TableLayout) -> None:
    """In the constructor: the arrays of a table's adjoints, for access by its number."""
    plan, out, name, to = context.plan, context.out, context.names.table[table.key], f"tables[{table.number}]"
    total, axioms = f"g_{name}", f"g_{name}"
    if table.kind != "facts":
        axioms = f"g_axioms_{name}"
        total = f"gt_{name}" if sums_up(plan, table) else update_adjoint(plan, context.names, table)
    out.line(f"{to}.adjoints = &g_{name}, {to}.totals = &{total};")
    if table.kind == "facts" or context.has_axioms(table):
        out.line(f"{to}.axioms = &{axioms};")


def write_readers(context: ClassContext) -> None:
    """`seed`, which sets the cotangent of an item, and readers of adjoints: of an item, of all items, of fact rows."""
    plan, out = context.plan, context.out
    narrow = plan.selective or plan.semiring == "plain" or posteriors(plan)
    whole = "back::start(cotangent, x)" if narrow else "whole ? semiring::one() : back::start(cotangent, x)"
    out.open("int64_t seed(int64_t table, const int32_t* a, const uint64_t* cotangent, int64_t whole)")
    out.line("const int64_t at = place(table, a);")
    out.line("if (at < 0) return 0;")
    out.line("const value_t x = ReaderOf<semiring>::value(tables[table], at);")
    out.line("adjoint_t& g = (*(Array<adjoint_t>*)tables[table].adjoints)[at];")
    # for an outside value the root's adjoint is one, whatever the root's scale
    out.line(f"g = back::gather(g, {whole});")
    out.line("return 1;")
    out.close()
    out.open("int64_t adjoint(int64_t table, const int32_t* a, uint64_t* words, int64_t whole) const")
    out.line("const int64_t at = place(table, a);")
    out.line("if (at < 0) return 0;")
    out.line("const adjoint_t g = (*(Array<adjoint_t>*)tables[table].totals)[at];")
    out.line("const value_t x = ReaderOf<semiring>::value(tables[table], at);")
    outer = "" if narrow else "if (whole) semiring::write(g, words);\n    else "
    out.line(f"{outer}back::finish(g, x, words);")
    out.line("return 1;")
    out.close()
    out.open("int64_t adjoints_of_items(int64_t table, uint64_t* words, int64_t room) const")
    out.line("const TableView& t = tables[table];")
    out.line("if (!t.items) return 0;")
    out.line("int64_t count = 0;")
    out.line("const int64_t bound = bound_of(*t.items);")
    out.open(
        "for (int64_t c = t.items->popped.next(0, bound); c >= 0; c = t.items->popped.next(c + 1, bound), count++)"
    )
    out.line("if (count >= room) continue;")
    out.line("const adjoint_t g = (*(Array<adjoint_t>*)t.totals)[c];")
    out.line("back::finish(g, ReaderOf<semiring>::at(t.values, c), words + count * semiring::adjoint_words);")
    out.close()
    out.line("return count;")
    out.close()
    # for each row as it was given: copies that were merged into one row share its adjoint
    out.open("void adjoints_of_rows(int64_t table, const uint64_t* given, uint64_t* words) const")
    out.line("enum Kind : uint8_t { sum, select, product, shift, softmax, step };")
    rows = [t for t in [*context.facts, *context.derived] if t.kind == "facts" or context.has_axioms(t)]
    kinds = {t.number: copy_kind(plan, t) for t in rows}
    listed = ", ".join(kinds.get(number, "sum") for number in range(max(kinds, default=0) + 1))
    out.line(f"static constexpr Kind kinds[] = {{{listed}}};")
    out.line("const Kind kind = kinds[table];")
    out.line("const FactTable* const facts = tables[table].facts->table;")
    out.line("const auto& value = *(const Weights<semiring>::View*)tables[table].view;")
    out.line("const adjoint_t* const g = ((Array<adjoint_t>*)tables[table].axioms)->data;")
    out.line("const int64_t copies = facts->given - facts->rows;")
    step = "memset((void*)words, 0, facts->given * semiring::adjoint_words * 8)"
    out.open("if (kind == step)")
    out.line(f"{step};")
    out.line("return;")
    out.close()
    if posteriors(plan):
        out.open("if (facts->in_order)")
        out.line("memcpy((void*)words, g, facts->rows * sizeof(double));")
        out.line("return;")
        out.close()
    out.line("Array<uint8_t> taken;")
    out.line("if (kind == select) taken.zeros(facts->rows);")
    if context.plain:
        out.line("Factors<semiring> factors{nullptr};")
        out.open("for (int64_t n = 0; n < facts->given && kind == product && copies; n++)")
        out.line(
            "factors.add(facts->row_of[n], given ? semiring::read(given + n * semiring::words) : semiring::one());"
        )
        out.close()
    out.open("for (int64_t n = 0; n < facts->given; n++)")
    out.line("const int64_t row = facts->row_of[n];")
    out.line("const value_t x = given ? semiring::read(given + n * semiring::words) : semiring::one();")
    out.line("adjoint_t own = g[row];")
    out.open("if (kind == select)")  # of equal copies the first was selected
    out.line("if (taken[row] || semiring::primal(x) != semiring::primal(value[row])) own = {};")
    out.line("else taken[row] = 1;")
    out.close()
    if posteriors(plan):  # a copy has its share of the merged weight
        out.line("if (copies && kind != shift) own = Posterior::of(Posterior::share(own, value[row]), x);")
    if context.plain:
        out.line("if (kind == product && copies) own = back::scale(own, factors.others(row, x));")
        out.line("if (kind == softmax && copies) own = semiring::share(own, x, value[row]);")
    # where copies are added as logs, the derivative by each is that by the sum
    out.line("back::finish(own, kind == shift ? value[row] : x, words + n * semiring::adjoint_words);")
    out.close()
    out.close()
