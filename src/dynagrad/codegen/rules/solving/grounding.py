"""Joins inside a level, written as edges of the ground program and as its equations.

Their functions are called by those of `exploring.py`, forward, and of `codegen/rules/backward/implicit.py`, backward.
"""

from __future__ import annotations

from ....plan.analyses.polynomials import polynomial, recursive
from ....plan.model import Join
from ....plan.right_sides import called, numbers, product_order, to_node
from ....plan.traits import is_external, is_facts
from ....rules.show import show
from ...cxx import comment
from ..context import ClassContext
from ..statements import JoinWriter
from ..values import lifted_cxx


class EdgeWriter(JoinWriter):
    """Writes a join that adds edges from its antecedents to its head to the ground program, and computes no values."""

    @property
    def in_rows(self) -> bool:
        return False

    def start(self) -> None:
        self.inside: list[tuple[str, str]] = []

    def _prologue(self) -> None:
        pass

    def weighs(self, antecedent: int) -> bool:
        return False

    def _antecedent(self, i: int, at: str) -> None:
        key = self.rule.antecedents[i].item.key
        if key in self.stage.keys:
            self.inside.append((self.names.table[key], at))
        if i in self.join.same and i > (self.join.driver or 0):
            self.out.open(f"if ({at} != {self.given('cell')})")

    def _head(self) -> None:
        table = self.plan.tables[self.rule.head.key]
        name, n = self.names.table[table.key], self.stage.number
        texts = self._arguments(self.rule.head, table, True)
        self.out.line(f"const uint32_t head = reach_{name}({', '.join(texts)});")
        origin = self.given("from")
        if self.stage.forms:
            self.out.line(f"if (!head) block{n}.leave({origin});")
        self.out.open("if (head)")
        self.out.line(f"block{n}.edge({origin}, head);")
        for other, at in self.inside:
            node = f"const uint32_t other = grown({other}.node, {at}, 0u)"
            self.out.line(f"if ({node}; block{n}.has(other)) block{n}.edge(other, head);")


class GroundWriter(JoinWriter):
    """Writes a join that adds each instance whose head is in the current component to its system of equations."""

    def __init__(self, context: ClassContext, join: Join) -> None:
        super().__init__(context.plan, context.names, join, context.out)
        self.keys = frozenset(self.stage.keys)
        self.unknown: dict[int, str] = {}  # antecedent -> the local with its number in the system, or none
        self.at: dict[int, str] = {}  # antecedent -> its cell or row

    @property
    def in_rows(self) -> bool:
        return False

    def _prologue(self) -> None:
        pass

    def _driver(self, driver: int) -> None:
        self._number(driver, "cell")
        super()._driver(driver)

    def take_driver(self, driver: int) -> None:
        name = self.names.table[self.rule.antecedents[driver].item.key]
        self.out.line(f"const value_t update = {name}.value[{self.given('cell')}];")
        self.take(driver, "update")

    def _antecedent(self, i: int, at: str) -> None:
        self.at[i] = at
        self._number(i, at)
        super()._antecedent(i, at)

    def _logs(self) -> str:
        """The log of an instance's weight, for instances whose only unknown is their own head."""
        parts = [
            f"weight_log[{self.names.weights[self.rule.number, k]}]" for k, _ in enumerate(numbers(self.rule.value))
        ]
        for i in self.product:
            antecedent = self.rule.antecedents[i]
            if antecedent.side or i in self.unknown:
                continue
            table = self.table_of[i]
            if is_facts(table):
                parts.append(f"{self.place(i)}.logs[{self.at[i]}]")
            elif is_external(table) or i == self.join.driver:
                return ""
            else:
                parts.append(f"semiring_log({self.place(i)}.value[{self.at[i]}])")
        return " + ".join(parts) or "0.0"

    def _number(self, i: int, at: str) -> None:
        antecedent = self.rule.antecedents[i]
        if antecedent.item.key in self.keys and not antecedent.side:
            self.unknown[i] = self.fresh("u")
            name = self.names.table[antecedent.item.key]
            if i == self.join.driver:
                self.given("cell")
            self.out.line(f"const uint32_t {self.unknown[i]} = member_{name}({at});")

    def take(self, antecedent: int, value: str, old: str | None = None) -> None:
        if antecedent in self.unknown and not self.plain and self.plan.semiring != "user":
            value = f"({self.unknown[antecedent]} == unsolved ? {value} : semiring::one())"
        super().take(antecedent, value, old)

    def _head(self) -> None:
        table = self.plan.tables[self.rule.head.key]
        self.out.line(f"const uint32_t head = member_{self.names.table[table.key]}({self.head_cell(table)});")
        self.out.open("if (head != unsolved)")
        if self.plan.semiring == "user":
            self._add_sides()
            return
        if not self.plain:
            self._add(self._value(table), list(self.unknown.values()))
            return
        found = polynomial(self.rule.value, recursive(self.rule, self.keys))
        assert found is not None
        functions = self.plan.functions
        for k, (factors, coefficient) in enumerate(found.items()):
            name = called(coefficient, functions)
            names = {f"x{i}": text for i, text in self.values.items()}
            node = to_node(coefficient, functions)
            code = lifted_cxx([node], names, f"c{k}_", self.plan.order, self.names.functions, name)
            self.compute(code)
            weight = code.results[0]
            for i in factors:
                known = f"({self.unknown[i]} == unsolved ? {self.values[i]} : semiring::one())"
                weight = f"semiring::times({weight}, {known})"
            self._add(weight, [self.unknown[i] for i in factors])

    def _add_sides(self) -> None:
        """Adds an instance in a user's semiring, whose times need not commute: the products before and after the
        unknown."""
        sides: list[str] = ["semiring::one()", "semiring::one()"]
        after = 0
        for which, antecedent in product_order(self.rule.value):
            if antecedent is not None and antecedent in self.unknown:
                after = 1
                continue
            if antecedent is None:
                assert which is not None
                text = self.names.weight(self.rule, which[0], which[1])
            else:
                text = self.values[antecedent]
            sides[after] = text if sides[after] == "semiring::one()" else f"semiring::times({sides[after]}, {text})"
        unknown = next(iter(self.unknown.values()), None)
        if unknown is None:
            self.out.line(f"system{self.stage.number}.add(head, {sides[0]}, semiring::one(), unsolved);")
            return
        value = self.values[next(iter(self.unknown))]
        self.out.open(f"if ({unknown} == unsolved)")
        product = f"semiring::times(semiring::times({sides[0]}, {value}), {sides[1]})"
        self.out.line(f"system{self.stage.number}.add(head, {product}, semiring::one(), unsolved);")
        self.out.otherwise()
        self.out.line(f"system{self.stage.number}.add(head, {sides[0]}, {sides[1]}, {unknown});")
        self.out.close()

    def _add(self, weight: str, factors: list[str]) -> None:
        places = [*factors, *["unsolved"] * (self.stage.unknowns - len(factors))]
        of = self.fresh("of")
        self.out.line(f"const uint32_t {of}[] = {{{', '.join(places)}}};")
        log = self._logs() if self.plan.keeps_logs and len(self.unknown) == 1 and len(factors) == 1 else ""
        if log:
            self.out.line(f"if ({factors[0]} == head) system{self.stage.number}.add_loop(head, {weight}, {of}, {log});")
            self.out.line(f"else system{self.stage.number}.add(head, {weight}, {of});")
            return
        self.out.line(f"system{self.stage.number}.add(head, {weight}, {of});")


def driver_of(join: Join) -> str:
    """The predicate that drives a join."""
    assert join.driver is not None
    return join.rule.antecedents[join.driver].item.key


def write_join(context: ClassContext, join: Join, prefix: str) -> None:
    """`edges...` or `ground...`: the function of a join inside a level that is driven by an item."""
    out = context.out
    assert join.driver is not None
    item = join.rule.antecedents[join.driver].item
    context.join_comment(join)
    out.line(f"// {prefix}, driver: {comment(show(item))}, antecedent {join.driver + 1}")
    edges = prefix == "edges"
    context.join_function(
        join, prefix, EdgeWriter(context.plan, context.names, join, out) if edges else GroundWriter(context, join)
    )
