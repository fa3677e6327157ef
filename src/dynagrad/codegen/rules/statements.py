"""Joins as C++: nested loops over the other antecedents, matching, and the update of the head.

A `JoinWriter` writes the steps of one join as nested `if`s and loops, in which a failed match leaves its block. Names
of rule variables are kept; they start with a capital letter or an underscore, all other names in generated code with a
small letter.

The order of the steps was chosen by `plan/joins.py`; right sides are in `values.py`, and what happens to an update is
in `running/item.hpp`.

It is long because the steps of a join and the update of its head share what was found on the way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...plan.model import Join, Plan, TableLayout
from ...plan.nest import Access, Loop, Operation
from ...plan.right_sides import factors, has_poles, numbers, product_order
from ...plan.traits import is_facts, may_excuse, sweeps
from ...rules.aggregators import AGGREGATORS
from ...rules.semirings import SEMIRINGS
from ...rules.syntax import Variable
from ..cxx import Writer, comment, literal
from .functions import Code
from .nests import NestWriter
from .scope import Names
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


class JoinWriter(NestWriter):
    """Writes one join, whose instances send updates to their heads."""

    def __init__(self, plan: Plan, names: Names, join: Join, writer: Writer) -> None:
        super().__init__(plan, names, join, writer)
        self.plain = plan.semiring == "plain"
        self.product = factors(join.rule.value) if not self.plain else []
        self.weight: str | None = None  # the product so far
        self.unsettled = 0  # factors since the product was last normalised
        self.values: dict[int, str] = {}  # plain arithmetic: antecedent -> value
        self.cells: dict[int, str] = {}  # derived antecedent -> its cell
        self.old: dict[int, str] = {}  # antecedent -> its value before this pop
        self.stage = plan.stage_of[join.rule.head.key]

    @property
    def _table(self) -> TableLayout:
        """The table of the head."""
        return self.plan.tables[self.rule.head.key]

    @property
    def once(self) -> bool:
        """Whether the driver has no earlier value: it is popped once, or it is a fact."""
        driver = self.join.driver
        return driver is None or self.stage.final or is_facts(self.table_of[driver])

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
        return True

    def start(self) -> None:
        """Before any step: multiplies the constants of the rule."""
        if self.plain or self.in_order:
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
        if self.rule.antecedents[antecedent].side:
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

    def place(self, i: int) -> str:
        """The table of antecedent i. When a fact changes, antecedents to the right of it are joined with old facts."""
        name, driver = super().place(i), self.join.driver
        changing = driver is not None and is_facts(self.table_of[driver])
        return f"old_{name}" if changing and i > (driver or 0) and is_facts(self.table_of[i]) else name

    def begin(self) -> None:
        self.out.line("Counter updates(report.updates);")

    def _match_driver(self, driver: int) -> None:
        self.cells[driver] = "cell"
        if self.rule.antecedents[driver].side and not self.once:
            self.out.open(f"if ({self.given('first')})")
        super()._match_driver(driver)

    def driver(self, driver: int) -> None:
        if self.weighs(driver):
            self.take_driver(driver)

    def outside(self, i: int, value: str) -> None:
        self.take(i, value)

    def found(self, i: int, at: str) -> None:
        """Another antecedent is the item at cell `at`: takes its value, old or new (semi-naive evaluation)."""
        value = f"{self.place(i)}.value[{at}]"
        self.cells[i] = at
        driver = self.join.driver
        if driver is None or i not in self.join.same:
            self.take(i, value)
        elif i < driver:
            self.take(i, value, value if self.plain and self.subtracts(self._table) else None)
        elif self.once:  # to the right of the driver the same item has its old value, and none at its first pop
            self.out.open(f"if ({at} != {self.given('cell')})")
            self.take(i, value)
        else:
            self.out.open(f"if ({at} != {self.given('cell')} || !{self.given('first')})")
            if self.weighs(i):
                self.take(i, f"{at} == cell ? {self.given('old')} : {value}")

    def write_row(self, operation: Operation) -> bool:
        if not isinstance(operation, Loop) or operation.row is None or not self.in_rows:
            return False
        if operation.access is not Access.ROW:
            return False
        self._row_operation(operation, operation.row)
        return True

    def stretch(self, loop: Loop, found: str) -> None:
        if loop.row is not None and self.in_rows:
            self._stretch_operation(loop, loop.row, found)

    def take_driver(self, driver: int) -> None:
        if self.plain and not self.once:
            self.take(driver, self.given("now"), self.given("old") if self.subtracts(self._table) else None)
        else:
            self.take(driver, self.given("update"))

    # -- the head

    def at_head(self) -> None:
        table = self.plan.tables[self.rule.head.key]
        name = self.names.table[self.rule.head.key]
        value = self._value(table)
        texts = self._arguments(self.rule.head, table, True)
        if may_excuse(self.plan, table):
            value = self._excuse(table, name, value, texts)
        self._trace(table, name, texts)
        self.out.line("updates.count++;")
        self.out.line(f"{self.names.add(table.key, texts, value)};")

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
        """Sets the flags of the head where a contribution is infinite because an antecedent is, see `overflowed` in
        `running/item.hpp`;
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


def compared_with_zero(table: TableLayout, value: str, operator: str) -> str:
    """The test that an infinite value is (`==`) or is not (`!=`) the aggregator's zero; empty where that is finite."""
    nothing = AGGREGATORS[table.aggregator].zero
    return f"semiring::primal({value}) {operator} {literal(nothing, operand=False)}" if math.isinf(nothing) else ""
