"""Cyclic components of the ground program: grounded as a system of equations, solved, and put into the chart.

The system is that of `solving/solve.hpp`, or of `solving/columns.hpp` where the stage has a stable argument.
`exploring.py` orders the components and pops their items; the backward pass is in `codegen/rules/backward/implicit.py`.
"""

from __future__ import annotations

from ....plan.model import Stage, TableLayout
from ....plan.traits import clause_defined
from ..context import ClassContext
from .exploring import Lines, by_table

STOPPED = (("unsolved", "cyclic"), ("overflows", "bad_value"), ("no_tangent", "unsettled"))
"""How a system may end without a solution, and the status of the run then; divergence is handled separately."""


def write_ground_all(context: ClassContext, stage: Stage, at: str) -> None:
    """Grounds all instances of a component. Items are exposed one by one, so that each instance is found once."""
    out, n = context.out, stage.number
    if stage.joins_itself:
        out.line("int64_t seen = 0;")
    out.open("for (int64_t i = 0; i < count && !halt; i++)")
    out.line("if (spend(1)) break;")
    if stage.joins_itself:
        out.line(f"expose{n}({at}), seen++;")
    out.line(f"ground{n}({at});")
    out.close()
    if stage.joins_itself:
        out.line(f"for (int64_t i = seen; i-- > 0;) hide{n}({at});")


def write_solve(context: ClassContext, stage: Stage) -> None:
    """`solve<n>`: the values of all items of a component at once."""
    out, n, plan = context.out, stage.number, context.plan

    def item_at(i: str) -> str:
        return f"block{n}.items[block{n}.order[{i}]]"

    node = item_at("begin + i")
    out.line("// Solves a component, or fails, or, where the run is stopped, leaves it as it was.")
    out.open(f"void solve{n}(int64_t begin, int64_t count)")
    if not stage.unknowns:
        out.line(f"for (int64_t i = 0; i < count && i < 64; i++) cycle.push({node});")
        out.line("fail(cyclic, table_of(cycle[0]), cell_of(cycle[0]));")
        out.close()
        out.line()
        return
    out.line("solved_first = solved_items + 1, solved_count = count;")
    out.line(f"system{n}.open(count);")
    if plan.rules.solve in ("linear", "newton"):
        flag = "must_be_linear" if plan.rules.solve == "linear" else "always_newton"
        out.line(f"system{n}.{flag} = true;")
    if stage.stable:
        _open_columns(context, stage, node)
    solver = f"columns{n}" if stage.stable else f"system{n}"
    item = f"item{n}({node}, {solver}.column[j])" if stage.stable else node
    failing = f"item{n}({item_at('begin')}, {solver}.column[{solver}.failing])" if stage.stable else item_at("begin")
    number = "i * m + j" if stage.stable else "i"

    def each_item(lines: Lines) -> None:
        out.open("for (int64_t i = 0; i < count; i++)")
        if stage.stable:
            out.open("for (int64_t j = 0; j < m; j++)")
        out.line(f"const Handle h = {item};")
        by_table(context, stage, "h", lines)
        if stage.stable:
            out.close()
        out.close()

    out.open("for (int64_t i = 0; i < count; i++)")
    out.line(f"const Handle h = {node};")
    by_table(
        context,
        stage,
        "h",
        lambda _, name: [f"grown({name}.solved, cell_of(h), 0u) = (uint32_t)(solved_first + i);"],
    )
    out.close()

    def given(table: TableLayout, name: str) -> list[str]:
        if clause_defined(plan, table):  # an item that is derived is worth one
            return [f"{solver}.given[{number}] = semiring::one();"]
        return [f"if ({name}.seen.test(cell_of(h))) {solver}.given[{number}] = {name}.value[cell_of(h)];"]

    each_item(given)
    write_ground_all(context, stage, node)
    out.line(f"const Solved how = halt ? Solved::halted : {solver}.solve();")
    out.open("if (how != Solved::fine && how != Solved::near_critical)")
    out.open("for (int64_t i = 0; i < count; i++)")
    out.line(f"const Handle h = {node};")
    by_table(context, stage, "h", lambda _, name: [f"{name}.solved[cell_of(h)] = 0;"])
    out.close()
    out.line("solved_count = 0;")
    out.line("if (how == Solved::halted) return;")
    out.line(f"const Handle here = {failing};")
    for solved, status in STOPPED:
        out.line(f"if (how == Solved::{solved}) return fail({status}, table_of(here), cell_of(here));")
    out.open(f"for (int64_t k = 0; k < system{n}.cycle.size; k++)")
    if stage.stable:
        out.line(f"cycle.push(item{n}({item_at(f'begin + system{n}.cycle[k]')}, {solver}.column[{solver}.failing]));")
    else:
        out.line(f"cycle.push({item_at(f'begin + system{n}.cycle[k]')});")
    out.close()
    out.line(f"report.radius = system{n}.radius;")
    out.line("const Handle h = cycle.size ? cycle[0] : here;")
    out.line("return fail(diverges, table_of(h), cell_of(h));")
    out.close()
    if plan.order:
        out.open(f"if (how == Solved::near_critical && {solver}.has_tangent())")
        out.line(f"const Handle here = {failing};")
        out.line("return fail(near_critical, table_of(here), cell_of(here));")
        out.close()
    out.line("report.critical += how == Solved::near_critical;")
    out.line(f"if ({solver}.bound > report.error_bound) report.error_bound = {solver}.bound;")
    out.line(f"const double bound = how == Solved::near_critical ? -{solver}.bound : {solver}.bound;")
    each_item(
        lambda _, name: [
            f"{name}.value[cell_of(h)] = {solver}.value[{number}];",
            f"grown({name}.error_bound, cell_of(h), 0.0) = bound;",
            f"if (!{name}.seen.test(cell_of(h))) enter({name}, cell_of(h));",
        ]
    )
    if plan.adjoint:
        items, columns = ("count * m", "m") if stage.stable else ("count", "1")
        solved = f"{{tape.pops.size, {items}, {columns}, how == Solved::near_critical}}"
        out.line(f"if (recording) solved{n}.push({solved});")
    if stage.stable:
        out.line(f"columns{n}.close();")
    out.line("solved_items += count, solved_count = 0;")
    out.close()
    out.line()


def _open_columns(context: ClassContext, stage: Stage, node: str) -> None:
    """Collects the values of the stable argument for which the component has items."""
    out, n = context.out, stage.number
    out.line(f"columns{n}.open();")
    out.open(f"for (int64_t c = 0; c < width{n}(); c++)")
    out.line("bool entered = false;")
    out.open("for (int64_t i = 0; i < count && !entered; i++)")
    out.line(f"const Handle h = item{n}({node}, c);")
    by_table(context, stage, "h", lambda _, name: [f"entered = {name}.seen.test(cell_of(h));"])
    out.close()
    out.line(f"if (entered) columns{n}.column.push(c);")
    out.close()
    out.line(f"const int64_t m = columns{n}.column.size;")
    out.line(f"columns{n}.given.resize(count * m, semiring::zero());")
