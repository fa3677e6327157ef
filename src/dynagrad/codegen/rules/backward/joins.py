"""Backward joins: they enumerate the instances of a forward join, and propagate the adjoint of its head's update.

They are written by the code of forward joins, from which `BackWriter` inherits; here is only what is done at the head
and on the way back out of the loops.
"""

from __future__ import annotations

from ....plan.model import Join, Plan, TableLayout
from ....plan.nest import Loop
from ....plan.right_sides import numbers, product_order
from ....plan.traits import goes_back_together, head_kind, keeps_total, posteriors, rests
from ....rules.aggregators import HeadKind
from ....rules.semirings import SEMIRINGS
from ...cxx import comment
from ..context import ClassContext
from ..statements import JoinWriter, compared_with_zero
from ..values import adjoints_cxx
from .adjoints import update_adjoint
from .resting import write_resting_adjoint


class BackWriter(JoinWriter):
    """Writes a backward join: it propagates the adjoint of its head's update to the antecedents.

    A product over nested loops is a chain of products, one for each loop. Adjoints are propagated back along the chain:
    they are summed in a local inside a loop, and passed on to the factor and to the product outside when it ends.
    """

    def __init__(self, context: ClassContext, join: Join) -> None:
        super().__init__(context.plan, context.names, join, context.out)
        self.context = context
        self.targets: dict[int, str] = {}  # antecedent -> its adjoint
        self.sums: dict[int, str] = {}  # antecedent -> the local that sums contributions to its adjoint
        self.bar: str | None = None  # the local that sums the adjoint of the product so far
        self.closing: list[tuple[int, list[str]]] = []  # depth -> lines to be written before that block closes
        self.head = context.plan.tables[join.rule.head.key]
        self.posteriors = posteriors(context.plan)
        self.raw = 0  # factors since the product was last normalised
        self.inner = (join.rule.number, join.driver) in self.stage.inner and self.stage.unknowns > 0
        self.to = ""  # the cell of the head, once it is located
        self.factors_left = len(numbers(join.rule.value)) + len(self.product)
        self.reads_product = join.driver is not None and rests(context.plan, self.head)  # at the head

    def begin(self) -> None:
        pass

    def close_to(self, depth: int) -> None:
        while self.closing or self.out.depth > depth:
            while self.closing and self.closing[-1][0] == self.out.depth:
                for line in self.closing.pop()[1]:
                    self.out.line(line)
            if self.out.depth > depth:
                self.out.close()

    def later(self, *lines: str) -> None:
        self.closing.append((self.out.depth, list(lines)))

    def _match_driver(self, driver: int) -> None:
        self.targets[driver] = "gupdate"
        super()._match_driver(driver)

    def target(self, antecedent: int) -> str | None:
        """The adjoint of an antecedent that is found, which is added to from now on."""
        if antecedent == self.join.driver:
            self.given("gupdate")
        return self.targets.get(antecedent)

    def found(self, i: int, at: str) -> None:
        name = self.names.table[self.rule.antecedents[i].item.key]
        self.targets[i] = f"{name}.g[{at}]"
        if i in self.join.same and i > (self.join.driver or 0) and not self.once:
            self.targets[i] = f"({at} == {self.given('cell')} ? {self.given('gold')} : {name}.g[{at}])"
        if self.inner and self.rule.antecedents[i].item.key in self.stage.keys:  # its adjoint is solved for already
            self.targets[i] = f"(inside && member(*this, {name}, {at}) != unsolved ? discarded : {self.targets[i]})"
        super().found(i, at)

    def take(self, antecedent: int, value: str, old: str | None = None) -> None:
        if not self.weighs(antecedent):
            return
        target = self.target(antecedent)
        if not self.plain and not self.in_order:
            self.factor(value, target)
            return
        super().take(antecedent, value, old)
        if target is not None:
            self.sums[antecedent] = self.summed(target)
            if self.plain and antecedent == self.join.driver and self.subtracts(self.head):
                self.sums[-1] = self.summed(self.given("gold"))

    def summed(self, target: str) -> str:
        """A local whose sum is added to `target` when the block ends."""
        name = self.fresh("sum")
        self.out.line(f"adjoint_t {name} = {{}};")
        self.later(f"if (!back::nothing({name})) {target} = back::gather({target}, {name});")
        return name

    def multiply(self, text: str) -> None:
        if self.in_order:
            super().multiply(text)
        else:
            self.factor(text, None)

    def posterior_factor(self, text: str, target: str | None) -> None:
        """One more factor, where adjoints are posteriors: each factor of an instance gets the instance's posterior."""
        f, w = self.fresh("f"), self.fresh("w")
        self.out.line(f"const value_t {f} = {text};")
        if self.weight is None:
            w = f
        elif self.raw:
            self.raw = 0
            self.out.line(f"const value_t {w} = semiring::times(semiring::settled({self.weight}), {f});")
        else:
            self.raw = 1
            self.out.line(f"const value_t {w} = semiring::raw({self.weight}, {f});")
        goals = [g for g in (target, self.bar) if g is not None]
        if target is not None:
            self.bar = self.fresh("sum")
            self.out.line(f"double {self.bar} = 0;")
            self.later(*(f"{goal} += {self.bar};" for goal in goals))
        self.weight = w

    def factor(self, text: str, target: str | None) -> None:
        """One more factor of the product, whose adjoint is `target`."""
        if self.posteriors:
            self.posterior_factor(text, target)
            return
        self.factors_left -= 1
        if self.weight is None and not self.factors_left and not self.reads_product:  # the derivative by it is one
            self.weight, self.bar = text, None if target is None else self.summed(target)
            return
        f = self.fresh("f")
        self.out.line(f"const value_t {f} = {text};")
        if self.weight is None:
            self.weight = f
            self.bar = None if target is None else self.summed(target)
            return
        w, bar = self.fresh("w"), self.fresh("bar")
        if self.factors_left or self.reads_product:
            self.out.line(f"const value_t {w} = semiring::times({self.weight}, {f});")
        self.out.line(f"adjoint_t {bar} = {{}};")
        parts = []
        if target is not None:
            parts.append(f"{target} = back::gather({target}, back::scale({bar}, {self.weight}));")
        if self.bar is not None:
            parts.append(f"{self.bar} = back::gather({self.bar}, back::scale({bar}, {f}));")
        if parts:
            self.later(f"if (!back::nothing({bar})) {{", *(f"  {p}" for p in parts), "}")
        self.weight, self.bar = w, bar

    failing = "lose"

    def head_cell(self, table: TableLayout) -> str:
        return self.to

    def at_head(self) -> None:
        name = self.names.table[self.head.key]
        texts = self._arguments(self.rule.head, self.head, True)
        self.to = to = self.fresh("to")
        self.out.line(f"const int64_t {to} = {name}.locate({self._stored(self.head, texts)});")
        if self.inner:  # either all instances inside a solved component, or all others
            self.out.open(f"if ((member(*this, {name}, {to}) != unsolved) == inside)")
        if self.posteriors:
            self.out.line(f"const value_t h = {name}.h[{to}];")
            self.out.open("if (h.m != 0)")
            if self.bar is not None:
                self.out.line(f"{self.bar} += Posterior::of(h, {self.weight});")
            return
        adjoint = f"{update_adjoint(self.plan, self.names, self.head)}[{to}]"
        kind = head_kind(self.plan, self.head)
        if kind is HeadKind.SELECT:
            self.out.open(f"if ({name}.wait[{to}] == position)")
            value = self._value_now()
            self.out.line(f"const value_t x = {value};")
            self.out.open(f"if (semiring::primal(x) == semiring::primal({name}.aim[{to}]))")
            self.out.line(f"{name}.wait[{to}] = nowhere;", "the first instance that fits")
        elif kind in (HeadKind.PRODUCT, HeadKind.SOFTMAX):
            self.out.line(f"const value_t x = {self._value_now()};")
        self.out.line(f"adjoint_t g = {adjoint};")
        if kind is HeadKind.SELECT and self.plain and (nothing := compared_with_zero(self.head, "x", "==")):
            self.out.line(f"if ({nothing}) g = {{}};", "nothing stays nothing, whatever it is the best of")
        if self.join.driver is not None and rests(self.plan, self.head):
            write_resting_adjoint(self.context, self.head, to, self._contribution())
        self.out.open("if (!back::nothing(g))")
        if kind is HeadKind.PRODUCT:
            self.out.line(f"g = back::scale(g, {name}.factors.others({to}, x));")
        if kind is HeadKind.SOFTMAX:
            self.out.line(f"g = semiring::share(g, x, {total_of(self.plan, self.head, name, to)});")
        if self.plain:
            self._plain_adjoints()
        elif self.in_order:
            adds = SEMIRINGS[self.plan.semiring].times_adds  # every partial derivative of a sum is one
            for i, total in self.sums.items():
                part = "g" if adds else f"back::scale(g, {self._others(i)})"
                self.out.line(f"{total} = back::gather({total}, {part});")
        elif self.bar is not None:
            self.out.line(f"{self.bar} = back::gather({self.bar}, g);")

    def _others(self, antecedent: int) -> str:
        """The product of all factors but one."""
        found = ""
        for constant, other in product_order(self.rule.value):
            if other != antecedent or constant is not None:
                text = self.values[other] if other is not None else self.names.weight(self.rule, *(constant or (0, 0)))
                found = f"semiring::times({found}, {text})" if found else text
        return found or "semiring::one()"

    def _value_now(self) -> str:
        return self.plain_value(self.values) if self.plain else self._value(self.head)

    def _contribution(self) -> str:
        """The contribution of the instance to its head."""
        value = self._value_now()
        if not self.plain or not self.subtracts(self.head):
            return value
        before = self.plain_value({**self.values, **self.old}, prefix="s", unless=self.given("first"))
        return f"(first ? {value} : semiring::minus({value}, {before}))"

    def _plain_adjoints(self) -> None:
        wanted = {i: total for i, total in self.sums.items() if i >= 0}
        self._spread(self.values, wanted, "g", "d")
        if not self.subtracts(self.head):
            return
        driver = self.join.driver
        assert driver is not None
        self.out.open(f"if (!{self.given('first')})")
        self.out.line("const adjoint_t minus = semiring::minus({}, g);")
        self._spread({**self.values, **self.old}, {**wanted, driver: self.sums[-1]}, "minus", "e")
        self.out.close()

    def _spread(self, values: dict[int, str], sums: dict[int, str], adjoint: str, prefix: str) -> None:
        names = {**{f"x{i}": text for i, text in values.items()}, "g": adjoint}
        order, collected = self.plan.order, self.names.functions
        code, found = adjoints_cxx(self.rule, self.plan.functions, names, prefix, order, collected)
        self.compute(code)
        for i, text in found.items():
            if i in sums:
                self.out.line(f"{sums[i]} = back::gather({sums[i]}, {text});")

    @property
    def in_rows(self) -> bool:
        row = SEMIRINGS[self.plan.semiring]
        return self.posteriors or (row.rows and not row.adds_logs)

    def _bar(self) -> str:
        """An assignment to the adjoint of the factors outside a row operation."""
        return f"{self.bar} += " if self.bar is not None else ""

    def _head_adjoints(self) -> str:
        if self.posteriors:
            return f"{self.names.table[self.head.key]}.h"
        return update_adjoint(self.plan, self.names, self.head)

    def _row_operation(self, loop: Loop, variable: str) -> None:
        name, row, head_name, to, shift = self._rows(loop)
        self.out.line(
            f"{self._bar()}back_row({name}, {row}, {name}.g.data, {head_name}, {to}, {self._head_adjoints()}.data, "
            f"{shift}, {self._factors});",
            f"side by side over {comment(variable)}",
        )

    def _in_turn(self) -> None:
        pass  # sums of adjoints may come in any order

    def _write_stretch(self, name: str, found: str, _: str, to: str) -> None:
        if goes_back_together(self.plan, self.join):
            self.out.line(
                f"back_together.add({name}.value, {found}.begin, {found}.end - {found}.begin, {name}.g.data, "
                f"{self._head_adjoints()}.data + {to}, {self._factors}, {self.given('gupdate')});"
            )
            return
        self.out.line(
            f"{self._bar()}back_stretch({name}.value, {found}.begin, {found}.end - {found}.begin, {name}.g.data, "
            f"{self._head_adjoints()}.data + {to}, {self._factors});"
        )


def total_of(plan: Plan, table: TableLayout, name: str, cell: str) -> str:
    """The total of which contributions had a share, and what rounding took from it."""
    if keeps_total(plan, table):
        return f"{name}.total[{cell}]"
    return f"{name}.value[{cell}], rest_of({name}.rest, {cell})"
