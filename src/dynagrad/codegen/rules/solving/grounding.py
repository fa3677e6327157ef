"""Joins inside a level, written as equations of the ground program.

Their functions are called by those of `blocks.py`, forward, and of `solving/adjoints.hpp`, backward.
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

    def begin(self) -> None:
        pass

    def _match_driver(self, driver: int) -> None:
        self._number(driver, "cell")
        super()._match_driver(driver)

    def take_driver(self, driver: int) -> None:
        name = self.names.table[self.rule.antecedents[driver].item.key]
        self.out.line(f"const value_t update = {name}.value[{self.given('cell')}];")
        self.take(driver, "update")

    def found(self, i: int, at: str) -> None:
        self.at[i] = at
        self._number(i, at)
        super().found(i, at)

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
            self.out.line(f"const uint32_t {self.unknown[i]} = member(*this, {name}, {at});")

    def take(self, antecedent: int, value: str, old: str | None = None) -> None:
        if antecedent in self.unknown and not self.plain and self.plan.semiring != "user":
            value = f"({self.unknown[antecedent]} == unsolved ? {value} : semiring::one())"
        super().take(antecedent, value, old)

    def at_head(self) -> None:
        table = self.plan.tables[self.rule.head.key]
        self.out.line(f"const uint32_t head = member(*this, {self.names.table[table.key]}, {self.head_cell(table)});")
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
            self.out.line(f"blocks{self.stage.number}.system.add(head, {sides[0]}, semiring::one(), unsolved);")
            return
        value = self.values[next(iter(self.unknown))]
        self.out.open(f"if ({unknown} == unsolved)")
        product = f"semiring::times(semiring::times({sides[0]}, {value}), {sides[1]})"
        self.out.line(f"blocks{self.stage.number}.system.add(head, {product}, semiring::one(), unsolved);")
        self.out.otherwise()
        self.out.line(f"blocks{self.stage.number}.system.add(head, {sides[0]}, {sides[1]}, {unknown});")
        self.out.close()

    def _add(self, weight: str, factors: list[str]) -> None:
        places = [*factors, *["unsolved"] * (self.stage.unknowns - len(factors))]
        of = self.fresh("of")
        self.out.line(f"const uint32_t {of}[] = {{{', '.join(places)}}};")
        log = self._logs() if self.plan.keeps_logs and len(self.unknown) == 1 and len(factors) == 1 else ""
        if log:
            self.out.line(
                f"if ({factors[0]} == head) blocks{self.stage.number}.system.add_loop(head, {weight}, {of}, {log});"
            )
            self.out.line(f"else blocks{self.stage.number}.system.add(head, {weight}, {of});")
            return
        self.out.line(f"blocks{self.stage.number}.system.add(head, {weight}, {of});")


def driver_of(join: Join) -> str:
    """The predicate that drives a join."""
    assert join.driver is not None
    return join.rule.antecedents[join.driver].item.key


def write_ground(context: ClassContext, join: Join) -> None:
    """`ground...`: the function of a join inside a level that is driven by an item."""
    out = context.out
    assert join.driver is not None
    item = join.rule.antecedents[join.driver].item
    context.join_comment(join)
    out.line(f"// ground, driver: {comment(show(item))}, antecedent {join.driver + 1}")
    context.join_function(join, "ground", GroundWriter(context, join))
