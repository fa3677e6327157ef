"""The backward pass of a program: reverse-mode differentiation of a run, over its tape of pops.

The algorithm is back-propagation through Dyna's agenda (the online appendix to Eisner, Goldlust and Smith 2005). The
tape is traversed from its end. Each pop is undone: the joins that it drove are run once more, and where the forward
pass sent an update to a head, the backward pass reads the adjoint of that update and adds to the adjoints of the
antecedents. Then the chart is rolled back to its state before the pop. At the end it is rolled forward again.

Two adjoints are kept for an item that can be popped several times: `g`, of its value in the chart, and `ga`, of its
pending update. An item that is popped once has only `g`. Where the aggregator selects, the update that was popped came
from one instance: the item waits for that instance (`wait`: the pop that made it, `aim`: its value), and the first
instance that fits takes the adjoint. The tape is in `tape.py`, the joins are in `joins.py`; here is the order in which
stages, pops and joins are undone.

The sweep of `autodiff/accumulation.py`, over a let-series, is another algorithm: there each value is computed once,
here items are popped again, and the chart is rolled back.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....plan.model import Join, Stage, TableLayout
from ....plan.traits import (
    fires_once,
    goes_back_together,
    has_agenda,
    has_axioms,
    head_kind,
    keeps_total,
    posteriors,
    resting,
    rolls_back,
    selects,
    steps,
    stored_order,
    sums,
    sums_up,
    sweeps,
    undoes_rows,
)
from ....rules.aggregators import HeadKind
from ....rules.show import show
from ...cxx import comment
from ..context import ClassContext
from ..solving.exploring import line_of
from ..statements import arguments_of, takes, takes_arguments
from .adjoints import cells, update_adjoint, write_clear, write_readers
from .implicit import write_undo_component
from .joins import BackWriter, total_of
from .resting import write_passes, write_solve, write_undo_settling
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
        for join in (*stage.fires, *stage.drives):
            if not steps(context.plan, context.plan.tables[join.rule.head.key]):
                _join(context, join)
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


def _undo(context: ClassContext, stage: Stage) -> None:
    """`undo<n>`: undoes a stage, in reverse order."""
    plan, out, n = context.plan, context.out, stage.number
    popped = [plan.tables[k] for k in stage.keys if not plan.tables[k].sink]
    if has_agenda(stage):
        for table in popped:
            _undo_pop(context, stage, table)
    write_undo_component(context, stage, rolls_back(stage))
    if resting(plan, stage):
        drives = context.drives_of[n]
        live = {key: [context.function_of(j, "back") for j in _live(context, tuple(js))] for key, js in drives.items()}
        write_solve(context, stage, live)
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
            name = context.names.table[table.key]
            out.open(f"for (int64_t cell = 0; cell < {cells(context, table)}; cell++)")
            out.line(f"if (back::nothing({name}.g[cell])) continue;")
            _wait(context, name, f"grown({name}.from, cell, 0u)", f"{name}.value[cell]")
            out.close()
        for table in (plan.tables[k] for k in stage.keys):
            if table.sink or fires_once(stage):
                _complete(context, table)
        if not fires_once(stage) and popped:
            if stage.unknowns:
                out.line(f"int64_t component = solved{n}.size;")
            begin_waiting(context, stage)
            out.open(f"for (int64_t t = tape.end({n}); t-- > tape.begins[{n}] && !halt;)")
            out.line("if (spend(1)) return;")
            if stage.unknowns:
                out.open(f"if (component && solved{n}[component - 1].begin + solved{n}[component - 1].items == t + 1)")
                out.line(f"t = solved{n}[--component].begin;")
                out.line(f"undo_component{n}(solved{n}[component]);")
                out.line("continue;")
                out.close()
            undo = {}
            for table in popped:
                name = context.names.table[table.key]
                one = f"undo_{name}(cell_of(h){'' if stage.final else ', h & tape.again'});"
                undo[table.number] = [f"t = undo_row_{name}(t);" if undoes_rows(plan, table) else one]
            if not all(undoes_rows(plan, table) for table in popped) or len(popped) > 1:
                out.line("const Handle h = tape.pops[t];")
            out.line(f"position = (uint32_t)(t + 1 - tape.begins[{n}]);")
            out.switch("table_of(h & ~tape.again)", undo)
            out.close()
            end_waiting(context, stage)
        _undo_begin(context, stage)
    out.close()
    out.line()


def _complete(context: ClassContext, table: TableLayout) -> None:
    """Checks the adjoints of items that are never popped, which are complete before their stage is undone."""
    out, name = context.out, context.names.table[table.key]
    out.open(f"for (int64_t cell = {name}.next(0); cell >= 0; cell = {name}.next(cell + 1))")
    out.line(f"if (!back::sound({name}.g[cell])) return lose(bad_adjoint, {table.number}, cell);")
    if posteriors(context.plan):
        out.line(f"{name}.h[cell] = back::share({name}.g[cell], {name}.value[cell]);")
    out.close()


def _wait(context: ClassContext, name: str, position: str, value: str) -> None:
    out = context.out
    out.line(f"{name}.wait[cell] = {position};")
    out.line(f"{name}.aim[cell] = {value};")
    out.line(f"wanted.set({name}.wait[cell]);")


def _undo_pop(context: ClassContext, stage: Stage, table: TableLayout) -> None:
    plan, out, name = context.plan, context.out, context.names.table[table.key]
    chosen = selects(plan, table)
    if undoes_rows(plan, table):
        return _undo_row(context, stage, table)
    drives = list(_live(context, tuple(context.drives_of[stage.number].get(table.key, ()))))
    called = [context.function_of(join, "back") for join in drives]
    again = "" if stage.final else ", bool again"
    out.open(f"DYNAGRAD_STEP void undo_{name}(int64_t cell{again})")
    if takes_arguments(called):
        context.unpack(table)
    if stage.final:
        if takes(called, "update") or posteriors(plan) or chosen:
            out.line(f"const value_t now = {name}.value[cell];")
        out.line("adjoint_t gupdate = {};")
    else:
        out.line("const bool first = !again;")
        if takes(called, "now") or takes(called, "update") or chosen:
            out.line(f"const value_t now = {name}.value[cell];")
        if takes(called, "update") or chosen:
            out.line(f"value_t old = {context.zero(table)}, update = now;")
            out.line("if (again) saved_at--, old = tape.saved[saved_at].old, update = tape.saved[saved_at].update;")
        else:
            out.line(f"const value_t old = again ? tape.saved[--saved_at].old : {context.zero(table)};")
        out.line("adjoint_t gupdate = {}, gold = {};")
    heads = {head_kind(plan, plan.tables[j.rule.head.key]) for j in drives}
    if heads == {HeadKind.SELECT}:
        out.open("if (wanted.test(position))")
    for join, function in zip(drives, called, strict=True):
        within = ""
        if stage.stable and stage.is_inner(join):  # the whole stage is one block, which still exists
            within = f"if (block{stage.number}.leads_out_at({name}.node[{line_of(context, stage, table)}])) "
        update = {"update": "now"} if stage.final else {}
        out.line(f"{within}{function.call(arguments_of(table), **update)};")
    if heads == {HeadKind.SELECT}:
        out.close()
    if stage.final:
        out.line(f"adjoint_t& g = {name}.g[cell];")
        out.line("g = back::gather(g, gupdate);")
        if posteriors(plan):
            out.line(f"{name}.h[cell] = back::share(g, now);")
        if chosen:
            out.open("if (!back::nothing(g))")
            _wait(context, name, f"{name}.from[cell]", "now")
            out.close()
    else:
        write_undo_settling(context, stage, table)
        out.line(f"adjoint_t& g = {name}.ga[cell];")
        out.line(f"g = back::gather(gupdate, {name}.g[cell]);")
        if sums_up(plan, table):
            out.line(f"{name}.gt[cell] = back::gather({name}.gt[cell], g);")
        # in plain arithmetic gupdate is by the driver's new value, of which the old one is part
        before = "gold" if chosen else f"back::gather({'g' if context.plain else f'{name}.g[cell]'}, gold)"
        out.line(f"{name}.g[cell] = first ? adjoint_t{{}} : {before};")
        out.line(f"if (again) {name}.value[cell] = old;")
        if chosen:
            out.line("const uint32_t from = tape.from[--from_at];")
            out.line(f"{name}.wait[cell] = nowhere;")
            out.open("if (!back::nothing(g))")
            _wait(context, name, "from", "update")
            out.close()
    out.line(f"if (__builtin_expect(!back::sound(g), 0)) lose(bad_adjoint, {table.number}, cell);")
    if rolls_back(stage):
        out.line(f"{'' if stage.final else 'if (first) '}hide(*this, {name}, cell);")
    out.close()
    out.line()


def _undo_row(context: ClassContext, stage: Stage, table: TableLayout) -> None:
    """`undo_row_...`: undoes pops that stand one after another on the tape and side by side in the table, the last of
    which is at `t`; returns the place of the first.

    What their rules have for them is added up before any of their own adjoints is complete: nothing on their level
    needs that.
    """
    out, name, n = context.out, context.names.table[table.key], stage.number
    last = table.order[-1]
    drives = list(_live(context, tuple(context.drives_of[n].get(table.key, ()))))
    out.open(f"DYNAGRAD_STEP int64_t undo_row_{name}(int64_t t)")
    if any(goes_back_in_rows(context, join) for join in drives):
        return write_undo_row(context, stage, table, drives, rolls_back(stage))
    out.line("static constexpr int64_t most = 64;")
    out.line("int64_t cells[most], count = 0;")
    out.line("adjoint_t updates[most];")
    out.line("const int64_t cell = cell_of(tape.pops[t]);")
    context.unpack(table)
    out.line(f"const int64_t row = cell - (int64_t)a{last} + {name}.range[{table.arity - 1}].low;")
    out.open("for (;;)")
    out.open("")
    out.line("const int64_t here = cells[count] = cell_of(tape.pops[t]);")
    out.line("adjoint_t& gupdate = updates[count++];")
    out.line("gupdate = {};")
    out.line(f"position = (uint32_t)(t + 1 - tape.begins[{n}]);")
    arguments = [f"a{i} + (int32_t)(here - cell)" if i == last else f"a{i}" for i in range(table.arity)]
    called = [context.function_of(join, "back") for join in drives]
    if takes(called, "update"):
        out.line(f"const value_t now = {name}.value[here];")
    for function in called:
        out.line(f"{function.call(arguments, cell='here', update='now')};")
    if rolls_back(stage):
        out.line(f"hide(*this, {name}, here);")
    out.close()
    out.line(f"if (halt || count == most || t == tape.begins[{n}]) break;")
    out.line("const Handle before = tape.pops[t - 1];")
    length = f"(uint64_t){name}.row_length()"
    out.line(f"if (table_of(before) != {table.number} || (uint64_t)(cell_of(before) - row) >= {length}) break;")
    out.line("t--;")
    out.close()
    if any(goes_back_together(context.plan, join) for join in drives):
        out.line("back_together.end();")
    out.open("for (int64_t i = 0; i < count; i++)")
    out.line("const int64_t cell = cells[i];")
    out.line(f"adjoint_t& g = {name}.g[cell];")
    out.line("g = back::gather(g, updates[i]);")
    if posteriors(context.plan):
        out.line(f"{name}.h[cell] = back::share(g, {name}.value[cell]);")
    out.line(f"if (__builtin_expect(!back::sound(g), 0)) lose(bad_adjoint, {table.number}, cell);")
    out.close()
    out.line("return t;")
    out.close()
    out.line()


def _undo_begin(context: ClassContext, stage: Stage) -> None:
    """Undoes the axioms and rules that fired when the stage began."""
    plan, out = context.plan, context.out
    out.line("position = 0;")
    for key in stage.keys:
        table = plan.tables[key]
        if has_axioms(context.plan, table):
            _undo_axioms(context, table)
    for join in _live(context, stage.fires):
        out.line(f"if (!halt) {context.name_of(join, 'back')}();")


def _undo_axioms(context: ClassContext, table: TableLayout) -> None:
    plan, out, name = context.plan, context.out, context.names.table[table.key]
    kind = head_kind(plan, table)
    if kind is HeadKind.STEP:
        return
    columns = [f"{name}.axioms.column({i})[at]" for i in range(table.arity)]
    stored = ", ".join(columns[i] for i in (stored_order(table)))
    out.open(f"for (int64_t at = 0; at < {name}.axioms.rows(); at++)")
    out.line(f"const int64_t cell = {name}.locate({stored});")
    if kind is HeadKind.SELECT:
        out.line(
            f"if ({name}.wait[cell] != 0 || semiring::primal({name}.axioms.value[at]) != "
            f"semiring::primal({name}.aim[cell])) continue;"
        )
        out.line(f"{name}.wait[cell] = nowhere;")
    if posteriors(plan):
        out.line(f"const adjoint_t g = Posterior::of({name}.h[cell], {name}.axioms.value[at]);")
    else:
        out.line(f"adjoint_t g = {update_adjoint(plan, context.names, table)}[cell];")
    if kind is HeadKind.PRODUCT:
        out.line(f"const value_t x = {name}.axioms.value[at];")
        out.line(f"g = back::scale(g, {name}.factors.others(cell, x));")
    if kind is HeadKind.SOFTMAX:
        out.line(f"g = semiring::share(g, {name}.axioms.value[at], {total_of(plan, table, name, 'cell')});")
    out.line(f"{name}.g_axioms[at] = back::gather({name}.g_axioms[at], g);")
    out.close()


def _undo_rounds(context: ClassContext, stage: Stage) -> None:
    """Undoes the rounds of a sweep, each of which computed all pending values from the chart of the last round."""
    plan, out, n = context.plan, context.out, stage.number
    tables = [plan.tables[k] for k in stage.keys]
    out.line("position = 0;")
    out.open(f"for (int64_t r = rounds{n}.size; r-- > 0 && !halt;)")
    out.line(f"const int64_t end = r + 1 < rounds{n}.size ? rounds{n}[r + 1] : tape.end({n});")
    for table in tables:
        name = context.names.table[table.key]
        out.open(f"for (int64_t cell = 0; cell < {cells(context, table)}; cell++)")
        out.line(f"{name}.ga[cell] = {name}.g[cell];")
        out.line(f"{name}.g[cell] = {{}};")
        out.line(f"{name}.gt[cell] = back::gather({name}.gt[cell], {name}.ga[cell]);")
        out.line(
            f"if (!back::sound({name}.gt[cell]) && {name}.seen.test(cell)) "
            f"return lose(bad_adjoint, {table.number}, cell);"
        )
        if keeps_total(plan, table):
            out.line(f"{name}.total[cell] = {name}.value[cell];")
        if selects(plan, table):
            out.line(f"{name}.wait[cell] = back::nothing({name}.ga[cell]) ? nowhere : 0;")
            out.line(f"{name}.aim[cell] = {name}.value[cell];")
        out.close()
    out.open(f"for (int64_t t = end; t-- > rounds{n}[r];)")
    out.line("const Handle h = tape.pops[t];")
    out.line("const int64_t cell = cell_of(h);")
    out.open("switch (table_of(h & ~tape.again))")
    for table in tables:
        if table.sink:
            continue
        name = context.names.table[table.key]
        out.open(f"case {table.number}:")
        out.open("if (h & tape.again)")
        out.line(f"{name}.value[cell] = tape.saved[--saved_at].old;")
        out.otherwise()
        out.line(f"hide(*this, {name}, cell);")
        out.close()
        out.line("break;")
        out.close()
    out.close()
    out.close()
    _undo_begin(context, stage)
    out.close()


def _roll_forward(context: ClassContext, stage: Stage) -> None:
    """`again<n>`: rolls the chart forward along the tape, after it was rolled back."""
    plan, out, n = context.plan, context.out, stage.number
    if not rolls_back(stage):
        return
    for key in stage.keys:
        table = plan.tables[key]
        if table.sink:
            continue
        name = context.names.table[key]
        out.open(f"void again_{name}(int64_t cell, bool again)")
        out.line(f"if (!again && {name}.popped.test(cell)) return;")
        out.line(f"if (!again) return expose(*this, {name}, cell);")
        out.line("const auto& saved = tape.saved[saved_at++];")
        additive = not sweeps(stage) and sums(plan, table)
        whole = context.plus(table, "saved.old", "saved.update") if additive else "saved.update"
        out.line(f"{name}.value[cell] = {whole};")
        out.close()
    out.open(f"void again{n}(int64_t begin)")
    out.open(f"for (int64_t t = begin; t < tape.end({n}); t++)")
    out.line("const Handle h = tape.pops[t];")
    popped = (plan.tables[key] for key in stage.keys if not plan.tables[key].sink)
    again = {t.number: [f"again_{context.names.table[t.key]}(cell_of(h), h & tape.again);"] for t in popped}
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
    out.line("halt = 0, budget = 0, saved_at = tape.saved.size, from_at = tape.from.size;")
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
