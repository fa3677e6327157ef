"""Joins as C++: nested loops over the other antecedents, matching, and the update of the head.

A `JoinWriter` writes the steps of one join as nested `if`s and loops, in which a failed match leaves its block. Names
of rule variables are kept; they start with a capital letter or an underscore, all other names in generated code with a
small letter.

The order of the steps was chosen by `plan/joins.py`; right sides are in `values.py`, and what happens to an update is
in `running/contributions.py`.

It is long because the steps of a join and the update of its head share what was found on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...plan.lower import lower
from ...plan.model import IndexPlan, Join, Plan, TableLayout
from ...plan.nest import Absence, Access, Guard, Let, Loop, Match, Operation, Probe, occurrences
from ...plan.right_sides import factors, has_poles, numbers, product_order
from ...plan.traits import is_dense, is_external, is_facts, may_excuse, sweeps
from ...rules.semirings import SEMIRINGS
from ...rules.syntax import Comparison, Equation, Item, Term, Variable
from ..cxx import Writer, comment
from .combine import compared_with_zero
from .functions import Code
from .scope import Names, RuleScope, local
from .values import value_cxx

PARAMETERS = {
    "cell": "int64_t cell",
    "update": "const value_t& update",
    "old": "const value_t& old",
    "now": "const value_t& now",
    "first": "bool first",
    "from": "uint32_t from",
    "gupdate": "adjoint_t& gupdate",
    "gold": "adjoint_t& gold",
}
"""What a join may be told beside the arguments of its driver: the driver's cell, its update, its value before and after
it, whether this is its first pop; its node in the ground program; and backward the adjoints of the update and of the
value before it."""


def arguments_of(table: TableLayout, text: str = "a{}") -> list[str]:
    """The arguments of an item of a table, by their places: `a0`, `a1`, ... unless they are written in another way."""
    return [text.format(i) for i in range(table.arity)]


@dataclass(frozen=True)
class JoinFunction:
    """The function of a join: its name, and what it takes, arguments of the driver or head by their places."""

    name: str
    takes: tuple[int | str, ...]
    fixed: tuple[str, ...] = ()  # what a function that joins share is given for this one

    def call(self, arguments: Sequence[str], **given: str) -> str:
        """A call; where nothing is `given` for a parameter, a local has its name."""
        own = [arguments[key] if isinstance(key, int) else given.get(key, key) for key in self.takes]
        return f"{self.name}({', '.join([*self.fixed, *own])})"


def takes(functions: Iterable[JoinFunction], parameter: str) -> bool:
    """Whether one of some functions has a parameter."""
    return any(parameter in function.takes for function in functions)


def takes_arguments(functions: Iterable[JoinFunction]) -> bool:
    """Whether one of some functions takes arguments of its driver."""
    return any(isinstance(key, int) for function in functions for key in function.takes)


class JoinWriter(RuleScope):
    """Writes one join, whose instances send updates to their heads, or, with `mark`, mark them as reached."""

    def __init__(self, plan: Plan, names: Names, join: Join, writer: Writer, *, mark: bool = False) -> None:
        super().__init__(plan, names, plan.domains.variables[join.rule.number], writer)
        self.join = join
        self.mark = mark
        self.rule = join.rule
        self.number = join.rule.number
        self.plain = plan.semiring == "plain"
        self.product = factors(join.rule.value) if not self.plain else []
        self.weight: str | None = None  # the product so far
        self.finders: dict[int, str] = {}  # antecedent -> the local by which its facts are found
        self.unsettled = 0  # factors since the product was last normalised
        self.values: dict[int, str] = {}  # plain arithmetic: antecedent -> value
        self.cells: dict[int, str] = {}  # derived antecedent -> its cell
        self.old: dict[int, str] = {}  # antecedent -> its value before this pop
        self.table_of: list[TableLayout] = [plan.tables[a.item.key] for a in join.rule.antecedents]
        self.stage = plan.stage_of[join.rule.head.key]
        self.nest = lower(plan, join)
        self.occurrences = occurrences(self.nest)
        self.arguments: list[str] = []  # the parameters for those of the driver, or of the head that it starts from

    @property
    def _table(self) -> TableLayout:
        """The table of the head."""
        return self.plan.tables[self.rule.head.key]

    @property
    def once(self) -> bool:
        """Whether the driver has no earlier value: it is popped once, or it is a fact, or values do not matter."""
        driver = self.join.driver
        return driver is None or self.stage.final or self.mark or is_facts(self.table_of[driver])

    def given(self, parameter: str) -> str:
        """A parameter of the function, one of `PARAMETERS`, which is read from now on."""
        self.read.add(parameter)
        return parameter

    def function(self, name: str, fixed: Sequence[str] = ()) -> tuple[JoinFunction, list[str]]:
        """The function whose body was written, and the declarations of its parameters."""
        taken: list[tuple[int | str, str]] = [(key, text) for key, text in PARAMETERS.items() if key in self.read]
        after = 1 if "cell" in self.read else 0  # the first of all
        taken[after:after] = [(i, f"int32_t {a}") for i, a in enumerate(self.arguments) if a in self.read]
        return JoinFunction(name, tuple(key for key, _ in taken), tuple(fixed)), [declared for _, declared in taken]

    def bind(self, variable: str, text: str) -> None:
        if self.occurrences[variable] > 1:  # it is read later
            super().bind(variable, text)

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

    @property
    def in_order(self) -> bool:
        """Whether factors must be multiplied in the order of the text.

        A user's times need not commute; and where plus selects, the last bit of a value must not depend on which
        antecedent drove the join.
        """
        return self.plan.semiring == "user" or SEMIRINGS[self.plan.semiring].order == "value"

    @property
    def in_rows(self) -> bool:
        """Whether joins with a `vector` variable are written as vector operations."""
        return not self.mark

    def one_row(self, antecedent: int) -> bool:
        """Whether a lookup is of one row."""
        return True

    def start(self) -> None:
        """Before any step: multiplies the constants of the rule."""
        if self.plain or self.in_order or self.mark:
            return
        for i, v in enumerate(numbers(self.rule.value)):
            self.multiply(self.names.weight(self.rule, i, v))

    def multiply(self, text: str) -> None:
        """One more factor. Where numbers are logs, up to three are multiplied before the product is normalised."""
        if self.weight is None:
            self.weight = text
            return
        name = self.fresh("w")
        if SEMIRINGS[self.plan.semiring].adds_logs and self.unsettled < 2:
            self.unsettled += 1
            self.out.line(f"const value_t {name} = semiring::raw({self.weight}, {text});")
        else:
            settled = f"semiring::settled({self.weight})" if self.unsettled else self.weight
            self.unsettled = 0
            self.out.line(f"const value_t {name} = semiring::times({settled}, {text});")
        self.weight = name

    def weighs(self, antecedent: int) -> bool:
        """Whether the value of an antecedent is part of what is sent to the head."""
        if self.rule.antecedents[antecedent].side or self.mark:
            return False
        return self.plain or self.in_order or antecedent in self.product

    def take(self, antecedent: int, value: str, old: str | None = None) -> None:
        """Takes the value of an antecedent that was found into the product, or into a local."""
        if not self.weighs(antecedent):
            return
        if self.plain or self.in_order:
            name = f"x{antecedent}"
            self.out.line(f"const value_t {name} = {value};")
            self.values[antecedent] = name
            if old is not None:
                self.out.line(f"const value_t old{antecedent} = {old};")
                self.old[antecedent] = f"old{antecedent}"
        else:
            self.multiply(value)

    # -- steps

    def write(self) -> None:
        """Writes the steps of the join and the update of the head, inside a function that is already open."""
        base = self.out.depth
        self._prologue()
        for operation in self.nest.body:  # the compiler cannot see that writes do not change what is invariant
            if isinstance(operation, Probe) and operation.invariant and self.one_row(operation.antecedent):
                self.finders[operation.antecedent] = self.fresh("find")
                place = self.place(operation.antecedent)
                self.out.line(f"const auto {self.finders[operation.antecedent]} = {place}.finder();")
        self.start()
        if self.nest.from_head:
            self._match_arguments(self.nest.given, self.plan.tables[self.nest.head.item.key].domains)
        if self.nest.driver is not None:
            self._driver(self.nest.driver)
        for operation in self.nest.body:
            if isinstance(operation, Loop) and operation.row is not None and self.in_rows:
                if operation.access is Access.ROW:
                    self._row_operation(operation, operation.row)
                    self._close_to(base)
                    return
                self._loop(operation, operation.row)
                continue
            self._operation(operation)
        self._head()
        self._close_to(base)

    def _prologue(self) -> None:
        if not self.mark:
            self.out.line("Counter updates(report.updates);")

    def _close_to(self, depth: int) -> None:
        self.out.close_to(depth)

    def _driver(self, driver: int) -> None:
        table = self.table_of[driver]
        self.cells[driver] = "cell"
        if self.rule.antecedents[driver].side and not self.once:
            self.out.open(f"if ({self.given('first')})")
        self._match_arguments(self.nest.given, table.domains)
        if self.weighs(driver):
            self.take_driver(driver)

    def take_driver(self, driver: int) -> None:
        if self.plain and not self.once:
            self.take(driver, self.given("now"), self.given("old") if self.subtracts(self._table) else None)
        else:
            self.take(driver, self.given("update"))

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
        name = self.names.table[self.rule.antecedents[i].item.key]
        driver = self.join.driver
        changing = driver is not None and not self.mark and is_facts(self.table_of[driver])
        return f"old_{name}" if changing and i > (driver or 0) and is_facts(self.table_of[i]) else name

    def _probe(self, i: int) -> None:
        item, table = self.rule.antecedents[i].item, self.table_of[i]
        name = self.place(i)
        if is_external(table):
            texts = self._arguments(item, table, True)
            value = self.fresh("outside")
            self.out.line(f"const int32_t {value}_arguments[] = {{{', '.join([*texts, '0'])}}};")
            self.out.line(f"value_t {value};")
            self.out.open(f"if (external({table.number}, {value}_arguments, {value}))")
            self.take(i, value)
            return
        texts = self._arguments(item, table)
        at = self.fresh("at")
        find = self.finders.get(i, f"{name}.find")
        self.out.line(f"const int64_t {at} = {find}({self._stored(table, texts)});")
        self.out.open(f"if ({at} >= 0)")
        self._antecedent(i, at)

    def _antecedent(self, i: int, at: str) -> None:
        """Another antecedent is the item at cell `at`: takes its value, old or new (semi-naive evaluation)."""
        value = f"{self.place(i)}.value[{at}]"
        self.cells[i] = at
        driver = self.join.driver
        if driver is None or i not in self.join.same:
            self.take(i, value)
            return
        if self.mark or i < driver:
            self.take(i, value, value if self.plain and self.subtracts(self._table) else None)
        elif self.once:  # to the right of the driver the same item has its old value, and none at its first pop
            self.out.open(f"if ({at} != {self.given('cell')})")
            self.take(i, value)
        else:
            self.out.open(f"if ({at} != {self.given('cell')} || !{self.given('first')})")
            if self.weighs(i):
                self.take(i, f"{at} == cell ? {self.given('old')} : {value}")

    def _keys(self, keys: Sequence[Term], index: IndexPlan) -> list[str]:
        """The codes of a key that is looked up in an index."""
        domains = key_domains(self.plan, index)
        return [self.build(t, d, False) for t, d in zip(keys, domains, strict=True)]

    def _loop(self, loop: Loop, vector: str | None = None) -> None:
        """Finds the matching items; facts that are contiguous over the variable `vector` by one vector operation."""
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
                self.out.line(f"const auto {found} = {name}.by{index.number}().find({', '.join(keys)});")
                self.out.line(f"if (spend({found}.end - {found}.begin)) return;")
                if vector is not None:
                    self._stretch_operation(loop, vector, found)
                self.out.open(f"for (int64_t {p} = {found}.begin; {p} < {found}.end; {p}++)")
                self.out.line(f"const int64_t {at} = {name}.by{index.number}().rows[{p}];")
                self._columns(loop, at)
            else:
                array, entry = self.fresh("key"), self.fresh("entry")
                self.out.line(f"const int32_t {array}[] = {{{', '.join([*keys, '0'])}}};")
                by = self.names.index(item.key, index.number)
                self.out.open(f"for (int64_t {entry} = {by}.begin({array}); {entry}; {entry} = {by}.next({entry}))")
                self.out.line("if (spend(1)) return;")
                self.out.line(f"const int64_t {at} = {by}.cell({entry});")
                if self.plan.changes is not None:  # deleted items stay in the index
                    self.out.open(f"if ({name}.popped.test({at}))")
                self._cell(loop, table, at)
        self._antecedent(i, at)

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
            texts = self._arguments_or_none(absence.item, table)
            self.out.open(f"if ({name}.find({self._stored(table, texts)}) < 0)")
            return
        index = self.plan.indexes[absence.index]
        domains = key_domains(self.plan, index)
        keys = [self.build(t, d, True) for t, d in zip(absence.keys, domains, strict=True)]
        if is_facts(table):
            found = self.fresh("found")
            self.out.line(f"const auto {found} = {name}.by{index.number}().find({', '.join(keys)});")
            self.out.open(f"if ({found}.begin == {found}.end)")
        else:
            array = self.fresh("key")
            self.out.line(f"const int32_t {array}[] = {{{', '.join([*keys, '0'])}}};")
            self.out.open(f"if (!{self.names.index(absence.item.key, index.number)}.begin({array}))")

    def _arguments_or_none(self, item: Item, table: TableLayout) -> list[str]:
        return [self.build(t, d, True) for t, d in zip(item.arguments, table.domains, strict=True)]

    # -- the head

    def _head(self) -> None:
        table = self.plan.tables[self.rule.head.key]
        name = self.names.table[self.rule.head.key]
        if self.mark:
            texts = self._arguments(self.rule.head, table, self.plan.resolves)  # where cycles are solved it may be new
            self.out.line(f"mark_{name}({', '.join(texts)});")
            return
        value = self._value(table)
        texts = self._arguments(self.rule.head, table, True)
        if may_excuse(self.plan, table):
            value = self._excuse(table, name, value, texts)
        self._trace(table, name, texts)
        self.out.line("updates.count++;")
        self.out.line(f"{self.names.add(table.key)}({', '.join([*texts, value])});")

    def _trace(self, table: TableLayout, name: str, texts: Sequence[str]) -> None:
        """In rounds that do not settle, tells from which items of the stage the head comes, see `Moving`."""
        cells = [
            f"handle({self.table_of[i].number}, {cell})"
            for i, cell in self.cells.items()
            if self.table_of[i].key in self.stage.keys
        ]
        if not sweeps(self.stage) or table.sink or not cells:
            return
        moving = f"moving{self.stage.number}"
        self.out.open(f"if (__builtin_expect({moving}.watch == Moving::tracing, 0))")
        self.out.line(f"const Handle head = handle({table.number}, {name}.locate({self._stored(table, texts)}));")
        for cell in cells:
            self.out.line(f"{moving}.trace(head, {cell});")
        self.out.close()

    def _excuse(self, table: TableLayout, name: str, value: str, texts: Sequence[str]) -> str:
        """Sets the flags of the head where a contribution is infinite because an antecedent is, see `combine.py`;
        returns the contribution's name."""
        legal: list[list[str]] = []
        passed = []
        for i, x in sorted(self.values.items()):
            antecedent = self.table_of[i]
            infinite = f"!isfinite(semiring::primal({x}))"
            if antecedent.key not in self.stage.keys:
                legal.append([infinite])
                continue
            if not may_excuse(self.plan, antecedent):
                continue
            if i == self.join.driver:
                self.given("cell")
            excused = f"(flags_of({self.names.table[antecedent.key]}.excused, {self.cells[i]}) & 1)"
            nothing = compared_with_zero(antecedent, x, "==")
            if nothing:
                flags = f"flags_of({self.names.table[antecedent.key]}.excused, {self.cells[i]})"
                excused = f"({excused} || ({nothing} && !({flags} & 4)))"
            legal.append([infinite, excused])
            passed.append(infinite)
        overflowed = "" if has_poles(self.rule.value) else compared_with_zero(table, value, "==")
        if not legal and not overflowed:
            return value
        x = value
        if value not in self.values.values():
            x = self.fresh("contribution")
            self.out.line(f"const value_t {x} = {value};")
        self.out.open(f"if (__builtin_expect(!isfinite(semiring::primal({x})), 0))")
        self.out.line(
            f"uint8_t& flags = grown({name}.excused, {name}.locate({self._stored(table, texts)}), (uint8_t)0);"
        )
        either = " || ".join(
            f"({' && '.join(tests)})" if tests[1:] and legal[1:] else " && ".join(tests) for tests in legal
        )
        self.out.line(f"if ({either or 'false'}) flags |= 1;")
        if passed and sweeps(self.stage):
            nothing = compared_with_zero(table, x, "==")
            flags = f"({nothing}) ? 6 : 2" if nothing else "2"
            self.out.line(f"else if ({' || '.join(passed)}) flags |= {flags};")
        if overflowed:
            finite = [f"isfinite(semiring::primal({v}))" for v in self.values.values()]
            self.out.line(f"else if ({' && '.join([compared_with_zero(table, x, '=='), *finite])}) flags |= 4;")
        self.out.close()
        return x

    def _value(self, table: TableLayout) -> str:
        if not self.plain:
            if self.in_order:
                for which, antecedent in product_order(self.rule.value):
                    weight = self.names.weight(self.rule, which[0], which[1]) if which is not None else ""
                    self.multiply(weight if antecedent is None else self.values[antecedent])
            weight = self.weight if self.weight is not None else "semiring::one()"
            return f"semiring::settled({weight})" if self.unsettled else weight
        now = self.plain_value(self.values)
        if not self.subtracts(table):
            return now
        before = self.plain_value({**self.values, **self.old}, prefix="s", unless=self.given("first"))
        return f"first ? {now} : semiring::minus({now}, {before})"

    def subtracts(self, table: TableLayout) -> bool:
        """Whether the update of a head in plain arithmetic is a new contribution minus the old one."""
        driver = self.join.driver
        if driver is None or self.once or table.aggregator != "+=":
            return False
        return not self.rule.antecedents[driver].side

    def plain_value(self, values: Mapping[int, str], prefix: str = "t", unless: str = "") -> str:
        """The right side of a plain rule, after its statements; functions are not called where `unless` holds."""
        names = {f"x{i}": text for i, text in values.items()}
        code = value_cxx(self.rule, self.plan.functions, names, prefix, self.plan.order, self.names.functions)
        self.compute(code, unless)
        return code.results[0]

    def compute(self, code: Code, unless: str = "") -> None:
        """Writes what computes the results; a function that fails, or has to stop, ends the join."""
        for statement in code.statements:
            self.out.line(statement)
        if not code.call:
            return
        self.out.open(f"if ({f'!{unless} && ' if unless else ''}{code.call} != 0)")
        self.out.line("if (halt) return;")
        self.out.line(f'functions.blame("{code.name}");')
        table = self.plan.tables[self.rule.head.key]
        self.out.line(f"return {self.failing}(function_failed, {table.number}, {self.head_cell(table)});")
        self.out.close()

    failing = "fail"

    def head_cell(self, table: TableLayout) -> str:
        """The cell of the head."""
        texts = self._arguments(self.rule.head, table, True)
        return f"{self.names.table[table.key]}.locate({self._stored(table, texts)})"

    @property
    def _factors(self) -> str:
        """The product so far; the row operations normalise it."""
        return self.weight if self.weight is not None else "semiring::one()"

    def _row_operation(self, loop: Loop, variable: str) -> None:
        """The last scan and the head run over one variable: a multiple of one row is added to another."""
        name, row, head_name, to, shift = self._rows(loop)
        self.out.line(
            f"add_row({name}, {row}, {head_name}, {to}, {shift}, {self._factors}, this, "
            f"{self.names.arrive(self.rule.head.key)});",
            f"side by side over {comment(variable)}",
        )

    def _stretch_operation(self, loop: Loop, variable: str, found: str) -> None:
        """The same for a scan of facts, if they turn out to be contiguous; else the loop that follows is run."""
        item = loop.item
        name, head = self.names.table[item.key], self.plan.tables[self.rule.head.key]
        column = f"{name}.column({item.arguments.index(Variable(variable))})"
        place = head.order[-1]
        self.out.open(f"if ({name}.by{loop.index}().side_by_side({found}, {column}))", f"over {comment(variable)}")
        texts = [
            f"{column}[{found}.begin]" if i == place else self.build(term, head.domains[i], True)
            for i, term in enumerate(self.rule.head.arguments)
        ]
        to = self.fresh("to")
        self.out.line(f"const int64_t {to} = {self.names.table[head.key]}.cell({self._stored(head, texts)});")
        self._write_stretch(name, found, self.names.table[head.key], to)
        self.out.otherwise()
        self._in_turn()

    def _in_turn(self) -> None:
        """Adds what waits for items of the head, before anything is added to them one by one."""
        if self.plan.sums_together(self.join):
            self.out.line("together.end(this);")

    def _write_stretch(self, name: str, found: str, head_name: str, to: str) -> None:
        call = "together.add" if self.plan.sums_together(self.join) else "add_stretch"
        self.out.line(
            f"{call}({name}.value, {found}.begin, {found}.end - {found}.begin, {head_name}, {to}, "
            f"{self._factors}, this, {self.names.arrive(self.rule.head.key)});"
        )

    def _rows(self, loop: Loop) -> tuple[str, str, str, str, str]:
        """The row of the last scan and that of the head: table and first cell of each, and the shift between them."""
        item, table = loop.item, self.table_of[loop.antecedent]
        head = self.plan.tables[self.rule.head.key]
        name, head_name = self.names.table[item.key], self.names.table[self.rule.head.key]
        row, _ = self._row(item, table)
        self.out.open(f"if ({row} >= 0)")
        self.out.line(f"if (spend({name}.row_length() / 8)) return;")
        place = head.order[-1]
        texts = {i: self.build(self.rule.head.arguments[i], head.domains[i], True) for i in head.order if i != place}
        low = f"{head_name}.range[{head.arity - 1}].low"
        stored = ", ".join([*(texts[i] for i in head.order[:-1]), low])
        to = self.fresh("to")
        self.out.line(f"const int64_t {to} = {head_name}.cell({stored});")
        shift = "0" if name == head_name else f"{name}.range[{table.arity - 1}].low - {low}"
        return name, row, head_name, to, shift


def key_domains(plan: Plan, index: IndexPlan) -> list[int | None]:
    """The domain of each key of an index: that of its argument, or None for a part of a term."""
    table = plan.tables[index.key]
    domains: list[int | None] = []
    for name in index.by:
        places = [i for i, t in enumerate(index.pattern) if isinstance(t, Variable) and t.name == name]
        domains.append(table.domains[places[0]] if places else None)
    return domains
