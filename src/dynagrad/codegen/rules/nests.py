"""Nests as C++: nested loops, probes and tests in which a failed match leaves its block, and a visitor.

The function of a nest is a template over its *visitor*, which says what an instance is for: it is told of each
antecedent that is found, and of the head. Each time it answers with another visitor, which is told of what is found
inside; so what one of them knows is what was found on the way to it. Visitors are C++
(`runtime/include/dynagrad/visiting/`); nothing here depends on which of them are used.

Names of rule variables are kept; they start with a capital letter or an underscore, all other names in generated code
with a small letter. The operations and their order are those of `plan/nest.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...plan.lower import lower
from ...plan.model import IndexPlan, Join, Plan, TableLayout
from ...plan.nest import Absence, Access, Guard, Let, Loop, Match, Operation, Probe, occurrences
from ...plan.traits import is_dense, is_external, is_facts
from ...rules.syntax import Comparison, Equation, Item, Term, Variable
from ..cxx import Writer, comment
from .scope import Names, RuleScope, local


def arguments_of(table: TableLayout, text: str = "a{}") -> list[str]:
    """The arguments of an item of a table, by their places: `a0`, `a1`, ... unless they are written in another way."""
    return [text.format(i) for i in range(table.arity)]


class NestWriter(RuleScope):
    """Writes the body of a nest's function."""

    def __init__(self, plan: Plan, names: Names, join: Join, writer: Writer) -> None:
        super().__init__(plan, names, plan.domains.variables[join.rule.number], writer)
        self.join = join
        self.rule = join.rule
        self.number = join.rule.number
        self.finders: dict[int, str] = {}  # antecedent -> the local by which its facts are found
        self.table_of: list[TableLayout] = [plan.tables[a.item.key] for a in join.rule.antecedents]
        self.nest = lower(plan, join)
        self.occurrences = occurrences(self.nest)
        self.arguments: list[str] = []  # the parameters for those of the driver, or of the head that it starts from
        self.visitor = "begun"  # the one that is told of what is found next
        self.together = plan.sums_together(join)

    def bind(self, variable: str, text: str) -> None:
        if self.occurrences[variable] > 1:  # it is read later
            super().bind(variable, text)

    # -- what is found, and who is told of it

    def begin(self) -> None:
        """Before anything else."""
        own = "visit"
        if self.join.driver is None and not self.join.from_head:  # it is not inlined, see `ClassContext.often`
            own = "own"
            self.out.line("const Visitor own = visit;", "which the compiler sees all of")
        self.out.line(f"const auto& begun = {own}.begin();")
        if not self.together and self.rule.head.key in self.plan.heads_summed:
            self.out.line("begun.in_turn();")

    def driver(self, driver: int) -> None:
        """The driver is there, and its arguments are matched; a visitor knows what only has to be there."""
        if not self.rule.antecedents[driver].side:
            self._tell(f"driver(nth<{driver}>, {self.place(driver)}, cell)")

    def found(self, i: int, at: str) -> None:
        """Another antecedent is the fact, or the item, at `at`."""
        what, given = "fact" if is_facts(self.table_of[i]) else "item", f"nth<{i}>, {self.place(i)}, {at}"
        if i in self.join.same and i > (self.join.driver or 0):
            self.out.open(f"if ({self.visitor}.differs(cell, {at}))")
            what, given = "same", f"{given}, cell"
        side = f"side(nth<{i}>, {self.place(i)}, {at})"
        self._tell(side if self.rule.antecedents[i].side else f"{what}({given})")

    def outside(self, i: int, value: str) -> None:
        """A function outside of the program has a value for another antecedent."""
        self._tell(f"outside(nth<{i}>, {value})")

    def at_head(self) -> None:
        """All antecedents are found."""
        key, self.maker = self.rule.head.key, f"{self.visitor}.made"
        texts = self._arguments(self.rule.head, self.plan.tables[key], True)
        self.out.line(f"{self.visitor}.head({', '.join([self.names.table[key], *texts])});")

    def _tell(self, what: str) -> None:
        inner = self.fresh("inner")
        self.out.line(f"const auto& {inner} = {self.visitor}.{what};")
        self.visitor = inner

    # -- operations

    def _match_arguments(self, terms: Sequence[Term], domains: Sequence[int | None]) -> None:
        """Matches the arguments that the function is given. One that is a variable has its name."""
        for i, (term, domain) in enumerate(zip(terms, domains, strict=True)):
            name = term.name if isinstance(term, Variable) and term.name not in self.bound else None
            if name is None or (self.kind(self.domain(name)) == "int" and self.kind(domain) == "term"):
                self.arguments.append(f"a{i}")
                self.read.add(f"a{i}")
                self.match(term, f"a{i}", domain)
            else:
                self.arguments.append(local(name))
                self.bound.add(name)

    def one_row(self, antecedent: int) -> bool:
        """Whether a lookup is of one row."""
        return True

    def function(self, name: str, often: str, body: list[str], more: Sequence[str] = ()) -> None:
        """The function whose body was written."""
        given = ["const Visitor& visit", *(["int64_t cell"] if self.join.driver is not None else [])]
        listed = ", ".join([*given, *(f"int32_t {a}" for a in self.arguments), *more])
        self.out.line("template <class Visitor>")
        self.out.function(f"{often} void {name}({listed})", body)

    def write(self) -> None:
        """Writes all of it, inside a function that is already open."""
        base = self.out.depth
        self.begin()
        for operation in self.nest.body:  # the compiler cannot see that writes do not change what is invariant
            if isinstance(operation, Probe) and operation.invariant and self.one_row(operation.antecedent):
                self.finders[operation.antecedent] = self.fresh("find")
                place = self.place(operation.antecedent)
                self.out.line(f"const auto {self.finders[operation.antecedent]} = {place}.finder();")
        if self.nest.from_head:
            self._match_arguments(self.nest.given, self.plan.tables[self.nest.head.item.key].domains)
        if self.nest.driver is not None:
            self._match_driver(self.nest.driver)
        for operation in self.nest.body:
            if isinstance(operation, Loop) and operation.row is not None and operation.access is Access.ROW:
                self._side_by_side(operation, operation.row)
            self._operation(operation)
        self.at_head()
        self.out.close_to(base)

    def _match_driver(self, driver: int) -> None:
        if self.rule.antecedents[driver].side and not is_facts(self.table_of[driver]):
            self.out.open("if (visit.first_time())")
        self._match_arguments(self.nest.given, self.table_of[driver].domains)
        self.driver(driver)

    def _operation(self, operation: Operation) -> None:
        match operation:
            case Probe(antecedent=i):
                self._probe(i)
            case Loop():
                self._loop(operation)
            case Guard(condition=Comparison(operator=operator, left=left, right=right)):
                self.compare(operator, left, right)
            case Guard(condition=Equation(left=left, right=right)):
                self.compare("==", left, right)
            case Let():
                self.let(operation)
            case Match(variable=variable, pattern=pattern):
                self.match(pattern, self.name(variable), self.domain(variable))
            case Absence():
                self._absence(operation)

    def _arguments(self, item: Item, table: TableLayout, create: bool = False) -> list[str]:
        return [self.build(t, d, create) for t, d in zip(item.arguments, table.domains, strict=True)]

    def _stored(self, table: TableLayout, texts: Sequence[str]) -> str:
        return ", ".join(texts[i] for i in table.order) if is_dense(table) else ", ".join(texts)

    def place(self, i: int) -> str:
        """The table of antecedent i. When a fact changes, antecedents to the right of it are joined with old facts."""
        name, driver = self.names.table[self.rule.antecedents[i].item.key], self.join.driver
        if driver is None or self.plan.changes is None or self.plan.resolves:
            return name
        return f"old_{name}" if i > driver and is_facts(self.table_of[i]) and is_facts(self.table_of[driver]) else name

    def _probe(self, i: int) -> None:
        item, table = self.rule.antecedents[i].item, self.table_of[i]
        name = self.place(i)
        if is_external(table):
            texts = self._arguments(item, table, True)
            if self.plan.collects is not None:  # they are kept in tables
                at = self.fresh("at")
                self.out.line(f"const int64_t {at} = outside({', '.join([name, *texts])});")
                self.out.line("if (halt) return;")
                self.out.open(f"if ({at} >= 0)")
                self.found(i, at)
                return
            value = self.fresh("outside")
            self.out.line(f"const int32_t {value}_arguments[] = {{{', '.join([*texts, '0'])}}};")
            self.out.line(f"value_t {value};")
            self.out.open(f"if (external({table.number}, {value}_arguments, {value}))")
            self.outside(i, value)
            return
        texts = self._arguments(item, table)
        at = self.fresh("at")
        find = self.finders.get(i, f"{name}.find")
        self.out.line(f"const int64_t {at} = {find}({self._stored(table, texts)});")
        self.out.open(f"if ({at} >= 0)")
        self.found(i, at)

    def _keys(self, keys: Sequence[Term], index: IndexPlan) -> list[str]:
        """The codes of a key that is looked up in an index."""
        domains = key_domains(self.plan, index)
        return [self.build(t, d, False) for t, d in zip(keys, domains, strict=True)]

    def _loop(self, loop: Loop) -> None:
        """Finds the matching items."""
        i = loop.antecedent
        item, table = loop.item, self.table_of[i]
        name = self.place(i)
        at = self.fresh("at")
        if loop.access is Access.ROW:
            row, free = self._row(item, table)
            self.out.open(f"if ({row} >= 0)")
            self.out.line(f"if (spend({name}.row_length())) return;")
            low = f"{name}.range[{table.arity - 1}].low"
            word, base = self.fresh("word"), self.fresh("base")
            self.out.open(f"for (int64_t {base} = 0; {base} < {name}.row_length(); {base} += 64)")
            self.out.open(
                f"for (uint64_t {word} = {name}.popped.word({row} + {base}, {name}.row_length() - {base}); "
                f"{word}; {word} &= {word} - 1)"
            )
            self.out.line(f"const int64_t {at} = {row} + {base} + __builtin_ctzll({word});")
            self.match(item.arguments[free], f"(int32_t)({at} - {row} + {low})", table.domains[free])
        elif loop.access is Access.ALL and is_facts(table):
            self.out.open(f"for (int64_t {at} = 0; {at} < {name}.rows(); {at}++)")
            self.out.line("if (spend(1)) return;")
            self._columns(loop, at)
        elif loop.access is Access.ALL:
            self.out.open(f"for (int64_t {at} = {name}.next(0); {at} >= 0; {at} = {name}.next({at} + 1))")
            self.out.line("if (spend(1)) return;")
            self._cell(loop, table, at)
        else:
            index = self.plan.indexes[loop.index]
            keys = self._keys(loop.keys, index)
            if is_facts(table):
                found, p = self.fresh("found"), self.fresh("p")
                self.out.line(f"const auto {found} = {name}.{self.names.by(index.number)}().find({', '.join(keys)});")
                self.out.line(f"if (spend({found}.end - {found}.begin)) return;")
                test = self._stretch(loop, loop.row, found) if loop.row is not None else ""
                self.out.open(f"for (int64_t {p} = {found}.begin; {test}{p} < {found}.end; {p}++)")
                self.out.line(f"const int64_t {at} = {name}.{self.names.by(index.number)}().rows[{p}];")
                self._columns(loop, at)
            else:
                array, entry = self.fresh("key"), self.fresh("entry")
                self.out.line(f"const int32_t {array}[] = {{{', '.join([*keys, '0'])}}};")
                by = self.names.index(index.number)
                self.out.open(f"for (int64_t {entry} = {by}.begin({array}); {entry}; {entry} = {by}.next({entry}))")
                self.out.line("if (spend(1)) return;")
                self.out.line(f"const int64_t {at} = {by}.cell({entry});")
                if self.plan.changes is not None:  # deleted items stay in the index
                    self.out.open(f"if ({name}.popped.test({at}))")
                self._cell(loop, table, at)
        self.found(i, at)

    # -- side by side

    def _side_by_side(self, loop: Loop, variable: str) -> None:
        """The last loop, over a row of items, and the head are one operation; else the loop that follows is run."""
        item, table = loop.item, self.table_of[loop.antecedent]
        name, head = self.place(loop.antecedent), self.plan.tables[self.rule.head.key]
        head_name = self.names.table[head.key]
        low = f"{head_name}.range[{head.arity - 1}].low"
        self.out.open("if constexpr (Visitor::in_rows)", f"side by side over {comment(variable)}")
        inside = self.out.depth
        row, _ = self._row(item, table)
        self.out.open(f"if ({row} >= 0)")
        self.out.line(f"if (spend({name}.row_length() / 8)) return;")
        shift = "0" if name == head_name else f"{name}.range[{table.arity - 1}].low - {low}"
        given = [name, row, head_name, self._head_row(low), shift, self.names.arrive(head.key)]
        self.out.line(f"{self.visitor}.row({', '.join(given)});")
        self.out.close_to(inside)
        self.out.otherwise()

    def _stretch(self, loop: Loop, variable: str, found: str) -> str:
        """The same for facts, if they turn out to be contiguous; returns the test that they do not."""
        item, head = loop.item, self.plan.tables[self.rule.head.key]
        name, joined = self.place(loop.antecedent), self.fresh("joined")
        column = f"{name}.column({item.arguments.index(Variable(variable))})"
        self.out.line(f"bool {joined} = false;")
        self.out.open("if constexpr (Visitor::in_rows)", f"side by side over {comment(variable)}")
        self.out.line(f"{joined} = {name}.{self.names.by(loop.index)}().side_by_side({found}, {column});")
        self.out.open(f"if ({joined})")
        to = self._head_row(f"{column}[{found}.begin]")
        alone = self.together and len(self.rule.antecedents) == 2
        later = f"stretch<{str(self.together).lower()}, {str(alone).lower()}>"
        given = [name, f"{found}.begin", f"{found}.end - {found}.begin", self.names.table[head.key], to]
        self.out.line(f"{self.visitor}.template {later}({', '.join([*given, self.names.arrive(head.key)])});")
        if self.together:
            self.out.otherwise()
            self.out.line(f"{self.visitor}.in_turn();")
        self.out.close()
        self.out.close()
        return f"!{joined} && "

    def _head_row(self, first: str) -> str:
        """The cell of the head where the variable that it runs over side by side has the value `first`."""
        head = self.plan.tables[self.rule.head.key]
        texts = [
            first if i == head.order[-1] else self.build(term, head.domains[i], True)
            for i, term in enumerate(self.rule.head.arguments)
        ]
        to = self.fresh("to")
        self.out.line(f"const int64_t {to} = {self.names.table[head.key]}.cell({self._stored(head, texts)});")
        return to

    def _row(self, item: Item, table: TableLayout) -> tuple[str, int]:
        """The first cell of a row of a dense table, in which only the last stored argument is free, or -1; and that
        argument."""
        name = self.names.table[item.key]
        free = table.order[-1]
        texts = {i: self.build(item.arguments[i], table.domains[i], False) for i in table.order[:-1]}
        row = self.fresh("row")
        last = f"{name}.range[{table.arity - 1}].low"
        stored = ", ".join([*(texts[i] for i in table.order[:-1]), last])
        checked = f"{name}.inside({stored}) ? {name}.cell({stored}) : -1"
        self.out.line(f"const int64_t {row} = {checked};")
        return row, free

    def _columns(self, loop: Loop, at: str) -> None:
        table, name = self.table_of[loop.antecedent], self.place(loop.antecedent)
        for k in loop.matches:
            self.match(loop.item.arguments[k], f"{name}.column({k})[{at}]", table.domains[k])

    def _cell(self, loop: Loop, table: TableLayout, at: str) -> None:
        name = self.names.table[loop.item.key]
        array = self.fresh("arguments")
        self.out.line(f"int32_t {array}[{max(1, table.arity)}];")
        self.out.line(f"{name}.arguments({at}, {array});")
        for k in loop.matches:
            self.match(loop.item.arguments[k], f"{array}[{table.order.index(k)}]", table.domains[k])

    def _absence(self, absence: Absence) -> None:
        table = self.plan.tables[absence.item.key]
        name = self.names.table[absence.item.key]
        if absence.index < 0:
            texts = self._arguments(absence.item, table, True)
            self.out.open(f"if ({name}.find({self._stored(table, texts)}) < 0)")
            return
        index = self.plan.indexes[absence.index]
        domains = key_domains(self.plan, index)
        keys = [self.build(t, d, True) for t, d in zip(absence.keys, domains, strict=True)]
        if is_facts(table):
            found = self.fresh("found")
            self.out.line(f"const auto {found} = {name}.{self.names.by(index.number)}().find({', '.join(keys)});")
            self.out.open(f"if ({found}.begin == {found}.end)")
        else:
            array = self.fresh("key")
            self.out.line(f"const int32_t {array}[] = {{{', '.join([*keys, '0'])}}};")
            self.out.open(f"if (!{self.names.index(index.number)}.begin({array}))")


def key_domains(plan: Plan, index: IndexPlan) -> list[int | None]:
    """The domain of each key of an index: that of its argument, or None for a part of a term."""
    table = plan.tables[index.key]
    domains: list[int | None] = []
    for name in index.by:
        places = [i for i, t in enumerate(index.pattern) if isinstance(t, Variable) and t.name == name]
        domains.append(table.domains[places[0]] if places else None)
    return domains
