"""What stages are: the struct of each, `Stage<n>`, over which `running/stages.hpp` runs it.

It has traits, as tables have (`codegen/rules/traits.py`); the parts of the class that are the stage's, such as its
agenda; and what only the program knows: its tables, one by one (`each`) or that of an item (`on`), and the joins that
no item drives (`fire`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ....plan.model import Passes, Plan, Stage, Strategy, TableLayout
from ....plan.traits import (
    QUIET,
    by_level,
    estimates,
    fires_once,
    follows,
    gains,
    has_agenda,
    has_axioms,
    resting,
    rolls_back,
    selects,
    solves,
    steps,
    sweeps,
    traces,
)
from ...cxx import comment
from ..backward import row_joins
from ..context import AGENDAS, ClassContext, level_type
from ..shapes import FEW, write_visits
from ..traits import Trait, constants

STAGE_TRAITS: dict[str, Callable[[Plan, Stage], Trait]] = {
    "strategy": lambda _, s: f"Strategy::{s.strategy.value}",
    "priority": lambda _, s: f"Priority::{s.priority or 'none'}",
    "forms": lambda _, s: len(s.forms),
    "unknowns": lambda _, s: s.unknowns,
    "grows": lambda _, s: s.grows,
    "quiet": lambda _, s: QUIET if s.grows else 0,
    "in_rows": lambda p, s: p.waits_in_rows(s),
    "estimates": estimates,
    "pops_once": lambda _, s: s.final,
    "joins_itself": lambda _, s: solves(s) and s.joins_itself,
    "in_lines": lambda _, s: bool(s.stable),
    "linear": lambda p, _: p.rules.solve == "linear",
    "newton": lambda p, _: p.rules.solve == "newton",
    "improves": lambda p, s: gains(p, s) or follows(p, s),
    "gains_around": gains,
    "rests": lambda p, s: bool(resting(p, s)),
    "selects": lambda p, s: p.adjoint and any(selects(p, p.tables[key]) for key in s.keys),
    "rolls_back": lambda p, s: p.adjoint and rolls_back(s),
    "has_axioms": lambda p, s: any(has_axioms(p, p.tables[key]) for key in s.keys),
    "seals": lambda p, s: not has_agenda(s) or any(p.tables[key].sink for key in s.keys),
}
"""What a stage is."""


def _agenda(plan: Plan, stage: Stage) -> str:
    """The type of the agenda of a stage."""
    agenda = AGENDAS[stage.strategy]
    if agenda not in ("Levels", "Heap"):
        return agenda
    ranked = agenda == "Heap" and stage.priority == "value" and plan.semiring == "user"
    agenda = "RowLevels" if plan.waits_in_rows(stage) else agenda
    return f"{agenda}<{level_type(stage)}{', user::Rank' if ranked else ''}>"


def _convergence(plan: Plan, stage: Stage) -> str:
    return "Rounds" if sweeps(stage) else f"Convergence<{str(plan.semiring == 'log').lower()}>"


Has = Callable[[Plan, Stage], bool]
STAGE_PARTS: dict[str, tuple[Has, Callable[[Plan, Stage], str], str]] = {
    "agenda": (lambda _, s: has_agenda(s), _agenda, "{&account}"),
    "blocks": (lambda _, s: solves(s), lambda _, s: f"BlocksOf<Stage{s.number}>", "{this}"),
    "changing": (lambda p, s: p.resolves and solves(s), lambda _, s: f"Changing<Stage{s.number}>", "{&account}"),
    "convergence": (lambda p, s: estimates(p, s) or sweeps(s), _convergence, ""),
    "gains": (traces, lambda *_: "Gains", "{&account}"),
    "moving": (lambda _, s: sweeps(s), lambda *_: "Moving", ""),
    "needed": (lambda p, s: p.adjoint and bool(resting(p, s)), lambda *_: "Array<Handle>", "{&account}"),
    "settles": (lambda p, s: p.adjoint and p.order > 0 and bool(resting(p, s)), lambda *_: "int64_t", " = INT64_MAX"),
}
"""What a stage has in the class, under a name that ends with its number: when, the type, and how it is initialised."""


def parts_of(plan: Plan, stage: Stage) -> Sequence[str]:
    """The parts of the class that are a stage's."""
    return [part for part, (has, *_) in STAGE_PARTS.items() if has(plan, stage)]


def write_parts(context: ClassContext) -> None:
    """The members of the class that are a stage's."""
    for stage in context.plan.stages:
        for part in parts_of(context.plan, stage):
            _, kind, initial = STAGE_PARTS[part]
            context.out.line(f"{kind(context.plan, stage)} {part}{stage.number}{initial};")
        for f in range(len(stage.forms)):
            context.out.line(f"int64_t low{stage.number}_{f} = 0, span{stage.number}_{f} = 1;")


def shares_types(context: ClassContext, stage: Stage) -> bool:
    """Whether tables of a stage that are alike have one type, in programs of thousands of rules: nothing but levels and
    the joins that they drive tell their items apart. A table then keeps which parts of the class are its stage's."""
    plan = context.plan
    if context.shapes is None or plan.changes is not None or plan.collects is not None:
        return False
    return not (solves(stage) or sweeps(stage) or stage.priority == "declared")


def write_traits(context: ClassContext, stage: Stage) -> None:
    """What the tables of a stage know of it: `Stage<n>`; or, where they share types, the base that it has with stages
    that are alike."""
    plan, out, n = context.plan, context.out, stage.number
    lines = constants({name: asked(plan, stage) for name, asked in STAGE_TRAITS.items()})
    if by_level(stage) or stage.strategy is Strategy.HEAP:
        lines.append(f"using Level = {level_type(stage)};")
    if stage.priority == "value" and plan.semiring == "user":
        lines.append("using Rank = user::Rank;")
    parts = parts_of(plan, stage)
    if not shares_types(context, stage):
        context.stage_types[n] = f"Stage{n}"
        _write_stage(context, stage, "StageTraits", lines)
        return
    context.stage_types[n] = context.types.setdefault((*lines, *parts), f"Alike{n}")
    if context.stage_types[n] == f"Alike{n}":
        with out.block(f"struct Alike{n} : StageTraits", "};"):
            for line in lines:
                out.line(line)
            for part in parts:
                own = f"return *(decltype(p.{part}{n})*)table.{part};"
                out.line(f"template <class P, class T> static auto& {part}(P& p, T& table) {{ {own} }}")


def is_entry(context: ClassContext, stage: Stage) -> bool:
    """Whether a stage is an entry of a list: its one table has the type of others, and its rules fire once."""
    return shares_types(context, stage) and fires_once(stage) and len(stage.keys) == 1 and bool(stage.fires)


def write_alike(context: ClassContext) -> None:
    """`Stage<n>` of stages whose tables share types, which are known by now."""
    for stage in context.plan.stages:
        if shares_types(context, stage) and not is_entry(context, stage):
            _write_stage(context, stage, context.stage_types[stage.number], ())


def _write_stage(context: ClassContext, stage: Stage, base: str, lines: Sequence[str]) -> None:
    out, n = context.out, stage.number
    out.line(f"// stage {n}: {comment(', '.join(stage.keys))[:200]}; {comment(stage.reason)}")
    with out.block(f"struct Stage{n} : {base}", "};"):
        for line in lines:
            out.line(line)
        out.line(f"static constexpr int32_t number = {n};")
        also, given = (", class... T", ", T&...") if lines else ("", "")  # else a base has those of tables
        for part in parts_of(context.plan, stage):
            own = f"{part}(P& p{given}) {{ return p.{part}{n}; }}"
            out.line(f"template <class P{also}> static auto& {own}")
        with out.block("template <class P, class F> DYNAGRAD_ALWAYS static void each(P& p, F&& f)"):
            for key in stage.keys:
                out.line(f"f(p.{context.names.table[key]});")
        if stage.forms:
            level = level_type(stage)
            spans = " * ".join(f"({level})p.span{n}_{f}" for f in range(len(stage.forms)))
            out.line(f"template <class P> static {level} span(P& p) {{ return {spans}; }}")
        _write_on(context, stage)
        if stage.fires:
            out.line(f"template <class P> DYNAGRAD_ALWAYS static void fire(P& p) {{ p.fire{n}(); }}")
        if _fires_back(context, stage):
            out.line(f"template <class P> DYNAGRAD_ALWAYS static void fire_back(P& p) {{ p.fire_back{n}(); }}")
        if context.plan.adjoint and row_joins.waits(context, stage):
            call = f"in_rows_back(P& p, F f) {{ return p.in_rows_back{n}(f); }}"
            out.line(f"template <class P, class F> DYNAGRAD_ALWAYS static bool {call}")
        if solves(stage):
            _write_solving(context, stage)


def _write_on(context: ClassContext, stage: Stage) -> None:
    """`on`: calls a function with the table of an item that is popped; those that share a type are told by number."""
    out = context.out
    tables = [context.plan.tables[key] for key in stage.keys if solves(stage) or not context.plan.tables[key].sink]
    alike: dict[str, list[TableLayout]] = {}
    for table in tables:
        alike.setdefault(context.table_types.get(table.key, table.key), []).append(table)
    if not alike:
        return
    with out.block("template <class P, class F> DYNAGRAD_ALWAYS static decltype(auto) on(P& p, Handle h, F&& f)"):
        if len(alike) > 1:
            out.open("switch (table_of(h))")
        for tables in alike.values():
            name = f"p.{context.names.table[tables[0].key]}"
            if len(tables) > 1:
                name = f"static_cast<decltype({name})&>(*p.tables[table_of(h)].items)"
            cases = "".join(f"case {table.number}: " for table in tables) if len(alike) > 1 else ""
            out.line(f"{cases}return f({name}, cell_of(h));")
        if len(alike) > 1:
            out.close()
            out.line("__builtin_unreachable();")


def _write_solving(context: ClassContext, stage: Stage) -> None:
    """In the struct of a stage that solves: what its systems are."""
    plan, out = context.plan, context.out
    system, lines = "NoSystem", "NoColumns"
    if stage.unknowns:
        closed = plan.semiring == "user"
        system = "ClosedSystem<semiring>" if closed else f"System<semiring, {stage.unknowns}>"
        lines = "Columns<semiring>" if stage.stable else lines
    out.line("using Semiring = semiring;")
    out.line(f"using Equations = {system};")
    out.line(f"using Lines = {lines};")
    out.line("template <class P, class T> static Block& block(P& p, T&) { return blocks(p).block; }")
    if stage.stable:
        key = stage.keys[0]
        place = plan.tables[key].order.index(stage.stable[key])
        length = f"p.{context.names.table[key]}.range[{place}].count"
        out.line(f"template <class P> static int64_t width(P& p) {{ return {length}; }}")


def _fires_back(context: ClassContext, stage: Stage) -> bool:
    """Whether such joins have derivatives."""
    plan = context.plan
    return plan.adjoint and any(not steps(plan, plan.tables[join.rule.head.key]) for join in stage.fires)


def write_fire(context: ClassContext, stage: Stage) -> None:
    """`fire<n>`: calls the joins of a stage that no item drives."""
    if not stage.fires:
        return
    with context.out.block(f"DYNAGRAD_STEP void fire{stage.number}()"):
        if context.shapes is not None and len(stage.fires) > FEW:
            write_visits(context.out, {0: stage.fires}, partial(context.row, visitor=context.forward), halts=True)
            return
        for join in stage.fires:
            context.out.line(context.visit(join, context.forward(join)))
            if join is not stage.fires[-1]:
                context.out.line("if (halt) return;")
    context.out.line()


def write_stages(context: ClassContext) -> None:
    """`Stages`: all of them, in their order; `entries` has what tells those apart that share a type."""
    plan, stages, entries = context.plan, [], []
    for stage in plan.stages:
        table, entry = plan.tables[stage.keys[0]], is_entry(context, stage)
        alike = f"{context.stage_types[stage.number]}, {context.table_types[table.key]}" if entry else ""
        stages.append(f"Once<{alike}>" if entry else f"Stage{stage.number}")
        forward, back = Passes.FORWARD in context.passes, context.goes_back and _fires_back(context, stage)
        fire = f"&program::fire{stage.number}" if forward else "nullptr"
        fire += f", &program::fire_back{stage.number}" if back else ""
        entries.append(f"{{{table.number}, {fire}}}" if entry else "{}")
    if any(entry != "{}" for entry in entries):
        context.out.line(f"static constexpr StageEntry<program> entries[] = {{{', '.join(entries)}}};")
    context.out.line(f"using Stages = StageList<{', '.join(stages)}>;")
