"""What only the program knows of changes of facts, for `changing/rederive.hpp` and `changing/resolve.hpp`.

Which heads something reaches (`reach`); what an item gets from its rules (`derive`); what a new fact brings (`bring`);
and the tables by their numbers (`on_items`, `on_facts`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ....plan.model import Join, TableLayout
from ..context import ClassContext
from ..nests import arguments_of


def write_members(context: ClassContext) -> None:
    """What the rest of the class refers to."""
    out, plan = context.out, context.plan
    if not plan.resolves:
        out.line("Array<Handle> marks{&account};")
    out.open("template <class T, class... A> void mark(T& table, A... arguments)")
    out.line("const int32_t a[] = {arguments..., 0};")
    out.line(f"mark_{'again' if plan.resolves else 'at'}(*this, table, a);")
    out.close()
    out.line()


def write_changes(context: ClassContext) -> None:
    """The functions of a change, and those that Python calls."""
    plan = context.plan
    changes = plan.changes
    assert changes is not None
    reaching = changes.facts
    if not plan.resolves:
        _bring(context, changes.facts)
        reaching = (*changes.facts, *(join for stage in plan.stages for join in stage.drives))
    _reach(context, reaching)
    for table in context.derived:
        _derive(context, table, [join for join in changes.heads if join.rule.head.key == table.key])
    write_on_items(context)
    _on_facts(context)
    _entries(context)


def _entries(context: ClassContext) -> None:
    out = context.out
    step, words = ("", "") if context.plan.resolves else ("step, ", "words, ")
    given = f"int64_t {step[:-2]}, int64_t table, const int32_t* rows, const uint64_t* {words[:-2]}, int64_t count"
    with out.block(f"void change({given})"):
        out.line(f"change_{'again' if context.plan.resolves else 'step'}(*this, {step}table, rows, {words}count);")
    with out.block("void swap(int64_t table, const FactTable* facts, const void* weights, int64_t settled)"):
        out.line("swap_facts(*this, table, facts, weights, settled);")
    write_restore(context)


def write_restore(context: ClassContext) -> None:
    """`restore`: enters items of another chart as they are; false where there is no room for them."""
    given = "int64_t table, const int32_t* rows, const uint64_t* words, const double* bounds, int64_t count"
    with context.out.block(f"bool restore({given})"):
        context.out.line("return restore_items(*this, table, rows, words, bounds, count);")


def _drives(table: TableLayout, join: Join) -> bool:
    """Whether an item or a fact of a table drives a join."""
    assert join.driver is not None
    return join.rule.antecedents[join.driver].item.key == table.key


def _derive(context: ClassContext, table: TableLayout, heads: Sequence[Join]) -> None:
    """`derive`: sends an item what all instances of its rules have for it."""
    if heads:
        with context.out.block(f"void derive(table_{context.names.table[table.key]}&, const int32_t* a)"):
            for join in heads:
                context.out.line(context.visit(join, context.forward(join), arguments_of(table, "a[{}]")))


def _bring(context: ClassContext, joins: Sequence[Join]) -> None:
    """`bring`: sends the updates of all instances that have a fact among their antecedents."""
    cases = {}
    for table in context.facts:
        row = arguments_of(table, "row[{}]")
        cases[table.number] = [context.visit(j, context.forward(j, "x"), row, "-1") for j in joins if _drives(table, j)]
    with context.out.block("void bring(int64_t table, const int32_t* row, const value_t& x)"):
        context.out.switch("table", cases, known=False)


def _reach(context: ClassContext, joins: Sequence[Join]) -> None:
    """`reach`: marks the heads of all instances that have a fact or an item among their antecedents."""
    tables = list(context.plan.tables.values())
    nests = {(join.rule.number, join.driver): join for join in joins}
    visitor, cases = f"Mark<program, {str(context.plan.resolves).lower()}>(*this)", {}
    for table in tables:
        drives = [join for join in nests.values() if _drives(table, join)]
        cases[table.number] = [context.visit(join, visitor, arguments_of(table, "a[{}]"), "-1") for join in drives]
    with context.out.block("void reach(uint32_t table, const int32_t* a)"):
        context.out.switch("table", cases, known=False)
    context.out.line(f"static constexpr int64_t arity[] = {{{', '.join(str(t.arity) for t in tables)}}};")


def write_on_items(context: ClassContext) -> None:
    """`on_items`: calls a function with a table of items, by its number."""
    out = context.out
    with out.block("template <class F> DYNAGRAD_ALWAYS void on_items(int64_t table, F&& f)"):
        out.switch("table", {t.number: [f"f({context.names.table[t.key]});"] for t in context.derived}, known=False)


def _on_facts(context: ClassContext) -> None:
    """`on_facts`: calls a function with a table of facts, as it is and as it was."""
    names = {t.number: context.names.table[t.key] for t in context.facts}
    with context.out.block("template <class F> DYNAGRAD_ALWAYS void on_facts(int64_t table, F&& f)"):
        context.out.switch("table", {n: [f"f({name}, old_{name});"] for n, name in names.items()}, known=False)
