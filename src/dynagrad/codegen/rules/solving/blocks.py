"""What only the program knows of stages that find their ground program as they run, for `solving/blocks.hpp`.

It is told by the type of a table: the nests that an item drives inside its level, as edges of the ground program
(`explore`) and as equations of a component (`ground`).
"""

from __future__ import annotations

from ....plan.model import Join, Stage
from ....plan.traits import head_clause_defined, solves
from ..context import ClassContext
from ..nests import arguments_of


def driver_of(join: Join) -> str:
    """The predicate that drives a join."""
    assert join.driver is not None
    return join.rule.antecedents[join.driver].item.key


def write_members(context: ClassContext) -> None:
    """The members of stages that solve."""
    out, plan = context.out, context.plan
    if not any(solves(stage) for stage in plan.stages):
        return
    if plan.keeps_logs:
        primal = "v" if not plan.order else "{v.m[0], v.e}"
        out.line(f"static double semiring_log(const value_t& v) {{ return Log::out({primal}); }}")
    out.line("Solving solving;")
    if plan.adjoint:
        out.line("bool inside = false;  // the backward pass is inside a solved component")
        out.line("adjoint_t discarded{};")


def write_stage(context: ClassContext, stage: Stage) -> None:
    """The functions for the items of a stage."""
    out, ordered = context.out, str(bool(stage.forms)).lower()
    for key in dict.fromkeys(map(driver_of, stage.inner_joins)):
        table, name = context.plan.tables[key], context.names.table[key]
        joins = [join for join in stage.inner_joins if driver_of(join) == key]
        equations = [j for j in joins if stage.unknowns and not head_clause_defined(context.plan, j)]
        with out.block(f"void explore(table_{name}& table, int64_t cell)"):
            out.line("const auto a = arguments_of(table, cell);")
            out.line(f"const Edges<program, {ordered}> edges(*this, blocks{stage.number}.block, table.node[cell]);")
            for join in joins:
                out.line(context.visit(join, "edges", arguments_of(table, "a[{}]")))
        if equations:
            with out.block(f"void ground(table_{name}& table, int64_t cell)"):
                out.line("const auto a = arguments_of(table, cell);")
                for join in equations:
                    visitor = (
                        f"Ground<program, {context.right_sides[join.rule.number]}>{{*this, {{}}, {context.rule(join)}}}"
                    )
                    out.line(context.visit(join, visitor, arguments_of(table, "a[{}]")))
    out.line()
