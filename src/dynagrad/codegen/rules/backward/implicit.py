"""The backward pass over solved components, by implicit differentiation (Christianson 1994).

It differs from that of other stages with final items inside a component: adjoints from heads outside it are gathered
first, the transposed system is solved for the adjoints of its items (`solve_adjoints` in
`runtime/include/dynagrad/solving/adjoints.hpp`), and these are propagated to the antecedents in the system's weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....plan.model import Stage, TableLayout
from ....plan.traits import head_clause_defined, posteriors
from ..context import ClassContext
from ..solving.grounding import driver_of
from ..statements import arguments_of, takes, takes_arguments

Lines = Callable[[TableLayout, str], Sequence[str]]
"""The statements for an item of a table with a name."""


def by_table(context: ClassContext, stage: Stage, handle: str, lines: Lines) -> None:
    """The statements for an item of a stage."""
    tables = (context.plan.tables[key] for key in stage.keys)
    cases = {table.number: lines(table, context.names.table[table.key]) for table in tables}
    context.out.switch(f"table_of({handle})", cases)


def write_undo_component(context: ClassContext, stage: Stage, rolls: bool) -> None:
    """`undo_component<n>`: undoes the pops of a solved component, and solves for the adjoints of its items."""
    if not stage.unknowns:
        return
    plan, out, n = context.plan, context.out, stage.number
    exposes = rolls and stage.joins_itself  # else such a join finds items of earlier levels, or earlier pops, alone
    solver = f"blocks{n}.columns" if stage.stable else f"blocks{n}.system"
    pop = "tape.pops[c.begin + i] & ~tape.again"  # all items, line after line
    line = "tape.pops[c.begin + i * m] & ~tape.again"  # an item of each line, no matter which

    def each_item(lines: Lines, backwards: bool = False) -> None:
        order = "int64_t i = c.items; i-- > 0 && !halt;" if backwards else "int64_t i = 0; i < c.items; i++"
        out.open(f"for ({order})")
        out.line(f"const Handle h = {pop};")
        by_table(context, stage, "h", lines)
        out.close()

    for key in stage.keys:
        _share(context, stage, key)
    out.open(f"void undo_component{n}(const SolvedComponent& c)")
    out.line("const int64_t m = c.columns, count = c.items / m;  // lines of the system, and their length")
    out.line("const Handle first = tape.pops[c.begin] & ~tape.again;")
    by_table(
        context,
        stage,
        "first",
        lambda _, name: [
            "const int64_t cell = cell_of(first);",
            f"solving.first = {name}.solved[line_of({name}, cell)];",
        ],
    )
    out.line("solving.count = count;")
    each_item(lambda _, name: [f"undo(*this, {name}, h);"], backwards=True)
    out.line(f"blocks{n}.system.open(count);")
    if stage.stable:
        out.line(f"blocks{n}.columns.open();")
        out.line(f"for (int64_t j = 0; j < m; j++) blocks{n}.columns.column.push(j);")
    out.line(f"{solver}.value.clear(), {solver}.value.resize(c.items, semiring::zero());")
    out.line("Array<adjoint_t> g{&account};")
    out.line("bool nothing = true;")
    each_item(
        lambda _, name: [
            f"{solver}.value[i] = {name}.value[cell_of(h)];",
            f"g.push({name}.g[cell_of(h)]);",
            "nothing = nothing && back::nothing(g[i]);",
        ]
    )
    out.open("if (!nothing && !halt)")
    out.line("if (c.near_critical) return lose(near_critical, table_of(first), cell_of(first));")
    out.line(f"ground_all<Stage{n}>(*this, count, [&](int64_t i) {{ return {line}; }});")
    out.line("if (halt) return;")
    out.line(f"const Solved how = solve_adjoints<back>({solver}, g);")
    out.line("if (how == Solved::halted) return;")
    out.line("if (how != Solved::fine) return lose(unsettled, table_of(first), cell_of(first));")
    each_item(
        lambda _, name: [
            f"{name}.g[cell_of(h)] = g[i];",
            *([f"{name}.h[cell_of(h)] = back::share(g[i], {name}.value[cell_of(h)]);"] if posteriors(plan) else []),
        ]
    )
    out.line("inside = true;")
    if exposes:
        out.line(f"for (int64_t i = 0; i < count; i++) expose_item<Stage{n}>(*this, {pop});")
    each_item(
        lambda _, name: [f"share_{name}(cell_of(h));", *([f"hide(*this, {name}, cell_of(h));"] if exposes else [])],
        backwards=True,
    )
    out.line("inside = false;")
    out.close()
    if stage.stable:
        out.line(f"blocks{n}.columns.close();")
    out.line("solving.count = 0;")
    out.close()
    out.line()


def _share(context: ClassContext, stage: Stage, key: str) -> None:
    """`share_...`: propagates the adjoint of a solved item to the weights of the instances inside the component."""
    out, table, name = context.out, context.plan.tables[key], context.names.table[key]
    inner = (j for j in stage.inner_joins if driver_of(j) == key and not head_clause_defined(context.plan, j))
    called = [context.function_of(join, "back") for join in inner]
    out.open(f"DYNAGRAD_RULE void share_{name}(int64_t cell)")
    if takes_arguments(called):
        context.unpack(table)
    if takes(called, "gupdate"):
        out.line("adjoint_t gupdate = {};")
    if takes(called, "update"):
        out.line(f"const value_t now = {name}.value[cell];")
    for function in called:
        out.line(f"{function.call(arguments_of(table), update='now')};")
    out.close()
