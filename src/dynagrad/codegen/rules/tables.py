"""The tables of a generated class: facts and items as members, and the constructor that opens them.

Very many tables are in groups, each a base of the class. What adds to items is in `running/items.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...plan.model import IndexPlan, Stage, TableLayout
from ...plan.traits import (
    has_agenda,
    has_axioms,
    holds_back,
    is_dense,
    is_facts,
    keeps_updates,
    repeats,
)
from ...rules.syntax import Variable
from .context import ClassContext, own_plus_name
from .members import members_of
from .running.stages import parts_of, shares_types, write_alike, write_traits
from .traits import PROGRAM_TRAITS, ROW_TRAITS, constants, write_table_traits


def write_plus(context: ClassContext) -> None:
    """The operations that join contributions, where they are not the semiring's plus."""
    bodies = [b for b in dict.fromkeys(map(context.own_plus, context.plan.tables.values())) if b]
    for body in bodies:
        a = "" if body == "b" else " a"
        given = f"const value_t&{a}, const value_t& b"
        context.out.line(f"inline value_t {own_plus_name(body)}({given}) {{ return {body}; }}")
    if bodies:
        context.out.line()


def write_facts(context: ClassContext, table: TableLayout) -> None:
    """The fact table type of a predicate, with the groupings (indexes) that its scans need."""
    name, out = context.names.table[table.key], context.out
    indexes = _groupings(context, table)
    if not indexes:
        out.line(f"using facts_{name} = Facts<{table.arity}>;")
        out.line()
        return
    out.open(f"struct facts_{name} : Facts<{table.arity}>")
    for index in indexes:
        out.line(f"Grouping<{len(index.by)}> {context.names.by(index.number)};  // {context.index_text(index)}")
    listed = []
    for index in indexes:
        columns_of = f"columns_{context.names.by(index.number)}"
        if _simple(index):
            columns = {t.name: i for i, t in enumerate(index.pattern) if isinstance(t, Variable)}
            keys = ", ".join([*(str(columns[v]) for v in index.by), "0"])
            out.line(f"static constexpr int32_t {columns_of}[] = {{{keys}}};")
        listed.append(f"{{{len(index.by)}, {columns_of if _simple(index) else 'nullptr'}}}")
    out.line(f"static constexpr GroupingPlan groupings[] = {{{', '.join(listed)}}};")
    if not all(map(_simple, indexes)):
        out.line(f"static void index_rows(FactTable* t, World* w) {{ static_cast<facts_{name}*>(t)->group_rows(w); }}")
        out.open("void group_rows(World* world)")
        for index in indexes:
            if not _simple(index):
                _grouping(context, table, index)
        out.close()
    out.close("};")
    out.line()


def _groupings(context: ClassContext, table: TableLayout) -> Sequence[IndexPlan]:
    """The groupings of the facts of a predicate."""
    return context.by_key.get(table.key, ()) if is_facts(table) else ()


def write_facts_plans(context: ClassContext) -> None:
    """`facts_plans`: what the runtime makes the facts of each predicate from, by its number."""
    tables = [*context.facts, *(t for t in context.derived if has_axioms(context.plan, t))]
    plans = {table.number: _facts_plan(context, table) for table in tables}
    listed = ", ".join(plans.get(number, "{}") for number in range(max(plans, default=0) + 1))
    context.out.line(f"static constexpr FactsPlan facts_plans[] = {{{listed}}};")


def _facts_plan(context: ClassContext, table: TableLayout) -> str:
    indexes, facts = _groupings(context, table), f"facts_{context.names.table[table.key]}"
    if not indexes:
        return f"{{{table.arity}}}"
    own = "" if all(map(_simple, indexes)) else f", {facts}::index_rows"
    return f"{{{table.arity}, {len(indexes)}, {facts}::groupings{own}}}"


def _simple(index: IndexPlan) -> bool:
    """Whether a grouping is by columns as they are."""
    names = [t.name for t in index.pattern if isinstance(t, Variable)]
    return len(names) == len(index.pattern) == len(set(names))


def _grouping(context: ClassContext, table: TableLayout, index: IndexPlan) -> None:
    out = context.out
    out.open("")
    out.line("Array<uint8_t> keep(&account);")
    out.line("keep.zeros(rows);")
    key_columns = []
    for k in range(len(index.by)):
        out.line(f"Array<int32_t> key_column{k}(&account);")
        out.line(f"key_column{k}.zeros(rows);")
        key_columns.append(f"key_column{k}.data")
    out.open("for (int64_t at = 0; at < rows; at++)")
    base = out.depth
    scope = context.index_scope(table, index)
    for i, term in enumerate(index.pattern):
        scope.match(term, f"column[{i}][at]", table.domains[i])
    out.line("keep[at] = 1;")
    for k, variable in enumerate(index.by):
        out.line(f"key_column{k}[at] = {scope.name(variable)};")
    out.close_to(base)
    out.close()
    out.line(f"const int32_t* keys[] = {{{', '.join([*key_columns, 'nullptr'])}}};")
    out.line(f"{context.names.by(index.number)}.build(keys, keep.data, rows);")
    out.close()


def write_group(context: ClassContext, k: int, group: Sequence[TableLayout]) -> None:
    """A group of tables: a base of the class, which constructs and destroys their members."""
    out = context.out
    out.open(f"struct tables{k}")
    out.line("Account* held;")
    for table in group:
        write_table(context, table, "held", f"tables{k}::")
    out.line(f"__attribute__((noinline)) explicit tables{k}(Account* a) : held(a) {{}}")
    out.line(f"__attribute__((noinline)) ~tables{k}() {{}}")
    out.close("};")
    out.line()


def open_class(context: ClassContext) -> None:
    """Opens the class, which begins with the members of its tables, or has groups of them as bases."""
    out, groups = context.out, context.groups()
    for stage in context.plan.stages:
        write_traits(context, stage)
    if len(groups) > 1:
        for k, group in enumerate(groups):
            write_group(context, k, group)
    bases = [f"tables{k}" for k in range(len(groups)) if len(groups) > 1]
    out.open(f"struct program : {', '.join(['ChartBase', *bases])}")
    out.line("using Semiring = semiring;")
    for line in constants({name: asked(context) for name, asked in PROGRAM_TRAITS.items()}):
        out.line(line)
    if context.plan.adjoint:
        out.line("using Back = back;")
        out.line("using Adjoint = adjoint_t;")
    for table in groups[0] if len(groups) == 1 else ():
        write_table(context, table, "&account")
    write_alike(context)


def write_each_table(context: ClassContext) -> None:
    """`each_table`: calls a function with each, by groups."""
    out, groups = context.out, context.groups()
    for k, group in enumerate(groups if len(groups) > 1 else ()):
        with out.block(f"template <class F> DYNAGRAD_FIRED void each_table{k}(F& f)"):
            for table in group:
                out.line(f"f({context.names.table[table.key]});")
    with out.block("template <class F> DYNAGRAD_ALWAYS void each_table(F&& f)"):
        alone = [f"f({context.names.table[table.key]});" for table in groups[0]]
        for line in alone if len(groups) == 1 else [f"each_table{k}(f);" for k in range(len(groups))]:
            out.line(line)


def write_table(context: ClassContext, table: TableLayout, account: str, scope: str = "") -> None:
    """The member of a table: a struct of its own, with what `members.py` says that it has beside its values; or that
    of a table that is alike, see `shares_types`."""
    if is_facts(table):
        _write_relation(context, table, account)
        return
    out, plan, name = context.out, context.plan, context.names.table[table.key]
    shared = table.key in plan.stage_of and shares_types(context, plan.stage_of[table.key])
    base = f"{'Dense' if is_dense(table) else 'Hashed'}<semiring, {table.arity}>"
    lines, members = _inside(context, table, shared)
    own = f"{scope}table_{name}"
    kind = context.table_types[table.key] = _type_of(context, table, own, (base, *lines)) if shared else own
    if shared:
        made = f"{account}, {table.number}, {plan.stage_of[table.key].number}"
    else:  # no constructor, which would be compiled for this one alone
        bases = f"{{{account}}}" + ", {}" * (table.key in plan.stage_of)
        made = ", ".join([bases, *(f"{member}({account})" for member, _ in members)])
    if kind != own:
        out.line(f"{kind} {name}{{{made}}};")
        return
    _open_struct(context, table, base)
    out.lines += lines
    if shared:  # many are of this type
        start = ", ".join([f"{base}(a)", "number(n)", "stage(s)", *(f"{member}(a)" for _, member in members)])
        out.line(f"explicit table_{name}(Account* a, int32_t n, int32_t s) : {start} {{}}")
    out.close(f"}} {name}{{{made}}};")


def _open_struct(context: ClassContext, table: TableLayout, base: str) -> None:
    order = ", ".join(str(i + 1) for i in table.order)
    stored = f"arguments stored in the order {order}" if is_dense(table) and table.arity else ""
    traits = ", TableTraits" if table.key in context.plan.stage_of else ""
    context.out.open(f"struct table_{context.names.table[table.key]} : {base}{traits}", stored)


def _inside(context: ClassContext, table: TableLayout, shared: bool) -> tuple[list[str], list[tuple[str, str]]]:
    """The lines of the struct of a table, and the types and names of what is made with the account."""
    out, plan, names = context.out, context.plan, context.names
    members: list[tuple[str, str]] = []
    given_rows = plan.collects is not None and has_axioms(plan, table)
    with out.aside(1) as lines:
        write_table_traits(context, table)
        _write_numbers(context, table, shared)
        if given_rows:
            out.line("GivenRows given_rows;")
            members.append(("GivenRows", "given_rows"))
        for index in context.by_key.get(table.key, ()):
            kind, by = f"Index<{len(index.by)}>", names.by(index.number)
            out.line(f"{kind} {by};  // {context.index_text(index)}")
            members.append((kind, by))
        members += _write_arrays(context, table)
        if has_axioms(plan, table):
            out.line(f"Relation<facts_{names.table[table.key]}, semiring> axioms;")
        if table.updates:
            out.line(f"const value_t nothing = {context.zero(table)};  // an update that is none")
    return lines, members


def _write_numbers(context: ClassContext, table: TableLayout, shared: bool) -> None:
    """The numbers of a table and its stage; where it shares its type, also where the parts of its stage are."""
    out, plan = context.out, context.plan
    if not shared:
        own = f", stage = {plan.stage_of[table.key].number}" if table.key in plan.stage_of else ""
        out.line(f"static constexpr int32_t number = {table.number}{own};")
        return
    out.line("const int32_t number, stage;")
    for part in parts_of(plan, plan.stage_of[table.key]):
        out.line(f"void* {part} = nullptr;", "that of its stage")


def _type_of(context: ClassContext, table: TableLayout, own: str, lines: tuple[str, ...]) -> str:
    """The type of a table that may share it: its own, or that of the first one that is alike."""
    if holds_back(context.plan, table) or any(asked(context, table) for asked in ROW_TRAITS.values()):
        return own
    return context.types.setdefault((*lines, *context.keys_of_indexes(table)), own)


def _write_relation(context: ClassContext, table: TableLayout, account: str) -> None:
    """The member of a table of facts: where their rows are, and what there is by row."""
    out, plan, name = context.out, context.plan, context.names.table[table.key]
    relation, indexes = f"Relation<facts_{name}, semiring>", context.by_key.get(table.key, ())
    if indexes:
        out.open(f"struct relation_{name} : {relation}")
        for index in indexes:
            by = context.names.by(index.number)
            out.line(f"const Grouping<{len(index.by)}>& {by}() const {{ return facts()->{by}; }}")
        out.close("};")
        relation = f"relation_{name}"
    if plan.changes is not None:
        out.line(f"{relation} old_{name};")
    if not any(members_of(context, table)) and plan.collects is None:
        out.line(f"{relation} {name};")
        return
    out.open(f"struct table_{name} : {relation}")
    out.line(f"static constexpr uint32_t number = {table.number};")
    members = [("GivenRows", "given_rows")] if plan.collects is not None else []
    if members:
        out.line("GivenRows given_rows;")
    members += _write_arrays(context, table)
    out.close(f"}} {name}{{{', '.join(['{}', *(f'{member}({account})' for member, _ in members)])}}};")


def _write_arrays(context: ClassContext, table: TableLayout) -> list[tuple[str, str]]:
    """The arrays of a table; returns their types and names."""
    arrays = []
    for member in members_of(context, table):
        context.out.line(f"{member.type} {member.name};", member.note)
        arrays.append((member.type, member.name))
    return arrays


def write_constructor(context: ClassContext, last: Callable[[], None] = lambda: None) -> None:
    """The constructor, which opens all tables; `last` writes further statements of it."""
    out, groups = context.out, context.groups()
    count = len(context.names.weight_values)
    numbers = " numbers" if count else ""
    held = "".join(f", tables{k}(&account)" for k in range(len(groups)) if len(groups) > 1)
    out.open(
        f"DYNAGRAD_STEP program(World* w, FactTable* const* facts, void* const* weights, const uint64_t*{numbers}) : "
        f"ChartBase(w){held}"
    )
    if context.goes_back:
        out.line("recording = true;  // for C++ programs, too")
    if len(groups) == 1:
        for table in groups[0]:
            _open(context, table)
    else:
        for k in range(len(groups)):
            out.line(f"open{k}(facts, weights);")
    if count:
        out.line(f"for (int64_t i = 0; i < {count}; i++) weight.push(semiring::read(numbers + i * semiring::words));")
    if count and context.plan.keeps_logs:
        out.line(f"for (int64_t i = 0; i < {count}; i++) weight_log.push(as_double(numbers[i * semiring::words]));")
    out.line(f"look_through(tables, &ReaderOf<semiring>::reader, {len(context.plan.tables)});")
    if context.externals:
        out.line("externals = functions_of_host;")
    for stage in context.plan.stages:
        _levels(context, stage)
    if context.plan.collects is None and any(map(has_agenda, context.plan.stages)):
        out.line("open_stages(*this);")
    last()
    out.close()
    for k, group in enumerate(groups if len(groups) > 1 else ()):
        out.open(f"DYNAGRAD_FIRED void open{k}(FactTable* const* facts, void* const* weights)")
        out.line("World* const w = world;")
        for table in group:
            _open(context, table)
        out.close()


def _open(context: ClassContext, table: TableLayout) -> None:
    """In the constructor: opens the facts of a table, and the storage of its items."""
    out, name, n = context.out, context.names.table[table.key], table.number
    if not is_facts(table):
        if has_axioms(context.plan, table):
            out.line(f"{name}.axioms.begin(tables[{n}], has_zero, facts[{n}], weights[{n}]);")
        _open_items(context, table)
        return
    out.line(f"{name}.begin(tables[{n}], has_zero, facts[{n}], weights[{n}]);")
    if context.plan.changes is not None:
        out.line(f"old_{name} = {name};")


def _open_items(context: ClassContext, table: TableLayout) -> None:
    out, name, n = context.out, context.names.table[table.key], table.number
    stage, where = context.plan.stage_of[table.key], ""
    places = repeats(stage) and not table.sink
    if is_dense(table):
        out.line(f"static constexpr Extent extents_{name}[] = {{{', '.join(_extents(table) or ['{}'])}}};")
        where = f"w->domain.data, {name}.order, extents_{name}, "
    out.line(f"{name}.begin(tables[{n}], {where}{_bool(keeps_updates(context.plan, table))}, {_bool(places)});")
    if table.updates:
        out.line(f"tables[{n}].pending = &{name}.pending, tables[{n}].nothing = &{name}.nothing;")
    if shares_types(context, stage):
        for part in parts_of(context.plan, stage):
            out.line(f"{name}.{part} = &{part}{stage.number};")


def _levels(context: ClassContext, stage: Stage) -> None:
    """In the constructor: the range of each form of the levels of a stage."""
    out, n = context.out, stage.number
    for f, form in enumerate(stage.forms):
        terms, counts = [], []
        for key in stage.keys:
            found = [f"{{LevelTerm::constant, {form.constant.get(key, 0)}}}"]
            for i, times in form.coefficients.get(key, ()):
                found.append(f"{{{_level_term(context, context.plan.tables[key], i, times)}}}")
            terms += found
            counts.append(str(len(found)))
        out.line(f"static constexpr LevelTerm terms{n}_{f}[] = {{{', '.join(terms)}}};")
        out.line(f"static constexpr int32_t counts{n}_{f}[] = {{{', '.join(counts)}}};")
        form_text = f"{{terms{n}_{f}, {len(counts)}, counts{n}_{f}}}"
        out.line(f"range_of({form_text}, low{n}_{f}, span{n}_{f});")


def _level_term(context: ClassContext, table: TableLayout, argument: int, times: int) -> str:
    """The `LevelTerm` of an argument that counts so many times."""
    extent, d = table.extents[argument], table.domains[argument]
    if context.plan.summary.domains[d].kind == "atom":
        return f"LevelTerm::rank, {times}, {d}"
    if extent is None:
        return f"LevelTerm::anywhere, {times}"
    return f"LevelTerm::code, {times}, {d}, {extent.below}, {extent.above}"


def _extents(table: TableLayout) -> list[str]:
    """The `Extent`s of the arguments of a dense table, in storage order."""
    found = []
    for i in table.order:
        extent = table.extents[i]
        below, above = (0, 0) if extent is None else (extent.below, extent.above)
        found.append(f"{{{table.domains[i]}, {below}, {above}}}")
    return found


def _bool(x: bool) -> str:
    return "true" if x else "false"
