"""The part of a generated class that is for looking at it from outside: facts in, items and values out, by number.

What Python (through `abi.hpp`) or a C++ program asks for names a predicate by the number of its table; each function
here is a switch over those numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .combine import TRUTHS
from .model import Table

if TYPE_CHECKING:
    from .classes import ClassWriter


def _switch(writer: ClassWriter, head: str, tables: Sequence[Table], body: str, otherwise: str) -> None:
    out = writer.out
    out.open(head)
    if tables:
        out.open("switch (table)")
        for table in tables:
            name = writer.names.table[table.key]
            stored = table.order if table.kind == "dense" else range(table.arity)
            arguments = ", ".join(f"a[{i}]" for i in stored)
            order = ", ".join([*(str(i) for i in stored), "0"])
            member = f"axioms_{name}" if table.kind != "facts" and "facts_new" in head else name
            out.line(
                f"case {table.number}: "
                + body.format(name=name, arguments=arguments, order=order, n=table.arity, member=member)
            )
        out.close()
    out.line(otherwise)
    out.close()


def write_access(writer: ClassWriter) -> None:
    """Everything that `abi.hpp` and the C++ facade ask of a program."""
    out = writer.out
    facts = [*writer.facts, *(t for t in writer.derived if writer.has_axioms(t))]
    _switch(
        writer,
        "static void* facts_new(int64_t table, dynagrad::Failure& failure)",
        facts,
        "return dynagrad::blank<facts_{name}>(failure);",
        "return (void)failure, nullptr;",
    )
    out.open("static void load(auto* facts, World* world, const int32_t* const* columns, int64_t rows)")
    out.line("facts->load(columns, rows);")
    out.line("facts->index(world);")
    out.close()
    _switch(
        writer,
        "static void facts_load(World* world, int64_t table, void* facts, const int32_t* const* columns, int64_t rows)",
        facts,
        "return load((facts_{name}*)facts, world, columns, rows);",
        "(void)world, (void)facts, (void)columns, (void)rows;",
    )
    _switch(
        writer,
        "static void facts_free(int64_t table, void* facts)",
        facts,
        "return dynagrad::dispose((facts_{name}*)facts);",
        "(void)facts;",
    )
    out.open("static void weigh(int64_t table, const void* facts, const uint64_t* words, Weights<semiring>& weights)")
    if facts:
        out.open("switch (table)")
        for table in facts:
            name = writer.names.table[table.key]
            how = ", ".join([f"plus_{name}", *_how_copies_join(writer, table)])
            out.line(f"case {table.number}: ((const facts_{name}*)facts)->weigh(weights, words, {how}); break;")
        out.close()
    out.line("(void)table, (void)facts, (void)words, (void)weights;")
    out.close()
    out.open("template <class T> int64_t get_from(const T& t, int64_t cell, uint64_t* words) const")
    out.line("if (cell < 0) return 0;")
    out.line("semiring::write(t.value[cell], words);")
    out.line("return 1;")
    out.close()
    _switch(
        writer,
        "int64_t get(int64_t table, const int32_t* a, uint64_t* words) const",
        [*writer.facts, *writer.derived],
        "return get_from({name}, {name}.find({arguments}), words);",
        "return (void)a, (void)words, 0;",
    )
    out.open("int64_t fact(int64_t table, const int32_t* a, uint64_t* words) const")
    if facts:
        out.open("switch (table)")
        for table in facts:
            name = writer.names.table[table.key]
            member = name if table.kind == "facts" else f"axioms_{name}"
            arguments = ", ".join(f"a[{i}]" for i in range(table.arity))
            out.line(f"case {table.number}: return get_from({member}, {member}.find({arguments}), words);")
        out.close()
    out.line("return (void)a, (void)words, 0;")
    out.close()
    _switch(
        writer,
        "int64_t locate(int64_t table, const int32_t* a)",
        writer.derived,
        "return {name}.inside({arguments}) ? {name}.locate({arguments}) : -1;",
        "return (void)a, -1;",
    )
    out.open(
        "template <class T> void arguments_from(const T& t, int64_t cell, const int* order, int n, int32_t* out) const"
    )
    out.line("int32_t stored[T::arity ? T::arity : 1];")
    out.line("t.arguments(cell, stored);")
    out.line("for (int i = 0; i < n; i++) out[order[i]] = stored[i];")
    out.close()
    out.open("void arguments(int64_t table, int64_t cell, int32_t* out) const")
    out.open("switch (table)")
    for table in writer.derived:
        name = writer.names.table[table.key]
        stored = table.order if table.kind == "dense" else range(table.arity)
        text = ", ".join([*(str(i) for i in stored), "0"])
        call = f"arguments_from({name}, cell, order, {table.arity}, out)"
        out.line(f"case {table.number}: {{ const int order[] = {{{text}}}; return {call}; }}")
    for table in writer.facts:
        name = writer.names.table[table.key]
        columns = " ".join(f"out[{i}] = {name}.column({i})[cell];" for i in range(table.arity))
        out.line(f"case {table.number}: {columns} return;")
    out.close()
    out.line("(void)cell, (void)out;")
    out.close()
    out.open(
        "template <class T> int64_t items_from(const T& t, const int* order, int n, int32_t* arguments, "
        "uint64_t* words, int64_t room) const"
    )
    out.line("int64_t count = 0;")
    out.open("for (int64_t c = t.next(0); c >= 0; c = t.next(c + 1), count++)")
    out.line("if (count >= room) continue;")
    out.line("arguments_from(t, c, order, n, arguments + count * n);")
    out.line("semiring::write(t.value[c], words + count * semiring::words);")
    out.close()
    out.line("return count;")
    out.close()
    out.open(
        "template <class T> int64_t rows_from(const T& t, int n, int32_t* arguments, uint64_t* words, "
        "int64_t room) const"
    )
    out.open("for (int64_t r = 0; r < t.rows() && r < room; r++)")
    out.line("for (int k = 0; k < n; k++) arguments[r * n + k] = t.column(k)[r];")
    out.line("semiring::write(t.value[r], words + r * semiring::words);")
    out.close()
    out.line("return t.rows();")
    out.close()
    out.open("int64_t items(int64_t table, int32_t* arguments, uint64_t* words, int64_t room) const")
    out.open("switch (table)")
    for table in writer.facts:
        name = writer.names.table[table.key]
        out.line(f"case {table.number}: return rows_from({name}, {table.arity}, arguments, words, room);")
    for table in writer.derived:
        name = writer.names.table[table.key]
        order = table.order if table.kind == "dense" else range(table.arity)
        text = ", ".join([*(str(i) for i in order), "0"])
        out.line(
            f"case {table.number}: {{ const int order[] = {{{text}}}; "
            f"return items_from({name}, order, {table.arity}, arguments, words, room); }}"
        )
    out.close()
    out.line("return (void)arguments, (void)words, (void)room, 0;")
    out.close()
    write_bounds(writer)
    out.open(
        "template <class T> int64_t waiting_from(const T& t, const int* order, int n, bool apart, "
        "const value_t& zero, int32_t* arguments, uint64_t* words, int64_t room) const"
    )
    out.line("int64_t count = 0;")
    out.open("for (int64_t c = t.seen.next(0, t.bound()); c >= 0; c = t.seen.next(c + 1, t.bound()))")
    out.line("const value_t x = apart ? t.pending[c] : t.value[c];")
    out.line("if (t.popped.test(c) && (!apart || !memcmp(&x, &zero, sizeof x))) continue;")
    out.open("if (count < room)")
    out.line("arguments_from(t, c, order, n, arguments + count * n);")
    out.line("semiring::write(x, words + count * semiring::words);")
    out.close()
    out.line("count++;")
    out.close()
    out.line("return count;")
    out.close()
    out.open("int64_t waiting(int64_t table, int32_t* arguments, uint64_t* words, int64_t room) const")
    out.open("switch (table)")
    for table in writer.derived:
        name = writer.names.table[table.key]
        order = table.order if table.kind == "dense" else range(table.arity)
        text = ", ".join([*(str(i) for i in order), "0"])
        out.line(
            f"case {table.number}: {{ const int order[] = {{{text}}}; const value_t zero = {writer.zero(table)}; "
            f"return waiting_from({name}, order, {table.arity}, {str(table.updates).lower()}, zero, "
            "arguments, words, room); }"
        )
    out.close()
    out.line("return (void)arguments, (void)words, (void)room, 0;")
    out.close()


def write_bounds(writer: ClassWriter) -> None:
    """`bounds`: the error bound of each item's component, in the order of `items`, see `solving.py`."""
    out = writer.out
    tables = [t for t in writer.derived if writer.plan.bounded(t)]
    if not tables:
        return
    out.open("int64_t bounds(int64_t table, double* found, int64_t room) const")
    out.line("int64_t count = 0;")
    out.open("switch (table)")
    for table in tables:
        name = writer.names.table[table.key]
        out.open(f"case {table.number}:")
        out.open(f"for (int64_t c = {name}.next(0); c >= 0 && count < room; c = {name}.next(c + 1))")
        out.line(f"found[count++] = c < {name}_bound.size ? {name}_bound[c] : 0;")
        out.close()
        out.line("break;")
        out.close()
    out.close()
    out.line("return count;")
    out.close()


def _how_copies_join(writer: ClassWriter, table: Table) -> tuple[str, ...]:
    """What `weigh` is told of facts of one item beside plus: what each is taken as, and which cannot both be given."""
    as_it_is, never = "[](const value_t& v) { return v; }", "[](const value_t&, const value_t&) { return false; }"
    if writer.plain and table.aggregator in TRUTHS:
        return "[](const value_t& v) { return semiring::constant(semiring::primal(v) != 0); }", never
    if table.aggregator == "=":
        differ = "[](const value_t& a, const value_t& b) { return semiring::primal(a) != semiring::primal(b); }"
        return as_it_is, differ
    if writer.plan.semiring in ("plain", "real"):  # what is too large as a sum
        finite = "isfinite(semiring::primal(a)) && isfinite(semiring::primal(b))"
        both = f"plus_{writer.names.table[table.key]}(a, b)"
        differ = f"{finite} && !isfinite(semiring::primal({both}))"
        return as_it_is, f"[](const value_t& a, const value_t& b) {{ return {differ}; }}"
    return ()
