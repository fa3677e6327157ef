"""Writes C++ for stages that find their ground program as they run: blocks, components, and the order of pops.

Such a stage takes the items of one level together, a *block*. First it explores: from each item it runs the joins whose
heads may be on the same level, without values, and records the edges between items
(`runtime/include/dynagrad/solving/ground.hpp`). Then it pops the items by strongly connected components in topological
order, so that each item has all its contributions when it is popped, once, by the same functions as in a stage with a
static order. Cyclic components are solved before that (`components.py`); contributions from within a solved component
are ignored, as they are part of the solution.

Where a stage has a stable argument (`plan/analyses/stable.py`), a node of the graph stands for a *line*: all items that
differ in this argument alone. The one with the least value of it is explored and grounded for all.

`grounding.py` writes these joins, `codegen/rules/backward/implicit.py` the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ....plan.model import Stage, TableLayout
from ....plan.traits import head_clause_defined, solves
from ..context import ClassContext
from ..statements import arguments_of, takes_arguments
from .grounding import driver_of, write_ground

# -- items -------------------------------------------------------------------------------------------------------------


def line_of(context: ClassContext, stage: Stage, table: TableLayout) -> str:
    """The cell that represents the item at `cell` in the ground program: its own, or that of its line."""
    if table.key not in stage.stable:
        return "cell"
    return f"{context.names.table[table.key]}.line(cell, {table.order.index(stage.stable[table.key])})"


Lines = Callable[[TableLayout, str], Sequence[str]]
"""The statements for an item of a table with a name."""


def by_table(context: ClassContext, stage: Stage, handle: str, lines: Lines, *, returns: bool = False) -> None:
    """The statements for an item of a stage; with `returns` each of them returns."""
    tables = (context.plan.tables[key] for key in stage.keys)
    cases = {table.number: lines(table, context.names.table[table.key]) for table in tables}
    context.out.switch(f"table_of({handle})", cases, returns=returns)


def write_members(context: ClassContext) -> None:
    """The members of stages that solve, and of their items."""
    out, plan = context.out, context.plan
    stages = [s for s in plan.stages if solves(s)]
    if not stages:
        return
    if plan.keeps_logs:
        primal = "v" if not plan.order else "{v.m[0], v.e}"
        out.line(f"static double semiring_log(const value_t& v) {{ return Log::out({primal}); }}")
    out.line("static constexpr uint32_t unsolved = 0xFFFFFFFF;  // the number of an item that is not an unknown")
    out.line("int64_t solved_items = 0;  // in all components so far")
    out.line("int64_t solved_first = 0, solved_count = 0;  // the current component")
    out.line("bool leads_out = true;  // whether joins in the level lead from the current item out of its component")
    for stage in stages:
        n = stage.number
        out.line(f"Block block{n}{{&account}};")
        out.line(f"int64_t exposed{n} = 0;")
        if stage.unknowns:
            closed = plan.semiring == "user"
            system = "ClosedSystem<semiring>" if closed else f"System<semiring, {stage.unknowns}>"
            out.line(f"{system} system{n}{{this}};")
            if stage.stable:
                out.line(f"Columns<semiring> columns{n}{{system{n}}};")
                out.line(f"int64_t column{n} = 0;  // up to which the current line was popped")
                out.line(f"bool reached{n} = false;  // whether the item that the run stops at was among these")
            if plan.adjoint:
                out.line(f"Array<SolvedComponent> solved{n}{{&account}};")
    if plan.adjoint:
        out.line("bool inside = false;  // the backward pass is inside a solved component")
        out.line("adjoint_t discarded{};")


def write_items(context: ClassContext, stage: Stage) -> None:
    """Functions of single items for the rest of the class."""
    out, n = context.out, stage.number
    for key in stage.keys:
        table, name = context.plan.tables[key], context.names.table[key]
        out.open(f"uint32_t member_{name}(int64_t cell)")
        number = f"grown({name}.solved, {line_of(context, stage, table)}, 0u)"
        out.line(f"const uint32_t at = {number} - (uint32_t)solved_first;")
        out.line("return at < (uint32_t)solved_count ? at : unsolved;")
        out.close()
        out.open(f"uint32_t reach({', '.join([f'table_{name}&', *arguments_of(table, 'int32_t a{}')])})")
        if key in stage.stable:
            i = stage.stable[key]
            out.line(f"a{i} = (int32_t){name}.range[{table.order.index(i)}].low;")
        if stage.forms:
            out.line(f"if ({context.level(stage, table)} != level{n}) return 0;")
        out.line(f"const int64_t cell = {name}.locate({context.stored(table)});")
        out.line(f"return block{n}.reach(grown({name}.node, cell, 0u), handle({table.number}, cell));")
        out.close()
    if stage.stable:
        key = stage.keys[0]
        name, place = context.names.table[key], context.plan.tables[key].order.index(stage.stable[key])
        out.line(f"int64_t width{n}() const {{ return {name}.range[{place}].count; }}")
        out.open(f"Handle item{n}(Handle line, int64_t column)")
        by_table(context, stage, "line", lambda table, name: [_item_of_line(stage, table, name)], returns=True)
        if len(stage.keys) > 1:
            out.line("return line;")
        out.close()
    out.line()


def _item_of_line(stage: Stage, table: TableLayout, name: str) -> str:
    place = table.order.index(stage.stable[table.key])
    return f"return handle({table.number}, cell_of(line) + column * {name}.stride[{place}]);"


# -- blocks ------------------------------------------------------------------------------------------------------------


def calls(verb: str) -> Lines:
    """An argument of `by_table`: calls the function of an item's table that starts with `verb`."""
    return lambda _, name: [f"{verb}_{name}(cell_of(h));"]


def write_stage(context: ClassContext, stage: Stage) -> None:
    """The functions of a stage: `gather`, which explores the next block, and `step`, which pops a component of it."""
    out, n = context.out, stage.number
    for join in stage.inner_joins:
        if stage.unknowns and not head_clause_defined(context.plan, join):
            write_ground(context, join)
    if stage.inner_joins:
        _explore(context, stage)
    if stage.unknowns:
        _ground(context, stage)
    if stage.joins_itself:
        for verb in ("expose", "hide"):
            out.open(f"void {verb}{n}(Handle h)")
            by_table(context, stage, "h", lambda _, name: [f"{verb}(*this, {name}, cell_of(h));"])  # noqa: B023
            out.close()
    _waiting(context, stage)
    if context.plan.changes is not None:  # `codegen/rules/incremental/resolving.py` has its own
        return
    _gather(context, stage)
    _step(context, stage)


def _explore(context: ClassContext, stage: Stage) -> None:
    """`explore`: the edges of all instances inside the level that an item drives."""
    out, n = context.out, stage.number
    joins = {context.nest(join): driver_of(join) for join in stage.inner_joins}
    ordered = str(bool(stage.forms)).lower()
    for key in dict.fromkeys(joins.values()):
        table, name = context.plan.tables[key], context.names.table[key]
        out.open(f"void explore_{name}(int64_t cell)")
        context.unpack(table)
        out.line(f"const Edges<program, {ordered}> edges(*this, block{n}, {name}.node[cell]);")
        for nest in (nest for nest, driver in joins.items() if driver == key):
            out.line(f"{nest}({', '.join(['edges', 'cell', *arguments_of(table)])});")
        out.close()
    _each(context, stage, "explore", {*joins.values()})


def _ground(context: ClassContext, stage: Stage) -> None:
    """`ground`: the equations of all instances inside the level that an item drives."""
    out, driving = context.out, set()
    for key in stage.keys:
        table, name = context.plan.tables[key], context.names.table[key]
        own = [j for j in stage.inner_joins if driver_of(j) == key and not head_clause_defined(context.plan, j)]
        called = [context.function_of(join, "ground") for join in own]
        if not called:
            continue
        driving.add(key)
        out.open(f"void ground_{name}(int64_t cell)")
        if takes_arguments(called):
            context.unpack(table)
        for function in called:
            out.line(f"{function.call(arguments_of(table))};")
        out.close()
    _each(context, stage, "ground", driving)


def _each(context: ClassContext, stage: Stage, verb: str, driving: Collection[str]) -> None:
    """Calls one of these for an item."""
    out = context.out
    out.open(f"void {verb}{stage.number}(Handle h)")
    by_table(context, stage, "h", lambda table, name: calls(verb)(table, name) if table.key in driving else [])
    out.close()
    out.line()


def visited(stage: Stage, expose: str, *first: str) -> list[str]:
    """The statements that explore the next item of a block: it is exposed where joins look up items of the stage, and
    drives the joins inside the level."""
    n = stage.number
    lines = [*first, *([expose] if stage.joins_itself else []), *([f"explore{n}(h);"] if stage.inner_joins else [])]
    return [f"const Handle h = block{n}.items[block{n}.explored];", *lines] if lines else []


def _gather(context: ClassContext, stage: Stage) -> None:
    out, n, exposes = context.out, stage.number, stage.joins_itself

    def reach(table: TableLayout, name: str) -> list[str]:
        if table.key not in stage.stable:
            return [f"block{n}.reach(grown({name}.node, cell_of(next), 0u), next);"]
        return [
            "const int64_t cell = cell_of(next);",
            f"const int64_t at = {line_of(context, stage, table)};",
            f"block{n}.reach(grown({name}.node, at, 0u), handle({table.number}, at));",
        ]

    out.line("// The next level: its items, and an order for them. False where there is none, or where the run stops.")
    out.open(f"bool gather{n}()")
    out.open(f"if (block{n}.done())")
    out.line(f"if (!agenda{n}.next_level(level{n})) return false;")
    out.line(f"block{n}.begin();")
    out.line("Handle next = 0;")
    out.open(f"while (agenda{n}.pop_from(level{n}, next))")
    by_table(context, stage, "next", reach)
    out.close()
    out.close()
    if exposes:
        out.line(f"while (exposed{n} < block{n}.explored) expose{n}(block{n}.items[exposed{n}++]);")
    out.open(f"while (block{n}.explored < block{n}.items.size && !halt)")
    out.line("if (spend(1)) break;")
    out.line(f"const int64_t edges = block{n}.edges();")
    for line in visited(stage, f"expose{n}(h), exposed{n}++;"):
        out.line(line)
    out.line(f"if (halt) block{n}.back_to(edges);")
    out.line(f"else block{n}.explored++;")
    out.close()
    if exposes:
        out.line(f"while (exposed{n} > 0) hide{n}(block{n}.items[--exposed{n}]);")
    out.line("if (halt) return false;")
    out.line(f"block{n}.arrange();")
    out.line("return true;")
    out.close()
    out.line()


def leads_out(stage: Stage, node: str) -> str:
    """Whether joins inside the level lead from an item out of its component, as far as exploration can tell.

    It misses an instance that leads to another level if the item was explored before the item that it is joined with,
    and that one drives no join inside the level.
    """
    return "true" if stage.forms and stage.joins_itself else f"block{stage.number}.leads_out({node})"


def _step(context: ClassContext, stage: Stage) -> None:
    out, n, stable = context.out, stage.number, bool(stage.stable)

    def pop(table: TableLayout, name: str) -> list[str]:
        there = [f"if (!{name}.seen.test(cell_of(h))) continue;"] if stable else []
        return [*there, f"pop(*this, {name}, cell_of(h));"]

    out.open(f"void step{n}()")
    out.line(f"const auto component = block{n}.components[block{n}.at];")
    out.line(f"const int64_t end = block{n}.end(block{n}.at);")
    out.open("if (component.cyclic)")
    out.line(f"solve{n}(component.begin, end - component.begin);")
    out.line("if (halt) return;")
    out.close()
    if not stable:
        out.line("const int64_t pops = report.pops;")
    out.line("const Settings kept = settings;")
    out.line("if (component.cyclic) settings = Settings{};  // all of it, or nothing")
    if stable:
        out.line(
            f"bool cut = false, &reached = reached{n};  // a stop between two items of a line is no stop inside a pop"
        )
    else:
        out.line("bool reached = false;")
    out.open("for (int64_t i = component.begin; i < end && !halt; i++)")
    out.line(f"const uint32_t node = block{n}.order[i];")
    out.line(f"leads_out = {leads_out(stage, 'node')};")
    if stable:
        out.line(f"if (component.cyclic) column{n} = 0;")
        out.open(f"while (column{n} < width{n}() && !halt)")
        out.line("if (!component.cyclic && spend(1)) break;")
        out.line(f"const Handle h = item{n}(block{n}.items[node], column{n}++);")
    else:
        out.line(f"const Handle h = block{n}.items[node];")
    by_table(context, stage, "h", pop)
    out.line("reached = reached || (kept.until_table == (int64_t)table_of(h) && kept.until_cell == cell_of(h));")
    if stable:
        out.line("cut = cut || halt;")
        out.close()
    out.close()
    out.line("settings = kept;")
    if stable:
        out.line("if (cut) report.partial = 1;")
        out.line(f"if (halt && column{n} < width{n}()) return;  // the rest of the line is still to come")
        out.line(f"column{n} = 0;")
    else:
        out.line("if (halt && report.pops != pops) report.partial = 1;")
    out.line(f"block{n}.at++;")
    out.line("if (reached && !halt) stop(at_until);")
    if stable:
        out.line("reached = false;")
    out.close()
    out.line()


def _waiting(context: ClassContext, stage: Stage) -> None:
    """`waiting<n>`: the number of items of the block that are still to be popped."""
    out, n = context.out, stage.number
    out.open(f"int64_t waiting{n}()")
    out.line(f"if (block{n}.done()) return 0;")
    out.line(f"if (!block{n}.arranged) return block{n}.items.size;")
    out.line(f"const int64_t first = block{n}.components[block{n}.at].begin;")
    if not stage.stable:
        out.line(f"return block{n}.order.size - first;")
        out.close()
        return
    out.line("int64_t count = 0;")
    out.open(f"for (int64_t i = first; i < block{n}.order.size; i++)")
    out.open(f"for (int64_t c = 0; c < width{n}(); c++)")
    out.line(f"const Handle h = item{n}(block{n}.items[block{n}.order[i]], c);")
    there = "count += {0}.seen.test(cell_of(h)) && !{0}.popped.test(cell_of(h));"
    by_table(context, stage, "h", lambda _, name: [there.format(name)])
    out.close()
    out.close()
    out.line("return count;")
    out.close()
