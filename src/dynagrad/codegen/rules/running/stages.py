"""The loop of each stage: how it begins, with axioms and rules that fire once, is run, and ends.

Stages that find their order as they run are in `solving/blocks.hpp`; the way back is in
`codegen/rules/backward/sweep.py`.
"""

from __future__ import annotations

from ....plan.model import Stage
from ....plan.traits import estimates, fires_once, has_agenda, has_axioms, pops_final_items, solves, sweeps
from ...cxx import comment
from ..backward import resting
from ..backward.tape import tape_bytes
from ..context import ClassContext
from ..solving import convergence


def write_begin(context: ClassContext, stage: Stage) -> None:
    """`begin<n>`: the start of a stage: axioms, and rules whose antecedents are all of earlier stages."""
    out, n = context.out, stage.number
    out.line(f"// stage {n}: {comment(', '.join(stage.keys))[:200]}; {comment(stage.reason)}")
    out.open(f"DYNAGRAD_STEP void begin{n}()")
    if context.plan.adjoint:
        out.line("if (recording) tape.begin();")
        out.line("position = 0;")
    if not sweeps(stage) and not context.plan.resolves:
        _axioms(context, stage)
        for join in stage.fires:
            out.line(f"{context.function_of(join).call(())};")
            if join is not stage.fires[-1]:
                out.line("if (halt) return;")
    out.close()
    out.line()


def _axioms(context: ClassContext, stage: Stage) -> None:
    for key in stage.keys:
        if has_axioms(context.plan, context.plan.tables[key]):
            context.out.line(f"add_axioms(*this, {context.names.table[key]});")


def write_sweep(context: ClassContext, stage: Stage) -> None:
    """`round<n>`: naive evaluation: all rules of the stage over the chart of the last round."""
    out, n = context.out, stage.number
    out.open(f"bool round{n}()")
    out.line("bool changed = false;")
    out.line(f"convergence{n}.begin();")
    if context.plan.adjoint:
        out.line(f"if (recording) rounds{n}.push(tape.pops.size);")
    _axioms(context, stage)
    for join in stage.fires:
        out.line(f"{context.function_of(join).call(())};")
        out.line("if (halt) return false;")
    for key in stage.keys:
        out.line(f"changed |= take_round(*this, {context.names.table[key]});")
    out.line(f"return changed || convergence{n}.more(settings, report);")
    out.close()
    _finite(context, stage)
    out.open(f"void unsettled{n}()", "fails with a cycle of items that do not settle")
    _begin_moving(context, stage)
    out.line(f"for (int i = 0; i < Moving::rounds && !halt; i++) round{n}();")
    out.line(f"moving{n}.watch = Moving::tracing;")
    out.line(f"if (!halt) round{n}();")
    out.line("if (halt) { report.partial = 1; return; }")
    out.line(f"const bool found = moving{n}.around(cycle);")
    out.line("fail(diverges, found ? (int64_t)table_of(cycle[0]) : -1, found ? cell_of(cycle[0]) : -1);")
    out.close()
    out.line()


def _finite(context: ClassContext, stage: Stage) -> None:
    """`finite<n>`: after the last round, fails for values that are NaN, or infinite and not excused; causes first, and
    with a cycle of infinite items, where there is one."""
    out, n = context.out, stage.number

    out.open(f"void infinite{n}(int64_t table, int64_t cell)", "fails, with a cycle if infinite items close one")
    _begin_moving(context, stage)
    for key in stage.keys:
        out.line(f"mark_infinite(*this, {context.names.table[key]});")
    out.line(f"moving{n}.watch = Moving::tracing;")
    out.line(f"round{n}();")
    out.line(f"const bool found = !halt && moving{n}.around(cycle);")
    out.line("fail(bad_value, found ? (int64_t)table_of(cycle[0]) : table, found ? cell_of(cycle[0]) : cell);")
    out.close()
    out.open(f"void finite{n}()")
    out.open("for (int later = 0; later < 2; later++)")
    for table in (context.plan.tables[key] for key in stage.keys):
        found = f"const int64_t cell = wrong_at({context.names.table[table.key]}, later)"
        out.line(f"if ({found}; cell >= 0) return infinite{n}({table.number}, cell);")
    out.close()
    out.close()


def _begin_moving(context: ClassContext, stage: Stage) -> None:
    tables = 1 + max(t.number for t in context.plan.tables.values())
    context.out.line(f"moving{stage.number}.begin({tables});")


def write_run(context: ClassContext) -> None:
    out = context.out
    for stage in context.plan.stages:
        _stage(context, stage)
    out.open("void run()")
    stages = ", ".join(f"static_cast<Stage>(&program::stage{stage.number})" for stage in context.plan.stages)
    out.line(f"static constexpr Stage stages[] = {{{stages or 'nullptr'}}};")
    out.line(f"run_stages(stages, {len(context.plan.stages)});")
    if context.plan.resolves:
        out.line("worst_bound(*this);")
    if context.plan.adjoint:
        out.line(f"report.tape = {tape_bytes(context.plan)};")
    out.close()
    out.line()


def _stage(context: ClassContext, stage: Stage) -> None:
    """`stage<n>`: runs a stage to its end, or until something halts it."""
    out, plan = context.out, context.plan
    n = stage.number
    out.open(f"DYNAGRAD_RULE void stage{n}(int64_t{'' if fires_once(stage) else ' started'})")
    if pops_final_items(stage):
        out.line("Handle next = 0;")
    out.open("if (!begun)")
    out.line(f"begin{n}();")
    out.line("if (halt) report.partial = 1;")
    out.line("begun = true;")
    out.close()
    convergence.write_begin(context, stage)
    if sweeps(stage):
        out.open("while (!halt)")
        out.line("if (pause_here(started)) break;")
        out.line(f"if (convergence{n}.idle > Rounds::patience) {{ unsettled{n}(); break; }}")
        out.line(f"if (!round{n}()) {{ if (halt) report.partial = 1; break; }}")
        out.close()
    elif solves(stage):
        out.open("while (!halt)")
        out.line("if (pause_here(started)) break;")
        again = "_again" if plan.resolves else ""
        block = f"blocks{n}.block"
        out.line(f"if (({block}.done() || !{block}.arranged) && !gather{again}<Stage{n}>(*this)) break;")
        out.line(f"step{again}<Stage{n}>(*this);")
        out.close()
    elif not fires_once(stage):
        out.open("while (!halt)")
        out.line("if (pause_here(started)) break;")
        if rows := context.plan.waits_in_rows(stage):
            out.line("uint64_t cells = 0;")
            out.line(f"if (!agenda{n}.pop(next, cells, one_by_one())) break;")
        else:
            out.line(resting.next_pop(plan, stage, estimates(plan, stage)))
        out.line("const int64_t pops = report.pops;")
        pops = {}
        for table in (plan.tables[key] for key in stage.keys if not plan.tables[key].sink):
            name = context.names.table[table.key]
            row = rows and plan.pops_rows(table.key)
            pops[table.number] = [
                f"pop_row(*this, {name}, cell_of(next), cells);" if row else f"pop(*this, {name}, cell_of(next));"
            ]
        out.switch("table_of(next)", pops)
        out.line("if (halt && report.pops != pops) report.partial = 1;")
        convergence.write_check(context, stage)
        if stage.final or stage.priority == "value" or stage.priority == "declared":
            out.line("stop_after(next);")
        out.close()
    if sweeps(stage):
        out.line(f"if (!halt) finite{n}();")
    sealed = [k for k in stage.keys if plan.tables[k].sink or not has_agenda(stage)]
    for key in sealed:
        out.line(f"seal(*this, {context.names.table[key]});")
    waiting = f"agenda{n}.waiting()" if has_agenda(stage) else "0"
    if solves(stage):
        waiting += f" + waiting<Stage{n}>(*this)"
    out.line(f"report.pending = {waiting};")
    out.line("if (!halt) stage++, begun = false;")
    out.close()
