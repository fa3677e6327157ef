"""What tables and programs are, as constants of a generated class: rows, of which each asks `plan/traits.py`.

Templates read from these what they do with items. `runtime/include/dynagrad/running/traits.hpp` has them as they are
where they are not named, and says what they mean. What stages are is in `running/stages.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...plan.model import Join, Plan, Stage, TableLayout
from ...plan.traits import (
    asked_for,
    bounded,
    clause_defined,
    goes_back_together,
    has_axioms,
    head_kind,
    holds_back,
    keeps_rest,
    keeps_total,
    keeps_updates,
    may_excuse,
    posteriors,
    rests,
    selects,
    settles,
    steps,
    stored_order,
    sums,
    sums_up,
    undoes_rows,
    waits,
)
from ...rules.aggregators import AGGREGATORS, HeadKind
from ...rules.semirings import SEMIRINGS
from ..cxx import literal
from .context import ClassContext

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


def goes_back_in_rows(context: ClassContext, join: Join) -> bool:
    """Whether a join is gone back over for a whole row of drivers: adjoints are posteriors, or those of `real`."""
    return context.in_rows(join) and (posteriors(context.plan) or context.plan.semiring == "real")


def rows_back(context: ClassContext, table: TableLayout) -> bool:
    """Whether some of the joins that an item drives are."""
    return any(goes_back_in_rows(context, join) for join in live(context, table))


def _kinds_of_heads(context: ClassContext, table: TableLayout) -> set[HeadKind]:
    return {head_kind(context.plan, context.plan.tables[join.rule.head.key]) for join in live(context, table)}


BACK_TRAITS: dict[str, Callable[[ClassContext, TableLayout], Trait]] = {
    "drives_choices": lambda c, t: _kinds_of_heads(c, t) == {HeadKind.SELECT},
    "rows_back": rows_back,
    "undoes_rows": lambda c, t: undoes_rows(c.plan, t),
    "rests": lambda c, t: rests(c.plan, t),
    "steps": lambda c, t: steps(c.plan, t),
    "together_back": lambda c, t: any(goes_back_together(c.plan, join) for join in live(c, t)),
}
"""What it is where a pass back may follow."""

PROGRAM_TRAITS: dict[str, Callable[[ClassContext], Trait]] = {
    "plain": lambda c: c.plain,
    "of_user": lambda c: c.plan.semiring == "user",
    "selective": lambda c: c.plan.selective,
    "ordered": lambda c: c.ordered,
    "by_value": lambda c: SEMIRINGS[c.plan.semiring].order == "value",
    "underflows": lambda c: c.underflows,
    "keeps_tape": lambda c: c.plan.adjoint,
    "directions": lambda c: c.plan.order > 0,
    "times_adds": lambda c: SEMIRINGS[c.plan.semiring].times_adds,
    "keeps_logs": lambda c: c.plan.keeps_logs,
    "resolves": lambda c: c.plan.resolves,
    "tables_in_all": lambda c: len(c.plan.tables),
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
