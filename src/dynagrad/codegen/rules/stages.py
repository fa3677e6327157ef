"""The run of a generated class: contributions to items, joins, pops, and the loop of each stage.

It is long because how an item is reached, waits and is popped has to agree for each strategy.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...plan.aggregators import clause_defined, head_kind, may_excuse
from ...plan.model import Join, Stage, TableLayout
from ...rules.aggregators import AGGREGATORS
from ...rules.semirings import SEMIRINGS
from ..cxx import comment
from .backward import resting
from .backward.tape import either, improves, record_contribution, record_pop, tape_bytes
from .calls import takes_arguments
from .context import AGENDAS, ClassContext
from .incremental import resolving
from .policies import holds_back, priority, prune
from .solving import convergence
from .solving import stages as solving
from .statements import JoinWriter


def write_add(context: ClassContext, table: TableLayout) -> None:
    """`add_...` and `push_...`: add a contribution to an item, and push the item on the agenda."""
    out, stage = context.out, context.stage_of[table.key]
    name = context.names.table[table.key]
    agenda = stage.strategy in AGENDAS and not table.sink
    if agenda:
        often = "DYNAGRAD_RULE" if stage.strategy not in ("levels", "solve") else "DYNAGRAD_FIRED"
        parameters = "".join(f", int32_t a{i}" for i in context.waits_by(table))
        out.open(f"{often} void push_{name}(int64_t cell{parameters})")
        handle = f"handle({table.number}, cell)"
        if stage.strategy == "solve":
            at = solving.line_of(context, stage, table)
            out.line(f"if (block{stage.number}.has(grown(node_{name}, {at}, 0u))) return;  // it has its turn")
        if context.plan.pops_rows(table.key):
            out.line(f"const int64_t within = {_within(table, name)};")
            first = f"handle({table.number}, cell - within)"
            out.line(f"agenda{stage.number}.push({first}, 1ull << within, {context.level(stage, table)});")
        elif stage.strategy in ("levels", "solve"):
            one = "1, " if _in_rows(context, stage) else ""
            out.line(f"agenda{stage.number}.push({handle}, {one}{context.level(stage, table)});")
        elif stage.strategy == "heap":
            priority(context, stage, table)
            first = resting.first(context.plan, table, name)
            out.line(f"agenda{stage.number}.push({handle}, {context.level(stage, table)}, {first});")
        else:
            out.line(f"if ({name}.place[cell]) return;")
            out.line(f"{name}.place[cell] = 1;")
            out.line(f"agenda{stage.number}.push({handle});")
        out.close()
    if table.key in context.row_heads:
        out.open(f"void arrive_{name}(int64_t cell, uint64_t cells)")
        out.line("const int64_t fresh = __builtin_popcountll(cells);")
        out.line(f"{name}.items += fresh, report.items += fresh;")
        if context.plan.pops_rows(table.key):
            context.unpack(table)
            out.line(f"const int64_t within = {_within(table, name)};")
            level, first = context.level(stage, table), f"handle({table.number}, cell - within)"
            out.line(f"agenda{stage.number}.push_from({first}, within, cells, {level});")
        else:
            _each(context, "cell", "cells")
            if context.waits_by(table):
                context.unpack(table)
            out.line(context.push(table))
            out.close()
        out.close()
    leading = ", ".join([*(f"int32_t a{i}" for i in range(table.arity)), "value_t x"])
    out.open(f"DYNAGRAD_RULE void add_{name}({leading})")
    if context.plain and AGGREGATORS[table.aggregator].truth:
        out.line("x = semiring::constant(semiring::primal(x) != 0);")
    if context.plan.resolves:
        out.line(f"if (!{name}.inside({context.stored(table)})) return;")
    out.line(f"const int64_t cell = {name}.locate({context.stored(table)});")
    if context.plan.resolves:
        out.line(f"if (!block{stage.number}.has(grown(node_{name}, cell, 0u))) return;  // it stays as it is")
    if clause_defined(context.plan, table):
        out.line(f"if ({name}.seen.test(cell)) return;  // it is worth one, however often it is derived")
        out.line("x = semiring::one();")
    if stage.unknowns and not table.sink:
        at = solving.line_of(context, stage, table)
        out.line(f"if (grown(place_{name}, {at}, 0u)) return;  // it is solved, and this is part of the solution")
    improving = context.plan.selective and agenda and table.updates

    def agree(here: str, when: str) -> None:
        """A check that a user's plus and less agree, since the run uses both."""
        if context.ordered:
            out.line(
                f"if ({when}__builtin_expect(!semiring::agree({here}, x), 0)) "
                f"return no_order_at({table.number}, cell, {here}, x);"
            )

    if improving:  # most updates of a best-first search are no improvement
        agree(f"{name}.value[cell]", f"{name}.popped.test(cell) && ")
        out.line(f"if ({name}.popped.test(cell) && !semiring::better(x, {name}.value[cell])) return;")
    where = f"{name}.pending[cell]" if table.updates or stage.strategy == "sweep" else f"{name}.value[cell]"
    if stage.strategy == "sweep":
        out.line(f"if (!{name}.seen.test(cell) && full()) return;")
        out.line(f"const bool fresh = !{name}.place[cell];")
        out.line(f"{name}.place[cell] = 1;")
        out.line(f"if ({name}.seen.set(cell)) {name}.items++, report.items++;")
    elif not table.updates and not (context.plain and table.aggregator == "="):
        # the usual case first: one more contribution to an existing item
        out.open(f"if (__builtin_expect({name}.seen.test(cell), 1))")
        if SEMIRINGS[context.plan.semiring].order == "value":  # few contributions are better: what follows is for them
            out.line(f"if (!semiring::better(x, {where})) return;")
        if context.plan.adjoint:
            record_contribution(context, table, improves(context, table, where))
        agree(where, "")
        convergence.write_changed(context, table, where)
        out.line(f"{where} = {context.plus(table, where, 'x')};")
        out.line("return;")
        out.close()
        if context.plan.adjoint and head_kind(context.plan, table) in ("select", "product"):
            out.line("if (full()) return;")  # what takes memory comes before the item is there
            record_contribution(context, table, None)
        out.line(f"if (!enter({name}, cell)) return;")
        out.line(f"{where} = x;")
        if agenda:
            out.line(context.push(table))
        out.close()
        out.line()
        return
    else:
        out.line(f"if (!{name}.seen.test(cell) && full()) return;")
        out.line(f"const bool fresh = {name}.seen.set(cell);")
        out.line(f"if (fresh) {name}.items++, report.items++;")
        agree(where, "!fresh && ")
    if improving:
        out.line(f"if (!fresh && !semiring::better(x, {where})) return;")
    if context.plain and table.aggregator == "=":
        out.line(f"const double here = semiring::primal({where}), given = semiring::primal(x);")
        out.line(
            f"if (!fresh && here != given && !(isnan(here) && isnan(given))) "
            f"return fail(two_values, {table.number}, cell);"
        )
    if context.plan.adjoint and stage.strategy != "sweep":
        record_contribution(context, table, either("fresh", improves(context, table, where)))
    resting.write_rest(context, table)
    convergence.write_sent(context, table)
    if head_kind(context.plan, table) == "select":
        better = improves(context, table, where)
        convergence.write_improved(context, table, "" if improving else either("fresh", better))
    out.line(f"{where} = fresh ? x : {context.plus(table, where, 'x')};")
    if agenda:
        if stage.strategy in ("levels", "solve"):
            out.line(f"if (fresh) {context.push(table)}")
        else:
            out.line(context.push(table))
    out.close()
    out.line()


def _within(table: TableLayout, name: str) -> str:
    """The place of an item among 64 of its row, which wait together."""
    return f"((int64_t)a{table.order[-1]} - {name}.range[{table.arity - 1}].low) & 63"


def _in_rows(context: ClassContext, stage: Stage) -> bool:
    """Whether items of a stage wait in rows, at least those of some predicates."""
    return any(map(context.plan.pops_rows, stage.keys))


def _each(context: ClassContext, first: str, cells: str) -> None:
    """Opens a loop over the cells whose bits are set, as `cell`."""
    context.out.open(f"for (uint64_t left = {cells}, first = {first}; left; left &= left - 1)")
    context.out.line("const int64_t cell = (int64_t)first + __builtin_ctzll(left);")


def write_joins(context: ClassContext, stage: Stage) -> None:
    """The functions of a stage's joins, and those that pop its items."""
    for join in stage.fires:
        _fire(context, join)
    for join in stage.drives:
        context.drive(join)
    if stage.strategy in AGENDAS:
        for key in stage.keys:
            if not context.plan.tables[key].sink:
                _pop(context, stage, context.plan.tables[key])


def _fire(context: ClassContext, join: Join) -> None:
    if context.shapes is not None:
        context.functions["rule", join.rule.number, None] = context.shapes.function(join)
        return
    context.join_comment(join)
    context.join_function(join, "rule", JoinWriter(context.plan, context.names, join, context.out), "DYNAGRAD_FIRED")


def _pop(context: ClassContext, stage: Stage, table: TableLayout) -> None:
    out, name = context.out, context.names.table[table.key]
    row = context.plan.pops_rows(table.key)
    drives = context.drives_of[stage.number].get(table.key, [])
    alone = [join for join in drives if not context.in_rows(join)]  # those of a row are made together
    called = [context.function_of(join) for join in alone]
    parameters = "".join(f", int32_t a{i}" for i in range(table.arity)) if row else ""
    out.open(f"DYNAGRAD_STEP void pop_{name}(int64_t cell{parameters})")
    if not row and (takes_arguments(called) or context.by_key.get(table.key) or holds_back(context, table)):
        context.unpack(table)
    if stage.final:
        out.line(f"const value_t now = {name}.value[cell];")
        out.line("report.pops++;")
        convergence.write_popped(context, stage, table)
        out.line(f"{name}.popped.set(cell);")
        if context.plan.adjoint:
            record_pop(context, stage, table)
    else:
        if stage.strategy in ("queue", "stack"):
            out.line(f"{name}.place[cell] = 0;")
        zero = context.zero(table)
        out.line(f"const bool first = !{name}.popped.test(cell);")
        out.line(f"value_t update = {resting.pending(context.plan, table, name)};")
        out.line(f"const value_t old = first ? {zero} : {name}.value[cell];")
        out.line(f"const value_t now = first ? update : {context.plus(table, 'old', 'update')};")
        context.check(table, "now")
        if context.plain and table.aggregator != "+=":
            out.open("if (!first && semiring::primal(now) == semiring::primal(old))")
            out.line(f"{name}.pending[cell] = {zero};")
            out.line("return;")
            out.close()
            out.line("update = now;")
        elif context.plan.selective:
            out.open("if (!first && !semiring::better(now, old))")
            out.line(f"{name}.pending[cell] = {zero};")
            out.line("return;")
            out.close()
            out.line("update = now;")
        elif context.plan.semiring == "user":
            out.line("if (!first && semiring::same(now, old)) return;")
            held = convergence.tolerance(context.plan, stage)
            out.line(f"if (!first && semiring::negligible(update, old, {held})) return;")
        else:
            resting.write_stop(context, table, convergence.tolerance(context.plan, stage))
        prune(context, table)
        out.line(resting.count_pop(context.plan, table))
        convergence.write_popped(context, stage, table)
        if context.plan.adjoint:
            record_pop(context, stage, table)
        out.line(f"{name}.value[cell] = now;")
        resting.write_cleared(context, table, zero)
        out.line(f"if (first) {name}.popped.set(cell);")
    if stage.final:
        context.check(table, "now")
    if context.by_key.get(table.key):
        if context.plan.changes is not None:
            always = "" if stage.final else "if (first) "
            out.line(f"{always}enter_{name}(cell{''.join(f', a{i}' for i in range(table.arity))});")
        elif stage.final:
            context.enter(table)
        else:
            out.open("if (first)")
            context.enter(table)
            out.close()
    arguments = [f"a{i}" for i in range(table.arity)]
    for join, function in zip(alone, called, strict=True):
        within = "if (leads_out) " if stage.unknowns and join in stage.inner_joins else ""
        update = {"update": "now"} if stage.final else {}
        out.line(f"{within}{function.call(arguments, **update)};")
    out.close()
    if row:
        _pop_row(context, stage, table, drives)
    out.line()


def _pop_row(context: ClassContext, stage: Stage, table: TableLayout, drives: Sequence[Join]) -> None:
    """`pop_row_...`: pops items that stand side by side; those that are left where the run has to stop wait again."""
    out, name, last = context.out, context.names.table[table.key], table.order[-1]
    out.open(f"DYNAGRAD_STEP void pop_row_{name}(int64_t cell, uint64_t cells)")
    context.unpack(table)
    together = [join for join in drives if context.in_rows(join)]
    if together:
        out.line("const uint64_t waited = cells;")
    if _pops_at_once(context, stage, table, drives):
        out.open(f"if ((cell & 7) == 0 && all_valid({name}.value.data + cell, cells))")
        out.line("report.pops += __builtin_popcountll(cells);")
        out.line(f"{name}.popped.merge(cell, cells);")
        if context.plan.adjoint:
            out.line(f"if (recording) tape.push_row(handle({table.number}, cell), cells);")
        out.line("cells = 0;")
        out.close()
    out.open("for (; cells && !halt; cells &= cells - 1)")
    out.line("const int32_t i = __builtin_ctzll(cells);")
    arguments = "".join(f", a{i} + i" if i == last else f", a{i}" for i in range(table.arity))
    out.line(f"pop_{name}(cell + i{arguments});")
    out.close()
    if any(map(context.plan.sums_together, drives)):
        out.line("together.end(this);")
    agenda, handle = f"agenda{stage.number}", f"handle({table.number}, cell)"
    level = context.level(stage, table)
    out.line(f"if (__builtin_expect(cells != 0, 0)) {agenda}.push({handle}, cells, {level});")
    if together:
        _join_row(context, table, together)
    out.close()


def _pops_at_once(context: ClassContext, stage: Stage, table: TableLayout, drives: Sequence[Join]) -> bool:
    """Whether there is nothing to do for single items of a row that is popped."""
    if context.by_key.get(table.key) or context.underflows or context.plan.semiring not in ("real", "log"):
        return False
    return not stage.grows and all(map(context.in_rows, drives))


def _join_row(context: ClassContext, table: TableLayout, joins: Sequence[Join]) -> None:
    """In `pop_row_...`: the joins that are driven by all items of a row that were popped."""
    out, name, last = context.out, context.names.table[table.key], table.order[-1]
    out.line("if (waited == cells) return;")
    out.line(f"const int64_t within = {_within(table, name)};  // not zero where items are popped one by one")
    out.line(f"const int32_t first = a{last} - (int32_t)within;")
    listed = ["first" if i == last else f"a{i}" for i in range(table.arity)]
    out.line("const uint64_t popped = (waited & ~cells) << within;")
    given = f"cell - within, {', '.join(listed)}, popped"
    for join in joins:
        call = context.drive_name(join, "rows")
        if (join.rule.number, join.driver) in context.along:
            out.line(f"{call}({given});")
            continue
        out.open("")
        out.line("bool done = false;")
        out.line(f"{call}({given}, done);")
        out.open("for (uint64_t left = popped; left && !done && !halt; left &= left - 1)")
        out.line("const int32_t i = __builtin_ctzll(left);")
        each = [f"{text} + i" if text == "first" else text for text in listed]
        out.line(f"const value_t now = {name}.value[cell - within + i];")
        out.line(f"{context.function_of(join).call(each, cell='cell - within + i', update='now')};")
        out.close()
        out.line("together.end(this);")
        out.close()


def write_begin(context: ClassContext, stage: Stage) -> None:
    """`begin<n>`: the start of a stage: axioms, and rules whose antecedents are all of earlier stages."""
    out, n = context.out, stage.number
    out.line(f"// stage {n}: {comment(', '.join(stage.keys))[:200]}; {comment(stage.reason)}")
    out.open(f"DYNAGRAD_STEP void begin{n}()")
    if context.plan.adjoint:
        out.line("if (recording) tape.begin();")
        out.line("position = 0;")
    if stage.strategy != "sweep" and not context.plan.resolves:
        _axioms(context, stage)
        for join in stage.fires:
            out.line(f"{context.function_of(join).call(())};")
            if join is not stage.fires[-1]:
                out.line("if (halt) return;")
    out.close()
    for key in stage.keys:
        table = context.plan.tables[key]
        if table.sink or stage.strategy in ("once", "sweep"):
            _seal(context, table, count=stage.strategy == "once" and not table.sink)
    out.line()


def _axioms(context: ClassContext, stage: Stage) -> None:
    out = context.out
    for key in stage.keys:
        table = context.plan.tables[key]
        if context.has_axioms(table):
            name = context.names.table[key]
            columns = [f"axioms_{name}.column({i})[at]" for i in range(table.arity)]
            value = f"axioms_{name}.value[at]"
            out.open(f"for (int64_t at = 0; at < axioms_{name}.rows(); at++)")
            if excuse := context.excuse(table, value, columns):
                out.line(f"{excuse};")
            out.line(f"add_{name}({', '.join([*columns, value])});")
            out.close()
            out.line(f"report.updates += axioms_{name}.rows();")


def _seal(context: ClassContext, table: TableLayout, count: bool) -> None:
    """`seal_...`: makes all items of a table that were reached part of the chart; where that takes more than `seal`."""
    out, name = context.out, context.names.table[table.key]
    if not _seals_apart(context, table):
        return
    out.open(f"DYNAGRAD_FIRED void seal_{name}()")
    bound = f"{name}.bound()"
    out.open(
        f"for (int64_t cell = {name}.seen.next(0, {bound}); cell >= 0; cell = {name}.seen.next(cell + 1, {bound}))"
    )
    value = f"{name}.value[cell]"
    wrong = f"!semiring::valid({value}){context.infinite(table, value)}"
    again = f"if ({wrong}) return fail(bad_value, {table.number}, cell);"
    out.line(f"if (!{name}.popped.set(cell)) {{ {again} continue; }}  // sealed before, and may have grown")
    if count:
        out.line("report.pops++;")
    if context.by_key.get(table.key):
        context.unpack(table)
        context.enter(table)
    context.check(table, value)
    out.close()
    out.close()


def _seals_apart(context: ClassContext, table: TableLayout) -> bool:
    """Whether sealing enters items into indexes, or looks at what excuses their values."""
    return bool(context.by_key.get(table.key)) or may_excuse(context.plan, table)


def _sealing(context: ClassContext, stage: Stage, table: TableLayout) -> str:
    """The call that seals a table."""
    name = context.names.table[table.key]
    if _seals_apart(context, table):
        return f"seal_{name}();"
    pops = stage.strategy == "once" and not table.sink
    options = f"{str(pops).lower()}, {str(context.underflows).lower()}"
    return f"seal<semiring>(*this, {table.number}, {name}, {name}.value, {options});"


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
        table = context.plan.tables[key]
        name = context.names.table[key]
        if table.sink:
            out.open(f"for (int64_t cell = 0; cell < {name}.bound(); cell++)")
            out.line(f"if (!{name}.place[cell]) continue;")
            out.line(f"{name}.place[cell] = 0;")
            out.line(f"{name}.value[cell] = {name}.pending[cell];")
            out.close()
            continue
        out.open(f"for (int64_t cell = 0; cell < {name}.bound(); cell++)")
        out.line(f"if (!{name}.place[cell]) continue;")
        out.line(f"{name}.place[cell] = 0;")
        out.line(f"const value_t now = {name}.pending[cell], old = {name}.value[cell];")
        out.line(f"const bool first = {name}.popped.set(cell);")
        if context.plan.adjoint:
            out.open("if (recording)")
            out.line(f"tape.pops.push(handle({table.number}, cell) | (first ? 0 : tape.again));")
            out.line("if (!first) tape.saved.push({old, now});")
            out.close()
        out.open("if (first)")
        context.unpack(table)
        context.enter(table)
        out.close()
        # a value that is infinite or NaN now may be finite in the next round
        out.line("if (first) changed = true;")
        out.line(f"else convergence{n}.move(semiring::primal(now), semiring::primal(old));")
        out.line(f"{name}.value[cell] = now;")
        out.line("report.pops++;")
        out.close()
    out.line(f"return changed || convergence{n}.more(settings, report);")
    out.close()
    _finite(context, stage)
    out.line()


def _finite(context: ClassContext, stage: Stage) -> None:
    """`finite<n>`: after the last round, fails for values that are NaN, or infinite and not excused; causes first."""
    out, n = context.out, stage.number
    out.open(f"void finite{n}()")
    out.open("for (int later = 0; later < 2; later++)")
    for key in stage.keys:
        table = context.plan.tables[key]
        name, value = context.names.table[key], f"{context.names.table[key]}.value[cell]"
        out.open(f"for (int64_t cell = 0; cell < {name}.bound(); cell++)")
        wrong = f"!semiring::valid({value}){context.infinite(table, value)}"
        first = f"!(flags_of(excused_{name}, cell) & 2)" if may_excuse(context.plan, table) else "true"
        out.line(f"if ({name}.seen.test(cell) && (later || {first}) && ({wrong}))")
        out.line(f"  return fail(bad_value, {table.number}, cell);")
        out.close()
    out.close()
    out.close()


def write_run(context: ClassContext) -> None:
    out = context.out
    for stage in context.plan.stages:
        _stage(context, stage)
    out.open("void run()")
    stages = ", ".join(f"static_cast<Stage>(&program::stage{stage.number})" for stage in context.plan.stages)
    out.line(f"static constexpr Stage stages[] = {{{stages or 'nullptr'}}};")
    out.line(f"run_stages(stages, {len(context.plan.stages)});")
    if context.plan.resolves:
        resolving.write_end(context)
    if context.plan.adjoint:
        out.line(f"report.tape = {tape_bytes(context.plan)};")
    out.close()
    out.line()


def _stage(context: ClassContext, stage: Stage) -> None:
    """`stage<n>`: runs a stage to its end, or until something halts it."""
    out, plan = context.out, context.plan
    n = stage.number
    out.open(f"DYNAGRAD_RULE void stage{n}(int64_t{'' if stage.strategy == 'once' else ' started'})")
    if stage.strategy in AGENDAS and stage.strategy != "solve":
        out.line("Handle next = 0;")
    out.open("if (!begun)")
    out.line(f"begin{n}();")
    out.line("if (halt) report.partial = 1;")
    out.line("begun = true;")
    out.close()
    convergence.write_begin(context, stage)
    if stage.strategy == "sweep":
        out.open("while (!halt)")
        out.line("if (pause_here(started)) break;")
        out.line(f"if (convergence{n}.idle > Rounds::patience) {{ fail(diverges, -1, -1); break; }}")
        out.line(f"if (!round{n}()) {{ if (halt) report.partial = 1; break; }}")
        out.close()
    elif stage.strategy == "solve":
        out.open("while (!halt)")
        out.line("if (pause_here(started)) break;")
        out.line(f"if ((block{n}.done() || !block{n}.arranged) && !gather{n}()) break;")
        out.line(f"step{n}();")
        out.close()
    elif stage.strategy != "once":
        out.open("while (!halt)")
        out.line("if (pause_here(started)) break;")
        if rows := _in_rows(context, stage):
            out.line("uint64_t cells = 0;")
            out.line(f"if (!agenda{n}.pop(next, cells, one_by_one())) break;")
        else:
            out.line(resting.next_pop(plan, stage, convergence.estimates(plan, stage)))
        out.line("const int64_t pops = report.pops;")
        pops = {}
        for table in (plan.tables[key] for key in stage.keys if not plan.tables[key].sink):
            name = context.names.table[table.key]
            row = rows and plan.pops_rows(table.key)
            pops[table.number] = [f"pop_row_{name}(cell_of(next), cells);" if row else f"pop_{name}(cell_of(next));"]
        out.switch("table_of(next)", pops)
        out.line("if (halt && report.pops != pops) report.partial = 1;")
        convergence.write_check(context, stage)
        if stage.final or stage.priority == "value" or stage.priority == "declared":
            out.line(
                "if (settings.until_table == (int64_t)table_of(next) && settings.until_cell == cell_of(next)"
                " && !halt) stop(at_until);"
            )
        out.close()
    if stage.strategy == "sweep":
        out.line(f"if (!halt) finite{n}();")
    sealed = [k for k in stage.keys if plan.tables[k].sink or stage.strategy in ("once", "sweep")]
    for key in sealed:
        out.line(_sealing(context, stage, plan.tables[key]))
    waiting = f"agenda{n}.waiting()" if stage.strategy not in ("once", "sweep") else "0"
    if stage.strategy == "solve":
        waiting += f" + waiting{n}()"
    out.line(f"report.pending = {waiting};")
    out.line("if (!halt) stage++, begun = false;")
    out.close()


def write_order(context: ClassContext) -> None:
    """`no_order_at`: fails where a user's plus and less disagree about two values, with these as the message."""
    out = context.out
    out.line("char both[64 * semiring::words + 1] = {};")
    out.open("void no_order_at(int64_t table, int64_t cell, const value_t& a, const value_t& b)")
    out.line("int64_t at = 0;")
    for name in "ab":
        out.line(f'for (double x : {name}.v) at += snprintf(both + at, sizeof both - at, "%a ", x);')
    out.line("message = both;")
    out.line("fail(no_order, table, cell);")
    out.close()
    out.line()


def write_external(context: ClassContext) -> None:
    """`external`: calls the host's function for the value of an item."""
    out = context.out
    out.open("bool external(int table, const int32_t* arguments, value_t& value)")
    out.line("uint64_t words[semiring::words] = {};")
    out.line("const int32_t answer = externals[table] ? externals[table](arguments, words) : -1;")
    out.line("if (answer < 0) fail(host_error, table, -1);")
    out.line("if (answer > 0) value = semiring::read(words);")
    out.line("return answer > 0;")
    out.close()
    out.line()
