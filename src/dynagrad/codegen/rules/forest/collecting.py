"""A class that runs nothing: it takes the items of a finished chart, and collects the derivations of one of them.

Items are opened one after the other, from the one that is asked for. All instances of the rules for an item are found
by nests that start from their head, as when a chart changes, and each instance is entered into
`collected` (`runtime/include/dynagrad/visiting/collect.hpp`), and its antecedents are opened later. So only what the
item reaches is looked at, in whatever order the chart was made. What weighs nothing by itself (conditions, negated
items) is not entered: who reads the instance can work it out from the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....plan.model import Join, TableKind, TableLayout
from ....plan.traits import closed, has_axioms, merges_copies
from ...cxx import Writer
from ..access import write_access, write_external
from ..context import ClassContext
from ..incremental.changing import write_on_items, write_restore
from ..nests import arguments_of
from ..running.items import write_each_index
from ..tables import open_class, write_constructor, write_facts_plans, write_table


def _stop(out: Writer, test: str) -> None:
    """Ends the collection at its limit on instances."""
    with out.block(f"if ({test})"):
        out.line("stop(at_items);")
        out.line("return;")


def write_program(context: ClassContext) -> None:
    """Writes the class; its members are nobody else's business."""
    plan, out = context.plan, context.out
    assert plan.collects is not None
    externals = [replace(t, kind=TableKind.HASHED, updates=False) for t in context.externals]
    open_class(context)
    out.line("static constexpr bool collects = true;")
    for table in externals:
        write_table(context, table, "&account")
    out.line("Collected collected{&account};")
    out.line("Arithmetic arithmetic;")
    out.line("Array<value_t> weight{&account};")
    if plan.keeps_logs:
        out.line("Array<double> weight_log{&account};")
    if externals:
        out.line(f"int32_t (*functions_of_host[{len(plan.tables)}])(const int32_t*, uint64_t*) = {{}};")
    out.line(f"TableView tables[{max(1, len(plan.tables))}] = {{}};")
    out.line()
    if externals:
        write_external(context)
        for table in externals:
            _write_outside(context, table)
    for table in context.derived:
        write_each_index(context, table)
    if any(context.by_key.get(table.key) for table in context.derived):  # else items are their values alone
        write_on_items(context)
        write_restore(context)
    for join in plan.collects:
        _write_rule(context, join)
        context.nest(join)
    _write_opening(context, plan.collects, externals)
    write_facts_plans(context)
    write_access(context)
    write_constructor(context, lambda: _open_externals(context, externals))
    out.close("};")


def _write_outside(context: ClassContext, table: TableLayout) -> None:
    """The cell of an external item, asked for once; -1 where it has no value."""
    out, name = context.out, context.names.table[table.key]
    out.open(f"int64_t outside({', '.join([f'table_{name}&', *arguments_of(table, 'int32_t a{}')])})")
    arguments = ", ".join(arguments_of(table))
    out.line(f"const int64_t cell = {name}.locate({arguments});")
    out.open(f"if ({name}.seen.set(cell))")
    out.line(f"const int32_t given[] = {{{', '.join([*arguments_of(table), '0'])}}};")
    out.line("value_t value = semiring::zero();")
    out.open(f"if (external({table.number}, given, value))")
    out.line(f"{name}.value[cell] = value;")
    out.line(f"{name}.popped.set(cell);")
    out.close()
    out.line(f"{name}.nodes.resize({name}.cells, 0);")
    out.close()
    out.line(f"return {name}.popped.test(cell) ? cell : -1;")
    out.close()
    out.line()


def _write_rule(context: ClassContext, join: Join) -> None:
    """What the visitor has to know of a rule."""
    out, rule = context.out, join.rule
    ends = [str(closed(context.plan, rule, i)).lower() for i in range(len(rule.antecedents))]
    out.open(f"struct rule{rule.number}")
    out.line(f"static constexpr int number = {rule.number}, antecedents = {len(ends)};")
    out.line(f"static constexpr bool closed[] = {{{', '.join([*ends, 'true'])}}};", "that only have to be derived")
    out.close("};")


def _write_opening(context: ClassContext, joins: Sequence[Join], externals: Sequence[TableLayout]) -> None:
    """`collect`: everything that an item reaches."""
    out, plan = context.out, context.plan
    out.open("void collect(int64_t table, const int32_t* of, int64_t most, int64_t how)")
    out.line("collected.start(most, how);")
    for table in context.facts:
        name = context.names.table[table.key]
        out.line(f"{name}.nodes.zeros({name}.rows() + 8);")
    for table in [*context.derived, *externals]:
        name = context.names.table[table.key]
        out.line(f"{name}.nodes.zeros({name}.bound() + 8);")
    out.line("const int64_t root = place(table, of);")
    out.line("if (root < 0) return;")
    out.open("switch (table)")
    for table in [*context.facts, *context.derived]:
        name = context.names.table[table.key]
        out.line(f"case {table.number}: collected.open(collected.node({name}.nodes, {table.number}, root)); break;")
    out.close()
    arity = max([1, *(t.arity for t in context.plan.tables.values())])
    out.line(f"int32_t a[{arity}];")
    out.open("for (int64_t next = 0; next < collected.queue.size && !halt; next++)")
    out.line("if (spend(1)) return;")
    out.line("const uint32_t node = collected.queue[next];")
    out.line("const Handle h = collected.item[node];")
    out.line("const int64_t cell = cell_of(h);")
    out.line("const int64_t before = collected.counting ? 0 : collected.rule.size;")
    out.open("switch (table_of(h))")
    for table in context.facts:
        name = context.names.table[table.key]
        once = merges_copies(plan, table)
        of = "given_row((uint32_t)cell)" if once else f"fact(*{name}.table, {name}.given_rows, cell)"
        out.line(f"case {table.number}: collected.{of}; break;")
    for table in externals:
        out.line(f"case {table.number}: collected.given_row((uint32_t)cell); break;")
    for table in context.derived:
        name = context.names.table[table.key]
        out.open(f"case {table.number}:")
        out.line(f"arguments({table.number}, cell, a);")
        if has_axioms(context.plan, table):
            listed = ", ".join(arguments_of(table, "a[{}]"))
            out.line(f"const int64_t row = {name}.axioms.find({listed});")
            of = (
                "given_row((uint32_t)row)"
                if merges_copies(plan, table)
                else f"fact(*{name}.axioms.table, {name}.given_rows, row)"
            )
            out.line(f"if (row >= 0) collected.{of};")
        for join in joins:
            if join.rule.head.key == table.key:
                visitor = f"Collect<program, rule{join.rule.number}>(*this)"
                out.line(context.visit(join, visitor, arguments_of(table, "a[{}]")))
        out.line("break;")
        out.close()
    out.close()
    _stop(out, "collected.over()")
    out.open("if (!collected.counting)")
    out.line("collected.begin[node] = (uint32_t)before, collected.end[node] = (uint32_t)collected.rule.size;")
    out.close()
    out.close()
    out.line("collected.first.push((uint32_t)collected.antecedent.size);")
    out.close()
    out.line()


def _open_externals(context: ClassContext, externals: Sequence[TableLayout]) -> None:
    for table in externals:
        context.out.line(f"{context.names.table[table.key]}.begin(tables[{table.number}], false, false);")
