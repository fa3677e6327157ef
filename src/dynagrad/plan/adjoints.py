"""The adjoints that a generated class keeps: which there are, how they are cleared, seeded and read.

A run that can be gone back over has an array of adjoints for each table. What is known of these arrays without the tape
stands here, and with it the functions of the class that are called before the pass and after it. The pass itself, and
the tape that it walks, are the business of `backward.py`, which fills the arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .combine import COPIES, KINDS, stated
from .model import Plan, Stage, Table
from .statements import Names

if TYPE_CHECKING:
    from .classes import ClassWriter


def head_kind(plan: Plan, table: Table) -> str:
    """sum, softmax, product, select or step: how contributions to an item of the table make its value."""
    if plan.semiring == "plain":
        return KINDS[table.aggregator]
    if stated(plan, table):
        return "step"
    return "select" if plan.selective else "sum"


def copy_kind(plan: Plan, table: Table) -> str:
    """The same for the facts of a table that were given more than once, which may join by an aggregator of their own:
    sum, softmax, product, select, step or shift.
    """
    if table.kind != "facts" or plan.rules.semiring is not None or plan.semiring == "plain":
        return head_kind(plan, table)
    return COPIES[plan.semiring][table.aggregator][1]


def stage_of(plan: Plan, table: Table) -> Stage:
    return next(s for s in plan.stages if table.key in s.keys)


def two_adjoints(plan: Plan, table: Table) -> bool:
    """Whether pending updates have adjoints of their own."""
    return table.updates or stage_of(plan, table).strategy == "sweep"


def keeps_total(plan: Plan, table: Table) -> bool:
    """Whether the value that contributions have their share of is kept apart: each round of a sweep has another."""
    return head_kind(plan, table) == "softmax" and stage_of(plan, table).strategy == "sweep"


def update_adjoint(plan: Plan, names: Names, table: Table) -> str:
    """The array with the adjoints of updates to a head."""
    return f"{'ga' if two_adjoints(plan, table) else 'g'}_{names.table[table.key]}"


def posteriors(plan: Plan) -> bool:
    """Whether adjoints are kept with respect to log weights: in `log`, where every item becomes final at once."""
    derivatives = plan.derivatives
    if plan.semiring != "log" or derivatives is None or derivatives.order or derivatives.outside:
        return False
    return all(stage.final for stage in plan.stages)


def cells(writer: ClassWriter, table: Table) -> str:
    """How many cells the arrays of a table have."""
    name = writer.names.table[table.key]
    return f"{name}.bound()" if table.kind != "facts" else f"{name}.rows()"


# -- before the pass and after it --------------------------------------------------------------------------------------


def write_clear(writer: ClassWriter) -> None:
    """`adjoints(room)`: all adjoints zero, or given back."""
    plan, out = writer.plan, writer.out
    out.line("int64_t saved_at = 0, from_at = 0;")
    out.open("void adjoints(bool room)")
    for table in [*writer.facts, *writer.derived]:
        name = writer.names.table[table.key]
        size = f"room ? {cells(writer, table)} + 8 : 0"
        arrays = [f"g_{name}"]
        if table.kind != "facts":
            if two_adjoints(plan, table):
                arrays.append(f"ga_{name}")
            if stage_of(plan, table).strategy == "sweep":
                arrays.append(f"gt_{name}")
            if keeps_total(plan, table):
                out.line(f"total_{name}.zeros({size});")
            if head_kind(plan, table) == "select":
                out.line(f"wait_{name}.filled({size}, nowhere);")
                out.line(f"aim_{name}.zeros({size});")
            if posteriors(plan):
                out.line(f"h_{name}.zeros({size});")
            if writer.has_axioms(table):
                out.line(f"g_axioms_{name}.zeros(room ? axioms_{name}.rows() : 0);")
        for array in arrays:
            out.line(f"{array}.zeros({size});")
    out.close()
    out.line()


def _order(table: Table) -> str:
    stored = table.order if table.kind == "dense" else range(table.arity)
    return ", ".join(f"a[{i}]" for i in stored)


def write_readers(writer: ClassWriter) -> None:
    """`seed`, which gives an item its cotangent, and what reads adjoints: of an item, of all items, of rows."""
    plan, out = writer.plan, writer.out
    tables = [*writer.facts, *writer.derived]

    def total(table: Table) -> str:
        name = writer.names.table[table.key]
        if table.kind == "facts":
            return f"g_{name}"
        if stage_of(plan, table).strategy == "sweep":
            return f"gt_{name}"
        return update_adjoint(plan, writer.names, table)

    def switch(head: str, lines: list[tuple[Table, str]], otherwise: str) -> None:
        out.open(head)
        out.open("switch (table)")
        for table, text in lines:
            out.line(f"case {table.number}: {text}")
        out.close()
        out.line(otherwise)
        out.close()

    narrow = plan.selective or plan.semiring == "plain" or posteriors(plan)
    out.open(
        "static bool seed_at(adjoint_t* g, const auto& value, int64_t cell, const uint64_t* cotangent, bool whole)"
    )
    out.line("if (cell < 0) return false;")
    if narrow:
        out.line("(void)whole;")
        out.line("g[cell] = back::gather(g[cell], back::start(cotangent, value[cell]));")
    else:  # for an outside value the root's adjoint is one, whatever the root's scale
        out.line("g[cell] = back::gather(g[cell], whole ? semiring::one() : back::start(cotangent, value[cell]));")
    out.line("return true;")
    out.close()
    switch(
        "int64_t seed(int64_t table, const int32_t* a, const uint64_t* cotangent, int64_t whole)",
        [
            (
                t,
                f"return seed_at(g_{writer.names.table[t.key]}.data, {_values(writer, t)}, "
                f"{writer.names.table[t.key]}.find({_order(t)}), cotangent, whole);",
            )
            for t in tables
        ],
        "return (void)a, (void)cotangent, (void)whole, 0;",
    )
    outer = _finish() if narrow else "semiring::write(g[cell], words)"
    out.open("static int64_t read_at(const adjoint_t* g, const auto& value, int64_t cell, uint64_t* words, bool whole)")
    out.line("if (cell < 0) return 0;")
    out.line(f"if (whole) {outer};")
    out.line(f"else {_finish()};")
    out.line("return 1;")
    out.close()
    switch(
        "int64_t adjoint(int64_t table, const int32_t* a, uint64_t* words, int64_t whole) const",
        [
            (
                t,
                f"return read_at({total(t)}.data, {_values(writer, t)}, "
                f"{writer.names.table[t.key]}.find({_order(t)}), words, whole);",
            )
            for t in tables
        ],
        "return (void)a, (void)words, (void)whole, 0;",
    )
    out.open(
        "template <class T> static int64_t adjoints_of(const T& t, const adjoint_t* g, uint64_t* words, int64_t room)"
    )
    out.line("int64_t count = 0;")
    out.open("for (int64_t c = t.next(0); c >= 0; c = t.next(c + 1), count++)")
    out.line("if (count < room) back::finish(g[c], t.value[c], words + count * semiring::adjoint_words);")
    out.close()
    out.line("return count;")
    out.close()
    switch(
        "int64_t adjoints_of_items(int64_t table, uint64_t* words, int64_t room) const",
        [
            (t, f"return adjoints_of({writer.names.table[t.key]}, {total(t)}.data, words, room);")
            for t in writer.derived
        ],
        "return (void)words, (void)room, 0;",
    )
    # of each row as it was given: rows that were merged into one share its adjoint
    out.open(
        "template <class F, class R> void rows_of(const F* facts, const R& relation, const adjoint_t* g, "
        "const uint64_t* given, uint64_t* words, bool selects, bool multiplies, bool shifts, bool shares) const"
    )
    out.line("const int64_t copies = facts->given - facts->rows;")
    if posteriors(plan):
        out.line("if (facts->in_order) return (void)memcpy((void*)words, g, facts->rows * sizeof(double));")
    out.line("Array<uint8_t> taken;")
    out.line("if (selects) taken.zeros(facts->rows);")
    if writer.plain:
        out.line("Factors<semiring> factors{nullptr};")
        out.open("for (int64_t n = 0; n < facts->given && multiplies && copies; n++)")
        out.line(
            "factors.add(facts->row_of[n], given ? semiring::read(given + n * semiring::words) : semiring::one());"
        )
        out.close()
    out.open("for (int64_t n = 0; n < facts->given; n++)")
    out.line("const int64_t row = facts->row_of[n];")
    out.line("const value_t x = given ? semiring::read(given + n * semiring::words) : semiring::one();")
    out.line("adjoint_t own = g[row];")
    out.open("if (selects)")  # the first of several equal rows is the one that was used
    out.line("if (taken[row] || semiring::primal(x) != semiring::primal(relation.value[row])) own = {};")
    out.line("else taken[row] = 1;")
    out.close()
    if posteriors(plan):  # a row that was merged into another has its share of the weight
        out.line("if (copies && !shifts) own = Posterior::of(Posterior::share(own, relation.value[row]), x);")
    if writer.plain:
        out.line("if (multiplies && copies) own = back::scale(own, factors.others(row, x));")
        out.line("if (shares && copies) own = semiring::share(own, x, relation.value[row]);")
    out.line("(void)relation, (void)copies, (void)multiplies, (void)shares;")
    # a copy that shifts the log of the others has the derivative of the whole, which is by the log of the whole
    out.line("back::finish(own, shifts ? relation.value[row] : x, words + n * semiring::adjoint_words);")
    out.close()
    out.close()
    lines = []
    for t in tables:
        if t.kind != "facts" and not writer.has_axioms(t):
            continue
        name = writer.names.table[t.key]
        kind = copy_kind(plan, t)
        member = name if t.kind == "facts" else f"axioms_{name}"
        flags = ", ".join(str(kind == each).lower() for each in ("select", "product", "shift", "softmax"))
        text = f"rows_of({member}.facts, {member}, g_{member}.data, given, words, {flags}); break;"
        if kind == "step":
            text = f"memset((void*)words, 0, {member}.facts->given * semiring::adjoint_words * 8); break;"
        lines.append((t, text))
    switch(
        "void adjoints_of_rows(int64_t table, const uint64_t* given, uint64_t* words) const",
        lines,
        "(void)given, (void)words;",
    )


def _values(writer: ClassWriter, table: Table) -> str:
    name = writer.names.table[table.key]
    return f"{name}.value" if table.kind == "facts" else f"{name}.value.data"


def _finish() -> str:
    """From adjoint to derivative, at `cell`."""
    return "back::finish(g[cell], value[cell], words)"
