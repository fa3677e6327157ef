"""Agenda policies as C++: priorities, declared or by default, pruning and beams.

The agendas themselves are C++ (`running/agenda.hpp`), and which one a stage has was settled in `plan/strategy.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import ProgramError
from ....plan.joins import term_variables
from ....plan.model import Stage, TableLayout
from ....plan.right_sides import called, own_value, to_node
from ....plan.traits import stored_order
from ....rules.semirings import SEMIRINGS
from ....rules.syntax import Item, PriorityDeclaration, Variable
from ..context import ClassContext
from ..scope import PatternScope, RuleScope
from ..values import lifted_cxx


def declared_priority(context: ClassContext, stage: Stage, table: TableLayout, declared: PriorityDeclaration) -> None:
    """In `priority_of`: computes the priority that is declared; returns false where the run has to stop."""
    out, own = context.out, context.names.table[table.key]
    both = context.plus(table, f"{own}.value[cell]", f"{own}.pending[cell]")
    current = f"{own}.popped.test(cell) ? {both} : {own}.pending[cell]"
    scope = PatternScope(
        context.plan,
        context.names,
        {v: table.domains[i] for i, t in enumerate(declared.item.arguments) for v in sorted(term_variables(t))},
        out,
    )
    out.line("priority = -HUGE_VAL;")
    base = out.depth
    for i, term in enumerate(declared.item.arguments):
        scope.match(term, f"a[{i}]", table.domains[i])
    names: dict[str, str] = {v: f"(double){scope.name(v)}" for v in scope.bound}
    count = 0

    def item_name(item: Item) -> str:
        nonlocal count
        variable = f"item{count}"
        count += 1
        if item == declared.item:
            out.line(f"const value_t own = {current};")
            names[variable] = outside(context, "own")
            return variable
        if item.key in stage.keys or item.key not in context.plan.tables:
            raise own_value(context.plan.rules, item)
        other = context.plan.tables[item.key]
        texts = [scope.build(t, d, True) for t, d in zip(item.arguments, other.domains, strict=True)]
        order = stored_order(other)
        found = f"found{variable}"
        other_name = context.names.table[item.key]
        out.line(f"const int64_t {found} = {other_name}.find({', '.join(texts[i] for i in order)});")
        value = f"({found} >= 0 ? {other_name}.value[{found}] : {context.zero(other)})"
        names[variable] = outside(context, value)
        return variable

    node = to_node(declared.expression, context.plan.functions, item_name)
    name = called(declared.expression, context.plan.functions)
    code = lifted_cxx([node], names, "t", 0, context.names.functions, name)
    for s in code.statements:
        out.line(s)
    if code.call:
        out.open(f"if ({code.call} != 0)")
        out.line("if (halt) return false;")
        out.line(f'functions.blame("{code.name}");')
        out.line(f"return fail(function_failed, {table.number}, cell), false;")
        out.close()
    out.line(f"priority = {code.results[0]};")
    out.line("if (isnan(priority)) priority = -HUGE_VAL;")
    out.close_to(base)
    out.line("return true;")


def outside(context: ClassContext, value: str) -> str:
    """A value in the semiring's scale, as a double."""
    if context.plan.order:
        return f"semiring::primal({value})"
    semiring = SEMIRINGS[context.plan.semiring]
    if semiring.adds_logs:
        return f"semiring::out({value})"
    if semiring.shape == "expectation" or context.plan.semiring == "user":
        raise ProgramError(
            f"a priority or a pruning rule cannot read the values of the {context.plan.semiring} semiring"
        )
    return f"(double)({value})"


def holding_back(context: ClassContext, table: TableLayout) -> None:
    """In `held_back`: whether pruning or a beam holds the item back, so that the update stays pending."""
    out = context.out
    for rule in context.plan.rules.prunes:
        if rule.item.key != table.key:
            continue
        base = out.depth
        out.open("")
        scope = declared_scope(context, table, rule.item.arguments)
        for i, term in enumerate(rule.item.arguments):
            scope.match(term, f"a[{i}]", table.domains[i])
        sign = {"=<": "<="}.get(rule.operator, rule.operator)
        out.line(f"if ({outside(context, 'now')} {sign} {rule.threshold!r}) return true;")
        out.close_to(base)
    beams = [(n, b) for n, b in enumerate(context.plan.rules.beams) if b.item.key == table.key]
    for enters in (False, True):  # all beams are checked before any counts the item
        for n, beam in beams:
            base = out.depth
            out.open("if (first)")
            scope = declared_scope(context, table, beam.item.arguments)
            for i, term in enumerate(beam.item.arguments):
                scope.match(term, f"a[{i}]", table.domains[i])
            out.line(f"const int32_t group[] = {{{', '.join([*(scope.name(v.name) for v in beam.group), '0'])}}};")
            if enters:
                out.line(f"beam{n}.insert(group, cell);")
            else:
                out.line(f"const int64_t in_group = beam{n}.number(group);")
                out.line(f"if (in_group >= 0 && beam{n}.count[in_group] >= {beam.keep}) return true;")
            out.close_to(base)
    out.line("return false;")


def declared_scope(context: ClassContext, table: TableLayout, arguments: Sequence[object]) -> RuleScope:
    """The scope of the variables of an item in a declaration."""
    variables = {t.name: table.domains[i] for i, t in enumerate(arguments) if isinstance(t, Variable)}
    return PatternScope(context.plan, context.names, variables, context.out)
