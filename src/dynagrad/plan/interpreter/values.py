"""The contribution of an instance to its head, and its partial derivatives, which `autodiff/` makes of the op graph.

In a semiring a right side is a product, in the order of the text. For derivatives it is a graph like any other: a
product, a sum where numbers are logs or costs, and in `expectation` the product with its tangent.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ... import ir
from ...autodiff import generate_adjoints
from ...errors import NotDifferentiable
from ...forks import cached
from ...ir.interpret import evaluate
from ...ir.node import Node
from ...rules.normal import NormalRule
from ...rules.semirings import SEMIRINGS
from ...rules.syntax import Application, Expression, Numeral
from ..model import Plan
from ..right_sides import lift, product_order, to_node
from .numbers import Arithmetics, Value, algebra, value_of


@dataclass(frozen=True, eq=False)
class RightSides:
    """The right sides of a plan's rules."""

    plan: Plan

    @cached
    def algebra(self) -> Arithmetics:
        return algebra(self.plan)

    @cached
    def _graphs(self) -> dict[int, Node]:
        return {}

    @cached
    def _adjoints(self) -> dict[int, tuple[tuple[str, ...], tuple[Node, ...]]]:
        return {}

    def value(self, rule: NormalRule, values: Sequence[Value | None]) -> Value:
        """The contribution of an instance, from the values of its antecedents; those of side conditions do not
        count."""
        if self.plan.semiring == "plain":
            graph = self._graphs.get(rule.number)
            if graph is None:
                graph = self._graphs[rule.number] = to_node(rule.value, self.plan.functions)
            return self.number(graph, {f"x{i}": v[0] for i, v in enumerate(values) if v is not None})
        factors = [
            value_of(self.plan, constant[1]) if constant is not None else values[antecedent or 0]
            for constant, antecedent in product_order(rule.value)
        ]
        counted = [factor for factor in factors if factor is not None]
        return functools.reduce(self.algebra.times, counted) if counted else self.algebra.one

    def number(self, graph: Node, values: Mapping[str, float]) -> Value:
        """The value of a graph of plain arithmetic."""
        return (float(evaluate([graph], values)[0]),)

    def partials(self, rule: NormalRule, values: Sequence[Value | None], cotangent: Value) -> Mapping[int, Value]:
        """What each antecedent gets of the cotangent of an instance's contribution."""
        names, graphs = self._adjoint_graphs(rule)
        rest = range(1, len(cotangent)) if self.plan.semiring == "expectation" else range(1)
        adjoints = {int(name[1:]): [0.0] * len(cotangent) for name in names if "@" not in name}
        for d in rest:
            inputs = {"g": cotangent[0] if d <= 1 else 0.0, "g@1": cotangent[d]}
            for name in names:
                place, _, tangent = name[1:].partition("@")
                value = values[int(place)]
                assert value is not None
                inputs[name] = value[d if tangent else 0]
            for name, part in zip(names, evaluate(graphs, inputs), strict=True):
                place, _, tangent = name[1:].partition("@")
                adjoints[int(place)][d if tangent else 0] += float(part)
        return {place: tuple(parts) for place, parts in adjoints.items()}

    def _adjoint_graphs(self, rule: NormalRule) -> tuple[tuple[str, ...], tuple[Node, ...]]:
        """Graphs of the increments to the adjoints of a right side's variables, from `g`, the adjoint of its value."""
        if rule.number not in self._adjoints:
            row = SEMIRINGS[self.plan.semiring]
            if row.no_derivatives:
                raise NotDifferentiable(f"there are no derivatives: {row.no_derivatives}")
            value = rule.value if self.plan.semiring == "plain" else _as_sum(rule.value, adds=row.times_adds)
            outputs = [to_node(value, self.plan.functions)]
            names = [f"x{i}" for i, antecedent in enumerate(rule.antecedents) if not antecedent.side]
            cotangents: list[Node | float | None] = [ir.variable("g")]
            if self.plan.semiring == "expectation":
                outputs = lift(outputs, names, 1)[0]
                names += [f"{name}@1" for name in names]
                cotangents.append(ir.variable("g@1"))
            adjoints = generate_adjoints(outputs, cotangents, [ir.variable(name) for name in names])
            parts = [(name, adjoints[ir.variable(name)]) for name in names]
            graphs = tuple(ir.constant(0.0) if part is None else part for _, part in parts)
            self._adjoints[rule.number] = tuple(names), graphs
        return self._adjoints[rule.number]


def _as_sum(value: Expression, *, adds: bool) -> Expression:
    """A product of a semiring as arithmetic: where its times adds, a sum."""
    match value:
        case Application(operands=()):
            return Numeral(0.0 if adds else 1.0)
        case Application(operands=operands):
            return replace(
                value, operator="+" if adds else "*", operands=tuple(_as_sum(o, adds=adds) for o in operands)
            )
    return value
