"""Resting updates: derivatives of updates that leave their item's value as it is.

Such an update is not propagated: values would not change, and around a cycle propagation would never end. But its
derivative may be nonzero: where an edge of weight zero closes a cycle, the sum over paths still grows with that weight.
So where a stage ends by itself, such updates *rest* with their item, and their derivatives are propagated at its end.
(In a stage that is stopped they are pending, like any other. So a run over dual numbers has to know where it will stop:
`Settings.stopped`.)

- Forward, the tangents of a resting update are kept in an array of their own. At its end a stage *settles*: items are
  popped with these tangents alone, until none are left.
- Backward, a resting update has the adjoint of a constant that is added to its item when the stage has ended, and
  settles: the solution of `a = g + J' a`, where g are the adjoints of values at that time, and J the derivatives of
  items by items. A first pass finds out which items need it. A second one solves for it at the end of the stage, by
  rounds of the joins (a fixed-point iteration).

An update that the tolerance holds back changes its item; it is part of neither value nor derivative, and does not rest.
Nor do updates of items that select (one that changes nothing was not chosen), nor those in `log` where derivatives are
by logs, and those of a weight of zero are zero; outside values, which are by weights, have them.
"""

from __future__ import annotations

from ....plan.model import Stage, TableLayout
from ....plan.traits import resting
from ..context import ClassContext
from .adjoints import cells

MOST = 1000
"""Pops while settling, for each pop of the run, after which derivatives count as not converging."""


def write_members(context: ClassContext) -> None:
    plan, out = context.plan, context.out
    if plan.adjoint and resting(plan):
        out.line("Array<Handle> needed{&account};  // the items whose resting updates need an adjoint")
        out.open("void need(uint8_t& before, Handle h)")
        out.line("if (!before) before = 1, needed.push(h);")
        out.close()


# -- forward -----------------------------------------------------------------------------------------------------------


def _nothing_new(context: ClassContext, table: TableLayout, cell: str, x: str) -> str:
    """The test that the contribution `x` leaves the value at `cell` as it is."""
    value = f"{context.names.table[table.key]}.value[{cell}]"
    return f"semiring::same({context.plus(table, value, x)}, {value})"


# -- backward ----------------------------------------------------------------------------------------------------------


def write_resting_adjoint(context: ClassContext, table: TableLayout, to: str, x: str) -> None:
    """In a backward join: the adjoint of resting updates, if the contribution `x` left the item at `to` as it was."""
    out, name, stage = context.out, context.names.table[table.key], context.plan.stage_of[table.key]
    out.line(
        f"if (report.stage > {stage.number} && {name}.popped.test({to}) && {_nothing_new(context, table, to, x)}) "
        f"need({name}.needed[{to}], handle({table.number}, {to})), g = {name}.resting[{to}];"
    )


def write_solve(context: ClassContext, stage: Stage) -> None:
    """`solve_resting<n>`: solves for the adjoints of resting updates at the end of a stage.

    The joins are run backward from pops with a zero update. All contributions of such a pop are zero, so they rest: the
    joins propagate the adjoints of resting updates, and request those that are missing.
    """
    plan, out, n = context.plan, context.out, stage.number
    tables = resting(plan, stage)
    if not tables:
        return
    out.open(f"bool resting{n}_of(Handle h)")
    of = {t.number: [f"return solve_rest(*this, {context.names.table[t.key]}, cell_of(h));"] for t in tables}
    out.switch("table_of(h)", of, known=False, returns=True)  # others are of other stages
    out.line("return true;")
    out.close()
    out.open(f"void solve_resting{n}()")
    out.line(f"if (!needed.size || report.stage <= {n}) return;")
    out.line(f"for (int64_t at = 0; at < needed.size && !halt; at++) resting{n}_of(needed[at]);  // may append more")
    out.line("Array<Handle> order{&account};  // in reverse order of their first pops")
    out.open(f"for (int64_t t = tape.end({n}); t-- > tape.begins[{n}];)")
    out.line("const Handle h = tape.pops[t];")
    out.line("if (h & tape.again) continue;")
    out.open("switch (table_of(h))")
    for table in tables:
        out.line(f"case {table.number}: if ({context.names.table[table.key]}.needed[cell_of(h)]) order.push(h); break;")
    out.close()
    out.close()
    out.line("int64_t solved = 0;")
    out.open("for (bool stands = false; !stands && !halt;)")
    out.line("stands = true;")
    out.open("for (int64_t at = 0; at < order.size && !halt; at++)")
    out.line("if (spend(1)) return;")
    out.line(f"if (resting{n}_of(order[at])) continue;")
    out.line("stands = false;")
    lost = "lose(unsettled, table_of(order[at]), cell_of(order[at]))"
    out.line(f"if (++solved > {MOST} * (report.pops + 16)) return {lost};")
    for _ in range(3):
        out.close()
    out.line()


def write_passes(context: ClassContext) -> None:
    """`backward`: the pass, and if it needed adjoints of resting updates, once more with these."""
    plan, out = context.plan, context.out
    tables = resting(plan)
    if not tables:
        out.line("int64_t backward() { return pass(); }")
        out.line()
        return
    names = [context.names.table[t.key] for t in [*context.facts, *context.derived]]
    out.open("int64_t backward()")
    for name in names:
        out.line(f"Array<adjoint_t> seeds_{name}{{&account}};")
        out.line(f"seeds_{name}.copy({name}.g);")
    for table in tables:
        name = context.names.table[table.key]
        out.line(f"{name}.resting.zeros({cells(context, table)}), {name}.needed.zeros({cells(context, table)});")
    out.line("needed.clear();")
    out.line("const int64_t status = pass();")
    out.line("if (status != done || !needed.size) return status;")
    out.line("adjoints(true);")
    for name in names:
        out.line(f"{name}.g.copy(seeds_{name});")
    out.line("return pass();")
    out.close()
    out.line()
