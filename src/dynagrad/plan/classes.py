"""The C++ class of a plan: tables, agendas, one function a rule and driver, and the loop over stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..rules.show import show
from ..rules.syntax import Variable
from . import adjoints, changing, components, convergence, linked, resolving, resting, solving
from .access import write_access, write_view, write_views
from .backward import (
    improves,
    record_contribution,
    record_pop,
    tape_bytes,
    write_backward,
    write_members,
    write_table_members,
)
from .combine import COMBINE, COPIES, JET_COMBINE, TRUTHS, may_excuse, not_nothing, stated
from .facade.text import comment
from .functions import INTEGERS
from .joins import term_variables
from .model import IndexPlan, Join, Passes, Plan, Stage, Table
from .policies import priority, prune
from .shapes import Shapes
from .statements import JoinWriter, Names, PatternScope, Scope, Writer, local, python_value
from .values import semiring_cxx

BUILT_IN = {
    "real": "Real",
    "plain": "Plain",
    "log": "Log",
    "viterbi": "Viterbi",
    "tropical": "Tropical",
    "boolean": "Boolean",
    "count": "Count",
}

# The same over numbers with derivatives along `order` directions.
JETS = {
    "real": "Jets<Real, {order}>",
    "plain": "PlainJets<{order}>",
    "log": "LogJets<{order}>",
    "viterbi": "SelectJets<Viterbi, {order}>",
    "tropical": "SelectJets<Tropical, {order}>",
    "expectation": "Jets<Expectation<{vector}>, {order}>",
}

AGENDAS = {"levels": "Levels", "solve": "Levels", "heap": "Heap", "queue": "Queue", "stack": "Stack"}
"""The agenda of each strategy that has one."""

GROUP = 100
"""Tables from which on a class is made of groups of them: LLVM takes more than linear time for long functions."""

LARGE_PROGRAM = 500
"""Rules from which on each becomes a function that is not inlined, so that compiling takes time in proportion."""


@dataclass(frozen=True)
class Generated:
    """The source, and what Python has to hand over at run time."""

    source: str
    names: Names
    constants: tuple[tuple[int | None, object], ...]  # by slot: domain (None: a term) and value
    functors: tuple[tuple[str, int], ...]  # by number
    weights: tuple[float | int, ...]  # by slot
    flags: tuple[str, ...] = ()  # for the compiler
    objects: tuple[str, ...] = ()  # the sources of what is linked to it
    prelude: str = ""  # the header that it includes first, if nothing stands before that


class ClassWriter:
    """Writes the class of one plan, piece by piece."""

    def __init__(self, plan: Plan, passes: Passes) -> None:
        self.plan, self.passes = plan, passes
        self.names = Names(plan)
        self.out = Writer()
        self.facts = [t for t in plan.tables.values() if t.kind == "facts"]
        self.derived = [t for t in plan.tables.values() if t.kind in ("dense", "hashed")]
        self.externals = [t for t in plan.tables.values() if t.kind == "external"]
        self.stage_of = {key: s for s in plan.stages for key in s.keys}
        self.plain = plan.semiring == "plain"
        shared = len(plan.rules.rules) >= LARGE_PROGRAM and not any(may_excuse(plan, t) for t in plan.tables.values())
        self.shapes = Shapes(plan, self.names, self.out) if shared else None
        self.calls: dict[tuple[int, int | None], str] = {}  # of joins that share a function, by rule and driver
        self.drives_of: dict[int, dict[str, list[Join]]] = {}
        self.row_heads = {j.rule.head.key for s in plan.stages for j in s.drives if j.vector is not None}
        for stage in plan.stages:
            by_driver = self.drives_of.setdefault(stage.number, {})
            for join in stage.drives:
                assert join.driver is not None
                by_driver.setdefault(join.rule.antecedents[join.driver].item.key, []).append(join)
        self.by_key: dict[str, list[IndexPlan]] = {}
        for index in plan.indexes:
            self.by_key.setdefault(index.key, []).append(index)

    # -- pieces

    @property
    def goes_back(self) -> bool:
        """Whether the class has a backward pass, and not only what that needs of a run."""
        return self.plan.adjoint and Passes.BACKWARD in self.passes

    def semiring_name(self) -> str:
        """The C++ type of the semiring."""
        name = self.plan.semiring
        if self.plan.order:
            return JETS[name].format(order=self.plan.order, vector=self.plan.vector)
        return f"Expectation<{self.plan.vector}>" if name == "expectation" else BUILT_IN.get(name, name)

    def semiring(self) -> list[str]:
        own = semiring_cxx(self.plan.user) if self.plan.user is not None and not self.plan.order else []
        return [*own, f"using semiring = {self.semiring_name()};"]

    def zero(self, table: Table) -> str:
        if not self.plain:
            return "semiring::zero()"
        zero = COMBINE[table.aggregator][1]
        return f"semiring::constant({zero})" if self.plan.order else zero

    def plus(self, table: Table, a: str, b: str) -> str:
        return f"plus_{self.names.table[table.key]}({a}, {b})"

    def write(self, embed: bool) -> str:
        plan, out = self.plan, self.out
        out.line("// Generated by Dynagrad from these rules:")
        out.line("//")
        for rule in plan.rules.rules:
            out.line(f"//   {comment(rule.text)}")
        out.line()
        if len(plan.rules.rules) >= LARGE_PROGRAM:
            out.line("#define DYNAGRAD_LARGE")
        if self._ordered:
            out.line("#include <stdio.h>")
        out.line("#include <dynagrad/chart.hpp>")
        if any(convergence.watches(plan, s) for s in plan.stages):
            out.line("#include <dynagrad/convergence.hpp>")
        if any(s.strategy == "solve" for s in plan.stages):
            out.line("#include <dynagrad/ground.hpp>")
            out.line("#include <dynagrad/adjoints.hpp>" if plan.adjoint else "#include <dynagrad/columns.hpp>")
            out.line("#include <dynagrad/closed.hpp>")
        if plan.resolves:
            out.line("#include <dynagrad/resolve.hpp>")
        if plan.order:
            out.line("#include <dynagrad/jets.hpp>")
        if plan.adjoint:
            out.line("#include <dynagrad/tape.hpp>")
        out.line()
        out.lines.extend(linked.declarations(plan, self.semiring_name()))
        start = len(out.lines)
        out.line("namespace {")
        out.line("using namespace dynagrad;")
        out.lines.extend(self.semiring())
        out.line("using value_t = semiring::Value;")
        if plan.adjoint:
            out.line(
                f"using back = {'Posterior' if adjoints.posteriors(plan) else 'semiring'};  // what adjoints are of"
            )
            out.line("using adjoint_t = back::Adjoint;")
        out.line()
        self._plus()
        for table in self.facts:
            self._facts(table)
        for table in self.derived:
            if self.has_axioms(table):
                self._facts(table)
        self._program()
        self.names.functions.write(out.lines, start)
        out.line("}  // namespace")
        if embed:
            out.line()
            out.line("#include <dynagrad/abi.hpp>")
        return "\n".join(out.lines) + "\n"

    def has_axioms(self, table: Table) -> bool:
        facts = self.plan.summary.facts.get(table.key)
        return facts is not None or self.plan.rules.predicates[table.key].input

    def _plus(self) -> None:
        for table in self.plan.tables.values():
            name = self.names.table[table.key]
            body = "semiring::plus(a, b)"
            if table.kind == "facts" and self.plan.semiring in COPIES and self.plan.rules.semiring is None:
                body = COPIES[self.plan.semiring][table.aggregator][0]
            if self.plain:
                body = JET_COMBINE[table.aggregator] if self.plan.order else COMBINE[table.aggregator][0]
            self.out.line(f"inline value_t plus_{name}(const value_t& a, const value_t& b) {{ return {body}; }}")
        self.out.line()

    def _facts(self, table: Table) -> None:
        """The fact table of a predicate, with the groupings that its scans need."""
        name, out = self.names.table[table.key], self.out
        indexes = self.by_key.get(table.key, ()) if table.kind == "facts" else ()
        if not indexes:
            out.line(f"using facts_{name} = Ungrouped<{table.arity}>;")
            out.line()
            return
        out.open(f"struct facts_{name} : Facts<{table.arity}>")
        for index in indexes:
            out.line(f"Grouping<{len(index.by)}> by{index.number}{{&account}};  // {self._index_text(index)}")
        out.line(f"static void index_rows(FactTable* t, World* w) {{ static_cast<facts_{name}*>(t)->group_rows(w); }}")
        out.open("void group_rows(World* world)")
        out.line("(void)world;")
        for index in indexes:
            self._grouping(table, index)
        out.close()
        out.close("};")
        out.line()

    def _index_text(self, index: IndexPlan) -> str:
        name = index.key.rsplit("/", 1)[0]
        pattern = ", ".join(show(t) for t in index.pattern)
        return comment(f"{name}({pattern}) by ({', '.join(index.by)})")

    def _simple(self, index: IndexPlan) -> bool:
        names = [t.name for t in index.pattern if isinstance(t, Variable)]
        return len(names) == len(index.pattern) == len(set(names))

    def _grouping(self, table: Table, index: IndexPlan) -> None:
        out = self.out
        if self._simple(index):
            columns = {t.name: i for i, t in enumerate(index.pattern) if isinstance(t, Variable)}
            keys = ", ".join([*(str(columns[v]) for v in index.by), "0"])
            out.line(f"static constexpr int32_t columns{index.number}[] = {{{keys}}};")
            out.line(f"group(by{index.number}, columns{index.number});")
            return
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
        scope = self._pattern_scope(table, index)
        for i, term in enumerate(index.pattern):
            scope.match(term, f"column[{i}][at]", table.domains[i])
        out.line("keep[at] = 1;")
        for k, variable in enumerate(index.by):
            out.line(f"key_column{k}[at] = {local(variable)};")
        out.close_to(base)
        out.close()
        out.line(f"const int32_t* keys[] = {{{', '.join([*key_columns, 'nullptr'])}}};")
        out.line(f"by{index.number}.build(keys, keep.data, rows);")
        out.close()

    def _pattern_scope(self, table: Table, index: IndexPlan) -> Scope:
        variables: dict[str, int | None] = {}
        for i, term in enumerate(index.pattern):
            if isinstance(term, Variable):
                variables[term.name] = table.domains[i]
        for term in index.pattern:
            for v in term_variables(term):
                variables.setdefault(v, None)
        return PatternScope(self.plan, self.names, variables, self.out)

    # -- the class

    def _program(self) -> None:
        out, plan = self.out, self.plan
        groups = self.groups()
        if len(groups) == 1:
            out.open("struct program : ChartBase")
            for table in groups[0]:
                self._members(table, "&account")
        else:
            for k, group in enumerate(groups):
                self._group(k, group)
            out.open(f"struct program : {', '.join(['ChartBase', *(f'tables{k}' for k in range(len(groups)))])}")
        for n, beam in enumerate(plan.rules.beams):
            if beam.item.key in plan.tables:
                out.line(f"Index<{len(beam.group)}> beam{n}{{&account}};")
        for stage in plan.stages:
            agenda = AGENDAS.get(stage.strategy)
            if agenda in ("Levels", "Heap"):
                ranked = agenda == "Heap" and stage.priority == "value" and plan.semiring == "user"
                agenda += f"<{_level_type(stage)}{', user::Rank' if ranked else ''}>"
            if stage.strategy == "solve":
                out.line(f"{_level_type(stage)} level{stage.number} = 0;  // of the block at hand")
                out.line(f"{_level_type(stage)} levels{stage.number} = 1;  // how many there are")
            if agenda:
                out.line(f"{agenda} agenda{stage.number}{{&account}};")
            for f in range(len(stage.forms)):
                out.line(f"int64_t low{stage.number}_{f} = 0, span{stage.number}_{f} = 1;")
        out.line("Arithmetic arithmetic;")
        out.line("Array<value_t> weight{&account};")
        if plan.keeps_logs:
            out.line("Array<double> weight_log{&account};")
        if self.externals:
            out.line(f"int32_t (*functions_of_host[{len(plan.tables)}])(const int32_t*, uint64_t*) = {{}};")
        out.line(f"TableView tables[{max(1, len(plan.tables))}];")
        out.line("bool has_zero = false;")
        members = len(out.lines)
        if plan.adjoint:
            write_members(self)
        resting.write_members(self)
        solving.write_members(self)
        if plan.resolves:
            resolving.write_members(self)
        convergence.write_members(self)
        out.line()
        self._constructor()
        self._helpers()
        if plan.changes is not None:
            (resolving if plan.resolves else changing).write_marks(self)
        for stage in plan.stages:
            if stage.strategy == "solve":
                solving.write_items(self, stage)
        for table in self.derived:
            self._add(table)
        for stage in plan.stages:
            start = len(out.lines)
            self._joins(stage)
            if Passes.FORWARD not in self.passes and stage.strategy != "solve":
                del out.lines[start:]  # they were written for what they have in common with the way back: constants
            if stage.strategy == "solve":
                solving.write_stage(self, stage)
                components.write_solve(self, stage)
                if plan.resolves:
                    resolving.write_stage(self, stage)
            if Passes.FORWARD in self.passes:
                resting.write_settle(self, stage)
                convergence.write_refine(self, stage)
                self._begin(stage)
                if stage.strategy == "sweep":
                    self._sweep(stage)
        if Passes.FORWARD in self.passes:
            self._run()
        if plan.changes is not None:
            (resolving if plan.resolves else changing).write_changes(self)
        if self.goes_back:
            write_backward(self)
        write_access(self)
        self._rule_weights()
        if self.names.functions:
            out.lines.insert(members, "  Functions functions{this};  // what functions of values share")
        out.close("};")

    def groups(self) -> list[list[Table]]:
        """The tables: all together, or where they are very many in groups, so that no function is about all of them."""
        tables = [*self.facts, *self.derived]
        if len(tables) <= GROUP:
            return [tables]
        return [tables[i : i + GROUP] for i in range(0, len(tables), GROUP)]

    def _group(self, k: int, group: Sequence[Table]) -> None:
        """Some of very many tables: a base of the class, which makes and gives back their members."""
        out = self.out
        out.open(f"struct tables{k}")
        out.line("Account* held;")
        for table in group:
            self._members(table, "held")
        out.line(f"__attribute__((noinline)) explicit tables{k}(Account* a) : held(a) {{}}")
        out.line(f"__attribute__((noinline)) ~tables{k}() {{}}")
        out.close("};")
        out.line()

    def _members(self, table: Table, account: str) -> None:
        """What the class has of a table, with what a way back needs of it."""
        out, plan, name = self.out, self.plan, self.names.table[table.key]
        if table.kind == "facts":
            out.open(f"struct relation_{name} : Relation<facts_{name}, semiring>")
            for index in self.by_key.get(table.key, ()):
                out.line(
                    f"const Grouping<{len(index.by)}>& by{index.number}() const {{ return facts()->by{index.number}; }}"
                )
            out.close(f"}} {name}{f', old_{name}' if plan.changes is not None else ''};")
        else:
            kind = "Dense" if table.kind == "dense" else "Hashed"
            order = ", ".join(str(i + 1) for i in table.order)
            stored = f"  // arguments stored in the order {order}" if table.kind == "dense" and table.arity else ""
            out.line(f"{kind}<semiring, {table.arity}> {name}{{{account}}};{stored}")
            if table.updates:
                out.line(f"const value_t nothing_{name} = {self.zero(table)};  // an update that is none")
            if self.has_axioms(table):
                out.line(f"Relation<facts_{name}, semiring> axioms_{name};")
            for index in self.by_key.get(table.key, ()):
                text = self._index_text(index)
                out.line(f"Index<{len(index.by)}> {name}_by{index.number}{{{account}}};  // {text}")
            if may_excuse(plan, table):
                out.line(f"Array<uint8_t> excused_{name}{{{account}}};  // infinite, and not of its own making")
            if plan.changes is not None:
                out.line(f"Array<uint8_t> marked_{name}{{{account}}}, indexed_{name}{{{account}}};")
        if plan.adjoint:
            write_table_members(self, table, account)

    def _joins(self, stage: Stage) -> None:
        """The functions of a stage's rules, and those that pop its items."""
        for join in stage.fires:
            self._fire(stage, join)
        for join in stage.drives:
            self.drive(join)
        if stage.strategy in AGENDAS:
            for key in stage.keys:
                if not self.plan.tables[key].sink:
                    self._pop(stage, self.plan.tables[key])

    def _constructor(self) -> None:
        out, groups = self.out, self.groups()
        held = "".join(f", tables{k}(&account)" for k in range(len(groups)) if len(groups) > 1)
        out.open(
            "program(World* w, FactTable* const* facts, void* const* weights, const uint64_t* numbers) : "
            f"ChartBase(w){held}"
        )
        out.line("(void)facts, (void)weights, (void)numbers;")
        if self.goes_back:
            out.line("recording = true;")
        if len(groups) == 1:
            for table in groups[0]:
                self._open(table)
        else:
            for k in range(len(groups)):
                out.line(f"open{k}(facts, weights);")
        self.weights_line = len(out.lines)
        out.line("WEIGHTS")
        write_views(self)
        for n, beam in enumerate(self.plan.rules.beams):
            if beam.item.key in self.plan.tables:
                out.line(f"beam{n}.open();")
        for stage in self.plan.stages:
            self._levels(stage)
        out.close()
        for k, group in enumerate(groups if len(groups) > 1 else ()):
            out.open(f"DYNAGRAD_FIRED void open{k}(FactTable* const* facts, void* const* weights)")
            out.line("World* const w = world;")
            out.line("(void)facts, (void)weights, (void)w;")
            for table in group:
                self._open(table)
            out.close()
        out.line()

    def _open(self, table: Table) -> None:
        """In the constructor: the facts of a table, and room for its items."""
        out, name, n = self.out, self.names.table[table.key], table.number
        if table.kind == "facts" or self.has_axioms(table):
            member = name if table.kind == "facts" else f"axioms_{name}"
            out.line(f"{member}.open(facts[{n}], (const Weights<semiring>*)weights[{n}]);")
            out.line(f"has_zero = has_zero || {member}.has_zero;")
            if self.plan.changes is not None and table.kind == "facts":
                out.line(f"old_{name} = {name};")
        if table.kind != "facts":
            stage = self.stage_of[table.key]
            places = stage.strategy in ("heap", "queue", "stack", "sweep") and not table.sink
            updates = table.updates or stage.strategy == "sweep"
            if table.kind == "dense":
                out.line(f"const Range ranges_{name}[] = {{{', '.join(_ranges(table) or ['Range{}'])}}};")
                out.line(f"{name}.open(ranges_{name}, {_bool(updates)}, {_bool(places)});")
            else:
                out.line(f"{name}.open(nullptr, {_bool(updates)}, {_bool(places)});")
            for index in self.by_key.get(table.key, ()):
                out.line(f"{name}_by{index.number}.open();")
        write_view(self, table)
        if self.plan.adjoint:
            adjoints.write_view(self, table)
        if table.kind == "facts" or self.has_axioms(table):
            self._one_value(table)

    def _one_value(self, table: Table) -> None:
        """In the constructor: facts of one item that do not go together, as two values under `=`."""
        if table.aggregator != "=" and self.plan.semiring not in ("plain", "real"):
            return
        status = "two_values" if table.aggregator == "=" else "bad_value"
        name, n = self.names.table[table.key], table.number
        cell = "at"
        if table.kind != "facts":
            order = table.order if table.kind == "dense" else range(table.arity)
            cell = f"{name}.locate({', '.join(f'axioms_{name}.column({i})[at]' for i in order)})"
        self.out.line(
            f"if (const int64_t at = ((Weights<semiring>*)weights[{n}])->differs; at >= 0) fail({status}, {n}, {cell});"
        )

    def _levels(self, stage: Stage) -> None:
        """The range of each form, and the agenda opened on it."""
        out = self.out
        for f, form in enumerate(stage.forms):
            out.open("")
            out.line("int64_t low = INT64_MAX, high = INT64_MIN;")
            for key in stage.keys:
                table = self.plan.tables[key]
                lows, highs = [[str(form.constant.get(key, 0))] for _ in range(2)]
                for i, c in form.coefficients.get(key, ()):
                    d, extent = table.domains[i], table.extents[i]
                    below, above = (extent.below, extent.above) if extent is not None else (0, 0)
                    low = f"(w->domain[{d}].low + ({below}))"
                    high = f"(w->domain[{d}].low + w->domain[{d}].count - 1 + ({above}))"
                    if self.plan.summary.domains[d].kind == "atom":
                        low, high = "(int64_t)0", f"(w->domain[{d}].count - 1)"
                    elif extent is None:
                        low, high = "(int64_t)-(1 << 30)", "(int64_t)(1 << 30)"
                    lows.append(f"{c} * {low if c > 0 else high}")
                    highs.append(f"{c} * {high if c > 0 else low}")
                out.line(f"const int64_t low_{self.names.table[key]} = {' + '.join(lows)};")
                out.line(f"const int64_t high_{self.names.table[key]} = {' + '.join(highs)};")
                out.line(f"if (low_{self.names.table[key]} < low) low = low_{self.names.table[key]};")
                out.line(f"if (high_{self.names.table[key]} > high) high = high_{self.names.table[key]};")
            out.line(f"low{stage.number}_{f} = low, span{stage.number}_{f} = high >= low ? high - low + 1 : 1;")
            out.close()
        if stage.strategy in ("levels", "solve"):
            spans = [f"({_level_type(stage)})span{stage.number}_{f}" for f in range(len(stage.forms))]
            out.line(f"agenda{stage.number}.open({' * '.join(spans) or '1'});")
            if stage.strategy == "solve":
                out.line(f"levels{stage.number} = {' * '.join(spans) or '1'};")
        elif stage.strategy == "heap":
            out.line(f"agenda{stage.number}.open();")
            for table in self.plan.tables.values():
                held = table.key in stage.keys and not table.sink
                place = f"&{self.names.table[table.key]}.place" if held else "nullptr"
                out.line(f"agenda{stage.number}.places.push({place});")
        elif stage.strategy in ("queue", "stack"):
            out.line(f"agenda{stage.number}.open();")

    @property
    def _ordered(self) -> bool:
        """Whether a user says which values are better, so that it may not be what plus selects by."""
        return self.plan.semiring == "user" and self.plan.selective

    def _write_order(self) -> None:
        """`no_order_at`: what a user's plus and less say of two values does not fit together. Tells the values."""
        out = self.out
        out.line("char both[64 * semiring::words + 1] = {};")
        out.open("void no_order_at(int64_t table, int64_t cell, const value_t& a, const value_t& b)")
        out.line("int64_t at = 0;")
        for name in "ab":
            out.line(f'for (double x : {name}.v) at += snprintf(both + at, sizeof both - at, "%a ", x);')
        out.line("message = both;")
        out.line("fail(no_order, table, cell);")
        out.close()
        out.line()

    def _helpers(self) -> None:
        out = self.out
        if self._ordered:
            self._write_order()
        if not self.externals:
            return
        out.open("bool external(int table, const int32_t* arguments, value_t& value)")
        out.line("uint64_t words[semiring::words] = {};")
        out.line("const int32_t answer = externals[table] ? externals[table](arguments, words) : -1;")
        out.line("if (answer < 0) fail(host_error, table, -1);")
        out.line("if (answer > 0) value = semiring::read(words);")
        out.line("return answer > 0;")
        out.close()
        out.line()

    def _parameters(self, table: Table) -> str:
        return "".join(f", int32_t a{i}" for i in range(table.arity))

    def stored(self, table: Table) -> str:
        order = table.order if table.kind == "dense" else range(table.arity)
        return ", ".join(f"a{i}" for i in order)

    def level(self, stage: Stage, table: Table) -> str:
        """The level of an item with arguments a0, a1, ..."""
        text = "0"
        for f, form in enumerate(stage.forms):
            terms = [f"{form.constant.get(table.key, 0)} - low{stage.number}_{f}"]
            for i, c in form.coefficients.get(table.key, ()):
                code = f"a{i}"
                if self.plan.summary.domains[table.domains[i]].kind == "atom":
                    code = f"(*world->rank[{table.domains[i]}])[a{i}]"
                terms.append(f"{'+' if c > 0 else '-'} {abs(c)} * (int64_t){code}".replace(" 1 * ", " "))
            value = " ".join(terms)
            text = f"({value})" if f == 0 else f"({text} * span{stage.number}_{f} + ({value}))"
            if f == 0 and len(stage.forms) > 1:
                text = f"({_level_type(stage)}){text}"
        return text

    def _add(self, table: Table) -> None:
        """The functions that give an item a contribution and put it on the agenda."""
        out, stage = self.out, self.stage_of[table.key]
        name = self.names.table[table.key]
        parameters = self._parameters(table)
        arguments = "".join(f", a{i}" for i in range(table.arity))
        agenda = stage.strategy in AGENDAS and not table.sink
        if agenda:
            out.open(f"DYNAGRAD_RULE void push_{name}(int64_t cell{parameters})")
            out.line("".join(f"(void)a{i}; " for i in range(table.arity)) or "(void)cell;")
            handle = f"handle({table.number}, cell)"
            if stage.strategy == "solve":
                at = solving.line_of(self, stage, table)
                out.line(f"if (block{stage.number}.has(grown(node_{name}, {at}, 0u))) return;  // it has its turn")
            if stage.strategy in ("levels", "solve"):
                out.line(f"agenda{stage.number}.push({handle}, {self.level(stage, table)});")
            elif stage.strategy == "heap":
                priority(self, stage, table)
                first = resting.first(self.plan, table, name)
                out.line(f"agenda{stage.number}.push({handle}, {self.level(stage, table)}, {first});")
            else:
                out.line(f"if ({name}.place[cell]) return;")
                out.line(f"{name}.place[cell] = 1;")
                out.line(f"agenda{stage.number}.push({handle});")
            out.close()
        if table.key in self.row_heads:
            out.open(f"void arrive_{name}(int64_t cell)")
            out.line(f"{name}.items++, report.items++;")
            self.unpack(table)
            out.line(f"push_{name}(cell{arguments});")
            out.close()
        leading = ", ".join([*(f"int32_t a{i}" for i in range(table.arity)), "value_t x"])
        out.open(f"DYNAGRAD_RULE void add_{name}({leading})")
        if self.plain and table.aggregator in TRUTHS:
            out.line("x = semiring::constant(semiring::primal(x) != 0);")
        if self.plan.resolves:
            out.line(f"if (!{name}.inside({self.stored(table)})) return;")
        out.line(f"const int64_t cell = {name}.locate({self.stored(table)});")
        if self.plan.resolves:
            out.line(f"if (!block{stage.number}.has(grown(node_{name}, cell, 0u))) return;  // it stays as it is")
        if stated(self.plan, table):
            out.line(f"if ({name}.seen.test(cell)) return;  // it is worth one, however often it is derived")
            out.line("x = semiring::one();")
        if stage.unknowns and not table.sink:
            at = solving.line_of(self, stage, table)
            out.line(f"if (grown(place_{name}, {at}, 0u)) return;  // it is solved, and this is part of the solution")
        improving = self.plan.selective and agenda and table.updates

        def agree(here: str, when: str) -> None:
            """The run goes by plus in one place and by less in another; they must say the same."""
            if self._ordered:
                out.line(
                    f"if ({when}__builtin_expect(!semiring::agree({here}, x), 0)) "
                    f"return no_order_at({table.number}, cell, {here}, x);"
                )

        if improving:  # most updates of a best-first search come too late
            agree(f"{name}.value[cell]", f"{name}.popped.test(cell) && ")
            out.line(f"if ({name}.popped.test(cell) && !semiring::better(x, {name}.value[cell])) return;")
        where = f"{name}.pending[cell]" if table.updates or stage.strategy == "sweep" else f"{name}.value[cell]"
        if stage.strategy == "sweep":
            out.line(f"if (!{name}.seen.test(cell) && full()) return;")
            out.line(f"const bool fresh = !{name}.place[cell];")
            out.line(f"{name}.place[cell] = 1;")
            out.line(f"if ({name}.seen.set(cell)) {name}.items++, report.items++;")
        elif not table.updates and not (self.plain and table.aggregator == "="):
            # the usual case first: one more contribution to an item that is there
            out.open(f"if (__builtin_expect({name}.seen.test(cell), 1))")
            if self.plan.semiring in ("viterbi", "tropical"):  # few contributions are better: what follows is for them
                out.line(f"if (!semiring::better(x, {where})) return;")
            if self.plan.adjoint:
                record_contribution(self, table, where, "false")
            agree(where, "")
            convergence.write_changed(self, table, where)
            out.line(f"{where} = {self.plus(table, where, 'x')};")
            out.line("return;")
            out.close()
            out.line("if (full()) return;")
            if self.plan.adjoint:
                record_contribution(self, table, where, "true")
            out.line(f"{name}.seen.set(cell);")
            out.line(f"{name}.items++, report.items++;")
            out.line(f"{where} = x;")
            if agenda:
                out.line(f"push_{name}(cell{arguments});")
            out.close()
            out.line()
            return
        else:
            out.line(f"if (!{name}.seen.test(cell) && full()) return;")
            out.line(f"const bool fresh = {name}.seen.set(cell);")
            out.line(f"if (fresh) {name}.items++, report.items++;")
            agree(where, "!fresh && ")
        if improving:
            out.line(f"if (!fresh && !semiring::better(x, {where})) return;")
        if self.plain and table.aggregator == "=":
            out.line(f"const double here = semiring::primal({where}), given = semiring::primal(x);")
            out.line(
                f"if (!fresh && here != given && !(isnan(here) && isnan(given))) "
                f"return fail(two_values, {table.number}, cell);"
            )
        if self.plan.adjoint and stage.strategy != "sweep":
            record_contribution(self, table, where, "fresh")
        resting.write_apart(self, table)
        convergence.write_sent(self, table)
        if adjoints.head_kind(self.plan, table) == "select":
            better = improves(self, table, where)
            convergence.write_improved(self, table, "true" if improving else f"fresh || {better}")
        out.line(f"{where} = fresh ? x : {self.plus(table, where, 'x')};")
        if agenda:
            if stage.strategy in ("levels", "solve"):
                out.line(f"if (fresh) push_{name}(cell{arguments});")
            else:
                out.line(f"push_{name}(cell{arguments});")
        out.close()
        out.line()

    def join_comment(self, join: Join) -> None:
        self.out.line(f"// rule {join.rule.number}: {comment(join.rule.text)}")

    def _fire(self, stage: Stage, join: Join) -> None:
        if self.shapes is not None:
            self.calls[join.rule.number, join.driver] = self.shapes.call(join, [])
            return
        self.join_comment(join)
        self.out.open(f"DYNAGRAD_FIRED void rule{join.rule.number}()")
        JoinWriter(self.plan, self.names, join, self.out).write()
        self.out.close()
        self.out.line()

    def drive(self, join: Join, prefix: str = "rule", mark: bool = False) -> None:
        """The function of a rule that starts from one of its antecedents."""
        assert join.driver is not None
        item = join.rule.antecedents[join.driver].item
        table = self.plan.tables[item.key]
        listed = [
            "int64_t cell",
            *(f"int32_t a{i}" for i in range(table.arity)),
            "const value_t& update",
            "const value_t& old",
            "const value_t& now",
            "bool first",
        ]
        if self.shapes is not None and prefix == "rule":
            self.calls[join.rule.number, join.driver] = self.shapes.call(join, listed)
            return
        parameters = ", ".join(listed)
        self.join_comment(join)
        self.out.line(f"// driver: {comment(show(item))}, antecedent {join.driver + 1}")
        self.out.open(f"DYNAGRAD_RULE void {self.drive_name(join, prefix)}({parameters})")
        voids = ["cell", *(f"a{i}" for i in range(table.arity)), "update", "old", "now", "first"]
        self.out.line(" ".join(f"(void){v};" for v in voids))
        JoinWriter(self.plan, self.names, join, self.out, mark=mark).write()
        self.out.close()
        self.out.line()

    def drive_name(self, join: Join, prefix: str = "rule") -> str:
        """What that function is called."""
        assert join.driver is not None
        key = join.rule.antecedents[join.driver].item.key
        return f"{prefix}{join.rule.number}_from{join.driver + 1}_{self.names.table[key]}"

    def enter(self, table: Table, call: str = "insert(key, cell)") -> None:
        """Enters the item at `cell`, with arguments a0, a1, ..., into the indexes of its table."""
        out, name = self.out, self.names.table[table.key]
        if self.plan.changes is not None and self.by_key.get(table.key):
            out.line(f"if (!first_time(indexed_{name}, cell)) return;")
        for index in self.by_key.get(table.key, ()):
            out.open("")
            base = out.depth
            scope = self._pattern_scope(table, index)
            for i, term in enumerate(index.pattern):
                scope.match(term, f"a{i}", table.domains[i])
            out.line(f"const int32_t key[] = {{{', '.join([*map(local, index.by), '0'])}}};")
            out.line(f"{name}_by{index.number}.{call};")
            out.close_to(base)
            out.close()

    def unpack(self, table: Table) -> None:
        name, out = self.names.table[table.key], self.out
        if not table.arity:
            return
        out.line(f"int32_t arguments[{table.arity}];")
        out.line(f"{name}.arguments(cell, arguments);")
        order = table.order if table.kind == "dense" else range(table.arity)
        for place, i in enumerate(order):
            out.line(f"const int32_t a{i} = arguments[{place}];")

    def infinite(self, table: Table, value: str) -> str:
        """Or whether the value of the item at `cell` is infinite and should not be: what it is made of is finite."""
        if not may_excuse(self.plan, table):
            return ""
        tests = [f"__builtin_expect(!isfinite(semiring::primal({value})), 0)", not_nothing(table, value)]
        tests.append(f"!(flags_of(excused_{self.names.table[table.key]}, cell) & 1)")
        return f" || ({' && '.join(filter(None, tests))})"

    def excuse(self, table: Table, value: str, arguments: Sequence[str]) -> str:
        """A fact that is infinite was given so. `arguments` are those of its item."""
        if not may_excuse(self.plan, table):
            return ""
        name = self.names.table[table.key]
        order = table.order if table.kind == "dense" else range(table.arity)
        cell = f"{name}.locate({', '.join(arguments[i] for i in order)})"
        return f"if (!isfinite(semiring::primal({value}))) grown(excused_{name}, {cell}, (uint8_t)0) |= 1;"

    def _check(self, table: Table, value: str) -> None:
        out = self.out
        wrong = f"__builtin_expect(!semiring::valid({value}), 0){self.infinite(table, value)}"
        out.line(f"if ({wrong}) return fail(bad_value, {table.number}, cell);")
        if self.plan.semiring == "real" and not self.plan.order:
            out.line(f"if (semiring::tiny({value}) && (({value}) != 0 || !has_zero)) report.underflow++;")

    def _pop(self, stage: Stage, table: Table) -> None:
        out, name = self.out, self.names.table[table.key]
        out.open(f"DYNAGRAD_RULE void pop_{name}(int64_t cell)")
        self.unpack(table)
        if stage.final:
            out.line("const bool first = true;")
            out.line(f"const value_t now = {name}.value[cell];")
            out.line("const value_t& update = now;")
            out.line("const value_t& old = now;")
            out.line("report.pops++;")
            convergence.write_popped(self, stage, table)
            out.line(f"{name}.popped.set(cell);")
            if self.plan.adjoint:
                record_pop(self, stage, table)
        else:
            if stage.strategy in ("queue", "stack"):
                out.line(f"{name}.place[cell] = 0;")
            zero = self.zero(table)
            out.line(f"const bool first = !{name}.popped.test(cell);")
            out.line(f"value_t update = {resting.pending(self.plan, table, name)};")
            out.line(f"const value_t old = first ? {zero} : {name}.value[cell];")
            out.line(f"const value_t now = first ? update : {self.plus(table, 'old', 'update')};")
            self._check(table, "now")
            if self.plain and table.aggregator != "+=":
                out.open("if (!first && semiring::primal(now) == semiring::primal(old))")
                out.line(f"{name}.pending[cell] = {zero};")
                out.line("return;")
                out.close()
                out.line("update = now;")
            elif self.plan.selective:
                out.open("if (!first && !semiring::better(now, old))")
                out.line(f"{name}.pending[cell] = {zero};")
                out.line("return;")
                out.close()
                out.line("update = now;")
            elif self.plan.semiring == "user":
                out.line("if (!first && semiring::same(now, old)) return;")
                held = convergence.tolerance(self.plan, stage)
                out.line(f"if (!first && semiring::negligible(update, old, {held})) return;")
            else:
                resting.write_stop(self, table, convergence.tolerance(self.plan, stage))
            prune(self, table)
            out.line(resting.count_pop(self.plan, table))
            convergence.write_popped(self, stage, table)
            if self.plan.adjoint:
                record_pop(self, stage, table)
            out.line(f"{name}.value[cell] = now;")
            resting.write_taken(self, table, zero)
            out.line(f"if (first) {name}.popped.set(cell);")
        if stage.final:
            self._check(table, "now")
        if self.by_key.get(table.key):
            if self.plan.changes is not None:
                out.line(f"if (first) enter_{name}(cell{''.join(f', a{i}' for i in range(table.arity))});")
            else:
                out.open("if (first)")
                self.enter(table)
                out.close()
        arguments = "".join(f", a{i}" for i in range(table.arity))
        drives = self.drives_of[stage.number].get(table.key, [])
        for join in drives:
            within = "if (leads_out) " if stage.unknowns and join in stage.inner_joins else ""
            plain = f"{self.drive_name(join)}(cell{arguments}, update, old, now, first);"
            out.line(f"{within}{self.calls.get((join.rule.number, join.driver), plain)}")
        if drives:
            out.line("if (__builtin_expect(arithmetic.overflow, 0)) fail(integer_overflow, -1, -1);")
        else:
            out.line("(void)update, (void)old, (void)first;")
        out.close()
        out.line()

    def _begin(self, stage: Stage) -> None:
        """What a stage starts with: axioms, and the rules whose antecedents are all final."""
        out, n = self.out, stage.number
        out.line(f"// stage {n}: {comment(', '.join(stage.keys))[:200]}; {comment(stage.reason)}")
        out.open(f"DYNAGRAD_FIRED void begin{n}()")
        if self.plan.adjoint:
            out.line("if (recording) tape.begins.push(tape.pops.size);")
            out.line("position = 0;")
        if stage.strategy != "sweep" and not self.plan.resolves:
            self._axioms(stage)
            for join in stage.fires:
                out.line(self.calls.get((join.rule.number, None), f"rule{join.rule.number}();"))
                out.line("if (halt) return;")
            out.line("if (arithmetic.overflow) fail(integer_overflow, -1, -1);")
        out.close()
        for key in stage.keys:
            table = self.plan.tables[key]
            if table.sink or stage.strategy in ("once", "sweep"):
                self._seal(table, count=stage.strategy == "once" and not table.sink)
        out.line()

    def _axioms(self, stage: Stage) -> None:
        out = self.out
        for key in stage.keys:
            table = self.plan.tables[key]
            if self.has_axioms(table):
                name = self.names.table[key]
                columns = [f"axioms_{name}.column({i})[at]" for i in range(table.arity)]
                value = f"axioms_{name}.value[at]"
                out.open(f"for (int64_t at = 0; at < axioms_{name}.rows(); at++)")
                excuse = self.excuse(table, value, columns)
                if excuse:
                    out.line(excuse)
                out.line(f"add_{name}({', '.join([*columns, value])});")
                out.close()
                out.line(f"report.updates += axioms_{name}.rows();")

    def _seal(self, table: Table, count: bool) -> None:
        """Makes everything that a table has seen part of the chart."""
        out, name = self.out, self.names.table[table.key]
        out.open(f"DYNAGRAD_FIRED void seal_{name}()")
        bound = f"{name}.bound()"
        out.open(
            f"for (int64_t cell = {name}.seen.next(0, {bound}); cell >= 0; cell = {name}.seen.next(cell + 1, {bound}))"
        )
        value = f"{name}.value[cell]"
        wrong = f"!semiring::valid({value}){self.infinite(table, value)}"
        again = f"if ({wrong}) return fail(bad_value, {table.number}, cell);"
        out.line(f"if (!{name}.popped.set(cell)) {{ {again} continue; }}  // sealed before, and may have grown")
        if count:
            out.line("report.pops++;")
        if self.by_key.get(table.key):
            self.unpack(table)
            self.enter(table)
        self._check(table, value)
        out.close()
        out.close()

    def _sweep(self, stage: Stage) -> None:
        """All rules of the stage again and again, from the last round's chart, until nothing changes."""
        out, n = self.out, stage.number
        out.open(f"bool round{n}()")
        out.line("bool changed = false;")
        out.line(f"convergence{n}.begin();")
        if self.plan.adjoint:
            out.line(f"if (recording) rounds{n}.push(tape.pops.size);")
        self._axioms(stage)
        for join in stage.fires:
            out.line(self.calls.get((join.rule.number, None), f"rule{join.rule.number}();"))
            out.line("if (halt) return false;")
        for key in stage.keys:
            table = self.plan.tables[key]
            name = self.names.table[key]
            if table.sink:
                out.open(f"for (int64_t cell = 0; cell < {name}.bound(); cell++)")
                out.line(f"if (!{name}.place[cell]) continue;")
                out.line(f"{name}.place[cell] = 0;")
                out.line(f"{name}.value[cell] = {name}.pending[cell];")
                out.close()
                continue
            out.open(f"for (int64_t cell = 0; cell < {name}.bound(); cell++)")
            out.line(f"if (!{name}.place[cell]) continue;")
            out.line(f"{name}.place[cell] = 0;")
            out.line(f"const value_t now = {name}.pending[cell], old = {name}.value[cell];")
            out.line(f"const bool first = {name}.popped.set(cell);")
            if self.plan.adjoint:
                out.open("if (recording)")
                out.line(f"tape.pops.push(handle({table.number}, cell) | (first ? 0 : tape.again));")
                out.line("if (!first) tape.saved.push({old, now});")
                out.close()
            out.open("if (first)")
            self.unpack(table)
            self.enter(table)
            out.close()
            # what is infinite or NaN now may be a number in the next round
            out.line("if (first) changed = true;")
            out.line(f"else convergence{n}.move(semiring::primal(now), semiring::primal(old));")
            out.line(f"{name}.value[cell] = now;")
            out.line("report.pops++;")
            out.close()
        out.line(f"return changed || convergence{n}.more(settings, report);")
        out.close()
        self._finite(stage)
        out.line()

    def _finite(self, stage: Stage) -> None:
        """After the last round: no value is NaN, or infinite of its own making. What made others so is named first."""
        out, n = self.out, stage.number
        out.open(f"void finite{n}()")
        out.open("for (int later = 0; later < 2; later++)")
        for key in stage.keys:
            table = self.plan.tables[key]
            name, value = self.names.table[key], f"{self.names.table[key]}.value[cell]"
            out.open(f"for (int64_t cell = 0; cell < {name}.bound(); cell++)")
            wrong = f"!semiring::valid({value}){self.infinite(table, value)}"
            first = f"!(flags_of(excused_{name}, cell) & 2)" if may_excuse(self.plan, table) else "true"
            out.line(f"if ({name}.seen.test(cell) && (later || {first}) && ({wrong}))")
            out.line(f"  return fail(bad_value, {table.number}, cell);")
            out.close()
        out.close()
        out.close()

    def _run(self) -> None:
        out = self.out
        for stage in self.plan.stages:
            self._stage(stage)
        out.open("void run()")
        out.line("const int64_t started = clock_ns();")
        out.line("halt = failed, budget = 0, report.status = done, report.partial = failed != 0;")
        stages = ", ".join(f"&program::stage{stage.number}" for stage in self.plan.stages)
        if stages:
            out.line(f"static constexpr void (program::*stages[])(int64_t) = {{{stages}}};")
            out.line(f"while (!halt && stage < {len(self.plan.stages)}) (this->*stages[stage])(started);")
        if self.plan.resolves:
            resolving.write_end(self)
        out.line("report.status = halt, report.stage = stage;")
        if self.plan.adjoint:
            out.line(f"report.tape = {tape_bytes(self.plan)};")
        out.line("report.bytes = account.bytes + world->account.bytes;")
        out.line("report.peak = account.peak > world->account.peak ? account.peak : world->account.peak;")
        out.line("spent_before += clock_ns() - started;")
        out.line("report.nanoseconds = spent_before;")
        out.close()
        out.line()

    def _stage(self, stage: Stage) -> None:
        """What a run does of a stage: to its end, or until something halts it."""
        out, plan = self.out, self.plan
        n = stage.number
        out.open(f"DYNAGRAD_RULE void stage{n}(int64_t started)")
        out.line("(void)started;")
        if stage.strategy in AGENDAS:
            out.line("Handle next = 0;")
            out.line("(void)next;")
        out.open("if (!begun)")
        out.line(f"begin{n}();")
        out.line("if (halt) report.partial = 1;")
        out.line("begun = true;")
        out.close()
        convergence.write_begin(self, stage)
        if stage.strategy == "sweep":
            out.open("while (!halt)")
            out.line("if (pause_here(started)) break;")
            out.line(f"if (convergence{n}.idle > Rounds::patience) {{ fail(diverges, -1, -1); break; }}")
            out.line(f"if (!round{n}()) {{ if (halt) report.partial = 1; break; }}")
            out.close()
        elif stage.strategy == "solve":
            out.open("while (!halt)")
            out.line("if (pause_here(started)) break;")
            out.line(f"if ((block{n}.done() || !block{n}.arranged) && !gather{n}()) break;")
            out.line(f"step{n}();")
            out.close()
        elif stage.strategy != "once":
            out.open("while (!halt)")
            out.line("if (pause_here(started)) break;")
            out.line(resting.next_pop(plan, stage, convergence.estimates(plan, stage)))
            out.line("const int64_t pops = report.pops;")
            out.line("(void)pops;")
            out.open("switch (table_of(next))")
            for key in stage.keys:
                table = plan.tables[key]
                if not table.sink:
                    out.line(f"case {table.number}: pop_{self.names.table[key]}(cell_of(next)); break;")
            out.close()
            out.line("if (halt && report.pops != pops) report.partial = 1;")
            convergence.write_check(self, stage)
            if stage.final or stage.priority == "value" or stage.priority == "declared":
                out.line(
                    "if (settings.until_table == (int64_t)table_of(next) && settings.until_cell == cell_of(next)"
                    " && !halt) stop(at_until);"
                )
            out.close()
        if stage.strategy == "sweep":
            out.line(f"if (!halt) finite{n}();")
        sealed = [k for k in stage.keys if plan.tables[k].sink or stage.strategy in ("once", "sweep")]
        for key in sealed:
            out.line(f"seal_{self.names.table[key]}();")
        waiting = f"agenda{n}.waiting()" if stage.strategy not in ("once", "sweep") else "0"
        if stage.strategy == "solve":
            waiting += f" + waiting{n}()"
        out.line(f"report.pending = {waiting};")
        out.line("if (!halt) stage++, begun = false;")
        out.close()

    def _rule_weights(self) -> None:
        """Reads the constants of rules in the constructor; written last, when all of them are known."""
        count = len(self.names.weight_values)
        line = f"    for (int64_t i = 0; i < {count}; i++) weight.push(semiring::read(numbers + i * semiring::words));"
        if self.plan.keeps_logs:
            line += f" for (int64_t i = 0; i < {count}; i++) weight_log.push(as_double(numbers[i * semiring::words]));"
        self.out.lines[self.weights_line] = line


def _ranges(table: Table) -> list[str]:
    """The range of each argument of a dense table, in the order in which they are stored."""
    ranges = []
    for i in table.order:
        extent, d = table.extents[i], table.domains[i]
        if extent is not None and (extent.below or extent.above):
            low, count = (
                f"w->domain[{d}].low + ({extent.below})",
                f"w->domain[{d}].count + ({extent.above - extent.below})",
            )
            ranges.append(f"{{{low}, {count}}}")
        else:
            ranges.append(f"w->domain[{d}]")
    return ranges


def _level_type(stage: Stage) -> str:
    """One form fits 64 bits, whatever its range; several together may not."""
    return "int64_t" if len(stage.forms) < 2 else "__int128"


def _bool(x: bool) -> str:
    return "true" if x else "false"


def generate(plan: Plan, *, embed: bool = True, passes: Passes = Passes.BOTH) -> Generated:
    """The C++ source of a plan; `embed` adds the functions that Python calls."""
    writer = ClassWriter(plan, passes)
    source = writer.write(embed)
    names = writer.names
    return Generated(
        source,
        names,
        tuple((domain, python_value(term)) for domain, term in names.constants),
        tuple(names.functors),
        tuple(names.weight_values),
        INTEGERS if names.functions else (),
        linked.objects(plan, writer.semiring_name()),
        "" if len(plan.rules.rules) >= LARGE_PROGRAM else "dynagrad/chart.hpp",  # where a macro stands before it
    )
