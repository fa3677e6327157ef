"""Delete and rederive (DRed): a class for incremental updates of a chart whose cycles are not solved.

Gupta, Mumick and Subrahmanian (1993), "Maintaining views incrementally". Every item that the changed facts reach is
marked, with the old facts in place; marked items are deleted, and rederived from the facts that stayed, by joins that
start from the head; the agenda propagates. Then facts are added: every instance with a new fact sends an update, where
facts to the left of it in the rule are new ones and facts to the right old ones, so that an instance with several new
facts counts once (semi-naive evaluation).

Programs whose cycles are solved use `resolving.py`, and the functions in the second half of this file.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....plan.model import Join, TableLayout
from ....plan.traits import bounded, has_axioms, is_external, is_facts
from ..context import ClassContext
from ..rows.driving import write_driven
from ..statements import JoinWriter, arguments_of


def write_marks(context: ClassContext) -> None:
    """`mark_...`, to which the rest of the class refers."""
    out = context.out
    out.line("Array<Handle> marks{&account};")
    for table in context.derived:
        name = context.names.table[table.key]
        out.open(f"void mark({', '.join([f'table_{name}&', *arguments_of(table, 'int32_t a{}')])})")
        out.line(f"const int64_t cell = {name}.find({context.stored(table)});")
        out.line(f"if (cell >= 0 && first_time({name}.marked, cell)) marks.push(handle({table.number}, cell));")
        out.close()
    out.line()


def write_changes(context: ClassContext) -> None:
    """`change`, the steps of an update, and `restore`, which loads a chart that was computed by another class."""
    changes = context.plan.changes
    assert changes is not None
    (stage,) = context.plan.stages
    for join in changes.facts:
        write_driven(context, join)
    for join in changes.heads:
        write_derive(context, join)
    _steps(context, changes.facts, stage.drives, changes.heads)
    write_restore(context)
    write_swap(context)


def write_derive(context: ClassContext, join: Join) -> None:
    """`derive...`: sends the updates of all instances of a rule to one head."""
    context.join_comment(join)
    context.out.line("// starting from the head")
    context.join_function(join, "derive", JoinWriter(context.plan, context.names, join, context.out))


def _drives(table: TableLayout, join: Join) -> bool:
    """Whether an item or a fact of a table drives a join."""
    assert join.driver is not None
    return join.rule.antecedents[join.driver].item.key == table.key


def write_mark_row(context: ClassContext) -> None:
    """In `change`: marks the heads that row `n` of a table reaches, and its item."""
    out = context.out
    out.line("const int32_t* const row = rows + n * arity_of(table);")
    out.line("reach((uint32_t)table, row);")
    cases = {}
    for table in context.derived:
        row = arguments_of(table, "row[{}]")
        cases[table.number] = [f"mark({', '.join([context.names.table[table.key], *row])});"]
    out.switch("table", cases, known=False)


def write_rederive(context: ClassContext, table: TableLayout, heads: Sequence[Join]) -> None:
    """Adds what the item with arguments `a` gets from its axiom, and from all instances of rules for it."""
    out, name = context.out, context.names.table[table.key]
    if has_axioms(context.plan, table):
        out.line(f"const int64_t at = {name}.axioms.find({', '.join(arguments_of(table, 'a[{}]'))});")
        out.line(f"if (at >= 0) add_fact(*this, {name}, {name}.axioms.value[at], a);")
    for join in heads:
        if join.rule.head.key == table.key:
            out.line(f"{context.function_of(join, 'derive').call(arguments_of(table, 'a[{}]'))};")


def _steps(context: ClassContext, facts: tuple[Join, ...], drives: tuple[Join, ...], heads: tuple[Join, ...]) -> None:
    """`change(step, ...)`, for the steps of `Change` in shared.h."""
    out = context.out
    tables = list(context.plan.tables.values())
    write_reach(context, (*facts, *drives))
    out.open("void change(int64_t step, int64_t table, const int32_t* rows, const uint64_t* words, int64_t count)")
    out.line("halt = 0, budget = 0;")
    out.line(f"int32_t a[{max(1, *(t.arity for t in tables))}];")
    out.open("if (step == kBegin)")
    out.line("marks.clear();")
    for table in context.derived:
        out.line(f"{context.names.table[table.key]}.marked.clear();")
    out.close("} else if (step == kMark) {")
    out.depth += 1
    out.open("for (int64_t n = 0; n < count; n++)")
    write_mark_row(context)
    out.close()
    out.open("for (int64_t m = 0; m < marks.size && !halt; m++)")
    out.line("const Handle h = marks[m];")
    out.line("arguments(table_of(h), cell_of(h), a);")
    out.line("reach(table_of(h), a);")
    out.close()
    out.close("} else if (step == kDelete) {")
    out.depth += 1
    out.open("for (int64_t m = 0; m < marks.size; m++)")
    out.line("const int64_t cell = cell_of(marks[m]);")
    deleted = {}
    for table in context.derived:
        name = context.names.table[table.key]
        deleted[table.number] = [
            f"{name}.popped.clear(cell), {name}.seen.clear(cell);",
            f"{name}.value[cell] = {name}.pending[cell] = {context.zero(table)};",
            f"{name}.items--, report.items--;",
        ]
    out.switch("table_of(marks[m])", deleted, known=False)
    out.close()
    out.close("} else if (step == kDerive) {")
    out.depth += 1
    out.open("for (int64_t m = 0; m < marks.size && !halt; m++)")
    out.line("const Handle h = marks[m];")
    out.line("arguments(table_of(h), cell_of(h), a);")
    out.open("switch (table_of(h))")
    for table in context.derived:
        name = context.names.table[table.key]
        out.open(f"case {table.number}:")
        write_rederive(context, table, heads)
        out.line("break;")
        out.close()
    out.close()
    out.close()
    out.close("} else if (step == kAdd) {")
    out.depth += 1
    out.open("for (int64_t n = 0; n < count && !halt; n++)")
    out.line("const value_t x = semiring::read(words + n * semiring::words);")
    out.line("const int32_t* const row = rows + n * arity_of(table);")
    added: dict[int, list[str]] = {}
    for table in tables:
        row = arguments_of(table, "row[{}]")
        if is_facts(table):
            calls = [context.function_of(join).call(row, update="x") for join in facts if _drives(table, join)]
            added[table.number] = [f"{call};" for call in calls]
        elif not is_external(table):
            added[table.number] = [f"add_fact(*this, {context.names.table[table.key]}, x, row);"]
    out.switch("table", added, known=False)
    out.close()
    out.close()
    out.line("if (halt) report.partial = 1;")
    out.line("stage = 0, begun = true;")
    out.close()
    out.line()


def write_reach(context: ClassContext, joins: Sequence[Join]) -> None:
    """`reach`: marks the heads of all instances that have a fact or an item among their antecedents."""
    out = context.out
    tables = list(context.plan.tables.values())
    nests = {context.nest(join): join for join in joins}
    visitor = f"Mark<program, {str(context.plan.resolves).lower()}>(*this)"
    out.open("void reach(uint32_t table, const int32_t* a)")
    cases = {}
    for table in tables:
        given = ", ".join([visitor, "-1", *arguments_of(table, "a[{}]")])
        cases[table.number] = [f"{nest}({given});" for nest, join in nests.items() if _drives(table, join)]
    out.switch("table", cases, known=False)
    out.close()
    out.open("static int64_t arity_of(int64_t table)")
    out.line(f"static const int64_t arity[] = {{{', '.join(str(t.arity) for t in tables)}}};")
    out.line("return arity[table];")
    out.close()
    out.line()


def write_restore(context: ClassContext) -> None:
    """`restore`: enters items of another chart as they are; false where there is no room for them."""
    out = context.out
    bounds = " bounds" if any(bounded(context.plan, t) for t in context.derived) else ""
    out.open(
        f"bool restore(int64_t table, const int32_t* rows, const uint64_t* words, const double*{bounds}, int64_t count)"
    )
    out.line("stage = 0, begun = true;")
    out.open("for (int64_t n = 0; n < count; n++)")
    out.line("const value_t x = semiring::read(words + n * semiring::words);")
    bound = "bounds ? bounds[n] : 0" if bounds else "0"
    cases = {}
    for table in context.derived:
        item = f"{context.names.table[table.key]}, rows + n * {table.arity}, x, {bound}"
        cases[table.number] = [f"if (!restore_item(*this, {item})) return false;"]
    out.switch("table", cases, known=False)
    out.close()
    out.line("return true;")
    out.close()
    out.line()


def write_swap(context: ClassContext) -> None:
    """`swap`: replaces the rows of a fact table; until `settled`, the previous rows are its old ones."""
    out = context.out
    out.open("void swap(int64_t table, const FactTable* facts, const void* weights, int64_t settled)")
    out.line("const auto* w = (const Weights<semiring>*)weights;")
    cases = {}
    for table in context.plan.tables.values():
        name = context.names.table[table.key]
        if is_facts(table):
            cases[table.number] = [
                f"old_{name} = {name};",
                f"{name}.open(facts, w);",
                "has_zero = has_zero || w->has_zero;",
                f"if (settled) old_{name} = {name};",
            ]
        elif not is_external(table) and has_axioms(context.plan, table):
            cases[table.number] = [f"{name}.axioms.open(facts, w);"]
    out.switch("table", cases, known=False)
    out.close()
    out.line()
