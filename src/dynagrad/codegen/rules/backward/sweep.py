"""The backward pass of a program: reverse-mode differentiation of a run, over its tape of pops.

The algorithm is back-propagation through Dyna's agenda (the online appendix to Eisner, Goldlust and Smith 2005). The
tape is traversed from its end. Each pop is undone: the joins that it drove are run once more, and where the forward
pass sent an update to a head, the backward pass reads the adjoint of that update and adds to the adjoints of the
antecedents. Then the chart is rolled back to its state before the pop. At the end it is rolled forward again.

Two adjoints are kept for an item that can be popped several times: `g`, of its value in the chart, and `ga`, of its
pending update. An item that is popped once has only `g`. Where the aggregator selects, the update that was popped came
from one instance: the item waits for that instance (`wait`: the pop that made it, `aim`: its value), and the first
instance that fits takes the adjoint. The tape is in `running/tape.hpp`, the joins are in `joins.py`; here is the order
in which stages, pops and joins are undone.

The sweep of `autodiff/accumulation.py`, over a let-series, is another algorithm: there each value is computed once,
here items are popped again, and the chart is rolled back.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....plan.model import Join, Stage, TableLayout
from ....plan.traits import (
    fires_once,
    has_agenda,
    has_axioms,
    resting,
    rolls_back,
    selects,
    steps,
    sweeps,
    undoes_rows,
)
from ....rules.show import show
from ...cxx import comment
from ..context import ClassContext
from ..statements import arguments_of
from ..traits import live, types_of_tables
from .adjoints import write_clear, write_readers
from .implicit import write_undo_component
from .joins import BackWriter
from .resting import write_passes, write_solve
from .row_joins import begin_waiting, end_waiting, goes_back_in_rows, write_back
from .row_pops import write_undo_row


def write_backward(context: ClassContext) -> None:
    """All functions of the pass, and those that clear, seed and read adjoints."""
    out = context.out
    out.open("void lose(int64_t status, int64_t table, int64_t cell)")
    out.line("if (!halt) report.error_table = table, report.error_cell = cell;")
    out.line("stop(status);")
    out.close()
    out.line()
    for stage in context.plan.stages:
        for join in _live(context, (*stage.fires, *stage.drives)):
            _join(context, join)
    _drive_back(context)
    for stage in context.plan.stages:
        _undo(context, stage)
        _roll_forward(context, stage)
    write_clear(context)
    _pass(context)
    write_passes(context)
    write_readers(context)


def _join(context: ClassContext, join: Join) -> None:
    out = context.out
    context.join_comment(join)
    if join.driver is not None:
        item = join.rule.antecedents[join.driver].item
        out.line(f"// driver: {comment(show(item))}, antecedent {join.driver + 1}")
        if goes_back_in_rows(context, join):
            with out.aside(1) as body:
                given = context.row_parameters(join, write_back(context, join))
            head = f"DYNAGRAD_RULE void {context.drive_name(join, 'back_rows')}({given}, double* updates)"
            out.function(head, body)
            if (join.rule.number, join.driver) in context.elementwise:
                return
    often = "DYNAGRAD_FIRED" if join.driver is None else "DYNAGRAD_RULE"
    context.join_function(join, "back", BackWriter(context, join), often)


def _live(context: ClassContext, joins: tuple[Join, ...]) -> Iterator[Join]:
    for join in joins:
        if not steps(context.plan, context.plan.tables[join.rule.head.key]):
            yield join


def _goes_back_in_rows(context: ClassContext, table: TableLayout) -> bool:
    return any(goes_back_in_rows(context, join) for join in live(context, table))


def _drive_back(context: ClassContext) -> None:
    """`drive_back`, which calls the joins of an item backward, by types of tables."""
    out = context.out
    values = "const value_t& update, const value_t& old, const value_t& now, bool first"
    for kind, tables in types_of_tables(context, context.plan.stages).items():
        if _goes_back_in_rows(context, tables[0]):
            continue
        item = f"{kind}& table, int64_t cell, const int32_t* a"
        with out.block(f"DYNAGRAD_ALWAYS void drive_back({item}, {values}, adjoint_t& gupdate, adjoint_t& gold)"):
            out.switch("table.number", {table.number: _calls(context, table) for table in tables})


def _calls(context: ClassContext, table: TableLayout) -> list[str]:
    stage, node = context.plan.stage_of[table.key], f"{context.names.table[table.key]}.node"
    lines = []
    for join in live(context, table):
        within = ""
        if stage.stable and stage.is_inner(join):  # the whole stage is one block, which still exists
            within = f"if (blocks{stage.number}.block.leads_out_at({node}[line_of(table, cell)])) "
        lines.append(f"{within}{context.function_of(join, 'back').call(arguments_of(table, 'a[{}]'))};")
    return lines


def _undo(context: ClassContext, stage: Stage) -> None:
    """`undo<n>`: undoes a stage, in reverse order."""
    plan, out, n = context.plan, context.out, stage.number
    popped = [plan.tables[k] for k in stage.keys if not plan.tables[k].sink]
    for table in popped:
        if has_agenda(stage) and _goes_back_in_rows(context, table):
            write_undo_row(context, stage, table, live(context, table), rolls_back(stage))
    write_undo_component(context, stage, rolls_back(stage))
    write_solve(context, stage)
    out.open(f"DYNAGRAD_FIRED void undo{n}()")
    if resting(plan, stage):
        out.line(f"solve_resting{n}();")
    if sweeps(stage):
        _undo_rounds(context, stage)
    else:
        chosen = [t for t in (plan.tables[k] for k in stage.keys) if selects(plan, t)]
        if chosen:
            out.line(f"wanted.zeros(tape.end({n}) - tape.begins[{n}] + 1);")
        for table in chosen:  # items of sinks, and of stages without pops
            if not table.sink and not fires_once(stage):
                continue
            out.line(f"await_all(*this, {context.names.table[table.key]});")
        for table in (plan.tables[k] for k in stage.keys):
            if table.sink or fires_once(stage):
                out.line(f"complete(*this, {context.names.table[table.key]});")
                out.line("if (halt) return;")
        if not fires_once(stage) and popped:
            if stage.unknowns:
                out.line(f"int64_t component = blocks{n}.solved.size;")
            begin_waiting(context, stage)
            out.open(f"for (int64_t t = tape.end({n}); t-- > tape.begins[{n}] && !halt;)")
            out.line("if (spend(1)) return;")
            if stage.unknowns:
                out.line(f"const auto& solved = blocks{n}.solved;")
                out.open("if (component && solved[component - 1].begin + solved[component - 1].items == t + 1)")
                out.line("t = solved[--component].begin;")
                out.line(f"undo_component{n}(solved[component]);")
                out.line("continue;")
                out.close()
            undo = {}
            for table in popped:
                name = context.names.table[table.key]
                row = f"undo_row_{name}(t)" if _goes_back_in_rows(context, table) else f"undo_row(*this, {name}, t)"
                one = f"undo(*this, {name}, h);"
                undo[table.number] = [f"t = {row};" if undoes_rows(plan, table) else one]
            if not all(undoes_rows(plan, table) for table in popped) or len(popped) > 1:
                out.line("const Handle h = tape.pops[t];")
            out.line(f"position = (uint32_t)(t + 1 - tape.begins[{n}]);")
            out.switch("table_of(h & ~tape.again)", undo)
            out.close()
            end_waiting(context, stage)
        _undo_begin(context, stage)
    out.close()
    out.line()


def _undo_begin(context: ClassContext, stage: Stage) -> None:
    """Undoes the axioms and rules that fired when the stage began."""
    plan, out = context.plan, context.out
    out.line("position = 0;")
    for key in stage.keys:
        table = plan.tables[key]
        if has_axioms(context.plan, table) and not steps(plan, table):
            out.line(f"undo_axioms(*this, {context.names.table[key]});")
    for join in _live(context, stage.fires):
        out.line(f"if (!halt) {context.name_of(join, 'back')}();")


def _undo_rounds(context: ClassContext, stage: Stage) -> None:
    """Undoes the rounds of a sweep, each of which computed all pending values from the chart of the last round."""
    plan, out, n = context.plan, context.out, stage.number
    tables = [plan.tables[k] for k in stage.keys]
    out.line("position = 0;")
    out.open(f"for (int64_t r = convergence{n}.recorded, end = tape.end({n}); r-- > 0 && !halt;)")
    out.line("const int64_t begin = tape.rounds[--rounds_at];")
    for table in tables:
        out.line(f"if (!begin_round(*this, {context.names.table[table.key]})) return;")
    out.open("for (int64_t t = end; t-- > begin;)")
    out.line("const Handle h = tape.pops[t];")
    names = {table.number: context.names.table[table.key] for table in tables if not table.sink}
    out.switch("table_of(h & ~tape.again)", {n: [f"undo_in_round(*this, {name}, h);"] for n, name in names.items()})
    out.close()
    _undo_begin(context, stage)
    out.line("end = begin;")
    out.close()


def _roll_forward(context: ClassContext, stage: Stage) -> None:
    """`again<n>`: rolls the chart forward along the tape, after it was rolled back."""
    plan, out, n = context.plan, context.out, stage.number
    if not rolls_back(stage):
        return
    out.open(f"void again{n}(int64_t begin)")
    out.open(f"for (int64_t t = begin; t < tape.end({n}); t++)")
    out.line("const Handle h = tape.pops[t];")
    popped = (plan.tables[key] for key in stage.keys if not plan.tables[key].sink)
    again = {t.number: [f"redo(*this, {context.names.table[t.key]}, h);"] for t in popped}
    out.switch("table_of(h & ~tape.again)", again)
    out.close()
    out.close()
    out.line()


def _pass(context: ClassContext) -> None:
    plan, out = context.plan, context.out
    out.open("int64_t pass()")
    out.line("const Settings kept = settings;")
    out.line("const int64_t kept_halt = halt;")
    out.line("settings = Settings{};")
    out.line("settings.timeout_ns = back_timeout_ns;")
    out.line("halt = 0, budget = 0;")
    out.line("saved_at = tape.saved.size, from_at = tape.from.size, rounds_at = tape.rounds.size;")
    for stage in reversed(plan.stages):
        out.line(f"if (!halt && tape.begins.size > {stage.number}) undo{stage.number}();")
    rolled = [s for s in plan.stages if rolls_back(s)]
    if rolled:
        out.line("saved_at = 0;")
        for stage in rolled:
            out.line(f"if (tape.begins.size > {stage.number}) again{stage.number}(tape.begins[{stage.number}]);")
    out.line("const int64_t status = halt;")
    out.line("halt = kept_halt, settings = kept;")
    out.line("return status;")
    out.close()
    out.line()
