"""What tables, stages and programs are, as constants of a generated class: rows, of which each asks `plan/traits.py`.

Templates read from these what they do with items. `runtime/include/dynagrad/running/traits.hpp` has them as they are
where they are not named, and says what they mean. Here, too, is which tables and stages have one type in programs of
thousands of rules, and which parts of the class are a stage's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...plan.model import Join, Plan, Stage, Strategy, TableLayout
from ...plan.traits import (
    QUIET,
    asked_for,
    bounded,
    by_level,
    clause_defined,
    estimates,
    follows,
    gains,
    goes_back_together,
    has_agenda,
    has_axioms,
    head_kind,
    holds_back,
    keeps_rest,
    keeps_total,
    keeps_updates,
    may_excuse,
    resting,
    rolls_back,
    selects,
    settles,
    solves,
    steps,
    stored_order,
    sums,
    sums_up,
    sweeps,
    traces,
    waits,
)
from ...rules.aggregators import AGGREGATORS, HeadKind
from ...rules.semirings import SEMIRINGS
from ..cxx import literal
from .context import ClassContext, level_type

Trait = bool | int | float | str
"""The value of a trait: a constant, or C++."""


TRAITS: dict[str, Callable[[Plan, TableLayout], Trait]] = {
    "sink": lambda _, t: t.sink,
    "waits": waits,
    "pops_again": lambda _, t: t.updates,
    "keeps_updates": keeps_updates,
    "pops_rows": lambda p, t: p.pops_rows(t.key),
    "has_axioms": has_axioms,
    "has_indexes": lambda p, t: any(index.key == t.key for index in p.indexes),
    "holds_back": holds_back,
    "adds": lambda p, t: not p.selective and (p.semiring != "plain" or t.aggregator == "+="),
    "asked_for": asked_for,
    "ranked": lambda p, t: any(x.item.key == t.key for x in p.rules.priorities),
    "truth": lambda p, t: p.semiring == "plain" and AGGREGATORS[t.aggregator].truth,
    "clause": clause_defined,
    "one_value": lambda p, t: p.semiring == "plain" and t.aggregator == "=",
    "selects": selects,
    "multiplies": lambda p, t: head_kind(p, t) is HeadKind.PRODUCT,
    "keeps_rest": keeps_rest,
    "excuses": may_excuse,
    "bounded": lambda p, t: p.collects is None and bounded(p, t),
    "settles": settles,
    "sums": sums,
    "sums_up": lambda p, t: p.adjoint and sums_up(p, t),
    "keeps_total": lambda p, t: p.adjoint and keeps_total(p, t),
    "stable": lambda p, t: t.order.index(stable) if (stable := p.stage_of[t.key].stable.get(t.key)) is not None else -1,
    "sign": lambda p, t: AGGREGATORS[t.aggregator].sign if p.semiring == "plain" else 0,
    "none": lambda p, t: AGGREGATORS[t.aggregator].zero if p.semiring == "plain" else 0.0,
}
"""What the table of a derived predicate is."""


def driven(context: ClassContext, table: TableLayout) -> Sequence[Join]:
    """The joins that an item drives when it is popped."""
    return context.drives_of[context.plan.stage_of[table.key].number].get(table.key, ())


def _at_once(context: ClassContext, table: TableLayout) -> bool:
    if context.by_key.get(table.key) or context.underflows or context.plan.semiring not in ("real", "log"):
        return False
    return not context.plan.stage_of[table.key].grows and all(map(context.in_rows, driven(context, table)))


ROW_TRAITS: dict[str, Callable[[ClassContext, TableLayout], Trait]] = {
    "in_rows": lambda c, t: any(map(c.in_rows, driven(c, t))),
    "together": lambda c, t: any(map(c.plan.sums_together, driven(c, t))),
    "at_once": lambda c, t: c.plan.pops_rows(t.key) and _at_once(c, t),
}
"""What it is where items wait in rows."""


def live(context: ClassContext, table: TableLayout) -> Sequence[Join]:
    """The joins that an item drives, and that have derivatives."""
    plan = context.plan
    return [join for join in driven(context, table) if not steps(plan, plan.tables[join.rule.head.key])]


def _kinds_of_heads(context: ClassContext, table: TableLayout) -> set[HeadKind]:
    return {head_kind(context.plan, context.plan.tables[join.rule.head.key]) for join in live(context, table)}


BACK_TRAITS: dict[str, Callable[[ClassContext, TableLayout], Trait]] = {
    "drives_choices": lambda c, t: _kinds_of_heads(c, t) == {HeadKind.SELECT},
    "together_back": lambda c, t: any(goes_back_together(c.plan, join) for join in live(c, t)),
}
"""What it is where a pass back may follow."""

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
    "rolls_back": lambda p, s: p.adjoint and rolls_back(s),
}
"""What a stage is."""

STAGE_PARTS: dict[str, Callable[[Plan, Stage], bool]] = {
    "agenda": lambda _, s: has_agenda(s),
    "blocks": lambda _, s: solves(s),
    "changing": lambda p, s: p.resolves and solves(s),
    "convergence": lambda p, s: estimates(p, s) or sweeps(s),
    "gains": traces,
    "moving": lambda _, s: sweeps(s),
    "settles": lambda p, s: p.adjoint and p.order > 0 and bool(resting(p, s)),
}
"""What a stage has in the class, under a name that ends with its number."""

PROGRAM_TRAITS: dict[str, Callable[[ClassContext], Trait]] = {
    "plain": lambda c: c.plain,
    "of_user": lambda c: c.plan.semiring == "user",
    "selective": lambda c: c.plan.selective,
    "ordered": lambda c: c.ordered,
    "by_value": lambda c: SEMIRINGS[c.plan.semiring].order == "value",
    "underflows": lambda c: c.underflows,
    "keeps_tape": lambda c: c.plan.adjoint,
    "directions": lambda c: c.plan.order > 0,
    "resolves": lambda c: c.plan.resolves,
}
"""What a program is."""

_USUAL: dict[str, Trait] = {"stable": -1, "priority": "Priority::none"}
"""Traits that need no name beside those that are false or zero."""


_TYPES = {bool: "bool", int: "int32_t", float: "double"}


def constants(traits: Mapping[str, Trait]) -> list[str]:
    """The declarations of traits that are not as usual."""
    named = {n: x for n, x in traits.items() if x != _USUAL.get(n, 0) or n in ("number", "strategy")}
    listed: dict[str, list[str]] = {}
    for name, x in named.items():
        text = x if isinstance(x, str) else literal(x, operand=False)
        type_of = x.split("::")[0] if isinstance(x, str) else _TYPES[type(x)]
        listed.setdefault(type_of, []).append(f"{name} = {text}")
    return [f"static constexpr {type_of} {', '.join(each)};" for type_of, each in listed.items()]


def parts_of(plan: Plan, stage: Stage) -> Sequence[str]:
    """The parts of the class that are a stage's."""
    return [part for part, has in STAGE_PARTS.items() if has(plan, stage)]


def shares_types(context: ClassContext, stage: Stage) -> bool:
    """Whether tables of a stage that are alike have one type, in programs of thousands of rules: nothing but levels and
    the joins that they drive tell their items apart. A table then keeps which parts of the class are its stage's."""
    plan = context.plan
    if context.shapes is None or plan.changes is not None or plan.collects is not None:
        return False
    return not (solves(stage) or sweeps(stage) or stage.priority == "declared")


def write_stage_traits(context: ClassContext, stage: Stage) -> None:
    """`Stage<n>`: what a stage is, and its parts of the class; stages that are alike have one."""
    plan, out, n = context.plan, context.out, stage.number
    lines = constants({name: asked(plan, stage) for name, asked in STAGE_TRAITS.items()})
    if by_level(stage) or stage.strategy is Strategy.HEAP:
        lines.append(f"using Level = {level_type(stage)};")
    if stage.priority == "value" and plan.semiring == "user":
        lines.append("using Rank = user::Rank;")
    parts = parts_of(plan, stage)
    shared = shares_types(context, stage)
    context.stage_types[n] = f"Stage{n}"
    if shared:
        context.stage_types[n] = context.types.setdefault((*lines, *parts), f"Stage{n}")
        if context.stage_types[n] != f"Stage{n}":
            return
    for part in parts:
        own = f"*(decltype(p.{part}{n})*)table.{part}" if shared else f"p.{part}{n}"
        given = "T& table" if shared else "T&"
        lines.append(f"template <class P, class T> static auto& {part}(P& p, {given}) {{ return {own}; }}")
    out.open(f"struct Stage{n} : StageTraits")
    for line in lines:
        out.line(line)
    if solves(stage):
        _write_solving(context, stage)
    out.close("};")


def _write_solving(context: ClassContext, stage: Stage) -> None:
    """In the struct of a stage that solves: what its systems are, and its tables."""
    plan, out = context.plan, context.out
    system, lines = "NoSystem", "NoColumns"
    if stage.unknowns:
        closed = plan.semiring == "user"
        system = "ClosedSystem<semiring>" if closed else f"System<semiring, {stage.unknowns}>"
        lines = "Columns<semiring>" if stage.stable else lines
    out.line(f"static constexpr int32_t number = {stage.number};")
    out.line("using Semiring = semiring;")
    out.line(f"using Equations = {system};")
    out.line(f"using Lines = {lines};")
    for part in parts_of(plan, stage):
        if part in ("agenda", "blocks", "changing"):
            out.line(f"template <class P> static auto& {part}(P& p) {{ return p.{part}{stage.number}; }}")
    out.line("template <class P, class T> static Block& block(P& p, T&) { return blocks(p).block; }")
    names = {plan.tables[key].number: context.names.table[key] for key in stage.keys}
    with out.block("template <class P, class F> DYNAGRAD_ALWAYS static decltype(auto) on(P& p, Handle h, F&& f)"):
        *others, (_, last) = names.items()
        if others:
            out.switch(
                "table_of(h)",
                {number: [f"return f(p.{name}, cell_of(h));"] for number, name in others},
                known=False,
                returns=True,
            )
        out.line(f"return f(p.{last}, cell_of(h));")
    if stage.stable:
        key = stage.keys[0]
        place = plan.tables[key].order.index(stage.stable[key])
        length = f"p.{context.names.table[key]}.range[{place}].count"
        out.line(f"template <class P> static int64_t width(P& p) {{ return {length}; }}")


def write_table_traits(context: ClassContext, table: TableLayout) -> None:
    """In the struct of a table: what it is, and how contributions join where that is not the semiring's plus."""
    plan, out = context.plan, context.out
    if table.key not in plan.stage_of:
        return
    stage = plan.stage_of[table.key]
    out.line(f"using Stage = {context.stage_types[stage.number]};")
    traits: dict[str, Trait] = {name: asked(plan, table) for name, asked in TRAITS.items()}
    asked_of = {**ROW_TRAITS, **(BACK_TRAITS if plan.adjoint else {})}
    traits.update({name: asked(context, table) for name, asked in asked_of.items()})
    for line in constants(traits):
        out.line(line)
    out.line(f"static constexpr int32_t order[] = {{{', '.join(map(str, [*stored_order(table), 0]))}}};")
    if context.own_plus(table):
        joined = context.plus(table, "a", "b")
        out.line(f"static value_t plus(const value_t& a, const value_t& b) {{ return {joined}; }}")
    if context.plain:
        out.line(f"static value_t zero() {{ return {context.zero(table)}; }}")


def types_of_tables(context: ClassContext, stages: Sequence[Stage]) -> Mapping[str, Sequence[TableLayout]]:
    """The tables whose items wait in an agenda, by their types."""
    found: dict[str, list[TableLayout]] = {}
    for table in (context.plan.tables[key] for stage in stages for key in stage.keys):
        if waits(context.plan, table):
            found.setdefault(context.table_types[table.key], []).append(table)
    return found
