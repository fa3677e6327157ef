"""Writes C++ that solves stages again after a change of facts, computing only what the change reaches.

Every stage runs block by block, as `codegen/rules/solving/exploring.py` describes, also those with a static order. But
a block starts from *marked* items: those with an instance that was added, deleted, or has an antecedent with another
value. Changed facts mark their heads first: old facts by joins with old facts, new ones by joins with new ones. Then,
stage by stage and level by level:

- The items that marked ones reach on their level are found, among all that exist or may come to exist.
- All of these are removed from the chart, and each gets its contributions from the items that stayed, by joins that
  start from the head.
- From items that have one, the block is explored as in any other run: the items that are derived now, and their
  components. Items that are no longer derived mark their heads.
- Component by component in topological order: one without a marked or new item keeps its values. Any other is popped,
  or solved and popped. Contributions go to items of the block alone. An item whose value differs from before, in any
  bit, marks its heads: those in the block at once, others when the whole block is in the chart.

So a component of the new ground program is solved once if any of its antecedents changed, and a change without effect
does not spread. The error bound of a component is kept with its items, as the chart's is that of all components.

If anything fails, the caller runs the chart afresh, so errors are those of a fresh run. The order and the ranges of the
plan hold for items from the facts before and after; `charts/changes.py` checks that.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....plan.model import Stage, TableLayout
from ....plan.traits import bounded, may_excuse
from ..context import ClassContext, level_type
from ..solving.exploring import by_table, calls, leads_out, visited
from ..statements import arguments_of
from .changing import write_derive, write_mark_row, write_reach, write_rederive, write_restore, write_swap


def write_members(context: ClassContext) -> None:
    """The members that keep items from before the change."""
    out = context.out
    for stage in context.plan.stages:
        out.line(f"Array<Former<value_t>> former{stage.number}{{&account}};  // of the current block")
        out.line(f"Array<Handle> stirred{stage.number}{{&account}};  // items whose values changed")


def write_marks(context: ClassContext) -> None:
    """`mark_...`: an item is to be recomputed."""
    out = context.out
    for stage in context.plan.stages:
        n = stage.number
        for key in stage.keys:
            table, name = context.plan.tables[key], context.names.table[key]
            out.open(f"void mark({', '.join([f'table_{name}&', *arguments_of(table, 'int32_t a{}')])})")
            out.line(f"if (!{name}.inside({context.stored(table)})) return;  // out of range before and after")
            out.line(f"const int64_t cell = {name}.locate({context.stored(table)});")
            out.line(f"uint8_t& flags = grown({name}.marked, cell, (uint8_t)0);")
            out.line("const bool known = flags != 0;")
            out.line("flags |= reached_change;")
            out.line("if (known) return;")
            out.line(f"const {level_type(stage)} level = {context.level(stage, table)};")
            before = f"stage > {n}"
            if stage.forms:
                before += f" || level < 0 || level >= levels{n} || (stage == {n} && level < level{n})"
            out.line(f"if ({before}) return fail(cyclic, {table.number}, cell);", "out of order")
            out.line(f"agenda{n}.push(handle({table.number}, cell), level);")
            out.close()
    out.line()


def write_changes(context: ClassContext) -> None:
    """`change`, which marks the heads that a fact reaches, and `restore`, which loads a chart of another class."""
    changes = context.plan.changes
    assert changes is not None
    out = context.out
    write_reach(context, changes.facts)
    out.open("void change(int64_t, int64_t table, const int32_t* rows, const uint64_t*, int64_t count)")
    out.line("halt = failed, budget = 0, stage = 0, begun = true;")
    out.open("for (int64_t n = 0; n < count && !halt; n++)")
    write_mark_row(context)
    out.close()
    out.close()
    out.line()
    write_restore(context)
    write_swap(context)


def write_stage(context: ClassContext, stage: Stage) -> None:
    """`gather` and `step` of a stage, in place of those of `codegen/rules/solving/exploring.py`."""
    changes = context.plan.changes
    assert changes is not None
    for join in changes.heads:
        if join.rule.head.key in stage.keys:
            write_derive(context, join)
    _items(context, stage)
    _gather(context, stage)
    _step(context, stage)


def _items(context: ClassContext, stage: Stage) -> None:
    """What belongs to an item of any table of the stage, and functions that note it, forget it, and keep it."""
    out, n = context.out, stage.number
    tables = [context.plan.tables[key] for key in stage.keys]

    def of_item(head: str, texts: Sequence[str]) -> None:
        """A function that returns one of these by the item's table."""
        with out.block(f"{head}(Handle h)"):
            cases = {t.number: [f"return {text};"] for t, text in zip(tables[:-1], texts, strict=False)}
            if cases:
                out.switch("table_of(h)", cases, known=False, returns=True)
            out.line(f"return {texts[-1]};")

    names = [context.names.table[table.key] for table in tables]
    of_item(f"Table& table{n}", names)
    of_item(f"value_t& value{n}", [f"{name}.value[cell_of(h)]" for name in names])
    of_item(f"uint8_t& flags{n}", [f"grown({name}.marked, cell_of(h), (uint8_t)0)" for name in names])
    of_item(f"uint32_t& place{n}", [f"grown({name}.solved, cell_of(h), 0u)" for name in names])
    of_item(f"uint32_t& node{n}", [f"grown({name}.node, cell_of(h), 0u)" for name in names])
    of_item(f"uint32_t& former_place{n}", [f"grown({name}.former, cell_of(h), 0u)" for name in names])
    keep_bounds = [bounded(context.plan, table) for table in tables]
    if any(keep_bounds):
        bounds = [
            f"grown({name}.error_bound, cell_of(h), 0.0)" if b else "0"
            for b, name in zip(keep_bounds, names, strict=True)
        ]
        of_item(f"double bound{n}", bounds)
    with out.block(f"Former<value_t>& former_of{n}(Handle h)"):
        out.line(f"return former{n}[former_place{n}(h)];")
    with out.block(f"void note{n}(Handle h)"):
        bound = f"bound{n}(h)" if any(keep_bounds) else "0"
        out.line(f"former{n}.push({{h, value{n}(h), {bound}, table{n}(h).popped.test(cell_of(h))}});")
        out.line(f"former_place{n}(h) = (uint32_t)former{n}.size - 1;")
        out.line(f"flags{n}(h) |= reached_block;")
    with out.block(f"void forget{n}(Handle h)"):
        out.line(f"Table& items = table{n}(h);")
        out.line("items.popped.clear(cell_of(h));")
        out.line("if (items.seen.test(cell_of(h))) items.seen.clear(cell_of(h)), items.items--, report.items--;")
        out.line(f"place{n}(h) = 0;")
        by_table(context, stage, "h", lambda table, name: _forgotten(context, table, name))
    with out.block(f"void keep{n}(Handle h, const Former<value_t>& f)"):
        out.line(f"Table& items = table{n}(h);")
        out.line("if (items.seen.set(cell_of(h))) items.items++, report.items++;")
        out.line(f"value{n}(h) = f.value, place{n}(h) = kept_place;")
        if any(keep_bounds):
            by_table(context, stage, "h", lambda table, name: _bound(context, table, name, "f.bound"))
    with out.block(f"bool same{n}(Handle h, const Former<value_t>& f)"):
        out.line(f"return f.there && !memcmp((const void*)&f.value, (const void*)&value{n}(h), sizeof(value_t));")
    _derive(context, stage)
    arity = max(1, *(table.arity for table in tables))
    out.open(f"void reach_from{n}(Handle h)")
    out.line(f"int32_t a[{arity}] = {{}};")
    out.line("arguments(table_of(h), cell_of(h), a);")
    out.line("reach(table_of(h), a);")
    out.close()
    out.line()


def _bound(context: ClassContext, table: TableLayout, name: str, bound: str) -> list[str]:
    """The statement that sets an item's bound, where it has one."""
    return [f"grown({name}.error_bound, cell_of(h), 0.0) = {bound};"] if bounded(context.plan, table) else []


def _forgotten(context: ClassContext, table: TableLayout, name: str) -> list[str]:
    """The statements that leave an item's value as if it had none."""
    lines = [f"{name}.value[cell_of(h)] = {context.zero(table)};", *_bound(context, table, name, "0")]
    if may_excuse(context.plan, table):
        lines.append(f"if (cell_of(h) < {name}.excused.size) {name}.excused[cell_of(h)] = 0;")
    return lines


def _derive(context: ClassContext, stage: Stage) -> None:
    """`renew`: adds an item's contributions, from axioms and from all instances with antecedents in the chart."""
    changes = context.plan.changes
    assert changes is not None
    out, n = context.out, stage.number
    for key in stage.keys:
        table, name = context.plan.tables[key], context.names.table[key]
        out.open(f"void renew_{name}({'int64_t cell' if table.arity else 'int64_t'})")
        if table.arity:
            out.line(f"const auto a = arguments_of({name}, cell);")
        write_rederive(context, table, changes.heads)
        out.close()
    out.open(f"void renew{n}(Handle h)")
    by_table(context, stage, "h", calls("renew"))
    out.close()


def _gather(context: ClassContext, stage: Stage) -> None:
    out, n = context.out, stage.number
    each = f"for (const auto& f : former{n})"
    gone = f"f.there && !block{n}.has(node{n}(f.item))"
    out.line("// Removes the next marked items of one level, and all that they reach there, from the chart, and orders")
    out.line("// those of them that are derived now. False where there are none, or where the run stops.")
    out.open(f"bool gather{n}()")
    out.open("for (;;)")
    with out.block(f"for (Handle h : stirred{n})"):
        out.line("if (halt || spend(1)) return false;")
        out.line(f"reach_from{n}(h);  // now that the whole block is in the chart")
    out.line("if (halt) return false;")
    out.line(f"stirred{n}.clear();")
    out.line(f"{each} flags{n}(f.item) = 0;")
    out.line(f"former{n}.clear();")
    out.line(f"if (!agenda{n}.next_level(level{n})) return false;")
    out.line(f"block{n}.begin();")
    out.line("Handle next = 0;")
    out.line(f"while (agenda{n}.pop_from(level{n}, next)) block{n}.reach(node{n}(next), next);")
    _explore(context, stage, f"note{n}(h);")
    out.line("if (halt) return false;")
    out.line(f"{each} forget{n}(f.item);")
    with out.block(each):
        out.line("if (halt || spend(1)) return false;")
        out.line(f"renew{n}(f.item);")
    out.line("if (halt) return false;")
    out.line(f"block{n}.begin();")
    with out.block(each):
        out.line(f"if (table{n}(f.item).seen.test(cell_of(f.item))) block{n}.reach(node{n}(f.item), f.item);")
    _explore(context, stage)
    if stage.joins_itself:
        out.line(f"for (int64_t i = block{n}.explored; i-- > 0;) hide{n}(block{n}.items[i]);")
    out.line("if (halt) return false;")
    out.line("// items that are no longer derived are put back for a moment, to find the instances that they were in")
    out.line("bool gone = false;")
    out.line(f"{each} gone = gone || ({gone});")
    with out.block("if (gone)"):
        with out.block(each):
            out.line(f"if (f.there) table{n}(f.item).popped.set(cell_of(f.item));")
        with out.block(each):
            out.line(f"if (!halt && {gone}) reach_from{n}(f.item);")
        out.line(f"{each} table{n}(f.item).popped.clear(cell_of(f.item));")
    out.line("if (halt) return false;")
    out.line(f"block{n}.keeps_edges = true;")
    out.line(f"block{n}.arrange();")
    out.line(f"if (block{n}.components.size) return true;")
    out.close()
    out.close()
    out.line()


def _explore(context: ClassContext, stage: Stage, *first: str) -> None:
    """Explores a block to its end; what is to be done `first` with an item."""
    n = stage.number
    with context.out.block(f"for (; block{n}.explored < block{n}.items.size && !halt; block{n}.explored++)"):
        context.out.line("if (spend(1)) break;")
        for line in visited(stage, f"expose{n}(h);", *first):
            context.out.line(line)


def _step(context: ClassContext, stage: Stage) -> None:
    out, n = context.out, stage.number
    out.open(f"void step{n}()")
    out.line(f"const auto component = block{n}.components[block{n}.at];")
    out.line(f"const int64_t begin = component.begin, end = block{n}.end(block{n}.at);")
    out.line("bool touched = false;")
    out.open("for (int64_t i = begin; i < end && !touched; i++)")
    out.line(f"const Handle h = block{n}.items[block{n}.order[i]];")
    out.line(f"touched = (flags{n}(h) & reached_change) || !former_of{n}(h).there;")
    out.close()
    out.open("if (touched && component.cyclic)")
    out.line(f"solve{n}(begin, end - begin);")
    out.line("if (halt) return;")
    out.close()
    out.line("const Settings kept = settings;")
    out.line("settings = Settings{};  // all of it, or nothing")
    out.open("for (int64_t i = begin; i < end && !halt; i++)")
    out.line(f"const Handle h = block{n}.items[block{n}.order[i]];")
    out.line(f"leads_out = {leads_out(stage, f'block{n}.order[i]')};")
    out.line(f"if (!touched) keep{n}(h, former_of{n}(h));")
    by_table(context, stage, "h", lambda _, name: [f"pop(*this, {name}, cell_of(h));"])
    out.close()
    out.open("for (int64_t i = begin; i < end && touched && !halt; i++)")
    out.line(f"const Handle h = block{n}.items[block{n}.order[i]];")
    out.line(f"if (same{n}(h, former_of{n}(h))) continue;")
    out.line(f"stirred{n}.push(h);")
    out.line(f"block{n}.for_heads(block{n}.order[i], [&](Handle head) {{ flags{n}(head) |= reached_change; }});")
    out.close()
    out.line("settings = kept;")
    out.line(f"block{n}.at++;")
    out.close()
    out.line()


def write_end(context: ClassContext) -> None:
    """At the end of `run`: the error bound of the chart, that of its worst component, recomputed or not."""
    out = context.out
    out.line("report.error_bound = 0, report.critical = 0;")
    for table in context.derived:
        if not bounded(context.plan, table):
            continue
        name = context.names.table[table.key]
        out.open(f"for (int64_t cell = 0; cell < {name}.error_bound.size; cell++)")
        out.line(f"const double bound = {name}.error_bound[cell];")
        out.line("if (fabs(bound) > report.error_bound) report.error_bound = fabs(bound);")
        out.line("report.critical += bound < 0;")
        out.close()
