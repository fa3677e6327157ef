"""Convergence of iteration: the remainder estimated from the rate of convergence, divergence, and negative cycles.

A stage that iterates sums holds back updates below a tolerance. The remainder is estimated as the largest update that
an item holds back, relative to its value, times the geometric series 1 / (1 - rate), where the rate is the sum of what
pops send back into the stage over the sum of what was popped, both relative to the items' values, in the last window of
pops. If no tolerance was given, it is lowered, and the updates that were held back are propagated, once at least, and
until the remainder is below it; how far values move tells how what was held back adds up along chains of items, which a
rate does not know of. A sweep compares the changes of two rounds instead. The estimate at the end is the chart's
`error_bound`. A rate that stays at one or above means divergence.

Best-first search has no remainder, but may never end: values may get better each time around a cycle. Once items are
popped much more often than there are items, each improvement records the item that it came from; these parents form a
cycle only where going around it is a gain (negative cycle detection, as for Bellman and Ford's algorithm; Cherkassky
and Goldberg 1999), which is looked for now and then. Where right sides do more than add, as `2 * x(I)` or `exp(x(I))`,
parents may close a cycle that settles; there they are followed only once a number overflowed, or, in a semiring of the
user's, after a million pops. Where a sum diverges,
too, parents lead from its item to a cycle: the largest contribution to an item says where it came from. Where arguments
may grow without bound, a run stops after a million pops in a row that changed no digit.
"""

from __future__ import annotations

from ....plan.model import Stage, TableLayout
from ....plan.traits import QUIET, estimates, follows, gains, holds_back, settles_late, sweeps, traces
from ..context import ClassContext

OFTEN = 1000
"""How often each item was popped when a user's semiring is taken to improve values around a cycle without end."""


def _iterated(context: ClassContext, stage: Stage) -> list[TableLayout]:
    """The tables of a stage whose items may be popped again."""
    return [context.plan.tables[key] for key in stage.keys if not context.plan.tables[key].sink]


def write_members(context: ClassContext) -> None:
    out, plan = context.out, context.plan
    for stage in plan.stages:
        if sweeps(stage):
            out.line(f"Rounds convergence{stage.number};")
            out.line(f"Moving moving{stage.number};")
        if estimates(plan, stage):
            out.line(f"Convergence<{str(plan.semiring == 'log').lower()}> convergence{stage.number};")
        if traces(plan, stage):
            out.line(f"Gains gains{stage.number}{{&account}};")
    if any(traces(plan, s) for s in plan.stages):
        out.line("Handle driver = 0;  // the item that was popped last")
    if any(s.grows for s in plan.stages):
        out.line("int64_t quiet = 0;  // pops in a row that changed no digit")


def sizes(context: ClassContext, x: str, value: str) -> str:
    """The sizes of an update and of its item's value; for users' semirings, the relative change of the value, and 1."""
    if context.plan.semiring == "user":
        return f"semiring::apart(semiring::plus({value}, {x}), {value}), 1.0"
    size = _SIZE[context.plain]
    return f"{size.format(x)}, {size.format(value)}"


_SIZE = {True: "fabs(semiring::primal({0}))", False: "semiring::size(semiring::zero(), {0}, {0})"}
"""The size of a number, in plain arithmetic and elsewhere."""


def write_refine(context: ClassContext, stage: Stage) -> None:
    """`refine<n>`: at the end of a stage, propagates what was held back under a lower tolerance, if necessary."""
    plan, out, n = context.plan, context.out, stage.number
    if not estimates(plan, stage):
        return
    # what pruning or a beam holds back is left where it is
    tables = [table for table in _iterated(context, stage) if not holds_back(plan, table)]
    out.open(f"bool refine{n}()")
    out.line(f"auto& c = convergence{n};")
    out.line("c.look();")
    for table in tables:
        name = context.names.table[table.key]
        out.open(f"for (int64_t cell = {name}.next(0); cell >= 0; cell = {name}.next(cell + 1))")
        out.line(f"c.add({name}.moved, cell, {sizes(context, f'{name}.pending[cell]', f'{name}.value[cell]')});")
        out.close()
    out.line("if (!c.lower(settings, report)) return false;")
    for table in tables:
        name = context.names.table[table.key]
        out.open(f"for (int64_t cell = {name}.next(0); cell >= 0; cell = {name}.next(cell + 1))")
        old = f"{name}.value[cell]"
        new = context.plus(table, old, f"{name}.pending[cell]")
        same = (
            f"semiring::primal({new}) == semiring::primal({old})" if context.plain else f"semiring::same({new}, {old})"
        )
        out.line(f"if ({same}) continue;")
        out.line(context.push(table))
        out.close()
    out.line(f"return agenda{n}.waiting() > 0;")
    out.close()
    out.line()


def write_begin(context: ClassContext, stage: Stage) -> None:
    """At the beginning of a stage, and where it is resumed."""
    if estimates(context.plan, stage):
        context.out.line(f"convergence{stage.number}.begin(settings);")
        for table in _iterated(context, stage):
            context.out.line(f"{context.names.table[table.key]}.moved.clear();")
    if traces(context.plan, stage):
        context.out.line(f"gains{stage.number}.parents.clear();")
        held = [t.key in stage.keys and not t.sink for t in context.plan.tables.values()]
        named = zip(held, context.plan.tables, strict=True)
        parents = [f"&{context.names.table[key]}.parent" if there else "nullptr" for there, key in named]
        context.out.line(f"Array<uint64_t>* const parents[] = {{{', '.join(parents)}}};")
        context.out.line(f"for (Array<uint64_t>* parent : parents) gains{stage.number}.parents.push(parent);")


def write_check(context: ClassContext, stage: Stage) -> None:
    """In `run`, after a pop: looks for a cycle of gain now and then."""
    n = stage.number
    if estimates(context.plan, stage):
        context.out.line(f"if (convergence{n}.no_nearer(report.items)) fail(diverges, table_of(next), cell_of(next));")
    late = settles_late(context.plan)
    if estimates(context.plan, stage) or follows(context.plan, stage) or (late and gains(context.plan, stage)):
        context.out.line(f"gains{n}.watch(report, failed, cycle);")
    if gains(context.plan, stage):
        due = f"report.pops >= {QUIET} && report.pops >= {OFTEN} * report.items && " if late else ""
        context.out.line(f"if ({due}report.pops >= gains{n}.next && gains{n}.look(report, cycle))")
        context.out.line("  fail(diverges, table_of(cycle[0]), cell_of(cycle[0]));")
